"""Allocation: sets of numbered processors as bits, and the choice of a job's processors among the free ones."""

from typing import Any

import numpy as np

from swflow.compiled.kernel import compiled_as
from swflow.scheduling.state.choices import Allocation

#: The allocations as kernels compare them.
FIRST_FIT, LONGEST_IDLE = Allocation.FIRST_FIT.value, Allocation.LONGEST_IDLE.value
FIRST_CONTIGUOUS = Allocation.FIRST_CONTIGUOUS.value
LEAST_SHARED, THRESHOLD = Allocation.LEAST_SHARED.value, Allocation.THRESHOLD.value

# A set of processors is an array of uint64 words: processor p is bit p & 63 of word p >> 6, and the bits
# beyond the last processor are 0.
EMPTY, ONE = np.uint64(0), np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


# Each of these compiles to one instruction.


@compiled_as("ones")
def ones(word: Any) -> int:
    """Return the number of 1 bits of a word."""
    return int(word).bit_count()


@compiled_as("lowest")
def lowest(word: Any) -> int:
    """Return the position of the lowest 1 bit of a word that is not 0."""
    return (int(word) & -int(word)).bit_length() - 1


@compiled_as("leading")
def _leading(word: Any) -> int:
    """Return the number of 0 bits above the highest 1 bit of a word that is not 0."""
    return 64 - int(word).bit_length()


def assign(bits: np.ndarray, other: np.ndarray) -> None:
    """Copy a set into another one."""
    for word in range(bits.size):
        bits[word] = other[word]


def add(bits: np.ndarray, other: np.ndarray) -> None:
    """Add the processors of another set to a set."""
    for word in range(bits.size):
        bits[word] |= other[word]


def remove(bits: np.ndarray, other: np.ndarray) -> None:
    """Remove the processors of another set from a set."""
    for word in range(bits.size):
        bits[word] &= ~other[word]


def _part_of_run(word: int, first: int, last: int) -> Any:
    """Return a word of the set of the processors ``first`` to ``last``, both included."""
    bits = _ALL
    if word == first >> 6:
        bits &= _ALL << np.uint64(first & 63)
    if word == last >> 6:
        bits &= _ALL >> np.uint64(63 - (last & 63))
    return bits


def fill(bits: np.ndarray, first: int, last: int) -> None:
    """Add the processors ``first`` to ``last``, both included, to a set."""
    for word in range(first >> 6, (last >> 6) + 1):
        bits[word] |= _part_of_run(word, first, last)


def clear(bits: np.ndarray, first: int, last: int) -> None:
    """Remove the processors ``first`` to ``last``, both included, from a set."""
    for word in range(first >> 6, (last >> 6) + 1):
        bits[word] &= ~_part_of_run(word, first, last)


def is_within(bits: np.ndarray, other: np.ndarray) -> bool:
    """Return whether a set is a subset of another one."""
    for word in range(bits.size):  # noqa: SIM110
        if bits[word] & ~other[word] != EMPTY:
            return False
    return True


def size_of(bits: np.ndarray) -> int:
    """Return the number of processors of a set."""
    size = 0
    for word in range(bits.size):
        size += ones(bits[word])
    return size


def next_in(bits: np.ndarray, processor: int, machine: int) -> int:
    """Return the first processor from ``processor`` on that is in a set, ``machine`` if none is."""
    if processor >= machine:
        return machine
    index = processor >> 6
    word = bits[index] & (_ALL << np.uint64(processor & 63))
    while word == EMPTY:
        index += 1
        if index == bits.size:
            return machine
        word = bits[index]
    return (index << 6) + lowest(word)


def next_out(bits: np.ndarray, processor: int, machine: int) -> int:
    """Return the first processor from ``processor`` on that is not in a set, ``machine`` if all are."""
    if processor >= machine:
        return machine
    index = processor >> 6
    word = ~bits[index] & (_ALL << np.uint64(processor & 63))
    while word == EMPTY:
        index += 1
        if index == bits.size:
            return machine
        word = ~bits[index]
    return min((index << 6) + lowest(word), machine)


def last_out(bits: np.ndarray, processor: int) -> int:
    """Return the last processor before ``processor`` that is not in a set, -1 if all are."""
    if processor <= 0:
        return -1
    index = (processor - 1) >> 6
    word = ~bits[index] & (_ALL >> np.uint64(63 - ((processor - 1) & 63)))
    while word == EMPTY:
        index -= 1
        if index < 0:
            return -1
        word = ~bits[index]
    return (index << 6) + 63 - _leading(word)


def _take_first(bits: np.ndarray, count: int, chosen: np.ndarray) -> None:
    """Add the first ``count`` processors of a set, which has as many, to ``chosen``."""
    index = 0
    while count > 0:
        word = bits[index]
        size = ones(word)
        if size <= count:
            chosen[index] |= word
            count -= size
            index += 1
            continue
        while count > 0:
            chosen[index] |= ONE << np.uint64(lowest(word))
            word &= word - ONE
            count -= 1


def longest_run(bits: np.ndarray, machine: int, enough: int) -> int:
    """Return the length of the longest run of consecutive processors of a set, or of the first that is long enough."""
    longest = 0
    first = next_in(bits, 0, machine)
    while first < machine and longest < enough:
        after = next_out(bits, first, machine)
        longest = max(longest, after - first)
        first = next_in(bits, after, machine)
    return longest


def run_around(bits: np.ndarray, run: np.ndarray, machine: int) -> int:
    """Return the length of the run of consecutive processors of a set that includes another run."""
    first = next_in(run, 0, machine)
    return next_out(bits, first, machine) - last_out(bits, first) - 1


def choose(bits: np.ndarray, width: int, allocation: int, machine: int, chosen: np.ndarray) -> bool:
    """
    Choose processors by an allocation that depends on neither the past (longest-idle) nor the neighbors.

    Return whether there are enough processors, for first-contiguous in a row.
    """
    chosen[:] = EMPTY
    if size_of(bits) < width:
        return False
    if allocation == FIRST_FIT:
        _take_first(bits, width, chosen)
        return True
    first = next_in(bits, 0, machine)
    while first < machine:
        after = next_out(bits, first, machine)
        if after - first >= width:
            fill(chosen, first, first + width - 1)
            return True
        first = next_in(bits, after, machine)
    return False
