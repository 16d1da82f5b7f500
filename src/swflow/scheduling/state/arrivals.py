"""Jobs that arrive and are cancelled: when, and the cluster and the shape that are chosen for them."""

import math
from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import part_of
from swflow.scheduling.state.cancellations import Cancellations
from swflow.scheduling.state.changes import arrive, complete, predicted_length
from swflow.scheduling.state.choices import Dispatch
from swflow.scheduling.state.dependents import Dependents
from swflow.scheduling.state.heap import pop
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.operations import (
    find,
    next_cancellation,
    note_arrival,
    release_dependents,
    take_turn,
    withdraw,
)
from swflow.scheduling.state.whole_queue import plan_next, plan_queue, soonest_done, soonest_shape

#: The dispatch rules as kernels compare them.
ROUND_ROBIN, LEAST_LOADED = Dispatch.ROUND_ROBIN.value, Dispatch.LEAST_LOADED.value
EARLIEST_START, PARTITION = Dispatch.EARLIEST_START.value, Dispatch.PARTITION.value


class Arrivals(NamedTuple):
    """
    The jobs that arrive, and where they are sent.

    A job is an item, that is a record of the state's jobs; or, if its shape is chosen when it is submitted, several
    items of which one arrives: those from ``first[job]`` to before ``first[job + 1]``, by ascending processors.
    ``ranks`` and ``backfill_ranks`` are those of every item at every cluster.
    """

    first: np.ndarray  # empty: a job is the item of its number
    chosen: np.ndarray  # the item that arrived; also empty
    cluster: np.ndarray  # the cluster of each job, known in advance with dispatch by partition; empty without clusters
    ranks: np.ndarray
    backfill_ranks: np.ndarray
    due: np.ndarray  # scratch: the machines with events at this time
    dependents: Dependents  # jobs that are submitted after the end of another
    cancellations: Cancellations  # jobs that leave the queue
    clock: np.ndarray  # the time of the last event
    turn: np.ndarray  # the next cluster in round-robin


def job_at(arrivals: Arrivals, place: int) -> int:
    """Return the job that arrives at a place of the order of arrival."""
    return arrivals.dependents.line[place] if arrivals.dependents.line.size > 0 else place


def _first_item(arrivals: Arrivals, job: int) -> int:
    return arrivals.first[job] if arrivals.first.size > 0 else job


def submit_at(arrivals: Arrivals, jobs: np.ndarray, place: int) -> float:
    """Return the submit time at a place of the order of arrival, infinity after the last."""
    count = arrivals.first.size - 1 if arrivals.first.size > 0 else jobs.size
    return jobs[_first_item(arrivals, job_at(arrivals, place))].submit if place < count else math.inf


def _takes(state: State, item: int) -> bool:
    """Return whether a machine is large enough for a job; its first item has the least processors."""
    for resource in range(state.capacities.size):
        if state.demands[item, resource] > state.capacities[resource]:
            return False
    least = state.shapes[item].narrowest if state.options[0].shapes else state.jobs[item].processors
    return least <= state.options[0].processors


def _would_start(state: State, begin: int, end: int, now: float) -> float:
    """Return the start of a job if all queued jobs, in order, and then this one got reservations."""
    plan_queue(state, now)
    item = soonest_done(state, begin, state.jobs, begin, end, now)
    width, length = state.jobs[item].processors, state.jobs[item].planned
    if state.options[0].shapes:
        shape = state.shapes[soonest_shape(state, item, now)]
        width, length = shape.processors, shape.planned
    if state.options[0].predict:
        length = predicted_length(state, item, length)
    return find(state, item, width, length, now)


