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
from swflow.forecast.evaluation import BEST, PAST, SIMULATION, better, by_methods
from swflow.forecast.model import Quantiles, calibrated, groups_of
from swflow.forecast.polls import is_polls, read_polls
from swflow.forecast.record import Record, Request, record_of
from swflow.forecast.squeue import Queued
from swflow.forecast.sweep import Sweep, labels_of, polled, replay
from swflow.jobs.header import Header
from swflow.jobs.table import Workload
from swflow.values import WEEK

if TYPE_CHECKING:
    from swflow.forecast.simulation import Simulator

#: Forecasts need a log of at least this many weeks: the last six calibrate models that are fitted to those before.
FEWEST_WEEKS = 8

#: Weeks before the moment in which past forecasts calibrate the next ones, and those of which coverage is reported.
CALIBRATED, REPORTED = 6, 4


#: The number of a queue that the log does not have.
_NO_QUEUE = -1


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
    # Seconds: both ends of the 90 % interval and the median.
    low: float
    median: float
    high: float


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
    jobs: int
    sweep: Sweep | None = None  # the state of the log; None for a table of polls
    labels: dict[int, str] = field(default_factory=dict)  # the number of a queue to its name
    users: dict[str, int] = field(default_factory=dict)  # the name or number of a user to the number
    # The number of a queue to its jobs, processors and the groups of users.
    common: dict[Any, Any] = field(default_factory=dict)
    waiting: Cases | None = None  # the jobs of a table of polls that wait
    simulator: "Simulator | None" = None  # for forecasts by simulation

    @property
    def method(self) -> str:
        """The method of the forecasts."""
        return PAST if self.simulator is None else SIMULATION

    @property
    def coverage(self) -> float | None:
        """The share of the intervals of the last four weeks that held."""
        return self.hits / self.jobs if self.jobs else None

    def set_queue(self, jobs: Sequence[Queued], where: str) -> list[str]:
        """
        Replace the jobs that wait and run, and the moment by that of the latest submission or start.

        Jobs of partitions that the log does not have wait and run, too, but are not forecast; there is one note for
        each of these partitions. ``where`` is the file, for errors.
        """
        sweep, header = self.sweep, self.common.get("header")
        if sweep is None or header is None:
            raise SwflowError(f"{where}: {self.name} is a table of polls; expected a log of the site (swf, sacct)")
        if not jobs:
            raise SwflowError(f"{where}: no job waits or runs; expected the queue of {self.name}")
        queued = []
        ids = {}
        unknown: Counter[str] = Counter()
        for number, job in enumerate(jobs):
            start = None if job.start is None else _log_seconds(job.start, header)
            if job.processors > sweep.processors:
                raise SwflowError(
                    f"{where}: job {job.job}: {job.processors:,} processors; expected at most the {sweep.processors:,} "
                    "of the machine; a larger machine: --machine-processors"
                )
            user = self.users.get(job.user, -1)
            queue = self._queue(job.partition if len(self.labels) > 1 else None)
            unknown[job.partition] += queue == _NO_QUEUE
            request = Request.of(job.processors, job.limit, user, queue, self.common["groups"].get(user, -1))
            queued.append((-1 - number, request, _log_seconds(job.submit, header), start))
            ids[-1 - number] = job.job
        sweep.replace_queue(queued)
        self.common["ids"] = ids
        self.now = max(*(job[2] for job in queued), *(job[3] or -math.inf for job in queued), self.now)
        known = sorted(set(self.labels.values()))
        return [
            f"{where}: partition {name!r} is not in {self.name}; jobs not forecast: {count:,}{suggest(name, known)}"
            for name, count in unknown.items() if count
        ]  # fmt: skip

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
        queue = self._queue(partition)
        if queue == _NO_QUEUE:
            known = sorted(set(self.labels.values()))
            advice = suggest(str(partition), known)
            raise SwflowError(f"--partition: {partition!r}; expected a partition or queue of {self.name}{advice}")
        number = -1 if user is None else self.users.get(user, -1)
        return Request.of(processors, limit, number, queue, self.common["groups"].get(number, -1))

    def _queue(self, partition: str | None) -> int:
        """Return the queue of a partition (None: any) that has the most jobs."""
        labels = self.labels.items()
        queues = [queue for queue, label in labels if partition is None or partition in (label, *label.split("/"))]
        return max(queues, key=lambda queue: self.common["queues"].get(queue, 0), default=_NO_QUEUE)

    def describe_user(self, user: str | None) -> str:
        """Return a note if a user has no jobs in the log; empty otherwise."""
        if user is None or user in self.users:
            return ""
        return f"--user: {user}: no jobs in {self.name}; the forecast is that of a new user"

    def of_requests(self, requests: Sequence[Request], user: str = "") -> list[Forecast]:
        """Forecast jobs that would be submitted at the moment."""
        assert self.sweep is not None
        if self.simulator is None:
            raw = self._quantiles(np.array([self.sweep.features(one, self.now) for one in requests], np.float32))
        else:
            raw = self.simulator.of_requests(self.sweep, self.now, requests)
        return self._forecasts([(None, one, 0.0, user) for one in requests], raw)

    def _quantiles(self, values: np.ndarray) -> np.ndarray:
        assert self.quantiles is not None
        return self.quantiles(values)

    def of_waiting(self) -> list[Forecast]:
        """Forecast the jobs that wait at the moment."""
        if self.waiting is not None:
            cases = self.waiting
            found = 10 ** self.calibrated(
                self._quantiles(cases.values), cases.partition.tolist(), cases.size, cases.waited
            )
            limit = cases.values[:, cases.names.index("time_limit")] if "time_limit" in cases.names else None
            return [
                Forecast(
                    int(cases.job[row]), int(cases.size[row]), math.nan if limit is None else float(limit[row]),
                    str(cases.partition[row]), str(cases.user[row]), float(cases.waited[row]), *found[row].tolist(),
                )
                for row in range(cases.job.size)
            ]  # fmt: skip
        assert self.sweep is not None
        rows = list(polled(self.sweep, self.now))
        if self.simulator is None:
            raw = self._quantiles(np.array([row[1:] for row in rows], np.float32))
        else:
            raw = self.simulator.of_waiting(self.sweep, self.now)
        known = [place for place, row in enumerate(rows) if self.sweep.requests[row[0]].queue != _NO_QUEUE]
        rows, raw = [rows[place] for place in known], raw[known]
        names = {number: name for name, number in self.users.items()}
        jobs = [
            (self.common["ids"].get(row[0], row[0]), self.sweep.requests[row[0]],
             self.now - self.sweep.waiting[row[0]], names.get(self.sweep.requests[row[0]].user, ""))
            for row in rows
        ]  # fmt: skip
        return self._forecasts(jobs, raw)

    def _forecasts(self, jobs: Sequence[tuple[Any, Request, float, str]], raw: np.ndarray) -> list[Forecast]:
        partition = [self.labels.get(request.queue, "") for _, request, _, _ in jobs]
        size = np.array([request.processors for _, request, _, _ in jobs], float)
        found = 10 ** self.calibrated(raw, partition, size, np.array([waited for _, _, waited, _ in jobs]))
        found[found <= 1.0] = 0.0
        return [
            Forecast(job, request.processors, request.limit, label, user, waited, *ends.tolist())
            for (job, request, waited, user), label, ends in zip(jobs, partition, found, strict=True)
        ]


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
    reported = calibrator.cases.asked >= now - REPORTED * WEEK
    forecasts = calibrator.issued[reported]
    value, started = calibrator.cases.take(reported).known(now)
    above = value > forecasts[:, 2]
    hits = int((started & ~above & (value >= forecasts[:, 0])).sum())
    return Forecaster(
        name, now, Quantiles(cases, now) if chosen == PAST else None, calibrator.shifts(now, ["", *names]),
        calibrator.bounds, hits, int((started | above).sum()),
        simulator=simulator if chosen == SIMULATION else None, **state,
    )  # fmt: skip


