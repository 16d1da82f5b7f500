"""The state of one machine, and its changes by arrivals, completions and starts."""

from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.engine.accounts import OF_GROUP, OF_USER, Usage, at_limit, book_use, share_of
from swflow.scheduling.engine.heap import pop, push
from swflow.scheduling.engine.operations import end_of, extend, longest, move_on, occupy, release
from swflow.scheduling.engine.queue import NO_JOB, Tree, following, put
from swflow.scheduling.orders.keys import key_of, plain_key_of

#: Seconds by which a system-generated prediction grows, one after the other, each time a job exceeds it
#: (D. Tsafrir, Y. Etsion, D. G. Feitelson, "Backfilling using system-generated predictions rather than user
#: runtime estimates", IEEE TPDS 2007).
INCREMENTS = np.array([60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000], np.float64)

#: The numbers of the backfills, in the order of the table of options; the machine model implements the last one.
NONE, EASY, CONSERVATIVE, OTHER = range(4)

#: A job: its data, its ranks in the two orders, and its schedule. ``planned_end`` is for running jobs, ``reserved`` for
#: queued ones (the start of the reservation, NaN without); ``promise`` is the start of the first reservation.
JOB = record("submit run start planned_end promise planned reserved", "processors rank backfill_rank")

#: Data of a job for predictions: the user's estimate, the user, how often the prediction was corrected.
PREDICTED = record("estimate", "user corrections")

#: The last two completed run times of a user, and the number of completed jobs.
USER = record("older newer", "jobs")

#: A shape of a job. If shapes are chosen at the start, the first records, one per job, are the requests, which
#: determine the keys; the shapes of a request are those from ``first`` to before ``end``, and ``narrowest`` and
#: ``shortest`` are the least processors and planned run time of them.
SHAPE = record("run planned shortest", "processors first end narrowest")

#: A bound on free processors: a job that ends after ``time`` can have at most ``free``.
STEP = record("time", "free")

#: The options, constant during a run. ``by_arrival`` states whether ranks are in order of arrival, in the queue and for
#: backfilling. Jobs may exceed their plan (``corrects``); other than reservations, only ends of jobs change the
#: profile, so a pass needs not enter its last reservation (``simple``); a job's shape is chosen when it starts
#: (``shapes``); usage and running jobs of ``accounts`` are counted.
RULES = record(
    "half_life",
    "machine backfill reservations one_tree by_arrival backfill_by_arrival per_event predict corrects windows simple "
    "shapes accounts limits",
)

#: Variables: numbers of running jobs, queued jobs, and predictions that may be corrected; processors of running jobs
#: and of windows. For the next pass: whether it must consider all queued jobs (``full``), the arrivals since the last
#: pass, and the rank before which an arrival changes reservations. Of a plan of the whole queue: how many of its jobs
#: leave it after this event (-1: there is no plan), the last rank in it, the first planned start (or an earlier time),
#: and whether it is ``kept`` for the next event. Of the search by `next_job`: the last ``rank``, and how many jobs are
#: ``lined_up``.
NOW = record(
    "planned_first",
    "running queued predicted busy closed windows_begun windows_ended windows_handled full newcomers newcomer "
    "first_newcomer reserved_rank steps ended_early corrected demand planned planned_rank kept rank "
    "lined_up",
)


class State(NamedTuple):
    """A machine: its running and queued jobs, and its plan."""

    options: np.ndarray
    now: np.ndarray
    jobs: np.ndarray
    running: np.ndarray  # a heap by the true end
    predictions: np.ndarray  # a heap by the predicted end
    predicted: np.ndarray
    users: np.ndarray
    free: Any  # the processors, and their plan, of the machine model
    queue: Tree  # by order; with conservative backfilling its lengths are the starts of reservations
    backfill_queue: Tree  # by backfill order
    window_starts: np.ndarray
    window_ends: np.ndarray
    steps: np.ndarray
    line: np.ndarray  # scratch: a heap of queued jobs by key
    held: np.ndarray  # scratch: the jobs with a reservation in this pass
    attributes: np.ndarray
    shapes: np.ndarray
    usage: Usage
    demands: np.ndarray  # the units of each resource that a job needs
    capacities: np.ndarray  # the units of each resource that the machine has
    slots: np.ndarray  # for formulas: the resources that they mention, -1 for none


