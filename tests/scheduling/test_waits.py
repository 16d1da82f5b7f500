"""The reasons of waits, against a twin that looks at every second."""

import math
import random
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

import naive_reasons as naive
from helpers.draws import CASES
from swflow.scheduling.waits.divide import NO_LIMIT, Waiting, divide

NAMES = ("limit", "room", "fragmentation", "drain", "order", "latency")


def random_case(rng: random.Random) -> tuple[list[naive.Job], naive.Machine]:
    """Draw any schedule, also one that uses more than the machine has, and its conditions."""
    machine = naive.Machine(
        rng.randint(1, 9),
        numbered=rng.random() < 0.4,
        units=tuple(rng.randint(0, 6) for _ in range(rng.choice([0, 0, 0, 1, 2]))),
        limits=tuple(
            (
                rng.choice([math.inf, 1, 2]),
                rng.choice([math.inf, rng.randint(1, 9)]),
                rng.choice([math.inf, math.inf, rng.randint(1, 40)]),
                rng.choice([math.inf, math.inf, rng.randint(0, 5)]),
            )
            for _ in range(rng.choice([0, 0, 1, 3]))
        ),
        cycles=rng.random() < 0.5,
        period=rng.choice([0, 1, 5, 20]),
    )
    machine.contiguous = machine.numbered and rng.random() < 0.7
    if machine.contiguous and rng.random() < 0.5:
        machine.limits, machine.units = (), ()
        return [random_job(rng, machine) for _ in range(rng.randint(5, 20))], machine
    machine.windows = tuple(
        (begin, rng.choice([math.inf, begin + rng.randint(1, 25)]), rng.randint(1, machine.processors))
        for begin in (rng.randint(-10, 60) for _ in range(rng.choice([0, 0, 1, 1, 2, 3])))
    )
    return [random_job(rng, machine) for _ in range(rng.randint(1, 12))], machine


def random_job(rng: random.Random, machine: naive.Machine) -> naive.Job:
    eligible, run = rng.randint(0, 40), rng.choice([0, 1, rng.randint(1, 9), rng.randint(1, 20)])
    width = rng.randint(1, rng.choice([machine.processors, (machine.processors + 2) // 3]))
    first = rng.randint(0, machine.processors - width)
    places = frozenset(range(first, first + width))
    if machine.numbered and rng.random() < 0.5:
        places = frozenset(rng.sample(range(machine.processors), width))
    return naive.Job(
        eligible,
        eligible + rng.choice([0, 1, rng.randint(0, 30)]),
        run,
        rng.choice([run, run + rng.randint(1, 15), rng.randint(1, 20), rng.randint(1, 200)]),
        width,
        places if machine.numbered else frozenset(),
        tuple(rng.choice([0, 0, rng.randint(1, 3)]) for _ in machine.units),
        tuple(sorted(rng.sample(range(len(machine.limits)), rng.randint(0, len(machine.limits))))),
        counted=(rng.choice([0, 0, rng.randint(1, 3)]),),
    )


def ranges_of(places: frozenset[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each range."""
    numbers = sorted(places)
    breaks = [place for place, (one, following) in enumerate(pairwise(numbers), 1) if following > one + 1]
    return [(numbers[begin], numbers[end - 1]) for begin, end in pairwise([0, *breaks, len(numbers)])]


def waiting_of(jobs: list[naive.Job], machine: naive.Machine, scale: float = 1.0, shift: float = 0.0) -> Waiting:
    """Return the case as arrays, with other times."""
    eligible, start, run, planned = (
        np.array([getattr(job, name) for job in jobs], np.float64) * scale
        for name in ("eligible", "start", "run", "planned")
    )
    eligible, start = eligible + shift, start + shift
    more = {}
    if machine.numbered:
        ranges = [ranges_of(job.places) for job in jobs]
        more["offsets"] = np.cumsum([0, *map(len, ranges)])
        more["ranges"] = np.array([pair for some in ranges for pair in some], np.int64)
    if machine.limits:
        rows = np.full((len(jobs), len(machine.limits)), -1)
        for row, job in zip(rows, jobs, strict=True):
            row[: len(job.accounts)] = job.accounts
        limits = [[NO_LIMIT if one == math.inf else one for one in most] for most in machine.limits]
        more |= {"rows": rows, "most": np.array(limits), "period": float(machine.period)}
        more["needs"] = np.array([job.counted for job in jobs])
    if machine.units:
        more |= {"demands": np.array([job.demands for job in jobs]), "units": np.array(machine.units)}
    windows = [(begin * scale + shift, until * scale + shift, away) for begin, until, away in machine.windows]
    widths = np.array([job.processors for job in jobs])
    return Waiting(
        eligible, start, start + run, widths, machine.processors, planned, windows, machine.contiguous,
        cycles=machine.cycles, **more,
    )  # fmt: skip


def check(rng: random.Random) -> None:
    """Compare one random case with the twin, in seconds and in other units."""
    jobs, machine = random_case(rng)
    expected = [naive.divide(job, jobs, machine) for job in jobs]
    # Exact in binary, so that equal times stay equal.
    scale, shift = rng.choice([(1.0, 0.0), (1.0, -77.0), (0.125, 1e6), (3600.0, 0.0)])
    if any(most[2] < math.inf for most in machine.limits):  # minutes and periods are those of one unit and origin
        scale, shift = 1.0, rng.choice([0.0, -80.0, 1e6])
    waiting = waiting_of(jobs, machine, scale, shift)
    found = divide(waiting)
    by_name = [[one[name] * scale for one in expected] for name in NAMES]
    np.testing.assert_allclose([found[name] for name in NAMES], by_name, atol=1e-6)
    total = sum(found[name] for name in ("limit", "room", "order", "latency"))
    np.testing.assert_allclose(total, waiting.start - waiting.eligible, atol=1e-6)


def cases(count: int, seed: int) -> Iterator[random.Random]:
    return (random.Random(seed + number) for number in range(count))


def test_divides_waits_as_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    for rng in cases(150, 0):
        check(rng)


@pytest.mark.slow
def test_divides_many_waits_as_the_twin() -> None:
    for rng in cases(200 * CASES, 1_000_000):
        check(rng)
