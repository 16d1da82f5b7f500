"""Calibration: fit what no configuration file states to some weeks of a log, and judge it by the following weeks."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from swflow.errors import SwflowError
from swflow.jobs.table import Workload
from swflow.log.imported import names_of
from swflow.log.site import CLUSTERS
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.models.fit_measures import kolmogorov_smirnov

WEEK = 7 * 86_400.0

#: Added to mean waits before they are compared, seconds: short ones are equal.
_SHORT = 60.0

#: How often each parameter is varied, while the others are kept.
_ROUNDS = 2

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
    away = min(workload.machine.processors - widest, math.floor((1 - value) * workload.machine.processors))
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

    @property
    def error(self) -> float:
        """Return what calibration minimizes: the logarithm of the ratio of mean waits, plus the distance of waits."""
        ratio = (self.simulated_mean_wait + _SHORT) / (self.recorded_mean_wait + _SHORT)
        return abs(math.log(ratio)) + self.wait_distance


@dataclass(frozen=True)
class Calibration:
    """The fitted values, the options with them, and the measures of the following weeks before and after."""

    values: Mapping[str, float]
    options: Options
    before: Measures
    after: Measures
    parts: Sequence[tuple[str, str, Measures, Measures]]  # by partition and QOS
    tried: int
    fitted: Sequence[tuple[str, float, float]] = field(default=())  # parameter, error before, and after


def calibrate(workload: Workload, options: Mapping[str, Any], weeks: int = 4, test_weeks: int = 2) -> Calibration:
    """
    Fit `PARAMETERS` to the first weeks of a log, one after the other, and measure the following weeks.

    Every simulation begins with the log, so that the queue is filled; jobs of the following weeks do not affect the
    fit.

    Parameters
    ----------
    workload : Workload
        A log with recorded waits.
    options : mapping
        The options of the scheduler that is calibrated.
    weeks, test_weeks : int
        The weeks from the first submission to which the parameters are fitted, and those after them that are measured.

    Raises
    ------
    SwflowError
        If the log is shorter, or has no recorded waits.
    """
    jobs, begin = workload.jobs, float(workload.jobs["submit_time"].min() or 0.0)  # type: ignore[arg-type]
    bounds = [begin, begin + weeks * WEEK, begin + (weeks + test_weeks) * WEEK]
    starts = [(jobs["submit_time"] >= since).arg_true().len() for since in bounds]
    if min(starts[0] - starts[1], starts[1] - starts[2]) < 2:
        raise SwflowError(
            f"{workload.name}: too few jobs in {weeks} weeks and the {test_weeks} after them; give fewer --weeks"
        )
    train = workload.with_jobs(jobs.filter(pl.col("submit_time") < bounds[1]), {"stage": "calibrate"})
    test = workload.with_jobs(jobs.filter(pl.col("submit_time") < bounds[2]), {"stage": "calibrate"})
    recorded = _waits(train, {"order": LOG})
    values = {name: one.values[0] for name, one in PARAMETERS.items()}
    known: dict[tuple[float, ...], float] = {}

    def error_of(tried: Mapping[str, float]) -> float:
        key = tuple(tried.values())
        if key not in known:
            chosen = _applied(options, test, tried)
            known[key] = math.inf if chosen is None else _error(chosen, train, recorded)
        return known[key]

    _waits(test, options)  # raises errors of the given options
    fitted = []
    for _ in range(_ROUNDS):
        for name, one in PARAMETERS.items():
            before = error_of(values)
            values[name] = min(one.values, key=lambda value, name=name: error_of(values | {name: value}))  # type: ignore[misc]
            fitted.append((name, before, error_of(values)))
    chosen = _applied(options, test, values) or dict(options)
    recorded, before_all, after_all = (_waits(test, one) for one in ({"order": LOG}, dict(options), chosen))
    held = recorded.filter(pl.col("submit_time") >= bounds[1])
    whole = [_measures(held, one) for one in (before_all, after_all)]
    parts = [
        (kind, name, _measures(some, before_all), _measures(some, after_all))
        for kind, name, some in _parts(held, workload)
    ]
    return Calibration(values, chosen, whole[0], whole[1], parts, len(known), fitted)


def _error(options: Options, workload: Workload, recorded: pl.DataFrame) -> float:
    """Return the error of the waits under a scheduler; infinite if a job cannot run with its options."""
    try:
        return _measures(recorded, _waits(workload, options)).error
    except SwflowError:
        return math.inf


def _applied(options: Mapping[str, Any], workload: Workload, values: Mapping[str, float]) -> Options | None:
    """Return the options with the values of parameters; None if one is not supported."""
    found: Options | None = dict(options)
    for name, value in values.items():
        if found is not None and value != PARAMETERS[name].values[0]:
            found = PARAMETERS[name].apply(found, workload, value)
    return found


def _waits(workload: Workload, options: Mapping[str, Any]) -> pl.DataFrame:
    """Return the submit time, start and wait of each job, with its partition and QOS."""
    found = simulate(workload, Scheduler.of("calibrate", dict(options)))
    if found.is_empty():
        raise SwflowError(f"{workload.name}: no recorded wait times; expected a log with a recorded schedule")
    owners = [name for name in ("partition_id", "queue_id") if name in workload.jobs.columns]
    return found.select("job_id", "submit_time", "start_time", "wait_time").join(
        workload.jobs.select("job_id", *owners), on="job_id", how="left", maintain_order="left"
    )


def _measures(recorded: pl.DataFrame, simulated: pl.DataFrame) -> Measures:
    """Return the measures of the jobs of the recorded schedule."""
    both = recorded.join(simulated, on="job_id", how="inner", suffix="_s")
    waits, other = both["wait_time"].to_numpy(), both["wait_time_s"].to_numpy()
    if not waits.size:
        return Measures(0, 0.0, 0.0, 0.0, math.nan)
    order = kendalltau(both["start_time"].to_numpy(), both["start_time_s"].to_numpy()).statistic
    distance = kolmogorov_smirnov(waits, other)
    return Measures(both.height, float(waits.mean()), float(other.mean()), distance, float(np.round(order, 4)))


def _parts(held: pl.DataFrame, workload: Workload) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield the jobs of each partition and QOS, if there are several."""
    for kind, column in (("partition", "partition_id"), ("qos", "queue_id")):
        if column not in held.columns or held[column].n_unique() < 2:
            continue
        names = names_of(workload.header, column)
        for (number,), some in sorted(held.drop_nulls(column).group_by(column), key=lambda one: one[0]):
            yield kind, names.get(number, str(number)), some
