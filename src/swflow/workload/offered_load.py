"""The offered load of a workload."""

import polars as pl

from swflow.jobs.table import Workload


def offered_load(workload: Workload) -> float | None:
    """
    Return processors times run time of all jobs over those of the machine between the first and last submission.

    It is None if all jobs are submitted at once, or if no size or run time is known.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> jobs = pl.DataFrame({"submit_time": [0.0, 100.0], "run_time": [90.0, 30.0], "processors": [2, 4]})
    >>> offered_load(Workload(jobs, Machine.of(4), "tiny"))
    0.75
    """
    submitted = pl.col("submit_time").cast(pl.Float64)
    area, span = workload.jobs.select(
        (pl.col("processors") * pl.col("run_time")).sum().cast(pl.Float64).alias("area"),
        (submitted.max() - submitted.min()).alias("span"),
    ).row(0)
    return float(area) / (workload.machine.processors * float(span)) if span and area else None
