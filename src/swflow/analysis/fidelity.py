"""Fidelity: how closely a simulated schedule reproduces the recorded one."""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np
import polars as pl

from swflow.analysis.comparison import compare
from swflow.analysis.heatmap import heatmap
from swflow.workload.models.fit_measures import kolmogorov_smirnov

#: Length of the bins of the utilization (s).
BIN = 3600.0

#: Largest difference between a simulated and a recorded start that counts as equal (s).
NEAR = 60.0

#: Difference of two mean waits that whole seconds of the log do not show (s).
RESOLUTION = 1.0


#: The largest relative difference of the mean wait, and the largest distance of the distributions, up to which minutes
#: can be trusted, and up to which percentages can be trusted.
FAITHFUL_RATIO, FAITHFUL_DISTANCE = 0.05, 0.05
FAIR_RATIO, FAIR_DISTANCE = 0.25, 0.2


class Trust(StrEnum):
    """Which results of a simulation can be trusted, by its similarity to the recorded schedule."""

    MINUTES = "minutes"
    PERCENTAGES = "percentages"
    DIRECTIONS = "directions"
    UNKNOWN = "unknown"  # nothing is recorded
    RECORD = "record"  # the base is the recorded schedule itself


def trust_of(found: Mapping[str, float | None] | None) -> Trust:
    """
    Return which results of a simulation can be trusted.

    A mean wait within a second of the recorded one does not differ from it, because clocks count seconds.

    Examples
    --------
    >>> measures = {"jobs": 9, "recorded_mean_wait_time": 600.0, "simulated_mean_wait_time": 500.0}
    >>> trust_of(measures | {"wait_distance": 0.1}), trust_of(measures | {"wait_distance": 0.3}), trust_of(None)
    (<Trust.PERCENTAGES: 'percentages'>, <Trust.DIRECTIONS: 'directions'>, <Trust.UNKNOWN: 'unknown'>)
    """
    if not found or not found["jobs"]:
        return Trust.UNKNOWN
    recorded, simulated = found["recorded_mean_wait_time"] or 0.0, found["simulated_mean_wait_time"] or 0.0
    distance, difference = found["wait_distance"] or 0.0, abs(simulated - recorded)
    off = 0.0 if difference <= RESOLUTION else difference / recorded if recorded > 0 else np.inf
    if off <= FAITHFUL_RATIO and distance <= FAITHFUL_DISTANCE:
        return Trust.MINUTES
    return Trust.PERCENTAGES if off <= FAIR_RATIO and distance <= FAIR_DISTANCE else Trust.DIRECTIONS


def fidelity(recorded: pl.DataFrame, simulated: pl.DataFrame, machine: int) -> dict[str, float | None]:
    """
    Compare a simulated schedule with the recorded one on the jobs that both contain.

    Returns a mapping of measures to values; None where there is nothing to compare.

    - ``jobs``
    - ``recorded_mean_wait_time``, ``simulated_mean_wait_time``, seconds
    - ``wait_distance``: greatest difference of the distribution functions of the waits (Kolmogorov-Smirnov, 0 to 1)
    - ``wait_difference``: mean absolute difference between waits of equal rank (earth mover's distance), seconds
    - ``started_alike``: share of jobs that start within `NEAR` of the recorded start
    - ``start_order``: of the pairs of jobs that waited together and started consecutively in the log, the share that
      start in the same order in the simulation. Pairs that start at the same time in the simulation do not agree with
      the log; such pairs of the log are excluded.
    - ``utilization_difference``: mean absolute difference of the hourly utilization, 0 to 1, from the first start
      of either schedule to the last recorded end. Later simulated use does not count.
    - ``heatmap_distance``: `swflow.analysis.comparison.earth_movers_distance` of the heatmaps of wait time and load

    Examples
    --------
    >>> one = pl.DataFrame({"job_id": [1, 2], "submit_time": [0.0, 0.0], "start_time": [0.0, 60.0],
    ...     "run_time": [60.0, 60.0], "processors": [4, 4], "wait_time": [0.0, 60.0], "load": [1.0, 1.0]})
    >>> same = fidelity(one, one, 4)
    >>> same["wait_distance"], same["start_order"], same["utilization_difference"]
    (0.0, None, 0.0)
    """
    columns = ["job_id", "start_time", "run_time", "wait_time", "load", "processors"]
    both = recorded.select("submit_time", *columns).join(
        simulated.select(columns), on="job_id", how="inner", suffix="_s"
    )
    both = both.sort("start_time", "job_id")
    if both.is_empty():
        return {"jobs": 0, **dict.fromkeys(MEASURES)}
    waits, other = both["wait_time"].to_numpy(), both["wait_time_s"].to_numpy()
    start, start_s = both["start_time"].to_numpy(), both["start_time_s"].to_numpy()
    waited = both["submit_time"].to_numpy()[1:] < start[:-1]  # the second job waited when the first one started
    waited &= start[1:] > start[:-1]
    edges = _span(both)
    use = [_use_by_bins(both, suffix, machine, edges) for suffix in ("", "_s")]
    maps = [heatmap(both[f"load{suffix}"].to_numpy(), both[f"wait_time{suffix}"].to_numpy()) for suffix in ("", "_s")]
    return {
        "jobs": both.height,
        "recorded_mean_wait_time": float(waits.mean()),
        "simulated_mean_wait_time": float(other.mean()),
        "wait_distance": kolmogorov_smirnov(waits, other),
        "wait_difference": float(np.abs(np.sort(waits) - np.sort(other)).mean()),
        "started_alike": float((np.abs(start - start_s) <= NEAR).mean()),
        "start_order": float((start_s[1:] > start_s[:-1])[waited].mean()) if waited.any() else None,
        "utilization_difference": float(np.abs(use[0] - use[1]).mean()),
        "heatmap_distance": compare(*maps).distance,
    }


#: Measures that `fidelity` returns besides ``jobs``.
MEASURES = (
    "recorded_mean_wait_time", "simulated_mean_wait_time", "wait_distance", "wait_difference", "started_alike",
    "start_order", "utilization_difference", "heatmap_distance",
)  # fmt: skip


def _span(both: pl.DataFrame) -> np.ndarray:
    """Return the bounds of the bins, from the first start of either schedule to the last recorded end, seconds."""
    begin = float(min(both["start_time"].to_numpy().min(), both["start_time_s"].to_numpy().min()))
    end = float((both["start_time"] + both["run_time"]).to_numpy().max())
    bins = min(max(1, int(np.ceil((end - begin) / BIN))), 1_000_000)
    return begin + np.arange(bins + 1) * BIN


def _use_by_bins(both: pl.DataFrame, suffix: str, machine: int, edges: np.ndarray) -> np.ndarray:
    start, run, processors = (both[f"{name}{suffix}"].to_numpy() for name in ("start_time", "run_time", "processors"))
    times = np.concatenate([start, start + run])
    order = np.argsort(times, kind="stable")
    times = times[order]
    level = np.cumsum(np.concatenate([processors, -processors])[order])
    integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    return np.diff(np.interp(edges, times, integral)) / (machine * BIN)
