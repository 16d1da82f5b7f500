"""Shared by all importers: records of jobs, counts of left-out records, names, and the resulting log."""

import hashlib
import hmac
import os
import secrets
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files.atomic import create_once
from swflow.files.reading import expanded
from swflow.jobs.header import NAME_KEYS, Header
from swflow.jobs.table import IMPORTED_COLUMNS, SWF_FIELDS, Entry, conformed
from swflow.log.imported import write_log
from swflow.log.importers.notation import filled
from swflow.log.site import Partition, busiest, partitions_of, with_sizes
from swflow.log.swf import GUESSED_MACHINE, write_swf
from swflow.values import LATEST, LONGEST_TIME, MOST_MILLISECONDS, MOST_PROCESSORS, as_moment

#: The columns of a table of records, one row per run of a job. Times are Unix seconds, durations seconds, memory KB
#: per processor. ``line`` is the record's first line in the file, counted from 1. ``memory`` is the whole job's, in MB.
#: ``array`` is the job array of a task, ``depends_on`` has the site's ids of the jobs that had to end before, where
#: ``ARRAY_*`` is every task of an array. Unknown values are null. Exports of swflow also have ``wait``, ``delay`` (the
#: time from the submission until a job was eligible), ``preceding`` (a ``site_job_id``), ``think_time`` and ``own_id``
#: (the site's id, if ``site_job_id`` is the number of the job).
RECORD_COLUMNS: dict[str, pl.DataType] = {
    **dict.fromkeys(
        ("submit", "eligible", "start", "end", "run_time", "suspended_time", "average_cpu_time", "used_memory",
         "requested_time", "requested_memory", "wait", "delay", "think_time"),
        pl.Float64(),
    ),
    **dict.fromkeys(
        ("line", "allocated_processors", "requested_processors", "status", "nodes", "requested_nodes", "gpus",
         "licenses", "memory", "array_limit"),
        pl.Int64(),
    ),
    **dict.fromkeys(
        ("site_job_id", "user", "group", "unix_group", "queue", "partition", "constraint", "executable", "array",
         "preceding", "own_id"),
        pl.String(),
    ),
    "depends_on": pl.List(pl.String()),
}  # fmt: skip

#: Notes on jobs that need more than processors and time.
GPUS, LICENSES, RESERVATIONS = "jobs with GPUs", "jobs with licenses", "jobs in advance reservations"
COUNTED_FEATURES = "constraints with brackets or counts, which are not simulated (left out)"

#: Notes on the times from which jobs may start.
LATER_ELIGIBLE = "jobs that became eligible after their submission (--begin, holds, dependencies)"
NOT_ELIGIBLE = "jobs without the time at which they became eligible (their waits count from submission)"

#: Notes on dependencies.
DEPENDENCIES = "jobs that depend on others"
NOT_MODELLED = "dependencies that are not modelled (on starts of jobs, names or alternatives; left out)"

#: Notes on several records of one job.
RERUN = "further runs of jobs that were rerun"
OVERLAPPING = "records of one job that overlap in time (not reruns)"

#: The earliest start of a log, Unix seconds (1980); earlier submit times are not Unix times.
EARLIEST = 315532800

#: Default file of the key of `anonymized`.
DEFAULT_KEY = Path("~/.config/swflow/anonymize.key")


