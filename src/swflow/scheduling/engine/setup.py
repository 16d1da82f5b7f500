"""The state of each machine, and the list of arrivals, before the first event."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from swflow.scheduling.engine.cancellations import new_cancellations
from swflow.scheduling.engine.dependents import new_dependents
from swflow.scheduling.engine.loop import Arrivals
from swflow.scheduling.engine.passes import TICK
from swflow.scheduling.machine.counted import new_counted
from swflow.scheduling.machine.numbered import Numbered, new_numbered
from swflow.scheduling.problem import Machine, Problem, Shapes, Window
from swflow.scheduling.scheduler import Queue
from swflow.scheduling.slurm.placement import new_node_state
from swflow.scheduling.slurm.preempted import new_preempted
from swflow.scheduling.state import layout
from swflow.scheduling.state.accounts import UNLIMITED, limits_of, new_usage
from swflow.scheduling.state.choices import Allocation, Backfill
from swflow.scheduling.state.heap import ELEMENT
from swflow.scheduling.state.items import Items
from swflow.scheduling.state.layout import CONSERVATIVE, EASY, NONE, OTHER, SLURM, State
from swflow.scheduling.state.queue import NO_JOB, new_tree

#: Records of jobs that fit into the processor's cache.
_BLOCK = 2048

#: Running jobs that a cycle of backfill slurm plans to end together: each group spans twice the time of the last.
_MOST_GROUPS = 64


def new_states(problem: Problem) -> tuple[list[State], list[tuple[np.ndarray, np.ndarray]]]:
    """
    Return the state of each machine, and the ranks of all items there.

    The machines share the records of jobs and of their owners.
    """
    items, policy, machines = problem.items, problem.policy, problem.machines
    count = items.submit.size
    uses_formulas = any(order.formula for machine in machines for order in (machine.order, machine.backfill_order))
    attributes = items.of_jobs(problem.jobs.attributes) if uses_formulas else None
    corrects = policy.prediction == "system" or policy.runtime == "shared"
    predicted = np.zeros(count if corrects else 0, layout.PREDICTED)
    people = 0
    if policy.prediction == "system":
        names, predicted["user"] = np.unique(items.of_jobs(problem.jobs.users), return_inverse=True)
        people = names.size
    shapes = np.empty(0, layout.SHAPE)
    if problem.shapes is not None and policy.shapes == "start":
        shapes = _with_requests(items, problem.shapes)
    shared: dict[str, Any] = {
        "jobs": _new_jobs(items),
        "predicted": predicted,
        "attributes": np.full((1, 6), np.nan) if attributes is None else attributes,
        "shapes": shapes,
        "usage": new_usage(
            problem.accounts,
            items.job if items.first.size else None,
            items.submit.min() if count else 0.0,
            (policy.priority or {}).get("calc_period", 0),
            policy.half_life or math.inf,
        ),
        "demands": items.demands,
        "slots": problem.slots,
    }
    states: list[State] = []
    ranks: list[tuple[np.ndarray, np.ndarray]] = []
    for machine, queue in zip(machines, policy.queues, strict=True):
        state, rank = _new_state(problem, machine, queue, shared | {"users": np.zeros(people, layout.USER)})
        if states and isinstance(state.machine, Numbered):
            state = state._replace(machine=state.machine.beside(states[0].machine))
        states.append(state)
        ranks.append(rank)
    shared["jobs"]["rank"], shared["jobs"]["backfill_rank"] = ranks[0]
    return states, ranks


def _new_jobs(items: Items) -> np.ndarray:
    """Return the records of all items; the ranks are not known yet."""
    jobs = np.empty(items.submit.size, layout.JOB)
    for begin in range(0, jobs.size, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        for name in ("submit", "run", "planned", "processors"):
            jobs[name][block] = getattr(items, name)[block]
        for name in ("start", "planned_end", "reserved", "promise"):
            jobs[name][block] = np.nan
    return jobs


def _new_state(
    problem: Problem, machine: Machine, queue: Queue, shared: dict[str, Any]
) -> tuple[State, tuple[np.ndarray, np.ndarray]]:
    """Return the state of a machine, and the ranks of all items."""
    policy, size, windows = problem.policy, machine.processors, machine.windows
    count = problem.items.submit.size
    taken = windows if queue.allocation == "count" else summed(windows, size)
    order, second = machine.order, machine.backfill_order
    backfill = Backfill.number_of(queue.backfill)
    if backfill in (NONE, SLURM, CONSERVATIVE):
        second = order
    tree, rank = new_tree(order.keys, count)
    one_tree = second is order or (order.keys is None and second.keys is None)
    if backfill == OTHER:
        one_tree = False  # one tree has the starts of reservations, the other the lengths of jobs
    backfill_tree, backfill_rank = (tree, rank) if one_tree else new_tree(second.keys, count)
    cycles = policy.cycles
    most = {EASY: queue.reservations, SLURM: int(cycles["bf_max_job_test"])}.get(backfill, 0)
    reserved = min(most, max(count, 1))
    predict, per_event = policy.prediction == "system", policy.event_order == "per-event"

    options = np.zeros(1, layout.RULES)
    values = {
        "processors": size,
        "backfill": backfill,
        "reservations": reserved,
        "by_arrival": order.keys is None,
        "backfill_by_arrival": second.keys is None and not one_tree,
        "one_tree": one_tree,
        "per_event": per_event,
        "predict": predict,
        "corrects": predict or policy.runtime == "shared",
        "windows": len(taken),
        "simple": not windows and not per_event and (reserved <= 1 or not machine.resources),
        "shapes": policy.shapes == "start",
        "accounts": problem.accounts is not None,
        "limits": machine.limits is not None,
        "minutes": machine.limits is not None and bool((machine.limits[:, 2] < UNLIMITED).any()),
        "half_life": policy.half_life or np.inf,
        "calc_period": (policy.priority or {}).get("calc_period", 0),
        "whole_periods": (policy.priority or {}).get("whole_periods", False),
        "interval": cycles["bf_interval"],
        "window": 60 * cycles["bf_window"],
        "resolution": cycles["bf_resolution"],
        "epoch": problem.epoch,
        "every": math.ceil(cycles["sched_interval"] / TICK) * TICK,
        "batch_delay": cycles["batch_sched_delay"],
        "of_user": cycles["bf_max_job_user"],
        "depth": cycles["default_queue_depth"],
    }
    for name, value in values.items():
        options[name] = value

    agenda, queue_plan = np.zeros(1, layout.AGENDA), np.zeros(1, layout.QUEUE_PLAN)
    agenda["full"], agenda["tests"], queue_plan["jobs"] = 1, NO_JOB, -1
    agenda["due"], agenda["last_pass"], agenda["cycle"], agenda["counted"] = np.inf, -np.inf, np.inf, -np.inf
    steps = _MOST_GROUPS + 2 * (reserved + len(windows)) + 2 if backfill == SLURM and problem.nodes is None else 0
    usage = shared["usage"]._replace(limits=limits_of(machine.limits))
    is_sorted = backfill == SLURM and bool(order.formula) and values["calc_period"] > 0 and not problem.preempting
    alike, alike_of = _alike(usage.rows if len(usage.rows) else np.zeros((count, 1)), is_sorted)
    state = State(
        **shared | {"usage": usage},
        options=options,
        counts=np.zeros(1, layout.COUNTS),
        windows=np.zeros(1, layout.WINDOWS),
        agenda=agenda,
        queue_plan=queue_plan,
        search=np.zeros(1, layout.SEARCH),
        running=np.empty(min(size, count) + 1, ELEMENT),
        predictions=np.empty(shared["predicted"].size, ELEMENT),
        machine=_new_processors(problem, machine, queue, reserved, taken),
        queue=tree._replace(formula=order.address, is_plain=order.is_plain),
        backfill_queue=backfill_tree._replace(formula=second.address, is_plain=second.is_plain),
        window_starts=np.array(sorted((begin, away) for begin, _, away in windows), ELEMENT),
        window_ends=np.array(sorted((until, away) for _, until, away in windows), ELEMENT),
        steps=np.zeros(reserved + len(taken) + 4, layout.STEP),
        line=np.empty(count, ELEMENT),
        sorted=np.empty(alike_of.size, ELEMENT),
        alike=alike,
        alike_of=alike_of,
        planned=np.empty(count, np.int64),
        held=np.empty(reserved + 1, np.int64),
        cycle_times=np.empty(steps),
        cycle_free=np.empty((steps, 1 + len(machine.resources)), np.int64),
        capacities=np.array(list(machine.resources.values()), np.int64),
    )
    return state, (rank, backfill_rank)


def _alike(rows: np.ndarray, is_sorted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return empty lists of queued jobs with the same owners, and the list of each job; none unless they are sorted."""
    found, lists, sizes = np.unique(rows if is_sorted else rows[:0], axis=0, return_inverse=True, return_counts=True)
    alike = np.zeros(len(found), layout.ALIKE)
    alike["first"], alike["sorted_at"] = np.cumsum(sizes) - sizes, np.nan
    return alike, lists.reshape(-1)


