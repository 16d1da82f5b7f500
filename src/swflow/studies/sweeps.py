"""Sweeps over the parameters of scaling, and the search for the factor at which a scaled workload fits its source."""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import polars as pl

from swflow.analysis.metrics import fairness_indices, metrics
from swflow.errors import SwflowError
from swflow.files.atomic import write_text
from swflow.files.tables import write_table
from swflow.jobs.randomness import generator
from swflow.jobs.table import ELIGIBILITY_COLUMNS, NEEDED_COLUMNS, Workload
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.simulate import simulate
from swflow.studies.points import Point, grid
from swflow.studies.runs import columns_of_run
from swflow.workload.steps.scale import scale

#: The columns of a row of a sweep that precede its metrics.
PARAMETERS: dict[str, pl.DataType] = {
    "workload": pl.String(),
    "recipe": pl.String(),
    "replicate": pl.Int64(),
    "source": pl.String(),
    "processors": pl.Int64(),
    "d": pl.Float64(),
    "variant": pl.String(),
    "factor": pl.Float64(),
    "scheduler": pl.String(),
}

#: The first step of the search away from the precise factor, as a share of it; each further step is twice as long.
FIRST_STEP = 0.02

#: The largest distance of the search from the precise factor, as a share of it.
FURTHEST = 0.7

#: The search ends when the bracket is narrower than this share of the precise factor.
RESOLUTION = 0.0005

#: If noise leaves the verdict on a factor open, it gets more replicates, up to this multiple of the initial number.
MOST_SEEDS = 8


def points(
    workload: Workload,
    processors: int,
    *,
    d: Iterable[float] = (50.0,),
    variant: Iterable[str] = ("precise",),
    factor: Iterable[float] = (),
    excess: Iterable[float] = (),
    copies: int | None = None,
) -> list[Point]:
    """
    Return the settings of a sweep of a workload: all combinations.

    Values are as for `swflow.workload.steps.scale.scale`; without factors, its default. ``excess`` has further factors,
    in percent above (or below) the precise one: 2 is 1.02 times it, rounded to four digits. ``copies`` is for the
    variant ``precise-size``.
    """
    precise = processors / workload.machine.processors
    factors = [*factor, *(float(f"{precise * (1 + part / 100):.4g}") for part in excess)]
    return grid(processors, d=d, variant=variant, factor=factors, copies=copies)


def evaluate(
    workload: Workload, point: Point, schedulers: Mapping[str, Scheduler], replicate: int, seed: int
) -> list[dict[str, Any]]:
    """
    Scale a workload once and simulate the result under every scheduler; return a row of each, `PARAMETERS` and metrics.

    ``replicate`` is the number of the draw, from 1. ``workload`` of a row is the name of the workflow's workload with
    identical jobs, which a step `Point.step` with these options draws.
    """
    step = f"{point.step}@{replicate}"
    scaled = scale(workload, **point.options, generator=generator(seed, workload.name, step))
    about = {
        "workload": f"{workload.name}+{step}",
        "recipe": f"{workload.name}+{point.step}",
        "replicate": replicate,
        "d": point.d,
        "variant": point.variant,
        "factor": scaled.history[-1]["factor"],
    }
    return _rows(scaled, workload, schedulers, about)


def reference(workload: Workload, schedulers: Mapping[str, Scheduler]) -> list[dict[str, Any]]:
    """Simulate the source on its own machine; the rows have no replicate, d, variant or factor."""
    about = {"workload": workload.name, "recipe": workload.name}
    return _rows(workload, workload, schedulers, about)


def _rows(
    workload: Workload, source: Workload, schedulers: Mapping[str, Scheduler], about: Mapping[str, Any]
) -> list[dict[str, Any]]:
    machine = workload.machine.processors
    rows = []
    for name, scheduler in schedulers.items():
        outcomes = simulate(workload, scheduler)
        row = {**about, "source": source.name, "processors": machine, "scheduler": name}
        rows.append(row | metrics(outcomes, machine) | fairness_indices(outcomes, workload.jobs))
    return rows


