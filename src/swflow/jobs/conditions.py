"""
Conditions and formulas of the config. They are parsed with a whitelist of syntax and never run as code.

One language serves all conditions: `where` of a step, `flurries` of the cleaning, `split` of a figure. It consists of
Python's arithmetic and comparisons on the columns of a table, ``x in (1, 2)``, ``x not in (1, 2)``, ``x is null`` and
``x is not null``. Words such as AND can be in capitals. Arithmetic uses Python's floats; whole numbers that are
compared without arithmetic are compared exactly. Unknown values (null) propagate, and so do undefined results such as
a division by zero. A row with an unknown result does not fulfil the condition.
"""

import ast
import functools
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.table import JOB_COLUMNS

#: Largest nesting depth of an expression, and largest number of nodes of a formula: compilers fail above these.
MOST_LEVELS = 100
MOST_PARTS = 1000

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MEMBERSHIP = (ast.In, ast.NotIn, ast.Is, ast.IsNot)
_LISTS = (ast.Tuple, ast.List, ast.Set)
_UNARY = (ast.Not, ast.USub, ast.UAdd)
_NODES = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Name, ast.Load, ast.Constant,
)  # fmt: skip
_WORDS = re.compile(r"\b(AND|OR|NOT|IN|IS|NULL)\b", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"[0-9_]{4000,}")  # Python refuses whole numbers of more than 4,300 digits
_TOO_LARGE = "the number {position} is too large; use numbers below 1e308"
_SINGLE_EQUALS = re.compile(r"(?<![=!<>:])=(?!=)")


def parse_expression(text: str, names: Iterable[str] | None, where: str, functions: Iterable[str] = ()) -> ast.expr:
    """
    Parse an expression of numbers, names, arithmetic, comparisons, ``and``, ``or`` and ``not``.

    The result is a tree of whitelisted nodes only. ``names`` are the permitted names (None: any), ``where`` is the
    config key or option. A formula can call ``functions``, with positional arguments, and contain ``a if condition else
    b``. Without functions, it is a condition, which can contain ``in``, ``not in``, ``is null`` and ``is not null``.
    """
    if not isinstance(text, str):
        raise SwflowError(f"{where}: {text!r}; expected text")
    where = f"{where}: {_short(text)}"
    conditions = not functions
    tree = _parse(_WORDS.sub(lambda word: word[0].lower(), text) if conditions else text, where)
    levels, parts = _size(tree)
    if levels > MOST_LEVELS or (functions and parts > MOST_PARTS):
        limit = f"{MOST_LEVELS} levels deep" if levels > MOST_LEVELS else f"of {MOST_PARTS} parts"
        raise SwflowError(f"{where}: too long or too deeply nested; simplify it to at most {limit}")
    known, callable_names = None if names is None else sorted(names), sorted(functions)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    listed = _check_membership(tree, where) if conditions else set()
    allowed = (*_NODES, *_BINARY, *_COMPARISONS, *_UNARY, *(_MEMBERSHIP if conditions else (ast.Call, ast.IfExp)))
    for node in ast.walk(tree):
        position = f"at position {getattr(node, 'col_offset', 0) + 1}"
        if id(node) in listed:
            continue
        function = node.func if isinstance(node, ast.Call) else None
        if function and (not isinstance(function, ast.Name) or function.id not in callable_names):
            can = f"known functions are {', '.join(callable_names)}" if callable_names else "functions are not allowed"
            raise SwflowError(f"{where}: cannot call {_short(ast.unparse(function))} {position}; {can}")
        if isinstance(node, ast.Call) and node.keywords:
            raise SwflowError(f"{where}: give arguments by position {position}")
        if isinstance(node, ast.Name) and id(node) not in called and known is not None and node.id not in known:
            raise SwflowError(f"{where}: unknown name {node.id!r} {position}{suggest(node.id, known)}")
        if isinstance(node, ast.Constant):
            _check_number(node.value, f"{where}: ", position)
        if not isinstance(node, allowed):
            raise SwflowError(
                f"{where}: {type(node).__name__} {position} is not allowed; use numbers, names, "
                "+ - * / // % **, comparisons, and, or, not" + (", in (1, 2), is null" if conditions else "")
            )
    return tree.body


