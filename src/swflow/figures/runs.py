"""Figures that compare runs: over time, by class of job, and as distribution functions."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from swflow.analysis.classes import with_size_class
from swflow.analysis.timeline import interval_means
from swflow.errors import SwflowError
from swflow.figures.parts import (
    NUMBER_LABEL,
    OVER_CELLS,
    TIME_LABEL,
    FigureData,
    Spec,
    beside,
    finished_figure,
    human_time,
    layered,
    log_axis,
    log_time_ticks,
    rounded,
    tip,
)
from swflow.figures.request import Request, frame
from swflow.figures.styles import Style, line_encodings, run_styles
from swflow.names import steps_of

#: The number of intervals of the time axis.
INTERVALS = 160

#: The number of users with a separate class.
MOST_USERS = 10

#: The upper bounds of the classes of run times (s), and their labels.
RUN_TIME_CLASSES = (
    (60.0, "< 1 min"), (600.0, "1–10 min"), (3600.0, "10–60 min"), (6 * 3600.0, "1–6 h"), (86_400.0, "6–24 h"),
    (np.inf, "≥ 1 d"),
)  # fmt: skip


#: SQL for the lower bound of a job's run-time class, which is equal for all jobs of a class.
_BOUNDS = [0.0, *(bound for bound, _ in RUN_TIME_CLASSES[:-1])]
RUN_TIME_BOUND = (
    "CASE " + " ".join(f"WHEN run_time >= {bound} THEN {bound}" for bound in _BOUNDS[:0:-1]) + " ELSE 0 END"
)

#: The shares of the jobs at which distribution functions are plotted.
_SHARES = np.concatenate([np.linspace(0, 0.95, 77), np.linspace(0.955, 1, 10)])

TIMELINE_CAPTION = (
    "Means over equal intervals from the first submission to the last end: above, the share of the processors that are "
    "busy, one strip per run: the stronger the contrast with the page, the busier; below, the number of waiting jobs."
)
WAITS_CAPTION = (
    "The mean wait of the jobs of each class: by processors, by run time, and of the users with most jobs. The axis is "
    "logarithmic; means below 1 s are drawn at 1 s."
)
DISTRIBUTION_CAPTION = (
    "The share of the jobs with at most this wait or bounded slowdown; a higher curve is better. Both value axes "
    "are logarithmic; waits below 1 s are drawn at 1 s. Run times below 10 s count as 10 s in the "
    "bounded slowdown."
)

#: The colors of an idle and of a busy machine.
STRIP = ("#eef2f6", "#9cc3e2", "#0b4f8a")

#: Width and height of a panel, pixels.
_WIDE, PANEL = (760, 150), (330, 210)

#: Names with more characters than this are listed in one column, since several columns would exceed the panel.
_LONG_NAME = 24


def draw_timeline(request: Request) -> Spec:
    """Draw utilization and queue length over time, one line per run."""
    runs, styles = _shown(request)
    sizes = dict(request.connection.execute("SELECT run, processors FROM runs").fetchall())
    edges, found = _means(request, runs)
    days = (edges[:-1] + edges[1:]) / 2 / 86_400
    half = float(days[1] - days[0]) / 2
    data, names = FigureData(), list(styles)
    rows = [
        {"r": name, "days": rounded(days), "utilization": rounded(np.clip(busy / sizes[run], 0.0, None)),
         "queue": rounded(np.clip(queue, 0.0, None))}
        for name, run, (busy, queue) in zip(styles, runs, found, strict=True)
    ]  # fmt: skip
    tips = [
        tip("r:N", "run"),
        tip("days:Q", "day", ",.1f"),
        tip("utilization:Q", number=".1%"),
        tip("queue:Q", "jobs waiting", ",.1f"),
    ]
    chart = alt.Chart(data.add(rows)).transform_flatten(["days", "utilization", "queue"])
    x = alt.Scale(nice=False, domain=[max(0.0, float(days[0]) - half), float(days[-1]) + half])
    axis = alt.Axis(title="days after the log's start", zindex=1)
    busy = alt.Scale(domain=[0, 1], range=list(STRIP), interpolate="rgb")
    key = alt.Legend(title="busy", format="%", orient="top", gradientLength=140)
    strips = (
        chart.transform_calculate(a=f"datum.days - {half}", b=f"datum.days + {half}")
        .mark_rect(aria=False)
        .encode(
            x=alt.X("a:Q", scale=x, axis=alt.Axis(title=None, labels=False, ticks=False)),
            x2=alt.X2("b:Q"),
            y=alt.Y("r:N", sort=names, scale=alt.Scale(paddingInner=0.14), axis=alt.Axis(title=None, labelLimit=130)),
            color=alt.Color("utilization:Q", scale=busy, legend=key),
            tooltip=tips,
        )
        .properties(width=_WIDE[0], height=22 * len(names))
    )
    queue = alt.Axis(title="jobs waiting", labelExpr=NUMBER_LABEL, tickCount=4, **OVER_CELLS)
    lines = (
        chart.mark_line(strokeWidth=1.4, strokeJoin="round")
        .encode(
            x=alt.X("days:Q", scale=x, axis=axis),
            y=alt.Y("queue:Q", scale=alt.Scale(zero=True), axis=queue),
            **run_lines(styles, True, 4),
            tooltip=tips,
        )
        .properties(width=_WIDE[0], height=_WIDE[1])
    )
    return finished_figure(data, [strips, lines], f"{request.title}: machine and queue over time", TIMELINE_CAPTION)


def _means(request: Request, runs: Sequence[str]) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the edges of the intervals and, per run, the mean numbers of busy processors and of waiting jobs."""
    ((first, last),) = request.connection.execute(
        """SELECT coalesce(min(submit_time), 0), coalesce(max(end_time), 0) FROM outcomes
        WHERE run IN (SELECT unnest($runs))""",
        {"runs": runs},
    ).fetchall()
    edges = np.linspace(first, last if last > first else first + 1.0, INTERVALS + 1)
    found = []
    for run in runs:
        table = _columns(request, run, "submit_time", "start_time", "end_time", "processors")
        submit, start, end, processors = (column.to_numpy() for column in table)
        queue = interval_means(submit, start, np.ones(len(submit)), edges)
        found.append((interval_means(start, end, processors, edges), queue))
    return edges, found


