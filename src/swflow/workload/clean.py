"""Clean a log: convert its lines to the job table and count every removed job under its reason."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.files.tables import read_metadata, workload_with
from swflow.jobs import busy
from swflow.jobs.header import Header
from swflow.jobs.machine import Machine
from swflow.jobs.table import SWF_FIELDS, Entry, Workload, sort_jobs
from swflow.log.settings import RULES
from swflow.log.swf import LogParts, SwfLog
from swflow.phrases import counted
from swflow.workload.removals import (
    no_job_left,
    removals,
    require_complete,
    require_limits,
    require_unique,
    within_limits,
    without_removed,
)


def clean(
    fields: pl.DataFrame,
    machine: Machine,
    *,
    name: str,
    period: tuple[float | None, float | None] = (None, None),
    header: Mapping[str, list[str]] | None = None,
    keep_cancelled: bool = False,
    keep_instant: bool = False,
    dependencies: bool = False,
    **rules: Any,
) -> Workload:
    """
    Convert the lines of a log to a job table; the options are those of `clean_log`, the rules those of `removals`.

    Unknown values (-1) become null, ``processors`` (allocated, else requested) and ``estimate`` (requested time, else
    run time) are derived, and jobs are sorted by (submit time, job id). ``fields`` are the 18 fields of every line, as
    returned by `swflow.log.swf.read_swf`. With a ``period``, only jobs submitted at or after the first time and before
    the second are kept, seconds from the log's start. The new entry of the history has ``read``, ``kept`` and
    ``removed`` (reason to number of jobs).

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
    reasons = list(removals(machine, period, keep_cancelled=keep_cancelled, columns=fields.schema, **rules))
    require_limits(fields, name)
    jobs = prepared(fields, keep_cancelled, dependencies, keep_instant)
    require_complete(jobs["job_id"].null_count(), "job_id", name)
    require_unique(jobs["job_id"].to_numpy(), name)
    jobs, removed = without_removed(jobs, reasons)
    require_complete(jobs["submit_time"].null_count(), "submit_time", name)
    if jobs.is_empty():
        raise no_job_left(name, fields.height, removed)
    entry: Entry = {"stage": "clean", "read": fields.height, "kept": jobs.height, "removed": removed}
    jobs, lost = with_known_predecessors(jobs)
    if lost:
        entry["notes"] = {LOST_DEPENDENCIES: lost}
    return Workload(sort_jobs(jobs), machine, name, Header.of(header), (entry,))


#: The run time of a kept job that ended within a second, seconds.
INSTANT = 1.0

#: The note on dependencies that a workload cannot keep.
LOST_DEPENDENCIES = "dependencies on jobs that are not in the workload (left out)"


def ended_at_once() -> pl.Expr:
    """
    Return which jobs of a log ran, but ended within a second: they have processors and a run time of 0.

    A job that was cancelled in the queue has status 5.
    """
    known = (pl.col("run_time") == 0) & (pl.col("wait_time") >= 0) & (pl.col("allocated_processors") > 0)
    return (known & (pl.col("status").is_null() | (pl.col("status") != 5))).fill_null(False)


def prepared(
    fields: pl.DataFrame, keep_cancelled: bool = False, dependencies: bool = False, keep_instant: bool = False
) -> pl.DataFrame:
    """
    Return the fields of a log as jobs: -1 replaced by null, processors and estimates derived, no job removed.

    ``keep_cancelled`` and ``dependencies`` add columns, and ``keep_instant`` changes run times, as `clean_log`
    describes.
    """

    def known(column: str) -> pl.Expr:
        """Replace 0 by null: some logs write 0 processors, or an estimate of 0 s, for an unknown value."""
        return pl.when(pl.col(column) > 0).then(pl.col(column))

    jobs = fields.select(
        *(pl.when(pl.col(name) != -1).then(pl.col(name)).cast(dtype) for name, dtype in SWF_FIELDS.items()),
        *(name for name in fields.columns if name not in SWF_FIELDS),
    ).with_columns(
        processors=pl.coalesce(known("allocated_processors"), known("requested_processors")),
        estimate=pl.coalesce(known("requested_time"), pl.col("run_time")),
    )
    if keep_cancelled:
        ran = pl.col("run_time").is_not_null() & (pl.col("run_time") > 0)
        after = pl.when((pl.col("status") == 5) & ~ran & (pl.col("wait_time") >= 0)).then(pl.col("wait_time"))
        jobs = jobs.with_columns(cancelled_after=after)
        left = pl.col("cancelled_after").is_not_null()
        jobs = jobs.with_columns(
            run_time=pl.when(left).then(0.0).otherwise("run_time"),
            estimate=pl.when(left).then(pl.col("estimate").fill_null(0.0)).otherwise("estimate"),
        )
    if keep_instant:
        jobs = jobs.with_columns(run_time=pl.when(ended_at_once()).then(INSTANT).otherwise("run_time"))
        jobs = jobs.with_columns(estimate=pl.max_horizontal("estimate", pl.min_horizontal("run_time", INSTANT)))
    if dependencies:
        named = pl.when(pl.col("preceding_job_id") > 0).then(pl.concat_list("preceding_job_id"))
        imported = [pl.col("depends_on")] if "depends_on" in jobs.columns else []
        jobs = jobs.with_columns(depends_on=pl.coalesce(*imported, named))
    return jobs


