"""Fair share, limits and partitions: against the slow simulator, against Slurm's manual, and what is refused."""

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import naive
import naive_slurm
from helpers.kernels import for_python, owners_of_columns, simulate_arrays
from helpers.workloads import BACKFILLS, random_jobs, random_windows
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.log.swf import read_swf
from swflow.scheduling.orders.formula import compile_formula
from swflow.scheduling.orders.multifactor import multifactor
from swflow.scheduling.orders.vocabulary import ORDERS
from swflow.scheduling.reference_schedule import conventions, write_known_schedule
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.scheduling.slurm import accounts as slurm_uses
from swflow.scheduling.slurm.accounts import new_usage
from swflow.scheduling.state import accounts as uses
from swflow.scheduling.state.accounts import UNLIMITED, Owners
from swflow.studies.runs import run, write_run
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin

book_use, share_of = map(for_python, (slurm_uses.book_use, uses.share_of))

#: The weights of one example after the other: (as the scheduler's option, as the slow simulator takes them).
PRIORITIES: list[dict[str, Any]] = [
    {"age": 1000, "max_age": 20},
    {"fair_share": 1000},
    {"age": 1000, "max_age": 50, "fair_share": 10000, "size": 100},
    {"age": 1, "max_age": 7, "size": 64, "favor_small": True},
    {"age": 512, "max_age": 64, "partition": 256, "partition_factors": {0: 4, 1: 1}},
]

#: The fair-share orders: name in the reference simulator to the engine's formula.
FORMULAS = {"fair-share": "fair-share", "group-usage": "group_usage", "fcfs": "fcfs", "sjf": "sjf"}


def owned(jobs: list[Any], rng: random.Random) -> list[naive.Job]:
    """Give jobs to users, groups and partitions."""
    users = rng.randint(1, 4)
    return [
        naive_slurm.SlurmJob(
            number, *job[:4], user=rng.randrange(users), group=rng.randrange(2), partition=rng.randrange(2)
        )
        for number, job in enumerate(jobs)
    ]


def owners_of(jobs: list[naive.Job], shares: dict[str, dict[int, float]]) -> Owners:
    columns = [np.array([getattr(job, kind) for job in jobs]) for kind in ("user", "group", "partition")]
    dense = [np.unique(column, return_inverse=True)[1] for column in columns]
    entitled = [np.array([shares[kind][getattr(job, kind)] for job in jobs]) for kind in ("user", "group")]
    return owners_of_columns(*dense, columns[2].astype(float), *entitled)


def limit_table(jobs: list[naive.Job], limits: dict[tuple[str, int], tuple[float, float]]) -> np.ndarray:
    rows = [(UNLIMITED, UNLIMITED)]
    for kind in ("user", "group", "partition"):
        for number in sorted({getattr(job, kind) for job in jobs}):
            most = limits.get((kind, number), (math.inf, math.inf))
            rows.append(tuple(UNLIMITED if one == math.inf else int(one) for one in most))
    return np.array(rows)


def random_limits(rng: random.Random, jobs: list[naive.Job], machine: int) -> dict[tuple[str, int], Any]:
    """Draw limits that leave every job room."""
    limits = {}
    for kind in ("user", "group", "partition"):
        for number in range(4):
            if rng.random() < 0.4:
                widest = max((job.processors for job in jobs if getattr(job, kind) == number), default=1)
                most = rng.choice([math.inf, float(widest), float(rng.randint(widest, max(widest, machine)))])
                limits[kind, number] = (rng.choice([1.0, 2.0, 3.0, math.inf]), most)
    return limits


def equal_shares(jobs: list[naive.Job]) -> dict[str, dict[int, float]]:
    people = {kind: sorted({getattr(job, kind) for job in jobs}) for kind in ("user", "group")}
    return {kind: dict.fromkeys(found, 1 / len(found)) for kind, found in people.items()}


def arrays(jobs: list[naive.Job]) -> dict[str, np.ndarray]:
    return {
        "submit": np.array([job.submit for job in jobs]),
        "run": np.array([job.run for job in jobs]),
        "planned": np.array([job.planned for job in jobs]),
        "processors": np.array([job.processors for job in jobs]),
        "users": np.array([job.user for job in jobs]),
    }


def order_by_formula(name: str, priority: dict[str, Any]) -> str:
    if name == "slurm-multifactor":
        return multifactor(priority, lambda kind, number: int(number))
    return FORMULAS[name]


def both(
    jobs: list[naive.Job], machine: int, order: str, second: str, priority: dict[str, Any], half_life: float,
    limits: dict[tuple[str, int], Any], **options: Any,
) -> tuple[list[float], list[float]]:  # fmt: skip
    """Return the start times by the kernel and by the slow simulator."""
    shares = equal_shares(jobs)
    fair = naive_slurm.SlurmShare(half_life, shares)
    per_event = options.pop("per_event", False)
    policy = naive_slurm.SlurmPolicy(
        order=order, backfill_order=second, event_order="per-event" if per_event else "batch",
        multifactor=naive_slurm.Multifactor(**priority), limits=limits, **options,
    )  # fmt: skip
    slow = naive_slurm.AccountedMachine(machine, policy, fair)
    naive.simulate_centres(jobs_again(jobs), [slow], "round-robin")
    found = simulate_arrays(
        **arrays(jobs), machine=machine, order=order_by_formula(order, priority),
        backfill_order=order_by_formula(second, priority), owners=owners_of(jobs, shares), half_life=half_life,
        limits=limit_table(jobs, limits) if limits else None, per_event=per_event, **options,
    )  # fmt: skip
    return found.start.tolist(), [slow.starts[number] for number in range(len(jobs))]


