"""The database: every run, job and outcome in one DuckDB file, built beside the old one and moved over it."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from swflow import runs
from swflow.analysis.comparison import compare, worth_comparing
from swflow.analysis.fairness import KINDS, fairness_table
from swflow.analysis.fidelity import MEASURES as FIDELITY
from swflow.analysis.fidelity import fidelity
from swflow.analysis.heatmap import HEATMAP_MEASURES, Heatmap, summarize
from swflow.analysis.metrics import CORRELATED, MEASURES
from swflow.analysis.plausibility import check_workload
from swflow.errors import SwflowError, reason_of
from swflow.files import atomic_path
from swflow.jobs import JOB_COLUMNS, Workload, read_metadata
from swflow.log_table import names_in, names_of_jobs
from swflow.names import log_of, recipe_of, replicate_of
from swflow.published import published_readings, published_trends, published_values
from swflow.published.views import COVERAGE, READINGS, REPRODUCTION, TREND_CHECKS
from swflow.scheduling.scheduler import LOG
from swflow.scheduling.simulate import OUTCOME_COLUMNS
from swflow.workloads.clean import open_workload

_SUMMARIES = ", ".join(f"{prefix}_{measure} DOUBLE" for measure in MEASURES for prefix in ("mean", "median", "p95"))
_METRICS = f"""jobs BIGINT, makespan DOUBLE, utilization DOUBLE, {_SUMMARIES}, awrt DOUBLE, awwt DOUBLE,
        squashed_area DOUBLE, killed BIGINT, penalized_percent DOUBLE, penalized_share_percent DOUBLE,
        p95_wait_time_unkilled DOUBLE, p95_bounded_slowdown_60_unkilled DOUBLE, jain_wait_time DOUBLE,
        gini_wait_time DOUBLE"""

#: The tables, in the order in which they are filled. ``jobs`` may have more columns: what steps added.
TABLES: dict[str, str] = {
    "workloads": """workload VARCHAR PRIMARY KEY, log VARCHAR, recipe VARCHAR, replicate BIGINT, steps VARCHAR[],
        jobs BIGINT, processors BIGINT,
        nodes BIGINT, processors_per_node BIGINT, capacities JSON, first_submit_time DOUBLE, last_submit_time DOUBLE,
        unix_start_time BIGINT, time_zone VARCHAR, computer VARCHAR, installation VARCHAR, acknowledge VARCHAR""",
    "removals": "workload VARCHAR, position INTEGER, stage VARCHAR, reason VARCHAR, jobs BIGINT",
    "names": 'workload VARCHAR, "column" VARCHAR, id BIGINT, name VARCHAR',
    "checks": """workload VARCHAR, "check" VARCHAR, severity VARCHAR, message VARCHAR, jobs BIGINT,
        first_job_id BIGINT, moment TIMESTAMP""",
    "schedulers": """scheduler VARCHAR PRIMARY KEY, "order" VARCHAR, backfill VARCHAR, lookahead BIGINT,
        backfill_order VARCHAR, estimates VARCHAR, prediction VARCHAR, allocation VARCHAR, runtime VARCHAR,
        event_order VARCHAR, dispatch VARCHAR, without_status BIGINT[], shapes VARCHAR, options JSON""",
    "runs": """run VARCHAR PRIMARY KEY, workload VARCHAR, scheduler VARCHAR, seconds DOUBLE, processors BIGINT,
        key VARCHAR""",
    "metrics": f"run VARCHAR PRIMARY KEY, workload VARCHAR, scheduler VARCHAR, {_METRICS}",
    "trends": """paper VARCHAR, trend VARCHAR, figure VARCHAR, lower_step VARCHAR, lower_scheduler VARCHAR,
        higher_step VARCHAR, higher_scheduler VARCHAR""",
    "correlations": "run VARCHAR, measure VARCHAR, spearman DOUBLE, jobs BIGINT",
    "heatmaps": """run VARCHAR, measure VARCHAR, load_low DOUBLE, load_high DOUBLE, value_low DOUBLE,
        value_high DOUBLE, jobs BIGINT""",
    "bubbles": """run VARCHAR, measure VARCHAR, filtered BOOLEAN, decile BIGINT, mean_load DOUBLE, mean_value DOUBLE,
        median_load DOUBLE, median_value DOUBLE, jobs BIGINT""",
    "bubbles_11": """run VARCHAR, measure VARCHAR, filtered BOOLEAN, decile BIGINT, mean_load DOUBLE, mean_value DOUBLE,
        median_load DOUBLE, median_value DOUBLE, jobs BIGINT""",
    "comparisons": """workload VARCHAR, measure VARCHAR, first VARCHAR, second VARCHAR, distance DOUBLE, score DOUBLE,
        first_wins DOUBLE, second_wins DOUBLE, better VARCHAR""",
    "replicates": """recipe VARCHAR, log VARCHAR, scheduler VARCHAR, measure VARCHAR, replicates BIGINT, mean DOUBLE,
        median DOUBLE, deviation DOUBLE, low DOUBLE, high DOUBLE""",
    "fairness": """run VARCHAR, workload VARCHAR, scheduler VARCHAR, kind VARCHAR, id BIGINT, name VARCHAR, jobs BIGINT,
        mean_wait_time DOUBLE, p95_wait_time DOUBLE, mean_bounded_slowdown DOUBLE, p95_bounded_slowdown DOUBLE,
        use_share DOUBLE""",
    "fidelity": "run VARCHAR, workload VARCHAR, scheduler VARCHAR, jobs BIGINT, "
    + ", ".join(f"{measure} DOUBLE" for measure in FIDELITY),
    "model_fit": """workload VARCHAR, source VARCHAR, model VARCHAR, measure VARCHAR, value DOUBLE,
        source_value DOUBLE""",
    "published": """paper VARCHAR, "table" VARCHAR, row VARCHAR, "column" VARCHAR, value DOUBLE, workload VARCHAR,
        scheduler VARCHAR, figure VARCHAR""",
    "coverage": """paper VARCHAR, "table" VARCHAR, published BIGINT, compared BIGINT, within_1 BIGINT, within_5 BIGINT,
        within_10 BIGINT, further_off BIGINT, missing BIGINT""",
    "reading_parts": "paper VARCHAR, reading VARCHAR, part VARCHAR, published VARCHAR, ours VARCHAR",
    "sweeps": f"""sweep VARCHAR, workload VARCHAR, recipe VARCHAR, replicate BIGINT, source VARCHAR, processors BIGINT,
        d DOUBLE, variant VARCHAR, factor DOUBLE, scheduler VARCHAR, {_METRICS}""",
}

_TYPES = {pl.Int64(): "BIGINT", pl.Float64(): "DOUBLE", pl.Boolean(): "BOOLEAN", pl.String(): "VARCHAR"}

#: Every figure of every workload and run, one a row. A draw that is a run and a point of a sweep counts once; those
#: of a search share their name over many factors, and are left out. Without a scheduler, figures of workloads: the
#: share of powers of two among the sizes, the whole factor by which the widest job fills 1,024 processors, how well a
#: synthetic workload fits its source, and the source's own.
FIGURES = """
    CREATE VIEW figures AS
    WITH measured AS (
        SELECT * EXCLUDE (run) FROM metrics
        UNION
        SELECT * EXCLUDE (sweep, recipe, replicate, source, processors, d, variant, factor) FROM sweeps
        WHERE replicate IS NULL OR starts_with(recipe, source || '+' || variant)
    )
    SELECT workload, scheduler, name AS figure, value FROM (
        UNPIVOT (SELECT * REPLACE (jobs::DOUBLE AS jobs, killed::DOUBLE AS killed) FROM measured)
        ON COLUMNS(* EXCLUDE (workload, scheduler)))
    UNION ALL
    SELECT workload, scheduler, 'spearman_' || measure, spearman FROM correlations JOIN runs USING (run)
    UNION ALL
    SELECT workload, NULL, 'log_jobs', sum(jobs) FROM removals WHERE position = 0 GROUP BY workload
    UNION ALL
    SELECT workload, NULL, 'processors', processors FROM workloads
    UNION ALL
    SELECT workload, NULL, 'kept_jobs', jobs FROM workloads
    UNION ALL
    SELECT workload, NULL, 'widest_job', max(processors) FROM jobs GROUP BY workload
    UNION ALL
    SELECT workload, NULL, 'static_factor_1024', round(1024 / max(processors)) FROM jobs GROUP BY workload
    UNION ALL
    SELECT workload, NULL, 'power_of_two_percent', 100 * avg(((processors & (processors - 1)) = 0)::INTEGER)
    FROM jobs GROUP BY workload
    UNION ALL
    SELECT workload, NULL, measure, value FROM model_fit
    UNION ALL
    SELECT DISTINCT source, NULL, measure, source_value FROM model_fit
    WHERE source NOT IN (SELECT workload FROM model_fit)
