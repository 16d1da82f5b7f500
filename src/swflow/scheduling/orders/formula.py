"""Formulas of orders and penalties: parsed by a whitelist of syntax, and compiled for the kernels."""

import ast
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from swflow.compiled.kernel import Callback, interpreted
from swflow.errors import SwflowError, suggest
from swflow.jobs.conditions import parse_expression
from swflow.scheduling.orders.vocabulary import FUNCTIONS, MOST_NAMED, ORDERS, PARAMETERS, VARIABLES


class _WithFloats(ast.NodeTransformer):
    """Replace every number by a float, so that ``** 3`` is the same power everywhere; true is 1 and false is 0."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(float(node.value))  # type: ignore[arg-type]

    def visit_Compare(self, node: ast.Compare | ast.UnaryOp) -> ast.IfExp:
        self.generic_visit(node)
        return ast.IfExp(node, ast.Constant(1.0), ast.Constant(0.0))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return self.visit_Compare(node) if isinstance(node.op, ast.Not) else self.generic_visit(node)


class _WithNumPyFloats(ast.NodeTransformer):
    """Replace every float by one of NumPy, so that a division by zero is infinite in interpreted mode, too."""

    def visit_Constant(self, node: ast.Constant) -> ast.Call:
        return ast.Call(ast.Name("float64", ast.Load()), [node], [])


def parsed(text: str, option: str, resources: Sequence[str] | None = ()) -> tuple[ast.expr, frozenset[str]]:
    """
    Parse a formula or a named order; return its tree and the variables that it mentions.

    Errors name ``option`` and the position. ``resources`` are those that the formula may mention; None if they are
    unknown yet: any name that resembles no variable.

    Examples
    --------
    >>> parsed("-wiat", "order")
    Traceback (most recent call last):
    swflow.errors.SwflowError: order: '-wiat': unknown name 'wiat' at position 2; did you mean 'wait'?
    """
    if text in ORDERS:
        text = ORDERS[text].formula
    elif text.replace("-", "").isalnum() and text[:1].isalpha() and text not in (*VARIABLES, *(resources or ())):
        known = [*ORDERS, *VARIABLES] if text.isidentifier() else list(ORDERS)
        raise SwflowError(f"{option}: unknown order {text!r}{suggest(text, known)}; or write a formula")
    variables = [*VARIABLES, *(_unknown_names(text, option) if resources is None else resources)]
    tree = _parsed_formula(text, variables, option)
    return tree, frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in variables)


def _unknown_names(text: str, option: str) -> set[str]:
    """Return the names in a formula that may be those of resources."""
    tree = parse_expression(text, None, option, FUNCTIONS)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {*VARIABLES, *FUNCTIONS}
    return {name for name in names if not name.startswith("_") and "did you mean" not in suggest(name, VARIABLES)}


def _parsed_formula(text: str, variables: Sequence[str], option: str) -> ast.expr:
    """Parse an expression, and check how many arguments its functions have."""
    tree = parse_expression(text, variables, option, FUNCTIONS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if len(node.args) < 2 if name in ("min", "max") else len(node.args) != 1:
                raise SwflowError(
                    f"{option}: {text!r}: {name} has a wrong number of arguments at position {node.col_offset + 1}"
                )
    return tree


def compile_formula(text: str, option: str = "order", resources: tuple[str, ...] = ()) -> Callback:
    """
    Compile a formula, or a named order, to a function of `swflow.scheduling.orders.vocabulary.PARAMETERS`.

    It is an expression of variables, ``resources`` (at most `MOST_NAMED`), numbers, functions, arithmetic, comparisons
    and ``a if b else c``; a division by zero is infinite. Errors name ``option``.

    Raises
    ------
    SwflowError
        If it is no formula; the message has the position of the error.

    Examples
    --------
    >>> formula = compile_formula("-(wait / estimate) ** 3 * processors")
    >>> formula(30, 10, 20, 4, *[0] * 11)
    -4.0
    """
    tree, _ = parsed(text, option, resources)
    first = len(PARAMETERS) - MOST_NAMED
    parameters = (*PARAMETERS[:first], *resources, *PARAMETERS[first + len(resources) :])
    label, body = f"<{option}: {text}>", ast.unparse(tree)
    return _compiled(body, label, parameters, "    wait = now - submit_time\n", interpreted())


def numpy_text(tree: ast.expr) -> str:
    """Return a formula without functions as an expression of arrays and of ``float64``."""
    return ast.unparse(_WithNumPyFloats().visit(_WithFloats().visit(tree)))


@cache
def _compiled(formula: str, label: str, parameters: tuple[str, ...], first: str, plain: bool) -> Callback:
    """Compile a function whose body is the line ``first`` and a formula; ``plain``: for interpreted mode."""
    tree = _WithFloats().visit(ast.parse(formula, mode="eval").body)
    body = ast.unparse(_WithNumPyFloats().visit(tree) if plain else tree)
    # The text contains nothing but arithmetic, since it is built of whitelisted nodes only.
    source = f"from math import *\n\n\ndef formula({', '.join(parameters)}):\n{first}    return float({body})\n"
    scope: dict[str, Any] = {"__name__": "math"}  # the module whose names it uses, where numba looks for them
    exec(compile(source, label, "exec"), scope)
    if plain:
        scope |= {"float64": np.float64} | {name: _total(function) for name, function in FUNCTIONS.items()}
    return Callback(scope["formula"], len(parameters), source)


def _total(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function that, as in compiled code, gives infinity or NaN where Python raises an error."""

    def of_floats(*values: float) -> np.float64:
        try:
            return np.float64(function(*values))
        except ValueError:
            return np.float64(-math.inf if values[0] == 0 else math.nan)
        except OverflowError:
            return np.float64(math.inf)

    return of_floats


#: The named penalties of an overloaded node; ``printed`` charges a second for every overloaded shadow besides.
PENALTIES = dict.fromkeys(("linear", "printed", "forgets-shadows", "at-start"), "max(usage / capacity, 1) - 1")


def check_penalty(penalty: str) -> None:
    """
    Raise an error unless a text is a named penalty or a formula of ``usage`` and ``capacity``.

    Examples
    --------
    >>> check_penalty("used / 2")
    Traceback (most recent call last):
    swflow.errors.SwflowError: penalty: 'used / 2': unknown name 'used' at position 1; did you mean 'usage'?
    """
    if penalty not in PENALTIES:
        _parsed_formula(penalty, ("usage", "capacity"), "penalty")


def compile_penalty(penalty: str) -> str | Callback:
    """
    Compile the penalty of an overloaded node for the kernels: the fraction by which the node prolongs its jobs.

    It is a name of `PENALTIES`, which is returned, or a formula of ``usage`` (what the processes of a node demand of a
    resource) and ``capacity`` (what the node has of it).

    Examples
    --------
    >>> compile_penalty("(usage / capacity) ** 2")(3, 2)
    2.25
    """
    if penalty in PENALTIES:
        return penalty
    tree = _parsed_formula(penalty, ("usage", "capacity"), "penalty")
    return _compiled(ast.unparse(tree), f"<penalty: {penalty}>", ("usage", "capacity"), "", interpreted())