def jobs_again(jobs: list[naive.Job]) -> list[naive.Job]:
    return [naive.replace(job) for job in jobs]


NAMES = ["fair-share", "group-usage", "slurm-multifactor", "fcfs", "sjf"]


def random_options(rng: random.Random, jobs: list[Any], machine: int, backfill: str, limited: bool) -> dict[str, Any]:
    """Draw options of a queue, possibly with a fair-share order."""
    return {
        "order": rng.choice(NAMES),
        "second": rng.choice(NAMES),
        "priority": rng.choice(PRIORITIES),
        "half_life": rng.choice([math.inf, 3.0, 20.0, 700.0]),
        "limits": random_limits(rng, jobs, machine) if limited else {},
        "backfill": backfill,
        "lookahead": rng.choice([1, 1, 2, 3]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("limited", [False, True])
def test_seeded_workloads_have_the_schedule_of_the_slow_simulator(backfill: str, limited: bool):
    if limited and backfill == "conservative":
        pytest.skip("refused")
    rng = random.Random(f"{backfill} {limited}")
    for case in range(400):
        machine = rng.randint(1, 8)
        jobs = owned(random_jobs(rng, machine, rng.randint(1, 25)), rng)
        options = random_options(rng, jobs, machine, backfill, limited) | {
            "predict": rng.random() < 0.3,
            "per_event": rng.random() < 0.3,
            "unavailable": random_windows(rng, machine),
        }
        ours, slow = both(jobs, machine, **options)
        assert ours == slow, (case, jobs, machine, options)


NUMBERED = ["first-fit", "longest-idle", "first-contiguous"]


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["none", "lookahead", "conservative", "reservation-table"])
def test_numbered_processors_have_the_schedule_of_the_slow_simulator(backfill: str):
    rng = random.Random(f"{backfill} on numbered processors")
    for case in range(80):
        machine = rng.randint(1, 8)
        jobs = owned(random_jobs(rng, machine, rng.randint(1, 20)), rng)
        limited = backfill in ("none", "lookahead") and rng.random() < 0.7
        options = random_options(rng, jobs, machine, backfill, limited) | {
            "allocation": rng.choice(NUMBERED),
            "predict": rng.random() < 0.3,
            "per_event": rng.random() < 0.3,
        }
        ours, slow = both(jobs, machine, **options)
        assert ours == slow, (case, jobs, machine, options)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[naive.Job], int]:
    machine, submit, jobs = draw(st.integers(1, 6)), 0.0, []
    for number in range(draw(st.integers(1, 10))):
        submit += draw(st.integers(0, 4))
        length = float(draw(st.integers(0, 12)))
        owner = {kind: draw(st.integers(0, 2)) for kind in ("user", "group")} | {"partition": draw(st.integers(0, 1))}
        planned = max(1.0, length + draw(st.integers(0, 5)))
        jobs.append(naive_slurm.SlurmJob(number, submit, length, planned, draw(st.integers(1, machine)), **owner))
    return jobs, machine


@given(
    workloads(),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(PRIORITIES),
    st.sampled_from([math.inf, 4.0, 100.0]),
    st.sampled_from(["none", "lookahead", "conservative"]),
    st.integers(1, 3),
    st.dictionaries(st.tuples(st.sampled_from(["user", "group", "partition"]), st.integers(0, 1)), st.integers(1, 2)),
)
def test_any_workload_has_the_schedule_of_the_slow_simulator(
    workload, order, second, priority, half_life, backfill, lookahead, most_jobs
):
    jobs, machine = workload
    limits = {} if backfill == "conservative" else {who: (most, math.inf) for who, most in most_jobs.items()}
    options = {"backfill": backfill, "lookahead": lookahead}
    ours, slow = both(jobs, machine, order, second, priority, half_life, limits, **options)
    assert ours == slow


