"""Test the plan of the workflow: values of rules for the wildcards of a job, without Snakemake."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from swflow.errors import SwflowError
from swflow.figures import read_plan
from swflow.files.fingerprint import fingerprint
from swflow.names import PARENT
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.figure_jobs import drawings, figure_jobs, files_to_keep, pictures, targets
from swflow.studies.rule_options import (
    forecast_options,
    options_of_step,
    replicate_options,
    simulate_options,
    step_code,
    step_kind,
    whatif_options,
)
from swflow.studies.runs import read_simulations
from swflow.studies.workflow import (
    CHANGES,
    REACHED,
    SETTINGS,
    Workflow,
    cancel_timers,
    read_config,
    report_changes,
)

ROOT = Path(__file__).parents[2]
#: A job without wildcards.
NONE = SimpleNamespace()

SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Return a parsed config, in a folder with its catalogue."""
    monkeypatch.chdir(tmp_path)
    Path("logs.yaml").write_text("A: {generate: lublin, processors: 32, jobs: 50}\n")
    runs = [
        {"workloads": ["{log}+draw", "{log}+draw@{seed}"], "schedulers": ["easy"]},
        {"workloads": ["{log}+draw@2"], "schedulers": ["fcfs"]},
        {"workloads": ["{log}"], "schedulers": ["fcfs", "log"]},
    ]
    return read_config(
        {
            "catalogue": ["logs.yaml"],
            "steps": {"draw": {"kind": "moldable"}},
            "schedulers": {"easy": {"backfill": "easy"}, "fcfs": {"backfill": "none"}},
            "studies": {"one": {"logs": ["A"], "seeds": 3, "runs": runs}},
        },
        SCHEMA,
    )


def test_defaults_come_from_the_schema(config):
    assert config["seed"] == 1
    assert config["strict"] is False
    assert config["clean"]["drop"]


def test_figures_of_a_log_whose_source_is_missing_are_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("logs.yaml").write_text(
        "A: {generate: lublin, processors: 32, jobs: 50}\n"
        "B: {file: b.swf.gz, url: 'https://nowhere.invalid/b.swf.gz', processors: 32, nodes: 32, jobs: 5}\n"
        "C: {of: B, from: 1993-01-01}\n"
    )
    runs = [{"workloads": ["{log}"], "schedulers": ["easy"]}]
    study = {"logs": ["A", "B", "C"], "figures": ["waits"], "runs": runs}
    schedulers = {"easy": {"backfill": "easy"}}
    plan = Workflow(
        read_config({"catalogue": ["logs.yaml"], "schedulers": schedulers, "studies": {"one": study}}, SCHEMA)
    )
    REACHED.parent.mkdir(parents=True)
    REACHED.write_text(json.dumps({"missing": {"B": "cannot be fetched"}, "reached": []}))
    plan.is_done = True
    assert pictures(plan) == [f"results/figures/one/A-waits.{ending}" for ending in ("png", "svg", "json")]


@pytest.mark.parametrize("part", ["whatif", "forecast"])
def test_a_question_on_a_log_that_cannot_be_fetched_is_left_out(tmp_path, monkeypatch, part):
    """The workflow tried to fetch a log that only a what-if or a forecast needs, and failed as a whole."""
    monkeypatch.chdir(tmp_path)
    Path("logs.yaml").write_text(
        "A: {generate: lublin, processors: 32, jobs: 50}\n"
        "B: {file: b.swf.gz, url: 'https://nowhere.invalid/b.swf.gz', processors: 32, nodes: 32, jobs: 5}\n"
    )
    runs = [{"workloads": ["A"], "schedulers": ["easy"]}]
    asked = [{"workloads": ["A", "B"]} | ({"schedulers": ["easy"]} if part == "whatif" else {})]
    studies = {"one": {"logs": ["A", "B"], "runs": runs, part: asked}}
    schedulers = {"easy": {"backfill": "easy"}}
    plan = Workflow(read_config({"catalogue": ["logs.yaml"], "schedulers": schedulers, "studies": studies}, SCHEMA))
    REACHED.parent.mkdir(parents=True)
    REACHED.write_text(json.dumps({"missing": {"B": "cannot be fetched"}, "reached": []}))
    plan.is_done = True
    files = {name for name in plan.loaded(NONE) + targets(plan, NONE) if "/one/" in name}
    assert files and not [name for name in files if "/B." in name]


