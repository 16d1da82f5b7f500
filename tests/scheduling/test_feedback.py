"""Feedback: users who wait for their jobs, by hand, against the slow simulator, and where the open loop diverges."""

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

import cases
import naive
from helpers.kernels import simulate_arrays
from helpers.workloads import BACKFILLS, arrays, random_jobs, random_windows
from swflow.errors import SwflowError
from swflow.jobs import eligibility
from swflow.jobs.eligibility import dependencies_of, patience_of
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.orders.vocabulary import ORDERS as NAMED
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate, simulate_counted, with_derived

HOUR = 3600.0


def log_of(rows, **columns):
    """Make a log of (submit, wait, run, user)."""
    submit, wait, run, user = zip(*rows, strict=True)
    return pl.DataFrame(
        {
            "job_id": range(1, len(rows) + 1), "submit_time": submit, "wait_time": wait, "run_time": run,
            "user_id": user, **columns,
        },
        schema_overrides=dict.fromkeys(("submit_time", "wait_time", "run_time"), pl.Float64),
    )  # fmt: skip


def test_sessions_and_batches_by_hand():
    log = log_of([
        (0, 0, 1000, 1),  # 1: the first of a session
        (100, 50, 300, 1),  # 2: while 1 runs: the same batch, which 1 ends
        (500, 0, 10, 2),  # 3: another user
        (1200, 0, 600, 1),  # 4: 200 s after the batch: waited for 1
        (1300, 0, 3000, 1),  # 5: while 4 runs; waited for 1 as well, 300 s
        (4400, 0, 10, 1),  # 6: 100 s after 5, the last of the batch, within an hour of 5's submission
        (8100, 0, 10, 1),  # 7: more than an hour later: another session, at its recorded time
        (8100, 0, 10, None),  # 8: unknown user
        (8200, 0, 10, 1),  # 9: 90 s after 7
    ])  # fmt: skip
    found = dependencies_of(log, "sessions", "hand")
    assert found.previous.tolist() == [-1, -1, -1, 0, 0, 4, -1, -1, 6]
    assert found.think.tolist() == [0, 0, 0, 200, 300, 100, 0, 0, 90]


def test_a_long_job_ends_a_session_only_by_submissions():
    """A user who is back five minutes after ten hours: another session by submissions, the same by think times."""
    log = log_of([(0, 0, 10 * HOUR, 1), (10 * HOUR + 300, 0, 10, 1), (10 * HOUR + 300 + 10 + 1201, 0, 10, 1)])
    assert dependencies_of(log, "sessions", "hand").previous.tolist() == [-1, -1, 1]
    assert dependencies_of(log, "think-times", "hand").previous.tolist() == [-1, 0, -1]


def test_what_the_log_says_comes_first():
    log = log_of(
        [(0, 0, 100, 1), (10, 0, 10, 1), (500, 0, 10, 1), (600, 0, 10, 1)],
        preceding_job_id=[None, 1, 1, 99], think_time=[None, 7.0, None, 5.0],
    )  # fmt: skip
    with pytest.warns(UserWarning, match="1 jobs name a preceding job that is missing"):
        found = dependencies_of(log, "sessions", "hand")
    assert found.previous.tolist() == [-1, 0, 0, -1]
    assert found.think.tolist() == [0, 7, 400, 0]


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (log_of([(0, None, 10, 1)]), "neither wait times nor preceding jobs are recorded"),
        (log_of([(0, 1, 10, None)]), "no users are recorded"),
    ],
)
def test_logs_without_what_it_takes_are_refused(log, says):
    with pytest.raises(SwflowError, match=f"^feedback: hand: {says}"):
        dependencies_of(log, "sessions", "hand")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"allocation": "first-fit"}, "feedback: user feedback needs allocation count"),
        ({"clusters": ({"processors": 4},)}, "feedback: user feedback needs allocation count and one machine"),
        ({"shapes": "start"}, "feedback: user feedback needs the requested shapes"),
        (
            {
                "feedback": "leaving",
                "backfill": "slurm",
                "nodes": ({"count": 2, "processors": 4},),
                "preemption": {"qos": {"a": ["b"]}},
            },
            "feedback: users leave after a response, but preempted jobs run again",
        ),
        ({"order": "log"}, "feedback: the recorded schedule"),
        (
            {"policy": "swflow.policies:Easy"},
            "feedback: not used by the policy swflow.policies:Easy",
        ),
    ],
)
def test_what_does_not_go_with_feedback_is_refused(options, says):
    with pytest.raises(SwflowError, match=says):
        Scheduler(**{"feedback": "sessions", **options})