@pytest.mark.slow
def test_partitions_have_the_schedule_of_the_slow_simulator():
    rng = random.Random("partitions")
    for case in range(300):
        per_event, half_life = rng.random() < 0.3, rng.choice([math.inf, 5.0, 90.0])
        sizes = [rng.randint(1, 6) for _ in range(2)]
        jobs = owned(random_jobs(rng, min(sizes), rng.randint(1, 20)), rng)
        shares, priority = equal_shares(jobs), rng.choice(PRIORITIES)
        fair = naive_slurm.SlurmShare(half_life, shares)
        centres, machines = [], []
        backfills = [rng.choice(list(BACKFILLS)) for _ in sizes]
        for size, backfill in zip(sizes, backfills, strict=True):
            order, second = rng.choice(NAMES), rng.choice(NAMES)
            limits = {} if "conservative" in backfills else random_limits(rng, jobs, size)
            policy = naive_slurm.SlurmPolicy(
                order=order, backfill=backfill, backfill_order=second, limits=limits,
                event_order="per-event" if per_event else "batch", multifactor=naive_slurm.Multifactor(**priority),
            )  # fmt: skip
            machines.append(naive_slurm.AccountedMachine(size, policy, fair))
            own: dict[str, Any] = {"machine": size, "backfill": backfill, "order": order_by_formula(order, priority)}
            own |= {"backfill_order": order_by_formula(second, priority)}
            centres.append(own | {"limits": limit_table(jobs, limits) if limits else None})
        naive.simulate_centres(jobs_again(jobs), machines, "partition")
        expected = {
            number: (start, index) for index, machine in enumerate(machines) for number, start in machine.starts.items()
        }
        found = simulate_arrays(
            **arrays(jobs), machine=max(sizes), centres=centres, dispatch="partition", per_event=per_event,
            owners=owners_of(jobs, shares), half_life=half_life, partition=np.array([job.partition for job in jobs]),
        )  # fmt: skip
        pairs = dict(enumerate(zip(found.start.tolist(), found.cluster.tolist(), strict=True)))
        assert pairs == expected, (case, jobs, sizes)


def test_partitions_change_no_fair_share_of_accounts():
    rng = random.Random("fair tree")
    for _ in range(20):
        accounts = rng.choice(["flat", "below each other", "above the log's", "shares"])
        values = cases.completed(site := cases.new_site(rng), {"order": "-fair_tree", "accounts": accounts})
        assert values is not None
        case = cases._with_jobs(site, values)
        log, scheduler = case.workload(), Scheduler(**case.options)
        without = replace(log, jobs=log.jobs.drop("partition_id"))
        assert simulate(without, scheduler)["start_time"].to_list() == simulate(log, scheduler)["start_time"].to_list()


def test_a_backfill_order_by_usage_reads_the_usage_beside_an_order_without_it():
    # At 24, job 3 is the head of the queue and waits for all processors; user 2 has used none, so 4 starts before 2.
    jobs = pl.DataFrame(
        {
            "job_id": [0, 1, 2, 3, 4],
            "submit_time": [22.0] * 5,
            "run_time": [2.0, 9.0, 3.0, 1.0, 3.0],
            "processors": [5, 1, 4, 8, 4],
            "estimate": [2.0, 9.0, 3.0, 1.0, 3.0],
            "user_id": [1, 1, 1, 1, 2],
        }
    )
    log = Workload(jobs, Machine.of(8), "hand")
    for order in ("wfp3", "-wait / estimate * processors"):
        done = simulate(log, Scheduler(order=order, backfill="easy", backfill_order="fair-share"))
        assert done["start_time"].to_list() == [22, 22, 27, 31, 24]


# -- usage, by the definition


def test_usage_is_the_integral_of_processors_that_decay():
    rng = random.Random(2)
    half_life = 30.0
    spans = sorted((rng.uniform(0, 100), rng.uniform(1, 60), rng.randint(1, 9), rng.randrange(3)) for _ in range(40))
    users = np.array([span[3] for span in spans])
    unknown = np.full(users.size, -1)
    owners = owners_of_columns(users, unknown, unknown, unknown.astype(float), np.ones(users.size), np.ones(users.size))
    usage = new_usage(owners, None, 0.0)
    events = [(begin, 1, job) for job, (begin, *_) in enumerate(spans)]
    events += [(begin + length, -1, job) for job, (begin, length, *_) in enumerate(spans)]
    for time, sign, job in sorted(event for event in events if event[0] <= 90):
        book_use(usage, job, time, half_life, sign, sign * spans[job][2])

    def used(user: int, now: float) -> float:
        """Sum over small steps what each second of a processor still counts."""
        times = np.arange(0.0005, now, 0.001)
        busy = sum(
            (
                width * ((begin <= times) & (times < begin + length))
                for begin, length, width, who in spans
                if who == user
            ),
            start=np.zeros(times.size),
        )
        return float((busy * 2 ** (-(now - times) / half_life)).sum())

    for now in (90.0, 200.0):
        for time, sign, job in sorted(event for event in events if 90 < event[0] <= now):
            book_use(usage, job, time, half_life, sign, sign * spans[job][2])
        whole = sum(used(user, now) for user in range(3))
        for user in range(3):
            assert share_of(usage.accounts, 1 + user, now, half_life) == pytest.approx(
                used(user, now) / whole, rel=1e-3
            )


# -- Slurm's manual


