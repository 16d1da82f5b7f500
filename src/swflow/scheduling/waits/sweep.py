"""Kernels that divide waits: sums over the stretches of a schedule, and a sweep for jobs with several conditions."""

import math
from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import Kernel

#: What an event does, in any order at equal times.
END, EDGE, ELIGIBLE, START, PERIOD = 0, 1, 2, 3, 4

#: The columns of `Sweep.parts`: ticks with each reason.
LIMIT, BUSY, DRAIN, FRAGMENTATION, ORDER = 0, 1, 2, 3, 4


class Sums(NamedTuple):
    """
    Stretches of time with their free processors, and the jobs that wait in them. Times are ticks.

    ``found`` receives, for each job, the ticks of its wait in which fewer processors are free than it needs.
    """

    free: np.ndarray  # int64 (stretches)
    length: np.ndarray  # int64 (stretches)
    by_free: np.ndarray  # int64: the stretches by ascending free processors
    width: np.ndarray  # int64 (jobs)
    by_width: np.ndarray  # int64: the jobs by ascending width
    first: np.ndarray  # int64 (jobs): the stretch in which the wait begins
    late: np.ndarray  # int64 (jobs): ticks of that stretch that are before the wait
    last: np.ndarray  # int64 (jobs): the stretch at whose beginning the wait ends
    tree: np.ndarray  # int64 (stretches + 1): zeros
    found: np.ndarray  # int64 (jobs)


def _up_to(tree: np.ndarray, stretch: int) -> int:
    """Return the sum over the stretches before one."""
    total = 0
    while stretch > 0:
        total += tree[stretch]
        stretch &= stretch - 1
    return total


def _add_up(sums: Sums) -> int:
    """
    Sum the lengths of stretches with too few processors, for jobs by ascending width; return the number of jobs.

    The tree of sums is that of P. M. Fenwick, "A new data structure for cumulative frequency tables", Software:
    Practice and Experience 24(3), 1994.
    """
    tree, free, size = sums.tree, sums.free, sums.free.size
    entered = 0
    for place in range(sums.by_width.size):
        job = sums.by_width[place]
        width = sums.width[job]
        while entered < size and free[sums.by_free[entered]] < width:
            stretch = sums.by_free[entered]
            node = stretch + 1
            while node <= size:
                tree[node] += sums.length[stretch]
                node += node & -node
            entered += 1
        first = sums.first[job]
        total = _up_to(tree, sums.last[job]) - _up_to(tree, first)
        sums.found[job] = total - sums.late[job] if free[first] < width else total
    return sums.by_width.size


ADD_UP = Kernel(_add_up)


class Sweep(NamedTuple):
    """
    A schedule with its events, the state of the machine, and the jobs whose waits the sweep divides. Times are ticks.

    If processors are numbered, ``free`` receives, for each distinct time, how many of those available are free from
    then on; if jobs need consecutive ones, ``longest`` receives the longest range of them. They are empty otherwise.
    """

    time: np.ndarray  # int64 (events), ascending
    kind: np.ndarray  # int64 (events)
    subject: np.ndarray  # int64 (events): the job, or the edge
    width: np.ndarray  # int64 (jobs)
    here: np.ndarray  # int64 (jobs): their processors of this machine; 0 for a job that counts for limits only
    planned: np.ndarray  # int64 (jobs): planned run times
    demands: np.ndarray  # int64 (jobs, resources)
    rows: np.ndarray  # int64 (jobs, accounts of a job), -1: none
    bounds: np.ndarray  # int64, as ``rows``: the limits that apply to each job
    offsets: np.ndarray  # int64 (jobs + 1): the ranges of each job; empty if processors are only counted
    ranges: np.ndarray  # int64 (ranges, 2): first and last processor
    begin: np.ndarray  # int64 (jobs): starts
    edges: np.ndarray  # int64 (edges): when the number of available processors changes, ascending
    open: np.ndarray  # int64 (edges + 1): the available processors before the first edge, and from each on
    units: np.ndarray  # int64 (resources)
    # int64 (accounts and more, 3 and more): limits of running jobs, processors, the minutes left to them, and ``needs``
    most: np.ndarray
    needs: np.ndarray  # int64 (jobs, further quantities)
    minutes: np.ndarray  # int64 (jobs): the time limits in minutes; empty if no account limits the minutes
    second: np.ndarray  # int64 (1): the ticks of a second
    used: np.ndarray  # int64 (resources): zeros
    running: np.ndarray  # int64, as ``most``: zeros; running jobs, their processors, the seconds left to them, needs
    active: np.ndarray  # int64 (jobs): the running jobs, if minutes are limited
    listed: np.ndarray  # int64 (jobs): their places there; -1: not yet, -2: a job that ends when it starts
    counted: np.ndarray  # int64 (2): how many jobs are active; the last end of a period
    ahead: np.ndarray  # int64 (edges): zeros; processors of running jobs that are planned to run at each edge
    taken: np.ndarray  # int64 (processors): zeros; the jobs on each
    queue: np.ndarray  # int64 (swept jobs)
    place: np.ndarray  # int64 (jobs): their places in the queue; -1
    parts: np.ndarray  # int64 (jobs, 5): zeros
    at_end: np.ndarray  # bool (jobs): whether the last reason was the order
    limited: np.ndarray  # int64 (jobs): until when a limit was the reason
    free: np.ndarray  # int64 (distinct times)
    longest: np.ndarray  # int64 (distinct times)