def with_known_predecessors(jobs: pl.DataFrame, known: pl.Series | None = None) -> tuple[pl.DataFrame, int]:
    """
    Return the jobs without the dependencies on unknown jobs, and the number of these.

    ``known`` has the ids of all jobs of the workload (default: those of the given ones).
    """
    if "depends_on" not in jobs.columns or jobs["depends_on"].null_count() == jobs.height:
        return jobs, 0
    edges = jobs.select("job_id", wanted="depends_on").filter(pl.col("wanted").list.len() > 0).explode("wanted")
    kept = edges.filter(pl.col("wanted").is_in((jobs["job_id"] if known is None else known).implode()))
    of_job = kept.group_by("job_id").agg(depends_on=pl.col("wanted").sort())
    found = jobs.drop("depends_on").join(of_job, on="job_id", how="left", maintain_order="left")
    return found.select(jobs.columns), edges.height - kept.height


def without_lost(workload: Workload) -> Workload:
    """Return a workload whose last step removed jobs without the dependencies on these, with their number as a note."""
    jobs, lost = with_known_predecessors(workload.jobs)
    if not lost:
        return workload
    *before, last = workload.history
    entry = last | {"notes": {**last.get("notes", {}), LOST_DEPENDENCIES: lost}}
    return replace(workload, jobs=jobs, history=(*before, entry))


#: The columns from which `recorded_use` is computed.
RECORDED = ("submit_time", "wait_time", "run_time", "processors")

#: The largest share of the schedule's time in which its use may exceed the machine without a warning.
TOLERATED = 0.001

#: The sources of a guessed machine size, and the label of each guess.
GUESSED = {"widest job": "guessed: widest job", "recorded peak": "guessed: peak use"}


