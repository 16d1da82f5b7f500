"""
Draw random logs and schedulers, and collect the laws that `test_laws.py` checks on them.

A law is a function of a random number generator with one line of mathematics as its docstring. It raises an
AssertionError if the law does not hold, and returns False if it does not apply to what was drawn. ``S`` is the schedule
of a log, as the start time of each job; ``S(log; options)`` is the one under other options. A sum of logs is the log
with the jobs of both.

    python tests/laws/laws.py [--cases 1000] [--seed 1] [--law NAME ...]

prints each law with the number of cases in which it was checked. ``SWFLOW_RANDOM_CASES`` sets the number in the tests.
"""

import argparse
import inspect
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from swflow.jobs.machine import Machine
from swflow.jobs.table import JOB_COLUMNS, Workload, sort_jobs
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

#: Cases of each law in the tests; a law of whole commands or studies has a share of them.
CASES = int(os.environ.get("SWFLOW_RANDOM_CASES", "12"))

Law = Callable[[random.Random], bool | None]
LAWS: dict[str, tuple[Law, float]] = {}


def law(share: float = 1.0) -> Callable[[Law], Law]:
    """Register a law, with its share of the cases."""

    def register(function: Law) -> Law:
        LAWS[function.__name__] = function, share
        return function

    return register


def check(name: str, cases: int, seed: int = 1) -> int:
    """Check a law on random cases; return the number of cases to which it applied."""
    function, share = LAWS[name]
    applied = 0
    for number in range(max(2, round(cases * share))):
        try:
            applied += function(random.Random(f"{seed} {name} {number}")) is not False
        except Exception as error:
            error.add_note(f"law {name}: case {number} of seed {seed}: {inspect.getdoc(function)}")
            raise
    return applied


# -- random logs

#: Orders under which only differences and ratios of times matter.
ORDERS = ("fcfs", "fcfs", "lcfs", "sjf", "ljf", "smallest-first", "largest-first", "saf", "laf", "expansion-factor")


def draw_log(rng: random.Random, most: int = 30, *, processors: int | None = None, **fixed: Any) -> Workload:
    """
    Draw a log of up to ``most`` jobs on a machine of 1 to 12 processors, with times in quarters of a second.

    Sums and products of these times with powers of two are exact. ``fixed`` sets columns to one value.
    """
    machine = processors or rng.randint(1, 12)
    submit, rows = 0.0, []
    for job in range(1, rng.randint(1, most) + 1):
        submit += rng.choice([0, 0, 1, 2, 5, rng.randint(0, 80) / 4])
        run = rng.choice([1, 2, 5, 10, rng.randint(4, 200) / 4])
        width = rng.choice([1, machine, rng.randint(1, machine)])
        rows.append({
            "job_id": job, "submit_time": submit, "wait_time": rng.randint(0, 40) / 4, "run_time": float(run),
            "allocated_processors": width, "requested_processors": width, "processors": width,
            "requested_time": float(run * rng.choice([1, 1, 2, 8])), "status": rng.choice([0, 1, 1, 5]),
            "user_id": rng.randint(1, 4), "group_id": rng.randint(1, 2), "queue_id": rng.randint(1, 2),
            "partition_id": rng.randint(1, 2), **fixed,
        })  # fmt: skip
        rows[-1]["estimate"] = rows[-1]["requested_time"]
    table = pl.DataFrame(rows, {name: JOB_COLUMNS[name] for name in JOB_COLUMNS})
    return Workload(table, Machine.of(machine), "drawn")


def draw_options(rng: random.Random, **fixed: Any) -> dict[str, Any]:
    """Draw the options of a scheduler that depends on differences and ratios of times only; ``fixed`` wins."""
    options: dict[str, Any] = {
        "order": rng.choice(ORDERS),
        "backfill": rng.choice(["none", "easy", "easy", "conservative"]),
        "estimates": rng.choice(["raise", "kill"]),
        "prediction": rng.choice(["user", "user", "perfect", "double"]),
        "event_order": rng.choice(["batch", "batch", "per-event"]),
    } | fixed
    if options["backfill"] == "easy" and "reservations" not in fixed:
        options["reservations"] = rng.choice([1, 1, 2, 5])
    if options["backfill"] != "none" and "backfill_order" not in fixed and rng.random() < 0.3:
        options["backfill_order"] = rng.choice(ORDERS)
    return options


def run(workload: Workload, options: Mapping[str, Any]) -> pl.DataFrame:
    """Simulate a workload; return the outcomes by job id."""
    return simulate(workload, Scheduler.of("drawn", options)).sort("job_id")


def starts(workload: Workload, options: Mapping[str, Any]) -> dict[int, float]:
    """Return the start time of each job."""
    return dict(run(workload, options).select("job_id", "start_time").iter_rows())


def with_jobs(workload: Workload, *changes: pl.Expr, **columns: Any) -> Workload:
    """Return a workload with changed columns."""
    return replace(workload, jobs=sort_jobs(workload.jobs.with_columns(*changes, **columns)))


def times(factor: float = 1.0, later: float = 0.0, *names: str) -> list[pl.Expr]:
    """Return the times of jobs, multiplied by a factor; submissions are moved to later times."""
    lengths = ("wait_time", "run_time", "requested_time", "estimate", "submit_time")
    return [pl.col(name) * factor + (later if name == "submit_time" else 0.0) for name in names or lengths]


def joined(*parts: Workload) -> Workload:
    """Return the workload of the jobs of several workloads, on the machine of the first."""
    return replace(parts[0], jobs=sort_jobs(pl.concat([part.jobs for part in parts])))


def part(workload: Workload, kept: pl.Expr) -> Workload:
    """Return a part of the jobs of a workload."""
    return replace(workload, jobs=workload.jobs.filter(kept))


def main() -> int:
    """Check the laws, and print a table of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES, help="cases of each law")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--law", nargs="+", choices=LAWS, default=list(LAWS), help="only these laws")
    arguments = parser.parse_args()
    total = 0
    print("| law | statement | cases | seconds |\n|---|---|---:|---:|")
    for name in arguments.law:
        began = time.process_time()
        applied = check(name, arguments.cases, arguments.seed)
        statement = (inspect.getdoc(LAWS[name][0]) or "").split("\n")[0]
        print(
            f"| {name.replace('_', ' ')} | {statement} | {applied:,} | {time.process_time() - began:.1f} |", flush=True
        )
        total += applied
    print(f"{len(arguments.law)} laws, {total:,} cases")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from test_laws import laws  # the module of this name, in which the laws are registered

    sys.exit(laws.main())
