"""A policy and an order of the user's own, for the random tests; both have a counterpart in `tests/cases.py`."""

from collections.abc import Iterable, Sequence

from swflow.policies.backfilling import Easy, Fcfs
from swflow.scheduling.plugins.protocol import Job, MachineView


class Sorted(Easy):
    """EASY, or no backfilling, with the queue sorted by an attribute of the jobs."""

    def __init__(self, by: str = "estimate", backfills: bool = True) -> None:
        self.by, self.backfills = by, backfills

    def decide(self, now: float, queue: Sequence[Job], running: Sequence[Job], machine: MachineView) -> Iterable[Job]:
        """Start jobs in the order of the attribute."""
        waiting = sorted(queue, key=lambda job: (getattr(job, self.by), job.number))
        policy = super() if self.backfills else Fcfs()
        return policy.decide(now, waiting, running, machine)


def short_and_old(estimate: float, wait: float) -> float:
    """Return a key by which short jobs that waited long are first."""
    return estimate - 2 * wait


def by_processors(now, submit, estimate, processors, user, group, queue, executable, job):
    """Return a key by which narrow jobs of low users are first."""
    return processors + user
