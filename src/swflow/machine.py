"""The machine that a workload is meant for: processors, in nodes of equal size."""

from dataclasses import asdict, dataclass
from typing import Any

from swflow.errors import SwflowError


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

    Raises
    ------
    SwflowError
        If the numbers do not make a machine.

    Examples
    --------
    >>> Machine(processors=1152, nodes=144).processors_per_node
    8
    """

    processors: int
    nodes: int

    def __post_init__(self) -> None:
        if self.processors < 1:
            raise SwflowError(f"machine: processors must be at least 1, not {self.processors}")
        if not 1 <= self.nodes <= self.processors or self.processors % self.nodes:
            raise SwflowError(f"machine: {self.processors} processors do not divide into {self.nodes} equal nodes")

    @property
    def processors_per_node(self) -> int:
        """Processors of each node."""
        return self.processors // self.nodes

    @classmethod
    def of(cls, processors: int, nodes: int | None = None) -> "Machine":
        """Make a machine; without ``nodes``, or with a number that does not divide, each processor is a node."""
        if nodes is None or nodes < 1 or processors % nodes:
            nodes = processors
        return cls(processors, nodes)

    def to_dict(self) -> dict[str, Any]:
        """Return the machine as plain data, for Parquet metadata."""
        return asdict(self)
