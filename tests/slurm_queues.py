"""Draws of long queues on nodes under Slurm's schedulers, also with preemption."""

import math
import random
from collections.abc import Callable
from typing import Any

import cases
from swflow.jobs.machine import Machine
from swflow.scheduling.nested_options import LIMITED_COLUMNS
from swflow.scheduling.options import OPTIONS


def a_queue(
    rng: random.Random, users: int = 1, resources: bool = False, many: bool = False, windows: bool = False
) -> cases.Case:
    """
    Draw jobs that are submitted in a minute to a few nodes, and run for minutes, so that many have reservations.

    With several users, cycles test some jobs of each. Nodes and jobs may have resources, and windows. With many nodes,
    more than 64, no job can use most of them.
    """
    nodes = [cases._group(cases.new_site(rng), True, resources) for _ in range(rng.randint(2, 4))]
    if many:
        other = {"count": rng.randint(55, 130), "processors": rng.randint(1, 9), "partition": "9"}
        nodes.insert(rng.randint(0, 1), other)
    sizes, of_partition = cases._nodes(nodes)
    wide = {number: sum(sizes[node] for node in own) for number, own in of_partition.items() if own}
    partitions = rng.choices([*wide] if many else [*wide, None], k=rng.randint(15, 40))
    count = len(partitions)
    unit = rng.choice([1, 30])  # with the longer one, many jobs end at the same time
    runs = [float(unit * (rng.choice([rng.randint(1, 60), rng.randint(20, 400)]) // unit + 1)) for _ in range(count)]
    table = {
        "job_id": list(range(1, count + 1)), "submit_time": sorted(float(rng.randint(0, 60)) for _ in range(count)),
        "run_time": runs, "estimate": [run * rng.choice([1, 1, 1.5, 4]) for run in runs],
        "processors": [min(rng.choice([1, 1, 2, 3, 8]), wide.get(number, sum(sizes))) for number in partitions],
        "partition_id": partitions, "user_id": [1] * count, "group_id": [1] * count, "queue_id": [1] * count,
        "status": [1] * count,
    }  # fmt: skip
    parameters = {
        "bf_interval": rng.choice([1, 5, 30]), "bf_resolution": rng.choice([1, 7, 60]), "end_delay": rng.choice([0, 2]),
        "bf_max_job_test": rng.choice([6, 20, 500]), "bf_window": rng.choice([2, 1440]),
        "batch_sched_delay": rng.choice([0, 20]), "sched_interval": rng.choice([10, 600]),
    }  # fmt: skip
    epoch = rng.choice([0, 1_000_000_007])
    if users > 1:
        table["user_id"] = rng.choices(range(users), k=count)
        parameters["bf_max_job_user"] = rng.choice([1, 2, 4])
    options = {name: one.default for name, one in OPTIONS.items()}
    order = rng.choice(["fcfs", "saf"])
    options |= {"backfill": "slurm", "order": order, "nodes": nodes, "scheduler_parameters": parameters}
    if windows:
        times = [(begin, begin + rng.choice([5, 40, 200])) for begin in rng.sample(range(-20, 400), rng.randint(1, 5))]
        drawn = [cases._window_on(rng, {"from": begin, "until": until}, sizes) for begin, until in times]
        options["unavailable"] = tuple(drawn)
    if resources:
        of_nodes = cases.node_units(nodes)
        for name in cases.RESOURCES:
            rooms = [cases._room(of_nodes, of_partition.get(one), name)[name] for one in partitions]
            table[name] = [
                rng.choice([0, rng.randint(0, room), min(room, wide)])
                for room, wide in zip(rooms, table["processors"], strict=True)
            ]
    table["requested_nodes"] = [rng.choice([1, 1, 1, 2, 3]) for _ in partitions]
    if resources:
        table["constraint_id"] = [rng.choice([None, None, *range(1, 1 + len(cases.CONSTRAINTS))]) for _ in partitions]
    cases._fit_on_nodes(table, nodes)
    return cases.Case(table, Machine.of(sum(sizes)), options, {}, epoch)


def with_preemption(rng: random.Random, windows: bool = False) -> cases.Case:
    """Draw a queue on nodes whose jobs preempt each other."""
    case = a_queue(rng, rng.choice([1, 1, 3]), rng.random() < 0.4, rng.random() < 0.25, windows)
    table, rare = case.table, rng.choice([2, 3, 5])
    table["queue_id"] = [1 + (rng.random() < 1 / rare) for _ in table["queue_id"]]
    table["submit_time"] = sorted(time * rng.choice([1, 1, 5]) for time in table["submit_time"])
    site = cases.new_site(rng)
    site.unit = 1.0
    case.options["preemption"] = cases.VALUES["preemption"][rng.choice(list(cases.VALUES["preemption"])[1:])](site)
    case.options["order"] = rng.choice(["fcfs", "fcfs", "sjf", "wfp3", "slurm-multifactor", "slurm-multifactor"])
    if case.options["order"] == "slurm-multifactor":
        case.options["priority"] = cases.VALUES["priority"][rng.choice(["calc_period", "whole_periods"])](site)
    return case


def with_wide_jobs(rng: random.Random) -> cases.Case:
    """Draw jobs that fill many nodes, and a few wide jobs that preempt some of them."""
    nodes: list[dict[str, Any]] = [
        {"count": rng.randint(1, 4), "processors": rng.randint(1, 4), "weight": rng.randint(1, 2)} for _ in range(4)
    ]
    nodes[rng.randint(0, 3)]["partition"] = "0"
    sizes, members = cases._nodes(nodes)
    count, room = rng.randint(4, 12), sum(sizes[node] for node in members[1])
    wide = [rng.randint(2, room) for _ in range(rng.randint(1, 4))]
    jobs = count + len(wide)
    table = {
        "job_id": list(range(1, jobs + 1)), "run_time": [400.0] * count + [30.0] * len(wide),
        "submit_time": [*sorted(rng.choices([0.0, 3.0, 9.0], k=count)), *(60.0 + 60 * k for k in range(len(wide)))],
        "estimate": [rng.choice([400.0, 500.0]) for _ in range(count)] + [30.0] * len(wide),
        "processors": [rng.randint(1, 5) for _ in range(count)] + wide,
        "partition_id": [0] * count + [1] * len(wide), "user_id": [1] * jobs, "group_id": [1] * jobs,
        "queue_id": [1] * jobs, "status": [1] * jobs,
    }  # fmt: skip
    options = {name: one.default for name, one in OPTIONS.items()} | {"nodes": nodes, "backfill": "slurm"}
    options["preemption"] = {"partition": {"1": 2}, "requeue_delay": rng.choice([5, 300])}
    options["scheduler_parameters"] = {"end_delay": rng.choice([0, 2, 90]), "batch_sched_delay": rng.choice([0, 3])}
    return cases.Case(table, Machine.of(sum(sizes)), options, {}, 0)


def any_options(rng: random.Random) -> cases.Case:
    """Draw nodes, parameters and often preemption, with up to three further options."""
    while True:
        site = cases.new_site(rng)
        wanted = {"backfill": "slurm", "nodes": rng.choice(["alike", "partitions", "resources"])}
        wanted["scheduler_parameters"] = rng.choice(list(cases.VALUES["scheduler_parameters"]))
        if rng.random() < 0.5:
            wanted["preemption"] = rng.choice(list(cases.VALUES["preemption"])[1:])
        others = [one for one in cases.CHOOSABLE if one[0] not in wanted]
        values = cases.completed(site, dict(rng.sample(others, rng.randint(0, 3))) | wanted)
        if values is not None:
            return cases._with_jobs(site, values)


def with_limits(case: cases.Case, rng: random.Random) -> cases.Case:
    """Return a case in which users have limits that leave room for each of their jobs, unless it has limits."""
    if case.options["limits"] is None:
        least = {"jobs": 1, "processors": max(case.table["processors"])}
        least |= {"gpus": max(case.table["gpus"])} if "gpus" in case.table else {}
        what = rng.choice(list(least))
        case.options["limits"] = {"user": {what: rng.randint(least[what], 2 * least[what] + 2)}}
    return case


def with_overlapping_limits(case: cases.Case, rng: random.Random) -> cases.Case:
    """
    Return a case in which QOS or partitions have limits that replace those of users and groups, unless it has limits.

    The limits that apply to a job leave room for it; those that are replaced may be smaller.
    """
    table, options, count = case.table, case.options, len(case.table["job_id"])
    if options["limits"] is not None or options["prediction"] != OPTIONS["prediction"].default:
        return case
    table["group_id"] = rng.choices([1, 2], k=count)
    if options["preemption"] is None:
        table["queue_id"] = rng.choices([1, 2, 3], k=count)
    if len(set(table["user_id"])) == 1:
        table["user_id"] = rng.choices([1, 2, 3], k=count)
    planned = [max(run, estimate) for run, estimate in zip(table["run_time"], table["estimate"], strict=True)]
    needs = {"jobs": [1] * count, "processors": table["processors"]}
    needs["processor_minutes"] = [
        wide * max(1, math.floor(time / 60)) for wide, time in zip(table["processors"], planned, strict=True)
    ]
    needs |= {name: table[name] for name in LIMITED_COLUMNS if name in table}
    limits: dict[str, Any] = {}
    for what in rng.sample(list(needs), rng.randint(1, 2)):
        _overlap(rng, case, limits, what, needs[what])
    if rng.random() < 0.3 and "group" in limits and not options["accounts"]:
        options["accounts"] = {"1": {"parent": "3"}, "2": {"parent": "3"}}
        limits["group"]["3"] = {what: 2 * most for what, most in limits["group"].items() if isinstance(most, int)}
    options["limits"] = limits
    return case


def _overlap(rng: random.Random, case: cases.Case, limits: dict[str, Any], what: str, needs: list[int]) -> None:
    """Add limits of a quantity: of users or groups, and of some QOS and partitions, which replace these."""
    table, replaced = case.table, [False] * len(needs)
    of_user, of_each = rng.random() < 0.5, rng.random() < 0.3
    for kind in rng.choice([["qos"], ["partition"], *3 * [["partition", "qos"]]]):
        column = table["queue_id" if kind == "qos" else "partition_id"]
        numbers = sorted({one for one in column if one is not None})
        name = f"user_{what}" if (what == "jobs" and of_user) or of_each else what
        for number in rng.sample(numbers, rng.randint(0, len(numbers))):
            least = max(need for need, one in zip(needs, column, strict=True) if one == number)
            limits.setdefault(kind, {}).setdefault(str(number), {})[name] = rng.randint(least, 2 * least + 2)
            replaces = name == (f"user_{what}" if what == "jobs" and of_user else what)
            replaced = [one or (replaces and other == number) for one, other in zip(replaced, column, strict=True)]
    least = max((need for need, one in zip(needs, replaced, strict=True) if not one), default=0)
    most = rng.randint(least, least + 2)
    if of_user and rng.random() < 0.2:
        own = limits.setdefault("group", {}).setdefault("1", {}).setdefault("users", {})
        own.setdefault(str(table["user_id"][0]), {})[what] = most
    else:
        limits.setdefault("user" if of_user else "group", {})[what] = most


def with_tests_of_partitions(case: cases.Case, rng: random.Random) -> cases.Case:
    """Return a case whose cycles test some jobs of each partition."""
    parameters = case.options["scheduler_parameters"] or {}
    case.options["scheduler_parameters"] = parameters | {"bf_max_job_part": rng.choice([1, 2, 4])}
    return case


def any_queue(rng: random.Random) -> cases.Case:
    """Draw a queue of any of the kinds above, some of them with limits, or with few tests of each partition."""
    kinds: list[Callable[[random.Random], cases.Case]] = [
        lambda rng: a_queue(rng, rng.choice([1, 3]), rng.random() < 0.5, rng.random() < 0.3, rng.random() < 0.3),
        lambda rng: with_preemption(rng, rng.random() < 0.25), with_wide_jobs, any_options,
    ]  # fmt: skip
    case = rng.choice(kinds)(rng)
    chance = rng.random()
    if chance < 0.5:
        case = with_limits(case, rng) if chance < 0.2 else with_overlapping_limits(case, rng)
    return with_tests_of_partitions(case, rng) if rng.random() < 0.3 else case
