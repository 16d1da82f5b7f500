"""Test jobs that ended within a second: they waited, and cleaning keeps them on request."""

import polars as pl

from helpers.cli import call
from swflow.jobs.machine import Machine
from swflow.jobs.table import SWF_FIELDS
from swflow.workload.clean import clean


def fields(**columns: list) -> pl.DataFrame:
    """Return lines of a log; unknown values are -1."""
    count = len(next(iter(columns.values())))
    return pl.DataFrame({name: [-1] * count for name in SWF_FIELDS} | columns).cast(SWF_FIELDS)


#: A job of a second, one that was cancelled while it was queued, one that never had processors, and an ordinary job.
LOG = {
    "job_id": [1, 2, 3, 4], "submit_time": [0, 1, 2, 3], "wait_time": [500, 60, 70, 5], "run_time": [0, 0, 0, 60],
    "allocated_processors": [4, 4, -1, 4], "requested_processors": [4] * 4, "status": [1, 5, 0, 1],
}  # fmt: skip


def test_jobs_that_ended_within_a_second_are_kept_on_request():
    assert clean(fields(**LOG), Machine.of(8), name="tiny").jobs["job_id"].to_list() == [4]
    kept = clean(fields(**LOG), Machine.of(8), name="tiny", keep_instant=True).jobs
    assert kept.select("job_id", "run_time", "estimate", "wait_time").rows() == [(1, 1, 1, 500), (4, 60, 60, 5)]


def test_the_command_and_the_check_name_them(tmp_path, capfd):
    rows = fields(**LOG).cast(pl.Int64).rows()
    log = tmp_path / "tiny.swf"
    log.write_text("; MaxProcs: 8\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows))
    assert call("check", str(log)) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "1 of them ran but ended within a second: their waits, 500 s in the mean, are lost" in out
    assert call("clean", str(log), "-o", str(tmp_path / "a.parquet"), "--keep-instant") == 0
    assert pl.read_parquet(tmp_path / "a.parquet")["job_id"].to_list() == [1, 4]
