"""Evaluate forecasts: walk forward in time, and compare each forecast with the wait that followed."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.forecast.cases import Cases, third_of, thirds
from swflow.forecast.chances import chances_of
from swflow.forecast.classes import by_class
from swflow.forecast.model import LEVEL, QUANTILES, Calibrator, Quantiles
from swflow.values import DAY, WEEK

if TYPE_CHECKING:
    from swflow.forecast.simulation import Simulator

#: The methods, as they are named in tables. `BEST` is, in each week, the better one of `PAST` and `SIMULATION` in the
#: weeks before.
PAST, SIMULATION, BEST, CLASSES = "past", "simulation", "best", "classes"

#: Weeks of forecasts before an evaluation whose residuals calibrate its first ones.
WARM_UP = 3

#: Weeks before a moment in which methods are compared, and the fewest jobs for it.
COMPARED, FEWEST_COMPARED = 6, 100

#: A week with this many forecasts has a row of its own.
FEW_OF_WEEK = 20

#: Cases that a model needs.
_FEWEST = 500


class Evaluated(NamedTuple):
    """Forecasts of one method, and what became of the jobs."""

    cases: Cases
    forecasts: np.ndarray  # float64 (cases, 3): lower end, median and upper end, decades


def raw_forecasts(cases: Cases, begin: float, end: float, refit: float, progress: Callable[[Any], Any]) -> np.ndarray:
    """
    Forecast the cases from one moment (s) to another before calibration, each by a model fitted before it.

    A model is fitted anew after ``refit`` seconds. The result has shape (cases, 3); it is NaN outside of the moments.
    """
    found = np.full((cases.asked.size, len(QUANTILES)), np.nan)
    for origin in progress(np.arange(begin, end, refit).tolist()):
        rows = np.flatnonzero((cases.asked >= origin) & (cases.asked < min(origin + refit, end)))
        if rows.size and rows[0] >= _FEWEST:
            found[rows] = Quantiles(cases, origin)(cases.values[rows])
    return found


def _calibrator(cases: Cases, raw: np.ndarray, end: float) -> Calibrator:
    """Return the calibrator of walking forecasts, after it has issued them day by day until a moment."""
    rows = np.flatnonzero(np.isfinite(raw[:, 0]))
    if not rows.size:
        return Calibrator(cases.take(rows), raw[rows], np.zeros(2))
    found = Calibrator(cases.take(rows), raw[rows], thirds(cases.size[: rows[0]]))
    found.walk(float(cases.asked[rows[0]]), end)
    found.follow(end)
    return found


def by_methods(
    cases: Cases,
    begin: float,
    end: float,
    refit: float,
    progress: Callable[[Any], Any],
    method: str,
    simulator: "Simulator | None",
) -> dict[str, tuple[np.ndarray, Calibrator]]:
    """Return the calibrated forecasts from one moment to another by each method (NaN for others), and calibrators."""
    raw = {}
    if method != SIMULATION:
        raw[PAST] = raw_forecasts(cases, begin, end, refit, progress)
    if method != PAST and simulator is not None:
        from swflow.forecast.simulation import simulated

        raw[SIMULATION] = simulated(cases, simulator, begin, end, progress)
    found = {}
    for name, one in raw.items():
        calibrator, issued = _calibrator(cases, one, end), np.full_like(one, np.nan)
        issued[np.isfinite(one[:, 0])] = calibrator.issued
        found[name] = issued, calibrator
    return found


def better(cases: Cases, forecasts: Mapping[str, np.ndarray], now: float) -> str:
    """
    Return the method with the lower mean interval score in the weeks before a moment.

    Both methods are compared on the same jobs, those whose outcome was known at the moment. The first method is
    returned if these are fewer than `FEWEST_COMPARED`.
    """
    names = list(forecasts)
    rows = np.flatnonzero((cases.asked >= now - COMPARED * WEEK) & (cases.asked < now))
    rows = rows[~cases.gone(now)[rows]]
    value, started = cases.take(rows).known(now)
    ends = np.array([forecasts[name][rows] for name in names])
    known = np.isfinite(ends[:, :, 0]).all(axis=0) & (started | (value > ends[:, :, 2].max(axis=0)))
    if known.sum() < FEWEST_COMPARED:
        return names[0]
    return names[int(np.argmin([interval_score(value[known], one[known]).mean() for one in ends]))]


def interval_score(value: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
    """
    Return the width of each interval plus 20 times the distance by which it misses the value, decades.

    References
    ----------
    T. Gneiting, A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", Journal of the American
    Statistical Association 102, 2007, equation 43.
    """
    low, _, high = forecasts.T
    miss = np.maximum(low - value, 0) + np.maximum(value - high, 0)
    return np.asarray(high - low + 2 / (1 - LEVEL) * miss)


def walk_forward(
    cases: Cases,
    begin: float,
    end: float,
    refit: float = WEEK,
    progress: Callable[[Any], Any] = lambda items: items,
    method: str = PAST,
    simulator: "Simulator | None" = None,
) -> dict[str, Evaluated]:
    """
    Forecast all cases from one moment to another from the data known before each moment, by each method and by class.

    With a simulator, only its share of the cases is forecast, the same cases by all methods. Moments are seconds; the
    models of the `WARM_UP` periods before calibrate the first forecasts. A model is fitted anew after ``refit``
    seconds. ``progress`` wraps the sequences of fits and of simulated cases. ``method`` is ``past``, ``simulation``, or
    ``best``: both, and the better one of the weeks before.
    """
    warm = begin - WARM_UP * refit
    of_methods = by_methods(cases, warm, end, refit, progress, method, simulator)
    found = {name: forecasts for name, (forecasts, _) in of_methods.items()}
    if len(found) > 1:
        best = np.full((cases.asked.size, len(QUANTILES)), np.nan)
        for week in np.arange(begin, end, WEEK).tolist():
            of_week = (cases.asked >= week) & (cases.asked < week + WEEK)
            best[of_week] = found[better(cases, found, week)][of_week]
        found[BEST] = best
    rows = np.all([np.isfinite(one[:, 0]) for one in found.values()], axis=0)
    rows &= (cases.asked >= begin) & (cases.asked < end)
    found[CLASSES] = by_class(cases)
    return {name: Evaluated(cases.take(rows), one[rows]) for name, one in found.items()}


def last_weeks(cases: Cases, weeks: float, name: str) -> tuple[float, float]:
    """Return the moments (s) from and until which the last weeks are forecast; an error if too few precede them."""
    end = float(cases.asked[-1]) + 1 if cases.asked.size else 1.0
    begin = end - weeks * WEEK
    before = (begin - cases.asked[0]) / WEEK if cases.asked.size else 0.0
    if before < WARM_UP + 1:
        raise SwflowError(
            f"{name}: {math.floor(10 * max(before, 0)) / 10} weeks before the {weeks:g} that are evaluated; expected "
            f"at least {WARM_UP + 1}; reduce --weeks"
        )
    return begin, end


def outcomes(found: Evaluated) -> pl.DataFrame:
    """
    Return one row per forecast whose outcome is known, with its errors.

    A job that had not started at the end of the data counts as a miss if it had waited for longer than the upper end by
    then, with its wait so far; otherwise its outcome is unknown (``hit`` is null), and only its number is stated. So is
    that of a job that was cancelled in the queue.

    Returns
    -------
    polars.DataFrame
        ``submit_time`` (the moment of the forecast, s), ``wait`` (decades), ``low``, ``median``, ``high`` (decades),
        ``hit``, ``width``, ``pinball``, ``score`` (interval score: width plus 20 times the miss), ``squared_error`` of
        the median, ``processors``, ``partition``, ``user`` and ``waited`` (s).
    """
    cases, forecasts = found
    value, started = cases.outcome()
    low, median, high = forecasts.T
    known = (started | (value > high)) & np.isfinite(low) & ~cases.gone(math.inf)
    losses = [
        np.maximum(q * (value - end), (q - 1) * (value - end)) for q, end in zip(QUANTILES, forecasts.T, strict=True)
    ]
    table = pl.DataFrame({
        "submit_time": cases.asked, "wait": value, "low": low, "median": median, "high": high,
        "hit": (low <= value) & (value <= high), "width": high - low, "pinball": np.mean(losses, axis=0),
        "score": interval_score(value, forecasts), "squared_error": (median - value) ** 2,
        "processors": cases.size, "waited": cases.waited,
        "partition": [str(name) for name in cases.partition], "user": [str(name) for name in cases.user],
    })  # fmt: skip
    return table.with_columns(hit=pl.when(pl.lit(known)).then("hit"))


def chance_scores(found: Mapping[str, Evaluated], most: int = 20_000) -> pl.DataFrame:
    """
    Compare the chances of starts within some times with what followed, by method, time and tenth of the chances.

    The chances of each day are computed from the evaluated forecasts before it, as `swflow.forecast.chances.Chances`
    does. At most about ``most`` forecasts are used, evenly spread. A job that had not started at the end of the data
    counts only within times for which it had waited.

    Returns
    -------
    polars.DataFrame
        ``method``, ``within`` (s), ``tenth`` (0 to 9), ``jobs``, ``chance`` (mean), ``started`` (share) and
        ``brier`` (mean squared difference of chance and outcome).
    """
    rows: list[tuple[str, float, float, float]] = []
    for method, (cases, forecasts) in found.items():
        every = max(1, round(cases.asked.size / most))
        (value, started), gone = cases.outcome(), cases.gone(math.inf)
        for day in np.unique(cases.asked // DAY) * DAY:
            of_day = np.flatnonzero((cases.asked >= day) & (cases.asked < day + DAY) & np.isfinite(forecasts[:, 0]))
            of_day = of_day[of_day % every == 0]
            chances = chances_of(cases, forecasts, float(day))(forecasts[of_day], cases.waited[of_day] > 0, _WITHIN)
            for place, within in enumerate(_WITHIN.tolist()):
                before = value[of_day] <= math.log10(within) + 1e-9
                known = (started[of_day] | ~before) & np.isfinite(chances[:, place]) & ~gone[of_day]
                pairs = zip(chances[known, place].tolist(), before[known].tolist(), strict=True)
                rows += [(method, within, chance, float(is_before)) for chance, is_before in pairs]
    columns = {"method": pl.String, "within": pl.Float64, "chance": pl.Float64, "started": pl.Float64}
    return (
        pl.DataFrame(rows, columns, orient="row")
        .with_columns(tenth=(pl.col("chance") * 10).cast(pl.Int64).clip(0, 9))
        .with_columns(brier=(pl.col("chance") - pl.col("started")) ** 2)
        .group_by("method", "within", "tenth", maintain_order=True)
        .agg(pl.len().alias("jobs"), pl.col("chance", "started", "brier").mean())
        .sort("method", "within", "tenth")
    )


#: The times (s) whose chances are evaluated.
_WITHIN = np.array([60.0, 3600.0, 4 * 3600.0, 86400.0])


def summary(found: Mapping[str, Evaluated], few: int = 100) -> pl.DataFrame:
    """
    Return coverage, width and scores by method, in all and by groups of jobs.

    Groups of fewer than ``few`` forecasts are left out; weeks if they have fewer than `FEW_OF_WEEK` as well.

    Returns
    -------
    polars.DataFrame
        ``method``, ``dimension`` (``all``, ``partition``, ``size``, ``user``, ``waited`` or ``week``), ``group``,
        ``jobs``, ``unknown`` (not started, within the interval so far), ``coverage`` with its 95 % confidence interval
        ``coverage_low`` and ``coverage_high`` over the weeks (null with fewer than eight), ``width`` (median, decades),
        ``pinball``, ``score``, ``squared_error``, ``median_error`` (median factor by which the median is wrong), and
        the shares of jobs that started before the ends and the median: ``before_low``, ``before_median``,
        ``before_high``. A job that starts exactly then, often at once, counts by the level of the quantile.
    """
    rows = []
    for method, evaluated in found.items():
        table = outcomes(evaluated)
        for dimension, group, some in _groups(table):
            if some.height >= {"all": 1, "week": min(few, FEW_OF_WEEK)}.get(dimension, few):
                rows.append({"method": method, "dimension": dimension, "group": group, **_scores(some)})
    return pl.DataFrame(rows, SCORE_COLUMNS)


#: The ends of forecasts and their median, in the order of their columns.
_ENDS = ("low", "median", "high")

#: The columns of a summary.
SCORE_COLUMNS = {
    "method": pl.String, "dimension": pl.String, "group": pl.String, "jobs": pl.Int64, "unknown": pl.Int64,
    "coverage": pl.Float64, "coverage_low": pl.Float64, "coverage_high": pl.Float64, "width": pl.Float64,
    "pinball": pl.Float64, "score": pl.Float64, "squared_error": pl.Float64, "median_error": pl.Float64,
    **{f"before_{name}": pl.Float64 for name in _ENDS},
}  # fmt: skip


def _groups(table: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield dimension, name and rows of the groups of jobs."""
    yield "all", "all", table
    size = table["processors"].to_numpy()
    third = third_of(size, thirds(size)) if table.height else np.zeros(0, int)
    hours = pl.col("waited") / 3600
    waited = (
        pl.when(hours <= 0).then(pl.lit("at submission")).when(hours <= 1).then(pl.lit("up to 1 h"))
        .when(hours <= 12).then(pl.lit("up to 12 h")).otherwise(pl.lit("longer"))
    )  # fmt: skip
    named = table.with_columns(
        size=pl.Series(["narrow", "medium", "wide"])[third], waited=waited,
        week=(pl.col("submit_time") // WEEK).cast(pl.Int64).cast(pl.String),
    )  # fmt: skip
    for dimension in ("partition", "size", "user", "waited", "week"):
        for (group,), some in named.group_by(dimension, maintain_order=True):
            yield dimension, str(group), some


def _scores(table: pl.DataFrame) -> dict[str, Any]:
    from swflow.analysis.intervals import difference_of
    from swflow.analysis.resampling import Resampled, mean_of

    known = table.filter(pl.col("hit").is_not_null())
    unknown = table.height - known.height
    if not known.height:
        return {"jobs": 0, "unknown": unknown}
    hits = mean_of(known.select("submit_time", hit=pl.col("hit").cast(pl.Float64)), "hit")
    nothing = Resampled(0.0, hits.weeks, np.zeros_like(hits.without), 0.0)
    low, high = difference_of(hits, nothing).interval
    return {
        "jobs": known.height, "unknown": unknown, "coverage": hits.value,
        "coverage_low": None if low is None else max(low, 0.0),
        "coverage_high": None if high is None else min(high, 1.0),
        "width": known["width"].median(),
        **{name: known[name].mean() for name in ("pinball", "score", "squared_error")},
        "median_error": 10 ** float((known["median"] - known["wait"]).abs().median()),  # type: ignore[arg-type]
        **{
            f"before_{name}": ((known["wait"] < known[name]) + level * (known["wait"] == known[name])).mean()
            for name, level in zip(_ENDS, QUANTILES, strict=True)
        },
    }  # fmt: skip
