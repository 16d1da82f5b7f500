"""Arrival processes of synthetic workloads: the log's submit times, or a renewal process with daily cycles."""

import math
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from swflow.jobs.header import Header
from swflow.workload.models.lublin import SECONDS_A_DAY, SECONDS_A_SLOT, SLOTS_A_DAY, points_at, seconds_at
from swflow.workload.models.pools import Plain, as_plain, of_plain

DAYS_A_WEEK = 7
SECONDS_A_WEEK = DAYS_A_WEEK * SECONDS_A_DAY
SLOTS_A_WEEK = DAYS_A_WEEK * SLOTS_A_DAY

#: Smallest weight of a half hour, so that the cycle's clock always advances.
_LEAST_WEIGHT = 1e-3

#: Seconds added to every gap before the fit of its distribution: logs record whole seconds, including 0.
_HALF_A_SECOND = 0.5


@dataclass(frozen=True)
class LogArrivals:
    """Arrivals at the submit times of a log: ascending, seconds since the log's start."""

    submit_times: np.ndarray

    kind = "log"

    def sample(self, jobs: int, rng: np.random.Generator) -> np.ndarray:
        """
        Return the first submit times; repeat them after whole weeks if more jobs are needed.

        Examples
        --------
        >>> LogArrivals(np.array([0.0, 60.0])).sample(3, np.random.default_rng(1)).tolist()
        [0.0, 60.0, 604800.0]
        """
        number = np.arange(jobs)
        span = self.submit_times[-1] - self.submit_times[0]
        again = SECONDS_A_WEEK * np.floor(span / SECONDS_A_WEEK + 1)
        return self.submit_times[number % len(self.submit_times)] + number // len(self.submit_times) * again

    def to_dict(self) -> dict[str, object]:
        """Return the arrivals as plain data: the first one, and the gaps between them."""
        gaps = np.diff(self.submit_times)
        whole = not (gaps % 1).any()
        return {
            "kind": self.kind,
            "first": float(self.submit_times[0]),
            "gaps": gaps.astype(np.int64).tolist() if whole else gaps.tolist(),
        }


@dataclass(frozen=True)
class DailyCycle:
    """
    A renewal process whose clock runs faster when more jobs arrive.

    The gaps on that clock have a Weibull distribution. Its shape is 1 for a Poisson process; smaller values give
    bursts.
    """

    first: float  # the first submit time, seconds since the log's start
    clock: float  # local time of the site at the log's start: seconds since Monday, 0:00
    half_hours: np.ndarray  # arrivals in each half hour of the day, relative to the mean half hour
    days: np.ndarray  # arrivals on each day of the week, from Monday, relative to the mean day
    gap_shape: float
    gap_mean: float  # seconds

    kind = "daily-cycle"

    def sample(self, jobs: int, rng: np.random.Generator) -> np.ndarray:
        """Draw submit times: whole seconds, ascending, shape (jobs,)."""
        gaps = rng.weibull(self.gap_shape, jobs - 1)
        expected = math.gamma(1 + 1 / self.gap_shape)  # the mean of the Weibull distribution with scale 1
        points = np.concatenate([[0.0], np.cumsum(gaps * (self.gap_mean / expected / SECONDS_A_SLOT))])
        week = _week(self.half_hours, self.days)
        start = points_at(week, np.array([self.first + self.clock]))
        return np.floor(seconds_at(week, start + points) - self.clock)

    def to_dict(self) -> dict[str, object]:
        """Return the process as plain data."""
        return {"kind": self.kind, **as_plain(self)}


def arrivals_from_dict(content: Plain) -> LogArrivals | DailyCycle:
    """Create an arrival process from the result of its ``to_dict``."""
    if content["kind"] == LogArrivals.kind:
        return LogArrivals(content["first"] + np.concatenate([[0.0], np.cumsum(content["gaps"], dtype=float)]))
    return DailyCycle(**of_plain({name: value for name, value in content.items() if name != "kind"}))


