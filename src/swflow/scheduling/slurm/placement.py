"""
Nodes with counted processors: the operations of `swflow.scheduling.state.operations`, and the choice of a job's nodes.

A job's units of resources are spread over its processors, and a node gives whole units. A job that requested several
nodes has equal parts on them if its processors can be divided, or else at least one processor on each.

Sets of nodes are bits as in `swflow.scheduling.machine.allocation`.
"""

import math
from typing import Any

import numpy as np

from swflow.scheduling.machine.allocation import EMPTY, ONE, assign, clear, fill, lowest, ones, remove
from swflow.scheduling.slurm import operations as of_slurm
from swflow.scheduling.slurm.fitting import (
    could_use,
    count_fitting,
    counts_by_node,
    free_for,
    note_fitting,
    note_free,
    processors_on_node,
    units_of_part,
)
from swflow.scheduling.slurm.node_state import NodeState, total
from swflow.scheduling.slurm.operations import is_gone, would_start
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.state import operations

#: Seconds between the barriers to which the first group of ends is aligned, and the span of this group; and the time
#: that a job takes to end beyond its limit (`_will_run_test` and `_guess_job_end` in
#: src/plugins/select/cons_common/job_test.c, KillWait in man slurm.conf).
_FIRST_GROUP, _KILL_WAIT = 30.0, 30.0


# -- the choice of nodes


def choose_free_nodes(state: SlurmState, item: int) -> None:
    """Choose parts of the usable nodes for a job that starts now, after `free_for`."""
    machine = state.machine
    free = machine.free
    if counts_by_node(state, item):
        free = machine.search.fitting
        _clear_rest(machine)
    _choose_nodes(machine, free, state.jobs[item].processors, machine.requested[item])


def choose_nodes_then(state: SlurmState, item: int) -> None:
    """Choose parts of the usable nodes for a job that starts at the time that `would_start` returned."""
    machine = state.machine
    free = machine.search.fitting
    if counts_by_node(state, item):
        _clear_rest(machine)
    else:
        free = machine.search.then
        _look_ahead(machine)
    _choose_nodes(machine, free, state.jobs[item].processors, machine.requested[item])


def _clear_rest(machine: NodeState) -> None:
    """Note that a job can use no processors of the nodes that the last count leaves out."""
    for node in range(machine.search.fitting.size):
        if machine.search.marks[node] != machine.head[0].mark:
            machine.search.fitting[node] = 0


def _choose_nodes(machine: NodeState, free: np.ndarray, width: int, nodes: int) -> None:
    """
    Choose parts of the usable nodes for a job, given their free processors, which suffice, on at least some nodes.

    Of the sets of consecutive nodes of the lowest weight, Slurm takes the smallest one that suffices, or else the
    largest one and then others. Of a set that suffices, it takes the node with the fewest processors that suffice
    alone, or else the nodes in their order, and leaves a processor for each of the other nodes that are needed
    (`_eval_nodes` and `_cpus_to_use` in src/plugins/select/cons_tres/job_test.c).
    """
    runs, size = machine.search.runs, _find_runs(machine, free)
    machine.head[0].chosen = 0
    machine.picked[:] = EMPTY
    while width > 0:
        best = 0
        for k in range(1, size):
            if _is_better(runs[k], runs[best], width, nodes):
                best = k
        run = runs[best]
        only = -1
        for node in range(run.first, run.last + 1):
            if nodes <= 1 and free[node] >= width and (only < 0 or free[node] < free[only]):
                only = node
        if only >= 0:
            _add_part(machine, only, width)
            return
        for node in range(run.first, run.last + 1):
            if width > 0:
                taken = min(free[node], width - max(nodes - 1, 0))
                _add_part(machine, node, taken)
                width -= taken
                nodes -= 1
        run.processors = 0


def _is_better(one: Any, other: Any, width: int, nodes: int) -> bool:
    """Return whether one set of consecutive nodes is taken before an earlier one."""
    if one.processors == 0 or other.processors == 0:
        return other.processors == 0
    if one.weight != other.weight:
        return one.weight < other.weight
    if one.processors >= width and one.nodes >= nodes:
        return other.processors < width or other.nodes < nodes or one.processors < other.processors
    return one.processors > other.processors


def _find_runs(machine: NodeState, free: np.ndarray) -> int:
    """Find the sets of consecutive usable nodes with free processors; return their number."""
    runs, size, before = machine.search.runs, 0, -2
    for index in range(machine.search.usable.size):
        word = machine.search.usable[index]
        while word != EMPTY:
            node = (index << 6) + lowest(word)
            word &= word - ONE
            if free[node] == 0:
                continue
            if node > before + 1 or machine.weights[node] != machine.weights[before]:
                runs[size].first, runs[size].weight = node, machine.weights[node]
                runs[size].processors = runs[size].nodes = 0
                size += 1
            runs[size - 1].last = node
            runs[size - 1].nodes += 1
            runs[size - 1].processors += free[node]
            before = node
    return size


