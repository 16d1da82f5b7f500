"""Read the queue of a Slurm site at one moment: the output of ``squeue``."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from swflow.errors import SwflowError, shown
from swflow.files.reading import FILE, parse_json, read_text
from swflow.log.importers.slurm import seconds, state
from swflow.values import MOST_PROCESSORS, as_moment, local_time, mapping, moment, whole_number
from swflow.values import seconds as span
from swflow.values import text as words

#: The format of the text that is read, with its header: job, user, account, partition, CPUs, limit, submission, start,
#: state.
FORMAT = "%i|%u|%a|%P|%C|%l|%V|%S|%T"

_HEADER = "JOBID|USER|ACCOUNT|PARTITION|CPUS|TIME_LIMIT|SUBMIT_TIME|START_TIME|STATE"


class Queued(NamedTuple):
    """A job of a queue: times are local ``datetime``s or seconds since 1970; ``start`` is None while it waits."""

    job: str
    user: str
    partition: str
    processors: int
    limit: float
    submit: datetime | float
    start: datetime | float | None


def read_squeue(path: Path) -> list[Queued]:
    """
    Return the jobs that wait or run, from the output of ``squeue --json`` or ``squeue -o FORMAT``.

    Raise `SwflowError`, with the line or the job, for another format, and for values that a queue cannot have.
    """
    text = read_text(path, FILE, errors="replace")
    rows = _json_rows(text, path) if text.lstrip().startswith("{") else _text_rows(text, path)
    return [row for row in rows if row is not None]


def _text_rows(text: str, path: Path) -> Iterator[Queued | None]:
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines or lines[0][1] != _HEADER:
        found = lines[0][1][:60] if lines else "empty"
        raise SwflowError(f"{path}:{lines[0][0] if lines else 1}: {found!r}; expected squeue -o '{FORMAT}'")
    columns = _HEADER.split("|")
    for number, line in lines[1:]:
        parts = line.split("|")
        if len(parts) != len(columns):
            raise SwflowError(f"{path}:{number}: {len(parts)} columns; expected squeue -o '{FORMAT}'")
    table = pl.DataFrame([line.split("|") for _, line in lines[1:]], dict.fromkeys(columns, pl.String), orient="row")
    table = table.with_columns(limit=seconds(pl.col("TIME_LIMIT")), state=state(pl.col("STATE")))
    for (number, _), row in zip(lines[1:], table.iter_rows(named=True), strict=True):
        where = f"{path}:{number}"
        if not _is_queued(row["state"]):
            yield None
            continue
        yield Queued(
            row["JOBID"], row["USER"], row["PARTITION"].split(",")[0],
            whole_number(row["CPUS"], f"{where}: CPUS", least=1, most=MOST_PROCESSORS),
            row["limit"] or _NO_LIMIT,
            _past(local_time(row["SUBMIT_TIME"], f"{where}: SUBMIT_TIME"), f"{where}: SUBMIT_TIME"),
            None if row["state"] == "PENDING"
            else _past(local_time(row["START_TIME"], f"{where}: START_TIME"), f"{where}: START_TIME"),
        )  # fmt: skip


def _json_rows(text: str, path: Path) -> Iterator[Queued | None]:
    content = parse_json(text, str(path))
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list):
        raise SwflowError(f"{path}: JSON without a list 'jobs'; expected squeue --json")
    for place, job in enumerate(jobs, 1):
        where = f"{path}: job {place} of {len(jobs)}"
        job = mapping(job, where, "a mapping of squeue --json")
        for key in ("job_id", "job_state", "submit_time"):
            if key not in job:
                raise SwflowError(f"{where}: no {key}; expected squeue --json")
        states = job["job_state"]
        name = states[0] if isinstance(states, list) and states else states
        if not isinstance(name, str):
            raise SwflowError(f"{where}: job_state: {shown(states)}; expected a state such as PENDING")
        if not _is_queued(name):
            yield None
            continue
        user, partition = (words(job.get(key) or "", f"{where}: {key}") for key in ("user_name", "partition"))
        limit = _value(job.get("time_limit"), f"{where}: time_limit")
        start = None if name == "PENDING" else _moment(job.get("start_time"), f"{where}: start_time")
        yield Queued(
            str(whole_number(job["job_id"], f"{where}: job_id", most=2**63 - 1)), user, partition.split(",")[0],
            _processors(job.get("cpus"), f"{where}: cpus"),
            _NO_LIMIT if not limit else span(limit, f"{where}: time_limit") * 60,
            _moment(job["submit_time"], f"{where}: submit_time"), start,
        )  # fmt: skip


#: The limit of a job without one, seconds.
_NO_LIMIT = 30 * 86400.0


def _is_queued(name: str | None) -> bool:
    """Return whether a job in a state waits or runs."""
    return name in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED")


def _value(value: Any, where: str) -> Any:
    """Return a value of Slurm's JSON, which can be a mapping with ``set``, ``infinite`` and ``number``; None: unset."""
    if not isinstance(value, dict):
        return value
    if value.get("infinite") or not value.get("set", True):
        return None
    if "number" not in value:
        raise SwflowError(f"{where}: {shown(value)}; expected a number")
    return value["number"]


def _processors(value: Any, where: str) -> int:
    found = _value(value, where)
    return 1 if found is None or found == 0 else whole_number(found, where, least=1, most=MOST_PROCESSORS)


def _moment(value: Any, where: str) -> float:
    return _past(moment(_value(value, where) or 0, where), where)


def _past(found: Any, where: str) -> Any:
    """Return a moment; raise an error for one in the future, because the latest one is taken for the present."""
    given = found.timestamp() if isinstance(found, datetime) else found
    if given > time.time() + _TOLERANCE:
        shown_as = found if isinstance(found, datetime) else f"{as_moment(given):%Y-%m-%dT%H:%M:%S}"
        raise SwflowError(f"{where}: {shown_as} is in the future; expected a job that was submitted or has started")
    return found


#: Tolerated difference of clocks and time zones, seconds.
_TOLERANCE = 2 * 86400.0
