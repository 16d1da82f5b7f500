"""The nested options of a scheduler: their keys, the limits of these, and what must fit together."""

import contextlib
import graphlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from swflow.errors import SwflowError, shown
from swflow.scheduling.option_kinds import LATEST, MOST_WHOLE, Option
from swflow.values import MOST_UNITS, day_or_moment

#: The limits of each kind of account: by quantity for every account, and by name for one.
Limits = Mapping[str, Mapping[str, int | Mapping[str, int]]]

#: Processors, or nodes by position such as 5-8, that are unavailable: from and until are seconds since the log's start,
#: or days; None never ends.
Unavailable = TypedDict(
    "Unavailable",
    {"from": float | str, "until": float | str | None, "processors": NotRequired[int], "nodes": NotRequired[str]},
)


class Account(TypedDict, total=False):
    """A group in the tree of accounts, as `ACCOUNT` describes it."""

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
    """Consecutive nodes of a machine, as `NODE_GROUP` describes them."""

    count: int
    processors: int
    resources: Mapping[str, int]
    weight: int
    features: tuple[str, ...]
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
MOST_NODES, MOST_ON_NODE = 65_536, 2**31

#: The largest weight and factor of a priority. Weights of Slurm are below 2^32; those that place tiers of partitions
#: apart are larger. In floating point, sums of such weights are exact to 0.001 points.
MOST_POINTS = 1e12


def _key(kind: str, meaning: str, choices: Mapping[str, str] | None = None, **more: Any) -> Option:
    """Return a key that can be left out; the arguments are those of `Option`."""
    return Option(kind, meaning, choices or {}, **{"optional": True, **more})


def _number(meaning: str, **bounds: Any) -> Option:
    return _key("number", meaning, **bounds)


def _points(meaning: str) -> Option:
    return _number(meaning, least=0, most=MOST_POINTS)


def _named(meaning: str, each: Option) -> Option:
    return _key("named", meaning, each=each)


def _count(meaning: str) -> Option:
    return Option("integer", meaning, least=1, most=MOST_WHOLE)


# -- priority

_FACTORS = Option("number", least=0, most=MOST_POINTS)


def weights_with_factors(found: Any, where: str) -> Any:
    """Return the keys of `priority`, or raise an error for one without what it weighs."""
    for weight in ("partition", "qos"):
        factors = f"{weight}_factors"
        if bool(found.get(weight)) != bool(found.get(factors) and max(found[factors].values()) > 0):
            raise SwflowError(f"{where}: {weight} is a weight, and {factors} says of what; give both, or none")
    if 0 < found.get("calc_period", 0) < 1:
        raise SwflowError(f"{where}: calc_period: {shown(found['calc_period'])}; expected 0, or at least 1 second")
    for name, weight in OF_WEIGHT.items():
        if found.get(name) and not found.get(weight):
            raise SwflowError(f"{where}: {name}: {weight} is 0; set it, or leave {name} out")
    return found


#: The keys of `priority`: weights in points, parameters, and the priorities of partitions and QOS by name.
PRIORITY: dict[str, Option] = {
        "age": _points("The weight of the time for which a job is eligible."),
        "max_age": _number("Seconds after which age counts in full; 7 days by default.", above=0, most=LATEST),
        "fair_share": _points("The weight of fair share."),
        "fair_share_of": _key(
            "choice",
            "Whose usage and shares count for fair share.",
            {
                "user": "the user's",
                "group": "the group's",
                "association": "those of the user in the job's group, by `accounts` (classic fair share)",
                "fair-tree": "the same, by Slurm's Fair Tree",
            },
        ),
        "dampening": _number("Divide usage over share by this number.", above=0, most=1e9),
        "calc_period": _number("Seconds after which priorities and usage are computed again.", least=0, most=LATEST),
        "whole_periods": _key("flag", "Count usage until the last multiple of calc_period before a job ends."),
        "whole_points": _key("flag", "Round priorities down to whole points."),
        "size": _points("The weight of the job's processors over those of the machine."),
        "nodes": _key("integer", "With size: take the mean with the requested nodes over this number.", least=1,
                      most=MOST_NODES),
        "favor_small": _key("flag", "With size: small jobs instead of large ones come first."),
        "partition": _points("The weight of the job's partition."),
        "partition_factors": _named("The priorities of partitions by name; others have 0.", _FACTORS),
        "qos": _points("The weight of the job's QOS."),
        "qos_factors": _named("The priorities of QOS by name; others have 0.", _FACTORS),
}  # fmt: skip

#: The parameters of `priority`, to the weight or period that uses each.
OF_WEIGHT = {"max_age": "age", "fair_share_of": "fair_share", "dampening": "fair_share",
              "whole_periods": "calc_period", "nodes": "size", "favor_small": "size"}  # fmt: skip

