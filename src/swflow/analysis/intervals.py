"""Intervals: the 95 % confidence interval of a comparison of two runs, over a log's weeks or over replicates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from swflow.analysis.long_run import long_run_error, student
from swflow.analysis.resampling import Distribution, Resampled
from swflow.analysis.verdicts import DEPENDENT_WEEKS, EQUAL, NOT_DISTINGUISHABLE, TOO_FEW_WEEKS, better

#: A comparison of runs that last fewer weeks than this has no interval: so few weeks do not show how long they depend
#: on each other. Two runs of one scheduler would then differ significantly in more than 7 % of the cases.
FEWEST_WEEKS = 8

_UNEVEN = 0.4, 1.5  # skewness of the mean: at least the first, and the second over the root of the weeks
_ROUNDING = 1e-12  # differences below this share of the values are rounding errors


@dataclass(frozen=True)
class Estimate:
    """
    A difference of two runs or a score, and its uncertainty.

    The interval of a difference of two positive statistics follows from the interval of the logarithm of their ratio,
    which needs fewer weeks than the difference itself and never ends below a change of -100 %. A ratio of 0 has no
    logarithm. If one run has the statistic 0, the interval is therefore that of the difference.
    """

    value: float  # the difference, variant minus base; or the score, positive where the variant is better
    # The standard error of the logarithm of the ratio, if ``is_ratio``, else of ``value``; None if there are too few
    # weeks or replicates, if the runs are equal, or if replicates do not vary.
    error: float | None
    blocks: int  # the number of weeks or replicates
    freedom: float  # the degrees of freedom of the standard error
    equal: bool = False  # whether the two runs are equal, so that there is no uncertainty
    skewness: float = 0.0  # the skewness of the mean over independent weeks; 0 over replicates
    base: float | None = None  # the statistic of the base, which is not negative; None for a score
    is_ratio: bool = False  # whether the interval is that of the logarithm of the ratio
    is_dependent: bool = False  # whether weeks depend on each other for as long as the log lasts

    @property
    def is_uneven(self) -> bool:
        """Whether few weeks contain most of the difference: the interval then contains the true value less often."""
        least, factor = _UNEVEN
        return self.error is not None and abs(self.skewness) > max(least, factor / math.sqrt(self.blocks))

    @property
    def center(self) -> float:
        """The value in the unit of the error: the logarithm of the ratio, or the value itself."""
        return math.log1p(self.value / self.base) if self.is_ratio and self.base else self.value

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """The 95 % confidence interval of the value for this comparison alone, by Student's distribution."""
        if self.error is None:
            return None, None
        half = student(self.freedom) * self.error
        low, high = self.center - half, self.center + half
        if self.base is None:
            return low, high
        if self.is_ratio:
            with np.errstate(over="ignore"):
                return self.base * float(np.expm1(low)), self.base * float(np.expm1(high))
        return max(low, -self.base), high

    @property
    def p(self) -> float | None:
        """The two-sided p-value of this comparison alone: P(a value at least as far from 0 | no difference)."""
        from scipy.special import stdtr

        if self.error is None:
            return None
        if self.error == 0:
            return 0.0
        return float(2 * stdtr(self.freedom, -abs(self.center) / self.error))

    def verdict(self, smaller_is_better: bool = True) -> str:
        """
        Return the verdict that the interval implies for this comparison alone; smaller is better, except for scores.

        It is ``equal``; ``cannot tell: too few weeks``, without an interval; ``not distinguishable``, if the interval
        contains 0, or ``cannot tell: dependent weeks``, if the weeks also depend on each other for as long as the log
        lasts; ``variant is better`` or ``base is better``.

        Examples
        --------
        >>> Estimate(-60.0, 20.0, 50, 30).verdict(), Estimate(-60.0, 40.0, 50, 30).verdict()
        ('variant is better', 'not distinguishable')
        """
        low, high = self.interval
        if self.equal:
            return EQUAL
        if low is None or high is None:
            return TOO_FEW_WEEKS
        return better(self.value, smaller_is_better) if low > 0 or high < 0 else self.undecided

    @property
    def undecided(self) -> str:
        """The verdict if the interval contains 0."""
        return DEPENDENT_WEEKS if self.is_dependent else NOT_DISTINGUISHABLE


