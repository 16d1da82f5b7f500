"""A plan: how many processors, or units of a resource, are free from now on, as a sorted list of changes in blocks."""

from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import Kernel, record

#: The maximum of changes in a block.
SIZE = 64

#: From ``time`` on, ``change`` more units are free.
CHANGE = record("time", "change")

#: A block of changes in order of time: its first time, the sum of its changes, their least and greatest partial sum
#: (unless ``stale``), the number of changes, and the row that holds them.
BLOCK = record("first", "total lowest highest count row stale")

#: ``level`` units are free at ``now``. The last call of `earliest` considered about ``looked`` blocks. The sums before
#: the first ``summed`` blocks are known.
HEAD = record("now", "level blocks spare summed looked")


class Plan(NamedTuple):
    """The free units now and the future changes; an update moves only the changes of one block."""

    head: np.ndarray
    blocks: np.ndarray
    changes: np.ndarray
    spare_rows: np.ndarray
    sums: np.ndarray  # sums of the changes before each block, as far as known


def new_plan(units: int, changes: int) -> Plan:
    """Return the plan of an idle machine, with room for a number of changes."""
    # Two neighbors have more than SIZE / 2 changes together, or they would have been merged.
    rows = 4 * changes // SIZE + 4
    head = np.zeros(1, HEAD)
    head["now"], head["level"], head["spare"] = -np.inf, units, rows
    return Plan(
        head=head,
        blocks=np.empty(rows, BLOCK),
        changes=np.empty((rows, SIZE), CHANGE),
        spare_rows=np.arange(rows)[::-1].copy(),
        sums=np.empty(rows, np.int64),
    )


def _remove_block(plan: Plan, place: int) -> None:
    head = plan.head[0]
    plan.spare_rows[head.spare] = plan.blocks[place].row
    head.spare += 1
    head.summed = min(head.summed, place)
    head.blocks -= 1
    for later in range(place, head.blocks):
        plan.blocks[later] = plan.blocks[later + 1]


def _halve(plan: Plan, place: int) -> None:
    """Move the later half of a full block into a new one."""
    head = plan.head[0]
    for later in range(head.blocks, place + 1, -1):
        plan.blocks[later] = plan.blocks[later - 1]
    head.blocks += 1
    head.summed = min(head.summed, place)
    head.spare -= 1
    old, new = plan.blocks[place], plan.blocks[place + 1]
    new.row = plan.spare_rows[head.spare]
    half = SIZE // 2
    moved = 0
    for k in range(half):
        change = plan.changes[old.row, half + k]
        plan.changes[new.row, k] = change
        moved += change.change
    new.first = plan.changes[new.row, 0].time
    new.count = half
    old.count = half
    new.total = moved
    old.total -= moved
    new.stale = 1
    old.stale = 1


def _merge(plan: Plan, place: int) -> None:
    """Append the next block to this one."""
    left, right = plan.blocks[place], plan.blocks[place + 1]
    for k in range(right.count):
        plan.changes[left.row, left.count + k] = plan.changes[right.row, k]
    left.count += right.count
    left.total += right.total
    left.stale = 1
    _remove_block(plan, place + 1)


def last_block(plan: Plan, time: float) -> int:
    """Return the last block that begins by a time; -1 if none does."""
    low, high = -1, plan.head[0].blocks
    while high - low > 1:
        middle = (low + high) >> 1
        if plan.blocks[middle].first <= time:
            low = middle
        else:
            high = middle
    return low


def add(plan: Plan, time: float, change: int) -> None:
    """Change the number of free units from ``time`` on by ``change``."""
    head = plan.head[0]
    if time <= head.now:
        head.level += change
        return
    blocks = plan.blocks
    if head.blocks == 0:
        head.spare -= 1
        blocks[0].row = plan.spare_rows[head.spare]
        blocks[0].count = 0
        blocks[0].total = 0
        head.blocks = 1
    low = max(last_block(plan, time), 0)
    if blocks[low].count == SIZE:
        _halve(plan, low)
        if blocks[low + 1].first <= time:
            low += 1
    block = blocks[low]
    row = plan.changes[block.row]
    block.total += change
    block.stale = 1
    head.summed = min(head.summed, low + 1)

    count = block.count
    before, after = 0, count
    while before < after:
        middle = (before + after) >> 1
        if row[middle].time < time:
            before = middle + 1
        else:
            after = middle
    if before == count or row[before].time != time:
        for k in range(count, before, -1):
            row[k] = row[k - 1]
        row[before].time = time
        row[before].change = change
        block.count = count + 1
        block.first = row[0].time
        return
    row[before].change += change
    if row[before].change != 0:
        return
    for k in range(before, count - 1):
        row[k] = row[k + 1]
    count -= 1
    block.count = count
    if count == 0:
        _remove_block(plan, low)
        return
    block.first = row[0].time
    if low + 1 < head.blocks and count + blocks[low + 1].count <= SIZE // 2:
        _merge(plan, low)
    elif low > 0 and count + blocks[low - 1].count <= SIZE // 2:
        _merge(plan, low - 1)


