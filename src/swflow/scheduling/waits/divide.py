"""The schedule of one machine as plain arrays, and the division of its waits into reasons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swflow.compiled.kernel import Handle, sealed
from swflow.scheduling.waits.sweep import (
    ADD_UP,
    BUSY,
    DRAIN,
    EDGE,
    ELIGIBLE,
    END,
    FRAGMENTATION,
    LIMIT,
    ORDER,
    PERIOD,
    START,
    SWEEP,
    Sums,
    Sweep,
)

#: A limit that no job reaches.
NO_LIMIT = 1 << 60

#: Times are counted in ticks of 2^-k s, with the largest k up to this one at which they fit into 62 bits. At 30, whole
#: seconds and most decimal fractions of a schedule of a century are off by less than a nanosecond.
FINEST = 30


@dataclass(frozen=True)
class Waiting:
    """
    The schedule of one machine, and the conditions under which its jobs may start; arrays have one element per job.

    Times are seconds. ``windows`` are those of `swflow.scheduling.problem.Window`; in overlapping ones the processors
    add up. Job ``i`` is on the ranges of processors from ``offsets[i]`` to before ``offsets[i + 1]``; without offsets,
    processors are counted. ``rows`` are the accounts of each job, -1 where it has none. Jobs ``elsewhere`` count for
    limits only.
    """

    eligible: np.ndarray  # float64: when the job could start at the earliest
    start: np.ndarray  # float64
    end: np.ndarray  # float64: when its processors are free again
    processors: np.ndarray  # int64
    machine: int
    planned: np.ndarray  # float64: the run time with which it is planned
    windows: Sequence[tuple[float, float, int]] = ()
    contiguous: bool = False  # whether a job needs consecutive processors
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    ranges: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    demands: np.ndarray | None = None  # int64 (jobs, resources)
    units: np.ndarray | None = None  # int64 (resources)
    rows: np.ndarray | None = None  # int64 (jobs, accounts of a job)
    # int64 (accounts, 3 and more): limits of running jobs, processors, processor-minutes and further needs
    most: np.ndarray | None = None
    bounds: np.ndarray | None = None  # int64, as ``rows``: the limits that apply to each job; by default its accounts'
    needs: np.ndarray | None = None  # int64 (jobs, further needs)
    period: float = 0.0  # at its multiples, the minutes left to running jobs become fewer; 0: only when jobs end
    cycles: bool = False  # whether the scheduler may look at the queue later than at an event
    elsewhere: np.ndarray | None = None  # bool: jobs on other nodes, which do not wait here

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return self.start.size

    @property
    def here(self) -> np.ndarray:
        """The processors that each job has of the machine."""
        return self.processors if self.elsewhere is None else np.where(self.elsewhere, 0, self.processors)

    @property
    def minutes(self) -> np.ndarray:
        """The time limits of jobs in minutes, as Slurm counts them; empty if no account limits the minutes."""
        if self.most is None or not (self.most[:, 2] < NO_LIMIT).any():
            return np.zeros(0, np.int64)
        return np.maximum(np.floor(self.planned / 60), 1).astype(np.int64)

    @property
    def periods(self) -> np.ndarray:
        """The ends of periods at which limits of minutes change."""
        if not self.period or not self.minutes.size:
            return np.zeros(0)
        first, last = math.ceil(self.eligible.min() / self.period), math.floor(self.start.max() / self.period)
        return np.arange(first, last + 1) * self.period


@dataclass(frozen=True)
class _Ticks:
    """The times of a schedule as whole numbers, from the first time at which a job could start."""

    per_second: float
    eligible: np.ndarray
    start: np.ndarray
    end: np.ndarray
    planned: np.ndarray
    edges: np.ndarray  # when the number of available processors changes, ascending
    open: np.ndarray  # the available processors before the first edge, and from each on
    periods: np.ndarray

    @classmethod
    def of(cls, waiting: Waiting) -> "_Ticks":
        origin = float(waiting.eligible.min(initial=math.inf))
        planned_end = waiting.start + np.maximum(waiting.planned, 60.0 * waiting.minutes.max(initial=0))
        latest = float(max(waiting.end.max(initial=origin), planned_end.max(initial=origin)))
        finest = 62 - max(1, math.ceil(math.log2(latest - origin + 2)))
        per_second = 2.0 ** min(FINEST, finest)

        def ticks(times: np.ndarray) -> np.ndarray:
            return np.rint((np.clip(times, origin - 1, latest + 1) - origin) * per_second).astype(np.int64)

        moments = sorted({time for begin, until, _ in waiting.windows for time in (begin, until)})
        closed = [sum(away for begin, until, away in waiting.windows if begin <= time < until) for time in moments]
        available = np.maximum(waiting.machine - np.array([0, *closed], np.int64), 0)
        start = ticks(waiting.start)
        planned = np.rint(np.minimum(waiting.planned, latest - origin + 1) * per_second).astype(np.int64)
        eligible = np.minimum(ticks(waiting.eligible), start)
        edges, periods = ticks(np.array(moments)), ticks(waiting.periods)
        return cls(per_second, eligible, start, ticks(waiting.end), planned, edges, available, periods)


def divide(waiting: Waiting) -> dict[str, np.ndarray]:
    """
    Divide the wait of each job, from the time at which it is eligible to its start, into reasons, in seconds.

    ``limit``, ``room``, ``order`` and ``latency`` add up to the wait; ``fragmentation`` and ``drain`` are parts of
    ``room``. The documentation of waits defines them. The time is O((jobs + events) log events), and in addition, for
    jobs with limits, resources or a window ahead, proportional to the events during their waits.

    Examples
    --------
    The second job waits for the first, and the third for the second, though there is room for it:

    >>> start, run, width = np.array([0.0, 10.0, 20.0]), np.array([10.0, 10.0, 5.0]), np.array([3, 4, 1])
    >>> found = divide(Waiting(np.zeros(3), start, start + run, width, 4, run))
    >>> found["room"].tolist(), found["order"].tolist()
    ([0.0, 10.0, 10.0], [0.0, 0.0, 10.0])
    """
    names = ("limit", "room", "fragmentation", "drain", "order", "latency")
    if not waiting.jobs:
        return {name: np.zeros(0) for name in names}
    ticks = _Ticks.of(waiting)
    swept = _swept(waiting, ticks)
    times, sweep = _run_sweep(waiting, ticks, swept)
    parts, at_end = sweep.parts, sweep.at_end
    others = np.flatnonzero(~swept & (ticks.start > ticks.eligible))
    _add_sums(waiting, ticks, sweep, times, others)
    wait = ticks.start - ticks.eligible
    parts[others, ORDER] = wait[others] - parts[others, :ORDER].sum(axis=1)
    latency = np.zeros(waiting.jobs, np.int64)
    if waiting.cycles:
        near = np.ones(waiting.jobs, np.bool_) if waiting.elsewhere is None else ~waiting.elsewhere
        events = np.sort(np.concatenate([ticks.eligible[near], ticks.start[near], ticks.end[near], ticks.edges]))
        before = events[np.maximum(np.searchsorted(events, ticks.start) - 1, 0)]
        since = np.maximum(np.maximum(before, ticks.eligible), sweep.limited)
        latency = np.where(at_end, ticks.start - since, 0)
        parts[:, ORDER] -= latency
    room = parts[:, BUSY] + parts[:, DRAIN] + parts[:, FRAGMENTATION]
    found = (parts[:, LIMIT], room, parts[:, FRAGMENTATION], parts[:, DRAIN], parts[:, ORDER], latency)
    return {name: column / ticks.per_second for name, column in zip(names, found, strict=True)}


def _swept(waiting: Waiting, ticks: _Ticks) -> np.ndarray:
    """Return the waiting jobs with more conditions than a number of free processors: limits, resources, windows."""
    found = np.zeros(waiting.jobs, np.bool_)
    if waiting.demands is not None and waiting.demands.size:
        found |= waiting.demands.any(axis=1)
    if waiting.rows is not None and waiting.most is not None and waiting.rows.size:
        has_limit = np.append((waiting.most < NO_LIMIT).any(axis=1), False)
        found |= has_limit[waiting.rows if waiting.bounds is None else waiting.bounds].any(axis=1)
    first = np.searchsorted(ticks.edges, ticks.eligible, side="right")
    found |= first < np.searchsorted(ticks.edges, ticks.start + ticks.planned)
    return found & (ticks.start > ticks.eligible)


def _run_sweep(waiting: Waiting, ticks: _Ticks, swept: np.ndarray) -> tuple[np.ndarray, Sweep]:
    """Return the distinct times of the events of a schedule, and the sweep that divided the waits of some jobs."""
    jobs = np.arange(waiting.jobs)
    late = np.flatnonzero(swept)
    subjects = (jobs, np.arange(ticks.edges.size), late, jobs, np.arange(ticks.periods.size))
    times = np.concatenate([ticks.end, ticks.edges, ticks.eligible[late], ticks.start, ticks.periods])
    kinds = np.repeat(np.array([END, EDGE, ELIGIBLE, START, PERIOD]), [one.size for one in subjects])
    distinct = np.sort(times)
    distinct = distinct[np.append(True, distinct[1:] > distinct[:-1])]
    numbered = waiting.offsets.size > 0
    demands = np.zeros((waiting.jobs, 0), np.int64) if waiting.demands is None else waiting.demands
    rows = np.zeros((waiting.jobs, 0), np.int64) if waiting.rows is None else waiting.rows
    bounds = rows if waiting.bounds is None else waiting.bounds
    most = np.zeros((0, 3), np.int64) if waiting.most is None else waiting.most
    needs = np.zeros((waiting.jobs, 0), np.int64) if waiting.needs is None else waiting.needs
    minutes, second = waiting.minutes, np.array([ticks.per_second])

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    in_order = np.argsort(times, kind="stable") if late.size or numbered else zeros(0)
    sweep = Sweep(
        sealed(times[in_order]), sealed(kinds[in_order]), sealed(np.concatenate(subjects)[in_order]),
        sealed(waiting.processors, np.int64), sealed(waiting.here, np.int64), sealed(ticks.planned),
        sealed(demands, np.int64), sealed(rows, np.int64), sealed(bounds, np.int64), sealed(waiting.offsets, np.int64),
        sealed(waiting.ranges, np.int64), sealed(ticks.start), sealed(ticks.edges), sealed(ticks.open),
        sealed(zeros(0) if waiting.units is None else waiting.units, np.int64), sealed(most, np.int64),
        sealed(needs, np.int64),
        sealed(minutes, np.int64), sealed(second, np.int64), zeros(demands.shape[1]),
        zeros(*most.shape), zeros(minutes.size), np.full(minutes.size, -1), np.array([0, -1]), zeros(ticks.edges.size),
        zeros(waiting.machine if numbered else 0), zeros(late.size), np.full(waiting.jobs, -1),
        zeros(waiting.jobs, 5), np.zeros(waiting.jobs, np.bool_), zeros(waiting.jobs),
        zeros(distinct.size if numbered else 0), zeros(distinct.size if numbered and waiting.contiguous else 0),
    )  # fmt: skip
    if late.size or numbered:
        SWEEP(Handle([sweep]))
    return distinct, sweep


def _add_sums(waiting: Waiting, ticks: _Ticks, sweep: Sweep, times: np.ndarray, jobs: np.ndarray) -> None:
    """Divide the waits of jobs without other conditions than a number of free processors."""
    if not jobs.size:
        return
    change = np.concatenate([waiting.here, -waiting.here])
    place = np.searchsorted(times, np.concatenate([ticks.start, ticks.end]))
    idle = waiting.machine - np.cumsum(np.bincount(place, change, times.size)).astype(np.int64)
    closed = waiting.machine - ticks.open[np.searchsorted(ticks.edges, times, side="right")]
    states: list[tuple[int, np.ndarray]] = [(BUSY, idle)]
    if closed.any():
        states.append((DRAIN, sweep.free if sweep.free.size else idle - closed))
    if sweep.longest.size:
        states.append((FRAGMENTATION, sweep.longest))
    # A wait may begin before the first event, while the machine is idle.
    stretches = np.append(min(int(times[0]), int(ticks.eligible[jobs].min())) - 1, times)
    width, before = waiting.processors[jobs], np.zeros(jobs.size, np.int64)
    least = np.full(stretches.size, waiting.machine)
    for reason, state in states:
        least = np.minimum(least, np.append(waiting.machine, state))  # so that the parts do not overlap
        found = _below(stretches, least, width, ticks.eligible[jobs], ticks.start[jobs])
        sweep.parts[jobs, reason] = found - before
        before = found
    sweep.at_end[jobs] = least[np.searchsorted(stretches, ticks.start[jobs]) - 1] >= width


def _below(
    stretches: np.ndarray, state: np.ndarray, width: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return in how many ticks of each wait the state of the stretches is below the width of the job."""
    first = np.searchsorted(stretches, begin, side="right") - 1
    found = np.zeros(width.size, np.int64)
    sums = Sums(
        sealed(state), sealed(np.diff(stretches, append=stretches[-1])), sealed(np.argsort(state, kind="stable")),
        sealed(width, np.int64), sealed(np.argsort(width, kind="stable")), sealed(first),
        sealed(begin - stretches[first]), sealed(np.searchsorted(stretches, end)),
        np.zeros(stretches.size + 1, np.int64), found,
    )  # fmt: skip
    ADD_UP(Handle([sums]))
    return found
