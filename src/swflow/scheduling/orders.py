"""Orders of the queue: the named ones, and formulas from the config compiled for the kernels."""

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from swflow.errors import SwflowError, suggest
from swflow.expressions import parse_expression

#: The named orders and the formula that each is, smallest value first, ties by (submit time, job id).
NAMED: dict[str, str] = {
    "fcfs": "submit_time",
    "lcfs": "-submit_time",
    "sjf": "estimate",
    "ljf": "-estimate",
    "smallest-first": "processors",
    "largest-first": "-processors",
    "saf": "estimate * processors",
    "wfp3": "-(wait / estimate) ** 3 * processors",
    "unicef": "-wait / (log2(max(processors, 2)) * estimate)",
    "expansion-factor": "-(wait + estimate) / estimate",
}

#: What a formula may use: seconds, processors, and numbers of the log (NaN where it does not know them).
VARIABLES = (
    "now", "submit_time", "wait", "estimate", "processors",
    "user_id", "group_id", "queue_id", "executable_id", "job_id",
)  # fmt: skip

#: The functions that a formula may call.
FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "abs": abs, "log": math.log, "log2": math.log2, "sqrt": math.sqrt, "exp": math.exp,
}  # fmt: skip

# The arguments of a key function, as the kernels pass them; `wait` follows from the first two.
_PARAMETERS = (
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
        executable, job id.
    names : frozenset of str
        The variables that it mentions.
    """

    text: str
    function: Any
    names: frozenset[str]

    @property
    def changes(self) -> bool:
        """Whether its value changes while a job waits."""
        return not self.names.isdisjoint({"now", "wait"})


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
    Raise an error unless a text is a named order or a formula.

    Parameters
    ----------
    order : str
        Such as ``sjf`` or ``-(wait / estimate) ** 3 * processors``.
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
    if order not in NAMED:
        _parse(order, option)


def _parse(text: str, option: str) -> ast.expr:
    if text.replace("-", "").isalpha() and text not in VARIABLES and not text.startswith("-"):
        known = [*NAMED, *VARIABLES] if text.isidentifier() else list(NAMED)
        raise SwflowError(f"{option}: unknown order {text!r}{suggest(text, known)}; or write a formula")
    return parse_expression(text, VARIABLES, option, FUNCTIONS)


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
    from swflow.scheduling.queue_order import key_function

    tree = _parse(NAMED.get(text, text), option)
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in VARIABLES)
    function = _compiled(text, tree, option, _PARAMETERS, "    wait = now - submit_time\n", key_function)
    return Formula(text, function, names)


def _compiled(
    text: str, tree: ast.expr, option: str, parameters: Sequence[str], first: str, compiler: Callable[..., Any]
) -> Any:
    """Make a function of a formula and compile it; ``first`` is what its body begins with."""
    import numba

    body = ast.unparse(_WithFloats().visit(tree))
    # The text is built of whitelisted nodes only, so that there is nothing in it but arithmetic.
    source = f"def formula({', '.join(parameters)}):\n{first}    return float({body})\n"
    scope: dict[str, Any] = dict(FUNCTIONS)
    exec(compile(source, f"<{option}: {text}>", "exec"), scope)
    try:
        return compiler(scope["formula"])
    except numba.core.errors.NumbaError:
        raise SwflowError(f"{option}: {text!r}: a function has a wrong number of arguments") from None


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
        parse_expression(penalty, ("usage", "capacity"), "penalty", FUNCTIONS)


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
    from swflow.scheduling.sharing import penalty_function

    tree = parse_expression(penalty, ("usage", "capacity"), "penalty", FUNCTIONS)
    return _compiled(penalty, tree, "penalty", ("usage", "capacity"), "", penalty_function)


def kernel_order(
    order: str | Callable[..., float],
    option: str,
    submit: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    attributes: np.ndarray,
    predict: bool,
) -> Any:
    """
    Return an order in the form that the kernels take.

    Parameters
    ----------
    order : str or callable
        A name, a formula, or a function of nine floats.
    option : str
        The option that it is for, for errors.
    submit, planned : float64 array of shape (jobs,)
        Submit times and planned run times, seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job.
    attributes : float64 array of shape (jobs, 5)
        User, group, queue, executable and job id, NaN where unknown.
    predict : bool
        Whether planned run times are known only when a job is submitted.

    Returns
    -------
    str, array or numba cfunc
        ``fcfs``; the keys, where they do not change; else the function.
    """
    from swflow.scheduling.queue_order import key_function, keys_of

    if order == "fcfs":
        return order
    if not isinstance(order, str):
        return key_function(getattr(order, "py_func", order))
    formula = compile_formula(order, option)
    if formula.changes or (predict and "estimate" in formula.names):
        return order if order in NAMED else formula.function
    return keys_of(formula.function, submit, planned, processors.astype(np.float64), attributes)
