"""An order that is a function of the user's own: compiled if numba can, else called as Python."""

import ast
import ctypes
import inspect
import math
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from swflow.errors import SwflowError, suggest
from swflow.scheduling.own import error_inside, load_own


class OwnOrder:
    """
    A function of a job's attributes, in the form that the kernels call.

    Parameters
    ----------
    text : str
        Such as ``mine:favour``; the function's parameters are names of `swflow.scheduling.orders.VARIABLES`.
    option : str
        The option that it is for, for errors.

    Attributes
    ----------
    names : tuple of str
        What it takes.
    address : int
        Of a C function of nine floats: now, submit time, estimate, processors, user, group, queue, executable, job id;
        negative if it takes `swflow.scheduling.orders.OF_OWNERS` besides.
    error : SwflowError or None
        What went wrong inside it; its value was NaN then.

    Raises
    ------
    SwflowError
        If there is no such function, or it takes something else.
    """

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option = text, option
        self.function, self.names = own_function(text, option)
        self.error: SwflowError | None = None
        from swflow.scheduling.orders import OF_OWNERS, PARAMETERS

        self.knows_owners = not set(OF_OWNERS).isdisjoint(self.names)
        self._parameters = PARAMETERS + (OF_OWNERS if self.knows_owners else ())
        self._adapted = self._adapt(self.function)
        self._callback = self._compiled()
        if self._callback is not None:
            address = int(self._callback.address)
        else:
            as_c = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(self._parameters))
            self._callback = as_c(self._guarded)
            address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self.address = -address if self.knows_owners else address

    def keys(
        self,
        submit: np.ndarray,
        planned: np.ndarray,
        processors: np.ndarray,
        attributes: np.ndarray,
        owners: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the keys of all jobs, if the function takes nothing that changes; shapes as of `keys_of`."""
        from swflow.scheduling.engine.queue import keys_of
        from swflow.scheduling.engine.usage import keys_of_owners

        if self.knows_owners:
            assert owners is not None
            keys = keys_of_owners(-self.address, submit, planned, processors, attributes, owners)
        else:
            keys = keys_of(self, submit, planned, processors, attributes)
        self.require_success()
        return keys

    def require_success(self) -> None:
        """Raise the error that happened inside, if one did."""
        if self.error is not None:
            raise self.error

    def _adapt(self, function: Callable[..., Any]) -> Callable[..., float]:
        # Names of parameters only, which are identifiers of Python.
        source = f"""
            def adapted({", ".join(self._parameters)}):
                wait = now - submit_time
                return float(function({", ".join(self.names)}))
        """
        scope: dict[str, Any] = {"function": function}
        exec(textwrap.dedent(source), scope)
        return scope["adapted"]

    def _compiled(self) -> Any:
        """Return the compiled function, or None with a word about speed."""
        import numba

        from swflow.scheduling.engine.queue import key_function, key_function_of_owners

        compiler = key_function_of_owners if self.knows_owners else key_function
        reason = "it may raise an error, which compiled code cannot" if _raises(self.function) else ""
        if not reason:
            try:
                return compiler(self._adapt(numba.njit(error_model="numpy")(self.function)))
            except numba.core.errors.NumbaError as error:
                reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "numba cannot")
        warnings.warn(
            f"{self.option}: {self.text} is called as Python, a hundred times slower than compiled: {reason}",
            stacklevel=2,
        )
        return None

    def _guarded(self, *values: float) -> float:
        if self.error is None:
            try:
                return float(self._adapted(*values))
            except Exception as error:  # whatever the user's code raises
                self.error = SwflowError(f"{self.option}: {self.text}: {error_inside(error)}")
        return math.nan


def own_function(text: str, option: str) -> tuple[Callable[..., float], tuple[str, ...]]:
    """
    Load a function, and return it with the attributes of a job that it takes.

    Raises
    ------
    SwflowError
        If there is none, or it takes something that a job does not have.
    """
    from swflow.scheduling.orders import VARIABLES

    function = load_own(text, option)
    function = getattr(function, "py_func", function)
    if not inspect.isfunction(function):
        raise SwflowError(f"{option}: {text} is no function; write: def {text.rpartition(':')[2]}(wait, processors): …")
    where = f"{inspect.getsourcefile(function)}:{function.__code__.co_firstlineno}"
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
