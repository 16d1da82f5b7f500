"""The states of the machines before the first event."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from swflow.scheduling.initial_state import Given, Ranks, new_state, shared_arrays
from swflow.scheduling.machine.counted import counted_processors
from swflow.scheduling.machine.numbered import Numbered, new_numbered
from swflow.scheduling.problem import Machine, Problem, Window
from swflow.scheduling.settings import Queue
from swflow.scheduling.state.accounts import Accounting
from swflow.scheduling.state.choices import Allocation, Backfill
from swflow.scheduling.state.layout import CONSERVATIVE, EASY, NONE, OTHER, State


def new_states(problem: Problem, accounting: Accounting) -> tuple[list[State], list[Ranks]]:
    """
    Return the state of each machine, and the ranks of all items there.

    The machines share the records of jobs and of their owners.
    """
    shared = shared_arrays(problem, accounting)
    states: list[State] = []
    ranks: list[Ranks] = []
    for machine, queue in zip(problem.machines, problem.policy.queues, strict=True):
        state, rank = new_state(problem, machine, _given(problem, machine, queue), shared, accounting)
        if states and isinstance(state.machine, Numbered):
            state = state._replace(machine=state.machine.beside(states[0].machine))
        states.append(state)
        ranks.append(rank)
    shared["jobs"]["rank"], shared["jobs"]["backfill_rank"] = ranks[0]
    return states, ranks


def _given(problem: Problem, machine: Machine, queue: Queue) -> Given:
    order, second, count = machine.order, machine.backfill_order, problem.items.submit.size
    windows = machine.windows if queue.allocation == "count" else summed(machine.windows, machine.processors)
    backfill = Backfill.number_of(queue.backfill)
    if backfill in (NONE, CONSERVATIVE):
        second = order
    one_tree = second is order or (order.keys is None and second.keys is None)
    if backfill == OTHER:
        one_tree = False  # one tree has the starts of reservations, the other the lengths of jobs
    reserved = min(queue.reservations if backfill == EASY else 0, max(count, 1))
    processors = _new_processors(problem, machine, queue, reserved, windows)
    return Given(processors, backfill, reserved, second, one_tree, windows)


def summed(windows: Sequence[Window], processors: int) -> list[Window]:
    """
    Return windows that do not overlap, in which as many processors of a machine are unavailable as in given ones.

    The processors of overlapping windows add up, at most to the whole machine.

    Examples
    --------
    >>> summed([(0.0, 10.0, 3), (5.0, 20.0, 2)], 8)
    [(0.0, 5.0, 3), (5.0, 10.0, 5), (10.0, 20.0, 2)]
    """
    times = sorted({time for begin, until, _ in windows for time in (begin, until)})
    found = [
        (begin, until, min(processors, sum(away for since, end, away in windows if since <= begin < end)))
        for begin, until in pairwise(times)
    ]
    return [window for window in found if window[2] > 0]


def _new_processors(problem: Problem, machine: Machine, queue: Queue, reserved: int, windows: Sequence[Window]) -> Any:
    """Return the idle processors of a machine, counted or numbered, without those of windows."""
    items, size = problem.items, machine.processors
    count = items.submit.size
    if queue.allocation == "count":
        return counted_processors(problem, machine, reserved, keeps=queue.backfill == "conservative")
    widest = max(one.processors for one in problem.machines)
    sharing = problem.sharing and problem.sharing.of(items.job if items.first.size else slice(None))
    allocation = Allocation.number_of(queue.allocation)
    return new_numbered((size, widest), count, allocation, reserved, windows, sharing)
