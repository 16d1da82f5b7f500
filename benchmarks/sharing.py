"""Measure the cost of shared resources: each allocation under `runtime: shared`, as a multiple of `runtime: trace`.

    python benchmarks/sharing.py [--traces FOLDER] [--logs SDSC-BLUE] [--jobs 10000]

Nodes have four processors, and demands are those of scenario HIGH. Times are medians of several calls in one process.
Without a folder of logs, a synthetic log is measured.
"""

import argparse
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from scheduling import ROOT, median_seconds, print_table, workloads
from swflow.scheduling.prepare import prepare
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.solve import solve
from swflow.workload.steps.memory import memory
from swflow.workload.steps.select import select
from swflow.workload.steps.set_machine import with_machine

#: Backfilling and allocations; the last two take the cost of sharing into account.
CASES = (
    ("easy", "longest-idle"),
    ("easy", "first-contiguous"),
    ("reservation-table", "longest-idle"),
    ("reservation-table", "first-contiguous"),
    ("easy", "least-shared"),
    ("easy", "threshold"),
)


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SWFLOW_TRACES", ROOT.parent / "shared" / "traces"))
    parser.add_argument("--traces", type=Path, default=default, help="a folder with the archive's files")
    parser.add_argument("--logs", nargs="*", default=["SDSC-BLUE"], help="names of the catalogue")
    parser.add_argument("--jobs", type=int, default=10_000, help="First jobs to use; 0 for all (default: 10,000).")
    arguments = parser.parse_args()
    rows = []
    for log in workloads(arguments.traces, arguments.logs):
        workload = memory(with_machine(log, preset="alvio-node"), seed=1, step="memory-high")
        workload = select(workload, jobs=arguments.jobs or None)
        for backfill, allocation in CASES:
            if not rows:  # compile, or load, the kernels
                solve(prepare(replace(workload, jobs=workload.jobs.head(50)), Scheduler(allocation="first-fit")))
            options: dict[str, str] = {
                "backfill": backfill,
                "backfill_order": "sjf",
                "estimates": "kill",
                "allocation": allocation,
            }
            trace, shared = (
                median_seconds(partial(solve, prepare(workload, Scheduler(**options, runtime=runtime))))
                for runtime in ("trace", "shared")
            )
            rows.append(
                [log.name, f"{workload.jobs.height:,}", f"{workload.machine.processors:,}", backfill, allocation,
                 f"{trace:.3f}", f"{shared:.3f}", f"{shared / trace:.1f}"]
            )  # fmt: skip
    columns = ["log", "jobs", "processors", "backfill", "allocation", "trace, s", "shared, s", "ratio"]
    print_table(columns, rows)


if __name__ == "__main__":
    main()
