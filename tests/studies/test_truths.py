"""Answers at sites whose truths another simulator computed; benchmarks/truths.py has all questions."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def truths(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield pytest.importorskip("truths")
    for name in ("truths", "truth_sites", "other_simulator"):
        sys.modules.pop(name, None)


def test_the_other_simulator_makes_the_schedules_by_hand(truths):
    truths.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A", "B", "C", "D"])
def test_answers_agree_with_the_truth(truths, tmp_path, name):
    case = truths.CASES[name](1500, 9, 3)
    found = list(truths.answers(case, tmp_path, first=3))
    assert len(found) == 3
    assert sum(one.is_inside for one in found) >= 2
    assert not [one for one in found if one.is_wrong or one.is_unjust]
