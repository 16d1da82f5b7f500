"""Tests of Snakemake as a user runs it: a full run, edits of the config, a killed load, and the archive's logs."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from helpers.forked import Server
from swflow.files.query import query

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.workflow, pytest.mark.slow]


class Project:
    """A copy of the workflow with a config."""

    def __init__(self, folder: Path, config: dict, server: Server) -> None:
        self.folder, self.server = folder, server
        for name in ("config", "workflow"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "Snakefile", folder)
        (folder / "profiles").symlink_to("workflow/profiles")
        self.config = config
        self.write()

    def write(self) -> None:
        """Write the config."""
        (self.folder / "config/config.yaml").write_text(yaml.safe_dump(self.config))

    def run(self, *arguments: str, fails: bool = False) -> str:
        """Run Snakemake, and return its output."""
        child = self.server.start(self.folder, "snakemake", "--cores", "2", *arguments)
        said = child.communicate()[0]
        assert (child.returncode != 0) == fails, said
        return said

    def planned(self) -> list[str]:
        """Return the jobs that a dry run lists, without the one that only names the results."""
        lines = [line.strip() for line in self.run("-n").splitlines()]  # lines of grouped jobs are indented
        return [line.split(": ", 1)[1] for line in lines if re.match("Job [0-9]+: (?!all results)", line)]

    def runs(self) -> dict[str, int]:
        """Return the runs, each with the number of its file."""
        found = (self.folder / "results/runs").glob("[!.]*/*.parquet")
        return {f"{path.parent.name}/{path.stem}": path.stat().st_ino for path in found}

    def simulated(self, *arguments: str) -> list[str]:
        """Run Snakemake, and return the runs that were not in the store before."""
        kept = {path.stat().st_ino for path in (self.folder / "results/runs/.store").rglob("*.parquet")}
        self.run(*arguments)
        return sorted(run for run, number in self.runs().items() if number not in kept)

    def sql(self, text: str) -> list[tuple]:
        """Query the database."""
        return query(self.folder / "results/swflow.duckdb", text)[1]


CONFIG = {
    "seed": 1,
    "catalogue": ["config/toys.yaml"],
    "steps": {
        "first": {"kind": "select", "jobs": 200},
        "batch": {"kind": "select", "where": "queue_id == 1"},
        "shapes": {"kind": "moldable"},
    },
    "schedulers": {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}, "mine": {"backfill": "easy"}},
    "studies": {
        "one": {
            "logs": ["toy-a", "toy-b"],
            "runs": [{"workloads": ["{log}"], "schedulers": ["fcfs", "easy"]}],
            "whatif": [
                {
                    "workloads": ["toy-a"],
                    "schedulers": ["easy", "mine"],
                    "processors": ["+50%"],
                    "backfill": ["none"],
                }
            ],
        },
        "two": {
            "logs": ["toy-a"],
            "figures": ["bubbles"],
            "runs": [{"workloads": ["{log}+first", "{log}+first+batch"], "schedulers": ["easy", "mine"]}],
        },
        "three": {
            "logs": ["toy-b", "gone"],
            "seeds": 2,
            "runs": [{"workloads": ["{log}+shapes@{seed}"], "schedulers": ["easy"]}],
            "sweeps": [{"workloads": ["gone"], "sweeps": ["wider"], "schedulers": ["easy"]}],
        },
    },
    "sweeps": {"wider": {"processors": 64, "d": [0, 50]}},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory, server):
    """Run a small project once; each test that edits it restores it."""
    project = Project(tmp_path_factory.mktemp("project"), yaml.safe_load(yaml.safe_dump(CONFIG)), server)
    toys = {name: {"generate": "lublin", "processors": 32, "jobs": 400} for name in ("toy-a", "toy-b")}
    toys["gone"] = {"url": f"file://{project.folder}/gone.swf.gz", "processors": 32}  # cannot be fetched
    (project.folder / "config/toys.yaml").write_text(yaml.safe_dump(toys))
    lost = {"catalogue": ["config/logs-lost.yaml"], "studies": {"one": {"logs": ["lost"], "runs": [
        {"workloads": ["lost"], "schedulers": ["log"]}]}}}  # fmt: skip
    (project.folder / "config/lost.yaml").write_text(yaml.safe_dump(lost))
    (project.folder / "config/logs-lost.yaml").write_text("lost: {path: lost.swf}\n")
    (project.folder / "config/evil.yaml").write_text("evil: {generate: 'lublin; touch x', processors: 8}\n")
    (project.folder / "config/worse.yaml").write_text("evil: {path: x.swf, clean: {output: x}}\n")
    project.run()
    subprocess.run(["cp", "-a", project.folder, made_once(project)], check=True)
    return project


def made_once(project: Project) -> Path:
    """Return the folder of a copy, with its times and hard links, of what the first run made."""
    return project.folder.with_name(f"{project.folder.name}-made-once")


@pytest.fixture
def edited(project):
    """Provide the project for editing, and restore it afterwards."""
    yield project
    project.config = yaml.safe_load(yaml.safe_dump(CONFIG))
    shutil.rmtree(project.folder)
    subprocess.run(["cp", "-a", made_once(project), project.folder], check=True)


def test_all_files_are_created_once(project):
    assert project.sql("SELECT run FROM runs ORDER BY 1") == [
        ("toy-a+first+batch/easy",), ("toy-a+first+batch/mine",), ("toy-a+first/easy",), ("toy-a+first/mine",),
        ("toy-a/easy",), ("toy-a/fcfs",), ("toy-b+shapes@1/easy",), ("toy-b+shapes@2/easy",), ("toy-b/easy",),
        ("toy-b/fcfs",),
    ]  # fmt: skip
    assert "Nothing to be done" in project.run()
    assert (project.folder / "results/report/index.html").is_file()
    table = (project.folder / "results/whatif/one/toy-a.csv").read_text()
    assert "mine, processors +50%" in table
    assert "mine, processors +50%" in (project.folder / "results/whatif/one/toy-a.html").read_text()
    page = (project.folder / "results/report/studies/one.html").read_text()
    assert 'href="../../whatif/one/toy-a.html"' in page
    assert project.sql(
        "SELECT study, workload, variant, verdict, abs(value - base - difference) < 1e-6 FROM whatifs "
        "WHERE measure = 'mean_wait_time'"
    ) == [
        ("one", "toy-a", "easy", "base", True),
        ("one", "toy-a", "easy, processors +50%", "cannot tell: too few weeks", True),
        ("one", "toy-a", "mine", "equal", True),
        ("one", "toy-a", "mine, processors +50%", "cannot tell: too few weeks", True),
        ("one", "toy-a", "easy, backfill none", "cannot tell: too few weeks", True),
        ("one", "toy-a", "easy, backfill none, processors +50%", "cannot tell: too few weeks", True),
    ]  # fmt: skip
    pages = {name: (project.folder / f"results/report/studies/{name}.html").read_text() for name in ("one", "two")}
    assert "easy with processors +50% and easy cannot be distinguished over so few weeks on toy-a" in pages["one"]
    assert "mine, processors +50%" in pages["one"] and "mine, processors +50%" not in pages["two"]


def test_the_order_of_keys_and_equal_numbers_change_nothing(edited):
    edited.config["schedulers"] = dict(reversed(edited.config["schedulers"].items()))
    edited.write()
    assert edited.planned() == []


def test_an_edited_scheduler_simulates_its_runs_only(edited):
    edited.config["schedulers"]["mine"]["backfill"] = "none"
    edited.write()
    assert sorted(edited.planned()) == [
        "figures of two/toy-a", "load results/swflow.duckdb", "report results/report/index.html",
        "simulate toy-a+first", "simulate toy-a+first+batch", "whatif toy-a, one",
    ]  # fmt: skip
    assert edited.simulated() == ["toy-a+first+batch/mine", "toy-a+first/mine"]
    assert edited.sql("SELECT backfill FROM schedulers WHERE scheduler = 'mine'") == [("none",)]
    edited.config["schedulers"]["mine"]["backfill"] = "easy"
    edited.write()
    assert edited.simulated() == []
    assert {run for (run,) in edited.sql("SELECT run FROM runs")} <= edited.runs().keys()


def test_an_added_and_a_removed_scheduler(edited):
    edited.config["schedulers"]["sjf"] = {"order": "sjf"}
    edited.config["studies"]["one"]["runs"][0]["schedulers"] = ["fcfs", "easy", "sjf"]
    edited.write()
    assert edited.simulated() == ["toy-a/sjf", "toy-b/sjf"]
    edited.config["studies"]["one"]["runs"][0]["schedulers"] = ["easy", "sjf"]
    edited.write()
    assert edited.simulated() == []
    assert edited.sql("SELECT DISTINCT run FROM outcomes WHERE ends_with(run, '/fcfs')") == []
    assert not [run for run in edited.runs() if run.endswith("/fcfs")]


OWN_POLICY = """from swflow.policies import Easy


