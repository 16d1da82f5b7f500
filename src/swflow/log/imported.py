"""Imported logs: the fields of a log in Parquet, and the names of users, groups and queues in its header."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from swflow.errors import SwflowError
from swflow.files.tables import read_metadata, read_parquet, write_table
from swflow.jobs.header import NAME_KEYS, Header
from swflow.jobs.table import SWF_FIELDS, Entry, Workload, check_columns
from swflow.log.swf import SwfLog, read_swf


def is_log_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a log in Parquet, written by ``swflow import``."""
    return Path(path).suffix == ".parquet" and read_metadata(path).get("kind") == "log"


def read_log(
    path: str | os.PathLike[str], *, lenient: bool = False, further: bool = False
) -> tuple[SwfLog, tuple[Entry, ...]]:
    """
    Read an imported log (Parquet), or a file in the Standard Workload Format; return it with the import's history.

    The fields of an imported log can have more columns than `swflow.jobs.table.SWF_FIELDS`; unknown values are null.
    Those of a text have with ``further``, as in `swflow.log.swf.read_swf`.
    """
    if Path(path).suffix != ".parquet":
        return read_swf(path, lenient=lenient, further=further), ()
    header, history = log_metadata(path)
    fields = check_columns(read_parquet(path), str(path), SWF_FIELDS)
    return SwfLog(fields, header, []), history


def log_metadata(path: str | os.PathLike[str]) -> tuple[Header, tuple[Entry, ...]]:
    """Return the header of an imported log and the import's history."""
    about = read_metadata(path)
    if about.get("kind") != "log":
        raise SwflowError(f"{path}: not an imported log; create one with: swflow import sacct FILE -o LOG.parquet")
    return Header(about["header"]), tuple(about["history"])


def write_log(
    path: str | os.PathLike[str], fields: pl.DataFrame, header: Mapping[str, list[str]], history: Iterable[Entry]
) -> None:
    """Write an imported log to a Parquet file, atomically; equal logs give identical files."""
    write_table(fields, path, {"kind": "log", "header": dict(header), "history": list(history)})


def names_in(header: Header) -> pl.DataFrame:
    """
    Return the names that a header assigns to numbers: ``column`` of the job table, ``id`` and ``name``.

    Examples
    --------
    >>> names_in(Header({"Queue": ["0 interactive", "1  [fque:1]"], "User": ["7 alice"]})).rows()
    [('user_id', 7, 'alice'), ('queue_id', 0, 'interactive'), ('queue_id', 1, '[fque:1]')]
    """
    rows = [(column, number, name) for column, of in header.names.items() for number, name in of.items()]
    return pl.DataFrame(rows, {"column": pl.String, "id": pl.Int64, "name": pl.String}, orient="row")


def names_of_jobs(workload: Workload) -> pl.DataFrame:
    """Return the names that occur in a workload's jobs: ``column``, ``id``, ``name``."""
    names = names_in(workload.header)
    parts = [
        names.filter((pl.col("column") == column) & pl.col("id").is_in(workload.jobs[column].unique().implode()))
        for column in NAME_KEYS
        if column in workload.jobs.columns
    ]
    return pl.concat(parts) if parts else names.clear()
