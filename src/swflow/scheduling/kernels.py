"""The simulation kernels: plain arrays in, start times out."""

import numpy as np

from swflow.compilation import njit


@njit
def _push(times: np.ndarray, items: np.ndarray, size: int, time: float, item: int) -> int:
    """Push onto a binary min-heap by time; return its new size."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if times[parent] <= time:
            break
        times[place] = times[parent]
        items[place] = items[parent]
        place = parent
    times[place] = time
    items[place] = item
    return size + 1


@njit
def _pop(times: np.ndarray, items: np.ndarray, size: int) -> int:
    """Remove the root of a binary min-heap; return its new size."""
    size -= 1
    time, item = times[size], items[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[place] = times[child]
        items[place] = items[child]
        place = child
    times[place] = time
    items[place] = item
    return size


@njit
def fcfs(submit: np.ndarray, run: np.ndarray, processors: np.ndarray, machine: int) -> np.ndarray:
    """
    First come, first served, without backfilling.

    Parameters
    ----------
    submit, run : float64 array of shape (jobs,)
        Submit times, ascending, and run times, in seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job, at most ``machine``.
    machine : int
        Processors of the machine.

    Returns
    -------
    float64 array of shape (jobs,)
        Start times.
    """
    jobs = submit.size
    start = np.empty(jobs)
    ends = np.empty(machine + 1)
    widths = np.empty(machine + 1, np.int64)
    running = 0
    free = machine
    now = -np.inf
    for job in range(jobs):
        now = max(now, submit[job])
        while running > 0 and (ends[0] <= now or free < processors[job]):
            now = max(now, ends[0])
            free += widths[0]
            running = _pop(ends, widths, running)
        start[job] = now
        free -= processors[job]
        running = _push(ends, widths, running, now + run[job], processors[job])
    return start


@njit
def easy(submit: np.ndarray, run: np.ndarray, planned: np.ndarray, processors: np.ndarray, machine: int) -> np.ndarray:
    """
    First come, first served with EASY backfilling: the head alone has a reservation.

    The head's shadow time is the earliest time at which, by the planned ends, enough processors will be
    free; a later job may start at once if it ends by then, or fits into the extra processors then left.
    At one instant: completions, then arrivals, then one pass over the queue.

    Parameters
    ----------
    submit, run, planned : float64 array of shape (jobs,)
        Submit times, ascending; run times; what the scheduler takes for the run time, not below it. Seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job, at most ``machine``.
    machine : int
        Processors of the machine.

    Returns
    -------
    float64 array of shape (jobs,)
        Start times.
    """
    jobs = submit.size
    start = np.empty(jobs)
    # The running jobs twice: a heap by the true end, and a list sorted by the planned end for the shadow.
    ends = np.empty(machine + 1)
    enders = np.empty(machine + 1, np.int64)
    running = 0
    planned_ends = np.empty(machine + 1)
    planned_jobs = np.empty(machine + 1, np.int64)
    free = machine
    # The queue, a linked list in order of arrival; `jobs` stands for its two ends.
    following = np.full(jobs + 1, jobs)
    last = jobs
    arrived = 0
    shadow = np.inf
    extra = 0
    while arrived < jobs or running > 0:
        now = submit[arrived] if arrived < jobs else np.inf
        if running > 0 and ends[0] < now:
            now = ends[0]

        completed = False
        while running > 0 and ends[0] <= now:
            job = enders[0]
            running = _pop(ends, enders, running)
            free += processors[job]
            place = 0
            while planned_jobs[place] != job:
                place += 1
            planned_ends[place:running] = planned_ends[place + 1 : running + 1]
            planned_jobs[place:running] = planned_jobs[place + 1 : running + 1]
            completed = True

        previous = last
        while arrived < jobs and submit[arrived] <= now:
            following[last] = arrived
            last = arrived
            arrived += 1
        if free == 0:
            continue
        # Without a completion the head goes on waiting for its shadow time, and whoever could not be
        # backfilled before cannot be now: then the pass begins with the newcomers.
        if completed or previous == jobs:
            previous = jobs
            shadow = np.inf

        while following[previous] != jobs and free > 0:
            job = following[previous]
            width = processors[job]
            end = now + planned[job]
            if width <= free and (end <= shadow or width <= extra):
                start[job] = now
                free -= width
                if end > shadow:
                    extra -= width
                following[previous] = following[job]
                if last == job:
                    last = previous
                place = running
                while place > 0 and planned_ends[place - 1] > end:
                    planned_ends[place] = planned_ends[place - 1]
                    planned_jobs[place] = planned_jobs[place - 1]
                    place -= 1
                planned_ends[place] = end
                planned_jobs[place] = job
                running = _push(ends, enders, running, now + run[job], job)
                continue
            if shadow == np.inf:  # the head, which does not fit: find its reservation
                extra = free - width
                place = 0
                while extra < 0 or (place < running and planned_ends[place] == shadow):
                    extra += processors[planned_jobs[place]]
                    shadow = planned_ends[place]
                    place += 1
            previous = job
    return start
