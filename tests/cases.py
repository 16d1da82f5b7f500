"""
Random cases for the scheduler: workloads, options drawn from the table of options, and the slow simulator's schedule.

`VALUES` has the values of each option that are drawn, by a label. Choices, flags and named orders are those of the
table; a test fails if an option has no values here. Columns of the workload that change the schedule are drawn in the
same way. The refusals of the table decide which values go together: `completed` changes other options until a scheduler
with the wanted values is valid, or finds that there is none.
"""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import polars as pl

import naive
import naive_slurm
import own_policies
from swflow.jobs.eligibility import dependencies_of, eligible_jobs
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.nested_options import (
    LIMITED,
    LIMITED_COLUMNS,
    LIMITS,
    PRIORITY,
    SCHEDULER_PARAMETERS,
    USER_LIMITS,
    WITH_USER_LIMITS,
)
from swflow.scheduling.options import CHOICES, CLUSTER_OPTIONS, OPTIONS
from swflow.scheduling.orders.vocabulary import ORDERS
from swflow.scheduling.refusals import refusals, unsupported_columns
from swflow.scheduling.scheduler import Scheduler

#: An order of `tests/naive.py`: a name, or a function of a job, the time and its machine.
Key = str | Callable[[naive.Job, float, naive.Machine], float]


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else (-math.inf if value == 0 else math.nan)


#: The named orders that `tests/naive.py` lacks.
NAMED: dict[str, Key] = {
    "lcfs": lambda job, now, machine: -job.submit,
    "laf": lambda job, now, machine: -job.planned * job.processors,
    "f1": lambda job, now, machine: _log10(job.planned) * job.processors + 870 * _log10(job.submit),
    "f2": lambda job, now, machine: math.sqrt(job.planned) * job.processors + 25600 * _log10(job.submit),
    "f3": lambda job, now, machine: job.planned * job.processors + 6860000 * _log10(job.submit),
    "f4": lambda job, now, machine: job.planned * math.sqrt(job.processors) + 530000 * _log10(job.submit),
}

#: Orders by a tree of accounts.
OF_TREES = ("-fair_tree", "association_usage")

#: Orders of several machines that need a function of theirs, and of formulas and Python functions.
FORMULAS: dict[Any, Key] = {
    "processors - wait": lambda job, now, machine: job.processors - (now - job.submit),
    "min(estimate, 50) * processors": lambda job, now, machine: min(job.planned, 50) * job.processors,
    "user_id": lambda job, now, machine: math.nan if job.user < 0 else job.user,
    "queue_id * 8 - partition_id": lambda job, now, machine: (
        math.nan if job.partition < 0 else job.qos * 8 - job.partition
    ),
    "group_usage / group_share": lambda job, now, machine: (
        machine.fair.usage("group", job, now) / machine.fair.entitled("group", job)
    ),
    "-fair_tree": lambda job, now, machine: -machine.fair.factor(job, now),
    "association_usage": lambda job, now, machine: machine.fair.effective(job, now),
    "dominant_share": lambda job, now, machine: max(
        [job.processors / machine.processors]
        + [demand / max(units, 1) for demand, units in zip(job.demands, machine.resources, strict=True)]
    ),
    "processors / machine_processors + wait / 1000": lambda job, now, machine: (
        job.processors / machine.processors + (now - job.submit) / 1000
    ),
    "own_policies:short_and_old": lambda job, now, machine: job.planned - 2 * (now - job.submit),
    own_policies.by_processors: lambda job, now, machine: job.processors + (math.nan if job.user < 0 else job.user),
}

#: Orders whose values can differ in the last digit if times are large.
ROUNDED = ("wfp3", "unicef", "f1", "f2", "f3", "f4")

PENALTIES: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "linear": naive.Resources.penalty,
    "printed": naive.Resources.penalty,
    "forgets-shadows": naive.Resources.penalty,
    "at-start": naive.Resources.penalty,
    "usage / capacity": lambda usage, capacity: usage / capacity,
}

#: The counted resources of machines.
RESOURCES = ("gpus", "licenses")


@dataclass
class Site:
    """What the values of options depend on."""

    rng: random.Random
    processors: int
    per_node: int
    unit: float  # unit of all times, seconds
    begin: float
    labels: dict[str, str]

    def order(self) -> Any:
        return self.rng.choice([*ORDERS, *FORMULAS])

    def units(self) -> dict[str, int]:
        return {name: self.rng.choice([1, 2, 5]) for name in RESOURCES if self.rng.random() < 0.8}


#: Constraints of jobs on nodes, from number 1 on, each with its meaning for the features of a node.
CONSTRAINTS: dict[str, Callable[[set[str]], bool]] = {
    "a": lambda has: "a" in has,
    "a&b": lambda has: {"a", "b"} <= has,
    "b | c": lambda has: not has.isdisjoint("bc"),
    "a|b&c": lambda has: "c" in has and not has.isdisjoint("ab"),
    "a|(b&c)": lambda has: "a" in has or {"b", "c"} <= has,
}

Draw = Callable[[Site], Any]


def always(value: Any) -> Draw:
    return lambda site: value


def each(values: Iterable[Any]) -> dict[str, Draw]:
    return {str(getattr(value, "__name__", value)): always(value) for value in values}


# -- the values of options


def _window(site: Site, until: bool = True) -> dict[str, Any]:
    begin = site.begin + site.rng.randint(-5, 60) * site.unit
    end = begin + site.rng.choice([1, 3, 10, 50]) * site.unit
    return {"from": begin, "until": end if until else None, "processors": site.rng.randint(1, site.processors)}


def _overlapping(site: Site) -> tuple[dict[str, Any], ...]:
    first, second = _window(site), _window(site)
    length = second["until"] - second["from"]
    second["from"] = first["from"] + site.rng.choice([0, 1, 2]) * site.unit
    return first, second | {"until": second["from"] + length}, _window(site)


def _endless(site: Site) -> tuple[dict[str, Any], ...]:
    """Return windows of which one has no end, but leaves a processor."""
    away = site.rng.randint(1, max(site.processors - 1, 1))
    return (_window(site), _window(site, site.processors == 1) | {"processors": away})


