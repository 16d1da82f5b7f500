"""Comparison of two heatmaps: their distance, and which one is better at equal load."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from swflow.analysis.heatmap import BINS_PER_DECADE, LOAD_BINS, Heatmap

#: The grid of the distance: deciles of the load by quarters of a decade of the value.
_LOADS_PER_STEP, _VALUES_PER_STEP = LOAD_BINS // 10, BINS_PER_DECADE // 4
_LOAD_STEP, _VALUE_STEP = _LOADS_PER_STEP / LOAD_BINS, _VALUES_PER_STEP / BINS_PER_DECADE
#: The parts of 1 of which both steps are multiples.
_UNITS = 20

#: One distribution dominates another if at most this share of the area between them contradicts the dominance.
TOLERANCE = 0.1

#: The factor of the critical value of the Kolmogorov-Smirnov test at 5 %.
_KOLMOGOROV_SMIRNOV = 1.358


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two heatmaps of one measure."""

    distance: float | None  # their `earth_movers_distance`; 0 if they are equal, None if it was not requested
    # From -1 to 1: at equal load, the probability that a job of the variant has a smaller (better) value than a job of
    # the base, minus the probability of the opposite. Positive: the variant is better.
    score: float
    # The share of the jobs, 0 to 1, in load deciles where one dominates the other.
    variant_wins: float
    base_wins: float
    better: str | None  # the heatmap that wins more than half of the jobs, if the score agrees; otherwise None


def compare(variant: Heatmap, base: Heatmap, *, measure_distance: bool = True) -> Comparison:
    """
    Compare two heatmaps of the same measure, both with a logarithmic value axis.

    In each decile of the load, the two distributions of the value are compared. A heatmap *wins* the decile if two
    conditions hold. Its distribution function exceeds the other one (its jobs have smaller values) by a significant
    distance (Kolmogorov-Smirnov test at 5 %), and does so on all but `TOLERANCE` of the area between the two.
    This is almost first-order stochastic dominance. The weight of a decile is the mean of its shares of jobs in the two
    heatmaps. Deciles in which only one heatmap has jobs have no winner and add 0 to the score.

    If a heatmap has no jobs, the distance and the score are 0. The distance takes most of the time; without
    ``measure_distance`` it is None.

    References
    ----------
    M. Leshno, H. Levy, "Preferred by all and preferred by most decision makers: almost stochastic dominance",
    Management Science 48(8), 2002. D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads",
    JSSPP 2012, section 7, which calls for such a metric.

    Examples
    --------
    >>> from swflow.analysis.heatmap import heatmap
    >>> load = np.full(100, 0.95)
    >>> fast, slow = heatmap(load, np.full(100, 10.0)), heatmap(load, np.full(100, 1000.0))
    >>> compare(fast, slow)
    Comparison(distance=2.0, score=1.0, variant_wins=1.0, base_wins=0.0, better='variant')
    >>> compare(fast, fast).better is None
    True
    """
    a, b = equal_shape(by_tenths(variant).jobs, by_tenths(base).jobs, _VALUES_PER_STEP)
    if not a.sum() or not b.sum():
        return Comparison(0.0 if measure_distance else None, 0.0, 0.0, 0.0, None)
    weights = (a.sum(axis=1) / a.sum() + b.sum(axis=1) / b.sum()) / 2
    both = a.any(axis=1) & b.any(axis=1)
    winner, superiority = _duels(a[both], b[both])
    score = round(float(weights[both] @ superiority), 12)
    wins, losses = (round(float(sum(weights[both][won])), 12) for won in (winner > 0, winner < 0))
    better = "variant" if wins > 0.5 and score > 0 else "base" if losses > 0.5 and score < 0 else None
    distance = None
    if measure_distance:
        distance = earth_movers_distance(coarse(a, 1, _VALUES_PER_STEP), coarse(b, 1, _VALUES_PER_STEP))
    return Comparison(distance, score, wins, losses, better)


def by_tenths(found: Heatmap) -> Heatmap:
    """Return a heatmap by deciles of the load, which is all that `compare` needs."""
    if found.jobs.shape[0] == LOAD_BINS // _LOADS_PER_STEP:
        return found
    return Heatmap(coarse(found.jobs, _LOADS_PER_STEP, 1), found.load_edges[::_LOADS_PER_STEP], found.value_edges)


