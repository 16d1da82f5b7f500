"""Cases: moments at which the wait of a job is forecast, with the data known then and the wait that followed."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cases:
    """Forecasts to make, one per row, sorted by the moment at which they are asked for."""

    names: tuple[str, ...]  # the features
    values: np.ndarray  # float32 (cases, features): values at the moment; NaN where they are unknown
    asked: np.ndarray  # float64 (cases,): the moment of the forecast, seconds
    # float64 (cases,): the seconds from this moment until the start; NaN if there was none before the end of the data
    wait: np.ndarray
    waited: np.ndarray  # float64 (cases,): the seconds for which the job had waited before; 0 at its submission
    size: np.ndarray  # float64 (cases,): the processors
    # object (cases,): labels, for groups
    partition: np.ndarray
    user: np.ndarray
    job: np.ndarray  # int64 (cases,): the job's number
    end: float  # the end of the data, seconds: jobs without a wait had not started by then
    # float64 (cases,): the seconds from the moment until the job left the queue without a start; infinite for others
    left: np.ndarray | None = None
    limit: np.ndarray | None = None  # float64 (cases,): the time limits of a table of polls, seconds

    def take(self, rows: np.ndarray) -> "Cases":
        """Return some of the cases, by a mask or by indices."""
        columns = ("values", "asked", "wait", "waited", "size", "partition", "user", "job")
        parts = {name: getattr(self, name)[rows] for name in columns}
        left, limit = (None if part is None else part[rows] for part in (self.left, self.limit))
        return Cases(names=self.names, end=self.end, left=left, limit=limit, **parts)

    def known(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the waits as far as they are known at a moment (s), in decades, and whether the jobs have started.

        Starts at the moment or later are not used: a job that has not started before has its wait up to the moment, or
        up to its cancellation, a lower bound.
        """
        with np.errstate(invalid="ignore"):
            started = self.asked + self.wait < now
        return self._waits(started, now), started

    def gone(self, now: float) -> np.ndarray:
        """Return which jobs left the queue without a start before a moment (s); they count for nothing afterwards."""
        return np.zeros(self.asked.size, bool) if self.left is None else self.asked + self.left < now

    def outcome(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the waits of all data, in decades, and whether the jobs have started, as `known`."""
        started = np.isfinite(self.wait)
        return self._waits(started, self.end), started

    def _waits(self, started: np.ndarray, now: float) -> np.ndarray:
        waited = now - self.asked if self.left is None else np.minimum(now - self.asked, self.left)
        return decades(np.where(started, self.wait, waited))


def decades(wait: np.ndarray) -> np.ndarray:
    """
    Return the logarithm to base 10 of waits in seconds; waits below 1 s count as 1 s.

    Examples
    --------
    >>> decades(np.array([0.0, 1.0, 1000.0])).tolist()
    [0.0, 0.0, 3.0]
    """
    return np.log10(np.maximum(wait, 1.0))


def with_started(asked: np.ndarray, start: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """
    Yield each case in its order, with the cases that have started before it and not before an earlier case.

    A case never has itself, or another start of its own moment. The moments ``asked`` (s) increase; ``start`` (s)
    is not finite for jobs that did not start.

    Examples
    --------
    >>> list(with_started(np.array([0.0, 10.0, 20.0]), np.array([15.0, 10.0, np.nan])))
    [(0, []), (1, []), (2, [1, 0])]
    """
    start, asked = np.where(np.isfinite(start), start, np.inf), np.where(np.isfinite(asked), asked, -np.inf)
    order = np.argsort(start, kind="stable")
    ends = np.searchsorted(start[order], asked, side="left").tolist()
    for row, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        yield row, order[begin:end].tolist()


class Recent:
    """Recent values by key: a mean with exponential ``weight`` of the latest one, the last value, and their number."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.known: dict[Hashable, tuple[float, float, int]] = {}

    def add(self, key: Hashable, value: float) -> None:
        """Add the latest value of a key."""
        mean, _, count = self.known.get(key, (value, value, 0))
        weight = max(self.weight, 1 / (count + 1))
        self.known[key] = mean + weight * (value - mean), value, count + 1

    def of(self, key: Hashable) -> tuple[float, float, int]:
        """Return mean, last value and number of a key; NaN without values."""
        return self.known.get(key, (np.nan, np.nan, 0))


def thirds(size: np.ndarray) -> np.ndarray:
    """
    Return the two sizes that divide jobs into thirds: the largest of the narrow and of the medium ones.

    Examples
    --------
    >>> thirds(np.array([1, 1, 1, 2, 2, 4, 4, 8, 8, 16])).tolist()
    [2, 4]
    """
    return np.quantile(size, [1 / 3, 2 / 3], method="lower")


def third_of(size: np.ndarray, bounds: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the third of each size: 0, 1 or 2."""
    return np.searchsorted(np.asarray(bounds), size, side="left")
