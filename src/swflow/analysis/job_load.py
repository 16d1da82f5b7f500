"""Load that each job experiences between its submission and its end, without and with the backlog of the queue."""

from typing import NamedTuple

import numpy as np
import polars as pl

from swflow.compiled.kernel import Handle, Kernel
from swflow.errors import SwflowError
from swflow.jobs.busy import places_in_order, sealed
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
    times = sealed(submit, np.float64), sealed(end, np.float64)
    by_submit, by_end = places_in_order(submit), places_in_order(end)

    def over_stay(counted_from: np.ndarray, by_begin: np.ndarray) -> tuple[np.ndarray, int]:
        """Return each job's mean share of the machine in use by jobs from ``counted_from`` to end, and the peak use."""
        load, low = np.empty(submit.size), np.empty(submit.size)
        begin, whole = sealed(counted_from, np.float64), sealed(processors, np.int64)
        stays = _Stays(times[0], begin, times[1], by_submit, by_begin, by_end, whole, load, low)
        return load, _SWEEP(Handle([stays]), machine)

    load, peak = over_stay(start, places_in_order(start))
    backlog_load, _ = over_stay(submit, by_submit)
    return Loads(load, backlog_load, peak)


class _Stays(NamedTuple):
    """
    The times of all jobs (s), and their loads.

    ``by_submit``, ``by_begin`` and ``by_end`` are the indices that sort the jobs by submission, by the time at which
    they start to count, and by end; empty if the jobs are already sorted. Between a job's submission and its end,
    ``load`` and ``low`` store the high-order and low-order parts of the processor-seconds at the submission.
    """

    submit: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    by_submit: np.ndarray
    by_begin: np.ndarray
    by_end: np.ndarray
    processors: np.ndarray
    load: np.ndarray
    low: np.ndarray


# A number in twice the precision of a float64 is the unevaluated sum of two, (high, low): T. J. Dekker, "A
# floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.

#: The factor that splits a float64 into two halves of 26 bits.
_SPLITTER = 2.0**27 + 1


def _exact_sum(a: float, b: float) -> tuple[float, float]:
    """Return ``a + b`` as (high, low), without error."""
    high = a + b
    of_b = high - a
    return high, (a - (high - of_b)) + (b - of_b)


def _exact_product(a: float, b: float) -> tuple[float, float]:
    """Return ``a * b`` as (high, low), without error."""
    high = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def _add_area(high: float, low: float, level: int, since: float, now: float) -> tuple[float, float]:
    """Return the processor-seconds after ``level`` processors were busy from ``since`` to ``now``."""
    length, length_low = _exact_sum(now, -since)
    more, more_low = _exact_product(float(level), length)
    total, total_low = _exact_sum(high, more)
    return _exact_sum(total, total_low + (low + (more_low + level * length_low)))


def _share_of_machine(
    high: float, low: float, before: float, before_low: float, submit: float, end: float, machine: int
) -> float:
    """Return the processor-seconds between submission and end as a share of the whole machine, rounded once."""
    used, used_low = _exact_sum(high, -before)
    used, used_low = _exact_sum(used, used_low + (low - before_low))
    stay, stay_low = _exact_sum(end, -submit)
    whole, whole_low = _exact_product(stay, float(machine))
    whole_low += stay_low * machine
    quotient = used / whole
    covered, covered_low = _exact_product(quotient, whole)
    left = ((used - covered) - covered_low) + (used_low - quotient * whole_low)
    return quotient + left / whole


def _sweep(stays: _Stays, machine: int) -> int:
    """Process all submissions, starts and ends in order of time; return the largest number of busy processors."""
    submit, begin, end, processors = stays.submit, stays.begin, stays.end, stays.processors
    load, load_low = stays.load, stays.low
    by_submit, by_begin, by_end = stays.by_submit, stays.by_begin, stays.by_end
    jobs = submit.size
    submitted = begun = ended = 0
    level = peak = 0
    area = area_low = 0.0
    last = 0.0  # the last change of the level
    while submitted < jobs or ended < jobs:
        next_submit = next_begin = next_end = np.inf
        if submitted < jobs:
            next_submit = submit[by_submit[submitted] if by_submit.size else submitted]
        if begun < jobs:
            next_begin = begin[by_begin[begun] if by_begin.size else begun]
        if ended < jobs:
            next_end = end[by_end[ended] if by_end.size else ended]
        now = min(next_submit, next_begin, next_end)
        if next_begin == now or next_end == now:
            area, area_low = _add_area(area, area_low, level, last, now)
            last = now
            while begun < jobs:
                job = by_begin[begun] if by_begin.size else begun
                if begin[job] != now:
                    break
                level += processors[job]
                begun += 1
            first = ended
            while ended < jobs:
                job = by_end[ended] if by_end.size else ended
                if end[job] != now:
                    break
                level -= processors[job]
                ended += 1
            peak = max(peak, level)
            for place in range(first, ended):
                job = by_end[place] if by_end.size else place
                if end[job] > submit[job]:
                    load[job] = _share_of_machine(
                        area, area_low, load[job], load_low[job], submit[job], end[job], machine
                    )
        while submitted < jobs:
            job = by_submit[submitted] if by_submit.size else submitted
            if submit[job] != now:
                break
            if end[job] > submit[job]:
                load[job], load_low[job] = _add_area(area, area_low, level, last, now)
            else:
                load[job] = level / machine
            submitted += 1
    return peak


_SWEEP = Kernel(_sweep)
