"""The table of a scheduler's options: their meaning, their values, and the combinations that are refused."""

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import partial
from numbers import Integral, Real
from typing import Any

from swflow.errors import SwflowError, require_known, shown, suggest
from swflow.jobs.machine import checked_resources
from swflow.scheduling.orders.vocabulary import LOG, MULTIFACTOR, OF_ACCOUNTS, ORDERS
from swflow.scheduling.plugins.source import is_own, load_own

#: The largest time that is simulated, seconds: beyond some 2**53 a clock of floating-point numbers stands still.
LATEST = 1e12


@dataclass(frozen=True)
class Option:
    """An option of a scheduler; its kind determines how `checked` reads its value."""

    kind: str
    meaning: str  # a sentence for the command's help and the schema
    choices: Mapping[str, str] = field(default_factory=dict)  # each value and its meaning
    least: float = -math.inf  # the bounds of numbers, both included
    most: float = math.inf
    above: float | None = None  # instead of ``least``: a bound that is not included
    optional: bool = False  # whether null stands for a default
    default: Any = None

    @property
    def help(self) -> str:
        """The meaning and the values."""
        return f"{self.meaning.removesuffix('.')}: {', '.join(self.choices)}." if self.choices else self.meaning


def option(kind: str, meaning: str, choices: Mapping[str, str] | None = None, **more: Any) -> Any:
    """Return a field of `Options`; the arguments are those of `Option`."""
    found = Option(kind, meaning, choices or {}, **more)
    return field(default=found.default, metadata={"option": found})


