"""Load all runs, jobs and outcomes into one DuckDB file, and replace the old file atomically."""

import glob
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl
from threadpoolctl import threadpool_limits

from swflow.analysis import verdict
from swflow.analysis.fairness import KINDS, fairness_table
from swflow.analysis.fidelity import fidelity
from swflow.analysis.heatmap import summarize
from swflow.analysis.metrics import CORRELATED, METRICS
from swflow.analysis.plausibility import LOOKED_AT, check_workload
from swflow.database.comparisons import compare_runs, pairs_to_compare, with_verdicts
from swflow.database.leaderboard import GAPS, LEADERBOARD
from swflow.database.schema import FIGURES, KEPT, MEDIANS, TABLES
from swflow.errors import SwflowError, reason_of
from swflow.files.atomic import atomic_path
from swflow.files.fingerprint import fingerprint
from swflow.files.manifest import file_digest
from swflow.files.query import memory_limit
from swflow.jobs import table as tables
from swflow.jobs.table import JOB_COLUMNS, Workload, check_columns, read_columns, read_metadata
from swflow.log.imported import is_log_table, names_in, names_of_jobs
from swflow.names import expand, recipe_of, replicate_of
from swflow.papers import published_conventions, published_readings, published_trends, published_values
from swflow.papers.claims import check_claims
from swflow.papers.views import (
    CELLS,
    CONVENTION_VALUES,
    COVERAGE,
    DRAW_MACROS,
    DRAWS,
    READINGS,
    REPRODUCTION,
    SENSITIVITY,
    TREND_CHECKS,
)
from swflow.scheduling.options import current_names
from swflow.scheduling.outcomes import OUTCOME_COLUMNS
from swflow.scheduling.scheduler import LOG
from swflow.studies import runs
from swflow.workload.clean import open_workload

#: From this number of new runs on, several processes are worth the second in which they start.
MANY_RUNS = 100

#: Linux ioctl request to share the blocks of two files (FICLONE).
_CLONE = 0x40049409

#: Kinds of files other than runs: the tables for their rows, and the columns that are in the metadata of the files.
_KINDS = {
    "sweep": ("sweeps", ("sweep",)),
    "whatif": ("whatifs", ("study", "workload")),
    "bounds": ("bounds", ("workload",)),
}

_TYPES = {pl.Int64(): "BIGINT", pl.Float64(): "DOUBLE", pl.Boolean(): "BOOLEAN", pl.String(): "VARCHAR"}


