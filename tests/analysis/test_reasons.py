"""The reasons of waits in simulated and recorded schedules."""

import math
import random
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

import naive_reasons as naive
import naive_slurm
from helpers.draws import CASES
from swflow.analysis.reasons import wait_reasons
from swflow.analysis.wait_parts import PARTS, REASONS
from swflow.compiled.kernel import Kernel
from swflow.compiled.source import Linker
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, sort_jobs
from swflow.scheduling.prepare import prepare
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.scheduling.slurm import setup, timetable
from swflow.scheduling.state.accounts import UNLIMITED
from swflow.scheduling.waits.divide import NO_LIMIT
from swflow.workload.generate import generate

#: The reasons that the twin computes; eligibility is before.
DIVIDED = REASONS[1:]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")


@pytest.fixture
def whole_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Slurm's scheduler look at whole seconds, which are all that the twin knows."""
    for module in (setup, timetable):
        monkeypatch.setattr(module, "TICK", 1)
    # A kernel keeps the constants with which it was linked: these kernels are for one test only.
    linked: dict[Kernel, Any] = {}

    def plain(kernel: Kernel) -> Any:
        if kernel not in linked:
            linked[kernel] = Linker(kernel.hooks).link(kernel.function)
        return linked[kernel]

    monkeypatch.setattr(Kernel, "_plain", property(plain))


def workload(jobs: list[dict[str, Any]], processors: int, **resources: int) -> Workload:
    """Return a workload of jobs that have submit_time, run_time and processors, and more."""
    table = pl.DataFrame(jobs, infer_schema_length=None).with_row_index("job_id", 1).cast({"job_id": pl.Int64})
    if "estimate" not in table.columns:
        table = table.with_columns(estimate="run_time")
    table = table.with_columns(pl.col("submit_time", "run_time", "estimate").cast(pl.Float64))
    return Workload(sort_jobs(table), Machine(processors, processors, resources=resources), "tiny")


def job(submit: float, run: float, processors: int, **more: Any) -> dict[str, Any]:
    return {"submit_time": submit, "run_time": run, "processors": processors, **more}


def divided(some: Workload, **options: Any) -> dict[int, dict[str, float]]:
    """Return the reasons above 0 of each job under a scheduler."""
    scheduler = Scheduler(**options)
    table = wait_reasons(some, simulate(some, scheduler), scheduler).table
    rows = table.rows_by_key("job_id", named=True, unique=True)
    return {number: {name: row[name] for name in REASONS if row[name]} for number, row in rows.items()}


# -- by hand


def test_wide_job_keeps_room_for_itself() -> None:
    jobs = [job(0, 100, 3), job(10, 50, 4), job(20, 90, 1), job(20, 10, 1)]
    found = divided(workload(jobs, 4), backfill="easy")
    assert found == {1: {}, 2: {"room": 90.0}, 3: {"room": 60.0, "order": 70.0}, 4: {}}


def test_limit_comes_before_room() -> None:
    jobs = [job(0, 10, 2, user_id=1), job(0, 5, 2, user_id=2), job(1, 5, 2, user_id=1)]
    found = divided(workload(jobs, 4), limits={"user": {"jobs": 1}}, backfill="easy")
    assert found[3] == {"limit": 9.0}


def test_missing_limits_are_those_of_the_scheduler() -> None:
    assert NO_LIMIT == UNLIMITED


@pytest.mark.parametrize(
    ("most", "period", "expected"),
    [
        (16, None, {}),  # 4 processors have 2 minutes left, and 2 more would have 4
        (15, None, {"limit": 100.0}),  # the first job counts until it ends
        (12, 60, {"limit": 30.0}),  # 4 minutes are left after one
        (12, 50, {"limit": 20.0, "order": 10.0}),  # but the scheduler makes a decision at events only
    ],
)
def test_limits_of_processor_minutes(most: int, period: float | None, expected: dict[str, float]) -> None:
    jobs = [
        job(0, 130, 4, estimate=120, user_id=1),
        job(30, 1, 2, estimate=240, user_id=1),
        job(60, 1, 1, estimate=1, user_id=2),
    ]
    priority = {"order": "slurm-multifactor", "priority": {"age": 1, "calc_period": period}} if period else {}
    limits = {"user": {"1": {"processor_minutes": most}}}
    assert divided(workload(jobs, 99), limits=limits, backfill="easy", **priority)[2] == expected


def test_drain_before_and_during_maintenance() -> None:
    """The job would run into the window, which closes all processors."""
    some = workload([job(50, 100, 1)], 4)
    window = {"from": 100, "until": 130, "processors": 4}
    assert divided(some, unavailable=[window], backfill="easy")[1] == {"drain": 80.0, "room": 80.0}


