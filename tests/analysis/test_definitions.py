"""Test analyses against their definitions, computed in plain Python on small random inputs, at all boundaries."""

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

from swflow.analysis import calibration, intervals, multiple_testing, resampling, sample_size
from swflow.analysis import fidelity as trust
from swflow.analysis.calibration import PARAMETERS
from swflow.analysis.comparison import Comparison, by_tenths, compare, earth_movers_distance
from swflow.analysis.heatmap import BINS_PER_DECADE, LOAD_BINS, Heatmap
from swflow.analysis.metrics import Middle
from swflow.analysis.moldable import CHECKED, model_checks
from swflow.analysis.timeline import interval_means
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.values import WEEK
from swflow.workload.steps.moldable import draw_parameters

#: The critical value of the Kolmogorov-Smirnov test at 5 %, and the share that may contradict dominance.
CRITICAL, AGAINST = Fraction(1358, 1000), Fraction(1, 10)


# -- comparisons of heatmaps


def map_of(cells: dict[tuple[int, int], int], values: int) -> Heatmap:
    """Return the heatmap with some numbers of jobs, by bins of load and value."""
    counts = np.zeros((LOAD_BINS, values), np.int64)
    for cell, jobs in cells.items():
        counts[cell] = jobs
    return Heatmap(counts, np.arange(LOAD_BINS + 1) / LOAD_BINS, 10 ** (np.arange(values + 1) / BINS_PER_DECADE))


