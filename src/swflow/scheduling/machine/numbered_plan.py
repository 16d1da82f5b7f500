"""
The plan of numbered processors: the free set, and the sets that become free or occupied later.

It is apart from `swflow.scheduling.machine.plan`, which skips blocks of changes by their least and greatest sums: sets
have no sums, and a job needs the same processors for its whole run.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.machine.allocation import add, assign, clear, fill, longest_run, remove, run_around, size_of

#: From ``time`` on, the set of a job, in a row of the plan's ``sets``, is free; or occupied, if ``size``, its number of
#: processors, is negative.
CHANGE = np.dtype([("time", np.float64), ("job", np.int64), ("row", np.int32), ("size", np.int32)])

#: The number of changes, and of those that occupy a set; the numbers of returned rows and of rows that were ever used.
NUMBERS = record("", "changes reservations spare_rows rows")


class NumberedPlan(NamedTuple):
    """
    The ends of running jobs, and the reservations.

    Windows are apart: a running job that exceeds its planned end may have processors of a window.
    """

    free: np.ndarray  # the processors that no job occupies
    changes: np.ndarray  # sorted by time; at equal times, sets that become free, in order of entry, before the others
    sets: np.ndarray  # the sets of running jobs and of jobs with a reservation
    spare_rows: np.ndarray  # the rows of the sets that are not in use
    windows: np.ndarray  # from, until, processors
    numbers: np.ndarray
    scratch: np.ndarray  # two sets


def new_numbered_plan(machine: int, words: int, jobs: int, windows: Sequence[tuple[float, float, int]]) -> NumberedPlan:
    """Return the plan of an idle machine for a number of jobs; its sets have a number of words."""
    free = np.zeros(words, np.uint64)
    fill(free, 0, machine - 1)
    return NumberedPlan(
        free=free,
        changes=np.empty(2 * jobs, CHANGE),
        sets=np.empty((16, words), np.uint64),
        spare_rows=np.empty(16, np.int64),
        windows=np.array(windows, np.float64).reshape(-1, 3),
        numbers=np.zeros(1, NUMBERS),
        scratch=np.empty((2, words), np.uint64),
    )


def new_row(plan: NumberedPlan, bits: np.ndarray) -> int:
    """Store a set in an unused row, and return that."""
    numbers = plan.numbers[0]
    row = numbers.rows
    if numbers.spare_rows > 0:
        numbers.spare_rows -= 1
        row = plan.spare_rows[numbers.spare_rows]
    else:
        numbers.rows += 1
    assign(plan.sets[row], bits)
    return row


def free_row(plan: NumberedPlan, row: int) -> None:
    """Return the row of a set."""
    plan.spare_rows[plan.numbers[0].spare_rows] = row
    plan.numbers[0].spare_rows += 1


def enter(plan: NumberedPlan, time: float, job: int, row: int, size: int) -> None:
    """Enter a change."""
    changes, place = plan.changes, plan.numbers[0].changes
    while place > 0:
        before = changes[place - 1]
        if before.time < time or (before.time == time and (before.size > 0 or size < 0)):
            break
        changes[place] = before
        place -= 1
    change = changes[place]
    change.time = time
    change.job = job
    change.row = row
    change.size = size
    plan.numbers[0].changes += 1
    plan.numbers[0].reservations += size < 0


def withdraw(plan: NumberedPlan, job: int) -> None:
    """Remove the changes of a job."""
    changes, count = plan.changes, plan.numbers[0].changes
    kept = 0
    while kept < count and changes[kept].job != job:
        kept += 1
    for place in range(kept, count):
        if changes[place].job == job:
            plan.numbers[0].reservations -= changes[place].size < 0
        else:
            changes[kept] = changes[place]
            kept += 1
    plan.numbers[0].changes = kept


def _apply(plan: NumberedPlan, place: int, bits: np.ndarray) -> None:
    """Apply a change to a set."""
    change = plan.changes[place]
    if change.size > 0:
        add(bits, plan.sets[change.row])
    else:
        remove(bits, plan.sets[change.row])


def _holds_job(bits: np.ndarray, width: int, contiguous: bool, machine: int) -> bool:
    """Return whether a set has ``width`` processors, in a row if the allocation is contiguous."""
    return size_of(bits) >= width and (not contiguous or longest_run(bits, machine, width) >= width)


def next_time(plan: NumberedPlan, place: int, time: float) -> float:
    """Return the time of the change at a place, or of the end of a window if that comes between."""
    following = plan.changes[place].time if place < plan.numbers[0].changes else np.inf
    for window in range(plan.windows.shape[0]):
        if time < plan.windows[window, 1] < following:
            following = plan.windows[window, 1]
    return following


def earliest_set(
    plan: NumberedPlan,
    since: float,
    width: int,
    length: float,
    contiguous: bool,
    machine: int,
    eligible: np.ndarray,
) -> float:
    """
    Return the earliest time from which a job fits for its planned run time.

    It may start at ``since`` (now, or the time of a change), or when a set becomes free or a window ends. Numbers of
    processors are compared first, then sets. ``eligible`` receives the set of processors that are free for all of that
    time. The result is infinity if the job never fits.
    """
    changes, count = plan.changes, plan.numbers[0].changes
    free, spare = plan.scratch[0], plan.scratch[1]
    assign(free, plan.free)
    level = size_of(free)
    longest = machine  # upper bound of the runs of free processors
    start, place, applied = since, 0, 0
    horizon = count if plan.numbers[0].reservations > 0 else 0  # only reservations occupy processors later
    while start < np.inf:
        while place < count and changes[place].time <= start:
            level += changes[place].size
            place += 1
        last, rest, end = place, level, start + length
        while rest >= width and last < horizon and changes[last].time < end:
            rest += changes[last].size
            last += 1
        if rest < width:  # no start before the change that left too few is possible
            start = next_time(plan, last, start)
            continue
        while applied < place:
            _apply(plan, applied, free)
            if contiguous and changes[applied].size > 0:
                longest = max(longest, run_around(free, plan.sets[changes[applied].row], machine))
            applied += 1
        last = place
        fits = longest >= width and _holds_job(free, width, contiguous, machine)
        if fits:
            assign(eligible, free)
        elif contiguous:
            longest = 0  # or any number below the width
        for window in range(plan.windows.shape[0]):
            if fits and plan.windows[window, 0] < end and plan.windows[window, 1] > start:
                clear(eligible, machine - int(plan.windows[window, 2]), machine - 1)
                fits = _holds_job(eligible, width, contiguous, machine)
        while fits and last < horizon and changes[last].time < end:
            if changes[last].size < 0:
                remove(eligible, plan.sets[changes[last].row])
                fits = _holds_job(eligible, width, contiguous, machine)
            last += 1
        if fits:
            return start
        if last > place:
            # This last change left too few. Skip to the one since when enough are free until then.
            assign(spare, free)
            for change in range(place, last):
                _apply(plan, change, spare)
            while last > place and _holds_job(spare, width, contiguous, machine):
                last -= 1
                if changes[last].size > 0:
                    remove(spare, plan.sets[changes[last].row])
        start = next_time(plan, last, start)
    return start
