"""Read the queue of a Slurm site at one moment: the output of ``squeue``."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from swflow.errors import SwflowError, shown
from swflow.files.reading import FILE, read_text
from swflow.forecast.aligned import Aligned
from swflow.forecast.queued import SENTINELS, Place, Queue, Queued, past, place_of, tasks_in, within_limits
from swflow.log.importers.notation import moments
from swflow.log.importers.slurm import seconds, state
from swflow.log.recognise import is_yaml, without_messages, without_preamble
from swflow.log.separators import separator_of
from swflow.values import MOST_PROCESSORS, local_time, moment, whole_number

#: A format of ``squeue -o`` with all columns that are read: job, user, account, partition, CPUs, limit, submission,
#: start, state, reason, QOS, dependency.
FORMAT = "%i|%u|%a|%P|%C|%l|%V|%S|%T|%r|%q|%E"

#: The columns that a text needs, by their names in its header, and other names of them.
_NEEDED = ("JOBID", "USER", "PARTITION", "CPUS", "TIME_LIMIT", "SUBMIT_TIME", "STATE")
_OTHER_NAMES = {"ST": "STATE", "NODELIST(REASON)": "REASON", "S": "START_TIME"}

#: Other columns that are read.
_READ = ("ACCOUNT", "START_TIME", "REASON", "QOS", "DEPENDENCY", "ELIGIBLE_TIME", "ARRAY_JOB_ID", "ARRAY_TASK_ID")

#: Texts of unknown or infinite limits, and of unknown times.
_NO_LIMIT = {"UNLIMITED", "INFINITE", "NOT_SET", "PARTITION_LIMIT", "INVALID", "N/A", "NONE", "-", ""}
_NO_TIME = {"N/A", "NONE", "UNKNOWN", "(NULL)", "NULL", ""}

#: The name of an array that waits, such as 50_[0-59%20], of a task, or of a component of a heterogeneous job.
_ARRAY = re.compile(r"([0-9]+)_\[?([^\]]*)\]?(?:%[0-9]+)?")


def read_squeue(path: Path) -> Queue:
    """
    Return the jobs that wait or run, from the output of ``squeue --json``, ``--yaml``, ``-o`` or ``-O``.

    Each task of a job array is a job. A text has a header with the columns of `FORMAT`, in any order, of which reason,
    QOS, account, dependency and, if no job runs, start can be missing; they are separated by ``|``, a tab, ``;`` or
    ``,``, or have fixed widths. A text with only a header is an empty queue. Raise `SwflowError`, with the line or the
    job, for another format, and for values that a queue cannot have.
    """
    text = read_text(path, FILE, errors="replace").lstrip("\ufeff")
    bare = without_messages(text.encode())[0]
    if bare.lstrip().startswith((b"{", b"[")) or is_yaml(bare):
        from swflow.forecast.squeue_json import read_json

        return read_json(bare.decode(), path)
    return Queue(within_limits(_text_rows(text, path), str(path)))


def _text_rows(text: str, path: Path) -> Iterator[Queued]:
    rest, before = without_preamble(text.encode())
    lines = [
        (number, line.rstrip("\r\n")) for number, line in enumerate(rest.decode().splitlines(), before + 1)
        if line.strip()
    ]  # fmt: skip
    if not lines:
        found = f"{shown(text.strip()[:60])}: no header" if text.strip() else "'empty'"
        raise SwflowError(f"{path}:1: {found}; expected squeue -o '{FORMAT}'")
    number, header = lines[0]
    likely = separator_of(header)
    mark = likely if likely in header and likely != " " else None
    names = _names(header.split(mark))
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        found = "no header" if len(missing) == len(_NEEDED) else f"no column {', '.join(missing)}"
        raise SwflowError(f"{path}:{number}: {shown(header[:60])}: {found}; expected squeue -o '{FORMAT}'")
    for number, line in lines[1:]:
        if line == header or line.startswith("CLUSTER:"):
            raise SwflowError(
                f"{path}:{number}: {shown(line[:60])}: a second queue; expected that of one cluster at one moment"
            )
    aligned = Aligned(header, [line for _, line in lines[1:]]) if mark is None else None
    rows = [_fields(line.split(mark) if aligned is None else aligned.cells(line), names, f"{path}:{number}")
            for number, line in lines[1:]]  # fmt: skip
    columns = dict.fromkeys(_NEEDED + _READ, pl.String)
    table = pl.DataFrame([[row.get(name, "") for name in columns] for row in rows], columns, orient="row")
    table = table.with_columns(limit=seconds(pl.col("TIME_LIMIT")), state=state(pl.col("STATE")))
    for (number, _), row in zip(lines[1:], table.iter_rows(named=True), strict=True):
        yield from _jobs_of(row, f"{path}:{number}")


def _names(parts: Sequence[str]) -> list[str]:
    """Return the names of the columns of a text, in capitals, as `_NEEDED` and `_READ` spell them."""
    names = [part.strip().upper() for part in parts]
    return [_OTHER_NAMES.get(name, name) for name in names]


def _fields(parts: Sequence[str] | None, names: Sequence[str], where: str) -> dict[str, str]:
    """Return the fields of a line by the names of their columns."""
    if parts is None or len(parts) != len(names):
        count = "another number of" if parts is None else len(parts)
        raise SwflowError(f"{where}: {count} columns, but {len(names)} in the header; expected squeue -o '{FORMAT}'")
    found: dict[str, str] = {}
    for name, part in zip(names, parts, strict=True):
        if name not in found or "_" in part:  # -O JobID,JobArrayID: both are named JOBID
            found[name] = part.strip()
    return found


def _jobs_of(row: Mapping[str, Any], where: str) -> Iterator[Queued]:
    """Yield the job of a line, or the tasks of an array."""
    place = place_of([row["state"] or row["STATE"]], where)
    if place is Place.ENDED:
        return
    reason = row["REASON"].strip()
    if reason.startswith("(") and reason.endswith(")"):
        reason = reason[1:-1]
    dependency = row["DEPENDENCY"] if row["DEPENDENCY"].upper() not in _NO_TIME else ""
    start = None
    if place is Place.RUNS:
        start = past(_time(row["START_TIME"], f"{where}: START_TIME"), f"{where}: START_TIME")
    job, array, tasks = _array_of(row)
    found = Queued(
        job, row["USER"], row["PARTITION"], _cpus(row["CPUS"], f"{where}: CPUS"), _limit(row, where),
        past(_time(row["SUBMIT_TIME"], f"{where}: SUBMIT_TIME"), f"{where}: SUBMIT_TIME"), start,
        row["ACCOUNT"], row["QOS"], "" if start else reason, "" if start else dependency,
        None if start else _begin(row, reason, where), place is Place.HELD,
    )  # fmt: skip
    yield from tasks_in(found, array, tasks if start is None else "", where)


def _array_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the name of a job, and the number and the tasks of an array."""
    array, tasks = row["ARRAY_JOB_ID"], row["ARRAY_TASK_ID"]
    if tasks and tasks.upper() not in _NO_TIME and array:
        return f"{array}_{tasks}", array, tasks
    match = _ARRAY.fullmatch(row["JOBID"])
    return (row["JOBID"], match[1], match[2]) if match else (row["JOBID"], "", "")


