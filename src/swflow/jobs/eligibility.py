"""What jobs wait for besides processors: holds, dependencies, user feedback, limits of arrays, units of resources."""

import graphlib
import warnings
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import polars as pl

from swflow.errors import SwflowError, UnsupportedError
from swflow.jobs.dependencies import Dependencies
from swflow.jobs.machine import MOST_UNITS
from swflow.jobs.table import has_values, sort_jobs

#: A user who submits nothing for longer than this has begun another session, seconds (``feedback: sessions``).
SESSION_GAP = 3600.0

#: A user continues a session after a response time of t seconds with a probability in proportion to
#: 1 / (1 + `IMPATIENCE` t), 0.05 per minute (``feedback: leaving``).
IMPATIENCE = 0.05 / 60

#: A user who submits nothing for longer than this after the last job ended has begun another session, seconds
#: (`feedback: think-times`).
LONGEST_THINK_TIME = 1200.0


def _require_numbers(jobs: pl.DataFrame, column: str, is_valid: pl.Expr, expected: str, name: str) -> None:
    """Raise an error that names the first job whose value of a column is neither null nor valid."""
    if not jobs.schema[column].is_numeric():
        raise SwflowError(f"{name}: column {column} holds {jobs.schema[column]}; expected {expected}")
    wrong = jobs.filter(~is_valid)
    if wrong.height:
        raise SwflowError(f"{name}: job {wrong['job_id'][0]}: {column} is {wrong[column][0]}; expected {expected}")


def _is_not_negative(column: str) -> pl.Expr:
    """Return whether a value is a finite number of at least 0."""
    return pl.col(column).is_finite() & (pl.col(column) >= 0)


def require_supported(jobs: pl.DataFrame, unsupported: Mapping[str, str], name: str) -> None:
    """Raise an error if jobs have values in a column that a scheduler does not support, for the stated reason."""
    for column, reason in unsupported.items():
        if has_values(jobs, column):
            raise UnsupportedError(f"{name}: {reason}")


# -- eligibility in the record


def eligible_after(jobs: pl.DataFrame) -> pl.Series:
    """
    Return how long after its submission each recorded job became eligible to start, seconds.

    The column ``eligible_after`` states it: the time of ``sbatch --begin``, the end of a hold, or the end of the last
    job on which the job depends. For jobs without this value, predecessors in ``depends_on`` that are in the table
    count by their recorded ends, plus the job's ``think_time``. All other jobs are eligible when they are submitted.
    The result is between 0 and the wait time, where the latter is known.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2, 3], "submit_time": [0.0, 10.0, 20.0], "wait_time": [0.0, 95.0, 50.0],
    ...                      "run_time": [100.0, 9.0, 9.0], "depends_on": [None, [1], None],
    ...                      "eligible_after": [None, None, 30.0]})
    >>> eligible_after(jobs).to_list()
    [0.0, 90.0, 30.0]
    """
    delay = pl.Series("eligible_after", [None] * jobs.height, dtype=pl.Float64)
    if "depends_on" in jobs.columns and "wait_time" in jobs.columns:
        delay = _after_predecessors(jobs)
    if "eligible_after" in jobs.columns:
        delay = jobs["eligible_after"].cast(pl.Float64).fill_null(delay)
    delay = delay.fill_null(0.0)
    if "wait_time" in jobs.columns:
        delay = pl.select(pl.min_horizontal(delay, jobs["wait_time"])).to_series()
    return delay.clip(lower_bound=0.0).alias("eligible_after")