def advance(state: State, now: float) -> None:
    """Advance the machine's clock to ``now``."""
    move_on(state, now)
    if state.options[0].windows:
        core = state.now[0]
        while core.windows_begun < state.window_starts.size and state.window_starts[core.windows_begun].time <= now:
            core.closed += state.window_starts[core.windows_begun].job
            core.windows_begun += 1
        while core.windows_ended < state.window_ends.size and state.window_ends[core.windows_ended].time <= now:
            core.closed -= state.window_ends[core.windows_ended].job
            core.windows_ended += 1


def predicted_length(state: State, item: int, estimate: float) -> float:
    """Return the prediction of a job's run time by its user's last two, at most the estimate."""
    user = state.users[state.predicted[item].user]
    return max(1.0, min(estimate, (user.older + user.newer) / 2)) if user.jobs >= 2 else estimate


def arrive(state: State, item: int) -> None:
    """Add a job to the queue."""
    core, options, job = state.now[0], state.options[0], state.jobs[item]
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
    core.queued += 1
    core.demand += state.shapes[item].processors if options.shapes else job.processors
    if core.newcomers == 0:
        core.first_newcomer = item
    core.newcomers += 1
    core.newcomer = item
    if job.rank < core.reserved_rank:
        core.full = 1


def complete(state: State, now: float) -> None:
    """Remove the job that ends first, now, from the machine."""
    core, options = state.now[0], state.options[0]
    item = state.running[0].job
    job = state.jobs[item]
    core.running = pop(state.running, core.running)
    core.busy -= job.processors
    core.demand -= job.processors
    core.full = 1
    if options.accounts:
        book_use(state.usage, item, now, options.half_life, -1, -job.processors)
    if now < job.planned_end:
        core.ended_early = 1
    release(state, item, now)
    if options.predict:
        user = state.users[state.predicted[item].user]
        user.older = user.newer
        user.newer = job.run
        user.jobs += 1


def correct(state: State, now: float) -> None:
    """Extend each prediction that a job exceeded by the next increment, up to the user's estimate."""
    core = state.now[0]
    while core.predicted > 0 and state.predictions[0].time <= now:
        item = state.predictions[0].job
        core.predicted = pop(state.predictions, core.predicted)
        job, prediction = state.jobs[item], state.predicted[item]
        if end_of(state, item) <= now:
            continue
        while job.planned_end <= now:
            step = min(prediction.corrections, INCREMENTS.size - 1)
            prediction.corrections += 1
            length = job.planned_end - job.start + INCREMENTS[step]
            job.planned_end = job.start + min(length, longest(state, item))
        extend(state, item, now)
        core.predicted = push(state.predictions, core.predicted, job.planned_end, item)
        core.full = 1
        core.corrected = 1


def begin(state: State, item: int, now: float) -> None:
    """Start a queued job."""
    core, options, job = state.now[0], state.options[0], state.jobs[item]
    job.start = now
    job.planned_end = now + job.planned
    if options.shapes:
        core.demand += job.processors - state.shapes[item].processors  # until now it was that of the request
    occupy(state, item, now)
    core.busy += job.processors
    if options.accounts:
        book_use(state.usage, item, now, options.half_life, 1, job.processors)
    core.running = push(state.running, core.running, now + job.run, item)
    if options.corrects:
        core.predicted = push(state.predictions, core.predicted, job.planned_end, item)
    dequeue(state, item)


