"""Verdicts: whether one run is better than another, with intervals over weeks or replicates, corrected for how many."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from swflow.analysis.uncertainty import FEWEST_WEEKS, WEEK

CONFIDENCE = 0.95

#: How many times the weeks are weighted anew.
DRAWS = 1000

#: What a verdict may say.
FIRST, SECOND, NEITHER, EQUAL, UNKNOWN = (
    "first is better",
    "second is better",
    "no difference",
    "equal",
    "too few weeks",
)

_SEED = (
    20120525  # of the weights of weeks: one for all, so that two runs are resampled alike whenever they are compared
)
_AT_ONCE = 256  # weeks that are summed at a time
_REMEMBERED = 4096  # weeks whose weights are kept, of 8 kB each
_TENTHS, _BINS_PER_DECADE = 10, 6
_OVERLAP = 1.5  # by which overlapping blocks of two weeks have fewer degrees of freedom than weeks


class Resampled(NamedTuple):
    """
    A measure of a run, under every draw of the weeks.

    Parameters
    ----------
    weeks : int64 array of shape (weeks,)
        The weeks since the log's beginning in which jobs were submitted.
    jobs, sums : float64 arrays of shape (weeks,)
        Jobs whose value is known, and their sum.
    means : float64 array of shape (draws,)
        The mean over the jobs.
    weights : float32 array of shape (draws, 10)
        The share of the jobs by tenths of the load.
    shares, ranks : float32 arrays of shape (draws, 10, values)
        Of the jobs in a tenth: the distribution of the value, and twice its mid-distribution function.
    counts : int32 array of shape (weeks, 10, values)
        Jobs by week, tenth of the load and value.
    """

    weeks: np.ndarray
    jobs: np.ndarray
    sums: np.ndarray
    means: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    ranks: np.ndarray
    counts: np.ndarray

    @property
    def mean(self) -> float:
        """The mean as it is."""
        return float(self.sums.sum() / self.jobs.sum()) if self.jobs.sum() else math.nan


class Weeks(NamedTuple):
    """
    What all measures of a run share when its weeks are weighted anew.

    Parameters
    ----------
    weeks : int64 array of shape (weeks,)
        The weeks since the log's beginning in which jobs were submitted.
    week : int64 array of shape (jobs,)
        Each job's place among them.
    tenth : int64 array of shape (jobs,)
        The tenth of the load that it experienced; -1 if the load is unknown.
    outcomes : polars.DataFrame
        The run.
    """

    weeks: np.ndarray
    week: np.ndarray
    tenth: np.ndarray
    outcomes: pl.DataFrame


def by_weeks(outcomes: pl.DataFrame) -> Weeks:
    """Return what `resample` needs of a run, whichever the measure; of many measures it is made once."""
    submit, load = (outcomes[name].cast(pl.Float64).to_numpy() for name in ("submit_time", "load"))
    number = np.floor(submit / WEEK).astype(np.int64)
    weeks = np.unique(number[np.diff(number, prepend=number[:1] - 1) != 0])  # nearly in order: few are left to sort
    week = np.searchsorted(weeks, number)
    unknown = np.isnan(load)
    tenth = np.clip((np.where(unknown, 0, load) * _TENTHS).astype(np.int64), 0, _TENTHS - 1)
    tenth[unknown] = -1
    return Weeks(weeks, week, tenth, outcomes)


def resample(outcomes: pl.DataFrame | Weeks, measure: str) -> Resampled:
    """
    Weight the weeks of a run anew many times, and return what its measure then is.

    A draw gives each week, with all the jobs submitted in it, a weight: half the sum of two exponential variables, one
    of which it shares with the week before, one with the week after. These are overlapping blocks of two weeks, since
    what is queued at a week's end is felt in the next, with the weights of the Bayesian bootstrap, so that no week ever
    vanishes and every draw has a value. The weights depend on the week alone. Two runs of a log are therefore resampled
    alike (paired), whichever others are compared.

    Parameters
    ----------
    outcomes : polars.DataFrame or Weeks
        ``submit_time`` (seconds from the log's beginning), ``load``, and the measure; or what `by_weeks` made of it.
    measure : str
        A column; jobs of which it is unknown do not count.

    Returns
    -------
    Resampled

    References
    ----------
    D. B. Rubin, "The Bayesian bootstrap", Annals of Statistics 9(1), 1981. H. R. Künsch, "The jackknife and the
    bootstrap for general stationary observations", Annals of Statistics 17(3), 1989: blocks instead of single jobs.
    """
    weeks, week, tenth, table = outcomes if isinstance(outcomes, Weeks) else by_weeks(outcomes)
    values = table[measure].cast(pl.Float64).to_numpy()  # unknown is NaN
    known = ~np.isnan(values)
    if not known.all():
        week, tenth, values = week[known], tenth[known], values[known]
    jobs = np.bincount(week, minlength=weeks.size).astype(float)
    sums = np.bincount(week, values, minlength=weeks.size)
    known = tenth >= 0
    if not known.all():
        week, tenth, values = week[known], tenth[known], values[known]
    value = (np.log10(np.maximum(values, 1.0)) * _BINS_PER_DECADE).astype(np.int64)  # wide bins do for an error
    width = int(value.max(initial=0)) + 1
    size = _TENTHS * width
    place = (week * _TENTHS + tenth) * width + value
    found = np.bincount(place, minlength=weeks.size * size).astype(np.int32).reshape(weeks.size, _TENTHS, width)
    by_value = found.astype(np.float32)
    up_to = np.cumsum(by_value, axis=2)
    shares, ranks = (np.zeros((DRAWS, _TENTHS, width), np.float32) for _ in range(2))
    total, summed = np.zeros(DRAWS), np.zeros(DRAWS)
    for begin in range(0, weeks.size, _AT_ONCE):
        some = slice(begin, min(begin + _AT_ONCE, weeks.size))
        drawn, rough = _drawn(tuple(weeks[some].tolist()))
        shares += (rough @ by_value[some].reshape(-1, size)).reshape(shares.shape)
        ranks += (rough @ up_to[some].reshape(-1, size)).reshape(ranks.shape)
        total += drawn @ jobs[some]
        summed += drawn @ sums[some]
    weights = shares.sum(axis=2)
    ranks *= 2
    ranks -= shares
    for counted in (shares, ranks):
        counted /= np.where(weights > 0, weights, 1)[:, :, None]
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    with np.errstate(invalid="ignore"):
        means = summed / total
    return Resampled(weeks, jobs, sums, means, weights, shares, ranks, found)


@lru_cache(maxsize=16)
def _drawn(weeks: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of weeks in all draws, as they are and in single precision, of shape (draws, weeks)."""
    drawn = np.column_stack([_weights(week) for week in weeks])
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
    A difference, and how sure it is.

    Parameters
    ----------
    value : float
        The difference, first minus second; or the score, positive where the first is better.
    error : float or None
        Its standard error; None if there are too few weeks or replicates, or if nothing differs.
    blocks : int
        How many weeks or replicates it rests on.
    freedom : float
        The degrees of freedom of the standard error.
    equal : bool
        Whether the two are the same, so that there is nothing to be unsure of.
    """

    value: float
    error: float | None
    blocks: int
    freedom: float
    equal: bool = False

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """Student's confidence interval, for this difference alone."""
        if self.error is None:
            return None, None
        half = student(self.freedom) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float | None:
        """How probable a difference as large would be by chance, if there were none; for this one alone."""
        from scipy.special import stdtr

        if self.error is None:
            return None
        if self.error == 0:
            return 0.0
        return float(2 * stdtr(self.freedom, -abs(self.value) / self.error))


def student(freedom: float, confidence: float = CONFIDENCE) -> float:
    """
    Return Student's two-sided quantile for so many degrees of freedom.

    Examples
    --------
    >>> round(student(10), 3), round(student(52), 3)
    (2.228, 2.007)
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def difference_of(first: Resampled, second: Resampled) -> Estimate:
    """Return the difference of the two means, in the unit of the measure; below 0, the first is better."""
    return _estimate(first.mean - second.mean, first.means - second.means, first, second)


def score_of(first: Resampled, second: Resampled, score: float) -> Estimate:
    """
    Return a score at equal load with its standard error.

    Parameters
    ----------
    first, second : Resampled
        Of one measure.
    score : float
        As `swflow.analysis.comparison.compare` returns it for the whole runs.

    Returns
    -------
    Estimate
    """
    width = min(first.shares.shape[2], second.shares.shape[2])
    below = np.einsum("bdv,bdv->bd", first.shares[:, :, :width], second.ranks[:, :, :width]).astype(float)
    below += 2 * first.shares[:, :, width:].sum(axis=2)
    both = (first.weights > 0) & (second.weights > 0)
    drawn = ((first.weights + second.weights) / 2 * np.where(both, 1 - below, 0.0)).sum(axis=1)
    return _estimate(score, drawn, first, second)


def _equal(first: Resampled, second: Resampled) -> bool:
    names = ("weeks", "jobs", "sums", "counts")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


def _estimate(value: float, drawn: np.ndarray, first: Resampled, second: Resampled) -> Estimate:
    equal = _equal(first, second)
    blocks = int(np.union1d(first.weeks[first.jobs > 0], second.weeks[second.jobs > 0]).size)
    freedom = max(blocks - 1, 1) / _OVERLAP
    if equal or blocks < FEWEST_WEEKS or not np.isfinite(drawn).all():
        return Estimate(value, None, blocks, freedom, equal)
    # Half the sum of two exponential variables has half the variance of one. Of independent weeks, two thirds of which
    # blocks of two weeks know, it is then what it should be on average.
    error = float(np.std(drawn)) * math.sqrt(2 * (blocks + 1) / (blocks - 2))
    if error < 1e-9 * max(abs(value), float(np.abs(drawn).max())):
        error = 0.0  # all weeks agree; what is left is rounding
    return Estimate(value, error, blocks, freedom)


def over_replicates(values: Sequence[float | None]) -> Estimate:
    """
    Return the mean of what replicates differ by, with its standard error.

    Examples
    --------
    >>> found = over_replicates([1.0, 2.0, 3.0])
    >>> found.value, round(found.error, 4), found.blocks
    (2.0, 0.5774, 3)
    >>> over_replicates([0.0, 0.0]).equal
    True
    """
    known = np.array([value for value in values if value is not None and math.isfinite(value)], float)
    if known.size < 2:
        return Estimate(float(known.mean()) if known.size else math.nan, None, int(known.size), 1)
    value, freedom = float(known.mean()), known.size - 1
    if not known.any():
        return Estimate(value, None, int(known.size), freedom, equal=True)
    return Estimate(value, float(known.std(ddof=1) / math.sqrt(known.size)), int(known.size), freedom)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """
    Adjust probabilities of a family by Holm's method: what is below 5 % afterwards holds for all at once.

    Parameters
    ----------
    p : sequence of float or None
        The family's; None is no member.

    Returns
    -------
    list of float or None
        Not below ``p``, and at most 1.

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
    """Return the columns of a statistic in a table of comparisons; `correct` fills the corrected ones."""
    low, high = found.interval
    return {
        f"{name}_low": low, f"{name}_high": high, f"{name}_p": found.p, f"{name}_p_holm": None,
        f"{name}_verdict": EQUAL if found.equal else UNKNOWN,
    }  # fmt: skip


def correct(rows: Sequence[dict[str, Any]]) -> None:
    """
    Fill in the corrected probabilities and the verdicts of comparisons.

    Parameters
    ----------
    rows : sequence of dict
        Rows with ``family``, ``score``, ``mean_difference`` and what `columns_of` returned for both. A family is what
        is corrected together, one of scores and one of differences. Each row gets ``family_size``, the number of its
        members that have an interval. ``better`` is who wins more than half of the jobs, unless the score may be
        chance.
    """
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
    for family in families.values():
        size = sum(row["mean_p"] is not None or row["score_p"] is not None for row in family)
        for row in family:
            row["family_size"] = size
        for name, value, sign in (("score", "score", 1), ("mean", "mean_difference", -1)):
            for row, adjusted in zip(family, holm([row[f"{name}_p"] for row in family]), strict=True):
                row[f"{name}_p_holm"] = adjusted
                if adjusted is not None:
                    row[f"{name}_verdict"] = _verdict(adjusted, sign * row[value])
    for row in rows:
        row["better"] = None
        if row["score_verdict"] in (FIRST, SECOND, UNKNOWN):
            if row["first_wins"] > 0.5 and row["score"] > 0:
                row["better"] = row["first"]
            elif row["second_wins"] > 0.5 and row["score"] < 0:
                row["better"] = row["second"]


def _verdict(p: float, value: float) -> str:
    if p >= 1 - CONFIDENCE or value == 0:
        return NEITHER
    return FIRST if value > 0 else SECOND


def blocks_needed(found: Estimate, effect: float, power: float = 0.8, most: int = 10**7) -> int | None:
    """
    Return how many weeks or replicates it takes until a difference shows.

    Parameters
    ----------
    found : Estimate
        With a standard error; more weeks or replicates are thought to be like those that it rests on.
    effect : float
        The difference that is to be found, in the unit of the error.
    power : float
        How probable it is to be that the 95 % interval leaves out zero.
    most : int
        Beyond this the answer is None.

    Returns
    -------
    int or None
        At least 2.

    Examples
    --------
    An effect of one standard deviation of a replicate, as tables of Student's paired test have it:

    >>> blocks_needed(Estimate(0.0, 1 / math.sqrt(10), 10, 9), 1.0)
    10
    """
    if found.error == 0:
        return 2
    if effect <= 0:
        return None
    low, high = 1, 2
    while smallest_difference(found, high, power) > effect:
        low, high = high, 2 * high
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if smallest_difference(found, middle, power) > effect:
            low = middle
        else:
            high = middle
    return high


def smallest_difference(found: Estimate, wanted: int, power: float = 0.8) -> float:
    """
    Return the difference that shows with a given probability if there are ``wanted`` blocks instead of those there are.

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
    Return the name of the family that a comparison is corrected in.

    Examples
    --------
    >>> family_of("KTH-SP2", "wait_time", None, False), family_of("KTH-SP2", "wait_time", 3, False)
    ('KTH-SP2, wait_time, weeks', 'KTH-SP2, wait_time, weeks of replicate 3')
    """
    basis = "replicates" if replicates else "weeks"
    return f"{log}, {measure}, {basis}" + (f" of replicate {replicate}" if replicate is not None else "")


def replicate_rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return the means of some columns over the rows of replicates, None where one is unknown."""
    return {
        name: None if any(row[name] is None for row in rows) else float(np.mean([row[name] for row in rows]))
        for name in names
    }
