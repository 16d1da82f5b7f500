"""Orders as the engine takes them: static keys, one per job, or a formula that is evaluated in every pass."""

import ast
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import Callback, Handle, Kernel, call_formula, interpreted
from swflow.errors import SwflowError
from swflow.scheduling.orders.formula import compile_formula, numpy_text, parsed
from swflow.scheduling.orders.function import PluginOrder, plugin_function, with_all_parameters
from swflow.scheduling.orders.vocabulary import CHANGING, LOG, MOST_NAMED, OF_ACCOUNTS, PARAMETERS, PLAIN
from swflow.scheduling.plugins.source import is_own
from swflow.scheduling.state.accounts import Owners
from swflow.scheduling.state.items import Items, Jobs, Shapes
from swflow.scheduling.state.search import demand_of
from swflow.scheduling.state.variables import Variables


@dataclass(frozen=True)
class Order:
    """An order of the queue. Without keys and formula it is the order of arrival."""

    keys: np.ndarray | None = None  # the key of each item; the smallest is served first, ties by index
    formula: Callback | None = None  # the key as a function of `PARAMETERS`, if it changes while a job waits
    plugin: PluginOrder | None = None  # the user's function behind it; its errors are raised after the simulation
    is_plain: bool = False  # whether the formula mentions only `PLAIN` variables

    @property
    def address(self) -> int:
        """The address of the formula, 0 without one."""
        return 0 if self.formula is None else self.formula.address

    @property
    def is_arrival(self) -> bool:
        """Whether it is the order of arrival."""
        return self.keys is None and self.formula is None


#: First come, first served.
ARRIVAL = Order()


class JobColumns(NamedTuple):
    """The data of all items that a static key may depend on. Unknown attributes and owners are one row of NaN."""

    items: Items
    attributes: np.ndarray  # (items, 6): as `Jobs` has them
    owners: np.ndarray  # (items, 3): as `swflow.scheduling.state.accounts.Owners.variables` has them
    slots: np.ndarray  # (MOST_NAMED,): the columns of the demands that formulas receive, -1 for none


def job_columns(
    jobs: Jobs, shapes: Shapes | None, owners: Owners | None = None, slots: Collection[int] = ()
) -> JobColumns:
    """Return the data of the jobs, or of their shapes if these are chosen at submission."""
    none = np.empty(0, np.int64)
    items = Items(jobs.submit, jobs.run, jobs.planned, jobs.processors, none, none)
    if shapes is not None:
        job = np.repeat(np.arange(jobs.submit.size), np.diff(shapes.first))
        items = Items(jobs.submit[job], shapes.run, shapes.planned, shapes.processors, shapes.first, job)
    if jobs.demands is not None:
        items = items._replace(demands=items.of_jobs(jobs.demands))
    return JobColumns(
        items,
        np.full((1, 6), np.nan) if jobs.attributes is None else items.of_jobs(jobs.attributes),
        np.full((1, 3), np.nan) if owners is None else items.of_jobs(owners.variables),
        np.array([*slots, *[-1] * (MOST_NAMED - len(slots))]),
    )


def check_order(order: str, option: str) -> frozenset[str]:
    """Return the variables of a named order, a formula, or a function of the user's; errors name ``option``."""
    return frozenset(plugin_function(order, option)[1]) if is_own(order) else _names_in(order, option)


@cache
def _names_in(formula: str, option: str) -> frozenset[str]:
    """Return the variables and possible resources in a formula; every run of a sweep needs them several times."""
    return parsed(formula, option, None)[1]


def mentioned(order: Any) -> frozenset[str]:
    """Return the variables that an order mentions; none of a Python function, whose variables are unknown."""
    return check_order(order, "order") if isinstance(order, str) and order != LOG else frozenset()


def key_function(function: Callable[..., float]) -> Callback:
    """
    Compile a Python function of nine floats as a formula.

    Parameters
    ----------
    function : callable
        A plain or jitted function that numba can compile, of: now, submit time, planned run time, processors, user,
        group, queue, executable, job id. Its value is the key; NaN counts as infinity. A division by zero gives
        infinity or NaN.

    Examples
    --------
    >>> key = key_function(lambda now, submit, planned, processors, user, group, queue, executable, job: -planned)
    >>> key(0, 0, 60, 1)
    -60.0
    """
    inner = getattr(function, "py_func", function)
    if not interpreted():
        import numba

        inner = numba.njit(error_model="numpy")(inner)
    return Callback(with_all_parameters(inner, PARAMETERS[:9]), len(PARAMETERS))


