"""The parts of a problem that only Slurm has: the nodes that each job may use, and the jobs that it may preempt."""

import graphlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import Workload
from swflow.scheduling.nested_options import Preemption, Unavailable
from swflow.scheduling.nodes import away_in, units_on
from swflow.scheduling.orders.ownership import SELECT, Names
from swflow.scheduling.scheduler import Scheduler

#: The column with the QOS or partition of a job.
_COLUMNS = {"qos": "queue_id", "partition": "partition_id"}

#: Slurm's default of PriorityTier.
_DEFAULT_TIER = 1


@dataclass(frozen=True)
class Nodes:
    """The nodes of a machine in their order, and the sets of nodes that jobs of a partition and constraint may use."""

    sizes: np.ndarray  # int64: the processors of each node
    units: np.ndarray  # int64 (nodes, resources): the units of each node
    weights: np.ndarray  # int64: jobs take nodes of the lowest weight first
    members: np.ndarray  # bool (sets, nodes): the nodes of each set
    partition: np.ndarray  # int64: the set of each set's partition without a constraint; that of no partition has all
    allowed: np.ndarray  # int64: the set of each job
    requested: np.ndarray  # int64: the nodes that each job needs at least, at most its processors
    share: np.ndarray  # int64: the processors of each job on each of several requested nodes, 0 if they may differ
    names: tuple[str, ...]  # the partition and constraint of each set, for errors
    away: np.ndarray  # bool (windows, nodes): the nodes that are unavailable in a window

    @property
    def processors_away(self) -> list[int]:
        """The processors of the nodes that are unavailable in each window."""
        found: list[int] = (self.away @ self.sizes).tolist()
        return found


def nodes_of(names: Names, jobs: pl.DataFrame, scheduler: Scheduler) -> Nodes | None:
    """
    Return the nodes of a scheduler for the jobs that are simulated; None if jobs are on no particular nodes.

    Raises
    ------
    SwflowError
        If no node is for the partition of a job, or none of these satisfies its constraint.
    """
    if not scheduler.nodes:
        return None
    nodes = _groups_for(names, jobs, scheduler.nodes, scheduler.unavailable)
    nowhere = np.flatnonzero(nodes.members.sum(axis=1)[nodes.allowed] == 0)
    if nowhere.size:
        found = nodes.allowed[nowhere[0]]
        key = "partition" if nodes.partition[found] == found else "features"
        raise SwflowError(
            f"nodes: {key}: {nowhere.size:,} jobs of {names.log} have no nodes, the first is job "
            f"{jobs['job_id'][int(nowhere[0])]} with {nodes.names[found]}; name it in nodes, or leave these jobs out "
            f"{SELECT}"
        )
    return nodes


def fits_on_nodes(workload: Workload, groups: Sequence[Mapping[str, Any]]) -> pl.Series:
    """Return which jobs fit on the nodes that they may use as they request, if no other job runs."""
    nodes, jobs = _groups_for(Names(workload), workload.jobs, groups), workload.jobs
    demands = [
        jobs[name].cast(pl.Int64).fill_null(0) if name in jobs.columns else pl.zeros(jobs.height, pl.Int64, eager=True)
        for name in units_on(groups)
    ]
    processors = jobs["processors"].to_numpy()
    most = most_processors(nodes, processors, np.column_stack(demands) if demands else None)
    return pl.Series(processors <= most)