def test_the_default_weights_are_those_of_the_named_order():
    weights = {"age": 1000, "fair_share": 10000, "size": 1000}
    assert multifactor(weights, lambda kind, name: 0) == ORDERS["slurm-multifactor"].formula


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        # 4 of 16 processors, 2 days of waiting; the user has used half and is entitled to a quarter: the factors are
        # 2/7 by age, 2 ** -(0.5 / 0.25) = 1/4 by fair share, 1/4 by size, and 30/60 by partition
        ({"age": 700}, 200),
        ({"age": 700, "max_age": 86400}, 700),
        ({"fair_share": 1000}, 250),
        ({"fair_share": 1000, "dampening": 2}, 500),
        ({"fair_share": 1000, "fair_share_of": "group"}, 1000 * 2 ** -(0.8 / 0.4)),
        ({"fair_share": 1000, "fair_share_of": "association"}, 125),
        ({"fair_share": 1000, "fair_share_of": "fair-tree"}, 300),
        ({"size": 1000}, 250),
        ({"size": 1000, "favor_small": True}, 750),
        ({"size": 1000, "nodes": 8}, 375),  # half of the nodes, and a quarter of the processors
        ({"size": 1000, "nodes": 8, "favor_small": True}, 625),
        ({"partition": 1000, "partition_factors": {"a": 60, "b": 30}}, 500),
        ({"qos": 100, "qos_factors": {"high": 10}}, 0),
        ({"age": 700, "fair_share": 1000, "size": 1000}, 700),
        ({"age": 699, "fair_share": 1000, "whole_points": True}, 449),  # 199.7 and 250
        ({"age": 3, "whole_points": True}, 1),
    ],
)
def test_priorities_are_as_the_manual_defines_them(priority: dict[str, Any], expected: float):
    numbers = {"a": 1, "b": 2, "high": 9}
    formula = compile_formula(multifactor(priority, lambda kind, name: numbers[name]))
    of_job = (2 * 86400.0, 0.0, 3600.0, 4.0, 1.0, 1.0, 3.0, 1.0, 1.0)  # now, submit, estimate, processors, ids
    of_owner = (2.0, 0.5, 0.8, 0.25, 0.4, 0.3, 3.0)  # partition, usages, shares, fair tree, association
    value = formula(*of_job, *of_owner, 16.0, 0.25, 4.0)  # the machine, the dominant share, and requested nodes
    assert -value == pytest.approx(expected, rel=1e-12)


@pytest.fixture(scope="module", params=[200, pytest.param(1500, marks=pytest.mark.slow)])
def workload(request: pytest.FixtureRequest) -> Workload:
    """Make a workload whose queue is long."""
    fields = generate_lublin(request.param, 32, generator(3, "owners"), load=1.1, users=True)
    jobs = clean(fields, Machine.of(32), name="owners").jobs
    jobs = jobs.with_columns(
        partition_id=pl.when(pl.col("processors") <= 8).then(pl.col("job_id") % 2 + 1).otherwise(1)
    )
    header = {"User": [f"{number} user{number}" for number in range(1, 40)], "Partition": ["1 batch", "2 debug"]}
    return Workload(jobs, Machine.of(32), "owners", header)


@pytest.mark.parametrize(
    "backfill", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("none", "conservative")), "easy"]
)
def test_with_age_alone_multifactor_is_fcfs_byte_for_byte(workload: Workload, backfill: str, tmp_path: Path):
    files = []
    weights = {"age": 1000, "fair_share": 0, "size": 0, "partition": 0}
    for name, options in (("fcfs", {}), ("age", {"order": "slurm-multifactor", "priority": weights})):
        path = tmp_path / f"{name}.parquet"
        write_run(run(workload, Scheduler(backfill=backfill, **options)), path, {"name": "the same"})
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_fair_share_evens_out_what_users_get(workload: Workload):
    """Two users with equal demand, one of whom submits first: under fair share they take turns."""
    count = 40
    jobs = pl.DataFrame({
        "job_id": range(1, 2 * count + 1), "submit_time": [0.0] * count + [1.0] * count,
        "run_time": [100.0] * 2 * count, "estimate": [100.0] * 2 * count, "processors": [1] * 2 * count,
        "user_id": [1] * count + [2] * count,
    })  # fmt: skip
    tiny = Workload(jobs, Machine.of(1), "two")
    starts = {name: simulate(tiny, Scheduler(order=name))["start_time"].to_numpy() for name in ("fcfs", "fair-share")}
    assert starts["fcfs"][:count].max() < starts["fcfs"][count:].min()
    turns = np.argsort(starts["fair-share"], kind="stable") >= count
    assert np.abs(np.cumsum(np.where(turns, 1, -1))).max() <= 1
    favoured = simulate(tiny, Scheduler(order="fair-share", user_shares={"2": 3}))["start_time"].to_numpy()
    half = np.sort(np.argsort(favoured, kind="stable")[:40])
    assert (half >= count).sum() == 30  # three of four


