"""Chances of a start: calibrated where forecasts are, and never from outcomes that are not known."""

from datetime import UTC, datetime

import numpy as np
import pytest

from swflow.forecast.cases import Cases, decades
from swflow.forecast.chances import FEWEST, Chances, chances_of, shown, started_within, times
from swflow.forecast.evaluation import Evaluated, chance_scores
from swflow.phrases import chance_in_words
from swflow.values import DAY


def cases_of(asked: np.ndarray, wait: np.ndarray, end: float) -> Cases:
    count = asked.size
    return Cases(
        ("x",), np.zeros((count, 1), np.float32), asked, wait, np.zeros(count), np.ones(count),
        np.full(count, "all", object), np.full(count, "1", object), np.arange(count), end,
    )  # fmt: skip


def site(count: int = 6000) -> tuple[Cases, np.ndarray]:
    """Return jobs of which a known share starts at once and the others after hours, and right forecasts of both."""
    random = np.random.default_rng(1)
    asked = np.sort(random.uniform(0, 40 * DAY, count))
    middle = random.uniform(2.5, 4.5, count)
    wait = np.where(random.random(count) < (4.5 - middle) / 4, 5.0, 10 ** random.normal(middle, 0.4))
    ends = np.column_stack((np.full(count, 0.7), middle, middle + 0.7))
    return cases_of(asked, wait, 41 * DAY), ends


def test_chances_agree_with_what_follows():
    cases, ends = site()
    scores = chance_scores({"past": Evaluated(cases, ends)})
    assert set(scores["within"]) == {60.0, 3600.0, 14400.0, 86400.0}
    large = scores.filter(scores["jobs"] > 200)
    assert large.height > 8
    assert large["chance"].to_numpy() == pytest.approx(large["started"].to_numpy(), abs=0.06)
    constant = (scores["started"] * scores["jobs"]).sum() / scores["jobs"].sum()
    assert (scores["brier"] * scores["jobs"]).sum() / scores["jobs"].sum() < constant * (1 - constant)


def test_chances_are_shares_that_grow_with_the_time():
    cases, ends = site()
    found = chances_of(cases, ends, 30 * DAY)(ends[-50:], np.zeros(50, bool), np.array([-1.0, 60.0, 3600.0, 1e6]))
    assert (found[:, 0] == 0).all() and (np.diff(found, axis=1) >= 0).all() and (found <= 1).all()
    early, late = found[ends[-50:, 1] < 3], found[ends[-50:, 1] > 4]
    assert early[:, 2].mean() > late[:, 2].mean() + 0.3


def test_chances_use_known_outcomes_only():
    cases, ends = site()
    now = 20 * DAY
    later = cases.asked + cases.wait >= now
    other = cases_of(cases.asked, np.where(later, np.maximum(now - cases.asked, 0) + 7777.0, cases.wait), cases.end)
    found = [
        chances_of(one, ends, now)(ends[:99], np.zeros(99, bool), np.array([60.0, 9999.0])) for one in (cases, other)
    ]
    np.testing.assert_array_equal(*found)


def test_jobs_that_still_wait_lower_the_chances():
    value = decades(np.array([10.0] * 50 + [5000.0] * 50))
    started = np.arange(100) < 50
    assert started_within(value, started, np.array([60.0, 6000.0])).tolist() == [0.5, 0.5]
    assert started_within(value, np.ones(100, bool), np.array([60.0, 6000.0])).tolist() == [0.5, 1.0]


def test_forecasts_unlike_all_past_ones_are_interpolated():
    few = Chances(np.ones((FEWEST - 1, 3)), np.ones(FEWEST - 1), np.ones(FEWEST - 1, bool), np.zeros(FEWEST - 1, bool))
    found = few(np.array([[1.0, 2.0, 4.0]] * 2), np.zeros(2, bool), np.array([100.0, 1e4, np.nan]))
    assert found[0].tolist() == pytest.approx([0.5, 0.95, np.nan], nan_ok=True)
    cases, ends = site()
    past = chances_of(cases, ends, 30 * DAY)
    found = past(np.array([[0.7, 3.0, 3.7], [5.0, 6.0, 7.0]]), np.zeros(2, bool), np.array([60.0, 1e6]))
    assert found[0, 0] > 0.2 and found[1].tolist() == pytest.approx([0.025, 0.5])


def test_tomorrow_is_that_of_the_site():
    start = int(datetime(2024, 3, 30, 12, tzinfo=UTC).timestamp())  # the clock changes in the next night
    for zone, hours in (("Europe/Stockholm", 19), ("America/New_York", 25), ("Asia/Tokyo", 12)):
        header = {"UnixStartTime": [str(start)], "TimeZoneString": [zone]}
        (morning,) = [one.seconds for one in times(0.0, header) if one.name == "by_morning"]
        assert morning == hours * 3600, zone
    unknown = times(0.0, {})
    assert [label for label, _ in shown([0.5] * 3 + [np.nan, 1.0], unknown)][-1] == "within 24 h"
    assert chance_in_words(0.999) == "over 99 %" and chance_in_words(0.001) == "under 1 %"
