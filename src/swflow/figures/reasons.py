"""The figure of the reasons of waits: stacked parts of the mean wait by processors, hour of the week, and user."""

from typing import Any

import altair as alt
import polars as pl

from swflow.analysis.classes import with_size_class
from swflow.errors import SwflowError
from swflow.figures.parts import FigureData, Spec, beside, finished_figure, human_time, time_axis, tip
from swflow.figures.request import Request, frame
from swflow.figures.runs import short_names, with_user
from swflow.figures.styles import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY
from swflow.figures.workloads import local_times

#: The parts of a wait from below, with their SQL, their colors, and their names.
PARTS: dict[str, tuple[str, str, str]] = {
    "eligibility": ("eligibility", "#9aa3ad", "not eligible"),
    "limit": ('"limit"', PURPLE, "limit"),
    "busy": ("room - ifnull(fragmentation, 0) - ifnull(drain, 0)", BLUE, "no room: busy"),
    "fragmentation": ("fragmentation", SKY, "no room: fragmentation"),
    "drain": ("drain", GREEN, "no room: drain"),
    "order": ('"order"', ORANGE, "order"),
    "latency": ("latency", BLACK, "latency"),
}

#: The titles of the panels, which narrow pages show below each other.
TITLES = {"processors": "processors", "submitted": "day of submission", "user": "user"}

#: Hours of the week in one bar.
HOURS = 3

CAPTION = (
    "The mean wait of the jobs of each class, divided by its reasons: by processors, by the hour of the week at which "
    "they were submitted, and of the users with most waiting time. Each row has its own axis. {clock}"
)

#: Width and height of a panel, pixels.
_PANEL = (218, 170)


def draw_reasons(request: Request) -> Spec:
    """Draw the parts of the mean wait (s): one row per run, one panel per classification."""
    clocks = {
        workload: (unix, zone)
        for workload, unix, zone in request.connection.execute(
            "SELECT workload, unix_start_time, time_zone FROM workloads"
        ).fetchall()
    }
    data, clock, missing = FigureData(), "", list[str]()
    tables: dict[str, pl.DataFrame] = {}
    for run, name in zip(request.runs, short_names(list(request.runs), request.titles), strict=True):
        jobs = _jobs(request, run["run"])
        if jobs.is_empty():
            missing.append(name)
            continue
        times, clock = local_times(jobs["submit_time"], *clocks[run["workload"]])
        hour = (times.dt.weekday().cast(pl.Int64) - 1) * 24 + times.dt.hour().cast(pl.Int64)
        tables[name] = jobs.with_columns(hour=hour // HOURS * HOURS)
    if not tables:
        raise SwflowError(
            "figure: reasons: no reasons of the waits in these runs; expected wait_reasons: true in their study, or a "
            "loaded output of swflow why"
        )
    used = {part for jobs in tables.values() for part in PARTS if (jobs[part] > 0).any()}
    parts = [part for part in PARTS if part in used] or ["order"]
    rows: list[Spec] = []
    for name, jobs in tables.items():
        classes = {
            "processors": _means(with_size_class(jobs), parts),
            "submitted": _means(jobs.with_columns(pl.col("hour").alias("class"), rank="hour"), parts),
            "user": _means(with_user(jobs, "wait"), parts),
        }
        known = {words: table for words, table in classes.items() if table.height}
        rows.append(_row(data, name, known, parts, first=not rows))
    more = f"Runs without reasons are not drawn: {', '.join(missing)}." if missing else ""
    return finished_figure(data, rows, f"{request.title}: why jobs wait", CAPTION.format(clock=clock), more)


def _jobs(request: Request, run: str) -> pl.DataFrame:
    """Return the parts of the wait of each job of a run (s), with its processors, submission and user."""
    parts = ", ".join(f'{sql} AS "{name}"' for name, (sql, *_) in PARTS.items())
    table = frame(
        request.connection,
        f"""SELECT {parts}, o.processors, j.submit_time, j.user_id,
            ifnull(eligibility, 0) + ifnull("limit", 0) + room + "order" + ifnull(latency, 0) AS wait
        FROM wait_reasons r JOIN outcomes o USING (run, job_id)
        JOIN jobs j ON j.workload = o.workload AND j.job_id = o.job_id WHERE r.run = $run""",
        run,
    )
    return table.with_columns(pl.col(list(PARTS)).cast(pl.Float64).fill_nan(0.0).fill_null(0.0))


def _means(table: pl.DataFrame, parts: list[str]) -> pl.DataFrame:
    """Return the mean of each part, and the number of jobs, by class."""
    means = [pl.col(part).mean() for part in parts]
    return table.group_by("class", "rank").agg(pl.len().alias("jobs"), *means).sort("rank")


def _row(data: FigureData, name: str, classes: dict[str, pl.DataFrame], parts: list[str], first: bool) -> Spec:
    """Return the panels of one run, with a common axis of the wait."""
    top = max(float(table.select(pl.sum_horizontal(parts).max()).item()) for table in classes.values()) or 1.0
    names = [PARTS[part][2] for part in parts]
    scale = alt.Scale(domain=names, range=[PARTS[part][1] for part in parts])
    panels: list[Any] = []
    for words, table in classes.items():
        order, subject = table["class"].to_list(), f"{TITLES[words]}, {name}"
        drawn = [
            {"c": row["class"], "p": PARTS[part][2], "o": place, "s": float(f"{row[part]:.4g}"), "n": row["jobs"]}
            for row in table.iter_rows(named=True)
            for place, part in enumerate(parts)
        ]
        key = alt.Legend(title=None, orient="top", columns=4, labelLimit=200) if first and not panels else None
        title = alt.Axis(title="mean wait" if not panels else None, **time_axis(0.0, top))
        chart = (
            alt.Chart(data.add(drawn))
            .transform_calculate(t=human_time("datum.s"))
            .mark_bar()
            .encode(
                x=_hours(subject) if words == "submitted" else _classes(subject, order),
                y=alt.Y("s:Q", stack="zero", scale=alt.Scale(domain=[0.0, top], nice=False), axis=title),
                color=alt.Color("p:N", scale=scale, legend=key),
                order=alt.Order("o:Q"),
                tooltip=[tip("c:N", words), tip("p:N", "reason"), tip("t:N", "mean"), tip("n:Q", "jobs", ",")],
            )
        )
        panels.append(chart.properties(width=_PANEL[0], height=_PANEL[1]))
    return beside(*panels, spacing=18, color="shared")


def _classes(words: str, order: list[str]) -> alt.X:
    return alt.X("c:N", sort=order, axis=alt.Axis(title=words, labelAngle=-40, labelOverlap=False))


def _hours(words: str) -> alt.X:
    """Return the axis of the hours of a week, with a label at the noon of each day."""
    days = ", ".join(f"'{day}'" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
    label = f"[{days}][floor(datum.value / 24)]"
    first = list(range(12, 168, 24))
    axis = alt.Axis(title=words, values=first, labelExpr=label, labelAngle=0, ticks=False, grid=False)
    return alt.X("c:O", axis=axis, scale=alt.Scale(domain=list(range(0, 168, HOURS))))
