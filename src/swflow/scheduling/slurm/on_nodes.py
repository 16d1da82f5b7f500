"""Slurm's two schedulers on nodes: passes that close partitions, and cycles that reserve whole nodes."""

import math
from typing import Any

import numpy as np

from swflow.scheduling.machine.allocation import assign, is_within, remove
from swflow.scheduling.slurm import operations
from swflow.scheduling.slurm.accounts import forget_tests, has_all_jobs, may_test
from swflow.scheduling.slurm.cycle_table import (
    find_usable,
    has_failed,
    is_unreserved,
    next_gain,
    note_failure,
    open_table,
    reserve_nodes,
    slot_at,
)
from swflow.scheduling.slurm.fitting import all_for, free_for, free_for_kind
from swflow.scheduling.slurm.node_state import NodeState, in_both, keep, most_usable, total
from swflow.scheduling.slurm.operations import (
    leave_out,
    lend,
    make_room,
    may_preempt,
    start_or_reserve,
    take_back,
    would_start,
)
from swflow.scheduling.slurm.placement import NODES, choose_free_nodes, choose_nodes_then
from swflow.scheduling.slurm.search import next_job, start_search
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.slurm.timetable import slot_start
from swflow.scheduling.state.changes import begin
from swflow.scheduling.state.operations import free_now, is_limited
from swflow.scheduling.state.queue import root_of


def _start_jobs(state: SlurmState, now: float) -> None:
    """
    Start jobs in the order of the queue, as the main scheduler does (`_schedule` in src/slurmctld/job_scheduler.c).

    A job that does not fit closes its partition, and the nodes of this partition, to later jobs of the pass, unless it
    is wider than all nodes that it may use and that are still open (`_pick_best_nodes` in node_scheduler.c).
    """
    timetable, machine = state.own.timetable[0], state.machine
    timetable.waits = 0
    free = free_now(state)
    assign(machine.search.open, machine.members[machine.search.closed.size - 1])
    machine.search.closed[:] = False
    tested = 0
    start_search(state)
    while _may_fit(state, free):
        item = next_job(state, now)
        tested += 1
        if item < 0 or tested > timetable.tests:
            break
        if is_limited(state, item):
            continue
        partition, width = machine.partition[machine.allowed[item]], state.jobs[item].processors
        if not machine.search.closed[partition]:
            find_own(state, item, float(math.floor(now)), machine.search.usable)
            keep(machine.search.usable, machine.members[machine.allowed[item]])
            keep(machine.search.usable, machine.search.open)
            leave_out(state, now)
            if free_for(state, item) >= width:
                choose_free_nodes(state, item)
                begin(state, item, now)
                free -= width
                continue
            make_room(state, item, now)
            if all_for(state, item) >= width:
                machine.search.closed[partition] = True
                remove(machine.search.open, machine.members[partition])
                free = total(machine.free, machine.search.open, machine.idle)
                if in_both(machine.search.open, machine.search.open) == 0:
                    timetable.waits = 1
                    return  # no later job finds a node, not even by preemption
        timetable.waits = 1


def _is_closed(machine: NodeState, item: int) -> bool:
    return bool(machine.search.closed[machine.partition[machine.allowed[item]]])


def _may_fit(state: SlurmState, free: int) -> bool:
    """Return whether a job that the search of the queue finds next may start if there are some free processors."""
    return may_preempt(state) or root_of(state.queue).width <= free


# -- windows: reservations with the flag MAINT (`job_test_resv` in src/slurmctld/reservation.c)


def find_own(state: SlurmState, item: int, start: float, nodes: np.ndarray) -> None:
    """Find the nodes of a job's partition that are available while it runs, if it starts at a time."""
    machine = state.machine
    assign(nodes, machine.members[machine.partition[machine.allowed[item]]])
    for k in range(machine.windows.size):
        if _meets(state, item, start, k):
            remove(nodes, machine.away[k])


def _meets(state: SlurmState, item: int, start: float, window: int) -> bool:
    """Return whether a job that starts at a time would run in a window."""
    one = state.machine.windows[window]
    return one.begin < start + state.jobs[item].planned and one.until > start


def _after_windows(state: SlurmState, item: int, start: float) -> float:
    """Return the first time from one on at which a job can start without meeting a window of all its nodes."""
    machine, found, before = state.machine, start, -np.inf
    members = machine.members[machine.partition[machine.allowed[item]]]
    while found > before:
        before = found
        for k in range(machine.windows.size):
            is_met = _meets(state, item, found, k) and machine.windows[k].until < np.inf
            if is_met and is_within(members, machine.away[k]):
                found = machine.windows[k].until
    return found


def _time_of_retest(state: SlurmState, item: int, start: float, until: float) -> float:
    """Return when a cycle tests a job again that meets a window: after the next end of any window, before a time."""
    machine, found = state.machine, until
    members, meets = machine.members[machine.partition[machine.allowed[item]]], False
    for k in range(machine.windows.size):
        if machine.windows[k].until >= start:
            found = min(found, machine.windows[k].until)
        meets = meets or (_meets(state, item, start, k) and in_both(members, machine.away[k]) > 0)
    time = slot_start(state, found + state.own.parameters[0].resolution - 1) + 1
    return time if meets and time < until else np.inf


