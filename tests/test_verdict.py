"""Verdicts: intervals that hold what they promise, corrections, and what runs and replicates say in the database."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from swflow.analysis import verdict
from swflow.analysis.comparison import compare
from swflow.analysis.heatmap import heatmap
from swflow.analysis.uncertainty import WEEK
from swflow.cli import main
from swflow.database import load
from swflow.errors import SwflowError
from swflow.jobs import Workload, write_workload
from swflow.machine import Machine
from swflow.power import power_of
from swflow.query import query
from swflow.runs import simulate_all


def run_of(generator, weeks=30, per_week=20, shift=0.0, weekly=None):
    """Draw a run: weeks differ more than their jobs do, by heavy tails."""
    jobs = weeks * per_week
    if weekly is None:
        weekly = np.repeat(generator.lognormal(6, 1, weeks), per_week)
    return pl.DataFrame(
        {
            "submit_time": np.sort(np.repeat(np.arange(weeks), per_week) + generator.random(jobs)) * WEEK,
            "load": generator.random(jobs),
            "wait_time": weekly * generator.exponential(1, jobs) + shift,
        }
    )


def estimates(first, second, measure="wait_time"):
    one, other = verdict.resample(first, measure), verdict.resample(second, measure)
    maps = [heatmap(run["load"].to_numpy(), run[measure].to_numpy()) for run in (first, second)]
    return verdict.score_of(one, other, compare(*maps).score), verdict.difference_of(one, other)


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(verdict, "DRAWS", 250)
    for drawn in (verdict._weights, verdict._exponential, verdict._drawn):
        drawn.cache_clear()
    yield
    for drawn in (verdict._weights, verdict._exponential, verdict._drawn):
        drawn.cache_clear()


def test_of_a_scheduler_with_itself_95_percent_of_the_intervals_hold_zero(few_draws):
    """Two draws of one population: 300 comparisons, whose share is within three standard errors of 95 %."""
    generator = np.random.default_rng(3)
    held = np.zeros(2)
    for _ in range(300):
        for place, found in enumerate(estimates(run_of(generator, per_week=8), run_of(generator, per_week=8))):
            low, high = found.interval
            held[place] += low <= 0 <= high
    assert (held >= 274).all() and (held <= 296).all()


def test_what_weeks_share_does_not_widen_the_interval():
    generator = np.random.default_rng(4)
    weekly = np.repeat(generator.lognormal(6, 1, 30), 20)
    first = run_of(generator, weekly=weekly)
    paired = first.with_columns(wait_time=first["wait_time"] + generator.normal(60, 20, first.height))
    score, mean = estimates(paired, first)
    assert mean.interval[0] < 60 < mean.interval[1]
    assert mean.interval[0] > 55 and mean.interval[1] < 65
    assert score.value < 0 and score.interval[1] < 0
    apart = estimates(run_of(generator), first)[1]
    assert apart.error > 20 * mean.error


def test_the_standard_error_is_that_of_the_weeks():
    """Of weeks of as many jobs each, it is the deviation of the weekly means over the root of their number."""
    generator = np.random.default_rng(5)
    first, second = run_of(generator, weeks=200), run_of(generator, weeks=200)
    means = [run["wait_time"].to_numpy().reshape(200, 20).mean(axis=1) for run in (first, second)]
    expected = (means[0] - means[1]).std(ddof=1) / np.sqrt(200)
    assert estimates(first, second)[1].error == pytest.approx(expected, rel=0.15)


def test_scores_of_draws_are_those_of_weighted_heatmaps():
    generator = np.random.default_rng(6)
    first, second = run_of(generator, weeks=6), run_of(generator, weeks=6, shift=100)
    ones = np.ones(verdict.DRAWS)
    with pytest.MonkeyPatch.context() as patch:  # every week counts once in every draw
        patch.setattr(verdict, "_weights", lambda week: ones)
        patch.setattr(verdict, "_BINS_PER_DECADE", 12)  # as heatmaps have
        verdict._drawn.cache_clear()
        one, other = (verdict.resample(run, "wait_time") for run in (first, second))
    verdict._drawn.cache_clear()
    maps = [heatmap(run["load"].to_numpy(), run["wait_time"].to_numpy()) for run in (first, second)]
    expected = compare(*maps).score
    below = (
        one.shares[0] * np.pad(other.ranks[0], ((0, 0), (0, 99)), constant_values=2)[:, : one.shares.shape[2]]
    ).sum(axis=1)
    assert ((one.weights[0] + other.weights[0]) / 2 * (1 - below)).sum() == pytest.approx(expected, abs=1e-5)
    assert one.means[0] == pytest.approx(first["wait_time"].mean())


def test_equal_runs_have_no_interval_and_few_weeks_none_either():
    generator = np.random.default_rng(7)
    run = run_of(generator)
    for found in estimates(run, run):
        assert found.equal and found.interval == (None, None) and found.p is None
        assert verdict.columns_of("score", found)["score_verdict"] == "equal"
    few = estimates(run_of(generator, weeks=3), run_of(generator, weeks=3))[1]
    assert few.interval == (None, None)
    assert verdict.columns_of("mean", few)["mean_verdict"] == "too few weeks"


def test_weeks_are_resampled_alike_whatever_is_compared_besides():
    generator = np.random.default_rng(8)
    run = run_of(generator)
    late = verdict.resample(run.filter(pl.col("submit_time") > 10 * WEEK), "wait_time")
    whole = verdict.resample(run, "wait_time")
    only_late = run.with_columns(wait_time=pl.when(pl.col("submit_time") > 10 * WEEK).then("wait_time"))
    assert np.allclose(verdict.resample(only_late, "wait_time").means, late.means)
    assert np.array_equal(verdict.resample(run, "wait_time").means, whole.means)


def test_what_measures_share_is_made_once_and_jobs_may_come_in_any_order():
    run = run_of(np.random.default_rng(11)).with_columns(
        wait_time=pl.when(pl.col("wait_time") > 50).then("wait_time"), load=pl.when(pl.col("load") > 0.1).then("load")
    )
    once = verdict.resample(verdict.by_weeks(run), "wait_time")
    for other in (run, run.sample(fraction=1, shuffle=True, seed=1)):
        again = verdict.resample(other, "wait_time")
        for name in ("weeks", "jobs", "weights", "shares", "counts"):
            assert np.array_equal(getattr(once, name), getattr(again, name)), name
        assert np.allclose(once.means, again.means, rtol=1e-12)


def test_holm_is_its_definition():
    generator = np.random.default_rng(9)
    p = list(generator.random(20) ** 3)
    adjusted = verdict.holm(p)
    order = np.argsort(p)
    for rank, place in enumerate(order):
        expected = max(min(1, p[other] * (20 - earlier)) for earlier, other in enumerate(order[: rank + 1]))
        assert adjusted[place] == pytest.approx(expected)
    # of 20 true nulls, some are below 5 % most of the time, and one in twenty times after the correction
    found = sum(min(verdict.holm(list(generator.random(20)))) < 0.05 for _ in range(1000))
    assert 25 <= found <= 80


def test_the_correction_takes_a_verdict_back():
    def row(name, p, score):
        columns = {f"{part}_{key}": None for part in ("score", "mean") for key in ("p_holm", "verdict")}
        return columns | {
            "first": name, "second": "b", "family": "f", "score": score, "mean_difference": -score, "score_p": p,
            "mean_p": p, "first_wins": 1.0, "second_wins": 0.0,
        }  # fmt: skip

    alone = [row("a", 0.04, 0.5)]
    verdict.correct(alone)
    assert (alone[0]["score_verdict"], alone[0]["mean_verdict"], alone[0]["better"]) == ("first is better",) * 2 + (
        "a",
    )
    two = [row("a", 0.04, 0.5), row("c", 0.001, -0.5)]
    two[1] |= {"first_wins": 0.0, "second_wins": 1.0}
    verdict.correct(two)
    assert [(one["score_p_holm"], one["family_size"]) for one in two] == [(0.04, 2), (0.002, 2)]
    many = [row(str(number), 0.04, 0.5) for number in range(3)]
    verdict.correct(many)
    assert {one["mean_verdict"] for one in many} == {"no difference"} and {one["better"] for one in many} == {None}


def test_the_power_is_the_share_of_samples_that_show_the_difference():
    found, effect = verdict.Estimate(0.0, 12.0, 25, 24), 20.0
    needed = verdict.blocks_needed(found, effect)
    generator = np.random.default_rng(10)
    drawn = generator.normal(effect, 12.0 * np.sqrt(25), (4000, needed))
    shown = (np.abs(stats.ttest_1samp(drawn, 0, axis=1).statistic) > stats.t.ppf(0.975, needed - 1)).mean()
    assert shown == pytest.approx(0.8, abs=0.03)
    assert verdict.smallest_difference(found, needed) <= effect < verdict.smallest_difference(found, needed - 1)
    assert verdict.blocks_needed(found, 0.0) is None


SCHEDULERS = {"easy": {"backfill": "easy"}, "same": {"backfill": "easy", "lookahead": 1}, "fcfs": {}}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Make runs of ten weeks, and of three replicates of another workload."""
    folder = tmp_path_factory.mktemp("verdicts")
    for name, seed in (("A", 1), ("A+drawn@1", 2), ("A+drawn@2", 3), ("A+drawn@3", 4)):
        generator = np.random.default_rng(seed)
        jobs = 400
        run = generator.integers(1, 30000, jobs).astype(float)
        table = pl.DataFrame(
            {
                "job_id": range(1, jobs + 1), "submit_time": np.sort(generator.integers(0, int(10 * WEEK), jobs)) * 1.0,
                "run_time": run, "estimate": run * 3, "processors": generator.integers(1, 9, jobs),
            }
        )  # fmt: skip
        write_workload(Workload(table, Machine.of(8), name), folder / f"{name}.parquet")
        simulate_all(folder / f"{name}.parquet", SCHEDULERS, folder / "runs" / name)
    load([folder / "runs"], folder / "d.duckdb")
    return folder / "d.duckdb"