def load(
    paths: Iterable[str | os.PathLike[str]],
    database: str | os.PathLike[str],
    *,
    left_out: Sequence[Mapping[str, Any]] = (),
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
        Runs: manifests, folders with a manifest, or single files; also files of sweeps, fitted models, what-ifs and
        bounds.
    database : path-like
        The database file.
    left_out : sequence of dict
        Result of `read_left_out`: rows of the table ``left_out``.
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
    given = [Path(path) for path in paths]
    fits = [path for path in given if path.suffix == ".json" and path.is_file() and _is_fit(path)]
    files = _files(path for path in given if path not in fits)
    if not files:
        raise SwflowError("load: no run given; name folders such as results/runs/KTH-SP2")
    metadata = {file: read_metadata(file) for file in files}
    others = {file: about for file, about in metadata.items() if about.get("kind") in _KINDS}
    notes = {file: _run_notes(file, metadata[file]) for file in sorted(files) if file not in others}
    sources = _sources(notes)
    _check_bounds(others, sources)
    schedulers = _schedulers(notes, others)
    contents = _contents(sources, notes, files)
    old = _old_contents(database, contents)
    new = {part for part, digest in contents.items() if (old or {}).get(part) != digest}
    read = [file for file, note in notes.items() if ("run", note["run"]) in new]
    newly = {file: notes[file] for file in sorted(read, key=lambda file: str(notes[file]["run"]))}
    changed = {note["run"] for note in newly.values()}
    is_large = any(note["metrics"]["jobs"] > tables.MOST_AT_ONCE for note in notes.values())
    workers = 0 if is_large else processes if len(newly) >= MANY_RUNS else 1
    with atomic_path(database) as temporary, threadpool_limits(1, user_api="blas"), _beside(workers) as in_turn:
        try:
            new_workloads = [name for name in sources if ("workload", name) in new]
            examined = in_turn(_examined, new_workloads, [sources[name][0] for name in new_workloads])
            summaries = in_turn(_summary, [note["run"] for note in newly.values()], newly)
            fairness = in_turn(_fairness, *_with_owners(newly, sources))
            alike, unchanged = _with_records(notes, changed)
            fidelities = in_turn(_fidelities, *alike)
            compared = in_turn(compare_runs, pairs_to_compare(notes, changed))
            if old:
                _copy(Path(database), temporary)
            with duckdb.connect(temporary) as connection:
                connection.execute("SET enable_progress_bar = false; SET preserve_insertion_order = true")
                connection.execute(f"SET memory_limit = '{memory_limit()}B'")
                if not is_large:  # leave a processor to the comparisons, which take longest
                    connection.execute(f"SET threads = {max(1, (os.cpu_count() or 1) - 1)}")
                if old:
                    _forget(connection, old, contents)
                else:
                    _create(connection)
                for file in read:
                    runs.check_whole(file, files[file])
                _fill_workloads(connection, examined)
                _fill_outcomes(connection, newly, summaries, progress)
                _fill_runs(connection, notes)
                _insert(connection, "schedulers", [_scheduler_row(*item) for item in sorted(schedulers.items())])
                found = [table for table in fairness if table.height]
                _insert(connection, "fairness", pl.concat(found, how="vertical_relaxed") if found else [])
                connection.execute(
                    "DELETE FROM fidelity WHERE run NOT IN (SELECT unnest($kept::VARCHAR[]))", {"kept": unchanged}
                )
                _insert(connection, "fidelity", [row for rows in fidelities for row in rows])
                for file, about in others.items():
                    table, names = _KINDS[about["kind"]]
                    values = {name: pl.lit(about[name], pl.String) for name in names}
                    _insert(connection, table, pl.read_parquet(file, glob=False).with_columns(**values))
                _insert(connection, "fits", [row for path in fits for row in _fit_rows(path)])
                _insert(connection, "left_out", left_out)
                _insert(connection, "published", published_values())
                _insert(connection, "trends", published_trends())
                _insert(connection, "reading_parts", published_readings())
                _insert(connection, "conventions", published_conventions())
                connection.execute(FIGURES)
                _fill_replicates(connection)
                statements = (
                    MEDIANS, DRAWS, CELLS, READINGS, REPRODUCTION, COVERAGE, DRAW_MACROS, TREND_CHECKS,
                    CONVENTION_VALUES, SENSITIVITY, GAPS, LEADERBOARD,
                )  # fmt: skip
                for statement in statements:
                    connection.execute(statement)
                _fill_comparisons(connection, [row for rows in compared for row in rows])
                _insert(connection, "claims", check_claims(connection))
                rows = [(*part, digest) for part, digest in sorted(contents.items())]
                _insert(connection, "contents", pl.DataFrame(rows, ["kind", "name", "digest"], orient="row"))
                counts = _row_counts(connection)
        except duckdb.Error as error:
            raise SwflowError(f"load: {database}: {reason_of(error)}") from error
        finally:
            Path(f"{temporary}.wal").unlink(missing_ok=True)
    return counts


def _contents(
    sources: Mapping[str, tuple[Path, str]], notes: Mapping[Path, Mapping[str, Any]], files: Mapping[Path, Any]
) -> dict[tuple[str, str], str]:
    """Return the sources of a database: (kind, name) to a digest. Sources with unchanged digests are not read again."""
    contents = {("code", "load"): fingerprint("load")}
    contents |= {("workload", name): digest for name, (_, digest) in sources.items()}
    return contents | {
        ("run", note["run"]): files[file].get("digest") or file_digest(file) for file, note in notes.items()
    }


def _old_contents(
    database: str | os.PathLike[str], contents: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], str] | None:
    """Return the sources of the existing database if it can be updated; otherwise None."""
    if not Path(database).is_file():
        return None
    try:
        with duckdb.connect(Path(database), read_only=True) as connection:
            rows = connection.execute("SELECT kind, name, digest FROM contents").fetchall()
    except duckdb.Error:
        return None  # of another version, or not a database: build a new one and replace it
    old = {(kind, name): digest for kind, name, digest in rows}
    same = sum(old.get(part) == digest for part, digest in contents.items())
    if old.get(("code", "load")) != contents["code", "load"] or 2 * same < max(len(old), len(contents)):
        return None
    return old