def _occupy(sweep: Sweep, job: int, sign: int) -> None:
    """Count the start (1) or the end (-1) of a job."""
    width = sign * sweep.width[job]
    for resource in range(sweep.used.size):
        sweep.used[resource] += sign * sweep.demands[job, resource]
    for column in range(sweep.rows.shape[1]):
        row = sweep.rows[job, column]
        if row >= 0:
            sweep.running[row, 0] += sign
            sweep.running[row, 1] += width
            for need in range(sweep.needs.shape[1]):
                sweep.running[row, 3 + need] += sign * sweep.needs[job, need]
    if sweep.minutes.size > 0:
        _count_left(sweep, job, width * _seconds_left(sweep, job, sweep.counted[1]))
        _list_active(sweep, job, sign)
    for edge in range(sweep.edges.size):
        if sweep.begin[job] + sweep.planned[job] > sweep.edges[edge]:
            sweep.ahead[edge] += sign * sweep.here[job]
    if sweep.offsets.size > 0:
        for one in range(sweep.offsets[job], sweep.offsets[job + 1]):
            for processor in range(sweep.ranges[one, 0], sweep.ranges[one, 1] + 1):
                sweep.taken[processor] += sign


def _seconds_left(sweep: Sweep, job: int, now: int) -> int:
    """Return the seconds from a time, or from the start of a job if that is later, to its time limit; 0 after that."""
    second = sweep.second[0]
    left = sweep.begin[job] - max(sweep.begin[job], now) + 60 * sweep.minutes[job] * second
    return math.floor(max(0, left) / second + 0.5)


def _count_left(sweep: Sweep, job: int, seconds: int) -> None:
    """Add processor-seconds to those that are left to the running jobs of the accounts of a job."""
    for column in range(sweep.rows.shape[1]):
        if sweep.rows[job, column] >= 0:
            sweep.running[sweep.rows[job, column], 2] += seconds


def _list_active(sweep: Sweep, job: int, sign: int) -> None:
    """List a job as running (1), or no longer (-1)."""
    place = sweep.listed[job]
    if sign > 0 and place == -1:
        sweep.listed[job] = sweep.counted[0]
        sweep.active[sweep.counted[0]] = job
        sweep.counted[0] += 1
    elif sign < 0 and place == -1:
        sweep.listed[job] = -2
    elif sign < 0:
        sweep.counted[0] -= 1
        last = sweep.active[sweep.counted[0]]
        sweep.active[place], sweep.listed[last] = last, place


def _end_period(sweep: Sweep, now: int) -> None:
    """Subtract the time since the end of the last period from what is left to running jobs."""
    for place in range(sweep.counted[0]):
        job = sweep.active[place]
        passed = _seconds_left(sweep, job, sweep.counted[1]) - _seconds_left(sweep, job, now)
        _count_left(sweep, job, -sweep.width[job] * passed)
    sweep.counted[1] = now


def _free_below(sweep: Sweep, end: int) -> tuple[int, int]:
    """Return the number of free processors with numbers below an end, and the longest range of them."""
    free = longest = row = 0
    for processor in range(end):
        if sweep.taken[processor] > 0:
            row = 0
        else:
            free += 1
            row += 1
            longest = max(longest, row)
    return free, longest


