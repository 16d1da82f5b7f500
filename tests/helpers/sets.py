"""Sets of numbered processors, as bits and as sets of Python."""

import numpy as np


def as_bits(processors: set[int], machine: int) -> np.ndarray:
    bits = np.zeros((machine + 63) // 64, np.uint64)
    for processor in processors:
        bits[processor // 64] |= np.uint64(1 << processor % 64)
    return bits


def as_set(bits: np.ndarray) -> set[int]:
    return {64 * word + bit for word in range(bits.size) for bit in range(64) if int(bits[word]) >> bit & 1}


def runs_of(processors: set[int], machine: int) -> list[tuple[int, int]]:
    """Return the first and the last processor of each run."""
    firsts = [one for one in range(machine) if one in processors and one - 1 not in processors]
    lasts = [one for one in range(machine) if one in processors and one + 1 not in processors]
    return list(zip(firsts, lasts, strict=True))
