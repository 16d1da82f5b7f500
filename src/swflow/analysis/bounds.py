"""Lower bounds on the metrics of every schedule of rigid jobs, whether or not run times are known in advance."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from swflow.errors import SwflowError

#: The bounded metrics. Utilization has an upper bound, all others a lower bound.
BOUNDED = ("awrt", "awwt", "mean_response_time", "mean_wait_time", "makespan", "utilization")

#: Areas at which ``fluid by area`` is computed, per factor of 2. On KTH-SP2, 8 raise the bound of the mean wait by 4 %.
AREAS_PER_OCTAVE = 4


@dataclass(frozen=True)
class Bound:
    """
    A bound on a metric that holds for every schedule of the same rigid jobs on the same machine.

    ``measure`` is one of `BOUNDED`. ``value`` is the lower bound in seconds, for ``utilization`` the upper bound as a
    share. ``theorem`` is the argument that proves it, under its name in the documentation of lower bounds.
    """

    measure: str
    value: float
    theorem: str


def bounds(jobs: pl.DataFrame, machine: int) -> list[Bound]:
    """
    Return a bound for each of `BOUNDED`, on the metrics of every schedule of rigid jobs; none if there are no jobs.

    A schedule gives each job ``processors`` processors for ``run_time`` seconds, without interruption, at or after
    ``submit_time``, and never uses more processors than the machine has. The bounds also hold for clairvoyant
    schedulers and do not depend on estimates. They do not hold for runs that change run times or widths (moldable jobs,
    shared nodes, jobs killed at their estimate). In that case, bound the jobs with the run times and widths of the run.

    Notes
    -----
    *Area-weighted response and wait* (theorem ``fluid``). Let B(t) be the busy processors of a schedule, and A(t) the
    work (processor-seconds) that an infinite machine would have done by t, where every job starts when it is submitted.
    No schedule has done more than ``min over s <= t of A(s) + machine * (t - s)`` by t: this is the work of a fluid
    queue whose input is the work of the infinite machine and whose service rate is the machine's capacity. The
    area-weighted sum of the mean busy times is the integral of t B(t) dt, which is smallest if B is the fluid queue.
    The sum over jobs of area times wait is therefore at least the integral of the fluid's backlog. Jobs wider than half
    of the machine exclude each other: they enter the fluid at most one at a time, the widest first (theorem ``fluid,
    wide jobs``).

    *Mean response and wait*. The largest of five bounds. ``run times``: every job starts at once. ``squashed SRPT``:
    shortest remaining processing time first on one machine of the whole capacity, on which job j takes area / machine
    seconds. ``squashed mean busy times``: mean busy times under preemptive priority for the smallest area, plus half of
    the run times. The largest of these three is chosen per busy period of the squashed machine. ``wide SRPT``: SRPT of
    the jobs wider than half of the machine, which exclude each other, plus one of the other bounds for all other jobs.
    ``fluid by area``: the area-weighted bound of the jobs up to an area, for many areas; the sum of wait times is
    smallest if the jobs with the largest areas wait.

    References
    ----------
    L. Schrage, "A proof of the optimality of the shortest remaining processing time discipline", Operations Research
    16(3), 1968. M. X. Goemans, M. Queyranne, A. S. Schulz, M. Skutella, Y. Wang, "Single machine scheduling with
    release dates", SIAM Journal on Discrete Mathematics 15(2), 2002: mean busy times.

    Examples
    --------
    Two jobs that each need the whole machine, so that one must wait for the other:

    >>> jobs = pl.DataFrame({"submit_time": [0.0, 0.0], "run_time": [10.0, 30.0], "processors": [4, 4]})
    >>> {bound.measure: bound.value for bound in bounds(jobs, 4)}["mean_wait_time"]
    5.0
    """
    if jobs.is_empty():
        return []
    ordered = jobs.select("submit_time", "run_time", "processors").sort("submit_time", maintain_order=True)
    submit, run, width = (column.cast(pl.Float64).to_numpy() for column in ordered)
    _require(submit, run, width, machine)
    wide = width > machine / 2
    area = width * run
    wait, theorem = _weighted_wait(submit, run, width, wide, machine)
    response, mean_theorem = max(
        _total_response(submit, run, area / machine, wide),
        (float(run.sum()) + _waits_by_area(submit, run, width, wide, machine), "fluid by area"),
    )
    makespan, makespan_theorem = _makespan(submit, run, area, wide, machine)
    total, count = float(area.sum()), len(run)
    weighted_run = float(area @ run)
    found = []
    if total > 0:
        found = [Bound("awrt", (wait + weighted_run) / total, theorem), Bound("awwt", wait / total, theorem)]
    found += [
        Bound("mean_response_time", response / count, mean_theorem),
        Bound("mean_wait_time", max(0.0, response - float(run.sum())) / count, mean_theorem),
        Bound("makespan", makespan, makespan_theorem),
    ]
    if makespan > 0:
        found.append(Bound("utilization", total / (machine * makespan), makespan_theorem))
    return found


def gaps(found: Sequence[Bound], figures: Mapping[str, float | None]) -> dict[str, float | None]:
    """
    Return the relative distance of the metrics of a run (``figures``) from their bounds.

    A distance of 0.1 is 10 % above the bound; it is negative for utilization, and None where the metric is unknown or
    the bound is 0.
    """
    distances: dict[str, float | None] = {}
    for bound in found:
        value = figures.get(bound.measure)
        distances[bound.measure] = value / bound.value - 1 if value is not None and bound.value else None
    return distances


def _require(submit: np.ndarray, run: np.ndarray, width: np.ndarray, machine: int) -> None:
    """Raise an error unless all jobs fit the machine and all times are finite."""
    wrong = ~(np.isfinite(submit) & np.isfinite(run) & (run >= 0) & (width >= 1) & (width <= machine))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise SwflowError(
            f"bounds: a job with submit time {submit[row]:g}, run time {run[row]:g} and {width[row]:g} processors; "
            f"expected finite times and 1 to {machine:,} processors"
        )


# -- area-weighted wait: a fluid queue


def _weighted_wait(
    submit: np.ndarray, run: np.ndarray, width: np.ndarray, wide: np.ndarray, machine: int
) -> tuple[float, str]:
    """Return a lower bound on the sum of area times wait (processors times seconds squared), and the theorem."""
    plain = _backlog_integral(submit, submit + run, width, machine)
    if not wide.any():
        return plain, "fluid"
    begin, end, job = preempted(submit[wide], run[wide], -width[wide])
    later = float(width[wide][job] @ ((end - begin) * (begin + end) / 2))
    later -= float((width[wide] * run[wide]) @ (submit[wide] + run[wide] / 2))
    narrow = ~wide
    serial = later + _backlog_integral(
        np.append(submit[narrow], begin),
        np.append(submit[narrow] + run[narrow], end),
        np.append(width[narrow], width[wide][job]),
        machine,
    )
    return max((plain, "fluid"), (serial, "fluid, wide jobs"))


def _backlog_integral(begin: np.ndarray, end: np.ndarray, rate: np.ndarray, capacity: float) -> float:
    """Return the integral of the backlog of a fluid queue with inflow ``rate`` from ``begin`` to ``end``."""
    time = np.concatenate([begin, end])
    order = np.argsort(time, kind="stable")
    time = time[order]
    slope = np.cumsum(np.concatenate([rate, -rate])[order])[:-1] - capacity
    length = np.diff(time)
    free = np.append(0.0, np.cumsum(slope * length))  # lets the queue be negative
    backlog = free - np.minimum(np.minimum.accumulate(free), 0.0)
    backlog = np.maximum(backlog, 0.0)
    first, change = backlog[:-1], slope * length
    stays = first + change >= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        emptied = first * first / (-2 * slope)
    inside = float(np.where(stays, (first + change / 2) * length, emptied).sum())
    return inside + float(backlog[-1] ** 2 / (2 * capacity))


def _waits_by_area(submit: np.ndarray, run: np.ndarray, width: np.ndarray, wide: np.ndarray, machine: int) -> float:
    """
    Return a lower bound on the sum of wait times, seconds.

    For areas ``A_1 < A_2 < ...``, of which the last is the largest of all jobs, let ``X_g`` be the bound on the sum of
    area times wait of the jobs with areas up to ``A_g``. The sum of wait times is at least the sum over g of
    ``(1 / A_g - 1 / A_(g+1)) X_g``; after the last area, the second term is 0.
    """
    area = width * run
    areas = np.unique(area[area > 0])[::-1]
    step = np.floor(AREAS_PER_OCTAVE * np.log2(areas))
    total = before = 0.0
    for largest in areas[np.append(True, step[1:] < step[:-1])] if areas.size else areas:
        some = (area > 0) & (area <= largest)
        weighted = _weighted_wait(submit[some], run[some], width[some], wide[some], machine)[0]
        if weighted <= 0:
            break
        total += (1 / largest - before) * weighted
        before = 1 / largest
    return float(total)


# -- mean response: one machine of the whole capacity


def preempted(
    release: np.ndarray, length: np.ndarray, priority: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Simulate one machine that processes jobs with preemption.

    ``release`` (ascending) and ``length`` are the jobs' release and processing times, seconds. The job with the
    smallest ``priority`` is processed first; default: the remaining processing time (SRPT). Returns, for each piece of
    a job, the times at which it begins and ends, ascending, and the index of its job.
    """
    left = length.tolist()
    releases = release.tolist()
    keys = None if priority is None else priority.tolist()
    waiting: list[tuple[float, int]] = []
    begins: list[float] = []
    ends: list[float] = []
    pieces: list[int] = []
    now, arrived, count = -np.inf, 0, len(left)
    while waiting or arrived < count:
        if not waiting:
            now = max(now, releases[arrived])
        while arrived < count and releases[arrived] <= now:
            heapq.heappush(waiting, (left[arrived] if keys is None else keys[arrived], arrived))
            arrived += 1
        _, job = heapq.heappop(waiting)
        until = now + left[job]
        begins.append(now)
        pieces.append(job)
        if arrived < count and releases[arrived] < until:
            until = releases[arrived]
            left[job] -= until - now
            heapq.heappush(waiting, (left[job] if keys is None else keys[job], job))
        ends.append(until)
        now = until
    return np.array(begins), np.array(ends), np.array(pieces, np.int64)


