"""
Test random and invalid schedulers, workloads and files against the slow simulator.

Each case must give equal results or a one-line error.

    python tests/fuzz.py --minutes 20 --seed 1
    python tests/fuzz.py --seed 1 --case 1234

Cases run in a separate process, with bounds checks in the kernels and a time limit, so that a crash or a hang counts
as a failure. The command that repeats a failed case is printed. A case depends only on the seed and its number.
"""

import argparse
import json
import math
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

import naive
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import SWF_FIELDS, Workload, read_workload, write_workload
from swflow.log.swf import parse_swf
from swflow.scheduling.orders.vocabulary import ORDERS
from swflow.scheduling.scheduler import CHOICES, Scheduler
from swflow.scheduling.simulate import simulate

#: Time limits, in seconds, of a case and of the compilation of the kernels.
CASE_LIMIT, START_LIMIT = 60.0, 1800.0

EQUAL, REFUSED, FAILURE = "equal", "refused", "failure"

naive.ORDERS["lcfs"] = lambda job, now: -job.submit
#: Formulas in addition to the named orders, with their values.
FORMULAS: dict[str, Callable[[naive.Job, float], float]] = {
    "processors - wait": lambda job, now: job.processors - (now - job.submit),
    "min(estimate, 50) * processors": lambda job, now: min(job.planned, 50) * job.processors,
    "user_id": lambda job, now: job.user,
}
naive.ORDERS.update(FORMULAS)
PENALTIES: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "linear": naive.Resources.penalty,
    "printed": naive.Resources.penalty,
    "usage / capacity": lambda usage, capacity: usage / capacity,
}


@dataclass
class Drawn:
    """A valid workload, and the options of a valid scheduler."""

    table: dict[str, list[Any]]
    machine: Machine
    options: dict[str, Any]

    def workload(self) -> Workload:
        shapes = pl.List(pl.Struct({"processors": pl.Int64, "run_time": pl.Float64}))
        overrides = {"shapes": shapes} if "shapes" in self.table else {}
        return Workload(pl.DataFrame(self.table, schema_overrides=overrides), self.machine, "drawn")


# --- drawing what is ordinary -----------------------------------------------------------------------------


def draw(rng: random.Random) -> Drawn:
    processors = rng.randint(1, 9)
    nodes = processors // rng.choice([n for n in range(1, processors + 1) if processors % n == 0])
    unit = rng.choice([1.0, 1.0, 1.0, 0.25, 4096.0])
    table: dict[str, list[Any]] = {name: [] for name in ("job_id", "submit_time", "run_time", "estimate", "processors")}
    table |= {"user_id": [], "group_id": [], "partition_id": []}
    submit = rng.choice([0, 0, -50, 10**6])
    for number in range(rng.randint(1, 24)):
        submit += rng.choice([0, 0, 1, 2, 3, 7])
        run = rng.choice([0, 1, 2, 5, 9, rng.randint(0, 40)])
        table["job_id"].append(number + 1)
        table["submit_time"].append(submit * unit)
        table["run_time"].append(run * unit)
        table["estimate"].append(max(0, run + rng.choice([0, 0, 3, 10, 70, -1, -5])) * unit)
        table["processors"].append(rng.choice([1, processors, rng.randint(1, processors)]))
        table["user_id"].append(rng.randint(0, 2))
        table["group_id"].append(rng.randint(0, 1))
        table["partition_id"].append(rng.randint(0, 1))
    drawn = Drawn(table, Machine(processors, nodes), {})
    drawn.options = draw_options(rng, drawn, unit)
    return drawn


