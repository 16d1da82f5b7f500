"""The scheduling pass: who of the queue starts now, without backfilling, with lookahead (EASY), or conservatively."""

import numpy as np

from swflow.scheduling.engine import heap
from swflow.scheduling.engine.compiled import inlined, lean
from swflow.scheduling.engine.queue import NOBODY, following, put
from swflow.scheduling.engine.state import (
    CONSERVATIVE,
    LOOKAHEAD,
    State,
    begin,
    correct,
    is_limited,
    line_up,
)
from swflow.scheduling.machine.counted import Profile, add, earliest, refresh


@inlined
def serve(state: State, now: float) -> None:
    """Make one scheduling pass."""
    options, core = state.options[0], state.now[0]
    if options.predict:
        correct(state, now)
    if core.queued > 0:
        if options.backfill == CONSERVATIVE:
            _serve_conservatively(state, now)
        else:
            _serve_ahead(state, now)
    core.newcomers = 0
    core.corrected = 0


# -- no backfilling, and lookahead


@inlined
def _serve_ahead(state: State, now: float) -> None:
    """Start the head while it fits; reserve for the first that do not; let others start if they delay none."""
    options, core, steps = state.options[0], state.now[0], state.steps
    free = options.machine - core.busy - core.closed
    if state.queue.nodes[state.queue.nodes.size - 1].width > free:
        return
    # Time alone makes a start no likelier: after arrivals only the newcomers are looked at, unless one is
    # served before the head, or the end of a window, the order or the plan depend on more than completions.
    simple = options.lookahead <= 1 and not options.windows and not options.per_event
    if not simple or options.formula or options.limits:  # a start may bring the head to its limit
        core.full = 1
    steps[0].time = now
    steps[0].free = free
    held = 0
    begin_rank, end_rank = 0, state.jobs.size
    if core.full:
        core.steps = 1
        # Who ends now by the plan, but is not yet done, is in the way of a start, though not of a plan.
        unfinished = state.free.head[0].level - free
        if options.windows:
            _find_steps(state, unfinished)
        held = _serve_heads(state, now, unfinished, simple)
        core.full = 0
    elif core.newcomers == 1 and not options.backfill_formula:
        newcomer = state.jobs[core.newcomer]
        begin_rank = newcomer.rank if options.one_tree else newcomer.backfill_rank
        end_rank = begin_rank + 1
    if options.backfill == LOOKAHEAD and core.queued > held:
        _backfill(state, now, begin_rank, end_rank)
    if not simple:
        for k in range(held):
            _unreserve(state, state.held[k])
    for k in range(held):
        state.jobs[state.held[k]].reserved = np.nan


@inlined
def _serve_heads(state: State, now: float, unfinished: int, simple: bool) -> int:
    """Serve the queue in its order until as many jobs as may have a reservation; return how many have."""
    options, core, queue = state.options[0], state.now[0], state.queue
    may_have = options.lookahead if options.backfill == LOOKAHEAD else 0
    held = 0
    waiting = 0
    rank = -1
    if options.formula:
        waiting = line_up(state, queue, options.formula, now, NOBODY - 1, 0, 0.0, 0.0)
    core.reserved_rank = state.jobs.size
    while True:
        if options.formula:
            if waiting == 0:
                break
            item = state.line[0].job
            waiting = heap.pop(state.line, waiting)
        else:
            rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
            if rank < 0:
                break
            item = queue.job_at[rank]
        if is_limited(state, item):
            continue
        if _can_start(state, item, now):
            _begin_within(state, item, now)
            continue
        if may_have > 0:
            _reserve(state, item, now, simple)
            if not simple:
                _find_steps(state, unfinished)
            state.held[held] = item
            held += 1
        if held == may_have:
            core.reserved_rank = rank
            break
    return held


@inlined
def _reserve(state: State, item: int, now: float, simple: bool) -> None:
    """Give a job that does not fit now the earliest place."""
    core, job, free = state.now[0], state.jobs[item], state.free
    if state.options[0].shapes:
        _take(state, item, soonest_done(free, state.shapes, item))
    job.reserved = earliest(free, job.processors, job.planned, np.inf)
    if simple:  # one reservation, and nothing else but ends of jobs to come: the shadow and the extra processors
        state.steps[1].time = job.reserved
        state.steps[1].free = free.head[0].found - job.processors
        core.steps = 2
    elif job.reserved < np.inf:
        add(free, job.reserved, -job.processors)
        add(free, job.reserved + job.planned, job.processors)


@lean
def _unreserve(state: State, item: int) -> None:
    job = state.jobs[item]
    if job.reserved < np.inf:
        add(state.free, job.reserved, job.processors)
        add(state.free, job.reserved + job.planned, -job.processors)


@lean
def _find_steps(state: State, unfinished: int) -> None:
    """Read from the profile what is free now, and after every loss of processors to come."""
    head, steps = state.free.head[0], state.steps
    level = head.level
    steps[0].time = head.now
    steps[0].free = level - unfinished
    count = 1
    for place in range(head.blocks):
        block = state.free.blocks[place]
        if block.stale:
            refresh(state.free, place)
        if block.losses == 0:
            level += block.sum
            continue
        for k in range(block.count):
            change = state.free.changes[block.row, k]
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


