"""What only the Alvio simulator does: the reservation table, and the defect of its released code.

F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio
simulator", MASCOTS 2007. With the defect, of a shadow in which another job starts and ends, the rest is dropped. A job
lies within a shadow if it starts on a node where nothing else starts or ends at that time, and by the ends known then
ends before all jobs there. After its end, the jobs that it met are ignored on the node until the first of all jobs that
were there ends: they are not slowed, and do not slow jobs that start.

With the penalty ``at-start``, which has the same defect, a job's penalty is computed only once, for the shadow in which
it starts: until its run time or the first estimate of the jobs that it meets has passed. Jobs that start later do not
change it. By a comment of the released code, whether a job is killed depends on its original penalty, or on a later one
if that is higher; the latter is left out, because more jobs would be killed than were published.
"""

from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.machine import node_sharing
from swflow.scheduling.machine.node_sharing import Sharing, penalty_with
from swflow.scheduling.machine.numbered import NUMBERED, can_begin, cancel, find, reserve
from swflow.scheduling.state import operations
from swflow.scheduling.state.changes import begin
from swflow.scheduling.state.heap import pop
from swflow.scheduling.state.layout import State
from swflow.scheduling.state.queue import NO_JOB, following, put
from swflow.scheduling.state.search import line_up

# -- the reservation table


