"""The studies of a report, read from a config."""

from swflow.report.plan import read_plan


def test_a_config_as_it_is_written_has_the_workloads_of_its_levels(tmp_path):
    """A study whose workloads were those of several loads, or kept by a sweep, was missing."""
    (tmp_path / "config.yaml").write_text(
        "steps: {loads: {kind: intensify, load: [0.5, 0.7]}}\n"
        "sweeps: {d: {processors: 64, d: '0:100:50', keep: {d: 50, seeds: 1}}}\n"
        "schedulers: {easy: {title: EASY}}\n"
        "studies:\n"
        "  load: {logs: [A], runs: [{workloads: ['{log}+loads'], schedulers: [easy]}]}\n"
        "  kept: {logs: [A], runs: [], sweeps: [{workloads: ['{log}'], sweeps: [d], schedulers: [easy]}]}\n"
    )
    names = ["A+loads-0.5", "A+loads-0.7", "A+precise-64-d50@1"]
    runs = [{"workload": name, "scheduler": "easy", "run": f"{name}/easy"} for name in names]
    plan = read_plan(tmp_path / "config.yaml", runs)
    assert [(study.name, [run["workload"] for run in study.runs]) for study in plan.studies] == [
        ("load", names[:2]),
        ("kept", names[2:]),
    ]
    assert plan.titles == {"easy": "EASY"}