def draw_waits(request: Request) -> Spec:
    """Draw mean waits (s) by processors, by run time, and by user: one panel per classification, one line per run."""
    runs, styles = _shown(request)
    bound = RUN_TIME_BOUND.replace("run_time", "o.run_time")
    frames = [
        frame(
            request.connection,
            f"""SELECT o.processors, {bound} AS run_time, j.user_id, favg(o.wait_time) AS wait_time, count(*) AS jobs
            FROM outcomes o JOIN jobs j USING (job_id)
            WHERE o.run = $run AND j.workload = split_part($run, '/', 1) GROUP BY ALL""",
            run,
        )
        for run in runs
    ]
    tables = pl.concat([table.with_columns(run=pl.lit(name)) for name, table in zip(styles, frames, strict=True)])
    if tables.is_empty():
        raise SwflowError("figure: waits: the runs have no jobs")
    classes = {
        "processors": _mean_waits(with_size_class(tables)),
        "run time": _mean_waits(with_run_time_class(tables)),
        "user": _mean_waits(with_user(tables, "jobs")),
    }
    data = FigureData()
    means = [mean for rows in classes.values() for mean in rows["mean"].to_list()]
    top = max(60.0, *means) * 1.3
    least = max(1.0, min(*means, top / 20) / 1.3)
    ticks = log_time_ticks(least, top)
    panels: list[Any] = []
    for words, rows in classes.items():
        if rows.is_empty():
            continue
        order = rows["class"].unique(maintain_order=True).to_list()
        drawn = [
            {"r": run, "c": kind, "m": float(f"{max(mean, 1.0):.5g}"), "s": float(f"{mean:.5g}"), "n": jobs}
            for run, kind, mean, jobs in rows.select("run", "class", "mean", "jobs").iter_rows()
        ]
        axis = alt.Axis(
            title="mean wait" if not panels else None, labelExpr=TIME_LABEL, values=ticks, labelOverlap="greedy"
        )
        chart = (
            alt.Chart(data.add(drawn))
            .transform_calculate(t=human_time("datum.s"))
            .encode(
                x=alt.X("c:N", sort=order, axis=alt.Axis(title=words, labelAngle=-40, labelOverlap=False)),
                y=alt.Y("m:Q", scale=alt.Scale(type="log", domain=[least, top], nice=False), axis=axis),
                tooltip=[tip("r:N", "run"), tip("c:N", words), tip("t:N", "mean wait"), tip("n:Q", "jobs", ",")],
            )
        )
        key = not panels
        line = chart.mark_line(strokeWidth=1.2, opacity=0.6).encode(**run_lines(styles, key))
        points = chart.mark_point(filled=True, size=34, opacity=1).encode(**run_lines(styles, key, dashes=False))
        panels.append(layered(line, points, width=PANEL[0] - 70, height=PANEL[1]))
    title = f"{request.title}: mean waits by class of job"
    return finished_figure(data, [side_by_side(panels)], title, WAITS_CAPTION)


