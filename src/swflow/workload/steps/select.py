"""The step `select`: keep the part of a workload's jobs given by number, status or a condition."""

from collections.abc import Iterable

import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.conditions import condition
from swflow.jobs.table import Workload, check_columns
from swflow.workload.clean import without_lost
from swflow.workload.removals import without_removed


def select(
    workload: Workload,
    *,
    jobs: int | None = None,
    status: Iterable[int] = (),
    without_status: Iterable[int] = (),
    where: str | None = None,
) -> Workload:
    """
    Keep a part of the jobs; ``jobs`` applies after the other conditions.

    Parameters
    ----------
    jobs : int, optional
        Number of jobs to keep, from the first submitted job on.
    status : iterable of int
        Keep only jobs with these statuses (SWF: 0 failed, 1 completed, 5 cancelled).
    without_status : iterable of int
        Remove jobs with these statuses. Jobs with unknown status stay.
    where : str, optional
        Keep only jobs that meet this condition, such as ``processors <= 32 and run_time > 60``.

    Returns
    -------
    Workload
        The part. Its new history entry has ``read``, ``kept`` and ``removed`` (reason to number of jobs). Dependencies
        on removed jobs are left out and counted in its ``notes``.

    Raises
    ------
    SwflowError
        If the condition is invalid, ``jobs`` is not positive, or no job remains.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> table = pl.DataFrame({"job_id": [1, 2, 3], "status": [1, 5, None], "processors": [1, 2, 3]})
    >>> part = select(Workload(table, Machine.of(4), "tiny"), without_status=[5], jobs=1)
    >>> part.jobs["job_id"].to_list(), part.history[0]["removed"]
    ([1], {'status-5': 1, 'after-first-1': 1})
    """
    if jobs is not None and jobs < 1:
        raise SwflowError(f"select: jobs: {jobs}; expected at least 1")
    status, without_status = list(status), list(without_status)
    if status or without_status:
        check_columns(workload.jobs, f"select: {workload.name}", ("status",))
    rules: list[tuple[str, pl.Expr]] = []
    if status:
        other = ~pl.col("status").is_in(status)
        rules.append((f"status-not-{'-'.join(map(str, status))}", other.fill_null(True)))
    rules += [(f"status-{one}", pl.col("status") == one) for one in without_status]
    if where is not None:
        rules.append((f"not ({where})", ~condition(where, workload.jobs.schema, "select: where")))
    table, removed = without_removed(workload.jobs, rules)
    if jobs is not None and table.height > jobs:
        removed[f"after-first-{jobs}"] = table.height - jobs
        table = table.head(jobs)
    if table.is_empty():
        raise SwflowError(f"select: {workload.name}: all {workload.jobs.height:,} jobs were removed")
    entry = {"stage": "select", "read": workload.jobs.height, "kept": table.height, "removed": removed}
    return without_lost(workload.with_jobs(table, entry))
