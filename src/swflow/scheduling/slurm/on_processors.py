"""A cycle of Slurm's backfill scheduler: plan the queue anew, in its order."""

import math

import numpy as np

from swflow.scheduling.state.accounts import at_limit, forget_tests, may_test
from swflow.scheduling.state.changes import begin, is_limited
from swflow.scheduling.state.heap import pop, push
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.operations import can_begin, free_now
from swflow.scheduling.state.queue import NO_JOB, root_of
from swflow.scheduling.state.search import next_job, start_search

#: Running jobs that end within this time of the first one, in seconds, are planned to end with the last of them; each
#: group of later ones spans twice the time (man slurm.conf, bf_window_linear).
_FIRST_GROUP = 30.0


def serve_cycle(state: State, now: float) -> None:
    """
    Start the jobs that can start now as planned, and reserve for others that could start within the window.

    The plan of a cycle differs from that of other passes, as in Slurm: reservations start and end at multiples of the
    resolution, and running jobs that end at about the same time are planned to end together.
    """
    options, queue, times = state.options[0], state.queue, state.cycle_times
    if root_of(queue).width > free_now(state):
        return
    size = _open_cycle(state, now)
    tested = 0
    forget_tests(state.usage)
    start_search(state, 0)
    while tested < options.reservations and root_of(queue).width <= free_now(state):
        item = next_job(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
        if item < 0:
            break
        if options.limits and at_limit(state.usage, item, 0):
            continue
        if options.of_user and not may_test(state.usage, item, options.of_user):
            continue
        tested += 1
        if is_limited(state, item):
            continue
        job = state.jobs[item]
        step = _first_fit(state, size, item, job.planned)
        if step == size or times[step] > now + options.window:
            continue
        start = max(slot_start(state, times[step]), now)
        end = slot_start(state, times[step] + job.planned)
        if step == 0 and job.processors <= free_now(state) and can_begin(state, item):
            begin(state, item, now)
            state.agenda[0].full = 1
            size = _take(state, size, item, now, end)
        else:
            size = _take(state, size, item, start, max(end, start + options.resolution))


def slot_start(state: State, time: float) -> float:
    """Return the start of the slot at a time: the last multiple of the resolution, in seconds from 1970 on."""
    options = state.options[0]
    return math.floor((time + options.epoch) / options.resolution) * options.resolution - options.epoch


def _open_cycle(state: State, now: float) -> int:
    """Enter the running jobs and the windows into the plan; return the number of its steps."""
    options, counts, free, ends = state.options[0], state.counts[0], state.cycle_free, state.line
    state.cycle_times[0] = now
    free[0, 0] = options.processors
    for resource in range(state.capacities.size):
        free[0, resource + 1] = state.capacities[resource]
    size, running = 1, 0
    for k in range(counts.running):
        item = state.running[k].job
        running = push(ends, running, state.jobs[item].planned_end, item)
    span = _FIRST_GROUP
    while running > 0:
        # A second heap behind the first holds a group until its last end is known.
        latest, together = ends[0].time + span, 0
        last = ends[0].time
        while running > 0 and ends[0].time <= latest:
            last, item = ends[0].time, ends[0].job
            running = pop(ends, running)
            ends[counts.running - 1 - together].job = item
            together += 1
        end = slot_start(state, last)
        for k in range(together):
            size = _take(state, size, ends[counts.running - 1 - k].job, now, end)
        span *= 2
    windows = state.windows[0]
    size = _change(state, size, now, -windows.closed)
    for k in range(windows.begun, state.window_starts.size):
        size = _change(state, size, state.window_starts[k].time, -state.window_starts[k].job)
    for k in range(windows.ended, state.window_ends.size):
        if state.window_ends[k].time < np.inf:
            size = _change(state, size, state.window_ends[k].time, state.window_ends[k].job)
    return size


def _change(state: State, size: int, time: float, processors: int) -> int:
    """Add free processors from a time on; return the number of steps."""
    first = _step_of(state, size, time)
    size = _with_step(state, size, first, time)
    for step in range(first, size):
        state.cycle_free[step, 0] += processors
    return size


def _take(state: State, size: int, item: int, start: float, end: float) -> int:
    """Subtract what a job needs from ``start`` to ``end``; return the number of steps."""
    if end <= start:
        return size
    first = _step_of(state, size, start)
    size = _with_step(state, size, first, start)
    last = _step_of(state, size, end)
    size = _with_step(state, size, last, end)
    for step in range(first, last):
        state.cycle_free[step, 0] -= state.jobs[item].processors
        for resource in range(state.capacities.size):
            state.cycle_free[step, resource + 1] -= state.demands[item, resource]
    return size


def _step_of(state: State, size: int, time: float) -> int:
    """Return the first step at a time or later."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if state.cycle_times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


def _with_step(state: State, size: int, step: int, time: float) -> int:
    """Insert a step at a time before a given one, unless that is it; return the number of steps."""
    times, free = state.cycle_times, state.cycle_free
    if step < size and times[step] == time:
        return size
    for later in range(size, step, -1):
        times[later] = times[later - 1]
        for k in range(free.shape[1]):
            free[later, k] = free[later - 1, k]
    times[step] = time
    for k in range(free.shape[1]):
        free[step, k] = free[step - 1, k]
    return size + 1


def _first_fit(state: State, size: int, item: int, length: float) -> int:
    """Return the first step from which a job fits until its planned end, inclusive; ``size`` if there is none."""
    times, first, step = state.cycle_times, 0, 0
    while step < size and (step == first or times[step] <= times[first] + length):
        if not _fits(state, item, step):
            first = step + 1
        step += 1
    return first


def _fits(state: State, item: int, step: int) -> bool:
    """Return whether a step has what a job needs; others may take more than there is of what it does not need."""
    if state.jobs[item].processors > state.cycle_free[step, 0]:
        return False
    for resource in range(state.capacities.size):
        needed = state.demands[item, resource]
        if needed > 0 and needed > state.cycle_free[step, resource + 1]:
            return False
    return True
