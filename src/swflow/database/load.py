"""Load all runs, jobs and outcomes into one DuckDB file, and replace the old file atomically."""

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from threadpoolctl import threadpool_limits

from swflow.analysis.long_run import student
from swflow.analysis.metrics import CORRELATED, METRICS
from swflow.database.comparisons import with_verdicts
from swflow.database.computed import Computed, Examined, compute
from swflow.database.inputs import KINDS, Asked, Contents, Inputs, Update, every_pair, planned_update, read_inputs
from swflow.database.leaderboard import DIFFERENCES, GAPS, LEADERBOARD
from swflow.database.schema import FIGURES, KEPT, MEDIANS, TABLES, Rows
from swflow.errors import SwflowError, reason_of
from swflow.files import tables
from swflow.files.atomic import atomic_path, check_output, write_json, write_text
from swflow.files.query import connect, fetched, memory_limit, open_database
from swflow.jobs.table import JOB_COLUMNS
from swflow.papers import published_tables
from swflow.papers.claims import check_claims
from swflow.papers.draws import fill_draws
from swflow.papers.views import (
    CELLS,
    CONVENTION_VALUES,
    COVERAGE,
    DRAW_MACROS,
    PLACED,
    READINGS,
    REPRODUCTION,
    SENSITIVITY,
    TREND_CHECKS,
)
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.simulate import OUTCOME_COLUMNS
from swflow.studies.runs import check_whole

#: From this number of new runs on, several processes are worth the second in which they start.
MANY_RUNS = 100

_TYPES = {pl.Int64(): "BIGINT", pl.Float64(): "DOUBLE", pl.Boolean(): "BOOLEAN", pl.String(): "VARCHAR"}


def load(
    paths: Iterable[str | os.PathLike[str]],
    database: str | os.PathLike[str],
    *,
    left_out: Sequence[Mapping[str, object]] = (),
    asked: Asked | None = None,
    progress: Callable[[Sequence[Any]], Iterable[Any]] = lambda items: items,
    processes: int = 1,
) -> dict[str, int]:
    """
    Build the database of runs, and replace the old database atomically.

    If a database exists and most of its content stays valid, a copy of it is updated for the changed runs and
    workloads. Otherwise, all files are read.

    Parameters
    ----------
    paths : iterable of path-like
        Runs: folders or single files; also files of sweeps, fitted models, what-ifs and bounds.
    database : path-like
        The database file.
    left_out : sequence of dict
        Rows of the table ``left_out``, of `swflow.database.inputs.read_plan`.
    asked : dict
        The runs that each study compares: pairs of a variant and its base. By default, all runs of a workload are
        compared with each other.
    progress : callable
        Function that wraps the sequence of runs to show progress.
    processes : int
        The number of processes that compare the runs, if at least `MANY_RUNS` are new. A script that sets it needs
        ``if __name__ == "__main__"``, since a new process imports the script.

    Returns
    -------
    dict
        Number of rows of each table.

    Raises
    ------
    SwflowError
        If a run or its workload is missing or is inconsistent with the others.

    Examples
    --------
    >>> import swflow
    >>> swflow.load(["results/runs/KTH-SP2", "mine.parquet"], "mine.duckdb")  # doctest: +SKIP
    """
    check_output(database, stream=False)
    inputs = read_inputs(paths)
    _finish_log(Path(database))
    asked = every_pair(inputs) if asked is None else asked
    update = planned_update(inputs, database, asked)
    is_large = any(run.notes["rows"] > tables.MOST_AT_ONCE for run in inputs.runs)
    workers = 0 if is_large else processes if len(update.runs) >= MANY_RUNS else 1
    with atomic_path(database) as temporary, threadpool_limits(1, user_api="blas"), _beside(workers) as in_turn:
        try:
            computed = compute(inputs, update, in_turn)
            if update.old:
                shutil.copyfile(database, temporary)
            with open_database(temporary) as connection:
                connection.execute("SET preserve_insertion_order = true")
                connection.execute(f"SET memory_limit = '{memory_limit()}B'")
                if not is_large:  # leave a processor to the comparisons, which take longest
                    connection.execute(f"SET threads = {max(1, (os.cpu_count() or 1) - 1)}")
                _fill(connection, inputs, update, computed, left_out, asked, progress)
                counts = _row_counts(connection)
                connection.execute("CHECKPOINT")  # closing a database does not report that this failed
            _check_written(temporary, counts)
        except duckdb.Error as error:
            raise SwflowError(f"load: {database}: {reason_of(error)}") from error
        finally:
            _log_of(temporary).unlink(missing_ok=True)
    return counts


