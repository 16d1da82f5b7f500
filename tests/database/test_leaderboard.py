"""Bounds in the database, the gaps of runs, and the ranking of schedulers."""

import numpy as np
import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.analysis.bounds import BOUNDED, bounds
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.report import write_report
from swflow.studies.runs import simulate_all

WEEK = 604800
JOBS = 3400

#: ``again`` equals ``easy``; the last four do not run the jobs as the workload has them, or not all of them.
SCHEDULERS = {
    "fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}, "again": {"backfill": "easy"},
    "sjf": {"order": "sjf", "backfill": "easy"}, "two": {"backfill": "easy", "reservations": 2},
    "kills": {"backfill": "easy", "estimates": "kill"}, "waits": {"backfill": "easy", "feedback": "sessions"},
    "fewer": {"backfill": "easy", "without_status": [0]}, "log": {"order": "log"},
}  # fmt: skip
RIGID = {"fcfs", "easy", "again", "sjf", "two"}


def jobs_of(seed=2):
    """Return jobs of 24 weeks, some with estimates below their run times, recorded as if the machine were larger."""
    draw = np.random.default_rng(seed)
    run_time = np.round(draw.exponential(9000, JOBS) + 60)
    return pl.DataFrame(
        {
            "job_id": np.arange(1, JOBS + 1),
            "submit_time": np.sort(np.round(draw.uniform(0, 24 * WEEK, JOBS))),
            "wait_time": np.zeros(JOBS),
            "run_time": run_time,
            "processors": draw.integers(1, 9, JOBS) * np.where(draw.random(JOBS) < 0.1, 2, 1),
            "estimate": np.round(run_time * draw.uniform(0.8, 4, JOBS)),
            "status": draw.integers(0, 2, JOBS),
            "user_id": draw.integers(1, 9, JOBS),
        }
    )


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)])
def folder(request, tmp_path_factory):
    """Build a database with a workload, its bounds, and runs, only some of which are comparable; one needs a kernel."""
    folder = tmp_path_factory.mktemp("leaderboard")
    schedulers = SCHEDULERS if request.param else {name: one for name, one in SCHEDULERS.items() if name != "waits"}
    write_workload(Workload(jobs_of(), Machine.of(16), "A"), folder / "A.parquet")
    simulate_all(folder / "A.parquet", schedulers, folder / "runs/A")
    call("bound", folder / "A.parquet", "-o", folder / "bounds.parquet")
    load([folder / "runs/A", folder / "bounds.parquet"], folder / "d.duckdb")
    return folder


def rows(folder, text):
    return query(folder / "d.duckdb", text)[1]


def test_bounds_are_loaded(folder):
    expected = [("A", one.measure, one.value, one.theorem) for one in bounds(jobs_of(), 16)]
    assert rows(folder, "SELECT workload, measure, value, theorem FROM bounds ORDER BY rowid") == expected


def test_no_gap_is_below_zero_and_only_unchanged_jobs_have_one(folder):
    assert rows(folder, "SELECT killed > 0 FROM metrics WHERE scheduler = 'kills'") == [(True,)]
    found = rows(folder, "SELECT split_part(run, '/', 2), measure, value, bound, gap FROM gaps")
    assert {name for name, *_ in found} == RIGID
    assert {(name, measure) for name, measure, *_ in found} == {(name, one) for name in RIGID for one in BOUNDED}
    for _, measure, value, bound, gap in found:
        assert gap >= -1e-9
        assert gap == pytest.approx(1 - value / bound if measure == "utilization" else value / bound - 1)


@pytest.mark.slow
def test_bounds_do_not_hold_for_jobs_that_are_submitted_when_others_end(tmp_path):
    depends_on = [[job - 1] if job % 3 == 0 else None for job in range(1, JOBS + 1)]
    jobs = {"A": jobs_of(), "B": jobs_of().with_columns(depends_on=pl.Series(depends_on, dtype=pl.List(pl.Int64)))}
    for name, table in jobs.items():
        path = tmp_path / f"{name}.parquet"
        write_workload(Workload(table, Machine.of(16), name), path)
        simulate_all(path, {"easy": {"backfill": "easy"}}, tmp_path / "runs" / name)
        call("bound", path, "-o", tmp_path / f"{name}-bounds.parquet")
    load([tmp_path / "runs", *tmp_path.glob("*-bounds.parquet")], tmp_path / "d.duckdb")
    found = query(tmp_path / "d.duckdb", "SELECT DISTINCT run FROM gaps UNION SELECT workload FROM leaderboard")[1]
    assert sorted(found) == [("A",), ("A/easy",)]


