"""A scheduler: a named combination of an order of the queue, a backfill and their options."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import date
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.scheduling.options import CHOICES, LOG, OPTIONS, check_together, checked, require_choice
from swflow.scheduling.orders import check_penalty
from swflow.scheduling.own import is_own, own_digest

__all__ = ["CHOICES", "LOG", "Scheduler", "require_choice"]

#: Among the options as plain data: the hashes of the user's own code that they name.
OWN_CODE = "own_code"


@dataclass(frozen=True)
class Scheduler:
    """
    How a machine's queue is served.

    Parameters
    ----------
    order : str
        The order of the queue: a name of `swflow.scheduling.orders.NAMED`, a formula, or ``log``, which
        replays the recorded start times. Python users may give a plain or jitted function of nine floats
        instead; see `swflow.scheduling.engine.queue.key_function`.
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
        Several machines instead of one: each with ``processors``, and ``order``, ``backfill``, ``lookahead``,
        ``backfill_order``, ``allocation`` or ``limits`` of its own; with ``dispatch="partition"`` the ``partition``,
        or several.
    dispatch : {'round-robin', 'least-loaded', 'earliest-start', 'partition'}
        Which centre a job is sent to when it is submitted.
    half_life : float, optional
        Seconds after which what was used counts half in ``user_usage`` and ``group_usage``; None: for ever.
    user_shares : mapping, optional
        Users, by name or number, to the shares that they are entitled to; others have 1.
    group_shares : mapping, optional
        The same of groups.
    priority : mapping, optional
        The weights of order ``slurm-multifactor``: keys of `swflow.scheduling.options.PRIORITY`.
    limits : mapping, optional
        The most running ``jobs`` and ``processors`` of every ``user``, ``group`` and ``partition``, or of those
        that it names; of several centres: at each.
    without_status : tuple of int
        Jobs of these statuses are left out of the run (SWF: 5 is cancelled).
    shapes : {'requested', 'submit', 'start'}
        Who chooses the processors of moldable jobs, and when; see `swflow.scheduling.engine.simulation.simulate`.
    shape_choice : {'fastest', 'efficient'}
        Among which of a job's shapes.
    efficiency : float
        With ``efficient``: a shape is chosen only if its processors times its run time are at most those of
        the job's thriftiest shape over this; above 0, up to 1.
    feedback : {'none', 'sessions', 'think-times'}
        Whether users wait for their jobs before they submit others; see `swflow.scheduling.feedback.feedback_of`.
    policy : str, optional
        A class that decides which jobs start, ``module:Name`` or ``file.py:Name``; see
        `swflow.scheduling.policy.Policy`. Only ``estimates``, ``prediction`` and ``without_status`` go with it.
    policy_options : mapping, optional
        The arguments that the class is made with.

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
    half_life: float | None = None
    user_shares: Mapping[str, float] | None = None
    group_shares: Mapping[str, float] | None = None
    priority: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] | None = None
    without_status: tuple[int, ...] = ()
    shapes: str = "requested"
    shape_choice: str = "fastest"
    efficiency: float = 0.5
    feedback: str = "none"
    policy: str | None = None
    policy_options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in OPTIONS:
            object.__setattr__(self, name, checked(name, getattr(self, name)))
        check_penalty(self.penalty)
        check_together(self, _DEFAULTS)

    @property
    def shares(self) -> bool:
        """Whether it matters what the processes of a node share."""
        return self.runtime == "shared" or not self.allocations.isdisjoint(("least-shared", "threshold"))

    @property
    def allocations(self) -> frozenset[str]:
        """The allocations of all centres, or that of the machine."""
        return frozenset(centre.get("allocation", self.allocation) for centre in self.centres) or frozenset(
            {self.allocation}
        )

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> "Scheduler":
        """Make the scheduler that the config calls ``name``, with an error that names it."""
        if not isinstance(options, Mapping):
            raise SwflowError(f"schedulers: {name}: must be options with their values, not {options!r}")
        options = {option: value for option, value in options.items() if option != OWN_CODE}
        for option in options:
            if option not in OPTIONS:
                raise SwflowError(f"schedulers: {name}: unknown key {option!r}{suggest(str(option), OPTIONS)}")
        values = {option: _plain(value) for option, value in options.items() if value is not None}
        try:
            return cls(**values)
        except SwflowError as error:
            raise SwflowError(f"schedulers: {name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """
        Return every option, defaults included, as plain data; a function is named by its module and name.

        Code of the user's own that options name comes with a hash of its source, so that an edit makes another run.
        """
        options: dict[str, Any] = json.loads(json.dumps(asdict(self), default=_name_of))
        named = [options["policy"], options["order"], options["backfill_order"]]
        named += [centre.get(option) for centre in self.centres for option in ("order", "backfill_order")]
        own = sorted({text for text in named if is_own(text)})
        return options | ({OWN_CODE: {text: own_digest(text) for text in own}} if own else {})


#: What an option is where nothing is said.
_DEFAULTS = {field.name: field.default for field in fields(Scheduler) if field.default is not MISSING}


def _plain(value: Any) -> Any:
    """Return a value of the config with days as text, so that it can be compared and kept."""
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, date) else value


def _name_of(function: Any) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