def _groups_for(
    names: Names, jobs: pl.DataFrame, groups: Sequence[Mapping[str, Any]], unavailable: Sequence[Unavailable] = ()
) -> Nodes:
    """Return the nodes of groups, for the partitions of jobs."""
    counts = [group["count"] for group in groups]
    column = jobs["partition_id"] if "partition_id" in jobs.columns else pl.Series([None] * jobs.height, dtype=pl.Int64)
    numbers: list[int] = column.drop_nulls().unique().sort().to_list()
    members = np.ones((len(numbers) + 1, sum(counts)), np.bool_)
    for group, end in zip(groups, np.cumsum(counts).tolist(), strict=True):
        if "partition" in group:
            named = {names.number_of("partition", name) for name in group["partition"]}
            members[:-1, end - group["count"] : end] = np.isin(np.array(numbers), list(named)).reshape(-1, 1)
    partition = column.replace_strict(numbers, range(len(numbers)), default=len(numbers), return_dtype=pl.Int64)
    shown = [*(f"partition {names.shown('partition', number)}" for number in numbers), "all nodes"]
    base, allowed = [*range(len(shown))], partition.to_numpy().copy()
    if "constraint_id" in jobs.columns:
        features = np.repeat(np.array([{*group.get("features", ())} for group in groups], object), counts)
        texts = names.header.names_of("constraint_id")
        used = pl.DataFrame({"partition": partition, "constraint": jobs["constraint_id"]}).with_row_index()
        for (of, number), rows in used.drop_nulls().group_by("partition", "constraint", maintain_order=True):
            satisfies = _satisfying(texts.get(number, str(number)), features)
            allowed[rows["index"].to_numpy()] = len(base)
            base.append(of)
            members = np.vstack([members, members[of] & satisfies])
            shown.append(f"{shown[of]} and constraint {texts.get(number, number)!r}")
    resources = [[group.get("resources", {}).get(name, 0) for name in units_on(groups)] for group in groups]
    sizes = np.repeat([group["processors"] for group in groups], counts)
    requested, processors = _requested(jobs), jobs["processors"].to_numpy()
    nodes = Nodes(
        sizes,
        np.repeat(np.array(resources, np.int64), counts, axis=0),
        np.repeat([group.get("weight", 1) for group in groups], counts),
        members,
        np.array(base),
        allowed,
        requested,
        np.where((requested > 1) & (processors % requested == 0), processors // requested, 0),
        tuple(shown),
        np.array([away_in(window, sizes) for window in unavailable], np.bool_).reshape(-1, sizes.size),
    )
    nodes.share[most_processors(nodes, processors, None) < processors] = 0  # such as whole nodes of several sizes
    return nodes


def _satisfying(constraint: str, features: np.ndarray) -> np.ndarray:
    """
    Return which nodes have the features of a constraint: ``&`` and ``|`` from left to right, and parentheses.

    Neither operator takes precedence, as in Slurm (`_valid_feature_counts` in src/slurmctld/node_scheduler.c).

    Examples
    --------
    >>> _satisfying("a|b&(c|d)", np.array([{"a"}, {"a", "c"}, {"b", "d"}, {"d"}]))
    array([False,  True,  True, False])
    """
    tokens = re.findall(r"[^&|()\s]+|\S", constraint)[::-1]

    def expression() -> np.ndarray:
        found = operand()
        while tokens and tokens[-1] in "&|":
            found = found & operand() if tokens.pop() == "&" else found | operand()
        return found

    def operand() -> np.ndarray:
        token = tokens.pop() if tokens else ""
        if token == "(":
            found = expression()
            token = tokens.pop() if tokens else ""
            return found if token == ")" else refuse()
        if not token or re.search(r"[&|()\[\]*,]", token):
            refuse()
        return np.array([token in own for own in features], np.bool_)

    def refuse() -> NoReturn:
        raise SwflowError(
            f"constraint_id: {constraint!r}; expected features of nodes with &, | and parentheses, such as a&(b|c); "
            f"leave other jobs out {SELECT}"
        )

    found = expression()
    return refuse() if tokens else found


def _requested(jobs: pl.DataFrame) -> np.ndarray:
    """Return the nodes that each job requests, at least 1 and at most its processors."""
    if "requested_nodes" not in jobs.columns:
        return np.ones(jobs.height, np.int64)
    nodes = jobs["requested_nodes"].cast(pl.Int64).fill_null(1).to_numpy()
    return np.clip(nodes, 1, jobs["processors"].to_numpy())


def most_processors(nodes: Nodes, processors: np.ndarray, demands: np.ndarray | None) -> np.ndarray:
    """
    Return how many processors each job could use of the nodes that it may use, if no other job ran.

    Each processor of a job needs its part of the job's ``demands``, int64 of shape (jobs, resources). A job on several
    nodes has equal parts on them, or else at least one processor on each.

    Examples
    --------
    The job needs half of a GPU per processor, and has four processors of the first node and two of the second.

    >>> all_nodes, weights, one = np.ones((1, 2), bool), np.ones(2, int), np.zeros(1, int)
    >>> sizes, names = np.array([9, 9]), ("all nodes",)
    >>> two = Nodes(sizes, np.array([[2], [1]]), weights, all_nodes, one, one, one + 1, one, names, all_nodes)
    >>> most_processors(two, np.array([8]), np.array([[4]]))
    array([6])
    """
    found = (nodes.members @ nodes.sizes)[nodes.allowed]
    demands = np.empty((processors.size, 0), np.int64) if demands is None else demands
    asking = np.flatnonzero(demands.any(axis=1) | (nodes.requested > 1))
    asked = np.column_stack([nodes.allowed, processors, nodes.requested, nodes.share, demands])[asking]
    kinds, kind_of = np.unique(asked, axis=0, return_inverse=True)
    for kind, (allowed, width, requested, share, *needed) in enumerate(kinds.tolist()):
        usable = nodes.sizes * nodes.members[allowed]
        for resource, units in enumerate(needed):
            if units:
                usable = np.minimum(usable, nodes.units[:, resource] * width // units)
        if share:
            usable = np.where(usable >= share, share, 0)
        lacking = max(requested - np.count_nonzero(usable), 0)
        found[asking[kind_of.reshape(-1) == kind]] = min(usable.sum(), width - lacking) if lacking else usable.sum()
    return found


# -- preemption


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
