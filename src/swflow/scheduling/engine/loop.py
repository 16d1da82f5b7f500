"""The event loop: arrivals, completions and scheduling passes."""

import math

from swflow.compiled.kernel import part_of
from swflow.scheduling.engine.passes import serve
from swflow.scheduling.state.arrivals import (
    Arrivals,
    cancel_next,
    end_job,
    end_window,
    next_arrival,
    send_next,
    submit_at,
)
from swflow.scheduling.state.changes import advance
from swflow.scheduling.state.layout import CONSERVATIVE, State
from swflow.scheduling.state.operations import next_cancellation, room, settle
from swflow.scheduling.state.queue import root_of
from swflow.scheduling.state.whole_queue import drop_plan


def _next_event(state: State) -> float:
    """Return the time of the next event at a machine other than an arrival."""
    counts, windows = state.counts[0], state.windows[0]
    now = math.inf
    if counts.running > 0:
        now = state.running[0].time
    if windows.handled < state.window_ends.size:
        now = min(now, state.window_ends[windows.handled].time)
    if state.options[0].backfill >= CONSERVATIVE:
        now = min(now, root_of(state.queue).length)
    return now


def _time_of_next(states: State, arrivals: Arrivals) -> float:
    """Return the time of the next event; infinity at the end, or if the queued jobs never fit."""
    jobs = part_of(states, 0).jobs
    now = next_arrival(states, arrivals)
    is_busy = now < math.inf
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        is_busy = is_busy or state.counts[0].running > 0 or state.counts[0].queued > 0
        now = min(now, _next_event(state))
    if arrivals.cancellations.after.size > 0:
        now = min(now, next_cancellation(arrivals.cancellations, jobs))
    # Rounding may put the end of a penalized job before an arrival.
    return max(now, arrivals.clock[0]) if is_busy else math.inf


def _have_room(states: State, arrivals: Arrivals, now: float) -> bool:
    """Return whether the arrays of all machines have room for the events of an instant."""
    jobs, coming = part_of(states, 0).jobs, 0
    while submit_at(arrivals, jobs, arrivals.dependents.at[0] + coming) <= now:
        coming += 1
    for cluster in range(arrivals.due.size):  # noqa: SIM110
        if not room(part_of(states, cluster), coming):
            return False
    return True


def _open(state: State, now: float) -> bool:
    """Advance a machine's clock to an event; return whether a pass is due without an event."""
    advance(state, now)
    return state.options[0].backfill >= CONSERVATIVE and root_of(state.queue).length <= now


def _happen_together(states: State, arrivals: Arrivals, now: float, dispatch: int) -> None:
    """Process all events of an instant: windows, completions and cancellations, then arrivals."""
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        due, happened = _open(state, now), False
        while end_window(state, now):
            happened = True
        while end_job(state, arrivals.dependents, now):
            happened = True
        settle(state, now, False)
        arrivals.due[cluster] = due or happened
    while cancel_next(states, arrivals, now) >= 0:
        pass
    while next_arrival(states, arrivals) <= now:
        send_next(states, arrivals, now, dispatch)


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
    arrives = next_arrival(states, arrivals) <= now
    completes = -1 if arrives else _first_to_complete(states, arrivals, now)
    is_open = not arrives and completes < 0  # whether the event is still to be found
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        due = _open(state, now)
        if cluster == completes:
            due = end_job(state, arrivals.dependents, now) or due
        elif is_open and end_window(state, now):
            due = True
            is_open = False
        arrivals.due[cluster] = due
    if is_open:
        cancel_next(states, arrivals, now)
    if arrives:
        send_next(states, arrivals, now, dispatch)


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