def test_workloads_on_numbered_processors_are_simulated_first(config):
    assert Workflow(config).with_places == []
    placed = {**config["schedulers"], "fcfs": {"backfill": "none", "allocation": "first-fit"}}
    assert Workflow(config | {"schedulers": placed}).with_places == ["A"]  # not the replicates, which one job simulates


def test_a_wrong_config_names_the_key(config):
    del config["titles"]  # not a key of a config
    wrong = config | {"schedulers": {"mine": {"backfil": "easy"}}}
    with pytest.raises(SwflowError, match="schedulers: mine: unknown key 'backfil'; did you mean 'backfill'"):
        read_config(wrong, SCHEMA)


def test_the_replicates_of_a_recipe_are_simulated_by_one_job(config):
    plan = Workflow(config)
    replicates = plan.replicates["A+draw"]
    assert replicates.simulated == ["A+draw@1", "A+draw@2", "A+draw@3"]
    planned = read_simulations(plan.simulations(replicates.simulated), replicates.simulated)
    names = {name: sorted(chosen) for name, chosen in planned.items()}
    assert names == {"A+draw@1": ["easy"], "A+draw@2": ["easy", "fcfs"], "A+draw@3": ["easy"]}
    assert planned["A+draw@1"]["easy"] == Scheduler(backfill="easy").to_dict()
    one = plan.simulation(SimpleNamespace(workload="A+draw"))
    assert sorted(read_simulations(one, ["A+draw"])["A+draw"]) == ["easy"]
    assert one == plan.simulations(["A+draw@1"])  # workloads with the same schedulers share a file
    other = plan.simulation(SimpleNamespace(workload="A+new"))  # no study names it
    assert sorted(read_simulations(other, ["A+new"])["A+new"]) == ["easy", "fcfs", "log"]


def test_a_plan_is_written_once_under_a_name_of_its_own(config):
    """Another call with another config must not change what a running job reads, and an equal plan keeps its time."""
    job = SimpleNamespace(workload="A")
    first = Path(Workflow(config).simulation(job))
    text = first.read_text()
    os.utime(first, (1, 1))
    edited = {**config["schedulers"], "fcfs": {"backfill": "none", "estimates": "kill"}}
    assert Workflow(config | {"schedulers": edited}).simulation(job) != str(first)
    assert Workflow(config).simulation(job) == str(first)
    assert first.read_text() == text and first.stat().st_mtime == 1
    first.write_text(text[:-5])  # damaged
    assert Path(Workflow(config).simulation(job)).read_text() == text


def test_an_edit_of_a_scheduler_changes_the_plans_of_its_workloads_only(config):
    edited = {**config["schedulers"], "fcfs": {"backfill": "none", "estimates": "kill"}}
    jobs = [[name] for name in ("A", "A+draw", "A+draw@1", "A+draw@2")]
    before, after = Workflow(config), Workflow(config | {"schedulers": edited})
    changed = [names for names in jobs if before.simulations(names) != after.simulations(names)]
    assert changed == [["A"], ["A+draw@2"]]


