"""Figures of reservation tables: the processors of the jobs of some runs over time."""

import json
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import polars as pl

from swflow.analysis.shadows import ranges, shadows
from swflow.errors import SwflowError
from swflow.figures.charts.reservations import ReservationTable, reservation_table_chart
from swflow.figures.request import Request, frame, in_jobs
from swflow.jobs.machine import Machine

#: The largest number of reservation tables in one figure.
MOST_TABLES = 6

#: The default length of the window of a reservation table (s).
DAY = 86_400.0


def draw_reservation_tables(request: Request) -> dict[str, Any]:
    """Draw jobs on their processors, for runs with places, and the penalty of node sharing."""
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
        since, until = _worst_day(*_table(connection, *drawn[0], None))
    if not since < until:
        raise SwflowError(
            f"figure: reservation-table: from {since:g} until {until:g}; expected finite seconds in ascending order"
        )
    tables = [_table(connection, run, name, (since, until))[0] for run, name in drawn[:MOST_TABLES]]
    if all(table.places.is_empty() for table in tables):
        raise SwflowError(f"figure: reservation-table: no job runs from second {since:g} to {until:g}")
    left_out = {
        "processors unknown": [run["run"] for run in chosen if run["run"] not in placed],
        f"more than {MOST_TABLES} runs": [run for run, _ in drawn[MOST_TABLES:]],
    }
    reasons = [f"{_some(runs)}: {reason}" for reason, runs in left_out.items() if runs]
    note = f"Not drawn: {'; '.join(reasons)}" if reasons else ""
    return reservation_table_chart(
        tables, (since, until), f"{request.title}: reservation table", note=note, interactive=request.interactive
    )


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
) -> tuple[ReservationTable, pl.DataFrame]:
    """Return the reservation table of a run for the jobs that run within a window, and these jobs."""
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
    return ReservationTable(name, machine, ranges(jobs), found), jobs


def _worst_day(table: ReservationTable, jobs: pl.DataFrame) -> tuple[float, float]:
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
    day = days["day"][0] if days.height else jobs.select((pl.col("start_time") // DAY).min()).item()
    return day * DAY, (day + 1) * DAY