def draw_options(rng: random.Random, drawn: Drawn, unit: float) -> dict[str, Any]:
    # Powers of large numbers can differ in the last digit.
    known = [name for name in naive.ORDERS if name in ORDERS]  # tests add others
    orders = ["fcfs", *(name for name in known if unit < 2 or name not in ("wfp3", "unicef"))]
    options: dict[str, Any] = {
        "order": rng.choice(orders),
        "backfill": rng.choice(["none", "easy", "easy", "conservative"]),
        "reservations": rng.choice([1, 2, 3, 30, 10**6]),
        "estimates": rng.choice(["raise", "kill"]),
        "prediction": rng.choice(["user", "user", "perfect", "double", "system"]),
        "event_order": rng.choice(["batch", "batch", "per-event"]),
    }
    if rng.random() < 0.3:
        options["backfill_order"] = rng.choice(orders)
    kind = rng.choice(["counted", "placed", "placed", "shared", "clusters", "shapes"])
    if kind in ("counted", "placed"):
        options["unavailable"] = tuple(draw_window(rng, drawn, unit) for _ in range(rng.choice([0, 0, 1, 2])))
    if kind in ("placed", "shared"):
        allocations = [name for name in CHOICES["allocation"] if name not in ("count", "least-shared", "threshold")]
        options |= {"places": True, "allocation": rng.choice(allocations)}
        if rng.random() < 0.25:
            options["backfill"] = "reservation-table"
    if kind == "shared":
        options |= {"runtime": "shared", "event_order": "batch", "penalty": rng.choice(list(PENALTIES))}
        if rng.random() < 0.5:
            options["allocation"] = rng.choice(["least-shared", "threshold"])
            options["reservations"] = 1
            options |= {"backfill": rng.choice(["none", "easy"]), "sharing_limit": rng.choice([0.0, 0.5, 2.0])}
        # At 2^32 s, thirds of a second have a resolution of about 1 µs: equal instants can differ there.
        early = min(drawn.table["submit_time"])
        drawn.table["submit_time"] = [time - early if early > 2**30 else time for time in drawn.table["submit_time"]]
        drawn.machine = replace(drawn.machine, capacities={"memory": rng.choice([2.0, 3.0, 1000.0])})
        drawn.table["memory"] = [float(rng.choice([0, 1, 2, 3])) for _ in drawn.table["job_id"]]
    if kind == "shapes":
        options["shapes"] = rng.choice(["submit", "start"])
        options["prediction"] = rng.choice(["user", "perfect", "double"])
        draw_shapes(rng, drawn)
    if kind == "clusters" or (kind == "shapes" and rng.random() < 0.3):
        options["dispatch"] = rng.choice(list(CHOICES["dispatch"]))
        sizes = [drawn.machine.processors, rng.randint(1, drawn.machine.processors)]
        options["clusters"] = tuple(draw_cluster(rng, size, orders) for size in sizes[: rng.randint(1, 2)])
        if options["dispatch"] == "partition" and kind == "shapes":
            options["dispatch"] = "round-robin"
        elif options["dispatch"] == "partition":
            draw_partitions(drawn, options)
    if kind in ("counted", "clusters") and rng.random() < 0.4:
        draw_owners(rng, options, unit)
    if kind == "shapes" and "clusters" not in options:
        options["unavailable"] = tuple(draw_window(rng, drawn, unit) for _ in range(rng.choice([0, 0, 1, 2])))
    return options


def draw_partitions(drawn: Drawn, options: dict[str, Any]) -> None:
    """Make every cluster a partition, and put every job into a partition in which it fits."""
    clusters = [cluster | {"partition": number} for number, cluster in enumerate(options["clusters"])]
    options["clusters"] = tuple(clusters)
    widths, partitions = drawn.table["processors"], drawn.table["partition_id"]
    drawn.table["partition_id"] = [
        number if number < len(clusters) and width <= clusters[number]["processors"] else 0
        for width, number in zip(widths, partitions, strict=True)
    ]


