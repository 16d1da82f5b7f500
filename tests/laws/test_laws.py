"""Check the metamorphic laws on random logs; `python tests/laws/laws.py` prints them with their numbers of cases."""

import inspect

import analysis_laws  # noqa: F401  registers its laws
import command_laws  # noqa: F401
import pytest
import schedule_laws  # noqa: F401

import laws


@pytest.mark.parametrize("name", laws.LAWS)
def test_the_law_holds(name: str) -> None:
    assert laws.check(name, laws.CASES) > 0


def test_each_law_is_one_line_of_mathematics() -> None:
    assert all(len((inspect.getdoc(one) or "\n").splitlines()) == 1 for one, _ in laws.LAWS.values())
