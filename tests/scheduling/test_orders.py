"""Orders of the queue: names, formulas, and what is refused."""

import math

import numpy as np
import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.scheduling.orders.formula import compile_formula
from swflow.scheduling.orders.vocabulary import ORDERS
from swflow.scheduling.reference_schedule import conventions
from swflow.scheduling.scheduler import CHOICES, Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import clean, clean_log
from swflow.workload.models.lublin import generate_lublin
from swflow.workload.steps.memory import memory
from swflow.workload.steps.set_machine import with_machine

TWINS = {name: order.formula for name, order in ORDERS.items()} | {"lcfs": "wait"}


@pytest.fixture(scope="module", params=[200, pytest.param(1500, marks=pytest.mark.slow)])
def workload(request: pytest.FixtureRequest) -> Workload:
    """Make a workload whose queue is long."""
    fields = generate_lublin(request.param, 32, generator(3, "orders"), load=1.2, users=True)
    return clean(fields, Machine.of(32), name="orders")


@pytest.mark.compiled
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("name", TWINS)
def test_a_named_order_equals_its_formula(workload, name, backfill):
    built_in = simulate(workload, Scheduler(order=name, backfill=backfill))
    formula = simulate(workload, Scheduler(order=f"({TWINS[name]})", backfill=backfill))
    assert built_in["start_time"].equals(formula["start_time"])


def test_orders_differ(workload):
    starts = {name: tuple(simulate(workload, Scheduler(order=name))["start_time"]) for name in ORDERS}
    assert len(set(starts.values())) == len(ORDERS)


def test_a_function_is_an_order(workload):
    def longest(now, submit, estimate, processors, user, group, queue, executable, job):
        return -estimate

    ours = simulate(workload, Scheduler(order=longest, backfill="easy"))
    assert ours["start_time"].equals(simulate(workload, Scheduler(order="ljf", backfill="easy"))["start_time"])
    assert "longest" in Scheduler(order=longest).to_dict()["order"]


@pytest.mark.parametrize("prediction", ["user", "system"])
def test_formulas_know_users_and_queues(workload, prediction):
    first = simulate(workload, Scheduler(order="0 if user_id == 1 else 1 + submit_time", prediction=prediction))
    joined = first.join(workload.jobs.select("job_id", "user_id"), on="job_id")
    wait = joined.group_by(pl.col("user_id") == 1).agg(pl.col("wait_time").mean()).sort("user_id")["wait_time"]
    assert wait[1] < wait[0] / 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os')", "cannot call '__import__' at position 1"),
        ("wait / estimat", "unknown name 'estimat' at position 8; did you mean 'estimate'"),
        ("sjff", "unknown order 'sjff'; did you mean 'sjf'"),
        ("wait.real", "Attribute at position 1 is not allowed"),
        ("wait if", "incomplete at position 8, after 'if'"),
        ("wait /", "order: 'wait /': incomplete at position 7, after '/'"),
        ("lambda: 1", "Lambda at position 1 is not allowed"),
        ("run_time", "unknown"),
        ("min(wait, default=1)", "give arguments by position"),
        ("log(1, 2, 3)", "wrong number of arguments"),
        ("'estimate'", "at position 1 is not a number"),
        ("[wait]", "List at position 1 is not allowed"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_position(text, words):
    with pytest.raises(SwflowError, match=r"^order: [^\n]+$") as caught:
        compile_formula(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("wait", 20.0),
        ("-(wait / estimate) ** 3 * processors", -((20 / 8) ** 3) * 4),
        ("wait > 3", 1.0),
        ("not wait > 3", 0.0),
        ("1 if 3 < wait <= 20 and queue_id == 2 else 7", 1.0),
        ("log2(processors) + max(wait, 99, now) - abs(-3) // 2 % 4", 2 + 99 - 1),
        ("1 / (wait - 20)", math.inf),
        ("sqrt(processors) + exp(0) + log(1)", 3.0),
    ],
)
def test_formulas_mean_what_python_means(text, value):
    assert compile_formula(text)(30, 10, 8, 4, 1, 1, 2, 3, 9, *[0] * 6) == value


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reservations": 0}, "reservations: 0; expected at least 1"),
        ({"places": True}, "places: processors are not numbered"),
        ({"unavailable": [{"from": 0, "until": 5}]}, "unavailable: .*; give either processors or nodes"),
        ({"unavailable": [{"form": 0}]}, "unavailable: unknown key 'form'; did you mean 'from'"),
        ({"prediction": "perfct"}, "prediction: unknown value 'perfct'; did you mean 'perfect'"),
        ({"backfill_order": "sjff"}, "backfill_order: unknown order 'sjff'"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(SwflowError, match=f"schedulers: mine: {words}"):
        Scheduler.of("mine", options)


def busy_at_once(outcomes: pl.DataFrame) -> int:
    """Return the most processors that are ever busy."""
    times = np.concatenate([outcomes["end_time"], outcomes["start_time"]])
    changes = np.concatenate([-outcomes["processors"], outcomes["processors"]])
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max())


