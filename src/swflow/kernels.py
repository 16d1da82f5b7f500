"""Kernels: functions that are compiled with all that they call, kept as machine code, and loaded without a compiler."""

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from swflow.compilation import before_numba, kernel_folder
from swflow.errors import SwflowError
from swflow.files import atomic_path

Function = TypeVar("Function", bound=Callable[..., Any])


def lean(function: Function) -> Function:
    """Mark a function that kernels call, and that makes no array: it is compiled as a part of them."""
    function.is_part = True  # type: ignore[attr-defined]
    return function


def compiled_as(name: str) -> Callable[[Function], Function]:
    """Mark a function for which, in kernels, one of `swflow.compiling` stands."""

    def mark(function: Function) -> Function:
        function.compiled_as = name  # type: ignore[attr-defined]
        return function

    return mark


@compiled_as("formula_call")
def call_formula(address: int, numbers: tuple[float, ...]) -> float:
    """
    Call a C callback of so many floats, given its address.

    An address is a number, so that one compiled kernel serves all formulas, and needs none where there is none.
    """
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(numbers))
    return float(kind(address)(*numbers))


class Handle:
    """
    A state, or those of several machines, as kernels take it: the address of where its arrays are and how long.

    A kernel takes the named tuple that this stands for. To hand over a tuple of a hundred arrays would take a thousand
    arguments, from each function to the next, and most of the time of compilation.

    Parameters
    ----------
    parts : sequence of named tuples
        Of arrays in C order, numbers, and named tuples of these; all alike.
    several : bool
        Whether kernels choose one of them, by `swflow.scheduling.engine.centres.machine_of`.
    """

    def __init__(self, parts: Sequence[Any], several: bool = False) -> None:
        words: list[int] = []
        for part in parts:
            _describe(part, words)
        self.parts, self.several = parts, several
        self._words = np.array(words, np.int64)
        self.address: int = self._words.ctypes.data

    @property
    def kind(self) -> str:
        """What kernels are compiled for: the types of the arrays, not what is in them."""
        return f"{_kind_of(self.parts[0])}{'*' * self.several}"


def _describe(value: Any, words: list[int]) -> None:
    if hasattr(value, "_fields"):
        for part in value:
            _describe(part, words)
    elif isinstance(value, np.ndarray):
        words.append(value.ctypes.data)
        words.extend(value.shape)
        words.extend(value.strides)
    elif isinstance(value, float):
        words.append(int(np.float64(value).view(np.int64)))
    else:
        words.append(int(value))


def _kind_of(value: Any) -> str:
    if hasattr(value, "_fields"):
        parts = (f"{name}={_kind_of(part)}" for name, part in zip(value._fields, value, strict=True))
        return f"{type(value).__name__}({','.join(parts)})"
    if isinstance(value, Handle):
        return value.kind
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError("an array of a state is not in C order")
        return f"{_dtype_text(value.dtype)}[{value.ndim}]{'w' * value.flags.writeable}"
    return "bool" if isinstance(value, bool | np.bool_) else "float" if isinstance(value, float) else "int"


@cache
def _dtype_text(dtype: np.dtype) -> str:
    return str(dtype.descr) if dtype.names else dtype.str


class Kernel:
    """
    A function that Python calls as machine code.

    Parameters
    ----------
    function : callable
        It takes named tuples (given as `Handle`), ints and floats, returns an int, and calls functions marked by `lean`
        or `compiled_as`.
    hooks : mapping, optional
        Which functions stand for others in all that it calls: how a kind of machine answers what the engine asks.
    """

    def __init__(
        self, function: Callable[..., int], hooks: Mapping[Callable[..., Any], Callable[..., Any]] | None = None
    ) -> None:
        self.function, self.hooks = function, dict(hooks or {})
        self._ready: dict[tuple[str, ...], Any] = {}
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> int:
        """Call it; Python's lock is let go meanwhile."""
        returned, fault = ctypes.c_int64(), ctypes.c_void_p()
        plain = [one.address if isinstance(one, Handle) else one for one in arguments]
        if self.prepare(*arguments)(ctypes.byref(returned), ctypes.byref(fault), *plain):
            raise IndexError(f"{self.function.__name__}: a kernel left its arrays")  # with NUMBA_BOUNDSCHECK
        return returned.value

    @property
    def kinds(self) -> list[tuple[str, ...]]:
        """For which kinds of arguments there is machine code in this process."""
        return list(self._ready)

    def prepare(self, *arguments: Any) -> Any:
        """Load or compile the machine code for such arguments."""
        kinds = tuple(map(_kind_of, arguments))
        with self._lock:
            if kinds not in self._ready:
                self._ready[kinds] = self._loaded(kinds, arguments)
        return self._ready[kinds]

    def _loaded(self, kinds: tuple[str, ...], arguments: Sequence[Any]) -> Any:
        folder, answers = kernel_folder(), sorted(one.__qualname__ for one in self.hooks.values())
        about = repr((self.function.__module__, kinds, answers, _processor()))
        name = f"{self.function.__name__}-{hashlib.blake2b(about.encode(), digest_size=12).hexdigest()}.o"
        path = None if folder is None else folder / name
        found = None if path is None else _kept(path)
        if found is None:
            before_numba()
            from swflow.compiling import machine_code

            found = machine_code(self.function, self.hooks, arguments)
            _keep(path, *found)
        return _function(*found, [_C_TYPES.get(kind, ctypes.c_void_p) for kind in kinds])


_C_TYPES: dict[str, Any] = {"int": ctypes.c_int64, "bool": ctypes.c_int64, "float": ctypes.c_double}


def _keep(path: Path | None, name: str, code: bytes) -> None:
    """Write an object file behind a line with the function's name, and with what tells whether the file is whole."""
    try:
        if path is not None:
            with atomic_path(path) as temporary:
                temporary.write_bytes(f"{name} {hashlib.blake2b(code).hexdigest()}\n".encode() + code)
    except (OSError, SwflowError):
        pass  # what cannot be kept is compiled again


def _kept(path: Path) -> tuple[str, bytes] | None:
    try:
        first, _, code = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    name, _, digest = first.decode(errors="replace").partition(" ")
    return (name, code) if digest == hashlib.blake2b(code).hexdigest() else None


@cache
def _processor() -> tuple[str, ...]:
    """Return what machine code depends on besides the source: the processor, and how numba is told to compile."""
    import llvmlite
    import llvmlite.binding as llvm

    told = (f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_"))
    told = (one for one in told if not one.startswith("NUMBA_CACHE_DIR"))
    return llvmlite.__version__, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), *told


#: Who holds the machine code that was loaded; it lives as long as the process.
_ENGINES: list[Any] = []


def _function(name: str, code: bytes, kinds: list[Any]) -> Any:
    """Load an object file, and return one of its functions."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    pointer = ctypes.POINTER
    form = ctypes.CFUNCTYPE(ctypes.c_int32, pointer(ctypes.c_int64), pointer(ctypes.c_void_p), *kinds)
    return form(engine.get_function_address(name))
