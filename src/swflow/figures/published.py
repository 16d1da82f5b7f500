"""The figure of published values compared with those of swflow."""

from dataclasses import replace
from typing import Any, cast

from swflow.errors import SwflowError
from swflow.figures.charts.published import published_chart
from swflow.figures.provenance import RecordedConnection, figure_command
from swflow.figures.request import Request
from swflow.files.query import fetched
from swflow.names import recipe_of


def draw_published(request: Request) -> dict[str, Any]:
    """Draw the ratio of swflow's value to the published one for every cell that the runs and their sweeps reproduce."""
    spec = published_figure(request)
    if spec is None:
        raise SwflowError("figure: published: no paper has a value for these runs")
    return spec


def published_figure(request: Request, *, sweeps: bool = True) -> dict[str, Any] | None:
    """Return the figure, with or without values of scaled workloads; None if there is no value to draw."""
    recorded = RecordedConnection(request.connection)
    rows = reproduced(replace(request, connection=cast(Any, recorded)), sweeps)
    drawn = [row for row in rows if row["ratio"] is not None and row["ratio"] > 0]
    if not drawn:
        return None
    spec = published_chart(drawn, f"{request.title}: simulated and published values")
    spec["usermeta"] |= {"kind": "published", "sql": recorded.sql, "command": figure_command("published", request)}
    return spec


def reproduced(request: Request, sweeps: bool = True) -> list[dict[str, Any]]:
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
        if is_own or (sweeps and workload in swept):
            found.append(row | {"place": f"{row['paper']}, {row['table']}: {row['column']}"})
    return found
