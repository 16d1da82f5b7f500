"""Slurm's two schedulers on counted processors: passes that end at the first job that does not fit, and cycles."""

from typing import Any

import numpy as np

from swflow.scheduling.machine.counted import COUNTED
from swflow.scheduling.slurm import operations
from swflow.scheduling.slurm.accounts import forget_tests, has_all_jobs, may_test
from swflow.scheduling.slurm.search import next_job, start_search
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.slurm.timetable import slot_start
from swflow.scheduling.state.changes import begin
from swflow.scheduling.state.heap import pop, push
from swflow.scheduling.state.operations import can_begin, can_start, free_now, is_limited, open_pass, started
from swflow.scheduling.state.queue import root_of

#: Running jobs that end within this time of the first one, in seconds, are planned to end with the last of them; each
#: group of later ones spans twice the time (man slurm.conf, bf_window_linear).
_FIRST_GROUP = 30.0


def _start_jobs(state: SlurmState, now: float) -> None:
    """Start jobs in the order of the queue until one does not fit."""
    timetable, free = state.own.timetable[0], free_now(state)
    timetable.waits = 0
    if root_of(state.queue).width > free:
        return
    state.steps[0].time = now
    open_pass(state, now, free)
    tested = 0
    start_search(state)
    while True:
        item = next_job(state, now)
        tested += 1
        if item < 0 or tested > timetable.tests:
            break
        if is_limited(state, item):
            continue
        job = state.jobs[item]
        if not can_start(state, item, job.processors, now + job.planned):
            timetable.waits = 1
            break
        begin(state, item, now)
        started(state, item, now)


def _plan_cycle(state: SlurmState, now: float) -> None:
    """
    Start the jobs that can start now as planned, and reserve for others that could start within the window.

    The plan of a cycle differs from that of other passes, as in Slurm: reservations start and end at multiples of the
    resolution, and running jobs that end at about the same time are planned to end together.
    """
    options, parameters, times = state.options[0], state.own.parameters[0], state.own.cycle_times
    queue = state.queue
    if root_of(queue).width > free_now(state):
        return
    size = _open_cycle(state, now)
    tested = 0
    forget_tests(state.usage)
    start_search(state)
    while tested < parameters.tests and root_of(queue).width <= free_now(state):
        item = next_job(state, now)
        if item < 0:
            break
        if options.limits and has_all_jobs(state.usage, item):
            continue
        if not may_test(state.usage, item, parameters.of_user, parameters.of_partition):
            continue
        tested += 1
        if is_limited(state, item):
            continue
        job = state.jobs[item]
        step = _first_fit(state, size, item, job.planned)
        if step == size or times[step] > now + parameters.window:
            continue
        start = max(slot_start(state, times[step]), now)
        end = slot_start(state, times[step] + job.planned)
        if step == 0 and job.processors <= free_now(state) and can_begin(state, item):
            begin(state, item, now)
            size = _take(state, size, item, now, end)
        else:
            size = _take(state, size, item, start, max(end, start + parameters.resolution))


def _open_cycle(state: SlurmState, now: float) -> int:
    """Enter the running jobs and the windows into the plan; return the number of its steps."""
    options, counts, free, ends = state.options[0], state.counts[0], state.own.cycle_free, state.line
    state.own.cycle_times[0] = now
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


def _change(state: SlurmState, size: int, time: float, processors: int) -> int:
    """Add free processors from a time on; return the number of steps."""
    first = _step_of(state, size, time)
    size = _with_step(state, size, first, time)
    for step in range(first, size):
        state.own.cycle_free[step, 0] += processors
    return size


def _take(state: SlurmState, size: int, item: int, start: float, end: float) -> int:
    """Subtract what a job needs from ``start`` to ``end``; return the number of steps."""
    if end <= start:
        return size
    first = _step_of(state, size, start)
    size = _with_step(state, size, first, start)
    last = _step_of(state, size, end)
    size = _with_step(state, size, last, end)
    for step in range(first, last):
        state.own.cycle_free[step, 0] -= state.jobs[item].processors
        for resource in range(state.capacities.size):
            state.own.cycle_free[step, resource + 1] -= state.demands[item, resource]
    return size


def _step_of(state: SlurmState, size: int, time: float) -> int:
    """Return the first step at a time or later."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if state.own.cycle_times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


def _with_step(state: SlurmState, size: int, step: int, time: float) -> int:
    """Insert a step at a time before a given one, unless that is it; return the number of steps."""
    times, free = state.own.cycle_times, state.own.cycle_free
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


def _first_fit(state: SlurmState, size: int, item: int, length: float) -> int:
    """Return the first step from which a job fits until its planned end, inclusive; ``size`` if there is none."""
    times, first, step = state.own.cycle_times, 0, 0
    while step < size and (step == first or times[step] <= times[first] + length):
        if not _fits(state, item, step):
            first = step + 1
        step += 1
    return first


def _fits(state: SlurmState, item: int, step: int) -> bool:
    """Return whether a step has what a job needs; others may take more than there is of what it does not need."""
    if state.jobs[item].processors > state.own.cycle_free[step, 0]:
        return False
    for resource in range(state.capacities.size):
        needed = state.demands[item, resource]
        if needed > 0 and needed > state.own.cycle_free[step, resource + 1]:
            return False
    return True


#: The operations of counted processors.
ON_PROCESSORS: dict[Any, Any] = COUNTED | {
    operations.start_jobs: _start_jobs,
    operations.plan_cycle: _plan_cycle,
}
