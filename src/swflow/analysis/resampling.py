"""Resampling: the statistics of a run under random weights of the log's weeks."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

#: The length of a week in seconds. Week 0 begins at submit time 0, which is the start of the log.
WEEK = 604800.0

#: The number of samples. Each assigns other weights to the weeks.
SAMPLES = 1000

_SEED = 20120525  # for the weights of weeks; the same in all comparisons, so that two runs always get the same weights
_AT_ONCE = 256  # weeks that are summed at a time
_REMEMBERED = 4096  # weeks whose weights are cached, 8 kB each
_TENTHS, _BINS_PER_DECADE = 10, 6
_TENTH_EDGES = np.arange(1, _TENTHS) / _TENTHS


class Weeks(NamedTuple):
    """A run with the week of each job."""

    weeks: np.ndarray  # int64 (weeks,): the numbers of the weeks in which jobs were submitted, in increasing order
    week: np.ndarray  # int64 (jobs,): the index of each job's week in ``weeks``
    outcomes: pl.DataFrame


class Resampled(NamedTuple):
    """A statistic of a run, and its values under resampled weights of the weeks."""

    value: float  # the statistic of the unweighted run; NaN without jobs
    sampled: np.ndarray  # float64 (samples,): the statistic under the weights of each sample
    weeks: np.ndarray  # int64 (weeks,): the weeks in which the jobs of the statistic were submitted


class Distribution(NamedTuple):
    """The distribution of a measure by tenths of the load, and its values under resampled weights of the weeks."""

    weeks: np.ndarray  # int64 (weeks,): the weeks in which the jobs were submitted
    # By tenth of the load: the distinct values (float64), in increasing order.
    values: tuple[np.ndarray, ...]
    # By tenth of the load: 0, and the numbers (int64) of jobs with at most each value.
    up_to: tuple[np.ndarray, ...]
    weights: np.ndarray  # float32 (samples, 10): the share of the jobs in each tenth of the load
    # float32 (samples, 10, bins): the distribution of the jobs in a tenth over bins of the value, and twice its
    # mid-distribution function
    shares: np.ndarray
    ranks: np.ndarray
    by_week: np.ndarray  # int32 (weeks, 10, bins): the number of jobs by week, tenth of the load and bin of the value


def by_weeks(outcomes: pl.DataFrame | Weeks) -> Weeks:
    """
    Return the week of each job of a run by ``submit_time`` (s); every statistic of the run uses it.

    Weeks are counted from submit time 0. Runs of one log whose first jobs differ (after a selection, for example)
    therefore share their weeks.
    """
    if isinstance(outcomes, Weeks):
        return outcomes
    number = np.floor(outcomes["submit_time"].cast(pl.Float64).to_numpy() / WEEK).astype(np.int64)
    weeks = np.unique(number[np.diff(number, prepend=number[:1] - 1) != 0])  # nearly sorted, so few remain
    return Weeks(weeks, np.searchsorted(weeks, number), outcomes)


def statistic(outcomes: pl.DataFrame | Weeks, name: str) -> Resampled:
    """
    Resample a statistic of table ``metrics``: ``awrt``, ``awwt``, or a measure after mean_, median_ or p95_.

    Examples
    --------
    >>> run = pl.DataFrame({"submit_time": [0.0, WEEK], "wait_time": [30.0, 60.0]})
    >>> statistic(run, "mean_wait_time").value, statistic(run, "p95_wait_time").value
    (45.0, 58.5)
    """
    if name in ("awrt", "awwt"):
        return mean_of(outcomes, "response_time" if name == "awrt" else "wait_time", by_area=True)
    kind, _, column = name.partition("_")
    if kind == "mean":
        return mean_of(outcomes, column)
    return quantile_of(outcomes, column, {"median": 0.5, "p95": 0.95}[kind])


def mean_of(outcomes: pl.DataFrame | Weeks, measure: str, by_area: bool = False) -> Resampled:
    """
    Resample the mean of a measure.

    A sample gives each week, with all the jobs submitted in it, a weight: half the sum of two exponential variables. A
    week shares one variable with the week before and one with the week after, so the blocks are overlapping pairs of
    weeks: the queue at the end of a week affects the next week. The weights are those of the Bayesian bootstrap. All
    are positive, so every sample has a value. A weight depends only on the number of the week. Two runs of a log are
    therefore resampled with equal weights (paired), regardless of which other runs are compared.

    The run has ``submit_time`` (s) and the measure; jobs whose value is unknown are left out. With ``by_area``, each
    job is weighted by its processors times its run time in this run, as AWRT and AWWT are.

    References
    ----------
    D. B. Rubin, "The Bayesian bootstrap", Annals of Statistics 9(1), 1981. H. R. Künsch, "The jackknife and the
    bootstrap for general stationary observations", Annals of Statistics 17(3), 1989: blocks instead of single jobs.
    """
    weeks, week, values, known = _known(outcomes, measure)
    area = None
    if by_area:
        table = by_weeks(outcomes).outcomes
        area = (table["processors"] * table["run_time"]).cast(pl.Float64).to_numpy()[known]
        values = values * area
    jobs = np.bincount(week, area, minlength=weeks.size).astype(float)
    sums = np.bincount(week, values, minlength=weeks.size)
    total, summed = np.zeros(SAMPLES), np.zeros(SAMPLES)
    for some in _parts(weeks.size):
        sampled, _ = _weights_of(tuple(weeks[some].tolist()))
        total += sampled @ jobs[some]
        summed += sampled @ sums[some]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Resampled(float(np.float64(sums.sum()) / jobs.sum()), summed / total, _present(weeks, week))


def quantile_of(outcomes: pl.DataFrame | Weeks, measure: str, quantile: float) -> Resampled:
    """
    Resample a quantile (0 to 1) of a measure, with the weights of `mean_of`; jobs whose value is unknown are left out.

    The value is interpolated linearly, as in table ``metrics``. In the samples it is the smallest value at which the
    weights of the jobs up to it reach the quantile.
    """
    weeks, week, values, _ = _known(outcomes, measure)
    present = _present(weeks, week)
    if not values.size:
        return Resampled(math.nan, np.full(SAMPLES, math.nan), present)
    order = np.argsort(values)
    values, week = values[order], week[order]
    sampled, _ = _weights_of(tuple(weeks.tolist()))
    found = values[_places_of_quantile(sampled, week, quantile)]
    return Resampled(float(np.quantile(values, quantile)), found, present)


def _places_of_quantile(sampled: np.ndarray, week: np.ndarray, quantile: float) -> np.ndarray:
    """
    Return for each sample the first of sorted jobs at which the weights of the jobs up to it reach a quantile.

    The weights of all jobs in all samples do not fit into memory. Therefore blocks of jobs are summed by their weeks to
    find the block with the quantile, and then only the jobs of this block.
    """
    weeks = sampled.shape[1]
    size = math.isqrt(week.size)
    blocks = -(-week.size // size)
    inside = np.bincount(np.arange(week.size) // size * weeks + week, minlength=blocks * weeks)
    reached = np.cumsum(sampled @ inside.reshape(blocks, weeks).T.astype(float), axis=1)
    target = quantile * reached[:, -1]
    block = np.minimum((reached < target[:, None]).sum(axis=1), blocks - 1)
    before = np.where(block > 0, reached[np.arange(block.size), block - 1], 0.0)
    places = np.empty(block.size, np.int64)
    for one in np.unique(block):
        samples, of_block = block == one, week[one * size : (one + 1) * size]
        up_to = before[samples, None] + np.cumsum(sampled[samples][:, of_block], axis=1)
        short = (up_to < target[samples, None]).sum(axis=1)
        places[samples] = one * size + np.minimum(short, of_block.size - 1)  # sums may round up
    return places


def distribution_of(outcomes: pl.DataFrame | Weeks, measure: str) -> Distribution:
    """
    Resample the distribution of a measure by tenths of the load, with the weights of `mean_of`.

    Jobs whose value or load is unknown are left out. The values are exact; the samples put them into bins, six to a
    decade, and one for jobs that do not wait.
    """
    weeks, week, values, known = _known(outcomes, measure)
    load = by_weeks(outcomes).outcomes["load"].cast(pl.Float64).to_numpy()[known]
    known = ~np.isnan(load)
    if not known.all():
        week, values, load = week[known], values[known], load[known]
    tenth = np.searchsorted(_TENTH_EDGES, load, side="right")
    lowest, smallest = (1.0, 1e-3) if "slowdown" in measure else (0.0, 1.0)
    bins = np.floor(np.log10(np.maximum((values - lowest) / smallest, 0.1)) * _BINS_PER_DECADE)
    bins = np.maximum(bins, -1).astype(np.int64) + 1  # bin 0 is the lowest possible value
    width = int(bins.max(initial=0)) + 1
    size = _TENTHS * width
    place = (week * _TENTHS + tenth) * width + bins
    found = np.bincount(place, minlength=weeks.size * size).astype(np.int32).reshape(weeks.size, _TENTHS, width)
    by_value = found.astype(np.float32)
    up_to = np.cumsum(by_value, axis=2)
    shares, ranks = (_weighted_sums(weeks, counted) for counted in (by_value, up_to))
    weights = shares.sum(axis=2)
    ranks *= 2
    ranks -= shares
    for counted in (shares, ranks):
        counted /= np.where(weights > 0, weights, 1)[:, :, None]
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    exact = [np.unique(values[tenth == number], return_counts=True) for number in range(_TENTHS)]
    return Distribution(
        _present(weeks, week), tuple(part for part, _ in exact),
        tuple(np.concatenate(([0], np.cumsum(part))) for _, part in exact), weights, shares, ranks,
        found[np.bincount(week, minlength=weeks.size) > 0],
    )  # fmt: skip


def _known(outcomes: pl.DataFrame | Weeks, measure: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Return the weeks of a run, and the week and value of each job with a known measure, and which jobs these are."""
    weeks, week, table = by_weeks(outcomes)
    values = table[measure].cast(pl.Float64).to_numpy()  # unknown values are NaN
    known = ~np.isnan(values)
    if known.all():
        return weeks, week, values, slice(None)
    return weeks, week[known], values[known], known


