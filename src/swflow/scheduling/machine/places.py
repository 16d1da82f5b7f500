"""Allocation: sets of numbered processors as bits, and which of the free ones a job gets."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types
from numba.extending import intrinsic

from swflow.compilation import njit

#: The allocations, as the kernels number them.
FIRST_FIT, LONGEST_IDLE, FIRST_CONTIGUOUS, BEST_CONTIGUOUS, NEXT_FIT, LEAST_SHARED, THRESHOLD = range(7)

#: What an allocation chooses among the free processors.
ALLOCATIONS = {
    "first-fit": FIRST_FIT,
    "longest-idle": LONGEST_IDLE,
    "first-contiguous": FIRST_CONTIGUOUS,
    "best-contiguous": BEST_CONTIGUOUS,
    "next-fit": NEXT_FIT,
    "least-shared": LEAST_SHARED,
    "threshold": THRESHOLD,
}

# A set of processors is an array of uint64 words: processor p is bit p & 63 of word p >> 6, and the bits
# beyond the last processor are 0.
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def _type_ones(typing_context: Any, word: Any) -> Any:
    """Tell numba how to count the ones of a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _type_lowest(typing_context: Any, word: Any) -> Any:
    """Tell numba how to find the place of the lowest one of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 0))

    return types.int64(types.uint64), generate


def _type_highest(typing_context: Any, word: Any) -> Any:
    """Tell numba how to find the place of the highest one of a word that is not 0, counted from the other end."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], context.get_constant(types.boolean, 0))

    return types.int64(types.uint64), generate


# Each is one instruction of the processor.
_ones = cast(Callable[[Any], int], intrinsic(_type_ones))
_lowest = cast(Callable[[Any], int], intrinsic(_type_lowest))
_leading = cast(Callable[[Any], int], intrinsic(_type_highest))


@njit
def fill(bits: np.ndarray, first: int, last: int) -> None:
    """Put the processors ``first`` to ``last``, both included, into a set."""
    low, high = first >> 6, last >> 6
    below = _ALL << np.uint64(first & 63)
    above = _ALL >> np.uint64(63 - (last & 63))
    if low == high:
        bits[low] |= below & above
        return
    bits[low] |= below
    for word in range(low + 1, high):
        bits[word] = _ALL
    bits[high] |= above


@njit
def clear(bits: np.ndarray, first: int, last: int) -> None:
    """Take the processors ``first`` to ``last``, both included, out of a set."""
    low, high = first >> 6, last >> 6
    below = _ALL << np.uint64(first & 63)
    above = _ALL >> np.uint64(63 - (last & 63))
    if low == high:
        bits[low] &= ~(below & above)
        return
    bits[low] &= ~below
    for word in range(low + 1, high):
        bits[word] = _NONE
    bits[high] &= ~above


@njit
def holds(bits: np.ndarray, place: int) -> bool:
    """Return whether a processor is in a set."""
    return (bits[place >> 6] >> np.uint64(place & 63)) & _ONE != _NONE


@njit
def size_of(bits: np.ndarray) -> int:
    """Count the processors of a set."""
    size = 0
    for word in range(bits.size):
        size += _ones(bits[word])
    return size


@njit
def next_in(bits: np.ndarray, place: int, machine: int) -> int:
    """Return the first processor from ``place`` on that is in a set, ``machine`` if none is."""
    if place >= machine:
        return machine
    index = place >> 6
    word = bits[index] & (_ALL << np.uint64(place & 63))
    while word == _NONE:
        index += 1
        if index == bits.size:
            return machine
        word = bits[index]
    return (index << 6) + _lowest(word)


@njit
def next_out(bits: np.ndarray, place: int, machine: int) -> int:
    """Return the first processor from ``place`` on that is not in a set, ``machine`` if all are."""
    if place >= machine:
        return machine
    index = place >> 6
    word = ~bits[index] & (_ALL << np.uint64(place & 63))
    while word == _NONE:
        index += 1
        if index == bits.size:
            return machine
        word = ~bits[index]
    return min((index << 6) + _lowest(word), machine)


@njit
def last_out(bits: np.ndarray, place: int) -> int:
    """Return the last processor before ``place`` that is not in a set, -1 if all are."""
    if place <= 0:
        return -1
    index = (place - 1) >> 6
    word = ~bits[index] & (_ALL >> np.uint64(63 - ((place - 1) & 63)))
    while word == _NONE:
        index -= 1
        if index < 0:
            return -1
        word = ~bits[index]
    return (index << 6) + 63 - _leading(word)