def test_the_code_of_a_policy_is_a_part_of_the_plan_of_its_simulations(config):
    mine = Path("mine.py")
    study = {"logs": ["A"], "runs": [{"workloads": ["A"], "schedulers": ["mine"]}]}
    settings = config | {"schedulers": {"mine": {"policy": "mine.py:Mine"}}, "studies": {"one": study}}
    plans = []
    for body in ("pass", "slack = 3", "pass  # a comment"):
        mine.write_text(f"from swflow.policies import Easy\n\n\nclass Mine(Easy):\n    {body}\n")
        plans.append(Workflow(settings).simulations(["A"]))
    assert plans[0] != plans[1] and plans[0] == plans[2]


def test_a_step_and_its_replicates_share_options_and_inputs(config):
    plan, step = Workflow(config), SimpleNamespace(workload="A", step="draw")
    many = plan.replicates["A+draw"]
    assert options_of_step(plan, step) == replicate_options(plan, "A+draw", NONE) == "--seed 1 --sigma clipped"
    assert many.inputs == ["results/workloads/A.parquet"] and plan.inputs(step) == []
    assert step_kind(plan, step) == many.kind == "moldable"
    assert many.outputs == [f"results/workloads/A+draw@{number}.parquet" for number in (1, 2, 3)]
    assert step_code(plan, step) == fingerprint("moldable")


def test_replicates_of_a_model_draw_from_the_fit_of_their_own_parent(config):
    """Parents with other numbers than the replicate, and numbers with gaps, are no exception."""
    names = ["A+draw@1+like@1", "A+draw@2+like@2", "A+draw@7+like@7", "A+draw@2+like@3", "A+like@1"]
    run = {"workloads": names, "schedulers": ["easy"]}
    steps = config["steps"] | {"like": {"kind": "model", "model": "song"}}
    plan = Workflow(config | {"steps": steps, "studies": {"one": config["studies"]["one"] | {"runs": [run]}}})
    for recipe in ("A+draw+like", "A+like"):
        replicates = plan.replicates[recipe]
        parents = [Path(output).stem.rpartition("+")[0] for output in replicates.outputs]
        workloads = [f"results/workloads/{parent}.parquet" for parent in parents]
        fits = [f"results/models/{parent}/song.json" for parent in parents]
        assert set(replicates.inputs) == {*workloads, *fits}
        assert replicate_options(plan, recipe, NONE) == f"--fitted results/models/{PARENT}/song.json --seed 1"


def write_digests(plan):
    """Write empty digests of all runs of a plan, as after a call."""
    for name in plan.runs:
        Path(f"results/runs/{name}").mkdir(parents=True)
        for scheduler in plan.runs[name]:
            Path(f"results/runs/{name}/{scheduler}.digest").touch()


def test_figures_are_made_from_the_runs_that_they_show(config):
    """Verdicts on differences are corrected for all comparisons of a log."""
    study = config["studies"]["one"] | {"figures": ["bubbles", "waits", "timeline"]}
    other = {"logs": ["A"], "figures": ["difference"],
             "runs": [{"workloads": ["A"], "schedulers": ["easy", "fcfs"]}]}  # fmt: skip
    third = study | {"figures": ["bubbles"]}
    plan = Workflow(config | {"studies": {"one": study, "two": other, "three": third}})
    drawn = {figures.group: list(read_plan(figures.plan)) for figures in figure_jobs(plan)}
    assert sorted(drawn["two/A"]) == ["three/A-bubbles", "two/A-difference"]  # one process draws a few figures of a log
    plan = Workflow(config | {"studies": {"one": study, "two": other}})
    write_digests(plan)
    shown = {figures.group: figures.shown(NONE) for figures in figure_jobs(plan)}
    runs = [f"{name}/{scheduler}" for name in ("A", "A+draw", "A+draw@1") for scheduler in plan.runs[name]]
    assert shown["one/A"] == sorted(f"results/runs/{run}.digest" for run in runs if run != "A/easy")
    own = [f"results/runs/A/{name}.digest" for name in ("easy", "fcfs")]
    assert shown["two/A"] == [*own, "results/verdicts"]  # until the next load
    Path("results/verdicts/two").mkdir(parents=True)
    Path("results/verdicts/two/A-difference.json").write_text("[]")
    shown = {figures.group: figures.shown(NONE) for figures in figure_jobs(plan)}
    assert shown["two/A"] == [*own, "results/verdicts/two/A-difference.json"]
    assert json.loads(Path(plan.to_load).read_text())["compared"] == {"two/A-difference": ["A/easy", "A/fcfs"]}
    shutil.rmtree("results/runs/A")
    (again,) = (figures.shown(NONE) for figures in figure_jobs(plan) if figures.group == "two/A")
    assert again == ["results/runs/A", "results/verdicts/two/A-difference.json"]


