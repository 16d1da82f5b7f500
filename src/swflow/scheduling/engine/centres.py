"""Several machines in one state: their arrays stacked, and the state of one of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.extending import overload

from swflow.scheduling.engine.queue import Tree
from swflow.scheduling.engine.state import State
from swflow.scheduling.engine.usage import Usage
from swflow.scheduling.machine.counted import Profile

# As of `swflow.scheduling.engine.compiled.lean`: no arrays are made.
_OPTIONS: Any = {"_nrt": False}


def machine_of(states: State, centre: int) -> State:
    """Return the state of one machine from arrays that hold those of all, along their first axis, or its own."""
    return _of_several(states, centre) if states.options.ndim > 1 else states


@overload(machine_of, strict=False, jit_options=_OPTIONS)
def _machine_of(states: Any, centre: Any) -> Callable[[State, int], State]:
    """Choose when the loop is compiled: a single machine costs nothing."""
    options = states.types[states.fields.index("options")]
    return _of_several if options.ndim > 1 else _of_one


def _of_one(states: State, centre: int) -> State:
    return states


def _of_several(states: State, centre: int) -> State:
    free, queue, second = states.free, states.queue, states.backfill_queue
    return State(
        states.options[centre],
        states.now[centre],
        states.jobs,
        states.running[centre],
        states.predictions[centre],
        states.predicted,
        states.users[centre],
        Profile(free.head[centre], free.blocks[centre], free.changes[centre], free.spare_rows[centre]),
        Tree(queue.nodes[centre], queue.levels, queue.job_at[centre]),
        Tree(second.nodes[centre], second.levels, second.job_at[centre]),
        states.window_starts[centre],
        states.window_ends[centre],
        states.steps[centre],
        states.line,
        states.held[centre],
        states.attributes,
        states.shapes,
        Usage(states.usage.accounts, states.usage.owners, states.usage.limits[centre]),
    )


def stack(states: Sequence[State]) -> State:
    """Make one state of several, whose arrays have an axis of the machines before their own; they share the jobs."""
    for state in states:
        if state.options["one_tree"][0]:  # the two trees of a machine are stacked apart
            state.options["one_tree"] = 0
            state.jobs["backfill_rank"] = state.jobs["rank"]
    first = states[0]
    return first._replace(
        attributes=max((state.attributes for state in states), key=len),
        options=_padded([state.options for state in states]),
        now=_padded([state.now for state in states]),
        running=_padded([state.running for state in states]),
        predictions=_padded([state.predictions for state in states]),
        users=_padded([state.users for state in states]),
        free=Profile(*(_padded(list(arrays)) for arrays in zip(*(state.free for state in states), strict=True))),
        queue=_stack_trees([state.queue for state in states]),
        backfill_queue=_stack_trees([state.backfill_queue for state in states]),
        window_starts=_padded([state.window_starts for state in states], (np.inf, 0)),
        window_ends=_padded([state.window_ends for state in states], (np.inf, 0)),
        steps=_padded([state.steps for state in states]),
        held=_padded([state.held for state in states]),
        usage=first.usage._replace(limits=_padded([state.usage.limits for state in states])),
    )


def _stack_trees(trees: Sequence[Tree]) -> Tree:
    return Tree(_padded([tree.nodes for tree in trees]), trees[0].levels, _padded([tree.job_at for tree in trees]))


def _padded(arrays: Sequence[np.ndarray], filler: Any = 0) -> np.ndarray:
    """Stack arrays, the shorter ones filled up."""
    longest = max(array.shape[0] for array in arrays)
    stacked = np.empty((len(arrays), longest, *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
        row[len(array) :] = filler
    return stacked