def clean_log(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    processors: int | None = None,
    nodes: int | None = None,
    since: date | None = None,
    until: date | None = None,
    lenient: bool = False,
    drop: Sequence[str] = RULES,
    without_status: Iterable[int] = (),
    flurries: Iterable[str] = (),
    keep_cancelled: bool = False,
    keep_instant: bool = False,
    dependencies: bool = False,
    resources: Mapping[str, str] | None = None,
) -> Workload:
    r"""
    Read a log and clean it.

    Parameters
    ----------
    path : path-like
        A file in the Standard Workload Format, plain or gzipped, or a log that was imported to Parquet.
    name : str, optional
        The log's name (default: the name of the file).
    processors, nodes : int, optional
        The machine. The default is MaxProcs and MaxNodes of the header. If the header has neither, the size is guessed
        with a warning, from the peak of the recorded schedule or the widest job.
    since, until : datetime.date or datetime.datetime, optional
        Keep only jobs submitted on or after the first and before the second, in the local time of the log's site.
    lenient : bool
        Skip and count malformed lines instead of raising an error.
    drop : sequence of str
        The rules to apply: unknown-submit-time, no-processors, wider-than-machine, unknown-run-time, zero-run-time
        (default: all).
    without_status : iterable of int
        Remove jobs with these statuses (5 is cancelled).
    flurries : iterable of str
        Conditions on the columns, such as ``user_id == 50 and 24439 <= job_id <= 64542`` or ``gpus > 8`` for an
        imported log. Jobs that meet one are removed.
    keep_cancelled : bool
        Keep jobs that were cancelled in the queue (status 5, without a run time, with a wait time), with a run time of
        0 and the time from the submission to the cancellation in ``cancelled_after``.
    keep_instant : bool
        Keep jobs that ran but ended within a second (processors, a run time of 0, not cancelled), with a run time of
        1 s, since they waited like others.
    dependencies : bool
        The log's preceding jobs and think times (fields 17 and 18) are dependencies: write them to ``depends_on``.
        Dependencies on jobs that the log lacks, or that are removed, are left out and counted.
    resources : mapping of str to str, optional
        Formulas of the columns of the log that give the units of a resource that each job occupies, as
        ``{"watts": "field_19 * processors"}``. In a text, fields after the 18th are ``field_19`` and so on.

    Returns
    -------
    Workload
        Its history entry has ``read``, ``kept`` and ``removed`` (reason to number of jobs, or of ``malformed`` lines),
        ``machine_from``, ``recorded_peak`` and, for doubtful values, ``warnings``.

    Raises
    ------
    SwflowError
        If the file cannot be read, a rule or a condition is unknown, a job id is missing or duplicate, a time or a
        number of processors exceeds the limits, a submit time is missing and its rule is not applied, or no job
        remains.

    Examples
    --------
    >>> import swflow
    >>> from pathlib import Path
    >>> path = Path("/tmp/example-clean.swf")
    >>> _ = path.write_text("; MaxProcs: 8\n1 0 -1 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1\n")
    >>> swflow.clean(path, processors=16).machine.processors
    16
    """
    from swflow.log.imported import read_log

    log, imported = read_log(path, lenient=lenient, further=bool(resources))
    warnings = warnings_about(log)
    if resources:
        from swflow.log.importers.demands import read_formulas, with_demands

        fields, notes = with_demands(log.fields, read_formulas(resources, "--resource"), "--resource")
        log = replace(log, fields=fields)
        warnings += [f"{count:,} jobs: {reason}" for reason, (count, _) in notes.items()]
    name = name or log_name(path)
    fields = log.fields.filter(within_limits()) if lenient else log.fields
    require_limits(fields, name)
    skipped = len(log.skipped) + log.fields.height - fields.height
    repeated = 0
    if lenient:
        once = fields.filter(pl.col("job_id").is_first_distinct() | (pl.col("job_id").fill_null(-1) == -1))
        repeated, fields = fields.height - once.height, once
    if fields.is_empty():
        raise SwflowError(f"clean: {name}: no job is within the limits of times and processors")
    machine, source = machine_of(fields, log.header, processors, nodes)
    begin, end = (log.header.seconds_since_start(moment) if moment else None for moment in (since, until))
    workload = clean(
        fields,
        machine,
        name=name,
        period=(begin, end),
        header=log.header,
        keep_cancelled=keep_cancelled,
        keep_instant=keep_instant,
        dependencies=dependencies,
        drop=drop,
        without_status=without_status,
        flurries=flurries,
    )
    entry = workload.history[0] | {"machine_from": source, "read": log.fields.height + len(log.skipped)}
    counts = {"malformed": skipped, "repeated-job-id": repeated}
    entry["removed"] = {reason: count for reason, count in counts.items() if count} | entry["removed"]
    return replace(workload, history=(*imported, with_recorded_use(entry, workload.jobs, machine, warnings)))


def warnings_about(log: SwfLog | LogParts) -> list[str]:
    """Return warnings about departures of a log from its format, and about the lines that were skipped."""
    warnings = list(log.notes)
    if log.skipped:
        line, reason = log.skipped[0]
        skipped = counted(len(log.skipped), "malformed line")
        warnings.append(f"{skipped} skipped; the first is line {line}: {reason}")
    return warnings


def with_recorded_use(entry: Entry, jobs: pl.DataFrame, machine: Machine, warnings: Sequence[str] = ()) -> Entry:
    """Add the processor use of the recorded schedule, and warnings, also about the machine, to a history entry."""
    peak, beyond = recorded_use(jobs, machine.processors)
    entry["recorded_peak"] = peak
    warnings = list(warnings)
    if entry["machine_from"] in GUESSED:
        entry["guessed_processors"] = machine.processors
        warnings.append(
            f"the machine's size is not stated: {machine.processors:,} processors "
            f"({GUESSED[entry['machine_from']]}), which may be too few; state it: --machine-processors"
        )
    # Clocks of nodes differ by seconds, so nearly every log exceeds its machine for moments.
    if beyond >= TOLERATED and jobs["wait_time"].null_count() < jobs.height:
        warnings.append(
            f"the recorded schedule has up to {peak:,} processors busy, more than the machine's "
            f"{machine.processors:,} in {beyond:.2%} of its time; its utilization and load cannot be trusted there"
        )
    return entry | ({"warnings": warnings} if warnings else {})


def recorded_use(jobs: pl.DataFrame, machine: int) -> tuple[int, float]:
    """
    Return the peak processor use of the recorded schedule, and the share of time in which it exceeds the machine.

    Jobs with an unknown value do not count. In a log without any wait time, jobs start at their submit times. The peak
    is 0 if no start is known. Jobs that end at an instant release their processors before other jobs start. The share
    is that of the time from the first start to the last end.

    Examples
    --------
    >>> jobs = pl.DataFrame({"submit_time": [0.0, 5.0], "wait_time": [0.0, 1.0], "run_time": [10.0, 4.0],
    ...                      "processors": [3, 2]})
    >>> recorded_use(jobs, 4)
    (5, 0.4)
    """
    if jobs["wait_time"].null_count() == jobs.height:
        jobs = jobs.with_columns(wait_time=pl.lit(0.0))
    used = busy.recorded_use(jobs, machine)
    return (used.peak, used.beyond / used.span) if used else (0, 0.0)


