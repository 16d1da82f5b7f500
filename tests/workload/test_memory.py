"""Tests of demands for shared resources: their distribution and their dependences."""

from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.files.tables import read_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import uniform_per_job
from swflow.jobs.table import Workload
from swflow.studies.step_options import command_options
from swflow.workload.clean import clean_log
from swflow.workload.models.fit_measures import kolmogorov_smirnov
from swflow.workload.models.memory_model import fit_memory, spearman
from swflow.workload.steps.memory import SCENARIOS, describe_demands, memory
from swflow.workload.steps.select import select

SCHEMA = yaml.safe_load((Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml").read_text())


def workload(jobs=4000, name="A+ran", **columns):
    table = pl.DataFrame({"job_id": range(1, jobs + 1), "status": [1, 5] * (jobs // 2)}).with_columns(**columns)
    return Workload(table, Machine.of(4), name)


def demands(given, resource="memory_bandwidth"):
    return dict(given.jobs.select("job_id", resource).rows())


def test_numbers_per_job_are_uniform_and_independent():
    ids = np.arange(1, 100_001)
    keys = [(seed, [name, step]) for seed in (1, 2) for name in "AB" for step in "xy"]
    draws = [uniform_per_job(*key, ids) for key in keys]
    for uniform in draws:
        assert uniform.min() >= 0 and uniform.max() < 1
        cells = np.histogram(uniform, 100, (0, 1))[0]
        assert ((cells - 1000) ** 2 / 1000).sum() < 160  # chi-squared, 99 degrees of freedom: 1 in 10,000 is above
        assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.015
        assert abs(np.corrcoef(uniform[: -(2**16)], uniform[2**16 :])[0, 1]) < 0.025
    for number, one in enumerate(draws):
        assert all(abs(np.corrcoef(one, other)[0, 1]) < 0.015 for other in draws[number + 1 :])
    assert (uniform_per_job(1, ["A"], ids[::-7]) == uniform_per_job(1, ["A"], ids)[::-7]).all()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_has_its_shares(scenario):
    shares = SCENARIOS[scenario]
    given = memory(workload(40_000), **shares, step=scenario)
    counts = dict(given.jobs["memory_bandwidth"].value_counts().rows())
    entry = given.history[-1]
    for (name, share), demand, level in zip(shares.items(), (2000.0, 1000.0, 500.0), entry["levels"], strict=True):
        assert counts[demand] / 40_000 == pytest.approx(share, abs=0.01)  # more than three standard deviations
        assert level == {
            "level": name, "demand": demand, "share": share, "realised": round(counts[demand] / 40_000, 6),
        }  # fmt: skip
    assert (entry["stage"], entry["read"], entry["kept"], entry["removed"]) == ("memory", 40_000, 40_000, {})
    assert f"{counts[2000.0] / 40_000:.1%} high (2,000 a process)" in describe_demands(entry)


def test_high_is_the_default_and_any_levels_are_allowed():
    assert demands(memory(workload())) == demands(memory(workload(), high=0.8, medium=0.1, low=0.1))
    assert set(demands(memory(workload(), high=1)).values()) == {2000.0}
    assert set(demands(memory(workload(), low=1, low_level=0)).values()) == {0.0}
    given = memory(workload(), demands={10: 0.25, 4000.5: 0.75}, resource="network_bandwidth")
    assert given.jobs["network_bandwidth"].mean() == pytest.approx(0.75 * 4000.5 + 2.5, rel=0.05)
    same = memory(workload(), demands={4000.5: 0.75, 10: 0.25}, resource="network_bandwidth")
    assert given.jobs.equals(same.jobs)


def test_a_job_keeps_its_demand_in_any_part_and_order():
    whole = demands(memory(workload(), seed=3, step="memory-high"))
    part = select(workload(), where="job_id > 100 and status == 1")
    some = demands(memory(part, seed=3, step="memory-high"))
    assert some == {job: whole[job] for job in some}
    reversed_ = workload(name="A+other").with_jobs(workload().jobs.reverse(), {"stage": "x"})
    assert demands(memory(reversed_, seed=3, step="memory-high")) == whole
    for other in ({"seed": 4, "step": "memory-high"}, {"seed": 3, "step": "memory-high@2"}):
        assert demands(memory(workload(), **other)) != whole
    assert demands(memory(workload(name="B"), seed=3, step="memory-high")) != whole


def test_copies_share_the_demand_of_their_original():
    whole = memory(workload(100)).jobs["memory_bandwidth"].to_list()
    copies = workload(200, source_job_id=pl.Series([*range(1, 101), *range(1, 100), None], dtype=pl.Int64))
    drawn = memory(copies).jobs["memory_bandwidth"].to_list()
    assert drawn[:199] == whole + whole[:99]
    assert drawn[199] == demands(memory(workload(200)))[200]


def test_the_memory_of_the_log_is_converted_to_megabytes():
    some = workload(4, used_memory=pl.Series([2048.0, None, 512.0, 0.0]), requested_memory=pl.Series([None] * 4))
    given = memory(some, from_log="used")
    assert given.jobs["memory"].to_list() == [2.0, None, 0.5, 0.0]
    assert given.history[-1] == {
        "stage": "memory", "read": 4, "kept": 4, "removed": {}, "resource": "memory", "from_log": "used", "unknown": 1,
    }  # fmt: skip
    assert describe_demands(given.history[-1]) == "memory: used memory of the log; unknown of 1 jobs"
    with pytest.raises(SwflowError, match=r"A\+ran: no job has a requested memory"):
        memory(some, from_log="requested")


def test_a_second_resource_is_another_column():
    both = memory(memory(workload(10)), from_log=None, resource="network_bandwidth", high_level=100)
    assert {"memory_bandwidth", "network_bandwidth"} < set(both.jobs.columns)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"high": 0.5, "low": 0.4}, "the shares 0.5, 0, 0.4 sum to 0.9, not 1"),
        ({"high": 1.2, "low": -0.2}, "high: 1.2; expected a share of jobs from 0 to 1"),
        ({"high_level": -1}, "high: invalid demand -1.0"),
        ({"low_level": float("inf")}, "low: invalid demand inf"),
        ({"demands": {1: 0.5}}, "the shares 0.5 sum to 0.5"),
        ({"demands": {1: 1}, "high": 1}, "give demands, or the shares high, medium and low, not both"),
        ({"from_log": "used", "high": 1}, "from_log takes the demands from the log"),
        ({"from_log": "max"}, "from_log: unknown record 'max'; use used or requested"),
        ({"resource": "used_memory"}, "'used_memory' is a reserved column"),
        ({"resource": "workload"}, "'workload' is a reserved column"),
        ({"resource": "Memory"}, "'Memory' is not a column name"),
        ({"resource": "extra"}, r"A\+ran already has demands for extra"),
    ],
)
def test_wrong_demands_are_one_line(options, words):
    with pytest.raises(SwflowError, match=words) as caught:
        memory(workload(4, extra=pl.lit(1.0)), **options)
    assert "\n" not in str(caught.value)


def test_the_command_gives_the_same_bytes_again(log, capfd):
    config = {"high": 0.5, "medium": 0.1, "low": 0.4, "seed": 7}
    assert call("clean", log, "-o", "toy.parquet") == 0
    for folder in "ab":
        assert call("memory", "toy.parquet", "-o", f"{folder}/toy+med.parquet", *command_options(config).split()) == 0
    assert (log.parent / "a/toy+med.parquet").read_bytes() == (log.parent / "b/toy+med.parquet").read_bytes()
    assert "medium (1,000 a process)" in capfd.readouterr().err
    here = memory(read_workload("toy.parquet"), high=0.5, medium=0.1, low=0.4, seed=7, step="med")
    assert here.jobs.equals(read_workload("a/toy+med.parquet").jobs)
    assert call("memory", "toy.parquet", "-o", "c.parquet", "--demand", "100=1", "--resource", "io") == 0
    assert read_workload("c.parquet").jobs["io"].to_list() == [100.0] * 3
    assert call("memory", "toy.parquet", "-o", "c.parquet", "--demand", "much=1") == 1
    assert "--demand: 'much'; expected a finite number" in capfd.readouterr().err
    for command, lost in (("memory", "demands"), ("machine", "capacities")):
        assert call(command, "toy.parquet", "-o", "c.swf") == 1
        assert f"c.swf: only .parquet can hold the {lost}" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("step", "good"),
    [
        ({"kind": "memory", "high": 0.8, "medium": 0.1, "low": 0.1}, True),
        ({"kind": "memory", "demands": {"4000": 0.5, "100": 0.5}, "resource": "io"}, True),
        ({"kind": "memory", "from_log": "requested"}, True),
        ({"kind": "memory", "like": "LANL-CM5", "from_log": "requested", "high": 1}, True),
        ({"kind": "memory", "like": "LANL-CM5", "file": "a.txt"}, False),
        ({"kind": "memory", "like": "LANL CM5"}, False),
        ({"kind": "memory", "high": 80}, False),
        ({"kind": "memory", "resource": "I/O"}, False),
        ({"kind": "machine", "nodes": 28, "preset": "alvio-node", "capacities": {"memory": 1}}, True),
        ({"kind": "machine", "capacities": {"memory": 0}}, False),
        ({"kind": "machine", "high": 0.8}, False),
    ],
)
def test_the_schema_accepts_valid_steps(step, good):
    assert jsonschema.Draft202012Validator(SCHEMA["properties"]["steps"] | {"$defs": SCHEMA["$defs"]}).is_valid(
        {"step": step}
    ) is good  # fmt: skip


