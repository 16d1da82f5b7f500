"""Machines whose processors are only counted: what the engine asks of them, answered by an availability profile."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from swflow.kernels import lean
from swflow.scheduling.engine import machine as asked
from swflow.scheduling.engine.machine import AHEAD
from swflow.scheduling.engine.queue import NOBODY, following
from swflow.scheduling.engine.state import CONSERVATIVE, State, take
from swflow.scheduling.machine.profile import (
    Availability,
    Bounds,
    add,
    begin_round,
    earliest,
    end_round,
    enter,
    move,
    new_bounds,
    new_profile,
    next_place,
    pass_by,
    plan_anew,
    refresh,
)


class Counted(NamedTuple):
    """
    How many processors are free when.

    In ``profile`` by what is planned of running jobs and by reservations; in ``ahead`` besides by a plan of the whole
    queue, in which jobs have ``starts``, and whose places are found with ``bounds``.
    """

    profile: Availability
    ahead: Availability
    bounds: Bounds
    starts: np.ndarray  # of every job; empty if nobody plans


def new_counted(
    machine: int,
    changes: int,
    windows: Sequence[tuple[float, float, int]],
    processors: np.ndarray,
    planned: np.ndarray,
    plans_ahead: bool,
) -> Counted:
    """
    Make an idle machine.

    Parameters
    ----------
    machine : int
        Processors.
    changes : int
        How many changes to come there may be by what is planned of running jobs and reservations.
    windows : sequence of (from, until, processors)
        When processors are away.
    processors, planned : arrays of shape (jobs,)
        Processors of the jobs and their planned run times in seconds.
    plans_ahead : bool
        Whether the whole queue is planned.

    Returns
    -------
    Counted
    """
    profile = new_profile(machine, changes)
    for begin, until, away in windows:
        enter(profile, begin, -away)
        enter(profile, until, away)
    jobs = slice(None if plans_ahead else 0)
    return Counted(
        profile,
        new_profile(machine, changes + 2 * planned[jobs].size),
        new_bounds(processors[jobs], planned[jobs]),
        np.full(planned[jobs].size, np.nan),
    )


@lean
def _has_room(state: State, coming: int) -> bool:
    return True


@lean
def _move_profile(state: State, now: float) -> None:
    _pass(state.free.profile, now)


@lean
def _pass(profile: Availability, now: float) -> None:
    head = profile.head[0]
    head.now = now
    if head.blocks > 0 and profile.blocks[0].first <= now:
        pass_by(profile, now)


# -- running jobs


@lean
def _take_count(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    if job.reserved != now:  # else its place in the profile is that of its reservation
        if state.options[0].backfill == CONSERVATIVE:
            _free_span(state, item)
        state.free.profile.head[0].level -= job.processors
        add(state.free.profile, job.planned_end, job.processors)
    if state.free.starts.size > 0 and state.free.starts[item] != now:
        state.now[0].kept = 0


@lean
def _return_count(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    if now < job.planned_end:
        state.free.profile.head[0].level += job.processors
        add(state.free.profile, job.planned_end, -job.processors)
        state.now[0].kept = 0


@lean
def _nothing_shared(state: State, now: float, come: bool) -> None:
    pass


@lean
def _recorded_end(state: State, item: int) -> float:
    return state.jobs[item].start + state.jobs[item].run


@lean
def _estimate_of(state: State, item: int) -> float:
    return state.predicted[item].estimate


@lean
def _extend_count(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    add(state.free.profile, now, -job.processors)
    add(state.free.profile, job.planned_end, job.processors)
    state.now[0].kept = 0


# -- passes


@lean
def _count_free(state: State) -> int:
    return state.options[0].machine - state.now[0].busy - state.now[0].closed


@lean
def _open_count(state: State, now: float, free: int) -> None:
    state.steps[0].free = free
    state.now[0].steps = 1
    # Who ends now by the plan, but is not yet done, is in the way of a start, though not of a plan.
    state.now[0].unfinished = state.free.profile.head[0].level - free
    if state.options[0].windows:
        _find_steps(state)


@lean
def _count_is_kept(state: State, now: float) -> bool:
    return True  # whoever started since leaves it as it is


@lean
def _find_steps(state: State) -> None:
    """Read from the profile what is free now, and after every loss of processors to come."""
    head, steps = state.free.profile.head[0], state.steps
    level = head.level
    steps[0].time = head.now
    steps[0].free = level - state.now[0].unfinished
    count = 1
    for place in range(head.blocks):
        block = state.free.profile.blocks[place]
        if block.stale:
            refresh(state.free.profile, place)
        if block.losses == 0:
            level += block.total
            continue
        for k in range(block.count):
            change = state.free.profile.changes[block.row, k]
            level += change.change
            if change.change < 0:
                steps[count].time = change.time
                steps[count].free = level
                count += 1
    state.now[0].steps = count


@lean
def _fits(steps: np.ndarray, count: int, processors: int, end: float) -> bool:
    """Return whether so many processors are free from now to an end."""
    if processors > steps[0].free:
        return False
    for k in range(1, count):
        if steps[k].time >= end:
            break
        if processors > steps[k].free:
            return False
    return True


@lean
def _count_can_start(state: State, item: int, now: float) -> bool:
    job, count = state.jobs[item], state.now[0].steps
    if not state.options[0].shapes:
        return _fits(state.steps, count, job.processors, now + job.planned)
    chosen = _fastest_fitting(state.steps, count, state.shapes, item, now)
    if chosen >= 0:
        take(state, item, chosen)
    return chosen >= 0


@lean
def _fastest_fitting(steps: np.ndarray, count: int, shapes: np.ndarray, item: int, now: float) -> int:
    """Return the fastest of a job's shapes that fit now, the narrowest of equals; -1 if none fits."""
    chosen = -1
    for k in range(shapes[item].first, shapes[item].end):
        shape = shapes[k]
        faster = chosen < 0 or shape.planned < shapes[chosen].planned
        if faster and _fits(steps, count, shape.processors, now + shape.planned):
            chosen = k
    return chosen


