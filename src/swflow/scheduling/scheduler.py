"""A scheduler: a named combination of an order of the queue, a backfill and their options."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.scheduling.orders import check_order, check_penalty

#: The pseudo-scheduler that replays the start times that the log recorded.
LOG = "log"

#: What each option may be.
CHOICES: dict[str, dict[str, str]] = {
    "backfill": {
        "none": "the head of the queue is started as soon as it fits; nobody overtakes it",
        "easy": "the head has a reservation, and a later job may start if it does not delay the head",
        "lookahead": "the same with reservations for the first `lookahead` jobs that do not fit",
        "selective": "another word for lookahead",
        "conservative": "every job gets a reservation when it is submitted; they move forward when jobs end early",
        "reservation-table": "as easy, but jobs wait in the plan, too, if their turn comes before the head's (Alvio)",
    },
    "estimates": {
        "raise": "an estimate below the run time is raised to it",
        "kill": "a job is killed when it reaches its estimate",
    },
    "prediction": {
        "user": "the scheduler plans with the users' estimates",
        "perfect": "it plans with the run times themselves",
        "double": "it plans with twice the estimates (Mu'alem & Feitelson 2001)",
        "system": "it plans with the mean of the user's last two run times (Tsafrir, Etsion & Feitelson 2007)",
    },
    "allocation": {
        "count": "processors have no place",
        "first-fit": "the free processors of the lowest numbers",
        "longest-idle": "the free processors that were idle longest, then the lowest numbers (First Fit in Alvio)",
        "first-contiguous": "the first run of consecutive free processors that is long enough",
        "best-contiguous": "the shortest run of consecutive free processors that is long enough",
        "next-fit": "the free processors of the next numbers after those that were taken last",
        "least-shared": "process by process, the node whose shared resources it would overload least",
        "threshold": "the same, but a job waits while it would push a node's penalty beyond `sharing_limit`",
    },
    "runtime": {
        "trace": "jobs run as long as the log says",
        "shared": "jobs that ask a node for more than it has hold each other up (Guim, Corbalan & Labarta 2007)",
    },
    "event_order": {
        "batch": "at one instant completions, then arrivals, then one scheduling pass",
        "per-event": "at one instant arrivals, then completions, with a scheduling pass after each",
    },
    "dispatch": {
        "round-robin": "to one centre after the other",
        "least-loaded": "to the centre with the fewest processors asked for, of those it has",
        "earliest-start": "to the centre that would start the job first, by its own plan",
    },
    "shapes": {
        "requested": "every job has the processors that it asked for",
        "submit": "when a job is submitted it gets, for good, the shape that would complete first by the plan: the "
        "planned ends of the running jobs, then the queue in its order, each job at its earliest place",
        "start": "a job starts in the fastest of its shapes that can start; a reservation is for the shape that would "
        "complete first",
    },
    "shape_choice": {
        "fastest": "among all shapes of a job",
        "efficient": "among those that use their processors well enough, by `efficiency`",
    },
}


@dataclass(frozen=True)
class Scheduler:
    """
    How a machine's queue is served.

    Parameters
    ----------
    order : str
        The order of the queue: a name of `swflow.scheduling.orders.NAMED`, a formula, or ``log``, which
        replays the recorded start times. Python users may give a plain or jitted function of nine floats
        instead; see `swflow.scheduling.queue_order.key_function`.
    backfill : {'none', 'easy', 'lookahead', 'selective', 'conservative'}
        Whether and how later jobs may overtake.
    lookahead : int
        How many jobs have a reservation under ``lookahead``; 1 is EASY.
    backfill_order : str, optional
        The order in which jobs are tried for backfilling; by default that of the queue.
    estimates : {'raise', 'kill'}
        What happens to a job that outruns its user's estimate.
    prediction : {'user', 'perfect', 'double', 'system'}
        What the scheduler plans with; who is killed depends on the user's estimate alone.
    allocation : str
        Which processors a job gets; with ``count`` they have no place.
    places : bool
        Whether the outcomes say which processors each job had.
    runtime : {'trace', 'shared'}
        Whether jobs are held up by those with whom they share nodes. Plans are made with estimates all the same.
    penalty : str
        By what fraction a node prolongs its jobs: ``linear``, ``printed``, or a formula of ``usage`` and
        ``capacity``, summed over the resources.
    sharing_limit : float
        The penalty beyond which a job rather waits, with allocation ``threshold``.
    event_order : {'batch', 'per-event'}
        When scheduling passes are made.
    unavailable : tuple of dict
        Windows without some processors: ``from`` and ``until`` (seconds from the log's start, or days),
        ``processors`` (those of the highest numbers).
    centres : tuple of dict
        Several machines instead of one: each with ``processors``, and ``order``, ``backfill``, ``lookahead`` or
        ``backfill_order`` of its own.
    dispatch : {'round-robin', 'least-loaded', 'earliest-start'}
        Which centre a job is sent to when it is submitted.
    without_status : tuple of int
        Jobs of these statuses are left out of the run (SWF: 5 is cancelled).
    shapes : {'requested', 'submit', 'start'}
        Who chooses the processors of moldable jobs, and when; see `swflow.scheduling.moldable.simulate`.
    shape_choice : {'fastest', 'efficient'}
        Among which of a job's shapes.
    efficiency : float
        With ``efficient``: a shape is chosen only if its processors times its run time are at most those of
        the job's thriftiest shape over this; above 0, up to 1.

    Raises
    ------
    SwflowError
        If an option has an unknown value.

    Examples
    --------
    >>> Scheduler(order="sjf", backfill="easy").prediction
    'user'
    """

    order: str | Callable[..., float] = "fcfs"
    backfill: str = "none"
    lookahead: int = 1
    backfill_order: str | Callable[..., float] | None = None
    estimates: str = "raise"
    prediction: str = "user"
    allocation: str = "count"
    places: bool = False
    runtime: str = "trace"
    penalty: str = "linear"
    sharing_limit: float = 0.0
    event_order: str = "batch"
    unavailable: tuple[Mapping[str, Any], ...] = ()
    centres: tuple[Mapping[str, Any], ...] = ()
    dispatch: str = "round-robin"
    without_status: tuple[int, ...] = ()
    shapes: str = "requested"
    shape_choice: str = "fastest"
    efficiency: float = 0.5

    def __post_init__(self) -> None:
        for option, choices in CHOICES.items():
            require_choice(option, getattr(self, option), choices)
        for option in ("order", "backfill_order"):
            order = getattr(self, option)
            if isinstance(order, str) and not (option == "order" and order == LOG):
                check_order(order, option)
        if self.lookahead < 1:
            raise SwflowError(f"lookahead: must be at least 1, not {self.lookahead}")
        if self.places and self.allocation == "count":
            raise SwflowError("places: processors have no place with allocation count; choose another allocation")
        check_penalty(self.penalty)
        self._check_sharing()
        for window in self.unavailable:
            _require_keys("unavailable", window, ("from", "until", "processors"))
        for centre in self.centres:
            _require_keys("centres", centre, ("processors",), ("order", "backfill", "lookahead", "backfill_order"))
        if self.centres and (self.allocation != "count" or self.unavailable):
            raise SwflowError("centres: several centres need allocation count and no unavailable windows")
        if not 0 < self.efficiency <= 1:
            raise SwflowError(f"efficiency: must be above 0 and at most 1, not {self.efficiency}")
        if self.shapes != "requested":
            self._require_plain("shapes")

    def _require_plain(self, option: str) -> None:
        """Raise an error if what the choice of shapes cannot work with is asked for."""
        refused = {
            "order": self.order == LOG,
            "allocation": self.allocation != "count",
            "prediction": self.prediction == "system",
            "event_order": self.event_order != "batch",
            "unavailable": bool(self.unavailable),
            "centres": bool(self.centres),
        }
        for other, is_set in refused.items():
            if is_set:
                value = getattr(self, other)
                given = f"{other} {value}" if isinstance(value, str) else other
                raise SwflowError(f"{option}: {getattr(self, option)} does not go with {given}; leave one of them out")

    @property
    def shares(self) -> bool:
        """Whether it matters what the processes of a node share."""
        return self.runtime == "shared" or self.allocation in ("least-shared", "threshold")

    def _check_sharing(self) -> None:
        """Raise an error about options that need places, or passes per instant."""
        if self.allocation == "count":
            if self.runtime == "shared":
                raise SwflowError("runtime: shared needs to know who is on which node; choose another allocation")
            if self.backfill == "reservation-table":
                raise SwflowError("backfill: a reservation-table has numbered processors; choose another allocation")
        if self.shares and self.event_order != "batch":
            raise SwflowError("event_order: shared resources need batch, as their shadows last for some time")
        if self.allocation in ("least-shared", "threshold") and (
            self.backfill not in ("none", "easy") or self.unavailable
        ):
            raise SwflowError(f"allocation: {self.allocation} needs backfill none or easy, and no unavailable windows")
        if not self.sharing_limit >= 0:
            raise SwflowError(f"sharing_limit: must be at least 0, not {self.sharing_limit}")

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> "Scheduler":
        """Make the scheduler that the config calls ``name``, with an error that names it."""
        known = [field.name for field in fields(cls)]
        for option in options:
            if option not in known:
                raise SwflowError(f"schedulers: {name}: unknown key {option!r}{suggest(option, known)}")
        values = {option: _plain(value) for option, value in options.items() if value is not None}
        try:
            return cls(**values)
        except SwflowError as error:
            raise SwflowError(f"schedulers: {name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return every option, defaults included, as plain data; a function is named by its module and name."""
        return json.loads(json.dumps(asdict(self), default=_name_of))


def require_choice(option: str, value: Any, choices: Iterable[str]) -> None:
    """Raise an error that says what is known, unless ``value`` is one of the choices."""
    if value not in list(choices):
        raise SwflowError(f"{option}: unknown value {value!r}{suggest(value, choices)}")


def _require_keys(option: str, content: Mapping[str, Any], needed: Iterable[str], more: Iterable[str] = ()) -> None:
    needed = tuple(needed)
    for key in content:
        if key not in (*needed, *more):
            raise SwflowError(f"{option}: unknown key {key!r}{suggest(key, (*needed, *more))}")
    for key in needed:
        if key not in content:
            raise SwflowError(f"{option}: {dict(content)} lacks {key!r}")


def _plain(value: Any) -> Any:
    """Return a value of the config with lists as tuples and days as text, so that it can be compared and kept."""
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, date) else value


def _name_of(function: Any) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
