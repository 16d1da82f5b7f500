"""Cleaning: from the lines of a log to the job table, with every removed job counted under its reason."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from swflow import jobs as tables
from swflow.errors import SwflowError
from swflow.expressions import condition
from swflow.jobs import JOB_COLUMNS, LONGEST_TIME, SWF_FIELDS, Workload, read_workload, sort_jobs
from swflow.machine import MOST_PROCESSORS, Machine
from swflow.workloads.busy import use_of

#: The rules of `clean`, in the order in which they are applied; a job counts under the first that it meets.
RULES: dict[str, str] = {
    "unknown-submit-time": "the submit time is unknown",
    "no-processors": "neither allocated nor requested processors are known",
    "wider-than-machine": "more processors than the machine has",
    "unknown-run-time": "the run time is unknown",
    "zero-run-time": "the run time is 0: the job did not run",
}


def clean(
    fields: pl.DataFrame,
    machine: Machine,
    *,
    name: str,
    drop: Sequence[str] = tuple(RULES),
    without_status: Iterable[int] = (),
    flurries: Iterable[str] = (),
    period: tuple[float | None, float | None] = (None, None),
    header: Mapping[str, list[str]] | None = None,
) -> Workload:
    """
    Make the job table of a log.

    Unknown values (-1) become null, ``processors`` (allocated, else requested) and ``estimate`` (requested
    time, else run time) are derived, and jobs are sorted by (submit time, job id).

    Parameters
    ----------
    fields : polars.DataFrame
        The 18 fields of every line, as `swflow.swf.read_swf` gives them.
    machine : Machine
        The machine of the log.
    name : str
        The log's name.
    drop : sequence of str
        Which of `RULES` to apply.
    without_status : iterable of int
        Jobs of these statuses are removed (5 is cancelled).
    flurries : iterable of str
        Conditions on the columns; jobs that fulfil one are removed, such as
        ``user_id == 50 and 24439 <= job_id <= 64542``.
    period : tuple of (float or None, float or None)
        Only jobs submitted at or after the first and before the second, seconds from the log's start.
    header : mapping, optional
        The log's header, kept with the workload.

    Returns
    -------
    Workload
        Its history's entry has ``read``, ``kept`` and ``removed`` (reason to number of jobs).

    Raises
    ------
    SwflowError
        If a rule or a condition is unknown, a job id is missing or repeats, a time or a number of processors is
        beyond all limits, a submit time is missing and its rule is not applied, or no job is left.

    Examples
    --------
    >>> row = {name: -1 for name in SWF_FIELDS} | {"job_id": 7, "submit_time": 0, "run_time": 60}
    >>> fields = pl.DataFrame([row | {"requested_processors": 4}, row | {"job_id": 8}], schema=SWF_FIELDS)
    >>> workload = clean(fields, Machine.of(16), name="tiny")
    >>> workload.jobs.select("job_id", "processors", "estimate").rows()
    [(7, 4, 60.0)]
    >>> workload.history[0]["removed"]
    {'no-processors': 1}
    """
    rules = list(removals(machine, drop, without_status, flurries, period))
    _require_limits(fields, name)
    jobs = prepared(fields)
    _require_identity(jobs, name)
    removed: dict[str, int] = {}
    for reason, expression in rules:
        kept = jobs.filter(~expression.fill_null(False))
        if kept.height < jobs.height:
            removed[reason] = jobs.height - kept.height
        jobs = kept
    _require_column(jobs, "submit_time", name)
    if jobs.is_empty():
        raise no_job_left(name, fields.height, removed)
    entry = {"stage": "clean", "read": fields.height, "kept": jobs.height, "removed": removed}
    return Workload(sort_jobs(jobs), machine, name, dict(header or {}), (entry,))


def no_job_left(name: str, read: int, removed: Mapping[str, int]) -> SwflowError:
    """Return the error that nothing is left of a log."""
    return SwflowError(f"clean: {name}: no job is left of {read}; removed: {describe(removed)}")


def describe(removed: Mapping[str, int]) -> str:
    """Say in words how many jobs were removed and why."""
    return ", ".join(f"{count:,} {reason}" for reason, count in removed.items()) or "none"


def prepared(fields: pl.DataFrame) -> pl.DataFrame:
    """Return the fields of a log as jobs: unknown values null, processors and estimates derived, nothing removed."""
    return _derive(_with_nulls(fields))


def _with_nulls(fields: pl.DataFrame) -> pl.DataFrame:
    """Turn -1 into null; columns that the standard does not have stay as they are."""
    return fields.select(
        *(
            pl.when(pl.col(column) == -1).then(None).otherwise(pl.col(column)).cast(dtype).alias(column)
            for column, dtype in SWF_FIELDS.items()
        ),
        *(column for column in fields.columns if column not in SWF_FIELDS),
    )


def _derive(jobs: pl.DataFrame) -> pl.DataFrame:
    def known(column: str) -> pl.Expr:
        """0 processors, or an estimate of 0 s, is how some logs say that they do not know."""
        return pl.when(pl.col(column) > 0).then(pl.col(column))

    return jobs.with_columns(
        processors=pl.coalesce(known("allocated_processors"), known("requested_processors")),
        estimate=pl.coalesce(known("requested_time"), pl.col("run_time")),
    )


def _require_identity(jobs: pl.DataFrame, name: str) -> None:
    _require_column(jobs, "job_id", name)
    duplicates = jobs.height - jobs["job_id"].n_unique()
    if duplicates:
        job = jobs.filter(pl.col("job_id").is_duplicated())["job_id"][0]
        raise repeats_id(name, duplicates, job)


def repeats_id(name: str, duplicates: int, job: int) -> SwflowError:
    """Return the error that lines repeat the id of others."""
    return SwflowError(
        f"clean: {name}: job ids must be unique, but {duplicates:,} lines repeat one (the first is {job})"
    )


def _require_column(jobs: pl.DataFrame, column: str, name: str) -> None:
    missing = jobs[column].null_count()
    if missing:
        raise lacks_column(name, missing, column)


def lacks_column(name: str, missing: int, column: str) -> SwflowError:
    """Return the error that something is not known of some jobs."""
    return SwflowError(f"clean: {name}: {missing} jobs have no {column.replace('_', ' ')}; it must be known")


#: The share of its time in which a recorded schedule may use more than the machine has without a warning.
TOLERATED = 0.001

#: Where the size of a machine comes from if nobody states it.
GUESSED = ("widest job", "recorded peak")

#: Fields that are times or processors, and how large they may be, whatever the sign.
_LIMITS: dict[str, float] = {
    "submit_time": LONGEST_TIME,
    "wait_time": LONGEST_TIME,
    "run_time": LONGEST_TIME,
    "average_cpu_time": LONGEST_TIME,
    "requested_time": LONGEST_TIME,
    "think_time": LONGEST_TIME,
    "allocated_processors": MOST_PROCESSORS,
    "requested_processors": MOST_PROCESSORS,
}


def within_limits() -> pl.Expr:
    """Say of a line whether its times and processors can be some."""
    return pl.all_horizontal(
        # not a number is neither above nor below
        pl.col(column).is_null() | ((pl.col(column) >= -limit) & (pl.col(column) <= limit) & ~_is_nan(column))
        for column, limit in _LIMITS.items()
    )


def _is_nan(column: str) -> pl.Expr:
    return pl.col(column).is_nan() if SWF_FIELDS[column].is_float() else pl.lit(False)


def _require_limits(fields: pl.DataFrame, name: str) -> None:
    """Raise an error that names the first job with a time or a number of processors that cannot be one."""
    wrong = fields.filter(~within_limits())
    if wrong.is_empty():
        return
    raise beyond_limits(name, wrong.row(0, named=True), wrong.height)


def beyond_limits(name: str, row: Mapping[str, Any], count: int) -> SwflowError:
    """Return the error that a job has a time or a number of processors that cannot be one."""
    column = next(
        column for column, limit in _LIMITS.items() if row[column] is not None and not abs(row[column]) <= limit
    )
    unit = " s" if SWF_FIELDS[column].is_float() else ""
    return SwflowError(
        f"clean: {name}: job {row['job_id']}: {column} is {row[column]:g}{unit}, beyond the limit of "
        f"{_LIMITS[column]:g}{unit} ({count:,} such jobs); correct the log, or skip such lines and count them "
        "with --lenient"
    )


def removals(
    machine: Machine,
    drop: Sequence[str],
    without_status: Iterable[int],
    flurries: Iterable[str],
    period: tuple[float | None, float | None],
) -> Iterable[tuple[str, pl.Expr]]:
    """Give every reason for removal with its expression, in order; raise an error about a rule that is none."""
    unknown = [rule for rule in drop if rule not in RULES]
    if unknown:
        raise SwflowError(f"clean: unknown rule {unknown[0]!r} in drop; known are {', '.join(RULES)}")
    since, until = period
    if since is not None:
        yield "before-period", pl.col("submit_time") < since
    if until is not None:
        yield "after-period", pl.col("submit_time") >= until
    for text in flurries:
        yield text, condition(text, JOB_COLUMNS, "clean: flurries")
    for status in without_status:
        yield f"status-{status}", pl.col("status") == status
    rules = {
        "unknown-submit-time": pl.col("submit_time").is_null(),
        "no-processors": pl.col("processors").is_null(),
        "wider-than-machine": pl.col("processors") > machine.processors,
        "unknown-run-time": pl.col("run_time").is_null() | (pl.col("run_time") < 0),
        "zero-run-time": pl.col("run_time") == 0,
    }
    for rule in RULES:
        if rule in drop:
            yield rule, rules[rule]


def clean_log(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    processors: int | None = None,
    nodes: int | None = None,
    since: date | None = None,
    until: date | None = None,
    lenient: bool = False,
    drop: Sequence[str] = tuple(RULES),
    without_status: Iterable[int] = (),
    flurries: Iterable[str] = (),
) -> Workload:
    """
    Read a log and clean it.

    Parameters
    ----------
    path : path-like
        A file in the Standard Workload Format, plain or gzipped, or a log that was imported to Parquet.
    name : str, optional
        The log's name; by default the file's.
    processors, nodes : int, optional
        The machine; by default MaxProcs and MaxNodes of the header and, where there are none, as many
        processors as the recorded schedule used at its peak, or the widest job has. That is a guess, and a warning.
    since, until : datetime.date or datetime.datetime, optional
        Only jobs submitted on or after the first and before the second, by the clock of the log's site.
    lenient : bool
        Count and skip malformed lines instead of refusing the log.
    drop, without_status, flurries
        As in `clean`.

    Returns
    -------
    Workload
        Its history's entry also counts ``malformed`` lines among the removed, and has ``machine_from``,
        ``recorded_peak`` and, if something is doubtful, ``warnings``.

    Raises
    ------
    SwflowError
        As `swflow.swf.read_swf` and `clean` do.
    """
    from swflow.log_table import read_log
    from swflow.swf import seconds_since_start

    log, imported = read_log(path, lenient=lenient)
    name = name or log_name(path)
    fields = log.fields.filter(within_limits()) if lenient else log.fields
    _require_limits(fields, name)
    skipped = len(log.skipped) + log.fields.height - fields.height
    if fields.is_empty():
        raise SwflowError(f"clean: {name}: no job is within the limits of times and processors")
    machine, source = machine_of(fields, log.header, processors, nodes)
    workload = clean(
        fields,
        machine,
        name=name,
        drop=drop,
        without_status=without_status,
        flurries=flurries,
        period=(
            seconds_since_start(log.header, since) if since else None,
            seconds_since_start(log.header, until) if until else None,
        ),
        header=log.header,
    )
    entry = workload.history[0] | {"machine_from": source, "read": log.fields.height + len(log.skipped)}
    if skipped:
        entry["removed"] = {"malformed": skipped} | entry["removed"]
    return replace(workload, history=(*imported, with_recorded_use(entry, workload.jobs, machine)))


def with_recorded_use(entry: dict[str, Any], jobs: pl.DataFrame, machine: Machine) -> dict[str, Any]:
    """Add to an entry of the history what the recorded schedule used, and what is doubtful about the machine."""
    peak, beyond = recorded_use(jobs, machine.processors)
    entry["recorded_peak"] = peak
    replayable = jobs["wait_time"].null_count() < jobs.height
    warnings = _warnings(machine, entry["machine_from"], peak, beyond if replayable else 0.0)
    if warnings:
        entry["warnings"] = warnings
    return entry


def recorded_use(jobs: pl.DataFrame, machine: int) -> tuple[int, float]:
    """
    Return how many processors the recorded schedule used at its peak, and for how long more than a machine has.

    Parameters
    ----------
    jobs : polars.DataFrame
        With ``submit_time``, ``wait_time``, ``run_time`` and, as `clean` makes it, ``processors``. Jobs of which one is
        unknown do not count; in a log that knows no wait time at all the submit times are the starts.
    machine : int
        Processors of the machine.

    Returns
    -------
    peak : int
        The most processors that were busy at once, 0 if no start is known. Who ends at an instant has left before
        others start.
    beyond : float
        The share of the time from the first start to the last end in which more than ``machine`` were busy.

    Examples
    --------
    >>> jobs = pl.DataFrame({"submit_time": [0.0, 5.0], "wait_time": [0.0, 1.0], "run_time": [10.0, 4.0],
    ...                      "processors": [3, 2]})
    >>> recorded_use(jobs, 4)
    (5, 0.4)
    """
    if jobs["wait_time"].null_count() == jobs.height:
        jobs = jobs.with_columns(wait_time=pl.lit(0.0))
    known = jobs.select(
        (pl.col("run_time") > 0)
        & (pl.col("processors") > 0)
        & (pl.col("submit_time") + pl.col("wait_time")).is_not_null()
    ).to_series()
    if not known.fill_null(False).all():
        jobs = jobs.filter(known)
    if jobs.is_empty():
        return 0, 0.0
    start = (jobs["submit_time"] + jobs["wait_time"]).to_numpy()
    processors = jobs["processors"].to_numpy()
    if jobs.height > tables.MOST_AT_ONCE:
        used = use_of(start, start + jobs["run_time"].to_numpy(), processors, machine)
        return used.peak, used.beyond / used.span if used.span > 0 else 0.0
    times = np.concatenate([start + jobs["run_time"].to_numpy(), start])
    order = np.argsort(times, kind="stable")
    busy = np.cumsum(np.concatenate([-processors, processors])[order])
    lengths = np.diff(times[order])
    whole = lengths.sum()
    return int(busy.max()), float(lengths[busy[:-1] > machine].sum() / whole) if whole > 0 else 0.0


def _warnings(machine: Machine, source: str, peak: int, beyond: float) -> list[str]:
    """Say what is doubtful about a machine."""
    warnings = []
    if source in GUESSED:
        warnings.append(
            f"the header has no MaxProcs: {machine.processors:,} processors are a guess, by the {source}; "
            "give the machine's: --machine-processors"
        )
    if beyond >= TOLERATED:  # clocks of nodes differ by seconds: nearly every log is beyond its machine for moments
        warnings.append(
            f"the recorded schedule has up to {peak:,} processors busy, more than the machine's "
            f"{machine.processors:,} in {beyond:.2%} of its time; its utilization and load cannot be trusted there"
        )
    return warnings


def open_workload(
    path: str | os.PathLike[str], processors: int | None = None, columns: Iterable[str] | None = None
) -> Workload:
    """
    Open a workload that swflow wrote, or a log, which is cleaned by the default rules.

    Parameters
    ----------
    path : path-like
        ``.parquet`` (a workload, or an imported log), ``.swf`` or ``.swf.gz``.
    processors : int, optional
        The machine's processors, instead of the workload's own.
    columns : iterable of str, optional
        Of a workload: the columns to read, besides those that every workload has; by default all.

    Returns
    -------
    Workload

    Raises
    ------
    SwflowError
        If the file cannot be read.
    """
    from swflow.log_table import is_log_table

    if Path(path).suffix == ".parquet" and not is_log_table(path):
        workload = read_workload(path, columns)
        return (
            workload if processors is None else replace(workload, machine=workload.machine.with_processors(processors))
        )
    # A job wider than the machine that was asked for is an error to be told, not a job to be dropped.
    rules = [rule for rule in RULES if processors is None or rule != "wider-than-machine"]
    return clean_log(path, processors=processors, drop=rules)


def log_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a log's file without its folder and endings: ``kth`` for ``logs/kth.swf.gz``."""
    return Path(path).name.removesuffix(".gz").removesuffix(".swf").removesuffix(".parquet")


