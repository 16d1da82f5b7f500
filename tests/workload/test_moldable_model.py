"""Tests of moldable jobs: Downey's speedup, the distributions of Cirne and Berman, the step, and runs."""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.cli import call
from helpers.figures import errors_of
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import draw, write
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.scheduling.reference_schedule import conventions
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.studies.runs import run, simulate_all
from swflow.workload.clean import clean_log
from swflow.workload.models.downey import largest_useful, speedup
from swflow.workload.steps.moldable import (
    MINIMUM,
    REQUESTS,
    VARIANCE,
    JobParameters,
    draw_parameters,
    draw_sizes,
    joint_cdf,
    moldable,
    power_of_two_share,
)

# -- Downey's speedup


@given(st.floats(1, 600), st.floats(0, 8), st.integers(1, 5000))
def test_speedup_grows_from_1_to_the_average_parallelism(parallelism, variance, processors):
    few, more = speedup([processors, processors + 1], parallelism, variance)
    assert speedup(1, parallelism, variance) == pytest.approx(1)
    assert few <= more * (1 + 1e-12)
    assert more <= min(processors + 1, parallelism) * (1 + 1e-12)
    if processors >= largest_useful(parallelism, variance):
        assert few == parallelism


@pytest.mark.parametrize("parallelism", [1.0, 1.5, 7.0, 300.0])
@pytest.mark.parametrize("variance", [0.0, 0.3, 1.0, 1.00001, 2.5])
def test_speedup_is_continuous_at_the_borders_of_its_cases(parallelism, variance):
    for border in (parallelism, float(largest_useful(parallelism, variance))):
        below, above = speedup([border * (1 - 1e-9), border * (1 + 1e-9)], parallelism, variance)
        assert below == pytest.approx(above, rel=1e-7)
    assert speedup(5.0, parallelism, 1 - 1e-9) == pytest.approx(speedup(5.0, parallelism, 1 + 1e-9))


def test_speedup_without_variance_is_linear_up_to_the_average_parallelism():
    assert speedup([1, 2, 7, 8, 9, 100], 8, 0).tolist() == [1, 2, 7, 8, 8, 8]


# -- the distributions


@pytest.fixture(scope="module")
def drawn() -> JobParameters:
    return draw_parameters(1_000_000, np.random.default_rng(2001))


def distance(sample: np.ndarray, at: np.ndarray, cdf: np.ndarray) -> float:
    """Return the largest difference between the distribution function of a sample and the stated one."""
    below = np.searchsorted(np.sort(sample), at, side="right") / sample.size
    return float(np.abs(below - cdf).max())


def test_whole_numbers_have_the_stated_distribution(drawn):
    sizes = np.arange(1, 100)
    slope, intercept = MINIMUM
    assert distance(drawn.minimum, sizes, np.minimum(slope * np.log2(sizes) + intercept, 1)) < 0.005
    slope, intercept = REQUESTS
    several = drawn.requests[drawn.requests > 1]
    assert np.mean(drawn.requests == 1) == pytest.approx(0.05, abs=0.001)
    assert distance(several, sizes[1:], np.minimum(slope * np.log2(sizes[1:]) + intercept, 1)) < 0.005


def test_sigma_has_the_stated_normal_distribution_from_0_on(drawn):
    from statistics import NormalDist

    stated = NormalDist(1.209, 1.132)
    at = np.linspace(0, 7, 1_001)
    assert distance(drawn.variance, at, np.array([stated.cdf(x) for x in at])) < 0.005
    assert drawn.variance.min() == 0
    assert np.mean(drawn.variance == 0) == pytest.approx(stated.cdf(0), abs=0.002)
    # E max(X, 0) = mean * P(X > 0) + deviation * density(0)
    assert drawn.variance.mean() == pytest.approx(1.209 * (1 - stated.cdf(0)) + 1.132**2 * stated.pdf(0), abs=0.005)


def test_a_truncated_sigma_has_another_distribution():
    from scipy.stats import truncnorm

    mean, deviation = VARIANCE
    at = np.linspace(0, 7, 1_001)
    drawn = draw_parameters(200_000, np.random.default_rng(5), "truncated").variance
    truncated = truncnorm(-mean / deviation, np.inf, mean, deviation)
    assert distance(drawn, at, truncated.cdf(at)) < 0.005
    assert drawn.min() > 0
    assert drawn.mean() == pytest.approx(1.51, abs=0.01)
    clipped = draw_parameters(200_000, np.random.default_rng(5))
    assert np.array_equal(clipped.requests, draw_parameters(200_000, np.random.default_rng(5), "truncated").requests)
    assert distance(drawn, at, np.mean(clipped.variance[:, None] <= at[:1], axis=0)) > 0.14


