"""The table of a scheduler's options: their meaning, their values, and the combinations that are refused."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NotRequired, TypedDict

from swflow.scheduling.orders.vocabulary import ORDERS

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
            "distinct": "the users' estimates, each up to a second longer so that no two jobs are planned to end at "
            "once; easy then counts the ends one by one for its reservation (Mu'alem & Feitelson 2001)",
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
        "in a partition or QOS (user_jobs and so on), or of a named user in a group, such as "
        "{group: {physics: {users: {alice: {jobs: 5}}}}}; jobs beyond it are skipped.",
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
        "plugin",
        "A class that decides which jobs start: module:Name, file.py:Name, or the name that a package gives it.",
        optional=True,
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

_POINTS = SHARE = Option("number", "", least=0, most=1e9)

USAGE = Option("weights", "", least=0, most=1e18)

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
OF_WEIGHT = {"max_age": "age", "fair_share_of": "fair_share", "dampening": "fair_share",
              "whole_periods": "calc_period", "nodes": "size", "favor_small": "size"}  # fmt: skip

#: The allocations by the resources that the processes of a node share.
SHARED_ALLOCATIONS = frozenset({"least-shared", "threshold"})

#: The kinds of accounts that limits apply to, the limited quantities, and those of each user in a partition or QOS.
LIMITED, LIMITS = ("user", "group", "partition", "qos"), ("jobs", "processors", "processor_minutes")

#: The key of the limits of named users in a group.
USERS = "users"

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
