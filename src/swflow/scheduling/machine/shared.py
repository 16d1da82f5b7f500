"""Shared resources: how much an overloaded node slows its jobs, when they end, and which nodes cost a job least."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from swflow.errors import SwflowError
from swflow.kernels import Handle, Kernel, call_formula, lean
from swflow.scheduling.engine.queue import callback
from swflow.scheduling.machine.places import NO_PLACES, fill, next_in

#: What a node's overload costs, as the kernels number it: linear in the overload; the same and a second for every
#: overloaded shadow, as the paper prints it; a formula; or linear by a computation that forgets parts of shadows.
LINEAR, PRINTED, BY_FORMULA, FORGETS_SHADOWS = range(4)

#: Ends of penalized jobs are rounded to this fraction of a second, so that rounding errors decide no tie.
TICKS = 2.0**20

#: What nodes cost is rounded to this fraction before they are compared, for the same reason.
STEPS = 2.0**30

#: A job that takes a thousand million times as long does not end: formulas may not give more.
MOST_PENALTY = 1e9


def penalty_function(function: Callable[..., float], cache: bool = False) -> Callable[..., float]:
    """
    Compile a penalty so that the kernels can call it without being compiled again.

    Parameters
    ----------
    function : callable
        A plain Python function that numba can compile, of what the processes of a node ask of a resource and what
        the node has of it.
    cache : bool
        Whether to keep what is compiled; the function is then one of a file.

    Returns
    -------
    callable
        A C callback, for `Resources`.
    """
    return callback(function, 2, cache)


@dataclass(frozen=True)
class Resources:
    """
    What the processes of a node share.

    Parameters
    ----------
    per_node : int
        Processors of a node, a divisor of the machine's.
    demands : float64 array of shape (jobs, resources)
        What each process of a job asks for.
    capacities : float64 array of shape (resources,)
        What a node has.
    penalty : {'linear', 'printed', 'forgets-shadows'} or numba cfunc
        By how much a node's demand prolongs its jobs, as a fraction of the time that they would take: linear is
        ``max(usage / capacity, 1) - 1`` for each resource, printed adds a second for every overloaded shadow, and a
        function has `PENALTY_SIGNATURE`; a negative value counts as 0. forgets-shadows is linear with a fault of the
        Alvio simulator's released code: of a shadow in which another job comes and goes, the rest is forgotten. By
        the ends that are known when a job comes, it lies within a shadow if it comes to a node where nothing else
        begins or ends at that time, and ends before all that are there. When it has gone, those whom it met are
        not seen on the node until the first of all who were there goes: they lose nothing, and who comes does not
        meet them.
    slows : bool
        Whether penalties move the ends of jobs; otherwise they only guide the allocation.
    allowed : float64 array of shape (jobs,), optional
        When a job is killed, seconds from its start.
    limit : float
        With the allocation ``threshold``, the penalty beyond which a job rather waits.

    References
    ----------
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the
    Alvio simulator", MASCOTS 2007, section III.
    """

    per_node: int
    demands: np.ndarray
    capacities: np.ndarray
    penalty: str | Callable[..., float] = "linear"
    slows: bool = True
    allowed: np.ndarray | None = None
    limit: float = np.inf

    def of(self, items: np.ndarray) -> "Resources":
        """Return the same for other jobs, which are some of these, maybe repeatedly."""
        allowed = None if self.allowed is None else self.allowed[items]
        return replace(self, demands=np.asarray(self.demands)[items], allowed=allowed)


def longest_stretch(resources: Resources, count: int, machine: int) -> float:
    """
    Require arrays that fit together, and return how many times its length a run may take with a linear penalty.

    Raises
    ------
    SwflowError
        If nodes do not divide the machine, demands or capacities are not finite, or demands are negative.
    """
    demands = np.asarray(resources.demands, np.float64).reshape(-1, len(resources.capacities))
    if resources.per_node < 1 or machine % resources.per_node:
        raise SwflowError(f"resources: nodes of {resources.per_node} processors do not divide a machine of {machine:,}")
    if len(demands) != count:
        raise SwflowError(f"resources: demands are needed of {count:,} jobs, not of {len(demands):,}")
    if not (np.isfinite(demands).all() and (demands >= 0).all()):
        raise SwflowError("resources: demands must be finite and not negative")
    if not (np.isfinite(resources.capacities).all() and (np.asarray(resources.capacities) > 0).all()):
        raise SwflowError("resources: capacities must be finite and above 0")
    if resources.allowed is not None and not (len(resources.allowed) == count and (resources.allowed >= 0).all()):
        raise SwflowError(f"resources: allowed run times are needed of {count:,} jobs, none below 0")
    most = demands.max(axis=0, initial=0.0) * resources.per_node / resources.capacities
    return 1.0 + float(np.maximum(most - 1.0, 0.0).sum()) if resources.slows else 1.0


def penalty_of(penalty: str | Callable[..., float]) -> tuple[int, int]:
    """Return a penalty as the kernel takes it: its number and the address of its formula."""
    if isinstance(penalty, str):
        return {"linear": LINEAR, "printed": PRINTED, "forgets-shadows": FORGETS_SHADOWS}[penalty], 0
    return BY_FORMULA, penalty.address  # type: ignore[attr-defined]


#: A machine whose processors have nothing in common.
NOTHING_SHARED = Resources(0, np.zeros((0, 1)), np.zeros(1), slows=False)


#: What is known of a job: how many of its processes a node bears within the limit, the run time at which it is killed,
#: the part of its run time without penalties that is done, its end (seconds), whether it is killed then, and the round
#: in which it was last looked at.
SHARER = np.dtype(
    [
        ("together", np.int64),
        ("allowed", np.float64),
        ("progress", np.float64),
        ("end", np.float64),
        ("killed", np.int64),
        ("mark", np.int64),
    ]
)

#: What is known of a processor: its job (-1 if idle) and what its node has added to that job's run time (seconds).
#: ``inside`` and ``unseen`` are for forgotten shadows: whether the job lies within a shadow of the node, and whether it
#: is not seen there, by 1 + the job by whose going that shadow ends; 0 if not. ``changed`` is a list of its own: the
#: jobs whose ends move.
SHARED_PLACE = np.dtype(
    [("job", np.int64), ("added", np.float64), ("inside", np.int64), ("unseen", np.int64), ("changed", np.int64)]
)

#: What is known of a node: its penalty now, whether its shadow ends, and since when it has lasted.
#: ``touched`` is the list of the nodes whose shadows end; the others are for `choose_least_shared`:
#: how many processes a node has room for and was given, what one more costs, and a heap of the nodes by that.
SHARED_NODE = np.dtype(
    [
        ("penalty", np.float64),
        ("is_touched", np.int64),
        ("since", np.float64),
        ("touched", np.int64),
        ("room", np.int64),
        ("taken", np.int64),
        ("cost", np.float64),
        ("load", np.float64),
        ("heap", np.int64),
    ]
)


class Sharing(NamedTuple):
    """
    Who shares which node, what that costs, and how far the jobs have come; if ``per_node`` is 0, all is empty.

    The fewer arrays there are, the sooner this is handed to a function: hence the records.
    """

    per_node: int  # processors of a node
    slows: bool  # whether penalties move the ends; otherwise they only guide the allocation
    penalty_kind: int
    formula: int
    demands: np.ndarray  # (jobs, resources), of each process
    capacities: np.ndarray  # (resources,), of each node
    limit: float  # the penalty beyond which a job rather waits
    usage: np.ndarray  # (nodes, resources), now
    later: np.ndarray  # the same, scratch
    job: np.ndarray
    place: np.ndarray
    node: np.ndarray
    numbers: np.ndarray  # the round, how many nodes are touched, and whether a formula gave what is no penalty


def new_sharing(resources: Resources | None, count: int, machine: int, keeps_to_limit: bool) -> Sharing:
    """Make the empty machine."""
    shares = resources or NOTHING_SHARED
    nodes = machine // shares.per_node if resources else 0
    kind, formula = penalty_of(shares.penalty)
    sharing = Sharing(
        per_node=int(shares.per_node),
        slows=bool(shares.slows),
        penalty_kind=kind,
        formula=formula,
        demands=np.require(np.asarray(shares.demands).reshape(-1, len(shares.capacities)), np.float64, ["C", "W"]),
        capacities=np.require(shares.capacities, np.float64, ["C", "W"]),
        limit=float(np.round(shares.limit * STEPS) / STEPS) if keeps_to_limit else np.inf,
        usage=np.zeros((nodes, len(shares.capacities))),
        later=np.zeros((nodes, len(shares.capacities))),
        job=np.zeros(count if resources else 0, SHARER),
        place=np.zeros(machine if resources else 0, SHARED_PLACE),
        node=np.zeros(nodes, SHARED_NODE),
        numbers=np.zeros(3, np.int64),
    )
    if resources:
        sharing.job["allowed"] = np.inf if shares.allowed is None else shares.allowed
        sharing.job["end"] = np.nan
        sharing.place["job"] = -1
        sharing.node["since"] = -np.inf
    if sharing.limit < np.inf:
        _BEAR(Handle([sharing]))
    return sharing


def _bear(sharing: Sharing) -> int:
    """Find how many processes of each job an empty node bears within the limit."""
    for item in range(sharing.job.size):
        job = sharing.job[item]
        while job.together < sharing.per_node:
            if not _cost_with(sharing, sharing.later[0], item, job.together + 1) <= sharing.limit:
                break
            job.together += 1
    return 0


_BEAR = Kernel(_bear)


@lean
def limit_of(sharing: Sharing, job: int, width: int, machine: int) -> float:
    """Return the limit that a job keeps to; one that cannot keep to it even on the empty machine is exempt."""
    if sharing.limit < np.inf and sharing.job[job].together * (machine // sharing.per_node) >= width:
        return sharing.limit
    return np.inf


@lean
def penalty_with(sharing: Sharing, usage: np.ndarray, job: int, processes: int) -> float:
    """Return the penalty of a node with this usage, if a job puts so many processes there (Guim et al., eq. 2)."""
    penalty = 0.0
    for resource in range(usage.size):
        asked = usage[resource]
        if processes > 0:
            asked += processes * sharing.demands[job, resource]
        capacity = sharing.capacities[resource]
        if sharing.penalty_kind == BY_FORMULA:
            value = call_formula(sharing.formula, (asked, capacity))
            if value >= 0.0 and value <= MOST_PENALTY:
                penalty += value
            elif not (value < 0.0 and asked <= capacity):  # below the capacity, negative is none
                sharing.numbers[2] = 1  # the caller refuses the run
        else:
            penalty += max(asked / capacity, 1.0) - 1.0
    return penalty


@lean
def _cost_with(sharing: Sharing, usage: np.ndarray, job: int, processes: int) -> float:
    """Return that penalty as nodes are compared by it."""
    return np.round(penalty_with(sharing, usage, job, processes) * STEPS) / STEPS


@lean
def _load_with(sharing: Sharing, usage: np.ndarray, job: int, processes: int) -> float:
    """Return the fraction of the scarcest resource that is asked for, if a job puts so many processes on a node."""
    load = 0.0
    for resource in range(usage.size):
        load = max(load, (usage[resource] + processes * sharing.demands[job, resource]) / sharing.capacities[resource])
    return np.round(load * STEPS) / STEPS


@lean
def choose_least_shared(
    sharing: Sharing,
    usage: np.ndarray,
    eligible: np.ndarray,
    width: int,
    job: int,
    limit: float,
    machine: int,
    chosen: np.ndarray,
) -> bool:
    """
    Give every process of a job, one after the other, to the node whose penalty it leaves least.

    Of equal nodes the least loaded is taken, then the first. Returns whether the processes find room on nodes
    whose penalty stays within the limit.
    """
    per_node, node_of = sharing.per_node, sharing.node
    chosen[:] = NO_PLACES
    for number in range(machine // per_node):
        node_of[number].room = 0
        node_of[number].taken = 0
    size = 0  # of the heap of the nodes with room, the one that costs least on top
    place = next_in(eligible, 0, machine)
    while place < machine:
        number = place // per_node
        node = node_of[number]
        if node.room == 0:
            node.cost = _cost_with(sharing, usage[number], job, 1)
            node.load = _load_with(sharing, usage[number], job, 1)
            if node.cost <= limit:
                node_of[size].heap = number
                size += 1
        node.room += 1
        place = next_in(eligible, place + 1, machine)
    if size * per_node < width:
        return False
    for top in range(size // 2 - 1, -1, -1):
        _sink_node(node_of, size, top)
    for _ in range(width):
        if size == 0:
            return False
        number = node_of[0].heap
        node = node_of[number]
        node.taken += 1
        node.cost = _cost_with(sharing, usage[number], job, node.taken + 1)
        node.load = _load_with(sharing, usage[number], job, node.taken + 1)
        if node.taken == node.room or node.cost > limit:
            size -= 1
            node_of[0].heap = node_of[size].heap
        _sink_node(node_of, size, 0)
    for number in range(machine // per_node):
        place = number * per_node
        for _ in range(node_of[number].taken):
            place = next_in(eligible, place, machine)
            fill(chosen, place, place)
            place += 1
    return True


@lean
def _sink_node(nodes: np.ndarray, size: int, place: int) -> None:
    """Move a node of a heap down to where it belongs: by penalty, load and number."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and _costs_less(nodes, nodes[child + 1].heap, nodes[child].heap):
            child += 1
        if not _costs_less(nodes, nodes[child].heap, nodes[place].heap):
            return
        nodes[place].heap, nodes[child].heap = nodes[child].heap, nodes[place].heap
        place = child


