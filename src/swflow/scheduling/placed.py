"""Simulation kernel for machines whose processors are numbered: who runs when, and where."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from swflow.compilation import njit
from swflow.errors import SwflowError
from swflow.jobs import check_arrays
from swflow.scheduling.allocation import (
    ALLOCATIONS,
    BEST_CONTIGUOUS,
    FIRST_CONTIGUOUS,
    LEAST_SHARED,
    LONGEST_IDLE,
    THRESHOLD,
    choose,
    fill,
    holds,
    last_out,
    longest_run,
    next_in,
    next_out,
    size_of,
    sort_by_key,
    take_lowest,
)
from swflow.scheduling.kernels import checked_windows, order_of
from swflow.scheduling.queue_order import dynamic_key
from swflow.scheduling.sharing import (
    MOST_PENALTY,
    NOTHING_SHARED,
    Resources,
    Sharing,
    choose_least_shared,
    enter_in_plan,
    leave_in_plan,
    longest_stretch,
    new_sharing,
    penalty_of,
    share,
    whole_nodes,
)
from swflow.scheduling.timetable import (
    Timetable,
    advance,
    choose_later,
    earliest_step,
    new_timetable,
    occupy,
    reset,
    steps_of,
    vacate,
    with_room,
)

#: The orders of the queue, as the kernel numbers them: by arrival, by given keys, or by a formula that changes.
FCFS, GIVEN, FORMULA = range(3)

#: The kernel's numbers for backfilling with many reservations; otherwise it is told how many jobs have one.
CONSERVATIVE, RESERVATION_TABLE = -1, -2

#: Seconds by which a prediction grows, one after the other, each time that a job outruns it.
INCREMENTS = np.array([60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000], np.float64)

_NONE = np.uint64(0)

# Places in State.numbers.
_FREE, _RUNNING, _QUEUED, _POINTER, _RANGES, _HEAD, _STARTED, _ROWS, _LEAVING, _MOVED = range(10)


class Jobs(NamedTuple):
    """The jobs, in order of (submit time, job id): what is known of them, and what the simulation finds."""

    submit: np.ndarray
    run: np.ndarray
    planned: np.ndarray  # what the scheduler takes for the run time; predictions change it
    processors: np.ndarray
    start: np.ndarray  # NaN while the job waits
    until: np.ndarray  # planned end; of a waiting job with a reservation, the reservation's start
    first_range: np.ndarray
    ranges: np.ndarray  # how many ranges of processors the job has
    row: np.ndarray  # where a reservation's processors are kept; -1 without one
    key: np.ndarray
    backfill_key: np.ndarray


class State(NamedTuple):
    """The machine, its queue and who runs."""

    numbers: np.ndarray
    free: np.ndarray
    # A heap by (true end, job), and a list sorted by planned end.
    ends: np.ndarray
    enders: np.ndarray
    where: np.ndarray  # the place of a running job in the heap
    planned_ends: np.ndarray
    planned_jobs: np.ndarray
    queue: np.ndarray
    backfill_queue: np.ndarray
    widths: np.ndarray  # the processors of the jobs of the backfill queue, for a quick look
    spare: np.ndarray
    leaving: np.ndarray  # who started in this pass
    moved: np.ndarray  # who came or went since the shared resources were last looked at
    # Since when a processor idles (if busy: until when by plan), and the idle ones, a list sorted by that.
    idle_since: np.ndarray
    idle_next: np.ndarray
    idle_previous: np.ndarray
    sharing: Sharing


class Blockers(NamedTuple):
    """
    What a start may not run into: reservations and maintenance windows, sorted by their start.

    ``open[c]`` is the set of the free processors that the first ``c`` of them leave, and ``fitting[c]`` the
    widest job that it holds; while ``stale[c]``, the widest that it held before the last starts.
    """

    starts: np.ndarray
    places: np.ndarray
    open: np.ndarray
    fitting: np.ndarray
    stale: np.ndarray
    number: np.ndarray


# -- running jobs


@njit
def _rise(state: State, place: int, end: float, job: int) -> None:
    """Put a job at a place of the heap, or further up where it belongs."""
    ends, enders = state.ends, state.enders
    while place > 0:
        parent = (place - 1) >> 1
        if ends[parent] < end or (ends[parent] == end and enders[parent] < job):
            break
        ends[place] = ends[parent]
        enders[place] = enders[parent]
        state.where[enders[place]] = place
        place = parent
    ends[place] = end
    enders[place] = job
    state.where[job] = place


@njit
def _sink(state: State, place: int, size: int, end: float, job: int) -> None:
    """Put a job at a place of the heap of ``size`` jobs, or further down where it belongs."""
    ends, enders = state.ends, state.enders
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            ends[other] < ends[child] or (ends[other] == ends[child] and enders[other] < enders[child])
        ):
            child = other
        if end < ends[child] or (end == ends[child] and job < enders[child]):
            break
        ends[place] = ends[child]
        enders[place] = enders[child]
        state.where[enders[place]] = place
        place = child
    ends[place] = end
    enders[place] = job
    state.where[job] = place


@njit
def _share(jobs: Jobs, state: State, pool: np.ndarray, now: float, come: bool) -> None:
    """Let those who came or went change the shadows of their nodes, and the ends of their neighbours."""
    sharing, numbers = state.sharing, state.numbers
    moved = state.moved[: numbers[_MOVED]]
    count = share(sharing, pool, jobs.first_range, jobs.ranges, jobs.start, jobs.run, now, moved, come)
    numbers[_MOVED] = 0
    for index in range(count):
        job = sharing.place[index].changed
        place, end = state.where[job], sharing.job[job].end
        if end <= state.ends[place]:
            _rise(state, place, end, job)
        else:
            _sink(state, place, numbers[_RUNNING], end, job)


@njit
def _insert_planned(state: State, count: int, end: float, job: int) -> None:
    """Insert a job into the ``count`` running ones that are sorted by planned end."""
    place = count
    while place > 0 and state.planned_ends[place - 1] > end:
        state.planned_ends[place] = state.planned_ends[place - 1]
        state.planned_jobs[place] = state.planned_jobs[place - 1]
        place -= 1
    state.planned_ends[place] = end
    state.planned_jobs[place] = job


@njit
def _remove_planned(state: State, count: int, job: int) -> None:
    """Remove a job from the ``count`` running ones that are sorted by planned end."""
    place = 0
    while state.planned_jobs[place] != job:
        place += 1
    for later in range(place + 1, count):
        state.planned_ends[later - 1] = state.planned_ends[later]
        state.planned_jobs[later - 1] = state.planned_jobs[later]


@njit
def _begin(
    jobs: Jobs, state: State, pool: np.ndarray, now: float, job: int, places: np.ndarray, allocation: int, machine: int
) -> None:
    """Start a job on a set of free processors."""
    numbers = state.numbers
    jobs.start[job] = now
    jobs.until[job] = now + jobs.planned[job]
    jobs.first_range[job] = numbers[_RANGES]
    first = next_in(places, 0, machine)
    while first < machine:
        after = next_out(places, first, machine)
        pool[numbers[_RANGES], 0] = first
        pool[numbers[_RANGES], 1] = after - 1
        numbers[_RANGES] += 1
        numbers[_POINTER] = after % machine
        if allocation == LONGEST_IDLE:
            for place in range(first, after):
                before, behind = state.idle_previous[place], state.idle_next[place]
                state.idle_next[before] = behind
                state.idle_previous[behind] = before
                state.idle_since[place] = jobs.until[job]
        first = next_in(places, after, machine)
    jobs.ranges[job] = numbers[_RANGES] - jobs.first_range[job]
    for word in range(places.size):
        state.free[word] &= ~places[word]
    _insert_planned(state, numbers[_RUNNING], jobs.until[job], job)
    _rise(state, numbers[_RUNNING], now + jobs.run[job], job)
    numbers[_RUNNING] += 1
    numbers[_FREE] -= jobs.processors[job]
    numbers[_STARTED] += 1
    state.leaving[numbers[_LEAVING]] = job
    numbers[_LEAVING] += 1
    if state.moved.size > 0:
        state.moved[numbers[_MOVED]] = job
        numbers[_MOVED] += 1
        enter_in_plan(state.sharing, state.sharing.usage, pool, jobs.first_range[job], jobs.ranges[job], job)


@njit
def _complete(
    jobs: Jobs, state: State, pool: np.ndarray, now: float, allocation: int, machine: int, places: np.ndarray
) -> int:
    """Let the first of the running jobs end; return it, and its processors in ``places``."""
    numbers = state.numbers
    job = state.enders[0]
    last = numbers[_RUNNING] - 1
    _sink(state, 0, last, state.ends[last], state.enders[last])
    _remove_planned(state, numbers[_RUNNING], job)
    numbers[_RUNNING] -= 1
    numbers[_FREE] += jobs.processors[job]
    if state.moved.size > 0:
        state.moved[numbers[_MOVED]] = job
        numbers[_MOVED] += 1
    places[:] = _NONE
    # The processors idle from now on, so they go to the end of the idle ones, in order among equals.
    before = machine
    if allocation == LONGEST_IDLE:
        before = state.idle_previous[machine]
        while before != machine and state.idle_since[before] >= now:
            before = state.idle_previous[before]
    for index in range(jobs.first_range[job], jobs.first_range[job] + jobs.ranges[job]):
        first, last = int(pool[index, 0]), int(pool[index, 1])
        fill(state.free, first, last)
        fill(places, first, last)
        if allocation == LONGEST_IDLE:
            for place in range(first, last + 1):
                state.idle_since[place] = now
                behind = state.idle_next[before]
                while behind != machine and behind < place:
                    before, behind = behind, state.idle_next[behind]
                state.idle_next[before] = place
                state.idle_previous[place] = before
                state.idle_next[place] = behind
                state.idle_previous[behind] = place
                before = place
    return job


@njit
def _places_of(jobs: Jobs, pool: np.ndarray, job: int, places: np.ndarray) -> None:
    """Find the processors of a job that was started."""
    places[:] = _NONE
    for index in range(jobs.first_range[job], jobs.first_range[job] + jobs.ranges[job]):
        fill(places, int(pool[index, 0]), int(pool[index, 1]))


@njit
def _relink_idle(state: State, machine: int) -> None:
    """Make the list of the idle processors anew."""
    items = np.empty(machine, np.int64)
    count = 0
    place = next_in(state.free, 0, machine)
    while place < machine:
        items[count] = place
        count += 1
        place = next_in(state.free, place + 1, machine)
    sort_by_key(items, state.idle_since, count, np.empty(machine, np.int64))
    before = machine
    for index in range(count):
        state.idle_next[before] = items[index]
        state.idle_previous[items[index]] = before
        before = items[index]
    state.idle_next[before] = machine
    state.idle_previous[machine] = before


@njit
def _choose_idle(state: State, eligible: np.ndarray, width: int, machine: int, chosen: np.ndarray) -> None:
    """Choose those of the eligible processors, free now, that idle for longest."""
    chosen[:] = _NONE
    for word in range(eligible.size):
        if eligible[word] & ~state.free[word] != _NONE:
            # Among them are some whose job ends now without being done yet: these are in no list.
            items = np.empty(machine, np.int64)
            count = 0
            place = next_in(eligible, 0, machine)
            while place < machine:
                items[count] = place
                count += 1
                place = next_in(eligible, place + 1, machine)
            sort_by_key(items, state.idle_since, count, np.empty(machine, np.int64))
            for index in range(width):
                fill(chosen, items[index], items[index])
            return
    place = state.idle_next[machine]
    while width > 0:
        if holds(eligible, place):
            fill(chosen, place, place)
            width -= 1
        place = state.idle_next[place]


@njit
def _choose_now(
    state: State, eligible: np.ndarray, job: int, width: int, allocation: int, machine: int, chosen: np.ndarray
) -> bool:
    """Choose among processors that are free now, and enough; with a threshold there may be none that will do."""
    if allocation == LONGEST_IDLE:
        _choose_idle(state, eligible, width, machine, chosen)
    elif allocation >= LEAST_SHARED:
        limit = state.sharing.job[job].limit
        return choose_least_shared(state.sharing, state.sharing.usage, eligible, width, job, limit, machine, chosen)
    else:
        choose(eligible, width, allocation, state.numbers[_POINTER], machine, chosen)
    return True


# -- the queue


@njit
def _key(
    order: int, now: float, job: int, jobs: Jobs, given: np.ndarray, formula: int, attributes: np.ndarray
) -> float:
    """Return the key of a job in an order of the queue; what is not a number comes last."""
    key = jobs.submit[job]
    if order == GIVEN:
        key = given[job]
    elif order == FORMULA:
        key = dynamic_key(formula, now, key, jobs.planned[job], jobs.processors[job], attributes[job])
    return np.inf if np.isnan(key) else key


@njit
def _place_of(queue: np.ndarray, keys: np.ndarray, count: int, job: int) -> int:
    """Return the place of a job in a queue of ``count`` jobs that is sorted by key, or where it belongs."""
    key = keys[job]
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        other = queue[middle]
        if keys[other] < key or (keys[other] == key and other < job):
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _insert(items: np.ndarray, count: int, place: int, item: int) -> None:
    """Insert an item into an array of ``count`` items."""
    for later in range(count, place, -1):
        items[later] = items[later - 1]
    items[place] = item


@njit
def _remove(items: np.ndarray, count: int, place: int) -> None:
    """Remove an item from an array of ``count`` items."""
    for later in range(place + 1, count):
        items[later - 1] = items[later]


@njit
def _leave_queues(jobs: Jobs, state: State, both: bool) -> None:
    """Remove the jobs that were started from the queue, or from both."""
    numbers = state.numbers
    queued, leaving = numbers[_QUEUED], numbers[_LEAVING]
    numbers[_QUEUED] = queued - leaving
    numbers[_LEAVING] = 0
    if leaving < 8:
        for index in range(leaving):
            job = state.leaving[index]
            left = queued - index
            _remove(state.queue, left, _place_of(state.queue, jobs.key, left, job))
            if both:
                place = _place_of(state.backfill_queue, jobs.backfill_key, left, job)
                _remove(state.backfill_queue, left, place)
                _remove(state.widths, left, place)
        return
    left = 0
    for place in range(queued):
        if np.isnan(jobs.start[state.queue[place]]):
            state.queue[left] = state.queue[place]
            left += 1
    left = 0
    for place in range(queued if both else 0):
        if np.isnan(jobs.start[state.backfill_queue[place]]):
            state.backfill_queue[left] = state.backfill_queue[place]
            state.widths[left] = state.widths[place]
            left += 1


# -- lookahead backfilling, and none


@njit
def _fits(blockers: Blockers, group: int, width: int, allocation: int, machine: int) -> bool:
    """Return whether the first ``group`` blockers leave room for a job that starts now, and is not refused at once."""
    if blockers.stale[group]:
        blockers.stale[group] = False
        if allocation in (FIRST_CONTIGUOUS, BEST_CONTIGUOUS):
            blockers.fitting[group] = longest_run(blockers.open[group], machine)
        else:
            blockers.fitting[group] = size_of(blockers.open[group])
    return width <= blockers.fitting[group]


@njit
def _block(blockers: Blockers, start: float, places: np.ndarray) -> None:
    """Add a blocker."""
    place = blockers.number[0]
    while place > 0 and blockers.starts[place - 1] > start:
        blockers.starts[place] = blockers.starts[place - 1]
        blockers.places[place] = blockers.places[place - 1]
        place -= 1
    blockers.starts[place] = start
    blockers.places[place] = places
    blockers.number[0] += 1
    for index in range(place, blockers.number[0]):
        for word in range(places.size):
            blockers.open[index + 1, word] = blockers.open[index, word] & ~blockers.places[index, word]
        blockers.fitting[index + 1] = blockers.fitting[index]
        blockers.stale[index + 1] = True


@njit
def _class_of(blockers: Blockers, end: float) -> int:
    """Count the blockers that start before ``end``."""
    low, high = 0, blockers.number[0]
    while low < high:
        middle = (low + high) >> 1
        if blockers.starts[middle] < end:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _start_now(
    jobs: Jobs,
    state: State,
    blockers: Blockers,
    pool: np.ndarray,
    now: float,
    job: int,
    group: int,
    allocation: int,
    machine: int,
    chosen: np.ndarray,
) -> bool:
    """Start a job on processors that the first ``group`` blockers leave, if some will do."""
    if not _choose_now(state, blockers.open[group], job, jobs.processors[job], allocation, machine, chosen):
        return False
    _begin(jobs, state, pool, now, job, chosen, allocation, machine)
    for index in range(blockers.number[0] + 1):
        for word in range(chosen.size):
            blockers.open[index, word] &= ~chosen[word]
        blockers.stale[index] = True
    _fits(blockers, 0, 1, allocation, machine)  # what refuses most jobs is to be exact
    return True


@njit
def _reserve_for_head(
    jobs: Jobs,
    state: State,
    pool: np.ndarray,
    now: float,
    head: int,
    allocation: int,
    machine: int,
    eligible: np.ndarray,
    spare: np.ndarray,
    chosen: np.ndarray,
) -> float:
    """
    Find the reservation of a head that cannot start, where running jobs alone are in its way.

    The running jobs are gone through in order of planned end, each adding its processors to the free ones.
    """
    width = jobs.processors[head]
    usage = state.sharing.usage
    if allocation >= LEAST_SHARED:
        usage = usage.copy()
    eligible[:] = state.free
    size = state.numbers[_FREE]
    running = state.numbers[_RUNNING]
    contiguous = allocation in (FIRST_CONTIGUOUS, BEST_CONTIGUOUS)
    longest = 0  # of the runs that grew
    index = 0
    while index < running:
        time = max(state.planned_ends[index], now)
        before = size
        spare[:] = eligible
        while index < running and state.planned_ends[index] <= time:
            job = state.planned_jobs[index]
            for position in range(jobs.first_range[job], jobs.first_range[job] + jobs.ranges[job]):
                first, last = int(pool[position, 0]), int(pool[position, 1])
                fill(eligible, first, last)
                if contiguous:
                    longest = max(longest, next_out(eligible, last, machine) - last_out(eligible, first) - 1)
            if allocation >= LEAST_SHARED:
                leave_in_plan(state.sharing, usage, pool, jobs.first_range[job], jobs.ranges[job], job)
            size += jobs.processors[job]
            index += 1
        if size < width or (contiguous and longest < width):
            continue
        if allocation >= LEAST_SHARED:
            limit = state.sharing.job[head].limit
            if not choose_least_shared(state.sharing, usage, eligible, width, head, limit, machine, chosen):
                continue
            if allocation == THRESHOLD:
                whole_nodes(state.sharing, chosen, machine)  # new neighbours would hold the head up
        elif allocation != LONGEST_IDLE:
            choose(eligible, width, allocation, state.numbers[_POINTER], machine, chosen)
        elif time == now:
            _choose_idle(state, eligible, width, machine, chosen)
        else:
            # All that were free before are idle for longer than those that this moment frees.
            chosen[:] = spare
            for word in range(spare.size):
                eligible[word] &= ~spare[word]
            take_lowest(eligible, width - before, chosen)
        return time
    return np.inf


@njit
def _plan_running(
    jobs: Jobs,
    state: State,
    table: Timetable,
    pool: np.ndarray,
    windows: np.ndarray,
    now: float,
    machine: int,
    places: np.ndarray,
) -> None:
    """Make the timetable anew, of the running jobs and the maintenance windows."""
    reset(table, machine)
    advance(table, now)
    for index in range(state.numbers[_RUNNING]):
        job = state.planned_jobs[index]
        if jobs.until[job] > now:
            _places_of(jobs, pool, job, places)
            occupy(table, places, now, jobs.until[job])
    _plan_windows(table, windows, machine, places)


@njit
def _plan_windows(table: Timetable, windows: np.ndarray, machine: int, places: np.ndarray) -> None:
    """Take the processors of the maintenance windows out of the timetable."""
    for window in range(windows.shape[0]):
        places[:] = _NONE
        fill(places, machine - int(windows[window, 2]), machine - 1)
        occupy(table, places, windows[window, 0], windows[window, 1])


@njit
def _reserve(
    jobs: Jobs,
    state: State,
    table: Timetable,
    job: int,
    latest: float,
    allocation: int,
    machine: int,
    eligible: np.ndarray,
    spare: np.ndarray,
    chosen: np.ndarray,
) -> float:
    """Find the first place and time at which a job fits into the timetable, and note it there if not after latest."""
    width, planned = jobs.processors[job], jobs.planned[job]
    step = earliest_step(table, width, planned, allocation, machine, eligible, spare)
    if step == steps_of(table) or table.times[step] > latest:
        return np.inf
    time = table.times[step]
    pointer = state.numbers[_POINTER]
    if not choose_later(table, step, width, allocation, pointer, machine, eligible, spare, chosen):
        _choose_idle(state, eligible, width, machine, chosen)
    occupy(table, chosen, time, time + planned)
    return time


@njit
def _serve_ahead(
    jobs: Jobs,
    state: State,
    blockers: Blockers,
    table: Timetable,
    pool: np.ndarray,
    windows: np.ndarray,
    now: float,
    lookahead: int,
    allocation: int,
    machine: int,
    work: np.ndarray,
) -> None:
    """Start the head while it fits; reserve for the first that do not; let others start if they delay none."""
    numbers = state.numbers
    chosen, eligible, spare = work[0], work[1], work[2]
    simple = lookahead == 1 and windows.shape[0] == 0
    planned = False
    numbers[_HEAD] = -1
    numbers[_STARTED] = 0
    blockers.number[0] = 0
    blockers.open[0] = state.free
    blockers.fitting[0] = numbers[_FREE]
    blockers.stale[0] = True
    for window in range(windows.shape[0]):
        if windows[window, 1] > now:
            spare[:] = _NONE
            fill(spare, machine - int(windows[window, 2]), machine - 1)
            _block(blockers, windows[window, 0], spare)
    queued = numbers[_QUEUED]
    reserved = 0
    for place in range(queued):
        if numbers[_FREE] == 0:
            break
        job = state.queue[place]
        width = jobs.processors[job]
        group = _class_of(blockers, now + jobs.planned[job])
        if (
            width <= blockers.fitting[group]
            and _fits(blockers, group, width, allocation, machine)
            and _start_now(jobs, state, blockers, pool, now, job, group, allocation, machine, chosen)
        ):
            if planned:
                occupy(table, chosen, now, jobs.until[job])
            continue
        if lookahead == 0:
            break
        if simple:
            some = False
            for other in range(queued):
                some |= state.widths[other] <= blockers.fitting[0]
            if not some:
                break  # there is nobody whom a reservation could hold up
            time = _reserve_for_head(jobs, state, pool, now, job, allocation, machine, eligible, spare, chosen)
            numbers[_HEAD] = job
            numbers[_STARTED] = 0
        else:
            if not planned:
                _plan_running(jobs, state, table, pool, windows, now, machine, spare)
                planned = True
            time = _reserve(jobs, state, table, job, np.inf, allocation, machine, eligible, spare, chosen)
        _block(blockers, time, chosen)
        jobs.row[job] = 0
        reserved += 1
        if reserved == lookahead:
            break
    if reserved == lookahead and reserved > 0:
        for place in range(queued):
            width = state.widths[place]
            if width > blockers.fitting[0]:
                continue
            job = state.backfill_queue[place]
            if jobs.row[job] == 0 or not np.isnan(jobs.start[job]):
                continue
            group = _class_of(blockers, now + jobs.planned[job])
            if (
                width <= blockers.fitting[group]
                and _fits(blockers, group, width, allocation, machine)
                and _start_now(jobs, state, blockers, pool, now, job, group, allocation, machine, chosen)
                and numbers[_FREE] == 0
            ):
                break
    place = 0
    while reserved > 0:
        job = state.queue[place]
        if jobs.row[job] == 0:
            jobs.row[job] = -1
            reserved -= 1
        place += 1
    if numbers[_LEAVING] > 0:
        _leave_queues(jobs, state, lookahead > 0)


@njit
def _serve_newcomers(
    jobs: Jobs,
    state: State,
    blockers: Blockers,
    pool: np.ndarray,
    now: float,
    first: int,
    arrived: int,
    allocation: int,
    machine: int,
    work: np.ndarray,
) -> bool:
    """
    Backfill with newcomers alone, if that is as good as a whole pass.

    It is if the head is still the same and so is its reservation: whoever could not start before cannot now.
    """
    numbers = state.numbers
    head = numbers[_HEAD]
    if head < 0 or state.queue[0] != head:
        return False
    chosen, eligible, spare = work[0], work[1], work[2]
    if numbers[_STARTED] > 0:
        time = _reserve_for_head(jobs, state, pool, now, head, allocation, machine, eligible, spare, chosen)
        if time != blockers.starts[0]:
            return False
        for word in range(chosen.size):
            if chosen[word] != blockers.places[0, word]:
                return False
        numbers[_STARTED] = 0
    count = arrived - first
    for index in range(count):
        state.spare[index] = first + index
    if count > 1:
        sort_by_key(state.spare, jobs.backfill_key, count, state.spare[count:])
    for index in range(count):
        job = state.spare[index]
        group = _class_of(blockers, now + jobs.planned[job])
        width = jobs.processors[job]
        if width <= blockers.fitting[group] and _fits(blockers, group, width, allocation, machine):
            _start_now(jobs, state, blockers, pool, now, job, group, allocation, machine, chosen)
    if numbers[_LEAVING] > 0:
        _leave_queues(jobs, state, True)
    return True


# -- conservative backfilling


@njit
def _serve_conservatively(
    jobs: Jobs,
    state: State,
    table: Timetable,
    pool: np.ndarray,
    held: np.ndarray,
    rows: np.ndarray,
    now: float,
    replan: bool,
    allocation: int,
    machine: int,
    work: np.ndarray,
) -> float:
    """
    Give reservations to all; return when the next one starts.

    If ``replan``, a job ended early: then those that exist are moved forward first, in order of the queue.
    """
    numbers = state.numbers
    chosen, eligible, spare = work[0], work[1], work[2]
    queued = numbers[_QUEUED]
    if replan:
        for place in range(queued):
            job = state.queue[place]
            row = jobs.row[job]
            if row < 0:
                continue
            begin, end = jobs.until[job], jobs.until[job] + jobs.planned[job]
            vacate(table, held[row], begin, end)
            time = _reserve(jobs, state, table, job, np.inf, allocation, machine, eligible, spare, chosen)
            jobs.until[job] = time
            held[row] = chosen
    for place in range(queued):
        job = state.queue[place]
        if jobs.row[job] < 0:
            _hold(jobs, state, table, held, rows, job, np.inf, allocation, machine, work)
    numbers[_STARTED] = 0
    promised = np.inf
    for place in range(queued):
        job = state.queue[place]
        time = jobs.until[job]
        if time <= now and not _clash(state, held[jobs.row[job]]):
            _begin(jobs, state, pool, now, job, held[jobs.row[job]], allocation, machine)
            _give_back(jobs, state, rows, job)
        else:
            promised = min(promised, time)
    if numbers[_LEAVING] > 0:
        _leave_queues(jobs, state, False)
    return promised


# -- backfilling in a reservation table


@njit
def _count_for_head(jobs: Jobs, state: State, now: float, width: int) -> tuple[float, int]:
    """Find when enough processors for the head will be free, wherever they lie, and how many it then leaves."""
    shadow, extra = now, state.numbers[_FREE]
    index = 0  # of jobs that end at once the first to start count first, as Guim et al. count them
    while extra < width:
        shadow = max(state.planned_ends[index], now)
        extra += jobs.processors[state.planned_jobs[index]]
        index += 1
    return shadow, extra - width


@njit
def _serve_in_table(
    jobs: Jobs,
    state: State,
    table: Timetable,
    pool: np.ndarray,
    held: np.ndarray,
    rows: np.ndarray,
    windows: np.ndarray,
    now: float,
    replan: bool,
    first: int,
    allocation: int,
    machine: int,
    work: np.ndarray,
) -> float:
    """
    Give the head a reservation, and others if their turn comes no later; return when the next one starts.

    Reservations stay until a job ends early or another job comes to the head; until then, only newcomers (from
    ``first`` on) are added.
    """
    numbers = state.numbers
    while True:
        queued = numbers[_QUEUED]
        if queued == 0:
            numbers[_HEAD] = -1
            return np.inf
        head = state.queue[0]
        anew = replan or numbers[_HEAD] != head
        if anew:
            _forget_reservations(jobs, state, rows)
            _plan_running(jobs, state, table, pool, windows, now, machine, work[2])
            numbers[_HEAD] = head
            _hold(jobs, state, table, held, rows, head, np.inf, allocation, machine, work)
        replan = False
        shadow, extra = _count_for_head(jobs, state, now, jobs.processors[head])
        for place in range(queued):
            width = state.widths[place]
            if width > numbers[_FREE]:
                continue
            job = state.backfill_queue[place]
            if jobs.row[job] >= 0 or not (anew or job >= first):
                continue
            if now + jobs.planned[job] < shadow or width < extra:
                _hold(jobs, state, table, held, rows, job, jobs.until[head], allocation, machine, work)
        promised = np.inf
        for place in range(queued):
            job = state.queue[place]
            row = jobs.row[job]
            if row < 0:
                continue
            if jobs.until[job] <= now and not _clash(state, held[row]):
                _begin(jobs, state, pool, now, job, held[row], allocation, machine)
                _give_back(jobs, state, rows, job)
                if job == head:
                    break  # the others are to make room for the next head
            else:
                promised = min(promised, jobs.until[job])
        if numbers[_LEAVING] > 0:
            _leave_queues(jobs, state, True)
        if np.isnan(jobs.start[head]):
            return promised


@njit
def _hold(
    jobs: Jobs,
    state: State,
    table: Timetable,
    held: np.ndarray,
    rows: np.ndarray,
    job: int,
    latest: float,
    allocation: int,
    machine: int,
    work: np.ndarray,
) -> None:
    """Give a job a reservation, unless that would begin after ``latest``."""
    time = _reserve(jobs, state, table, job, latest, allocation, machine, work[1], work[2], work[0])
    if time < np.inf or latest == np.inf:
        state.numbers[_ROWS] -= 1
        row = rows[state.numbers[_ROWS]]
        jobs.row[job] = row
        jobs.until[job] = time
        held[row] = work[0]


@njit
def _clash(state: State, places: np.ndarray) -> bool:
    """Return whether some of the processors are not free."""
    clash = False
    for word in range(places.size):
        clash |= places[word] & ~state.free[word] != _NONE
    return clash


@njit
def _give_back(jobs: Jobs, state: State, rows: np.ndarray, job: int) -> None:
    """Give the row of a reservation back."""
    rows[state.numbers[_ROWS]] = jobs.row[job]
    state.numbers[_ROWS] += 1
    jobs.row[job] = -1


@njit
def _forget_reservations(jobs: Jobs, state: State, rows: np.ndarray) -> None:
    """Take back all promises."""
    for place in range(state.numbers[_QUEUED]):
        job = state.queue[place]
        if jobs.row[job] >= 0:
            _give_back(jobs, state, rows, job)


# -- predictions


@njit
def _correct(
    jobs: Jobs,
    state: State,
    pool: np.ndarray,
    estimate: np.ndarray,
    increased: np.ndarray,
    increments: np.ndarray,
    now: float,
    allocation: int,
) -> bool:
    """Give every job that outran its prediction the next increment, up to the user's estimate if that is binding."""
    corrected = False
    index = 0
    running = state.numbers[_RUNNING]
    while index < running and state.planned_ends[index] <= now:
        job = state.planned_jobs[index]
        begin = jobs.start[job]
        if now >= state.ends[state.where[job]]:
            index += 1
            continue
        while jobs.until[job] <= now:
            length = jobs.until[job] - begin + increments[min(increased[job], increments.size - 1)]
            increased[job] += 1
            jobs.until[job] = begin + min(length, estimate[job])
        _remove_planned(state, running, job)
        _insert_planned(state, running - 1, jobs.until[job], job)
        if allocation == LONGEST_IDLE:
            for position in range(jobs.first_range[job], jobs.first_range[job] + jobs.ranges[job]):
                for place in range(pool[position, 0], pool[position, 1] + 1):
                    state.idle_since[place] = jobs.until[job]
        corrected = True
    return corrected


