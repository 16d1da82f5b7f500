"""Shared nodes: penalties of overloaded nodes, the ends of their jobs, and the choice of the cheapest nodes."""

from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import Handle, Kernel, call_formula, record
from swflow.scheduling.machine.allocation import NO_PLACES, fill, next_in
from swflow.scheduling.machine.resources import Resources

#: The numbers of the penalties: linear in the overload; the same and a second for every overloaded shadow; a formula.
LINEAR, PRINTED, BY_FORMULA = range(3)
PENALTY_KINDS: dict[Any, int] = {"linear": LINEAR, "forgets-shadows": LINEAR, "printed": PRINTED}

#: Ends of penalized jobs are rounded to this fraction of a second, so that rounding errors do not decide ties.
TICKS = 2.0**20

#: Penalties of nodes are rounded to this fraction before comparisons, for the same reason.
STEPS = 2.0**30

#: The maximum penalty: a job that takes 1e9 times as long would never end.
MOST_PENALTY = 1e9


#: Data of a job: how many of its processes fit on a node within the limit, the run time at which it is killed, the part
#: of its run time without penalties that is done, its end (seconds), whether it is killed then, and the round in which
#: it was last marked.
SHARER = record("allowed progress end", "together killed mark")

#: Data of a processor: its job (-1 if idle) and the time that its node has added to that job's run time (seconds).
#: ``changed`` is a separate list: the jobs whose ends change. ``inside``, ``unseen`` and ``since`` (of a node) are for
#: replacements of the functions that say what a node charges.
SHARED_PLACE = record("added", "job inside unseen changed")

#: Data of a node: its penalty now, and whether its shadow ends. ``touched`` is the list of the
#: nodes whose shadows end; the others are for `choose_least_shared`: the number of processes for which a node has room,
#: and of those assigned to it, the cost of another one, and a heap of the nodes by that.
SHARED_NODE = record("penalty since cost load", "is_touched touched room taken heap")


class Sharing(NamedTuple):
    """The jobs of each node, its penalty, and the progress of the jobs; if ``per_node`` is 0, everything is empty."""

    per_node: int  # processors of a node
    slows: bool  # whether penalties prolong jobs; otherwise they only guide the allocation
    penalty_kind: int
    formula: int
    demands: np.ndarray  # (jobs, resources), of each process
    capacities: np.ndarray  # (resources,), of each node
    limit: float  # the penalty above which a job waits
    usage: np.ndarray  # (nodes, resources), now
    later: np.ndarray  # the same, scratch
    job: np.ndarray
    place: np.ndarray
    node: np.ndarray
    numbers: np.ndarray  # the round, the number of touched nodes, and whether a formula gave an invalid penalty


