"""Charts that compare workloads: marginal distributions and repetitions, after Minh and Wolters 2009."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from swflow.figures.charts.parts import TIME_TICKS, FigureData, Spec, beside, finished_figure, log_axis, tip
from swflow.figures.charts.styles import RUN_COLOURS
from swflow.workload.models.repetition import repetition_histogram

MARGINALS_CAPTION = (
    "The share of the jobs with at most this run time, or this number of processors; both value axes are "
    "logarithmic. A synthetic workload fits its log if the curves coincide."
)
REPETITIONS_CAPTION = (
    "How often a run time is repeated by consecutive jobs, by length. Both axes are logarithmic. A run time that "
    "is not repeated counts at 1. A point above that of the log: the workload has more repetitions of this length."
)

#: The number of points of a curve of run times, evenly spaced on the logarithmic axis.
_POINTS = 240
_PANEL = (330, 240)


def marginals_chart(workloads: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> Spec:
    """
    Draw the distribution functions of the run times (s) and sizes of several workloads.

    References
    ----------
    T. N. Minh, L. Wolters, "Modeling parallel system workloads with temporal locality", JSSPP 2009, Figures 2 and 3.
    """
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
    return finished_figure(data, [beside(*panels, spacing=24)], title, MARGINALS_CAPTION)


def repetitions_chart(workloads: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> Spec:
    """
    Draw histograms of the lengths of repetitions of run times, from run times in the order of arrival.

    References
    ----------
    Minh and Wolters 2009, Figure 1.
    """
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
    return finished_figure(data, [panel], title, REPETITIONS_CAPTION)


def _panel(chart: Any, x: Any, y: Any, names: Sequence[str], title: str) -> Any:
    """Add axes, tooltips, and one color per workload; the line of the first workload is wide."""
    colours = [RUN_COLOURS[place % len(RUN_COLOURS)] for place in range(len(names))]
    key = alt.Legend(title=None, orient="right", labelLimit=320)
    return chart.encode(
        x=x,
        y=y,
        color=alt.Color("w:N", scale=alt.Scale(domain=list(names), range=colours), legend=key),
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
