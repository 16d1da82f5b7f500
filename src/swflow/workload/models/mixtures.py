"""Fit mixtures of Gaussians to run times in log space: model-based clustering."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from swflow.errors import SwflowError
from swflow.workload.models.pools import Plain, of_plain

#: Default of the largest number of components to try.
COMPONENTS = 20

#: Number of evenly spaced order statistics that represent a longer series: for the expectation-maximization
#: algorithm, and for the agglomerative clustering that initializes it.
FITTED, AGGLOMERATED = 10_000, 2_000

#: Variance added to the variance of every component. Its square root is the width of the narrowest possible component,
#: 5 % of a run time.
_LEAST_VARIANCE = 2.5e-3

#: Smallest ratio of the jobs labelled with a component to its weight; below it, the component is not a class of jobs.
_LEAST_LABELLED = 0.5

#: Convergence limit of the mean log-likelihood, and the largest number of iterations. After the last iteration, the
#: result so far takes part in the comparison.
_TOLERANCE, _MOST_ITERATIONS = 1e-5, 500

#: Run times are whole seconds: t represents [t - 0.5, t + 0.5). Smaller values are raised to this one.
_SHORTEST = 0.25


@dataclass(frozen=True)
class Mixture:
    """
    A mixture of Gaussians of ln(run time in seconds); components are sorted by mean.

    Draws stay within the range of the fitted run times, ``shortest`` to ``longest``. ``bic`` is the Bayesian
    information criterion of every number of components that was tried; the smallest is selected.
    """

    weights: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    shortest: float
    longest: float
    bic: Mapping[int, float]

    @property
    def components(self) -> int:
        """Return the number of Gaussians."""
        return len(self.weights)

    def classify(self, run_times: np.ndarray) -> np.ndarray:
        """Return the most probable component of each run time (s), numbered from 1."""
        run_times = np.asarray(run_times, dtype=float)
        values, inverse = np.unique(run_times, return_inverse=True)
        logs = np.log(np.maximum(values, _SHORTEST))
        score = np.log(self.weights / self.deviations) - 0.5 * ((logs[:, None] - self.means) / self.deviations) ** 2
        return (np.argmax(score, axis=1) + 1)[inverse]

    def sample(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """
        Draw a run time for every label, a component numbered from 1.

        Run times are whole seconds. Draws outside of the range of the fitted run times are repeated.
        """
        run_times = np.full(len(labels), np.nan)
        todo = np.arange(len(labels))
        while len(todo):
            component = labels[todo] - 1
            run_times[todo] = np.rint(np.exp(rng.normal(self.means[component], self.deviations[component])))
            todo = todo[(run_times[todo] < self.shortest) | (run_times[todo] > self.longest)]
        return run_times

    @classmethod
    def from_dict(cls, content: Plain) -> "Mixture":
        """Create a mixture from its fields in a JSON file."""
        bic = {int(components): value for components, value in content["bic"].items()}
        return cls(**of_plain(content) | {"bic": bic})


def fit_mixture(run_times: np.ndarray, *, components: int = COMPONENTS) -> Mixture:
    """
    Fit a mixture of Gaussians to the logarithms of run times; select the number of components by BIC.

    Run times are in seconds, not negative; ``components`` is the largest number of components to try, at least 1. The
    same run times give the same mixture, in any order.

    Notes
    -----
    The method is model-based clustering (C. Fraley, A. E. Raftery, "Model-based clustering, discriminant analysis,
    and density estimation", J. Am. Stat. Assoc. 97, 2002), as used by T. N. Minh and L. Wolters (JSSPP 2009, section
    3.2). For each number of components, an agglomerative clustering initializes the expectation-maximization
    algorithm. The Bayesian information criterion selects one of the results.

    Differences from the MCLUST software of its authors:

    - The agglomeration uses Ward's criterion, which is the classification likelihood of clusters of *equal* variance.
      MCLUST uses the likelihood of unequal variances for such mixtures.
    - Only mixtures of unequal variances are tried.
    - MCLUST rejects a number of components if a variance vanishes, which happens with many equal run times.
      Here, a run time of t whole seconds is spread over [t - 0.5, t + 0.5), and the variance of a
      deviation of 5 % is added to every variance. Popular run times can therefore have a narrow component.
    - A mixture is rejected if a component is the most probable one of fewer than half as many jobs as its weight
      implies, because the generation of workloads uses both labels and weights.
    - Up to 20 components are tried; MCLUST's default is 9.
    - A long series is represented by 10,000 evenly spaced order statistics, of which 2,000 are agglomerated (MCLUST can
      start from a random sample). The criterion applies to all jobs: the mean log-likelihood times their number.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> run_times = np.rint(np.exp(np.concatenate([rng.normal(4, 0.5, 3000), rng.normal(9, 0.3, 1000)])))
    >>> mixture = fit_mixture(run_times, components=4)
    >>> mixture.components, mixture.means.round(1).tolist(), mixture.weights.round(2).tolist()
    (2, [4.0, 9.0], [0.75, 0.25])
    >>> mixture.classify([55, 60, 8000])
    array([1, 1, 2])
    """
    from threadpoolctl import threadpool_limits

    run_times = np.sort(np.asarray(run_times, dtype=float))
    if len(run_times) < 2 or not (run_times >= 0).all():
        raise SwflowError("mixture: needs two run times or more, all known and none negative")
    logs = _order_statistics(np.log(_spread(run_times)), FITTED)
    best, bic = None, dict[int, float]()
    with threadpool_limits(limits=1):  # a different order of summation would change the last digits
        for count, groups in enumerate(_agglomerations(logs, components), 1):
            weights, means, variances, mean_likelihood = _expectation_maximization(logs, groups, count)
            parameters = 3 * count - 1  # weights, which sum to 1, means and variances
            bic[count] = parameters * math.log(len(run_times)) - 2 * len(run_times) * mean_likelihood
            order = np.argsort(means, kind="stable")
            candidate = Mixture(
                weights=weights[order] / weights.sum(),
                means=means[order],
                deviations=np.sqrt(variances[order]),
                shortest=float(run_times[0]),
                longest=float(run_times[-1]),
                bic=bic,
            )
            if best is None or (bic[count] < bic[best.components] and _is_clustering(candidate, run_times)):
                best = candidate
    assert best is not None  # the loop always tries one component
    return best


def _spread(run_times: np.ndarray) -> np.ndarray:
    """Spread equal whole seconds evenly over the second around them; the input must be sorted."""
    _, first, counts = np.unique(run_times, return_index=True, return_counts=True)
    place = np.arange(len(run_times)) - np.repeat(first, counts)
    return np.maximum(run_times - 0.5 + (place + 0.5) / np.repeat(counts, counts), _SHORTEST)


def _order_statistics(values: np.ndarray, most: int) -> np.ndarray:
    """Return sorted values, or evenly spaced ones of them if there are too many."""
    if len(values) <= most:
        return values
    return values[((np.arange(most) + 0.5) * len(values) / most).astype(np.int64)]


def _agglomerations(logs: np.ndarray, components: int) -> np.ndarray:
    """Cluster sorted values into 1 to ``components`` groups, numbered from 0; shape (numbers of groups, values)."""
    from scipy.cluster.hierarchy import cut_tree, linkage

    sample = _order_statistics(logs, AGGLOMERATED)
    most = max(1, min(components, len(np.unique(sample)) // 2))  # each component needs two different values
    labels = cut_tree(linkage(sample[:, None], "ward"), range(1, most + 1))  # one tree, cut at every height
    # assign each value to the group of the nearest clustered value
    nearest = np.searchsorted((sample[1:] + sample[:-1]) / 2, logs)
    return labels[nearest].T


def _is_clustering(mixture: Mixture, run_times: np.ndarray) -> bool:
    """Return whether every component labels at least the share `_LEAST_LABELLED` of the jobs implied by its weight."""
    labelled = np.bincount(mixture.classify(run_times), minlength=mixture.components + 1)[1:] / len(run_times)
    return bool((labelled >= _LEAST_LABELLED * mixture.weights).all())


def _expectation_maximization(
    logs: np.ndarray, groups: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Fit a mixture that starts from groups of values; return weights, means, variances, mean log-likelihood."""
    members = np.bincount(groups, minlength=count).astype(float)
    weights, means = members / len(logs), np.bincount(groups, logs, count) / members
    variances = np.bincount(groups, (logs - means[groups]) ** 2, count) / members + _LEAST_VARIANCE
    powers = np.stack([np.ones_like(logs), logs, logs**2])
    room = np.empty((count, len(logs)))
    likelihood, before = -math.inf, -math.inf
    for _ in range(_MOST_ITERATIONS):
        likelihood, before = _expect(logs, weights, means, variances, room), likelihood
        moments = room @ powers.T
        share = moments[:, 0] + 10 * np.finfo(float).eps
        weights, means = share / len(logs), moments[:, 1] / share
        variances = moments[:, 2] / share - means**2 + _LEAST_VARIANCE
        if abs(likelihood - before) < _TOLERANCE:
            break
    return weights, means, variances, _expect(logs, weights, means, variances, room)


def _expect(logs: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray, room: np.ndarray) -> float:
    """Write the responsibility of every component for every value to ``room``; return the mean log-likelihood."""
    np.subtract(logs, means[:, None], out=room)
    np.square(room, out=room)
    room *= (-0.5 / variances)[:, None]
    room += (np.log(weights) - 0.5 * np.log(2 * math.pi * variances))[:, None]
    highest = room.max(axis=0)  # so that the largest exponential is 1
    room -= highest
    np.exp(room, out=room)
    total = room.sum(axis=0)
    room /= total
    return float(np.mean(highest + np.log(total)))