# -- cycles


def _plan_cycle(state: SlurmState, now: float) -> None:
    """
    Plan the queue anew: start the jobs that can start now, and reserve whole nodes for others that start in the window.

    The table has the nodes without reservations in each slot, and not the running jobs (`_attempt_backfill` in
    src/plugins/sched/backfill/backfill.c). Times are whole seconds.
    """
    options, parameters = state.options[0], state.own.parameters[0]
    state.machine.search.closed[:] = False
    start_search(state)
    if not _may_fit(state, free_now(state)):
        return
    clock = float(math.floor(now))
    open_table(state, clock)
    tested, head = 0, state.machine.head[0]
    head.taken = head.passed = head.hopeful = 0
    head.reached = -1
    forget_tests(state.usage)
    while tested < parameters.tests and _has_hope(state, now, clock, parameters.tests - tested):
        item = state.own.taken[head.passed]
        head.passed += 1
        if options.limits and has_all_jobs(state.usage, item):
            continue
        if not may_test(state.usage, item, parameters.of_user, parameters.of_partition):
            continue
        found = _plan(state, item, now, clock)
        if found == _FULL:
            break
        tested += found


#: What became of a job in a cycle: it had too few usable nodes; it was tested; the table has no room for it; or it
#: would overlap a reservation.
_UNTESTED, TESTED, _FULL, _OVERLAPS = 0, 1, 2, 3


def _plan(state: SlurmState, item: int, now: float, clock: float) -> int:
    """
    Start a job, or reserve nodes for it; return what became of it.

    The job is tested at the time of the cycle. If it would start only after other nodes are no longer reserved, it is
    tested again at that time; likewise if a window ends.
    """
    machine, job, own, found = state.machine, state.jobs[item], state.machine.search.own, _UNTESTED
    allowed, requested = machine.allowed[item], machine.requested[item]
    slots, slot, earliest = machine.cycle.slots, slot_at(machine, clock), clock
    window = clock + state.own.parameters[0].window
    while True:
        if machine.windows.size > 0:
            earliest = _after_windows(state, item, earliest)
            slot = slot_at(machine, earliest)
        find_own(state, item, earliest, own)
        if slots[slot].end <= earliest:  # because of windows
            return TESTED if in_both(own, own) >= requested else found
        if found == _UNTESTED and in_both(own, machine.cycle.occupied) >= requested:
            found = TESTED
        end = earliest + job.planned
        gain = next_gain(machine, own, slot, end)
        later = slots[gain].end if gain >= 0 else np.inf
        if machine.windows.size > 0:
            later = min(later, _time_of_retest(state, item, earliest, slot_start(state, window)))
        at_begin = machine.windows.size == 0 or earliest == max(slots[slot].begin, clock)
        fails = at_begin and has_failed(state, slot, item, end, later)
        if found == _UNTESTED or not fails:
            meets = machine.windows.size > 0 and not is_within(machine.members[machine.partition[allowed]], own)
            if found == TESTED:
                keep(own, machine.members[allowed])
                last = find_usable(machine, own, slot, end, job.processors)
            else:  # features do not matter to whether it is tested
                last = find_usable(machine, own, slot, end, 1)
                if in_both(machine.search.usable, machine.search.usable) >= requested:
                    found = TESTED
                keep(machine.search.usable, machine.members[allowed])
            most = most_usable(machine)
            if found == TESTED and most >= job.processors:
                if is_limited(state, item):
                    break
                if not fails:
                    start, most = would_start(state, item, clock, min(later, window))
                    start = max(start, earliest)
                    if start <= min(later, window):
                        found = start_or_reserve(state, item, now, clock, start)
                        if found != _OVERLAPS:
                            break
                        slot, earliest, found = slot_at(machine, start), start, TESTED
                        continue
            if at_begin and most < job.processors:
                # Shorter jobs do not meet all windows of this one.
                note_failure(machine, slot, item, most + 1, end if meets else slots[last].begin, later)
        if later == np.inf:
            break
        slot, earliest = slots[gain].next if gain >= 0 else slot, later
    return found


def _start_or_reserve(state: SlurmState, item: int, now: float, clock: float, start: float) -> int:
    """Start a job if it can start now, or reserve usable nodes for it; return what became of it."""
    if start <= clock:
        choose_free_nodes(state, item)
        begin(state, item, now)
        state.machine.cycle.stale[:] = True
        return TESTED
    choose_nodes_then(state, item)
    return reserve_picked(state, item, start)


