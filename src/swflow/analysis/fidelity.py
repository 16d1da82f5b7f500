"""Fidelity: how much a simulated schedule is like the recorded one, and so how far a what-if may be trusted."""

import numpy as np
import polars as pl

from swflow.analysis.comparison import compare
from swflow.analysis.heatmap import heatmap

#: Bins of the utilization, seconds.
BIN = 3600.0

#: A job starts as recorded if it does so within so many seconds.
NEAR = 60.0


def fidelity(recorded: pl.DataFrame, simulated: pl.DataFrame, machine: int) -> dict[str, float | None]:
    """
    Compare a simulated schedule with the recorded one, over the jobs that both have.

    Parameters
    ----------
    recorded, simulated : polars.DataFrame
        Outcomes with ``job_id``, ``submit_time``, ``start_time``, ``run_time``, ``processors``, ``wait_time`` and
        ``load``.
    machine : int
        Processors of the machine.

    Returns
    -------
    dict
        ``jobs``; ``mean_wait_time`` of both (``recorded_``, ``simulated_``, s); ``wait_distance``, the greatest
        difference of the distribution functions of the waits (Kolmogorov-Smirnov, 0 to 1); ``wait_difference``, the
        mean absolute difference of waits of equal rank (s; the earth mover's distance); ``started_alike``, the share of
        jobs that start within `NEAR` of the record; ``start_order``, of neighbours in the recorded order of starts that
        waited at the same time, the share that start in this order here as well; ``utilization_difference``, the mean
        absolute difference of the utilization by hours; ``heatmap_distance``, that of the heatmaps of wait time and
        load (`swflow.analysis.comparison.earth_movers_distance`). None where nothing can be compared.

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
    together = both["submit_time"].to_numpy()[1:] < start[:-1]  # the later one waited when the earlier one started
    # Ties in the record say nothing of the order.
    together &= start[1:] > start[:-1]
    use = [_use_by_bins(both, suffix, machine, _span(both)) for suffix in ("", "_s")]
    maps = [heatmap(both[f"load{suffix}"].to_numpy(), both[f"wait_time{suffix}"].to_numpy()) for suffix in ("", "_s")]
    return {
        "jobs": both.height,
        "recorded_mean_wait_time": float(waits.mean()),
        "simulated_mean_wait_time": float(other.mean()),
        "wait_distance": _kolmogorov_smirnov(waits, other),
        "wait_difference": float(np.abs(np.sort(waits) - np.sort(other)).mean()),
        "started_alike": float((np.abs(start - start_s) <= NEAR).mean()),
        "start_order": float((start_s[1:] >= start_s[:-1])[together].mean()) if together.any() else None,
        "utilization_difference": float(np.abs(use[0] - use[1]).mean()),
        "heatmap_distance": compare(*maps).distance,
    }


#: What `fidelity` returns, besides ``jobs``.
MEASURES = (
    "recorded_mean_wait_time", "simulated_mean_wait_time", "wait_distance", "wait_difference", "started_alike",
    "start_order", "utilization_difference", "heatmap_distance",
)  # fmt: skip


def _kolmogorov_smirnov(first: np.ndarray, second: np.ndarray) -> float:
    values = np.concatenate([first, second])
    below = [np.searchsorted(np.sort(part), values, side="right") / part.size for part in (first, second)]
    return float(np.abs(below[0] - below[1]).max())


def _span(both: pl.DataFrame) -> np.ndarray:
    """Return the edges of the bins, from the first start to the last recorded end."""
    begin = float(min(both["start_time"].to_numpy().min(), both["start_time_s"].to_numpy().min()))
    end = float((both["start_time"] + both["run_time"]).to_numpy().max())
    bins = min(max(1, int(np.ceil((end - begin) / BIN))), 1_000_000)
    return begin + np.arange(bins + 1) * BIN


def _use_by_bins(both: pl.DataFrame, suffix: str, machine: int, edges: np.ndarray) -> np.ndarray:
    """Return the mean utilization in each bin."""
    start, run, processors = (both[f"{name}{suffix}"].to_numpy() for name in ("start_time", "run_time", "processors"))
    times = np.concatenate([start, start + run])
    order = np.argsort(times, kind="stable")
    times = times[order]
    level = np.cumsum(np.concatenate([processors, -processors])[order])
    integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    return np.diff(np.interp(edges, times, integral)) / (machine * BIN)
