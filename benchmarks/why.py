"""
Divide the waits of logs under several schedulers by their reasons, and compare the parts with those under EASY.

    python benchmarks/why.py KTH-SP2.parquet HPC2N.parquet > why.csv

One row per log and scheduler: the mean wait, the share of the waiting time with room (order and latency) with its 95 %
interval over the weeks, the share of it at widths up to and above an eighth of the machine, the means of the parts, and
the differences of the parts from those under EASY with their intervals. `seconds` is the CPU time of the division.
"""

import argparse
import sys
import time
from pathlib import Path

import polars as pl

from swflow.analysis.bounds import bounds
from swflow.analysis.intervals import difference_of
from swflow.analysis.reasons import wait_reasons
from swflow.analysis.resampling import by_weeks, mean_of
from swflow.analysis.wait_parts import PARTS
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import open_workload

SCHEDULERS = {
    "recorded": Scheduler(order="log"),
    "EASY": Scheduler(backfill="easy"),
    "FCFS": Scheduler(),
    "conservative": Scheduler(backfill="conservative"),
    "SJF": Scheduler(order="sjf", backfill="easy"),
    "WFP3": Scheduler(order="wfp3", backfill="easy"),
}


def divided(workload: Workload, scheduler: Scheduler) -> tuple[pl.DataFrame, float]:
    """Return the parts of each wait (s), with submission and width, and the CPU time of the division."""
    outcomes = simulate(workload, scheduler)
    wait_reasons(workload, outcomes, scheduler)  # compiles
    began = time.process_time()
    found = wait_reasons(workload, outcomes, scheduler)
    seconds = time.process_time() - began
    table = found.table.with_columns(outcomes["processors"])
    table = table.with_columns(pl.col(pl.Float64).fill_null(0.0))
    jobs = workload.jobs.select("job_id", "submit_time")
    table = table.join(jobs, on="job_id", maintain_order="left")
    wait = pl.sum_horizontal(PARTS)
    return table.with_columns(wait=wait, spare=pl.col("order") + pl.col("latency")), seconds


def share(table: pl.DataFrame) -> tuple[float, float, float]:
    """Return the share of the waiting time with room, and its 95 % interval over the weeks."""
    weeks = by_weeks(table)
    wait, spare = mean_of(weeks, "wait"), mean_of(weeks, "spare")
    found = difference_of(spare, wait)
    low, high = found.interval
    part = spare.value / wait.value if wait.value else 0.0
    if low is None or high is None:
        return part, float("nan"), float("nan")
    return part, 1 + low / wait.value, 1 + high / wait.value


def rows_of(log: str, workload: Workload) -> list[dict[str, object]]:
    """Return the rows of a log."""
    rows: list[dict[str, object]] = []
    least = next(
        one.value for one in bounds(workload.jobs, workload.machine.processors) if one.measure == "mean_wait_time"
    )
    tables = {name: divided(workload, scheduler) for name, scheduler in SCHEDULERS.items()}
    easy = by_weeks(tables["EASY"][0])
    wide = pl.col("processors") > workload.machine.processors / 8
    for name, (table, seconds) in tables.items():
        part, low, high = share(table)
        row: dict[str, object] = {
            "log": log, "scheduler": name, "jobs": table.height, "wait": table["wait"].mean(), "bound": least,
            "spare_share": part, "low": low, "high": high, "seconds": seconds,
        }  # fmt: skip
        for which, some in (("narrow", table.filter(~wide)), ("wide", table.filter(wide))):
            row[which] = some["spare"].sum() / max(some["wait"].sum(), 1e-9)
        for column in ("room", "spare", "latency"):
            change = difference_of(mean_of(by_weeks(table), column), mean_of(easy, column))
            row |= {column: table[column].mean(), f"{column}_difference": change.value}
            row |= dict(zip((f"{column}_low", f"{column}_high"), change.interval, strict=True))
        rows.append(row)
    return rows


def main() -> None:
    """Print the rows of all logs as CSV."""
    parser = argparse.ArgumentParser()
    parser.add_argument("logs", nargs="+", type=Path)
    found: list[dict[str, object]] = []
    for path in parser.parse_args().logs:
        workload = open_workload(path)
        found += rows_of(path.name.partition(".")[0], workload)
        print(f"{path}: done", file=sys.stderr)
    print(pl.DataFrame(found, infer_schema_length=None).write_csv(float_precision=4))


if __name__ == "__main__":
    main()