def test_feedback_allows_a_workload_whose_jobs_are_all_left_out():
    jobs = log_of([(0, 5, 10, 1)], processors=[1], estimate=[10.0], status=[5])
    workload = Workload(jobs, Machine.of(1), "empty")
    assert simulate(workload, Scheduler(feedback="sessions", without_status=(5,))).is_empty()


def test_a_schedule_by_hand():
    """
    Two users on a machine of 4 processors, which the log recorded empty but for them.

    User 1 has the whole machine until 100 and comes back 50 s later; user 2's jobs of 4 processors cannot share it. The
    simulated machine serves 2 at 100 instead of 10 (recorded: it had more processors then): 3 follows 2.
    """
    log = log_of([(0, 0, 100, 1), (10, 0, 20, 2), (40, 0, 30, 2), (150, 0, 10, 1)])
    jobs = log.with_columns(processors=pl.lit(4), estimate="run_time")
    for backfill in ("none", "easy", "conservative"):
        done = simulate(Workload(jobs, Machine.of(4), "hand"), Scheduler(backfill=backfill, feedback="sessions"))
        # 2 waits until 100 and ends at 120; 3 is submitted 10 s later and ends at 160; 4 comes at 150 and waits for it
        assert done["submit_time"].to_list() == [0, 10, 130, 150]
        assert done["start_time"].to_list() == [0, 100, 130, 160]
        assert done["wait_time"].to_list() == [0, 90, 0, 10]
    open_loop = simulate(Workload(jobs, Machine.of(4), "hand"), Scheduler())
    assert open_loop["submit_time"].to_list() == [0, 10, 40, 150]
    assert open_loop["start_time"].to_list() == [0, 100, 120, 150]


def test_a_user_leaves_after_a_slow_response_by_hand():
    """
    Three users of a machine of 4 processors.

    User 1 occupies it until 600. The log has a response of 600 s for job 2, which now waits and responds after 1190 s,
    later than the 1156 s after which its user leaves: 3, which depends on it, and 4, which depends on 3, do not come.
    Job 5 is as slow as recorded, and 6 follows it.
    """
    rows = [(0, 0, 600, 1), (10, 0, 600, 2), (700, 0, 600, 2), (1500, 0, 10, 2), (3000, 0, 5000, 3), (8100, 0, 1, 3)]
    jobs = log_of(rows).with_columns(processors=pl.lit(4), estimate="run_time")
    workload = Workload(jobs, Machine.of(4), "hand")
    for backfill in ("none", "easy", "conservative", "slurm"):
        done, counts, _ = simulate_counted(workload, Scheduler(backfill=backfill, feedback="leaving"))
        assert done["job_id"].to_list() == [1, 2, 5, 6]
        assert counts == {"not_submitted": 2}
    slower = jobs.with_columns(wait_time=pl.Series([0.0, 590.0, 0.0, 0.0, 0.0, 0.0]))
    found = simulate(Workload(slower, Machine.of(4), "hand"), Scheduler(backfill="easy", feedback="leaving"))
    assert found.height == 6  # job 2 responds as in the log


def test_users_continue_as_often_as_the_rule_states():
    jobs = pl.DataFrame({"job_id": range(10_000), "submit_time": 0.0, "wait_time": 0.0, "run_time": 1200.0})
    patience = patience_of(jobs)
    assert patience.min() >= 1200
    for response in (1200.0, 3600.0, 10_000.0):  # p(t) = 1 / (1 + 0.05 t), t in minutes
        share = (1 + 0.05 * 20) / (1 + 0.05 * response / 60)
        assert np.mean(patience >= response) == pytest.approx(share, abs=1e-3)


@pytest.mark.slow
def test_random_users_leave_as_in_the_slow_simulator(monkeypatch):
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    monkeypatch.setattr(eligibility, "IMPATIENCE", 0.3)  # as jobs take seconds here
    names = ("backfill", "order", "event_order", "unavailable", "prediction", "column cancelled_after", "limits")
    lost = 0
    for number in range(150):
        case = cases.draw(random.Random(f"leaving {number}"), names, {"feedback": "leaving"})
        found, counts, _ = simulate_counted(case.workload(), Scheduler(**case.options))
        assert cases.differences(case, with_derived(found)) == "", case
        lost += counts["not_submitted"] > 0
    assert lost >= 5


