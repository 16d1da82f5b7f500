"""The machine of a workload: processors in nodes of equal size, shared capacities of a node, and counted resources."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError, shown
from swflow.values import MOST_PROCESSORS, MOST_UNITS


def require_machine(processors: Any, what: str = "processors") -> None:
    """Raise an error unless the number of processors is valid for a machine."""
    if isinstance(processors, bool) or not isinstance(processors, Integral):
        raise SwflowError(f"machine: {what}: {shown(processors)}; expected a whole number")
    count = int(processors)
    if count < 1:
        raise SwflowError(f"machine: {what}: {shown(count)}; expected at least 1")
    if count > MOST_PROCESSORS:
        raise SwflowError(f"machine: {what}: {shown(count)}; expected at most {MOST_PROCESSORS:,} (2^31)")


def checked_resources(resources: Any, where: str) -> dict[str, int]:
    """
    Return the resources of a machine in order of their names; raise an error if a name or a number is invalid.

    Examples
    --------
    >>> checked_resources({"licenses": 20, "gpus": 512}, "resources")
    {'gpus': 512, 'licenses': 20}
    """
    if not isinstance(resources, Mapping):
        raise SwflowError(f"{where}: {shown(resources)}; expected names with numbers of units, such as {{gpus: 512}}")
    for name, units in resources.items():
        if not isinstance(name, str) or not name.isidentifier() or name[0] == "_" or name in ("processors", "nodes"):
            raise SwflowError(
                f"{where}: {shown(name)} is no name of a resource; expected letters, digits and _, such as gpus"
            )
        if isinstance(units, bool) or not isinstance(units, Integral) or not 0 <= int(units) <= MOST_UNITS:
            raise SwflowError(f"{where}: {name}: {shown(units)}; expected a whole number of units from 0 to 2^50")
    return {name: int(resources[name]) for name in sorted(resources)}


@dataclass(frozen=True)
class Machine:
    """
    A parallel machine.

    Parameters
    ----------
    processors : int
        Total number of processors.
    nodes : int
        Total number of nodes; 1 to ``processors``, and a divisor of it.
    capacities : mapping
        Capacity of each *node* for each shared resource, in the unit of the demands (``memory_bandwidth`` and
        ``network_bandwidth`` in MB/s, ``memory`` in MB).
    resources : mapping
        How many units of each resource the *machine* has besides processors, such as ``gpus``. A job
        occupies as many as its column of the same name states, and starts only if every resource suffices.

    Raises
    ------
    SwflowError
        If the numbers do not define a machine.

    Examples
    --------
    >>> Machine(processors=1152, nodes=144).processors_per_node
    8
    >>> Machine(112, 28, {"memory_bandwidth": 6000}).describe()
    '112 processors in 28 nodes of memory_bandwidth 6,000'
    >>> Machine(112, 28, resources={"gpus": 8}).describe()
    '112 processors in 28 nodes, gpus 8'
    """

    processors: int
    nodes: int
    # Mappings are not hashable. Machines that differ only in their capacities share a hash but are unequal.
    capacities: Mapping[str, float] = field(default_factory=dict, hash=False)
    resources: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_machine(self.processors)
        require_machine(self.nodes, "nodes")
        if not isinstance(self.capacities, Mapping):
            raise SwflowError(f"machine: capacities: {shown(self.capacities)}; expected a mapping of names to numbers")
        if not 1 <= self.nodes <= self.processors or self.processors % self.nodes:
            raise SwflowError(f"machine: {self.processors} processors do not divide into {self.nodes} equal nodes")
        for name, capacity in self.capacities.items():
            if isinstance(capacity, bool) or not isinstance(capacity, Real):
                raise SwflowError(f"machine: capacity {name}: {shown(capacity)}; expected a number")
            if not 0 < capacity < 1e300:
                raise SwflowError(f"machine: capacity {name}: {shown(capacity)}; expected a finite number above 0")
        in_order = {name: float(self.capacities[name]) for name in sorted(self.capacities)}
        object.__setattr__(self, "capacities", in_order)
        object.__setattr__(self, "resources", checked_resources(self.resources, "machine: resources"))
        for name in self.resources.keys() & self.capacities.keys():
            raise SwflowError(
                f"machine: resources: {name} is also a capacity of each node; give it to the machine or to the nodes"
            )

    @property
    def processors_per_node(self) -> int:
        """Return the number of processors of each node."""
        return self.processors // self.nodes

    @classmethod
    def of(cls, processors: int, nodes: int | None = None) -> "Machine":
        """Create a machine; without ``nodes``, or if it does not divide ``processors``, each processor is a node."""
        require_machine(processors)
        if nodes is None or nodes < 1 or processors % nodes:
            nodes = processors
        return cls(processors, nodes)

    def with_processors(self, processors: int) -> "Machine":
        """Return a machine with this number of processors: a multiple of the node size if nodes have capacities."""
        if not self.capacities:
            return replace(Machine.of(processors), resources=self.resources)
        if processors % self.processors_per_node:
            raise SwflowError(
                f"machine: {processors} processors are not whole nodes of {self.processors_per_node}, "
                "whose capacities the workload's machine states"
            )
        return Machine(processors, processors // self.processors_per_node, self.capacities, self.resources)

    def describe(self) -> str:
        """Return a description of the machine as text."""
        shared = ", ".join(f"{name} {capacity:,.10g}" for name, capacity in self.capacities.items())
        counted = "".join(f", {name} {capacity:,}" for name, capacity in self.resources.items())
        where = f" in {self.nodes:,} nodes" if self.nodes < self.processors or shared else ""
        return f"{self.processors:,} processors{where}" + (f" of {shared}" if shared else "") + counted

    def to_dict(self) -> dict[str, object]:
        """Return the machine as JSON-compatible data, for Parquet metadata; without ``resources`` if it has none."""
        return {name: value for name, value in asdict(self).items() if name != "resources" or value}


def free_memory() -> int | None:
    """Return the free memory in bytes, or None if the system does not report it (Linux does)."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return 1024 * int(found[0][1]) if found else None


#: Nodes of published experiments. Source of ``alvio-node``: F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of
#: resource sharing in backfilling policies using the Alvio simulator", MASCOTS 2007, section V.B.
PRESETS: dict[str, Machine] = {
    "alvio-node": Machine(4, 1, {"memory_bandwidth": 6000.0, "network_bandwidth": 256.0, "memory": 16384.0}),
}
