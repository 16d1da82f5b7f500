"""The standard error of a statistic over weeks that depend on each other (long-run variance)."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

#: The confidence of intervals.
CONFIDENCE = 0.95

_SHARE = 1 / 4  # the least bandwidth, as a share of the weeks; at least `_LEAST` weeks
_LEAST = 2.0

#: The degrees of freedom of many weeks with the least bandwidth.
MOST_FREEDOM = 7.0

_ANDREWS = 2.6614  # the constant of the optimal bandwidth of the Parzen kernel (Andrews, 1991, equation 6.2)
_CAUTION = 1.5  # the factor on that bandwidth
# The correlation r of n neighboring weeks is too low by (1 + 3 r) / n if the weeks are normal (Kendall, 1954). Weekly
# waits are not normal, therefore r is raised by `_RAISED` (1 + r) / n: with it, `benchmarks/intervals.py` finds at most
# 6.7 % of false verdicts, and with Kendall's correction up to 8.5 %.
_RAISED = 3.0
_HIGHEST = 0.97  # the highest correlation of neighboring weeks, which bounds the bandwidth (Andrews, 1991, uses it too)


class StandardError(NamedTuple):
    """
    A standard error, the degrees of freedom of its interval, and the bandwidth, in weeks.

    ``is_dependent`` is whether the best bandwidth is larger than the number of weeks.
    """

    error: float
    freedom: float
    bandwidth: float
    is_dependent: bool

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval."""
        return student(self.freedom) * self.error


def student(freedom: float) -> float:
    """
    Return the quantile of Student's distribution for a two-sided interval with these degrees of freedom.

    Examples
    --------
    >>> round(student(10), 3), round(student(52), 3)
    (2.228, 2.007)
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def long_run_error(influences: np.ndarray, weeks: np.ndarray) -> StandardError:
    """
    Return the standard error of a sum of weekly influences that may depend on each other.

    Parameters
    ----------
    influences : float64 array
        How far each week moves the statistic; the sum is 0.
    weeks : int64 array
        The number of each week, in increasing order. There are at least three.

    Returns
    -------
    StandardError
        Whichever has the wider interval: that of independent weeks, or that of the Parzen kernel. The kernel adds the
        products of two weeks with a weight that falls from 1 to 0 over the bandwidth.

    Notes
    -----
    The bandwidth is 1.5 times that of Andrews for an autoregressive process of first order, with the correlation of
    neighboring weeks raised by 3 (1 + r) / n, and at least 2 weeks and a quarter of the weeks. Since it is a share of
    the weeks, the error varies and the normal distribution does not apply (fixed-b asymptotics). The error is
    therefore scaled to be unbiased, and the degrees of freedom are those of Satterthwaite, both exact for independent
    normal weeks. Without a kernel, they are the number of weeks less one, as in Student's test.

    References
    ----------
    D. W. K. Andrews, "Heteroskedasticity and autocorrelation consistent covariance matrix estimation", Econometrica
    59(3), 1991. N. M. Kiefer, T. J. Vogelsang, "A new asymptotic theory for heteroskedasticity-autocorrelation robust
    tests", Econometric Theory 21(6), 2005. M. G. Kendall, "Note on bias in the estimation of autocorrelation",
    Biometrika 41, 1954.

    Examples
    --------
    >>> alternating = np.array([1.0, -1.0] * 20)
    >>> [round(float(value), 2) for value in long_run_error(alternating, np.arange(40))]
    [6.41, 39.0, 0.0, 0.0]
    >>> [round(float(value), 2) for value in long_run_error(np.repeat([1.0, -1.0, 1.0, -1.0], 10), np.arange(40))]
    [11.64, 1.84, 40.0, 1.0]
    """
    count = weeks.size
    centered = influences - influences.mean()
    best = _best_bandwidth(centered, weeks)
    is_dependent = best > count
    independent = math.sqrt(count / (count - 1) * float(centered @ centered))
    bandwidth = round(min(max(best, _SHARE * count, _LEAST), count), 1)
    kernel, scale, freedom = _kernel(weeks.tobytes(), bandwidth)
    error = math.sqrt(max(float(centered @ kernel @ centered), 0.0) / scale)
    return max(
        StandardError(independent, count - 1, 0.0, is_dependent),
        StandardError(error, freedom, bandwidth, is_dependent),
        key=lambda found: found.half,
    )


def _best_bandwidth(centered: np.ndarray, weeks: np.ndarray) -> float:
    """Return the bandwidth in weeks from the correlation of neighboring weeks."""
    count = weeks.size
    neighbors = np.flatnonzero(np.diff(weeks) == 1)
    first, second = centered[neighbors], centered[neighbors + 1]
    spread = float(first @ first + second @ second) / 2
    correlation = float(first @ second) / spread if spread > 0 else 0.0
    correlation = min(max(correlation + _RAISED * (1 + correlation) / count, 0.0), _HIGHEST)
    shape = 4 * correlation**2 / (1 - correlation) ** 4
    return float(_CAUTION * _ANDREWS * (shape * count) ** 0.2)


@lru_cache(maxsize=64)
def _kernel(weeks: bytes, bandwidth: float) -> tuple[np.ndarray, float, float]:
    """Return the weights of pairs of weeks, the factor that makes them unbiased, and the degrees of freedom."""
    numbers = np.frombuffer(weeks, np.int64)
    apart = np.abs(numbers[:, None] - numbers[None, :]) / bandwidth
    kernel = np.where(apart <= 0.5, 1 - 6 * apart**2 * (1 - apart), 2 * np.clip(1 - apart, 0, None) ** 3)
    inner = kernel - kernel.mean(axis=0)  # the kernel between deviations from the mean
    inner -= inner.mean(axis=1)[:, None]
    trace = float(np.trace(inner))
    return kernel, trace / numbers.size, trace**2 / float((inner * inner).sum())
