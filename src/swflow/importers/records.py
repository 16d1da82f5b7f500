"""What all importers share: the records of jobs, what is counted on the way, names, and the log they become."""

import hashlib
import hmac
import os
import secrets
import zoneinfo
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.jobs import SWF_FIELDS
from swflow.log_table import NAME_KEYS

#: The columns of a table of records, one row a run of a job. Times are Unix seconds, spans seconds, memory KB per
#: processor; ``line`` is where the record begins in the file, from 1. Null is unknown.
RECORD_COLUMNS: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "site_job_id": pl.String(),
    "submit": pl.Float64(),
    "start": pl.Float64(),
    "end": pl.Float64(),
    "run_time": pl.Float64(),
    "suspended_time": pl.Float64(),
    "allocated_processors": pl.Int64(),
    "requested_processors": pl.Int64(),
    "average_cpu_time": pl.Float64(),
    "used_memory": pl.Float64(),
    "requested_time": pl.Float64(),
    "requested_memory": pl.Float64(),
    "status": pl.Int64(),
    "user": pl.String(),
    "group": pl.String(),
    "unix_group": pl.String(),
    "queue": pl.String(),
    "partition": pl.String(),
    "executable": pl.String(),
    "nodes": pl.Int64(),
    "gpus": pl.Int64(),
}

#: The columns of an imported log beyond the fields of the standard, where the source knows them: what the site calls
#: the job, its Unix group (``group_id`` being the account), GPUs, and seconds suspended.
EXTRA_COLUMNS: dict[str, pl.DataType] = {
    "site_job_id": pl.String(),
    "unix_group_id": pl.Int64(),
    "gpus": pl.Int64(),
    "suspended_time": pl.Float64(),
}

#: Columns of names in records, and what they become.
_NAMED = {
    "user": "user_id",
    "group": "group_id",
    "unix_group": "unix_group_id",
    "queue": "queue_id",
    "partition": "partition_id",
}

#: Where the key of `anonymized` is kept if no other file is named.
DEFAULT_KEY = Path("~/.config/swflow/anonymize.key")


@dataclass
class Tally:
    """
    What an importer counted: records left out, and what was noteworthy in others.

    Parameters
    ----------
    removed, notes : dict
        Reason to (records, line of the first).
    """

    removed: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def drop(self, records: pl.DataFrame, reason: str, where: pl.Expr) -> pl.DataFrame:
        """Leave records out, counted under a reason."""
        chosen = _chosen(records, where)
        self._count(self.removed, reason, records.filter(chosen)["line"])
        return records.filter(~chosen)

    def note(self, records: pl.DataFrame, reason: str, where: pl.Expr) -> None:
        """Count records that are kept."""
        self._count(self.notes, reason, records.filter(_chosen(records, where))["line"])

    def add(self, reason: str, count: int, line: int, *, removed: bool = False) -> None:
        """Count records that are in no table."""
        if count:
            counts = self.removed if removed else self.notes
            before, first = counts.get(reason, (0, line))
            counts[reason] = (before + count, min(first, line))

    def _count(self, counts: dict[str, tuple[int, int]], reason: str, lines: pl.Series) -> None:
        if len(lines):
            self.add(reason, len(lines), int(lines.min()), removed=counts is self.removed)  # type: ignore[arg-type]


def _chosen(records: pl.DataFrame, where: pl.Expr) -> pl.Series:
    """Return which records an expression chooses; one value a record also where the expression is a constant."""
    return records.select(where.fill_null(False) & pl.col("line").is_not_null()).to_series()


