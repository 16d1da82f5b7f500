"""Simulating moldable jobs on one machine: the shape of each is chosen when it is submitted, or when it starts."""

import math
from typing import NamedTuple

import numpy as np

from swflow.errors import SwflowError
from swflow.jobs import check_arrays
from swflow.machine import MOST_PROCESSORS
from swflow.scheduling import kernels, machine_state
from swflow.scheduling.compiled import njit, njit_inline
from swflow.scheduling.kernels import Order
from swflow.scheduling.machine_state import CONSERVATIVE, State, advance, arrive, complete
from swflow.scheduling.passes import drop_plan, plan_queue, serve
from swflow.scheduling.profile import earliest

#: When the shape of a job is chosen.
SELECTIONS = {
    "submit": "when it is submitted: the shape with the earliest predicted completion, for good",
    "start": "when it can start: the fastest of the shapes that can",
}


class Shapes(NamedTuple):
    """
    The ways in which jobs can run.

    Parameters
    ----------
    first : int64 array of shape (jobs + 1,)
        The shapes of job j are those from ``first[j]`` to before ``first[j + 1]``, at least one, by ascending
        processors.
    run, planned : float64 array of shape (shapes,)
        Run times, and what the scheduler takes for them, at least 1 and not below ``run``. Seconds.
    processors : int64 array of shape (shapes,)
        Processors, 1 to the machine's.
    """

    first: np.ndarray
    run: np.ndarray
    planned: np.ndarray
    processors: np.ndarray


class MoldedSchedule(NamedTuple):
    """
    What a simulation of moldable jobs gives.

    Parameters
    ----------
    start : float64 array of shape (jobs,)
        Start times, seconds.
    processors : int64 array of shape (jobs,)
        The processors of the shape that was chosen.
    run : float64 array of shape (jobs,)
        Its run time, seconds.
    """

    start: np.ndarray
    processors: np.ndarray
    run: np.ndarray


@njit_inline
def _choose(state: State, begin: int, end: int, now: float) -> int:
    """Return the item from ``begin`` to before ``end`` that would complete first if it were planned after the queue."""
    planned = plan_queue(state, now)
    chosen = begin
    soonest = math.inf
    for item in range(begin, end):
        job = state.jobs[item]
        done = earliest(state.free, job.processors, job.planned, math.inf) + job.planned
        if done < soonest:
            chosen = item
            soonest = done
    drop_plan(state, planned)
    return chosen


@njit
def _simulate(state: State, items: np.ndarray, chosen: np.ndarray) -> None:
    """Run a machine from the first event to the last; of each job's items one is chosen on its arrival."""
    core, jobs, queue = state.now[0], state.jobs, state.queue
    arrived = 0
    while arrived < chosen.size or core.running > 0 or core.queued > 0:
        now = jobs[items[arrived]].submit if arrived < chosen.size else math.inf
        if core.running > 0:
            now = min(now, state.running[0].time)
        if state.options[0].backfill == CONSERVATIVE:
            now = min(now, queue.nodes[queue.nodes.size - 1].length)
        advance(state, now)
        while core.running > 0 and state.running[0].time <= now:
            complete(state, now)
        while arrived < chosen.size and jobs[items[arrived]].submit <= now:
            item = items[arrived]
            if items[arrived + 1] > item + 1:
                item = _choose(state, item, items[arrived + 1], now)
            arrive(state, item)
            chosen[arrived] = item
            arrived += 1
        serve(state, now)


