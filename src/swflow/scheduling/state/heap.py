"""A binary min-heap of (time, job): running jobs by their end, queued jobs by their key."""

import numpy as np

from swflow.compiled.kernel import record

#: An element; of equal times the lower job comes first.
ELEMENT = record("time", "job")


def rise(heap: np.ndarray, slot: int, time: float, job: int) -> None:
    """Insert an element at a position or above."""
    while slot > 0:
        parent = (slot - 1) >> 1
        above = heap[parent]
        if above.time < time or (above.time == time and above.job <= job):
            break
        heap[slot].time = above.time
        heap[slot].job = above.job
        slot = parent
    heap[slot].time = time
    heap[slot].job = job


def sink(heap: np.ndarray, size: int, slot: int, time: float, job: int) -> None:
    """Insert an element at a position of a heap of ``size`` elements or below."""
    while True:
        child = 2 * slot + 1
        if child >= size:
            break
        if child + 1 < size:
            left, right = heap[child], heap[child + 1]
            if right.time < left.time or (right.time == left.time and right.job < left.job):
                child += 1
        below = heap[child]
        if below.time > time or (below.time == time and below.job >= job):
            break
        heap[slot].time = below.time
        heap[slot].job = below.job
        slot = child
    heap[slot].time = time
    heap[slot].job = job


def push(heap: np.ndarray, size: int, time: float, job: int) -> int:
    """Push an element onto a heap of ``size`` elements; return the new size."""
    rise(heap, size, time, job)
    return size + 1


def pop(heap: np.ndarray, size: int) -> int:
    """Remove the first element of a heap of ``size`` elements; return the new size."""
    size -= 1
    sink(heap, size, 0, heap[size].time, heap[size].job)
    return size


def change(heap: np.ndarray, size: int, time: float, job: int) -> None:
    """Change the time of a job in a heap of ``size`` elements."""
    slot = 0
    while heap[slot].job != job:
        slot += 1
    if time <= heap[slot].time:
        rise(heap, slot, time, job)
    else:
        sink(heap, size, slot, time, job)