@lean
def _costs_less(nodes: np.ndarray, one: int, other: int) -> bool:
    """Return whether a process costs less on one node than on another."""
    if nodes[one].cost != nodes[other].cost:
        return nodes[one].cost < nodes[other].cost
    if nodes[one].load != nodes[other].load:
        return nodes[one].load < nodes[other].load
    return one < other


@lean
def enter_in_plan(sharing: Sharing, usage: np.ndarray, pool: np.ndarray, first: int, ranges: int, job: int) -> None:
    """Add what a job asks for to a usage."""
    for index in range(first, first + ranges):
        for place in range(pool[index, 0], pool[index, 1] + 1):
            for resource in range(usage.shape[1]):
                usage[place // sharing.per_node, resource] += sharing.demands[job, resource]


@lean
def leave_in_plan(sharing: Sharing, usage: np.ndarray, pool: np.ndarray, first: int, ranges: int, job: int) -> None:
    """Take what a job asks for out of a usage."""
    for index in range(first, first + ranges):
        for place in range(pool[index, 0], pool[index, 1] + 1):
            for resource in range(usage.shape[1]):
                usage[place // sharing.per_node, resource] -= sharing.demands[job, resource]


@lean
def whole_nodes(sharing: Sharing, chosen: np.ndarray, machine: int) -> None:
    """Add the other processors of their nodes to a set of processors."""
    place = next_in(chosen, 0, machine)
    while place < machine:
        node = place // sharing.per_node
        fill(chosen, node * sharing.per_node, (node + 1) * sharing.per_node - 1)
        place = next_in(chosen, (node + 1) * sharing.per_node, machine)


@lean
def _penalty_at(sharing: Sharing, place: int) -> float:
    """Return the penalty of a processor's node to its job; none if the job is not seen there."""
    return 0.0 if sharing.place[place].unseen else sharing.node[place // sharing.per_node].penalty


@lean
def _progress(sharing: Sharing, pool: np.ndarray, placement: Any, job: int, start: float, now: float) -> None:
    """
    Account for the time since a job was last looked at.

    With ``A_n`` added on node ``n`` so far and its penalty ``c_n``, a piece ``x`` of the run time takes
    ``x + max(A_n + c_n x) - max(A_n)``; so in a time ``t`` the job comes ahead by
    ``min((t + max(A_n) - A_n) / (1 + c_n))``.
    """
    per_node, first, ranges = sharing.per_node, placement.first, placement.ranges
    most = 0.0
    for index in range(first, first + ranges):
        place = pool[index, 0]
        while place <= pool[index, 1]:
            most = max(most, sharing.place[place].added)
            place = (place // per_node + 1) * per_node
    time = now - (start + sharing.job[job].progress + most)
    if time <= 0.0:
        return
    ahead = np.inf
    for index in range(first, first + ranges):
        place = pool[index, 0]
        while place <= pool[index, 1]:
            ahead = min(ahead, (time + most - sharing.place[place].added) / (1.0 + _penalty_at(sharing, place)))
            place = (place // per_node + 1) * per_node
    sharing.job[job].progress += ahead
    for index in range(first, first + ranges):
        for place in range(pool[index, 0], pool[index, 1] + 1):
            sharing.place[place].added += _penalty_at(sharing, place) * ahead


@lean
def _end_of(sharing: Sharing, pool: np.ndarray, placement: Any, job: int, start: float, run: float) -> float:
    """Return when a job ends if its nodes stay as they are, and note whether it is killed then."""
    per_node, first, ranges = sharing.per_node, placement.first, placement.ranges
    left = max(run - sharing.job[job].progress, 0.0)
    worst = 0.0
    for index in range(first, first + ranges):
        place = pool[index, 0]
        while place <= pool[index, 1]:
            worst = max(worst, sharing.place[place].added + _penalty_at(sharing, place) * left)
            place = (place // per_node + 1) * per_node
    end = start + run
    if worst > 0.0:
        end = np.round((end + worst) * TICKS) / TICKS
    sharing.job[job].killed = end > start + sharing.job[job].allowed
    return min(end, start + sharing.job[job].allowed)


@lean
def _look_at(sharing: Sharing, node: int, count: int) -> int:
    """Add the jobs of a node that were not looked at in this round to the ``count`` changed ones."""
    for place in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        job = sharing.place[place].job
        if job >= 0 and sharing.job[job].mark != sharing.numbers[0]:
            sharing.job[job].mark = sharing.numbers[0]
            sharing.place[count].changed = job
            count += 1
    return count


@lean
def share(
    sharing: Sharing,
    pool: np.ndarray,
    placements: np.ndarray,
    records: np.ndarray,
    now: float,
    jobs: np.ndarray,
    come: bool,
) -> int:
    """
    End the shadows of the nodes where jobs come or go, and find the new ends of all jobs there.

    Parameters
    ----------
    sharing : Sharing
        Is changed: ``end`` and ``killed`` of the jobs that are concerned.
    pool, placements : arrays
        The processors of every job, as the machine keeps them.
    records : array of shape (jobs,)
        The jobs, with ``start`` and ``run``, the run time without penalties; seconds.
    now : float
        The time, seconds.
    jobs : int64 array
        Who comes or goes.
    come : bool
        Whether they come.

    Returns
    -------
    int
        How many jobs have a new end; these are the first ``changed`` of ``sharing.place``.
    """
    per_node = sharing.per_node
    nodes = sharing.numbers[1]
    for job in jobs:
        placement = placements[job]
        for index in range(placement.first, placement.first + placement.ranges):
            for node in range(pool[index, 0] // per_node, pool[index, 1] // per_node + 1):
                if not sharing.node[node].is_touched:
                    sharing.node[node].is_touched = True
                    sharing.node[nodes].touched = node
                    nodes += 1
    if sharing.slows:
        sharing.numbers[0] += 1
        count = 0
        for index in range(nodes):
            count = _look_at(sharing, sharing.node[index].touched, count)
        for index in range(count):
            job = sharing.place[index].changed
            _progress(sharing, pool, placements[job], job, records[job].start, now)
    forgets = sharing.penalty_kind == FORGETS_SHADOWS
    if forgets and not come:
        _forget_shadows(sharing, jobs, nodes, records, now)
    for job in jobs:
        placement = placements[job]
        for index in range(placement.first, placement.first + placement.ranges):
            for place in range(pool[index, 0], pool[index, 1] + 1):
                sharing.place[place].job = job if come else -1
                sharing.place[place].added = 0.0
                sharing.place[place].inside = 0
                sharing.place[place].unseen = 0
    # A shadow that costs a second begins when all who go at an instant are gone and all who come have come.
    charge = sharing.penalty_kind == PRINTED and come
    sharing.numbers[1] = nodes if sharing.penalty_kind == PRINTED and not come else 0
    sharing.numbers[0] += 1
    count = 0
    for index in range(nodes):
        node = sharing.node[index].touched
        sharing.node[node].is_touched = sharing.numbers[1] > 0
        usage = sharing.usage[node]
        for resource in range(usage.size):
            usage[resource] = 0.0
        for place in range(node * per_node, (node + 1) * per_node):
            there = sharing.place[place].job
            for resource in range(usage.size if there >= 0 else 0):
                usage[resource] += sharing.demands[there, resource]
        asked = usage
        if forgets:
            asked = sharing.later[node]  # where nothing is planned now
            _leave_out_unseen(sharing, node, asked)
        sharing.node[node].penalty = penalty_with(sharing, asked, 0, 0)
        if charge and sharing.node[node].penalty > 0.0:
            for place in range(node * per_node, (node + 1) * per_node):
                sharing.place[place].added += 1.0
        count = _look_at(sharing, node, count)
    if not sharing.slows:
        return 0
    for index in range(count):
        job = sharing.place[index].changed
        sharing.job[job].end = _end_of(sharing, pool, placements[job], job, records[job].start, records[job].run)
    for index in range(nodes if forgets and come else 0):
        _begin_shadow(sharing, sharing.node[index].touched, records, now)
    return count


@lean
def _leave_out_unseen(sharing: Sharing, node: int, asked: np.ndarray) -> None:
    """Find what those ask for who are seen on a node."""
    asked[:] = 0.0
    for place in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        there = sharing.place[place].job
        for resource in range(asked.size if there >= 0 and not sharing.place[place].unseen else 0):
            asked[resource] += sharing.demands[there, resource]


@lean
def _forget_shadows(sharing: Sharing, gone: np.ndarray, nodes: int, records: np.ndarray, now: float) -> None:
    """Forget the rest of the shadows within which the jobs lay that go: who stays and was met by them is not seen."""
    sharing.numbers[0] += 1
    for job in gone:
        sharing.job[job].mark = sharing.numbers[0]
    for index in range(nodes):
        node = sharing.node[index].touched
        sharing.node[node].since = now
        for place in range(node * sharing.per_node, (node + 1) * sharing.per_node):
            stays = sharing.place[place]
            if stays.job < 0 or _goes(sharing, stays.job):
                continue
            alike, all_inside, last = False, True, place
            is_over = stays.unseen > 0 and _goes(sharing, stays.unseen - 1)
            for other in range(node * sharing.per_node, (node + 1) * sharing.per_node):
                goes = sharing.place[other]
                if goes.job < 0 or not _goes(sharing, goes.job) or goes.unseen != stays.unseen:
                    continue
                alike = True
                all_inside &= goes.inside > 0 and not _goes(sharing, goes.inside - 1)
                if records[goes.job].start > records[sharing.place[last].job].start:
                    last = other
            if alike and all_inside and last != place:
                stays.unseen = sharing.place[last].inside
            elif alike or is_over:
                stays.unseen = 0
            if stays.inside > 0 and _goes(sharing, stays.inside - 1):
                stays.inside = 0


@lean
def _goes(sharing: Sharing, job: int) -> bool:
    return sharing.job[job].mark == sharing.numbers[0]


@lean
def _begin_shadow(sharing: Sharing, node: int, records: np.ndarray, now: float) -> None:
    """Note when a node's shadow begins, and whether a job that comes lies within the one that it interrupts."""
    places = range(node * sharing.per_node, (node + 1) * sharing.per_node)
    newcomer, first, alone, is_met = -1, -1, sharing.node[node].since < now, False
    for place in places:
        job = sharing.place[place].job
        if job >= 0 and records[job].start == now:
            alone &= newcomer < 0 or newcomer == job
            newcomer = job
        elif job >= 0:
            is_met |= sharing.place[place].unseen == 0
            if first < 0 or sharing.job[job].end < sharing.job[first].end:
                first = job
    sharing.node[node].since = now
    if not alone or newcomer < 0 or not is_met or sharing.job[newcomer].end >= sharing.job[first].end:
        return
    for place in places:
        if sharing.place[place].job == newcomer:
            sharing.place[place].inside = first + 1
