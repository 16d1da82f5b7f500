"""Move reservations forward. Apart from the plan: conservative backfilling on RICC takes many times as long without."""

from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import inlined
from swflow.scheduling.machine.plan import Plan, add, earliest, last_block, level_before

#: The state of a round. ``sizes`` is the number of job sizes with bounds; no reservation starts after ``latest``;
#: ``seen`` is the latest start in this round. The last job had ``width`` processors for ``length``, reserved from
#: ``reserved`` on; ``again`` equal jobs can move to ``target`` as well (-1: none moves). ``moves`` is the number of
#: deferred moves.
ROUND = np.dtype(
    [
        ("sizes", np.int64),
        ("latest", np.float64),
        ("seen", np.float64),
        ("width", np.int64),
        ("length", np.float64),
        ("reserved", np.float64),
        ("target", np.float64),
        ("again", np.int64),
        ("moves", np.int64),
    ]
)

#: A deferred move: ``count`` jobs of one size moved from one start to an earlier one; right before the old start
#: ``level`` processors are free by the plan.
MOVES = np.dtype(
    [
        ("width", np.int64),
        ("length", np.float64),
        ("from_time", np.float64),
        ("to_time", np.float64),
        ("level", np.int64),
        ("count", np.int64),
    ]
)

#: The bounds of jobs of one size in a round: they do not fit before ``time``, except in gaps that appeared since, which
#: all end after ``freed``. ``hashed`` is the position in the hash table.
SIZE_OF_JOBS = np.dtype(
    [("width", np.int64), ("length", np.float64), ("time", np.float64), ("freed", np.float64), ("hashed", np.int64)]
)

#: The maximum of sizes with bounds, and the least queue length for which bounds are kept: short queues are searched
#: faster without. Sizes are hashed: the first bits of a product with the golden ratio.
SIZES = 256
LONG_QUEUE = 256
_HASH_BITS = 10
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)


class Moving(NamedTuple):
    """A plan in which reservations move forward, with what earlier searches of a round found."""

    plan: Plan
    head: np.ndarray
    sizes: np.ndarray
    hashed: np.ndarray  # the size at each position, if its own ``hashed`` agrees
    moves: np.ndarray  # of one size, or of a second one that moved to where the first was


def new_moving(plan: Plan) -> Moving:
    """Return a plan whose reservations can move forward."""
    head = np.zeros(1, ROUND)
    head["latest"] = head["seen"] = -np.inf
    return Moving(plan, head, np.zeros(SIZES, SIZE_OF_JOBS), np.zeros(1 << _HASH_BITS, np.int64), np.zeros(2, MOVES))


@inlined
def begin_round(moving: Moving, jobs: int) -> None:
    """Start a round in which the reservations of ``jobs`` jobs move forward: drop the bounds of the last round."""
    head = moving.head[0]
    head.sizes = 0
    head.width = 0
    head.moves = 0
    head.latest = head.seen if jobs >= LONG_QUEUE else -np.inf
    head.seen = -np.inf


@inlined
def _free_since(plan: Plan, width: int, time: float, least: float) -> tuple[float, int, int]:
    """
    Return the time since which enough processors are free without a break up to a time; that time if they are not.

    Times before ``least`` are not considered; it is returned if the processors are free since then. Also return the
    number of free processors right before the time, and the minimum in between.
    """
    head = plan.head[0]
    place = last_block(plan, time)
    if place < 0:
        since = max(head.now, least) if head.level >= width else time
        return since, head.level, head.level
    level = level_before(plan, place)
    block = plan.blocks[place]
    if block.stale == 0 and level < width and level + block.highest < width:
        return time, 0, 0
    row = plan.changes[block.row]
    k = 0
    while k < block.count and row[k].time < time:
        level += row[k].change
        k += 1
    last = fewest = level
    if level < width:
        return time, last, fewest
    while True:
        while k > 0:
            k -= 1
            if row[k].time <= least:
                return least, last, fewest
            level -= row[k].change
            if level < width:
                return row[k].time, last, fewest
            fewest = min(fewest, level)
        place -= 1
        if place < 0:
            return max(head.now, least), last, fewest
        row = plan.changes[plan.blocks[place].row]
        k = plan.blocks[place].count


@inlined
def _most_free(plan: Plan, begin: float, end: float) -> int:
    """Return the maximum number of free processors from ``begin``, after now, to before ``end``."""
    head = plan.head[0]
    place = max(last_block(plan, begin), 0)
    level = level_before(plan, place)
    most = 0
    while place < head.blocks:
        block = plan.blocks[place]
        row = plan.changes[block.row]
        for k in range(block.count):
            if row[k].time > begin:
                most = max(most, level)
            if row[k].time >= end:
                return most
            level += row[k].change
        place += 1
    return max(most, level)


@inlined
def _remembered(moving: Moving, width: int, length: float) -> int:
    """Return the index of a job's size, a new one if necessary; -1 if there are too many."""
    head = moving.head[0]
    last = (1 << _HASH_BITS) - 1
    place = ((_GOLDEN * (31 * width + int(length))) >> (64 - _HASH_BITS)) & last
    while True:
        known = moving.hashed[place]
        if known >= head.sizes or moving.sizes[known].hashed != place:
            break
        if moving.sizes[known].width == width and moving.sizes[known].length == length:
            return known
        place = (place + 1) & last
    if head.sizes == SIZES:
        return -1
    known = head.sizes
    head.sizes += 1
    moving.hashed[place] = known
    size = moving.sizes[known]
    size.hashed = place
    size.width = width
    size.length = length
    size.time = -np.inf
    size.freed = np.inf
    return known


