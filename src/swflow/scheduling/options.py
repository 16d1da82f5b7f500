"""The one table of a scheduler's options: what each means, which values it takes, and what does not go together."""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from numbers import Integral, Real
from typing import Any

from swflow.errors import SwflowError, suggest

#: The pseudo-scheduler that replays the start times that the log recorded.
LOG = "log"

#: The largest time that is simulated, seconds: beyond some 2**53 a clock of floating-point numbers stands still.
LATEST = 1e12


@dataclass(frozen=True)
class Option:
    """
    What an option takes.

    Parameters
    ----------
    kind : str
        ``choice``, ``order``, ``text``, ``flag``, ``integer``, ``number``, ``integers``, ``windows``, ``centres``,
        ``own`` (an object of a module) or ``mapping``.
    meaning : str
        A sentence, for the command's help and the schema.
    choices : mapping
        For a choice: each value and what it means.
    least, most : float
        For numbers: the bounds, both included.
    above : float, optional
        Instead of ``least``: a bound that is not included.
    optional : bool
        Whether null stands for a default.
    """

    kind: str
    meaning: str
    choices: Mapping[str, str] = field(default_factory=dict)
    least: float = -math.inf
    most: float = math.inf
    above: float | None = None
    optional: bool = False


_CARASTAN = (
    'D. Carastan-Santos, R. Y. de Camargo, "Obtaining dynamic scheduling policies with simulation and machine '
    'learning", SC 2017, Table 3'
)
_TANG = (
    'W. Tang, Z. Lan, N. Desai, D. Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", '
    "CLUSTER 2009"
)


@dataclass(frozen=True)
class NamedOrder:
    """
    An order that has a name.

    Parameters
    ----------
    formula : str
        Smallest value first, ties by (submit time, job id).
    meaning : str
        What it is for, or whose it is.
    """

    formula: str
    meaning: str


#: The orders that have names. A name is nothing but its formula: a line here, and the order is there.
ORDERS: dict[str, NamedOrder] = {
    "fcfs": NamedOrder("submit_time", "first come, first served"),
    "lcfs": NamedOrder("-submit_time", "last come, first served"),
    "sjf": NamedOrder("estimate", "shortest job first"),
    "ljf": NamedOrder("-estimate", "longest job first"),
    "smallest-first": NamedOrder("processors", "narrowest job first"),
    "largest-first": NamedOrder("-processors", "widest job first"),
    "saf": NamedOrder("estimate * processors", "smallest area first"),
    "laf": NamedOrder("-estimate * processors", "largest area first"),
    "wfp3": NamedOrder("-(wait / estimate) ** 3 * processors", f"{_TANG}: large jobs that wait long for their length"),
    "unicef": NamedOrder(
        "-wait / (log2(max(processors, 2)) * estimate)",
        "the same paper: small and short jobs soon; one processor counts as two, as log2(1) is 0",
    ),
    "expansion-factor": NamedOrder("-(wait + estimate) / estimate", "largest expected slowdown first"),
    "f1": NamedOrder("log10(estimate) * processors + 870 * log10(submit_time)", _CARASTAN),
    "f2": NamedOrder("sqrt(estimate) * processors + 25600 * log10(submit_time)", "the same"),
    "f3": NamedOrder("estimate * processors + 6860000 * log10(submit_time)", "the same"),
    "f4": NamedOrder("estimate * sqrt(processors) + 530000 * log10(submit_time)", "the same"),
    "fair-share": NamedOrder("user_usage / user_share", "who has used least of their share first"),
    "slurm-multifactor": NamedOrder(
        "-(1000 * min(1, wait / 604800) + 10000 * 2 ** (-user_usage / user_share) + 1000 * processors / "
        "machine_processors)",
        "Slurm's multifactor priority, with the weights of its manual's example; `priority` has them",
    ),
}

#: The order whose formula is made of `priority`.
MULTIFACTOR = "slurm-multifactor"


