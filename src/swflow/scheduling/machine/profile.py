"""The availability profile: how many processors are free when, as a sorted list of changes kept in blocks."""

from typing import NamedTuple

import numpy as np

from swflow.kernels import Handle, Kernel, lean

#: Changes in a block.
SIZE = 64

#: From ``time`` on, ``change`` more processors are free.
CHANGE = np.dtype([("time", np.float64), ("change", np.int64)])

#: A block of changes in order of time: its first time, the sum of its changes, the least and greatest sum of
#: its first changes (where not ``stale``), how many they are, and the row where they are kept.
BLOCK = np.dtype(
    [
        ("first", np.float64),
        ("total", np.int64),
        ("lowest", np.int64),
        ("highest", np.int64),
        ("losses", np.int64),
        ("count", np.int32),
        ("row", np.int32),
        ("stale", np.int64),
    ]
)

#: As many blocks, one after the other, are summed up together: for long profiles.
GROUP_SIZE = 16

#: The sum of the blocks of a group, and the least and greatest sum of its first changes, where not ``stale``.
GROUP = np.dtype([("total", np.int64), ("lowest", np.int64), ("highest", np.int64), ("stale", np.int64)])

#: ``level`` processors are free at ``now``; ``found`` is the level where `earliest` last found a place. The sums of the
#: changes before the first ``summed`` blocks are known. While reservations move forward, so many ``sizes`` of jobs are
#: remembered, and none starts after ``latest``; ``seen`` is where the latest of them was found to start. The last job
#: that was asked about had ``width`` processors for ``length``, ``reserved`` for it from then on; ``again`` more of its
#: kind can go to ``target`` as it did (-1: it stays, as they do). So many ``moves`` are only counted.
#: `earliest` ``looked`` at about so many blocks.
HEAD = np.dtype(
    [
        ("now", np.float64),
        ("level", np.int64),
        ("found", np.int64),
        ("blocks", np.int64),
        ("spare", np.int64),
        ("summed", np.int64),
        ("sizes", np.int64),
        ("latest", np.float64),
        ("seen", np.float64),
        ("width", np.int64),
        ("length", np.float64),
        ("reserved", np.float64),
        ("target", np.float64),
        ("again", np.int64),
        ("moves", np.int64),
        ("looked", np.int64),
    ]
)

#: Moves that the profile does not know of yet: ``count`` jobs of one size went from a time to an earlier one; right
#: before the former ``level`` processors are free by the profile.
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

#: What is known, in a round, of jobs of one size: before ``time`` there is no place for them, but for places that were
#: made since, which all end after ``freed``. ``hashed`` is where it is found.
SIZE_OF_JOBS = np.dtype(
    [("width", np.int64), ("length", np.float64), ("time", np.float64), ("freed", np.float64), ("hashed", np.int64)]
)

#: As many sizes are remembered, if as many jobs wait: short queues are searched sooner than remembered. They are found
#: by hashing: the first bits of a product with the golden ratio.
SIZES = 256
LONG_QUEUE = 256
_HASH_BITS = 10
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)

#: While the whole queue is planned, it is remembered of as many widths and lengths before when they have no place, if
#: that was found by looking at as many blocks: to note it costs as much.
MOST_WIDTHS = 32
MOST_LENGTHS = 128
FAR = 10


class Availability(NamedTuple):
    """The free processors now and the changes to come; nothing is moved but what lies in one block."""

    head: np.ndarray
    blocks: np.ndarray
    changes: np.ndarray
    spare_rows: np.ndarray
    groups: np.ndarray
    sums: np.ndarray  # of the changes before each block, as far as they are known
    sizes: np.ndarray
    hashed: np.ndarray  # which size is found there, if it says so itself
    moves: np.ndarray  # one kind, or another as well that went to where the first was


