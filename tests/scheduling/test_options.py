"""The table of options: what a scheduler refuses, and that schema, help and docs say the same."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import typer
import yaml

import swflow
from swflow.cli import application
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.options import CHOICES, OPTIONS, Options, help_of
from swflow.scheduling.orders.vocabulary import ORDERS, NamedOrder
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.schema import written_into
from swflow.scheduling.simulate import simulate
from swflow.scheduling.state.choices import Allocation, Backfill, Dispatch
from swflow.studies.runs import run

ROOT = Path(__file__).parents[2]


def window(begin: Any = 0, until: Any = 10, processors: Any = 1) -> dict[str, Any]:
    return {"unavailable": [{"from": begin, "until": until, "processors": processors}]}


def nodes_away(nodes: Any, **more: Any) -> dict[str, Any]:
    return {"unavailable": [{"from": 0, "until": 10, "nodes": nodes, **more}]}


#: Wrong options and their errors; the first word of an error is the option.
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"order": 5}, "order: 5; expected the name of an order or a formula"),
    ({"order": ["fcfs"]}, "order: ('fcfs',); expected the name of an order"),
    ({"order": "nope"}, "order: unknown order 'nope'"),
    ({"order": "log10(1, 2)"}, "log10 has a wrong number of arguments at position 1"),
    ({"backfill": "xx"}, "backfill: unknown value 'xx'"),
    ({"backfill": ["easy"]}, "backfill: unknown value ('easy',)"),
    ({"backfill_order": "log"}, "backfill_order: unknown order 'log'"),
    ({"reservations": "3"}, "reservations: '3'; expected a whole number"),
    ({"reservations": 2.5}, "reservations: 2.5; expected a whole number"),
    ({"reservations": True}, "reservations: True; expected a whole number"),
    ({"reservations": 0}, "reservations: 0; expected at least 1"),
    ({"backfill_starts": 0}, "backfill_starts: 0; expected at least 1"),
    ({"places": "yes", "allocation": "first-fit"}, "places: 'yes'; expected true or false"),
    ({"penalty": 3}, "penalty: 3; expected a text"),
    ({"penalty": "log(1, 2)"}, "log has a wrong number of arguments"),
    ({"sharing_limit": "much"}, "sharing_limit: 'much'; expected a number"),
    ({"sharing_limit": -1}, "sharing_limit: -1; expected at least 0"),
    ({"sharing_limit": math.nan}, "sharing_limit: nan; expected at least 0"),
    ({"efficiency": 0}, "efficiency: 0; expected above 0, at most 1"),
    ({"efficiency": 2}, "efficiency: 2; expected at most 1"),
    ({"without_status": 5}, "without_status: 5; expected a list of whole numbers"),
    ({"without_status": ["x"]}, "without_status: 'x'; expected a whole number"),
    ({"unavailable": {"from": 1}}, "unavailable: {'from': 1}; expected a list of windows"),
    ({"unavailable": [5]}, "unavailable: 5; expected a mapping with the keys from, until, processors"),
    (
        {"unavailable": [{"from": 1, "until": 2}]},
        "unavailable: {'from': 1, 'until': 2}; give either processors or nodes",
    ),
    (window(processors=-2), "unavailable: processors: -2; expected at least 1"),
    (window(processors=0), "unavailable: processors: 0; expected at least 1"),
    (window(processors=1.5), "unavailable: processors: 1.5; expected a whole number"),
    (window(begin="abc"), "unavailable: from: 'abc'; expected a date such as 1996-01-01"),
    (window(begin=10, until=10), "unavailable: the window from 10 until 10 is empty"),
    (window(begin=100, until=10), "unavailable: the window from 100 until 10 is empty"),
    (window("1996-01-02", "1996-01-01"), "unavailable: the window from 1996-01-02 until 1996-01-01 is empty"),
    (window(until=1e18), "unavailable: until: 1e+18 is not a time between"),
    (window(begin=math.nan), "unavailable: from: nan is not a time between"),
    (window(begin=-math.inf), "unavailable: from: -inf is not a time between"),
    (window(begin=None), "unavailable: from: None; expected seconds from the log's start or a day"),
    ({"clusters": [5]}, "clusters: 5; expected a mapping with the keys processors"),
    ({"clusters": 5}, "clusters: 5; expected a list of clusters"),
    ({"clusters": [{"processors": 0}]}, "clusters: processors: 0; expected at least 1"),
    ({"clusters": [{"processors": 4, "order": "nope"}]}, "clusters: order: unknown order 'nope'"),
    ({"clusters": [{"processors": 4, "backfill": "xx"}]}, "clusters: backfill: unknown value 'xx'"),
    ({"clusters": [{"processors": 4, "reservations": 0}]}, "clusters: reservations: 0; expected at least 1"),
    ({"clusters": [{"processors": 4, "size": 0}]}, "clusters: unknown key 'size'"),
    ({"nodes": 5}, "nodes: 5; expected a list of groups of nodes"),
    ({"nodes": [{"count": 2}]}, "nodes: {'count': 2} lacks 'processors'"),
    ({"nodes": [{"count": 2, "processors": 0}]}, "nodes: processors: 0; expected at least 1"),
    ({"nodes": [{"count": 2, "processors": 1, "partition": [True]}]}, "nodes: partition: True; expected a name"),
    ({"nodes": [{"count": 70_000, "processors": 1}]}, "nodes: 70,000 nodes; expected at most 65,536"),
    ({"nodes": [{"count": 2, "processors": 1}]}, "nodes: only backfill slurm with allocation count and no clusters"),
    (nodes_away("2"), "unavailable: the machine has no nodes; give the option nodes, or processors in each window"),
    (nodes_away("1-2,0"), "unavailable: nodes: '1-2,0'; expected positions of nodes from 1 on, such as 5-8,11"),
    (nodes_away("n3"), "unavailable: nodes: 'n3'; expected positions of nodes from 1 on"),
    (nodes_away("3-2"), "unavailable: nodes: '3-2'; expected positions of nodes from 1 on"),
    (nodes_away(2, processors=1), "; give either processors or nodes"),
    ({"order": "log", "prediction": "system"}, "prediction: the recorded schedule (order log) is not planned"),
    ({"order": "log", "backfill": "easy"}, "backfill: the recorded schedule (order log) is not planned"),
    ({"places": True}, "places: processors are not numbered with allocation count"),
    ({"clusters": [{"processors": 4, "allocation": "best"}]}, "clusters: allocation: unknown value 'best'"),
    (
        {"clusters": [{"processors": 4, "allocation": "first-fit"}, {"processors": 4}]},
        "clusters: processors are",
    ),
    ({"clusters": [{"processors": 4}], **window()}, "clusters: clusters cannot have unavailable windows"),
    ({"clusters": [{"processors": 4, "backfill": "reservation-table"}]}, "backfill: a reservation-table has numbered"),
    (
        {"allocation": "threshold", "backfill": "easy", "reservations": 2},
        "need backfill none or easy with one",
    ),
    ({"allocation": "threshold", "shapes": "submit"}, "allocation: least-shared and threshold cannot plan the whole"),
    (
        {"allocation": "first-fit", "backfill": "reservation-table", "shapes": "start"},
        "shapes: a reservation-table has jobs of one shape",
    ),
    (
        {"allocation": "first-fit", "runtime": "shared", "shapes": "start"},
        "shapes: with shared run times",
    ),
    # options without effect
    ({"reservations": 2}, "reservations: only backfill easy uses it"),
    ({"backfill": "conservative", "reservations": 2}, "reservations: only backfill easy uses it"),
    ({"clusters": [{"processors": 4, "reservations": 2}]}, "reservations: only backfill easy uses it"),
    ({"backfill": "conservative", "backfill_starts": 1}, "backfill_starts: only backfill easy uses it"),
    ({"backfill": "conservative", "backfill_order": "sjf"}, "backfill_order: only backfill easy and reservation-table"),
    ({"order": "sjf", "clusters": [{"processors": 4, "order": "saf"}]}, "order: every cluster has its own"),
    ({"allocation": "first-fit", "penalty": "printed"}, "penalty: jobs share nothing on their nodes"),
    ({"allocation": "least-shared", "sharing_limit": 0.5}, "sharing_limit: only allocation threshold uses it"),
    ({"dispatch": "least-loaded"}, "dispatch: there are no clusters"),
    ({"order": "sjf", "half_life": 60}, "half_life: no order uses user_usage, group_usage, association_usage or"),
    ({"order": "user_usage", "user_shares": {"1": 2}}, "user_shares: no order uses user_share"),
    (
        {"order": "slurm-multifactor", "priority": {"fair_share": 1}, "group_shares": {"1": 2}},
        "group_shares: no order uses group_share",
    ),
    ({"order": "slurm-multifactor", "priority": {"size": 1, "max_age": 9}}, "priority: max_age: age is 0"),
    ({"shape_choice": "efficient"}, "shape_choice: jobs have their requested shapes"),
    ({"shapes": "start", "efficiency": 0.9}, "efficiency: only shape_choice efficient uses it"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=str)
def test_what_is_wrong_is_refused_when_the_config_is_read(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(SwflowError) as caught:
        Scheduler.of("mine", wrong)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("schedulers: mine: ")
    assert words in str(caught.value)
    with pytest.raises(SwflowError):
        Scheduler(**wrong)


def test_options_that_are_no_options_are_refused() -> None:
    for content in (None, 5, ["fcfs"], "easy"):
        with pytest.raises(SwflowError, match=r"schedulers: mine: .*; expected options"):
            Scheduler.of("mine", content)  # type: ignore[arg-type]


def tiny(machine: int = 4) -> Workload:
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3, 4], "submit_time": [0.0, 1.0, 2.0, 3.0], "run_time": [10.0, 10.0, 3.0, 5.0],
        "processors": [3, 4, 1, 2], "estimate": [10.0, 10.0, 5.0, 5.0], "user_id": [1, 1, 1, 2],
    })  # fmt: skip
    return Workload(jobs, Machine.of(machine), "tiny")


@pytest.mark.parametrize("allocation", ["count", "first-fit", "longest-idle", "first-contiguous"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_windows_without_an_end_and_beyond_the_machine(allocation: str, backfill: str) -> None:
    narrow = Workload(tiny().jobs.filter(pl.col("processors") < 4), Machine.of(4), "narrow")
    for_ever = Scheduler(allocation=allocation, backfill=backfill, **window(20.0, None, 1))
    long = Scheduler(allocation=allocation, backfill=backfill, **window(20.0, 1e9, 1))
    assert simulate(narrow, for_ever)["start_time"].equals(simulate(narrow, long)["start_time"])
    with pytest.raises(SwflowError, match="jobs never start, the first with 4 processors"):
        simulate(tiny(), Scheduler(allocation=allocation, backfill=backfill, **window(0.0, None, 1)))
    if backfill != "conservative" and allocation == "count":
        both = Scheduler(backfill=backfill, limits={"user": {"jobs": 9}}, **window(0.0, None, 1))
        with pytest.raises(SwflowError, match=r"limits, unavailable: [13] jobs never start"):
            simulate(replace(tiny(), jobs=tiny().jobs.with_columns(user_id=pl.lit(1, pl.Int64))), both)
    with pytest.raises(SwflowError, match="9,999 processors are not 1 to 4"):
        simulate(tiny(), Scheduler(allocation=allocation, backfill=backfill, **window(0, 100000, 9999)))


@pytest.mark.parametrize("allocation", ["count", "first-fit", "longest-idle", "first-contiguous"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_overlapping_windows_add_up(allocation: str, backfill: str) -> None:
    """Of 8 processors, 6 are unavailable until 10, and 2 until 20: jobs of 3 and 4 wait for each other."""
    jobs = tiny(8).jobs.filter(pl.col("processors") > 2).with_columns(submit_time=pl.lit(0.0), run_time=pl.lit(5.0))
    windows = [{"from": -1, "until": 10, "processors": 4}, {"from": -1, "until": 20, "processors": 2}]
    wide = [{"from": -1, "until": 10, "processors": 8}, {"from": 5, "until": 20, "processors": 8}]
    for given, expected in ((windows, [10.0, 15.0]), (wide, [20.0, 20.0])):
        scheduler = Scheduler(allocation=allocation, backfill=backfill, prediction="perfect", unavailable=given)
        assert simulate(Workload(jobs, Machine.of(8), "two"), scheduler)["start_time"].to_list() == expected


@pytest.mark.parametrize("allocation", ["count", "first-fit"])
def test_more_reservations_than_jobs_are_as_many_as_jobs(allocation: str) -> None:
    far, near = (
        simulate(tiny(), Scheduler(backfill="easy", reservations=ahead, allocation=allocation))["start_time"]
        for ahead in (10**15, 4)
    )
    assert far.equals(near)


@pytest.mark.parametrize("prediction", ["user", "system"])
@pytest.mark.parametrize("allocation", ["count", "first-fit"])
def test_a_new_name_of_an_order_needs_nothing_else(monkeypatch, allocation: str, prediction: str) -> None:
    for formula in ("estimate - processors", "-wait / estimate"):
        monkeypatch.setitem(ORDERS, "brand-new", NamedOrder(formula, ""))
        for where in ("order", "backfill_order"):
            named, written = (
                simulate(
                    tiny(),
                    Scheduler(backfill="easy", allocation=allocation, prediction=prediction, **{where: order}),
                )
                for order in ("brand-new", formula)
            )
            assert named.equals(written)


@pytest.mark.compiled
def test_the_time_of_a_run_is_without_compiling(monkeypatch) -> None:
    """Loading or compiling a kernel, also the general one after that for short queues, does not count."""
    from swflow.compiled import kernel
    from swflow.scheduling.engine import solve

    count = 3_000
    jobs = pl.DataFrame({
        "job_id": np.arange(count), "submit_time": np.zeros(count), "run_time": np.linspace(5, 10, count),
        "processors": np.full(count, 5), "estimate": np.full(count, 20.0),
    })  # fmt: skip
    clock, loaded = [0.0], kernel.Kernel._loaded

    def slowly(self, *arguments: Any) -> Any:
        clock[0] += 100
        return loaded(self, *arguments)

    general = solve.kernel_with("counted", None)

    class Fresh(kernel.Kernel):
        def __call__(self, *arguments: Any) -> int:
            done = super().__call__(*arguments)
            clock[0] += 3
            return done

    monkeypatch.setattr(kernel.Kernel, "_loaded", slowly)
    fresh = Fresh(general.function, general.hooks)
    monkeypatch.setattr(solve, "kernel_with", lambda model, accounting: fresh)
    monkeypatch.setattr("swflow.scheduling.simulate.time.perf_counter", lambda: clock[0])
    assert run(Workload(jobs, Machine.of(8), "long"), Scheduler(backfill="easy")).seconds == 3
    assert clock[0] >= 103


# -- one table


def test_the_schema_is_generated_from_the_table() -> None:
    text = (ROOT / "workflow/schemas/config.schema.yaml").read_text()
    assert written_into(text) == text, "run: python -m swflow.scheduling.schema workflow/schemas/config.schema.yaml"
    known = yaml.safe_load(text)["properties"]["schedulers"]["additionalProperties"]["properties"]
    assert list(known) == ["title", *OPTIONS]
    for name in ORDERS:
        assert name in known["order"]["description"]


def test_the_command_has_the_options_of_the_table() -> None:
    parameters = typer.main.get_command(application()).commands["simulate"].params
    help_texts = {parameter.name: parameter.help for parameter in parameters}
    for name in OPTIONS.keys() - {"unavailable", "clusters", "without_status", "resources", "nodes"}:
        assert help_texts[name] == help_of(name)
    assert {"unavailable", "clusters", "without_status"} <= help_texts.keys()


def test_a_scheduler_has_the_options_of_the_table() -> None:
    nodes = {"backfill": "slurm", "nodes": [{"count": 1, "processors": 1, "weight": 2, "resources": {"gpus": 1}}]}
    nodes |= {"preemption": {"partition": {"1": 2}}}
    assert list(Scheduler(resources={"licenses": None}, **nodes).to_dict()) == list(OPTIONS)
    documented = Options.__doc__ or ""
    for name in OPTIONS:
        assert f"\n    {name} : " in documented
    assert json.dumps(Scheduler().to_dict())


def test_the_numbers_of_choices_in_kernels_do_not_depend_on_the_order_of_the_table() -> None:
    for name, kind in (("backfill", Backfill), ("allocation", Allocation), ("dispatch", Dispatch)):
        known = set(CHOICES[name]) - {"slurm"}  # which is another engine
        assert {choice: kind.number_of(choice) for choice in reversed(CHOICES[name]) if choice in known}.keys() == known
        assert len(kind) == len(known)
    assert (Backfill.number_of("reservation-table"), Dispatch.number_of("partition")) == (3, 3)


def test_the_documentation_has_every_choice_and_every_order() -> None:
    text = "".join(
        (ROOT / "docs" / file).read_text() for file in ("reference/schedulers.md", "explanation/resource-sharing.md")
    )
    for name, choices in CHOICES.items():
        for choice in choices:
            assert any(f"{mark}{choice}`" in text for mark in ("`", f"{name}: ")), (name, choice)
    for name, order in ORDERS.items():
        assert f"`{name}`" in text
        assert order.formula in text, name


def test_the_policies_of_the_literature_are_the_named_orders() -> None:
    policies = yaml.safe_load((ROOT / "config/policies.yaml").read_text())["schedulers"]
    formulas = {name: content["order"] for name, content in policies.items()}
    assert formulas
    for name, formula in formulas.items():
        assert formula == ORDERS[name].formula
    assert {"f1", "f2", "f3", "f4", "wfp3", "unicef", "saf", "expansion-factor"} <= formulas.keys()
    for name, content in policies.items():
        Scheduler.of(name, content)


@pytest.mark.parametrize(
    ("name", "now", "submit", "estimate", "processors", "expected"),
    [
        # by hand, from the papers' definitions: r the estimate, n the processors, s the submit time, w the wait
        ("f1", 1000.0, 100.0, 1000.0, 4, 3 * 4 + 870 * 2),
        ("f2", 1000.0, 100.0, 900.0, 4, 30 * 4 + 25_600 * 2),
        ("f3", 1000.0, 100.0, 1000.0, 4, 1000 * 4 + 6_860_000 * 2),
        ("f4", 1000.0, 100.0, 1000.0, 4, 1000 * 2 + 530_000 * 2),
        ("wfp3", 700.0, 100.0, 300.0, 4, -(2**3) * 4),
        ("unicef", 700.0, 100.0, 300.0, 4, -600 / (2 * 300)),
        ("unicef", 700.0, 100.0, 300.0, 1, -600 / (1 * 300)),
        ("saf", 700.0, 100.0, 300.0, 4, 1200),
        ("expansion-factor", 700.0, 100.0, 300.0, 4, -3),
    ],
)
def test_published_policies_are_as_their_papers_define_them(name, now, submit, estimate, processors, expected) -> None:
    from swflow.scheduling.orders.formula import compile_formula

    value = compile_formula(name)(now, submit, estimate, processors, *[0] * 11)
    assert value == pytest.approx(expected, rel=1e-12)


def test_the_package_offers_its_names_without_importing_them() -> None:
    code = (
        "import sys, swflow; heavy = {'numba', 'polars', 'numpy'} & set(sys.modules); assert not heavy, heavy; "
        "assert all(callable(getattr(swflow, name)) for name in swflow.__all__); assert 'simulate' in dir(swflow); "
        "assert 'numba' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        swflow.nothing  # noqa: B018


def test_words_that_yaml_reads_as_truth_and_limits_without_a_quantity_are_explained():
    with pytest.raises(SwflowError, match=r"backfill: unknown value False \(YAML reads off, no, on and yes as"):
        Scheduler(backfill=False)
    with pytest.raises(SwflowError, match=r"limits: user: 512; expected limits such as \{jobs: 10, processors: 64\}"):
        Scheduler(limits={"user": 512})