# -- scheduler_parameters

#: The keys of `scheduler_parameters`, with Slurm's defaults. ``end_delay``, in which a job is launched and its end is
#: reported, is from logs of a Slurm 22.05 on one host.
SCHEDULER_PARAMETERS: dict[str, Option] = {
        "bf_interval": _key("integer", "Seconds from a cycle to the next; -1 makes no cycles.", least=-1, most=10_800,
                            default=30),
        "bf_window": _key("integer", "Minutes from a cycle after which jobs have no reservation.", least=1,
                          most=43_200, default=1440),
        "bf_resolution": _key("integer", "Seconds; reservations start and end at multiples of it.", least=1, most=3600,
                              default=60),
        "bf_max_job_test": _key("integer", "The jobs that a cycle tests.", least=1, most=1_000_000, default=500),
        "bf_max_job_user": _key("integer", "The jobs of a user that a cycle tests; 0 for all.", least=0,
                                most=1_000_000, default=0),
        "bf_max_job_part": _key("integer", "The jobs of a partition that a cycle tests; 0 for all.", least=0,
                                most=1_000_000, default=0),
        "default_queue_depth": _key("integer", "The jobs that are tested after an event.", least=1, most=1_000_000,
                                    default=100),
        "batch_sched_delay": _key("integer", "Seconds from the main scheduler's last pass to one after an event.",
                                  least=0, most=3600, default=3),
        "sched_interval": _key("integer", "Seconds between the main scheduler's passes that test all jobs.", least=1,
                               most=86_400, default=60),
        "end_delay": _number("Seconds from the end of a job until the scheduler has its processors.", least=0,
                             most=3600, default=0.1),
}  # fmt: skip

# -- preemption

#: What becomes of a preempted job.
_MODES = {"requeue": "it is queued again from the start", "cancel": "it ends"}


def one_order_of_preemption(found: Any, where: str) -> Any:
    """Return the keys of `preemption`, or raise an error for QOS that preempt each other."""
    if "qos" not in found and "qos_priorities" in found:
        raise SwflowError(f"{where}: qos_priorities: only preemption by qos uses them; leave them out")
    try:
        graphlib.TopologicalSorter(found.get("qos", {})).prepare()
    except graphlib.CycleError as error:
        raise SwflowError(f"{where}: qos: {' preempts '.join(error.args[1][::-1])}; correct it") from None
    return found


#: The keys of `preemption`, by the names of Slurm's parameters in brackets.
PREEMPTION: dict[str, Option] = {
        "mode": _key("choice", "What becomes of preempted jobs; requeue by default (PreemptMode).", _MODES),
        "modes": _named(
            "The same by the name of a QOS or partition; off: its jobs are not preempted.",
            Option("choice", choices=_MODES | {"off": "its jobs are not preempted"}),
        ),
        "qos_priorities": _named("The Priority of QOS, by name.", Option("integer", least=0, most=65_535)),
        "partition": _named(
            "The PriorityTier of partitions, by name; others have 1. Jobs of a lower tier are preempted.",
            Option("integer", least=0, most=65_535),
        ),
        "exempt_time": _number("Seconds for which a job runs before it can be preempted.", least=0, most=LATEST),
        "requeue_delay": _number(
            "Seconds from a preemption until the job is eligible again (cred_expire of AuthInfo, and 1 s).",
            least=0, most=LATEST, default=121,
        ),
        "qos": _named("The QOS that each QOS preempts.", Option("names")),
}  # fmt: skip

# -- limits

#: The kinds of accounts that limits apply to.
LIMITED = ("user", "group", "partition", "qos")

#: The columns of the job table whose sums over running jobs can be limited.
LIMITED_COLUMNS = ("gpus", "memory")

#: The limited quantities, and those of each user in a partition or QOS.
LIMITS = ("jobs", "processors", "processor_minutes", *LIMITED_COLUMNS)
USER_LIMITS, WITH_USER_LIMITS = tuple(f"user_{name}" for name in LIMITS), ("partition", "qos")

#: The key of the limits of named users in a group.
USERS = "users"

_QUANTITIES = {
    name: Option("integer", meaning, least=0, most=MOST_WHOLE)
    for name, meaning in {
        "jobs": "The most running jobs; 0 allows none.",
        "processors": "The most processors of running jobs.",
        "processor_minutes": "The most processor-minutes that are left to running jobs.",
        "gpus": "The most GPUs of running jobs.",
        "memory": "The most memory of running jobs (MB).",
        "user_jobs": "The most running jobs of each user.",
        "user_processors": "The most processors of the running jobs of each user.",
        "user_processor_minutes": "The most processor-minutes that are left to the running jobs of each user.",
        "user_gpus": "The most GPUs of the running jobs of each user.",
        "user_memory": "The most memory of the running jobs of each user (MB).",
    }.items()
}

