"""Simulation: a workload under a scheduler, to the outcome of every job."""

import time
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import polars as pl

from swflow.compiled.kernel import seconds_lost
from swflow.errors import SwflowError
from swflow.jobs.eligibility import with_recorded_times
from swflow.jobs.table import Workload, check_recorded, has_values, without_status
from swflow.scheduling.prepare import prepare
from swflow.scheduling.problem import Problem
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.slurm.schedule import PreemptiveSchedule
from swflow.scheduling.solve import solve
from swflow.scheduling.state.schedule import Schedule

Table = TypeVar("Table", pl.DataFrame, pl.LazyFrame)

#: The columns of an outcomes table, in order. Times are seconds; ``load`` is filled by the analysis, ``places`` (the
#: processors, as ranges such as 0-3,8), ``centre`` (the cluster, from 1), ``preemptions`` and
#: ``lost_time`` (of the runs that these ended, if the job was requeued) by schedulers that record them.
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
    "backlog_load": pl.Float64(),
    "places": pl.String(),
    "centre": pl.Int64(),
    "preemptions": pl.Int64(),
    "lost_time": pl.Float64(),
}

#: The columns that follow from others; see `with_derived`.
DERIVED_OUTCOMES = ("end_time", "wait_time", "response_time", "slowdown", "bounded_slowdown")

#: Columns of outcomes by name; None is null.
Columns = dict[str, pl.Series | pl.Expr | None]

#: The lower bound of run times in the bounded slowdown, seconds.
SLOWDOWN_BOUND = 10.0


def simulate(workload: Workload, scheduler: Scheduler) -> pl.DataFrame:
    """
    Replay a workload under a scheduler.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    scheduler : Scheduler
        The options. ``Scheduler(order="log")`` replays the recorded start times; jobs without a recorded wait time
        then have no outcome.

    Returns
    -------
    polars.DataFrame
        One row per job with the columns of `OUTCOME_COLUMNS`, in the order of the workload; ``load`` is null.

    Raises
    ------
    SwflowError
        If the workload is not what `swflow.jobs.table.check_workload` demands, or does not fit into the memory.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
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
    return with_derived(simulate_counted(workload, scheduler)[0])


def simulate_counted(
    workload: Workload, scheduler: Scheduler
) -> tuple[pl.DataFrame, dict[str, int], Mapping[str, int]]:
    """
    Return outcomes without derived columns, the numbers of jobs without them, and the machine's units of resources.

    A hundred million jobs take 13 GB in all columns and half as much without
    `DERIVED_OUTCOMES`; columns of the job table are not copied. The units are those of each
    resource besides processors, of all clusters together.
    """
    if scheduler.order == LOG:
        jobs = without_status(workload.jobs, scheduler.without_status, workload.name)
        jobs = check_recorded(jobs, workload.name)
        jobs = with_recorded_times(jobs)
        return recorded_outcomes(jobs), {}, workload.machine.resources
    problem = prepare(workload, scheduler)
    try:
        schedule = schedule_of(problem)
    except MemoryError:
        raise SwflowError(
            f"{workload.name}: its schedule does not fit into the memory; give fewer jobs, a smaller machine, or "
            "allocation count"
        ) from None
    table, units = problem.table, problem.units
    del problem  # and its arrays
    found = outcomes_of(table, scheduler, schedule)
    if has_values(table, "eligible_after"):  # the schedule has the jobs by eligibility, the workload by submission
        found = workload.jobs.select("job_id").join(found, on="job_id", how="inner", maintain_order="left")
    counts = cancelled(table, schedule)
    if scheduler.feedback == "leaving":
        counts["not_submitted"] = table.height - found.height - counts.get("cancelled", 0)
    return found, counts, units


def clock() -> float:
    """Return a time in seconds that does not advance while this thread loads or compiles kernels."""
    return time.perf_counter() - seconds_lost()


def schedule_of(problem: Problem) -> Schedule:
    """Return the schedule of a problem, by the engine or by a policy plugin, which is created anew for each run."""
    if problem.policy.policy is None:
        return solve(problem)
    from swflow.scheduling.plugins.protocol import plain_jobs, simulate_policy
    from swflow.scheduling.plugins.source import error_inside, load_own

    scheduler, run, (machine,) = problem.policy, problem.jobs.run, problem.machines
    name, options = str(scheduler.policy), dict[str, Any](scheduler.policy_options or {})
    kind = load_own(name, "policy")
    try:
        policy = kind(**options)
    except Exception as error:  # whatever the user's code raises
        raise SwflowError(f"policy: {name}: {error_inside(error)}") from error
    jobs = plain_jobs(problem.table, problem.jobs.planned)
    return Schedule.of_start(problem.items, simulate_policy(jobs, run.tolist(), machine.processors, policy, name))


# -- the table of outcomes


def outcomes_of(table: pl.DataFrame, scheduler: Scheduler, schedule: Schedule) -> pl.DataFrame:
    """
    Return the outcomes of a schedule without `DERIVED_OUTCOMES`, which `with_derived` adds.

    ``table`` has the jobs that took part. Jobs that were cancelled in the queue (``cancelled_after``), or whose user
    had left, did not run: they have no outcome. The submit time is the time at which a job became eligible.
    """
    columns: Columns = {"start_time": pl.Series(schedule.start), "run_time": table["run_time"]}
    if scheduler.estimates == "kill":
        columns["run_time"] = table.select(pl.min_horizontal("run_time", "estimate")).to_series()
        columns["killed"] = table["run_time"] > table["estimate"]
    if scheduler.shapes != "requested":
        table = table.with_columns(processors=schedule.processors)
        columns["run_time"] = pl.Series(schedule.run)
    if scheduler.runtime == "shared":
        columns["run_time"], columns["killed"] = pl.Series(schedule.run), pl.Series(schedule.killed)
        columns["penalty_time"] = pl.Series(schedule.penalty)
    if isinstance(schedule, PreemptiveSchedule):
        ended, run = pl.Series(schedule.killed), pl.Series(schedule.run)
        columns["run_time"] = pl.when(ended).then(run).otherwise(columns["run_time"])
        columns["killed"] = ended | columns.get("killed", pl.lit(False))
        columns["preemptions"], columns["lost_time"] = pl.Series(schedule.preemptions), pl.Series(schedule.lost)
    if scheduler.feedback != "none" or has_values(table, "depends_on"):
        table = table.with_columns(submit_time=schedule.submit)
    if scheduler.places:
        columns["places"] = _ranges_as_text(schedule)
    if scheduler.clusters:
        columns["centre"] = pl.Series(schedule.cluster, dtype=pl.Int64()) + 1
    found = _narrow(table, columns)
    if has_values(table, "cancelled_after"):
        found = found.filter(table["cancelled_after"].is_null())
    return found.filter(pl.col("start_time").is_not_nan()) if scheduler.feedback == "leaving" else found


def cancelled(table: pl.DataFrame, schedule: Schedule) -> dict[str, int]:
    """
    Count the jobs that were cancelled in the queue, which have no outcome; return nothing if no job is cancelled.

    ``started_before_cancel`` counts those of them that the scheduler would have started before.
    """
    if not has_values(table, "cancelled_after"):
        return {}
    jobs = table["cancelled_after"].is_not_null().to_numpy()
    return {
        "cancelled": int(jobs.sum()),
        "started_before_cancel": int((jobs & ~np.isnan(schedule.start)).sum()),
    }


def recorded_outcomes(jobs: pl.DataFrame) -> pl.DataFrame:
    """
    Return the outcomes of the recorded schedule, of jobs that `swflow.jobs.eligibility.with_recorded_times` returned.

    As in a simulation, the submit time is the time at which a job became eligible.
    """
    return _narrow(jobs, {"start_time": jobs["start_time"], "run_time": jobs["run_time"]})


def _narrow(jobs: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Return the columns of outcomes that do not follow from others; missing ones are 0, false or null."""
    missing: Columns = {"penalty_time": pl.lit(0.0), "killed": pl.lit(False)}
    missing |= dict.fromkeys(("load", "backlog_load", "places", "centre", "preemptions", "lost_time"))
    table = jobs.select("job_id", "submit_time", "processors").with_columns(**(missing | columns))
    return table.select(
        pl.col(name).cast(dtype) for name, dtype in OUTCOME_COLUMNS.items() if name not in DERIVED_OUTCOMES
    )


