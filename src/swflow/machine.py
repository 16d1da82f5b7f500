"""The machine that a workload is meant for: processors, in nodes of equal size, and what the nodes share."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError

#: No machine may have more processors: kernels number them by 32 bits.
MOST_PROCESSORS = 2**31


def require_machine(processors: Any, what: str = "processors") -> None:
    """Raise an error unless a machine can have so many processors."""
    if isinstance(processors, bool) or not isinstance(processors, Integral):
        raise SwflowError(f"machine: {what} must be a whole number, not {processors!r}")
    count = int(processors)
    if count < 1:
        raise SwflowError(f"machine: {what} must be at least 1, not {count}")
    if count > MOST_PROCESSORS:
        raise SwflowError(f"machine: {what} must be at most {MOST_PROCESSORS:,} (2^31), not {count:,}")


@dataclass(frozen=True)
class Machine:
    """
    A parallel machine.

    Parameters
    ----------
    processors : int
        Processors in all.
    nodes : int
        Nodes in all; 1 to ``processors``, and a divisor of it.
    capacities : mapping
        What each *node* has of the resources that its processes share: name to amount, in the unit of the demands
        (``memory_bandwidth`` and ``network_bandwidth`` in MB/s, ``memory`` in MB).

    Raises
    ------
    SwflowError
        If the numbers do not make a machine.

    Examples
    --------
    >>> Machine(processors=1152, nodes=144).processors_per_node
    8
    >>> Machine(112, 28, {"memory_bandwidth": 6000}).describe()
    '112 processors in 28 nodes of memory_bandwidth 6,000'
    """

    processors: int
    nodes: int
    # Nothing that Python can hash; machines that differ in it alone share their hash, and are unequal all the same.
    capacities: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_machine(self.processors)
        require_machine(self.nodes, "nodes")
        if not isinstance(self.capacities, Mapping):
            raise SwflowError(f"machine: capacities must be a mapping of names to numbers, not {self.capacities!r}")
        if not 1 <= self.nodes <= self.processors or self.processors % self.nodes:
            raise SwflowError(f"machine: {self.processors} processors do not divide into {self.nodes} equal nodes")
        for name, capacity in self.capacities.items():
            if isinstance(capacity, bool) or not isinstance(capacity, Real):
                raise SwflowError(f"machine: the capacity {name} must be a number, not {capacity!r}")
            if not (math.isfinite(capacity) and capacity > 0):
                raise SwflowError(f"machine: the capacity {name} must be positive and finite, not {capacity}")
        in_order = {name: float(self.capacities[name]) for name in sorted(self.capacities)}
        object.__setattr__(self, "capacities", in_order)

    @property
    def processors_per_node(self) -> int:
        """Processors of each node."""
        return self.processors // self.nodes

    @classmethod
    def of(cls, processors: int, nodes: int | None = None) -> "Machine":
        """Make a machine; without ``nodes``, or with a number that does not divide, each processor is a node."""
        require_machine(processors)
        if nodes is None or nodes < 1 or processors % nodes:
            nodes = processors
        return cls(processors, nodes)

    def with_processors(self, processors: int) -> "Machine":
        """
        Return a machine of so many processors; nodes with capacities stay the nodes that they are.

        Raises
        ------
        SwflowError
            If nodes have capacities, and these processors are not whole nodes.
        """
        if not self.capacities:
            return Machine.of(processors)
        if processors % self.processors_per_node:
            raise SwflowError(
                f"machine: {processors} processors are not whole nodes of {self.processors_per_node}, "
                "whose capacities the workload's machine states"
            )
        return Machine(processors, processors // self.processors_per_node, self.capacities)

    def describe(self) -> str:
        """Say in words what the machine is."""
        shared = ", ".join(f"{name} {capacity:,.10g}" for name, capacity in self.capacities.items())
        return f"{self.processors:,} processors in {self.nodes:,} nodes" + (f" of {shared}" if shared else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the machine as plain data, for Parquet metadata."""
        return asdict(self)


def free_memory() -> int | None:
    """Return the bytes of memory that are free for a program, where the system (Linux) says so."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(found[0][1]) if found else None


@dataclass(frozen=True)
class Node:
    """
    A kind of node.

    Parameters
    ----------
    processors : int
        Processors of the node.
    capacities : mapping
        As of `Machine`.
    """

    processors: int
    capacities: Mapping[str, float]


#: Nodes of published experiments. ``alvio-node``: F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource
#: sharing in backfilling policies using the Alvio simulator", MASCOTS 2007, section V.B.
PRESETS: dict[str, Node] = {
    "alvio-node": Node(4, {"memory_bandwidth": 6000.0, "network_bandwidth": 256.0, "memory": 16384.0}),
}