def test_a_forest_is_made_of_all_that_a_study_asks_for(config):
    study = {
        "logs": ["A"], "figures": ["waits", {"kind": "forest", "name": "all", "measure": "awrt", "width": "84mm"}],
        "runs": [{"workloads": ["A"], "schedulers": ["easy", "fcfs"]}],
        "whatif": [{"workloads": ["A"], "schedulers": ["easy"], "processors": ["+50%"]}],
    }  # fmt: skip
    plan = Workflow(config | {"studies": {"one": study}})
    write_digests(plan)
    jobs = {figures.group: figures for figures in figure_jobs(plan)}
    assert jobs["one/all"].png == ["results/figures/one/all.png"] and "results/figures/one/all.pdf" in pictures(plan)
    assert read_plan(jobs["one/all"].plan) == {
        "one/all": {"kind": "forest", "studies": ["one"], "measures": ["awrt"], "how": {"width": "84mm"}}
    }
    runs = [f"results/runs/A/{name}.digest" for name in ("easy", "fcfs")]
    assert jobs["one/all"].shown(NONE) == [*runs, "results/verdicts", "results/whatif/one/A.parquet"]
    assert "results/figures/one/all.json" not in drawings(plan, NONE)  # a page of the report begins with its own
    twice = study | {"figures": [{"kind": "forest", "measure": name} for name in ("awrt", "slowdown")]}
    with pytest.raises(SwflowError, match="studies: one: figures: two figures named 'forest'"):
        Workflow(config | {"studies": {"one": twice}})
    alone = study | {"runs": [{"workloads": ["A"], "schedulers": ["easy"]}], "whatif": []}
    with pytest.raises(SwflowError, match="studies: one: figures: all: no runs to compare"):
        Workflow(config | {"studies": {"one": alone}})


def test_a_key_of_a_catalogue_given_twice_is_still_refused(config):
    Path("logs.yaml").write_text("A: {path: a.swf}\nA: {path: b.swf}\n")
    with pytest.raises(SwflowError, match=r"logs\.yaml:2: .*A is given twice"):
        Workflow(config)