def test_a_job_counts_as_usage_while_it_runs_and_old_use_is_forgotten():
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3, 4], "submit_time": [0.0, 0.0, 1.0, 2.0], "run_time": [100.0, 10.0, 5.0, 5.0],
        "estimate": [100.0, 10.0, 5.0, 5.0], "processors": [1, 1, 1, 1], "user_id": [1, 2, 1, 2],
    })  # fmt: skip
    tiny = Workload(jobs, Machine.of(2), "tiny")
    assert simulate(tiny, Scheduler(order="fair-share"))["start_time"].to_list() == [0, 0, 10, 15]  # equal until 10
    idle = jobs.with_columns(submit_time=pl.Series([0.0, 500.0, 501.0, 502.0]), processors=pl.Series([2, 2, 2, 2]))
    spent = Workload(idle, Machine.of(2), "spent")  # user 1 has used 200 processor-seconds, user 2 only 20
    assert simulate(spent, Scheduler(order="fair-share"))["start_time"].to_list() == [0, 500, 515, 510]
    forgot = simulate(spent, Scheduler(order="fair-share", half_life=20))["start_time"].to_list()
    assert forgot == [0, 500, 510, 515]


QUEUED = {"submit_time": [0.0] * 4, "run_time": [60.0] * 4, "processors": [1] * 4, "estimate": [60.0] * 4}


@pytest.mark.parametrize(
    ("accounts", "options", "starts"),
    [
        # User 1 used 100 s. User 2 uses 60 s, 120 s, and it is the turn of user 1.
        ({"a": {"usage": {"1": 100}}}, {}, [120, 180, 0, 60]),
        # At 60 s, 25 s of the 100 s are left; of user 2's 60 s, 30 / ln 2 * (1 - 1/4) = 32.5 s.
        ({"a": {"usage": {"1": 100}}}, {"half_life": 30}, [60, 180, 0, 120]),
        # At 60 s, a period ends: 100 s become 100 * 0.9769 ** 60 = 24.6 s, and user 2's are 60 * 0.9769 ** 60 = 14.8 s.
        ({"a": {"usage": {"1": 100}}}, {"half_life": 30, "calc_period": 60}, [120, 180, 0, 60]),
        # The usage of user 1 is that in all accounts.
        ({"a": {"usage": {"1": 50, "9": 1000}}, "b": {"usage": {"1": 50}}}, {}, [120, 180, 0, 60]),
        # Group 2 used more than group 1, but no user of the log did.
        ({"2": {"usage": {"9": 70}}}, {"fair_share_of": "group"}, [0, 60, 120, 180]),
        ({"2": {"usage": {"9": 70}}}, {"fair_share_of": "fair-tree"}, [0, 60, 120, 180]),
        ({"2": {"usage": {"9": 70}}}, {"fair_share_of": "association"}, [0, 60, 120, 180]),
        # User 1 used more in group 3, which is no usage in group 1.
        ({"3": {"usage": {"1": 70}}}, {"fair_share_of": "fair-tree"}, [0, 120, 60, 180]),
    ],
    ids=str,
)
def test_fair_share_begins_with_the_usage_before_the_log(accounts: Any, options: dict[str, Any], starts: list[int]):
    jobs = pl.DataFrame({"job_id": [1, 2, 3, 4], **QUEUED, "user_id": [1, 1, 2, 2], "group_id": [1, 1, 2, 2]})
    half_life = options.pop("half_life", None)
    scheduler = Scheduler(
        order="slurm-multifactor", priority={"fair_share": 1000, **options}, accounts=accounts, half_life=half_life
    )
    assert simulate(Workload(jobs, Machine.of(1), "tiny"), scheduler)["start_time"].to_list() == starts


# -- limits


@pytest.mark.parametrize(
    ("most", "period", "start"),
    [
        (16, None, 30),  # 4 processors have 2 minutes left, and 2 more would have 4
        (15, None, 130),  # the first job counts until it ends
        (12, 60, 60),  # 4 minutes are left after one
        (11, 60, 120),  # none is left after two, although the first job still runs
        (12, 50, 60),  # 280 s are left after 50 s, which are 4 whole minutes
        (11, 50, 120),
        (9, 50, 120),  # 80 s are left after 100 s
        (8, 50, 130),
    ],
)
def test_processor_minutes_are_those_left_to_running_jobs(most: int, period: float | None, start: float):
    jobs = pl.DataFrame({
        "job_id": range(6), "submit_time": [0.0, 30.0, 60.0, 90.0, 120.0, 125.0], "run_time": [130.0] + [1.0] * 5,
        "estimate": [120.0, 240.0] + [1.0] * 4, "processors": [4, 2] + [1] * 4, "user_id": [1, 1] + [2] * 4,
    })  # fmt: skip
    options = {"order": "slurm-multifactor", "priority": {"age": 1, "calc_period": period}} if period else {}
    scheduler = Scheduler(limits={"user": {"1": {"processor_minutes": most}}}, backfill="easy", **options)
    assert simulate(Workload(jobs, Machine.of(99), "tiny"), scheduler)["start_time"][1] == start


def running_at_once(outcomes: pl.DataFrame, what: str | int) -> int:
    """Return the most jobs, or processors, that run at once."""
    weight = outcomes[what] if isinstance(what, str) else pl.Series([1] * outcomes.height)
    times = np.concatenate([outcomes["end_time"], outcomes["start_time"]])
    changes = np.concatenate([-weight, weight])
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max(initial=0))


