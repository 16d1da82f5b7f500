"""What charts share: colours, ticks and labels of axes, and the frame of a finished figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

#: Colours that stay apart for colour-blind readers: M. Okabe, K. Ito, "Color universal design", 2008.
RUN_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")

#: What colours of the charts become on a dark page: the same hues, lighter, and black and white exchanged.
DARK = {
    "#000000": "#e6ebf1", "black": "#e6ebf1", "white": "#14191f", "#333333": "#c3ccd6", "#444444": "#a8b3c0",
    "#777777": "#77828f", "#888888": "#5f6a77", "#0072B2": "#4f9fe6", "#D55E00": "#f08a3c", "#009E73": "#35c79a",
    "#CC79A7": "#e39ac2", "#E69F00": "#f0b429", "#56B4E9": "#b5e3ff", "#d4d4d4": "#2b3541", "#7a7a7a": "#7d8fa3",
    "#F7F7F7": "#1c232b", "#B35806": "#f08a3c", "#08519C": "#56a9e8", "#eef2f6": "#1d2630", "#9cc3e2": "#2f628f",
    "#0b4f8a": "#86c3f5",
}  # fmt: skip

#: Readable ticks of a logarithmic axis of seconds.
TIME_TICKS = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 10 * 86_400, 100 * 86_400, 1000 * 86_400)
TIME_LABEL = (
    "datum.value >= 86400 ? format(datum.value / 86400, ',.3~r') + ' d' : "
    "datum.value >= 3600 ? format(datum.value / 3600, '.3~r') + ' h' : "
    "datum.value >= 60 ? format(datum.value / 60, '.3~r') + ' min' : format(datum.value, '.3~r') + ' s'"
)
NUMBER_LABEL = "datum.value >= 10000 ? format(datum.value, '.3~s') : format(datum.value, ',.3~r')"

OVER_CELLS: dict[str, Any] = {
    "minExtent": 38,
    "zindex": 1,
}  # columns of all rows in line; the axis drawn over the cells


class FigureData(dict[str, Any]):
    """The data of a figure by name. Altair copies what is inline again and again, so charts get names only."""

    def add(self, rows: Sequence[Mapping[str, Any]]) -> alt.NamedData:
        """Keep rows, and return what a chart refers to them by."""
        name = f"data-{len(self)}"
        self[name] = list(rows)
        return alt.NamedData(name)


def beside(*charts: Any, spacing: int, data: alt.NamedData | None = None, **scales: str) -> dict[str, Any]:
    """
    Put charts side by side.

    Altair copies all of a chart whenever it becomes a part of another, so that figures of many panels took a minute:
    rows are put together as what Altair writes.

    Parameters
    ----------
    *charts : altair.Chart or altair.LayerChart
        The charts, from the left.
    spacing : int
        Between them, pixels.
    data : altair.NamedData, optional
        Of all that have none of their own.
    **scales : {'independent', 'shared'}
        How charts resolve a scale, such as ``color``.

    Returns
    -------
    dict
        A row for `finished_figure`.
    """
    row: dict[str, Any] = {"hconcat": [_part(chart, data) for chart in charts], "spacing": spacing}
    if data is not None:
        row["data"] = data.to_dict()
    if scales:
        row["resolve"] = {"scale": scales}
    return row


def _part(chart: Any, data: alt.NamedData | None = None) -> dict[str, Any]:
    """Return a chart as a part of a figure, which may have data for it; with ``datasets`` if it has its own."""
    if isinstance(chart, dict):
        return chart
    datasets: dict[str, Any] = {}
    context = {"top_level": False, "datasets": datasets} | ({"data": data} if data is not None else {})
    spec: dict[str, Any] = chart.to_dict(validate=False, context=context)
    return spec | ({"datasets": datasets} if datasets else {})


def finished_figure(
    data: FigureData, rows: Sequence[Any], title: str, caption: str, more: str = "", subtitle: str = ""
) -> dict[str, Any]:
    """Stack the rows, and note title and caption in the specification for whoever shows it."""
    frame = (
        alt.vconcat(spacing=16)
        .resolve_scale(color="independent")
        .properties(
            title=alt.TitleParams(
                title, subtitle=subtitle or [], anchor="start", frame="bounds", fontSize=15, offset=10
            ),
            usermeta={"title": title, "caption": f"{caption} {more}".strip(),
                      "embedOptions": {"actions": False}},
        )
        .configure_view(stroke="#888888")
        .configure_axis(grid=False, domainColor="#888888", tickColor="#888888", labelFontSize=10, titleFontSize=11,
                        titleFontWeight="normal")
        .configure_title(fontSize=12, subtitleFontSize=10, subtitleColor="#444444", anchor="start", frame="group")
        .configure_legend(titleFontSize=10, labelFontSize=10, titleFontWeight="normal")
    )  # fmt: skip
    spec: dict[str, Any] = frame.to_dict()
    spec["vconcat"] = [_part(row) for row in rows]
    spec["datasets"] = dict(data)
    params: dict[str, dict[str, Any]] = {}
    for panel in [panel for row in spec["vconcat"] for panel in row.get("hconcat", [row])]:
        spec["datasets"] |= panel.pop("datasets", {})
        for param in panel.pop("params", ()):  # one selection, though several panels offer it
            params.setdefault(param["name"], param | {"views": []})["views"] += param["views"]
    if params:
        spec["params"] = list(params.values())
    return spec
