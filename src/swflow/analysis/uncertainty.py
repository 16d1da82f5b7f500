"""Uncertainty: confidence intervals of differences between two runs of the same jobs, by resampling whole weeks."""

import math
import warnings
from dataclasses import dataclass

import numpy as np

#: Weeks are resampled whole: waits of jobs that queue together are not independent of each other.
WEEK = 604800.0

#: With fewer weeks than this there is no interval.
FEWEST_WEEKS = 4

RESAMPLES = 1000


@dataclass(frozen=True)
class Difference:
    """
    How a measure differs between two runs of the same jobs.

    Parameters
    ----------
    base, value : float
        The measure of the base, and of the other run.
    difference : float
        Value minus base.
    low, high : float or None
        The confidence interval of the difference; None if there are too few weeks.
    weeks : int
        How many weeks were resampled.
    """

    base: float
    value: float
    difference: float
    low: float | None
    high: float | None
    weeks: int

    @property
    def is_noise(self) -> bool | None:
        """Whether the interval holds 0, so that the difference may be chance; None if there is no interval."""
        return None if self.low is None or self.high is None else self.low <= 0 <= self.high


def difference_of_means(
    base: np.ndarray,
    other: np.ndarray,
    submit: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 1,
) -> Difference:
    """
    Compare the means of a measure over the same jobs, with an interval by the paired block bootstrap.

    The log's weeks are drawn with replacement, each with all jobs submitted in it and both their values; the interval
    is bias-corrected and accelerated (`scipy.stats.bootstrap`).

    Parameters
    ----------
    base, other : float64 arrays of shape (jobs,)
        The measure of each job in the two runs.
    submit : float64 array of shape (jobs,)
        When the jobs were submitted, seconds; they decide the weeks.
    weights : float64 array of shape (jobs,), optional
        What each job counts; by default alike.
    confidence : float
        Of the interval.
    resamples : int
        How many draws.
    seed : int
        Of the draws.

    Returns
    -------
    Difference

    References
    ----------
    H. R. Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17(3),
    1989: blocks instead of single observations. B. Efron, "Better bootstrap confidence intervals", Journal of the
    American Statistical Association 82(397), 1987.

    Examples
    --------
    >>> submit = np.arange(200) * WEEK / 10
    >>> waits = np.arange(200) % 10 * 60.0
    >>> found = difference_of_means(waits, waits + 30, submit)
    >>> found.difference, found.low, found.high, found.is_noise
    (30.0, 30.0, 30.0, False)
    """
    weights = np.ones(base.size) if weights is None else weights
    week = _weeks(submit)
    counts = np.bincount(week, weights)
    sums = np.bincount(week, weights * (other - base))
    used = counts > 0
    counts, sums = counts[used], sums[used]
    total = weights.sum()
    before, after = float(base @ weights / total), float(other @ weights / total)
    low, high = _interval(sums, counts, confidence, resamples, seed)
    return Difference(before, after, float(sums.sum() / counts.sum()), low, high, int(used.sum()))


def difference_of_quantiles(
    base: np.ndarray,
    other: np.ndarray,
    submit: np.ndarray,
    quantile: float,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 1,
) -> Difference:
    """
    Compare a quantile of a measure over the same jobs; as `difference_of_means`, with the percentile interval.

    Parameters
    ----------
    quantile : float
        Between 0 and 1.

    Notes
    -----
    The other parameters are those of `difference_of_means`. In the draws a quantile is the smallest value that at
    least this share of the jobs do not pass.
    """
    week = _weeks(submit)
    weeks = int(week.max()) + 1
    before, after = (float(np.quantile(values, quantile)) for values in (base, other))
    present = np.unique(week)
    if present.size < FEWEST_WEEKS:
        return Difference(before, after, after - before, None, None, int(present.size))
    generator = np.random.default_rng(seed)
    times = np.array([
        np.bincount(generator.choice(present, present.size), minlength=weeks) for _ in range(resamples)
    ])  # fmt: skip
    found = [_quantiles(values, week, times, quantile) for values in (base, other)]
    drawn = found[1] - found[0]
    tail = (1 - confidence) / 2
    low, high = (float(bound) for bound in np.quantile(drawn, [tail, 1 - tail]))
    return Difference(before, after, after - before, low, high, int(present.size))


def _quantiles(values: np.ndarray, week: np.ndarray, times: np.ndarray, quantile: float) -> np.ndarray:
    """Return a quantile of values whose weeks count so many times, one a row of ``times``, of shape (draws, weeks)."""
    order = np.argsort(values, kind="stable")
    values, week = values[order], week[order]
    block = max(math.isqrt(values.size), 1)  # in which block the quantile is, then where in the block
    blocks = -(-values.size // block)
    inside = np.bincount(np.arange(values.size) // block * times.shape[1] + week, minlength=blocks * times.shape[1])
    reached = np.cumsum(times @ inside.reshape(blocks, -1).T.astype(float), axis=1)
    target = quantile * reached[:, -1]
    which = np.minimum((reached < target[:, None]).sum(axis=1), blocks - 1)
    before = np.where(which > 0, reached[np.arange(which.size), which - 1], 0.0)
    found = np.empty(which.size)
    for one in np.unique(which):
        part, draws = slice(one * block, (one + 1) * block), which == one
        up_to = before[draws, None] + np.cumsum(times[draws][:, week[part]], axis=1)
        found[draws] = values[part][(up_to < target[draws, None]).sum(axis=1)]
    return found


def _weeks(submit: np.ndarray) -> np.ndarray:
    return ((submit - submit.min()) // WEEK).astype(np.int64)


def _interval(
    sums: np.ndarray, counts: np.ndarray, confidence: float, resamples: int, seed: int
) -> tuple[float | None, float | None]:
    """Return the interval of the ratio of two sums over blocks."""
    if sums.size < FEWEST_WEEKS:
        return None, None
    each = sums / counts
    if np.allclose(each, each[0], rtol=1e-12, atol=0):
        return float(each[0]), float(each[0])  # all weeks agree: nothing to resample
    from scipy.stats import bootstrap  # more than a second to import

    def ratio(sums: np.ndarray, counts: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(sums.sum(axis=axis) / counts.sum(axis=axis))

    generator = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bootstrap(
            (sums, counts), ratio, paired=True, vectorized=True, n_resamples=resamples, confidence_level=confidence,
            method="BCa", rng=generator,
        ).confidence_interval  # fmt: skip
        if not np.isfinite([found.low, found.high]).all():
            generator = np.random.default_rng(seed)
            found = bootstrap(
                (sums, counts), ratio, paired=True, vectorized=True, n_resamples=resamples,
                confidence_level=confidence, method="percentile", rng=generator,
            ).confidence_interval  # fmt: skip
    return float(found.low), float(found.high)
