"""Scaling, judged by scheduling: sweeps over its parameters, and the search for the factor that fits the source."""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import polars as pl

from swflow.analysis.metrics import metrics
from swflow.errors import SwflowError
from swflow.jobs import Workload, write_table
from swflow.points import Point, grid
from swflow.randomness import generator
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workloads.scale import scale

#: What a row of a sweep says before its metrics.
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

#: The first step of the search away from the precise factor, as a share of it; each further one is twice as long.
FIRST_STEP = 0.02

#: The search goes no further than this share of the precise factor to either side.
FURTHEST = 0.7

#: It ends when the bracket is narrower than this share of the precise factor.
RESOLUTION = 0.0005

#: A factor whose verdict the noise leaves open is simulated again, up to so many times the seeds.
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
    Return the settings of a sweep: every combination.

    Parameters
    ----------
    workload : Workload
        The source.
    processors : int
        Processors of the new machine.
    d, variant, factor
        Values as in `swflow.workloads.scale.scale`; without factors the default one.
    excess : iterable of float
        More factors, in percent above (or below) the precise one: 2 is 1.02 times it, rounded to four digits.
    copies : int, optional
        For the variant ``precise-size``.

    Returns
    -------
    list of Point
    """
    precise = processors / workload.machine.processors
    factors = [*factor, *(float(f"{precise * (1 + part / 100):.4g}") for part in excess)]
    return grid(processors, d=d, variant=variant, factors=factors, copies=copies)


def evaluate(
    workload: Workload, point: Point, schedulers: Mapping[str, Scheduler], replicate: int, seed: int
) -> list[dict[str, Any]]:
    """
    Scale a workload once and simulate it.

    Parameters
    ----------
    workload : Workload
        The source.
    point : Point
        How to scale it.
    schedulers : mapping
        Name to scheduler.
    replicate : int
        Which draw, from 1.
    seed : int
        The project's seed.

    Returns
    -------
    list of dict
        A row per scheduler: `PARAMETERS` and the metrics. ``workload`` is the name under which the workflow would make
        the same jobs, byte for byte, of a step `Point.step` with these options.
    """
    step = f"{point.step}@{replicate}"
    scaled = scale(
        workload,
        point.processors,
        d=point.d,
        variant=point.variant,
        factor=point.factor,
        copies=point.copies,
        generator=generator(seed, workload.name, step),
    )
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
    """Simulate the source itself on its own machine; its rows have no replicate, d, variant or factor."""
    about = {"workload": workload.name, "recipe": workload.name}
    return _rows(workload, workload, schedulers, about)


def _rows(
    workload: Workload, source: Workload, schedulers: Mapping[str, Scheduler], about: Mapping[str, Any]
) -> list[dict[str, Any]]:
    machine = workload.machine.processors
    return [
        {**about, "source": source.name, "processors": machine, "scheduler": name}
        | metrics(simulate(workload, scheduler), machine)
        for name, scheduler in schedulers.items()
    ]


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
    Scale a workload in many ways and simulate each, in one process, keeping the metrics only.

    Parameters
    ----------
    workload : Workload
        The source.
    settings : sequence of Point
        How to scale it.
    schedulers : mapping
        Name to scheduler.
    replicates : int
        How many draws of each setting.
    seed : int
        The project's seed.
    threads : int
        How many at a time; the result is the same.
    progress : callable
        Called after every draw.

    Returns
    -------
    polars.DataFrame
        One row per setting, replicate and scheduler, the source's own first: `PARAMETERS` and the metrics.

    Raises
    ------
    SwflowError
        If a setting or a scheduler is none.
    """
    if replicates < 1:
        raise SwflowError(f"seeds: must be at least 1, not {replicates}")
    for name, scheduler in schedulers.items():
        if scheduler.order == LOG:
            raise SwflowError(f"schedulers: {name}: a scaled workload has no recorded schedule to replay")
    rows = reference(workload, schedulers)  # also compiles what the threads then share

    def one(work: tuple[Point, int]) -> list[dict[str, Any]]:
        result = evaluate(workload, work[0], schedulers, work[1], seed)
        progress()
        return result

    tasks = [(point, replicate) for point in settings for replicate in range(1, replicates + 1)]
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        for result in pool.map(one, tasks):
            rows += result
    return _table(rows)


def _table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Make a table with the parameters first; what the source has none of is null."""
    measured = [name for name in rows[0] if name not in PARAMETERS]
    whole = {"jobs", "killed"}
    schema = PARAMETERS | {name: pl.Int64() if name in whole else pl.Float64() for name in measured}
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def write_sweep(
    table: pl.DataFrame, path: str | os.PathLike[str], source: str, schedulers: Mapping[str, Scheduler]
) -> None:
    """
    Write the rows of a sweep or of a search, as .parquet (what ``swflow load`` takes) or as .csv.

    Parameters
    ----------
    table : polars.DataFrame
        As `sweep` or `adjust` returns it.
    path : path-like
        Where; what follows the last ``+`` of the file's name is the sweep's name.
    source : str
        The source's name.
    schedulers : mapping
        Name to scheduler.

    Raises
    ------
    SwflowError
        If the ending is another one.
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
        from swflow.files import atomic_path

        with atomic_path(path) as temporary:
            table.write_csv(temporary)
    else:
        raise SwflowError(f"{path}: unknown ending; use .parquet or .csv")