@dataclass(frozen=True)
class Options:
    """The options of a scheduler, from whose declarations the command's help and the config's schema follow."""

    order: str | Callable[..., float] = option(
        "order",
        "The order of the queue, smallest value first: "
        f"{', '.join(ORDERS)}, or a formula: '-(wait / estimate) ** 3 * processors'; log: as recorded.",
        default="fcfs",
    )
    backfill: str = option(
        "choice",
        "Whether and how later jobs may overtake.",
        {
            "none": "the head of the queue starts as soon as it fits; no job overtakes it",
            "easy": "the first jobs that do not fit have reservations (`reservations`); a later job may start if it "
            "delays none of them",
            "conservative": "every job gets a reservation when it is submitted; these move forward when jobs end early",
            "reservation-table": "like easy, but later jobs may have reservations until the head's, too (Alvio)",
        },
        default="none",
    )
    reservations: int = option("integer", "How many jobs have a reservation with backfill easy.", least=1, default=1)
    backfill_order: str | Callable[..., float] | None = option(
        "order", "The order in which jobs are tried for backfilling; by default that of the queue.", optional=True
    )
    estimates: str = option(
        "choice",
        "What happens if the run time exceeds the estimate.",
        {
            "raise": "the estimate is raised to the run time",
            "kill": "a job is killed when it reaches its estimate",
        },
        default="raise",
    )
    prediction: str = option(
        "choice",
        "The run times with which the scheduler plans.",
        {
            "user": "the users' estimates",
            "perfect": "the actual run times",
            "double": "twice the estimates (Mu'alem & Feitelson 2001)",
            "system": "the mean of the user's last two run times (Tsafrir, Etsion & Feitelson 2007)",
        },
        default="user",
    )
    allocation: str = option(
        "choice",
        "Which processors a job gets.",
        {
            "count": "processors are only counted",
            "first-fit": "the free processors with the lowest numbers",
            "longest-idle": "the free processors that were idle longest, then the lowest numbers (First Fit in Alvio)",
            "first-contiguous": "the first run of consecutive free processors that is long enough",
            "least-shared": "process by process, the node whose shared resources it would overload least",
            "threshold": "the same, but a job waits while it would raise a node's penalty above `sharing_limit`",
        },
        default="count",
    )
    places: bool = option("flag", "Record the processors of each job; not with count.", default=False)
    runtime: str = option(
        "choice",
        "How long jobs run.",
        {
            "trace": "jobs run as long as the log says",
            "shared": "jobs that overload a node slow each other down (Guim, Corbalan & Labarta 2007)",
        },
        default="trace",
    )
    penalty: str = option(
        "text",
        "The penalty of an overloaded node: linear, printed, forgets-shadows, or a formula of usage and capacity.",
        default="linear",
    )
    sharing_limit: float = option(
        "number", "With allocation threshold: the penalty of a node above which a job waits.", least=0, default=0.0
    )
    event_order: str = option(
        "choice",
        "When scheduling passes are made.",
        {
            "batch": "at one instant completions, then arrivals, then one scheduling pass",
            "per-event": "at one instant arrivals, then completions, with a scheduling pass after each",
        },
        default="batch",
    )
    unavailable: tuple[Mapping[str, Any], ...] = option(
        "windows", "Windows in which the processors with the highest numbers are unavailable.", default=()
    )
    clusters: tuple[Mapping[str, Any], ...] = option(
        "clusters", "Several machines instead of one, each with its own queue.", default=()
    )
    dispatch: str = option(
        "choice",
        "The cluster to which a job is sent when it is submitted.",
        {
            "round-robin": "one cluster after the other",
            "least-loaded": "the cluster with the least demand of running and queued jobs, relative to its size",
            "earliest-start": "the cluster that would start the job first, by its own plan",
            "partition": "the cluster of the job's partition",
        },
        default="round-robin",
    )
    half_life: float | None = option(
        "number",
        "Seconds after which past usage counts half in fair share; by default usage does not decay.",
        above=0,
        optional=True,
    )
    user_shares: Mapping[str, float] | None = option(
        "weights",
        "The shares of users, by name or number, such as {alice: 3}; others have 1.",
        above=0,
        most=1e9,
        optional=True,
    )
    group_shares: Mapping[str, float] | None = option(
        "weights", "The shares of groups, by name or number; others have 1.", above=0, most=1e9, optional=True
    )
    priority: Mapping[str, Any] | None = option(
        "priority",
        "The weights of order slurm-multifactor: age, max_age, fair_share, fair_share_of, dampening, size, "
        "favor_small, partition, partition_factors, qos, qos_factors.",
        optional=True,
    )
    limits: Mapping[str, Any] | None = option(
        "limits",
        "The maximum of running jobs and processors of a user, group and partition, such as {user: {jobs: 10}, "
        "partition: {debug: {processors: 64}}}; jobs beyond it are skipped.",
        optional=True,
    )
    resources: Mapping[str, int | None] | None = option(
        "resources",
        "The machine's units of each resource besides processors, such as {gpus: 512, memory: 4000000} (MB); a job "
        "occupies as many as its column of that name states. Resources that are not given are those of the workload's "
        "machine; null leaves one out.",
        optional=True,
    )
    without_status: tuple[int, ...] = option(
        "integers", "Leave out jobs of these SWF statuses (0 failed, 1 completed, 5 cancelled).", default=()
    )
    shapes: str = option(
        "choice",
        "When the processors of moldable jobs are chosen.",
        {
            "requested": "never: every job has the processors that it requested",
            "submit": "at the submission: the shape that would complete first as planned (by the planned ends of the "
            "running jobs, then the queue in its order, each job at its earliest start)",
            "start": "at the start: the fastest shape that can start; a reservation is for the shape that would "
            "complete first",
        },
        default="requested",
    )
    shape_choice: str = option(
        "choice",
        "The shapes that may be chosen.",
        {
            "fastest": "all shapes of a job",
            "efficient": "those that use their processors well enough, by `efficiency`",
        },
        default="fastest",
    )
    efficiency: float = option(
        "number",
        "With efficient: the lowest efficiency that a shape may have (smallest processor-seconds over its own).",
        above=0,
        most=1,
        default=0.5,
    )
    feedback: str = option(
        "choice",
        "Whether submissions depend on the ends of earlier jobs (user feedback).",
        {
            "none": "jobs are submitted at the recorded times",
            "sessions": "a job is submitted some time after the end of the job that its user waited for, as the log "
            "records or as inferred from sessions (Zakay & Feitelson 2012, 2014)",
            "think-times": "the same, with sessions that end 20 min after the last end without a submission",
        },
        default="none",
    )
    policy: str | None = option(
        "plugin", "A class that decides which jobs start: module:Name, or file.py:Name.", optional=True
    )
    policy_options: Mapping[str, Any] | None = option(
        "mapping",
        "The arguments of the policy's class, such as {slack: 2}; on the command line as JSON.",
        optional=True,
    )


