"""Statistics: the interval and the verdict of every comparison of two runs, over a log's weeks or over replicates."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

#: The length of a week in seconds. Week 0 begins at submit time 0, which is the start of the log.
WEEK = 604800.0

#: A comparison of runs that last fewer weeks than this has no interval.
FEWEST_WEEKS = 4

CONFIDENCE = 0.95

#: The number of draws. Each draw assigns other weights to the weeks.
DRAWS = 1000

#: The values of a verdict.
FIRST, SECOND, NEITHER = "first is better", "second is better", "not distinguishable"
EQUAL, UNKNOWN = "equal", "too few weeks"

_SEED = 20120525  # for the weights of weeks; the same in all comparisons, so that two runs always get the same weights
_AT_ONCE = 256  # weeks that are summed at a time
_REMEMBERED = 4096  # weeks whose weights are cached, 8 kB each
_TENTHS, _BINS_PER_DECADE = 10, 6
_TENTH_EDGES = np.arange(1, _TENTHS) / _TENTHS
_OVERLAP = 1.5  # a variance from overlapping blocks of two weeks varies more than one from single weeks by this factor
_UNEVEN = 0.35, 1.5  # of the skewness of the draws: at least the first, and the second over the root of the weeks
_ROUNDING = 1e-12  # differences below this share of the values are rounding errors
_MOST_BLOCKS = 10**7  # the largest number of weeks or replicates that `blocks_needed` returns


class Weeks(NamedTuple):
    """
    A run with the week of each job.

    Parameters
    ----------
    weeks : int64 array of shape (weeks,)
        The numbers of the weeks in which jobs were submitted, in increasing order.
    week : int64 array of shape (jobs,)
        The index of each job's week in ``weeks``.
    outcomes : polars.DataFrame
        The run.
    """

    weeks: np.ndarray
    week: np.ndarray
    outcomes: pl.DataFrame


class Resampled(NamedTuple):
    """
    A statistic of a run, and its values under resampled weights of the weeks.

    Parameters
    ----------
    value : float
        The statistic of the unweighted run; NaN without jobs.
    drawn : float64 array of shape (draws,)
        The statistic under the weights of each draw.
    weeks : int64 array of shape (weeks,)
        The weeks in which the jobs of the statistic were submitted.
    """

    value: float
    drawn: np.ndarray
    weeks: np.ndarray


class Distribution(NamedTuple):
    """
    The distribution of a measure by tenths of the load, and its values under resampled weights of the weeks.

    Parameters
    ----------
    weeks : int64 array of shape (weeks,)
        The weeks in which the jobs were submitted.
    values : tuple of 10 float64 arrays
        By tenth of the load: the distinct values, in increasing order.
    up_to : tuple of 10 int64 arrays
        By tenth of the load: 0, and the number of jobs with at most each value.
    weights : float32 array of shape (draws, 10)
        By draw: the share of the jobs in each tenth of the load.
    shares, ranks : float32 arrays of shape (draws, 10, bins)
        For the jobs in a tenth: the distribution over bins of the value, and twice its mid-distribution function.
    by_week : int32 array of shape (weeks, 10, bins)
        The number of jobs by week, tenth of the load and bin of the value.
    """

    weeks: np.ndarray
    values: tuple[np.ndarray, ...]
    up_to: tuple[np.ndarray, ...]
    weights: np.ndarray
    shares: np.ndarray
    ranks: np.ndarray
    by_week: np.ndarray


def by_weeks(outcomes: pl.DataFrame | Weeks) -> Weeks:
    """
    Return the week of each job of a run; every statistic of the run uses it.

    Weeks are counted from submit time 0. Runs of one log whose first jobs differ (after a selection, for example)
    therefore share their weeks.

    Parameters
    ----------
    outcomes : polars.DataFrame
        One row per job, with ``submit_time`` in seconds. A `Weeks` is returned unchanged.

    Returns
    -------
    Weeks
    """
    if isinstance(outcomes, Weeks):
        return outcomes
    number = np.floor(outcomes["submit_time"].cast(pl.Float64).to_numpy() / WEEK).astype(np.int64)
    weeks = np.unique(number[np.diff(number, prepend=number[:1] - 1) != 0])  # nearly sorted, so few remain
    return Weeks(weeks, np.searchsorted(weeks, number), outcomes)


def statistic(outcomes: pl.DataFrame | Weeks, name: str) -> Resampled:
    """
    Resample a statistic of table ``metrics``, given by its name there.

    Parameters
    ----------
    outcomes : polars.DataFrame or Weeks
        The run.
    name : str
        ``mean_``, ``median_`` or ``p95_`` with a column of the run; ``awrt`` or ``awwt``.

    Returns
    -------
    Resampled

    Raises
    ------
    ValueError
        If the name is not one of these.

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
    if kind not in ("median", "p95"):
        raise ValueError(
            f"statistic: unknown name {name!r}; expected mean_, median_ or p95_ and a column, awrt or awwt"
        )
    return quantile_of(outcomes, column, 0.5 if kind == "median" else 0.95)


