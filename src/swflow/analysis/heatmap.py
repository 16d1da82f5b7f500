"""Heatmaps: how many jobs saw which load and which performance, with bubbles, means and contours."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from swflow.errors import SwflowError
from swflow.jobs import read_columns

#: What a heatmap may show against the load.
HEATMAP_MEASURES = ("slowdown", "response_time", "wait_time")

#: Bins of the load, from 0 to 1.
LOAD_BINS = 100

#: Bins of a decade of a logarithmic value axis.
BINS_PER_DECADE = 12

#: Bins of a linear value axis.
LINEAR_BINS = 100

#: Figure 1 of the paper leaves out jobs that ran less than this, seconds, and those slowed down more than this.
SHORTEST_RUN_TIME, HIGHEST_SLOWDOWN = 60.0, 1000.0

#: The shares of the jobs that contours enclose.
CONTOUR_SHARES = (0.5, 0.9)

#: The standard deviation of the smoothing under the contours, in bins.
SMOOTHING = 1.5

#: So many jobs are put into bins at a time.
_AT_ONCE = 2**20

_DECADES = 16
_LOG_EDGES = 10.0 ** (np.arange(_DECADES * BINS_PER_DECADE + 1) / BINS_PER_DECADE)


@dataclass(frozen=True)
class Heatmap:
    """
    A two-dimensional histogram: jobs by load and value.

    Parameters
    ----------
    jobs : int64 array of shape (loads, values)
        Jobs per cell.
    load_edges : float64 array of shape (loads + 1,)
        From 0 to 1. Loads above 1, which are faults of a log, count at 1.
    value_edges : float64 array of shape (values + 1,)
        Seconds, or none for a slowdown. On a logarithmic axis values below 1 count at 1.
    """

    jobs: np.ndarray
    load_edges: np.ndarray
    value_edges: np.ndarray

    def cells(self) -> pl.DataFrame:
        """Return the cells that have jobs: load_low, load_high, value_low, value_high, jobs."""
        loads, values = np.nonzero(self.jobs)
        return pl.DataFrame({
            "load_low": self.load_edges[loads],
            "load_high": self.load_edges[loads + 1],
            "value_low": self.value_edges[values],
            "value_high": self.value_edges[values + 1],
            "jobs": self.jobs[loads, values],
        })  # fmt: skip


def heatmap(load: np.ndarray, values: np.ndarray, scale: str = "log", top: float | None = None) -> Heatmap:
    """
    Count jobs by the load that they experienced and by their performance.

    A cell holds the jobs at or above its lower and below its upper bounds; a load of 1 or more is in the last one.

    Parameters
    ----------
    load, values : float64 array of shape (jobs,)
        Load and performance. A job of which one is not known (NaN) is not counted.
    scale : {'log', 'linear'}
        The value axis: `BINS_PER_DECADE` per decade from 1 upwards, a value below 1 (a wait time of 0) counting
        at 1; or `LINEAR_BINS` from 0 to ``top``.
    top : float, optional
        The end of a linear axis, by default the largest value. Larger values count in the last bin.

    Returns
    -------
    Heatmap

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 5.

    Examples
    --------
    >>> heatmap(np.array([0.255, 0.25, 1.0]), np.array([0.0, 1.0, 1500.0])).cells().rows()
    [(0.25, 0.26, 1.0, 1.2115276586285884, 2), (0.99, 1.0, 1467.799267622069, 1778.2794100389228, 1)]
    """
    if scale not in ("log", "linear"):
        raise SwflowError(f"scale: unknown value {scale!r}; use log or linear")
    load, values = _both_known(load, values)
    load_edges = np.arange(LOAD_BINS + 1) / LOAD_BINS
    if scale == "log":
        value_edges = _LOG_EDGES
    else:
        top = top or float(values.max(initial=0.0)) or 1.0
        value_edges = np.linspace(0.0, top, LINEAR_BINS + 1)
    shape = (LOAD_BINS, value_edges.size - 1)
    counts = np.zeros(shape, np.int64)
    for begin in range(0, load.size, _AT_ONCE):  # what is computed of each job is never there of all
        some_load, some = load[begin : begin + _AT_ONCE], values[begin : begin + _AT_ONCE]
        across = _place(some_load * LOAD_BINS, some_load, load_edges)
        guess = (
            np.log10(np.maximum(some, 1.0)) * BINS_PER_DECADE if scale == "log" else some * (LINEAR_BINS / (top or 1.0))
        )
        up = _place(guess, some, value_edges)
        counts += np.bincount(across * shape[1] + up, minlength=counts.size).reshape(shape)
    if scale == "log":
        rows = np.flatnonzero(counts.any(axis=0))
        highest = int(rows[-1]) if rows.size else 0
        counts, value_edges = np.ascontiguousarray(counts[:, : highest + 1]), _LOG_EDGES[: highest + 2]
    return Heatmap(counts, load_edges, value_edges)


def heatmap_of_cells(load_low: ArrayLike, value_low: ArrayLike, jobs: ArrayLike) -> Heatmap:
    """
    Make a logarithmic heatmap of its cells, as the database keeps them.

    Parameters
    ----------
    load_low, value_low : array-like of float, shape (cells,)
        The lower bounds of the cells that have jobs.
    jobs : array-like of int, shape (cells,)
        How many each has.

    Returns
    -------
    Heatmap

    Examples
    --------
    >>> found = heatmap(np.array([0.255, 0.25, 1.0]), np.array([0.0, 1.0, 1500.0]))
    >>> again = heatmap_of_cells(*found.cells().select("load_low", "value_low", "jobs").get_columns())
    >>> np.array_equal(again.jobs, found.jobs), np.array_equal(again.value_edges, found.value_edges)
    (True, True)
    """
    across = np.rint(np.asarray(load_low, dtype=float) * LOAD_BINS).astype(np.int64)
    up = np.rint(np.log10(np.asarray(value_low, dtype=float)) * BINS_PER_DECADE).astype(np.int64)
    value_edges = _LOG_EDGES[: (int(up.max()) if up.size else 0) + 2]
    counts = np.zeros((LOAD_BINS, value_edges.size - 1), dtype=np.int64)
    counts[across, up] = np.asarray(jobs, dtype=np.int64)
    return Heatmap(counts, np.arange(LOAD_BINS + 1) / LOAD_BINS, value_edges)


def read_heatmaps(connection: Any, names: Collection[str]) -> dict[tuple[str, str], Heatmap]:
    """
    Return the heatmaps of runs, as a database has them.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        To the database.
    names : collection of str
        The runs.

    Returns
    -------
    dict
        Run and measure to `Heatmap`, logarithmic.
    """
    columns = connection.execute(
        "SELECT run, measure, load_low, value_low, jobs FROM heatmaps SEMI JOIN (SELECT unnest($names) AS run) "
        "USING (run) ORDER BY run, measure",
        {"names": sorted(names)},
    ).fetchnumpy()
    found = {(run, measure): heatmap_of_cells([], [], []) for run in names for measure in HEATMAP_MEASURES}
    keys = list(zip(columns["run"].tolist(), columns["measure"].tolist(), strict=True))
    starts = [place for place, key in enumerate(keys) if place == 0 or key != keys[place - 1]]
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        load_low, value_low, jobs = (columns[name][start:end] for name in ("load_low", "value_low", "jobs"))
        found[keys[start]] = heatmap_of_cells(load_low, value_low, jobs)
    return found


def read_bubbles(connection: Any, run: str, measure: str, filtered: bool = False) -> pl.DataFrame:
    """Return the `bubbles` of a run, as a database has them: of all jobs, or of those that Figure 1 keeps."""
    columns = connection.execute(
        """SELECT decile, mean_load, mean_value, median_load, median_value, jobs FROM bubbles
        WHERE run = $run AND measure = $measure AND filtered = $filtered ORDER BY decile""",
        {"run": run, "measure": measure, "filtered": filtered},
    ).fetchnumpy()
    return pl.DataFrame({name: np.asarray(values) for name, values in columns.items()})


def _place(guess: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return each value's bin, from a guess that rounding may have put one off; what lies outside is put at an end."""
    last = edges.size - 2
    place = np.clip(guess, 0, last).astype(np.int64)
    place = np.where((values < edges[place]) & (place > 0), place - 1, place)
    return np.where((values >= edges[place + 1]) & (place < last), place + 1, place)


