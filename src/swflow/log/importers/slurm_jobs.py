"""Turn typed allocations of Slurm into records: runs, tasks of arrays, components, preempted and resized jobs."""

from collections.abc import Mapping

import polars as pl

from swflow.columns import rounded_up, whole_numbers
from swflow.jobs.table import conformed
from swflow.log.importers import slurm
from swflow.log.importers.records import (
    COUNTED_FEATURES,
    DEPENDENCIES,
    GPUS,
    LICENSES,
    NOT_MODELLED,
    OVERLAPPING,
    RESERVATIONS,
    Tally,
)


def records_of(jobs: pl.DataFrame, tally: Tally, limits: Mapping[str, float], cpus: int, join: bool) -> pl.DataFrame:
    """Return the records of ended allocations: each run once, components together."""
    jobs = tally.drop_repeated(_ended(jobs, tally), "cluster", "jobid", "submit", "start", "end")
    jobs = _components_together(jobs, tally)
    jobs = _limited(jobs, tally, limits)
    tally.note(jobs, "tasks of arrays", pl.col("task").is_not_null())
    tally.note(jobs, GPUS, pl.col("gpus") > 0)
    tally.note(jobs, LICENSES, pl.col("licensed"))
    jobs = _with_submission(jobs, tally)
    tally.note(jobs, RESERVATIONS, pl.col("reserved"))
    counted = tally.note(jobs, COUNTED_FEATURES, pl.col("constraint").str.contains(r"[\[*]"))
    jobs = jobs.with_columns(constraint=pl.when(~counted).then("constraint"))
    tally.note(jobs, "suspended for a while", pl.col("suspended_time") > 0)
    span = pl.col("end") - pl.col("start") - pl.col("suspended_time").fill_null(0)
    differs = (span - pl.col("elapsed")).abs() > 2
    by_an_hour = ((span - pl.col("elapsed")).abs() - 3600).abs() <= 2
    tally.note(jobs, "End - Start differs from Elapsed by an hour (give --timezone)", differs & by_an_hour)
    tally.note(jobs, "End - Start differs from Elapsed", differs & ~by_an_hour)
    # A job that was cancelled in the queue has the time of the cancellation as its start, and CPUs that it never had.
    at_once = (pl.col("state") == "CANCELLED") & (pl.coalesce("elapsed", span) == 0)
    started = pl.col("start").is_not_null() & ~at_once
    tally.note(jobs, "never started (kept, with a run time of 0)", ~started)
    jobs = jobs.with_columns(
        run_time=pl.when(started).then(pl.coalesce("elapsed", span)).otherwise(0.0),
        start=pl.coalesce("start", "end"),
        allocated=pl.when(started).then("allocated"),
    )
    jobs = jobs.with_columns(
        end=pl.coalesce("end", pl.col("start") + pl.col("run_time") + pl.col("suspended_time").fill_null(0))
    )
    jobs = _requeued(_without_preempted(jobs, tally) if join else jobs, tally)
    processors = pl.coalesce("allocated", "requested")
    for name in jobs["state"].drop_nulls().unique(maintain_order=True):
        if name not in slurm.STATES:
            tally.note(jobs, f"unknown state {name!r}", pl.col("state") == name)
    return jobs.with_columns(
        licenses=pl.when(pl.col("licenses") > 0).then("licenses"),
        memory=rounded_up(pl.col("memory")),
        site_job_id=pl.col("jobid"),
        allocated_processors=(pl.col("allocated") / cpus).ceil().cast(pl.Int64),
        requested_processors=(pl.col("requested") / cpus).ceil().cast(pl.Int64),
        average_cpu_time=pl.col("cpu_time") / processors * cpus,
        used_memory=pl.col("step_memory") / processors * cpus,
        requested_time=pl.col("limit"),
        requested_memory=pl.col("requested_memory") * cpus,
        status=pl.col("state").replace_strict(slurm.STATES, default=None, return_dtype=pl.Int64),
        user=pl.col("user_name"),
        group=pl.coalesce("account", "unix_group"),
        unix_group=pl.when(jobs["account"].null_count() < jobs.height).then("unix_group"),
    )