def defined(a: dict[tuple[int, int], int], b: dict[tuple[int, int], int]) -> Comparison:
    """Return the comparison by its definition, without the distance."""
    score, wins = Fraction(0), {1: Fraction(0), -1: Fraction(0)}
    all_a, all_b = sum(a.values()), sum(b.values())
    for tenth in range(10):
        first, second = ({cell[1]: 0 for cell in (*a, *b)} for _ in range(2))
        for jobs, counts in ((a, first), (b, second)):
            for (load, value), number in jobs.items():
                counts[value] += number * (load // 10 == tenth)
        n, m = sum(first.values()), sum(second.values())
        if not n or not m:
            continue
        weight = (Fraction(n, all_a) + Fraction(m, all_b)) / 2
        pairs = [(x, y, first[x] * second[y]) for x in first for y in second]
        score += weight * Fraction(sum(w for x, y, w in pairs if x < y) - sum(w for x, y, w in pairs if x > y), n * m)
        ahead = [
            Fraction(sum(k for x, k in first.items() if x <= bin_), n)
            - Fraction(sum(k for x, k in second.items() if x <= bin_), m)
            for bin_ in range(max(first) + 1)
        ]
        area = sum(map(abs, ahead))
        for sign in (1, -1):
            against = sum(max(-sign * step, 0) for step in ahead)
            is_significant = max(sign * step for step in ahead) ** 2 > CRITICAL**2 * Fraction(n + m, n * m)
            wins[sign] += weight * (is_significant and against <= AGAINST * area)
    half = Fraction(1, 2)
    better = "variant" if wins[1] > half and score > 0 else "base" if wins[-1] > half and score < 0 else None
    return Comparison(0.0, float(score), float(wins[1]), float(wins[-1]), better)


def require_as_defined(a: dict[tuple[int, int], int], b: dict[tuple[int, int], int]) -> None:
    """Check both directions of a comparison, of maps that may differ in width."""
    for first, second in ((a, b), (b, a)):
        found = compare(*(map_of(one, max(value for _, value in one) + 1) for one in (first, second)))
        expected = defined(first, second)
        assert found.better == expected.better
        for name in ("score", "variant_wins", "base_wins"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-9), name


def test_comparisons_equal_their_definition():
    rng = np.random.default_rng(1)
    for _ in range(60):
        loads, values = rng.integers(1, 4), rng.integers(1, 11)
        maps = [
            {(30 + int(rng.integers(loads)) * 7, int(rng.integers(values))): int(rng.integers(1, 90)) for _ in range(9)}
            for _ in range(2)
        ]
        require_as_defined(*maps)
    require_as_defined({(5, 9): 1, (62, 2): 1}, {(5, 9): 1, (62, 3): 1})  # ten bins of values, as many as tenths
    for few in (27, 28):  # the critical distance of 200 jobs is 0.1358
        require_as_defined({(5, 3): 200 - few, (5, 0): few}, {(5, 3): 200})
    for few in (678, 679, 680):  # the critical distance of 125,000 jobs is 679 jobs
        require_as_defined({(5, 3): 125000 - few, (5, 0): few}, {(5, 3): 125000})
    # The variant wins two thirds of the jobs, but the score is 0.
    require_as_defined({(5, 0): 200, (5, 3): 200, (65, 9): 200}, {(5, 3): 400, (65, 0): 200})
    for jobs in (199, 200, 201):  # the winner has half of the jobs if both tenths have 200
        require_as_defined({(5, 3): jobs, (65, 0): 200}, {(5, 0): jobs, (65, 0): 200})
    for against in (9, 10, 11):  # percent of the area
        require_as_defined({(5, 0): 1000 - 10 * against, (5, 8): 10 * against}, {(5, 4): 1000})
    for middle in (17, 18, 19):  # areas of 9 and 1 if it is 18
        require_as_defined({(5, 0): 500, (5, 20): 500}, {(5, middle): 1000})


def test_comparisons_need_tenths_of_the_load_and_jobs():
    a, b = map_of({(5, 2): 30, (62, 3): 90}, 4), map_of({(5, 3): 60, (69, 1): 70}, 4)
    assert compare(by_tenths(a), by_tenths(b)) == compare(a, b)
    for pair in ((a, map_of({}, 1)), (map_of({}, 9), a)):
        assert compare(*pair) == Comparison(0.0, 0.0, 0.0, 0.0, None)
        assert earth_movers_distance(*(one.jobs for one in pair)) == 0


def test_the_distance_moves_jobs_by_tenths_of_the_load_and_quarters_of_a_decade():
    rng = np.random.default_rng(2)
    for _ in range(12):
        cells = [[(int(rng.integers(100)), int(rng.integers(40))) for _ in range(6)] for _ in range(2)]
        maps = [map_of({cell: part.count(cell) for cell in part}, 40) for part in cells]
        cost = [[abs(a // 10 - c // 10) / 10 + abs(b // 3 - d // 3) / 4 for c, d in cells[1]] for a, b in cells[0]]
        least = sum(cost[row][column] for row, column in zip(*linear_sum_assignment(cost), strict=True)) / 6
        assert compare(*maps).distance == pytest.approx(least, abs=1e-9)


# -- fidelity


@pytest.mark.parametrize(
    ("recorded", "simulated", "distance", "expected"),
    [
        (600, 630, 0.05, "minutes"), (600, 570, 0.05, "minutes"), (600, 631, 0.05, "percentages"),
        (600, 630, 0.06, "percentages"), (600, 750, 0.2, "percentages"), (600, 751, 0.2, "directions"),
        (600, 750, 0.21, "directions"), (0, 1, 0.0, "minutes"), (0, 1.5, 0.0, "directions"), (2, 1, 0.05, "minutes"),
        (1.5, 0, 0.0, "directions"),
    ],
)  # fmt: skip
def test_trust_depends_on_the_mean_wait_and_the_distance(recorded, simulated, distance, expected):
    measures = {"jobs": 1, "recorded_mean_wait_time": recorded, "simulated_mean_wait_time": simulated}
    assert trust.trust_of(measures | {"wait_distance": distance}).value == expected
    assert trust.trust_of(measures | {"jobs": 0}).value == "unknown"


def test_fidelity_at_its_boundaries():
    """The second job waits when the first one starts; starts may differ by a minute; hours begin with either start."""
    one = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.0, 10.0, 40.0], "start_time": [10.0, 40.0, 50.0], "run_time": [10.0] * 3,
        "processors": [1, 2, 3], "wait_time": [10.0, 30.0, 10.0], "load": [0.5] * 3,
    })  # fmt: skip
    other = one.with_columns(start_time=pl.Series([4000.0, 100.0, 111.0]))
    assert trust.fidelity(one, other, 4)["started_alike"] == pytest.approx(1 / 3)
    assert trust.fidelity(one, other, 4)["start_order"] is None
    earlier = one.with_columns(submit_time=pl.Series([0.0, 9.0, 39.0]))
    assert trust.fidelity(earlier, other, 4)["start_order"] == 0.5
    assert trust.fidelity(one, one.with_columns(job_id=pl.col("job_id") + 9), 4)["jobs"] == 0
    short = one.with_columns(run_time=10.0, start_time=pl.Series([10.0, 40.0, 3590.0]))
    late = short.with_columns(start_time=pl.Series([10.0, 40.0, 3600.0]))
    assert trust.fidelity(short, late, 4)["utilization_difference"] == 0  # 3600 s from the first start: one hour
    late = short.with_columns(start_time=pl.Series([10.0, 40.0, 3605.0]))
    assert trust.fidelity(short, late, 4)["utilization_difference"] == pytest.approx(5 * 3 / (4 * 3600))


def test_fidelity_does_not_depend_on_the_origin_of_time():
    one = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.0, 10.0, 40.0], "start_time": [10.0, 4000.0, 9000.0],
        "run_time": [5000.0] * 3, "processors": [1, 2, 3], "wait_time": [10.0, 30.0, 10.0], "load": [0.5] * 3,
    })  # fmt: skip
    other = one.with_columns(start_time=pl.Series([700.0, 5000.0, 8000.0]))
    found = trust.fidelity(one, other, 4)
    for end, runs in ((14000, (one, other)), (13000, (other, one))):
        hours = np.zeros((2, 4))  # from the first start, at 10 s, to the last recorded end
        for run, use in zip(runs, hours, strict=True):
            for start, processors in run.select("start_time", "processors").rows():
                for hour, begin in enumerate(range(10, end, 3600)):
                    use[hour] += processors * max(min(start + 5000, begin + 3600) - max(start, begin), 0) / (4 * 3600)
        difference = trust.fidelity(*runs, 4)["utilization_difference"]
        assert difference == pytest.approx(np.abs(hours[0] - hours[1]).mean())
    for later in (1e6, -2500.0):
        moved = [run.with_columns(pl.col("submit_time", "start_time") + later) for run in (one, other)]
        assert trust.fidelity(*moved, 4) == pytest.approx(found)


