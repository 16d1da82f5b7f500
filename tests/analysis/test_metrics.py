"""Test metrics against plain loops over jobs."""

import numpy as np
import polars as pl
import pytest

from helpers.kernels import outcomes_of
from swflow.analysis.heatmap import ABOVE_1
from swflow.analysis.job_load import loads_of
from swflow.analysis.metrics import CORRELATED, MEASURES, METRICS, Middle, correlations, fairness_indices, metrics
from swflow.errors import SwflowError


def drawn(jobs: int) -> pl.DataFrame:
    """Return random outcomes."""
    rng = np.random.default_rng(5)
    table = pl.DataFrame({
        "job_id": np.arange(jobs), "submit_time": np.sort(rng.integers(0, 1000, jobs)).astype(float),
        "processors": rng.integers(1, 9, jobs),
    })  # fmt: skip
    run = pl.Series(rng.integers(0, 100, jobs).astype(float))
    wait = pl.Series(rng.integers(0, 500, jobs).astype(float))
    result = outcomes_of(table, table["submit_time"] + wait, run, pl.Series(rng.random(jobs) < 0.1))
    found = loads_of(result, 16)
    return result.with_columns(load=found.load, backlog_load=found.backlog_load)


def test_metrics_equal_plain_python():
    table = drawn(200)
    rows = table.to_dicts()
    figures = metrics(table, 16)
    area = [row["processors"] * row["run_time"] for row in rows]
    assert figures["jobs"] == 200
    assert figures["squashed_area"] == sum(area)
    span = max(row["end_time"] for row in rows) - min(row["submit_time"] for row in rows)
    assert figures["makespan"] == span
    assert figures["utilization"] == pytest.approx(sum(area) / (16 * span))
    assert figures["killed"] == sum(row["killed"] for row in rows)
    for name, column in {"awrt": "response_time", "awwt": "wait_time"}.items():
        weighted = sum(weight * row[column] for weight, row in zip(area, rows, strict=True)) / sum(area)
        assert figures[name] == pytest.approx(weighted)
    for measure in MEASURES:
        values = [row[measure] for row in rows if row[measure] is not None]
        assert figures[f"mean_{measure}"] == pytest.approx(np.mean(values))
        assert figures[f"median_{measure}"] == pytest.approx(np.median(values))
        assert figures[f"p95_{measure}"] == pytest.approx(np.quantile(values, 0.95))


def test_metrics_do_not_depend_on_the_origin_of_time():
    table = drawn(50)
    for later in (4096.0, -65536.0):
        moved = table.with_columns(pl.col("submit_time", "start_time", "end_time") + later)
        on_clock = {"last_end", "utilization_to_last_end"}
        found, before = metrics(moved, 16), metrics(table, 16)
        assert {name for name in found if found[name] != before[name]} == on_clock
        assert found["last_end"] == before["last_end"] + later


def test_upper_tails_leave_out_killed_jobs():
    table = drawn(200)
    for outcomes in (table, table.with_columns(killed=False), table.with_columns(killed=True)):
        figures = metrics(outcomes.lazy(), 16)
        alive = [row for row in outcomes.to_dicts() if not row["killed"]]
        waits = sorted(row["wait_time"] for row in alive)
        slow = sorted(max(1.0, row["response_time"] / max(row["run_time"], 60.0)) for row in alive)
        place = int(0.95 * len(alive))
        assert figures["p95_wait_time_unkilled"] == (waits[place] if alive else None)
        assert figures["p95_bounded_slowdown_60_unkilled"] == (slow[place] if alive else None)


def test_upper_tails_of_few_jobs():
    """The place of the 95th percentile of 1, 2 and 20 jobs is the last one, of 21 jobs the last but one."""
    for jobs, place in {1: 0, 2: 1, 20: 19, 21: 19}.items():
        table = drawn(jobs).with_columns(wait_time=pl.int_range(jobs).cast(pl.Float64), killed=False)
        figures = metrics(table.with_columns(response_time="run_time"), 16)
        assert (figures["p95_wait_time_unkilled"], figures["p95_bounded_slowdown_60_unkilled"]) == (place, 1)


