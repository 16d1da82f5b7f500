"""The step `intensify`: more or less load by a factor on arrivals or run times, the conventional way, and its flaw."""

import math

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs import Workload

#: What may be changed, and what that means.
CHANGES: dict[str, str] = {
    "arrivals": "times between submissions are divided by the factor",
    "run-times": "run times, and the times that users asked for, are multiplied by the factor",
}

#: The columns, in seconds, that grow with run times.
_LENGTHS = ("run_time", "average_cpu_time", "requested_time", "estimate")


def intensify(workload: Workload, factor: float, *, by: str = "arrivals") -> Workload:
    """
    Multiply the load that a workload offers.

    Parameters
    ----------
    workload : Workload
        What to change.
    factor : float
        By how much; below 1 there is less load.
    by : {'arrivals', 'run-times'}
        What is changed: times between submissions (and think times) are divided, or run times, CPU times and estimates
        (and those of ``shapes``) multiplied. Seconds are not rounded.

    Returns
    -------
    Workload
        Recorded wait times are unknown now: the recorded schedule was that of another workload.

    Raises
    ------
    SwflowError
        If an option has no such value.

    Notes
    -----
    This is how most evaluations vary the load, and its flaw is that it also varies something else: denser arrivals
    squeeze the day (at a factor of 2 a day has 12 hours, and a job of 10 hours ends in the night after the next),
    longer run times move jobs to other classes. A curve of performance against load made so compares workloads that
    nobody submitted; a heatmap shows the loads that the jobs of one workload did experience.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 2.

    Examples
    --------
    >>> from swflow.machine import Machine
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [100.0, 160.0], "run_time": [10.0, 20.0]})
    >>> tiny = Workload(jobs, Machine.of(4), "tiny")
    >>> intensify(tiny, 1.5).jobs["submit_time"].to_list()
    [100.0, 140.0]
    >>> intensify(tiny, 1.5, by="run-times").jobs["run_time"].to_list()
    [15.0, 30.0]
    """
    if not (factor > 0 and math.isfinite(factor)):
        raise SwflowError(f"intensify: factor must be positive, not {factor}")
    if by not in CHANGES:
        raise SwflowError(f"intensify: by: unknown value {by!r}{suggest(by, CHANGES)}")
    jobs = workload.jobs
    if by == "arrivals":
        first = pl.col("submit_time").min()
        changed = {"submit_time": first + (pl.col("submit_time") - first) / factor}
        changed |= {"think_time": pl.col("think_time") / factor} if "think_time" in jobs.columns else {}
    else:
        changed = {name: pl.col(name) * factor for name in _LENGTHS if name in jobs.columns}
        if "shapes" in jobs.columns:
            longer = pl.struct(
                processors=pl.element().struct.field("processors"),
                run_time=pl.element().struct.field("run_time") * factor,
            )
            changed["shapes"] = pl.col("shapes").list.eval(longer)
    if "wait_time" in jobs.columns:
        changed["wait_time"] = pl.lit(None, jobs.schema["wait_time"])
    table = jobs.with_columns(**changed).with_columns(
        **{name: pl.col(name).cast(jobs.schema[name]) for name in changed if jobs.schema[name].is_float()}
    )
    entry = {"stage": "intensify", "factor": factor, "by": by, "read": jobs.height, "kept": jobs.height, "removed": {}}
    return workload.with_jobs(table, entry)
