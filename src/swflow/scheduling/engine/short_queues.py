"""Short queues in order of arrival, without backfilling or with EASY: a list is faster than a tree then."""

from typing import NamedTuple

import numpy as np

from swflow.compilation import make_ready
from swflow.kernels import Handle, Kernel
from swflow.scheduling.engine.heap import ELEMENT, pop, push

#: How many steps over queued or running jobs the kernel may take for each job before it gives up.
STEPS_PER_JOB = 64


class _Queue(NamedTuple):
    """Jobs in order of arrival, when they start, and room for who runs and who waits."""

    submit: np.ndarray
    run: np.ndarray
    planned: np.ndarray
    processors: np.ndarray
    start: np.ndarray
    running: np.ndarray  # a heap by the true end
    planned_ends: np.ndarray  # a list sorted by the planned end
    planned_jobs: np.ndarray
    following: np.ndarray  # a linked list in order of arrival; the last place stands for its two ends


def _queue(submit: np.ndarray, run: np.ndarray, planned: np.ndarray, processors: np.ndarray, machine: int) -> _Queue:
    jobs = submit.size
    room = min(machine, jobs) + 2
    return _Queue(
        submit, run, planned, processors, np.empty(jobs), np.empty(room, ELEMENT), np.empty(room),
        np.empty(room, np.int64), np.full(jobs + 1 if planned.size else 0, jobs),
    )  # fmt: skip


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
    queue = _queue(submit, run, np.empty(0), processors, machine)
    make_ready(_FCFS, Handle([queue]), machine)
    _FCFS(Handle([queue]), machine)
    return queue.start


def _fcfs(queue: _Queue, machine: int) -> int:
    submit, run, processors, start = queue.submit, queue.run, queue.processors, queue.start
    running = queue.running  # the items are numbers of processors
    size = 0
    free = machine
    now = -np.inf
    for job in range(submit.size):
        now = max(now, submit[job])
        while size > 0 and (running[0].time <= now or free < processors[job]):
            now = max(now, running[0].time)
            free += running[0].job
            size = pop(running, size)
        start[job] = now
        free -= processors[job]
        size = push(running, size, now + run[job], processors[job])
    return 0


_FCFS = Kernel(_fcfs)


def easy(
    submit: np.ndarray, run: np.ndarray, planned: np.ndarray, processors: np.ndarray, machine: int
) -> tuple[np.ndarray, bool]:
    """
    Simulate first come, first served with EASY backfilling, unless the queue gets too long for it.

    One reservation, batches of events, no windows, no predictions. Its work grows with the length of the
    queue; when that has cost `STEPS_PER_JOB` steps a job, it gives up for the general kernel.

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
    start : float64 array of shape (jobs,)
        Start times.
    finished : bool
        Whether they are all there.
    """
    queue = _queue(submit, run, planned, processors, machine)
    make_ready(_EASY, Handle([queue]), machine)
    finished = _EASY(Handle([queue]), machine)
    return queue.start, bool(finished)


def _easy(queue: _Queue, machine: int) -> int:
    submit, run, planned, processors, start = queue.submit, queue.run, queue.planned, queue.processors, queue.start
    # The running jobs twice: a heap by the true end, and a list sorted by the planned end for the shadow.
    running, planned_ends, planned_jobs = queue.running, queue.planned_ends, queue.planned_jobs
    jobs = submit.size
    size = 0
    free = machine
    following = queue.following
    last = jobs
    arrived = 0
    shadow = np.inf
    extra = 0
    steps = STEPS_PER_JOB * jobs
    while (arrived < jobs or size > 0) and steps >= 0:
        now = submit[arrived] if arrived < jobs else np.inf
        if size > 0 and running[0].time < now:
            now = running[0].time

        completed = False
        while size > 0 and running[0].time <= now:
            job = running[0].job
            size = pop(running, size)
            free += processors[job]
            place = 0
            while planned_jobs[place] != job:
                place += 1
            for later in range(place, size):
                planned_ends[later] = planned_ends[later + 1]
                planned_jobs[later] = planned_jobs[later + 1]
            steps -= size >> 3  # moving is cheaper than looking
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
            steps -= 1
            if width <= free and (end <= shadow or width <= extra):
                start[job] = now
                free -= width
                if end > shadow:
                    extra -= width
                following[previous] = following[job]
                if last == job:
                    last = previous
                place = size
                while place > 0 and planned_ends[place - 1] > end:
                    planned_ends[place] = planned_ends[place - 1]
                    planned_jobs[place] = planned_jobs[place - 1]
                    place -= 1
                planned_ends[place] = end
                planned_jobs[place] = job
                size = push(running, size, now + run[job], job)
                continue
            if shadow == np.inf:  # the head, which does not fit: find its reservation
                extra = free - width
                place = 0
                while extra < 0 or (place < size and planned_ends[place] == shadow):
                    extra += processors[planned_jobs[place]]
                    shadow = planned_ends[place]
                    place += 1
                steps -= place
            previous = job
    return 1 if steps >= 0 else 0


_EASY = Kernel(_easy)
