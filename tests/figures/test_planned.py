"""Plans of figures: figures that are drawn, figures that are up to date, and errors."""

import json

import pytest

from helpers.runs import SCHEDULERS, write_workloads
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures.planned import ENDINGS, draw_plan, read_plan
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import simulate_all
from swflow.studies.sweeps import points, sweep, write_sweep
from swflow.workload.clean import open_workload


def shows(kind, log, *runs):
    """Return the options of a figure."""
    return {"kind": kind, "log": log, "title": log, "runs": list(runs), "split": []}


PLAN = {
    "one/A-bubbles": shows("bubbles", "A", "A/easy"),
    "one/A-difference": shows("difference", "A", "A/easy", "A/fcfs"),
    "two/B-waits": shows("waits", "B", "B/easy", "B/fcfs"),
    "two/B+wider": {"kind": "sweep", "log": "B", "sweep": "wider"},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a function that loads two workloads and a sweep, with other options of two schedulers."""
    folder = tmp_path_factory.mktemp("plan")
    workloads = write_workloads(folder, 2)

    def build(seed=1, **schedulers):
        for path in workloads:
            simulate_all(path, SCHEDULERS | schedulers, folder / "runs" / path.stem)
        source, easy = open_workload(workloads[1]), {"easy": Scheduler(backfill="easy")}
        table = sweep(source, points(source, 64, d=(0, 50)), easy, replicates=2, seed=seed)
        write_sweep(table, folder / "B+wider.parquet", "B", easy)
        load([folder / "runs/A", folder / "runs/B", folder / "B+wider.parquet"], folder / "d.duckdb")
        return folder

    return build


def drawn(folder, plan=PLAN):
    """Draw the figures of a plan, and return the names of those that were drawn."""
    return [name for name, is_drawn in draw_plan(plan, folder / "d.duckdb", folder / "figures") if is_drawn]


@pytest.mark.slow
def test_only_figures_with_other_data_are_drawn_again(project):
    folder = project()
    assert drawn(folder) == list(PLAN)
    files = [folder / f"figures/{name}.{ending}" for name in PLAN for ending in ENDINGS]
    assert all(file.stat().st_size > 100 for file in files)
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
    assert drawn(folder) == []
    assert all(file.read_bytes() == before[file][0] and file.stat().st_mtime_ns > before[file][1] for file in files)
    project(fcfs={"backfill": "none", "estimates": "kill"})
    assert drawn(folder) == ["one/A-difference", "two/B-waits"]
    project(seed=2, fcfs={"backfill": "none", "estimates": "kill"})
    assert drawn(folder) == ["two/B+wider"]


def test_figures_with_other_options_and_missing_or_damaged_files_are_drawn_again(project):
    folder = project()
    drawn(folder)
    (folder / "figures/one/A-bubbles.svg").unlink()
    (folder / "figures/two/B-waits.json").write_text("{}")
    assert drawn(folder) == ["one/A-bubbles", "two/B-waits"]
    other = {**PLAN["one/A-bubbles"], "title": "Another title"}
    assert drawn(folder, {**PLAN, "one/A-bubbles": other}) == ["one/A-bubbles"]
    assert "Another title" in (folder / "figures/one/A-bubbles.svg").read_text()


def test_a_plan_is_read_for_one_log_or_all(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    assert read_plan(tmp_path / "plan.json") == PLAN
    assert list(read_plan(tmp_path / "plan.json", "B")) == ["two/B-waits", "two/B+wider"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', '{"a": {"kind": "waits"}}', '{"a": {"log": "A"}}'])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(SwflowError, match=r"plan\.json: not a plan of figures; expected JSON"):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(SwflowError, match=r"gone\.json: No such file"):
        read_plan(tmp_path / "gone.json")