def draw_owners(rng: random.Random, options: dict[str, Any], unit: float) -> None:
    """Use orders and limits that depend on job ownership."""
    options["order"] = rng.choice(["fair-share", "slurm-multifactor", options["order"]])
    options["half_life"] = rng.choice([None, 3.0 * unit, 50.0 * unit])
    if options["order"] == "slurm-multifactor":
        points = [0, 1, 64, 1000]
        options["priority"] = {name: rng.choice(points) for name in ("age", "fair_share", "size")}
        options["priority"] |= {"max_age": rng.choice([8.0, 640.0]) * unit, "favor_small": rng.random() < 0.5}
    backfills = [options["backfill"], *(cluster.get("backfill") for cluster in options.get("clusters", ()))]
    if "conservative" not in backfills and rng.random() < 0.7:
        options["limits"] = {
            kind: {"jobs": rng.randint(1, 3)} for kind in ("user", "group", "partition")[: rng.randint(1, 3)]
        }


def draw_cluster(rng: random.Random, processors: int, orders: list[str]) -> dict[str, Any]:
    """Draw a cluster, sometimes with its own policy."""
    cluster: dict[str, Any] = {"processors": processors}
    if rng.random() < 0.3:
        cluster["order"] = rng.choice(orders)
    if rng.random() < 0.3:
        cluster |= {
            "backfill": rng.choice(["none", "easy", "easy", "conservative"]),
            "reservations": rng.randint(1, 3),
        }
    return cluster


def draw_window(rng: random.Random, drawn: Drawn, unit: float) -> dict[str, Any]:
    begin = drawn.table["submit_time"][0] + rng.randint(-5, 60) * unit
    away = rng.randint(1, drawn.machine.processors)
    return {"from": begin, "until": begin + rng.choice([1, 3, 10, 50]) * unit, "processors": away}


def draw_shapes(rng: random.Random, drawn: Drawn) -> None:
    drawn.table["shapes"] = []
    for run in drawn.table["run_time"]:
        widths = sorted(rng.sample(range(1, drawn.machine.processors + 1), rng.randint(1, drawn.machine.processors)))
        widths += [drawn.machine.processors + 1] * rng.choice([0, 0, 1])  # too wide, never chosen
        drawn.table["shapes"].append([{"processors": w, "run_time": run * rng.choice([0.5, 1.0, 2.0])} for w in widths])


# --- what the slow simulator says --------------------------------------------------------------------------


def slow_jobs(drawn: Drawn) -> list[naive.Job]:
    options, table = drawn.options, drawn.table
    kill, prediction = options["estimates"] == "kill", options["prediction"]

    def lengths(run: float, estimate: float) -> tuple[float, float]:
        run = min(run, estimate) if kill else run
        told = max(run, estimate)
        return run, max(1.0, {"perfect": run, "double": 2 * told}.get(prediction, told))

    jobs = []
    for number, run in enumerate(table["run_time"]):
        estimate = table["estimate"][number]
        simulated, planned = lengths(run, estimate)
        shapes = []
        for shape in table["shapes"][number] if "shapes" in table else ():
            longer = shape["run_time"] / run if run > 0 else 1.0
            if shape["processors"] <= drawn.machine.processors:
                shapes.append((*lengths(shape["run_time"], estimate * longer), shape["processors"]))
        whole = run if options.get("runtime") == "shared" else simulated
        submit, width, user = (table[name][number] for name in ("submit_time", "processors", "user_id"))
        group, partition = table["group_id"][number], table["partition_id"][number]
        jobs.append(naive.Job(number, submit, whole, planned, width, user, shapes, group, partition))
    return jobs


def slow_policy(drawn: Drawn) -> naive.Policy:
    options = drawn.options
    backfill = options["backfill"]
    shared = None
    if options.get("runtime") == "shared":
        printed = options["penalty"] == "printed"
        shared = naive.Resources(
            drawn.machine.processors_per_node,
            [[int(demand)] for demand in drawn.table["memory"]],
            [int(drawn.machine.capacities["memory"])],
            drawn.table["estimate"] if options["estimates"] == "kill" else [math.inf] * len(drawn.table["memory"]),
            PENALTIES[options["penalty"]],
            second=int(printed),
            limit=options.get("sharing_limit", math.inf),
        )
    return naive.Policy(
        order=options["order"],
        backfill="lookahead" if backfill == "easy" else backfill,
        lookahead=options["reservations"],
        backfill_order=options.get("backfill_order") or options["order"],
        event_order=options["event_order"],
        allocation=options.get("allocation", "count"),
        predict=options["prediction"] == "system",
        unavailable=[(one["from"], one["until"], one["processors"]) for one in options.get("unavailable", ())],
        resources=shared,
        shapes=options.get("shapes", "requested"),
        multifactor=naive.Multifactor(**options.get("priority", {})),
        limits={
            (kind, number): (most["jobs"], math.inf)
            for kind, most in options.get("limits", {}).items()
            for number in set(drawn.table[f"{kind}_id"])
        },
    )