#: The options of a scheduler, by their names.
OPTIONS: dict[str, Option] = {one.name: one.metadata["option"] for one in fields(Options)}

Options.__doc__ = f"{Options.__doc__}\n\n    Parameters\n    ----------\n" + "\n".join(
    f"    {name} : {one.kind}\n        {' '.join(one.help.split())}" for name, one in OPTIONS.items()
)

#: The choices of each option that has some, with their meanings.
CHOICES: dict[str, Mapping[str, str]] = {name: option.choices for name, option in OPTIONS.items() if option.choices}

#: The keys of a cluster.
CLUSTER_OPTIONS = (
    "processors", "resources", "partition", "order", "backfill", "reservations", "backfill_order", "allocation",
    "limits",
)  # fmt: skip

_POINTS = Option("number", "", least=0, most=1e9)

#: The keys of `priority`: weights in points, parameters, and the priorities of partitions and QOS by name.
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

#: The parameters of `priority`, to the weight that uses each.
_OF_WEIGHT = {"max_age": "age", "fair_share_of": "fair_share", "dampening": "fair_share", "favor_small": "size"}

#: The kinds of accounts that limits apply to, and the limited quantities.
LIMITED, LIMITS = ("user", "group", "partition"), ("jobs", "processors")

#: The keys of a window.
WINDOW_OPTIONS = ("from", "until", "processors")


def help_of(name: str) -> str:
    """
    Return the help text of an option: its meaning and its values.

    Examples
    --------
    >>> help_of("runtime")
    'How long jobs run: trace, shared.'
    """
    return OPTIONS[name].help


def schema_of(name: str) -> dict[str, object]:
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
        case "mapping" | "weights" | "priority" | "limits" | "resources":
            return {"type": ["object", "null"]}
        case "order" | "text" | "plugin":
            return {"type": ["string", "null"] if option.optional else "string"}
        case "flag":
            return {"type": "boolean"}
        case "integers":
            return {"type": "array", "items": {"type": "integer"}}
        case "integer" | "number":
            bounds = {"minimum": option.least, "maximum": option.most, "exclusiveMinimum": option.above}
            known = {key: bound for key, bound in bounds.items() if bound is not None and math.isfinite(bound)}
            return {"type": [option.kind, "null"] if option.optional else option.kind, **known}
        case "windows":
            # Seconds or a day; YAML's days are of no type that JSON knows.
            return _list_of({"from": {}, "until": {}, "processors": _PROCESSORS}, WINDOW_OPTIONS)
        case "clusters":
            own = {name: schema_of(name) for name in CLUSTER_OPTIONS if name in OPTIONS}
            fixed = {
                "processors": _PROCESSORS,
                "resources": {"type": "object"},
                "partition": {"type": ["string", "integer", "array"]},
            }
            return _list_of(fixed | own, ("processors",))
    raise AssertionError(f"{name}: no schema for {option.kind}")


_PROCESSORS = {"type": "integer", "minimum": 1}


def _list_of(properties: Mapping[str, object], required: Iterable[str]) -> dict[str, object]:
    fields = {"type": "object", "required": list(required), "additionalProperties": False}
    return {"type": "array", "items": fields | {"properties": dict(properties)}}


# -- checks: the value of an option alone


def checked(name: str, value: Any, where: str | None = None) -> Any:
    """
    Return the value of an option as numbers, texts, tuples and dicts; errors call the option ``where``.

    Raises
    ------
    SwflowError
        If the value is not of the option's type or beyond its limits.
    """
    option = OPTIONS[name]
    if value is None and option.optional:
        return None
    return _checked(option, value, where or name)


#: The Python types of the simple kinds, and what errors call them.
_SIMPLE: dict[str, tuple[Any, str]] = {
    "text": (str, "a text"), "flag": (bool, "true or false"), "integer": (Integral, "a whole number"),
    "number": (Real, "a number"),
}  # fmt: skip


