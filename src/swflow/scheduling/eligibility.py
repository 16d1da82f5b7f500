"""Columns that change when a job may start: dependencies, cancellations in the queue, and limits of job arrays."""

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.scheduling.feedback import Dependencies
from swflow.scheduling.scheduler import Scheduler


def has_values(jobs: pl.DataFrame, column: str) -> bool:
    """Return whether a table has a column with at least one known value."""
    return column in jobs.columns and jobs[column].null_count() < jobs.height


def require_supported(jobs: pl.DataFrame, scheduler: Scheduler, name: str) -> None:
    """
    Raise an error if a scheduler does not support a column of the jobs.

    Parameters
    ----------
    jobs : polars.DataFrame
        The jobs that take part.
    scheduler : Scheduler
        The policy.
    name : str
        The workload's name, for errors.
    """
    queues = scheduler.queues
    waiting = ("depends_on", "cancelled_after", "array_limit")
    rules = [
        (waiting, scheduler.allocations != {"count"}, "needs allocation count"),
        (waiting, scheduler.shapes != "requested", "needs shapes requested"),
        (waiting, scheduler.policy is not None, "is not available to a policy plugin"),
        (waiting[:1], scheduler.feedback != "none", "does not go with feedback; leave one of them out"),
        (waiting[2:], any(one.backfill not in ("none", "easy") for one in queues), "needs backfill none or easy"),
        (waiting[2:], len(queues) > 1 and scheduler.dispatch != "partition", "needs one machine or dispatch partition"),
    ]
    for columns, is_refused, reason in rules:
        for column in columns if is_refused else ():
            if has_values(jobs, column):
                raise SwflowError(f"{name}: column {column}: {reason}")


def predecessors_of(jobs: pl.DataFrame, name: str) -> Dependencies | None:
    """
    Return the dependencies in column ``depends_on``; None if there is none.

    Parameters
    ----------
    jobs : polars.DataFrame
        ``job_id``, ``submit_time``, ``depends_on`` (lists of job ids) and, if known, ``think_time`` (s).
    name : str
        The workload's name, for errors.

    Returns
    -------
    Dependencies or None
        A job is submitted when all jobs that it depends on have ended and its think time has passed, but not before
        its recorded time.

    Raises
    ------
    SwflowError
        If a job depends on an unknown job, or on itself, directly or through others.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [4, 5, 6], "submit_time": [0.0, 1.0, 2.0], "depends_on": [None, [4], [4, 5]]})
    >>> found = predecessors_of(jobs, "tiny")
    >>> found.previous.tolist(), found.dependent.tolist()
    ([0, 0, 1], [1, 2, 2])
    >>> predecessors_of(jobs.with_columns(depends_on=pl.Series([[6], [4], [5]])), "tiny")
    Traceback (most recent call last):
        ...
    swflow.errors.SwflowError: tiny: job 4 depends on itself (4 on 6 on 5 on 4); correct depends_on
    """
    if not has_values(jobs, "depends_on"):
        return None
    if not isinstance(jobs.schema["depends_on"], pl.List) or not jobs.schema["depends_on"].inner.is_integer():
        raise SwflowError(f"{name}: column depends_on holds {jobs.schema['depends_on']}; expected lists of job ids")
    rows = jobs.select("job_id", row=pl.int_range(pl.len()))
    edges = (
        jobs.select(job="job_id", dependent=pl.int_range(pl.len()), wanted=pl.col("depends_on").list.unique())
        .filter(pl.col("wanted").list.len() > 0)
        .explode("wanted")
        .filter(pl.col("wanted").is_not_null())
        .join(rows, left_on="wanted", right_on="job_id", how="left", maintain_order="left")
        .sort("dependent", "row")
    )
    unknown = edges.filter(pl.col("row").is_null())
    if unknown.height:
        raise SwflowError(
            f"{name}: job {unknown['job'][0]} depends on job {unknown['wanted'][0]}, which is not in the workload "
            f"({unknown.height:,} such dependencies); keep that job, or drop the column depends_on"
        )
    previous, dependent = edges["row"].to_numpy(), edges["dependent"].to_numpy()
    if (previous >= dependent).any():  # predecessors that come earlier form no cycle
        _require_no_cycle(previous, dependent, jobs["job_id"].to_numpy(), name)
    think = np.zeros(jobs.height)
    if "think_time" in jobs.columns:
        think = jobs["think_time"].fill_null(0.0).to_numpy()
        if not ((think >= 0) & np.isfinite(think)).all():
            job = jobs["job_id"][int(np.argmin((think >= 0) & np.isfinite(think)))]
            raise SwflowError(f"{name}: job {job}: the think time is no finite number from 0 on; correct it")
    return Dependencies(previous, think, dependent, jobs["submit_time"].to_numpy())


