"""Timetable: which numbered processors are free when, by what is planned."""

from typing import NamedTuple

import numpy as np

from swflow.kernels import lean
from swflow.scheduling.machine.places import (
    BEST_CONTIGUOUS,
    FIRST_CONTIGUOUS,
    LONGEST_IDLE,
    NO_PLACES,
    assign,
    choose,
    fill,
    has_run,
    size_of,
    take_lowest,
)

_STEPS, _SPARE, _FRESH = range(3)


class Timetable(NamedTuple):
    """
    Steps in order of time; in each of them the same processors are free.

    Step ``i`` lasts from ``times[i]`` to ``times[i + 1]``, the last one for ever. Its free processors are
    ``free[slots[i]]``, and ``sizes[slots[i]]`` of them. ``numbers`` holds the number of steps, and of slots that
    were given back, which lie in ``spare``, and the first slot that nobody had.
    """

    times: np.ndarray
    slots: np.ndarray
    free: np.ndarray
    sizes: np.ndarray
    spare: np.ndarray
    numbers: np.ndarray


def new_timetable(steps: int, words: int) -> Timetable:
    """Make a timetable with room for so many steps and sets of so many words; `reset` it before use."""
    return Timetable(
        np.empty(steps),
        np.empty(steps, np.int64),
        np.empty((steps, words), np.uint64),
        np.empty(steps, np.int64),
        np.empty(steps, np.int64),
        np.zeros(3, np.int64),
    )


@lean
def reset(table: Timetable, machine: int) -> None:
    """Forget all that is planned."""
    table.times[0] = -np.inf
    table.slots[0] = 0
    for word in range(table.free.shape[1]):
        table.free[0, word] = NO_PLACES
    fill(table.free[0], 0, machine - 1)
    table.sizes[0] = machine
    table.numbers[_STEPS] = 1
    table.numbers[_SPARE] = 0
    table.numbers[_FRESH] = 1


@lean
def steps_of(table: Timetable) -> int:
    """Return the number of steps."""
    return table.numbers[_STEPS]


@lean
def forget_past(table: Timetable, now: float) -> None:
    """Forget what is past."""
    steps = table.numbers[_STEPS]
    past = 0
    while past + 1 < steps and table.times[past + 1] <= now:
        table.spare[table.numbers[_SPARE]] = table.slots[past]
        table.numbers[_SPARE] += 1
        past += 1
    if past > 0:
        for step in range(past, steps):
            table.times[step - past] = table.times[step]
            table.slots[step - past] = table.slots[step]
        table.numbers[_STEPS] = steps - past
    table.times[0] = now


@lean
def _begin_step(table: Timetable, time: float) -> int:
    """Let a step begin at ``time``, which is not before the first; return its index."""
    low, high = 0, table.numbers[_STEPS]
    while high - low > 1:
        middle = (low + high) >> 1
        if table.times[middle] <= time:
            low = middle
        else:
            high = middle
    if table.times[low] == time:
        return low
    steps = table.numbers[_STEPS]
    for step in range(steps, low + 1, -1):
        table.times[step] = table.times[step - 1]
        table.slots[step] = table.slots[step - 1]
    slot = table.numbers[_FRESH]
    if table.numbers[_SPARE] > 0:
        table.numbers[_SPARE] -= 1
        slot = table.spare[table.numbers[_SPARE]]
    else:
        table.numbers[_FRESH] += 1
    old = table.slots[low]
    assign(table.free[slot], table.free[old])
    table.sizes[slot] = table.sizes[old]
    table.times[low + 1] = time
    table.slots[low + 1] = slot
    table.numbers[_STEPS] = steps + 1
    return low + 1


@lean
def _join(table: Timetable, step: int) -> None:
    """Unite a step with the one before it if nothing changes between them."""
    steps = table.numbers[_STEPS]
    if step <= 0 or step >= steps:
        return
    slot, before = table.slots[step], table.slots[step - 1]
    if table.sizes[slot] != table.sizes[before]:
        return
    for word in range(table.free.shape[1]):
        if table.free[slot, word] != table.free[before, word]:
            return
    for later in range(step + 1, steps):
        table.times[later - 1] = table.times[later]
        table.slots[later - 1] = table.slots[later]
    table.spare[table.numbers[_SPARE]] = slot
    table.numbers[_SPARE] += 1
    table.numbers[_STEPS] = steps - 1


