"""The decorators of kernels that work on the arrays given to them and make none."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

import swflow.compilation  # noqa: F401  sets the folder of the compiled kernels

Function = TypeVar("Function", bound=Callable[..., Any])

# Without `_nrt` no references to arrays are counted, which takes most of the time of functions as short as
# these. It is safe as long as the caller holds the arrays and none is made inside.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}


def lean(function: Function) -> Function:
    """Compile a kernel that makes no array; its compiled code is kept on disk."""
    return cast(Function, numba.njit(function, **_OPTIONS))


def inlined(function: Function) -> Function:
    """
    Compile a function as a part of each of its callers.

    For what is called at a place or two with the whole state of a machine: handing over its many arrays
    costs more than the work, and code that is compiled only once is compiled soonest.
    """
    return cast(Function, numba.njit(function, inline="always", **_OPTIONS))


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
