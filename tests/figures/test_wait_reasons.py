"""The figure of the reasons of waits."""

from pathlib import Path

import pytest

from helpers.cli import call
from helpers.figures import errors_of
from helpers.runs import write_workloads
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import draw
from swflow.files.query import query
from swflow.studies.runs import simulate_all


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Load a workload under two schedulers, only one of which has reasons."""
    folder = tmp_path_factory.mktemp("reasons")
    path = next(iter(write_workloads(folder, 1)))
    simulate_all(path, {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}}, folder / "runs/A")
    assert call("why", path, "--run", folder / "runs/A/fcfs.parquet", "-o", folder / "why.parquet") == 0
    load([folder / "runs/A", folder / "why.parquet"], folder / "d.duckdb")
    return folder / "d.duckdb"


def test_stacked_parts_are_the_mean_waits(database: Path) -> None:
    spec = draw("reasons", database, runs=["A/fcfs"])
    assert not errors_of(spec)
    _, ((mean,),) = query(database, "SELECT mean_wait_time FROM metrics WHERE run = 'A/fcfs'")
    for panel in spec["vconcat"][0]["hconcat"]:
        rows = spec["datasets"][panel["data"]["name"]]
        jobs = {row["c"]: row["n"] for row in rows}
        assert sum(row["s"] * row["n"] for row in rows) / sum(jobs.values()) == pytest.approx(mean, rel=1e-3)
    assert {row["p"] for row in rows} == {"no room: busy", "order"}


def test_runs_without_reasons_are_named(database: Path) -> None:
    assert "Runs without reasons are not drawn: easy." in draw("reasons", database, log="A")["usermeta"]["caption"]
    with pytest.raises(SwflowError, match="no reasons of the waits in these runs; expected wait_reasons: true"):
        draw("reasons", database, runs=["A/easy"])
