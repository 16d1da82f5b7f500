"""A scheduler: the validated options of a policy."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from functools import cached_property
from typing import Any

from swflow.errors import SwflowError, UnsupportedError, suggest
from swflow.scheduling.options import CHOICES, OPTIONS, SHARED_ALLOCATIONS, checked, refusals
from swflow.scheduling.orders.formula import check_penalty
from swflow.scheduling.orders.vocabulary import LOG
from swflow.scheduling.plugins.source import is_own, own_digest

__all__ = ["CHOICES", "LOG", "Scheduler"]

#: The key, among the options as plain data, of the hashes of plugins.
OWN_CODE = "own_code"


@dataclass(frozen=True)
class Queue:
    """The options of one machine's queue, as those of `Scheduler`."""

    order: str | Callable[..., float]
    backfill: str
    reservations: int
    backfill_order: str | Callable[..., float] | None
    allocation: str
    limits: Mapping[str, Any] | None


@dataclass(frozen=True)
class Scheduler:
    """
    The policy of a machine, or of several clusters.

    Parameters
    ----------
    order : str or callable
        The order of the queue: a name of `swflow.scheduling.orders.vocabulary.ORDERS`, a formula, or ``log``, which
        replays the recorded start times. A Python function of nine floats is compiled; see
        `swflow.scheduling.orders.keys.key_function`.
    backfill : {'none', 'easy', 'conservative', 'reservation-table'}
        Whether and how later jobs may overtake.
    reservations : int
        How many jobs have a reservation with ``easy``; 1 is EASY (D. Lifka, "The ANL/IBM SP scheduling system", JSSPP
        1995).
    backfill_order : str or callable, optional
        The order in which jobs are tried for backfilling; by default that of the queue.
    estimates : {'raise', 'kill'}
        What happens to a job that exceeds its user's estimate.
    prediction : {'user', 'perfect', 'double', 'system'}
        The run times with which the scheduler plans; which jobs are killed depends on the user's estimate alone.
    allocation : str
        Which processors a job gets; with ``count`` they are not numbered.
    places : bool
        Whether the outcomes record the processors of each job.
    runtime : {'trace', 'shared'}
        Whether jobs that share nodes slow each other down. Plans are made with estimates in both cases.
    penalty : str
        The fraction by which a node prolongs its jobs: ``linear``, ``printed``, or a formula of ``usage`` and
        ``capacity``, summed over the resources.
    sharing_limit : float
        The penalty above which a job waits, with allocation ``threshold``.
    event_order : {'batch', 'per-event'}
        When scheduling passes are made.
    unavailable : tuple of dict
        Windows without some processors: ``from`` and ``until`` (seconds from the log's start, or days), ``processors``
        (those with the highest numbers).
    clusters : tuple of dict
        Several machines instead of one: each with ``processors``, and optionally its own ``order``, ``backfill``,
        ``reservations``, ``backfill_order``, ``allocation``, ``limits`` and ``resources``; with
        ``dispatch="partition"`` its ``partition``, or several.
    dispatch : {'round-robin', 'least-loaded', 'earliest-start', 'partition'}
        The cluster to which a job is sent when it is submitted.
    half_life : float, optional
        Seconds after which past usage counts half in ``user_usage`` and ``group_usage``; None: usage does not decay.
    user_shares : mapping, optional
        Users, by name or number, to their shares; others have 1.
    group_shares : mapping, optional
        The same for groups.
    priority : mapping, optional
        The weights of order ``slurm-multifactor``: keys of `swflow.scheduling.options.PRIORITY`.
    limits : mapping, optional
        The maximum of running ``jobs`` and ``processors`` of every ``user``, ``group`` and ``partition``, or of named
        ones; of several clusters: at each.
    resources : mapping, optional
        The machine's units of each resource besides processors, by the names of job columns; others are those of the
        workload's machine, and None leaves one of these out. With ``clusters`` each cluster has its own.
    without_status : tuple of int
        Jobs of these statuses are left out of the run (SWF: 5 is cancelled).
    shapes : {'requested', 'submit', 'start'}
        When the processors of moldable jobs are chosen; see `swflow.scheduling.engine.solve.solve`.
    shape_choice : {'fastest', 'efficient'}
        The shapes that may be chosen.
    efficiency : float
        With ``efficient``: a shape may be chosen only if its processors times its run time are at most those of the
        job's cheapest shape over this; above 0, up to 1.
    feedback : {'none', 'sessions', 'think-times'}
        Whether submissions depend on the ends of earlier jobs; see `swflow.scheduling.eligibility.dependencies_of`.
    policy : str, optional
        A class that decides which jobs start, ``module:Name`` or ``file.py:Name``; see
        `swflow.scheduling.plugins.protocol.Policy`. Only ``estimates``, ``prediction`` and ``without_status`` go with
        it.
    policy_options : mapping, optional
        The arguments of the class.

    Raises
    ------
    SwflowError
        If an option has an unknown value.

    Examples
    --------
    >>> Scheduler(order="sjf", backfill="easy").prediction
    'user'
    """

    order: str | Callable[..., float] = OPTIONS["order"].default
    backfill: str = OPTIONS["backfill"].default
    reservations: int = OPTIONS["reservations"].default
    backfill_order: str | Callable[..., float] | None = OPTIONS["backfill_order"].default
    estimates: str = OPTIONS["estimates"].default
    prediction: str = OPTIONS["prediction"].default
    allocation: str = OPTIONS["allocation"].default
    places: bool = OPTIONS["places"].default
    runtime: str = OPTIONS["runtime"].default
    penalty: str = OPTIONS["penalty"].default
    sharing_limit: float = OPTIONS["sharing_limit"].default
    event_order: str = OPTIONS["event_order"].default
    unavailable: tuple[Mapping[str, Any], ...] = OPTIONS["unavailable"].default
    clusters: tuple[Mapping[str, Any], ...] = OPTIONS["clusters"].default
    dispatch: str = OPTIONS["dispatch"].default
    half_life: float | None = OPTIONS["half_life"].default
    user_shares: Mapping[str, float] | None = OPTIONS["user_shares"].default
    group_shares: Mapping[str, float] | None = OPTIONS["group_shares"].default
    priority: Mapping[str, Any] | None = OPTIONS["priority"].default
    limits: Mapping[str, Any] | None = OPTIONS["limits"].default
    resources: Mapping[str, int | None] | None = OPTIONS["resources"].default
    without_status: tuple[int, ...] = OPTIONS["without_status"].default
    shapes: str = OPTIONS["shapes"].default
    shape_choice: str = OPTIONS["shape_choice"].default
    efficiency: float = OPTIONS["efficiency"].default
    feedback: str = OPTIONS["feedback"].default
    policy: str | None = OPTIONS["policy"].default
    policy_options: Mapping[str, Any] | None = OPTIONS["policy_options"].default

    def __post_init__(self) -> None:
        for name in OPTIONS:
            object.__setattr__(self, name, checked(name, getattr(self, name)))
        check_penalty(self.penalty)
        for _, reason in refusals(self):
            raise UnsupportedError(reason)

    @property
    def shares(self) -> bool:
        """Whether the engine considers the resources that the processes of a node share."""
        return self.runtime == "shared" or not self.allocations.isdisjoint(SHARED_ALLOCATIONS)

    @property
    def allocations(self) -> frozenset[str]:
        """The allocations of all machines."""
        return frozenset(queue.allocation for queue in self.queues)

    @property
    def orders(self) -> list[str | Callable[..., float]]:
        """The orders and backfill orders of all machines."""
        both = (order for queue in self.queues for order in (queue.order, queue.backfill_order))
        return [order for order in both if order is not None]

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """The queue of the machine, or of each cluster, with the options that it does not override."""
        own = [dict(cluster) for cluster in self.clusters] or [{}]
        for cluster in own:
            if "order" in cluster:
                cluster.setdefault("backfill_order", None)
        return tuple(
            Queue(**{option.name: cluster.get(option.name, getattr(self, option.name)) for option in fields(Queue)})
            for cluster in own
        )

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> "Scheduler":
        """Return the scheduler of a config's entry; errors name it."""
        if not isinstance(options, Mapping):
            raise SwflowError(f"schedulers: {name}: {options!r}; expected options with their values")
        options = {option: value for option, value in options.items() if option != OWN_CODE}
        for option in options:
            if option not in OPTIONS:
                raise SwflowError(f"schedulers: {name}: unknown key {option!r}{suggest(str(option), OPTIONS)}")
        values = {option: _plain(value) for option, value in options.items() if value is not None}
        try:
            return cls(**values)
        except SwflowError as error:
            raise type(error)(f"schedulers: {name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """
        Return every option, defaults included, as plain data; a function is given by its module and name.

        ``resources`` are left out unless they are given, so that runs without resources keep their keys.

        A plugin comes with a hash of its source, so that an edit makes another run.
        """
        options: dict[str, Any] = json.loads(json.dumps(asdict(self), default=_name_of))
        if options["resources"] is None:
            del options["resources"]
        named = [options["policy"], options["order"], options["backfill_order"], *self.orders]
        own = sorted({text for text in named if is_own(text)})
        return options | ({OWN_CODE: {text: own_digest(text) for text in own}} if own else {})


def _plain(value: Any) -> Any:
    """Return a value of the config with days as text, so that it can be compared and stored."""
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, date) else value


def _name_of(function: Any) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
