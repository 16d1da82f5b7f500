"""Simulating one machine: plain arrays in, start times out."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from swflow.compilation import njit
from swflow.errors import SwflowError
from swflow.jobs import check_arrays
from swflow.scheduling import machine_state
from swflow.scheduling.compiled import njit as njit_step
from swflow.scheduling.easy import easy
from swflow.scheduling.heap import ELEMENT, pop, push
from swflow.scheduling.machine_state import CONSERVATIVE, LOOKAHEAD, NONE, State, advance, arrive, complete
from swflow.scheduling.orders import kernel_order
from swflow.scheduling.passes import serve
from swflow.scheduling.profile import add, new_profile
from swflow.scheduling.queue_order import new_tree

#: An order of the queue: a name or a formula, static keys (the smallest first), or a compiled key function.
Order = str | np.ndarray | Callable[..., float]

BACKFILLS = {"none": NONE, "lookahead": LOOKAHEAD, "conservative": CONSERVATIVE}


class Schedule(NamedTuple):
    """
    What a simulation gives.

    Parameters
    ----------
    start : float64 array of shape (jobs,)
        Start times, seconds.
    promise : float64 array of shape (jobs,)
        The start of the reservation that each job got at its submission under conservative backfilling; else NaN.
    """

    start: np.ndarray
    promise: np.ndarray


@njit
def fcfs(submit: np.ndarray, run: np.ndarray, processors: np.ndarray, machine: int) -> np.ndarray:
    """
    First come, first served, without backfilling.

    Parameters
    ----------
    submit, run : float64 array of shape (jobs,)
        Submit times, ascending, and run times, in seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job, at most ``machine``.
    machine : int
        Processors of the machine.

    Returns
    -------
    float64 array of shape (jobs,)
        Start times.
    """
    jobs = submit.size
    start = np.empty(jobs)
    running = np.empty(min(machine, jobs) + 1, ELEMENT)  # the items are numbers of processors
    size = 0
    free = machine
    now = -np.inf
    for job in range(jobs):
        now = max(now, submit[job])
        while size > 0 and (running[0].time <= now or free < processors[job]):
            now = max(now, running[0].time)
            free += running[0].job
            size = pop(running, size)
        start[job] = now
        free -= processors[job]
        size = push(running, size, now + run[job], processors[job])
    return start


@njit_step
def _simulate(state: State) -> None:
    """Run a machine from the first event to the last."""
    options, core, jobs, queue = state.options[0], state.now[0], state.jobs, state.queue
    arrived = 0
    while arrived < jobs.size or core.running > 0 or core.queued > 0:
        now = jobs[arrived].submit if arrived < jobs.size else math.inf
        if core.running > 0:
            now = min(now, state.running[0].time)
        if core.windows_handled < state.window_ends.size:
            now = min(now, state.window_ends[core.windows_handled].time)
        if options.backfill == CONSERVATIVE:
            now = min(now, queue.nodes[queue.nodes.size - 1].length)
        if now == math.inf:  # a job that never fits
            return
        advance(state, now)
        if options.per_event:
            if arrived < jobs.size and jobs[arrived].submit <= now:
                arrive(state, arrived)
                arrived += 1
            elif core.running > 0 and state.running[0].time <= now:
                complete(state, now)
            elif core.windows_handled < state.window_ends.size and state.window_ends[core.windows_handled].time <= now:
                core.windows_handled += 1
        else:
            while core.windows_handled < state.window_ends.size and state.window_ends[core.windows_handled].time <= now:
                core.windows_handled += 1
            while core.running > 0 and state.running[0].time <= now:
                complete(state, now)
            while arrived < jobs.size and jobs[arrived].submit <= now:
                arrive(state, arrived)
                arrived += 1
        serve(state, now)


def simulate(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    *,
    order: Order = "fcfs",
    backfill: str = "none",
    lookahead: int = 1,
    backfill_order: Order = "fcfs",
    per_event: bool = False,
    predict: bool = False,
    users: np.ndarray | None = None,
    unavailable: Sequence[tuple[float, float, int]] = (),
    attributes: np.ndarray | None = None,
    short_queues: bool = True,
) -> Schedule:
    """
    Simulate one machine whose processors are only counted.

    Parameters
    ----------
    submit, run, planned : float64 array of shape (jobs,)
        Submit times, ascending; run times; what the scheduler takes for the run time, at least 1 and not below
        ``run``. Seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job, 1 to ``machine``.
    machine : int
        Processors of the machine.
    order : str, array or callable
        The order of the queue, smallest key first, ties by index: a name or a formula; static keys, one a job;
        or, where the keys depend on the instant, a function made by `swflow.scheduling.queue_order.key_function`.
    backfill : {'none', 'lookahead', 'conservative'}
        Whether and how later jobs may overtake.
    lookahead : int
        How many jobs have a reservation with ``backfill='lookahead'``; 1 is EASY (D. Lifka, "The ANL/IBM SP
        scheduling system", JSSPP 1995).
    backfill_order : str, array or callable
        The order in which jobs are tried for backfilling with ``backfill='lookahead'``.
    per_event : bool
        One event at a time, arrivals before completions, and a pass after each; else all events of an
        instant, then one pass.
    predict : bool
        Plan with the mean of the user's last two run times, within the estimate, and correct it when it is
        outrun (Tsafrir, Etsion, Feitelson, IEEE TPDS 2007). ``planned`` are the estimates.
    users : int64 array of shape (jobs,), optional
        The user of each job, needed by ``predict``.
    unavailable : sequence of (from, until, processors)
        Windows in which processors are away.
    attributes : float64 array of shape (jobs, 5), optional
        User, group, queue, executable and job id for a key function, NaN where unknown.
    short_queues : bool
        Whether the kernels for short queues may be tried first; the schedule is the same.

    Returns
    -------
    Schedule
        Start times, and first promises.

    Raises
    ------
    SwflowError
        If an option is unknown or does not fit the others, or a job can never start because of a window without end.

    Examples
    --------
    >>> submit, run = np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 3.0])
    >>> simulate(submit, run, run, np.array([3, 4, 1]), 4, backfill="lookahead").start
    array([ 0., 10.,  2.])
    """
    if backfill not in BACKFILLS:
        raise SwflowError(f"backfill: unknown value {backfill!r}; known are {', '.join(BACKFILLS)}")
    times = {"submit_time": submit, "run_time": run, "planned_run_time": planned}
    check_arrays(times, processors, machine, others={"users": users, "attributes": attributes})
    if backfill == "lookahead" and lookahead < 1:
        raise SwflowError(f"lookahead: must be at least 1, not {lookahead}")
    if isinstance(order, str) and order == "fcfs" and backfill == "none" and not predict and not len(unavailable):
        return Schedule(fcfs(submit, run, processors, machine), np.full(submit.size, np.nan))
    plain_easy = (
        short_queues and backfill == "lookahead" and lookahead == 1 and not (per_event or predict or len(unavailable))
    )
    if plain_easy and isinstance(order, str) and isinstance(backfill_order, str) and order == backfill_order == "fcfs":
        start, finished = easy(submit, run, planned, processors, machine)
        if finished:
            return Schedule(start, np.full(submit.size, np.nan))
    state = new_state(
        submit, run, planned, processors, machine,
        order=order, backfill=backfill, lookahead=lookahead, backfill_order=backfill_order,
        per_event=per_event, predict=predict, users=users, unavailable=unavailable, attributes=attributes,
    )  # fmt: skip
    _simulate(state)
    start = state.jobs["start"].copy()
    never = np.flatnonzero(np.isnan(start))
    if never.size:
        raise SwflowError(
            f"unavailable: {never.size:,} jobs never start, the first with {processors[never[0]]:,} processors; "
            "end the window or take fewer processors"
        )
    return Schedule(start, state.jobs["promise"].copy())


def new_state(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    *,
    order: Order,
    backfill: str,
    lookahead: int,
    backfill_order: Order,
    per_event: bool,
    predict: bool,
    users: np.ndarray | None,
    unavailable: Sequence[tuple[float, float, int]],
    attributes: np.ndarray | None,
    plans_ahead: bool = False,
) -> State:
    """
    Make the state of a machine before the first event; see `simulate`.

    With ``plans_ahead`` there is room for reservations of all queued jobs, as `plan_queue` makes them.
    """
    count = submit.size
    jobs = np.empty(count, machine_state.JOB)
    machine_state.fill(jobs, submit, run, planned, processors)

    windows = checked_windows(unavailable, machine)
    if backfill != "lookahead":
        backfill_order = order
    about_jobs = (submit, planned, processors, attributes, predict)
    keys, formula = order_of(order, "order", *about_jobs)
    queue, rank = new_tree(keys, count)
    if keys is not None:
        jobs["rank"] = rank
    one_tree = backfill_order is order or (
        isinstance(order, str) and isinstance(backfill_order, str) and order == backfill_order
    )
    second_keys, second_formula = keys, formula
    if not one_tree:
        second_keys, second_formula = order_of(backfill_order, "backfill_order", *about_jobs)
        one_tree = second_keys is None and keys is None
    backfill_queue = queue
    if not one_tree:
        backfill_queue, jobs["backfill_rank"] = new_tree(second_keys, count)
    if attributes is None or not (formula or second_formula):
        attributes = np.full((1, 5), np.nan)

    options = np.zeros(1, machine_state.OPTIONS)
    options["machine"] = machine
    options["backfill"] = BACKFILLS[backfill]
    options["lookahead"] = lookahead if backfill == "lookahead" else 0
    options["formula"], options["backfill_formula"] = formula, second_formula
    options["one_tree"], options["per_event"], options["predict"] = one_tree, per_event, predict
    options["windows"] = len(windows)

    running = min(machine, count) + 1
    reservations = count if plans_ahead or backfill == "conservative" else min(lookahead, count)
    free = new_profile(machine, min(running + 2 * reservations, 2 * count) + 2 * len(windows) + 4)
    for begin, until, away in windows:
        add(free, begin, -away)
        add(free, until, away)

    predicted = np.zeros(count if predict else 0, machine_state.PREDICTED)
    people = 0
    if predict:
        if users is None:
            raise SwflowError("predict: the users of the jobs are needed")
        names, predicted["user"] = np.unique(users, return_inverse=True)
        people = names.size
    now = np.zeros(1, machine_state.NOW)
    now["full"] = 1
    held = int(options["lookahead"][0]) + 1
    return State(
        options=options,
        now=now,
        jobs=jobs,
        running=np.empty(running, ELEMENT),
        predictions=np.empty(count if predict else 0, ELEMENT),
        predicted=predicted,
        users=np.zeros(people, machine_state.USER),
        free=free,
        queue=queue,
        backfill_queue=backfill_queue,
        window_starts=_moments([(begin, away) for begin, _, away in windows]),
        window_ends=_moments([(until, away) for _, until, away in windows]),
        steps=np.zeros(held + len(windows) + 3, machine_state.STEP),
        line=np.empty(count, ELEMENT),
        held=np.empty(held, np.int64),
        attributes=attributes,
        shapes=np.empty(0, machine_state.SHAPE),
    )


def order_of(
    order: Order,
    option: str,
    submit: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    attributes: np.ndarray | None,
    predict: bool,
) -> tuple[np.ndarray | None, int]:
    """Return the static keys of an order (None: that of arrival), or the address of its formula, else 0."""
    if isinstance(order, str):
        known = np.full((submit.size, 5), np.nan) if attributes is None else attributes
        order = kernel_order(order, option, submit, planned, processors, known, predict)
    if isinstance(order, np.ndarray):
        return order, 0
    return None, 0 if isinstance(order, str) else order.address  # type: ignore[attr-defined]


def checked_windows(unavailable: Sequence[tuple[float, float, int]], machine: int) -> list[tuple[float, float, int]]:
    """Return the windows, or raise an error if one is empty or takes more than there is."""
    for begin, until, away in unavailable:
        if not until > begin:
            raise SwflowError(f"unavailable: the window from {begin:g} until {until:g} is empty")
        if not 1 <= away <= machine:
            raise SwflowError(f"unavailable: {away} processors are not 1 to {machine}")
    return [(float(begin), float(until), int(away)) for begin, until, away in unavailable]


def _moments(pairs: list[tuple[float, int]]) -> np.ndarray:
    """Return times and processors as elements in order of time."""
    return np.array(sorted(pairs), ELEMENT)