@pytest.mark.parametrize(
    "options",
    [
        {}, {"backfill": "easy", "reservations": 4}, pytest.param({"backfill": "easy"}, marks=pytest.mark.slow),
        pytest.param({"order": "sjf", "backfill": "easy"}, marks=pytest.mark.slow),
    ],
    ids=str,
)  # fmt: skip
def test_limits_hold_and_others_overtake(workload: Workload, options: dict[str, Any]):
    limits = {"user": {"jobs": 2, "user3": {"jobs": 1}}, "partition": {"debug": {"processors": 8}}}
    outcomes = simulate(workload, Scheduler(limits=limits, **options))
    joined = outcomes.join(workload.jobs.select("job_id", "user_id", "partition_id"), on="job_id")
    for (user,), part in joined.partition_by("user_id", as_dict=True).items():
        assert running_at_once(part, 1) <= (1 if user == 3 else 2)
    debug = joined.filter(partition_id=2)
    assert running_at_once(debug, "processors") == 8
    assert running_at_once(joined.filter(partition_id=1), "processors") > 8
    free = simulate(workload, Scheduler(**options))
    assert (outcomes["start_time"] < free["start_time"]).sum() > 20  # who is not limited gains


# -- partitions


def test_jobs_stay_in_their_partition(workload: Workload):
    clusters = (
        {"processors": 32, "partition": "batch"},
        {"processors": 8, "partition": ["debug"], "backfill": "conservative", "order": "sjf"},
    )
    outcomes = simulate(workload, Scheduler(backfill="easy", clusters=clusters, dispatch="partition"))
    assert outcomes["centre"].equals(workload.jobs["partition_id"])
    for number, options in ((1, {"backfill": "easy"}), (2, {"backfill": "conservative", "order": "sjf"})):
        alone = Workload(workload.jobs.filter(partition_id=number), Machine.of((32, 8)[number - 1]), "alone")
        expected = simulate(alone, Scheduler(**options))["start_time"]
        assert outcomes.filter(centre=number)["start_time"].equals(expected)
    together = ({"processors": 32, "partition": [1, "debug"]},)
    one = simulate(workload, Scheduler(backfill="easy", clusters=together, dispatch="partition"))
    assert one["start_time"].equals(simulate(workload, Scheduler(backfill="easy"))["start_time"])


def test_usage_is_of_all_partitions_and_limits_are_of_each():
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3, 4], "submit_time": [0.0, 0.0, 1.0, 2.0], "run_time": [50.0, 10.0, 5.0, 5.0],
        "estimate": [50.0, 10.0, 5.0, 5.0], "processors": [1, 1, 1, 1], "user_id": [1, 3, 1, 2],
        "partition_id": [1, 2, 2, 2],
    })  # fmt: skip
    tiny = Workload(jobs, Machine.of(2), "tiny")
    clusters = ({"processors": 1, "partition": 1}, {"processors": 1, "partition": 2})
    shared = Scheduler(order="fair-share", clusters=clusters, dispatch="partition", limits={"user": {"jobs": 1}})
    assert simulate(tiny, shared)["start_time"].to_list() == [0, 0, 15, 10]


def test_a_known_schedule_states_no_order_that_was_not_used(workload: Workload):
    by_policy = conventions(workload, Scheduler(policy="swflow.policies:Easy"))
    assert "Policy swflow.policies:Easy with the options {}: a Python class decides which jobs start" in by_policy
    recorded = conventions(workload, Scheduler(order="log"))
    assert "Start times: those that the log recorded" in recorded
    for lines in (by_policy, recorded):
        assert not [line for line in lines if line.startswith(("Order", "Backfill"))]


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"gpus": 1}, {"resources": {"gpus": 2}}),
        ({"array_id": 1, "array_limit": 5}, {}),
        ({"cancelled_after": 60.0}, {}),
        ({"depends_on": [1]}, {}),
        ({}, {"backfill": "slurm", "nodes": [{"count": 4, "processors": 8, "resources": {"gpus": 1}}]}),
        ({"constraint_id": 1}, {"backfill": "slurm", "nodes": [{"count": 4, "processors": 8}]}),
    ],
)
def test_a_known_schedule_needs_fields_for_what_determines_it(columns, options, workload: Workload, tmp_path: Path):
    jobs = workload.jobs.head(20).with_columns(**{name: pl.lit(value) for name, value in columns.items()})
    some, scheduler = replace(workload, jobs=jobs), Scheduler(**{"backfill": "easy"} | options)
    with pytest.raises(SwflowError, match="SWF has no field"):
        write_known_schedule(tmp_path / "known.swf", some, pl.DataFrame(), scheduler)


def test_a_known_schedule_states_what_it_was_made_by(workload: Workload):
    weights = {"age": 5, "partition": 7, "partition_factors": {"batch": 1, "debug": 2}}
    scheduler = Scheduler(
        order="slurm-multifactor", backfill="easy", priority=weights | {"fair_share": 3}, half_life=60,
        user_shares={"user3": 2}, limits={"user": {"jobs": 4}},
    )  # fmt: skip
    text = "\n".join(conventions(workload, scheduler))
    for words in (
        "7 * max(0.5 * (partition_id == 1), 1.0 * (partition_id == 2))", "counts half after 60 seconds",
        "Share of user user3: 2", 'Limits: {"user": {"jobs": 4}}',
    ):  # fmt: skip
        assert words in text
    several = Scheduler(clusters=({"processors": 8, "partition": "batch"},), dispatch="partition")
    assert 'Cluster 1: {"partition": ["batch"]}' in "\n".join(conventions(workload, several))


