"""Laying a machine over a workload: its processors, its nodes, and what the nodes share."""

from collections.abc import Mapping

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs import Workload
from swflow.machine import PRESETS, Machine, Node


def with_machine(
    workload: Workload,
    *,
    processors: int | None = None,
    nodes: int | None = None,
    processors_per_node: int | None = None,
    preset: str | None = None,
    capacities: Mapping[str, float] | None = None,
) -> Workload:
    """
    Lay a machine over a workload; what is not given stays as it is.

    Parameters
    ----------
    workload : Workload
        The jobs; those wider than the machine are removed.
    processors : int, optional
        Processors in all, whole nodes. Without this and ``nodes`` their number stays, rounded up to whole nodes.
    nodes : int, optional
        Or nodes in all.
    processors_per_node : int, optional
        Processors of each node; by default the preset's, else those of the workload's machine.
    preset : str, optional
        One of `swflow.machine.PRESETS`: a kind of node with its processors and capacities.
    capacities : mapping, optional
        Resource to what each node has of it (bandwidths in MB/s, memory in MB), besides or instead of the preset's.

    Returns
    -------
    Workload
        Its history's new entry has ``read``, ``kept``, ``removed`` (reason to number of jobs) and ``machine``.

    Raises
    ------
    SwflowError
        If the numbers do not make a machine, the preset is unknown, or no job is left.

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
    node = PRESETS[preset] if preset else Node(workload.machine.processors_per_node, workload.machine.capacities)
    size = node.processors if processors_per_node is None else processors_per_node
    machine = Machine(
        *_processors_and_nodes(processors, nodes, size, workload.machine.processors),
        {**node.capacities, **(capacities or {})},
    )
    read = workload.jobs.height
    jobs = workload.jobs.filter((pl.col("processors") <= machine.processors).fill_null(True))
    if jobs.is_empty():
        raise SwflowError(f"machine: {workload.name}: each of the {read:,} jobs is wider than {machine.describe()}")
    removed = {"wider-than-machine": read - jobs.height} if jobs.height < read else {}
    entry = {"stage": "machine", "read": read, "kept": jobs.height, "removed": removed, "machine": machine.to_dict()}
    return workload.with_jobs(jobs, entry, machine=machine)


def _processors_and_nodes(processors: int | None, nodes: int | None, size: int, present: int) -> tuple[int, int]:
    """Return processors and nodes of a machine whose nodes have ``size`` processors."""
    if size < 1:
        raise SwflowError(f"machine: processors_per_node must be at least 1, not {size}")
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
