"""
Compare policies that decide in Python with the compiled ones: speed, and equality of the start times of Fcfs and Easy.

    python benchmarks/policies.py kth.swf.gz
"""

import argparse
import time

import polars as pl

from swflow.jobs.table import Workload
from swflow.scheduling.prepare import prepare
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import schedule_of, simulate
from swflow.workload.clean import open_workload

POLICIES = ("Fcfs", "Easy", "Slack", "FairShare", "LearnedRunTimes")
KERNELS = {"Fcfs": Scheduler(), "Easy": Scheduler(backfill="easy")}


def seconds(workload: Workload, scheduler: Scheduler) -> float:
    """Return the time of the simulation only, after compilation: the best of three calls, or one slow call."""
    best = float("inf")
    for _ in range(3):
        problem = prepare(workload, scheduler)
        began = time.perf_counter()
        schedule_of(problem)
        best = min(best, time.perf_counter() - began)
        if best > 5:
            break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", help="a log (.swf, .swf.gz) or a workload (.parquet)")
    options = parser.parse_args()
    workload = open_workload(options.log)
    jobs = workload.jobs.height
    print(f"{workload.name}: {jobs:,} jobs\n| policy | seconds | jobs a second | |\n|---|---|---|---|")
    for name in POLICIES:
        own = Scheduler(policy=f"swflow.policies:{name}")
        taken, word = seconds(workload, own), ""
        if name in KERNELS:
            columns = [pl.col("job_id", "start_time", "end_time")]
            same = simulate(workload, own).select(columns).equals(simulate(workload, KERNELS[name]).select(columns))
            kernel = seconds(workload, KERNELS[name])
            word = f"{'equal to' if same else 'DIFFERS FROM'} the kernel, which has {jobs / kernel:,.0f} jobs a second"
        print(f"| {name} | {taken:.2f} | {jobs / taken:,.0f} | {word} |", flush=True)


if __name__ == "__main__":
    main()
