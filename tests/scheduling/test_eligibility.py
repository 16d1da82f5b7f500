"""Dependencies, cancellations in the queue and limits of job arrays: by hand, and against the slow simulator."""

import math
import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import naive
from helpers.kernels import owners_of_columns, simulate_arrays
from helpers.workloads import arrays
from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.eligibility import Dependencies
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.orders.vocabulary import ORDERS as NAMED
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.scheduling.state.accounts import UNLIMITED, Owners

ORDERS = [name for name in naive.ORDERS if name in NAMED]


def workload(rows: list[tuple[float, float, int]], machine: int = 4, **columns: Any) -> Workload:
    """Return a workload of (submit time, run time, processors) with exact estimates."""
    submit, run, processors = zip(*rows, strict=True)
    jobs = pl.DataFrame(
        {
            "job_id": range(1, len(rows) + 1), "submit_time": submit, "run_time": run, "processors": processors,
            "estimate": run,
        },
        schema_overrides=dict.fromkeys(("submit_time", "run_time", "estimate"), pl.Float64),
    )  # fmt: skip
    return Workload(jobs.with_columns(**{name: pl.Series(values) for name, values in columns.items()}),
                    Machine.of(machine), "hand")  # fmt: skip


def starts(jobs: Workload, **options: Any) -> dict[int, float]:
    """Return the start times by job."""
    done = simulate(jobs, Scheduler(**options))
    return dict(zip(done["job_id"], done["start_time"], strict=True))


@pytest.fixture(params=[pytest.param("compiled", marks=pytest.mark.slow), "interpreted"])
def mode(request, monkeypatch) -> str:
    monkeypatch.setenv("SWFLOW_INTERPRET", str(int(request.param == "interpreted")))
    return request.param


# -- by hand


def test_a_chain_of_dependencies(mode):
    # 2 waits for 1, 3 for both 1 and 2, with a think time of 5 s; 4 is independent and 5 eligible only at 100
    jobs = workload(
        [(0, 10, 4), (1, 20, 1), (2, 30, 1), (3, 4, 1), (100, 5, 1)],
        depends_on=[None, [1], [1, 2], None, [1]], think_time=[None, None, 5.0, None, None],
    )  # fmt: skip
    for backfill in ("none", "easy", "conservative"):
        done = simulate(jobs, Scheduler(backfill=backfill))
        assert done["submit_time"].to_list() == [0, 10, 35, 3, 100]
        assert done["start_time"].to_list() == [0, 10, 35, 10, 100]
        assert done["wait_time"].to_list() == [0, 0, 0, 7, 0]


def test_dependents_are_backfilled_in_the_order_of_their_arrival():
    # 3 arrives at 5, when 2 ends; 5, which arrived before, is backfilled beside the reservation of 4 at 10
    jobs = workload(
        [(0, 10, 3), (0, 5, 1), (0, 4.5, 1), (1, 1, 4), (2, 4.5, 1)], depends_on=[None, None, [2], None, None]
    )
    for order in ("saf", "fcfs"):
        found = starts(jobs, backfill="easy", order=order, backfill_order="fcfs")
        assert found == {1: 0, 2: 0, 3: 11, 4: 10, 5: 5}


def test_an_array_runs_at_most_its_limit_at_once(mode):
    # a machine for all: the tasks 2 to 5 of an array of two at once; the other job overtakes those that wait
    jobs = workload(
        [(0, 10, 1), (0, 10, 1), (0, 20, 1), (0, 10, 1), (0, 10, 1), (1, 10, 1)], machine=8,
        array_id=[None, 7, 7, 7, 7, None], array_limit=[None, 2, 2, 2, 2, None],
    )  # fmt: skip
    for backfill in ("none", "easy"):
        assert starts(jobs, backfill=backfill) == {1: 0, 2: 0, 3: 0, 4: 10, 5: 20, 6: 1}


