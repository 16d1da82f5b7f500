"""A scheduler: a named combination of an order of the queue, a backfill and their options."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from swflow.errors import SwflowError

#: The pseudo-scheduler that replays the start times that the log recorded.
LOG = "log"

#: What each option may be.
CHOICES: dict[str, dict[str, str]] = {
    "order": {
        "fcfs": "first come, first served: by submit time, then job id",
        LOG: "no scheduling: the start times that the log recorded",
    },
    "backfill": {
        "none": "the head of the queue is started as soon as it fits; nobody overtakes it",
        "easy": "a later job may start if it does not delay the head, by the estimates",
    },
    "estimates": {
        "raise": "an estimate below the run time is raised to it",
        "kill": "a job is killed when it reaches its estimate",
    },
}


@dataclass(frozen=True)
class Scheduler:
    """
    How a machine's queue is served.

    Parameters
    ----------
    order : {'fcfs', 'log'}
        The order of the queue; ``log`` replays the recorded start times.
    backfill : {'none', 'easy'}
        Whether later jobs may overtake the head.
    estimates : {'raise', 'kill'}
        What happens to a job that outruns its estimate.
    without_status : tuple of int
        Jobs of these statuses are left out of the run (SWF: 5 is cancelled).

    Raises
    ------
    SwflowError
        If an option has an unknown value.

    Examples
    --------
    >>> Scheduler(order="fcfs", backfill="easy").estimates
    'raise'
    """

    order: str = "fcfs"
    backfill: str = "none"
    estimates: str = "raise"
    without_status: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for option, choices in CHOICES.items():
            require_choice(option, getattr(self, option), choices)

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> "Scheduler":
        """Make the scheduler that the config calls ``name``, with an error that names it."""
        known = [field.name for field in fields(cls)]
        for option in options:
            if option not in known:
                raise SwflowError(f"schedulers: {name}: unknown key {option!r}{suggest(option, known)}")
        values = dict(options)
        if "without_status" in values:
            values["without_status"] = tuple(values["without_status"])
        try:
            return cls(**values)
        except SwflowError as error:
            raise SwflowError(f"schedulers: {name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return every option, defaults included, as plain data."""
        return json.loads(json.dumps(asdict(self)))


def suggest(word: str, known: Iterable[str]) -> str:
    """Return what to say after naming an unknown word: the nearest known one, or all of them."""
    known = list(known)
    guess = difflib.get_close_matches(str(word), known, 1)
    return f"; did you mean {guess[0]!r}?" if guess else f"; known are {', '.join(known)}"


def require_choice(option: str, value: Any, choices: Iterable[str]) -> None:
    """Raise an error that says what is known, unless ``value`` is one of the choices."""
    if value not in list(choices):
        raise SwflowError(f"{option}: unknown value {value!r}{suggest(value, choices)}")
