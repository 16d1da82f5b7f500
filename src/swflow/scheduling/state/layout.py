"""The records of a machine's state, and the state itself."""

from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.state.choices import Backfill
from swflow.scheduling.state.queue import Tree

#: The backfills as kernels compare them; the machine model implements the last one.
NONE, EASY = Backfill.NONE.value, Backfill.EASY.value
CONSERVATIVE, OTHER = Backfill.CONSERVATIVE.value, Backfill.RESERVATION_TABLE.value

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
#: (``shapes``); there are ``limits``; a pass backfills at most ``starts`` jobs (0: all); past usage counts half after
#: the ``half_life``.
RULES = record(
    "half_life",
    "processors backfill reservations one_tree by_arrival backfill_by_arrival per_event predict corrects windows "
    "simple shapes limits starts",
)

#: Numbers of running jobs, queued jobs, and predictions that may be corrected; processors of running jobs; processors
#: that running and queued jobs request.
COUNTS = record("", "running queued predicted busy demand")

#: Numbers of the windows that have begun, that have ended, and whose ends were handled as events; the processors that
#: are unavailable now.
WINDOWS = record("", "begun ended handled closed")

#: What the next scheduling pass must consider: all queued jobs (``full``), or the arrivals since the last pass. An
#: arrival before ``reserved_rank`` changes reservations. Jobs may have ended early, or their predictions been
#: corrected. In a pass, the number of its ``steps``.
AGENDA = record("", "full newcomers newcomer first_newcomer reserved_rank ended_early corrected steps")

#: A plan of the whole queue: how many of its jobs leave it after this event (-1: there is no plan), the last rank in
#: it, the first planned start (or an earlier time), and whether it is ``kept`` for the next event.
QUEUE_PLAN = record("first_start", "jobs last_rank kept")

#: The search by `swflow.scheduling.state.search.next_job`: the last ``rank``, and how many jobs are ``lined_up``.
SEARCH = record("", "rank lined_up")


class State(NamedTuple):
    """A machine: its running and queued jobs, and its plan."""

    options: np.ndarray
    counts: np.ndarray
    windows: np.ndarray
    agenda: np.ndarray
    queue_plan: np.ndarray
    search: np.ndarray
    jobs: np.ndarray
    running: np.ndarray  # a heap by the true end
    predictions: np.ndarray  # a heap by the predicted end
    predicted: np.ndarray
    users: np.ndarray
    machine: Any  # the processors, and their plan, of the machine model
    queue: Tree  # sorted by order; with conservative backfilling its lengths are the starts of reservations
    backfill_queue: Tree  # sorted by backfill order
    window_starts: np.ndarray
    window_ends: np.ndarray
    steps: np.ndarray
    line: np.ndarray  # scratch: a heap of queued jobs by key
    planned: np.ndarray  # scratch: the jobs with a reservation of `QUEUE_PLAN` only
    held: np.ndarray  # scratch: the jobs with a reservation in this pass
    attributes: np.ndarray
    shapes: np.ndarray
    usage: Any  # `swflow.scheduling.state.accounts.Usage`, or that of another accounting
    demands: np.ndarray  # the units of each resource that a job needs
    capacities: np.ndarray  # the units of each resource that the machine has
    slots: np.ndarray  # for formulas: the resources that they mention, -1 for none