@njit
def take_lowest(bits: np.ndarray, count: int, chosen: np.ndarray) -> None:
    """Add the ``count`` lowest processors of a set, which has as many, to ``chosen``."""
    for index in range(bits.size):
        if count <= 0:
            return
        word = bits[index]
        ones = _ones(word)
        if ones <= count:
            chosen[index] |= word
            count -= ones
            continue
        while count > 0:
            chosen[index] |= _ONE << np.uint64(_lowest(word))
            word &= word - _ONE
            count -= 1


@njit
def longest_run(bits: np.ndarray, machine: int) -> int:
    """Return the length of the longest run of consecutive processors of a set."""
    longest = 0
    first = next_in(bits, 0, machine)
    while first < machine:
        after = next_out(bits, first, machine)
        longest = max(longest, after - first)
        first = next_in(bits, after, machine)
    return longest


@njit
def has_run(bits: np.ndarray, width: int, machine: int) -> bool:
    """Return whether a set has ``width`` consecutive processors."""
    first = next_in(bits, 0, machine)
    while first + width <= machine:
        after = next_out(bits, first, machine)
        if after - first >= width:
            return True
        first = next_in(bits, after, machine)
    return False


@njit
def choose(bits: np.ndarray, width: int, allocation: int, pointer: int, machine: int, chosen: np.ndarray) -> bool:
    """
    Apply the allocations that ask neither for the past (longest-idle) nor for the neighbours.

    Parameters
    ----------
    bits : uint64 array
        The processors that can be had.
    width : int
        How many are wanted.
    allocation : int
        One of `ALLOCATIONS`.
    pointer : int
        Where next-fit goes on.
    machine : int
        Processors of the machine.
    chosen : uint64 array
        Becomes the set of the chosen processors.

    Returns
    -------
    bool
        Whether there are as many (contiguous allocations: as many in a row).
    """
    chosen[:] = _NONE
    if size_of(bits) < width:
        return False
    if allocation == FIRST_FIT:
        take_lowest(bits, width, chosen)
        return True
    if allocation == NEXT_FIT:
        ahead = bits.copy()
        if pointer > 0:
            clear(ahead, 0, pointer - 1)
        size = size_of(ahead)
        take_lowest(ahead, width, chosen)
        if size < width:
            behind = bits.copy()
            clear(behind, pointer, machine - 1)
            take_lowest(behind, width - size, chosen)
        return True
    best, best_length = machine, machine + 1
    first = next_in(bits, 0, machine)
    while first < machine:
        after = next_out(bits, first, machine)
        length = after - first
        if length >= width and length < best_length:
            best, best_length = first, length
            if allocation == FIRST_CONTIGUOUS or length == width:
                break
        first = next_in(bits, after, machine)
    if best == machine:
        return False
    fill(chosen, best, best + width - 1)
    return True


@njit
def sort_by_key(items: np.ndarray, keys: np.ndarray, count: int, spare: np.ndarray) -> None:
    """
    Sort the first ``count`` items by ``(keys[item], item)``, in place.

    A merge sort of the runs that are in order already: items that moved little since they were last
    sorted take little time.

    Parameters
    ----------
    items : int64 array
        Indices into ``keys``, all different.
    keys : float64 array
        The keys, none of them NaN.
    count : int
        How many items to sort.
    spare : int64 array
        Working space of at least ``count`` items.
    """
    while True:
        runs = 0
        begin = 0
        while begin < count:
            middle = begin + 1
            while middle < count and (
                keys[items[middle - 1]] < keys[items[middle]]
                or (keys[items[middle - 1]] == keys[items[middle]] and items[middle - 1] < items[middle])
            ):
                middle += 1
            end = min(middle + 1, count)
            while end < count and (
                keys[items[end - 1]] < keys[items[end]]
                or (keys[items[end - 1]] == keys[items[end]] and items[end - 1] < items[end])
            ):
                end += 1
            if middle < count:
                spare[begin:middle] = items[begin:middle]
                left, right = begin, middle
                place = begin
                while left < middle and right < end:
                    mine, other = spare[left], items[right]
                    if keys[other] < keys[mine] or (keys[other] == keys[mine] and other < mine):
                        items[place] = other
                        right += 1
                    else:
                        items[place] = mine
                        left += 1
                    place += 1
                while left < middle:
                    items[place] = spare[left]
                    left += 1
                    place += 1
            runs += 1
            begin = end
        if runs <= 1:
            return
