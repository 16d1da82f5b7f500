"""Compute processor use over time of a recorded schedule, without a table of all events."""

from typing import NamedTuple

import numpy as np
import polars as pl

from swflow.compiled.kernel import Handle, Kernel


class Use(NamedTuple):
    """Processor use of a schedule; jobs that end at an instant release their processors before other jobs start."""

    peak: int  # the largest number of processors that are busy at once
    moment: float  # time at which the peak first occurs, seconds
    beyond: float  # time in which more processors are busy than the machine has, seconds
    span: float  # time from the first start to the last end, seconds
    area: float  # processor-seconds


def use_of(start: np.ndarray, end: np.ndarray, processors: np.ndarray, machine: int) -> Use:
    """
    Return the processor use of a schedule.

    Starts and ends are in seconds, of at least one job, each end after the start. Jobs with 0 processors count for the
    span only.

    Examples
    --------
    >>> use_of(np.array([1.0, 5.0]), np.array([11.0, 10.0]), np.array([3, 2]), 4)
    Use(peak=5, moment=5.0, beyond=5.0, span=10.0, area=40.0)
    """
    by_start, by_end = places_in_order(start), places_in_order(end)
    times = sealed(start, np.float64), sealed(end, np.float64)
    found = np.zeros(4)
    peak = _USE(Handle([_Events(*times, by_start, by_end, sealed(processors, np.int64), found)]), machine)
    return Use(peak, *found.tolist())


def recorded_use(jobs: pl.DataFrame, machine: int) -> Use | None:
    """Return the processor use by the recorded times (s) of the jobs whose times are known; None if there are none."""
    start = jobs["submit_time"] + jobs["wait_time"]
    end = start + jobs["run_time"]
    ran = ((end > start) & (jobs["processors"] > 0)).fill_null(False)
    if not ran.any():
        return None
    columns = (start, end, jobs["processors"])
    start, end, processors = (column if ran.all() else column.filter(ran) for column in columns)
    return use_of(start.to_numpy(), end.to_numpy(), processors.to_numpy(), machine)


def sealed(values: np.ndarray, dtype: type | None = None) -> np.ndarray:
    """Return a read-only view. Kernels then compile once, for writable and read-only arrays alike."""
    view: np.ndarray = np.ascontiguousarray(values, dtype).view()
    view.flags.writeable = False
    return view


def places_in_order(times: np.ndarray) -> np.ndarray:
    """Return the indices that sort the times, int32, or an empty array if the times are already sorted."""
    if not (times[1:] < times[:-1]).any():
        return np.empty(0, np.int32)
    return np.argsort(times, kind="stable").astype(np.int32)


class _Events(NamedTuple):
    """Starts and ends, their sort orders (empty if already sorted), and results other than the peak."""

    start: np.ndarray
    end: np.ndarray
    by_start: np.ndarray
    by_end: np.ndarray
    processors: np.ndarray
    found: np.ndarray


def _use(events: _Events, machine: int) -> int:
    """Compute the processor use in one pass over all starts and ends; see `use_of`."""
    start, end, by_start, by_end = events.start, events.end, events.by_start, events.by_end
    processors, found = events.processors, events.found
    jobs = start.size
    begun = ended = 0
    busy = peak = 0
    moment = beyond = area = 0.0
    first = last = start[by_start[0] if by_start.size else 0]
    while ended < jobs:
        now = end[by_end[ended] if by_end.size else ended]
        if begun < jobs:
            now = min(now, start[by_start[begun] if by_start.size else begun])
        area += busy * (now - last)
        if busy > machine:
            beyond += now - last
        last = now
        while ended < jobs:
            job = by_end[ended] if by_end.size else ended
            if end[job] != now:
                break
            busy -= processors[job]
            ended += 1
        while begun < jobs:
            job = by_start[begun] if by_start.size else begun
            if start[job] != now:
                break
            busy += processors[job]
            begun += 1
        if busy > peak:
            peak, moment = busy, now
    found[0], found[1], found[2], found[3] = moment, beyond, last - first, area
    return peak


_USE = Kernel(_use)