def fair_share(drawn: Drawn) -> naive.FairShare:
    """Return accounts in which all users have equal shares."""
    shares = {kind: set(drawn.table[f"{kind}_id"]) for kind in ("user", "group")}
    equal = {kind: dict.fromkeys(numbers, 1 / len(numbers)) for kind, numbers in shares.items()}
    return naive.FairShare(drawn.options.get("half_life") or math.inf, equal)


def cluster_policy(policy: naive.Policy, cluster: dict[str, Any]) -> naive.Policy:
    """Return the policy of a cluster: its own if it has one, else the common one."""
    changes: dict[str, Any] = {}
    if "order" in cluster:
        changes |= {"order": cluster["order"], "backfill_order": cluster["order"]}
    if "backfill" in cluster:
        easy = cluster["backfill"] == "easy"
        changes |= {"backfill": "lookahead" if easy else cluster["backfill"]}
        changes |= {"lookahead": cluster["reservations"]}
    return replace(policy, **changes)


def differences(drawn: Drawn, outcomes: pl.DataFrame) -> str:
    """Return the difference between the kernels and the slow simulator, or nothing."""
    jobs, policy = slow_jobs(drawn), slow_policy(drawn)
    clusters = drawn.options.get("clusters", ())
    if clusters:
        fair = fair_share(drawn)
        machines = [naive.Machine(one["processors"], cluster_policy(policy, one), fair) for one in clusters]
        done = naive.simulate_centres(jobs, machines, drawn.options["dispatch"])
    else:
        done = [naive.simulate(jobs, drawn.machine.processors, policy, fair_share(drawn))]
    for place, machine in enumerate(done, 1):
        for number, start in machine.starts.items():
            row = outcomes.row(number, named=True)
            tolerance = 1e-5 if policy.resources else 0.0
            if not abs(row["start_time"] - start) <= tolerance:
                return f"job {number} starts at {row['start_time']}, not {start}"
            if policy.resources and not abs(row["end_time"] - machine.ends[number]) <= tolerance:
                return f"job {number} ends at {row['end_time']}, not {machine.ends[number]}"
            if row["places"] is not None and places_of(row["places"]) != machine.places[number]:
                return f"job {number} is on {row['places']}, not {machine.places[number]}"
            if row["processors"] != machine.done[number].processors or (clusters and row["centre"] != place):
                return f"job {number} has {row['processors']} processors in cluster {row['centre']}"
    return "" if outcomes.height == len(jobs) else f"{outcomes.height} outcomes of {len(jobs)} jobs"


def places_of(text: str) -> list[int]:
    ranges = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [place for ends in ranges for place in range(ends[0], ends[-1] + 1)]


# --- the kinds of cases ------------------------------------------------------------------------------------


def ordinary(rng: random.Random) -> tuple[str, str]:
    """Simulate a valid case: an error is a failure."""
    drawn = draw(rng)
    wrong = differences(drawn, simulate(drawn.workload(), Scheduler(**drawn.options)))
    return (FAILURE, f"{wrong} in {drawn}") if wrong else (EQUAL, "")


NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 1e13, 1e16, 2.0**53, 1e300, -1e16)


