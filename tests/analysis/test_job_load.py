"""Test the load of jobs against sums of fractions, and the heatmap cell of a load on a boundary."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swflow.analysis.heatmap import heatmap
from swflow.analysis.job_load import Loads, _exact_product, _exact_sum, loads_of
from swflow.errors import SwflowError
from swflow.jobs.table import END_OF_TIME

#: Time origins: 0, a later one, an earlier one, and one so large that few bits remain for fractions of a second.
ORIGINS = (0.0, 1e7, -5e5, 1e12)

_WHOLE = st.integers(0, 40).map(float)
_ANY = st.integers(0, 40 * 10**9).map(lambda nanoseconds: nanoseconds / 1e9)
schedules = st.tuples(
    st.sampled_from(ORIGINS),
    st.one_of(
        *[
            st.lists(st.tuples(times, st.floats(-2, 0) | times, times, st.integers(1, 9)), min_size=1, max_size=12)
            for times in (_WHOLE, _ANY)
        ]
    ),
)


def drawn(schedule):
    """Return random submit, start and end times and processors; some starts precede submissions."""
    origin, rows = schedule
    submit, wait, run, processors = (np.array(column) for column in zip(*rows, strict=True))
    submit = submit + origin
    start = submit + wait
    return submit, start, start + run, processors.astype(np.int64)


def naive_load(submit, begin, end, processors, machine):
    """Return the loads computed with fractions: sum the processor-seconds within each stay, round the quotient once."""
    loads = []
    for since, until in zip(submit.tolist(), end.tolist(), strict=True):
        used = 0
        for first, last, width in zip(begin.tolist(), end.tolist(), processors.tolist(), strict=True):
            if until <= since:
                used += (last > since) * width - (first > since) * width
            else:
                used += (max(Fraction(last), Fraction(since)) - max(Fraction(first), Fraction(since))) * width
                used -= (max(Fraction(last), Fraction(until)) - max(Fraction(first), Fraction(until))) * width
        loads.append(float(Fraction(used) / ((Fraction(until) - Fraction(since) if until > since else 1) * machine)))
    return loads


def loads(submit, start, end, processors, machine) -> Loads:
    """Return the loads of jobs."""
    columns = {"submit_time": submit, "start_time": start, "end_time": end, "processors": processors}
    return loads_of(pl.DataFrame(columns), machine)


@given(schedules, st.sampled_from([7, 8, 100, 2**31]))
def test_the_load_is_the_float_nearest_to_the_quotient_of_fractions(schedule, machine):
    submit, start, end, processors = drawn(schedule)
    found = loads(submit, start, end, processors, machine)
    assert found.load.tolist() == naive_load(submit, start, end, processors, machine)
    assert found.backlog_load.tolist() == naive_load(submit, submit, end, processors, machine)


def test_sums_and_products_have_no_error():
    rng = np.random.default_rng(2)
    for _ in range(200):
        a, b = (float(value) for value in rng.standard_normal(2) * 10.0 ** rng.integers(-9, 9, 2))
        for found, exact in (
            (_exact_sum(a, b), Fraction(a) + Fraction(b)),
            (_exact_product(a, b), Fraction(a) * Fraction(b)),
        ):
            assert sum(map(Fraction, found)) == exact


def test_stays_that_no_float_holds_are_divided_without_error():
    """The difference of times of unequal magnitudes has more bits than a float64."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        submit, wait, run = (10.0 ** rng.uniform(-9, 3, 25) for _ in range(3))
        start, processors = submit + wait, rng.integers(1, 9, 25)
        found = loads(submit, start, start + run, processors, 7)
        assert found.load.tolist() == naive_load(submit, start, start + run, processors, 7)
        assert found.backlog_load.tolist() == naive_load(submit, submit, start + run, processors, 7)


@pytest.mark.parametrize("name", ["submit_time", "start_time", "end_time"])
@pytest.mark.parametrize("time", [END_OF_TIME * 1.5, -END_OF_TIME * 1.5, float("nan")])
def test_times_beyond_the_clock_are_refused(name, time):
    columns = {key: [-END_OF_TIME, END_OF_TIME, 0.0] for key in ("submit_time", "start_time", "end_time")}
    columns[name][2] = time
    with pytest.raises(SwflowError, match=f"load: job 2: the {name.removesuffix('_time')}.* is .*; expected at most"):
        loads_of(pl.DataFrame(columns | {"processors": [1, 1, 1]}), 4)


@pytest.mark.parametrize("step", [1.0, 1 / 3])
def test_a_load_of_exactly_a_hundredth_is_in_the_cell_that_starts_there(step):
    """Run jobs in sequence, each alone on 1 to 99 of 100 processors, so that earlier sums must not matter."""
    jobs = 20_000
    processors = np.arange(jobs) % 99 + 1
    submit = np.arange(jobs) * 600 * step
    end = submit + (np.arange(jobs) % 500 + 1) * step
    for load in loads(submit, submit, end, processors, 100)[:2]:
        assert (load == processors / 100).all()
        cells = heatmap(load, np.ones(jobs)).cells()
        assert cells.select("load_low", "jobs").rows() == [
            (width / 100, int((processors == width).sum())) for width in range(1, 100)
        ]


def test_the_peak_counts_starts_after_ends_at_the_same_instant():
    outcomes = pl.DataFrame({
        "submit_time": [0.0, 0.0, 5.0, 5.0], "start_time": [0.0, 5.0, 5.0, 7.0], "end_time": [5.0, 9.0, 5.0, 8.0],
        "processors": [4, 3, 8, 2],
    })  # fmt: skip
    assert loads_of(outcomes, 4).peak_processors == 5
    assert loads_of(outcomes.head(0), 4).peak_processors == 0


@pytest.mark.parametrize("name", ["submit_time", "start_time", "end_time", "processors"])
def test_columns_that_are_no_numbers_are_refused(name):
    columns = {key: [1] for key in ("submit_time", "start_time", "end_time", "processors")}
    with pytest.raises(SwflowError, match=f"outcomes: column {name} has type String; expected numbers"):
        loads_of(pl.DataFrame(columns | {name: ["one"]}), 4)
