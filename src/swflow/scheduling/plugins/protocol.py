"""Policies written in Python: the protocol, the views of jobs and machine, and the event loop."""

import heapq
import logging
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.scheduling.plugins.source import error_inside

#: Calls of `Policy.decide` on an idle machine, without further arrivals, after which waiting jobs are an error.
PATIENCE = 10_000

#: Seconds between two notes on how far a policy is.
SILENCE = 15.0

_LOG = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Job:
    """
    A job without its run time, as passed to policies.

    Parameters
    ----------
    number : int
        Row in the job table, from 0; the queue is in this order.
    job_id : int
        Number in the log.
    submit_time, estimate : float
        Submit time and planned run time (at least 1), seconds.
    processors : int
        Requested processors.
    user_id, group_id, queue_id, executable_id : int or None
        Values of the log; None if unknown.
    start_time : float
        Start time, seconds; infinite while the job waits.
    """

    number: int
    job_id: int
    submit_time: float
    estimate: float
    processors: int
    user_id: int | None = None
    group_id: int | None = None
    queue_id: int | None = None
    executable_id: int | None = None
    start_time: float = float("inf")

    @property
    def planned_end(self) -> float:
        """The end of a running job by its estimate, seconds."""
        return self.start_time + self.estimate


def plain_jobs(jobs: pl.DataFrame, planned: np.ndarray) -> list[Job]:
    """Return the jobs of a table, in the order of submission, as objects for policies; times in seconds."""
    known = [
        jobs[name].to_list() if name in jobs.columns else [None] * jobs.height
        for name in ("user_id", "group_id", "queue_id", "executable_id")
    ]
    columns = [jobs["job_id"].to_list(), jobs["submit_time"].to_list(), planned.tolist(), jobs["processors"].to_list()]
    return [Job(number, *values) for number, values in enumerate(zip(*columns, *known, strict=True))]


class Policy(Protocol):
    """
    A scheduling policy: a class with a method ``decide`` and, optionally, ``on_submit`` and ``on_end``.

    Each run creates one object, which may keep state. The same jobs must give the same decisions: draw random numbers
    from a generator with a fixed seed.
    """

    def on_submit(self, now: float, job: Job) -> None:
        """Process the submission of a job; ``now`` in seconds."""

    def on_end(self, now: float, job: Job) -> None:
        """Process the end of a job, which ran for ``now - job.start_time`` seconds."""

    def decide(self, now: float, queue: Sequence[Job], running: Sequence[Job], machine: "MachineView") -> Iterable[Job]:
        """
        Choose the jobs that start now.

        While jobs wait, it is called once per instant with submissions or completions, and at the times of
        `MachineView.wake_at`.

        Parameters
        ----------
        now : float
            Seconds.
        queue : sequence of Job
            Waiting jobs in the order of submission.
        running : sequence of Job
            Running jobs by planned end.
        machine : MachineView
            Free processors now and later, as planned.
        """
        ...


class Profile:
    """
    The free processors over time, by the planned ends of the running jobs and by reservations.

    Parameters
    ----------
    now : float
        Seconds.
    free : int
        Processors that are free now.
    releases : iterable of (float, int)
        Times at which processors become free, and their numbers, in order of time.

    Examples
    --------
    >>> profile = Profile(0.0, 1, [(10.0, 2), (20.0, 1)])
    >>> profile.earliest(3, 5.0)
    10.0
    >>> profile.reserve(10.0, 5.0, 3)
    >>> profile.earliest(1, 12.0), profile.earliest(2, 1.0)
    (15.0, 15.0)
    """

    def __init__(self, now: float, free: int, releases: Iterable[tuple[float, int]] = ()) -> None:
        self.times = [now]
        self.free = [free]
        for moment, processors in releases:
            if moment > self.times[-1]:
                self.times.append(moment)
                self.free.append(self.free[-1])
            self.free[-1] += processors

    def earliest(self, processors: int, duration: float, after: float = 0.0) -> float:
        """Return the earliest time at which ``processors`` are free for ``duration`` seconds; infinite if never."""
        times, free = self.times, self.free
        step = max(bisect_right(times, after) - 1, 0)
        while step < len(times):
            if free[step] < processors:
                step += 1
                continue
            start = max(times[step], after)
            blocked = step + 1
            while blocked < len(times) and times[blocked] < start + duration:
                if free[blocked] < processors:
                    break
                blocked += 1
            else:
                return start
            step = blocked
        return float("inf")

    def reserve(self, start: float, duration: float, processors: int) -> None:
        """Reserve processors from ``start`` on for ``duration`` seconds."""
        first, last = self._step(start), self._step(start + duration)
        for step in range(first, last):
            self.free[step] -= processors

    def _step(self, moment: float) -> int:
        """Return the index of the step that begins at ``moment``; split a step there if necessary."""
        step = bisect_right(self.times, moment) - 1
        if self.times[step] == moment:
            return step
        self.times.insert(step + 1, moment)
        self.free.insert(step + 1, self.free[step])
        return step + 1


