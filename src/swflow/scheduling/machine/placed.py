"""Machines of numbered processors: what the engine asks of them, answered by sets of processors and a timetable."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from swflow.kernels import lean
from swflow.scheduling.engine import machine as asked
from swflow.scheduling.engine.heap import ELEMENT, change, pop
from swflow.scheduling.engine.machine import AHEAD, STANDING
from swflow.scheduling.engine.queue import NOBODY, following, put
from swflow.scheduling.engine.state import CONSERVATIVE, State, begin, line_up, take
from swflow.scheduling.machine.places import (
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
    holds,
    last_out,
    longest_run,
    next_in,
    next_out,
    remove,
    size_of,
    sort_by_key,
    take_lowest,
)
from swflow.scheduling.machine.shared import (
    Resources,
    Sharing,
    choose_least_shared,
    enter_in_plan,
    leave_in_plan,
    limit_of,
    new_sharing,
    share,
    whole_nodes,
)
from swflow.scheduling.machine.timetable import (
    Timetable,
    choose_later,
    earliest_step,
    forget_past,
    keep,
    new_timetable,
    reset,
    steps_of,
    vacate,
)

#: What is constant: the allocation.
MANNER = np.dtype([("allocation", np.int64)])

#: What changes: where next-fit goes on; how many ranges are in the pool; rows that reservations gave back, and the
#: first that none had; jobs that came or went since the shared resources were last looked at; who started since the
#: head got its reservation; the head of a reservation table; whether this pass has a timetable; and windows that ended.
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

#: Where a job is: its first range of processors and how many it has; the row of its reservation, -1 without one.
PLACEMENT = np.dtype([("first", np.int64), ("ranges", np.int32), ("row", np.int32)])


class Spots(NamedTuple):
    """
    What reservations leave to those who start in a pass.

    Of the steps of a pass, the first is now and each other one a blocker, a reservation or a window, in order of their
    starts: ``open`` has the processors that it and those before it leave. A step's ``free`` is the widest job that
    these hold; while ``stale``, the widest that they held before the last starts.
    """

    open: np.ndarray
    blocked: np.ndarray
    stale: np.ndarray


class Placed(NamedTuple):
    """The processors of a machine."""

    manner: np.ndarray
    now: np.ndarray
    jobs: np.ndarray
    pool: np.ndarray  # ranges of processors
    bits: np.ndarray  # who is free
    ends: np.ndarray  # the running jobs by planned end, then in order of their starts
    spots: Spots
    work: np.ndarray  # scratch; the first set is the last one found
    held: np.ndarray  # the processors of reservations that stay
    spare_rows: np.ndarray
    table: Timetable
    ahead: Timetable  # of the whole queue
    windows: np.ndarray
    # Since when a processor idles (if busy: until when by plan), and the idle ones, a list sorted by that.
    idle_since: np.ndarray
    idle_next: np.ndarray
    idle_previous: np.ndarray
    items: np.ndarray  # scratch
    moved: np.ndarray
    sharing: Sharing


def new_places(
    machine: int,
    count: int,
    allocation: str,
    lookahead: int,
    windows: Sequence[tuple[float, float, int]],
    resources: Resources | None,
    plans_ahead: bool,
    widest: int,
) -> Placed:
    """Make an idle machine for ``count`` jobs, with sets as large as the ``widest`` machine needs them."""
    words = (widest + 63) >> 6
    running = min(machine, count) + 1
    number = ALLOCATIONS[allocation]
    manner, now, jobs = np.zeros(1, MANNER), np.zeros(1, COUNTERS), np.zeros(count, PLACEMENT)
    manner["allocation"] = number
    now["head"], jobs["row"] = -1, -1
    idle = machine + 1 if number == LONGEST_IDLE else 1
    blockers = len(windows) + lookahead + 2
    bits = np.zeros(words, np.uint64)
    fill(bits, 0, machine - 1)
    order = np.arange(machine)  # of the idle processors; the last place is both ends of their list
    following_one, previous = np.append(order + 1, 0), np.append(order - 1, machine - 1)
    previous[0] = machine
    return Placed(
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
        table=new_timetable(16 + 2 * len(windows), words),
        ahead=new_timetable(16 + 2 * len(windows) if plans_ahead else 0, words),
        windows=np.array(windows, np.float64).reshape(-1, 3),
        idle_since=np.full(idle, -np.inf),
        idle_next=following_one if idle > 1 else np.empty(1, np.int64),
        idle_previous=previous if idle > 1 else np.empty(1, np.int64),
        items=np.empty((2, idle), np.int64),
        moved=np.empty(running if resources else 0, np.int64),
        sharing=new_sharing(resources, count, machine, number == THRESHOLD),
    )


def larger(places: Placed) -> Placed:
    """Return the same with twice the room for ranges, reservations and what is planned, here or at several machines."""

    def doubled(array: np.ndarray, axis: int) -> np.ndarray:
        return np.concatenate([array, np.empty_like(array)], axis)

    def doubled_table(table: Timetable) -> Timetable:
        times, slots, sizes, spare = (doubled(one, -1) for one in (table.times, table.slots, table.sizes, table.spare))
        return Timetable(times, slots, doubled(table.free, -2), sizes, spare, table.numbers)

    return places._replace(
        pool=doubled(places.pool, -2),
        held=doubled(places.held, -2),
        spare_rows=doubled(places.spare_rows, -1),
        table=doubled_table(places.table),
        ahead=doubled_table(places.ahead),
    )


@lean
def _has_places(state: State, coming: int) -> bool:
    options, core, places = state.options[0], state.now[0], state.free
    waiting = core.queued + coming
    around = core.running + waiting + options.windows
    enough = places.now[0].ranges + options.machine <= places.pool.shape[0]
    enough &= places.ahead.times.size == 0 or 2 * around + 8 <= places.ahead.times.size
    if options.backfill >= CONSERVATIVE:
        enough &= waiting <= places.held.shape[0] and 2 * around + 8 <= places.table.times.size
    elif options.lookahead > 1 or options.windows > 0:
        around = min(core.running + waiting, options.machine) + min(options.lookahead, waiting) + options.windows
        enough &= 2 * around + 8 <= places.table.times.size
    return enough


@lean
def _move_places(state: State, now: float) -> None:
    options, places = state.options[0], state.free
    if options.backfill >= CONSERVATIVE:
        if steps_of(places.table) == 0:
            _plan_running(state, now)
        forget_past(places.table, now)
    if options.windows and places.manner[0].allocation == LONGEST_IDLE:
        _reopen_idle(state, now)


@lean
def _reopen_idle(state: State, now: float) -> None:
    """Let the processors of windows that ended idle since then."""
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
    count = 0
    place = next_in(places.bits, 0, machine)
    while place < machine:
        places.items[0, count] = place
        count += 1
        place = next_in(places.bits, place + 1, machine)
    sort_by_key(places.items[0], places.idle_since, count, places.items[1])
    before = machine
    for index in range(count):
        place = places.items[0, index]
        places.idle_next[before] = place
        places.idle_previous[place] = before
        before = place
    places.idle_next[before] = machine
    places.idle_previous[machine] = before


# -- running jobs


@lean
def _take_places(state: State, item: int, now: float) -> None:
    """Give a job the set of processors that was found last."""
    places, job = state.free, state.jobs[item]
    placement, counters = places.jobs[item], places.now[0]
    if placement.row >= 0:
        _free_row(places.jobs, places.spare_rows, places.now, item)
    remove(places.bits, places.work[0])
    end = _write_ranges(places.work[0], places.pool, counters.ranges, state.options[0].machine)
    placement.first = counters.ranges
    placement.ranges = end - counters.ranges
    counters.ranges = end
    counters.pointer = (places.pool[end - 1, 1] + 1) % state.options[0].machine
    if places.manner[0].allocation == LONGEST_IDLE:
        _end_idleness(state, item)
    _insert_end(places.ends, state.now[0].running, job.planned_end, item)
    if places.moved.size > 0:
        places.moved[counters.moved] = item
        counters.moved += 1
        enter_in_plan(places.sharing, places.sharing.usage, places.pool, placement.first, placement.ranges, item)


@lean
def _write_ranges(bits: np.ndarray, pool: np.ndarray, at: int, machine: int) -> int:
    """Write the ranges of a set into the pool; return where they end."""
    first = next_in(bits, 0, machine)
    while first < machine:
        after = next_out(bits, first, machine)
        pool[at, 0] = first
        pool[at, 1] = after - 1
        at += 1
        first = next_in(bits, after, machine)
    return at


@lean
def _insert_end(ends: np.ndarray, count: int, time: float, item: int) -> None:
    """Insert a job into ``count`` jobs that are sorted by their planned ends, behind its equals."""
    place = count
    while place > 0 and ends[place - 1].time > time:
        ends[place].time = ends[place - 1].time
        ends[place].job = ends[place - 1].job
        place -= 1
    ends[place].time = time
    ends[place].job = item


@lean
def _remove_end(ends: np.ndarray, count: int, item: int) -> None:
    """Remove a job from ``count`` jobs."""
    place = 0
    while ends[place].job != item:
        place += 1
    for later in range(place + 1, count):
        ends[later - 1].time = ends[later].time
        ends[later - 1].job = ends[later].job


@lean
def _end_idleness(state: State, item: int) -> None:
    """Take the processors of a job that starts out of the list of the idle ones."""
    places = state.free
    placement, until = places.jobs[item], state.jobs[item].planned_end
    for index in range(placement.first, placement.first + placement.ranges):
        for place in range(places.pool[index, 0], places.pool[index, 1] + 1):
            before, behind = places.idle_previous[place], places.idle_next[place]
            places.idle_next[before] = behind
            places.idle_previous[behind] = before
            places.idle_since[place] = until


@lean
def _begin_idleness(state: State, item: int, now: float) -> None:
    """Put the processors of a job that ended to the end of the idle ones, in order among equals."""
    places, machine = state.free, state.options[0].machine
    placement = places.jobs[item]
    before = places.idle_previous[machine]
    while before != machine and places.idle_since[before] >= now:
        before = places.idle_previous[before]
    for index in range(placement.first, placement.first + placement.ranges):
        for place in range(places.pool[index, 0], places.pool[index, 1] + 1):
            places.idle_since[place] = now
            behind = places.idle_next[before]
            while behind != machine and behind < place:
                before, behind = behind, places.idle_next[behind]
            places.idle_next[before] = place
            places.idle_previous[place] = before
            places.idle_next[place] = behind
            places.idle_previous[behind] = place
            before = place


@lean
def _add_places(places: Placed, item: int, bits: np.ndarray) -> None:
    """Add the processors of a job that was started to a set."""
    placement = places.jobs[item]
    for index in range(placement.first, placement.first + placement.ranges):
        fill(bits, int(places.pool[index, 0]), int(places.pool[index, 1]))


@lean
def _return_places(state: State, item: int, now: float) -> None:
    places, job = state.free, state.jobs[item]
    counters = places.now[0]
    if places.manner[0].allocation == LONGEST_IDLE:
        _begin_idleness(state, item, now)
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


@lean
def _vacate_early(state: State, item: int, now: float) -> None:
    """Give the rest of a job's time back, but not what windows have of it."""
    places = state.free
    places.work[3, :] = NO_PLACES
    _add_places(places, item, places.work[3])
    vacate(places.table, places.work[3], now, state.jobs[item].planned_end)
    _plan_windows(state, places.table)