def test_a_cancelled_job_occupies_the_queue_until_it_leaves(mode):
    # 2, which needs the whole machine, blocks 3 until it leaves at 30; under FCFS nothing overtakes it
    jobs = workload(
        [(0, 50, 3), (10, 0, 4), (11, 60, 1)],
        cancelled_after=[None, 20.0, None],
    )
    assert starts(jobs, backfill="none") == {1: 0, 3: 30}
    # with EASY 3 would delay the reservation of 2 at 50, too, and starts when 2 leaves
    assert starts(jobs, backfill="easy") == {1: 0, 3: 30}
    assert starts(jobs, backfill="conservative") == {1: 0, 3: 30}


def test_a_job_that_starts_before_its_cancellation_leaves_at_once(mode):
    from swflow.studies.runs import run

    jobs = workload([(0, 50, 3), (10, 0, 1), (11, 60, 1), (12, 0, 4)], cancelled_after=[None, 20.0, None, 5.0])
    result = run(jobs, Scheduler(backfill="easy"))
    assert result.outcomes["job_id"].to_list() == [1, 3]
    assert result.outcomes["start_time"].to_list() == [0, 11]
    assert result.metrics["jobs"] == 2
    assert (result.metrics["cancelled"], result.metrics["started_before_cancel"]) == (2, 1)
    assert "cancelled" not in run(workload([(0, 50, 3)]), Scheduler()).metrics


def test_a_dependent_of_a_cancelled_job_becomes_eligible_when_it_leaves(mode):
    jobs = workload(
        [(0, 50, 4), (10, 0, 4), (11, 5, 4)], cancelled_after=[None, 20.0, None], depends_on=[None, None, [2]]
    )
    done = simulate(jobs, Scheduler(backfill="easy"))
    assert done["submit_time"].to_list() == [0, 30]
    assert done["start_time"].to_list() == [0, 50]


def test_dependencies_on_jobs_that_are_left_out_by_status_do_not_count():
    jobs = workload(
        [(0, 10, 4), (1, 20, 1), (2, 30, 1)],
        depends_on=[None, [1], [1, 2]],
        status=[0, 1, 1],
        think_time=[0.0, 7.0, 5.0],
    )
    assert starts(jobs, without_status=(0,)) == {2: 1, 3: 26}
    assert starts(jobs, without_status=(5,)) == {1: 0, 2: 17, 3: 42}


# -- what is refused


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"depends_on": [None, [9]]}, r"hand: job 2 depends on job 9, which is not in the workload \(1 such"),
        ({"depends_on": [[2], [1]]}, r"hand: job 1 depends on itself \(1 on 2 on 1\)"),
        ({"depends_on": [None, [2]]}, r"hand: job 2 depends on itself \(2 on 2\)"),
        ({"depends_on": ["1", None]}, r"hand: column depends_on holds String, not List\(Int64\); convert it"),
        (
            {"depends_on": [None, [1]], "think_time": [0.0, -1.0]},
            "hand: job 2: think_time is -1.0; expected finite seconds from 0 on",
        ),
        ({"cancelled_after": [None, -1.0]}, "hand: job 2: cancelled_after is -1.0; expected finite seconds from 0 on"),
        ({"cancelled_after": [math.nan, None]}, "hand: job 1: cancelled_after is nan"),
        ({"array_id": [1, 1], "array_limit": [0, 0]}, "hand: job 1: array_limit is 0; expected 1 or more"),
        ({"array_limit": [2, 2]}, "hand: tasks with an array_limit have no array_id"),
    ],
)
def test_wrong_columns_are_refused_by_job(columns: dict[str, Any], message: str):
    with pytest.raises(SwflowError, match=message) as error:
        simulate(workload([(0, 1, 1), (1, 1, 1)], **columns), Scheduler())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"depends_on": [None, [1]]}, {"allocation": "first-fit"}, "column depends_on: needs allocation count"),
        ({"depends_on": [None, [1]]}, {"feedback": "sessions"}, "column depends_on: does not go with feedback"),
        ({"cancelled_after": [None, 1.0]}, {"policy": "swflow.policies:Easy"}, "column cancelled_after: is not avail"),
        (
            {"array_id": [1, 1], "array_limit": [1, 1]},
            {"backfill": "conservative"},
            "column array_limit: needs backfill none, easy or slurm",
        ),
        (
            {"array_id": [1, 1], "array_limit": [1, 1]},
            {"clusters": ({"processors": 4}, {"processors": 4})},
            "column array_limit: needs one machine or dispatch partition",
        ),
    ],
)
def test_schedulers_without_support_are_refused(columns: dict[str, Any], options: dict[str, Any], message: str):
    with pytest.raises(SwflowError, match=f"hand: {message}"):
        simulate(workload([(0, 1, 1), (1, 1, 1)], **columns), Scheduler(**options))