def test_fragmentation_of_consecutive_processors() -> None:
    jobs = [job(0, 10, 1), job(0, 99, 1), job(0, 10, 1), job(0, 99, 1), job(1, 5, 2)]
    found = divided(workload(jobs, 4), allocation="first-contiguous", places=True)
    assert found[5] == {"room": 98.0, "fragmentation": 89.0}
    found = divided(workload(jobs, 4), allocation="first-fit", places=True)
    assert found[5] == {"room": 9.0}


def test_resources_are_room() -> None:
    some = workload([job(0, 10, 1, gpus=2), job(1, 5, 1, gpus=1)], 4, gpus=2)
    assert divided(some, backfill="easy")[2] == {"room": 9.0}


def test_eligibility_of_dependent_and_held_jobs() -> None:
    jobs = [job(0, 10, 4), job(1, 5, 4, depends_on=[1]), job(2, 5, 4, eligible_after=50.0)]
    assert divided(workload(jobs, 4))[2] == {"eligibility": 9.0}
    assert divided(workload(jobs, 4))[3] == {"eligibility": 50.0}


def test_recorded_schedule_states_what_is_unknown() -> None:
    """Nothing happens between 20 s, when the first job ends, and the start of the second."""
    jobs = [job(0, 20, 4, wait_time=0.0), job(5, 10, 2, wait_time=40.0), job(5, 10, 2, wait_time=45.0)]
    some, scheduler = workload(jobs, 4), Scheduler(order="log")
    found = wait_reasons(some, simulate(some, scheduler), scheduler)
    assert set(found.unknown) == {"limit", "fragmentation", "drain"}
    assert found.table.select("room", "order", "latency").rows() == [(0, 0, 0), (15, 0, 25), (15, 25, 5)]
    assert found.table.select("limit", "fragmentation", "drain").null_count().row(0) == (3, 3, 3)


def test_schedule_of_another_workload_is_refused() -> None:
    some, other = workload([job(0, 1, 1)], 4), workload([job(0, 1, 1), job(0, 1, 1)], 4)
    with pytest.raises(SwflowError, match="job 2 of the schedule is not in the workload"):
        wait_reasons(some, simulate(other, Scheduler()), Scheduler())


# -- random workloads

KINDS = ("plain", "windows", "numbered", "limits", "minutes", "limited gpus", "gpus", "clusters", "nodes")


def test_limits_hold_over_the_nodes_of_all_partitions(whole_seconds) -> None:
    jobs = [job(0, 10, 1, user_id=1, partition_id=0), job(1, 5, 1, user_id=1, partition_id=1)]
    nodes = [{"count": 1, "processors": 2, "partition": [name]} for name in "01"]
    slurm = {"backfill": "slurm", "scheduler_parameters": {"end_delay": 0}, "nodes": nodes}
    found = divided(workload(jobs, 4), limits={"user": {"jobs": 1}}, **slurm)
    assert found[2] == {"limit": 9.0}


