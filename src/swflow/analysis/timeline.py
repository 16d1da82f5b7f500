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
    sums = _sums(starts, weights, edges) - _sums(ends, weights, edges)
    mass, moment = np.cumsum(sums, axis=1)[:, : edges.size]
    area = mass * (edges - edges[0]) - moment  # up to each edge
    return np.asarray(np.diff(area) / np.diff(edges))


def _sums(times: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return sums of weights and of weights times seconds, before the first edge, between edges and after the last."""
    place = np.searchsorted(edges, times, side="right")
    return np.array([np.bincount(place, sums, edges.size + 1) for sums in (weights, weights * (times - edges[0]))])
