"""Chances that a job starts within some times, from the outcomes of past forecasts that were similar."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, NamedTuple

import numpy as np

from swflow.forecast.cases import decades
from swflow.forecast.queue_state import local
from swflow.jobs.header import Header
from swflow.phrases import chance_in_words

#: The name of the only time of a clock.
BY_MORNING = "by_morning"

#: The past forecasts from which a chance is computed, and the fewest for it.
NEIGHBORS, FEWEST = 200, 30

#: The largest distance to the ends and the median of a similar forecast, decades (square root of the sum of squares).
SIMILAR = 2.0

#: The pairs of forecasts that are compared at a time, so that memory has a limit.
_COMPARED = 1 << 20

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
        Within("within_4h", "within 4 h", 4 * 3600.0), Within(BY_MORNING, "by tomorrow 09:00", float(morning)),
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
            past = np.flatnonzero(self.waits == group)
            past = past if past.size >= FEWEST else np.arange(self.value.size)
            at_a_time = max(1, _COMPARED // past.size)
            for some in np.split(rows, range(at_a_time, rows.size, at_a_time)):
                distance = sum(np.square(ends[some, axis, None] - self.ends[past, axis]) for axis in range(3))
                most = min(NEIGHBORS, past.size)
                near = np.argpartition(distance, (FEWEST - 1, most - 1))[:, :most]
                least = np.take_along_axis(distance, near[:, FEWEST - 1, None], -1)[:, 0]
                of, members = some[least <= SIMILAR**2], past[near[least <= SIMILAR**2]]
                value = moved(self.value[members], self.ends[members], ends[of])
                found[of] = started_within(value, self.started[members], within[of])
        return found


def interpolated(ends: np.ndarray, within: np.ndarray) -> np.ndarray:
    """
    Return the chances of starts within times (s) by the intervals alone: linear between ends and median (decades).

    Beyond an end, it is half of its level.

    Examples
    --------
    >>> interpolated(np.array([[1.0, 2.0, 4.0]]), np.array([[1.0, 10.0, 100.0, 1000.0, 1e6]])).round(3).tolist()
    [[0.025, 0.05, 0.5, 0.725, 0.975]]
    """
    at, apart = decades(within) + 0.0, ends + np.array([-1e-9, 0.0, 1e-9])
    low, median, high = apart[:, :1], apart[:, 1:2], apart[:, 2:]
    below, above = 0.05 + 0.45 * (at - low) / (median - low), 0.5 + 0.45 * (at - median) / (high - median)
    found = np.where(at < low, 0.025, np.where(at <= median, below, np.where(at <= high, above, 0.975)))
    found = np.where(within < 0, 0.0, found)
    return np.where(np.isnan(within), np.nan, found)


def moved(value: np.ndarray, past: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """
    Return waits (decades) moved from past forecasts to a new one: linear between ends and median, shifted beyond.

    The waits have the shape (…, forecasts in the past), their forecasts one more axis of length 3, and the new ones the
    shape (…, 3).

    Jobs that started at once remain jobs that start at once, because many start with the next pass of the scheduler.

    Examples
    --------
    >>> moved(np.array([0.5, 1.5, 2.0, 4.0]), np.array([[1.0, 2.0, 3.0]] * 4), np.array([0.0, 3.0, 5.0])).tolist()
    [0.0, 1.5, 3.0, 6.0]
    """
    low, median, high = past[..., 0], past[..., 1], past[..., 2]
    to_low, to_median, to_high = ends[..., 0, None], ends[..., 1, None], ends[..., 2, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        lower = to_low + (value - low) * np.where(median > low, (to_median - to_low) / (median - low), 0.0)
        upper = to_median + (value - median) * np.where(high > median, (to_high - to_median) / (high - median), 0.0)
    found = np.where(value <= median, lower, upper)
    found = np.where(value <= low, value + to_low - low, found)
    found = np.maximum(np.where(value > high, value + to_high - high, found), 0.0)
    at_once = math.log10(AT_ONCE)
    return np.where(value <= at_once, np.minimum(found, at_once), np.maximum(found, at_once + 1e-6))


def started_within(value: np.ndarray, started: np.ndarray, within: np.ndarray) -> np.ndarray:
    """
    Return the Kaplan-Meier estimates of the shares of waits (decades) that are at most some times (s).

    The last axis is that of the waits, or of the times.

    Examples
    --------
    >>> value = decades(np.array([0.0, 10.0, 100.0, 1000.0]))
    >>> started_within(value, np.array([True, True, False, True]), np.array([1.0, 60.0, 500.0, 5000.0])).tolist()
    [0.25, 0.5, 0.5, 1.0]
    """
    order = np.lexsort((~started, value))
    value, started = (np.take_along_axis(one, order, -1) for one in (value, started))
    at_risk = np.arange(value.shape[-1], 0, -1.0)
    survival = np.ones((*value.shape[:-1], value.shape[-1] + 1))
    np.cumprod(np.where(started, 1 - 1 / at_risk, 1.0), axis=-1, out=survival[..., 1:])
    passed = (value[..., None, :] <= decades(within)[..., None] + 1e-9).sum(axis=-1)
    shares = np.where(within < 0, 0.0, 1 - np.take_along_axis(survival, passed, -1))
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
