"""Numbered processors: the operations of `swflow.scheduling.engine.operations` by a plan of sets."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import inlined
from swflow.scheduling.engine import operations as asked
from swflow.scheduling.engine.heap import ELEMENT, change
from swflow.scheduling.engine.queue import NO_JOB, following
from swflow.scheduling.engine.state import CONSERVATIVE, State
from swflow.scheduling.machine.allocation import (
    ALLOCATIONS,
    BEST_CONTIGUOUS,
    FIRST_CONTIGUOUS,
    FIRST_FIT,
    LEAST_SHARED,
    LONGEST_IDLE,
    NO_PLACES,
    THRESHOLD,
    assign,
    choose,
    fill,
    last_out,
    longest_run,
    next_in,
    next_out,
    remove,
    size_of,
    sort_by_key,
    take_lowest,
)
from swflow.scheduling.machine.node_sharing import (
    Sharing,
    choose_least_shared,
    enter_in_plan,
    leave_in_plan,
    limit_of,
    new_sharing,
    share,
    whole_nodes,
)
from swflow.scheduling.machine.numbered_plan import (
    NumberedPlan,
    advance,
    choose_longest_idle,
    earliest_step,
    new_numbered_plan,
    release,
    reserve,
    reset,
    steps_of,
)
from swflow.scheduling.machine.resources import Resources

#: Constants: the allocation, and whether the whole queue is planned.
MANNER = np.dtype([("allocation", np.int64), ("plans_ahead", np.int64)])

#: Variables: the processor at which next-fit continues; the number of ranges in the pool; rows that reservations
#: returned, and the first unused one; jobs that started or ended since the shared resources were last updated; jobs
#: that started since the head got its reservation; the last head with a reservation; whether this pass has a plan;
#: and windows that ended.
COUNTERS = np.dtype(
    [
        ("pointer", np.int64),
        ("ranges", np.int64),
        ("spare_rows", np.int64),
        ("fresh_row", np.int64),
        ("moved", np.int64),
        ("started", np.int64),
        ("head", np.int64),
        ("planned", np.int64),
        ("windows", np.int64),
    ]
)

#: The processors of a job: its first range and the number of ranges; the row of its reservation, -1 without one.
PLACEMENT = np.dtype([("first", np.int64), ("ranges", np.int32), ("row", np.int32)])


class Spots(NamedTuple):
    """
    The processors that reservations leave to jobs that start in a pass.

    The first step of a pass is now, each other one a blocker, that is a reservation or a window, in order of their
    starts: ``open`` has the processors that it and those before it leave. A step's ``free`` is the widest job that fits
    into these; while ``stale``, the widest one before the last starts.
    """

    open: np.ndarray
    blocked: np.ndarray
    stale: np.ndarray


class Numbered(NamedTuple):
    """The numbered processors of a machine."""

    manner: np.ndarray
    now: np.ndarray
    jobs: np.ndarray
    pool: np.ndarray  # ranges of processors
    bits: np.ndarray  # the free processors
    ends: np.ndarray  # the running jobs by planned end, then in order of their starts
    spots: Spots
    work: np.ndarray  # scratch; the first set is the result of the last search
    held: np.ndarray  # the processors of kept reservations
    spare_rows: np.ndarray
    plan: NumberedPlan
    windows: np.ndarray
    idle_since: np.ndarray  # the time since which a processor is idle; if busy, its planned end
    items: np.ndarray  # scratch
    moved: np.ndarray
    sharing: Sharing

    def beside(self, other: "Numbered") -> "Numbered":
        """Return this machine with the records of jobs of another one, which both share."""
        sharing = self.sharing._replace(job=other.sharing.job, demands=other.sharing.demands)
        return self._replace(jobs=other.jobs, sharing=sharing)


def new_numbered(
    sizes: tuple[int, int],
    count: int,
    allocation: str,
    reservations: int,
    windows: Sequence[tuple[float, float, int]],
    resources: Resources | None,
    plans_ahead: bool,
) -> Numbered:
    """
    Return an idle machine for ``count`` jobs.

    Parameters
    ----------
    sizes : (int, int)
        Processors of the machine, and of the largest one, for which sets have room.
    count : int
        Jobs.
    allocation : str
        One of `ALLOCATIONS`.
    reservations : int
        How many jobs have a reservation in a pass.
    windows : sequence of (from, until, processors)
        When processors are unavailable, seconds.
    resources : Resources, optional
        The resources that the processes of a node share.
    plans_ahead : bool
        Whether the whole queue is planned.
    """
    machine, widest = sizes
    words = (widest + 63) >> 6
    running = min(machine, count) + 1
    number = ALLOCATIONS[allocation]
    manner, now, jobs = np.zeros(1, MANNER), np.zeros(1, COUNTERS), np.zeros(count, PLACEMENT)
    manner["allocation"], manner["plans_ahead"] = number, plans_ahead
    now["head"], jobs["row"] = -1, -1
    idle = machine if number == LONGEST_IDLE else 0
    blockers = len(windows) + reservations + 2
    bits = np.zeros(words, np.uint64)
    fill(bits, 0, machine - 1)
    return Numbered(
        manner=manner,
        now=now,
        jobs=jobs,
        pool=np.empty((count + machine, 2), np.int32),
        bits=bits,
        ends=np.empty(running, ELEMENT),
        spots=Spots(
            open=np.zeros((blockers, words), np.uint64),
            blocked=np.zeros((blockers, words), np.uint64),
            stale=np.zeros(blockers, np.bool_),
        ),
        work=np.zeros((5, words), np.uint64),
        held=np.empty((2, words), np.uint64),
        spare_rows=np.empty(2, np.int64),
        plan=new_numbered_plan(16 + 2 * len(windows), words),
        windows=np.array(windows, np.float64).reshape(-1, 3),
        idle_since=np.full(idle, -np.inf),
        items=np.empty((2, idle), np.int64),
        moved=np.empty(running if resources else 0, np.int64),
        sharing=new_sharing(resources, count, machine, number == THRESHOLD),
    )


def larger(places: Numbered) -> Numbered:
    """Return the same machine with twice the room for ranges, reservations and plans."""

    def doubled(array: np.ndarray, axis: int) -> np.ndarray:
        return np.concatenate([array, np.empty_like(array)], axis)

    def doubled_plan(plan: NumberedPlan) -> NumberedPlan:
        times, slots, sizes, spare = (doubled(one, -1) for one in (plan.times, plan.slots, plan.sizes, plan.spare))
        return NumberedPlan(times, slots, doubled(plan.free, -2), sizes, spare, plan.numbers)

    return places._replace(
        pool=doubled(places.pool, -2),
        held=doubled(places.held, -2),
        spare_rows=doubled(places.spare_rows, -1),
        plan=doubled_plan(places.plan),
    )


@inlined
def _has_places(state: State, coming: int) -> bool:
    options, core, places = state.options[0], state.now[0], state.free
    waiting = core.queued + coming
    enough = places.now[0].ranges + options.machine <= places.pool.shape[0]
    reserved = waiting
    if options.backfill < CONSERVATIVE and not places.manner[0].plans_ahead:
        if options.simple:
            return enough
        reserved = min(options.reservations, waiting)
    around = min(core.running + waiting, options.machine) + reserved + options.windows
    return enough and reserved <= places.held.shape[0] and 2 * around + 8 <= places.plan.times.size


@inlined
def _move_places(state: State, now: float) -> None:
    options, places = state.options[0], state.free
    if options.backfill >= CONSERVATIVE:
        if steps_of(places.plan) == 0:
            plan_running(state, now)
        advance(places.plan, now)
    if options.windows and places.manner[0].allocation == LONGEST_IDLE:
        _reopen_idle(state, now)


@inlined
def _reopen_idle(state: State, now: float) -> None:
    """Mark the processors of windows that ended as idle since then."""
    places, ends, machine = state.free, state.window_ends, state.options[0].machine
    counters = places.now[0]
    if counters.windows >= ends.size or ends[counters.windows].time > now:
        return
    while counters.windows < ends.size and ends[counters.windows].time <= now:
        counters.windows += 1
    for window in range(state.options[0].windows):
        until = places.windows[window, 1]
        if until <= now:
            for place in range(machine - int(places.windows[window, 2]), machine):
                places.idle_since[place] = max(places.idle_since[place], until)


# -- running jobs


@inlined
def _take_places(state: State, item: int, now: float) -> None:
    """Allocate the set of processors that was found last to a job."""
    places, job = state.free, state.jobs[item]
    placement, counters = places.jobs[item], places.now[0]
    if placement.row >= 0:
        free_row(places.jobs, places.spare_rows, places.now, item)
    remove(places.bits, places.work[0])
    end = _write_ranges(places.work[0], places.pool, counters.ranges, state.options[0].machine)
    placement.first = counters.ranges
    placement.ranges = end - counters.ranges
    counters.ranges = end
    counters.pointer = (places.pool[end - 1, 1] + 1) % state.options[0].machine
    if places.manner[0].allocation == LONGEST_IDLE:
        _set_idle_since(places, item, job.planned_end)
    _insert_end(places.ends, state.now[0].running, job.planned_end, item)
    if places.moved.size > 0:
        places.moved[counters.moved] = item
        counters.moved += 1
        enter_in_plan(places.sharing, places.sharing.usage, places.pool, placement.first, placement.ranges, item)


@inlined
def _write_ranges(bits: np.ndarray, pool: np.ndarray, at: int, machine: int) -> int:
    """Write the ranges of a set into the pool; return the position after them."""
    first = next_in(bits, 0, machine)
    while first < machine:
        after = next_out(bits, first, machine)
        pool[at, 0] = first
        pool[at, 1] = after - 1
        at += 1
        first = next_in(bits, after, machine)
    return at


@inlined
def _insert_end(ends: np.ndarray, count: int, time: float, item: int) -> None:
    """Insert a job into ``count`` jobs that are sorted by their planned ends, after equal ones."""
    place = count
    while place > 0 and ends[place - 1].time > time:
        ends[place].time = ends[place - 1].time
        ends[place].job = ends[place - 1].job
        place -= 1
    ends[place].time = time
    ends[place].job = item


@inlined
def _remove_end(ends: np.ndarray, count: int, item: int) -> None:
    """Remove a job from ``count`` jobs."""
    place = 0
    while ends[place].job != item:
        place += 1
    for later in range(place + 1, count):
        ends[later - 1].time = ends[later].time
        ends[later - 1].job = ends[later].job


@inlined
def _set_idle_since(places: Numbered, item: int, time: float) -> None:
    """Set the time since which, or from which on, the processors of a job are idle."""
    placement = places.jobs[item]
    for index in range(placement.first, placement.first + placement.ranges):
        for place in range(places.pool[index, 0], places.pool[index, 1] + 1):
            places.idle_since[place] = time


@inlined
def _add_places(places: Numbered, item: int, bits: np.ndarray) -> None:
    """Add the processors of a job that has started to a set."""
    placement = places.jobs[item]
    for index in range(placement.first, placement.first + placement.ranges):
        fill(bits, int(places.pool[index, 0]), int(places.pool[index, 1]))


@inlined
def _return_places(state: State, item: int, now: float) -> None:
    places, job = state.free, state.jobs[item]
    counters = places.now[0]
    if places.manner[0].allocation == LONGEST_IDLE:
        _set_idle_since(places, item, now)
    _add_places(places, item, places.bits)
    _remove_end(places.ends, state.now[0].running + 1, item)
    if places.moved.size > 0:
        places.moved[counters.moved] = item
        counters.moved += 1
        if places.sharing.slows:
            job.run = now - job.start
            places.sharing.job[item].end = now
    if state.options[0].backfill == CONSERVATIVE and now < job.planned_end:
        _vacate_early(state, item, now)


@inlined
def _vacate_early(state: State, item: int, now: float) -> None:
    """Release the rest of a job's planned time, except during windows."""
    places = state.free
    places.work[3, :] = NO_PLACES
    _add_places(places, item, places.work[3])
    release(places.plan, places.work[3], now, state.jobs[item].planned_end)
    _plan_windows(state)


