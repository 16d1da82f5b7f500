"""Test histograms, bubbles and contours against plain double loops."""

import math
import statistics

import duckdb
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
    read_bubbles,
    read_heatmaps,
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


@pytest.mark.parametrize("value", [5e-324, 2.2250738585072014e-308, 1e-291])
def test_values_that_cannot_be_divided_into_bins_are_in_the_first_one(value):
    cells = heatmap(np.array([0.0, 0.5]), np.array([0.0, value]), "linear").cells()
    assert cells["value_low"].to_list() == [0, 0]


def test_values_of_zero_and_loads_above_one_count_at_one():
    found = heatmap(np.array([0.0, 1.0, 1.7, np.nan]), np.array([0.0, 0.5, 1.0, 1.0]))
    assert found.cells().rows() == [
        (0.0, 0.01, 1.0, 10 ** (1 / BINS_PER_DECADE), 1), (0.99, 1.0, 1.0, 10 ** (1 / BINS_PER_DECADE), 2)
    ]  # fmt: skip


def test_bounds_of_decades_are_exact():
    values = 10.0 ** np.arange(10)
    cells = heatmap(np.full(10, 0.5), values).cells().sort("value_low")
    assert cells["value_low"].to_list() == pytest.approx(values.tolist(), rel=1e-12)


@pytest.mark.parametrize("jobs", [1, 2, 60, 61])
def test_bubbles_have_the_medians_of_their_jobs(jobs):
    rng = np.random.default_rng(jobs)
    load, values = rng.random(jobs), rng.exponential(size=jobs)
    for classes, place in ((10, np.floor(10 * load)), (11, np.floor(10 * load + 0.5))):
        for decile, *medians in bubbles(load, values, classes).select("decile", "median_load", "median_value").rows():
            assert medians == [statistics.median(part[place == decile].tolist()) for part in (load, values)]


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_parts_of_the_jobs_add_up(scale, monkeypatch):
    rng = np.random.default_rng(4)
    load, values = rng.random(50), 10 ** (5 * rng.random(50))
    whole, points = heatmap(load, values, scale), [bubbles(load, values, classes) for classes in (10, 11)]
    monkeypatch.setattr("swflow.analysis.heatmap._AT_ONCE", 7)
    parts = heatmap(load, values, scale)
    assert np.array_equal(parts.jobs, whole.jobs) and np.array_equal(parts.value_edges, whole.value_edges)
    assert all(bubbles(load, values, classes).equals(one) for classes, one in zip((10, 11), points, strict=True))


def test_values_beyond_an_axis_count_in_the_last_bin():
    found = heatmap(np.full(3, 0.5), np.array([1.0, 1e16, 1e18]))
    assert found.value_edges[-1] == 1e16 and found.jobs[50, -1] == 2
    assert heatmap(np.zeros(0), np.zeros(0)).jobs.shape == (100, 1)
    found = heatmap(np.full(4, 0.5), np.array([0.0, 1.9, 2.0, 900.0]), "linear", 200.0)
    assert found.jobs.shape == (100, 100) and found.jobs[50, [0, 1, 99]].tolist() == [2, 1, 1]


def test_bins_and_classes_include_their_lower_bounds():
    """Scaled values of some bounds round up, of others down."""
    edges = heatmap(np.full(1, 0.5), np.array([1e15])).value_edges[1:-1]
    at, below = (heatmap(np.full(edges.size, 0.5), values) for values in (edges, np.nextafter(edges, 0)))
    assert at.jobs[50].tolist() == [0] + [1] * edges.size
    assert below.jobs[50].tolist() == [1] * edges.size
    edges = np.arange(1, 100) / 100
    at, below = (heatmap(loads, np.ones(99)).jobs[:, 0].tolist() for loads in (edges, np.nextafter(edges, 0)))
    assert at == [0] + [1] * 99 and below == [1] * 99 + [0]
    for classes, edges in ((10, np.arange(1, 10) / 10), (11, np.arange(5, 100, 10) / 100)):
        for place, edge in enumerate(edges):
            found = bubbles(np.array([np.nextafter(edge, 0), edge]), np.ones(2), classes)
            assert found["decile"].to_list() == [place, place + 1]
    edges = heatmap(np.full(1, 0.5), np.array([7.0]), "linear").value_edges
    for place, edge in enumerate(edges[1:-1], 1):
        found = heatmap(np.full(2, 0.5), np.array([np.nextafter(edge, 0), edge]), "linear", 7.0).jobs[50]
        assert np.flatnonzero(found).tolist() == [place - 1, place]


