"""The table of a scheduler's options: their meaning, their values, and the combinations that are refused."""

import contextlib
import graphlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from itertools import groupby
from numbers import Integral, Real
from typing import Any, NotRequired, TypedDict, cast

from swflow.errors import SwflowError, require_known, shown, suggest
from swflow.jobs.machine import checked_resources
from swflow.scheduling.orders.vocabulary import LOG, ORDERS
from swflow.scheduling.plugins.source import is_own, load_own

#: The options of a scheduler, or of one of its clusters, before they are checked: as YAML, JSON or a caller gives them.
Unchecked = Mapping[str, Any]

#: The limits of each kind of account: by quantity for every account, and by name for one.
Limits = Mapping[str, Mapping[str, int | Mapping[str, int]]]

#: Processors, or nodes by position such as 5-8, that are unavailable: from and until are seconds since the log's start,
#: or days; None never ends.
Unavailable = TypedDict(
    "Unavailable",
    {"from": float | str, "until": float | str | None, "processors": NotRequired[int], "nodes": NotRequired[str]},
)


class Account(TypedDict, total=False):
    """
    A group in the tree of accounts: the group above it, its share and its users', and their usage before the log.

    Usage is in processor-seconds, at the first submission.
    """

    parent: str
    share: float
    users: Mapping[str, float]
    usage: Mapping[str, float]


class Priority(TypedDict, total=False):
    """The keys of `priority`, which `PRIORITY` describes."""

    age: float
    max_age: float
    fair_share: float
    fair_share_of: str
    dampening: float
    calc_period: float
    whole_periods: bool
    whole_points: bool
    size: float
    nodes: int
    favor_small: bool
    partition: float
    partition_factors: Mapping[str, float]
    qos: float
    qos_factors: Mapping[str, float]


class Cluster(TypedDict, total=False):
    """The keys of a cluster; only the processors are required."""

    processors: int
    resources: Mapping[str, int]
    partition: tuple[str, ...]
    order: str | Callable[..., float]
    backfill: str
    reservations: int
    backfill_order: str | Callable[..., float]
    allocation: str
    limits: Limits


class NodeGroup(TypedDict, total=False):
    """Consecutive nodes of a machine; the partitions that may use them are by default all."""

    count: int
    processors: int  # the processors of each node
    resources: Mapping[str, int]  # the units of each node
    weight: int  # jobs take nodes of the lowest weight first; by default 1
    features: tuple[str, ...]  # which the constraints of jobs name
    partition: tuple[str, ...]


class Preemption(TypedDict, total=False):
    """The keys of `preemption`, which `PREEMPTION` describes."""

    mode: str
    modes: Mapping[str, str]
    qos: Mapping[str, tuple[str, ...]]
    qos_priorities: Mapping[str, float]
    partition: Mapping[str, float]
    exempt_time: float
    requeue_delay: float