def _short(text: str) -> str:
    """Quote a text in one line, shortened if long."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def _parse(text: str, where: str) -> ast.Expression:
    """
    Parse a text with Python's grammar; raise `SwflowError` for every invalid text.

    The words of Python's errors change between its versions. They are added in parentheses only.
    """
    if _depth(text) > MOST_LEVELS:
        raise SwflowError(f"{where}: too deeply nested; simplify it")
    long = _LONG_NUMBER.search(text)
    if long:
        raise SwflowError(f"{where}: {_TOO_LARGE.format(position=f'at position {long.start() + 1}')}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise SwflowError(f"{where}: {_problem(text, error)}") from None
    except (RecursionError, MemoryError):
        raise SwflowError(f"{where}: too deeply nested; simplify it") from None


def _problem(text: str, error: SyntaxError | ValueError) -> str:
    """Return why and where Python's grammar refuses a text."""
    if not text.strip():
        return "empty"
    end = len(text.strip()) + 1
    offset = error.offset if isinstance(error, SyntaxError) else None
    equals = "; compare with ==" if _SINGLE_EQUALS.search(text) else ""
    if offset is not None and not 0 < offset < end:
        return f"incomplete at position {end}, after {_cut(text.split()[-1])!r}{equals}"
    position = f" at position {offset}" if offset else ""
    words = (error.msg if isinstance(error, SyntaxError) else str(error)).splitlines()[0]
    return f"cannot be parsed{position} ({_cut(words)}){equals}"


def _depth(text: str) -> int:
    """Return how deeply the parentheses of a text are nested."""
    return max(accumulate((char in "([{") - (char in ")]}") for char in text), default=0)


def _size(tree: ast.AST) -> tuple[int, int]:
    """Return the depth of a tree and its number of nodes, without recursion; lists count as one node."""
    levels = parts = 0
    below: list[ast.AST] = [tree]
    while below:
        levels += 1
        parts += len(below)
        below = [child for node in below for child in ast.iter_child_nodes(node) if not isinstance(node, _LISTS)]
    return levels, parts