@lean
def _settle_shares(state: State, now: float, come: bool) -> None:
    places = state.free
    if places.moved.size > 0 and (places.now[0].moved > 0 or (come and places.sharing.numbers[1] > 0)):
        _share_out(state, now, come)


@lean
def _share_out(state: State, now: float, come: bool) -> None:
    """Let those who came or went change the shadows of their nodes, and the ends of their neighbours."""
    places = state.free
    sharing, counters = places.sharing, places.now[0]
    moved = places.moved[: counters.moved]
    count = share(sharing, places.pool, places.jobs, state.jobs, now, moved, come)
    counters.moved = 0
    for index in range(count):
        item = sharing.place[index].changed
        change(state.running, state.now[0].running, sharing.job[item].end, item)


@lean
def _end_with_others(state: State, item: int) -> float:
    if state.free.sharing.slows:
        return state.free.sharing.job[item].end
    return state.jobs[item].start + state.jobs[item].run


@lean
def _longest_with_others(state: State, item: int) -> float:
    if state.free.sharing.slows:
        return state.free.sharing.job[item].allowed
    return state.predicted[item].estimate


@lean
def _extend_places(state: State, item: int, now: float) -> None:
    places, until = state.free, state.jobs[item].planned_end
    placement = places.jobs[item]
    _remove_end(places.ends, state.now[0].running, item)
    _insert_end(places.ends, state.now[0].running - 1, until, item)
    if state.options[0].backfill == CONSERVATIVE:
        places.work[3, :] = NO_PLACES
        _add_places(places, item, places.work[3])
        keep(places.table, places.work[3], now, until)
    if places.manner[0].allocation == LONGEST_IDLE:
        for index in range(placement.first, placement.first + placement.ranges):
            for place in range(places.pool[index, 0], places.pool[index, 1] + 1):
                places.idle_since[place] = until


