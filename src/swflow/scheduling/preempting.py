"""Preemption: which running jobs a queued job may end, by its QOS or partition."""

import graphlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from swflow.scheduling.nested_options import Preemption
from swflow.scheduling.orders.ownership import Names

#: The column with the QOS or partition of a job.
_COLUMNS = {"qos": "queue_id", "partition": "partition_id"}

#: Slurm's default of PriorityTier.
_DEFAULT_TIER = 1


@dataclass(frozen=True)
class Preempting:
    """What jobs of each class may preempt; a class is a QOS or a partition, and the last one is that of other jobs."""

    kind: np.ndarray  # int64: the class of each job
    may: np.ndarray  # bool (classes, classes): whether jobs of one class may preempt those of another
    worth: np.ndarray  # int64: jobs of the lowest value are preempted first
    level: np.ndarray  # int64: jobs of higher levels are before others in the queue
    requeues: np.ndarray  # bool: whether a preempted job is queued again
    exempt: float  # the time from its start in which a job is not preempted, seconds
    delay: float  # the time from a preemption until the job is eligible again, seconds


def preempting_of(names: Names, jobs: pl.DataFrame, scheduler: Any) -> Preempting | None:
    """
    Return what the jobs that are simulated may preempt; None if there is no preemption.

    Raises
    ------
    SwflowError
        If a name of a QOS or partition is unknown.
    """
    given: Preemption | None = scheduler.preemption
    if given is None:
        return None
    kind = "qos" if "qos" in given else "partition"
    column = jobs[_COLUMNS[kind]] if _COLUMNS[kind] in jobs.columns else pl.Series([None] * jobs.height, dtype=pl.Int64)
    numbers: list[int] = column.drop_nulls().unique().sort().to_list()
    classes = column.replace_strict(numbers, range(len(numbers)), default=len(numbers), return_dtype=pl.Int64)

    def rows(of: Mapping[str, Any]) -> dict[int, Any]:
        """Return values by name as values by class; names without jobs are left out."""
        found = {names.number_of(kind, name): value for name, value in of.items()}
        return {numbers.index(number): value for number, value in found.items() if number in numbers}

    count = len(numbers) + 1
    worth, may = np.zeros(count, np.int64), np.zeros((count, count), np.bool_)
    modes = np.full(count, given.get("mode", "requeue"), dtype=object)
    for row, mode in rows(given.get("modes", {})).items():
        modes[row] = mode
    if kind == "partition":
        worth[:] = _DEFAULT_TIER
        for row, tier in rows(given["partition"]).items():
            worth[row] = tier
        may[:] = worth[:, None] > worth
        level = worth
    else:
        for row, priority in rows(given.get("qos_priorities", {})).items():
            worth[row] = priority
        for row, others in rows(given["qos"]).items():
            may[row, list(rows(dict.fromkeys(others)))] = True
        level = _levels(may)
    may &= modes != "off"
    return Preempting(
        classes.to_numpy(), may, worth, np.unique(level, return_inverse=True)[1].reshape(-1), modes == "requeue",
        given.get("exempt_time", 0), given.get("requeue_delay", 121),
    )  # fmt: skip


def _levels(may: np.ndarray) -> np.ndarray:
    """Return 0 for classes that preempt none, and for others 1 more than the highest level of those they preempt."""
    level = np.zeros(len(may), np.int64)
    below = {row: np.flatnonzero(may[row]).tolist() for row in range(len(may))}
    for row in graphlib.TopologicalSorter(below).static_order():
        level[row] = max((level[other] + 1 for other in below[row]), default=0)
    return level