def _fill(
    connection: duckdb.DuckDBPyConnection,
    inputs: Inputs,
    update: Update,
    computed: Computed,
    left_out: Sequence[Mapping[str, object]],
    asked: Asked,
    progress: Callable[[Sequence[Any]], Iterable[Any]],
) -> None:
    """Fill all tables, and create the views."""
    _prepare(connection, update.old or {}, inputs.contents)
    for run in update.runs:
        check_whole(run.file, run.listed)
    _fill_workloads(connection, computed.examined)
    # What does not need the results of the other processes comes first, so that they are ready later.
    _fill_runs(connection, inputs)
    _fill_others(connection, inputs, left_out)
    for name, table in published_tables().items():
        _insert(connection, name, table)
    connection.execute(FIGURES)
    _fill_replicates(connection)
    fill_draws(connection)
    for view in _VIEWS:
        connection.execute(view)
    connection.execute("CREATE TEMP TABLE medians AS FROM main.medians")  # many queries of claims read it
    connection.execute(COVERAGE)
    _fill_outcomes(connection, update, computed, progress)
    _fill_fairness_and_fidelity(connection, computed)
    _fill_comparisons(connection, [row for rows in computed.compared for row in rows], asked)
    _insert(connection, "claims", check_claims(connection))
    rows = [(*part, digest) for part, digest in sorted(inputs.contents.items())]
    _insert(connection, "contents", pl.DataFrame(rows, ["kind", "name", "digest"], orient="row"))


def _log_of(database: Path) -> Path:
    """Return the file of changes that are not in the database file yet, DuckDB's write-ahead log."""
    return Path(f"{database}.wal")


def _finish_log(database: Path) -> None:
    """
    Write the changes of ``swflow sql --write`` that are in a file next to an existing database into it.

    A new file of the same name would otherwise be opened with changes of the old one. A file that is not a database
    is replaced.
    """
    if not _log_of(database).exists() or not database.is_file():
        return
    try:
        with open_database(database) as connection:
            connection.execute("CHECKPOINT")
        left = _log_of(database).exists()
    except duckdb.Error as error:
        raise SwflowError(
            f"{database}: the changes in its .wal file cannot be written into it ({reason_of(error)})"
        ) from None
    if left:
        raise SwflowError(f"{_log_of(database)}: another process changes the database; expected none; load again later")


def _check_written(database: Path, counts: Mapping[str, int]) -> None:
    """Raise an error unless a closed database is whole: no .wal file, and the same rows when it is reopened."""
    is_whole = not _log_of(database).exists()
    if is_whole:
        with open_database(database, read_only=True) as connection:
            is_whole = _row_counts(connection) == counts
    if not is_whole:
        raise duckdb.IOException("the file is incomplete after closing it; free some space on its disk")


#: The views, and the tables that are made from other tables, in an order in which each finds what it reads.
_VIEWS = (
    MEDIANS, PLACED, CELLS, READINGS, REPRODUCTION, DRAW_MACROS, TREND_CHECKS, CONVENTION_VALUES, SENSITIVITY,
    DIFFERENCES, GAPS, LEADERBOARD,
)  # fmt: skip


def _limit_threads() -> None:
    """Compute linear algebra in one thread: several would compete with the inserts, and round differently."""
    threadpool_limits(1, user_api="blas")  # affects only libraries that are loaded by now