def _duels(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Compare the distributions of two heatmaps in each decile of the load, none of which is empty.

    Return the winner of each decile (1 if the first distribution dominates, -1 if the second does, else 0), and
    P(a < b) - P(a > b).
    """
    count_a, count_b = a.sum(axis=1, keepdims=True), b.sum(axis=1, keepdims=True)
    below_a, below_b = np.cumsum(a, axis=1) / count_a, np.cumsum(b, axis=1) / count_b
    superiority = (a / count_a * (1 - below_b) - b / count_b * (1 - below_a)).sum(axis=1)
    ahead = below_a - below_b
    chance = _KOLMOGOROV_SMIRNOV * np.sqrt((count_a + count_b) / (count_a * count_b))[:, 0]
    area_for, area_against = ahead.clip(0).sum(axis=1), (-ahead).clip(0).sum(axis=1)
    allowed = TOLERANCE * (area_for + area_against)
    wins = (ahead.max(axis=1) > chance) & (area_against <= allowed)
    losses = (-ahead.min(axis=1) > chance) & (area_for <= allowed)
    return wins.astype(np.int64) - (losses & ~wins), superiority


def earth_movers_distance(first: np.ndarray, second: np.ndarray) -> float:
    """
    Return the earth mover's distance of two histograms, each normalized to a sum of 1.

    The rows are deciles of the load, the columns quarters of a decade of the value. The distance is the least work that
    turns one histogram into the other: jobs moved times ground distance, which is 0.1 per row plus 0.25 per column
    (city block): moving a job by one decade costs 1, moving it across the whole range of the load costs 0.9.

    By the duality of Kantorovich and Rubinstein, it is also the greatest difference of the means of a function of the
    cells whose values in neighboring cells differ by at most their ground distance. This linear program has few
    conditions, and an optimal function whose values are multiples of a twentieth, so the result is exact.

    The distance is 0 if one of the histograms has no jobs.

    References
    ----------
    H. Ling, K. Okada, "An efficient earth mover's distance algorithm for robust histogram comparison", IEEE
    Transactions on Pattern Analysis and Machine Intelligence 29(5), 2007: with city-block distances, neighbors suffice.

    Examples
    --------
    >>> a, b = np.zeros((2, 3)), np.zeros((2, 3))
    >>> a[0, 0] = b[1, 2] = 7
    >>> earth_movers_distance(a, b)
    0.6
    """
    if not first.sum() or not second.sum():
        return 0.0
    excess = first / first.sum() - second / second.sum()
    if np.abs(excess).max() < 1e-12:
        return 0.0
    rows, columns = (np.flatnonzero(excess.any(axis=axis)) for axis in (1, 0))
    excess = excess[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return round(float(_potential(excess) @ excess.ravel()) / _UNITS, 12)


def _potential(excess: np.ndarray) -> np.ndarray:
    """Return the function of the cells with the greatest sum of products, in units of 1 / `_UNITS`."""
    from scipy.optimize import LinearConstraint, milp

    steps, allowed = _neighbors(*excess.shape)
    # In numbers of cells, the objective is large compared with the tolerances of the solver.
    found = milp(-excess.ravel() * excess.size, constraints=LinearConstraint(steps, -allowed, allowed))
    if found.x is None:
        raise RuntimeError(f"the distance of two heatmaps has no solution: {found.message}")
    potential = np.rint(found.x)
    if (np.abs(steps @ potential) > allowed).any():
        raise RuntimeError("the distance of two heatmaps is not exact")
    return potential


@cache
def _neighbors(rows: int, columns: int) -> tuple[Any, np.ndarray]:
    """Return the differences of all neighboring cells as a sparse matrix, and their ground distances."""
    from scipy.sparse import csc_array

    # The solver of SciPy 1.13 takes indices of 32 bits only.
    number = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    one = np.concatenate([number[:-1].ravel(), number[:, :-1].ravel()])
    other = np.concatenate([number[1:].ravel(), number[:, 1:].ravel()])
    pair = np.arange(one.size, dtype=np.int32)
    signs = np.repeat([1.0, -1.0], one.size)
    steps = csc_array((signs, (np.tile(pair, 2), np.concatenate([one, other]))), shape=(one.size, number.size))
    distances = np.repeat([_LOAD_STEP, _VALUE_STEP], [(rows - 1) * columns, rows * (columns - 1)])
    return steps, np.rint(distances * _UNITS)


def equal_shape(first: np.ndarray, second: np.ndarray, step: int) -> list[np.ndarray]:
    """Pad both with empty values to the width of the wider one, in whole steps of values."""
    values = max(first.shape[1], second.shape[1])
    values += -values % step
    return [np.pad(counts, ((0, 0), (0, values - counts.shape[1]))) for counts in (first, second)]


def coarse(counts: np.ndarray, loads: int, values: int) -> np.ndarray:
    """Merge blocks of ``loads`` by ``values`` cells into one cell each."""
    rows, columns = counts.shape
    return counts.reshape(rows // loads, loads, columns // values, values).sum(axis=(1, 3))