def _present(weeks: np.ndarray, week: np.ndarray) -> np.ndarray:
    return np.asarray(weeks[np.bincount(week, minlength=weeks.size) > 0])


def _weighted_sums(weeks: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return the sum of the weeks' counts under the weights of each sample."""
    by_week = counted.reshape(weeks.size, math.prod(counted.shape[1:]))
    parts = [_weights_of(tuple(weeks[some].tolist()))[1] @ by_week[some] for some in _parts(weeks.size) or [slice(0)]]
    return np.asarray(sum(parts[1:], start=parts[0])).reshape(SAMPLES, *counted.shape[1:])


def _parts(weeks: int) -> list[slice]:
    return [slice(begin, min(begin + _AT_ONCE, weeks)) for begin in range(0, weeks, _AT_ONCE)]


@lru_cache(maxsize=16)
def _weights_of(weeks: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of weeks in all samples, in double and in single precision, shape (samples, weeks)."""
    sampled = np.column_stack([_weights(week) for week in weeks]) if weeks else np.zeros((SAMPLES, 0))
    return sampled, sampled.astype(np.float32)


@lru_cache(maxsize=_REMEMBERED)
def _weights(week: int) -> np.ndarray:
    return np.asarray((_exponential(week) + _exponential(week + 1)) / 2)


@lru_cache(maxsize=_REMEMBERED)
def _exponential(week: int) -> np.ndarray:
    words = [_SEED, 0 if week >= 0 else 1, abs(week)]
    return np.random.default_rng(np.random.SeedSequence(words)).standard_exponential(SAMPLES)
