"""The scheduling pass: who of the queue starts now, without backfilling, with lookahead (EASY), or conservatively."""

import math

import numpy as np

from swflow.kernels import lean
from swflow.scheduling.engine.heap import pop
from swflow.scheduling.engine.machine import (
    AHEAD,
    PASS,
    STANDING,
    can_begin,
    can_start,
    close_round,
    drop,
    find,
    free_now,
    hold,
    is_kept,
    let_go,
    move_forward,
    open_pass,
    open_plan,
    open_round,
    plan,
    renew,
    reserve,
    serve_in_table,
    started,
    unreserve,
)
from swflow.scheduling.engine.queue import NOBODY, following, put
from swflow.scheduling.engine.state import (
    CONSERVATIVE,
    LOOKAHEAD,
    RESERVATION_TABLE,
    State,
    begin,
    correct,
    is_limited,
    line_up,
    take,
)


@lean
def serve(state: State, now: float) -> None:
    """Make one scheduling pass."""
    options, core = state.options[0], state.now[0]
    if options.corrects:
        correct(state, now)
    if core.queued > 0:
        if options.backfill == CONSERVATIVE:
            _serve_conservatively(state, now)
        elif options.backfill == RESERVATION_TABLE:
            serve_in_table(state, now)
        else:
            _serve_ahead(state, now)
    core.newcomers = 0
    core.corrected = 0
    core.ended_early = 0


# -- no backfilling, and lookahead


@lean
def _serve_ahead(state: State, now: float) -> None:
    """Start the head while it fits; reserve for the first that do not; let others start if they delay none."""
    options, core = state.options[0], state.now[0]
    free = free_now(state)
    if state.queue.nodes[state.queue.nodes.size - 1].width > free:
        return
    # Time alone makes a start no likelier: after arrivals only the newcomers are looked at, unless one is
    # served before the head, or the end of a window, the order or the plan depend on more than completions.
    whole = not options.simple or options.formula or options.limits  # a start may bring the head to its limit
    if not core.full and (whole or not is_kept(state, now)):
        core.full = 1
    state.steps[0].time = now
    held = 0
    begin_rank, end_rank = 0, state.jobs.size
    if core.full:
        open_pass(state, now, free)
        held = _serve_heads(state, now)
    else:
        state.steps[0].free = free
        if core.newcomers == 1 and not options.backfill_formula:
            newcomer = state.jobs[core.newcomer]
            begin_rank = newcomer.rank if options.one_tree else newcomer.backfill_rank
            end_rank = begin_rank + 1
    if options.backfill == LOOKAHEAD and core.queued > held:
        _backfill(state, now, begin_rank, end_rank)
    for k in range(held):
        unreserve(state, state.held[k])
        state.jobs[state.held[k]].reserved = np.nan


@lean
def _serve_heads(state: State, now: float) -> int:
    """Serve the queue in its order until as many jobs as may have a reservation; return how many have."""
    options, core, queue = state.options[0], state.now[0], state.queue
    may_have = options.lookahead if options.backfill == LOOKAHEAD else 0
    held = 0
    waiting = 0
    rank = -1
    core.full = 0
    if options.formula:
        waiting = line_up(state, queue, options.formula, now, NOBODY - 1, 0, 0.0, 0.0)
    core.reserved_rank = state.jobs.size
    while True:
        if options.formula:
            if waiting == 0:
                break
            item = state.line[0].job
            waiting = pop(state.line, waiting)
        else:
            rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
            if rank < 0:
                break
            item = queue.job_at[rank]
        if is_limited(state, item):
            continue
        if can_start(state, item, now):
            _begin_within(state, item, now)
            continue
        if may_have > 0:
            if queue.nodes[queue.nodes.size - 1].width > state.steps[0].free:
                core.full = 1  # there is nobody whom a reservation could hold up
                break
            job = state.jobs[item]
            if options.shapes:
                take(state, item, soonest_done(state, item, now, PASS))
            job.reserved = find(state, item, job.processors, job.planned, now, PASS)
            reserve(state, item, now)
            state.held[held] = item
            held += 1
        if held == may_have:
            core.reserved_rank = rank
            break
    return held


@lean
def soonest_done(state: State, item: int, now: float, where: int) -> int:
    """Return the shape with which a job ends first by what is planned, the narrowest of equals."""
    chosen = -1
    end = math.inf
    for k in range(state.shapes[item].first, state.shapes[item].end):
        shape = state.shapes[k]
        if shape.processors > state.options[0].machine:
            break
        done = find(state, item, shape.processors, shape.planned, now, where) + shape.planned
        if chosen < 0 or done < end:
            chosen = k
            end = done
    return chosen


@lean
def _begin_within(state: State, item: int, now: float) -> None:
    """Start a job and take it out of what is left for others in this pass."""
    begin(state, item, now)
    started(state, item, now)


@lean
def _backfill(state: State, now: float, begin_rank: int, end_rank: int) -> None:
    """Start, in the backfill order, who delays no reservation; ranks are of that order."""
    options, core, steps, tree = state.options[0], state.now[0], state.steps, state.backfill_queue
    waiting = 0
    rank = begin_rank - 1
    while steps[0].free > 0:
        # The first two steps choose who is worth a look.
        latest = steps[1].time if core.steps > 1 else np.inf
        wide = steps[0].free
        narrow = min(wide, steps[1].free) if core.steps > 1 else wide
        if not options.backfill_formula:
            rank = following(tree.nodes, tree.levels, rank + 1, narrow, wide, now, latest)
            if rank < 0 or rank >= end_rank:
                break
            item = tree.job_at[rank]
        else:
            if rank < 0:
                waiting = line_up(state, tree, options.backfill_formula, now, narrow, wide, now, latest)
                rank = 0
            if waiting == 0:
                break
            item = state.line[0].job
            waiting = pop(state.line, waiting)
        if np.isnan(state.jobs[item].reserved) and not is_limited(state, item) and can_start(state, item, now):
            _begin_within(state, item, now)