# -- calibration


def site(**machine) -> Workload:
    jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [50.0, 60.0], "processors": [3, 90], "user_id": [1, None]})
    return Workload(jobs, Machine.of(100), "site")


@pytest.mark.parametrize(
    ("name", "options", "value", "expected"),
    [
        ("size", {}, 0.95, {"unavailable": ({"from": 50.0, "until": None, "processors": 5},)}),
        ("size", {}, 0.8, {"unavailable": ({"from": 50.0, "until": None, "processors": 10},)}),  # the widest job fits
        ("size", {}, 0.99, {"unavailable": ({"from": 50.0, "until": None, "processors": 1},)}),
        ("size", {}, 0.995, None),
        ("size", {"unavailable": ["w"]}, 0.9, {"unavailable": ("w", {"from": 50.0, "until": None, "processors": 10})}),
        ("size", {"clusters": [{"processors": 9, "order": "sjf"}]}, 0.9,
         {"clusters": [{"processors": 9, "order": "sjf"}]}),
        ("size", {"clusters": [{"processors": 11}]}, 0.9, {"clusters": [{"processors": 10}]}),
        ("user_jobs", {"limits": {"user": {"processors": 7}, "group": {}}}, 30.0,
         {"limits": {"user": {"processors": 7, "jobs": 30}, "group": {}}}),
        ("user_processors", {"limits": {"user": {"processors": 7}}}, 0.5, None),
        ("user_processors", {}, 0.25, {"limits": {"user": {"processors": 25}}}),
        ("user_processors", {}, 0.001, {"limits": {"user": {"processors": 1}}}),
        ("end_delay", {"backfill": "slurm", "scheduler_parameters": {"bf_interval": 9, "end_delay": 3.0}}, 60.0,
         {"backfill": "slurm", "scheduler_parameters": {"bf_interval": 9, "end_delay": 60.0}}),
    ],
)  # fmt: skip
def test_a_parameter_changes_one_option(name, options, value, expected):
    assert PARAMETERS[name].apply(options, site(), value) == expected