def _checked(option: Option, value: Any, where: str) -> Any:
    """Return a value in its plain form, if it is of the option's kind and within its limits."""
    match option.kind:
        case "choice":
            if value not in list(option.choices):  # a list, since the value may have no hash
                yaml = " (YAML reads off, no, on and yes as false and true; quote the word)" * isinstance(value, bool)
                raise SwflowError(f"{where}: unknown value {shown(value)}{yaml}{suggest(value, option.choices)}")
            return value
        case "order":
            return _order(value, where)
        case "integers":
            return tuple(_checked(Option("integer", ""), one, where) for one in _listed(value, where, "whole numbers"))
        case "windows":
            return tuple(_window(item, where) for item in _listed(value, where, "windows"))
        case "clusters":
            return tuple(_cluster(item, where) for item in _listed(value, where, "clusters"))
        case "plugin":
            if not is_own(value):
                raise SwflowError(f"{where}: {shown(value)}; expected module:Name or file.py:Name")
            load_own(value, where)
            return value
        case "mapping":
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise SwflowError(f"{where}: {shown(value)}; expected names with their values")
            return dict(value)
        case "weights":
            number = replace(option, kind="number")
            return {name: _checked(number, one, f"{where}: {name}") for name, one in _named(value, where).items()}
        case "priority":
            return _priority(value, where)
        case "limits":
            return _limits(value, where)
        case "resources":
            return _resources(value, where)
    kind, expected = _SIMPLE[option.kind]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise SwflowError(f"{where}: {shown(value)}; expected {expected}")
    if kind is Integral or kind is Real:
        if option.above is not None and not value > option.above:
            raise SwflowError(f"{where}: {shown(value)}; expected above {option.above:g}, at most {option.most:g}")
        if not option.least <= value:
            raise SwflowError(f"{where}: {shown(value)}; expected at least {option.least:g}")
        if not value <= option.most or not math.isfinite(value):
            raise SwflowError(f"{where}: {shown(value)}; expected at most {option.most:g}")
        return int(value) if kind is Integral or isinstance(value, int) else float(value)
    return value


def _whole(value: Any, where: str) -> int:
    """Return a whole number of at least 1."""
    return int(_checked(Option("integer", "", least=1), value, where))


def _order(value: Any, where: str) -> Any:
    from swflow.scheduling.orders.keys import check_order  # which imports NumPy

    if callable(value):
        return value
    if not isinstance(value, str):
        raise SwflowError(f"{where}: {shown(value)}; expected the name of an order or a formula")
    if not (where == "order" and value == LOG):
        check_order(value, where)
    return value


def _window(window: Any, where: str) -> dict[str, Any]:
    _require_keys(where, window, WINDOW_OPTIONS, WINDOW_OPTIONS)
    begin, begins = _moment(window["from"], f"{where}: from")
    until = None
    if window["until"] is not None:
        until, ends = _moment(window["until"], f"{where}: until")
        # Seconds and a day, or days with and without a time zone, compare only when the log's start is known.
        with contextlib.suppress(TypeError):
            require_window(begins, ends, window)
    return {"from": begin, "until": until, "processors": _whole(window["processors"], f"{where}: processors")}


def require_window(begin: Any, until: Any, window: Mapping[str, Any]) -> None:
    """Raise an error unless a window ends after its beginning."""
    if not until > begin:
        raise SwflowError(
            f"unavailable: the window from {window['from']} until {window['until']} is empty; "
            "let it end after its beginning, or never: until: null"
        )


def _moment(value: Any, where: str) -> tuple[float | str, Any]:
    """Return a time, in seconds or a day as text; and in a form that compares with another one of its kind."""
    from swflow.log.swf import parse_moment

    if isinstance(value, date):
        value = str(value)
    if isinstance(value, str):
        day = parse_moment(value, where)
        return value, day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SwflowError(f"{where}: {shown(value)}; expected seconds from the log's start or a day")
    seconds = value if isinstance(value, int) else float(value)
    if not abs(seconds) <= LATEST:
        raise SwflowError(f"{where}: {seconds:g} is not a time between {-LATEST:g} and {LATEST:g} seconds")
    return seconds, seconds


def _cluster(cluster: Any, where: str) -> dict[str, Any]:
    _require_keys(where, cluster, CLUSTER_OPTIONS, ("processors",))
    own = {
        name: checked(name, cluster[name], f"{where}: {name}")
        for name in CLUSTER_OPTIONS
        if name in OPTIONS and cluster.get(name) is not None
    }
    if cluster.get("partition") is not None:
        several = cluster["partition"] if isinstance(cluster["partition"], list | tuple) else [cluster["partition"]]
        own["partition"] = tuple(_name(one, f"{where}: partition") for one in several)
    if cluster.get("resources"):
        own["resources"] = checked_resources(cluster["resources"], f"{where}: resources")
    return {"processors": _whole(cluster["processors"], f"{where}: processors")} | own


