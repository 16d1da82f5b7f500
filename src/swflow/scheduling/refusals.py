"""What a scheduler refuses: options that do not go together or have no effect, and columns that it does not support."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from swflow.scheduling.options import OPTIONS, QUEUE_OPTIONS, SHARED_ALLOCATIONS, Queue
from swflow.scheduling.orders.vocabulary import LOG, MULTIFACTOR, OF_ACCOUNTS, OF_TREE, OF_USAGE
from swflow.scheduling.settings import Settings

#: The options that go with a policy plugin, and with the recorded schedule.
_WITH_POLICY = ("policy", "policy_options", "estimates", "prediction", "without_status")
_WITH_LOG = ("order", "without_status")

#: The backfills in which jobs beyond a limit are skipped.
_SKIPPING = frozenset({"none", "easy", "slurm"})

#: The columns of jobs that leave the queue, or are submitted, because of an event.
EVENT_COLUMNS = ("depends_on", "cancelled_after", "array_limit")


class Refusal(NamedTuple):
    """
    A reason to refuse a scheduler.

    The ``error`` begins with the first of the ``options``, or with the column that the scheduler does not support. A
    change of any of the options, or a workload without the ``columns``, can make the scheduler valid.
    """

    options: tuple[str, ...]
    error: str
    columns: tuple[str, ...] = ()


#: Options, separated by blanks, and what is wrong with them.
_Conflicts = Iterator[tuple[str, str]]


def refusals(one: Settings) -> Iterator[Refusal]:
    """Yield the refusals of a scheduler, whatever its workload, in the order in which they are checked."""
    for check in _CHECKS:
        for options, reason in check(one):
            first, *_ = named = options.split()
            yield Refusal(tuple(named), f"{first}: {reason}")
    if _gives(one, "resources"):
        yield from (refusal for column, refusal in unsupported_columns(one) if column == "resources")


def unsupported_columns(one: Settings) -> Iterator[tuple[str, Refusal]]:
    """
    Yield the columns that a scheduler does not support, with the refusal of a workload that has values in them.

    The name "resources" stands for counted resources besides processors.
    """
    for refused, options, reason in _of_columns(one):
        first, *_ = named = options.split()
        for column in refused:
            said = first if column == "resources" else f"column {column}"
            yield column, Refusal(tuple(named), f"{said}: {reason}", refused)


def _beside_policy(one: Settings) -> _Conflicts:
    if one.policy is None:
        if one.policy_options is not None:
            yield "policy_options policy", "there is no policy; leave them out"
        return
    for name in OPTIONS:
        if name not in _WITH_POLICY and _is_changed(one, name):
            yield f"{name} policy", f"not used by the policy {one.policy}; leave {name} out"
    if one.prediction == "system":
        yield "prediction policy", f"not available to the policy {one.policy}; choose another prediction"


def _beside_log(one: Settings) -> _Conflicts:
    for name in OPTIONS:
        if one.order == LOG and name not in _WITH_LOG and _is_changed(one, name):
            yield f"{name} order", f"the recorded schedule (order log) is not planned; leave {name} out"


def _backfills(one: Settings) -> set[str]:
    return {queue.backfill for queue in one.queues}


def _of_machine(one: Settings) -> _Conflicts:
    """Yield the options that counted processors, numbered ones, or nodes lack."""
    counts, backfills, moldable = not one.is_numbered, _backfills(one), one.shapes != "requested"
    if counts and len(one.allocations) > 1:
        yield "clusters allocation", "processors are counted at all clusters or at none; give each an allocation"
    if counts and one.places:
        yield "places allocation", "processors are not numbered with allocation count; choose another allocation"
    if counts and one.runtime == "shared":
        yield "runtime allocation", "shared needs to know which jobs are on which node; choose another allocation"
    if counts and "reservation-table" in backfills:
        yield "backfill allocation clusters", "a reservation-table has numbered processors; choose another allocation"
    if "slurm" in backfills and (one.allocations != {"count"} or moldable or one.event_order != "batch"):
        yield (
            "backfill allocation shapes event_order clusters",
            "slurm needs allocation count, shapes requested and event_order batch",
        )
    if "slurm" in backfills and len(backfills) > 1:
        yield "clusters backfill", "backfill slurm is for all clusters or for none; give each a backfill"
    if one.nodes and (one.backfill != "slurm" or one.clusters):
        yield "nodes backfill clusters", "only backfill slurm with allocation count and no clusters uses them"
    if not one.nodes and any("nodes" in window for window in one.unavailable):
        yield "unavailable nodes", "the machine has no nodes; give the option nodes, or processors in each window"
    if one.preemption is not None and not one.nodes:
        yield "preemption nodes", "only jobs on nodes are preempted; give nodes, or leave it out"
    if one.preemption is not None and one.prediction == "system":
        yield "preemption prediction", "jobs that run again are not predicted; choose another prediction"


def _of_sharing(one: Settings) -> _Conflicts:
    """Yield the options that are not available where jobs share the resources of their nodes."""
    sharing, plans_little = not one.allocations.isdisjoint(SHARED_ALLOCATIONS), _backfills(one) <= {"none", "easy"}
    if one.shares and one.event_order != "batch":
        yield "event_order runtime allocation", "shared resources need batch, since their shadows last for some time"
    reserves_more = any(queue.backfill == "easy" and queue.reservations > 1 for queue in one.queues)
    if sharing and (reserves_more or not plans_little or one.unavailable):
        yield (
            "allocation backfill reservations unavailable clusters",
            "least-shared and threshold need backfill none or easy with one reservation, and no unavailable windows",
        )
    if sharing and (one.shapes == "submit" or one.dispatch == "earliest-start"):
        yield (
            "allocation shapes dispatch",
            "least-shared and threshold cannot plan the whole queue; choose shapes at the start, or another dispatch",
        )


def _of_clusters(one: Settings) -> _Conflicts:
    """Yield the options that several clusters lack."""
    moldable = one.shapes != "requested"
    if one.clusters and one.unavailable:
        yield "clusters unavailable", "clusters cannot have unavailable windows"
    by_partition = one.dispatch == "partition"
    if by_partition and not (one.clusters and all("partition" in cluster for cluster in one.clusters)):
        yield "dispatch clusters", "partition needs clusters, each with the partition that it serves"
    if by_partition and moldable:
        yield "dispatch shapes", "moldable jobs do not stay in a partition; leave one of them out"
    if not by_partition and _gives(one, "partition"):
        yield "clusters dispatch", "a cluster's partition is for dispatch: partition"


def _of_owners(one: Settings) -> _Conflicts:
    """Yield the options of users and accounts, and of resources, that others rule out."""
    counts, backfills, moldable = not one.is_numbered, _backfills(one), one.shapes != "requested"
    if any(queue.limits for queue in one.queues) and (one.shares or moldable or not backfills <= _SKIPPING):
        yield (
            "limits backfill runtime allocation shapes clusters",
            "skipped jobs can have no reservation at their submission; use backfill none, easy or slurm, nodes whose "
            "jobs share nothing, and shapes requested",
        )
    if not counts and (of_tree := _variables(one) & OF_TREE):
        yield "order backfill_order priority allocation clusters", f"{min(of_tree)} needs allocation count"
    if one.shares and not _variables(one).isdisjoint(OF_ACCOUNTS):
        yield (
            "order backfill_order runtime allocation clusters",
            "usage, shares, partition_id and machine_processors are known only where jobs share nothing on their nodes",
        )
    if (one.clusters or one.nodes) and any(units is not None for units in (one.resources or {}).values()):
        yield (
            "resources clusters nodes",
            "these are units of one machine; give each cluster, or each group of nodes, its own, such as {processors: "
            "64, resources: {gpus: 16}}",
        )
    if one.feedback != "none" and (one.clusters or one.allocations != {"count"}):
        yield "feedback clusters allocation", "user feedback needs allocation count and one machine"
    if one.feedback == "leaving" and one.preemption is not None:
        yield "feedback preemption", "users leave after a response, but preempted jobs run again; use sessions"
    if one.feedback != "none" and moldable:
        yield "feedback shapes", "user feedback needs the requested shapes; leave shapes out"


def _of_shapes(one: Settings) -> _Conflicts:
    """Yield the options that are not available if shapes are chosen."""
    moldable = one.shapes != "requested"
    if one.shapes == "start" and "reservation-table" in _backfills(one):
        yield (
            "shapes backfill clusters",
            "a reservation-table has jobs of one shape; choose shapes when jobs are submitted",
        )
    if moldable and one.runtime == "shared" and (one.shapes == "start" or one.estimates == "kill"):
        yield (
            "shapes runtime estimates",
            "with shared run times choose shapes when jobs are submitted, and raise estimates",
        )
    if moldable and one.prediction == "system":
        yield "shapes prediction", "the run times of other shapes cannot be predicted; choose another prediction"


def _without_effect(one: Settings) -> _Conflicts:
    """Yield the options that no queue uses."""
    for name in QUEUE_OPTIONS:
        if one.clusters and _is_changed(one, name) and all(name in cluster for cluster in one.clusters):
            yield f"{name} clusters", f"every cluster has its own; leave {name} out"
    if _is_useless(one, "reservations", lambda queue: queue.backfill == "easy"):
        yield "reservations backfill clusters", "only backfill easy uses it; choose that, or leave it out"
    if one.backfill_starts is not None and all(queue.backfill != "easy" for queue in one.queues):
        yield "backfill_starts backfill clusters", "only backfill easy uses it; choose that, or leave it out"
    if one.scheduler_parameters is not None and all(queue.backfill != "slurm" for queue in one.queues):
        yield (
            "scheduler_parameters backfill clusters",
            "only backfill slurm uses them; choose that, or leave them out",
        )
    if _is_useless(one, "backfill_order", lambda queue: queue.backfill in ("easy", "reservation-table")):
        yield (
            "backfill_order backfill clusters",
            "only backfill easy and reservation-table use it; choose one of them, or leave it out",
        )
    if _is_changed(one, "penalty") and not one.shares:
        yield (
            "penalty runtime allocation",
            "jobs share nothing on their nodes; choose runtime shared, or leave it out",
        )
    if _is_changed(one, "sharing_limit") and "threshold" not in one.allocations:
        yield "sharing_limit allocation clusters", "only allocation threshold uses it; choose that, or leave it out"
    if _is_changed(one, "dispatch") and not one.clusters:
        yield "dispatch clusters", "there are no clusters; give some, or leave it out"


def _unused_by_orders(one: Settings) -> _Conflicts:
    """Yield the options of job ownership that no order uses."""
    if one.half_life is not None and _variables(one).isdisjoint(OF_USAGE):
        yield (
            "half_life order backfill_order priority",
            "no order uses user_usage, group_usage, association_usage or fair_tree; choose fair-share, or leave it out",
        )
    for kind in ("user", "group"):
        if _is_changed(one, f"{kind}_shares") and f"{kind}_share" not in _variables(one):
            yield (
                f"{kind}_shares order backfill_order priority",
                f"no order uses {kind}_share; choose one that does, or leave it out",
            )
    if one.priority is not None and MULTIFACTOR not in one.orders:
        yield (
            "priority order backfill_order clusters",
            f"its weights are for order {MULTIFACTOR}, which is not used; leave it out",
        )
    has_tree, given = not _variables(one).isdisjoint(OF_TREE), set[str]().union(*(one.accounts or {}).values())
    uses_usage = not _variables(one).isdisjoint(OF_USAGE)
    is_used = has_tree or (uses_usage and "usage" in given)
    if one.accounts is not None and not (is_used or any("group" in (queue.limits or {}) for queue in one.queues)):
        yield (
            "accounts limits clusters priority order backfill_order",
            "no group has limits, and no order uses association_usage or fair_tree; choose one, or leave it out",
        )
    if "usage" in given and not uses_usage:
        yield "accounts priority order backfill_order", "no order uses usage; choose fair-share, or leave usage out"
    if not has_tree and given & {"share", "users"}:
        yield (
            "accounts priority order backfill_order",
            "no order uses shares in accounts; choose fair_share_of: association or fair-tree, or leave them out",
        )


def _unused_by_shapes(one: Settings) -> _Conflicts:
    """Yield the options of shapes that are not used."""
    if _is_changed(one, "shape_choice") and one.shapes == "requested":
        yield (
            "shape_choice shapes",
            "jobs have their requested shapes; choose shapes submit or start, or leave it out",
        )
    if _is_changed(one, "efficiency") and one.shape_choice != "efficient":
        yield "efficiency shape_choice", "only shape_choice efficient uses it; choose that, or leave it out"


#: The checks of options, in their order.
_CHECKS = (
    _beside_policy, _beside_log, _of_machine, _of_sharing, _of_clusters, _of_owners, _of_shapes, _without_effect,
    _unused_by_orders, _unused_by_shapes,
)  # fmt: skip


def _of_columns(one: Settings) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield the columns that a scheduler does not support, each with options and the reason."""
    if one.allocations != {"count"}:
        machine = (
            "machines with resources have counted processors; use allocation count, or a machine without resources"
        )
        yield ("resources",), "allocation clusters", machine
        yield EVENT_COLUMNS, "allocation clusters", "needs allocation count"
    if one.policy is not None:
        alone = (
            "a policy plugin decides by processors alone; use an order and a backfill, or a machine without resources"
        )
        yield ("resources",), "policy", alone
        yield EVENT_COLUMNS, "policy", "is not available to a policy plugin"
    if one.shapes != "requested":
        yield EVENT_COLUMNS, "shapes", "needs shapes requested"
    if one.feedback != "none":
        yield ("depends_on",), "feedback", "does not go with feedback; leave one of them out"
    if any(queue.backfill not in _SKIPPING for queue in one.queues):
        yield ("array_limit",), "backfill clusters", "needs backfill none, easy or slurm"
    if len(one.queues) > 1 and one.dispatch != "partition":
        yield ("array_limit",), "dispatch clusters", "needs one machine or dispatch partition"