def _check_number(value: Any, where: str, position: str) -> None:
    """Raise an error unless a constant is a number in the range of floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SwflowError(
            f"{where}{_short(value) if isinstance(value, str) else _cut(repr(value))} {position} is not a number"
        )
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise SwflowError(f"{where}{_TOO_LARGE.format(position=position)}")


def _check_membership(tree: ast.AST, where: str) -> set[int]:
    """Check ``in`` and ``is`` comparisons; return the ids of the nodes that are only valid to the right of one."""
    listed: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not any(isinstance(op, _MEMBERSHIP) for op in node.ops):
            continue
        position = f"at position {node.col_offset + 1}"
        right = node.comparators[0]
        if len(node.ops) > 1:
            raise SwflowError(f"{where}: in and is cannot be chained {position}; join two comparisons by and")
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            for item in right.elts if isinstance(right, _LISTS) else [right]:
                number = item.operand if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub) else item
                if not isinstance(number, ast.Constant):
                    raise SwflowError(f"{where}: write numbers after in, as in: status in (0, 5) {position}")
                _check_number(number.value, f"{where}: ", position)
        elif not (isinstance(right, ast.Name) and right.id == "null"):
            raise SwflowError(f"{where}: only null can follow is {position}; compare numbers with == and !=")
        listed.update(id(part) for part in ast.walk(right))
    return listed


def _evaluate(tree: ast.expr, columns: Mapping[str, pl.Series]) -> pl.Series:
    """Evaluate a parsed condition, or a part of it; unknown values are null, and constants have one row."""
    match tree:
        case ast.Constant(value=number):
            return _constant(number)
        case ast.Name(id=name):
            return columns[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return _constant(-number)
        case ast.UnaryOp(op=op, operand=operand):
            value = _evaluate(operand, columns)
            return ~value if isinstance(op, ast.Not) else -value.cast(pl.Float64) if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return _arithmetic(op, _evaluate(left, columns), _evaluate(right, columns))
        case ast.BoolOp(op=op, values=values):
            join = operator.and_ if isinstance(op, ast.And) else operator.or_
            return functools.reduce(join, (_evaluate(value, columns) for value in values))
        case ast.Compare(ops=[ast.Is() | ast.IsNot() as op], left=left):
            value = _evaluate(left, columns)
            return value.is_null() if isinstance(op, ast.Is) else value.is_not_null()
        case ast.Compare(ops=[ast.In() | ast.NotIn() as op], left=left, comparators=[right]):
            items = right.elts if isinstance(right, _LISTS) else [right]
            value = _evaluate(left, columns)
            equal = (value == _constant(ast.literal_eval(item)) for item in items)
            found = functools.reduce(operator.or_, equal, value != value)
            return found if isinstance(op, ast.In) else ~found
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            terms = [_evaluate(term, columns) for term in (left, *comparators)]
            links = (_COMPARISONS[type(op)](*pair) for op, pair in zip(ops, pairwise(terms), strict=True))
            return functools.reduce(operator.and_, links)
    raise AssertionError(f"unparsed node {tree!r}")


def _constant(number: Any) -> pl.Series:
    """Return a column of one row: a whole number if 64 bits hold it."""
    whole = isinstance(number, int) and abs(number) < 2**63
    return pl.Series([number if whole else float(number)], dtype=pl.Int64 if whole else pl.Float64)


def _arithmetic(op: ast.operator, left: pl.Series, right: pl.Series) -> pl.Series:
    """Compute with floats as Python does; results that are not finite are unknown."""
    a, b = np.broadcast_arrays(left.cast(pl.Float64).to_numpy(), right.cast(pl.Float64).to_numpy())
    if isinstance(op, ast.Pow):
        value = np.fromiter(map(_power, a.tolist(), b.tolist()), np.float64, a.size)
    else:
        with np.errstate(all="ignore"):
            value = _BINARY[type(op)](a, b)
    return _finite(pl.Series(np.where(np.isnan(a) | np.isnan(b), np.nan, value)))  # pow(nan, 0) is 1


def _power(base: float, exponent: float) -> float:
    """Return Python's power: NumPy's can differ in the last bit."""
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        return math.nan


def _finite(values: pl.Series) -> pl.Series:
    """Replace infinity and NaN by null."""
    return values.set(~values.is_finite(), None) if values.dtype.is_float() else values


def _require_kinds(tree: ast.expr, flags: set[str], where: str) -> None:
    """Raise an error for a number in place of a condition, or a condition in place of a number."""

    def check(node: ast.expr, wanted: bool) -> None:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner, is_condition = [(operand, True)], True
            case ast.BoolOp(values=values):
                inner, is_condition = [(value, True) for value in values], True
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], left=ast.Name()):
                inner, is_condition = [], True
            case ast.Compare(ops=[op, *_], left=left, comparators=comparators):
                right = [] if isinstance(op, _MEMBERSHIP) else comparators
                inner, is_condition = [(term, False) for term in (left, *right)], True
            case ast.UnaryOp(operand=operand):
                inner, is_condition = [(operand, False)], False
            case ast.BinOp(left=left, right=right):
                inner, is_condition = [(left, False), (right, False)], False
            case _:
                inner, is_condition = [], isinstance(node, ast.Name) and node.id in flags
        if is_condition != wanted:
            number = "a number, not a condition; compare it, as in: user_id == 50"
            part = "a condition, not a number; join conditions by and, or, not"
            found = f"{_cut(ast.unparse(node))} at position {node.col_offset + 1}"
            raise SwflowError(f"{where}: {found} is {number if wanted else part}")
        for part_of, kind in inner:
            check(part_of, kind)

    check(tree, True)


def check_condition(text: str, where: str, names: Iterable[str] | Mapping[str, pl.DataType] | None = None) -> ast.expr:
    """
    Parse a condition without a table; see `condition`.

    ``names`` are the permitted columns. With a mapping to types, boolean columns are conditions themselves, and columns
    that are neither numeric nor boolean are rejected. By default, any name is accepted as a number.
    """
    flags = set()
    if isinstance(names, Mapping):
        flags = {name for name, dtype in names.items() if dtype == pl.Boolean}
        names = [name for name, dtype in names.items() if name in flags or dtype.is_numeric()]
    tree = parse_expression(text, names, where)
    if names is None:  # columns added by runs and steps can be boolean, such as `killed`
        flags = {node.id for node in _alone(tree)} - JOB_COLUMNS.keys()
    _require_kinds(tree, flags, f"{where}: {_short(text)}")
    return tree


def _alone(tree: ast.expr) -> Iterable[ast.Name]:
    """Return the names in positions of conditions."""
    match tree:
        case ast.Name():
            yield tree
        case ast.BoolOp(values=values):
            for value in values:
                yield from _alone(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _alone(operand)


def names_in(tree: ast.expr) -> set[str]:
    """Return the columns that a parsed condition uses."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found - {"null"}


def condition(text: str, names: Iterable[str] | Mapping[str, pl.DataType], where: str) -> pl.Expr:
    """
    Convert a condition on columns to a boolean expression; rows in which it is unknown (null) do not fulfil it.

    The module's docstring describes the syntax; ``names`` are the permitted columns, as in `check_condition`, and
    ``where`` is the config key or option.

    Examples
    --------
    >>> jobs = pl.DataFrame({"user_id": [50, 50, None], "job_id": [1, 9, 2]})
    >>> jobs.filter(condition("user_id == 50 and job_id <= 5", jobs.schema, "--drop")).height
    1
    """
    tree = check_condition(text, where, names)
    used = sorted(names_in(tree))
    if not used:
        return pl.lit(_evaluate(tree, {}).fill_null(False).item())
    return pl.struct(used).map_batches(lambda rows: fulfilled(tree, rows.struct.unnest()), return_dtype=pl.Boolean())


def fulfilled(tree: ast.expr, table: pl.DataFrame) -> pl.Series:
    """Return which rows of a table fulfil a condition that `check_condition` parsed."""
    found = _evaluate(tree, {name: _finite(table[name]) for name in names_in(tree)}).fill_null(False)
    return found if len(found) == table.height else found.new_from_index(0, table.height)
