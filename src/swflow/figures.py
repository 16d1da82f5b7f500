"""Figures: from the database to files (PNG, SVG, or interactive Vega-Lite), of runs and of workloads."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from swflow.analysis.comparison import compare, worth_comparing
from swflow.analysis.heatmap import HEATMAP_MEASURES, bubbles, heatmap, kept_by_figure_1
from swflow.analysis.moldable import CHECKED, model_checks
from swflow.analysis.shadows import ranges, shadows
from swflow.charts import (
    Block,
    Panel,
    ReservationTable,
    bubble_chart,
    difference_chart,
    heatmap_chart,
    reservation_table_chart,
)
from swflow.curve_charts import MOLDABLE_CAPTION, curve_chart
from swflow.errors import SwflowError, suggest
from swflow.expressions import check_condition, fulfilled, names_in
from swflow.files import atomic_path
from swflow.machine import Machine
from swflow.model_charts import marginals_chart, repetitions_chart
from swflow.names import log_of
from swflow.query import connect
from swflow.sweep_charts import sweep_chart

#: The figure of jobs on their processors, for runs that record these.
RESERVATION_TABLE = "reservation-table"

#: The kinds of figures.
KINDS = ("heatmap", "bubbles", "difference", RESERVATION_TABLE, "moldable", "marginals", "repetitions")

#: So many runs have a reservation table in one figure.
MOST_TABLES = 6

#: The length of a window of a reservation table unless both ends are given, seconds.
DAY = 86_400.0

#: A column may split jobs into so many subsets of their own; the jobs of its other values are drawn together.
MOST_SUBSETS = 6

#: The name of a step that scales, as `swflow.scaling.Point.step` gives it.
_SCALED = re.compile(r"(integer|precise-size|precise)-(\d+)-d([\d.]+)(?:-f([\d.]+))?(?:-c\d+)?")

_ENDINGS = (".png", ".svg", ".json")
_COLUMNS = ("load", "run_time", *HEATMAP_MEASURES)


def draw(
    kind: str,
    database: str | os.PathLike[str],
    *,
    log: str | None = None,
    runs: Sequence[str] = (),
    split: Sequence[str] = (),
    scale: str = "log",
    window: tuple[float | None, float | None] = (None, None),
    title: str | None = None,
    interactive: bool = False,
) -> dict[str, Any]:
    """
    Draw a figure of some runs of one log.

    Parameters
    ----------
    kind : {'heatmap', 'bubbles', 'difference', 'reservation-table', 'moldable', 'marginals', 'repetitions'}
        What to draw; ``moldable`` checks the model of moldable jobs, and the last two draw the workloads of the runs,
        whatever the scheduler.
    database : path-like
        A database that `swflow.database.load` wrote.
    log : str, optional
        Draw all runs of this log, the recorded schedule first.
    runs : sequence of str
        Or these runs, ``workload/scheduler``, one a column, in this order.
    split : sequence of str
        For heatmaps: subsets of the jobs, each in panels of its own below those of all jobs. Either a column of the
        tables ``outcomes`` or ``jobs``, such as ``queue_id``, or ``NAME=CONDITION`` on them (`swflow.expressions`).
        Where both have a column, such as ``wait_time``, that of ``outcomes`` is meant.
    scale : {'log', 'linear'}
        The value axis of heatmaps.
    window : (float or None, float or None)
        The part of a reservation table to draw, seconds from the log's start; a day from or to the one that is given.
        By default the day of the first run with most penalty, or its first day with jobs if there is none.
    title : str, optional
        By default the log's name.
    interactive : bool
        With tooltips and a brush, for the report.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.

    Raises
    ------
    SwflowError
        If there is no such run, a predicate or the window is wrong, or no run has the places of its jobs.
    """
    if kind not in KINDS:
        raise SwflowError(f"figure: unknown kind {kind!r}; use {', '.join(KINDS)}, sweep")
    with connect(database) as connection:
        chosen = _runs(connection, log, runs)
        names = [f"{run['workload']}, {run['scheduler']}" for run in chosen]
        title = title or ", ".join(sorted({log_of(run["workload"]) for run in chosen}))
        if kind == RESERVATION_TABLE:
            return _reservation_tables(connection, chosen, names, window, title, interactive)
        if kind == "moldable":
            checks = model_checks(_molded_jobs(connection, {run["workload"] for run in chosen}))
            return curve_chart(checks, f"{title}: the model of moldable jobs", MOLDABLE_CAPTION)
        if kind in ("marginals", "repetitions"):
            workloads = {run["workload"]: _attributes(connection, run["workload"]) for run in chosen}
            if kind == "marginals":
                return marginals_chart(workloads, f"{title}: run times and processors")
            return repetitions_chart(workloads, f"{title}: repetitions of run times")
        tables = [_outcomes(connection, run["run"], split) for run in chosen]
    if kind == "bubbles":
        return bubble_chart(_bubble_rows(names, tables), f"{title}: mean slowdown by load", scale)
    if kind == "difference":
        return _difference(chosen, names, tables, f"{title}: differences at equal load", interactive)
    blocks = [_block(label, names, parts, scale) for label, parts in _subsets(tables, split)]
    return heatmap_chart(blocks, f"{title}: performance against load", interactive=interactive)


def draw_sweep(
    database: str | os.PathLike[str],
    sweep: str,
    *,
    log: str | None = None,
    measures: Sequence[str] = ("awrt", "awwt"),
    scale: str = "linear",
    title: str | None = None,
    interactive: bool = False,
) -> dict[str, Any]:
    """
    Draw metrics of a sweep, or of a search for the factor, against the parameter that was varied.

    Parameters
    ----------
    database : path-like
        A database that `swflow.database.load` wrote.
    sweep : str
        The sweep's name: what follows the last ``+`` of its file's name.
    log : str, optional
        The source workload; not needed if the sweep has one only.
    measures : sequence of str
        Columns of the table ``sweeps``, one a row of panels.
    scale : {'linear', 'log'}
        The axis of the metrics.
    title : str, optional
        By default the source's name.
    interactive : bool
        With tooltips, for the report.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.

    Raises
    ------
    SwflowError
        If there is no such sweep or metric.
    """
    if scale not in ("linear", "log"):
        raise SwflowError(f"figure: unknown scale {scale!r}; use linear or log")
    with connect(database) as connection:
        known = connection.execute("SELECT DISTINCT sweep, source FROM sweeps ORDER BY ALL").fetchall()
        sources = [source for name, source in known if name == sweep and log in (None, source)]
        if len(sources) != 1:
            there = ", ".join(f"{source}+{name}" for name, source in known) or "none"
            raise SwflowError(
                f"figure: sweep: {sweep!r} of {log or 'one log'} is not in the database; there is {there}"
            )
        columns = [row[0] for row in connection.execute("DESCRIBE sweeps").fetchall()][10:]
        for measure in measures:
            if measure not in columns:
                raise SwflowError(f"figure: unknown measure {measure!r}{suggest(measure, columns)}")
        table = _sweep_rows(connection, sweep, sources[0], measures)
        published = _published_rows(connection, sources[0], measures)
    swept = table.filter(pl.col("variant").is_not_null())
    x, other = ("d", "factor") if swept["d"].n_unique() > 1 else ("factor", "d")
    rows = pl.concat([_summary(table, x), _published_summary(published, swept, x, other)])
    heading = f"{title or sources[0]}: scaled to {swept['processors'][0]:,} processors"
    return sweep_chart(rows, x, measures, heading, scale=scale, interactive=interactive)


def _sweep_rows(
    connection: duckdb.DuckDBPyConnection, sweep: str, source: str, measures: Sequence[str]
) -> pl.DataFrame:
    """Return the draws of a sweep and the source's own rows, one line a measure."""
    selected = ", ".join(f'CAST("{measure}" AS DOUBLE) AS "{measure}"' for measure in measures)
    columns = ("scheduler", "processors", "variant", "d", "factor")
    rows = connection.execute(
        f"SELECT {', '.join(columns)}, {selected} FROM sweeps WHERE sweep = $sweep AND source = $source",
        {"sweep": sweep, "source": source},
    ).fetchall()
    types = (pl.String(), pl.Int64(), pl.String(), *[pl.Float64()] * (2 + len(measures)))
    schema = dict(zip((*columns, *measures), types, strict=True))
    return pl.DataFrame(rows, schema=schema, orient="row").unpivot(
        list(measures), index=list(columns), variable_name="measure", value_name="value"
    )


