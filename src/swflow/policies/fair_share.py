"""Fair share: EASY with the queue ordered by the recent use of each user."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from swflow.policies.backfilling import Easy
from swflow.scheduling.plugins.protocol import Job, MachineView


class FairShare(Easy):
    """
    Order the queue by the users' recent use, then by submission; backfill as EASY.

    Parameters
    ----------
    half_life : float
        Half-life of the use, in seconds.
    """

    def __init__(self, half_life: float = 7 * 24 * 3600.0) -> None:
        self.half_life = half_life
        # decayed processor-seconds of each user, and the time of their last update
        self.used: dict[int | None, float] = defaultdict(float)
        self.updated: dict[int | None, float] = defaultdict(float)

    def usage(self, user: int | None, now: float) -> float:
        """Return the decayed processor-seconds of a user; running jobs count when they end."""
        return float(self.used[user] * 0.5 ** ((now - self.updated[user]) / self.half_life))

    def on_end(self, now: float, job: Job) -> None:
        """Add the job's processor-seconds to its user."""
        self.used[job.user_id] = self.usage(job.user_id, now) + job.processors * (now - job.start_time)
        self.updated[job.user_id] = now

    def decide(self, now: float, queue: Sequence[Job], running: Sequence[Job], machine: MachineView) -> Iterable[Job]:
        """Order the queue by use, and schedule it as EASY does."""
        use = {user: self.usage(user, now) for user in {job.user_id for job in queue}}
        return super().decide(now, sorted(queue, key=lambda job: (use[job.user_id], job.number)), running, machine)
