"""Counted processors and resources: the operations of `swflow.scheduling.state.operations` by a plan of each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import Handle, part_of
from swflow.scheduling.machine.ahead import Bounds, new_bounds, next_place, plan_anew
from swflow.scheduling.machine.moves import Moving, begin_round, end_round, move, new_moving
from swflow.scheduling.machine.plan import ENTER, Plan, add, advance, earliest, free_at, is_free, new_plan
from swflow.scheduling.state import operations
from swflow.scheduling.state.changes import is_entered
from swflow.scheduling.state.items import Items
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.queue import NO_JOB, following


class Counted(NamedTuple):
    """
    The numbers of free processors and of free units of each resource over time.

    Each of ``plans``, the first for processors, has the planned ends of running jobs and the reservations; ``ahead``
    also a plan of the whole queue by processors alone, in which jobs have ``starts`` that are found with ``bounds``.
    ``used`` has the units of each resource that are in use.
    """

    plans: Any
    moving: Moving  # the plan of the processors
    ahead: Plan
    bounds: Bounds
    starts: np.ndarray  # the planned start of every job; empty if there is no such plan
    used: np.ndarray


#: The units of a resource that running jobs occupy; and in a pass, those that are ``left`` now, and those that the
#: reservation of the head leaves to others when it starts.
UNITS = np.dtype([("busy", np.int64), ("left", np.int64), ("extra", np.int64)])


def new_counted(
    sizes: Sequence[int],
    changes: int,
    windows: Sequence[tuple[float, float, int]],
    planned: Items | None,
) -> Counted:
    """
    Return an idle machine with room for a number of future ``changes`` by running jobs and reservations.

    ``sizes`` are the processors, then the units of each resource; ``planned`` are the jobs if the whole queue is
    planned ahead by processors.
    """
    plans = [new_plan(size, changes) for size in sizes]
    for begin, until, away in windows:
        ENTER(Handle([plans[0]]), begin, -away)
        ENTER(Handle([plans[0]]), until, away)
    none = np.empty(0)
    widths, lengths = (none, none) if planned is None else (planned.processors, planned.planned)
    return Counted(
        Handle(plans, several=True),
        new_moving(plans[0]),
        new_plan(sizes[0], 0 if planned is None else changes + 2 * lengths.size),
        new_bounds(widths.astype(np.int64), lengths),
        np.full(lengths.size, np.nan),
        np.zeros(len(plans) - 1, UNITS),
    )


def counted_processors(problem: Any, machine: Any, reserved: int, keeps: bool) -> Counted:
    """
    Return the idle processors and resources of a machine of a `swflow.scheduling.problem.Problem`.

    A pass makes at most ``reserved`` reservations, or it ``keeps`` one for each job.
    """
    items, policy, windows = problem.items, problem.policy, machine.windows
    count, sizes = items.submit.size, [machine.processors, *machine.resources.values()]
    plans_ahead = policy.shapes == "submit" or (len(problem.machines) > 1 and policy.dispatch == "earliest-start")
    in_plan = keeps or (plans_ahead and bool(machine.resources))
    reservations = count if in_plan else max(reserved, 1)
    changes = min(min(sizes[0], count) + 1 + 2 * reservations, 2 * count) + 2 * len(windows) + 4
    return new_counted(sizes, changes, windows, items if plans_ahead and not in_plan else None)


def _needed(state: State, item: int, width: int, number: int) -> int:
    """Return the units of a plan that a job needs: its processors, or (from number 1 on) the units of a resource."""
    return state.demands[item, number - 1] if number > 0 else width


def _move_on(state: State, now: float) -> None:
    for number in range(1 + state.machine.used.size):
        advance(part_of(state.machine.plans, number), now)


# -- running jobs


def _occupy(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    if job.reserved != now:  # else the plans have its reservation already
        _add_to_all(state, item, now, -1)
        _add_to_all(state, item, job.planned_end, 1)
    for resource in range(state.machine.used.size):
        state.machine.used[resource].busy += state.demands[item, resource]
    if state.machine.starts.size > 0 and state.machine.starts[item] != now:
        state.queue_plan[0].kept = 0


def _release(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    for resource in range(state.machine.used.size):
        state.machine.used[resource].busy -= state.demands[item, resource]
    if now < job.planned_end:
        _add_to_all(state, item, now, 1)
        _add_to_all(state, item, job.planned_end, -1)
        state.queue_plan[0].kept = 0


def _add_to_all(state: State, item: int, time: float, sign: int) -> None:
    """Change the free processors and resources from ``time`` on by those of a job: 1 releases, -1 occupies."""
    for number in range(1 + state.machine.used.size):
        units = _needed(state, item, state.jobs[item].processors, number)
        if units > 0:
            add(part_of(state.machine.plans, number), time, sign * units)


def _extend(state: State, item: int, now: float) -> None:
    _add_to_all(state, item, now, -1)
    _add_to_all(state, item, state.jobs[item].planned_end, 1)
    state.queue_plan[0].kept = 0


# -- passes


def _free_now(state: State) -> int:
    return state.options[0].processors - state.counts[0].busy - state.windows[0].closed


def _open_pass(state: State, now: float, free: int) -> None:
    state.steps[0].free = free
    state.agenda[0].steps = 1
    for resource in range(state.machine.used.size):
        units = state.machine.used[resource]
        units.left = state.capacities[resource] - units.busy


def _can_start(state: State, item: int, width: int, end: float) -> bool:
    options, agenda, steps, used = state.options[0], state.agenda[0], state.steps, state.machine.used
    # The plans do not have the jobs that should have ended by now; these prevent a start, though not a reservation.
    if width > steps[0].free:
        return False
    for resource in range(used.size):
        if state.demands[item, resource] > used[resource].left:
            return False
    for step in range(1, agenda.steps):
        if steps[step].time < end and width > steps[step].free:
            return False
    if not options.simple and (options.windows or used.size > 0):
        for number in range(1 + used.size):
            units = _needed(state, item, width, number)
            if units > 0 and not is_free(part_of(state.machine.plans, number), units, end):
                return False
        return True
    if agenda.steps > 1 and steps[1].time < end:
        for resource in range(used.size):
            if state.demands[item, resource] > used[resource].extra:
                return False
    return True


def _started(state: State, item: int, now: float) -> None:
    job, agenda, steps = state.jobs[item], state.agenda[0], state.steps
    _keep_now(state, item)
    for step in range(1, agenda.steps):
        if steps[step].time < job.planned_end:
            steps[step].free -= job.processors
    if agenda.steps > 1 and steps[1].time < job.planned_end:
        for resource in range(state.machine.used.size):
            state.machine.used[resource].extra -= state.demands[item, resource]


def _keep_now(state: State, item: int) -> None:
    """Subtract a job from what is left for starts in this pass."""
    state.steps[0].free -= state.jobs[item].processors
    for resource in range(state.machine.used.size):
        state.machine.used[resource].left -= state.demands[item, resource]


def _protect(state: State, item: int) -> None:
    """Note what is free when a reservation starts: without windows, processors become fewer only at these times."""
    job, agenda, steps = state.jobs[item], state.agenda[0], state.steps
    own = 0 if is_entered(state, agenda.steps) else job.processors  # every reservation is a step
    if job.reserved <= steps[0].time:  # a pass per event: a job has ended as planned, but its completion is later
        _keep_now(state, item)
    place = agenda.steps
    while place > 1 and steps[place - 1].time >= job.reserved:
        steps[place].time, steps[place].free = steps[place - 1].time, steps[place - 1].free
        if steps[place].time < job.reserved + job.planned:
            steps[place].free -= job.processors
        place -= 1
    steps[place].time = job.reserved
    steps[place].free = free_at(part_of(state.machine.plans, 0), job.reserved) - own
    agenda.steps += 1
    if own > 0:
        for resource in range(state.machine.used.size):
            free = free_at(part_of(state.machine.plans, resource + 1), job.reserved)
            state.machine.used[resource].extra = free - state.demands[item, resource]


def _find(state: State, item: int, width: int, length: float, now: float) -> float:
    if state.queue_plan[0].jobs >= 0 and state.machine.starts.size > 0:
        return next_place(state.machine.ahead, state.machine.bounds, width, length)
    return _earliest_of_all(state, item, width, length)


def _earliest_of_all(state: State, item: int, width: int, length: float) -> float:
    """Return the earliest time at which enough processors and resources are free for long enough."""
    resources = state.machine.used.size
    time = -np.inf
    number = agreed = 0  # consecutive plans that have room at that time
    while agreed <= resources and time < np.inf:
        units = _needed(state, item, width, number)
        found = earliest(part_of(state.machine.plans, number), units, length, time, np.inf) if units > 0 else time
        agreed = 1 if found > time else agreed + 1
        number = number + 1 if number < resources else 0
        time = found
    return time


# -- reservations


def _reserve(state: State, item: int) -> None:
    _add_span(state, item, -1)
    head = state.machine.moving.head[0]
    head.seen = max(head.seen, state.jobs[item].reserved)


def _cancel(state: State, item: int) -> None:
    _add_span(state, item, 1)


def _add_span(state: State, item: int, sign: int) -> None:
    """Change the free processors and resources during a job's reservation."""
    job = state.jobs[item]
    if job.reserved < np.inf:
        _add_to_all(state, item, job.reserved, sign)
        _add_to_all(state, item, job.reserved + job.planned, -sign)


