"""Figures of workloads, independent of schedulers: models and composition."""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import altair as alt
import duckdb
import numpy as np
import polars as pl

from swflow.analysis.classes import with_size_class
from swflow.analysis.heatmap import LOAD_BINS
from swflow.analysis.moldable import CHECKED, Curves, model_checks
from swflow.errors import SwflowError
from swflow.figures.parts import TIME_TICKS, FigureData, Spec, beside, finished_figure, layered, log_axis, rounded, tip
from swflow.figures.request import Request, frame, in_jobs
from swflow.figures.runs import INTERVALS, RUN_TIME_BOUND, with_run_time_class, with_user
from swflow.figures.styles import BLUE, ORANGE, RUN_COLOURS, VERMILION
from swflow.workload.models.repetition import repetition_histogram

ARRIVALS_CAPTION = (
    "Jobs submitted in each hour of the day and on each day of the week, per day of the log. {clock} The hour counts "
    "from midnight to midnight."
)
COMPOSITION_CAPTION = (
    "Shares of the jobs and of their processor-seconds, by the number of processors, by the run time, and of the users "
    "with most processor-seconds."
)
OFFERED_LOAD_CAPTION = (
    "The processor-seconds of the jobs submitted in an interval divided by those of the machine, whenever the "
    "jobs run. Above 1, demand exceeds the machine; the dashed line is the mean of the whole log."
)
MOLDABLE_CAPTION = (
    "Output of the model of moldable jobs: lines are the distribution functions stated by Cirne and Berman (2001), "
    "points are those of the workload's jobs. The line of sigma is the normal "
    "distribution of the paper, and negative values become 0 by default. The last panel shows the speedup function of "
    "the run times."
)
MARGINALS_CAPTION = (
    "The share of the jobs with at most this run time, or this number of processors; both value axes are "
    "logarithmic. A synthetic workload fits its log if the curves coincide."
)
REPETITIONS_CAPTION = (
    "How often a run time is repeated by consecutive jobs, by length. Both axes are logarithmic. A run time that "
    "is not repeated counts at 1. A point above that of the log: the workload has more repetitions of this length."
)

#: Jobs are counted in the first color, processor-seconds in the second.
_KINDS = ("jobs", "processor-seconds")

#: Widths and heights of panels, pixels: of the model of moldable jobs, and of marginals and repetitions.
_SIZE, _PANEL = (2 * LOAD_BINS + 80, 170), (330, 240)

#: The number of points of a curve of run times, evenly spaced on the logarithmic axis.
_POINTS = 240


def draw_moldable(request: Request) -> Spec:
    """Draw the output of the model of moldable jobs, compared with its stated distributions, two panels per row."""
    found = pl.DataFrame()
    if in_jobs(request.connection, CHECKED[0]):
        columns = ", ".join(CHECKED)
        sql = f"SELECT {columns} FROM jobs WHERE {CHECKED[0]} IS NOT NULL AND workload IN (SELECT unnest($names))"
        found = pl.DataFrame(request.connection.execute(sql, {"names": sorted(request.workloads)}).fetchnumpy())
    if found.is_empty():
        raise SwflowError("figure: moldable: none of the runs has moldable jobs; create them with: swflow moldable")
    data = FigureData()
    charts = [_curve_panel(data, panel) for panel in model_checks(found)]
    pairs = [charts[place : place + 2] for place in range(0, len(charts), 2)]
    rows = [beside(*pair, spacing=24, color="independent") for pair in pairs]
    return finished_figure(data, rows, f"{request.title}: the model of moldable jobs", MOLDABLE_CAPTION)


