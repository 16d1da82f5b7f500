"""Run a few fuzz cases without bounds checks; `python tests/fuzz.py --minutes 20` runs many."""

import pytest

import fuzz


@pytest.mark.parametrize("kind", ["ordinary", "table", "options", "log"])
def test_random_cases_are_equal_or_errors(kind: str):
    verdicts = [fuzz.run_case(1, number, [kind])[1:] for number in range(300)]
    assert [text for verdict, text in verdicts if verdict == fuzz.FAILURE] == []
    assert len({verdict for verdict, _ in verdicts}) == (1 if kind in ("ordinary", "table") else 2)
