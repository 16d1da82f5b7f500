"""Expressions in the config, such as ``user_id == 50``: parsed by a whitelist of syntax, never run as code."""

import ast
from collections.abc import Iterable

import polars as pl

from swflow.errors import SwflowError, suggest

_BINARY = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}
_COMPARISONS = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_UNARY = (ast.Not, ast.USub, ast.UAdd)
_NODES = (
    ast.Expression,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.BinOp,
    ast.Compare,
    ast.Name,
    ast.Load,
    ast.Constant,
)


def parse_expression(text: str, names: Iterable[str], where: str, functions: Iterable[str] = ()) -> ast.expr:
    """
    Parse an expression of numbers, names, arithmetic, comparisons, ``and``, ``or`` and ``not``.

    Parameters
    ----------
    text : str
        The expression.
    names : iterable of str
        The names that it may use.
    where : str
        The config key or option that it comes from, for the error.
    functions : iterable of str
        The functions that it may call, by position; with any, ``a if condition else b`` is allowed too.

    Returns
    -------
    ast.expr
        A tree of whitelisted nodes only.

    Raises
    ------
    SwflowError
        If the text is no such expression; the message has the position of the fault.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise SwflowError(f"{where}: {text!r}: {error.msg} at position {error.offset}") from None
    known, callable_names = sorted(names), sorted(functions)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    more_nodes = (ast.Call, ast.IfExp) if callable_names else ()
    for node in ast.walk(tree):
        position = f"at position {getattr(node, 'col_offset', 0) + 1}"
        if id(node) in called and (not isinstance(node, ast.Name) or node.id not in callable_names):
            name = ast.unparse(node)
            can = (
                f"; known functions are {', '.join(callable_names)}"
                if callable_names
                else "; functions are not allowed"
            )
            raise SwflowError(f"{where}: {text!r}: cannot call {name!r} {position}{can}")
        if isinstance(node, ast.Call) and node.keywords:
            raise SwflowError(f"{where}: {text!r}: give arguments by position {position}")
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in known:
            raise SwflowError(f"{where}: {text!r}: unknown name {node.id!r} {position}{suggest(node.id, known)}")
        if isinstance(node, ast.Constant) and (isinstance(node.value, bool) or not isinstance(node.value, int | float)):
            raise SwflowError(f"{where}: {text!r}: {node.value!r} {position} is not a number")
        allowed = (*_NODES, *_BINARY, *_COMPARISONS, *_UNARY, *more_nodes)
        if not isinstance(node, allowed):
            raise SwflowError(
                f"{where}: {text!r}: {type(node).__name__} {position} is not allowed; use numbers, names, "
                "+ - * / // % **, comparisons, and, or, not"
            )
    return tree.body


def to_polars(tree: ast.expr) -> pl.Expr:
    """Turn a parsed expression into a Polars expression over columns of the same names."""
    match tree:
        case ast.Constant(value=value):
            return pl.lit(value)
        case ast.Name(id=name):
            return pl.col(name)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~to_polars(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -to_polars(operand)
        case ast.UnaryOp(operand=operand):
            return to_polars(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](to_polars(left), to_polars(right))
        case ast.BoolOp(op=op, values=values):
            parts = [to_polars(value) for value in values]
            return pl.all_horizontal(parts) if isinstance(op, ast.And) else pl.any_horizontal(parts)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            terms = [to_polars(term) for term in (left, *comparators)]
            links = [_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, terms, terms[1:], strict=False)]
            return pl.all_horizontal(links)
    raise AssertionError(f"unparsed node {tree!r}")


def condition(text: str, names: Iterable[str], where: str) -> pl.Expr:
    """
    Parse a condition on columns; rows in which it is unknown (null) do not fulfil it.

    Parameters
    ----------
    text : str
        For example ``user_id == 50 and 24439 <= job_id <= 64542``.
    names : iterable of str
        The columns that it may use.
    where : str
        The config key or option that it comes from, for the error.

    Returns
    -------
    polars.Expr
        A boolean expression.

    Raises
    ------
    SwflowError
        If the text is not a condition.

    Examples
    --------
    >>> jobs = pl.DataFrame({"user_id": [50, 50, None], "job_id": [1, 9, 2]})
    >>> jobs.filter(condition("user_id == 50 and job_id <= 5", jobs.columns, "--drop")).height
    1
    """
    tree = parse_expression(text, names, where)
    if not isinstance(tree, ast.Compare | ast.BoolOp) and not (
        isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
    ):
        raise SwflowError(f"{where}: {text!r} is not a condition; compare something, as in: user_id == 50")
    return to_polars(tree).fill_null(False)
