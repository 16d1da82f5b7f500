"""Jobs of a queue: states, reasons to wait, and array tasks, as Slurm writes them."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from swflow.errors import SwflowError, shown
from swflow.log.importers.slurm import STATES
from swflow.values import DAY, Limit, as_moment

#: The jobs that a queue may have, where each task of an array is a job.
TASKS = Limit(200_000, "jobs and array tasks")

#: Tolerated difference of clocks and time zones, seconds.
TOLERANCE = 2 * DAY

#: Numbers by which Slurm writes that a value is not set or infinite, in 16, 32 and 64 bits.
SENTINELS = {2**bits - less for bits in (32, 64) for less in (1, 2)}


class Place(Enum):
    """Where a job of a queue is."""

    WAITS = "waits"
    HELD = "held"
    RUNS = "runs"
    ENDED = "ended"


_PLACES = {
    **dict.fromkeys(("PENDING", "REQUEUED", "REQUEUE_FED", "EXPEDITING"), Place.WAITS),
    **dict.fromkeys(("REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"), Place.HELD),
    **dict.fromkeys(
        ("COMPLETING", "CONFIGURING", "POWER_UP_NODE", "RESIZING", "RUNNING", "SIGNALING", "STAGE_OUT", "STOPPED",
         "SUSPENDED", "UPDATE_DB"),
        Place.RUNS,
    ),
}  # fmt: skip


class Blocked(Enum):
    """Why a waiting job cannot start at present, apart from the jobs before it."""

    NOT = "not"
    HELD = "held"  # until somebody releases it
    NEVER = "never"  # until its request or the site's configuration changes
    DEPENDENCY = "dependency"
    BEGIN = "begin"
    OTHER = "other"  # a limit, a reservation, missing nodes or licenses


#: Reasons of jobs that wait for processors and for the jobs before them.
_ORDINARY = {"", "none", "resources", "priority", "cleaning", "prolog", "(null)", "null", "n/a"}

_HELD = re.compile(r"jobheld|jobhold|.*requeued held", re.IGNORECASE)
_NEVER = re.compile(
    r"DependencyNeverSatisfied|BadConstraints|Invalid(Account|QOS)|(Account|QOS)NotAllowed|DeadLine"
    r"|Partition(Time|Node)Limit|.*Per(Job|Node)|.*NotSatisfied",
    re.IGNORECASE,
)


class Queued(NamedTuple):
    """A job of a queue: times are local ``datetime``s or seconds since 1970; ``start`` is None while it waits."""

    job: str
    user: str
    partition: str  # several are separated by commas
    processors: int
    limit: float  # seconds; NaN if it is unknown or infinite
    submit: datetime | float
    start: datetime | float | None
    account: str = ""
    qos: str = ""
    reason: str = ""  # why it waits, as Slurm states it
    dependency: str = ""
    begin: datetime | float | None = None  # the earliest start
    is_held: bool = False

    def blocked(self) -> Blocked:
        """Return what keeps the job from starting, apart from the jobs before it."""
        if self.start is not None:
            return Blocked.NOT
        if self.is_held or _HELD.match(self.reason):
            return Blocked.HELD
        if _NEVER.match(self.reason):
            return Blocked.NEVER
        if self.reason.lower() == "dependency" or (self.dependency and self.reason.lower() in ("", "none")):
            return Blocked.DEPENDENCY
        if self.reason.lower() == "begintime" or self.begin is not None:
            return Blocked.BEGIN
        return Blocked.NOT if self.reason.lower() in _ORDINARY else Blocked.OTHER


class Queue(list[Queued]):
    """The jobs of a queue, with the moment (Unix seconds) that its file states."""

    moment: float | None = None


def place_of(names: Sequence[str], where: str) -> Place:
    """
    Return where a job with some states is; the first state is its own, the others are flags.

    A state may be cut, as ``squeue`` does in narrow columns. Raise `SwflowError` for a state that Slurm does not have.

    Examples
    --------
    >>> place_of(["PENDING", "REQUEUED"], "q.json"), place_of(["CANCELLED", "COMPLETING"], "q.json")
    (<Place.WAITS: 'waits'>, <Place.RUNS: 'runs'>)
    >>> place_of(["SPECIAL_EXIT"], "q.txt:3"), place_of(["COMPLETI"], "q.txt:4"), place_of(["COMPLETED"], "q.txt:5")
    (<Place.HELD: 'held'>, <Place.RUNS: 'runs'>, <Place.ENDED: 'ended'>)
    """
    found = [_PLACES.get(_whole_state(name, where), Place.ENDED) for name in names]
    if not found:
        raise SwflowError(f"{where}: state: {shown(names)}; expected a state such as PENDING")
    for place in (Place.HELD, Place.RUNS, Place.WAITS):
        if place in found and not (place == Place.RUNS and found[0] in (Place.WAITS, Place.HELD)):
            return place
    return Place.ENDED


def _whole_state(name: str, where: str) -> str:
    if name in STATES:
        return name
    cut = [one for one in STATES if len(name) >= 5 and one.startswith(name)]
    if len(cut) != 1:
        raise SwflowError(f"{where}: state: {shown(name)}; expected a state of Slurm such as PENDING")
    return cut[0]


def tasks_of(text: str, where: str) -> list[int]:
    """
    Return the task numbers of a pending job array: ``0-59%20``, ``1,3,5-9:2``, or a bitmap such as ``0x1F``.

    Examples
    --------
    >>> tasks_of("1,3,5-9:2%4", "q.txt:2"), tasks_of("0x16", "q.txt:2"), len(tasks_of("0-59%20", "q.txt:2"))
    ([1, 3, 5, 7, 9], [1, 2, 4], 60)
    """
    listed = text.strip().removeprefix("[").partition("%")[0].removesuffix("]")
    if re.fullmatch(r"0x[0-9A-Fa-f]{1,250000}", listed):
        bits = int(listed, 16)
        return [task for task in range(bits.bit_length()) if bits >> task & 1]
    if "..." in listed:
        raise SwflowError(f"{where}: array tasks {shown(listed)} are cut; expected all: SLURM_BITSTR_LEN=0 squeue …")
    found: list[int] = []
    for part in listed.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?\s*", part)
        if match is None:
            raise SwflowError(f"{where}: array tasks {shown(text)}; expected numbers such as 0-59%20")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1:
            raise SwflowError(f"{where}: array tasks {shown(part)}; expected an increasing range such as 0-59")
        TASKS.require(len(found) + (last - first) // step + 1, where)
        found.extend(range(first, last + 1, step))
    return list(dict.fromkeys(found))


def within_limits(jobs: Iterable[Queued], where: str) -> Iterator[Queued]:
    """Yield jobs; raise an error if a queue has too many."""
    for count, job in enumerate(jobs, 1):
        TASKS.require(count, where)
        yield job


def tasks_in(job: Queued, array: str, tasks: str, where: str) -> Iterator[Queued]:
    """Yield a job, or each task if it is an array that waits; ``array`` is the number of the array."""
    if not tasks:
        yield job
        return
    for task in tasks_of(tasks, where):
        yield job._replace(job=f"{array}_{task}")


def past(found: Any, where: str) -> Any:
    """Return a moment; raise an error for one in the future, because the latest one is taken for the present."""
    given = found.timestamp() if isinstance(found, datetime) else found
    if given > time.time() + TOLERANCE:
        shown_as = found if isinstance(found, datetime) else f"{as_moment(given):%Y-%m-%dT%H:%M:%S}"
        raise SwflowError(f"{where}: {shown_as} is in the future; expected a job that was submitted or has started")
    return found
