"""Complete the records of ended jobs: run times, and jobs that never started."""

import polars as pl

from swflow.log.importers.records import GPUS, OVERLAPPING, RERUN, Tally

NEVER = "never started (kept, with a run time of 0)"


def with_run_times(records: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """
    Add the run times of records with ``submit``, ``start`` and ``end``; count notes that all importers share.

    A job without a start, or with a start after its end, ended in the queue at its end if its status is not 1. Jobs
    without an end, or that ended before they started, are left out. If a job has several records with one submission,
    each but the first is a rerun, submitted when the run before it ended.
    """
    records = tally.drop_repeated(records, "site_job_id", "submit", "start", "end")
    records = tally.drop(records, "no end time", pl.col("end").is_null())
    start, end = pl.col("start"), pl.col("end")
    waited = (end >= pl.col("submit")) & (pl.col("status").fill_null(5) != 1)
    chosen = tally.note(records, NEVER, start.is_null() | ((start > end) & waited))
    records = records.with_columns(
        start=pl.when(chosen).then(end).otherwise(start),
        allocated_processors=pl.when(~chosen).then("allocated_processors"),
        status=pl.when(chosen & (pl.col("status").fill_null(5) != 1)).then(5).otherwise("status"),
    )
    records = tally.drop(records, "ended before it started", pl.col("end") < pl.col("start"))
    before = pl.col("end").shift(1).over("site_job_id", "submit", order_by="start")
    again = tally.note(records, RERUN, before <= pl.col("start"))
    tally.note(records, OVERLAPPING, before > pl.col("start"))
    records = records.with_columns(submit=pl.when(again).then(before).otherwise("submit"))
    tally.note(records, "tasks of arrays", pl.col("array").is_not_null())
    tally.note(records, GPUS, pl.col("gpus") > 0)
    suspended = pl.col("suspended_time").fill_null(0.0).clip(0, pl.col("end") - pl.col("start"))
    tally.note(records, "suspended for a while", suspended > 0)
    known = pl.when(pl.col("suspended_time").is_not_null()).then(suspended)
    return records.with_columns(run_time=pl.col("end") - pl.col("start") - suspended, suspended_time=known)


#: The columns of records that `with_run_times` needs, and their types.
NEEDED: dict[str, pl.DataType] = {
    **dict.fromkeys(("submit", "eligible", "start", "end", "suspended_time", "requested_time"), pl.Float64()),
    **dict.fromkeys(("line", "allocated_processors", "requested_processors", "gpus", "status"), pl.Int64()),
    **dict.fromkeys(("site_job_id", "array"), pl.String()),
}
