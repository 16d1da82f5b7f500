"""Jobs that were submitted before the record of a log begins, as accounting has all jobs that ended in a period."""

import polars as pl

from swflow.values import DAY

#: A log has earlier jobs if it has one that was submitted longer than this before any job ended, seconds.
_LEAST = DAY

#: The largest share of earlier jobs, because all jobs of a short log can be submitted before the first one ends.
_LARGEST_SHARE = 0.1


def earlier_jobs(jobs: pl.DataFrame) -> int:
    """
    Return how many jobs were submitted before the record begins, which is when the first recorded job ends.

    There are none unless one was submitted more than a day before that time. Such a job was still queued or running
    when the period of ``sacct -S`` began. It can be weeks older than all others, because the jobs that were submitted
    with it have ended and are not in the record.

    Examples
    --------
    >>> submit = [0.0, *(40 * DAY + hour * 3600.0 for hour in range(20))]
    >>> jobs = pl.DataFrame({"submit_time": submit, "wait_time": [40.5 * DAY] + [60.0] * 20, "run_time": [900.0] * 21})
    >>> earlier_jobs(jobs), earlier_jobs(jobs.tail(20))
    (2, 0)
    """
    begin = _begin(jobs)
    if begin is None:
        return 0
    counts = [int((jobs["submit_time"] < time).sum()) for time in (begin - _LEAST, begin)]
    few = [count for count in counts if count <= _LARGEST_SHARE * jobs.height]
    return few[-1] if counts[0] else 0


def since_begin(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs that were submitted since the record begins, by submit time and id."""
    return jobs.sort("submit_time", "job_id").slice(earlier_jobs(jobs))


def as_recorded_until_begin(jobs: pl.DataFrame) -> pl.DataFrame:
    """
    Return the jobs with earlier ones that start as recorded until the record begins.

    The jobs that ended before are not in the record. Without them, the earlier jobs would start as soon as they are
    submitted. Therefore an earlier job becomes eligible (``eligible_after``) at its recorded start if that is before
    the record begins, and otherwise when the record begins.

    Examples
    --------
    >>> submit = [0.0, *(40 * DAY + hour * 3600.0 for hour in range(20))]
    >>> jobs = pl.DataFrame({"submit_time": submit, "wait_time": [40.5 * DAY] + [60.0] * 20, "run_time": [900.0] * 21})
    >>> as_recorded_until_begin(jobs)["eligible_after"].head(3).to_list()  # 40 days and 960 s, and a minute
    [3456960.0, 60.0, None]
    """
    earlier, begin = earlier_jobs(jobs), _begin(jobs)
    if not earlier:
        return jobs
    submitted = pl.col("submit_time")
    is_earlier = submitted.rank("ordinal") <= earlier
    started = submitted + pl.col("wait_time").fill_null(float("inf"))
    held = pl.min_horizontal(started, pl.lit(begin)) - submitted
    kept = pl.col("eligible_after") if "eligible_after" in jobs.columns else pl.lit(None, dtype=pl.Float64)
    changed = {"eligible_after": pl.when(is_earlier).then(pl.max_horizontal(held, kept)).otherwise(kept)}
    if "depends_on" in jobs.columns:
        ran = is_earlier & (started < begin)
        changed["depends_on"] = pl.when(~ran).then(pl.col("depends_on"))
    return jobs.with_columns(**changed)


def _begin(jobs: pl.DataFrame) -> float | None:
    """Return the first recorded end of a job in the queue or on the machine, seconds; None if none is recorded."""
    lengths = [name for name in ("wait_time", "run_time", "cancelled_after") if name in jobs.columns]
    if "wait_time" not in lengths or jobs.is_empty():
        return None
    submitted = pl.col("submit_time")
    ends = [submitted + pl.col("wait_time") + pl.col("run_time")]
    ends += [submitted + pl.col("cancelled_after")] if "cancelled_after" in lengths else []
    return jobs.select(pl.min_horizontal(*ends).min()).item()
