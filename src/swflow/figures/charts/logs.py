"""Charts of one workload: arrivals, composition and offered load over time."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from swflow.figures.charts.parts import FigureData, Spec, beside, finished_figure, tip
from swflow.figures.charts.styles import BLUE, ORANGE, VERMILION

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

#: Jobs are counted in the first color, processor-seconds in the second.
_KINDS = ("jobs", "processor-seconds")


def arrivals_chart(hours: Sequence[float], weekdays: Sequence[float], title: str, clock: str) -> Spec:
    """Draw arrivals in jobs per day of the log, by hour and by weekday from Monday; ``clock`` explains the hours."""
    data = FigureData()
    panels: list[Any] = []
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    for words, labels, values, width in (
        ("hour of the day", [f"{hour}" for hour in range(24)], hours, 400),
        ("day of the week", days, weekdays, 210),
    ):
        rows = [{"c": label, "n": float(f"{value:.4g}")} for label, value in zip(labels, values, strict=True)]
        panels.append(
            alt.Chart(data.add(rows))
            .mark_bar(color=BLUE, cornerRadiusEnd=2)
            .encode(
                x=alt.X("c:N", sort=list(labels), axis=alt.Axis(title=words, labelAngle=0, labelOverlap="greedy")),
                y=alt.Y("n:Q", axis=alt.Axis(title="jobs per day" if not panels else None, tickCount=5)),
                tooltip=[tip("c:N", words), tip("n:Q", "jobs per day", ",.1f")],
            )
            .properties(width=width, height=190)
        )
    row = beside(*panels, spacing=18, color="independent")
    return finished_figure(data, [row], title, ARRIVALS_CAPTION.format(clock=clock))


def composition_chart(classes: Mapping[str, pl.DataFrame], title: str) -> Spec:
    """Draw the shares of jobs and of processor-seconds by class, one panel per classification."""
    data = FigureData()
    panels: list[Any] = []
    for words, table in classes.items():
        order = table["class"].to_list()
        rows = [
            {"c": kind, "k": what, "s": round(share, 5)}
            for kind, *shares in table.select("class", "jobs", "area").iter_rows()
            for what, share in zip(_KINDS, shares, strict=True)
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
    return finished_figure(data, [beside(*panels, spacing=18, color="independent")], title, COMPOSITION_CAPTION)


def offered_load_chart(days: np.ndarray, load: np.ndarray, mean: float, title: str) -> Spec:
    """Draw the offered load of intervals, by their middle in days after the log's start, and of the whole log."""
    data = FigureData()
    rows = [
        {"d": float(f"{day:.5g}"), "l": float(f"{value:.4g}")}
        for day, value in zip(days.tolist(), load.tolist(), strict=True)
    ]
    chart = alt.Chart(data.add(rows)).encode(
        x=alt.X("d:Q", scale=alt.Scale(nice=False), axis=alt.Axis(title="days after the log's start")),
        y=alt.Y("l:Q", axis=alt.Axis(title="offered load", format=".1~f", tickCount=5)),
        tooltip=[tip("d:Q", "day", ",.1f"), tip("l:Q", "load", ".2f")],
    )
    area = chart.mark_area(color=BLUE, fillOpacity=0.25, line={"color": BLUE, "strokeWidth": 1.2})
    level = alt.Chart(data.add([{"l": round(mean, 4)}])).mark_rule(strokeDash=[5, 3], color=VERMILION)
    panel = alt.layer(area, level.encode(y=alt.Y("l:Q"))).properties(width=760, height=170)
    return finished_figure(data, [panel], title, OFFERED_LOAD_CAPTION)