def draw_marginals(request: Request) -> Spec:
    """
    Draw the distribution functions of the run times (s) and processors of the workloads.

    References
    ----------
    T. N. Minh, L. Wolters, "Modeling parallel system workloads with temporal locality", JSSPP 2009, Figures 2 and 3.
    """
    workloads = _attributes(request)
    data = FigureData()
    panels = []
    for place, axis_title in enumerate(("run time", "processors")):
        columns = {name: np.maximum(columns[place], 1.0) for name, columns in workloads.items()}
        top = max(float(column.max(initial=1.0)) for column in columns.values())
        at = np.geomspace(1, top, _POINTS) if place == 0 else np.unique(np.concatenate(list(columns.values())))
        rows = [
            {"w": name, "x": round(float(x), 3), "y": round(float(share), 5)}
            for name, column in columns.items()
            for x, share in zip(at, np.searchsorted(np.sort(column), at, side="right") / len(column), strict=True)
        ]
        x = _log_axis(alt.X, "x", axis_title, top, seconds=place == 0)
        y = alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", title="jobs at or below"))
        line = alt.Chart(data.add(rows)).mark_line(interpolate="step-after")
        panels.append(_panel(line, x, y, list(workloads), axis_title))
    title = f"{request.title}: run times and processors"
    return finished_figure(data, [beside(*panels, spacing=24)], title, MARGINALS_CAPTION)


def draw_repetitions(request: Request) -> Spec:
    """Draw how often run times repeat, in the order of arrival: Minh and Wolters 2009, Figure 1."""
    workloads = _attributes(request)
    data = FigureData()
    rows: list[dict[str, str | float]] = [
        {"w": name, "x": length, "y": count}
        for name, (run_times, _) in workloads.items()
        for length, count in repetition_histogram(run_times).items()
    ]
    longest, most = (float(max(int(row[axis]) for row in rows)) for axis in ("x", "y"))
    points = alt.Chart(data.add(rows)).mark_line(point=alt.OverlayMarkDef(size=28))
    x = _log_axis(alt.X, "x", "length of the repetition, jobs", longest)
    panel = _panel(points, x, _log_axis(alt.Y, "y", "repetitions", most), list(workloads), "repetitions of run times")
    return finished_figure(data, [panel], f"{request.title}: repetitions of run times", REPETITIONS_CAPTION)


def draw_arrivals(request: Request) -> Spec:
    """Draw arrivals of the first workload by hour of the day and day of the week."""
    workload = request.workloads[0]
    ((unix, zone),) = request.connection.execute(
        "SELECT unix_start_time, time_zone FROM workloads WHERE workload = $workload", {"workload": workload}
    ).fetchall()
    jobs = _jobs(request.connection, workload, "submit_time")
    times, clock = local_times(jobs["submit_time"], unix, zone)
    submit = jobs["submit_time"].to_numpy()
    days = max(1.0, float(submit.max() - submit.min()) / 86_400)
    hours = np.bincount(times.dt.hour().to_numpy(), minlength=24) / days
    weekdays = np.bincount(times.dt.weekday().to_numpy() - 1, minlength=7) / max(1.0, days / 7)
    data = FigureData()
    panels: list[Any] = []
    for words, labels, values, width in (
        ("hour of the day", [str(hour) for hour in range(24)], hours, 400),
        ("day of the week", ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], weekdays, 210),
    ):
        rows = [{"c": label, "n": value} for label, value in zip(labels, rounded(values), strict=True)]
        panels.append(
            alt.Chart(data.add(rows))
            .mark_bar(color=BLUE, cornerRadiusEnd=2)
            .encode(
                x=alt.X("c:N", sort=labels, axis=alt.Axis(title=words, labelAngle=0, labelOverlap="greedy")),
                y=alt.Y("n:Q", axis=alt.Axis(title="jobs per day" if not panels else None, tickCount=5)),
                tooltip=[tip("c:N", words), tip("n:Q", "jobs per day", ",.1f")],
            )
            .properties(width=width, height=190)
        )
    row = beside(*panels, spacing=18, color="independent")
    return finished_figure(data, [row], f"{request.title}: arrivals of jobs", ARRIVALS_CAPTION.format(clock=clock))


