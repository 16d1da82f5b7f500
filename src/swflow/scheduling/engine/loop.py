"""The loop of events: jobs arrive, are sent to a machine, choose their shape, wait, start and end."""

import math
from typing import NamedTuple

import numpy as np

from swflow.kernels import lean
from swflow.scheduling.engine.centres import machine_of
from swflow.scheduling.engine.followers import Followers, release_followers, take_turn
from swflow.scheduling.engine.machine import AHEAD, find, room, settle
from swflow.scheduling.engine.passes import drop_plan, plan_next, plan_queue, serve, soonest_done
from swflow.scheduling.engine.state import CONSERVATIVE, State, advance, arrive, complete

#: The dispatchers, as the loop numbers them, in the order of the table of options.
ROUND_ROBIN, LEAST_LOADED, EARLIEST_START, PARTITION = range(4)


class Arrivals(NamedTuple):
    """
    What arrives, and what becomes of it.

    A job is an item, a record of the state's jobs; or, if its shape is chosen when it is submitted, several of which
    one comes: those from ``first[job]`` to before ``first[job + 1]``, by ascending processors. ``ranks`` and
    ``backfill_ranks`` are those of every item at every centre.
    """

    first: np.ndarray  # empty: a job is the item of its number
    chosen: np.ndarray  # the item that came; empty alike
    centre: np.ndarray  # where, beforehand if jobs stay in their partition; empty if there is one machine
    ranks: np.ndarray
    backfill_ranks: np.ndarray
    due: np.ndarray  # scratch: at which machines something happened
    followers: Followers  # who is submitted when another job has ended
    clock: np.ndarray  # the time of the last event
    turn: np.ndarray  # whose turn it is


@lean
def _first_item(arrivals: Arrivals, job: int) -> int:
    if arrivals.followers.line.size > 0:
        return arrivals.followers.line[job]
    return arrivals.first[job] if arrivals.first.size > 0 else job


@lean
def _end_item(arrivals: Arrivals, job: int) -> int:
    if arrivals.followers.line.size > 0:
        return arrivals.followers.line[job] + 1
    return arrivals.first[job + 1] if arrivals.first.size > 0 else job + 1


@lean
def _narrowest(state: State, item: int) -> int:
    """Return the least processors that a job can run on; items come by ascending processors."""
    return state.shapes[item].narrowest if state.options[0].shapes else state.jobs[item].processors


@lean
def _soonest_item(state: State, begin: int, end: int, now: float) -> int:
    """Return the item from ``begin`` to before ``end`` that would complete first by the profile."""
    chosen = begin
    soonest = math.inf
    for item in range(begin, end):
        job = state.jobs[item]
        if job.processors > state.options[0].machine:
            break
        done = find(state, item, job.processors, job.planned, now, AHEAD) + job.planned
        if done < soonest:
            chosen = item
            soonest = done
    return chosen


@lean
def _choose(state: State, begin: int, end: int, now: float) -> int:
    """Return the item from ``begin`` to before ``end`` that would complete first if it were planned after the queue."""
    plan_queue(state, now)
    return _soonest_item(state, begin, end, now)


@lean
def _would_start(state: State, begin: int, end: int, now: float) -> float:
    """Return when a job would start if all queued jobs, in order, and then this one got reservations."""
    plan_queue(state, now)
    item = _soonest_item(state, begin, end, now)
    width, length = state.jobs[item].processors, state.jobs[item].planned
    if state.options[0].shapes:
        shape = state.shapes[soonest_done(state, item, now, AHEAD)]
        width, length = shape.processors, shape.planned
    if state.options[0].predict:
        user = state.users[state.predicted[item].user]
        if user.jobs >= 2:
            length = max(1.0, min(length, (user.older + user.newer) / 2))
    return find(state, item, width, length, now, AHEAD)


@lean
def _next_event(state: State) -> float:
    """Return when something happens at a machine by itself."""
    core = state.now[0]
    now = math.inf
    if core.running > 0:
        now = state.running[0].time
    if core.windows_handled < state.window_ends.size:
        now = min(now, state.window_ends[core.windows_handled].time)
    if state.options[0].backfill >= CONSERVATIVE:
        now = min(now, state.queue.nodes[state.queue.nodes.size - 1].length)
    return now


