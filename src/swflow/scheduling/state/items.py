"""Items: what may be queued."""

from typing import Any, NamedTuple

import numpy as np


class Items(NamedTuple):
    """
    What may be queued: the jobs, or, if shapes are chosen at submission, every shape of every job.

    ``first`` has the items of each job as `swflow.scheduling.problem.Shapes.first` has, ``job`` the job of each item;
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
