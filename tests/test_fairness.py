"""Fairness, fidelity and uncertainty: by hand on small tables, and against simple definitions on random ones."""

import numpy as np
import polars as pl
import pytest

from swflow.analysis.fairness import fairness_indices, fairness_table, gini_coefficient, jain_index
from swflow.analysis.fidelity import fidelity
from swflow.analysis.uncertainty import WEEK, _quantiles, difference_of_means, difference_of_quantiles

OUTCOMES = pl.DataFrame(
    {
        "job_id": [1, 2, 3, 4], "wait_time": [0.0, 10.0, 20.0, 100.0], "bounded_slowdown": [1.0, 2.0, 3.0, 9.0],
        "processors": [1, 1, 2, 4], "run_time": [10.0, 10.0, 10.0, 10.0],
    }
)  # fmt: skip
JOBS = pl.DataFrame({"job_id": [1, 2, 3, 4], "user_id": [1, 1, 2, None], "group_id": [5, 5, 5, 6]})


def test_users_and_groups_by_hand():
    table = fairness_table(OUTCOMES, JOBS)
    rows = table.select("kind", "id", "jobs", "mean_wait_time", "mean_bounded_slowdown", "use_share").rows()
    assert rows == [
        ("user", 1, 2, 5, 1.5, 2 / 8), ("user", 2, 1, 20, 3, 2 / 8),
        ("group", 5, 3, 10, 2, 4 / 8), ("group", 6, 1, 100, 9, 4 / 8),
    ]  # fmt: skip
    assert table["p95_wait_time"].to_list() == [9.5, 20, 19, 100]
    indices = fairness_indices(OUTCOMES, JOBS)
    assert indices == {"jain_wait_time": pytest.approx(25**2 / (2 * 425)), "gini_wait_time": pytest.approx(0.3)}
    assert fairness_indices(OUTCOMES, JOBS.drop("user_id")) == {"jain_wait_time": None, "gini_wait_time": None}


def test_indices_are_their_definitions():
    values = np.random.default_rng(1).exponential(size=40)
    differences = np.abs(values[:, None] - values[None, :]).mean()
    assert gini_coefficient(values) == pytest.approx(differences / (2 * values.mean()))
    assert jain_index(values) == pytest.approx(values.mean() ** 2 / (values**2).mean())
    assert gini_coefficient(np.zeros(3)) == 0
    assert jain_index(np.zeros(3)) == 1
    assert gini_coefficient(np.empty(0)) is jain_index(np.empty(0)) is None


def schedule(*starts: float, run: float = 3600.0) -> pl.DataFrame:
    """Make outcomes of jobs of two processors submitted at 0."""
    jobs = len(starts)
    return pl.DataFrame(
        {
            "job_id": range(1, jobs + 1), "submit_time": [0.0] * jobs, "start_time": starts, "run_time": [run] * jobs,
            "processors": [2] * jobs, "wait_time": starts, "load": [0.5] * jobs,
        }
    )  # fmt: skip


def test_fidelity_by_hand():
    recorded = schedule(0.0, 3600.0, 7200.0, 10800.0)
    found = fidelity(recorded, schedule(0.0, 7200.0, 3600.0, 10830.0), 4)
    assert found["jobs"] == 4
    assert found["start_order"] == 0.5  # the second and the third changed places; the first did not wait
    assert found["started_alike"] == 0.5
    assert found["wait_difference"] == pytest.approx(30 / 4)
    assert found["wait_distance"] == 0.25
    assert found["utilization_difference"] == pytest.approx(0.5 * (30 / 3600) / 4, rel=1e-6)
    later = fidelity(recorded, schedule(*[start + 3600 for start in (0.0, 3600.0, 7200.0, 10800.0)]), 4)
    assert later["started_alike"] == 0
    assert later["start_order"] == 1
    assert later["utilization_difference"] == pytest.approx(0.5 / 4)  # the first hour is empty
    assert later["simulated_mean_wait_time"] - later["recorded_mean_wait_time"] == 3600


def test_intervals_hold_what_they_should():
    """Over many draws of a log of 30 weeks, nine in ten intervals of 90 % hold the true difference, roughly."""
    generator = np.random.default_rng(5)
    submit = np.arange(600) * 30 * WEEK / 600
    held = noise = 0
    for _ in range(60):
        weekly = np.repeat(generator.normal(0, 300, 30), 20)  # weeks differ more than jobs do
        base = generator.exponential(600, 600)
        found = difference_of_means(base, base + 100 + weekly, submit, confidence=0.9, resamples=300)
        held += found.low <= 100 <= found.high
        noise += found.is_noise
    assert 44 <= held <= 60
    assert noise > 5  # 100 s are not to be told from nothing so often


def test_equal_runs_differ_by_nothing_and_few_weeks_have_no_interval():
    submit = np.arange(100) * WEEK / 10
    values = np.arange(100.0)
    same = difference_of_means(values, values, submit)
    assert (same.difference, same.low, same.high, same.is_noise) == (0, 0, 0, True)
    short = difference_of_means(values, values + 1, submit / 10)
    assert (short.difference, short.low, short.is_noise, short.weeks) == (1, None, None, 1)
    tail = difference_of_quantiles(values, values + 5, submit, 0.95)
    assert tail.difference == 5
    assert tail.low == tail.high == 5
    weighted = difference_of_means(values, values + (values > 50) * 10, submit, weights=(values > 50) * 1.0)
    assert weighted.difference == 10


def test_quantiles_of_drawn_weeks_are_those_of_the_jobs_written_out():
    generator = np.random.default_rng(4)
    week = np.sort(generator.integers(0, 6, 500))
    values = np.round(generator.exponential(20, 500))  # with ties
    times = generator.integers(0, 4, (40, 6))
    for quantile in (0.0, 0.5, 0.95, 1.0):
        found = _quantiles(values, week, times, quantile)
        for draw, value in zip(times, found, strict=True):
            jobs = np.sort(np.repeat(values, draw[week]))
            assert value == (jobs[max(int(np.ceil(quantile * jobs.size)) - 1, 0)] if quantile else values.min())
