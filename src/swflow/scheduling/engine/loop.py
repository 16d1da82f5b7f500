"""The event loop: arrivals, dispatch to a cluster, choice of shapes, completions and scheduling passes."""

import math
from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import part_of
from swflow.scheduling.engine.cancellations import Cancellations, next_cancellation, note_arrival, withdraw
from swflow.scheduling.engine.dependents import Dependents, release_dependents, take_turn
from swflow.scheduling.engine.heap import pop
from swflow.scheduling.engine.operations import find, room, settle
from swflow.scheduling.engine.passes import drop_plan, plan_next, plan_queue, serve, soonest_done, soonest_shape
from swflow.scheduling.engine.queue import root_of
from swflow.scheduling.engine.state import CONSERVATIVE, State, advance, arrive, complete, predicted_length

#: The numbers of the dispatch rules, in the order of the table of options.
ROUND_ROBIN, LEAST_LOADED, EARLIEST_START, PARTITION = range(4)


class Arrivals(NamedTuple):
    """
    The jobs that arrive, and where they are sent.

    A job is an item, that is a record of the state's jobs; or, if its shape is chosen when it is submitted, several
    items of which one arrives: those from ``first[job]`` to before ``first[job + 1]``, by ascending processors.
    ``ranks`` and ``backfill_ranks`` are those of every item at every cluster.
    """

    first: np.ndarray  # empty: a job is the item of its number
    chosen: np.ndarray  # the item that arrived; also empty
    cluster: np.ndarray  # of each job, known beforehand with dispatch by partition; empty if there is one machine
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
    return least <= state.options[0].machine


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


def _next_event(state: State) -> float:
    """Return the time of the next event at a machine other than an arrival."""
    core = state.now[0]
    now = math.inf
    if core.running > 0:
        now = state.running[0].time
    if core.windows_handled < state.window_ends.size:
        now = min(now, state.window_ends[core.windows_handled].time)
    if state.options[0].backfill >= CONSERVATIVE:
        now = min(now, root_of(state.queue).length)
    return now


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
        machine = state.options[0].machine
        if not _takes(state, begin):
            continue
        value = 0.0
        if dispatch == LEAST_LOADED:
            value = state.now[0].demand / machine
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


def _happen(state: State, dependents: Dependents, now: float, completes: bool, opens: bool) -> bool:
    """Process the ends of jobs and windows of a machine; return whether there were any."""
    core, per_event = state.now[0], state.options[0].per_event
    due = False
    while opens and core.windows_handled < state.window_ends.size:
        if state.window_ends[core.windows_handled].time > now:
            break
        core.windows_handled += 1
        due = True
        if per_event:
            break
    while completes and core.running > 0 and state.running[0].time <= now:
        if dependents.line.size > 0:
            release_dependents(dependents, state.jobs, state.running[0].job, now)
        complete(state, now)
        due = True
        if per_event:
            break
    settle(state, now, False)
    return due


def _cancel(states: State, arrivals: Arrivals, now: float, one: bool) -> None:
    """Remove the jobs that are cancelled now, or only the next ``one``, from the queues of their machines."""
    jobs, coming = part_of(states, 0).jobs, arrivals.cancellations
    while next_cancellation(coming, jobs) <= now:
        item = coming.heap[0].job
        coming.size[0] = pop(coming.heap, coming.size[0])
        cluster = arrivals.cluster[item] if arrivals.due.size > 1 else 0
        withdraw(part_of(states, cluster), item)
        arrivals.due[cluster] = True
        if arrivals.dependents.line.size > 0:
            release_dependents(arrivals.dependents, jobs, item, now)
        if one:
            break


def run_events(states: State, arrivals: Arrivals, dispatch: int) -> int:
    """
    Run all machines from the first event to the last; a machine makes a pass after each of its events.

    Returns 1; or 0 if a machine lacks room for the next event: enlarge its arrays, and call again.
    """
    jobs, due = part_of(states, 0).jobs, arrivals.due
    clusters = due.size
    per_event = part_of(states, 0).options[0].per_event
    arrived, turn = arrivals.dependents.at[0], arrivals.turn[0]
    while True:
        now = _submit(arrivals, jobs, arrived)
        busy = now < math.inf
        for cluster in range(clusters):
            state = part_of(states, cluster)
            busy = busy or state.now[0].running > 0 or state.now[0].queued > 0
            now = min(now, _next_event(state))
        if arrivals.cancellations.after.size > 0:
            now = min(now, next_cancellation(arrivals.cancellations, jobs))
        if not busy or now == math.inf:  # at the end, or if a job never fits
            return 1
        now = max(now, arrivals.clock[0])  # rounding may put the end of a penalized job before an arrival
        coming = 0
        while _submit(arrivals, jobs, arrived + coming) <= now:
            coming += 1
        for cluster in range(clusters):
            if not room(part_of(states, cluster), coming):
                arrivals.turn[0] = turn
                return 0
        arrivals.clock[0] = now
        arrives = coming > 0
        completes = -1  # one event at a time: the machine whose completed job has the lowest index
        if per_event and not arrives:
            lowest = jobs.size
            for cluster in range(clusters):
                state = part_of(states, cluster)
                first = state.running[0]
                if state.now[0].running > 0 and first.time <= now and first.job < lowest:
                    lowest = first.job
                    completes = cluster
        opens = not per_event or (not arrives and completes < 0)

        for cluster in range(clusters):
            state = part_of(states, cluster)
            advance(state, now)
            promised = state.options[0].backfill >= CONSERVATIVE and root_of(state.queue).length <= now
            ended = _happen(state, arrivals.dependents, now, not per_event or cluster == completes, opens)
            due[cluster] = promised or ended
            opens = opens and not (per_event and ended)
        if arrivals.cancellations.after.size > 0 and opens:
            _cancel(states, arrivals, now, per_event)
        if arrivals.dependents.line.size > 0:
            arrived = arrivals.dependents.at[0]
            if not per_event:
                arrives = _submit(arrivals, jobs, arrived) <= now

        while arrives:
            job = _job(arrivals, arrived)
            cluster = _dispatch(states, arrivals, job, now, dispatch, turn) if clusters > 1 else 0
            turn = cluster + 1
            _admit(states, arrivals, job, cluster, now)
            due[cluster] = True
            arrived += 1
            arrives = not per_event and _submit(arrivals, jobs, arrived) <= now
        arrivals.dependents.at[0] = arrived

        for cluster in range(clusters):
            state = part_of(states, cluster)
            drop_plan(state)
            if due[cluster]:
                serve(state, now)
                settle(state, now, True)
