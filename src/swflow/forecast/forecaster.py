"""A fitted forecaster: models, calibration and the state of the log at one moment, kept in a cache."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.forecast.cases import Cases
from swflow.forecast.chances import BY_MORNING, Chances, Within, chances_of, times
from swflow.forecast.evaluation import BEST, PAST, SIMULATION, better, by_methods
from swflow.forecast.model import Quantiles, calibrated, groups_of
from swflow.forecast.polls import is_polls, read_polls
from swflow.forecast.queue_state import (
    NO_QUEUE,
    Entry,
    longest_limit,
    most_processors,
    partition_names,
    queue_of,
    queue_state,
)
from swflow.forecast.queued import Queued
from swflow.forecast.record import QUEUES, Record, Request, peak, record_of
from swflow.forecast.sweep import Sweep, labels_of, polled, replay
from swflow.jobs.header import Header
from swflow.jobs.table import Workload
from swflow.log.site import stated_sizes
from swflow.phrases import span
from swflow.values import DAY, WEEK

if TYPE_CHECKING:
    from swflow.forecast.simulation import Simulator

#: Forecasts need a log of at least this many weeks: the last six calibrate models that are fitted to those before.
FEWEST_WEEKS = 8

#: Weeks before the moment in which past forecasts calibrate the next ones, and those of which coverage is reported.
CALIBRATED, REPORTED = 6, 4


class Forecast(NamedTuple):
    """The forecast of one job: the seconds from the moment until its start."""

    job: int | str | None  # the job's number; None for a job described by options
    # The request; the limit in seconds.
    processors: int
    limit: float
    # Labels; empty if unknown.
    partition: str
    user: str
    waited: float  # seconds since the submission
    # Seconds: both ends of the 90 % interval and the median; NaN without a forecast.
    low: float
    median: float
    high: float
    condition: str = ""  # on what the forecast depends, or why there is none
    chances: tuple[float, ...] = ()  # chances of a start within the `times`; NaN if unknown


@dataclass
class Forecaster:
    """A forecaster fitted to the data known at one moment."""

    name: str  # the log
    now: float  # the moment, seconds
    quantiles: Quantiles | None  # the models; None for forecasts by simulation
    # Group to the decades to add to both ends; ``""`` for groups without past forecasts.
    shifts: dict[str, tuple[float, float]]
    bounds: np.ndarray  # float64 (2,): the sizes that divide jobs into thirds
    # Of the forecasts of the last four weeks whose outcome is known, those whose interval held, and all.
    hits: int
    forecasts: int
    sweep: Sweep | None = None  # the state of the log; None for a table of polls
    labels: dict[int, str] = field(default_factory=dict)  # the number of a queue to its name
    users: dict[str, int] = field(default_factory=dict)  # the name or number of a user to the number
    # The number of a queue to its jobs, processors and the groups of users.
    common: dict[Any, Any] = field(default_factory=dict)
    waiting: Cases | None = None  # the jobs of a table of polls that wait
    simulator: "Simulator | None" = None  # for forecasts by simulation

    jobs: int = 0  # the jobs of the forecasts of the last four weeks
    chances: Chances | None = None
    queue: list[Entry] | None = None  # the jobs of a queue that replaces that of the log

    @classmethod
    def unfitted(cls, name: str, now: float, **state: Any) -> "Forecaster":
        """Return a forecaster without models, with which requests and queues can be checked."""
        return cls(name, now, None, {}, np.zeros(2), 0, 0, **state)

    @property
    def method(self) -> str:
        """The method of the forecasts."""
        return PAST if self.simulator is None else SIMULATION

    @property
    def coverage(self) -> float | None:
        """The share of the intervals of the last four weeks that held."""
        return self.hits / self.forecasts if self.forecasts else None

    @property
    def times(self) -> list[Within]:
        """The times within which forecasts state the chance of a start."""
        return times(self.now, self.common.get("header"))

    def set_queue(self, jobs: Sequence[Queued], where: str) -> list[str]:
        """
        Replace the jobs that wait and run, and the moment by that of the queue; return notes for the user.

        Jobs that cannot start at present, such as held ones, do not compete with the others. ``where`` is the file, for
        errors, which `swflow.forecast.queue_state.queue_state` describes.
        """
        state = queue_state(self, jobs, where)
        assert self.sweep is not None
        self.now, self.queue = state.now, state.entries
        self.sweep.replace_queue(
            (-1 - number, one.request, one.submit, one.start) for number, one in enumerate(state.entries)
            if one.competes
        )  # fmt: skip
        return state.notes

    def calibrated(self, raw: np.ndarray, partition: Sequence[str], size: np.ndarray, waited: np.ndarray) -> np.ndarray:
        """Return lower end, median and upper end for rows of forecasts before calibration, decades."""
        names = groups_of(partition, size, waited, self.bounds)
        group = np.array([name if name in self.shifts else "" for name in names], object)
        return calibrated(raw, group, self.shifts)

    def describe(self, processors: int, limit: float, partition: str | None, user: str | None) -> Request:
        """Return the request of a job that options describe; raise an error if it cannot run."""
        if self.sweep is None:
            raise SwflowError(
                f"{self.name}: a table of polls cannot be replayed for a job described by options; expected a log "
                "(swf, sacct); without options, the jobs that wait are forecast"
            )
        if processors > self.sweep.processors:
            raise SwflowError(
                f"--processors: {processors:,}; expected at most the {self.sweep.processors:,} of the machine of "
                f"{self.name}; a larger machine: --machine-processors"
            )
        if limit <= 0 or processors < 1:
            raise SwflowError(f"--processors: {processors}, --time-limit: {limit:g} s; expected values above 0")
        queue = queue_of(self, partition)
        if queue == NO_QUEUE:
            advice = suggest(str(partition), partition_names(self))
            raise SwflowError(f"--partition: {partition!r}; expected a partition or queue of {self.name}{advice}")
        most = most_processors(self, queue)
        if processors > most:
            raise SwflowError(
                f"--processors: {processors:,}; expected at most the {most:,} of partition {self.labels[queue]} in "
                f"{self.name}; another partition: --partition; a larger one: import with --partition NAME=PROCESSORS"
            )
        longest = longest_limit(self, queue)
        if limit > longest:
            named = "" if partition is None else f" of partition {partition}"
            raise SwflowError(
                f"--time-limit: {span(limit)}; expected at most {span(longest)}, the longest limit{named} in "
                f"{self.name}"
            )
        number = -1 if user is None else self.users.get(user, -1)
        return Request.of(processors, limit, number, queue, self.common["groups"].get(number, -1))

    def describe_user(self, user: str | None) -> str:
        """Return a note if a user has no jobs in the log; empty otherwise."""
        if user is None or user in self.users:
            return ""
        return f"--user: {user}: no jobs in {self.name}; the forecast is that of a new user"

    def of_requests(self, requests: Sequence[Request], user: str = "") -> list[Forecast]:
        """Forecast jobs that would be submitted at the moment."""
        return self._forecasts([_Job(None, one, user) for one in requests], self._of_new(requests))

    def _of_new(self, requests: Sequence[Request]) -> np.ndarray:
        """Return the forecasts of new jobs before calibration, decades."""
        assert self.sweep is not None
        if self.simulator is not None:
            return self.simulator.of_requests(self.sweep, self.now, requests)
        return self._quantiles(np.array([self.sweep.features(one, self.now) for one in requests], np.float32))

    def _quantiles(self, values: np.ndarray) -> np.ndarray:
        assert self.quantiles is not None
        return self.quantiles(values)

    def of_waiting(self) -> list[Forecast]:
        """Forecast the jobs that wait at the moment, in the order of their submission."""
        if self.waiting is not None:
            return self._of_polls(self.waiting)
        assert self.sweep is not None
        rows = list(polled(self.sweep, self.now))
        if self.simulator is None:
            raw = self._quantiles(np.array([row[1:] for row in rows], np.float32))
        else:
            raw = self.simulator.of_waiting(self.sweep, self.now)
        if self.queue is not None:
            return self._of_queue([row[0] for row in rows], raw)
        names = {number: name for name, number in self.users.items()}
        jobs = []
        for number, *_ in rows:
            request = self.sweep.requests[number]
            waited = self.now - self.sweep.waiting[number]
            jobs.append(_Job(self.common["ids"].get(number, number), request, names.get(request.user, ""), waited))
        return self._forecasts(jobs, raw)

    def _of_queue(self, numbers: Sequence[int], raw: np.ndarray) -> list[Forecast]:
        """Forecast the waiting jobs of a queue; ``raw`` has the forecasts of those that compete, by their numbers."""
        assert self.queue is not None
        of_number = dict(zip(numbers, raw, strict=True))
        waiting = [(number, one) for number, one in enumerate(self.queue) if one.start is None]
        waiting.sort(key=lambda pair: pair[1].submit)
        known = [(number, one) for number, one in waiting if one.request.queue != NO_QUEUE]
        later = [(number, one) for number, one in known if not one.competes and math.isfinite(one.delay)]
        if later:
            values = self._of_new([one.request for _, one in later])
            of_number |= {-1 - number: value for (number, _), value in zip(later, values, strict=True)}
        nothing = np.full(3, np.nan)
        jobs = [
            _Job(
                one.job, one.request, one.user, max(self.now - one.submit, 0.0), one.competes, one.condition, one.delay
            )
            for _, one in known
        ]
        raw = np.array([of_number.get(-1 - number, nothing) for number, _ in known]).reshape(-1, 3)
        return self._forecasts(jobs, raw)

    def _of_polls(self, cases: Cases) -> list[Forecast]:
        """Forecast the waiting jobs of a table of polls."""
        ends = self.calibrated(self._quantiles(cases.values), cases.partition.tolist(), cases.size, cases.waited)
        chances = self._chances(ends, cases.waited > 0, np.zeros(cases.job.size))
        return [
            Forecast(
                int(cases.job[row]), int(cases.size[row]), math.nan if cases.limit is None else float(cases.limit[row]),
                str(cases.partition[row]), str(cases.user[row]), float(cases.waited[row]),
                _plain(low), _plain(median), _plain(high), "", tuple(map(_plain, chances[row])),
            )
            for row, (low, median, high) in enumerate(10**ends)
        ]  # fmt: skip

    def _forecasts(self, jobs: Sequence["_Job"], raw: np.ndarray) -> list[Forecast]:
        partition = [self.labels.get(one.request.queue, "") for one in jobs]
        size = np.array([one.request.processors for one in jobs], float)
        # A job that cannot start yet is forecast like one that is submitted when it can.
        waited = np.array([one.waited if one.competes else 0.0 for one in jobs])
        delay = np.array([one.delay for one in jobs])
        ends = self.calibrated(raw, partition, size, waited)
        chances = self._chances(ends, waited > 0, delay)
        # What is counted from the end of another job has no chance of a start by a time of the clock.
        counted = np.array([not one.competes and one.delay == 0 for one in jobs], np.bool_)
        chances[np.ix_(counted, np.array([one.name == BY_MORNING for one in self.times]))] = np.nan
        found = 10**ends
        found[found <= 1.0] = 0.0
        found += delay[:, None]
        return [
            Forecast(
                one.job, one.request.processors, one.request.limit, label, one.user, one.waited,
                _plain(low), _plain(median), _plain(high), one.condition, tuple(map(_plain, row)),
            )
            for one, label, (low, median, high), row in zip(jobs, partition, found, chances, strict=True)
        ]  # fmt: skip

    def _chances(self, ends: np.ndarray, waits: np.ndarray, delay: np.ndarray) -> np.ndarray:
        """Return the chances of starts within `times`, for jobs that can start after a delay (s)."""
        within = np.array([one.seconds for one in self.times]) - delay[:, None]
        found, known = np.full(within.shape, np.nan), np.isfinite(ends).all(axis=1)
        if self.chances is not None and known.any():
            found[known] = self.chances(ends[known], waits[known], within[known])
        return found


def _plain(value: Any) -> float:
    """Return a number of Python; every unknown one is the same object, so that equal forecasts are equal."""
    return float(value) if value == value else math.nan


class _Job(NamedTuple):
    """A job to forecast."""

    job: int | str | None
    request: Request
    user: str = ""
    waited: float = 0.0
    competes: bool = True
    condition: str = ""
    delay: float = 0.0


def fit(
    cases: Cases,
    now: float,
    progress: Callable[[Any], Any] = lambda items: items,
    name: str = "cases",
    method: str = BEST,
    simulator: "Simulator | None" = None,
    **state: Any,
) -> Forecaster:
    """
    Fit the models to the data known at a moment, and calibrate them by forecasts of the six weeks before.

    Cases asked after the moment ``now`` (s) are not used. ``name`` is the log, for errors; ``progress``, ``method`` and
    ``simulator`` are as for `swflow.forecast.evaluation.walk_forward`, and ``state`` has the other fields of the
    forecaster. Raise `SwflowError` if there are fewer than eight weeks before the moment.
    """
    require_weeks(cases, now, name)
    found = by_methods(cases, now - CALIBRATED * WEEK, now, WEEK, progress, method, simulator)
    chosen = better(cases, {one: forecasts for one, (forecasts, _) in found.items()}, now)
    _, calibrator = found[chosen]
    names = [str(group) for group in dict.fromkeys(calibrator.group)]
    reported = (calibrator.cases.asked >= now - REPORTED * WEEK) & ~calibrator.cases.gone(now)
    forecasts = calibrator.issued[reported]
    value, started = calibrator.cases.take(reported).known(now)
    above = value > forecasts[:, 2]
    hits = int((started & ~above & (value >= forecasts[:, 0])).sum())
    known = started | above
    return Forecaster(
        name, now, Quantiles(cases, now) if chosen == PAST else None, calibrator.shifts(now, ["", *names]),
        calibrator.bounds, hits, int(known.sum()), simulator=simulator if chosen == SIMULATION else None,
        jobs=int(np.unique(calibrator.cases.job[reported][known]).size),
        chances=chances_of(calibrator.cases, calibrator.issued, now), **state,
    )  # fmt: skip


def require_weeks(cases: Cases, now: float, name: str) -> None:
    """Raise an error if the log before a moment is too short to fit and to calibrate."""
    before = cases.asked[cases.asked < now]
    weeks = (now - before[0]) / WEEK if before.size else 0.0
    if weeks < FEWEST_WEEKS:
        raise SwflowError(
            f"{name}: {math.floor(10 * weeks) / 10} weeks before the forecast; expected at least {FEWEST_WEEKS}: "
            f"{CALIBRATED} calibrate what is learned from those before; import a longer log"
        )


def read_cases(
    path: Path, processors: int | None = None, until: float | None = math.inf
) -> tuple[Cases, dict[str, Any]]:
    """
    Return the cases of a log or of a table of polls, and the state for `fit`, with the moment ``now``.

    The file is an SWF file, an imported log, a workload, or a table of polls (see `swflow.forecast.polls`). The moment
    is ``until`` (s), at most the end of the log, or the last poll. None is the moment up to which the log is complete.
    """
    if is_polls(path):
        cases = read_polls(path)
        last = math.inf if until is None else until
        polls = cases.asked[cases.asked <= last]
        now = float(polls[-1]) if polls.size else last
        return cases, {"name": path.name, "now": now, "waiting": cases.take(cases.asked == now)}
    workload = open_recorded(path, processors)
    return cases_of(workload, complete_until(workload) if until is None else until)


def complete_until(workload: Workload) -> float:
    """
    Return the moment (s) up to which a log has all submissions: its last one, if some jobs start days later.

    Infinity for a log that ends with a start, at most two days after the last submission.
    """
    submit = workload.jobs["submit_time"]
    start = (submit + workload.jobs["wait_time"]).max() if "wait_time" in workload.jobs.columns else None
    last = submit.max()
    if last is None or start is None or float(start) <= float(last) + 2 * DAY:  # type: ignore[arg-type]
        return math.inf
    return float(last)  # type: ignore[arg-type]


def open_recorded(path: Path, processors: int | None = None) -> Workload:
    """
    Open a log with every job that waited, whatever happened to it later.

    Jobs that were cancelled in the queue or ended at once are kept, because this was not known while they waited. A
    workload in Parquet has the jobs that its cleaning kept.
    """
    from swflow.log.imported import is_log_table
    from swflow.log.settings import RULES
    from swflow.workload.clean import clean_log, open_workload

    if path.suffix == ".parquet" and not is_log_table(path):
        return open_workload(path, processors)
    rules = [rule for rule in RULES if processors is None or rule != "wider-than-machine"]
    return clean_log(path, processors=processors, drop=rules, keep_cancelled=True, keep_instant=True)


def cases_of(workload: Workload, until: float = math.inf) -> tuple[Cases, dict[str, Any]]:
    """Return the cases of a recorded log, and the state for `fit`; see `read_cases`."""
    workload = replace(workload, jobs=workload.jobs.filter(pl.col("submit_time") <= until))
    record = record_of(workload, until)
    cases, sweep = replay(record, workload)
    users = {str(one.user): one.user for one in record.requests if one.user >= 0}
    users |= {name: number for number, name in workload.header.names_of("user_id").items() if number in users.values()}
    state = {"name": workload.name, "now": cases.end, "sweep": sweep, "labels": labels_of(workload)}
    return cases, state | {"users": users, "common": _common(workload, record, sweep)}


def _queue_names(workload: Workload) -> dict[int, tuple[str, str]]:
    """Return the partition and the queue (of Slurm: the QOS) of each number of a queue; empty if they have no name."""
    partitions, queues = (workload.header.names_of(name) for name in ("partition_id", "queue_id"))
    return {
        number: (partitions.get(number // QUEUES - 1, ""), queues.get(number % QUEUES - 1, ""))
        for number in labels_of(workload)
    }


def _partition_sizes(record: Record, header: Header) -> dict[int, int]:
    """Return the processors of each partition: those that the header states, or those in use at once before."""
    stated = {number: size for number, (size, is_guessed) in stated_sizes(header).items() if not is_guessed}
    partition = np.array([one.queue // QUEUES - 1 for one in record.requests], np.int64)
    sizes = {}
    for number in np.unique(partition[partition >= 0]).tolist():
        rows = np.flatnonzero((partition == number) & np.isfinite(record.start)).tolist()
        used = peak([record.requests[row] for row in rows], record.start[rows], record.end[rows])
        sizes[number] = max(stated.get(number, 0), used)
    return sizes


def _common(workload: Workload, record: Record, sweep: Sweep) -> dict[str, Any]:
    """Return what the jobs of a log have in common: the clock of the site, and how many request what."""
    header, requests = workload.header, record.requests
    longest: dict[int, float] = {}
    for one in requests:
        if one.limit > 0:
            longest[one.queue] = max(longest.get(one.queue, 0.0), one.limit)
    return {
        "header": {key: header[key] for key in ("UnixStartTime", "TimeZone", "TimeZoneString") if key in header},
        "queues": Counter(one.queue for one in requests),
        "names": _queue_names(workload),
        "groups": {one.user: one.group for one in requests},
        "group_names": {name: number for number, name in header.names_of("group_id").items()},
        "sizes": Counter(one.processors for one in requests),
        "limits": Counter(one.limit for one in requests if one.limit > 0),
        "longest": longest,
        "partition_sizes": _partition_sizes(record, header),
        "ids": {job: int(record.ids[job]) for job in sweep.waiting},
    }
