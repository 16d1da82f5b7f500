"""The operations of a machine: which functions implement them."""

import inspect

import pytest

from swflow.scheduling.engine import operations
from swflow.scheduling.machine.counted import COUNTED
from swflow.scheduling.machine.numbered import NUMBERED


@pytest.mark.parametrize("model", [COUNTED, NUMBERED])
def test_every_operation_without_a_default_is_implemented(model):
    names = {name for name, one in inspect.getmembers(operations, inspect.isfunction) if name != "implementation"}
    needed = {name for name in names if "raise NotImplementedError" in inspect.getsource(getattr(operations, name))}
    assert needed <= {operation.__name__ for operation in model} <= names
    assert len(needed) > 5


def test_only_functions_of_the_module_implement_operations():
    def find():
        pass

    def _reserve():
        pass

    def other():
        pass

    scope = {"__name__": __name__, "find": find, "_reserve": _reserve, "other": other, "cancel": operations.cancel}
    assert operations.implementation(scope) == {operations.find: find, operations.reserve: _reserve}