def _begin(row: Mapping[str, Any], reason: str, where: str) -> Any:
    """Return the earliest start of a job that waits for it."""
    for column in ("ELIGIBLE_TIME", "START_TIME"):
        if reason.lower() == "begintime" and row[column].upper() not in _NO_TIME:
            return _time(row[column], f"{where}: {column}")
    return None


def _time(text: str, where: str) -> Any:
    """Return a local time, or the seconds since 1970 if the text is a number or has an offset from UTC."""
    if re.fullmatch(r"[0-9]{1,15}", text):
        return moment(text, where)
    if re.search(r":[0-9][0-9](?:\.[0-9]+)?\s*(?:Z|[+-][0-9][0-9]:?[0-9][0-9])$", text):
        found, _ = moments(pl.Series([text]), "UTC")
        return local_time(text, where) if found[0] is None else moment(found[0], where)
    return local_time(text, where)


def _limit(row: Mapping[str, Any], where: str) -> float:
    text = row["TIME_LIMIT"].upper()
    if text in _NO_LIMIT or (text.isdigit() and int(text) in SENTINELS):
        return math.nan
    if row["limit"] is None:
        raise SwflowError(f"{where}: TIME_LIMIT: {shown(row['TIME_LIMIT'])}; expected a limit such as 2-12:00:00")
    return row["limit"] or math.nan


def _cpus(text: str, where: str) -> int:
    """Return a number of CPUs; large numbers can end in K, which stands for 1,024."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([KM])", text)
    value: Any = round(float(match[1]) * 1024 ** " KM".index(match[2])) if match else text
    return whole_number(value, where, least=1, most=MOST_PROCESSORS)
