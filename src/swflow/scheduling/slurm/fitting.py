"""How many processors a job can use of free nodes."""

import numpy as np

from swflow.scheduling.machine.allocation import EMPTY, ONE, lowest
from swflow.scheduling.slurm.node_state import NodeState, total
from swflow.scheduling.slurm.state import SlurmState

# -- what a job can use


def counts_by_node(state: SlurmState, item: int) -> bool:
    """Return whether a job needs a resource besides processors, or several nodes."""
    if state.machine.requested[item] > 1:
        return True
    for resource in range(state.capacities.size):  # noqa: SIM110
        if state.demands[item, resource] > 0:
            return True
    return False


def processors_on_node(state: SlurmState, item: int, free: np.ndarray, units: np.ndarray, node: int) -> int:
    """
    Return how many free processors of a node a job can use: each needs its part of the job's units.

    A job with equal parts on the requested nodes uses such a part or none, as with ``--ntasks-per-node``.
    """
    found, width, share = free[node], state.jobs[item].processors, state.machine.share[item]
    for resource in range(state.capacities.size):
        needed = state.demands[item, resource]
        if needed > 0:
            found = min(found, units[resource, node] * width // needed)
    if share > 0:
        return share if found >= share else 0
    return found


def units_of_part(state: SlurmState, item: int, processors: int, resource: int) -> int:
    """Return the units of a resource that some processors of a job take from a node."""
    width = state.jobs[item].processors
    return (processors * state.demands[item, resource] + width - 1) // width


def could_use(state: SlurmState, item: int, free: np.ndarray, units: np.ndarray, nodes: np.ndarray) -> int:
    """Return how many processors of the usable ones of some nodes a job can use, given what is free: `fitting`."""
    machine = state.machine
    head = machine.head[0]
    head.mark += 1
    head.fitting = head.hosts = head.counted = 0
    for index in range(nodes.size):
        word = nodes[index] & machine.search.usable[index]
        while word != EMPTY:
            node = (index << 6) + lowest(word)
            word &= word - ONE
            note_free(machine, free, units, node)
            note_fitting(machine, node, processors_on_node(state, item, free, units, node))
    return count_fitting(state, item)


def count_fitting(state: SlurmState, item: int) -> int:
    """Return how many processors a job can use, as counted; less than it needs if the nodes are too few."""
    head = state.machine.head[0]
    lacking = state.machine.requested[item] - head.hosts
    return min(head.fitting, state.jobs[item].processors - lacking) if lacking > 0 else head.fitting


def note_fitting(machine: NodeState, node: int, processors: int) -> None:
    """Note the processors of a node that a job can use, of which it could use fewer before."""
    head, before = machine.head[0], machine.search.fitting[node]
    if before == 0 and processors > 0:
        head.hosts += 1
    head.fitting += processors - before
    machine.search.fitting[node] = processors


def note_free(machine: NodeState, free: np.ndarray, units: np.ndarray, node: int) -> None:
    """Note the free processors and units of a node before running jobs end."""
    machine.search.marks[node] = machine.head[0].mark
    machine.search.then[node], machine.search.fitting[node] = free[node], 0
    for resource in range(machine.search.sums.size):
        machine.search.later[resource, node] = units[resource, node]


def free_for(state: SlurmState, item: int) -> int:
    """Return how many free processors of the usable nodes a job can use; maybe more if they do not suffice."""
    machine = state.machine
    found = total(machine.free, machine.search.usable, machine.idle)
    machine.head[0].counted = -1
    if found < state.jobs[item].processors or not counts_by_node(state, item):
        return found
    return could_use(state, item, machine.free, machine.units, machine.idle)


def all_for(state: SlurmState, item: int) -> int:
    """Return how many processors of the usable nodes a job can use if no other job runs."""
    machine = state.machine
    if counts_by_node(state, item):
        return could_use(state, item, machine.sizes, machine.capacities, machine.search.usable)
    return total(machine.sizes, machine.search.usable, machine.search.usable)


def free_for_kind(machine: NodeState, kind: int, nodes: np.ndarray) -> int:
    """Return at least as many processors as any job of a kind can use now of a set of nodes."""
    if machine.search.sums.size == 0:
        return total(machine.free, nodes, nodes)
    found = 0
    for index in range(nodes.size):
        word = nodes[index]
        while word != EMPTY:
            node = (index << 6) + lowest(word)
            word &= word - ONE
            usable = machine.free[node]
            for resource in range(machine.search.sums.size):
                if machine.rates[kind, resource] > 0:
                    usable = min(usable, int(machine.units[resource, node] / machine.rates[kind, resource]))
            found += usable
    return found


def needs_as_much(state: SlurmState, item: int, other: int) -> bool:
    """Return whether a job needs at least as many units of each resource per processor, and nodes, as another one."""
    width, width_of_other = state.jobs[item].processors, state.jobs[other].processors
    nodes, nodes_of_other = state.machine.requested[item], state.machine.requested[other]
    if nodes_of_other > 1 and (nodes != nodes_of_other or width != width_of_other):
        return False
    for resource in range(state.capacities.size):
        if state.demands[item, resource] / width < state.demands[other, resource] / width_of_other:
            return False
    return True
