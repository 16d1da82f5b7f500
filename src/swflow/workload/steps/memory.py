"""The step `memory`: assign demands for a shared resource, such as memory bandwidth, by a scenario, a log or a file."""

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from swflow.errors import SwflowError, shown
from swflow.files.reading import FILE, read_text
from swflow.jobs.randomness import uniform_per_job
from swflow.jobs.table import JOB_COLUMNS, Entry, Workload, check_columns
from swflow.values import LONGEST_TIME, whole_number
from swflow.values import number as finite
from swflow.workload.models.memory_model import RECORDS, MemoryModel, draw_memory, shares, spearman

#: Demands of one process, in MB/s of memory bandwidth. Source: F. Guim, J. Corbalan, J. Labarta, "Modeling the impact
#: of resource sharing in backfilling policies using the Alvio simulator", MASCOTS 2007, section V.B.
LEVELS = {"high": 2000.0, "medium": 1000.0, "low": 500.0}

#: The scenarios of the same paper, section V.A: the share of the jobs at each level.
SCENARIOS = {
    "HIGH": {"high": 0.8, "medium": 0.1, "low": 0.1},
    "MED": {"high": 0.5, "medium": 0.1, "low": 0.4},
    "LOW": {"high": 0.1, "medium": 0.1, "low": 0.8},
}

#: Largest deviation of the sum of the shares from 1: users write 1/3 as 0.333.
TOLERANCE = 0.002

#: Reserved columns: those of the job table and of other steps, and the key of the database's table.
_TAKEN = {*JOB_COLUMNS, "shapes", "source_job_id", "workload"}


def memory(
    workload: Workload,
    *,
    high: float | None = None,
    medium: float | None = None,
    low: float | None = None,
    high_level: float = LEVELS["high"],
    medium_level: float = LEVELS["medium"],
    low_level: float = LEVELS["low"],
    demands: Mapping[float, float] | None = None,
    from_log: str | None = None,
    file: str | os.PathLike[str] | None = None,
    column: int = 2,
    fitted: MemoryModel | None = None,
    resource: str | None = None,
    seed: int = 1,
    step: str = "memory",
) -> Workload:
    """
    Assign each job a demand for a resource that the processes of a node share.

    Parameters
    ----------
    high, medium, low : float, optional
        Shares of the jobs at each level of demand; the sum is 1. The default is the paper's scenario HIGH: 0.8, 0.1,
        0.1. If one share is given, the default of the others is 0. MED is 0.5, 0.1, 0.4; LOW is 0.1, 0.1, 0.8.
    high_level, medium_level, low_level : float
        Demand of one process of such a job, in the unit of the machine's capacity: MB/s for bandwidths.
    demands : mapping, optional
        Alternative to the levels above: demand of a process to the share of the jobs with this demand.
    from_log : {'used', 'requested'}, optional
        Use the memory that the log records (KB per processor), converted to MB, instead of a draw. Unknown values are
        null; a job with null counts as a job without demand.
    file : path-like, optional
        Read the demands from a text file instead of a draw. Each line has a job's id, then columns separated by
        blanks or commas. Jobs that are not in the file get null and count as jobs without demand.
    column : int
        Column of the file with the demand of one process; column 1 is the job's id.
    fitted : MemoryModel, optional
        Draw the demands with the correlation to sizes and run times of the log to which the model was fitted. Without
        shares or demands, the demand is the drawn memory, in MB. With shares or demands, the levels are assigned in
        the order of the drawn memory.
    resource : str, optional
        Name of the resource and of the new column (default: ``memory_bandwidth``; ``memory`` with ``from_log``, or
        with ``fitted`` without levels).
    seed : int
        Seed of the draws.
    step : str
        Name of the step. A job's demand depends only on the seed, the log, the step and the job's id, so it is the
        same in every part of the log. With ``fitted``, it also depends on the quantiles of the job's size and run
        time in the workload. Copies of a job (column ``source_job_id``) share its demand.

    Returns
    -------
    Workload
        The workload with the new column, demand per process. Its new history entry has ``resource``, and either
        ``levels`` (requested and realised shares), or ``from_log`` or ``file``, and ``unknown`` (jobs without a
        record). With ``file``, it also has ``unused`` (jobs of the file that are not in the workload). With
        ``fitted``, it has ``like`` and ``record`` (log and record of the model), and ``spearman``, the rank
        correlations of the demands with ``processors`` and ``run_time``.

    Raises
    ------
    SwflowError
        If shares or levels are invalid, the column exists or is reserved, or the file is invalid (`read_demands`);
        with ``fitted``, also if a run time is unknown.

    References
    ----------
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio
    simulator", MASCOTS 2007, section V.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> jobs = pl.DataFrame({"job_id": range(1, 1001)})
    >>> given = memory(Workload(jobs, Machine.of(4), "tiny"), high=0.5, medium=0.1, low=0.4, step="memory-med")
    >>> given.jobs["memory_bandwidth"].unique().sort().to_list()
    [500.0, 1000.0, 2000.0]
    >>> describe_demands(given.history[0])
    'memory_bandwidth: 48.6% high (2,000 a process), 9.9% medium (1,000 a process), 41.5% low (500 a process)'
    """
    wanted = {"high": high, "medium": medium, "low": low}
    has_levels = bool(demands) or any(share is not None for share in wanted.values())
    if from_log is not None and from_log not in RECORDS:
        raise SwflowError(f"memory: from_log: unknown record {from_log!r}; use {' or '.join(RECORDS)}")
    resource = resource or ("memory" if from_log or (fitted and not has_levels) else "memory_bandwidth")
    _require_new(resource, workload)
    _require_one_source(has_levels, from_log, file, fitted)
    if from_log:
        given, about = _from_record(workload, from_log)
    elif file is not None:
        given, about = _from_file(workload, file, column)
    elif fitted and not has_levels:
        given, about = pl.Series(draw_memory(fitted, workload, _uniform(workload, seed, step))), {}
    else:
        levels = _levels(wanted, {"high": high_level, "medium": medium_level, "low": low_level}, demands)
        given, about = _from_levels(workload, levels, fitted, seed, step)
    jobs = workload.jobs
    entry = {"stage": "memory", "read": jobs.height, "kept": jobs.height, "removed": {}, "resource": resource, **about}
    if fitted:
        correlations = {name: spearman(given.to_numpy(), jobs[name].to_numpy()) for name in ("processors", "run_time")}
        entry |= {"like": fitted.source, "record": fitted.record, "spearman": correlations}
    return workload.with_jobs(jobs.with_columns(given.alias(resource)), entry)


