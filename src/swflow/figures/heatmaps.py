"""Figures of load and performance: heatmaps and bubble plots of runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl

from swflow.analysis.comparison import coarse
from swflow.analysis.heatmap import (
    ABOVE_1,
    BINS_PER_DECADE,
    CONTOUR_SHARES,
    HEATMAP_MEASURES,
    LOAD_BINS,
    Heatmap,
    bubbles,
    contours,
    heatmap,
    mean_point,
    read_bubbles,
    read_heatmaps,
)
from swflow.errors import SwflowError
from swflow.figures.parts import (
    NUMBER_LABEL,
    OVER_CELLS,
    TIME_LABEL,
    FigureData,
    Spec,
    beside,
    finished_figure,
    log_axis,
    rounded,
    tip,
)
from swflow.figures.request import Request
from swflow.figures.styles import Style, line_encodings, run_styles
from swflow.figures.subsets import outcomes, subsets

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

HEATMAP_CAPTION = (
    "Each cell counts the jobs that experienced a load (the mean utilization of the machine between their submission "
    "and their end) and a performance; the stronger the contrast with the page, "
    "the more, on a logarithmic scale. Values below 1, such as a wait time of "
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
    "1,000; the second row has the same jobs in eleven classes, with loads around 0, 10, … and 100 %. The third row "
    "includes all jobs. The bottom row shows medians instead of means, which are robust against a few very large "
    "slowdowns, and omits the cross, which is the mean of all jobs."
)


class Panel(NamedTuple):
    """The counts of a run, or of a subset of its jobs, for one measure, and the number of jobs with a load above 1."""

    heatmap: Heatmap
    bubbles: pl.DataFrame
    above_1: int


class Cells(NamedTuple):
    """How many bins of the load and of the value a drawn cell merges."""

    loads: int = 1
    values: int = 1

    @classmethod
    def of(cls, bins: int) -> "Cells":
        """
        Return the cells for a number of bins of the load; those of the value get larger with them.

        Examples
        --------
        >>> Cells.of(100), Cells.of(20)
        (Cells(loads=1, values=1), Cells(loads=5, values=4))
        """
        if bins < 1 or LOAD_BINS % bins:
            raise SwflowError(f"--bins: {bins}; expected a divisor of {LOAD_BINS} such as 50, 25, 20 or 10")
        loads = LOAD_BINS // bins
        return cls(loads, max(size for size in range(1, BINS_PER_DECADE + 1)
                              if BINS_PER_DECADE % size == 0 and size <= loads))  # fmt: skip

    def counts(self, jobs: np.ndarray) -> np.ndarray:
        """Return the jobs per cell from those per bin."""
        padded = np.pad(jobs, ((0, 0), (0, -jobs.shape[1] % self.values)))
        return coarse(padded, self.loads, self.values)


#: Measure to one panel per run.
Panels = Mapping[str, Sequence[Panel]]


def draw_heatmap(request: Request) -> Spec:
    """
    Draw jobs per load and performance in the arrangement of the paper: one column per run, one row per measure.

    An interactive chart also has a brush over loads with the distribution of the selected jobs.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, Figures 2 to 12.
    """
    if not request.split and request.scale == "log":  # the database contains their counts
        blocks = [("", _panels_of_load(request))]
    else:
        tables = [outcomes(request.connection, run["run"], request.split) for run in request.runs]
        blocks = [(subset, _panels(parts, request.scale)) for subset, parts in subsets(tables, request.split)]
    cells = Cells.of(request.bins)
    styles = dict(zip(request.names, run_styles(request.runs), strict=True))
    brush = alt.selection_interval(name="loads", encodings=["x"]) if request.interactive else None
    data = FigureData()
    measures = request.measures or HEATMAP_MEASURES
    rows = [
        _heatmap_row(data, styles, subset, measure, panels[measure], brush, cells, is_first=measure == measures[0])
        for subset, panels in blocks
        for measure in measures
    ]
    more = INTERACTIVE_CAPTION if request.interactive else ""
    title = f"{request.title}: performance against load"
    return finished_figure(data, [*rows, _key(_MARKS, request.pixels)], title, HEATMAP_CAPTION, more)


def draw_bubbles(request: Request) -> Spec:
    """
    Draw the mean and the median slowdown per tenth of the load, one column per run.

    Krakov and Feitelson 2012, Figure 1, has a linear axis, with one log per figure.
    """
    kept, every = (
        [read_bubbles(request.connection, run["run"], "slowdown", filtered) for run in request.runs]
        for filtered in (True, False)
    )
    eleven = [_read_eleven(request.connection, run["run"]) for run in request.runs]
    # Medians are robust against a few very large slowdowns.
    medians = [points.with_columns(mean_load="median_load", mean_value="median_value") for points in every]
    data = FigureData()
    charts = []
    largest = max(map(_most, [*kept, *eleven, *every]))
    linear = request.scale == "linear"
    for name, row, of in (
        ("1 min and more, slowdown to 1000", kept, "mean"), ("the same in eleven classes", eleven, "mean"),
        ("all", every, "mean"), ("all", medians, "median"),
    ):  # fmt: skip
        highest = max((value for points in row for value in points["mean_value"]), default=1.0)
        y = value_axis("slowdown", highest * (1.2 if linear else 3), linear, title=f"{of} slowdown")
        panels = [
            alt.layer(*_bubble_layers(data, points, first_titled(y, number), largest, of))
            .resolve_scale(size="independent")
            .properties(
                width=_PRINT[0], height=_PRINT[1],
                title=alt.TitleParams(column, subtitle=f"{name}: {int(points['jobs'].sum()):,} jobs"),
            )
            for number, (column, points) in enumerate(zip(request.names, row, strict=True))
        ]  # fmt: skip
        charts.append(beside(*panels, spacing=14))
    title = f"{request.title}: slowdown by load"
    return finished_figure(data, [*charts, _key(["bubble", "mean"], request.pixels)], title, BUBBLE_CAPTION)


def _read_eleven(connection: Any, run: str) -> pl.DataFrame:
    """Return the bubbles of the jobs that Figure 1 keeps, in eleven classes of the load."""
    columns = connection.execute(
        """SELECT decile, mean_load, mean_value, median_load, median_value, jobs FROM bubbles_11
        WHERE run = $run AND measure = 'slowdown' AND filtered ORDER BY decile""",
        {"run": run},
    ).fetchnumpy()
    return pl.DataFrame({name: np.asarray(values) for name, values in columns.items()})


def _panels(tables: Sequence[pl.DataFrame], scale: str) -> Panels:
    panels = {}
    for measure in HEATMAP_MEASURES:
        columns = [(table["load"].to_numpy(), table[measure].to_numpy()) for table in tables]
        top = max(float(np.nanmax(values, initial=1.0)) for _, values in columns)
        panels[measure] = [
            Panel(
                heatmap(load, values, scale, top), bubbles(load, values), int((load[~np.isnan(values)] > ABOVE_1).sum())
            )
            for load, values in columns
        ]
    return panels


def _panels_of_load(request: Request) -> Panels:
    """Return the result of `_panels` for all jobs, from the counts in the database."""
    runs = [run["run"] for run in request.runs]
    maps = read_heatmaps(request.connection, set(runs))
    found = request.connection.execute("SELECT run, measure, above_1 FROM correlations").fetchall()
    above = {(run, measure): count or 0 for run, measure, count in found}
    return {
        measure: [
            Panel(maps[run, measure], read_bubbles(request.connection, run, measure), above[run, measure])
            for run in runs
        ]
        for measure in HEATMAP_MEASURES
    }


# -- charts


def _heatmap_row(
    data: FigureData, styles: Mapping[str, Style], subset: str, measure: str, panels: Sequence[Panel], brush: Any,
    cells: Cells, *, is_first: bool,
) -> Spec:  # fmt: skip
    """Draw one measure: the panels of all columns with equal scales."""
    linear = panels[0].heatmap.value_edges[0] == 0
    top = max(panel.heatmap.value_edges[-1] for panel in panels)
    counts = [cells.counts(panel.heatmap.jobs) for panel in panels]
    most = max(2, *(int(some.max(initial=0)) for some in counts))
    largest = max(1, *(_most(panel.bubbles) for panel in panels))
    step = top / panels[0].heatmap.jobs.shape[1] if linear else 0.0
    bins = max(panel.heatmap.jobs.shape[1] for panel in panels)
    whole = bins + -bins % cells.values  # the highest cell is as high as the others
    top *= whole / bins if linear else 10 ** ((whole - bins) / BINS_PER_DECADE)
    y = value_axis(measure, top, linear)
    width, height = panel_size(whole, interactive=brush is not None)
    charts: list[Any] = []
    for number, (name, panel) in enumerate(zip(styles, panels, strict=True)):
        axis = first_titled(y, number)
        layers = [
            _cells(number, step, cells, axis, most, brush, height - 60 if number == len(panels) - 1 else 0).properties(
                name=f"cells_{len(data)}_{number}"
            ),
            *_contour_layers(data, panel.heatmap, axis),
            *_bubble_layers(data, panel.bubbles, axis, largest),
        ]
        title = {"title": _panel_title(name, subset, panel)} if is_first else {}
        # Each further method of a layered chart would copy all its layers.
        apart = alt.Resolve(scale=alt.LegendResolveMap(color="independent", size="independent"))
        charts.append(alt.layer(*layers, width=width, height=height, resolve=apart, **title))
    if brush is not None:
        curves = _distribution(styles, step, cells, first_titled(y, len(panels)), brush, is_first)
        charts.append(curves.properties(width=180, height=height))
    return beside(*charts, data=data.add(_cell_rows(counts)), spacing=14, color="independent", size="independent",
                  strokeDash="independent")  # fmt: skip


def panel_size(bins: int, *, interactive: bool = False) -> tuple[int, int]:
    """Return width and height of a panel with ``bins`` value bins."""
    width, height = _SCREEN if interactive else _PRINT
    return width, bins * max(1, round(height / bins))


def _panel_title(name: str, subset: str, panel: Panel) -> alt.TitleParams:
    """Return the title of a column: the name of the run, and below it the numbers of its jobs."""
    jobs = f"{int(panel.heatmap.jobs.sum()):,} jobs"
    below: Any = f"{subset}: {jobs}" if subset else jobs
    if panel.above_1:
        below = [below, f"{panel.above_1:,} at recorded loads above 1"]
    return alt.TitleParams(name, subtitle=below)


def _cell_rows(panels: Sequence[np.ndarray]) -> list[dict[str, object]]:
    """Return the cells of a row of panels: per column and place along the load, the places of values, and jobs."""
    rows = []
    for column, panel in enumerate(panels):
        for place, counts in enumerate(panel):
            values = np.flatnonzero(counts)
            if values.size:
                rows.append({"c": column, "i": place, "j": values.tolist(), "n": counts[values].tolist()})
    return rows


def value_at(place: str, step: float) -> str:
    """Return the Vega expression of a bound of a value bin."""
    return f"{place} * {step}" if step else f"pow(10, ({place}) / {BINS_PER_DECADE})"


def _cells(number: int, step: float, cells: Cells, y: alt.Y, most: int, brush: Any, legend: int) -> alt.Chart:
    """Draw the cells of a column, with a legend of ``legend`` pixels."""
    scale = alt.Scale(type="log", domain=[1, most], range=list(SHADES))
    key = alt.Legend(title=["jobs", "per cell"], gradientLength=legend, tickCount=4, format="~s", offset=6)
    chart = (
        alt.Chart()
        .transform_filter(f"datum.c == {number}")
        .transform_flatten(["j", "n"])
        .transform_calculate(
            load_low=f"datum.i * {cells.loads / LOAD_BINS}",
            load_high=f"(datum.i + 1) * {cells.loads / LOAD_BINS}",
            value_low=value_at(f"datum.j * {cells.values}", step),
            value_high=value_at(f"(datum.j + 1) * {cells.values}", step),
        )
    )
    colour = alt.Color("n:Q", scale=scale, legend=key if legend else None)
    if brush is None:
        return rectangles(chart, y, colour, None)
    return rectangles(chart, y, colour, tip("n:Q", "jobs", ",")).add_params(brush)


def _load_axis() -> alt.X:
    axis = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1~f", title="load experienced", zindex=1)
    return alt.X("load_low:Q", scale=alt.Scale(domain=[0, 1], nice=False, clamp=True), axis=axis)


def rectangles(chart: alt.Chart, y: alt.Y, colour: alt.Color, count: alt.Tooltip | None) -> alt.Chart:
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


def value_axis(measure: str, top: float, linear: bool, title: str = "") -> alt.Y:
    """Return the axis of a measure up to ``top``."""
    times = measure != "slowdown"
    title = title or measure.replace("_", " ")
    if linear:
        axis = alt.Axis(title=title, labelExpr=TIME_LABEL if times else NUMBER_LABEL, tickCount=5, **OVER_CELLS)
        return alt.Y("value_low:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=axis)
    return alt.Y("value_low:Q", **log_axis(title, top, seconds=times, **OVER_CELLS))


def first_titled(y: alt.Y, column: int) -> alt.Y:
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
            "value_low": rounded(points[:, 1], 5),
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
    rows = [
        {"load_low": round(load, 5), "value_low": float(f"{max(value, 1.0):.6g}"), "jobs": jobs}
        for load, value, jobs in points.select("mean_load", "mean_value", "jobs").iter_rows()
    ]
    layers = [
        alt.Chart(data.add(rows)).mark_point(**_BUBBLE, opacity=1).encode(x=_load_axis(), y=y, size=size, tooltip=tips)
    ]
    mean = mean_point(points)
    if mean is not None and of == "mean":
        centre = data.add([{"load_low": mean[0], "value_low": max(mean[1], 1.0)}])
        mean_load = tip("load_low:Q", "mean load of all jobs", ".3f")
        tips = [mean_load, tip("value_low:Q", "mean value of all jobs", ",.4~r")]
        layers += [
            alt.Chart(centre)
            .mark_point(**_CROSS, stroke=colour, strokeWidth=width)
            .encode(x=_load_axis(), y=y, tooltip=tips)
            for colour, width in (("white", 5.5), ("black", 2.2))
        ]
    return layers


def _most(points: pl.DataFrame) -> int:
    return max(points["jobs"].to_list(), default=1)


def _distribution(
    columns: Mapping[str, Style], step: float, cells: Cells, y: alt.Y, brush: Any, legend: bool
) -> alt.Chart:
    """Draw, per run, the share of the jobs of the selected loads at or below each value."""
    key = alt.Legend(title=None, orient="top", columns=1, labelLimit=220, symbolStrokeWidth=3)
    axis = alt.Axis(format="%", title="jobs at or below", values=[0, 0.5, 1])
    return (
        alt.Chart()
        .transform_calculate(
            load_low=f"datum.i * {cells.loads / LOAD_BINS}", load_high=f"(datum.i + 1) * {cells.loads / LOAD_BINS}"
        )
        .transform_filter(brush)
        .transform_flatten(["j", "n"])
        .transform_aggregate(jobs="sum(n)", groupby=["c", "j"])
        .transform_calculate(
            run=f"{json.dumps([*columns])}[datum.c]", place="datum.j",
            value_low=value_at(f"(datum.j + 1) * {cells.values}", step),
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


#: The marks that the legend explains: their texts, and the widths of these in pixels.
_MARKS = {
    "cell": ("jobs in a cell", 70),
    "half": (f"encloses {CONTOUR_SHARES[0]:.0%} of the jobs", 125),
    "most": (f"encloses {CONTOUR_SHARES[1]:.0%} of the jobs", 125),
    "bubble": ("mean of a tenth of the load range, area: jobs", 222),
    "mean": ("mean of all jobs", 85),
}


#: Pixels that a text of the legend may need beyond its stated width, and those of the axis beside which it stands.
_TIGHT, _AXIS = 15, 70


def _key(marks: Iterable[str], pixels: float | None = None) -> Any:
    """Draw a legend that explains the marks: one line, or as many as a figure of this width needs."""
    x, line, widest = 0, 0, 0
    places = {}
    for mark in marks:
        if pixels and x and x + _MARKS[mark][1] + _TIGHT > pixels - _AXIS:
            x, line = 0, line + 1
        places[mark] = (x, line)
        x += _MARKS[mark][1] + 40
        widest = max(widest, x - 40 + _TIGHT if pixels else x)
    axis = alt.X("x:Q", scale=alt.Scale(domain=[0, widest], nice=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[line + 1, 0]), axis=None)

    def at(offset: float) -> Any:
        rows = [
            {"x": place + offset, "x2": place + 24, "y": row + 0.5, "t": _MARKS[mark][0], "k": mark}
            for mark, (place, row) in places.items()
        ]
        return alt.Chart(alt.InlineData(values=rows))

    def only(mark: str, offset: float = 12) -> Any:
        return at(offset).transform_filter(f"datum.k == '{mark}'")

    layers = [at(30).mark_text(align="left", fontSize=10).encode(x=axis, y=y, text=alt.Text("t:N"))]
    if "cell" in marks:
        layers += [
            only("cell", place).mark_square(size=80, color=shade, opacity=1).encode(x=axis, y=y)
            for place, shade in zip((2, 11, 20), SHADES, strict=True)
        ]
    for mark, style in zip(("half", "most"), _LINES, strict=True):
        if mark in marks:
            rule = only(mark, 0).mark_rule(color=CONTOUR_COLOUR, **style)
            layers.append(rule.encode(x=axis, x2=alt.X2("x2:Q"), y=y))
    bubble = only("bubble").mark_point(**_BUBBLE, size=160)
    cross = only("mean").mark_point(**_CROSS, stroke="black", strokeWidth=2.2)
    layers += [bubble.encode(x=axis, y=y), cross.encode(x=axis, y=y)]
    key = alt.layer(*layers).properties(name="key", width=widest, height=26 * (line + 1))
    return key.properties(view=alt.ViewConfig(stroke=None))
