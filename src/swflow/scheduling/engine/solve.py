"""The textbook engine: solve a problem by the fast kernel for short queues or by the event loop."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from swflow.compiled.kernel import Handle, Kernel
from swflow.errors import SwflowError
from swflow.scheduling.engine.fast_easy import serve_by_arrival
from swflow.scheduling.engine.loop import run_events
from swflow.scheduling.engine.setup import new_states
from swflow.scheduling.final_state import chosen_items, copied_columns, raise_errors, schedule_of
from swflow.scheduling.initial_state import WAITING, new_arrivals
from swflow.scheduling.machine.alvio import ALVIO, WITH_DEFECT, with_shadows
from swflow.scheduling.machine.counted import COUNTED, Counted
from swflow.scheduling.machine.node_sharing import MOST_PENALTY, Sharing
from swflow.scheduling.machine.numbered import NUMBERED, larger
from swflow.scheduling.problem import Problem
from swflow.scheduling.state.accounts import ACCOUNTING, Accounting
from swflow.scheduling.state.choices import Dispatch
from swflow.scheduling.state.schedule import Schedule


def solve_by_textbook(problem: Problem, accounting: Accounting) -> Schedule:
    """Return the schedule of a problem, as `swflow.scheduling.solve.solve` describes it."""
    return _solve_short_queues(problem) or _solve_by_events(problem, accounting)


def _solve_short_queues(problem: Problem) -> Schedule | None:
    """Return the schedule of FCFS or EASY in order of arrival, if options are plain and queues are short."""
    policy, jobs = problem.policy, problem.items
    (queue, *others), (machine, *_) = policy.queues, problem.machines
    plain = policy.prediction != "system" and queue.allocation == "count"
    waits = problem.dependencies or problem.cancelled_after is not None
    special = others or machine.windows or machine.limits is not None or problem.shapes or waits
    special = special or policy.backfill_starts is not None
    if not plain or special or not machine.order.is_arrival:
        return None
    if queue.backfill == "none" and not machine.resources:  # the order of events at one instant changes nothing
        return Schedule.of_start(jobs, serve_by_arrival(jobs, machine.processors, backfill=False)[0])
    if queue.backfill == "easy" and queue.reservations == 1 and machine.backfill_order.is_arrival:
        units, per_event = list(machine.resources.values()), policy.event_order == "per-event"
        start, finished = serve_by_arrival(jobs, machine.processors, units, backfill=True, per_event=per_event)
        return Schedule.of_start(jobs, start) if finished else None
    return None


def _solve_by_events(problem: Problem, accounting: Accounting) -> Schedule:
    """Return the schedule by the event loop."""
    states, ranks = new_states(problem, accounting)
    arrivals = new_arrivals(problem, states, ranks)
    if problem.sharing is not None and problem.sharing.penalty in WITH_DEFECT:
        states = [with_shadows(state) for state in states]
    kernel, coming = kernel_of(problem, accounting), Handle([arrivals])
    while not kernel(Handle(states, several=len(states) > 1), coming, Dispatch.number_of(problem.policy.dispatch)):
        states = [larger(state) for state in states]
    raise_errors(problem)
    items = chosen_items(problem, arrivals)
    columns = copied_columns(problem, states[0].jobs, items)
    machines, cluster = [state.machine for state in states], arrivals.cluster
    del states, ranks, arrivals  # the next arrays need their memory
    found = schedule_of(problem, columns, items, cluster)
    if isinstance(machines[0], Counted):
        return found
    found = _with_ranges(found, machines, items)
    return _with_penalties(found, [one.sharing for one in machines], items) if problem.sharing else found


#: The machine models.
_MODELS = {"counted": COUNTED, "numbered": NUMBERED, "alvio": ALVIO, **WITH_DEFECT}


def kernel_of(problem: Problem, accounting: Accounting) -> Kernel:
    """Return the event loop for a problem; without what only some problems need it compiles faster."""
    policy, model = problem.policy, "numbered"
    if "count" in policy.allocations:
        model = "counted"
    elif problem.sharing is not None and problem.sharing.penalty in WITH_DEFECT:
        model = str(problem.sharing.penalty)
    elif any(queue.backfill == "reservation-table" for queue in policy.queues):
        model = "alvio"
    some = (problem.accounts, problem.dependencies, problem.cancelled_after)
    is_plain = accounting is ACCOUNTING and all(one is None for one in some)
    return kernel_with(model, None if is_plain else accounting)


@cache
def kernel_with(model: str, accounting: Accounting | None) -> Kernel:
    """Return the event loop for a machine model; with an accounting, jobs may also wait for others or be cancelled."""
    more = WAITING | accounting.operations if accounting is not None else {}
    return Kernel(run_events, _MODELS[model] | more)


def _with_ranges(found: Schedule, machines: Sequence[Any], items: np.ndarray | slice) -> Schedule:
    """Return the schedule with the processors of each job."""
    placed = machines[0].jobs[items]
    offsets = np.append(0, np.cumsum(placed["ranges"], dtype=np.int64))
    index = np.arange(offsets[-1]) + np.repeat(placed["first"] - offsets[:-1], placed["ranges"])
    if len(machines) == 1:
        return replace(found, offsets=offsets, ranges=machines[0].pool[index])
    ranges, cluster = np.empty((index.size, 2), np.int32), np.repeat(found.cluster, placed["ranges"])
    for number, machine in enumerate(machines):
        ranges[cluster == number] = machine.pool[index[cluster == number]]
    return replace(found, offsets=offsets, ranges=ranges)


def _with_penalties(found: Schedule, machines: Sequence[Sharing], items: np.ndarray | slice) -> Schedule:
    """Return the schedule with the penalties of shared resources."""
    if any(sharing.round["invalid"][0] > 0 for sharing in machines):
        raise SwflowError(
            f"penalty: the formula is undefined, above {MOST_PENALTY:g}, or of an overload negative for a usage that "
            "occurs; write one that never is, such as: max(usage / capacity, 1) - 1"
        )
    if not machines[0].slows:
        return replace(found, killed=np.zeros(found.start.size, np.bool_))
    jobs, start = machines[0].job[items], found.start
    killed, end = jobs["killed"] != 0, jobs["end"]
    spent = np.where(killed, jobs["progress"], found.run)  # the run time without penalties
    lost = np.where(end > start + spent, end - start - spent, 0.0)
    run = np.where(end == found.end, found.run, end - start)
    return replace(found, run=run, penalty=lost, killed=killed)
