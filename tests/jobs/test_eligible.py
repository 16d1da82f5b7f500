"""Test when jobs become eligible: in the record and in simulations, waits count from then."""

import polars as pl

from swflow.jobs.eligibility import dependencies_of, eligible_after, eligible_jobs, waits
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate, simulate_counted


def workload(**columns: list | pl.Series) -> Workload:
    """Return three jobs of 10 s on one processor, submitted at 0, 1 and 2 s."""
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.0, 1.0, 2.0], "run_time": [10.0] * 3, "processors": [1] * 3,
        "estimate": [10.0] * 3,
    })  # fmt: skip
    return Workload(jobs.with_columns(**{name: pl.Series(values) for name, values in columns.items()}),
                    Machine.of(1), "tiny")  # fmt: skip


def test_no_job_starts_before_it_is_eligible_and_waits_count_from_then():
    found = simulate(workload(eligible_after=[100.0, None, 0.0]), Scheduler())
    assert found["job_id"].to_list() == [1, 2, 3]  # in the order of the workload
    assert found["start_time"].to_list() == [100, 1, 11]
    assert found["wait_time"].to_list() == [0, 0, 9]
    assert found["response_time"].to_list() == [10, 10, 19]


def test_predecessors_decide_when_a_job_is_eligible_in_a_simulation():
    """The recorded 500 s are the end of another schedule."""
    jobs = workload(eligible_after=[None, None, 500.0], depends_on=[None, None, [1]])
    assert simulate(jobs, Scheduler())["start_time"].to_list() == [0, 10, 20]
    none = pl.Series([None, None, []], dtype=pl.List(pl.Int64))
    alone = workload(eligible_after=[None, None, 500.0], depends_on=none)
    assert simulate(alone, Scheduler())["start_time"].to_list() == [0, 10, 502]


def test_a_job_that_was_cancelled_before_it_was_eligible_delays_no_other():
    jobs = workload(eligible_after=[50.0, 50.0, None], cancelled_after=[20.0, 60.0, None])
    found, counts, _ = simulate_counted(jobs, Scheduler())
    assert found.select("job_id", "start_time").rows() == [(3, 2)]
    assert counts["cancelled"] == 2


def test_recorded_waits_count_from_eligibility():
    jobs = workload(
        wait_time=[0.0, 60.0, 50.0], eligible_after=[None, 40.0, None], depends_on=[None, None, [1, 2]],
        think_time=[None, None, 1.0],
    )  # fmt: skip
    # The third job could start when the second had ended at 71 s, after the recorded start, as clocks differ.
    assert eligible_after(jobs.jobs).to_list() == [0, 40, 50]
    assert waits(jobs.jobs).to_list() == [0, 20, 0]
    found = simulate(jobs, Scheduler(order="log"))
    assert found["submit_time"].to_list() == [0, 41, 52]
    assert found["start_time"].to_list() == [0, 61, 52]
    assert found["wait_time"].to_list() == [0, 20, 0]


def test_recorded_ends_of_held_jobs_stay_the_same_for_feedback():
    """The hold of 1000 s was counted twice, so that the second job did not depend on the first one."""
    jobs = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [0.0, 1700.0], "run_time": [600.0, 10.0], "processors": [1, 1],
        "estimate": [600.0, 10.0], "wait_time": [1000.0, 0.0], "user_id": [7, 7],
    })  # fmt: skip
    held = jobs.with_columns(eligible_after=pl.Series([1000.0, None]))
    found = dependencies_of(eligible_jobs(held, "tiny"), "sessions", "tiny")
    assert (found.previous.tolist(), found.think.tolist()) == ([-1, 0], [0, 100])
