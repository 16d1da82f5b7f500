"""Counted resources besides processors: validation, and schedules against the slow simulator."""

import math
import os
import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from helpers.kernels import owners_of_columns, simulate_arrays
from helpers.workloads import BACKFILLS, ORDERS, random_jobs, random_windows
from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.prepare import prepare
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.scheduling.state.accounts import UNLIMITED
from swflow.scheduling.state.items import Shapes

TINY = pl.DataFrame(
    {
        "job_id": [11, 12, 13],
        "submit_time": [0.0, 1.0, 2.0],
        "run_time": [10.0, 10.0, 3.0],
        "processors": [3, 4, 1],
        "estimate": [10.0, 10.0, 5.0],
        "gpus": [None, 2, 1],
    }
)


def site(jobs: pl.DataFrame = TINY, **resources: int) -> Workload:
    return Workload(jobs, Machine(4, 4, resources=resources), "site")


# -- validation


def test_a_problem_has_the_columns_that_are_named_as_the_resources_of_the_machine():
    problem = prepare(site(TINY.with_columns(licenses=pl.lit(1)), licenses=3, gpus=2), Scheduler(backfill="easy"))
    assert problem.machines[0].resources == {"gpus": 2, "licenses": 3}
    assert problem.jobs.demands is not None
    assert problem.jobs.demands.tolist() == [[0, 1], [2, 1], [1, 1]]
    assert prepare(site(), Scheduler()).jobs.demands is None


def test_clusters_have_resources_of_their_own():
    clusters = ({"processors": 4, "resources": {"gpus": 2}}, {"processors": 2, "resources": {"licenses": 1}})
    jobs = TINY.with_columns(licenses=pl.lit(None, pl.Int64))
    problem = prepare(site(jobs), Scheduler(backfill="easy", clusters=clusters))
    assert [machine.resources for machine in problem.machines] == [
        {"gpus": 2, "licenses": 0},
        {"gpus": 0, "licenses": 1},
    ]


def test_a_file_is_read_with_the_columns_of_its_resources(tmp_path):
    write_workload(site(gpus=2), tmp_path / "site.parquet")
    found = read_workload(tmp_path / "site.parquet", columns=())
    assert found.machine.resources == {"gpus": 2}
    assert found.jobs["gpus"].to_list() == [None, 2, 1]
    assert "resources" not in Machine.of(4).to_dict()  # files without resources keep their bytes


@pytest.mark.parametrize(
    ("workload", "options", "message"),
    [
        (site(gpus=1), {}, "site: job 12 needs 2 of 1 gpus"),
        (site(TINY.with_columns(gpus=pl.lit(0.5)), gpus=2), {}, "site: job 11: gpus is 0.5"),
        (site(TINY.with_columns(gpus=pl.lit(-1)), gpus=2), {}, "site: job 11: -1 gpus, below 0"),
        (site(TINY.with_columns(gpus=pl.lit("two")), gpus=2), {}, "site: column gpus holds String"),
        (site(TINY.drop("gpus"), gpus=2), {}, "site: no column gpus"),
        (site(TINY.with_columns(wait=pl.lit(1)), wait=2), {}, "resources: wait means something else in formulas"),
        (site(gpus=2), {"allocation": "first-fit"}, "allocation: machines with resources have counted processors"),
        (site(gpus=2), {"clusters": ({"processors": 4},)}, "clusters: the machine of site has resources"),
        (
            site(),
            {"clusters": ({"processors": 4, "resources": {"gpus": 1}}, {"processors": 2, "resources": {"gpus": 2}})},
            "site: job 12 needs 4 processors and 2 gpus; no cluster has all of them",
        ),
        (
            site(),
            {"clusters": ({"processors": 4, "resources": {"gpus": 1}},), "allocation": "first-fit"},
            "allocation: machines with resources have counted processors",
        ),
    ],
)
def test_what_cannot_be_scheduled_is_refused_in_one_line(workload: Workload, options: dict[str, Any], message: str):
    with pytest.raises(SwflowError, match=message) as error:
        prepare(workload, Scheduler(**options))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"gpus": 1.5}, "gpus: 1.5; expected a whole number of units"),
        ({"gpus": -1}, "gpus: -1; expected a whole number of units"),
        ({"gpu cards": 1}, "'gpu cards' is no name of a resource"),
        ({"processors": 1}, "'processors' is no name of a resource"),
        (5, "5; expected names with numbers of units"),
    ],
)
def test_bad_resources_are_named(resources: Any, message: str):
    with pytest.raises(SwflowError, match=f"machine: resources: {message}"):
        Machine(4, 4, resources=resources)
    with pytest.raises(SwflowError, match=f"clusters: resources: {message}"):
        Scheduler(clusters=({"processors": 4, "resources": resources},))


