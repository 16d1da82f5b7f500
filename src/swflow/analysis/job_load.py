"""Load that each job experiences between its submission and its end, without and with the backlog of the queue."""

from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import END_OF_TIME


class Loads(NamedTuple):
    """
    The loads of the jobs of one schedule (see `loads_of`), and the most processors that were busy at once.

    A job that ends at an instant releases its processors before other jobs start. The peak exceeds the machine only if
    a log records an impossible schedule.
    """

    load: np.ndarray
    backlog_load: np.ndarray
    peak_processors: int


def loads_of(outcomes: pl.DataFrame, machine: int) -> Loads:
    """
    Compute both loads of every job of a run, and the most processors that were busy at once.

    *Load*: the mean utilization of the machine between a job's submission and its end. With ``A(t)`` the
    processor-seconds used up to t, it is ``(A(end) - A(submit)) / ((end - submit) * machine)``. A job that ends when it
    is submitted gets the utilization at that time. The load exceeds 1 only where a log records more busy processors
    than the machine has.

    *Load with the backlog of the queue*: the mean demand for processors between submission and end. The demand at a
    time is the number of processors of all jobs that were submitted and have not ended, running *and* waiting, over the
    processors of the machine. The load cannot exceed 1, whether the queue is short or long; this one grows with it.

    Processor-seconds are added in twice the precision of a float64 and divided once, so that the load of a job that
    stays for a nanosecond or more is the float64 nearest to the true value. The time is O(n log n) in the
    number of jobs.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 3; section 7
    raises the question of how to include the backlog in the load.

    Examples
    --------
    >>> times = {"submit_time": [0.0, 0.0], "start_time": [0.0, 10.0], "end_time": [10.0, 20.0]}
    >>> loads = loads_of(pl.DataFrame(times | {"processors": [4, 2]}), 4)
    >>> loads.load.tolist(), loads.backlog_load.tolist()
    ([1.0, 0.75], [1.5, 1.0])
    """
    for name in ("submit_time", "start_time", "end_time", "processors"):
        if name in outcomes.columns and not outcomes.schema[name].is_numeric():
            raise SwflowError(f"outcomes: column {name} has type {outcomes.schema[name]}; expected numbers")
    submit, start, processors = (outcomes[name].to_numpy() for name in ("submit_time", "start_time", "processors"))
    end = outcomes["end_time"].to_numpy() if "end_time" in outcomes.columns else start + outcomes["run_time"].to_numpy()
    for name, values in {"submit time": submit, "end": end, "start": start}.items():
        if values.size and not (values.min() >= -END_OF_TIME and values.max() <= END_OF_TIME):
            place = int(np.argmax(~(np.abs(values) <= END_OF_TIME)))
            raise SwflowError(f"load: job {place}: the {name} is {values[place]:g}; expected at most {END_OF_TIME:.3g}")
    submit, start, end = (times.astype(np.float64) for times in (submit, start, end))
    if not submit.size:
        return Loads(np.empty(0), np.empty(0), 0)
    running, present = (_Demand.of(begin, end, processors, submit.min()) for begin in (start, submit))
    peak = int(running.level.max())
    return Loads(running.over(submit, end, machine), present.over(submit, end, machine), peak)


# A number in twice the precision of a float64 is the unevaluated sum of two, (high, low): T. J. Dekker, "A
# floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.

#: A float64, or an array of them.
Values = TypeVar("Values", float, np.ndarray)

#: The factor that splits a float64 into two halves of 26 bits.
_SPLITTER = 2.0**27 + 1


def _exact_sum(a: Values, b: Values) -> tuple[Values, Values]:
    """Return ``a + b`` as (high, low), without error."""
    high = a + b
    of_b = high - a
    return high, (a - (high - of_b)) + (b - of_b)


def _exact_product(a: Values, b: Values) -> tuple[Values, Values]:
    """Return ``a * b`` as (high, low), without error."""
    high = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def _areas(level: np.ndarray, since: np.ndarray, until: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the processor-seconds of intervals in which ``level`` processors are in use, as (high, low)."""
    length, length_low = _exact_sum(until, -since)
    area, area_low = _exact_product(level, length)
    return area, area_low + level * length_low


class _Demand(NamedTuple):
    """Processors in use over time: the times at which the number changes, the number, and the area before each time."""

    time: np.ndarray  # ascending, and before all submissions
    level: np.ndarray  # float64: processors from this time on
    area: np.ndarray  # processor-seconds before this time, with `low` in twice the precision
    low: np.ndarray

    @classmethod
    def of(cls, begin: np.ndarray, end: np.ndarray, processors: np.ndarray, first: float) -> "_Demand":
        """Return the demand of jobs that count from ``begin`` to ``end``; ``first`` is the first submission."""
        changes = np.concatenate([begin, end])
        order = np.argsort(changes, kind="stable")
        time = np.append(min(first, changes[order[0]]), changes[order])
        level = np.append(0, np.cumsum(np.concatenate([processors, -processors])[order])).astype(np.float64)
        last = np.append(time[1:] > time[:-1], True)  # the last of the changes at one instant
        time, level = time[last], level[last]
        part, low = _areas(level[:-1], time[:-1], time[1:])
        # The error of each addition is known and added to the low parts (T. Ogita, S. M. Rump, S. Oishi, "Accurate sum
        # and dot product", SIAM Journal on Scientific Computing 26(6), 2005).
        area = np.append(0.0, np.cumsum(part))
        _, error = _exact_sum(area[:-1], part)
        return cls(time, level, area, np.append(0.0, np.cumsum(low + error)))

    def until(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the processor-seconds up to each time, as (high, low)."""
        state = np.searchsorted(self.time, time, side="right") - 1
        part, low = _areas(self.level[state], self.time[state], time)
        area, error = _exact_sum(self.area[state], part)
        return _exact_sum(area, error + (self.low[state] + low))

    def over(self, submit: np.ndarray, end: np.ndarray, machine: int) -> np.ndarray:
        """Return the mean level from each submission to the end as a share of the machine, rounded once."""
        before, before_low = self.until(submit)
        used, used_low = self.until(end)
        used, error = _exact_sum(used, -before)
        used, used_low = _exact_sum(used, error + (used_low - before_low))
        stay, stay_low = _exact_sum(end, -submit)
        whole, whole_low = _exact_product(stay, np.full(stay.size, float(machine)))
        whole_low += stay_low * machine
        at_once = self.level[np.searchsorted(self.time, submit, side="right") - 1] / machine
        stays = end > submit
        whole = np.where(stays, whole, 1.0)
        quotient = used / whole
        covered, covered_low = _exact_product(quotient, whole)
        left = ((used - covered) - covered_low) + (used_low - quotient * whole_low)
        return np.where(stays, quotient + left / whole, at_once)