def _require_new(resource: str, workload: Workload) -> None:
    """Raise an error unless a resource can be the name of a new column."""
    if not re.fullmatch("[a-z][a-z0-9_]*", resource):
        raise SwflowError(f"memory: resource: {resource!r} is not a column name; use lower-case letters, digits and _")
    if resource in _TAKEN:
        raise SwflowError(f"memory: resource: {resource!r} is a reserved column; choose another name")
    if resource in workload.jobs.columns:
        raise SwflowError(f"memory: {workload.name} already has demands for {resource}; choose another resource")


def _require_one_source(
    has_levels: bool, from_log: str | None, file: str | os.PathLike[str] | None, fitted: MemoryModel | None
) -> None:
    """Raise an error if several sources of demands are given; only a fitted model goes with levels."""
    if from_log and has_levels:
        raise SwflowError("memory: from_log takes the demands from the log; remove the shares and demands")
    if file is not None and (has_levels or from_log):
        raise SwflowError("memory: file gives the demands; remove the shares, demands and from_log")
    if fitted and (from_log or file is not None):
        raise SwflowError("memory: a fitted model draws the demands; remove from_log and file")


# -- the sources of demands: each returns the demands, and what the history says about them


def _from_record(workload: Workload, from_log: str) -> tuple[pl.Series, Entry]:
    """Return the memory that the log records, MB."""
    record = RECORDS[from_log]
    given = check_columns(workload.jobs, f"memory: {workload.name}", (record,))[record] / 1024.0
    if given.null_count() == workload.jobs.height:
        raise SwflowError(f"memory: {workload.name}: no job has a {record.replace('_', ' ')}")
    return given, {"from_log": from_log, "unknown": given.null_count()}


def _from_file(workload: Workload, file: str | os.PathLike[str], column: int) -> tuple[pl.Series, Entry]:
    """Return the demands in a column of a file."""
    listed, ids = read_demands(file, column), _original_ids(workload)
    given = ids.replace_strict(listed, default=None, return_dtype=pl.Float64())
    if given.null_count() == workload.jobs.height:
        raise SwflowError(f"{file}: no job of {workload.name}; expected job ids in the first column")
    unused = len(listed.keys() - set(ids.to_list()))
    return given, {"file": Path(file).name, "unknown": given.null_count(), "unused": unused}


def _from_levels(
    workload: Workload, levels: list[tuple[str, float, float]], fitted: MemoryModel | None, seed: int, step: str
) -> tuple[pl.Series, Entry]:
    """Draw the level of each job; with a fitted model, the largest demands are those of the most memory."""
    if fitted:
        levels = sorted(levels, key=lambda level: -level[1])
        uniform = 1 - shares(_fitted_places(fitted, workload, seed, step))
    else:
        uniform = _uniform(workload, seed, step)
    bounds = np.cumsum([share for _, _, share in levels])  # the last is nearly 1; the division distributes the rest
    drawn = np.searchsorted(bounds[:-1] / bounds[-1], uniform, side="right")
    given = pl.Series([demand for _, demand, _ in levels], dtype=pl.Float64())[drawn]
    realised = np.bincount(drawn, minlength=len(levels)) / max(1, len(drawn))
    about = [
        {"level": name, "demand": demand, "share": share, "realised": round(float(part), 6)}
        for (name, demand, share), part in zip(levels, realised, strict=True)
    ]
    return given, {"levels": about}


