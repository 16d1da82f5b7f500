"""Random workloads and policies for comparisons with the slow simulator."""

import functools
import random
from typing import Any

import numpy as np

import naive
from helpers.kernels import BACKFILLS as ALL_BACKFILLS
from helpers.kernels import simulate_arrays
from swflow.scheduling.options import CHOICES, SHARED_ALLOCATIONS
from swflow.scheduling.orders.vocabulary import ORDERS as NAMED

#: The orders that kernels know by name; other tests add more to the slow simulator.
ORDERS = [name for name in naive.ORDERS if name in NAMED]

#: The backfills of counted processors.
BACKFILLS = [name for name in ALL_BACKFILLS if name != "reservation-table"]

Jobs = list[tuple[float, float, float, int, int]]  # submit, run, planned, processors, user

#: Allocations without node sharing; the others are tested in test_sharing.py.
ALLOCATION_NAMES = [name for name in CHOICES["allocation"] if name not in ("count", *SHARED_ALLOCATIONS)]

#: The engine with numbered processors.
simulate_places = functools.partial(simulate_arrays, allocation="first-fit")

Row = tuple[float, float, float, int, int]  # submit, run, planned, processors, user

Moldable = list[naive.Job]


def arrays(jobs: Jobs) -> dict[str, np.ndarray]:
    table = np.array(jobs, np.float64)
    attributes = np.full((len(jobs), 6), np.nan)
    attributes[:, 0] = table[:, 4]
    attributes[:, 4] = np.arange(len(jobs))
    return {
        "submit": table[:, 0].copy(),
        "run": table[:, 1].copy(),
        "planned": table[:, 2].copy(),
        "processors": table[:, 3].astype(np.int64),
        "users": table[:, 4].astype(np.int64),
        "attributes": attributes,
    }


def random_jobs(rng: random.Random, machine: int, count: int) -> Jobs:
    longest = rng.choice([12, 400])
    submit = 0.0
    jobs = []
    for _ in range(count):
        submit += rng.choice([0, 0, 1, 2, 3, 5, 9])
        run = rng.choice([0, 0, 1, 2, 3, 5, 8, 13, rng.randint(0, longest)])
        planned = max(1, run + rng.choice([0, 0, 0, 1, 2, 5, rng.randint(0, longest)]))
        processors = rng.choice([1, machine, rng.randint(1, machine)])
        jobs += [(submit, float(run), float(planned), processors, rng.randint(0, 2))] * rng.choice([1] * 9 + [4])
    return jobs[:count]


def random_windows(rng: random.Random, machine: int) -> list[tuple[float, float, int]]:
    windows = []
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        begin = rng.randint(-5, 60)
        windows.append((float(begin), float(begin + rng.choice([1, 3, 10, 50])), rng.randint(1, machine)))
    return windows


def mold(rng: random.Random, jobs: list[tuple[float, float, float, int, int]], machine: int) -> Moldable:
    """Give jobs shapes; for some the request is none of them, for some several are equally good."""
    molded = []
    for number, (submit, run, planned, processors, user) in enumerate(jobs):
        widths = sorted(rng.sample(range(1, machine + 1), rng.randint(1, min(machine, 4))))
        if rng.random() < 0.7:
            widths = sorted({*widths, processors})
        shapes = []
        for width in widths:
            factor = rng.choice([1.0, processors / width, 0.5, 2.0])
            length = run * factor
            shapes.append((length, max(1.0, length, planned * factor), width))
        molded.append(naive.Job(number, submit, run, planned, processors, user, shapes))
    return molded


def random_rows(random: random.Random, machine: int) -> list[Row]:
    """Draw a small workload with many ties."""
    rows: list[Row] = []
    submit = 0.0
    for _ in range(random.randint(1, 25)):
        submit += random.choice([0, 0, 1, 3, 7])
        run = float(random.choice([0, 1, 2, 5, 9, 20]))
        planned = max(1.0, run + random.choice([0, 0, 1, 3, 10, 70]))
        width = random.choice([1, random.randint(1, machine), random.randint(1, (machine + 1) // 2)])
        rows += [(submit, run, planned, width, random.randint(0, 2))] * random.choice([1] * 9 + [4])
    return rows


def random_policy(random: random.Random, machine: int, **fixed: Any) -> naive.Policy:
    """Draw a policy, with a maintenance window or two now and then."""
    policy = naive.Policy(
        order=random.choice(ORDERS),
        backfill=random.choice(["none", "lookahead", "lookahead", "conservative", "reservation-table"]),
        lookahead=random.choice([1, 1, 1, 2, 3, 30]),
        backfill_order=random.choice(ORDERS),
        event_order=random.choice(["batch", "per-event"]),
        allocation=random.choice(ALLOCATION_NAMES),
        predict=random.random() < 0.3,
    )
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        begin = float(random.randint(-5, 30))
        policy.unavailable.append((begin, begin + random.randint(1, 20), random.randint(1, machine)))
    for option, value in fixed.items():
        setattr(policy, option, value)
    return policy