def _most_minutes(unit: float) -> int:
    """Return an upper bound of the time limits of jobs, in minutes."""
    return max(1, int(2 * 120 * unit // 60))


def _limits(*kinds: str, named: bool = False) -> Draw:
    def draw(site: Site) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind in kinds:
            account, what = kind.split()
            most = site.rng.randint(1, 3 if what.endswith("jobs") else site.processors)
            if what.endswith("minutes"):
                most *= _most_minutes(site.unit)
            found.setdefault(account, {})[what] = most
            if named:
                found[account][str(site.rng.randint(0, 2))] = {what: most + site.rng.randint(0, 2)}
        return found

    return draw


def _cluster(site: Site, own: str | None) -> dict[str, Any]:
    rng = site.rng
    nodes = rng.randint(1, site.processors // site.per_node)
    cluster: dict[str, Any] = {"processors": nodes * site.per_node}
    given = {name for name in CLUSTER_OPTIONS if name == own or (own and rng.random() < 0.15)}
    if "order" in given:
        cluster["order"] = site.order()
    if "backfill" in given or given & {"reservations", "backfill_order"}:
        easy = given & {"reservations", "backfill_order"}
        cluster["backfill"] = "easy" if easy else rng.choice(list(CHOICES["backfill"]))
    if "reservations" in given:
        cluster["reservations"] = rng.randint(1, 3)
    if "backfill_order" in given:
        cluster["backfill_order"] = site.order()
    if "allocation" in given:
        cluster["allocation"] = rng.choice(list(CHOICES["allocation"])[1:])
    if "limits" in given:
        cluster["limits"] = _limits("user jobs", rng.choice(["group processors", "group gpus"]))(site)
    if "resources" in given or site.labels.get("column resources") == "some":
        cluster["resources"] = {"gpus": rng.choice([0, 1, 4])} | site.units()
    return cluster


def _group(site: Site, partitions: bool, resources: bool = False) -> dict[str, Any]:
    group: dict[str, Any] = {"count": site.rng.randint(1, 5), "processors": site.rng.randint(1, 4)}
    if partitions and site.rng.random() < 0.6:
        group["partition"] = site.rng.choice(["0", "1", ("0", "1")])
    if resources and site.rng.random() < 0.8:
        group["resources"] = site.units()
    if resources and site.rng.random() < 0.6:
        group["features"] = site.rng.choice([("a",), ("b",), ("a", "b"), ("b", "c")])
    if resources and site.rng.random() < 0.5:
        group["weight"] = site.rng.choice([0, 2])
    return group


def _clusters(own: str | None = None, least: int = 1) -> Draw:
    def draw(site: Site) -> tuple[dict[str, Any], ...]:
        count = site.rng.randint(least, 3)
        clusters = [_cluster(site, own if number == 0 or site.rng.random() < 0.5 else None) for number in range(count)]
        if site.rng.random() < 0.7:
            clusters[-1]["processors"] = site.processors
        if site.labels.get("dispatch") == "partition":
            clusters = [cluster | {"partition": str(number)} for number, cluster in enumerate(clusters)]
        return tuple(clusters)

    return draw


def _priority(*names: str) -> Draw:
    def draw(site: Site) -> dict[str, Any]:
        points = (1, 64, 1000)
        values: dict[str, Any] = {
            "max_age": site.rng.choice([8.0, 640.0]) * site.unit, "fair_share_of": "group", "dampening": 2.0,
            "calc_period": site.rng.choice([4.0, 20.0]) * site.unit, "whole_periods": True,
            "whole_points": True, "nodes": 4, "favor_small": True, "partition_factors": {"0": 1.0, "1": 4.0},
            "qos_factors": {"1": 2.0, "2": 1.0},
        }  # fmt: skip
        return {name: values.get(name, site.rng.choice(points)) for name in names}

    return draw


def _parameters(*names: str) -> Draw:
    values = {
        "bf_interval": (1, 3, 20, -1), "bf_window": (1, 2), "bf_resolution": (1, 5, 60), "bf_max_job_test": (1, 2, 5),
        "bf_max_job_user": (1, 2), "bf_max_job_part": (1, 2), "default_queue_depth": (1, 2),
        "batch_sched_delay": (0, 1, 5), "sched_interval": (1, 3, 20), "end_delay": (0, 0.25, 2),
    }  # fmt: skip
    scaled = ("bf_interval", "sched_interval", "batch_sched_delay")

    def draw(site: Site) -> dict[str, Any]:
        found: dict[str, Any] = {name: site.rng.choice(values[name]) for name in names}
        # With long times, short intervals take the slow simulator long.
        scale = 500 if site.unit > 1 else 1
        return {name: value * (scale if name in scaled and value > 0 else 1) for name, value in found.items()}

    return draw


def _preemption(*names: str) -> Draw:
    def draw(site: Site) -> dict[str, Any]:
        rng = site.rng
        kind = rng.choice(["partition", "qos"])
        high, low = rng.sample(["0", "1"] if kind == "partition" else ["1", "2"], 2)
        found: dict[str, Any] = {"partition": {high: 2 + rng.randint(0, 1), low: rng.choice([1, 2])}}
        if kind == "qos":
            found = {"qos": {high: [low]}, "qos_priorities": {high: rng.randint(0, 2), low: rng.randint(0, 2)}}
        values = {
            "mode": rng.choice(["requeue", "cancel"]), "modes": {low: rng.choice(["requeue", "cancel", "off"])},
            "exempt_time": rng.choice([0, 5, 30]) * site.unit, "requeue_delay": rng.choice([0, 2.5, 20, 300]),
        }  # fmt: skip
        return found | {name: values[name] for name in names}

    return draw


def _resources(site: Site) -> dict[str, Any]:
    return {name: site.rng.choice([1, 3, 6]) for name in RESOURCES}


_ORDERS = {name: always(name) for name in ORDERS} | each(FORMULAS)

#: The values of each option that are drawn, by labels; the first is the default.
VALUES: dict[str, dict[str, Draw]] = {
    **{name: each(choices) for name, choices in CHOICES.items()},
    "order": _ORDERS | {"log": always("log")},
    "reservations": each([1, 2, 3, 30, 10**6]),
    "backfill_starts": {"none": always(None)} | each([1, 2]),
    "scheduler_parameters": {
        "none": always(None),
        **{
            name: _parameters("bf_interval", "bf_resolution", "sched_interval", name) for name in SCHEDULER_PARAMETERS
        },
        "all": _parameters(*SCHEDULER_PARAMETERS),
    },
    "backfill_order": {"none": always(None)} | _ORDERS,
    "places": each([False, True]),
    "penalty": each(PENALTIES),
    "sharing_limit": each([0.0, 0.5, 2.0]),
    "unavailable": {
        "none": always(()), "one": lambda site: (_window(site),), "overlapping": _overlapping, "endless": _endless
    },
    "clusters": {
        "none": always(()), "one": lambda site: (_cluster(site, None),), "several": _clusters(least=2),
        **{f"own {name}": _clusters(name) for name in CLUSTER_OPTIONS if name not in ("processors", "partition")},
    },
    "nodes": {
        "none": always(()), "alike": lambda site: (_group(site, False),),
        "partitions": lambda site: tuple(_group(site, True) for _ in range(site.rng.randint(1, 4))),
        "resources": lambda site: tuple(_group(site, True, True) for _ in range(site.rng.randint(1, 4))),
    },
    "preemption": {
        "none": always(None), "plain": _preemption(), "mode": _preemption("mode", "requeue_delay"),
        "modes": _preemption("modes"), "exempt_time": _preemption("exempt_time", "requeue_delay"),
        "all": _preemption("mode", "modes", "exempt_time", "requeue_delay"),
    },
    "half_life": {"none": always(None), "short": lambda site: 3.0 * site.unit, "long": lambda site: 50.0 * site.unit},
    "user_shares": {
        "none": always(None), "some": always({"0": 3.0, "2": 0.5}), "absent": always({"0": 3.0, "99": 9.0}),
    },
    "group_shares": {"none": always(None), "some": always({"1": 4.0})},
    "priority": {
        "none": always(None), "age": _priority("age", "max_age"), "fair_share": _priority("fair_share"),
        "of groups": _priority("fair_share", "fair_share_of", "dampening"), "size": _priority("size"),
        "fair-tree": lambda site: _priority("fair_share", "age")(site) | {"fair_share_of": "fair-tree"},
        "association": lambda site: (
            _priority("fair_share", "dampening", "size")(site) | {"fair_share_of": "association"}
        ),
        "calc_period": _priority("fair_share", "calc_period"),
        "whole_periods": _priority("fair_share", "calc_period", "whole_periods"),
        "whole_points": _priority("fair_share", "age", "size", "whole_points"),
        "whole_periods of associations": lambda site: _priority(*PRIORITY)(site) | {"fair_share_of": "association"},
        "calc_period of associations": lambda site: (
            _priority("fair_share", "age", "calc_period")(site) | {"fair_share_of": "association"}
        ),
        "calc_period of fair-tree": lambda site: _priority(*PRIORITY)(site) | {"fair_share_of": "fair-tree"},
        "nodes": _priority("size", "nodes"),
        "favor_small": _priority("size", "favor_small"), "partition": _priority("partition", "partition_factors"),
        "qos": _priority("qos", "qos_factors"), "all": _priority(*PRIORITY),
    },
    "limits": {
        "none": always(None),
        **{f"{kind} {what}": _limits(f"{kind} {what}") for kind in LIMITED for what in LIMITS},
        **{f"{kind} {what}": _limits(f"{kind} {what}") for kind in WITH_USER_LIMITS for what in USER_LIMITS},
        "named groups": _limits("group processors", "group jobs", named=True),
        "minutes of named groups": _limits("group processor_minutes", "group jobs", named=True),
        "minutes": _limits("user processor_minutes", "user jobs", "qos processor_minutes", "qos user_processors"),
        "units": _limits("user gpus", "group memory", "qos gpus", "partition user_gpus"),
        "units of named groups": _limits("group gpus", "qos user_memory", named=True),
        "plain units": _limits("user gpus", "partition memory", "group jobs", named=True),
        "named qos": _limits("qos user_jobs", "partition user_processors", "qos jobs", named=True),
        "named": _limits("user jobs", "partition processors", named=True),
        "all": _limits(*(f"{kind} {what}" for kind in LIMITED for what in LIMITS)),
    },
    "accounts": {
        "none": always(None), "flat": always({"0": {}}), "below each other": always({"1": {"parent": 0}}),
        "above the log's": always({"0": {"parent": "2"}, "1": {"parent": "0"}, "2": {"parent": "all"}, "all": {}}),
        "shares": always({
            "0": {"share": 3, "users": {"0": 2, "77": 0.5}}, "1": {"parent": "all", "share": 0, "users": {"1": 3}},
            "all": {"share": 2, "users": {"88": 1}}, "2": {"parent": "all"},
        }),
        "usage": lambda site: {
            "0": {"usage": {"0": 50.0 * site.unit, "77": 20.0 * site.unit}}, "1": {"usage": {"1": 90.0 * site.unit}},
            "9": {"usage": {"2": 30.0 * site.unit}},
        },
        "usage and shares": lambda site: {
            "0": {"share": 3, "users": {"0": 2}, "usage": {"0": 64.0 * site.unit, "99": 8.0 * site.unit}},
            "1": {"parent": "0", "usage": {"0": 16.0 * site.unit, "1": 0}},
        },
    },
    "resources": {"none": always(None), "some": _resources, "left out": always({"gpus": None})},
    "without_status": {"none": always(()), "some": always((0, 5))},
    "efficiency": each([0.5, 0.9, 1.0]),
    "policy": {"none": always(None), "own": always("own_policies:Sorted")},
    "policy_options": {
        "none": always(None), "sorted": always({"by": "processors"}), "none backfilled": always({"backfills": False})
    },
}  # fmt: skip

#: Columns of the workload that change the schedule, as `VALUES`; the values are whether the column is there.
COLUMNS: dict[str, dict[str, Draw]] = {
    f"column {name}": {"none": always(False), "some": always(True)}
    for name in (
        "depends_on",
        "preceding_job_id",
        "cancelled_after",
        "array_limit",
        "eligible_after",
        "resources",
        "unknown users",
    )
}

#: Both: what `completed` chooses from.
ALL = VALUES | COLUMNS

#: The labels of an option and its values: ("order", "sjf").
Choice = tuple[str, str]


def default(name: str) -> str:
    """Return the label of an option's default."""
    return next(iter(ALL[name]))


CHOOSABLE: list[Choice] = [(name, label) for name, values in ALL.items() for label in values if label != default(name)]


# -- valid schedulers


def _unchecked(values: Mapping[str, Any]) -> Scheduler:
    """Return a scheduler with valid values that may not go together."""
    one = object.__new__(Scheduler)
    for name in OPTIONS:
        object.__setattr__(one, name, values[name])
    return one


def completed(site: Site, wanted: Mapping[str, str], names: Iterable[str] = ALL) -> dict[str, Any] | None:
    """
    Return valid values of all options, those of ``wanted`` with these labels; None if they do not go together.

    Only the options ``names`` are changed. The labels of the result are those of ``site``.
    """
    site.labels = {name: default(name) for name in ALL} | dict(wanted)
    for _ in range(50):
        values = {name: ALL[name][site.labels[name]](site) for name in ALL}
        present = [name.removeprefix("column ") for name in COLUMNS if values[name]]
        if values["resources"] and site.labels["resources"] == "some":
            present.append("resources")
        one = _unchecked(values)
        of_columns = (refusal for column, refusal in unsupported_columns(one) if column in present)
        refusal = next(chain(refusals(one), of_columns), None)
        if refusal is None:
            return values
        involved = {*refusal.options, *(f"column {name}" for name in refusal.columns if name in present)}
        free = sorted(name for name in involved if name in names and name not in wanted)
        if not free:
            return None
        changed = site.rng.choice(free)
        site.labels[changed] = site.rng.choice([default(changed), site.rng.choice(list(ALL[changed]))])
    return None


def new_site(rng: random.Random) -> Site:
    processors = rng.randint(1, 12)
    nodes = rng.choice([n for n in range(1, processors + 1) if processors % n == 0])
    unit, begin = rng.choice([1.0, 1.0, 1.0, 0.25, 4096.0]), rng.choice([0.0, 0.0, -50.0, 1e6])
    return Site(rng, processors, processors // nodes, unit, begin * unit, {})


@cache
def legal_pairs() -> tuple[tuple[tuple[Choice, Choice], ...], int]:
    """Return each pair of values of two options that go together, and the number of all pairs."""
    rng = random.Random("pairs")
    several = [pair for pair in combinations(CHOOSABLE, 2) if pair[0][0] != pair[1][0]]
    legal = [pair for pair in several if any(completed(new_site(rng), dict(pair)) for _ in range(4))]
    random.Random(1).shuffle(legal)
    return tuple(legal), len(several)


# -- cases


@dataclass
class Case:
    """A workload, the options of a scheduler, and the labels of their values."""

    table: dict[str, list[Any]]
    machine: Machine
    options: dict[str, Any]
    labels: dict[str, str]
    epoch: int  # the log's start

    def workload(self) -> Workload:
        overrides: dict[str, Any] = {
            "shapes": pl.List(pl.Struct({"processors": pl.Int64, "run_time": pl.Float64})),
            "depends_on": pl.List(pl.Int64),
            "constraint_id": pl.Int64,
        }
        known = {name: dtype for name, dtype in overrides.items() if name in self.table}
        table, header = pl.DataFrame(self.table, schema_overrides=known), {"UnixStartTime": [str(self.epoch)]}
        header["Constraint"] = [f"{number} {text}" for number, text in enumerate(CONSTRAINTS, 1)]
        return Workload(table, self.machine, "drawn", header=header)

    @property
    def eligible_after(self) -> list[float | None]:
        return self.table.get("eligible_after", [0.0] * len(self.table["job_id"]))

    @property
    def part(self) -> list[tuple[float, int, int]]:
        """The jobs that take part, in the order in which they become eligible: time, id, row in the table."""
        found = []
        for row, status in enumerate(self.table["status"]):
            if status not in self.options["without_status"]:
                submit, number = self.table["submit_time"][row], self.table["job_id"][row]
                found.append((submit + self.delay(row), number, row))
        return sorted(found)

    def delay(self, row: int) -> float:
        """Return the time from the submission of a job without predecessors until it is eligible."""
        left = {
            self.table["job_id"][row]
            for row, status in enumerate(self.table["status"])
            if status not in self.options["without_status"]
        }
        depends = self.table["depends_on"][row] if "depends_on" in self.table else None
        return 0.0 if left.intersection(depends or ()) else (self.eligible_after[row] or 0.0)

    @property
    def chosen(self) -> list[Choice]:
        """The options with other values than the default."""
        return [(name, label) for name, label in self.labels.items() if label != default(name)]


def draw(rng: random.Random, names: Iterable[str] = ALL, wanted: Mapping[str, str] | None = None) -> Case:
    """Draw a case: values of some of the options ``names`` that go together, and those with the ``wanted`` labels."""
    site, names = new_site(rng), list(names)
    choosable = [choice for choice in CHOOSABLE if choice[0] in names]
    values, labels = None, {}
    while values is None:
        labels = dict(rng.sample(choosable, rng.choice([1, 2, 2, 2, 3]))) | dict(wanted or {})
        values = completed(site, labels, names)
    for _ in range(rng.choice([0, 0, 0, 1, 2, 4, 8])):
        kept = dict(site.labels)
        name = rng.choice(names)
        if name in labels:
            continue
        more = labels | {name: rng.choice(list(ALL[name]))}
        found = completed(site, more, names)
        if found is None:
            site.labels = kept
        else:
            labels, values = more, found
    if values["allocation"] != "count" and "places" not in labels and rng.random() < 0.7:
        values["places"], site.labels["places"] = True, "True"
    return _with_jobs(site, values)


def _with_jobs(site: Site, values: dict[str, Any]) -> Case:
    """Draw the jobs, each of which fits on one of the machines."""
    rng, unit = site.rng, site.unit
    orders = [values["order"], values["backfill_order"]]
    orders += [cluster.get(name) for cluster in values["clusters"] for name in ("order", "backfill_order")]
    shares = values["runtime"] == "shared" or any(
        one in ("least-shared", "threshold")
        for one in [values["allocation"], *(cluster.get("allocation") for cluster in values["clusters"])]
    )
    has_cycles = values["backfill"] == "slurm" and not values["scheduler_parameters"]  # one in 30 s
    is_rounded = shares or any(order in ROUNDED for order in orders)  # at 2^32 s, thirds of one have 1 µs
    if is_rounded or has_cycles:
        unit, begin = min(unit, 1.0), 0.0 if is_rounded else site.begin / unit
        values = _with_scale(values, site, unit, begin)
        site = replace(site, unit=unit, begin=begin)
    present = {name.removeprefix("column ") for name in COLUMNS if values[name]}
    units = site.units() | {"gpus": 3} if "resources" in present else {}
    sizes = values["clusters"] or ({"processors": site.processors},)
    counted = {name: number for name, number in {**units, **(values["resources"] or {})}.items() if number}
    if (values["resources"] or {}).get("gpus", 0) is None:
        counted.pop("gpus", None)
    nodes, of_partition = _nodes(values["nodes"])
    if nodes:
        values["unavailable"] = tuple(_window_on(rng, one, nodes) for one in values["unavailable"])
    there = set(range(len(nodes))).difference(*(away for _, until, away in maintenance(values) if until == math.inf))
    of_partition = {number: own & there for number, own in of_partition.items()}
    least = min(_most_processors(values, sum(nodes) or site.processors, _most_minutes(site.unit)))
    units_of_nodes = node_units(values["nodes"])
    on_partition = {number: sum(nodes[node] for node in own) for number, own in of_partition.items() if own}
    table: dict[str, list[Any]] = {name: [] for name in ("job_id", "submit_time", "run_time", "estimate", "processors")}
    table |= {name: [] for name in ("user_id", "group_id", "partition_id", "queue_id", "wait_time", "status")}
    table["requested_nodes"] = []
    homes = []
    submit = site.begin / unit
    limit = rng.choice([None, None, None, 60])  # a default limit as all estimates
    in_rounds = rng.random() < 0.5  # jobs are submitted together: some that start, then a wide one, then narrow ones
    for number in range(rng.choice([rng.randint(1, 8), rng.randint(1, 24)])):
        turn = number % 12 if in_rounds else -1
        submit += rng.choice([0, 5, 20] if turn == 0 else [0] if turn > 0 else [0, 0, 1, 2, 3, 7])
        run = rng.choice([0, 1, 2, 5, 9, rng.randint(0, 40)][5 * in_rounds :])
        home = rng.randrange(len(sizes))
        homes.append(home)
        partition = home if values["dispatch"] == "partition" else rng.randint(0, 1)
        if nodes:
            partition = rng.choice([*on_partition, *([None] if number else [])])
        most = on_partition.get(partition, sum(nodes[one] for one in there)) if nodes else sizes[home]["processors"]
        most = min(most, least)
        table["job_id"].append(number + 1)
        table["submit_time"].append(submit * unit)
        table["run_time"].append(run * unit)
        table["estimate"].append((limit or max(0, run + rng.choice([0, 0, 3, 10, 70, -1, -5]))) * unit)
        low, high = ((most + 1) // 2, most) if turn == 3 else (1, max(1, most // (2 if turn < 3 else 3)))
        widths = [rng.randint(low, high)] if in_rounds else [1, most, rng.randint(1, most)]
        table["processors"].append(rng.choice(widths))
        table["user_id"].append(
            None if number and "unknown users" in present and rng.random() < 0.3 else rng.randint(0, 2)
        )
        table["group_id"].append(rng.randint(0, 1))
        table["partition_id"].append(partition)
        table["queue_id"].append(rng.randint(1, 2))
        table["requested_nodes"].append((1, 3, 2, None)[number % 4])
        table["wait_time"].append(rng.choice([0, 0, 4, 20]) * unit)
        status = rng.choice([1, 1, 0, 5])
        # The first job, whose user is known, is not left out by its status: feedback needs a user.
        table["status"].append(status if number or values["feedback"] == "none" else 1)
    for name in RESOURCES:
        if counted or any("resources" in one for one in (*sizes, *values["nodes"])) or values["resources"]:
            here = [sizes[home].get("resources", {}) if values["clusters"] else counted for home in homes]
            if values["nodes"]:
                here = [_room(units_of_nodes, of_partition.get(one, there), name) for one in table["partition_id"]]
            table[name] = [rng.choice([0, 0, one.get(name, 0), rng.randint(0, one.get(name, 0))]) for one in here]
    if nodes:
        if any("features" in group for group in values["nodes"]):
            table["constraint_id"] = [rng.choice([None, None, *range(1, 1 + len(CONSTRAINTS))]) for _ in homes]
        _fit_on_nodes(table, values["nodes"], there)
    _add_limited(rng, table, values)
    _add_events(rng, table, present, unit)
    if shares:
        table["memory"] = [float(rng.choice([0, 1, 2, 3])) for _ in homes]
    if values["shapes"] != "requested":
        _add_shapes(rng, table, [min(sizes[home]["processors"], least) for home in homes], site.processors)
    copied = rng.choice([0.0, 0.0, 0.5])
    for row in range(1, len(homes)):
        if rng.random() < copied:
            for name in set(table) - {"job_id"}:
                table[name][row] = table[name][row - 1]
    machine = Machine(
        site.processors, site.processors // site.per_node,
        {"memory": rng.choice([2.0, 3.0, 1000.0])} if shares else {},
        {} if values["clusters"] or values["nodes"] else units,
    )  # fmt: skip
    options = {name: values[name] for name in OPTIONS}
    return Case(table, machine, options, dict(site.labels), rng.choice([0, 0, 1_000_000_007]))


def _nodes(groups: Iterable[Mapping[str, Any]]) -> tuple[list[int], dict[int, set[int]]]:
    """Return the processors of each node, and the nodes of the two partitions of jobs."""
    sizes: list[int] = []
    members: dict[int, set[int]] = {0: set(), 1: set()}
    for group in groups:
        for number in members:
            if str(number) in group.get("partition", "01"):
                members[number] |= set(range(len(sizes), len(sizes) + group["count"]))
        sizes += [group["processors"]] * group["count"]
    return sizes, members


def _window_on(rng: random.Random, window: dict[str, Any], sizes: list[int]) -> dict[str, Any]:
    """Return a window in which nodes are unavailable; one without an end leaves the first one."""
    until = window["until"]
    if until is None and len(sizes) == 1:
        until = window["from"] + 9
    if until is not None and rng.random() < 0.3:  # the last nodes, or all
        return window | {"until": until, "processors": sum(sizes[rng.randint(0, len(sizes) - 1) :])}
    usable = range(1 + (until is None), len(sizes) + 1)
    away = sorted(rng.sample(usable, rng.randint(1, len(usable))))
    parts = [f"{one}-{one}" if rng.random() < 0.3 else str(one) for one in away]
    return {"from": window["from"], "until": until, "nodes": ",".join(parts)}


def maintenance(options: Mapping[str, Any]) -> list[tuple[float, float, set[int]]]:
    """Return the windows in which nodes are unavailable: from, until, and nodes."""
    sizes, found = _nodes(options["nodes"])[0], []
    for one in options["unavailable"] if sizes else ():
        if "nodes" in one:
            away = {int(part.split("-")[0]) - 1 for part in one["nodes"].split(",")}
        else:
            away = {node for node in range(len(sizes)) if sum(sizes[node:]) <= one["processors"]}
        found.append((one["from"], math.inf if one["until"] is None else one["until"], away))
    return found


def featured(groups: Iterable[Mapping[str, Any]]) -> dict[int | None, set[int]]:
    """Return the nodes that satisfy each constraint."""
    features = [{*group.get("features", ())} for group in groups for _ in range(group["count"])]
    return {
        number: {node for node, has in enumerate(features) if is_satisfied(has)}
        for number, is_satisfied in enumerate(CONSTRAINTS.values(), 1)
    }


def node_units(groups: Iterable[Mapping[str, Any]]) -> list[dict[str, int]]:
    """Return the units of resources of each node."""
    return [group.get("resources", {}) for group in groups for _ in range(group["count"])]


def _room(units: list[dict[str, int]], nodes: Iterable[int] | None, name: str) -> dict[str, int]:
    """Return the units of a resource of some nodes, by its name; of all for None."""
    return {name: sum(units[node].get(name, 0) for node in (range(len(units)) if nodes is None else nodes))}


def _fit_on_nodes(
    table: dict[str, list[Any]], groups: Iterable[Mapping[str, Any]], there: set[int] | None = None
) -> None:
    """Remove the constraints of jobs that do not fit on their nodes that are there, or lower what they need."""
    (sizes, members), units, suitable = _nodes(groups), node_units(groups), featured(groups)
    for row, width in enumerate(table["processors"]):
        own = members.get(table["partition_id"][row], {*range(len(sizes))})
        own = own if there is None else own & there
        while True:
            number = table["constraint_id"][row] if "constraint_id" in table else None
            nodes = own & suitable.get(number, own)
            needed = {name: table[name][row] for name in RESOURCES if table.get(name, {row: 0})[row]}
            job = naive_slurm.SlurmJob(0, 0, 0, 0, width, nodes=table["requested_nodes"][row] or 1)
            room = {
                node: job.usable(
                    min([sizes[node], *(units[node].get(name, 0) * width // most for name, most in needed.items())])
                )
                for node in nodes
            }
            if job.fits(room):
                break
            if number is not None:
                table["constraint_id"][row] = None
                continue
            name = max(needed, key=lambda name: needed[name], default="requested_nodes")
            table[name][row] -= 1


def _with_scale(values: dict[str, Any], site: Site, unit: float, begin: float) -> dict[str, Any]:
    """Return values with times in another unit, from another beginning."""
    factor = unit / site.unit
    found = dict(values)
    if values["half_life"]:
        found["half_life"] = values["half_life"] * factor
    if values["priority"] and "max_age" in values["priority"]:
        found["priority"] = values["priority"] | {"max_age": values["priority"]["max_age"] * factor}

    def moved(time: float | None) -> float | None:
        return None if time is None else (time - site.begin) * factor + begin

    windows = ({**one, "from": moved(one["from"]), "until": moved(one["until"])} for one in values["unavailable"])
    found["unavailable"] = tuple(windows)
    return found


def _most_processors(values: Mapping[str, Any], processors: int, minutes: int) -> Iterator[int]:
    """Yield numbers of processors that no job may exceed, lest it never starts."""
    yield processors
    for window in values["unavailable"]:
        if window["until"] is None and not values["nodes"]:
            yield processors - window["processors"]
    for limits in [values["limits"], *(cluster.get("limits") for cluster in values["clusters"])]:
        for of_kind in (limits or {}).values():
            for limit in [of_kind, *(one for one in of_kind.values() if isinstance(one, dict))]:
                for of in ("", "user_"):
                    yield limit.get(f"{of}processors", processors)
                    yield limit.get(f"{of}processor_minutes", processors * minutes) // minutes


def _add_limited(rng: random.Random, table: dict[str, list[Any]], values: Mapping[str, Any]) -> None:
    """Add the units that limits count, so that each job is within all limits."""
    for name in LIMITED_COLUMNS:
        given = [values["limits"], *(cluster.get("limits") for cluster in values["clusters"])]
        of_kinds = [of_kind for limits in given for of_kind in (limits or {}).values()]
        entries = [*of_kinds, *(one for of_kind in of_kinds for one in of_kind.values() if isinstance(one, dict))]
        most = [one[key] for one in entries for key in (name, f"user_{name}") if key in one]
        if most:
            drawn = [rng.choice([0, 1, rng.randint(0, min(most))]) for _ in table["job_id"]]
            table[name] = [min(one, min(most)) for one in table.get(name, drawn)]


def _add_events(rng: random.Random, table: dict[str, list[Any]], present: set[str], unit: float) -> None:
    """Add dependencies, cancellations and job arrays."""
    numbers = table["job_id"]
    if "depends_on" in present:
        table["depends_on"] = [
            sorted(rng.sample(range(1, number), rng.randint(1, min(2, number - 1)))) if number > 1 else None
            for number in numbers
        ]
        table["depends_on"] = [one if rng.random() < 0.5 else None for one in table["depends_on"]]
        table["depends_on"][-1] = [1] if len(numbers) > 1 else None
    if "preceding_job_id" in present:
        table["preceding_job_id"] = [
            rng.randint(1, number - 1) if number > 1 and rng.random() < 0.6 else None for number in numbers
        ]
    if present & {"depends_on", "preceding_job_id"}:
        table["think_time"] = [rng.choice([0.0, 1.0, 5.0, 30.0]) * unit for _ in numbers]
    if "cancelled_after" in present:
        table["cancelled_after"] = [rng.choice([None, None, 0.0, 3.0 * unit, 20.0 * unit]) for _ in numbers]
    if "eligible_after" in present:
        table["eligible_after"] = [rng.choice([None, 0.0, 2.0 * unit, 15.0 * unit]) for _ in numbers]
    if "array_limit" in present:
        table["array_id"] = [rng.choice([None, 7, 7, 9]) for _ in numbers]
        table["array_limit"] = [None if one is None else {7: 2, 9: 1}[one] for one in table["array_id"]]


def _add_shapes(rng: random.Random, table: dict[str, list[Any]], most: list[int], processors: int) -> None:
    """Add shapes, of which one at least fits on the home machine."""
    table["shapes"] = []
    for run, wide in zip(table["run_time"], most, strict=True):
        widths = sorted(rng.sample(range(1, wide + 1), rng.randint(1, wide)))
        widths += [processors + 1] * rng.choice([0, 0, 1])  # too wide, never chosen
        table["shapes"].append([{"processors": w, "run_time": run * rng.choice([0.5, 1.0, 2.0])} for w in widths])


# -- what the slow simulator says


def slow_jobs(case: Case) -> list[naive.Job]:
    """Return the jobs that take part, as the slow simulator has them; ``number`` is the row in the table."""
    options, table = case.options, case.table
    kill, prediction = options["estimates"] == "kill", options["prediction"]
    efficiency = options["efficiency"] if options["shape_choice"] == "efficient" else 0.0
    sizes = [cluster["processors"] for cluster in options["clusters"]] or [case.machine.processors]
    names, scheduler = resource_names(case), Scheduler(**options)
    delay = scheduler.end_delay
    plans_delay = prediction == "system" or not scheduler.is_slurm

    def lengths(run: float, estimate: float, number: int) -> tuple[float, float]:
        run = min(run, estimate) if kill else run
        told = max(run, estimate)
        later = number / 2 ** (len(case.part) - 1).bit_length() if prediction == "distinct" else 0.0
        return run, max(1.0, {"perfect": run, "double": 2 * told}.get(prediction, told)) + later

    row_of = {job_id: number for number, (_, job_id, _) in enumerate(case.part)}
    limit_of: dict[int, int] = {}
    for array, limit in zip(table.get("array_id", ()), table.get("array_limit", ()), strict=True):
        if array is not None:
            limit_of[array] = min(limit_of.get(array, limit), limit)
    jobs = []
    for number, (submit, _, row) in enumerate(case.part):
        column = {name: values[row] for name, values in table.items()}
        run, estimate = column["run_time"], column["estimate"]
        simulated, planned = lengths(run, estimate, number)
        given = [one for one in column.get("shapes", ()) if one["processors"] <= max(sizes)]
        least = min((one["processors"] * one["run_time"] for one in given), default=0.0)
        shapes = [
            (
                *lengths(one["run_time"], estimate * (one["run_time"] / run if run > 0 else 1.0), number),
                one["processors"],
            )
            for one in given
            if least >= efficiency * (one["processors"] * one["run_time"])
        ]
        needs = tuple(sorted(row_of[one] for one in column.get("depends_on") or () if one in row_of))
        cancelled, array = column.get("cancelled_after"), column.get("array_id")
        job = naive_slurm.SlurmJob(
            number, submit, (run if options["runtime"] == "shared" else simulated) + delay,
            planned + delay * plans_delay,
            column["processors"], -1 - number if column["user_id"] is None else column["user_id"], shapes,
            column["group_id"], -1 if column["partition_id"] is None else column["partition_id"], needs=needs,
            think=column["think_time"] if needs else 0.0,
            leaves=math.inf if cancelled is None else max(cancelled - case.delay(row), 0.0), array=array or 0,
            array_limit=limit_of.get(array, math.inf), demands=tuple(column[name] for name in names),
            counted=tuple(column.get(name, 0) for name in LIMITED_COLUMNS), qos=column["queue_id"],
            nodes=column.get("requested_nodes") or 1, constraint=column.get("constraint_id"),
        )  # fmt: skip
        jobs.append(job)
    if options["feedback"] != "none" and "depends_on" not in table and jobs:
        left = eligible_jobs(case.workload().jobs, "drawn")
        left = left.filter(~pl.col("status").is_in(list(options["without_status"])))
        found = dependencies_of(left, options["feedback"], "drawn")
        assert found is not None
        for job, previous, think in zip(jobs, found.previous.tolist(), found.think.tolist(), strict=True):
            job.after, job.think = previous, think
        for job, patience in zip(jobs, () if found.patience is None else found.patience.tolist(), strict=False):
            job.patience = patience
    return jobs


def resource_names(case: Case) -> list[str]:
    """Return the names of the counted resources of the machines, sorted."""
    clusters = case.options["clusters"]
    given = {**case.machine.resources, **(case.options["resources"] or {})}
    parts = clusters or case.options["nodes"]
    found = set().union(*(part.get("resources", {}) for part in parts)) if parts else set(given)
    return sorted(name for name in found if given.get(name, 0) is not None or parts)


def key_of(order: Any) -> Key:
    """Return an order as the slow simulator has it; NaN is last."""
    found = NAMED.get(order) or FORMULAS.get(order)
    if found is None or isinstance(found, str):
        return str(order)

    def key(job: naive.Job, now: float, machine: naive.Machine) -> float:
        value = found(job, now, machine)
        return math.inf if math.isnan(value) else value

    return key


def slow_policy(case: Case, cluster: Mapping[str, Any]) -> naive_slurm.SlurmPolicy:
    """Return the policy of a machine; a cluster can have options of its own."""
    options = {**case.options, **cluster}
    if options["policy"] is not None:
        given = options["policy_options"] or {}
        order = {"estimate": "sjf", "processors": "smallest-first"}[given.get("by", "estimate")]
        options |= {"order": order, "backfill": "easy" if given.get("backfills", True) else "none"}
    second = options["backfill_order"] if "order" not in cluster else cluster.get("backfill_order")
    order = key_of(options["order"])
    limits: dict[tuple[str, int], naive.Most] = {}
    user_limits: dict[tuple[str, int], naive.Most] = {}
    for kind, of_kind in (options["limits"] or {}).items():
        column = "queue_id" if kind == "qos" else f"{kind}_id"
        for number in {one for one in case.table[column] if one is not None}:
            most = of_kind | of_kind.get(str(number), {})
            limits[kind, number] = tuple(most.get(what, math.inf) for what in LIMITS)
            user_limits[kind, number] = tuple(most.get(what, math.inf) for what in USER_LIMITS)
    own = {name: one for name, one in (options["limits"] or {}).get("group", {}).items() if isinstance(one, dict)}
    accounts = options["accounts"] or {}
    given = options["priority"]
    weights = given if given is not None else {"age": 1000, "fair_share": 10000, "size": 1000}
    factors = {
        name: {int(number): factor for number, factor in weights.get(name, {}).items()}
        for name in ("partition_factors", "qos_factors")
    }
    cycles = {name: one.default for name, one in SCHEDULER_PARAMETERS.items()} | (options["scheduler_parameters"] or {})
    return naive_slurm.SlurmPolicy(
        order=order,
        backfill="lookahead" if options["backfill"] == "easy" else options["backfill"],
        lookahead=options["reservations"],
        starts=options["backfill_starts"] or math.inf,
        cycles=naive_slurm.Cycles(
            cycles["bf_interval"] if cycles["bf_interval"] > 0 else math.inf,
            60 * cycles["bf_window"],
            cycles["bf_resolution"],
            cycles["bf_max_job_test"],
            cycles["bf_max_job_user"] or math.inf,
            cycles["bf_max_job_part"] or math.inf,
            cycles["default_queue_depth"],
            cycles["batch_sched_delay"],
            math.ceil(cycles["sched_interval"] / naive_slurm.TICK) * naive_slurm.TICK,
            case.epoch,
        ),
        backfill_order=order if second is None else key_of(second),
        event_order=options["event_order"],
        allocation=options["allocation"],
        predict=options["prediction"] == "system",
        unavailable=[
            (one["from"], math.inf if one["until"] is None else one["until"], one["processors"])
            for one in options["unavailable"]
            if not options["nodes"]
        ],
        maintenance=maintenance(options),
        resources=shared_resources(case),
        shapes=options["shapes"],
        multifactor=naive_slurm.Multifactor(**{**weights, **factors}),
        limits=limits,
        user_limits=user_limits,
        tree_limits={int(name): tuple(one.get(what, math.inf) for what in LIMITS) for name, one in own.items()}
        if options["accounts"]
        else {},
        member_limits={
            (int(group), int(user)): tuple(most.get(what, math.inf) for what in LIMITS)
            for group, one in own.items()
            for user, most in one.get("users", {}).items()
        },
        parents={int(name): int(one["parent"]) for name, one in accounts.items() if one.get("parent", "all") != "all"},
        nodes=_nodes(options["nodes"])[0],
        units=[tuple(one.get(name, 0) for name in resource_names(case)) for one in node_units(options["nodes"])],
        node_weights=[one.get("weight", 1) for one in options["nodes"] for _ in range(one["count"])],
        partitions=_nodes(options["nodes"])[1],
        featured=featured(options["nodes"]),
        preemption=slow_preemption(options, cycles["end_delay"]),
    )


def slow_preemption(options: Mapping[str, Any], end_delay: float) -> naive_slurm.Preemption | None:
    """Return which jobs preempt others."""
    given = options["preemption"]
    if given is None:
        return None
    kind = "qos" if "qos" in given else "partition"
    tiers = given.get("qos_priorities", {}) if kind == "qos" else given["partition"]
    return naive_slurm.Preemption(
        kind,
        {int(name): tier for name, tier in tiers.items()},
        {int(name): set(map(int, others)) for name, others in given.get("qos", {}).items()},
        {int(name): mode for name, mode in given.get("modes", {}).items()},
        given.get("mode", "requeue"),
        given.get("exempt_time", 0),
        given.get("requeue_delay", 121),
        end_delay,
    )


def shared_resources(case: Case) -> naive.Resources | None:
    """Return the resources that the processes of a node share."""
    options, table = case.options, case.table
    if "memory" not in case.machine.capacities:
        return None
    part = [row for _, _, row in case.part]
    slows, penalty = options["runtime"] == "shared", options["penalty"]
    return naive.Resources(
        case.machine.processors_per_node,
        [[int(table["memory"][row])] for row in part],
        [int(case.machine.capacities["memory"])],
        [table["estimate"][row] if slows and options["estimates"] == "kill" else math.inf for row in part],
        PENALTIES[penalty],
        second=int(penalty == "printed"),
        limit=options["sharing_limit"],
        slows=slows,
        forgets=penalty in ("forgets-shadows", "at-start"),
        once=penalty == "at-start",
    )


def fair_share(case: Case, has_slurm_accounts: bool) -> naive.FairShare:
    """Return the accounts of users and groups, with their shares."""
    shares: dict[str, dict[int, float]] = {}
    for kind in ("user", "group"):
        given = case.options[f"{kind}_shares"] or {}
        numbers = zip(case.table[f"{kind}_id"], case.table["status"], strict=True)
        left = {one for one, status in numbers if one is not None and status not in case.options["without_status"]}
        own = {number: given.get(str(number), 1.0) for number in left}
        absent = sum(share for number, share in given.items() if int(number) not in left)
        total = sum(own.values()) + absent or 1.0
        shares[kind] = {number: share / total for number, share in own.items()} | {-1: 1.0 / total}
    period = (case.options["priority"] or {}).get("calc_period", 0)
    whole = (case.options["priority"] or {}).get("whole_periods", False)
    half_life = case.options["half_life"] or math.inf
    fair = naive.FairShare(half_life, shares)
    if has_slurm_accounts:
        fair = naive_slurm.SlurmShare(half_life, shares, period=period, whole_periods=whole, tree=_tree(case))
    accounts = (case.options["accounts"] or {}).items()
    used = {(int(name), int(user)): used for name, one in accounts for user, used in one.get("usage", {}).items()}
    fair.start_with(used, min((job.submit for job in slow_jobs(case)), default=0.0))
    return fair


def _tree(case: Case) -> naive_slurm.Node:
    """Return the fair tree of the accounts, and of the users of the jobs in them."""
    accounts, table = case.options["accounts"] or {}, case.table
    users = {name: dict.fromkeys(one.get("usage", {}), 1.0) | one.get("users", {}) for name, one in accounts.items()}
    for group, user, status in zip(table["group_id"], table["user_id"], table["status"], strict=True):
        if group is not None and user is not None and status not in case.options["without_status"]:
            users.setdefault(str(group), {}).setdefault(str(user), 1.0)
    above = {name: str(accounts.get(name, {}).get("parent", "")) for name in users}
    above |= dict.fromkeys({*above.values()} - {*above, ""}, "")

    def node_of(name: str) -> naive_slurm.Node:
        mine = users.get(name, {})
        below = [naive_slurm.Node(mine[one], (int(name), int(one)) if name != "all" else None) for one in sorted(mine)]
        below += [node_of(one) for one in sorted(above) if above[one] == name]
        return naive_slurm.Node(accounts.get(name, {}).get("share", 1.0), below=below)

    return node_of("")


def simulated(case: Case) -> tuple[list[naive.Job], list[naive.Machine]]:
    """Return the jobs, and the machines of the slow simulator after the last event."""
    jobs, names, is_slurm = slow_jobs(case), resource_names(case), Scheduler(**case.options).is_slurm
    has_slurm_accounts = is_slurm or _has_slurm_accounts(case.options)
    fair = fair_share(case, has_slurm_accounts)
    kind = naive_slurm.AccountedMachine if has_slurm_accounts else naive.Machine
    kind = naive_slurm.SlurmMachine if is_slurm else kind
    processors = sum(_nodes(case.options["nodes"])[0]) or case.machine.processors
    clusters = case.options["clusters"] or ({"processors": processors},)
    machines = []
    for cluster in clusters:
        own = cluster.get("resources", {}) if case.options["clusters"] else None
        if case.options["nodes"]:
            own = {name: _room(node_units(case.options["nodes"]), None, name)[name] for name in names}
        units = {**case.machine.resources, **(case.options["resources"] or {})} if own is None else own
        resources = tuple(units.get(name, 0) for name in names)
        machines.append(kind(cluster["processors"], slow_policy(case, cluster), fair, resources))
    simulate = naive_slurm.simulate_slurm if is_slurm else naive.simulate_centres
    return jobs, simulate(jobs, machines, case.options["dispatch"])


def _has_slurm_accounts(options: Mapping[str, Any]) -> bool:
    """Return whether a scheduler has usage, priorities or limits that only Slurm has."""
    limits = [options["limits"], *(cluster.get("limits") for cluster in options["clusters"])]
    orders = [one.get(name) for one in (options, *options["clusters"]) for name in ("order", "backfill_order")]
    if options["priority"] or options["accounts"] or not {"slurm-multifactor", *OF_TREES}.isdisjoint(map(str, orders)):
        return True
    plain = {"jobs", "processors", *LIMITED_COLUMNS}
    for of_kind in (one for given in limits for kind, one in (given or {}).items()):
        named = {what for value in of_kind.values() if isinstance(value, dict) for what in value}
        if not {what for what, value in of_kind.items() if not isinstance(value, dict)} | named <= plain:
            return True
    return any("qos" in (given or {}) for given in limits)


def differences(case: Case, outcomes: pl.DataFrame) -> str:
    """Return the difference between the kernels and the slow simulator, or nothing."""
    if case.options["order"] == "log":
        return _differences_of_log(case, outcomes)
    jobs, machines = simulated(case)
    options, rows = case.options, {row["job_id"]: row for row in outcomes.iter_rows(named=True)}
    ids = [job_id for _, job_id, _ in case.part]
    delay = Scheduler(**options).end_delay
    tolerance = 1e-5 if options["runtime"] == "shared" else 0.0
    started = {number: (place, machine) for place, machine in enumerate(machines, 1) for number in machine.starts}
    # Jobs whose user left have no outcome.
    left = [job for job in jobs if job.leaves == math.inf and (job.number in started or job.after < 0)]
    if set(rows) != {ids[job.number] for job in left}:
        return f"outcomes of jobs {sorted(rows)}"
    for job in left:
        place, machine = started[job.number]
        row, done = rows[ids[job.number]], machine.done[job.number]
        is_slurm = isinstance(machine, naive_slurm.SlurmMachine)
        killed = is_slurm and job.number in machine.killed
        start, end = machine.starts[job.number], machine.ends[job.number] - delay * (not killed)
        if not abs(row["start_time"] - start) <= tolerance:
            return f"job {row['job_id']} starts at {row['start_time']}, not {start}"
        if not abs(row["end_time"] - end) <= max(tolerance, 1e-6 * (delay > 0)):
            return f"job {row['job_id']} ends at {row['end_time']}, not {end}"
        if row["places"] is not None and places_of(row["places"]) != machine.places[job.number]:
            return f"job {row['job_id']} is on {row['places']}, not {machine.places[job.number]}"
        if (row["places"] is None) == options["places"]:
            return f"job {row['job_id']} has places {row['places']}"
        penalty = end - start - float(machine.spent[job.number]) if options["runtime"] == "shared" else 0.0
        if not abs(row["penalty_time"] - penalty) <= tolerance:
            return f"job {row['job_id']} has the penalty {row['penalty_time']}, not {penalty}"
        if options["preemption"] and (row["preemptions"], row["lost_time"]) != (
            machine.preemptions.get(job.number, 0), machine.lost.get(job.number, 0.0)
        ):  # fmt: skip
            return f"job {row['job_id']} was preempted {row['preemptions']} times and lost {row['lost_time']} s"
        if killed and not row["killed"]:
            return f"job {row['job_id']} is not killed"
        if row["submit_time"] != done.submit:
            return f"job {row['job_id']} is submitted at {row['submit_time']}, not {done.submit}"
        if row["processors"] != done.processors or row["centre"] != (place if options["clusters"] else None):
            return f"job {row['job_id']} has {row['processors']} processors in cluster {row['centre']}"
    return ""


def _differences_of_log(case: Case, outcomes: pl.DataFrame) -> str:
    """Return the difference between the recorded schedule and the outcomes, or nothing."""
    expected = {
        row["job_id"]: row["submit_time"] + row["wait_time"]
        for row in case.workload().jobs.iter_rows(named=True)
        if row["status"] not in case.options["without_status"] and row.get("cancelled_after") is None
    }
    found = dict(outcomes.select("job_id", "start_time").iter_rows())
    return "" if found == expected else f"starts {found}, not {expected}"


def places_of(text: str) -> list[int]:
    """Return the processors of a text of ranges."""
    ranges = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [place for ends in ranges for place in range(ends[0], ends[-1] + 1)]


# -- coverage


class Coverage:
    """Counts of the cases that used each value of an option, alone and together with each of another one."""

    def __init__(self) -> None:
        self.cases = 0
        self.alone: Counter[Choice] = Counter()
        self.pairs: Counter[tuple[Choice, Choice]] = Counter()

    def add(self, chosen: Iterable[Choice]) -> None:
        """Count a case by its options with other values than the default."""
        chosen = list(chosen)
        self.cases += 1
        self.alone.update(chosen)
        self.pairs.update(combinations(chosen, 2))

    def read(self, file: Path) -> None:
        """Add the counts of a file that `write` wrote."""
        found = json.loads(file.read_text())
        self.cases += found["cases"]
        for *choice, number in found["alone"]:
            self.alone[tuple(choice)] += number
        for *pair, number in found["pairs"]:
            self.pairs[tuple(pair[:2]), tuple(pair[2:])] += number

    def write(self, file: Path) -> None:
        """Write the counts."""
        alone = [[*choice, number] for choice, number in self.alone.items()]
        pairs = [[*first, *second, number] for (first, second), number in self.pairs.items()]
        file.write_text(json.dumps({"cases": self.cases, "alone": alone, "pairs": pairs}))

    def report(self) -> str:
        """Return the table of counts, and the legal pairs that no case used."""
        legal, count = legal_pairs()
        of_options: Counter[tuple[str, str]] = Counter()
        for ((first, _), (second, _)), number in self.pairs.items():
            of_options[first, second] += number
        lines = [f"{self.cases:,} cases", "", f"{'option':23} {'value':46} {'cases':>7}"]
        for name, values in ALL.items():
            first, *others = values
            numbers = {label: self.alone[name, label] for label in others}
            numbers = {first: self.cases - sum(numbers.values())} | numbers
            lines += [f"{name:23} {label:46} {number:7,}" for label, number in numbers.items()]
        lines += ["", "two options with other values than the default, and the cases that used both"]
        lines += [f"{first:23} {second:23} {number:7,}" for (first, second), number in sorted(of_options.items())]
        missing = [pair for pair in legal if not self.pairs[pair]]
        least = min((self.pairs[pair] for pair in legal), default=0)
        lines += [
            "",
            f"{len(legal) - len(missing):,} of {len(legal):,} legal pairs of values used, each {least:,} times or more",
        ]
        lines += [f"({count - len(legal):,} of {count:,} pairs are refused)"]
        return "\n".join(lines + [f"not used: {first} with {second}" for first, second in missing])


def undrawn() -> list[str]:
    """Return the options, and the choices of options, that have no values here."""
    missing = [name for name in OPTIONS if name not in VALUES]
    missing += [
        f"{name}: {choice}" for name, choices in CHOICES.items() for choice in choices if choice not in VALUES[name]
    ]
    missing += [f"order: {name}" for name in ORDERS if name not in VALUES["order"]]
    return missing