def read_demands(file: str | os.PathLike[str], column: int = 2) -> dict[int, float]:
    """
    Read the demands of jobs from a text file.

    The file has a line per job, with columns separated by blanks or commas: its id first, and in the given column the
    demand of one of its processes. Empty lines and lines that begin with ; or # are ignored.
    """
    if column < 2:
        raise SwflowError(f"memory: column: {column}; expected at least 2; column 1 is the job's id")
    demands: dict[int, float] = {}
    for number, line in enumerate(read_text(file, FILE).splitlines(), 1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0].startswith((";", "#")):
            continue
        try:
            job = whole_number(fields[0], f"{file}:{number}: job id", most=2**63 - 1)
            demand = finite(fields[column - 1], f"{file}:{number}: demand", least=0, most=LONGEST_TIME)
        except IndexError:
            raise SwflowError(f"{file}:{number}: {shown(line)} has no column {column} with a demand") from None
        if job in demands:
            raise SwflowError(f"{file}:{number}: job {job} is a duplicate; expected one line per job")
        demands[job] = demand
    if not demands:
        raise SwflowError(f"{file}: no job; expected lines such as: 17 500")
    return demands


def describe_demands(entry: Entry) -> str:
    """Format a history entry of `memory`."""
    if "from_log" in entry:
        return f"{entry['resource']}: {entry['from_log']} memory of the log; unknown of {entry['unknown']:,} jobs"
    if "file" in entry:
        return (
            f"{entry['resource']}: by {entry['file']}; unknown of {entry['unknown']:,} jobs; "
            f"{entry['unused']:,} lines of jobs that are not in the workload"
        )
    parts = []
    if "levels" in entry:
        form = "{realised:.1%} {level} ({demand:,.10g} a process)"
        parts.append(", ".join(form.format(**level) for level in entry["levels"]))
    if "like" in entry:
        texts = ["undefined" if value is None else f"{value:.3f}" for value in entry["spearman"].values()]
        parts.append(f"like the {entry['record']} memory of {entry['like']}")
        parts.append(f"rank correlation with processors {texts[0]}, with run time {texts[1]}")
    return f"{entry['resource']}: {'; '.join(parts)}"


def _levels(
    shares: Mapping[str, float | None], scenario_levels: Mapping[str, float], demands: Mapping[float, float] | None
) -> list[tuple[str, float, float]]:
    """Return name, demand and share of every level; raise an error if one is invalid."""
    given = any(share is not None for share in shares.values())
    if demands:
        if given:
            raise SwflowError("memory: give demands, or the shares high, medium and low, not both")
        in_order = sorted(demands, reverse=True)
        levels = [(f"level-{number}", float(one), demands[one]) for number, one in enumerate(in_order, 1)]
    else:
        chosen = {name: share or 0.0 for name, share in shares.items()} if given else SCENARIOS["HIGH"]
        levels = [(name, float(scenario_levels[name]), chosen[name]) for name in chosen]
    for name, demand, share in levels:
        if not (math.isfinite(demand) and demand >= 0):
            raise SwflowError(f"memory: {name}: invalid demand {demand}; expected a finite number, at least 0")
        if not 0 <= share <= 1:
            raise SwflowError(f"memory: {name}: {share}; expected a share of jobs from 0 to 1")
    total = math.fsum(share for _, _, share in levels)
    if abs(total - 1) > TOLERANCE:
        raise SwflowError(
            f"memory: the shares {', '.join(f'{share:g}' for *_, share in levels)} sum to {total:g}, not 1"
        )
    return levels


def _original_ids(workload: Workload) -> pl.Series:
    """Return the ids on which demands depend: for copies, that of the original."""
    original = [name for name in ("source_job_id", "job_id") if name in workload.jobs.columns]
    return workload.jobs.select(pl.coalesce(original)).to_series()


def _uniform(workload: Workload, seed: int, *names: str) -> np.ndarray:
    """Return a number in [0, 1) for each job; copies of one job share it."""
    return uniform_per_job(seed, [workload.log, *names], _original_ids(workload).to_numpy())


def _fitted_places(fitted: MemoryModel, workload: Workload, seed: int, step: str) -> np.ndarray:
    """Return the quantile of each job's memory by a fitted model, with ties in random order."""
    memory = draw_memory(fitted, workload, _uniform(workload, seed, step))
    among_equals = _uniform(workload, seed, step, "among equals")
    order = np.lexsort((among_equals, memory))
    is_next = (np.diff(memory[order]) > 0) | (np.diff(among_equals[order]) > 0)  # copies of a job share a position
    places = np.zeros(len(memory), dtype=np.int64)
    places[order[1:]] = np.cumsum(is_next)
    return places