def _add_part(machine: NodeState, node: int, processors: int) -> None:
    head = machine.head[0]
    machine.chosen[head.chosen].node = node
    machine.chosen[head.chosen].processors = processors
    head.chosen += 1
    fill(machine.picked, node, node)


# -- running jobs


def _occupy(state: SlurmState, item: int, now: float) -> None:
    machine = state.machine
    head, parts, first = machine.head[0], machine.parts, -1
    for k in range(head.chosen):
        node, processors = machine.chosen[k].node, machine.chosen[k].processors
        machine.free[node] -= processors
        for resource in range(state.capacities.size):
            machine.units[resource, node] -= units_of_part(state, item, processors, resource)
        if machine.free[node] == 0:
            clear(machine.idle, node, node)
        part = head.spare
        head.spare = parts[part].next
        parts[part].node, parts[part].processors, parts[part].next = node, processors, first
        first = part
    _insert_end(state, item, first)


def _release(state: SlurmState, item: int, now: float) -> None:
    machine = state.machine
    head, parts = machine.head[0], machine.parts
    part = _remove_end(state, item)
    while part >= 0:
        node, following = parts[part].node, parts[part].next
        machine.free[node] += parts[part].processors
        for resource in range(state.capacities.size):
            machine.units[resource, node] += units_of_part(state, item, parts[part].processors, resource)
        fill(machine.idle, node, node)
        parts[part].next = head.spare
        head.spare = part
        part = following


def _extend(state: SlurmState, item: int, now: float) -> None:
    _insert_end(state, item, _remove_end(state, item))


def _insert_end(state: SlurmState, item: int, part: int) -> None:
    """Insert a job into the list of ends."""
    head, ends = state.machine.head[0], state.machine.ends
    end = float(math.floor(state.jobs[item].planned_end))
    place = head.running
    while place > 0 and (ends[place - 1].time > end or (ends[place - 1].time == end and ends[place - 1].job > item)):
        _copy(ends, place - 1, place)
        place -= 1
    ends[place].time, ends[place].job, ends[place].part = end, item, part
    head.running += 1
    head.version += 1
    head.releases = -1


def _remove_end(state: SlurmState, item: int) -> int:
    """Remove a job from the list of ends; return its first part."""
    head, ends = state.machine.head[0], state.machine.ends
    place = 0
    while ends[place].job != item:
        place += 1
    part = ends[place].part
    head.running -= 1
    head.version += 1
    head.releases = -1
    for later in range(place, head.running):
        _copy(ends, later + 1, later)
    return part


def _copy(ends: np.ndarray, source: int, target: int) -> None:
    one = ends[source]
    ends[target].time, ends[target].job, ends[target].part = one.time, one.job, one.part


# -- plans


def planned_start(state: SlurmState, item: int, clock: float, until: float) -> tuple[float, int]:
    """
    Return when a job fits on the usable nodes, by the planned ends of running jobs, and the processors it can use then.

    The time is infinite if they are too few when all jobs have ended that are planned to end until a time. Slurm lets
    the jobs on these nodes end in groups, the first of 30 s and each further one of at least twice the span, and tests
    after each whether the job fits.
    """
    machine = state.machine
    head, releases, width = machine.head[0], machine.releases, state.jobs[item].processors
    head.ended = 0
    free = free_for(state, item)
    if free >= width:
        return clock, free
    if head.releases < 0:
        _list_releases(machine)
    by_node = counts_by_node(state, item)
    if by_node:
        free = total(machine.free, machine.search.usable, machine.idle)
        _open_sums(state)
    place, span = 0, _FIRST_GROUP
    while place < head.releases and _usable_of(machine, place) == EMPTY:
        place += 1
    first = releases[place].time
    barrier = first + _FIRST_GROUP - (first + state.own.parameters[0].epoch) % _FIRST_GROUP
    while place < head.releases:
        last = -1  # the last release of the group
        while place < head.releases:
            time = releases[place].time
            if time > until:
                most = _most_then(state, item, free, place, by_node)
                if most < width:
                    return np.inf, most
            if time > barrier + span and last >= 0:  # the group ends if the job before has usable nodes
                former = releases[place - 1].job
                if releases[place].job != former and releases[last].job == former:
                    break
            own = _usable_of(machine, place)
            if own != EMPTY:
                last = place
                free += releases[place].processors * ones(own)
                if by_node:
                    _add_sums(state, place, ones(own))
            place += 1
        most = _most_then(state, item, free, place, by_node)
        if most >= width:
            head.ended, time = place, releases[last].time
            return time if time > clock else max(time + _KILL_WAIT, clock + 1), most
        while place < head.releases and releases[place].time > barrier + span:
            span *= 2
    return np.inf, _most_then(state, item, free, place, by_node)