@inlined
def _settle_shares(state: State, now: float, come: bool) -> None:
    places = state.free
    if places.moved.size > 0 and (places.now[0].moved > 0 or (come and places.sharing.numbers[1] > 0)):
        _share_out(state, now, come)


@inlined
def _share_out(state: State, now: float, come: bool) -> None:
    """Update the shadows of the nodes of jobs that started or ended, and the ends of their neighbours."""
    places = state.free
    sharing, counters = places.sharing, places.now[0]
    moved = places.moved[: counters.moved]
    count = share(sharing, places.pool, places.jobs, state.jobs, now, moved, come)
    counters.moved = 0
    for index in range(count):
        item = sharing.place[index].changed
        change(state.running, state.now[0].running, sharing.job[item].end, item)


@inlined
def _end_with_others(state: State, item: int) -> float:
    if state.free.sharing.slows:
        return state.free.sharing.job[item].end
    return state.jobs[item].start + state.jobs[item].run


@inlined
def _longest_with_others(state: State, item: int) -> float:
    if state.free.sharing.slows:
        return state.free.sharing.job[item].allowed
    return state.predicted[item].estimate


@inlined
def _extend_places(state: State, item: int, now: float) -> None:
    places, until = state.free, state.jobs[item].planned_end
    _remove_end(places.ends, state.now[0].running, item)
    _insert_end(places.ends, state.now[0].running - 1, until, item)
    if state.options[0].backfill == CONSERVATIVE:
        places.work[3, :] = NO_PLACES
        _add_places(places, item, places.work[3])
        reserve(places.plan, places.work[3], now, until)
    if places.manner[0].allocation == LONGEST_IDLE:
        _set_idle_since(places, item, until)


