"""Numbered processors: the operations of `swflow.scheduling.state.operations` by a plan of sets."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.machine.allocation import (
    EMPTY,
    FIRST_CONTIGUOUS,
    FIRST_FIT,
    LEAST_SHARED,
    LONGEST_IDLE,
    THRESHOLD,
    add,
    assign,
    choose,
    fill,
    is_within,
    longest_run,
    next_in,
    next_out,
    remove,
    size_of,
)
from swflow.scheduling.machine.node_sharing import (
    Sharing,
    add_demand,
    choose_least_shared,
    count_within_limit,
    limit_of,
    new_sharing,
    share,
    whole_nodes,
)
from swflow.scheduling.machine.numbered_plan import (
    NumberedPlan,
    earliest_set,
    enter,
    free_row,
    new_numbered_plan,
    new_row,
    next_time,
    withdraw,
)
from swflow.scheduling.machine.resources import Resources
from swflow.scheduling.state import operations
from swflow.scheduling.state.heap import ELEMENT, change, pop, push
from swflow.scheduling.state.layout import State

#: The allocation, which is constant; the number of ranges in the pool; jobs that started or ended since the shared
#: resources were last updated; jobs that started in this pass; and the last head with a reservation in a table.
COUNTERS = record("", "allocation ranges moved started head")

#: The processors of a job: its first range and the number of ranges; while it runs or has a reservation, the row of the
#: plan that has the set, else -1.
PLACEMENT = np.dtype([("first", np.int64), ("ranges", np.int32), ("row", np.int32)])


class Numbered(NamedTuple):
    """
    The numbered processors of a machine.

    In a pass, jobs that end after ``steps[i].time`` of the state, the start of a reservation or a window, must not use
    the processors ``blocked[i]``, for each ``i`` from 1 on.
    """

    counters: np.ndarray
    jobs: np.ndarray
    pool: np.ndarray  # ranges of processors
    plan: NumberedPlan
    blocked: np.ndarray
    found: np.ndarray  # scratch: the set that the last search found
    eligible: np.ndarray  # scratch: the set from which processors are chosen
    chosen: np.ndarray  # scratch: the chosen set
    idle_since: np.ndarray  # the time of each processor's last release
    idle: np.ndarray  # scratch: the same as planned
    by_idle_time: np.ndarray  # scratch: a heap of processors
    moved: np.ndarray
    sharing: Sharing

    def beside(self, other: "Numbered") -> "Numbered":
        """Return this machine with the records of jobs of another one, which both share."""
        sharing = self.sharing._replace(job=other.sharing.job, demands=other.sharing.demands)
        count_within_limit(sharing)  # the other machine may have no limit
        return self._replace(jobs=other.jobs, sharing=sharing)


def new_numbered(
    sizes: tuple[int, int],
    count: int,
    allocation: int,
    reservations: int,
    windows: Sequence[tuple[float, float, int]],
    resources: Resources | None,
) -> Numbered:
    """
    Return an idle machine for ``count`` jobs, of which at most ``reservations`` have a reservation in a pass.

    ``sizes`` are the processors of the machine, and of the largest one, for which sets have room.
    """
    machine, widest = sizes
    words = (widest + 63) >> 6
    counters, jobs = np.zeros(1, COUNTERS), np.zeros(count, PLACEMENT)
    counters["allocation"], counters["head"], jobs["row"] = allocation, -1, -1
    idle = machine if allocation == LONGEST_IDLE else 0
    return Numbered(
        counters=counters,
        jobs=jobs,
        pool=np.empty((count + machine, 2), np.int32),
        plan=new_numbered_plan(machine, words, count, windows),
        blocked=np.zeros((len(windows) + reservations + 2, words), np.uint64),
        found=np.zeros(words, np.uint64),
        eligible=np.zeros(words, np.uint64),
        chosen=np.zeros(words, np.uint64),
        idle_since=np.full(idle, -np.inf),
        idle=np.empty(idle),
        by_idle_time=np.empty(idle, ELEMENT),
        moved=np.empty(min(machine, count) + 1 if resources else 0, np.int64),
        sharing=new_sharing(resources, count, machine, allocation == THRESHOLD),
    )


def larger(state: State) -> State:
    """Return the same machine with twice the room for ranges, or for sets if there is enough for ranges."""

    def doubled(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.empty_like(array)])

    model, plan = state.machine, state.machine.plan
    if model.counters["ranges"][0] + state.options["processors"][0] > model.pool.shape[0]:
        return state._replace(machine=model._replace(pool=doubled(model.pool)))
    plan = plan._replace(sets=doubled(plan.sets), spare_rows=doubled(plan.spare_rows))
    return state._replace(machine=model._replace(plan=plan))


def _room(state: State, coming: int) -> bool:
    counts, model = state.counts[0], state.machine
    if model.counters[0].ranges + state.options[0].processors > model.pool.shape[0]:
        return False
    return counts.running + counts.queued + coming <= model.plan.sets.shape[0]


# -- running jobs


def _occupy(state: State, item: int, now: float) -> None:
    """Allocate the set of processors that was found last to a job."""
    model, job, plan = state.machine, state.jobs[item], state.machine.plan
    placement, counters, machine = model.jobs[item], model.counters[0], state.options[0].processors
    if placement.row >= 0:
        withdraw(plan, item)
    else:
        placement.row = new_row(plan, model.found)
    taken = plan.sets[placement.row]
    remove(plan.free, taken)
    enter(plan, job.planned_end, item, placement.row, job.processors)
    end, first = counters.ranges, next_in(taken, 0, machine)
    while first < machine:
        after = next_out(taken, first, machine)
        model.pool[end, 0] = first
        model.pool[end, 1] = after - 1
        end += 1
        first = next_in(taken, after, machine)
    placement.first = counters.ranges
    placement.ranges = end - counters.ranges
    counters.ranges = end
    if model.moved.size > 0:
        model.moved[counters.moved] = item
        counters.moved += 1
        add_demand(model.sharing, model.sharing.usage, model.pool, placement, item, 1)


def _release(state: State, item: int, now: float) -> None:
    model, job, plan = state.machine, state.jobs[item], state.machine.plan
    counters, row = model.counters[0], model.jobs[item].row
    if counters.allocation == LONGEST_IDLE:
        _set_times(model.idle_since, plan.sets[row], now)
    add(plan.free, plan.sets[row])
    cancel(state, item)
    if model.moved.size > 0:
        model.moved[counters.moved] = item
        counters.moved += 1
        if model.sharing.slows:
            job.run = now - job.start
            model.sharing.job[item].end = now


def _settle(state: State, now: float, come: bool) -> None:
    """Update the shadows of the nodes of jobs that started or ended, and the ends of their neighbors."""
    model = state.machine
    sharing, counters = model.sharing, model.counters[0]
    if model.moved.size == 0 or (counters.moved == 0 and not (come and sharing.round[0].touched > 0)):
        return
    moved = model.moved[: counters.moved]
    count = share(sharing, model.pool, model.jobs, state.jobs, now, moved, come)
    counters.moved = 0
    for index in range(count):
        item = sharing.changed[index]
        change(state.running, state.counts[0].running, sharing.job[item].end, item)


def _end_of(state: State, item: int) -> float:
    if state.machine.sharing.slows:
        return state.machine.sharing.job[item].end
    return state.jobs[item].start + state.jobs[item].run


def _longest(state: State, item: int) -> float:
    if state.machine.sharing.slows:
        return state.machine.sharing.job[item].allowed
    return state.predicted[item].estimate


def _extend(state: State, item: int, now: float) -> None:
    job, plan = state.jobs[item], state.machine.plan
    withdraw(plan, item)
    enter(plan, job.planned_end, item, state.machine.jobs[item].row, job.processors)


# -- the choice of processors


def _is_contiguous(model: Numbered) -> bool:
    """Return whether the processors of a job must be in a row."""
    return model.counters[0].allocation == FIRST_CONTIGUOUS


def _widest(model: Numbered, bits: np.ndarray, machine: int) -> int:
    """Return the processors of the widest job that fits into a set."""
    return longest_run(bits, machine, machine) if _is_contiguous(model) else size_of(bits)


def _choose(state: State, item: int, width: int, time: float, usage: np.ndarray) -> bool:
    """Choose processors for a job that starts at a time among the eligible ones; return whether there are enough."""
    model, machine = state.machine, state.options[0].processors
    counters, eligible, chosen = model.counters[0], model.eligible, model.chosen
    if counters.allocation >= LEAST_SHARED:
        limit = limit_of(model.sharing, item, width, machine)
        found = choose_least_shared(model.sharing, usage, eligible, width, item, limit, machine, chosen)
    elif counters.allocation == LONGEST_IDLE:
        found = size_of(eligible) >= width
        if found:
            _choose_idle(model, eligible, width, time, machine, chosen)
    else:
        found = choose(eligible, width, counters.allocation, machine, chosen)
    if found:
        assign(model.found, chosen)
    return found


def _choose_idle(
    model: Numbered, eligible: np.ndarray, width: int, time: float, machine: int, chosen: np.ndarray
) -> None:
    """Choose the eligible processors that will have been idle longest at a time."""
    plan, idle, heap = model.plan, model.idle, model.by_idle_time
    assign(idle, model.idle_since)
    for number in range(plan.numbers[0].changes):
        released = plan.changes[number]
        if released.time > time:
            break
        if released.size > 0:
            _set_times(idle, plan.sets[released.row], released.time)
    for window in range(plan.windows.shape[0]):
        until = plan.windows[window, 1]
        if until <= time:
            for processor in range(machine - int(plan.windows[window, 2]), machine):
                idle[processor] = max(idle[processor], until)
    count = 0
    processor = next_in(eligible, 0, machine)
    while processor < machine:
        count = push(heap, count, idle[processor], processor)
        processor = next_in(eligible, processor + 1, machine)
    chosen[:] = EMPTY
    for _ in range(width):
        fill(chosen, heap[0].job, heap[0].job)
        count = pop(heap, count)


def _set_times(times: np.ndarray, bits: np.ndarray, time: float) -> None:
    """Set the times of the processors of a set."""
    processor = next_in(bits, 0, times.size)
    while processor < times.size:
        times[processor] = time
        processor = next_in(bits, processor + 1, times.size)


# -- passes


def _free_now(state: State) -> int:
    return state.options[0].processors - state.counts[0].busy


def _open_pass(state: State, now: float, free: int) -> None:
    model, machine = state.machine, state.options[0].processors
    model.counters[0].started = 0
    state.agenda[0].steps = 1
    state.steps[0].free = free
    for window in range(state.options[0].windows):
        if model.plan.windows[window, 1] > now:
            model.eligible[:] = EMPTY
            fill(model.eligible, machine - int(model.plan.windows[window, 2]), machine - 1)
            _block(state, model.plan.windows[window, 0], model.eligible)


def _block(state: State, start: float, bits: np.ndarray) -> None:
    """Keep a set free from a time on."""
    steps, blocked, step = state.steps, state.machine.blocked, state.agenda[0].steps
    while step > 1 and steps[step - 1].time > start:
        steps[step].time = steps[step - 1].time
        assign(blocked[step], blocked[step - 1])
        step -= 1
    steps[step].time = start
    assign(blocked[step], bits)
    state.agenda[0].steps += 1
    steps[1].free = steps[0].free


def _is_kept(state: State, now: float) -> bool:
    """
    Return whether a new reservation of the head would have the same processors and start.

    Backfilled jobs end before that start or are elsewhere, so the head finds the same room; but the choice in it may
    depend on more than the processors that it takes.
    """
    counters = state.machine.counters[0]
    no_change = counters.started == 0 or state.agenda[0].steps < 2
    return no_change or counters.allocation in (FIRST_FIT, FIRST_CONTIGUOUS)


def _can_start(state: State, item: int, width: int, end: float) -> bool:
    model, steps, eligible = state.machine, state.steps, state.machine.eligible
    if width > steps[0].free:
        return False
    assign(eligible, model.plan.free)
    step = 0
    while step + 1 < state.agenda[0].steps and steps[step + 1].time < end:
        step += 1
        remove(eligible, model.blocked[step])
    if step == 1 and width > steps[1].free:
        return False
    found = _choose(state, item, width, steps[0].time, model.sharing.usage)
    if not found and step <= 1:
        steps[step].free = _widest(model, eligible, state.options[0].processors)
    return found


def _started(state: State, item: int, now: float) -> None:
    state.machine.counters[0].started += 1
    state.steps[0].free = _widest(state.machine, state.machine.plan.free, state.options[0].processors)


def _protect(state: State, item: int) -> None:
    _block(state, state.jobs[item].reserved, state.machine.found)


# -- reservations


def find(state: State, item: int, width: int, length: float, now: float) -> float:
    """Return the earliest start of a job in the plan, and choose its processors."""
    model, machine, eligible = state.machine, state.options[0].processors, state.machine.eligible
    time = earliest_set(model.plan, now, width, length, _is_contiguous(model), machine, eligible)
    if model.counters[0].allocation >= LEAST_SHARED:
        return _find_beside_others(state, item, width, length, time)
    if time < np.inf:
        _choose(state, item, width, time, model.sharing.usage)
    return time


def _find_beside_others(state: State, item: int, width: int, length: float, time: float) -> float:
    """Return the earliest start, from a time on, at which nodes have room for a job beside others."""
    model, machine = state.machine, state.options[0].processors
    plan, sharing = model.plan, model.sharing
    for node in range(sharing.usage.shape[0]):
        for resource in range(sharing.usage.shape[1]):
            sharing.later[node, resource] = sharing.usage[node, resource]
    passed = 0
    while time < np.inf:
        while passed < plan.numbers[0].changes and plan.changes[passed].time <= time:
            ended = plan.changes[passed].job
            add_demand(sharing, sharing.later, model.pool, model.jobs[ended], ended, -1)
            passed += 1
        if _choose(state, item, width, time, sharing.later):
            break
        time = next_time(plan, passed, time)
        time = earliest_set(plan, time, width, length, False, machine, model.eligible)
    if model.counters[0].allocation == THRESHOLD:
        whole_nodes(sharing, model.found, machine)  # new neighbors would slow the job down
    return time


def reserve(state: State, item: int) -> None:
    """Keep the set of processors that was found last for a job."""
    model, plan, job = state.machine, state.machine.plan, state.jobs[item]
    row = new_row(plan, model.found)
    model.jobs[item].row = row
    if job.reserved < np.inf:
        enter(plan, job.reserved, item, row, -job.processors)
        enter(plan, job.reserved + job.planned, item, row, job.processors)


def cancel(state: State, item: int) -> None:
    """Remove a job from the plan."""
    withdraw(state.machine.plan, item)
    free_row(state.machine.plan, state.machine.jobs[item].row)
    state.machine.jobs[item].row = -1


def _move_forward(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    cancel(state, item)
    job.reserved = find(state, item, job.processors, job.planned, now)
    reserve(state, item)


def can_begin(state: State, item: int) -> bool:
    """Return whether the processors of a job's reservation are free."""
    plan, row = state.machine.plan, state.machine.jobs[item].row
    return is_within(plan.sets[row], plan.free)


#: The implementation of the operations by numbered processors.
NUMBERED: dict[Any, Any] = {
    operations.room: _room,
    operations.occupy: _occupy,
    operations.release: _release,
    operations.settle: _settle,
    operations.end_of: _end_of,
    operations.longest: _longest,
    operations.extend: _extend,
    operations.free_now: _free_now,
    operations.open_pass: _open_pass,
    operations.is_kept: _is_kept,
    operations.can_start: _can_start,
    operations.started: _started,
    operations.protect: _protect,
    operations.find: find,
    operations.reserve: reserve,
    operations.cancel: cancel,
    operations.can_begin: can_begin,
    operations.move_forward: _move_forward,
}
