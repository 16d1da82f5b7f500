"""Scheduling passes: decide which queued jobs start now (none, EASY with k reservations, Slurm's, conservative)."""

import math

import numpy as np

from swflow.scheduling.slurm.on_processors import serve_cycle
from swflow.scheduling.state.changes import begin, correct, is_entered, is_limited, take
from swflow.scheduling.state.layout import CONSERVATIVE, EASY, OTHER, SLURM, State
from swflow.scheduling.state.operations import (
    can_begin,
    can_start,
    cancel,
    close_round,
    find,
    free_now,
    is_kept,
    move_forward,
    open_pass,
    open_plan,
    open_round,
    plan_apart,
    protect,
    reserve,
    serve_otherwise,
    started,
)
from swflow.scheduling.state.queue import NO_JOB, put, root_of
from swflow.scheduling.state.search import next_job, start_search

#: Seconds between the times at which Slurm's main scheduler may make a pass: `_slurmctld_background` in
#: src/slurmctld/controller.c sleeps ten times 0.1 s, and works in between. In 105 logs of a Slurm 22.05 it is 1.0042 s;
#: a power of two keeps multiples exact.
TICK = 1 + 1 / 256


def serve(state: State, now: float) -> None:
    """Make one scheduling pass."""
    options, counts, agenda = state.options[0], state.counts[0], state.agenda[0]
    if options.corrects:
        correct(state, now)
    if options.backfill == SLURM:
        serve_as_slurm(state, now)
    elif counts.queued > 0:
        if options.backfill == CONSERVATIVE:
            _serve_conservatively(state, now)
        elif options.backfill == OTHER:
            serve_otherwise(state, now)
        else:
            serve_ahead(state, now)
    agenda.newcomers = 0
    agenda.corrected = 0
    agenda.ended_early = 0


# -- no backfilling, and EASY


def serve_ahead(state: State, now: float) -> None:
    """Start the head while it fits; give the first jobs that do not fit reservations; backfill the others."""
    options, agenda, counts = state.options[0], state.agenda[0], state.counts[0]
    free = free_now(state)
    if root_of(state.queue).width > free:
        return
    # Time alone enables no start: after arrivals only these are considered, unless one is served before the
    # head, or the end of a window, the order or the plan depend on more than completions.
    whole = not options.simple or options.reservations > 1 or state.queue.formula
    whole = whole or options.limits  # after a start the head may be at its limit
    if not agenda.full and (whole or not is_kept(state, now)):
        agenda.full = 1
    state.steps[0].time = now
    held = 0
    begin_rank, end_rank = 0, state.jobs.size
    if agenda.full:
        open_pass(state, now, free)
        held = _serve_heads(state, now)
    else:
        state.steps[0].free = free
        if agenda.newcomers == 1 and not state.backfill_queue.formula:
            newcomer = state.jobs[agenda.newcomer]
            begin_rank = newcomer.rank if options.one_tree else newcomer.backfill_rank
            end_rank = begin_rank + 1
    if options.backfill == EASY and counts.queued > held:
        _backfill(state, now, begin_rank, end_rank)
    for k in range(held):
        if is_entered(state, k + 1):
            cancel(state, state.held[k])
        state.jobs[state.held[k]].reserved = np.nan


