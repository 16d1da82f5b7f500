"""Limits of a partition or QOS that replace those of others under Slurm, by hand; random cases are in test_slurm.py."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from swflow.analysis.reasons import wait_reasons
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.orders.ownership import jobs_within_limits
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

#: Two jobs of 3 processors that run 10 s and 20 s, and one of 1 processor; memory and GPUs are as many as processors.
#: The third one has another partition and another QOS. All would fit at once.
JOBS = {
    "submit_time": [1.0] * 3, "run_time": [10.0, 20.0, 10.0], "processors": [3, 3, 1], "user_id": [1] * 3,
    "group_id": [1] * 3, "partition_id": [1, 1, 2], "queue_id": [1, 1, 2],
}  # fmt: skip

#: One QOS for all jobs.
SAME_QOS = {"queue_id": [1, 1, 1]}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")


def workload(columns: dict[str, list[Any]]) -> Workload:
    table = pl.DataFrame(JOBS | columns)
    amounts = {"gpus": "processors", "memory": "processors", "estimate": "run_time"}
    table = table.with_columns(**{new: pl.col(old) for new, old in amounts.items() if new not in table.columns})
    return Workload(table.with_columns(job_id=pl.int_range(1, 1 + table.height)), Machine.of(64), "drawn")


def scheduler(limits: dict[str, Any], backfill: str = "slurm", **options: Any) -> Scheduler:
    if backfill == "slurm":
        given = {"batch_sched_delay": 0, "end_delay": 0, "bf_resolution": 1}
        options["scheduler_parameters"] = given | options.get("scheduler_parameters", {})
    return Scheduler(backfill=backfill, limits=limits, **options)


def starts(columns: dict[str, list[Any]], *arguments: Any, **options: Any) -> list[int]:
    """Return the starts in whole seconds after the submission."""
    found = simulate(workload(columns), scheduler(*arguments, **options)).sort("job_id")["start_time"]
    return [int(np.floor(start)) - 1 for start in found]


#: The two jobs of the limited partition or QOS start at once, and then count for the limit of the third one.
RESOURCES = ("processors", "gpus", "memory")
REPLACED = [
    *(({kind: {what: 4}, "qos": {"1": {what: 8}}}, {}, 10) for what in RESOURCES for kind in ("user", "group")),
    *(({"user": {what: 4}, "partition": {"1": {what: 8}}}, {}, 10) for what in RESOURCES),
    *(({"qos": {what: 4}, "partition": {"1": {what: 8}}}, SAME_QOS, 10) for what in RESOURCES),
    *(({"qos": {f"user_{what}": 4}, "partition": {"1": {f"user_{what}": 8}}}, SAME_QOS, 10) for what in RESOURCES),
    *(({kind: {"processor_minutes": 4}, "qos": {"1": {"processor_minutes": 8}}}, {}, 10) for kind in ("user", "group")),
    ({"qos": {"processor_minutes": 4}, "partition": {"1": {"processor_minutes": 8}}}, SAME_QOS, 10),
    ({"group": {"1": {"users": {"1": {"processors": 4}}}}, "qos": {"1": {"processors": 8}}}, {}, 10),
    ({"group": {"jobs": 1}, "qos": {"1": {"jobs": 2}}}, {}, 20),
    ({"group": {"jobs": 1}, "partition": {"1": {"jobs": 2}}}, {}, 20),
    ({"qos": {"jobs": 1}, "partition": {"1": {"jobs": 2}}}, SAME_QOS, 20),
    ({"user": {"jobs": 1}, "qos": {"1": {"user_jobs": 2}}}, {}, 20),
    ({"user": {"jobs": 1}, "partition": {"1": {"user_jobs": 2}}}, {}, 20),
    ({"group": {"1": {"users": {"1": {"jobs": 1}}}}, "qos": {"1": {"user_jobs": 2}}}, {}, 20),
    ({"qos": {"user_jobs": 1}, "partition": {"1": {"user_jobs": 2}}}, SAME_QOS, 20),
]  # fmt: skip


#: A machine of nodes; without nodes, a partition's limit of processors is its size.
NODES = {"nodes": [{"count": 8, "processors": 8, "resources": {"gpus": 8, "memory": 8}}]}


@pytest.mark.parametrize(("limits", "columns", "third"), REPLACED)
def test_a_limit_replaces_the_same_one_and_jobs_still_count_for_it(limits, columns, third):
    assert starts(columns, limits, **NODES) == [0, 0, third]
    if "processors" not in limits.get("partition", {}).get("1", {}):
        assert starts(columns, limits) == [0, 0, third]
    # The textbook engine applies both: the second job waits.
    assert starts(columns, limits, "easy")[1] >= 10


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"user": {"jobs": 1}, "qos": {"1": {"jobs": 2}}}, [0, 10, 30]),
        ({"user": {"jobs": 1}, "partition": {"1": {"jobs": 2}}}, [0, 10, 30]),
        ({"group": {"jobs": 1}, "qos": {"1": {"user_jobs": 2}}}, [0, 10, 30]),
        ({"user": {"processors": 4}, "qos": {"1": {"user_processors": 8}}}, [0, 10, 0]),
        ({"group": {"gpus": 4}, "partition": {"1": {"user_gpus": 8}}}, [0, 10, 0]),
        ({"user": {"processors": 4}, "qos": {"1": {"gpus": 8, "memory": 8, "jobs": 9}}}, [0, 10, 0]),
        ({"user": {"gpus": 4}, "qos": {"1": {"processors": 8}}}, [0, 10, 0]),
        ({"user": {"processor_minutes": 4}, "qos": {"1": {"processors": 8}}}, [0, 10, 0]),
        ({"user": {"processors": 4}, "partition": {"1": {"processors": 8}}}, [0, 10, 0]),
        ({"partition": {"1": {"processors": 4}}, "user": {"processors": 8}}, [0, 10, 0]),
        ({"partition": {"1": {"processors": 4}}, "qos": {"1": {"processors": 8}}}, [0, 10, 0]),
    ],
)
def test_other_limits_apply_as_well(limits, expected):
    assert starts({}, limits) == starts({}, limits, "easy") == expected


def test_a_named_user_obeys_the_limits_of_all_that_are_not_its_own():
    # User 1 may run 2 jobs, and 4 processors as all users: the first two jobs have 3 processors each.
    assert starts({}, {"user": {"processors": 4, "1": {"jobs": 2}}}) == [0, 10, 0]
    assert starts({}, {"user": {"processors": 4, "1": {"processors": 6}}}) == [0, 0, 10]


def test_limits_of_all_accounts_above_are_replaced():
    limits = {"group": {"3": {"processors": 4}, "2": {"processors": 5}}, "qos": {"1": {"processors": 8}}}
    accounts = {"1": {"parent": 2}, "2": {"parent": 3}}
    assert starts({}, limits, accounts=accounts) == [0, 0, 10]


def test_a_job_beyond_a_replaced_limit_may_start():
    limits = {"user": {"processors": 4}, "qos": {"1": {"processors": 8}}}
    wide = {"processors": [6, 1, 1]}
    assert starts(wide, limits) == [0, 0, 10]  # 6 and 1 of 8; the third job waits for the first one
    found = (
        jobs_within_limits(workload(wide), scheduler(limits, *backfill), np.ones(3)) for backfill in ((), ("easy",))
    )
    assert [one.to_list() for one in found] == [[True] * 3, [False, True, True]]
    with pytest.raises(SwflowError, match="limits: user: 1 jobs can never start, the first is job 3 with 6 of 4 proc"):
        starts({"processors": [6, 1, 6]}, limits)
    with pytest.raises(SwflowError, match="limits: qos: 1 jobs can never start, the first is job 1 with 9 of 8 proc"):
        starts({"processors": [9, 1, 1]}, limits)


def test_reasons_of_waits_know_which_limits_are_replaced():
    limits = {"user": {"processors": 4}, "qos": {"1": {"processors": 8}}}
    # The third job is beyond the limit of its user for 10 s, the fourth one beyond that of its QOS for 20 s.
    more = {name: [*values, values[0]] for name, values in JOBS.items()} | {"processors": [3, 3, 1, 6]}
    some, given = workload(more), scheduler(limits)
    assert starts(more, limits) == [0, 0, 10, 20]
    found = wait_reasons(some, simulate(some, given), given).table.sort("job_id")
    assert found["limit"].floor().to_list() == [0, 0, 10, 20]
    assert (found["room"] + found["order"]).floor().to_list() == [0] * 4
    # The second job is beyond the limit of its user, which is replaced, and waits for room.
    limits["qos"]["1"]["processors"], wide = 99, {"processors": [60, 30, 1]}
    found = wait_reasons(workload(wide), simulate(workload(wide), given := scheduler(limits)), given).table.sort(
        "job_id"
    )
    assert found["limit"].floor().to_list() == [0, 0, 30]
    assert found["room"].floor().to_list() == [0, 10, 0]


def test_a_cycle_tests_jobs_beyond_a_limit_that_others_may_exceed():
    # The first job exceeds the limit of its user, so that the second one waits. The third one waits for the first,
    # which ends a pass. The last one starts in the cycle at 30 if that tests three jobs, or else in the one at 102,
    # whole seconds after 60.
    columns = {
        "submit_time": [1.0, 2.0, 3.0, 4.0], "run_time": [100.0, 10.0, 10.0, 5.0], "processors": [63, 1, 64, 1],
        "user_id": [1, 1, 2, 3], "group_id": [1] * 4, "partition_id": [1] * 4, "queue_id": [1, 2, 2, 2],
    }  # fmt: skip
    limits = {"user": {"1": {"processors": 9}}, "qos": {"1": {"processors": 64}}}
    assert starts(columns, limits, scheduler_parameters={"bf_max_job_test": 3}) == [0, 100, 110, 29]
    assert starts(columns, limits, scheduler_parameters={"bf_max_job_test": 2}) == [0, 100, 110, 101]
    # Jobs beyond a limit of running jobs are not tested.
    limits = {"user": {"1": {"jobs": 1}}, "qos": {"1": {"user_jobs": 64}}}
    assert starts(columns, limits, scheduler_parameters={"bf_max_job_test": 2}) == [0, 100, 110, 29]


def test_limits_of_each_cluster_replace_those_there():
    clusters = [
        {"processors": 32, "partition": [1], "limits": {"user": {"processors": 4}, "qos": {"1": {"processors": 8}}}},
        {"processors": 32, "partition": [2], "limits": {"user": {"processors": 4}}},
    ]
    columns = {name: [*values, *values] for name, values in JOBS.items()} | {"partition_id": [1, 1, 1, 2, 2, 2]}
    some = workload(columns)
    given = {"batch_sched_delay": 0, "end_delay": 0}
    found = simulate(
        some, Scheduler(backfill="slurm", clusters=clusters, dispatch="partition", scheduler_parameters=given)
    )
    assert [int(start) - 1 for start in found.sort("job_id")["start_time"]] == [0, 0, 10, 0, 10, 0]
