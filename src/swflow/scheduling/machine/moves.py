"""
Move reservations forward.

Bounds of earlier searches are for long queues: conservative backfilling of the first 120,000 jobs of RICC takes 1.5
times as long without. Short queues do not need them: on HPC2N the time is the same.
"""

from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.machine.plan import Plan, add, earliest, last_block, level_before

#: The state of a round. ``sizes`` is the number of job sizes with bounds; no reservation starts after ``latest``;
#: ``seen`` is the latest start in this round. The last job had ``width`` processors for ``length``, reserved from
#: ``reserved`` on; ``moved`` such jobs move to ``target`` when the next one differs, and ``again`` more can (-1: the
#: last one stayed).
ROUND = record("latest seen length reserved target", "sizes width moved again")

#: The bounds of jobs of one size in a round: they do not fit before ``time``, except in gaps that appeared since, which
#: all end after ``freed``. ``hashed`` is the position in the hash table.
SIZE_OF_JOBS = record("length time freed", "width hashed")

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


def new_moving(plan: Plan) -> Moving:
    """Return a plan whose reservations can move forward."""
    head = np.zeros(1, ROUND)
    head["latest"] = head["seen"] = -np.inf
    return Moving(plan, head, np.zeros(SIZES, SIZE_OF_JOBS), np.zeros(1 << _HASH_BITS, np.int64))


def begin_round(moving: Moving, jobs: int) -> None:
    """Start a round in which the reservations of ``jobs`` jobs move forward: drop the bounds of the last round."""
    head = moving.head[0]
    head.sizes = 0
    head.width = 0
    head.latest = head.seen if jobs >= LONG_QUEUE else -np.inf
    head.seen = -np.inf


def _free_since(plan: Plan, width: int, time: float) -> tuple[float, int]:
    """
    Return the time since which enough processors are free without a break up to a time; that time if they are not.

    Also return how many are free for all of that time.
    """
    head = plan.head[0]
    place = last_block(plan, time)
    if place < 0:
        return head.now if head.level >= width else time, head.level
    level = level_before(plan, place)
    block = plan.blocks[place]
    if block.stale == 0 and level < width and level + block.highest < width:
        return time, 0
    row = plan.changes[block.row]
    k = 0
    while k < block.count and row[k].time < time:
        level += row[k].change
        k += 1
    since, fewest = time, level
    while level >= width:
        fewest = min(fewest, level)
        if k == 0:
            place -= 1
            if place < 0:
                return head.now, fewest
            row = plan.changes[plan.blocks[place].row]
            k = plan.blocks[place].count
        k -= 1
        since = row[k].time
        level -= row[k].change
    return since, fewest


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
    return known


def move(moving: Moving, width: int, length: float, reserved: float) -> float:
    """
    Move a reservation to its earliest start, and return this; ``reserved`` if it stays.

    A reservation can move in two ways: to a gap that ends before the reservation begins, or into a gap right before it.
    In a round most jobs stay, and many jobs of one size fail to move in the first way at the same time, which is kept
    as a bound; for the second way the plan right before the reservation suffices.

    Jobs that were submitted together have one size, and often one reservation: the result for one holds for the next,
    as long as there is room. The plan changes for all of them at once, before the next job or in `end_round`.
    """
    head = moving.head[0]
    if head.width == width and head.reserved == reserved and head.length == length:
        if head.again < 0:
            return reserved
        if head.again > 0:
            head.again -= 1
            head.moved += 1
            return head.target
    end_round(moving)
    head.seen = max(head.seen, reserved)
    head.width = width
    head.length = length
    head.reserved = reserved
    head.again = -1
    if reserved <= moving.plan.head[0].now:
        return reserved
    again = 0
    known = _remembered(moving, width, length) if reserved <= head.latest else -1
    if known < 0:
        time = earliest(moving.plan, width, length, -np.inf, reserved)
    else:
        size = moving.sizes[known]
        if size.time + length <= reserved or size.freed < reserved:
            size.time = earliest(moving.plan, width, length, -np.inf, head.latest)
            size.freed = np.inf
        time = size.time
        if time + length > reserved:
            time, fewest = _free_since(moving.plan, width, reserved)
            again = fewest // width - 1
    if time < reserved:
        head.target = time
        head.moved = 1
        head.again = again
    return time


def end_round(moving: Moving) -> None:
    """Apply the last move to the plan."""
    head = moving.head[0]
    if head.moved == 0:
        return
    width, length, begin, target = head.moved * head.width, head.length, head.reserved, head.target
    head.moved = 0
    if begin < np.inf:
        add(moving.plan, begin, width)
        add(moving.plan, begin + length, -width)
    add(moving.plan, target, -width)
    add(moving.plan, target + length, width)
    free_from = max(begin, target + length)
    if free_from < head.latest:  # jobs may fit again there
        most = _most_free(moving.plan, free_from, begin + length)
        for place in range(head.sizes):
            size = moving.sizes[place]
            if size.width <= most:
                size.freed = min(size.freed, free_from)
