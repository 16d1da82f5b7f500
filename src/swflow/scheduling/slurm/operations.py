"""
Operations of Slurm's schedulers: stubs and defaults of what processors, nodes and preemption implement.

A table such as `swflow.scheduling.slurm.on_nodes.ON_NODES` has an implementation of each, besides the operations of
`swflow.scheduling.state.operations`.
"""

import math
from typing import Any


def start_jobs(state: Any, now: float) -> None:
    """Make a pass of the main scheduler: start jobs in the order of the queue."""
    raise NotImplementedError


def plan_cycle(state: Any, now: float) -> None:
    """Make a cycle of the backfill scheduler: plan the queue anew, and start the jobs that can start now."""
    raise NotImplementedError


# -- the order of the queue: jobs of the highest level first


def open_levels(state: Any) -> None:
    """Start to search the queue at the highest level."""


def is_at_level(state: Any, item: int) -> bool:
    """Return whether a job is of the level that is searched."""
    return True


def next_level(state: Any) -> bool:
    """Go on to the level below; return whether there is one."""
    return False


# -- nodes


def is_closed(machine: Any, item: int) -> bool:
    """Return whether a pass has closed the partition of a job, which then does not start."""
    return False


def would_start(state: Any, item: int, clock: float, until: float) -> tuple[float, int]:
    """
    Return when a job fits on the usable nodes as planned, and the processors it can use then.

    The time is infinite if they are too few until a time.
    """
    return math.inf, 0


def start_or_reserve(state: Any, item: int, now: float, clock: float, start: float) -> int:
    """Start a job if it can start now, or reserve usable nodes for it; return what became of it."""
    return 0


def find_occupied(machine: Any, until: float) -> None:
    """Find the nodes that have no free processors until a time."""


# -- preemption


def may_preempt(state: Any) -> bool:
    """Return whether the job that the search of the queue found last, or finds next, may preempt others."""
    return False


def leave_out(state: Any, now: float) -> None:
    """Remove the nodes that preempted jobs have not left yet from the usable ones."""


def make_room(state: Any, item: int, now: float) -> None:
    """Preempt jobs for a job that does not fit; all open nodes of its partition are usable then."""


def preempts_no_more(machine: Any, item: int, other: int) -> bool:
    """Return whether a job may preempt no jobs but those that another one may preempt."""
    return True


def lend(state: Any, kind: int, clock: float) -> None:
    """Add what the jobs that a kind of jobs may preempt occupy to what is free."""


def take_back(state: Any) -> None:
    """Subtract what `lend` added."""


def is_gone(machine: Any, job: int) -> bool:
    """Return whether a running job is left out of plans."""
    return False


def next_change(state: Any) -> float:
    """Return the next time at which a preempted job leaves its nodes or is eligible again; infinity if none does."""
    return math.inf


def leave(state: Any, now: float) -> int:
    """Return the next preempted job that leaves its nodes by now, -1 if none does; requeued ones have no start."""
    return -1


def come_back(state: Any, now: float) -> None:
    """Add the requeued jobs that are eligible by now to the queue."""