def test_sigma_has_two_values():
    tiny = Workload(pl.DataFrame({"job_id": [1], "processors": [2], "run_time": [9.0]}), Machine.of(4), "tiny")
    molded = moldable(tiny, generator(1, "a"), sigma="truncated")
    assert molded.history[-1]["sigma"] == "truncated"
    with pytest.raises(SwflowError, match="sigma: unknown value 'truncate'; did you mean"):
        moldable(tiny, generator(1, "a"), sigma="truncate")


def test_the_average_parallelism_has_the_stated_distribution_given_the_minimum(drawn):
    at = np.exp2(np.linspace(0, 10, 1001))
    alone = drawn.minimum == 1
    given_one = np.clip(joint_cdf(np.ones(1001), at) / MINIMUM[1], 0, 1)
    assert distance(drawn.average_parallelism[alone], at, given_one) < 0.005
    of_eight = drawn.average_parallelism[drawn.minimum == 8]
    given_eight = np.clip((0.009548 * np.log2(at) - 0.01877) / 0.06920, 0, 1) * (at >= 8)
    assert distance(of_eight, at, given_eight) < 0.01  # 12,500 samples
    assert (drawn.average_parallelism >= drawn.minimum).all()


def test_both_together_have_the_stated_joint_distribution(drawn):
    checked = 0
    for x in (1, 2, 4, 8, 10, 16, 30, 32, 40):
        for y in (2, 4, 8, 10, 16, 30, 32, 64, 100, 128, 256, 300, 369):
            if x <= y:
                ours = np.mean((drawn.minimum <= x) & (drawn.average_parallelism <= y))
                assert ours == pytest.approx(float(joint_cdf(x, y)), abs=0.01), (x, y)
                checked += 1
    assert checked > 80


# -- sizes


def sizes_of(minimum, largest, requests, recorded, pb=0.0, keep=False, jobs=6000) -> list[tuple[int, ...]]:
    whole = np.full(jobs, 1)
    parameters = JobParameters(whole * minimum, whole * 1.0, whole * 1.0, whole * requests)
    sizes = draw_sizes(parameters, whole * largest, whole * recorded, pb, keep, np.random.default_rng(5))
    return [tuple(int(size) for size in row if size) for row in sizes]


def test_every_set_of_sizes_is_equally_likely():
    sets, counts = np.unique(np.array(sizes_of(3, 7, 3, recorded=1)), axis=0, return_counts=True)
    assert len(sets) == 10
    assert (np.abs(counts - 600) < 100).all()
    sets, counts = np.unique(np.array(sizes_of(3, 7, 3, recorded=5, keep=True)), axis=0, return_counts=True)
    assert all(5 in row for row in sets)
    assert len(sets) == 6
    assert (np.abs(counts - 1000) < 130).all()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((3, 9, 19, 5), {(3, 4, 5, 6, 7, 8, 9)}),  # all possible sizes
        ((3, 9, 19, 5, 1.0), {(4, 8)}),  # all moved, but not below 3
        ((5, 7, 19, 5, 1.0), {(5, 6, 7)}),  # no power of two among them
        ((9, 4, 3, 2), {(2,)}),  # the machine has fewer than the minimum: the recorded size
        ((3, 9, 1, 20, 0.5, True), {(20,)}),  # one request: rigid
        ((3, 4, 2, 20, 0.0, True), {(3, 20), (4, 20)}),
        ((3, 4, 2, 4, 0.0, True), {(3, 4)}),
    ],
)
def test_sizes_of_small_examples(arguments, expected):
    assert set(sizes_of(*arguments)) == expected


def test_sizes_go_to_the_nearest_power_of_two_with_probability_pb():
    rows = sizes_of(5, 64, 2, recorded=70, pb=0.6, keep=True, jobs=20_000)
    other = np.array([row[0] for row in rows])
    # One size of 60 is drawn; 8, 16, 32 and 64 are already powers of two.
    assert power_of_two_share(other) == pytest.approx(4 / 60 + 56 / 60 * 0.6, abs=0.01)
    assert np.mean(other == 8) == pytest.approx((1 + 7 * 0.6) / 60, abs=0.005)  # 8, and 5, 6, 7 and 9 to 12 moved to it


# -- the step


