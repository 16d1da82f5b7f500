"""The machine of a what-if's variant: clusters, limits of partitions, nodes and resources after its changes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.site import PER_NODE, SITE, node_of, peaks_of
from swflow.scheduling.fitting_jobs import of_partition, partitions_named, processor_limits, serving, stated_resources
from swflow.scheduling.nodes import processors_on, units_on, with_counts
from swflow.scheduling.option_kinds import Unchecked
from swflow.studies.variants import Amount, Change, Variant


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
        machine = _of_size(machine, processors_on(options["nodes"]))
    for what, change in variant.changes:
        asked = _Asked(what, change, workload, f"--{what} {change}: {variant.scheduler}")
        if options.get("clusters"):
            options, machine = asked.of_clusters(options, machine)
        elif options.get("nodes"):
            options, machine = asked.of_nodes(options, machine)
        else:
            options, machine = asked.of_pool(options, machine)
    return options, machine


def by_largest_remainders(counts: Sequence[int], amount: Amount) -> list[int]:
    """
    Return the counts after a change by a share, whose sum is that of the changed sum.

    Each count is rounded down, and those with the largest remainders get one more each; ties go to the larger count.

    Examples
    --------
    >>> by_largest_remainders([2, 2, 2, 2, 2], Amount("share", 0.2))
    [3, 3, 2, 2, 2]
    """
    exact = [count * (1 + amount.value) for count in counts]
    found = [math.floor(one + 1e-9) for one in exact]
    ranks = sorted(range(len(counts)), key=lambda at: (round(found[at] - exact[at], 9), -counts[at]))
    for at in ranks[: amount.of(sum(counts)) - sum(found)]:
        found[at] += 1
    return found


def changed_nodes(variant: Variant, workload: Workload) -> list[tuple[Unchecked, int]]:
    """Return the groups of nodes of a variant's scheduler that its changes enlarge or shrink, each with the nodes."""
    groups = [dict(group, order=number) for number, group in enumerate(variant.options.get("nodes") or ())]
    options: Unchecked = {**variant.options, "nodes": groups}
    for what, change in variant.changes:
        if groups and not change.resource:
            asked = _Asked(what, change, workload, f"--{what} {change}: {variant.scheduler}")
            options = {**options, "nodes": asked.groups_of(options)}
    return [
        (old, new["count"] - old["count"])
        for old, new in zip(groups, options.get("nodes") or (), strict=True)
        if new["count"] != old["count"]
    ]


def _of_size(machine: Machine, processors: int) -> Machine:
    """Return the machine if it has this size, or else a machine of single processors."""
    return machine if processors == machine.processors else Machine.of(processors)


