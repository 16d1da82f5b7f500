"""Changes of a machine's state: time passes, jobs arrive, start and end, predictions are corrected."""

import numpy as np

from swflow.scheduling.state.heap import pop, push
from swflow.scheduling.state.layout import CONSERVATIVE, State
from swflow.scheduling.state.operations import (
    end_of,
    extend,
    longest,
    move_on,
    note_end,
    note_start,
    note_submission,
    occupy,
    pass_time,
    release,
)
from swflow.scheduling.state.queue import NO_JOB, put

#: Seconds by which a system-generated prediction grows, one after the other, each time a job exceeds it
#: (D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling using system-generated predictions rather than user
#: runtime estimates", IEEE TPDS 2007).
INCREMENTS = np.array([60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000], np.float64)


def advance(state: State, now: float) -> None:
    """Advance the machine's clock to ``now``."""
    move_on(state, now)
    pass_time(state, now)
    if state.options[0].windows:
        windows = state.windows[0]
        while windows.begun < state.window_starts.size and state.window_starts[windows.begun].time <= now:
            windows.closed += state.window_starts[windows.begun].job
            windows.begun += 1
        while windows.ended < state.window_ends.size and state.window_ends[windows.ended].time <= now:
            windows.closed -= state.window_ends[windows.ended].job
            windows.ended += 1


def predicted_length(state: State, item: int, estimate: float) -> float:
    """Return the prediction of a job's run time by its user's last two, at most the estimate."""
    user = state.users[state.predicted[item].user]
    return max(1.0, min(estimate, (user.older + user.newer) / 2)) if user.jobs >= 2 else estimate


def arrive(state: State, item: int) -> None:
    """Add a job to the queue."""
    counts, agenda, options, job = state.counts[0], state.agenda[0], state.options[0], state.jobs[item]
    if options.predict:
        state.predicted[item].estimate = job.planned
        job.planned = predicted_length(state, item, job.planned)
    width, length = job.processors, job.planned
    if options.shapes:
        width, length = state.shapes[item].narrowest, state.shapes[item].shortest
    first = length
    if options.backfill >= CONSERVATIVE:  # the tree has the starts of reservations
        first = -np.inf if options.backfill == CONSERVATIVE else np.inf
    put(state.queue, job.rank, width, first)
    if not options.one_tree:
        put(state.backfill_queue, job.backfill_rank, width, length)
    note_submission(state, item)
    counts.queued += 1
    counts.demand += state.shapes[item].processors if options.shapes else job.processors
    if agenda.newcomers == 0:
        agenda.first_newcomer = item
    agenda.newcomers += 1
    agenda.newcomer = item
    if job.rank < agenda.reserved_rank:
        agenda.full = 1


def complete(state: State, now: float) -> None:
    """Remove the job that ends first, now, from the machine."""
    counts, agenda, options = state.counts[0], state.agenda[0], state.options[0]
    item = state.running[0].job
    job = state.jobs[item]
    counts.running = pop(state.running, counts.running)
    counts.busy -= job.processors
    counts.demand -= job.processors
    agenda.full = 1
    note_end(state, item, now)
    if now < job.planned_end:
        agenda.ended_early = 1
    release(state, item, now)
    if options.predict:
        user = state.users[state.predicted[item].user]
        user.older = user.newer
        user.newer = job.run
        user.jobs += 1


def correct(state: State, now: float) -> None:
    """Extend each prediction that a job exceeded by the next increment, up to the user's estimate."""
    counts, agenda = state.counts[0], state.agenda[0]
    while counts.predicted > 0 and state.predictions[0].time <= now:
        item = state.predictions[0].job
        counts.predicted = pop(state.predictions, counts.predicted)
        job, prediction = state.jobs[item], state.predicted[item]
        if end_of(state, item) <= now:
            continue
        while job.planned_end <= now:
            step = min(prediction.corrections, INCREMENTS.size - 1)
            prediction.corrections += 1
            length = job.planned_end - job.start + INCREMENTS[step]
            job.planned_end = job.start + min(length, longest(state, item))
        extend(state, item, now)
        counts.predicted = push(state.predictions, counts.predicted, job.planned_end, item)
        agenda.full = 1
        agenda.corrected = 1


def begin(state: State, item: int, now: float) -> None:
    """Start a queued job."""
    counts, options, job = state.counts[0], state.options[0], state.jobs[item]
    job.start = now
    job.planned_end = now + job.planned
    if options.shapes:
        counts.demand += job.processors - state.shapes[item].processors  # until now it was that of the request
    occupy(state, item, now)
    counts.busy += job.processors
    note_start(state, item, now)
    counts.running = push(state.running, counts.running, now + job.run, item)
    if options.corrects:
        counts.predicted = push(state.predictions, counts.predicted, job.planned_end, item)
    dequeue(state, item)


def dequeue(state: State, item: int) -> None:
    """Remove a job from the queue."""
    job = state.jobs[item]
    state.counts[0].queued -= 1
    put(state.queue, job.rank, NO_JOB, np.inf)
    if not state.options[0].one_tree:
        put(state.backfill_queue, job.backfill_rank, NO_JOB, np.inf)


def is_entered(state: State, number: int) -> bool:
    """Return whether a pass enters its reservation of this number, from 1 on, into the plan."""
    return not state.options[0].simple or number < state.options[0].reservations


def take(state: State, item: int, chosen: int) -> None:
    """Set the shape of a job."""
    job, shape = state.jobs[item], state.shapes[chosen]
    job.processors = shape.processors
    job.planned = shape.planned
    job.run = shape.run
