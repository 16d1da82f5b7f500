"""Jobs that are submitted some time after another job has ended: when they come is known only then."""

from typing import NamedTuple

import numpy as np

from swflow.kernels import lean
from swflow.scheduling.engine.state import State


class Followers(NamedTuple):
    """
    Who follows whom, and who comes next.

    A job's followers are those of ``items`` from ``first[job]`` to before ``first[job + 1]``. ``line`` are the jobs in
    order of arrival: what is known of it are the places from ``at[0]`` on; those before it are room for all that are
    still to be known. ``at[1]`` counts who came.
    """

    line: np.ndarray  # empty: jobs come in their order, at the times given
    first: np.ndarray
    items: np.ndarray
    think: np.ndarray
    at: np.ndarray


def nobody() -> Followers:
    """Return that jobs come at the times given."""
    none = np.empty(0, np.int64)
    return Followers(none, none, none, np.empty(0), np.zeros(2, np.int64))


def followers_of(previous: np.ndarray, think: np.ndarray) -> Followers:
    """
    Return who follows whom.

    Parameters
    ----------
    previous : int64 array of shape (jobs,)
        Whom each job follows, an earlier one; -1: it comes at the time given.
    think : float64 array of shape (jobs,)
        How long after its end, seconds.

    Returns
    -------
    Followers
    """
    waits = previous >= 0
    items = np.flatnonzero(waits)
    items = items[np.argsort(previous[items], kind="stable")]
    first = np.append(0, np.cumsum(np.bincount(previous[waits], minlength=previous.size)))
    line = np.concatenate([items, np.flatnonzero(~waits)])
    return Followers(line, first, items, think, np.array([items.size, 0], np.int64))


@lean
def release_followers(followers: Followers, jobs: np.ndarray, item: int, now: float) -> None:
    """Put the followers of a job that ends now into the line, by submit time and then index."""
    line, at = followers.line, followers.at
    for place in range(followers.first[item], followers.first[item + 1]):
        follower = followers.items[place]
        time = now + followers.think[follower]
        jobs[follower].submit = time
        at[0] -= 1
        here = at[0]
        while here + 1 < line.size:
            other = line[here + 1]
            submit = jobs[other].submit
            if submit > time or (submit == time and other > follower):
                break
            line[here] = other
            here += 1
        line[here] = follower


@lean
def take_turn(followers: Followers, state: State, item: int) -> None:
    """Give a job that arrives its rank, where ranks are those of arrival."""
    turn = followers.at[1]
    followers.at[1] += 1
    if state.options[0].by_arrival:
        state.jobs[item].rank = turn
        state.queue.job_at[turn] = item
    if state.options[0].backfill_by_arrival:
        state.jobs[item].backfill_rank = turn
        state.backfill_queue.job_at[turn] = item
