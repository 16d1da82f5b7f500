"""
How much of the difference between EASY and FCFS is left once users wait for their jobs.

    python benchmarks/feedback.py kth.swf.gz sdsc-sp2.swf.gz …

Each log is replayed under both, with jobs submitted when the log says (none), and with users who wait for the job
before, in sessions that end by submissions (sessions) or by think times (think-times). `follow` is the share of the
jobs that wait for another; `left` is the difference of the mean waits over that without feedback; `late by` is how much
later than recorded jobs are submitted under FCFS, on average. Times are hours.
"""

import argparse
import warnings

from swflow.scheduling.feedback import feedback_of
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workloads.clean import open_workload


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", help="logs (.swf, .swf.gz) or workloads (.parquet)")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = ("log", "feedback", "follow", "FCFS wait", "EASY wait", "left", "FCFS slowdown", "EASY slowdown", "late by")
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|")
    for path in options.logs:
        workload = open_workload(path)
        whole = 0.0
        for kind in ("none", "sessions", "think-times"):
            found = {}
            for backfill in ("none", "easy"):
                found[backfill] = simulate(workload, Scheduler(backfill=backfill, feedback=kind))
            share = 0.0
            if kind != "none":
                share = float((feedback_of(workload.jobs, kind, workload.name).previous >= 0).mean())
            waits = {name: float(done["wait_time"].mean()) / 3600 for name, done in found.items()}
            slowdowns = {name: float(done["bounded_slowdown"].mean()) for name, done in found.items()}
            difference = waits["none"] - waits["easy"]
            whole = whole or difference
            late = float((found["none"]["submit_time"] - workload.jobs["submit_time"]).mean()) / 3600
            print(
                f"| {workload.name.split('-2')[0].split('-1')[0]} | {kind} | {share:.0%} | {waits['none']:.2f} | "
                f"{waits['easy']:.2f} | {difference / whole:.1%} | {slowdowns['none']:.1f} | {slowdowns['easy']:.1f} | "
                f"{late:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
