"""Slurm's two schedulers on nodes: passes that close partitions, and cycles that reserve whole nodes."""

import math

import numpy as np

from swflow.scheduling.machine.allocation import EMPTY, assign, is_within, remove
from swflow.scheduling.machine.nodes import choose_nodes, is_empty, keep, look_ahead, may_suffice, total, would_start
from swflow.scheduling.state.accounts import at_limit, forget_tests, may_test
from swflow.scheduling.state.changes import begin, is_limited
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.operations import free_now
from swflow.scheduling.state.queue import NO_JOB, following, root_of
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
            if is_empty(machine.usable) or total(machine.sizes, machine.usable, machine.usable) >= width:
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
    tested = 0
    forget_tests(state.usage)
    start_search(state, 0)
    while tested < options.reservations and _may_start(state, clock):
        item = next_job(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
        if item < 0:
            break
        if options.limits and at_limit(state.usage, item, 0):
            continue
        if options.of_user and not may_test(state.usage, item, options.of_user):
            continue
        found = _plan(state, item, now, clock)
        if found == _FULL:
            break
        tested += found


#: What became of a job in a cycle: no node was usable, the job was tested, and the table has no room for it.
_UNTESTED, _TESTED, _FULL = 0, 1, 2


def _plan(state: State, item: int, now: float, clock: float) -> int:
    """Start a job, or reserve nodes for it; return what became of it."""
    options, machine, job = state.options[0], state.machine, state.jobs[item]
    found, later = _UNTESTED, clock
    while later < np.inf:
        earliest = later
        needed = job.processors if found == _TESTED else 1
        later = _find_usable(state, item, earliest, needed)
        if not may_suffice(machine, needed):
            continue
        found = _TESTED
        if is_limited(state, item):
            break
        start = max(would_start(state, job.processors, clock, later), earliest)
        if start <= clock:
            choose_nodes(machine, machine.free, job.processors)
            begin(state, item, now)
            break
        if start > later or start == np.inf:
            continue
        if start > clock + options.window:
            break
        look_ahead(machine)
        choose_nodes(machine, machine.then, job.processors)
        first, last = _slot(state, start), _slot(state, start + job.planned)
        last = max(last, first + options.resolution)
        if not _is_unreserved(state, first, last):
            later = start
            continue
        if machine.head[0].slots >= machine.slots.size - 1:
            return _FULL
        _reserve(state, first, last)
        break
    return found


def _slot(state: State, time: float) -> float:
    """Return the start of the slot at a time: the last multiple of the resolution, in seconds from 1970 on."""
    options = state.options[0]
    return math.floor((time + options.epoch) / options.resolution) * options.resolution - options.epoch


def _find_usable(state: State, item: int, begin: float, needed: int) -> float:
    """
    Find the nodes of a job's partition that are not reserved if it starts at a time, until its end, inclusive.

    Return the first end of a slot after which another node is unreserved; infinity if there is none. If that is known,
    the search ends when the nodes cannot have as many processors as ``needed``.
    """
    machine = state.machine
    slots, usable, members = machine.slots, machine.usable, machine.members[machine.partition[item]]
    assign(usable, members)
    end, later, slot = begin + state.jobs[item].planned, np.inf, 0
    while True:
        following_slot = slots[slot].next
        if slots[slot].end > begin:
            if later == np.inf and following_slot > 0 and _gains(state, members, slot, following_slot):
                later = slots[slot].end
            if slots[slot].begin > end:
                return later
            keep(usable, machine.unreserved[slot])
            if later < np.inf and not may_suffice(machine, needed):
                return later
        if following_slot == 0:
            return later
        slot = following_slot


def _gains(state: State, members: np.ndarray, slot: int, following_slot: int) -> bool:
    """Return whether a slot has nodes of a partition that are not usable in the slot before."""
    machine = state.machine
    for word in range(members.size):
        now = machine.usable[word] & machine.unreserved[slot, word]
        if members[word] & machine.unreserved[following_slot, word] & ~now != EMPTY:
            return True
    return False


def _may_start(state: State, clock: float) -> bool:
    """Return whether a queued job is narrow and short enough to start on the nodes without earlier reservations."""
    machine, queue = state.machine, state.queue
    slots, free, slot = machine.slots, free_now(state), 0
    assign(machine.usable, machine.idle)
    while root_of(queue).width <= free:
        if slots[slot].end > clock:
            lost = machine.picked
            assign(lost, machine.usable)
            remove(lost, machine.unreserved[slot])
            free -= total(machine.free, lost, lost)
            keep(machine.usable, machine.unreserved[slot])
            until = slots[slots[slot].next].begin if slots[slot].next > 0 else np.inf
            if following(queue, 0, -1, free, clock, until) >= 0:
                return True
        slot = slots[slot].next
        if slot == 0:
            break
    return False


# -- the table of a cycle


def _open_table(state: State, clock: float) -> None:
    """Begin the table with one slot, without reservations."""
    machine, options = state.machine, state.options[0]
    slot = machine.slots[0]
    slot.begin, slot.end, slot.next = _slot(state, clock), _slot(state, clock + options.window), 0
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
    slots[slot].end, slots[slot].next = time, new
    assign(machine.unreserved[new], machine.unreserved[slot])
    machine.head[0].slots += 1


def _is_equal(nodes: np.ndarray, others: np.ndarray) -> bool:
    for word in range(nodes.size):  # noqa: SIM110
        if nodes[word] != others[word]:
            return False
    return True
