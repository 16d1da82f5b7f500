"""Shared nodes: penalties of overloaded nodes, the ends of their jobs, and the choice of the cheapest nodes."""

from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import Callback, Handle, Kernel, call_formula, record
from swflow.scheduling.machine.allocation import EMPTY, fill, next_in
from swflow.scheduling.machine.resources import Resources

#: The numbers of the penalties: linear in the overload; the same and a second for every overloaded shadow; a formula.
LINEAR, PRINTED, BY_FORMULA = range(3)

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
SHARED_PROCESSOR = record("added", "job")

#: Data of a node: its penalty now, and whether its shadow ends. The others are for `choose_least_shared`: the cost and
#: the load with another process, the number of processes for which the node has room, and of those assigned to it.
SHARED_NODE = record("penalty cost load", "is_touched room taken")

#: The round in which jobs are marked, the number of touched nodes, and whether a formula gave an invalid penalty.
ROUND = record("", "number touched invalid")


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
    processor: np.ndarray
    node: np.ndarray
    round: np.ndarray
    touched: np.ndarray  # scratch: the nodes whose shadows end
    changed: np.ndarray  # scratch: the jobs whose ends change
    by_cost: np.ndarray  # scratch: a heap of nodes
    extra: Any  # data of functions that replace those for what a node charges


def new_sharing(resources: Resources | None, count: int, machine: int, keeps_to_limit: bool) -> Sharing:
    """Return the empty machine; without resources, one whose processors share nothing."""
    shares = resources or Resources(0, np.zeros((0, 1)), np.zeros(1), slows=False)
    nodes = machine // shares.per_node if resources else 0
    sharing = Sharing(
        per_node=int(shares.per_node),
        slows=bool(shares.slows),
        penalty_kind=_kind_of(shares.penalty),
        formula=0 if isinstance(shares.penalty, str) else shares.penalty.address,
        demands=np.require(np.asarray(shares.demands).reshape(-1, len(shares.capacities)), np.float64, ["C", "W"]),
        capacities=np.require(shares.capacities, np.float64, ["C", "W"]),
        limit=float(np.round(shares.limit * STEPS) / STEPS) if keeps_to_limit else np.inf,
        usage=np.zeros((nodes, len(shares.capacities))),
        later=np.zeros((nodes, len(shares.capacities))),
        job=np.zeros(count if resources else 0, SHARER),
        processor=np.zeros(machine if resources else 0, SHARED_PROCESSOR),
        node=np.zeros(nodes, SHARED_NODE),
        round=np.zeros(1, ROUND),
        touched=np.empty(nodes, np.int64),
        changed=np.empty(machine if resources else 0, np.int64),
        by_cost=np.empty(nodes, np.int64),
        extra=0,
    )
    if resources:
        sharing.job["allowed"] = np.inf if shares.allowed is None else shares.allowed
        sharing.job["end"] = np.nan
        sharing.processor["job"] = -1
    count_within_limit(sharing)
    return sharing


def count_within_limit(sharing: Sharing) -> None:
    """Compute how many processes of each job fit on an empty node within the limit, if there is a limit."""
    if sharing.limit < np.inf:
        _COUNT_TOGETHER(Handle([sharing]))


def _count_together(sharing: Sharing) -> int:
    for item in range(sharing.job.size):
        job = sharing.job[item]
        while job.together < sharing.per_node:
            if not _cost_with(sharing, sharing.later[0], item, job.together + 1) <= sharing.limit:
                break
            job.together += 1
    return 0


_COUNT_TOGETHER = Kernel(_count_together)