def _copy(source: Path, target: Path) -> None:
    """Copy a file, without copying its blocks if the file system supports it."""
    import fcntl
    import shutil

    try:
        with source.open("rb") as old, target.open("wb") as new:
            fcntl.ioctl(new, _CLONE, old.fileno())
    except OSError:
        shutil.copyfile(source, target)


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all tables."""
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns})")
    jobs, outcomes = (
        ", ".join(f'"{name}" {_duckdb_type(dtype)}' for name, dtype in columns.items())
        for columns in (JOB_COLUMNS, OUTCOME_COLUMNS)
    )
    connection.execute(f"CREATE TABLE jobs (workload VARCHAR, {jobs})")
    connection.execute(f"CREATE TABLE outcomes (run VARCHAR, workload VARCHAR, scheduler VARCHAR, {outcomes})")


def _forget(
    connection: duckdb.DuckDBPyConnection, old: Mapping[tuple[str, str], str], contents: Mapping[tuple[str, str], str]
) -> None:
    """Delete stale rows from an old database, and everything that each load rebuilds."""
    for (view,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall():
        connection.execute(f'DROP VIEW "{view}"')
    for table, columns in TABLES.items():
        if not any(table in kept for kept in KEPT.values()):
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"CREATE TABLE {table} ({columns})")
    for kind, kept in KEPT.items():
        stale = [name for (of, name), digest in old.items() if of == kind and contents.get((of, name)) != digest]
        for table, identifying in kept.items():
            for column in identifying:
                connection.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT unnest($stale))", {"stale": stale})


def read_left_out(texts: Iterable[str], reached: str | os.PathLike[str] | None) -> list[dict[str, Any]]:
    """
    Return the runs that are omitted because a log is missing.

    Parameters
    ----------
    texts : iterable of str
        ``LOG:WORKLOAD=SCHEDULER,SCHEDULER``: the missing log, a workload of it or a range of replicates, and its
        schedulers; no scheduler for a sweep.
    reached : path-like, optional
        The output of ``swflow reach``, with the reasons.

    Returns
    -------
    list of dict
        Rows of the table ``left_out``.

    Examples
    --------
    >>> [row["run"] for row in read_left_out(["A:A+moldable@1-2=easy"], None)]
    ['A+moldable@1/easy', 'A+moldable@2/easy']
    """
    try:
        reasons = json.loads(Path(reached).read_text(encoding="utf-8"))["missing"] if reached else {}
    except (OSError, ValueError, KeyError, TypeError):
        raise SwflowError(f"{reached}: not a file of swflow reach; delete it, and run snakemake again") from None
    rows = []
    for text in texts:
        log, _, rest = text.partition(":")
        names, _, schedulers = rest.partition("=")
        for name, scheduler in itertools.product(expand(names), schedulers.split(",")):
            run = f"{name}/{scheduler}" if scheduler else name
            about = {"run": run, "workload": name, "scheduler": scheduler or None}
            rows.append(about | {"log": log, "reason": reasons.get(log)})
    return rows


def _is_fit(path: Path) -> bool:
    """
    Return whether a file is a fitted model and not a manifest.

    Invalid files count as manifests and are rejected when they are read.
    """
    with path.open("rb") as file:
        return b'"fitted workload model"' in file.read(200)


def _fit_rows(path: Path) -> list[dict[str, Any]]:
    """Return the goodness of fit of a fitted model."""
    from swflow.workload.models.memory_model import is_memory_model, read_memory_model
    from swflow.workload.steps.model import read_model

    is_memory = is_memory_model(json.loads(path.read_text(encoding="utf-8")))
    fitted: Any = read_memory_model(path) if is_memory else read_model(path)
    about = {"workload": fitted.source, "fit": path.stem, "jobs": fitted.jobs, "model": "memory", "arrivals": None}
    if not is_memory:
        about |= {"model": fitted.model, "arrivals": fitted.arrivals.kind}
    return [
        about | {"measure": measure, "value": value, "source_value": source_value}
        for measure, (value, source_value) in fitted.goodness.items()
    ]


def _files(paths: Iterable[str | os.PathLike[str]]) -> dict[Path, dict[str, Any]]:
    """Return the files of runs and sweeps, each once, with their manifest entries; raise an error for a wrong size."""
    found: dict[Path, tuple[Path, dict[str, Any]]] = {}
    for path in paths:
        for file, entry in runs.runs_in(path).items():
            if file.resolve() not in found:
                if entry and file.stat().st_size != entry["size"]:
                    runs.check_whole(file, entry)
                found[file.resolve()] = (file, entry)
    return dict(found.values())


def _run_notes(file: Path, notes: dict[str, Any]) -> dict[str, Any]:
    if notes.get("kind") != "run":
        raise SwflowError(f"{file}: not a run of swflow; create one with: swflow simulate WORKLOAD -o {file}")
    return notes | {"run": f"{notes['workload']}/{notes['scheduler']}"}


def _sources(notes: Mapping[Path, Mapping[str, Any]]) -> dict[str, tuple[Path, str]]:
    """Return the file of every workload and its digest; raise an error if it is not the simulated version."""
    inputs: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    for file, note in notes.items():
        if note["run"] in seen:
            raise SwflowError(f"load: two runs are called {note['run']!r} (one is {file}); rename one of them")
        seen.add(note["run"])
        known = inputs.setdefault(note["workload"], (note["source"], note["input"]))
        if known[1] != note["input"]:
            raise SwflowError(
                f"{file}: simulated on another version of {note['workload']!r} than other runs; simulate it again"
            )
    workloads = {}
    for workload, (source, digest) in sorted(inputs.items()):
        if not Path(source).is_file():
            raise SwflowError(f"{source}: the workload of the runs in {workload!r} is missing; create it again")
        if file_digest(source) != digest:
            raise SwflowError(f"{source}: changed since {workload!r} was simulated; simulate it again")
        workloads[workload] = (Path(source), digest)
    return workloads


def _check_bounds(others: Mapping[Path, Mapping[str, Any]], sources: Mapping[str, tuple[Path, str]]) -> None:
    """Raise an error if bounds were computed of another version of a workload than the runs, or twice."""
    seen: set[str] = set()
    bounds = {file: about["workload"] for file, about in others.items() if about["kind"] == "bounds"}
    for file, name in bounds.items():
        if name in seen:
            raise SwflowError(f"{file}: bounds of {name!r}: given twice; expected one file per workload")
        seen.add(name)
        if name in sources and sources[name][1] != others[file]["input"]:
            raise SwflowError(
                f"{file}: bounds of another version of {name!r} than the runs have; make them again with: "
                f"swflow bound {sources[name][0]} -o {file}"
            )


def _schedulers(
    notes: Mapping[Path, Mapping[str, Any]], others: Mapping[Path, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the options of the schedulers of runs and sweeps; raise an error if a name has different options."""
    named = [(file, note["scheduler"], note["options"]) for file, note in notes.items()]
    sweeps = {file: about["schedulers"] for file, about in others.items() if about["kind"] == "sweep"}
    named += [(file, *item) for file, of_sweep in sweeps.items() for item in of_sweep.items()]
    schedulers: dict[str, dict[str, Any]] = {}
    for file, name, options in named:
        if schedulers.setdefault(name, options) != options:
            raise SwflowError(f"{file}: scheduler {name!r} has different options in another run; rename one")
    return schedulers


