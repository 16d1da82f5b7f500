"""The Gymnasium environment: it passes the checker, and an agent that always takes the head is EASY."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

gymnasium = pytest.importorskip("gymnasium", reason="the environment needs gymnasium: pip install -e '.[rl]'")


@pytest.fixture
def workload():
    draw = np.random.default_rng(3)
    run = draw.integers(1, 400, 300).astype(float)
    jobs = pl.DataFrame(
        {
            "job_id": np.arange(1, 301),
            "submit_time": np.sort(draw.integers(0, 20_000, 300)).astype(float),
            "run_time": run,
            "estimate": run * draw.integers(1, 4, 300),
            "processors": draw.integers(1, 9, 300),
            "user_id": draw.integers(1, 9, 300),
        }
    )
    return Workload(jobs, Machine.of(8), "random")


@pytest.fixture
def make(workload):
    import swflow.scheduling.gym_env  # noqa: F401  registers it

    return lambda **options: gymnasium.make(
        "swflow/Scheduling-v0", workload=workload, disable_env_checker=True, **options
    )


def test_the_checker_passes(make):
    from gymnasium.utils.env_checker import check_env

    check_env(make(jobs=40).unwrapped)


def play(env, pick, **reset):
    observation, info = env.reset(**reset)
    steps = 0
    while True:
        observation, reward, over, truncated, info = env.step(pick(observation, info))
        steps += 1
        assert not truncated
        if over:
            return reward, info, steps
        assert reward == 0


@pytest.mark.parametrize(("backfill", "named"), [(True, "easy"), (False, "none")])
def test_always_the_head_is_first_come_first_served(workload, make, backfill, named):
    reward, info, steps = play(make(jobs=300, backfill=backfill), lambda *_: 0, options={"first": 0})
    expected = simulate(workload, Scheduler(backfill=named))
    assert -reward == pytest.approx(expected["bounded_slowdown"].mean(), rel=1e-12)
    assert info["mean_wait_time"] == pytest.approx(expected["wait_time"].mean(), rel=1e-12)
    assert steps == 300 if not backfill else steps < 300


def test_the_seed_decides_the_episode(make):
    first, _ = make(jobs=40).reset(seed=5)
    again, _ = make(jobs=40).reset(seed=5)
    assert (first == again).all()
    rewards = {play(make(jobs=40), lambda *_: 0, seed=seed)[0] for seed in range(4)}
    assert len(rewards) > 1


def test_who_is_picked_matters_and_the_mask_says_who_can_be(make):
    def shortest(observation, info):
        assert info["action_mask"].sum() == (observation[:, 7] > 0).sum() == min(info["waiting"], 16)
        return np.where(info["action_mask"], observation[:, 1], 2.0).argmin()

    env = make(jobs=300, visible=16)
    by_length, _, _ = play(env, shortest, options={"first": 0})
    in_order, _, _ = play(env, lambda *_: 0, options={"first": 0})
    assert by_length != in_order


def test_what_cannot_be_played_is_said(workload, make):
    with pytest.raises(SwflowError, match="random: an episode of 301 jobs, but it has 300"):
        make(jobs=301)
    with pytest.raises(SwflowError, match="first: 261 is not from 0 to 260"):
        make(jobs=40).reset(options={"first": 261})
    env = make(jobs=40).unwrapped
    play(env, lambda *_: 0, seed=1)
    with pytest.raises(SwflowError, match="the episode is over"):
        env.step(0)


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"depends_on": [1]}, "random: column depends_on: not available to agents"),
        ({"cancelled_after": 5.0}, "random: column cancelled_after: not available to agents"),
        ({"array_id": 1, "array_limit": 2}, "random: column array_limit: not available to agents"),
        ({"processors": 9}, "random: job 1 needs 9 of 8 processors"),
        ({"run_time": -1.0}, "random: job 1: the run time is -1 s"),
    ],
)
def test_workloads_that_agents_do_not_support_are_refused(workload, columns, error):
    from swflow.scheduling.gym_env import SchedulingEnv

    jobs = workload.jobs.with_columns(**{name: pl.lit(value) for name, value in columns.items()})
    with pytest.raises(SwflowError, match=error):
        SchedulingEnv(replace(workload, jobs=jobs))


def test_a_job_that_can_never_start_is_an_error(make):
    env = make(jobs=40).unwrapped
    env.reset(seed=1)
    env._replay.machine.free -= 8
    with pytest.raises(SwflowError, match="processors are never free"):
        env.step(0)


@pytest.mark.parametrize("action", [999, -1, 128, 1.5, "0", None, [0]])
def test_an_action_outside_the_space_is_refused(make, action):
    env = make().unwrapped
    env.reset(seed=1)
    with pytest.raises(SwflowError, match=r"^step: action .*; expected a whole number from 0 to 127$"):
        env.step(action)
    env.step(np.int64(0))


def test_the_masks_name_the_rows_that_have_a_job(make):
    env = make(visible=8).unwrapped
    observation, info = env.reset(seed=1)
    masks = env.action_masks()
    assert masks.dtype == bool and masks.shape == (8,)
    assert masks.tolist() == (observation[:, -1] == 1).tolist() == info["action_mask"].astype(bool).tolist()