@dataclass(frozen=True)
class _Asked:
    """A change of the options and the machine of a scheduler; ``where`` begins the messages of its errors."""

    what: str
    change: Change
    workload: Workload
    where: str

    def of_nodes(self, options: Unchecked, machine: Machine) -> tuple[Unchecked, Machine]:
        """
        Change whole nodes.

        A share changes every group of nodes by the method of largest remainders; a number changes the group with the
        most nodes of those that may be used.
        """
        groups = self.groups_of(options)
        if self.change.resource:
            return {**options, "nodes": groups}, machine
        changed = with_counts(options, groups)
        return changed, _of_size(machine, processors_on(changed["nodes"]))

    def groups_of(self, options: Unchecked) -> list[dict[str, Any]]:
        """Return the groups of nodes after the change; one of them can have no nodes."""
        change, where = self.change, self.where
        groups = [dict(group) for group in options["nodes"]]
        known = [name for one in groups for name in partitions_named(one)]
        if change.partition and change.partition not in known:
            raise self._no_partition(known)
        chosen = serving(groups, change.partition)
        if change.resource:
            self._change_units(chosen)
            return groups
        if change.amount.kind == "share":
            counts = by_largest_remainders([group["count"] for group in chosen], change.amount)
            for group, count in zip(chosen, counts, strict=True):
                group["count"] = count
        else:
            group = max(chosen, key=lambda one: one["count"])
            each = 1 if self.what == "nodes" else group["processors"]
            units = sum(one["count"] for one in chosen) if self.what == "nodes" else processors_on(chosen)
            added, rest = divmod(change.amount.of(units) - units, each)
            if rest:
                raise SwflowError(f"{where} has nodes of {each} processors; expected whole ones, such as --nodes +1")
            group["count"] += added
        if min(one["count"] for one in chosen) < 0 or all(one["count"] == 0 for one in chosen):
            nodes = sum(one["count"] for one in options["nodes"])
            raise SwflowError(f"{where} has {nodes:,} nodes; expected to keep some")
        return groups

    def _change_units(self, groups: Sequence[dict[str, Any]]) -> None:
        """Change the units of a resource of each node: by a share, or by equal numbers."""
        amount, name = self.change.amount, self.change.resource
        known = units_on(groups)
        having = [one for one in groups if name in one.get("resources", ())]
        if not having:
            raise self._not_scheduled(known)
        nodes = sum(one["count"] for one in having)
        added, rest = divmod(amount.of(known[name]) - known[name], nodes)
        for group in having:
            units = group["resources"][name]
            changed = amount.of(units) if amount.kind == "share" else units + added
            if changed < 0 or (rest and amount.kind != "share"):
                raise SwflowError(
                    f"{self.where} has {name} on {nodes} nodes; expected a change by as many on each of them"
                )
            group["resources"] = {**group["resources"], name: changed}

    def of_clusters(self, options: Unchecked, machine: Machine) -> tuple[Unchecked, Machine]:
        """Change some clusters, and with them the machine."""
        change, name = self.change, self.change.resource
        clusters = [dict(cluster) for cluster in options["clusters"]]
        chosen = [one for one in clusters if not change.partition or change.partition in partitions_named(one)]
        if not chosen:
            raise self._no_partition([name for one in clusters for name in partitions_named(one)])
        if name:
            chosen = [one for one in chosen if name in (one.get("resources") or {})]
            if not chosen:
                raise self._not_scheduled({name for one in clusters for name in one.get("resources") or {}})
        if change.amount.kind != "share" and len(chosen) > 1:
            widest = partitions_named(max(chosen, key=lambda one: one["processors"]))
            partition = (widest[0] if widest else "PARTITION") + f":{name}" * bool(name)
            raise SwflowError(
                f"{self.where} has {len(chosen)} clusters{f' with {name}' * bool(name)}; expected one of them, such as "
                f"{partition}={change.amount}, or a share such as +20%"
            )
        for cluster in chosen:
            units = {"processors": cluster["processors"], **(cluster.get("resources") or {})}
            units = self._changed(units, partitions_named(cluster))
            cluster["processors"] = units.pop("processors")
            if units:
                cluster["resources"] = units
        return {**options, "clusters": clusters}, _of_size(machine, sum(one["processors"] for one in clusters))

    def of_pool(self, options: Unchecked, machine: Machine) -> tuple[Unchecked, Machine]:
        """Change the machine that partitions share, or a limit of a partition and the machine."""
        change, name = self.change, self.change.resource
        resources = {**machine.resources, **(options.get("resources") or {})}
        known = {name: units for name, units in resources.items() if units is not None}
        if name:
            if change.partition or (change.amount.kind != "number" and name not in known):
                raise self._not_scheduled(known)
            return {**options, "resources": {**resources, name: self._size(known.get(name, 0), name, 0)}}, machine
        limits = dict((options.get("limits") or {}).get("partition") or {})
        own = processor_limits(options, "partition")
        if change.partition:
            if change.partition not in own:
                raise self._no_partition([*own])
            peaks = peaks_of(_jobs_of(self.workload, [change.partition])) if known else {}
            before = {"processors": own[change.partition], **{name: peaks.get(name, 0) for name in known}}
            after = self._changed(before, [change.partition])
            limits[change.partition] = {**limits[change.partition], "processors": after["processors"]}
            grown = {name: after[name] - units for name, units in before.items()}
            machine = machine.with_processors(machine.processors + grown.pop("processors"))
            known = {name: max(0, units + grown.get(name, 0)) for name, units in known.items()}
        else:
            known = self._changed({"processors": machine.processors, **known}, [], machine)
            if change.amount.kind == "share":
                for partition, most in own.items():
                    limits[partition] = {**limits[partition], "processors": self._size(most, "processors")}
            machine = _in_nodes(machine, known.pop("processors"))
        found = {**options}
        if limits:
            found["limits"] = {**options["limits"], "partition": limits}
        if known:
            found["resources"] = resources | known
        return found, machine

    def _changed(
        self, units: Mapping[str, int], partitions: Sequence[str], machine: Machine | None = None
    ) -> dict[str, int]:
        """Return the processors and the units of each resource of a cluster or machine after the change."""
        amount, name, processors = self.change.amount, self.change.resource, units["processors"]
        if name:
            return {**units, name: self._size(units[name], name, 0)}
        if self.what == "nodes":
            node = self._node(partitions, machine)
            nodes = max(1, round(processors / node["processors"]))
            added = self._size(nodes, "nodes") - nodes
            grown = {name: count + added * node.get(name, 0) for name, count in units.items()}
            return {name: max(count, int(name == "processors")) for name, count in grown.items()}
        if amount.kind != "share":
            return {**units, "processors": self._size(processors, "processors")}
        if machine is not None and machine.nodes < machine.processors:  # in whole nodes
            processors = self._size(machine.nodes, "nodes") * machine.processors_per_node
        else:
            processors = self._size(processors, "processors")
        per_node = {name: amount.of(count) for name, count in units.items() if name in PER_NODE}
        return {**units, **per_node, "processors": processors}

    def _node(self, partitions: Sequence[str], machine: Machine | None) -> dict[str, int]:
        """Return the processors and the units of each resource of a node of these partitions; of all without any."""
        node = node_of(_jobs_of(self.workload, partitions))
        if machine is not None and machine.nodes < machine.processors:
            node["processors"] = machine.processors_per_node
            node |= {name: units // machine.nodes for name, units in machine.resources.items() if name not in node}
        if not node:
            raise SwflowError(
                f"{self.where}: the log does not state the nodes of its jobs (NNodes of sacct, which becomes column "
                "nodes); expected processors and resources instead: --processors gpu=+128 --resource gpu:gpus=+8"
            )
        return node

    def _size(self, present: int, what: str, least: int = 1) -> int:
        """Return the new size of something; raise an error if it is below the least."""
        size = self.change.amount.of(present)
        if size < least:
            raise SwflowError(f"{self.where}: {size:,} {what}; expected at least {least}")
        return size

    def _no_partition(self, known: Sequence[str]) -> SwflowError:
        name = self.change.partition
        problem = f"no partition {name!r}{suggest(name, known)}"
        if not known:
            problem = f"no partitions; use --scheduler {SITE}, or a share such as +20%"
        return SwflowError(f"{self.where} has {problem}")

    def _not_scheduled(self, known: Iterable[str]) -> SwflowError:
        named, name = str(self.change).partition("=")[0], self.change.resource
        hint = suggest(name, known) if set(known) - {name} else ""
        return SwflowError(
            f"{self.where} does not schedule {named}{hint}; use --scheduler {SITE}, or state the units: --resource "
            f"{name}=N"
        )


def _in_nodes(machine: Machine, processors: int) -> Machine:
    """Return a machine with whole nodes of the same size, if the number of processors allows it."""
    each = machine.processors_per_node
    if processors % each:
        return machine.with_processors(processors)
    return Machine(processors, processors // each, machine.capacities, machine.resources)


def _jobs_of(workload: Workload, partitions: Sequence[str]) -> pl.DataFrame:
    """Return the jobs of these partitions; all jobs if there are none."""
    if not partitions or "partition_id" not in workload.jobs.columns:
        return workload.jobs
    return workload.jobs.filter(of_partition(workload, dict.fromkeys(partitions, 1), 0) == 1)


def resources_of(options: Unchecked, machine: Machine) -> dict[str, int]:
    """Return the units of each resource that a scheduler considers, of all clusters together."""
    found: dict[str, int] = {}
    for one in stated_resources(options, machine):
        for name, units in one.items():
            found |= {} if units is None else {name: found.get(name, 0) + units}
    return found
