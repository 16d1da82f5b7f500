"""A binary min-heap of (time, job): the running jobs by their end, and whatever else is served in order."""

import numpy as np

from swflow.scheduling.engine.compiled import lean

#: An element; equal times are served by the lower job.
ELEMENT = np.dtype([("time", np.float64), ("job", np.int64)])


@lean
def push(heap: np.ndarray, size: int, time: float, job: int) -> int:
    """Push onto a heap of ``size`` elements; return its new size."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        above = heap[parent]
        if above.time < time or (above.time == time and above.job <= job):
            break
        heap[place].time = above.time
        heap[place].job = above.job
        place = parent
    heap[place].time = time
    heap[place].job = job
    return size + 1


@lean
def pop(heap: np.ndarray, size: int) -> int:
    """Remove the first of a heap of ``size`` elements; return its new size."""
    size -= 1
    time, job = heap[size].time, heap[size].job
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size:
            left, right = heap[child], heap[child + 1]
            if right.time < left.time or (right.time == left.time and right.job < left.job):
                child += 1
        below = heap[child]
        if below.time > time or (below.time == time and below.job >= job):
            break
        heap[place].time = below.time
        heap[place].job = below.job
        place = child
    heap[place].time = time
    heap[place].job = job
    return size