# -- passes


@lean
def _count_idle(state: State) -> int:
    return state.options[0].machine - state.now[0].busy


@lean
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


@lean
def _block_windows(state: State, now: float) -> None:
    places, machine = state.free, state.options[0].machine
    for window in range(state.options[0].windows):
        if places.windows[window, 1] > now:
            places.work[3, :] = NO_PLACES
            fill(places.work[3], machine - int(places.windows[window, 2]), machine - 1)
            _block(places.spots, state.steps, state.now, places.windows[window, 0], places.work[3])


@lean
def _block(spots: Spots, steps: np.ndarray, now: np.ndarray, start: float, blocked: np.ndarray) -> None:
    """Add a blocker: who starts now and ends after its start must not be on its processors."""
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


@lean
def _places_are_kept(state: State, now: float) -> bool:
    """
    Return whether the head would be promised the same processors at the same time.

    Whoever was backfilled ends before that time or is elsewhere, so that the head finds the same room; but the choice
    in it may depend on more than the processors that it takes.
    """
    places = state.free
    allocation = places.manner[0].allocation
    if places.now[0].started == 0 or state.now[0].steps < 2:
        return True
    if allocation in (FIRST_FIT, FIRST_CONTIGUOUS):
        return True
    if state.options[0].shapes:
        return False
    places.now[0].started = 0
    return _same_for_head(state, now)


