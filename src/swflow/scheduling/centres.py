"""Simulating several machines, to which a dispatcher sends every job on its arrival."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from swflow.errors import SwflowError
from swflow.jobs import check_arrays
from swflow.scheduling.compiled import njit, njit_inline
from swflow.scheduling.kernels import new_state
from swflow.scheduling.machine_state import CONSERVATIVE, State, advance, arrive, complete
from swflow.scheduling.passes import drop_plan, plan_queue, serve
from swflow.scheduling.profile import Profile, earliest
from swflow.scheduling.queue_order import Tree

#: How a dispatcher chooses among the centres that are wide enough; ties go to the first.
DISPATCHES = {
    "round-robin": "the next one in turn",
    "least-loaded": "the one with the fewest processors of running and queued jobs, by its own processors",
    "earliest-start": "the one where the job starts first if all queued jobs, then this one, get reservations",
}
_ROUND_ROBIN, _LEAST_LOADED, _EARLIEST_START = range(3)


class CentreSchedule(NamedTuple):
    """
    What a simulation of several machines gives.

    Parameters
    ----------
    start : float64 array of shape (jobs,)
        Start times, seconds.
    centre : int64 array of shape (jobs,)
        The index of the machine of each job.
    promise : float64 array of shape (jobs,)
        See `swflow.scheduling.kernels.Schedule`.
    """

    start: np.ndarray
    centre: np.ndarray
    promise: np.ndarray


@njit_inline
def _state_of(all_states: State, centre: int) -> State:
    """Return the state of one machine from arrays that hold those of all, along their first axis."""
    free, queue, second = all_states.free, all_states.queue, all_states.backfill_queue
    return State(
        all_states.options[centre],
        all_states.now[centre],
        all_states.jobs,
        all_states.running[centre],
        all_states.predictions[centre],
        all_states.predicted,
        all_states.users[centre],
        Profile(free.head[centre], free.blocks[centre], free.changes[centre], free.spare_rows[centre]),
        Tree(queue.nodes[centre], queue.levels, queue.job_at[centre]),
        Tree(second.nodes[centre], second.levels, second.job_at[centre]),
        all_states.window_starts[centre],
        all_states.window_ends[centre],
        all_states.steps[centre],
        all_states.line,
        all_states.held[centre],
        all_states.attributes,
        all_states.shapes,
    )


@njit_inline
def _would_start(state: State, item: int, now: float) -> float:
    """Return when a job would start if all queued jobs, in order, and then this one got reservations."""
    planned = plan_queue(state, now)
    job = state.jobs[item]
    length = job.planned
    if state.options[0].predict:
        user = state.users[state.predicted[item].user]
        if user.jobs >= 2:
            length = max(1.0, min(length, (user.older + user.newer) / 2))
    time = earliest(state.free, job.processors, length, math.inf)
    drop_plan(state, planned)
    return time


@njit
def _run(
    all_states: State,
    ranks: np.ndarray,
    backfill_ranks: np.ndarray,
    centre_of: np.ndarray,
    due: np.ndarray,
    dispatch: int,
) -> None:
    """Run all machines from the first event to the last; ``due`` is scratch, an element a machine."""
    jobs = all_states.jobs
    centres = due.size
    per_event = all_states.options[0, 0].per_event
    arrived = 0
    turn = 0
    while True:
        # The next event, and for one event at a time the completed job with the lowest index.
        now = jobs[arrived].submit if arrived < jobs.size else math.inf
        busy = arrived < jobs.size
        for centre in range(centres):
            core = all_states.now[centre, 0]
            busy = busy or core.running > 0 or core.queued > 0
            if core.running > 0:
                now = min(now, all_states.running[centre, 0].time)
            if core.windows_handled < all_states.window_ends.shape[1]:
                now = min(now, all_states.window_ends[centre, core.windows_handled].time)
            if all_states.options[centre, 0].backfill == CONSERVATIVE:
                now = min(now, all_states.queue.nodes[centre, all_states.queue.nodes.shape[1] - 1].length)
        if not busy or now == math.inf:
            return
        arrives = arrived < jobs.size and jobs[arrived].submit <= now
        completes = -1
        if per_event and not arrives:
            lowest = jobs.size
            for centre in range(centres):
                first = all_states.running[centre, 0]
                if all_states.now[centre, 0].running > 0 and first.time <= now and first.job < lowest:
                    lowest = first.job
                    completes = centre
        may_end = not per_event or (not arrives and completes < 0)

        for centre in range(centres):
            state = _state_of(all_states, centre)
            core = state.now[0]
            advance(state, now)
            root = state.queue.nodes[state.queue.nodes.size - 1]
            due[centre] = state.options[0].backfill == CONSERVATIVE and root.length <= now
            while (
                may_end
                and core.windows_handled < state.window_ends.size
                and state.window_ends[core.windows_handled].time <= now
            ):
                core.windows_handled += 1
                due[centre] = True
                may_end = not per_event
            while core.running > 0 and state.running[0].time <= now and (not per_event or centre == completes):
                complete(state, now)
                due[centre] = True
                if per_event:
                    break

        while arrives:
            job = jobs[arrived]
            chosen = -1
            best = math.inf
            for offset in range(centres):
                centre = (turn + offset) % centres if dispatch == _ROUND_ROBIN else offset
                machine = all_states.options[centre, 0].machine
                if job.processors > machine:
                    continue
                value = 0.0
                if dispatch == _LEAST_LOADED:
                    value = all_states.now[centre, 0].demand / machine
                elif dispatch == _EARLIEST_START:
                    value = _would_start(_state_of(all_states, centre), arrived, now)
                if chosen < 0 or value < best:
                    chosen = centre
                    best = value
            turn = chosen + 1
            centre_of[arrived] = chosen
            job.rank = ranks[chosen, arrived]
            job.backfill_rank = backfill_ranks[chosen, arrived]
            arrive(_state_of(all_states, chosen), arrived)
            due[chosen] = True
            arrived += 1
            arrives = not per_event and arrived < jobs.size and jobs[arrived].submit <= now

        for centre in range(centres):
            if due[centre]:
                serve(_state_of(all_states, centre), now)


def simulate_centres(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    centres: Sequence[Mapping[str, Any]],
    *,
    dispatch: str,
    per_event: bool = False,
    predict: bool = False,
    users: np.ndarray | None = None,
    attributes: np.ndarray | None = None,
) -> CentreSchedule:
    """
    Simulate several machines; every job is sent to one of them on its arrival, for good.

    Parameters
    ----------
    submit, run, planned, processors : arrays of shape (jobs,)
        As in `swflow.scheduling.kernels.simulate`; ``processors`` at most those of the widest centre.
    centres : sequence of mappings
        Each with ``machine``, its processors, and any of ``order``, ``backfill``, ``lookahead``,
        ``backfill_order`` and ``unavailable`` of `swflow.scheduling.kernels.simulate`.
    dispatch : {'round-robin', 'least-loaded', 'earliest-start'}
        See `DISPATCHES`.
    per_event, predict, users, attributes
        As in `swflow.scheduling.kernels.simulate`, for all centres. Predictions know what ended in the same centre.

    Returns
    -------
    CentreSchedule
        Start times, centres, and first promises.

    Raises
    ------
    SwflowError
        If an option is unknown, or a job is too wide for all.

    Examples
    --------
    >>> submit, run = np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 3.0])
    >>> centres = [{"machine": 4}, {"machine": 2}]
    >>> simulate_centres(submit, run, run, np.array([3, 4, 1]), centres, dispatch="least-loaded").centre
    array([0, 0, 1])
    """
    if dispatch not in DISPATCHES:
        raise SwflowError(f"dispatch: unknown value {dispatch!r}; known are {', '.join(DISPATCHES)}")
    widest = max(centre["machine"] for centre in centres)
    times = {"submit_time": submit, "run_time": run, "planned_run_time": planned}
    check_arrays(times, processors, widest, name="dispatch", others={"users": users, "attributes": attributes})
    defaults = {"order": "fcfs", "backfill": "none", "lookahead": 1, "backfill_order": "fcfs", "unavailable": ()}
    states = []
    for centre in centres:
        state = new_state(
            submit, run, planned, processors, **{**defaults, **centre},
            per_event=per_event, predict=predict, users=users, attributes=attributes,
            plans_ahead=dispatch == "earliest-start",
        )  # fmt: skip
        states.append(state)
    all_states = _stack(states)
    centre_of = np.zeros(submit.size, np.int64)
    _run(
        all_states,
        np.stack([state.jobs["rank"] for state in states]),
        np.stack([state.jobs["backfill_rank"] for state in states]),
        centre_of,
        np.zeros(len(states), np.bool_),
        list(DISPATCHES).index(dispatch),
    )
    start = all_states.jobs["start"].copy()
    if np.isnan(start).any():
        raise SwflowError(f"unavailable: {np.isnan(start).sum():,} jobs never start; end the windows")
    return CentreSchedule(start, centre_of, all_states.jobs["promise"].copy())


def _stack(states: Sequence[State]) -> State:
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