#: The options of a scheduler.
OPTIONS: dict[str, Option] = {
    "order": Option(
        "order",
        "The order of the queue, smallest value first: "
        f"{', '.join(ORDERS)}, or a formula: '-(wait / estimate) ** 3 * processors'; log: as recorded.",
    ),
    "backfill": Option(
        "choice",
        "Whether and how later jobs may overtake.",
        {
            "none": "the head of the queue is started as soon as it fits; nobody overtakes it",
            "easy": "the head has a reservation, and a later job may start if it does not delay the head",
            "lookahead": "the same with reservations for the first `lookahead` jobs that do not fit",
            "selective": "another word for lookahead",
            "conservative": "every job gets a reservation when it is submitted; they move forward when jobs end early",
            "reservation-table": "as easy, but jobs wait in the plan, too, if their turn comes before the head's "
            "(Alvio)",
        },
    ),
    "lookahead": Option("integer", "How many jobs have a reservation under lookahead.", least=1),
    "backfill_order": Option(
        "order", "The order of backfilling, as of the queue; by default that of the queue.", optional=True
    ),
    "estimates": Option(
        "choice",
        "What an estimate below the run time means.",
        {
            "raise": "an estimate below the run time is raised to it",
            "kill": "a job is killed when it reaches its estimate",
        },
    ),
    "prediction": Option(
        "choice",
        "What the scheduler plans with.",
        {
            "user": "the scheduler plans with the users' estimates",
            "perfect": "it plans with the run times themselves",
            "double": "it plans with twice the estimates (Mu'alem & Feitelson 2001)",
            "system": "it plans with the mean of the user's last two run times (Tsafrir, Etsion & Feitelson 2007)",
        },
    ),
    "allocation": Option(
        "choice",
        "Which processors a job gets.",
        {
            "count": "processors have no place",
            "first-fit": "the free processors of the lowest numbers",
            "longest-idle": "the free processors that were idle longest, then the lowest numbers (First Fit in Alvio)",
            "first-contiguous": "the first run of consecutive free processors that is long enough",
            "best-contiguous": "the shortest run of consecutive free processors that is long enough",
            "next-fit": "the free processors of the next numbers after those that were taken last",
            "least-shared": "process by process, the node whose shared resources it would overload least",
            "threshold": "the same, but a job waits while it would push a node's penalty beyond `sharing_limit`",
        },
    ),
    "places": Option("flag", "Record the processors of each job; not with count."),
    "runtime": Option(
        "choice",
        "How long jobs run.",
        {
            "trace": "jobs run as long as the log says",
            "shared": "jobs that ask a node for more than it has hold each other up (Guim, Corbalan & Labarta 2007)",
        },
    ),
    "penalty": Option(
        "text", "What an overload costs: linear, printed, forgets-shadows, or a formula of usage and capacity."
    ),
    "sharing_limit": Option(
        "number", "With allocation threshold: the penalty of a node beyond which a job rather waits.", least=0
    ),
    "event_order": Option(
        "choice",
        "When scheduling passes are made.",
        {
            "batch": "at one instant completions, then arrivals, then one scheduling pass",
            "per-event": "at one instant arrivals, then completions, with a scheduling pass after each",
        },
    ),
    "unavailable": Option("windows", "Windows without some processors: those of the highest numbers are away."),
    "centres": Option("centres", "Several machines instead of one, each with a queue of its own."),
    "dispatch": Option(
        "choice",
        "Which centre a job is sent to when it is submitted.",
        {
            "round-robin": "to one centre after the other",
            "least-loaded": "to the centre with the fewest processors asked for, of those it has",
            "earliest-start": "to the centre that would start the job first, by its own plan",
            "partition": "to the centre of its partition",
        },
    ),
    "half_life": Option(
        "number",
        "Seconds after which what a user or group has used counts half in fair share; by default it counts for ever.",
        above=0,
        optional=True,
    ),
    "user_shares": Option(
        "weights",
        "The shares that users are entitled to, by name or number, such as {alice: 3}; others have 1.",
        above=0,
        most=1e9,
        optional=True,
    ),
    "group_shares": Option(
        "weights",
        "The shares that groups are entitled to, by name or number; others have 1.",
        above=0,
        most=1e9,
        optional=True,
    ),
    "priority": Option(
        "priority",
        "The weights of order slurm-multifactor: age, max_age, fair_share, fair_share_of, dampening, size, "
        "favor_small, partition, partition_factors, qos, qos_factors.",
        optional=True,
    ),
    "limits": Option(
        "limits",
        "The most running jobs and processors of a user, group and partition, such as {user: {jobs: 10}, partition: "
        "{debug: {processors: 64}}}; jobs beyond are passed over.",
        optional=True,
    ),
    "without_status": Option("integers", "Leave out jobs of these SWF statuses (0 failed, 1 completed, 5 cancelled)."),
    "shapes": Option(
        "choice",
        "Who chooses the processors of moldable jobs, and when.",
        {
            "requested": "every job has the processors that it asked for",
            "submit": "when a job is submitted it gets, for good, the shape that would complete first by the plan: the "
            "planned ends of the running jobs, then the queue in its order, each job at its earliest place",
            "start": "a job starts in the fastest of its shapes that can start; a reservation is for the shape that "
            "would complete first",
        },
    ),
    "shape_choice": Option(
        "choice",
        "Among which of a job's shapes.",
        {
            "fastest": "among all shapes of a job",
            "efficient": "among those that use their processors well enough, by `efficiency`",
        },
    ),
    "efficiency": Option(
        "number", "With efficient: the least processor-seconds of a job's shapes over a shape's.", above=0, most=1
    ),
    "feedback": Option(
        "choice",
        "Whether users wait for their jobs before they submit others.",
        {
            "none": "jobs are submitted when the log says, whatever the scheduler does",
            "sessions": "a job is submitted some time after the end of the job that its user waited for, as the log "
            "says or as sessions show (Zakay & Feitelson 2012, 2014)",
            "think-times": "the same, with sessions that last as long as the user is back within 20 minutes of the "
            "last end",
        },
    ),
    "policy": Option(
        "own", "A class of one's own that decides which jobs start: module:Name, or file.py:Name.", optional=True
    ),
    "policy_options": Option(
        "mapping",
        "What the policy's class is made with, such as {slack: 2}; on the command line as JSON.",
        optional=True,
    ),
}