ORDERS = [name for name in naive.ORDERS if name in NAMED]


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("per_event", [False, True])
@pytest.mark.parametrize("predict", [False, True])
def test_random_workloads_have_the_schedule_of_the_slow_simulator(backfill: str, per_event: bool, predict: bool):
    rng = random.Random(f"feedback {backfill} {per_event} {predict}")
    for _ in range(250):
        machine = rng.randint(1, 8)
        jobs = random_jobs(rng, machine, rng.randint(1, 25))
        previous = np.array([rng.choice([-1, rng.randint(-1, number - 1)]) for number in range(len(jobs))])
        think = np.array([float(rng.choice([0, 0, 1, 5, rng.randint(0, 60)])) for _ in jobs])
        options: dict[str, Any] = {
            "order": rng.choice(["fcfs", "fcfs", *ORDERS]),
            "backfill": backfill,
            "lookahead": rng.choice([1, 1, 2, 5]),
            "backfill_order": rng.choice(["fcfs", *ORDERS]),
            "predict": predict,
            "unavailable": random_windows(rng, machine),
        }
        found = simulate_arrays(
            **arrays(jobs), machine=machine, per_event=per_event, feedback=(previous, think), **options
        )
        policy = naive.Policy(event_order="per-event" if per_event else "batch", **options)
        followers = [
            naive.Job(number, *job, after=int(previous[number]), think=float(think[number]))
            for number, job in enumerate(jobs)
        ]
        slow = naive.simulate(followers, machine, policy)
        assert found.start.tolist() == [slow.starts[number] for number in range(len(jobs))], (jobs, previous, think)


def test_orders_by_submit_time_see_when_a_job_was_submitted():
    # 3 follows 1 and is the last to come, so that last come, first served has it first
    jobs = [(0.0, 10.0, 10.0, 2, 1), (1.0, 50.0, 50.0, 2, 2), (2.0, 5.0, 5.0, 2, 3), (3.0, 5.0, 5.0, 2, 1)]
    feedback = (np.array([-1, -1, 0, -1]), np.array([0.0, 0.0, 30.0, 0.0]))
    found = simulate_arrays(**arrays(jobs), machine=2, order="lcfs", feedback=feedback)
    assert found.submit.tolist() == [0, 1, 40, 3]
    assert found.start.tolist() == [0, 15, 65, 10]


def crowd(users: int, rounds: int) -> Workload:
    """Make a log of users who submit the next job a minute after the last one ended, on a machine that has no queue."""
    rows = [(user + turn * 160.0, 0.0, 100.0, user) for turn in range(rounds) for user in range(users)]
    log = log_of(sorted(rows)).with_columns(processors=pl.lit(1), estimate="run_time")
    return Workload(log, Machine.of(users // 4), "crowd")


@pytest.mark.slow
def test_load_stays_bounded_where_the_open_loop_diverges():
    """Twice the work of the machine: the open loop's waits grow with the log, those of users who wait do not."""
    waits = {}
    for rounds in (20, 80):
        for feedback in ("none", "sessions"):
            done = simulate(crowd(40, rounds), Scheduler(backfill="easy", feedback=feedback))
            waits[rounds, feedback] = done["wait_time"].max()
    assert waits[80, "none"] > 3.5 * waits[20, "none"] > 1000
    assert waits[80, "sessions"] == waits[20, "sessions"] <= 40 / 10 * 100


def test_without_followers_feedback_changes_nothing():
    rng = random.Random(2)
    jobs = random_jobs(rng, 8, 60)
    independent = (np.full(60, -1), np.zeros(60))
    for options in (
        {},
        {"backfill": "lookahead"},
        {"backfill": "conservative"},
        {"order": "wfp3", "backfill": "lookahead"},
    ):
        plain = simulate_arrays(**arrays(jobs), machine=8, **options)
        assert (
            simulate_arrays(**arrays(jobs), machine=8, feedback=independent, **options).start.tolist()
            == plain.start.tolist()
        )
