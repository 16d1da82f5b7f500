"""PBS and Torque: accounting files, with E records of ended jobs."""

import re
from collections.abc import Iterator, Mapping

import polars as pl

from swflow.columns import numbers
from swflow.errors import SwflowError
from swflow.log.importers.lines import read_text, values_of
from swflow.log.importers.records import DEPENDENCIES, GPUS, ImportedLog, Site, Tally, make_log, unix_seconds
from swflow.log.importers.slurm import kilobytes, seconds
from swflow.values import MOST_UNITS

#: Meaning of the letters of records; only E is an ended job.
RECORDS: dict[str, str] = {
    "A": "aborted by the server", "B": "reservation began", "C": "checkpointed", "c": "shrunk",
    "D": "deletion asked for", "E": "ended", "F": "reservation finished", "K": "reservation removed",
    "k": "reservation removed", "L": "license", "l": "license", "M": "moved", "P": "provisioning", "p": "provisioning",
    "Q": "queued", "R": "rerun", "r": "resumed", "S": "started", "s": "started", "T": "restarted", "U": "reservation",
    "u": "updated", "Y": "reservation confirmed", "z": "suspended", "e": "phase ended",
}  # fmt: skip

_LINE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?;(\w);([^;]*);(.*)", re.DOTALL)
_KEY = re.compile(r"(?:^|\s)([A-Za-z_][\w.]*)=")
_PLACE = re.compile(r"(?P<place>[\d,\-]+)(?:\*(?P<times>\d+))?(?![\w.*])")


def import_pbs(path: str, site: Site) -> ImportedLog:
    """
    Import a concatenation of accounting files of PBS Professional, OpenPBS or Torque.

    Every E record is one job of the log, also for jobs that were rerun. Processors are those of ``exec_host``, else
    ``resources_used.ncpus``. The request is ``Resource_List.ncpus``, ``select`` or ``nodes``. Exit status 0 is
    completed, 271 and negative values are cancelled, others are failed.
    """
    text, tally = read_text(path).decode("utf-8", "replace"), Tally()
    rows, servers = [], set()
    for number, line in _records(text, tally):
        match = _LINE.match(line)
        assert match is not None
        _, letter, name, message = match.groups()
        if letter != "E":
            tally.add(f"{letter} records ({RECORDS.get(letter, 'unknown')})", 1, number)
            continue
        values = _values(message)
        rows.append({"line": number, "site_job_id": name.partition(".")[0], **_raw(values)})
        servers.add(name.partition(".")[2])
    if not rows:
        found = ", ".join(f"{count:,} {what}" for what, (count, _) in (tally.notes | tally.removed).items())
        raise SwflowError(f"{path}: no E record of an ended job ({found or 'the file is empty'})")
    table = pl.DataFrame(rows, {name: pl.Int64() if name in _NUMBERS else pl.String() for name in rows[0]})
    computer = servers.pop() if len(servers) == 1 else None
    return make_log(_typed(table, site, tally), tally, site, source=path, form="pbs", computer=computer or None)


def _records(text: str, tally: Tally) -> Iterator[tuple[int, str]]:
    """Yield records with the numbers of their lines; a line that begins no record continues the previous one."""
    record: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        if _LINE.match(line):
            if record:
                yield first, " ".join(record)
            record, first = [line], number
        elif line.strip() and record:
            tally.add("mended: line breaks in a value", 1, number)
            record.append(line)
        elif line.strip():
            tally.add("malformed line", 1, number, removed=True)
    if record:
        yield first, " ".join(record)


def _values(message: str) -> dict[str, str]:
    """Split ``key=value key=value``; values can contain spaces."""
    found = values_of(message, list(_KEY.finditer(message)))
    return {key: value.strip('"') for key, value in found.items()}