def bubbles(load: np.ndarray, values: np.ndarray, classes: int = 10) -> pl.DataFrame:
    """
    Summarize jobs by classes of the load: deciles of its range, or eleven classes around 0, 10 up to 100 percent.

    Parameters
    ----------
    load, values : float64 array of shape (jobs,)
        Load and performance. A job of which one is not known (NaN) is not counted.
    classes : {10, 11}
        Ten are [0, 0.1), [0.1, 0.2) up to 0.9 and more. Eleven are what the text says: "around 0 load, around 10 %, and
        so on up to 90 % and 100 %", the load rounded to the nearest tenth (half up): the first and the last are half as
        wide.

    Returns
    -------
    polars.DataFrame
        ``decile`` (from 0), ``mean_load``, ``mean_value``, ``median_load``, ``median_value``, ``jobs``; a row for each
        class that has jobs. Medians are of the class: a few jobs that were slowed down a thousand times move the mean.

    References
    ----------
    L. Rudolph, P. Smith, "Valuation of ultra-scale computing systems", JSSPP 2000; D. Krakov, D. G. Feitelson,
    "High-resolution analysis of parallel job workloads", JSSPP 2012, section 4.

    Examples
    --------
    >>> bubbles(np.array([1.0, 1.0, 0.25]), np.array([1.0, 4.0, 7.0])).select("decile", "mean_value", "jobs").rows()
    [(2, 7.0, 1), (9, 2.5, 2)]
    >>> bubbles(np.array([1.0, 0.25, 0.04]), np.array([4.0, 7.0, 1.0]), classes=11)["decile"].to_list()
    [0, 3, 10]
    """
    load, values = _both_known(load, values)
    return _bubbles_of(_classed(load, classes), values)