@dataclass
class Tally:
    """Counts of an importer: records left out, and notes on others, by reason: (records, line of the first)."""

    removed: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def drop(self, records: pl.DataFrame, reason: str, where: pl.Expr) -> pl.DataFrame:
        """Leave records out and count them under a reason."""
        return records.filter(~self.note(records, reason, where, removed=True))

    def drop_repeated(self, records: pl.DataFrame, *identity: str) -> pl.DataFrame:
        """Leave out records that equal an earlier one in these columns, as of overlapping exports."""
        return self.drop(records, "the same record again", pl.struct(identity).is_first_distinct().not_())

    def note(self, records: pl.DataFrame, reason: str, where: pl.Expr, *, removed: bool = False) -> pl.Series:
        """Count records under a note (or as removed), and return which they are."""
        # The line makes it one value per record, also for a constant expression.
        chosen = records.select(where.fill_null(False) & pl.col("line").is_not_null()).to_series()
        lines = records["line"].filter(chosen)
        if len(lines):
            self.add(reason, len(lines), int(lines.min()), removed=removed)  # type: ignore[arg-type]
        return chosen

    def unreadable(self, records: pl.DataFrame, what: str, text: pl.Expr, values: pl.Series) -> None:
        """Note the records whose text is neither a placeholder nor 0 or -1, but whose value is null."""
        if not values.null_count():
            return
        unknown = records.filter(values.is_null())
        self.note(unknown, f"unreadable {what} (left out)", ~filled(text).is_in(["-1", "0"]))

    def add(self, reason: str, count: int, line: int, *, removed: bool = False) -> None:
        """Count records that are not in a table."""
        if count:
            counts = self.removed if removed else self.notes
            before, first = counts.get(reason, (0, line))
            counts[reason] = (before + count, min(first, line))


