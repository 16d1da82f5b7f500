"""Test verdicts: coverage of intervals, corrections, and comparisons of runs and replicates in the database."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from swflow.analysis import intervals, multiple_testing, resampling, sample_size, verdicts
from swflow.analysis.comparison import compare
from swflow.analysis.heatmap import heatmap
from swflow.analysis.long_run import _kernel, long_run_error, student
from swflow.analysis.metrics import Middle
from swflow.cli import main
from swflow.database.comparisons import STATISTICS
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.studies.power import power_of
from swflow.studies.runs import simulate_all
from swflow.studies.variants import variants
from swflow.studies.whatif import ask
from swflow.values import WEEK
from swflow.workload.clean import open_workload


def run_of(generator, weeks=30, per_week=20, shift=0.0, weekly=None):
    """Return a random run in which weeks differ more than the jobs within them, with heavy tails."""
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
    distributions = (resampling.distribution_of(run, measure) for run in (first, second))
    means = (resampling.mean_of(run, measure) for run in (first, second))
    return intervals.score_of(*distributions), intervals.difference_of(*means)


def test_95_percent_of_the_intervals_contain_zero_for_equal_schedulers():
    """
    Compare 200 pairs of samples of one population: the share is within three standard errors.

    It is 95 % for scores, and at least that for means of unpaired weeks with tails as heavy as these.
    """
    generator = np.random.default_rng(3)
    held = np.zeros(2)
    for _ in range(200):
        for place, found in enumerate(estimates(run_of(generator, per_week=8), run_of(generator, per_week=8))):
            low, high = found.interval
            held[place] += low <= 0 <= high
    assert 181 <= held[0] <= 199 and 184 <= held[1] <= 200


def test_a_common_effect_of_weeks_does_not_widen_the_interval():
    generator = np.random.default_rng(4)
    weekly = np.repeat(generator.lognormal(6, 1, 30), 20)
    base = run_of(generator, weekly=weekly)
    paired = base.with_columns(wait_time=1.1 * base["wait_time"] + generator.random(base.height))
    score, mean = estimates(paired, base)
    low, high = (bound / base["wait_time"].mean() for bound in mean.interval)
    assert 0.1 < low < high < 0.11
    assert score.value < 0 and score.interval[1] < 0
    apart = estimates(run_of(generator), base)[1]
    assert apart.error > 20 * mean.error


def test_the_standard_error_is_that_of_the_weeks():
    """For weeks of equal size, it is the deviation of the weekly effects on the ratio, over the root of their count."""
    generator = np.random.default_rng(5)
    variant, base = run_of(generator, weeks=200), run_of(generator, weeks=200)
    means = [run["wait_time"].to_numpy().reshape(200, 20).mean(axis=1) for run in (variant, base)]
    expected = (means[0] / means[0].mean() - means[1] / means[1].mean()).std(ddof=1) / np.sqrt(200)
    assert estimates(variant, base)[1].error == pytest.approx(expected, rel=0.15)


def test_weeks_that_depend_on_each_other_widen_the_interval():
    """With the error of independent weeks, a third of the intervals of an autoregressive process miss its mean."""
    generator = np.random.default_rng(21)
    held, independent = 0, 0
    for _ in range(300):
        noise = generator.normal(size=240)
        values = np.zeros(240)
        for place in range(1, 240):
            values[place] = 0.8 * values[place - 1] + noise[place]
        weeks = np.arange(40)
        sample = values[200:]
        found = long_run_error((sample - sample.mean()) / 40, weeks)
        held += abs(sample.mean()) <= found.half
        independent += abs(sample.mean()) <= student(39) * sample.std(ddof=1) / np.sqrt(40)
    assert independent < 210 and held >= 264


def test_the_kernel_is_unbiased_for_independent_weeks():
    """The squared error of independent normal weeks is the variance of their mean, and varies as its freedom says."""
    generator = np.random.default_rng(22)
    weeks = np.array([0, 1, 2, 3, 5, 6, 9, 10, 11, 12, 13, 20])
    kernel, scale, freedom = _kernel(weeks.tobytes(), 4.0)
    samples = generator.normal(size=(20000, weeks.size)) / weeks.size
    centered = samples - samples.mean(axis=1, keepdims=True)
    squares = np.einsum("si,ij,sj->s", centered, kernel, centered) / scale
    assert squares.mean() == pytest.approx(1 / weeks.size, rel=0.02)
    assert 2 * squares.mean() ** 2 / squares.var() == pytest.approx(freedom, rel=0.05)
    assert np.linalg.eigvalsh(kernel).min() > -1e-9


def test_a_week_with_most_of_the_waits_does_not_decide():
    """Its influence by a linear expansion is at most 1, but without it the ratio changes by a factor of ten."""
    generator = np.random.default_rng(23)
    base = run_of(generator, weeks=12, weekly=np.full(240, 100.0))
    factor = np.ones(240)
    factor[60:80] = 500.0
    found = estimates(base.with_columns(wait_time=pl.col("wait_time") * pl.lit(factor)), base)[1]
    assert found.verdict() == "not distinguishable" and found.is_uneven


def test_the_interval_never_ends_below_minus_100_percent():
    """The interval of the difference itself ended at -134 % of the base."""
    generator = np.random.default_rng(16)
    base = run_of(generator, weeks=8)
    factors = np.repeat([1.0, 1, 1, 1, 0.01, 1, 1, 1], 20)
    variant = base.with_columns(wait_time=pl.col("wait_time") * pl.lit(factors))
    found = estimates(variant, base)[1]
    low, high = found.interval
    assert -base["wait_time"].mean() < low < found.value < high
    assert (found.verdict() == "not distinguishable") == (found.p > 0.05) == (low <= 0 <= high)


def test_the_verdict_does_not_depend_on_which_run_is_the_base():
    generator = np.random.default_rng(17)
    variant, base = run_of(generator, weeks=9), run_of(generator, weeks=9, shift=300.0)
    found, exchanged = estimates(variant, base)[1], estimates(base, variant)[1]
    assert found.p == pytest.approx(exchanged.p)
    ratios = [1 + bound / base["wait_time"].mean() for bound in found.interval]
    inverse = [1 / (1 + bound / variant["wait_time"].mean()) for bound in exchanged.interval]
    assert ratios == pytest.approx(inverse[::-1])


@pytest.mark.parametrize("has_waits", [(False, True), (True, False), (False, False)])
def test_a_mean_of_0_has_no_ratio(has_waits):
    """The interval is that of the difference, at least -100 %; two runs without waits are equal."""
    run = run_of(np.random.default_rng(18), weeks=12, weekly=np.full(240, 600.0))
    variant, base = (run.with_columns(wait_time=pl.col("wait_time") * waits) for waits in has_waits)
    found = estimates(variant, base)[1]
    mean = run["wait_time"].mean()
    if not any(has_waits):
        assert found.equal and found.value == 0 and found.interval == (None, None)
    else:
        sign = 1 if has_waits[0] else -1
        low, high = sorted(abs(bound) for bound in found.interval)
        assert found.value == pytest.approx(sign * mean) and 0 < low < mean
        assert high > mean if sign > 0 else high == pytest.approx(mean)
        assert found.verdict() == ("base is better" if sign > 0 else "variant is better") and found.p < 0.05


def test_a_score_compares_jobs_not_heatmap_cells():
    """If the values of two runs share heatmap cells, the score by cells is 0, the score by jobs is 1."""
    generator = np.random.default_rng(6)
    first = run_of(generator, weeks=6).with_columns(wait_time=100 + pl.lit(generator.random(120)))
    second = first.with_columns(wait_time=pl.col("wait_time") + 1)
    maps = [heatmap(run["load"].to_numpy(), run["wait_time"].to_numpy()) for run in (first, second)]
    assert compare(*maps).score == 0
    assert estimates(first, second)[0].value == 1


def test_the_score_equals_its_definition():
    """P(first is smaller) minus P(second is smaller) over all pairs of jobs in a tenth of the load, with ties."""
    generator = np.random.default_rng(13)
    first, second = (
        run_of(generator, weeks=5).with_columns(pl.col("wait_time") // 100, load=pl.col("load") * top)
        for top in (0.7, 1.0)
    )
    score = 0.0
    for tenth in range(10):
        parts = [
            run.filter((pl.col("load") >= tenth / 10) & (pl.col("load") < (tenth + 1) / 10))["wait_time"].to_numpy()
            for run in (first, second)
        ]
        if all(part.size for part in parts):
            sign = np.sign(parts[1][None, :] - parts[0][:, None]).mean()
            score += sign * (parts[0].size / first.height + parts[1].size / second.height) / 2
    assert estimates(first, second)[0].value == pytest.approx(score, abs=1e-12)
    assert estimates(second, first)[0].value == pytest.approx(-score, abs=1e-12)


def test_a_statistic_without_a_week_is_that_of_the_other_jobs():
    generator = np.random.default_rng(6)
    run = run_of(generator, weeks=6).with_columns(run_time=pl.lit(generator.random(120)), processors=pl.lit(3))
    run = run.with_columns(wait_time=pl.col("wait_time") // 10)  # with ties
    weeks = (run["submit_time"] // WEEK).cast(pl.Int64)

    def expected(jobs):
        area = jobs["run_time"] * 3
        return {
            "mean_wait_time": jobs["wait_time"].mean(),
            "awwt": (area * jobs["wait_time"]).sum() / area.sum(),
            "p95_wait_time": np.quantile(jobs["wait_time"], 0.95, method="inverted_cdf"),
            "median_wait_time": np.quantile(jobs["wait_time"], 0.5, method="inverted_cdf"),
        }

    for name, whole in expected(run).items():
        found = resampling.statistic(run, name)
        assert found.whole == pytest.approx(whole), name
        for week, without in zip(found.weeks, found.without, strict=True):
            assert without == pytest.approx(expected(run.filter(weeks != week))[name]), name
    assert resampling.statistic(run, "p95_wait_time").value == pytest.approx(run["wait_time"].quantile(0.95, "linear"))


def test_each_run_is_weighted_by_its_own_areas():
    """With the areas of the base as weights, the difference in AWRT would have the opposite sign."""
    generator = np.random.default_rng(15)
    base = run_of(generator, weeks=8).with_columns(processors=pl.lit(1), run_time=pl.lit(1.0))
    narrow = pl.col("wait_time") > pl.col("wait_time").median()
    other = base.with_columns(run_time=pl.when(narrow).then(0.01).otherwise(1.0), wait_time=pl.col("wait_time") + 10)
    found = intervals.difference_of(resampling.statistic(other, "awwt"), resampling.statistic(base, "awwt"))
    area = other["run_time"]
    expected = (area * other["wait_time"]).sum() / area.sum() - base["wait_time"].mean()
    assert found.value == pytest.approx(expected) and found.value < 0
    assert ((other["wait_time"] - base["wait_time"]) > 0).all()


def test_equal_runs_have_no_interval_and_few_weeks_none_either():
    generator = np.random.default_rng(7)
    run = run_of(generator)
    for found in estimates(run, run):
        assert found.equal and found.interval == (None, None) and found.p is None
        assert multiple_testing.columns_of("score", found)["score_verdict"] == "equal"
    single = run.filter(pl.col("submit_time") < WEEK)
    assert intervals.difference_of(*[resampling.mean_of(single, "wait_time")] * 2).verdict() == "equal"
    few = estimates(run_of(generator, weeks=7), run_of(generator, weeks=7))[1]
    assert few.interval == (None, None)
    assert multiple_testing.columns_of("mean", few)["mean_verdict"] == "cannot tell: too few weeks"


def test_dependence_as_long_as_the_log_is_a_reason_not_to_tell():
    """A difference that drifts over ten weeks has one rise, whose probability no variance of these weeks shows."""
    weeks = np.arange(10)
    drifting = intervals._estimate(0.5, 0.1 * weeks - 0.45, weeks, False)
    assert drifting.is_dependent and drifting.verdict() == "cannot tell: dependent weeks"
    columns = multiple_testing.columns_of("mean", drifting)
    assert multiple_testing.corrected(columns["mean_verdict"], 0.8) == "cannot tell: dependent weeks"
    alternating = intervals._estimate(0.02, np.tile([1.0, -1.0], 5), weeks, False)
    assert not alternating.is_dependent and alternating.verdict() == "not distinguishable"
    decided = intervals._estimate(500.0, 0.1 * weeks - 0.45, weeks, False)
    assert decided.is_dependent and decided.verdict() == "base is better"


def test_resampling_does_not_depend_on_the_compared_runs():
    generator = np.random.default_rng(8)
    run = run_of(generator)
    late = resampling.mean_of(run.filter(pl.col("submit_time") > 10 * WEEK), "wait_time")
    whole = resampling.mean_of(run, "wait_time")
    only_late = run.with_columns(wait_time=pl.when(pl.col("submit_time") > 10 * WEEK).then("wait_time"))
    assert np.allclose(resampling.mean_of(only_late, "wait_time").without, late.without)
    assert np.array_equal(resampling.mean_of(only_late, "wait_time").weeks, late.weeks)
    assert np.array_equal(resampling.mean_of(run, "wait_time").without, whole.without)


def test_weeks_start_with_the_log_not_with_the_first_job():
    run = pl.DataFrame({"submit_time": np.array([0.5, 1.2, 2.2]) * WEEK, "wait_time": [1.0, 2.0, 3.0]})
    assert resampling.mean_of(run, "wait_time").weeks.tolist() == [0, 1, 2]


def test_the_order_of_jobs_does_not_matter():
    run = run_of(np.random.default_rng(11)).with_columns(
        wait_time=pl.when(pl.col("wait_time") > 50).then("wait_time"), load=pl.when(pl.col("load") > 0.1).then("load")
    )
    shuffled = run.sample(fraction=1, shuffle=True, seed=1)
    once, again = (resampling.distribution_of(one, "wait_time") for one in (resampling.by_weeks(run), shuffled))
    for name in ("weeks", "by_week"):
        assert np.array_equal(getattr(once, name), getattr(again, name)), name
    found = intervals.difference_of(resampling.mean_of(run, "wait_time"), resampling.mean_of(shuffled, "wait_time"))
    assert found.equal and intervals.score_of(once, again).equal


def test_holm_equals_its_definition():
    generator = np.random.default_rng(9)
    p = list(generator.random(20) ** 3)
    adjusted = multiple_testing.holm(p)
    order = np.argsort(p)
    for rank, place in enumerate(order):
        expected = max(min(1, p[other] * (20 - earlier)) for earlier, other in enumerate(order[: rank + 1]))
        assert adjusted[place] == pytest.approx(expected)
    # with 20 true null hypotheses, some p-values are usually below 5 %, after the correction in 5 % of the trials
    found = sum(min(multiple_testing.holm(list(generator.random(20)))) < 0.05 for _ in range(1000))
    assert 25 <= found <= 80


def test_the_correction_can_revoke_a_verdict():
    def row(name, p, score):
        columns = {f"{part}_{key}": None for part in ("score", "mean") for key in ("p_holm", "verdict_holm")}
        own = "variant is better" if score > 0 else "base is better"
        return columns | {
            "score_verdict": own, "mean_verdict": own,
            "variant": name, "base": "b", "family": "f", "score": score, "mean_difference": -score, "score_p": p,
            "mean_p": p, "variant_wins": 1.0, "base_wins": 0.0,
        }  # fmt: skip

    alone = [row("a", 0.04, 0.5)]
    multiple_testing.correct(alone)
    assert (alone[0]["score_verdict_holm"], alone[0]["mean_verdict_holm"], alone[0]["better"]) == (
        "variant is better",
    ) * 2 + ("a",)
    two = [row("a", 0.04, 0.5), row("c", 0.001, -0.5)]
    two[1] |= {"variant_wins": 0.0, "base_wins": 1.0}
    multiple_testing.correct(two)
    assert [(one["score_p_holm"], one["family_size"]) for one in two] == [(0.04, 2), (0.002, 2)]
    many = [row(str(number), 0.04, 0.5) for number in range(3)]
    multiple_testing.correct(many)
    assert {one["mean_verdict"] for one in many} == {"variant is better"}  # without correction
    assert {one["mean_verdict_holm"] for one in many} == {"not distinguishable"} and {
        one["better"] for one in many
    } == {None}


@pytest.mark.parametrize(
    ("variant_wins", "base_wins", "score", "expected"),
    [
        (0.6, 0.1, 0.5, "a"), (0.1, 0.6, -0.5, "b"), (0.6, 0.1, -0.5, None), (0.1, 0.6, 0.5, None),
        (0.5, 0.1, 0.5, None), (0.1, 0.5, -0.5, None),
    ],
)  # fmt: skip
def test_the_better_run_wins_most_jobs_and_the_score(variant_wins, base_wins, score, expected):
    own = intervals.Estimate(score, 0.01, 30, 20)
    row = {
        "variant": "a", "base": "b", "family": "f", "score": score, "mean_difference": -score,
        "variant_wins": variant_wins, "base_wins": base_wins,
    }  # fmt: skip
    row |= multiple_testing.columns_of("score", own) | multiple_testing.columns_of("mean", own)
    multiple_testing.correct([row])
    assert row["better"] == expected


def test_a_difference_of_exactly_0_is_not_distinguishable():
    for smaller_is_better in (True, False):
        assert verdicts.better(0.0, smaller_is_better) == verdicts.NOT_DISTINGUISHABLE
    assert verdicts.better(1.0, True) == verdicts.better(-1.0, False) == verdicts.WORSE
    assert verdicts.better(0.5, False) == verdicts.BETTER


def test_jobs_without_a_load_or_value_do_not_count():
    run = run_of(np.random.default_rng(19))
    gaps = run.with_columns(load=pl.when(pl.col("wait_time") > 300).then("load"))
    gaps = gaps.with_columns(wait_time=pl.when(pl.col("load").is_null() | (pl.col("load") > 0.1)).then("wait_time"))
    known = gaps.drop_nulls()
    assert 0 < known.height < run.height
    once, again = (resampling.distribution_of(one, "wait_time") for one in (gaps, known))
    for name in ("weeks", "by_week"):
        assert np.array_equal(getattr(once, name), getattr(again, name)), name
    assert intervals.score_of(once, again).equal
    nothing = resampling.distribution_of(run.clear(), "wait_time")
    assert nothing.weeks.size == 0 and nothing.by_week.shape == (0, 10, 1)
    assert intervals.score_of(nothing, once).value == 0


def test_differences_without_a_ratio():
    apart = intervals.of_interval(-30.0, -0.9, 0.2, 20, 7.5, 30.0)
    assert apart.error * student(7.5) == pytest.approx(30 * 1.1 / 2)
    assert not intervals.of_interval(-10.0, -1.0, 0.2, 20, 7.5, 30.0).is_ratio
    assert not intervals.of_interval(-30.0, -0.9, 0.2, 20, 7.5, 30.0).is_ratio
    assert intervals.of_interval(-29.0, -0.99, 0.2, 20, 7.5, 30.0).is_ratio
    assert intervals.difference_over_replicates([]).blocks == 0
    assert intervals.difference_over_replicates([(0.1, 0.2), (0.2, 0.5), (0.3, 0.4)]).is_ratio
    assert not intervals.difference_over_replicates([(0.0, 0.2), (0.0, 0.5), (0.3, 0.4)]).is_ratio


def test_the_power_is_the_share_of_samples_that_show_the_difference():
    found, effect = intervals.Estimate(0.0, 12.0, 25, 24), 20.0
    needed = sample_size.blocks_needed(found, effect)
    generator = np.random.default_rng(10)
    drawn = generator.normal(effect, 12.0 * np.sqrt(25), (4000, needed))
    shown = (np.abs(stats.ttest_1samp(drawn, 0, axis=1).statistic) > stats.t.ppf(0.975, needed - 1)).mean()
    assert shown == pytest.approx(0.8, abs=0.03)
    assert sample_size.smallest_difference(found, needed) <= effect < sample_size.smallest_difference(found, needed - 1)
    assert sample_size.blocks_needed(found, 0.0) is None
    assert sample_size.blocks_needed(intervals.Estimate(20.0, 0.0, 25, 24), effect) == 2
    assert sample_size.blocks_needed(found, 1e-9) is None
    assert sample_size.smallest_difference(found, 25) == pytest.approx(
        12.0 * (stats.t.ppf(0.975, 24) + stats.t.ppf(0.8, 24))
    )


SCHEDULERS = {"easy": {"backfill": "easy"}, "same": {"backfill": "easy", "reservations": 1}, "fcfs": {}}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Build a database: runs of 10 weeks, 3 replicates of another workload, and 2 equal replicates."""
    folder = tmp_path_factory.mktemp("verdicts")
    names = {"A": 1, "A+drawn@1": 2, "A+drawn@2": 3, "A+drawn@3": 4, "A+fixed@1": 5, "A+fixed@2": 5}
    for name, seed in names.items():
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