def test_a_name_is_a_capacity_of_nodes_or_a_resource():
    with pytest.raises(SwflowError, match="machine: resources: memory is also a capacity of each node"):
        Machine(4, 2, {"memory": 5.0}, {"memory": 9})


# -- schedules


@dataclass
class Case:
    """A random workload of jobs that need resources, and the options of a scheduler."""

    jobs: list[naive.Job]
    machine: int
    units: tuple[int, ...]
    options: dict[str, Any]

    def by_naive(self) -> list[float]:
        def dominant(job: naive.Job, now: float) -> float:
            of_units = [demand / units for demand, units in zip(job.demands, self.units, strict=True)]
            return max(job.processors / self.machine, *of_units)

        naive.ORDERS.update({"by-units": _key_of_units, "units-wait": _key_of_wait, "dominant": dominant})
        options = dict(self.options)
        per_event = options.pop("per_event", False)
        policy = naive.Policy(event_order="per-event" if per_event else "batch", **options)
        done = naive.simulate(self.jobs, self.machine, policy, resources=self.units)
        return [done.starts[number] for number in range(len(self.jobs))]

    def by_kernel(self) -> list[float]:
        return simulate_arrays(**self.columns(), machine=self.machine, **self.limited()).start.tolist()

    def columns(self) -> dict[str, Any]:
        table = np.array([(job.submit, job.run, job.planned) for job in self.jobs]).T
        found: dict[str, Any] = dict(zip(("submit", "run", "planned"), map(np.ascontiguousarray, table), strict=True))
        found["processors"] = np.array([job.processors for job in self.jobs])
        found["users"] = np.array([job.user for job in self.jobs])
        found["demands"] = np.array([job.demands for job in self.jobs]).reshape(len(self.jobs), -1)
        return found | {"units": self.units}

    def limited(self) -> dict[str, Any]:
        """Return the options with limits as the engine takes them: a table by account."""
        options = dict(self.options)
        orders = {name: FORMULAS.get(options[name], options[name]) for name in ("order", "backfill_order")}
        options |= orders
        shapes = options.pop("shapes", "requested")
        if shapes != "requested":
            all_shapes = [shape for job in self.jobs for shape in job.shapes]
            run, planned, width = np.array(all_shapes).T
            first = np.append(0, np.cumsum([len(job.shapes) for job in self.jobs]))
            options["select"] = shapes
            options["shapes"] = Shapes(first, run.copy(), planned.copy(), width.astype(np.int64))
        limits = options.pop("limits", None)
        if limits:
            users = np.array([job.user for job in self.jobs])
            none, known = np.full(users.size, -1), np.full(users.size, np.nan)
            table = np.full((2 + users.max(), 2), UNLIMITED)
            for (_, user), (jobs, processors) in limits.items():
                if user <= users.max():
                    table[1 + user] = [min(jobs, UNLIMITED), min(processors, UNLIMITED)]
            options |= {"owners": owners_of_columns(users, none, none, known, known, known), "limits": table}
        return options


#: Orders that depend on resources, as `tests/naive.py` and as formulas know them.
FORMULAS = {
    "by-units": "(r0 + 1) * estimate",
    "units-wait": "-wait * (r0 + 2) / estimate",
    "dominant": "dominant_share",
}


def _key_of_units(job: naive.Job, now: float) -> float:
    return (job.demands[0] + 1) * job.planned


def _key_of_wait(job: naive.Job, now: float) -> float:
    return -(now - job.submit) * (job.demands[0] + 2) / job.planned


