"""Heatmaps: numbers of jobs by load and performance, with bubbles, means and contours."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from swflow.errors import SwflowError
from swflow.files import tables
from swflow.files.tables import height_of, read_columns

#: Measures that a heatmap can show against the load.
HEATMAP_MEASURES = ("slowdown", "response_time", "wait_time")

#: The number of bins of the load, from 0 to 1.
LOAD_BINS = 100

#: A load counts as above 1 only beyond this value. End times that result from penalties are rounded, so a simulated
#: load can exceed 1 by a few units in the last place.
ABOVE_1 = 1 + 1e-9

#: The number of bins per decade of a logarithmic value axis.
BINS_PER_DECADE = 12

#: A linear value axis cannot be divided into bins below this value, where floats lose digits.
_SMALLEST = 1e-290

#: The number of bins of a linear value axis.
LINEAR_BINS = 100

#: Figure 1 of the paper omits jobs with a shorter run time (s) and jobs with a larger slowdown.
SHORTEST_RUN_TIME, HIGHEST_SLOWDOWN = 60.0, 1000.0

#: The shares of the jobs that the contours enclose.
CONTOUR_SHARES = (0.5, 0.9)

#: The standard deviation (bins) of the smoothing applied before contours are traced.
SMOOTHING = 1.5

#: The number of jobs binned at a time.
_AT_ONCE = 2**20

_DECADES = 16
_LOG_EDGES = 10.0 ** (np.arange(_DECADES * BINS_PER_DECADE + 1) / BINS_PER_DECADE)


@dataclass(frozen=True)
class Heatmap:
    """A two-dimensional histogram of jobs by load and value."""

    jobs: np.ndarray  # int64 (loads, values): the number of jobs per cell
    # float64 (loads + 1,): from 0 to 1; loads above 1, which only a faulty log contains, count at 1
    load_edges: np.ndarray
    # float64 (values + 1,): seconds, or a slowdown; on a logarithmic axis, values below 1 count at 1
    value_edges: np.ndarray

    def cells(self) -> pl.DataFrame:
        """Return the nonempty cells: load_low, load_high, value_low, value_high, jobs."""
        return pl.DataFrame(self.columns())

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns of `cells`."""
        loads, values = np.nonzero(self.jobs)
        return {
            "load_low": self.load_edges[loads],
            "load_high": self.load_edges[loads + 1],
            "value_low": self.value_edges[values],
            "value_high": self.value_edges[values + 1],
            "jobs": self.jobs[loads, values],
        }


def heatmap(load: np.ndarray, values: np.ndarray, scale: str = "log", top: float | None = None) -> Heatmap:
    """
    Count jobs by the load that they experienced and by a measure of their performance.

    The arrays have shape (jobs,); jobs with an unknown (NaN) load or value are not counted. A cell includes its lower
    and excludes its upper bounds; the last bin includes loads of 1 or more. The value axis has `BINS_PER_DECADE` per
    decade from 1 upwards, where values below 1 (a wait time of 0) count at 1. A linear axis has `LINEAR_BINS` from 0 to
    ``top`` (default: the largest value), the last of which includes larger values.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 5.

    Examples
    --------
    >>> heatmap(np.array([0.255, 0.25, 1.0]), np.array([0.0, 1.0, 1500.0])).cells().rows()
    [(0.25, 0.26, 1.0, 1.2115276586285884, 2), (0.99, 1.0, 1467.799267622069, 1778.2794100389228, 1)]
    """
    if scale not in ("log", "linear"):
        raise SwflowError(f"scale: unknown value {scale!r}; expected log or linear")
    load, values = _both_known(load, values)
    load_edges = np.arange(LOAD_BINS + 1) / LOAD_BINS
    if scale == "log":
        value_edges = _LOG_EDGES
    else:
        largest = float(values.max(initial=0.0))
        top = top or (largest if largest > _SMALLEST else 1.0)
        value_edges = np.linspace(0.0, top, LINEAR_BINS + 1)
    shape = (LOAD_BINS, value_edges.size - 1)
    counts = np.zeros(shape, np.int64)
    for begin in range(0, load.size, _AT_ONCE):  # limits the memory for temporary arrays
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
    Return the logarithmic heatmap with the given cells, as the database stores them: lower bounds and numbers of jobs.

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
    """Return the logarithmic heatmaps of runs, given by their names, from a database: (run, measure) to heatmap."""
    cells = connection.execute(
        "SELECT run, measure, load_low, value_low, jobs FROM heatmaps SEMI JOIN (SELECT unnest($names) AS run) "
        "USING (run) ORDER BY run, measure",
        {"names": sorted(names)},
    ).fetchall()
    found = {(run, measure): heatmap_of_cells([], [], []) for run in names for measure in HEATMAP_MEASURES}
    for key, of_run in groupby(cells, key=lambda cell: cell[:2]):
        load_low, value_low, jobs = zip(*(cell[2:] for cell in of_run), strict=True)
        found[key] = heatmap_of_cells(load_low, value_low, jobs)
    return found