def _published_rows(
    connection: duckdb.DuckDBPyConnection, source: str, measures: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return variant, processors, d, factor, scheduler, measure and value of the published scalings of a source."""
    rows = connection.execute(
        "SELECT workload, scheduler, figure, value FROM published WHERE starts_with(workload, $start) "
        "AND value IS NOT NULL",
        {"start": f"{source}+"},
    ).fetchall()
    found = []
    for workload, scheduler, figure, value in rows:
        match = _SCALED.fullmatch(workload.removeprefix(f"{source}+"))
        if match and figure in measures:
            variant, processors, d, factor = match.groups()
            found.append((variant, int(processors), float(d), factor and float(factor), scheduler, figure, value))
    return found


def _summary(table: pl.DataFrame, x: str) -> pl.DataFrame:
    """Return mean and confidence interval of every point."""
    from scipy.special import stdtrit

    points = table.group_by("scheduler", "measure", "variant", x, maintain_order=True).agg(
        mean=pl.col("value").mean(), deviation=pl.col("value").std(), draws=pl.len().cast(pl.Int64())
    )
    draws = points["draws"].to_numpy()
    factor = np.where(draws > 1, stdtrit(np.maximum(draws - 1, 1), 0.975) / np.sqrt(draws), 0.0)
    half = pl.col("deviation").fill_null(0.0) * pl.Series(factor)
    return (
        points.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half)
        .with_columns(kind=pl.when(pl.col("variant").is_null()).then(pl.lit("source")).otherwise(pl.lit("swept")))
        .select("scheduler", "measure", "kind", line="variant", x=x, mean="mean", low="low", high="high", draws="draws")
        .sort("scheduler", "measure", "line", "x", maintain_order=True)
    )


def _published_summary(published: Sequence[tuple[Any, ...]], swept: pl.DataFrame, x: str, other: str) -> pl.DataFrame:
    """Return the published values that belong to lines of the chart."""
    variants, schedulers = set(swept["variant"]), set(swept["scheduler"])
    machine, fixed, xs = swept["processors"][0], set(swept[other]), swept[x]
    rows = []
    for variant, processors, d, factor, scheduler, measure, value in published:
        at = d if x == "d" else factor
        fits = factor is None if x == "d" else factor is not None and d in fixed
        inside = at is not None and xs.min() <= at <= xs.max()
        if fits and inside and processors == machine and variant in variants and scheduler in schedulers:
            rows.append((scheduler, measure, "published", variant, at, value, value, value, 1))
    names = ("scheduler", "measure", "kind", "line", "x", "mean", "low", "high", "draws")
    types = (*[pl.String()] * 4, *[pl.Float64()] * 4, pl.Int64())
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")


def write(spec: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """
    Write a figure by the ending of its file: .png (two dots per pixel), .svg, or .json (Vega-Lite).

    Parameters
    ----------
    spec : dict
        As `draw` returns it.
    path : path-like
        Where.

    Raises
    ------
    SwflowError
        If the ending is unknown.
    """
    path = Path(path)
    if path.suffix not in _ENDINGS:
        raise SwflowError(f"{path}: unknown ending; use {', '.join(_ENDINGS)}")
    content: str | bytes
    if path.suffix == ".json":
        content = json.dumps(spec, separators=(",", ":"), sort_keys=True)
    else:
        import vl_convert

        version = ".".join(spec["$schema"].rpartition("/v")[2].split(".")[:2])
        if path.suffix == ".svg":
            content = vl_convert.vegalite_to_svg(spec, vl_version=version)
        else:
            content = vl_convert.vegalite_to_png(spec, vl_version=version, ppi=144)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def _runs(connection: duckdb.DuckDBPyConnection, log: str | None, wanted: Sequence[str]) -> list[dict[str, str]]:
    """Return the runs to draw: those named, or all of a log with the recorded schedule first."""
    rows = connection.execute("SELECT run, workload, scheduler FROM runs ORDER BY scheduler <> 'log', run").fetchall()
    known = {run: {"run": run, "workload": workload, "scheduler": scheduler} for run, workload, scheduler in rows}
    for run in wanted:
        if run not in known:
            raise SwflowError(f"figure: no run {run!r} in the database; there are {', '.join(known)}")
    chosen = [known[run] for run in wanted] or [run for run in known.values() if log_of(run["workload"]) == log]
    if not chosen:
        logs = sorted({log_of(run["workload"]) for run in known.values()})
        raise SwflowError(f"figure: say which runs to draw, --run or --log; there are logs {', '.join(logs)}")
    return chosen


def _outcomes(connection: duckdb.DuckDBPyConnection, run: str, split: Sequence[str]) -> pl.DataFrame:
    """Return what is drawn of a run's jobs, and a column for each part of the split."""
    parts = [_part(text) for text in split]
    if not parts:
        return _frame(connection, f"SELECT {', '.join(_COLUMNS)} FROM outcomes WHERE run = $run", run)
    tables = {table: {row[0]: row[1] for row in _describe(connection, table)} for table in ("jobs", "outcomes")}
    kinds = {name: _kind(kind) for kind_of in tables.values() for name, kind in kind_of.items()}
    owner = {name: "o" if name in tables["outcomes"] else "j" for name in kinds}
    conditions, columns = {}, {}
    for number, (name, predicate) in enumerate(parts):
        if predicate is None:
            if name not in kinds:
                raise SwflowError(f"figure: split: {name}: no such column{suggest(name, kinds)}")
            columns[f"part_{number}"] = name
        else:
            conditions[f"part_{number}"] = check_condition(predicate, f"figure: split: {name}", kinds)
    needed = sorted(set().union(*map(names_in, conditions.values())))
    drawn = [f'o."{name}"' for name in _COLUMNS]
    drawn += [f'{owner[name]}."{name}" AS "of_{name}"' for name in needed]
    drawn += [f'CAST({owner[name]}."{name}" AS VARCHAR) AS {part}' for part, name in columns.items()]
    sql = f"SELECT {', '.join(drawn)} FROM outcomes o JOIN jobs j USING (workload, job_id) WHERE o.run = $run"
    table = _frame(connection, sql, run)
    values = table.select(pl.col(f"of_{name}").alias(name) for name in needed)
    return table.drop(f"of_{name}" for name in needed).with_columns(
        fulfilled(tree, values).alias(part) for part, tree in conditions.items()
    )


def _kind(name: str) -> pl.DataType:
    """Return the type that a condition takes a column of the database for."""
    return {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "BOOLEAN": pl.Boolean()}.get(name, pl.Object())


def _molded_jobs(connection: duckdb.DuckDBPyConnection, workloads: Iterable[str]) -> pl.DataFrame:
    """Return what the model of moldable jobs drew for the jobs of some workloads."""
    found = pl.DataFrame()
    if _in_jobs(connection, CHECKED[0]):
        columns = ", ".join(CHECKED)
        sql = f"SELECT {columns} FROM jobs WHERE {CHECKED[0]} IS NOT NULL AND workload IN (SELECT unnest($names))"
        found = pl.DataFrame(connection.execute(sql, {"names": sorted(workloads)}).fetchnumpy())
    if found.is_empty():
        raise SwflowError("figure: moldable: none of the runs has moldable jobs; make them with: swflow moldable")
    return found


def _attributes(connection: duckdb.DuckDBPyConnection, workload: str) -> tuple[np.ndarray, np.ndarray]:
    """Return run times and processors of a workload's jobs, in the order of arrivals."""
    columns = connection.execute(
        """SELECT run_time, processors FROM jobs WHERE workload = $workload AND run_time IS NOT NULL
        AND processors IS NOT NULL ORDER BY submit_time, job_id""",
        {"workload": workload},
    ).fetchnumpy()
    return np.asarray(columns["run_time"], dtype=float), np.asarray(columns["processors"], dtype=float)


def _part(text: str) -> tuple[str, str | None]:
    """Return name and condition of a part of the split: ``NAME=CONDITION``, or a column and None."""
    name, equals, predicate = text.partition("=")
    if not name.strip():
        raise SwflowError(f"figure: split: {text!r} is neither a column nor NAME=CONDITION")
    return name, predicate if equals else None


def _describe(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    return [
        row
        for row in connection.execute(f"DESCRIBE {table}").fetchall()
        if row[0] not in ("run", "workload", "scheduler")
    ]


def _in_jobs(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    return name in {row[0] for row in _describe(connection, "jobs")}


def _frame(connection: duckdb.DuckDBPyConnection, sql: str, run: str) -> pl.DataFrame:
    """Return the rows of a query; null is NaN in columns of fractions."""
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


def _subsets(tables: Sequence[pl.DataFrame], split: Sequence[str]) -> list[tuple[str, list[pl.DataFrame]]]:
    """Return all jobs, and then the subsets of each part of the split, with their names."""
    subsets = [("all" if split else "", list(tables))]
    for number, text in enumerate(split):
        name, column = _part(text)[0], f"part_{number}"
        if "=" in text:
            subsets.append((name, [table.filter(pl.col(column)) for table in tables]))
            continue
        counts = tables[0][column].drop_nulls().value_counts(sort=True)
        values = counts[column].head(MOST_SUBSETS).sort().to_list()
        subsets += [
            (f"{name} {value}", [table.filter(pl.col(column) == value) for table in tables]) for value in values
        ]
        rest = [table.filter(~pl.col(column).is_in(values).fill_null(False)) for table in tables]
        if any(table.height for table in rest):
            subsets.append((f"{name} other or unknown", rest))
    return subsets


def _arrays(table: pl.DataFrame) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in _COLUMNS}


def _block(label: str, names: Sequence[str], tables: Sequence[pl.DataFrame], scale: str) -> Block:
    columns = [_arrays(table) for table in tables]
    panels = {}
    for measure in HEATMAP_MEASURES:
        top = max((float(np.nanmax(part[measure], initial=1.0)) for part in columns), default=1.0)
        panels[measure] = [
            Panel(heatmap(part["load"], part[measure], scale, top), bubbles(part["load"], part[measure]))
            for part in columns
        ]
    return Block(label, names, panels)


def _bubble_rows(
    names: Sequence[str], tables: Sequence[pl.DataFrame]
) -> list[tuple[str, list[str], list[pl.DataFrame]]]:
    columns = [_arrays(table) for table in tables]
    kept = [kept_by_figure_1(part["run_time"], part["slowdown"]) for part in columns]
    return [
        (
            "1 min and more, slowdown to 1000",
            list(names),
            [bubbles(part["load"][use], part["slowdown"][use]) for part, use in zip(columns, kept, strict=True)],
        ),
        ("all", list(names), [bubbles(part["load"], part["slowdown"]) for part in columns]),
    ]


def _difference(
    runs: Sequence[dict[str, str]], names: Sequence[str], tables: Sequence[pl.DataFrame], title: str, interactive: bool
) -> dict[str, Any]:
    pairs = [pair for pair in combinations(range(len(runs)), 2) if worth_comparing(runs[pair[0]], runs[pair[1]])]
    if not pairs:
        raise SwflowError("figure: difference: no two of the runs share a workload or a scheduler")
    columns = [_arrays(table) for table in tables]
    panels = {}
    for measure in HEATMAP_MEASURES:
        maps = [heatmap(part["load"], part[measure]) for part in columns]
        panels[measure] = [(maps[a], maps[b], compare(maps[a], maps[b])) for a, b in pairs]
    labels = [(_short(names, a, b), _short(names, b, a)) for a, b in pairs]
    return difference_chart(labels, panels, title, interactive=interactive)


def _short(names: Sequence[str], which: int, other: int) -> str:
    """Return what tells a run from the other one: the scheduler, unless it is the same."""
    workload, scheduler = names[which].split(", ")
    return scheduler if scheduler != names[other].split(", ")[1] else workload


def _reservation_tables(
    connection: duckdb.DuckDBPyConnection,
    chosen: Sequence[dict[str, str]],
    names: Sequence[str],
    window: tuple[float | None, float | None],
    title: str,
    interactive: bool,
) -> dict[str, Any]:
    placed = {
        run for (run,) in connection.execute("SELECT DISTINCT run FROM outcomes WHERE places IS NOT NULL").fetchall()
    }
    drawn = [(run["run"], name) for run, name in zip(chosen, names, strict=True) if run["run"] in placed]
    if not drawn:
        raise SwflowError(
            f"figure: reservation-table: the processors of the jobs of {chosen[0]['run']} are not known; "
            "run it with places: true (and an allocation other than count)"
        )
    since, until = _window(window)
    if since is None or until is None:
        since, until = _worst_day(*_table(connection, *drawn[0], None))
    if not since < until:
        raise SwflowError(
            f"figure: reservation-table: from {since:g} until {until:g} is no time; give seconds, in order"
        )
    tables = [_table(connection, run, name, (since, until))[0] for run, name in drawn[:MOST_TABLES]]
    if all(table.places.is_empty() for table in tables):
        raise SwflowError(f"figure: reservation-table: no job runs from second {since:g} to {until:g}")
    without = [run["run"] for run in chosen if run["run"] not in placed]
    more = len(drawn) - MOST_TABLES
    left_out = [f"{_some(without)}: processors not known"] if without else []
    left_out += [f"{_some([run for run, _ in drawn[MOST_TABLES:]])}: more than {MOST_TABLES} runs"] if more > 0 else []
    note = f"Not drawn: {'; '.join(left_out)}" if left_out else ""
    return reservation_table_chart(
        tables, (since, until), f"{title}: reservation table", note=note, interactive=interactive
    )


def _some(runs: Sequence[str]) -> str:
    """Name one run, and say how many more there are."""
    return runs[0] + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")


def _window(window: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    """Return both ends, a day apart if one is given, or none."""
    since, until = window
    if not all(end is None or np.isfinite(end) for end in window):
        raise SwflowError(f"figure: reservation-table: from {since} until {until} is no time; give seconds, in order")
    if since is None and until is not None:
        return until - DAY, until
    return since, since + DAY if since is not None and until is None else until


def _table(
    connection: duckdb.DuckDBPyConnection, run: str, name: str, window: tuple[float, float] | None
) -> tuple[ReservationTable, pl.DataFrame]:
    """Return the reservation table of a run, of the jobs that run within a window, and the jobs themselves."""
    processors, size, stated = connection.execute(
        """SELECT r.processors, w.processors_per_node, w.capacities
        FROM runs r JOIN workloads w USING (workload) WHERE run = $run""",
        {"run": run},
    ).fetchall()[0]
    machine = Machine(processors, processors if processors % size else processors // size, json.loads(stated or "{}"))
    resources = [name for name in machine.capacities if _in_jobs(connection, name)]
    demands = "".join(f', coalesce(j."{name}", 0.0) AS "{name}"' for name in resources)
    part = f"AND start_time < {window[1]!r} AND end_time > {window[0]!r}" if window else ""
    jobs = _frame(
        connection,
        f"""SELECT job_id, start_time, end_time, o.processors, o.penalty_time, o.killed, o.places {demands}
        FROM outcomes o JOIN jobs j USING (workload, job_id) WHERE run = $run {part} ORDER BY start_time, job_id""",
        run,
    )
    found = shadows(jobs, jobs.select("job_id", *resources), machine)
    if window:  # a shadow at the edge may begin or end with a job that is not among these
        found = found.with_columns(pl.col("start", "end").clip(*window)).filter(pl.col("start") < pl.col("end"))
    return ReservationTable(name, machine, ranges(jobs), found), jobs


def _worst_day(table: ReservationTable, jobs: pl.DataFrame) -> tuple[float, float]:
    """Return the day, from the log's start, with most penalty over all processors; without any, the first one."""
    first = (pl.col("start") // DAY).cast(pl.Int64)
    last = (pl.col("end") / DAY).ceil().cast(pl.Int64)
    within = pl.min_horizontal("end", (pl.col("day") + 1) * DAY) - pl.max_horizontal("start", pl.col("day") * DAY)
    days = (
        table.shadows.filter(pl.col("penalty") > 0)
        .select("start", "end", "penalty", "processes", day=pl.int_ranges(first, last))
        .explode("day")
        .group_by("day", maintain_order=True)
        .agg((within * pl.col("penalty") * pl.col("processes")).sum().alias("lost"))
        .sort("lost", "day", descending=[True, False])
    )
    day = days["day"][0] if days.height else jobs.select((pl.col("start_time") // DAY).min()).item()
    return day * DAY, (day + 1) * DAY
