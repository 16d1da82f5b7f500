"""Chances that a job starts within some times, from the outcomes of past forecasts that were similar."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from swflow.forecast.cases import decades
from swflow.forecast.queue_state import local
from swflow.jobs.header import Header
from swflow.phrases import chance_in_words

#: The past forecasts from which a chance is computed, and the fewest for it.
NEIGHBORS, FEWEST = 200, 30

#: The largest distance to the ends and the median of a similar forecast, decades (square root of the sum of squares).
SIMILAR = 2.0


#: The time within which a job starts at once, seconds: about a pass of the scheduler.
AT_ONCE = 60.0


class Within(NamedTuple):
    """A time within which a job can start."""

    name: str  # the column of tables
    label: str
    seconds: float  # from the moment; NaN if it is unknown


def times(now: float, header: Mapping[str, list[str]] | None) -> list[Within]:
    """
    Return the times whose chances are stated, for a moment (s) of a log with a header.

    Without a known start of the log, its next morning is unknown.

    Examples
    --------
    >>> header = {"UnixStartTime": ["1700000000"], "TimeZoneString": ["Europe/Stockholm"]}  # 23:13:20
    >>> [(one.label, one.seconds) for one in times(0.0, header)][-2:]
    [('by tomorrow 09:00', 35200.0), ('within 24 h', 86400.0)]
    """
    morning = np.nan
    if header and Header.of(header).start is not None:
        next_day = local(now, header).date() + timedelta(days=1)
        morning = Header.of(header).seconds_since_start(datetime.combine(next_day, time(9))) - now
    return [
        Within("at_once", "at once", AT_ONCE), Within("within_1h", "within 1 h", 3600.0),
        Within("within_4h", "within 4 h", 4 * 3600.0), Within("by_morning", "by tomorrow 09:00", float(morning)),
        Within("within_24h", "within 24 h", 86400.0),
    ]  # fmt: skip


@dataclass
class Chances:
    """
    Past forecasts with their outcomes, as far as these are known.

    The chance of a start within some time is the share of such starts after the `NEIGHBORS` past forecasts with the
    most similar ends and median, by the Kaplan-Meier estimator, because some of these jobs have not started. Past waits
    are first moved to the same place relative to the ends and the median of the new forecast.
    """

    ends: np.ndarray  # float64 (cases, 3): lower end, median and upper end as they were issued, decades
    value: np.ndarray  # float64 (cases,): the wait, or the wait so far, decades
    started: np.ndarray  # bool (cases,)
    waits: np.ndarray  # bool (cases,): whether the job had waited before the forecast

    def __call__(self, ends: np.ndarray, waits: np.ndarray, within: np.ndarray) -> np.ndarray:
        """
        Return the chances of forecasts to start within times (s), of shape (forecasts, times).

        ``within`` has the same shape, or one time per column. NaN for an unknown time. With too few similar
        forecasts in the past, they are interpolated.
        """
        within = np.broadcast_to(within, (len(ends), np.shape(within)[-1]))
        found = interpolated(ends, within)
        for group in (False, True):
            rows = np.flatnonzero(waits == group)
            if not rows.size or self.value.size < FEWEST:
                continue
            past, tree = self._of_waiting if group else self._of_new
            distance, near = tree.query(ends[rows], min(NEIGHBORS, past.size))
            similar = distance[:, FEWEST - 1] <= SIMILAR
            for row, members in zip(rows[similar], past[near[similar]], strict=True):
                value = moved(self.value[members], self.ends[members], ends[row])
                found[row] = started_within(value, self.started[members], within[row])
        return found

    @cached_property
    def _of_new(self) -> tuple[np.ndarray, Any]:
        return self._similar(~self.waits)

    @cached_property
    def _of_waiting(self) -> tuple[np.ndarray, Any]:
        return self._similar(self.waits)

    def _similar(self, chosen: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the past forecasts that are chosen, or all if these are few, and the tree of their ends."""
        from scipy.spatial import cKDTree

        past = np.flatnonzero(chosen)
        past = past if past.size >= FEWEST else np.arange(self.value.size)
        return past, cKDTree(self.ends[past])


