"""
Plan the whole queue: with bounds, `shapes: submit` is 2.6 (SDSC-SP2) to 6.3 times (HPC2N) as fast as with a plan alone.

The factors are those of EASY on whole logs. Short logs do not need the bounds: KTH-SP2 takes 0.2 s with and without.
"""

from typing import NamedTuple

import numpy as np

from swflow.scheduling.machine.plan import Plan, earliest

#: Bounds are kept for these numbers of widths and lengths. They are updated after a search of at least ``FAR`` blocks:
#: an update costs as much.
MOST_WIDTHS = 32
MOST_LENGTHS = 128
FAR = 10


class Bounds(NamedTuple):
    """
    Lower bounds of the starts of jobs in a plan in which processors are only allocated, never released.

    Jobs of at least ``widths[i]`` processors and a length of at least ``lengths[j]`` do not fit before ``since[i, j]``.
    """

    since: np.ndarray
    widths: np.ndarray
    lengths: np.ndarray


def new_bounds(widths: np.ndarray, lengths: np.ndarray) -> Bounds:
    """Return bounds for jobs of these widths and lengths, exact for the most frequent ones."""
    rows, columns = _steps_of(widths, MOST_WIDTHS), _steps_of(lengths, MOST_LENGTHS)
    return Bounds(np.full((rows.size, columns.size), -np.inf), rows, columns)


def _steps_of(values: np.ndarray, most: int) -> np.ndarray:
    """Return some of the values, ascending: the most frequent ones, and others between them."""
    known, counts = np.unique(values, return_counts=True)
    if known.size <= most:
        return known
    frequent = known[np.argsort(-counts, kind="stable")[: most // 2]]
    return np.union1d(frequent, known[np.linspace(0, known.size - 1, most // 2).astype(np.int64)])


def plan_anew(plan: Plan, bounds: Bounds, other: Plan) -> None:
    """Copy a plan into another one, and reset the bounds."""
    head, model = plan.head[0], other.head[0]
    for place in range(head.blocks):
        plan.spare_rows[head.spare] = plan.blocks[place].row
        head.spare += 1
    head.now = model.now
    head.level = model.level
    head.blocks = model.blocks
    for place in range(model.blocks):
        head.spare -= 1
        row = plan.spare_rows[head.spare]
        plan.blocks[place] = other.blocks[place]
        for k in range(other.blocks[place].count):
            plan.changes[row, k] = other.changes[other.blocks[place].row, k]
        plan.blocks[place].row = row
    head.summed = 0
    for row in range(bounds.since.shape[0]):
        for column in range(bounds.since.shape[1]):
            bounds.since[row, column] = -np.inf


def next_place(plan: Plan, bounds: Bounds, width: int, length: float) -> float:
    """Return the earliest start of a job as `earliest` does, and update the bounds."""
    widths, lengths = bounds.widths, bounds.lengths
    wide, long = _first_from(widths, width), _first_from(lengths, length)
    row = wide if wide < widths.size and widths[wide] == width else wide - 1
    column = long if long < lengths.size and lengths[long] == length else long - 1
    since = bounds.since[row, column] if row >= 0 and column >= 0 else -np.inf
    time = earliest(plan, width, length, since, np.inf)
    if plan.head[0].looked < FAR:
        return time
    for wider in range(wide, widths.size):
        for longer in range(long, lengths.size):
            if bounds.since[wider, longer] >= time:
                break
            bounds.since[wider, longer] = time
    return time


def _first_from(values: np.ndarray, least: float) -> int:
    """Return the place of the first of ascending values that is not below another one."""
    place, end = 0, values.size  # np.searchsorted would take a tenth of the time in which a kernel is compiled
    while place < end:
        middle = (place + end) // 2
        if values[middle] < least:
            place = middle + 1
        else:
            end = middle
    return place
