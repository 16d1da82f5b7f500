"""Figures of reservation tables: the processors of the jobs of some runs over time."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import duckdb
import numpy as np
import polars as pl

from swflow.analysis.shadows import ranges, shadows
from swflow.errors import SwflowError
from swflow.figures.parts import OVER_CELLS, FigureData, Spec, finished_figure, tip
from swflow.figures.request import Request, frame, in_jobs
from swflow.jobs.machine import Machine

#: The largest number of reservation tables in one figure.
MOST_TABLES = 6

#: The default length of the window of a reservation table (s).
DAY = 86_400.0

RESERVATION_TABLE_CAPTION = (
    "Each rectangle is a job, on consecutive processors (upwards) from its start to its end; a job on scattered "
    "processors has several, of one color. Lines separate nodes. Dark shadows (intervals in which the jobs of "
    "a node do not change) have a demand above the capacity of the node; the penalty is the relative excess, summed "
    "over the resources (0.33: demand is 133 % of capacity)."
)

#: The largest number of job rectangles, and of shadow rectangles, in a reservation table; the largest are drawn.
MOST_RECTANGLES = 3000

#: Colours of jobs, all light, so that dark penalties are visible on each.
JOB_COLOURS = ("#7fc4ff", "#ffb477", "#8be08b", "#f7a8c4", "#f5e663", "#c9b3ff", "#6fdcd0", "#e0c9a6")
_PENALTY_COLOURS = ("rgba(0, 0, 0, 0.04)", "rgba(0, 0, 0, 0.5)")
_TABLE_WIDTH, _TABLE_HEIGHTS, _PIXELS_PER_PROCESSOR = 760, (120, 520), 5
_TIME_UNITS = ((2 * 86_400, 86_400, "days"), (2 * 3600, 3600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))

#: Letters in a line of a title and of a subtitle, which fit on a telephone.
_TITLE, _SUBTITLE = 38, 50


@dataclass(frozen=True)
class ReservationTable:
    """
    The jobs of a run on their processors, and the shadows of the nodes.

    ``places`` has one row per job and range of processors (``first`` to ``last``); further columns are for the
    tooltips.
    """

    name: str
    machine: Machine
    places: pl.DataFrame
    shadows: pl.DataFrame


def draw_reservation_tables(request: Request) -> Spec:
    """
    Draw jobs on their processors, for runs with places, and the penalty of node sharing: one table below the other.

    References
    ----------
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio
    simulator", MASCOTS 2007, Figures 1 to 4.
    """
    connection, chosen = request.connection, request.runs
    placed = {
        run for (run,) in connection.execute("SELECT DISTINCT run FROM outcomes WHERE places IS NOT NULL").fetchall()
    }
    drawn = [(run["run"], name) for run, name in zip(chosen, request.names, strict=True) if run["run"] in placed]
    if not drawn:
        raise SwflowError(
            f"figure: reservation-table: the processors of the jobs of {chosen[0]['run']} are unknown; "
            "simulate it with places: true (and an allocation other than count)"
        )
    since, until = _window(request.window)
    if since is None or until is None:
        since, until = _worst_day(_table(connection, *drawn[0], None))
    if not since < until:
        raise SwflowError(
            f"figure: reservation-table: from {since:.15g} until {until:.15g}; expected finite seconds in "
            "ascending order"
        )
    tables = [_table(connection, run, name, (since, until)) for run, name in drawn[:MOST_TABLES]]
    if all(table.places.is_empty() for table in tables):
        raise SwflowError(f"figure: reservation-table: no job runs from second {since:.15g} to {until:.15g}")
    left_out = {
        "processors unknown": [run["run"] for run in chosen if run["run"] not in placed],
        f"more than {MOST_TABLES} runs": [run for run, _ in drawn[MOST_TABLES:]],
    }
    reasons = [f"{_some(runs)}: {reason}" for reason, runs in left_out.items() if runs]
    note = f"Not drawn: {'; '.join(reasons)}" if reasons else ""
    data = FigureData()
    length = until - since
    _, seconds, unit = next(row for row in _TIME_UNITS if length >= row[0])
    axis = alt.Axis(title=f"{unit} after second {since:,.10g} of the log (day {since / 86_400:.4g})")
    x = alt.X("a:Q", scale=alt.Scale(domain=[0, length / seconds], nice=False), axis=axis)
    cut = [_cut(table, (since, until), seconds) for table in tables]
    most = max((float(shaded["penalty"].max() or 0.0) for _, shaded in cut), default=0.0)  # type: ignore[arg-type]
    charts = [
        _reservation_table(data, table, *parts, x, length / seconds, most, request.interactive)
        for table, parts in zip(tables, cut, strict=True)
    ]
    title = f"{request.title}: reservation table"
    return finished_figure(data, charts, title, RESERVATION_TABLE_CAPTION, f"{note}." if note else "", note)


def _some(runs: Sequence[str]) -> str:
    """Return the name of the first run, and the number of further runs."""
    return runs[0] + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")


def _window(window: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    """Return both ends, one day apart if only one is given; None if neither is given."""
    since, until = window
    if not all(end is None or np.isfinite(end) for end in window):
        raise SwflowError(f"figure: reservation-table: from {since} until {until}; expected seconds in ascending order")
    if since is None and until is not None:
        return until - DAY, until
    return since, since + DAY if since is not None and until is None else until


def _table(
    connection: duckdb.DuckDBPyConnection, run: str, name: str, window: tuple[float, float] | None
) -> ReservationTable:
    """Return the reservation table of a run for the jobs that run within a window."""
    processors, size, stated = connection.execute(
        """SELECT r.processors, w.processors_per_node, w.capacities
        FROM runs r JOIN workloads w USING (workload) WHERE run = $run""",
        {"run": run},
    ).fetchall()[0]
    machine = Machine(processors, processors if processors % size else processors // size, json.loads(stated or "{}"))
    resources = [name for name in machine.capacities if in_jobs(connection, name)]
    demands = "".join(f', coalesce(j."{name}", 0.0) AS "{name}"' for name in resources)
    part = f"AND start_time < {window[1]!r} AND end_time > {window[0]!r}" if window else ""
    jobs = frame(
        connection,
        f"""SELECT job_id, start_time, end_time, o.processors, o.penalty_time, o.killed, o.places {demands}
        FROM outcomes o JOIN jobs j USING (workload, job_id) WHERE run = $run {part} ORDER BY start_time, job_id""",
        run,
    )
    found = shadows(jobs, jobs.select("job_id", *resources), machine)
    if window:  # a shadow at the edge can start or end with a job outside of the window
        found = found.with_columns(pl.col("start", "end").clip(*window)).filter(pl.col("start") < pl.col("end"))
    return ReservationTable(name, machine, ranges(jobs), found)


def _worst_day(table: ReservationTable) -> tuple[float, float]:
    """Return the day, from the log's start, with the largest penalty over all processors; else the first day."""
    first = (pl.col("start") // DAY).cast(pl.Int64)
    last = (pl.col("end") / DAY).ceil().cast(pl.Int64)
    within = pl.min_horizontal("end", (pl.col("day") + 1) * DAY) - pl.max_horizontal("start", pl.col("day") * DAY)
    days = (
        table.shadows.filter(pl.col("penalty") > 0)
        .select("start", "end", "penalty", "processes", day=pl.int_ranges(first, last))
        .explode("day")
        .group_by("day", maintain_order=True)
        .agg((within * pl.col("penalty") * pl.col("processes")).sum().alias("lost"))
        .sort("lost", "day", descending=[True, False])
    )
    day = days["day"][0] if days.height else table.places.select((pl.col("start_time") // DAY).min()).item()
    return day * DAY, (day + 1) * DAY


def _cut(table: ReservationTable, window: tuple[float, float], seconds: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rectangles of jobs and of penalized shadows, ``a`` to ``b`` by ``y`` to ``y2``, the largest first."""
    size = table.machine.processors_per_node

    def within(rows: pl.DataFrame, start: str, end: str) -> pl.DataFrame:
        a, b = ((pl.col(name).clip(*window) - window[0]) / seconds for name in (start, end))
        area = (pl.col("b") - pl.col("a")) * (pl.col("y2") - pl.col("y"))
        rows = rows.filter((pl.col(end) > window[0]) & (pl.col(start) < window[1]) & (pl.col(end) > pl.col(start)))
        return rows.with_columns(a=a, b=b).with_columns(area=area).sort("area", descending=True, maintain_order=True)

    colour = pl.col("job_id") % len(JOB_COLOURS)
    places = table.places.with_columns(colour.alias("colour"), y=pl.col("first"), y2=pl.col("last") + 1)
    shaded = table.shadows.filter(pl.col("penalty") > 0).with_columns(
        y=pl.col("node") * size, y2=(pl.col("node") + 1) * size
    )
    return within(places, "start_time", "end_time"), within(shaded, "start", "end")


def _reservation_table(
    data: FigureData,
    table: ReservationTable,
    places: pl.DataFrame,
    shaded: pl.DataFrame,
    x: alt.X,
    length: float,
    most: float,
    interactive: bool,
) -> alt.LayerChart:
    machine = table.machine
    height = min(max(machine.processors * _PIXELS_PER_PROCESSOR, _TABLE_HEIGHTS[0]), _TABLE_HEIGHTS[1])
    y = _processor_axis(machine)
    jobs, shadows = places.head(MOST_RECTANGLES), shaded.head(MOST_RECTANGLES)
    ranks = list(range(len(JOB_COLOURS)))
    box = {"x": x, "x2": alt.X2("b"), "y": y, "y2": alt.Y2("y2")}
    named = data.add(_rectangles(jobs, interactive))
    colour = alt.Color("colour:N", scale=alt.Scale(domain=ranks, range=list(JOB_COLOURS)), legend=None)
    job = alt.Chart(named).mark_rect(aria=False)
    job = job.encode(**box, tooltip=_tips(jobs) if interactive else alt.value(None), color=colour)
    scale = alt.Scale(domain=[0, most or 1.0], range=list(_PENALTY_COLOURS))
    legend = alt.Legend(title="penalty", format=".2~f", gradientLength=min(height - 40, 160), tickCount=4)
    colour = alt.Color("penalty:Q", scale=scale, legend=legend)
    shadow = alt.Chart(data.add(_rectangles(shadows, interactive))).mark_rect(aria=False)
    shadow = shadow.encode(**box, tooltip=_tips(shadows) if interactive else alt.value(None), color=colour)
    outline = alt.Chart(named).mark_rect(filled=False, stroke="#333333", strokeWidth=0.5, tooltip=None, aria=False)
    layers = [*_node_lines(data, machine, y, height), job, *([shadow] if shadows.height else []), outline.encode(**box)]
    labels = alt.Chart(data.add(_labels(jobs, length, height / machine.processors)))
    halo: Spec = {"stroke": "white", "strokeWidth": 2.5, "strokeOpacity": 0.8, "strokeJoin": "round"}
    layers += [labels.mark_text(fontSize=9, **style).encode(x=x, y=y, text=alt.Text("t:N")) for style in (halo, {})]
    return (
        alt.layer(*layers)
        .resolve_scale(color="independent")
        .properties(width=_TABLE_WIDTH, height=height, title=_table_title(table, places, shaded))
    )


def _processor_axis(machine: Machine) -> alt.Y:
    """Return an axis with about 16 ticks at the first processors of nodes."""
    step = machine.processors_per_node * max(1, round(machine.nodes / 16))
    title = "processor" + (f", in nodes of {machine.processors_per_node}" if machine.processors_per_node > 1 else "")
    axis = alt.Axis(title=title, values=list(range(0, machine.processors + 1, step)), format=",d", **OVER_CELLS)
    return alt.Y("y:Q", scale=alt.Scale(domain=[0, machine.processors], nice=False), axis=axis)


def _rectangles(rows: pl.DataFrame, interactive: bool) -> list[dict[str, object]]:
    """Return the drawn columns of the rows and, in the report, the columns of the tooltips."""
    drawn = [name for name in ("a", "b", "y", "y2", "colour", "penalty") if name in rows.columns]
    told = [name for name in rows.columns if name not in (*drawn, "area", "first", "last")] if interactive else []
    if "jobs" in told:
        rows = rows.with_columns(pl.col("jobs").cast(pl.List(pl.String())).list.join(", "))
    return rows.select(pl.col(drawn).round(5), *told).to_dicts()


def _tips(rows: pl.DataFrame) -> list[alt.Tooltip]:
    hidden = {"a", "b", "y", "y2", "area", "colour", "first", "last"}
    tips = []
    for name, dtype in rows.schema.items():
        digits = ".3f" if name == "penalty" else ",.10~g"
        if name not in hidden:
            kind = "Q" if dtype.is_numeric() else "N"
            tips.append(tip(f"{name}:{kind}", name.replace("_", " "), digits if dtype.is_float() else ""))
    return tips


def _node_lines(data: FigureData, machine: Machine, y: alt.Y, height: float) -> list[alt.Chart]:
    """Draw lines between nodes, unless they would be less than 3 pixels apart or each node is one processor."""
    size = machine.processors_per_node
    if size == 1 or height / machine.nodes < 3:
        return []
    lines = data.add([{"y": node * size} for node in range(1, machine.nodes)])
    return [alt.Chart(lines).mark_rule(color="#777777", strokeWidth=0.5, strokeOpacity=0.7).encode(y=y)]


def _labels(jobs: pl.DataFrame, length: float, pixels: float) -> list[dict[str, object]]:
    """Return the job ids that fit, each in the middle of the job's largest rectangle."""
    largest = jobs.unique("job_id", keep="first", maintain_order=True)
    text = pl.col("job_id").cast(pl.String())
    room = (pl.col("b") - pl.col("a")) / length * _TABLE_WIDTH
    fits = (room > 6 * text.str.len_chars() + 2) & ((pl.col("y2") - pl.col("y")) * pixels >= 9)
    return (
        largest.filter(fits)
        .select(a=((pl.col("a") + pl.col("b")) / 2).round(5), y=(pl.col("y") + pl.col("y2")) / 2, t=text)
        .to_dicts()
    )


def _table_title(table: ReservationTable, places: pl.DataFrame, shaded: pl.DataFrame) -> alt.TitleParams:
    """Return the title of a run: its name, its machine, and the omitted rectangles."""
    penalized = shaded.select((pl.col("b") - pl.col("a")) * pl.col("processes") * pl.col("penalty")).sum().item()
    busy = max(float(places["area"].sum()), 1e-300)
    lines = [
        table.machine.describe(),
        f"{places['job_id'].n_unique():,} jobs; mean penalty of a busy processor {penalized / busy:.1%}",
    ]
    for what, rows in (("jobs", places), ("shadows", shaded)):
        if rows.height > MOST_RECTANGLES:
            rest = rows["area"].slice(MOST_RECTANGLES)
            lines.append(
                f"the {len(rest):,} smallest of {rows.height:,} rectangles of {what} are left out, "
                f"{float(rest.sum()) / float(rows['area'].sum()):.2%} of their area"
            )
    return alt.TitleParams(
        textwrap.wrap(table.name, _TITLE, break_on_hyphens=False),
        subtitle=[part for line in lines for part in textwrap.wrap(line, _SUBTITLE)],
    )
