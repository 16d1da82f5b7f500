"""Search the queue in Slurm's order: levels of preemption first, then priorities; jobs at a limit may be left out."""

import numpy as np

from swflow.scheduling.slurm.accounts import has_all_jobs
from swflow.scheduling.slurm.operations import is_at_level, is_closed, may_preempt, next_level, open_levels
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.state.heap import pop, push
from swflow.scheduling.state.operations import time_of_keys
from swflow.scheduling.state.queue import NO_JOB, following
from swflow.scheduling.state.search import queued_key


def start_search(state: SlurmState) -> None:
    """Start to search the queue by `next_job`."""
    open_levels(state)
    _restart(state)


def _restart(state: SlurmState) -> None:
    state.search[0].rank = state.search[0].lined_up = -1


def next_job(state: SlurmState, now: float) -> int:
    """Return the next queued job, -1 after the last one."""
    while True:
        item = _next_of_all(state, now)
        if item < 0:
            if not next_level(state):
                return -1
            _restart(state)
        elif is_at_level(state, item):
            return item


def _next_of_all(state: SlurmState, now: float) -> int:
    """Return the next job of all levels."""
    search, queue = state.search[0], state.queue
    if not queue.formula:
        search.rank = following(queue, search.rank + 1, NO_JOB - 1, 0, 0.0, 0.0)
        return queue.job_at[search.rank] if search.rank >= 0 else -1
    if state.own.sorted.size > 0:
        return _next_sorted(state, now)
    if search.lined_up < 0:
        search.lined_up = _line_up(state, now)
    if search.lined_up == 0:
        return -1
    item = state.line[0].job
    search.lined_up = pop(state.line, search.lined_up)
    return item


def _line_up(state: SlurmState, now: float) -> int:
    """Collect the queued jobs in ``state.line``, a heap by their keys; return its size."""
    size, queue = 0, state.queue
    # A job that is at a limit of running jobs stays there during a pass, whose starts only add to what is counted,
    # unless jobs are preempted.
    skips = state.options[0].limits and state.own.timetable[0].skips and not may_preempt(state)
    rank = following(queue, 0, NO_JOB - 1, 0, 0.0, 0.0)
    while rank >= 0:
        item = queue.job_at[rank]
        if not (skips and has_all_jobs(state.usage, item)):
            size = push(state.line, size, queued_key(state, queue, item, now), item)
        rank = following(queue, rank + 1, NO_JOB - 1, 0, 0.0, 0.0)
    return size


# -- a queue that is kept sorted


def _next_sorted(state: SlurmState, now: float) -> int:
    """
    Return the next job of a queue that is kept sorted, -1 if there is none.

    It is kept sorted if its formula is computed at multiples of a period only. Jobs with the same owners, level and
    partition are sorted apart from others, so that no job of owners that are at a limit of running jobs, or of a
    partition that a pass has closed, is looked at, however many wait.
    """
    search, usage, line = state.search[0], state.usage, state.line
    skips = state.options[0].limits and state.own.timetable[0].skips and not may_preempt(state)
    if search.lined_up < 0:
        for number in range(state.own.alike.size):
            _keep_sorted(state, number, now, skips)
        search.lined_up = 0
        for number in range(state.own.alike.size):
            search.lined_up = _line_up_next(state, number, search.lined_up)
    while search.lined_up > 0:
        item = line[0].job
        search.lined_up = pop(line, search.lined_up)
        if skips and has_all_jobs(usage, item):
            continue  # and so are those after it
        if state.own.timetable[0].skips and is_closed(state.machine, item):
            continue
        search.lined_up = _line_up_next(state, state.own.alike_of[item], search.lined_up)
        return item
    return -1


def _is_queued(state: SlurmState, item: int) -> bool:
    """Return whether a job is in the queue; lists of sorted jobs keep others until they are sorted again."""
    return state.queue.nodes[state.jobs[item].rank].width < NO_JOB


def _line_up_next(state: SlurmState, number: int, size: int) -> int:
    """Add the next job of a list to the heap of the next jobs of all lists; return its size."""
    one = state.own.alike[number]
    while one.left > 0:
        one.left -= 1
        key, item = state.own.sorted[one.first + one.left].time, state.own.sorted[one.first + one.left].job
        if _is_queued(state, item):
            return push(state.line, size, key, item)
    return size


def _keep_sorted(state: SlurmState, number: int, now: float, skips: int) -> None:
    """
    Prepare to search a list; sort it if its keys were computed anew.

    It is left out if it has another level than is searched, or if its owners are at a limit.
    """
    one, line = state.own.alike[number], state.own.sorted
    one.left = 0
    while one.size > 0 and not _is_queued(state, line[one.first + one.size - 1].job):
        one.size -= 1
    if one.size == 0 or not is_at_level(state, line[one.first].job):
        return
    if skips and has_all_jobs(state.usage, line[one.first].job):
        return
    time = time_of_keys(state, now)
    if one.sorted_at != time:
        one.sorted_at, size = time, 0
        for place in range(one.first, one.first + one.size):
            item = line[place].job
            if _is_queued(state, item):
                key = queued_key(state, state.queue, item, now)
                _insert(line, one.first, size, key, item)
                size += 1
        one.size = size
    one.left = one.size


def _precedes(key: float, item: int, other_key: float, other: int) -> bool:
    """Return whether a job is served before another one, by their keys; ties by their numbers."""
    return key < other_key or (key == other_key and item < other)


def _insert(line: np.ndarray, first: int, size: int, key: float, item: int) -> None:
    """Insert a job into a sorted list, whose last job is the first to be served."""
    place = first + size
    while place > first and _precedes(line[place - 1].time, line[place - 1].job, key, item):
        line[place].time, line[place].job = line[place - 1].time, line[place - 1].job
        place -= 1
    line[place].time, line[place].job = key, item


def drop_sorted(state: SlurmState, item: int) -> None:
    """Remove a job from its list, which may keep it since it started."""
    if state.own.sorted.size == 0:
        return
    one, line = state.own.alike[state.own.alike_of[item]], state.own.sorted
    left = one.first
    for place in range(one.first, one.first + one.size):
        if line[place].job != item:
            line[left].time, line[left].job = line[place].time, line[place].job
            left += 1
    one.size = left - one.first


def insert_sorted(state: SlurmState, item: int, now: float) -> None:
    """Add a new job to its list, which is sorted later unless its keys are still the same."""
    if state.own.sorted.size == 0:
        return
    one = state.own.alike[state.own.alike_of[item]]
    if one.sorted_at == time_of_keys(state, now):
        _insert(state.own.sorted, one.first, one.size, queued_key(state, state.queue, item, now), item)
    else:
        state.own.sorted[one.first + one.size].job = item
        one.sorted_at = np.nan
    one.size += 1
