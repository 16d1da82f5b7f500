"""PBS and Torque: accounting files, with E records of ended jobs."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import polars as pl

from swflow.errors import SwflowError
from swflow.log.importers import pbs_widths
from swflow.log.importers.lines import read_text, values_of
from swflow.log.importers.notation import local_moments, moments, times
from swflow.log.importers.records import (
    DEPENDENCIES,
    GPUS,
    NOT_MODELLED,
    OVERLAPPING,
    RERUN,
    ImportedLog,
    Site,
    Tally,
    make_log,
)
from swflow.log.importers.slurm import kilobytes, seconds

#: Meaning of the letters of records; only E is an ended job.
RECORDS: dict[str, str] = {
    "A": "aborted by the server", "B": "reservation began", "C": "checkpointed", "c": "shrunk",
    "D": "deletion asked for", "E": "ended", "F": "reservation finished", "K": "reservation removed",
    "k": "reservation removed", "L": "license", "l": "license", "M": "moved", "P": "provisioning", "p": "provisioning",
    "Q": "queued", "R": "rerun", "r": "resumed", "S": "started", "s": "started", "T": "restarted", "U": "reservation",
    "u": "updated", "Y": "reservation confirmed", "z": "suspended", "e": "phase ended",
}  # fmt: skip

_LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;(\w);([^;]*);(.*)", re.DOTALL | re.ASCII)
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_KEY = re.compile(rf"(?:^|\s)({_NAME.pattern})=")


def import_pbs(path: str, site: Site) -> ImportedLog:
    """
    Import a concatenation of accounting files of PBS Professional, OpenPBS or Torque.

    Every E record is one job of the log, also for jobs that were rerun. Processors are as in `pbs_widths.widths`. Exit
    status 0 is completed, 271 and negative values are cancelled, others, and those of exceeded limits, are failed.
    Ids of jobs contain the name of their server if the jobs belong to several servers.
    """
    text, tally = read_text(path).decode("utf-8", "replace"), Tally()
    rows = []
    for number, (letter, name, *message) in _records(text, tally):
        if letter != "E":
            tally.add(f"{letter} records ({RECORDS.get(letter, 'unknown')})", 1, number)
            continue
        values = _values(" ".join(message))
        job, point, server = name.partition(".")
        rows.append({"line": number, "site_job_id": job, "server": point + server, **_raw(values)})
    if not rows:
        found = ", ".join(f"{count:,} {what}" for what, (count, _) in (tally.notes | tally.removed).items())
        raise SwflowError(f"{path}: no E record of an ended job ({found or 'the file is empty'})")
    table = pl.DataFrame(rows, {name: pl.Int64() if name in _NUMBERS else pl.String() for name in rows[0]})
    servers = sorted(set(table["server"]))
    if len(servers) > 1:
        tally.note(table, f"jobs of {len(servers)} servers taken as one machine", pl.lit(True))
    else:
        table = table.with_columns(server=pl.lit(""))
    computer = servers[0].strip(".") if len(servers) == 1 else None
    return make_log(_typed(table, site, tally), tally, site, source=path, form="pbs", computer=computer or None)


def _records(text: str, tally: Tally) -> Iterator[tuple[int, list[str]]]:
    """
    Yield the number of the first line of each record, and its letter, job and lines of the message.

    A line that begins no record continues the previous one.
    """
    record: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        if match := _LINE.match(line):
            if record:
                yield first, record
            record, first = [*match.groups()], number
        elif line.strip() and record:
            tally.add("mended: line breaks in a value", 1, number)
            record.append(line)
        elif line.strip():
            tally.add("malformed line", 1, number, removed=True)
    if record:
        yield first, record


def _values(message: str) -> dict[str, str]:
    """Split ``key=value key=value``; values can contain spaces."""
    found: dict[str, str] = {}
    for word in message.split():
        key, is_equal, value = word.partition("=")
        if not (is_equal and _is_key(key)):
            return {key: value.strip('"') for key, value in values_of(message, list(_KEY.finditer(message))).items()}
        found[key] = value
    return {key: value.strip('"') for key, value in found.items()} if '"' in message else found


@lru_cache(maxsize=10_000)
def _is_key(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


#: Exit statuses of jobs that were killed for exceeding a limit, of Torque (-12 to -10) and PBS Professional.
_LIMIT_EXCEEDED = (-12, -11, -10, *range(-29, -23))

#: The keys of durations and amounts of memory.
_KEYS = {
    "walltime": "resources_used.walltime", "limit": "Resource_List.walltime", "cput": "resources_used.cput",
    "mem": "resources_used.mem", "asked_mem": "Resource_List.mem",
    "process_mem": "Resource_List.pmem",
}  # fmt: skip

#: The values of a record that are numbers; all others are text.
_NUMBERS = ("line", "allocated_processors", "requested_processors", "nodes", "exit", "gpus", "below")


def _raw(values: Mapping[str, str]) -> dict[str, str | int | None]:
    """Return the used values of one record."""
    counted = values.keys() & pbs_widths.COUNTED.keys()
    odd = sorted(key for key in counted if not pbs_widths.COUNTED[key].fullmatch(values[key]))
    widths = pbs_widths.widths(values)
    odd += [] if widths.is_readable else ["exec_host"]
    account = values.get("account") or values.get("project")
    if account in {"_pbs_project_default", "null"}:
        account = None
    chunks = (values.get(key, "") for key in ("Resource_List.select", "exec_vnode"))
    asked_memory = values.get("Resource_List.mem") or next(filter(None, map(pbs_widths.memory_of_chunks, chunks)), None)
    return {
        "submit": values.get("ctime") or values.get("qtime") or values.get("etime"),
        "eligible": values.get("etime"),
        "start": values.get("start"),
        "end": values.get("end"),
        **{name: values.get(key) for name, key in _KEYS.items()},
        "asked_mem": asked_memory,
        "allocated_processors": widths.allocated,
        "requested_processors": widths.requested,
        "nodes": widths.nodes,
        "gpus": widths.gpus,
        "below": widths.below,
        "unreadable": ", ".join(odd) or None,
        "exit": pbs_widths.whole(values.get("Exit_status")),
        "depend": values.get("depend") or values.get("Resource_List.depend"),
        "user": values.get("user"),
        "group": account or values.get("group"),
        "unix_group": values.get("group") if account else None,
        "queue": values.get("queue"),
        "partition": values.get("partition"),
        "executable": values.get("jobname"),
    }


def _seconds(name: str) -> pl.Expr:
    """Return a duration in seconds, the unit of a bare number; Torque writes days as in 1:12:00:00."""
    return seconds(pl.col(name).str.replace(r"^\s*(\d+):(\d+:\d+:\d+)", "${1}-${2}"), bare=1.0)


def _never_started(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Set the start of jobs that ended in the queue to their end, and leave out jobs without times."""
    idle = pl.col("walltime").is_null() | (_seconds("walltime") == 0)
    killed = (pl.col("exit") == 271) | (pl.col("exit") < 0)
    never = pl.col("end").is_not_null() & idle & killed
    never &= pl.col("start").is_null() | (pl.col("start") > pl.col("end"))
    chosen = tally.note(table, "never started (kept, with a run time of 0)", never)
    table = table.with_columns(
        start=pl.when(chosen).then("end").otherwise("start"),
        allocated_processors=pl.when(~chosen).then("allocated_processors"),
    )
    table = tally.drop(table, "no start or no end", pl.col("start").is_null() | pl.col("end").is_null())
    return tally.drop(table, "ended before it started", pl.col("end") < pl.col("start"))


