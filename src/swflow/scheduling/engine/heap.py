"""A binary min-heap of (time, job): the running jobs by their end, and whatever else is served in order."""

import numpy as np

from swflow.kernels import lean

#: An element; equal times are served by the lower job.
ELEMENT = np.dtype([("time", np.float64), ("job", np.int64)])


@lean
def rise(heap: np.ndarray, place: int, time: float, job: int) -> None:
    """Put an element at a place, or further up where it belongs."""
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


@lean
def sink(heap: np.ndarray, size: int, place: int, time: float, job: int) -> None:
    """Put an element at a place of a heap of ``size`` elements, or further down where it belongs."""
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


@lean
def push(heap: np.ndarray, size: int, time: float, job: int) -> int:
    """Push onto a heap of ``size`` elements; return its new size."""
    rise(heap, size, time, job)
    return size + 1


@lean
def pop(heap: np.ndarray, size: int) -> int:
    """Remove the first of a heap of ``size`` elements; return its new size."""
    size -= 1
    sink(heap, size, 0, heap[size].time, heap[size].job)
    return size


@lean
def change(heap: np.ndarray, size: int, time: float, job: int) -> None:
    """Give a job of a heap of ``size`` elements another time."""
    place = 0
    while heap[place].job != job:
        place += 1
    if time <= heap[place].time:
        rise(heap, place, time, job)
    else:
        sink(heap, size, place, time, job)
