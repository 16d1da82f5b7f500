"""Moldable jobs: the model's distributions, Downey's speedup, the step, and the schedulers against the slow one."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from helpers.kernels import simulate_arrays
from helpers.workloads import BACKFILLS, ORDERS, Moldable, mold, random_jobs
from swflow.scheduling.orders.keys import key_function
from swflow.scheduling.state.items import Shapes

SELECTIONS = ("submit", "start")


def by_kernel(jobs: Moldable, machine: int, select: str, **options: Any) -> list[tuple[float, int, float]]:
    run, planned, processors = (
        np.array(column) for column in zip(*(s for job in jobs for s in job.shapes), strict=True)
    )
    shapes = Shapes(np.cumsum([0] + [len(job.shapes) for job in jobs]), run, planned, processors)
    attributes = np.full((len(jobs), 6), np.nan)
    attributes[:, 0] = [job.user for job in jobs]
    submit, request = (np.array([getattr(job, name) for job in jobs]) for name in ("submit", "planned"))
    widths = np.array([job.processors for job in jobs])
    found = simulate_arrays(
        submit, request, request, widths, machine, shapes=shapes, select=select, attributes=attributes, **options
    )
    return list(zip(found.start.tolist(), found.processors.tolist(), found.run.tolist(), strict=True))


def by_naive(jobs: Moldable, machine: int, select: str, **options: Any) -> list[tuple[float, int, float]]:
    done = naive.simulate(jobs, machine, naive.Policy(shapes=select, **options))
    return [(done.starts[n], done.done[n].processors, done.done[n].run) for n in range(len(jobs))]


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("select", SELECTIONS)
def test_seeded_workloads_have_the_schedule_of_the_slow_simulator(select: str, backfill: str):
    rng = random.Random(f"{select} {backfill}")
    for _ in range(600):
        machine = rng.randint(1, 8)
        jobs = mold(rng, random_jobs(rng, machine, rng.randint(1, 25)), machine)
        options: dict[str, Any] = {
            "order": rng.choice(["fcfs", *ORDERS]),
            "backfill": backfill,
            "lookahead": rng.choice([1, 1, 2, 3, 5]),
            "backfill_order": rng.choice(["fcfs", *ORDERS]),
        }
        assert by_kernel(jobs, machine, select, **options) == by_naive(jobs, machine, select, **options), options


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Moldable, int]:
    machine = draw(st.integers(1, 8))
    jobs = []
    submit = 0.0
    for number in range(draw(st.integers(1, 12))):
        submit += draw(st.integers(0, 5))
        shapes = []
        for width in sorted(draw(st.sets(st.integers(1, machine), min_size=1, max_size=3))):
            run = draw(st.integers(0, 20))
            shapes.append((float(run), float(max(1, run + draw(st.integers(0, 10)))), width))
        run, planned, processors = draw(st.sampled_from(shapes))
        jobs.append(naive.Job(number, submit, run, planned, processors, 0, shapes))
    return jobs, machine


@given(
    workloads(),
    st.sampled_from(list(SELECTIONS)),
    st.sampled_from(ORDERS),
    st.sampled_from(list(BACKFILLS)),
    st.integers(1, 3),
    st.sampled_from(ORDERS),
)
def test_any_workload_has_the_schedule_of_the_slow_simulator(
    workload, select, order, backfill, lookahead, backfill_order
):
    jobs, machine = workload
    options: dict[str, Any] = {
        "order": order, "backfill": backfill, "lookahead": lookahead, "backfill_order": backfill_order,
    }  # fmt: skip
    assert by_kernel(jobs, machine, select, **options) == by_naive(jobs, machine, select, **options)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("order", ["sjf", "unicef"])
def test_a_long_queue_has_the_schedule_of_the_slow_simulator(select: str, order: str, backfill: str):
    """Enough jobs for trees of several levels and profiles of several blocks."""
    rng = random.Random(order + backfill + select)
    rigid = [
        (float(rng.randint(0, 30)), float(rng.randint(1, 40)), 50.0, rng.choice([1, 2, rng.randint(1, 90)]), 0)
        for _ in range(70)
    ]
    jobs = mold(rng, sorted(rigid), 100)
    options = {"order": order, "backfill": backfill, "backfill_order": order}
    assert by_kernel(jobs, 100, select, **options) == by_naive(jobs, 100, select, **options)


@pytest.mark.slow
@pytest.mark.parametrize("select", SELECTIONS)
def test_one_shape_a_job_is_rigid(select: str):
    rng = random.Random(select)
    for _ in range(200):
        machine = rng.randint(1, 8)
        rigid = random_jobs(rng, machine, 25)
        jobs = [naive.Job(number, *job, shapes=[job[1:4]]) for number, job in enumerate(rigid)]
        backfill, order = rng.choice(list(BACKFILLS)), rng.choice(ORDERS)
        table = np.array(rigid)
        expected = simulate_arrays(
            *(table[:, field].copy() for field in range(3)), table[:, 3].astype(np.int64), machine,
            backfill=backfill, order=order, backfill_order=order,
        )  # fmt: skip
        found = by_kernel(jobs, machine, select, backfill=backfill, order=order, backfill_order=order)
        assert [start for start, _, _ in found] == expected.start.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("select", SELECTIONS)
def test_a_formula_sees_the_shape_or_the_request(select: str, monkeypatch: pytest.MonkeyPatch):
    def formula(now, submit, planned, processors, user, group, queue, executable, job):
        return planned * user - processors * (now - submit)

    monkeypatch.setitem(
        naive.ORDERS, "own", lambda job, now: job.planned * job.user - job.processors * (now - job.submit)
    )
    compiled = key_function(formula)
    rng = random.Random(select)
    for _ in range(150):
        machine = rng.randint(1, 8)
        jobs = mold(rng, random_jobs(rng, machine, 20), machine)
        backfill = rng.choice(list(BACKFILLS))
        ours = by_kernel(jobs, machine, select, order=compiled, backfill=backfill, backfill_order=compiled)
        assert ours == by_naive(jobs, machine, select, order="own", backfill=backfill, backfill_order="own")
    assert math.isfinite(ours[0][0])