def _open_round(state: State) -> None:
    begin_round(state.machine.moving, state.counts[0].queued)


def _move_forward(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    if state.machine.used.size == 0:
        job.reserved = move(state.machine.moving, job.processors, job.planned, job.reserved)
        return
    _cancel(state, item)
    job.reserved = _earliest_of_all(state, item, job.processors, job.planned)
    _reserve(state, item)


def _close_round(state: State) -> None:
    end_round(state.machine.moving)


# -- plans of the whole queue


def _open_plan(state: State, now: float) -> int:
    """
    Return the rank up to which the queue is in the plan already.

    The plan stays valid until a job ends before its planned end, starts at another time than planned, or has not
    started at its planned start.
    """
    queue_plan, free = state.queue_plan[0], state.machine
    if free.starts.size == 0:  # reservations are temporary; under conservative backfilling only arrivals have none
        return -1
    if queue_plan.kept and queue_plan.first_start < now:
        queue_plan.first_start = _first_start(state)
    if queue_plan.kept and queue_plan.first_start >= now:
        advance(free.ahead, now)
        return queue_plan.last_rank
    plan_anew(free.ahead, free.bounds, part_of(free.plans, 0))
    queue_plan.kept = 1
    queue_plan.first_start = np.inf
    return -1


def _first_start(state: State) -> float:
    """Return the earliest planned start of a queued job."""
    queue, first = state.queue, np.inf
    rank = following(queue, 0, NO_JOB - 1, 0, 0.0, 0.0)
    while 0 <= rank <= state.queue_plan[0].last_rank:
        first = min(first, state.machine.starts[queue.job_at[rank]])
        rank = following(queue, rank + 1, NO_JOB - 1, 0, 0.0, 0.0)
    return first


def _plan_apart(state: State, item: int, time: float) -> bool:
    job, free = state.jobs[item], state.machine
    if free.starts.size == 0:
        return False
    if time < np.inf:
        add(free.ahead, time, -job.processors)
        add(free.ahead, time + job.planned, job.processors)
    free.starts[item] = time
    state.queue_plan[0].first_start = min(state.queue_plan[0].first_start, time)
    return True


def _can_begin(state: State, item: int) -> bool:
    for resource in range(state.machine.used.size):
        if state.machine.used[resource].busy + state.demands[item, resource] > state.capacities[resource]:
            return False
    return state.counts[0].busy + state.jobs[item].processors <= state.options[0].processors


#: The implementation of the operations by counted processors.
COUNTED: dict[Any, Any] = {
    operations.move_on: _move_on,
    operations.occupy: _occupy,
    operations.release: _release,
    operations.extend: _extend,
    operations.free_now: _free_now,
    operations.open_pass: _open_pass,
    operations.can_start: _can_start,
    operations.started: _started,
    operations.protect: _protect,
    operations.find: _find,
    operations.reserve: _reserve,
    operations.cancel: _cancel,
    operations.can_begin: _can_begin,
    operations.open_round: _open_round,
    operations.move_forward: _move_forward,
    operations.close_round: _close_round,
    operations.open_plan: _open_plan,
    operations.plan_apart: _plan_apart,
}
