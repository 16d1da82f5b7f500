"""The figure of mean wait and slowdown against the offered load of a workload."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import altair as alt

from swflow.analysis.intervals import over_replicates
from swflow.errors import SwflowError
from swflow.figures.parts import (
    NUMBER_LABEL,
    TIME_LABEL,
    FigureData,
    Spec,
    finished_figure,
    human_time,
    layered,
    log_time_ticks,
    tip,
)
from swflow.figures.request import Request
from swflow.figures.runs import PANEL, run_lines, side_by_side
from swflow.figures.styles import Style, run_styles
from swflow.names import recipe_of, steps_of

_CAPTION = (
    "The conventional plot of performance against load: the load of a whole workload is changed, and each point is a "
    "mean over all of its jobs. A point of a recipe with replicates is the mean over these, and its bar the 95 % "
    "interval of this mean. Hollow points are saturated: their queue grows over the log, so that a longer log would "
    "give longer waits. A mean combines jobs that experienced every load from an idle to a full machine; the heatmap "
    "of the unchanged workload separates them. Values are on a logarithmic axis, and intervals end where it does."
)

#: The measures, their axes, and whether they are times.
_MEASURES = {"wait_time": ("wait", "mean wait", True), "bounded_slowdown": ("slowdown", "mean bounded slowdown", False)}


#: The short names of the measures.
_NAMES = tuple(name for name, _, _ in _MEASURES.values())


class _Point(NamedTuple):
    """A recipe under a scheduler: offered load, means with their intervals, and whether a run is saturated."""

    recipe: str
    scheduler: str
    load: float
    means: Mapping[str, tuple[float, float | None, float | None]]
    saturated: bool


def draw_load_curve(request: Request) -> Spec:
    """
    Draw mean wait and slowdown against the offered load, one line per scheduler and method of changing the load.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 2.
    """
    points = _read_points(request)
    lines: dict[str, list[_Point]] = {}
    sources: dict[str, dict[str, str]] = {}
    families = {_family(point.recipe) for point in points}
    for point in sorted(points, key=lambda point: _family(point.recipe)):
        family = _family(point.recipe)
        longer = {other for other in families if other.startswith(f"{family}+")}
        for place in sorted(longer or {family}):  # the unchanged workload is a point of each of its lines
            name = f"{place.lstrip('+')} {point.scheduler}".strip()
            lines.setdefault(name, []).append(point)
            sources[name] = {"workload": place, "scheduler": point.scheduler}
    lines = {name: sorted(line, key=lambda point: point.load) for name, line in lines.items() if len(line) > 1}
    if not lines:
        raise SwflowError("figure: load-curve: no workloads with different loads under one scheduler")
    styles = dict(zip(lines, run_styles([sources[name] for name in lines]), strict=True))
    data = FigureData()
    shown = [point.means for line in lines.values() for point in line]
    floors = {name: _floor(means[name][0] for means in shown) for name in _NAMES}
    tops = {name: max(value for means in shown for value in means[name] if value is not None) for name in _NAMES}
    named = data.add([_row(name, point, floors) for name, line in lines.items() for point in line])
    panels = [
        _panel(named, styles, (floors[name], tops[name]), name, words, is_time)
        for name, words, is_time in (_MEASURES[measure] for measure in request.measures or _MEASURES)
    ]
    return finished_figure(
        data, [side_by_side(panels)], f"{request.title}: performance against the offered load", _CAPTION
    )


def _read_points(request: Request) -> list[_Point]:
    rows = request.connection.execute(
        """SELECT workload, scheduler, mean_wait_time, mean_bounded_slowdown, offered_load, saturated
        FROM metrics WHERE list_contains($runs, run) AND offered_load IS NOT NULL ORDER BY workload, scheduler""",
        {"runs": [run["run"] for run in request.runs]},
    ).fetchall()
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault((recipe_of(row[0]), row[1]), []).append(row[2:])
    points = []
    for (recipe, scheduler), group in groups.items():
        waits, slowdowns, loads, saturated = zip(*group, strict=True)
        means = {}
        for name, values in (("wait", waits), ("slowdown", slowdowns)):
            found = over_replicates(values)
            means[name] = (found.value, *found.interval)
        points.append(_Point(recipe, scheduler, sum(loads) / len(loads), means, any(saturated)))
    return points


def _floor(means: Iterable[float]) -> float:
    """Return where the axis of some means begins: wide intervals do not flatten the lines."""
    return max(1.0, float(f"{min(means) / 3:.1g}"))


def _row(line: str, point: _Point, floors: Mapping[str, float]) -> Spec:
    """Return a point of a line; its bars end where the axis does."""
    row: Spec = {"r": line, "w": point.recipe, "load": float(f"{point.load:.6g}"), "s": int(point.saturated)}
    for name, (mean, low, high) in point.means.items():
        row[name] = max(float(mean), floors[name])
        if low is not None and high is not None:
            ends = (f"{name}_low", low), (f"{name}_high", high)
            row |= {end: max(float(f"{value:.6g}"), floors[name]) for end, value in ends}
    return row


def _panel(
    named: alt.NamedData,
    styles: Mapping[str, Style],
    ends: tuple[float, float],
    measure: str,
    words: str,
    is_time: bool,
) -> Spec:
    ticks: Spec = {"labelExpr": TIME_LABEL, "values": log_time_ticks(*ends)} if is_time else {"labelExpr": NUMBER_LABEL}
    axis = alt.Axis(title=words, labelOverlap="greedy", **ticks)
    tips = [tip("r:N", "line"), tip("w:N", "workload"), tip("load:Q", "offered load", ".1%"), tip("t:N", words)]
    loads = alt.X("load:Q", scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(title="offered load", format="%"))
    y = alt.Y(f"{measure}:Q", scale=alt.Scale(type="log", domainMin=ends[0]), axis=axis)
    base = (
        alt.Chart(named)
        .transform_calculate(t=human_time("datum.wait") if is_time else "format(datum.slowdown, ',.3~r')")
        .encode(x=loads, y=y, tooltip=tips)
    )
    marks = run_lines(styles, is_time, dashes=False)
    bars = base.transform_filter(f"isValid(datum.{measure}_low)").mark_rule(strokeWidth=1.2)
    return layered(
        base.mark_line(strokeWidth=1.5).encode(**run_lines(styles, is_time)),
        bars.encode(y=f"{measure}_low:Q", y2=f"{measure}_high", **marks),
        base.transform_filter("!datum.s").mark_point(size=42, filled=True, opacity=1).encode(**marks),
        base.transform_filter("datum.s").mark_point(size=42, filled=False, opacity=1, fill="white").encode(**marks),
        width=PANEL[0] + 40,
        height=PANEL[1],
    )


def _family(workload: str) -> str:
    """
    Return the steps of a workload without their numbers; workloads of one family differ only in a factor.

    Examples
    --------
    >>> _family("KTH-SP2+load-0.8-run-times"), _family("KTH-SP2+load-1.2@3"), _family("KTH-SP2")
    ('+load-run-times', '+load', '')
    """
    return re.sub(r"@\d+|[-_]?\d+(\.\d+)?", "", "".join(f"+{step}" for step in steps_of(workload)))
