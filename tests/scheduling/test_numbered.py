"""The kernel for numbered processors: equal to the slow simulator, in times and places."""

import gzip
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from helpers.kernels import simulate_arrays
from helpers.workloads import ALLOCATION_NAMES, Row, mold, random_jobs, random_policy, random_rows, simulate_places
from swflow.errors import SwflowError
from swflow.scheduling.orders.keys import key_function
from swflow.scheduling.orders.vocabulary import ORDERS as NAMED
from swflow.scheduling.state.items import Shapes
from swflow.scheduling.state.schedule import Schedule

#: The slow simulator's orders that have names here, too; other tests may give it more.
ORDERS = [name for name in naive.ORDERS if name in NAMED]


OF_A_CLUSTER = ("order", "backfill", "lookahead", "backfill_order", "allocation", "unavailable")


def kernel(rows: list[Row], machine: int, policy: naive.Policy, **options: Any) -> Schedule:
    """Run the kernel under a policy of the slow simulator."""
    columns = np.array(rows, np.float64).reshape(-1, 5).T
    if "centres" not in options:  # each of several clusters has options of its own
        options |= {name: getattr(policy, name) for name in OF_A_CLUSTER}
    return simulate_arrays(
        columns[0],
        columns[1],
        columns[2],
        columns[3].astype(np.int64),
        machine,
        per_event=policy.event_order == "per-event",
        predict=policy.predict,
        users=columns[4].astype(np.int64),
        **options,
    )


def require_equal(rows: list[Row], machine: int, policy: naive.Policy, **options: Any) -> None:
    """Require that both simulators start every job at the same time on the same processors."""
    jobs = [naive.Job(number, *row) for number, row in enumerate(rows)]
    slow = naive.simulate(jobs, machine, policy)
    fast = kernel(rows, machine, policy, **options)
    for job in range(len(rows)):
        found = (fast.start[job], fast.of(job).tolist())
        assert found == (slow.starts[job], slow.places[job]), f"job {job} of {rows} on {machine} under {policy}"


#: Parts of the space of policies that are searched one by one, so that each gets its share.
PARTS: dict[str, dict[str, Any]] = {
    "none": {"backfill": "none", "event_order": "batch", "predict": False, "unavailable": []},
    "easy": {"backfill": "lookahead", "lookahead": 1, "event_order": "batch", "predict": False, "unavailable": []},
    "lookahead": {"backfill": "lookahead", "event_order": "batch", "predict": False, "unavailable": []},
    "reservation table": {"backfill": "reservation-table", "event_order": "batch", "predict": False, "unavailable": []},
    "reservation table with all": {"backfill": "reservation-table"},
    "conservative": {"backfill": "conservative", "event_order": "batch", "predict": False, "unavailable": []},
    "lookahead with all": {"backfill": "lookahead"},
    "conservative with all": {"backfill": "conservative"},
    "all": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("allocation", ALLOCATION_NAMES)
@pytest.mark.parametrize("part", list(PARTS))
def test_equals_the_slow_simulator(part: str, allocation: str) -> None:
    generator = random.Random(f"{part} {allocation}")
    for _ in range(120):
        machine = generator.randint(1, 9)
        rows = random_rows(generator, machine)
        require_equal(rows, machine, random_policy(generator, machine, allocation=allocation, **PARTS[part]))


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[Row], int, naive.Policy]:
    """Draw a workload, a machine and a policy that shrink to simple ones."""
    machine = draw(st.integers(1, 9))
    submit, rows = 0.0, []
    for _ in range(draw(st.integers(1, 12))):
        submit += draw(st.integers(0, 5))
        run = float(draw(st.integers(0, 10)))
        planned = max(1.0, run + draw(st.integers(0, 80)))
        rows.append((submit, run, planned, draw(st.integers(1, machine)), draw(st.integers(0, 1))))
    policy = naive.Policy(
        order=draw(st.sampled_from(ORDERS)),
        backfill=draw(st.sampled_from(["none", "lookahead", "conservative", "reservation-table"])),
        lookahead=draw(st.integers(1, 4)),
        backfill_order=draw(st.sampled_from(ORDERS)),
        event_order=draw(st.sampled_from(["batch", "per-event"])),
        allocation=draw(st.sampled_from(ALLOCATION_NAMES)),
        predict=draw(st.booleans()),
    )
    for _ in range(draw(st.integers(0, 2))):
        begin = float(draw(st.integers(-5, 20)))
        length = draw(st.integers(1, 20))
        policy.unavailable.append((begin, begin + length, draw(st.integers(1, machine))))
    return rows, machine, policy