def _name(value: Any, where: str) -> str:
    """Return a name or number of a user, group, queue or partition as text."""
    if isinstance(value, bool) or not isinstance(value, str | Integral) or not str(value).strip():
        raise SwflowError(f"{where}: {shown(value)}; expected a name or a number")
    return str(value).strip()


def _named(value: Any, where: str) -> dict[str, Any]:
    """Return a mapping whose keys are names or numbers."""
    if not isinstance(value, Mapping):
        raise SwflowError(f"{where}: {shown(value)}; expected names with their values")
    return {_name(key, where): content for key, content in value.items()}


def _priority(value: Any, where: str) -> dict[str, Any]:
    _require_keys(where, value, PRIORITY, ())
    found = {
        name: _checked(option, value[name], f"{where}: {name}")
        for name, option in PRIORITY.items()
        if value.get(name) is not None
    }
    for weight in ("partition", "qos"):
        factors = f"{weight}_factors"
        if bool(found.get(weight)) != bool(found.get(factors) and max(found[factors].values()) > 0):
            raise SwflowError(f"{where}: {weight} is a weight, and {factors} says of what; give both, or none")
    for name, weight in _OF_WEIGHT.items():
        if found.get(name) and not found.get(weight):
            raise SwflowError(f"{where}: {name}: the weight {weight} is 0; set it, or leave {name} out")
    return found


def _limits(value: Any, where: str) -> dict[str, dict[str, Any]]:
    """Return the limits of each kind: jobs and processors of all, and by name."""
    _require_keys(where, value, LIMITED, ())
    found: dict[str, dict[str, Any]] = {kind: {} for kind in LIMITED if value.get(kind) is not None}
    for kind, of_kind in found.items():
        if not isinstance(value[kind], Mapping):
            raise SwflowError(
                f"{where}: {kind}: {shown(value[kind])}; expected limits such as {{jobs: 10, processors: 64}}"
            )
        for name, limit in _named(value[kind], f"{where}: {kind}").items():
            here = f"{where}: {kind}: {name}"
            if isinstance(limit, Mapping):
                _require_keys(here, limit, LIMITS, ())
                of_kind[name] = {what: _whole(most, f"{here}: {what}") for what, most in limit.items()}
            elif name in LIMITS:
                of_kind[name] = _whole(limit, here)
            else:
                raise SwflowError(
                    f"{here}: {shown(limit)}; expected limits such as {{jobs: 10, processors: 64}}"
                    f"{suggest(name, LIMITS)}"
                )
    return found


def _resources(value: Any, where: str) -> dict[str, int | None]:
    """Return the units of counted resources by name; None leaves a resource of the workload's machine out."""
    left_out = [name for name, units in value.items() if units is None] if isinstance(value, Mapping) else []
    units = checked_resources({**value, **dict.fromkeys(left_out, 0)} if left_out else value, where)
    return units | dict.fromkeys(left_out)


def _listed(value: Any, where: str, what: str) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        raise SwflowError(f"{where}: {shown(value)}; expected a list of {what}")
    return value


def _require_keys(where: str, content: Any, known: Collection[str], needed: Iterable[str]) -> None:
    if not isinstance(content, Mapping):
        raise SwflowError(f"{where}: each must have the keys {', '.join(needed)}, not be {shown(content)}")
    require_known(content, known, where)
    for key in needed:
        if key not in content:
            raise SwflowError(f"{where}: {shown(dict(content))} lacks {key!r}")


# -- checks: what goes together

#: The allocations by the resources that the processes of a node share.
SHARED_ALLOCATIONS = frozenset({"least-shared", "threshold"})

#: The options that go with a policy plugin, and with the recorded schedule.
_WITH_POLICY = ("policy", "policy_options", "estimates", "prediction", "without_status")
_WITH_LOG = ("order", "without_status")

#: The columns of jobs that leave the queue, or are submitted, because of an event.
_EVENTS = ("depends_on", "cancelled_after", "array_limit")