def draw_distributions(request: Request) -> Spec:
    """Draw distribution functions of waits (s) and bounded slowdowns, one line per run."""
    runs, styles = _shown(request)
    curves: dict[str, dict[str, np.ndarray]] = {"wait_time": {}, "bounded_slowdown": {}}
    for run, name in zip(runs, styles, strict=True):
        for column in _columns(request, run, *curves):
            if column.count():
                curves[column.name][name] = np.quantile(column.drop_nulls().to_numpy(), _SHARES)
    if not all(curves.values()):
        raise SwflowError("figure: distributions: the runs have no jobs")
    data = FigureData()
    panels: list[Any] = []
    for measure, quantiles in curves.items():
        seconds = measure == "wait_time"
        rows = [
            {"r": name, "x": rounded(np.maximum(values, 1.0)), "y": [round(share, 4) for share in _SHARES.tolist()]}
            for name, values in quantiles.items()
        ]
        top = max(10.0, *(max(row["x"]) for row in rows)) * 1.05
        words = "wait" if seconds else "bounded slowdown"
        shown = human_time("datum.x") if seconds else "format(datum.x, ',.3~r')"
        panels.append(
            alt.Chart(data.add(rows))
            .transform_flatten(["x", "y"])
            .transform_calculate(t=shown)
            .mark_line(strokeWidth=1.5, interpolate="step-after")
            .encode(
                x=alt.X("x:Q", **log_axis(words, top, seconds=seconds)),
                y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", title="jobs at or below")),
                **run_lines({name: styles[name] for name in quantiles}, seconds),
                order=alt.Order("y:Q"),
                tooltip=[tip("r:N", "run"), tip("t:N", words), tip("y:Q", "jobs at or below", ".1%")],
            )
            .properties(width=PANEL[0] + 40, height=PANEL[1])
        )
    title = f"{request.title}: distributions"
    return finished_figure(data, [side_by_side(panels)], title, DISTRIBUTION_CAPTION)


def with_run_time_class(table: pl.DataFrame) -> pl.DataFrame:
    """Add the class of jobs by run time, with ``rank`` for the order."""
    rank = sum((pl.col("run_time") >= bound).cast(pl.Int64) for bound, _ in RUN_TIME_CLASSES[:-1])
    words = dict(enumerate(word for _, word in RUN_TIME_CLASSES))
    name = pl.col("rank").replace_strict(words, return_dtype=pl.String())
    return table.with_columns(rank=rank).with_columns(name.alias("class"))