# -- passes


@inlined
def _count_idle(state: State) -> int:
    return state.options[0].machine - state.now[0].busy


@inlined
def _open_places(state: State, now: float, free: int) -> None:
    places = state.free
    places.now[0].planned = 0
    places.now[0].started = 0
    state.now[0].steps = 1
    assign(places.spots.open[0], places.bits)
    places.spots.stale[0] = True
    state.steps[0].free = free
    if state.options[0].windows:
        _block_windows(state, now)


@inlined
def _block_windows(state: State, now: float) -> None:
    places, machine = state.free, state.options[0].machine
    for window in range(state.options[0].windows):
        if places.windows[window, 1] > now:
            places.work[3, :] = NO_PLACES
            fill(places.work[3], machine - int(places.windows[window, 2]), machine - 1)
            _block(places.spots, state.steps, state.now, places.windows[window, 0], places.work[3])


@inlined
def _block(spots: Spots, steps: np.ndarray, now: np.ndarray, start: float, blocked: np.ndarray) -> None:
    """Add a blocker: a job that starts now and ends after its start must not use its processors."""
    place = now[0].steps
    while place > 1 and steps[place - 1].time > start:
        steps[place].time = steps[place - 1].time
        assign(spots.blocked[place], spots.blocked[place - 1])
        place -= 1
    steps[place].time = start
    assign(spots.blocked[place], blocked)
    now[0].steps += 1
    for index in range(place, now[0].steps):
        assign(spots.open[index], spots.open[index - 1])
        remove(spots.open[index], spots.blocked[index])
        steps[index].free = steps[index - 1].free
        spots.stale[index] = True


