"""Preemption on nodes as in Slurm: which running jobs are ended for a queued job, and what becomes of them."""

import math
from typing import Any

import numpy as np

from swflow.scheduling.machine.allocation import EMPTY, ONE, assign, clear, fill, remove
from swflow.scheduling.slurm import operations
from swflow.scheduling.slurm.cycle_table import forget_failures
from swflow.scheduling.slurm.fitting import free_for, units_of_part
from swflow.scheduling.slurm.node_state import NodeState, in_both, keep, total
from swflow.scheduling.slurm.on_nodes import ON_NODES, TESTED, find_own, reserve_picked
from swflow.scheduling.slurm.placement import choose_free_nodes, choose_nodes_then, planned_start
from swflow.scheduling.slurm.search import drop_sorted, insert_sorted
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.state.changes import arrive, begin, complete
from swflow.scheduling.state.heap import change, pop, push
from swflow.scheduling.state.queue import NO_JOB

#: Slurm considers the candidates in their order, and twice in another one (preempt_reorder_count).
_ORDERS = 3

#: Seconds after a preemption in which no more jobs are preempted for the same job (KillWait and MessageTimeout, in
#: `select_nodes` of src/slurmctld/node_scheduler.c).
_PAUSE = 40.0


# -- the order of the queue: jobs of the highest level first (`sort_job_queue2` in job_scheduler.c)


def _open_levels(state: SlurmState) -> None:
    state.machine.preempted.head[0].level = state.machine.preempted.head[0].top


def _is_at_level(state: SlurmState, item: int) -> bool:
    preempted = state.machine.preempted
    return preempted.level[preempted.kind[item]] == preempted.head[0].level


def _next_level(state: SlurmState) -> bool:
    head = state.machine.preempted.head[0]
    if head.level == 0:
        return False
    head.level -= 1
    return True


# -- the jobs that may be preempted


def _find_candidates(state: SlurmState, kind: int, allowed: int, now: float) -> None:
    """Find the running jobs on nodes of a set's partition that jobs of a class may preempt, in their order."""
    machine, preempted = state.machine, state.machine.preempted
    head, nodes = preempted.head[0], machine.partition[allowed]
    head.candidates = 0
    if preempted.level[kind] == 0:
        return
    is_same = head.kind == kind and head.nodes == nodes and head.version == machine.head[0].version
    if not is_same or not head.listed_at <= now < head.listed_until:
        _list_candidates(state, preempted.may[kind], machine.members[nodes], now)
        head.kind, head.nodes, head.version, head.listed_at = kind, nodes, machine.head[0].version, now
    head.candidates = head.listed


def _list_candidates(state: SlurmState, may: np.ndarray, members: np.ndarray, now: float) -> None:
    """List the running jobs of some classes that have nodes of a set, in the order in which they are preempted."""
    machine, preempted = state.machine, state.machine.preempted
    found, size, until = preempted.candidates, 0, np.inf
    for place in range(machine.head[0].running):
        job, part = machine.ends[place].job, machine.ends[place].part
        kind = preempted.kind[job]
        running = state.jobs[job]
        exempt = math.floor(running.start) + preempted.head[0].exempt
        # The nodes of a job that has ended are released some time later.
        ended = running.start + running.run - preempted.head[0].release_delay
        if not may[kind] or ended <= now or _overlap(machine, part, members) == 0:
            continue
        until = min(until, exempt if math.floor(now) < exempt else ended)
        if math.floor(now) < exempt:
            continue
        worth, count = preempted.worth[kind], _count(machine, part)
        here = size
        while here > 0 and _is_before(worth, count, job, found[here - 1]):
            _copy(found, here - 1, here)
            here -= 1
        one = found[here]
        one.job, one.part, one.worth, one.nodes = job, part, worth, count
        size += 1
    preempted.head[0].listed, preempted.head[0].listed_until = size, until
    preempted.head[0].number += 1


def _is_before(worth: int, count: int, job: int, other: Any) -> bool:
    """Return whether a job is taken before another one: by the value of its class, its nodes, and its number."""
    if worth != other.worth:
        return worth < other.worth
    return count < other.nodes or (count == other.nodes and job < other.job)