def dequeue(state: State, item: int) -> None:
    """Remove a job from the queue."""
    job = state.jobs[item]
    state.now[0].queued -= 1
    put(state.queue, job.rank, NO_JOB, np.inf)
    if not state.options[0].one_tree:
        put(state.backfill_queue, job.backfill_rank, NO_JOB, np.inf)


def is_entered(state: State, number: int) -> bool:
    """Return whether a pass enters its reservation of this number, from 1 on, into the plan."""
    return not state.options[0].simple or number < state.options[0].reservations


def is_limited(state: State, item: int) -> bool:
    """Return whether a job is skipped now, because its user, group or partition is at a limit."""
    return state.options[0].limits != 0 and at_limit(state.usage, item, state.jobs[item].processors)


def take(state: State, item: int, chosen: int) -> None:
    """Set the shape of a job."""
    job, shape = state.jobs[item], state.shapes[chosen]
    job.processors = shape.processors
    job.planned = shape.planned
    job.run = shape.run


def _key(state: State, tree: Tree, item: int, now: float) -> float:
    """Return the key of a queued job by the formula of a tree."""
    submit, planned, processors = state.jobs[item].submit, state.jobs[item].planned, state.jobs[item].processors
    if state.options[0].shapes:
        planned, processors = state.shapes[item].planned, state.shapes[item].processors
    if tree.is_plain:
        key = plain_key_of(tree.formula, now, submit, planned, float(processors))
    else:
        key = _key_of_all(state, tree.formula, item, now, planned, processors)
    return np.inf if np.isnan(key) else key


def _key_of_all(state: State, formula: int, item: int, now: float, planned: float, processors: int) -> float:
    """Return the value of a formula that may mention any variable."""
    options, usage = state.options[0], state.usage
    user_usage = group_usage = 0.0
    if options.accounts:
        user_usage = share_of(usage.accounts, usage.rows[item, OF_USER], now, options.half_life)
        group_usage = share_of(usage.accounts, usage.rows[item, OF_GROUP], now, options.half_life)
    dominant = processors / options.machine
    for resource in range(state.capacities.size):
        dominant = max(dominant, state.demands[item, resource] / max(state.capacities[resource], 1))
    known = state.attributes[min(item, state.attributes.shape[0] - 1)]
    owner = usage.variables[min(item, usage.variables.shape[0] - 1)]
    submit, machine = state.jobs[item].submit, float(options.machine)
    numbers = now, submit, planned, float(processors), user_usage, group_usage, machine, dominant
    return key_of(formula, item, numbers, known, owner, state.demands, state.slots)


def line_up(state: State, tree: Tree, now: float, narrow: int, wide: int, base: float, latest: float) -> int:
    """Collect the queued jobs that `following` finds in ``state.line``, a heap by their keys; return its size."""
    size = 0
    rank = following(tree, 0, narrow, wide, base, latest)
    while rank >= 0:
        item = tree.job_at[rank]
        size = push(state.line, size, _key(state, tree, item, now) if tree.formula else float(rank), item)
        rank = following(tree, rank + 1, narrow, wide, base, latest)
    return size


def start_search(state: State, rank: int) -> None:
    """Start to search the queue, from a rank on, by `next_job`."""
    state.now[0].rank = rank - 1
    state.now[0].lined_up = -1


def next_job(state: State, tree: Tree, now: float, narrow: int, wide: int, base: float, latest: float) -> int:
    """Return the next job that `following` finds, or by a formula the next of those that it found first; else -1."""
    core = state.now[0]
    if tree.formula:
        if core.lined_up < 0:
            core.lined_up = line_up(state, tree, now, narrow, wide, base, latest)
        if core.lined_up == 0:
            return -1
        item = state.line[0].job
        core.lined_up = pop(state.line, core.lined_up)
        return item
    core.rank = following(tree, core.rank + 1, narrow, wide, base, latest)
    return tree.job_at[core.rank] if core.rank >= 0 else -1
