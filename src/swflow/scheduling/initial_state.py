"""The state of a machine, and the list of arrivals, before the first event."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from swflow.scheduling.orders.keys import Order
from swflow.scheduling.problem import Machine, Problem, Window
from swflow.scheduling.state import layout
from swflow.scheduling.state.accounts import Accounting
from swflow.scheduling.state.arrivals import Arrivals
from swflow.scheduling.state.cancellations import CANCELLATIONS, new_cancellations
from swflow.scheduling.state.dependents import DEPENDENTS, new_dependents
from swflow.scheduling.state.heap import ELEMENT
from swflow.scheduling.state.items import Items, Shapes
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.queue import new_tree

#: Records of jobs that fit into the processor's cache.
_BLOCK = 2048

#: The ranks of all items at a machine, in the queue and for backfilling.
Ranks = tuple[np.ndarray, np.ndarray]

#: The operations of jobs that wait for others, or are cancelled.
WAITING: dict[Any, Any] = DEPENDENTS | CANCELLATIONS


class Given(NamedTuple):
    """What an engine decides about a machine: its processors, its backfill, and how its queue is sorted."""

    processors: Any
    backfill: int
    reservations: int
    second: Order  # the order in which jobs are tried for backfilling
    one_tree: bool  # whether the queue is one tree for both orders
    windows: Sequence[Window]


def shared_arrays(problem: Problem, accounting: Accounting) -> dict[str, Any]:
    """Return the arrays that all machines share: the records of jobs and of their owners."""
    items, policy = problem.items, problem.policy
    count = items.submit.size
    orders = [order for machine in problem.machines for order in (machine.order, machine.backfill_order)]
    attributes = items.of_jobs(problem.jobs.attributes) if any(order.formula for order in orders) else None
    corrects = policy.prediction == "system" or policy.runtime == "shared"
    predicted = np.zeros(count if corrects else 0, layout.PREDICTED)
    if policy.prediction == "system":
        predicted["user"] = np.unique(items.of_jobs(problem.jobs.users), return_inverse=True)[1]
    shapes = np.empty(0, layout.SHAPE)
    if problem.shapes is not None and policy.shapes == "start":
        shapes = _with_requests(items, problem.shapes)
    return {
        "jobs": _new_jobs(items),
        "predicted": predicted,
        "attributes": np.full((1, 6), np.nan) if attributes is None else attributes,
        "shapes": shapes,
        "usage": accounting.new_usage(problem),
        "demands": items.demands,
        "slots": problem.slots,
    }


def new_state(
    problem: Problem, machine: Machine, given: Given, shared: dict[str, Any], accounting: Accounting
) -> tuple[State, Ranks]:
    """Return the state of a machine, and the ranks of all items."""
    policy, count = problem.policy, problem.items.submit.size
    order, second, windows = machine.order, given.second, machine.windows
    bounds = None if machine.bounds is None else problem.items.of_jobs(machine.bounds)
    tree, rank = new_tree(order.keys, count)
    backfill_tree, backfill_rank = (tree, rank) if given.one_tree else new_tree(second.keys, count)
    predict, people = policy.prediction == "system", shared["predicted"]["user"]
    state = State(
        **shared | {"usage": accounting.at_machine(shared["usage"], machine.limits, bounds)},
        options=_rules(problem, machine, given),
        counts=np.zeros(1, layout.COUNTS),
        windows=np.zeros(1, layout.WINDOWS),
        agenda=np.zeros(1, layout.AGENDA),
        queue_plan=np.zeros(1, layout.QUEUE_PLAN),
        search=np.zeros(1, layout.SEARCH),
        running=np.empty(min(machine.processors, count) + 1, ELEMENT),
        predictions=np.empty(people.size, ELEMENT),
        users=np.zeros(people.max(initial=-1) + 1 if predict else 0, layout.USER),
        machine=given.processors,
        queue=tree._replace(formula=order.address, is_plain=order.is_plain),
        backfill_queue=backfill_tree._replace(formula=second.address, is_plain=second.is_plain),
        window_starts=np.array(sorted((begin, away) for begin, _, away in windows), ELEMENT),
        window_ends=np.array(sorted((until, away) for _, until, away in windows), ELEMENT),
        steps=np.zeros(given.reservations + len(given.windows) + 4, layout.STEP),
        line=np.empty(count, ELEMENT),
        planned=np.empty(count, np.int64),
        held=np.empty(given.reservations + 1, np.int64),
        capacities=np.array(list(machine.resources.values()), np.int64),
    )
    state.agenda["full"], state.queue_plan["jobs"] = 1, -1
    return state, (rank, backfill_rank)


def _rules(problem: Problem, machine: Machine, given: Given) -> np.ndarray:
    """Return the options of a machine as kernels read them."""
    policy, per_event = problem.policy, problem.policy.event_order == "per-event"
    predict, few = policy.prediction == "system", given.reservations <= 1 or not machine.resources
    values = {
        "processors": machine.processors,
        "backfill": given.backfill,
        "reservations": given.reservations,
        "by_arrival": machine.order.keys is None,
        "backfill_by_arrival": given.second.keys is None and not given.one_tree,
        "one_tree": given.one_tree,
        "per_event": per_event,
        "predict": predict,
        "corrects": predict or policy.runtime == "shared",
        "windows": len(given.windows),
        "simple": not machine.windows and not per_event and few,
        "shapes": policy.shapes == "start",
        "limits": machine.limits is not None,
        "starts": policy.backfill_starts or 0,
        "half_life": policy.half_life or np.inf,
    }
    rules = np.zeros(1, layout.RULES)
    for name, value in values.items():
        rules[name] = value
    return rules


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


def new_arrivals(problem: Problem, states: Sequence[State], ranks: list[Ranks]) -> Arrivals:
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
