"""Test fairness and fidelity against manual results on small tables and definitions on random ones."""

import numpy as np
import polars as pl
import pytest

from swflow.analysis.fidelity import fidelity
from swflow.analysis.metrics import fairness_indices, fairness_table, gini_coefficient, jain_index

OUTCOMES = pl.DataFrame(
    {
        "job_id": [1, 2, 3, 4], "wait_time": [0.0, 10.0, 20.0, 100.0], "bounded_slowdown": [1.0, 2.0, 3.0, 9.0],
        "processors": [1, 1, 2, 4], "run_time": [10.0, 30.0, 20.0, 10.0],
    }
)  # fmt: skip
JOBS = pl.DataFrame({"job_id": [1, 2, 3, 4], "user_id": [1, 1, 2, None], "group_id": [5, 5, 5, 6]})


def test_users_and_groups_of_a_small_table():
    table = fairness_table(OUTCOMES, JOBS)
    rows = table.select("kind", "id", "jobs", "mean_wait_time", "mean_bounded_slowdown", "use_share").rows()
    assert rows == [
        ("user", 1, 2, 5, 1.5, 4 / 12), ("user", 2, 1, 20, 3, 4 / 12),
        ("group", 5, 3, 10, 2, 8 / 12), ("group", 6, 1, 100, 9, 4 / 12),
    ]  # fmt: skip
    assert table["p95_wait_time"].to_list() == [9.5, 20, 19, 100]
    assert table["p95_bounded_slowdown"].to_list() == pytest.approx([1.95, 3, 2.9, 9])
    assert fairness_table(OUTCOMES, JOBS.reverse()).equals(table)
    assert fairness_table(OUTCOMES, JOBS.drop("user_id")).equals(table.filter(kind="group"))
    assert fairness_table(OUTCOMES, JOBS.drop("user_id", "group_id")).is_empty()
    indices = fairness_indices(OUTCOMES, JOBS)
    assert indices == {"jain_wait_time": pytest.approx(25**2 / (2 * 425)), "gini_wait_time": pytest.approx(0.3)}
    assert fairness_indices(OUTCOMES, JOBS.drop("user_id")) == {"jain_wait_time": None, "gini_wait_time": None}


def test_indices_equal_their_definitions():
    values = np.random.default_rng(1).exponential(size=40)
    differences = np.abs(values[:, None] - values[None, :]).mean()
    assert gini_coefficient(values) == pytest.approx(differences / (2 * values.mean()))
    assert jain_index(values) == pytest.approx(values.mean() ** 2 / (values**2).mean())
    for unit in (1e-6, 1e6):
        assert gini_coefficient(unit * values) == pytest.approx(gini_coefficient(values))
        assert jain_index(unit * values) == pytest.approx(jain_index(values))
    assert gini_coefficient(np.zeros(3)) == 0
    assert jain_index(np.zeros(3)) == 1
    assert gini_coefficient(np.empty(0)) is jain_index(np.empty(0)) is None


def test_the_order_of_the_jobs_does_not_change_the_last_bit():
    rng = np.random.default_rng(2)
    table = {name: rng.exponential(size=300) for name in ("wait_time", "bounded_slowdown", "run_time")}
    outcomes = pl.DataFrame({"job_id": np.arange(300), "processors": rng.integers(1, 9, 300)} | table)
    jobs = pl.DataFrame({"job_id": np.arange(300), "user_id": rng.integers(0, 4, 300)})
    for other in (jobs.reverse(), jobs.sample(fraction=1, shuffle=True, seed=1)):
        assert fairness_table(outcomes, other).equals(fairness_table(outcomes, jobs))
        assert fairness_indices(outcomes, other) == fairness_indices(outcomes, jobs)


def schedule(*starts: float, run: float = 3600.0) -> pl.DataFrame:
    """Return the outcomes of jobs of 2 processors submitted at time 0."""
    jobs = len(starts)
    return pl.DataFrame(
        {
            "job_id": range(1, jobs + 1), "submit_time": [0.0] * jobs, "start_time": starts, "run_time": [run] * jobs,
            "processors": [2] * jobs, "wait_time": starts, "load": [0.5] * jobs,
        }
    )  # fmt: skip


def test_fidelity_of_a_small_table():
    recorded = schedule(0.0, 3600.0, 7200.0, 10800.0)
    found = fidelity(recorded, schedule(0.0, 7200.0, 3600.0, 10830.0), 4)
    assert found["jobs"] == 4
    assert found["start_order"] == 0.5  # the second and the third job swap places; the first one does not wait
    assert found["started_alike"] == 0.5
    assert found["wait_difference"] == pytest.approx(30 / 4)
    assert found["wait_distance"] == 0.25
    assert found["utilization_difference"] == pytest.approx(0.5 * (30 / 3600) / 4, rel=1e-6)
    later = fidelity(recorded, schedule(*[start + 3600 for start in (0.0, 3600.0, 7200.0, 10800.0)]), 4)
    assert later["started_alike"] == 0
    assert later["start_order"] == 1
    assert later["utilization_difference"] == pytest.approx(0.5 / 4)  # the first hour is empty
    assert later["simulated_mean_wait_time"] - later["recorded_mean_wait_time"] == 3600


def test_simultaneous_starts_in_the_simulation_do_not_agree_with_the_recorded_order():
    recorded = schedule(0.0, 3600.0, 7200.0, 10800.0)
    assert fidelity(recorded, schedule(0.0, 5.0, 5.0, 5.0), 4)["start_order"] == 0
    assert fidelity(recorded, schedule(0.0, 5.0, 5.0, 7.0), 4)["start_order"] == 0.5
    assert fidelity(schedule(0.0, 5.0, 5.0, 7.0), recorded, 4)["start_order"] == 1  # recorded ties are left out


def test_the_utilization_is_compared_to_the_last_recorded_end():
    recorded = schedule(0.0, 0.0)
    assert fidelity(recorded, schedule(0.0, 36000.0), 4)["utilization_difference"] == 0.5  # the first hour
