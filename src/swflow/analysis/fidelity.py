"""Fidelity: how closely a simulated schedule reproduces the recorded one."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

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


#: The largest relative difference of the mean wait, of all jobs and of a part of them, the largest distance of the
#: distributions, and the smallest agreement of the order, up to which minutes can be trusted.
FAITHFUL_RATIO, FAITHFUL_PART, FAITHFUL_DISTANCE, FAITHFUL_ORDER = 0.05, 0.2, 0.05, 0.6

#: The same up to which percentages can be trusted; a mean wait as close as `FAIR_MEAN` is enough.
FAIR_RATIO, FAIR_PART, FAIR_DISTANCE, FAIR_MEAN = 0.25, 0.5, 0.2, 0.1

#: The smallest share of the jobs that a partition or QOS has whose mean wait counts, and the fewest jobs.
PART_SHARE, PART_JOBS = 0.05, 30

#: The quantile of the recorded waits of jobs that start at once in the simulation, which is the start delay.
DELAYED = 0.9


class Trust(StrEnum):
    """Which results of a simulation can be trusted, by its similarity to the recorded schedule."""

    MINUTES = "minutes"
    PERCENTAGES = "percentages"
    DIRECTIONS = "directions"
    UNKNOWN = "unknown"  # nothing is recorded
    RECORD = "record"  # the base is the recorded schedule itself


class Part(NamedTuple):
    """The jobs of a partition or QOS: their share of all jobs, and their mean waits, seconds."""

    kind: str
    name: str
    share: float
    recorded: float
    simulated: float


def trust_of(found: Mapping[str, float | None] | None, parts: Sequence[Part] = ()) -> Trust:
    """
    Return which results of a simulation can be trusted.

    The mean wait, the distribution of the waits, the order of the starts and the mean waits of ``parts`` count. Waits
    that differ by less than the start delay, or by a second, do not differ, because clocks count seconds.

    Examples
    --------
    >>> measures = {"jobs": 9, "recorded_mean_wait_time": 600.0, "simulated_mean_wait_time": 500.0}
    >>> trust_of(measures | {"wait_distance": 0.1}), trust_of(measures | {"wait_distance": 0.3}), trust_of(None)
    (<Trust.PERCENTAGES: 'percentages'>, <Trust.DIRECTIONS: 'directions'>, <Trust.UNKNOWN: 'unknown'>)
    """
    if not found or not found["jobs"]:
        return Trust.UNKNOWN
    off, distance = _off(found), found["wait_distance"] or 0.0
    order = found.get("start_order")
    of_parts = max((part_off(part, found) for part in parts), default=0.0)
    is_ordered = order is None or order >= FAITHFUL_ORDER
    is_close = off <= FAITHFUL_RATIO and distance <= FAITHFUL_DISTANCE
    if is_close and of_parts <= FAITHFUL_PART and is_ordered:
        return Trust.MINUTES
    is_fair = off <= FAIR_RATIO and distance <= FAIR_DISTANCE and of_parts <= FAIR_PART
    return Trust.PERCENTAGES if is_fair or off <= FAIR_MEAN else Trust.DIRECTIONS


def weaknesses_of(found: Mapping[str, float | None], parts: Sequence[Part] = ()) -> list[str]:
    """
    Return what keeps the minutes of a simulation from being trusted, as parts of a sentence.

    Examples
    --------
    >>> measures = {"jobs": 9, "recorded_mean_wait_time": 600.0, "simulated_mean_wait_time": 590.0, "start_order": 0.3}
    >>> weaknesses_of(measures | {"wait_distance": 0.1}, [Part("partition", "gpu", 0.5, 60.0, 180.0)])[1:]
    ['the order of the starts', 'the mean wait of partition gpu (3.0 instead of 1.0 min)']
    """
    said = []
    if _off(found) > FAITHFUL_RATIO:
        said.append("the mean wait")
    if (found["wait_distance"] or 0.0) > FAITHFUL_DISTANCE:
        said.append("the distribution of the waits")
    order = found.get("start_order")
    if order is not None and order < FAITHFUL_ORDER:
        said.append("the order of the starts")
    worst = max(parts, key=lambda part: part_off(part, found), default=None)
    if worst is not None and part_off(worst, found) > FAITHFUL_PART:
        means = f"{worst.simulated / 60:.1f} instead of {worst.recorded / 60:.1f} min"
        said.append(f"the mean wait of {'QOS' if worst.kind == 'qos' else worst.kind} {worst.name} ({means})")
    return said


def _off(found: Mapping[str, float | None]) -> float:
    """Return the relative difference of the mean waits; 0 if it is within the start delay."""
    return _relative(found["recorded_mean_wait_time"] or 0.0, found["simulated_mean_wait_time"] or 0.0, found)


def part_off(part: Part, found: Mapping[str, float | None]) -> float:
    """Return the relative difference of the mean waits of a part; 0 if it is within the start delay."""
    return _relative(part.recorded, part.simulated, found)


def _relative(recorded: float, simulated: float, found: Mapping[str, float | None]) -> float:
    difference = abs(simulated - recorded)
    if difference <= max(RESOLUTION, found.get("start_delay") or 0.0):
        return 0.0
    return difference / recorded if recorded > 0 else np.inf


def parts_of(
    jobs: pl.DataFrame, names: Mapping[str, Mapping[int, str]], recorded: pl.DataFrame, simulated: pl.DataFrame
) -> list[Part]:
    """
    Return the mean waits of each partition and QOS that has enough jobs, if there are several.

    ``names`` has the names of the numbers in the columns ``partition_id`` and ``queue_id`` of the jobs.
    """
    waits = recorded.select("job_id", "wait_time").join(
        simulated.select("job_id", "wait_time"), on="job_id", how="inner", suffix="_s"
    )
    found = []
    for kind, column in (("partition", "partition_id"), ("qos", "queue_id")):
        if column not in jobs.columns:
            continue
        of = waits.join(jobs.select("job_id", column), on="job_id", how="inner").drop_nulls(column)
        means = of.group_by(column).agg(
            jobs=pl.len(), recorded=pl.col("wait_time").mean(), then=pl.col("wait_time_s").mean()
        )
        for number, count, before, then in means.sort(column).iter_rows() if means.height > 1 else ():
            if count >= max(PART_JOBS, PART_SHARE * waits.height):
                name = names.get(column, {}).get(number, str(number))
                found.append(Part(kind, name, count / waits.height, before, then))
    return found


def fidelity(recorded: pl.DataFrame, simulated: pl.DataFrame, machine: int) -> dict[str, float | None]:
    """
    Compare a simulated schedule with the recorded one on the jobs that both contain.

    Returns a mapping of measures to values; None where there is nothing to compare.

    - ``jobs``
    - ``recorded_mean_wait_time``, ``simulated_mean_wait_time``, seconds
    - ``start_delay``: the time, at most `NEAR`, in which the system starts a job: 90 % of the jobs that start at once
      in the simulation wait no longer in the log, seconds
    - ``wait_distance``: greatest difference of the distribution functions of the waits (Kolmogorov-Smirnov, 0 to 1),
      where shorter waits count as the start delay
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
    at_once = waits[other <= RESOLUTION]
    delay = min(NEAR, float(np.quantile(at_once, DELAYED))) if at_once.size else 0.0
    edges = _span(both)
    use = [_use_by_bins(both, suffix, machine, edges) for suffix in ("", "_s")]
    maps = [heatmap(both[f"load{suffix}"].to_numpy(), both[f"wait_time{suffix}"].to_numpy()) for suffix in ("", "_s")]
    return {
        "jobs": both.height,
        "recorded_mean_wait_time": float(waits.mean()),
        "simulated_mean_wait_time": float(other.mean()),
        "start_delay": delay,
        "wait_distance": kolmogorov_smirnov(np.maximum(waits, delay), np.maximum(other, delay)),
        "wait_difference": float(np.abs(np.sort(waits) - np.sort(other)).mean()),
        "started_alike": float((np.abs(start - start_s) <= NEAR).mean()),
        "start_order": float((start_s[1:] > start_s[:-1])[waited].mean()) if waited.any() else None,
        "utilization_difference": float(np.abs(use[0] - use[1]).mean()),
        "heatmap_distance": compare(*maps).distance,
    }


#: Measures that `fidelity` returns besides ``jobs``.
MEASURES = (
    "recorded_mean_wait_time", "simulated_mean_wait_time", "start_delay", "wait_distance", "wait_difference",
    "started_alike", "start_order", "utilization_difference", "heatmap_distance",
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
