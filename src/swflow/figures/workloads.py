"""Figures of workloads, independent of schedulers: models and composition."""

from collections.abc import Sequence
from contextlib import suppress

import duckdb
import numpy as np
import polars as pl

from swflow.analysis.moldable import CHECKED, model_checks
from swflow.errors import SwflowError
from swflow.figures.charts.curves import curve_chart
from swflow.figures.charts.logs import arrivals_chart, composition_chart, offered_load_chart
from swflow.figures.charts.models import marginals_chart, repetitions_chart
from swflow.figures.charts.parts import Spec
from swflow.figures.request import Request, frame, in_jobs, is_large
from swflow.figures.runs import INTERVALS, RUN_TIME_BOUND, with_run_time_class, with_size_class, with_user


def draw_moldable(request: Request) -> Spec:
    """Draw the output of the model of moldable jobs, compared with its stated distributions."""
    found = pl.DataFrame()
    if in_jobs(request.connection, CHECKED[0]):
        columns = ", ".join(CHECKED)
        sql = f"SELECT {columns} FROM jobs WHERE {CHECKED[0]} IS NOT NULL AND workload IN (SELECT unnest($names))"
        found = pl.DataFrame(request.connection.execute(sql, {"names": sorted(request.workloads)}).fetchnumpy())
    if found.is_empty():
        raise SwflowError("figure: moldable: none of the runs has moldable jobs; create them with: swflow moldable")
    return curve_chart(model_checks(found), f"{request.title}: the model of moldable jobs")


def draw_marginals(request: Request) -> Spec:
    """Draw the distribution functions of run times and processors."""
    return marginals_chart(_attributes(request), f"{request.title}: run times and processors")


def draw_repetitions(request: Request) -> Spec:
    """Draw how often run times repeat."""
    return repetitions_chart(_attributes(request), f"{request.title}: repetitions of run times")


def draw_arrivals(request: Request) -> Spec:
    """Draw arrivals of the first workload by hour of the day and day of the week."""
    workload = request.workloads[0]
    ((unix, zone),) = request.connection.execute(
        "SELECT unix_start_time, time_zone FROM workloads WHERE workload = $workload", {"workload": workload}
    ).fetchall()
    jobs = _jobs(request.connection, workload, "submit_time")
    times, clock = _local_times(jobs["submit_time"], unix, zone)
    submit = jobs["submit_time"].to_numpy()
    days = max(1.0, float(submit.max() - submit.min()) / 86_400)
    hours = np.bincount(times.dt.hour().to_numpy(), minlength=24) / days
    weekdays = np.bincount(times.dt.weekday().to_numpy() - 1, minlength=7) / max(1.0, days / 7)
    return arrivals_chart(hours.tolist(), weekdays.tolist(), f"{request.title}: arrivals of jobs", clock)


def draw_composition(request: Request) -> Spec:
    """Draw the shares of jobs and processor-seconds of the first workload by size, run time and user."""
    jobs = _classed_jobs(request.connection, request.workloads[0])
    by_user = with_user(jobs, pl.col("area").sum())
    classes = {"processors": with_size_class(jobs), "run time": with_run_time_class(jobs), "user": by_user}
    total, area = jobs["jobs"].sum(), max(float(jobs["area"].sum()), 1e-300)
    shares = {
        words: table.group_by("class", "rank")
        .agg(jobs=pl.col("jobs").sum() / total, area=pl.col("area").sum() / area)
        .sort("rank")
        for words, table in classes.items()
        if table.height
    }
    return composition_chart(shares, f"{request.title}: composition of the jobs")


def draw_offered_load(request: Request) -> Spec:
    """Draw the offered load of the first workload over time."""
    workload = request.workloads[0]
    jobs = _jobs(request.connection, workload, "submit_time", _AREA)
    ((size,),) = request.connection.execute(
        "SELECT processors FROM workloads WHERE workload = $workload", {"workload": workload}
    ).fetchall()
    submit, area = jobs["submit_time"].to_numpy(), jobs["area"].to_numpy()
    first, last = float(submit.min()), float(submit.max())
    span = last - first
    if span <= 0:
        raise SwflowError(f"figure: offered-load: all jobs of {workload} are submitted at once")
    edges = np.linspace(first, last, max(2, min(INTERVALS, round(span / 86_400))) + 1)
    load = np.histogram(submit, edges, weights=area)[0] / (size * np.diff(edges))
    middles = (edges[:-1] + edges[1:]) / 2 / 86_400
    return offered_load_chart(middles, load, float(area.sum()) / (size * span), f"{request.title}: load over time")


#: Processor-seconds and the user, in SQL.
_AREA, _USER = "processors * run_time AS area", "CAST(user_id AS VARCHAR) AS user_id"


def _jobs(connection: duckdb.DuckDBPyConnection, workload: str, *columns: str) -> pl.DataFrame:
    """Return columns of a workload's jobs, in order; very many jobs are not sorted again, since loading sorted them."""
    order = "" if is_large(connection, workload=workload) else " ORDER BY submit_time, job_id"
    return _read(connection, workload, columns, order)


def _classed_jobs(connection: duckdb.DuckDBPyConnection, workload: str) -> pl.DataFrame:
    """Return processors, run time, user, processor-seconds and number of jobs; aggregate very many jobs by class."""
    if not is_large(connection, workload=workload):
        return _jobs(connection, workload, "processors", "run_time", _USER, _AREA, "1 AS jobs")
    sums = ("fsum(processors * run_time) AS area", "count(*) AS jobs")
    columns = ("processors", f"{RUN_TIME_BOUND} AS run_time", _USER, *sums)
    return _read(connection, workload, columns, " GROUP BY ALL ORDER BY ALL")


def _read(connection: duckdb.DuckDBPyConnection, workload: str, columns: Sequence[str], rest: str) -> pl.DataFrame:
    jobs = frame(
        connection,
        f"""SELECT {", ".join(columns)} FROM jobs
            WHERE workload = $run AND run_time IS NOT NULL AND processors IS NOT NULL{rest}""",
        workload,
    )
    if jobs.is_empty():
        raise SwflowError(f"figure: {workload} has no jobs")
    return jobs


def _local_times(seconds: pl.Series, unix: int | None, zone: str | None) -> tuple[pl.Series, str]:
    """Return times of the log as local times, and a sentence on their clock."""
    stamps = pl.from_epoch((seconds + float(unix or 0)).cast(pl.Int64), time_unit="s")
    if not unix:
        return stamps, "The log does not state its start: its first second counts as midnight of a Thursday."
    if zone:
        with suppress(pl.exceptions.PolarsError):
            return stamps.dt.replace_time_zone("UTC").dt.convert_time_zone(zone), f"Times are in time zone {zone}."
    return stamps, "Times are in UTC, since the log states no time zone."


def _attributes(request: Request) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return run times and processors of the jobs of each workload, in the order of arrival."""
    found = {}
    for workload in request.workloads:
        sql = """SELECT run_time, processors FROM jobs WHERE workload = $run AND run_time IS NOT NULL
            AND processors IS NOT NULL ORDER BY submit_time, job_id"""
        run_times, processors = (column.cast(pl.Float64) for column in frame(request.connection, sql, workload))
        found[workload] = run_times.to_numpy(), processors.to_numpy()
    return found
