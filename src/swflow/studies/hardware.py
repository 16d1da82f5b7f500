"""The machine of a what-if's variant: clusters, limits of partitions, nodes and resources after its changes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.machine import MOST_PROCESSORS, Machine
from swflow.jobs.table import Workload
from swflow.log.imported import names_of
from swflow.log.site import PER_NODE, SITE, node_of, peaks_of
from swflow.scheduling.nodes import fits_on_nodes, processors_on, units_on, with_counts
from swflow.scheduling.options import Unchecked
from swflow.scheduling.orders.fair_share import Names
from swflow.studies.variants import Change, Variant


def hardware_of(variant: Variant, workload: Workload) -> tuple[Unchecked, Machine]:
    """
    Return the options of a variant's scheduler and its machine, with the sizes of the variant.

    A change of a partition changes its cluster; the machine is the sum of its clusters. If partitions share one
    machine, the limit of the partition and the machine change by equal amounts; with ``nodes``, its nodes change. A
    share of the processors is a share of the nodes, so that GPUs and memory change with it; a number of processors
    leaves them as they are. Added nodes have the processors and resources of `swflow.log.site.node_of`.

    Examples
    --------
    >>> clusters = [{"partition": "cpu", "processors": 10}, {"partition": "gpu", "processors": 5}]
    >>> from swflow.studies.variants import read_processors
    >>> site = Variant("site", {"clusters": clusters}, read_processors("cpu=+20%"))
    >>> hardware_of(site, Workload(pl.DataFrame({"job_id": [1]}), Machine.of(15), "tiny"))[1].processors
    17
    """
    options, machine = variant.options, workload.machine
    if options.get("nodes"):
        machine = _of_nodes(options["nodes"], machine)
    for what, change in variant.changes.items():
        where = f"--{what} {change}: {variant.scheduler}"
        if options.get("clusters"):
            options, machine = _in_clusters(options, machine, what, change, workload, where)
        elif options.get("nodes"):
            options, machine = _in_nodes(options, machine, what, change, where)
        else:
            options, machine = _in_pool(options, machine, what, change, workload, where)
    return options, machine


def _of_nodes(groups: Sequence[Unchecked], machine: Machine) -> Machine:
    """Return the machine of some groups of nodes: the present one, if it has as many processors."""
    total = processors_on(groups)
    return machine if total == machine.processors else Machine.of(total)


def _serving(groups: Sequence[Any], partition: str) -> list[Any]:
    """Return the groups of nodes that jobs of a partition may use; all of them if it is empty."""
    return [one for one in groups if not partition or partition in (partitions_named(one) or [partition])]


def _in_nodes(options: Unchecked, machine: Machine, what: str, change: Change, where: str) -> tuple[Unchecked, Machine]:
    """
    Return the options and the machine after a change of whole nodes.

    A share changes every group of nodes; a number changes the group with the most nodes of those that may be used.
    """
    groups = [dict(group) for group in options["nodes"]]
    known = [name for one in groups for name in partitions_named(one)]
    if change.partition and change.partition not in known:
        raise _no_partition(where, change.partition, known)
    chosen = _serving(groups, change.partition)
    if change.resource:
        _change_units(chosen, change, where)
        return {**options, "nodes": groups}, machine
    if change.amount.kind == "share":
        for group in chosen:
            group["count"] = change.amount.of(group["count"])
    else:
        group = max(chosen, key=lambda one: one["count"])
        each = 1 if what == "nodes" else group["processors"]
        units = sum(one["count"] for one in chosen) if what == "nodes" else processors_on(chosen)
        added, rest = divmod(change.amount.of(units) - units, each)
        if rest:
            raise SwflowError(f"{where} has nodes of {each} processors; expected whole ones, such as --nodes +1")
        group["count"] += added
    if min(one["count"] for one in chosen) < 0 or all(one["count"] == 0 for one in chosen):
        raise SwflowError(f"{where} has {sum(one['count'] for one in options['nodes']):,} nodes; expected to keep some")
    changed = with_counts(options, groups)
    return changed, _of_nodes(changed["nodes"], machine)


def _change_units(groups: Sequence[dict[str, Any]], change: Change, where: str) -> None:
    """Change the units of a resource of each node: by a share, or by equal numbers."""
    known = units_on(groups)
    having = [one for one in groups if change.resource in one.get("resources", ())]
    if not having:
        raise _not_scheduled(where, change, known)
    nodes, name = sum(one["count"] for one in having), change.resource
    added, rest = divmod(change.amount.of(known[name]) - known[name], nodes)
    for group in having:
        units = group["resources"][name]
        changed = change.amount.of(units) if change.amount.kind == "share" else units + added
        if changed < 0 or (rest and change.amount.kind != "share"):
            raise SwflowError(f"{where} has {name} on {nodes} nodes; expected a change by as many on each of them")
        group["resources"] = {**group["resources"], name: changed}


def _in_clusters(
    options: Unchecked, machine: Machine, what: str, change: Change, workload: Workload, where: str
) -> tuple[Unchecked, Machine]:
    """Return the options and the machine after a change of some clusters."""
    clusters = [dict(cluster) for cluster in options["clusters"]]
    chosen = [one for one in clusters if not change.partition or change.partition in partitions_named(one)]
    if not chosen:
        raise _no_partition(where, change.partition, [name for one in clusters for name in partitions_named(one)])
    if change.resource:
        chosen = [one for one in chosen if change.resource in (one.get("resources") or {})]
        if not chosen:
            known = {name for one in clusters for name in one.get("resources") or {}}
            raise _not_scheduled(where, change, known)
    if change.amount.kind == "number" and len(chosen) > 1:
        has = f" with {change.resource}" if change.resource else ""
        partition = f"PARTITION:{change.resource}" if change.resource else "PARTITION"
        raise SwflowError(
            f"{where} has {len(chosen)} clusters{has}; expected {partition}={change.amount}, or a share such as +20%"
        )
    for cluster in chosen:
        names = partitions_named(cluster)
        units = {"processors": cluster["processors"], **(cluster.get("resources") or {})}
        units = _changed(units, what, change, workload, names, where)
        cluster["processors"] = units.pop("processors")
        if units:
            cluster["resources"] = units
    total = sum(cluster["processors"] for cluster in clusters)
    return {**options, "clusters": clusters}, machine if total == machine.processors else Machine.of(total)


def _in_pool(
    options: Unchecked, machine: Machine, what: str, change: Change, workload: Workload, where: str
) -> tuple[Unchecked, Machine]:
    """Return the options and the machine after a change of the machine that partitions share, or of a limit."""
    resources = {**machine.resources, **(options.get("resources") or {})}
    known = {name: units for name, units in resources.items() if units is not None}
    if change.resource:
        if change.partition or (change.amount.kind != "number" and change.resource not in known):
            raise _not_scheduled(where, change, known)
        units = {change.resource: _at_least(change.amount.of(known.get(change.resource, 0)), 0, where, change.resource)}
        return {**options, "resources": resources | units}, machine
    limits = dict((options.get("limits") or {}).get("partition") or {})
    own = _processor_limits(options, "partition")
    if change.partition:
        if change.partition not in own:
            raise _no_partition(where, change.partition, [*own])
        before = {"processors": own[change.partition], **_peaks_in(workload, change.partition, known)}
        after = _changed(before, what, change, workload, [change.partition], where)
        limits[change.partition] = {**limits[change.partition], "processors": after["processors"]}
        grown = {name: after[name] - units for name, units in before.items()}
        machine = machine.with_processors(machine.processors + grown.pop("processors"))
        known = {name: max(0, units + grown.get(name, 0)) for name, units in known.items()}
    else:
        size = {"processors": machine.processors, **known}
        size = _changed(size, what, change, workload, [], where, machine)
        if change.amount.kind == "share":
            for name, most in own.items():
                most = _at_least(change.amount.of(most), 1, where, "processors")
                limits[name] = {**limits[name], "processors": most}
        machine, known = _sized(machine, size.pop("processors")), size
    found = {**options}
    if limits:
        found["limits"] = {**options["limits"], "partition": limits}
    if known:
        found["resources"] = resources | known
    return found, machine


def _sized(machine: Machine, processors: int) -> Machine:
    """Return a machine with whole nodes of the same size, if the number of processors allows it."""
    each = machine.processors_per_node
    if processors % each:
        return machine.with_processors(processors)
    return Machine(processors, processors // each, machine.capacities, machine.resources)


def _changed(
    units: Mapping[str, int],
    what: str,
    change: Change,
    workload: Workload,
    partitions: Sequence[str],
    where: str,
    machine: Machine | None = None,
) -> dict[str, int]:
    """Return the processors and the units of each resource of a cluster or machine after a change."""
    amount, processors = change.amount, units["processors"]
    if change.resource:
        return {**units, change.resource: _at_least(amount.of(units[change.resource]), 0, where, change.resource)}
    if what == "nodes":
        node = _node(workload, partitions, where, machine)
        nodes = max(1, round(processors / node["processors"]))
        added = _at_least(amount.of(nodes), 1, where, "nodes") - nodes
        grown = {name: count + added * node.get(name, 0) for name, count in units.items()}
        return {name: max(count, int(name == "processors")) for name, count in grown.items()}
    if amount.kind != "share":
        return {**units, "processors": _at_least(amount.of(processors), 1, where, "processors")}
    if machine is not None and machine.nodes < machine.processors:  # in whole nodes
        processors = _at_least(amount.of(machine.nodes), 1, where, "nodes") * machine.processors_per_node
    else:
        processors = _at_least(amount.of(processors), 1, where, "processors")
    return {
        name: processors if name == "processors" else amount.of(count) if name in PER_NODE else count
        for name, count in units.items()
    }


def _node(workload: Workload, partitions: Sequence[str], where: str, machine: Machine | None) -> dict[str, int]:
    """Return the processors and the units of each resource of a node of these partitions; of all if there are none."""
    jobs = workload.jobs
    if partitions and "partition_id" in jobs.columns:
        jobs = jobs.filter(_of_partition(workload, dict.fromkeys(partitions, 1), 0) == 1)
    node = node_of(jobs)
    if machine is not None and machine.nodes < machine.processors:
        node["processors"] = machine.processors_per_node
        node |= {name: units // machine.nodes for name, units in machine.resources.items() if name not in node}
    if not node:
        raise SwflowError(
            f"{where}: the log does not state the nodes of its jobs (NNodes of sacct, which becomes column nodes); "
            "expected processors and resources instead: --processors gpu=+128 --resource gpu:gpus=+8"
        )
    return node


def _peaks_in(workload: Workload, partition: str, names: Iterable[str]) -> dict[str, int]:
    """Return the peak use of these resources by the jobs of a partition."""
    names = list(names)
    if not names:
        return {}
    peaks = peaks_of(workload.jobs.filter(_of_partition(workload, {partition: 1}, 0) == 1))
    return {name: peaks.get(name, 0) for name in names}


def _at_least(size: int, least: int, where: str, what: str) -> int:
    """Return a size; raise an error if it is below the least."""
    if size < least:
        raise SwflowError(f"{where}: {size:,} {what}; expected at least {least}")
    return size


def partitions_named(cluster: Unchecked) -> list[str]:
    """Return the names of the partitions that a cluster of a scheduler serves."""
    names = cluster.get("partition")
    return [str(one) for one in (names if isinstance(names, list | tuple) else [names]) if one is not None]


def resources_of(options: Unchecked, machine: Machine) -> dict[str, int]:
    """Return the units of each resource that a scheduler considers, of all clusters together."""
    found: dict[str, int] = {}
    for one in _stated_resources(options, machine):
        for name, units in one.items():
            found |= {} if units is None else {name: found.get(name, 0) + units}
    return found


def _stated_resources(options: Unchecked, machine: Machine) -> list[Unchecked]:
    """Return the units of each resource of every cluster or all nodes, or else of the machine."""
    if options.get("nodes"):
        return [units_on(options["nodes"])]
    stated = [one.get("resources") or {} for one in options.get("clusters") or ()]
    return stated or [{**machine.resources, **(options.get("resources") or {})}]


def _processor_limits(options: Unchecked, kind: str) -> dict[str, int]:
    """Return the limits of processors of each named user, group or partition."""
    limits = (options.get("limits") or {}).get(kind) or {}
    return {
        name: limit["processors"]
        for name, limit in limits.items()
        if isinstance(limit, Mapping) and "processors" in limit
    }


def _no_partition(where: str, name: str, known: Sequence[str]) -> SwflowError:
    problem = f"no partition {name!r}{suggest(name, known)}"
    if not known:
        problem = f"no partitions; use --scheduler {SITE}, or a share such as +20%"
    return SwflowError(f"{where} has {problem}")


def _not_scheduled(where: str, change: Change, known: Iterable[str]) -> SwflowError:
    named = str(change).partition("=")[0]
    hint = suggest(change.resource, known) if set(known) - {change.resource} else ""
    return SwflowError(
        f"{where} does not schedule {named}{hint}; use --scheduler {SITE}, or state the units: --resource "
        f"{change.resource}=N"
    )


# -- jobs that fit


def fitting(workload: Workload, options: Unchecked, machine: Machine) -> Iterator[pl.Expr]:
    """Yield which jobs are no wider than their machine, cluster or limit, and which find each resource."""
    yield _fits_in(workload, options, machine)
    yield from _within_limits(workload, options)
    yield from _finds_resources(workload, options, machine)
    if options.get("nodes"):
        yield pl.lit(fits_on_nodes(workload, options["nodes"]))


def _within_limits(workload: Workload, options: Unchecked) -> Iterator[pl.Expr]:
    """Yield which jobs are no wider than the limit of processors of their user or group."""
    parts = [options, *(options.get("clusters") or ())]
    for kind, column in (("user", "user_id"), ("group", "group_id")):
        for part in parts:
            limits, named = (part.get("limits") or {}).get(kind) or {}, _processor_limits(part, kind)
            most = pl.lit(limits.get("processors", MOST_PROCESSORS))
            if named and column in workload.jobs.columns:
                names = Names(workload, options.get("accounts"))
                numbers = {names.number_of(kind, name, "--limit"): size for name, size in named.items()}
                most = pl.col(column).replace_strict(numbers, default=most, return_dtype=pl.Int64)
            yield pl.col("processors") <= most


def _finds_resources(workload: Workload, options: Unchecked, machine: Machine) -> Iterator[pl.Expr]:
    """Yield for each resource which jobs demand no more of it than the machine, or their cluster, has."""
    clusters = options.get("clusters") or ()
    stated = _stated_resources(options, machine)
    for name in dict.fromkeys(name for one in stated for name in one):
        counts = [one.get(name, 0) for one in stated]
        if name not in workload.jobs.columns or counts == [None]:
            continue
        most: int | pl.Expr = max(counts)
        if clusters and options.get("dispatch") == "partition" and "partition_id" in workload.jobs.columns:
            served = zip(clusters, counts, strict=True)
            units = {partition: count for cluster, count in served for partition in partitions_named(cluster)}
            most = _of_partition(workload, units, 0)
        yield pl.col(name).fill_null(0) <= most


def _of_partition(workload: Workload, sizes: Mapping[str, int], default: int) -> pl.Expr:
    """Return for each job the size that belongs to its partition, or the default."""
    names = Names(workload)
    numbers = {names.number_of("partition", name, "--scheduler"): size for name, size in sizes.items()}
    return pl.col("partition_id").replace_strict(numbers, default=default, return_dtype=pl.Int64)


def _fits_in(workload: Workload, options: Unchecked, machine: Machine) -> pl.Expr:
    """Return which jobs are no wider than the machine, or the cluster or nodes of their partition, or its limit."""
    room: dict[str, int] = {}
    for cluster in options.get("clusters") or ():
        room |= dict.fromkeys(partitions_named(cluster), cluster["processors"])
    groups = options.get("nodes") or ()
    named = {name for one in groups for name in partitions_named(one)}
    for name in named.union(names_of(workload.header, "partition_id").values()) if groups else ():
        room[name] = processors_on(_serving(groups, name))
    for name, most in _processor_limits(options, "partition").items():
        room[str(name)] = min(most, room.get(str(name), most))
    if not room or "partition_id" not in workload.jobs.columns:
        return pl.col("processors") <= machine.processors
    return pl.col("processors") <= _of_partition(workload, room, machine.processors)
