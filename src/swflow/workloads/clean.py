"""Cleaning: from the lines of a log to the job table, with every removed job counted under its reason."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl

from swflow.errors import SwflowError
from swflow.expressions import condition
from swflow.jobs import SWF_FIELDS, Workload, read_workload, sort_jobs
from swflow.machine import Machine

#: The rules of `clean`, in the order in which they are applied; a job counts under the first that it meets.
RULES: dict[str, str] = {
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
        If a rule or a condition is unknown, a submit time or job id is missing, or no job is left.

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
    unknown = [rule for rule in drop if rule not in RULES]
    if unknown:
        raise SwflowError(f"clean: unknown rule {unknown[0]!r} in drop; known are {', '.join(RULES)}")
    jobs = prepared(fields)
    _require_identity(jobs, name)
    removed: dict[str, int] = {}
    for reason, expression in _filters(machine, drop, without_status, flurries, period):
        kept = jobs.filter(~expression.fill_null(False))
        if kept.height < jobs.height:
            removed[reason] = jobs.height - kept.height
        jobs = kept
    if jobs.is_empty():
        raise SwflowError(f"clean: {name}: no job is left of {fields.height}; removed: {describe(removed)}")
    entry = {"stage": "clean", "read": fields.height, "kept": jobs.height, "removed": removed}
    return Workload(sort_jobs(jobs), machine, name, dict(header or {}), (entry,))


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
    for column in ("job_id", "submit_time"):
        missing = jobs[column].null_count()
        if missing:
            raise SwflowError(f"clean: {name}: {missing} jobs have no {column.replace('_', ' ')}; it must be known")
    duplicates = jobs.height - jobs["job_id"].n_unique()
    if duplicates:
        job = jobs.filter(pl.col("job_id").is_duplicated())["job_id"][0]
        raise SwflowError(
            f"clean: {name}: job ids must be unique, but {duplicates:,} lines repeat one (the first is {job})"
        )


def _filters(
    machine: Machine,
    drop: Sequence[str],
    without_status: Iterable[int],
    flurries: Iterable[str],
    period: tuple[float | None, float | None],
) -> Iterable[tuple[str, pl.Expr]]:
    """Give every reason for removal with its expression, in order."""
    since, until = period
    if since is not None:
        yield "before-period", pl.col("submit_time") < since
    if until is not None:
        yield "after-period", pl.col("submit_time") >= until
    for text in flurries:
        yield text, condition(text, [*SWF_FIELDS, "processors", "estimate"], "clean: flurries")
    for status in without_status:
        yield f"status-{status}", pl.col("status") == status
    rules = {
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
        processors as the widest job has.
    since, until : datetime.date or datetime.datetime, optional
        Only jobs submitted on or after the first and before the second, by the clock of the log's site.
    lenient : bool
        Count and skip malformed lines instead of refusing the log.
    drop, without_status, flurries
        As in `clean`.

    Returns
    -------
    Workload
        Its history's entry also counts ``malformed`` lines among the removed.

    Raises
    ------
    SwflowError
        As `swflow.swf.read_swf` and `clean` do.
    """
    from swflow.log_table import read_log
    from swflow.swf import seconds_since_start

    log, imported = read_log(path, lenient=lenient)
    machine, source = machine_of(log.fields, log.header, processors, nodes)
    workload = clean(
        log.fields,
        machine,
        name=name or log_name(path),
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
    if log.skipped:
        entry["removed"] = {"malformed": len(log.skipped)} | entry["removed"]
    return replace(workload, history=(*imported, entry))


def open_workload(path: str | os.PathLike[str], processors: int | None = None) -> Workload:
    """
    Open a workload that swflow wrote, or a log, which is cleaned by the default rules.

    Parameters
    ----------
    path : path-like
        ``.parquet`` (a workload, or an imported log), ``.swf`` or ``.swf.gz``.
    processors : int, optional
        The machine's processors, instead of the workload's own.

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
        workload = read_workload(path)
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
    """Return the machine of a log, and where its size comes from: given, the header, or the widest job."""
    from swflow.swf import header_number

    if processors is not None:
        return Machine.of(processors, nodes), "given"
    for key in ("MaxProcs", "MaxNodes"):
        stated = header_number(header, key)
        if stated is not None and stated > 0:
            return Machine.of(stated, nodes or header_number(header, "MaxNodes")), f"header ({key})"
    widest = fields.select(pl.max_horizontal("allocated_processors", "requested_processors").max()).item()
    return Machine.of(max(1, int(widest)), nodes), "widest job"