def test_the_database_contains_corrected_verdicts(database):
    sql = "SELECT * FROM comparisons WHERE measure = 'wait_time' ORDER BY variant, base"
    columns, rows = query(database, sql)
    rows = {(row["variant"], row["base"]): row for row in (dict(zip(columns, row, strict=True)) for row in rows)}
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
    assert (sure["mean_verdict"], sure["family"], sure["family_size"]) == (
        "variant is better",
        "runs: A, wait_time, weeks",
        2,
    )
    assert sure["mean_p_holm"] == pytest.approx(sure["mean_p"] * 2)
    together = rows["A+drawn/easy", "A+drawn/fcfs"]
    each = [rows[f"A+drawn@{number}/easy", f"A+drawn@{number}/fcfs"] for number in (1, 2, 3)]
    means = np.array([[row["variant_mean"], row["base_mean"]] for row in each])
    left = np.log(np.divide(*np.array([np.delete(means, number, axis=0).sum(axis=0) for number in range(3)]).T))
    ratio = stats.t.interval(
        0.95, 2, np.log(np.divide(*means.sum(axis=0))), np.sqrt(2 / 3 * ((left - left.mean()) ** 2).sum())
    )
    interval = means[:, 1].mean() * np.expm1(ratio)
    assert together["mean_difference"] == pytest.approx(np.subtract(*means.mean(axis=0)))
    assert (together["basis"], together["blocks"], together["family"]) == (
        "replicates",
        3,
        "runs: A, wait_time, replicates",
    )
    assert (together["mean_low"], together["mean_high"]) == pytest.approx(interval)
    assert {row["family"] for row in each} == {
        f"runs: A, wait_time, weeks of replicate {number}" for number in (1, 2, 3)
    }


