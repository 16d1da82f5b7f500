"""Mixtures of Gaussians of run times in log space: model-based clustering."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from swflow.errors import SwflowError

#: The most components that are tried, unless a caller says otherwise.
COMPONENTS = 20

#: Longer series are represented by so many of their order statistics, evenly spaced: for the expectation-maximization
#: algorithm, and for the agglomerative clustering that it starts from.
FITTED, AGGLOMERATED = 10_000, 2_000

#: The variance that is added to that of every component. Its square root is the
#: narrowest component there can be: 5 % of a run time.
_LEAST_VARIANCE = 2.5e-3

#: A component must be the most probable one of at least so many jobs, as a share of its weight, to be a class of jobs.
_LEAST_LABELLED = 0.5

#: The algorithm ends when the mean log-likelihood changes by less, or after so many iterations: the best so far is then
#: compared with the others all the same.
_TOLERANCE, _MOST_ITERATIONS = 1e-5, 500

#: Run times are whole seconds, and one of t stands for [t - 0.5, t + 0.5); none is taken for shorter than this.
_SHORTEST = 0.25


@dataclass(frozen=True)
class Mixture:
    """
    A mixture of Gaussians of ln(run time in seconds), its components in the order of their means.

    Parameters
    ----------
    weights, means, deviations : numpy.ndarray, shape (components,)
        Probabilities, which add up to 1; means and standard deviations of the logarithm.
    shortest, longest : float
        The run times, in seconds, between which values are drawn: the range of those that were fitted.
    bic : dict of int to float
        The Bayesian information criterion of every number of components that was tried; the smallest won.
    """

    weights: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    shortest: float
    longest: float
    bic: Mapping[int, float]

    @property
    def components(self) -> int:
        """How many Gaussians there are."""
        return len(self.weights)

    def classify(self, run_times: np.ndarray) -> np.ndarray:
        """
        Label run times by the component that they most probably come from.

        Parameters
        ----------
        run_times : numpy.ndarray, shape (jobs,)
            Seconds.

        Returns
        -------
        numpy.ndarray of int, shape (jobs,)
            From 1 to the number of components.
        """
        run_times = np.asarray(run_times, dtype=float)
        values, inverse = np.unique(run_times, return_inverse=True)
        logs = np.log(np.maximum(values, _SHORTEST))
        score = np.log(self.weights / self.deviations) - 0.5 * ((logs[:, None] - self.means) / self.deviations) ** 2
        return (np.argmax(score, axis=1) + 1)[inverse]

    def sample(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """
        Draw a run time for every label.

        Parameters
        ----------
        labels : numpy.ndarray of int, shape (jobs,)
            Components, from 1 on.
        rng : numpy.random.Generator
            Where all chance comes from.

        Returns
        -------
        numpy.ndarray of float, shape (jobs,)
            Whole seconds, between the shortest and the longest run time that were fitted: what falls outside is
            drawn again.
        """
        run_times = np.full(len(labels), np.nan)
        todo = np.arange(len(labels))
        while len(todo):
            component = labels[todo] - 1
            run_times[todo] = np.rint(np.exp(rng.normal(self.means[component], self.deviations[component])))
            todo = todo[(run_times[todo] < self.shortest) | (run_times[todo] > self.longest)]
        return run_times

    def to_dict(self) -> dict[str, Any]:
        """Return the mixture as plain data."""
        return {
            "weights": self.weights.tolist(),
            "means": self.means.tolist(),
            "deviations": self.deviations.tolist(),
            "shortest": self.shortest,
            "longest": self.longest,
            "bic": {str(components): value for components, value in self.bic.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Mixture":
        """Make a mixture of what `to_dict` returned."""
        return cls(
            weights=np.array(content["weights"], dtype=float),
            means=np.array(content["means"], dtype=float),
            deviations=np.array(content["deviations"], dtype=float),
            shortest=content["shortest"],
            longest=content["longest"],
            bic={int(components): value for components, value in content["bic"].items()},
        )


def fit_mixture(run_times: np.ndarray, *, components: int = COMPONENTS) -> Mixture:
    """
    Fit a mixture of Gaussians to the logarithms of run times; how many is chosen by BIC.

    Parameters
    ----------
    run_times : numpy.ndarray, shape (jobs,)
        Seconds, not negative.
    components : int
        The largest number of components that is tried, from 1 on.

    Returns
    -------
    Mixture
        The same run times give the same mixture, in whatever order they come.

    Raises
    ------
    SwflowError
        If there are fewer than two run times, or one is negative or unknown.

    Notes
    -----
    The method is model-based clustering (C. Fraley, A. E. Raftery, "Model-based clustering, discriminant analysis,
    and density estimation", J. Am. Stat. Assoc. 97, 2002), as T. N. Minh and L. Wolters use it (JSSPP 2009,
    section 3.2): for each number of components an agglomerative clustering gives the start of the
    expectation-maximization algorithm, and the Bayesian information criterion chooses among the results.

    It differs from the MCLUST software of its authors in this:

    - Ward's criterion agglomerates, which is the classification likelihood of clusters of *equal* variance; MCLUST
      agglomerates by that of unequal variances if it is to fit such.
    - Only mixtures of unequal variances are tried, not those of one common variance.
    - MCLUST gives up a number of components if the variance of one vanishes, which many equal run times make happen.
      Here a run time of t whole seconds is spread over [t - 0.5, t + 0.5), and every variance is enlarged by that of
      a deviation of 5 %. Popular run times may so get a narrow component of their own.
    - A mixture is passed over if a component is the most probable one of fewer than half as many jobs as its weight
      says: labels and weights are used side by side when workloads are generated.
    - Up to 20 components are tried; MCLUST's default is 9.
    - Of long series 10,000 evenly spaced order statistics stand for all jobs, and 2,000 are agglomerated (in MCLUST
      a random sample may start it). The criterion is that of all jobs: the mean log-likelihood times their number.

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
    with threadpool_limits(limits=1):  # sums in another order would give other last digits
        for count, groups in zip(_counts(logs, components), _agglomerations(logs, components), strict=True):
            fitted, mean_likelihood = _expectation_maximization(logs, groups, count)
            parameters = 3 * count - 1  # weights, which add up to 1, means and variances
            bic[count] = parameters * math.log(len(run_times)) - 2 * len(run_times) * mean_likelihood
            candidate = _mixture(fitted, run_times, bic)
            if best is None or (bic[count] < bic[best.components] and _is_clustering(candidate, run_times)):
                best = candidate
    assert best is not None  # one component is always tried
    return best


