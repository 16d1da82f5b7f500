"""Calibration: fit what no configuration file states to some weeks of a log, and judge it by the following weeks."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from swflow.analysis.fidelity import NEAR
from swflow.errors import SwflowError
from swflow.jobs.earlier import as_recorded_until_begin, since_begin
from swflow.jobs.table import Workload
from swflow.log.site import CLUSTERS
from swflow.scheduling.fitting_jobs import fitting
from swflow.scheduling.nodes import with_counts
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.simulate import simulate
from swflow.values import WEEK
from swflow.workload.models.fit_measures import kolmogorov_smirnov

#: Values are only taken if the error is lower in each of this many equal parts of the weeks.
_PARTS = 4

Options = dict[str, Any]


class Parameter(NamedTuple):
    """A parameter: what it means, the values that are tried, and the options with a value (None: not supported)."""

    meaning: str
    values: Sequence[float]
    apply: Callable[[Options, Workload, float], Options | None]


def _delay(options: Options, workload: Workload, value: float) -> Options | None:
    if options.get("backfill") != "slurm":
        return None
    return options | {"scheduler_parameters": {**(options.get("scheduler_parameters") or {}), "end_delay": value}}


def _size(options: Options, workload: Workload, value: float) -> Options | None:
    if value == 1.0:
        return options
    widest = int(workload.jobs["processors"].max() or 1)  # type: ignore[arg-type]
    if options.get(CLUSTERS):
        scaled = [one | {"processors": math.ceil(value * one["processors"])} for one in options[CLUSTERS]]
        return options | {CLUSTERS: scaled}
    if options.get("nodes"):
        return with_counts(options, [one | {"count": math.ceil(value * one["count"])} for one in options["nodes"]])
    away = workload.machine.processors - max(widest, math.ceil(value * workload.machine.processors))
    begin = float(workload.jobs["submit_time"].min() or 0.0)  # type: ignore[arg-type]
    window = {"from": begin, "until": None, "processors": away}
    return options | {"unavailable": (*(options.get("unavailable") or ()), window)} if away > 0 else None


def _user_limit(what: str) -> Callable[[Options, Workload, float], Options | None]:
    def apply(options: Options, workload: Workload, value: float) -> Options | None:
        if value == math.inf:
            return options
        if "user_id" not in workload.jobs or workload.jobs["user_id"].null_count() == workload.jobs.height:
            return None
        limits = dict(options.get("limits") or {})
        if what in limits.get("user", {}):
            return None
        number = int(value) if what == "jobs" else max(1, math.floor(value * workload.machine.processors))
        return options | {"limits": limits | {"user": {**limits.get("user", {}), what: number}}}

    return apply


#: What is fitted, in this order. The first value of each changes nothing.
PARAMETERS: dict[str, Parameter] = {
    "user_jobs": Parameter("running jobs of a user", (math.inf, 1000.0, 300.0, 100.0, 30.0, 10.0), _user_limit("jobs")),
    "user_processors": Parameter(
        "share of the processors that a user may occupy", (math.inf, 0.5, 0.25, 0.1), _user_limit("processors")
    ),
    "size": Parameter("usable share of the processors", (1.0, 0.98, 0.95, 0.9, 0.8), _size),
    "end_delay": Parameter("seconds until the scheduler has a job's processors", (0.1, 0.0, 10.0, 60.0, 300.0), _delay),
}


class Measures(NamedTuple):
    """How a simulation of some jobs compares with what was recorded; waits are seconds."""

    jobs: int
    recorded_mean_wait: float
    simulated_mean_wait: float
    wait_distance: float  # Kolmogorov-Smirnov, 0 to 1
    start_order: float  # Kendall's tau of the starts, -1 to 1
    weekly_error: float  # mean absolute difference of the mean waits of each week


@dataclass(frozen=True)
class Calibration:
    """
    The fitted values, the options with them, and the measures of the following weeks before and after.

    ``start_delay`` is the median recorded wait, in seconds, of jobs that start at once in the simulation; it is part of
    the simulated waits. ``left_out`` are jobs that never start with the given or fitted options.
    """

    values: Mapping[str, float]
    options: Options
    before: Measures
    after: Measures
    parts: Sequence[tuple[str, str, Measures, Measures]]  # by partition and QOS
    tried: int
    start_delay: float = 0.0
    left_out: int = 0

    def __str__(self) -> str:
        """Return what was found as a sentence."""
        changed = [
            f"{PARAMETERS[name].meaning}: {value:g}"
            for name, value in self.values.items()
            if value != PARAMETERS[name].values[0]
        ]
        found = f"The fit sets {'; '.join(changed)}." if changed else "No value is better in every part of the weeks."
        before, after = (one.simulated_mean_wait / 60 for one in (self.before, self.after))
        return (
            f"{found} In the weeks after the fit, the simulated mean wait is {after:.1f} min, before the fit it is "
            f"{before:.1f} min, and the recorded one {self.after.recorded_mean_wait / 60:.1f} min. A job that need not "
            f"wait starts after {self.start_delay:.0f} s, which simulated waits include."
        )


def calibrate(workload: Workload, options: Mapping[str, Any], weeks: int = 4, test_weeks: int = 2) -> Calibration:
    """
    Fit `PARAMETERS` to the first weeks of a log, and measure the following weeks.

    One value at a time is changed, the one that lowers the error most, until none does. The error is the mean absolute
    difference between the recorded and simulated mean waits of each week. The last values are taken whose error is
    lower than that of the given options in every quarter of the weeks with jobs, because what fits one busy month only
    can make the following weeks worse. Every simulation begins with the log, so that the queue is filled. Jobs of the
    following weeks do not affect the fit; those that never start with the given or the fitted options are left out.

    ``options`` are those of the scheduler that is calibrated. The parameters are fitted to the ``weeks`` from the first
    submission since the record begins; the ``test_weeks`` after them are measured. Jobs that were submitted before
    (`swflow.jobs.earlier`) start as recorded until then. Raise `SwflowError` if the log is shorter or has no recorded
    waits.
    """
    workload = replace(workload, jobs=as_recorded_until_begin(workload.jobs))
    jobs = workload.jobs
    measured = since_begin(jobs)
    begin = float(measured["submit_time"].min() or 0.0)  # type: ignore[arg-type]
    bounds = [begin, begin + weeks * WEEK, begin + (weeks + test_weeks) * WEEK]
    starts = [(jobs["submit_time"] >= since).arg_true().len() for since in bounds]
    if min(starts[0] - starts[1], starts[1] - starts[2]) < 2:
        raise SwflowError(
            f"{workload.name}: too few jobs in {weeks} weeks and the {test_weeks} after them; give fewer --weeks"
        )
    given = dict(options)
    jobs = jobs.filter(can_start(workload, given))
    train = workload.with_jobs(jobs.filter(pl.col("submit_time") < bounds[1]), {"stage": "calibrate"})
    recorded = _waits(train, {"order": LOG}).filter(pl.col("job_id").is_in(measured["job_id"].implode()))
    edges = np.linspace(bounds[0], bounds[1], _PARTS + 1)
    quarters = (
        recorded.filter(pl.col("submit_time").is_between(*ends, closed="left")) for ends in itertools.pairwise(edges)
    )
    parts_of_train = [part for part in quarters if part.height]
    values = {name: one.values[0] for name, one in PARAMETERS.items()}
    known: dict[tuple[float, ...], np.ndarray] = {}

    def errors_of(tried: Mapping[str, float]) -> np.ndarray:
        """Return the error in each part of the weeks."""
        key = tuple(tried.values())
        if key not in known:
            chosen = _applied(options, train, tried)
            never = np.full(len(parts_of_train), math.inf)
            known[key] = never if chosen is None else _errors(chosen, train, parts_of_train, delay)
        return known[key]

    delay = _start_delay(recorded, _waits(train, given))  # also raises errors of the given options
    first = taken = values
    while True:
        changed = [values | {name: value} for name, one in PARAMETERS.items() for value in one.values]
        best = min([values, *changed], key=lambda one: errors_of(one).mean())
        if best == values:
            break
        values = best
        if (errors_of(values) < errors_of(first)).all():
            taken = values
    values = taken
    chosen = _applied(options, train, values) or given
    test = workload.with_jobs(jobs.filter(pl.col("submit_time") < bounds[2]), {"stage": "calibrate"})
    test = test.with_jobs(test.jobs.filter(can_start(test, chosen)), {"stage": "calibrate"})
    left_out = int((workload.jobs["submit_time"] < bounds[2]).sum()) - test.jobs.height
    recorded = _waits(test, {"order": LOG})
    before_all, after_all = (_waits(test, one, delay) for one in (given, chosen))
    held = recorded.filter(pl.col("submit_time") >= bounds[1])
    whole = [_measures(held, one) for one in (before_all, after_all)]
    parts = [
        (kind, name, _measures(some, before_all), _measures(some, after_all))
        for kind, name, some in _parts(held, workload)
    ]
    return Calibration(values, chosen, whole[0], whole[1], parts, len(known), delay, left_out)


def can_start(workload: Workload, options: Options) -> pl.Series:
    """Return which jobs fit into the machine, clusters, nodes, resources and limits of a scheduler."""
    away = sum(
        one["processors"] for one in options.get("unavailable") or () if one["until"] is None and "processors" in one
    )
    fits = workload.jobs.select(fits=pl.all_horizontal(*fitting(workload, options, workload.machine)))["fits"]
    is_pool = not (options.get("nodes") or options.get(CLUSTERS))
    return fits & (workload.jobs["processors"] <= workload.machine.processors - away) if is_pool else fits


def _start_delay(recorded: pl.DataFrame, simulated: pl.DataFrame) -> float:
    """Return the median recorded wait of the jobs that start at once in a simulation, at most a minute, seconds."""
    both = recorded.join(simulated, on="job_id", how="inner", suffix="_s").filter(pl.col("wait_time_s") <= 1)
    return min(float(both["wait_time"].median() or 0.0), 60.0)  # type: ignore[arg-type]


def _errors(options: Options, workload: Workload, parts: Sequence[pl.DataFrame], delay: float) -> np.ndarray:
    """Return the error of the waits under a scheduler in each part; infinite if a job cannot run with its options."""
    try:
        simulated = _waits(workload, options, delay)
    except SwflowError:
        return np.full(len(parts), math.inf)
    return np.array([_weekly_error(part.join(simulated, on="job_id", suffix="_s")) for part in parts])


def _weekly_error(both: pl.DataFrame) -> float:
    """Return the mean absolute difference between the mean waits of each week."""
    week = (pl.col("submit_time") - pl.col("submit_time").min()) // WEEK
    means = both.group_by(week.alias("week")).agg(pl.col("wait_time", "wait_time_s").mean())
    return float((means["wait_time"] - means["wait_time_s"]).abs().mean() or 0.0)  # type: ignore[arg-type]


def _applied(options: Mapping[str, Any], workload: Workload, values: Mapping[str, float]) -> Options | None:
    """Return the options with the values of parameters; None if one is not supported."""
    found: Options | None = dict(options)
    for name, value in values.items():
        if found is not None and value != PARAMETERS[name].values[0]:
            found = PARAMETERS[name].apply(found, workload, value)
    return found


def _waits(workload: Workload, options: Mapping[str, Any], delay: float = 0.0) -> pl.DataFrame:
    """Return the submit time, start and wait of each job, which the start delay lengthens, with partition and QOS."""
    found = simulate(workload, Scheduler.of("calibrate", dict(options)))
    if found.is_empty():
        raise SwflowError(f"{workload.name}: no recorded wait times; expected a log with a recorded schedule")
    owners = [name for name in ("partition_id", "queue_id") if name in workload.jobs.columns]
    wait = pl.col("wait_time") + delay
    return found.select("job_id", "submit_time", "start_time", wait_time=wait).join(
        workload.jobs.select("job_id", *owners), on="job_id", how="left", maintain_order="left"
    )


def _measures(recorded: pl.DataFrame, simulated: pl.DataFrame) -> Measures:
    """Return the measures of the jobs of the recorded schedule."""
    both = recorded.join(simulated, on="job_id", how="inner", suffix="_s")
    waits, other = both["wait_time"].to_numpy(), both["wait_time_s"].to_numpy()
    if not waits.size:
        return Measures(0, 0.0, 0.0, 0.0, math.nan, 0.0)
    starts = both["start_time"].to_numpy(), both["start_time_s"].to_numpy()
    order = kendalltau(*starts).statistic if waits.size > 1 else math.nan
    # A start takes some seconds, so that shorter waits count as equal.
    distance = kolmogorov_smirnov(np.maximum(waits, NEAR), np.maximum(other, NEAR))
    means = float(waits.mean()), float(other.mean())
    return Measures(both.height, *means, distance, float(np.round(order, 4)), _weekly_error(both))


def _parts(held: pl.DataFrame, workload: Workload) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield the jobs of each partition and QOS, if there are several."""
    for kind, column in (("partition", "partition_id"), ("qos", "queue_id")):
        if column not in held.columns or held[column].n_unique() < 2:
            continue
        names = workload.header.names_of(column)
        for (number,), some in sorted(held.drop_nulls(column).group_by(column), key=lambda one: one[0]):
            yield kind, names.get(number, str(number)), some