def test_all_measures_are_compared_over_the_jobs_of_the_metrics(database, tmp_path):
    """The metrics excluded the warm-up, the intervals did not; AWRT and the percentile had no interval."""
    middle = Middle("9 days", "20 jobs")
    simulate_all(database.parent / "A.parquet", SCHEDULERS, tmp_path / "runs", middle=middle)
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    for measure, name in STATISTICS.items():
        sql = f"""SELECT variant_mean, base_mean, v.{name}, b.{name}, mean_low, mean_high, mean_difference,
                score IS NULL FROM comparisons JOIN metrics v ON v.run = variant JOIN metrics b ON b.run = base
            WHERE measure = '{measure}' AND variant = 'A/easy' AND base = 'A/fcfs'"""
        ((one, other, *expected, low, high, difference, unscored),) = query(tmp_path / "d.duckdb", sql)[1]
        assert (one, other) == pytest.approx(expected)
        assert low < one - other < high and difference == pytest.approx(one - other)
        assert unscored == (measure in ("bounded_slowdown", "awrt", "p95_wait_time"))
    runs = [pl.read_parquet(tmp_path / f"runs/{name}.parquet") for name in ("easy", "fcfs")]
    sums = [resampling.statistic(middle.of(run.lazy()).collect(), "awrt") for run in runs]
    sql = (
        "SELECT mean_low, mean_high FROM comparisons WHERE measure = 'awrt' AND variant = 'A/easy' AND base = 'A/fcfs'"
    )
    assert query(tmp_path / "d.duckdb", sql)[1][0] == pytest.approx(intervals.difference_of(*sums).interval)


