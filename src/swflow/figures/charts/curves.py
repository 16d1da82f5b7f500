"""Charts of functions: published ones as lines, those of a workload as points."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from swflow.analysis.heatmap import LOAD_BINS
from swflow.analysis.moldable import Curves
from swflow.figures.charts.parts import FigureData, Spec, beside, finished_figure
from swflow.figures.charts.styles import RUN_COLOURS

MOLDABLE_CAPTION = (
    "Output of the model of moldable jobs: lines are the distribution functions stated by Cirne and Berman (2001), "
    "points are those of the workload's jobs. Sigma is drawn from a normal distribution truncated below 0. "
    "The last panel shows the speedup function of the run times."
)

#: Width and height of a panel, pixels.
_SIZE = (2 * LOAD_BINS + 80, 170)


def curve_chart(panels: Sequence[Curves], title: str) -> Spec:
    """Draw functions, published ones as lines and measured ones as points, two panels per row."""
    data = FigureData()
    charts = [_curve_panel(data, panel) for panel in panels]
    pairs = [charts[place : place + 2] for place in range(0, len(charts), 2)]
    rows = [beside(*pair, spacing=24, color="independent") for pair in pairs]
    return finished_figure(data, rows, title, MOLDABLE_CAPTION)


def _curve_panel(data: FigureData, panel: Curves) -> Any:
    names = list(dict.fromkeys([*panel.lines, *panel.points]))
    key = alt.Legend(title=None, orient="bottom-right", symbolType="stroke") if len(names) > 1 else None
    scale = alt.Scale(domain=names, range=[RUN_COLOURS[place % len(RUN_COLOURS)] for place in range(len(names))])
    axis = alt.Scale(type="log", base=2, nice=False) if panel.logarithmic else alt.Scale(nice=False)
    encoding = {
        "x": alt.X("x:Q", scale=axis, axis=alt.Axis(title=panel.x_title, format="~r", tickCount=8)),
        "y": alt.Y("y:Q", axis=alt.Axis(title=panel.y_title)),
        "color": alt.Color("name:N", scale=scale, legend=key),
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
    return alt.layer(*layers).properties(width=_SIZE[0], height=_SIZE[1], title=panel.title)