@lean
def _count_started(state: State, item: int, now: float) -> None:
    """Take its processors from the steps that a job lives through."""
    job, steps = state.jobs[item], state.steps
    for k in range(state.now[0].steps):
        if steps[k].time >= job.planned_end:
            break
        steps[k].free -= job.processors


@lean
def _find_in_profile(state: State, item: int, width: int, length: float, now: float, where: int) -> float:
    if where == AHEAD and state.options[0].backfill != CONSERVATIVE:
        return next_place(state.free.ahead, state.free.bounds, width, length)
    return earliest(state.free.profile, width, length, -np.inf, np.inf)


@lean
def _reserve_count(state: State, item: int, now: float) -> None:
    job, free = state.jobs[item], state.free.profile
    if state.options[0].simple:  # nothing else to come but ends of jobs: the shadow and the extra processors
        state.steps[1].time = job.reserved
        state.steps[1].free = free.head[0].found - job.processors
        state.now[0].steps = 2
    else:
        _take_span(state, item)
        _find_steps(state)


@lean
def _unreserve_count(state: State, item: int) -> None:
    if not state.options[0].simple:
        _free_span(state, item)


# -- reservations


@lean
def _change_span(free: Availability, begin: float, end: float, change: int) -> None:
    """Let so many more processors be free for a while; nothing, if it never begins."""
    if begin < np.inf:
        add(free, begin, change)
        add(free, end, -change)


@lean
def _take_span(state: State, item: int) -> None:
    """Take the processors of a job's reservation out of the profile."""
    job = state.jobs[item]
    _change_span(state.free.profile, job.reserved, job.reserved + job.planned, -job.processors)


@lean
def _free_span(state: State, item: int) -> None:
    """Give them back."""
    job = state.jobs[item]
    _change_span(state.free.profile, job.reserved, job.reserved + job.planned, job.processors)


@lean
def _hold_count(state: State, item: int) -> None:
    _take_span(state, item)
    head = state.free.profile.head[0]
    head.seen = max(head.seen, state.jobs[item].reserved)


@lean
def _open_round(state: State) -> None:
    begin_round(state.free.profile, state.now[0].queued)


@lean
def _move_count(state: State, item: int, now: float) -> None:
    job = state.jobs[item]
    job.reserved = move(state.free.profile, job.processors, job.planned, job.reserved)


@lean
def _close_round(state: State) -> None:
    end_round(state.free.profile)


# -- plans of the whole queue


@lean
def _open_ahead(state: State, now: float) -> int:
    """
    Return up to which rank the queue is in the plan already.

    The plan stays as it is until a job ends before its time, or starts at another time than its own. The time alone
    changes it if a job has not started when it should.
    """
    core, free = state.now[0], state.free
    if state.options[0].backfill == CONSERVATIVE:  # only newcomers have no reservation
        return -1
    if core.kept and core.planned_first < now:
        core.planned_first = _first_start(state)
    if core.kept and core.planned_first >= now:
        _pass(free.ahead, now)
        return core.planned_rank
    plan_anew(free.ahead, free.bounds, free.profile)
    core.kept = 1
    core.planned_first = np.inf
    return -1


@lean
def _first_start(state: State) -> float:
    """Return when the first of the queued jobs starts by plan."""
    queue, first = state.queue, np.inf
    rank = following(queue.nodes, queue.levels, 0, NOBODY - 1, 0, 0.0, 0.0)
    while 0 <= rank <= state.now[0].planned_rank:
        first = min(first, state.free.starts[queue.job_at[rank]])
        rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
    return first


@lean
def _plan_ahead(state: State, item: int, time: float) -> bool:
    job, free = state.jobs[item], state.free
    if state.options[0].backfill == CONSERVATIVE:
        job.reserved = time
        _take_span(state, item)
        return True
    _change_span(free.ahead, time, time + job.planned, -job.processors)
    free.starts[item] = time
    state.now[0].planned_first = min(state.now[0].planned_first, time)
    return False


@lean
def _no_table(state: State, now: float) -> None:
    pass  # the profile needs none


@lean
def _count_can_begin(state: State, item: int) -> bool:
    return state.now[0].busy + state.jobs[item].processors <= state.options[0].machine


#: What counted processors answer.
COUNTED: dict[Any, Any] = {
    asked.room: _has_room,
    asked.move_on: _move_profile,
    asked.occupy: _take_count,
    asked.release: _return_count,
    asked.settle: _nothing_shared,
    asked.end_of: _recorded_end,
    asked.longest: _estimate_of,
    asked.extend: _extend_count,
    asked.free_now: _count_free,
    asked.open_pass: _open_count,
    asked.is_kept: _count_is_kept,
    asked.can_start: _count_can_start,
    asked.started: _count_started,
    asked.find: _find_in_profile,
    asked.reserve: _reserve_count,
    asked.unreserve: _unreserve_count,
    asked.hold: _hold_count,
    asked.let_go: _free_span,
    asked.open_round: _open_round,
    asked.move_forward: _move_count,
    asked.close_round: _close_round,
    asked.renew: _no_table,
    asked.can_begin: _count_can_begin,
    asked.serve_in_table: _no_table,
    asked.open_plan: _open_ahead,
    asked.plan: _plan_ahead,
    asked.drop: _free_span,
}
