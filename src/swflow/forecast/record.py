"""What a recorded log says of its jobs at a moment: the view from which features and simulations are computed."""

import math
from typing import NamedTuple

import numpy as np
import polars as pl

from swflow.jobs.table import NEEDED_COLUMNS, Workload, check_recorded, check_workload
from swflow.values import MOST_PROCESSORS
from swflow.workload.clean import guess_of

#: Numbers of queues per partition in the numbers of queues of requests.
QUEUES = 100_000

#: The class of an unknown limit; those of known ones are 0 to 7.
UNKNOWN_LIMIT = 8


class Request(NamedTuple):
    """What a job requests: processors, limit (s), user, queue, group, and classes of the size and of the limit."""

    processors: int
    limit: float  # NaN if it is unknown
    user: int
    queue: int
    group: int
    size_class: int
    limit_class: int
    # Seconds that others can expect the job to run: its limit; for an unknown one, what past jobs say (see `Sweep`).
    planned: float

    @classmethod
    def of(cls, processors: int, limit: float, user: int, queue: int, group: int) -> "Request":
        """
        Return a request with its classes: powers of two of the processors, of four of the limit.

        A limit that is not above 0 is unknown.

        Examples
        --------
        >>> Request.of(64, 7200.0, 1, 0, 0)[5:], Request.of(64, 0.0, 1, 0, 0).limit_class
        ((6, 3, 7200.0), 8)
        """
        limit = limit if limit > 0 else math.nan
        known = min(int(math.log2(max(limit, 60.0) / 60) / 2), 7) if limit > 0 else UNKNOWN_LIMIT
        return cls(processors, limit, user, queue, group, min((processors - 1).bit_length(), 31), known, limit)

    @property
    def alike(self) -> tuple[int, int, float]:
        """The key of equal requests of a user, in which every unknown limit is the same."""
        return self.user, self.processors, self.limit if self.limit > 0 else -1.0

    @property
    def area(self) -> float:
        """Processors times planned run time, processor-seconds."""
        return self.processors * self.planned


class Record(NamedTuple):
    """
    The jobs of a log in the order of their submission, with the values known at one moment.

    A request has only what a job states at its submission: its run time never stands for an unknown limit. The number
    of processors is the requested one, or the allocated one in a log without it. Times are seconds, and
    infinite if they had not come at the moment.
    """

    requests: list[Request]
    ids: np.ndarray  # int64: the jobs' numbers
    submit: np.ndarray  # float64
    start: np.ndarray  # float64
    end: np.ndarray  # float64
    left: np.ndarray  # float64: the moment of a cancellation in the queue
    last: float  # the moment
    processors: int  # the machine's size; the peak use at the moment if the log does not state it
    is_guessed: bool


def record_of(workload: Workload, until: float = math.inf) -> Record:
    """
    Return what a recorded log says at a moment: submissions until it, and starts, ends and cancellations before it.

    With an infinite ``until``, the moment is the last start, which is included. All other values of the log do not
    exist for forecasts. Raise `SwflowError` if the log has no recorded waits.
    """
    jobs = check_recorded(workload.jobs, workload.name)
    if "cancelled_after" in workload.jobs.columns:
        gone = workload.jobs.filter(pl.col("cancelled_after").is_not_null())
        needed = [column for column in NEEDED_COLUMNS if column != "estimate"]
        gone = check_workload(gone, MOST_PROCESSORS, workload.name, needed=needed)
        jobs = pl.concat([jobs, gone], how="vertical_relaxed").sort("submit_time", "job_id")
    else:
        jobs = jobs.with_columns(cancelled_after=pl.lit(None, pl.Float64))
    jobs = jobs.filter(pl.col("submit_time") <= until)
    submit = jobs["submit_time"].to_numpy().astype(float)
    after = jobs["cancelled_after"].fill_null(math.inf).to_numpy().astype(float)
    wait = np.where(np.isfinite(after), np.inf, np.maximum(jobs["wait_time"].fill_null(0.0).to_numpy(), 0.0))
    start, left = submit + wait, submit + np.maximum(after, 0.0)
    end = start + np.maximum(jobs["run_time"].fill_null(0.0).to_numpy(), 0.0)
    if math.isfinite(until):
        last = float(until)
        start, end, left = (np.where(times < until, times, np.inf) for times in (start, end, left))
    else:
        begun = start[np.isfinite(start)]
        last = float(begun.max()) if begun.size else 0.0
    requests = requests_of(jobs)
    is_guessed = guess_of(workload) is not None
    size = peak(requests, start, end) if is_guessed else workload.machine.processors
    return Record(requests, jobs["job_id"].to_numpy(), submit, start, end, left, last, size, is_guessed)


def requests_of(jobs: pl.DataFrame) -> list[Request]:
    """Return the requests of a job table; an unknown queue, user or group is -1, an unknown limit NaN."""
    wanted = pl.coalesce(
        pl.when(pl.col(name) > 0).then(pl.col(name)) for name in ("requested_processors", "processors")
    )
    limit = pl.col("requested_time") if "requested_time" in jobs.columns else pl.lit(None)
    queue = (pl.col("partition_id").fill_null(-1) + 1) * QUEUES + pl.col("queue_id").fill_null(-1) + 1
    table = jobs.select(
        wanted, limit.cast(pl.Float64).fill_null(math.nan).alias("limit"), pl.col("user_id").fill_null(-1),
        queue.alias("queue"), pl.col("group_id").fill_null(-1),
    )  # fmt: skip
    return [Request.of(*row) for row in table.iter_rows()]


def peak(requests: list[Request], start: np.ndarray, end: np.ndarray) -> int:
    """Return the largest number of processors that were busy or requested, as far as the times are known."""
    width = np.array([one.processors for one in requests], np.int64)
    if not width.size:
        return 1
    begun, done = np.flatnonzero(np.isfinite(start)), np.flatnonzero(np.isfinite(end))
    times, change = np.concatenate((end[done], start[begun])), np.concatenate((-width[done], width[begun]))
    busy = np.cumsum(change[np.argsort(times, kind="stable")])
    return int(max(width.max(), busy.max(initial=0)))