@dataclass(frozen=True)
class Refusal:
    """
    Options that do not go together, or that a column of the workload excludes.

    An error names the first of the ``options``; a change of any of them can make the scheduler valid. With
    ``columns``, the refusal holds only for workloads with one of them; the name "resources" stands for counted
    resources.
    """

    options: tuple[str, ...]
    reason: str
    applies: Callable[[Any], bool]
    columns: tuple[str, ...] = ()


def _is_changed(one: Any, name: str) -> bool:
    return bool(getattr(one, name) != OPTIONS[name].default)


def _backfills(one: Any) -> set[str]:
    return {queue.backfill for queue in one.queues}


def _variables(one: Any) -> set[str]:
    """Return the variables that the orders of a scheduler mention."""
    from swflow.scheduling.orders.keys import mentioned  # which imports NumPy

    orders = set(one.orders)
    found: set[str] = set()
    if one.priority is not None and MULTIFACTOR in orders:
        orders.remove(MULTIFACTOR)
        of = one.priority.get("fair_share_of", "user")
        found = {f"{of}_usage", f"{of}_share"} if one.priority.get("fair_share") else set()
    return found.union(*map(mentioned, orders))


def _gives(one: Any, name: str) -> bool:
    """Return whether a cluster has an option of its own."""
    return any(name in cluster for cluster in one.clusters)


def _is_changed_beside_policy(name: str, one: Any) -> bool:
    return one.policy is not None and _is_changed(one, name)


def _is_changed_beside_log(name: str, one: Any) -> bool:
    return bool(one.order == LOG) and _is_changed(one, name)


def _has_useless_shares(kind: str, one: Any) -> bool:
    return _is_changed(one, f"{kind}_shares") and f"{kind}_share" not in _variables(one)


def _is_overridden(name: str, one: Any) -> bool:
    return bool(one.clusters) and _is_changed(one, name) and all(name in cluster for cluster in one.clusters)


def _is_useless(one: Any, name: str, uses: Callable[[Any], bool]) -> bool:
    """Return whether an option of a queue is given for a queue that does not use it, or for none that does."""
    own = [queue for queue, cluster in zip(one.queues, one.clusters, strict=False) if name in cluster]
    return (_is_changed(one, name) and not any(map(uses, one.queues))) or not all(map(uses, own))


def _cannot_plan(one: Any) -> bool:
    reserves_more = any(queue.backfill == "easy" and queue.reservations > 1 for queue in one.queues)
    return reserves_more or not _backfills(one) <= {"none", "easy"} or bool(one.unavailable)


def _uses_sharing(one: Any) -> bool:
    return not one.allocations.isdisjoint(SHARED_ALLOCATIONS)


def _is_moldable(one: Any) -> bool:
    return bool(one.shapes != "requested")