#: The choices of each option that has some, and what they mean.
CHOICES: dict[str, Mapping[str, str]] = {name: option.choices for name, option in OPTIONS.items() if option.choices}

#: What a centre may say of its own.
CENTRE_OPTIONS = ("processors", "partition", "order", "backfill", "lookahead", "backfill_order", "allocation", "limits")

_POINTS = Option("number", "", least=0, most=1e9)

#: What `priority` says: weights in points, what they depend on, and the priorities of partitions and QOS by name.
PRIORITY: dict[str, Option] = {
    "age": _POINTS,
    "max_age": Option("number", "", above=0, most=LATEST),
    "fair_share": _POINTS,
    "fair_share_of": Option("choice", "", {"user": "", "group": ""}),
    "dampening": Option("number", "", above=0, most=1e9),
    "size": _POINTS,
    "favor_small": Option("flag", ""),
    "partition": _POINTS,
    "partition_factors": Option("weights", "", least=0, most=1e9),
    "qos": _POINTS,
    "qos_factors": Option("weights", "", least=0, most=1e9),
}

#: Whose limits there are, and what is limited.
LIMITED, LIMITS = ("user", "group", "partition"), ("jobs", "processors")

#: What a window says.
WINDOW_OPTIONS = ("from", "until", "processors")


def help_of(name: str) -> str:
    """
    Return what the command's help says of an option: its meaning and its values.

    Examples
    --------
    >>> help_of("runtime")
    'How long jobs run: trace, shared.'
    """
    option = OPTIONS[name]
    if not option.choices:
        return option.meaning
    return f"{option.meaning.removesuffix('.')}: {', '.join(option.choices)}."


def schema_of(name: str) -> dict[str, Any]:
    """
    Return the JSON schema of an option, without its description.

    Examples
    --------
    >>> schema_of("runtime")
    {'enum': ['trace', 'shared']}
    """
    option = OPTIONS[name]
    match option.kind:
        case "choice":
            return {"enum": list(option.choices)}
        case "mapping" | "weights" | "priority" | "limits":
            return {"type": ["object", "null"]}
        case "order" | "text" | "own":
            return {"type": ["string", "null"] if option.optional else "string"}
        case "flag":
            return {"type": "boolean"}
        case "integers":
            return {"type": "array", "items": {"type": "integer"}}
        case "integer" | "number":
            bounds = {"minimum": option.least, "maximum": option.most, "exclusiveMinimum": option.above}
            known = {key: bound for key, bound in bounds.items() if bound is not None and math.isfinite(bound)}
            return {"type": [option.kind, "null"] if option.optional else option.kind} | known
        case "windows":
            # Seconds or a day; YAML's days are of no type that JSON knows.
            return _list_of({"from": {}, "until": {}, "processors": _PROCESSORS}, WINDOW_OPTIONS)
        case "centres":
            own = {name: schema_of(name) for name in CENTRE_OPTIONS if name in OPTIONS}
            return _list_of({"processors": _PROCESSORS, "partition": _PARTITION} | own, ("processors",))
    raise AssertionError(f"{name}: no schema for {option.kind}")