@lean
def _same_for_head(state: State, now: float) -> bool:
    places = state.free
    head = state.held[0]
    if _find_for_head(state, head, state.jobs[head].processors, now) != state.steps[1].time:
        return False
    same = True
    for word in range(places.bits.size):
        same &= places.work[0, word] == places.spots.blocked[1, word]
    return same


@lean
def _places_can_start(state: State, item: int, now: float) -> bool:
    job = state.jobs[item]
    if not state.options[0].shapes:
        return _leaves_room(state, item, job.processors, now + job.planned)
    chosen = -1
    for k in range(state.shapes[item].first, state.shapes[item].end):
        shape = state.shapes[k]
        if chosen >= 0 and shape.planned >= state.shapes[chosen].planned:
            continue
        if _leaves_room(state, item, shape.processors, now + shape.planned):
            chosen = k
    if chosen >= 0:
        take(state, item, chosen)
    return chosen >= 0


@lean
def _leaves_room(state: State, item: int, width: int, end: float) -> bool:
    """Return whether a job can start now and end then, after choosing its processors."""
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


@lean
def _group_with_room(
    spots: Spots, steps: np.ndarray, count: int, allocation: int, machine: int, width: int, end: float
) -> int:
    """Return the last of the steps that begin before an end if it has room for so many processors, else -1."""
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


