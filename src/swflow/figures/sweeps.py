"""Figures of sweeps: metrics of scaled workloads against the varied parameter."""

import math
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import duckdb
import polars as pl

from swflow.analysis.heatmap import LOAD_BINS
from swflow.analysis.long_run import student
from swflow.errors import SwflowError, suggest
from swflow.figures.parts import (
    OVER_CELLS,
    TIME_LABEL,
    FigureData,
    Spec,
    beside,
    finished_figure,
    human_time,
    layered,
    time_axis,
    tip,
)
from swflow.figures.provenance import command, recorded_figure
from swflow.figures.styles import BLUE, GREEN, RUN_COLOURS, VERMILION
from swflow.files.query import connect

#: Matches the name of a scaling step, as given by `swflow.studies.points.Point.step`.
_SCALED = re.compile(r"(integer|precise-size|precise)-(\d+)-d([\d.]+)(?:-f([\d.]+))?(?:-c\d+)?")


def draw_sweep(database: str | os.PathLike[str], sweep: str, **options: Any) -> Spec:
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
) -> Spec:
    """
    Draw metrics of a sweep, or of a search for the factor, against the varied parameter, from an open database.

    Parameters
    ----------
    connection, interactive, title
        As for `swflow.figures.request.Request`; the default title is the source's name.
    sweep : str
        The sweep's name: the text after the last ``+`` of its file's name.
    log : str, optional
        The source workload; optional if the sweep has a single one.
    measures : sequence of str
        Columns of the table ``sweeps``, one row of panels each.
    scale : {'linear', 'log'}
        The axis of the metrics.

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
    columns = [row[0] for row in connection.execute("DESCRIBE sweeps").fetchall()][10:]
    for measure in measures:
        if measure not in columns:
            raise SwflowError(f"figure: unknown measure {measure!r}{suggest(measure, columns)}")

    def draw(recorded: Any) -> Spec:
        table = _sweep_rows(recorded, sweep, sources[0], measures)
        swept = table.filter(pl.col("variant").is_not_null())
        x, other = _parameters(swept)
        summary, published = _summary(table, x, other), _published(recorded, sources[0], measures, swept, x, other)
        rows = pl.concat([summary, pl.DataFrame(published, summary.schema, orient="row")])
        heading = f"{title or sources[0]}: scaled to {swept['processors'][0]:,} processors"
        return sweep_chart(rows, x, measures, heading, scale=scale, interactive=interactive)

    options = [("--log", sources[0]), ("--sweep", sweep), *(("--measure", measure) for measure in measures)]
    options += [("--scale", scale)] if scale != "linear" else []
    options += [("--title", title)] if title else []
    return recorded_figure(connection, draw, "sweep", command=command("sweep", options))


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


def _parameters(swept: pl.DataFrame) -> tuple[str, str | None]:
    """
    Return the parameter of the axis and, if both vary, the one with fewer values, each of which has a line.

    Each variant has its own factor, so that a factor varies only if it does within a variant.
    """
    shares = swept["d"].n_unique()
    factors = max(swept.group_by("variant").agg(pl.col("factor").n_unique())["factor"].to_list())
    if shares > 1 and factors > 1:
        return ("d", "factor") if shares >= factors else ("factor", "d")
    return ("d" if shares > 1 else "factor"), None


def _line_of(variant: str, other: str | None, value: float | None) -> str:
    """
    Return the name of a line.

    Examples
    --------
    >>> _line_of("precise", None, None), _line_of("precise", "factor", 10.5)
    ('precise', 'precise, factor 10.5')
    """
    return variant if other is None or value is None else f"{variant}, {other} {value:.10g}"


def _lines(table: pl.DataFrame, other: str | None) -> list[str | None]:
    """Return the line of each row; None for the source, which has no variant."""
    values = table[other] if other else [None] * table.height
    rows = zip(table["variant"], values, strict=True)
    return [variant and _line_of(variant, other, value) for variant, value in rows]


def _summary(table: pl.DataFrame, x: str, other: str | None) -> pl.DataFrame:
    """Return mean and confidence interval of every point."""
    points = (
        table.with_columns(line=pl.Series(_lines(table, other), dtype=pl.String()))
        .group_by("scheduler", "measure", "line", x, maintain_order=True)
        .agg(mean=pl.col("value").mean(), deviation=pl.col("value").std(), draws=pl.len().cast(pl.Int64()))
    )
    factors = [student(draws - 1) / math.sqrt(draws) if draws > 1 else 0.0 for draws in points["draws"]]
    half = pl.col("deviation").fill_null(0.0) * pl.Series(factors, dtype=pl.Float64)
    return (
        points.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half)
        .with_columns(kind=pl.when(pl.col("line").is_null()).then(pl.lit("source")).otherwise(pl.lit("swept")))
        .select("scheduler", "measure", "kind", "line", x=x, mean="mean", low="low", high="high", draws="draws")
        .sort("scheduler", "measure", "line", "x", maintain_order=True)
    )


def _published(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    measures: Sequence[str],
    swept: pl.DataFrame,
    x: str,
    other: str | None,
) -> list[tuple[Any, ...]]:
    """Return the published values of scalings of a source that belong to lines of the chart, as rows of `_summary`."""
    found = connection.execute(
        "SELECT workload, scheduler, figure, value FROM published WHERE starts_with(workload, $start) "
        "AND value IS NOT NULL",
        {"start": f"{source}+"},
    ).fetchall()
    lines, schedulers, shares = set(_lines(swept, other)), set(swept["scheduler"]), set(swept["d"])
    along = swept[x].drop_nulls().to_numpy()
    rows = []
    for workload, scheduler, figure, value in found:
        match = _SCALED.fullmatch(workload.removeprefix(f"{source}+"))
        if match and figure in measures:
            variant, processors, d, factor = match.groups()
            at = d if x == "d" else factor
            value = {"d": float(d), "factor": float(factor) if factor else None}.get(other or "")
            fits = float(d) in shares if x == "factor" else other == "factor" or factor is None
            line = _line_of(variant, other, value)
            inside = at is not None and along.min() <= float(at) <= along.max()
            on_machine = int(processors) == swept["processors"][0]
            if fits and inside and on_machine and line in lines and scheduler in schedulers:
                rows.append((scheduler, figure, "published", line, float(at), value, value, value, 1))
    return rows


# -- the chart

SWEEP_CAPTION = (
    "Each line is the mean over independent draws of a scaled workload, simulated on the new machine; if both d and "
    "the factor vary, each value of one of them has a line. Bars, or the band, are the 95 % confidence interval of "
    "the mean (Student's t). Dashed: the source on its own machine under the same scheduler. Diamonds: published "
    "values, of one draw each."
)

#: Titles of the axes of a sweep; other axes are named after their column.
SWEEP_TITLES = {
    "d": "d: share of copied jobs, %", "factor": "factor", "awrt": "AWRT", "awwt": "AWWT",
    "squashed_area": "squashed area, processor-seconds",
}  # fmt: skip

#: Endings of the names of columns in seconds.
_SECONDS = ("_time", "awrt", "awwt", "makespan")

#: The lines of a sweep, with the same color in all figures.
SWEEP_LINES = {"integer": BLUE, "precise-size": GREEN, "precise": VERMILION}

#: With more points than this along the axis, a band is drawn instead of bars.
_MOST_BARS = 40

#: Width and height of a panel, pixels.
_SIZE = (3 * LOAD_BINS, 220)


def sweep_chart(
    rows: pl.DataFrame, x: str, measures: Sequence[str], title: str, *, scale: str = "linear", interactive: bool = False
) -> Spec:
    """
    Draw metrics against a parameter (``x``: d or factor), one column per scheduler, one row per metric.

    ``rows`` has ``scheduler``, ``measure``, ``line`` (of `SWEEP_LINES`, or with the value of a second parameter),
    ``kind`` ('swept', 'source' or 'published'), ``x`` (null for the source), ``mean``, ``low`` and ``high`` (the
    confidence interval), and ``draws``.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, section III.
    """
    data = FigureData()
    schedulers = rows["scheduler"].unique(maintain_order=True).to_list()
    drawn = set(rows.filter(kind="swept")["line"])
    # Lines of a second parameter end with its values.
    others = sorted(drawn - SWEEP_LINES.keys(), key=lambda name: (name.rpartition(" ")[0], float(name.split()[-1])))
    colours = {name: colour for name, colour in SWEEP_LINES.items() if name in drawn}
    colours |= {name: RUN_COLOURS[1 + place % (len(RUN_COLOURS) - 1)] for place, name in enumerate(others)}
    scale_of_lines = alt.Scale(domain=list(colours), range=list(colours.values()))
    key = alt.Legend(title=None, orient="right", symbolOpacity=1) if len(colours) > 1 else None
    charts = []
    for measure in measures:
        axes = _sweep_axes(x, measure, scale, _range(rows.filter(measure=measure)))
        tips = _tips(measure, SWEEP_TITLES[x])
        panels = []
        for scheduler in schedulers:
            first, last = measure == measures[0], scheduler == schedulers[-1]
            colour = alt.Color("line:N", scale=scale_of_lines, legend=key if first and last else None)
            part = rows.filter(scheduler=scheduler, measure=measure)
            layers = _sweep_layers(data, part, axes, colour, tips if interactive else ())
            heading = {"title": scheduler} if first else {}
            panels.append(layered(*layers, width=_SIZE[0], height=_SIZE[1], **heading))
        charts.append(beside(*panels, spacing=14, color="independent"))
    marks = "Dashed: the source." + (" Diamonds: published." if "published" in rows["kind"] else "")
    return finished_figure(data, charts, title, SWEEP_CAPTION, subtitle=marks)


def _range(rows: pl.DataFrame) -> tuple[float, float]:
    """Return the range of a metric over all schedulers, so that the panels of a row share one axis."""
    values = pl.concat([rows[name] for name in ("mean", "low", "high")]).drop_nulls()
    low, high = float(values.min() or 0.0), float(values.max() or 0.0)  # type: ignore[arg-type]
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    return max(low - margin, min(low, 0.0)), high + margin


def _sweep_axes(x: str, measure: str, scale: str, ends: tuple[float, float]) -> tuple[alt.X, Callable[[str], alt.Y]]:
    """Return the axis of the parameter, and a function that returns the axis of a metric from a column."""
    seconds = measure.endswith(_SECONDS)
    label = {"utilization": "format(datum.value, '.3~f')", "squashed_area": "format(datum.value, '.4~s')"}
    ticks: Spec = {"labelExpr": label.get(measure, "format(datum.value, ',.6~r')"), "tickCount": 6}
    if seconds:
        ticks = time_axis(*ends) if scale == "linear" else {"labelExpr": TIME_LABEL, "tickCount": 6}
    title = SWEEP_TITLES.get(measure, measure.replace("_", " "))
    axis = alt.Axis(title=title, **ticks, **(OVER_CELLS | {"minExtent": 50}))
    along = alt.X("x:Q", scale=alt.Scale(zero=False, nice=False, padding=6), title=SWEEP_TITLES[x])
    if scale == "log":
        values = alt.Scale(type="log", domain=[max(ends[0], ends[1] / 1e6), ends[1]], nice=False)
    else:
        values = alt.Scale(domain=list(ends), nice=False, zero=False)
    return along, lambda column: alt.Y(f"{column}:Q", scale=values, axis=axis)


def _sweep_layers(
    data: FigureData,
    rows: pl.DataFrame,
    axes: tuple[alt.X, Callable[[str], alt.Y]],
    colour: alt.Color,
    tips: Sequence[alt.Tooltip],
) -> list[alt.Chart]:
    """Draw a panel: intervals, means, the source and published values."""
    along, upright = axes
    swept = rows.filter(kind="swept")
    chart = alt.Chart(data.add(swept.select("x", "line", "mean", "low", "high", "draws").to_dicts()))
    if swept["x"].n_unique() > _MOST_BARS:
        layers = [chart.mark_area(opacity=0.25).encode(x=along, y=upright("low"), y2=alt.Y2("high"), color=colour)]
    else:
        layers = [
            chart.mark_rule(strokeWidth=1.2).encode(x=along, y=upright("low"), y2=alt.Y2("high"), color=colour),
            chart.mark_circle(size=26, opacity=1).encode(x=along, y=upright("mean"), color=colour),
        ]
    layers.append(chart.mark_line(strokeWidth=1.6).encode(x=along, y=upright("mean"), color=colour))
    source = data.add(rows.filter(kind="source").select("mean").to_dicts())
    layers.append(
        alt.Chart(source).mark_rule(strokeDash=[5, 3], color="black", strokeWidth=1.2).encode(y=upright("mean"))
    )
    published = rows.filter(kind="published").select("x", "line", "mean").to_dicts()
    if published:  # without data a layer has no extent, which Vega warns of
        diamonds = alt.Chart(data.add(published)).mark_point(
            shape="diamond", filled=True, size=60, stroke="black", strokeWidth=1, opacity=1
        )
        layers.append(diamonds.encode(x=along, y=upright("mean"), color=colour))
    if tips:
        told = {f"{name}_text": human_time(f"datum.{name}") for name in ("mean", "low", "high")}
        points = chart.transform_calculate(**told).mark_circle(size=60, opacity=0)
        layers.append(points.encode(x=along, y=upright("mean"), tooltip=list(tips)))
    return layers


def _tips(measure: str, along: str) -> list[alt.Tooltip]:
    """Return the tooltips of a point: times in their largest unit, other metrics as numbers."""
    values = ("mean", "low", "high")
    if measure.endswith(_SECONDS):
        shown = [tip(f"{name}_text:N", name) for name in values]
    else:
        shown = [tip(f"{name}:Q", number=",.4~r") for name in values]
    return [tip("line:N"), tip("x:Q", along), *shown, tip("draws:Q")]
