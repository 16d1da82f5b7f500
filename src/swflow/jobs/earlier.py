"""Jobs that were submitted before the record of a log begins, as accounting has all jobs that ended in a period."""

import polars as pl

from swflow.values import DAY

#: A job is an earlier one if no job ends until longer than this after its submission, seconds. At most this share of
#: the jobs are: all jobs of a short log can be submitted before the first one ends.
_LEAST, _LARGEST_SHARE = DAY, 0.1


def earlier_jobs(jobs: pl.DataFrame) -> int:
    """
    Return how many jobs were submitted before the record begins: more than a day before the first recorded end.

    Such a job was still queued or running when the period of ``sacct -S`` began. It can be weeks older, while the jobs
    that were submitted with it have ended, and are not in the record.

    Examples
    --------
    >>> submit = [0.0, *(40 * DAY + hour * 3600.0 for hour in range(20))]
    >>> jobs = pl.DataFrame({"submit_time": submit, "wait_time": [40.5 * DAY] + [60.0] * 20, "run_time": [900.0] * 21})
    >>> earlier_jobs(jobs), earlier_jobs(jobs.tail(20))
    (1, 0)
    """
    lengths = [name for name in ("wait_time", "run_time", "cancelled_after") if name in jobs.columns]
    if "wait_time" not in lengths or jobs.is_empty():
        return 0
    submitted = pl.col("submit_time")
    ends = [submitted + pl.col("wait_time") + pl.col("run_time")]
    ends += [submitted + pl.col("cancelled_after")] if "cancelled_after" in lengths else []
    begin = jobs.select(pl.min_horizontal(*ends).min()).item()
    if begin is None:
        return 0
    earlier = int((jobs["submit_time"] < begin - _LEAST).sum())
    return earlier if earlier <= _LARGEST_SHARE * jobs.height else 0
