"""Orders of the queue: the named ones, and formulas from the config compiled for the kernels."""

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from swflow.errors import SwflowError, suggest
from swflow.expressions import parse_expression
from swflow.scheduling.options import LOG, ORDERS
from swflow.scheduling.own import is_own
from swflow.scheduling.own_order import OwnOrder, own_function

#: The formulas of the orders that have names.
NAMED: dict[str, str] = {name: order.formula for name, order in ORDERS.items()}

#: What a formula may use: seconds, processors, and numbers of the log (NaN where it does not know them).
VARIABLES = (
    "now", "submit_time", "wait", "estimate", "processors",
    "user_id", "group_id", "queue_id", "executable_id", "job_id",
    "partition_id", "user_usage", "group_usage", "user_share", "group_share", "machine_processors",
)  # fmt: skip

#: The functions that a formula may call; `min` and `max` take two arguments or more, the others one.
FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "abs": abs, "log": math.log, "log2": math.log2, "log10": math.log10, "sqrt": math.sqrt,
    "exp": math.exp,
}  # fmt: skip

#: Those of them that change while a job waits, or from machine to machine.
CHANGING = ("now", "wait", "user_usage", "group_usage", "machine_processors")

#: The arguments of a key function, as the kernels pass them; `wait` follows from the first two.
PARAMETERS = (
    "now",
    "submit_time",
    "estimate",
    "processors",
    "user_id",
    "group_id",
    "queue_id",
    "executable_id",
    "job_id",
)

#: What a key function takes besides if its formula mentions any of these: whose the job is, and what they have used.
OF_OWNERS = ("partition_id", "user_usage", "group_usage", "user_share", "group_share", "machine_processors")


@dataclass(frozen=True)
class Formula:
    """
    A formula, compiled.

    Parameters
    ----------
    text : str
        As it was written.
    function : numba cfunc
        Its value as a function of nine floats: now, submit time, estimate, processors, user, group, queue,
        executable, job id; if it mentions any of `OF_OWNERS`, these follow.
    names : frozenset of str
        The variables that it mentions.
    """

    text: str
    function: Any
    names: frozenset[str]

    @property
    def changes(self) -> bool:
        """Whether its value changes while a job waits, or from machine to machine."""
        return not self.names.isdisjoint(CHANGING)

    @property
    def knows_owners(self) -> bool:
        """Whether it mentions any of `OF_OWNERS`."""
        return not self.names.isdisjoint(OF_OWNERS)


class OfOwners:
    """
    A compiled key function that takes `OF_OWNERS` besides, which kernels tell by its address: it is negative.

    Parameters
    ----------
    function : numba cfunc or ctypes function
        The function, kept as long as this.
    address : int
        Where its code is.
    """

    def __init__(self, function: Any, address: int) -> None:
        self.function, self.address = function, -address