def test_rules_are_thin():
    """The workflow's functions are in Python modules, which tests and fingerprints cover."""
    rules = [path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")]
    assert not [line for text in rules for line in text.splitlines() if line.startswith("def ") or "lambda" in line]
    assert max(len(part.splitlines()) for text in rules for part in text.split("\n\n\n")) <= 45


def test_planning_imports_neither_the_database_nor_the_compiler():
    script = "import swflow.studies.workflow, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"duckdb", "numba", "altair", "scipy", "swflow.database.load"} & set(done.stdout.split())


def test_every_config_of_the_project_is_read():
    for name in ("config", "minimal"):
        content = yaml.safe_load((ROOT / f"config/{name}.yaml").read_text())
        assert read_config(content, SCHEMA)["studies"]


def test_the_warm_up_of_the_config_reaches_the_simulation(config):
    assert simulate_options(Workflow(config), NONE) == ""
    options = simulate_options(Workflow(config | {"warm_up": "30 days", "cool_down": "10 jobs"}), NONE)
    assert options == "--cool-down '10 jobs' --warm-up '30 days'"
    del config["titles"]  # not a key of a config
    with pytest.raises(SwflowError, match="warm_up"):
        read_config(config | {"warm_up": "30"}, SCHEMA)


def test_a_local_log_is_known_by_its_content(config):
    """A log that is replaced by one of equal size and time is another log."""
    logs = {"MINE": {"path": "my.swf", "processors": 8}, "SITE": {"path": "my.parquet", "processors": 8}}
    study = {"logs": ["MINE", "SITE"], "runs": [{"workloads": ["{log}"], "schedulers": ["easy"]}]}
    contents = []
    for text in ("first", "other"):
        for path in (Path("my.swf"), Path("my.parquet")):
            path.write_text(text)
            os.utime(path, (1, 1))
        plan = Workflow(config | {"logs": logs, "studies": {"one": study}})
        contents.append([plan.origin(SimpleNamespace(log=log)) for log in ("MINE", "SITE")])
    assert contents[0][0] != contents[1][0] and contents[0][1] != contents[1][1]


def test_results_of_another_config_without_records_are_refused(config):
    """Snakemake compares only the times of files in a copy of the results, so it would not notice an edit."""
    plan, edited = Workflow(config), Workflow(config | {"seed": 2})
    edited.check_records()  # there are no results
    shutil.copy(plan.settings, SETTINGS)
    plan.check_records()
    with pytest.raises(SwflowError, match=r"results: of another config.*\.snakemake.*snakemake --forceall"):
        edited.check_records()
    Path(".snakemake/metadata").mkdir(parents=True)
    Path(".snakemake/metadata/x").touch()
    edited.check_records()


def test_what_a_config_keeps_is_all_that_its_jobs_make(config):
    plan = Workflow(config)
    kept = json.loads(Path(files_to_keep(plan, figure_jobs(plan))).read_text())["files"]
    assert {"results/logs/A.swf.gz", "results/workloads/A+draw@2.parquet", "results/runs/A"} <= {*kept}
    assert {plan.settings, plan.to_load, plan.simulations(["A"])} <= {*kept}
    assert {str(path) for path in Path("results/plans").glob("*.json")} <= {
        *kept,
        files_to_keep(plan, figure_jobs(plan)),
    }


def test_the_page_and_the_table_of_a_what_if_are_targets(config):
    """A deleted CSV file of a what-if was not made again."""
    whatif = [{"workloads": ["A"], "schedulers": ["fcfs"], "processors": ["+50%"]}]
    study = config["studies"]["one"] | {"whatif": whatif}
    files = targets(Workflow(config | {"studies": {"one": study}}), None)
    assert {"results/whatif/one/A.html", "results/whatif/one/A.csv"} <= set(files)


def test_a_what_if_of_a_study_has_the_questions_of_the_command(config):
    """A study could ask for sizes, estimates and arrivals, but not for another order, limits or shares."""
    asked = {
        "order": ["sjf"], "backfill": ["none"],
        "limit": ["user:processors=4,group:physics:jobs=2"], "share": ["group:physics=3"],
        "by": ["user", "class"], "why": True,
    }  # fmt: skip
    study = config["studies"]["one"] | {"whatif": [{"workloads": ["A"], "schedulers": ["fcfs"]} | asked]}
    del config["titles"]  # not a key of a config
    plan = Workflow(read_config(config | {"studies": {"one": study}}, SCHEMA))
    words = shlex.split(whatif_options(plan, SimpleNamespace(study="one", workload="A")))
    scheduler = words.index("--scheduler")
    assert words[:scheduler] == [
        "--backfill", "none", "--by", "user", "--by", "class", "--limit", "user:processors=4,group:physics:jobs=2",
        "--order", "sjf", "--share", "group:physics=3", "--why",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"order": ["sfj"]}, "whatif[0]: order: unknown order 'sfj'; did you mean 'sjf'"),
        ({"limit": ["user:cores=4"]}, "whatif[0]: limit: 'user:cores=4': unknown limit 'cores'"),
        ({"limit": ["user:jobs=none"]}, "whatif[0]: limit user:jobs=none: the scheduler has no such limit"),
        ({"share": ["physics=3"]}, "whatif[0]: share: 'physics=3'; expected user:NAME=SHARE or group:NAME=SHARE"),
        ({"processors": [64, "+20%", "20x"]}, "whatif[0]: processors: '20x'; expected a number, or a change such as"),
        ({"nodes": ["+1", "=+2"]}, "whatif[0]: nodes: '=+2'; expected a change such as +2"),
        ({"resource": ["gpus"]}, "whatif[0]: resource: 'gpus'; expected NAME=UNITS"),
        ({"by": ["users"]}, "by"),
    ],
)
def test_a_wrong_question_of_a_study_is_refused_when_the_config_is_read(config, wrong, message):
    study = config["studies"]["one"] | {"whatif": [{"workloads": ["A"], "schedulers": ["fcfs"]} | wrong]}
    del config["titles"]  # not a key of a config
    with pytest.raises(SwflowError, match=re.escape(message)):
        Workflow(read_config(config | {"studies": {"one": study}}, SCHEMA))


