"""The reasons of waits, second by second: a slow twin of `swflow.scheduling.waits`, for whole seconds."""

import math
from dataclasses import dataclass


@dataclass
class Job:
    """
    A job of a schedule; times in whole seconds. Jobs on numbered processors have ``places``.

    Jobs of other machines count for the limits of their accounts only.
    """

    eligible: int
    start: int
    run: int
    planned: int
    processors: int
    places: frozenset[int] = frozenset()
    demands: tuple[int, ...] = ()
    accounts: tuple[int, ...] = ()
    machine: int = 0
    counted: tuple[int, ...] = ()  # units that only limits count

    def runs_at(self, time: float) -> bool:
        return self.start <= time < self.start + self.run

    @property
    def minutes(self) -> int:
        """The time limit, in whole minutes."""
        return max(1, self.planned // 60)

    def seconds_left(self, time: float) -> int:
        """Return the seconds to the time limit, from a time or the start."""
        return max(0, self.start + 60 * self.minutes - max(self.start, time))


@dataclass
class Machine:
    """
    A machine: windows are from, until and processors.

    Limits are, by account, of running jobs, their processors, their processor-minutes, of which fewer are left at the
    multiples of a period, or if that is 0, when jobs end, and of what else is counted.
    """

    processors: int
    windows: tuple[tuple[float, float, int], ...] = ()
    numbered: bool = False
    contiguous: bool = False
    units: tuple[int, ...] = ()
    limits: tuple[tuple[float, ...], ...] = ()
    period: float = 0
    cycles: bool = False

    def open_at(self, time: float) -> int:
        """Return how many processors are in no window."""
        away = sum(count for begin, until, count in self.windows if begin <= time < until)
        return max(self.processors - away, 0)


def reason_at(job: Job, time: float, jobs: list[Job], machine: Machine) -> str:
    """Return the reason why a job does not start at a time that is in the middle of a second."""
    running = [other for other in jobs if other.runs_at(time)]
    for account in job.accounts:
        own = [other for other in running if account in other.accounts]
        jobs_then, processors = len(own) + 1, sum(one.processors for one in own) + job.processors
        passed = math.floor(time / machine.period) * machine.period if machine.period else -math.inf
        left = sum(one.processors * one.seconds_left(passed) for one in own)
        minutes = left // 60 + job.processors * job.minutes
        counted = [sum(units) for units in zip(*(one.counted for one in [*own, job]), strict=True)]
        found = zip((jobs_then, processors, minutes, *counted), machine.limits[account], strict=True)
        if any(count > most for count, most in found):
            return "limit"
    running = [other for other in running if other.machine == job.machine]
    if sum(one.processors for one in running) + job.processors > machine.processors:
        return "busy"
    for number, units in enumerate(machine.units):
        used = sum(one.demands[number] for one in running)
        if job.demands[number] and used + job.demands[number] > units:
            return "busy"
    end = time + job.planned
    moments = [time] + [moment for window in machine.windows for moment in window[:2] if time < moment < end]
    if not machine.numbered:
        for moment in moments:
            there = [one for one in running if moment == time or one.start + one.planned > moment]
            if sum(one.processors for one in there) + job.processors > machine.open_at(moment):
                return "drain"
        return "order"
    lowest = range(min(machine.open_at(moment) for moment in moments))
    taken = {place for one in running for place in one.places}
    free = [place for place in lowest if place not in taken]
    if len(free) < job.processors:
        return "drain"
    if machine.contiguous:
        ranges = [range(first, first + job.processors) for first in range(machine.processors)]
        if not any(set(places) <= set(free) for places in ranges):
            return "fragmentation"
    return "order"


def divide(job: Job, jobs: list[Job], machine: Machine) -> dict[str, float]:
    """Return the seconds of each reason in the wait of a job."""
    found = dict.fromkeys(("limit", "busy", "drain", "fragmentation", "order"), 0)
    for second in range(job.eligible, job.start):
        found[reason_at(job, second + 0.5, jobs, machine)] += 1
    near = [one for one in jobs if one.machine == job.machine]
    events = {time for one in near for time in (one.eligible, one.start, one.start + one.run)}
    events |= {int(time) for window in machine.windows for time in window[:2] if time < math.inf}
    latency = 0
    if machine.cycles and job.start > job.eligible and reason_at(job, job.start - 0.5, jobs, machine) == "order":
        by_limit = (
            time + 1 for time in range(job.eligible, job.start) if reason_at(job, time + 0.5, jobs, machine) == "limit"
        )
        latency = job.start - max(max(time for time in events if time < job.start), max(by_limit, default=-math.inf))
    return {
        "limit": found["limit"],
        "room": found["busy"] + found["drain"] + found["fragmentation"],
        "fragmentation": found["fragmentation"],
        "drain": found["drain"],
        "order": found["order"] - latency,
        "latency": latency,
    }
