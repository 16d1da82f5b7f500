"""Model the memory that jobs demand, given their sizes and run times; fit it to a log that records memory."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files.atomic import write_text
from swflow.files.reading import read_json
from swflow.jobs.randomness import uniform_per_job
from swflow.jobs.table import Workload, check_columns, require_known
from swflow.workload.models.fit_measures import correlation, kolmogorov_smirnov

#: Columns with recorded memory, in KB per processor, by the value of the option.
RECORDS = {"used": "used_memory", "requested": "requested_memory"}

#: Smallest share of the jobs in a class of sizes; neighboring sizes are merged until they reach it.
LEAST_SHARE = 0.05

#: Largest number of classes of run times, of equal shares, in a class of sizes.
RUN_TIME_CLASSES = 10

#: Target number of jobs in each class of run times; small classes of sizes get fewer classes.
JOBS_PER_CLASS = 50

#: Marker and layout version of the file of a fitted memory model.
FORMAT = {"swflow": "fitted workload model", "version": 1, "model": "memory"}


@dataclass(frozen=True)
class Cell:
    """The memory of the source's jobs in one class of sizes and run times."""

    memory: np.ndarray  # different values, MB per processor, ascending
    jobs: np.ndarray  # number of jobs with each value


@dataclass(frozen=True)
class MemoryModel:
    """Memory per processor, given the quantiles of a job's size and run time in its workload."""

    source: str  # name of the workload to which the model was fitted
    record: str  # "used" or "requested"
    jobs: int  # jobs of the source with known memory
    unknown: int  # jobs of the source with unknown memory
    up_to: np.ndarray  # share of the source's jobs in a class of sizes or a lower one; the last is 1
    cells: tuple[tuple[Cell, ...], ...]  # per class of sizes: classes of run times with equal shares, ascending
    #: The measures of `goodness_of` for one draw, with the source's values.
    goodness: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)


def fit_memory(workload: Workload, record: str = "used") -> MemoryModel:
    """
    Fit the model to the jobs of a workload with known memory.

    Jobs are grouped into classes of sizes, and each of these into classes of run times. A class stores the memory of
    its jobs unchanged. The joint distribution is therefore the log's, up to the width of a class, whatever its form:
    dependences that first rise and then fall, and values shared by many jobs, are preserved.

    ``record`` is the log's column: "used" or "requested" memory. The same workload gives the same model.
    """
    if record not in RECORDS:
        raise SwflowError(f"memory: from_log: unknown record {record!r}; use {' or '.join(RECORDS)}")
    column = RECORDS[record]
    jobs = check_columns(workload.jobs, f"memory: {workload.name}", (column, "run_time", "processors"))
    known = jobs.filter(pl.all_horizontal(pl.col(column, "run_time", "processors").is_not_null()))
    if known.is_empty():
        raise SwflowError(
            f"memory: {workload.name}: no job has a {column.replace('_', ' ')} that a model could be fitted to; "
            "of the archive's logs LANL-CM5 has both"
        )
    memory = known[column].to_numpy() / 1024.0
    sizes, run_times = _attributes(known, workload.name)
    up_to = _class_bounds(sizes)
    size_class = _size_class(sizes, up_to)
    cells = tuple(_cells_of(memory[size_class == one], run_times[size_class == one]) for one in range(len(up_to)))
    fitted = MemoryModel(workload.name, record, known.height, workload.jobs.height - known.height, up_to, cells)
    uniform = uniform_per_job(0, [workload.log, "memory", "goodness"], known["job_id"].to_numpy())
    drawn = _draw(fitted, sizes, run_times, uniform)
    return replace(fitted, goodness=goodness_of(drawn, memory, sizes, run_times))


def draw_memory(fitted: MemoryModel, workload: Workload, uniform: np.ndarray) -> np.ndarray:
    """
    Draw the memory of a workload's jobs from a fitted model, MB per processor.

    A job's classes follow from the quantiles of its size and its run time in the workload. The model therefore applies
    to other machines: the widest jobs of one log correspond to the widest of the other. ``uniform`` has a random number
    in [0, 1) per job.
    """
    return _draw(fitted, *_attributes(workload.jobs, workload.name), uniform)


