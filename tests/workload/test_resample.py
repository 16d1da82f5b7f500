"""Feitelson's model: jobs of a log, repeated in a row by a Zipf distribution."""

from collections import Counter

import numpy as np
import pytest

from swflow.workload.models.resample import fit_repetition
from swflow.workload.models.zipf import Zipf


def lengths_of(values):
    """Count the repetitions of each length in plain Python."""
    counts, last, length = Counter(), object(), 0
    for value in [*values, object()]:
        if value != last:
            counts[length] += 1
            last, length = value, 0
        length += 1
    del counts[0]
    return counts


@pytest.fixture(scope="module")
def log():
    """Return run times, sizes and estimates of 20,000 jobs with many different ones, in repetitions of up to 40."""
    rng = np.random.default_rng(7)
    lengths = Zipf(2.2, 40).sample(20_000, rng)
    return tuple(rng.integers(1, most, 20_000).repeat(lengths)[:20_000] for most in (100_000, 128, 50_000))


def test_the_lengths_of_repetitions_are_those_of_the_log(log):
    run_times, processors, estimates = log
    fitted = fit_repetition(run_times, processors, estimates.astype(float))
    assert fitted.repetitions.exponent == pytest.approx(2.2, abs=0.05)
    made = fitted.draw(20_000, np.random.default_rng(1))
    wanted, found = (lengths_of(zip(*columns, strict=True)) for columns in ((run_times, processors), made[:2]))
    for length in range(1, 8):
        assert found[length] / found.total() == pytest.approx(wanted[length] / wanted.total(), abs=0.015)
    assert max(found) <= 40
    assert all(len(column) == 20_000 for column in made)


def test_each_repetition_is_a_job_of_the_log(log):
    run_times, processors, estimates = log
    made = fit_repetition(run_times, processors, estimates.astype(float)).draw(5000, np.random.default_rng(2))
    assert set(zip(*made, strict=True)) <= set(zip(*log, strict=True))
    # a job is drawn as often as the log has it: the median of the drawn run times is near that of the log
    assert np.mean(made[0] <= np.median(run_times)) == pytest.approx(0.5, abs=0.04)


def test_without_repetitions_jobs_are_drawn_independently():
    fitted = fit_repetition(np.arange(1, 1001), np.ones(1000), np.full(1000, np.nan))
    assert fitted.repetitions == Zipf(0.0, 1)
    made = fitted.draw(1000, np.random.default_rng(3))
    assert np.isnan(made[2]).all()
    assert lengths_of(made[0])[1] > 990
