"""Slurm's event loop: arrivals, completions, nodes that preempted jobs leave, and the times of its schedulers."""

import math

import numpy as np

from swflow.compiled.kernel import part_of
from swflow.scheduling.slurm.operations import come_back, leave, next_change
from swflow.scheduling.slurm.search import insert_sorted
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.slurm.timetable import is_time_of_pass, next_pass, notice, notice_released, serve
from swflow.scheduling.state.arrivals import Arrivals, cancel_next, end_job, end_window, job_at, next_arrival, send_next
from swflow.scheduling.state.changes import advance
from swflow.scheduling.state.operations import next_cancellation, release_dependents
from swflow.scheduling.state.whole_queue import drop_plan


def _next_event(state: SlurmState, last: float) -> float:
    """Return the time of the next event at a machine other than an arrival; ``last`` is the time of the last event."""
    windows = state.windows[0]
    now = min(next_pass(state, last), next_change(state))
    if state.counts[0].running > 0:
        now = min(now, state.running[0].time)
    if windows.handled < state.window_ends.size:
        now = min(now, state.window_ends[windows.handled].time)
    return now


def _time_of_next(states: SlurmState, arrivals: Arrivals) -> float:
    """Return the time of the next event; infinity at the end, or if the queued jobs never fit."""
    now = next_arrival(states, arrivals)
    is_busy = now < math.inf
    for cluster in range(arrivals.due.size):
        state = part_of(states, cluster)
        is_busy = is_busy or state.counts[0].running > 0 or state.counts[0].queued > 0 or next_change(state) < math.inf
        now = min(now, _next_event(state, arrivals.clock[0]))
    if arrivals.cancellations.after.size > 0:
        now = min(now, next_cancellation(arrivals.cancellations, part_of(states, 0).jobs))
    return max(now, arrivals.clock[0]) if is_busy else math.inf


def _leave_nodes(state: SlurmState, arrivals: Arrivals, now: float) -> bool:
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


def _happen(state: SlurmState, arrivals: Arrivals, now: float) -> bool:
    """Process the windows and completions of an instant at a machine; return whether something happened or is due."""
    advance(state, now)
    due, happened = is_time_of_pass(state, now), False
    while end_window(state, now):
        happened = True
    while end_job(state, arrivals.dependents, now):
        happened = True
    if happened:
        notice(state, now)
    while _leave_nodes(state, arrivals, now):
        notice_released(state, now)
        happened = True
    come_back(state, now)
    return due or happened


def _change_queues(states: SlurmState, arrivals: Arrivals, now: float, dispatch: int) -> None:
    """Process the cancellations and then the arrivals of an instant."""
    cluster = cancel_next(states, arrivals, now)
    while cluster >= 0:
        notice(part_of(states, cluster), now)
        cluster = cancel_next(states, arrivals, now)
    while next_arrival(states, arrivals) <= now:
        item = job_at(arrivals, arrivals.dependents.at[0])
        state = part_of(states, send_next(states, arrivals, now, dispatch))
        insert_sorted(state, item, state.jobs[item].submit)
        notice(state, now)


def run_slurm(states: SlurmState, arrivals: Arrivals, dispatch: int) -> int:
    """Run all machines from the first event to the last; return 1."""
    while True:
        now = _time_of_next(states, arrivals)
        if now == math.inf:
            return 1
        arrivals.clock[0] = now
        for cluster in range(arrivals.due.size):
            arrivals.due[cluster] = _happen(part_of(states, cluster), arrivals, now)
        _change_queues(states, arrivals, now, dispatch)
        for cluster in range(arrivals.due.size):
            state = part_of(states, cluster)
            drop_plan(state)
            if arrivals.due[cluster]:
                serve(state, now)
