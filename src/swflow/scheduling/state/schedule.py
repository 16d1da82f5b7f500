"""Schedules: when and where each job of a problem runs."""

from dataclasses import dataclass

import numpy as np

from swflow.scheduling.state.items import Items


@dataclass(frozen=True)
class Schedule:
    """
    The solution of a problem: arrays of one element per job, and its numbered processors. Times are in seconds.

    Job ``i`` has the ranges of processors from ``offsets[i]`` to before ``offsets[i + 1]``.
    """

    start: np.ndarray
    submit: np.ndarray
    run: np.ndarray  # on the chosen processors
    processors: np.ndarray  # processors of the chosen shape
    promise: np.ndarray  # the start of the first reservation under conservative backfilling; else NaN
    cluster: np.ndarray  # the index of the job's machine
    penalty: np.ndarray  # how long shared resources prolonged the job
    killed: np.ndarray  # whether it was killed, because of that or for another one; empty if none can be
    offsets: np.ndarray
    ranges: np.ndarray  # (ranges, 2): first and last processor, numbered from 0, ascending within a job

    @classmethod
    def of_start(cls, jobs: Items, start: np.ndarray) -> "Schedule":
        """Return the schedule of jobs on the counted processors of one machine."""
        none, zero = np.zeros(0, np.int64), np.broadcast_to(0.0, start.shape)
        return cls(
            start=start, submit=jobs.submit, run=jobs.run, processors=jobs.processors,
            promise=np.broadcast_to(np.nan, start.shape), cluster=np.broadcast_to(np.int64(0), start.shape),
            penalty=zero, killed=np.zeros(0, np.bool_), offsets=none, ranges=none,
        )  # fmt: skip

    @property
    def end(self) -> np.ndarray:
        """The end of each job."""
        return self.start + self.run

    def of(self, job: int) -> np.ndarray:
        """
        Return the processors of one job, ascending.

        >>> none = np.zeros(2)
        >>> ranges = np.array([[0, 1], [4, 4]])
        >>> schedule = Schedule(*[none] * 8, offsets=np.array([0, 2, 2]), ranges=ranges)
        >>> schedule.of(0).tolist(), schedule.of(1).tolist()
        ([0, 1, 4], [])
        """
        ranges = self.ranges[self.offsets[job] : self.offsets[job + 1]]
        return np.concatenate([np.arange(first, last + 1) for first, last in ranges] or [np.empty(0, np.int64)])