def _with_submission(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Add the job array of each task, the most tasks of it that run at once, and the dependencies of each job."""
    asked = pl.col("submitted").str.extract(r"(?:^|\s)(?:--array(?:=|\s+)|-a\s*)[^\s%]*%([^\s'\"]*)", 1)
    is_number = asked.str.contains(r"^[0-9]+$")
    limit = whole_numbers(pl.when(is_number).then(asked))
    is_task = pl.col("task").is_not_null()
    tally.note(jobs, "tasks of arrays whose limit cannot be read (--array=…%LIMIT)", is_task & ~is_number)
    if "limit_of_array" in jobs.columns:  # only in JSON
        limit = pl.coalesce(pl.when(pl.col("limit_of_array") > 0).then("limit_of_array"), limit)
    jobs = jobs.with_columns(
        array=pl.when(is_task).then(pl.col("jobid").str.extract(r"^(\d+)_", 1)),
        array_limit=pl.when(is_task).then(limit),
    )
    depending = jobs.select("line", "submitted", "task").filter(pl.col("submitted").str.contains(r"--dependency|-d"))
    found = [(line, *slurm.predecessors(text, task)) for line, text, task in depending.iter_rows()]
    unmodelled = [line for line, _, others in found if others]
    tally.add(NOT_MODELLED, len(unmodelled), min(unmodelled, default=0))
    arrays = set(jobs["array"].drop_nulls().unique())
    rows = [(line, [f"{one}_*" if one in arrays else one for one in ids]) for line, ids, _ in found if ids]
    table = pl.DataFrame(rows, {"line": pl.Int64, "depends_on": pl.List(pl.String)}, orient="row")
    jobs = jobs.join(table, on="line", how="left", maintain_order="left")
    tally.note(jobs, DEPENDENCIES, pl.col("depends_on").is_not_null())
    return jobs


def _ended(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Leave out jobs that have not ended or that another cluster of a federation ran."""
    going_on = [name for name, status in slurm.STATES.items() if status is None]
    for name in sorted(jobs.filter(pl.col("state").is_in(going_on))["state"].unique()):
        jobs = tally.drop(jobs, f"not ended: {name}", pl.col("state") == name)
    jobs = tally.drop(jobs, "revoked: another cluster ran it", pl.col("state") == "REVOKED")
    endless = pl.col("end").is_null() & (pl.col("elapsed").is_null() | pl.col("start").is_null())
    jobs = tally.drop(jobs, "no end time", endless)
    ran = pl.col("start").is_null() & (pl.col("elapsed") > 0) & pl.col("end").is_not_null()
    tally.note(jobs, "without a start (computed from End and Elapsed)", ran)
    span = pl.col("elapsed") + pl.col("suspended_time").fill_null(0)
    jobs = jobs.with_columns(start=pl.when(ran.fill_null(False)).then(pl.col("end") - span).otherwise("start"))
    # A job that was cancelled in the queue can have the start that was planned for it.
    backwards = pl.col("end") < pl.col("start")
    never = (
        (pl.col("end") >= pl.col("submit"))
        & backwards
        & ((pl.col("elapsed").fill_null(0) == 0) | (pl.col("state") == "CANCELLED"))
    )
    tally.note(jobs, "start after the end of a job that never started (unknown)", never)
    jobs = jobs.with_columns(start=pl.when(~never.fill_null(False)).then("start"))
    return tally.drop(jobs, "ended before it started", pl.col("end") < pl.col("start"))


#: The columns of a heterogeneous job that its components give in another way than by the first value or a sum.
_TOGETHER = ("cluster", "submit", "eligible", "start", "end", "elapsed", "suspended_time", "requested_memory", "jobid")


def _components_together(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Join the components of each run of a heterogeneous job."""
    parts = jobs.filter(pl.col("component").is_not_null())
    if parts.is_empty():
        return jobs
    tally.note(parts, "components of heterogeneous jobs, joined", pl.lit(True))
    parts = _with_runs(parts.with_columns(leader=pl.col("jobid").str.extract(r"^(\d+)", 1)))
    sums = (
        "allocated", "requested", "nodes", "requested_nodes", "gpus", "licenses", "memory", "cpu_time", "step_memory"
    )  # fmt: skip
    memory = pl.col("requested_memory")
    processors = pl.when(memory.is_not_null()).then(pl.coalesce("allocated", "requested"))
    span = pl.col("end").max() - pl.col("start").min() - pl.col("suspended_time").max().fill_null(0)
    together = parts.group_by("cluster", "leader", "run", maintain_order=True).agg(
        *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in sums),
        pl.col("submit").min(),
        pl.col("eligible").max(),
        pl.col("start").min(),
        pl.col("end").max(),
        pl.col("suspended_time").max(),
        # Components that start at different times occupy the job's processors from the first start to the last end.
        pl.when(pl.col("start").n_unique() > 1).then(span).otherwise(pl.col("elapsed").max()).alias("elapsed"),
        pl.when(memory.count() > 0).then((memory * processors).sum() / processors.sum()).alias("requested_memory"),
        *(pl.col(name).first() for name in jobs.columns if name not in {*sums, *_TOGETHER}),
    )
    together = conformed(together.with_columns(jobid="leader"), jobs.schema)
    return pl.concat([jobs.filter(pl.col("component").is_null()), together]).sort("line")


def _with_runs(parts: pl.DataFrame) -> pl.DataFrame:
    """
    Add to each component the ``run`` of its heterogeneous job, from 0.

    A component belongs to the previous run if it overlaps with that run, or if the run lacks this component;
    otherwise it begins another run.
    """
    parts = parts.sort("cluster", "leader", pl.coalesce("start", "end"), "line")
    runs: list[int] = []
    job, run, ended, seen = None, 0, float("-inf"), set[int]()
    for row in parts.select("cluster", "leader", "component", "start", "end").iter_rows():
        begin, end = row[3] or row[4], row[4] or row[3]
        if row[:2] != job:
            job, run, ended, seen = row[:2], 0, float("-inf"), set()
        elif begin >= ended and row[2] in seen:
            run, ended, seen = run + 1, float("-inf"), set()
        runs.append(run)
        ended = max(ended, end)
        seen.add(row[2])
    return parts.with_columns(run=pl.Series(runs, dtype=pl.Int64)).sort("line")


def _limited(jobs: pl.DataFrame, tally: Tally, limits: Mapping[str, float]) -> pl.DataFrame:
    """Replace the limit Partition_Limit by that of the partition, where it is known."""
    of_partition = pl.col("limit_kind") == "partition"
    known = pl.col("partition").replace_strict(limits, default=None, return_dtype=pl.Float64)
    jobs = jobs.with_columns(limit=pl.when(of_partition).then(known).otherwise("limit"))
    tally.note(jobs, "time limit UNLIMITED: the estimate is unknown", pl.col("limit_kind") == "unlimited")
    tally.note(
        jobs,
        "time limit Partition_Limit: the estimate is unknown (give --partition-limit)",
        of_partition & pl.col("limit").is_null(),
    )
    return jobs


#: The reason for which an import leaves out preempted runs.
JOINED_RUNS = "preempted runs of jobs that ran again"


def _without_preempted(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Leave out preempted runs of jobs that ran again; the next run has the submit time and line of the first one."""
    jobs, job = jobs.sort("start", "line"), ["cluster", "jobid"]
    lost = (pl.col("state") == "PREEMPTED").fill_null(False) & pl.col("line").shift(-1).over(job).is_not_null()
    kept = (~pl.col("lost")).cast(pl.Int64)
    jobs = jobs.with_columns(lost=lost).with_columns(turn=kept.cum_sum().over(job) - kept)
    first = [pl.col(name).first().over([*job, "turn"]) for name in ("submit", "eligible", "line")]
    return tally.drop(jobs.with_columns(first), JOINED_RUNS, pl.col("lost"))


def _requeued(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Set the submit time of every further run of a job to the end of the run before it, at the earliest."""
    jobs = jobs.sort("start", "line")
    before = pl.col("end").shift(1).over("cluster", "jobid")
    further = pl.col("line").cum_count().over("cluster", "jobid") > 1
    again = further & (before <= pl.col("start"))
    resized = pl.lit(False)
    if (jobs["state"] == "RESIZING").any():
        resized = (pl.col("state").shift(1).over("cluster", "jobid") == "RESIZING").fill_null(False)
    tally.note(jobs, "further sizes of resized jobs, each a job that starts when the one before ends", again & resized)
    tally.note(jobs, "further runs of requeued jobs", again & ~resized)
    tally.note(jobs, OVERLAPPING, further & (before > pl.col("start")))
    return jobs.with_columns(
        submit=pl.when(again & (before > pl.col("submit"))).then(before).otherwise(pl.col("submit")),
        depends_on=pl.when(~again.fill_null(False)).then("depends_on"),
    ).sort("line")