def test_mappings_of_the_config_become_repeated_options():
    options = command_options({"capacities": {"memory": 1, "io": 2.5}, "nodes": 3, "demands": {100: 0.5, 20: 0.5}})
    assert options == "--capacities io=2.5 --capacities memory=1 --demands 100=0.5 --demands 20=0.5 --nodes 3"


@pytest.mark.archive
def test_a_real_log_has_the_memory_of_its_jobs(traces):
    cm5 = clean_log(traces / "LANL-CM5-1994-4.1-cln.swf.gz", name="LANL-CM5", processors=1024)
    given = memory(cm5, from_log="requested")
    assert given.jobs["memory"].drop_nulls().sort().tail(1).item() == cm5.jobs["requested_memory"].max() / 1024
    assert given.history[-1]["unknown"] == cm5.jobs["requested_memory"].null_count() < 0.5 * cm5.jobs.height


# -- demands of a file


def test_a_file_gives_demands_by_job_and_copies_share_their_originals(tmp_path):
    file = tmp_path / "demands.reqs"
    file.write_text("; id, bandwidth, memory\n1 500 0\n\n2,1000,7\n99 2000 0\n")
    given = memory(workload(4, source_job_id=pl.Series([1, 1, 2, 3])), file=file)
    assert given.jobs["memory_bandwidth"].to_list() == [500.0, 500.0, 1000.0, None]
    entry = given.history[-1]
    assert (entry["file"], entry["unknown"], entry["unused"]) == ("demands.reqs", 1, 1)
    assert describe_demands(entry).startswith("memory_bandwidth: by demands.reqs; unknown of 1 jobs; 1 lines")
    other = memory(workload(4), file=file, column=3, resource="memory").jobs["memory"]
    assert other.to_list() == [0.0, 7.0, None, None]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("1 x", {}, "txt:1: demand: 'x'; expected a finite number"), ("1 5\n1 6", {}, "txt:2: job 1 is a duplicate"),
        ("1 -5", {}, "txt:1: demand: '-5'; expected a finite number from 0"),
        ("1 5", {"column": 3}, "has no column 3 with a demand"),
        ("; nothing", {}, "no job; expected"), ("77 5", {}, "no job of A.ran"), ("1 5", {"column": 1}, "at least 2"),
        ("1 5", {"high": 1.0}, "remove the shares"), ("1 5", {"from_log": "used"}, "demands and from_log"),
    ],
)  # fmt: skip
def test_an_invalid_file_of_demands_is_one_line(tmp_path, text, options, words):
    (tmp_path / "demands.txt").write_text(text)
    with pytest.raises(SwflowError, match=words) as error:
        memory(workload(4), file=tmp_path / "demands.txt", **options)
    assert "\n" not in str(error.value)
    with pytest.raises(SwflowError, match="no such file"):
        memory(workload(4), file=tmp_path / "no.txt")


