"""User feedback: the job after which a user submits the next one, and the think time in between."""

import warnings
from typing import NamedTuple

import numpy as np
import polars as pl

from swflow.errors import SwflowError

#: A user who submits nothing for longer than this has begun another session, seconds (``feedback: sessions``).
SESSION_GAP = 3600.0

#: A user who submits nothing for longer than this after the last job ended has begun another session, seconds
#: (`feedback: think-times`).
LONGEST_THINK_TIME = 1200.0


class Dependencies(NamedTuple):
    """
    The jobs after which others are submitted.

    Parameters
    ----------
    previous : int64 array of shape (jobs,), or (dependencies,)
        The row of an earlier job after whose end a job is submitted; -1: it is submitted at the recorded time. With
        ``dependent``: the row of the job that each dependency waits for.
    think : float64 array of shape (jobs,)
        The think time between that end and the submission, seconds.
    dependent : int64 array of shape (dependencies,), optional
        The row of the job that waits, for each dependency; a job can wait for several.
    earliest : float64 array of shape (jobs,), optional
        The times before which jobs are not submitted, seconds.
    """

    previous: np.ndarray
    think: np.ndarray
    dependent: np.ndarray | None = None
    earliest: np.ndarray | None = None


def dependencies_of(jobs: pl.DataFrame, kind: str, name: str) -> Dependencies | None:
    """
    Return the job after which each job is submitted.

    Where the log names preceding jobs (``preceding_job_id``), these are used, with their ``think_time``. Otherwise they
    are inferred, user by user, from the recorded schedule:

    - A *session* ends, with ``sessions``, when the user submits nothing for more than 1 h, however long jobs run;
      with ``think-times``, when nothing is submitted for more than 20 min after all jobs of the batch have ended.
    - A *batch* is a set of jobs that a user submits without waiting for any of them: a job that is submitted when all
      jobs of the previous batch have ended starts a new one.
    - The jobs of a session's first batch are submitted at the recorded times. Those of another batch depend on the job
      of the previous batch that ended last; their think time is the recorded time between its end and their submission.

    Parameters
    ----------
    jobs : polars.DataFrame
        The jobs that take part, by submit time and id: ``job_id``, ``submit_time``, ``run_time``, ``wait_time``,
        ``user_id``; ``preceding_job_id`` and ``think_time`` where the log has them. An unknown wait time counts as 0; a
        job without a user depends on none.
    kind : {'none', 'sessions', 'think-times'}
        The rule that ends a session.
    name : str
        The workload's name, for errors.

    Returns
    -------
    Dependencies or None
        None without feedback.

    Raises
    ------
    SwflowError
        If the log records neither wait times nor preceding jobs.

    References
    ----------
    N. Zakay, D. G. Feitelson, "On identifying user session boundaries in parallel workload logs", JSSPP 2012: sessions
    by submissions alone, or as before by think times. N. Zakay, D. G. Feitelson, "Preserving user behavior
    characteristics in trace-based simulation of parallel job scheduling", MASCOTS 2014: dependencies between batches.

    Examples
    --------
    >>> jobs = pl.DataFrame({
    ...     "job_id": [1, 2, 3], "submit_time": [0.0, 10.0, 200.0], "run_time": [100.0, 50.0, 9.0],
    ...     "wait_time": [0.0, 60.0, 0.0], "user_id": [1, 1, 1],
    ... })
    >>> found = dependencies_of(jobs, "sessions", "tiny")
    >>> found.previous.tolist(), found.think.tolist()
    ([-1, -1, 1], [0.0, 0.0, 80.0])
    """
    if kind == "none":
        return None
    if "preceding_job_id" in jobs.columns and jobs["preceding_job_id"].is_not_null().any():
        return _recorded(jobs, name)
    if "wait_time" not in jobs.columns or jobs["wait_time"].is_null().all():
        raise SwflowError(
            f"feedback: {name}: neither wait times nor preceding jobs are recorded, so dependencies are unknown; leave "
            "feedback out"
        )
    if "user_id" not in jobs.columns or jobs["user_id"].is_null().all():
        raise SwflowError(f"feedback: {name}: no users are recorded, so there are no sessions; leave feedback out")
    previous, think = np.full(jobs.height, -1), np.zeros(jobs.height)
    last_submit: dict[int, float] = {}
    batch: dict[int, tuple[int, float]] = {}  # the job of the current batch that ends last, and when
    before: dict[int, tuple[int, float]] = {}  # that of the batch before
    columns = (jobs["user_id"].to_list(), jobs["submit_time"].to_list(), _ends(jobs).tolist())
    for job, (user, submit, end) in enumerate(zip(*columns, strict=True)):
        if user is None:
            continue
        if user not in last_submit or _is_new(kind, submit, last_submit[user], batch[user][1]):
            before.pop(user, None)
            batch[user] = (job, end)
        elif submit >= batch[user][1]:
            before[user] = batch[user]
            batch[user] = (job, end)
        elif end > batch[user][1]:
            batch[user] = (job, end)
        last_submit[user] = submit
        if user in before:
            previous[job], ended = before[user]
            think[job] = submit - ended
    return Dependencies(previous, think)


def _is_new(kind: str, submit: float, last_submit: float, ended: float) -> bool:
    """Return whether a job begins a session."""
    if kind == "sessions":
        return submit - last_submit > SESSION_GAP
    return submit - ended > LONGEST_THINK_TIME


def _ends(jobs: pl.DataFrame) -> np.ndarray:
    """Return the recorded ends."""
    wait = jobs["wait_time"].fill_null(0.0) if "wait_time" in jobs.columns else 0.0
    return (jobs["submit_time"] + wait + jobs["run_time"]).to_numpy()


def _recorded(jobs: pl.DataFrame, name: str) -> Dependencies:
    """Return the dependencies that the log records."""
    ids = jobs["job_id"].to_list()
    rows = {number: row for row, number in enumerate(ids)}
    named = jobs["preceding_job_id"].to_list()
    times = jobs["think_time"].to_list() if "think_time" in jobs.columns else [None] * jobs.height
    ends, submit = _ends(jobs), jobs["submit_time"].to_numpy()
    previous, think = np.full(jobs.height, -1), np.zeros(jobs.height)
    lost = 0
    for job, (number, time) in enumerate(zip(named, times, strict=True)):
        if number is None:
            continue
        row = rows.get(number, jobs.height)
        if row >= job:
            lost += 1
            continue
        previous[job] = row
        think[job] = max(0.0, submit[job] - ends[row] if time is None else time)
    if lost:
        warnings.warn(
            f"{name}: feedback: {lost:,} jobs name a preceding job that is missing or later; they are submitted at the "
            "recorded times",
            stacklevel=2,
        )
    return Dependencies(previous, think)
