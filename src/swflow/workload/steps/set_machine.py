"""The step `machine`: replace the machine of a workload: processors, nodes, shared capacities, counted resources."""

from collections.abc import Mapping

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.machine import PRESETS, Machine
from swflow.jobs.table import Workload
from swflow.workload.clean import without_lost
from swflow.workload.removals import without_removed


def with_machine(
    workload: Workload,
    *,
    processors: int | None = None,
    nodes: int | None = None,
    processors_per_node: int | None = None,
    preset: str | None = None,
    capacities: Mapping[str, float] | None = None,
    resources: Mapping[str, int | None] | None = None,
) -> Workload:
    """
    Replace the machine of a workload; properties that are not given stay unchanged.

    Parameters
    ----------
    workload : Workload
        The workload; jobs wider than the new machine are removed.
    processors : int, optional
        Total number of processors, a multiple of the node size. Without this and ``nodes``, the present number is
        rounded up to whole nodes.
    nodes : int, optional
        Total number of nodes, instead of ``processors``.
    processors_per_node : int, optional
        Processors of each node (default: the preset's, else those of the workload's machine).
    preset : str, optional
        A name of `swflow.jobs.machine.PRESETS`: a node type with its processors and capacities.
    capacities : mapping, optional
        Capacity of each node for each resource (bandwidths in MB/s, memory in MB); overrides the preset's.
    resources : mapping, optional
        The units of each resource of the machine besides processors, such as ``gpus``; None removes one, others stay
        unchanged. Jobs that need more are removed.

    Returns
    -------
    Workload
        The workload with the new machine. Its new history entry has ``read``, ``kept``, ``removed`` (reason to number
        of jobs) and ``machine``. Dependencies on removed jobs are left out and counted in its ``notes``.

    Raises
    ------
    SwflowError
        If the numbers do not define a machine, the preset is unknown, or no job remains.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2, 3], "processors": [1, 6, 20]})
    >>> laid = with_machine(Workload(jobs, Machine.of(10), "tiny"), preset="alvio-node")
    >>> laid.machine.processors, laid.machine.nodes, laid.machine.capacities["memory_bandwidth"]
    (12, 3, 6000.0)
    >>> laid.jobs["job_id"].to_list(), laid.history[0]["removed"]
    ([1, 2], {'wider-than-machine': 1})
    """
    if preset is not None and preset not in PRESETS:
        raise SwflowError(f"machine: preset: unknown node {preset!r}{suggest(preset, PRESETS)}")
    like = PRESETS[preset] if preset else workload.machine
    given = resources or {}
    size = like.processors_per_node if processors_per_node is None else processors_per_node
    machine = Machine(
        *_processors_and_nodes(processors, nodes, size, workload.machine.processors),
        {**like.capacities, **(capacities or {})},
        {name: units for name, units in {**workload.machine.resources, **given}.items() if units is not None},
    )
    read, columns = workload.jobs.height, workload.jobs.columns
    rules = [("wider-than-machine", pl.col("processors") > machine.processors)]
    for name, units in given.items():
        if units is not None and name not in columns:
            raise SwflowError(f"machine: resources: {workload.name} has no column {name}{suggest(name, columns)}")
        if units is not None:
            rules.append((f"more-{name}-than-machine", pl.col(name) > units))
    jobs, removed = without_removed(workload.jobs, rules)
    if jobs.is_empty():
        raise SwflowError(f"machine: {workload.name}: all {read:,} jobs are wider than {machine.describe()}")
    entry = {"stage": "machine", "read": read, "kept": jobs.height, "removed": removed, "machine": machine.to_dict()}
    return without_lost(workload.with_jobs(jobs, entry, machine=machine))


def _processors_and_nodes(processors: int | None, nodes: int | None, size: int, present: int) -> tuple[int, int]:
    """Return the processors and nodes of a machine with ``size`` processors per node."""
    if size < 1:
        raise SwflowError(f"machine: processors_per_node: {size}; expected at least 1")
    if processors is not None and nodes is not None:
        raise SwflowError("machine: give processors or nodes, not both: processors_per_node relates them")
    if processors is not None and processors % size:
        lower = processors // size * size
        raise SwflowError(
            f"machine: {processors} processors are not whole nodes of {size}; give {lower or size}"
            + (f" or {lower + size}" if lower else "")
            + ", or other processors_per_node"
        )
    if nodes is None:
        nodes = -(-(present if processors is None else processors) // size)
    return nodes * size, nodes