class MachineView:
    """
    The state of the machine, as passed to policies.

    Attributes
    ----------
    processors : int
        Size of the machine.
    free : int
        Processors that are free now.
    """

    def __init__(self, processors: int) -> None:
        self.processors = processors
        self.free = processors
        self._now = 0.0
        self._running: list[tuple[float, int, Job]] = []  # planned end, number, job
        self._wake_times: list[float] = []

    def profile(self, starting: Iterable[Job] = ()) -> Profile:
        """Return the planned free processors over time, if ``starting`` start now."""
        free, running = self._with(starting)
        return Profile(self._now, free, ((end, job.processors) for end, _, job in running))

    def shadow(self, head: Job, starting: Iterable[Job] = ()) -> tuple[float, int]:
        """
        Return a job's shadow time and its extra processors.

        Parameters
        ----------
        head : Job
            A waiting job.
        starting : iterable of Job
            Jobs that start now.

        Returns
        -------
        shadow_time : float
            The earliest time, seconds, at which enough processors are planned to be free.
        extra : int
            Processors that are free then, minus those of the job.
        """
        free, running = self._with(starting)
        shadow = self._now
        for end, _, job in running:
            if free >= head.processors and end > shadow:
                break
            free += job.processors
            shadow = max(end, shadow)
        return shadow, free - head.processors

    def _with(self, starting: Iterable[Job]) -> tuple[int, list[tuple[float, int, Job]]]:
        """Return the free processors and the running jobs by planned end, if ``starting`` start now."""
        more = [(self._now + job.estimate, job.number, job) for job in starting]
        free = self.free - sum(job.processors for _, _, job in more)
        return free, sorted([*self._running, *more]) if more else self._running

    def wake_at(self, moment: float) -> None:
        """Schedule another call of `Policy.decide` at a later time, seconds."""
        if not moment > self._now:
            raise ValueError(f"wake_at: {moment:.15g} s is not later than now, {self._now:.15g} s")
        if moment not in self._wake_times:
            heapq.heappush(self._wake_times, moment)


class Replay:
    """
    The event loop of policies: submissions, starts and completions of jobs on one machine.

    It sets the start times of the jobs, which are in the order of submission. No job is wider than the machine.
    """

    def __init__(self, jobs: Sequence[Job], run: Sequence[float], processors: int) -> None:
        self.jobs, self.run = jobs, run
        self.machine = MachineView(processors)
        self.now = -np.inf  # seconds
        self.queue: list[Job] = []  # waiting jobs in the order of submission
        self.ended: list[Job] = []  # at this instant
        self.submitted: list[Job] = []  # at this instant
        self._ends: list[tuple[float, int]] = []
        self._coming = 0

    @property
    def submissions(self) -> int:
        """How many jobs have been submitted."""
        return self._coming

    @property
    def more_to_come(self) -> bool:
        """Whether jobs are still to be submitted."""
        return self._coming < len(self.jobs)

    @property
    def idle(self) -> bool:
        """Whether no submissions and completions remain."""
        return not (self._ends or self.more_to_come)

    @property
    def running(self) -> list[Job]:
        """Running jobs by planned end."""
        return [entry[2] for entry in self.machine._running]

    def advance(self) -> bool:
        """Process the completions, then the arrivals, of the next instant; return False if there is none."""
        machine, ends, jobs = self.machine, self._ends, self.jobs
        now = min(
            jobs[self._coming].submit_time if self.more_to_come else np.inf,
            ends[0][0] if ends else np.inf,
            machine._wake_times[0] if machine._wake_times else np.inf,
        )
        if now == np.inf:
            return False
        self.now = machine._now = now
        self.ended, self.submitted = [], []
        while ends and ends[0][0] <= now:
            job = jobs[heapq.heappop(ends)[1]]
            del machine._running[bisect_left(machine._running, (job.planned_end, job.number))]
            machine.free += job.processors
            self.ended.append(job)
        while self.more_to_come and jobs[self._coming].submit_time <= now:
            self.submitted.append(jobs[self._coming])
            self._coming += 1
        self.queue += self.submitted
        while machine._wake_times and machine._wake_times[0] <= now:
            heapq.heappop(machine._wake_times)
        return True

    def start(self, started: Sequence[Job]) -> None:
        """Start jobs of the queue now. They must fit."""
        for job in started:
            job.start_time = self.now
            self.machine.free -= job.processors
            insort(self.machine._running, (job.planned_end, job.number, job))
            heapq.heappush(self._ends, (self.now + self.run[job.number], job.number))
        self.queue = [job for job in self.queue if job.start_time > self.now]


