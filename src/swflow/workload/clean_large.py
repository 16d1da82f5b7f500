"""Clean a log that does not fit in memory, part by part: as a whole, 24 GB hold 55 million jobs (430 bytes each)."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files import tables
from swflow.files.atomic import folder_beside
from swflow.files.tables import about_workload, read_workload, write_table
from swflow.jobs.table import Entry, Workload, is_sorted
from swflow.log.imported import log_metadata
from swflow.log.swf import LogParts, is_large, text_parts
from swflow.workload import clean as whole
from swflow.workload.removals import (
    beyond_limits,
    no_job_left,
    removals,
    require_complete,
    require_unique,
    within_limits,
    without_removed,
)


def clean_into(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    columns: Iterable[str] | None = None,
    **options: Any,
) -> Workload:
    """
    Clean a log into a Parquet file, as `swflow.workload.clean.clean_log` does; process a large log part by part.

    The returned workload of a large log has the given columns in addition to those that every workload has (default:
    all). Dependencies and resources of a large log are refused.
    """
    if _is_large(Path(path)):
        _clean_in_parts(path, output, **options)
        return read_workload(output, columns)
    workload = whole.clean_log(path, **options)
    tables.write_workload(workload, output)
    return workload


def _clean_in_parts(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    name: str | None = None,
    processors: int | None = None,
    nodes: int | None = None,
    since: date | None = None,
    until: date | None = None,
    lenient: bool = False,
    keep_cancelled: bool = False,
    keep_instant: bool = False,
    dependencies: bool = False,
    resources: Mapping[str, str] | None = None,
    **rules: Any,
) -> None:
    """Clean a large log part by part; see `clean_into`."""
    if dependencies or resources:
        option = "--dependencies" if dependencies else "--resource"
        raise SwflowError(f"clean: {path}: {option}: the log has more than {tables.MOST_AT_ONCE:,} jobs; cut it")
    name = name or whole.log_name(path)
    log = _Parts(path, lenient, name)
    with folder_beside(output) as folder:
        raw = [_written(part, folder / f"log{number:06}.parquet") for number, part in enumerate(log)]
        require_complete(log.unnumbered, "job_id", name)
        repeated = _drop_repeated(raw, np.concatenate(log.ids)) if lenient else 0
        if not lenient:
            require_unique(np.concatenate(log.ids), name)
        log.ids.clear()
        machine, source = whole.machine_of(map(pl.read_parquet, raw), log.header, processors, nodes)
        begin, end = (log.header.seconds_since_start(moment) if moment else None for moment in (since, until))
        schema = dict(pl.read_parquet_schema(raw[0])) if raw else {}
        reasons = list(removals(machine, (begin, end), keep_cancelled=keep_cancelled, columns=schema, **rules))
        counts: Counter[str] = Counter()
        rows = unknown = 0
        kept = []
        for number, file in enumerate(raw):
            part = whole.prepared(pl.read_parquet(file), keep_cancelled, keep_instant=keep_instant)
            jobs, removed = without_removed(part, reasons)
            file.unlink()
            counts.update(removed)
            rows += jobs.height
            unknown += jobs["submit_time"].null_count()
            if jobs.height:
                kept.append(_written(jobs, folder / f"kept{number:06}.parquet"))
        removed = {reason: counts[reason] for reason, _ in reasons if counts[reason]}
        require_complete(unknown, "submit_time", name)
        if not kept:
            raise no_job_left(name, log.jobs - log.beyond, removed)
        lost = _drop_lost_dependencies(kept) if "depends_on" in schema else 0
        table = pl.scan_parquet(kept, glob=False)
        dropped = {"malformed": len(log.parts_skipped) + log.beyond, "repeated-job-id": repeated}
        removed = {reason: count for reason, count in dropped.items() if count} | removed
        read = log.jobs + len(log.parts_skipped)
        entry = {"stage": "clean", "read": read, "kept": rows, "removed": removed, "machine_from": source}
        entry |= {"notes": {whole.LOST_DEPENDENCIES: lost}} if lost else {}
        entry = whole.with_recorded_use(entry, _columns(table, whole.RECORDED), machine, log.warnings())
        in_order = is_sorted(_columns(table, ("submit_time", "job_id")))
        notes = about_workload(machine, log.header, (*log.history, entry))
        write_table(table if in_order else _sorted(kept, folder), output, notes, rows=rows)


def _drop_repeated(files: Iterable[Path], ids: np.ndarray) -> int:
    """Keep the first line of each job id in the files, and return how many others there are."""
    in_order = np.sort(ids)
    repeated = pl.Series(in_order[1:][in_order[1:] == in_order[:-1]], dtype=pl.Int64)
    if repeated.is_empty():
        return 0
    seen = pl.Series([], dtype=pl.Int64)
    dropped = 0
    for file in files:
        part = pl.read_parquet(file)
        number = part["job_id"].cast(pl.Int64)
        once = part.filter(number.is_first_distinct() & ~number.is_in(seen.implode()))
        seen = pl.concat([seen, repeated.filter(repeated.is_in(number.implode()))]).unique()
        if once.height < part.height:
            dropped += part.height - once.height
            _written(once, file)
    return dropped


def _drop_lost_dependencies(files: Sequence[Path]) -> int:
    """Remove the dependencies on jobs that are in none of the files, and return their number."""
    known = pl.concat([pl.read_parquet(file, columns=["job_id"])["job_id"] for file in files])
    dropped = 0
    for file in files:
        jobs, lost = whole.with_known_predecessors(pl.read_parquet(file), known)
        if lost:
            _written(jobs, file)
        dropped += lost
    return dropped


def _columns(table: pl.LazyFrame, names: Iterable[str]) -> pl.DataFrame:
    """Return columns of a table that does not fit in memory, each in one array."""
    return pl.DataFrame([table.select(name).collect().to_series().rechunk() for name in names])


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
        self.history: tuple[Entry, ...] = ()
        self.jobs = self.beyond = self.unnumbered = 0
        self.ids: list[np.ndarray] = []
        self._text: LogParts | None = None
        if self.path.suffix == ".parquet":
            self.header, self.history = log_metadata(path)
            self._source: Iterable[pl.DataFrame] = _slices(self.path)
            self.parts_skipped: Sequence[Any] = ()
        else:
            text = LogParts(text_parts(str(path)), str(path), lenient=lenient)
            self.header, self._source, self.parts_skipped, self._text = text.header, text, text.skipped, text

    def warnings(self) -> list[str]:
        """Return warnings about the text of the log."""
        return whole.warnings_about(self._text) if self._text else []

    def __iter__(self) -> Iterator[pl.DataFrame]:
        first: dict[str, float] = {}
        for fields in self._source:
            self.jobs += fields.height
            within = fields.filter(within_limits())
            if within.height < fields.height:
                first = first or fields.filter(~within_limits()).row(0, named=True)
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
            raise beyond_limits(f"clean: {self.name}", first, self.beyond)
        if self.jobs == self.beyond:
            raise SwflowError(f"clean: {self.name}: no job is within the limits of times and processors")


def _slices(path: Path) -> Iterator[pl.DataFrame]:
    """Yield the rows of a Parquet file in parts."""
    table = pl.scan_parquet(path, glob=False)
    for begin in range(0, tables.height_of(path), tables.MOST_AT_ONCE // 4):
        yield table.slice(begin, tables.MOST_AT_ONCE // 4).collect()


def _sorted(files: list[Path], folder: Path) -> pl.LazyFrame:
    """Return the jobs sorted by submit time and id; DuckDB spills to disk if memory is short."""
    from swflow.files.query import open_database

    with open_database() as connection:
        connection.execute("SET temp_directory = $folder", {"folder": str(folder / "sort")})
        connection.execute("SET memory_limit = '4GB'")
        names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        target = str(folder / "sorted.parquet").replace("'", "''")
        connection.execute(
            f"COPY (SELECT * FROM read_parquet([{names}]) ORDER BY submit_time, job_id) TO '{target}' (FORMAT parquet)"
        )
    return pl.scan_parquet(folder / "sorted.parquet", glob=False)