@lean
def _look_again(spots: Spots, steps: np.ndarray, group: int, allocation: int, machine: int) -> None:
    """Find the widest job that the processors of a step hold."""
    spots.stale[group] = False
    if allocation in (FIRST_CONTIGUOUS, BEST_CONTIGUOUS):
        steps[group].free = longest_run(spots.open[group], machine)
    else:
        steps[group].free = size_of(spots.open[group])


@lean
def _choose_idle(places: Placed, eligible: np.ndarray, width: int, machine: int, chosen: np.ndarray) -> None:
    """Choose those of the eligible processors, free now, that idle for longest."""
    chosen[:] = NO_PLACES
    for word in range(eligible.size):
        if eligible[word] & ~places.bits[word] != NO_PLACES:
            # Among them are some whose job ends now without being done yet: these are in no list.
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
            return
    place = places.idle_next[machine]
    while width > 0:
        if holds(eligible, place):
            fill(chosen, place, place)
            width -= 1
        place = places.idle_next[place]


@lean
def _places_started(state: State, item: int, now: float) -> None:
    places = state.free
    places.now[0].started += 1
    _shut_out(places.spots, state.now[0].steps, places.work[0])
    _look_again(places.spots, state.steps, 0, places.manner[0].allocation, state.options[0].machine)  # to be exact
    if places.now[0].planned:
        keep(places.table, places.work[0], now, state.jobs[item].planned_end)


@lean
def _shut_out(spots: Spots, count: int, taken: np.ndarray) -> None:
    """Take the processors of a job that starts now out of what reservations leave."""
    for index in range(count):
        remove(spots.open[index], taken)
        spots.stale[index] = True


@lean
def _find_places(state: State, item: int, width: int, length: float, now: float, where: int) -> float:
    places, options = state.free, state.options[0]
    if where == AHEAD:
        return _find_in_table(state, places.ahead, width, length)
    if where == STANDING:
        return _find_in_table(state, places.table, width, length)
    if options.lookahead <= 1 and options.windows == 0:
        return _find_for_head(state, item, width, now)
    if not places.now[0].planned:
        _plan_running(state, now)
        places.now[0].planned = 1
    return _find_in_table(state, places.table, width, length)


@lean
def _find_in_table(state: State, table: Timetable, width: int, length: float) -> float:
    """Find the first place and time at which a job fits into a timetable."""
    places, machine = state.free, state.options[0].machine
    allocation, pointer = places.manner[0].allocation, places.now[0].pointer
    chosen, eligible, spare = places.work[0], places.work[1], places.work[2]
    step = earliest_step(table, width, length, allocation, machine, eligible, spare)
    if step == steps_of(table):
        return np.inf
    if not choose_later(table, step, width, allocation, pointer, machine, eligible, spare, chosen):
        _choose_idle(places, eligible, width, machine, chosen)
    return table.times[step]


