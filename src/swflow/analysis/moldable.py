"""Checks of the model of moldable jobs: the published distribution functions compared with those of a workload."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from swflow.workload.models.downey import largest_useful, speedup
from swflow.workload.steps.moldable import MINIMUM, REQUESTS, VARIANCE, joint_cdf

#: The columns of the job table that the checks need.
CHECKED = ("minimum_processors", "average_parallelism", "parallelism_variance", "requests")

#: The values of c_min for the joint function, and the values of sigma for the speedup with this A.
_MINIMA, _VARIANCES, _PARALLELISM = (1, 4, 16, 41), (0.0, 0.5, 1.0, 2.0, 4.0), 64.0


@dataclass(frozen=True)
class Curves:
    """
    Functions to draw in one panel: name to (x, y).

    ``lines`` are published functions, ``points`` functions of the workload; equal names correspond. The x axis may be
    logarithmic (base 2).
    """

    title: str
    x_title: str
    y_title: str
    lines: Mapping[str, tuple[np.ndarray, np.ndarray]]
    points: Mapping[str, tuple[np.ndarray, np.ndarray]]
    logarithmic: bool


def model_checks(jobs: pl.DataFrame) -> list[Curves]:
    """
    Return the published and the measured distribution functions of the model of moldable jobs, and its speedup.

    ``jobs`` has the columns of `CHECKED`. The panels are c_min, c_u above 1, c_min with A, sigma, and Downey's speedup.

    References
    ----------
    W. Cirne, F. Berman, "A model for moldable supercomputer jobs", IPDPS 2001, Figures 3, 5, 9 and 11.
    """
    from scipy.special import ndtr

    minimum, parallelism, variance, requests = (jobs[name].to_numpy() for name in CHECKED)
    sizes, counts = np.arange(1, 65), np.arange(2, 21)
    sigma = np.linspace(0, 6, 121)
    mean, deviation = VARIANCE
    normal = ndtr((sigma - mean) / deviation)  # as printed, below 0, too: a truncated sample differs from it
    stated, found = {}, {}
    for x in _MINIMA:
        name, at = f"c_min up to {x}", np.exp2(np.linspace(np.log2(x), 10, 21))
        most = _uniform_log(np.array(x), *MINIMUM)
        stated[name] = at, np.clip(joint_cdf(np.full(at.size, x), at), 0.0, most)
        found[name] = at[::2], _share_below(parallelism[minimum <= x], at[::2]) * np.mean(minimum <= x)
    curves = {}
    n = np.arange(1.0, float(largest_useful(_PARALLELISM, _VARIANCES[-1])) + 40, 3)
    for value in _VARIANCES:
        curves[f"sigma {value:g}"] = n, speedup(n, _PARALLELISM, value)
    share = "share of jobs"
    one = "all jobs"
    return [
        Curves(
            "Fewest processors, c_min (Figure 3)", "processors", f"{share} at or below",
            {one: (sizes, _uniform_log(sizes, *MINIMUM))}, {one: (sizes[:45], _share_below(minimum, sizes[:45]))}, True,
        ),
        Curves(
            "Requests of those with more than one, c_u (Figure 5)", "requests", f"{share} at or below",
            {one: (counts, _uniform_log(counts, *REQUESTS))},
            {one: (counts, _share_below(requests[requests > 1], counts))}, True,
        ),
        Curves(
            "c_min and average parallelism A (Figure 9)", "A", f"{share} at or below both", stated, found, True
        ),
        Curves(
            "Variance of parallelism, sigma (Figure 11)", "sigma", f"{share} at or below",
            {one: (sigma, normal)}, {one: (sigma[::4], _share_below(variance, sigma[::4]))}, False,
        ),
        Curves(
            f"Downey's speedup, A = {_PARALLELISM:g}", "processors", "speedup", curves, {}, False,
        ),
    ]  # fmt: skip


def _uniform_log(x: np.ndarray, slope: float, intercept: float) -> np.ndarray:
    return np.minimum(slope * np.log2(x) + intercept, 1.0)


def _share_below(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the share of the values that are at or below each point."""
    return np.searchsorted(np.sort(values), at, side="right") / max(values.size, 1)