def _kind_of(penalty: str | Callback) -> int:
    if isinstance(penalty, Callback):
        return BY_FORMULA
    return PRINTED if penalty == "printed" else LINEAR


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
                sharing.round[0].invalid = 1  # the caller raises an error
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
    per_node, node_of, by_cost = sharing.per_node, sharing.node, sharing.by_cost
    chosen[:] = EMPTY
    for number in range(machine // per_node):
        node_of[number].room = 0
        node_of[number].taken = 0
    size = 0  # size of the heap of the nodes with room, the cheapest on top
    processor = next_in(eligible, 0, machine)
    while processor < machine:
        number = processor // per_node
        node = node_of[number]
        if node.room == 0:
            _set_cost(sharing, usage[number], number, job)
            if node.cost <= limit:
                by_cost[size] = number
                size += 1
        node.room += 1
        processor = next_in(eligible, processor + 1, machine)
    if size * per_node < width:
        return False
    for top in range(size // 2 - 1, -1, -1):
        _sink_node(sharing, size, top)
    for _ in range(width):
        if size == 0:
            return False
        number = by_cost[0]
        node = node_of[number]
        node.taken += 1
        _set_cost(sharing, usage[number], number, job)
        if node.taken == node.room or node.cost > limit:
            size -= 1
            by_cost[0] = by_cost[size]
        _sink_node(sharing, size, 0)
    for number in range(machine // per_node):
        processor = number * per_node
        for _ in range(node_of[number].taken):
            processor = next_in(eligible, processor, machine)
            fill(chosen, processor, processor)
            processor += 1
    return True


def _sink_node(sharing: Sharing, size: int, slot: int) -> None:
    """Move a node of the heap down to its position: by penalty, load and number."""
    nodes, heap = sharing.node, sharing.by_cost
    while True:
        child = 2 * slot + 1
        if child >= size:
            return
        if child + 1 < size and _costs_less(nodes, heap[child + 1], heap[child]):
            child += 1
        if not _costs_less(nodes, heap[child], heap[slot]):
            return
        heap[slot], heap[child] = heap[child], heap[slot]
        slot = child


def _costs_less(nodes: np.ndarray, one: int, other: int) -> bool:
    """Return whether a process costs less on one node than on another."""
    return (nodes[one].cost, nodes[one].load, one) < (nodes[other].cost, nodes[other].load, other)


def add_demand(sharing: Sharing, usage: np.ndarray, pool: np.ndarray, placement: Any, job: int, sign: int) -> None:
    """Add the demand of a job to a usage, or subtract it (sign -1)."""
    for index in range(placement.first, placement.first + placement.ranges):
        for processor in range(pool[index, 0], pool[index, 1] + 1):
            for resource in range(usage.shape[1]):
                usage[processor // sharing.per_node, resource] += sign * sharing.demands[job, resource]


def whole_nodes(sharing: Sharing, chosen: np.ndarray, machine: int) -> None:
    """Extend a set of processors to whole nodes."""
    processor = next_in(chosen, 0, machine)
    while processor < machine:
        node = processor // sharing.per_node
        fill(chosen, node * sharing.per_node, (node + 1) * sharing.per_node - 1)
        processor = next_in(chosen, (node + 1) * sharing.per_node, machine)


# -- what a node charges; an implementation of a paper's own rules may replace these


def penalty_at(sharing: Sharing, processor: int) -> float:
    """Return the penalty of a processor's node for its job."""
    return sharing.node[processor // sharing.per_node].penalty


def charge_of(sharing: Sharing, node: int) -> float:
    """Return the penalty of a node by its usage."""
    return penalty_with(sharing, sharing.usage[node], 0, 0)


def jobs_left(sharing: Sharing, jobs: np.ndarray, records: np.ndarray, now: float) -> None:
    """Note that jobs are about to leave the touched nodes."""


def job_came(sharing: Sharing, pool: np.ndarray, placement: Any, job: int, records: np.ndarray, now: float) -> None:
    """Note that a job starts on its nodes, where those that start after it are not yet."""


def jobs_came(sharing: Sharing, records: np.ndarray, now: float) -> None:
    """Note that jobs started on the touched nodes."""


# -- the progress of jobs


def _most_added(sharing: Sharing, pool: np.ndarray, placement: Any, time: float) -> float:
    """Return the most that one of a job's nodes adds to its run time so far and in another piece of that."""
    most = 0.0
    for index in range(placement.first, placement.first + placement.ranges):
        processor = pool[index, 0]
        while processor <= pool[index, 1]:
            most = max(most, sharing.processor[processor].added + penalty_at(sharing, processor) * time)
            processor = (processor // sharing.per_node + 1) * sharing.per_node
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
        processor = pool[index, 0]
        while processor <= pool[index, 1]:
            left = time + most - sharing.processor[processor].added
            ahead = min(ahead, left / (1.0 + penalty_at(sharing, processor)))
            processor = (processor // per_node + 1) * per_node
    sharing.job[job].progress += ahead
    for index in range(first, first + ranges):
        for processor in range(pool[index, 0], pool[index, 1] + 1):
            sharing.processor[processor].added += penalty_at(sharing, processor) * ahead


def _end_of(sharing: Sharing, pool: np.ndarray, placement: Any, job: int, start: float, run: float) -> float:
    """Return the end of a job if its nodes do not change, and store whether it is killed then."""
    worst = _most_added(sharing, pool, placement, max(run - sharing.job[job].progress, 0.0))
    end = start + run
    if worst > 0.0:
        end = np.round((end + worst) * TICKS) / TICKS
    sharing.job[job].killed = end > start + sharing.job[job].allowed
    return min(end, start + sharing.job[job].allowed)


def _add_changed(sharing: Sharing, node: int, count: int) -> int:
    """Add the jobs of a node that are not marked in this round to the ``count`` changed ones; return their number."""
    for processor in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        job = sharing.processor[processor].job
        if job >= 0 and sharing.job[job].mark != sharing.round[0].number:
            sharing.job[job].mark = sharing.round[0].number
            sharing.changed[count] = job
            count += 1
    return count


def _touch(sharing: Sharing, pool: np.ndarray, placement: Any) -> None:
    """Note that the shadows of a job's nodes end."""
    for index in range(placement.first, placement.first + placement.ranges):
        for node in range(pool[index, 0] // sharing.per_node, pool[index, 1] // sharing.per_node + 1):
            if not sharing.node[node].is_touched:
                sharing.node[node].is_touched = True
                sharing.touched[sharing.round[0].touched] = node
                sharing.round[0].touched += 1


def _assign(sharing: Sharing, pool: np.ndarray, placement: Any, job: int) -> None:
    """Set the job of the processors of a placement; -1 if they become idle."""
    for index in range(placement.first, placement.first + placement.ranges):
        for processor in range(pool[index, 0], pool[index, 1] + 1):
            sharing.processor[processor].job = job
            sharing.processor[processor].added = 0.0


def _set_usage(sharing: Sharing, node: int) -> None:
    """Compute the usage of a node from its jobs."""
    usage = sharing.usage[node]
    usage[:] = 0.0
    for processor in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        job = sharing.processor[processor].job
        for resource in range(usage.size if job >= 0 else 0):
            usage[resource] += sharing.demands[job, resource]


def _update_progress(
    sharing: Sharing, pool: np.ndarray, placements: np.ndarray, records: np.ndarray, now: float
) -> None:
    """Update the progress of all jobs on touched nodes."""
    sharing.round[0].number += 1
    count = 0
    for index in range(sharing.round[0].touched):
        count = _add_changed(sharing, sharing.touched[index], count)
    for index in range(count):
        job = sharing.changed[index]
        _progress(sharing, pool, placements[job], job, records[job].start, now)


def _charge(sharing: Sharing, come: bool) -> int:
    """Compute the usage and the penalty of all touched nodes; return the number of jobs there."""
    now = sharing.round[0]
    # A shadow that costs a second begins after all ends and starts of an instant.
    is_final = sharing.penalty_kind != PRINTED or come
    now.number += 1
    count = 0
    for index in range(now.touched):
        node = sharing.touched[index]
        sharing.node[node].is_touched = not is_final
        _set_usage(sharing, node)
        sharing.node[node].penalty = charge_of(sharing, node)
        if sharing.penalty_kind == PRINTED and come and sharing.node[node].penalty > 0.0:
            for processor in range(node * sharing.per_node, (node + 1) * sharing.per_node):
                sharing.processor[processor].added += 1.0
        count = _add_changed(sharing, node, count)
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

    Return the number of jobs with a new end; these are the first of ``sharing.changed``.
    """
    for job in jobs:
        _touch(sharing, pool, placements[job])
    if sharing.slows:
        _update_progress(sharing, pool, placements, records, now)
    if not come:
        jobs_left(sharing, jobs, records, now)
    for job in jobs:
        _assign(sharing, pool, placements[job], job if come else -1)
        if come:
            job_came(sharing, pool, placements[job], job, records, now)
    count = _charge(sharing, come)
    if sharing.slows:
        for index in range(count):
            job = sharing.changed[index]
            end = _end_of(sharing, pool, placements[job], job, records[job].start, records[job].run)
            sharing.job[job].end = end
        if come:
            jobs_came(sharing, records, now)
    if sharing.penalty_kind != PRINTED or come:
        sharing.round[0].touched = 0
    return count if sharing.slows else 0
