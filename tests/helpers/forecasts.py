"""A recorded log of ten weeks, for forecasts."""

from dataclasses import replace

import polars as pl

import swflow
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
