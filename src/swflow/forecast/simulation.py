"""Forecasts by simulation: the present queue, with run times and arrivals drawn from the past, under a scheduler."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.forecast.cases import Cases, decades
from swflow.forecast.model import QUANTILES
from swflow.forecast.record import Record, Request, peak, record_of
from swflow.forecast.sweep import Sweep
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator, uniform_per_job
from swflow.jobs.table import Workload
from swflow.scheduling.prepare import columns_needed, prepare
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.solve import solve
from swflow.values import DAY, WEEK

#: Simulated futures per forecast.
FUTURES = 100

#: The latest run times of a group of jobs from which run times are drawn, and the number of run times in a group that
#: counts as much as all wider groups together.
LATEST, WIDER = 200, 5

#: Jobs to simulate for the calibration of a forecaster or for an evaluation, and most and fewest forecasts for it.
BUDGET, MOST, FEWEST = 30e6, 1000, 200

#: The least share of jobs with a limit.
LIMITS = 0.9

#: The time after which the scheduler expects the end of a job without a known limit, seconds.
NO_LIMIT = 30 * DAY

#: Weeks of the past from which arrivals are drawn.
WEEKS = 8

#: Simulated seconds: futures in which the job has not started by then are simulated again for longer.
HORIZONS = (2 * 3600.0, 12 * 3600.0, 2 * DAY, 10 * DAY, 40 * DAY)


class State(NamedTuple):
    """The jobs that run and wait at a moment, the running ones first, the others in the order of their submission."""

    now: float  # the moment, seconds
    jobs: list[int]  # numbers of the jobs
    requests: list[Request]
    elapsed: np.ndarray  # float64 (jobs,): the seconds for which each job has run; NaN of the waiting ones


class RunTimes:
    """
    Run times of the past, from which those of other jobs are drawn.

    The groups of a job are the jobs of the same user with the same request, those of the same user, those with a
    similar limit, and all. Jobs without a known limit are similar to each other. A run time is drawn
    from the latest ones of the narrowest group with probability n / (n + 5) for n run times, otherwise from the next
    group in the same way; so new users get the run times of all others. In groups with different limits, ratios of run
    time to limit are drawn; if one of both limits is unknown, run times.

    ``run`` and ``end`` (s) are those of the requests; infinite if they are unknown. A run time is used at moments after
    the end of its job.
    """

    def __init__(self, requests: Sequence[Request], run: np.ndarray, end: np.ndarray) -> None:
        order = np.argsort(end, kind="stable")
        order = order[np.isfinite(end[order])]
        members: dict[tuple[object, ...], list[int]] = {}
        for job in order.tolist():
            for key in _groups(requests[job]):
                members.setdefault(key, []).append(job)
        limit = np.array([one.limit for one in requests], float)
        ratio = np.divide(run, limit, out=np.full(run.size, np.nan), where=limit > 0)
        self.groups = {key: (end[jobs], ratio[jobs], run[jobs]) for key, jobs in members.items()}

    def draw(self, request: Request, elapsed: float, now: float, random: np.random.Generator, count: int) -> np.ndarray:
        """Draw run times (s) of a job that has run for ``elapsed`` seconds, from the longer ones known at a moment."""
        found, weights, rest = [], [], 1.0
        for key in _groups(request):
            end, ratio, run = self.groups.get(key, (_NONE, _NONE, _NONE))
            last = int(np.searchsorted(end, now, side="left"))
            known = slice(max(last - LATEST, 0), last)
            times = run[known]
            if request.limit > 0:
                times = np.where(ratio[known] > 0, ratio[known] * request.limit, np.minimum(times, request.limit))
            times = times[times > elapsed] if elapsed > 0 else times
            if times.size:
                share = rest * times.size / (times.size + WIDER)
                found.append(times)
                weights.append(np.full(times.size, share / times.size))
                rest -= share
        if not found:
            limit = request.limit if request.limit > 0 else elapsed
            return np.full(count, limit if elapsed <= limit and limit > 0 else elapsed + 60.0)
        levels = np.cumsum(np.concatenate(weights))
        places = np.searchsorted(levels, random.random(count) * levels[-1], side="right")
        drawn: np.ndarray = np.concatenate(found)[np.minimum(places, levels.size - 1)]
        return drawn


_NONE = np.empty(0)


def _groups(request: Request) -> tuple[tuple[object, ...], ...]:
    return (
        ("same", *request.alike), ("user", request.user),
        ("limit", request.limit_class), ("all",),
    )  # fmt: skip


@dataclass
class Simulator:
    """
    Simulations of the future of a log from any of its moments.

    No site starts jobs at the instant at which they fit. Therefore, a delay is added to each start: the wait of one of
    the latest jobs that found no queue and enough free processors.

    ``requests`` are the jobs of the log in the order of their submission, with their times (s; ``left`` is that of a
    cancellation in the queue) and numbers (``ids``); no value after the moment of a forecast is used for it.
    ``share`` is that of the past cases that are simulated to calibrate and to compare forecasts.
    """

    processors: int
    requests: list[Request]
    submit: np.ndarray
    start: np.ndarray
    end: np.ndarray
    left: np.ndarray
    ids: np.ndarray
    scheduler: Scheduler
    share: float = 1.0

    def __post_init__(self) -> None:
        known = np.isfinite(self.end)
        run = np.subtract(self.end, self.start, out=np.full(self.end.size, np.inf), where=known)
        self.run_times = RunTimes(self.requests, run, self.end)
        self.width = np.array([one.processors for one in self.requests], np.int64)
        self.limit = np.array([_expected(one) for one in self.requests], float)
        self.delays = self._delays()
        self.place = {number: row for row, number in enumerate(self.ids.tolist())}

    def _delays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return starts and waits, by start, of the jobs that found no queue and enough processors."""
        begun, done = np.argsort(self.start, kind="stable"), np.argsort(self.end, kind="stable")
        before = np.searchsorted(self.start[begun], self.submit, side="left")
        ended = np.searchsorted(self.end[done], self.submit, side="right")
        busy = np.append(0, np.cumsum(self.width[begun]))[before] - np.append(0, np.cumsum(self.width[done]))[ended]
        at_once = (before == np.arange(self.submit.size)) & (busy + self.width <= self.processors)
        rows = begun[at_once[begun] & np.isfinite(self.start[begun])]
        return self.start[rows], (self.start - self.submit)[rows]

    def state(self, now: float, before: int | None = None) -> State:
        """
        Return the jobs that ran and waited just before a moment; jobs that start then still wait.

        Jobs that end or leave the queue at the moment are still there. ``before`` is the row of a job: those submitted
        at the same moment after it are left out.
        """
        submitted = int(np.searchsorted(self.submit, now, side="right")) if before is None else before
        start, end, left = self.start[:submitted], self.end[:submitted], self.left[:submitted]
        waits = (start >= now) & (left >= now)
        rows = np.concatenate((np.flatnonzero((start < now) & (end >= now)), np.flatnonzero(waits))).tolist()
        elapsed = np.where(start[rows] < now, now - start[rows], np.nan) if rows else _NONE
        return State(now, rows, [self.requests[row] for row in rows], elapsed)

    def starts(self, state: State, targets: Sequence[int], purpose: str = "", futures: int = FUTURES) -> np.ndarray:
        """
        Simulate futures from a state; return the seconds until the jobs at some of its positions start in them.

        The result has shape (len(targets), futures). ``purpose`` names the forecast, for its random numbers.
        """
        if not targets:
            return np.empty((0, futures))
        width = np.minimum([one.processors for one in state.requests], self.processors)
        limit = np.array([_expected(one) for one in state.requests], float)
        elapsed = np.nan_to_num(state.elapsed)
        random = generator(0, "forecast", "run times", purpose)
        run = np.array([
            self.run_times.draw(request, spent, state.now, random, futures) - spent
            for request, spent in zip(state.requests, elapsed.tolist(), strict=True)
        ]).T  # fmt: skip
        # running jobs are submitted first, so that they start at once
        at = np.where(np.isnan(state.elapsed), 0.0, -1.0)
        run = run + (at < 0)
        left = np.maximum(limit - elapsed, 1.0) + (at < 0)
        arrivals = Arrivals(self, state.now, generator(0, "forecast", "arrivals", purpose), random, futures)
        found = np.full((futures, len(targets)), np.nan)
        for horizon in HORIZONS:
            still = np.flatnonzero(np.isnan(found).any(axis=1))
            number, rows, when, times = arrivals.until(horizon, still)
            # each future has the jobs of the state, then its arrivals
            order = np.argsort(np.concatenate((np.repeat(np.arange(still.size), at.size), number)), kind="stable")
            started = self._solve(
                np.append(0, np.cumsum(at.size + np.bincount(number, minlength=still.size))),
                np.concatenate((np.tile(at, still.size), when))[order],
                np.concatenate((run[still].ravel(), times))[order],
                np.concatenate((np.tile(left, still.size), self.limit[rows]))[order],
                np.concatenate((np.tile(width, still.size), np.minimum(self.width[rows], self.processors)))[order],
                np.asarray(targets),
            )
            found[still] = np.where((started <= horizon) | (horizon == HORIZONS[-1]), started, np.nan)
            if not np.isnan(found).any():
                break
        begun, delays = self.delays
        delays = delays[: np.searchsorted(begun, state.now, side="left")][-LATEST:]
        if delays.size:
            found += generator(0, "forecast", "delays", purpose).choice(delays, found.shape)
        return found.T

    def of_waiting(self, sweep: Sweep, now: float) -> np.ndarray:
        """Return the quantiles of the starts of the jobs that wait after a replay, in their order, decades."""
        state = state_of(sweep, now)
        return quantiles_of(self.starts(state, range(len(sweep.running), len(state.jobs)), repr(now)))

    def of_requests(self, sweep: Sweep, now: float, requests: Sequence[Request]) -> np.ndarray:
        """Return the quantiles of the starts of jobs that would be submitted after a replay, each alone, decades."""
        state = state_of(sweep, now)
        last, elapsed = len(state.jobs), np.append(state.elapsed, math.nan)
        return np.concatenate([
            quantiles_of(self.starts(State(now, [*state.jobs, -1], [*state.requests, one], elapsed), [last], repr(now)))
            for one in requests
        ])  # fmt: skip

    def _solve(
        self, first: np.ndarray, at: np.ndarray, run: np.ndarray, limit: np.ndarray, width: np.ndarray, jobs: np.ndarray
    ) -> np.ndarray:
        """
        Return the starts of some jobs in each future, seconds.

        The futures, whose jobs begin at ``first``, are simulated one after the other: a gap between them is so long
        that the machine is empty.
        """
        gap = 10.0 + float(at.max()) + float(np.add.reduceat(run, first[:-1]).max())
        begin = gap * np.arange(first.size - 1)
        table = pl.DataFrame({
            "job_id": np.arange(at.size), "submit_time": at + np.repeat(begin, np.diff(first)), "run_time": run,
            "estimate": np.maximum(limit, 1.0), "processors": width,
        })  # fmt: skip
        workload = Workload(table, Machine(self.processors, self.processors), "forecast")
        start = solve(prepare(workload, self.scheduler)).start
        return np.maximum(start[first[:-1, None] + jobs] - begin[:, None], 0.0)


