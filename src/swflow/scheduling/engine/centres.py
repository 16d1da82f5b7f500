"""Several machines in one state: their arrays stacked, and the state of one of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from swflow.kernels import Handle, compiled_as
from swflow.scheduling.engine.queue import Tree
from swflow.scheduling.engine.state import State
from swflow.scheduling.engine.usage import Usage
from swflow.scheduling.machine.placed import Placed
from swflow.scheduling.machine.shared import Sharing

#: What all machines share, of a state and of what is nested in it; the rest has an axis of the machines.
_COMMON = {
    State: ("jobs", "predicted", "attributes", "shapes"),
    Tree: ("levels",),
    Usage: ("accounts", "owners"),
    Placed: ("jobs",),
    Sharing: ("per_node", "slows", "penalty_kind", "formula", "demands", "capacities", "limit", "job"),
}


@compiled_as("chosen_machine")
def machine_of(states: State, centre: int) -> State:
    """Return the state of one machine from arrays that hold those of all, along their first axis, or its own."""
    return _one_of(states, centre) if states.options.ndim > 1 else states


def _one_of(states: Any, centre: int) -> Any:
    if not hasattr(states, "_asdict"):
        return states[centre]
    common = _COMMON.get(type(states), ())
    return states._replace(
        **{name: _one_of(part, centre) for name, part in states._asdict().items() if name not in common}
    )


def handle_of(states: State) -> Any:
    """Return the states of one machine or several for kernels, to which they are what they were."""
    if states.options.ndim == 1:
        return Handle([states])
    return Handle([machine_of(states, centre) for centre in range(len(states.options))], several=True)


def stack(states: Sequence[State]) -> State:
    """Make one state of several, whose arrays have an axis of the machines before their own; they share the jobs."""
    for state in states:
        if state.options["one_tree"][0]:  # the two trees of a machine are stacked apart
            state.options["one_tree"] = 0
            state.jobs["backfill_rank"] = state.jobs["rank"]
    attributes = max((state.attributes for state in states), key=len)
    stacked: State = _stacked([state._replace(attributes=attributes) for state in states])
    return stacked


def _stacked(parts: Sequence[Any], filler: Any = 0) -> Any:
    first = parts[0]
    if not isinstance(first, tuple):
        return _padded(parts, filler)
    own = [name for name in first._fields if name not in _COMMON.get(type(first), ())]  # type: ignore[attr-defined]
    fillers = {"window_starts": (np.inf, 0), "window_ends": (np.inf, 0)}
    return first._replace(  # type: ignore[attr-defined]
        **{name: _stacked([getattr(part, name) for part in parts], fillers.get(name, 0)) for name in own}
    )


def _padded(arrays: Sequence[np.ndarray], filler: Any) -> np.ndarray:
    """Stack arrays, the shorter ones filled up."""
    shape = np.max([array.shape for array in arrays], axis=0)
    stacked = np.empty((len(arrays), *shape), arrays[0].dtype)
    stacked[:] = np.array(filler, arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return stacked