def test_the_database_says_what_is_sure(database):
    sql = "SELECT * FROM comparisons WHERE measure = 'wait_time' ORDER BY first, second"
    columns, rows = query(database, sql)
    rows = {(row["first"], row["second"]): row for row in (dict(zip(columns, row, strict=True)) for row in rows)}
    same = rows["A/easy", "A/same"]
    assert (same["score_verdict"], same["mean_verdict"], same["score_low"], same["mean_p"]) == (
        "equal",
        "equal",
        None,
        None,
    )
    sure = rows["A/easy", "A/fcfs"]
    assert sure["basis"] == "weeks" and sure["blocks"] == 10
    assert sure["score_low"] <= sure["score"] <= sure["score_high"]
    assert sure["mean_low"] <= sure["mean_difference"] <= sure["mean_high"] < 0
    assert (sure["mean_verdict"], sure["family"], sure["family_size"]) == ("first is better", "A, wait_time, weeks", 2)
    assert sure["mean_p_holm"] == pytest.approx(sure["mean_p"] * 2)
    together = rows["A+drawn/easy", "A+drawn/fcfs"]
    each = [rows[f"A+drawn@{number}/easy", f"A+drawn@{number}/fcfs"] for number in (1, 2, 3)]
    values = [row["mean_difference"] for row in each]
    interval = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (together["basis"], together["blocks"], together["family"]) == ("replicates", 3, "A, wait_time, replicates")
    assert (together["mean_low"], together["mean_high"]) == pytest.approx(interval)
    assert {row["family"] for row in each} == {f"A, wait_time, weeks of replicate {number}" for number in (1, 2, 3)}


