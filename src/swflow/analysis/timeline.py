"""How a machine and its queue fare over time: means over equal intervals, exact, whatever the number of jobs."""

import numpy as np


def interval_means(starts: np.ndarray, ends: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """
    Return how much is there on average in each interval, of things that come, stay, and go.

    Of running jobs weighted by their processors that is the number of busy processors; of waiting jobs the length of
    the queue.

    Parameters
    ----------
    starts, ends : numpy.ndarray
        When each thing comes and goes, seconds, shape (n,).
    weights : numpy.ndarray
        What each counts, shape (n,).
    edges : numpy.ndarray
        The bounds of the intervals, seconds, rising, shape (m + 1,).

    Returns
    -------
    numpy.ndarray
        Shape (m,).

    Examples
    --------
    >>> interval_means(np.array([0.0, 5.0]), np.array([10.0, 20.0]), np.array([4, 2]), np.array([0.0, 10.0, 20.0]))
    array([5., 2.])
    """
    total = _area_before(starts, weights, edges) - _area_before(ends, weights, edges)
    return np.diff(total) / np.diff(edges)


def _area_before(times: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the integral up to each edge of what has come at some times and never goes."""
    order = np.argsort(times, kind="stable")
    sorted_times, sorted_weights = times[order] - edges[0], weights[order].astype(float)
    come = np.searchsorted(sorted_times, edges - edges[0], side="right")
    mass = np.concatenate([[0.0], np.cumsum(sorted_weights)])
    moment = np.concatenate([[0.0], np.cumsum(sorted_weights * sorted_times)])
    area: np.ndarray = mass[come] * (edges - edges[0]) - moment[come]
    return area