def interpolated(ends: np.ndarray, within: np.ndarray) -> np.ndarray:
    """
    Return the chances of starts within times (s) by the intervals alone: linear between ends and median (decades).

    Beyond an end, it is half of its level.

    Examples
    --------
    >>> interpolated(np.array([[1.0, 2.0, 4.0]]), np.array([[1.0, 10.0, 100.0, 1000.0, 1e6]])).round(3).tolist()
    [[0.025, 0.05, 0.5, 0.725, 0.975]]
    """
    apart = ends + np.array([-1e-9, 0.0, 1e-9])
    levels = np.array([0.05, 0.5, 0.95])
    rows = zip(decades(within) + 0.0, apart, strict=True)
    found = np.array([np.interp(at, knots, levels, left=0.025, right=0.975) for at, knots in rows])
    found = np.where(within < 0, 0.0, found.reshape(within.shape))
    return np.where(np.isnan(within), np.nan, found)


def moved(value: np.ndarray, past: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """
    Return waits (decades) moved from past forecasts to a new one: linear between ends and median, shifted beyond.

    Jobs that started at once remain jobs that start at once, because many start with the next pass of the scheduler.

    Examples
    --------
    >>> moved(np.array([0.5, 1.5, 2.0, 4.0]), np.array([[1.0, 2.0, 3.0]] * 4), np.array([0.0, 3.0, 5.0])).tolist()
    [0.0, 1.5, 3.0, 6.0]
    """
    low, median, high = past.T
    with np.errstate(invalid="ignore", divide="ignore"):
        lower = ends[0] + (value - low) * np.where(median > low, (ends[1] - ends[0]) / (median - low), 0.0)
        upper = ends[1] + (value - median) * np.where(high > median, (ends[2] - ends[1]) / (high - median), 0.0)
    found = np.where(value <= median, lower, upper)
    found = np.where(value <= low, value + ends[0] - low, found)
    found = np.maximum(np.where(value > high, value + ends[2] - high, found), 0.0)
    at_once = math.log10(AT_ONCE)
    return np.where(value <= at_once, np.minimum(found, at_once), np.maximum(found, at_once + 1e-6))


def started_within(value: np.ndarray, started: np.ndarray, within: np.ndarray) -> np.ndarray:
    """
    Return the Kaplan-Meier estimates of the shares of waits (decades) that are at most some times (s).

    Examples
    --------
    >>> value = decades(np.array([0.0, 10.0, 100.0, 1000.0]))
    >>> started_within(value, np.array([True, True, False, True]), np.array([1.0, 60.0, 500.0, 5000.0])).tolist()
    [0.25, 0.5, 0.5, 1.0]
    """
    order = np.lexsort((~started, value))
    value, started = value[order], started[order]
    at_risk = np.arange(value.size, 0, -1.0)
    survival = np.append(1.0, np.cumprod(np.where(started, 1 - 1 / at_risk, 1.0)))
    shares = 1 - survival[np.searchsorted(value, decades(within) + 1e-9, side="right")]
    shares[within < 0] = 0.0
    return np.where(np.isnan(within), np.nan, np.round(shares, 6))


def shown(chances: Sequence[float], labels: Sequence[Within]) -> list[tuple[str, str]]:
    """Return the known chances as labels and texts, in the order of the times."""
    known = [(one, chance) for one, chance in zip(labels, chances, strict=True) if chance == chance]
    return [(one.label, chance_in_words(chance)) for one, chance in sorted(known, key=lambda pair: pair[0].seconds)]


def chances_of(cases: Any, issued: np.ndarray, now: float) -> Chances:
    """Return the past forecasts of cases whose outcome is known at a moment (s), or that still wait."""
    rows = np.flatnonzero(np.isfinite(issued[:, 0]) & (cases.asked < now) & ~cases.gone(now))
    some = cases.take(rows)
    value, started = some.known(now)
    return Chances(issued[rows], value, started, some.waited > 0)
