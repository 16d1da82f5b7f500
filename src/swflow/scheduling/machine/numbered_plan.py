"""
The plan of numbered processors: the sets that are free over time.

It is apart from `swflow.scheduling.machine.plan`, which skips blocks of changes by their least and greatest sums: sets
have no sums, and a job needs the same processors in all steps during which it runs.
"""

from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import inlined
from swflow.scheduling.machine.allocation import (
    BEST_CONTIGUOUS,
    FIRST_CONTIGUOUS,
    NO_PLACES,
    assign,
    fill,
    has_run,
    size_of,
    take_lowest,
)

_STEPS, _SPARE, _FRESH = range(3)


class NumberedPlan(NamedTuple):
    """
    Steps in order of time, each with the set of free processors.

    Step ``i`` lasts from ``times[i]`` to ``times[i + 1]``, the last one has no end. Its free processors are
    ``free[slots[i]]``, in number ``sizes[slots[i]]``. ``numbers`` has the number of steps, the number of returned
    slots, which are in ``spare``, and the first unused slot.
    """

    times: np.ndarray
    slots: np.ndarray
    free: np.ndarray
    sizes: np.ndarray
    spare: np.ndarray
    numbers: np.ndarray


def new_numbered_plan(steps: int, words: int) -> NumberedPlan:
    """Return a plan with room for a number of steps, and sets of a number of words; `reset` it before use."""
    return NumberedPlan(
        np.empty(steps),
        np.empty(steps, np.int64),
        np.empty((steps, words), np.uint64),
        np.empty(steps, np.int64),
        np.empty(steps, np.int64),
        np.zeros(3, np.int64),
    )


@inlined
def reset(plan: NumberedPlan, machine: int) -> None:
    """Remove everything that is planned."""
    plan.times[0] = -np.inf
    plan.slots[0] = 0
    for word in range(plan.free.shape[1]):
        plan.free[0, word] = NO_PLACES
    fill(plan.free[0], 0, machine - 1)
    plan.sizes[0] = machine
    plan.numbers[_STEPS] = 1
    plan.numbers[_SPARE] = 0
    plan.numbers[_FRESH] = 1


@inlined
def steps_of(plan: NumberedPlan) -> int:
    """Return the number of steps."""
    return plan.numbers[_STEPS]


@inlined
def advance(plan: NumberedPlan, now: float) -> None:
    """Advance the plan to ``now``: remove the steps before it."""
    steps = plan.numbers[_STEPS]
    past = 0
    while past + 1 < steps and plan.times[past + 1] <= now:
        plan.spare[plan.numbers[_SPARE]] = plan.slots[past]
        plan.numbers[_SPARE] += 1
        past += 1
    if past > 0:
        for step in range(past, steps):
            plan.times[step - past] = plan.times[step]
            plan.slots[step - past] = plan.slots[step]
        plan.numbers[_STEPS] = steps - past
    plan.times[0] = now


@inlined
def _begin_step(plan: NumberedPlan, time: float) -> int:
    """Split the step at ``time``, which is not before the first; return the index of the step that begins then."""
    low, high = 0, plan.numbers[_STEPS]
    while high - low > 1:
        middle = (low + high) >> 1
        if plan.times[middle] <= time:
            low = middle
        else:
            high = middle
    if plan.times[low] == time:
        return low
    steps = plan.numbers[_STEPS]
    for step in range(steps, low + 1, -1):
        plan.times[step] = plan.times[step - 1]
        plan.slots[step] = plan.slots[step - 1]
    slot = plan.numbers[_FRESH]
    if plan.numbers[_SPARE] > 0:
        plan.numbers[_SPARE] -= 1
        slot = plan.spare[plan.numbers[_SPARE]]
    else:
        plan.numbers[_FRESH] += 1
    old = plan.slots[low]
    assign(plan.free[slot], plan.free[old])
    plan.sizes[slot] = plan.sizes[old]
    plan.times[low + 1] = time
    plan.slots[low + 1] = slot
    plan.numbers[_STEPS] = steps + 1
    return low + 1


@inlined
def _join(plan: NumberedPlan, step: int) -> None:
    """Merge a step with the one before it if they are equal."""
    steps = plan.numbers[_STEPS]
    if step <= 0 or step >= steps:
        return
    slot, before = plan.slots[step], plan.slots[step - 1]
    if plan.sizes[slot] != plan.sizes[before]:
        return
    for word in range(plan.free.shape[1]):
        if plan.free[slot, word] != plan.free[before, word]:
            return
    for later in range(step + 1, steps):
        plan.times[later - 1] = plan.times[later]
        plan.slots[later - 1] = plan.slots[later]
    plan.spare[plan.numbers[_SPARE]] = slot
    plan.numbers[_SPARE] += 1
    plan.numbers[_STEPS] = steps - 1