@inlined
def _note_freed(moving: Moving, begin: float, end: float) -> None:
    """Record that jobs may fit again where processors became free in this round."""
    head = moving.head[0]
    if begin >= head.latest:
        return
    most = _most_free(moving.plan, begin, end)
    for place in range(head.sizes):
        size = moving.sizes[place]
        if size.width <= most:
            size.freed = min(size.freed, begin)


@inlined
def _change_place(moving: Moving, width: int, length: float, from_time: float, to_time: float) -> None:
    """Move an allocation of processors for a length from one start to an earlier one."""
    if from_time < np.inf:
        add(moving.plan, from_time, width)
        add(moving.plan, from_time + length, -width)
    add(moving.plan, to_time, -width)
    add(moving.plan, to_time + length, width)
    _note_freed(moving, max(from_time, to_time + length), from_time + length)


@inlined
def _apply_moves(moving: Moving) -> None:
    """Apply the deferred moves to the plan."""
    head = moving.head[0]
    for k in range(head.moves):
        moved = moving.moves[k]
        _change_place(moving, moved.count * moved.width, moved.length, moved.from_time, moved.to_time)
    head.moves = 0


@inlined
def _count_move(moving: Moving, time: float, level: int, fewest: int) -> None:
    """Defer the move of the current job into a gap; equal jobs can follow as long as there is room."""
    head = moving.head[0]
    moved = moving.moves[head.moves]
    head.moves += 1
    moved.width = head.width
    moved.length = head.length
    moved.from_time = head.reserved
    moved.to_time = time
    moved.level = level
    moved.count = 1
    head.target = time
    head.again = fewest // head.width - 1


@inlined
def _beside_moves(moving: Moving, width: int, length: float, reserved: float) -> float:
    """
    Return the new start of a job that does not fit before its reservation; NaN if deferred moves must be applied first.

    Because of deferred moves, fewer processors are free than by the plan from the first new start to its end, and
    more after that.
    """
    head = moving.head[0]
    first, last = moving.moves[0], moving.moves[head.moves - 1]
    if reserved > first.to_time + first.length:
        return np.nan
    follows = width == last.width and length == last.length and reserved > last.from_time
    since, level, fewest = _free_since(moving.plan, width, reserved, last.from_time if follows else reserved)
    if level < width:
        return reserved
    if not follows:
        return np.nan
    if since > last.from_time:
        _apply_moves(moving)
    else:
        if last.level - last.count * width >= width or (head.moves == 2 and first.count != last.count):
            return np.nan
        if head.moves == 2:  # the same number moved on from where the others had moved to: one move
            first.from_time = last.from_time
            first.level = last.level
            head.moves = 1
    _count_move(moving, since, level, fewest)
    return since


@inlined
def move(moving: Moving, width: int, length: float, reserved: float) -> float:
    """
    Move a reservation to its earliest start, and return this; ``reserved`` if it stays.

    A reservation can move in two ways: to a gap that ends before the reservation begins, or into a gap right before it.
    In a round most jobs stay, and many jobs of one size fail to move in the first way at the same time, which is kept
    as a bound; for the second way the plan right before the reservation suffices.

    Jobs that were submitted together have one size, and often one reservation: the result for one holds for the next,
    as long as there is room. Often each of them moves to where the previous one was. So moves of the second kind are
    deferred, and applied to the plan as late as possible; see `end_round`.
    """
    head = moving.head[0]
    if head.width == width and head.reserved == reserved and head.length == length:
        if head.again < 0:
            return reserved
        if head.again > 0:
            head.again -= 1
            moving.moves[head.moves - 1].count += 1
            return head.target
    return _move(moving, width, length, reserved)


@inlined
def _move(moving: Moving, width: int, length: float, reserved: float) -> float:
    """Move a reservation that differs from the last one."""
    head = moving.head[0]
    head.seen = max(head.seen, reserved)
    head.width = width
    head.length = length
    head.reserved = reserved
    head.again = -1
    if reserved <= moving.plan.head[0].now:
        return reserved
    known = _remembered(moving, width, length) if reserved <= head.latest else -1
    if known >= 0:
        size = moving.sizes[known]
        is_known = size.time + length > reserved and size.freed >= reserved
        if is_known and head.moves > 0:
            time = _beside_moves(moving, width, length, reserved)
            if not np.isnan(time):
                return time
        if head.moves > 0:
            _apply_moves(moving)
            is_known = size.time + length > reserved and size.freed >= reserved
        if not is_known:
            size.time = earliest(moving.plan, width, length, -np.inf, head.latest)
            size.freed = np.inf
        if size.time + length > reserved:
            time, level, fewest = _free_since(moving.plan, width, reserved, -np.inf)
            if time < reserved:
                _count_move(moving, time, level, fewest)
            return time
        time = size.time
    else:
        _apply_moves(moving)
        time = earliest(moving.plan, width, length, -np.inf, reserved)
    if time < reserved:
        head.width = 0
        _change_place(moving, width, length, reserved, time)
    return time


@inlined
def end_round(moving: Moving) -> None:
    """End a round: apply the deferred moves to the plan."""
    _apply_moves(moving)
