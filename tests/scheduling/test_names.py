"""Names of users, groups, partitions and QOS that a scheduler states and a log does not have."""

import random

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.jobs.header import Header
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.orders.names import without_jobs
from swflow.scheduling.orders.ownership import Names
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

#: Four jobs at once of two users in two partitions.
JOBS = pl.DataFrame({
    "job_id": [1, 2, 3, 4], "submit_time": [0.0] * 4, "run_time": [10.0] * 4, "estimate": [10.0] * 4,
    "processors": [1] * 4, "user_id": [1, 1, 2, 2], "group_id": [1] * 4, "queue_id": [1, 1, 1, 2],
    "partition_id": [1, 1, 2, 2],
})  # fmt: skip

NAMES = {"User": ["1 ada", "2 bo"], "Group": ["1 bio"], "Queue": ["1 normal", "2 high"], "Partition": ["1 p", "2 q"]}


@pytest.fixture
def log() -> Workload:
    return Workload(JOBS, Machine.of(4), "mine", Header(NAMES))


#: Options that name something, with `{}` for a name that has jobs or none.
OPTIONS = {
    "user": [
        {"limits": {"user": {"{}": {"jobs": 1}, "ghost": {"jobs": 1}}}},
        {"order": "fair-share", "user_shares": {"{}": 2, "ghost": 7}},
    ],
    "group": [{"limits": {"group": {"{}": {"jobs": 1}, "ghost": {"jobs": 1}}}, "accounts": {"ghost": {}}}],
    "partition": [
        {"limits": {"partition": {"{}": {"jobs": 1}, "ghost": {"jobs": 1}}}},
        {"order": "slurm-multifactor", "priority": {"partition": 9, "partition_factors": {"{}": 1, "ghost": 2}}},
        {"backfill": "slurm", "nodes": [{"count": 4, "processors": 1, "partition": ["{}", "ghost", "p", "q"]}]},
    ],
    "qos": [
        {"limits": {"qos": {"{}": {"jobs": 1}, "ghost": {"user_jobs": 1}}}},
        {"order": "slurm-multifactor", "priority": {"qos": 9, "qos_factors": {"{}": 1, "ghost": 2}}},
        {
            "backfill": "slurm", "nodes": [{"count": 4, "processors": 1}],
            "preemption": {"qos": {"{}": ["ghost"], "ghost": ["normal"]}, "modes": {"ghost": "cancel"}},
        },
    ],
}  # fmt: skip


def named(options: object, name: str) -> object:
    """Return options with a name in the place of `{}`."""
    if isinstance(options, dict):
        return {key.replace("{}", name): named(value, name) for key, value in options.items()}
    if isinstance(options, list):
        return [named(value, name) for value in options]
    return options.replace("{}", name) if isinstance(options, str) else options


CASES = [(kind, options) for kind, several in OPTIONS.items() for options in several]


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_a_name_without_jobs_matches_nothing(log, kind, options):
    known = dict(zip(("user", "group", "qos", "partition"), ("ada", "bio", "high", "p"), strict=True))[kind]
    found = simulate(log, Scheduler.of("site", named(options, known)))
    assert found.height == 4
    assert without_jobs(Names(log), named(options, known)) == {kind: ["ghost"]}


@pytest.mark.parametrize(("kind", "options"), [case for case in CASES if "nodes" not in case[1]])
def test_it_is_an_error_if_no_name_of_a_kind_has_jobs(log, kind, options):
    with pytest.raises(SwflowError, match=rf"mine has no {kind} .*the scheduler names .*ghost.*, and the log has "):
        simulate(log, Scheduler.of("site", named(options, "spirit")))


def test_a_factor_of_no_job_orders_like_no_factor(log):
    factors = {"order": "slurm-multifactor", "priority": {"qos": 9, "qos_factors": {"high": 1, "ghost": 1}}}
    narrow = Workload(JOBS, Machine.of(1), "mine", log.header)
    starts = simulate(narrow, Scheduler.of("site", factors)).sort("job_id")["start_time"].to_list()
    assert starts == [10, 20, 30, 0]


def starts(log: Workload, **options: object) -> list[float]:
    return simulate(log, Scheduler(**options)).sort("job_id")["start_time"].to_list()


def test_limits_of_a_user_in_a_group_hold_only_there(log):
    two = Workload(JOBS.with_columns(group_id=pl.Series([1, 2, 1, 1])), Machine.of(4), "mine", Header(GROUPS))
    bio = {"group": {"bio": {"users": {"bo": {"jobs": 1}, "ghost": {"jobs": 1}}}}}
    assert starts(two, limits=bio) == [0, 0, 0, 10]
    both = {"group": {"bio": {"users": {"ada": {"jobs": 1}}}, "chem": {"users": {"ada": {"jobs": 1}}}}}
    assert starts(two, limits=both) == [0, 0, 0, 0]
    assert starts(two, limits={"user": {"ada": {"jobs": 1}}}) == [0, 10, 0, 0]
    with pytest.raises(SwflowError, match="limits: user in group: 1 jobs can never start, the first is job 2"):
        starts(two, limits={"group": {"chem": {"users": {"ada": {"jobs": 0}}}}})


GROUPS = NAMES | {"Group": ["1 bio", "2 chem"]}


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))])
@pytest.mark.parametrize("backfill", ["easy", "slurm"])
def test_users_of_one_group_have_the_same_limits_by_either_name(seed, backfill):
    rng = random.Random(seed)
    count = 30
    users = [rng.choice((1, 2)) for _ in range(count)]
    run_times = [float(rng.randint(1, 50)) for _ in range(count)]
    table = pl.DataFrame({
        "job_id": range(count), "submit_time": sorted(float(rng.randint(0, 200)) for _ in range(count)),
        "run_time": run_times, "estimate": [60 * time for time in run_times],
        "processors": [rng.randint(1, 3) for _ in range(count)], "user_id": users, "group_id": users,
    })  # fmt: skip
    log = Workload(table, Machine.of(8), "mine", Header(GROUPS))
    kinds = {"jobs": (1, 3), "processors": (3, 5), "processor_minutes": (150, 300)}
    own = {}
    for name in ("ada", "bo"):
        what = rng.choice(list(kinds))
        own[name] = {what: rng.choice(kinds[what])}
    groups = {group: {"users": {name: own[name]}} for name, group in (("ada", "bio"), ("bo", "chem"))}
    by_user = starts(log, limits={"user": own}, backfill=backfill)
    assert starts(log, limits={"group": groups}, backfill=backfill) == by_user
