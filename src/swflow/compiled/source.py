"""Kernels as source: the functions that a kernel calls, their arguments, and plain Python execution."""

import dis
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def interpreted() -> bool:
    """Return whether kernels run as plain Python: the environment variable ``SWFLOW_INTERPRET`` is set, and not 0."""
    return os.environ.get("SWFLOW_INTERPRET", "0") not in ("", "0")


def compiled_as(name: str) -> Callable[[Function], Function]:
    """Mark a function that compiled kernels replace by the one of that name in `swflow.compiled.numba_compiler`."""

    def mark(function: Function) -> Function:
        function.compiled_as = name  # type: ignore[attr-defined]
        return function

    return mark


def record(floats: str, integers: str) -> np.dtype:
    """Return the type of records with fields of 64-bit floats and integers, which are named in this order."""
    return np.dtype([(name, np.float64) for name in floats.split()] + [(name, np.int64) for name in integers.split()])


def sealed(values: np.ndarray, dtype: type | None = None) -> np.ndarray:
    """Return a read-only view. Kernels then compile once, for writable and read-only arrays alike."""
    view: np.ndarray = np.ascontiguousarray(values, dtype).view()
    view.flags.writeable = False
    return view


class Linker:
    """
    Copies of functions in which the global names of functions refer to replacements.

    Compiled and interpreted kernels use the same substitutions: the stubs of an interface are replaced by the hooks
    that implement it, and each other function by its own copy. A subclass compiles the copies.
    """

    def __init__(self, hooks: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        self.hooks, self._built = hooks, dict[Any, Any]()

    def link(self, function: Any) -> FunctionType:
        """Return a copy of a function whose global names refer to replacements."""
        scope = function.__globals__
        used = {name: scope[name] for name in _global_names(function.__code__) if name in scope}
        others = {name: self.replacement(value) for name, value in used.items() if isinstance(value, FunctionType)}
        copy = FunctionType(function.__code__, scope | others, function.__name__, function.__defaults__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        return copy

    def replacement(self, function: Any) -> Any:
        """Return the replacement of a function; each is built once."""
        function = self.hooks.get(function, function)
        if hasattr(function, "compiled_as"):
            return self.native(function)
        if function not in self._built:
            self._built[function] = self.build(self.link(function))
        return self._built[function]

    def build(self, function: FunctionType) -> Any:
        """Return what stands for a linked function: here the function itself."""
        return function

    def native(self, function: Any) -> Any:
        """Return what stands for a function marked by `compiled_as`: here its Python source."""
        return function


@cache
def _global_names(code: CodeType) -> frozenset[str]:
    """Return the global names in the code of a function and of the functions inside it."""
    own = frozenset(one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL")
    return own.union(*(_global_names(one) for one in code.co_consts if hasattr(one, "co_names")))


class Handle:
    """
    The argument of a kernel that stands for a named tuple, or for several alike.

    A compiled kernel receives the address of a description of all arrays. Passing a tuple of a hundred arrays would
    pass a thousand values from each function to the next, and take most of the time of compilation.

    Fields are arrays in C order, numbers, named tuples of these, and handles with several parts. All parts have the
    same types. With ``several``, the kernel selects a part with `part_of`.
    """

    def __init__(self, parts: Sequence[Any], several: bool = False) -> None:
        words: list[int] = []
        for part in parts:
            _describe(part, words)
        self.parts, self.several = parts, several
        self._words = np.array(words, np.int64)
        self.address: int = self._words.ctypes.data


def _describe(value: Any, words: list[int]) -> None:
    """Append the words of a value: of an array its address, shape and strides."""
    if hasattr(value, "_fields"):
        for part in value:
            _describe(part, words)
    elif isinstance(value, Handle):
        words.append(value.address)
    elif isinstance(value, np.ndarray):
        words.append(value.ctypes.data)
        words.extend(value.shape)
        words.extend(value.strides)
    elif isinstance(value, float):
        words.append(int(np.float64(value).view(np.int64)))
    else:
        words.append(int(value))


@compiled_as("selected_part")
def part_of(parts: Any, index: int) -> Any:
    """Return one part of a `Handle` with several; of a handle with one part, that part."""
    return parts[index] if isinstance(parts, list) else parts


class Record:
    """A record of an array in interpreted mode; its fields are attributes, which read and write the array."""

    __slots__ = ("_columns", "_index")

    def __init__(self, columns: Mapping[str, np.ndarray], index: Any) -> None:
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_index", index)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._columns[name][self._index]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._columns[name][self._index] = value

    def __repr__(self) -> str:
        """Show all fields, for a debugger."""
        return f"Record({', '.join(f'{name}={column[self._index]}' for name, column in self._columns.items())})"


class Records:
    """An array of records in interpreted mode. Field access is several times as fast as by `numpy.recarray`."""

    __slots__ = ("_array", "_columns", "shape", "size")

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.size = array, array.shape, array.size
        self._columns = {name: array[name] for name in array.dtype.names or ()}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) or len(self.shape) == 1:
            return Record(self._columns, index)
        return Records(self._array[index])

    def __setitem__(self, index: Any, value: Record) -> None:
        for name, column in self._columns.items():
            column[index] = getattr(value, name)

    def __repr__(self) -> str:
        """Show the records, for a debugger."""
        return f"Records({self._array!r})"


def plain_argument(value: Any) -> Any:
    """Return the argument of a kernel for interpreted execution: arrays of records give access by attribute."""
    if isinstance(value, Handle):
        parts = [plain_argument(part) for part in value.parts]
        return parts if value.several else parts[0]
    if hasattr(value, "_fields"):
        return type(value)(*map(plain_argument, value))
    return Records(value) if isinstance(value, np.ndarray) and value.dtype.names else value


#: The functions of formulas in interpreted mode, by the number that stands for an address.
_FORMULAS: dict[int, Callable[..., float]] = {}
_NUMBERS = count(1)


def register_formula(function: Callable[..., float]) -> int:
    """Return a number by which `call_formula` finds a function in interpreted mode."""
    number = next(_NUMBERS)
    _FORMULAS[number] = function
    return number


@compiled_as("formula_call")
def call_formula(address: int, numbers: tuple[float, ...]) -> float:
    """
    Call a formula of floats.

    Compiled kernels take the address of machine code: it is a number, so that one compiled kernel serves all formulas.
    """
    return float(_FORMULAS[address](*map(np.float64, numbers)))