@lean
def _find_for_head(state: State, head: int, width: int, now: float) -> float:
    """
    Find the reservation of a head that cannot start, where running jobs alone are in its way.

    The running jobs are gone through in order of planned end, each adding its processors to the free ones.
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
                whole_nodes(sharing, chosen, machine)  # new neighbours would hold the head up
        elif allocation != LONGEST_IDLE:
            choose(eligible, width, allocation, places.now[0].pointer, machine, chosen)
        elif time == now:
            _choose_idle(places, eligible, width, machine, chosen)
        else:
            # All that were free before are idle for longer than those that this moment frees.
            assign(chosen, spare)
            remove(eligible, spare)
            take_lowest(eligible, width - before, chosen)
        return time
    return np.inf


@lean
def _plan_running(state: State, now: float) -> None:
    """Make the timetable anew, of the running jobs and the windows."""
    _plan_into(state, state.free.table, now)


@lean
def _plan_into(state: State, table: Timetable, now: float) -> None:
    places = state.free
    reset(table, state.options[0].machine)
    forget_past(table, now)
    for index in range(state.now[0].running):
        end = places.ends[index]
        if end.time > now:
            places.work[3, :] = NO_PLACES
            _add_places(places, end.job, places.work[3])
            keep(table, places.work[3], now, end.time)
    _plan_windows(state, table)


@lean
def _plan_windows(state: State, table: Timetable) -> None:
    """Take the processors of the windows out of a timetable."""
    places, machine = state.free, state.options[0].machine
    for window in range(state.options[0].windows):
        places.work[4, :] = NO_PLACES
        fill(places.work[4], machine - int(places.windows[window, 2]), machine - 1)
        keep(table, places.work[4], places.windows[window, 0], places.windows[window, 1])


@lean
def _reserve_places(state: State, item: int, now: float) -> None:
    job, places = state.jobs[item], state.free
    _block(places.spots, state.steps, state.now, job.reserved, places.work[0])
    if places.now[0].planned and job.reserved < np.inf:
        keep(places.table, places.work[0], job.reserved, job.reserved + job.planned)


@lean
def _unreserve_places(state: State, item: int) -> None:
    pass  # the next whole pass begins anew


# -- reservations that stay


@lean
def _hold_places(state: State, item: int) -> None:
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
        keep(places.table, places.work[0], job.reserved, job.reserved + job.planned)


@lean
def _free_row(jobs: np.ndarray, spare_rows: np.ndarray, now: np.ndarray, item: int) -> None:
    """Give the row of a reservation back."""
    spare_rows[now[0].spare_rows] = jobs[item].row
    now[0].spare_rows += 1
    jobs[item].row = -1


@lean
def _let_places_go(state: State, item: int) -> None:
    places, job = state.free, state.jobs[item]
    if job.reserved < np.inf:
        vacate(places.table, places.held[places.jobs[item].row], job.reserved, job.reserved + job.planned)
    _free_row(places.jobs, places.spare_rows, places.now, item)


@lean
def _nothing_remembered(state: State) -> None:
    pass


@lean
def _move_places_forward(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    _let_places_go(state, item)
    job.reserved = _find_in_table(state, state.free.table, job.processors, job.planned)
    _hold_places(state, item)


@lean
def _places_can_begin(state: State, item: int) -> bool:
    places = state.free
    row = places.jobs[item].row
    for word in range(places.bits.size):
        if places.held[row, word] & ~places.bits[word] != NO_PLACES:
            return False
    assign(places.work[0], places.held[row])
    return True


# -- the reservation table


@lean
def _serve_table(state: State, now: float) -> None:
    """
    Give the head a reservation, and others if their turn comes no later.

    Reservations stay until a job ends early or another job comes to the head; until then, only newcomers are added.
    """
    core, places, queue, options = state.now[0], state.free, state.queue, state.options[0]
    replan = core.ended_early or core.corrected
    while core.queued > 0:
        head = queue.job_at[following(queue.nodes, queue.levels, 0, NOBODY - 1, 0, 0.0, 0.0)]
        if options.formula:
            line_up(state, queue, options.formula, now, NOBODY - 1, 0, 0.0, 0.0)
            head = state.line[0].job
        anew = replan or places.now[0].head != head
        replan = False
        if anew:
            places.now[0].head = head
            _renew_table(state, head, now)
        if anew or core.newcomers > 0:
            _add_to_table(state, head, now, anew)
        waiting = line_up(state, queue, options.formula, now, -1, NOBODY - 1, 0.0, now)
        while waiting > 0:
            item = state.line[0].job
            waiting = pop(state.line, waiting)
            if _places_can_begin(state, item):
                begin(state, item, now)
                if item == head:
                    break  # the others are to make room for the next head
        if np.isnan(state.jobs[head].start):
            return
    places.now[0].head = -1


@lean
def _renew_table(state: State, head: int, now: float) -> None:
    """Take all promises back, and give the head its reservation."""
    places, queue = state.free, state.queue
    rank = following(queue.nodes, queue.levels, 0, NOBODY - 1, 0, 0.0, 0.0)
    while rank >= 0:
        item = queue.job_at[rank]
        if places.jobs[item].row >= 0:
            _free_row(places.jobs, places.spare_rows, places.now, item)
            state.jobs[item].reserved = np.nan
            put(queue.nodes, queue.levels, rank, state.jobs[item].processors, np.inf)
        rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
    _plan_running(state, now)
    _enter_in_table(state, head, np.inf)


@lean
def _enter_in_table(state: State, item: int, latest: float) -> None:
    """Give a job a reservation, unless that would begin after ``latest``."""
    job, queue = state.jobs[item], state.queue
    time = _find_in_table(state, state.free.table, job.processors, job.planned)
    if time <= latest and (time < np.inf or latest == np.inf):
        job.reserved = time
        _hold_places(state, item)
        put(queue.nodes, queue.levels, job.rank, job.processors, time)


@lean
def _add_to_table(state: State, head: int, now: float, anew: bool) -> None:
    """Give those a reservation whose turn comes no later than the head's and who may overtake by count, too."""
    core, tree, places = state.now[0], state.backfill_queue, state.free
    latest, width = state.jobs[head].reserved, state.jobs[head].processors
    free = state.options[0].machine - core.busy
    # When enough processors for the head will be free, wherever they lie, and how many it then leaves.
    shadow, extra = now, free
    index = 0  # of jobs that end at once the first to start count first, as Guim et al. count them
    while extra < width:
        shadow = max(places.ends[index].time, now)
        extra += state.jobs[places.ends[index].job].processors
        index += 1
    extra -= width
    formula = state.options[0].backfill_formula
    waiting = line_up(state, tree, formula, now, free, 0, 0.0, 0.0)
    while waiting > 0:
        item = state.line[0].job
        waiting = pop(state.line, waiting)
        job = state.jobs[item]
        if places.jobs[item].row >= 0 or not (anew or item >= core.first_newcomer):
            continue
        if now + job.planned < shadow or job.processors < extra:
            _enter_in_table(state, item, latest)


