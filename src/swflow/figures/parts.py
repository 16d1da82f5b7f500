"""Shared parts of charts: colors, ticks and labels of axes, and the frame of a finished figure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

#: A specification in Vega-Lite, or a part of one.
Spec = dict[str, Any]

#: The font of the figures: the shipped one, then fonts with equal metrics for viewers of an SVG without it.
FONT = "Swflow Sans, Liberation Sans, Arial, Helvetica, sans-serif"

#: Colours of the charts to their replacements on a dark page: lighter hues, and black and white swapped.
DARK = {
    "#000000": "#e6ebf1", "black": "#e6ebf1", "white": "#14191f", "#333333": "#c3ccd6", "#444444": "#a8b3c0",
    "#777777": "#77828f", "#888888": "#5f6a77", "#0072B2": "#4f9fe6", "#D55E00": "#f08a3c", "#009E73": "#35c79a",
    "#CC79A7": "#e39ac2", "#E69F00": "#f0b429", "#56B4E9": "#b5e3ff", "#d4d4d4": "#2b3541", "#7a7a7a": "#7d8fa3",
    "#F7F7F7": "#1c232b", "#B35806": "#f08a3c", "#08519C": "#56a9e8", "#eef2f6": "#1d2630", "#9cc3e2": "#2f628f",
    "#0b4f8a": "#86c3f5", "#882255": "#d978a8", "#999933": "#c9c96a",
}  # fmt: skip

#: Readable ticks of a logarithmic axis of seconds.
TIME_TICKS = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 10 * 86_400, 100 * 86_400, 1000 * 86_400)
#: Ticks between these, for axes with few ticks.
MORE_TIME_TICKS = tuple(
    sorted({*TIME_TICKS, 5, 30, 120, 300, 1200, 1800, 7200, 3 * 3600, 12 * 3600, 2 * 86_400, 5 * 86_400, 30 * 86_400})
)
TIME_LABEL = (
    "datum.value >= 86400 ? format(datum.value / 86400, ',.3~r') + ' d' : "
    "datum.value >= 3600 ? format(datum.value / 3600, '.3~r') + ' h' : "
    "datum.value >= 60 ? format(datum.value / 60, '.3~r') + ' min' : format(datum.value, '.3~r') + ' s'"
)
#: Ticks of a logarithmic axis of numbers.
POWERS_OF_TEN = tuple(10**power for power in range(16))
#: Steps between the ticks of a linear axis of seconds; larger steps are multiples of days.
_TIME_STEPS = (
    *(step * unit for unit in (1, 60) for step in (1, 2, 5, 10, 20, 30)),
    *(step * 3600 for step in (1, 2, 3, 6, 12)),
    *(step * 10**power * 86_400 for power in range(6) for step in (1, 2, 5)),
)  # fmt: skip

_TIME_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))

NUMBER_LABEL = "datum.value >= 10000 ? format(datum.value, '.3~s') : format(datum.value, ',.3~r')"

#: The configuration and the title of every figure.
_CONFIG: Spec = {
    "font": FONT,
    "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": "#888888"},
    "axis": {"grid": False, "domainColor": "#888888", "tickColor": "#888888", "labelFontSize": 10, "titleFontSize": 11,
             "titleFontWeight": "normal"},
    "title": {"fontSize": 12, "subtitleFontSize": 10, "subtitleColor": "#444444", "anchor": "start", "frame": "group"},
    "legend": {"titleFontSize": 10, "labelFontSize": 10, "titleFontWeight": "normal"},
}  # fmt: skip
_TITLE: Spec = {"anchor": "start", "frame": "bounds", "fontSize": 15, "offset": 10}

#: Options of an axis that align the columns of all rows, and draw the axis over the cells.
OVER_CELLS: Spec = {"minExtent": 38, "zindex": 1}


def time_axis(low: float, high: float, most: int = 6) -> Spec:
    """
    Return ticks (at most ``most``) and labels of a linear axis of seconds: multiples of one unit.

    Examples
    --------
    >>> axis = time_axis(140_000, 230_000)
    >>> [tick / 3600 for tick in axis["values"]], axis["labelExpr"]
    ([42.0, 48.0, 54.0, 60.0], "format(datum.value / 3600, ',d') + ' h'")
    >>> time_axis(0, 100)["values"]
    [0, 20, 40, 60, 80, 100]
    """
    step = next((step for step in _TIME_STEPS if (high - low) / step < most), _TIME_STEPS[-1])
    size, unit = next((size, unit) for size, unit in _TIME_UNITS if step >= size)
    return {
        "values": [tick * step for tick in range(math.ceil(low / step), math.floor(high / step) + 1)],
        "labelExpr": f"format(datum.value / {size}, ',d') + ' {unit}'",
    }


def log_time_ticks(least: float, top: float) -> list[int]:
    """
    Return the ticks of a logarithmic axis of seconds.

    Examples
    --------
    >>> log_time_ticks(1, 1e5), log_time_ticks(1000, 20_000)
    ([1, 10, 60, 600, 3600, 21600, 86400], [1200, 1800, 3600, 7200, 10800])
    """
    ticks = [tick for tick in TIME_TICKS if least <= tick <= top]
    return ticks if len(ticks) > 3 else [tick for tick in MORE_TIME_TICKS if least <= tick <= top]


def log_axis(title: str, top: float, *, seconds: bool, **more: Any) -> Spec:
    """Return scale and axis of a logarithmic channel from 1 to ``top``: times, or numbers."""
    ticks = TIME_TICKS if seconds else POWERS_OF_TEN
    axis = {
        "title": title,
        "labelExpr": TIME_LABEL if seconds else NUMBER_LABEL,
        "values": [tick for tick in ticks if tick <= top],
        "labelOverlap": "greedy",
    }
    return {"scale": alt.Scale(type="log", domain=[1, top], nice=False), "axis": alt.Axis(**(axis | more))}


def tip(field: str, title: str = "", number: str = "") -> alt.Tooltip:
    """Return the tooltip of a field, with its title (default: the field's name) and its number format, if any."""
    given: Spec = {"title": title, "format": number}
    return alt.Tooltip(field, **{name: text for name, text in given.items() if text})


def rounded(values: np.ndarray, digits: int = 4) -> list[float]:
    """Return values with this number of significant digits."""
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


def human_time(value: str) -> str:
    """Return the Vega expression that formats seconds in their largest unit."""
    return (
        f"{value} >= 172800 ? format({value} / 86400, ',.1f') + ' d' : {value} >= 7200 ? format({value} / 3600, '.1f')"
        f" + ' h' : {value} >= 120 ? format({value} / 60, '.1f') + ' min' : format({value}, '.3~r') + ' s'"
    )


class FigureData(dict[str, list[Mapping[str, object]]]):
    """The data of a figure by name. Charts contain only names, since Altair copies inline data repeatedly."""

    def add(self, rows: Sequence[Mapping[str, object]]) -> alt.NamedData:
        """Store rows, and return the reference for charts."""
        name = f"data-{len(self)}"
        self[name] = list(rows)
        return alt.NamedData(name)


def beside(*charts: Any, spacing: int, data: alt.NamedData | None = None, **scales: str) -> Spec:
    """
    Put charts side by side, as a row for `finished_figure`; ``data`` is that of all charts that have none.

    Altair copies a chart whenever it becomes part of another one, so that figures with many panels would take 60 s. The
    rows are therefore joined as dictionaries. ``scales`` are the resolutions of scales, such as ``color``.
    """
    row: Spec = {"hconcat": [_part(chart, data) for chart in charts], "spacing": spacing}
    if data is not None:
        row["data"] = data.to_dict()
    if scales:
        row["resolve"] = {"scale": scales}
    return row


def layered(*charts: Any, **properties: Any) -> Spec:
    """Draw charts over each other, each with its data, joined as dictionaries like the charts of `beside`."""
    return {"layer": [_part(chart) for chart in charts], **properties}


def _part(chart: Any, data: alt.NamedData | None = None) -> Spec:
    """Return a chart as a part of a figure, with optional data, and with ``datasets`` if it has its own data."""
    if isinstance(chart, dict):
        return chart
    datasets: Spec = {}
    context = {"top_level": False, "datasets": datasets} | ({"data": data} if data is not None else {})
    spec: Spec = chart.to_dict(validate=False, context=context)
    return spec | ({"datasets": datasets} if datasets else {})


def finished_figure(
    data: FigureData, rows: Sequence[Any], title: str, caption: str, more: str = "", subtitle: str = ""
) -> Spec:
    """Stack the rows, and store title and caption in the specification."""
    spec: Spec = {
        "$schema": alt.SCHEMA_URL,
        "config": _CONFIG,
        "title": _TITLE | {"text": title, "subtitle": subtitle or []},
        "usermeta": {"title": title, "caption": f"{caption} {more}".strip(), "embedOptions": {"actions": False}},
        "vconcat": [_part(row) for row in rows],
        "spacing": 16,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "datasets": dict(data),
    }
    params: dict[str, Spec] = {}
    for panel in [panel for row in spec["vconcat"] for panel in row.get("hconcat", [row])]:
        spec["datasets"] |= panel.pop("datasets", {})
        for param in panel.pop("params", ()):  # one shared selection for several panels
            params.setdefault(param["name"], param | {"views": []})["views"] += param["views"]
    if params:
        spec["params"] = list(params.values())
    return spec
