"""The nodes of a machine, and the nodes that each job may use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import Workload
from swflow.scheduling.nested_options import Unavailable
from swflow.scheduling.option_checks import in_ranges, positions_of
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.ownership import SELECT, Names
from swflow.scheduling.scheduler import Scheduler


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
        np.array([_away(window, sizes) for window in unavailable], np.bool_).reshape(-1, sizes.size),
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


def _away(window: Mapping[str, Any], sizes: np.ndarray) -> np.ndarray:
    """Return which nodes are unavailable in a window: those that it names, or the last ones with its processors."""
    if "nodes" not in window:
        last, processors = np.cumsum(sizes[::-1])[::-1], window["processors"]
        if processors not in last:
            raise SwflowError(
                f"unavailable: processors: {processors:,}; expected those of whole nodes, of which the last has "
                f"{last[-1]:,} and all have {last[0]:,}; or name nodes, such as nodes: 5-8"
            )
        return last <= processors
    positions = np.array(positions_of(str(window["nodes"]), "unavailable: nodes"))
    if positions.max() > sizes.size:
        raise SwflowError(f"unavailable: nodes: {positions.max():,}; expected positions from 1 to {sizes.size:,}")
    return np.isin(np.arange(sizes.size) + 1, positions)


def with_counts(options: Unchecked, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """
    Return options with other counts of their groups of nodes, and windows of the same nodes.

    Groups without nodes are left out. A group of which all nodes are in a window remains in it.

    Examples
    --------
    >>> nodes, windows = [{"count": 2, "processors": 4}, {"count": 3, "processors": 4}], [{"nodes": "2,4"}]
    >>> with_counts({"nodes": nodes, "unavailable": windows}, [nodes[0] | {"count": 1}, nodes[1]])["unavailable"]
    [{'nodes': '3'}]
    """
    counts, windows = [group["count"] for group in options["nodes"]], []
    sizes = np.repeat([group["processors"] for group in options["nodes"]], counts)
    for window in options.get("unavailable") or ():
        away = []
        for old, group in zip(np.split(_away(window, sizes), np.cumsum(counts)[:-1]), groups, strict=True):
            away.append(np.full(group["count"], old.all()))
            away[-1][: old.size] = old[: group["count"]]
        positions = np.flatnonzero(np.concatenate(away)) + 1
        if positions.size:
            times = {key: value for key, value in window.items() if key != "processors"}
            windows.append({**times, "nodes": in_ranges(positions.tolist())})
    found = {**options, "nodes": [group for group in groups if group["count"]]}
    return found | ({"unavailable": windows} if options.get("unavailable") else {})


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