def mean_of(outcomes: pl.DataFrame | Weeks, measure: str, by_area: bool = False) -> Resampled:
    """
    Resample the mean of a measure.

    A draw gives each week, with all the jobs submitted in it, a weight: half the sum of two exponential variables. A
    week shares one variable with the week before and one with the week after, so the blocks are overlapping pairs of
    weeks: the queue at the end of a week affects the next week. The weights are those of the Bayesian bootstrap. All
    are positive, so every draw has a value. A weight depends only on the number of the week. Two runs of a log are
    therefore resampled with equal weights (paired), regardless of which other runs are compared.

    Parameters
    ----------
    outcomes : polars.DataFrame or Weeks
        One row per job: ``submit_time`` (seconds) and the measure; with ``by_area`` also ``processors`` and
        ``run_time`` (seconds).
    measure : str
        A column; jobs whose value is unknown are left out.
    by_area : bool
        Weight each job by its processors times its run time in this run, as AWRT and AWWT do.

    Returns
    -------
    Resampled

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
    total, summed = np.zeros(DRAWS), np.zeros(DRAWS)
    for some in _parts(weeks.size):
        drawn, _ = _drawn(tuple(weeks[some].tolist()))
        total += drawn @ jobs[some]
        summed += drawn @ sums[some]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Resampled(float(np.float64(sums.sum()) / jobs.sum()), summed / total, _present(weeks, week))


def quantile_of(outcomes: pl.DataFrame | Weeks, measure: str, quantile: float) -> Resampled:
    """
    Resample a quantile of a measure, with the weights of `mean_of`.

    Parameters
    ----------
    outcomes : polars.DataFrame or Weeks
        One row per job: ``submit_time`` (seconds) and the measure.
    measure : str
        A column; jobs whose value is unknown are left out.
    quantile : float
        Between 0 and 1.

    Returns
    -------
    Resampled
        The value is interpolated linearly, as in table ``metrics``. In the draws it is the smallest value at which the
        weights of the jobs up to it reach the quantile.
    """
    weeks, week, values, _ = _known(outcomes, measure)
    present = _present(weeks, week)
    if not values.size:
        return Resampled(math.nan, np.full(DRAWS, math.nan), present)
    order = np.argsort(values)
    values, week = values[order], week[order]
    times, _ = _drawn(tuple(weeks.tolist()))
    size = max(math.isqrt(values.size), 1)  # find the block of jobs with the quantile, then the job in the block
    blocks = -(-values.size // size)
    inside = np.bincount(np.arange(values.size) // size * weeks.size + week, minlength=blocks * weeks.size)
    reached = np.cumsum(times @ inside.reshape(blocks, -1).T.astype(float), axis=1)
    target = quantile * reached[:, -1]
    which = np.minimum((reached < target[:, None]).sum(axis=1), blocks - 1)
    before = np.where(which > 0, reached[np.arange(which.size), which - 1], 0.0)
    found = np.empty(which.size)
    for one in np.unique(which):
        part, draws = slice(one * size, (one + 1) * size), which == one
        up_to = before[draws, None] + np.cumsum(times[draws][:, week[part]], axis=1)
        place = np.minimum((up_to < target[draws, None]).sum(axis=1), values[part].size - 1)  # sums may round up
        found[draws] = values[part][place]
    return Resampled(float(np.quantile(values, quantile)), found, present)


def distribution_of(outcomes: pl.DataFrame | Weeks, measure: str) -> Distribution:
    """
    Resample the distribution of a measure by tenths of the load, with the weights of `mean_of`.

    Parameters
    ----------
    outcomes : polars.DataFrame or Weeks
        One row per job: ``submit_time`` (seconds), ``load`` and the measure.
    measure : str
        A column; jobs whose value or load is unknown are left out.

    Returns
    -------
    Distribution
        The values are exact; the draws put them into bins, six to a decade, and one for jobs that do not wait.
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
    shares, ranks = (_drawn_sums(weeks, counted) for counted in (by_value, up_to))
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


