"""The named orders of the queue, and the variables and functions that a formula may use."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from swflow.scheduling.state.variables import Variables

#: The pseudo-scheduler that replays the start times that the log recorded.
LOG = "log"

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
    """A named order of the queue: the smallest value is served first, ties by submit time, then job id."""

    formula: str  # its value for a job
    meaning: str  # a description, or the source


#: The named orders. A name stands for its formula; a new order is a line here.
ORDERS: dict[str, NamedOrder] = {
    "fcfs": NamedOrder("submit_time", "first come, first served"),
    "lcfs": NamedOrder("-submit_time", "last come, first served"),
    "sjf": NamedOrder("estimate", "shortest job first"),
    "ljf": NamedOrder("-estimate", "longest job first"),
    "smallest-first": NamedOrder("processors", "narrowest job first"),
    "largest-first": NamedOrder("-processors", "widest job first"),
    "saf": NamedOrder("estimate * processors", "smallest area first"),
    "laf": NamedOrder("-estimate * processors", "largest area first"),
    "wfp3": NamedOrder(
        "-(wait / estimate) ** 3 * processors", f"{_TANG}: wide jobs that wait long relative to their length"
    ),
    "unicef": NamedOrder(
        "-wait / (log2(max(processors, 2)) * estimate)",
        "the same paper: small and short jobs early; one processor counts as two, as log2(1) is 0",
    ),
    "expansion-factor": NamedOrder("-(wait + estimate) / estimate", "largest expected slowdown first"),
    "f1": NamedOrder("log10(estimate) * processors + 870 * log10(submit_time)", _CARASTAN),
    "f2": NamedOrder("sqrt(estimate) * processors + 25600 * log10(submit_time)", "the same"),
    "f3": NamedOrder("estimate * processors + 6860000 * log10(submit_time)", "the same"),
    "f4": NamedOrder("estimate * sqrt(processors) + 530000 * log10(submit_time)", "the same"),
    "fair-share": NamedOrder("user_usage / user_share", "users with the least usage of their share first"),
    "slurm-multifactor": NamedOrder(
        "-(1000 * min(1, wait / 604800) + 10000 * 2 ** (-user_usage / user_share) + 1000 * processors / "
        "machine_processors)",
        "Slurm's multifactor priority, with the weights of its manual's example; `priority` has them",
    ),
}

#: The order whose formula is built from the option `priority`.
MULTIFACTOR = "slurm-multifactor"

#: How many resources of a machine the formulas of a scheduler may mention.
MOST_NAMED = 4

#: The arguments of every formula, in order.
PARAMETERS = Variables._fields

#: The variables that follow from the time and from what every job has: the first four parameters.
PLAIN = frozenset({"now", "wait", "submit_time", "estimate", "processors"})

#: The parameters of job ownership.
OF_ACCOUNTS = (
    "partition_id", "user_usage", "group_usage", "user_share", "group_share", "fair_tree", "association_usage",
    "machine_processors",
)  # fmt: skip

#: Those that need the tree of accounts.
OF_TREE = frozenset({"fair_tree", "association_usage"})

#: Those that depend on past usage.
OF_USAGE = OF_TREE | {"user_usage", "group_usage"}

#: The names that a formula may use, besides those of resources.
VARIABLES = (*PARAMETERS[:2], "wait", *PARAMETERS[2:-MOST_NAMED])

#: The variables that change while a job waits, or differ between machines.
CHANGING = ("now", "wait", *OF_USAGE, "machine_processors", "dominant_share")

#: The functions that a formula may call; `min` and `max` take two arguments or more, the others one.
FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "abs": abs, "log": math.log, "log2": math.log2, "log10": math.log10, "sqrt": math.sqrt,
    "exp": math.exp,
}  # fmt: skip