def _scheduler_row(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    columns = (
        "order", "backfill", "backfill_order", "estimates", "prediction", "allocation", "runtime",
        "event_order", "dispatch", "without_status", "shapes",
    )  # fmt: skip
    row = {"scheduler": name, **{column: options[column] for column in columns}, "options": json.dumps(options)}
    options = current_names(options)
    # Options without effect are null. The column of the reservations keeps its old name.
    row["lookahead"] = options.get("reservations", 1) if options["backfill"] == "easy" else None
    row["dispatch"] = options["dispatch"] if options.get("clusters") else None
    return row


def _limit_threads() -> None:
    """Compute linear algebra in one thread: several would compete with the inserts, and round differently."""
    threadpool_limits(1, user_api="blas")  # of the libraries that this module has loaded


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


class _Examined(NamedTuple):
    """The rows that describe a workload by table, the names in it, its columns, and its jobs or their file."""

    rows: dict[str, list[dict[str, Any]]]
    names: pl.DataFrame
    schema: pl.Schema
    jobs: pl.DataFrame | Path


def _examined(name: str, file: Path) -> _Examined:
    """Read and check a workload; the jobs of a Parquet file are left in the file."""
    is_workload = file.suffix == ".parquet" and not is_log_table(file)
    # A file is inserted unchanged, so read only the columns needed here.
    workload = open_workload(file, columns=LOOKED_AT if is_workload else None)
    history = workload.history
    fits = [entry for entry in history if "fit" in entry][-1:]  # of the last model that generated it
    rows: dict[str, list[dict[str, Any]]] = {
        "workloads": [_workload_row(name, workload)],
        "removals": [
            {"position": position, "stage": entry["stage"], "reason": reason, "jobs": jobs}
            for position, entry in enumerate(history)
            for reason, jobs in {**entry.get("removed", {}), "kept": entry["kept"]}.items()
        ],
        "model_fit": [
            {"source": entry["source"], "model": entry["model"], "measure": measure, "value": value, "source_value": of}
            for entry in fits
            for measure, (value, of) in entry["fit"].items()
        ],
        "checks": [asdict(finding) for finding in check_workload(workload)],
    }
    for row in itertools.chain.from_iterable(rows.values()):
        row["workload"] = name
    jobs: pl.DataFrame | Path = workload.jobs
    schema = workload.jobs.schema
    if is_workload:
        named = names_in(workload.header)["column"].unique().to_list()
        workload = replace(workload, jobs=read_columns(file, named))
        schema = check_columns(pl.read_parquet(file, glob=False, n_rows=0), name).schema
        jobs = file
    return _Examined(rows, names_of_jobs(workload).with_columns(workload=pl.lit(name)), schema, jobs)


def _fill_workloads(connection: duckdb.DuckDBPyConnection, examined: Iterable[_Examined]) -> None:
    """Insert workloads, their jobs, and their histories."""
    rows: dict[str, list[dict[str, Any]]] = {}
    called = []
    tables_of_jobs = _Inserted(connection, "jobs", ["workload"])
    for found in examined:
        for table, some in found.rows.items():
            rows.setdefault(table, []).extend(some)
        about = found.rows["workloads"][0]
        called.append(found.names)
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
    if called:
        _insert(connection, "names", pl.concat(called, how="vertical_relaxed"))


def _duckdb_type(dtype: Any) -> str:
    """Return the SQL type of a column, including nested types."""
    if isinstance(dtype, pl.List):
        return f"{_duckdb_type(dtype.inner)}[]"
    if isinstance(dtype, pl.Struct):
        return f"STRUCT({', '.join(f'{field.name} {_duckdb_type(field.dtype)}' for field in dtype.fields)})"
    return _TYPES[dtype]


def _workload_row(name: str, workload: Workload) -> dict[str, Any]:
    from swflow.log.swf import header_number

    jobs, machine = workload.jobs, workload.machine
    header = {key: "; ".join(lines) or None for key, lines in workload.header.items()}
    return {
        "log": workload.log,
        "recipe": recipe_of(name),
        "replicate": replicate_of(name),
        "steps": workload.steps,
        "jobs": jobs.height,
        "processors": machine.processors,
        "nodes": machine.nodes,
        "processors_per_node": machine.processors_per_node,
        "capacities": json.dumps(machine.capacities) if machine.capacities else None,
        "first_submit_time": jobs["submit_time"].min(),
        "last_submit_time": jobs["submit_time"].max(),
        "unix_start_time": header_number(workload.header, "UnixStartTime"),
        "time_zone": header.get("TimeZoneString"),
        "computer": header.get("Computer"),
        "installation": header.get("Installation"),
        "acknowledge": header.get("Acknowledge"),
    }


def _summary(run: str, file: Path) -> dict[str, pl.DataFrame]:
    """Return the rows of a run in the tables of heatmaps and bubbles."""
    found = summarize(file)
    parts = {"heatmaps": "cells", "bubbles": "bubbles", "bubbles_11": "bubbles_11"}
    return {table: found[part].with_columns(run=pl.lit(run)) for table, part in parts.items()}


def _fill_outcomes(
    connection: duckdb.DuckDBPyConnection,
    notes: Mapping[Path, Mapping[str, Any]],
    summaries: Iterator[Mapping[str, pl.DataFrame]],
    progress: Callable[[Sequence[Any]], Iterable[Any]],
) -> None:
    """Insert the outcomes of runs, and the heatmaps and bubbles derived from them."""
    made: dict[str, list[pl.DataFrame]] = {}
    outcomes = _Inserted(connection, "outcomes", ("run", "workload", "scheduler"))
    for file in progress(list(notes)):
        outcomes.add(file, notes[file], notes[file]["metrics"]["jobs"])
        for table, rows in next(summaries).items():
            made.setdefault(table, []).append(rows)
    outcomes.insert()
    for table, frames in made.items():
        _insert(connection, table, pl.concat(frames, rechunk=True))


def _fill_runs(connection: duckdb.DuckDBPyConnection, notes: Mapping[Path, Mapping[str, Any]]) -> None:
    """Insert the runs, with the notes stored when they were simulated."""
    ordered = sorted(notes, key=lambda file: str(notes[file]["run"]))
    tables: dict[str, list[dict[str, Any]]] = {"runs": [], "metrics": [], "further_metrics": [], "correlations": []}
    for file in ordered:
        note = notes[file]
        names = {name: note[name] for name in ("run", "workload", "scheduler")}
        about = {
            "seconds": runs.run_seconds(file),
            "processors": note["machine"]["processors"],
            "peak_processors": note.get("peak_processors"),  # an earlier version did not record it
            "key": note["key"],
        }
        tables["runs"].append(names | about)
        tables["metrics"].append(names | {name: note["metrics"].get(name) for name in METRICS})
        tables["further_metrics"] += [
            {**names, "metric": metric, "value": float(value)}
            for metric, value in note["metrics"].items()
            if metric not in METRICS
        ]
        found = note["correlations"]
        counts = {name: found.get(name) for name in ("jobs", "above_1")}
        tables["correlations"] += [
            {"run": note["run"], "measure": measure, "spearman": found[measure], **counts} for measure in CORRELATED
        ]
    for table, rows in tables.items():
        _insert(connection, table, rows)


def _fill_comparisons(connection: duckdb.DuckDBPyConnection, compared: list[dict[str, Any]]) -> None:
    """Insert the comparisons of changed runs with others of their logs; previous comparisons are kept."""
    connection.execute(  # comparisons of recipes are derived from those of runs
        "DELETE FROM comparisons WHERE first NOT IN (SELECT run FROM runs) OR second NOT IN (SELECT run FROM runs)"
    )
    names = [description[0] for description in connection.execute("SELECT * FROM comparisons").description]
    rows = [dict(zip(names, row, strict=True)) for row in connection.fetchall()]
    rows = with_verdicts(rows + compared)
    connection.execute("DELETE FROM comparisons")
    _insert(connection, "comparisons", [{name: row[name] for name in names} for row in rows])


#: The names of a run: the columns of the tables about runs.
_NAMES = ("run", "workload", "scheduler")


def _with_owners(
    notes: Mapping[Path, Mapping[str, Any]], sources: Mapping[str, tuple[Path, str]]
) -> tuple[list[Path], list[dict[Path, dict[str, str]]]]:
    """Return the files of workloads, and for each the files of its runs with their names."""
    runs_of: dict[Path, dict[Path, dict[str, str]]] = {}
    for file, note in notes.items():
        runs_of.setdefault(sources[note["workload"]][0], {})[file] = {name: note[name] for name in _NAMES}
    return list(runs_of), list(runs_of.values())


def _fairness(source: Path, runs_of: Mapping[Path, Mapping[str, str]]) -> pl.DataFrame:
    """Return the fairness measures of every user and group in the runs of a workload; raise an error for lost jobs."""
    columns = ["job_id", "wait_time", "bounded_slowdown", "processors", "run_time"]
    jobs, header = _owners(source)
    names = names_in(header).with_columns(
        kind=pl.col("column").replace_strict({column: kind for kind, column in KINDS.items()}, default=None)
    )
    found: list[pl.DataFrame] = []
    for file, about in runs_of.items():
        outcomes = read_columns(file, columns)
        if not outcomes["job_id"].equals(jobs["job_id"]):
            lost = outcomes.join(jobs, on="job_id", how="anti").height
            if lost:
                raise SwflowError(f"load: {about['workload']}: {lost} outcomes have no job; simulate these runs again")
        table = fairness_table(outcomes, jobs)
        if table.height:
            table = table.join(names.select("kind", "id", "name"), on=["kind", "id"], how="left", maintain_order="left")
            found.append(table.with_columns(**{name: pl.lit(value) for name, value in about.items()}))
    return pl.concat(found, how="vertical_relaxed") if found else pl.DataFrame()


def _owners(file: Path) -> tuple[pl.DataFrame, Mapping[str, list[str]]]:
    """Return the job ownership (user, group) of a workload, and its header."""
    if file.suffix == ".parquet" and not is_log_table(file):
        jobs = read_columns(file, ["job_id", *KINDS.values()])
        return check_columns(jobs, str(file), ()), read_metadata(file)["header"]
    workload = open_workload(file)
    return workload.jobs, workload.header


def _with_records(
    notes: Mapping[Path, Mapping[str, Any]], changed: Collection[str]
) -> tuple[tuple[list[Path], list[dict[Path, tuple[dict[str, str], int]]]], list[str]]:
    """
    Return the recorded schedules of workloads, if they are among the runs, and what is compared with each.

    These are the files of the other runs, with their names and the processors of the machine. The names of runs with
    nothing new to compare are returned, too.
    """
    recorded = {note["workload"]: file for file, note in notes.items() if note["options"]["order"] == LOG}
    runs_of: dict[Path, dict[Path, tuple[dict[str, str], int]]] = {}
    unchanged = []
    for file, note in sorted(notes.items(), key=lambda item: str(item[1]["run"])):
        reference = recorded.get(note["workload"])
        if reference is None or reference == file:
            continue
        if note["run"] in changed or notes[reference]["run"] in changed:
            named = {name: note[name] for name in _NAMES}
            runs_of.setdefault(reference, {})[file] = (named, note["machine"]["processors"])
        else:
            unchanged.append(note["run"])
    return (list(runs_of), list(runs_of.values())), unchanged


def _fidelities(reference: Path, runs_of: Mapping[Path, tuple[Mapping[str, str], int]]) -> list[dict[str, Any]]:
    """Return the fidelity of the runs of a workload to its recorded schedule."""
    columns = ["job_id", "submit_time", "start_time", "run_time", "processors", "wait_time", "load"]
    recorded = pl.read_parquet(reference, glob=False, columns=columns)
    return [
        {**names, **fidelity(recorded, pl.read_parquet(file, glob=False, columns=columns), processors)}
        for file, (names, processors) in runs_of.items()
    ]


def _fill_replicates(connection: duckdb.DuckDBPyConnection) -> None:
    """Summarize every figure over the replicates: mean, median, deviation, and Student's 95 % confidence interval."""
    rows = connection.execute(
        """SELECT recipe, log, scheduler, figure AS measure, value
        FROM figures JOIN (
            SELECT workload, recipe, log, replicate FROM workloads
            UNION SELECT workload, recipe, split_part(source, '+', 1), replicate FROM sweeps
        ) USING (workload) WHERE replicate IS NOT NULL AND value IS NOT NULL
        ORDER BY recipe, log, scheduler, measure, replicate, value"""
    ).fetchall()
    if not rows:
        return
    names = ["recipe", "log", "scheduler", "measure"]
    types = dict.fromkeys(names, pl.String()) | {"value": pl.Float64()}
    value = pl.col("value")
    summary = (  # sorted by replicate, so that sums have the same last digits for any set of runs
        pl.DataFrame(rows, types, orient="row")
        .group_by(names, maintain_order=True)
        .agg(replicates=value.len().cast(pl.Int64), mean=value.mean(), median=value.median(), deviation=value.std())
    )
    quantiles = {count: verdict.student(count - 1) for count in summary["replicates"].unique() if count > 1}
    half = pl.col("replicates").replace_strict(quantiles, default=None, return_dtype=pl.Float64) * pl.col("deviation")
    half = half / pl.col("replicates").sqrt()
    half = pl.when(pl.col("deviation") > 0).then(half)  # a figure that is equal in all draws has no interval
    _insert(connection, "replicates", summary.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half))


