"""The decorators of kernels that work on the arrays given to them and make none, and one engine's for many machines."""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import swflow.compilation  # noqa: F401  before numba: it sets the folder of the compiled kernels

# isort: split
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

# Without `_nrt` no references to arrays are counted, which takes most of the time of functions as short as
# these. It is safe as long as the caller holds the arrays and none is made inside.
_LEAN: dict[str, Any] = {"nogil": True, "_nrt": False}

# What only kernels call has no way in from Python: to take dozens of arrays out of their objects, again for each of a
# hundred functions, would be a fifth of the compilation.
_INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _Part(JITCodeLibrary):
    """
    The code of a function that only other kernels call: neither optimized nor made into machine code by itself.

    numba would do both for every function, with all that it calls, and again in each of its callers: what is twenty
    calls deep, twenty times. Here the kernel that Python calls takes in the code of all, once, and is optimized whole.
    """

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def alone(self) -> Any:
        """Return the module of this function, in which those that it calls are only declared."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """Return the module with all that is below it, for callers that are compiled in numba's own way."""
        module = self.alone().clone()
        for library in _callers_first(self._linking_libraries):
            module.link_in(library._get_module_for_linking(), preserve=True)
        return module

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        """What numba gives a function's environment to; code that is not there has none."""
        return _NOTHING_THERE


class _NothingThere:
    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing."""


_NOTHING_THERE = _NothingThere()


class _Alone(NamedTuple):
    """A part as a whole takes it, which gets those below it itself."""

    part: _Part

    @property
    def _reload_init(self) -> set[Any]:
        return self.part._reload_init

    def _get_module_for_linking(self) -> Any:
        return self.part.alone()


class _Whole(JITCodeLibrary):
    """The code of a kernel that Python calls, with that of all functions below it."""

    def finalize(self) -> None:
        self._linking_libraries = _callers_first(self._linking_libraries)
        super().finalize()


def _callers_first(libraries: list[Any]) -> list[Any]:
    """Return these and those below parts, callers before whom they call: LLVM drops what nobody has called yet."""
    ordered: dict[Any, None] = {}

    def visit(library: Any) -> None:
        if library not in ordered:
            for below in library._linking_libraries if isinstance(library, _Part) else ():
                visit(below)
            ordered[library] = None

    for library in libraries:
        visit(library)
    return [_Alone(library) if isinstance(library, _Part) else library for library in reversed(ordered)]


class _CompilerOfParts(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _CompilerOfWholes(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        self.state.library = _Whole(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


def lean(function: Function) -> Function:
    """
    Compile a kernel that makes no array, as a part of the kernels that call it.

    Called from Python, where there is no way in, it ends the process. See `entry`.
    """
    made: Any = numba.njit(function, pipeline_class=_CompilerOfParts, **_LEAN, **_INSIDE)
    template = made.get_call_template

    def for_any_number(arguments: Any, keywords: Any) -> Any:
        """Compile it once for all constants of a type; where one matters, it is known when the whole is optimized."""
        return template([types.unliteral(one) for one in arguments], keywords)

    made.get_call_template = for_any_number
    return cast(Function, made)


def entry(function: Function) -> Function:
    """Compile a kernel as `lean` does, that Python calls; its compiled code is kept on disk."""
    return cast(Function, numba.njit(function, cache=True, pipeline_class=_CompilerOfWholes, **_LEAN))


def for_machine(function: Function, hooks: Mapping[Any, Any]) -> Function:
    """
    Return a kernel for a kind of machine: whatever it and its callees ask of a machine, this kind answers.

    The choice is made by name: the code stays, and the names in it stand for other functions. What is compiled is told
    apart on disk by the types of the state.

    Parameters
    ----------
    function : callable
        Made by `entry` or `lean`, or one of `swflow.scheduling.engine.machine`.
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
        return (lean if "no_cpython_wrapper" in value.targetoptions else entry)(again)

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