def with_recorded_times(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return recorded jobs with their start times, and with the times at which they became eligible as submit times."""
    jobs = jobs.with_columns(start_time=jobs["submit_time"] + jobs["wait_time"])
    if {"eligible_after", "depends_on"}.isdisjoint(jobs.columns):
        return jobs
    return jobs.with_columns(submit_time=jobs["submit_time"] + eligible_after(jobs))


def waits(jobs: pl.DataFrame) -> pl.Series:
    """
    Return the recorded wait of each job from the time at which it was eligible to its start, seconds.

    Examples
    --------
    >>> waits(pl.DataFrame({"wait_time": [86500.0, 7.0], "eligible_after": [86400.0, None]})).to_list()
    [100.0, 7.0]
    """
    return (jobs["wait_time"] - eligible_after(jobs)).alias("wait_time")


def _after_predecessors(jobs: pl.DataFrame) -> pl.Series:
    """Return how long after its submission the last predecessor of each job ended, with the think time; else null."""
    think = pl.col("think_time").fill_null(0.0) if "think_time" in jobs.columns else pl.lit(0.0)
    edges = (
        jobs.select("submit_time", "depends_on", think=think, row=pl.int_range(pl.len()))
        .filter(pl.col("depends_on").list.len() > 0)
        .explode("depends_on")
    )
    ends = jobs.select("job_id", end=pl.col("submit_time") + pl.col("wait_time") + pl.col("run_time"))
    last = (
        edges.join(ends, left_on="depends_on", right_on="job_id", how="inner")
        .group_by("row")
        .agg(delay=(pl.col("end") + pl.col("think") - pl.col("submit_time")).max())
    )
    rows = jobs.select(row=pl.int_range(pl.len()))
    return rows.join(last, on="row", how="left", maintain_order="left")["delay"]


# -- eligibility in a simulation


def eligible_jobs(jobs: pl.DataFrame, name: str) -> pl.DataFrame:
    """
    Return the jobs with the times at which they become eligible (``eligible_after``) as their submit times, sorted.

    Their recorded waits are shorter by this time, so that the recorded starts stay the same.

    A job with predecessors keeps its submit time, because it becomes eligible when these end in the simulation. A job
    that was cancelled before it was eligible leaves the queue as soon as it is submitted.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [0.0, 10.0], "eligible_after": [60.0, None]})
    >>> eligible_jobs(jobs, "tiny").select("job_id", "submit_time").rows()
    [(2, 10.0), (1, 60.0)]
    """
    if not has_values(jobs, "eligible_after"):
        return jobs
    _require_numbers(jobs, "eligible_after", _is_not_negative("eligible_after"), "finite seconds from 0 on", name)
    delay = pl.col("eligible_after").fill_null(0.0)
    if has_values(jobs, "depends_on"):
        delay = pl.when(pl.col("depends_on").list.len().fill_null(0) == 0).then(delay).otherwise(0.0)
    shifted = {"submit_time": pl.col("submit_time") + delay}
    if has_values(jobs, "cancelled_after"):
        shifted["cancelled_after"] = (pl.col("cancelled_after") - delay).clip(lower_bound=0.0)
    if has_values(jobs, "wait_time"):  # recorded from the submission on
        shifted["wait_time"] = (pl.col("wait_time") - delay).clip(lower_bound=0.0)
    return sort_jobs(jobs.with_columns(**shifted))


def dependencies_of(jobs: pl.DataFrame, kind: str, name: str) -> Dependencies | None:
    """
    Return the jobs after which others are submitted; None if there are none.

    A job with ``depends_on`` is submitted when all jobs that it depends on have ended and its think time has passed,
    but not before its recorded time. Without that column, dependencies are those of user feedback.

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
        ``user_id``; ``depends_on`` (lists of job ids), ``preceding_job_id`` and ``think_time`` (s) where the log has
        them. An unknown wait time counts as 0; a job without a user depends on none.
    kind : {'none', 'sessions', 'think-times', 'leaving'}
        User feedback: the rule that ends a session. With ``leaving``, sessions are those of ``sessions``, and end
        early after a slow response, see `patience_of`.
    name : str
        The workload's name, for errors.

    Raises
    ------
    SwflowError
        If a job depends on an unknown job, or on itself, directly or through others; with feedback, if the log records
        neither wait times nor preceding jobs.

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
    >>> stated = jobs.with_columns(depends_on=pl.Series([None, [1], [1, 2]]))
    >>> found = dependencies_of(stated, "none", "tiny")
    >>> found.previous.tolist(), found.dependent.tolist()
    ([0, 0, 1], [1, 2, 2])
    >>> dependencies_of(jobs.with_columns(depends_on=pl.Series([[3], [1], [2]])), "none", "tiny")
    Traceback (most recent call last):
        ...
    swflow.errors.SwflowError: tiny: job 1 depends on itself (1 on 3 on 2 on 1); correct depends_on
    """
    if has_values(jobs, "depends_on"):
        return _stated(jobs, name)
    if kind == "none" or jobs.is_empty():
        return None
    found = _recorded(jobs, name) if has_values(jobs, "preceding_job_id") else _inferred(jobs, kind, name)
    return found._replace(patience=patience_of(jobs)) if kind == "leaving" else found


def _inferred(jobs: pl.DataFrame, kind: str, name: str) -> Dependencies:
    """Return the dependencies between the batches of each user's sessions."""
    if not has_values(jobs, "wait_time"):
        raise SwflowError(
            f"feedback: {name}: neither wait times nor preceding jobs are recorded, so dependencies are unknown; leave "
            "feedback out"
        )
    if not has_values(jobs, "user_id"):
        raise SwflowError(f"feedback: {name}: no users are recorded, so there are no sessions; leave feedback out")
    previous, think = np.full(jobs.height, -1), np.zeros(jobs.height)
    longest = LONGEST_THINK_TIME if kind == "think-times" else SESSION_GAP
    since: dict[int, float] = {}  # the last submission, or the end of the current batch
    batch: dict[int, tuple[int, float]] = {}  # the job of the current batch that ends last, and when
    before: dict[int, tuple[int, float]] = {}  # that of the batch before
    columns = (jobs["user_id"].to_list(), jobs["submit_time"].to_list(), _ends(jobs).tolist())
    for job, (user, submit, end) in enumerate(zip(*columns, strict=True)):
        if user is None:
            continue
        if user not in since or submit - since[user] > longest:
            before.pop(user, None)
            batch[user] = (job, end)
        elif submit >= batch[user][1]:
            before[user] = batch[user]
            batch[user] = (job, end)
        elif end > batch[user][1]:
            batch[user] = (job, end)
        since[user] = batch[user][1] if kind == "think-times" else submit
        if user in before:
            previous[job], ended = before[user]
            think[job] = submit - ended
    return Dependencies(previous, think)


