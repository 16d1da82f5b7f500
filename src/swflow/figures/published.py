"""The figure of published values compared with those of swflow."""

from typing import Any

import altair as alt

from swflow.errors import SwflowError
from swflow.figures.parts import FigureData, Spec, finished_figure, layered, tip
from swflow.figures.request import Request
from swflow.figures.styles import BLUE, GREEN, ORANGE, VERMILION
from swflow.files.query import fetched
from swflow.names import recipe_of

PUBLISHED_CAPTION = (
    "Each dot is a published value: swflow's value divided by it. On the line, both are equal; the band is "
    "10 % on either side. The axis is logarithmic; ratios beyond its ends are drawn at the ends."
)

#: The ends of the axis; ratios beyond them are drawn at the ends.
_ENDS = (1 / 8, 8.0)

#: The classes of relative difference, with their colours.
NEARNESS = {"within 1 %": GREEN, "within 5 %": BLUE, "within 10 %": ORANGE, "further off": VERMILION}


def draw_published(request: Request) -> Spec:
    """
    Draw the ratio of swflow's value to the published one for every cell that the runs and their sweeps reproduce.

    There is one line of dots per table and column.
    """
    rows = [row for row in _reproduced(request) if row["ratio"] is not None and row["ratio"] > 0]
    if not rows:
        raise SwflowError("figure: published: no paper has a value for these runs")
    data = FigureData()
    places = list(dict.fromkeys(row["place"] for row in rows))
    drawn = [
        {name: row[name] for name in ("place", "row", "published", "ours", "ratio")}
        | {
            "near": f"within {row['within_percent']} %" if row["within_percent"] else "further off",
            "at": min(max(row["ratio"], _ENDS[0]), _ENDS[1]),
        }
        for row in rows
    ]
    x = alt.Scale(type="log", base=2, domain=list(_ENDS), nice=False)
    ticks = [0.125, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 8]
    axis = alt.Axis(title="ours / published", orient="top", values=ticks, format=".3~f")
    # A band of the height of the panel, so that its bounds need no separate row.
    band = (
        alt.Chart(data.add([{"a": 0.9, "b": 1.1}]))
        .mark_rect(opacity=0.1, color=BLUE)
        .encode(x=alt.X("a:Q", scale=x, axis=axis), x2=alt.X2("b:Q"))
    )
    line = alt.Chart(data.add([{"a": 1.0}])).mark_rule(color="#888888", strokeWidth=1).encode(x=alt.X("a:Q", scale=x))
    tips = [
        tip("place:N", "table, column"),
        tip("row:N", "row"),
        tip("published:Q", number=",.6~r"),
        tip("ours:Q", number=",.6~r"),
        tip("ratio:Q", number=".3~f"),
    ]
    colours = alt.Scale(domain=list(NEARNESS), range=list(NEARNESS.values()))
    dots = (
        alt.Chart(data.add(drawn))
        .mark_point(filled=True, size=52, opacity=0.75)
        .encode(
            x=alt.X("at:Q", scale=x, axis=axis),
            y=alt.Y("place:N", sort=places, axis=alt.Axis(title=None, labelLimit=240, grid=True, domain=False)),
            color=alt.Color("near:N", scale=colours, legend=alt.Legend(title=None, orient="bottom", columns=2)),
            tooltip=tips,
        )
    )
    chart = layered(band, line, dots, width=620, height={"step": 20})
    title = f"{request.title}: simulated and published values"
    return finished_figure(data, [chart], title, PUBLISHED_CAPTION)


def _reproduced(request: Request) -> list[dict[str, Any]]:
    """Return the rows of the view ``reproduction`` that belong to the runs or to sweeps of their workloads."""
    names, everything = fetched(request.connection.execute("SELECT * FROM reproduction WHERE reason IS NULL"))
    runs = {(name, run["scheduler"]) for run in request.runs for name in (run["workload"], recipe_of(run["workload"]))}
    workloads = {workload for workload, _ in runs}
    sources = request.connection.execute("SELECT DISTINCT workload, source FROM sweeps").fetchall()
    swept = {workload for workload, source in sources if source in workloads}
    swept |= {recipe_of(workload) for workload in swept}
    found = []
    for values in everything:
        row = dict(zip(names, values, strict=True))
        workload, scheduler = row["workload"], row["scheduler"]
        is_own = (workload, scheduler) in runs or (scheduler is None and workload in workloads)
        if is_own or (request.sweeps and workload in swept):
            found.append(row | {"place": f"{row['paper']}, {row['table']}: {row['column']}"})
    return found
