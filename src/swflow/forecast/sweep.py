"""Replay a recorded log: the state of queue, machine and users when each job was submitted or waited."""

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Any

import numpy as np
import polars as pl

from swflow.forecast.cases import Cases, Recent
from swflow.forecast.record import QUEUES, UNKNOWN_LIMIT, Record, Request, record_of
from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.values import DAY, WEEK

#: Of the jobs that wait at a noon, at most this many become cases.
MOST_WAITING = 40

_SUBMIT, _POLL, _END, _START, _LEAVE = range(5)

#: The features of a case of a recorded log.
FEATURES = (
    "processors", "limit", "area", "hour", "weekday", "queue", "group", "waited",
    "waiting", "waiting_processors", "waiting_time", "waiting_age",
    "narrower", "narrower_time", "shorter", "shorter_time", "alike", "alike_age", "queue_waiting", "queue_time",
    "ahead", "ahead_time", "user_waiting", "user_time", "same_waiting", "same_age",
    "running", "free", "remaining", "fits_after", "user_running", "queue_running",
    "recent_wait", "recent_wait_long", "last_wait", "alike_wait", "alike_last", "queue_wait", "class_wait",
    "user_wait", "user_last", "user_jobs", "same_wait", "same_last", "user_ratio", "since_start",
    "unlimited_waiting", "unlimited_running",
)  # fmt: skip


