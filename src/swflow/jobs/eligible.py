"""When recorded jobs became eligible to start, and how long they waited from then on."""

import polars as pl


def eligible_after(jobs: pl.DataFrame) -> pl.Series:
    """
    Return how long after its submission each recorded job became eligible to start, seconds.

    The column ``eligible_after`` states it: the time of ``sbatch --begin``, the end of a hold, or the end of the last
    job on which the job depends. For jobs without this value, predecessors in ``depends_on`` that are in the table
    count by their recorded ends, plus the job's ``think_time``. All other jobs are eligible when they are submitted.
    The result is between 0 and the wait time, where the latter is known.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2, 3], "submit_time": [0.0, 10.0, 20.0], "wait_time": [0.0, 95.0, 50.0],
    ...                      "run_time": [100.0, 9.0, 9.0], "depends_on": [None, [1], None],
    ...                      "eligible_after": [None, None, 30.0]})
    >>> eligible_after(jobs).to_list()
    [0.0, 90.0, 30.0]
    """
    delay = pl.Series("eligible_after", [None] * jobs.height, dtype=pl.Float64)
    if "depends_on" in jobs.columns and "wait_time" in jobs.columns:
        delay = _after_predecessors(jobs)
    if "eligible_after" in jobs.columns:
        delay = jobs["eligible_after"].cast(pl.Float64).fill_null(delay)
    delay = delay.fill_null(0.0)
    if "wait_time" in jobs.columns:
        delay = pl.select(pl.min_horizontal(delay, jobs["wait_time"])).to_series()
    return delay.clip(lower_bound=0.0).alias("eligible_after")


def with_recorded_times(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return recorded jobs with their start times, and with the times at which they became eligible as submit times."""
    jobs = jobs.with_columns(start_time=jobs["submit_time"] + jobs["wait_time"])
    if {"eligible_after", "depends_on"}.isdisjoint(jobs.columns):
        return jobs
    return jobs.with_columns(submit_time=jobs["submit_time"] + eligible_after(jobs))


def waits(jobs: pl.DataFrame) -> pl.Series:
    """
    Return the recorded wait of each job from the time at which it was eligible to its start, seconds.

    Examples
    --------
    >>> waits(pl.DataFrame({"wait_time": [86500.0, 7.0], "eligible_after": [86400.0, None]})).to_list()
    [100.0, 7.0]
    """
    return (jobs["wait_time"] - eligible_after(jobs)).alias("wait_time")


def _after_predecessors(jobs: pl.DataFrame) -> pl.Series:
    """Return how long after its submission the last predecessor of each job ended, with the think time; else null."""
    think = pl.col("think_time").fill_null(0.0) if "think_time" in jobs.columns else pl.lit(0.0)
    edges = (
        jobs.select("submit_time", "depends_on", think=think, row=pl.int_range(pl.len()))
        .filter(pl.col("depends_on").list.len() > 0)
        .explode("depends_on")
    )
    ends = jobs.select("job_id", end=pl.col("submit_time") + pl.col("wait_time") + pl.col("run_time"))
    last = (
        edges.join(ends, left_on="depends_on", right_on="job_id", how="inner")
        .group_by("row")
        .agg(delay=(pl.col("end") + pl.col("think") - pl.col("submit_time")).max())
    )
    rows = jobs.select(row=pl.int_range(pl.len()))
    return rows.join(last, on="row", how="left", maintain_order="left")["delay"]
