"""Plans of the whole queue, with which a shape or a cluster is chosen when a job is submitted."""

import math

import numpy as np

from swflow.scheduling.state.changes import take
from swflow.scheduling.state.layout import CONSERVATIVE, State
from swflow.scheduling.state.operations import cancel, find, open_plan, plan_apart, reserve
from swflow.scheduling.state.queue import NO_JOB
from swflow.scheduling.state.search import next_job, start_search


def soonest_done(state: State, item: int, choices: np.ndarray, begin: int, end: int, now: float) -> int:
    """Return the shape with the earliest planned end, by ascending processors; ties go to the narrowest."""
    chosen = begin
    soonest = math.inf
    for k in range(begin, end):
        width, length = choices[k].processors, choices[k].planned
        if width > state.options[0].processors:
            break
        done = find(state, item, width, length, now) + length
        if done < soonest:
            chosen = k
            soonest = done
    return chosen


def soonest_shape(state: State, item: int, now: float) -> int:
    """Return the shape with which a job ends first by what is planned."""
    return soonest_done(state, item, state.shapes, state.shapes[item].first, state.shapes[item].end, now)


def earliest_start(state: State, item: int, now: float) -> float:
    """Return the earliest start of a job by what is planned; if its shape is not chosen yet, choose it for that."""
    job = state.jobs[item]
    if state.options[0].shapes:
        take(state, item, soonest_shape(state, item, now))
    return find(state, item, job.processors, job.planned, now)


def plan_queue(state: State, now: float) -> None:
    """Give each queued job without a reservation one, in order of the queue, until `drop_plan`."""
    options, queue_plan, queue = state.options[0], state.queue_plan[0], state.queue
    if queue_plan.jobs >= 0:
        return
    queue_plan.jobs = 0
    queue_plan.last_rank = open_plan(state, now)
    start_search(state, queue_plan.last_rank + 1)
    everybody = NO_JOB - 1 if options.backfill != CONSERVATIVE else -1  # or those without a reservation
    while True:
        item = next_job(state, queue, now, everybody, NO_JOB - 1, 0.0, -np.inf)
        if item < 0:
            break
        if np.isnan(state.jobs[item].reserved):
            _plan_earliest(state, item, now)


def _plan_earliest(state: State, item: int, now: float) -> None:
    job, queue_plan = state.jobs[item], state.queue_plan[0]
    queue_plan.last_rank = job.rank
    time = earliest_start(state, item, now)
    if not plan_apart(state, item, time):
        job.reserved = time
        reserve(state, item)
        state.planned[queue_plan.jobs] = item
        queue_plan.jobs += 1


def plan_next(state: State, item: int, now: float) -> None:
    """Add a job that just arrived to the plan, if there is one."""
    options, queue_plan = state.options[0], state.queue_plan[0]
    if state.queue.formula or options.shapes or state.jobs[item].rank < queue_plan.last_rank:
        drop_plan(state)  # it is not the last one
        queue_plan.kept = 0
    elif queue_plan.jobs >= 0:
        _plan_earliest(state, item, now)


def drop_plan(state: State) -> None:
    """Remove the reservations of `plan_queue`, except those of a plan that is kept."""
    queue_plan = state.queue_plan[0]
    for k in range(queue_plan.jobs):
        cancel(state, state.planned[k])
        state.jobs[state.planned[k]].reserved = np.nan
    queue_plan.jobs = -1
    if state.queue.formula or state.options[0].shapes:
        queue_plan.kept = 0  # the order changes with time
