"""The table of a scheduler's options: their meanings and values; the keys of nested ones are in `nested_options`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from swflow.scheduling.nested_options import (
    ACCOUNT,
    LIMITS_OF,
    NODE_GROUP,
    PREEMPTION,
    PRIORITY,
    SCHEDULER_PARAMETERS,
    SHARE,
    UNITS,
    WINDOW,
    Account,
    Cluster,
    Limits,
    NodeGroup,
    Preemption,
    Priority,
    Unavailable,
    cluster_with,
    few_nodes,
    one_order_of_preemption,
    one_tree,
    weights_with_factors,
)
from swflow.scheduling.option_kinds import Option
from swflow.scheduling.orders.vocabulary import ORDERS


def option(kind: str, meaning: str, choices: Mapping[str, str] | None = None, **more: Any) -> Any:
    """Return a field of `Options`; the arguments are those of `Option`."""
    found = Option(kind, meaning, choices or {}, **more)
    return field(default=found.default, metadata={"option": found})


@dataclass(frozen=True)
class Queue:
    """The options of a queue, which the machine and each of several clusters have."""

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
    backfill_order: str | Callable[..., float] | None = option(
        "order", "The order in which jobs are tried for backfilling; by default that of the queue.", optional=True
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
    limits: Limits | None = option(
        "keys",
        "The maximum of running jobs, their processors and processor_minutes (left to them), such as {user: "
        "{jobs: 10}, partition: {debug: {processors: 64}}}, and of each user in a partition or QOS (user_jobs and so "
        "on), or of a named user in a group, such as {group: {physics: {users: {alice: {jobs: 5}}}}}; jobs beyond it "
        "are skipped.",
        keys=LIMITS_OF,
        optional=True,
    )


def _options_of(declared: type) -> dict[str, Option]:
    return {one.name: one.metadata["option"] for one in fields(declared)}


#: A cluster of `clusters`.
CLUSTER = cluster_with(_options_of(Queue))


@dataclass(frozen=True)
class Options(Queue):
    """The options of a scheduler, from whose declarations the command's help and the config's schema follow."""

    backfill_starts: int | None = option(
        "integer",
        "How many jobs a pass of backfill easy starts ahead of others: 1 as in Mu'alem & Feitelson 2001, to the "
        "letter; by default all that fit.",
        least=1,
        optional=True,
    )
    scheduler_parameters: Mapping[str, float] | None = option(
        "keys",
        "The parameters of backfill slurm, by their names and units in slurm.conf, and end_delay.",
        keys=SCHEDULER_PARAMETERS,
        optional=True,
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
        "The penalty of an overloaded node: linear, printed, forgets-shadows, at-start, or a formula of usage and "
        "capacity.",
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
        "list",
        "Windows in which the processors with the highest numbers are unavailable, or nodes by position: nodes: 5-8.",
        each=WINDOW,
        expected="a list of windows",
        default=(),
    )
    nodes: tuple[NodeGroup, ...] = option(
        "list",
        "With backfill slurm: groups of the machine's nodes, in their order, such as {count: 6, processors: 4, "
        "resources: {gpus: 2}, weight: 10, features: [ib], partition: [main]}; jobs are on particular nodes that "
        "satisfy their constraint_id, as many as their requested_nodes, those of the lowest weight first, their "
        "resources are spread over their processors, and cycles reserve whole nodes. By default "
        "processors are counted.",
        each=NODE_GROUP,
        rule=few_nodes,
        expected="a list of groups of nodes",
        default=(),
    )
    preemption: Preemption | None = option(
        "keys",
        "With nodes: which running jobs a job that cannot start preempts: those of other QOS, such as {mode: requeue, "
        "qos: {high: [normal, low]}}, or those of partitions of lower tiers, such as {mode: cancel, partition: "
        "{urgent: 2}}.",
        keys=PREEMPTION,
        either=("qos", "partition"),
        rule=one_order_of_preemption,
        optional=True,
    )
    clusters: tuple[Cluster, ...] = option(
        "list",
        "Several machines instead of one, each with its own queue.",
        each=CLUSTER,
        expected="a list of clusters",
        default=(),
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
        "named",
        "The shares of users, by name or number, such as {alice: 3}; others have 1.",
        each=SHARE,
        optional=True,
    )
    group_shares: Mapping[str, float] | None = option(
        "named", "The shares of groups, by name or number; others have 1.", each=SHARE, optional=True
    )
    priority: Priority | None = option(
        "keys",
        "The weights of order slurm-multifactor, in points, and their parameters.",
        keys=PRIORITY,
        rule=weights_with_factors,
        optional=True,
    )
    accounts: Mapping[str, Account] | None = option(
        "named",
        "The groups of a site as a tree, such as {physics: {parent: science, share: 2, users: {alice: 3}}}: jobs of a "
        "group count towards the limits of the groups above it; fair share of associations and the fair tree use these "
        "shares, others are 1. Fair share begins with the usage of users, such as {physics: {usage: {alice: 3600}}} "
        "(processor-seconds).",
        each=ACCOUNT,
        rule=one_tree,
        optional=True,
    )
    resources: Mapping[str, int | None] | None = option(
        "units",
        "The machine's units of each resource besides processors, such as {gpus: 512, memory: 4000000} (MB); a job "
        "occupies as many as its column of that name states. Resources that are not given are those of the workload's "
        "machine; null leaves one out.",
        each=replace(UNITS, optional=True),
        optional=True,
    )
    without_status: tuple[int, ...] = option(
        "list",
        "Leave out jobs of these SWF statuses (0 failed, 1 completed, 5 cancelled).",
        each=Option("integer"),
        expected="a list of whole numbers",
        default=(),
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


#: The options of a scheduler, and of a queue, by their names.
OPTIONS, QUEUE_OPTIONS = _options_of(Options), _options_of(Queue)


def _documented() -> Iterator[str]:
    """Yield the lines of the docstring: each option, and keys of nested ones that no earlier line describes."""
    described = set()
    for name, one in OPTIONS.items():
        described.add(one.meaning)
        yield f"    {name} : {one.kind}"
        yield f"        {' '.join(one.help.split())}"
        keys = []
        for path, part in one.parts():
            if part.meaning not in described:
                described.add(part.meaning)
                keys.append(f"        - ``{': '.join(path)}`` ({part.kind}): {part.meaning}")
        yield from ("", *keys, "") if keys else ()


Options.__doc__ = f"{Options.__doc__}\n\n    Parameters\n    ----------\n" + "\n".join(_documented())

#: The keys of a cluster.
CLUSTER_OPTIONS = tuple(CLUSTER.keys)

#: The choices of each option that has some, with their meanings.
CHOICES: dict[str, Mapping[str, str]] = {name: option.choices for name, option in OPTIONS.items() if option.choices}

#: The allocations by the resources that the processes of a node share.
SHARED_ALLOCATIONS = frozenset({"least-shared", "threshold"})


def help_of(name: str) -> str:
    """
    Return the help text of an option: its meaning and its values.

    Examples
    --------
    >>> help_of("runtime")
    'How long jobs run: trace, shared.'
    """
    return OPTIONS[name].help