@contextmanager
def _beside(workers: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """
    Yield a function like `map` that computes during the inserts, which do not hold Python's lock.

    One worker is a thread, several are processes. Without workers, each result is computed when it is needed.
    """
    if workers == 0:
        yield map
        return
    pool: Executor = ThreadPoolExecutor(1)
    if workers > 1:
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _limit_threads)
    try:
        yield pool.map
    except BrokenProcessPool:
        raise SwflowError("load: a process that compares runs ended; it probably needs more memory") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(connection: duckdb.DuckDBPyConnection, old: Contents, contents: Contents) -> None:
    """Create the tables; of those that ``old`` contents are kept in, delete only stale rows."""
    connection.execute("BEGIN")  # one transaction for many statements
    for (view,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall():
        connection.execute(f'DROP VIEW "{view}"')
    for table, columns in TABLES.items():
        if not (old and any(table in kept for kept in KEPT.values())):
            connection.execute(f"CREATE OR REPLACE TABLE {table} ({columns})")
    names = {"jobs": "workload VARCHAR", "outcomes": "run VARCHAR, workload VARCHAR, scheduler VARCHAR"}
    for table, dtypes in (("jobs", JOB_COLUMNS), ("outcomes", OUTCOME_COLUMNS)):
        others = ", ".join(f'"{name}" {_duckdb_type(dtype)}' for name, dtype in dtypes.items())
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({names[table]}, {others})")
    for kind, kept in KEPT.items():
        stale = [name for (of, name), digest in old.items() if of == kind and contents.get((of, name)) != digest]
        for table, identifying in kept.items():
            for column in identifying:
                connection.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT unnest($stale))", {"stale": stale})
    connection.execute("COMMIT")


def _fill_workloads(connection: duckdb.DuckDBPyConnection, examined: Iterable[Examined]) -> None:
    rows: dict[str, Rows] = {}
    tables_of_jobs = _Inserted(connection, "jobs", ["workload"])
    for found in examined:
        for table, some in found.rows.items():
            rows.setdefault(table, []).extend(some)
        about = found.rows["workloads"][0]
        for column, dtype in found.schema.items():
            connection.execute(f'ALTER TABLE jobs ADD COLUMN IF NOT EXISTS "{column}" {_duckdb_type(dtype)}')
        if isinstance(found.jobs, Path):
            tables_of_jobs.add(found.jobs, about, about["jobs"])
        else:
            tables_of_jobs.insert()
            _insert(connection, "jobs", found.jobs.with_columns(workload=pl.lit(about["workload"])))
    tables_of_jobs.insert()
    for table, some in rows.items():
        _insert(connection, table, some)


def _duckdb_type(dtype: Any) -> str:
    """Return the SQL type of a column, including nested types."""
    if isinstance(dtype, pl.List):
        return f"{_duckdb_type(dtype.inner)}[]"
    if isinstance(dtype, pl.Struct):
        return f"STRUCT({', '.join(f'{field.name} {_duckdb_type(field.dtype)}' for field in dtype.fields)})"
    return _TYPES[dtype]


def _fill_outcomes(
    connection: duckdb.DuckDBPyConnection,
    update: Update,
    computed: Computed,
    progress: Callable[[Sequence[Any]], Iterable[Any]],
) -> None:
    made: dict[str, list[pl.DataFrame]] = {}
    outcomes = _Inserted(connection, "outcomes", ("run", "workload", "scheduler"))
    for run in progress(update.runs):
        outcomes.add(run.file, run.names, run.notes["rows"])
        for table, rows in next(computed.summaries).items():
            made.setdefault(table, []).append(rows)
    outcomes.insert()
    for table, frames in made.items():
        _insert(connection, table, pl.concat(frames, rechunk=True))


def _fill_runs(connection: duckdb.DuckDBPyConnection, inputs: Inputs) -> None:
    tables: dict[str, Rows] = {"runs": [], "metrics": [], "further_metrics": [], "correlations": []}
    for run in inputs.runs:
        names, note = run.names, run.notes
        about = {"seconds": run.listed.seconds, "processors": note["machine"]["processors"]}
        tables["runs"].append({**names, **about, "peak_processors": note["peak_processors"]})
        tables["metrics"].append(names | {name: note["metrics"].get(name) for name in METRICS})
        tables["further_metrics"] += [
            {**names, "metric": metric, "value": float(value)}
            for metric, value in note["metrics"].items()
            if metric not in METRICS and value is not None
        ]
        found = note["correlations"]
        counts = {name: found.get(name) for name in ("jobs", "above_1")}
        tables["correlations"] += [
            {"run": run.run, "measure": measure, "spearman": found.get(measure), **counts} for measure in CORRELATED
        ]
    for table, rows in tables.items():
        _insert(connection, table, rows)
    _insert(connection, "schedulers", [_scheduler_row(*item) for item in sorted(inputs.schedulers.items())])