def goodness_of(
    drawn: np.ndarray, memory: np.ndarray, sizes: np.ndarray, run_times: np.ndarray
) -> dict[str, tuple[float | None, float | None]]:
    """
    Return measures of the drawn and of the recorded memory, MB per processor, of the same jobs.

    ``_spearman`` is a rank correlation with the processors and run times (s), ``memory_ks`` is the largest difference
    of the distribution functions, for which the source's value is 0. ``memory_mode_percent`` is the share of the most
    frequent memory. For the mean by area, jobs are weighted by processors times run time: it is what a busy processor
    has on average.
    """

    def both(measure: Any) -> tuple[float | None, float | None]:
        return measure(drawn), measure(memory)

    area = sizes * run_times
    between = spearman(sizes, run_times)
    return {
        "jobs": (float(len(drawn)), float(len(memory))),
        "memory_size_spearman": both(lambda values: spearman(values, sizes)),
        "memory_run_time_spearman": both(lambda values: spearman(values, run_times)),
        "size_run_time_spearman": (between, between),
        "memory_ks": (kolmogorov_smirnov(drawn, memory), 0.0),
        "memory_mode_percent": both(
            lambda values: 100 * float(np.unique(values, return_counts=True)[1].max() / len(values))
        ),
        "memory_mean": both(lambda values: float(values.mean())),
        "memory_mean_by_area": both(lambda values: float(values @ area / area.sum()) if area.any() else None),
    }


def spearman(first: np.ndarray, second: np.ndarray) -> float | None:
    """
    Return Spearman's rank correlation, ties at their mean rank; None if a column is constant.

    Examples
    --------
    >>> spearman(np.array([1.0, 2.0, 30.0]), np.array([5.0, 6.0, 7.0]))
    1.0
    """
    found = correlation(shares(first), shares(second))
    return None if found is None else round(found, 12)


def describe_goodness(fitted: MemoryModel) -> str:
    """Format the source of a fitted model and its goodness in one line."""

    def pair(name: str) -> str:
        drawn, source = fitted.goodness[name]
        return "undefined" if drawn is None or source is None else f"{drawn:.3f} (log: {source:.3f})"

    return (
        f"{fitted.record} memory of {fitted.jobs:,} jobs of {fitted.source}, unknown of {fitted.unknown:,}; rank "
        f"correlation with processors {pair('memory_size_spearman')}, with run time "
        f"{pair('memory_run_time_spearman')}; KS distance {fitted.goodness['memory_ks'][0]:.4f}"
    )