# -- demands drawn with size and run time


def recorder(jobs=30_000, seed=5, mode=0.2):
    """Return a log with memory, size and run time from a Gaussian copula, and many jobs at one memory value."""
    rng = np.random.default_rng(seed)
    latent = rng.multivariate_normal([0, 0, 0], [[1, 0.3, 0.5], [0.3, 1, 0.4], [0.5, 0.4, 1]], jobs)
    table = {
        "job_id": np.arange(1, jobs + 1),
        "processors": 2 ** np.clip(np.round(latent[:, 0] * 1.5 + 3), 0, 7).astype(np.int64),
        "run_time": np.ceil(np.exp(latent[:, 1] + 6)),
        "used_memory": np.where(rng.random(jobs) < mode, 32768.0, np.round(np.exp(latent[:, 2] + 9))),
    }
    frame = pl.DataFrame(table).with_columns(status=1)
    return Workload(frame.with_columns(requested_memory=pl.lit(None, pl.Float64)), Machine.of(128), "recorder")


def correlations(given, resource):
    demand = given.jobs[resource].to_numpy()
    return [spearman(demand, given.jobs[name].to_numpy()) for name in ("processors", "run_time")]


def test_a_draw_has_the_correlations_and_the_frequent_values_of_the_log():
    source = recorder()
    fitted = fit_memory(source)
    recorded, drawn = memory(source, from_log="used"), memory(source, fitted=fitted, seed=3)
    of_log, ours = correlations(recorded, "memory"), correlations(drawn, "memory")
    assert min(of_log) > 0.25 and ours == pytest.approx(of_log, abs=0.03)
    values, given = recorded.jobs["memory"], drawn.jobs["memory"]
    assert (given == 32.0).mean() == pytest.approx(0.2, abs=0.015)
    assert set(given) <= set(values)  # all values are those of the log
    assert kolmogorov_smirnov(given.to_numpy(), values.to_numpy()) < 0.012
    goodness = fitted.goodness
    assert goodness["memory_ks"][0] < 0.012 and goodness["jobs"] == (30_000, 30_000)
    assert [goodness[f"memory_{name}_spearman"][1] for name in ("size", "run_time")] == pytest.approx(of_log)
    assert [goodness[f"memory_{name}_spearman"][0] for name in ("size", "run_time")] == pytest.approx(of_log, abs=0.03)