def test_no_record_with_starts_before_submissions_has_a_gap(tmp_path):
    for name, wait in (("A", 0.0), ("B", -60.0)):
        path, waits = tmp_path / f"{name}.parquet", pl.Series([0.0] * (JOBS - 1) + [wait])
        write_workload(Workload(jobs_of().with_columns(wait_time=waits), Machine.of(100_000), name), path)
        simulate_all(path, {"easy": {"backfill": "easy"}, "log": {"order": "log"}}, tmp_path / "runs" / name)
        call("bound", path, "-o", tmp_path / f"{name}-bounds.parquet")
    load([tmp_path / "runs", *tmp_path.glob("*-bounds.parquet")], tmp_path / "d.duckdb")
    found = query(tmp_path / "d.duckdb", "SELECT DISTINCT run FROM gaps ORDER BY run")[1]
    assert found == [("A/easy",), ("A/log",), ("B/easy",)]


def test_the_leaderboard_ranks_by_the_mean_wait(folder):
    found = rows(
        folder,
        "SELECT scheduler, rank, mean_wait_time, difference, verdict, against_best, awrt_gap, jain_wait_time, "
        "microseconds_per_job FROM leaderboard",
    )
    waits = {scheduler: wait for scheduler, _, wait, *_ in found}
    assert waits.keys() == RIGID
    assert [wait for _, _, wait, *_ in found] == sorted(waits.values())
    assert found[0][0] == "sjf" and found[-1][0] == "fcfs"
    for scheduler, rank, wait, difference, *_, gap, jain, cost in found:
        assert rank == 1 + sum(other < wait for other in waits.values())
        assert difference is None if scheduler == "easy" else difference == pytest.approx(wait - waits["easy"])
        assert gap > 0 and 0 < jain < 1 and cost > 0
    verdicts = {scheduler: (verdict, against_best) for scheduler, _, _, _, verdict, against_best, *_ in found}
    assert verdicts["fcfs"] == ("worse", "worse")
    assert verdicts["sjf"] == ("better", "best")
    assert verdicts["easy"] == ("reference", "worse")
    assert verdicts["again"] == ("equal", "worse")
    assert verdicts["two"][0] == "not distinguishable"


def test_a_verdict_has_the_sign_of_the_difference_whichever_run_is_first(folder):
    """In table comparisons, easy is the first of some pairs and the second of others."""
    names = "scheduler, difference, low, high, verdict"
    found = rows(folder, f"SELECT {names} FROM leaderboard WHERE verdict <> 'reference'")
    assert {name for name, *_ in found if name < "easy"} and {name for name, *_ in found if name > "easy"}
    for _, difference, low, high, verdict in found:
        if verdict in ("better", "worse"):
            assert (verdict == "better") == (difference < 0)
            assert low <= difference <= high


def test_the_report_names_the_best(folder):
    study = {"title": "Ranked", "logs": ["A"], "bounds": True, "runs": [{"workloads": ["{log}"], "schedulers": "all"}]}
    schedulers = {name: options for name, options in SCHEDULERS.items() if name != "log"}
    config = {"seed": 1, "logs": None, "schedulers": schedulers, "studies": {"board": study}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    write_report(folder / "d.duckdb", folder / "site", studies=folder / "config.yaml")
    page = (folder / "site/studies/board.html").read_text()
    assert "On A, sjf has the shortest mean wait of 5 schedulers, " in page
    assert ", and is distinguishable from the other 4." in page
    assert "not distinguishable" in page and "Lower bounds" in page
    assert "microseconds_per_job" not in page  # differs from call to call
    headline = (folder / "site/headlines.csv").read_text()
    assert "A/sjf,A/easy," in headline and "base is better" not in headline


def test_bounds_of_another_version_of_the_workload_are_refused(folder, tmp_path):
    write_workload(Workload(jobs_of(3), Machine.of(16), "A"), tmp_path / "A.parquet")
    call("bound", tmp_path / "A.parquet", "-o", tmp_path / "bounds.parquet")
    with pytest.raises(SwflowError, match="bounds of another version of 'A'"):
        load([folder / "runs/A", tmp_path / "bounds.parquet"], tmp_path / "d.duckdb")
    with pytest.raises(SwflowError, match="given twice"):
        load([folder / "runs/A", folder / "bounds.parquet", tmp_path / "bounds.parquet"], tmp_path / "d.duckdb")
