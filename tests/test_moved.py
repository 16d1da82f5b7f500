"""Old import paths work, with a warning."""

import importlib
import sys

import pytest

from swflow._moved import MOVED


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_module_is_imported_under_its_old_name_with_a_warning(old: str, new: str, monkeypatch) -> None:
    if new == "swflow.scheduling.gym_env":
        pytest.importorskip("gymnasium")
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        module = importlib.import_module(old)
    assert module.__name__ == new and sys.modules[new] is module
