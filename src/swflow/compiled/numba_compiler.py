"""Kernels compiled by numba: the types of their arguments, and the functions that replace marked Python functions."""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numba
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, overload, register_model
from numba.np.arrayobj import populate_array

from swflow.compiled.source import Handle, Linker

_WORD = 8

Hooks = Mapping[Callable[..., Any], Callable[..., Any]]


class NativeLinker(Linker):
    """Replace functions marked by `swflow.compiled.source.compiled_as` by those of this module."""

    def native(self, function: Any) -> Any:
        """Return the replacement of a marked function."""
        return globals()[function.compiled_as]

    def build(self, function: FunctionType) -> Any:
        """Compile a function by numba as it is."""
        return numba.njit(function, nogil=True)


def stock_code(function: Callable[..., int], hooks: Hooks, arguments: Sequence[Any]) -> tuple[str, bytes]:
    """
    Compile a kernel without numba's internals; return its name and an object file that contains it.

    Compilation takes several times as long as by `swflow.compiled.numba_internals`. It is used if these fail with
    another version of numba.
    """
    return _code_of(numba.cfunc(types.int64(*map(type_of, arguments)))(NativeLinker(hooks).link(function)))


def stock_formula_code(function: Callable[..., float], arguments: int) -> tuple[str, bytes]:
    """Compile a formula of floats without numba's internals; return its name and an object file that contains it."""
    kinds = [types.float64] * arguments
    return _code_of(numba.cfunc(types.float64(*kinds), error_model="numpy")(function))


def _code_of(compiled: Any) -> tuple[str, bytes]:
    """Return the name of a C function that numba compiled, and an object file, made of the code that numba shows."""
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3, jit=True)
    return str(compiled.native_name), bytes(machine.emit_object(llvm.parse_assembly(compiled.inspect_llvm())))


def provide_symbols() -> None:
    """Let numba define the functions that the code of `stock_code` calls if an error is raised."""
    numba.cfunc("int64(int64)")(lambda number: number)


def warn_about_internals(function: Callable[..., int], error: Exception) -> None:
    """Warn that a kernel is compiled by `stock_code`."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    warnings.warn(
        f"numba {numba.__version__}: {function.__name__} is compiled without its internals, which is slower "
        f"({reason}); use a version of numba that pyproject.toml names",
        stacklevel=2,
    )


# -- arguments of kernels


class Struct(types.Type):
    """The type of a named tuple in memory: its nested tuples, and the address, shape and strides of each array."""

    def __init__(self, label: str, fields: tuple[tuple[str, Any], ...], several: bool) -> None:
        self.fields, self.several, self.label = fields, several, label
        self.places: dict[str, tuple[int, Any]] = {}
        self.words = 0
        for name, kind in fields:
            self.places[name] = (self.words, kind)
            self.words += _words_of(kind)
        inner = ", ".join(f"{name}: {kind}" for name, kind in fields)
        digest = hashlib.blake2b(inner.encode(), digest_size=8).hexdigest()
        super().__init__(f"{label}_{digest}{'_several' * several}")  # a part of the name of each compiled function

    @property
    def key(self) -> tuple[Any, ...]:
        """The identity of the type."""
        return self.label, self.fields, self.several


def _words_of(kind: Any) -> int:
    if isinstance(kind, Struct):
        return 1 if kind.several else kind.words
    return 1 + 2 * kind.ndim if isinstance(kind, types.Array) else 1


def type_of(value: Any) -> Any:
    """Return the numba type of an argument of a kernel."""
    if isinstance(value, Handle):
        return _struct_of(value.parts[0], value.several)
    return _struct_of(value, False) if hasattr(value, "_fields") else numba.typeof(value)


def _struct_of(value: Any, several: bool) -> Struct:
    fields = tuple((name, type_of(part)) for name, part in zip(value._fields, value, strict=True))
    return Struct(type(value).__name__, fields, several)


@register_model(Struct)
class _StructModel(models.OpaqueModel):
    """An address."""


@infer_getattr
class _Parts(AttributeTemplate):
    key = Struct

    def generic_resolve(self, typ: Any, attr: str) -> Any:  # type: ignore[override]
        return typ.places[attr][1] if attr in typ.places else None


def _further(builder: Any, address: Any, words: Any) -> Any:
    return builder.gep(address, [builder.mul(words, ir.IntType(64)(_WORD))])


@lower_getattr_generic(Struct)
def _part(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    word, kind = typ.places[attr]
    if isinstance(kind, Struct) and not kind.several:
        return _further(builder, value, ir.IntType(64)(word))

    def load(place: int, form: Any) -> Any:
        where = _further(builder, value, ir.IntType(64)(word + place))
        loaded = builder.load(builder.bitcast(where, form.as_pointer()))
        # The description of the arrays does not change while a kernel runs.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if not isinstance(kind, types.Array):
        if isinstance(kind, types.Boolean):
            return builder.trunc(load(0, ir.IntType(64)), ir.IntType(1))
        return load(0, context.get_value_type(kind))
    array = context.make_array(kind)(context, builder)
    integer = context.get_value_type(types.intp)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    shape = [load(1 + axis, integer) for axis in range(kind.ndim)]
    strides = [load(1 + kind.ndim + axis, integer) for axis in range(kind.ndim - 1)] + [itemsize]
    data = load(0, array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


# -- replacements of marked functions


@intrinsic
def _part_at(typing_context: Any, parts: Any, index: Any) -> Any:
    """Return one of several parts."""
    one = Struct(parts.label, parts.fields, False)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _further(builder, values[0], builder.mul(values[1], ir.IntType(64)(one.words)))

    return one(parts, types.intp), generate


def selected_part(parts: Any, index: int) -> Any:
    """Return one part of a handle. The choice is compiled, so that a handle with one part costs nothing."""
    raise NotImplementedError


_WITHOUT_COUNTS: Any = {"_nrt": False}


@overload(selected_part, strict=False, jit_options=_WITHOUT_COUNTS)
def _select_part(parts: Any, index: Any) -> Callable[[Any, int], Any]:
    if parts.several:
        return lambda parts, index: _part_at(parts, index)  # type: ignore[call-arg]
    return lambda parts, index: parts


@intrinsic
def formula_call(typing_context: Any, address: Any, numbers: Any) -> Any:
    """Call a C function of floats, which are a tuple or a named tuple, by its address."""
    if any(number != types.float64 for number in numbers):
        raise TypingError("the arguments of a formula are floats")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number = ir.DoubleType()
        kind = ir.FunctionType(number, [number] * len(numbers))
        callback = builder.inttoptr(values[0], kind.as_pointer())
        return builder.call(callback, cgutils.unpack_tuple(builder, values[1]))

    return types.float64(types.int64, numbers), generate


def _of_word(name: str) -> Any:
    """Return a function of a 64-bit word that is one instruction of the processor."""

    def declare(typing_context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            of_zero = [] if name == "ctpop" else [context.get_constant(types.boolean, 0)]
            return getattr(builder, name)(values[0], *of_zero)

        return types.int64(types.uint64), generate

    return intrinsic(declare)


ones, lowest, leading = map(_of_word, ("ctpop", "cttz", "ctlz"))