def workload(jobs: int = 3000, processors: int = 100) -> Workload:
    rng = np.random.default_rng(7)
    table = pl.DataFrame(
        {
            "job_id": np.arange(jobs),
            "submit_time": np.sort(rng.integers(0, 40 * jobs, jobs)).astype(float),
            "run_time": rng.integers(1, 4000, jobs).astype(float),
            "processors": rng.integers(1, processors + 1, jobs),
        }
    ).with_columns(estimate=pl.col("run_time") * 1.5)
    return Workload(table, Machine.of(processors), "made")


@pytest.fixture(scope="module")
def molded() -> Workload:
    return moldable(workload(), generator(1, "made", "moldable"))


def test_the_recorded_shape_is_one_of_the_shapes_bit_by_bit(molded):
    shapes = molded.jobs.explode("shapes").with_columns(
        width=pl.col("shapes").struct.field("processors"), length=pl.col("shapes").struct.field("run_time")
    )
    recorded = shapes.filter(pl.col("width") == pl.col("processors"))
    assert recorded["job_id"].to_list() == molded.jobs["job_id"].to_list()
    assert (recorded["length"] == recorded["run_time"]).all()
    assert shapes["width"].is_between(1, 100).all()
    assert shapes.select(pl.col("width").diff().over("job_id").min() > 0).item()  # distinct, ascending
    work = shapes["length"] * speedup(shapes["width"], shapes["average_parallelism"], shapes["parallelism_variance"])
    per_job = shapes.with_columns(work=work).group_by("job_id").agg(pl.col("work").max() / pl.col("work").min())
    assert per_job["work"].max() == pytest.approx(1)
    drawn = shapes.filter(pl.col("width") != pl.col("processors"))
    assert (drawn["width"] >= drawn["minimum_processors"]).all()
    most = np.floor(largest_useful(drawn["average_parallelism"], drawn["parallelism_variance"]))
    assert (drawn["width"].to_numpy() <= most).all()
    assert (molded.jobs["shapes"].list.len() <= molded.jobs["requests"]).all()
    entry = molded.history[-1]
    assert (entry["shapes"], entry["pb"]) == (shapes.height, power_of_two_share(molded.jobs["processors"].to_numpy()))


def test_the_recorded_shape_can_be_excluded():
    molded = moldable(workload(), generator(1, "made", "moldable"), pb=0.2, keep_recorded=False)
    there = molded.jobs.select(pl.col("shapes").list.eval(pl.element().struct.field("processors")), "processors")
    assert there.select(pl.col("shapes").list.contains(pl.col("processors"))).to_series().mean() < 0.2
    assert molded.history[-1]["pb"] == 0.2


def test_the_same_seed_gives_the_same_bytes(tmp_path, molded):
    for name, words in (("a", ("made", "moldable")), ("b", ("made", "moldable")), ("c", ("made", "moldable@2"))):
        write_workload(moldable(workload(), generator(1, *words)), tmp_path / f"{name}.parquet")
    a, b, c = ((tmp_path / f"{name}.parquet").read_bytes() for name in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    ("columns", "pb", "message"),
    [
        ({"run_time": [None, 1.0]}, None, "made: 1 jobs have no run time; drop them"),
        ({"processors": [5, 1]}, None, "1 jobs are wider than the machine, the first is job 1"),
        ({}, 1.5, "pb: 1.5; expected a number from 0 to 1"),
    ],
)
def test_invalid_workloads_are_errors_with_a_reason(columns, pb, message):
    table = pl.DataFrame({"job_id": [1, 2], "processors": [1, 2], "run_time": [5.0, 5.0]} | columns)
    with pytest.raises(SwflowError, match=message):
        moldable(Workload(table, Machine.of(4), "made"), np.random.default_rng(1), pb=pb)


# -- runs


def tiny(shapes, **columns) -> Workload:
    """Return a workload of two jobs, the second of which waits for the first or chooses fewer processors."""
    table = {"job_id": [1, 2], "submit_time": [0.0, 1.0], "run_time": [10.0, 8.0], "estimate": [20.0, 16.0]}
    jobs = pl.DataFrame(table | {"processors": [3, 4]} | columns).with_columns(
        shapes=pl.Series(
            [[{"processors": p, "run_time": r} for p, r in own] if own is not None else None for own in shapes],
            dtype=pl.List(pl.Struct({"processors": pl.Int64(), "run_time": pl.Float64()})),
        )
    )
    return Workload(jobs, Machine.of(4), "tiny")


def ran(workload: Workload, **options) -> list[tuple[float, int, float]]:
    return simulate(workload, Scheduler(**options)).select("start_time", "processors", "run_time").rows()