@inlined
def _places_are_kept(state: State, now: float) -> bool:
    """
    Return whether a new reservation of the head would have the same processors and start.

    Backfilled jobs end before that start or are elsewhere, so the head finds the same room; but the choice in it may
    depend on more than the processors that it takes.
    """
    places = state.free
    no_change = places.now[0].started == 0 or state.now[0].steps < 2
    return no_change or places.manner[0].allocation in (FIRST_FIT, FIRST_CONTIGUOUS)


@inlined
def _places_suffice(state: State, item: int, width: int, end: float) -> bool:
    places, machine = state.free, state.options[0].machine
    allocation = places.manner[0].allocation
    group = _group_with_room(places.spots, state.steps, state.now[0].steps, allocation, machine, width, end)
    found = group >= 0
    if found:
        eligible, chosen = places.spots.open[group], places.work[1]
        if allocation == LONGEST_IDLE:
            _choose_idle(places, eligible, width, machine, chosen)
        elif allocation >= LEAST_SHARED:
            limit = limit_of(places.sharing, item, width, machine)
            usage = places.sharing.usage
            found = choose_least_shared(places.sharing, usage, eligible, width, item, limit, machine, chosen)
        else:
            found = choose(eligible, width, allocation, places.now[0].pointer, machine, chosen)
        if found:
            assign(places.work[0], chosen)
    return found


