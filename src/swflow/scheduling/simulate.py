"""Simulating: a workload under a scheduler, to the outcome of every job."""

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs import Workload
from swflow.scheduling.scheduler import LOG, Scheduler

#: The columns of an outcomes table, in order. Times are seconds; `load` is filled by the analysis.
OUTCOME_COLUMNS: dict[str, pl.DataType] = {
    "job_id": pl.Int64(),
    "submit_time": pl.Float64(),
    "start_time": pl.Float64(),
    "end_time": pl.Float64(),
    "processors": pl.Int64(),
    "run_time": pl.Float64(),
    "penalty_time": pl.Float64(),
    "killed": pl.Boolean(),
    "wait_time": pl.Float64(),
    "response_time": pl.Float64(),
    "slowdown": pl.Float64(),
    "bounded_slowdown": pl.Float64(),
    "load": pl.Float64(),
}

#: Run times below this count as this in the bounded slowdown, seconds.
SLOWDOWN_BOUND = 10.0


def simulate(workload: Workload, scheduler: Scheduler) -> pl.DataFrame:
    """
    Replay a workload under a scheduler.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    scheduler : Scheduler
        How the queue is served. ``Scheduler(order="log")`` replays the recorded starts; jobs without a
        recorded wait time then have no outcome.

    Returns
    -------
    polars.DataFrame
        One row a job with the columns of `OUTCOME_COLUMNS`, in the order of the workload; ``load`` is null.

    Raises
    ------
    SwflowError
        If a job is wider than the machine, or its processors or run time are unknown.

    Examples
    --------
    >>> from swflow.machine import Machine
    >>> jobs = pl.DataFrame({
    ...     "job_id": [1, 2, 3], "submit_time": [0.0, 1.0, 2.0], "run_time": [10.0, 10.0, 3.0],
    ...     "processors": [3, 4, 1], "estimate": [10.0, 10.0, 5.0],
    ... })
    >>> tiny = Workload(jobs, Machine.of(4), "tiny")
    >>> simulate(tiny, Scheduler(backfill="none"))["start_time"].to_list()
    [0.0, 10.0, 20.0]
    >>> simulate(tiny, Scheduler(backfill="easy"))["start_time"].to_list()
    [0.0, 10.0, 2.0]
    """
    jobs = workload.jobs
    if scheduler.without_status:
        jobs = jobs.filter(~pl.col("status").is_in(list(scheduler.without_status)).fill_null(False))
    _require_known(workload.name, jobs)
    if scheduler.order == LOG:
        return _recorded(jobs)
    _require_fit(workload, jobs)

    run = jobs["run_time"].to_numpy()
    planned = jobs["estimate"].to_numpy()
    killed = np.zeros(len(run), bool)
    if scheduler.estimates == "kill":
        killed = run > planned
        run = np.minimum(run, planned)
    planned = np.maximum(run, planned)
    start = _start_times(jobs, run, planned, workload.machine.processors, scheduler)
    return outcomes(jobs, pl.Series(start), pl.Series(run), pl.Series(killed))


def outcomes(jobs: pl.DataFrame, start: pl.Series, run: pl.Series, killed: pl.Series) -> pl.DataFrame:
    """
    Make the outcomes table from start times, simulated run times and who was killed.

    Wait, response (wait + run), slowdown (response / run, null for a run time of 0) and bounded slowdown
    (``max(1, response / max(run, 10 s))``) follow from these.
    """
    table = jobs.select("job_id", "submit_time", "processors").with_columns(
        start_time=start,
        run_time=run,
        killed=killed,
        penalty_time=pl.lit(0.0),
        load=pl.lit(None, pl.Float64()),
    )
    wait = pl.col("start_time") - pl.col("submit_time")
    response = wait + pl.col("run_time")
    table = table.with_columns(
        end_time=pl.col("start_time") + pl.col("run_time"),
        wait_time=wait,
        response_time=response,
        slowdown=pl.when(pl.col("run_time") > 0).then(response / pl.col("run_time")),
        bounded_slowdown=(response / pl.col("run_time").clip(lower_bound=SLOWDOWN_BOUND)).clip(lower_bound=1.0),
    )
    return table.select(pl.col(name).cast(dtype) for name, dtype in OUTCOME_COLUMNS.items())


def _start_times(
    jobs: pl.DataFrame, run: np.ndarray, planned: np.ndarray, machine: int, scheduler: Scheduler
) -> np.ndarray:
    """Run the kernel that fits the scheduler."""
    from swflow.scheduling import kernels  # numba takes half a second to import

    submit = jobs["submit_time"].to_numpy()
    processors = jobs["processors"].to_numpy()
    if scheduler.backfill == "easy":
        return kernels.easy(submit, run, planned, processors, machine)
    return kernels.fcfs(submit, run, processors, machine)


def _recorded(jobs: pl.DataFrame) -> pl.DataFrame:
    jobs = jobs.filter(pl.col("wait_time").is_not_null())
    none = pl.repeat(False, jobs.height, eager=True)
    return outcomes(jobs, jobs["submit_time"] + jobs["wait_time"], jobs["run_time"], none)


def _require_known(name: str, jobs: pl.DataFrame) -> None:
    for column in ("processors", "run_time", "submit_time"):
        unknown = jobs[column].null_count()
        if unknown:
            raise SwflowError(
                f"{name}: {unknown:,} jobs have no {column.replace('_', ' ')}; "
                "drop them when cleaning (rules no-processors and unknown-run-time)"
            )


def _require_fit(workload: Workload, jobs: pl.DataFrame) -> None:
    machine = workload.machine.processors
    wide = jobs.filter(pl.col("processors") > machine)
    if wide.height:
        raise SwflowError(
            f"{workload.name}: job {wide['job_id'][0]} needs {wide['processors'][0]:,} of {machine:,} processors, "
            f"and {wide.height - 1:,} more jobs are too wide; give a larger machine (--processors) "
            "or drop them when cleaning (rule wider-than-machine)"
        )