class Mine(Easy):
    pass
"""


def test_an_edited_plugin_reruns_its_runs_only(edited):
    policy, order = edited.folder / "mine.py", edited.folder / "favour.py"
    policy.write_text(OWN_POLICY)
    order.write_text("def favour(estimate, processors):\n    return estimate * processors\n")
    edited.config["schedulers"]["decides"] = {"policy": "mine.py:Mine"}
    edited.config["schedulers"]["favours"] = {"order": "favour.py:favour", "backfill": "easy"}
    edited.config["studies"]["four"] = {
        "logs": ["toy-a"], "runs": [{"workloads": ["{log}", "{log}+first"], "schedulers": ["decides", "favours"]}],
    }  # fmt: skip
    edited.write()
    edited.run()
    assert edited.planned() == []

    policy.write_text(OWN_POLICY.replace("    pass", "    pass  # a comment"))
    assert edited.planned() == []
    policy.write_text(OWN_POLICY.replace("    pass", "    def on_end(self, now, job):\n        pass"))
    assert edited.simulated() == ["toy-a+first/decides", "toy-a/decides"]
    order.write_text(order.read_text().replace("* processors", "+ processors"))
    assert edited.simulated() == ["toy-a+first/favours", "toy-a/favours"]
    policy.write_text(OWN_POLICY)
    assert edited.simulated() == []


def test_figures_are_drawn_again_only_if_their_runs_change(edited):
    edited.config["schedulers"]["fcfs"]["estimates"] = "kill"
    edited.write()
    said = edited.run()  # the figure shows other workloads
    assert "simulate toy-a\n" in said and "report results/report/index.html" in said
    assert "figures of two/toy-a" not in said
    assert "Nothing to be done" in edited.run()
    edited.config["steps"]["first"]["jobs"] = 199
    edited.write()
    assert "figures of two/toy-a" in edited.run()


def test_a_figure_with_other_options_is_drawn_again_though_its_runs_are_the_same(edited):
    edited.config["schedulers"]["fcfs"]["estimates"] = "kill"
    edited.config["studies"]["one"]["figures"] = ["forest"]
    edited.config["studies"]["two"]["figures"] = ["heatmap"]
    edited.write()
    edited.run()
    assert "toy-b" in (edited.folder / "results/figures/one/forest.svg").read_text()
    edited.config["schedulers"]["fcfs"]["estimates"] = "raise"
    edited.config["studies"]["two"]["split"] = {"wide": "processors > 8"}
    edited.write()
    planned = edited.planned()
    assert {"simulate toy-a", "load results/swflow.duckdb", "figures of two/toy-a"} <= set(planned)
    assert "simulate toy-a+first" not in planned
    edited.run()
    assert "wide" in (edited.folder / "results/figures/two/toy-a-heatmap.svg").read_text()
    assert "Nothing to be done" in edited.run()


def test_an_edited_title_is_in_the_report(edited):
    name, study = next(iter(edited.config["studies"].items()))
    study["title"] = "Another title"
    edited.write()
    assert edited.planned() == ["report results/report/index.html"]
    edited.run()
    page = edited.folder / f"results/report/studies/{name}.html"
    assert "<h1>Another title</h1>" in page.read_text()


def test_an_edited_step_rebuilds_its_workloads(edited):
    edited.config["steps"]["first"]["jobs"] = 100
    edited.write()
    planned = edited.planned()
    assert {"select toy-a+first", "select toy-a+first+batch"} <= set(planned)
    assert not [job for job in planned if "toy-b" in job or job.startswith(("clean", "generate"))]
    assert "simulate toy-a" not in planned
    edited.run()
    assert edited.sql("SELECT jobs FROM metrics WHERE run = 'toy-a+first/easy'") == [(100,)]


def test_an_added_seed_draws_and_simulates_the_added_replicate_only(edited):
    edited.config["studies"]["three"]["seeds"] = 3
    edited.write()
    assert {job for job in edited.planned() if not job.startswith(("figures", "load", "report"))} == {
        "moldable replicates of toy-b+shapes", "simulate replicates of toy-b+shapes",
    }  # fmt: skip
    drawn = {path: path.stat().st_ino for path in (edited.folder / "results/workloads").glob("*@*.parquet")}
    assert edited.simulated() == ["toy-b+shapes@3/easy"]
    assert len(drawn) == 2 and all(path.stat().st_ino == number for path, number in drawn.items())
    assert edited.sql("SELECT count(*) FROM outcomes WHERE run = 'toy-b+shapes@3/easy'") == [(400,)]


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_run_is_named_and_never_loaded(edited, damage):
    folder = edited.folder / "results/runs/toy-b+shapes@1"
    content = (folder / "easy.parquet").read_bytes()
    (folder / "easy.parquet").unlink() if damage == "gone" else (folder / "easy.parquet").write_bytes(content[:-20])
    said = edited.run("--forcerun", "load", fails=True)
    assert "toy-b+shapes@1/easy.parquet: " in said and "run snakemake again" in said
    shutil.rmtree(folder)
    assert edited.simulated() == ["toy-b+shapes@1/easy"] * (damage == "cut")  # the store has a link of the file
    assert (folder / "easy.parquet").read_bytes() == content


def test_a_log_that_cannot_be_fetched_is_omitted_and_named(project):
    assert project.sql("SELECT run, log, reason LIKE '%cannot be fetched%' FROM left_out ORDER BY 1") == [
        ("gone+shapes@1/easy", "gone", True), ("gone+shapes@2/easy", "gone", True), ("gone+wider", "gone", True),
    ]  # fmt: skip
    said = project.run("--config", "strict=True", "--forcerun", "load", fails=True)
    assert "gone: cannot be fetched" in said


def test_removed_entries_leave_no_row(edited):
    del edited.config["schedulers"]["mine"]
    edited.config["studies"]["two"]["runs"][0]["schedulers"] = ["easy"]
    del edited.config["studies"]["one"]
    edited.write()
    edited.run()
    assert edited.sql("SELECT DISTINCT run FROM outcomes ORDER BY 1") == [
        ("toy-a+first+batch/easy",), ("toy-a+first/easy",), ("toy-b+shapes@1/easy",), ("toy-b+shapes@2/easy",),
    ]  # fmt: skip
    assert edited.sql("SELECT count(*) FROM schedulers WHERE scheduler IN ('mine', 'fcfs')") == [(0,)]


def test_figures_of_former_configs_are_removed_and_runs_on_request(edited):
    results = edited.folder / "results"
    assert (results / "figures/two/toy-a-bubbles.svg").is_file() and (results / "whatif/one/toy-a.html").is_file()
    edited.config["studies"]["two"]["figures"] = []
    del edited.config["studies"]["one"]["whatif"]
    edited.config["studies"]["one"]["logs"] = ["toy-a"]
    edited.config["studies"]["one"]["runs"][0]["schedulers"] = ["easy"]
    edited.write()
    said = edited.run()
    assert "removed: results/figures/two/toy-a-bubbles.svg, which no study of the config names" in said
    assert not (results / "figures/two").exists() and not (results / "whatif/one").exists()
    assert (results / "runs/toy-b/easy.parquet").is_file() and not (results / "runs/toy-a/fcfs.parquet").is_file()
    said = edited.run("prune")
    assert "removed: results/runs/toy-b/easy.parquet" in said
    assert re.search(r"removed: [1-9]\d* stored results, which no study of the config names", said)
    left = {path.relative_to(results).as_posix() for path in (results / "runs").glob("*/*.parquet")}
    assert left == {f"runs/{name}.parquet" for (name,) in edited.sql("SELECT run FROM runs")}
    assert (results / "workloads/toy-b.parquet").is_file()  # replicates are made of it
    assert "Nothing to be done" in edited.run()


def test_a_missing_workload_is_rebuilt_before_a_load(edited):
    (edited.folder / "results/workloads/toy-b.parquet").unlink()
    (edited.folder / "results/workloads/toy-b+shapes@1.parquet").unlink()
    edited.config["schedulers"]["mine"]["estimates"] = "kill"  # affects runs of another log
    edited.write()
    edited.run()
    assert edited.sql("SELECT estimates FROM schedulers WHERE scheduler = 'mine'") == [("kill",)]
    assert "Nothing to be done" in edited.run()


def test_missing_runs_are_made_again_for_an_edited_figure(edited):
    results = edited.folder / "results"
    digest = (results / "runs/toy-a+first/easy.digest").read_bytes()
    shutil.rmtree(results / "runs/toy-a+first")
    edited.config["studies"]["two"]["figures"] = [{"kind": "bubbles", "title": "Another title"}]
    edited.write()
    edited.run()
    assert (results / "runs/toy-a+first/easy.digest").read_bytes() == digest
    assert "Another title" in (results / "figures/two/toy-a-bubbles.json").read_text()
    assert "Nothing to be done" in edited.run()


def test_a_missing_database_is_rebuilt(edited):
    (edited.folder / "results/swflow.duckdb").unlink()
    edited.run()
    assert edited.sql("SELECT count(*) FROM runs") == [(10,)]


def test_deleted_pages_of_the_report_are_written_again(edited):
    report = edited.folder / "results/report"
    pages = {path.relative_to(report): path.read_bytes() for path in report.rglob("*") if path.is_file()}
    for name in ("studies", "logs", "assets"):
        shutil.rmtree(report / name)
    (report / "tables.html").unlink()
    edited.run()
    changing = {Path("changes.html")}  # says since when nothing changed
    assert {path.relative_to(report) for path in report.rglob("*") if path.is_file()} == {*pages}
    assert all((report / name).read_bytes() == text for name, text in pages.items() if name not in changing)
    assert "Nothing to be done" in edited.run()


def test_a_failed_simulation_is_made_up_for(edited):
    """The recorded parameters of a failed job must not hide that its runs are missing."""
    policy = edited.folder / "broken.py"
    policy.write_text("def favour(estimate, processors):\n    return estimate / 0 * processors\n")
    edited.config["schedulers"]["mine"] = {"policy": "broken.py:Missing"}
    edited.write()
    edited.run("--keep-going", fails=True)
    edited.config["schedulers"]["mine"] = {"backfill": "easy"}
    edited.write()
    assert edited.simulated() == []
    assert edited.sql("SELECT count(*) FROM runs") == [(10,)]
    assert "Nothing to be done" in edited.run()


def test_results_without_the_records_of_snakemake_are_refused_after_an_edit(edited):
    shutil.move(edited.folder / ".snakemake", edited.folder / "moved")
    edited.config["schedulers"]["mine"]["backfill_order"] = "ljf"
    edited.write()
    assert "snakemake --forceall" in edited.run(fails=True)
    (edited.folder / "results/settings.json").unlink()
    simulated = edited.simulated("--forceall")
    assert simulated == ["toy-a+first+batch/mine", "toy-a+first/mine"]
    assert "Nothing to be done" in edited.run()


def test_a_killed_load_is_completed_by_the_next_call(edited):
    """Kill Snakemake and its load: readers see the old database, and the next call writes the new one."""
    edited.config["schedulers"]["mine"]["estimates"] = "kill"
    edited.write()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    child = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2"], cwd=edited.folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    for line in child.stdout:
        if "load results/swflow.duckdb" in line:
            break
    deadline = time.monotonic() + 60
    database = edited.folder / "results/swflow.duckdb"
    # A temporary file that is there before the database is that of the restored one.
    while not (list(database.parent.glob(".*.swflow.duckdb")) and database.exists()) and time.monotonic() < deadline:
        time.sleep(0.001)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert edited.sql("SELECT count(DISTINCT run) FROM outcomes") == [(10,)]
    edited.run("--unlock")
    edited.run()
    assert edited.sql("SELECT estimates FROM schedulers WHERE scheduler = 'mine'") == [("kill",)]
    assert edited.sql("SELECT count(*) - count(DISTINCT (run, job_id)) FROM outcomes") == [(0,)]
    assert edited.sql("SELECT count(*) FROM outcomes ANTI JOIN jobs USING (workload, job_id)") == [(0,)]


def test_a_part_of_a_config_is_run_alone_and_the_rest_is_kept(edited):
    assert edited.simulated("--config", "only=two") == []
    assert edited.sql("SELECT DISTINCT run FROM runs ORDER BY 1") == [
        ("toy-a+first+batch/easy",), ("toy-a+first+batch/mine",), ("toy-a+first/easy",), ("toy-a+first/mine",),
    ]  # fmt: skip
    assert edited.simulated("--config", "only=[one, toy-b]") == []
    assert edited.sql("SELECT DISTINCT run FROM runs ORDER BY 1") == [("toy-b/easy",), ("toy-b/fcfs",)]
    assert edited.simulated() == []
    assert edited.sql("SELECT count(*) FROM runs") == [(10,)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "only=tow"], "config: only: 'tow': neither a study nor a log of one; expected one of one, three"),
        (["--config", "only=[two, toy-b]"], "config: only: no study of two, toy-b has one of these logs"),
        (
            ["--config", "schedulers={mine: {backfil: easy}}"],
            "config: schedulers: mine: unknown key 'backfil'; did you",
        ),
        (["--config", "logs=[toy-c]"], "config: logs: unknown log 'toy-c'; did you mean"),
        (["--config", "catalogue=[nothing.yaml]"], "nothing.yaml"),
        (["--configfile", "config/lost.yaml"], "config: catalogue: lost: path: lost.swf: no such file"),
        (["--configfile", "config/toys.yaml"], "config: "),
        (["--config", "sede=2"], "config: unknown key 'sede'; did you mean 'seed'?"),
        (
            ["--config", "catalogue=[config/evil.yaml]"],
            "config: config/evil.yaml: evil: generate: unknown model",
        ),
        (["--config", "catalogue=[config/worse.yaml]"], "config: config/worse.yaml: evil: clean: unknown key 'output'"),
        (["--config", "steps={late: {kind: select, where: not user_id}}"], "config: steps: late: where: 'not user_id'"),
        (["--config", 'schedulers={"fcfs2\\n": {}}'], "config: schedulers: "),
    ],
)
def test_a_wrong_config_is_one_line(project, arguments, words):
    lines = [
        line
        for line in project.run("-n", *arguments, fails=True).splitlines()
        if line.startswith("config:") or "Error" in line
    ]
    assert len(lines) == 1
    assert words in lines[0]


@pytest.mark.archive
def test_real_logs_from_fetch_to_report(tmp_path, traces, server):
    config = yaml.safe_load((ROOT / "config/archive.yaml").read_text())
    left_out = (  # long, or the same rules and steps as another study
        "alvio-allocations", "alvio-at-start", "alvio-others", "conventional-load", "locality", "locality-arrivals",
        "locality-window", "moldable-printed", "moldable-schedulers", "scaling-one-per-event", "scaling-per-event",
    )  # fmt: skip
    config["studies"] = {name: study for name, study in config["studies"].items() if name not in left_out}
    for study in config["studies"].values():
        if "seeds" in study:
            study["seeds"] = 2
    for sweep in config["sweeps"].values():  # every sweep, with few points and draws
        sweep |= {
            name: "0:100:50" if name == "d" else "0:10:5" for name in ("d", "excess") if ":" in str(sweep.get(name))
        }
        sweep["seeds"] = 2
    project = Project(tmp_path / "archive", config, server)
    project.run("--config", f"mirror={traces}", "logs=[KTH-SP2,NASA-iPSC]")
    area, awwt, awrt = project.sql("SELECT squashed_area, awwt, awrt FROM metrics WHERE run = 'KTH-SP2/easy'")[0]
    assert area == 2_016_591_520
    assert awwt == pytest.approx(24_677, rel=0.02)
    assert awrt == pytest.approx(75_805, rel=0.02)
    worst = project.sql("SELECT max(abs(difference)) FROM reproduction WHERE paper = 'Krakov 2012'")
    assert worst[0][0] < 0.015
    assert project.sql("SELECT count(*) FROM runs WHERE workload = 'NASA-iPSC'") == [(2,)]
    scaled = project.sql(
        "SELECT max(abs(difference) / published), count(*) FROM reproduction WHERE figure = 'awrt' "
        "AND \"table\" IN ('Table II', 'Table III') AND scheduler = 'easy' AND starts_with(workload, 'KTH-SP2+')"
    )
    assert scaled == [(pytest.approx(0, abs=0.03), 6)]
    page = (tmp_path / "archive/results/report/studies/conventions.html").read_text()
    assert "Largest effect: estimates below run times for" in page


def test_local_logs_in_the_config(tmp_path, server):
    """The config names an imported log and a text log; no other file of the project changes."""
    runs = [{"workloads": ["{log}"], "schedulers": ["easy", "log"]}]
    config = {
        "logs": {"MINE": {"path": "my.parquet", "processors": 8}, "TEXT": {"path": "my.swf"}},
        "steps": {"like": {"kind": "memory", "like": "MINE", "from_log": "requested"}},
        "sweeps": {"double": {"processors": 16, "d": [0, 100], "seeds": 1, "keep": {"d": 100}}},
        "schedulers": {"easy": {"backfill": "easy"}},
        "studies": {
            "one": {"logs": ["MINE", "TEXT"], "runs": runs},
            "two": {
                "logs": ["TEXT"],
                "runs": [{"workloads": ["{log}+like"], "schedulers": ["easy"]}],
                "sweeps": [{"workloads": ["{log}"], "sweeps": ["double"], "schedulers": ["easy"]}],
            },
        },
    }
    project = Project(tmp_path / "own", config, server)
    header = "JobID|User|State|Submit|Start|End|AllocCPUS|Timelimit|ReqMem"
    times = "2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00"
    lines = [f"{job}|{user}|COMPLETED|{times}|8|02:00:00|512Mc" for job, user in ((1, "ada"), (2, "bob"))]
    (project.folder / "sacct.txt").write_text("\n".join([header, *lines]) + "\n")
    for output in ("my.parquet", "my.swf"):
        command = [sys.executable, "-c", "from swflow.cli import main; main()", "import", "sacct", "sacct.txt"]
        subprocess.run([*command, "-o", output, "--processors", "8"], cwd=project.folder, check=True)
    printed = project.run("results/swflow.json")
    assert "use-beyond-machine" in printed  # both ran at once on all processors
    named = 'SELECT workload, "column", id, name FROM names WHERE "column" = '
    assert project.sql(named + "'user_id' AND NOT contains(workload, '+') ORDER BY ALL") == [
        ("MINE", "user_id", 1, "ada"), ("MINE", "user_id", 2, "bob"),
        ("TEXT", "user_id", 1, "ada"), ("TEXT", "user_id", 2, "bob"),
    ]  # fmt: skip
    assert project.sql("SELECT workload, jobs, severity FROM checks ORDER BY ALL") == [
        ("MINE", 2, "error"), ("MINE", None, "note"), ("TEXT", 2, "error"),
    ]  # fmt: skip
    assert "2 jobs demand memory" in project.sql("SELECT message FROM checks WHERE severity = 'note'")[0][0]
    kept = "SELECT workload, s.jobs, s.awrt = m.awrt FROM sweeps s JOIN metrics m USING (workload) WHERE replicate = 1"
    assert project.sql(kept) == [("TEXT+precise-16-d100@1", 4, True)]
    assert project.sql("SELECT count(*) FROM outcomes WHERE workload = 'TEXT+precise-16-d100@1'") == [(4,)]
    assert (project.folder / "results/models/MINE/memory-requested.json").is_file()
    assert project.sql("SELECT DISTINCT workload, fit, model, jobs FROM fits") == [
        ("MINE", "memory-requested", "memory", 2)
    ]
    assert project.sql("SELECT DISTINCT memory FROM jobs WHERE workload = 'TEXT+like'") == [(512.0,)]
    assert project.sql("SELECT DISTINCT site_job_id FROM jobs WHERE workload = 'MINE' ORDER BY ALL") == [("1",), ("2",)]
    assert "Nothing to be done" in project.run("results/swflow.json")


def test_a_policy_added_by_one_line_is_ranked(tmp_path, server):
    """A leaderboard of a synthetic log: bounds, ranks, and a further scheduler in a config of its own."""
    study = {
        "logs": ["toy"],
        "bounds": True,
        "wait_reasons": True,
        "runs": [{"workloads": ["{log}"], "schedulers": "all"}],
    }
    schedulers = {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}}
    config = {"catalogue": ["config/toys.yaml"], "schedulers": schedulers, "studies": {"leaderboard": study}}
    project = Project(tmp_path / "ranked", config, server)
    (project.folder / "config/toys.yaml").write_text("toy: {generate: lublin, processors: 32, jobs: 400}\n")
    project.run()
    ranked = "SELECT scheduler FROM leaderboard ORDER BY rank"
    assert project.sql(ranked) == [("easy",), ("fcfs",)]
    assert project.sql("SELECT count(*) FROM bounds WHERE workload = 'toy'") == [(6,)]
    assert project.sql("SELECT count(*), min(gap) >= -1e-9 FROM gaps") == [(12, True)]
    reasons = 'SELECT run, count(*), sum("order") > 0 FROM wait_reasons GROUP BY run ORDER BY run'
    assert project.sql(reasons) == [("toy/easy", 400, True), ("toy/fcfs", 400, True)]
    (project.folder / "config/mine.yaml").write_text("schedulers:\n  mine: {order: estimate, backfill: easy}\n")
    both = ("--configfile", "config/config.yaml", "config/mine.yaml")
    planned = project.run("-n", *both)
    assert "simulate toy\n" in planned and "bound toy" not in planned
    project.run(*both)
    assert set(project.sql(ranked)) == {("easy",), ("fcfs",), ("mine",)}
    page = (project.folder / "results/report/studies/leaderboard.html").read_text()
    assert "has the shortest mean wait of 3 schedulers" in page
    assert "Nothing to be done" in project.run(*both)
