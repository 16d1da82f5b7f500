"""Simulation: a workload under a scheduler, to the outcome of every job."""

import time
from collections.abc import Mapping
from typing import Any

import polars as pl

from swflow.compiled.kernel import seconds_lost
from swflow.errors import SwflowError
from swflow.jobs.eligibility import with_recorded_times
from swflow.jobs.table import Workload, check_recorded, has_values, without_status
from swflow.scheduling.outcomes import cancelled, outcomes, recorded_outcomes, with_derived
from swflow.scheduling.prepare import prepare
from swflow.scheduling.problem import Problem
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.solve import solve
from swflow.scheduling.state.schedule import Schedule


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
        One row per job with the columns of `swflow.scheduling.outcomes.OUTCOME_COLUMNS`, in the order of the
        workload; ``load`` is null.

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
    `swflow.scheduling.outcomes.DERIVED_OUTCOMES`; columns of the job table are not copied. The units are those of each
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
    found = outcomes(table, scheduler, schedule)
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
