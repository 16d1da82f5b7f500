"""The step `intensify`: change the load by a factor on arrivals, run times or the shares of sizes."""

import math

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.table import Workload, require_known
from swflow.workload.offered_load import offered_load

#: What can be changed; see `intensify`.
CHANGES = ("arrivals", "run-times", "sizes")

#: Columns, in seconds, that scale with run times.
_LENGTHS = ("run_time", "average_cpu_time", "requested_time", "estimate")

#: Columns that a job keeps whose size and run time are those of another job.
_KEPT = ("job_id", "submit_time", "preceding_job_id", "think_time", "depends_on", "eligible_after", "cancelled_after")


def intensify(
    workload: Workload, factor: float | None = None, *, by: str = "arrivals", load: float | None = None
) -> Workload:
    """
    Multiply the offered load of a workload by a factor, or change it to a target.

    Parameters
    ----------
    factor : float
        Values below 1 reduce the load.
    by : {'arrivals', 'run-times', 'sizes'}
        Quantity to change. ``arrivals`` divides times between submissions, think times, and times until jobs are
        eligible. ``run-times`` multiplies run times, CPU times, estimates, and those of ``shapes``. Seconds are not
        rounded. ``sizes`` raises the share of jobs that are larger than the median size: evenly spaced jobs up to the
        median are replaced by copies of larger ones, in their order, until the area of all jobs has grown by the
        factor. Below 1, larger jobs are replaced by others.
    load : float
        The offered load to reach, instead of a factor; see `swflow.workload.offered_load`.

    Returns
    -------
    Workload
        The changed workload. Recorded wait times are null because the recorded schedule belongs to another workload.

    Raises
    ------
    SwflowError
        If an option has an invalid value, or replacing all jobs of one side of the median size does not suffice.

    Notes
    -----
    Most evaluations vary the load in this way. Its flaw is that it also changes other properties. Denser arrivals
    compress the day: at a factor of 2, a day has 12 hours, and a job of 10 hours ends in the night after the next.
    Longer run times move jobs to other classes. A curve of performance against load therefore compares workloads that
    no user submitted. Changed shares of sizes keep the arrivals and leave each job as some user submitted it. A heatmap
    shows the loads that the jobs of one recorded workload experienced.

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
    >>> jobs = jobs.with_columns(processors=pl.Series([1, 3]))
    >>> intensify(Workload(jobs, Machine.of(4), "tiny"), 12 / 7, by="sizes").jobs["processors"].to_list()
    [3, 3]
    >>> intensify(Workload(jobs, Machine.of(4), "tiny"), load=0.5).jobs["submit_time"].to_list()
    [100.0, 135.0]
    """
    if (factor is None) == (load is None):
        raise SwflowError("intensify: expected either a factor or a load")
    if load is not None:
        factor = _factor_for(workload, load)
    assert factor is not None
    if not (factor > 0 and math.isfinite(factor)):
        raise SwflowError(f"intensify: factor: {factor}; expected a number above 0")
    if by not in CHANGES:
        raise SwflowError(f"intensify: by: unknown value {by!r}{suggest(by, CHANGES)}")
    jobs = workload.jobs
    if by == "sizes":
        require_known(jobs, ("processors", "run_time"), f"intensify: {workload.name}", "; drop such jobs with clean")
        table, replaced = _with_other_sizes(jobs, factor)
    else:
        table, replaced = jobs.with_columns(**changes(jobs, factor, by)), 0
    if "wait_time" in jobs.columns:
        table = table.with_columns(wait_time=pl.lit(None, jobs.schema["wait_time"]))
    entry = {"stage": "intensify", "factor": factor, "by": by, "read": jobs.height, "kept": jobs.height, "removed": {}}
    entry |= {"load": load} if load is not None else {}
    return workload.with_jobs(table, entry | ({"replaced": replaced} if by == "sizes" else {}))


def _factor_for(workload: Workload, load: float) -> float:
    """Return the factor by which the offered load of a workload becomes ``load``."""
    if not (load > 0 and math.isfinite(load)):
        raise SwflowError(f"intensify: load: {load}; expected a number above 0")
    name = workload.name
    require_known(workload.jobs, ("processors", "run_time"), f"intensify: {name}", "; drop such jobs with clean")
    offered = offered_load(workload)
    if offered is None:
        raise SwflowError(f"intensify: load: all jobs of {name} are submitted at once; expected several times")
    return load / offered


def _with_other_sizes(jobs: pl.DataFrame, factor: float) -> tuple[pl.DataFrame, int]:
    """Replace evenly spaced jobs by evenly spaced ones from the other side of the median size; return their number."""
    size = jobs["processors"].to_numpy()
    area = size * jobs["run_time"].to_numpy()
    larger = size > np.median(size)
    givers, takers = (np.flatnonzero(larger == side) for side in (factor > 1, factor <= 1))
    change = area[givers].mean() - area[takers].mean() if len(givers) and len(takers) else 0.0
    wanted = (factor - 1) * area.sum() / change if change else math.inf
    count = round(wanted) if 0 <= wanted <= len(takers) else None
    if factor == 1:
        return jobs, 0
    if count is None:
        raise SwflowError(
            f"intensify: factor: {factor:g} cannot be reached by sizes: there are {larger.sum():,} jobs above the "
            f"median size and {(~larger).sum():,} others; expected a number nearer to 1, or by: run-times"
        )
    middles = (np.arange(count) + 0.5) / max(count, 1)
    rows = np.arange(jobs.height)
    rows[takers[(middles * len(takers)).astype(int)]] = givers[(middles * len(givers)).astype(int)]
    kept = [name for name in _KEPT if name in jobs.columns]
    return jobs[pl.Series(rows)].with_columns(jobs.select(kept)), count


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
