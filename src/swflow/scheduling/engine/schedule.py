"""Schedules: when and where each job of a problem runs."""

from dataclasses import dataclass

import numpy as np

from swflow.scheduling.engine.items import Items


@dataclass(frozen=True)
class Schedule:
    """
    The solution of a problem.

    Parameters
    ----------
    start : float64 array of shape (jobs,)
        Start times, seconds.
    submit : float64 array of shape (jobs,)
        Submit times, seconds.
    end : float64 array of shape (jobs,)
        End times, seconds.
    run : float64 array of shape (jobs,)
        Run times on the chosen processors, seconds.
    processors : int64 array of shape (jobs,)
        Processors, as chosen.
    promise : float64 array of shape (jobs,)
        The start of the reservation that each job got at its submission under conservative backfilling; else NaN.
    cluster : int64 array of shape (jobs,)
        The index of the machine of each job.
    penalty : float64 array of shape (jobs,)
        How long shared resources prolonged each job, seconds.
    killed : bool array of shape (jobs,)
        Whether a job was killed because of that; empty if penalties do not change ends.
    offsets : int64 array of shape (jobs + 1,)
        Of numbered processors: job ``i`` has the ranges ``offsets[i]`` to before ``offsets[i + 1]``.
    ranges : int32 array of shape (ranges, 2)
        First and last processor of every range, numbered from 0, ascending within a job.
    """

    start: np.ndarray
    submit: np.ndarray
    end: np.ndarray
    run: np.ndarray
    processors: np.ndarray
    promise: np.ndarray
    cluster: np.ndarray
    penalty: np.ndarray
    killed: np.ndarray
    offsets: np.ndarray
    ranges: np.ndarray

    @classmethod
    def of_start(cls, jobs: Items, start: np.ndarray) -> "Schedule":
        """Return the schedule of jobs on the counted processors of one machine."""
        none, zero = np.zeros(0, np.int64), np.broadcast_to(0.0, start.shape)
        return cls(
            start=start, submit=jobs.submit, end=start + jobs.run, run=jobs.run, processors=jobs.processors,
            promise=np.broadcast_to(np.nan, start.shape), cluster=np.broadcast_to(np.int64(0), start.shape),
            penalty=zero, killed=np.zeros(0, np.bool_), offsets=none, ranges=none,
        )  # fmt: skip

    def of(self, job: int) -> np.ndarray:
        """Return the processors of one job, ascending."""
        ranges = self.ranges[self.offsets[job] : self.offsets[job + 1]]
        return np.concatenate([np.arange(first, last + 1) for first, last in ranges] or [np.empty(0, np.int64)])
