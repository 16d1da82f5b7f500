"""Figures of sweeps: metrics of scaled workloads against the varied parameter."""

import math
import os
import re
from collections.abc import Sequence
from typing import Any, cast

import duckdb
import polars as pl

from swflow.analysis.intervals import student
from swflow.errors import SwflowError, suggest
from swflow.figures.charts.parts import unchecked
from swflow.figures.charts.sweeps import sweep_chart
from swflow.figures.provenance import RecordedConnection, command
from swflow.files.query import connect

#: Matches the name of a scaling step, as given by `swflow.studies.points.Point.step`.
_SCALED = re.compile(r"(integer|precise-size|precise)-(\d+)-d([\d.]+)(?:-f([\d.]+))?(?:-c\d+)?")


def draw_sweep(database: str | os.PathLike[str], sweep: str, **options: Any) -> dict[str, Any]:
    """Draw a sweep of a database that `swflow.database.load` wrote, with the options of `draw_sweep_on`."""
    with connect(database) as connection:
        return draw_sweep_on(connection, sweep, **options)


def draw_sweep_on(
    connection: duckdb.DuckDBPyConnection,
    sweep: str,
    *,
    log: str | None = None,
    measures: Sequence[str] = ("awrt", "awwt"),
    scale: str = "linear",
    title: str | None = None,
    interactive: bool = False,
) -> dict[str, Any]:
    """
    Draw metrics of a sweep, or of a search for the factor, against the varied parameter, from an open database.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        A connection to the database.
    sweep : str
        The sweep's name: the text after the last ``+`` of its file's name.
    log : str, optional
        The source workload; optional if the sweep has a single one.
    measures : sequence of str
        Columns of the table ``sweeps``, one row of panels each.
    scale : {'linear', 'log'}
        The axis of the metrics.
    title : str, optional
        The title; default: the source's name.
    interactive : bool
        Add tooltips, for the report.

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
        raise SwflowError(f"figure: unknown scale {scale!r}; expected linear or log")
    known = connection.execute("SELECT DISTINCT sweep, source FROM sweeps ORDER BY ALL").fetchall()
    sources = [source for name, source in known if name == sweep and log in (None, source)]
    if len(sources) != 1:
        there = ", ".join(f"{source}+{name}" for name, source in known) or "none"
        raise SwflowError(f"figure: sweep: {sweep!r} of {log or 'one log'} is not in the database; found {there}")
    recorded = RecordedConnection(connection)
    columns = [row[0] for row in connection.execute("DESCRIBE sweeps").fetchall()][10:]
    for measure in measures:
        if measure not in columns:
            raise SwflowError(f"figure: unknown measure {measure!r}{suggest(measure, columns)}")
    table = _sweep_rows(cast(Any, recorded), sweep, sources[0], measures)
    swept = table.filter(pl.col("variant").is_not_null())
    x = "d" if swept["d"].n_unique() > 1 else "factor"
    rows = pl.concat([_summary(table, x), _published(cast(Any, recorded), sources[0], measures, swept, x)])
    heading = f"{title or sources[0]}: scaled to {swept['processors'][0]:,} processors"
    with unchecked():
        spec = sweep_chart(rows, x, measures, heading, scale=scale, interactive=interactive)
    options = [("--log", sources[0]), ("--sweep", sweep), *(("--measure", measure) for measure in measures)]
    options += [("--scale", scale)] if scale != "linear" else []
    options += [("--title", title)] if title else []
    spec["usermeta"] |= {"kind": "sweep", "sql": recorded.sql, "command": command("sweep", options)}
    return spec


def _sweep_rows(
    connection: duckdb.DuckDBPyConnection, sweep: str, source: str, measures: Sequence[str]
) -> pl.DataFrame:
    """Return the draws of a sweep and the rows of the source, one row per measure."""
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


def _summary(table: pl.DataFrame, x: str) -> pl.DataFrame:
    """Return mean and confidence interval of every point."""
    points = table.group_by("scheduler", "measure", "variant", x, maintain_order=True).agg(
        mean=pl.col("value").mean(), deviation=pl.col("value").std(), draws=pl.len().cast(pl.Int64())
    )
    factors = [student(draws - 1) / math.sqrt(draws) if draws > 1 else 0.0 for draws in points["draws"]]
    half = pl.col("deviation").fill_null(0.0) * pl.Series(factors, dtype=pl.Float64)
    return (
        points.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half)
        .with_columns(kind=pl.when(pl.col("variant").is_null()).then(pl.lit("source")).otherwise(pl.lit("swept")))
        .select("scheduler", "measure", "kind", line="variant", x=x, mean="mean", low="low", high="high", draws="draws")
        .sort("scheduler", "measure", "line", "x", maintain_order=True)
    )


def _published(
    connection: duckdb.DuckDBPyConnection, source: str, measures: Sequence[str], swept: pl.DataFrame, x: str
) -> pl.DataFrame:
    """Return the published values of scalings of a source that belong to lines of the chart."""
    found = connection.execute(
        "SELECT workload, scheduler, figure, value FROM published WHERE starts_with(workload, $start) "
        "AND value IS NOT NULL",
        {"start": f"{source}+"},
    ).fetchall()
    variants, schedulers, shares = set(swept["variant"]), set(swept["scheduler"]), set(swept["d"])
    along = swept[x].drop_nulls().to_numpy()
    rows = []
    for workload, scheduler, figure, value in found:
        match = _SCALED.fullmatch(workload.removeprefix(f"{source}+"))
        if match and figure in measures:
            variant, processors, d, factor = match.groups()
            at = d if x == "d" else factor
            fits = factor is None if x == "d" else float(d) in shares
            inside = at is not None and along.min() <= float(at) <= along.max()
            on_machine = int(processors) == swept["processors"][0]
            if fits and inside and on_machine and variant in variants and scheduler in schedulers:
                rows.append((scheduler, figure, "published", variant, float(at), value, value, value, 1))
    names = ("scheduler", "measure", "kind", "line", "x", "mean", "low", "high", "draws")
    types = (*[pl.String()] * 4, *[pl.Float64()] * 4, pl.Int64())
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")