def test_a_run_reads_the_columns_and_one_without_values_changes_nothing(tmp_path):
    jobs = workload([(0, 10, 4), (1, 5, 1)], depends_on=[None, [1]], think_time=[None, 3.0])
    write_workload(jobs, tmp_path / "hand.parquet")
    assert starts(read_workload(tmp_path / "hand.parquet", columns=())) == {1: 0, 2: 13}
    empty = jobs.jobs.with_columns(
        depends_on=pl.lit(None, pl.List(pl.Int64)), cancelled_after=pl.lit(None, pl.Float64),
        array_id=pl.lit(None, pl.Int64), array_limit=pl.lit(None, pl.Int64),
    )  # fmt: skip
    assert starts(Workload(empty, jobs.machine, "hand"), allocation="first-fit") == {1: 0, 2: 10}


# -- against the slow simulator


def owners(jobs: list[naive.Job]) -> Owners:
    """Return owners with arrays only."""
    none, ones = np.full(len(jobs), -1), np.ones(len(jobs))
    arrays = np.array([job.array - 1 for job in jobs])
    return owners_of_columns(none, none, none, np.full(len(jobs), np.nan), ones, ones, array=arrays)


def compare(
    jobs: list[naive.Job], machine: int, per_event: bool, predict: bool, units: tuple[int, ...] = (), **options: Any
) -> None:
    """Require equal starts of the engine and the slow simulator."""
    edges = sorted((job.number, before) for job in jobs for before in job.needs)
    dependencies = None
    if edges:
        dependent, previous = np.array(edges).T
        submit = np.array([job.submit for job in jobs])
        dependencies = Dependencies(previous, np.array([job.think for job in jobs]), dependent, submit)
    after = np.array([job.leaves for job in jobs])
    tasks = max(job.array for job in jobs)
    of_arrays = {job.array: job.array_limit for job in jobs if job.array}
    most = [UNLIMITED, *(int(of_arrays.get(array, 9)) for array in range(1, tasks + 1))]
    limits = np.column_stack([most, np.full(tasks + 1, UNLIMITED)])
    plain = [(job.submit, job.run, job.planned, job.processors, job.user) for job in jobs]
    resources = {"units": units, "demands": np.array([job.demands for job in jobs])} if units else {}
    found = simulate_arrays(
        **arrays(plain), **resources, machine=machine, per_event=per_event, predict=predict, dependencies=dependencies,
        cancelled_after=after if np.isfinite(after).any() else None, owners=owners(jobs) if tasks else None,
        limits=limits if tasks else None, **options,
    )  # fmt: skip
    policy = naive.Policy(event_order="per-event" if per_event else "batch", predict=predict, **options)
    slow = naive.simulate(jobs, machine, policy, resources=units)
    assert found.start.tolist() == pytest.approx(
        [slow.starts.get(number, math.nan) for number in range(len(jobs))], abs=0, nan_ok=True
    ), (jobs, machine, per_event, predict, units, options)