class Sweep:
    """
    The state of queue and machine, and the recent past of users and classes of jobs, at one moment of a log.

    ``clock`` is the time of day and week at second 0 of the log, seconds after a Monday's midnight. A machine that
    ``grows`` has as many processors as were busy or requested so far, because its size is unknown. A job without a
    known limit is planned with the mean run time of the user's past jobs, or of all past jobs.
    """

    def __init__(self, processors: int, clock: float = 0.0, grows: bool = False) -> None:
        self.processors, self.clock, self.grows = processors, clock, grows
        self.requests: dict[int, Request] = {}  # the requests of waiting and running jobs
        self.waiting: dict[int, float] = {}  # job to submit time, in the order of submission
        self.running: dict[int, tuple[float, float]] = {}  # job to start and end by the limit
        self.ends: list[tuple[float, int, int]] = []  # end by the limit, processors, job; sorted
        # jobs, processors, processor-seconds and sum of the submit times of the waiting jobs
        self.classes = np.zeros((4, 32, UNKNOWN_LIMIT + 1))
        self.of_queue: dict[int, list[float]] = defaultdict(_zeros)
        self.of_user: dict[int, list[float]] = defaultdict(_zeros)
        self.of_same: dict[tuple[int, int, float], list[float]] = defaultdict(_zeros)
        self.busy, self.last_start = 0, math.nan
        self.unlimited = 0  # running jobs without a known limit
        self.fast, self.slow, self.kind, self.own, self.ratio, self.spent = map(
            Recent, (0.2, 0.02, 0.1, 0.2, 0.1, 0.05)
        )

    @classmethod
    def of_attributes(cls, values: Iterable[Any]) -> "Sweep":
        """Return a state with these values of its attributes, in their order."""
        found = cls(1)
        for (name, empty), value in zip(list(vars(found).items()), values, strict=True):
            if isinstance(empty, defaultdict):
                empty.update(value)
            else:
                setattr(found, name, value)
        return found

    def submit(self, job: int, request: Request, now: float) -> None:
        """Add a job to the queue."""
        request = self._planned(request)
        self.requests[job], self.waiting[job] = request, now
        if self.grows:
            self.processors = max(self.processors, request.processors)
        self._count(request, now, 1)

    def _planned(self, request: Request) -> Request:
        """Return a request whose planned run time is known."""
        if request.planned > 0:
            return request
        of_user, of_all = (self.spent.of(key)[0] for key in (request.user, "all"))
        return request._replace(planned=next((mean for mean in (of_user, of_all) if mean > 0), 0.0))

    def _count(self, request: Request, submitted: float, sign: int) -> None:
        area = request.area
        self.classes[:, request.size_class, request.limit_class] += (
            sign, sign * request.processors, sign * area, sign * submitted,
        )  # fmt: skip
        for place in (self.of_queue[request.queue], self.of_user[request.user]):
            place[0] += sign
            place[1] += sign * area
        same = self.of_same[request.alike]
        same[0] += sign
        same[1] += sign * submitted

    def start(self, job: int, now: float) -> None:
        """Start a waiting job."""
        request, submitted = self.requests[job], self.waiting.pop(job)
        self._count(request, submitted, -1)
        wait = math.log10(max(now - submitted, 1.0))
        self.fast.add("all", wait)
        self.slow.add("all", wait)
        for key in _keys(request):
            self.kind.add(key, wait)
        self.own.add(request.user, wait)
        self.own.add(request.alike, wait)
        self._occupy(job, request, now)
        self.last_start = now

    def _occupy(self, job: int, request: Request, now: float) -> None:
        end = now + request.planned
        self.running[job] = now, end
        insort(self.ends, (end, request.processors, job))
        self._run(request, 1)

    def _run(self, request: Request, sign: int) -> None:
        self.busy += sign * request.processors
        self.unlimited += sign * (request.limit_class == UNKNOWN_LIMIT)
        if self.grows:
            self.processors = max(self.processors, self.busy)
        self.of_queue[request.queue][2] += sign * request.processors
        self.of_user[request.user][2] += sign * request.processors

    def end(self, job: int, now: float) -> None:
        """End a running job."""
        request, (start, end) = self.requests.pop(job), self.running.pop(job)
        del self.ends[bisect_left(self.ends, (end, request.processors, job))]
        self._run(request, -1)
        if request.limit > 0:
            self.ratio.add(request.user, min((now - start) / max(request.limit, 1.0), 2.0))
        for key in (request.user, "all"):
            self.spent.add(key, now - start)

    def leave(self, job: int) -> None:
        """Remove a waiting job that is cancelled."""
        self._count(self.requests.pop(job), self.waiting.pop(job), -1)

    def features(self, request: Request, now: float, waited: float = 0.0, ahead: tuple[float, float] | None = None,
                 counted: bool = False) -> list[float]:  # fmt: skip
        """
        Return the features of a job at a moment (s), in the order of `FEATURES`.

        The job has ``waited`` for some seconds; with ``counted``, it is among the waiting jobs. ``ahead`` are
        the jobs and processor-seconds that were submitted before (default: all that wait).
        """
        size, limit, own = request.size_class, request.limit_class, float(counted)
        area = request.processors * request.limit
        own_work = request.area if counted else 0.0
        by_size = self.classes.sum(axis=2)
        jobs, processors, work, age = by_size.sum(axis=1).tolist()
        narrower = by_size[:, : size + 1].sum(axis=1).tolist()
        shorter = self.classes[:, :, : limit + 1].sum(axis=(1, 2)).tolist()
        alike, _, _, alike_age = by_size[:, size].tolist()
        queue, user = self.of_queue[request.queue], self.of_user[request.user]
        same = self.of_same[request.alike]
        machine = self.processors
        hour = (now + self.clock) % WEEK
        recent, slow = self.fast.of("all"), self.slow.of("all")
        by_class, of_queue, of_class = (self.kind.of(key) for key in _keys(request))
        mine, twin = self.own.of(request.user), self.own.of(request.alike)
        before = (jobs - own, work - own_work) if ahead is None else ahead
        remaining = sum(width * (end - now) for end, width, _ in self.ends if end > now)
        return [
            request.processors, request.limit, area, hour % DAY / 3600, hour // DAY, request.queue, request.group,
            waited,
            jobs - own, processors - own * request.processors, (work - own_work) / machine,
            now - age / jobs if jobs else 0.0,
            narrower[0] - own, (narrower[2] - own_work) / machine, shorter[0] - own,
            (shorter[2] - own_work) / machine, alike - own, now - alike_age / alike if alike else 0.0,
            queue[0] - own, (queue[1] - own_work) / machine,
            before[0], before[1] / machine, user[0] - own, (user[1] - own_work) / machine, same[0] - own,
            now - same[1] / same[0] if same[0] else 0.0,
            len(self.running), machine - self.busy, remaining / machine,
            self.fits_after(request.processors, now), user[2], queue[2],
            recent[0], slow[0], recent[1], by_class[0], by_class[1], of_queue[0], of_class[0],
            mine[0], mine[1], mine[2], twin[0], twin[1], self.ratio.of(request.user)[0], now - self.last_start,
            float(self.classes[0, :, UNKNOWN_LIMIT].sum()) - own * (limit == UNKNOWN_LIMIT), self.unlimited,
        ]  # fmt: skip

    def replace_queue(self, jobs: Iterable[tuple[int, Request, float, float | None]]) -> None:
        """Replace the jobs that wait or run: job, request, submit time and start (None: waits), seconds."""
        for job in [*self.waiting, *self.running]:
            self.requests.pop(job, None)
        self.waiting, self.running, self.ends, self.busy, self.unlimited = {}, {}, [], 0, 0
        self.classes[:] = 0.0
        for counts in (self.of_queue, self.of_user, self.of_same):
            counts.clear()
        for job, request, submitted, start in sorted(jobs, key=lambda one: one[2]):
            self.requests[job] = request = self._planned(request)
            if start is None:
                self.submit(job, request, submitted)
            else:
                self._occupy(job, request, start)

    def fits_after(self, processors: int, now: float) -> float:
        """Return the seconds until enough processors are free, if running jobs end at their limits and none starts."""
        free = self.processors - self.busy
        if free >= processors:
            return 0.0
        for end, width, _ in self.ends:
            free += width
            if free >= processors:
                return max(end - now, 0.0)
        return math.nan