@inlined
def _can_start(state: State, item: int, now: float) -> bool:
    """Return whether a job can start now; if its shape is still to be chosen, it takes the fastest that can."""
    job, count = state.jobs[item], state.now[0].steps
    if not state.options[0].shapes:
        return _fits(state.steps, count, job.processors, now + job.planned)
    chosen = _fastest_fitting(state.steps, count, state.shapes, item, now)
    if chosen >= 0:
        _take(state, item, chosen)
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
def soonest_done(free: Profile, shapes: np.ndarray, item: int) -> int:
    """Return the shape with which a job ends first by the profile, the narrowest of equals."""
    chosen = -1
    end = np.inf
    for k in range(shapes[item].first, shapes[item].end):
        shape = shapes[k]
        done = earliest(free, shape.processors, shape.planned, np.inf) + shape.planned
        if chosen < 0 or done < end:
            chosen = k
            end = done
    return chosen


@inlined
def _take(state: State, item: int, chosen: int) -> None:
    """Let a job have a shape."""
    job, shape = state.jobs[item], state.shapes[chosen]
    job.processors = shape.processors
    job.planned = shape.planned
    job.run = shape.run


@inlined
def _begin_within(state: State, item: int, now: float) -> None:
    """Start a job and take its processors from the steps that it lives through."""
    job, steps = state.jobs[item], state.steps
    begin(state, item, now)
    for k in range(state.now[0].steps):
        if steps[k].time >= job.planned_end:
            break
        steps[k].free -= job.processors


@inlined
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
            waiting = heap.pop(state.line, waiting)
        job = state.jobs[item]
        if np.isnan(job.reserved) and not is_limited(state, item) and _can_start(state, item, now):
            _begin_within(state, item, now)


# -- conservative


@inlined
def _serve_conservatively(state: State, now: float) -> None:
    """Give reservations to all; when a job ended early, move them forward, in order of the queue."""
    options, core, queue = state.options[0], state.now[0], state.queue
    if core.corrected:  # promises that rested on the prediction cannot be kept
        rank = following(queue.nodes, queue.levels, 0, NOBODY - 1, 0, 0.0, 0.0)
        while rank >= 0:
            _move(state, queue.job_at[rank], np.nan)
            rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
    elif core.ended_early:
        _compress(state, now)
    core.ended_early = 0

    if queue.nodes[queue.nodes.size - 1].length == -np.inf:
        waiting = line_up(state, queue, options.formula, now, -1, NOBODY - 1, 0.0, -np.inf)
        while waiting > 0:
            item = state.line[0].job
            waiting = heap.pop(state.line, waiting)
            job = state.jobs[item]
            if options.shapes:
                _take(state, item, soonest_done(state.free, state.shapes, item))
            _move(state, item, earliest(state.free, job.processors, job.planned, np.inf))
            if np.isnan(job.promise):
                job.promise = job.reserved

    if queue.nodes[queue.nodes.size - 1].length <= now:
        waiting = line_up(state, queue, options.formula, now, -1, NOBODY - 1, 0.0, now)
        while waiting > 0:
            item = state.line[0].job
            waiting = heap.pop(state.line, waiting)
            if core.busy + state.jobs[item].processors <= options.machine:
                begin(state, item, now)


@inlined
def _compress(state: State, now: float) -> None:
    """Move every reservation to its earliest place, in order of the queue."""
    options, queue = state.options[0], state.queue
    waiting = 0
    rank = -1
    if options.formula:
        waiting = line_up(state, queue, options.formula, now, NOBODY - 1, 0, 0.0, 0.0)
    while True:
        if options.formula:
            if waiting == 0:
                break
            item = state.line[0].job
            waiting = heap.pop(state.line, waiting)
        else:
            rank = following(queue.nodes, queue.levels, rank + 1, NOBODY - 1, 0, 0.0, 0.0)
            if rank < 0:
                break
            item = queue.job_at[rank]
        job = state.jobs[item]
        if np.isnan(job.reserved):
            continue
        if options.shapes:
            _move(state, item, np.nan)
            _take(state, item, soonest_done(state.free, state.shapes, item))
            _move(state, item, earliest(state.free, job.processors, job.planned, np.inf))
            continue
        time = earliest(state.free, job.processors, job.planned, job.reserved)
        if time < job.reserved:
            _move(state, item, time)


@lean
def _move(state: State, item: int, time: float) -> None:
    """Let the reservation of a queued job start at a time; NaN takes it away."""
    job, queue = state.jobs[item], state.queue
    if job.reserved < np.inf:
        add(state.free, job.reserved, job.processors)
        add(state.free, job.reserved + job.planned, -job.processors)
    if time < np.inf:
        add(state.free, time, -job.processors)
        add(state.free, time + job.planned, job.processors)
    job.reserved = time
    put(queue.nodes, queue.levels, job.rank, job.processors, -np.inf if np.isnan(time) else time)


# -- plans of the whole queue


@inlined
def plan_queue(state: State, now: float) -> int:
    """Give every queued job that has none a reservation, in order of the queue; return how many `drop_plan` undoes."""
    options, queue, line = state.options[0], state.queue, state.line
    waiting = line_up(state, queue, options.formula, now, NOBODY - 1, 0, 0.0, 0.0)
    planned = waiting
    while waiting > 0:
        first = line[0].job
        waiting = heap.pop(line, waiting)
        job = state.jobs[first]
        line[waiting].job = -1
        if np.isnan(job.reserved):
            if options.shapes:
                _take(state, first, soonest_done(state.free, state.shapes, first))
            job.reserved = earliest(state.free, job.processors, job.planned, np.inf)
            line[waiting].job = first
            if job.reserved < np.inf:
                add(state.free, job.reserved, -job.processors)
                add(state.free, job.reserved + job.planned, job.processors)
    return planned


@inlined
def drop_plan(state: State, planned: int) -> None:
    """Take the reservations away that `plan_queue` gave."""
    for k in range(planned):
        if state.line[k].job >= 0:
            _unreserve(state, state.line[k].job)
            state.jobs[state.line[k].job].reserved = np.nan
