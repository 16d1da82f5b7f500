"""Jobs as arrays, the shapes that they may have, and items: what may be queued."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

#: The columns of `Jobs.attributes`: numbers of the log, NaN where unknown, and nodes (1 if unknown).
ATTRIBUTES = ("user_id", "group_id", "queue_id", "executable_id", "job_id", "requested_nodes")


@dataclass(frozen=True)
class Jobs:
    """The jobs of a problem, one element each; of moldable jobs their requests. Times are in seconds."""

    submit: np.ndarray  # float64, ascending
    run: np.ndarray  # float64
    planned: np.ndarray  # float64: planned run times, not below ``run`` and raised to 1
    processors: np.ndarray  # int64, at most the machine's
    attributes: np.ndarray | None = None  # float64 (jobs, 6): the columns are `ATTRIBUTES`
    users: np.ndarray | None = None  # int64: the user of each job, for predictions
    clusters: np.ndarray | None = None  # int64: the cluster of each job's partition, from 0
    demands: np.ndarray | None = None  # int64 (jobs, resources): the units that a job occupies while it runs


@dataclass(frozen=True)
class Shapes:
    """
    The shapes of moldable jobs: the numbers of processors on which they can run.

    The shapes of job j are those from ``first[j]`` to before ``first[j + 1]``, at least one, by ascending processors.
    """

    first: np.ndarray  # int64
    run: np.ndarray  # float64, seconds
    planned: np.ndarray  # float64: planned run times, at least 1 s and not below ``run``
    processors: np.ndarray  # int64, 1 to the machine's


class Items(NamedTuple):
    """
    What may be queued: the jobs, or, if shapes are chosen at submission, every shape of every job.

    ``first`` has the items of each job as `Shapes.first` has, ``job`` the job of each item;
    both are empty if an item is a job. ``demands`` has the units of each resource that each item needs.
    """

    submit: np.ndarray
    run: np.ndarray
    planned: np.ndarray
    processors: np.ndarray
    first: np.ndarray
    job: np.ndarray
    demands: np.ndarray = np.empty((0, 0), np.int64)

    def of_jobs(self, values: Any) -> Any:
        """Return the value of each item from those of the jobs."""
        return values[self.job] if values is not None and self.first.size else values