def _overlap(machine: NodeState, part: int, those: np.ndarray) -> int:
    """Return the number of nodes of a running job that are in a set."""
    found = 0
    while part >= 0:
        node, part = machine.parts[part].node, machine.parts[part].next
        if those[node >> 6] & (ONE << np.uint64(node & 63)) != EMPTY:
            found += 1
    return found


def _count(machine: NodeState, part: int) -> int:
    found = 0
    while part >= 0:
        found += 1
        part = machine.parts[part].next
    return found


def _add_free(state: SlurmState, place: int, sign: int) -> None:
    """Add the processors and units of a candidate to the free ones, or subtract them."""
    machine, one = state.machine, state.machine.preempted.candidates[place]
    part = one.part
    while part >= 0:
        node, processors = machine.parts[part].node, machine.parts[part].processors
        machine.free[node] += sign * processors
        for resource in range(state.capacities.size):
            machine.units[resource, node] += sign * units_of_part(state, one.job, processors, resource)
        part = machine.parts[part].next
        if machine.free[node] > 0:
            fill(machine.idle, node, node)
        else:
            clear(machine.idle, node, node)


def _add_all(state: SlurmState, sign: int) -> None:
    """Add the processors and units of all candidates to the free ones, or subtract them."""
    for place in range(state.machine.preempted.head[0].candidates):
        _add_free(state, place, sign)


def _choose_victims(state: SlurmState, item: int) -> int:
    """
    Choose usable nodes for a job, of which candidates are taken until it fits; return how many are, 0 if it never fits.

    After a first choice of nodes, the last candidate that was taken is the first one, and the others with most of these
    nodes follow, which may spare some of them (`_run_now` in src/plugins/select/cons_common/job_test.c).
    """
    machine, width = state.machine, state.jobs[item].processors
    size, taken = machine.preempted.head[0].candidates, 0
    for turn in range(min(size, _ORDERS)):
        if turn > 0:
            _reorder(machine, taken)
        taken, free = 0, total(machine.free, machine.search.usable, machine.idle)
        fits = free >= width and free_for(state, item) >= width
        while taken < size and not fits:
            free += _usable_of(machine, taken)
            _add_free(state, taken, 1)
            taken += 1
            fits = free >= width and free_for(state, item) >= width
        if fits:
            choose_free_nodes(state, item)
        for place in range(taken):
            _add_free(state, place, -1)
        if not fits:
            return 0
    return taken


def _usable_of(machine: NodeState, place: int) -> int:
    """Return the processors that a candidate has on usable nodes."""
    found, part = 0, machine.preempted.candidates[place].part
    while part >= 0:
        node = machine.parts[part].node
        if machine.search.usable[node >> 6] & (ONE << np.uint64(node & 63)) != EMPTY:
            found += machine.parts[part].processors
        part = machine.parts[part].next
    return found


def _reorder(machine: NodeState, taken: int) -> None:
    """Sort the candidates anew: the last one that was taken, then those before it by their chosen nodes."""
    found, size = machine.preempted.candidates, machine.preempted.head[0].candidates
    machine.preempted.head[0].listed_at = np.nan
    for place in range(size):
        found[place].usable = _overlap(machine, found[place].part, machine.picked) if place < taken - 1 else 0
    found[taken - 1].usable = NO_JOB
    for place in range(1, size):
        one = found[place]
        job, part, count, worth, usable = one.job, one.part, one.nodes, one.worth, one.usable
        here = place
        while here > 0 and found[here - 1].usable < usable:
            _copy(found, here - 1, here)
            here -= 1
        one = found[here]
        one.job, one.part, one.nodes, one.worth, one.usable = job, part, count, worth, usable


def _copy(found: np.ndarray, source: int, target: int) -> None:
    one, other = found[source], found[target]
    other.job, other.part, other.nodes, other.worth, other.usable = one.job, one.part, one.nodes, one.worth, one.usable


# -- preemption


