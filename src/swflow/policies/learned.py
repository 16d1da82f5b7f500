"""A small learned policy: EASY that backfills the jobs first that it takes for short."""

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from swflow.policies.backfilling import Easy
from swflow.scheduling.policy import Job


class LearnedRunTimes(Easy):
    """
    Learn run times while jobs end, and backfill in the order of the predictions; reservations keep to the estimates.

    A ridge regression of the logarithm of the run time on those of the estimate, the processors, the user's last two
    run times and the user's mean so far, fitted again and again on what ended. The order is that of É. Gaussier,
    D. Glesser, V. Reis, D. Trystram, "Improving backfilling by using machine learning to predict running times", SC
    2015, with a simpler model.

    Parameters
    ----------
    every : int
        Jobs between two fits.
    remember : int
        How many of the last jobs a fit is made on.
    """

    def __init__(self, every: int = 500, remember: int = 5000) -> None:
        from sklearn.linear_model import Ridge

        self.model = Ridge(alpha=1.0)
        self.every, self.remember = every, remember
        self.ended: list[tuple[list[float], float]] = []
        self.last: dict[int | None, list[float]] = defaultdict(list)
        self.seen: dict[int, list[float]] = {}
        self.predicted: dict[int, float] = {}
        self.weights: np.ndarray | None = None

    def on_submit(self, now: float, job: Job) -> None:
        """Note what is known of a job now, and predict."""
        runs = self.last[job.user_id] or [math.log1p(job.estimate)]
        known = [math.log1p(job.estimate), math.log2(job.processors), runs[-1], runs[-2:][0], sum(runs) / len(runs)]
        self.seen[job.number] = known
        if self.weights is None:
            self.predicted[job.number] = job.estimate
        else:
            self.predicted[job.number] = math.expm1(min(float(self.weights @ [1.0, *known]), known[0]))

    def on_end(self, now: float, job: Job) -> None:
        """Learn from a job that ended."""
        spent = math.log1p(now - job.start_time)
        self.last[job.user_id] = [*self.last[job.user_id][-19:], spent]
        self.ended.append((self.seen.pop(job.number), spent))
        if len(self.ended) % self.every == 0:
            recent = self.ended[-self.remember :]
            self.model.fit([known for known, _ in recent], [spent for _, spent in recent])
            self.weights = np.append(self.model.intercept_, self.model.coef_)

    def backfill_order(self, jobs: Iterable[Job]) -> Iterable[Job]:
        """Try the shortest by prediction first."""
        return sorted(jobs, key=lambda job: (self.predicted[job.number], job.number))
