"""The state of preemption on nodes: what jobs may preempt, and the jobs that were preempted."""

from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.slurm.problem import Preempting
from swflow.scheduling.state.heap import ELEMENT

#: A running job that may be preempted, with its first part, its number of nodes, and its class's value; ``usable``
#: counts its nodes among those that were chosen.
CANDIDATE = record("", "job part nodes worth usable")

#: The times of `Preempting`, the delay from a preemption until nodes are free, and the time until which nodes are
#: released. The ``level`` of the jobs that are searched; the number of candidates; the numbers of preempted jobs that
#: leave their nodes, and that will be queued again. The candidates were ``listed`` at a time, for a class of jobs in a
#: set of nodes and a version of the running jobs, and are the same before another time; the first time is NaN if they
#: must be listed anew. The number of this list, and of the one whose jobs are planned to be preempted, which are the
#: first ``marked`` ones of `Preempted.planned`.
PREEMPTING = record(
    "exempt delay release_delay until listed_at listed_until",
    "level top candidates leaving away listed kind nodes version number marked planned",
)


class Preempted(NamedTuple):
    """What jobs may preempt, and what became of those that were preempted."""

    head: np.ndarray
    kind: np.ndarray  # the class of each job
    may: np.ndarray  # the fields of `Preempting`
    is_prey: np.ndarray  # whether jobs of any class may preempt those of each class
    worth: np.ndarray
    level: np.ndarray
    requeues: np.ndarray
    candidates: np.ndarray  # the jobs that may be preempted for a job, in the order in which they are taken
    gone: np.ndarray  # whether each job is planned to be preempted
    planned: np.ndarray  # these jobs
    again: np.ndarray  # the time before which no more jobs are preempted for each job
    submitted: np.ndarray  # the first submit time of each job that was queued again; NaN for other jobs
    preemptions: np.ndarray  # how often each job was preempted
    lost: np.ndarray  # the time of each job's runs that were lost because the job was queued again, seconds
    ended: np.ndarray  # the time at which preemption ended each job for good; NaN for other jobs
    leaving: np.ndarray  # a heap of preempted jobs, by the time at which they leave their nodes
    away: np.ndarray  # a heap of jobs that are queued again, by the time at which they are eligible
    until: np.ndarray  # the time until which each node is released
    released: np.ndarray  # scratch: the set of nodes that are released
    kept: np.ndarray  # scratch: the set of nodes that a job would have reserved


def classes_that_preempt(preempted: Preempted, jobs: int) -> np.ndarray:
    """Return the class of each job that may preempt others; -1 for other jobs."""
    if preempted.kind.size == 0:
        return np.full(jobs, -1)
    return np.where(preempted.level[preempted.kind] > 0, preempted.kind, -1)


def new_preempted(given: Preempting | None, jobs: int, nodes: int, release_delay: float) -> Preempted:
    """Return the state before the first event; without preemption, most arrays are empty."""
    if given is None:
        none = np.zeros(0, np.int64)
        given, jobs, nodes = Preempting(none, np.zeros((0, 0), np.bool_), none, none, none > 0, 0.0, 0.0), 0, 0
    head, words = np.zeros(1, PREEMPTING), (nodes + 63) >> 6
    head["exempt"], head["delay"], head["release_delay"] = given.exempt, given.delay, release_delay
    head["until"], head["top"], head["listed_at"] = -np.inf, given.level.max(initial=0), np.nan
    return Preempted(
        head=head,
        kind=given.kind,
        may=given.may,
        is_prey=np.asarray(given.may.any(axis=0)),
        worth=given.worth,
        level=given.level,
        requeues=given.requeues,
        candidates=np.zeros(jobs, CANDIDATE),
        gone=np.zeros(jobs, np.bool_),
        planned=np.zeros(jobs, np.int64),
        again=np.full(jobs, -np.inf),
        submitted=np.full(jobs, np.nan),
        preemptions=np.zeros(jobs, np.int64),
        lost=np.zeros(jobs),
        ended=np.full(jobs, np.nan),
        leaving=np.empty(jobs, ELEMENT),
        away=np.empty(jobs, ELEMENT),
        until=np.full(nodes, -np.inf),
        released=np.zeros(words, np.uint64),
        kept=np.zeros(words, np.uint64),
    )