def simulate_policy(jobs: Sequence[Job], run: Sequence[float], processors: int, policy: Any, name: str) -> np.ndarray:
    """
    Return the start times of jobs under a policy: at one instant completions, then arrivals, then one decision.

    Raises
    ------
    SwflowError
        If the policy starts a job that it must not start, never starts a job, or raises an exception.
    """
    if not callable(getattr(policy, "decide", None)):
        raise SwflowError(f"policy: {name}: has no method decide(now, queue, running, machine)")
    on_submit, on_end, decide = (_guarded(policy, method, name) for method in ("on_submit", "on_end", "decide"))
    replay, idle, due = Replay(jobs, run, processors), 0, time.monotonic() + SILENCE
    while replay.queue or not replay.idle:
        if time.monotonic() > due:
            _LOG.info("policy %s: %s of %s jobs submitted", name, f"{replay.submissions:,}", f"{len(jobs):,}")
            due += SILENCE
        if not replay.advance():
            raise SwflowError(
                f"policy: {name}: {len(replay.queue):,} jobs are never started, the first of them job "
                f"{replay.queue[0].job_id}; start them in decide, or schedule another call with machine.wake_at"
            )
        for job in replay.ended:
            on_end(replay.now, job)
        for job in replay.submitted:
            on_submit(replay.now, job)
        if not replay.queue:
            continue
        started = decide(replay.now, replay.queue, replay.running, replay.machine)
        if started:
            _require_allowed(started, replay.machine, replay.now, name)
            replay.start(started)
        idle = idle + 1 if replay.idle else 0
        if idle > PATIENCE:
            raise SwflowError(
                f"policy: {name}: called wake_at {PATIENCE:,} times on an idle machine and started none of "
                f"{len(replay.queue):,} jobs, the first of them job {replay.queue[0].job_id}"
            )
    return np.array([job.start_time for job in jobs])


def _guarded(policy: Any, method: str, name: str) -> Callable[..., list[Job]]:
    """Return a function that calls a method of a policy and locates its exceptions in its source."""
    inner = getattr(policy, method, None)
    if inner is None:
        return lambda *_: []

    def call(*arguments: Any) -> list[Job]:
        try:
            chosen = inner(*arguments)
            if method != "decide":
                return []
            if isinstance(chosen, Iterable):
                return list(chosen)
        except SwflowError:
            raise
        except Exception as error:  # whatever the user's code raises
            raise SwflowError(f"policy: {name}: {method}: {error_inside(error)}") from error
        code = getattr(inner, "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
        raise SwflowError(
            f"policy: {name}: {where}decide at {arguments[0]:.15g} s returned {chosen!r}; expected a list of jobs of "
            "the queue, [] to start none"
        )

    return call


def _require_allowed(started: Sequence[Job], machine: MachineView, now: float, name: str) -> None:
    """Raise an error unless the jobs wait, are distinct and fit together."""
    said = f"policy: {name}: decide at {now:.15g} s"
    seen: set[int] = set()
    for job in started:
        if not isinstance(job, Job):
            raise SwflowError(f"{said} returned {job!r}, which is not a job of the queue")
        if job.start_time != np.inf:
            when = "runs already" if job.start_time <= now else "is over"
            raise SwflowError(f"{said} started job {job.job_id}, which {when}")
        if job.submit_time > now:
            raise SwflowError(f"{said} started job {job.job_id}, which is submitted at {job.submit_time:.15g} s")
        if job.number in seen:
            raise SwflowError(f"{said} started job {job.job_id} twice")
        seen.add(job.number)
    wanted = sum(job.processors for job in started)
    if wanted > machine.free:
        raise SwflowError(f"{said} started jobs of {wanted:,} processors, but {machine.free:,} are free")