def test_the_outcome_has_the_chosen_shape():
    workload = tiny([None, [(1, 30.0), (4, 8.0)]])
    assert ran(workload, shapes="start") == [(0, 3, 10), (1, 1, 30)]
    assert ran(workload, shapes="submit") == [(0, 3, 10), (20 - 10, 4, 8)]  # planned 20 + 16 against 1 + 60
    assert ran(workload) == [(0, 3, 10), (10, 4, 8)]
    # With perfect predictions: 10 + 8 against 1 + 15.
    assert ran(tiny([[], [(1, 15.0), (4, 8.0)]]), shapes="submit", prediction="perfect")[1] == (1, 1, 15)
    result = run(workload, Scheduler(shapes="start"))
    assert result.metrics["squashed_area"] == 3 * 10 + 1 * 30
    assert result.outcomes["slowdown"][1] == 1


def test_efficient_shapes_waste_at_most_the_permitted_share():
    workload = tiny([None, [(1, 30.0), (2, 29.0), (4, 8.0)]])  # areas 30, 58 and 32
    assert ran(workload, shapes="start", shape_choice="efficient", efficiency=0.95)[1] == (1, 1, 30)
    wide = tiny([[(1, 10.0), (2, 9.0), (4, 8.0)], None])
    for efficiency, processors in ((0.6, 1), (0.5, 2), (0.3, 4)):
        chosen = ran(wide, shapes="start", shape_choice="efficient", efficiency=efficiency)
        assert chosen[0][1] == processors
    assert ran(wide, shapes="start")[0][1] == 4


def test_estimates_follow_the_speedup_and_kill():
    workload = tiny([None, [(1, 30.0), (4, 8.0)]], estimate=[10.0, 4.0])
    outcome = simulate(workload, Scheduler(shapes="start", estimates="kill"))
    assert outcome.select("run_time", "killed").rows() == [(10, False), (15, True)]  # 30 s by a quarter of 8 and 4


def test_shapes_wider_than_the_machine_are_not_chosen():
    workload = tiny([[(1, 9.0), (5, 1.0)], [(2, 3.0), (9, 1.0)]], processors=[5, 9])
    assert ran(workload, shapes="start") == [(0, 1, 9), (1, 2, 3)]
    with pytest.raises(SwflowError, match="tiny: 1 jobs have no shape of at most 4 processors"):
        ran(tiny([[(5, 1.0)], None]), shapes="submit")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prediction": "system"}, "shapes: the run times of other shapes cannot be predicted"),
        ({"allocation": "first-fit", "runtime": "shared", "estimates": "kill"}, "and raise estimates"),
        ({"order": "log"}, "order log"),
        ({"efficiency": 0.0}, "efficiency: 0.0; expected above 0, at most 1"),
        ({"shape_choice": "best"}, "shape_choice: unknown value 'best'"),
    ],
)
def test_incompatible_options_are_errors(options, words):
    with pytest.raises(SwflowError, match=words):
        Scheduler(shapes="submit", **options)


def test_a_reference_schedule_states_how_shapes_were_chosen():
    lines = conventions(tiny([None, None]), Scheduler(shapes="start", shape_choice="efficient", efficiency=0.7))
    assert any(line.startswith("Shapes (start): at the start: the fastest shape") for line in lines)
    assert "Shapes that may be chosen (efficient): those that use their processors well enough, by 0.7" in lines


