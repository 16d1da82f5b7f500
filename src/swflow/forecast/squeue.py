"""Read the queue of a Slurm site at one moment: the output of ``squeue``."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from swflow.errors import SwflowError
from swflow.log.importers.slurm import seconds, state

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
    """Return the jobs that wait or run, from the output of ``squeue --json`` or ``squeue -o FORMAT``."""
    text = path.read_text("utf-8", errors="replace")
    try:
        rows = _json_rows(text) if text.lstrip().startswith("{") else _text_rows(text, path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SwflowError(f"{path}: no jobs of squeue; expected squeue --json, or squeue -o '{FORMAT}'") from error
    return [row for row in rows if row is not None]


def _text_rows(text: str, path: Path) -> list[Queued | None]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or lines[0].strip() != _HEADER:
        raise SwflowError(f"{path}:1: {lines[0][:60] if lines else 'empty'!r}; expected squeue -o '{FORMAT}'")
    parts = [line.strip().split("|") for line in lines[1:]]
    wrong = next((number for number, part in enumerate(parts, 2) if len(part) != len(FORMAT.split("|"))), None)
    if wrong:
        raise SwflowError(f"{path}:{wrong}: {len(parts[wrong - 2])} columns; expected squeue -o '{FORMAT}'")
    if not parts:
        return []
    table = pl.DataFrame(parts, _HEADER.split("|"), orient="row")
    table = table.with_columns(limit=seconds(pl.col("TIME_LIMIT")), state=state(pl.col("STATE")))
    return [
        _queued(row["state"], row["JOBID"], row["USER"], row["PARTITION"], int(row["CPUS"]), row["limit"],
                datetime.fromisoformat(row["SUBMIT_TIME"]),
                datetime.fromisoformat(row["START_TIME"]) if row["state"] != "PENDING" else None)
        for row in table.iter_rows(named=True)
    ]  # fmt: skip


def _json_rows(text: str) -> list[Queued | None]:
    def number(value: Any) -> float | None:
        """Return a number of Slurm's JSON, which can be a mapping with ``set`` and ``number``."""
        if isinstance(value, dict):
            return float(value["number"]) if value.get("set", True) and not value.get("infinite") else None
        return None if value is None else float(value)

    found = []
    for job in json.loads(text)["jobs"]:
        states = job["job_state"]
        name = states if isinstance(states, str) else states[0]
        limit = number(job.get("time_limit"))
        found.append(
            _queued(
                name, str(job["job_id"]), job.get("user_name", ""), job.get("partition", ""),
                int(number(job.get("cpus")) or 1), None if limit is None else limit * 60,
                number(job["submit_time"]) or 0.0, number(job.get("start_time")) if name != "PENDING" else None,
            )
        )  # fmt: skip
    return found


def _queued(name: str, job: str, user: str, partition: str, processors: int, limit: float | None,
            submit: datetime | float, start: datetime | float | None) -> Queued | None:  # fmt: skip
    """Return a job, or None if it neither waits nor runs; a job without a limit counts with 30 days."""
    if name not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"):
        return None
    return Queued(job, user, partition.split(",")[0], processors, limit or 30 * 86400.0, submit, start)
