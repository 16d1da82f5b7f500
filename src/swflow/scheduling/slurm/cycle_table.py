"""The table of a cycle on nodes: the nodes that are not reserved in each slot, and jobs that cannot start there."""

import numpy as np

from swflow.scheduling.machine.allocation import EMPTY, assign, is_within, remove
from swflow.scheduling.slurm.fitting import needs_as_much
from swflow.scheduling.slurm.node_state import KEPT, NodeState, keep, most_usable
from swflow.scheduling.slurm.operations import find_occupied, preempts_no_more
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.slurm.timetable import slot_start


def open_table(state: SlurmState, clock: float) -> None:
    """Begin the table with one slot, without reservations."""
    machine, parameters = state.machine, state.own.parameters[0]
    slot = machine.cycle.slots[0]
    slot.begin, slot.end, slot.next = slot_start(state, clock), slot_start(state, clock + parameters.window), 0
    slot.failures = slot.gains = 0
    machine.cycle.stale[:] = True
    machine.cycle.bounded[:] = -1
    assign(machine.cycle.unreserved[0], machine.members[machine.search.closed.size - 1])
    machine.head[0].slots = 1
    find_occupied(machine, clock + parameters.window)


def is_unreserved(state: SlurmState, begin: float, end: float) -> bool:
    """Return whether the chosen nodes are not reserved from ``begin`` to before ``end``."""
    machine, slot = state.machine, 0
    while True:
        one = machine.cycle.slots[slot]
        if one.end > begin and not is_within(machine.picked, machine.cycle.unreserved[slot]):
            return False
        slot = one.next
        if slot == 0 or machine.cycle.slots[slot].begin >= end:
            return True


def reserve_nodes(state: SlurmState, begin: float, end: float) -> None:
    """Reserve the chosen nodes, and merge the first two slots of equal nodes (`_add_reservation` in backfill.c)."""
    machine = state.machine
    slots, slot, before = machine.cycle.slots, 0, 0
    while slots[slot].end < begin:
        before, slot = slot, slots[slot].next
        if slot == 0:
            return  # it starts at the end of the window
    if slots[slot].end > begin:
        _split(state, slot, begin)
    former = slot
    while slots[slot].next > 0:
        slot = slots[slot].next
        if end < slots[slot].end:
            _split(state, slot, end)
        remove(machine.cycle.unreserved[slot], machine.picked)
        if end == slots[slot].end:
            break
    last = slot
    _note_gains(machine, former)
    _note_gains(machine, last)
    while slots[before].next > 0:
        slot = slots[before].next
        if _is_equal(machine.cycle.unreserved[before], machine.cycle.unreserved[slot]):
            slots[before].end, slots[before].next = slots[slot].end, slots[slot].next
            _note_gains(machine, before)
            break
        if before == last:
            break
        before = slot


def _note_gains(machine: NodeState, slot: int) -> None:
    """Note the first word of nodes that are reserved in a slot, but not in the next one."""
    one, other = machine.cycle.slots[slot], machine.cycle.slots[slot].next
    one.gains = 0
    for word in range(machine.cycle.occupied.size):
        if other > 0 and machine.cycle.unreserved[other, word] & ~machine.cycle.unreserved[slot, word] != EMPTY:
            one.gains = word + 1
            break


def _split(state: SlurmState, slot: int, time: float) -> None:
    """Split a slot at a time."""
    machine = state.machine
    slots, new = machine.cycle.slots, machine.head[0].slots
    slots[new].begin, slots[new].end, slots[new].next = time, slots[slot].end, slots[slot].next
    slots[slot].end, slots[slot].next, slots[new].failures = time, new, 0
    slots[new].gains, slots[slot].gains = slots[slot].gains, 0
    assign(machine.cycle.unreserved[new], machine.cycle.unreserved[slot])
    machine.head[0].slots += 1


def _is_equal(nodes: np.ndarray, others: np.ndarray) -> bool:
    for word in range(nodes.size):  # noqa: SIM110
        if nodes[word] != others[word]:
            return False
    return True


# -- searches


def slot_at(machine: NodeState, time: float) -> int:
    """Return the slot at a time, or the last one."""
    slot = 0
    while machine.cycle.slots[slot].end <= time and machine.cycle.slots[slot].next > 0:
        slot = machine.cycle.slots[slot].next
    return slot


def next_gain(machine: NodeState, own: np.ndarray, slot: int, end: float) -> int:
    """Return the first slot from one on, and until a time, after which another node is not reserved; -1 if none."""
    slots = machine.cycle.slots
    while slots[slot].next > 0:
        if slots[slot].gains > 0 and _gains(machine, slot, own):
            return slot
        if slots[slot].begin > end:
            break
        slot = slots[slot].next
    return -1


def _gains(machine: NodeState, slot: int, members: np.ndarray) -> bool:
    """Return whether some of these nodes are reserved in a slot, but not in the next one."""
    other = machine.cycle.slots[slot].next
    for word in range(machine.cycle.slots[slot].gains - 1, members.size):
        if members[word] & machine.cycle.unreserved[other, word] & ~machine.cycle.unreserved[slot, word] != EMPTY:
            return True
    return False


def find_usable(machine: NodeState, own: np.ndarray, slot: int, end: float, needed: int) -> int:
    """
    Find the nodes of a set that are not reserved from a slot on until an end; return the last slot.

    The end is inclusive. The search ends when they cannot have as many processors as ``needed``.
    """
    slots, usable, last = machine.cycle.slots, machine.search.usable, slot
    assign(usable, own)
    while slots[slot].begin <= end and most_usable(machine) >= needed:
        keep(usable, machine.cycle.unreserved[slot])
        last, slot = slot, slots[slot].next
        if slot == 0:
            break
    return last


# -- failures


def has_failed(state: SlurmState, slot: int, item: int, end: float, later: float) -> bool:
    """Return whether a job cannot start from a slot on until a time, by the failures that are noted."""
    machine, width = state.machine, state.jobs[item].processors
    for k in range(min(machine.cycle.slots[slot].failures, KEPT)):
        one = machine.cycle.failures[slot, k]
        is_smaller = width >= one.processors and end >= one.end and machine.allowed[item] == one.allowed
        is_smaller = is_smaller and later <= one.until and needs_as_much(state, item, one.job)
        if is_smaller and preempts_no_more(machine, item, one.job):
            return True
    return False


def forget_failures(machine: NodeState) -> None:
    """Forget all failures and bounds of a cycle, because jobs are preempted."""
    for slot in range(machine.head[0].slots):
        machine.cycle.slots[slot].failures = 0
    machine.cycle.stale[:] = True
    machine.cycle.bounded[:] = -1


def note_failure(machine: NodeState, slot: int, item: int, width: int, end: float, until: float) -> None:
    """Note that a job of some width and end cannot start from a slot on until a time."""
    one = machine.cycle.failures[slot, machine.cycle.slots[slot].failures % KEPT]
    one.processors, one.end, one.until, one.allowed, one.job = width, end, until, machine.allowed[item], item
    machine.cycle.slots[slot].failures += 1
