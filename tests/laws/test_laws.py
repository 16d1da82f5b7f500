"""Check the metamorphic laws on random logs; `python tests/laws/laws.py` prints them with their numbers of cases."""

import inspect

import analysis_laws  # noqa: F401  registers its laws
import command_laws  # noqa: F401
import pytest
import schedule_laws  # noqa: F401

import laws


@pytest.mark.parametrize("cases", [2, pytest.param(laws.CASES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", laws.LAWS)
def test_the_law_holds(name: str, cases: int) -> None:
    assert laws.check(name, cases) > 0 or cases < laws.CASES  # few cases may all be exceptions


def test_each_law_is_one_line_of_mathematics() -> None:
    assert all(len((inspect.getdoc(one) or "\n").splitlines()) == 1 for one, _ in laws.LAWS.values())
