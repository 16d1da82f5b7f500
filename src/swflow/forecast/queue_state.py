"""What the queue of a site means for a log: requests, moments, and the conditions of forecasts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from swflow.errors import SwflowError, suggest
from swflow.forecast.queued import TOLERANCE, Blocked, Queued
from swflow.forecast.record import QUEUES, Request
from swflow.forecast.sweep import Sweep
from swflow.jobs.header import Header
from swflow.phrases import span
from swflow.values import DAY

#: The number of a queue that the log does not have.
NO_QUEUE = -1


class Known(Protocol):
    """A log at a moment; a forecaster is one."""

    @property
    def name(self) -> str:
        """The log."""

    @property
    def now(self) -> float:
        """The moment, seconds."""

    @property
    def sweep(self) -> Sweep | None:
        """The state of the log; None for a table of polls."""

    @property
    def labels(self) -> Mapping[int, str]:
        """The number of a queue to its name."""

    @property
    def users(self) -> Mapping[str, int]:
        """The name or number of a user to the number."""

    @property
    def common(self) -> Mapping[Any, Any]:
        """What the jobs of the log have in common."""


class Entry(NamedTuple):
    """A job of a queue in the terms of the log."""

    job: str
    user: str
    request: Request
    submit: float  # seconds of the log
    start: float | None  # seconds of the log; None while it waits
    competes: bool  # whether it occupies processors or waits for them at present
    condition: str = ""  # on what its forecast depends, or why there is none
    delay: float = 0.0  # seconds from the moment until its earliest start; NaN without a forecast


class QueueState(NamedTuple):
    """The jobs of a queue in the terms of a log."""

    now: float  # the moment, seconds of the log
    entries: list[Entry]
    notes: list[str]  # lines for the user: jobs without a forecast


def queue_state(known: Known, jobs: Sequence[Queued], where: str) -> QueueState:
    """
    Return the jobs of a queue in the terms of a log; ``where`` is the queue's file, for errors.

    The moment is the one that the file states, otherwise the latest submission or start, but not before that of the
    log. Raise `SwflowError` if the log cannot forecast the queue: it is a table of polls, ended more than two days
    before the queue, has a machine that is smaller than a running job, or other partitions.
    """
    header = known.common.get("header")
    if known.sweep is None or header is None:
        raise SwflowError(f"{where}: {known.name} is a table of polls; expected a log of the site (swf, sacct)")
    for job in jobs:
        if job.start is not None and job.processors > known.sweep.processors:
            raise SwflowError(
                f"{where}: job {job.job}: {job.processors:,} processors; expected at most the "
                f"{known.sweep.processors:,} of the machine; a larger machine: --machine-processors"
            )
    times = [_log_seconds(time, header) for job in jobs for time in (job.submit, job.start) if time is not None]
    stated = getattr(jobs, "moment", None)
    times += [] if stated is None else [_log_seconds(stated, header)]
    latest = max(times, default=known.now)
    if latest > known.now + TOLERANCE:
        raise SwflowError(
            f"{where}: {_shown(latest, header)} is {(latest - known.now) / DAY:,.0f} days after the last event of "
            f"{known.name}, {_shown(known.now, header)}; expected a log that ends at most 2 days before the queue; "
            "import newer records"
        )
    now = max(latest, known.now)
    entries = [_entry(known, job, now, header) for job in jobs]
    unknown = Counter(
        job.partition for job, entry in zip(jobs, entries, strict=True) if entry.request.queue == NO_QUEUE
    )
    names = partition_names(known)
    if jobs and sum(unknown.values()) == len(jobs):
        advice = suggest(next(iter(unknown)), names)
        raise SwflowError(f"{where}: partition {next(iter(unknown))!r}; expected a partition of {known.name}{advice}")
    notes = [
        f"{where}: partition {name!r} is not in {known.name}; jobs not forecast: {count:,}{suggest(name, names)}"
        for name, count in unknown.items()
    ]
    notes += [] if jobs else [f"{where}: the queue is empty: no job waits or runs"]
    return QueueState(now, entries, notes + _notes(entries, where))


def _notes(entries: Sequence[Entry], where: str) -> list[str]:
    """Return a line for each reason for which waiting jobs have no forecast."""
    without = Counter(one.condition for one in entries if math.isnan(one.delay) and one.request.queue != NO_QUEUE)
    return [f"{where}: jobs not forecast: {count:,}; {text}" for text, count in without.items()]


def _entry(known: Known, job: Queued, now: float, header: Any) -> Entry:
    user = known.users.get(job.user, -1)
    accounts = known.common.get("group_names", {})
    group = accounts.get(job.account, known.common["groups"].get(user, -1))
    queue = queue_of(known, job.partition if has_partitions(known) else None, job.qos)
    request = Request.of(job.processors, job.limit, user, queue, group)
    submit = _log_seconds(job.submit, header)
    start = None if job.start is None else _log_seconds(job.start, header)
    entry = Entry(job.job, job.user, request, submit, start, True)
    if start is not None:
        return entry
    condition, delay, competes = _condition(job, now, header)
    impossible = _impossible(known, job, queue) if math.isfinite(delay) else ""
    if impossible:
        condition, delay, competes = f"{impossible}: no forecast", math.nan, False
    return entry._replace(condition=condition, delay=delay, competes=competes)


def _impossible(known: Known, job: Queued, queue: int) -> str:
    """Return why a job can never start; empty if it can."""
    named = f" of partition {job.partition}" if job.partition else ""
    longest, most = longest_limit(known, queue), most_processors(known, queue)
    if job.limit > longest:
        return f"limit of {span(job.limit)} beyond {span(longest)}, the longest{named} in the log"
    if job.processors > most:
        owner = named if known.sweep is not None and most < known.sweep.processors else " of the machine"
        return f"{job.processors:,} processors beyond the {most:,}{owner}"
    return ""


def _condition(job: Queued, now: float, header: Any) -> tuple[str, float, bool]:
    """Return the condition of a forecast, the seconds until the earliest start, and whether the job competes now."""
    kind = job.blocked()
    because, begin = f" ({job.reason})" if job.reason else "", now
    if kind is Blocked.HELD:
        return f"held{because}: no forecast until it is released", math.nan, False
    if kind is Blocked.NEVER:
        return f"cannot start{because}: no forecast", math.nan, False
    if kind is Blocked.DEPENDENCY:
        named = f" {job.dependency.replace('(unfulfilled)', '')}" if job.dependency else ""
        return f"counted from the end of its dependency{named}", 0.0, False
    if kind is Blocked.BEGIN:
        if job.begin is None:
            return "counted from its begin time", 0.0, False
        begin = _log_seconds(job.begin, header)
    if begin > now:
        return f"not before {_shown(begin, header)}", begin - now, False
    if kind is Blocked.OTHER:
        return f"if {job.reason} delays it no longer than in the past", 0.0, True
    return "", 0.0, True


def queue_of(known: Known, partition: str | None, qos: str = "") -> int:
    """
    Return the number of the queue that has the most jobs of a partition (None: any), with this QOS if one has it.

    A job can name several partitions, separated by commas.
    """
    names = known.common.get("names", {})
    found = list(known.labels)
    if partition is not None:
        wanted = partition.split(",")
        found = [
            queue for queue, label in known.labels.items()
            if any(one in (label, *label.split("/"), *names.get(queue, ())) for one in wanted if one)
        ]  # fmt: skip
    with_qos = [queue for queue in found if qos and names.get(queue, ("", ""))[1] == qos]
    return max(with_qos or found, key=lambda queue: known.common["queues"].get(queue, 0), default=NO_QUEUE)


def has_partitions(known: Known) -> bool:
    """Return whether partitions of a queue can be compared with those of the log."""
    return len(known.labels) > 1 or any(name for name, _ in known.common.get("names", {}).values())


def partition_names(known: Known) -> list[str]:
    """Return the names by which jobs can name a partition."""
    names = {part for pair in known.common.get("names", {}).values() for part in pair if part}
    return sorted(names or set(known.labels.values()))


def longest_limit(known: Known, queue: int) -> float:
    """Return the longest limit (s) of a partition in the log; infinite if none is known."""
    longest, names = known.common.get("longest", {}), known.common.get("names", {})
    same = [one for one in known.labels if names.get(one, (one,))[0] == names.get(queue, (queue,))[0]]
    return max((longest[one] for one in same if one in longest), default=math.inf)


def most_processors(known: Known, queue: int) -> int:
    """Return the processors of a partition, or of the machine if the log names no partitions."""
    assert known.sweep is not None
    sizes: Mapping[int, int] = known.common.get("partition_sizes", {})
    return min(sizes.get(queue // QUEUES - 1, known.sweep.processors), known.sweep.processors)


def _log_seconds(moment: Any, header: Any) -> float:
    """Return the seconds of a log of a local time, or of a number of seconds since 1970."""
    return Header.of(header).seconds_since_start(
        moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    )


def _shown(seconds: float, header: Any) -> str:
    """Return a moment of a log as local time of the site."""
    return local(seconds, header).strftime("%Y-%m-%d %H:%M")


def local(seconds: float, header: Any) -> datetime:
    """Return the local time of a moment of a log, whose header has the start."""
    return Header.of(header).local_time(seconds)