def hostile_table(rng: random.Random) -> tuple[str, str]:
    """Change a value or a column of a job table so that it is invalid."""
    drawn = draw(rng)
    table = drawn.workload().jobs
    row = rng.randrange(table.height)
    column = rng.choice(["submit_time", "run_time", "estimate", "processors", "job_id"])
    kind = rng.choice(["value", "null", "type", "missing", "unsorted", "swapped"])

    def with_value(value: Any, dtype: pl.DataType) -> pl.DataFrame:
        values = table[column].to_list()
        values[row] = value
        return table.with_columns(pl.Series(column, values, dtype=dtype, strict=False))

    if kind == "value" and column == "processors":
        value = rng.choice([0, -4, 2**31 + 1, 2**62, -(2**63)])
        if "shapes" in table.columns and value > 0:  # a moldable job can request any width
            value = 2**33
        table = with_value(value, pl.Int64())
    elif kind == "value" and column != "job_id":
        value = rng.choice(NUMBERS)
        if column == "submit_time" and value == -1.0:
            value = math.nan
        table = with_value(value, pl.Float64())
    elif kind == "null":
        table = with_value(None, table.schema[column])
    elif kind == "type":
        wrong = rng.choice([pl.lit("7"), pl.lit(None), pl.lit([1]), pl.lit(True), pl.lit(b"x")])
        table = table.with_columns(wrong.alias(column))
    elif kind == "unsorted" and table["submit_time"].n_unique() > 1:
        table = table.reverse()
    elif kind == "swapped" and table["job_id"][0] is not None and table.height > 1:
        table = table.with_columns(submit_time=pl.lit(0.0), job_id=pl.int_range(pl.len(), 0, -1))
    else:
        table = table.drop(column)
    workload = replace(drawn.workload(), jobs=table)
    if rng.random() < 0.5 and "shapes" not in table.columns:  # as read from a file
        with tempfile.TemporaryDirectory() as folder:
            write_workload(workload, Path(folder) / "drawn.parquet")
            workload = read_workload(Path(folder) / "drawn.parquet")
    simulate(workload, Scheduler(**drawn.options))
    return FAILURE, f"{kind} of {column} in row {row} was accepted: {table.to_dict(as_series=False)} {drawn.options}"


HOSTILE: dict[str, tuple[Any, ...]] = {
    "reservations": (0, -1, 2.5, "3", None, True, math.nan, 2**31, 2**62, 10**30, [1]),
    "order": (5, "", "nope", "1/0", "(" * 300, "__import__('os')", None, "user_id + 'a'", ["fcfs"], "9" * 500),
    "backfill": (5, "", "eazy", None, ["easy"]),
    "sharing_limit": (math.nan, -1.0, "x", None),
    "efficiency": (0, 2, math.nan, "x", None),
    "estimates": (0, "maybe", None),
    "prediction": (0, "oracle", None, {}),
    "allocation": (0, "anywhere", None, ()),
    "clusters": (5, ({},), ({"processors": 0},), ({"processors": 4, "order": "nope"},), ({"processors": "4"},), (5,)),
    "without_status": (5, ("x",), (None,), "5"),
    "penalty": (5, "", "nope", "usage +", None),
}
WINDOW_ENDS = (math.nan, math.inf, -math.inf, 1e13, 1e18, "1996-13-45", "soon", None, [], 0.0, 50.0, True)
WINDOW_SIZES = (0, -5, 5000, 10**30, 2.5, "3", None, math.nan, 1)