#: The keys of durations and amounts of memory.
_KEYS = {
    "walltime": "resources_used.walltime", "limit": "Resource_List.walltime", "cput": "resources_used.cput",
    "mem": "resources_used.mem", "asked_mem": "Resource_List.mem",
}  # fmt: skip

#: The values of a record that are numbers; all others are text.
_NUMBERS = ("line", "allocated_processors", "requested_processors", "nodes", "exit", "gpus")


def _raw(values: Mapping[str, str]) -> dict[str, str | int | None]:
    """Return the used values of one record."""
    hosts = values.get("exec_host", "")
    nodes = [(parts[-2], _PLACE.match(parts[-1])) for parts in _on_nodes(hosts)]
    places = [_count_places(match) for _, match in nodes]
    is_readable = None not in places
    odd = [] if is_readable else ["exec_host"]
    odd += [key for key, pattern in _COUNTED.items() if key in values and not pattern.fullmatch(values[key])]
    used = _whole(values.get("resources_used.ncpus"))
    account = values.get("account") or values.get("project")
    if account in {"_pbs_project_default", "null"}:
        account = None
    return {
        "submit": values.get("ctime") or values.get("qtime") or values.get("etime"),
        "eligible": values.get("etime"),
        "start": values.get("start"),
        "end": values.get("end"),
        **{name: values.get(key) for name, key in _KEYS.items()},
        "allocated_processors": _bounded(sum(filter(None, places)) or used if is_readable else used),
        "requested_processors": _bounded(_requested(values)),
        "unreadable": ", ".join(odd) or None,
        "nodes": len({node for node, _ in nodes}) or None,
        "exit": _whole(values.get("Exit_status")),
        # Torque states them with the nodes.
        "gpus": _bounded(
            _whole(values.get("Resource_List.ngpus"))
            or _in_chunks(values.get("Resource_List.select", ""), "ngpus", missing=0)
            or _in_chunks(values.get("Resource_List.nodes", ""), "gpus", missing=0)
        ),
        "depend": values.get("depend"),
        "user": values.get("user"),
        "group": account or values.get("group"),
        "unix_group": values.get("group") if account else None,
        "queue": values.get("queue"),
        "partition": values.get("partition"),
        "executable": values.get("jobname"),
    }


#: What the values with numbers look like; the names of nodes and resources are not checked.
_COUNTED = {
    "resources_used.ncpus": re.compile(r"\d{0,15}"),
    "Resource_List.ncpus": re.compile(r"\d{0,15}"),
    "Resource_List.ngpus": re.compile(r"\d{0,15}"),
    "Exit_status": re.compile(r"-?\d{1,15}|"),
    **dict.fromkeys(
        ("Resource_List.select", "Resource_List.nodes"),
        re.compile(r"[^:+]*(?:(?::(?!(?:n?cpus|n?gpus|ppn)=)[^:+]*|:(?:n?cpus|n?gpus|ppn)=\d{1,15})|\+[^:+]*)*"),
    ),
}


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,15}", text) else None


def _on_nodes(hosts: str) -> Iterator[list[str]]:
    """Yield the parts of ``exec_host``, such as ``n1/0-7``, split at the slashes; without those that have none."""
    for part in hosts.split("+"):
        if "/" in part:
            yield part.split("/")


def _count_places(match: re.Match[str] | None) -> int | None:
    """Count processors of ``node/0``, ``node/0-7``, ``node/1,3`` (Torque) and ``node/0*8`` (PBS); None: unreadable."""
    if match is None:
        return None
    if match["times"]:
        return _whole(match["times"])
    count = 0
    for part in match["place"].split(","):
        low, dash, high = part.partition("-")
        first, last = _whole(low), _whole(high if dash else low)
        if first is None or last is None or last < first:
            return None
        count += last - first + 1
    return count


def _bounded(count: int | None) -> int | None:
    """Return a count; None for 0, and for one that no machine has."""
    return count if count and abs(count) <= MOST_UNITS else None