def _enter(plan: Plan, time: float, change: int) -> int:
    add(plan, time, change)
    return 0


#: `add` for Python.
ENTER = Kernel(_enter)


def advance(plan: Plan, now: float) -> None:
    """Advance the plan to ``now``: apply and remove the changes until then."""
    head = plan.head[0]
    head.now = now
    while head.blocks > 0 and plan.blocks[0].first <= now:
        head.summed = 0
        block = plan.blocks[0]
        row = plan.changes[block.row]
        count = block.count
        gone = 0
        passed = 0
        while gone < count and row[gone].time <= now:
            passed += row[gone].change
            gone += 1
        head.level += passed
        if gone == count:
            _remove_block(plan, 0)
            continue
        for k in range(gone, count):
            row[k - gone] = row[k]
        block.count = count - gone
        block.first = row[0].time
        block.total -= passed
        block.stale = 1
        if head.blocks > 1 and block.count + plan.blocks[1].count <= SIZE // 2:
            _merge(plan, 0)


def refresh(plan: Plan, place: int) -> None:
    """Compute the least and greatest partial sum of the changes of a block."""
    block = plan.blocks[place]
    row = plan.changes[block.row]
    level = row[0].change
    lowest = highest = level
    for k in range(1, block.count):
        level += row[k].change
        lowest = min(lowest, level)
        highest = max(highest, level)
    block.lowest = lowest
    block.highest = highest
    block.stale = 0


def level_before(plan: Plan, place: int) -> int:
    """Return the number of free units before a block."""
    head = plan.head[0]
    if head.summed == 0:
        plan.sums[0] = 0
        head.summed = 1
    while head.summed <= place:
        last = head.summed - 1
        plan.sums[last + 1] = plan.sums[last] + plan.blocks[last].total
        head.summed += 1
    return head.level + plan.sums[place]


def free_at(plan: Plan, time: float) -> int:
    """Return the number of free units from a time on, which is not in the past."""
    place = last_block(plan, time)
    return _changed_by(plan, place, time)[0] if place >= 0 else plan.head[0].level


def _changed_by(plan: Plan, place: int, time: float) -> tuple[int, int]:
    """Return the number of free units from a time on, and how many changes a block, the last by then, has until it."""
    level = level_before(plan, place)
    block = plan.blocks[place]
    row = plan.changes[block.row]
    k = 0
    while k < block.count and row[k].time <= time:
        level += row[k].change
        k += 1
    return level, k


def is_free(plan: Plan, width: int, end: float) -> bool:
    """Return whether enough units are free from now to an end."""
    level = plan.head[0].level
    if level < width:
        return False
    for place in range(plan.head[0].blocks):
        block = plan.blocks[place]
        if block.first >= end:
            break
        if block.stale:
            refresh(plan, place)
        if level + block.lowest < width:
            row = plan.changes[block.row]
            for k in range(block.count):
                level += row[k].change
                if level < width:
                    return row[k].time >= end
        level += block.total
    return True


def earliest(plan: Plan, width: int, length: float, since: float, before: float) -> float:
    """
    Return the earliest time from ``since`` on at which enough units are free for long enough.

    The time is below ``before``, the start of the job's own reservation or infinity, and from that on the units are
    not required. If there is no such time, return ``before``.
    """
    head = plan.head[0]
    level = head.level
    candidate = head.now
    place = -1
    first = 0  # the first change to consider in the next block
    if since > candidate:
        candidate = since
        before_it = last_block(plan, since)
        if before_it >= 0:
            level, first = _changed_by(plan, before_it, since)
            place = before_it - 1
    began = place
    waiting = level < width
    limit = before if waiting else min(candidate + length, before)
    while place + 1 < head.blocks:
        place += 1
        block = plan.blocks[place]
        if block.first >= limit:
            break
        row = plan.changes[block.row]
        if first == 0:
            if block.stale:
                refresh(plan, place)
            if (level + block.highest < width) if waiting else (level + block.lowest >= width):
                level += block.total
                continue
            until = row[block.count - 1].time
            if until < limit and until < block.first + length:  # a job that starts in this block runs beyond it
                level += block.total
                waiting = level < width
                limit = before
                if not waiting:
                    rest = level
                    for k in range(block.count - 1, -1, -1):
                        rest -= row[k].change
                        if rest < width:
                            candidate = row[k].time
                            break
                    limit = min(candidate + length, before)
                continue
        begin = first
        first = 0
        for k in range(np.uint64(begin), np.uint64(block.count)):
            time = row[k].time
            if time >= limit:
                break
            level += row[k].change
            if waiting == (level >= width):
                if waiting:
                    waiting = False
                    candidate = time
                    limit = min(candidate + length, before)
                else:
                    waiting = True
                    limit = before
        else:
            continue
        break
    head.looked = place - began
    return before if waiting else candidate