class _Inserted:
    """
    Parquet files that are inserted into a table together, since a statement per file uses one thread and is slow.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The database.
    table : str
        The table.
    names : sequence of str
        Columns that are constant within a file and that the files do not have.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str, names: Sequence[str]) -> None:
        self.connection, self.table, self.names = connection, table, names
        self.files: list[tuple[Path, Mapping[str, Any]]] = []
        self.rows = 0

    def add(self, file: Path, values: Mapping[str, Any], rows: int) -> None:
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
        named = ", ".join(f"map_extract_value(map($files, ${name}), filename) AS {name}" for name in self.names)
        ((inserted,),) = self.connection.execute(
            f"""INSERT INTO {self.table} BY NAME SELECT {named}, * EXCLUDE (filename)
            FROM read_parquet($patterns, filename = true, union_by_name = true)""",
            {"patterns": [glob.escape(str(file)) for file, _ in self.files]}
            | {"files": [str(file) for file, _ in self.files]}
            | {name: [values[name] for _, values in self.files] for name in self.names},
        ).fetchall()
        if inserted != self.rows:
            files = f"{self.files[0][0]} to {self.files[-1][0]}"
            raise SwflowError(f"{files}: {inserted:,} rows instead of {self.rows:,}; make these files again")
        self.files, self.rows = [], 0


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, rows: pl.DataFrame | Sequence[Mapping[str, Any]]
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


def _row_counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the number of rows of each table."""
    counts = {}
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall():
        row = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        counts[table] = row[0] if row else 0
    return counts


def write_summary(counts: Mapping[str, int], database: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write a JSON summary of a database's content, which is the output file of the workflow's rule."""
    content = {
        "database": os.fspath(database),
        "loaded": datetime.now(UTC).isoformat(timespec="seconds"),
        "bytes": Path(database).stat().st_size,
        "rows": dict(counts),
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")