def _serve_table(state: State, now: float) -> None:
    """
    Give the head a reservation, and others if their turn comes no later.

    Reservations stay until a job ends early or another job comes to the head; until then, only newcomers are added.
    """
    agenda, counts, model, queue = state.agenda[0], state.counts[0], state.machine, state.queue
    replan = agenda.ended_early or agenda.corrected
    while counts.queued > 0:
        head = queue.job_at[following(queue, 0, NO_JOB - 1, 0, 0.0, 0.0)]
        if queue.formula:
            line_up(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
            head = state.line[0].job
        anew = replan or model.counters[0].head != head
        replan = False
        if anew:
            model.counters[0].head = head
            _renew_table(state, head, now)
        if anew or agenda.newcomers > 0:
            _add_to_table(state, head, now, anew)
        waiting = line_up(state, queue, now, -1, NO_JOB - 1, 0.0, now)
        while waiting > 0:
            item = state.line[0].job
            waiting = pop(state.line, waiting)
            if can_begin(state, item):
                begin(state, item, now)
                if item == head:
                    break  # the others must leave room for the next head
        if np.isnan(state.jobs[head].start):
            return


def _renew_table(state: State, head: int, now: float) -> None:
    """Remove all reservations, and give the head a new one."""
    model, queue = state.machine, state.queue
    rank = following(queue, 0, NO_JOB - 1, 0, 0.0, 0.0)
    while rank >= 0:
        item = queue.job_at[rank]
        if model.jobs[item].row >= 0:
            cancel(state, item)
            state.jobs[item].reserved = np.nan
            put(queue, rank, state.jobs[item].processors, np.inf)
        rank = following(queue, rank + 1, NO_JOB - 1, 0, 0.0, 0.0)
    _enter_in_table(state, head, now, np.inf)


def _enter_in_table(state: State, item: int, now: float, latest: float) -> None:
    """Give a job a reservation, unless it would start after ``latest``."""
    job, queue = state.jobs[item], state.queue
    time = find(state, item, job.processors, job.planned, now)
    if time <= latest:
        job.reserved = time
        reserve(state, item)
        put(queue, job.rank, job.processors, time)


def _add_to_table(state: State, head: int, now: float, anew: bool) -> None:
    """Give jobs a reservation that would start no later than the head's and that may overtake by count."""
    counts, agenda, tree, model = state.counts[0], state.agenda[0], state.backfill_queue, state.machine
    latest, width = state.jobs[head].reserved, state.jobs[head].processors
    free = state.options[0].processors - counts.busy
    # The time at which enough processors for the head are free, wherever they are, and the number of extra ones.
    shadow, extra = now, free
    place = 0  # jobs that end at the same time count in the order of their starts, as in Guim et al.
    while extra < width:
        end = model.plan.changes[place]
        if end.size > 0 and not np.isnan(state.jobs[end.job].start):
            shadow = max(end.time, now)
            extra += end.size
        place += 1
    extra -= width
    waiting = line_up(state, tree, now, free, 0, 0.0, 0.0)
    while waiting > 0:
        item = state.line[0].job
        waiting = pop(state.line, waiting)
        job = state.jobs[item]
        if model.jobs[item].row >= 0 or not (anew or item >= agenda.first_newcomer):
            continue
        if now + job.planned < shadow or job.processors < extra:
            _enter_in_table(state, item, now, latest)


# -- the defect


#: Data of a processor: whether its job lies within a shadow of the node, and whether the job is ignored there, as 1 +
#: the job whose end also ends that shadow; 0 if not.
_SHADOWED = record("", "inside unseen")


class _Shadows(NamedTuple):
    processor: np.ndarray
    since: np.ndarray  # the start of each node's shadow


def with_shadows(state: State) -> State:
    """Return a machine with the data of the defect."""
    sharing = state.machine.sharing
    shadows = _Shadows(np.zeros(sharing.processor.size, _SHADOWED), np.full(sharing.node.size, -np.inf))
    return state._replace(machine=state.machine._replace(sharing=sharing._replace(extra=shadows)))


def _penalty_if_seen(sharing: Sharing, processor: int) -> float:
    if sharing.extra.processor[processor].unseen:
        return 0.0
    return sharing.node[processor // sharing.per_node].penalty


def _charge_of_seen(sharing: Sharing, node: int) -> float:
    """Return the penalty of a node by the demand of the jobs that are not ignored there."""
    usage = sharing.later[node]
    usage[:] = 0.0
    for processor in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        job = sharing.processor[processor].job
        for resource in range(usage.size if job >= 0 and not sharing.extra.processor[processor].unseen else 0):
            usage[resource] += sharing.demands[job, resource]
    return penalty_with(sharing, usage, 0, 0)


def _forget_shadows(sharing: Sharing, gone: np.ndarray, records: np.ndarray, now: float) -> None:
    """Drop the rest of the shadows in which jobs that end lay: jobs that they met, and that stay, are ignored."""
    sharing.round[0].number += 1
    for job in gone:
        sharing.job[job].mark = sharing.round[0].number
    for index in range(sharing.round[0].touched):
        node = sharing.touched[index]
        begin, end = node * sharing.per_node, (node + 1) * sharing.per_node
        sharing.extra.since[node] = now
        for processor in range(begin, end):
            if sharing.processor[processor].job >= 0 and not _goes(sharing, sharing.processor[processor].job):
                _set_ignored(sharing, processor, records)
        for processor in range(begin, end):
            shadowed = sharing.extra.processor[processor]
            if sharing.processor[processor].job >= 0 and _goes(sharing, sharing.processor[processor].job):
                shadowed.inside = 0
                shadowed.unseen = 0


def _set_ignored(sharing: Sharing, processor: int, records: np.ndarray) -> None:
    """Set whether the job of a processor, which stays, is ignored after other jobs of its node have ended."""
    stays = sharing.extra.processor[processor]
    node = processor // sharing.per_node
    is_any, all_inside, last = False, True, -1  # over the ended jobs that it met; the last one to start
    for other in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        job, goes = sharing.processor[other].job, sharing.extra.processor[other]
        if job < 0 or not _goes(sharing, job) or goes.unseen != stays.unseen:
            continue
        is_any = True
        all_inside &= goes.inside > 0 and not _goes(sharing, goes.inside - 1)
        latest = sharing.processor[last if last >= 0 else processor].job
        if records[job].start > records[latest].start:
            last = other
    if is_any and all_inside and last >= 0:
        stays.unseen = sharing.extra.processor[last].inside
    elif is_any or (stays.unseen > 0 and _goes(sharing, stays.unseen - 1)):
        stays.unseen = 0
    if stays.inside > 0 and _goes(sharing, stays.inside - 1):
        stays.inside = 0


def _goes(sharing: Sharing, job: int) -> bool:
    return sharing.job[job].mark == sharing.round[0].number


def _begin_shadows(sharing: Sharing, records: np.ndarray, now: float) -> None:
    """Store the starts of shadows, and whether a job that starts lies within the shadow that it interrupts."""
    for index in range(sharing.round[0].touched):
        node = sharing.touched[index]
        processors = range(node * sharing.per_node, (node + 1) * sharing.per_node)
        newcomer, first, alone, is_met = -1, -1, sharing.extra.since[node] < now, False
        for processor in processors:
            job = sharing.processor[processor].job
            if job >= 0 and records[job].start == now:
                alone &= newcomer < 0 or newcomer == job
                newcomer = job
            elif job >= 0:
                is_met |= sharing.extra.processor[processor].unseen == 0
                if first < 0 or sharing.job[job].end < sharing.job[first].end:
                    first = job
        sharing.extra.since[node] = now
        if not alone or newcomer < 0 or not is_met or sharing.job[newcomer].end >= sharing.job[first].end:
            continue
        for processor in processors:
            if sharing.processor[processor].job == newcomer:
                sharing.extra.processor[processor].inside = first + 1


# -- penalties that are computed once


def _no_further_penalty(sharing: Sharing, processor: int) -> float:
    return 0.0


def _charge_once(sharing: Sharing, pool: np.ndarray, placement: Any, job: int, records: np.ndarray, now: float) -> None:
    """Add the penalty of the shadow in which a job starts to its processors."""
    for index in range(placement.first, placement.first + placement.ranges):
        for processor in range(pool[index, 0], pool[index, 1] + 1):
            node, length = processor // sharing.per_node, records[job].run
            for other in range(node * sharing.per_node, (node + 1) * sharing.per_node):
                met = sharing.processor[other].job
                if met >= 0 and met != job and not sharing.extra.processor[other].unseen:
                    length = min(length, max(records[met].planned_end - now, 0.0))
            sharing.processor[processor].added = _charge_of_seen(sharing, node) * length


#: Numbered processors with the reservation table.
ALVIO: dict[Any, Any] = NUMBERED | {operations.serve_otherwise: _serve_table}

#: The same with the defect.
RELEASED_ALVIO: dict[Any, Any] = ALVIO | {
    node_sharing.penalty_at: _penalty_if_seen,
    node_sharing.charge_of: _charge_of_seen,
    node_sharing.jobs_left: _forget_shadows,
    node_sharing.jobs_came: _begin_shadows,
}

#: The same with penalties that are computed once.
AT_START: dict[Any, Any] = RELEASED_ALVIO | {
    node_sharing.penalty_at: _no_further_penalty,
    node_sharing.job_came: _charge_once,
}

#: The penalties with the defect, and their machine models.
WITH_DEFECT = {"forgets-shadows": RELEASED_ALVIO, "at-start": AT_START}