@lean
def _dispatch(states: State, arrivals: Arrivals, job: int, now: float, dispatch: int, turn: int) -> int:
    """Return the machine that a job is sent to, of those that are wide enough; ties go to the first."""
    if dispatch == PARTITION:
        return arrivals.centre[job]
    centres = arrivals.due.size
    begin, end = _first_item(arrivals, job), _end_item(arrivals, job)
    chosen = -1
    best = math.inf
    for offset in range(centres):
        centre = (turn + offset) % centres if dispatch == ROUND_ROBIN else offset
        state = machine_of(states, centre)
        machine = state.options[0].machine
        if _narrowest(state, begin) > machine:
            continue
        value = 0.0
        if dispatch == LEAST_LOADED:
            value = state.now[0].demand / machine
        elif dispatch == EARLIEST_START:
            value = _would_start(state, begin, end, now)
        if chosen < 0 or value < best:
            chosen = centre
            best = value
    return chosen


@lean
def _admit(states: State, arrivals: Arrivals, job: int, centre: int, now: float) -> None:
    """Put a job into the queue of a machine; its shape may be chosen first."""
    state = machine_of(states, centre)
    item, end = _first_item(arrivals, job), _end_item(arrivals, job)
    if end > item + 1:
        item = _choose(state, item, end, now)
    if arrivals.centre.size > 0:
        arrivals.centre[job] = centre
        state.jobs[item].rank = arrivals.ranks[centre, item]
        state.jobs[item].backfill_rank = arrivals.backfill_ranks[centre, item]
    if arrivals.chosen.size > 0:
        arrivals.chosen[job] = item
    if arrivals.followers.line.size > 0:
        take_turn(arrivals.followers, state, item)
    arrive(state, item)
    plan_next(state, item, now)


@lean
def _happen(state: State, followers: Followers, now: float, completes: bool, opens: bool) -> bool:
    """Let jobs and windows of a machine end; return whether any did."""
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
        if followers.line.size > 0:
            release_followers(followers, state.jobs, state.running[0].job, now)
        complete(state, now)
        due = True
        if per_event:
            break
    settle(state, now, False)
    return due


def run_events(states: State, arrivals: Arrivals, dispatch: int) -> int:
    """
    Run all machines from the first event to the last; a machine makes a pass when something happens at it.

    Returns 1; or 0 if a machine lacks room for the next event: make some, and run on.
    """
    jobs, due = states.jobs, arrivals.due
    centres = due.size
    count = arrivals.first.size - 1 if arrivals.first.size > 0 else jobs.size
    per_event = machine_of(states, 0).options[0].per_event
    arrived, turn = arrivals.followers.at[0], arrivals.turn[0]
    while True:
        now = jobs[_first_item(arrivals, arrived)].submit if arrived < count else math.inf
        busy = arrived < count
        for centre in range(centres):
            state = machine_of(states, centre)
            busy = busy or state.now[0].running > 0 or state.now[0].queued > 0
            now = min(now, _next_event(state))
        if not busy or now == math.inf:  # in the end, or if a job never fits
            return 1
        now = max(now, arrivals.clock[0])  # ends of penalized jobs are rounded, maybe to before an arrival
        coming = 0
        while arrived + coming < count and jobs[_first_item(arrivals, arrived + coming)].submit <= now:
            coming += 1
        for centre in range(centres):
            if not room(machine_of(states, centre), coming):
                arrivals.turn[0] = turn
                return 0
        arrivals.clock[0] = now
        arrives = coming > 0
        completes = -1  # one event at a time: where the completed job of the lowest index is
        if per_event and not arrives:
            lowest = jobs.size
            for centre in range(centres):
                state = machine_of(states, centre)
                first = state.running[0]
                if state.now[0].running > 0 and first.time <= now and first.job < lowest:
                    lowest = first.job
                    completes = centre
        opens = not per_event or (not arrives and completes < 0)

        for centre in range(centres):
            state = machine_of(states, centre)
            advance(state, now)
            promised = state.options[0].backfill >= CONSERVATIVE
            if promised:
                promised = state.queue.nodes[state.queue.nodes.size - 1].length <= now
            ended = _happen(state, arrivals.followers, now, not per_event or centre == completes, opens)
            due[centre] = promised or ended
            opens = opens and not (per_event and ended)
        if arrivals.followers.line.size > 0:
            arrived = arrivals.followers.at[0]
            if not per_event:
                arrives = arrived < count and jobs[_first_item(arrivals, arrived)].submit <= now

        while arrives:
            centre = _dispatch(states, arrivals, arrived, now, dispatch, turn) if centres > 1 else 0
            turn = centre + 1
            _admit(states, arrivals, arrived, centre, now)
            due[centre] = True
            arrived += 1
            arrives = not per_event and arrived < count and jobs[_first_item(arrivals, arrived)].submit <= now
        arrivals.followers.at[0] = arrived

        for centre in range(centres):
            state = machine_of(states, centre)
            drop_plan(state)
            if due[centre]:
                serve(state, now)
                settle(state, now, True)
