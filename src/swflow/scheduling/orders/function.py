"""User-defined order functions: compiled if numba can compile them, otherwise called as Python."""

import ast
import ctypes
import inspect
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from swflow.compiled.kernel import Callback, interpreted
from swflow.errors import SwflowError, suggest
from swflow.scheduling.orders.vocabulary import PARAMETERS, VARIABLES
from swflow.scheduling.plugins.source import error_inside, load_own

#: Escape sequences in numba's messages.
_COLOURS = re.compile(r"\x1b\[\d*m")


class PluginOrder:
    """
    A user-defined function of a job's attributes, such as ``mine:favor``, in the form that the kernels call.

    Its parameters are ``names`` of `swflow.scheduling.orders.vocabulary.VARIABLES`; ``function`` has the ``address`` of
    a function of all `swflow.scheduling.orders.vocabulary.PARAMETERS`. After the first ``error`` inside it, its value
    is NaN. Errors name ``option``.
    """

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option = text, option
        self._plain, self.names = plugin_function(text, option)
        self.error: SwflowError | None = None
        # By name, because parameters with defaults may come between them.
        self._arguments = [f"{name}={name}" for name in self.names]
        self._adapted = with_all_parameters(self._plain, self._arguments)
        self.function: Any = self._compiled()

    def require_success(self) -> None:
        """Raise the error that happened inside, if one did."""
        if self.error is not None:
            raise self.error

    def _compiled(self) -> Any:
        """Return the compiled function; if numba cannot compile it, warn, and return a guarded Python function."""
        if interpreted():
            return Callback(self._guarded, len(PARAMETERS))
        import numba

        reason = "it may raise an error, which compiled code cannot" if _raises(self._plain) else ""
        if not reason:
            inner = numba.njit(error_model="numpy")(self._plain)
            try:
                return Callback(with_all_parameters(inner, self._arguments, "float"), len(PARAMETERS))
            except Exception as error:  # raised by numba, or by Python functions that it calls
                for signature in inner.nopython_signatures:  # compiled, but its result is not a number
                    kind = str(numba.types.unliteral(signature.return_type))
                    self._refuse({"unicode_type": "a string", "none": "None"}.get(kind, kind))
                lines = (_COLOURS.sub("", line).strip() for line in str(error).splitlines())
                reason = next((line for line in lines if line and not line.startswith("Failed in")), "numba cannot")
        _warn_once(self._plain, f"{self.option}: {self.text} runs as Python, about 100 times slower: {reason}")
        return _PythonCallback(self._guarded)

    def _refuse(self, returned: str) -> None:
        """Raise an error about a result that is not a number."""
        raise SwflowError(f"{self.option}: {_place(self._plain)}: {self.text} returns {returned}; expected a number")

    def _guarded(self, *values: float) -> float:
        if self.error is None:
            try:
                value = self._adapted(*values)
                if isinstance(value, int | float | np.number):
                    return float(value)
                self._refuse(repr(value))
            except SwflowError as error:
                self.error = error
            except Exception as error:  # whatever the user's code raises
                self.error = SwflowError(f"{self.option}: {self.text}: {error_inside(error)}")
        return math.nan


class _PythonCallback:
    """A Python function that compiled kernels call by its address."""

    def __init__(self, function: Callable[..., float]) -> None:
        self._callback = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(PARAMETERS))(function)
        self.address: int = ctypes.cast(self._callback, ctypes.c_void_p).value or 0


def with_all_parameters(
    function: Callable[..., Any], arguments: Sequence[str], convert: str = ""
) -> Callable[..., Any]:
    """Return a function of all parameters of a key; ``convert`` is applied to its result."""
    # The source contains nothing but names of parameters, which are Python identifiers.
    call = f"{convert}(function({', '.join(arguments)}))"
    scope: dict[str, Any] = {"function": function}
    exec(f"def adapted({', '.join(PARAMETERS)}):\n    wait = now - submit_time\n    return {call}", scope)
    return scope["adapted"]


@cache
def _warn_once(function: Callable[..., Any], message: str) -> None:
    """Warn with the file and the line of a function, but not again when another simulation uses it."""
    file = inspect.getsourcefile(function) or "<unknown>"
    warnings.warn_explicit(message, UserWarning, file, function.__code__.co_firstlineno)


def _place(function: Callable[..., Any]) -> str:
    """Return the file and the line of a function."""
    return f"{inspect.getsourcefile(function)}:{function.__code__.co_firstlineno}"


def plugin_function(text: str, option: str) -> tuple[Callable[..., float], tuple[str, ...]]:
    """Load a function, and return it with the attributes of a job that it takes; errors name ``option``."""
    function = load_own(text, option)
    function = getattr(function, "py_func", function)
    if not inspect.isfunction(function):
        raise SwflowError(f"{option}: {text} is no function; write: def {text.rpartition(':')[2]}(wait, processors): …")
    where = _place(function)
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not parameter.empty and name not in VARIABLES:
            continue
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or name not in VARIABLES:
            known = f"{suggest(name, VARIABLES)}; it may take {', '.join(VARIABLES)}"
            raise SwflowError(f"{option}: {where}: {text} takes {name!r}{known}")
        names.append(name)
    if not names:
        raise SwflowError(f"{option}: {where}: {text} takes nothing; it may take {', '.join(VARIABLES)}")
    return function, tuple(names)


def _raises(function: Callable[..., Any]) -> bool:
    """Say whether a function has statements that raise errors; what it calls is not looked at."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return True
    return any(isinstance(node, ast.Raise | ast.Assert | ast.Try | ast.Subscript) for node in ast.walk(tree))
