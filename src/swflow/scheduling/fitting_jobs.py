"""Which jobs can run under a scheduler: its machines, nodes, limits and resources are large enough for them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.nodes import processors_on, units_on
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.ownership import Names, jobs_within_limits
from swflow.scheduling.prepare import times_of
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.slurm.problem import fits_on_nodes


def fitting(workload: Workload, options: Unchecked, machine: Machine) -> Iterator[pl.Expr]:
    """
    Yield which jobs are no wider than their machine, cluster or limit, and which find each resource.

    ``options`` are those of a scheduler, and ``machine`` is the one that it has if it states no clusters or nodes.
    """
    yield _fits_in(workload, options, machine)
    scheduler = Scheduler.of("scheduler", options)
    yield pl.lit(jobs_within_limits(workload, scheduler, times_of(workload.jobs, scheduler)[1]))
    yield from _finds_resources(workload, options, machine)
    if options.get("nodes"):
        yield pl.lit(fits_on_nodes(workload, options["nodes"]))


def _fits_in(workload: Workload, options: Unchecked, machine: Machine) -> pl.Expr:
    """Return which jobs are no wider than the machine, or the cluster or nodes of their partition, or its limit."""
    room: dict[str, int] = {}
    clusters, groups = options.get("clusters") or (), options.get("nodes") or ()
    for cluster in clusters:
        room |= dict.fromkeys(partitions_named(cluster), cluster["processors"])
    largest = max((cluster["processors"] for cluster in clusters), default=machine.processors)
    named = {name for one in groups for name in partitions_named(one)}
    for name in named.union(workload.header.names_of("partition_id").values()) if groups else ():
        room[name] = processors_on(serving(groups, name))
    for name, most in processor_limits(options, "partition").items():
        room[str(name)] = min(most, room.get(str(name), largest))
    if not room or "partition_id" not in workload.jobs.columns:
        return pl.col("processors") <= largest
    return pl.col("processors") <= of_partition(workload, room, largest)


def _finds_resources(workload: Workload, options: Unchecked, machine: Machine) -> Iterator[pl.Expr]:
    """Yield for each resource which jobs demand no more of it than the machine, or their cluster, has."""
    clusters = options.get("clusters") or ()
    stated = stated_resources(options, machine)
    for name in dict.fromkeys(name for one in stated for name in one):
        counts = [one.get(name, 0) for one in stated]
        if name not in workload.jobs.columns or counts == [None]:
            continue
        most: int | pl.Expr = max(counts)
        if clusters and options.get("dispatch") == "partition" and "partition_id" in workload.jobs.columns:
            served = zip(clusters, counts, strict=True)
            units = {partition: count for cluster, count in served for partition in partitions_named(cluster)}
            most = of_partition(workload, units, 0)
        yield pl.col(name).fill_null(0) <= most


def of_partition(workload: Workload, sizes: Mapping[str, int], default: int) -> pl.Expr:
    """Return for each job the size that belongs to its partition, or the default."""
    names = Names(workload)
    numbers = {names.number_of("partition", name): size for name, size in sizes.items()}
    return pl.col("partition_id").replace_strict(numbers, default=default, return_dtype=pl.Int64)


def partitions_named(cluster: Unchecked) -> list[str]:
    """Return the names of the partitions that a cluster of a scheduler serves."""
    names = cluster.get("partition")
    return [str(one) for one in (names if isinstance(names, list | tuple) else [names]) if one is not None]


def serving(groups: Sequence[Any], partition: str) -> list[Any]:
    """Return the groups of nodes that jobs of a partition may use; all of them if it is empty."""
    return [one for one in groups if not partition or partition in (partitions_named(one) or [partition])]


def processor_limits(options: Unchecked, kind: str) -> dict[str, int]:
    """Return the limits of running processors of a kind, such as ``partition``, by name."""
    limits = (options.get("limits") or {}).get(kind) or {}
    return {
        name: limit["processors"]
        for name, limit in limits.items()
        if isinstance(limit, Mapping) and "processors" in limit
    }


def stated_resources(options: Unchecked, machine: Machine) -> list[Unchecked]:
    """Return the units of each resource of every cluster or all nodes, or else of the machine."""
    if options.get("nodes"):
        return [units_on(options["nodes"])]
    stated = [one.get("resources") or {} for one in options.get("clusters") or ()]
    return stated or [{**machine.resources, **(options.get("resources") or {})}]