@dataclass(frozen=True)
class Site:
    """
    What the user says of the machine whose records are imported.

    Parameters
    ----------
    processors, nodes : int, optional
        The machine; by default as many processors as were ever busy at once.
    time_zone : str
        Of the clock in the records, such as ``Europe/Stockholm``.
    cluster : str, optional
        Which one, if the records are of several.
    key : bytes, optional
        With it, names become keyed hashes, and what the site calls its jobs is left out.
    """

    processors: int | None = None
    nodes: int | None = None
    time_zone: str = "UTC"
    cluster: str | None = None
    key: bytes | None = None

    def __post_init__(self) -> None:
        for name, value in (("--processors", self.processors), ("--nodes", self.nodes)):
            if value is not None and value < 1:
                raise SwflowError(f"{name}: must be at least 1, not {value}")
        try:
            zoneinfo.ZoneInfo(self.time_zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise SwflowError(
                f"--timezone: {self.time_zone!r} is no time zone; give a name such as Europe/Stockholm or UTC"
            ) from None


@dataclass(frozen=True)
class ImportedLog:
    """
    An imported log, ready to be written.

    Parameters
    ----------
    fields : polars.DataFrame
        The columns of `swflow.jobs.SWF_FIELDS` and of `EXTRA_COLUMNS` as far as known, by (submit time, line).
    header : dict
        As of a log in the Standard Workload Format, with names.
    history : tuple of dict
        One entry: what was read, kept, removed and noted.
    tally : Tally
        The same with the lines where each reason occurred first.
    """

    fields: pl.DataFrame
    header: dict[str, list[str]]
    history: tuple[dict[str, Any], ...]
    tally: Tally


def make_log(
    records: pl.DataFrame, tally: Tally, site: Site, *, source: str, form: str, computer: str | None = None
) -> ImportedLog:
    """
    Make a log of records.

    Jobs are numbered from 1 by (submit time, line), users and the like in the order of their first job.

    Parameters
    ----------
    records : polars.DataFrame
        The columns of `RECORD_COLUMNS`, as far as known.
    tally : Tally
        What was counted so far; more is counted here.
    site : Site
        The machine.
    source, form : str
        The file, for errors, and what it is, such as ``sacct``.
    computer : str, optional
        The machine's name.

    Raises
    ------
    SwflowError
        If no record is left.
    """
    read = records.height + sum(count for count, _ in tally.removed.values())
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in RECORD_COLUMNS.items() if name not in records.columns]
    records = records.with_columns(missing).select(pl.col(name).cast(dtype) for name, dtype in RECORD_COLUMNS.items())
    records = tally.drop(records, "no submit time", pl.col("submit").is_null())
    if records.is_empty():
        reasons = ", ".join(f"{count:,} {reason} (line {line})" for reason, (count, line) in tally.removed.items())
        raise SwflowError(f"{source}: no job can be used of {read:,} records; {reasons or 'there is none'}")
    tally.note(records, "started before it was submitted", pl.col("start") < pl.col("submit"))
    records = records.sort("submit", "line", maintain_order=True)
    began = int(np.floor(records["submit"].min()))  # type: ignore[arg-type]
    peak = busiest(records)
    header = _header(records, site, peak, began, form, computer)
    columns: dict[str, pl.Expr | pl.Series] = {
        "job_id": pl.int_range(1, pl.len() + 1),
        "submit_time": pl.col("submit") - began,
        "wait_time": pl.col("start") - pl.col("submit"),
        "executable_id": numbered(records["executable"])[0],
    }
    for name, column in _NAMED.items():
        ids, names = numbered(records[name])
        columns[column] = ids
        if names:
            shown = [anonymized(text, column, site.key) for text in names]
            header[NAME_KEYS[column]] = [f"{number} {text}" for number, text in enumerate(shown, 1)]
    table = records.with_columns(**columns)
    extra = [
        name
        for name in EXTRA_COLUMNS
        if table[name].null_count() < table.height and not (site.key and name == "site_job_id")
    ]
    fields = table.select(
        (pl.col(name) if name in table.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in (SWF_FIELDS | {name: EXTRA_COLUMNS[name] for name in extra}).items()
    )
    entry = {
        "stage": "import",
        "format": form,
        "read": read,
        "kept": fields.height,
        "removed": {reason: count for reason, (count, _) in tally.removed.items()},
        "notes": {reason: count for reason, (count, _) in tally.notes.items()},
    }
    return ImportedLog(fields, header, (entry,), tally)


def _header(
    records: pl.DataFrame, site: Site, peak: int, began: int, form: str, computer: str | None
) -> dict[str, list[str]]:
    header = {"Version": ["2.2"]}
    if computer:
        header["Computer"] = [anonymized(computer, "computer", site.key)]
    header["Conversion"] = [f"swflow import {form}"]
    header["MaxJobs"] = header["MaxRecords"] = [str(records.height)]
    header["UnixStartTime"] = [str(began)]
    header["TimeZoneString"] = [site.time_zone]
    header["StartTime"] = [datetime.fromtimestamp(began, UTC).strftime("%a %b %d %H:%M:%S %Z %Y")]
    if site.nodes:
        header["MaxNodes"] = [str(site.nodes)]
    header["MaxProcs"] = [str(site.processors or peak)]
    if site.processors is None:
        header["Note"] = ["MaxProcs is the number of processors that were ever busy at once; the machine may be larger"]
    return header


def busiest(records: pl.DataFrame) -> int:
    """Return how many processors were busy at once at most, by the recorded times; at least the widest job."""
    processors = pl.coalesce("allocated_processors", "requested_processors")
    table = records.select("start", end=pl.col("start") + pl.col("run_time"), processors=processors)
    widest = table["processors"].max() or 1
    ran = table.filter((pl.col("end") > pl.col("start")) & (pl.col("processors") > 0))
    if ran.is_empty():
        return int(widest)  # type: ignore[arg-type]
    times = np.concatenate([ran["start"].to_numpy(), ran["end"].to_numpy()])
    changes = np.concatenate([ran["processors"].to_numpy(), -ran["processors"].to_numpy()])
    order = np.lexsort((changes, times))  # who ends makes room for who starts at that moment
    return max(int(np.cumsum(changes[order]).max()), int(widest))  # type: ignore[arg-type]


def numbered(names: pl.Series) -> tuple[pl.Series, list[str]]:
    """
    Give names numbers from 1, in the order in which they occur first; empty ones are unknown.

    Examples
    --------
    >>> ids, names = numbered(pl.Series(["b", None, "a", "b", ""]))
    >>> ids.to_list(), names
    ([1, None, 2, 1, None], ['b', 'a'])
    """
    names = names.cast(pl.String)
    cleaned = names.to_frame("name").select(pl.when(pl.col("name").str.strip_chars() != "").then("name")).to_series()
    known = cleaned.drop_nulls().unique(maintain_order=True)
    numbers = pl.Series(range(1, len(known) + 1), dtype=pl.Int64)
    if known.is_empty():
        return pl.Series([None] * len(names), dtype=pl.Int64), []
    return cleaned.replace_strict(known, numbers, default=None, return_dtype=pl.Int64), known.to_list()


def anonymized(name: str, kind: str, key: bytes | None) -> str:
    """
    Return a name, or a hash of it if there is a key.

    The hash is HMAC-SHA256 of kind and name, cut to 12 hexadecimal digits: without the key nobody can try names, and
    two sites with two keys give one person two hashes.
    """
    if key is None:
        return name
    return hmac.new(key, f"{kind}\0{name}".encode(), hashlib.sha256).hexdigest()[:12]


def read_key(path: str | os.PathLike[str] | None) -> tuple[bytes, Path, bool]:
    """
    Read the key for hashing names; one that is missing is drawn and kept, for its owner's eyes only.

    Parameters
    ----------
    path : path-like, optional
        By default `DEFAULT_KEY`.

    Returns
    -------
    bytes, pathlib.Path, bool
        The key, where it is, and whether it was made now.

    Raises
    ------
    SwflowError
        If the file is too short for a key, or cannot be read or written.
    """
    path = Path(path or DEFAULT_KEY).expanduser()
    try:
        if not path.exists():
            with atomic_path(path) as temporary:
                temporary.touch(mode=0o600)
                temporary.write_text(secrets.token_hex(32) + "\n")
            return path.read_bytes().strip(), path, True
        key = path.read_bytes().strip()
    except OSError as error:
        raise SwflowError(f"{path}: the key cannot be read or written ({error.strerror}); name a file: --key") from None
    if len(key) < 16:
        raise SwflowError(f"{path}: a key has at least 16 characters; delete the file, and a key is drawn")
    return key, path, False


def unix_seconds(times: pl.Series, time_zone: str) -> tuple[pl.Series, pl.Series]:
    """
    Return Unix times of a site's clock: as the earlier and as the later of the two that an hour set back may mean.

    Parameters
    ----------
    times : polars.Series of Datetime
        Without a zone.
    time_zone : str
        The clock's zone.

    Returns
    -------
    tuple of two float64 Series
        Null where the clock never showed such a time (an hour that was skipped).

    Examples
    --------
    >>> clock = pl.Series([datetime(2023, 10, 29, 2, 30), datetime(2023, 3, 26, 2, 30)])
    >>> [times.to_list() for times in unix_seconds(clock, "Europe/Stockholm")]
    [[1698539400.0, None], [1698543000.0, None]]
    """
    first, second = (
        times.dt.replace_time_zone(time_zone, ambiguous=which, non_existent="null").dt.epoch("ms") / 1000
        for which in ("earliest", "latest")
    )
    return first, second
