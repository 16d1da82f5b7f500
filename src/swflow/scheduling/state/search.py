"""Search the queue: the next job that may fit, by rank, or by a formula whose value changes while jobs wait."""

import numpy as np

from swflow.compiled.kernel import call_formula
from swflow.scheduling.state.accounts import OF_GROUP, OF_USER, at_limit, computed_at, of_tree, share_of
from swflow.scheduling.state.heap import pop, push
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.queue import NO_JOB, Tree, following


def queued_key(state: State, tree: Tree, item: int, now: float) -> float:
    """Return the key of a queued job by the formula of a tree."""
    submit, planned, processors = state.jobs[item].submit, state.jobs[item].planned, state.jobs[item].processors
    if state.options[0].shapes:
        planned, processors = state.shapes[item].planned, state.shapes[item].processors
    now = computed_at(now, state.options[0].calc_period)
    if tree.is_plain:
        key = plain_key_of(tree.formula, max(now, submit), submit, planned, float(processors))
    else:
        key = _key_of_all(state, tree.formula, item, now, planned, processors)
    return np.inf if np.isnan(key) else key


def _key_of_all(state: State, formula: int, item: int, now: float, planned: float, processors: int) -> float:
    """Return the value of a formula that may mention any variable; new jobs have that of their submission."""
    options, usage = state.options[0], state.usage
    user_usage = group_usage = fair_tree = association = 0.0
    if options.accounts:
        fair_tree, association = of_tree(usage, item, now, options.half_life)
        user_usage = share_of(usage.accounts, usage.rows[item, OF_USER], now, options.half_life)
        group_usage = share_of(usage.accounts, usage.rows[item, OF_GROUP], now, options.half_life)
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
    # A job that is at a limit of running jobs stays there during a pass, whose starts only add to what is counted.
    skips = state.options[0].limits and state.agenda[0].skips
    rank = following(tree, 0, narrow, wide, base, latest)
    while rank >= 0:
        item = tree.job_at[rank]
        if skips and at_limit(state.usage, item, 0):
            rank = following(tree, rank + 1, narrow, wide, base, latest)
            continue
        size = push(state.line, size, queued_key(state, tree, item, now) if tree.formula else float(rank), item)
        rank = following(tree, rank + 1, narrow, wide, base, latest)
    return size


def next_sorted(state: State, now: float) -> int:
    """
    Return the next job of a queue that is kept sorted; -1 if there is none, -2 if the queue is not kept sorted.

    It is if its formula is computed at multiples of a period only. Jobs with the same owners are sorted apart from
    others, so that no job of owners that are at a limit of running jobs is looked at, however many are queued.
    """
    search, usage, line = state.search[0], state.usage, state.line
    if state.sorted.size == 0:
        return -2
    skips = state.agenda[0].skips if state.options[0].limits else 0
    if search.lined_up < 0:
        for number in range(state.alike.size):
            _keep_sorted(state, number, now, skips)
        search.lined_up = 0
        for number in range(state.alike.size):
            search.lined_up = _line_up_next(state, number, search.lined_up)
    while search.lined_up > 0:
        item = line[0].job
        search.lined_up = pop(line, search.lined_up)
        if skips and at_limit(usage, item, 0):
            continue  # and so are those after it
        search.lined_up = _line_up_next(state, state.alike_of[item], search.lined_up)
        return item
    return -1


def _is_queued(state: State, item: int) -> bool:
    """Return whether a job is in the queue; lists of sorted jobs keep others until they are sorted again."""
    return state.queue.nodes[state.jobs[item].rank].width < NO_JOB


def _line_up_next(state: State, number: int, size: int) -> int:
    """Add the next job of a list to the heap of the next jobs of all lists; return its size."""
    one = state.alike[number]
    while one.left > 0:
        one.left -= 1
        key, item = state.sorted[one.first + one.left].time, state.sorted[one.first + one.left].job
        if _is_queued(state, item):
            return push(state.line, size, key, item)
    return size


def _keep_sorted(state: State, number: int, now: float, skips: int) -> None:
    """Prepare to search a list, unless its owners are at a limit; sort it if its keys were computed anew."""
    one, line = state.alike[number], state.sorted
    one.left = 0
    while one.size > 0 and not _is_queued(state, line[one.first + one.size - 1].job):
        one.size -= 1
    if one.size == 0 or (skips and at_limit(state.usage, line[one.first].job, 0)):
        return
    time = computed_at(now, state.options[0].calc_period)
    if one.sorted_at != time:
        one.sorted_at, size = time, 0
        for place in range(one.first, one.first + one.size):
            item = line[place].job
            if _is_queued(state, item):
                key = queued_key(state, state.queue, item, now)
                _insert(line, one.first, size, key, item)
                size += 1
        one.size = size
    one.left = one.size


def _precedes(key: float, item: int, other_key: float, other: int) -> bool:
    """Return whether a job is served before another one, by their keys; ties by their numbers."""
    return key < other_key or (key == other_key and item < other)


def _insert(line: np.ndarray, first: int, size: int, key: float, item: int) -> None:
    """Insert a job into a sorted list, whose last job is the first to be served."""
    place = first + size
    while place > first and _precedes(line[place - 1].time, line[place - 1].job, key, item):
        line[place].time, line[place].job = line[place - 1].time, line[place - 1].job
        place -= 1
    line[place].time, line[place].job = key, item


def insert_sorted(state: State, item: int, now: float) -> None:
    """Add a new job to its list, which is sorted later unless its keys are still the same."""
    if state.sorted.size == 0:
        return
    one = state.alike[state.alike_of[item]]
    if one.sorted_at == computed_at(now, state.options[0].calc_period):
        _insert(state.sorted, one.first, one.size, queued_key(state, state.queue, item, now), item)
    else:
        state.sorted[one.first + one.size].job = item
        one.sorted_at = np.nan
    one.size += 1


def start_search(state: State, rank: int) -> None:
    """Start to search the queue, from a rank on, by `next_job`."""
    state.search[0].rank = rank - 1
    state.search[0].lined_up = -1


def next_job(state: State, tree: Tree, now: float, narrow: int, wide: int, base: float, latest: float) -> int:
    """Return the next job that `following` finds, or by a formula the next of those that it found first; else -1."""
    search = state.search[0]
    if tree.formula:
        found = next_sorted(state, now)
        if found > -2:
            return found
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

    ``numbers`` are the time, the item's submit time, planned run time and processors, the usage of its user and group,
    what `of_tree` returns, the processors of the machine, and the item's dominant share.
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
