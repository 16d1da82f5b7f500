"""
Nodes with counted processors: the operations of `swflow.scheduling.state.operations`, and the choice of a job's nodes.

Sets of nodes are bits as in `swflow.scheduling.machine.allocation`.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.machine.allocation import EMPTY, ONE, assign, clear, fill, lowest, ones, remove
from swflow.scheduling.nodes import Nodes
from swflow.scheduling.state import operations
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.preempted import Preempted

#: Some processors of a node that a running job has, or will have, and the ``next`` part of the same job, -1 for none.
PART = record("", "node processors next")

#: A running job by its planned end, with its first part.
END = record("time", "job part")

#: Processors of each of some nodes, of one word of a set, that are released at the planned end of a job.
RELEASE = record("time", "job word processors")

#: Consecutive nodes with free processors, and the number of these.
RUN = record("", "first last processors")

#: A slot of a cycle's table: a time span in which the same nodes are not reserved, the ``next`` slot, 0 for none, the
#: number of the first word, from 1 on, of nodes that are reserved in it but not in the next one, 0 for none, and the
#: number of failures that were noted.
SLOT = record("begin end", "next gains failures")

#: A job of a partition with some processors that would end at a time cannot start from the begin of a slot ``until``
#: another time; nor can wider or later ones, since a cycle only adds reservations.
FAILURE = record("end until", "processors partition")

#: The failures that are kept of each slot.
KEPT = 8

#: A bound in a cycle: the free processors of the nodes of a partition that are not reserved before a time.
BOUND = record("until", "free")

#: The number of jobs in ``ends``, of chosen parts and of slots, the first spare part, the processors of the largest
#: node, and how many ``releases`` are before the start of a job by `would_start`. In a cycle, the numbers of jobs that
#: were taken from the queue and that were tested, the first that may start, and the last such one that is known to be
#: within reach. The number of ``releases`` is -1 if they must be listed anew.
HEAD = record("", "releases running chosen slots spare largest ended taken passed hopeful reached")

#: Seconds between the barriers to which the first group of ends is aligned, and the span of this group; and the time
#: that a job takes to end beyond its limit (`_will_run_test` and `_guess_job_end` in
#: src/plugins/select/cons_common/job_test.c, KillWait in man slurm.conf).
_FIRST_GROUP, _KILL_WAIT = 30.0, 30.0


class NodeState(NamedTuple):
    """The free processors of each node, the nodes of running jobs, and the table of a backfill cycle."""

    sizes: np.ndarray  # the processors of each node
    free: np.ndarray  # the free processors of each node
    idle: np.ndarray  # the set of nodes with free processors
    members: np.ndarray  # the sets of nodes that each partition may use
    partition: np.ndarray  # the partition of each job
    parts: np.ndarray  # the parts of all running jobs, and the spare ones
    ends: np.ndarray  # the running jobs by planned end, in whole seconds; ties go to the first job
    head: np.ndarray
    releases: np.ndarray  # what running jobs release, by planned end
    released: np.ndarray  # the nodes of each release, a word of a set
    chosen: np.ndarray  # the parts of the job that starts next
    picked: np.ndarray  # the set of their nodes
    usable: np.ndarray  # scratch: the set of nodes that a job may use
    open: np.ndarray  # scratch: the set of nodes that are open to jobs in a pass
    closed: np.ndarray  # scratch: whether each partition is closed in a pass
    then: np.ndarray  # scratch: the processors of each node that are free when a job starts
    runs: np.ndarray  # scratch: the consecutive nodes among those that a job may use
    slots: np.ndarray  # the table of a cycle
    failures: np.ndarray  # the last failures in each slot
    bounds: np.ndarray  # scratch: bounds on the jobs of each partition that may start in a cycle, by time
    bounded: np.ndarray  # scratch: the number of bounds of each partition
    stale: np.ndarray  # scratch: whether reservations or starts followed the bounds of each partition
    unreserved: np.ndarray  # the set of nodes that are not reserved in each slot
    occupied: np.ndarray  # the set of nodes that have no free processors in the window of a cycle
    preempted: Preempted


def new_node_state(nodes: Nodes, jobs: int, most_slots: int, preempted: Preempted) -> NodeState:
    """Return idle nodes; a cycle's table has at most ``most_slots`` slots when it gets another reservation."""
    count, processors = nodes.sizes.size, int(nodes.sizes.sum())
    words = (count + 63) >> 6
    members = np.zeros((len(nodes.members), 8 * words), np.uint8)
    packed = np.packbits(nodes.members, axis=1, bitorder="little")
    members[:, : packed.shape[1]] = packed
    # Partitions with the same nodes are alike; all nodes come last.
    sets, alike = np.unique(members.view(np.uint64), axis=0, return_inverse=True)
    parts = np.zeros(min(processors, count * max(jobs, 1)) + 1, PART)
    parts["next"] = np.arange(1, parts.size + 1)
    slots, head = min(most_slots, 2 * jobs + 1) + 1, np.zeros(1, HEAD)
    head["largest"] = nodes.sizes.max()
    return NodeState(
        sizes=nodes.sizes,
        free=nodes.sizes.copy(),
        idle=sets[-1].copy(),
        members=sets,
        partition=alike[nodes.partition],
        parts=parts,
        ends=np.empty(min(processors, jobs) + 1, END),
        head=head,
        releases=np.empty(parts.size, RELEASE),
        released=np.zeros(parts.size, np.uint64),
        chosen=np.zeros(count, PART),
        picked=np.zeros(words, np.uint64),
        usable=np.zeros(words, np.uint64),
        open=np.zeros(words, np.uint64),
        closed=np.zeros(len(sets), np.bool_),
        then=np.zeros(count, np.int64),
        runs=np.zeros(count, RUN),
        slots=np.zeros(slots, SLOT),
        failures=np.zeros((slots, KEPT), FAILURE),
        bounds=np.zeros((len(sets), slots), BOUND),
        bounded=np.zeros(len(sets), np.int64),
        stale=np.zeros(len(sets), np.bool_),
        unreserved=np.zeros((slots, words), np.uint64),
        occupied=np.zeros(words, np.uint64),
        preempted=preempted,
    )