@pytest.mark.slow
def test_each_study_compares_its_own_pairs_and_is_corrected_alone(database, tmp_path):
    """A further study moved corrected verdicts of others, because all comparisons of a log were one family."""
    runs, one = database.parent / "runs", {"one": [("A/easy", "A/fcfs")]}
    more = {"two": [("A/easy", "A/fcfs"), ("A/same", "A/fcfs"), ("A/easy", "gone/fcfs")]}
    columns = "measure, variant, base, mean_p, mean_p_holm, family, family_size"
    found = []
    for asked in (one, one | more, one):  # the second and the third load update the database
        load([runs], tmp_path / "d.duckdb", asked=asked)
        sql = f"SELECT {columns} FROM comparisons WHERE study = '{{}}' ORDER BY ALL"
        found.append([query(tmp_path / "d.duckdb", sql.format(study))[1] for study in ("one", "two")])
    assert found[0] == found[2] and found[0][1] == [] and found[0][0] == found[1][0]
    assert len(found[0][0]) == len(STATISTICS) and len(found[1][1]) == 2 * len(STATISTICS)
    assert {row[-2:] for row in found[1][1] if row[0] == "awrt"} == {("two: A, awrt, weeks", 2)}
    full = tmp_path / "full.duckdb"
    load([runs], full, asked=one | more)
    load([runs], tmp_path / "d.duckdb", asked=one | more)
    assert query(full, "FROM comparisons") == query(tmp_path / "d.duckdb", "FROM comparisons")


