"""Kernels: Python functions that are compiled with everything they call, cached as machine code, or interpreted."""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np

from swflow.compiled.cache import KEPT_SECONDS, kernel_folder, object_key
from swflow.compiled.source import (
    Handle,
    Linker,
    call_formula,
    compiled_as,
    interpreted,
    part_of,
    plain_argument,
    record,
    register_formula,
    sealed,
)
from swflow.files.cache import read_cached, trim, write_cached

__all__ = [
    "Callback", "Handle", "Kernel", "call_formula", "compiled_as", "interpreted", "part_of", "record",
    "sealed", "seconds_lost",
]  # fmt: skip


def _kind_of(value: Any) -> str:
    """Return a text for the types of an argument; kernels are compiled once per text."""
    if hasattr(value, "_fields"):
        parts = (f"{name}={_kind_of(part)}" for name, part in zip(value._fields, value, strict=True))
        return f"{type(value).__name__}({','.join(parts)})"
    if isinstance(value, Handle):
        return f"{_kind_of(value.parts[0])}{'*' * value.several}"
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError("an array of a state is not in C order")
        return f"{_dtype_text(value.dtype)}[{value.ndim}]{'w' * value.flags.writeable}"
    return "bool" if isinstance(value, bool | np.bool_) else "float" if isinstance(value, float) else "int"


@cache
def _dtype_text(dtype: np.dtype) -> str:
    return str(dtype.descr) if dtype.names else dtype.str


_lost = threading.local()


@contextmanager
def _lost_time() -> Iterator[None]:
    """Add the time of a block to `seconds_lost`."""
    began = time.perf_counter()
    yield
    _lost.seconds = seconds_lost() + time.perf_counter() - began


def seconds_lost() -> float:
    """Return how many seconds this thread has spent on loading and compiling kernels and formulas."""
    return getattr(_lost, "seconds", 0.0)


class Kernel:
    """
    A function that Python calls as machine code, or, in interpreted mode, as plain Python.

    The function takes named tuples (given as `Handle`), ints and floats, and returns an int. All functions that it
    calls, directly or not, are compiled with it as they are, and must not create arrays; those marked by `compiled_as`
    have another form in machine code. The hooks replace some of them: they implement an interface.
    """

    def __init__(
        self, function: Callable[..., int], hooks: Mapping[Callable[..., Any], Callable[..., Any]] | None = None
    ) -> None:
        self.function, self.hooks = function, dict(hooks or {})
        self.ready: dict[tuple[str, ...], Any] = {}  # machine code by the types of the arguments
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> int:
        """Call the kernel; compiled code runs without Python's global lock."""
        if interpreted():
            with np.errstate(all="ignore"):
                return int(self._plain(*map(plain_argument, arguments)))
        kinds = tuple(map(_kind_of, arguments))
        with self._lock:
            if kinds not in self.ready:
                with _lost_time():
                    self.ready[kinds] = self._loaded(kinds, arguments)
        addresses = [one.address if isinstance(one, Handle) else one for one in arguments]
        return int(self.ready[kinds](*addresses))

    @cached_property
    def _plain(self) -> Callable[..., int]:
        return Linker(self.hooks).link(self.function)

    def _loaded(self, kinds: tuple[str, ...], arguments: Sequence[Any]) -> Callable[..., int]:
        """Load or compile the machine code for arguments of these types."""
        named = [function for pair in self.hooks.items() for function in pair]
        answers = sorted((_name_of(stub), _name_of(answer)) for stub, answer in self.hooks.items())
        key = object_key([self.function, *named], (_name_of(self.function), kinds, answers))

        label, c_types = self.function.__name__, [_C_TYPES.get(kind, ctypes.c_void_p) for kind in kinds]

        def compiled() -> tuple[str, bytes]:
            from swflow.compiled.numba_internals import machine_code

            return machine_code(self.function, self.hooks, arguments)

        stock = f"{label}-{key}-stock.o"
        if _is_stored(stock):
            return self._by_stock_numba(stock, arguments, c_types)
        try:
            found = _stored(f"{label}-{key}.o", compiled)
        except Exception as error:
            return self._by_stock_numba(stock, arguments, c_types, error)
        return _loaded_function(label, *found, c_types)

    def _by_stock_numba(
        self, name: str, arguments: Sequence[Any], c_types: list[Any], error: Exception | None = None
    ) -> Callable[..., int]:
        """Load or compile the kernel without numba's internals; raise the first error if that fails, too."""
        from swflow.compiled.numba_compiler import provide_symbols, stock_code, warn_about_internals

        if isinstance(error, TypeError) and "not an int" in str(error):
            raise error
        try:
            found = _stored(name, lambda: stock_code(self.function, self.hooks, arguments))
        except Exception as other:
            raise error or other from None
        if error is not None:
            warn_about_internals(self.function, error)
        provide_symbols()
        call: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int64, *c_types)(_address(*found))
        return call