def _require_no_cycle(previous: np.ndarray, dependent: np.ndarray, ids: np.ndarray, name: str) -> None:
    """Raise an error that names the jobs of a cycle, if there is one."""
    waits_for: dict[int, list[int]] = {}
    dependents: dict[int, list[int]] = {}
    for before, after in zip(previous.tolist(), dependent.tolist(), strict=True):
        waits_for.setdefault(after, []).append(before)
        dependents.setdefault(before, []).append(after)
    left = {job: len(jobs) for job, jobs in waits_for.items()}
    free = [job for job in dependents if job not in left]
    while free:
        for after in dependents.get(free.pop(), ()):
            left[after] -= 1
            if not left[after]:
                del left[after]
                free.append(after)
    if not left:
        return
    path = [min(left)]
    while path[-1] not in path[:-1]:
        path.append(next(job for job in waits_for[path[-1]] if job in left))
    cycle = path[path.index(path[-1]) :]
    shown = " on ".join(str(ids[job]) for job in cycle[:8]) + (" …" if len(cycle) > 8 else "")
    raise SwflowError(f"{name}: job {ids[cycle[0]]} depends on itself ({shown}); correct depends_on")


def cancellations_of(jobs: pl.DataFrame, name: str) -> np.ndarray | None:
    """
    Return after how many seconds from its submission each job leaves the queue; None if no job does.

    Returns
    -------
    float64 array of shape (jobs,), or None
        Infinity: the job is not cancelled.

    Raises
    ------
    SwflowError
        If a time is negative or not finite.

    Examples
    --------
    >>> cancellations_of(pl.DataFrame({"job_id": [1, 2], "cancelled_after": [None, 60.0]}), "tiny")
    array([inf, 60.])
    """
    if not has_values(jobs, "cancelled_after"):
        return None
    if not jobs.schema["cancelled_after"].is_numeric():
        raise SwflowError(f"{name}: column cancelled_after holds {jobs.schema['cancelled_after']}; expected seconds")
    after = jobs["cancelled_after"].cast(pl.Float64)
    wrong = (~(after.is_finite() & (after >= 0))).fill_null(False)
    if wrong.any():
        place = int(wrong.arg_max() or 0)
        raise SwflowError(
            f"{name}: job {jobs['job_id'][place]}: cancelled_after is {after[place]:g}; expected seconds from 0 on"
        )
    return after.fill_null(np.inf).to_numpy()


def array_limits(jobs: pl.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """
    Return the job array of each task, and the most tasks of each array that run at once.

    Returns
    -------
    tuple of (int64 array of shape (jobs,), int64 array of shape (arrays,)), or None
        Arrays are numbered from 0; -1: the job is not a task of an array with a limit. None: there is no such array.

    Raises
    ------
    SwflowError
        If a limit is below 1, or a task with a limit has no array.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2, 3], "array_id": [9, None, 9], "array_limit": [2, None, 2]})
    >>> [found.tolist() for found in array_limits(jobs, "tiny")]
    [[0, -1, 0], [2]]
    """
    if not has_values(jobs, "array_limit"):
        return None
    limited = jobs.filter(pl.col("array_limit").is_not_null())
    wrong = limited.filter(pl.col("array_limit") < 1)
    if wrong.height:
        raise SwflowError(
            f"{name}: job {wrong['job_id'][0]}: array_limit is {wrong['array_limit'][0]}; expected 1 or more"
        )
    if "array_id" not in jobs.columns or limited["array_id"].null_count():
        raise SwflowError(f"{name}: tasks with an array_limit have no array_id; give each task the number of its array")
    most = limited.group_by("array_id").agg(pl.col("array_limit").min()).sort("array_id")
    arrays = pl.int_range(most.height, eager=True)
    rows = jobs["array_id"].replace_strict(most["array_id"], arrays, default=-1, return_dtype=pl.Int64)
    return rows.to_numpy(), most["array_limit"].cast(pl.Int64).to_numpy()
