"""Compilation of a kernel as a whole, by numba's internals: several times as fast, with machine code that is cached."""

import ctypes
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, SimpleNamespace
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock

from swflow.compiled.numba_compiler import Hooks, NativeLinker, type_of


def machine_code(function: Callable[..., int], hooks: Hooks, arguments: Sequence[Any]) -> tuple[str, bytes]:
    """Compile a kernel with all functions that it calls; return its name and an object file that contains it."""
    kinds = tuple(map(type_of, arguments))
    made = _compiled(_Linker(hooks).link(function), _CompilerOfWholes)
    with _without_collection():
        made.compile(kinds)
    result = made.overloads[kinds]
    if types.unliteral(result.signature.return_type) != types.int64:
        raise TypeError(f"{function.__qualname__} returns {result.signature.return_type}, not an int")
    return result.fndesc.llvm_func_name, result.library.machine_code()


@global_compiler_lock
def formula_code(function: Callable[..., float], arguments: int) -> tuple[str, bytes]:
    """Compile a formula of floats; return the name of its C function and an object file that contains it."""
    number, kinds = types.float64, [types.float64] * arguments
    made = _compiled(function, _CompilerOfParts, error_model="numpy")
    made.compile(tuple(kinds))
    (part,) = made.overloads.values()
    context, about = part.target_context, part.fndesc
    module = context.create_module("formula")
    inner = ir.Function(module, context.call_conv.get_function_type(number, kinds), about.llvm_func_name)
    form = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()] * arguments)
    outer = ir.Function(module, form, about.llvm_cfunc_wrapper_name)
    builder = ir.IRBuilder(outer.append_basic_block())
    builder.ret(context.call_conv.call_function(builder, inner, number, kinds, outer.args)[1])
    whole = _Whole(context.codegen(), "formula")
    whole.add_linking_library(part.library)
    whole.add_ir_module(module)
    whole.finalize()
    return about.llvm_cfunc_wrapper_name, whole.machine_code()


@contextmanager
def _without_collection() -> Iterator[None]:
    """Collect no garbage: numba makes millions of objects, and the collector takes a seventh of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _compiled(function: Callable[..., Any], compiler: type[CompilerBase], **options: Any) -> Any:
    """
    Return a function that numba compiles when its types are known.

    Without ``_nrt`` no references to arrays are counted, which would take most of the time of functions as short as
    these. It is safe as long as the caller holds the arrays and a kernel creates none.
    """
    options |= {"nogil": True, "_nrt": False}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # only kernels call it
    return numba.njit(function, pipeline_class=compiler, **options)


class _Linker(NativeLinker):
    def build(self, function: FunctionType) -> Any:
        """Compile a function once per type of its arguments; the optimizer sees constants when it has the whole."""
        made = _compiled(function, _CompilerOfParts)
        template = made.get_call_template

        def for_any(arguments: Any, keywords: Any) -> Any:
            return template([types.unliteral(one) for one in arguments], keywords)

        made.get_call_template = for_any
        return made


class _Part(JITCodeLibrary):
    """
    The code of a function that only kernels call: neither optimized nor compiled to machine code by itself.

    numba would do both for every function with all that it calls, and again in each of its callers: a function that is
    twenty calls deep, twenty times. Here the kernel links the code of all functions once, and is optimized whole.
    """

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    #: The object to which numba gives a function's environment; a part has none.
    codegen = SimpleNamespace(set_env=lambda name, environment: None)


class _Whole(JITCodeLibrary):
    """The code of a kernel with that of all functions that it calls."""

    def finalize(self) -> None:
        self.enable_object_caching()
        self._linking_libraries = _callers_first(self._linking_libraries)
        super().finalize()

    def machine_code(self) -> bytes:
        """Return an object file; it is an error if the code calls symbols that only a process with numba has."""
        for name in [one.name for one in self._final_module.functions if one.is_declaration]:
            if not name.startswith("llvm.") and not hasattr(ctypes.CDLL(None), name):
                raise RuntimeError(f"{self.name} needs {name}, which only numba provides")
        return bytes(self._get_compiled_object())


class _CompilerOfParts(CompilerBase):
    library: type[JITCodeLibrary] = _Part

    def define_pipelines(self) -> list[Any]:
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _CompilerOfWholes(_CompilerOfParts):
    library = _Whole


def _callers_first(libraries: list[Any]) -> list[Any]:
    """Return these libraries and those below parts, callers first: LLVM drops functions that nothing has called yet."""
    ordered: dict[Any, None] = {}

    def visit(library: Any) -> None:
        if library not in ordered:
            for below in library._linking_libraries if isinstance(library, _Part) else ():
                visit(below)
            ordered[library] = None

    for library in libraries:
        visit(library)
    return list(reversed(ordered))