def open_workload(
    path: str | os.PathLike[str], processors: int | None = None, columns: Iterable[str] | None = None
) -> Workload:
    r"""
    Open a workload that swflow wrote, or clean a log by the default rules.

    Parameters
    ----------
    path : path-like
        A ``.parquet`` file (workload or imported log), ``.swf`` or ``.swf.gz``.
    processors : int, optional
        Processors of the machine (default: as stored in the workload).
    columns : iterable of str, optional
        Columns of a workload to read in addition to those that every workload has (default: all).

    Returns
    -------
    Workload

    Raises
    ------
    SwflowError
        If the file cannot be read.

    Examples
    --------
    >>> import swflow
    >>> from pathlib import Path
    >>> path = Path("/tmp/example-open.swf")
    >>> _ = path.write_text("; MaxProcs: 8\n1 0 -1 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1\n")
    >>> swflow.open_workload(path).jobs["run_time"].to_list()
    [60.0]
    """
    about = read_metadata(path) if Path(path).suffix == ".parquet" else {"kind": "log"}
    if about.get("kind") != "log":
        return workload_with(about, path, columns, processors)
    # A job wider than the requested machine is reported as an error, not dropped.
    rules = [rule for rule in RULES if processors is None or rule != "wider-than-machine"]
    return clean_log(path, processors=processors, drop=rules)


def log_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a log's file without folder and suffixes: ``kth`` for ``logs/kth.swf.gz``."""
    return Path(path).name.removesuffix(".gz").removesuffix(".swf").removesuffix(".parquet")


def machine_of(
    fields: pl.DataFrame | Iterable[pl.DataFrame],
    header: Header,
    processors: int | None,
    nodes: int | None,
) -> tuple[Machine, str]:
    """
    Return the machine of a log and the source of its size: given, the header, or one of `GUESSED`.

    The guess is the number of processors of the widest job, or the peak use if that is larger. If the header has only
    the number of nodes and a job has more processors than that, the nodes have several: the guess is a multiple of it.
    The fields can be in parts, which are read only for a guess.
    """
    if processors is not None:
        return Machine.of(processors, nodes), "given"
    stated = stated_machine(header, nodes)
    if stated is not None and stated[1] != "header (MaxNodes)":
        return stated
    widest, parts = 1, []
    for part in [fields] if isinstance(fields, pl.DataFrame) else fields:
        most = part.select(pl.max_horizontal("allocated_processors", "requested_processors").max()).item()
        widest = max(widest, most or 0)
        parts.append(prepared(part).select(RECORDED))
    if stated is not None and widest <= stated[0].processors:
        return stated
    peak, _ = recorded_use(pl.concat(parts), widest)
    size, source = max(widest, peak), "recorded peak" if peak > widest else "widest job"
    if stated is not None:
        nodes = stated[0].nodes
        size = -(-size // nodes) * nodes
    return Machine.of(size, nodes), source


def stated_machine(header: Header, nodes: int | None = None) -> tuple[Machine, str] | None:
    """Return the machine that a header states and the source of its size, as `machine_of` does; None without a size."""
    from swflow.log.swf import GUESSED_MACHINE

    for key in ("MaxProcs", "MaxNodes"):
        stated = header.number(key)
        if stated is not None and stated > 0:
            source = "recorded peak" if GUESSED_MACHINE in header.get("Note", ()) else f"header ({key})"
            return Machine.of(stated, nodes or header.number("MaxNodes")), source
    return None


def is_as_recorded(workload: Workload) -> bool:
    """Return whether jobs and machine are those of the log, so that its schedule can be compared with the machine."""
    return all(entry.get("stage") in {"import", "clean", "select"} for entry in workload.history)


def guess_of(workload: Workload) -> str | None:
    """
    Return the label of a guessed machine size, or None if the size is known.

    Examples
    --------
    >>> entry = {"stage": "clean", "machine_from": "recorded peak", "guessed_processors": 8}
    >>> guess_of(Workload(pl.DataFrame(), Machine.of(8), "log", history=(entry,)))
    'guessed: peak use'
    """
    guesses = (entry for entry in reversed(workload.history) if entry.get("machine_from") in GUESSED)
    found: Entry = next(guesses, {})
    is_same = found.get("guessed_processors") == workload.machine.processors
    return GUESSED[found["machine_from"]] if is_same else None