@inlined
def reserve(plan: NumberedPlan, places: np.ndarray, begin: float, end: float) -> None:
    """Allocate processors from ``begin`` to ``end``; allocated ones stay allocated."""
    _change(plan, places, begin, end, False)


@inlined
def release(plan: NumberedPlan, places: np.ndarray, begin: float, end: float) -> None:
    """Release processors from ``begin`` to ``end``."""
    _change(plan, places, begin, end, True)


@inlined
def _change(plan: NumberedPlan, places: np.ndarray, begin: float, end: float, frees: bool) -> None:
    begin = max(begin, plan.times[0])
    if end <= begin:
        return
    first = _begin_step(plan, begin)
    last = _begin_step(plan, end)
    for step in range(first, last):
        slot = plan.slots[step]
        for word in range(places.size):
            if frees:
                plan.free[slot, word] |= places[word]
            else:
                plan.free[slot, word] &= ~places[word]
        plan.sizes[slot] = size_of(plan.free[slot])
    _join(plan, last)
    _join(plan, first)


@inlined
def _holds_job(bits: np.ndarray, width: int, allocation: int, machine: int) -> bool:
    """Return whether a set has ``width`` processors, in a row if the allocation is contiguous."""
    if size_of(bits) < width:
        return False
    if allocation in (FIRST_CONTIGUOUS, BEST_CONTIGUOUS):
        return has_run(bits, width, machine)
    return True


@inlined
def earliest_step(
    plan: NumberedPlan,
    width: int,
    length: float,
    allocation: int,
    machine: int,
    eligible: np.ndarray,
    spare: np.ndarray,
) -> int:
    """
    Return the first step from whose beginning a job fits for its planned run time.

    Parameters
    ----------
    plan : NumberedPlan
        The plan.
    width, length : int, float
        Processors, and planned run time in seconds.
    allocation, machine : int
        One of `allocation.ALLOCATIONS`; processors of the machine.
    eligible : uint64 array
        Receives the set of processors that are free for all of that time.
    spare : uint64 array
        Working space like ``eligible``.

    Returns
    -------
    int
        The step, or the number of steps if the job never fits.
    """
    steps = plan.numbers[_STEPS]
    words = eligible.size
    step = 0
    while step < steps:
        slot = plan.slots[step]
        if plan.sizes[slot] < width:
            step += 1
            continue
        assign(eligible, plan.free[slot])
        end = plan.times[step] + length
        fits = _holds_job(eligible, width, allocation, machine)
        last = step
        while fits and last + 1 < steps and plan.times[last + 1] < end:
            last += 1
            slot = plan.slots[last]
            if plan.sizes[slot] < width:
                fits = False
                break
            changed = False
            for word in range(words):
                left = eligible[word] & plan.free[slot, word]
                changed |= left != eligible[word]
                eligible[word] = left
            if changed:
                fits = _holds_job(eligible, width, allocation, machine)
        if fits:
            return step
        # Every start that needs the steps found too narrow, from the end, is impossible as well.
        assign(spare, plan.free[plan.slots[last]])
        back = last
        while back > step and _holds_job(spare, width, allocation, machine):
            back -= 1
            slot = plan.slots[back]
            for word in range(words):
                spare[word] &= plan.free[slot, word]
        step = back + 1
    return steps


@inlined
def choose_longest_idle(
    plan: NumberedPlan, step: int, width: int, eligible: np.ndarray, spare: np.ndarray, chosen: np.ndarray
) -> bool:
    """
    Choose the eligible processors that have been idle longest at the beginning of a step.

    Return False if the choice is among processors that are idle from now until then: ``eligible`` has these, for a
    choice by the past.
    """
    words = eligible.size
    while step > 0:
        step -= 1
        slot = plan.slots[step]
        for word in range(words):
            spare[word] = eligible[word] & plan.free[slot, word]
        size = size_of(spare)
        if size < width:
            assign(chosen, spare)
            for word in range(words):
                spare[word] = eligible[word] & ~chosen[word]
            take_lowest(spare, width - size, chosen)
            return True
        assign(eligible, spare)
    return False