#: Dependencies on the ends of jobs, or of all tasks of an array, and their ids.
_AT_END = r"after(?:ok|any|notok)(?:array)?(:[\w.@:\[\]-]+)"
_PREDECESSOR = re.compile(r":([0-9]+)(\[[0-9]*\])?(\.[\w.-]+)?")


def _predecessors(table: pl.DataFrame) -> pl.Series:
    """Return the predecessors in ``depend``, by their ids; without a server, they are jobs of the job's own one."""

    def found(depend: str | None, own: str) -> list[str]:
        names = []
        for ids in re.findall(_AT_END, depend or ""):
            for number, task, server in _PREDECESSOR.findall(ids):
                name = (server or own) if own else ""
                names.append(f"{number}{name}_*" if task == "[]" else f"{number}{task}{name}")
        return names

    rows = table.select("depend", "server").iter_rows()
    return pl.Series([found(*row) or None for row in rows], dtype=pl.List(pl.String))


def _typed(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Convert text to numbers, and drop records without times."""
    for name in ("submit", "eligible", "start", "end"):
        clock = table[name].str.to_datetime("%m/%d/%Y %H:%M:%S", strict=False, time_unit="ms")
        found = local_moments(clock, site.time_zone)[0].fill_null(moments(table[name], site.time_zone)[0])
        tally.unreadable(table, name, times(pl.col(name)), found)
        table = table.with_columns(found.alias(name))
    for what in table["unreadable"].drop_nulls().unique(maintain_order=True):
        tally.note(table, f"unreadable {what} (left out)", pl.col("unreadable") == what)
    table = tally.drop(table, "whole arrays, whose tasks are jobs", pl.col("site_job_id").str.ends_with("[]"))
    for note, which in ((pbs_widths.BELOW, 1), (pbs_widths.REQUEST_TAKEN, 2)):
        tally.note(table, note, pl.col("below") == which)
    table = _never_started(table, tally)
    table = tally.drop_repeated(table, "site_job_id", "server", "start", "end")
    before = pl.col("end").shift(1).over("site_job_id", "server", order_by="start")
    # Servers that are installed anew, or that run out of numbers, give a number to another job.
    again = before.is_between("submit", "start").fill_null(False)
    tally.note(table, RERUN, again)
    tally.note(table, OVERLAPPING, before > pl.col("start"))
    tally.note(table, "tasks of arrays", pl.col("site_job_id").str.contains(r"\[|-"))
    tally.note(table, GPUS, pl.col("gpus") > 0)
    tally.note(table, DEPENDENCIES, pl.col("depend").str.contains(_AT_END))
    # A job with before… is named by the dependency of another one.
    others = pl.col("depend").str.replace_all(_AT_END, "").str.contains(r"(^|,)\s*(after|on|sync|runone)")
    tally.note(table, NOT_MODELLED, others)
    amounts = {name: _seconds(name) for name in ("walltime", "limit", "cput")}
    amounts |= {name: kilobytes(pl.col(name), unit="") for name in ("mem", "asked_mem", "process_mem")}
    texts, table = table, table.with_columns(**amounts)
    for name in amounts:
        tally.unreadable(texts, _KEYS[name], pl.col(name), table[name])
    span = pl.col("end") - pl.col("start")
    tally.note(table, "end - start differs from the wall time used", (span - pl.col("walltime")).abs() > 60)
    processors = pl.coalesce("allocated_processors", "requested_processors")
    exit_status = pl.col("exit")
    return table.with_columns(
        # The wall time is that of the job's first process; the processors were allocated from start to end.
        run_time=span,
        requested_time=pl.col("limit"),
        average_cpu_time=pl.col("cput") / processors,
        used_memory=pl.col("mem") / processors,
        requested_memory=pl.coalesce(pl.col("asked_mem") / processors, "process_mem"),
        memory=(pl.coalesce("asked_mem", pl.col("process_mem") * processors) / 1024).ceil(),
        site_job_id=pl.concat_str("site_job_id", "server"),
        array=pl.col("site_job_id").str.extract(r"^(\d+)(?:\[\d+\]|-\d+)$", 1) + pl.col("server"),
        submit=pl.when(again).then(before).otherwise("submit"),
        depends_on=pl.when(~again).then(_predecessors(table)),
        status=pl.when(exit_status == 0)
        .then(1)
        .when(exit_status.is_in(_LIMIT_EXCEEDED))
        .then(0)
        .when((exit_status == 271) | (exit_status < 0))
        .then(5)
        .when(exit_status.is_not_null())
        .then(0),
    )