def resolved_orders(
    orders: Iterable[tuple[Any, Any]], where: str, columns: JobColumns, resources: tuple[str, ...], late: frozenset[str]
) -> list[tuple[Order, Order]]:
    """
    Return the order and the backfill order of each queue as the engine takes them; equal ones are resolved once.

    Errors begin with ``where``. The other arguments are those of `resolved_order`.
    """
    known: dict[Any, Order] = {}

    def resolve(order: Any, option: str) -> Order:
        if order not in known:
            known[order] = resolved_order(order, where + option, columns, resources, late)
        return known[order]

    return [(resolve(order, "order"), resolve(second, "backfill_order")) for order, second in orders]


def resolved_order(
    order: Any, option: str, columns: JobColumns, resources: tuple[str, ...], late: frozenset[str]
) -> Order:
    """
    Return an order as the engine takes it; errors name ``option``.

    ``resources`` are those of the slots; ``late`` are variables that are known only during the simulation, besides
    those that change anyway.

    Raises
    ------
    SwflowError
        If it is no order, or mentions job ownership that is unknown.
    """
    if order == "fcfs":
        return ARRIVAL
    if not isinstance(order, str):
        return Order(formula=key_function(order))
    plugin = PluginOrder(order, option) if is_own(order) else None
    tree, names = (None, frozenset(plugin.names)) if plugin else parsed(order, option, resources)
    of_accounts = names.intersection(OF_ACCOUNTS)
    if of_accounts and np.isnan(columns.owners[:1, 1]).any():
        raise SwflowError(f"{option}: {min(of_accounts)} is unknown: the problem has no accounts; give it some")
    items, is_static = columns.items, names.isdisjoint(late.union(CHANGING))
    is_simple = names <= {"submit_time", "estimate", "processors"}
    if tree and is_static and is_simple and all(isinstance(node, _PLAIN) for node in ast.walk(tree)):
        known = {"submit_time": items.submit, "estimate": items.planned, "processors": items.processors * 1.0}
        with np.errstate(all="ignore"):  # evaluated at once, without compiling it
            keys = eval(numpy_text(tree), {"float64": np.float64}, known)
        return Order(np.broadcast_to(keys, items.submit.shape).astype(np.float64))
    function = plugin.function if plugin else compile_formula(order, option, resources)
    if not is_static:
        return Order(formula=function, plugin=plugin, is_plain=names <= PLAIN)
    static = _Keys(np.empty(items.submit.size))
    _FILL_KEYS(function.address, Handle([columns]), Handle([static]))
    if plugin is not None:
        plugin.require_success()
    return Order(static.values)


class _Keys(NamedTuple):
    values: np.ndarray


def _fill_keys(formula: int, columns: JobColumns, keys: _Keys) -> int:
    items = columns.items
    for item in range(keys.values.size):
        known = columns.attributes[min(item, columns.attributes.shape[0] - 1)]
        owner = columns.owners[min(item, columns.owners.shape[0] - 1)]
        submit = items.submit[item]
        # A static key mentions no variable that changes while a job waits, and none of the machine.
        variables = Variables(
            now=submit,
            submit_time=submit,
            estimate=items.planned[item],
            processors=float(items.processors[item]),
            user_id=known[0],
            group_id=known[1],
            queue_id=known[2],
            executable_id=known[3],
            job_id=known[4],
            partition_id=owner[0],
            user_usage=0.0,
            group_usage=0.0,
            user_share=owner[1],
            group_share=owner[2],
            fair_tree=0.0,
            association_usage=0.0,
            machine_processors=0.0,
            dominant_share=0.0,
            requested_nodes=known[5],
            resource_1=demand_of(items.demands, item, columns.slots[0]),
            resource_2=demand_of(items.demands, item, columns.slots[1]),
            resource_3=demand_of(items.demands, item, columns.slots[2]),
            resource_4=demand_of(items.demands, item, columns.slots[3]),
        )
        keys.values[item] = call_formula(formula, variables)
    return 0


_FILL_KEYS = Kernel(_fill_keys)

#: The syntax of formulas on which all machines agree to the last bit: the four basic operations.
_PLAIN = (
    ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.USub, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div,
)  # fmt: skip
