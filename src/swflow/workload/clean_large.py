"""Clean a log that does not fit in memory: part by part, with temporary files next to the output."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files.atomic import folder_beside
from swflow.jobs import table as tables
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, read_metadata, read_workload, write_table
from swflow.log.swf import LogParts, is_large, seconds_since_start
from swflow.workload import clean as whole

#: The columns of the kept jobs that are read again to compute the recorded processor use.
_RECORDED = ("submit_time", "wait_time", "run_time", "processors")


def clean_into(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    columns: Iterable[str] | None = None,
    name: str | None = None,
    processors: int | None = None,
    nodes: int | None = None,
    since: date | None = None,
    until: date | None = None,
    lenient: bool = False,
    keep_cancelled: bool = False,
    dependencies: bool = False,
    **rules: Any,
) -> Workload:
    """
    Clean a log into a file, as `swflow.workload.clean.clean_log` does; process a large log part by part.

    Parameters
    ----------
    path : path-like
        The log.
    output : path-like
        The workload's file, ``.parquet``.
    columns : iterable of str, optional
        Columns of a large log's workload to return in addition to those that every workload has (default: all).
    name, processors, nodes, since, until, lenient, keep_cancelled, dependencies
        As in `swflow.workload.clean.clean_log`; dependencies of a large log are refused.
    **rules
        ``drop``, ``without_status`` and ``flurries``, as there.

    Returns
    -------
    Workload
        The written workload.

    Raises
    ------
    SwflowError
        As raised by `swflow.workload.clean.clean_log`.
    """
    if not _is_large(Path(path)):
        workload = whole.clean_log(
            path, name=name, processors=processors, nodes=nodes, since=since, until=until, lenient=lenient,
            keep_cancelled=keep_cancelled, dependencies=dependencies, **rules,
        )  # fmt: skip
        tables.write_workload(workload, output)
        return workload
    if dependencies:
        raise SwflowError(f"clean: {path}: --dependencies: the log has more than {tables.MOST_AT_ONCE:,} jobs; cut it")
    name = name or whole.log_name(path)
    log = _Parts(path, lenient, name)
    with folder_beside(output) as folder:
        raw = [_written(part, folder / f"log{number:06}.parquet") for number, part in enumerate(log)]
        log.require_identity()
        machine, source = _machine_of(raw, log.header, processors, nodes)
        begin, end = (seconds_since_start(log.header, moment) if moment else None for moment in (since, until))
        reasons = list(whole.removals(machine, (begin, end), keep_cancelled=keep_cancelled, **rules))
        counts: Counter[str] = Counter()
        order = _Order()
        kept = []
        for number, file in enumerate(raw):
            jobs, removed = whole.without_removed(whole.prepared(pl.read_parquet(file), keep_cancelled), reasons)
            file.unlink()
            counts.update(removed)
            order.look_at(jobs)
            if jobs.height:
                kept.append(_written(jobs, folder / f"kept{number:06}.parquet"))
        removed = {reason: counts[reason] for reason, _ in reasons if counts[reason]}
        if order.unknown:
            raise whole.lacks_column(name, order.unknown, "submit_time")
        if not kept:
            raise whole.no_job_left(name, log.jobs - log.beyond, removed)
        table = pl.scan_parquet(kept, glob=False) if order.holds else _sorted(kept, folder)
        if log.malformed:
            removed = {"malformed": log.malformed} | removed
        entry = {"stage": "clean", "read": log.jobs + len(log.parts_skipped), "kept": order.rows, "removed": removed}
        recorded = pl.scan_parquet(kept, glob=False).select(_RECORDED)
        columns_read = [recorded.select(column).collect().to_series().rechunk() for column in _RECORDED]
        entry |= {"machine_from": source}
        notes = {
            "kind": "workload",
            "machine": machine.to_dict(),
            "header": dict(log.header),
            "history": [*log.history, whole.with_recorded_use(entry, pl.DataFrame(columns_read), machine)],
        }
        write_table(table, output, notes, rows=order.rows)
    return read_workload(output, columns)


def _is_large(path: Path) -> bool:
    if path.suffix != ".parquet":
        return is_large(path)
    return path.is_file() and tables.height_of(path) > tables.MOST_AT_ONCE


def _written(table: pl.DataFrame, file: Path) -> Path:
    table.write_parquet(file, compression="lz4")
    return file


class _Parts:
    """Iterate over the parts of a log within the limits, and count jobs along the way."""

    def __init__(self, path: str | os.PathLike[str], lenient: bool, name: str) -> None:
        self.path, self.lenient, self.name = Path(path), lenient, name
        self.history: tuple[Mapping[str, Any], ...] = ()
        self.jobs = self.beyond = self.unnumbered = 0
        self.ids: list[np.ndarray] = []
        if self.path.suffix == ".parquet":
            about = read_metadata(path)
            if about.get("kind") != "log":
                raise SwflowError(f"{path}: not an imported log; create one with: swflow import sacct FILE -o {path}")
            self.header, self.history = about["header"], tuple(about["history"])
            self._source: Iterable[pl.DataFrame] = _slices(self.path)
            self.parts_skipped: Sequence[Any] = ()
        else:
            text = LogParts(path, lenient=lenient)
            self.header, self._source, self.parts_skipped = text.header, text, text.skipped

    @property
    def malformed(self) -> int:
        """Return the number of skipped lines."""
        return len(self.parts_skipped) + self.beyond

    def __iter__(self) -> Iterator[pl.DataFrame]:
        first: dict[str, Any] = {}
        for fields in self._source:
            self.jobs += fields.height
            within = fields.filter(whole.within_limits())
            if within.height < fields.height:
                first = first or fields.filter(~whole.within_limits()).row(0, named=True)
                self.beyond += fields.height - within.height
            if first and not self.lenient:
                continue
            ids = within["job_id"].cast(pl.Int64)
            known = ids.filter((ids != -1).fill_null(False))
            self.unnumbered += within.height - known.len()
            self.ids.append(known.to_numpy())
            if within.height:
                yield within
        if first and not self.lenient:
            raise whole.beyond_limits(self.name, first, self.beyond)
        if self.jobs == self.beyond:
            raise SwflowError(f"clean: {self.name}: no job is within the limits of times and processors")

    def require_identity(self) -> None:
        """Raise an error if a job id is missing or duplicate."""
        if self.unnumbered:
            raise whole.lacks_column(self.name, self.unnumbered, "job_id")
        ids = np.concatenate(self.ids)
        self.ids.clear()
        if (ids[1:] > ids[:-1]).all():
            return
        in_order = np.sort(ids)
        again = in_order[1:] == in_order[:-1]
        if again.any():
            repeated = np.unique(in_order[1:][again])
            place = int(np.argmax(np.isin(ids, repeated)))
            raise whole.repeats_id(self.name, int(again.sum()), int(ids[place]))


def _slices(path: Path) -> Iterator[pl.DataFrame]:
    """Yield the rows of a Parquet file in parts."""
    table = pl.scan_parquet(path, glob=False)
    for begin in range(0, tables.height_of(path), tables.MOST_AT_ONCE // 4):
        yield table.slice(begin, tables.MOST_AT_ONCE // 4).collect()


def _machine_of(
    raw: list[Path], header: Mapping[str, list[str]], processors: int | None, nodes: int | None
) -> tuple[Machine, str]:
    """Return the result of `swflow.workload.clean.machine_of`; read the jobs only if no machine is stated."""
    stated = whole.stated_machine(header, processors, nodes)
    if stated:
        return stated
    widest, parts = 1, []
    for file in raw:
        fields = pl.read_parquet(file)
        most = fields.select(pl.max_horizontal("allocated_processors", "requested_processors").max()).item()
        widest = max(widest, most or 0)
        parts.append(whole.prepared(fields).select(_RECORDED))
    return whole.guessed_machine(pl.concat(parts), widest, nodes)


@dataclass
class _Order:
    """Check, part by part, that jobs are sorted as in every job table, and count them."""

    holds: bool = True
    rows: int = 0
    unknown: int = 0
    last: tuple[float, int] = field(default=(-np.inf, 0))

    def look_at(self, jobs: pl.DataFrame) -> None:
        """Check the next part."""
        self.rows += jobs.height
        self.unknown += jobs["submit_time"].null_count()
        if self.unknown or not jobs.height:
            return
        submit = np.append(self.last[0], jobs["submit_time"].to_numpy())
        ids = np.append(self.last[1], jobs["job_id"].to_numpy())
        later = (submit[1:] > submit[:-1]) | ((submit[1:] == submit[:-1]) & (ids[1:] >= ids[:-1]))
        self.holds &= bool(later.all())
        self.last = float(submit[-1]), int(ids[-1])


def _sorted(files: list[Path], folder: Path) -> pl.LazyFrame:
    """Return the jobs sorted by submit time and id; DuckDB spills to disk if memory is short."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET temp_directory = $folder", {"folder": str(folder / "sort")})
        connection.execute("SET memory_limit = '4GB'")
        names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        target = str(folder / "sorted.parquet").replace("'", "''")
        connection.execute(
            f"COPY (SELECT * FROM read_parquet([{names}]) ORDER BY submit_time, job_id) TO '{target}' (FORMAT parquet)"
        )
    return pl.scan_parquet(folder / "sorted.parquet", glob=False)
