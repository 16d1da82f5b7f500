"""Test the distance against brute force, and the verdicts of clear-cut comparisons."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from swflow.analysis.comparison import compare, earth_movers_distance
from swflow.analysis.heatmap import HEATMAP_MEASURES, heatmap
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import run
from swflow.workload.clean import clean_log

cells = st.tuples(st.integers(0, 2), st.integers(0, 3))


def brute_force(first, second):
    """Return the least cost of assigning every job of one histogram to a job of the other, of equal size."""
    cost = [[0.1 * abs(a - c) + 0.25 * abs(b - d) for c, d in second] for a, b in first]
    rows, columns = linear_sum_assignment(cost)
    return sum(cost[row][column] for row, column in zip(rows, columns, strict=True)) / len(first)


def grid(jobs):
    """Return the number of jobs per cell of a grid of 3 by 4 cells."""
    counts = np.zeros((3, 4))
    for cell in jobs:
        counts[cell] += 1
    return counts


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(*[st.lists(cells, min_size=n, max_size=n)] * 2)))
def test_the_distance_is_the_cheapest_assignment(pair):
    first, second = pair
    ours = earth_movers_distance(grid(first), grid(second))
    assert ours == pytest.approx(brute_force(first, second), abs=1e-9)
    assert ours == pytest.approx(earth_movers_distance(3 * grid(second), grid(first)), abs=1e-9)


def test_all_permutations_of_three_jobs_agree():
    first, second = [(0, 0), (1, 3), (2, 2)], [(2, 0), (0, 1), (1, 1)]
    best = min(
        sum(0.1 * abs(a[0] - b[0]) + 0.25 * abs(a[1] - b[1]) for a, b in zip(first, order, strict=True)) / 3
        for order in itertools.permutations(second)
    )
    assert earth_movers_distance(grid(first), grid(second)) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_of_large_histograms_is_the_cheapest_assignment(seed):
    rng = np.random.default_rng(seed)
    first, second = np.zeros((10, 27)), np.zeros((10, 27))
    some, other = (rng.integers(low, high, (300, 2)) for low, high in (((0, 0), (10, 27)), ((4, 9), (10, 20))))
    for counts, jobs in ((first, some), (second, other)):
        np.add.at(counts, tuple(jobs.T), 1)
    assert earth_movers_distance(first, second) == pytest.approx(brute_force(some, other), abs=1e-12)
    assert earth_movers_distance(second, 3 * first) == pytest.approx(brute_force(some, other), abs=1e-12)


def test_the_distance_is_left_out_unless_requested():
    found = compare(drawn(1), drawn(2, factor=3.0), measure_distance=False)
    assert found.distance is None
    assert found == replace(compare(drawn(1), drawn(2, factor=3.0)), distance=None)
    assert compare(heatmap(np.zeros(0), np.zeros(0)), drawn(1), measure_distance=False).distance is None


def drawn(seed, factor=1.0, jobs=3000):
    """Return a random heatmap with values multiplied by a factor."""
    rng = np.random.default_rng(seed)
    return heatmap(rng.random(jobs), factor * 10 ** rng.normal(2, 0.5, jobs))


def test_a_run_compared_with_itself_has_distance_0_and_no_winner():
    result = compare(drawn(1), drawn(1))
    assert (result.distance, result.score, result.variant_wins, result.base_wins, result.better) == (0, 0, 0, 0, None)


def test_chance_alone_names_no_winner():
    verdicts = [compare(drawn(seed), drawn(seed + 100)) for seed in range(10)]
    assert [result.better for result in verdicts] == [None] * 10
    assert max(abs(result.score) for result in verdicts) < 0.1


def test_the_faster_one_wins_whichever_comes_first():
    fast, slow = drawn(1), drawn(2, factor=3.0)
    forth, back = compare(fast, slow), compare(slow, fast)
    assert (forth.better, back.better) == ("variant", "base")
    assert forth.variant_wins == pytest.approx(1) and back.base_wins == pytest.approx(1)
    assert forth.score == pytest.approx(-back.score) and forth.score > 0.3
    assert forth.distance == pytest.approx(back.distance)
    assert forth.distance == pytest.approx(np.log10(3), abs=0.05)


def test_loads_with_jobs_of_one_run_only_have_no_winner():
    low, high = heatmap(np.full(500, 0.1), np.full(500, 1.0)), heatmap(np.full(500, 0.9), np.full(500, 1000.0))
    result = compare(low, high)
    assert (result.score, result.variant_wins, result.better) == (0, 0, None)
    assert result.distance == pytest.approx(0.8 + 3)


def test_better_for_some_and_worse_for_others_is_not_dominance():
    load = np.full(2000, 0.5)
    spread = np.r_[np.full(1000, 1.0), np.full(1000, 1e4)]
    assert compare(heatmap(load, spread), heatmap(load, np.full(2000, 100.0))).better is None


def test_an_empty_heatmap_can_be_compared():
    assert compare(heatmap(np.zeros(0), np.zeros(0)), drawn(1)).better is None


@pytest.mark.archive
def test_easy_is_better_than_fcfs_on_kth(traces):
    kth = clean_log(traces / "KTH-SP2-1996-2.1-cln.swf.gz", name="KTH-SP2", processors=100)
    easy, fcfs = (run(kth, Scheduler(backfill=backfill)).outcomes for backfill in ("easy", "none"))
    for measure in HEATMAP_MEASURES:
        maps = [heatmap(table["load"].to_numpy(), table[measure].to_numpy()) for table in (easy, fcfs)]
        result = compare(*maps)
        assert result.better == "variant"
        assert result.variant_wins > 0.9
        assert compare(maps[0], maps[0]).better is None


def test_wins_without_a_score_are_no_verdict():
    """The variant wins six tenths of the jobs with 2/3 more chances, and loses four tenths with 1: the score is 0."""
    load = np.repeat([0.05, 0.95], [600, 400])
    variant = heatmap(load, np.repeat([10.0, 1000.0], [600, 400]))
    base = heatmap(load, np.repeat([1000.0, 10.0, 10.0], [400, 200, 400]))
    found = compare(variant, base)
    assert (found.variant_wins, found.base_wins, found.score, found.better) == (0.6, 0.4, 0, None)
    assert compare(base, variant).better is None