def test_heatmaps_and_bubbles_are_read_from_a_database(tmp_path):
    rng = np.random.default_rng(5)
    load, values = rng.random(40), 10 ** (4 * rng.random(40))
    found, points = heatmap(load, values), bubbles(load, values)
    with duckdb.connect() as connection:
        cells = found.cells().with_columns(run=pl.lit("a"), measure=pl.lit("wait_time"))
        classes = points.with_columns(run=pl.lit("a"), measure=pl.lit("wait_time"), filtered=False)
        for name, table in (("heatmaps", cells), ("bubbles", classes.reverse())):
            table.write_parquet(tmp_path / name)
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{tmp_path / name}')")
        read = read_heatmaps(connection, ["b", "a"])
        assert read_bubbles(connection, "a", "wait_time").equals(points)
        assert read_bubbles(connection, "a", "wait_time", filtered=True).is_empty()
    assert np.array_equal(read["a", "wait_time"].jobs, found.jobs)
    assert read.keys() == {(run, measure) for run in "ab" for measure in HEATMAP_MEASURES}
    assert sum(int(one.jobs.sum()) for one in read.values()) == 40
    assert read["b", "wait_time"].jobs.shape == (100, 1)


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


def test_levels_do_not_depend_on_rounding_errors():
    density = np.array([[0.1, 0.3], [0.4, 0.2]])
    assert density_levels(density, [0.4, 0.7, 0.9, 1.0]) == [0.4, 0.3, 0.2, 0.1]
    assert density_levels(density, [0.41, 0.71, 0.91]) == [0.3, 0.2, 0.1]


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


def test_a_contour_around_one_cell_is_a_circle():
    """A Gaussian in two dimensions holds half of its mass within 1.18 standard deviations, and 90 % within 2.15."""
    width = 1 / BINS_PER_DECADE
    found = contours(heatmap(np.full(100, 0.505), np.r_[np.full(99, 10 ** (20.5 * width)), 10 ** (40 * width)]))
    assert [share for share, _ in found] == [0.5, 0.9]
    for share, line in found:
        across, up = (line[:, 0] - 0.505) * 100, np.log10(line[:, 1]) / width - 20.5
        radius = 1.5 * math.sqrt(-2 * math.log(1 - share))
        assert np.hypot(across, up) == pytest.approx(np.full(len(line), radius), abs=0.25)  # cells are squares
        for offsets in (across, up):
            assert offsets.max() == pytest.approx(-offsets.min(), abs=1e-6)


def test_a_linear_axis_begins_at_0_and_ends_at_the_largest_value():
    load, values = np.full(60, 0.5), np.arange(60.0)
    found = heatmap(load, values, "linear")
    assert (found.value_edges[0], found.value_edges[-1], found.jobs.sum()) == (0, 59, 60)
    assert heatmap(load, values, "linear", 20.0).value_edges[-1] == 20
    assert heatmap(load, np.zeros(60), "linear").value_edges[-1] == 1
    assert heatmap(load, values / 118, "linear").value_edges[-1] == 0.5
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


@pytest.mark.parametrize("unknown", [(), (3, 7)])
def test_a_summary_has_the_cells_and_bubbles_of_each_measure(unknown, tmp_path, monkeypatch):
    """Figure 1 leaves out jobs 20 to 29, which are too short; job 25 has no slowdown, and some jobs have no load."""
    rng = np.random.default_rng(2)
    columns = {name: 10 ** (4 * rng.random(60)) for name in HEATMAP_MEASURES} | {"run_time": np.full(60, 60.0)}
    table = pl.DataFrame({"load": rng.random(60)} | columns).with_row_index("job")
    table = table.with_columns(
        load=pl.when(~pl.col("job").is_in(unknown)).then("load"),
        run_time=pl.when(pl.col("job").is_between(20, 29)).then(59.0).otherwise("run_time"),
        slowdown=pl.when(pl.col("job") != 25).then(pl.col("slowdown") / 4),
    )
    table.write_parquet(tmp_path / "run.parquet")
    kept = table.filter((pl.col("run_time") >= 60) & (pl.col("slowdown") <= 1000))
    assert 0 < kept.height < 50
    found = summarize(table)
    for measure in HEATMAP_MEASURES:
        cells = found["cells"].filter(measure=measure).drop("measure")
        assert cells.equals(heatmap(table["load"].to_numpy(), table[measure].to_numpy()).cells())
        for name, classes in (("bubbles", 10), ("bubbles_11", 11)):
            for filtered, part in ((False, table), (True, kept)):
                points = found[name].filter(measure=measure, filtered=filtered).drop("measure", "filtered")
                assert points.equals(bubbles(part["load"].to_numpy(), part[measure].to_numpy(), classes))
    for most in (60, 59):  # a larger file is read one column at a time
        monkeypatch.setattr("swflow.files.tables.MOST_AT_ONCE", most)
        assert all(part.equals(found[name]) for name, part in summarize(tmp_path / "run.parquet").items())