def patience_of(jobs: pl.DataFrame) -> np.ndarray:
    """
    Return the response time of each job, in seconds, above which its user ends the session.

    A user continues after a response time t with a probability in proportion to p(t) = 1 / (1 + `IMPATIENCE` t). The
    log has the sessions that continued after the recorded response time r. Therefore the user continues with
    probability p(t) / p(r) after a slower response, and always after one that is as fast. Whether the user leaves is
    not random: instead of a random number, each job has the fractional part of its id times the golden ratio, which
    spreads evenly.

    References
    ----------
    E. Shmueli, D. G. Feitelson, "Using site-level modeling to evaluate the performance of parallel system schedulers",
    MASCOTS 2006, for the form of p.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [0.0, 0.0], "run_time": [600.0, 600.0]})
    >>> patience_of(jobs).round(0).tolist()
    [3512.0, 1156.0]
    """
    recorded = _ends(jobs) - jobs["submit_time"].to_numpy()
    golden = (5**0.5 - 1) / 2
    shares = 1 - (jobs["job_id"].to_numpy() * golden) % 1
    return ((1 + IMPATIENCE * recorded) / shares - 1) / IMPATIENCE


def _ends(jobs: pl.DataFrame) -> np.ndarray:
    """Return the recorded ends."""
    wait = jobs["wait_time"].fill_null(0.0) if "wait_time" in jobs.columns else 0.0
    return (jobs["submit_time"] + wait + jobs["run_time"]).to_numpy()


def _recorded(jobs: pl.DataFrame, name: str) -> Dependencies:
    """Return the dependencies that the log records."""
    named, row_of = jobs["preceding_job_id"], {number: row for row, number in enumerate(jobs["job_id"].to_list())}
    found = named.replace_strict(row_of, default=jobs.height, return_dtype=pl.Int64).to_numpy()
    is_earlier = found < np.arange(jobs.height)
    previous = np.where(is_earlier, found, -1)
    think = pl.Series(jobs["submit_time"].to_numpy() - _ends(jobs)[previous])
    if "think_time" in jobs.columns:
        think = jobs["think_time"].fill_null(think)
    lost = jobs.height - named.null_count() - is_earlier.sum()
    if lost:
        warnings.warn(
            f"{name}: feedback: {lost:,} jobs name a preceding job that is missing or later; they are submitted at the "
            "recorded times",
            stacklevel=2,
        )
    return Dependencies(previous, np.where(is_earlier, np.fmax(think.to_numpy(), 0.0), 0.0))


def _stated(jobs: pl.DataFrame, name: str) -> Dependencies:
    """Return the dependencies in column ``depends_on``."""
    if not isinstance(jobs.schema["depends_on"], pl.List) or not jobs.schema["depends_on"].inner.is_integer():
        raise SwflowError(f"{name}: column depends_on holds {jobs.schema['depends_on']}; expected lists of job ids")
    rows = jobs.select("job_id", row=pl.int_range(pl.len()))
    edges = (
        jobs.select(job="job_id", dependent=pl.int_range(pl.len()), wanted=pl.col("depends_on").list.unique())
        .filter(pl.col("wanted").list.len() > 0)
        .explode("wanted")
        .filter(pl.col("wanted").is_not_null())
        .join(rows, left_on="wanted", right_on="job_id", how="left", maintain_order="left")
        .sort("dependent", "row")
    )
    unknown = edges.filter(pl.col("row").is_null())
    if unknown.height:
        raise SwflowError(
            f"{name}: job {unknown['job'][0]} depends on job {unknown['wanted'][0]}, which is not in the workload "
            f"({unknown.height:,} such dependencies); keep that job, or drop the column depends_on"
        )
    previous, dependent = edges["row"].to_numpy(), edges["dependent"].to_numpy()
    if (previous >= dependent).any():  # predecessors that come earlier form no cycle
        _require_no_cycle(previous, dependent, jobs["job_id"].to_numpy(), name)
    think = np.zeros(jobs.height)
    if "think_time" in jobs.columns:
        _require_numbers(jobs, "think_time", _is_not_negative("think_time"), "finite seconds from 0 on", name)
        think = jobs["think_time"].fill_null(0.0).to_numpy()
    return Dependencies(previous, think, dependent, jobs["submit_time"].to_numpy())


