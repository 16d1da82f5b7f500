"""Compiling kernels by numba, whole; imported only when one is not kept on disk."""

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, overload, register_model
from numba.np.arrayobj import populate_array

from swflow.kernels import Handle

_WORD = 8


def machine_code(
    function: Callable[..., int],
    hooks: Mapping[Callable[..., Any], Callable[..., Any]],
    arguments: Sequence[Any],
) -> tuple[str, bytes]:
    """
    Compile a kernel with all that it calls; see `swflow.kernels.Kernel`.

    Returns
    -------
    str, bytes
        The function's name, and the object file that it is in.

    Raises
    ------
    RuntimeError
        If it calls what only a process with numba in it has.
    """
    kinds = tuple(map(_type_of, arguments))
    made = _Linked(hooks).of(function, _CompilerOfWholes, _INSIDE)
    made.compile(kinds)
    result = made.overloads[kinds]
    if types.unliteral(result.signature.return_type) != types.int64:
        raise TypeError(f"{function.__qualname__} returns {result.signature.return_type}, not an int")
    for one in result.library.asked_for():
        if not hasattr(ctypes.CDLL(None), one):
            raise RuntimeError(f"{function.__qualname__} needs {one}, which is not there without numba")
    return result.fndesc.llvm_func_name, result.library._get_compiled_object()


def for_python(function: Callable[..., Any]) -> Any:
    """Compile a function that otherwise only kernels call, for Python: it takes arrays and named tuples themselves."""
    return _Linked({}).of(function, _CompilerOfWholes, {})


# -- one function after the other


class _Linked:
    """Functions as numba compiles them: the code stays, and names in it stand for what is compiled."""

    def __init__(self, hooks: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        self.hooks, self.made = hooks, dict[int, Any]()

    def of(self, function: Any, compiler: type[CompilerBase], options: Mapping[str, Any]) -> Any:
        """Return a function whose names stand for compiled ones, and which is to be compiled."""
        scope = function.__globals__
        used = {name: scope[name] for name in _names(function.__code__) if name in scope}
        others = {name: self.standing_for(value) for name, value in used.items() if self.is_ours(value)}
        again = FunctionType(function.__code__, scope | others, function.__name__, function.__defaults__)
        again.__module__, again.__qualname__ = function.__module__, function.__qualname__
        return numba.njit(again, pipeline_class=compiler, **_LEAN, **options)

    def is_ours(self, value: Any) -> bool:
        """Return whether something else stands for a value in kernels."""
        return isinstance(value, FunctionType) and (
            value in self.hooks or hasattr(value, "is_part") or hasattr(value, "compiled_as")
        )

    def standing_for(self, function: Any) -> Any:
        """Return what stands for a function: each is compiled once."""
        function = self.hooks.get(function, function)
        if hasattr(function, "compiled_as"):
            return globals()[function.compiled_as]
        if id(function) not in self.made:
            self.made[id(function)] = _for_any_number(self.of(function, _CompilerOfParts, _INSIDE))
        return self.made[id(function)]


def _names(code: Any) -> set[str]:
    """Return the global names in the code of a function, and of those within it."""
    inner = (_names(one) for one in code.co_consts if hasattr(one, "co_names"))
    return set(code.co_names).union(*inner)


def _for_any_number(made: Any) -> Any:
    """Let a function be compiled once for all constants of a type; where one matters, the whole's optimization sees."""
    template = made.get_call_template

    def for_any(arguments: Any, keywords: Any) -> Any:
        return template([types.unliteral(one) for one in arguments], keywords)

    made.get_call_template = for_any
    return made


# Without `_nrt` no references to arrays are counted, which takes most of the time of functions as short as these. It is
# safe as long as the caller holds the arrays and none is made inside.
_LEAN: dict[str, Any] = {"nogil": True, "_nrt": False}

# There is no way in from Python's objects.
_INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


# -- the code of all of them together


class _Part(JITCodeLibrary):
    """
    The code of a function that only kernels call: neither optimized nor made into machine code by itself.

    numba would do both for every function, with all that it calls, and again in each of its callers: what is twenty
    calls deep, twenty times. Here the kernel takes in the code of all, once, and is optimized whole.
    """

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        """What numba gives a function's environment to; code that is not there has none."""
        return _NothingThere


class _NothingThere:
    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Do nothing."""


class _Whole(JITCodeLibrary):
    """The code of a kernel, with that of all functions below it."""

    def finalize(self) -> None:
        self._linking_libraries = _callers_first(self._linking_libraries)
        super().finalize()

    def asked_for(self) -> list[str]:
        """Return the names of what it calls outside."""
        names = [one.name for one in self._final_module.functions if one.is_declaration]
        return [name for name in names if not name.startswith("llvm.")]


class _CompilerOfParts(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        self.state.library = _Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _CompilerOfWholes(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        self.state.library = _Whole(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


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
    return list(reversed(ordered))


# -- what kernels take


class Struct(types.Type):
    """The type of a named tuple in memory: nested ones within it, and of each array where it is and how long."""

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


def _type_of(value: Any) -> Any:
    if isinstance(value, Handle):
        return _struct_of(value.parts[0], value.several)
    return _struct_of(value, False) if hasattr(value, "_fields") else numba.typeof(value)


def _struct_of(value: Any, several: bool) -> Struct:
    fields = tuple((name, _type_of(part)) for name, part in zip(value._fields, value, strict=True))
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
    if isinstance(kind, Struct):
        return _further(builder, value, ir.IntType(64)(word))

    def load(place: int, form: Any) -> Any:
        where = _further(builder, value, ir.IntType(64)(word + place))
        loaded = builder.load(builder.bitcast(where, form.as_pointer()))
        # What a handle points to stays as it is while a kernel runs.
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


# -- what stands for functions of Python


@intrinsic
def _part_at(typing_context: Any, states: Any, index: Any) -> Any:
    """Return one of several."""
    one = Struct(states.label, states.fields, False)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _further(builder, values[0], builder.mul(values[1], ir.IntType(64)(one.words)))

    return one(states, types.intp), generate


def chosen_machine(states: Any, centre: int) -> Any:
    """Return the state of one machine; chosen when the loop is compiled, so that a single machine costs nothing."""
    raise NotImplementedError


_WITHOUT_COUNTS: Any = {"_nrt": False}


@overload(chosen_machine, strict=False, jit_options=_WITHOUT_COUNTS)
def _choose_machine(states: Any, centre: Any) -> Callable[[Any, int], Any]:
    if states.several:
        return lambda states, centre: _part_at(states, centre)  # type: ignore[call-arg]
    return lambda states, centre: states


@intrinsic
def formula_call(typing_context: Any, address: Any, numbers: Any) -> Any:
    """Call a C callback of floats."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number = ir.DoubleType()
        kind = ir.FunctionType(number, [number] * len(numbers))
        callback = builder.inttoptr(values[0], kind.as_pointer())
        return builder.call(callback, cgutils.unpack_tuple(builder, values[1]))

    return types.float64(types.int64, types.UniTuple(types.float64, len(numbers))), generate


def _of_word(name: str) -> Any:
    """Return a function of a word that is one instruction of the processor."""

    def declare(typing_context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            of_zero = [] if name == "ctpop" else [context.get_constant(types.boolean, 0)]
            return getattr(builder, name)(values[0], *of_zero)

        return types.int64(types.uint64), generate

    return intrinsic(declare)


ones, lowest, leading = map(_of_word, ("ctpop", "cttz", "ctlz"))