def difference_of(variant: Resampled, base: Resampled) -> Estimate:
    """
    Return the difference of a statistic of two runs, variant minus base, in the unit of the measure.

    The statistics are at least 0; smaller is better. If both are above 0, also without any week, the interval is that
    of the logarithm of their ratio. The standard error is that of `long_run_error`.

    Examples
    --------
    >>> weeks, rest = np.arange(8), np.array([9.0, 11, 10, 9, 11, 10, 10, 10])
    >>> half = Resampled(10.0, weeks, rest, 10.0), Resampled(20.0, weeks, 2 * rest, 20.0)
    >>> difference_of(*half).interval  # half without each week, too
    (-10.0, -10.0)
    """
    value = variant.value - base.value
    weeks = np.union1d(variant.weeks, base.weeks)
    one, other = (_without(run, weeks) for run in (variant, base))
    equal = math.isnan(variant.value) and math.isnan(base.value)
    if not equal and np.array_equal(variant.weeks, base.weeks):
        rounding = _ROUNDING * max(abs(variant.value), abs(base.value))
        without_jobs = np.isnan(one) & np.isnan(other)  # nothing is left without the only week
        equal = abs(value) <= rounding and bool(((np.abs(one - other) <= rounding) | without_jobs).all())
    is_ratio = all(run.value > 0 and bool((rest > 0).all()) for run, rest in ((variant, one), (base, other)))
    without = np.log(one / other) if is_ratio else one - other
    return _estimate(0.0 if equal else value, without, weeks, equal, base.value, is_ratio)


def _without(run: Resampled, weeks: np.ndarray) -> np.ndarray:
    """Return the statistic without each of the weeks; a week without jobs of the run leaves it unchanged."""
    found = np.full(weeks.size, run.whole)
    found[np.searchsorted(weeks, run.weeks)] = run.without
    return found


def of_interval(value: float, low: float, high: float, blocks: int, freedom: float, base: float) -> Estimate:
    """
    Return the estimate of a difference whose interval is known, as in a row of view ``differences``.

    ``base`` is the statistic of the base, which is above 0, and ``low`` and ``high`` are the ends of the interval as
    shares of it. ``blocks`` is the number of weeks or replicates.

    Examples
    --------
    >>> found = Estimate(-10.0, 0.2, 20, 7.5, base=30.0, is_ratio=True)
    >>> again = of_interval(-10.0, *(bound / 30 for bound in found.interval), 20, 7.5, 30.0)
    >>> round(again.error, 6)
    0.2
    """
    is_ratio = low > -1 and value > -base
    half = (math.log1p(high) - math.log1p(low)) / 2 if is_ratio else base * (high - low) / 2
    return Estimate(value, half / student(freedom), blocks, freedom, base=base, is_ratio=is_ratio)


def score_of(variant: Distribution, base: Distribution) -> Estimate:
    """
    Return the score of two runs at equal load, from distributions of one measure; positive where the variant is better.

    In each tenth of the load, the score is the probability that a job of the variant run has a smaller value than a job
    of the base run, minus the probability of the opposite (from -1 to 1, computed on the jobs). The weight of a tenth
    is the mean of the two runs' shares of jobs in it; tenths in which only one run has jobs add 0.

    Examples
    --------
    >>> import polars as pl
    >>> from swflow.analysis.resampling import distribution_of
    >>> run = pl.DataFrame({"submit_time": [0.0, 0.0], "load": [0.95, 0.95], "wait_time": [10.0, 11.0]})
    >>> one, other = (distribution_of(table, "wait_time") for table in (run, run.with_columns(pl.col("wait_time") + 1)))
    >>> score_of(one, other).value
    0.75
    """
    value = _score(variant, base)
    weeks = np.union1d(variant.weeks, base.weeks)
    width = max(variant.by_week.shape[2], base.by_week.shape[2])
    one, other = (_rest_of(run, weeks, width) for run in (variant, base))
    jobs, base_jobs = one.sum(axis=2), other.sum(axis=2)
    ranks = 2 * np.cumsum(other, axis=2) - other  # twice the mid-distribution function
    with np.errstate(invalid="ignore", divide="ignore"):
        below = np.einsum("wdv,wdv->wd", one, ranks) / (jobs * base_jobs)
        shares = (_shares(jobs) + _shares(base_jobs)) / 2
    without = np.where((jobs > 0) & (base_jobs > 0), shares * (1 - below), 0.0).sum(axis=1)
    equal = all(np.array_equal(getattr(variant, name), getattr(base, name)) for name in ("weeks", "by_week")) and all(
        np.array_equal(one, other)
        for name in ("values", "up_to")
        for one, other in zip(getattr(variant, name), getattr(base, name), strict=True)
    )
    return _estimate(value, without, weeks, equal)