# -- conservative


@lean
def _serve_conservatively(state: State, now: float) -> None:
    """Give reservations to all; when a job ended early, move them forward, in order of the queue."""
    options, core, queue = state.options[0], state.now[0], state.queue
    if core.corrected:  # promises that rested on the prediction cannot be kept
        rank = following(queue.nodes, queue.levels, 0, NOBODY - 1, 0, 0.0, 0.0)
        while rank >= 0:
            item = queue.job_at[rank]
            if not np.isnan(state.jobs[item].reserved):
                let_go(state, item)
                _note(state, item, np.nan)
            rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
        renew(state, now)
    elif core.ended_early:
        _compress(state, now)

    if queue.nodes[queue.nodes.size - 1].length == -np.inf:
        waiting = line_up(state, queue, options.formula, now, -1, NOBODY - 1, 0.0, -np.inf)
        while waiting > 0:
            item = state.line[0].job
            waiting = pop(state.line, waiting)
            _hold_earliest(state, item, now)
            if np.isnan(state.jobs[item].promise):
                state.jobs[item].promise = state.jobs[item].reserved

    if queue.nodes[queue.nodes.size - 1].length <= now:
        waiting = line_up(state, queue, options.formula, now, -1, NOBODY - 1, 0.0, now)
        while waiting > 0:
            item = state.line[0].job
            waiting = pop(state.line, waiting)
            if can_begin(state, item):
                begin(state, item, now)


@lean
def _compress(state: State, now: float) -> None:
    """Move every reservation to its earliest place, in order of the queue."""
    options, queue = state.options[0], state.queue
    waiting = 0
    rank = -1
    open_round(state)
    if options.formula:
        waiting = line_up(state, queue, options.formula, now, NOBODY - 1, 0, 0.0, 0.0)
    while True:
        if options.formula:
            if waiting == 0:
                break
            item = state.line[0].job
            waiting = pop(state.line, waiting)
        else:
            rank += 1
            if rank == state.jobs.size or queue.nodes[rank].width == NOBODY:  # the next one is seldom far
                rank = following(queue.nodes, queue.levels, rank, NOBODY - 1, 0, 0.0, 0.0)
            if rank < 0:
                break
            item = queue.job_at[rank]
        if np.isnan(state.jobs[item].reserved):
            continue
        before = state.jobs[item].reserved
        if options.shapes:
            let_go(state, item)
            _hold_earliest(state, item, now)
        else:
            move_forward(state, item, now)
            if state.jobs[item].reserved != before:
                _note(state, item, state.jobs[item].reserved)
    close_round(state)


@lean
def _hold_earliest(state: State, item: int, now: float) -> None:
    """Give a job without a reservation the earliest place."""
    job = state.jobs[item]
    if state.options[0].shapes:
        take(state, item, soonest_done(state, item, now, STANDING))
    _note(state, item, find(state, item, job.processors, job.planned, now, STANDING))
    hold(state, item)


@lean
def _note(state: State, item: int, time: float) -> None:
    """Note when the reservation of a queued job starts; NaN if it has none."""
    job, queue = state.jobs[item], state.queue
    job.reserved = time
    put(queue.nodes, queue.levels, job.rank, job.processors, -np.inf if np.isnan(time) else time)


# -- plans of the whole queue


@lean
def plan_queue(state: State, now: float) -> None:
    """Give every queued job that has none a reservation, in order of the queue, until `drop_plan`."""
    options, core, queue = state.options[0], state.now[0], state.queue
    if core.planned >= 0:
        return
    core.planned = 0
    core.planned_rank = open_plan(state, now)
    rank = core.planned_rank
    waiting = 0
    everybody = NOBODY - 1 if options.backfill != CONSERVATIVE else -1  # or those without a reservation
    if options.formula:
        waiting = line_up(state, queue, options.formula, now, everybody, NOBODY - 1, 0.0, -np.inf)
    while True:
        if options.formula:
            if waiting == 0:
                break
            item = state.line[0].job
            waiting = pop(state.line, waiting)
        else:
            rank = following(queue.nodes, queue.levels, rank + 1, everybody, NOBODY - 1, 0.0, -np.inf)
            if rank < 0:
                break
            item = queue.job_at[rank]
        if np.isnan(state.jobs[item].reserved):
            if options.shapes:
                take(state, item, soonest_done(state, item, now, AHEAD))
            _plan_earliest(state, item, now)


@lean
def _plan_earliest(state: State, item: int, now: float) -> None:
    job, core = state.jobs[item], state.now[0]
    core.planned_rank = job.rank
    if plan(state, item, find(state, item, job.processors, job.planned, now, AHEAD)):
        core.planned += 1
        state.line[state.line.size - core.planned].job = item  # behind the heap


@lean
def plan_next(state: State, item: int, now: float) -> None:
    """Let a job that just arrived take part in the plan, if there is one."""
    options, core = state.options[0], state.now[0]
    if options.formula or options.shapes or state.jobs[item].rank < core.planned_rank:
        drop_plan(state)  # it is not the last one
        core.kept = 0
    elif core.planned >= 0:
        _plan_earliest(state, item, now)


@lean
def drop_plan(state: State) -> None:
    """Take the reservations away that `plan_queue` gave, but for those of a plan that is kept."""
    core = state.now[0]
    for k in range(core.planned):
        item = state.line[state.line.size - 1 - k].job
        drop(state, item)
        state.jobs[item].reserved = np.nan
    core.planned = -1
    if state.options[0].formula or state.options[0].shapes:
        core.kept = 0  # another instant, another order