def new_profile(processors: int, changes: int) -> Availability:
    """Make the profile of an idle machine, with room for a number of changes."""
    # Two neighbours have more than SIZE / 2 changes together, or they would have been merged.
    rows = 4 * changes // SIZE + 4
    head = np.zeros(1, HEAD)
    head["now"] = -np.inf
    head["level"] = processors
    head["spare"] = rows
    head["latest"] = head["seen"] = -np.inf
    return Availability(
        head=head,
        blocks=np.empty(rows, BLOCK),
        changes=np.empty((rows, SIZE), CHANGE),
        spare_rows=np.arange(rows)[::-1].copy(),
        groups=np.ones(rows // GROUP_SIZE + 1, GROUP),
        sums=np.empty(rows, np.int64),
        sizes=np.zeros(SIZES, SIZE_OF_JOBS),
        hashed=np.zeros(1 << _HASH_BITS, np.int64),
        moves=np.zeros(2, MOVES),
    )


@lean
def _spoil(profile: Availability, place: int) -> None:
    """Note that the blocks from a place on are other ones."""
    profile.head[0].summed = min(profile.head[0].summed, place)
    for group in range(place // GROUP_SIZE, profile.head[0].blocks // GROUP_SIZE + 1):
        profile.groups[group].stale = 1


@lean
def _shift(blocks: np.ndarray, begin: int, end: int, step: int) -> None:
    """Move the blocks ``begin`` to ``end`` by one place, forward or back."""
    count = end - begin
    for offset in range(count):
        place = end - 1 - offset if step > 0 else begin + offset
        blocks[place + step] = blocks[place]


@lean
def _remove_block(profile: Availability, place: int) -> None:
    head = profile.head[0]
    profile.spare_rows[head.spare] = profile.blocks[place].row
    head.spare += 1
    _spoil(profile, place)
    _shift(profile.blocks, place + 1, head.blocks, -1)
    head.blocks -= 1


@lean
def _halve(profile: Availability, place: int) -> None:
    """Move the later half of a full block into a new one."""
    head = profile.head[0]
    _shift(profile.blocks, place + 1, head.blocks, 1)
    head.blocks += 1
    _spoil(profile, place)
    head.spare -= 1
    old, new = profile.blocks[place], profile.blocks[place + 1]
    new.row = profile.spare_rows[head.spare]
    half = SIZE // 2
    moved = 0
    for k in range(half):
        change = profile.changes[old.row, half + k]
        profile.changes[new.row, k] = change
        moved += change.change
    new.first = profile.changes[new.row, 0].time
    new.count = half
    old.count = half
    new.total = moved
    old.total -= moved
    new.stale = 1
    old.stale = 1


@lean
def _merge(profile: Availability, place: int) -> None:
    """Append the next block to this one."""
    left, right = profile.blocks[place], profile.blocks[place + 1]
    for k in range(right.count):
        profile.changes[left.row, left.count + k] = profile.changes[right.row, k]
    left.count += right.count
    left.total += right.total
    left.stale = 1
    profile.groups[place // GROUP_SIZE].stale = 1
    _remove_block(profile, place + 1)


def enter(profile: Availability, time: float, change: int) -> None:
    """Do what `add` does, called from Python."""
    _ENTER(Handle([profile]), time, change)


def _enter(profile: Availability, time: float, change: int) -> int:
    add(profile, time, change)
    return 0


_ENTER = Kernel(_enter)


@lean
def add(profile: Availability, time: float, change: int) -> None:
    """Let ``change`` more processors be free from ``time`` on; fewer, if it is negative."""
    head = profile.head[0]
    if time <= head.now:
        head.level += change
        return
    blocks = profile.blocks
    if head.blocks == 0:
        head.spare -= 1
        blocks[0].row = profile.spare_rows[head.spare]
        blocks[0].count = 0
        blocks[0].total = 0
        blocks[0].first = time
        head.blocks = 1
    low, high = 0, head.blocks
    while high - low > 1:
        middle = (low + high) >> 1
        if blocks[middle].first <= time:
            low = middle
        else:
            high = middle
    if blocks[low].count == SIZE:
        _halve(profile, low)
        if blocks[low + 1].first <= time:
            low += 1
    block = blocks[low]
    row = profile.changes[block.row]
    block.total += change
    block.stale = 1
    profile.groups[low // GROUP_SIZE].stale = 1
    head.summed = min(head.summed, low + 1)

    count = int(block.count)
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
        _remove_block(profile, low)
        return
    block.first = row[0].time
    if low + 1 < head.blocks and count + blocks[low + 1].count <= SIZE // 2:
        _merge(profile, low)
    elif low > 0 and count + blocks[low - 1].count <= SIZE // 2:
        _merge(profile, low - 1)


@lean
def pass_by(profile: Availability, now: float) -> None:
    """Let the time be ``now``: what changes until then has changed."""
    head = profile.head[0]
    head.now = now
    head.summed = 0
    while head.blocks > 0 and profile.blocks[0].first <= now:
        block = profile.blocks[0]
        row = profile.changes[block.row]
        count = int(block.count)
        gone = 0
        passed = 0
        while gone < count and row[gone].time <= now:
            passed += row[gone].change
            gone += 1
        head.level += passed
        if gone == count:
            _remove_block(profile, 0)
            continue
        for k in range(gone, count):
            row[k - gone] = row[k]
        block.count = count - gone
        block.first = row[0].time
        block.total -= passed
        block.stale = 1
        profile.groups[0].stale = 1
        if head.blocks > 1 and block.count + profile.blocks[1].count <= SIZE // 2:
            _merge(profile, 0)


@lean
def refresh(profile: Availability, place: int) -> None:
    """Find the least and greatest sum of the first changes of a block."""
    block = profile.blocks[place]
    row = profile.changes[block.row]
    level = row[0].change
    lowest = highest = level
    losses = 1 if level < 0 else 0
    for k in range(1, block.count):
        level += row[k].change
        losses += row[k].change < 0
        lowest = min(lowest, level)
        highest = max(highest, level)
    block.lowest = lowest
    block.highest = highest
    block.losses = losses
    block.stale = 0


@lean
def _sum_up(profile: Availability, place: int) -> None:
    """Find the least and greatest sum of the first changes of a group of blocks, which begins at a place."""
    group = profile.groups[place // GROUP_SIZE]
    level = 0
    lowest, highest = 1 << 60, -1 << 60
    for k in range(place, place + GROUP_SIZE):
        block = profile.blocks[k]
        if block.stale:
            refresh(profile, k)
        lowest = min(lowest, level + block.lowest)
        highest = max(highest, level + block.highest)
        level += block.total
    group.total = level
    group.lowest = lowest
    group.highest = highest
    group.stale = 0


@lean
def _level_before(profile: Availability, place: int) -> int:
    """Return how many processors are free before a block."""
    head = profile.head[0]
    if head.summed == 0:
        profile.sums[0] = 0
        head.summed = 1
    while head.summed <= place:
        last = head.summed - 1
        profile.sums[last + 1] = profile.sums[last] + profile.blocks[last].total
        head.summed += 1
    return head.level + profile.sums[place]


@lean
def _block_before(profile: Availability, time: float) -> int:
    """Return the last block that begins before a time; -1 if none does."""
    low, high = -1, profile.head[0].blocks
    while high - low > 1:
        middle = (low + high) >> 1
        if profile.blocks[middle].first < time:
            low = middle
        else:
            high = middle
    return low


@lean
def earliest(profile: Availability, width: int, length: float, since: float, before: float) -> float:
    """
    Return the earliest time at which so many processors are free for so long.

    Parameters
    ----------
    profile : Availability
        The profile.
    width : int
        Processors.
    length : float
        Seconds.
    since : float
        Only times from this on are looked for.
    before : float
        Only times before this are looked for, and what is free from this time on does not matter: give the
        start of the job's own reservation, or infinity.

    Returns
    -------
    float
        The time; ``before`` if there is none.
    """
    head = profile.head[0]
    level = head.level
    candidate = head.now
    place = -1
    first = 0  # where to go on in the next block
    if since > candidate:
        candidate = since
        before_it = _block_before(profile, since)
        if before_it >= 0:
            level = _level_before(profile, before_it)
            block = profile.blocks[before_it]
            row = profile.changes[block.row]
            while first < block.count and row[first].time <= since:
                level += row[first].change
                first += 1
            place = before_it - 1
    began = place
    found = level
    waiting = level < width
    limit = before if waiting else min(candidate + length, before)
    while place + 1 < head.blocks:
        place += 1
        block = profile.blocks[place]
        if block.first >= limit:
            break
        row = profile.changes[block.row]
        if first == 0:
            last = place + GROUP_SIZE - 1
            if place % GROUP_SIZE == 0 and last + 1 < head.blocks and profile.blocks[last + 1].first < limit:
                group = profile.groups[place // GROUP_SIZE]
                if group.stale:
                    _sum_up(profile, place)
                passes = (level + group.highest < width) if waiting else (level + group.lowest >= width)
                lasts = block.first + length >= profile.blocks[last + 1].first
                if not passes and lasts and level + group.total < width:
                    passes = waiting = True  # as below
                    limit = before
                if passes:
                    level += group.total
                    place = last
                    continue
            if block.stale:
                refresh(profile, place)
            if (level + block.highest < width) if waiting else (level + block.lowest >= width):
                level += block.total
                continue
            until = row[block.count - 1].time
            if until < limit and until < block.first + length:  # who starts here needs what is free in the end
                level += block.total
                waiting = level < width
                limit = before
                if not waiting:
                    rest = level
                    for k in range(block.count - 1, -1, -1):
                        rest -= row[k].change
                        if rest < width:
                            candidate = row[k].time
                            found = rest + row[k].change
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
                    found = level
                    limit = min(candidate + length, before)
                else:
                    waiting = True
                    limit = before
        else:
            continue
        break
    head.found = found
    head.looked = place - began
    return before if waiting else candidate


# -- plans of many jobs


class Bounds(NamedTuple):
    """
    Before when jobs have no place in a profile from which processors are taken, but to which none are given back.

    Those of at least ``widths[i]`` processors and a length of at least ``lengths[j]`` have none before ``since[i, j]``.
    """

    since: np.ndarray
    widths: np.ndarray
    lengths: np.ndarray


def new_bounds(widths: np.ndarray, lengths: np.ndarray) -> Bounds:
    """Make bounds for jobs of such widths and lengths, for the most frequent ones exact."""
    rows, columns = _steps_of(widths, MOST_WIDTHS), _steps_of(lengths, MOST_LENGTHS)
    return Bounds(np.full((rows.size, columns.size), -np.inf), rows, columns)


def _steps_of(values: np.ndarray, most: int) -> np.ndarray:
    """Return some of the values, ascending: the most frequent ones, and others between them."""
    known, counts = np.unique(values, return_counts=True)
    if known.size <= most:
        return known
    frequent = known[np.argsort(-counts, kind="stable")[: most // 2]]
    return np.union1d(frequent, known[np.linspace(0, known.size - 1, most // 2).astype(np.int64)])


@lean
def plan_anew(profile: Availability, bounds: Bounds, other: Availability) -> None:
    """Let a profile be what another one is, of which nothing is known yet."""
    head, model = profile.head[0], other.head[0]
    for place in range(head.blocks):
        profile.spare_rows[head.spare] = profile.blocks[place].row
        head.spare += 1
    head.now = model.now
    head.level = model.level
    head.blocks = model.blocks
    for place in range(model.blocks):
        head.spare -= 1
        row = profile.spare_rows[head.spare]
        profile.blocks[place] = other.blocks[place]
        for k in range(other.blocks[place].count):
            profile.changes[row, k] = other.changes[other.blocks[place].row, k]
        profile.blocks[place].row = row
    _spoil(profile, 0)
    for row in range(bounds.since.shape[0]):
        for column in range(bounds.since.shape[1]):
            bounds.since[row, column] = -np.inf


@lean
def _last_within(steps: np.ndarray, value: float) -> int:
    """Return the last step that is not above a value; -1 if none is."""
    low, high = -1, steps.size
    while high - low > 1:
        middle = (low + high) >> 1
        if steps[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@lean
def next_place(profile: Availability, bounds: Bounds, width: int, length: float) -> float:
    """Return the earliest time at which so many processors are free for so long, and note what that says of others."""
    row, column = _last_within(bounds.widths, width), _last_within(bounds.lengths, length)
    since = bounds.since[row, column] if row >= 0 and column >= 0 else -np.inf
    time = earliest(profile, width, length, since, np.inf)
    if profile.head[0].looked < FAR:
        return time
    if row < 0 or bounds.widths[row] < width:
        row += 1
    if column < 0 or bounds.lengths[column] < length:
        column += 1
    for wider in range(max(row, 0), bounds.widths.size):
        for longer in range(max(column, 0), bounds.lengths.size):
            if bounds.since[wider, longer] >= time:
                break
            bounds.since[wider, longer] = time
    return time


# -- moving reservations forward


@lean
def begin_round(profile: Availability, jobs: int) -> None:
    """Let reservations of so many jobs move forward: forget where they did not fit, since something was freed."""
    head = profile.head[0]
    head.sizes = 0
    head.width = 0
    head.moves = 0
    head.latest = head.seen if jobs >= LONG_QUEUE else -np.inf
    head.seen = -np.inf


@lean
def _free_since(profile: Availability, width: int, time: float, least: float) -> tuple[float, int, int]:
    """
    Return since when so many processors are free without a break up to a time; the time itself if they are not.

    What is before ``least`` is not looked at; it is returned if they are free since then. Besides, how many are free
    right before the time, and the fewest that are free in between.
    """
    head = profile.head[0]
    place = _block_before(profile, time)
    if place < 0:
        since = max(head.now, least) if head.level >= width else time
        return since, head.level, head.level
    level = _level_before(profile, place)
    block = profile.blocks[place]
    if block.stale == 0 and level < width and level + block.highest < width:
        return time, 0, 0
    row = profile.changes[block.row]
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
        row = profile.changes[profile.blocks[place].row]
        k = profile.blocks[place].count


@lean
def _most_free(profile: Availability, begin: float, end: float) -> int:
    """Return the most processors that are free at an instant from ``begin``, after now, to before ``end``."""
    head = profile.head[0]
    place = max(_block_before(profile, begin), 0)
    level = _level_before(profile, place)
    most = 0
    while place < head.blocks:
        block = profile.blocks[place]
        row = profile.changes[block.row]
        for k in range(block.count):
            if row[k].time > begin:
                most = max(most, level)
            if row[k].time >= end:
                return most
            level += row[k].change
        place += 1
    return max(most, level)


@lean
def _remembered(profile: Availability, width: int, length: float) -> int:
    """Return which of the sizes is that of a job, a new one if it must be; -1 if there are too many."""
    head = profile.head[0]
    last = (1 << _HASH_BITS) - 1
    place = ((_GOLDEN * (31 * width + int(length))) >> (64 - _HASH_BITS)) & last
    while True:
        known = profile.hashed[place]
        if known >= head.sizes or profile.sizes[known].hashed != place:
            break
        if profile.sizes[known].width == width and profile.sizes[known].length == length:
            return known
        place = (place + 1) & last
    if head.sizes == SIZES:
        return -1
    known = head.sizes
    head.sizes += 1
    profile.hashed[place] = known
    size = profile.sizes[known]
    size.hashed = place
    size.width = width
    size.length = length
    size.time = -np.inf
    size.freed = np.inf
    return known


@lean
def _note_freed(profile: Availability, begin: float, end: float) -> None:
    """Note that there may be places for jobs again where processors have become free in this round."""
    head = profile.head[0]
    if begin >= head.latest:
        return
    most = _most_free(profile, begin, end)
    for place in range(head.sizes):
        size = profile.sizes[place]
        if size.width <= most:
            size.freed = min(size.freed, begin)


@lean
def _change_place(profile: Availability, width: int, length: float, from_time: float, to_time: float) -> None:
    """Let processors be taken from a time on, and no longer from another, later one on, each time for a length."""
    if from_time < np.inf:
        add(profile, from_time, width)
        add(profile, from_time + length, -width)
    add(profile, to_time, -width)
    add(profile, to_time + length, width)
    _note_freed(profile, max(from_time, to_time + length), from_time + length)


@lean
def _tell(profile: Availability) -> None:
    """Tell the profile of the moves that it does not know of."""
    head = profile.head[0]
    for k in range(head.moves):
        moved = profile.moves[k]
        _change_place(profile, moved.count * moved.width, moved.length, moved.from_time, moved.to_time)
    head.moves = 0


@lean
def _count_move(profile: Availability, time: float, level: int, fewest: int) -> None:
    """Count the move of the job that is asked about, into a gap; all of its kind for whom there is room can follow."""
    head = profile.head[0]
    moved = profile.moves[head.moves]
    head.moves += 1
    moved.width = head.width
    moved.length = head.length
    moved.from_time = head.reserved
    moved.to_time = time
    moved.level = level
    moved.count = 1
    head.target = time
    head.again = fewest // head.width - 1


@lean
def _beside_moves(profile: Availability, width: int, length: float, reserved: float) -> float:
    """
    Return where a job moves that has no place which ends before its reservation; NaN if the profile has to be told.

    Until the first place to which jobs moved ends, fewer processors are free than the profile says: from there to where
    they were. From then on there are more.
    """
    head = profile.head[0]
    first, last = profile.moves[0], profile.moves[head.moves - 1]
    if reserved > first.to_time + first.length:
        return np.nan
    follows = width == last.width and length == last.length and reserved > last.from_time
    since, level, fewest = _free_since(profile, width, reserved, last.from_time if follows else reserved)
    if level < width:
        return reserved
    if not follows:
        return np.nan
    if since > last.from_time:
        _tell(profile)
    else:
        if last.level - last.count * width >= width or (head.moves == 2 and first.count != last.count):
            return np.nan
        if head.moves == 2:  # as many went on from where the others had come to: it is as if these had moved at once
            first.from_time = last.from_time
            first.level = last.level
            head.moves = 1
    _count_move(profile, since, level, fewest)
    return since


@lean
def move(profile: Availability, width: int, length: float, reserved: float) -> float:
    """
    Move a reservation to its earliest place, and return the start of that; ``reserved`` if it stays.

    There are two ways to come forward: to a place that ends before the reservation begins, or by pushing the
    reservation into a gap right before it. In a round most jobs fail, and the many jobs of one size fail in the first
    way at the same place, which is remembered; the second is seen where the reservation begins.

    Jobs that were submitted together have one size, and often one reservation: what was found for one is true of the
    next, as long as there is room. Often each of them moves to where the one before it was. So moves of the second kind
    are counted, and the profile is told of them as late as can be: see `end_round`.
    """
    head = profile.head[0]
    if head.width == width and head.reserved == reserved and head.length == length:
        if head.again < 0:
            return reserved
        if head.again > 0:
            head.again -= 1
            profile.moves[head.moves - 1].count += 1
            return head.target
    return _move(profile, width, length, reserved)


@lean
def _move(profile: Availability, width: int, length: float, reserved: float) -> float:
    """Move a reservation that is not like the last one."""
    head = profile.head[0]
    head.seen = max(head.seen, reserved)
    head.width = width
    head.length = length
    head.reserved = reserved
    head.again = -1
    if reserved <= head.now:
        return reserved
    known = _remembered(profile, width, length) if reserved <= head.latest else -1
    if known >= 0:
        size = profile.sizes[known]
        is_known = size.time + length > reserved and size.freed >= reserved
        if is_known and head.moves > 0:
            time = _beside_moves(profile, width, length, reserved)
            if not np.isnan(time):
                return time
        if head.moves > 0:
            _tell(profile)
            is_known = size.time + length > reserved and size.freed >= reserved
        if not is_known:
            size.time = earliest(profile, width, length, -np.inf, head.latest)
            size.freed = np.inf
        if size.time + length > reserved:
            time, level, fewest = _free_since(profile, width, reserved, -np.inf)
            if time < reserved:
                _count_move(profile, time, level, fewest)
            return time
        time = size.time
    else:
        _tell(profile)
        time = earliest(profile, width, length, -np.inf, reserved)
    if time < reserved:
        head.width = 0
        _change_place(profile, width, length, reserved, time)
    return time


@lean
def end_round(profile: Availability) -> None:
    """Let the profile be right again."""
    _tell(profile)