_LIMITS_EXPECTED = "limits such as {jobs: 10, processors: 64}"


def _limits_of(kind: str) -> Option:
    known = {name: one for name, one in _QUANTITIES.items() if kind in WITH_USER_LIMITS or name in LIMITS}
    users = Option("named", "Limits of named users in the group.", each=Option("keys", keys=known))
    named = Option("keys", keys=known | ({USERS: users} if kind == "group" else {}))
    meaning = f"Limits of every {kind}, and by name of one."
    return _key("keys", meaning, keys=known, others=named, expected=_LIMITS_EXPECTED)


#: The keys of `limits`.
LIMITS_OF: dict[str, Option] = {kind: _limits_of(kind) for kind in LIMITED}

# -- accounts


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


def one_tree(found: Any, where: str) -> Any:
    """Return accounts, or raise an error for one that is above itself."""
    for name in found:
        if name in accounts_above(found, name)[1:]:
            raise SwflowError(f"{where}: {name}: it is above itself; correct a parent")
    return found


#: A share of a user or group; accounts can have shares of 0.
SHARE = Option("number", above=0, most=1e9)

#: An account of `accounts`.
ACCOUNT = Option(
    "keys",
    keys={
        "parent": _key("name", "The group above; without an entry of its own it is at the top."),
        "share": _number("The share of the group in the one above.", least=0, most=1e9),
        "users": _named(
            "The shares of the group's users, by name; others have 1.", Option("number", least=0, most=1e9)
        ),
        "usage": _named(
            "The processor-seconds of users before the first submission.", Option("number", least=0, most=1e18)
        ),
    },
)

# -- resources, windows, nodes and clusters

#: The units of a resource of a machine.
UNITS = Option("integer", least=0, most=MOST_UNITS)


def require_window(begin: Any, until: Any, window: Unavailable) -> None:
    """Raise an error unless a window ends after its beginning."""
    if not until > begin:
        raise SwflowError(
            f"unavailable: the window from {window['from']} until {window['until']} is empty; "
            "let it end after its beginning, or never: until: null"
        )


def _comparable(moment: float | str) -> Any:
    """Return seconds, or a day or time as a datetime."""
    if not isinstance(moment, str):
        return moment
    day = day_or_moment(moment, "unavailable")
    return day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)


def _window_with_an_end(window: Any, where: str) -> Any:
    if window["until"] is not None:
        # Seconds and a day, or days with and without a time zone, compare only when the log's start is known.
        with contextlib.suppress(TypeError):
            require_window(_comparable(window["from"]), _comparable(window["until"]), window)
    return window


#: A window of `unavailable`.
WINDOW = Option(
    "keys",
    keys={
        "from": Option("moment", "Seconds since the start of the log, or a day."),
        "until": _key("moment", "The same; null never ends."),
        "processors": _key("integer", "The processors that are unavailable.", least=1, most=MOST_WHOLE),
        "nodes": _key("positions", "The nodes that are unavailable, by position, such as 5-8,11."),
    },
    needed=("from", "until"),
    either=("processors", "nodes"),
    rule=_window_with_an_end,
)


def _without_empty(group: Any, where: str) -> Any:
    """Return the keys of a cluster or a group of nodes that are not empty, which are those of all."""
    return {name: value for name, value in group.items() if value not in ((), {})}


def few_nodes(groups: Any, where: str) -> Any:
    """Return groups of nodes, or raise an error if they have too many."""
    total = sum(group["count"] for group in groups)
    if total > MOST_NODES:
        raise SwflowError(f"{where}: {total:,} nodes; expected at most {MOST_NODES:,}")
    return groups


#: A group of `nodes`.
NODE_GROUP = Option(
    "keys",
    keys={
        "count": _count("The number of nodes."),
        "processors": _count("The processors of each node."),
        "weight": _key("integer", "Jobs take nodes of the lowest weight first; 1 by default.", least=0, most=2**32),
        "features": _key("names", "Names that the constraints of jobs use."),
        "resources": _key("units", "The units of each node.", each=replace(UNITS, most=MOST_ON_NODE)),
        "partition": _key("names", "The partitions that may use the nodes; all by default."),
    },
    needed=("count", "processors"),
    rule=_without_empty,
)


def cluster_with(options: Mapping[str, Option]) -> Option:
    """Return a cluster of `clusters`, which can have options of its own queue."""
    keys = {
        "processors": _count("The processors of the cluster."),
        **{name: one if one.optional else replace(one, optional=True) for name, one in options.items()},
        "partition": _key("names", "With dispatch partition: the partitions whose jobs it gets."),
        "resources": _key("units", "Units of resources besides processors.", each=UNITS),
    }
    return Option("keys", keys=keys, needed=("processors",), rule=_without_empty)
