"""Shared resources: penalties worked out by hand, and the kernel equal to the slow simulator."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import naive
from helpers.kernels import simulate_arrays
from helpers.penalties import penalty_times
from helpers.workloads import Row, random_policy, random_rows, simulate_places
from swflow.analysis.shadows import shadows
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.machine.resources import Resources
from swflow.scheduling.options import CHOICES
from swflow.scheduling.orders.formula import compile_penalty
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.scheduling.state.schedule import Schedule
from swflow.studies.runs import run
from swflow.workload.clean import clean_log
from swflow.workload.steps.memory import memory
from swflow.workload.steps.select import select
from swflow.workload.steps.set_machine import with_machine

SHARED_ALLOCATIONS = ("least-shared", "threshold")
ALLOCATIONS = list(CHOICES["allocation"])[1:]
PENALTIES: dict[str, Any] = {
    "linear": naive.Resources.penalty,
    "printed": naive.Resources.penalty,
    "forgets-shadows": naive.Resources.penalty,
    "at-start": naive.Resources.penalty,
    "usage / capacity": lambda usage, capacity: usage / capacity,
    "max(usage - capacity, 0) ** 2": lambda usage, capacity: max(usage - capacity, 0) ** 2,
}


def test_three_jobs_on_two_nodes_as_on_paper() -> None:
    """
    Two nodes of five processors and 6000 MB/s; three jobs arranged as in Figures 1 to 4 of Guim et al.

    Job 1 has three processors of node 1 from 0 for 300 s, each asking for 1500 MB/s. Job 2 comes at 100 for 200 s
    with two processors of node 1 and two of node 2, each 2000; job 3 at 100 for 600 s with one processor of node 2,
    5000.

    From 100 on node 1 is asked for 3 * 1500 + 2 * 2000 = 8500: penalty 8500/6000 - 1 = 5/12. Node 2 is asked for
    2 * 2000 + 5000 = 9000: penalty 1/2. Job 2 lives in both shadows for its whole run: 200 * 5/12 = 83.3 on node 1,
    200 * 1/2 = 100 on node 2; the maximum counts, so it ends at 100 + 200 + 100 = 400. Job 1 has done 100 s before
    and is held up from then: in the 300 s until 400 it comes ahead by 300 / (17/12) = 211.76, more than its
    remaining 200: it ends at 100 + 200 * 17/12 = 383.33, penalty 83.33. From there node 1 is not overloaded any
    more, but node 2 still rules job 2. Job 3 comes ahead by 300 / 1.5 = 200 until 400, then its node has room:
    it ends at 400 + 400 = 800, penalty 100.
    """
    submit, run = np.array([0.0, 100.0, 100.0]), np.array([300.0, 200.0, 600.0])
    processors = np.array([3, 4, 1])
    demands = np.array([[1500.0], [2000.0], [5000.0]])
    shared = Resources(5, demands, np.array([6000.0]))
    found = simulate_places(submit, run, run * 2, processors, 10, backfill="lookahead", resources=shared)
    assert [found.of(job).tolist() for job in range(3)] == [[0, 1, 2], [3, 4, 5, 6], [7]]
    assert found.start.tolist() == [0, 100, 100]
    assert found.end == pytest.approx([100 + 200 * 17 / 12, 400, 800], abs=1e-6)
    assert found.penalty == pytest.approx([200 * 5 / 12, 100, 100], abs=1e-6)
    assert not found.killed.any()
    # Killed 350 s after it started, job 2 leaves at 450 unharmed; killed after 250, at 350, its neighbors gain.
    strict = Resources(5, demands, np.array([6000.0]), allowed=np.array([1e9, 250.0, 1e9]))
    found = simulate_places(submit, run, run * 2, processors, 10, backfill="lookahead", resources=strict)
    done_by_350 = 100 + 250 / (17 / 12)
    assert found.end == pytest.approx([350 + 300 - done_by_350, 350, 350 + 600 - 250 / 1.5], abs=1e-6)
    assert found.killed.tolist() == [False, True, False]
    assert found.penalty[1] == pytest.approx(250 - 250 / 1.5)


def test_the_printed_penalty_costs_a_second_for_every_overloaded_shadow() -> None:
    """Job 0 shares its node from 10 to 40 and from 50 on; each of these two shadows costs 1 + length * 1/3."""
    submit, run = np.array([0.0, 10.0, 50.0]), np.array([100.0, 20.0, 100.0])
    demands, processors = np.full((3, 1), 4.0), np.ones(3, np.int64)
    shared = Resources(2, demands, np.array([6.0]), penalty="printed")
    found = simulate_places(submit, run, run * 2, processors, 2, resources=shared)
    # job 1: 20 * 4/3 + 1 = 27.67 -> ends at 37.67; job 0 came ahead by 10 + 20
    second = 10 + 20 * 4 / 3 + 1
    left = 100 - (30 + 50 - second)
    assert found.end[:2] == pytest.approx([50 + left * 4 / 3 + 1, second], abs=1e-6)


def test_of_a_shadow_in_which_a_job_comes_and_goes_the_rest_may_be_forgotten() -> None:
    """
    Jobs 0 and 1 overload their node by a third; job 2 comes at 30 and, a half slower, goes at 45.

    Until job 0 goes, jobs 0 and 1 are not seen then: they lose nothing, and job 3, from 60 on, does not meet them.
    Job 4, from 110 on, meets job 1 again.
    """
    submit, run = np.array([0.0, 0.0, 30.0, 60.0, 110.0]), np.array([90.0, 200.0, 10.0, 20.0, 30.0])
    demands, processors = np.array([[4.0], [4.0], [1.0], [4.0], [4.0]]), np.ones(5, np.int64)
    found = {
        penalty: simulate_places(
            submit, run, run * 9, processors, 3, resources=Resources(3, demands, np.array([6.0]), penalty=penalty)
        )
        for penalty in ("linear", "forgets-shadows")
    }
    assert found["linear"].end[2] == found["forgets-shadows"].end[2] == 45
    assert found["linear"].end[3] == 60 + 20 * 2
    assert found["forgets-shadows"].end[3] == 60 + 20
    done = 30 / (4 / 3) + 10  # progress of jobs 0 and 1 when job 2 goes
    lost = found["forgets-shadows"].penalty
    assert found["forgets-shadows"].end[0] == pytest.approx(45 + 90 - done, abs=1e-6)
    assert lost == pytest.approx([45 - done, 45 - done + 10, 5, 0, 10], abs=1e-6)


def test_a_penalty_at_the_start_lasts_until_the_first_estimate_and_is_not_changed_by_later_jobs() -> None:
    """
    Job 0 starts on an idle node and keeps its run time, although jobs 1 and 2 overload the node.

    Job 1 does not overload the node with job 0. Job 2 overloads it by a half, until the estimate of job 0 at 60, and is
    delayed by 20; job 0 ends at 30. Job 3 starts with it, meets it, and is delayed for its run time, by a half of 4.
    Job 2 lies within no shadow, because job 3 starts with it. Job 4 meets job 1, which has no estimate before its end.
    """
    submit, run = np.array([0.0, 0, 20, 20, 400]), np.array([30.0, 450, 90, 4, 30])
    estimate = np.array([60.0, 500, 900, 900, 900])
    processors, demands = np.ones(5, np.int64), np.array([[3.0], [3.0], [3.0], [0.0], [9.0]])
    shared = Resources(4, demands, np.array([6.0]), penalty="at-start")
    found = simulate_places(submit, run, estimate, processors, 4, resources=shared)
    assert found.penalty.tolist() == [0, 0, 0.5 * 40, 0.5 * 4, 1.0 * 30]
    assert found.end.tolist() == [30, 450, 130, 26, 460]


def test_a_job_that_meets_only_jobs_that_are_not_seen_lies_within_no_shadow() -> None:
    """
    Two nodes of three processors; jobs 0 and 2 share node 0, and job 2 is also on node 1, where job 4 slows it.

    Job 3 comes and goes at 20, so that jobs 0 and 2 are not seen until job 2 goes at 105. Job 5 meets only these,
    when job 2 would end after job 0. Therefore job 0 remains seen when job 5 goes at 110, and job 6 slows it.
    """
    submit, run = np.array([0.0, 0, 0, 10, 15, 25, 112]), np.array([120.0, 5, 90, 10, 15, 85, 100])
    processors, demands = np.array([1, 1, 2, 1, 1, 1, 1]), np.array([[1.0], [1], [3], [1], [9], [1], [9]])
    shared = Resources(3, demands, np.array([6.0]), penalty="forgets-shadows")
    found = simulate_places(submit, run, run * 9, processors, 6, resources=shared)
    assert [found.of(job).tolist() for job in range(7)] == [[0], [1], [2, 3], [1], [4], [1], [1]]
    assert found.end[:6] == pytest.approx([112 + 8 * 5 / 3, 5, 105, 20, 45, 110], abs=1e-6)


def test_rounding_errors_decide_no_tie_of_nodes() -> None:
    """The last process costs 10/3 on both nodes; the first is less loaded, with 10 of 3 against 12 of 3."""
    demands = np.array([[3.0, 2.0], [1.0, 2.0], [3.0, 0.0]])
    submit, run, processors = np.array([0.0, 1.0, 2.0]), np.full(3, 100.0), np.array([4, 1, 2])
    found = simulate_places(
        submit,
        run,
        run,
        processors,
        8,
        allocation="least-shared",
        resources=Resources(4, demands, np.array([3.0, 3.0])),
    )
    assert [found.of(job).tolist() for job in range(3)] == [[0, 1, 4, 5], [2], [3, 6]]


def resources_for(random: random.Random, rows: list[Row], machine: int, **fixed: Any) -> naive.Resources:
    """Draw demands, capacities and limits for some jobs."""
    kinds = random.randint(1, 2)
    return naive.Resources(
        per_node=random.choice([n for n in range(1, machine + 1) if machine % n == 0]),
        demands=[[random.choice([0, 1, 2, 3]) for _ in range(kinds)] for _ in rows],
        capacities=[random.choice([2, 3, 4, 1000]) for _ in range(kinds)],
        allowed=[random.choice([row[2], np.inf]) for row in rows],
        **fixed,
    )


def require_equal(rows: list[Row], machine: int, policy: naive.Policy, penalty: str) -> Schedule:
    """Require that both simulators agree on times, places, penalties and killed jobs."""
    shared = policy.resources
    assert shared is not None
    columns = np.array(rows, np.float64).reshape(-1, 5).T
    slow = naive.simulate([naive.Job(number, *row) for number, row in enumerate(rows)], machine, policy)
    fast = simulate_places(
        columns[0],
        columns[1],
        columns[2],
        columns[3].astype(np.int64),
        machine,
        allocation=policy.allocation,
        order=policy.order,
        backfill=policy.backfill,
        lookahead=policy.lookahead,
        backfill_order=policy.backfill_order,
        predict=policy.predict,
        users=columns[4].astype(np.int64),
        unavailable=policy.unavailable,
        resources=Resources(
            shared.per_node,
            np.array(shared.demands, np.float64),
            np.array(shared.capacities, np.float64),
            compile_penalty(penalty),
            shared.slows,
            np.array(shared.allowed),
            shared.limit,
        ),
    )
    case = f"{rows} on {machine} under {policy} with {penalty}"
    for job in range(len(rows)):
        assert fast.of(job).tolist() == slow.places[job], f"job {job} of {case}"
        assert fast.start[job] == pytest.approx(slow.starts[job], abs=1e-5), f"job {job} of {case}"
        assert fast.end[job] == pytest.approx(slow.ends[job], abs=1e-5), f"job {job} of {case}"
        lost = slow.ends[job] - slow.starts[job] - float(slow.spent[job])
        assert fast.penalty[job] == pytest.approx(lost, abs=1e-5), f"job {job} of {case}"
    return fast


@pytest.mark.slow
@pytest.mark.parametrize("penalty", list(PENALTIES))
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_equals_the_slow_simulator(allocation: str, penalty: str) -> None:
    generator = random.Random(f"{allocation} {penalty}")
    held_up = 0
    for _ in range(60):
        machine = generator.randint(1, 9)
        rows = random_rows(generator, machine)
        policy = random_policy(generator, machine, allocation=allocation, event_order="batch")
        if allocation in SHARED_ALLOCATIONS:
            policy.backfill, policy.unavailable = generator.choice(["none", "lookahead"]), []
            policy.lookahead = 1
        fixed = {"second": int(penalty == "printed"), "penalty": PENALTIES[penalty]}
        fixed |= {"forgets": penalty in ("forgets-shadows", "at-start"), "once": penalty == "at-start"}
        if allocation == "threshold":
            fixed["limit"] = generator.choice([0, 0.25, 1])
        policy.resources = resources_for(generator, rows, machine, **fixed)
        held_up += (require_equal(rows, machine, policy, penalty).penalty > 0).sum()
    assert held_up > 0


@pytest.mark.slow
@pytest.mark.parametrize("penalty", list(PENALTIES))
def test_an_overloaded_node_equals_the_slow_simulator(penalty: str) -> None:
    """Most jobs start and end in shadows of others."""
    generator = random.Random(penalty)
    for _ in range(50):
        size, rows, submit = generator.choice([3, 4, 6]), list[Row](), 0.0
        for _ in range(generator.choice([7, 14])):
            submit, run = submit + generator.randint(0, 12), float(generator.randint(1, generator.choice([9, 40, 99])))
            rows.append((submit, run, run + generator.choice([0.0, 20.0]), 1, 0))
        resources = naive.Resources(
            size, [[generator.choice([1, 2, 3])] for _ in rows], [3],
            [generator.choice([np.inf, np.inf, row[2]]) for row in rows], PENALTIES[penalty],
            second=int(penalty == "printed"), forgets=penalty in ("forgets-shadows", "at-start"),
            once=penalty == "at-start",
        )  # fmt: skip
        policy = naive.Policy(allocation="first-fit", event_order="batch", resources=resources)
        require_equal(rows, size, policy, penalty)


@pytest.mark.slow
def test_centres_share_within_themselves_as_in_the_slow_simulator() -> None:
    generator = random.Random(21)
    held_up = 0
    for case in range(60):
        per_node = generator.choice([1, 2, 3])
        sizes = [per_node * generator.randint(1, 3) for _ in range(2)]
        rows = random_rows(generator, max(sizes))
        shared = resources_for(generator, rows, max(sizes))
        shared.per_node = per_node
        policies = []
        for _ in sizes:
            allocation = generator.choice(["first-fit", "longest-idle", "first-contiguous", "least-shared"])
            policies.append(
                naive.Policy(
                    order=generator.choice(["fcfs", "sjf", "saf"]),
                    backfill=generator.choice(["none", "lookahead"]),
                    allocation=allocation,
                    resources=shared,
                )
            )
        dispatch = generator.choice(["round-robin", "least-loaded"])
        machines = [naive.Machine(size, policy) for size, policy in zip(sizes, policies, strict=True)]
        naive.simulate_centres([naive.Job(number, *row) for number, row in enumerate(rows)], machines, dispatch)
        columns = np.array(rows, np.float64).reshape(-1, 5).T
        found = simulate_arrays(
            columns[0],
            columns[1],
            columns[2],
            columns[3].astype(np.int64),
            max(sizes),
            centres=[
                {"machine": size, "order": one.order, "backfill": one.backfill, "allocation": one.allocation}
                for size, one in zip(sizes, policies, strict=True)
            ],
            dispatch=dispatch,
            resources=Resources(
                per_node,
                np.array(shared.demands, np.float64),
                np.array(shared.capacities, np.float64),
                compile_penalty("linear"),
                allowed=np.array(shared.allowed),
            ),
        )
        for job in range(len(rows)):
            slow = machines[found.cluster[job]]
            assert found.of(job).tolist() == slow.places[job], (case, job)
            assert found.start[job] == pytest.approx(slow.starts[job], abs=1e-5), (case, job)
            assert found.end[job] == pytest.approx(slow.ends[job], abs=1e-5), (case, job)
        held_up += (found.penalty > 0).sum()
    assert held_up > 0


@pytest.mark.slow
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_where_demands_fit_nothing_changes(allocation: str) -> None:
    """With capacities never exceeded, every time and place is exactly what it is without shared resources."""
    generator = random.Random(allocation)
    for _ in range(60):
        machine = generator.choice([4, 6, 8, 66])
        rows = random_rows(generator, machine)
        columns = np.array(rows, np.float64).reshape(-1, 5).T
        columns[0] += np.linspace(0, 1 / 3, len(rows))  # no round numbers
        kept = allocation in SHARED_ALLOCATIONS
        policy = random_policy(generator, machine, event_order="batch", predict=False)
        options: dict[str, Any] = {
            "allocation": allocation,
            "order": policy.order,
            "backfill": generator.choice(["none", "lookahead"]) if kept else policy.backfill,
        }
        shared = {"demands": np.ones((len(rows), 1)), "capacities": np.array([2.0]), "limit": 0.0}
        arguments = (*columns[:3], columns[3].astype(np.int64), machine)
        trace = Resources(2, **shared, slows=False) if kept else None
        without = simulate_places(*arguments, **options, resources=trace)
        found = simulate_places(*arguments, **options, resources=Resources(2, **shared))
        for name in ("start", "offsets", "ranges", "end"):
            assert getattr(found, name).tolist() == getattr(without, name).tolist(), name
        assert found.end.tolist() == (found.start + columns[1]).tolist()
        assert not found.penalty.any()
        assert not found.killed.any()


def test_threshold_lets_a_job_wait_that_least_shared_would_start() -> None:
    submit, run = np.zeros(3), np.array([10.0, 20.0, 5.0])
    processors, demands = np.array([1, 1, 1]), np.full((3, 1), 4.0)
    found = {}
    for allocation in SHARED_ALLOCATIONS:
        shared = Resources(2, demands, np.array([6.0]), limit=0.0)
        found[allocation] = simulate_places(submit, run, run, processors, 4, allocation=allocation, resources=shared)
    assert [found["least-shared"].of(job).tolist() for job in range(3)] == [[0], [2], [1]]
    assert found["least-shared"].start.tolist() == [0, 0, 0]
    assert found["threshold"].start.tolist() == [0, 0, 10]
    assert found["threshold"].penalty.tolist() == [0, 0, 0]


def test_threshold_reserves_processors_that_are_not_consecutive() -> None:
    # Job 3 finds room for its demand on node 0 from 10 on, beside job 2, which has processor 1. Job 5 would end at 13
    # if it started at once, and it waits.
    submit, run = np.array([0.0, 0, 0, 1, 2, 3]), np.array([10.0, 50, 100, 10, 50, 10])
    processors, demands = np.array([1, 1, 1, 2, 1, 2]), np.array([[3.0], [3], [0], [1], [0], [0]])
    shared = Resources(3, demands, np.array([3.0]), limit=0.0)
    options: dict[str, Any] = {"allocation": "threshold", "backfill": "lookahead", "resources": shared}
    found = simulate_places(submit, run, run, processors, 6, **options)
    assert [found.of(job).tolist() for job in range(6)] == [[0], [3], [1], [0, 2], [4], [0, 2]]
    assert found.start.tolist() == [0, 0, 0, 10, 2, 20]


def test_a_job_that_never_keeps_to_the_limit_is_not_held_back() -> None:
    ones = np.ones(1)
    shared = Resources(2, np.full((1, 1), 4.0), np.array([6.0]), limit=0.0)
    found = simulate_places(0 * ones, 3 * ones, 3 * ones, np.array([3]), 4, allocation="threshold", resources=shared)
    assert found.start.tolist() == [0]
    assert found.end.tolist() == [4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allocation": "least-shared"}, "resources that the processes of a node share are needed"),
        ({"per_event": True, "resources": "some"}, "shared resources need batch"),
        ({"allocation": "threshold", "backfill": "conservative", "resources": "some"}, "need backfill none or easy"),
        ({"allocation": "threshold", "unavailable": [(0, 1, 1)], "resources": "some"}, "and no unavailable windows"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], words: str) -> None:
    ones = np.ones(1)
    if "resources" in options:
        options = options | {"resources": Resources(1, np.ones((1, 1)), ones)}
    with pytest.raises(SwflowError, match=words):
        simulate_places(ones, ones, ones, np.ones(1, np.int64), 1, **options)


def require_sound(outcomes: pl.DataFrame, jobs: pl.DataFrame, processors: int) -> None:
    """Require that no processor has two jobs at once, no job starts early, and none passes its estimate."""
    assert (outcomes["start_time"] >= outcomes["submit_time"]).all()
    limits = outcomes.join(jobs.select("job_id", "estimate"), on="job_id")
    assert limits.filter(pl.col("end_time") > pl.col("start_time") + pl.col("estimate")).is_empty()
    assert limits.filter("killed").select((pl.col("run_time") == pl.col("estimate")).all()).item()
    free_at = np.full(processors, -np.inf)
    for start, end, places, width in outcomes.sort("start_time", "end_time").select(
        "start_time", "end_time", "places", "processors"
    ).iter_rows():  # fmt: skip
        bounds = [part.partition("-") for part in places.split(",")]
        held = np.concatenate([np.arange(int(first), int(last or first) + 1) for first, _, last in bounds])
        assert held.size == width
        assert (free_at[held] <= start).all()
        free_at[held] = end


@pytest.mark.archive
def test_the_tables_of_guim_2007(traces: Path) -> None:
    """Table I within 5 %, the trends of Table II and its kills, on the first 10,000 completed jobs of SDSC-SP2."""
    workload = select(clean_log(traces / "SDSC-SP2-1998-3.1-cln.swf.gz", name="SDSC-SP2"), status=[1])
    workload = select(with_machine(workload, nodes=28, preset="alvio-node"), jobs=10_000)
    alvio = {"order": "fcfs", "backfill": "reservation-table", "backfill_order": "sjf", "estimates": "kill"}
    published = {"longest-idle": (32, 31_008, 475), "first-contiguous": (64, 44_301, 548)}
    for allocation, (slowdown, wait, killed) in published.items():
        trace = run(workload, Scheduler(**alvio, allocation=allocation)).metrics
        assert trace["p95_bounded_slowdown_60_unkilled"] == pytest.approx(slowdown, rel=0.05)
        assert trace["p95_wait_time_unkilled"] == pytest.approx(wait, rel=0.05)
        assert trace["killed"] == 2
        found = []
        for shares in ({"low": 0.8, "medium": 0.1, "high": 0.1}, {"high": 0.5, "medium": 0.1, "low": 0.4}, {}):
            drawn = memory(workload, **shares, seed=1, step="memory")
            found.append(run(drawn, Scheduler(**alvio, allocation=allocation, runtime="shared", places=True)))
        for measure in (
            "p95_bounded_slowdown_60_unkilled",
            "p95_wait_time_unkilled",
            "penalized_percent",
            "killed",
        ):
            low, medium, high = (one.metrics[measure] for one in found)
            assert trace[measure] <= low < medium < high
        once = Scheduler(**alvio, allocation=allocation, runtime="shared", penalty="at-start")
        assert run(drawn, once).metrics["killed"] == pytest.approx(killed, rel=0.1)
        # What shadows of the finished schedule add up to: never more than the jobs lost, since a shadow lasts as
        # long as the prolonged run, and a job whose nodes take turns at being the worst loses less than their sum.
        outcomes = found[-1].outcomes
        require_sound(outcomes, drawn.jobs, drawn.machine.processors)
        lost = outcomes.join(penalty_times(outcomes, shadows(outcomes, drawn.jobs, drawn.machine)), on="job_id")
        unharmed = lost.filter(pl.col("penalty_time_right") == 0)
        assert unharmed["penalty_time"].max() == 0
        assert lost.filter(pl.col("penalty_time") > pl.col("penalty_time_right") + 1e-3).is_empty()


def test_orders_and_allocations_are_all_drawn() -> None:
    assert set(SHARED_ALLOCATIONS) < set(ALLOCATIONS)


@pytest.mark.parametrize("allocation", ["first-fit", "least-shared"])
@pytest.mark.parametrize(
    "penalty",
    ["1/0", "0/0", "-5", "1e9 + 1", "exp(usage)", "1 - usage / capacity", "log(capacity - usage)", "sqrt(-1 - usage)"],
)
def test_a_formula_that_gives_no_penalty_is_refused_when_it_is_evaluated(allocation, penalty) -> None:
    jobs = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [0.0, 1.0], "run_time": [10.0, 5.0], "estimate": [10.0, 5.0],
        "processors": [4, 4], "user_id": [1, 1], "memory_bandwidth": [2000.0, 3000.0],
    })  # fmt: skip
    tiny = Workload(jobs, Machine(8, 2, {"memory_bandwidth": 6000.0}), "tiny")
    options = {"backfill": "easy", "allocation": allocation, "runtime": "shared", "penalty": penalty}
    with pytest.raises(SwflowError, match=r"^penalty: the formula is undefined, above 1e\+09[^\n]+$"):
        simulate(tiny, Scheduler(**options))
    rare = simulate(tiny, Scheduler(**options | {"penalty": f"0 if usage <= 16000 else {penalty}"}))
    assert rare["penalty_time"].to_list() == [0, 0]  # at most 4 * 3000 and 2 * 2000 + 2 * 3000 are asked of a node


def test_of_a_node_that_is_not_overloaded_a_negative_penalty_is_none() -> None:
    shared = Resources(2, np.array([[1.0]]), np.array([6.0]), penalty=compile_penalty("usage / capacity - 1"))
    one = (np.array([0.0]), np.array([9.0]), np.array([9.0]), np.array([2]))
    assert simulate_places(*one, 2, backfill="lookahead", resources=shared).penalty.tolist() == [0]


def test_a_cluster_keeps_to_the_limit_beside_one_that_has_none() -> None:
    columns = {"submit_time": [1.0, 8.0, 10.0, 11.0], "run_time": [9.0, 5.0, 2.0, 31.0], "memory": [1.0, 2.0, 0.0, 3.0]}
    jobs = pl.DataFrame({"job_id": [1, 2, 3, 4], "processors": [7, 4, 7, 1], **columns})
    jobs = jobs.with_columns(estimate=pl.col("run_time"), status=pl.lit(1), user_id=pl.lit(0))
    workload = Workload(jobs, Machine(7, nodes=1, capacities={"memory": 3.0}), "two")
    clusters = ({"processors": 7, "allocation": "least-shared"}, {"processors": 7, "allocation": "threshold"})
    outcomes = simulate(workload, Scheduler(clusters=clusters, dispatch="round-robin"))
    assert outcomes.sort("job_id")["start_time"].to_list() == [1, 8, 10, 13]