_PROCESSORS = {"type": "integer", "minimum": 1}
_PARTITION = {"type": ["string", "integer", "array"]}


def _list_of(properties: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    fields = {"type": "object", "required": list(required), "additionalProperties": False}
    return {"type": "array", "items": fields | {"properties": dict(properties)}}


# -- checks: the value of an option alone


def checked(name: str, value: Any, where: str | None = None) -> Any:
    """
    Return the value of an option in its plain form, or raise an error that names the option.

    Parameters
    ----------
    name : str
        A key of `OPTIONS`.
    value : object
        What the config, JSON or Python gave.
    where : str, optional
        What to call the option in errors.

    Returns
    -------
    object
        Numbers, texts, and tuples and dicts of these.

    Raises
    ------
    SwflowError
        If the value is not of the option's type or beyond its limits.
    """
    option, where = OPTIONS[name], where or name
    if value is None and option.optional:
        return None
    return _CHECKS[option.kind](option, value, where)


def require_choice(option: str, value: Any, choices: Iterable[str]) -> None:
    """Raise an error that says what is known, unless ``value`` is one of the choices."""
    choices = list(choices)
    if value not in choices:
        raise SwflowError(f"{option}: unknown value {_shown(value)}{suggest(value, choices)}")


def _choice(option: Option, value: Any, where: str) -> Any:
    require_choice(where, value, option.choices)
    return value


def _order(option: Option, value: Any, where: str) -> Any:
    from swflow.scheduling.orders import check_order

    if callable(value):
        return value
    if not isinstance(value, str):
        raise SwflowError(f"{where}: must be the name of an order or a formula, not {_shown(value)}")
    if not (where == "order" and value == LOG):
        check_order(value, where)
    return value


def _text(option: Option, value: Any, where: str) -> Any:
    if not isinstance(value, str):
        raise SwflowError(f"{where}: must be a text, not {_shown(value)}")
    return value


def _own(option: Option, value: Any, where: str) -> Any:
    from swflow.scheduling.own import is_own, load_own

    if not is_own(value):
        raise SwflowError(f"{where}: must be module:Name or file.py:Name, not {_shown(value)}")
    load_own(value, where)
    return value


def _mapping(option: Option, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SwflowError(f"{where}: must be names with their values, not {_shown(value)}")
    return dict(value)


def _flag(option: Option, value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise SwflowError(f"{where}: must be true or false, not {_shown(value)}")
    return value


def _integer(option: Option, value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SwflowError(f"{where}: must be a whole number, not {_shown(value)}")
    _bounded(option, value, where)
    return int(value)


def _number(option: Option, value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SwflowError(f"{where}: must be a number, not {_shown(value)}")
    _bounded(option, value, where)
    return value if isinstance(value, int) else float(value)


def _bounded(option: Option, value: Any, where: str) -> None:
    if option.above is not None and not value > option.above:
        raise SwflowError(f"{where}: must be above {option.above:g} and at most {option.most:g}, not {_shown(value)}")
    if not option.least <= value:
        raise SwflowError(f"{where}: must be at least {option.least:g}, not {_shown(value)}")
    if not value <= option.most or not math.isfinite(value):
        raise SwflowError(f"{where}: must be at most {option.most:g}, not {_shown(value)}")


def _integers(option: Option, value: Any, where: str) -> tuple[int, ...]:
    return tuple(_integer(Option("integer", ""), item, where) for item in _listed(value, where, "whole numbers"))


def _windows(option: Option, value: Any, where: str) -> tuple[dict[str, Any], ...]:
    return tuple(_window(item, where) for item in _listed(value, where, "windows"))


def _window(window: Any, where: str) -> dict[str, Any]:
    _require_keys(where, window, WINDOW_OPTIONS, WINDOW_OPTIONS)
    begin, until = _moment(window["from"], f"{where}: from"), None
    if window["until"] is not None:
        until = _moment(window["until"], f"{where}: until")
        # Seconds and a day, or days with and without a time zone, compare only when the log's start is known.
        with contextlib.suppress(TypeError):
            require_window(_instant(begin), _instant(until), window)
    processors = _integer(Option("integer", "", least=1), window["processors"], f"{where}: processors")
    return {"from": begin, "until": until, "processors": processors}


def require_window(begin: Any, until: Any, window: Mapping[str, Any]) -> None:
    """Raise an error unless a window ends after its beginning."""
    if not until > begin:
        raise SwflowError(
            f"unavailable: the window from {window['from']} until {window['until']} is empty; "
            "let it end after its beginning, or never: until: null"
        )


def require_moment(seconds: float, where: str) -> float:
    """Return a time, or raise an error if the simulated clock cannot show it."""
    if not abs(seconds) <= LATEST:
        raise SwflowError(f"{where}: {seconds:g} is not a time between {-LATEST:g} and {LATEST:g} seconds")
    return seconds


def _moment(value: Any, where: str) -> float | str:
    """Return a time in seconds, or a day as text."""
    from swflow.swf import parse_moment

    if isinstance(value, date):
        value = str(value)
    if isinstance(value, str):
        parse_moment(value, where)
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SwflowError(f"{where}: must be seconds from the log's start or a day, not {_shown(value)}")
    require_moment(float(value), where)
    return value if isinstance(value, int) else float(value)


def _instant(moment: float | str) -> Any:
    """Return a time in a form that compares with another one of its kind."""
    from swflow.swf import parse_moment

    if not isinstance(moment, str):
        return moment
    parsed = parse_moment(moment, "unavailable")
    return parsed if isinstance(parsed, datetime) else datetime(parsed.year, parsed.month, parsed.day)


def _centres(option: Option, value: Any, where: str) -> tuple[dict[str, Any], ...]:
    return tuple(_centre(item, where) for item in _listed(value, where, "centres"))


def _centre(centre: Any, where: str) -> dict[str, Any]:
    _require_keys(where, centre, CENTRE_OPTIONS, ("processors",))
    own = {
        name: checked(name, centre[name], f"{where}: {name}")
        for name in CENTRE_OPTIONS
        if name in OPTIONS and centre.get(name) is not None
    }
    if centre.get("partition") is not None:
        several = centre["partition"] if isinstance(centre["partition"], list | tuple) else [centre["partition"]]
        own["partition"] = tuple(_name(one, f"{where}: partition") for one in several)
    processors = _integer(Option("integer", "", least=1), centre["processors"], f"{where}: processors")
    return {"processors": processors} | own


def _name(value: Any, where: str) -> str:
    """Return a name or number of a user, group, queue or partition as text."""
    if isinstance(value, bool) or not isinstance(value, str | Integral) or not str(value).strip():
        raise SwflowError(f"{where}: must be a name or a number, not {_shown(value)}")
    return str(value).strip()


def _named(value: Any, where: str) -> dict[str, Any]:
    """Return a mapping whose keys are names or numbers."""
    if not isinstance(value, Mapping):
        raise SwflowError(f"{where}: must be names with their values, not {_shown(value)}")
    return {_name(key, where): content for key, content in value.items()}


def _weights(option: Option, value: Any, where: str) -> dict[str, float]:
    return {name: _number(option, number, f"{where}: {name}") for name, number in _named(value, where).items()}


def _priority(option: Option, value: Any, where: str) -> dict[str, Any]:
    _require_keys(where, value, PRIORITY, ())
    found = {
        name: _CHECKS[PRIORITY[name].kind](PRIORITY[name], value[name], f"{where}: {name}")
        for name in PRIORITY
        if value.get(name) is not None
    }
    for weight in ("partition", "qos"):
        factors = f"{weight}_factors"
        if bool(found.get(weight)) != bool(found.get(factors) and max(found[factors].values()) > 0):
            raise SwflowError(f"{where}: {weight} is a weight, and {factors} says of what; give both, or none")
    return found


def _limits(option: Option, value: Any, where: str) -> dict[str, dict[str, Any]]:
    """Return the limits of each kind: jobs and processors of everyone, and by name."""
    _require_keys(where, value, LIMITED, ())
    return {kind: _limits_of(value[kind], f"{where}: {kind}") for kind in LIMITED if value.get(kind) is not None}


def _limits_of(value: Any, where: str) -> dict[str, Any]:
    least = Option("integer", "", least=1)
    found: dict[str, Any] = {}
    for name, limit in _named(value, where).items():
        if isinstance(limit, Mapping):
            _require_keys(f"{where}: {name}", limit, LIMITS, ())
            found[name] = {what: _integer(least, most, f"{where}: {name}: {what}") for what, most in limit.items()}
        elif name in LIMITS:
            found[name] = _integer(least, limit, f"{where}: {name}")
        else:
            raise SwflowError(
                f"{where}: {name}: must be limits such as {{jobs: 10, processors: 64}}, not {_shown(limit)}"
                f"{suggest(name, LIMITS)}"
            )
    return found


def _listed(value: Any, where: str, what: str) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        raise SwflowError(f"{where}: must be a list of {what}, not {_shown(value)}")
    return value


def _require_keys(where: str, content: Any, known: Iterable[str], needed: Iterable[str]) -> None:
    known = tuple(known)
    if not isinstance(content, Mapping):
        raise SwflowError(f"{where}: each must have the keys {', '.join(needed)}, not be {_shown(content)}")
    for key in content:
        if key not in known:
            raise SwflowError(f"{where}: unknown key {_shown(key)}{suggest(key, known)}")
    for key in needed:
        if key not in content:
            raise SwflowError(f"{where}: {_shown(dict(content))} lacks {key!r}")


def _shown(value: Any) -> str:
    """Write a value into an error: on one line, and not for ever."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


_CHECKS: dict[str, Callable[[Option, Any, str], Any]] = {
    "choice": _choice,
    "order": _order,
    "text": _text,
    "flag": _flag,
    "integer": _integer,
    "number": _number,
    "integers": _integers,
    "windows": _windows,
    "centres": _centres,
    "own": _own,
    "mapping": _mapping,
    "weights": _weights,
    "priority": _priority,
    "limits": _limits,
}


# -- checks: what goes together

_SHARED_ALLOCATIONS = ("least-shared", "threshold")


@dataclass(frozen=True)
class Refusal:
    """Two options that do not go together: which is to blame, when, and what to do instead."""

    option: str
    when: Callable[[Any], bool]
    reason: str


#: What a policy of one's own leaves to the others.
_WITH_POLICY = ("policy", "policy_options", "estimates", "prediction", "without_status")

#: What does not go together, in the order in which it is looked for; each function takes a scheduler.
REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "centres",
        lambda one: len(one.allocations) > 1 and "count" in one.allocations,
        "processors are counted at all centres or at none; give each an allocation",
    ),
    Refusal(
        "places",
        lambda one: one.places and "count" in one.allocations,
        "processors have no place with allocation count; choose another allocation",
    ),
    Refusal(
        "runtime",
        lambda one: one.runtime == "shared" and "count" in one.allocations,
        "shared needs to know who is on which node; choose another allocation",
    ),
    Refusal(
        "backfill",
        lambda one: "reservation-table" in _backfills_of(one) and "count" in one.allocations,
        "a reservation-table has numbered processors; choose another allocation",
    ),
    Refusal(
        "event_order",
        lambda one: one.shares and one.event_order != "batch",
        "shared resources need batch, as their shadows last for some time",
    ),
    Refusal(
        "allocation",
        lambda one: (
            not one.allocations.isdisjoint(_SHARED_ALLOCATIONS)
            and (not _backfills_of(one) <= {"none", "easy"} or bool(one.unavailable))
        ),
        "least-shared and threshold need backfill none or easy, and no unavailable windows",
    ),
    Refusal(
        "allocation",
        lambda one: (
            not one.allocations.isdisjoint(_SHARED_ALLOCATIONS)
            and (one.shapes == "submit" or (bool(one.centres) and one.dispatch == "earliest-start"))
        ),
        "least-shared and threshold cannot plan the whole queue; choose shapes at the start, or another dispatch",
    ),
    Refusal(
        "centres",
        lambda one: bool(one.centres) and bool(one.unavailable),
        "several centres need no unavailable windows",
    ),
    Refusal(
        "dispatch",
        lambda one: one.dispatch == "partition" and not (one.centres and all("partition" in of for of in one.centres)),
        "jobs can stay in their partition only if every one of the centres says which partition it is",
    ),
    Refusal(
        "centres",
        lambda one: one.dispatch != "partition" and any("partition" in centre for centre in one.centres),
        "a centre's partition is for dispatch: partition",
    ),
    Refusal(
        "dispatch",
        lambda one: one.dispatch == "partition" and one.shapes != "requested",
        "jobs that choose their shapes do not stay in a partition; leave one of them out",
    ),
    Refusal(
        "limits",
        lambda one: (
            _has_limits(one)
            and (
                one.shares
                or one.shapes != "requested"
                or not _backfills_of(one).isdisjoint({"conservative", "reservation-table"})
            )
        ),
        "jobs that are passed over can have no reservation at their submission; use backfill none, easy or lookahead, "
        "nodes whose jobs share nothing, and shapes requested",
    ),
    Refusal(
        "order",
        lambda one: one.shares and _knows_owners(one),
        "usage, shares, partition_id and machine_processors are known only where jobs share nothing on their nodes",
    ),
    Refusal(
        "priority",
        lambda one: one.priority is not None and MULTIFACTOR not in _orders_of(one),
        f"its weights are for order {MULTIFACTOR}, and no order is that; leave it out",
    ),
    Refusal(
        "feedback",
        lambda one: one.feedback != "none" and ("count" not in one.allocations or bool(one.centres)),
        "users who wait need allocation count and one machine",
    ),
    Refusal(
        "feedback",
        lambda one: one.feedback != "none" and one.shapes != "requested",
        "users who wait need the shapes that they asked for; leave shapes out",
    ),
    Refusal(
        "shapes",
        lambda one: one.shapes == "start" and "reservation-table" in _backfills_of(one),
        "a reservation-table has jobs of one shape; choose them when jobs are submitted",
    ),
    Refusal(
        "shapes",
        lambda one: (
            one.shapes != "requested" and one.runtime == "shared" and (one.shapes == "start" or one.estimates == "kill")
        ),
        "with shared run times choose them when jobs are submitted, and let estimates be raised",
    ),
    Refusal(
        "shapes",
        lambda one: one.shapes != "requested" and one.prediction == "system",
        "what a user's last run times say of other shapes is not known; choose another prediction",
    ),
)


def _knows_owners(one: Any) -> bool:
    from swflow.scheduling.orders import OF_OWNERS, mentioned

    return any(not mentioned(order).isdisjoint(OF_OWNERS) for order in _orders_of(one) if order is not None)


def _has_limits(one: Any) -> bool:
    return bool(one.limits) or any(centre.get("limits") for centre in one.centres)


def _backfills_of(one: Any) -> set[str]:
    own = {centre.get("backfill", one.backfill) for centre in one.centres}
    return own or {one.backfill}


def _orders_of(one: Any) -> list[Any]:
    own = [centre.get(option) for centre in one.centres for option in ("order", "backfill_order")]
    return [one.order, one.backfill_order, *own]


def check_together(scheduler: Any, defaults: Mapping[str, Any]) -> None:
    """
    Raise an error if a scheduler's options do not go together.

    Parameters
    ----------
    scheduler : Scheduler
        Whose options are right one by one.
    defaults : mapping
        The options' defaults.

    Raises
    ------
    SwflowError
        That says which of them to change.
    """
    for refusal in REFUSALS:
        if refusal.when(scheduler):
            raise SwflowError(f"{refusal.option}: {refusal.reason}")
    if scheduler.policy is None and scheduler.policy_options is not None:
        raise SwflowError("policy_options: without a policy there is nothing to make with them")
    if scheduler.policy is not None:
        for name, default in defaults.items():
            if name not in _WITH_POLICY and getattr(scheduler, name) != default:
                raise SwflowError(f"{name}: {scheduler.policy} decides itself, on counted processors; leave {name} out")
        if scheduler.prediction == "system":
            raise SwflowError(f"prediction: {scheduler.policy} may learn run times itself; choose another prediction")
    if scheduler.order == LOG:
        for name, default in defaults.items():
            if name not in ("order", "without_status") and getattr(scheduler, name) != default:
                raise SwflowError(f"{name}: the recorded schedule (order log) is not planned; leave {name} out")