def random_workload(rng: random.Random) -> tuple[Workload, Scheduler, dict[int, naive.Machine]]:
    """Draw a workload, a scheduler, and the machines of the twin by number."""
    size, kind = rng.randint(2, 8), rng.choice(KINDS)
    nodes = random_nodes(rng) if kind == "nodes" else []
    limited = kind in ("limits", "minutes") or (kind in ("nodes", "clusters") and rng.random() < 0.5)
    widest = min((sum(sizes) for sizes in nodes), default=(size + 1) // 2 if limited or kind == "clusters" else size)
    jobs, submit = [], 0
    for number in range(rng.randint(1, 14)):
        submit += rng.choice([0, 0, 1, 3, 7])
        run = rng.choice([0, 1, 4, 9, 20])
        spare = rng.choice([60, 150, 250] if kind == "minutes" else [0, 0, 2, 15])
        width = rng.randint(1, widest)
        one = job(submit, run, width, user_id=rng.randint(1, 2), estimate=max(1, run + spare))
        one |= {"gpus": rng.choice([0, 1, 2])} if kind in ("gpus", "limited gpus") else {}
        one |= {"partition_id": rng.randrange(len(nodes))} if nodes else {}
        if kind in ("plain", "limits", "nodes"):
            one["depends_on"] = [rng.randint(1, number)] if number and rng.random() < 0.15 else None
            one["eligible_after"] = rng.choice([None, None, float(rng.randint(0, 20))])
            one["cancelled_after"] = rng.choice([None] * 5 + [float(rng.randint(0, 20))])
        jobs.append(one)
    options: dict[str, Any] = {"order": rng.choice(["fcfs", "sjf", "wfp3"]), "backfill": rng.choice(["none", "easy"])}
    known: dict[str, Any] = {}
    if kind in ("windows", "numbered"):
        windows = [(begin, begin + rng.randint(1, 30), rng.randint(1, size)) for begin in rng.sample(range(60), 2)]
        options["unavailable"] = [{"from": a, "until": b, "processors": away} for a, b, away in windows]
        known["windows"] = tuple(windows)
        options["backfill"] = rng.choice(["none", "easy", "conservative"])
    if kind == "numbered":
        options |= {"allocation": rng.choice(["first-contiguous", "first-fit", "longest-idle"]), "places": True}
        known |= {"numbered": True, "contiguous": options["allocation"] == "first-contiguous"}
    if limited and kind != "minutes":
        most = (rng.randint(1, 3), rng.randint(widest, 2 * widest))
        options["limits"] = {"user": {"jobs": most[0], "processors": most[1]}}
        known["limits"] = ((*most, math.inf, math.inf),) * 2
    if kind == "limited gpus":
        options["limits"] = {"user": {"gpus": rng.randint(2, 4)}}
        known["limits"] = ((math.inf, math.inf, math.inf, options["limits"]["user"]["gpus"]),) * 2
    if kind == "minutes":
        minutes = rng.randint(4 * (size + 1) // 2, 8 * size)
        options["limits"] = {"user": {"processor_minutes": minutes}}
        known |= {"limits": ((math.inf, math.inf, minutes, math.inf),) * 2, "period": rng.choice([0, 7, 20])}
        if known["period"]:
            options |= {"order": "slurm-multifactor", "priority": {"age": 1, "calc_period": known["period"]}}
    if kind == "clusters":
        options |= {"clusters": [{"processors": size}, {"processors": size}], "dispatch": "round-robin"}
    if kind == "gpus":
        known["units"] = (2,)
    machines = {0: naive.Machine(size, **known), 1: naive.Machine(size, **known)}
    if nodes:
        known["cycles"] = True
        options |= {"backfill": "slurm", "scheduler_parameters": {"end_delay": 0, "bf_interval": rng.choice([2, 30])}}
        windows = [(begin, begin + rng.randint(1, 30)) for begin in rng.sample(range(60), rng.randint(0, 2))]
        away = [sorted(rng.sample(range(sum(map(len, nodes))), rng.randint(1, 2))) for _ in windows]
        options["unavailable"] = [
            {"from": begin, "until": until, "nodes": ",".join(str(node + 1) for node in closed)}
            for (begin, until), closed in zip(windows, away, strict=True)
        ]
        options["nodes"] = [
            {"count": 1, "processors": cores, "partition": [str(number)]}
            for number, sizes in enumerate(nodes) for cores in sizes
        ]  # fmt: skip
        for number, sizes in enumerate(nodes):
            first = sum(map(len, nodes[:number]))
            closed = [
                sum(
                    cores for node, cores in enumerate(sizes, first)
                    if any(begin <= second < until and node in gone
                           for (begin, until), gone in zip(windows, away, strict=True))
                )
                for second in range(99)
            ]  # fmt: skip
            edges = [0, *(second for second in range(1, 99) if closed[second] != closed[second - 1]), 99]
            known["windows"] = tuple((begin, until, closed[begin]) for begin, until in pairwise(edges) if closed[begin])
            machines[number] = naive.Machine(sum(sizes), **known)
        size = sum(map(sum, nodes))
    return workload(jobs, size, **({"gpus": 2} if kind == "gpus" else {})), Scheduler(**options), machines


def random_nodes(rng: random.Random) -> list[list[int]]:
    """Draw the processors of each node of one or two partitions."""
    return [[rng.randint(1, 4) for _ in range(rng.randint(2, 3))] for _ in range(rng.randint(1, 2))]


def check(rng: random.Random) -> None:
    """Compare the reasons of a random schedule with the twin."""
    some, scheduler, machines = random_workload(rng)
    outcomes = simulate(some, scheduler)
    found = wait_reasons(some, outcomes, scheduler)
    assert set(found.unknown) == ({"fragmentation"} if scheduler.nodes else set())
    problem = prepare(some, scheduler)
    planned = dict(zip(problem.table["job_id"], problem.jobs.planned, strict=True))
    columns = [name for name in ("user_id", "partition_id", "gpus") if name in some.jobs.columns]
    table = outcomes.join(some.jobs.select("job_id", *columns, submitted="submit_time"), on="job_id")
    centres: dict[int, list[naive.Job]] = {}
    expected = []
    for row in table.iter_rows(named=True):
        machine = machines[row.get("partition_id", 0)]
        one = naive.Job(
            *(int(row[name]) for name in ("submit_time", "start_time", "run_time")), int(planned[row["job_id"]]),
            row["processors"], _places(row["places"]), (row.get("gpus", 0),) if machine.units else (),
            (row["user_id"] - 1,) if machine.limits else (), row.get("partition_id", 0), (row.get("gpus", 0),),
        )  # fmt: skip
        centres.setdefault(row["centre"], []).append(one)
        expected.append((centres[row["centre"]], one, machine))
    for (others, one, machine), row in zip(expected, found.table.iter_rows(named=True), strict=True):
        twin = naive.divide(one, others, machine)
        assert {name: row[name] for name in DIVIDED} == twin | dict.fromkeys(found.unknown)
    wait = table["start_time"] - table["submitted"]
    np.testing.assert_allclose(found.table.select(pl.sum_horizontal(PARTS)).to_series(), wait, atol=1e-6)


def _places(text: str | None) -> frozenset[int]:
    """Return the processors of a job."""
    if text is None:
        return frozenset()
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return frozenset(place for part in ends for place in range(part[0], part[-1] + 1))


def test_reasons_of_simulated_schedules(whole_seconds) -> None:
    for seed in range(40):
        check(random.Random(seed))


@pytest.mark.slow
def test_reasons_of_many_simulated_schedules(whole_seconds) -> None:
    for seed in range(1000, 1000 + 20 * CASES):
        check(random.Random(seed))


def test_head_of_the_queue_waits_for_room_only() -> None:
    """Without backfilling, the first job of the queue starts as soon as there is room."""
    for seed in range(20):
        rng = random.Random(seed)
        jobs = [job(rng.randint(0, 60), rng.randint(0, 30), rng.randint(1, 5)) for _ in range(12)]
        some = workload(jobs, 5)
        outcomes = simulate(some, Scheduler())
        rows = outcomes.join(wait_reasons(some, outcomes, Scheduler()).table, on="job_id").rows(named=True)
        latest = -math.inf
        for row in rows:
            if row["submit_time"] >= latest:  # all earlier jobs have started
                assert row["order"] == 0
            else:
                assert row["order"] <= latest - row["submit_time"]
            latest = max(latest, row["start_time"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "of_qos"),
    [
        ({"jobs": 2, "processors": 40}, {}),
        ({"processor_minutes": 2880}, {}),
        ({"jobs": 2, "processors": 26}, {"processors": 50}),
        ({"processor_minutes": 2880}, {"processor_minutes": 4000}),
    ],
    ids=str,
)
def test_limits_of_a_slurm_site_are_what_its_simulator_counts(
    limits: dict[str, int], of_qos: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow simulator counts, at each of its events, which jobs a limit keeps from starting."""
    jobs = generate("lublin", jobs=80, processors=64, load=0.9, seed=5, users=True).jobs.with_columns(
        pl.col("processors").clip(1, 24), pl.col("run_time").clip(1, 7200).floor(), pl.col("estimate").clip(1, 7200),
        pl.col("user_id") % 4, queue_id=pl.int_range(pl.len()) % 2, submit_time=(pl.col("submit_time") / 5).floor(),
    )  # fmt: skip
    jobs = jobs.with_columns(estimate=pl.max_horizontal(pl.col("estimate").floor(), "run_time"))
    given = {"user": limits} | ({"qos": {"1": of_qos}} if of_qos else {})
    some, scheduler = Workload(jobs, Machine.of(64), "site"), Scheduler(backfill="slurm", limits=given)
    outcomes, problem = simulate(some, scheduler), prepare(some, scheduler)
    most, most_of_qos = (
        tuple(one.get(name, math.inf) for name in ("jobs", "processors", "processor_minutes"))
        for one in (limits, of_qos)
    )
    limited = {("user", number): most for number in range(4)} | {("qos", 1): most_of_qos}
    policy = naive_slurm.SlurmPolicy(backfill="slurm", limits=limited)
    arrays = zip(
        *(getattr(problem.jobs, name).tolist() for name in ("submit", "run", "planned", "processors")), strict=True
    )
    plain = [
        naive_slurm.SlurmJob(number, *values, user=user, qos=qos)
        for number, (values, user, qos) in enumerate(zip(arrays, *problem.table["user_id", "queue_id"], strict=True))
    ]
    counted, last = dict.fromkeys(range(len(plain)), 0.0), [0.0]
    pass_time = naive_slurm.SlurmMachine.pass_time

    def counting(machine: naive_slurm.SlurmMachine, now: float) -> None:
        for one in machine.queue:
            counted[one.number] += (now - last[0]) * machine.is_limited(one)
        last[0] = now
        pass_time(machine, now)

    monkeypatch.setattr(naive_slurm.SlurmMachine, "pass_time", counting)
    (machine,) = naive_slurm.simulate_slurm(plain, [naive_slurm.SlurmMachine(64, policy)], "round-robin")
    assert [machine.starts[number] for number in counted] == outcomes["start_time"].to_list()
    found = wait_reasons(some, outcomes, scheduler).table["limit"]
    assert 0 < found.sum() < (outcomes["start_time"] - outcomes["submit_time"]).sum()
    np.testing.assert_allclose(found, list(counted.values()), atol=1e-6)
