"""Charts of runs beside each other: machine and queue over time, waits of kinds of jobs, distributions, load curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from swflow.charts.parts import (
    NUMBER_LABEL,
    OVER_CELLS,
    RUN_COLOURS,
    TIME_LABEL,
    TIME_TICKS,
    FigureData,
    beside,
    finished_figure,
)

TIMELINE_CAPTION = (
    "Means over equal intervals from the first submission to the last end: above, the share of the processors that is "
    "busy, a strip per run, the darker the busier; below, the number of jobs that wait."
)
WAITS_CAPTION = (
    "The mean wait of the jobs of each class: by processors, by run time, and of the users with most jobs. The axis is "
    "logarithmic; means below one second are drawn at one."
)
DISTRIBUTION_CAPTION = (
    "The share of the jobs that waited, or were slowed down, at most so much; a curve further up is better. Both axes "
    "of values are logarithmic; waits below one second are drawn at one. Run times below 10 s count as 10 s in the "
    "bounded slowdown."
)

LOAD_CURVE_CAPTION = (
    "The conventional way to show performance against load: the load of a whole workload is multiplied, and each point "
    "is a mean over all of its jobs. One number stands for jobs that experienced every load from an idle to a full "
    "machine; the heatmap of the unchanged workload shows these apart. Values are on a logarithmic axis."
)

#: The colours of an idle and of a busy machine.
STRIP = ("#eef2f6", "#9cc3e2", "#0b4f8a")

#: Width and height of a panel, pixels.
_WIDE, _PANEL = (760, 150), (330, 210)


def timeline_chart(timelines: Mapping[str, Mapping[str, np.ndarray]], title: str) -> dict[str, Any]:
    """
    Draw utilization and queue length over time, a line per run.

    Parameters
    ----------
    timelines : mapping of str to mapping
        The run's name to ``days`` (middle of each interval), ``utilization`` (share) and ``queue`` (jobs), all of
        one length.
    title : str
        The figure's title.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.
    """
    data = FigureData()
    rows = [
        {"r": name, **{key: [float(f"{value:.4g}") for value in values.tolist()] for key, values in columns.items()}}
        for name, columns in timelines.items()
    ]
    named, names = data.add(rows), list(timelines)
    days = next(iter(timelines.values()))["days"]
    half = float(days[1] - days[0]) / 2 if len(days) > 1 else 0.5
    tips = [
        alt.Tooltip("r:N", title="run"),
        alt.Tooltip("days:Q", title="day", format=",.1f"),
        alt.Tooltip("utilization:Q", format=".1%"),
        alt.Tooltip("queue:Q", title="jobs waiting", format=",.1f"),
    ]
    chart = alt.Chart(named).transform_flatten(["days", "utilization", "queue"])
    x = alt.Scale(nice=False, domain=[max(0.0, float(days[0]) - half), float(days[-1]) + half])
    axis = alt.Axis(title="days after the log's start", zindex=1)
    busy = alt.Scale(domain=[0, 1], range=list(STRIP), interpolate="rgb")
    strips = (
        chart.transform_calculate(a=f"datum.days - {half}", b=f"datum.days + {half}")
        .mark_rect(aria=False)
        .encode(
            x=alt.X("a:Q", scale=x, axis=alt.Axis(title=None, labels=False, ticks=False)),
            x2="b:Q",
            y=alt.Y("r:N", sort=names, scale=alt.Scale(paddingInner=0.14), axis=alt.Axis(title=None, labelLimit=130)),
            color=alt.Color(
                "utilization:Q",
                scale=busy,
                legend=alt.Legend(title="busy", format="%", orient="top", gradientLength=140),
            ),
            tooltip=tips,
        )
        .properties(width=_WIDE[0], height=22 * len(names))
    )
    queue = alt.Axis(title="jobs waiting", labelExpr=NUMBER_LABEL, tickCount=4, **OVER_CELLS)
    lines = (
        chart.mark_line(strokeWidth=1.4, strokeJoin="round")
        .encode(
            x=alt.X("days:Q", scale=x, axis=axis),
            y=alt.Y("queue:Q", scale=alt.Scale(zero=True), axis=queue),
            color=_run_colour(names, True, 4),
            tooltip=tips,
        )
        .properties(width=_WIDE[0], height=_WIDE[1])
    )
    panels = [strips, lines]
    return finished_figure(data, panels, title, TIMELINE_CAPTION)


def waits_chart(classes: Mapping[str, pl.DataFrame], names: Sequence[str], title: str) -> dict[str, Any]:
    """
    Draw mean waits of classes of jobs, a panel per way to class them, a line per run.

    Parameters
    ----------
    classes : mapping of str to polars.DataFrame
        The way's name to ``run``, ``class`` (in order), ``mean`` (s) and ``jobs``.
    names : sequence of str
        The runs, in the order of the colours.
    title : str
        The figure's title.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.
    """
    data = FigureData()
    means = [float(value) for rows in classes.values() for value in rows["mean"].to_list()]
    top = max(60.0, *means) * 1.3 if means else 60.0
    least = max(1.0, min(*means, top / 20) / 1.3) if means else 1.0
    ticks = [tick for tick in TIME_TICKS if least <= tick <= top]
    panels: list[Any] = []
    for words, rows in classes.items():
        order = rows["class"].unique(maintain_order=True).to_list()
        drawn = [
            {"r": run, "c": kind, "m": float(f"{max(mean, 1.0):.5g}"), "s": float(f"{mean:.5g}"), "n": jobs}
            for run, kind, mean, jobs in rows.select("run", "class", "mean", "jobs").iter_rows()
        ]
        axis = alt.Axis(
            title="mean wait" if not panels else None, labelExpr=TIME_LABEL, values=ticks, labelOverlap="greedy"
        )
        chart = (
            alt.Chart(data.add(drawn))
            .transform_calculate(t=_human("datum.s"))
            .encode(
                x=alt.X("c:N", sort=order, axis=alt.Axis(title=words, labelAngle=-40, labelOverlap=False)),
                y=alt.Y("m:Q", scale=alt.Scale(type="log", domain=[least, top], nice=False), axis=axis),
                color=_run_colour(names, not panels),
                tooltip=[
                    alt.Tooltip("r:N", title="run"),
                    alt.Tooltip("c:N", title=words),
                    alt.Tooltip("t:N", title="mean wait"),
                    alt.Tooltip("n:Q", title="jobs", format=","),
                ],
            )
        )
        line = chart.mark_line(strokeWidth=1.2, opacity=0.6)
        points = chart.mark_point(filled=True, size=34, opacity=1)
        panels.append(alt.layer(line, points).properties(width=_PANEL[0] - 70, height=_PANEL[1]))
    return finished_figure(data, [beside(*panels, spacing=18, color="independent")], title, WAITS_CAPTION)


def distribution_chart(columns: Mapping[str, Mapping[str, np.ndarray]], title: str) -> dict[str, Any]:
    """
    Draw distribution functions of waits and bounded slowdowns, a line per run.

    Parameters
    ----------
    columns : mapping of str to mapping
        ``wait_time`` (s) and ``bounded_slowdown``, each a mapping of the run's name to the values of its jobs.
    title : str
        The figure's title.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.
    """
    data = FigureData()
    shares = np.concatenate([np.linspace(0, 0.95, 77), np.linspace(0.955, 1, 10)])
    panels: list[Any] = []
    for measure, runs in columns.items():
        seconds = measure == "wait_time"
        rows = [
            {
                "r": name,
                "x": [float(f"{value:.4g}") for value in np.maximum(np.quantile(values, shares), 1.0).tolist()],
                "y": [round(share, 4) for share in shares.tolist()],
            }
            for name, values in runs.items()
        ]
        top = max(10.0, *(max(row["x"]) for row in rows)) * 1.05
        ticks = TIME_TICKS if seconds else tuple(10**power for power in range(12))
        words = "wait" if seconds else "bounded slowdown"
        axis = alt.Axis(
            title=words,
            labelExpr=TIME_LABEL if seconds else NUMBER_LABEL,
            values=[tick for tick in ticks if tick <= top],
            labelOverlap="greedy",
        )
        shown = _human("datum.x") if seconds else "format(datum.x, ',.3~r')"
        panels.append(
            alt.Chart(data.add(rows))
            .transform_flatten(["x", "y"])
            .transform_calculate(t=shown)
            .mark_line(strokeWidth=1.5, interpolate="step-after")
            .encode(
                x=alt.X("x:Q", scale=alt.Scale(type="log", domain=[1, top], nice=False), axis=axis),
                y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", title="jobs at or below")),
                color=_run_colour(list(runs), seconds),
                order="y:Q",
                tooltip=[
                    alt.Tooltip("r:N", title="run"),
                    alt.Tooltip("t:N", title=words),
                    alt.Tooltip("y:Q", title="jobs at or below", format=".1%"),
                ],
            )
            .properties(width=_PANEL[0] + 40, height=_PANEL[1])
        )
    return finished_figure(data, [beside(*panels, spacing=18, color="independent")], title, DISTRIBUTION_CAPTION)


def load_curve_chart(lines: Mapping[str, Sequence[tuple[Any, ...]]], title: str) -> dict[str, Any]:
    """
    Draw mean wait and mean bounded slowdown against the offered load.

    Parameters
    ----------
    lines : mapping of str to sequence of tuple
        A line's name to its points: workload, scheduler, mean wait time (s), mean bounded slowdown, mean slowdown,
        offered load.
    title : str
        The figure's title.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 2.
    """
    data = FigureData()
    named = data.add(
        [
            {"r": name, "w": point[0], "load": float(f"{point[-1]:.6g}"), "wait": max(float(point[2]), 1.0),
             "slowdown": max(float(point[3]), 1.0)}
            for name, line in lines.items()
            for point in line
        ]
    )  # fmt: skip
    panels = []
    for measure, words in (("wait", "mean wait"), ("slowdown", "mean bounded slowdown")):
        seconds = measure == "wait"
        axis = alt.Axis(title=words, labelExpr=TIME_LABEL if seconds else NUMBER_LABEL)
        tips = [
            alt.Tooltip("r:N", title="line"), alt.Tooltip("w:N", title="workload"),
            alt.Tooltip("load:Q", title="offered load", format=".1%"), alt.Tooltip("t:N", title=words),
        ]  # fmt: skip
        base = (
            alt.Chart(named)
            .transform_calculate(t=_human("datum.wait") if seconds else "format(datum.slowdown, ',.3~r')")
            .encode(
                x=alt.X(
                    "load:Q", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(title="offered load", format="%")
                ),
                y=alt.Y(f"{measure}:Q", scale=alt.Scale(type="log"), axis=axis),
                color=_run_colour(list(lines), seconds),
                tooltip=tips,
            )
        )
        panels.append(
            alt.layer(base.mark_line(strokeWidth=1.5), base.mark_point(size=42, filled=True, opacity=1)).properties(
                width=_PANEL[0] + 40, height=_PANEL[1]
            )
        )
    return finished_figure(data, [beside(*panels, spacing=18, color="independent")], title, LOAD_CURVE_CAPTION)


#: Names of more characters than this stand in one column: several would be wider than the panel.
_LONG_NAME = 24


def _run_colour(names: Sequence[str], legend: bool, columns: int = 2) -> alt.Color:
    """Return the colours of runs, the same in all panels, explained above the first, in as many columns as fit."""
    colours = [RUN_COLOURS[place % len(RUN_COLOURS)] for place in range(len(names))]
    key = alt.Legend(
        title=None,
        orient="top",
        columns=columns if max(map(len, names), default=0) <= _LONG_NAME else 1,
        labelLimit=280,
        symbolType="stroke",
        symbolStrokeWidth=3,
        symbolOpacity=1,
    )
    return alt.Color("r:N", scale=alt.Scale(domain=list(names), range=colours), legend=key if legend else None)


def _human(value: str) -> str:
    """Return the Vega expression that writes seconds as people say them."""
    return (
        f"{value} >= 172800 ? format({value} / 86400, ',.1f') + ' d' : {value} >= 7200 ? format({value} / 3600, '.1f')"
        f" + ' h' : {value} >= 120 ? format({value} / 60, '.1f') + ' min' : format({value}, '.3~r') + ' s'"
    )
