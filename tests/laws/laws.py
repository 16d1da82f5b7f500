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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from swflow.errors import SwflowError
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
    for number in range(max(1, round(cases * share))):
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
    if options["backfill"] == "easy" and "backfill_order" not in fixed and rng.random() < 0.3:
        options["backfill_order"] = rng.choice(ORDERS)
    return options


#: Features of logs and schedulers that `draw_case` combines.
FEATURES = (
    "depends_on", "cancelled_after", "eligible_after", "gpus", "system", "window", "limits", "fair-share",
    "multifactor", "shapes", "shared", "array_limit", "places",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A log, and the options of a scheduler."""

    log: Workload
    options: dict[str, Any]

    def scaled(self, factor: float) -> "Case":
        """Return the case with all lengths of time, and all times, multiplied by a power of two."""
        options, columns = dict(self.options), self.log.jobs.columns
        names = ("wait_time", "run_time", "requested_time", "estimate", "submit_time", "think_time")
        extra = [name for name in ("cancelled_after", "eligible_after") if name in columns]
        changes = [pl.col(name) * factor for name in (*names, *extra)]
        if "shapes" in columns:
            element = pl.struct(pl.element().struct[0], pl.element().struct[1] * factor)
            changes.append(pl.col("shapes").list.eval(element))
        for window in ("unavailable",) if "unavailable" in options else ():
            options[window] = [
                one | {"from": one["from"] * factor, "until": one["until"] * factor} for one in options[window]
            ]
        if options.get("half_life"):
            options["half_life"] *= factor
        if "priority" in options:
            options["priority"] = options["priority"] | {"max_age": options["priority"]["max_age"] * factor}
        return Case(with_jobs(self.log, *changes), options)

    def moved(self, later: float) -> "Case":
        """Return the case with all times moved by some seconds."""
        windows = [
            one | {"from": one["from"] + later, "until": one["until"] + later}
            for one in self.options.get("unavailable", ())
        ]
        options = self.options | ({"unavailable": windows} if windows else {})
        return Case(with_jobs(self.log, pl.col("submit_time") + later), options)

    def starts(self) -> dict[int, float]:
        """Return the start time of each job."""
        return starts(self.log, self.options)


def draw_case(rng: random.Random, *without: str, most: int = 30, processors: int | None = None) -> Case:
    """Draw a log and a scheduler with up to three features that go together, none of those in ``without``."""
    while True:
        log, options = draw_log(rng, most, processors=processors), draw_options(rng)
        for feature in rng.sample([one for one in FEATURES if one not in without], rng.randint(0, 3)):
            log, options = _with_feature(rng, feature, log, options)
        try:
            simulate(log, Scheduler.of("drawn", options))
        except SwflowError:
            continue  # features that do not go together
        return Case(log, options)


def _with_feature(
    rng: random.Random, feature: str, log: Workload, options: dict[str, Any]
) -> tuple[Workload, dict[str, Any]]:
    """Return a log and the options of a scheduler with a feature."""
    jobs, size = log.jobs.height, log.machine.processors

    def column(dtype: Any, draw: Callable[[int], Any]) -> Workload:
        return with_jobs(log, pl.Series(feature, [draw(row) for row in range(jobs)], dtype))

    match feature:
        case "depends_on":
            ids = log.jobs["job_id"].to_list()
            earlier = [rng.sample(ids[:row], min(row, rng.choice([0, 0, 1, 2]))) for row in range(jobs)]
            return column(pl.List(pl.Int64), earlier.__getitem__), options
        case "cancelled_after" | "eligible_after":
            return column(pl.Float64, lambda _: rng.choice([None, None, rng.randint(0, 40) / 4])), options
        case "gpus":
            machine = replace(log.machine, resources={"gpus": 4})
            return replace(column(pl.Int64, lambda _: rng.choice([0, 0, 1, 4])), machine=machine), options
        case "array_limit":
            log = column(pl.Int64, lambda row: 2 if row % 3 == 0 else None)
            return with_jobs(log, array_id=pl.when(pl.col("array_limit") > 0).then(7)), options
        case "system":
            return log, options | {"prediction": "system"}
        case "window":
            begin = log.jobs["submit_time"][0] + rng.randint(0, 100) / 4
            window = {"from": begin, "until": begin + rng.choice([1, 10, 50]), "processors": rng.randint(1, size)}
            return log, options | {"unavailable": [window]}
        case "limits":
            return log, options | {"limits": {rng.choice(["user", "group"]): {"jobs": rng.randint(1, 3)}}}
        case "fair-share":
            return log, options | {"order": "fair-share", "half_life": rng.choice([None, 4.0, 64.0])}
        case "multifactor":
            priority = {"age": rng.choice([0, 64]), "size": rng.choice([0, 1, 64]), "max_age": 32.0}
            return log, options | {"order": "slurm-multifactor", "priority": priority}
        case "shapes":
            drawn = [rng.sample(range(1, size + 1), rng.randint(1, size)) for _ in range(jobs)]
            shapes = [
                [{"processors": width, "run_time": run * rng.choice([1.0, 2.0])} for width in sorted(widths)]
                for widths, run in zip(drawn, log.jobs["run_time"], strict=True)
            ]
            kind = pl.List(pl.Struct({"processors": pl.Int64, "run_time": pl.Float64}))
            return with_jobs(log, pl.Series("shapes", shapes, kind)), options | {
                "shapes": rng.choice(["submit", "start"])
            }
        case "shared":
            machine = replace(Machine(size, size), capacities={"memory": 2.0})
            log = with_jobs(log, memory=pl.Series([rng.choice([0.0, 1.0, 3.0]) for _ in range(jobs)]))
            return replace(log, machine=machine), options | {"runtime": "shared", "allocation": "first-fit"}
        case _:
            return log, options | {"places": True, "allocation": rng.choice(["first-fit", "first-contiguous"])}


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