#: The refusals, in the order in which they are checked.
REFUSALS: tuple[Refusal, ...] = (
    *(
        Refusal(
            (name, "policy"),
            f"not used by the policy {{policy}}; leave {name} out",
            partial(_is_changed_beside_policy, name),
        )
        for name in OPTIONS
        if name not in _WITH_POLICY
    ),
    Refusal(
        ("prediction", "policy"),
        "not available to the policy {policy}; choose another prediction",
        lambda one: one.policy is not None and one.prediction == "system",
    ),
    Refusal(
        ("policy_options", "policy"),
        "there is no policy; leave them out",
        lambda one: one.policy is None and one.policy_options is not None,
    ),
    *(
        Refusal(
            (name, "order"),
            f"the recorded schedule (order log) is not planned; leave {name} out",
            partial(_is_changed_beside_log, name),
        )
        for name in OPTIONS
        if name not in _WITH_LOG
    ),
    # -- options that a machine model lacks
    Refusal(
        ("clusters", "allocation"),
        "processors are counted at all clusters or at none; give each an allocation",
        lambda one: "count" in one.allocations and len(one.allocations) > 1,
    ),
    Refusal(
        ("places", "allocation"),
        "processors are not numbered with allocation count; choose another allocation",
        lambda one: "count" in one.allocations and one.places,
    ),
    Refusal(
        ("runtime", "allocation"),
        "shared needs to know which jobs are on which node; choose another allocation",
        lambda one: "count" in one.allocations and one.runtime == "shared",
    ),
    Refusal(
        ("backfill", "allocation", "clusters"),
        "a reservation-table has numbered processors; choose another allocation",
        lambda one: "count" in one.allocations and "reservation-table" in _backfills(one),
    ),
    Refusal(
        ("event_order", "runtime", "allocation"),
        "shared resources need batch, since their shadows last for some time",
        lambda one: one.shares and one.event_order != "batch",
    ),
    Refusal(
        ("allocation", "backfill", "reservations", "unavailable", "clusters"),
        "least-shared and threshold need backfill none or easy with one reservation, and no unavailable windows",
        lambda one: _uses_sharing(one) and _cannot_plan(one),
    ),
    Refusal(
        ("allocation", "shapes", "dispatch"),
        "least-shared and threshold cannot plan the whole queue; choose shapes at the start, or another dispatch",
        lambda one: _uses_sharing(one) and (one.shapes == "submit" or one.dispatch == "earliest-start"),
    ),
    Refusal(
        ("clusters", "unavailable"),
        "clusters cannot have unavailable windows",
        lambda one: bool(one.clusters and one.unavailable),
    ),
    Refusal(
        ("dispatch", "clusters"),
        "partition needs clusters, each with the partition that it serves",
        lambda one: (
            one.dispatch == "partition"
            and not (one.clusters and all("partition" in cluster for cluster in one.clusters))
        ),
    ),
    Refusal(
        ("dispatch", "shapes"),
        "moldable jobs do not stay in a partition; leave one of them out",
        lambda one: one.dispatch == "partition" and _is_moldable(one),
    ),
    Refusal(
        ("clusters", "dispatch"),
        "a cluster's partition is for dispatch: partition",
        lambda one: one.dispatch != "partition" and _gives(one, "partition"),
    ),
    Refusal(
        ("limits", "backfill", "runtime", "allocation", "shapes", "clusters"),
        "skipped jobs can have no reservation at their submission; use backfill none or easy, nodes whose jobs share "
        "nothing, and shapes requested",
        lambda one: (
            any(queue.limits for queue in one.queues)
            and (one.shares or _is_moldable(one) or not _backfills(one) <= {"none", "easy"})
        ),
    ),
    Refusal(
        ("order", "backfill_order", "runtime", "allocation", "clusters"),
        "usage, shares, partition_id and machine_processors are known only where jobs share nothing on their nodes",
        lambda one: one.shares and not _variables(one).isdisjoint(OF_ACCOUNTS),
    ),
    Refusal(
        ("resources", "clusters"),
        "these are units of one machine; give each cluster its own, such as {{processors: 64, "
        "resources: {{gpus: 16}}}}",
        lambda one: one.clusters and any(units is not None for units in (one.resources or {}).values()),
    ),
    Refusal(
        ("feedback", "clusters", "allocation"),
        "user feedback needs allocation count and one machine",
        lambda one: one.feedback != "none" and (one.clusters or one.allocations != {"count"}),
    ),
    Refusal(
        ("feedback", "shapes"),
        "user feedback needs the requested shapes; leave shapes out",
        lambda one: one.feedback != "none" and _is_moldable(one),
    ),
    Refusal(
        ("shapes", "backfill", "clusters"),
        "a reservation-table has jobs of one shape; choose shapes when jobs are submitted",
        lambda one: one.shapes == "start" and "reservation-table" in _backfills(one),
    ),
    Refusal(
        ("shapes", "runtime", "estimates"),
        "with shared run times choose shapes when jobs are submitted, and raise estimates",
        lambda one: (
            _is_moldable(one) and one.runtime == "shared" and (one.shapes == "start" or one.estimates == "kill")
        ),
    ),
    Refusal(
        ("shapes", "prediction"),
        "the run times of other shapes cannot be predicted; choose another prediction",
        lambda one: _is_moldable(one) and one.prediction == "system",
    ),
    # -- options without effect
    *(
        Refusal(
            (name, "clusters"),
            f"every cluster has its own; leave {name} out",
            partial(_is_overridden, name),
        )
        for name in ("order", "backfill", "reservations", "backfill_order", "allocation", "limits")
    ),
    Refusal(
        ("reservations", "backfill", "clusters"),
        "only backfill easy uses it; choose that, or leave it out",
        lambda one: _is_useless(one, "reservations", lambda queue: queue.backfill == "easy"),
    ),
    Refusal(
        ("backfill_order", "backfill", "clusters"),
        "only backfill easy and reservation-table use it; choose one of them, or leave it out",
        lambda one: _is_useless(one, "backfill_order", lambda queue: queue.backfill in ("easy", "reservation-table")),
    ),
    Refusal(
        ("penalty", "runtime", "allocation"),
        "jobs share nothing on their nodes; choose runtime shared, or leave it out",
        lambda one: _is_changed(one, "penalty") and not one.shares,
    ),
    Refusal(
        ("sharing_limit", "allocation", "clusters"),
        "only allocation threshold uses it; choose that, or leave it out",
        lambda one: _is_changed(one, "sharing_limit") and "threshold" not in one.allocations,
    ),
    Refusal(
        ("dispatch", "clusters"),
        "there are no clusters; give some, or leave it out",
        lambda one: _is_changed(one, "dispatch") and not one.clusters,
    ),
    Refusal(
        ("half_life", "order", "backfill_order", "priority"),
        "no order uses user_usage or group_usage; choose fair-share, or leave it out",
        lambda one: one.half_life is not None and _variables(one).isdisjoint(("user_usage", "group_usage")),
    ),
    *(
        Refusal(
            (f"{kind}_shares", "order", "backfill_order", "priority"),
            f"no order uses {kind}_share; choose one that does, or leave it out",
            partial(_has_useless_shares, kind),
        )
        for kind in ("user", "group")
    ),
    Refusal(
        ("priority", "order", "backfill_order", "clusters"),
        f"its weights are for order {MULTIFACTOR}, which is not used; leave it out",
        lambda one: one.priority is not None and MULTIFACTOR not in one.orders,
    ),
    Refusal(
        ("shape_choice", "shapes"),
        "jobs have their requested shapes; choose shapes submit or start, or leave it out",
        lambda one: _is_changed(one, "shape_choice") and not _is_moldable(one),
    ),
    Refusal(
        ("efficiency", "shape_choice"),
        "only shape_choice efficient uses it; choose that, or leave it out",
        lambda one: _is_changed(one, "efficiency") and one.shape_choice != "efficient",
    ),
    # -- workloads that are not supported
    Refusal(
        ("allocation", "clusters"),
        "machines with resources have counted processors; use allocation count, or a machine without resources",
        lambda one: one.allocations != {"count"},
        ("resources",),
    ),
    Refusal(
        ("policy",),
        "a policy plugin decides by processors alone; use an order and a backfill, or a machine without resources",
        lambda one: one.policy is not None,
        ("resources",),
    ),
    Refusal(("allocation", "clusters"), "needs allocation count", lambda one: one.allocations != {"count"}, _EVENTS),
    Refusal(("shapes",), "needs shapes requested", _is_moldable, _EVENTS),
    Refusal(("policy",), "is not available to a policy plugin", lambda one: one.policy is not None, _EVENTS),
    Refusal(
        ("feedback",),
        "does not go with feedback; leave one of them out",
        lambda one: one.feedback != "none",
        ("depends_on",),
    ),
    Refusal(
        ("backfill", "clusters"),
        "needs backfill none or easy",
        lambda one: not _backfills(one) <= {"none", "easy"},
        ("array_limit",),
    ),
    Refusal(
        ("dispatch", "clusters"),
        "needs one machine or dispatch partition",
        lambda one: len(one.queues) > 1 and one.dispatch != "partition",
        ("array_limit",),
    ),
)


def refusals(one: Any, columns: Collection[str] = ()) -> Iterator[tuple[Refusal, str]]:
    """
    Yield the refusals of a scheduler, each with an error, for workloads with these ``columns``.

    An error begins with an option, or with the column that the scheduler does not support.
    """
    has_resources = any("resources" in cluster for cluster in one.clusters)
    present = {*columns, "resources"} if has_resources else columns
    for refusal in REFUSALS:
        found = [column for column in refusal.columns if column in present]
        if (found or not refusal.columns) and refusal.applies(one):
            said = f"column {found[0]}" if found and found[0] != "resources" else refusal.options[0]
            yield refusal, f"{said}: {refusal.reason.format(policy=one.policy)}"
