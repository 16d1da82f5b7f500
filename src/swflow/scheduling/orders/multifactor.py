"""Slurm's multifactor priority as a formula of the queue's order."""

from collections.abc import Callable
from typing import Any

from swflow.scheduling.nested_options import Priority
from swflow.scheduling.orders.vocabulary import MULTIFACTOR


def multifactor(priority: Priority, number_of: Callable[[str, str], int]) -> str:
    """
    Return Slurm's multifactor priority as a formula; it is negative, since the smallest value is served first.

    Age counts up to ``max_age``; the fair-share factor is that of the fair tree, or 2 to the power of minus usage over
    share (over the damping) of the user, the group, or the association of both; the size factor is the share of the
    machine's processors, or with ``nodes`` the mean of that and of the share of nodes; partitions and QOS count by
    their priority over the largest. Whole points are rounded down, to at least 1 (`_get_priority_internal` in Slurm's
    priority_multifactor.c).

    ``priority`` has keys of `swflow.scheduling.nested_options.PRIORITY`; a missing weight is 0. ``number_of`` returns
    the number of a ``partition`` or ``qos``, given that word and the name; a negative number is that of no job.

    References
    ----------
    SchedMD, "Multifactor Priority Plugin", "Classic Fairshare Algorithm" and "Fair Tree Fairshare Algorithm", Slurm's
    manual (slurm.schedmd.com/priority_multifactor.html, classic_fair_share.html, fair_tree.html).

    Examples
    --------
    >>> multifactor({"age": 1000, "fair_share": 500, "max_age": 86400}, lambda kind, name: 0)
    '-(1000 * min(1, wait / 86400) + 500 * 2 ** (-user_usage / user_share))'
    >>> multifactor({"partition": 10, "partition_factors": {"a": 1, "b": 4}}, lambda kind, name: ord(name))
    '-(10 * max(0.25 * (partition_id == 97), 1.0 * (partition_id == 98)))'
    """
    who = priority.get("fair_share_of", "user")
    damping = priority.get("dampening", 1)
    size = "processors / machine_processors"
    if "nodes" in priority:
        size = f"((requested_nodes / {priority['nodes']} + {size}) / 2)"
    ratio = "association_usage" if who == "association" else f"{who}_usage / {who}_share"
    classic = f"2 ** (-{ratio}{f' / {damping!r}' if damping != 1 else ''})"
    factors = {
        "age": f"min(1, wait / {priority.get('max_age', 604800)!r})",
        "fair_share": "fair_tree" if who == "fair-tree" else classic,
        "size": f"(1 - {size})" if priority.get("favor_small") else size,
    }
    of_partition, of_qos = priority.get("partition_factors", {}), priority.get("qos_factors", {})
    for kind, column, points in (("partition", "partition_id", of_partition), ("qos", "queue_id", of_qos)):
        numbers = {name: number_of(kind, name) for name in points}
        largest = max(points.values(), default=0) or 1
        each = [
            f"{points[name] / largest!r} * ({column} == {number})" for name, number in numbers.items() if number >= 0
        ]
        factors[kind] = f"max({', '.join(each if len(each) > 1 else [*each, '0'])})" if each else "0"
    terms = [f"{priority.get(name)!r} * {factor}" for name, factor in factors.items() if priority.get(name)]
    if not terms:
        return "0"
    total = f"({' + '.join(terms)})"
    return f"-max(1, {total} // 1)" if priority.get("whole_points") else f"-{total}"


def formula_of(order: Any, priority: Priority | None, number_of: Callable[[str, str], int]) -> Any:
    """Return an order, with slurm-multifactor replaced by the formula of the scheduler's weights, if it has some."""
    if order != MULTIFACTOR or priority is None:
        return order
    return multifactor(priority, number_of)