def test_the_view_of_differences_contains_both_directions(database):
    """The exchanged interval is that of the inverse ratio, as if the other run had been the base."""
    sql = """SELECT * FROM differences WHERE measure = 'wait_time' AND low IS NOT NULL
        AND list_sort([variant, base]) = ['A/easy', 'A/fcfs'] ORDER BY base"""
    columns, rows = query(database, sql)
    of_easy, of_fcfs = (dict(zip(columns, row, strict=True)) for row in rows)
    assert (of_easy["variant"], of_easy["base"], of_easy["verdict_holm"]) == ("A/fcfs", "A/easy", "base is better")
    runs = {
        name: resampling.mean_of(pl.read_parquet(database.parent / f"runs/A/{name}.parquet"), "wait_time")
        for name in ("easy", "fcfs")
    }
    expected = intervals.difference_of(runs["fcfs"], runs["easy"])
    assert (of_easy["difference"], of_easy["low"], of_easy["high"]) == pytest.approx(
        (expected.value, *expected.interval)
    )
    assert (of_fcfs["variant"], of_fcfs["verdict"]) == ("A/easy", "variant is better")


def test_replicates_that_do_not_vary_have_no_interval(database):
    """An interval of width 0 would give p = 0 and a verdict, and would enlarge the family."""
    columns, rows = query(database, "SELECT * FROM comparisons WHERE variant LIKE 'A+fixed%' ORDER BY variant, base")
    rows = [dict(zip(columns, row, strict=True)) for row in rows]
    names = ["variant", "base", "better", "family", "family_size", "workload"]
    for measure in ("wait_time", "slowdown", "response_time"):
        found = {(row["variant"], row["base"]): row for row in rows if row["measure"] == measure}
        together, once = found["A+fixed/easy", "A+fixed/fcfs"], found["A+fixed@1/easy", "A+fixed@1/fcfs"]
        assert together["basis"] == "weeks" and together["mean_low"] < together["mean_high"]
        assert {name: value for name, value in together.items() if name not in names} == {
            name: value for name, value in once.items() if name not in names
        }
        assert (together["family"], together["family_size"]) == (None, None)
        same = found["A+fixed/easy", "A+fixed/same"]
        assert (same["basis"], same["mean_verdict"], same["score_verdict"]) == ("replicates", "equal", "equal")
        assert same["mean_low"] is None and same["mean_p"] is None
    wrong = "mean_low = mean_high OR score_low = score_high OR mean_p = 0 OR score_p = 0"
    assert query(database, f"SELECT variant, base, measure FROM comparisons WHERE {wrong}")[1] == []