def _zeros() -> list[float]:
    return [0.0, 0.0, 0.0]


def _keys(request: Request) -> tuple[Any, ...]:
    """Return the keys of the recent waits: size, queue and size, size and limit."""
    return (
        ("size", request.size_class), ("queue", request.queue, request.size_class),
        ("class", request.size_class, request.limit_class),
    )  # fmt: skip


def labels_of(workload: Workload) -> dict[int, str]:
    """Return the names of the queues of requests: partition, queue, both with a slash if a log has several of both."""
    columns = ("partition_id", "queue_id")
    pairs = workload.jobs.select(pl.col(name).fill_null(-1) for name in columns).unique().sort(columns).rows()
    several = [len({pair[place] for pair in pairs}) > 1 for place in (0, 1)]
    names = [workload.header.names_of(name) for name in columns]
    return {
        (one + 1) * QUEUES + other + 1: "/".join(
            names[place].get(number, "none" if number < 0 else str(number))
            for place, number in enumerate((one, other)) if several[place]
        ) or "all"
        for one, other in pairs
    }  # fmt: skip


def clock_of(workload: Workload) -> float:
    """Return the seconds after a Monday's midnight at second 0 of the log, in the log's time zone; 0 if unknown."""
    from swflow.workload.models.arrivals import clock_at_start

    return clock_at_start(workload.header) if workload.header.start else 0.0


def noons_of(workload: Workload, last: float) -> np.ndarray:
    """Return the noons of the site until a moment (s); without a known start of the log, every 24 h from 12 h on."""
    submit, header = workload.jobs["submit_time"].to_numpy(), workload.header
    if not submit.size:
        return np.empty(0)
    first = float(submit.min())
    if not header.start:
        return np.arange(math.ceil(first / DAY - 0.5) + 0.5, last / DAY) * DAY
    day, found = header.local_time(first).date(), []
    while (noon := header.seconds_since_start(datetime.combine(day, time(12)))) <= last:
        found.append(noon)
        day += timedelta(days=1)
    times = np.array(found)
    return times[times >= first]