def test_a_forecast_names_a_scheduler_of_the_config(config):
    forecast = [{"workloads": ["A"], "weeks": 2, "method": "simulation", "scheduler": "fcfs"}]
    study = config["studies"]["one"] | {"forecast": forecast}
    plan = Workflow(config | {"studies": {"one": study}})
    options = forecast_options(plan, SimpleNamespace(study="one", workload="A"))
    assert options.startswith("--method simulation --weeks 2 --scheduler 'fcfs: {")
    forecast[0]["scheduler"] = "fsfc"
    with pytest.raises(SwflowError, match=r"forecast\[0\]: scheduler: unknown scheduler 'fsfc'"):
        Workflow(config | {"studies": {"one": study}})


def test_changes_are_printed_by_the_call_that_loaded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    report_changes(SimpleNamespace(began=0.0))  # nothing was loaded
    CHANGES.parent.mkdir()
    for content, printed in (("{}", ""), ('{"lines": ["changed: one"]}', "changed: one\n"), ("[]", ""), ("{", "")):
        CHANGES.write_text(content)
        report_changes(SimpleNamespace(began=CHANGES.stat().st_mtime - 1))
        assert capsys.readouterr().err == printed
        report_changes(SimpleNamespace(began=CHANGES.stat().st_mtime + 1))
        assert capsys.readouterr().err == ""


def test_a_call_does_not_wait_for_the_timers_of_snakemake():
    def look():
        """As the scheduler's function of a timer."""

    look.__module__ = "snakemake.scheduling.job_scheduler"
    of_snakemake, other = threading.Timer(3600, look), threading.Timer(3600, print)
    of_snakemake.start()
    other.start()
    try:
        cancel_timers()
        of_snakemake.join(60)
        assert not of_snakemake.is_alive()
        assert other.is_alive()
    finally:
        of_snakemake.cancel()
        other.cancel()


def test_a_study_may_name_predefined_schedulers(tmp_path, monkeypatch, capsys):
    (tmp_path / "logs.yaml").write_text("A: {path: A.swf, processors: 4}")
    monkeypatch.chdir(tmp_path)
    runs = [{"workloads": ["{log}"], "schedulers": ["f2", "sjf"]}]
    config = {"catalogue": ["logs.yaml"], "schedulers": {"sjf": {"order": "sjf"}},
              "studies": {"one": {"logs": ["A"], "runs": runs}}}  # fmt: skip
    found = read_config(config, SCHEMA)
    assert found["schedulers"] == {"sjf": {"order": "sjf"}, "f2": {"order": "f2", "backfill": "easy"}}
    line = "schedulers: sjf: redefines the predefined scheduler: backfill 'none' instead of 'easy'\n"
    assert capsys.readouterr().err == line