def test_a_smaller_machine_begins_with_the_log():
    early = site().jobs.with_columns(pl.col("submit_time") - 50)
    (window,) = PARAMETERS["size"].apply({}, Workload(early, Machine.of(100), "site"), 0.95)["unavailable"]
    assert window["from"] == 0


def test_without_users_there_is_no_limit_of_users():
    unowned = site().jobs.with_columns(user_id=pl.lit(None, pl.Int64))
    assert PARAMETERS["user_jobs"].apply({}, Workload(unowned, Machine.of(100), "site"), 30.0) is None


def test_measures_of_a_calibration():
    """Weeks are counted from the first job; two jobs have an order, one has none."""
    recorded = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.4 * WEEK, 1.3 * WEEK, 1.5 * WEEK], "wait_time": [10.0, 20.0, 40.0],
        "start_time": [1.0, 2.0, 3.0],
    })  # fmt: skip
    simulated = recorded.with_columns(wait_time=pl.Series([14.0, 20.0, 30.0]), start_time=pl.Series([1.0, 3.0, 2.0]))
    found = calibration._measures(recorded, simulated)
    assert found.weekly_error == pytest.approx((abs(15 - 17) + 10) / 2)
    assert found.recorded_mean_wait == pytest.approx(70 / 3) and found.simulated_mean_wait == pytest.approx(64 / 3)
    assert (found.jobs, found.start_order) == (3, 0.3333)
    assert calibration._measures(recorded, recorded) == (3, 70 / 3, 70 / 3, 0, 1, 0)
    assert calibration._measures(recorded[1:], simulated).start_order == -1
    assert math.isnan(calibration._measures(recorded[:1], simulated).start_order)
    nothing = calibration._measures(recorded.clear(), simulated)
    assert math.isnan(nothing.start_order) and nothing._replace(start_order=0.0) == (0,) * 6


# -- statistics


