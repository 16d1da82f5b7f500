"""A small learned policy: EASY that backfills jobs with short predicted run times first."""

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from swflow.policies.backfilling import Easy
from swflow.scheduling.plugins.protocol import Job


class LearnedRunTimes(Easy):
    """
    Learn run times from ended jobs, and backfill in the order of predicted run times; reservations use the estimates.

    A ridge regression of the logarithm of the run time on the logarithms of the estimate, the processors, the user's
    last two run times and the user's mean run time. It is fitted repeatedly to ended jobs. The order is that of É.
    Gaussier, D. Glesser, V. Reis, D. Trystram, "Improving backfilling by using machine learning to predict running
    times", SC 2015, with a simpler model.

    Parameters
    ----------
    every : int
        Number of ended jobs between two fits.
    remember : int
        Number of most recent jobs in a fit.
    """

    def __init__(self, every: int = 500, remember: int = 5000) -> None:
        self.every, self.remember = every, remember
        self.ended: list[tuple[list[float], float]] = []
        self.last: dict[int | None, list[float]] = defaultdict(list)
        self.seen: dict[int, list[float]] = {}
        self.predicted: dict[int, float] = {}
        self.weights: np.ndarray | None = None

    def on_submit(self, now: float, job: Job) -> None:
        """Store the features of a job at its submission, and predict its run time."""
        runs = self.last[job.user_id] or [math.log1p(job.estimate)]
        known = [math.log1p(job.estimate), math.log2(job.processors), runs[-1], runs[-2:][0], sum(runs) / len(runs)]
        self.seen[job.number] = known
        if self.weights is None:
            self.predicted[job.number] = job.estimate
        else:
            self.predicted[job.number] = math.expm1(min(float(self.weights @ [1.0, *known]), known[0]))

    def on_end(self, now: float, job: Job) -> None:
        """Add an ended job to the training data, and refit if due."""
        spent = math.log1p(now - job.start_time)
        self.last[job.user_id] = [*self.last[job.user_id][-19:], spent]
        self.ended.append((self.seen.pop(job.number), spent))
        if len(self.ended) % self.every == 0:
            recent = self.ended[-self.remember :]
            self.weights = ridge(np.array([known for known, _ in recent]), np.array([spent for _, spent in recent]))

    def backfill_order(self, jobs: Iterable[Job]) -> Iterable[Job]:
        """Return the jobs sorted by predicted run time."""
        return sorted(jobs, key=lambda job: (self.predicted[job.number], job.number))


def ridge(known: np.ndarray, values: np.ndarray, penalty: float = 1.0) -> np.ndarray:
    """
    Return the weights of a ridge regression, first the constant, which is not penalized.

    ``known`` has a row of features per value; ``penalty`` is the weight of the squared coefficients in the loss.

    Examples
    --------
    >>> ridge(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), penalty=0.0).round(6).tolist()
    [1.0, 2.0]
    """
    centre = known.mean(axis=0)
    moved = known - centre
    weights = np.linalg.solve(moved.T @ moved + penalty * np.eye(known.shape[1]), moved.T @ (values - values.mean()))
    return np.append(values.mean() - centre @ weights, weights)