def hostile_options(rng: random.Random) -> tuple[str, str]:
    """Change an option to an invalid value, or to an unusual valid one."""
    drawn = draw(rng)
    given = dict(drawn.options)
    option = rng.choice([*HOSTILE, "unavailable", "unavailable", "unavailable"])
    if option == "unavailable":
        begin, end = rng.choice(WINDOW_ENDS), rng.choice(WINDOW_ENDS)
        window = {"from": begin, "until": end, "processors": rng.choice(WINDOW_SIZES)}
        given["unavailable"] = (window,)
        given.pop("clusters", None)
    else:
        given[option] = rng.choice(HOSTILE[option])
    outcomes = simulate(drawn.workload(), Scheduler.of("hostile", given))
    for column in ("start_time", "end_time"):
        if not outcomes[column].is_finite().all() or outcomes[column].null_count():
            return FAILURE, f"{option}: {given[option]!r} gives {column} {outcomes[column].to_list()} of {drawn}"
    if option == "unavailable":
        if not plain_window(given["unavailable"][0], drawn.machine.processors):
            return FAILURE, f"{option}: {given[option]!r} was accepted of {drawn}"
        until = given["unavailable"][0]["until"]
        given["unavailable"] = ({**given["unavailable"][0], "until": 1e13 if until is None else until},)
    meaningful = option in ("unavailable", "reservations") and (given["reservations"] or 1)
    if option != "unavailable" and (given[option] is not None and option != "reservations"):
        return EQUAL, ""  # a valid value, such as a constant order
    drawn.options = {key: value for key, value in given.items() if value is not None}
    drawn.options.setdefault("reservations", int(meaningful or 1))
    for key, value in (("order", "fcfs"), ("backfill", "none"), ("estimates", "raise"), ("prediction", "user")):
        drawn.options.setdefault(key, value)
    if option in ("penalty", "allocation", "sharing_limit", "efficiency", "clusters", "without_status"):
        return EQUAL, ""  # null: the option's default
    wrong = differences(drawn, outcomes)
    return (FAILURE, f"{option}: {given[option]!r}: {wrong} in {drawn}") if wrong else (EQUAL, "")


def plain_window(window: dict[str, Any], machine: int) -> bool:
    """Return whether a window is valid: times in order, existing processors; null is indefinite."""
    begin, end, away = window["from"], window["until"], window["processors"]
    numbers = [begin] if end is None else [begin, end]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in numbers):
        return False
    whole = isinstance(away, int) and not isinstance(away, bool)
    return whole and 1 <= away <= machine and max(map(abs, numbers)) <= 1e12 and (end is None or begin < end)


WORDS = (
    "1e16",
    "-1",
    "0",
    "nan",
    "4e18",
    "1.5",
    "",
    "-",
    "1e5",
    "9" * 25,
    "0.1",
    "; x",
    "1 2",
    "x",
    "1_0",
    "+3",
    "1e400",
)


def hostile_log(rng: random.Random) -> tuple[str, str]:
    """Change words and bytes of a log; a plain parser gives the expected lines."""
    lines = []
    for number in range(rng.randint(1, 6)):
        words = [str(rng.randint(-1, 100)) for _ in SWF_FIELDS]
        words[0] = str(number)
        for _ in range(rng.choice([0, 0, 0, 1, 3])):
            words[rng.randrange(18)] = rng.choice(WORDS)
        lines.append(rng.choice([" ", "\t", "  "]).join(words))
    text = "\n".join(["; MaxProcs: 8", *lines, ""])
    if rng.random() < 0.3:
        place = rng.randrange(len(text))
        text = text[:place] + rng.choice("0123456789.-+eE; \t\nnaifx_") + text[place + rng.choice([0, 1]) :]
    expected = [plain_line(line) for line in text.split("\n") if line.strip() and not line.strip().startswith(";")]
    try:
        found = parse_swf(text.encode(), "log.swf").fields.rows()
    except SwflowError:
        if expected and None not in expected:
            return FAILURE, f"a log was refused: {text!r}"
        raise
    same = [[float(value) for value in row] for row in found] == expected
    return (EQUAL, "") if same else (FAILURE, f"{text!r} was read as {found}")


def plain_line(line: str) -> list[float] | None:
    """Return the numbers of a job line, or None if it is malformed."""
    words = line.split()
    try:
        values = [float(word) for word in words]
        # decimals: the fraction of 1e-999999999 would take too long
        whole = [Decimal(word) for word, dtype in zip(words, SWF_FIELDS.values(), strict=True) if dtype.is_integer()]
    except (ValueError, InvalidOperation):
        return None
    fits = all(one.adjusted() < 20 and one == one.to_integral_value() and -(2**63) <= one < 2**63 for one in whole)
    return values if fits and "_" not in line and all(map(math.isfinite, values)) else None


