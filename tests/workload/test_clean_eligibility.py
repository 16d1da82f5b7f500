"""Cleaning: jobs that were cancelled in the queue, and dependencies."""

import polars as pl

from helpers.cli import call
from swflow.files.tables import read_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import SWF_FIELDS
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import LOST_DEPENDENCIES, clean
from swflow.workload.steps.select import select
from swflow.workload.steps.set_machine import with_machine


def fields(*rows: dict[str, float]) -> pl.DataFrame:
    """Return lines of a log; unknown fields are -1, jobs are numbered from 1."""
    lines = [dict.fromkeys(SWF_FIELDS, -1) | {"job_id": number, **row} for number, row in enumerate(rows, 1)]
    return pl.DataFrame(lines, schema=SWF_FIELDS)


RAN = {"submit_time": 0, "wait_time": 5, "run_time": 60, "requested_processors": 4, "status": 1}
LEFT = {"submit_time": 1, "wait_time": 30, "run_time": 0, "requested_processors": 2, "status": 5}


def test_jobs_cancelled_in_the_queue_are_kept_with_the_time_at_which_they_leave():
    log = fields(
        RAN, LEFT, LEFT | {"run_time": -1}, LEFT | {"run_time": 7}, LEFT | {"status": 0}, LEFT | {"wait_time": -1}
    )
    kept = clean(log, Machine.of(8), name="tiny", keep_cancelled=True)
    assert kept.jobs.select("job_id", "run_time", "estimate", "cancelled_after").rows() == [
        (1, 60, 60, None), (2, 0, 0, 30), (3, 0, 0, 30), (4, 7, 7, None),
    ]  # fmt: skip
    assert kept.history[0]["removed"] == {"zero-run-time": 2}
    plain = clean(log, Machine.of(8), name="tiny")
    assert plain.jobs["job_id"].to_list() == [1, 4]
    assert "cancelled_after" not in plain.jobs.columns


def test_preceding_jobs_become_dependencies():
    log = fields(
        RAN, RAN | {"preceding_job_id": 1, "think_time": 7}, RAN | {"preceding_job_id": 9},
        LEFT, RAN | {"preceding_job_id": 4},
    )  # fmt: skip
    kept = clean(log, Machine.of(8), name="tiny", dependencies=True)
    assert kept.jobs.select("job_id", "depends_on").rows() == [(1, None), (2, [1]), (3, None), (5, None)]
    assert kept.history[0]["notes"] == {LOST_DEPENDENCIES: 2}
    done = simulate(kept, Scheduler(backfill="easy"))
    assert dict(zip(done["job_id"], done["submit_time"], strict=True)) == {1: 0, 2: 67, 3: 0, 5: 0}
    assert "depends_on" not in clean(log, Machine.of(8), name="tiny").jobs.columns


def test_steps_that_remove_jobs_leave_out_the_dependencies_on_them():
    log = fields(RAN, RAN | {"requested_processors": 8}, RAN | {"preceding_job_id": 2}, RAN | {"preceding_job_id": 1})
    whole = clean(log, Machine.of(8), name="tiny", dependencies=True)
    for part in (select(whole, where="processors < 8"), with_machine(whole, processors=4)):
        assert part.jobs["job_id"].to_list() == [1, 3, 4]
        assert part.jobs["depends_on"].to_list() == [None, None, [1]]
        assert part.history[-1]["notes"] == {LOST_DEPENDENCIES: 1}
        assert simulate(part, Scheduler()).height == 3
    assert "notes" not in select(whole, jobs=3).history[-1]


def test_the_command_keeps_both(tmp_path):
    log = fields(RAN, LEFT | {"preceding_job_id": 1})
    text = "\n".join(" ".join(str(int(value)) for value in row) for row in log.iter_rows())
    (tmp_path / "tiny.swf").write_text("; MaxProcs: 8\n" + text + "\n")
    output = tmp_path / "tiny.parquet"
    assert call("clean", str(tmp_path / "tiny.swf"), "-o", str(output), "--keep-cancelled", "--dependencies") == 0
    jobs = read_workload(output, columns=()).jobs
    assert jobs["cancelled_after"].to_list() == [None, 30]
    assert jobs["depends_on"].to_list() == [None, [1]]