def test_a_known_schedule_states_every_option(workload: Workload):
    nodes = [{"count": 2, "processors": 8}, {"count": 1, "processors": 16, "partition": "debug"}]
    scheduler = Scheduler(
        order="slurm-multifactor", backfill="slurm", nodes=nodes, priority={"age": 5, "whole_points": True},
        scheduler_parameters={"bf_interval": 7}, preemption={"partition": {"debug": 2}},
    )  # fmt: skip
    lines = conventions(workload, scheduler)
    assert lines[1] == "Machine: 32 processors; jobs are on particular ones of 3 nodes"
    text = "\n".join(lines)
    for words in (
        'Option nodes: [{"count": 2, "processors": 8}', 'Parameters of backfill slurm: {"bf_interval": 7, "bf_w',
        'Option preemption: {"partition": {"debug": 2}}', 'Option priority: {"age": 5, "whole_points": true}',
    ):  # fmt: skip
        assert words in text
    assert 'Option feedback: "sessions"' in conventions(workload, Scheduler(feedback="sessions"))
    assert 'Option resources: {"gpus": null}' in conventions(workload, Scheduler(resources={"gpus": None}))
    assert not [line for line in conventions(workload, Scheduler()) if line.startswith("Option")]


def test_a_known_schedule_states_the_queues_of_clusters(workload: Workload):
    clusters = (
        {"processors": 8, "order": "user_usage / user_share", "limits": {"user": {"jobs": 3}}},
        {"processors": 16, "backfill": "easy", "reservations": 2, "order": lambda now, submit, *others: submit},
    )
    scheduler = Scheduler(clusters=clusters, half_life=60, user_shares={"user3": 2})
    lines = conventions(workload, scheduler)
    text = "\n".join(lines)
    assert lines[1] == "Machine: 24 processors; they are only counted"
    for words in (
        "Cluster 1: Order of the queue: the smallest value of user_usage / user_share", "Cluster 2: Reservations: 2",
        'Cluster 1: Limits: {"user": {"jobs": 3}}; a job beyond a limit is skipped', "counts half after 60 seconds",
        "Share of user user3: 2", "Cluster 2: Order of the queue: a function",
    ):  # fmt: skip
        assert words in text
    alike = conventions(workload, Scheduler(clusters=({"processors": 8}, {"processors": 9}), backfill="easy"))
    assert [line for line in alike if line.startswith("Reservations")] == ["Reservations: 1"]


def test_a_known_schedule_has_the_size_of_the_scheduler_and_times_of_eligibility(workload: Workload, tmp_path: Path):
    jobs = workload.jobs.head(20).filter(pl.col("processors") <= 8).with_columns(eligible_after=pl.lit(5.0))
    some, scheduler = replace(workload, jobs=jobs), Scheduler(clusters=({"processors": 8}, {"processors": 9}))
    write_known_schedule(tmp_path / "known.swf", some, simulate(some, scheduler), scheduler)
    found = read_swf(tmp_path / "known.swf")
    assert found.header["MaxProcs"] == ["17"]
    assert any("those at which jobs became eligible" in note for note in found.header["Note"])
    assert found.fields["submit_time"].to_list() == [time + 5 for time in jobs["submit_time"]]


# -- what is refused


def test_limits_go_with_several_reservations() -> None:
    limits = {"user": {"jobs": 2}}
    assert Scheduler(backfill="easy", reservations=2, limits=limits).limits == limits


