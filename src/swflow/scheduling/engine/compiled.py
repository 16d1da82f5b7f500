"""The decorators of kernels that work on the arrays given to them and make none, and one engine's for many machines."""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, cast

import swflow.compilation  # noqa: F401  before numba: it sets the folder of the compiled kernels

# isort: split
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

# Without `_nrt` no references to arrays are counted, which takes most of the time of functions as short as
# these. It is safe as long as the caller holds the arrays and none is made inside.
_LEAN: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}

# What only kernels call has no way in from Python: to take dozens of arrays out of their objects, again for each of a
# hundred functions, would be a fifth of the compilation.
_INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def lean(function: Function) -> Function:
    """
    Compile a kernel that makes no array; its compiled code is kept on disk.

    It is for other kernels: called from Python, where there is no way in, it ends the process. See `entry`.
    """
    return cast(Function, numba.njit(function, **_LEAN, **_INSIDE))


def entry(function: Function) -> Function:
    """Compile a kernel as `lean` does, that Python calls."""
    return cast(Function, numba.njit(function, **_LEAN))


def inlined(function: Function) -> Function:
    """
    Compile a function as a part of each of its callers.

    For what is called at a place or two with the whole state of a machine: handing over its many arrays
    costs more than the work, and code that is compiled only once is compiled soonest.
    """
    return cast(Function, numba.njit(function, inline="always", **_LEAN))


def for_machine(function: Function, hooks: Mapping[Any, Any]) -> Function:
    """
    Return a kernel for a kind of machine: whatever it and its callees ask of a machine, this kind answers.

    numba inlines by name, before it knows any type, so that the choice has to be made by name as well: the code stays,
    and the names in it stand for other functions. What is compiled is told apart on disk by the types of the state.

    Parameters
    ----------
    function : callable
        Made by `entry`, `lean` or `inlined`, or one of `swflow.scheduling.engine.machine`.
    hooks : mapping
        From the functions of `swflow.scheduling.engine.machine` to those that stand for them.

    Returns
    -------
    callable
        ``function`` itself if it asks nothing of a machine.
    """
    made: dict[Any, Any] = {}

    def rebound(value: Any) -> Any:
        if id(value) not in made:
            made[id(value)] = value
            made[id(value)] = changed(hooks.get(value, value))
        return made[id(value)]

    def changed(value: Any) -> Any:
        plain = getattr(value, "py_func", value)
        if not isinstance(plain, FunctionType):
            return value
        scope = plain.__globals__
        used = [name for name in plain.__code__.co_names if _is_ours(scope.get(name))]
        others = {name: rebound(scope[name]) for name in used}
        if all(others[name] is scope[name] for name in used):
            return value
        again = FunctionType(plain.__code__, scope | others, plain.__name__, plain.__defaults__)
        again.__module__, again.__qualname__ = plain.__module__, plain.__qualname__
        again.__doc__, again.__annotations__ = plain.__doc__, plain.__annotations__
        if value is plain:  # nothing is compiled
            return again
        return numba.jit(again, cache=True, **value.targetoptions)

    return cast(Function, rebound(function))


def _is_ours(value: Any) -> bool:
    plain = getattr(value, "py_func", value)
    return isinstance(plain, FunctionType) and plain.__module__.startswith("swflow.scheduling")


def caller(arguments: int) -> Callable[[int, tuple[float, ...]], float]:
    """
    Make the function with which kernels call a C callback of so many floats, given its address and these.

    An address is a number, so that one compiled kernel serves all formulas, and needs none where there is none.
    """

    def declare(typing_context: Any, address: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            number = ir.DoubleType()
            kind = ir.FunctionType(number, [number] * arguments)
            callback = builder.inttoptr(values[0], kind.as_pointer())
            return builder.call(callback, cgutils.unpack_tuple(builder, values[1]))

        return types.float64(types.int64, types.UniTuple(types.float64, arguments)), generate

    return cast(Callable[[int, tuple[float, ...]], float], intrinsic(declare))
