"""The variables of a formula, by name, in the order in which compiled formulas take them."""

from typing import NamedTuple


class Variables(NamedTuple):
    """
    The values of a formula's variables for a job: seconds, processors, and numbers of the log; NaN where unknown.

    `wait` follows from the first two.
    """

    now: float
    submit_time: float
    estimate: float  # the planned run time
    processors: float
    user_id: float
    group_id: float
    queue_id: float
    executable_id: float
    job_id: float
    partition_id: float
    user_usage: float
    group_usage: float
    user_share: float
    group_share: float
    fair_tree: float
    association_usage: float
    machine_processors: float
    dominant_share: float  # the largest share of the machine's processors or of one of its resources
    requested_nodes: float  # 1 if unknown
    resource_1: float  # units of the resources that the formula mentions, 0 for none
    resource_2: float
    resource_3: float
    resource_4: float