AVOID_SHARING = ("least-shared", "threshold")


def goes_together(allocation: str, backfill: str, more: dict) -> bool:
    """Return whether the documentation of schedulers allows the options together."""
    shares = allocation in AVOID_SHARING or "runtime" in more
    return not (
        (allocation == "count" and (backfill == "reservation-table" or "runtime" in more))
        or (allocation in AVOID_SHARING and (backfill not in ("none", "easy") or "unavailable" in more))
        or (shares and "event_order" in more)
    )


@pytest.mark.compiled
@pytest.mark.parametrize("allocation", CHOICES["allocation"])
@pytest.mark.parametrize(
    "backfill", ["none", "easy", "conservative", pytest.param("reservation-table", marks=pytest.mark.slow)]
)  # the last one has a kernel of its own
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"prediction": "system"},
        {"prediction": "double"},
        {"event_order": "per-event"},
        {"runtime": "shared"},
        {"unavailable": ({"from": 20_000.0, "until": 90_000.0, "processors": 20},)},
    ],
    ids=str,
)
def test_every_combination_runs_every_job_within_the_machine(workload, allocation, backfill, more):
    reservations = 3 if backfill == "easy" and allocation not in AVOID_SHARING else 1
    options = {"allocation": allocation, "backfill": backfill, "order": "wfp3", "reservations": reservations} | more
    if not goes_together(allocation, backfill, more):
        with pytest.raises(SwflowError, match=r"^(allocation|backfill|event_order|runtime): "):
            Scheduler(**options)
        return
    if "runtime" in more or allocation in AVOID_SHARING:
        workload = memory(with_machine(workload, preset="alvio-node"), seed=1, step="memory")
    outcomes = simulate(workload, Scheduler(**options))
    assert outcomes.height == workload.jobs.height
    assert (outcomes["wait_time"] >= 0).all()
    assert busy_at_once(outcomes) <= 32
    if "unavailable" in more:
        inside = outcomes.filter((pl.col("start_time") < 90_000) & (pl.col("end_time") > 20_000))
        assert busy_at_once(inside.with_columns(start_time=pl.col("start_time").clip(20_000, None))) <= 12


def test_places_are_recorded_as_ranges(workload):
    outcomes = simulate(workload, Scheduler(backfill="easy", allocation="first-contiguous", places=True))
    places = outcomes["places"].str.split("-")
    lengths = [int(part[-1]) - int(part[0]) + 1 for part in places]
    assert lengths == outcomes["processors"].to_list()


@pytest.mark.parametrize("dispatch", CHOICES["dispatch"])
def test_clusters_share_the_jobs(workload, dispatch):
    small = Workload(workload.jobs.filter(pl.col("processors") <= 16), Machine.of(48), "small")
    clusters = ({"processors": 32}, {"processors": 16, "backfill": "conservative"})
    if dispatch == "partition":
        small = Workload(small.jobs.with_columns(partition_id=pl.col("job_id") % 2), small.machine, small.name)
        clusters = tuple(cluster | {"partition": number} for number, cluster in enumerate(clusters))
    outcomes = simulate(small, Scheduler(backfill="easy", clusters=clusters, dispatch=dispatch))
    for centre, size in ((1, 32), (2, 16)):
        part = outcomes.filter(centre=centre)
        assert part.height > small.jobs.height // 15
        assert busy_at_once(part) <= size


def test_planning_and_killing_are_apart():
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.0, 1.0, 2.0], "run_time": [10.0, 5.0, 6.0],
        "estimate": [4.0, 5.0, 6.0], "processors": [4, 8, 4], "user_id": [1, 1, 1],
    })  # fmt: skip
    tiny = Workload(jobs, Machine.of(8), "tiny")
    killed = simulate(tiny, Scheduler(backfill="easy", estimates="kill", prediction="perfect"))
    assert killed["run_time"].to_list() == [4, 5, 6]
    assert killed["killed"].to_list() == [True, False, False]
    assert simulate(tiny, Scheduler(backfill="easy"))["start_time"].to_list() == [0, 10, 2]


def test_conventions_name_every_choice(workload):
    lines = "\n".join(conventions(workload, Scheduler(order="sjf", backfill="easy", event_order="per-event")))
    for words in ("sjf, that is, the smallest value of estimate", "Shadow time", "per-event", "raise", "32 processors"):
        assert words in lines


@pytest.mark.archive
def test_event_orders_differ_on_a_real_log(traces):
    """On SDSC-BLUE, cancelled jobs included, a fifth of the start times depend on the order of events."""
    log = clean_log(traces / "SDSC-BLUE-2000-4.2-cln.swf.gz")
    batch, per_event = (simulate(log, Scheduler(backfill="easy", event_order=how)) for how in ("batch", "per-event"))
    share = (batch["start_time"] != per_event["start_time"]).mean()
    assert 0.15 < share < 0.25
