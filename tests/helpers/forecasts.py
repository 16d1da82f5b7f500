"""Recorded logs of ten weeks, for forecasts."""

from dataclasses import replace

import numpy as np
import polars as pl

import swflow
from swflow.forecast.forecaster import Forecaster, cases_of
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.values import WEEK


def recorded_site(jobs: int = 2500, name: str = "site") -> Workload:
    """Return a log of ten weeks with the waits of EASY; a job waits for hours in the mean."""
    generated = swflow.generate(jobs=jobs, processors=64, name=name, seed=3)
    table = generated.jobs
    factor = 10 * WEEK / (table["submit_time"].max() - table["submit_time"].min())
    table = table.with_columns(
        submit_time=((pl.col("submit_time") - pl.col("submit_time").min()) * factor).round(),
        run_time=(pl.col("run_time") * factor * 0.5).ceil(), estimate=(pl.col("estimate") * factor * 0.5).ceil(),
    ).with_columns(requested_time="estimate", user_id=pl.col("job_id") % 7, queue_id=pl.col("job_id") % 2)  # fmt: skip
    workload = replace(generated, jobs=table, header={"UnixStartTime": ["1700000000"]})
    waits = swflow.simulate(workload, swflow.Scheduler(backfill="easy"))["wait_time"]
    return replace(workload, jobs=table.with_columns(wait_time=waits, group_id=pl.lit(1)))


SECOND = 1_700_000_000  # the log's start, Unix seconds
GRID = 600.0  # the submissions, starts and ends of a tied log are multiples of it, seconds


def log_of(jobs: int = 500, tied: bool = False, seed: int = 1) -> pl.DataFrame:
    """Return a log with limits, in which some jobs lack one, some start at once and some are cancelled."""
    random = np.random.default_rng(seed)
    submit = np.sort(random.uniform(0, 10 * WEEK, jobs))
    wait = np.where(random.random(jobs) < 0.3, 0.0, random.lognormal(9, 1.5, jobs))
    run = random.lognormal(8, 1.5, jobs)
    step = GRID if tied else 1.0
    submit, wait, run = np.floor(submit / step) * step, np.floor(wait / step) * step, np.ceil(run / step) * step
    width = random.integers(1, 33, jobs)
    limit = np.where(random.random(jobs) < 0.4, np.nan, np.ceil(run / 3600) * 3600)
    return pl.DataFrame({
        "job_id": np.arange(jobs) + 1, "submit_time": submit, "wait_time": wait, "run_time": run, "processors": width,
        "allocated_processors": width, "requested_processors": width, "requested_time": limit,
        "user_id": random.integers(1, 6, jobs), "group_id": np.ones(jobs, int), "queue_id": np.ones(jobs, int),
        "partition_id": random.integers(1, 3, jobs), "status": np.ones(jobs, int),
    }).with_columns(pl.col("requested_time").fill_nan(None)).with_columns(
        estimate=pl.coalesce("requested_time", "run_time"),  # as cleaning does
    )  # fmt: skip


def workload(jobs: pl.DataFrame) -> Workload:
    """Return a workload of a log on 64 processors."""
    return Workload(jobs, Machine.of(64), "log", {"UnixStartTime": [str(SECOND)], "MaxProcs": ["64"]})


NOW = SECOND + 10 * WEEK  # Unix seconds: after the log


class Known:
    """Models that forecast by one feature: the jobs that wait."""

    def __call__(self, values: np.ndarray) -> np.ndarray:
        waiting = np.log10(10 + values[:, 8:9]) if len(values) else np.zeros((0, 1))
        return waiting + np.array([0.0, 1.0, 2.0])


def known_forecaster() -> Forecaster:
    """Return a forecaster of a log with partitions, QOS, users and accounts, with simple models."""
    header = {"UnixStartTime": [str(SECOND)], "MaxProcs": ["64"], "Partition": ["1 batch", "2 gpu"],
              "Queue": ["1 normal", "2 high"], "User": ["3 ann"], "Group": ["1 physics", "2 chemistry"]}  # fmt: skip
    jobs = log_of()
    jobs = jobs.with_columns(queue_id=1 + jobs["job_id"] % 2)
    _, state = cases_of(replace(workload(jobs), header=header))
    return replace(Forecaster.unfitted(**state), quantiles=Known())