def machine_of(
    fields: pl.DataFrame, header: Mapping[str, list[str]], processors: int | None, nodes: int | None
) -> tuple[Machine, str]:
    """Return the machine of a log, and where its size comes from: given, the header, or one of `GUESSED`."""
    stated = stated_machine(header, processors, nodes)
    if stated:
        return stated
    widest = max(1, fields.select(pl.max_horizontal("allocated_processors", "requested_processors").max()).item())
    return guessed_machine(prepared(fields), widest, nodes)


def guessed_machine(jobs: pl.DataFrame, widest: int, nodes: int | None) -> tuple[Machine, str]:
    """Return a machine that is as large as the widest job, or as what was used at once."""
    peak, _ = recorded_use(jobs, widest)
    return Machine.of(max(widest, peak), nodes), "recorded peak" if peak > widest else "widest job"


def stated_machine(
    header: Mapping[str, list[str]], processors: int | None, nodes: int | None
) -> tuple[Machine, str] | None:
    """Return what `machine_of` does, or None if neither the user nor the header states the machine."""
    from swflow.swf import header_number

    if processors is not None:
        return Machine.of(processors, nodes), "given"
    for key in ("MaxProcs", "MaxNodes"):
        stated = header_number(header, key)
        if stated is not None and stated > 0:
            return Machine.of(stated, nodes or header_number(header, "MaxNodes")), f"header ({key})"
    return None