def _expected(request: Request) -> float:
    """Return the run time that the scheduler expects, seconds: the limit."""
    return request.limit if request.limit > 0 else NO_LIMIT


class Arrivals:
    """
    Arrivals after a moment: each day of a future is that day of one of the weeks before, at the same hours.

    The random numbers of ``when`` are for their times, those of ``runs`` for their run times.
    """

    def __init__(
        self, log: Simulator, now: float, when: np.random.Generator, runs: np.random.Generator, futures: int
    ) -> None:
        self.log, self.now, self.runs, self.futures = log, now, runs, futures
        days = math.ceil(HORIZONS[-1] / DAY)
        nearest = np.arange(days) // 7 + 1  # a day has to lie before the moment completely
        known = int((now - log.submit[0]) // WEEK) if log.submit.size else 0
        latest = np.minimum(nearest + WEEKS, known + 1)
        back = nearest + np.floor(when.random((futures, days)) * np.maximum(latest - nearest, 1)).astype(int)
        self.shift = back * WEEK
        begin = now + np.arange(days) * DAY - self.shift
        self.first = np.searchsorted(log.submit, begin, side="left")
        self.last = np.searchsorted(log.submit, begin + DAY, side="left")
        self.drawn: dict[int, np.ndarray] = {}

    def until(self, horizon: float, futures: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return positions in ``futures``, rows of the log, seconds from the moment and run times of the arrivals."""
        days, log = math.ceil(horizon / DAY), self.log
        first, shift = self.first[futures, :days].ravel(), self.shift[futures, :days].ravel()
        size = self.last[futures, :days].ravel() - first
        rows = np.arange(size.sum()) + np.repeat(first - np.cumsum(size) + size, size)
        when = log.submit[rows] + np.repeat(shift, size) - self.now
        number = np.repeat(np.repeat(np.arange(futures.size), days), size)
        kept = (when <= horizon) & ~(log.left[rows] < self.now)  # a job that was cancelled in the queue never ran
        number, rows, when = number[kept], rows[kept], when[kept]
        ended = log.end[rows] < self.now
        times = np.zeros(rows.size)
        times[ended] = log.end[rows[ended]] - log.start[rows[ended]]
        for place in np.flatnonzero(~ended).tolist():  # its run time is not known yet
            times[place] = self._draw(int(rows[place]))[futures[number[place]]]
        return number, rows, when, times

    def _draw(self, row: int) -> np.ndarray:
        if row not in self.drawn:
            log = self.log
            spent = max(self.now - float(log.start[row]), 0.0)
            self.drawn[row] = log.run_times.draw(log.requests[row], spent, self.now, self.runs, self.futures)
        return self.drawn[row]


def simulator_of(workload: Workload, scheduler: Scheduler, cases: Cases, begin: float, end: float) -> Simulator:
    """
    Return the simulator of a recorded log, if the log can be simulated and `BUDGET` suffices for `FEWEST` forecasts.

    Cases are forecast from ``begin`` to ``end`` (s); those asked before decide whether the log can be simulated. Raise
    `SwflowError` if the scheduler needs more than submissions, processors and limits, if too few limits are known, or
    if too many jobs run and wait.
    """
    if columns_needed(scheduler) != () or scheduler.unavailable:
        raise SwflowError(
            "--scheduler: needs more than the processors and limits of jobs, which future jobs lack; expected a "
            "scheduler such as easy"
        )
    before = cases.take(cases.asked < begin)
    limit, waiting, running = (before.values[:, cases.names.index(name)] for name in ("limit", "waiting", "running"))
    known = float((limit > 0).mean()) if limit.size else 0.0
    if known < LIMITS:
        raise SwflowError(
            f"{workload.name}: {100 * known:.0f} % of the jobs have a limit; expected at least {100 * LIMITS:.0f} % "
            "for forecasts by simulation"
        )
    jobs = float((waiting + running).mean()) + 1
    most = min(MOST, BUDGET / (FUTURES * jobs))
    if most < FEWEST:
        raise SwflowError(
            f"{workload.name}: {jobs:,.0f} jobs wait or run in the mean; expected at most "
            f"{BUDGET / FUTURES / FEWEST:,.0f} for forecasts by simulation"
        )
    share = most * (begin - cases.asked[0]) / (before.asked.size * (end - begin))
    record = record_of(workload)
    machine = record.processors
    if record.is_guessed:
        machine = _known_size(record, begin)
    return Simulator(
        machine, record.requests, record.submit, record.start, record.end, record.left, record.ids, scheduler, share
    )


def _known_size(record: Record, now: float) -> int:
    """Return the largest number of processors that jobs had occupied or requested before a moment."""
    first = int(np.searchsorted(record.submit, now))
    times = (np.where(part < now, part, np.inf)[:first] for part in (record.start, record.end))
    return peak(record.requests[:first], *times)


def state_of(sweep: Sweep, now: float) -> State:
    """Return the jobs that run and wait after the last event of a replay."""
    jobs = [*sweep.running, *sweep.waiting]
    elapsed = [max(now - start, 0.0) for start, _ in sweep.running.values()] + [math.nan] * len(sweep.waiting)
    return State(now, jobs, [sweep.requests[job] for job in jobs], np.array(elapsed))


def simulated(
    cases: Cases, simulator: Simulator, begin: float, end: float, progress: Callable[[Any], Any] = lambda items: items
) -> np.ndarray:
    """Forecast the simulator's share of the cases between two moments (s), before calibration; NaN for the others."""
    found = np.full((cases.asked.size, len(QUANTILES)), np.nan)
    names = cases.job * 4096 + (cases.asked // DAY).astype(int) % 4096  # a job that waits is a case every noon
    chosen = uniform_per_job(0, ["forecast", "simulated"], names) < simulator.share
    for case in progress(np.flatnonzero(chosen & (cases.asked >= begin) & (cases.asked < end)).tolist()):
        row, now = simulator.place[int(cases.job[case])], float(cases.asked[case])
        state = simulator.state(now, None if cases.waited[case] > 0 else row + 1)
        starts = simulator.starts(state, [state.jobs.index(row)], f"{cases.job[case]}/{now!r}")
        found[case] = quantiles_of(starts)[0]
    return found


def quantiles_of(starts: np.ndarray) -> np.ndarray:
    """Return both ends and the median of simulated starts, decades: float64 of shape (jobs, 3)."""
    return decades(np.quantile(starts, QUANTILES, axis=1, method="inverted_cdf").T)
