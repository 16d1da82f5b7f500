"""A state as kernels take it: the address of what describes its arrays, however many these are."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import swflow.compilation  # noqa: F401  before numba: it sets the folder of the compiled kernels

# isort: split
import numba
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)
from numba.np.arrayobj import populate_array

_WORD = 8


class Struct(types.Type):
    """
    The type of a named tuple in memory: nested ones within it, and of each array where it is and how long.

    Handing a tuple of a hundred arrays to a function takes a thousand arguments, and most of the time of compilation
    goes into them. This is one pointer. What it points to stays as it is while a kernel runs, which the loads say.
    """

    def __init__(self, label: str, fields: tuple[tuple[str, Any], ...], several: bool) -> None:
        self.fields, self.several, self.label = fields, several, label
        self.places: dict[str, tuple[int, Any]] = {}
        self.words = 0
        for name, kind in fields:
            self.places[name] = (self.words, kind)
            self.words += _words_of(kind)
        inner = ", ".join(f"{name}: {kind}" for name, kind in fields)
        digest = hashlib.blake2b(inner.encode(), digest_size=8).hexdigest()
        super().__init__(f"{label}_{digest}{'_several' * several}")  # it is a part of the name of each function

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells types apart."""
        return self.label, self.fields, self.several


def _words_of(kind: Any) -> int:
    if isinstance(kind, Struct):
        return kind.words
    return 1 + 2 * kind.ndim if isinstance(kind, types.Array) else 1


class Handle:
    """
    A state, or those of several machines, for kernels.

    Parameters
    ----------
    parts : sequence of named tuples
        Of arrays in C order, numbers, and named tuples of these; all alike.
    several : bool
        Whether kernels choose one of them by `part_at`.
    """

    def __init__(self, parts: Sequence[Any], several: bool = False) -> None:
        self._numba_type_ = _type_of(parts[0], several)
        words: list[int] = []
        for part in parts:
            _describe(part, words)
        self._kept, self._words = parts, np.array(words, np.int64)
        self.address: int = self._words.ctypes.data


def _type_of(value: Any, several: bool = False) -> Any:
    if not hasattr(value, "_fields"):
        kind = numba.typeof(value)
        if isinstance(kind, types.Array) and kind.layout != "C":
            raise TypeError(f"an array of a state is not in C order, but {kind}")
        return kind
    fields = tuple((name, _type_of(part)) for name, part in zip(value._fields, value, strict=True))
    return Struct(type(value).__name__, fields, several)


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


@register_model(Struct)
class _StructModel(models.OpaqueModel):
    """An address."""


@unbox(Struct)
def _unbox(typ: Any, value: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.bitcast(address, c.context.get_value_type(typ)))


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
    if isinstance(kind, Struct):
        return _further(builder, value, ir.IntType(64)(word))

    def load(place: int, form: Any) -> Any:
        where = _further(builder, value, ir.IntType(64)(word + place))
        loaded = builder.load(builder.bitcast(where, form.as_pointer()))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if not isinstance(kind, types.Array):
        if isinstance(kind, types.Boolean):
            return builder.trunc(load(0, ir.IntType(64)), ir.IntType(1))
        return load(0, context.get_value_type(kind))
    array = context.make_array(kind)(context, builder)
    integer, size = context.get_value_type(types.intp), context.get_constant
    itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [load(1 + axis, integer) for axis in range(kind.ndim)]
    strides = [load(1 + kind.ndim + axis, integer) for axis in range(kind.ndim - 1)] + [size(types.intp, itemsize)]
    populate_array(
        array, data=load(0, array.data.type), shape=shape, strides=strides, itemsize=size(types.intp, itemsize),
        meminfo=None,
    )  # fmt: skip
    return array._getvalue()


@intrinsic
def part_at(typing_context: Any, states: Any, index: Any) -> Any:
    """Return the state of one of several machines."""
    one = Struct(states.label, states.fields, False)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _further(builder, values[0], builder.mul(values[1], ir.IntType(64)(one.words)))

    return one(states, types.intp), generate
