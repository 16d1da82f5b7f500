"""Comparison of two heatmaps: how far apart they are, and which one is better at equal load."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from swflow.analysis.heatmap import BINS_PER_DECADE, LOAD_BINS, Heatmap
from swflow.names import log_of, replicate_of

#: The grid of the distance: load deciles by quarters of a decade of the value.
_LOADS_PER_STEP, _VALUES_PER_STEP = LOAD_BINS // 10, BINS_PER_DECADE // 4
LOAD_STEP, VALUE_STEP = _LOADS_PER_STEP / LOAD_BINS, _VALUES_PER_STEP / BINS_PER_DECADE

#: One distribution dominates another if at most this share of the area between them speaks against it.
TOLERANCE = 0.1

#: The factor of the critical value of the Kolmogorov-Smirnov test at 5 %.
_KOLMOGOROV_SMIRNOV = 1.358


@dataclass(frozen=True)
class Comparison:
    """
    What comes of comparing two heatmaps of one measure.

    Parameters
    ----------
    distance : float
        Their `earth_movers_distance`; 0 for equal ones.
    score : float
        From -1 to 1: at equal load, how much more probable it is that a job of the first does better (a smaller
        value) than one of the second than the other way round. Positive: the first is better.
    first_wins, second_wins : float
        The share of the jobs, 0 to 1, in load deciles where one dominates the other.
    better : {'first', 'second'} or None
        Who wins more than half of the jobs, if the score agrees.
    """

    distance: float
    score: float
    first_wins: float
    second_wins: float
    better: str | None


def compare(first: Heatmap, second: Heatmap) -> Comparison:
    """
    Compare two heatmaps of the same measure, both with a logarithmic value axis.

    In each decile of the load the two distributions of the value are compared. One *wins* the decile if its
    distribution function lies above the other's (its jobs have smaller values) by more than chance would do (the
    Kolmogorov-Smirnov test at 5 %), and all but `TOLERANCE` of the area between the two speaks for it: this is
    almost first-order stochastic dominance. A decile weighs as much as the mean of the two shares of jobs in it.
    Deciles that only one heatmap has jobs in can be won by nobody and add nothing to the score.

    Parameters
    ----------
    first, second : Heatmap
        As `swflow.analysis.heatmap.heatmap` returns them.

    Returns
    -------
    Comparison
        If a heatmap has no jobs: distance 0, score 0 and no winner.

    References
    ----------
    M. Leshno, H. Levy, "Preferred by all and preferred by most decision makers: almost stochastic dominance",
    Management Science 48(8), 2002. D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads",
    JSSPP 2012, section 7, asks for such a metric.

    Examples
    --------
    >>> from swflow.analysis.heatmap import heatmap
    >>> load = np.full(100, 0.95)
    >>> fast, slow = heatmap(load, np.full(100, 10.0)), heatmap(load, np.full(100, 1000.0))
    >>> compare(fast, slow)
    Comparison(distance=2.0, score=1.0, first_wins=1.0, second_wins=0.0, better='first')
    >>> compare(fast, fast).better is None
    True
    """
    a, b = _equal_shape(first.jobs, second.jobs)
    if not a.sum() or not b.sum():
        return Comparison(0.0, 0.0, 0.0, 0.0, None)
    a, b = _coarse(a, _LOADS_PER_STEP, 1), _coarse(b, _LOADS_PER_STEP, 1)
    weights = (a.sum(axis=1) / a.sum() + b.sum(axis=1) / b.sum()) / 2
    score = wins = losses = 0.0
    for weight, of_a, of_b in zip(weights, a, b, strict=True):
        if of_a.any() and of_b.any():
            winner, superiority = _duel(of_a, of_b)
            score += weight * superiority
            wins += weight * (winner > 0)
            losses += weight * (winner < 0)
    better = "first" if wins > 0.5 and score > 0 else "second" if losses > 0.5 and score < 0 else None
    distance = earth_movers_distance(
        _coarse(a, 1, _VALUES_PER_STEP), _coarse(b, 1, _VALUES_PER_STEP), LOAD_STEP, VALUE_STEP
    )
    score, wins, losses = (round(float(part), 12) for part in (score, wins, losses))
    return Comparison(distance, score, wins, losses, better)


def _duel(a: np.ndarray, b: np.ndarray) -> tuple[int, float]:
    """Compare counts by value: 1 if the first dominates, -1 the second, 0 neither; and P(a < b) - P(a > b)."""
    count_a, count_b = a.sum(), b.sum()
    below_a, below_b = np.cumsum(a) / count_a, np.cumsum(b) / count_b
    share_a, share_b = a / count_a, b / count_b
    superiority = float(share_a @ (1 - below_b) - share_b @ (1 - below_a))
    ahead = below_a - below_b
    chance = _KOLMOGOROV_SMIRNOV * np.sqrt((count_a + count_b) / (count_a * count_b))
    area_for, area_against = ahead.clip(0).sum(), (-ahead).clip(0).sum()
    allowed = TOLERANCE * (area_for + area_against)
    if ahead.max() > chance and area_against <= allowed:
        return 1, superiority
    if -ahead.min() > chance and area_for <= allowed:
        return -1, superiority
    return 0, superiority


def earth_movers_distance(first: np.ndarray, second: np.ndarray, load_step: float, value_step: float) -> float:
    """
    Return the earth mover's distance of two histograms on one grid, each made to sum to 1.

    The least work that turns one into the other: jobs moved times how far. The ground distance of two cells is
    ``load_step`` times the rows plus ``value_step`` times the columns between them (city block). In `compare`
    the grid is deciles of the load by quarters of a decade of the value, the steps are 0.1 and 0.25: a job moved
    by one decade costs 1, one moved across the whole range of the load costs 0.9. Only what one histogram has more of
    than the other moves: with a distance that fulfils the triangle inequality, jobs that both have in a cell may stay.
    The network simplex of POT solves it exactly.

    Parameters
    ----------
    first, second : array of shape (loads, values)
        Jobs per cell.
    load_step, value_step : float
        The distance of neighbouring cells along the two axes.

    Returns
    -------
    float
        0 for histograms that are alike; 0 too if one has no jobs.

    Examples
    --------
    >>> a, b = np.zeros((2, 3)), np.zeros((2, 3))
    >>> a[0, 0] = b[1, 2] = 7
    >>> earth_movers_distance(a, b, 0.1, 0.25)
    0.6
    """
    if not first.sum() or not second.sum():
        return 0.0
    excess = first / first.sum() - second / second.sum()
    if np.abs(excess).max() < 1e-12:
        return 0.0
    from ot.lp import emd2  # takes a second to import

    more, less = np.argwhere(excess > 0), np.argwhere(excess < 0)
    far = load_step * np.abs(more[:, None, 0] - less[None, :, 0])
    far = far + value_step * np.abs(more[:, None, 1] - less[None, :, 1])
    supply, demand = excess[excess > 0], -excess[excess < 0]
    work = emd2(supply / supply.sum(), demand / demand.sum(), far, numItermax=10_000_000)
    return round(float(work * supply.sum()), 12)


def _equal_shape(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give both as many values as the one that has more, in whole steps of the grid."""
    values = -(-max(first.shape[1], second.shape[1]) // _VALUES_PER_STEP) * _VALUES_PER_STEP
    padded = [np.pad(counts, ((0, 0), (0, values - counts.shape[1]))) for counts in (first, second)]
    return padded[0], padded[1]


def _coarse(counts: np.ndarray, loads: int, values: int) -> np.ndarray:
    """Merge so many loads by so many values into one cell."""
    rows, columns = counts.shape
    return counts.reshape(rows // loads, loads, columns // values, values).sum(axis=(1, 3))


def worth_comparing(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """
    Say whether two runs, given by ``workload`` and ``scheduler``, are one question.

    They are if they share the log, and the workload or the scheduler, or if one is the recorded schedule (``log``):
    schedulers on a workload, workloads under a scheduler, and simulation against reality. Of replicates, those of
    the same number are.

    Examples
    --------
    >>> recorded = {"workload": "KTH-SP2", "scheduler": "log"}
    >>> easy, fcfs = ({"workload": "KTH-SP2+ran", "scheduler": name} for name in ("easy", "fcfs"))
    >>> worth_comparing(recorded, easy), worth_comparing(easy, fcfs)
    (True, True)
    >>> worth_comparing(easy, fcfs | {"workload": "KTH-SP2"})
    False
    """
    logs = {log_of(run["workload"]) for run in (first, second)}
    numbers = {replicate_of(run["workload"]) for run in (first, second)} - {None}
    if len(numbers) > 1:
        return False
    same = first["workload"] == second["workload"] or first["scheduler"] == second["scheduler"]
    return len(logs) == 1 and (same or "log" in (first["scheduler"], second["scheduler"]))
