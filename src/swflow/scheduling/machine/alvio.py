"""What only the Alvio simulator does: the reservation table, and the defect of its released code.

F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio
simulator", MASCOTS 2007. With the defect, of a shadow in which another job starts and ends, the rest is dropped. A job
lies within a shadow if it starts on a node where nothing else starts or ends at that time, and by the ends known then
ends before all jobs there. After its end, the jobs that it met are ignored on the node until the first of all jobs that
were there ends: they are not slowed, and do not slow jobs that start.
"""

from typing import Any

import numpy as np

from swflow.scheduling.engine import operations
from swflow.scheduling.engine.heap import pop
from swflow.scheduling.engine.queue import NO_JOB, following, put
from swflow.scheduling.engine.state import State, begin, line_up
from swflow.scheduling.machine import node_sharing
from swflow.scheduling.machine.node_sharing import Sharing, penalty_with
from swflow.scheduling.machine.numbered import NUMBERED, can_begin, cancel, find, reserve

# -- the reservation table


def _serve_table(state: State, now: float) -> None:
    """
    Give the head a reservation, and others if their turn comes no later.

    Reservations stay until a job ends early or another job comes to the head; until then, only newcomers are added.
    """
    core, places, queue = state.now[0], state.free, state.queue
    replan = core.ended_early or core.corrected
    while core.queued > 0:
        head = queue.job_at[following(queue, 0, NO_JOB - 1, 0, 0.0, 0.0)]
        if queue.formula:
            line_up(state, queue, now, NO_JOB - 1, 0, 0.0, 0.0)
            head = state.line[0].job
        anew = replan or places.now[0].head != head
        replan = False
        if anew:
            places.now[0].head = head
            _renew_table(state, head, now)
        if anew or core.newcomers > 0:
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
    places.now[0].head = -1


def _renew_table(state: State, head: int, now: float) -> None:
    """Remove all reservations, and give the head a new one."""
    places, queue = state.free, state.queue
    rank = following(queue, 0, NO_JOB - 1, 0, 0.0, 0.0)
    while rank >= 0:
        item = queue.job_at[rank]
        if places.jobs[item].row >= 0:
            cancel(state, item)
            state.jobs[item].reserved = np.nan
            put(queue, rank, state.jobs[item].processors, np.inf)
        rank = following(queue, rank + 1, NO_JOB - 1, 0, 0.0, 0.0)
    _enter_in_table(state, head, now, np.inf)


def _enter_in_table(state: State, item: int, now: float, latest: float) -> None:
    """Give a job a reservation, unless it would start after ``latest``."""
    job, queue = state.jobs[item], state.queue
    time = find(state, item, job.processors, job.planned, now)
    if time <= latest and (time < np.inf or latest == np.inf):
        job.reserved = time
        reserve(state, item)
        put(queue, job.rank, job.processors, time)


def _add_to_table(state: State, head: int, now: float, anew: bool) -> None:
    """Give jobs a reservation that would start no later than the head's and that may overtake by count."""
    core, tree, places = state.now[0], state.backfill_queue, state.free
    latest, width = state.jobs[head].reserved, state.jobs[head].processors
    free = state.options[0].machine - core.busy
    # The time at which enough processors for the head are free, wherever they are, and the number of extra ones.
    shadow, extra = now, free
    place = 0  # of jobs that end at once the first to start count first, as Guim et al. count them
    while extra < width:
        end = places.plan.changes[place]
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
        if places.jobs[item].row >= 0 or not (anew or item >= core.first_newcomer):
            continue
        if now + job.planned < shadow or job.processors < extra:
            _enter_in_table(state, item, now, latest)


# -- the defect: of a processor, ``inside`` states whether its job lies within a shadow of the node, and ``unseen``
# whether the job is ignored there, as 1 + the job whose end also ends that shadow; 0 if not. ``since`` of a node is the
# start of its shadow.


def _penalty_if_seen(sharing: Sharing, place: int) -> float:
    return 0.0 if sharing.place[place].unseen else sharing.node[place // sharing.per_node].penalty


def _charge_of_seen(sharing: Sharing, node: int) -> float:
    """Return the penalty of a node by the demand of the jobs that are not ignored there."""
    asked = sharing.later[node]
    asked[:] = 0.0
    for place in range(node * sharing.per_node, (node + 1) * sharing.per_node):
        there = sharing.place[place].job
        for resource in range(asked.size if there >= 0 and not sharing.place[place].unseen else 0):
            asked[resource] += sharing.demands[there, resource]
    return penalty_with(sharing, asked, 0, 0)


def _forget_shadows(sharing: Sharing, gone: np.ndarray, nodes: int, records: np.ndarray, now: float) -> None:
    """Drop the rest of the shadows in which jobs that end lay: jobs that they met, and that stay, are ignored."""
    sharing.numbers[0] += 1
    for job in gone:
        sharing.job[job].mark = sharing.numbers[0]
    for index in range(nodes):
        node = sharing.node[index].touched
        sharing.node[node].since = now
        for place in range(node * sharing.per_node, (node + 1) * sharing.per_node):
            stays = sharing.place[place]
            if stays.job < 0 or _goes(sharing, stays.job):
                continue
            alike, all_inside, last = False, True, place
            is_over = stays.unseen > 0 and _goes(sharing, stays.unseen - 1)
            for other in range(node * sharing.per_node, (node + 1) * sharing.per_node):
                goes = sharing.place[other]
                if goes.job < 0 or not _goes(sharing, goes.job) or goes.unseen != stays.unseen:
                    continue
                alike = True
                all_inside &= goes.inside > 0 and not _goes(sharing, goes.inside - 1)
                if records[goes.job].start > records[sharing.place[last].job].start:
                    last = other
            if alike and all_inside and last != place:
                stays.unseen = sharing.place[last].inside
            elif alike or is_over:
                stays.unseen = 0
            if stays.inside > 0 and _goes(sharing, stays.inside - 1):
                stays.inside = 0


def _goes(sharing: Sharing, job: int) -> bool:
    return sharing.job[job].mark == sharing.numbers[0]


def _begin_shadows(sharing: Sharing, nodes: int, records: np.ndarray, now: float) -> None:
    """Store the starts of shadows, and whether a job that starts lies within the shadow that it interrupts."""
    for index in range(nodes):
        node = sharing.node[index].touched
        places = range(node * sharing.per_node, (node + 1) * sharing.per_node)
        newcomer, first, alone, is_met = -1, -1, sharing.node[node].since < now, False
        for place in places:
            job = sharing.place[place].job
            if job >= 0 and records[job].start == now:
                alone &= newcomer < 0 or newcomer == job
                newcomer = job
            elif job >= 0:
                is_met |= sharing.place[place].unseen == 0
                if first < 0 or sharing.job[job].end < sharing.job[first].end:
                    first = job
        sharing.node[node].since = now
        if not alone or newcomer < 0 or not is_met or sharing.job[newcomer].end >= sharing.job[first].end:
            continue
        for place in places:
            if sharing.place[place].job == newcomer:
                sharing.place[place].inside = first + 1


#: Numbered processors with the reservation table.
ALVIO: dict[Any, Any] = NUMBERED | {operations.serve_otherwise: _serve_table}

#: The same with the defect.
RELEASED_ALVIO: dict[Any, Any] = ALVIO | {
    node_sharing.penalty_at: _penalty_if_seen,
    node_sharing.charge_of: _charge_of_seen,
    node_sharing.jobs_left: _forget_shadows,
    node_sharing.jobs_came: _begin_shadows,
}