def summed(windows: Sequence[Window], processors: int) -> list[Window]:
    """
    Return windows that do not overlap, in which as many processors of a machine are unavailable as in given ones.

    The processors of overlapping windows add up, at most to the whole machine.

    Examples
    --------
    >>> summed([(0.0, 10.0, 3), (5.0, 20.0, 2)], 8)
    [(0.0, 5.0, 3), (5.0, 10.0, 5), (10.0, 20.0, 2)]
    """
    times = sorted({time for begin, until, _ in windows for time in (begin, until)})
    found = [
        (begin, until, min(processors, sum(away for since, end, away in windows if since <= begin < end)))
        for begin, until in pairwise(times)
    ]
    return [window for window in found if window[2] > 0]


def _new_processors(problem: Problem, machine: Machine, queue: Queue, reserved: int, windows: Sequence[Window]) -> Any:
    """Return the idle processors of a machine, counted or numbered, without those of windows."""
    items, policy, size = problem.items, problem.policy, machine.processors
    count = items.submit.size
    if problem.nodes is not None:
        preempted = new_preempted(problem.preempting, count, problem.nodes.sizes.size, policy.end_delay)
        return new_node_state(problem.nodes, items, int(policy.cycles["bf_max_job_test"]), windows, preempted)
    plans_ahead = policy.shapes == "submit" or (len(problem.machines) > 1 and policy.dispatch == "earliest-start")
    if queue.allocation == "count":
        in_plan = queue.backfill == "conservative" or (plans_ahead and bool(machine.resources))
        reservations = count if in_plan else max(reserved, 1)
        changes = min(min(size, count) + 1 + 2 * reservations, 2 * count) + 2 * len(windows) + 4
        sizes = [size, *machine.resources.values()]
        return new_counted(sizes, changes, windows, items if plans_ahead and not in_plan else None)
    widest = max(one.processors for one in problem.machines)
    sharing = problem.sharing and problem.sharing.of(items.job if items.first.size else slice(None))
    allocation = Allocation.number_of(queue.allocation)
    return new_numbered((size, widest), count, allocation, reserved, windows, sharing)


