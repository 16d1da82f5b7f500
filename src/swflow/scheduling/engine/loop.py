"""The event loop: arrivals, dispatch to a cluster, choice of shapes, completions and scheduling passes."""

import math
from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import part_of
from swflow.scheduling.engine.cancellations import Cancellations, next_cancellation, note_arrival, withdraw
from swflow.scheduling.engine.dependents import Dependents, release_dependents, take_turn
from swflow.scheduling.engine.passes import (
    drop_plan,
    is_time_of_pass,
    next_pass,
    notice,
    notice_released,
    plan_next,
    plan_queue,
    serve,
    soonest_done,
    soonest_shape,
)
from swflow.scheduling.state.changes import advance, arrive, complete, predicted_length
from swflow.scheduling.state.choices import Dispatch
from swflow.scheduling.state.heap import pop
from swflow.scheduling.state.layout import CONSERVATIVE, SLURM, State
from swflow.scheduling.state.operations import come_back, find, leave, next_change, room, settle
from swflow.scheduling.state.queue import root_of

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


def _job(arrivals: Arrivals, place: int) -> int:
    """Return the job that arrives at a place of the order of arrival."""
    return arrivals.dependents.line[place] if arrivals.dependents.line.size > 0 else place


def _first_item(arrivals: Arrivals, job: int) -> int:
    return arrivals.first[job] if arrivals.first.size > 0 else job


def _submit(arrivals: Arrivals, jobs: np.ndarray, place: int) -> float:
    """Return the submit time at a place of the order of arrival, infinity after the last."""
    count = arrivals.first.size - 1 if arrivals.first.size > 0 else jobs.size
    return jobs[_first_item(arrivals, _job(arrivals, place))].submit if place < count else math.inf


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


def _next_event(state: State, last: float) -> float:
    """Return the time of the next event at a machine other than an arrival; ``last`` is the time of the last event."""
    counts, windows = state.counts[0], state.windows[0]
    now = math.inf
    if counts.running > 0:
        now = state.running[0].time
    if windows.handled < state.window_ends.size:
        now = min(now, state.window_ends[windows.handled].time)
    if state.options[0].backfill >= CONSERVATIVE:
        now = min(now, root_of(state.queue).length)
    elif state.options[0].backfill == SLURM:
        now = min(now, next_pass(state, last))
    return min(now, next_change(state))


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


def _end_window(state: State, now: float) -> bool:
    """Process the next end of a window, if it is due; return whether it was."""
    windows = state.windows[0]
    if windows.handled == state.window_ends.size or state.window_ends[windows.handled].time > now:
        return False
    windows.handled += 1
    return True


def _end_job(state: State, dependents: Dependents, now: float) -> bool:
    """Process the next completion of a job, if it is due; return whether it was."""
    if state.counts[0].running == 0 or state.running[0].time > now:
        return False
    if dependents.line.size > 0:
        release_dependents(dependents, state.jobs, state.running[0].job, now)
    complete(state, now)
    return True


def _leave_nodes(state: State, arrivals: Arrivals, now: float) -> bool:
    """Process the next preempted job that leaves its nodes, if it is due; return whether it was."""
    item = leave(state, now)
    if item < 0:
        return False
    if np.isnan(state.jobs[item].start):  # it is requeued, and not cancelled any more
        if arrivals.cancellations.after.size > 0:
            arrivals.cancellations.after[item] = np.inf
    elif arrivals.dependents.line.size > 0:
        release_dependents(arrivals.dependents, state.jobs, item, now)
    return True


def _cancel_next(states: State, arrivals: Arrivals, now: float) -> bool:
    """Remove the next job that is cancelled from the queue of its machine, if it is due; return whether it was."""
    jobs, coming = part_of(states, 0).jobs, arrivals.cancellations
    if coming.after.size == 0 or next_cancellation(coming, jobs) > now:
        return False
    item = coming.heap[0].job
    coming.size[0] = pop(coming.heap, coming.size[0])
    cluster = arrivals.cluster[item] if arrivals.due.size > 1 else 0
    withdraw(part_of(states, cluster), item)
    notice(part_of(states, cluster), now)
    arrivals.due[cluster] = True
    if arrivals.dependents.line.size > 0:
        release_dependents(arrivals.dependents, jobs, item, now)
    return True


def _send_next(states: State, arrivals: Arrivals, now: float, dispatch: int) -> None:
    """Send the next job that arrives to a machine."""
    clusters = arrivals.due.size
    job = _job(arrivals, arrivals.dependents.at[0])
    cluster = _dispatch(states, arrivals, job, now, dispatch, arrivals.turn[0]) if clusters > 1 else 0
    arrivals.turn[0] = cluster + 1
    _admit(states, arrivals, job, cluster, now)
    notice(part_of(states, cluster), now)
    arrivals.due[cluster] = True
    arrivals.dependents.at[0] += 1


