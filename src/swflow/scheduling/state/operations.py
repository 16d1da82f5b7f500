"""
Operations of a machine: stubs and defaults of the functions that a machine model implements.

Each model has a table from these functions to its own, such as `swflow.scheduling.machine.counted.COUNTED`. The
compiler substitutes them. A state is a `swflow.scheduling.state.layout.State`.
"""

import math
from typing import Any


def room(state: Any, coming: int) -> bool:
    """Return whether the arrays have room for the next event with ``coming`` arrivals."""
    return True


def move_on(state: Any, now: float) -> None:
    """Advance the machine's clock to ``now``."""


# -- running jobs


def occupy(state: Any, item: int, now: float) -> None:
    """Allocate the processors of a job that starts now; the plan has a job already that is ``reserved`` for now."""
    raise NotImplementedError


def release(state: Any, item: int, now: float) -> None:
    """Release a job's processors."""
    raise NotImplementedError


def settle(state: Any, now: float, come: bool) -> None:
    """Update the ends of jobs whose neighbors started (``come``) or ended now."""


def end_of(state: Any, item: int) -> float:
    """Return the end of a running or completed job, if nothing changes."""
    return state.jobs[item].start + state.jobs[item].run


def longest(state: Any, item: int) -> float:
    """Return the maximum planned run time of a job that exceeded its prediction."""
    return state.predicted[item].estimate


def extend(state: Any, item: int, now: float) -> None:
    """Extend the plan of a running job, which should have ended by now, to its new planned end."""
    raise NotImplementedError


# -- accounts: usage and limits of the owners of jobs


def pass_time(state: Any, now: float) -> None:
    """Compute the usage that is computed at certain times only, until now."""


def note_submission(state: Any, item: int) -> None:
    """Note that a job enters the queue."""


def note_start(state: Any, item: int, now: float) -> None:
    """Count a job that starts in its accounts."""


def note_end(state: Any, item: int, now: float) -> None:
    """Count a job that ends in its accounts."""


def note_withdrawal(state: Any, item: int) -> None:
    """Note that a job leaves the queue without a start."""


def is_limited(state: Any, item: int) -> bool:
    """Return whether a job is skipped now, because one of its owners is at a limit."""
    return False


def usage_of(state: Any, item: int, now: float) -> tuple[float, float, float, float]:
    """Return the variables user_usage, group_usage, fair_tree and association_usage of a job."""
    return 0.0, 0.0, 0.0, math.inf


def time_of_keys(state: Any, now: float) -> float:
    """Return the time for which the keys of formulas are computed."""
    return now


# -- arrivals that depend on other jobs, and cancellations


def release_dependents(dependents: Any, jobs: Any, item: int, now: float) -> None:
    """Insert the dependents of a job that ends now into the order of arrival."""


def take_turn(dependents: Any, state: Any, item: int) -> None:
    """Set the rank of a job that arrives, if ranks are in order of arrival."""


def note_arrival(cancellations: Any, item: int, submit: float) -> None:
    """Note when a job that arrives is to be cancelled, if at all."""


def next_cancellation(cancellations: Any, jobs: Any) -> float:
    """Return the time at which the next queued job is cancelled; infinity if there is none."""
    return math.inf


def withdraw(state: Any, item: int) -> None:
    """Remove a job from the queue, and its reservation from the plan."""


# -- passes without kept reservations


def free_now(state: Any) -> int:
    """Return the number of free processors: no job that is wider can start."""
    raise NotImplementedError


def open_pass(state: Any, now: float, free: int) -> None:
    """
    Start a pass over the whole queue, without reservations.

    ``state.steps[0].free`` becomes ``free``, which `started` and `protect` then maintain: no job that is wider can
    start. ``state.agenda.steps`` becomes the number of such bounds, at least 1.
    """
    raise NotImplementedError


def is_kept(state: Any, now: float) -> bool:
    """Return whether the only reservation is still the one that a whole pass would make."""
    return True


def can_start(state: Any, item: int, width: int, end: float) -> bool:
    """
    Return whether a job can start now on these processors and end then; `occupy` uses the last that can.

    Jobs that should have ended still occupy their processors, although the plan has them end now.
    """
    raise NotImplementedError


def started(state: Any, item: int, now: float) -> None:
    """Subtract a job that just started from the processors left for others in this pass."""
    raise NotImplementedError


def protect(state: Any, item: int) -> None:
    """Limit the jobs that start in this pass to those that do not delay the reservation of a job."""
    raise NotImplementedError


# -- the plan: reservations of a pass, those that are kept, and those of the whole queue


def find(state: Any, item: int, width: int, length: float, now: float) -> float:
    """Return the earliest planned start of a job in a shape; `reserve` uses the result of the last call."""
    raise NotImplementedError


def reserve(state: Any, item: int) -> None:
    """Enter the reservation that was found for a job into the plan, from ``reserved`` on."""
    raise NotImplementedError


def cancel(state: Any, item: int) -> None:
    """Remove a job's reservation from the plan."""
    raise NotImplementedError


def can_begin(state: Any, item: int) -> bool:
    """Return whether the processors of a job's reservation are free now."""
    raise NotImplementedError


def open_round(state: Any) -> None:
    """Start to move reservations forward."""


def move_forward(state: Any, item: int, now: float) -> None:
    """Move a job's reservation to an earlier start, or to better processors, if possible."""
    raise NotImplementedError


def close_round(state: Any) -> None:
    """Finish moving reservations forward: apply the last move."""


def serve_otherwise(state: Any, now: float) -> None:
    """Make a pass of a backfill that only this machine model has."""


# -- plans of the whole queue


def open_plan(state: Any, now: float) -> int:
    """Start a plan of all queued jobs; return the rank up to which jobs are in it already, -1 if none is."""
    return -1


def plan_apart(state: Any, item: int, time: float) -> bool:
    """Enter a job into a plan of the whole queue that is kept apart; return whether there is one."""
    return False