_C_TYPES: dict[str, type] = {"int": ctypes.c_int64, "bool": ctypes.c_int64, "float": ctypes.c_double}


def _is_stored(name: str) -> bool:
    """Return whether the cache has a function."""
    return read_cached(kernel_folder(), name) is not None


def _stored(name: str, compiled: Callable[[], tuple[str, bytes]]) -> tuple[str, bytes]:
    """Return the name of a function and its machine code, from the cache if it is there."""
    folder = kernel_folder()
    found = read_cached(folder, name)
    if found is None:
        found = compiled()
        write_cached(folder, name, *found)
        trim(folder, seconds=KEPT_SECONDS)
    return found


class Callback:
    """
    A formula in the form that kernels call: a C function of floats, or, in interpreted mode, a Python function.

    It is a plain Python function of floats that numba can compile; a division by zero gives infinity or NaN. Its
    ``address`` is the argument of `call_formula`. If it is made from a ``source`` that contains all that it calls, its
    machine code is cached.

    Examples
    --------
    >>> Callback(lambda width, length: width * length, 2)(3.0, 4.0)
    12.0
    """

    def __init__(self, function: Callable[..., float], arguments: int, source: str = "") -> None:
        self._arguments = arguments
        self._keep_alive: Any = None
        if interpreted():
            self._function: Any = function
            self.address = register_formula(function)
            return
        with _lost_time():
            self.address = self._loaded(function, source) if source else self._compiled(function)
        self._function = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arguments)(self.address)

    def _loaded(self, function: Callable[..., float], source: str) -> int:
        def compiled() -> tuple[str, bytes]:
            from swflow.compiled.numba_internals import formula_code

            return formula_code(function, self._arguments)

        def by_stock_numba() -> tuple[str, bytes]:
            from swflow.compiled.numba_compiler import stock_formula_code

            return stock_formula_code(function, self._arguments)

        name = f"formula-{object_key([_stored], source)}"
        if not _is_stored(f"{name}-stock.o"):
            try:
                return _address(*_stored(f"{name}.o", compiled))
            except Exception:  # numba's internals changed
                pass
        from swflow.compiled.numba_compiler import provide_symbols

        provide_symbols()
        return _address(*_stored(f"{name}-stock.o", by_stock_numba))

    def _compiled(self, function: Callable[..., float]) -> int:
        from numba import cfunc, types

        self._keep_alive = cfunc(types.float64(*[types.float64] * self._arguments), error_model="numpy")(function)
        return int(self._keep_alive.address or 0)

    def __call__(self, *values: float) -> float:
        """Return the value of the formula; arguments left out at the end are 0."""
        missing = [0.0] * (self._arguments - len(values))
        with np.errstate(all="ignore"):
            return float(self._function(*map(np.float64, [*values, *missing])))


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


#: The engines that hold loaded machine code; it lives as long as the process.
_ENGINES: list[Any] = []


def _address(name: str, code: bytes) -> int:
    """Load an object file, and return the address of one of its functions."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return int(engine.get_function_address(name))


def _loaded_function(label: str, name: str, code: bytes, kinds: list[Any]) -> Callable[..., int]:
    """Load an object file, and return one of its functions."""
    pointer = ctypes.POINTER
    form = ctypes.CFUNCTYPE(ctypes.c_int32, pointer(ctypes.c_int64), pointer(ctypes.c_void_p), *kinds)
    function = form(_address(name, code))

    def call(*arguments: Any) -> int:
        returned, fault = ctypes.c_int64(), ctypes.c_void_p()
        if function(ctypes.byref(returned), ctypes.byref(fault), *arguments):
            raise IndexError(f"{label}: an index is out of bounds")  # only with NUMBA_BOUNDSCHECK
        return returned.value

    return call