def _completions(pieces: tuple[np.ndarray, np.ndarray, np.ndarray], jobs: int) -> np.ndarray:
    done = np.full(jobs, -np.inf)
    np.maximum.at(done, pieces[2], pieces[1])
    return done


def _total_response(submit: np.ndarray, run: np.ndarray, squashed: np.ndarray, wide: np.ndarray) -> tuple[float, str]:
    """Return a lower bound on the sum of response times, seconds, and the theorem."""
    best = _squashed_response(submit, run, squashed)
    if wide.any():
        done = _completions(preempted(submit[wide], run[wide]), int(wide.sum()))
        narrow = ~wide
        others = _squashed_response(submit[narrow], run[narrow], squashed[narrow])[0] if narrow.any() else 0.0
        best = max(best, (float((done - submit[wide]).sum()) + others, "wide SRPT"))
    return best


def _squashed_response(submit: np.ndarray, run: np.ndarray, squashed: np.ndarray) -> tuple[float, str]:
    """Return the largest bound on the sum of response times over the busy periods of the squashed machine."""
    jobs = len(run)
    done = _completions(preempted(submit, squashed), jobs)
    begin, end, job = preempted(submit, squashed, squashed)
    with np.errstate(divide="ignore", invalid="ignore"):
        busy = np.bincount(job, (end - begin) * (begin + end) / 2, jobs) / squashed
    busy = np.where(squashed > 0, busy, _completions((begin, end, job), jobs))
    work = np.cumsum(squashed)
    before = np.append(0.0, work[:-1])
    finish = work + np.maximum.accumulate(submit - before)
    period = np.cumsum(np.append(True, submit[1:] >= finish[:-1])) - 1
    candidates = {
        "run times": run, "squashed SRPT": done - submit, "squashed mean busy times": busy + run / 2 - submit,
    }  # fmt: skip
    sums = {name: np.bincount(period, values) for name, values in candidates.items()}
    best = np.max(list(sums.values()), axis=0)
    leading = max(sums, key=lambda name: float(best[sums[name] == best].sum()))
    return float(best.sum()), leading


# -- makespan


def _makespan(
    submit: np.ndarray, run: np.ndarray, area: np.ndarray, wide: np.ndarray, machine: int
) -> tuple[float, str]:
    """Return a lower bound on the makespan, seconds, and the theorem: work left at a submission is done after it."""
    found = [(float((submit + run).max() - submit[0]), "run times")]
    for name, begin, work in (("area", submit, area / machine), ("wide jobs", submit[wide], run[wide])):
        if len(begin):
            found.append((float((begin + np.cumsum(work[::-1])[::-1]).max() - submit[0]), name))
    return max(found)