@inlined
def _group_with_room(
    spots: Spots, steps: np.ndarray, count: int, allocation: int, machine: int, width: int, end: float
) -> int:
    """Return the last step that begins before an end if it has enough processors, else -1."""
    low, high = 1, count
    while low < high:
        middle = (low + high) >> 1
        if steps[middle].time < end:
            low = middle + 1
        else:
            high = middle
    group = low - 1
    if width <= steps[group].free and spots.stale[group]:
        _look_again(spots, steps, group, allocation, machine)
    return group if width <= steps[group].free else -1


@inlined
def _look_again(spots: Spots, steps: np.ndarray, group: int, allocation: int, machine: int) -> None:
    """Compute the widest job that fits into a step."""
    spots.stale[group] = False
    if allocation in (FIRST_CONTIGUOUS, BEST_CONTIGUOUS):
        steps[group].free = longest_run(spots.open[group], machine)
    else:
        steps[group].free = size_of(spots.open[group])


@inlined
def _choose_idle(places: Numbered, eligible: np.ndarray, width: int, machine: int, chosen: np.ndarray) -> None:
    """Choose the eligible processors that have been idle longest."""
    chosen[:] = NO_PLACES
    items = places.items[0]
    count = 0
    place = next_in(eligible, 0, machine)
    while place < machine:
        items[count] = place
        count += 1
        place = next_in(eligible, place + 1, machine)
    sort_by_key(items, places.idle_since, count, places.items[1])
    for index in range(width):
        fill(chosen, items[index], items[index])


@inlined
def _places_started(state: State, item: int, now: float) -> None:
    places = state.free
    places.now[0].started += 1
    _shut_out(places.spots, state.now[0].steps, places.work[0])
    _look_again(places.spots, state.steps, 0, places.manner[0].allocation, state.options[0].machine)  # to be exact
    if places.now[0].planned:
        reserve(places.plan, places.work[0], now, state.jobs[item].planned_end)


@inlined
def _shut_out(spots: Spots, count: int, taken: np.ndarray) -> None:
    """Remove the processors of a job that starts now from all steps."""
    for index in range(count):
        remove(spots.open[index], taken)
        spots.stale[index] = True


@inlined
def _find_places(state: State, item: int, width: int, length: float, now: float) -> float:
    places, options = state.free, state.options[0]
    if options.backfill < CONSERVATIVE and state.now[0].planned < 0:  # in a pass
        if options.simple:
            return _find_for_head(state, item, width, now)
        if not places.now[0].planned:
            plan_running(state, now)
            places.now[0].planned = 1
    return find_in_plan(state, width, length)


