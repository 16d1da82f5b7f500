"""
Measure calibration on recorded logs: the weekly mean waits of the last third of the weeks.

    python benchmarks/calibration.py LOG [LOG ...]

Textbook schedulers are compared with the recorded schedule. The one with the smallest error in the first two thirds of
the weeks is calibrated there by `swflow.analysis.calibration.calibrate`. Errors are mean absolute differences (s) of
the weekly mean waits.
"""

import sys
from pathlib import Path

import polars as pl

from swflow.analysis.calibration import calibrate
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.values import WEEK
from swflow.workload.clean import open_workload

TEXTBOOK = {
    "FCFS": {},
    "EASY": {"backfill": "easy"},
    "conservative": {"backfill": "conservative"},
    "SJBF": {"backfill": "easy", "backfill_order": "sjf"},
    "SJF and EASY": {"order": "sjf", "backfill": "easy"},
    "WFP3 and EASY": {"order": "wfp3", "backfill": "easy"},
    "fair share and EASY": {"order": "fair-share", "backfill": "easy"},
}


def weekly_errors(workload: Workload, options: dict, fit: int) -> list[float]:
    """Return the mean absolute error of the weekly mean waits of the first ``fit`` weeks, and of the others."""
    week = ((pl.col("submit_time") - workload.jobs["submit_time"].min()) // WEEK).cast(pl.Int64).alias("week")
    both = simulate(workload, Scheduler(order="log")).join(
        simulate(workload, Scheduler(**options)), on="job_id", suffix="_s"
    )
    means = both.group_by(week).agg(pl.col("wait_time", "wait_time_s").mean()).sort("week")
    errors = means.select("week", error=(pl.col("wait_time") - pl.col("wait_time_s")).abs())
    return [errors.filter(one)["error"].mean() for one in (pl.col("week") < fit, pl.col("week") >= fit)]


def main() -> None:
    """Print the errors of each scheduler on each log."""
    for name in sys.argv[1:]:
        workload = open_workload(Path(name))
        submitted = workload.jobs["submit_time"]
        weeks = int((submitted.max() - submitted.min()) // WEEK)
        test = weeks // 3
        fit = weeks - test
        found = {title: weekly_errors(workload, options, fit) for title, options in TEXTBOOK.items()}
        best = min(found, key=lambda title: found[title][0])
        calibrated = calibrate(workload, TEXTBOOK[best], fit, test)
        found[f"{best}, calibrated"] = weekly_errors(workload, calibrated.options, fit)
        print(f"{workload.name}: {fit} weeks and the {test} after them; {calibrated.tried} simulations")
        print(f"    values: {calibrated.values}")
        for title, (before, after) in found.items():
            print(f"    {title:32} {before:12.0f} {after:12.0f}", flush=True)


if __name__ == "__main__":
    main()
