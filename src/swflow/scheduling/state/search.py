"""Search the queue: the next job that may fit, by rank, or by a formula whose value changes while jobs wait."""

import numpy as np

from swflow.compiled.kernel import call_formula
from swflow.scheduling.state.heap import pop, push
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.operations import time_of_keys, usage_of
from swflow.scheduling.state.queue import Tree, following


def queued_key(state: State, tree: Tree, item: int, now: float) -> float:
    """Return the key of a queued job by the formula of a tree."""
    submit, planned, processors = state.jobs[item].submit, state.jobs[item].planned, state.jobs[item].processors
    if state.options[0].shapes:
        planned, processors = state.shapes[item].planned, state.shapes[item].processors
    now = time_of_keys(state, now)
    if tree.is_plain:
        key = plain_key_of(tree.formula, max(now, submit), submit, planned, float(processors))
    else:
        key = _key_of_all(state, tree.formula, item, now, planned, processors)
    return np.inf if np.isnan(key) else key


def _key_of_all(state: State, formula: int, item: int, now: float, planned: float, processors: int) -> float:
    """Return the value of a formula that may mention any variable; new jobs have that of their submission."""
    options, usage = state.options[0], state.usage
    user_usage, group_usage, fair_tree, association = usage_of(state, item, now)
    dominant = processors / options.processors
    for resource in range(state.capacities.size):
        dominant = max(dominant, state.demands[item, resource] / max(state.capacities[resource], 1))
    known = state.attributes[min(item, state.attributes.shape[0] - 1)]
    owner = usage.variables[min(item, usage.variables.shape[0] - 1)]
    submit, machine = state.jobs[item].submit, float(options.processors)
    numbers = (
        max(now, submit), submit, planned, float(processors), user_usage, group_usage, fair_tree, association, machine,
        dominant,
    )  # fmt: skip
    return key_of(formula, item, numbers, known, owner, state.demands, state.slots)


def line_up(state: State, tree: Tree, now: float, narrow: int, wide: int, base: float, latest: float) -> int:
    """Collect the queued jobs that `following` finds in ``state.line``, a heap by their keys; return its size."""
    size = 0
    rank = following(tree, 0, narrow, wide, base, latest)
    while rank >= 0:
        item = tree.job_at[rank]
        size = push(state.line, size, queued_key(state, tree, item, now) if tree.formula else float(rank), item)
        rank = following(tree, rank + 1, narrow, wide, base, latest)
    return size


def start_search(state: State, rank: int) -> None:
    """Start to search the queue, from a rank on, by `next_job`."""
    state.search[0].rank = rank - 1
    state.search[0].lined_up = -1


def next_job(state: State, tree: Tree, now: float, narrow: int, wide: int, base: float, latest: float) -> int:
    """Return the next job that `following` finds, or by a formula the next of those that it found first; else -1."""
    search = state.search[0]
    if tree.formula:
        if search.lined_up < 0:
            search.lined_up = line_up(state, tree, now, narrow, wide, base, latest)
        if search.lined_up == 0:
            return -1
        item = state.line[0].job
        search.lined_up = pop(state.line, search.lined_up)
        return item
    search.rank = following(tree, search.rank + 1, narrow, wide, base, latest)
    return tree.job_at[search.rank] if search.rank >= 0 else -1


def key_of(
    formula: int,
    item: int,
    numbers: tuple[float, ...],
    attributes: np.ndarray,
    owner: np.ndarray,
    demands: np.ndarray,
    slots: np.ndarray,
) -> float:
    """
    Return the value of a formula for an item; of ``attributes`` and ``owner`` the item's row is given.

    ``numbers`` are the time, the item's submit time, planned run time and processors, what `usage_of` returns, the
    processors of the machine, and the item's dominant share.
    """
    now, submit, planned, processors, user_usage, group_usage, fair_tree, association, machine, dominant = numbers
    return call_formula(
        formula,
        (
            now, submit, planned, processors, attributes[0], attributes[1], attributes[2], attributes[3],
            attributes[4], owner[0], user_usage, group_usage, owner[1], owner[2], fair_tree, association, machine,
            dominant, attributes[5], _demand(demands, item, slots[0]), _demand(demands, item, slots[1]),
            _demand(demands, item, slots[2]), _demand(demands, item, slots[3]),
        ),
    )  # fmt: skip


def plain_key_of(formula: int, now: float, submit: float, planned: float, processors: float) -> float:
    """Return the value of a formula that mentions no other variables: to read those takes a fifth of a simulation."""
    return call_formula(formula, (now, submit, planned, processors) + _UNMENTIONED)  # noqa: RUF005


#: What a formula receives instead of the variables that it does not mention.
_UNMENTIONED = (np.nan,) * 19


def _demand(demands: np.ndarray, item: int, resource: int) -> float:
    """Return a job's demand for a resource that a formula mentions; 0 if it mentions none there."""
    return float(demands[item, resource]) if resource >= 0 else 0.0