def sweep(
    workload: Workload,
    settings: Sequence[Point],
    schedulers: Mapping[str, Scheduler],
    *,
    replicates: int,
    seed: int,
    threads: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> pl.DataFrame:
    """
    Scale a workload with every setting and simulate the results in one process; return the metrics only.

    There is one row per setting, replicate and scheduler as of `evaluate`, the source first. The result does not depend
    on the number of threads. ``progress`` is called after every draw.
    """
    if replicates < 1:
        raise SwflowError(f"seeds: {replicates}; expected at least 1")
    for name, scheduler in schedulers.items():
        if scheduler.order == LOG:
            raise SwflowError(f"schedulers: {name}: a scaled workload has no recorded schedule to replay")
    workload = _needed(workload, schedulers.values())
    rows = reference(workload, schedulers)  # also compiles the kernels before the threads start

    def one(work: tuple[Point, int]) -> list[dict[str, Any]]:
        result = evaluate(workload, work[0], schedulers, work[1], seed)
        progress()
        return result

    tasks = [(point, replicate) for point in settings for replicate in range(1, replicates + 1)]
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        for result in pool.map(one, tasks):
            rows += result
    return _table(rows)


def _needed(workload: Workload, schedulers: Iterable[Scheduler]) -> Workload:
    """Return the workload with the columns that its simulation and the metrics need; scaling copies every column."""
    of_runs = columns_of_run(schedulers)
    if of_runs is None:
        return workload
    names = {*NEEDED_COLUMNS, *ELIGIBILITY_COLUMNS, *workload.machine.resources, *of_runs}
    names |= {"think_time"} if "depends_on" in workload.jobs.columns else set()
    return replace(workload, jobs=workload.jobs.select(name for name in workload.jobs.columns if name in names))


def _table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return a table with the parameters first; parameters that the source lacks are null."""
    measured = [name for name in rows[0] if name not in PARAMETERS]
    whole = {"jobs", "killed"}
    schema = PARAMETERS | {name: pl.Int64() if name in whole else pl.Float64() for name in measured}
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def write_sweep(
    table: pl.DataFrame, path: str | os.PathLike[str], source: str, schedulers: Mapping[str, Scheduler]
) -> None:
    """
    Write the rows of a sweep or of a search as .parquet (the input of ``swflow load``) or .csv.

    The text after the last ``+`` of the file's name is the sweep's name. Raise `SwflowError` if it has another
    extension.
    """
    path = os.fspath(path)
    if path.endswith(".parquet"):
        about = {
            "kind": "sweep",
            "workload": source,
            "sweep": Path(path).stem.rpartition("+")[2],
            "schedulers": {name: scheduler.to_dict() for name, scheduler in schedulers.items()},
        }
        write_table(table, path, about)
    elif path.endswith(".csv"):
        write_text(path, table.write_csv())
    else:
        raise SwflowError(f"{path}: unknown ending; expected .parquet or .csv")


@dataclass
class Search:
    """
    The result of a search: the factor with the best fit, and whether its mean deviation is within the tolerance.

    ``samples`` maps each factor to the deviations of its replicates, in the order in which factors were tested.
    """

    factor: float = math.nan
    fits: bool = False
    samples: dict[float, list[float]] = field(default_factory=dict)

    def deviation(self, factor: float) -> tuple[float, float]:
        """Return the mean deviation at a factor and its standard error."""
        sample = self.samples[factor]
        return fmean(sample), stdev(sample) / math.sqrt(len(sample)) if len(sample) > 1 else 0.0


def find_factor(
    deviations: Callable[[float, range], Iterable[float]], start: float, *, tolerance: float, replicates: int
) -> Search:
    """
    Find the zero of a noisy function that increases with the factor, by bracketing and bisection.

    The search steps from ``start``, the precise factor, in the direction of the sign, doubling the step, until the sign
    changes. It then halves the bracket until a factor fits or `RESOLUTION` is reached. If none fits, it returns the
    best one tested.

    Parameters
    ----------
    deviations : callable
        Function of a factor and a range of replicates (from 1) that returns one deviation per replicate, negative
        if the factor is too small.
    tolerance : float
        A factor fits if the mean over its replicates is at most this far from 0.
    replicates : int
        The initial number of replicates per factor. While two standard errors leave open whether a factor fits, or on
        which side it is, the number is doubled, up to `MOST_SEEDS` times the initial number.

    Examples
    --------
    >>> def exact(factor, replicates):
    ...     return [factor - 10.5 for _ in replicates]
    >>> search = find_factor(exact, 10.24, tolerance=0.02, replicates=1)
    >>> search.fits, round(search.factor, 2)
    (True, 10.5)
    """
    search = Search()

    def at(factor: float) -> float:
        factor = float(f"{factor:.6g}")
        sample = search.samples.setdefault(factor, [])
        wanted = replicates
        while len(sample) < wanted:
            sample += deviations(factor, range(len(sample) + 1, wanted + 1))
            mean, error = search.deviation(factor)
            is_open = abs(abs(mean) - tolerance) < 2 * error or abs(mean) < 2 * error
            if is_open and not abs(mean) + 2 * error <= tolerance:
                wanted = min(2 * wanted, MOST_SEEDS * replicates)
        mean = fmean(sample)
        if math.isnan(search.factor) or abs(mean) < abs(fmean(search.samples[search.factor])):
            search.factor = factor
        search.fits = abs(mean) <= tolerance
        return mean

    here, value = start, at(start)
    sign = -1.0 if value > 0 else 1.0
    step = FIRST_STEP
    other = here
    while not search.fits and value * sign < 0:
        if step > FURTHEST:
            return search
        other, here = here, start * (1 + sign * step)
        value = at(here)
        step *= 2
    low, high = sorted((other, here))
    while not search.fits and high - low > RESOLUTION * start:
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) < 0 else (low, middle)
    return search


def adjust(
    workload: Workload,
    processors: int,
    scheduler: Scheduler,
    *,
    d: float = 50.0,
    tolerance: float = 0.02,
    replicates: int = 5,
    seed: int = 1,
    name: str = "adjusted",
    threads: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> tuple[Search, pl.DataFrame]:
    """
    Search for the factor at which a scaled workload has the AWRT of its source under the same scheduler.

    Narrower jobs relative to the machine wait less, so the precise factor produces a workload with shorter waits. The
    criterion is the AWRT. The AWWT then differs from the source's by the same number of seconds, since their difference
    is the area-weighted mean run time, which does not depend on the factor.

    ``tolerance`` is the largest difference of the mean AWRT from the source's, as a share of the latter, ``replicates``
    the smallest number of draws per factor, and ``name`` the scheduler's name in the table. ``progress`` is called
    after every tested factor. The other arguments are as for `sweep` and `swflow.workload.steps.scale.scale`. The
    result has the observed deviations as shares of the source's AWRT, and the curve: rows like those of `sweep`.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, section III-C and Table IV.
    """
    if not tolerance > 0 or replicates < 1:
        raise SwflowError(f"adjust: tolerance {tolerance}, seeds {replicates}; expected more than 0 and at least 1")
    schedulers = {name: scheduler}
    workload = _needed(workload, [scheduler])
    rows = reference(workload, schedulers)
    target = rows[0]["awrt"]
    if not target:
        raise SwflowError(f"adjust: {workload.name}: no job has a run time; the AWRT is undefined")

    def deviations(factor: float, wanted: range) -> list[float]:
        # The name is constant, so that a replicate draws the same random numbers at every factor.
        point = Point(processors, d, "precise", factor, name=f"adjusted-{processors}-d{d:g}")
        with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
            new = [row for (row,) in pool.map(lambda one: evaluate(workload, point, schedulers, one, seed), wanted)]
        rows.extend(new)
        progress()
        return [row["awrt"] / target - 1 for row in new]

    start = processors / workload.machine.processors
    search = find_factor(deviations, start, tolerance=tolerance, replicates=replicates)
    return search, _table(rows)


def first_crossing(
    workload: Workload,
    processors: int,
    schedulers: Mapping[str, Scheduler],
    *,
    d: float = 50.0,
    step: float = 0.01,
    replicates: int = 20,
    seed: int = 1,
    threads: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> tuple[dict[str, list[float | None]], pl.DataFrame]:
    """
    Find the factor by a sequential search: test increasing factors with one draw each, stop at the first that fits.

    The search tests every multiple of the step from the precise factor on, with one draw each, until the AWRT reaches
    the source's. Single draws scatter, so the search stops below the factor at which the mean AWRT equals the source's
    (`adjust`), and at a different factor for every replicate. The result is therefore a distribution.

    Each scheduler has its own searches, on the same draws; ``step`` is the distance between two factors. ``replicates``
    is the number of searches, each with separate draws: those of a sweep over the same factors. The other arguments are
    as for `adjust`.

    Return the factor of every search by scheduler, in the order of the replicates, None if no factor up to `FURTHEST`
    fits; and every draw, as rows of `sweep`, by scheduler. The last factor of a replicate is the one that fits.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, section III-C and Table V, whose
    factors are 0.01 or 0.02 apart and have one draw each.
    """
    if not step > 0 or replicates < 1:
        raise SwflowError(f"adjust: step {step}, seeds {replicates}; expected a positive step and at least 1 seed")
    workload = _needed(workload, schedulers.values())
    sources = {row["scheduler"]: row for row in reference(workload, schedulers)}
    if not all(row["awrt"] for row in sources.values()):
        raise SwflowError(f"adjust: {workload.name}: no job has a run time; the AWRT is undefined")
    precise = processors / workload.machine.processors
    first, last = math.ceil(precise / step - 1e-9), math.floor(precise * (1 + FURTHEST) / step)
    if first > last:
        largest = precise * (1 + FURTHEST)
        raise SwflowError(
            f"adjust: step {step:g}: no multiple from {precise:g} to {largest:g}; expected a smaller step"
        )

    def one(replicate: int) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in schedulers}
        left = dict(schedulers)
        for place in range(first, last + 1):
            point = Point(processors, d, "precise", float(f"{place * step:.10g}"))
            for row in evaluate(workload, point, left, replicate, seed):
                found[row["scheduler"]].append(row)
            progress()
            left = {name: left[name] for name in left if found[name][-1]["awrt"] < sources[name]["awrt"]}
            if not left:
                break
        return found

    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        walks = list(pool.map(one, range(1, replicates + 1)))
    factors, rows = {}, []
    for name, source in sources.items():
        ends = [walk[name][-1] for walk in walks]
        factors[name] = [row["factor"] if row["awrt"] >= source["awrt"] else None for row in ends]
        rows += [source, *(row for walk in walks for row in walk[name])]
    return factors, _table(rows)


def crossing_quantiles(factors: Sequence[float | None]) -> tuple[float | None, float | None, float | None]:
    """
    Return the 5th, 50th and 95th percentile of the factors of `first_crossing`; None if beyond the largest factor.

    Examples
    --------
    >>> crossing_quantiles([10.7, 10.8, None])
    (10.7, 10.8, None)
    """
    ordered = sorted(math.inf if factor is None else factor for factor in factors)
    found = [ordered[round(part * (len(ordered) - 1))] for part in (0.05, 0.5, 0.95)]
    low, middle, high = (None if math.isinf(factor) else factor for factor in found)
    return low, middle, high


def curve(table: pl.DataFrame) -> tuple[list[str], list[tuple[Any, ...]]]:
    """
    Summarize the rows of a search, as `adjust` returns them: one row per scheduler and factor, the source first.

    The columns are ``scheduler``, ``factor`` (1 for the source), ``seeds``, the means of ``jobs``, ``utilization``,
    ``awrt`` and ``awwt`` (s), ``error`` (the standard error of the AWRT, s), ``deviation`` (of the AWRT from the
    source's, percent).
    """
    summary = (
        table.group_by("scheduler", "factor", maintain_order=True)
        .agg(
            pl.len().alias("seeds"),
            pl.col("jobs").mean().round(),
            pl.col("utilization", "awrt", "awwt").mean(),
            (pl.col("awrt").std() / pl.len().sqrt()).alias("error"),
        )
        .with_columns(deviation=100 * (pl.col("awrt") / pl.col("awrt").first().over("scheduler") - 1))
    )
    ordered = summary.sort("scheduler", "factor", nulls_last=False).with_columns(pl.col("factor").fill_null(1.0))
    return ordered.columns, ordered.rows()
