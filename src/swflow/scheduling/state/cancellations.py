"""Cancellations: jobs that leave the queue some time after their submission, unless they have started."""

from typing import Any, NamedTuple

import numpy as np

from swflow.scheduling.state import operations
from swflow.scheduling.state.changes import dequeue
from swflow.scheduling.state.heap import ELEMENT, pop, push
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.operations import cancel, note_withdrawal


class Cancellations(NamedTuple):
    """
    The jobs that will be cancelled, and a heap of those that have arrived, by the time at which they leave.

    ``after`` is the time from the submission of each job to its cancellation, seconds; infinity: it is not cancelled.
    ``size[0]`` counts the elements of the heap.
    """

    after: np.ndarray  # empty: no job is cancelled
    heap: np.ndarray
    size: np.ndarray


def new_cancellations(after: np.ndarray | None) -> Cancellations:
    """Return the cancellations before the first arrival."""
    known = np.empty(0) if after is None else after.copy()
    return Cancellations(known, np.empty(np.isfinite(known).sum(), ELEMENT), np.zeros(1, np.int64))


def _note_arrival(cancellations: Cancellations, item: int, submit: float) -> None:
    """Note when a job that arrives is to be cancelled, if at all."""
    if cancellations.after[item] < np.inf:
        time = submit + cancellations.after[item]
        cancellations.size[0] = push(cancellations.heap, cancellations.size[0], time, item)


def _next_cancellation(cancellations: Cancellations, jobs: np.ndarray) -> float:
    """Return the time at which the next queued job is cancelled; infinity if there is none."""
    while cancellations.size[0] > 0:
        first = cancellations.heap[0]
        if np.isnan(jobs[first.job].start) and cancellations.after[first.job] < np.inf:
            return first.time
        cancellations.size[0] = pop(cancellations.heap, cancellations.size[0])
    return np.inf


def _withdraw(state: State, item: int) -> None:
    """Remove a job from the queue, and its reservation from the plan."""
    counts, agenda, queue_plan, job = state.counts[0], state.agenda[0], state.queue_plan[0], state.jobs[item]
    dequeue(state, item)
    note_withdrawal(state, item)
    counts.demand -= job.processors
    agenda.full = 1
    queue_plan.kept = 0
    if not np.isnan(job.reserved):
        cancel(state, item)
        job.reserved = np.nan
        agenda.ended_early = 1


#: The implementation of the operations of cancellations.
CANCELLATIONS: dict[Any, Any] = {
    operations.note_arrival: _note_arrival,
    operations.next_cancellation: _next_cancellation,
    operations.withdraw: _withdraw,
}
