"""Giving jobs demands for a shared resource, such as memory bandwidth: drawn by a scenario, or from log or file."""

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs import JOB_COLUMNS, Workload
from swflow.randomness import uniform_per_job
from swflow.workloads.memory_model import RECORDS, MemoryModel, draw_memory, shares, spearman

#: Demands of one process, MB/s of memory bandwidth: F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource
#: sharing in backfilling policies using the Alvio simulator", MASCOTS 2007, section V.B.
LEVELS = {"high": 2000.0, "medium": 1000.0, "low": 500.0}

#: The scenarios of that paper, section V.A: the shares of the jobs that have each level.
SCENARIOS = {
    "HIGH": {"high": 0.8, "medium": 0.1, "low": 0.1},
    "MED": {"high": 0.5, "medium": 0.1, "low": 0.4},
    "LOW": {"high": 0.1, "medium": 0.1, "low": 0.8},
}

#: How far the shares may be from a sum of 1: 1/3 is written 0.333.
TOLERANCE = 0.002

#: Columns that belong to something else: the job table's, other steps', and the key of the database's table.
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
    Give every job a demand for a resource that the processes of a node share.

    Parameters
    ----------
    workload : Workload
        The jobs.
    high, medium, low : float, optional
        The shares of the jobs with each level of demand; they sum to 1. By default the paper's scenario HIGH: 0.8,
        0.1, 0.1. If one is given, the others are 0 by default. MED is 0.5, 0.1, 0.4; LOW is 0.1, 0.1, 0.8.
    high_level, medium_level, low_level : float
        What one process of such a job demands, in the unit of the machine's capacity: MB/s for bandwidths.
    demands : mapping, optional
        Instead of these: any levels, demand of a process to the share of the jobs that have it.
    from_log : {'used', 'requested'}, optional
        Instead of a draw: the memory that the log records (KB per processor), in MB. Null where it is not known; such
        a job counts as one that demands nothing.
    file : path-like, optional
        Instead of a draw: a text file with a line per job, its id first; columns are separated by blanks or commas.
        Null for a job that the file does not have; it counts as one that demands nothing.
    column : int
        Which column of the file is the demand of one process; the job's id is column 1.
    fitted : MemoryModel, optional
        Draw the demands with the jobs' sizes and run times, as they go together in the log that the model was fitted
        to: its memory, in MB; or, if shares or demands are given, these levels, the highest for the jobs whose memory
        by the model is highest.
    resource : str, optional
        The name of the resource, and of the new column; by default ``memory_bandwidth``, or ``memory`` with
        ``from_log``, or ``fitted`` without levels.
    seed : int
        The seed of the draws.
    step : str
        The step's name. A job's demand depends on seed, log, step and its id only: it is the same in whatever
        part of the log; with ``fitted`` also on the places of its size and run time among the jobs that are here.
        Copies of a job (column ``source_job_id``) share its demand.

    Returns
    -------
    Workload
        With the new column, demand per process. Its history's new entry has ``resource``, and either ``levels`` (what
        was asked for and the share of the jobs that came out), or ``from_log`` or ``file``, and ``unknown`` (jobs
        without a record); of a file ``unused``, too (jobs of the file that are not here). With ``fitted`` it has
        ``like`` and ``record`` (the log and the record of the model), and ``spearman``, the rank correlations of the
        demands with ``processors`` and ``run_time``.

    Raises
    ------
    SwflowError
        If shares or levels are none, the column is there or is another's, or the file is none (`read_demands`);
        with ``fitted`` if a run time is unknown.

    References
    ----------
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio
    simulator", MASCOTS 2007, section V.

    Examples
    --------
    >>> from swflow.machine import Machine
    >>> jobs = pl.DataFrame({"job_id": range(1, 1001)})
    >>> given = memory(Workload(jobs, Machine.of(4), "tiny"), high=0.5, medium=0.1, low=0.4, step="memory-med")
    >>> given.jobs["memory_bandwidth"].unique().sort().to_list()
    [500.0, 1000.0, 2000.0]
    >>> describe_demands(given.history[0])
    'memory_bandwidth: 48.6% high (2,000 a process), 9.9% medium (1,000 a process), 41.5% low (500 a process)'
    """
    if from_log is not None and from_log not in RECORDS:
        raise SwflowError(f"memory: from_log: unknown record {from_log!r}; use {' or '.join(RECORDS)}")
    wanted = {"high": high, "medium": medium, "low": low}
    drawn_too = bool(demands) or any(share is not None for share in wanted.values())
    resource = resource or ("memory" if from_log or (fitted and not drawn_too) else "memory_bandwidth")
    _require_free(resource, workload)
    if from_log and drawn_too:
        raise SwflowError("memory: from_log takes the demands from the log; leave out the shares and demands")
    if file is not None and (drawn_too or from_log):
        raise SwflowError("memory: file says where the demands are; leave out the shares, demands and from_log")
    if fitted and (from_log or file is not None):
        raise SwflowError("memory: a fitted model draws the demands; leave out from_log and file")
    entry = {"stage": "memory", "read": workload.jobs.height, "kept": workload.jobs.height, "removed": {}}
    entry |= {"resource": resource}
    if from_log:
        given = workload.jobs[RECORDS[from_log]] / 1024.0
        if given.null_count() == workload.jobs.height:
            raise SwflowError(f"memory: {workload.name}: no job has a {RECORDS[from_log].replace('_', ' ')}")
        entry |= {"from_log": from_log, "unknown": given.null_count()}
    elif file is not None:
        listed = read_demands(file, column)
        given = _original_ids(workload).replace_strict(listed, default=None, return_dtype=pl.Float64())
        if given.null_count() == workload.jobs.height:
            raise SwflowError(f"{file}: has no job of {workload.name}; its first column must be job ids")
        unused = len(listed.keys() - set(_original_ids(workload).to_list()))
        entry |= {"file": Path(file).name, "unknown": given.null_count(), "unused": unused}
    elif fitted and not drawn_too:
        given = pl.Series(_fitted_memory(fitted, workload, seed, step))
    else:
        levels = _levels(wanted, {"high": high_level, "medium": medium_level, "low": low_level}, demands)
        if fitted:
            levels.sort(key=lambda level: -level[1])
            uniform = 1 - shares(_fitted_places(fitted, workload, seed, step))
        else:
            uniform = _uniform(workload, seed, step)
        drawn = _levels_at([share for _, _, share in levels], uniform)
        given = pl.Series([demand for _, demand, _ in levels], dtype=pl.Float64())[drawn]
        realised = np.bincount(drawn, minlength=len(levels)) / max(1, len(drawn))
        entry["levels"] = [
            {"level": name, "demand": demand, "share": share, "realised": round(float(part), 6)}
            for (name, demand, share), part in zip(levels, realised, strict=True)
        ]
    if fitted:
        entry |= {"like": fitted.source, "record": fitted.record, "spearman": _correlations(workload, given)}
    return workload.with_jobs(workload.jobs.with_columns(given.alias(resource)), entry)


def read_demands(file: str | os.PathLike[str], column: int = 2) -> dict[int, float]:
    """
    Read the demands of jobs from a text file.

    Parameters
    ----------
    file : path-like
        A line per job; columns are separated by blanks or commas. Empty lines, and those that begin with ; or #, do
        not count.
    column : int
        Which column is the demand, from 2 on; column 1 is the job's id.

    Returns
    -------
    dict
        Job id to the demand of one of its processes.

    Raises
    ------
    SwflowError
        If the file cannot be read, has no job, has a job twice, or a demand is none.
    """
    if column < 2:
        raise SwflowError(f"memory: column: must be 2 or more, not {column}: column 1 is the job's id")
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text file"
        raise SwflowError(f"{file}: {reason}; it must have lines such as: 17 500") from None
    demands: dict[int, float] = {}
    for number, line in enumerate(lines, 1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0].startswith((";", "#")):
            continue
        try:
            job, demand = int(fields[0]), float(fields[column - 1])
        except (ValueError, IndexError):
            raise SwflowError(f"{file}: line {number}: {line!r} has no job id and demand (column {column})") from None
        if not (math.isfinite(demand) and demand >= 0):
            raise SwflowError(
                f"{file}: line {number}: a process cannot demand {fields[column - 1]}; it must be 0 or more"
            )
        if job in demands:
            raise SwflowError(f"{file}: line {number}: job {job} is there twice")
        demands[job] = demand
    if not demands:
        raise SwflowError(f"{file}: has no job; it must have lines such as: 17 500")
    return demands


def describe_demands(entry: Mapping[str, object]) -> str:
    """Say in words what a history entry of `memory` notes."""
    like = ""
    if "like" in entry:
        found = entry["spearman"]
        assert isinstance(found, dict)
        texts = ["undefined" if value is None else f"{value:.3f}" for value in found.values()]
        like = (
            f"like the {entry['record']} memory of {entry['like']}; rank correlation with processors {texts[0]}, "
            f"with run time {texts[1]}"
        )
    if "from_log" in entry:
        return f"{entry['resource']}: {entry['from_log']} memory of the log; unknown of {entry['unknown']:,} jobs"
    if "file" in entry:
        return (
            f"{entry['resource']}: by {entry['file']}; unknown of {entry['unknown']:,} jobs; "
            f"{entry['unused']:,} lines of jobs that are not here"
        )
    if "levels" not in entry:
        return f"{entry['resource']}: {like}"
    levels = entry["levels"]
    assert isinstance(levels, list)
    parts = [f"{level['realised']:.1%} {level['level']} ({level['demand']:,.10g} a process)" for level in levels]
    return f"{entry['resource']}: {', '.join(parts)}{like and '; '}{like}"


def _require_free(resource: str, workload: Workload) -> None:
    if not re.fullmatch("[a-z][a-z0-9_]*", resource):
        raise SwflowError(f"memory: resource: {resource!r} is no name of a column; use small letters, digits and _")
    if resource in _TAKEN:
        raise SwflowError(f"memory: resource: {resource!r} is a column of every job table; take another name")
    if resource in workload.jobs.columns:
        raise SwflowError(f"memory: {workload.name} has demands of {resource} already; name another resource")


def _levels(
    shares: Mapping[str, float | None], scenario_levels: Mapping[str, float], demands: Mapping[float, float] | None
) -> list[tuple[str, float, float]]:
    """Return name, demand and share of every level, checked."""
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
            raise SwflowError(f"memory: {name}: a process cannot demand {demand}; it must be 0 or more, and finite")
        if not 0 <= share <= 1:
            raise SwflowError(f"memory: {name}: a share of jobs is between 0 and 1, not {share}")
    total = math.fsum(share for _, _, share in levels)
    if abs(total - 1) > TOLERANCE:
        raise SwflowError(
            f"memory: the shares {', '.join(f'{share:g}' for *_, share in levels)} sum to {total:g}, not 1"
        )
    return levels


def _original_ids(workload: Workload) -> pl.Series:
    """Return the ids that demands go by: of copies that of their original."""
    original = [name for name in ("source_job_id", "job_id") if name in workload.jobs.columns]
    return workload.jobs.select(pl.coalesce(original)).to_series()


def _uniform(workload: Workload, seed: int, *names: str) -> np.ndarray:
    """Return a number in [0, 1) for each job, the same for the copies of one."""
    return uniform_per_job(seed, [workload.log, *names], _original_ids(workload).to_numpy())


def _fitted_memory(fitted: MemoryModel, workload: Workload, seed: int, step: str) -> np.ndarray:
    """Return the memory of each job by a fitted model, in MB."""
    return draw_memory(fitted, workload, _uniform(workload, seed, step))


def _fitted_places(fitted: MemoryModel, workload: Workload, seed: int, step: str) -> np.ndarray:
    """Return the place of each job in the order of the memory by a fitted model; equal memory in random order."""
    memory, among_equals = _fitted_memory(fitted, workload, seed, step), _uniform(workload, seed, step, "among equals")
    order = np.lexsort((among_equals, memory))
    is_next = (np.diff(memory[order]) > 0) | (np.diff(among_equals[order]) > 0)  # copies of a job have one place
    places = np.zeros(len(memory), dtype=np.int64)
    places[order[1:]] = np.cumsum(is_next)
    return places


def _correlations(workload: Workload, given: pl.Series) -> dict[str, float | None]:
    """Return Spearman's correlations of demands with sizes and run times."""
    demands = given.to_numpy()
    return {name: spearman(demands, workload.jobs[name].to_numpy()) for name in ("processors", "run_time")}


def _levels_at(parts: list[float], uniform: np.ndarray) -> np.ndarray:
    """Return the place of each job's level, by the shares of the levels."""
    bounds = np.cumsum(parts)  # nearly 1 in the end; what is missing is shared out
    return np.searchsorted(bounds[:-1] / bounds[-1], uniform, side="right")