"""

#: The figures of every workload, of replicates the median.
MEDIANS = """
    CREATE VIEW medians AS
    SELECT workload, scheduler, figure, value FROM figures
    UNION ALL
    SELECT recipe, scheduler, measure, median FROM replicates
"""


def load(
    paths: Iterable[str | os.PathLike[str]],
    database: str | os.PathLike[str],
    *,
    expect: str | None = None,
    progress: Callable[[Sequence[Any]], Iterable[Any]] = lambda items: items,
) -> dict[str, int]:
    """
    Build the database of some runs; whoever looks sees the old one or the new one, whole.

    Parameters
    ----------
    paths : iterable of path-like
        Runs: manifests, the folders that have one, or single files; and files of sweeps.
    database : path-like
        The file to write.
    expect : str, optional
        What `expected` returned for the runs that the config asks for: other runs are refused.
    progress : callable
        Wraps the sequence of runs, to show how far it is.

    Returns
    -------
    dict
        Table to its number of rows.

    Raises
    ------
    SwflowError
        If a run or its workload is missing, or does not fit to the others.
    """
    files = [file for path in paths for file in runs.runs_in(path)]
    sweeps = {file: notes for file in files for notes in [read_metadata(file)] if notes.get("kind") == "sweep"}
    notes = {file: _run_notes(file) for file in files if file not in sweeps}
    if not files:
        raise SwflowError("load: no run given; name folders such as results/runs/KTH-SP2")
    if expect is not None:
        _check_expected(notes, sweeps, expect)
    sources = _sources(notes)
    schedulers = _schedulers(notes, sweeps)
    with atomic_path(database) as temporary:
        try:
            with duckdb.connect(temporary) as connection:
                connection.execute("SET enable_progress_bar = false; SET preserve_insertion_order = true")
                for table, columns in TABLES.items():
                    connection.execute(f"CREATE TABLE {table} ({columns})")
                _fill_workloads(connection, sources)
                _insert(
                    connection,
                    "schedulers",
                    [_scheduler_row(name, schedulers[name]) for name in sorted(schedulers)],
                )
                heatmaps = _fill_runs(connection, notes, progress)
                _fill_fairness(connection, notes, sources)
                _fill_fidelity(connection, notes)
                _insert_frame(connection, "comparisons", _comparisons(notes.values(), heatmaps))
                for file, about in sweeps.items():
                    frame = pl.read_parquet(file).with_columns(sweep=pl.lit(about["sweep"]))
                    _insert_frame(connection, "sweeps", frame)
                _insert(connection, "published", published_values().to_dicts())
                _insert(connection, "trends", published_trends().to_dicts())
                _insert(connection, "reading_parts", published_readings().to_dicts())
                connection.execute(FIGURES)
                _fill_replicates(connection)
                for statement in (MEDIANS, REPRODUCTION, COVERAGE, READINGS, TREND_CHECKS):
                    connection.execute(statement)
                counts = _verify(connection, notes)
        except duckdb.Error as error:
            raise SwflowError(f"load: {database}: {reason_of(error)}") from error
        finally:
            Path(f"{temporary}.wal").unlink(missing_ok=True)
    return counts


def expected(
    schedulers_of: Mapping[str, Mapping[str, Mapping[str, Any]]],
    sweeps: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
) -> str:
    """
    Return a digest of the runs that a config asks for.

    Parameters
    ----------
    schedulers_of : mapping
        Workload to scheduler to its options, defaults included.
    sweeps : mapping, optional
        The name of a sweep, ``workload+sweep``, to its schedulers and their options.

    Returns
    -------
    str
        To be compared with that of the runs found.
    """
    content = [schedulers_of, sweeps or {}]
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()


def _run_notes(file: Path) -> dict[str, Any]:
    notes = read_metadata(file)
    if notes.get("kind") != "run":
        raise SwflowError(f"{file}: not a run of swflow; make one with: swflow simulate WORKLOAD -o {file}")
    return notes | {"run": f"{notes['workload']}/{notes['scheduler']}"}


def _check_expected(
    notes: Mapping[Path, Mapping[str, Any]], sweeps: Mapping[Path, Mapping[str, Any]], expect: str
) -> None:
    found: dict[str, dict[str, Any]] = {}
    for note in notes.values():
        found.setdefault(note["workload"], {})[note["scheduler"]] = note["options"]
    swept = {f"{about['workload']}+{about['sweep']}": about["schedulers"] for about in sweeps.values()}
    if expected(found, swept) != expect:
        raise SwflowError(
            "load: the runs on disk were made with other settings than the config's; "
            "make them again with: snakemake --forcerun simulate sweep"
        )


def _sources(notes: Mapping[Path, Mapping[str, Any]]) -> dict[str, Workload]:
    """Open every workload, once, and make sure that it is the one that was simulated."""
    inputs: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    for file, note in notes.items():
        if note["run"] in seen:
            raise SwflowError(f"load: two runs are called {note['run']!r} (one is {file}); give one another name")
        seen.add(note["run"])
        known = inputs.setdefault(note["workload"], (note["source"], note["input"]))
        if known[1] != note["input"]:
            raise SwflowError(
                f"{file}: simulated on another version of {note['workload']!r} than other runs; simulate it again"
            )
    workloads = {}
    for workload, (source, digest) in sorted(inputs.items()):
        if not Path(source).is_file():
            raise SwflowError(f"{source}: the workload of the runs in {workload!r} is gone; make it again")
        if runs.file_digest(source) != digest:
            raise SwflowError(f"{source}: changed since {workload!r} was simulated; simulate it again")
        workloads[workload] = open_workload(source)
    return workloads


def _schedulers(
    notes: Mapping[Path, Mapping[str, Any]], sweeps: Mapping[Path, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    named = [(file, note["scheduler"], note["options"]) for file, note in notes.items()]
    named += [(file, *item) for file, about in sweeps.items() for item in about["schedulers"].items()]
    schedulers: dict[str, dict[str, Any]] = {}
    for file, name, options in named:
        if schedulers.setdefault(name, options) != options:
            raise SwflowError(f"{file}: scheduler {name!r} has other options here than in another run; rename one")
    return schedulers


def _scheduler_row(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    columns = (
        "order", "backfill", "lookahead", "backfill_order", "estimates", "prediction", "allocation", "runtime",
        "event_order", "dispatch", "without_status", "shapes",
    )  # fmt: skip
    row = {"scheduler": name, **{column: options[column] for column in columns}, "options": json.dumps(options)}
    # What does not apply is null: no reservations without backfilling, no dispatch to a single machine.
    reservations = {"easy": 1, "lookahead": options["lookahead"], "selective": options["lookahead"]}
    row["lookahead"] = reservations.get(options["backfill"])
    row["dispatch"] = options["dispatch"] if options["centres"] else None
    return row


def _fill_workloads(connection: duckdb.DuckDBPyConnection, workloads: Mapping[str, Workload]) -> None:
    columns = dict(JOB_COLUMNS)
    for workload in workloads.values():
        columns.update({name: dtype for name, dtype in workload.jobs.schema.items() if name not in columns})
    ddl = ", ".join(f'"{name}" {_duckdb_type(dtype)}' for name, dtype in columns.items())
    connection.execute(f"CREATE TABLE jobs (workload VARCHAR, {ddl})")
    for name, workload in workloads.items():
        _insert(connection, "workloads", [_workload_row(name, workload)])
        _insert(connection, "removals", _removal_rows(name, workload))
        _insert(connection, "model_fit", _model_fit_rows(name, workload))
        _insert_frame(connection, "names", names_of_jobs(workload).with_columns(workload=pl.lit(name)))
        _insert(connection, "checks", [{"workload": name, **asdict(finding)} for finding in check_workload(workload)])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "jobs.parquet"
            workload.jobs.write_parquet(file)
            connection.execute(
                "INSERT INTO jobs BY NAME SELECT $name AS workload, * FROM read_parquet($file)",
                {"name": name, "file": str(file)},
            )


def _duckdb_type(dtype: Any) -> str:
    """Return the SQL type of a column, nested ones included."""
    if isinstance(dtype, pl.List):
        return f"{_duckdb_type(dtype.inner)}[]"
    if isinstance(dtype, pl.Struct):
        return f"STRUCT({', '.join(f'{field.name} {_duckdb_type(field.dtype)}' for field in dtype.fields)})"
    return _TYPES[dtype]


def _workload_row(name: str, workload: Workload) -> dict[str, Any]:
    from swflow.swf import header_number

    jobs = workload.jobs
    return {
        "workload": name,
        "log": workload.log,
        "recipe": recipe_of(name),
        "replicate": replicate_of(name),
        "steps": workload.steps,
        "jobs": jobs.height,
        "processors": workload.machine.processors,
        "nodes": workload.machine.nodes,
        "processors_per_node": workload.machine.processors_per_node,
        "capacities": json.dumps(workload.machine.capacities) if workload.machine.capacities else None,
        "first_submit_time": jobs["submit_time"].min(),
        "last_submit_time": jobs["submit_time"].max(),
        "unix_start_time": header_number(workload.header, "UnixStartTime"),
        "time_zone": _header_text(workload, "TimeZoneString"),
        "computer": _header_text(workload, "Computer"),
        "installation": _header_text(workload, "Installation"),
        "acknowledge": _header_text(workload, "Acknowledge"),
    }


def _header_text(workload: Workload, key: str) -> str | None:
    return "; ".join(workload.header.get(key, ())) or None


def _removal_rows(name: str, workload: Workload) -> list[dict[str, Any]]:
    return [
        {"workload": name, "position": position, "stage": entry["stage"], "reason": reason, "jobs": jobs}
        for position, entry in enumerate(workload.history)
        for reason, jobs in {**entry.get("removed", {}), "kept": entry["kept"]}.items()
    ]


def _model_fit_rows(name: str, workload: Workload) -> list[dict[str, Any]]:
    """Return how well the last model of a workload fits its source; nothing if no model made it."""
    fits = [entry for entry in workload.history if "fit" in entry]
    return [
        {
            "workload": name,
            "source": entry["source"],
            "model": entry["model"],
            "measure": measure,
            "value": value,
            "source_value": source_value,
        }
        for entry in fits[-1:]
        for measure, (value, source_value) in entry["fit"].items()
    ]


def _fill_runs(
    connection: duckdb.DuckDBPyConnection,
    notes: Mapping[Path, Mapping[str, Any]],
    progress: Callable[[Sequence[Any]], Iterable[Any]],
) -> dict[str, dict[str, Heatmap]]:
    """Insert the runs and what belongs to them; return run to measure to heatmap, for the comparisons."""
    heatmaps: dict[str, dict[str, Heatmap]] = {}
    ddl = ", ".join(f'"{name}" {_duckdb_type(dtype)}' for name, dtype in OUTCOME_COLUMNS.items())
    connection.execute(f"CREATE TABLE outcomes (run VARCHAR, workload VARCHAR, scheduler VARCHAR, {ddl})")
    for file in progress(sorted(notes, key=lambda file: str(notes[file]["run"]))):
        note = notes[file]
        names = {name: note[name] for name in ("run", "workload", "scheduler")}
        _insert(
            connection,
            "runs",
            [
                names
                | {
                    "seconds": runs.run_seconds(file),
                    "processors": note["machine"]["processors"],
                    "key": note["key"],
                }
            ],
        )
        _insert(connection, "metrics", [names | note["metrics"]])
        jobs = note["metrics"]["jobs"]
        _insert(
            connection,
            "correlations",
            [
                {
                    "run": note["run"],
                    "measure": measure,
                    "spearman": note["correlations"][measure],
                    "jobs": jobs,
                }
                for measure in CORRELATED
            ],
        )
        connection.execute(
            "INSERT INTO outcomes BY NAME SELECT $run AS run, $workload AS workload, $scheduler AS scheduler, * "
            "FROM read_parquet($file)",
            names | {"file": str(file)},
        )
        summary = summarize(pl.read_parquet(file, columns=["load", "run_time", *HEATMAP_MEASURES]))
        heatmaps[note["run"]] = summary["heatmaps"]
        for table, part in (("heatmaps", "cells"), ("bubbles", "bubbles"), ("bubbles_11", "bubbles_11")):
            frame = summary[part]
            _insert_frame(connection, table, frame.with_columns(run=pl.lit(note["run"])))
    return heatmaps


def _fill_fairness(
    connection: duckdb.DuckDBPyConnection, notes: Mapping[Path, Mapping[str, Any]], sources: Mapping[str, Workload]
) -> None:
    """Insert what every user and group got in every run."""
    columns = ["job_id", "wait_time", "bounded_slowdown", "processors", "run_time"]
    for file in sorted(notes, key=lambda file: str(notes[file]["run"])):
        note = notes[file]
        workload = sources[note["workload"]]
        table = fairness_table(pl.read_parquet(file, columns=columns), workload.jobs)
        if table.height:
            names = names_in(workload.header).with_columns(
                kind=pl.col("column").replace_strict({column: kind for kind, column in KINDS.items()}, default=None)
            )
            table = table.join(names.select("kind", "id", "name"), on=["kind", "id"], how="left", maintain_order="left")
            run = {name: pl.lit(note[name]) for name in ("run", "workload", "scheduler")}
            _insert_frame(connection, "fairness", table.with_columns(**run))


def _fill_fidelity(connection: duckdb.DuckDBPyConnection, notes: Mapping[Path, Mapping[str, Any]]) -> None:
    """Insert how much each run is like the recorded schedule of its workload, where that is among the runs."""
    columns = ["job_id", "submit_time", "start_time", "run_time", "processors", "wait_time", "load"]
    recorded = {note["workload"]: file for file, note in notes.items() if note["options"]["order"] == LOG}
    rows = []
    for file, note in sorted(notes.items(), key=lambda item: str(item[1]["run"])):
        reference = recorded.get(note["workload"])
        if reference is None or reference == file:
            continue
        first, second = (pl.read_parquet(part, columns=columns) for part in (reference, file))
        found = fidelity(first, second, note["machine"]["processors"])
        rows.append({name: note[name] for name in ("run", "workload", "scheduler")} | found)
    _insert(connection, "fidelity", rows)


def _fill_replicates(connection: duckdb.DuckDBPyConnection) -> None:
    """Summarize every figure over the replicates: mean, median, deviation, and Student's 95 % confidence interval."""
    rows = connection.execute(
        """SELECT recipe, log, scheduler, figure AS measure, count(value) AS replicates, avg(value) AS mean,
            median(value) AS median, stddev_samp(value) AS deviation
        FROM figures JOIN (
            SELECT workload, recipe, log, replicate FROM workloads
            UNION SELECT workload, recipe, split_part(source, '+', 1), replicate FROM sweeps
        ) USING (workload) WHERE replicate IS NOT NULL AND value IS NOT NULL
        GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    if not rows:
        return
    names = ["recipe", "log", "scheduler", "measure", "replicates", "mean", "median", "deviation"]
    summary = pl.DataFrame(rows, names, orient="row", infer_schema_length=None)
    from scipy.stats import t  # half a second to import

    quantiles = {count: float(t.ppf(0.975, count - 1)) for count in summary["replicates"].unique() if count > 1}
    half = pl.col("replicates").replace_strict(quantiles, default=None, return_dtype=pl.Float64) * pl.col("deviation")
    half = half / pl.col("replicates").sqrt()
    _insert_frame(connection, "replicates", summary.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half))


def _comparisons(notes: Iterable[Mapping[str, Any]], heatmaps: Mapping[str, Mapping[str, Heatmap]]) -> pl.DataFrame:
    """Compare runs of the same log; the workload is the one that both have, else the log."""
    ordered = sorted(notes, key=lambda note: str(note["run"]))
    rows = [
        {
            "workload": first["workload"] if first["workload"] == second["workload"] else log_of(first["workload"]),
            "measure": measure,
            "first": first["run"],
            "second": second["run"],
            **asdict(result),
            "better": result.better and {"first": first, "second": second}[result.better]["run"],
        }
        for first, second in combinations(ordered, 2)
        if worth_comparing(first, second)
        for measure in HEATMAP_MEASURES
        for result in [compare(heatmaps[first["run"]][measure], heatmaps[second["run"]][measure])]
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _insert_frame(connection: duckdb.DuckDBPyConnection, table: str, frame: pl.DataFrame) -> None:
    """Insert a table by way of a temporary Parquet file, much faster than row by row."""
    if frame.height:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.parquet"
            frame.write_parquet(file)
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM read_parquet($file)", {"file": str(file)})


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows given as mappings from column to value."""
    if not rows:
        return
    columns = ", ".join(f'"{name}"' for name in rows[0])
    values = ", ".join(f"${place}" for place in range(1, len(rows[0]) + 1))
    connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({values})", [list(row.values()) for row in rows])


def _verify(connection: duckdb.DuckDBPyConnection, notes: Mapping[Path, Mapping[str, Any]]) -> dict[str, int]:
    """Make sure that every run is there once, whole, and joins its jobs; return the tables' rows."""
    rows = dict(connection.execute("SELECT run, count(*) FROM outcomes GROUP BY run").fetchall())
    for note in notes.values():
        if rows.get(note["run"], 0) != note["metrics"]["jobs"]:
            raise SwflowError(
                f"load: {note['run']}: {rows.get(note['run'], 0)} of {note['metrics']['jobs']} outcomes arrived"
            )
    lost = connection.execute("SELECT count(*) FROM outcomes ANTI JOIN jobs USING (workload, job_id)").fetchone()
    if lost is None or lost[0]:
        raise SwflowError(f"load: {lost and lost[0]} outcomes have no job; simulate these runs again")
    counts = {}
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall():
        row = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()
        counts[table] = row[0] if row else 0
    return counts


def write_summary(counts: Mapping[str, int], database: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Write a small JSON file that says what a database holds; the workflow's stamp for it."""
    content = {
        "database": os.fspath(database),
        "loaded": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": dict(counts),
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")
