"""Slurm's two schedulers on nodes: passes that close partitions, and cycles that reserve whole nodes."""

import math

import numpy as np

from swflow.scheduling.engine.cycle import slot_start
from swflow.scheduling.machine.allocation import EMPTY, assign, is_within, remove
from swflow.scheduling.machine.nodes import (
    KEPT,
    NodeState,
    choose_nodes,
    keep,
    look_ahead,
    may_suffice,
    total,
    would_fit,
    would_start,
)
from swflow.scheduling.state.accounts import at_limit, forget_tests, may_test
from swflow.scheduling.state.changes import begin, is_limited
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.operations import free_now
from swflow.scheduling.state.queue import NO_JOB, root_of
from swflow.scheduling.state.search import next_job, start_search


def start_by_partition(state: State, now: float) -> None:
    """
    Start jobs in the order of the queue, as the main scheduler does (`_schedule` in src/slurmctld/job_scheduler.c).

    A job that does not fit closes its partition, and the nodes of this partition, to later jobs of the pass, unless it
    is wider than all nodes of the partition that are still open (`_pick_best_nodes` in node_scheduler.c).
    """
    agenda, machine, queue = state.agenda[0], state.machine, state.queue
    agenda.reserved_rank = state.jobs.size
    free = free_now(state)
    assign(machine.open, machine.members[machine.closed.size - 1])
    machine.closed[:] = False
    tested = 0
    start_search(state, 0)
    while root_of(queue).width <= free:
        item = next_job(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
        tested += 1
        if item < 0 or tested > agenda.tests:
            break
        if is_limited(state, item):
            continue
        partition, width = machine.partition[item], state.jobs[item].processors
        if not machine.closed[partition]:
            assign(machine.usable, machine.members[partition])
            keep(machine.usable, machine.open)
            if total(machine.free, machine.usable, machine.idle) >= width:
                choose_nodes(machine, machine.free, width)
                begin(state, item, now)
                free -= width
                continue
            if total(machine.sizes, machine.usable, machine.usable) >= width:
                machine.closed[partition] = True
                remove(machine.open, machine.members[partition])
                free = total(machine.free, machine.open, machine.idle)
        agenda.reserved_rank = 0  # a job waits


# -- cycles


def serve_cycle_on_nodes(state: State, now: float) -> None:
    """
    Plan the queue anew: start the jobs that can start now, and reserve whole nodes for others that start in the window.

    The table has the nodes without reservations in each slot, and not the running jobs (`_attempt_backfill` in
    src/plugins/sched/backfill/backfill.c). Times are whole seconds.
    """
    options, queue = state.options[0], state.queue
    if root_of(queue).width > free_now(state):
        return
    clock = float(math.floor(now))
    _open_table(state, clock)
    tested, head = 0, state.machine.head[0]
    head.taken = head.passed = head.hopeful = 0
    forget_tests(state.usage)
    start_search(state, 0)
    while tested < options.reservations and _has_hope(state, now, clock):
        item = state.planned[head.passed]
        head.passed += 1
        if options.limits and at_limit(state.usage, item, 0):
            continue
        if options.of_user and not may_test(state.usage, item, options.of_user):
            continue
        found = _plan(state, item, now, clock)
        if found == _FULL:
            break
        tested += found


#: What became of a job in a cycle: it had no usable node; it was tested; the table has no room for it; or it would
#: overlap a reservation.
_UNTESTED, _TESTED, _FULL, _OVERLAPS = 0, 1, 2, 3


def _plan(state: State, item: int, now: float, clock: float) -> int:
    """
    Start a job, or reserve nodes for it; return what became of it.

    The job is tested at the time of the cycle. If it would start only after other nodes are no longer reserved, it is
    tested again at that time.
    """
    machine, job, found = state.machine, state.jobs[item], _UNTESTED
    slots, slot, earliest = machine.slots, _slot_at(machine, clock), clock
    while True:
        gain = _next_gain(machine, item, slot, earliest + job.planned)
        later = slots[gain].end if gain >= 0 else np.inf
        at_begin = earliest == max(slots[slot].begin, clock)
        if found == _UNTESTED or not at_begin or not _fails(machine, slot, item, job.processors, job.planned, later):
            needed, until = job.processors if found == _TESTED else 1, np.inf
            _find_usable(machine, item, slot, earliest + job.planned, needed)
            if may_suffice(machine, needed):
                found, needed, until = _TESTED, job.processors, later
                if is_limited(state, item):
                    break
                if would_fit(machine, job.processors, later):
                    until = -np.inf
                    start = max(would_start(state, job.processors, clock), earliest)
                    if start <= later:
                        found = _start_or_reserve(state, item, now, clock, start)
                        if found != _OVERLAPS:
                            break
                        slot, earliest, found = _slot_at(machine, start), start, _TESTED
                        continue
            if at_begin:
                _note_failure(machine, slot, item, needed, job.planned, until)
        if gain < 0:
            break
        slot, earliest = slots[gain].next, later
    return found


def _start_or_reserve(state: State, item: int, now: float, clock: float, start: float) -> int:
    """Start a job if it can start now, or reserve usable nodes for it; return what became of it."""
    options, machine, job = state.options[0], state.machine, state.jobs[item]
    if start <= clock:
        choose_nodes(machine, machine.free, job.processors)
        begin(state, item, now)
    elif start <= clock + options.window:
        look_ahead(machine)
        choose_nodes(machine, machine.then, job.processors)
        first, last = slot_start(state, start), slot_start(state, start + job.planned)
        last = max(last, first + options.resolution)
        if not _is_unreserved(state, first, last):
            return _OVERLAPS
        if machine.head[0].slots >= machine.slots.size - 1:
            return _FULL
        _reserve(state, first, last)
    return _TESTED


def _fails(machine: NodeState, slot: int, item: int, width: int, length: float, later: float) -> bool:
    """Return whether a job cannot start from the begin of a slot until a time, since a smaller one could not."""
    for k in range(min(machine.slots[slot].failures, KEPT)):
        one = machine.failures[slot, k]
        is_smaller = width >= one.processors and length >= one.length and machine.partition[item] == one.partition
        if is_smaller and later <= one.until:
            return True
    return False


def _note_failure(machine: NodeState, slot: int, item: int, width: int, length: float, until: float) -> None:
    """Note that a job cannot start from the begin of a slot until a time."""
    one = machine.failures[slot, machine.slots[slot].failures % KEPT]
    one.processors, one.length, one.until, one.partition = width, length, until, machine.partition[item]
    machine.slots[slot].failures += 1


def _slot_at(machine: NodeState, time: float) -> int:
    """Return the slot at a time, or the last one."""
    slot = 0
    while machine.slots[slot].end <= time and machine.slots[slot].next > 0:
        slot = machine.slots[slot].next
    return slot


def _next_gain(machine: NodeState, item: int, slot: int, end: float) -> int:
    """Return the first slot from one on, and until a time, after which another node is not reserved; -1 if none."""
    slots, members = machine.slots, machine.members[machine.partition[item]]
    while slots[slot].next > 0:
        following_slot = slots[slot].next
        for word in range(members.size):
            gained = machine.unreserved[following_slot, word] & ~machine.unreserved[slot, word]
            if members[word] & gained != EMPTY:
                return slot
        if slots[slot].begin > end:
            break
        slot = following_slot
    return -1


def _find_usable(machine: NodeState, item: int, slot: int, end: float, needed: int) -> None:
    """
    Find the nodes of a job's partition that are not reserved from a slot on until its end, inclusive.

    The search ends when they cannot have as many processors as ``needed``.
    """
    slots, usable = machine.slots, machine.usable
    assign(usable, machine.members[machine.partition[item]])
    while slots[slot].begin <= end and may_suffice(machine, needed):
        keep(usable, machine.unreserved[slot])
        slot = slots[slot].next
        if slot == 0:
            break


# -- early ends of a cycle


def _has_hope(state: State, now: float, clock: float) -> bool:
    """
    Return whether there is a job to test next, and it or a later one may start: otherwise reservations have no effect.

    Jobs are taken from the queue into ``planned`` of the state. How many of them will be tested is unknown, since those
    without a usable node do not count.
    """
    options, head, planned = state.options[0], state.machine.head[0], state.planned
    head.hopeful = max(head.hopeful, head.passed)
    may_any = False
    for partition in range(state.machine.bounded.size):
        may_any = _bound_starts(state, partition, clock) or may_any
    while may_any:
        while head.hopeful < head.taken:
            item = planned[head.hopeful]
            if _may_start(state, item, clock) and not (options.limits and at_limit(state.usage, item, 0)):
                return True
            head.hopeful += 1
        item = next_job(state, state.queue, now, NO_JOB - 1, 0, 0.0, 0.0)
        if item < 0:
            return False
        planned[head.taken] = item
        head.taken += 1
    return False


def _may_start(state: State, item: int, clock: float) -> bool:
    """Return whether a job is narrow and short enough to start on nodes that are not reserved before its end."""
    machine, job = state.machine, state.jobs[item]
    partition = machine.partition[item]
    for k in range(machine.bounded[partition]):
        bound = machine.bounds[partition, k]
        if clock + job.planned < bound.until:
            return job.processors <= bound.free
    return False


def _bound_starts(state: State, partition: int, clock: float) -> bool:
    """
    Compute the free processors of a partition's nodes without reservations until each time, while a job might fit.

    Return whether there are any.
    """
    machine, width = state.machine, root_of(state.queue).width
    slots, slot, size = machine.slots, 0, 0
    assign(machine.usable, machine.members[partition])
    keep(machine.usable, machine.idle)
    free = total(machine.free, machine.usable, machine.usable)
    while free >= width:
        if slots[slot].end > clock:
            lost = machine.picked
            assign(lost, machine.usable)
            remove(lost, machine.unreserved[slot])
            free -= total(machine.free, lost, lost)
            if free < width:
                break
            keep(machine.usable, machine.unreserved[slot])
            bound = machine.bounds[partition, size]
            bound.until, bound.free = np.inf if slots[slot].next == 0 else slots[slots[slot].next].begin, free
            size += 1
        slot = slots[slot].next
        if slot == 0:
            break
    machine.bounded[partition] = size
    return size > 0


# -- the table of a cycle


def _open_table(state: State, clock: float) -> None:
    """Begin the table with one slot, without reservations."""
    machine, options = state.machine, state.options[0]
    slot = machine.slots[0]
    slot.begin, slot.end, slot.next = slot_start(state, clock), slot_start(state, clock + options.window), 0
    slot.failures = 0
    assign(machine.unreserved[0], machine.members[machine.closed.size - 1])
    machine.head[0].slots = 1


def _is_unreserved(state: State, begin: float, end: float) -> bool:
    """Return whether the chosen nodes are not reserved from ``begin`` to before ``end``."""
    machine, slot = state.machine, 0
    while True:
        one = machine.slots[slot]
        if one.end > begin and one.begin < end and not is_within(machine.picked, machine.unreserved[slot]):
            return False
        slot = one.next
        if slot == 0:
            return True


def _reserve(state: State, begin: float, end: float) -> None:
    """Reserve the chosen nodes, and merge the first two slots of equal nodes (`_add_reservation` in backfill.c)."""
    machine = state.machine
    slots, slot, before = machine.slots, 0, 0
    while slots[slot].end < begin:
        before, slot = slot, slots[slot].next
        if slot == 0:
            return  # it starts at the end of the window
    if slots[slot].end > begin:
        _split(state, slot, begin)
    after = 0
    while slots[slot].next > 0:
        slot = slots[slot].next
        if end < slots[slot].end:
            _split(state, slot, end)
        remove(machine.unreserved[slot], machine.picked)
        if end == slots[slot].end:
            after = slots[slot].next
            break
    while True:
        slot = slots[before].next
        if slot == 0 or (before == after and after > 0):
            break
        if _is_equal(machine.unreserved[before], machine.unreserved[slot]):
            slots[before].end, slots[before].next = slots[slot].end, slots[slot].next
            break
        before = slot


def _split(state: State, slot: int, time: float) -> None:
    """Split a slot at a time."""
    machine = state.machine
    slots, new = machine.slots, machine.head[0].slots
    slots[new].begin, slots[new].end, slots[new].next = time, slots[slot].end, slots[slot].next
    slots[slot].end, slots[slot].next, slots[new].failures = time, new, 0
    assign(machine.unreserved[new], machine.unreserved[slot])
    machine.head[0].slots += 1


def _is_equal(nodes: np.ndarray, others: np.ndarray) -> bool:
    for word in range(nodes.size):  # noqa: SIM110
        if nodes[word] != others[word]:
            return False
    return True