# -- the simulation


@njit
def simulate_kernel(
    submit: np.ndarray,
    run: np.ndarray,
    estimate: np.ndarray,
    processors: np.ndarray,
    machine: int,
    allocation: int,
    backfill: int,
    order: int,
    backfill_order: int,
    per_event: bool,
    predict: bool,
    windows: np.ndarray,
    users: np.ndarray,
    given: np.ndarray,
    backfill_given: np.ndarray,
    formula: int,
    backfill_formula: int,
    attributes: np.ndarray,
    increments: np.ndarray,
    binding: np.ndarray,
    per_node: int,
    slows: bool,
    penalty_kind: int,
    penalty: int,
    demands: np.ndarray,
    capacities: np.ndarray,
    limit: float,
    allowed: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
    """Simulate; see `simulate_places`, which prepares the arguments."""
    count = submit.size
    words = (machine + 63) >> 6
    most = min(machine, count) + 1  # no more jobs can run at once
    overtaking = backfill > 0 or backfill == RESERVATION_TABLE  # there is an order of backfilling
    jobs = Jobs(
        submit,
        run,
        estimate.copy() if predict else estimate,
        processors,
        np.full(count, np.nan),
        np.empty(count),
        np.empty(count, np.int64),
        np.zeros(count, np.int64),
        np.full(count, -1, np.int64),
        np.empty(count),
        np.empty(count) if overtaking else np.empty(0),
    )
    idle = machine + 1 if allocation == LONGEST_IDLE else 1
    # Until they start, the jobs of both queues are the ones that arrived: room for all is needed.
    state = State(
        np.zeros(10, np.int64),
        np.zeros(words, np.uint64),
        np.empty(most),
        np.empty(most, np.int64),
        np.zeros(count, np.int64),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(count, np.int64),
        np.empty(count if overtaking else 0, np.int64),
        np.empty(count if overtaking else 0, np.int64),
        np.empty(2 * count, np.int64),
        np.empty(most, np.int64),
        np.empty(most if per_node > 0 else 0, np.int64),
        np.full(idle, -np.inf),
        np.empty(idle, np.int64),
        np.empty(idle, np.int64),
        new_sharing(per_node, slows, penalty_kind, penalty, demands, capacities, limit, allowed, processors, machine),
    )
    end = submit + run  # of the jobs that ended
    spent = run.copy()  # what their run took without penalties
    numbers = state.numbers
    numbers[_FREE] = machine
    numbers[_HEAD] = -1
    fill(state.free, 0, machine - 1)
    if allocation == LONGEST_IDLE:
        _relink_idle(state, machine)
    most_blockers = windows.shape[0] + min(max(backfill, 0), count)
    blockers = Blockers(
        np.empty(most_blockers + 1),
        np.zeros((most_blockers + 1, words), np.uint64),
        np.zeros((most_blockers + 1, words), np.uint64),
        np.zeros(most_blockers + 1, np.int64),
        np.zeros(most_blockers + 1, np.bool_),
        np.zeros(1, np.int64),
    )
    work = np.zeros((4, words), np.uint64)
    pool = np.empty((count + machine, 2), np.int32)
    table = new_timetable(4, machine)
    held = np.zeros((1, words), np.uint64)
    rows = np.zeros(1, np.int64)
    numbers[_ROWS] = 1
    if backfill == CONSERVATIVE:
        table = with_room(table, 2 * windows.shape[0] + 4, machine)
        advance(table, -np.inf)
        _plan_windows(table, windows, machine, work[3])

    user_count = 0
    if predict:
        for job in range(count):
            user_count = max(user_count, users[job] + 1)
    last = np.zeros((user_count, 2))
    completed_of = np.zeros(user_count, np.int64)
    increased = np.zeros(count if predict or slows else 0, np.int64)

    dynamic = order == FORMULA
    backfill_dynamic = overtaking and backfill_order == FORMULA
    window_ends = np.sort(windows[:, 1].copy())
    window = 0  # the first whose end is to come, as an event
    ended = 0  # the first whose end is to come, for the processors
    arrived = 0
    promised = np.inf
    replan = False
    now = -np.inf
    while arrived < count or numbers[_RUNNING] > 0 or numbers[_QUEUED] > 0:
        if numbers[_MOVED] > 0 or state.sharing.numbers[1] > 0:
            _share(jobs, state, pool, now, True)
        before = now
        now = promised
        if arrived < count:
            now = min(now, submit[arrived])
        if numbers[_RUNNING] > 0:
            now = min(now, state.ends[0])
        if window < window_ends.size:
            now = min(now, window_ends[window])
        if now == np.inf:
            break  # the rest of the queue never fits
        now = max(now, before)  # ends of penalized jobs are rounded, maybe to before an arrival

        may_arrive, may_complete, may_open = True, True, True
        if per_event:
            may_arrive = arrived < count and submit[arrived] <= now
            may_complete = not may_arrive and numbers[_RUNNING] > 0 and state.ends[0] <= now
            may_open = not may_arrive and not may_complete
        if backfill < 0:
            advance(table, now)
        while may_complete and numbers[_RUNNING] > 0 and state.ends[0] <= now:
            end[state.enders[0]] = now
            job = _complete(jobs, state, pool, now, allocation, machine, work[3])
            if backfill != RESERVATION_TABLE:
                numbers[_HEAD] = -1
            if now < jobs.until[job]:
                replan = True
                if backfill == CONSERVATIVE:
                    table = with_room(table, 2 * windows.shape[0] + 4, machine)
                    vacate(table, work[3], now, jobs.until[job])
                    _plan_windows(table, windows, machine, work[3])
            if predict:
                user = users[job]
                last[user, 0] = last[user, 1]
                last[user, 1] = now - jobs.start[job] if slows else run[job]
                completed_of[user] += 1
            may_complete = not per_event
        if numbers[_MOVED] > 0:
            gone = state.moved[: numbers[_MOVED]].copy()
            _share(jobs, state, pool, now, False)
            for job in gone:
                if slows and state.sharing.job[job].killed:
                    spent[job] = state.sharing.job[job].progress
        while may_open and window < window_ends.size and window_ends[window] <= now:
            window += 1
            may_open = not per_event
        previous = arrived
        while may_arrive and arrived < count and submit[arrived] <= now:
            job = arrived
            arrived += 1
            if predict and completed_of[users[job]] >= 2:
                mean = (last[users[job], 0] + last[users[job], 1]) / 2
                jobs.planned[job] = max(1.0, min(estimate[job], mean))
            queued = numbers[_QUEUED]
            if dynamic:
                state.queue[queued] = job
            else:
                jobs.key[job] = _key(order, now, job, jobs, given, formula, attributes)
                _insert(state.queue, queued, _place_of(state.queue, jobs.key, queued, job), job)
            if overtaking:
                if backfill_dynamic:
                    state.backfill_queue[queued] = job
                else:
                    jobs.backfill_key[job] = _key(
                        backfill_order, now, job, jobs, backfill_given, backfill_formula, attributes
                    )
                    place = _place_of(state.backfill_queue, jobs.backfill_key, queued, job)
                    _insert(state.backfill_queue, queued, place, job)
                    _insert(state.widths, queued, place, processors[job])
            numbers[_QUEUED] += 1
            may_arrive = not per_event

        if allocation == LONGEST_IDLE and ended < window_ends.size and window_ends[ended] <= now:
            while ended < window_ends.size and window_ends[ended] <= now:
                ended += 1
            for index in range(windows.shape[0]):
                if windows[index, 1] <= now:
                    for place in range(machine - int(windows[index, 2]), machine):
                        state.idle_since[place] = max(state.idle_since[place], windows[index, 1])
            _relink_idle(state, machine)
        if (predict or slows) and _correct(jobs, state, pool, binding, increased, increments, now, allocation):
            if backfill == RESERVATION_TABLE:
                replan = True
            else:
                numbers[_HEAD] = -1
            if backfill == CONSERVATIVE:
                _forget_reservations(jobs, state, rows)
                table = with_room(table, numbers[_RUNNING] + 2 * windows.shape[0] + 4, machine)
                _plan_running(jobs, state, table, pool, windows, now, machine, work[3])

        # The pass.
        queued = numbers[_QUEUED]
        if queued == 0:
            replan = False
            promised = np.inf
            continue
        if backfill >= 0:
            narrowest = machine + 1
            if numbers[_FREE] > 0 and (dynamic or backfill_dynamic):
                for place in range(queued):
                    narrowest = min(narrowest, processors[state.queue[place]])
            elif numbers[_FREE] > 0:
                narrowest = 0
            if numbers[_FREE] < narrowest:
                continue  # nobody can start, and reservations are made anew by every pass
        if dynamic:
            for place in range(queued):
                job = state.queue[place]
                jobs.key[job] = _key(order, now, job, jobs, given, formula, attributes)
            sort_by_key(state.queue, jobs.key, queued, state.spare)
        if backfill_dynamic:
            for place in range(queued):
                job = state.backfill_queue[place]
                jobs.backfill_key[job] = _key(
                    backfill_order, now, job, jobs, backfill_given, backfill_formula, attributes
                )
            sort_by_key(state.backfill_queue, jobs.backfill_key, queued, state.spare)
            for place in range(queued):
                state.widths[place] = processors[state.backfill_queue[place]]
        if numbers[_RANGES] + machine > pool.shape[0]:
            larger = np.empty((2 * pool.shape[0] + machine, 2), np.int32)
            larger[: numbers[_RANGES]] = pool[: numbers[_RANGES]]
            pool = larger
        if backfill < 0:
            table = with_room(
                table, 2 * (queued + (numbers[_RUNNING] if backfill == RESERVATION_TABLE else 0)) + 4, machine
            )
            if queued > held.shape[0]:
                old = held.shape[0]
                more_held = np.zeros((2 * queued, words), np.uint64)
                more_held[:old] = held
                held = more_held
                more_rows = np.zeros(2 * queued, np.int64)
                more_rows[: numbers[_ROWS]] = rows[: numbers[_ROWS]]
                rows = more_rows
                for row in range(old, 2 * queued):
                    rows[numbers[_ROWS]] = row
                    numbers[_ROWS] += 1
            if backfill == CONSERVATIVE:
                promised = _serve_conservatively(
                    jobs, state, table, pool, held, rows, now, replan, allocation, machine, work
                )
            else:
                promised = _serve_in_table(
                    jobs, state, table, pool, held, rows, windows, now, replan, previous, allocation, machine, work
                )
            replan = False
            continue
        if (
            backfill == 1
            and windows.shape[0] == 0
            and not (dynamic or backfill_dynamic or (per_event and predict))
            and _serve_newcomers(jobs, state, blockers, pool, now, previous, arrived, allocation, machine, work)
        ):
            continue
        if backfill > 1 or windows.shape[0] > 0:
            room = numbers[_RUNNING] + min(numbers[_FREE], queued)
            room += 2 * (windows.shape[0] + min(backfill, queued)) + 4
            table = with_room(table, room, machine)
        _serve_ahead(jobs, state, blockers, table, pool, windows, now, backfill, allocation, machine, work)

    offsets = np.zeros(count + 1, np.int64)
    for job in range(count):
        offsets[job + 1] = offsets[job] + jobs.ranges[job]
    ranges = np.empty((offsets[count], 2), np.int32)
    for job in range(count):
        for index in range(jobs.ranges[job]):
            ranges[offsets[job] + index] = pool[jobs.first_range[job] + index]
    killed = np.zeros(state.sharing.job.size, np.bool_)
    for job in range(killed.size):
        killed[job] = state.sharing.job[job].killed != 0
    return jobs.start, offsets, ranges, end, spent, killed, state.sharing.numbers[2] > 0


class Places(NamedTuple):
    """
    A schedule with its processors.

    Parameters
    ----------
    start : float64 array of shape (jobs,)
        Start times in seconds.
    offsets : int64 array of shape (jobs + 1,)
        Job ``i`` has the ranges ``offsets[i]`` to ``offsets[i + 1]``, the latter not included.
    ranges : int32 array of shape (ranges, 2)
        First and last processor of every range, numbered from 0, ascending within a job.
    end : float64 array of shape (jobs,)
        End times in seconds.
    penalty : float64 array of shape (jobs,)
        How long a job was held up by its neighbours, seconds.
    killed : bool array of shape (jobs,)
        Whether that made a job reach the time at which it is killed; empty if penalties move no ends.
    """

    start: np.ndarray
    offsets: np.ndarray
    ranges: np.ndarray
    end: np.ndarray
    penalty: np.ndarray
    killed: np.ndarray

    def of(self, job: int) -> np.ndarray:
        """Return the processors of one job, ascending."""
        ranges = self.ranges[self.offsets[job] : self.offsets[job + 1]]
        return np.concatenate([np.arange(first, last + 1) for first, last in ranges] or [np.empty(0, np.int64)])


def simulate_places(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    *,
    allocation: str = "first-fit",
    order: str | np.ndarray | Callable[..., float] = "fcfs",
    backfill: str = "none",
    lookahead: int = 1,
    backfill_order: str | np.ndarray | Callable[..., float] = "fcfs",
    per_event: bool = False,
    predict: bool = False,
    users: np.ndarray | None = None,
    attributes: np.ndarray | None = None,
    unavailable: Sequence[tuple[float, float, int]] = (),
    resources: Resources | None = None,
) -> Places:
    """
    Simulate a machine of numbered processors.

    A reservation holds particular processors: another job may take one of them only if it ends, by its
    planned run time, before the reservation starts (as in the reservation table of F. Guim, J. Corbalan,
    J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio
    simulator", MASCOTS 2007).

    Parameters
    ----------
    submit, run, planned : float64 array of shape (jobs,)
        Submit times, ascending; run times; what the scheduler takes for the run time, at least 1 and not
        below ``run``. Seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job, 1 to ``machine``.
    machine : int
        Processors of the machine, numbered from 0.
    allocation : str
        One of `allocation.ALLOCATIONS`.
    order, backfill_order : str, float64 array of shape (jobs,), or numba cfunc
        In what order the queue is served and backfilled: a name or a formula, keys, or a function of
        `swflow.scheduling.queue_order.KEY_SIGNATURE`. The smallest key is first, ties by index, NaN last.
    backfill : {'none', 'lookahead', 'conservative', 'reservation-table'}
        Who may overtake. In the reservation table (Guim et al.) the head has a reservation, and jobs get one in the
        order of backfilling if its start is not after the head's, they are not wider than what is free now, and
        they may also overtake where processors are merely counted: they end before the head's shadow time or need
        fewer than the extra processors (strictly). The table is planned anew when a job ends early or another job
        has come to the head; in between, newcomers are added behind the others.
    lookahead : int
        How many of the first jobs that do not fit get a reservation; 1 is EASY.
    per_event : bool
        Whether every event has a pass of its own (arrivals before completions), not every instant.
    predict : bool
        Whether the planned run time is predicted from the user's last two, ``planned`` being its cap.
    users : int64 array of shape (jobs,), optional
        The users, needed for predictions.
    attributes : float64 array of shape (jobs, 5), optional
        User, group, queue, executable and job id, NaN where unknown, needed for formulas.
    unavailable : sequence of (from, until, processors)
        Maintenance windows, seconds; they take the highest-numbered processors.
    resources : Resources, optional
        What the processes of a node share, and what it costs to ask for more than there is. The scheduler plans
        with ``planned`` whatever the penalties; a job that outruns its plan has it extended step by step. Needs
        passes per instant. The allocations ``least-shared`` and ``threshold`` need it, and a backfill of ``none``
        or ``lookahead`` 1 without windows.

    Returns
    -------
    Places
        Start times and processors.

    Raises
    ------
    SwflowError
        If the options do not go together.

    Examples
    --------
    >>> submit, run = np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 3.0])
    >>> processors = np.array([3, 4, 1])
    >>> easy = simulate_places(submit, run, run, processors, 4, backfill="lookahead")
    >>> easy.start.tolist()
    [0.0, 10.0, 2.0]
    >>> [easy.of(job).tolist() for job in range(3)]
    [[0, 1, 2], [0, 1, 2, 3], [3]]
    """
    count = len(submit)
    times = {"submit_time": submit, "run_time": run, "planned_run_time": planned}
    check_arrays(
        times, processors, machine, stretch=longest_stretch(resources, count, machine) if resources else 1.0,
        others={"users": users, "attributes": attributes},
    )  # fmt: skip
    windows = checked_windows(unavailable, machine)
    about_jobs = (submit, planned, processors, attributes, predict)
    code, given, formula = _order(*order_of(order, "order", *about_jobs))
    if backfill == "none" or backfill == "conservative":
        backfill_order = order
    backfill_code, backfill_given, backfill_formula = code, given, formula
    if backfill_order is not order:
        second = order_of(backfill_order, "backfill_order", *about_jobs)
        backfill_code, backfill_given, backfill_formula = _order(*second)
    user_index = np.zeros(0, np.int64)
    if predict:
        user_index = np.unique(np.zeros(count) if users is None else users, return_inverse=True)[1].astype(np.int64)
    if attributes is None:
        attributes = np.zeros((count if FORMULA in (code, backfill_code) else 0, 5))
    shares = resources or NOTHING_SHARED
    _check_together(ALLOCATIONS[allocation], resources, per_event, backfill, lookahead, len(unavailable))
    reservations = {
        "none": 0,
        "lookahead": lookahead,
        "conservative": CONSERVATIVE,
        "reservation-table": RESERVATION_TABLE,
    }[backfill]
    demands = _plain(np.asarray(shares.demands).reshape(-1, len(shares.capacities)), np.float64)
    allowed = np.full(count, np.inf) if shares.allowed is None else shares.allowed
    kind, penalty = penalty_of(shares.penalty)
    binding = allowed if shares.slows else np.maximum(planned, 1.0)
    start, offsets, ranges, end, spent, killed, is_wrong = simulate_kernel(
        _plain(submit, np.float64),
        _plain(run, np.float64),
        _plain(np.maximum(planned, 1.0), np.float64),
        _plain(processors, np.int64),
        int(machine),
        ALLOCATIONS[allocation],
        int(reservations),
        code,
        backfill_code,
        bool(per_event),
        bool(predict),
        np.array(windows, np.float64).reshape(-1, 3),
        user_index,
        given,
        backfill_given,
        formula,
        backfill_formula,
        _plain(attributes, np.float64),
        INCREMENTS,
        _plain(binding, np.float64),
        int(shares.per_node),
        bool(shares.slows),
        int(kind),
        penalty,
        demands,
        _plain(shares.capacities, np.float64),
        float(shares.limit) if allocation == "threshold" else np.inf,
        _plain(allowed, np.float64),
    )
    if is_wrong:
        raise SwflowError(
            f"penalty: the formula is undefined, above {MOST_PENALTY:g}, or of an overload negative for a usage that "
            "occurs; write one that never is, such as: max(usage / capacity, 1) - 1"
        )
    never = np.flatnonzero(np.isnan(start))
    if never.size:
        raise SwflowError(
            f"unavailable: {never.size:,} jobs never start, the first with {processors[never[0]]:,} processors; "
            "end the window or take fewer processors"
        )
    lost = np.where(end > start + spent, end - start - spent, 0.0)
    return Places(start, offsets, ranges, end, lost, killed)


def _check_together(
    allocation: int, resources: Resources | None, per_event: bool, backfill: str, lookahead: int, windows: int
) -> None:
    """Raise an error about options that do not go together."""
    if resources is not None and per_event:
        raise SwflowError("event_order: shared resources need batch: a shadow lasts for some time")
    if allocation < LEAST_SHARED:
        return
    if resources is None:
        raise SwflowError("allocation: least-shared and threshold need to know what the processes of a node share")
    if windows or backfill not in ("none", "lookahead") or (backfill == "lookahead" and lookahead != 1):
        raise SwflowError("allocation: least-shared and threshold need backfill none or easy, and no windows")


def _order(keys: np.ndarray | None, formula: int) -> tuple[int, np.ndarray, int]:
    """Return an order as the kernel takes it: its number, keys and formula."""
    if formula:
        return FORMULA, np.zeros(0), formula
    if keys is None:
        return FCFS, np.zeros(0), formula
    return GIVEN, _plain(keys, np.float64), formula


def _plain(values: np.ndarray, dtype: type) -> np.ndarray:
    """Return an array of the one kind that the kernel is compiled for: numba takes a read-only one for another."""
    return np.require(values, dtype, ["C", "W"])