# -- plans of the whole queue


@lean
def _open_places_plan(state: State, now: float) -> int:
    places, queue = state.free, state.queue
    _plan_into(state, places.ahead, now)
    if state.options[0].backfill < CONSERVATIVE:
        return -1
    rank = following(queue.nodes, queue.levels, 0, NOBODY - 1, 0, 0.0, 0.0)
    while rank >= 0:
        item = queue.job_at[rank]
        row, job = places.jobs[item].row, state.jobs[item]
        if row >= 0 and job.reserved < np.inf:
            keep(places.ahead, places.held[row], job.reserved, job.reserved + job.planned)
        rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
    return -1


@lean
def _plan_places(state: State, item: int, time: float) -> bool:
    job = state.jobs[item]
    job.reserved = time
    if time < np.inf:
        keep(state.free.ahead, state.free.work[0], job.reserved, job.reserved + job.planned)
    return True


#: What numbered processors answer.
PLACED: dict[Any, Any] = {
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
    asked.can_start: _places_can_start,
    asked.started: _places_started,
    asked.find: _find_places,
    asked.reserve: _reserve_places,
    asked.unreserve: _unreserve_places,
    asked.hold: _hold_places,
    asked.let_go: _let_places_go,
    asked.open_round: _nothing_remembered,
    asked.move_forward: _move_places_forward,
    asked.close_round: _nothing_remembered,
    asked.renew: _plan_running,
    asked.can_begin: _places_can_begin,
    asked.serve_in_table: _serve_table,
    asked.open_plan: _open_places_plan,
    asked.plan: _plan_places,
    asked.drop: _unreserve_places,
}
