"""Requests for figures, and the database queries that figures share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import polars as pl

from swflow.analysis.heatmap import LOAD_BINS
from swflow.errors import SwflowError
from swflow.files.query import fetched
from swflow.names import log_of


@dataclass(frozen=True)
class Request:
    """
    The runs to draw, in the order of the columns, and the options.

    ``title`` is the subject of the figure, such as the log's name. ``split`` are subsets of the jobs, ``scale`` is the
    value axis (log or linear), ``window`` the time interval to draw in seconds from the log's start. ``titles`` are
    the names of schedulers in the figure, if they differ from those of the runs. Without ``sweeps``, published values
    of scaled workloads are left out. ``bins`` is the number of cells of a heatmap along the
    load. ``measures`` are the rows of heatmaps and differences (none: all of them), and
    ``pixels`` is the width for which the figure will be laid out, if it has one. ``study`` is the study whose verdicts
    a difference shows (default: the first by name that compares the runs).
    """

    connection: duckdb.DuckDBPyConnection
    runs: Sequence[dict[str, str]]
    title: str
    split: Sequence[str] = ()
    scale: str = "log"
    window: tuple[float | None, float | None] = (None, None)
    interactive: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)
    sweeps: bool = True
    measures: Sequence[str] = ()
    pixels: float | None = None
    bins: int = LOAD_BINS
    study: str | None = None

    @property
    def names(self) -> list[str]:
        """Workload and scheduler of each run."""
        return [f"{run['workload']}, {self.titles.get(run['scheduler'], run['scheduler'])}" for run in self.runs]

    @property
    def workloads(self) -> list[str]:
        """The workloads of the runs, in order, without duplicates."""
        return list(dict.fromkeys(run["workload"] for run in self.runs))


def all_runs(connection: duckdb.DuckDBPyConnection) -> list[dict[str, str]]:
    """Return ``run``, ``workload`` and ``scheduler`` of all runs, by name."""
    names, rows = fetched(connection.execute("SELECT run, workload, scheduler FROM runs ORDER BY run"))
    return [dict(zip(names, row, strict=True)) for row in rows]


def chosen_runs(connection: duckdb.DuckDBPyConnection, log: str | None, wanted: Sequence[str]) -> list[dict[str, str]]:
    """Return the runs to draw: those named, or all of a log with the recorded schedule first."""
    known = {run["run"]: run for run in sorted(all_runs(connection), key=lambda run: run["scheduler"] != "log")}
    for run in wanted:
        if run not in known:
            raise SwflowError(f"figure: no run {run!r} in the database; expected one of {', '.join(known)}")
    chosen = [known[run] for run in wanted] or [run for run in known.values() if log_of(run["workload"]) == log]
    if not chosen:
        logs = sorted({log_of(run["workload"]) for run in known.values()})
        problem = f"no run of log {log!r} in the database" if log else "no runs; expected --run or --log"
        raise SwflowError(f"figure: {problem}; logs in the database: {', '.join(logs)}")
    return chosen


def describe(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the columns of a table and their types, except the columns that name runs."""
    rows = connection.execute(f"DESCRIBE {table}").fetchall()
    return {row[0]: row[1] for row in rows if row[0] not in ("run", "workload", "scheduler")}


def in_jobs(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Return whether table ``jobs`` has a column, which a step may have added."""
    return name in describe(connection, "jobs")


def frame(connection: duckdb.DuckDBPyConnection, sql: str, run: str) -> pl.DataFrame:
    """Return the rows of a query; null values become NaN in float columns."""
    columns = connection.execute(sql, {"run": run}).fetchnumpy()
    return pl.DataFrame([_series(name, values) for name, values in columns.items()])


def _series(name: str, values: np.ndarray) -> pl.Series:
    missing = np.ma.getmaskarray(values)
    if values.dtype.kind == "f":
        return pl.Series(name, np.ma.filled(values, np.nan))
    if values.dtype.kind == "O":
        kind = pl.String() if name.startswith("part_") else None
        cells = zip(np.ma.getdata(values), missing, strict=True)
        return pl.Series(name, [None if is_missing else value for value, is_missing in cells], dtype=kind)
    return pl.Series(name, np.ma.getdata(values)).set(pl.Series(missing), None)