def _with_requests(items: Items, shapes: Shapes) -> np.ndarray:
    """Return the requests and then the shapes, as the state of a machine holds them."""
    begin, count = shapes.first[:-1], items.submit.size
    both = np.zeros(count + shapes.run.size, layout.SHAPE)
    requests, choices = both[:count], both[count:]
    requests["planned"], requests["processors"] = items.planned, items.processors
    requests["first"], requests["end"] = count + begin, count + shapes.first[1:]
    requests["narrowest"] = np.minimum.reduceat(shapes.processors, begin) if count else 0
    requests["shortest"] = np.minimum.reduceat(shapes.planned, begin) if count else 0
    choices["run"], choices["planned"], choices["processors"] = shapes.run, shapes.planned, shapes.processors
    return both


def new_arrivals(problem: Problem, states: list[State], ranks: list[tuple[np.ndarray, np.ndarray]]) -> Arrivals:
    """Return the list of arrivals before the first event."""
    items, machines = problem.items, len(states)
    count = problem.jobs.submit.size
    several = machines > 1
    none = np.empty((0, 0), np.int64)
    by_order, by_backfill = map(np.stack, zip(*ranks, strict=True)) if several else (none, none)
    cluster = np.zeros(count if several else 0, np.int64)
    if several and problem.policy.dispatch == "partition" and problem.jobs.clusters is not None:
        cluster[:] = problem.jobs.clusters
    return Arrivals(
        first=items.first,
        chosen=np.empty(count if items.first.size else 0, np.int64),
        cluster=cluster,
        ranks=by_order,
        backfill_ranks=by_backfill,
        due=np.zeros(machines, np.bool_),
        dependents=new_dependents(problem.dependencies),
        cancellations=new_cancellations(problem.cancelled_after),
        clock=np.full(1, -np.inf),
        turn=np.zeros(1, np.int64),
    )