def draw_composition(request: Request) -> Spec:
    """Draw the shares of jobs and processor-seconds of the first workload by size, run time and user."""
    classes = ("processors", f"{RUN_TIME_BOUND} AS run_time", "user_id")
    sums = ("fsum(processors * run_time) AS area", "count(*) AS jobs")
    jobs = _jobs(request.connection, request.workloads[0], *classes, *sums, rest=" GROUP BY ALL ORDER BY ALL")
    tables = {
        "processors": with_size_class(jobs),
        "run time": with_run_time_class(jobs),
        "user": with_user(jobs, "area"),
    }
    total, area = jobs["jobs"].sum(), max(float(jobs["area"].sum()), 1e-300)
    shares = {
        words: table.group_by("class", "rank")
        .agg(jobs=pl.col("jobs").sum() / total, area=pl.col("area").sum() / area)
        .sort("rank")
        for words, table in tables.items()
        if table.height
    }
    data = FigureData()
    panels: list[Any] = []
    for words, table in shares.items():
        order = table["class"].to_list()
        rows = [
            {"c": kind, "k": what, "s": round(share, 5)}
            for kind, *values in table.select("class", "jobs", "area").iter_rows()
            for what, share in zip(_KINDS, values, strict=True)
        ]
        key = alt.Legend(title=None, orient="top") if not panels else None
        scale = alt.Scale(domain=list(_KINDS), range=[BLUE, ORANGE])
        panels.append(
            alt.Chart(data.add(rows))
            .mark_bar(cornerRadiusEnd=1.5)
            .encode(
                x=alt.X("c:N", sort=order, axis=alt.Axis(title=words, labelAngle=-40, labelOverlap=False)),
                xOffset=alt.XOffset("k:N", sort=list(_KINDS)),
                y=alt.Y("s:Q", axis=alt.Axis(title="share" if not panels else None, format="%", tickCount=5)),
                color=alt.Color("k:N", scale=scale, legend=key),
                tooltip=[tip("c:N", words), tip("k:N", "of"), tip("s:Q", "share", ".1%")],
            )
            .properties(width=270, height=190)
        )
    row = beside(*panels, spacing=18, color="independent")
    return finished_figure(data, [row], f"{request.title}: composition of the jobs", COMPOSITION_CAPTION)


def draw_offered_load(request: Request) -> Spec:
    """Draw the offered load of the first workload over time, by intervals, and that of the whole log."""
    workload = request.workloads[0]
    jobs = _jobs(request.connection, workload, "submit_time", "processors * run_time AS area")
    ((size,),) = request.connection.execute(
        "SELECT processors FROM workloads WHERE workload = $workload", {"workload": workload}
    ).fetchall()
    submit, area = jobs["submit_time"].to_numpy(), jobs["area"].to_numpy()
    first, last = float(submit.min()), float(submit.max())
    span = last - first
    if span <= 0:
        raise SwflowError(f"figure: offered-load: all jobs of {workload} are submitted at once")
    edges = np.linspace(first, last, max(2, min(INTERVALS, round(span / 86_400))) + 1)
    load = np.histogram(submit, edges, weights=area)[0] / (size * np.diff(edges))
    middles = (edges[:-1] + edges[1:]) / 2 / 86_400
    data = FigureData()
    rows = [{"d": day, "l": value} for day, value in zip(rounded(middles, 5), rounded(load), strict=True)]
    chart = alt.Chart(data.add(rows)).encode(
        x=alt.X("d:Q", scale=alt.Scale(nice=False), axis=alt.Axis(title="days after the log's start")),
        y=alt.Y("l:Q", axis=alt.Axis(title="offered load", format=".1~f", tickCount=5)),
        tooltip=[tip("d:Q", "day", ",.1f"), tip("l:Q", "load", ".2f")],
    )
    drawn = chart.mark_area(color=BLUE, fillOpacity=0.25, line={"color": BLUE, "strokeWidth": 1.2})
    level = alt.Chart(data.add([{"l": round(float(area.sum()) / (size * span), 4)}])).mark_rule(
        strokeDash=[5, 3], color=VERMILION
    )
    panel = layered(drawn, level.encode(y=alt.Y("l:Q")), width=760, height=170)
    return finished_figure(data, [panel], f"{request.title}: load over time", OFFERED_LOAD_CAPTION)


def _jobs(connection: duckdb.DuckDBPyConnection, workload: str, *columns: str, rest: str = "") -> pl.DataFrame:
    """Return columns of a workload's jobs in the order of the database, or what the ``rest`` of the query makes."""
    jobs = frame(
        connection,
        f"""SELECT {", ".join(columns)} FROM jobs
            WHERE workload = $run AND run_time IS NOT NULL AND processors IS NOT NULL{rest}""",
        workload,
    )
    if jobs.is_empty():
        raise SwflowError(f"figure: {workload} has no jobs")
    return jobs