def test_a_later_load_says_what_a_whole_one_says(database, tmp_path):
    """Runs that come later join the families; what is taken away leaves them."""
    runs = sorted((database.parent / "runs").glob("*/*.parquet"))
    few = [file for file in runs if file.stem != "fcfs"]
    load(few, tmp_path / "d.duckdb")
    before = query(tmp_path / "d.duckdb", "FROM comparisons")
    load(runs, tmp_path / "d.duckdb")
    assert query(tmp_path / "d.duckdb", "FROM comparisons") == query(database, "FROM comparisons")
    load(few, tmp_path / "d.duckdb")
    assert query(tmp_path / "d.duckdb", "FROM comparisons") == before


def test_power_by_weeks_and_by_replicates(database, capsys):
    found = {one.measure: one for one in power_of("A/easy", "A/fcfs", [10, 50], 0.8, database)}
    of_files = power_of(
        *(str(database.parent / f"runs/A/{name}.parquet") for name in ("easy", "fcfs")), [10], 0.8, database
    )
    wait = found["wait_time"]
    assert (wait.basis, wait.blocks) == ("weeks", 10)
    assert wait.difference.value == pytest.approx(of_files[0].difference.value)
    assert wait.difference.value == pytest.approx(wait.second - wait.first)
    assert wait.needed[10] > wait.needed[50] > 1
    drawn = power_of("A+drawn/easy", "A+drawn/fcfs", [10], 0.8, database)
    assert (drawn[0].basis, drawn[0].blocks) == ("replicates", 3)
    with pytest.raises(SystemExit):
        main(["power", "A/easy", "A/fcfs", "--database", str(database), "--percent", "5"])
    shown = capsys.readouterr()
    assert "for 5 %" in shown.out and "10 weeks" in shown.out + shown.err


@pytest.mark.parametrize(
    ("first", "second", "percents", "power", "says"),
    [
        ("A/easy", "A/same", [5], 0.8, "are equal, job by job"),
        ("A/easy", "B/easy", [5], 0.8, "no such run in"),
        ("A/easy", "A/fcfs", [0], 0.8, "--percent: 0 is not a difference above 0"),
        ("A/easy", "A/fcfs", [5], 1.0, "--power: 1 is not a probability"),
        ("A+drawn/easy", "A+drawn/none", [5], 0.8, "0 draws in common"),
    ],
)
def test_what_has_no_answer_is_one_line(database, first, second, percents, power, says):
    with pytest.raises(SwflowError, match=says) as error:
        power_of(first, second, percents, power, database)
    assert "\n" not in str(error.value)