def _drawn_sums(weeks: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Return the sum of the weeks' counts under the weights of each draw."""
    by_week = counted.reshape(weeks.size, math.prod(counted.shape[1:]))
    parts = [_drawn(tuple(weeks[some].tolist()))[1] @ by_week[some] for some in _parts(weeks.size) or [slice(0)]]
    return np.asarray(sum(parts[1:], start=parts[0])).reshape(DRAWS, *counted.shape[1:])


def _parts(weeks: int) -> list[slice]:
    return [slice(begin, min(begin + _AT_ONCE, weeks)) for begin in range(0, weeks, _AT_ONCE)]


@lru_cache(maxsize=16)
def _drawn(weeks: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of weeks in all draws, in double and in single precision, shape (draws, weeks)."""
    drawn = np.column_stack([_weights(week) for week in weeks]) if weeks else np.zeros((DRAWS, 0))
    return drawn, drawn.astype(np.float32)


@lru_cache(maxsize=_REMEMBERED)
def _weights(week: int) -> np.ndarray:
    """Return the weights of a week in all draws."""
    return np.asarray((_exponential(week) + _exponential(week + 1)) / 2)


@lru_cache(maxsize=_REMEMBERED)
def _exponential(week: int) -> np.ndarray:
    words = [_SEED, 0 if week >= 0 else 1, abs(week)]
    return np.random.default_rng(np.random.SeedSequence(words)).standard_exponential(DRAWS)


@dataclass(frozen=True)
class Estimate:
    """
    A difference or a score, and its uncertainty.

    Parameters
    ----------
    value : float
        The difference, first minus second; or the score, positive where the first is better.
    error : float or None
        The standard error; None if there are too few weeks or replicates, if the runs are equal, or if replicates do
        not vary.
    blocks : int
        The number of weeks or replicates.
    freedom : float
        The degrees of freedom of the standard error.
    equal : bool
        Whether the two runs are equal, so that there is no uncertainty.
    skewness : float
        The skewness of the draws; 0 without draws.
    """

    value: float
    error: float | None
    blocks: int
    freedom: float
    equal: bool = False
    skewness: float = 0.0

    @property
    def is_uneven(self) -> bool:
        """Whether few weeks contain most of the difference: the interval then contains the true value less often."""
        least, factor = _UNEVEN
        return self.error is not None and abs(self.skewness) > max(least, factor / math.sqrt(self.blocks))

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """Student's 95 % confidence interval for this comparison alone."""
        if self.error is None:
            return None, None
        half = student(self.freedom) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float | None:
        """The two-sided p-value of this comparison alone: P(a value at least as far from 0 | no difference)."""
        from scipy.special import stdtr

        if self.error is None:
            return None
        if self.error == 0:
            return 0.0
        return float(2 * stdtr(self.freedom, -abs(self.value) / self.error))

    def verdict(self, smaller_is_better: bool = True) -> str:
        """
        Return the verdict that the interval implies for this comparison alone.

        Parameters
        ----------
        smaller_is_better : bool
            True for differences, False for scores.

        Returns
        -------
        str
            ``equal``; ``too few weeks``, without an interval; ``not distinguishable``, if the interval contains 0;
            ``first is better`` or ``second is better``.

        Examples
        --------
        >>> Estimate(-60.0, 20.0, 50, 30).verdict(), Estimate(-60.0, 40.0, 50, 30).verdict()
        ('first is better', 'not distinguishable')
        """
        low, high = self.interval
        if self.equal:
            return EQUAL
        if low is None or high is None:
            return UNKNOWN
        return _better(self.value, smaller_is_better) if low > 0 or high < 0 else NEITHER


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


def difference_of(first: Resampled, second: Resampled) -> Estimate:
    """
    Return the difference of a statistic of two runs, first minus second, in the unit of the measure.

    Parameters
    ----------
    first, second : Resampled
        The same statistic of both runs. For all statistics of swflow, smaller is better.

    Returns
    -------
    Estimate
    """
    value, drawn = first.value - second.value, first.drawn - second.drawn
    equal = math.isnan(first.value) and math.isnan(second.value)
    if not equal and np.array_equal(first.weeks, second.weeks):
        rounding = _ROUNDING * max(abs(first.value), abs(second.value))
        equal = abs(value) <= rounding and bool((np.abs(drawn) <= rounding).all())
    return _estimate(0.0 if equal else value, drawn, _weeks_of_both(first, second), equal)


def score_of(first: Distribution, second: Distribution) -> Estimate:
    """
    Return the score of two runs at equal load.

    In each tenth of the load, the score is the probability that a job of the first run has a smaller value than a job
    of the second run, minus the probability of the opposite (from -1 to 1, computed on the jobs). The weight of a tenth
    is the mean of the two runs' shares of jobs in it; tenths in which only one run has jobs add 0.

    Parameters
    ----------
    first, second : Distribution
        Distributions of the same measure.

    Returns
    -------
    Estimate
        Positive where the first is better.

    Examples
    --------
    >>> run = pl.DataFrame({"submit_time": [0.0, 0.0], "load": [0.95, 0.95], "wait_time": [10.0, 11.0]})
    >>> one, other = (distribution_of(table, "wait_time") for table in (run, run.with_columns(pl.col("wait_time") + 1)))
    >>> score_of(one, other).value
    0.75
    """
    value = _score(first, second)
    width = min(first.shares.shape[2], second.shares.shape[2])
    below = np.einsum("bdv,bdv->bd", first.shares[:, :, :width], second.ranks[:, :, :width]).astype(float)
    below += 2 * first.shares[:, :, width:].sum(axis=2)
    both = (first.weights > 0) & (second.weights > 0)
    drawn = ((first.weights + second.weights) / 2 * np.where(both, 1 - below, 0.0)).sum(axis=1)
    equal = all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("weeks", "by_week")) and all(
        np.array_equal(one, other)
        for name in ("values", "up_to")
        for one, other in zip(getattr(first, name), getattr(second, name), strict=True)
    )
    return _estimate(value, drawn, _weeks_of_both(first, second), equal)


def _weeks_of_both(first: Resampled | Distribution, second: Resampled | Distribution) -> int:
    """Return the number of weeks in which jobs of either run were submitted."""
    if np.array_equal(first.weeks, second.weeks):
        return int(first.weeks.size)
    return int(np.union1d(first.weeks, second.weeks).size)


def _score(first: Distribution, second: Distribution) -> float:
    """Return the score of two runs, computed on the jobs."""
    shares = [np.array([up_to[-1] for up_to in run.up_to], float) for run in (first, second)]
    if not shares[0].any() or not shares[1].any():
        return 0.0
    weights = (shares[0] / shares[0].sum() + shares[1] / shares[1].sum()) / 2
    score = 0.0
    for weight, *parts in zip(weights, first.values, first.up_to, second.values, second.up_to, strict=True):
        of_first, up_to_first, of_second, up_to = parts
        if of_first.size and of_second.size:
            place = np.searchsorted(of_second, of_first)
            same = of_second.take(place, mode="clip") == of_first  # a place beyond the end becomes that of the largest
            larger_less_smaller = up_to[-1] - up_to[place + same] - up_to[place]
            pairs = float(up_to_first[-1]) * float(up_to[-1])
            score += weight * float((up_to_first[1:] - up_to_first[:-1]) @ larger_less_smaller) / pairs
    return round(float(score), 12)


def _estimate(value: float, drawn: np.ndarray, blocks: int, equal: bool) -> Estimate:
    freedom = max(blocks - 1, 1) / _OVERLAP
    if equal or blocks < FEWEST_WEEKS or not np.isfinite(drawn).all():
        return Estimate(value, None, blocks, freedom, equal)
    # Half the sum of two exponential variables has half the variance of one. The weights are divided by their sum.
    # Weeks deviate less from their own mean than from the true mean. With independent weeks, the squared error is then
    # unbiased.
    deviations = drawn - drawn.mean()
    squares = deviations * deviations
    spread = float(np.sqrt(squares.mean()))
    error = spread * math.sqrt(2 * (blocks + 1) / (blocks - 2))
    if error < 1e-9 * max(abs(value), float(np.abs(drawn).max())):
        return Estimate(value, 0.0, blocks, freedom)  # all weeks agree up to rounding errors
    skewness = float((squares * deviations).mean() / spread**3)
    return Estimate(value, error, blocks, freedom, skewness=skewness)


def over_replicates(values: Sequence[float | None]) -> Estimate:
    """
    Return the mean difference over replicates, with its standard error.

    Parameters
    ----------
    values : sequence of float or None
        The difference or the score in each replicate; unknown values are left out.

    Returns
    -------
    Estimate
        Without a standard error if fewer than two values are known. If all values agree, the draws contain no
        information on the uncertainty, so there is no standard error either; the runs are equal if all values are 0.

    Examples
    --------
    >>> found = over_replicates([1.0, 2.0, 3.0])
    >>> found.value, round(found.error, 4), found.blocks
    (2.0, 0.5774, 3)
    >>> over_replicates([0.0, 0.0]).equal, over_replicates([0.5, 0.5]).error
    (True, None)
    """
    known = np.array([value for value in values if value is not None and math.isfinite(value)], float)
    if known.size < 2:
        return Estimate(float(known.mean()) if known.size else math.nan, None, int(known.size), 1)
    value, error, freedom = float(known.mean()), float(known.std(ddof=1) / math.sqrt(known.size)), known.size - 1
    if error <= 1e-9 * float(np.abs(known).max()):
        return Estimate(value, None, int(known.size), freedom, equal=not known.any())
    return Estimate(value, error, int(known.size), freedom)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """
    Adjust the p-values of a family by Holm's method: results below 5 % hold simultaneously.

    Parameters
    ----------
    p : sequence of float or None
        The p-values of the family; None values are not members.

    Returns
    -------
    list of float or None
        Adjusted p-values, at least ``p`` and at most 1.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6(2), 1979.

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    members = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, place) in enumerate(members):
        highest = max(highest, min(1.0, value * (len(members) - rank)))
        adjusted[place] = highest
    return adjusted


def columns_of(name: str, found: Estimate) -> dict[str, Any]:
    """Return the columns of a statistic (``score`` or ``mean``) in a table of comparisons; `correct` adds the rest."""
    low, high = found.interval
    verdict = found.verdict(smaller_is_better=name != "score")
    return {
        f"{name}_low": low, f"{name}_high": high, f"{name}_p": found.p, f"{name}_verdict": verdict,
        f"{name}_p_holm": None, f"{name}_verdict_holm": verdict,
    }  # fmt: skip


def correct(rows: Sequence[dict[str, Any]]) -> None:
    """
    Fill in the p-values and verdicts that are corrected for the number of comparisons.

    Parameters
    ----------
    rows : sequence of dict
        Rows with ``family``, ``score``, ``mean_difference`` and the result of `columns_of` for both. The rows of a
        family are corrected together, once for scores and once for differences. Each row gets ``family_size``, the
        number of rows of the family that have an interval. ``better`` is the run that wins more than half of the
        jobs, unless the corrected verdict of the score is ``not distinguishable`` or ``equal``.
    """
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
    for family in families.values():
        size = sum(row["mean_p"] is not None or row["score_p"] is not None for row in family)
        for row in family:
            row["family_size"] = size
        for name, value in (("score", "score"), ("mean", "mean_difference")):
            for row, adjusted in zip(family, holm([row[f"{name}_p"] for row in family]), strict=True):
                row[f"{name}_p_holm"] = adjusted
                verdict = row[f"{name}_verdict"]
                if adjusted is not None:
                    verdict = _better(row[value], name != "score") if adjusted < 1 - CONFIDENCE else NEITHER
                row[f"{name}_verdict_holm"] = verdict
    for row in rows:
        row["better"] = None
        if row["score_verdict_holm"] in (FIRST, SECOND, UNKNOWN):
            if row["first_wins"] > 0.5 and row["score"] > 0:
                row["better"] = row["first"]
            elif row["second_wins"] > 0.5 and row["score"] < 0:
                row["better"] = row["second"]


def _better(value: float, smaller_is_better: bool) -> str:
    if value == 0:
        return NEITHER
    return FIRST if (value < 0) == smaller_is_better else SECOND


def blocks_needed(found: Estimate, effect: float, power: float = 0.8) -> int | None:
    """
    Return the number of weeks or replicates at which an interval excludes 0 with a given probability (``power``).

    ``found`` has a standard error; further weeks or replicates are assumed to be like the observed ones. ``effect`` is
    the true difference, in the unit of the error. The number is at least 2; None above ten million.

    Examples
    --------
    An effect of one standard deviation of a replicate, which is listed in tables of Student's paired test:

    >>> blocks_needed(Estimate(0.0, 1 / math.sqrt(10), 10, 9), 1.0)
    10
    """
    if found.error == 0:
        return 2
    if effect <= 0:
        return None
    numbers = range(2, _MOST_BLOCKS + 1)
    place = bisect_left(numbers, True, key=lambda wanted: smallest_difference(found, wanted, power) <= effect)
    return numbers[place] if place < len(numbers) else None


def smallest_difference(found: Estimate, wanted: int, power: float = 0.8) -> float:
    """
    Return the true difference at which an interval over ``wanted`` blocks excludes 0 with a given probability.

    Examples
    --------
    >>> there = Estimate(0.0, 1.0, 50, 49)
    >>> round(smallest_difference(there, 50), 2), round(smallest_difference(there, 200), 2)
    (2.86, 1.41)
    """
    from scipy.special import stdtrit

    freedom = (wanted - 1) * found.freedom / (found.blocks - 1)
    error = (found.error or 0.0) * math.sqrt(found.blocks / wanted)
    return float((student(freedom) + stdtrit(freedom, power)) * error)


def family_of(log: str, measure: str, replicate: int | None, replicates: bool) -> str:
    """
    Return the name of the family of comparisons that are corrected together.

    Examples
    --------
    >>> family_of("KTH-SP2", "wait_time", None, False), family_of("KTH-SP2", "wait_time", 3, False)
    ('KTH-SP2, wait_time, weeks', 'KTH-SP2, wait_time, weeks of replicate 3')
    """
    basis = "replicates" if replicates else "weeks"
    return f"{log}, {measure}, {basis}" + (f" of replicate {replicate}" if replicate is not None else "")