def drawn(
    rng: random.Random, machine: int, count: int, with_arrays: bool, units: tuple[int, ...] = ()
) -> list[naive.Job]:
    """Draw jobs of which some depend on others, are cancelled, or are tasks of arrays, and need counted resources."""
    jobs, submit = [], 0.0
    order = rng.sample(range(count), count)  # a dependency leads to a job that comes before in this order
    limits = [rng.choice([1, 1, 2, 3]) for _ in range(3)]
    for number in range(count):
        submit += rng.choice([0, 0, 1, rng.randint(0, 15)])
        run = float(rng.choice([0, rng.randint(0, 20), rng.randint(0, 60)]))
        needs = [other for other in range(count) if order[other] < order[number]] if rng.random() < 0.4 else []
        leaves = float(rng.choice([0, 1, rng.randint(0, 60)])) if rng.random() < 0.3 else math.inf
        array = rng.randint(0, 3) if with_arrays else 0
        jobs.append(
            naive.Job(
                number, submit, 0.0 if leaves < math.inf else run, max(1.0, run + rng.choice([0, rng.randint(0, 20)])),
                rng.randint(1, machine), rng.randint(0, 2), think=float(rng.choice([0, 0, rng.randint(0, 9)])),
                needs=tuple(rng.sample(needs, min(len(needs), rng.choice([1, 1, 2, 3])))), leaves=leaves, array=array,
                array_limit=limits[array - 1] if array else math.inf,
                demands=tuple(rng.choice([0, rng.randint(0, most)]) for most in units),
            )
        )  # fmt: skip
    return jobs


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["none", "lookahead", "conservative"])
@pytest.mark.parametrize("per_event", [False, True])
@pytest.mark.parametrize("predict", [False, True])
def test_random_workloads_have_the_schedule_of_the_slow_simulator(backfill: str, per_event: bool, predict: bool):
    rng = random.Random(f"eligibility {backfill} {per_event} {predict}")
    for _ in range(200):
        machine = rng.randint(1, 8)
        units = tuple(rng.randint(1, 5) for _ in range(rng.choice([0, 1, 2, 4])))
        jobs = drawn(rng, machine, rng.randint(1, 20), backfill != "conservative" and rng.random() < 0.5, units)
        options = {
            "order": rng.choice(["fcfs", "fcfs", *ORDERS]), "backfill": backfill,
            "lookahead": rng.choice([1, 1, 2, 5]), "backfill_order": rng.choice(["fcfs", *ORDERS]),
        }  # fmt: skip
        compare(jobs, machine, per_event, predict, units, **options)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.randoms(use_true_random=False), st.integers(1, 6), st.integers(1, 10), st.booleans(), st.booleans(),
    st.sampled_from(["fcfs", "sjf", "wfp3"]), st.sampled_from(["none", "lookahead", "conservative"]), st.integers(1, 3),
)  # fmt: skip
def test_any_workload_has_the_schedule_of_the_slow_simulator_without_a_compiler(
    monkeypatch, rng, machine, count, per_event, predict, order, backfill, lookahead
):
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    jobs = drawn(rng, machine, count, backfill != "conservative")
    options = {"order": order, "backfill": backfill, "lookahead": lookahead, "backfill_order": order}
    compare(jobs, machine, per_event, predict, **options)


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", ["round-robin", "least-loaded", "earliest-start"])
def test_clusters_have_the_schedule_of_the_slow_simulator(dispatch: str):
    rng = random.Random(f"clusters {dispatch}")
    for _ in range(150):
        sizes = [rng.randint(1, 6) for _ in range(rng.randint(2, 3))]
        jobs = drawn(rng, max(sizes), rng.randint(1, 15), with_arrays=False)
        edges = sorted((job.number, before) for job in jobs for before in job.needs)
        dependent, previous = np.array(edges or [(0, 0)]).T
        submit = np.array([job.submit for job in jobs])
        dependencies = Dependencies(previous, np.array([job.think for job in jobs]), dependent, submit)
        after = np.array([job.leaves for job in jobs])
        options = {"backfill": rng.choice(["none", "lookahead", "conservative"]), "order": rng.choice(["fcfs", "sjf"])}
        found = simulate_arrays(
            **arrays([(job.submit, job.run, job.planned, job.processors, job.user) for job in jobs]), machine=0,
            centres=[{"machine": size, **options} for size in sizes], dispatch=dispatch, cancelled_after=after,
            dependencies=dependencies if edges else None,
        )  # fmt: skip
        machines = [naive.Machine(size, naive.Policy(**options)) for size in sizes]
        slow = naive.simulate_centres(jobs, machines, dispatch)
        expected = {number: start for one in slow for number, start in one.starts.items()}
        assert found.start.tolist() == pytest.approx(
            [expected.get(number, math.nan) for number in range(len(jobs))], abs=0, nan_ok=True
        ), (jobs, sizes, options)