def _spread(run_times: np.ndarray) -> np.ndarray:
    """Spread equal whole seconds, which must be sorted, evenly over the second around them."""
    _, first, counts = np.unique(run_times, return_index=True, return_counts=True)
    place = np.arange(len(run_times)) - np.repeat(first, counts)
    return np.maximum(run_times - 0.5 + (place + 0.5) / np.repeat(counts, counts), _SHORTEST)


def _order_statistics(values: np.ndarray, most: int) -> np.ndarray:
    """Return sorted values, or as many evenly spaced ones of them as wanted."""
    if len(values) <= most:
        return values
    return values[((np.arange(most) + 0.5) * len(values) / most).astype(np.int64)]


def _counts(logs: np.ndarray, components: int) -> Sequence[int]:
    """Return the numbers of components to try: each component needs two different values."""
    return range(1, max(1, min(components, len(np.unique(_order_statistics(logs, AGGLOMERATED))) // 2)) + 1)


def _agglomerations(logs: np.ndarray, components: int) -> Sequence[np.ndarray]:
    """Cluster sorted values into each number of groups to try; shape (values,) each, groups from 0 on."""
    from scipy.cluster.hierarchy import cut_tree, linkage

    sample = _order_statistics(logs, AGGLOMERATED)
    counts = _counts(logs, components)
    labels = cut_tree(linkage(sample[:, None], "ward"), counts)  # one tree, cut at every height
    # a value belongs to the group of the nearest value that was clustered
    nearest = np.searchsorted((sample[1:] + sample[:-1]) / 2, logs)
    return [labels[nearest, column] for column in range(len(counts))]


def _mixture(
    fitted: tuple[np.ndarray, np.ndarray, np.ndarray], run_times: np.ndarray, bic: Mapping[int, float]
) -> Mixture:
    """Return what was fitted (weights, means, variances), the components in the order of their means."""
    weights, means, variances = fitted
    order = np.argsort(means, kind="stable")
    return Mixture(
        weights=weights[order] / weights.sum(),
        means=means[order],
        deviations=np.sqrt(variances[order]),
        shortest=float(run_times[0]),
        longest=float(run_times[-1]),
        bic=bic,
    )


def _is_clustering(mixture: Mixture, run_times: np.ndarray) -> bool:
    """Say whether every component labels at least `_LEAST_LABELLED` of the jobs that its weight promises."""
    labelled = np.bincount(mixture.classify(run_times), minlength=mixture.components + 1)[1:] / len(run_times)
    return bool((labelled >= _LEAST_LABELLED * mixture.weights).all())


def _expectation_maximization(
    logs: np.ndarray, groups: np.ndarray, count: int
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], float]:
    """Fit a mixture that starts from groups of the values; return it, and the mean log-likelihood of the values."""
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
    return (weights, means, variances), _expect(logs, weights, means, variances, room)


def _expect(logs: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray, room: np.ndarray) -> float:
    """Write every component's share in every value to ``room``; return the mean log-likelihood of the values."""
    np.subtract(logs, means[:, None], out=room)
    np.square(room, out=room)
    room *= (-0.5 / variances)[:, None]
    room += (np.log(weights) - 0.5 * np.log(2 * math.pi * variances))[:, None]
    highest = room.max(axis=0)  # so that the largest of the exponentials is 1
    room -= highest
    np.exp(room, out=room)
    total = room.sum(axis=0)
    room /= total
    return float(np.mean(highest + np.log(total)))