def fit_daily_cycle(submit_times: np.ndarray, header: Header) -> DailyCycle:
    """
    Fit the arrival process to a log.

    Submit times are ascending, in seconds since the log's start. UnixStartTime and the time zone of the header give the
    site's local time. Without them, the log starts on a Monday at 0:00. The zone's offset at the log's start applies
    throughout; daylight saving is ignored.

    The weights are arrivals per half hour and per day of the week, divided by how often each occurs in the log. The
    gaps are transformed to the clock of this cycle. A Weibull distribution is fitted to them by maximum likelihood and
    scaled so that the mean gap equals the log's.

    Examples
    --------
    >>> working_hours = np.concatenate([day * 86400.0 + np.arange(9, 17) * 3600 for day in range(70)])
    >>> cycle = fit_daily_cycle(working_hours, Header())
    >>> float(cycle.half_hours[18].round(1)), float(cycle.half_hours[3].round(1)), cycle.days.round(1).tolist()
    (6.0, 0.0, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    >>> bool(abs(cycle.sample(560, np.random.default_rng(1))[-1] / working_hours[-1] - 1) < 0.2)
    True
    """
    clock = clock_at_start(header)
    local = np.asarray(submit_times, dtype=float) + clock
    first_slot, last_slot = (int(time // SECONDS_A_SLOT) for time in (local[0], local[-1]))
    seen = np.bincount(np.arange(first_slot, last_slot + 1) % SLOTS_A_WEEK, minlength=SLOTS_A_WEEK)
    arrived = np.bincount((local // SECONDS_A_SLOT).astype(np.int64) % SLOTS_A_WEEK, minlength=SLOTS_A_WEEK)
    by_day = (DAYS_A_WEEK, SLOTS_A_DAY)
    half_hours = _relative(arrived.reshape(by_day).sum(axis=0), seen.reshape(by_day).sum(axis=0))
    days = _relative(arrived.reshape(by_day).sum(axis=1), seen.reshape(by_day).sum(axis=1))
    points = points_at(_week(half_hours, days), local)
    gaps = np.diff(points) * SECONDS_A_SLOT
    return DailyCycle(
        first=float(submit_times[0]),
        clock=clock,
        half_hours=half_hours,
        days=days,
        gap_shape=_weibull_shape(gaps + _HALF_A_SECOND),
        gap_mean=float(gaps.mean()) if len(gaps) else float(SECONDS_A_SLOT),
    )


def clock_at_start(header: Header) -> float:
    """Return the site's local time at second 0 of a log: seconds since Monday, 0:00."""
    if header.start is None:
        return 0.0
    moment = header.local_time()
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return (timedelta(days=moment.weekday()) + (moment - midnight)).total_seconds()


def _relative(arrived: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return arrivals per observation with mean 1; slots without observations get the mean."""
    rate = np.where(seen > 0, arrived / np.maximum(seen, 1), arrived.sum() / seen.sum())
    weights = np.maximum(rate / rate.mean(), _LEAST_WEIGHT)
    return weights / weights.mean()


def _week(half_hours: np.ndarray, days: np.ndarray) -> np.ndarray:
    """Return the points of a week that elapse until each half hour, about one in each: shape (337,)."""
    weights = np.outer(days, half_hours).ravel()
    return np.concatenate([[0.0], np.cumsum(weights / weights.mean())])


def _weibull_shape(gaps: np.ndarray) -> float:
    """Return the maximum-likelihood shape, by bisection."""
    if len(gaps) < 2 or np.ptp(gaps) == 0:
        return 1.0
    logs = np.log(gaps)
    logs -= logs.max()
    low, high = 0.05, 20.0
    for _ in range(60):
        shape = (low + high) / 2
        power = np.exp(shape * logs)
        # derivative of the log-likelihood; it decreases with the shape
        slope = 1 / shape + logs.mean() - float(power @ logs) / power.sum()
        low, high = (shape, high) if slope > 0 else (low, shape)
    return (low + high) / 2