def _scheduler_row(name: str, options: Unchecked) -> dict[str, object]:
    columns = (
        "order", "backfill", "backfill_order", "estimates", "prediction", "allocation", "runtime",
        "event_order", "dispatch", "without_status", "shapes",
    )  # fmt: skip
    row = {"scheduler": name, **{column: options[column] for column in columns}, "options": json.dumps(options)}
    # Options without effect are null.
    row["reservations"] = options.get("reservations", 1) if options["backfill"] == "easy" else None
    row["dispatch"] = options["dispatch"] if options.get("clusters") else None
    return row


def _fill_fairness_and_fidelity(connection: duckdb.DuckDBPyConnection, computed: Computed) -> None:
    fairness = [table for table in computed.fairness if table.height]
    _insert(connection, "fairness", pl.concat(fairness, how="vertical_relaxed") if fairness else [])
    kept = {"kept": computed.unchanged}
    connection.execute("DELETE FROM fidelity WHERE run NOT IN (SELECT unnest($kept::VARCHAR[]))", kept)
    _insert(connection, "fidelity", [row for rows in computed.fidelity for row in rows])


def _fill_others(
    connection: duckdb.DuckDBPyConnection, inputs: Inputs, left_out: Sequence[Mapping[str, object]]
) -> None:
    for file, about in inputs.others.items():
        table, names = KINDS[about["kind"]]
        values = {name: pl.lit(about[name], pl.String) for name in names}
        _insert(connection, table, pl.read_parquet(file, glob=False).with_columns(**values))
    _insert(connection, "fits", inputs.fits)
    _insert(connection, "left_out", left_out)


def _fill_comparisons(connection: duckdb.DuckDBPyConnection, compared: Rows, asked: Asked) -> None:
    """Insert the comparisons that studies ask for, those of unchanged runs from the previous database."""
    # Comparisons of recipes are derived from those of runs. Their names may be those of runs without replicates.
    connection.execute("DELETE FROM comparisons WHERE basis = 'replicates' OR family IS NULL")
    connection.execute(
        "DELETE FROM comparisons WHERE variant NOT IN (SELECT run FROM runs) OR base NOT IN (SELECT run FROM runs)"
    )
    names, old = fetched(connection.execute("SELECT * FROM comparisons"))
    saturated = {run for (run,) in connection.execute("SELECT run FROM metrics WHERE saturated = 1").fetchall()}
    rows = with_verdicts([dict(zip(names, row, strict=True)) for row in old] + compared, asked, saturated)
    connection.execute("DELETE FROM comparisons")
    _insert(connection, "comparisons", [{name: row[name] for name in names} for row in rows])


def _fill_replicates(connection: duckdb.DuckDBPyConnection) -> None:
    """Summarize every figure over the replicates: mean, median, deviation, and Student's 95 % confidence interval."""
    names, value = ["recipe", "log", "scheduler", "measure"], pl.col("value")
    values = _read(
        connection,
        """SELECT recipe, log, scheduler, figure AS measure, value::DOUBLE AS value
        FROM figures JOIN (
            SELECT workload, recipe, log, replicate FROM workloads
            UNION SELECT workload, recipe, split_part(source, '+', 1), replicate FROM sweeps
        ) USING (workload) WHERE replicate IS NOT NULL AND value IS NOT NULL
        ORDER BY recipe, log, scheduler, measure, replicate, value""",
    )
    # Sorted by replicate, so that sums have the same last digits for any set of runs.
    summary = values.group_by(names, maintain_order=True).agg(
        replicates=value.len().cast(pl.Int64), mean=value.mean(), median=value.median(), deviation=value.std()
    )
    quantiles = {count: student(count - 1) for count in summary["replicates"].unique() if count > 1}
    half = pl.col("replicates").replace_strict(quantiles, default=None, return_dtype=pl.Float64) * pl.col("deviation")
    half = half / pl.col("replicates").sqrt()
    half = pl.when(pl.col("deviation") > 0).then(half)  # a figure that is equal in all draws has no interval
    _insert(connection, "replicates", summary.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half))