def test_families_have_the_stated_number_of_members(database):
    members = "count(*) FILTER (mean_p IS NOT NULL OR score_p IS NOT NULL)"
    sql = f"SELECT family FROM comparisons WHERE family IS NOT NULL GROUP BY ALL HAVING {members} <> max(family_size)"
    assert query(database, sql)[1] == []


def test_the_error_of_few_weeks_is_not_too_small():
    """The squared error of eight independent weeks is at least the true one; the wider of two intervals counts."""
    generator = np.random.default_rng(1)
    none = pl.DataFrame({"submit_time": np.arange(8) * WEEK, "wait_time": np.zeros(8)})
    squared = []
    for _ in range(400):
        drawn = none.with_columns(wait_time=pl.lit(generator.normal(size=8)))
        found = intervals.difference_of(resampling.mean_of(drawn, "wait_time"), resampling.mean_of(none, "wait_time"))
        squared.append(found.error**2)
    assert 1 / 8 <= np.mean(squared) <= 1.35 / 8


def test_whatif_and_comparisons_give_the_same_interval_and_word(database):
    """For easy minus fcfs, whatif printed [-2828, -697], "not chance", and comparisons [-5369, 2167]."""
    workload = open_workload(database.parent / "A.parquet")
    for base in SCHEDULERS:
        ordered = {base: SCHEDULERS[base], **SCHEDULERS}
        table = ask(workload, variants(ordered)).table.filter(pl.col("measure") == "mean_wait_time")
        for variant, low, high, word in table.select("variant", "low", "high", "verdict").rows():
            sql = f"""SELECT mean_low, mean_high, mean_verdict FROM comparisons
                WHERE variant = 'A/{variant}' AND base = 'A/{base}' AND measure = 'wait_time'"""
            assert query(database, sql)[1] in ([(low, high, word)], [])
            assert word == "base" if variant == base else word in ("variant is better", "base is better", "equal")


