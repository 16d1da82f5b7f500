"""The step `intensify`: change the load by a factor on arrivals or run times. The Notes describe its flaw."""

import math

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.table import Workload

#: What can be changed; see `intensify`.
CHANGES = ("arrivals", "run-times")

#: Columns, in seconds, that scale with run times.
_LENGTHS = ("run_time", "average_cpu_time", "requested_time", "estimate")


def intensify(workload: Workload, factor: float, *, by: str = "arrivals") -> Workload:
    """
    Multiply the offered load of a workload by a factor.

    Parameters
    ----------
    factor : float
        Values below 1 reduce the load.
    by : {'arrivals', 'run-times'}
        Quantity to change. ``arrivals`` divides times between submissions, think times, and times until jobs are
        eligible. ``run-times`` multiplies run times, CPU times, estimates, and those of ``shapes``. Seconds are not
        rounded.

    Returns
    -------
    Workload
        The changed workload. Recorded wait times are null because the recorded schedule belongs to another workload.

    Raises
    ------
    SwflowError
        If an option has an invalid value.

    Notes
    -----
    Most evaluations vary the load in this way. Its flaw is that it also changes other properties. Denser arrivals
    compress the day: at a factor of 2, a day has 12 hours, and a job of 10 hours ends in the night after the next.
    Longer run times move jobs to other classes. A curve of performance against load therefore compares workloads that
    no user submitted. A heatmap shows the loads that the jobs of one recorded workload experienced.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 2.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [100.0, 160.0], "run_time": [10.0, 20.0]})
    >>> tiny = Workload(jobs, Machine.of(4), "tiny")
    >>> intensify(tiny, 1.5).jobs["submit_time"].to_list()
    [100.0, 140.0]
    >>> intensify(tiny, 1.5, by="run-times").jobs["run_time"].to_list()
    [15.0, 30.0]
    """
    if not (factor > 0 and math.isfinite(factor)):
        raise SwflowError(f"intensify: factor: {factor}; expected a number above 0")
    if by not in CHANGES:
        raise SwflowError(f"intensify: by: unknown value {by!r}{suggest(by, CHANGES)}")
    jobs = workload.jobs
    table = jobs.with_columns(**changes(jobs, factor, by))
    if "wait_time" in jobs.columns:
        table = table.with_columns(wait_time=pl.lit(None, jobs.schema["wait_time"]))
    entry = {"stage": "intensify", "factor": factor, "by": by, "read": jobs.height, "kept": jobs.height, "removed": {}}
    return workload.with_jobs(table, entry)


def changes(jobs: pl.DataFrame, factor: float, by: str) -> dict[str, pl.Expr]:
    """Return the columns of a job table that `intensify` multiplies or divides, by name."""
    if by == "arrivals":
        first = pl.col("submit_time").min()
        changed = {"submit_time": first + (pl.col("submit_time") - first) / factor}
        changed |= {name: pl.col(name) / factor for name in ("think_time", "eligible_after") if name in jobs.columns}
    else:
        changed = {name: pl.col(name) * factor for name in _LENGTHS if name in jobs.columns}
    changed = {
        name: value.cast(jobs.schema[name]) if jobs.schema[name].is_float() else value
        for name, value in changed.items()
    }
    if by == "run-times" and "shapes" in jobs.columns:
        longer = pl.struct(
            processors=pl.element().struct.field("processors"),
            run_time=pl.element().struct.field("run_time") * factor,
        )
        changed["shapes"] = pl.col("shapes").list.eval(longer)
    return changed