class _WithFloats(ast.NodeTransformer):
    """Make every number a float, so that ``** 3`` is the same power everywhere; true is 1 and false is 0."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(float(node.value))  # type: ignore[arg-type]

    def visit_Compare(self, node: ast.Compare) -> ast.IfExp:
        return self._number(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return self._number(node) if isinstance(node.op, ast.Not) else self._inside(node)

    def _inside(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return node

    def _number(self, node: ast.expr) -> ast.IfExp:
        return ast.IfExp(self._inside(node), ast.Constant(1.0), ast.Constant(0.0))


def check_order(order: str, option: str) -> None:
    """
    Raise an error unless a text is a named order, a formula, or names a function of the user's.

    Parameters
    ----------
    order : str
        Such as ``sjf``, ``-(wait / estimate) ** 3 * processors`` or ``mine:favour``.
    option : str
        The option that it is for, for the error.

    Raises
    ------
    SwflowError
        That names the fault and its position.

    Examples
    --------
    >>> check_order("-wiat", "order")
    Traceback (most recent call last):
    swflow.errors.SwflowError: order: '-wiat': unknown name 'wiat' at position 2; did you mean 'wait'?
    """
    if is_own(order):
        own_function(order, option)
    elif order not in NAMED:
        _parse(order, option)


def _parse(text: str, option: str) -> ast.expr:
    if text.replace("-", "").isalnum() and text[:1].isalpha() and text not in VARIABLES:
        known = [*NAMED, *VARIABLES] if text.isidentifier() else list(NAMED)
        raise SwflowError(f"{option}: unknown order {text!r}{suggest(text, known)}; or write a formula")
    return _parse_formula(text, VARIABLES, option)


def _parse_formula(text: str, variables: Sequence[str], option: str) -> ast.expr:
    """Parse an expression whose functions have as many arguments as they take."""
    tree = parse_expression(text, variables, option, FUNCTIONS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if len(node.args) < 2 if name in ("min", "max") else len(node.args) != 1:
                raise SwflowError(
                    f"{option}: {text!r}: {name} has a wrong number of arguments at position {node.col_offset + 1}"
                )
    return tree


def parsed(text: str, option: str) -> tuple[ast.expr, frozenset[str]]:
    """Return the tree of a formula, or of a named order, and the variables that it mentions."""
    tree = _parse(NAMED.get(text, text), option)
    return tree, frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in VARIABLES)


def mentioned(order: Any) -> frozenset[str]:
    """Return the variables that an order mentions; of a function given in Python it is not known, and none."""
    if not isinstance(order, str) or order == LOG:
        return frozenset()
    return frozenset(own_function(order, "order")[1]) if is_own(order) else parsed(order, "order")[1]


@cache
def compile_formula(text: str, option: str = "order") -> Formula:
    """
    Compile a formula, or a named order, for the kernels.

    Parameters
    ----------
    text : str
        An expression of `VARIABLES`, numbers, `FUNCTIONS`, arithmetic, comparisons and ``a if b else c``. The
        queue is served by its smallest value first. A division by zero is infinite.
    option : str
        The option that it is for, for errors.

    Returns
    -------
    Formula

    Raises
    ------
    SwflowError
        If it is no formula; the message has the position of the fault.

    Examples
    --------
    >>> formula = compile_formula("-(wait / estimate) ** 3 * processors")
    >>> formula.changes, formula.function.ctypes(30, 10, 20, 4, 0, 0, 0, 0, 0)
    (True, -4.0)
    """
    from swflow.scheduling.engine.queue import key_function, key_function_of_owners

    tree, names = parsed(text, option)
    wide = not names.isdisjoint(OF_OWNERS)
    parameters = PARAMETERS + (OF_OWNERS if wide else ())
    compiler = key_function_of_owners if wide else key_function
    function = _compiled(text, tree, option, parameters, "    wait = now - submit_time\n", compiler)
    return Formula(text, function, names)


def _compiled(
    text: str, tree: ast.expr, option: str, parameters: Sequence[str], first: str, compiler: Callable[..., Any]
) -> Any:
    """Make a function of a formula and compile it; ``first`` is what its body begins with."""
    body = ast.unparse(_WithFloats().visit(tree))
    # The text is built of whitelisted nodes only, so that there is nothing in it but arithmetic.
    source = f"from math import *\n\n\ndef formula({', '.join(parameters)}):\n{first}    return float({body})\n"
    from swflow.compilation import source_file  # which imports numba

    file = source_file(source)
    scope: dict[str, Any] = {"__name__": "math"}  # the module whose names it uses, where numba looks for them
    exec(compile(source, str(file or f"<{option}: {text}>"), "exec"), scope)
    return compiler(scope["formula"], file is not None)


#: The named penalties of an overloaded node; ``printed`` charges a second for every overloaded shadow besides.
PENALTIES = dict.fromkeys(("linear", "printed", "forgets-shadows"), "max(usage / capacity, 1) - 1")


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
        _parse_formula(penalty, ("usage", "capacity"), "penalty")


@cache
def compile_penalty(penalty: str) -> Any:
    """
    Compile the penalty of an overloaded node for the kernels.

    Parameters
    ----------
    penalty : str
        A name of `PENALTIES`, which stays as it is, or a formula of ``usage`` (what the processes of a node ask of a
        resource) and ``capacity`` (what the node has of it): the fraction by which it prolongs the jobs there.

    Returns
    -------
    str or numba cfunc

    Raises
    ------
    SwflowError
        If it is no formula; the message has the position of the fault.

    Examples
    --------
    >>> compile_penalty("(usage / capacity) ** 2").ctypes(3, 2)
    2.25
    """
    if penalty in PENALTIES:
        return penalty
    from swflow.scheduling.machine.shared import penalty_function

    tree = _parse_formula(penalty, ("usage", "capacity"), "penalty")
    return _compiled(penalty, tree, "penalty", ("usage", "capacity"), "", penalty_function)


def kernel_order(
    order: str | Callable[..., float],
    option: str,
    submit: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    attributes: np.ndarray | None,
    predict: bool,
    owners: np.ndarray | None = None,
    moves: bool = False,
) -> Any:
    """
    Return an order in the form that the kernels take.

    Parameters
    ----------
    order : str or callable
        A name, a formula, ``module:function``, or a function of nine floats.
    option : str
        The option that it is for, for errors.
    submit, planned : float64 array of shape (jobs,)
        Submit times and planned run times, seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job.
    attributes : float64 array of shape (jobs, 5), optional
        User, group, queue, executable and job id, NaN where unknown; without them all are NaN.
    predict : bool
        Whether planned run times are known only when a job is submitted.
    owners : array of `swflow.scheduling.engine.usage.OWNER` of shape (jobs,), optional
        Whose the jobs are, for formulas that mention any of `OF_OWNERS`.
    moves : bool
        Whether submit times are.

    Returns
    -------
    str, array or compiled function
        ``fcfs``; the keys, where they do not change; else the function, with its address.

    Raises
    ------
    SwflowError
        If it is no order, or mentions owners that are not given.
    """
    if order == "fcfs":
        return order
    if not isinstance(order, str):
        from swflow.scheduling.engine.queue import key_function

        return key_function(getattr(order, "py_func", order))
    late = {*CHANGING, *(["estimate"] if predict else []), *(["submit_time"] if moves else [])}
    if is_own(order):
        own = OwnOrder(order, option)
        _require_owners(own.names, owners, option)
        if late.isdisjoint(own.names):
            return own.keys(submit, planned, processors.astype(np.float64), _attributes_of(submit, attributes), owners)
        return own
    tree, names = parsed(order, option)
    _require_owners(names, owners, option)
    wide = not names.isdisjoint(OF_OWNERS)
    if not late.isdisjoint(names):
        function = compile_formula(order, option).function
        return OfOwners(function, function.address) if wide else function
    if wide and owners is not None:
        from swflow.scheduling.engine.usage import keys_of_owners

        address = compile_formula(order, option).function.address
        return keys_of_owners(address, submit, planned, processors, _attributes_of(submit, attributes), owners)
    columns: dict[str, Any] = {"submit_time": submit, "estimate": planned, "processors": processors.astype(np.float64)}
    if names <= columns.keys():
        try:
            return np.broadcast_to(_arithmetic(tree, columns), submit.shape).astype(np.float64)
        except _NotPlainError:
            pass
    from swflow.scheduling.engine.queue import keys_of

    function = compile_formula(order, option).function
    return keys_of(function, submit, planned, columns["processors"], _attributes_of(submit, attributes))


def _attributes_of(submit: np.ndarray, attributes: np.ndarray | None) -> np.ndarray:
    return np.full((submit.size, 5), np.nan) if attributes is None else attributes


def _require_owners(names: Iterable[str], owners: np.ndarray | None, option: str) -> None:
    """Raise an error if an order mentions owners that are not known."""
    mentioned = sorted(set(OF_OWNERS).intersection(names))
    if mentioned and owners is None:
        raise SwflowError(f"{option}: {mentioned[0]} is known only where processors are counted; use allocation count")


class _NotPlainError(Exception):
    """There is more in a formula than the four basic operations, on which all machines agree to the last bit."""


def _arithmetic(tree: ast.expr, columns: Mapping[str, Any]) -> Any:
    """Return the value of a formula for all jobs at once, without compiling it."""
    match tree:
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return columns[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_arithmetic(operand, columns)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            with np.errstate(all="ignore"):
                return _OPERATIONS[type(op)](_arithmetic(left, columns), _arithmetic(right, columns))
    raise _NotPlainError


_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
}  # fmt: skip
