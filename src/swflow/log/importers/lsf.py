"""LSF: the file lsb.acct, with JOB_FINISH records of versions 7 to 10."""

import re
from collections.abc import Iterator, Sequence

import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import conformed
from swflow.log.importers.ended import NEEDED, with_run_times
from swflow.log.importers.lines import read_text
from swflow.log.importers.notation import moments
from swflow.log.importers.records import DEPENDENCIES, NOT_MODELLED, RECORD_COLUMNS, ImportedLog, Site, Tally, make_log

#: The fields before the lists of hosts (IBM Spectrum LSF, configuration reference, lsb.acct).
_FIRST = (
    "event", "version", "end", "job", "user_id", "options", "processors", "submit", "begin", "deadline", "start",
    "user", "queue", "resources", "depends", "pre_exec", "from_host", "cwd", "in_file", "out_file", "err_file",
    "job_file",
)  # fmt: skip

#: The fields after the command: 19 of rusage, and others up to the reason of the termination.
_USED = 19
_AFTER = (
    "mail_user", "project", "exit_status", "most_processors", "shell", "time_event", "index", "memory", "swap",
    "in_spool", "command_spool", "reservation", "sla", "mask", "more", "exit_info", "warning", "warning_time",
    "charged", "license_project", "application", "post_exec", "estimate", "job_group", "requeue_values", "options_2",
    "resize_command", "resize_time", "reservation_2", "description",
)  # fmt: skip

#: The fields of version 10 after the lists that follow `_AFTER`.
_LAST = ("run_limit", "options_3", "mean_memory", "effective_resources")

_FIELD = re.compile(r'"((?:[^"]|"")*)"|(\S+)')

#: The reasons of a termination by a user or an administrator.
_CANCELLED = ("8", "9", "14", "15")


def import_lsf(path: str, site: Site) -> ImportedLog:
    """
    Import files lsb.acct of LSF.

    Every JOB_FINISH record is one job; elements of arrays are jobs. Processors are the slots in the list of execution
    hosts, which can be shortened (``4*host``). Memory is that of the whole job. Jobs that exited because a user or an
    administrator killed them, or that never started, are cancelled.
    """
    tally = Tally()
    rows = []
    for number, record in _records(read_text(path).decode("utf-8", "replace"), tally):
        fields = [quoted.replace('""', '"') if quoted or not bare else bare for quoted, bare in _FIELD.findall(record)]
        if fields[0] != "JOB_FINISH":
            tally.add(f"{fields[0]} records, which are not jobs", 1, number)
            continue
        row = _row(fields)
        if row is None:
            tally.add("malformed record", 1, number, removed=True)
        else:
            rows.append({"line": number, **row})
    if not rows:
        raise SwflowError(f"{path}: no valid JOB_FINISH record; expected the file lsb.acct of LSF")
    arrays = {row["array"] for row in rows}
    for row in rows:
        ids, others = _predecessors(str(row.pop("condition")))
        row["depends_on"] = [f"{one}_*" if one in arrays else one for one in ids] or None
        tally.add(NOT_MODELLED, others, int(str(row["line"])))
    table = pl.DataFrame(rows, {name: RECORD_COLUMNS.get(name, pl.String()) for name in rows[0]} | {"line": pl.Int64()})
    for name in ("submit", "eligible", "start", "end"):
        found, _ = moments(table[f"{name}_text"], site.time_zone)
        table = table.with_columns(found.alias(name))
    processors = pl.coalesce("allocated_processors", "requested_processors")
    tally.note(table, DEPENDENCIES, pl.col("depends_on").is_not_null())
    records = with_run_times(conformed(table, {**RECORD_COLUMNS, **NEEDED}), tally)
    records = records.with_columns(
        average_cpu_time=pl.col("average_cpu_time") / processors, used_memory=pl.col("used_memory") / processors
    )
    return make_log(records, tally, site, source=path, form="lsf")


def _records(text: str, tally: Tally) -> Iterator[tuple[int, str]]:
    """Yield records with the numbers of their first lines; texts can contain line breaks."""
    record: list[str] = []
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r'\s*"[A-Z_]+" "[0-9.]+" [0-9]', line):
            if record:
                yield first, "\n".join(record)
            record, first = [line], number
        elif record and line.strip():
            tally.add("mended: line breaks in a value", 1, number)
            record.append(line)
        elif line.strip() and not line.startswith("#"):
            tally.add("malformed line", 1, number, removed=True)
    if record:
        yield first, "\n".join(record)


