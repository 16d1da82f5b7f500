"""Compute processor use over time of a recorded schedule, without a table of all events."""

from typing import NamedTuple

import numpy as np
import polars as pl


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
    times = np.concatenate([end, start])  # so that processors are released first
    order = np.argsort(times, kind="stable")
    times = times[order]
    busy = np.cumsum(np.concatenate([-processors, processors])[order])
    length = np.diff(times, append=times[-1])
    most = int(np.argmax(np.where(length > 0, busy, -1)))  # only states that last count
    beyond, area = (float(np.cumsum(part)[-1]) for part in (np.where(busy > machine, length, 0.0), busy * length))
    peak = int(busy[most])
    return Use(peak, float(times[most]) if peak else 0.0, beyond, float(times[-1] - times[0]), area)


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
