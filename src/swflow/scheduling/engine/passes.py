"""Scheduling passes: decide which queued jobs start now (none, EASY with k reservations, conservative)."""

import numpy as np

from swflow.scheduling.state.changes import begin, correct, is_entered, take
from swflow.scheduling.state.layout import CONSERVATIVE, EASY, OTHER, State
from swflow.scheduling.state.operations import (
    can_begin,
    can_start,
    cancel,
    close_round,
    free_now,
    is_kept,
    is_limited,
    move_forward,
    open_pass,
    open_round,
    protect,
    reserve,
    serve_otherwise,
    started,
)
from swflow.scheduling.state.queue import NO_JOB, put, root_of
from swflow.scheduling.state.search import next_job, start_search
from swflow.scheduling.state.whole_queue import earliest_start


def serve(state: State, now: float) -> None:
    """Make one scheduling pass."""
    options, counts, agenda = state.options[0], state.counts[0], state.agenda[0]
    if options.corrects:
        correct(state, now)
    if counts.queued > 0:
        if options.backfill == CONSERVATIVE:
            _serve_conservatively(state, now)
        elif options.backfill == OTHER:
            serve_otherwise(state, now)
        else:
            _serve_ahead(state, now)
    agenda.newcomers = 0
    agenda.corrected = 0
    agenda.ended_early = 0


# -- no backfilling, and EASY


def _serve_ahead(state: State, now: float) -> None:
    """Start the head while it fits; give the first jobs that do not fit reservations; backfill the others."""
    options, agenda, counts = state.options[0], state.agenda[0], state.counts[0]
    free = free_now(state)
    if root_of(state.queue).width > free:
        return
    # Time alone enables no start: after arrivals only these are considered, unless one is served before the
    # head, or the end of a window, the order or the plan depend on more than completions.
    whole = not options.simple or options.reservations > 1 or state.queue.formula
    # After a start the head may be at its limit, and jobs wait that a pass with a limit of starts left.
    whole = whole or options.limits or options.starts > 0
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
    held = 0
    agenda.full = 0
    agenda.reserved_rank = state.jobs.size
    start_search(state, 0)
    while True:
        item = next_job(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
        if item < 0:
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
            state.jobs[item].reserved = earliest_start(state, item, now)
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


def _begin_within(state: State, item: int, now: float) -> None:
    """Start a job and subtract it from the processors left for others in this pass."""
    begin(state, item, now)
    started(state, item, now)


def _backfill(state: State, now: float, begin_rank: int, end_rank: int) -> None:
    """Start, in the backfill order, the jobs that delay no reservation; ranks are of that order."""
    agenda, search, steps, tree = state.agenda[0], state.search[0], state.steps, state.backfill_queue
    start_search(state, begin_rank)
    left = state.options[0].starts if state.options[0].starts > 0 else state.jobs.size
    while steps[0].free > 0 and left > 0:
        # The first two steps preselect the jobs.
        latest = steps[1].time if agenda.steps > 1 else np.inf
        wide = steps[0].free
        narrow = min(wide, steps[1].free) if agenda.steps > 1 else wide
        item = next_job(state, tree, now, narrow, wide, now, latest)
        if item < 0 or search.rank >= end_rank:
            break
        if np.isnan(state.jobs[item].reserved) and not is_limited(state, item) and _can_start(state, item, now):
            _begin_within(state, item, now)
            left -= 1


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
    _note(state, item, earliest_start(state, item, now))
    reserve(state, item)


def _note(state: State, item: int, time: float) -> None:
    """Store the start of a queued job's reservation; NaN if it has none."""
    job, queue = state.jobs[item], state.queue
    job.reserved = time
    put(queue, job.rank, job.processors, -np.inf if np.isnan(time) else time)