def with_derived(table: Table) -> Table:
    """
    Add to outcomes the columns that follow from others.

    Wait, response (wait + run), slowdown (response / run, null for a run time of 0) and bounded slowdown
    (``max(1, response / max(run, 10 s))``) follow from submit, start and run time.
    """
    wait = pl.col("start_time") - pl.col("submit_time")
    response = wait + pl.col("run_time")
    derived = {
        "end_time": pl.col("start_time") + pl.col("run_time"),
        "wait_time": wait,
        "response_time": response,
        "slowdown": pl.when(pl.col("run_time") > 0).then(response / pl.col("run_time")),
        "bounded_slowdown": (response / pl.col("run_time").clip(lower_bound=SLOWDOWN_BOUND)).clip(lower_bound=1.0),
    }
    return table.select(derived[name].alias(name) if name in derived else pl.col(name) for name in OUTCOME_COLUMNS)


def _ranges_as_text(schedule: Schedule) -> pl.Series:
    """Write the processors of each job as ranges, such as ``0-3,8``."""
    first, last = schedule.ranges[:, 0], schedule.ranges[:, 1]
    job = np.repeat(np.arange(schedule.start.size), np.diff(schedule.offsets))
    ranges = pl.DataFrame({"job": job, "first": first, "last": last}).with_columns(
        text=pl.when(pl.col("first") == pl.col("last"))
        .then(pl.col("first").cast(pl.String()))
        .otherwise(pl.format("{}-{}", "first", "last"))
    )
    return ranges.group_by("job", maintain_order=True).agg(pl.col("text").str.join(","))["text"]