# -- sets of nodes


def keep(nodes: np.ndarray, other: np.ndarray) -> None:
    """Remove the nodes that are not in another set from a set."""
    for word in range(nodes.size):
        nodes[word] &= other[word]


def is_disjoint(nodes: np.ndarray, others: np.ndarray) -> bool:
    """Return whether no node is in both sets."""
    for word in range(nodes.size):  # noqa: SIM110
        if nodes[word] & others[word] != EMPTY:
            return False
    return True


def most_usable(machine: NodeState) -> int:
    """Return at least as many processors as the usable nodes can have in the window of a cycle, by their number."""
    nodes = 0
    for word in range(machine.usable.size):
        nodes += ones(machine.usable[word] & ~machine.occupied[word])
    return machine.head[0].largest * nodes


def total(processors: np.ndarray, nodes: np.ndarray, others: np.ndarray) -> int:
    """Return the sum of the processors of the nodes that are in both sets."""
    found = 0
    for index in range(nodes.size):
        word = nodes[index] & others[index]
        while word != EMPTY:
            found += processors[(index << 6) + lowest(word)]
            word &= word - ONE
    return found


# -- the choice of nodes


def choose_nodes(machine: NodeState, free: np.ndarray, width: int) -> None:
    """
    Choose parts of the usable nodes for a job, given their free processors, which suffice.

    Of the sets of consecutive nodes, Slurm takes the smallest one that suffices, or else the largest one and then
    others. Of a set that suffices, it takes the node with the fewest processors that suffice alone, or else the nodes
    in their order (`_eval_nodes` in src/plugins/select/cons_tres/job_test.c).
    """
    runs, size = machine.runs, _find_runs(machine, free)
    machine.head[0].chosen = 0
    machine.picked[:] = EMPTY
    while width > 0:
        best = 0
        for k in range(1, size):
            if _fits_better(runs[k].processors, runs[best].processors, width):
                best = k
        run = runs[best]
        only = -1
        for node in range(run.first, run.last + 1):
            if free[node] >= width and (only < 0 or free[node] < free[only]):
                only = node
        if only >= 0:
            _add_part(machine, only, width)
            return
        for node in range(run.first, run.last + 1):
            if width > 0:
                taken = min(free[node], width)
                _add_part(machine, node, taken)
                width -= taken
        run.processors = 0


def _fits_better(one: int, other: int, width: int) -> bool:
    """Return whether one set of consecutive nodes is taken before another, by their numbers of free processors."""
    if one >= width:
        return other < width or one < other
    return other < width and one > other


def _find_runs(machine: NodeState, free: np.ndarray) -> int:
    """Find the sets of consecutive usable nodes with free processors; return their number."""
    runs, size, before = machine.runs, 0, -2
    for index in range(machine.usable.size):
        word = machine.usable[index]
        while word != EMPTY:
            node = (index << 6) + lowest(word)
            word &= word - ONE
            if free[node] == 0:
                continue
            if node > before + 1:
                runs[size].first, runs[size].processors = node, 0
                size += 1
            runs[size - 1].last = node
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


def _occupy(state: State, item: int, now: float) -> None:
    machine = state.machine
    head, parts, first = machine.head[0], machine.parts, -1
    for k in range(head.chosen):
        node, processors = machine.chosen[k].node, machine.chosen[k].processors
        machine.free[node] -= processors
        if machine.free[node] == 0:
            clear(machine.idle, node, node)
        part = head.spare
        head.spare = parts[part].next
        parts[part].node, parts[part].processors, parts[part].next = node, processors, first
        first = part
    _insert_end(state, item, first)


def _release(state: State, item: int, now: float) -> None:
    machine = state.machine
    head, parts = machine.head[0], machine.parts
    part = _remove_end(state, item)
    while part >= 0:
        node, following = parts[part].node, parts[part].next
        machine.free[node] += parts[part].processors
        fill(machine.idle, node, node)
        parts[part].next = head.spare
        head.spare = part
        part = following


