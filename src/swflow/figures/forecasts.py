"""The figure of an evaluation of forecasts: reliability of their quantiles, and coverage over time."""

from typing import Any

import altair as alt
import duckdb
import polars as pl

from swflow.errors import SwflowError
from swflow.figures.parts import FigureData, Spec, beside, finished_figure, layered, tip
from swflow.figures.provenance import RecordedConnection, recorded_figure
from swflow.figures.styles import BLACK, BLUE, GREEN, ORANGE

FORECAST_CAPTION = (
    "Left: the share of jobs that started before the 5 %, the 50 % and the 95 % quantile that were forecast for them; "
    "lines are all jobs, circles are jobs of one partition, size or wait so far. Reliable forecasts lie on the dashed "
    "diagonal. Right: the share of jobs in each week that started within their 90 % interval."
)

#: The colors of the methods, in the order of the legend.
METHODS = {"past": BLUE, "simulation": GREEN, "best": ORANGE, "classes": BLACK}

#: The columns with the observed share of each forecast quantile.
NOMINAL = {"before_low": 0.05, "before_median": 0.5, "before_high": 0.95}


def draw_forecast_on(connection: duckdb.DuckDBPyConnection, workload: str, study: str | None = None) -> Spec:
    """
    Draw the reliability and the coverage over time of the forecasts of a workload, from an open database.

    Without a ``study``, the evaluation is one that was loaded on the command line. Raise `SwflowError` if the database
    has no such forecasts.
    """

    def draw(recorded: RecordedConnection) -> Spec:
        columns = ("method", "dimension", "group", "jobs", "coverage", *NOMINAL)
        found = recorded.execute(
            f"""SELECT method, dimension, "group", jobs, coverage, {", ".join(NOMINAL)} FROM forecasts
WHERE workload = $workload AND study IS NOT DISTINCT FROM $study AND dimension <> 'user' AND coverage IS NOT NULL""",
            {"workload": workload, "study": study},
        ).fetchall()
        if not found:
            raise SwflowError(f"figure: no forecasts of {workload} in the database; expected those of swflow forecast")
        rows = pl.DataFrame(found, columns, orient="row")
        names = [name for name in METHODS if name in set(rows["method"])]
        colour = alt.Color(
            "m:N",
            scale=alt.Scale(domain=names, range=[METHODS[name] for name in names]),
            legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolOpacity=1),
        )
        data = FigureData()
        panels = beside(_reliability(data, rows, colour), _weeks(data, rows, colour), spacing=24, color="shared")
        return finished_figure(data, [panels], f"Forecasts of {workload}", FORECAST_CAPTION)

    return recorded_figure(connection, draw, "forecast", study=study or "")


def _reliability(data: FigureData, rows: pl.DataFrame, colour: alt.Color) -> Any:
    shares = (
        rows.filter(pl.col("dimension") != "week")
        .unpivot(list(NOMINAL), index=["method", "dimension", "group", "jobs"], value_name="s")
        .filter(pl.col("s").is_not_null())
        .with_columns(n=pl.col("variable").replace_strict(NOMINAL), s=pl.col("s").round(4))
        .select("n", "s", m="method", d="dimension", g="group", j="jobs")
    )
    scale = alt.Scale(domain=[0, 1], nice=False)
    encoding: Spec = {
        "x": alt.X("n:Q", scale=scale, axis=alt.Axis(title="forecast quantile", format="%", values=[0.05, 0.5, 0.95])),
        "y": alt.Y("s:Q", scale=scale, axis=alt.Axis(title="share that started before it", format="%", tickCount=5)),
        "color": colour,
        "tooltip": [tip("m:N", "method"), tip("g:N", "jobs of"), tip("j:Q", "jobs", ","), tip("s:Q", "share", ".1%")],
    }
    whole, groups = shares.filter(d="all"), shares.filter(pl.col("d") != "all")
    layers = [
        alt.Chart(data.add([{"n": 0, "s": 0}, {"n": 1, "s": 1}]))
        .mark_line(strokeDash=[5, 3], color="gray", strokeWidth=1)
        .encode(x=encoding["x"], y=encoding["y"])
    ]
    if groups.height:  # without data a layer has no extent, which Vega warns of
        circles = alt.Chart(data.add(groups.to_dicts())).mark_point(size=22, opacity=0.6)
        layers.append(circles.encode(**encoding))
    layers.append(alt.Chart(data.add(whole.to_dicts())).mark_line(strokeWidth=1.6, point=True).encode(**encoding))
    return layered(*layers, width=260, height=240, title="reliability")


def _weeks(data: FigureData, rows: pl.DataFrame, colour: alt.Color) -> Any:
    weeks = rows.filter(dimension="week").select(
        m="method", w=pl.col("group").cast(pl.Int64), j="jobs", c=pl.col("coverage").round(4)
    )
    level = alt.Chart(data.add([{"c": 0.9}])).mark_rule(strokeDash=[5, 3], color="gray")
    upright = alt.Y("c:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=alt.Axis(title="coverage", format="%"))
    layers = [level.encode(y=upright)]
    if weeks.height:
        tips = [tip("m:N", "method"), tip("w:Q", "week"), tip("j:Q", "jobs", ","), tip("c:Q", "coverage", ".1%")]
        line = alt.Chart(data.add(weeks.sort("m", "w").to_dicts())).mark_line(strokeWidth=1.6, point=True)
        along = alt.X(
            "w:Q", scale=alt.Scale(zero=False, nice=False, padding=8),
            axis=alt.Axis(title="week of the log", tickMinStep=1, tickCount=8),
        )  # fmt: skip
        layers.append(line.encode(x=along, y=upright, color=colour, tooltip=tips))
    return layered(*layers, width=420, height=240, title="coverage over time")