@dataclass
class Search:
    """
    What a search for the factor found.

    Parameters
    ----------
    factor : float
        The factor that fits best.
    fits : bool
        Whether the mean deviation there is within the tolerance.
    samples : dict
        Factor to the deviations of its replicates, in the order in which factors were tried.
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
    Find where a noisy function that grows with the factor is 0: by bracketing, then bisection.

    Parameters
    ----------
    deviations : callable
        Of a factor and a range of replicates (from 1): one deviation each, negative where the factor is too small.
    start : float
        The precise factor, where the search begins.
    tolerance : float
        A factor fits if the mean over its replicates is not further from 0.
    replicates : int
        How many each factor gets. While two standard errors leave open whether a factor fits, or on which
        side it is, their number is doubled, up to `MOST_SEEDS` times.

    Returns
    -------
    Search
        From ``start`` steps go in the direction of the sign, each twice as long, until the sign changes; the bracket is
        halved until a factor fits or `RESOLUTION` is reached. If none fits, the best that was tried.

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
    Search the factor at which a scaled workload fares like its source under the same scheduler.

    More narrow jobs on a larger machine wait less, so that the precise factor makes a workload too light. The
    criterion is the AWRT; the AWWT then differs from the source's by as many seconds, as the difference of the two is
    the mean run time weighted by area, which no factor changes.

    Parameters
    ----------
    workload : Workload
        The source.
    processors : int
        Processors of the new machine.
    scheduler : Scheduler
        Under which both are judged.
    d : float
        As in `swflow.workloads.scale.scale`; the variant is ``precise``.
    tolerance : float
        The mean AWRT may differ from the source's by this share.
    replicates : int
        How many draws each factor gets at least.
    seed : int
        The project's seed.
    name : str
        The scheduler's name in the table.
    threads : int
        How many draws at a time; the result is the same.
    progress : callable
        Called for every factor that is tried.

    Returns
    -------
    Search
        The factor, and the deviations that were seen, as shares of the source's AWRT.
    polars.DataFrame
        The curve: rows as `sweep` returns them.

    Raises
    ------
    SwflowError
        If an option is out of its range.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, section III-C and Table IV.
    """
    if not tolerance > 0 or replicates < 1:
        raise SwflowError(f"adjust: tolerance must be positive and seeds at least 1, not {tolerance} and {replicates}")
    schedulers = {name: scheduler}
    rows = reference(workload, schedulers)
    target = rows[0]["awrt"]
    if not target:
        raise SwflowError(f"adjust: {workload.name}: no job has a run time, so that there is nothing to fit")

    def deviations(factor: float, wanted: range) -> list[float]:
        # One name, so that a replicate's draws are the same at every factor: they differ by the factor alone.
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
    scheduler: Scheduler,
    *,
    d: float = 50.0,
    step: float = 0.01,
    replicates: int = 20,
    seed: int = 1,
    name: str = "adjusted",
    threads: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> tuple[list[float | None], pl.DataFrame]:
    """
    Find the factor as someone does who tries one after the other, with one draw each, and stops at the first that fits.

    From the precise factor on, every multiple of the step gets one draw, until the AWRT is the source's or more. As
    single draws scatter, this ends below the factor at which the mean is the source's (`adjust`), and elsewhere with
    every replicate: the distribution is the answer.

    Parameters
    ----------
    workload, processors, scheduler, d, seed, name, threads, progress
        As of `adjust`.
    step : float
        The distance between two factors.
    replicates : int
        How many such searches, with draws of their own at every factor: those of a sweep over these factors.

    Returns
    -------
    list of (float or None)
        The factor of every search, in the order of the replicates; None if no factor up to `FURTHEST` crossed.
    polars.DataFrame
        Every draw, as rows of `sweep`; the last factor of a replicate is the one that crossed.

    Raises
    ------
    SwflowError
        If an option is out of its range.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, section III-C and Table V, whose
    factors are 0.01 or 0.02 apart and have one draw each.
    """
    if not step > 0 or replicates < 1:
        raise SwflowError(f"adjust: step must be positive and seeds at least 1, not {step} and {replicates}")
    schedulers = {name: scheduler}
    rows = reference(workload, schedulers)
    target = rows[0]["awrt"]
    if not target:
        raise SwflowError(f"adjust: {workload.name}: no job has a run time, so that there is nothing to fit")
    precise = processors / workload.machine.processors
    first, last = math.ceil(precise / step - 1e-9), math.floor(precise * (1 + FURTHEST) / step)

    def one(replicate: int) -> list[dict[str, Any]]:
        found = []
        for place in range(first, last + 1):
            point = Point(processors, d, "precise", float(f"{place * step:.10g}"))
            found += evaluate(workload, point, schedulers, replicate, seed)
            progress()
            if found[-1]["awrt"] >= target:
                break
        return found

    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        walks = list(pool.map(one, range(1, replicates + 1)))
    factors = [walk[-1]["factor"] if walk[-1]["awrt"] >= target else None for walk in walks]
    return factors, _table([*rows, *(row for walk in walks for row in walk)])


def crossing_quantiles(factors: Sequence[float | None]) -> tuple[float | None, float | None, float | None]:
    """
    Return the 5th, 50th and 95th percentile of the factors of `first_crossing`; None where that is beyond the last.

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
    Summarize the rows of a search, one line a scheduler and factor.

    Parameters
    ----------
    table : polars.DataFrame
        As `adjust` returns it, of one scheduler or several.

    Returns
    -------
    columns : list of str
        ``scheduler``, ``factor`` (1 for the source), ``seeds``, the means of ``jobs``, ``utilization``, ``awrt`` and
        ``awwt`` (s), ``error`` (the standard error of the AWRT, s), ``deviation`` (of the AWRT from the source's,
        percent).
    rows : list of tuple
        By scheduler, the source first, then by factor.
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