def _serve_heads(state: State, now: float) -> int:
    """Serve the queue in its order until all reservations are made; return their number."""
    options, agenda, search, queue = state.options[0], state.agenda[0], state.search[0], state.queue
    may_have = options.reservations if options.backfill == EASY else 0
    held = tested = 0
    agenda.full = 0
    agenda.reserved_rank = state.jobs.size
    start_search(state, 0)
    while True:
        item = next_job(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
        if item < 0:
            break
        tested += 1
        if tested > agenda.tests:
            agenda.full = 1  # the next pass tests others
            break
        if is_limited(state, item):
            continue
        if _can_start(state, item, now):
            _begin_within(state, item, now)
            continue
        if may_have > 0:
            if root_of(queue).width > state.steps[0].free:
                agenda.full = 1  # no other job fits, so a reservation would change nothing
                break
            state.jobs[item].reserved = _earliest_start(state, item, now)
            if is_entered(state, held + 1):
                reserve(state, item)
            protect(state, item)
            state.held[held] = item
            held += 1
        if held == may_have:
            agenda.reserved_rank = search.rank
            break
    return held


def _can_start(state: State, item: int, now: float) -> bool:
    """Return whether a job can start now; if its shape is not chosen yet, choose the fastest; ties go to the first."""
    job = state.jobs[item]
    if not state.options[0].shapes:
        return can_start(state, item, job.processors, now + job.planned)
    chosen = -1
    for k in range(state.shapes[item].first, state.shapes[item].end):
        shape = state.shapes[k]
        faster = chosen < 0 or shape.planned < state.shapes[chosen].planned
        if faster and can_start(state, item, shape.processors, now + shape.planned):
            chosen = k
    if chosen >= 0:
        take(state, item, chosen)
    return chosen >= 0


def soonest_done(state: State, item: int, choices: np.ndarray, begin: int, end: int, now: float) -> int:
    """Return the shape with the earliest planned end, by ascending processors; ties go to the narrowest."""
    chosen = begin
    soonest = math.inf
    for k in range(begin, end):
        width, length = choices[k].processors, choices[k].planned
        if width > state.options[0].processors:
            break
        done = find(state, item, width, length, now) + length
        if done < soonest:
            chosen = k
            soonest = done
    return chosen


def soonest_shape(state: State, item: int, now: float) -> int:
    """Return the shape with which a job ends first by what is planned."""
    return soonest_done(state, item, state.shapes, state.shapes[item].first, state.shapes[item].end, now)


def _earliest_start(state: State, item: int, now: float) -> float:
    """Return the earliest start of a job by what is planned; if its shape is not chosen yet, choose it for that."""
    job = state.jobs[item]
    if state.options[0].shapes:
        take(state, item, soonest_shape(state, item, now))
    return find(state, item, job.processors, job.planned, now)


def _begin_within(state: State, item: int, now: float) -> None:
    """Start a job and subtract it from the processors left for others in this pass."""
    begin(state, item, now)
    started(state, item, now)


def _backfill(state: State, now: float, begin_rank: int, end_rank: int) -> None:
    """Start, in the backfill order, the jobs that delay no reservation; ranks are of that order."""
    agenda, search, steps, tree = state.agenda[0], state.search[0], state.steps, state.backfill_queue
    start_search(state, begin_rank)
    while steps[0].free > 0:
        # The first two steps preselect the jobs.
        latest = steps[1].time if agenda.steps > 1 else np.inf
        wide = steps[0].free
        narrow = min(wide, steps[1].free) if agenda.steps > 1 else wide
        item = next_job(state, tree, now, narrow, wide, now, latest)
        if item < 0 or search.rank >= end_rank:
            break
        if np.isnan(state.jobs[item].reserved) and not is_limited(state, item) and _can_start(state, item, now):
            _begin_within(state, item, now)


# -- Slurm's two schedulers


def notice(state: State, now: float) -> None:
    """Schedule the pass of Slurm's main scheduler because of an event, after a delay since its last pass."""
    options, agenda = state.options[0], state.agenda[0]
    if options.backfill == SLURM:
        last = max(agenda.last_pass, _rounded_down(now, options.every))
        time = max(now, last + options.batch_delay)
        agenda.due = min(agenda.due, math.ceil(time / TICK) * TICK)
        agenda.settled = 0
        _request_cycle(state, now)


def notice_released(state: State, now: float) -> None:
    """Schedule a pass at once since a preempted job left its nodes (`_slurm_rpc_epilog_complete` in proc_req.c)."""
    state.agenda[0].at_once, state.agenda[0].settled = 1, 0
    _request_cycle(state, now)


def _request_cycle(state: State, now: float) -> None:
    """
    Schedule the next cycle, because of a change since the last one.

    When an interval has passed without a change, Slurm looks for one every second (`backfill_agent` in
    src/plugins/sched/backfill/backfill.c).
    """
    options, agenda = state.options[0], state.agenda[0]
    if options.interval > 0:
        due = agenda.last_cycle + options.interval
        agenda.cycle = min(agenda.cycle, due + max(math.ceil(now - due), 0))


def is_time_of_pass(state: State, now: float) -> bool:
    """Return whether a pass of Slurm's main scheduler, or a cycle, is due."""
    options = state.options[0]
    if options.backfill != SLURM:
        return False
    agenda = state.agenda[0]
    return min(agenda.due, agenda.cycle) <= now or (state.counts[0].queued > 0 and _is_multiple(now, options.every))


def next_pass(state: State, now: float) -> float:
    """Return the time of the next pass or cycle; infinity if there is none, or it would find what the last one did."""
    options, counts, windows, agenda = state.options[0], state.counts[0], state.windows[0], state.agenda[0]
    closed = windows.handled < state.window_ends.size and state.window_ends[windows.handled].time < np.inf
    time = min(agenda.due, agenda.cycle)
    if counts.queued == 0 or (agenda.settled and counts.running == 0 and not closed):
        return time
    return min(time, _rounded_down(now, options.every) + options.every)


def _rounded_down(time: float, unit: float) -> float:
    """Return the last multiple of a unit until a time."""
    return math.floor(time / unit) * unit


def _is_multiple(time: float, unit: float) -> bool:
    return time == _rounded_down(time, unit)


def serve_as_slurm(state: State, now: float) -> None:
    """Make the pass of Slurm's main scheduler and the cycle, if they are due."""
    options, counts, agenda = state.options[0], state.counts[0], state.agenda[0]
    tests_all = counts.queued > 0 and _is_multiple(now, options.every)
    is_due = agenda.due <= now or tests_all
    if is_due:
        agenda.due, agenda.last_pass = np.inf, now
    if is_due or agenda.at_once:
        agenda.at_once = 0
        agenda.tests = NO_JOB if tests_all else options.depth
        agenda.skips = tests_all
        queued, is_full = counts.queued, root_of(state.queue).width > free_now(state)
        if queued > 0:
            serve_ahead(state, now)
            # A pass that tests only jobs at a limit is no reason for a cycle.
            if is_full or counts.queued < queued or agenda.reserved_rank < state.jobs.size:
                _request_cycle(state, now)
    is_cycle = agenda.cycle <= now
    if is_cycle:
        agenda.cycle, agenda.last_cycle = np.inf, now
        agenda.skips = 1
        queued = counts.queued
        if queued > 0:
            serve_cycle(state, now)
            if counts.queued < queued:
                _request_cycle(state, now)
    agenda.skips = 0
    if tests_all or is_cycle:
        agenda.settled = 1


# -- conservative


def _serve_conservatively(state: State, now: float) -> None:
    """Give each job a reservation; when a job ended early, move reservations forward, in order of the queue."""
    agenda, queue = state.agenda[0], state.queue
    if agenda.corrected:  # reservations that assumed the prediction cannot be kept
        start_search(state, 0)
        while True:
            item = next_job(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
            if item < 0:
                break
            if not np.isnan(state.jobs[item].reserved):
                cancel(state, item)
                _note(state, item, np.nan)
    elif agenda.ended_early:
        _compress(state, now)

    if root_of(queue).length == -np.inf:
        start_search(state, 0)
        while True:
            item = next_job(state, queue, now, -1, NO_JOB - 1, 0.0, -np.inf)
            if item < 0:
                break
            _hold_earliest(state, item, now)
            if np.isnan(state.jobs[item].promise):
                state.jobs[item].promise = state.jobs[item].reserved

    if root_of(queue).length <= now:
        start_search(state, 0)
        while True:
            item = next_job(state, queue, now, -1, NO_JOB - 1, 0.0, now)
            if item < 0:
                break
            if can_begin(state, item):
                begin(state, item, now)


def _compress(state: State, now: float) -> None:
    """Move each reservation to its earliest start, in order of the queue."""
    options, queue = state.options[0], state.queue
    open_round(state)
    start_search(state, 0)
    while True:
        item = next_job(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
        if item < 0:
            break
        if np.isnan(state.jobs[item].reserved):
            continue
        before = state.jobs[item].reserved
        if options.shapes:
            cancel(state, item)
            _hold_earliest(state, item, now)
        else:
            move_forward(state, item, now)
            if state.jobs[item].reserved != before:
                _note(state, item, state.jobs[item].reserved)
    close_round(state)


def _hold_earliest(state: State, item: int, now: float) -> None:
    """Give a job without a reservation the earliest start."""
    _note(state, item, _earliest_start(state, item, now))
    reserve(state, item)


def _note(state: State, item: int, time: float) -> None:
    """Store the start of a queued job's reservation; NaN if it has none."""
    job, queue = state.jobs[item], state.queue
    job.reserved = time
    put(queue, job.rank, job.processors, -np.inf if np.isnan(time) else time)


# -- plans of the whole queue


def plan_queue(state: State, now: float) -> None:
    """Give each queued job without a reservation one, in order of the queue, until `drop_plan`."""
    options, queue_plan, queue = state.options[0], state.queue_plan[0], state.queue
    if queue_plan.jobs >= 0:
        return
    queue_plan.jobs = 0
    queue_plan.last_rank = open_plan(state, now)
    start_search(state, queue_plan.last_rank + 1)
    everybody = NO_JOB - 1 if options.backfill != CONSERVATIVE else -1  # or those without a reservation
    while True:
        item = next_job(state, queue, now, everybody, NO_JOB - 1, 0.0, -np.inf)
        if item < 0:
            break
        if np.isnan(state.jobs[item].reserved):
            _plan_earliest(state, item, now)


def _plan_earliest(state: State, item: int, now: float) -> None:
    job, queue_plan = state.jobs[item], state.queue_plan[0]
    queue_plan.last_rank = job.rank
    time = _earliest_start(state, item, now)
    if not plan_apart(state, item, time):
        job.reserved = time
        reserve(state, item)
        state.planned[queue_plan.jobs] = item
        queue_plan.jobs += 1


def plan_next(state: State, item: int, now: float) -> None:
    """Add a job that just arrived to the plan, if there is one."""
    options, queue_plan = state.options[0], state.queue_plan[0]
    if state.queue.formula or options.shapes or state.jobs[item].rank < queue_plan.last_rank:
        drop_plan(state)  # it is not the last one
        queue_plan.kept = 0
    elif queue_plan.jobs >= 0:
        _plan_earliest(state, item, now)


def drop_plan(state: State) -> None:
    """Remove the reservations of `plan_queue`, except those of a plan that is kept."""
    queue_plan = state.queue_plan[0]
    for k in range(queue_plan.jobs):
        cancel(state, state.planned[k])
        state.jobs[state.planned[k]].reserved = np.nan
    queue_plan.jobs = -1
    if state.queue.formula or state.options[0].shapes:
        queue_plan.kept = 0  # the order changes with time
