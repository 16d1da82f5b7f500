"""Tests of conversions with ranges, and of texts in messages."""

import math
from datetime import date

import polars as pl
import pytest

from swflow.columns import numbers, rounded_up, sum_of, whole_numbers
from swflow.errors import SwflowError, one_line, shown, visible
from swflow.values import MOST_UNITS, Limit, day_or_moment, local_time, moment, number, seconds, text, whole_number


@pytest.mark.parametrize(
    "value", ["1" * 5000, "9" * 400, math.inf, math.nan, 1.5, "1.5", "", "x", True, None, [], -1, 2**63, "0x10", "٣"]
)
def test_other_whole_numbers_are_errors(value: object):
    with pytest.raises(SwflowError, match=r"^a.txt:3: .*expected a whole number") as error:
        whole_number(value, "a.txt:3")
    assert len(str(error.value)) < 150


@pytest.mark.parametrize("value", ["9" * 400, "inf", "nan", 10**400, "1_0", "٣", "", "x", True, None, {}, math.inf])
def test_other_numbers_are_errors(value: object):
    with pytest.raises(SwflowError, match=r"^--load: .*expected a finite number") as error:
        number(value, "--load")
    assert len(str(error.value)) < 150


def test_numbers_have_ranges():
    assert (number("2.5", "x"), seconds(7, "x"), moment(1700000000, "x")) == (2.5, 7.0, 1.7e9)
    with pytest.raises(SwflowError, match="milliseconds"):
        moment(1700000000000, "x")
    with pytest.raises(SwflowError, match="from 0 to 1,000,000,000,000"):
        seconds(1e13, "x")


@pytest.mark.parametrize("value", ["1996-09-31", "soon", 5, "99999-01-01", "0001-01-01"])
def test_other_days_are_errors(value: object):
    with pytest.raises(SwflowError, match=r"^from: .*expected a date"):
        day_or_moment(value, "from")


def test_times_are_converted():
    assert day_or_moment(date(1996, 1, 1), "from") == date(1996, 1, 1)
    for value in ("2099-13-01T00:00:00", "2023-01-01T00:00:00+01:00", "N/A", None, "1812-01-01"):
        with pytest.raises(SwflowError, match="expected a time"):
            local_time(value, "x")


def test_columns_have_ranges():
    texts = ["5", "9" * 400, "inf", "nan", "x", "-7", None, str(2**63 - 1), str(MOST_UNITS)]
    table = pl.DataFrame({"t": texts})
    found = table.select(w=whole_numbers(pl.col("t")), n=numbers(pl.col("t"), 100), r=rounded_up(numbers(pl.col("t"))))
    assert found["w"].to_list() == [5, None, None, None, None, -7, None, None, MOST_UNITS]
    assert found["n"].to_list() == [5.0, None, None, None, None, -7.0, None, None, None]
    assert found["r"].to_list() == [5, None, None, None, None, -7, None, None, None]


def test_a_sum_does_not_wrap_around():
    lists = pl.DataFrame({"t": [[str(2**63 - 1)] * 2, ["1", "2"], [], ["x"]]})
    assert lists.select(sum_of(pl.col("t"))).to_series().to_list() == [None, 3, None, 0]


def test_limits_are_raised_by_the_environment(monkeypatch: pytest.MonkeyPatch):
    limit = Limit(10, "nodes")
    limit.require(10, "a.conf")
    with pytest.raises(SwflowError, match=r"^a.conf: more than 10 nodes; .*SWFLOW_LIMITS=10$"):
        limit.require(11, "a.conf")
    monkeypatch.setenv("SWFLOW_LIMITS", "2")
    limit.require(20, "a.conf")
    monkeypatch.setenv("SWFLOW_LIMITS", "much")
    with pytest.raises(SwflowError, match="SWFLOW_LIMITS: 'much'"):
        limit.require(11, "a.conf")


def test_texts_have_no_control_characters():
    assert text("Zoë ☃", "user") == "Zoë ☃"
    for value in ("a\x1b[2J", "a\nb", "a\u202eb", "\ud800", 5, "x" * 200_000):
        with pytest.raises(SwflowError, match=r"^user: "):
            text(value, "user")


def test_messages_stay_on_their_line():
    assert visible("a\x1b[31m\u202e\ud800b") == "a\\x1b[31m\\u202e\\ud800b"
    assert one_line("a\nb\x07  c") == "a b\\x07 c"
    assert len(one_line("x" * 10_000)) < 500


def test_a_value_is_shown_in_a_time_without_its_size():
    bomb: list = ["x"]
    for _ in range(60):
        bomb = [bomb] * 9
    itself: list = []
    itself.append(itself)
    for value in (bomb, itself, 10**100_000, {"a": bomb}, "x" * 10**7):
        assert len(shown(value)) <= 80