def read_bubbles(connection: Any, run: str, measure: str, filtered: bool = False) -> pl.DataFrame:
    """Return the `bubbles` of a run from a database: those of all jobs, or of the jobs that Figure 1 keeps."""
    columns = connection.execute(
        """SELECT decile, mean_load, mean_value, median_load, median_value, jobs FROM bubbles
        WHERE run = $run AND measure = $measure AND filtered = $filtered ORDER BY decile""",
        {"run": run, "measure": measure, "filtered": filtered},
    ).fetchnumpy()
    return pl.DataFrame({name: np.asarray(values) for name, values in columns.items()})


def _place(guess: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the bin of each value, given a guess that may be one off by rounding; clip to the first and last bin."""
    last = edges.size - 2
    place = np.clip(guess, 0, last).astype(np.int64)
    place = np.where((values < edges[place]) & (place > 0), place - 1, place)
    return np.where((values >= edges[place + 1]) & (place < last), place + 1, place)


def bubbles(load: np.ndarray, values: np.ndarray, classes: int = 10) -> pl.DataFrame:
    """
    Summarize jobs by class of the load: tenths of its range, or eleven classes around 0, 10, …, 100 %.

    The arrays have shape (jobs,); jobs with an unknown (NaN) load or value are not counted. The ten classes are [0,
    0.1), [0.1, 0.2), …, and 0.9 and above. The eleven follow the text of the paper: "around 0 load, around 10 %, and so
    on up to 90 % and 100 %". They round the load to the nearest tenth (half up), so the first and the last are half as
    wide as the others.

    The result has ``decile`` (from 0), ``mean_load``, ``mean_value``, ``median_load``, ``median_value``, ``jobs``; one
    row per nonempty class. The median is robust against a few jobs with slowdowns in the thousands; the mean is not.

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
    return pl.DataFrame(_bubbles_of(_classed(load, classes), values))


class _Classed(NamedTuple):
    """Jobs grouped by class of the load."""

    place: np.ndarray  # the class of each job
    jobs: np.ndarray  # the number of jobs per class
    some: np.ndarray  # the nonempty classes
    mean_load: np.ndarray  # the mean load of each nonempty class
    median_load: np.ndarray  # its median load


def _classed(load: np.ndarray, classes: int) -> _Classed:
    edges = np.arange(11) / 10 if classes == 10 else np.r_[0.0, np.arange(5, 100, 10) / 100, 1.0]
    place = np.empty(load.size, np.uint8)
    for begin in range(0, load.size, _AT_ONCE):
        part = load[begin : begin + _AT_ONCE]
        place[begin : begin + _AT_ONCE] = _place(part * 10, part, edges)
    jobs = np.bincount(place, minlength=classes)
    some = np.flatnonzero(jobs)
    mean = np.bincount(place, load, classes)[some] / jobs[some]
    return _Classed(place, jobs, some, mean, _medians(place, jobs, load))


def _medians(place: np.ndarray, jobs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the median of each nonempty class."""
    by_class = np.split(values[np.argsort(place, kind="stable")], np.cumsum(jobs)[:-1])
    return np.array([_median(part) for part in by_class if part.size])


def _median(values: np.ndarray) -> float:
    """Return the median of known values, in half the time of `numpy.median`; the order of the values changes."""
    low, high = (values.size - 1) // 2, values.size // 2
    values.partition((low, high))
    return float((values[low] + values[high]) / 2)


def _bubbles_of(classed: _Classed, values: np.ndarray) -> dict[str, np.ndarray]:
    place, jobs, some, mean_load, median_load = classed
    return {
        "decile": some,
        "mean_load": mean_load,
        "mean_value": np.bincount(place, values, jobs.size)[some] / jobs[some],
        "median_load": median_load,
        "median_value": _medians(place, jobs, values),
        "jobs": jobs[some],
    }


def _both_known(load: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the jobs whose load and value are both known."""
    known = ~(np.isnan(load) | np.isnan(values))
    return (load, values) if known.all() else (load[known], values[known])


def kept_by_figure_1(run_time: np.ndarray, slowdown: np.ndarray) -> np.ndarray:
    """Return which jobs the paper's Figure 1 keeps: from 60 s of run time and up to a slowdown of 1,000."""
    return (run_time >= SHORTEST_RUN_TIME) & (slowdown <= HIGHEST_SLOWDOWN)


def mean_point(points: pl.DataFrame) -> tuple[float, float] | None:
    """Return the mean load and mean value of the jobs summarized by `bubbles`, or None if there are none."""
    jobs = points["jobs"].to_numpy()
    if not jobs.sum():
        return None
    load, value = (float(points[name].to_numpy() @ jobs / jobs.sum()) for name in ("mean_load", "mean_value"))
    return load, value


def density_levels(density: np.ndarray, shares: Sequence[float]) -> list[float]:
    """
    Return the densities above which the densest cells hold the given shares of the total.

    There is one level per share: the cells at or above the level hold at least the share, the cells above it hold less.

    Examples
    --------
    >>> density_levels(np.array([[1.0, 5.0], [3.0, 1.0]]), [0.5, 0.8])
    [5.0, 3.0]
    """
    cells = np.sort(density, axis=None)[::-1]
    held = np.cumsum(cells)
    wanted = np.asarray(shares) * held[-1] * (1 - 1e-12)  # rounding errors must not require another cell
    return [float(cells[place]) for place in np.searchsorted(held, wanted)]


def contours(histogram: Heatmap) -> list[tuple[float, np.ndarray]]:
    """
    Return contour lines around the densest cells that together hold `CONTOUR_SHARES` of the jobs.

    A Gaussian with a standard deviation of `SMOOTHING` bins smooths the counts first, so that the lines follow
    concentrations rather than single cells; the shares refer to the smoothed counts. A line is its share, and its loads
    and values in the units of the axes (shape (points, 2)); without jobs, there is none.
    """
    from contourpy import contour_generator
    from scipy.ndimage import gaussian_filter

    if not histogram.jobs.any():
        return []
    density = gaussian_filter(histogram.jobs.astype(float), SMOOTHING, mode="nearest")
    # A border of empty cells closes every line; its points are then moved back to the edge of the picture.
    tracer = contour_generator(z=np.pad(density, 1).T, name="serial")
    lines = []
    for share, level in zip(CONTOUR_SHARES, density_levels(density, CONTOUR_SHARES), strict=True):
        for traced in tracer.lines(level):
            line = np.asarray(traced)
            across = np.interp(line[:, 0] - 0.5, np.arange(histogram.load_edges.size), histogram.load_edges)
            up = _along(line[:, 1] - 0.5, histogram.value_edges)
            lines.append((share, np.column_stack([across, up])))
    return lines


def _along(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the values at fractional bins: interpolate logarithmic edges by ratio, linear edges by difference."""
    bins = np.arange(edges.size)
    if edges[0] > 0:
        return np.exp(np.interp(places, bins, np.log(edges)))
    return np.interp(places, bins, edges)


def _stacked(parts: Mapping[tuple[Any, ...], dict[str, np.ndarray]], *labels: str) -> pl.DataFrame:
    """Return the rows of all parts, with their keys as further columns; tables of single parts would take longer."""
    heights = [columns["jobs"].size for columns in parts.values()]
    names = next(iter(parts.values()))
    table = pl.DataFrame({name: np.concatenate([columns[name] for columns in parts.values()]) for name in names})
    part = np.repeat(np.arange(len(heights)), heights)
    keys = zip(*parts, strict=True)
    return table.hstack([pl.Series(label, key)[part] for label, key in zip(labels, keys, strict=True)])


def summarize(outcomes: pl.DataFrame | str | os.PathLike[str]) -> dict[str, pl.DataFrame]:
    """
    Return the heatmaps and bubbles of a run, from its ``load``, ``run_time`` and `HEATMAP_MEASURES`.

    The columns of a large Parquet file are read one by one. The result has ``heatmaps``: measure to `Heatmap`,
    logarithmic; ``cells``: their cells, with a column ``measure``; ``bubbles``: of all jobs and of the jobs that the
    paper's Figure 1 keeps, with columns ``measure``, ``filtered``; ``bubbles_11``: the same for the eleven classes of
    `bubbles`.
    """
    if not isinstance(outcomes, pl.DataFrame) and height_of(outcomes) <= tables.MOST_AT_ONCE:
        outcomes = read_columns(outcomes, ["load", "run_time", *HEATMAP_MEASURES])

    def column(name: str) -> np.ndarray:
        table = outcomes if isinstance(outcomes, pl.DataFrame) else read_columns(outcomes, [name])
        return table[name].cast(pl.Float64).to_numpy()  # null values become NaN

    load = column("load")
    kept = kept_by_figure_1(column("run_time"), column("slowdown"))
    cells: dict[tuple[str], dict[str, np.ndarray]] = {}
    bubbles_of: dict[int, dict[tuple[str, bool], dict[str, np.ndarray]]] = {10: {}, 11: {}}
    chosen_load = {False: load, True: load[kept]}
    classed = {
        (classes, filtered): _classed(of_load, classes)
        for filtered, of_load in chosen_load.items()
        if not np.isnan(of_load).any()
        for classes in bubbles_of
    }
    for measure in HEATMAP_MEASURES:
        values = column(measure)
        cells[(measure,)] = heatmap(load, values).columns()
        for filtered, of_load in chosen_load.items():
            some_load, of_values = _both_known(of_load, values[kept] if filtered else values)
            for classes, found in bubbles_of.items():
                known = classed.get((classes, filtered)) if some_load.size == of_load.size else None
                found[measure, filtered] = _bubbles_of(known or _classed(some_load, classes), of_values)
    tenths, rounded = (_stacked(found, "measure", "filtered") for found in bubbles_of.values())
    return {"cells": _stacked(cells, "measure"), "bubbles": tenths, "bubbles_11": rounded}