def new_sharing(resources: Resources | None, count: int, machine: int, keeps_to_limit: bool) -> Sharing:
    """Return the empty machine; without resources, one whose processors share nothing."""
    shares = resources or Resources(0, np.zeros((0, 1)), np.zeros(1), slows=False)
    nodes = machine // shares.per_node if resources else 0
    sharing = Sharing(
        per_node=int(shares.per_node),
        slows=bool(shares.slows),
        penalty_kind=PENALTY_KINDS.get(shares.penalty, BY_FORMULA),
        formula=0 if isinstance(shares.penalty, str) else shares.penalty.address,
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
    """Compute how many processes of each job fit on an empty node within the limit."""
    for item in range(sharing.job.size):
        job = sharing.job[item]
        while job.together < sharing.per_node:
            if not _cost_with(sharing, sharing.later[0], item, job.together + 1) <= sharing.limit:
                break
            job.together += 1
    return 0


_BEAR = Kernel(_bear)


def limit_of(sharing: Sharing, job: int, width: int, machine: int) -> float:
    """Return the limit of a job; a job that would exceed it even on the empty machine is exempt."""
    if sharing.limit < np.inf and sharing.job[job].together * (machine // sharing.per_node) >= width:
        return sharing.limit
    return np.inf


def penalty_with(sharing: Sharing, usage: np.ndarray, job: int, processes: int) -> float:
    """Return the penalty of a node with this usage after adding processes of a job (Guim et al., eq. 2)."""
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
            elif not (value < 0.0 and asked <= capacity):  # below the capacity, a negative value is 0
                sharing.numbers[2] = 1  # the caller raises an error
        else:
            penalty += max(asked / capacity, 1.0) - 1.0
    return penalty


def _cost_with(sharing: Sharing, usage: np.ndarray, job: int, processes: int) -> float:
    """Return that penalty, rounded for comparisons of nodes."""
    return np.round(penalty_with(sharing, usage, job, processes) * STEPS) / STEPS


def _set_cost(sharing: Sharing, usage: np.ndarray, node: int, job: int) -> None:
    """Set the penalty of a node, and the load of its scarcest resource, after adding another process of a job."""
    processes, load = sharing.node[node].taken + 1, 0.0
    for resource in range(usage.size):
        load = max(load, (usage[resource] + processes * sharing.demands[job, resource]) / sharing.capacities[resource])
    sharing.node[node].cost = _cost_with(sharing, usage, job, processes)
    sharing.node[node].load = np.round(load * STEPS) / STEPS


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
    Assign each process of a job, one after the other, to the node with the least penalty after that.

    Of equal nodes the least loaded one is chosen, then the first. Return whether the processes fit on nodes whose
    penalty stays within the limit.
    """
    per_node, node_of = sharing.per_node, sharing.node
    chosen[:] = NO_PLACES
    for number in range(machine // per_node):
        node_of[number].room = 0
        node_of[number].taken = 0
    size = 0  # of the heap of the nodes with room, the cheapest on top
    place = next_in(eligible, 0, machine)
    while place < machine:
        number = place // per_node
        node = node_of[number]
        if node.room == 0:
            _set_cost(sharing, usage[number], number, job)
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
        _set_cost(sharing, usage[number], number, job)
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


def _sink_node(nodes: np.ndarray, size: int, place: int) -> None:
    """Move a node of a heap down to its position: by penalty, load and number."""
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


def _costs_less(nodes: np.ndarray, one: int, other: int) -> bool:
    """Return whether a process costs less on one node than on another."""
    return (nodes[one].cost, nodes[one].load, one) < (nodes[other].cost, nodes[other].load, other)


def add_demand(sharing: Sharing, usage: np.ndarray, pool: np.ndarray, placement: Any, job: int, sign: int) -> None:
    """Add the demand of a job to a usage, or subtract it (sign -1)."""
    for index in range(placement.first, placement.first + placement.ranges):
        for place in range(pool[index, 0], pool[index, 1] + 1):
            for resource in range(usage.shape[1]):
                usage[place // sharing.per_node, resource] += sign * sharing.demands[job, resource]


def whole_nodes(sharing: Sharing, chosen: np.ndarray, machine: int) -> None:
    """Extend a set of processors to whole nodes."""
    place = next_in(chosen, 0, machine)
    while place < machine:
        node = place // sharing.per_node
        fill(chosen, node * sharing.per_node, (node + 1) * sharing.per_node - 1)
        place = next_in(chosen, (node + 1) * sharing.per_node, machine)


# -- what a node charges; an implementation of a paper's own rules may replace these


def penalty_at(sharing: Sharing, place: int) -> float:
    """Return the penalty of a processor's node for its job."""
    return sharing.node[place // sharing.per_node].penalty


def charge_of(sharing: Sharing, node: int) -> float:
    """Return the penalty of a node by its usage."""
    return penalty_with(sharing, sharing.usage[node], 0, 0)


def jobs_left(sharing: Sharing, jobs: np.ndarray, nodes: int, records: np.ndarray, now: float) -> None:
    """Note that jobs are about to leave the first ``nodes`` touched nodes."""


def jobs_came(sharing: Sharing, nodes: int, records: np.ndarray, now: float) -> None:
    """Note that jobs started on the first ``nodes`` touched nodes."""


# -- the progress of jobs


def _most_added(sharing: Sharing, pool: np.ndarray, placement: Any, time: float) -> float:
    """Return the most that one of a job's nodes adds to its run time so far and in another piece of that."""
    most = 0.0
    for index in range(placement.first, placement.first + placement.ranges):
        place = pool[index, 0]
        while place <= pool[index, 1]:
            most = max(most, sharing.place[place].added + penalty_at(sharing, place) * time)
            place = (place // sharing.per_node + 1) * sharing.per_node
    return most


def _progress(sharing: Sharing, pool: np.ndarray, placement: Any, job: int, start: float, now: float) -> None:
    """
    Update the progress of a job since its last update.

    With ``A_n`` added on node ``n`` so far and its penalty ``c_n``, a piece ``x`` of the run time takes
    ``x + max(A_n + c_n x) - max(A_n)``; so in a time ``t`` the job progresses by
    ``min((t + max(A_n) - A_n) / (1 + c_n))``.
    """
    per_node, first, ranges = sharing.per_node, placement.first, placement.ranges
    most = _most_added(sharing, pool, placement, 0.0)
    time = now - (start + sharing.job[job].progress + most)
    if time <= 0.0:
        return
    ahead = np.inf
    for index in range(first, first + ranges):
        place = pool[index, 0]
        while place <= pool[index, 1]:
            ahead = min(ahead, (time + most - sharing.place[place].added) / (1.0 + penalty_at(sharing, place)))
            place = (place // per_node + 1) * per_node
    sharing.job[job].progress += ahead
    for index in range(first, first + ranges):
        for place in range(pool[index, 0], pool[index, 1] + 1):
            sharing.place[place].added += penalty_at(sharing, place) * ahead


def _end_of(sharing: Sharing, pool: np.ndarray, placement: Any, job: int, start: float, run: float) -> float:
    """Return the end of a job if its nodes do not change, and store whether it is killed then."""
    worst = _most_added(sharing, pool, placement, max(run - sharing.job[job].progress, 0.0))
    end = start + run
    if worst > 0.0:
        end = np.round((end + worst) * TICKS) / TICKS
    sharing.job[job].killed = end > start + sharing.job[job].allowed
    return min(end, start + sharing.job[job].allowed)


def _look_at(sharing: Sharing, node: int, count: int) -> int:
    """Add the jobs of a node that are not marked in this round to the ``count`` changed ones."""
    for place in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        job = sharing.place[place].job
        if job >= 0 and sharing.job[job].mark != sharing.numbers[0]:
            sharing.job[job].mark = sharing.numbers[0]
            sharing.place[count].changed = job
            count += 1
    return count


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
    End the shadows of the nodes where ``jobs`` start (``come``) or end now, and compute the new ends of all jobs there.

    Return the number of jobs with a new end; these are the first ``changed`` of ``sharing.place``.
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
    if not come:
        jobs_left(sharing, jobs, nodes, records, now)
    for job in jobs:
        placement = placements[job]
        for index in range(placement.first, placement.first + placement.ranges):
            for place in range(pool[index, 0], pool[index, 1] + 1):
                sharing.place[place].job = job if come else -1
                sharing.place[place].added = 0.0
                sharing.place[place].inside = 0
                sharing.place[place].unseen = 0
    # A shadow that costs a second begins after all ends and starts of an instant.
    charge = sharing.penalty_kind == PRINTED and come
    sharing.numbers[1] = nodes if sharing.penalty_kind == PRINTED and not come else 0
    sharing.numbers[0] += 1
    count = 0
    for index in range(nodes):
        node = sharing.node[index].touched
        sharing.node[node].is_touched = sharing.numbers[1] > 0
        usage = sharing.usage[node]
        usage[:] = 0.0
        for place in range(node * per_node, (node + 1) * per_node):
            there = sharing.place[place].job
            for resource in range(usage.size if there >= 0 else 0):
                usage[resource] += sharing.demands[there, resource]
        sharing.node[node].penalty = charge_of(sharing, node)
        if charge and sharing.node[node].penalty > 0.0:
            for place in range(node * per_node, (node + 1) * per_node):
                sharing.place[place].added += 1.0
        count = _look_at(sharing, node, count)
    if not sharing.slows:
        return 0
    for index in range(count):
        job = sharing.place[index].changed
        sharing.job[job].end = _end_of(sharing, pool, placements[job], job, records[job].start, records[job].run)
    if come:
        jobs_came(sharing, nodes, records, now)
    return count