def test_a_dependence_that_rises_and_falls_is_kept():
    jobs = recorder().jobs.with_columns(
        used_memory=pl.when(pl.col("processors").is_between(4, 16)).then(9216.0).otherwise(1024.0)
    )
    source = Workload(jobs, Machine.of(128), "recorder")
    given = memory(source, fitted=fit_memory(source)).jobs
    assert (given["memory"] * 1024 == jobs["used_memory"]).all()


def test_jobs_of_another_machine_demand_by_their_quantiles():
    source = recorder()
    other = source.jobs.with_columns(processors=pl.col("processors") * 64, run_time=pl.col("run_time") * 10 + 7)
    given = memory(Workload(other, Machine.of(8192), "recorder"), fitted=fit_memory(source))
    assert given.jobs["memory"].equals(memory(source, fitted=fit_memory(source)).jobs["memory"])


def test_the_highest_levels_go_to_the_jobs_with_the_most_memory():
    source, fitted = recorder(), fit_memory(recorder())
    given = memory(source, fitted=fitted, **SCENARIOS["MED"], step="med")
    counts = dict(given.jobs["memory_bandwidth"].value_counts().rows())
    assert counts == {2000.0: 15_000, 1000.0: 3_000, 500.0: 12_000}
    assert all(found > 0.2 for found in correlations(given, "memory_bandwidth"))
    assert all(abs(found) < 0.02 for found in correlations(memory(source, **SCENARIOS["MED"]), "memory_bandwidth"))
    drawn = memory(source, fitted=fitted, step="med").jobs["memory"]
    both = given.jobs.with_columns(memory=drawn)
    assert both.filter(memory_bandwidth=2000)["memory"].min() >= both.filter(memory_bandwidth=500)["memory"].max()
    entry = given.history[-1]
    assert (entry["like"], entry["record"], entry["resource"]) == ("recorder", "used", "memory_bandwidth")
    assert "like the used memory of recorder; rank correlation with processors 0.3" in describe_demands(entry)
    assert memory(source, fitted=fitted, **SCENARIOS["MED"], step="med").jobs.equals(given.jobs)
    assert not memory(source, fitted=fitted, **SCENARIOS["MED"], step="med@2").jobs.equals(given.jobs)