def from_log(workload: Workload, until: float = math.inf) -> tuple[Cases, Sweep]:
    """
    Return the cases of a recorded log, and its state at a moment (s); see `replay`.

    Raise `SwflowError` if the log has no recorded waits.
    """
    return replay(record_of(workload, until), workload)


def replay(record: Record, workload: Workload) -> tuple[Cases, Sweep]:
    """
    Return the cases of a record, and the state after its last event.

    Every submission is a case. So are, at each noon of the site, some of the jobs that wait: a forecast for a job in
    the queue depends on its wait so far. A feature is computed only from submissions until the moment of its case and
    from starts, ends and cancellations before it. Jobs that had not started have no wait. ``workload`` has the names
    of queues and the site's clock.
    """
    sweep = Sweep(1 if record.is_guessed else record.processors, clock_of(workload), record.is_guessed)
    found: list[tuple[int, float]] = []
    rows: list[list[float]] = []
    random, requests = generator(0, "forecast", "polls"), record.requests
    for kind, now, job in _events(record, noons_of(workload, record.last)):
        if kind == _SUBMIT:
            found.append((job, now))
            rows.append(sweep.features(requests[job], now))
            sweep.submit(job, requests[job], now)
        elif kind == _START:
            sweep.start(job, now)
        elif kind == _LEAVE:
            sweep.leave(job)
        elif kind == _END:
            sweep.end(job, now)
        elif sweep.waiting:
            for one, *row in polled(sweep, now, random):
                found.append((one, now))
                rows.append(row)
    labels = labels_of(workload)
    job = np.array([number for number, _ in found], int)
    asked = np.array([moment for _, moment in found])
    seconds = record.start[job] - asked
    seconds[~(record.start[job] <= record.last)] = np.nan
    return Cases(
        FEATURES, np.array(rows, np.float32).reshape(-1, len(FEATURES)), asked, seconds, asked - record.submit[job],
        np.array([requests[number].processors for number in job], float),
        np.array([labels[requests[number].queue] for number in job], object),
        np.array([requests[number].user for number in job], object), record.ids[job], record.last,
        record.left[job] - asked,
    ), sweep  # fmt: skip


def polled(sweep: Sweep, now: float, random: np.random.Generator | None = None) -> Iterable[list[Any]]:
    """Yield job and features of the waiting jobs, in the order of the queue; with a generator, of some of them."""
    jobs = list(sweep.waiting)
    chosen = set(jobs)
    if random is not None and len(jobs) > MOST_WAITING:
        chosen = {jobs[place] for place in random.choice(len(jobs), MOST_WAITING, replace=False)}
    count = work = 0.0
    for job in jobs:
        request = sweep.requests[job]
        if job in chosen:
            yield [job, *sweep.features(request, now, now - sweep.waiting[job], (count, work), True)]
        count += 1
        work += request.area


def _events(record: Record, polls: np.ndarray) -> Iterable[Any]:
    """
    Yield kind, time and job of the events of a record, in their order.

    At equal times, jobs are submitted and polled before others start, end or leave, so that no case depends on what
    happens at its own moment. Jobs end before others start; a job that runs for 0 s ends after its start.
    """
    count = np.arange(record.submit.size)
    times = np.concatenate((record.submit, polls, record.end, record.start, record.left))
    kinds = np.repeat([_SUBMIT, _POLL, _END, _START, _LEAVE], (count.size, polls.size, *(count.size,) * 3))
    jobs = np.concatenate((count, np.zeros(polls.size, int), count, count, count))
    instant = (record.end == record.start)[jobs] if count.size else np.zeros(jobs.size, bool)
    rank = np.where((kinds == _END) & instant, _LEAVE + 1, kinds)
    order = np.lexsort((jobs, rank, times))
    order = order[times[order] <= record.last]
    return zip(kinds[order].tolist(), times[order].tolist(), jobs[order].tolist(), strict=True)