#: The most nodes of a machine, and units of a resource on a node: products with processors stay exact in 64 bits.
MOST_NODES, MOST_UNITS = 65_536, 2**31

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
            "slurm": "Slurm's two schedulers: after events, jobs start in order until one does not fit; in cycles, "
            "the queue is planned anew, and jobs that can start now do (`scheduler_parameters`)",
            "conservative": "every job gets a reservation when it is submitted; these move forward when jobs end early",
            "reservation-table": "like easy, but later jobs may have reservations until the head's, too (Alvio)",
        },
        default="none",
    )
    reservations: int = option("integer", "How many jobs have a reservation with backfill easy.", least=1, default=1)
    scheduler_parameters: Mapping[str, float] | None = option(
        "parameters",
        "The parameters of backfill slurm, by their names and units in slurm.conf: bf_interval, bf_resolution, "
        "sched_interval, batch_sched_delay (seconds), bf_window (minutes), bf_max_job_test, bf_max_job_user, "
        "default_queue_depth (jobs); and end_delay, seconds from the end of a job until the scheduler has its "
        "processors.",
        optional=True,
    )
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
    unavailable: tuple[Unavailable, ...] = option(
        "windows",
        "Windows in which the processors with the highest numbers are unavailable, or nodes by position: nodes: 5-8.",
        default=(),
    )
    nodes: tuple[NodeGroup, ...] = option(
        "nodes",
        "With backfill slurm: groups of the machine's nodes, in their order, such as {count: 6, processors: 4, "
        "resources: {gpus: 2}, weight: 10, features: [ib], partition: [main]}; jobs are on particular nodes that "
        "satisfy their constraint_id, as many as their requested_nodes, those of the lowest weight first, their "
        "resources are spread over their processors, and cycles reserve whole nodes. By default "
        "processors are counted.",
        default=(),
    )
    preemption: Preemption | None = option(
        "preemption",
        "With nodes: which running jobs a job that cannot start preempts: those of other QOS, such as {mode: requeue, "
        "qos: {high: [normal, low]}}, or those of partitions of lower tiers, such as {mode: cancel, partition: "
        "{urgent: 2}} (others have 1). Preempted jobs are queued again from the start (requeue, the default), or end "
        "(cancel). Further keys: exempt_time, requeue_delay (seconds), modes (by name, also 'off'), qos_priorities.",
        optional=True,
    )
    clusters: tuple[Cluster, ...] = option(
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
    priority: Priority | None = option(
        "priority",
        "The weights of order slurm-multifactor: age, max_age, fair_share, fair_share_of, dampening, calc_period, "
        "whole_periods, whole_points, size, nodes, favor_small, partition, partition_factors, qos, qos_factors.",
        optional=True,
    )
    limits: Limits | None = option(
        "limits",
        "The maximum of running jobs, processors and processor_minutes (that are left to running jobs) of a user, "
        "group, partition and QOS, such as {user: {jobs: 10}, partition: {debug: {processors: 64}}}, and of each user "
        "in a partition or QOS (user_jobs and so on); jobs beyond it are skipped.",
        optional=True,
    )
    accounts: Mapping[str, Account] | None = option(
        "accounts",
        "The groups of a site as a tree, such as {physics: {parent: science, share: 2, users: {alice: 3}}}: jobs of a "
        "group count towards the limits of the groups above it; fair share of associations and the fair tree use these "
        "shares, others are 1. Fair share begins with the usage of users, such as {physics: {usage: {alice: 3600}}} "
        "(processor-seconds).",
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
            "leaving": "as sessions, but a user whose job responds more slowly than in the log may end the session; "
            "its further jobs are not submitted (Shmueli & Feitelson 2006)",
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
CLUSTER_OPTIONS = tuple(Cluster.__annotations__)

_POINTS = _SHARE = Option("number", "", least=0, most=1e9)
_USAGE = Option("weights", "", least=0, most=1e18)

#: The keys of `priority`: weights in points, parameters, and the priorities of partitions and QOS by name.
PRIORITY: dict[str, Option] = {
    "age": _POINTS,
    "max_age": Option("number", "", above=0, most=LATEST),
    "fair_share": _POINTS,
    "fair_share_of": Option("choice", "", {"user": "", "group": "", "association": "", "fair-tree": ""}),
    "dampening": Option("number", "", above=0, most=1e9),
    "calc_period": Option("number", "", least=0, most=LATEST),
    "whole_periods": Option("flag", ""),
    "whole_points": Option("flag", ""),
    "size": _POINTS,
    "nodes": Option("integer", "", least=1, most=MOST_NODES),
    "favor_small": Option("flag", ""),
    "partition": _POINTS,
    "partition_factors": Option("weights", "", least=0, most=1e9),
    "qos": _POINTS,
    "qos_factors": Option("weights", "", least=0, most=1e9),
}

#: The keys of `scheduler_parameters`, with Slurm's defaults; 0 jobs of a user are all, and an interval of -1 makes no
#: cycles. ``end_delay``, in which a job is launched and its end is reported, is from logs of a Slurm 22.05 on one host.
SCHEDULER_PARAMETERS: dict[str, Option] = {
    "bf_interval": Option("integer", "", least=-1, most=10_800, default=30),
    "bf_window": Option("integer", "", least=1, most=43_200, default=1440),
    "bf_resolution": Option("integer", "", least=1, most=3600, default=60),
    "bf_max_job_test": Option("integer", "", least=1, most=1_000_000, default=500),
    "bf_max_job_user": Option("integer", "", least=0, most=1_000_000, default=0),
    "default_queue_depth": Option("integer", "", least=1, most=1_000_000, default=100),
    "batch_sched_delay": Option("integer", "", least=0, most=3600, default=3),
    "sched_interval": Option("integer", "", least=1, most=86_400, default=60),
    "end_delay": Option("number", "", least=0, most=3600, default=0.1),
}

#: What becomes of a preempted job; off: jobs of this QOS or partition are not preempted.
_MODES = {"requeue": "", "cancel": ""}

#: The keys of `preemption` besides ``qos``: Slurm's PreemptMode, the same by name, Priority of QOS, PriorityTier,
#: PreemptExemptTime, and the time from a preemption until a job is eligible again (cred_expire of AuthInfo, and 1 s).
PREEMPTION: dict[str, Option] = {
    "mode": Option("choice", "", _MODES),
    "modes": Option("names", "", _MODES | {"off": ""}),
    "qos_priorities": Option("weights", "", least=0, most=65_535),
    "partition": Option("weights", "", least=0, most=65_535),
    "exempt_time": Option("number", "", least=0, most=LATEST),
    "requeue_delay": Option("number", "", least=0, most=LATEST, default=121),
}

#: The parameters of `priority`, to the weight or period that uses each.
_OF_WEIGHT = {"max_age": "age", "fair_share_of": "fair_share", "dampening": "fair_share",
              "whole_periods": "calc_period", "nodes": "size", "favor_small": "size"}  # fmt: skip

#: The allocations by the resources that the processes of a node share.
SHARED_ALLOCATIONS = frozenset({"least-shared", "threshold"})

#: The kinds of accounts that limits apply to, the limited quantities, and those of each user in a partition or QOS.
LIMITED, LIMITS = ("user", "group", "partition", "qos"), ("jobs", "processors", "processor_minutes")
USER_LIMITS, WITH_USER_LIMITS = tuple(f"user_{name}" for name in LIMITS), ("partition", "qos")

#: The keys of a group of nodes.
NODE_OPTIONS = tuple(NodeGroup.__annotations__)

#: The keys of a window.
WINDOW_OPTIONS = tuple(Unavailable.__annotations__)


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
        case "mapping" | "weights" | "priority" | "parameters" | "limits" | "accounts" | "resources" | "preemption":
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
            own = {"from": {}, "until": {}, "processors": _PROCESSORS, "nodes": {"type": ["string", "integer"]}}
            return _list_of(own, ("from", "until"))
        case "clusters":
            own = {name: schema_of(name) for name in CLUSTER_OPTIONS if name in OPTIONS}
            fixed = {"processors": _PROCESSORS, "resources": {"type": "object"}, "partition": _PARTITION}
            return _list_of(fixed | own, ("processors",))
        case "nodes":
            return _list_of(
                {
                    "count": _PROCESSORS,
                    "processors": _PROCESSORS,
                    "resources": {"type": "object"},
                    "weight": {"type": "integer", "minimum": 0},
                    "features": _PARTITION,
                    "partition": _PARTITION,
                },
                ("count", "processors"),
            )
    raise AssertionError(f"{name}: no schema for {option.kind}")


_PROCESSORS = {"type": "integer", "minimum": 1}
_PARTITION = {"type": ["string", "integer", "array"]}


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
        case "nodes":
            return _nodes(_listed(value, where, "groups of nodes"), where)
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
        case "names":
            one = replace(option, kind="choice")
            return {name: _checked(one, value, f"{where}: {name}") for name, value in _named(value, where).items()}
        case "priority":
            return _priority(value, where)
        case "preemption":
            return _preemption(value, where)
        case "parameters":
            _require_keys(where, value, SCHEDULER_PARAMETERS, ())
            return {
                name: _checked(one, value[name], f"{where}: {name}")
                for name, one in SCHEDULER_PARAMETERS.items()
                if value.get(name) is not None
            }
        case "limits":
            return _limits(value, where)
        case "accounts":
            return _accounts(value, where)
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
        if not value <= option.most or not abs(value) < _LARGEST:
            raise SwflowError(f"{where}: {shown(value)}; expected at most {option.most:g}")
        return int(value) if kind is Integral or isinstance(value, int) else float(value)
    return value


#: Larger numbers may be infinite, or integers that no float holds.
_LARGEST = 1e300


def _whole(value: Any, where: str) -> int:
    """Return a whole number of at least 1, whose sums stay exact in 64 bits."""
    return int(_checked(Option("integer", "", least=1, most=1e15), value, where))


def _order(value: Any, where: str) -> Any:
    from swflow.scheduling.orders.keys import check_order  # which imports NumPy

    if callable(value):
        return value
    if not isinstance(value, str):
        raise SwflowError(f"{where}: {shown(value)}; expected the name of an order or a formula")
    if not (where == "order" and value == LOG):
        check_order(value, where)
    return value


def _window(window: Any, where: str) -> Unavailable:
    of_nodes = isinstance(window, Mapping) and "nodes" in window
    _require_keys(where, window, WINDOW_OPTIONS, ("from", "until", "nodes" if of_nodes else "processors"))
    if of_nodes and "processors" in window:
        raise SwflowError(f"{where}: {shown(window)}; expected processors or nodes, and not both")
    begin, begins = _moment(window["from"], f"{where}: from")
    until = None
    if window["until"] is not None:
        until, ends = _moment(window["until"], f"{where}: until")
        # Seconds and a day, or days with and without a time zone, compare only when the log's start is known.
        with contextlib.suppress(TypeError):
            require_window(begins, ends, window)
    if of_nodes:
        nodes = str(window["nodes"])
        positions_of(nodes, f"{where}: nodes")
        return {"from": begin, "until": until, "nodes": nodes}
    return {"from": begin, "until": until, "processors": _whole(window["processors"], f"{where}: processors")}


def positions_of(text: str, where: str) -> list[int]:
    """
    Return the positions in a list of ranges, from 1 on.

    Examples
    --------
    >>> positions_of("2,5-7", "nodes")
    [2, 5, 6, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        if ends is None or not 1 <= int(ends[1]) <= int(ends[2] or ends[1]):
            raise SwflowError(f"{where}: {shown(text)}; expected positions of nodes from 1 on, such as 5-8,11")
        found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    return found


def in_ranges(positions: Iterable[int]) -> str:
    """
    Return positions as a list of ranges.

    Examples
    --------
    >>> in_ranges([7, 2, 5, 6])
    '2,5-7'
    """
    runs = groupby(enumerate(sorted(positions)), lambda one: one[1] - one[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(run) for _, run in runs)]
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ends)


def require_window(begin: Any, until: Any, window: Unavailable) -> None:
    """Raise an error unless a window ends after its beginning."""
    if not until > begin:
        raise SwflowError(
            f"unavailable: the window from {window['from']} until {window['until']} is empty; "
            "let it end after its beginning, or never: until: null"
        )


def _moment(value: Any, where: str) -> tuple[float | str, Any]:
    """Return a time, in seconds or a day as text; and in a form that compares with another one of its kind."""
    from swflow.values import day_or_moment

    if isinstance(value, date):
        value = str(value)
    if isinstance(value, str):
        day = day_or_moment(value, where)
        return value, day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SwflowError(f"{where}: {shown(value)}; expected seconds from the log's start or a day")
    seconds = value if isinstance(value, int) else float(value)
    if not abs(seconds) <= LATEST:
        raise SwflowError(f"{where}: {shown(seconds)} is not a time between {-LATEST:g} and {LATEST:g} seconds")
    return seconds, seconds


def _cluster(cluster: Any, where: str) -> Cluster:
    _require_keys(where, cluster, CLUSTER_OPTIONS, ("processors",))
    own = {
        name: checked(name, cluster[name], f"{where}: {name}")
        for name in CLUSTER_OPTIONS
        if name in OPTIONS and cluster.get(name) is not None
    }
    if cluster.get("partition") is not None:
        own["partition"] = _partitions(cluster["partition"], where)
    if cluster.get("resources"):
        own["resources"] = checked_resources(cluster["resources"], f"{where}: resources")
    return cast(Cluster, {"processors": _whole(cluster["processors"], f"{where}: processors")} | own)


def _partitions(value: Any, where: str) -> tuple[str, ...]:
    """Return the names of one or several partitions."""
    return _names(value, f"{where}: partition")


def _names(value: Any, where: str) -> tuple[str, ...]:
    """Return one or several names."""
    return tuple(_name(one, where) for one in (value if isinstance(value, list | tuple) else [value]))


def _nodes(groups: Iterable[Any], where: str) -> tuple[NodeGroup, ...]:
    found: list[NodeGroup] = []
    for group in groups:
        _require_keys(where, group, NODE_OPTIONS, ("count", "processors"))
        one: NodeGroup = {
            "count": _whole(group["count"], f"{where}: count"),
            "processors": _whole(group["processors"], f"{where}: processors"),
        }
        if group.get("weight") is not None:
            one["weight"] = _checked(Option("integer", "", least=0, most=2**32), group["weight"], f"{where}: weight")
        if group.get("features"):
            one["features"] = _names(group["features"], f"{where}: features")
        if group.get("resources"):
            one["resources"] = checked_resources(group["resources"], f"{where}: resources")
            if max(one["resources"].values()) > MOST_UNITS:
                raise SwflowError(f"{where}: resources: {one['resources']}; expected at most 2^31 units of a node")
        if group.get("partition") is not None:
            one["partition"] = _partitions(group["partition"], where)
        found.append(one)
    total = sum(group["count"] for group in found)
    if total > MOST_NODES:
        raise SwflowError(f"{where}: {total:,} nodes; expected at most {MOST_NODES:,}")
    return tuple(found)


def _name(value: Any, where: str) -> str:
    """Return a name or number of a user, group, queue or partition as text."""
    if isinstance(value, bool) or not isinstance(value, str | Integral) or not str(value).strip():
        raise SwflowError(f"{where}: {shown(value)}; expected a name or a number")
    return str(value).strip()


def _named(value: Any, where: str) -> Unchecked:
    """Return a mapping whose keys are names or numbers."""
    if not isinstance(value, Mapping):
        raise SwflowError(f"{where}: {shown(value)}; expected names with their values")
    return {_name(key, where): content for key, content in value.items()}


def _priority(value: Any, where: str) -> Priority:
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
    if 0 < found.get("calc_period", 0) < 1:
        raise SwflowError(f"{where}: calc_period: {shown(found['calc_period'])}; expected 0, or at least 1 second")
    for name, weight in _OF_WEIGHT.items():
        if found.get(name) and not found.get(weight):
            raise SwflowError(f"{where}: {name}: {weight} is 0; set it, or leave {name} out")
    return cast(Priority, found)


def _preemption(value: Any, where: str) -> Preemption:
    """Return who preempts whom, by QOS or by partition."""
    _require_keys(where, value, ("qos", *PREEMPTION), ())
    found: dict[str, Any] = {
        name: _checked(option, value[name], f"{where}: {name}")
        for name, option in PREEMPTION.items()
        if value.get(name) is not None
    }
    for key in ("qos_priorities", "partition"):
        for name, number in found.get(key, {}).items():
            if number != int(number):
                raise SwflowError(f"{where}: {key}: {name}: {shown(number)}; expected a whole number")
    if (value.get("qos") is None) == ("partition" not in found):
        raise SwflowError(f"{where}: {shown(dict(value))}; give either qos or partition")
    if value.get("qos") is not None:
        named = _named(value["qos"], f"{where}: qos")
        found["qos"] = {name: _names(others, f"{where}: qos: {name}") for name, others in named.items()}
        try:
            graphlib.TopologicalSorter(found["qos"]).prepare()
        except graphlib.CycleError as error:
            raise SwflowError(f"{where}: qos: {' preempts '.join(error.args[1][::-1])}; correct it") from None
    elif "qos_priorities" in found:
        raise SwflowError(f"{where}: qos_priorities: only preemption by qos uses them; leave them out")
    return cast(Preemption, found)


def _limits(value: Any, where: str) -> Limits:
    """Return the limits of each kind: jobs and processors of all, and by name."""
    _require_keys(where, value, LIMITED, ())
    found: dict[str, dict[str, int | Mapping[str, int]]] = {kind: {} for kind in LIMITED if value.get(kind) is not None}
    for kind, of_kind in found.items():
        known = LIMITS + USER_LIMITS if kind in WITH_USER_LIMITS else LIMITS
        if not isinstance(value[kind], Mapping):
            raise SwflowError(
                f"{where}: {kind}: {shown(value[kind])}; expected limits such as {{jobs: 10, processors: 64}}"
            )
        for name, limit in _named(value[kind], f"{where}: {kind}").items():
            here = f"{where}: {kind}: {name}"
            if isinstance(limit, Mapping):
                _require_keys(here, limit, known, ())
                of_kind[name] = {what: _whole(most, f"{here}: {what}") for what, most in limit.items()}
            elif name in known:
                of_kind[name] = _whole(limit, here)
            else:
                raise SwflowError(
                    f"{here}: {shown(limit)}; expected limits such as {{jobs: 10, processors: 64}}"
                    f"{suggest(name, known)}"
                )
    return found


def _accounts(value: Any, where: str) -> dict[str, Account]:
    """Return the keys of each account; parents that have no entry are at the top."""
    found: dict[str, Account] = {}
    for name, account in _named(value, where).items():
        _require_keys(f"{where}: {name}", account, Account.__annotations__, ())
        parent, share, here = account.get("parent"), account.get("share"), f"{where}: {name}"
        one: Account = {} if parent is None else {"parent": _name(parent, f"{here}: parent")}
        if share is not None:
            one["share"] = _checked(_SHARE, share, f"{here}: share")
        if account.get("users") is not None:
            one["users"] = _checked(replace(_SHARE, kind="weights"), account["users"], f"{here}: users")
        if account.get("usage") is not None:
            one["usage"] = _checked(_USAGE, account["usage"], f"{here}: usage")
        found[name] = one
    for name in found:
        if name in accounts_above(found, name)[1:]:
            raise SwflowError(f"{where}: {name}: it is above itself; correct a parent")
    return found


def accounts_above(accounts: Mapping[str, Account], name: str) -> list[str]:
    """
    Return the name of an account and of those above it, from below; a circle ends where it closes.

    Examples
    --------
    >>> accounts_above({"bio": {"parent": "science"}}, "bio")
    ['bio', 'science']
    """
    found = [name]
    while (above := accounts.get(found[-1], {}).get("parent")) is not None:
        found.append(above)
        if above in found[:-1]:
            break
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