@given(workloads())
def test_equals_the_slow_simulator_on_drawn_workloads(case: tuple[list[Row], int, naive.Policy]) -> None:
    require_equal(*case)


@pytest.mark.slow
@pytest.mark.parametrize("allocation", ALLOCATION_NAMES)
def test_sets_of_several_words(allocation: str) -> None:
    """A machine of more than 64 processors, whose sets have several words."""
    generator = random.Random(allocation)
    for machine in (63, 64, 65, 128, 130):
        for _ in range(6):
            rows = random_rows(generator, machine)
            require_equal(rows, machine, random_policy(generator, machine, allocation=allocation))


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", ["round-robin", "least-loaded", "earliest-start"])
def test_centres_have_the_schedule_of_the_slow_simulator(dispatch: str) -> None:
    generator = random.Random(dispatch)
    for _ in range(250):
        common = {"predict": generator.random() < 0.3, "event_order": generator.choice(["batch", "per-event"])}
        sizes = [generator.randint(1, 6) for _ in range(generator.randint(1, 3))]
        policies = [random_policy(generator, size, **common) for size in sizes]
        rows = random_rows(generator, max(sizes))
        machines = [naive.Machine(size, policy) for size, policy in zip(sizes, policies, strict=True)]
        naive.simulate_centres([naive.Job(number, *row) for number, row in enumerate(rows)], machines, dispatch)
        expected = {
            number: (index, start, machine.places[number])
            for index, machine in enumerate(machines)
            for number, start in machine.starts.items()
        }
        centres = [
            {"machine": size} | {name: getattr(policy, name) for name in OF_A_CLUSTER}
            for size, policy in zip(sizes, policies, strict=True)
        ]
        found = kernel(rows, max(sizes), policies[0], centres=centres, dispatch=dispatch)
        for job, where in expected.items():
            assert (found.cluster[job], found.start[job], found.of(job).tolist()) == where, (
                f"{job} of {rows}: {centres}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("allocation", ALLOCATION_NAMES)
@pytest.mark.parametrize("select", ["submit", "start"])
def test_moldable_jobs_have_the_schedule_of_the_slow_simulator(select: str, allocation: str) -> None:
    generator = random.Random(f"{select} {allocation}")
    for _ in range(150):
        machine = generator.randint(1, 9)
        jobs = mold(generator, random_jobs(generator, machine, generator.randint(1, 15)), machine)
        policy = random_policy(generator, machine, allocation=allocation, shapes=select, predict=False)
        if select == "start" and policy.backfill == "reservation-table":
            policy.backfill = "lookahead"
        slow = naive.simulate(jobs, machine, policy)
        shapes = Shapes(
            np.cumsum([0] + [len(job.shapes) for job in jobs]),
            *(np.array(column) for column in zip(*(shape for job in jobs for shape in job.shapes), strict=True)),
        )
        rows = [(job.submit, job.run, job.planned, job.processors, job.user) for job in jobs]
        found = kernel(rows, machine, policy, shapes=shapes, select=select)
        for number in range(len(jobs)):
            place = (found.start[number], found.of(number).tolist(), found.run[number])
            assert place == (slow.starts[number], slow.places[number], slow.done[number].run), f"{number} of {jobs}"


def test_a_reservation_holds_particular_processors() -> None:
    """The head waits for processors 0 to 2, so the last job may have 3, but not 0 to 2, beyond its start."""
    submit, run = np.array([0.0, 0.0, 1.0, 2.0, 2.0]), np.array([10.0, 2.0, 5.0, 50.0, 50.0])
    processors = np.array([2, 1, 3, 1, 1])
    found = simulate_places(submit, run, run, processors, 4, backfill="lookahead")
    assert found.start.tolist() == [0, 0, 10, 2, 15]
    assert [found.of(job).tolist() for job in range(5)] == [[0, 1], [2], [0, 1, 2], [3], [0]]


def test_a_contiguous_job_waits_for_a_run() -> None:
    """Two processors are free at 2, but not side by side before 10."""
    submit, run = np.array([0.0, 0.0, 0.0, 1.0]), np.array([2.0, 10.0, 2.0, 5.0])
    processors = np.array([1, 1, 1, 2])
    found = simulate_places(submit, run, run, processors, 3, allocation="first-contiguous", backfill="lookahead")
    assert found.start.tolist() == [0, 0, 0, 10]
    scattered = simulate_places(submit, run, run, processors, 3, backfill="lookahead")
    assert scattered.start.tolist() == [0, 0, 0, 2]
    assert scattered.of(3).tolist() == [0, 2]


def test_an_order_may_be_keys_or_a_formula() -> None:
    generator = random.Random(3)

    @key_function
    def oldest_of_last_user(
        now: float,
        submit: float,
        planned: float,
        processors: int,
        user: int,
        group: int,
        queue: int,
        executable: int,
        job_id: int,
    ) -> float:
        return -user * 1000 - (now - submit) + 0 * (planned + processors + group + queue + executable + job_id)

    for _ in range(50):
        rows = random_rows(generator, 6)
        submit, run, planned, processors, user = np.array(rows, np.float64).reshape(-1, 5).T
        attributes = np.zeros((len(rows), 6))
        attributes[:, 0] = user
        arguments = (submit, run, planned, processors.astype(np.int64), 6)
        # At any time, the order by age is the order by submit time: the formula and these keys are one order.
        keys = -user * 1000 + submit
        by_keys = simulate_places(*arguments, order=keys, backfill_order=keys, backfill="lookahead")
        by_formula = simulate_places(
            *arguments,
            order=oldest_of_last_user,
            backfill_order=oldest_of_last_user,
            backfill="lookahead",
            attributes=attributes,
        )
        assert by_keys.start.tolist() == by_formula.start.tolist()
        assert by_keys.ranges.tolist() == by_formula.ranges.tolist()


@pytest.mark.parametrize("shape", [(3, 5), (3, 7), (2, 6), (18,)])
def test_attributes_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    """Kernels would read beyond the array."""
    ones = np.ones(3)
    with pytest.raises(SwflowError, match="attributes"):
        simulate_places(ones, ones, ones, np.ones(3, np.int64), 6, attributes=np.zeros(shape))


def test_a_key_that_is_not_a_number_comes_last() -> None:
    ones = np.ones(3)
    keys = np.array([np.nan, 5.0, 1.0])
    found = simulate_places(np.zeros(3), ones, ones, np.ones(3, np.int64), 1, order=keys)
    assert found.start.tolist() == [2, 1, 0]


def test_a_job_that_never_fits_is_named() -> None:
    ones = np.ones(2)
    with pytest.raises(SwflowError, match="unavailable: 1 jobs never start, the first with 2 processors"):
        simulate_places(
            np.zeros(2), ones, ones, np.array([2, 1]), 2, backfill="lookahead", unavailable=[(0, np.inf, 1)]
        )


def require_sound(found: Schedule, run: np.ndarray, processors: np.ndarray, machine: int, contiguous: bool) -> None:
    """Require that every job has its processors, and none of them two jobs at once."""
    assert np.diff(found.offsets).sum() == len(found.ranges)
    widths = found.ranges[:, 1].astype(np.int64) - found.ranges[:, 0] + 1
    owner = np.repeat(np.arange(len(run)), np.diff(found.offsets))
    assert np.array_equal(np.bincount(owner, widths, len(run)), processors)
    assert not contiguous or len(found.ranges) == len(run)
    free_at = np.full(machine, -np.inf)
    for job in np.lexsort((found.start + run, found.start)):
        places = found.of(job)
        assert (free_at[places] <= found.start[job]).all()
        free_at[places] = found.start[job] + run[job]


def log_arrays(traces: Path, name: str) -> np.ndarray:
    """Read the lines of a log."""
    with gzip.open(traces / f"{name}.swf.gz", "rt", errors="replace") as lines:
        table = np.loadtxt(line for line in lines if line.strip() and not line.startswith(";"))
    return table[np.lexsort((table[:, 0], table[:, 1]))]


@pytest.mark.archive
@pytest.mark.parametrize("backfill", ["lookahead", "conservative"])
@pytest.mark.parametrize("allocation", ALLOCATION_NAMES)
@pytest.mark.parametrize(("log", "machine"), [("KTH-SP2-1996-2.1-cln", 100), ("SDSC-SP2-1998-3.1-cln", 128)])
def test_schedules_of_real_logs_are_sound(traces: Path, log: str, machine: int, allocation: str, backfill: str) -> None:
    table = log_arrays(traces, log)
    table = table[(table[:, 3] > 0) & (table[:, 4] > 0)][:5000]
    run, processors = table[:, 3].copy(), table[:, 4].astype(np.int64)
    planned = np.maximum(run, table[:, 8])
    found = simulate_places(
        table[:, 1].copy(), run, planned, processors, machine, allocation=allocation, backfill=backfill
    )
    assert (found.start >= table[:, 1]).all()
    require_sound(found, run, processors, machine, contiguous="contiguous" in allocation)


@pytest.mark.archive
@pytest.mark.parametrize(
    ("allocation", "order", "backfill", "slowdown", "wait"),
    [
        # The published simulator serves the head first come, first served and backfills by estimate; it finds
        # 30.65 and 31,164 s, and 64.7 and 43,906 s, searching in each processor's first gap that is long enough.
        ("longest-idle", "fcfs", "reservation-table", 30.55, 31121),
        ("first-contiguous", "fcfs", "reservation-table", 63.28, 45279),
        # EASY with places, and with the head too by estimate.
        ("longest-idle", "fcfs", "lookahead", 30.13, 30547),
        ("longest-idle", "sjf", "lookahead", 14.98, 17752),
        ("first-contiguous", "fcfs", "lookahead", 18.87, 28256),
        ("first-contiguous", "sjf", "lookahead", 11.67, 22113),
    ],
)
def test_first_jobs_of_sdsc_sp2_as_in_guim_2007(
    traces: Path, allocation: str, order: str, backfill: str, slowdown: float, wait: float
) -> None:
    """95th percentiles of bounded slowdown (60 s) and wait of jobs that are not killed at their estimate."""
    table = log_arrays(traces, "SDSC-SP2-1998-3.1-cln")
    table = table[(table[:, 10] == 1) & (table[:, 3] > 0) & (table[:, 4] > 0) & (table[:, 4] <= 112)][:10000]
    submit, recorded, processors = table[:, 1].copy(), table[:, 3], table[:, 4].astype(np.int64)
    estimate = np.where(table[:, 8] > 0, table[:, 8], recorded)
    run, killed = np.minimum(recorded, estimate), recorded > estimate
    found = simulate_places(
        submit,
        run,
        estimate,
        processors,
        112,
        allocation=allocation,
        order=order,
        backfill=backfill,
        backfill_order="sjf",
    )
    require_sound(found, run, processors, 112, contiguous="contiguous" in allocation)
    waits = found.start - submit
    bounded = np.maximum(1, (waits + run) / np.maximum(run, 60))
    place = int(0.95 * (~killed).sum())
    assert killed.sum() == 2
    assert round(np.sort(bounded[~killed])[place], 2) == slowdown
    assert round(np.sort(waits[~killed])[place]) == wait
