"""
Measure how user feedback changes the difference between EASY and FCFS.

    python benchmarks/feedback.py kth.swf.gz sdsc-sp2.swf.gz …

Each log is replayed under both schedulers, with recorded submit times (none), and with user feedback in sessions that
end by submissions (sessions) or by think times (think-times), or early after a slow response (leaving). `follow` is the
share of dependent jobs. `left` is the difference of the mean waits divided by that without feedback. `late by` is the
mean delay of submissions under FCFS relative to the recorded ones. `lost` are the shares of jobs that are not submitted
under FCFS and under EASY. Times are hours.
"""

import argparse
import warnings

from swflow.jobs.eligibility import dependencies_of
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import open_workload


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", help="logs (.swf, .swf.gz) or workloads (.parquet)")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = ("log", "feedback", "follow", "FCFS wait", "EASY wait", "left", "FCFS slowdown", "EASY slowdown", "late by")
    print("| " + " | ".join((*names, "lost")) + " |")
    print("|---" * (len(names) + 1) + "|")
    for path in options.logs:
        workload = open_workload(path)
        whole = 0.0
        for kind in ("none", "sessions", "think-times", "leaving"):
            found = {}
            for backfill in ("none", "easy"):
                found[backfill] = simulate(workload, Scheduler(backfill=backfill, feedback=kind))
            share = 0.0
            if kind != "none":
                share = float((dependencies_of(workload.jobs, kind, workload.name).previous >= 0).mean())
            waits = {name: float(done["wait_time"].mean()) / 3600 for name, done in found.items()}
            slowdowns = {name: float(done["bounded_slowdown"].mean()) for name, done in found.items()}
            difference = waits["none"] - waits["easy"]
            whole = whole or difference
            both = found["none"].join(workload.jobs, on="job_id", suffix="_recorded")
            late = float((both["submit_time"] - both["submit_time_recorded"]).mean()) / 3600
            lost = ", ".join(f"{1 - done.height / workload.jobs.height:.1%}" for done in found.values())
            print(
                f"| {workload.name.split('-2')[0].split('-1')[0]} | {kind} | {share:.0%} | {waits['none']:.2f} | "
                f"{waits['easy']:.2f} | {difference / whole:.1%} | {slowdowns['none']:.1f} | {slowdowns['easy']:.1f} | "
                f"{late:.1f} | {lost} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