@dataclass(frozen=True)
class Site:
    """
    The machine whose records are imported, as the user states it.

    The default of ``processors``, of the machine and of each of the ``partitions``, is the peak number of busy
    processors, marked as a guess. ``cluster`` is the one to import if the records belong to several. With a ``key``,
    names become keyed hashes, and the site's job ids are dropped.

    Examples
    --------
    >>> Site(processors=2048, time_zone="Europe/Stockholm").partitions
    {}
    """

    processors: int | None = None
    nodes: int | None = None
    time_zone: str = "UTC"
    cluster: str | None = None
    key: bytes | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("--processors", self.processors), ("--nodes", self.nodes)):
            if value is not None and value < 1:
                raise SwflowError(f"{name}: {value}; expected at least 1")
        try:
            zoneinfo.ZoneInfo(self.time_zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise SwflowError(
                f"--timezone: {self.time_zone!r} is not a time zone; expected a name such as Europe/Stockholm or UTC"
            ) from None


@dataclass(frozen=True)
class ImportedLog:
    """
    An imported log.

    ``fields`` has the columns of `swflow.jobs.table.SWF_FIELDS` and of `IMPORTED_COLUMNS`, if known, sorted by (submit
    time, line). The only entry of ``history`` has the counts of ``tally``.
    """

    fields: pl.DataFrame
    header: Header
    history: tuple[Entry, ...]
    tally: Tally
    partitions: list[Partition]

    def write(self, path: Path) -> None:
        """Write the log to a file: .parquet with all columns, or .swf, or .swf.gz."""
        if path.suffix == ".parquet":
            write_log(path, self.fields, self.header, self.history)
        else:
            write_swf(path, self.fields, self.header)


def make_log(
    records: pl.DataFrame,
    tally: Tally,
    site: Site,
    *,
    source: str,
    form: str,
    computer: str | None = None,
    resources: Sequence[str] = (),
    keeps_times: bool = False,
) -> ImportedLog:
    """
    Return the log of a table of records, which has the columns of `RECORD_COLUMNS`, if known; others are ignored.

    Jobs are numbered from 1 by (submit time, line); users, groups, queues and partitions by their first job. The counts
    of ``tally`` are continued. ``source`` is the file, for error messages; ``form`` is its format, such as ``sacct``.
    ``resources`` are further columns of records that are kept, with the units that jobs occupy. Times count from the
    first submission; with ``keeps_times``, those since the begin of a trace stay as they are.
    """
    demands = dict.fromkeys(resources, pl.Int64())
    read = records.height + sum(count for count, _ in tally.removed.values())
    records = conformed(_in_range(records, tally), RECORD_COLUMNS | demands)
    records = tally.drop(records, "no submit time", pl.col("submit").is_null())
    if records.is_empty():
        unread = {reason: count for reason, count in tally.notes.items() if reason.startswith("unreadable")}
        counts = (tally.removed | unread).items()
        reasons = ", ".join(f"{count:,} {reason} (line {line})" for reason, (count, line) in counts)
        raise SwflowError(f"{source}: none of {read:,} records is a valid job; {reasons or 'the file has none'}")
    tally.note(records, "started before it was submitted", pl.col("start") < pl.col("submit"))
    # A limit of 0 is none, as of `sbatch --time=0`.
    records = records.with_columns(requested_time=pl.when(pl.col("requested_time") > 0).then("requested_time"))
    records = _one_name(records, tally).sort("submit", "line")
    began = int(np.floor(records["submit"].min()))  # type: ignore[arg-type]
    began = 0 if keeps_times and 0 <= began < EARLIEST else began
    header = _header(records, site, began, form, computer)
    table = records.with_columns(
        job_id=pl.int_range(1, pl.len() + 1),
        submit_time=pl.col("submit") - began,
        wait_time=pl.coalesce("wait", pl.col("start") - pl.col("submit")),
        executable_id=numbered(records["executable"])[0],
        array_id=numbered(records["array"])[0],
        depends_on=_predecessors(records, tally),
        eligible_after=records["delay"].fill_null(_eligible_after(records, tally)),
    )
    numbers = table.drop_nulls("site_job_id").group_by("site_job_id").agg(pl.col("job_id").max())
    table = table.with_columns(
        site_job_id=pl.coalesce("own_id", "site_job_id"),
        preceding_job_id=pl.col("preceding").replace_strict(*numbers, default=None, return_dtype=pl.Int64),
    )
    is_lost = pl.col("preceding_job_id").is_null() & (pl.col("preceding") != "-1")
    tally.note(table, "preceding jobs that are not in the log (left out)", is_lost)
    if form.startswith("sacct") and records["eligible"].null_count() == records.height:
        tally.note(records, NOT_ELIGIBLE, pl.lit(True))
    for column, key in NAME_KEYS.items():
        ids, names = numbered(records[column.removesuffix("_id")])
        table = table.with_columns(ids.alias(column))
        if names:
            key_of = None if column == "constraint_id" else site.key  # features name nothing but hardware
            header[key] = _lines([anonymized(text, column, key_of) for text in names])
    # Arrays without a limit start as other jobs do.
    left_out = {"array_id"} if table["array_limit"].null_count() == table.height else set()
    left_out |= {"site_job_id"} if site.key else set()
    extra = [name for name in IMPORTED_COLUMNS if name not in left_out and table[name].null_count() < table.height]
    fields = conformed(table, SWF_FIELDS | {name: IMPORTED_COLUMNS[name] for name in extra} | demands)
    # Sizes keep the site's names of partitions, even if the log has hashes instead.
    plain = Header(header | {NAME_KEYS["partition_id"]: _lines(numbered(records["partition"])[1])})
    partitions = partitions_of(fields, plain, site.partitions)
    header = with_sizes(_with_machine(header, fields, site, partitions), partitions)
    entry = {
        "stage": "import",
        "format": form,
        "read": read,
        "kept": fields.height,
        "removed": {reason: count for reason, (count, _) in tally.removed.items()},
        "notes": {reason: count for reason, (count, _) in tally.notes.items()},
    }
    return ImportedLog(fields, Header(header), (entry,), tally, partitions)


#: The largest values of records. Sums of counts over all jobs stay exact in 64 bits.
_LARGEST: dict[str, float] = {
    **dict.fromkeys(("submit", "eligible", "start", "end"), LATEST),
    **dict.fromkeys(
        ("run_time", "suspended_time", "average_cpu_time", "requested_time", "wait", "delay", "think_time"),
        LONGEST_TIME,
    ),
    **dict.fromkeys(("used_memory", "requested_memory"), 1e15),
    **dict.fromkeys(
        ("allocated_processors", "requested_processors", "nodes", "requested_nodes", "gpus", "licenses", "array_limit"),
        MOST_PROCESSORS,
    ),
    "status": 2**31,
    "memory": 2**40,
}


def _in_range(records: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """
    Leave out records with a time that is none, and other values that are not finite or beyond `_LARGEST`.

    A time after the year 9999 that is before 2100 in milliseconds is usually one.
    """
    columns = [name for name in _LARGEST if name in records.columns and records[name].dtype.is_numeric()]
    beyond = {name: ~pl.col(name).is_between(-_LARGEST[name], _LARGEST[name]) for name in columns}
    found = records.select(condition.any().alias(name) for name, condition in beyond.items())
    for name in [name for name in columns if found[name][0]]:
        if name in ("submit", "start", "end"):
            is_milliseconds = pl.col(name).is_between(LATEST, MOST_MILLISECONDS, closed="right")
            records = tally.drop(records, f"{name} after the year 9999 (milliseconds?)", is_milliseconds)
            records = tally.drop(records, f"{name} other than a time before the year 10000", beyond[name])
            continue
        tally.note(records, f"{name} that is not finite, or above {_LARGEST[name]:.4g} (left out)", beyond[name])
        records = records.with_columns(pl.when(~beyond[name]).then(name).alias(name))
    return records


def _one_name(records: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Replace lists of names by the first one; a job that never started can have several partitions, for example."""
    for name in ("partition", "queue", "group", "user"):
        after = r"\S" if name == "user" else ""  # the name of a person can be "Doe, Jane"
        first = pl.col(name).str.extract(rf"^[,\s]*([^,\s]+)\s*,{after}", 1)
        tally.note(records, f"jobs with several names of a {name} (the first is taken)", first.is_not_null())
        records = records.with_columns(pl.coalesce(first, name).alias(name))
    return records


def _predecessors(records: pl.DataFrame, tally: Tally) -> pl.Series:
    """
    Return the job ids of each record's predecessors, by the site's ids; a rerun job counts by its last run.

    Predecessors that are not among the records had ended before the log begins, or are unknown: they are left out. A
    site can use an id again for a later job, which is no predecessor of a job that started before its submission.
    """
    if records["depends_on"].null_count() == records.height:
        return pl.Series([None] * records.height, dtype=pl.List(pl.Int64()))
    jobs = records.select("site_job_id", "array", "submit", job_id=pl.int_range(1, pl.len() + 1))
    jobs = jobs.drop_nulls("site_job_id")
    tasks = jobs.drop_nulls("array").with_columns(wanted=pl.col("array") + "_*")
    wanted = (
        records.select("line", "start", job=pl.int_range(1, pl.len() + 1), wanted="depends_on")
        .filter(pl.col("wanted").list.len() > 0)
        .explode("wanted")
    )
    found = (
        wanted.join(pl.concat([jobs.with_columns(wanted="site_job_id"), tasks]), on="wanted")
        .filter((pl.col("submit") > pl.col("start")).fill_null(False).not_())
        .group_by("job", "wanted", "site_job_id")
        .agg(pl.col("job_id").max())
    )
    lost = wanted.join(found, on=["job", "wanted"], how="anti")
    tally.note(lost, "dependencies on jobs that are not in the log (left out)", pl.lit(True))
    others = found.filter(pl.col("job_id") != pl.col("job"))
    others = others.group_by("job").agg(depends_on=pl.col("job_id").unique().sort())
    table = pl.DataFrame({"job": pl.int_range(1, records.height + 1, eager=True)})
    return table.join(others, on="job", how="left", maintain_order="left")["depends_on"]


def _eligible_after(records: pl.DataFrame, tally: Tally) -> pl.Series:
    """Return the seconds from its submission after which each job was eligible to start; null: at once, or unknown."""
    delay = pl.min_horizontal("eligible", "start") - pl.col("submit")
    # Some systems need a second to queue a job, which is no delay.
    found = records.select(eligible_after=pl.when(pl.col("eligible").is_not_null() & (delay > 1)).then(delay))
    tally.note(records, LATER_ELIGIBLE, pl.lit(found["eligible_after"].is_not_null()))
    return found["eligible_after"]


def _lines(names: Sequence[str]) -> list[str]:
    """Return the header's lines for names numbered from 1."""
    return [f"{number} {text}" for number, text in enumerate(names, 1)]


def _header(records: pl.DataFrame, site: Site, began: int, form: str, computer: str | None) -> dict[str, list[str]]:
    header = {"Version": ["2.2"]}
    if computer:
        header["Computer"] = [anonymized(computer, "computer", site.key)]
    header["Conversion"] = [f"swflow import {form}"]
    header["MaxJobs"] = header["MaxRecords"] = [str(records.height)]
    if began >= EARLIEST:
        header["UnixStartTime"] = [str(began)]
        header["TimeZoneString"] = [site.time_zone]
        header["StartTime"] = [as_moment(began).strftime("%a %b %d %H:%M:%S %Z %Y")]
    if site.nodes:
        header["MaxNodes"] = [str(site.nodes)]
    return header


def _with_machine(
    header: dict[str, list[str]], fields: pl.DataFrame, site: Site, partitions: Sequence[Partition]
) -> dict[str, list[str]]:
    """Add the machine's size: the stated one, else the sum of stated partitions, else a guess marked as such."""
    if site.processors is not None:
        header["MaxProcs"] = [str(site.processors)]
    elif partitions and not any(one.is_guessed for one in partitions):
        header["MaxProcs"] = [str(sum(one.processors for one in partitions))]
    else:
        processors = pl.coalesce("allocated_processors", "requested_processors")
        peak = busiest(fields.with_columns(processors=processors))
        header["MaxProcs"], header["Note"] = [str(peak)], [GUESSED_MACHINE]
    return header


def numbered(names: pl.Series) -> tuple[pl.Series, list[str]]:
    """
    Assign numbers from 1 to names in the order of their first occurrence; empty names are unknown.

    Examples
    --------
    >>> ids, names = numbered(pl.Series(["b", None, "a", "b", ""]))
    >>> ids.to_list(), names
    ([1, None, 2, 1, None], ['b', 'a'])
    """
    names = names.cast(pl.String)
    cleaned = names.to_frame("name").select(pl.when(pl.col("name").str.strip_chars() != "").then("name")).to_series()
    known = cleaned.drop_nulls().unique(maintain_order=True)
    numbers = range(1, len(known) + 1)
    return cleaned.replace_strict(known, numbers, default=None, return_dtype=pl.Int64), known.to_list()


def anonymized(name: str, kind: str, key: bytes | None) -> str:
    """
    Return a name, or a hash of it if there is a key.

    The hash is HMAC-SHA256 of kind and name, cut to 12 hexadecimal digits: testing names requires the key, and
    two sites with different keys give one person different hashes.
    """
    if key is None:
        return name
    return hmac.new(key, f"{kind}\0{name}".encode(), hashlib.sha256).hexdigest()[:12]


def read_key(path: str | os.PathLike[str] | None) -> tuple[bytes, Path, bool]:
    """
    Return the key for hashing names, its file, and whether it is new.

    A missing key is drawn and stored, readable by its owner only. The default file is `DEFAULT_KEY`.
    """
    path = expanded(path or DEFAULT_KEY)
    try:
        is_new = not path.exists() and create_once(path, secrets.token_hex(32) + "\n")
        key = path.read_bytes().strip()
    except OSError as error:
        raise SwflowError(f"{path}: the key cannot be read or written ({error.strerror}); name a file: --key") from None
    if len(key) < 16:
        raise SwflowError(f"{path}: must have at least 16 characters; delete the file to create a new key")
    return key, path, is_new
