"""Shared resources: what each process demands, what a node has, and what an overload costs."""

from dataclasses import dataclass, replace

import numpy as np

from swflow.compiled.kernel import Callback
from swflow.errors import SwflowError


@dataclass(frozen=True)
class Resources:
    """
    The resources that the processes of a node share.

    A penalty, by how much the demand on a node prolongs its jobs as a fraction of their run times, is linear, that is
    ``max(usage / capacity, 1) - 1`` for each resource; printed, which adds a second for every overloaded shadow;
    forgets-shadows, linear with the defect in `swflow.scheduling.machine.alvio`; at-start, the same computed once, when
    a job starts; or a formula of usage and capacity, whose negative values count as 0.

    References
    ----------
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the
    Alvio simulator", MASCOTS 2007, section III.
    """

    per_node: int  # processors of a node, a divisor of the machine's
    demands: np.ndarray  # (jobs, resources): of each process of a job
    capacities: np.ndarray  # (resources,): of a node
    penalty: str | Callback = "linear"
    slows: bool = True  # whether penalties prolong jobs; otherwise they only guide the allocation
    allowed: np.ndarray | None = None  # the run time at which each job is killed, seconds
    limit: float = np.inf  # allocation ``threshold``: the penalty of a node beyond which a job waits

    def of(self, items: np.ndarray | slice) -> "Resources":
        """Return the same for a selection of the jobs, maybe with repetitions."""
        allowed = None if self.allowed is None else self.allowed[items]
        return replace(self, demands=np.asarray(self.demands)[items], allowed=allowed)


def longest_stretch(resources: Resources, count: int, machine: int) -> float:
    """
    Check the arrays, and return the factor by which a linear penalty may prolong a run.

    Raises
    ------
    SwflowError
        If nodes do not divide the machine, demands or capacities are not finite, or demands are negative.

    Examples
    --------
    Two processes of the second job on a node demand eight of its six units, which prolongs them by a third.

    >>> resources = Resources(2, np.array([[1.0], [4.0]]), np.array([6.0]))
    >>> round(longest_stretch(resources, 2, 4), 3)
    1.333
    >>> longest_stretch(replace(resources, slows=False), 2, 4)
    1.0
    """
    demands = np.asarray(resources.demands, np.float64).reshape(-1, len(resources.capacities))
    if resources.per_node < 1 or machine % resources.per_node:
        raise SwflowError(f"resources: nodes of {resources.per_node} processors do not divide a machine of {machine:,}")
    if len(demands) != count:
        raise SwflowError(f"resources: demands are needed of {count:,} jobs, not of {len(demands):,}")
    if not (np.isfinite(demands).all() and (demands >= 0).all()):
        raise SwflowError("resources: negative or infinite demands; expected finite numbers of at least 0")
    if not (np.isfinite(resources.capacities).all() and (np.asarray(resources.capacities) > 0).all()):
        raise SwflowError("resources: zero or infinite capacities; expected finite numbers above 0")
    if resources.allowed is not None and not (len(resources.allowed) == count and (resources.allowed >= 0).all()):
        raise SwflowError(f"resources: allowed run times are needed of {count:,} jobs, none below 0")
    most = demands.max(axis=0, initial=0.0) * resources.per_node / resources.capacities
    return 1.0 + float(np.maximum(most - 1.0, 0.0).sum()) if resources.slows else 1.0
