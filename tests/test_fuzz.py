"""Run random cases, compiled ones without bounds checks; `python tests/fuzz.py --minutes 20` compiles many."""

import random
from functools import cache

import pytest

import cases
import fuzz
from helpers.draws import CASES
from swflow.compiled.kernel import Kernel
from swflow.scheduling import initial_state
from swflow.scheduling.engine import solve as textbook
from swflow.scheduling.machine import ahead, counted, moves, plan
from swflow.scheduling.nested_options import PRIORITY
from swflow.scheduling.options import CLUSTER_OPTIONS
from swflow.scheduling.slurm import cycle_table, node_state
from swflow.scheduling.slurm import solve as slurm

FEW = range(CASES // 8)

#: Sizes of tables that are full after a few jobs.
SMALL = (
    (plan, "SIZE", 4), (moves, "SIZES", 3), (moves, "_HASH_BITS", 2), (moves, "LONG_QUEUE", 2), (ahead, "FAR", 0),
    (ahead, "MOST_WIDTHS", 4), (ahead, "MOST_LENGTHS", 4), (initial_state, "_BLOCK", 3), (node_state, "KEPT", 1),
    (node_state, "_KINDS", 3), (cycle_table, "KEPT", 1),
)  # fmt: skip


#: Values of options that all cases of a group have, and other options that are drawn with them more often.
OFTEN: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "resources": (
        {"column resources": "some"},
        ("backfill", "reservations", "order", "backfill_order", "event_order", "resources", "unavailable"),
    ),
    "shapes": ({}, ("shapes", "order", "backfill", "clusters", "dispatch", "resources", "prediction")),
    "slurm": (
        {"backfill": "slurm"},
        ("scheduler_parameters", "order", "limits", "unavailable", "priority", "resources", "column resources"),
    ),
    "nodes": (
        {"backfill": "slurm", "nodes": "partitions"},
        ("scheduler_parameters", "order", "limits", "priority", "prediction", "estimates", "unavailable"),
    ),
    "windows of cycles on nodes": (
        {"backfill": "slurm", "nodes": "partitions", "scheduler_parameters": "bf_window"},
        ("order", "limits", "priority", "prediction"),
    ),
    "resources of nodes": (
        {"backfill": "slurm", "nodes": "resources"},
        ("scheduler_parameters", "order", "limits", "column cancelled_after", "column depends_on", "unavailable"),
    ),
    "preemption": (
        {"backfill": "slurm", "nodes": "partitions", "preemption": "mode", "column depends_on": "some"},
        ("scheduler_parameters", "order", "column cancelled_after"),
    ),
    "numbers": (
        {}, ("allocation", "order", "backfill", "unavailable", "places", "runtime", "penalty", "efficiency")
    ),
    "cancellations": (
        {}, ("column cancelled_after", "column depends_on", "backfill", "clusters", "event_order", "unavailable")
    ),
    "plans ahead": (
        {"column cancelled_after": "some", "clusters": "several", "dispatch": "earliest-start"},
        ("backfill", "order", "event_order", "prediction", "estimates", "resources"),
    ),
    "plans kept": (
        {
            "column cancelled_after": "some", "clusters": "several", "dispatch": "earliest-start",
            "prediction": "perfect",
        },
        ("backfill", "order", "event_order"),
    ),
    "loads": (
        {"column cancelled_after": "some", "clusters": "several", "dispatch": "least-loaded"},
        ("backfill", "order", "event_order", "prediction", "estimates", "resources"),
    ),
    "periods": (
        {"backfill": "slurm", "order": "slurm-multifactor", "priority": "calc_period"},
        ("scheduler_parameters", "limits", "unavailable", "resources", "column array_limit", "half_life"),
    ),
    **{
        label: (
            {"order": "slurm-multifactor", "priority": label},
            ("backfill", "accounts", "half_life", "column cancelled_after", "column depends_on", "clusters", "shapes"),
        )
        for label in ("whole_periods of associations", "calc_period of associations", "calc_period of fair-tree")
    },
    "minutes": (
        {"order": "slurm-multifactor", "priority": "calc_period", "limits": "minutes"},
        ("backfill", "scheduler_parameters", "nodes", "clusters", "prediction", "estimates", "column cancelled_after"),
    ),
    "usage": (
        {"accounts": "usage"}, ("order", "priority", "half_life", "backfill", "clusters", "allocation", "limits")
    ),
    "usage of trees": (
        {"accounts": "usage and shares", "order": "slurm-multifactor"},
        ("priority", "half_life", "backfill", "clusters", "dispatch", "column depends_on"),
    ),
    "table": (
        {"backfill": "reservation-table"},
        ("allocation", "order", "backfill_order", "prediction", "event_order", "unavailable", "runtime", "penalty"),
    ),
    "predictions": (
        {"prediction": "system"},
        ("backfill", "order", "backfill_order", "reservations", "event_order", "allocation", "unavailable", "clusters"),
    ),
    "heads": (
        {"backfill": "easy"},
        ("allocation", "reservations", "order", "backfill_order", "event_order", "unavailable", "limits", "shapes"),
    ),
    "conservative": (
        {"backfill": "conservative"},
        ("allocation", "order", "event_order", "unavailable", "resources", "shapes", "prediction", "limits"),
    ),
    "overdue": (
        {"backfill": "conservative", "event_order": "per-event"},
        ("order", "resources", "column resources", "unavailable", "prediction", "estimates"),
    ),
    "dependents": (
        {"backfill": "easy", "column depends_on": "some", "backfill_order": "fcfs"},
        ("order", "event_order", "allocation", "resources", "column resources", "clusters"),
    ),
    "molded on clusters": (
        {"shapes": "start", "clusters": "several", "dispatch": "least-loaded"}, ("order", "backfill", "prediction")
    ),
    "predicted shadows": (
        {"runtime": "shared", "prediction": "system"}, ("allocation", "backfill", "order", "penalty", "estimates")
    ),
    "idle": (
        {"allocation": "longest-idle"},
        ("backfill", "reservations", "order", "backfill_order", "event_order", "unavailable", "clusters", "prediction"),
    ),
    "rows": (
        {"allocation": "first-contiguous", "backfill": "easy"},
        ("reservations", "order", "backfill_order", "event_order", "unavailable", "shapes", "prediction", "clusters"),
    ),
    "reservations": (
        {"backfill": "easy", "reservations": "2"},
        ("order", "backfill_order", "event_order", "unavailable", "resources", "column resources", "prediction"),
    ),
    "sets": (
        {"backfill": "easy", "reservations": "3", "allocation": "first-fit"},
        ("order", "backfill_order", "event_order", "unavailable", "prediction", "limits", "runtime"),
    ),
    "dominant shares": (
        {"order": "dominant_share"}, ("resources", "column resources", "backfill", "clusters", "backfill_order")
    ),
    "shadows": ({"penalty": "forgets-shadows"}, ("allocation", "backfill", "order", "estimates", "prediction")),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("cases", [FEW, pytest.param(range(FEW.stop, 3 * CASES), marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["ordinary", "slurm", "table", "options", "log"])
def test_random_cases_are_equal_or_errors(kind: str, cases: range, monkeypatch: pytest.MonkeyPatch):
    """Interpret most ordinary cases, because compiling their many kernels takes nearly all of the time."""
    if cases != FEW and kind == "ordinary":
        monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    verdicts = set()
    for number in cases:
        _, verdict, text = fuzz.run_case(1, number, [kind])
        assert verdict != fuzz.FAILURE, (number, text)
        verdicts.add(verdict)
    assert cases == FEW or len(verdicts) == (1 if kind in ("ordinary", "slurm", "table") else 2)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("share", [0.03, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("group", OFTEN)
def test_random_cases_are_equal_with_small_tables(group: str, share: float, monkeypatch: pytest.MonkeyPatch):
    """Interpret kernels whose blocks, bounds and hash tables are full after a few jobs."""
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    for module, name, value in SMALL:
        monkeypatch.setattr(module, name, value)
    for module in (slurm, counted):  # the links of an earlier call have the usual sizes
        for name, kernel in vars(module).items():
            if isinstance(kernel, Kernel):
                monkeypatch.setattr(module, name, Kernel(kernel.function, kernel.hooks))
    monkeypatch.setattr(textbook, "kernel_with", cache(textbook.kernel_with.__wrapped__))
    wanted, names = OFTEN[group]
    for number in range(round(share * (40 if group == "periods" else 100))):
        verdict, text = fuzz.ordinary(random.Random(f"{group} {number}"), names, wanted)
        assert verdict == fuzz.EQUAL, (number, text)


def test_every_option_and_every_choice_is_drawn(monkeypatch):
    assert cases.undrawn() == []
    drawn = {key for name in CLUSTER_OPTIONS for key in [f"own {name}"] if key in cases.VALUES["clusters"]}
    assert drawn == {f"own {name}" for name in CLUSTER_OPTIONS} - {"own processors", "own partition"}
    some = cases.ALL["priority"]["all"](cases.new_site(random.Random(1)))
    assert list(some) == list(PRIORITY)
    monkeypatch.setitem(cases.OPTIONS, "brand_new", cases.OPTIONS["places"])
    monkeypatch.setitem(cases.CHOICES, "backfill", {**cases.CHOICES["backfill"], "brand-new": ""})
    assert cases.undrawn() == ["brand_new", "backfill: brand-new"]


def test_every_value_of_an_option_goes_with_some_scheduler():
    rng = random.Random(1)
    sites = [cases.new_site(rng) for _ in range(30)]
    alone = [one for one in cases.CHOOSABLE if all(cases.completed(site, dict([one])) is None for site in sites)]
    assert alone == []