def local_times(seconds: pl.Series, unix: int | None, zone: str | None) -> tuple[pl.Series, str]:
    """Return times of the log as local times, and a sentence on their clock."""
    stamps = pl.from_epoch((seconds + float(unix or 0)).cast(pl.Int64), time_unit="s")
    if not unix:
        return stamps, "The log does not state its start: its first second counts as midnight of a Thursday."
    if zone:
        with suppress(pl.exceptions.PolarsError):
            return stamps.dt.replace_time_zone("UTC").dt.convert_time_zone(zone), f"Times are in time zone {zone}."
    return stamps, "Times are in UTC, since the log states no time zone."


def _attributes(request: Request) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return run times and processors of the jobs of each workload, in the order of arrival."""
    found = {}
    for workload in request.workloads:
        sql = """SELECT run_time, processors FROM jobs WHERE workload = $run AND run_time IS NOT NULL
            AND processors IS NOT NULL ORDER BY submit_time, job_id"""
        run_times, processors = (column.cast(pl.Float64) for column in frame(request.connection, sql, workload))
        found[workload] = run_times.to_numpy(), processors.to_numpy()
    return found


def _curve_panel(data: FigureData, panel: Curves) -> Any:
    names = list(dict.fromkeys([*panel.lines, *panel.points]))
    key = alt.Legend(title=None, orient="bottom-right", symbolType="stroke") if len(names) > 1 else None
    axis = alt.Scale(type="log", base=2, nice=False) if panel.logarithmic else alt.Scale(nice=False)
    encoding = {
        "x": alt.X("x:Q", scale=axis, axis=alt.Axis(title=panel.x_title, format="~r", tickCount=8)),
        "y": alt.Y("y:Q", axis=alt.Axis(title=panel.y_title)),
        "color": alt.Color("name:N", scale=_colours(names), legend=key),
    }

    def layer(curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> alt.Chart:
        rows = [
            {"name": name, "x": float(x), "y": round(float(y), 5)}
            for name, values in curves.items()
            for x, y in zip(*values, strict=True)
        ]
        return alt.Chart(data.add(rows))

    layers = [layer(panel.lines).mark_line(strokeWidth=1.4).encode(**encoding)]
    if panel.points:  # the scales of a layer without data are infinite
        layers.append(layer(panel.points).mark_point(size=18, filled=True, opacity=1).encode(**encoding))
    return layered(*layers, width=_SIZE[0], height=_SIZE[1], title=panel.title)


def _colours(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), range=[RUN_COLOURS[place % len(RUN_COLOURS)] for place in range(len(names))])


def _panel(chart: Any, x: Any, y: Any, names: Sequence[str], title: str) -> Any:
    """Add axes, tooltips, and one color per workload; the line of the first workload is wide."""
    key = alt.Legend(title=None, orient="right", labelLimit=320)
    return chart.encode(
        x=x,
        y=y,
        color=alt.Color("w:N", scale=_colours(names), legend=key),
        strokeWidth=alt.condition(f"datum.w === {json.dumps(names[0])}", alt.value(5), alt.value(1.3)),
        opacity=alt.condition(f"datum.w === {json.dumps(names[0])}", alt.value(0.45), alt.value(1)),
        tooltip=[tip("w:N", "workload"), tip("x:Q"), tip("y:Q")],
    ).properties(width=_PANEL[0], height=_PANEL[1], title=title)


def _log_axis(channel: Any, field: str, title: str, top: float, *, seconds: bool = False) -> Any:
    """Return a logarithmic axis from 1 to slightly above the top, with readable ticks."""
    powers = range(math.ceil(math.log10(max(top, 10))) + 1)
    steps = (1, 2, 5) if top < 1000 else (1,)
    ticks = TIME_TICKS if seconds else tuple(step * 10**power for power in powers for step in steps)
    values = [tick for tick in ticks if tick <= top * 1.2]
    return channel(f"{field}:Q", **log_axis(title, max(top, 2) * 1.2, seconds=seconds, values=values))