@inlined
def find_in_plan(state: State, width: int, length: float) -> float:
    """Return the earliest start of a job in the plan, and choose its processors."""
    places, machine, plan = state.free, state.options[0].machine, state.free.plan
    allocation, pointer = places.manner[0].allocation, places.now[0].pointer
    chosen, eligible, spare = places.work[0], places.work[1], places.work[2]
    step = earliest_step(plan, width, length, allocation, machine, eligible, spare)
    if step == steps_of(plan):
        return np.inf
    if allocation != LONGEST_IDLE:
        choose(eligible, width, allocation, pointer, machine, chosen)
    elif not choose_longest_idle(plan, step, width, eligible, spare, chosen):
        _choose_idle(places, eligible, width, machine, chosen)
    return plan.times[step]


@inlined
def _find_for_head(state: State, head: int, width: int, now: float) -> float:
    """
    Return the start of the reservation of a head that only running jobs prevent from starting.

    Running jobs are visited in order of planned end; each adds its processors to the free ones.
    """
    places, machine, running = state.free, state.options[0].machine, state.now[0].running
    allocation, sharing = places.manner[0].allocation, places.sharing
    chosen, eligible, spare = places.work[0], places.work[1], places.work[2]
    if allocation >= LEAST_SHARED:
        for node in range(sharing.usage.shape[0]):
            for resource in range(sharing.usage.shape[1]):
                sharing.later[node, resource] = sharing.usage[node, resource]
    assign(eligible, places.bits)
    size = machine - state.now[0].busy
    contiguous = allocation in (FIRST_CONTIGUOUS, BEST_CONTIGUOUS)
    longest = 0  # of the runs that grew
    index = 0
    while index < running:
        time = max(places.ends[index].time, now)
        before = size
        if allocation == LONGEST_IDLE:
            assign(spare, eligible)
        while index < running and places.ends[index].time <= time:
            item = places.ends[index].job
            placement = places.jobs[item]
            for position in range(placement.first, placement.first + placement.ranges):
                first, last = int(places.pool[position, 0]), int(places.pool[position, 1])
                fill(eligible, first, last)
                if contiguous:
                    longest = max(longest, next_out(eligible, last, machine) - last_out(eligible, first) - 1)
            if allocation >= LEAST_SHARED:
                leave_in_plan(sharing, sharing.later, places.pool, placement.first, placement.ranges, item)
            size += state.jobs[item].processors
            index += 1
        if size < width or (contiguous and longest < width):
            continue
        if allocation >= LEAST_SHARED:
            limit = limit_of(sharing, head, width, machine)
            if not choose_least_shared(sharing, sharing.later, eligible, width, head, limit, machine, chosen):
                continue
            if allocation == THRESHOLD:
                whole_nodes(sharing, chosen, machine)  # new neighbours would slow the head down
        elif allocation != LONGEST_IDLE:
            choose(eligible, width, allocation, places.now[0].pointer, machine, chosen)
        elif time == now:
            _choose_idle(places, eligible, width, machine, chosen)
        else:
            # Processors that were free before are idle longer than those released at this time.
            assign(chosen, spare)
            remove(eligible, spare)
            take_lowest(eligible, width - before, chosen)
        return time
    return np.inf


@inlined
def plan_running(state: State, now: float) -> None:
    """Rebuild the plan from the running jobs and the windows."""
    places, plan = state.free, state.free.plan
    reset(plan, state.options[0].machine)
    advance(plan, now)
    for index in range(state.now[0].running):
        end = places.ends[index]
        if end.time > now:
            places.work[3, :] = NO_PLACES
            _add_places(places, end.job, places.work[3])
            reserve(plan, places.work[3], now, end.time)
    _plan_windows(state)


@inlined
def _plan_windows(state: State) -> None:
    """Enter the windows into the plan."""
    places, machine, plan = state.free, state.options[0].machine, state.free.plan
    for window in range(state.options[0].windows):
        places.work[4, :] = NO_PLACES
        fill(places.work[4], machine - int(places.windows[window, 2]), machine - 1)
        reserve(plan, places.work[4], places.windows[window, 0], places.windows[window, 1])


