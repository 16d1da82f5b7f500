"""The operations of a machine: which functions implement them."""

import inspect

import pytest

from swflow.scheduling.machine.counted import COUNTED
from swflow.scheduling.machine.numbered import NUMBERED
from swflow.scheduling.state import operations


@pytest.mark.parametrize("model", [COUNTED, NUMBERED])
def test_every_operation_without_a_default_is_implemented(model):
    names = {name for name, _ in inspect.getmembers(operations, inspect.isfunction)}
    needed = {name for name in names if "raise NotImplementedError" in inspect.getsource(getattr(operations, name))}
    assert needed <= {operation.__name__ for operation in model} <= names
    assert len(needed) > 5
