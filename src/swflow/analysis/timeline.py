"""Means of a machine's use and queue length over equal intervals, computed exactly for any number of jobs."""

import numpy as np


def interval_means(starts: np.ndarray, ends: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """
    Return the mean total weight of the items present in each interval between ``edges`` (ascending).

    For running jobs weighted by processors, this is the number of busy processors; for waiting jobs of weight 1, it is
    the length of the queue. ``starts`` and ``ends`` are the times at which each item arrives and leaves, seconds.

    Examples
    --------
    >>> interval_means(np.array([0.0, 5.0]), np.array([10.0, 20.0]), np.array([4, 2]), np.array([0.0, 10.0, 20.0]))
    array([5., 2.])
    >>> interval_means(np.array([100.0, 110.0]), np.array([110.0, 130.0]), np.array([4, 2]), np.array([100, 110, 120]))
    array([4., 2.])
    """
    total = _area_before(starts, weights, edges) - _area_before(ends, weights, edges)
    return np.diff(total) / np.diff(edges)


def _area_before(times: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the integral up to each edge of the weight of items that arrive at ``times`` and never leave."""
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
    Return the result of `interval_means`, computed from sums per interval.

    ``come`` and ``gone`` contain the total weight of the items that arrive, or leave, before the first edge, between
    successive edges, and after the last edge; and the sum of weight times seconds since the first edge.

    Examples
    --------
    An item of weight 4 that stays from 0 to 10, and one of weight 2 from 5 to 20:

    >>> come = np.array([0.0, 6.0, 0.0, 0.0]), np.array([0.0, 10.0, 0.0, 0.0])
    >>> gone = np.array([0.0, 0.0, 4.0, 2.0]), np.array([0.0, 0.0, 40.0, 40.0])
    >>> interval_means_of_sums(come, gone, np.array([0.0, 10.0, 20.0]))
    array([5., 2.])
    """
    mass, moment = (np.cumsum(first - second)[: edges.size] for first, second in zip(come, gone, strict=True))
    return np.asarray(np.diff(mass * (edges - edges[0]) - moment) / np.diff(edges))