def test_penalties_are_shares_of_the_run_times():
    table = drawn(3).with_columns(run_time=pl.Series([20.0, 10.0, 0.0]), penalty_time=pl.Series([5.0, 0.0, 0.0]))
    figures = metrics(table, 16)
    assert figures["penalized_percent"] == pytest.approx((100 * 5 / 15 + 0) / 2)  # a job without a run time has none
    assert figures["penalized_share_percent"] == pytest.approx((100 * 5 / 20 + 0) / 2)
    prolonged = metrics(table.with_columns(penalty_time=pl.col("run_time")), 16)
    assert (prolonged["penalized_percent"], prolonged["penalized_share_percent"]) == (None, 100)
    short = metrics(table.with_columns(run_time=pl.Series([0.5, 0.25, 0.0]), penalty_time=pl.lit(0.2)), 16)
    assert short["penalized_percent"] == pytest.approx(50 * (0.2 / 0.3 + 0.2 / 0.05))
    assert short["penalized_share_percent"] == pytest.approx(50 * (0.2 / 0.5 + 0.2 / 0.25))


def test_measures_of_the_released_simulator_are_of_run_times_without_penalties():
    """Job 1 of 120 s is prolonged by 30 s and waits for 240 s, job 2 is shorter than the bound, and job 3 is killed."""
    table = drawn(3).with_columns(
        run_time=pl.Series([150.0, 40.0, 300.0]), penalty_time=pl.Series([30.0, 10.0, 60.0]),
        wait_time=pl.Series([240.0, 0.0, 900.0]), killed=pl.Series([False, False, True]),
    ).with_columns(response_time=pl.col("wait_time") + pl.col("run_time"))  # fmt: skip
    figures = metrics(table, 16)
    assert figures["penalized_percent_unkilled"] == pytest.approx((100 * 30 / 120 + 100 * 10 / 30) / 2)
    assert figures["penalized_percent"] == pytest.approx((25 + 100 / 3 + 25) / 3)
    assert figures["p95_bounded_slowdown_60_unpenalized"] == (240 + 120) / 120
    assert figures["p95_bounded_slowdown_60_unkilled"] == (240 + 150) / 150
    killed = metrics(table.with_columns(killed=True), 16)
    assert (killed["penalized_percent_unkilled"], killed["p95_bounded_slowdown_60_unpenalized"]) == (None, None)


def test_correlations_equal_scipy():
    from scipy.stats import spearmanr

    table = drawn(300)
    known = table.filter(pl.col("slowdown").is_not_null())
    found = correlations(table)
    for measure in CORRELATED:
        assert found[measure] == pytest.approx(spearmanr(known["load"], known[measure]).statistic)


def test_correlations_state_the_number_of_jobs():
    table = drawn(300)
    found = correlations(table)
    assert found["jobs"] == table["slowdown"].drop_nulls().len() < 300
    assert found["above_1"] == table.filter(pl.col("slowdown").is_not_null() & (pl.col("load") > 1)).height > 0
    loads = pl.Series([ABOVE_1, np.nextafter(ABOVE_1, 2)])
    two = table.head(2).with_columns(load=loads, slowdown=pl.Series([3.0, 2.0]))
    assert correlations(two)["above_1"] == 1 and correlations(two)["slowdown"] == pytest.approx(-1)
    assert correlations(two.with_columns(load=pl.Series([0.5, 1.0])))["above_1"] == 0
    assert correlations(two.head(1)) == dict.fromkeys(CORRELATED) | {"jobs": 1, "above_1": 0}
    assert correlations(table.with_columns(wait_time=7.0))["wait_time"] is None
    nothing = correlations(table.with_columns(slowdown=None))
    assert nothing == dict.fromkeys(CORRELATED) | {"jobs": 0, "above_1": 0}


@pytest.mark.parametrize("amount", [{"warm_up": "30 weeks"}, {"cool_down": "all"}])
def test_a_warm_up_is_days_or_jobs(amount):
    with pytest.raises(SwflowError, match=f"{next(iter(amount))}: .*; expected days or jobs"):
        Middle(**amount)


def test_a_run_has_exactly_the_listed_metrics():
    table = drawn(20)
    jobs = table.select("job_id", user_id=pl.lit(1))
    assert (*metrics(table, 16), *fairness_indices(table, jobs)) == METRICS