def _extend(state: State, item: int, now: float) -> None:
    _insert_end(state, item, _remove_end(state, item))


def _insert_end(state: State, item: int, part: int) -> None:
    """Insert a job into the list of ends."""
    head, ends = state.machine.head[0], state.machine.ends
    end = float(math.floor(state.jobs[item].planned_end))
    place = head.running
    while place > 0 and (ends[place - 1].time > end or (ends[place - 1].time == end and ends[place - 1].job > item)):
        _copy(ends, place - 1, place)
        place -= 1
    ends[place].time, ends[place].job, ends[place].part = end, item, part
    head.running += 1
    head.releases = -1


def _remove_end(state: State, item: int) -> int:
    """Remove a job from the list of ends; return its first part."""
    head, ends = state.machine.head[0], state.machine.ends
    place = 0
    while ends[place].job != item:
        place += 1
    part = ends[place].part
    head.running -= 1
    head.releases = -1
    for later in range(place, head.running):
        _copy(ends, later + 1, later)
    return part


def _copy(ends: np.ndarray, source: int, target: int) -> None:
    one = ends[source]
    ends[target].time, ends[target].job, ends[target].part = one.time, one.job, one.part


# -- plans


def would_start(state: State, item: int, clock: float, until: float) -> tuple[float, int]:
    """Return what `planned_start` does; `swflow.scheduling.engine.preemption` replaces it."""
    return planned_start(state, item, clock, until)


def planned_start(state: State, item: int, clock: float, until: float) -> tuple[float, int]:
    """
    Return the time at which a job fits on the usable nodes, by the planned ends of running jobs, and their processors.

    The time is infinite if they are too few when all jobs have ended that are planned to end until a time. Slurm lets
    the jobs on these nodes end in groups, the first of 30 s and each further one of at least twice the span, and tests
    after each whether the job fits.
    """
    machine, width = state.machine, state.jobs[item].processors
    head, releases = machine.head[0], machine.releases
    head.ended = 0
    free = total(machine.free, machine.usable, machine.idle)
    if free >= width:
        return clock, free
    if head.releases < 0:
        _list_releases(machine)
    place, span = 0, _FIRST_GROUP
    while place < head.releases and _usable_of(machine, place) == 0:
        place += 1
    first = releases[place].time
    barrier = first + _FIRST_GROUP - (first + state.options[0].epoch) % _FIRST_GROUP
    while place < head.releases:
        last = -1  # the last release of the group
        while place < head.releases:
            time = releases[place].time
            if time > until and free < width:
                return np.inf, free
            if time > barrier + span and last >= 0:  # the group ends if the job before has usable nodes
                former = releases[place - 1].job
                if releases[place].job != former and releases[last].job == former:
                    break
            own = _usable_of(machine, place)
            free += own
            if own > 0:
                last = place
            place += 1
        if free >= width:
            head.ended, time = place, releases[last].time
            return time if time > clock else max(time + _KILL_WAIT, clock + 1), free
        while place < head.releases and releases[place].time > barrier + span:
            span *= 2
    return np.inf, free


def _usable_of(machine: NodeState, place: int) -> int:
    """Return the processors of usable nodes that are released."""
    one = machine.releases[place]
    return one.processors * ones(machine.usable[one.word] & machine.released[place])


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


def is_gone(machine: NodeState, job: int) -> bool:
    """Return whether a running job is left out of plans."""
    return False


def find_occupied(machine: NodeState, until: float) -> None:
    """Find the nodes that have no free processors until a time, by the planned ends of running jobs."""
    assign(machine.occupied, machine.members[machine.closed.size - 1])
    remove(machine.occupied, machine.idle)
    if machine.head[0].releases < 0:
        _list_releases(machine)
    for place in range(machine.head[0].releases):
        if machine.releases[place].time > until:
            break
        machine.occupied[machine.releases[place].word] &= ~machine.released[place]


def look_ahead(machine: NodeState) -> None:
    """Compute the free processors of each usable node at the time that `would_start` returned."""
    for node in range(machine.free.size):
        machine.then[node] = machine.free[node]
    for place in range(machine.head[0].ended):
        one = machine.releases[place]
        word = machine.usable[one.word] & machine.released[place]
        while word != EMPTY:
            machine.then[(one.word << 6) + lowest(word)] += one.processors
            word &= word - ONE


def _free_now(state: State) -> int:
    return state.options[0].processors - state.counts[0].busy


def _find(state: State, item: int, width: int, length: float, now: float) -> float:
    assign(state.machine.usable, state.machine.members[state.machine.partition[item]])
    return would_start(state, item, now, np.inf)[0]


def _can_begin(state: State, item: int) -> bool:
    machine = state.machine
    return total(machine.free, machine.members[machine.partition[item]], machine.idle) >= state.jobs[item].processors


#: The implementation of the operations by nodes; only backfill slurm uses them.
NODES: dict[Any, Any] = {
    operations.occupy: _occupy,
    operations.release: _release,
    operations.extend: _extend,
    operations.free_now: _free_now,
    operations.find: _find,
    operations.can_begin: _can_begin,
}