CENTRES = [{"processors": 32, "partition": "batch"}]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limits": {"user": {"jobs": -1}}}, "limits: user: jobs: -1; expected at least 0"),
        ({"limits": {"user": {"processor_minutes": 0.5}}}, "limits: user: processor_minutes: 0.5; expected a whole"),
        ({"accounts": {"a": {"usage": {"anna": -1}}}}, "accounts: a: usage: anna: -1; expected at least 0"),
        ({"accounts": {"a": {"usage": {"anna": 1}}}, "limits": {"group": {"jobs": 1}}},
         "accounts: no order uses usage; choose fair-share, or leave usage out"),
        ({"limits": {"usr": {"jobs": 1}}}, "limits: unknown key 'usr'; did you mean 'user'"),
        ({"limits": {"user": {"job": 1}}}, "limits: user: job: 1; expected limits such as"),
        ({"limits": {"user": {"anna": {"jbs": 1}}}}, "limits: user: anna: unknown key 'jbs'; did you mean 'jobs'"),
        ({"limits": 5}, "limits: 5; expected a mapping with keys of user, group, partition, qos"),
        ({"limits": {"user": {"jobs": 2}}, "backfill": "conservative"}, "limits: skipped jobs"),
        ({"limits": {"user": {"jobs": 2}}, "allocation": "first-fit", "backfill": "reservation-table"},
         "limits: skipped jobs"),
        ({"limits": {"user": {"jobs": 2}}, "allocation": "least-shared", "backfill": "easy"}, "limits: skipped jobs"),
        ({"limits": {"user": {"jobs": 2}}, "shapes": "start"}, "limits: skipped jobs"),
        ({"clusters": [{"processors": 4, "limits": {"user": {"jobs": 1}}, "backfill": "conservative"}]},
         "limits: skipped jobs"),
        ({"half_life": 0}, "half_life: 0; expected above 0"),
        ({"user_shares": {"anna": 0}}, "user_shares: anna: 0; expected above 0"),
        ({"user_shares": ["anna"]}, "user_shares: ('anna',); expected names with their values"),
        ({"priority": {"age": 5}}, "priority: its weights are for order slurm-multifactor"),
        ({"priority": {"agee": 5}, "order": "slurm-multifactor"}, "priority: unknown key 'agee'; did you mean 'age'"),
        ({"priority": {"partition": 5}, "order": "slurm-multifactor"}, "priority: partition is a weight"),
        ({"priority": {"age": -1}, "order": "slurm-multifactor"}, "priority: age: -1; expected at least 0"),
        ({"priority": {"fair_share_of": "qos"}, "order": "slurm-multifactor"}, "priority: fair_share_of: unknown"),
        ({"order": "fair-share", "allocation": "least-shared", "backfill": "easy"}, "order: usage, shares, "),
        ({"dispatch": "partition"}, "dispatch: partition needs clusters"),
        ({"dispatch": "partition", "clusters": [{"processors": 4}]}, "dispatch: partition needs clusters"),
        ({"clusters": CENTRES}, "clusters: a cluster's partition is for dispatch: partition"),
        ({"clusters": [{"processors": 4, "partition": {}}]}, "clusters: partition: {}; expected a name or a number"),
        ({"clusters": CENTRES, "dispatch": "partition", "shapes": "submit"}, "dispatch: moldable jobs do not stay"),
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_go_together_is_one_line(options: dict[str, Any], words: str):
    with pytest.raises(SwflowError) as caught:
        Scheduler.of("mine", options)
    assert str(caught.value).startswith(f"schedulers: mine: {words}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limits": {"user": {"usr3": {"jobs": 1}}}}, "owners has no user 'usr3'; did you mean"),
        ({"limits": {"group": {"lab": {"jobs": 1}}}}, "owners does not say the group of any job"),
        ({"limits": {"user": {"processors": 4}}}, "limits: user: .* jobs can never start, the first is job "),
        ({"limits": {"user": {"processor_minutes": 2}}}, r"jobs can never start, .* of 2 processor-minutes; raise"),
        ({"clusters": CENTRES, "dispatch": "partition"}, "jobs of owners have no cluster, the first is job .* with "
         r"partition debug \(2\); name it in clusters"),
        ({"clusters": [*CENTRES, {"processors": 4, "partition": "debug"}], "dispatch": "partition"},
         "clusters: .* jobs are wider than their partition's cluster, the first is job .* of 4 processors of debug"),
        ({"clusters": [*CENTRES, {"processors": 4, "partition": [2, "batch"]}], "dispatch": "partition"},
         "clusters: partition: batch is named by two clusters"),
        ({"clusters": [{"processors": 32, "partition": "gpu"}], "dispatch": "partition"}, "has no partition 'gpu'"),
        ({"order": "slurm-multifactor", "priority": {"qos": 5, "qos_factors": {"high": 1}}},
         "owners has no qos 'high'; the scheduler names high, and the log has no names"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_log_does_not_have_is_one_line(workload: Workload, options: dict[str, Any], words: str):
    with pytest.raises(SwflowError, match=words):
        simulate(workload, Scheduler(**options))


def test_a_log_without_users_has_no_fair_share(workload: Workload):
    anonymous = Workload(workload.jobs.with_columns(user_id=pl.lit(None, pl.Int64)), Machine.of(32), "anonymous")
    for options in ({"order": "fair-share"}, {"limits": {"user": {"jobs": 1}}}):
        with pytest.raises(SwflowError, match="anonymous does not say the user of any job"):
            simulate(anonymous, Scheduler(**options))
    some = workload.jobs.with_columns(user_id=pl.when(pl.col("user_id") > 1).then("user_id"))
    limited = simulate(Workload(some, Machine.of(32), "some"), Scheduler(limits={"user": {"jobs": 1}}))
    unknown = limited.filter(some["user_id"].is_null())
    assert running_at_once(unknown, 1) > 1  # unknown users are not one user


def test_users_that_the_log_knows_may_all_be_left_out() -> None:
    columns = {"submit_time": [0.0, 1.0], "run_time": [5.0, 5.0], "estimate": [5.0, 5.0], "processors": [1, 1]}
    jobs = pl.DataFrame({"job_id": [1, 2], **columns, "status": [5, 1], "user_id": [7, None]})
    workload = Workload(jobs, Machine.of(1), "partly-anonymous")
    found = simulate(workload, Scheduler(order="fair-share", without_status=(5,)))
    assert found["start_time"].to_list() == [1.0]