KINDS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "ordinary": ordinary,
    "table": hostile_table,
    "options": hostile_options,
    "log": hostile_log,
}


def run_case(seed: int, number: int, kinds: list[str]) -> tuple[str, str, str]:
    """Return the kind of a case, its verdict, and a message."""
    rng = random.Random(f"{seed} {number}")
    kind = rng.choice(kinds)
    try:
        return kind, *KINDS[kind](rng)
    except SwflowError as error:
        text = str(error)
        if kind == "ordinary":
            return kind, FAILURE, f"refused: {text}"
        if "\n" in text or len(text) > 2000:
            return kind, FAILURE, f"not one line: {text!r}"
        return kind, REFUSED, text
    except Exception:
        return kind, FAILURE, traceback.format_exc()


# --- the two processes -------------------------------------------------------------------------------------


def work(seed: int, kinds: list[str]) -> None:
    """Run the cases numbered on standard input, and print the verdicts; compile the kernels first."""
    for number in range(60):
        run_case(-1, number, ["ordinary"])
    print(json.dumps(["", "ready", ""]), flush=True)
    for line in sys.stdin:
        print(json.dumps(run_case(seed, int(line), kinds)), flush=True)


class Worker:
    """The process that runs the cases; it can crash or hang."""

    def __init__(self, seed: int, kinds: list[str]) -> None:
        home = Path(os.environ.get("SWFLOW_CACHE") or Path.home() / ".cache" / "swflow")
        environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "SWFLOW_CACHE": str(home / "boundscheck")}
        command = [sys.executable, __file__, "--worker", "--seed", str(seed), "--kinds", *kinds]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        if self._answer(START_LIMIT)[1] != "ready":
            raise SystemExit("the kernels cannot be compiled and tried; see above")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put("")

    def _answer(self, limit: float) -> tuple[str, str, str]:
        try:
            line = self.answers.get(timeout=limit)
        except queue.Empty:
            self.process.kill()
            return "", FAILURE, f"no end within {limit:g} s"
        if not line:
            return "", FAILURE, f"the process died with status {self.process.wait()}"
        kind, verdict, text = json.loads(line)
        return kind, verdict, text

    def run(self, number: int) -> tuple[str, str, str]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        return self._answer(CASE_LIMIT)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None


def main() -> int:
    """Run cases until the time is over, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="only these kinds")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.seed, arguments.kinds)
        return 0
    worker = Worker(arguments.seed, arguments.kinds)
    counts: Counter[tuple[str, str]] = Counter()
    until = time.monotonic() + 60 * arguments.minutes
    number = arguments.case or 0
    while time.monotonic() < until:
        kind, verdict, text = worker.run(number)
        counts[kind or "lost", verdict] += 1
        if verdict == FAILURE:
            kinds = "" if arguments.kinds == list(KINDS) else f" --kinds {' '.join(arguments.kinds)}"
            print(f"case {number}: {text.strip()}", flush=True)
            print(f"    python tests/fuzz.py --seed {arguments.seed} --case {number}{kinds}", flush=True)
        elif arguments.case is not None:
            print(f"case {number}: {kind}: {verdict} {text}")
        if arguments.case is not None:
            break
        if not worker.alive:
            worker = Worker(arguments.seed, arguments.kinds)
        number += 1
    worker.process.kill()
    total = Counter[str]()
    for (kind, verdict), count in sorted(counts.items()):
        total[verdict] += count
        print(f"{kind:10} {verdict:10} {count:8,}")
    print(f"{total.total():,} cases: {total[REFUSED]:,} refused, {total[EQUAL]:,} equal, {total[FAILURE]:,} failures")
    return 1 if total[FAILURE] else 0


if __name__ == "__main__":
    sys.exit(main())