def _usable_of(machine: NodeState, place: int) -> Any:
    """Return the usable nodes of a release, a word of a set."""
    return machine.search.usable[machine.releases[place].word] & machine.released[place]


def _open_sums(state: SlurmState) -> None:
    """Sum the free units of usable nodes."""
    machine = state.machine
    for resource in range(machine.search.sums.size):
        machine.search.sums[resource] = total(machine.units[resource], machine.search.usable, machine.search.usable)


def _add_sums(state: SlurmState, place: int, nodes: int) -> None:
    """Add the units of some nodes of a release."""
    one = state.machine.releases[place]
    for resource in range(state.machine.search.sums.size):
        state.machine.search.sums[resource] += nodes * units_of_part(state, one.job, one.processors, resource)


def _most_then(state: SlurmState, item: int, free: int, place: int, by_node: bool) -> int:
    """
    Return how many processors a job can use after the releases before a place, of ``free`` ones.

    It may be more if they do not suffice.
    """
    machine, job = state.machine, state.jobs[item]
    head = machine.head[0]
    if not by_node or free < job.processors:
        return free
    for resource in range(machine.search.sums.size):
        needed = state.demands[item, resource]
        if machine.search.sums[resource] < needed:
            return machine.search.sums[resource] * job.processors // needed
    if head.counted < 0:
        could_use(state, item, machine.free, machine.units, machine.idle)
    for counted in range(head.counted, place):
        own = _usable_of(machine, counted)
        if own != EMPTY:
            _add_release(state, item, counted, own)
    head.counted = place
    return count_fitting(state, item)


def _add_release(state: SlurmState, item: int, place: int, word: Any) -> None:
    """Add what a running job releases on some nodes to what another job can use."""
    machine, one = state.machine, state.machine.releases[place]
    while word != EMPTY:
        node = (one.word << 6) + lowest(word)
        word &= word - ONE
        if machine.search.marks[node] != machine.head[0].mark:
            note_free(machine, machine.free, machine.units, node)
        machine.search.then[node] += one.processors
        for resource in range(state.capacities.size):
            machine.search.later[resource, node] += units_of_part(state, one.job, one.processors, resource)
        note_fitting(machine, node, processors_on_node(state, item, machine.search.then, machine.search.later, node))


def _list_releases(machine: NodeState) -> None:
    """List what running jobs release by planned end: consecutive parts of a job with as many processors together."""
    head, parts, releases, size = machine.head[0], machine.parts, machine.releases, 0
    for place in range(head.running):
        end, part = machine.ends[place], machine.ends[place].part
        first = size
        if is_gone(machine, end.job):
            continue
        while part >= 0:
            node, processors = parts[part].node, parts[part].processors
            if size == first or releases[size - 1].word != node >> 6 or releases[size - 1].processors != processors:
                one = releases[size]
                one.time, one.job, one.word, one.processors = end.time, end.job, node >> 6, processors
                machine.released[size] = EMPTY
                size += 1
            machine.released[size - 1] |= ONE << np.uint64(node & 63)
            part = parts[part].next
    head.releases = size


def _find_occupied(machine: NodeState, until: float) -> None:
    assign(machine.cycle.occupied, machine.members[machine.search.closed.size - 1])
    remove(machine.cycle.occupied, machine.idle)
    if machine.head[0].releases < 0:
        _list_releases(machine)
    for place in range(machine.head[0].releases):
        if machine.releases[place].time > until:
            break
        machine.cycle.occupied[machine.releases[place].word] &= ~machine.released[place]


def _look_ahead(machine: NodeState) -> None:
    """Compute the free processors of each usable node at the time that `would_start` returned."""
    for node in range(machine.free.size):
        machine.search.then[node] = machine.free[node]
    for place in range(machine.head[0].ended):
        one, word = machine.releases[place], _usable_of(machine, place)
        while word != EMPTY:
            machine.search.then[(one.word << 6) + lowest(word)] += one.processors
            word &= word - ONE


def _free_now(state: SlurmState) -> int:
    return state.options[0].processors - state.counts[0].busy


def _find(state: SlurmState, item: int, width: int, length: float, now: float) -> float:
    assign(state.machine.search.usable, state.machine.members[state.machine.allowed[item]])
    return would_start(state, item, now, np.inf)[0]


#: The implementation of the operations by nodes.
NODES: dict[Any, Any] = {
    operations.occupy: _occupy,
    operations.release: _release,
    operations.extend: _extend,
    operations.free_now: _free_now,
    operations.find: _find,
    of_slurm.would_start: planned_start,
    of_slurm.find_occupied: _find_occupied,
}