def _time_of_next(states: State, arrivals: Arrivals) -> float:
    """Return the time of the next event; infinity at the end, or if the queued jobs never fit."""
    jobs = part_of(states, 0).jobs
    now = _submit(arrivals, jobs, arrivals.dependents.at[0])
    is_busy = now < math.inf
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        is_busy = is_busy or state.counts[0].running > 0 or state.counts[0].queued > 0 or next_change(state) < math.inf
        now = min(now, _next_event(state, arrivals.clock[0]))
    if arrivals.cancellations.after.size > 0:
        now = min(now, next_cancellation(arrivals.cancellations, jobs))
    # Rounding may put the end of a penalized job before an arrival.
    return max(now, arrivals.clock[0]) if is_busy else math.inf


def _have_room(states: State, arrivals: Arrivals, now: float) -> bool:
    """Return whether the arrays of all machines have room for the events of an instant."""
    jobs, coming = part_of(states, 0).jobs, 0
    while _submit(arrivals, jobs, arrivals.dependents.at[0] + coming) <= now:
        coming += 1
    for cluster in range(arrivals.due.size):  # noqa: SIM110
        if not room(part_of(states, cluster), coming):
            return False
    return True


def _open(state: State, now: float) -> bool:
    """Advance a machine's clock to an event; return whether a pass is due without an event."""
    advance(state, now)
    if is_time_of_pass(state, now):
        return True
    return state.options[0].backfill >= CONSERVATIVE and root_of(state.queue).length <= now


def _happen_together(states: State, arrivals: Arrivals, now: float, dispatch: int) -> None:
    """Process all events of an instant: windows, completions and cancellations, then arrivals."""
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        due, happened = _open(state, now), False
        while _end_window(state, now):
            happened = True
        while _end_job(state, arrivals.dependents, now):
            happened = True
        if happened:
            notice(state, now)
        while _leave_nodes(state, arrivals, now):
            notice_released(state, now)
            happened = True
        come_back(state, now)
        settle(state, now, False)
        arrivals.due[cluster] = due or happened
    while _cancel_next(states, arrivals, now):
        pass
    while _submit(arrivals, part_of(states, 0).jobs, arrivals.dependents.at[0]) <= now:
        _send_next(states, arrivals, now, dispatch)


def _first_to_complete(states: State, arrivals: Arrivals, now: float) -> int:
    """Return the machine with the completed job of the lowest index; -1 if no job is completed."""
    chosen, lowest = -1, part_of(states, 0).jobs.size
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        first = state.running[0]
        if state.counts[0].running > 0 and first.time <= now and first.job < lowest:
            lowest = first.job
            chosen = cluster
    return chosen


def _happen_alone(states: State, arrivals: Arrivals, now: float, dispatch: int) -> None:
    """Process one event: an arrival if there is one, else a completion, the end of a window, or a cancellation."""
    arrives = _submit(arrivals, part_of(states, 0).jobs, arrivals.dependents.at[0]) <= now
    completes = -1 if arrives else _first_to_complete(states, arrivals, now)
    is_open = not arrives and completes < 0  # whether the event is still to be found
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        due = _open(state, now)
        if cluster == completes:
            due = _end_job(state, arrivals.dependents, now) or due
        elif is_open and _end_window(state, now):
            due = True
            is_open = False
        arrivals.due[cluster] = due
    if is_open:
        _cancel_next(states, arrivals, now)
    if arrives:
        _send_next(states, arrivals, now, dispatch)


def run_events(states: State, arrivals: Arrivals, dispatch: int) -> int:
    """
    Run all machines from the first event to the last; a machine makes a pass after each of its events.

    Returns 1; or 0 if a machine lacks room for the next event: enlarge its arrays, and call again.
    """
    per_event = part_of(states, 0).options[0].per_event
    while True:
        now = _time_of_next(states, arrivals)
        if now == math.inf:
            return 1
        if not _have_room(states, arrivals, now):
            return 0
        arrivals.clock[0] = now
        if per_event:
            _happen_alone(states, arrivals, now, dispatch)
        else:
            _happen_together(states, arrivals, now, dispatch)
        for cluster in range(arrivals.due.size):
            state = part_of(states, cluster)
            drop_plan(state)
            if arrivals.due[cluster]:
                serve(state, now)
                settle(state, now, True)