def _is_limited(sweep: Sweep, job: int) -> bool:
    """Return whether a job would exceed a limit."""
    for column in range(sweep.rows.shape[1]):
        row, bound = sweep.rows[job, column], sweep.bounds[job, column]
        if bound < 0:
            continue
        running, most = sweep.running, sweep.most
        if running[row, 0] >= most[bound, 0] or running[row, 1] + sweep.width[job] > most[bound, 1]:
            return True
        if sweep.minutes.size > 0:
            minutes = running[row, 2] // 60 + sweep.width[job] * sweep.minutes[job]
            if minutes > most[bound, 2]:
                return True
        for need in range(sweep.needs.shape[1]):
            if running[row, 3 + need] + sweep.needs[job, need] > most[bound, 3 + need]:
                return True
    return False


def _lacks_units(sweep: Sweep, job: int) -> bool:
    """Return whether the machine lacks units of a resource that a job needs."""
    for resource in range(sweep.used.size):
        needed = sweep.demands[job, resource]
        if needed > 0 and sweep.used[resource] + needed > sweep.units[resource]:
            return True
    return False


def _by_windows(sweep: Sweep, job: int, available: int, busy: int) -> int:
    """
    Return the reason why a job does not start on a machine with this many ``available`` processors.

    Of counted processors, ``busy`` are in use; of numbered processors, the available ones have the lowest numbers.
    """
    width = sweep.width[job]
    if sweep.offsets.size == 0:
        return DRAIN if width > available - busy else ORDER
    free, longest = _free_below(sweep, available)
    if width > free:
        return DRAIN
    return FRAGMENTATION if sweep.longest.size > 0 and width > longest else ORDER


def _divide(sweep: Sweep, job: int, since: int, until: int, edge: int, busy: int) -> None:
    """Add a stretch of a job's wait to its reasons; ``edge`` is the next edge, ``busy`` are the busy processors."""
    parts, edges = sweep.parts, sweep.edges
    sweep.at_end[job] = False
    if _is_limited(sweep, job):
        parts[job, LIMIT] += until - since
        sweep.limited[job] = until
        return
    if sweep.width[job] > sweep.open[0] - busy or _lacks_units(sweep, job):
        parts[job, BUSY] += until - since
        return
    available = sweep.open[edge]
    reason = _by_windows(sweep, job, available, busy)
    # A start would make the planned run reach an edge if it is later than this long before the edge.
    while edge < edges.size and reason != DRAIN and edges[edge] - sweep.planned[job] < until:
        available = min(available, sweep.open[edge + 1]) if sweep.offsets.size > 0 else sweep.open[edge + 1]
        found = _by_windows(sweep, job, available, sweep.ahead[edge])
        if found != reason:
            reached = max(edges[edge] - sweep.planned[job], since)
            parts[job, reason] += reached - since
            since, reason = reached, found
        edge += 1
    parts[job, reason] += until - since
    sweep.at_end[job] = reason == ORDER


def _sweep(sweep: Sweep) -> int:
    """Process all events; return the number of distinct times."""
    event = edge = waiting = times = busy = 0
    while event < sweep.time.size:
        now = sweep.time[event]
        while event < sweep.time.size and sweep.time[event] == now:
            kind, subject = sweep.kind[event], sweep.subject[event]
            event += 1
            if kind == EDGE:
                edge = subject + 1
            elif kind == PERIOD:
                _end_period(sweep, now)
            elif kind == ELIGIBLE:
                sweep.queue[waiting] = subject
                sweep.place[subject] = waiting
                waiting += 1
            else:
                sign = 1 if kind == START else -1
                busy += sign * sweep.here[subject]
                _occupy(sweep, subject, sign)
                if kind == START and sweep.place[subject] >= 0:
                    waiting -= 1
                    moved = sweep.queue[waiting]
                    sweep.queue[sweep.place[subject]] = moved
                    sweep.place[moved] = sweep.place[subject]
                    sweep.place[subject] = -1
        if sweep.free.size > 0:
            free, longest = _free_below(sweep, sweep.open[edge])
            sweep.free[times] = free
            if sweep.longest.size > 0:
                sweep.longest[times] = longest
        times += 1
        if event < sweep.time.size:
            for place in range(waiting):
                _divide(sweep, sweep.queue[place], now, sweep.time[event], edge, busy)
    return times


SWEEP = Kernel(_sweep)