def _preempt(state: SlurmState, item: int, now: float) -> None:
    """Preempt the candidates on nodes that suffice for a job, unless jobs were preempted for it a short time ago."""
    machine, preempted, clock = state.machine, state.machine.preempted, float(math.floor(now))
    if clock < preempted.again[item]:
        return
    taken = _choose_victims(state, item)
    if taken == 0:
        return
    preempted.again[item] = clock + _PAUSE
    for place in range(taken):
        one = preempted.candidates[place]
        if _overlap(machine, one.part, machine.picked) > 0:
            _stop(state, one.job, one.part, now)
    forget_failures(machine)


def _stop(state: SlurmState, job: int, part: int, now: float) -> None:
    """End a running job; its nodes are released some time later, and until then no other job starts on them."""
    machine, preempted, counts = state.machine, state.machine.preempted, state.counts[0]
    head, kind = preempted.head[0], preempted.kind[job]
    head.until = now + head.release_delay
    while part >= 0:
        preempted.until[machine.parts[part].node] = head.until
        part = machine.parts[part].next
    change(state.running, counts.running, -np.inf, job)
    complete(state, now)
    preempted.preemptions[job] += 1
    if preempted.requeues[kind]:
        preempted.lost[job] += now - state.jobs[job].start
    else:
        preempted.ended[job] = now
    head.leaving = push(preempted.leaving, head.leaving, head.until, job)


def _find_released(machine: NodeState, now: float) -> None:
    """Find the nodes that preempted jobs have not left yet."""
    preempted = machine.preempted
    preempted.released[:] = EMPTY
    if preempted.head[0].until > now:
        for node in range(preempted.until.size):
            if preempted.until[node] > now:
                fill(preempted.released, node, node)


# -- hooks of passes and cycles


def _may_preempt(state: SlurmState) -> bool:
    return state.machine.preempted.head[0].level > 0


def _leave_out(state: SlurmState, now: float) -> None:
    _find_released(state.machine, now)
    remove(state.machine.search.usable, state.machine.preempted.released)


def _make_room(state: SlurmState, item: int, now: float) -> None:
    machine = state.machine
    _find_candidates(state, machine.preempted.kind[item], machine.allowed[item], now)
    _preempt(state, item, now)
    find_own(state, item, float(math.floor(now)), machine.search.usable)
    keep(machine.search.usable, machine.members[machine.allowed[item]])
    keep(machine.search.usable, machine.search.open)


def _preempts_no_more(machine: NodeState, item: int, other: int) -> bool:
    preempted = machine.preempted
    return preempted.kind[item] == preempted.kind[other] or preempted.level[preempted.kind[item]] == 0


def _find_occupied(machine: NodeState, until: float) -> None:
    assign(machine.cycle.occupied, machine.members[machine.search.closed.size - 1])
    remove(machine.cycle.occupied, machine.idle)
    for place in range(machine.head[0].running):
        end = machine.ends[place]
        part = end.part
        if end.time <= until or machine.preempted.is_prey[machine.preempted.kind[end.job]]:
            while part >= 0:
                clear(machine.cycle.occupied, machine.parts[part].node, machine.parts[part].node)
                part = machine.parts[part].next


def _lend(state: SlurmState, kind: int, clock: float) -> None:
    machine = state.machine
    machine.preempted.head[0].candidates = 0
    if machine.class_of[kind] >= 0:
        _find_candidates(state, machine.class_of[kind], machine.allowed_of[kind], clock)
        _add_all(state, 1)


def _take_back(state: SlurmState) -> None:
    _add_all(state, -1)


def _is_gone(machine: NodeState, job: int) -> bool:
    return machine.preempted.gone[job]


def _would_start(state: SlurmState, item: int, clock: float, until: float) -> tuple[float, int]:
    """
    Return when a job fits as planned, and the processors, if all jobs that it may preempt are gone.

    It is now if that suffices, or if it can start now; but not on nodes that are released (`_will_run_test` in
    src/plugins/select/cons_common/job_test.c, and `_attempt_backfill`).
    """
    machine, preempted = state.machine, state.machine.preempted
    preempted.head[0].candidates = 0
    if free_for(state, item) < state.jobs[item].processors:
        _find_candidates(state, preempted.kind[item], machine.allowed[item], clock)
        _plan_without_candidates(machine)
    _add_all(state, 1)
    start, free = planned_start(state, item, clock, until)
    if start <= clock:
        choose_free_nodes(state, item)
        _find_released(machine, clock)
        if in_both(machine.picked, preempted.released) > 0:
            start = clock + 1
    _add_all(state, -1)
    return start, free