def _row(fields: Sequence[str]) -> dict[str, object] | None:
    """Return the values of a record; None if it is cut off before its status."""
    if len(fields) < len(_FIRST) + 4:
        return None
    first = dict(zip(_FIRST, fields, strict=False))
    rest = fields[len(_FIRST) :]
    _, rest = _hosts(rest)
    hosts, rest = _hosts(rest)
    if hosts is None or len(rest) < 4:
        return None
    status, _, name, _ = rest[:4]
    used, after = rest[4 : 4 + _USED], dict(zip(_AFTER, rest[4 + _USED :], strict=False))
    after |= _last(rest[4 + _USED + len(_AFTER) :])
    started = first["start"] not in ("", "0")
    gpus = re.search(r"ngpus(?:_\w+)?=([0-9]+)", first["resources"] + after.get("effective_resources", ""))
    nodes = len({host for host, _ in hosts}) or None
    index = after.get("index", "0")
    is_element = index not in ("", "0", "-1")
    asked = _count(first["processors"])
    cpu = [seconds for seconds in map(_float, used[:2]) if seconds is not None and seconds >= 0]
    memory, limit, estimate = (_float(after.get(name, "")) for name in ("memory", "run_limit", "estimate"))
    return {
        "site_job_id": f"{first['job']}[{index}]" if is_element else first["job"],
        "array": first["job"] if is_element else None,
        "submit_text": first["submit"],
        "condition": first["depends"],
        "eligible_text": first["begin"] if first["begin"] > "0" else first["submit"],
        "start_text": first["start"],
        "end_text": first["end"],
        "allocated_processors": sum(count for _, count in hosts) or None if started else None,
        "requested_processors": asked,
        "nodes": nodes if started else None,
        "gpus": int(gpus[1]) * (nodes or 1) if gpus else None,
        "requested_time": next((time for time in (limit, estimate) if time and time > 0), None),
        "average_cpu_time": sum(cpu) if cpu else None,
        "used_memory": memory if memory and memory > 0 else None,
        "status": 1 if status == "64" else 5 if not started or after.get("exit_info") in _CANCELLED else 0,
        "user": first["user"],
        "group": after.get("project") or None,
        "queue": first["queue"],
        "executable": name,
    }


_AT_END = re.compile(
    r"\s*(?:(?:done|ended|exit|post_done|post_err)\(\s*([0-9]+(?:\[[0-9]+\])?)\s*(?:,[^()]*)?\)|([0-9]+))\s*"
)


def _predecessors(condition: str) -> tuple[list[str], bool]:
    """
    Return the jobs whose ends a condition names by their ids, and whether it has other parts.

    Examples
    --------
    >>> _predecessors("done(12) && ended(13[2])"), _predecessors('13 && done("a*")'), _predecessors("")
    ((['12', '13[2]'], False), (['13'], True), ([], False))
    """
    parts = condition.split("&&") if condition.strip() else []
    found = [match[1] or match[2] for part in parts if (match := _AT_END.fullmatch(part))]
    return found, len(found) < len(parts)


def _last(fields: Sequence[str]) -> dict[str, str]:
    """
    Return the values of `_LAST`, or nothing if the record does not have them.

    Two lists precede these fields, each after its length: pairs, and the usage of each host in 5 or 6 fields.
    """
    rest = _after_list(fields, 2)
    for size in (6, 5):
        found = _after_list(rest, size)
        are_numbers = [re.fullmatch(r"-?[0-9]{1,19}", text) is not None for text in found[: len(_LAST)]]
        if are_numbers == [True, True, True, False]:
            return dict(zip(_LAST, found, strict=False))
    return {}


def _after_list(fields: Sequence[str], size: int) -> Sequence[str]:
    """Return the fields after a list of entries of ``size`` fields; nothing if no number of entries precedes them."""
    count = fields[0] if fields else ""
    return fields[1 + size * int(count) :] if re.fullmatch("[0-9]{1,6}", count) else []


def _hosts(fields: Sequence[str]) -> tuple[list[tuple[str, int]] | None, Sequence[str]]:
    """Return a list of hosts with their slots, which follows its length, and the other fields; None if it is odd."""
    count = _count(fields[0]) if fields else 0
    if count is None:
        count = 0 if fields[0] in ("0", "-1") else None
    if count is None or len(fields) < count + 1:
        return None, fields[1:]
    found = []
    for text in fields[1 : count + 1]:
        slots, star, name = text.partition("*")
        found.append((name, int(slots)) if star and slots.isdigit() else (text, 1))
    return found, fields[count + 1 :]


def _count(text: str) -> int | None:
    """Return a positive whole number; None for other text."""
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,9}", text) else None


def _float(text: str) -> float | None:
    """Return a number; None for other text, and for NO_VAL."""
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]+)?", text) and text not in ("4294967295", "-1") else None
