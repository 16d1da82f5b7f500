"""Fair share: EASY with the queue in order of what each user has had lately."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from swflow.policies.backfilling import Easy
from swflow.scheduling.policy import Job, MachineView


class FairShare(Easy):
    """
    Serve the users first who used least of late, and the jobs of a user first come, first served; backfill as EASY.

    Parameters
    ----------
    half_life : float
        Seconds after which use counts half.
    """

    def __init__(self, half_life: float = 7 * 24 * 3600.0) -> None:
        self.half_life = half_life
        # A user's decayed processor-seconds, and when they were last brought up to date.
        self.used: dict[int | None, float] = defaultdict(float)
        self.updated: dict[int | None, float] = defaultdict(float)

    def usage(self, user: int | None, now: float) -> float:
        """Return the processor-seconds that a user has had, decayed; running jobs count when they end."""
        return float(self.used[user] * 0.5 ** ((now - self.updated[user]) / self.half_life))

    def on_end(self, now: float, job: Job) -> None:
        """Charge the user."""
        self.used[job.user_id] = self.usage(job.user_id, now) + job.processors * (now - job.start_time)
        self.updated[job.user_id] = now

    def decide(self, now: float, queue: Sequence[Job], running: Sequence[Job], machine: MachineView) -> Iterable[Job]:
        """Order the queue by use, and serve it as EASY does."""
        use = {user: self.usage(user, now) for user in {job.user_id for job in queue}}
        return super().decide(now, sorted(queue, key=lambda job: (use[job.user_id], job.number)), running, machine)
