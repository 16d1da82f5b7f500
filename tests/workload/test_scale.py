"""Tests of scaling to another machine size, sweeps, and the search for the factor that matches the source."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.figures import errors_of
from swflow.analysis.metrics import fairness_indices
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import draw_sweep
from swflow.files.query import query
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator, step_generator
from swflow.jobs.table import Workload
from swflow.log.swf import write_swf
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.studies.points import Point, values
from swflow.studies.runs import simulate_all
from swflow.studies.sweeps import (
    adjust,
    crossing_quantiles,
    evaluate,
    find_factor,
    first_crossing,
    points,
    sweep,
    write_sweep,
)
from swflow.workload.clean import LOST_DEPENDENCIES, clean, clean_log
from swflow.workload.models.lublin import generate_lublin
from swflow.workload.steps.scale import VARIANTS, WIDTHS, scale

EASY = {"easy": Scheduler(backfill="easy")}


def workload(widths, machine=64, nodes=None, **columns):
    """Return a workload of jobs with these widths."""
    count = len(widths)
    table = pl.DataFrame({
        "job_id": np.arange(1, count + 1), "submit_time": np.sort(np.arange(count) // 3).astype(float),
        "run_time": np.full(count, 60.0), "estimate": np.full(count, 90.0), "processors": widths,
        "allocated_processors": widths, "requested_processors": [None if w % 2 else w for w in widths], **columns,
    }, schema_overrides=dict.fromkeys(WIDTHS, pl.Int64()))  # fmt: skip
    return Workload(table, Machine.of(machine, nodes), "toy")


def synthetic(jobs=300, machine=32):
    fields = generate_lublin(jobs, machine, generator(1, "A"))
    return clean(fields, Machine.of(machine), name="A")


cases = st.tuples(
    st.lists(st.integers(1, 64), min_size=1, max_size=30),
    st.integers(1, 500),
    st.sampled_from([0, 1, 37.5, 50, 99, 100]),
    st.sampled_from([*VARIANTS]),
    st.one_of(st.none(), st.integers(1, 5).map(float), st.floats(0.05, 12)),
    st.integers(0, 3),
)


@given(cases)
def test_scaled_workloads_are_workloads(case):
    widths, processors, d, variant, factor, seed = case
    source = workload(widths)
    try:
        result = scale(source, processors, d=d, variant=variant, factor=factor, generator=np.random.default_rng(seed))
    except SwflowError as error:
        assert "whole number" in str(error) or "jobs were removed" in str(error)
        return
    jobs, entry = result.jobs, result.history[-1]
    exact = processors / 64 if factor is None else factor
    f = round(exact) if variant == "integer" else exact
    assert result.machine.processors == processors
    for column in WIDTHS:
        known = jobs[column].drop_nulls()
        assert known.is_between(1, processors).all()
    assert jobs["job_id"].is_unique().all()
    assert jobs.select("submit_time", "job_id").rows() == sorted(jobs.select("submit_time", "job_id").rows())
    assert jobs["source_job_id"].is_sorted()
    joined = jobs.join(source.jobs, left_on="source_job_id", right_on="job_id", suffix="_source", how="left")
    assert (joined["submit_time"] == joined["submit_time_source"]).all()
    assert (joined["run_time"] == joined["run_time_source"]).all()
    # Every row is the original, cut to the machine, or its multiple, which is then the only row of the job.
    copied = joined["processors"] == np.minimum(joined["processors_source"], processors)
    wide = np.minimum(np.maximum(np.floor(joined["processors_source"].to_numpy() * f + 0.5), 1), processors)
    alone = jobs["source_job_id"].is_unique()
    assert (copied | (pl.Series(wide == joined["processors"].to_numpy()) & alone)).all()
    counts = np.bincount(jobs["source_job_id"].to_numpy(), minlength=len(widths) + 1)[1:]
    fewest, most = (
        (np.floor(f), np.ceil(f)) if variant != "precise-size" else (max(1, round(exact)), max(1, round(exact)))
    )
    assert ((counts == 1) | ((counts >= fewest) & (counts <= most))).all()
    assert entry["widened"] + entry["copied"] == entry["read"] == len(widths)
    assert entry["kept"] + entry["removed"].get("no-copy", 0) == len(widths)
    assert entry["kept"] == (counts > 0).sum() and entry["jobs"] == jobs.height
    if d == 0:
        assert (joined["processors"].to_numpy() == wide).all() and jobs.height == len(widths)
        assert jobs["job_id"].to_list() == source.jobs["job_id"].to_list()
    if d == 100:
        assert copied.all() and entry["widened"] == 0
    again = scale(source, processors, d=d, variant=variant, factor=factor, generator=np.random.default_rng(seed))
    assert again.jobs.equals(jobs) and again.history == result.history


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 64), min_size=1, max_size=30), st.sampled_from([*VARIANTS]), st.integers(0, 100),
    st.integers(0, 9),
)  # fmt: skip
def test_a_factor_of_1_changes_nothing(widths, variant, d, seed):
    source = workload(widths, nodes=16, preceding_job_id=pl.Series([None, *range(1, len(widths))], dtype=pl.Int64()))
    result = scale(source, 64, d=d, variant=variant, factor=1, generator=np.random.default_rng(seed))
    assert result.jobs.drop("source_job_id").equals(source.jobs)
    assert result.machine == source.machine


def test_copies_and_widths_are_the_factor_on_average():
    source = workload([4] * 20_000)
    result = scale(source, 1000, d=30, factor=2.3814, generator=np.random.default_rng(1))
    widened = result.jobs.filter(pl.col("processors") == 10).height
    copies = result.jobs.filter(pl.col("processors") == 4)
    assert widened / 20_000 == pytest.approx(0.7, abs=0.02)  # six standard deviations
    assert copies.height / (20_000 - widened) == pytest.approx(2.3814, abs=0.04)
    assert set(copies.group_by("source_job_id").len()["len"]) == {2, 3}
    down = scale(source, 16, d=100, factor=0.25, generator=np.random.default_rng(1))
    assert down.jobs.height / 20_000 == pytest.approx(0.25, abs=0.02)
    assert down.history[-1]["removed"] == {"no-copy": 20_000 - down.jobs.height}


def test_copies_are_consecutive_and_refer_to_their_own_predecessor():
    source = workload([1, 2, 3], preceding_job_id=[None, 1, 99], source_job_id=[70, 80, 90])
    jobs = scale(source, 640, d=100, factor=10, generator=np.random.default_rng(1)).jobs
    assert jobs["job_id"].to_list() == [10 * job + copy for job in (1, 2, 3) for copy in range(10)]
    assert jobs["source_job_id"].unique().to_list() == [70, 80, 90]
    second = jobs.filter(source_job_id=80)
    assert second["preceding_job_id"].to_list() == [*range(10, 20)]
    assert set(jobs.filter(source_job_id=90)["preceding_job_id"]) == {990}
    mixed = scale(workload([1] * 40, preceding_job_id=[None, *range(1, 40)]), 128, generator=np.random.default_rng(3))
    named = set(mixed.jobs["job_id"])
    assert set(mixed.jobs["preceding_job_id"].drop_nulls()) <= named


def test_copies_depend_on_copies_and_have_arrays_of_their_own():
    """Job 11 depends on jobs 1 and 10, whose ids are also those of copies of other jobs."""
    after = pl.Series([*[None] * 10, [1, 10]], dtype=pl.List(pl.Int64()))
    source = workload([1] * 11, depends_on=after, array_id=[7, *[None] * 10], array_limit=[1, *[None] * 10])
    jobs = scale(source, 128, d=100, generator=np.random.default_rng(1)).jobs
    assert jobs["depends_on"].drop_nulls().to_list() == [[10, 100], [11, 101]]
    assert jobs["array_id"].drop_nulls().to_list() == [70, 71]
    wide = scale(source, 128, d=0, generator=np.random.default_rng(1)).jobs
    assert wide["depends_on"].to_list() == after.to_list()
    down = scale(workload([1] * 40, depends_on=[None, *([job] for job in range(1, 40))]), 32, d=100,
                 generator=np.random.default_rng(3))  # fmt: skip
    named = down.jobs["depends_on"].drop_nulls().explode()
    assert set(named) <= set(down.jobs["job_id"])
    lost = down.jobs.filter(pl.col("job_id") > 1).height - len(named)
    assert down.history[-1]["notes"] == {LOST_DEPENDENCIES: lost}
    assert simulate(down, Scheduler()).height == down.jobs.height


def test_values_per_process_stay_and_shapes_scale():
    shapes = [[{"processors": 2, "run_time": 90.0}, {"processors": 4, "run_time": 60.0},
               {"processors": 5, "run_time": 50.0}, {"processors": 60, "run_time": 9.0}]] * 2  # fmt: skip
    source = workload([4, 4], memory_bandwidth=[500.0, 2000.0], shapes=shapes, used_memory=[7.0, None])
    wide = scale(source, 128, d=0, generator=np.random.default_rng(1)).jobs
    assert wide["processors"].to_list() == [8, 8]
    assert wide["memory_bandwidth"].to_list() == [500.0, 2000.0] and wide["used_memory"].to_list() == [7.0, None]
    assert [tuple(shape.values()) for shape in wide["shapes"][0]] == [(4, 90.0), (8, 60.0), (10, 50.0), (120, 9.0)]
    narrow = scale(source, 16, d=0, generator=np.random.default_rng(1)).jobs
    # 4 and 5 both become 1: the recorded shape stays; 2 also becomes 1 and is dropped
    assert [tuple(shape.values()) for shape in narrow["shapes"][1]] == [(1, 60.0), (15, 9.0)]
    copies = scale(source, 32, d=100, factor=2, generator=np.random.default_rng(1)).jobs
    assert [shape["processors"] for shape in copies["shapes"][3]] == [2, 4, 5, 32]
    assert copies.schema == source.jobs.schema | {"source_job_id": pl.Int64()}


@pytest.mark.parametrize(("processors", "nodes"), [(1024, 128), (12, 12), (8, 1), (4, 4)])
def test_nodes_keep_their_size_if_they_fill_the_machine(processors, nodes):
    result = scale(workload([1], nodes=8), processors, d=0, generator=np.random.default_rng(1))
    assert result.machine == Machine(processors, nodes)


def test_resources_besides_processors_are_not_lost():
    source = replace(workload([1, 2], gpus=[1, 2]), machine=Machine(64, 64, resources={"gpus": 4}))
    with pytest.raises(SwflowError, match=r"the units of gpus .* remove them with swflow machine --resource gpus=none"):
        scale(source, 128, generator=np.random.default_rng(1))
    with pytest.raises(SwflowError, match="the units of gpus"):
        sweep(source, points(source, 128), EASY, replicates=1, seed=1)


def test_a_scaled_workload_written_as_swf_keeps_its_machine(tmp_path):
    result = scale(synthetic(), 320, d=0, generator=np.random.default_rng(1))
    write_swf(tmp_path / "x.swf.gz", result.jobs, result.header)
    again = clean_log(tmp_path / "x.swf.gz")
    assert again.machine == result.machine
    assert again.jobs["processors"].equals(result.jobs["processors"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processors": 0}, "processors: 0; expected at least 1"),
        ({"d": 101}, "d: 101; expected a number from 0 to 100"),
        ({"variant": "precize"}, "did you mean 'precise'"),  # prose: ignore
        ({"factor": -1.0}, "factor: -1.0; expected a number above 0"),
        ({"variant": "integer", "factor": 2.5}, "not a positive whole number"),
        ({"variant": "integer", "processors": 10}, "choose variant precise"),
        ({"copies": 3}, "only with precise-size"),
        ({"d": 100, "factor": 1e-9}, "all 3 jobs were removed"),
    ],
)
def test_bad_options_are_errors(options, words):
    with pytest.raises(SwflowError, match=words):
        scale(workload([1, 2, 3]), **({"processors": 128} | options), generator=np.random.default_rng(1))


def noisy(zero, spread, seed=0):
    """Return an increasing function with noise, which is mostly the same for a replicate at every factor."""

    def deviations(factor, replicates):
        return [
            0.4 * (factor - zero) + spread * np.random.default_rng([seed, one, int(factor * 1e6)]).normal()
            for one in replicates
        ]

    return deviations


@pytest.mark.parametrize("zero", [9.2, 10.0, 10.01, 10.9, 12.0])
@pytest.mark.parametrize("spread", [0.0, 0.01, 0.05])
def test_the_search_finds_a_known_zero_through_noise(zero, spread):
    for seed in range(5):
        search = find_factor(noisy(zero, spread, seed), 10.0, tolerance=0.02, replicates=5)
        assert search.fits
        assert abs(search.deviation(search.factor)[0]) <= 0.02
        assert 0.4 * abs(search.factor - zero) <= 0.02 + 4 * spread / np.sqrt(5)
        assert len(search.samples) < 25


def test_the_search_reports_that_nothing_fits():
    jump = find_factor(
        lambda factor, ones: [-0.5 if factor < 10.3 else 0.4] * len(ones), 10, tolerance=0.02, replicates=2
    )
    assert not jump.fits and jump.factor >= 10.3
    assert max(f for f in jump.samples if f < 10.3) == pytest.approx(10.3, abs=0.01)
    never = find_factor(lambda factor, ones: [-0.5] * len(ones), 10, tolerance=0.02, replicates=2)
    assert not never.fits and max(never.samples) < 20


def test_grids_of_values():
    assert values("0:100:25", "--d") == [0, 25, 50, 75, 100]
    assert values("10.24:10.28:0.02", "--factor") == [10.24, 10.26, 10.28]
    for wrong in ("a", "1:2", "2:1:1", "0:1:0", "nan"):
        with pytest.raises(SwflowError, match="--d: "):
            values(wrong, "--d")
    settings = points(workload([1]), 128, d=[0, 50], variant=[*VARIANTS], excess=[0, 5], copies=3)
    assert len(settings) == 12 and {point.factor for point in settings} == {2.0, 2.1}
    assert {point.copies for point in settings if point.variant != "precise-size"} == {None}


def test_a_sweep_equals_the_steps_of_the_same_name(tmp_path):
    source = synthetic()
    table = sweep(source, points(source, 100, d=[0, 50], variant=["precise"]), EASY, replicates=2, seed=3)
    assert table.height == 1 + 2 * 2
    assert table["workload"].to_list()[3:] == ["A+precise-100-d50@1", "A+precise-100-d50@2"]
    parallel = sweep(source, points(source, 100, d=[0, 50], variant=["precise"]), EASY, replicates=2, seed=3, threads=2)
    assert parallel.equals(table)
    name = table["workload"][4]
    rng = step_generator(3, "A", tmp_path / f"{name}.parquet", "scale")
    write_workload(scale(source, 100, generator=rng), tmp_path / f"{name}.parquet")
    again = scale(source, 100, generator=step_generator(3, "A", f"{name}.parquet", "scale"))
    write_workload(again, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / f"{name}.parquet").read_bytes()
    made = read_workload(tmp_path / f"{name}.parquet")
    assert made.jobs.height == table["jobs"][4]
    area = (made.jobs["processors"] * made.jobs["run_time"]).sum()
    assert area == table["squashed_area"][4]
    with pytest.raises(SwflowError, match="no recorded schedule"):
        sweep(source, [Point(100)], {"log": Scheduler(order="log")}, replicates=1, seed=1)


def test_a_sweep_simulates_dependencies_and_cancellations(tmp_path):
    source = synthetic()
    is_left = pl.col("job_id") % 3 == 0
    jobs = source.jobs.with_columns(
        cancelled_after=pl.when(is_left).then(60.0),
        depends_on=pl.when(pl.col("job_id") % 5 == 1).then(pl.concat_list(pl.col("job_id") - 1)),
        think_time=pl.lit(600.0),
    )
    source = replace(source, jobs=jobs.filter(pl.col("job_id") > 1))
    table = sweep(source, points(source, 100, variant=["precise"]), EASY, replicates=1, seed=3)
    scaled = scale(source, 100, generator=step_generator(3, "A", table["workload"][1], "scale"))
    for workload_, row in ((source, 0), (scaled, 1)):
        outcomes = simulate(workload_, EASY["easy"])
        assert table["jobs"][row] == outcomes.height < workload_.jobs.height
        assert table["mean_wait_time"][row] == pytest.approx(outcomes["wait_time"].mean(), rel=1e-12)


def test_a_sweep_copies_only_the_columns_that_its_schedulers_need(monkeypatch):
    scaled = []

    def recorded(workload, *arguments, **options):
        scaled.append(workload.jobs.columns)
        return scale(workload, *arguments, **options)

    monkeypatch.setattr("swflow.studies.sweeps.scale", recorded)
    draw = np.random.default_rng(1)
    source = workload(draw.integers(1, 9, 60).tolist(), status=draw.integers(0, 6, 60), queue_id=[3, 1] * 30)
    settings = points(source, 96, d=[50], variant=["precise"])
    plain = sweep(source, settings, EASY, replicates=1, seed=1)
    assert sorted(scaled.pop()) == ["estimate", "job_id", "processors", "run_time", "submit_time"]
    schedulers = EASY | {
        "without": Scheduler(backfill="easy", without_status=(5,)), "queue": Scheduler(order="queue_id")
    }  # fmt: skip
    table = sweep(source, settings, schedulers, replicates=1, seed=1)
    assert set(scaled.pop()) == set(source.jobs.columns)
    assert table.filter(scheduler="easy").equals(plain)
    (jobs,) = table.filter(scheduler="without", replicate=1)["jobs"]
    assert 0 < jobs < table["jobs"].max()


def test_sweeps_have_the_fairness_indices_of_their_draws():
    draw = np.random.default_rng(1)
    source = workload(draw.integers(1, 9, 60).tolist(), user_id=draw.integers(1, 5, 60))
    table = sweep(source, points(source, 96, d=[50], variant=["precise"]), EASY, replicates=1, seed=1)
    for row, made in ((0, source), (1, scale(source, 96, generator=generator(1, "toy", "precise-96-d50@1")))):
        expected = fairness_indices(simulate(made, EASY["easy"]), made.jobs)
        assert None not in expected.values()
        assert table.select(*expected).row(row, named=True) == expected


@pytest.mark.slow
def test_a_search_matches_the_source_and_its_curve_is_drawn(tmp_path):
    source = synthetic(600)
    source = replace(source, jobs=source.jobs.with_columns(user_id=pl.col("job_id") % 5))
    search, table = adjust(source, 320, EASY["easy"], replicates=3, name="easy", threads=2)
    assert search.fits
    mine = table.filter(pl.col("factor").is_between(search.factor - 1e-4, search.factor + 1e-4))
    assert mine["awrt"].mean() == pytest.approx(table["awrt"][0], rel=0.02)
    write_sweep(table, tmp_path / "A+adjusted.parquet", "A", EASY)
    swept = sweep(source, points(source, 320, d=[0, 50, 100], variant=[*VARIANTS]), EASY, replicates=3, seed=1)
    write_sweep(swept, tmp_path / "A+d.parquet", "A", EASY)
    counts = load([tmp_path / "A+adjusted.parquet", tmp_path / "A+d.parquet"], tmp_path / "d.duckdb")
    assert counts["sweeps"] == table.height + swept.height
    _, rows = query(
        tmp_path / "d.duckdb",
        "SELECT replicates, median, mean FROM replicates WHERE recipe = 'A+precise-320-d50' AND measure = 'awrt'",
    )
    point = swept.filter(recipe="A+precise-320-d50")["awrt"]
    assert rows == [(3, pytest.approx(point.median()), pytest.approx(point.mean()))]

    # the source is in both sweeps, and here also a run, which has more figures
    (tmp_path / "made").mkdir()
    write_workload(source, tmp_path / "made/A.parquet")
    simulate_all(tmp_path / "made/A.parquet", {"easy": {"backfill": "easy"}}, tmp_path / "runs")
    load([tmp_path / "runs", *tmp_path.glob("A+*.parquet")], tmp_path / "d.duckdb")
    _, rows = query(
        tmp_path / "d.duckdb",
        "SELECT count(*), count(DISTINCT figure), count(*) FILTER (figure = 'gini_wait_time') FROM figures "
        "WHERE workload = 'A' AND scheduler = 'easy'",
    )
    assert rows[0][0] == rows[0][1] > 20 and rows[0][2] == 1
    assert query(tmp_path / "d.duckdb", "SELECT count(*) FROM figures WHERE workload LIKE '%adjusted%'")[1] == [(0,)]
    spec = draw_sweep(tmp_path / "d.duckdb", "d", measures=["awrt", "utilization"], interactive=True)
    assert errors_of(spec) == []
    drawn = next(rows for rows in spec["datasets"].values() if rows and rows[0].get("draws") == 3)
    assert [row["x"] for row in drawn if row["line"] == "precise"] == [0, 50, 100]
    mean = next(row for row in drawn if row["line"] == "precise" and row["x"] == 50)
    half = 4.303 * point.std() / np.sqrt(3)  # Student's t with two degrees of freedom, from a printed table
    assert mean["mean"] == pytest.approx(point.mean()) and mean["high"] - mean["mean"] == pytest.approx(half, rel=1e-3)
    assert draw_sweep(tmp_path / "d.duckdb", "adjusted", log="A")["usermeta"]["title"] == "A: scaled to 320 processors"

    # Two parameters vary: the one with fewer values has a line for each, so that no mean mixes them.
    both = points(source, 320, d=[0, 50, 100], factor=[10, 11])
    crossed = sweep(source, both, EASY, replicates=2, seed=1)
    write_sweep(crossed, tmp_path / "A+both.parquet", "A", EASY)
    load([tmp_path / "A+both.parquet"], tmp_path / "both.duckdb")
    spec = draw_sweep(tmp_path / "both.duckdb", "both", measures=["awrt"])
    assert errors_of(spec) == []
    drawn = next(rows for rows in spec["datasets"].values() if rows and "draws" in rows[0])
    assert [(row["line"], row["x"]) for row in drawn] == [
        (f"precise, factor {factor}", share) for factor in (10, 11) for share in (0, 50, 100)
    ]
    assert {row["draws"] for row in drawn} == {2}
    one = crossed.filter(pl.col("d") == 50, pl.col("factor") == 11)["awrt"]
    assert drawn[4]["mean"] == pytest.approx(one.mean())
    for options, words in (({"sweep": "e"}, "found A\\+adjusted"), ({"measures": ["awr"]}, "did you mean 'awrt'")):
        with pytest.raises(SwflowError, match=words):
            draw_sweep(tmp_path / "d.duckdb", **({"sweep": "d"} | options))


@pytest.fixture(scope="module")
def kth(traces):
    """Open the cleaned KTH log."""
    return clean_log(traces / "KTH-SP2-1996-2.1-cln.swf.gz", name="KTH-SP2")


@pytest.mark.archive
def test_kth_scaled_to_1024_agrees_with_tables_ii_and_iii(kth):
    def median(point, measure, seeds=5, schedulers=EASY):
        return np.median([evaluate(kth, point, schedulers, one, 1)[0][measure] for one in range(1, seeds + 1)])

    source = (kth.jobs["processors"] * kth.jobs["run_time"]).sum()
    assert median(Point(1024), "squashed_area", 20) == pytest.approx(10.24 * source, rel=0.01)
    assert median(Point(1024), "jobs", 20) == pytest.approx(159_096, rel=0.01)
    awrt = {d: median(Point(1024, d), "awrt") for d in (1, 50, 99)}
    assert awrt == {1: pytest.approx(75_562, rel=0.01), 50: pytest.approx(70_002, rel=0.02),
                    99: pytest.approx(62_981, rel=0.01)}  # fmt: skip
    sizes = {d: median(Point(1024, d, "precise-size"), "awrt") for d in (1, 50, 99)}
    assert sizes == {1: pytest.approx(76_102, rel=0.01), 50: pytest.approx(68_877, rel=0.02),
                     99: pytest.approx(61_948, rel=0.01)}  # fmt: skip
    fcfs = {"fcfs": Scheduler()}
    assert median(Point(1024, 99), "awrt", schedulers=fcfs) == pytest.approx(64_013, rel=0.02)
    assert median(Point(1024, 50), "awrt", schedulers=fcfs) == pytest.approx(93_097, rel=0.15)


def test_a_first_crossing_is_the_first_single_draw_that_reaches_the_source():
    source = synthetic(400)
    found, both = first_crossing(source, 320, EASY | {"fcfs": Scheduler()}, step=0.05, replicates=3, threads=2)
    assert both["scheduler"].unique(maintain_order=True).to_list() == ["easy", "fcfs"]
    alone, table = first_crossing(source, 320, EASY, step=0.05, replicates=3)
    assert both.filter(scheduler="easy").equals(table) and found["easy"] == alone["easy"]
    factors, target, walks = found["easy"], table["awrt"][0], table[1:]
    assert len(set(factors)) > 1
    for replicate, factor in enumerate(factors, 1):
        walk = walks.filter(replicate=replicate)
        assert walk["factor"][0] == pytest.approx(320 / source.machine.processors, abs=0.05)
        assert walk["factor"].diff().drop_nulls().to_list() == pytest.approx([0.05] * (walk.height - 1))
        assert (walk["awrt"][:-1] < target).all()
        assert walk["factor"][-1] == factor and walk["awrt"][-1] >= target
    settings = points(source, 320, factor=walks.filter(replicate=2)["factor"].to_list())
    swept = sweep(source, settings, EASY, replicates=2, seed=1).filter(replicate=2)
    assert swept["awrt"].to_list() == walks.filter(replicate=2)["awrt"].to_list()
    assert crossing_quantiles([*factors, None])[2] is None
    with pytest.raises(SwflowError, match="expected a positive step"):
        first_crossing(source, 320, EASY, step=0.0)
    with pytest.raises(SwflowError, match=r"step 10: no multiple from 5 to 8\.5; expected a smaller"):
        first_crossing(source, 160, EASY, step=10.0)


@pytest.mark.archive
def test_kth_adjusted_under_easy_agrees_with_the_paper(kth):
    search, table = adjust(kth, 1024, EASY["easy"])
    assert search.fits and 10.4 <= search.factor <= 11.0
    last = table.filter((pl.col("factor") - search.factor).abs() < 1e-4)
    assert last["awrt"].mean() == pytest.approx(76_179, rel=0.02)
    assert last["awwt"].mean() - table["awwt"][0] == pytest.approx(last["awrt"].mean() - table["awrt"][0], abs=150)
