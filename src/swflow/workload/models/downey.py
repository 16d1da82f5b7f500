"""Downey's speedup model: the speedup of a parallel program from two parameters."""

from typing import Any

import numpy as np


def speedup(processors: Any, average_parallelism: Any, variance: Any) -> np.ndarray:
    """
    Return the speedup of a program, ``S(n) = run time on 1 processor / run time on n``.

    ``processors`` is n, at least 1; ``average_parallelism`` is A, at least 1: the speedup on arbitrarily many
    processors. ``variance`` is sigma, at least 0: approximately the coefficient of variation of the parallelism. With
    0, the speedup is n up to A. The larger sigma is, the more processors are needed to approach A, the speedup from
    `largest_useful` processors on. The arguments are broadcast.

    References
    ----------
    A. B. Downey, "A model for speedup of parallel programs", U.C. Berkeley Technical Report CSD-97-933, 1997.
    W. Cirne, F. Berman, "A model for moldable supercomputer jobs", IPDPS 2001, section 4, prints three of the five
    cases with misprints. This function uses Downey's formulas.

    Examples
    --------
    >>> speedup([1, 4, 8, 15, 64], average_parallelism=8, variance=0.5).round(2).tolist()
    [1.0, 3.66, 6.56, 8.0, 8.0]
    >>> speedup([1, 4, 8, 22, 64], average_parallelism=8, variance=2).round(2).tolist()
    [1.0, 3.2, 5.05, 8.0, 8.0]
    """
    n, a, sigma = (np.asarray(values, np.float64) for values in (processors, average_parallelism, variance))
    low = np.where(n <= a, a + sigma * (n - 1) / 2, sigma * (a - 0.5) + n * (1 - sigma / 2))
    high = (sigma * (n + a - 1) + a) / (sigma + 1)
    rising = a * n / np.where(sigma <= 1, low, high)
    return np.where(n < largest_useful(a, sigma), rising, a)


def largest_useful(average_parallelism: Any, variance: Any) -> np.ndarray:
    """
    Return the number of processors beyond which the speedup no longer grows: c_max in Cirne and Berman 2001.

    With A and sigma as in `speedup`, it is 2 A - 1 if sigma is at most 1, else A + A sigma - sigma; not rounded.

    Examples
    --------
    >>> largest_useful([8, 8], [0.5, 2]).tolist()
    [15.0, 22.0]
    """
    a, sigma = np.asarray(average_parallelism, np.float64), np.asarray(variance, np.float64)
    return np.where(sigma <= 1, 2 * a - 1, a + a * sigma - sigma)