def _log_seconds(moment: Any, header: Any) -> float:
    """Return the seconds of a log of a local time, or of a number of seconds since 1970."""
    from datetime import UTC, datetime

    return Header.of(header).seconds_since_start(
        moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    )


def require_weeks(cases: Cases, now: float, name: str) -> None:
    """Raise an error if the log before a moment is too short to fit and to calibrate."""
    before = cases.asked[cases.asked < now]
    weeks = (now - before[0]) / WEEK if before.size else 0.0
    if weeks < FEWEST_WEEKS:
        raise SwflowError(
            f"{name}: {weeks:.1f} weeks before the forecast; expected at least {FEWEST_WEEKS}: {CALIBRATED} calibrate "
            "what is learned from those before; import a longer log"
        )


def read_cases(path: Path, processors: int | None = None, until: float = math.inf) -> tuple[Cases, dict[str, Any]]:
    """
    Return the cases of a log or of a table of polls, and the state for `fit`, with the moment ``now``.

    The file is an SWF file, an imported log, a workload, or a table of polls (see `swflow.forecast.polls`). The moment
    is ``until`` (s), at most the end of the log, or the last poll.
    """
    if is_polls(path):
        cases = read_polls(path)
        polls = cases.asked[cases.asked <= until]
        now = float(polls[-1]) if polls.size else until
        return cases, {"name": path.name, "now": now, "waiting": cases.take(cases.asked == now)}
    return cases_of(open_recorded(path, processors), until)


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
        "groups": {one.user: one.group for one in requests},
        "group_names": {name: number for number, name in header.names_of("group_id").items()},
        "sizes": Counter(one.processors for one in requests),
        "limits": Counter(one.limit for one in requests if one.limit > 0),
        "longest": longest,
        "ids": {job: int(record.ids[job]) for job in sweep.waiting},
    }
