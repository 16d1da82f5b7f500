"""Charts that compare runs: utilization and queue over time, waits by class of job, distributions, load curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from swflow.figures.charts.parts import (
    MORE_TIME_TICKS,
    NUMBER_LABEL,
    OVER_CELLS,
    TIME_LABEL,
    TIME_TICKS,
    FigureData,
    Spec,
    beside,
    finished_figure,
    human_time,
    log_axis,
    tip,
)
from swflow.figures.charts.styles import Style, line_encodings

TIMELINE_CAPTION = (
    "Means over equal intervals from the first submission to the last end: above, the share of the processors that are "
    "busy, one strip per run, darker for busier; below, the number of waiting jobs."
)
WAITS_CAPTION = (
    "The mean wait of the jobs of each class: by processors, by run time, and of the users with most jobs. The axis is "
    "logarithmic; means below 1 s are drawn at 1 s."
)
DISTRIBUTION_CAPTION = (
    "The share of the jobs with at most this wait or bounded slowdown; a higher curve is better. Both value axes "
    "are logarithmic; waits below 1 s are drawn at 1 s. Run times below 10 s count as 10 s in the "
    "bounded slowdown."
)

LOAD_CURVE_CAPTION = (
    "The conventional plot of performance against load: the load of a whole workload is multiplied, and each point "
    "is a mean over all of its jobs. This mean combines jobs that experienced every load from an idle to a full "
    "machine; the heatmap of the unchanged workload separates them. Values are on a logarithmic axis."
)

#: The colors of an idle and of a busy machine.
STRIP = ("#eef2f6", "#9cc3e2", "#0b4f8a")

#: Width and height of a panel, pixels.
_WIDE, _PANEL = (760, 150), (330, 210)


def timeline_chart(timelines: Mapping[str, Mapping[str, np.ndarray]], styles: Mapping[str, Style], title: str) -> Spec:
    """Draw utilization and queue length over time, one line per run, from equally long arrays per run."""
    data = FigureData()
    rows = [
        {"r": name, **{key: [float(f"{value:.4g}") for value in values.tolist()] for key, values in columns.items()}}
        for name, columns in timelines.items()
    ]
    named, names = data.add(rows), list(timelines)
    days = next(iter(timelines.values()))["days"]
    half = float(days[1] - days[0]) / 2 if len(days) > 1 else 0.5
    tips = [
        tip("r:N", "run"),
        tip("days:Q", "day", ",.1f"),
        tip("utilization:Q", number=".1%"),
        tip("queue:Q", "jobs waiting", ",.1f"),
    ]
    chart = alt.Chart(named).transform_flatten(["days", "utilization", "queue"])
    x = alt.Scale(nice=False, domain=[max(0.0, float(days[0]) - half), float(days[-1]) + half])
    axis = alt.Axis(title="days after the log's start", zindex=1)
    busy = alt.Scale(domain=[0, 1], range=list(STRIP), interpolate="rgb")
    key = alt.Legend(title="busy", format="%", orient="top", gradientLength=140)
    strips = (
        chart.transform_calculate(a=f"datum.days - {half}", b=f"datum.days + {half}")
        .mark_rect(aria=False)
        .encode(
            x=alt.X("a:Q", scale=x, axis=alt.Axis(title=None, labels=False, ticks=False)),
            x2=alt.X2("b:Q"),
            y=alt.Y("r:N", sort=names, scale=alt.Scale(paddingInner=0.14), axis=alt.Axis(title=None, labelLimit=130)),
            color=alt.Color("utilization:Q", scale=busy, legend=key),
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
            **_run_lines(styles, True, 4),
            tooltip=tips,
        )
        .properties(width=_WIDE[0], height=_WIDE[1])
    )
    return finished_figure(data, [strips, lines], title, TIMELINE_CAPTION)


def waits_chart(classes: Mapping[str, pl.DataFrame], styles: Mapping[str, Style], title: str) -> Spec:
    """Draw mean waits (s) by class of job, one panel per classification, one line per run."""
    data = FigureData()
    means = [float(value) for rows in classes.values() for value in rows["mean"].to_list()]
    top = max(60.0, *means) * 1.3 if means else 60.0
    least = max(1.0, min(*means, top / 20) / 1.3) if means else 1.0
    ticks = [tick for tick in TIME_TICKS if least <= tick <= top]
    if len(ticks) < 4:
        ticks = [tick for tick in MORE_TIME_TICKS if least <= tick <= top]
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
            .transform_calculate(t=human_time("datum.s"))
            .encode(
                x=alt.X("c:N", sort=order, axis=alt.Axis(title=words, labelAngle=-40, labelOverlap=False)),
                y=alt.Y("m:Q", scale=alt.Scale(type="log", domain=[least, top], nice=False), axis=axis),
                tooltip=[tip("r:N", "run"), tip("c:N", words), tip("t:N", "mean wait"), tip("n:Q", "jobs", ",")],
            )
        )
        key = not panels
        line = chart.mark_line(strokeWidth=1.2, opacity=0.6).encode(**_run_lines(styles, key))
        points = chart.mark_point(filled=True, size=34, opacity=1).encode(**_run_lines(styles, key, dashes=False))
        panels.append(alt.layer(line, points).properties(width=_PANEL[0] - 70, height=_PANEL[1]))
    return finished_figure(data, [_side_by_side(panels)], title, WAITS_CAPTION)


def distribution_chart(
    columns: Mapping[str, Mapping[str, np.ndarray]], styles: Mapping[str, Style], title: str
) -> Spec:
    """Draw distribution functions of waits (s) and bounded slowdowns, one line per run."""
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
        words = "wait" if seconds else "bounded slowdown"
        shown = human_time("datum.x") if seconds else "format(datum.x, ',.3~r')"
        panels.append(
            alt.Chart(data.add(rows))
            .transform_flatten(["x", "y"])
            .transform_calculate(t=shown)
            .mark_line(strokeWidth=1.5, interpolate="step-after")
            .encode(
                x=alt.X("x:Q", **log_axis(words, top, seconds=seconds)),
                y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", title="jobs at or below")),
                **_run_lines({name: styles[name] for name in runs}, seconds),
                order=alt.Order("y:Q"),
                tooltip=[tip("r:N", "run"), tip("t:N", words), tip("y:Q", "jobs at or below", ".1%")],
            )
            .properties(width=_PANEL[0] + 40, height=_PANEL[1])
        )
    return finished_figure(data, [_side_by_side(panels)], title, DISTRIBUTION_CAPTION)


def load_curve_chart(lines: Mapping[str, Sequence[tuple[Any, ...]]], styles: Mapping[str, Style], title: str) -> Spec:
    """
    Draw mean wait and mean bounded slowdown against the offered load.

    A point of a line has workload, scheduler, mean wait time (s), mean bounded slowdown, mean slowdown, offered load.

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
        tips = [tip("r:N", "line"), tip("w:N", "workload"), tip("load:Q", "offered load", ".1%"), tip("t:N", words)]
        base = (
            alt.Chart(named)
            .transform_calculate(t=human_time("datum.wait") if seconds else "format(datum.slowdown, ',.3~r')")
            .encode(
                x=alt.X(
                    "load:Q", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(title="offered load", format="%")
                ),
                y=alt.Y(f"{measure}:Q", scale=alt.Scale(type="log"), axis=axis),
                tooltip=tips,
            )
        )
        panels.append(
            alt.layer(
                base.mark_line(strokeWidth=1.5).encode(**_run_lines(styles, seconds)),
                base.mark_point(size=42, filled=True, opacity=1).encode(**_run_lines(styles, seconds, dashes=False)),
            ).properties(width=_PANEL[0] + 40, height=_PANEL[1])
        )
    return finished_figure(data, [_side_by_side(panels)], title, LOAD_CURVE_CAPTION)


#: Names with more characters than this are listed in one column, since several columns would exceed the panel.
_LONG_NAME = 24


def _run_lines(styles: Mapping[str, Style], legend: bool, columns: int = 2, *, dashes: bool = True) -> Spec:
    """Return the encodings of runs, equal in all panels, and a legend above the first with as many columns as fit."""
    key = alt.Legend(
        title=None,
        orient="top",
        columns=columns if max(map(len, styles), default=0) <= _LONG_NAME else 1,
        labelLimit=280,
        symbolType="stroke",
        symbolStrokeWidth=3,
        symbolSize=260,
        symbolOpacity=1,
    )
    return line_encodings("r", styles, key if legend else None, dashes=dashes)


def _side_by_side(panels: Sequence[Any]) -> Spec:
    """Put panels of the same runs side by side, each with a separate legend or none."""
    return beside(*panels, spacing=18, color="independent", strokeDash="independent")