class _Inserted:
    """
    Parquet files that are inserted into a table together, since a statement per file uses one thread and is slow.

    ``names`` are the columns that are constant within a file and that the files do not have.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str, names: Sequence[str]) -> None:
        self.connection, self.table, self.names = connection, table, names
        self.files: list[tuple[Path, Mapping[str, object]]] = []
        self.rows = 0

    def add(self, file: Path, values: Mapping[str, object], rows: int) -> None:
        """Add a file with its values of the constant columns; insert the files so far if they have many rows."""
        self.files.append((file, values))
        self.rows += rows
        if self.rows > tables.MOST_AT_ONCE:
            self.insert()

    def insert(self) -> None:
        """Insert the rows of all files added since the last call, in the order of the files."""
        if not self.files:
            return
        # A join with the names would not keep the order of the rows.
        named = ", ".join(f"${name}[file_index::BIGINT + 1] AS {name}" for name in self.names)
        ((inserted,),) = self.connection.execute(
            f"""INSERT INTO {self.table} BY NAME SELECT {named}, *
            FROM read_parquet($patterns, union_by_name = true)""",
            {"patterns": [glob.escape(str(file)) for file, _ in self.files]}
            | {name: [values[name] for _, values in self.files] for name in self.names},
        ).fetchall()
        if inserted != self.rows:
            files = f"{self.files[0][0]} to {self.files[-1][0]}"
            raise SwflowError(f"{files}: {inserted:,} rows instead of {self.rows:,}; make these files again")
        self.files, self.rows = [], 0


def _row_counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the number of rows of each table."""
    found = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL").fetchall()
    names = [name for (name,) in found]
    counts = connection.execute("SELECT " + ", ".join(f'(SELECT count(*) FROM "{name}")' for name in names)).fetchone()
    return dict(zip(names, counts or (), strict=True))


def _read(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    """Return the rows of a query through a temporary Parquet file, which is much faster than row by row."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        connection.sql(sql).write_parquet(str(file))
        return pl.read_parquet(file)


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, rows: pl.DataFrame | Sequence[Mapping[str, object]]
) -> None:
    """Insert rows through a temporary Parquet file, which is much faster than row by row."""
    if len(rows):
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, infer_schema_length=None)
        frame = frame.with_columns(pl.col(pl.Null).cast(pl.String))  # a column with nulls only has no type
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.parquet"
            frame.write_parquet(file)
            values = {"file": glob.escape(str(file))}
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM read_parquet($file)", values)


def write_verdicts(
    database: str | os.PathLike[str], compared: Mapping[str, Sequence[str]], folder: str | os.PathLike[str]
) -> None:
    """
    Write the comparisons of some runs with each other to ``{name}.json`` in a folder, for each name of ``compared``.

    A small file whose content is unchanged shows that figures of the comparisons are up to date.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    with connect(database) as connection:
        for name, named in compared.items():
            rows = connection.execute(
                """SELECT DISTINCT measure, variant, base, distance, score, variant_wins, base_wins, better
                FROM comparisons WHERE score IS NOT NULL
                    AND list_contains($runs, variant) AND list_contains($runs, base) ORDER BY ALL""",
                {"runs": list(named)},
            ).fetchall()
            write_json(Path(folder) / f"{name}.json", rows)


def write_summary(counts: Mapping[str, int], database: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write a JSON summary of a database's content, which is the output file of the workflow's rule."""
    content = {
        "database": os.fspath(database),
        "loaded": datetime.now(UTC).isoformat(timespec="seconds"),
        "bytes": Path(database).stat().st_size,
        "rows": dict(counts),
    }
    write_text(path, json.dumps(content, indent=1) + "\n")
