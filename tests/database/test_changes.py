"""What a load changed: values, runs and verdicts by study, on the terminal and on a page; nothing at first."""

import json

import pytest

from helpers.cli import call
from helpers.runs import write_workloads
from swflow.database.changes import MEASURES, Snapshot, changes, in_lines
from swflow.studies.runs import simulate_all

SCHEDULERS = {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}}


def plan_of(folder, *schedulers):
    """Write a plan of a load with a study that compares schedulers with the first one."""
    files = {str(folder / "runs/A"): {"logs": ["A"]}}
    pairs = [[f"A/{name}", f"A/{schedulers[0]}"] for name in schedulers[1:]]
    (folder / "plan.json").write_text(json.dumps({"files": files, "compared": {}, "asked": {"order": pairs}}))
    return folder / "plan.json"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    (path,) = write_workloads(tmp_path, 1)

    def run(schedulers):
        simulate_all(path, schedulers, tmp_path / "runs/A")
        options = ["--plan", plan_of(tmp_path, *schedulers), "--database", tmp_path / "d.duckdb"]
        assert call("load", *options, "--changes", tmp_path / "changes.json") == 0
        page = ["--database", tmp_path / "d.duckdb", "-o", tmp_path / "site", "--no-draw"]
        assert call("report", *page, "--changes", tmp_path / "changes.json") == 0
        found = json.loads((tmp_path / "changes.json").read_text())
        return found, (tmp_path / "site/changes.html").read_text()

    return run


def test_an_edit_is_named_by_study_and_the_first_load_says_nothing(project, tmp_path):
    found, page = project(SCHEDULERS)
    assert found == {} and "There was no earlier database" in page
    found, page = project(SCHEDULERS)
    assert found["studies"] == {} and found["lines"] == ["changed: no value of a run and no verdict"]
    assert "changed no value of a run" in page
    found, page = project(SCHEDULERS | {"easy": {"backfill": "easy", "order": "lcfs"}, "mine": {"order": "sjf"}})
    study = found["studies"]["order"]
    assert {run for run, *_ in study["values"]} == {"A/easy"} and study["added"] == ["A/mine"]
    assert {measure for _, measure, *_ in study["values"]} >= {"mean_wait_time", "awrt"}
    (line,) = found["lines"]
    assert line.startswith("changed: order: 1 of 3 runs, most A/easy ") and line.endswith("; 1 new run")
    assert "<h2>order</h2>" in page and "New and removed runs" in page and "Mean wait time" in page


def test_verdicts_and_removed_runs_are_named():
    key = ("order", "A/b", "A/a", "wait_time")
    old = Snapshot(
        {"A/a": [1.0] * 5, "A/b": [2.0] * 5, "A/c": [3.0] * 5}, {"order": ["A/a", "A/b", "A/c"]}, {key: "equal"}
    )
    new = Snapshot({"A/a": [1.0] * 5, "A/b": [None, *[2.0] * 4]}, {"order": ["A/a", "A/b"]}, {key: "base is better"})
    found = changes(old, new)["studies"]["order"]
    assert found["removed"] == ["A/c"] and found["values"] == [["A/b", MEASURES[0], 2.0, None]]
    assert found["verdicts"] == [["A/b", "A/a", "wait_time", "equal", "base is better"]]
    assert in_lines(changes(old, new)) == [
        "changed: order: 1 of 2 runs, most A/b mean wait time 2 -> unknown; 1 removed run; 1 verdict, such as A/b "
        "against A/a (wait time): equal -> base is better"
    ]  # fmt: skip
    grown = {"values": [["A/a", "awrt", 100.0, 101.0], ["A/b", "awrt", 0.0, 5000.0]], "runs": 2}
    (line,) = in_lines({"studies": {"order": grown | {"added": [], "removed": [], "verdicts": []}}})
    assert "most A/b awrt 0 -> 5,000" in line
    assert changes(old, old) == {"studies": {}, "lines": in_lines({"studies": {}})}
    assert changes(None, new) == changes(old, None) == {}


def test_a_database_of_another_version_is_not_compared(project, tmp_path):
    import duckdb

    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.execute("CREATE TABLE metrics (run VARCHAR)")
    found, _ = project(SCHEDULERS)
    assert found == {}