@lean
def keep(table: Timetable, places: np.ndarray, begin: float, end: float) -> None:
    """Take processors from ``begin`` to ``end``; whoever has them already keeps them."""
    begin = max(begin, table.times[0])
    if end <= begin:
        return
    first = _begin_step(table, begin)
    last = _begin_step(table, end)
    for step in range(first, last):
        slot = table.slots[step]
        for word in range(places.size):
            table.free[slot, word] &= ~places[word]
        table.sizes[slot] = size_of(table.free[slot])
    _join(table, last)
    _join(table, first)


@lean
def vacate(table: Timetable, places: np.ndarray, begin: float, end: float) -> None:
    """Give processors back from ``begin`` to ``end``."""
    begin = max(begin, table.times[0])
    if end <= begin:
        return
    first = _begin_step(table, begin)
    last = _begin_step(table, end)
    for step in range(first, last):
        slot = table.slots[step]
        for word in range(places.size):
            table.free[slot, word] |= places[word]
        table.sizes[slot] = size_of(table.free[slot])
    _join(table, last)
    _join(table, first)


@lean
def _holds_job(bits: np.ndarray, width: int, allocation: int, machine: int) -> bool:
    """Return whether a set has ``width`` processors, in a row if the allocation is contiguous."""
    if size_of(bits) < width:
        return False
    if allocation in (FIRST_CONTIGUOUS, BEST_CONTIGUOUS):
        return has_run(bits, width, machine)
    return True


@lean
def earliest_step(
    table: Timetable,
    width: int,
    length: float,
    allocation: int,
    machine: int,
    eligible: np.ndarray,
    spare: np.ndarray,
) -> int:
    """
    Find the first step from whose beginning a job fits for its planned run time.

    Parameters
    ----------
    table : Timetable
        What is planned.
    width, length : int, float
        Processors, and planned run time in seconds.
    allocation, machine : int
        One of `allocation.ALLOCATIONS`; processors of the machine.
    eligible : uint64 array
        Becomes the set of processors that are free for all of that time.
    spare : uint64 array
        Working space like ``eligible``.

    Returns
    -------
    int
        The step, or the number of steps if the job never fits.
    """
    steps = table.numbers[_STEPS]
    words = eligible.size
    step = 0
    while step < steps:
        slot = table.slots[step]
        if table.sizes[slot] < width:
            step += 1
            continue
        assign(eligible, table.free[slot])
        end = table.times[step] + length
        fits = _holds_job(eligible, width, allocation, machine)
        last = step
        while fits and last + 1 < steps and table.times[last + 1] < end:
            last += 1
            slot = table.slots[last]
            if table.sizes[slot] < width:
                fits = False
                break
            changed = False
            for word in range(words):
                left = eligible[word] & table.free[slot, word]
                changed |= left != eligible[word]
                eligible[word] = left
            if changed:
                fits = _holds_job(eligible, width, allocation, machine)
        if fits:
            return step
        # Every start whose time includes what was too much from the end is out as well.
        assign(spare, table.free[table.slots[last]])
        back = last
        while back > step and _holds_job(spare, width, allocation, machine):
            back -= 1
            slot = table.slots[back]
            for word in range(words):
                spare[word] &= table.free[slot, word]
        step = back + 1
    return steps


@lean
def choose_longest_idle(
    table: Timetable, step: int, width: int, eligible: np.ndarray, spare: np.ndarray, chosen: np.ndarray
) -> bool:
    """
    Choose those of the eligible processors that are idle for longest at the beginning of a step.

    Returns False if the choice is among processors that are idle from now on until then: ``eligible`` is
    left with these, to choose from by the past.
    """
    words = eligible.size
    while step > 0:
        step -= 1
        slot = table.slots[step]
        for word in range(words):
            spare[word] = eligible[word] & table.free[slot, word]
        size = size_of(spare)
        if size < width:
            assign(chosen, spare)
            for word in range(words):
                spare[word] = eligible[word] & ~chosen[word]
            take_lowest(spare, width - size, chosen)
            return True
        assign(eligible, spare)
    return False


@lean
def choose_later(
    table: Timetable,
    step: int,
    width: int,
    allocation: int,
    pointer: int,
    machine: int,
    eligible: np.ndarray,
    spare: np.ndarray,
    chosen: np.ndarray,
) -> bool:
    """Apply the allocation at the beginning of a step; False as in `choose_longest_idle`."""
    if allocation == LONGEST_IDLE:
        return choose_longest_idle(table, step, width, eligible, spare, chosen)
    return choose(eligible, width, allocation, pointer, machine, chosen)