class _Classed(NamedTuple):
    """
    Jobs by classes of the load.

    Parameters
    ----------
    place : uint8 array of shape (jobs,)
        The class of each job.
    jobs : int64 array of shape (classes,)
        How many each class has.
    some : int64 array
        The classes that have jobs.
    mean_load, median_load : float64 array
        Of each of these.
    """

    place: np.ndarray
    jobs: np.ndarray
    some: np.ndarray
    mean_load: np.ndarray
    median_load: np.ndarray


def _classed(load: np.ndarray, classes: int) -> _Classed:
    edges = np.arange(11) / 10 if classes == 10 else np.r_[0.0, np.arange(5, 100, 10) / 100, 1.0]
    place = np.empty(load.size, np.uint8)
    for begin in range(0, load.size, _AT_ONCE):
        part = load[begin : begin + _AT_ONCE]
        place[begin : begin + _AT_ONCE] = _place(part * 10 + (0 if classes == 10 else 0.5), part, edges)
    jobs = np.bincount(place, minlength=classes)
    some = np.flatnonzero(jobs)
    mean = np.bincount(place, load, classes)[some] / jobs[some]
    return _Classed(place, jobs, some, mean, _medians(place, some, load))


def _medians(place: np.ndarray, some: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.array([np.median(values[place == one]) for one in some.tolist()])


def _bubbles_of(classed: _Classed, values: np.ndarray) -> pl.DataFrame:
    place, jobs, some, mean_load, median_load = classed
    return pl.DataFrame({
        "decile": some,
        "mean_load": mean_load,
        "mean_value": np.bincount(place, values, jobs.size)[some] / jobs[some],
        "median_load": median_load,
        "median_value": _medians(place, some, values),
        "jobs": jobs[some],
    })  # fmt: skip


def _both_known(load: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the jobs of which both are known."""
    known = ~(np.isnan(load) | np.isnan(values))
    return (load, values) if known.all() else (load[known], values[known])


def kept_by_figure_1(run_time: np.ndarray, slowdown: np.ndarray) -> np.ndarray:
    """
    Say which jobs the bubble plots of the paper's Figure 1 keep.

    Parameters
    ----------
    run_time, slowdown : float64 array of shape (jobs,)
        Run time in seconds; slowdown, NaN where it is not known.

    Returns
    -------
    bool array of shape (jobs,)
        False for jobs that ran less than a minute or were slowed down more than a thousand times.
    """
    return (run_time >= SHORTEST_RUN_TIME) & (slowdown <= HIGHEST_SLOWDOWN)


def mean_point(points: pl.DataFrame) -> tuple[float, float] | None:
    """Return mean load and mean value of the jobs behind some `bubbles`, or None if there are none."""
    jobs = points["jobs"].to_numpy()
    if not jobs.sum():
        return None
    load, value = (float(points[name].to_numpy() @ jobs / jobs.sum()) for name in ("mean_load", "mean_value"))
    return load, value


def density_levels(density: np.ndarray, shares: Sequence[float] = CONTOUR_SHARES) -> list[float]:
    """
    Return the densities above which the densest cells hold given shares of the whole.

    Parameters
    ----------
    density : float64 array
        Mass per cell, not negative.
    shares : sequence of float
        Between 0 and 1.

    Returns
    -------
    list of float
        One level per share: the cells at or above it hold at least this share, and those above it do not.

    Examples
    --------
    >>> density_levels(np.array([[1.0, 5.0], [3.0, 1.0]]), [0.5, 0.8])
    [5.0, 3.0]
    """
    cells = np.sort(density, axis=None)[::-1]
    held = np.cumsum(cells)
    wanted = np.asarray(shares) * held[-1] * (1 - 1e-12)  # what rounding adds must not ask for one more cell
    return [float(cells[place]) for place in np.minimum(np.searchsorted(held, wanted), cells.size - 1)]


def contours(histogram: Heatmap, shares: Sequence[float] = CONTOUR_SHARES) -> list[tuple[float, np.ndarray]]:
    """
    Trace lines around the densest cells that together hold given shares of the jobs.

    The counts are smoothed by a Gaussian of `SMOOTHING` bins first, so that the lines follow concentrations rather
    than single cells; the shares are those of the smoothed counts.

    Parameters
    ----------
    histogram : Heatmap
        The counts.
    shares : sequence of float
        Between 0 and 1.

    Returns
    -------
    list of (float, float64 array of shape (points, 2))
        Share, and a line's loads and values, in the units of the axes; empty if there are no jobs.
    """
    from contourpy import contour_generator
    from scipy.ndimage import gaussian_filter

    if not histogram.jobs.any():
        return []
    density = gaussian_filter(histogram.jobs.astype(float), SMOOTHING, mode="nearest")
    levels = density_levels(density, shares)
    # A rim of empty cells closes every line; its points are then put back on the border of the picture.
    tracer = contour_generator(z=np.pad(density, 1).T, name="serial")
    lines = []
    for share, level in zip(shares, levels, strict=True):
        for traced in tracer.lines(level):
            line = np.asarray(traced)
            across = np.interp(line[:, 0] - 0.5, np.arange(histogram.load_edges.size), histogram.load_edges)
            up = _along(line[:, 1] - 0.5, histogram.value_edges)
            lines.append((share, np.column_stack([across, up])))
    return lines


def _along(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the values at fractional bins: between log edges by ratio, between linear ones by difference."""
    bins = np.arange(edges.size)
    if edges[0] > 0:
        return np.exp(np.interp(places, bins, np.log(edges)))
    return np.interp(places, bins, edges)


def _labelled(table: pl.DataFrame, **labels: Any) -> pl.DataFrame:
    """Add columns that are the same in all rows; as whole columns, since a query per table would take longest."""
    return table.hstack([pl.Series(name, [value]).new_from_index(0, table.height) for name, value in labels.items()])


def summarize(outcomes: pl.DataFrame | str | os.PathLike[str]) -> dict[str, Any]:
    """
    Make the heatmaps and bubbles of a run.

    Parameters
    ----------
    outcomes : polars.DataFrame or path-like
        One row a job: ``load``, ``run_time`` and `HEATMAP_MEASURES`; or a Parquet file that has these columns, which
        are read one by one.

    Returns
    -------
    dict
        ``heatmaps``: measure to `Heatmap`, logarithmic; ``cells``: their cells, with a column ``measure``;
        ``bubbles``: of all jobs and of those that the paper's Figure 1 keeps, with columns ``measure``,
        ``filtered``; ``bubbles_11``: the same for the eleven classes of `bubbles`.
    """

    def column(name: str) -> np.ndarray:
        table = outcomes if isinstance(outcomes, pl.DataFrame) else read_columns(outcomes, [name])
        return _numbers(table[name])

    load = column("load")
    kept = kept_by_figure_1(column("run_time"), column("slowdown"))
    maps: dict[str, Heatmap] = {}
    points: dict[tuple[int, str, bool], pl.DataFrame] = {}
    chosen_load = {False: load, True: load[kept]}
    classes = (10, 11)
    classed: dict[tuple[int, bool], _Classed] = {}
    for filtered, of_load in chosen_load.items():
        if not np.isnan(of_load).any():
            classed |= {(number, filtered): _classed(of_load, number) for number in classes}
    for measure in HEATMAP_MEASURES:
        values = column(measure)
        maps[measure] = heatmap(load, values)
        for filtered, of_load in chosen_load.items():
            of_values = values[kept] if filtered else values
            all_known = not np.isnan(of_values).any()
            for number in classes:
                known = classed.get((number, filtered)) if all_known else None
                found = _bubbles_of(known, of_values) if known else bubbles(of_load, of_values, number)
                points[number, measure, filtered] = _labelled(found, measure=measure, filtered=filtered)
    tenths, rounded = (pl.concat(part for key, part in points.items() if key[0] == number) for number in classes)
    cells = [_labelled(found.cells(), measure=measure) for measure, found in maps.items()]
    return {"heatmaps": maps, "cells": pl.concat(cells), "bubbles": tenths, "bubbles_11": rounded}


def _numbers(column: pl.Series) -> np.ndarray:
    """Return a column as an array, NaN where it is null."""
    column = column.cast(pl.Float64)
    return (column.fill_null(float("nan")) if column.null_count() else column).to_numpy()
