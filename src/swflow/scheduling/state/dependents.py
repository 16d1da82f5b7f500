"""Dependent jobs: jobs that are submitted some time after another job has ended."""

from typing import Any, NamedTuple

import numpy as np

from swflow.jobs.dependencies import Dependencies
from swflow.scheduling.state import operations
from swflow.scheduling.state.layout import State


class Dependents(NamedTuple):
    """
    The dependent jobs of each job, and the order of arrival.

    The dependents of a job are those of ``items`` from ``first[job]`` to before ``first[job + 1]``. Each is submitted
    when all jobs that it depends on, of which ``left`` have not ended, have ended and ``think`` seconds have passed,
    but not before ``earliest``. ``line`` has the jobs in order of arrival from place ``at[0]`` on, as far as it is
    known; the places before it are room for jobs whose submit times are unknown yet. ``at[1]`` counts the jobs that
    have arrived. If the response time of a job is above its ``patience``, its dependents are never submitted: their
    submit times are infinite, and those of their own dependents stay unknown.
    """

    line: np.ndarray  # empty: jobs arrive in their order, at the given times
    first: np.ndarray
    items: np.ndarray
    think: np.ndarray
    left: np.ndarray
    earliest: np.ndarray
    patience: np.ndarray  # empty: unlimited
    at: np.ndarray


def new_dependents(dependencies: Dependencies | None) -> Dependents:
    """Return the dependent jobs of each job."""
    if dependencies is None:
        none = np.empty(0, np.int64)
        return Dependents(none, none, none, np.empty(0), none, np.empty(0), np.empty(0), np.zeros(2, np.int64))
    previous, think, dependent, earliest, patience = dependencies
    if dependent is None:
        dependent = np.flatnonzero(previous >= 0)
        previous = previous[dependent]
    left = np.bincount(dependent, minlength=think.size)
    items = dependent[np.argsort(previous, kind="stable")]
    first = np.append(0, np.cumsum(np.bincount(previous, minlength=think.size)))
    waits = left > 0
    line = np.concatenate([np.flatnonzero(waits), np.flatnonzero(~waits)])
    earliest = np.full(think.size, -np.inf) if earliest is None else earliest
    patience = np.empty(0) if patience is None else patience
    return Dependents(line, first, items, think, left, earliest, patience, np.array([waits.sum(), 0], np.int64))


def _release_dependents(dependents: Dependents, jobs: np.ndarray, item: int, now: float) -> None:
    """
    Insert the dependents of a job that ends now into the order of arrival, by submit time and then index.

    A dependent that waits for further jobs is not inserted yet.
    """
    line, at = dependents.line, dependents.at
    leaves = dependents.patience.size > 0 and now - jobs[item].submit > dependents.patience[item]
    for place in range(dependents.first[item], dependents.first[item + 1]):
        dependent = dependents.items[place]
        dependents.left[dependent] -= 1
        if leaves:
            jobs[dependent].submit = np.inf
            continue
        if dependents.left[dependent] > 0:
            continue
        time = max(now + dependents.think[dependent], dependents.earliest[dependent])
        jobs[dependent].submit = time
        at[0] -= 1
        here = at[0]
        while here + 1 < line.size:
            other = line[here + 1]
            submit = jobs[other].submit
            if submit > time or (submit == time and other > dependent):
                break
            line[here] = other
            here += 1
        line[here] = dependent


def _take_turn(dependents: Dependents, state: State, item: int) -> None:
    """Set the rank of a job that arrives, if ranks are in order of arrival."""
    turn = dependents.at[1]
    dependents.at[1] += 1
    if state.options[0].by_arrival:
        state.jobs[item].rank = turn
        state.queue.job_at[turn] = item
    if state.options[0].backfill_by_arrival:
        state.jobs[item].backfill_rank = turn
        state.backfill_queue.job_at[turn] = item


#: The implementation of the operations of dependent jobs.
DEPENDENTS: dict[Any, Any] = {
    operations.release_dependents: _release_dependents,
    operations.take_turn: _take_turn,
}
