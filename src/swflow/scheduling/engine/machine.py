"""What the engine asks of a machine: every kind answers by functions of its own, which stand for these in its code."""

from typing import Any

#: Where a place is looked for: in the pass that is made, beside the reservations that stand, or after the whole queue.
PASS, STANDING, AHEAD = range(3)

# The state is one of `swflow.scheduling.engine.state`; its `free` is what the kind of machine knows and plans.


def room(state: Any, coming: int) -> bool:
    """Return whether the arrays have room for the next event, at which so many jobs arrive."""
    raise NotImplementedError


def move_on(state: Any, now: float) -> None:
    """Let the time be ``now``."""
    raise NotImplementedError


# -- running jobs


def occupy(state: Any, item: int, now: float) -> None:
    """Give a job, which starts now, its processors."""
    raise NotImplementedError


def release(state: Any, item: int, now: float) -> None:
    """Take them back."""
    raise NotImplementedError


def settle(state: Any, now: float, come: bool) -> None:
    """Let those who came, or went, change the ends of others."""
    raise NotImplementedError


def end_of(state: Any, item: int) -> float:
    """Return when a running job will end, if nothing changes, or has ended."""
    raise NotImplementedError


def longest(state: Any, item: int) -> float:
    """Return how long a job may be planned to run when it outran what was predicted."""
    raise NotImplementedError


def extend(state: Any, item: int, now: float) -> None:
    """Let a running job, which should have ended by now, keep its processors until its new planned end."""
    raise NotImplementedError


# -- passes without reservations that stay


def free_now(state: Any) -> int:
    """Return how many processors nobody has."""
    raise NotImplementedError


def open_pass(state: Any, now: float, free: int) -> None:
    """Begin a pass over the whole queue; there are no reservations yet."""
    raise NotImplementedError


def is_kept(state: Any, now: float) -> bool:
    """Return whether the only reservation is still the one that a whole pass would give."""
    raise NotImplementedError


def can_start(state: Any, item: int, now: float) -> bool:
    """Return whether a job can start now; if its shape is still to be chosen, it takes the fastest that can."""
    raise NotImplementedError


def started(state: Any, item: int, now: float) -> None:
    """Take a job that just started out of what is left for others."""
    raise NotImplementedError


def find(state: Any, item: int, width: int, length: float, now: float, where: int) -> float:
    """Return the earliest start of a job in a shape; what `reserve`, `hold` and `plan` take is the last one found."""
    raise NotImplementedError


def reserve(state: Any, item: int, now: float) -> None:
    """Let a job have the place that was found, from ``reserved`` on, in this pass."""
    raise NotImplementedError


def unreserve(state: Any, item: int) -> None:
    """End that."""
    raise NotImplementedError


# -- reservations that stay


def hold(state: Any, item: int) -> None:
    """Let a job have the place that was found, from ``reserved`` on."""
    raise NotImplementedError


def let_go(state: Any, item: int) -> None:
    """End that."""
    raise NotImplementedError


def open_round(state: Any) -> None:
    """Begin to move reservations forward."""
    raise NotImplementedError


def move_forward(state: Any, item: int, now: float) -> None:
    """Give a job an earlier place than it has, or a better one, if there is."""
    raise NotImplementedError


def close_round(state: Any) -> None:
    """End what `open_round` began: whatever was put off is done now."""
    raise NotImplementedError


def renew(state: Any, now: float) -> None:
    """Make the plan of the running jobs anew; there are no reservations."""
    raise NotImplementedError


def can_begin(state: Any, item: int) -> bool:
    """Return whether those have left whose place a job has a reservation for."""
    raise NotImplementedError


def serve_in_table(state: Any, now: float) -> None:
    """Make a pass with a reservation table."""
    raise NotImplementedError


# -- plans of the whole queue


def open_plan(state: Any, now: float) -> int:
    """Begin a plan in which all queued jobs have a place; return up to which rank they have it already, -1 if none."""
    raise NotImplementedError


def plan(state: Any, item: int, time: float) -> bool:
    """Let a job have the place that was found in this plan, from a time on; return whether to `drop` it afterwards."""
    raise NotImplementedError


def drop(state: Any, item: int) -> None:
    """End that."""
    raise NotImplementedError