def _require_no_cycle(previous: np.ndarray, dependent: np.ndarray, ids: np.ndarray, name: str) -> None:
    """Raise an error that names the jobs of a cycle, if there is one."""
    waits_for: dict[int, list[int]] = {}
    for before, after in zip(previous.tolist(), dependent.tolist(), strict=True):
        waits_for.setdefault(after, []).append(before)
    try:
        graphlib.TopologicalSorter(waits_for).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1][::-1]
        shown = " on ".join(str(ids[job]) for job in cycle[:8]) + (" …" if len(cycle) > 8 else "")
        raise SwflowError(f"{name}: job {ids[cycle[0]]} depends on itself ({shown}); correct depends_on") from None


# -- cancellations and job arrays


def cancellations_of(jobs: pl.DataFrame, name: str) -> np.ndarray | None:
    """
    Return after how many seconds from its submission each job leaves the queue (infinity: never); None if no job does.

    Examples
    --------
    >>> cancellations_of(pl.DataFrame({"job_id": [1, 2], "cancelled_after": [None, 60.0]}), "tiny")
    array([inf, 60.])
    """
    if not has_values(jobs, "cancelled_after"):
        return None
    _require_numbers(jobs, "cancelled_after", _is_not_negative("cancelled_after"), "finite seconds from 0 on", name)
    return jobs["cancelled_after"].cast(pl.Float64).fill_null(np.inf).to_numpy()


def array_limits(jobs: pl.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """
    Return the job array of each task, and the most tasks of each array that run at once; None if no array has a limit.

    Arrays are numbered from 0; -1: the job is not a task of an array with a limit.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2, 3], "array_id": [9, None, 9], "array_limit": [2, None, 2]})
    >>> [found.tolist() for found in array_limits(jobs, "tiny")]
    [[0, -1, 0], [2]]
    """
    if not has_values(jobs, "array_limit"):
        return None
    _require_numbers(jobs, "array_limit", pl.col("array_limit") >= 1, "1 or more", name)
    limited = jobs.filter(pl.col("array_limit").is_not_null())
    if "array_id" not in jobs.columns or limited["array_id"].null_count():
        raise SwflowError(f"{name}: tasks with an array_limit have no array_id; give each task the number of its array")
    most = limited.group_by("array_id").agg(pl.col("array_limit").min()).sort("array_id")
    arrays = pl.int_range(most.height, eager=True)
    rows = jobs["array_id"].replace_strict(most["array_id"], arrays, default=-1, return_dtype=pl.Int64)
    return rows.to_numpy(), most["array_limit"].cast(pl.Int64).to_numpy()


# -- demands for resources


def demands_of(table: pl.DataFrame, names: list[str], reserved: Collection[str], workload: str) -> np.ndarray | None:
    """
    Return the columns of the job table that are named as resources, null as 0; None without resources.

    The ``reserved`` names mean something else.
    """
    for name in names:
        if name in reserved:
            raise SwflowError(f"resources: {name} means something else in formulas; rename it and its column")
        if name not in table.columns:
            raise SwflowError(
                f"{workload}: no column {name}, though the machine has the resource {name}; import it, or leave the "
                "resource out"
            )
        if has_values(table, name):
            units = pl.col(name).cast(pl.Float64)
            is_valid = (units == units.floor()) & (units.abs() <= MOST_UNITS)
            _require_numbers(table, name, is_valid, "a whole number of units", workload)
    if not names:
        return None
    return np.ascontiguousarray(table.select(pl.col(names).cast(pl.Int64).fill_null(0)).to_numpy())


def require_demands(jobs: pl.DataFrame, resources: Iterable[str], name: str) -> None:
    """Raise an error for an invalid demand for a resource that the processes of a node share."""
    for resource in resources:
        if resource in jobs.columns:
            expected = "a demand: a finite number of at least 0"
            _require_numbers(jobs, resource, _is_not_negative(resource), expected, name)