def random_case(rng: random.Random, backfill: str, most: int = 4, jobs: int = 18) -> Case:
    """Return a random case with up to ``most`` resources."""
    machine = rng.randint(1, 8)
    units = tuple(rng.choice([1, 2, 5, 9]) for _ in range(rng.randint(1, most)))
    shapes = rng.choice(["requested"] * 4 + ["submit", "start"])
    rows = random_jobs(rng, machine, rng.randint(1, jobs))
    found = []
    for number, (submit, run, planned, width, user) in enumerate(rows):
        demands = tuple(rng.choice([0, 0, 1, rng.randint(0, most), most]) for most in units)
        found.append(naive.Job(number, submit, run, planned, width, user, demands=demands))
        if shapes != "requested":
            widths = sorted({width, rng.randint(1, machine), rng.randint(1, machine)})
            found[-1].shapes = [(one := float(rng.randint(0, 9)), max(1.0, one + rng.randint(0, 5)), w) for w in widths]
    options: dict[str, Any] = {
        "order": rng.choice(["fcfs", "fcfs", *ORDERS, *FORMULAS]),
        "backfill": backfill,
        "lookahead": rng.choice([1, 1, 2, 3, 5]),
        "backfill_order": rng.choice(["fcfs", "fcfs", *ORDERS, *FORMULAS]),
        "predict": shapes == "requested" and rng.random() < 0.25,
        "per_event": rng.random() < 0.25,
        "unavailable": random_windows(rng, machine) if rng.random() < 0.4 else [],
        "shapes": shapes,
    }
    if shapes == "requested" and rng.random() < 0.3:  # as the kernel for short queues takes it
        options |= {"order": "fcfs", "backfill_order": "fcfs", "lookahead": 1, "predict": False}
        options["unavailable"] = []
    elif backfill != "conservative" and shapes == "requested" and rng.random() < 0.3:
        options["limits"] = {("user", user): (rng.choice([1, 2, math.inf]), math.inf) for user in range(3)}
    return Case(found, machine, units, options)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
def test_random_workloads_have_the_schedule_of_the_slow_simulator(backfill: str):
    """``SWFLOW_RANDOM_CASES=33334`` runs 100,000 cases over the three backfills."""
    for seed in range(int(os.environ.get("SWFLOW_RANDOM_CASES", "400"))):
        case = random_case(random.Random(f"{backfill} {seed}"), backfill)
        assert case.by_kernel() == case.by_naive(), (seed, case)


@pytest.mark.slow
def test_backfilled_jobs_leave_the_resources_of_the_head():
    """Some jobs start, one that needs much waits, and of the small ones behind it some do not delay it."""
    rng = random.Random(4)
    for number in range(300):
        jobs = []
        for place in range(12):
            run = float(rng.randint(1, 40))
            (low, high), wide = ((4, 9), 12) if place == 3 else ((0, 4), 5)
            demands = (rng.randint(low, high), rng.randint(low, high) * rng.randint(0, 1))
            planned = run + rng.choice([0, 0, 1, 7])
            jobs.append(naive.Job(place, 0.0, run, planned, rng.randint(1, wide), demands=demands))
        options: dict[str, Any] = {"backfill": "lookahead", "lookahead": rng.choice([1, 1, 2, 3])}
        options |= {"order": "fcfs", "backfill_order": rng.choice(["fcfs", "sjf"]), "per_event": rng.random() < 0.3}
        case = Case(jobs, 12, (9, 12), options)
        assert case.by_kernel() == case.by_naive(), (number, case)


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.sampled_from(BACKFILLS), st.integers(1, 4))
def test_any_workload_has_the_schedule_of_the_slow_simulator(rng: random.Random, backfill: str, most: int):
    case = random_case(rng, backfill, most, jobs=10)
    assert case.by_kernel() == case.by_naive()


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", ["round-robin", "least-loaded", "earliest-start"])
def test_clusters_have_the_schedule_of_the_slow_simulator(dispatch: str):
    rng = random.Random(dispatch)
    for case in range(150):
        kinds = rng.randint(1, 3)
        clusters = [
            {
                "machine": rng.randint(1, 6),
                "units": tuple(rng.choice([0, 1, 4]) for _ in range(kinds)),
                "order": rng.choice(["fcfs", *ORDERS]),
                "backfill": rng.choice(BACKFILLS),
                "lookahead": rng.choice([1, 1, 2]),
                "backfill_order": rng.choice(["fcfs", *ORDERS]),
            }
            for _ in range(rng.randint(2, 3))
        ]
        jobs = []
        for number, (submit, run, planned, *_, user) in enumerate(random_jobs(rng, 6, rng.randint(1, 18))):
            home = rng.choice(clusters)  # at least this one is large enough
            demands = tuple(rng.choice([0, rng.randint(0, most)]) for most in home["units"])
            width = rng.randint(1, home["machine"])
            jobs.append(naive.Job(number, submit, run, planned, width, user, demands=demands))
        machines = [
            naive.Machine(
                one["machine"],
                naive.Policy(**{key: value for key, value in one.items() if key not in ("machine", "units")}),
                resources=one["units"],
            )
            for one in clusters
        ]
        naive.simulate_centres(jobs, machines, dispatch)
        expected = {
            number: (start, index) for index, machine in enumerate(machines) for number, start in machine.starts.items()
        }
        columns = Case(jobs, 6, clusters[0]["units"], {}).columns()
        found = simulate_arrays(**columns, machine=6, centres=clusters, dispatch=dispatch)
        pairs = dict(enumerate(zip(found.start.tolist(), found.cluster.tolist(), strict=True)))
        assert pairs == expected, (case, jobs, clusters)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
