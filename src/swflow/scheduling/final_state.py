"""The schedule of a problem, from the states of the machines after the last event."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from swflow.errors import SwflowError
from swflow.scheduling.problem import Problem
from swflow.scheduling.state.arrivals import Arrivals
from swflow.scheduling.state.schedule import Schedule

#: The first fields of `Items`, which the simulation may change.
_TIMES = ("submit", "run", "planned", "processors")


def raise_errors(problem: Problem) -> None:
    """Raise the errors of orders that are Python functions."""
    for machine in problem.machines:
        for order in (machine.order, machine.backfill_order):
            if order.plugin is not None:
                order.plugin.require_success()


def chosen_items(problem: Problem, arrivals: Arrivals) -> Any:
    """Return the item of each job."""
    return arrivals.chosen if problem.items.first.size else slice(None)


def copied_columns(problem: Problem, records: np.ndarray, items: Any) -> dict[str, np.ndarray]:
    """
    Return what the simulation computed of each job; the records of jobs may then be removed.

    Raises
    ------
    SwflowError
        If jobs never start.
    """
    done, policy = records[items], problem.policy
    _require_started(problem, done)
    copied = ["start"]
    copied += ["processors", "run"] if policy.shapes == "start" else []
    copied += ["submit"] if problem.dependencies is not None else []
    copied += ["promise"] if any(queue.backfill == "conservative" for queue in policy.queues) else []
    return {name: done[name].copy() for name in copied}


def schedule_of(problem: Problem, columns: dict[str, np.ndarray], items: Any, cluster: np.ndarray) -> Schedule:
    """Return the schedule with the columns; ``cluster`` is that of each job, empty if there is one."""
    jobs = problem.items
    of_jobs = jobs._replace(**{name: columns.pop(name, getattr(jobs, name)[items]) for name in _TIMES})
    found = replace(Schedule.of_start(of_jobs, columns.pop("start")), **columns)
    return replace(found, cluster=cluster) if cluster.size else found


def not_submitted(problem: Problem, submit: np.ndarray) -> np.ndarray:
    """Return which jobs are never submitted, because they depend on a job after which the user left."""
    found = np.isinf(submit)
    if problem.dependencies is not None and found.any():
        for job, previous in enumerate(problem.dependencies.previous):
            found[job] |= previous >= 0 and found[previous]
    return found


def _require_started(problem: Problem, done: np.ndarray) -> None:
    """Raise an error if jobs never start."""
    never = np.isnan(done["start"]) & ~not_submitted(problem, done["submit"])
    if problem.cancelled_after is not None:  # the others left the queue
        never &= np.isinf(problem.cancelled_after)
    never = np.flatnonzero(never)
    if not never.size:
        return
    first = f"{never.size:,} jobs never start, the first with {done['processors'][never[0]]:,} processors"
    if not any(math.isinf(until) for machine in problem.machines for _, until, _ in machine.windows):
        raise SwflowError(f"limits: {first}; raise the limits, or leave these jobs out")
    if any(queue.limits for queue in problem.policy.queues):
        raise SwflowError(f"limits, unavailable: {first}; raise the limits, end the window, or take fewer processors")
    raise SwflowError(f"unavailable: {first}; end the window or take fewer processors")