def _rest_of(run: Distribution, weeks: np.ndarray, width: int) -> np.ndarray:
    """Return the numbers of jobs by tenth of the load and bin of the value without each week, ``width`` bins wide."""
    counts = np.zeros((weeks.size, run.by_week.shape[1], width))
    counts[np.searchsorted(weeks, run.weeks), :, : run.by_week.shape[2]] = run.by_week
    return np.asarray(counts.sum(axis=0) - counts)


def _shares(jobs: np.ndarray) -> np.ndarray:
    return np.asarray(jobs / np.maximum(jobs.sum(axis=1, keepdims=True), 1))


def _score(variant: Distribution, base: Distribution) -> float:
    """Return the score of two runs, computed on the jobs."""
    shares = [np.array([up_to[-1] for up_to in run.up_to], float) for run in (variant, base)]
    if not shares[0].any() or not shares[1].any():
        return 0.0
    weights = (shares[0] / shares[0].sum() + shares[1] / shares[1].sum()) / 2
    score = 0.0
    for weight, *parts in zip(weights, variant.values, variant.up_to, base.values, base.up_to, strict=True):
        of_variant, up_to_variant, of_base, up_to = parts
        if of_variant.size and of_base.size:
            place = np.searchsorted(of_base, of_variant)
            same = of_base.take(place, mode="clip") == of_variant  # a place beyond the end becomes that of the largest
            larger_less_smaller = up_to[-1] - up_to[place + same] - up_to[place]
            pairs = float(up_to_variant[-1]) * float(up_to[-1])
            score += weight * float((up_to_variant[1:] - up_to_variant[:-1]) @ larger_less_smaller) / pairs
    return round(float(score), 12)


def _estimate(
    value: float, without: np.ndarray, weeks: np.ndarray, equal: bool, base: float | None = None, is_ratio: bool = False
) -> Estimate:
    """Return the estimate of a statistic with its values without each week, in the unit of the error."""
    blocks = weeks.size
    found = Estimate(value, None, blocks, max(blocks - 1, 1), equal, 0.0, base, is_ratio)
    if equal or blocks < FEWEST_WEEKS or not np.isfinite(without).all():
        return found
    # The jackknife includes what a linear expansion of the ratio leaves out where one week has most of the waits.
    influences = (without.mean() - without) * (blocks - 1) / blocks
    squares = influences * influences
    if math.sqrt(float(squares.sum())) <= 1e-9 * max(abs(found.center), float(np.abs(without).max())):
        return replace(found, error=0.0)  # all weeks agree up to rounding errors
    error, freedom, _, is_dependent = long_run_error(influences, weeks)
    skewness = float((squares * influences).sum() / squares.sum() ** 1.5)
    return replace(found, error=error, freedom=freedom, skewness=skewness, is_dependent=is_dependent)


def over_replicates(values: Sequence[float | None]) -> Estimate:
    """
    Return the mean difference (or score) over replicates, with its standard error; unknown values are left out.

    There is no standard error if fewer than two values are known, or if all values agree, because the replicates then
    contain no information on the uncertainty. The runs are equal if all values are 0.

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


def difference_over_replicates(pairs: Sequence[tuple[float | None, float | None]]) -> Estimate:
    """
    Return the difference of a mean over replicates, with the interval of the logarithm of the ratio.

    A pair has the value of the variant and that of the base in one replicate; unknown values are left out. The standard
    error is that of the jackknife. It is missing as in `over_replicates`.

    Examples
    --------
    >>> found = difference_over_replicates([(10.0, 20.0), (14.0, 22.0), (12.0, 27.0)])
    >>> found.value, [round(bound, 1) for bound in found.interval]
    (-11.0, [-15.7, -3.2])
    """
    finite = [(one, other) for one, other in pairs if one is not None and other is not None]
    known = np.array([pair for pair in finite if np.isfinite(pair).all()], float).reshape(-1, 2)
    blocks = known.shape[0]
    if not blocks:
        return Estimate(math.nan, None, 0, 1)
    mean, base = known.mean(axis=0).tolist()
    equal = bool((known[:, 0] == known[:, 1]).all()) and blocks > 1
    rest = known.sum(axis=0) - known  # sums of all replicates but one
    is_ratio = bool((rest > 0).all())
    found = Estimate(mean - base, None, blocks, max(blocks - 1, 1), equal, 0.0, base, is_ratio)
    if equal or blocks < 2:
        return found
    left = np.log(rest[:, 0] / rest[:, 1]) if is_ratio else (rest[:, 0] - rest[:, 1]) / (blocks - 1)
    error = float(np.sqrt((blocks - 1) * left.var()))
    return found if error <= 1e-9 * float(np.abs(left).max()) else replace(found, error=error)