def test_a_long_queue_has_the_schedule_of_the_slow_simulator(backfill: str):
    """There are enough jobs for plans of several blocks."""
    rng = random.Random(backfill)
    count = 70 if backfill == "conservative" else 250
    rows = sorted((float(rng.randint(0, 30)), float(rng.randint(1, 40)), rng.choice([0.0, 31.0])) for _ in range(count))
    jobs = [
        naive.Job(
            number, submit, run, run + more, rng.choice([1, 2, rng.randint(1, 90)]),
            demands=tuple(rng.choice([0, 1, 7, rng.randint(0, 60)]) for _ in range(3)),
        )
        for number, (submit, run, more) in enumerate(rows)
    ]  # fmt: skip
    case = Case(jobs, 100, (60, 100, 70), {"order": "sjf", "backfill": backfill, "backfill_order": "saf"})
    assert case.by_kernel() == case.by_naive()


# -- by hand, and through workloads


def test_the_shadow_time_is_when_everything_fits_that_the_head_needs():
    # The head, job 1, needs 2 GPUs; processors suffice from 10 on, GPUs from 20 on: job 3 may run until 20, and job 4
    # may run longer, as it needs no GPU; job 5 would take the GPU of the head.
    jobs = pl.DataFrame(
        {
            "job_id": [0, 1, 2, 3, 4, 5],
            "submit_time": [0.0, 1.0, 0.0, 2.0, 3.0, 4.0],
            "run_time": [20.0, 5.0, 10.0, 18.0, 50.0, 50.0],
            "processors": [1, 4, 5, 1, 1, 1],
            "estimate": [20.0, 5.0, 10.0, 18.0, 50.0, 50.0],
            "gpus": [1, 2, 0, 1, 0, 1],
        }
    ).sort("submit_time", "job_id")
    site = Workload(jobs, Machine(8, 8, resources={"gpus": 2}), "site")
    started = simulate(site, Scheduler(backfill="easy")).sort("job_id")["start_time"].to_list()
    assert started == [0.0, 20.0, 0.0, 2.0, 3.0, 25.0]
    pooled = simulate(replace(site, machine=Machine(8, 8)), Scheduler(backfill="easy")).sort("job_id")
    assert pooled["start_time"].to_list() == [0.0, 10.0, 0.0, 2.0, 3.0, 10.0]


def test_formulas_use_the_names_of_resources():
    jobs = TINY.with_columns(submit_time=pl.lit(0.0), processors=pl.lit(4), gpus=pl.Series([2, 0, 1]))
    one = site(jobs, gpus=2)

    def order_of(order: str) -> list[int]:
        return simulate(one, Scheduler(order=order)).sort("start_time")["job_id"].to_list()

    assert order_of("gpus + 0") == [12, 13, 11]
    assert order_of("-gpus * (wait + 1)") == [11, 13, 12]
    assert order_of("dominant_share") == [11, 12, 13]  # 1 for each: processors
    for order in ("gpu + 0", "licenses * 2"):
        with pytest.raises(SwflowError, match=r"order: .* unknown name"):
            simulate(one, Scheduler(order=order))
    with pytest.raises(SwflowError, match="did you mean 'wait'"):
        Scheduler(order="2 * waits")
    named = {f"kind_{letter}": 1 for letter in "abcde"}
    five = site(TINY.with_columns(pl.lit(0).alias(name) for name in named), **named)
    with pytest.raises(SwflowError, match="formulas may mention 4 resources, not 5"):
        simulate(five, Scheduler(order=" + ".join(named)))
