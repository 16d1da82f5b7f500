"""The nodes of a machine, and the nodes that each job may use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import Workload
from swflow.scheduling.orders.fair_share import SELECT, Names
from swflow.scheduling.scheduler import Scheduler


@dataclass(frozen=True)
class Nodes:
    """The nodes of a machine in their order; the last partition is that of jobs without one, which may use all."""

    sizes: np.ndarray  # int64: the processors of each node
    units: np.ndarray  # int64 (nodes, resources): the units of each node
    members: np.ndarray  # bool (partitions, nodes): the nodes that a partition may use
    partition: np.ndarray  # int64: the partition of each job, a row of ``members``
    names: tuple[str, ...]  # the names of the partitions, for errors


def processors_on(groups: Iterable[Mapping[str, Any]]) -> int:
    """Return the processors of groups of nodes."""
    return sum(group["count"] * group["processors"] for group in groups)


def units_on(groups: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """
    Return the units of each resource of groups of nodes, sorted by name.

    Examples
    --------
    >>> units_on([{"count": 2, "processors": 4, "resources": {"gpus": 8}}, {"count": 9, "processors": 4}])
    {'gpus': 16}
    """
    names = sorted({name for group in groups for name in group.get("resources", ())})
    return {name: sum(one["count"] * one.get("resources", {}).get(name, 0) for one in groups) for name in names}


def nodes_of(workload: Workload, jobs: pl.DataFrame, scheduler: Scheduler) -> Nodes | None:
    """
    Return the nodes of a scheduler for the jobs that are simulated; None if jobs are on no particular nodes.

    Raises
    ------
    SwflowError
        If no node is for the partition of a job.
    """
    if not scheduler.nodes:
        return None
    names, counts = Names(workload), [group["count"] for group in scheduler.nodes]
    column = jobs["partition_id"] if "partition_id" in jobs.columns else pl.Series([None] * jobs.height, dtype=pl.Int64)
    numbers: list[int] = column.drop_nulls().unique().sort().to_list()
    members = np.ones((len(numbers) + 1, sum(counts)), np.bool_)
    for group, end in zip(scheduler.nodes, np.cumsum(counts).tolist(), strict=True):
        if "partition" in group:
            named = {names.number_of("partition", name, "nodes: partition") for name in group["partition"]}
            members[:-1, end - group["count"] : end] = np.isin(np.array(numbers), list(named)).reshape(-1, 1)
    partition = column.replace_strict(numbers, range(len(numbers)), default=len(numbers), return_dtype=pl.Int64)
    nowhere = np.flatnonzero(members.sum(axis=1)[partition.to_numpy()] == 0)
    if nowhere.size:
        number = names.shown("partition", column[int(nowhere[0])])
        raise SwflowError(
            f"nodes: partition: {nowhere.size:,} jobs of {workload.name} have no nodes, the first is job "
            f"{jobs['job_id'][int(nowhere[0])]} with partition {number}; name it in nodes, or leave these jobs out "
            f"{SELECT}"
        )
    resources = [
        [group.get("resources", {}).get(name, 0) for name in units_on(scheduler.nodes)] for group in scheduler.nodes
    ]
    shown = (*(f"partition {names.shown('partition', number)}" for number in numbers), "all nodes")
    return Nodes(
        np.repeat([group["processors"] for group in scheduler.nodes], counts),
        np.repeat(np.array(resources, np.int64), counts, axis=0),
        members,
        partition.to_numpy(),
        shown,
    )


def most_processors(nodes: Nodes, processors: np.ndarray, demands: np.ndarray | None) -> np.ndarray:
    """
    Return how many processors each job could use of the nodes of its partition, if no other job ran.

    Each processor of a job needs its part of the job's ``demands``, int64 of shape (jobs, resources).

    Examples
    --------
    The job needs half of a GPU per processor, and has four processors of the first node and two of the second.

    >>> two = Nodes(np.array([9, 9]), np.array([[2], [1]]), np.ones((1, 2), bool), np.zeros(1, int), ("all nodes",))
    >>> most_processors(two, np.array([8]), np.array([[4]]))
    array([6])
    """
    found = (nodes.members @ nodes.sizes)[nodes.partition]
    if demands is None:
        return found
    asking = np.flatnonzero(demands.any(axis=1))
    kinds, kind_of = np.unique(
        np.column_stack([nodes.partition, processors, demands])[asking], axis=0, return_inverse=True
    )
    for kind, (partition, width, *needed) in enumerate(kinds.tolist()):
        usable = nodes.sizes
        for resource, units in enumerate(needed):
            if units:
                usable = np.minimum(usable, nodes.units[:, resource] * width // units)
        found[asking[kind_of.reshape(-1) == kind]] = usable[nodes.members[partition]].sum()
    return found
