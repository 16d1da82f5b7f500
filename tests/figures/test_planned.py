"""Plans of figures: which figures are drawn, and errors."""

import json

import pytest

from helpers.runs import SCHEDULERS, write_workloads
from swflow.cli import main
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import read_plan
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import simulate_all
from swflow.studies.sweeps import points, sweep, write_sweep
from swflow.workload.clean import open_workload


def shows(kind, log, *runs):
    """Return the options of a figure."""
    return {"kind": kind, "log": log, "title": log, "runs": list(runs), "split": []}


PLAN = {
    "one/A": {"one/A-bubbles": shows("bubbles", "A", "A/easy")},
    "A": {"one/A-difference": shows("difference", "A", "A/easy", "A/fcfs")},
    "two/B": {
        "two/B-waits": shows("waits", "B", "B/easy", "B/fcfs"),
        "two/B+wider": {"kind": "sweep", "log": "B", "sweep": "wider"},
    },
}


def test_the_figures_of_a_plan_are_drawn(tmp_path):
    for path in write_workloads(tmp_path, 2):
        simulate_all(path, SCHEDULERS, tmp_path / "runs" / path.stem)
    source, easy = open_workload(path), {"easy": Scheduler(backfill="easy")}
    table = sweep(source, points(source, 64, d=(0, 50)), easy, replicates=2, seed=1)
    write_sweep(table, tmp_path / "B+wider.parquet", "B", easy)
    load([tmp_path / "runs", tmp_path / "B+wider.parquet"], tmp_path / "d.duckdb")
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    words = ["figures", str(tmp_path / "plan.json"), "--database", str(tmp_path / "d.duckdb"), "-o", str(tmp_path)]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--group", "two/B"])
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/B*.*") if path.parent.name == "two"}
    assert files == {f"two/{name}.{end}" for name in ("B-waits", "B+wider") for end in ("png", "svg", "json")}
    assert not (tmp_path / "one").exists()


def test_a_plan_is_read_for_one_group_or_all(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    assert list(read_plan(tmp_path / "plan.json")) == [
        "one/A-bubbles",
        "one/A-difference",
        "two/B-waits",
        "two/B+wider",
    ]
    assert read_plan(tmp_path / "plan.json", "two/B") == PLAN["two/B"]
    with pytest.raises(SwflowError, match=r"no group 'two/C'; did you mean 'two/B'"):
        read_plan(tmp_path / "plan.json", "two/C")


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"a": 1}', '{"a": {"b": {"kind": "waits"}}}', '{"a": {"b": {"log": "A"}}}']
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(SwflowError, match=r"plan\.json: not a plan of figures; expected JSON"):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(SwflowError, match=r"gone\.json: no such file"):
        read_plan(tmp_path / "gone.json")