def reserve_picked(state: SlurmState, item: int, start: float) -> int:
    """Reserve the chosen nodes for a job from a time on; return what became of it."""
    machine, first = state.machine, slot_start(state, start)
    last = max(slot_start(state, start + state.jobs[item].planned), first + state.own.parameters[0].resolution)
    if not is_unreserved(state, first, last):
        return _OVERLAPS
    if machine.head[0].slots >= machine.cycle.slots.size - 1:
        return _FULL
    reserve_nodes(state, first, last)
    machine.cycle.stale[:] = True
    return TESTED


def _has_occupied(machine: NodeState, item: int) -> bool:
    """Return whether as many nodes of a job's partition as it needs are occupied in the window, so never reserved."""
    members = machine.members[machine.partition[machine.allowed[item]]]
    return in_both(members, machine.cycle.occupied) >= machine.requested[item]


# -- early ends of a cycle


def _has_hope(state: SlurmState, now: float, clock: float, tests: int) -> bool:
    """
    Return whether there is a job to test next, and it or a later one may start: otherwise reservations have no effect.

    Jobs are taken from the queue into ``taken`` of the state's ``own``, and at most ``tests`` of them are tested.
    """
    options, head, taken = state.options[0], state.machine.head[0], state.own.taken
    head.hopeful = max(head.hopeful, head.passed)
    while True:
        while head.hopeful < head.taken:
            item = taken[head.hopeful]
            if _may_start(state, item, clock) and not (options.limits and has_all_jobs(state.usage, item)):
                return head.hopeful == head.reached or _is_within_reach(state, tests)
            head.hopeful += 1
        may_any = False
        for kind in range(state.machine.cycle.bounded.size):
            if _bound_starts(state, kind, clock):
                may_any = True
                break
        item = next_job(state, now) if may_any else -1
        if item < 0:
            return False
        taken[head.taken] = item
        head.taken += 1


def _is_within_reach(state: SlurmState, tests: int) -> bool:
    """
    Return whether the first job that may start may be among those that are tested.

    Of the jobs before it, those without a usable node do not count as tested.
    """
    options, machine, parameters = state.options[0], state.machine, state.own.parameters[0]
    head = machine.head[0]
    head.reached = head.hopeful
    if parameters.of_user or parameters.of_partition or machine.windows.size > 0:
        return True
    for k in range(head.passed, head.hopeful):
        item = state.own.taken[k]
        if _has_occupied(machine, item) and not (options.limits and has_all_jobs(state.usage, item)):
            tests -= 1
        if tests == 0:
            return False
    return True


def _may_start(state: SlurmState, item: int, clock: float) -> bool:
    """Return whether a job is narrow and short enough to start on nodes that are not reserved before its end."""
    kind = state.machine.kind[item]
    if state.machine.cycle.bounded[kind] < 0:
        _bound_starts(state, kind, clock)
    if not _is_within_bounds(state, item, clock):
        return False
    if state.machine.cycle.stale[kind]:
        _bound_starts(state, kind, clock)
        return _is_within_bounds(state, item, clock)
    return True


def _is_within_bounds(state: SlurmState, item: int, clock: float) -> bool:
    """Return whether a job is narrow and short enough to start by the bounds of its kind."""
    machine, job = state.machine, state.jobs[item]
    kind = machine.kind[item]
    for k in range(machine.cycle.bounded[kind]):
        bound = machine.cycle.bounds[kind, k]
        if clock + job.planned < bound.until:
            return job.processors <= bound.free
    return False


def _bound_starts(state: SlurmState, kind: int, clock: float) -> bool:
    """
    Compute what a kind of jobs can use of the nodes without reservations until each time, while a job might fit.

    Return whether there are any. Bounds that are not stale remain.
    """
    machine, width = state.machine, root_of(state.queue).width
    if not machine.cycle.stale[kind]:
        return machine.cycle.bounded[kind] > 0
    slots, slot, size = machine.cycle.slots, 0, 0
    lend(state, kind, clock)
    assign(machine.search.usable, machine.members[machine.allowed_of[kind]])
    keep(machine.search.usable, machine.idle)
    free = free_for_kind(machine, kind, machine.search.usable)
    while free >= width:
        if slots[slot].end > clock:
            lost = machine.picked
            assign(lost, machine.search.usable)
            remove(lost, machine.cycle.unreserved[slot])
            free -= free_for_kind(machine, kind, lost)
            if free < width:
                break
            keep(machine.search.usable, machine.cycle.unreserved[slot])
            bound = machine.cycle.bounds[kind, size]
            bound.until, bound.free = np.inf if slots[slot].next == 0 else slots[slots[slot].next].begin, free
            size += 1
        slot = slots[slot].next
        if slot == 0:
            break
    take_back(state)
    machine.cycle.bounded[kind], machine.cycle.stale[kind] = size, False
    return size > 0


#: The operations of nodes.
ON_NODES: dict[Any, Any] = NODES | {
    operations.start_jobs: _start_jobs,
    operations.plan_cycle: _plan_cycle,
    operations.is_closed: _is_closed,
    operations.start_or_reserve: _start_or_reserve,
}
