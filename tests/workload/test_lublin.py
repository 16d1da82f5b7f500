"""Tests of the Lublin model against summary statistics of its authors' program and against its formulas."""

import json
from dataclasses import astuple
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from swflow.errors import SwflowError
from swflow.jobs.table import SWF_FIELDS
from swflow.workload.models import lublin
from swflow.workload.models.lublin import (
    BATCH,
    COMBINED,
    INTERACTIVE,
    USERS,
    LublinParameters,
    daily_weights,
    generate_lublin,
    lublin_header,
)

#: Written by lublin_oracle.py; see its docstring.
ORACLE = json.loads(Path(__file__).with_name("lublin_oracle.json").read_text())
GRID = np.array(ORACLE["grid"])
KINDS = {"batch": BATCH, "interactive": INTERACTIVE, "combined": COMBINED}

#: Largest Kolmogorov-Smirnov distances from the authors' program that are due to chance (both are samples); for the
#: powers of two, the largest difference of their share.
TOLERANCE = {
    "sizes": 0.005,
    "powers": 0.005,
    "run_times": 0.005,
    "serial": 0.008,
    "wide": 0.012,
    "gaps": 0.008,
    "cycle": 0.016,
}


def distribution(values: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.sort(values), GRID, side="right") / len(values)


def half_hours_of_two_days(kind: LublinParameters, sequences: int, rng: np.random.Generator) -> np.ndarray:
    """Return arrivals as lublin_oracle.py does: two days from midnight, if an arrival is in the first half hour."""
    length = 1000
    gaps = np.diff(lublin._arrival_points(kind, sequences * length, rng), prepend=0.0)
    times = lublin._times_at(kind, np.cumsum(gaps.reshape(sequences, length), axis=1))
    times = times[(times[:, 1] < 1800) & (times[:, -1] >= 2 * 86400), 1:]
    return np.bincount((times[times < 2 * 86400] % 86400 // 1800).astype(int), minlength=48)


def distances(name: str, kind: LublinParameters, jobs: int = 400_000) -> dict[str, float]:
    """Return the distances of a class from the authors' program."""
    rng = np.random.default_rng(20031101)
    oracle = ORACLE[name]
    size = lublin._sizes(kind, jobs, 128, rng)
    run_time = lublin._run_times(kind, size, rng)
    time = np.floor(lublin._times_at(kind, lublin._arrival_points(kind, jobs, rng)))
    sizes = np.bincount(size, minlength=129) / jobs
    for key, count in oracle["sizes"].items():
        sizes[int(key)] -= count / oracle["jobs"]
    days, expected = half_hours_of_two_days(kind, 4000, rng), np.array(oracle["half_hours"])
    # Gaps under 30 s: the program truncates each gap, swflow truncates both ends.
    gaps = (distribution(np.diff(time)) - oracle["gaps"])[GRID >= 30]
    return {
        "sizes": np.abs(np.cumsum(sizes)).max(),
        "powers": np.abs(sizes[2 ** np.arange(8)].sum()),
        "run_times": np.abs(distribution(run_time) - oracle["run_times"]).max(),
        "serial": np.abs(distribution(run_time[size == 1]) - oracle["run_times_serial"]).max(),
        "wide": np.abs(distribution(run_time[size >= 32]) - oracle["run_times_from_32"]).max(),
        "gaps": np.abs(gaps).max(),
        "cycle": np.abs(np.cumsum(days / days.sum() - expected / expected.sum())).max(),
    }


@pytest.mark.parametrize("name", ["batch", "interactive"])
def test_the_parameters_are_those_of_the_authors_program(name: str) -> None:
    *first, gap_shape, gap_scale, gap_ratio, cycle_shape, cycle_scale = astuple(KINDS[name])
    ours = [*first, gap_shape * gap_ratio, gap_scale, cycle_shape, cycle_scale]
    assert ours == pytest.approx(ORACLE[name]["parameters"])


@pytest.mark.parametrize("name", KINDS)
def test_each_class_is_distributed_as_in_the_authors_program(name: str) -> None:
    found = distances(name, KINDS[name])
    assert {key: value for key, value in found.items() if value > TOLERANCE[key]} == {}


def test_the_classes_have_the_shares_of_the_authors_program() -> None:
    jobs = generate_lublin(1_000_000, 128, np.random.default_rng(1), estimates="none")
    assert (jobs["queue_id"] == 0).mean() == pytest.approx(ORACLE["interactive_share"], abs=0.005)


def expected_sizes(kind: LublinParameters) -> np.ndarray:
    """Return the probability of each size on 128 processors."""

    def below(u: np.ndarray) -> np.ndarray:
        low = np.clip((u - kind.log2_low) / (kind.log2_medium - kind.log2_low), 0, 1)
        high = np.clip((u - kind.log2_medium) / (kind.log2_high - kind.log2_medium), 0, 1)
        return kind.low_probability * low + (1 - kind.low_probability) * high

    size = np.arange(1, 129)
    other = 1 - kind.serial_probability - kind.power_of_two_probability
    expected = other * (below(np.log2(size + 0.5)) - below(np.log2(size - 0.5)))
    powers = np.arange(8)
    expected[2**powers - 1] += kind.power_of_two_probability * (below(powers + 0.5) - below(powers - 0.5))
    expected[0] += kind.serial_probability
    return expected


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_sizes_have_the_serial_and_power_of_two_shares(kind: LublinParameters) -> None:
    size = lublin._sizes(kind, 1_000_000, 128, np.random.default_rng(2))
    expected = expected_sizes(kind)
    assert expected.sum() == pytest.approx(1)
    assert np.abs(np.bincount(size, minlength=129)[1:] / len(size) - expected).max() < 0.002


@pytest.mark.parametrize("size", [1, 16, 128])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_run_times_have_the_hyper_gamma_distribution(kind: LublinParameters, size: int) -> None:
    run_time = lublin._run_times(kind, np.full(300_000, size), np.random.default_rng(3))
    p = np.clip(kind.mixture_slope * size + kind.mixture_intercept, 0, 1)
    first = stats.gamma(kind.run_time_shape_1, scale=kind.run_time_scale_1)
    second = stats.gamma(kind.run_time_shape_2, scale=kind.run_time_scale_2)

    def below(log_seconds: np.ndarray) -> np.ndarray:
        return p * first.cdf(log_seconds) + (1 - p) * second.cdf(log_seconds)

    seconds = np.unique(np.floor(GRID[np.exp(12) - 1 > GRID]))
    found = np.searchsorted(np.sort(run_time), seconds, side="right") / len(run_time)
    assert np.abs(found - below(np.log(seconds + 1)) / below(np.array(12.0))).max() < 0.004
    assert run_time.min() >= 1 and run_time.max() <= np.exp(12)
    assert (run_time == np.floor(run_time)).all()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_arrivals_have_the_mean_gap_and_the_daily_cycle(kind: LublinParameters) -> None:
    points = lublin._arrival_points(kind, 2_000_000, np.random.default_rng(4))
    shape, scale = kind.gap_shape * kind.gap_ratio, kind.gap_scale
    # The mean of exp(X) of a gamma X truncated at 13: tilting a gamma by exp(x) changes only its scale.
    mean_gap = (1 - scale) ** -shape * stats.gamma.cdf(13, shape, scale=scale / (1 - scale))
    mean_gap /= stats.gamma.cdf(13, shape, scale=scale)
    times = lublin._times_at(kind, points)
    assert times[-1] / len(times) == pytest.approx(mean_gap, rel=0.03)
    assert (np.diff(times) >= 0).all()
    cycle = np.bincount((times % 86400 // 1800).astype(int), minlength=48) / len(times)
    assert np.abs(np.cumsum(cycle - daily_weights(kind) / 48)).max() < 0.006


def test_half_hours_have_the_cycles_gamma_mass_from_the_eleventh_on() -> None:
    weights = daily_weights(COMBINED)
    mass = np.diff(stats.gamma.cdf(np.arange(10.5, 59), COMBINED.cycle_shape, scale=COMBINED.cycle_scale))
    assert weights.mean() == pytest.approx(1)
    np.testing.assert_allclose(np.roll(weights, -10), mass / mass.mean())


@given(st.sampled_from(list(KINDS.values())), st.floats(0, 1e7))
def test_points_and_times_are_inverse(kind: LublinParameters, seconds: float) -> None:
    points = float(lublin.points_at(lublin._cycle(kind), np.array(seconds)))
    assert lublin._times_at(kind, np.array([points]))[0] == pytest.approx(seconds, abs=1e-3)


def test_the_table_is_a_swf_log_in_order_of_arrival() -> None:
    jobs = generate_lublin(5000, 128, np.random.default_rng(5))
    assert dict(jobs.schema) == SWF_FIELDS
    assert jobs["job_id"].to_list() == list(range(1, 5001))
    assert jobs["submit_time"].is_sorted() and jobs["submit_time"].min() >= 0
    assert jobs.select((pl.col("submit_time", "run_time") % 1 == 0).all()).row(0) == (True, True)
    assert jobs["requested_processors"].equals(jobs["allocated_processors"])
    assert jobs["status"].unique().to_list() == [1]
    assert (jobs["requested_time"] >= jobs["run_time"]).all()
    assert set(jobs["queue_id"]) == {0, 1}
    unknown = [name for name in jobs.columns if jobs[name].null_count() == jobs.height]
    assert unknown == [
        *("wait_time", "average_cpu_time", "used_memory", "requested_memory", "user_id", "group_id"),
        *("executable_id", "partition_id", "preceding_job_id", "think_time"),
    ]


def test_the_same_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    first, again, other = (generate_lublin(500, 64, np.random.default_rng(s), users=True) for s in (6, 6, 7))
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize("classes", lublin.CLASSES)
@pytest.mark.parametrize("load", [0.05, 0.7, 3.0])
def test_the_load_is_met_and_only_the_arrivals_change(classes: str, load: float) -> None:
    free, loaded = (
        generate_lublin(20_000, 256, np.random.default_rng(8), classes=classes, load=wanted, estimates="none")
        for wanted in (None, load)
    )
    work = (loaded["run_time"] * loaded["requested_processors"]).sum()
    assert work / (256 * loaded["submit_time"].max()) == pytest.approx(load, rel=1e-3)
    shape = ["requested_processors", "run_time", "queue_id"]
    assert free.select(shape).sort(shape).equals(loaded.select(shape).sort(shape))
    for queue in (0, 1, None):
        mine = pl.col("queue_id").eq_missing(queue)
        assert free.filter(mine)["run_time"].equals(loaded.filter(mine)["run_time"])


def test_a_load_preserves_the_daily_cycle() -> None:
    jobs = generate_lublin(100_000, 128, np.random.default_rng(9), classes="combined", load=0.2, estimates="none")
    cycle = np.bincount((jobs["submit_time"].to_numpy() % 86400 // 1800).astype(int), minlength=48)
    assert np.abs(np.cumsum(cycle / jobs.height - daily_weights(COMBINED) / 48)).max() < 0.02


@settings(max_examples=60)
@given(st.integers(1, 300), st.integers(1, 5000), st.sampled_from(lublin.CLASSES), st.integers(0, 99))
def test_no_job_is_wider_than_the_machine(jobs: int, processors: int, classes: str, seed: int) -> None:
    table = generate_lublin(jobs, processors, np.random.default_rng(seed), classes=classes, estimates="exact")
    assert table.height == jobs
    assert table["requested_processors"].min() >= 1
    assert table["requested_processors"].max() <= processors
    assert table["run_time"].min() >= 1
    assert table["requested_time"].equals(table["run_time"], check_names=False)


def test_powers_of_two_stay_powers_on_any_machine() -> None:
    jobs = generate_lublin(50_000, 100, np.random.default_rng(10), estimates="none", classes="combined")
    size = jobs["requested_processors"].to_numpy()
    share = ((size & (size - 1)) == 0).mean()
    assert share > COMBINED.serial_probability + COMBINED.power_of_two_probability - 0.01
    assert size.max() == 100


def test_sizes_grow_with_the_machine() -> None:
    small, large = (
        generate_lublin(20_000, p, np.random.default_rng(11), estimates="none", classes="combined") for p in (128, 1024)
    )
    serial = [(table["requested_processors"] == 1).mean() for table in (small, large)]
    assert serial[0] == pytest.approx(serial[1], abs=0.02)
    ratio = large["requested_processors"].quantile(0.95) / small["requested_processors"].quantile(0.95)
    assert ratio == pytest.approx(8, rel=0.35)


def test_users_follow_a_zipf_law() -> None:
    jobs = generate_lublin(200_000, 128, np.random.default_rng(12), users=True, estimates="none")
    counts = np.bincount(jobs["user_id"].to_numpy(), minlength=USERS + 1)
    assert counts[0] == 0 and len(counts) == USERS + 1
    assert counts[1] / counts[4] == pytest.approx(4, rel=0.05)
    assert counts[1] / counts[100] == pytest.approx(100, rel=0.2)


def test_the_header_names_machine_model_and_seed() -> None:
    header = lublin_header(10, 64, seed=42, load=0.7, users=True)
    assert header["MaxProcs"] == header["MaxNodes"] == ["64"]
    assert (header["MaxJobs"], header["Version"], header["UnixStartTime"]) == (["10"], ["2.2"], ["0"])
    notes = "\n".join(header["Note"])
    for part in ("Lublin", "Tsafrir", "seed: 42", "load: 0.7", "gap_shape 6.0415", "gap_shape 6.551"):
        assert part in notes
    combined = lublin_header(10, 64, classes="combined", estimates="none")
    assert "Queue" not in combined
    assert "gap_shape 10.2303" in "\n".join(combined["Note"])
    assert all(isinstance(value, str) for values in header.values() for value in values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs: 0; expected"),
        ({"processors": 0}, "processors: 0; expected"),
        ({"load": 0.0}, "load: 0.0; expected"),
        ({"load": float("nan")}, "load: nan; expected"),
        ({"classes": "both"}, "unknown classes 'both'"),
        ({"estimates": "best"}, "unknown estimates 'best'"),
    ],
)
def test_bad_arguments_are_one_line(arguments: dict, message: str) -> None:
    given = {"jobs": 10, "processors": 8} | arguments
    with pytest.raises(SwflowError, match=message):
        generate_lublin(**given, rng=np.random.default_rng(1))
    with pytest.raises(SwflowError, match=message):
        lublin_header(**given)
