"""The timetable of Slurm's two schedulers: when a pass of the main scheduler or a cycle is due, and what it is for."""

import math

import numpy as np

from swflow.scheduling.slurm.operations import plan_cycle, start_jobs
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.state.changes import correct
from swflow.scheduling.state.operations import free_now
from swflow.scheduling.state.queue import NO_JOB, root_of

#: Seconds between the times at which Slurm's main scheduler may make a pass: `_slurmctld_background` in
#: src/slurmctld/controller.c sleeps ten times 0.1 s, and works in between. In 105 logs of a Slurm 22.05 it is 1.0042 s;
#: a power of two keeps multiples exact.
TICK = 1 + 1 / 256


def notice(state: SlurmState, now: float) -> None:
    """Schedule the pass of Slurm's main scheduler because of an event, after a delay since its last pass."""
    parameters, timetable = state.own.parameters[0], state.own.timetable[0]
    last = max(timetable.last_pass, _rounded_down(now, parameters.every))
    time = max(now, last + parameters.batch_delay)
    timetable.due = min(timetable.due, math.ceil(time / TICK) * TICK)
    timetable.settled = 0
    _request_cycle(state, now)


def notice_released(state: SlurmState, now: float) -> None:
    """Schedule a pass at once since a preempted job left its nodes (`_slurm_rpc_epilog_complete` in proc_req.c)."""
    state.own.timetable[0].at_once, state.own.timetable[0].settled = 1, 0
    _request_cycle(state, now)


def _request_cycle(state: SlurmState, now: float) -> None:
    """
    Schedule the next cycle, because of a change since the last one.

    When an interval has passed without a change, Slurm looks for one every second (`backfill_agent` in
    src/plugins/sched/backfill/backfill.c).
    """
    parameters, timetable = state.own.parameters[0], state.own.timetable[0]
    if parameters.interval > 0:
        due = timetable.last_cycle + parameters.interval
        timetable.cycle = min(timetable.cycle, due + max(math.ceil(now - due), 0))


def is_time_of_pass(state: SlurmState, now: float) -> bool:
    """Return whether a pass of Slurm's main scheduler, or a cycle, is due."""
    timetable, every = state.own.timetable[0], state.own.parameters[0].every
    return min(timetable.due, timetable.cycle) <= now or (state.counts[0].queued > 0 and _is_multiple(now, every))


def next_pass(state: SlurmState, now: float) -> float:
    """Return the time of the next pass or cycle; infinity if there is none, or it would find what the last one did."""
    counts, windows, timetable, every = (
        state.counts[0],
        state.windows[0],
        state.own.timetable[0],
        state.own.parameters[0].every,
    )
    closed = windows.handled < state.window_ends.size and state.window_ends[windows.handled].time < np.inf
    time = min(timetable.due, timetable.cycle)
    if counts.queued == 0 or (timetable.settled and counts.running == 0 and not closed):
        return time
    return min(time, _rounded_down(now, every) + every)


def _rounded_down(time: float, unit: float) -> float:
    """Return the last multiple of a unit until a time."""
    return math.floor(time / unit) * unit


def _is_multiple(time: float, unit: float) -> bool:
    return time == _rounded_down(time, unit)


def slot_start(state: SlurmState, time: float) -> float:
    """Return the start of the slot at a time: the last multiple of the resolution, in seconds from 1970 on."""
    parameters = state.own.parameters[0]
    resolution, epoch = parameters.resolution, parameters.epoch
    return math.floor((time + epoch) / resolution) * resolution - epoch


def serve(state: SlurmState, now: float) -> None:
    """Make the pass of the main scheduler and the cycle, if they are due."""
    agenda = state.agenda[0]
    if state.options[0].corrects:
        correct(state, now)
    _serve(state, now)
    agenda.newcomers = agenda.corrected = agenda.ended_early = 0


def _serve(state: SlurmState, now: float) -> None:
    parameters, counts, timetable = state.own.parameters[0], state.counts[0], state.own.timetable[0]
    tests_all = counts.queued > 0 and _is_multiple(now, parameters.every)
    is_due = timetable.due <= now or tests_all
    if is_due:
        timetable.due, timetable.last_pass = np.inf, now
    if is_due or timetable.at_once:
        timetable.at_once = 0
        timetable.tests = NO_JOB if tests_all else parameters.depth
        timetable.skips = tests_all
        queued, is_full = counts.queued, root_of(state.queue).width > free_now(state)
        if queued > 0:
            start_jobs(state, now)
            # A pass that tests only jobs at a limit is no reason for a cycle.
            if is_full or counts.queued < queued or timetable.waits:
                _request_cycle(state, now)
    is_cycle = timetable.cycle <= now
    if is_cycle:
        timetable.cycle, timetable.last_cycle = np.inf, now
        timetable.skips = 1
        queued = counts.queued
        if queued > 0:
            plan_cycle(state, now)
            if counts.queued < queued:
                _request_cycle(state, now)
    timetable.skips = 0
    if tests_all or is_cycle:
        timetable.settled = 1