@inlined
def _protect_places(state: State, item: int) -> None:
    _block(state.free.spots, state.steps, state.now, state.jobs[item].reserved, state.free.work[0])


# -- reservations


@inlined
def reserve_places(state: State, item: int) -> None:
    """Keep the set of processors that was found last for a job."""
    places, counters, job = state.free, state.free.now[0], state.jobs[item]
    row = counters.fresh_row
    if counters.spare_rows > 0:
        counters.spare_rows -= 1
        row = places.spare_rows[counters.spare_rows]
    else:
        counters.fresh_row += 1
    places.jobs[item].row = row
    assign(places.held[row], places.work[0])
    if job.reserved < np.inf:
        reserve(places.plan, places.work[0], job.reserved, job.reserved + job.planned)


@inlined
def free_row(jobs: np.ndarray, spare_rows: np.ndarray, now: np.ndarray, item: int) -> None:
    """Release the row of a reservation."""
    spare_rows[now[0].spare_rows] = jobs[item].row
    now[0].spare_rows += 1
    jobs[item].row = -1


@inlined
def _cancel_places(state: State, item: int) -> None:
    places, job = state.free, state.jobs[item]
    if job.reserved < np.inf:
        release(places.plan, places.held[places.jobs[item].row], job.reserved, job.reserved + job.planned)
    free_row(places.jobs, places.spare_rows, places.now, item)


@inlined
def _nothing_remembered(state: State) -> None:
    pass


@inlined
def _move_places_forward(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    _cancel_places(state, item)
    job.reserved = find_in_plan(state, job.processors, job.planned)
    reserve_places(state, item)


@inlined
def places_can_begin(state: State, item: int) -> bool:
    """Return whether the processors of a job's reservation are free, and choose them."""
    places = state.free
    row = places.jobs[item].row
    for word in range(places.bits.size):
        if places.held[row, word] & ~places.bits[word] != NO_PLACES:
            return False
    assign(places.work[0], places.held[row])
    return True


# -- plans of the whole queue


@inlined
def _open_places_plan(state: State, now: float) -> int:
    places, queue = state.free, state.queue
    if state.options[0].backfill == CONSERVATIVE:  # the plan is kept
        return -1
    plan_running(state, now)
    rank = following(queue.nodes, queue.levels, 0, NO_JOB - 1, 0, 0.0, 0.0)
    while rank >= 0:
        item = queue.job_at[rank]
        row, job = places.jobs[item].row, state.jobs[item]
        if row >= 0 and job.reserved < np.inf:
            reserve(places.plan, places.held[row], job.reserved, job.reserved + job.planned)
        rank = following(queue.nodes, queue.levels, rank + 1, NO_JOB - 1, 0, 0.0, 0.0)
    return -1


@inlined
def _no_other_backfill(state: State, now: float) -> None:
    pass


@inlined
def _not_apart(state: State, item: int, time: float) -> bool:
    return False


#: The implementation of the operations by numbered processors.
NUMBERED: dict[Any, Any] = {
    asked.room: _has_places,
    asked.move_on: _move_places,
    asked.occupy: _take_places,
    asked.release: _return_places,
    asked.settle: _settle_shares,
    asked.end_of: _end_with_others,
    asked.longest: _longest_with_others,
    asked.extend: _extend_places,
    asked.free_now: _count_idle,
    asked.open_pass: _open_places,
    asked.is_kept: _places_are_kept,
    asked.can_start: _places_suffice,
    asked.started: _places_started,
    asked.protect: _protect_places,
    asked.find: _find_places,
    asked.reserve: reserve_places,
    asked.cancel: _cancel_places,
    asked.open_round: _nothing_remembered,
    asked.move_forward: _move_places_forward,
    asked.close_round: _nothing_remembered,
    asked.renew: plan_running,
    asked.can_begin: places_can_begin,
    asked.serve_otherwise: _no_other_backfill,
    asked.open_plan: _open_places_plan,
    asked.plan_apart: _not_apart,
}