def _plan_without_candidates(machine: NodeState) -> None:
    """Note that the candidates alone are planned to be preempted, which changes what running jobs release."""
    preempted = machine.preempted
    head = preempted.head[0]
    if head.candidates > 0 and head.planned == head.number:
        return
    if head.marked > 0 or head.candidates > 0:
        machine.head[0].releases = -1
    for place in range(head.marked):
        preempted.gone[preempted.planned[place]] = False
    for place in range(head.candidates):
        job = preempted.candidates[place].job
        preempted.gone[job], preempted.planned[place] = True, job
    head.marked, head.planned = head.candidates, head.number if head.candidates > 0 else 0


def _start_or_reserve(state: SlurmState, item: int, now: float, clock: float, start: float) -> int:
    """Start a job on the chosen nodes, or preempt others for it and reserve nodes, or reserve nodes for later."""
    machine, preempted = state.machine, state.machine.preempted
    if start <= clock and preempted.head[0].candidates == 0:
        begin(state, item, now)
        return TESTED
    _add_all(state, 1)
    choose_nodes_then(state, item)
    _add_all(state, -1)
    if start <= clock:
        assign(preempted.kept, machine.picked)
        _preempt(state, item, now)
        assign(machine.picked, preempted.kept)
    return reserve_picked(state, item, start)


# -- hooks of the event loop


def _next_change(state: SlurmState) -> float:
    head, preempted = state.machine.preempted.head[0], state.machine.preempted
    time = preempted.leaving[0].time if head.leaving > 0 else np.inf
    return min(time, preempted.away[0].time) if head.away > 0 else time


def _leave(state: SlurmState, now: float) -> int:
    head, preempted = state.machine.preempted.head[0], state.machine.preempted
    if head.leaving == 0 or preempted.leaving[0].time > now:
        return -1
    item = preempted.leaving[0].job
    head.leaving = pop(preempted.leaving, head.leaving)
    if np.isnan(preempted.ended[item]):
        job = state.jobs[item]
        if np.isnan(preempted.submitted[item]):
            preempted.submitted[item] = job.submit
        job.start, job.submit = np.nan, math.floor(now) + head.delay
        head.away = push(preempted.away, head.away, job.submit, item)
    return item


def _come_back(state: SlurmState, now: float) -> None:
    head, preempted, usage = state.machine.preempted.head[0], state.machine.preempted, state.usage
    while head.away > 0 and preempted.away[0].time <= now:
        item = preempted.away[0].job
        head.away = pop(preempted.away, head.away)
        if usage.line.size > 0:  # the job may still be in the line since its start
            left = 0
            for place in range(usage.periods[0]):
                if not usage.over[usage.line[place]]:
                    usage.line[left] = usage.line[place]
                    left += 1
            usage.periods[0], usage.over[item] = left, False
        drop_sorted(state, item)
        arrive(state, item)
        insert_sorted(state, item, now)
        state.own.timetable[0].settled = 0


#: The operations of nodes with preemption.
PREEMPTIVE: dict[Any, Any] = ON_NODES | {
    operations.open_levels: _open_levels,
    operations.is_at_level: _is_at_level,
    operations.next_level: _next_level,
    operations.may_preempt: _may_preempt,
    operations.leave_out: _leave_out,
    operations.make_room: _make_room,
    operations.preempts_no_more: _preempts_no_more,
    operations.lend: _lend,
    operations.take_back: _take_back,
    operations.start_or_reserve: _start_or_reserve,
    operations.find_occupied: _find_occupied,
    operations.is_gone: _is_gone,
    operations.would_start: _would_start,
    operations.next_change: _next_change,
    operations.leave: _leave,
    operations.come_back: _come_back,
}
