"""Charts of load and performance: heatmaps, bubble plots and differences, drawn from binned counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from swflow.analysis.comparison import Comparison
from swflow.analysis.heatmap import BINS_PER_DECADE, CONTOUR_SHARES, LOAD_BINS, Heatmap, contours, mean_point
from swflow.figures.charts.parts import (
    NUMBER_LABEL,
    OVER_CELLS,
    TIME_LABEL,
    FigureData,
    Spec,
    beside,
    finished_figure,
    log_axis,
    tip,
)
from swflow.figures.charts.styles import Style, line_encodings

CONTOUR_COLOUR, BUBBLE_COLOUR = "#D55E00", "#0072B2"
SHADES = ("#d4d4d4", "#7a7a7a", "#000000")

#: Width and approximate height of a panel (pixels), in print and in the report. A load bin is 2 or 3 pixels wide and a
#: value bin a whole number of pixels high, since cells with fractional pixel bounds leave visible seams.
_PRINT, _SCREEN = (2 * LOAD_BINS, 170), (3 * LOAD_BINS, 240)

#: The dashes of the contour lines: inner, outer.
_LINES: tuple[Spec, ...] = ({"strokeWidth": 1.8}, {"strokeWidth": 1.2, "strokeDash": [4, 2]})
_LARGEST_BUBBLE = 700
_BUBBLE: Spec = {"stroke": BUBBLE_COLOUR, "strokeWidth": 1.8, "fill": BUBBLE_COLOUR, "fillOpacity": 0.18}
_CROSS: Spec = {"shape": "M-1,-1L1,1M1,-1L-1,1", "size": 110, "opacity": 1}
_LOADS_PER_DIFFERENCE, _VALUES_PER_DIFFERENCE = 2, 2

HEATMAP_CAPTION = (
    "Each cell counts the jobs that experienced a load (the mean utilization of the machine between their submission "
    "and their end) and a performance; darker is more, on a logarithmic scale. Values below 1, such as a wait time of "
    "0, are drawn at 1. Loads above 1, which occur if a log records impossible schedules, are drawn at 1; "
    "they are not comparable with simulated loads. The lines enclose the densest cells that hold "
    f"{CONTOUR_SHARES[0]:.0%} (solid) and {CONTOUR_SHARES[1]:.0%} (dashed) of the jobs, after smoothing. A disk "
    "represents the jobs of a tenth of the load range: its center is their mean load and value, its area their number. "
    "The cross is the mean over all jobs."
)
INTERACTIVE_CAPTION = (
    "Hover over a cell for its count. Drag across a heatmap to choose a range of loads: the curves on the right then "
    "show, for the jobs of that range, the share at or below each value (a curve further to the right is better); a "
    "click clears the selection."
)
BUBBLE_CAPTION = (
    "A disk represents the jobs with a load in one tenth of the range: its center is at their mean load and mean "
    "slowdown, its area is their number. The upper row leaves out jobs with a run time below 1 min or a slowdown above "
    "1,000; the middle row includes all jobs. The bottom row shows medians instead of means, which are robust against "
    "a few very large slowdowns, and omits the cross, which is the mean of all jobs."
)
DIFFERENCE_CAPTION = (
    "The title names the variant minus the base. Each cell is the variant's share of jobs minus the base's, in percent "
    "of all jobs: blue if the variant has more, orange if the base has more, on a cube-root scale. If the variant is "
    "better, blue is below orange. distance: earth mover's distance, in decades of the value. score: at equal load, "
    "the probability that a job of the variant has the better value, minus the probability of the opposite. wins: the "
    "share of the jobs in load deciles in which the variant, or the base, dominates."
)


@dataclass(frozen=True)
class Panel:
    """The counts of a run, or of a subset of its jobs, for one measure, and the number of jobs with a load above 1."""

    heatmap: Heatmap
    bubbles: pl.DataFrame
    above_1: int = 0


@dataclass(frozen=True)
class Block:
    """A group of panels: all jobs, or the subset ``title``; a run per column, measure to one panel per column."""

    title: str
    columns: Mapping[str, Style]
    panels: Mapping[str, Sequence[Panel]]


def heatmap_chart(blocks: Sequence[Block], title: str, *, interactive: bool = False) -> Spec:
    """
    Draw heatmaps in the arrangement of the paper: one column per run, one row per measure, blocks stacked.

    An interactive chart also has a brush over loads with the distribution of the selected jobs.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, Figures 2 to 12.
    """
    brush = alt.selection_interval(name="loads", encodings=["x"])
    data = FigureData()
    rows = [
        _heatmap_row(data, block, measure, brush if interactive else None)
        for block in blocks
        for measure in block.panels
    ]
    more = INTERACTIVE_CAPTION if interactive else ""
    return finished_figure(data, [*rows, _key(_MARKS)], title, HEATMAP_CAPTION, more)


def _heatmap_row(data: FigureData, block: Block, measure: str, brush: Any) -> Spec:
    """Draw one measure: the panels of all columns with equal scales."""
    panels = block.panels[measure]
    linear = panels[0].heatmap.value_edges[0] == 0
    top = max(panel.heatmap.value_edges[-1] for panel in panels)
    most = max(2, *(int(panel.heatmap.jobs.max(initial=0)) for panel in panels))
    largest = max(1, *(_most(panel.bubbles) for panel in panels))
    step = top / panels[0].heatmap.jobs.shape[1] if linear else 0.0
    y = _value_axis(measure, top, linear)
    width, height = _size(max(panel.heatmap.jobs.shape[1] for panel in panels), interactive=brush is not None)
    counts = _cell_rows(panels)
    charts: list[Any] = []
    for number, panel in enumerate(panels):
        axis = _first_titled(y, number)
        layers = [
            _cells(number, step, axis, most, brush, height - 60 if number == len(panels) - 1 else 0).properties(
                name=f"cells_{len(data)}_{number}"
            ),
            *_contour_layers(data, panel.heatmap, axis),
            *_bubble_layers(data, panel.bubbles, axis, largest),
        ]
        shown = alt.layer(*layers).properties(width=width, height=height, **_panel_title(block, number, measure))
        charts.append(shown.resolve_scale(color="independent", size="independent"))
    if brush is not None:
        curves = _distribution(
            block.columns, step, _first_titled(y, len(panels)), brush, measure == next(iter(block.panels))
        )
        charts.append(curves.properties(width=180, height=height))
    return beside(*charts, data=data.add(counts), spacing=14, color="independent", size="independent",
                  strokeDash="independent")  # fmt: skip


def _size(bins: int, *, interactive: bool = False) -> tuple[int, int]:
    """Return width and height of a panel with ``bins`` value bins."""
    width, height = _SCREEN if interactive else _PRINT
    return width, bins * max(1, round(height / bins))


def _panel_title(block: Block, number: int, measure: str) -> Spec:
    """Return the title of a column: its name, and the name of the subset above the first row of a block."""
    if measure != next(iter(block.panels)):
        return {}
    panel = block.panels[measure][number]
    jobs = int(panel.heatmap.jobs.sum())
    below: Any = f"{block.title}: {jobs:,} jobs" if block.title else f"{jobs:,} jobs"
    if panel.above_1:
        below = [below, f"{panel.above_1:,} at recorded loads above 1"]
    return {"title": alt.TitleParams(list(block.columns)[number], subtitle=below)}


def _cell_rows(panels: Sequence[Panel]) -> list[dict[str, object]]:
    """Return the cells of a row of panels: per column and load bin, the lists of value bins and jobs."""
    rows = []
    for column, panel in enumerate(panels):
        for place, counts in enumerate(panel.heatmap.jobs):
            values = np.flatnonzero(counts)
            if values.size:
                rows.append({"c": column, "i": place, "j": values.tolist(), "n": counts[values].tolist()})
    return rows


def _value_at(place: str, step: float) -> str:
    """Return the Vega expression of a bound of a value bin."""
    return f"{place} * {step}" if step else f"pow(10, ({place}) / {BINS_PER_DECADE})"


def _cells(number: int, step: float, y: alt.Y, most: int, brush: Any, legend: int) -> alt.Chart:
    """Draw the cells of a column, with a legend of ``legend`` pixels."""
    scale = alt.Scale(type="log", domain=[1, most], range=list(SHADES))
    key = alt.Legend(title=["jobs", "per cell"], gradientLength=legend, tickCount=4, format="~s", offset=6)
    chart = (
        alt.Chart()
        .transform_filter(f"datum.c == {number}")
        .transform_flatten(["j", "n"])
        .transform_calculate(
            load_low=f"datum.i / {LOAD_BINS}",
            load_high=f"(datum.i + 1) / {LOAD_BINS}",
            value_low=_value_at("datum.j", step),
            value_high=_value_at("datum.j + 1", step),
        )
    )
    colour = alt.Color("n:Q", scale=scale, legend=key if legend else None)
    if brush is None:
        return _rectangles(chart, y, colour, None)
    return _rectangles(chart, y, colour, tip("n:Q", "jobs", ",")).add_params(brush)


def _load_axis() -> alt.X:
    axis = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1~f", title="load experienced", zindex=1)
    return alt.X("load_low:Q", scale=alt.Scale(domain=[0, 1], nice=False, clamp=True), axis=axis)


def _rectangles(chart: alt.Chart, y: alt.Y, colour: alt.Color, count: alt.Tooltip | None) -> alt.Chart:
    """Draw cells between their bounds, with tooltips if there is one for what they count."""
    cells = chart.mark_rect(aria=False).encode(
        x=_load_axis(), x2=alt.X2("load_high"), y=y, y2=alt.Y2("value_high"), color=colour
    )
    if count is None:
        return cells
    tips = [
        count,
        tip("load_low:Q", "load from", ".2f"),
        tip("load_high:Q", "to", ".2f"),
        tip("value_low:Q", "value from", ",.4~r"),
        tip("value_high:Q", "below", ",.4~r"),
    ]
    return cells.encode(tooltip=tips)


def _value_axis(measure: str, top: float, linear: bool, title: str = "") -> alt.Y:
    times = measure != "slowdown"
    title = title or measure.replace("_", " ")
    if linear:
        axis = alt.Axis(title=title, labelExpr=TIME_LABEL if times else NUMBER_LABEL, tickCount=5, **OVER_CELLS)
        return alt.Y("value_low:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=axis)
    return alt.Y("value_low:Q", **log_axis(title, top, seconds=times, **OVER_CELLS))


def _first_titled(y: alt.Y, column: int) -> alt.Y:
    """Return the axis, with a title in the first column of a row only."""
    if column == 0:
        return y
    y = y.copy(deep=True)
    y["axis"]["title"] = None
    return y


def _contour_layers(data: FigureData, heatmap: Heatmap, y: alt.Y) -> list[alt.Chart]:
    rows = [
        {
            "s": share,
            "l": line,
            "k": list(range(len(points))),
            "load_low": [round(load, 4) for load in points[:, 0].tolist()],
            "value_low": [float(f"{value:.5g}") for value in points[:, 1].tolist()],
        }
        for line, (share, points) in enumerate(contours(heatmap))
    ]
    named = data.add(rows)
    return [
        alt.Chart(named)
        .transform_filter(f"datum.s == {share}")
        .transform_flatten(["k", "load_low", "value_low"])
        .mark_line(color=CONTOUR_COLOUR, tooltip=None, clip=True, **style)
        .encode(x=_load_axis(), y=y, detail=alt.Detail("l:N"), order=alt.Order("k:Q"))
        for share, style in zip(CONTOUR_SHARES, _LINES, strict=True)
    ]


def _bubble_layers(data: FigureData, points: pl.DataFrame, y: alt.Y, largest: int, of: str = "mean") -> list[alt.Chart]:
    """Draw the bubbles and, if they are means, the cross at the mean of all jobs."""
    size = alt.Size(
        "jobs:Q", scale=alt.Scale(domain=[0, largest], range=[0, _LARGEST_BUBBLE], type="linear"), legend=None
    )
    tips = [
        tip("jobs:Q", "jobs in this tenth of the load", ","),
        tip("load_low:Q", f"their {of} load", ".3f"),
        tip("value_low:Q", f"their {of} value", ",.4~r"),
    ]
    layers = [
        alt.Chart(data.add(_point_rows(points)))
        .mark_point(**_BUBBLE, opacity=1)
        .encode(x=_load_axis(), y=y, size=size, tooltip=tips)
    ]
    mean = mean_point(points)
    if mean is not None and of == "mean":
        centre = data.add([{"load_low": mean[0], "value_low": max(mean[1], 1.0)}])
        tips = [
            tip("load_low:Q", "mean load of all jobs", ".3f"),
            tip("value_low:Q", "mean value of all jobs", ",.4~r"),
        ]
        layers += [
            alt.Chart(centre)
            .mark_point(**_CROSS, stroke=colour, strokeWidth=width)
            .encode(x=_load_axis(), y=y, tooltip=tips)
            for colour, width in (("white", 5.5), ("black", 2.2))
        ]
    return layers


def _point_rows(points: pl.DataFrame) -> list[dict[str, float]]:
    return [
        {"load_low": round(load, 5), "value_low": float(f"{max(value, 1.0):.6g}"), "jobs": jobs}
        for load, value, jobs in points.select("mean_load", "mean_value", "jobs").iter_rows()
    ]


def _most(points: pl.DataFrame) -> int:
    return max(points["jobs"].to_list(), default=1)


def _distribution(columns: Mapping[str, Style], step: float, y: alt.Y, brush: Any, legend: bool) -> alt.Chart:
    """Draw, per run, the share of the jobs of the selected loads at or below each value."""
    names = "[" + ", ".join(f"'{column}'" for column in columns) + "]"
    key = alt.Legend(title=None, orient="top", columns=1, labelLimit=220, symbolStrokeWidth=3)
    axis = alt.Axis(format="%", title="jobs at or below", values=[0, 0.5, 1])
    return (
        alt.Chart()
        .transform_calculate(load_low=f"datum.i / {LOAD_BINS}", load_high=f"(datum.i + 1) / {LOAD_BINS}")
        .transform_filter(brush)
        .transform_flatten(["j", "n"])
        .transform_aggregate(jobs="sum(n)", groupby=["c", "j"])
        .transform_calculate(
            run=f"{names}[datum.c]", place="datum.j", value_low=_value_at("datum.j + 1", step)
        )
        .transform_window(upto="sum(jobs)", sort=[alt.SortField("place")], groupby=["c"])
        .transform_joinaggregate(total="sum(jobs)", groupby=["c"])
        .transform_calculate(share="datum.upto / datum.total")
        .mark_line(interpolate="step-before", strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis),
            y=y,
            **line_encodings("run", columns, key if legend else None),
            order=alt.Order("place:Q"),
            tooltip=[tip("run:N"), tip("share:Q", number=".1%"), tip("total:Q", "jobs chosen", ",")],
        )
    )  # fmt: skip


def bubble_chart(
    rows: Sequence[tuple[str, Sequence[str], Sequence[pl.DataFrame], str]], title: str, scale: str = "log"
) -> Spec:
    """
    Draw bubble plots of the slowdown, one column per run.

    A row has its label, the names and `swflow.analysis.heatmap.bubbles` of its columns, and ``"mean"`` or ``"median"``
    for their position. The paper uses a linear axis, with one log per figure.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, Figure 1.
    """
    charts = []
    data = FigureData()
    largest = max((_most(points) for _, _, row, _ in rows for points in row), default=1)
    linear = scale == "linear"
    for name, columns, row, of in rows:
        highest = max((value for points in row for value in points["mean_value"]), default=1.0)
        y = _value_axis("slowdown", highest * (1.2 if linear else 3), linear, title=f"{of} slowdown")
        panels = [
            alt.layer(*_bubble_layers(data, points, _first_titled(y, number), largest, of))
            .resolve_scale(size="independent")
            .properties(
                width=_PRINT[0], height=_PRINT[1],
                title=alt.TitleParams(column, subtitle=f"{name}: {int(points['jobs'].sum()):,} jobs"),
            )
            for number, (column, points) in enumerate(zip(columns, row, strict=True))
        ]  # fmt: skip
        charts.append(beside(*panels, spacing=14))
    return finished_figure(data, [*charts, _key(["bubble", "mean"])], title, BUBBLE_CAPTION)


def difference_chart(
    pairs: Sequence[tuple[str, str]],
    panels: Mapping[str, Sequence[tuple[Heatmap, Heatmap, Comparison]]],
    title: str,
    *,
    interactive: bool = False,
) -> Spec:
    """Draw heatmaps of differences: one column per pair of runs, one row per measure."""
    rows = []
    data = FigureData()
    for measure, row in panels.items():
        differences = [_difference(first, second) for first, second, _ in row]
        top = 10 ** (max(part.shape[1] for part in differences) * _VALUES_PER_DIFFERENCE / BINS_PER_DECADE)
        width, height = _size(max(part.shape[1] for part in differences), interactive=interactive)
        extreme = max(float(np.abs(part).max(initial=0.0)) for part in differences) or 1.0
        y = _value_axis(measure, top, linear=False)
        charts = [
            _difference_panel(
                data, part, _first_titled(y, number), extreme, interactive, height - 60 if number == len(row) - 1 else 0
            ).properties(width=width, height=height, title=_verdict(pairs[number], row[number][2], measure))
            for number, part in enumerate(differences)
        ]
        rows.append(beside(*charts, spacing=14, color="independent"))
    words = "Cells: jobs of the first run minus jobs of the second; blue: more in the first, orange: more in the second"
    return finished_figure(data, rows, title, DIFFERENCE_CAPTION, subtitle=words)


def _difference(first: Heatmap, second: Heatmap) -> np.ndarray:
    """Return the difference of the shares of jobs, in percent, on cells of twice the width and height."""
    values = max(first.jobs.shape[1], second.jobs.shape[1])
    values += -values % _VALUES_PER_DIFFERENCE
    shares = []
    for counts in (first.jobs, second.jobs):
        padded = np.pad(counts, ((0, 0), (0, values - counts.shape[1])))
        cells = padded.reshape(LOAD_BINS // _LOADS_PER_DIFFERENCE, _LOADS_PER_DIFFERENCE, -1, _VALUES_PER_DIFFERENCE)
        shares.append(100 * cells.sum(axis=(1, 3)) / max(1, counts.sum()))
    return shares[0] - shares[1]


def _difference_panel(
    data: FigureData, difference: np.ndarray, y: alt.Y, extreme: float, interactive: bool, legend: int
) -> alt.Chart:
    rows = []
    for place, parts in enumerate(difference):
        values = np.flatnonzero(parts)
        rows.append({"i": place, "j": values.tolist(), "d": [float(f"{part:.4g}") for part in parts[values].tolist()]})
    key = alt.Legend(title=["percent", "of jobs"], gradientLength=legend, format=".2~r", values=_ticks(extreme))
    colours = ["#B35806", "#F7F7F7", "#08519C"]
    domain = [-extreme, 0, extreme]
    scale = alt.Scale(type="pow", exponent=1 / 3, domain=domain, range=colours, interpolate="rgb")
    step = _LOADS_PER_DIFFERENCE / LOAD_BINS
    chart = (
        alt.Chart(data.add(rows))
        .transform_flatten(["j", "d"])
        .transform_calculate(
            load_low=f"datum.i * {step}",
            load_high=f"(datum.i + 1) * {step}",
            value_low=_value_at(f"datum.j * {_VALUES_PER_DIFFERENCE}", 0.0),
            value_high=_value_at(f"(datum.j + 1) * {_VALUES_PER_DIFFERENCE}", 0.0),
        )
    )
    count = tip("d:Q", "percent of jobs", "+.3~r") if interactive else None
    return _rectangles(chart, y, alt.Color("d:Q", scale=scale, legend=key if legend else None), count)


def _ticks(extreme: float) -> list[float]:
    """Return evenly spaced ticks of a cube-root scale, with one or two significant digits."""
    parts = [float(f"{extreme * share:.2g}") for share in (0.9, 0.2)]
    return [-parts[0], -parts[1], 0.0, parts[1], parts[0]]


def _verdict(pair: tuple[str, str], comparison: Comparison, measure: str) -> alt.TitleParams:
    better = {"variant": pair[0], "base": pair[1], None: "neither"}[comparison.better]
    return alt.TitleParams(
        f"{pair[0]} − {pair[1]}",
        subtitle=[
            f"{measure.replace('_', ' ')}: better at equal load: {better}",
            f"distance {comparison.distance:.2f}, score {comparison.score:+.2f}, "
            f"wins {comparison.variant_wins:.0%} : {comparison.base_wins:.0%}",
        ],
    )


#: The marks that the legend explains: their texts, and the widths of these in pixels.
_MARKS = {
    "cell": ("jobs in a cell", 70),
    "half": (f"encloses {CONTOUR_SHARES[0]:.0%} of the jobs", 125),
    "most": (f"encloses {CONTOUR_SHARES[1]:.0%} of the jobs", 125),
    "bubble": ("mean of a tenth of the load range, area: jobs", 222),
    "mean": ("mean of all jobs", 85),
}


def _key(marks: Iterable[str]) -> Any:
    """Draw a legend line that explains the marks."""
    x = 0
    places = {}
    for mark in marks:
        places[mark] = x
        x += _MARKS[mark][1] + 40
    axis = alt.X("x:Q", scale=alt.Scale(domain=[0, x], nice=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]), axis=None)

    def at(offset: float, **more: Any) -> Any:
        rows = [
            {"x": place + offset, "y": 0.5, "t": _MARKS[mark][0], "k": mark, **more} for mark, place in places.items()
        ]
        return alt.Chart(alt.InlineData(values=rows))

    def only(mark: str, offset: float = 12, **more: Any) -> Any:
        return at(offset, **more).transform_filter(f"datum.k == '{mark}'")

    layers = [at(30).mark_text(align="left", fontSize=10).encode(x=axis, y=y, text=alt.Text("t:N"))]
    if "cell" in marks:
        layers += [
            only("cell", place).mark_square(size=80, color=shade, opacity=1).encode(x=axis, y=y)
            for place, shade in zip((2, 11, 20), SHADES, strict=True)
        ]
    for mark, style in zip(("half", "most"), _LINES, strict=True):
        if mark in marks:
            line = only(mark, 0, x2=places[mark] + 24).mark_rule(color=CONTOUR_COLOUR, **style)
            layers.append(line.encode(x=axis, x2=alt.X2("x2:Q"), y=y))
    bubble = only("bubble").mark_point(**_BUBBLE, size=160)
    cross = only("mean").mark_point(**_CROSS, stroke="black", strokeWidth=2.2)
    layers += [bubble.encode(x=axis, y=y), cross.encode(x=axis, y=y)]
    return alt.layer(*layers).properties(name="key", width=x, height=26, view=alt.ViewConfig(stroke=None))
