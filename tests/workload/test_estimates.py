"""Tests of modal estimates: none below the run time, few values, and the shares of the authors' program."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swflow.errors import SwflowError
from swflow.workload.models.estimates import (
    COMMON_ESTIMATES,
    DEFAULT_MAXIMUM,
    HEAD_SHARE,
    HOUR,
    POPULARITY_RANKS,
    estimate_histogram,
    modal_estimates,
)
from swflow.workload.models.lublin import generate_lublin

#: Results of the authors' program for jobs of the Lublin model, with 20 seeds, from lublin_oracle.py.
ORACLE = json.loads(Path(__file__).with_name("lublin_oracle.json").read_text())["estimates"]
ORACLE_JOBS = 100_000


def popular_share(estimates: np.ndarray) -> float:
    return np.sort(np.unique(estimates, return_counts=True)[1])[-20:].sum() / len(estimates)


def test_shares_are_those_of_the_authors_program() -> None:
    values, counts = estimate_histogram(ORACLE_JOBS, np.random.default_rng(1))
    assert len(values) == ORACLE[0]["different"]
    assert np.abs(np.sort(counts)[::-1][:25] - ORACLE[0]["popular"]).max() <= 3
    assert counts[-1] == pytest.approx(ORACLE[0]["maximum"], abs=3)


def test_popularity_is_distributed_over_the_times_as_in_the_authors_program() -> None:
    shares = []
    for seed in range(60):
        values, counts = estimate_histogram(ORACLE_JOBS, np.random.default_rng(seed))
        shares.append(counts[values <= HOUR].sum() / ORACLE_JOBS)
    assert np.mean(shares) == pytest.approx(np.mean([run["short"] for run in ORACLE]), abs=0.03)
    assert np.std(shares) == pytest.approx(np.std([run["short"] for run in ORACLE]), abs=0.02)


def test_accuracy_is_that_of_the_authors_program() -> None:
    histogram = np.zeros(20)
    for seed in range(10):
        jobs = generate_lublin(ORACLE_JOBS, 128, np.random.default_rng(seed))
        accuracy = jobs["run_time"] / jobs["requested_time"]
        histogram += np.histogram(accuracy, bins=20, range=(0, 1))[0] / jobs.height / 10
    expected = np.mean([run["accuracy"] for run in ORACLE], axis=0) / ORACLE_JOBS
    assert np.abs(np.cumsum(histogram - expected)).max() < 0.015


@given(
    st.lists(st.floats(0, 400_000), min_size=1, max_size=400),
    st.sampled_from([HOUR, 1.5 * HOUR, 18 * HOUR, 1000 * HOUR]),
    st.integers(0, 9),
)
def test_no_estimate_is_below_its_run_time(run_times, maximum, seed) -> None:
    run_times = np.array(run_times)
    estimates = modal_estimates(run_times, np.random.default_rng(seed), maximum=maximum)
    assert (estimates >= run_times).all()
    over = run_times > maximum
    assert (estimates[over] == run_times[over]).all()
    assert (estimates[~over] <= maximum).all()
    again = modal_estimates(run_times, np.random.default_rng(seed), maximum=maximum)
    assert (estimates == again).all()


def test_long_jobs_that_outnumber_long_estimates_still_get_modal_values() -> None:
    run_times = np.full(10_000, 17 * HOUR + 1.0)
    estimates = modal_estimates(run_times, np.random.default_rng(1), maximum=18 * HOUR)
    values, _ = estimate_histogram(10_000, np.random.default_rng(1), maximum=18 * HOUR)
    assert (estimates > run_times).all()
    assert set(estimates) <= set(values)


@pytest.mark.parametrize("maximum", [HOUR, 1.5 * HOUR, 2 * HOUR, 18 * HOUR, DEFAULT_MAXIMUM, 1000 * HOUR])
@pytest.mark.parametrize("jobs", [1, 19, 150, 250, 5000, 400_000])
def test_histograms_add_up(jobs: int, maximum: float) -> None:
    values, counts = estimate_histogram(jobs, np.random.default_rng(2), maximum=maximum)
    assert counts.sum() == jobs
    assert (np.diff(values) > 0).all() and values[0] > 0 and values[-1] == maximum
    assert counts[-1] == counts.max()


def test_twenty_round_values_have_most_jobs() -> None:
    values, counts = estimate_histogram(70_000, np.random.default_rng(3), maximum=36 * HOUR)
    assert len(values) == 340
    popular = np.argsort(counts)[-20:]
    assert counts[popular].sum() / 70_000 == pytest.approx(HEAD_SHARE, abs=0.001)
    assert set(COMMON_ESTIMATES) < set(values[popular])
    assert set(values[popular] % 300) == {0}


def test_the_table_of_ranks_has_each_rank_once_in_each_log() -> None:
    assert (np.sort(POPULARITY_RANKS, axis=0) == np.arange(1, 21)[:, None]).all()


def test_estimates_do_not_follow_run_times_of_short_jobs() -> None:
    run_times = np.random.default_rng(5).uniform(1, 299, 20_000)
    estimates = modal_estimates(run_times, np.random.default_rng(6), maximum=18 * HOUR)
    assert abs(np.corrcoef(run_times, estimates)[0, 1]) < 0.03


def test_no_jobs_get_no_estimates() -> None:
    assert len(modal_estimates(np.array([]), np.random.default_rng(1))) == 0


@pytest.mark.parametrize(
    ("run_times", "options", "message"),
    [
        ([1.0, np.nan], {}, "unknown or negative run times"),
        ([-1.0], {}, "unknown or negative"),
        ([1.0], {"maximum": 1800}, "at least 3600 s"),
        ([1.0], {"maximum": np.nan}, "at least 3600 s"),
    ],
)
def test_bad_arguments_are_one_line(run_times, options, message) -> None:
    with pytest.raises(SwflowError, match=message):
        modal_estimates(np.array(run_times), np.random.default_rng(1), **options)


@pytest.mark.archive
def test_accuracy_on_a_real_log_is_flat_in_the_middle_and_like_its_users(traces: Path) -> None:
    with gzip.open(traces / "SDSC-SP2-1998-3.1-cln.swf.gz", "rt", errors="replace") as lines:
        table = np.loadtxt(line for line in lines if line.strip() and not line.startswith(";"))
    run_times, requested = table[:, 3], table[:, 8]
    known = (run_times > 0) & (requested > 0)
    run_times, requested = run_times[known], requested[known]
    found = modal_estimates(run_times, np.random.default_rng(7), maximum=18 * HOUR)
    ours, users = (
        np.histogram(np.minimum(run_times / estimates, 1), bins=20, range=(0, 1))[0] / len(run_times)
        for estimates in (found, requested)
    )
    assert popular_share(found) == pytest.approx(popular_share(requested), abs=0.05)
    assert ours[8:18].max() / ours[8:18].min() < 2.5  # no trend from 40 to 90 %
    assert np.abs(ours[1:19] - users[1:19]).max() < 0.03