def test_scores_without_a_week_are_those_of_the_other_jobs(monkeypatch):
    """Values count by their bins."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(intervals, "_estimate", lambda value, without, weeks, equal: (without, weeks))
    for measure, least, unit in (("wait_time", 0.0, 1.0), ("slowdown", 1.0, 1e-3)):
        runs = []
        for top in (1.0, 0.6):
            values = least + unit * np.where(rng.random(40) < 0.2, 0.0, 10 ** (6 * rng.random(40) - 0.5))
            columns = {"submit_time": rng.integers(0, 3, 40) * WEEK, "load": top * rng.random(40), measure: values}
            runs.append(pl.DataFrame(columns))
        runs[1] = runs[1].filter(pl.col("submit_time") > 0)
        without, weeks = intervals.score_of(*(resampling.distribution_of(run, measure) for run in runs))
        assert weeks.tolist() == [0, 1, 2]
        for week, score in zip(weeks, without, strict=True):
            parts = []
            for run in (run.filter(pl.col("submit_time") != week * WEEK) for run in runs):
                value = (run[measure].to_numpy() - least) / unit
                place = np.where(value < 1, -1, np.floor(6 * np.log10(np.maximum(value, 1e-9))))
                parts.append((np.floor(10 * run["load"].to_numpy()), place))
            expected = 0.0
            for tenth in range(10):
                x, y = (place[load == tenth] for load, place in parts)
                if x.size and y.size:
                    share = (x.size / parts[0][1].size + y.size / parts[1][1].size) / 2
                    expected += share * np.sign(y[None, :] - x[:, None]).mean()
            assert score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("known", ["score", "mean"])
def test_a_row_with_one_interval_is_a_member_of_its_family(known):
    estimate, none = intervals.Estimate(0.5, 0.1, 30, 20), intervals.Estimate(0.5, None, 3, 2)
    row = {"variant": "a", "base": "b", "family": "f", "score": 0.5, "mean_difference": 0.5, "variant_wins": 0.6}
    for name in ("score", "mean"):
        row |= multiple_testing.columns_of(name, estimate if name == known else none)
    row["base_wins"] = 0.1
    multiple_testing.correct([row])
    assert row["family_size"] == 1
    assert {row["score_verdict_holm"], row["mean_verdict_holm"]} == {
        "cannot tell: too few weeks", "variant is better" if known == "score" else "base is better",
    }  # fmt: skip
    assert row["better"] == "a"
    assert multiple_testing.holm([0.9, None, 0.8]) == [1.0, None, 1.0]
    row |= {"score_p": 1 - multiple_testing.CONFIDENCE, "mean_p": None, "score_verdict": "variant is better"}
    multiple_testing.correct([row])
    assert row["score_verdict_holm"] == "not distinguishable" and row["better"] is None


def test_a_score_of_0_has_no_better_run_without_an_interval():
    for wins in ("variant_wins", "base_wins"):
        row = {"variant": "a", "base": "b", "family": "f", "score": 0.0, "mean_difference": 0.0}
        row |= {"variant_wins": 0.0, "base_wins": 0.0} | {wins: 0.6}
        for name in ("score", "mean"):
            row |= multiple_testing.columns_of(name, intervals.Estimate(0.0, None, 3, 2))
        multiple_testing.correct([row])
        assert row["better"] is None and row["family_size"] == 0


def test_estimates_at_their_boundaries():
    few, enough = (
        intervals._estimate(1.0, np.tile([1.0, 3.0], 4)[:weeks], np.arange(weeks), False) for weeks in (7, 8)
    )
    assert few.error is None and enough.error == pytest.approx(math.sqrt(8 * 7 / 8))  # that of Student's jackknife
    assert enough.freedom == 7 and enough.skewness == 0 and not enough.is_uneven
    uneven = intervals._estimate(1.0, np.array([0.0] * 24 + [4.0]), np.arange(25), False)
    assert uneven.skewness == pytest.approx(-((24 / 25) ** 3 - 24 / 25**3) / (24 / 25) ** 1.5) and uneven.is_uneven
    for skewness, weeks, expected in ((0.4, 25, False), (0.41, 25, True), (0.49, 9, False), (0.51, 9, True)):
        assert intervals.Estimate(1.0, 0.1, weeks, 9, skewness=-skewness).is_uneven is expected
    assert intervals._estimate(1.0, np.array([math.nan, *range(8)]), np.arange(9), False).error is None
    for value, *rests in ((1.0, 1.0, 1.0 + 1e-12), (0.0, 1.0, 1.0 + 1e-12), (1.0, 0.0, 1e-12), (0.0, 0.0, 0.0)):
        rounded = intervals._estimate(value, np.array(rests * 4), np.arange(8), False)
        assert rounded.error == rounded.skewness == 0
    assert intervals.Estimate(-1.0, 0.0, 9, 8).p == 0
    for value, expected in ((1.0, "base is better"), (-1.0, "variant is better")):
        half = intervals.student(8)
        assert intervals.Estimate(value * half, 1.0, 9, 8).verdict() == "not distinguishable"  # 0 ends the interval
        assert intervals.Estimate(value * half * 1.001, 1.0, 9, 8).verdict() == expected
    assert intervals.Estimate(-9.0, 5.0, 9, 8, base=10.0).interval[0] == -10
    assert intervals.over_replicates([2.0]).error is intervals.over_replicates([]).error is None
    assert not intervals.over_replicates([1.0, 2.0, 3.0]).is_uneven
    assert intervals.over_replicates([1.0, None, math.inf, 3.0]).freedom == 1
    differs = intervals.difference_over_replicates([(1.0, 2.0), (0.0, 4.0), (0.0, 6.0)])
    assert not differs.is_ratio and differs.freedom == 2
    rest = np.array([-10.0, -7.0, -5.0]) / 2
    weeks = np.arange(4)
    small, large = (resampling.Resampled(one, weeks, np.array([one, 2 * one] * 2), one) for one in (0.25, 0.5))
    assert intervals.difference_of(small, large).is_ratio
    nothing = resampling.Resampled(math.nan, weeks, np.full(4, math.nan), math.nan)
    assert intervals.difference_of(nothing, nothing).equal
    assert not intervals.difference_of(nothing, large).equal and not intervals.difference_of(large, nothing).equal
    for zero in (small._replace(value=0.0), small._replace(without=np.array([0.0, 0.5, 0.5, 0.5]))):
        assert not intervals.difference_of(zero, large).is_ratio and not intervals.difference_of(large, zero).is_ratio
    found = intervals.Estimate(0.0, 1.0, 50, 49)
    most = [sample_size.smallest_difference(found, 10**7 + more) for more in (0, 1)]
    assert [sample_size.blocks_needed(found, effect) for effect in most] == [10**7, None]
    assert sample_size.blocks_needed(found, 10**6) == 2
    assert sample_size.smallest_difference(intervals.Estimate(1.0, 0.0, 9, 8), 50) == 0
    dependent = intervals.Estimate(0.0, 1.0, 50, 7.0)
    ratio = sample_size.smallest_difference(dependent, 200) / sample_size.smallest_difference(dependent, 50)
    assert ratio == pytest.approx(0.5)
    assert differs.error == pytest.approx(math.sqrt(2 * rest.var()))
    assert intervals.difference_over_replicates([(1.0, 1.0)]).equal is False
    assert intervals.difference_over_replicates([(1.0, 1.0), (2.0, 2.0)]).equal is True
    assert intervals.difference_over_replicates([(1.0, 2.0), (2.0, 4.0)]).error is None  # one ratio
    assert intervals.difference_over_replicates([(1.0, 2.0)]).error is None
    assert intervals.difference_over_replicates([(1.0001, 1.0), (1.0002, 1.0), (1.0003, 1.0)]).error > 1e-5
    two = intervals.difference_over_replicates([(1.0, 2.0), (4.0, 2.0)])
    assert two.error == pytest.approx(math.log(4) / 2) and two.freedom == 1 and two.is_ratio


# -- time


def test_means_of_intervals_are_the_areas_of_items():
    rng = np.random.default_rng(4)
    for _ in range(20):
        start, weight = rng.integers(-20, 60, 12).astype(float), rng.integers(1, 5, 12).astype(float)
        end, edges = start + rng.integers(1, 50, 12), np.array([5.0, 11.0, 30.0, 42.0])
        expected = [
            sum(weight * np.maximum(np.minimum(end, high) - np.maximum(start, low), 0)) / (high - low)
            for low, high in itertools.pairwise(edges)
        ]
        assert interval_means(start, end, weight, edges) == pytest.approx(expected)


def test_the_middle_of_a_log_excludes_days_or_jobs():
    day = 86400.0
    jobs = pl.LazyFrame({"job_id": [5, 4, 3, 2, 1], "submit_time": [0.0, day, 2 * day, 2 * day, 4 * day]})

    def kept(*amounts: str) -> list[int]:
        return Middle(*amounts).of(jobs).collect()["job_id"].to_list()

    assert kept("1 day") == [4, 2, 3, 1] and kept("1.5 days") == [2, 3, 1]
    assert kept("2 jobs") == [2, 3, 1] and kept("", "2 jobs") == [5, 4, 2] and kept("", "2.5 days") == [5, 4]
    assert kept("1 job", "4 jobs") == [] and kept("0 days", "0 jobs") == kept("0 jobs", "0 days") == [5, 4, 2, 3, 1]


# -- the model of moldable jobs


def test_a_drawn_workload_has_the_published_distributions():
    drawn = draw_parameters(4000, np.random.default_rng(5))
    curves = model_checks(pl.DataFrame(dict(zip(CHECKED, vars(drawn).values(), strict=True))))
    assert [len(one.lines) for one in curves] == [1, 1, 4, 1, 5] and not curves[-1].points
    assert [one.logarithmic for one in curves] == [True, True, True, False, False]
    for one in curves[:4]:
        for name, (at, measured) in one.points.items():
            published = np.interp(at, *one.lines[name])
            assert np.abs(published - measured).max() < 0.04, (one.title, name)
            assert np.isin(at, one.lines[name][0]).all() and measured[-1] > 0.5
            assert one.lines[name][1].max() <= 1
    ends = [next(iter(one.lines.values()))[0][[0, -1]].tolist() for one in curves]
    assert ends == [[1, 64], [2, 20], [1, 1024], [0, 6], [1, ends[4][1]]] and ends[4][1] > 64
    alone = model_checks(pl.DataFrame([(1, 1.0, 0.0, 1)], CHECKED, orient="row"))
    assert [part.max() for one in alone[:4] for _, part in one.points.values()] == [1, 0, 1, 1, 1, 1, 1]
    assert list(curves[2].lines) == [f"c_min up to {x}" for x in (1, 4, 16, 41)]
    assert list(curves[4].lines) == [f"sigma {value}" for value in ("0", "0.5", "1", "2", "4")]
    for speedup_at, speedup in curves[4].lines.values():
        assert speedup_at[0] == speedup[0] == 1 and speedup.max() <= 64 and (np.diff(speedup) >= 0).all()
        assert speedup[-1] == 64  # no curve ends before it is level
    assert dict(zip(*curves[4].lines["sigma 0"], strict=True))[64] == 64  # the corner of the curve is drawn


def schedule(waits: list[float]) -> pl.DataFrame:
    """Return jobs that start one after the other, each after its wait."""
    submit = [1000.0 * number for number in range(len(waits))]
    return pl.DataFrame({
        "job_id": range(len(waits)), "submit_time": submit, "wait_time": waits, "run_time": 60.0, "processors": 1,
        "start_time": [begin + wait for begin, wait in zip(submit, waits, strict=True)], "load": 1.0,
    })  # fmt: skip


def test_waits_within_the_start_delay_are_equal():
    recorded = [5.0 + number % 11 for number in range(80)] + [600.0] * 20
    found = trust.fidelity(schedule(recorded), schedule([0.0] * 80 + [600.0] * 20), 4)
    assert 13 <= found["start_delay"] <= 15
    assert found["wait_distance"] <= 0.1
    assert trust.trust_of(found) == trust.Trust.PERCENTAGES or trust.trust_of(found) == trust.Trust.MINUTES
    late = trust.fidelity(schedule([900.0] * 80 + [600.0] * 20), schedule([0.0] * 80 + [600.0] * 20), 4)
    assert (late["start_delay"], trust.trust_of(late)) == (trust.NEAR, trust.Trust.DIRECTIONS)


def test_the_trust_weighs_order_and_parts():
    same = {"jobs": 99, "recorded_mean_wait_time": 600.0, "simulated_mean_wait_time": 600.0, "wait_distance": 0.0}
    wrong = trust.Part("partition", "gpu", 0.5, 100.0, 150.0)
    assert trust.trust_of(same) == trust.Trust.MINUTES
    assert trust.trust_of(same | {"start_order": 0.2}) == trust.Trust.PERCENTAGES
    assert trust.trust_of(same, [wrong]) == trust.Trust.PERCENTAGES
    far = same | {"simulated_mean_wait_time": 700.0}
    assert trust.trust_of(far, [wrong]) == trust.Trust.PERCENTAGES
    assert trust.trust_of(far, [wrong._replace(simulated=200.0)]) == trust.Trust.DIRECTIONS
    assert trust.weaknesses_of(far, [wrong]) == [
        "the mean wait",
        "the mean wait of partition gpu (2.5 instead of 1.7 min)",
    ]


def test_parts_are_partitions_and_qos_with_enough_jobs():
    jobs = pl.DataFrame({"job_id": range(100), "partition_id": [1] * 60 + [2] * 38 + [3] * 2, "queue_id": 7})
    recorded, simulated = schedule([60.0] * 100), schedule([60.0] * 60 + [0.0] * 40)
    found = trust.parts_of(jobs, {"partition_id": {1: "cpu", 2: "gpu"}}, recorded, simulated)
    assert found == [trust.Part("partition", "cpu", 0.6, 60.0, 60.0), trust.Part("partition", "gpu", 0.38, 60.0, 0.0)]
