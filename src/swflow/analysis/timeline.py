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


def interval_means_of_sums(
    come: tuple[np.ndarray, np.ndarray], gone: tuple[np.ndarray, np.ndarray], edges: np.ndarray
) -> np.ndarray:
    """
    Return what `interval_means` does, of sums.

    Parameters
    ----------
    come, gone : (numpy.ndarray, numpy.ndarray)
        The sums of what things count that come, or go, before the first edge, from each edge to the next, and after
        the last, shape (m + 2,); and of these times the seconds since the first edge.
    edges : numpy.ndarray
        The bounds of the intervals, seconds, rising, shape (m + 1,).

    Returns
    -------
    numpy.ndarray
        Shape (m,).

    Examples
    --------
    Of 4 that stay from 0 to 10, and 2 from 5 to 20:

    >>> come = np.array([0.0, 6.0, 0.0, 0.0]), np.array([0.0, 10.0, 0.0, 0.0])
    >>> gone = np.array([0.0, 0.0, 4.0, 2.0]), np.array([0.0, 0.0, 40.0, 40.0])
    >>> interval_means_of_sums(come, gone, np.array([0.0, 10.0, 20.0]))
    array([5., 2.])
    """
    mass, moment = (np.cumsum(first - second)[: edges.size] for first, second in zip(come, gone, strict=True))
    return np.asarray(np.diff(mass * (edges - edges[0]) - moment) / np.diff(edges))