def test_power_counts_weeks_where_draws_do_not_vary(database):
    with pytest.raises(SwflowError, match="replicates do not vary; name one, such as A\\+fixed@1/easy"):
        power_of("A+fixed/easy", "A+fixed/fcfs", [10], 0.8, database)


@pytest.mark.slow
def test_an_incremental_load_equals_a_full_one(database, tmp_path):
    """Runs that are added later join the families; runs that are removed leave them."""
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
    assert (wait.basis, wait.difference.blocks) == ("weeks", 10)
    assert wait.difference.value == pytest.approx(of_files[0].difference.value)
    assert wait.difference.value == pytest.approx(wait.variant - wait.base)
    assert wait.needed[10] > wait.needed[50] > 1
    drawn = power_of("A+drawn/easy", "A+drawn/fcfs", [10], 0.8, database)
    assert (drawn[0].basis, drawn[0].difference.blocks) == ("replicates", 3)
    with pytest.raises(SystemExit):
        main(["power", "A/easy", "A/fcfs", "--database", str(database), "--percent", "5"])
    shown = capsys.readouterr()
    assert "for 5 %" in shown.out and "10 weeks" in shown.out + shown.err


@pytest.mark.parametrize(
    ("variant", "base", "percents", "power", "says"),
    [
        ("A/easy", "A/same", [5], 0.8, "are equal, job by job"),
        ("A/easy", "B/easy", [5], 0.8, "no such run in"),
        ("A/easy", "A/fcfs", [0], 0.8, "--percent: 0; expected a difference above 0"),
        ("A/easy", "A/fcfs", [5], 1.0, "--power: 1; expected a probability"),
        ("A+drawn/easy", "A+drawn/none", [5], 0.8, "0 replicates in common"),
    ],
)
def test_power_without_an_answer_is_a_one_line_error(database, variant, base, percents, power, says):
    with pytest.raises(SwflowError, match=says) as error:
        power_of(variant, base, percents, power, database)
    assert "\n" not in str(error.value)