def simulate(
    submit: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    shapes: Shapes,
    machine: int,
    *,
    select: str,
    order: Order = "fcfs",
    backfill: str = "none",
    lookahead: int = 1,
    backfill_order: Order = "fcfs",
    attributes: np.ndarray | None = None,
) -> MoldedSchedule:
    """
    Simulate one machine whose processors are only counted, with jobs that can run in several shapes.

    With ``select="submit"`` the availability profile is asked when a job arrives: the planned ends of the running
    jobs, and the queue planned ahead, one job after the other in its order, each at its earliest place; under
    conservative backfilling queued jobs have their reservations. For each shape, the job's earliest place after
    all of these and its planned run time give a completion; the earliest wins, of equals the narrowest. From then
    on the job is rigid (W. Cirne, F. Berman, "Adaptive selection of partition size for supercomputer requests",
    JSSPP 2000).

    With ``select="start"`` a job that is looked at, as the head or for backfilling, starts if any of its shapes
    can start by the rules: in the one with the shortest planned run time, of equals the narrowest. A job that gets
    a reservation gets it for the shape that would complete first by the profile, of equals the narrowest; this
    is chosen anew in every pass (without and with lookahead), or whenever reservations move forward
    (conservative). A queued job's place in the queue is that of its request.

    Parameters
    ----------
    submit : float64 array of shape (jobs,)
        Submit times, ascending, seconds.
    planned : float64 array of shape (jobs,)
        What the scheduler takes for the run time of the request, seconds.
    processors : int64 array of shape (jobs,)
        Processors of the request. Both matter to orders with ``select="start"`` only.
    shapes : Shapes
        The shapes; the request need not be one of them.
    machine : int
        Processors of the machine.
    select : {'submit', 'start'}
        When shapes are chosen.
    order, backfill, lookahead, backfill_order, attributes
        As in `swflow.scheduling.kernels.simulate`; with ``select="submit"`` static keys are one a shape.

    Returns
    -------
    MoldedSchedule

    Raises
    ------
    SwflowError
        If an option is unknown.

    Examples
    --------
    The second job can wait 10 s for 4 processors, or take 1 at once and run for 30 s.

    >>> run = np.array([10.0, 30.0, 9.0])
    >>> shapes = Shapes(np.array([0, 1, 3]), run, run, np.array([3, 1, 4]))
    >>> for select in SELECTIONS:
    ...     result = simulate(np.array([0.0, 1.0]), run[[0, 2]], np.array([3, 4]), shapes, 4, select=select)
    ...     print(result.start, result.processors)
    [ 0. 10.] [3 4]
    [0. 1.] [3 1]
    """
    if select not in SELECTIONS:
        raise SwflowError(f"shapes: unknown value {select!r}; known are {', '.join(SELECTIONS)}")
    check_arrays({"submit_time": submit, "planned_run_time": planned}, processors, MOST_PROCESSORS)
    check_arrays({"run_time": shapes.run, "planned_run_time": shapes.planned}, shapes.processors, machine,
                 name="shapes")  # fmt: skip
    first = shapes.first
    if first.shape != (submit.size + 1,) or first[0] != 0 or first[-1] != shapes.run.size or (np.diff(first) < 1).any():
        raise SwflowError(f"shapes: first must lead to the shapes of {submit.size:,} jobs, at least one each")
    job = np.arange(submit.size)
    items, run = shapes.first, shapes.run
    if select == "submit":  # every shape is an item that may arrive, once
        job = np.repeat(job, np.diff(shapes.first))
        planned, processors = shapes.planned, shapes.processors
    else:
        items, run = np.arange(submit.size + 1), planned
    state = kernels.new_state(
        submit[job], run, planned, processors, machine,
        order=order, backfill=backfill, lookahead=lookahead, backfill_order=backfill_order,
        per_event=False, predict=False, users=None, unavailable=(),
        attributes=None if attributes is None else attributes[job], plans_ahead=True,
    )  # fmt: skip
    if select == "start":
        state.options["shapes"] = 1
        state = state._replace(shapes=_with_requests(planned, processors, shapes))
    chosen = np.empty(submit.size, np.int64)
    _simulate(state, items, chosen)
    done = state.jobs[chosen]
    return MoldedSchedule(done["start"].copy(), done["processors"].copy(), done["run"].copy())


def _with_requests(planned: np.ndarray, processors: np.ndarray, shapes: Shapes) -> np.ndarray:
    """Return the requests and then the shapes, as the state of a machine holds them."""
    begin, count = shapes.first[:-1], planned.size
    records = np.zeros(count + shapes.run.size, machine_state.SHAPE)
    requests, choices = records[:count], records[count:]
    requests["planned"], requests["processors"] = planned, processors
    requests["first"], requests["end"] = count + begin, count + shapes.first[1:]
    requests["narrowest"] = np.minimum.reduceat(shapes.processors, begin) if count else 0
    requests["shortest"] = np.minimum.reduceat(shapes.planned, begin) if count else 0
    choices["run"], choices["planned"], choices["processors"] = shapes.run, shapes.planned, shapes.processors
    return records
