"""Repetitions (runs of equal neighbors in a series): lengths, histograms, and the distance of two series."""

import numpy as np


def repetition_starts(series: np.ndarray) -> np.ndarray:
    """Return the positions, from 0, at which the repetitions of a series start."""
    series = np.asarray(series)
    return np.flatnonzero(np.concatenate([[True], series[1:] != series[:-1]]))


def repetition_lengths(series: np.ndarray) -> np.ndarray:
    """
    Return the lengths of the repetitions of a series, in order; a value that is not repeated counts as 1.

    The definition and the example are those of T. N. Minh, L. Wolters, "Modeling parallel system workloads with
    temporal locality", JSSPP 2009, section 3.3, steps 2 and 3.

    Examples
    --------
    >>> repetition_lengths([2, 2, 2, 3, 1, 1, 4, 5, 5, 5, 5])
    array([3, 1, 2, 1, 4])
    """
    return np.diff(repetition_starts(series), append=len(series))


def repetition_histogram(series: np.ndarray) -> dict[int, int]:
    """
    Count the repetitions of each length.

    Examples
    --------
    >>> repetition_histogram([2, 2, 3, 1, 1, 4])
    {1: 2, 2: 2}
    """
    lengths, counts = np.unique(repetition_lengths(series), return_counts=True)
    return {int(length): int(count) for length, count in zip(lengths, counts, strict=True)}


def repetition_distance(first: np.ndarray, second: np.ndarray) -> float:
    """
    Return the distance between the repetitions of run times of two workloads, each in the order of arrivals.

    It is the earth mover's distance between the distributions of log2(length), where each *job* counts with the length
    of its repetition. A distance of 0.1 means, for example, that 10 % of the jobs would have to be in repetitions twice
    as long, or 5 % in repetitions four times as long. The numbers of jobs may differ.

    Examples
    --------
    >>> repetition_distance([1, 2, 3, 4], [1, 1, 3, 4])  # two of four jobs are in a repetition of length 2
    0.5
    """
    first_lengths, second_lengths = repetition_lengths(first), repetition_lengths(second)
    longest = int(max(first_lengths.max(initial=1), second_lengths.max(initial=1)))
    below = [
        np.cumsum(np.bincount(lengths, lengths, longest + 1)[1:]) / max(lengths.sum(), 1)
        for lengths in (first_lengths, second_lengths)
    ]
    return float(np.abs(below[0] - below[1])[:-1] @ np.diff(np.log2(np.arange(1, longest + 1))))