def with_user(table: pl.DataFrame, weight: str) -> pl.DataFrame:
    """Add the class of jobs by user, users of the largest total ``weight`` first; leave out jobs of other users."""
    table = table.drop_nulls("user_id").with_columns(pl.col("user_id").cast(pl.String))
    users = table.group_by("user_id").agg(pl.col(weight).sum())
    most = users.sort(weight, "user_id", descending=[True, False]).head(MOST_USERS)
    ranks = most.select("user_id").with_row_index("rank")
    return table.join(ranks, on="user_id").with_columns(pl.col("user_id").alias("class"))


def _mean_waits(table: pl.DataFrame) -> pl.DataFrame:
    many = pl.col("jobs")
    means = (pl.col("wait_time") * many).sum() / many.sum()
    grouped = table.group_by("run", "class", "rank").agg(mean=means, jobs=many.sum())
    return grouped.sort("rank", "run").select("run", "class", "mean", "jobs")


def _shown(request: Request) -> tuple[list[str], dict[str, Style]]:
    """Return the plotted runs, and their short names and styles."""
    runs = list(request.runs)
    return [run["run"] for run in runs], dict(zip(short_names(runs, request.titles), run_styles(runs), strict=True))


def short_names(runs: Sequence[dict[str, str]], titles: Mapping[str, str] | None = None) -> list[str]:
    """
    Return short names of runs: the scheduler or its title, plus the differing steps or workload where needed.

    Examples
    --------
    >>> short_names([{"workload": "A", "scheduler": "easy"}, {"workload": "A", "scheduler": "fcfs"}])
    ['easy', 'fcfs']
    >>> two = [{"workload": "A", "scheduler": "log"}, {"workload": "A+ran", "scheduler": "easy"}]
    >>> short_names(two, {"easy": "EASY"})
    ['log', '+ran EASY']
    >>> short_names([{"workload": "A", "scheduler": "easy"}, {"workload": "A+like@1", "scheduler": "easy"}])
    ['A', '+like@1']
    >>> short_names([{"workload": f"A+ran+{step}", "scheduler": "easy"} for step in ("low@1", "high@1")])
    ['+low@1', '+high@1']
    """
    titles, workloads = titles or {}, {run["workload"] for run in runs}
    if len(workloads) == 1:
        return [titles.get(run["scheduler"], run["scheduler"]) for run in runs]
    logs = {workload.split("+")[0] for workload in workloads}
    steps = zip(*(steps_of(workload) for workload in workloads), strict=False)
    common = sum(1 for _ in takewhile(lambda those: len(set(those)) == 1, steps))

    def of(run: dict[str, str]) -> str:
        return run["workload"] if len(logs) > 1 else "".join(f"+{step}" for step in steps_of(run["workload"])[common:])

    if len({run["scheduler"] for run in runs}) == 1:
        return [of(run) or run["workload"] for run in runs]
    return [f"{of(run)} {titles.get(run['scheduler'], run['scheduler'])}".strip() for run in runs]


def _columns(request: Request, run: str, *columns: str) -> pl.DataFrame:
    return frame(request.connection, f"SELECT {', '.join(columns)} FROM outcomes WHERE run = $run", run)


def run_lines(styles: Mapping[str, Style], legend: bool, columns: int = 2, *, dashes: bool = True) -> Spec:
    """Return the encodings of runs, equal in all panels, and a legend above the first with as many columns as fit."""
    key = alt.Legend(
        title=None,
        orient="top",
        columns=columns if max(map(len, styles), default=0) <= _LONG_NAME else 1,
        labelLimit=280,
        symbolType="stroke",
        symbolStrokeWidth=3,
        symbolSize=260,
        symbolOpacity=1,
    )
    return line_encodings("r", styles, key if legend else None, dashes=dashes)


def side_by_side(panels: Sequence[Any]) -> Spec:
    """Put panels of the same runs side by side, each with a separate legend or none."""
    return beside(*panels, spacing=18, color="independent", strokeDash="independent")
