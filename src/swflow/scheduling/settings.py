"""What follows from the options of a scheduler: the queue of each machine, and the parameters of Slurm's cycles."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from swflow.scheduling.nested_options import SCHEDULER_PARAMETERS
from swflow.scheduling.options import QUEUE_OPTIONS, SHARED_ALLOCATIONS, Options, Queue


@dataclass(frozen=True)
class Settings(Options):
    """The options of a scheduler, which need not go together, and what follows from them."""

    @property
    def shares(self) -> bool:
        """Whether the engine considers the resources that the processes of a node share."""
        return self.runtime == "shared" or not self.allocations.isdisjoint(SHARED_ALLOCATIONS)

    @property
    def allocations(self) -> frozenset[str]:
        """The allocations of all machines."""
        return frozenset(queue.allocation for queue in self.queues)

    @property
    def is_numbered(self) -> bool:
        """Whether the processors of the machines have numbers."""
        return "count" not in self.allocations

    @property
    def orders(self) -> list[str | Callable[..., float]]:
        """The orders and backfill orders of all machines."""
        both = (order for queue in self.queues for order in (queue.order, queue.backfill_order))
        return [order for order in both if order is not None]

    @property
    def cycles(self) -> dict[str, float]:
        """The parameters of backfill slurm, with Slurm's defaults."""
        return {name: one.default for name, one in SCHEDULER_PARAMETERS.items()} | dict(self.scheduler_parameters or {})

    @property
    def is_slurm(self) -> bool:
        """Whether Slurm's engine makes the schedule."""
        return any(queue.backfill == "slurm" for queue in self.queues)

    @property
    def end_delay(self) -> float:
        """Seconds from the end of a job until the scheduler has its processors; 0 unless a queue is Slurm's."""
        return self.cycles["end_delay"] if self.is_slurm else 0.0

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """The queue of the machine, or of each cluster, with the options that it does not override."""
        own: list[dict[str, Any]] = [dict(cluster) for cluster in self.clusters] or [{}]
        for cluster in own:
            if "order" in cluster:
                cluster.setdefault("backfill_order", None)
        return tuple(
            Queue(**{name: cluster.get(name, getattr(self, name)) for name in QUEUE_OPTIONS}) for cluster in own
        )
