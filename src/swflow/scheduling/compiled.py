"""The decorators of kernels that work on the arrays given to them and make none."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

import swflow.compilation  # noqa: F401  sets the folder of the compiled kernels

Function = TypeVar("Function", bound=Callable[..., Any])

# Without `_nrt` no references to arrays are counted, which takes most of the time of functions as short as
# these. It is safe as long as the caller holds the arrays and none is made inside.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}


def njit(function: Function) -> Function:
    """Compile a kernel that makes no array; its compiled code is kept on disk."""
    return cast(Function, numba.njit(function, **_OPTIONS))


def njit_inline(function: Function) -> Function:
    """
    Compile a function as a part of each of its callers.

    For what is called at a place or two with the whole state of a machine: handing over its many arrays
    costs more than the work, and code that is compiled only once is compiled soonest.
    """
    return cast(Function, numba.njit(function, inline="always", **_OPTIONS))