def _requested(values: Mapping[str, str]) -> int | None:
    """Return the processors of ``select=2:ncpus=8+1:ncpus=4``, ``ncpus=4`` or ``nodes=2:ppn=8``."""
    select, nodes = values.get("Resource_List.select"), values.get("Resource_List.nodes")
    if select:
        return _in_chunks(select, "ncpus", missing=1)
    if nodes and not nodes.isdigit():
        return _in_chunks(nodes, "ppn", missing=1)
    return _whole(values.get("Resource_List.ncpus")) or _whole(nodes)


def _in_chunks(text: str, key: str, missing: int) -> int:
    """Return the amount of one key in all chunks, such as ``2:ncpus=8:ngpus=4+1:ncpus=4``."""
    total = 0
    for chunk in text.split("+"):
        first, *options = chunk.split(":")
        each = next((_whole(option.partition("=")[2]) for option in options if option.startswith(f"{key}=")), None)
        count = _whole(first)
        total += (1 if count is None else count) * (each or missing)
    return total


def _seconds(name: str) -> pl.Expr:
    """Return a duration in seconds, which is also the unit of a bare number (Torque from 5.1.2 on)."""
    return seconds(pl.col(name), bare=1.0)


def _typed(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Convert text to numbers, and drop records without times."""
    for name in ("submit", "eligible", "start", "end"):
        clock = table[name].str.to_datetime("%m/%d/%Y %H:%M:%S", strict=False, time_unit="ms")
        plain = table.select(numbers(pl.col(name), 1e18)).to_series()  # `make_log` checks their range
        moments = plain.fill_null(unix_seconds(clock, site.time_zone)[0])
        tally.unreadable(table, name, pl.col(name), moments)
        table = table.with_columns(moments.alias(name))
    for what in table["unreadable"].drop_nulls().unique(maintain_order=True):
        tally.note(table, f"unreadable {what} (left out)", pl.col("unreadable") == what)
    table = tally.drop(table, "whole arrays, whose tasks are jobs", pl.col("site_job_id").str.ends_with("[]"))
    table = tally.drop(table, "no start or no end", pl.col("start").is_null() | pl.col("end").is_null())
    table = tally.drop(table, "ended before it started", pl.col("end") < pl.col("start"))
    table = tally.drop_repeated(table, "site_job_id", "start", "end")
    again = pl.col("line").cum_count().over("site_job_id", order_by="start") > 1
    before = pl.col("end").shift(1).over("site_job_id", order_by="start")
    tally.note(table, "further runs of jobs that were rerun", again)
    tally.note(table, "tasks of arrays", pl.col("site_job_id").str.contains(r"\[|-"))
    tally.note(table, GPUS, pl.col("gpus") > 0)
    tally.note(table, DEPENDENCIES, pl.col("depend").str.contains(r"after(ok|any|notok):"))
    amounts = {name: _seconds(name) for name in ("walltime", "limit", "cput")}
    amounts |= {name: kilobytes(pl.col(name), unit="") for name in ("mem", "asked_mem")}
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
        requested_memory=pl.col("asked_mem") / processors,
        memory=(pl.col("asked_mem") / 1024).ceil(),
        array=pl.col("site_job_id").str.extract(r"^(\d+)\[\d+\]$", 1),
        submit=pl.max_horizontal("submit", before),  # null if there is no run before
        depends_on=pl.when(~again).then(
            pl.col("depend")
            .str.extract_all(r"after(?:ok|any|notok):[\w.@:\[\]-]+")
            .list.join(":")
            .str.extract_all(r":\d+(?:\[\d*\])?")
            .list.eval(pl.element().str.strip_prefix(":").str.replace("[]", "_*", literal=True))
        ),
        status=pl.when(exit_status == 0)
        .then(1)
        .when((exit_status == 271) | (exit_status < 0))
        .then(5)
        .when(exit_status.is_not_null())
        .then(0),
    )