def test_commands_from_a_log_to_a_run_with_shapes(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write_workload(workload(50), "made.parquet")
    assert call("simulate", "made.parquet", "--shapes", "submit") == 1
    assert "made has no column shapes; make one with: swflow moldable made.parquet" in capfd.readouterr().err
    assert call("moldable", "made.parquet", "-o", "made+moldable.swf") == 1
    assert ": only .parquet can hold the shapes" in capfd.readouterr().err
    assert call("moldable", "made.parquet", "-o", "made+moldable.parquet", "--pb", "0.5", "--seed", 3) == 0
    assert "powers of two with probability 0.500" in capfd.readouterr().err
    assert call("select", "made+moldable.parquet", "-o", "made+moldable+few.parquet", "--jobs", 40) == 0
    options = ["--backfill", "easy", "--shapes", "start"]
    assert call("simulate", "made+moldable+few.parquet", *options, "-o", "run.parquet") == 0
    assert call("load", "run.parquet", "--database", "d.duckdb") == 0
    capfd.readouterr()
    text = """SELECT count(*) AS n, sum((list_contains(list_transform(shapes, lambda s: s.processors),
            outcomes.processors)
        AND list_contains(list_transform(shapes, lambda s: s.run_time), outcomes.run_time))::INTEGER) AS fitting,
        sum((outcomes.processors != jobs.processors)::INTEGER) > 5 AS chosen
        FROM outcomes JOIN jobs USING (workload, job_id)"""
    assert call("sql", text, "--database", "d.duckdb", "--csv") == 0
    assert capfd.readouterr().out.split() == ["n,fitting,chosen", "40,40,true"]
    text = "SELECT stage, reason, jobs FROM removals UNION ALL SELECT shapes, scheduler, 0 FROM schedulers ORDER BY ALL"
    assert call("sql", text, "--database", "d.duckdb", "--csv") == 0
    assert "moldable,kept,50" in capfd.readouterr().out
    spec = draw("moldable", "d.duckdb", log="made")
    assert errors_of(spec) == []
    assert spec == draw("moldable", "d.duckdb", log="made")
    lines, points = list(spec["datasets"].values())[:2]
    stated = {row["x"]: row["y"] for row in lines}
    assert max(abs(stated[row["x"]] - row["y"]) for row in points) < 0.3  # 50 jobs
    write(spec, "checks.svg")
    assert "Figure 11" in (tmp_path / "checks.svg").read_text()


def test_the_figure_of_the_model_needs_moldable_jobs(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write_workload(workload(50), "made.parquet")
    assert call("simulate", "made.parquet", "-o", "run.parquet") == 0
    assert call("load", "run.parquet", "--database", "d.duckdb") == 0
    capfd.readouterr()
    assert call("figure", "moldable", "--log", "made", "--database", "d.duckdb", "-o", "x.svg") == 1
    assert "none of the runs has moldable jobs; create them with: swflow moldable" in capfd.readouterr().err


def test_a_published_share_is_next_to_ours(tmp_path):
    table = workload(400).jobs.with_columns(processors=pl.when(pl.col("job_id") < 100).then(3).otherwise(4))
    write_workload(Workload(table, Machine.of(100), "KTH-SP2"), tmp_path / "KTH-SP2.parquet")
    simulate_all(tmp_path / "KTH-SP2.parquet", {"fcfs": {}}, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    _, rows = query(
        tmp_path / "d.duckdb",
        "SELECT published, ours FROM reproduction WHERE figure = 'power_of_two_percent' AND reason IS NULL",
    )
    assert rows == [(73.4, 75.0)]


# -- real logs

TABLE_1 = {"KTH-SP2-1996-2.1-cln": (100, None, 73.4), "SDSC-SP2-1998-3.1-cln": (128, None, 83.9)}


@pytest.mark.archive
@pytest.mark.parametrize("log", TABLE_1)
def test_power_of_two_shares_of_the_paper(traces, log):
    """Cirne, Berman 2001, Table 1: the share of all jobs of the log."""
    processors, _, published = TABLE_1[log]
    jobs = clean_log(traces / f"{log}.swf.gz", processors=processors, drop=["no-processors"]).jobs
    assert 100 * power_of_two_share(jobs["processors"].to_numpy()) == pytest.approx(published, abs=0.5)


@pytest.mark.archive
def test_choosing_shapes_lowers_response_times(traces):
    """KTH under EASY, two replicates: the mean response time of rigid jobs, and with each time of choice."""
    rigid = clean_log(traces / "KTH-SP2-1996-2.1-cln.swf.gz", name="KTH-SP2", processors=100)
    for replicate in ("moldable@1", "moldable@2"):
        molded = moldable(rigid, generator(1, "KTH-SP2", replicate))
        requested, submit, start = (
            simulate(molded, Scheduler(backfill="easy", shapes=shapes))["response_time"].mean()
            for shapes in ("requested", "submit", "start")
        )
        assert max(submit, start) < 0.9 * requested


def test_draws_do_not_depend_on_the_instructions_of_the_processor(tmp_path):
    """NumPy computes powers with other instructions on other processors, which differ in the last bits."""
    wanted = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512F AVX512_SKX ASIMDHP SVE"
    code = (
        "import hashlib, numpy as np; from swflow.workload.steps.moldable import draw_parameters as draw; "
        "drawn = draw(200_000, np.random.default_rng(1)); "
        "print(hashlib.sha256(b''.join(np.asarray(one).tobytes() for one in vars(drawn).values())).hexdigest())"
    )
    for disabled in ("", wanted):
        environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": disabled, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        found = tmp_path / "drawn.txt"
        assert not found.exists() or found.read_text() == done.stdout
        found.write_text(done.stdout)