def _dispatch(states: State, arrivals: Arrivals, job: int, now: float, dispatch: int, turn: int) -> int:
    """Return the cluster to which a job is sent, of those that are wide enough; ties go to the first."""
    if dispatch == PARTITION:
        return arrivals.cluster[job]
    clusters = arrivals.due.size
    begin, end = _first_item(arrivals, job), _first_item(arrivals, job + 1)
    chosen = -1
    best = math.inf
    for offset in range(clusters):
        cluster = (turn + offset) % clusters if dispatch == ROUND_ROBIN else offset
        state = part_of(states, cluster)
        machine = state.options[0].processors
        if not _takes(state, begin):
            continue
        value = 0.0
        if dispatch == LEAST_LOADED:
            value = state.counts[0].demand / machine
        elif dispatch == EARLIEST_START:
            value = _would_start(state, begin, end, now)
        if chosen < 0 or value < best:
            chosen = cluster
            best = value
    return chosen


def _admit(states: State, arrivals: Arrivals, job: int, cluster: int, now: float) -> None:
    """Add a job to the queue of a machine; its shape may be chosen first."""
    state = part_of(states, cluster)
    item, end = _first_item(arrivals, job), _first_item(arrivals, job + 1)
    if end > item + 1:  # choose the shape that would complete first if it were planned after the queue
        plan_queue(state, now)
        item = soonest_done(state, item, state.jobs, item, end, now)
    if arrivals.cluster.size > 0:
        arrivals.cluster[job] = cluster
        state.jobs[item].rank = arrivals.ranks[cluster, item]
        state.jobs[item].backfill_rank = arrivals.backfill_ranks[cluster, item]
    if arrivals.chosen.size > 0:
        arrivals.chosen[job] = item
    if arrivals.dependents.line.size > 0:
        take_turn(arrivals.dependents, state, item)
    if arrivals.cancellations.after.size > 0:
        note_arrival(arrivals.cancellations, item, state.jobs[item].submit)
    arrive(state, item)
    plan_next(state, item, now)


def cancel_next(states: State, arrivals: Arrivals, now: float) -> int:
    """Remove the next job that is cancelled from the queue of its machine, if it is due; return the machine, or -1."""
    jobs, coming = part_of(states, 0).jobs, arrivals.cancellations
    if coming.after.size == 0 or next_cancellation(coming, jobs) > now:
        return -1
    item = coming.heap[0].job
    coming.size[0] = pop(coming.heap, coming.size[0])
    cluster = arrivals.cluster[item] if arrivals.due.size > 1 else 0
    withdraw(part_of(states, cluster), item)
    arrivals.due[cluster] = True
    if arrivals.dependents.line.size > 0:
        release_dependents(arrivals.dependents, jobs, item, now)
    return int(cluster)


def send_next(states: State, arrivals: Arrivals, now: float, dispatch: int) -> int:
    """Send the next job that arrives to a machine; return the machine."""
    clusters = arrivals.due.size
    job = job_at(arrivals, arrivals.dependents.at[0])
    cluster = _dispatch(states, arrivals, job, now, dispatch, arrivals.turn[0]) if clusters > 1 else 0
    arrivals.turn[0] = cluster + 1
    _admit(states, arrivals, job, cluster, now)
    arrivals.due[cluster] = True
    arrivals.dependents.at[0] += 1
    return int(cluster)


def next_arrival(states: State, arrivals: Arrivals) -> float:
    """Return the time at which the next job arrives; infinity after the last."""
    return submit_at(arrivals, part_of(states, 0).jobs, arrivals.dependents.at[0])


def end_window(state: State, now: float) -> bool:
    """Process the next end of a window, if it is due; return whether it was."""
    windows = state.windows[0]
    if windows.handled == state.window_ends.size or state.window_ends[windows.handled].time > now:
        return False
    windows.handled += 1
    return True


def end_job(state: State, dependents: Dependents, now: float) -> bool:
    """Process the next completion of a job, if it is due; return whether it was."""
    if state.counts[0].running == 0 or state.running[0].time > now:
        return False
    if dependents.line.size > 0:
        release_dependents(dependents, state.jobs, state.running[0].job, now)
    complete(state, now)
    return True
