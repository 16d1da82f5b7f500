"""Preempted runs of a log: for a scheduler that preempts jobs, all runs of a job are one job."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import polars as pl

from swflow.jobs.table import Workload, sort_jobs
from swflow.log.importers.slurm_jobs import JOINED_RUNS
from swflow.scheduling.option_kinds import Unchecked

#: The reason in a history for which preempted runs are left out.
REASON = "preempted-run"


def with_joined_runs(workload: Workload, options: Unchecked) -> Workload:
    """
    Return the workload without preempted runs of jobs that ran again, if the scheduler of ``options`` preempts jobs.

    The last run of such a job has the first submission and number. A run is preempted if its QOS or partition can be,
    it did not complete, and its job ran again: an imported log has the site's number of each job (``site_job_id``),
    unless names are anonymous.
    """
    jobs = workload.jobs
    given = options.get("preemption") or {}
    if any(JOINED_RUNS in (entry.get("removed") or {}) for entry in workload.history):
        return workload  # the import has joined them, and knows which were preempted
    if not given or not {"site_job_id", "status", "wait_time"} <= {*jobs.columns}:
        return workload
    is_victim = _in(workload, "queue_id", {name for named in (given.get("qos") or {}).values() for name in named})
    is_victim = is_victim | _in(workload, "partition_id", _lower(given.get("partition") or {}))
    ordered = jobs.with_columns(_start=pl.col("submit_time") + pl.col("wait_time")).sort("_start", "job_id")
    again = pl.col("job_id").shift(-1).over("site_job_id").is_not_null() & pl.col("site_job_id").is_not_null()
    ordered = ordered.with_columns(_lost=(is_victim & (pl.col("status") == 0) & again).fill_null(False))
    lost = int(ordered["_lost"].sum())
    if not lost:
        return workload
    kept = (~pl.col("_lost")).cast(pl.Int64)
    ordered = ordered.with_columns(_turn=kept.cum_sum().over("site_job_id") - kept)
    turn, is_known = ["site_job_id", "_turn"], pl.col("site_job_id").is_not_null()
    first = [
        pl.when(is_known).then(pl.col(name).first().over(turn)).otherwise(pl.col(name)).alias(name)
        for name in ("submit_time", "eligible_after", "job_id")
        if name in jobs.columns
    ]
    found = ordered.with_columns(first).filter(~pl.col("_lost"))
    if "depends_on" in jobs.columns:
        last = ordered.filter(~pl.col("_lost"))["job_id"]
        found = found.with_columns(pl.col("depends_on").list.eval(pl.element().replace(last, found["job_id"])))
    found = found.with_columns(wait_time=pl.col("_start") - pl.col("submit_time")).select(jobs.columns)
    return replace(workload, jobs=sort_jobs(found), history=_without(workload.history, lost))


def _in(workload: Workload, column: str, names: Collection[str]) -> pl.Expr:
    """Return whether a column of a job has one of some names."""
    if column not in workload.jobs.columns:
        return pl.lit(False)
    known = workload.header.names_of(column)
    return pl.col(column).is_in([number for number, name in known.items() if name in names])


def _lower(tiers: Unchecked) -> set[str]:
    """Return the partitions below the highest tier."""
    return {name for name, tier in tiers.items() if tier < max(tiers.values())}


def _without(history: tuple[Any, ...], lost: int) -> tuple[Any, ...]:
    """Return a history whose last entry leaves out some more jobs."""
    if not history:
        return history
    *before, last = history
    removed = {**last.get("removed", {}), REASON: lost}
    return (*before, {**last, "kept": last["kept"] - lost, "removed": removed})