def test_copies_share_demands_drawn_with_size_and_run_time():
    source = recorder(2000)
    copied = pl.concat([source.jobs, source.jobs]).with_columns(source_job_id="job_id", job_id=pl.int_range(4000) + 1)
    for levels in ({}, SCENARIOS["HIGH"]):
        drawn = memory(Workload(copied, Machine.of(128), "recorder"), fitted=fit_memory(source), **levels)
        demand = drawn.jobs[drawn.history[-1]["resource"]]
        assert demand[:2000].equals(demand[2000:]) and demand.n_unique() > 2


def test_the_command_fits_a_file_and_draws_from_it(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    lines = (
        f"{job} {60 * job} 0 {1 + job % 977} {2 ** (job % 6)} -1 {1024 * (1 + job % 6)} -1 -1 -1 1"
        for job in range(1, 601)
    )
    Path("cm.swf").write_text("; MaxProcs: 32\n" + "".join(f"{line} 1 1 1 1 1 -1 -1\n" for line in lines))
    for name in "ab":
        assert call("memory", "cm.swf", "--save-fit", f"{name}.json") == 0
        assert call("memory", "cm.swf", "-o", f"{name}/cm+m.parquet", "--fitted", f"{name}.json", "--high", 1) == 0
    assert (
        "used memory of 600 jobs of cm, unknown of 0; rank correlation with processors 1.000" in capfd.readouterr().err
    )
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert Path("a/cm+m.parquet").read_bytes() == Path("b/cm+m.parquet").read_bytes()
    assert call("memory", "cm.swf", "-o", "c/cm+m.parquet", "--like", "cm.swf") == 0
    drawn = read_workload("c/cm+m.parquet").jobs
    assert (drawn["memory"] == 1 + drawn["job_id"] % 6).all()
    wrong = {
        ("--save-fit", "c.json", "--from-log", "requested"): "cm: no job has a requested memory that a model could be",
        ("-o", "d.parquet", "--fitted", "nothing.json"): "nothing.json: no such file",
        ("-o", "d.parquet", "--fitted", "cm.swf"): "cm.swf: not a memory model",
        ("-o", "d.parquet", "--fitted", "other.json"): "other.json: not a memory model",
        ("-o", "d.parquet", "--fitted", "half.json"): "half.json: incomplete memory model",
        ("-o", "d.parquet", "--fitted", "a.json", "--from-log", "used"): "remove from_log and file",
        ("-o", "d.parquet", "--fitted", "a.json", "--like", "cm.swf"): "expected one of them",
        ("-o", "d.parquet", "--save-fit", "c.json"): "expected either a workload",
    }  # fmt: skip
    Path("other.json").write_text("{}")
    Path("half.json").write_text(Path("a.json").read_text().replace('"up_to"', '"to"', 1))
    for arguments, words in wrong.items():
        assert call("memory", "cm.swf", *arguments) == 1
        error = capfd.readouterr().err
        assert words in error.splitlines()[-1]


@pytest.mark.archive
def test_a_draw_agrees_with_lanl_cm5(traces):
    fitted = fit_memory(clean_log(traces / "LANL-CM5-1994-4.1-cln.swf.gz", name="LANL-CM5", processors=1024))
    for name, of_log in (("memory_size_spearman", 0.227), ("memory_run_time_spearman", 0.340)):
        assert fitted.goodness[name][1] == pytest.approx(of_log, abs=0.001)
        assert fitted.goodness[name][0] == pytest.approx(of_log, abs=0.015)
    assert fitted.goodness["memory_ks"][0] < 0.01
