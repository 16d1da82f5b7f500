"""Test histograms, bubbles and contours against plain double loops."""

import math
import statistics

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swflow.analysis.heatmap import (
    BINS_PER_DECADE,
    HEATMAP_MEASURES,
    bubbles,
    contours,
    density_levels,
    heatmap,
    kept_by_figure_1,
    mean_point,
    summarize,
)
from swflow.errors import SwflowError

jobs = st.lists(
    st.tuples(
        st.one_of(st.floats(0, 1.3), st.integers(0, 10).map(lambda tenth: tenth / 10)),
        st.one_of(st.floats(0, 1e6), st.integers(0, 6).map(lambda power: 10.0**power)),
    ),
    max_size=40,
)


def arrays(rows):
    """Return the loads and values of random jobs."""
    return np.array([row[0] for row in rows], float), np.array([row[1] for row in rows], float)


@given(jobs, st.sampled_from(["log", "linear"]))
def test_cells_equal_a_double_loop_over_cells_and_jobs(rows, scale):
    load, values = arrays(rows)
    found = heatmap(load, values, scale)
    cells = found.cells()
    assert cells["jobs"].sum() == len(rows)
    for low, high, bottom, top, count in cells.rows():
        inside = [
            (low <= x or low == 0) and (x < high or high == 1)
            and (bottom <= y or bottom == found.value_edges[0]) and (y < top or top == found.value_edges[-1])
            for x, y in rows
        ]  # fmt: skip
        assert sum(inside) == count


def test_values_of_zero_and_loads_above_one_count_at_one():
    found = heatmap(np.array([0.0, 1.0, 1.7, np.nan]), np.array([0.0, 0.5, 1.0, 1.0]))
    assert found.cells().rows() == [
        (0.0, 0.01, 1.0, 10 ** (1 / BINS_PER_DECADE), 1), (0.99, 1.0, 1.0, 10 ** (1 / BINS_PER_DECADE), 2)
    ]  # fmt: skip


def test_bounds_of_decades_are_exact():
    values = 10.0 ** np.arange(10)
    cells = heatmap(np.full(10, 0.5), values).cells().sort("value_low")
    assert cells["value_low"].to_list() == pytest.approx(values.tolist(), rel=1e-12)


def test_an_unknown_scale_is_refused():
    with pytest.raises(SwflowError, match="expected log or linear"):
        heatmap(np.zeros(1), np.zeros(1), "cubic")


@given(jobs)
def test_bubbles_and_mean_equal_loops(rows):
    points = bubbles(*arrays(rows))
    expected = []
    for decile in range(10):
        inside = [(x, y) for x, y in rows if decile / 10 <= x and (x < (decile + 1) / 10 or decile == 9)]
        if inside:
            means = [math.fsum(part) / len(inside) for part in zip(*inside, strict=True)]
            expected.append((decile, *means, len(inside)))
    assert points["decile"].to_list() == [row[0] for row in expected]
    assert points["jobs"].to_list() == [row[3] for row in expected]
    for ours, theirs in zip(points.rows(), expected, strict=True):
        assert ours[1:3] == pytest.approx(theirs[1:3])
    mean = mean_point(points)
    for classes, place_of in ((10, lambda x: min(int(x * 10), 9)), (11, lambda x: min(int(x * 10 + 0.5), 10))):
        found = {}
        for x, y in rows:
            found.setdefault(place_of(x), []).append((x, y))
        got = bubbles(*arrays(rows), classes)
        if all(abs(x * 20 - round(x * 20)) > 1e-9 for x, _ in rows):  # rounding can move values at an edge
            assert dict(got.select("decile", "jobs").rows()) == {place: len(part) for place, part in found.items()}
            for place, *medians in got.select("decile", "median_load", "median_value").rows():
                expected_medians = [statistics.median(part) for part in zip(*found[place], strict=True)]
                assert medians == pytest.approx(expected_medians)
    if not rows:
        assert mean is None
    else:
        assert mean == pytest.approx([math.fsum(part) / len(rows) for part in zip(*rows, strict=True)])


def test_figure_1_drops_short_jobs_and_high_slowdowns():
    run, slowdown = np.array([59.0, 60.0, 60.0, 100.0]), np.array([2.0, 1000.0, 1000.5, np.nan])
    assert kept_by_figure_1(run, slowdown).tolist() == [False, True, False, False]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30).filter(any), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_levels_enclose_the_share_with_the_fewest_cells(counts, share):
    density = np.array(counts, float)
    (level,) = density_levels(density, [share])
    assert density[density >= level].sum() >= share * density.sum() - 1e-9
    assert density[density > level].sum() < share * density.sum()


def test_contours_surround_a_concentration_and_stay_within_the_axes():
    rng = np.random.default_rng(3)
    load, values = rng.normal(0.7, 0.03, 5000).clip(0, 1), 10 ** rng.normal(3, 0.1, 5000)
    found = heatmap(load, values)
    half, most = ([line for share, line in contours(found) if share == wanted] for wanted in (0.5, 0.9))
    assert len(half) == 1
    (line,) = half
    assert line[:, 0].min() < 0.7 < line[:, 0].max()
    assert line[:, 1].min() < 1000 < line[:, 1].max()
    assert min(part[:, 0].min() for part in most) < line[:, 0].min()
    inside = (np.abs(load - 0.7) <= 0.035) & (np.abs(np.log10(values) - 3) <= 0.13)
    assert abs(inside.mean() - 0.5) < 0.2
    corner = contours(heatmap(np.full(9, 1.0), np.zeros(9)))
    for _, line in corner:
        assert line[:, 0].max() <= 1
        assert line[:, 1].min() >= 1
    assert contours(heatmap(np.zeros(0), np.zeros(0))) == []


def test_a_linear_axis_begins_at_0_and_ends_at_the_largest_value():
    load, values = np.full(60, 0.5), np.arange(60.0)
    found = heatmap(load, values, "linear")
    assert (found.value_edges[0], found.value_edges[-1], found.jobs.sum()) == (0, 59, 60)
    assert heatmap(load, values, "linear", 20.0).value_edges[-1] == 20
    assert heatmap(load, np.zeros(60), "linear").value_edges[-1] == 1
    lines = contours(heatmap(load, np.repeat([0.0, 59.0], 30), "linear"))
    assert len(lines) > 1 and all(np.isfinite(line).all() and line[:, 1].max() <= 59 for _, line in lines)


def test_a_summary_counts_every_job_whose_values_are_known():
    rng = np.random.default_rng(1)
    table = pl.DataFrame({
        "load": rng.random(200), "run_time": np.r_[np.zeros(5), rng.integers(1, 200, 195)].astype(float),
        "wait_time": rng.integers(0, 5000, 200).astype(float),
    }).with_columns(response_time=pl.col("wait_time") + pl.col("run_time"))  # fmt: skip
    table = table.with_columns(
        slowdown=pl.when(pl.col("run_time") > 0).then(pl.col("response_time") / pl.col("run_time"))
    )
    summary = summarize(table)
    counts = dict(summary["cells"].group_by("measure").agg(pl.col("jobs").sum()).rows())
    assert counts == {"slowdown": 195, "response_time": 200, "wait_time": 200}
    kept = table.filter((pl.col("run_time") >= 60) & (pl.col("slowdown") <= 1000)).height
    for measure in HEATMAP_MEASURES:
        assert summary["bubbles"].filter(measure=measure, filtered=True)["jobs"].sum() == kept
