"""Resampling: the statistics of a run without each of its weeks in turn (jackknife)."""

import math
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from swflow.values import WEEK

_TENTHS, _BINS_PER_DECADE = 10, 6
_TENTH_EDGES = np.arange(1, _TENTHS) / _TENTHS


class Weeks(NamedTuple):
    """A run with the week of each job."""

    weeks: np.ndarray  # int64 (weeks,): the numbers of the weeks in which jobs were submitted, in increasing order
    week: np.ndarray  # int64 (jobs,): the index of each job's week in ``weeks``
    outcomes: pl.DataFrame


class Resampled(NamedTuple):
    """A statistic of a run, and its values without each week."""

    value: float  # the statistic of the run; NaN without jobs
    weeks: np.ndarray  # int64 (weeks,): the weeks in which the jobs of the statistic were submitted
    without: np.ndarray  # float64 (weeks,): the statistic without the jobs of each week
    # The statistic of all jobs by the definition of ``without``; quantiles are not interpolated there.
    whole: float


class Distribution(NamedTuple):
    """The distribution of a measure by tenths of the load, of all jobs and by weeks."""

    weeks: np.ndarray  # int64 (weeks,): the weeks in which the jobs were submitted
    # By tenth of the load: the distinct values (float64), in increasing order.
    values: tuple[np.ndarray, ...]
    # By tenth of the load: 0, and the numbers (int64) of jobs with at most each value.
    up_to: tuple[np.ndarray, ...]
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
    Return a statistic of table ``metrics``, and its values without each week.

    The statistic is ``awrt``, ``awwt``, or a measure after mean_, median_ or p95_.

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
    Return the mean of a measure, and its values without each week.

    The units are whole weeks, with all the jobs submitted in them, because jobs that queue together wait together. The
    weeks are numbered from the start of the log. Two runs of a log therefore leave out the same weeks (paired),
    regardless of which other runs are compared.

    The run has ``submit_time`` (s) and the measure; jobs whose value is unknown are left out. With ``by_area``, each
    job is weighted by its processors times its run time in this run, as AWRT and AWWT are.

    References
    ----------
    H. R. Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17(3),
    1989.
    """
    weeks, week, values, known = _known(outcomes, measure)
    area = None
    if by_area:
        table = by_weeks(outcomes).outcomes
        area = (table["processors"] * table["run_time"]).cast(pl.Float64).to_numpy()[known]
        values = values * area
    present = _present(weeks, week)
    place = np.searchsorted(present, weeks)[week]
    jobs = np.bincount(place, area, minlength=present.size).astype(float)
    sums = np.bincount(place, values, minlength=present.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(np.float64(sums.sum()) / jobs.sum())
        return Resampled(value, present, _rest(sums) / _rest(jobs), value)


def _rest(weekly: np.ndarray) -> np.ndarray:
    """Return the sum over all other weeks, for each week; there is no cancellation, as in a difference of sums."""
    before = np.concatenate(([0.0], np.cumsum(weekly)[:-1]))
    after = np.concatenate((np.cumsum(weekly[::-1])[::-1][1:], [0.0]))[: weekly.size]
    return np.asarray(before[: weekly.size] + after)


def quantile_of(outcomes: pl.DataFrame | Weeks, measure: str, quantile: float) -> Resampled:
    """
    Return a quantile (0 to 1) of a measure, and its values without each week; unknown values are left out.

    The value is interpolated linearly, as in table ``metrics``. Without a week, it is the smallest value at which the
    share of the jobs up to it reaches the quantile.
    """
    weeks, week, values, _ = _known(outcomes, measure)
    present = _present(weeks, week)
    if present.size < 2:
        value = float(np.quantile(values, quantile)) if values.size else math.nan
        return Resampled(value, present, np.full(present.size, math.nan), value)
    order = np.argsort(values)
    values, week = values[order], np.searchsorted(present, weeks)[week[order]]
    weights = np.vstack([np.ones(present.size), 1 - np.eye(present.size)])
    whole, *without = values[_places_of_quantile(weights, week, quantile)].tolist()
    return Resampled(float(np.quantile(values, quantile)), present, np.array(without), whole)


def _places_of_quantile(sampled: np.ndarray, week: np.ndarray, quantile: float) -> np.ndarray:
    """
    Return for each sample the first of sorted jobs at which the weights of the jobs up to it reach a quantile.

    A sample is a row of weights of the weeks. The weights of all jobs in all samples do not fit into memory. Therefore
    blocks of jobs are summed by their weeks to find the block with the quantile, and then only the jobs of this block.
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
    Return the distribution of a measure by tenths of the load, of all jobs and by weeks.

    Jobs whose value or load is unknown are left out. The values are exact; the distributions of weeks have bins of the
    value, six to a decade, and one for jobs that do not wait.
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
    present = _present(weeks, week)
    place = (np.searchsorted(present, weeks)[week] * _TENTHS + tenth) * width + bins
    found = np.bincount(place, minlength=present.size * size).astype(np.int32).reshape(present.size, _TENTHS, width)
    exact = [np.unique(values[tenth == number], return_counts=True) for number in range(_TENTHS)]
    return Distribution(
        present, tuple(part for part, _ in exact), tuple(np.concatenate(([0], np.cumsum(part))) for _, part in exact),
        found,
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