def write_memory_model(fitted: MemoryModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a JSON file, atomically; equal models give identical files."""
    head = {
        **FORMAT,
        "record": fitted.record,
        "source": fitted.source,
        "jobs": fitted.jobs,
        "unknown": fitted.unknown,
        "goodness": {name: list(pair) for name, pair in fitted.goodness.items()},
    }
    lines = [f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items()]
    classes = []
    for up_to, cells in zip(fitted.up_to.tolist(), fitted.cells, strict=True):
        rows = [json.dumps({"memory": cell.memory.tolist(), "jobs": cell.jobs.tolist()}) for cell in cells]
        classes.append(f'  {{"up_to": {json.dumps(up_to)}, "run_time_classes": [\n   ' + ",\n   ".join(rows) + "]}")
    text = "{\n" + "".join(lines) + ' "size_classes": [\n' + ",\n".join(classes) + "\n ]\n}\n"
    write_text(path, text)


def read_memory_model(path: str | os.PathLike[str]) -> MemoryModel:
    """Read a fitted model that `write_memory_model` wrote."""
    what = "a memory model; create one with: swflow memory WORKLOAD --save-fit MODEL.json"
    content = read_json(path, what, FORMAT)
    try:
        fitted = MemoryModel(
            source=content["source"],
            record=content["record"],
            jobs=content["jobs"],
            unknown=content["unknown"],
            up_to=np.array([one["up_to"] for one in content["size_classes"]], dtype=float),
            cells=tuple(tuple(map(_cell_of, one["run_time_classes"])) for one in content["size_classes"]),
            goodness={name: (pair[0], pair[1]) for name, pair in content["goodness"].items()},
        )
        if not fitted.cells or not all(fitted.cells) or (np.diff(fitted.up_to) <= 0).any():
            raise ValueError("a class has no jobs")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise SwflowError(f"{path}: incomplete memory model ({type(error).__name__}: {error}); fit it again") from None
    return fitted


def _cell_of(content: Mapping[str, list[float]]) -> Cell:
    cell = Cell(np.array(content["memory"], dtype=float), np.array(content["jobs"], dtype=np.int64))
    if cell.memory.shape != cell.jobs.shape or not len(cell.jobs) or cell.jobs.min() < 1:
        raise ValueError("a class has no jobs")
    if not (np.isfinite(cell.memory).all() and cell.memory.min() >= 0):
        raise ValueError("a memory is below 0, or not finite")
    return cell


def _attributes(jobs: pl.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes and run times; raise an error if one is unknown."""
    remedy = ", which the memory model needs; clean the log with the default rules, which remove them"
    require_known(jobs, ("processors", "run_time"), f"memory: {name}", remedy)
    return jobs["processors"].to_numpy().astype(float), jobs["run_time"].to_numpy().astype(float)


def shares(values: np.ndarray) -> np.ndarray:
    """
    Return the quantile of each value, in (0, 1): the share of smaller values plus half the share of equal ones.

    Examples
    --------
    >>> shares(np.array([8, 1, 1, 32])).tolist()
    [0.625, 0.25, 0.25, 0.875]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ((np.cumsum(counts) - counts / 2) / len(values))[place]


def _class_bounds(sizes: np.ndarray) -> np.ndarray:
    """Return the share of the jobs up to the end of each class of sizes; jobs of equal size share a class."""
    ends = np.cumsum(np.unique(sizes, return_counts=True)[1]) / len(sizes)
    bounds: list[float] = []
    for end in ends[:-1].tolist():
        if end - (bounds[-1] if bounds else 0.0) >= LEAST_SHARE:
            bounds.append(end)
    while bounds and 1 - bounds[-1] < LEAST_SHARE:
        bounds.pop()
    return np.array([*bounds, 1.0])


def _cells_of(memory: np.ndarray, run_times: np.ndarray) -> tuple[Cell, ...]:
    """Return the cells of a class of sizes; jobs of equal run time share a cell."""
    number = min(RUN_TIME_CLASSES, max(1, len(memory) // JOBS_PER_CLASS))
    place = _run_time_class(run_times, number)
    # Many jobs of the same run time can leave a class empty: use the nearest class with jobs.
    nearest = [place[np.argmin(np.abs(place - one))] for one in range(number)]
    return tuple(Cell(*np.unique(memory[place == one], return_counts=True)) for one in nearest)


def _size_class(sizes: np.ndarray, up_to: np.ndarray) -> np.ndarray:
    return np.searchsorted(up_to[:-1], shares(sizes), side="right")


def _run_time_class(run_times: np.ndarray, number: int) -> np.ndarray:
    return (shares(run_times) * number).astype(np.int64)


def _draw(fitted: MemoryModel, sizes: np.ndarray, run_times: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    drawn = np.empty(len(sizes))
    size_class = _size_class(sizes, fitted.up_to)
    for one, cells in enumerate(fitted.cells):
        jobs = np.flatnonzero(size_class == one)
        place = _run_time_class(run_times[jobs], len(cells))
        for other, cell in enumerate(cells):
            chosen = jobs[place == other]
            cumulative = np.cumsum(cell.jobs)
            drawn[chosen] = cell.memory[np.searchsorted(cumulative, uniform[chosen] * cumulative[-1], side="right")]
    return drawn