# -- helpers


def _is_changed(one: Settings, name: str) -> bool:
    return bool(getattr(one, name) != OPTIONS[name].default)


def _gives(one: Settings, name: str) -> bool:
    """Return whether a cluster has an option of its own."""
    return any(name in cluster for cluster in one.clusters)


def _is_useless(one: Settings, name: str, uses: "Callable[[Queue], bool]") -> bool:
    """Return whether an option of a queue is given for a queue that does not use it, or for none that does."""
    own = [queue for queue, cluster in zip(one.queues, one.clusters, strict=False) if name in cluster]
    return (_is_changed(one, name) and not any(map(uses, one.queues))) or not all(map(uses, own))


def _variables(one: Settings) -> set[str]:
    """Return the variables that the orders of a scheduler mention."""
    from swflow.scheduling.orders.keys import mentioned  # which imports NumPy

    orders = set(one.orders)
    found: set[str] = set()
    if one.priority is not None and MULTIFACTOR in orders:
        orders.remove(MULTIFACTOR)
        of = one.priority.get("fair_share_of", "user")
        of_tree = {"fair-tree": {"fair_tree"}, "association": {"association_usage"}}
        of_shares = of_tree.get(of, {f"{of}_usage", f"{of}_share"})
        found = of_shares if one.priority.get("fair_share") else set()
    return found.union(*map(mentioned, orders))
