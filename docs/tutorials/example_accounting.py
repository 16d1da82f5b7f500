"""Write the accounting of a synthetic site, `sacct.txt`, as `sacct -P` would print it.

The jobs are 12,000 of the model of Lublin and Feitelson on 256 processors, scheduled with EASY backfilling.
"""

import subprocess

import polars as pl

for command in (
    "generate lublin -o site.swf.gz --jobs 12000 --processors 256 --load 0.75 --users --seed 3",
    "clean site.swf.gz -o site.parquet",
    "simulate site.parquet --backfill easy -o easy.parquet",
):
    subprocess.run(["swflow", *command.split()], check=True, capture_output=True)

began = 1704067200  # 2024-01-01 in UTC


def stamp(seconds: str) -> pl.Expr:
    """Return a column of seconds as times in the format of sacct."""
    return pl.from_epoch(pl.col(seconds).cast(pl.Int64) + began).dt.strftime("%Y-%m-%dT%H:%M:%S")


jobs = pl.read_parquet("site.parquet").drop("processors")
jobs.join(pl.read_parquet("easy.parquet").drop("submit_time"), on="job_id").select(
    JobID="job_id",
    User=pl.format("user{}", "user_id"),
    Partition=pl.lit("batch"),
    State=pl.lit("COMPLETED"),
    Submit=stamp("submit_time"),
    Eligible=stamp("submit_time"),
    Start=stamp("start_time"),
    End=stamp("end_time"),
    TimelimitRaw=(pl.col("requested_time") / 60).ceil().cast(pl.Int64),
    AllocCPUS="processors",
).write_csv("sacct.txt", separator="|")
