"""Search the queue: the next job that may fit, by rank, or by a formula whose value changes while jobs wait."""

import numpy as np

from swflow.compiled.kernel import call_formula
from swflow.scheduling.state.heap import pop, push
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.operations import time_of_keys, usage_of
from swflow.scheduling.state.queue import Tree, following
from swflow.scheduling.state.variables import Variables


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
    user_usage, group_usage, fair_tree, association_usage = usage_of(state, item, now)
    dominant = processors / options.processors
    for resource in range(state.capacities.size):
        dominant = max(dominant, state.demands[item, resource] / max(state.capacities[resource], 1))
    known = state.attributes[min(item, state.attributes.shape[0] - 1)]
    owner = usage.variables[min(item, usage.variables.shape[0] - 1)]
    submit = state.jobs[item].submit
    variables = Variables(
        now=max(now, submit),
        submit_time=submit,
        estimate=planned,
        processors=float(processors),
        user_id=known[0],
        group_id=known[1],
        queue_id=known[2],
        executable_id=known[3],
        job_id=known[4],
        partition_id=owner[0],
        user_usage=user_usage,
        group_usage=group_usage,
        user_share=owner[1],
        group_share=owner[2],
        fair_tree=fair_tree,
        association_usage=association_usage,
        machine_processors=float(options.processors),
        dominant_share=dominant,
        requested_nodes=known[5],
        resource_1=demand_of(state.demands, item, state.slots[0]),
        resource_2=demand_of(state.demands, item, state.slots[1]),
        resource_3=demand_of(state.demands, item, state.slots[2]),
        resource_4=demand_of(state.demands, item, state.slots[3]),
    )
    return call_formula(formula, variables)


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


def plain_key_of(formula: int, now: float, submit: float, planned: float, processors: float) -> float:
    """Return the value of a formula that mentions no other variables: to read those takes a fifth of a simulation."""
    return call_formula(formula, (now, submit, planned, processors) + _UNMENTIONED)  # noqa: RUF005


#: What a formula receives instead of the variables that it does not mention.
_UNMENTIONED = (np.nan,) * (len(Variables._fields) - 4)


def demand_of(demands: np.ndarray, item: int, resource: int) -> float:
    """Return a job's demand for a resource that a formula mentions; 0 if it mentions none there."""
    return float(demands[item, resource]) if resource >= 0 else 0.0
