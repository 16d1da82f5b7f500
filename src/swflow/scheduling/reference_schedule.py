"""Reference schedules: a run as SWF with all conventions in its header, to check other simulators."""

import json
import os
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import Workload, has_values
from swflow.log.swf import run_as_swf, write_swf
from swflow.scheduling.nodes import processors_on, units_on
from swflow.scheduling.options import CHOICES, OPTIONS, Queue
from swflow.scheduling.orders.formula import PENALTIES
from swflow.scheduling.orders.keys import mentioned
from swflow.scheduling.orders.multifactor import formula_of
from swflow.scheduling.orders.ownership import Names
from swflow.scheduling.orders.vocabulary import LOG, OF_ACCOUNTS, ORDERS
from swflow.scheduling.scheduler import Scheduler
from swflow.version import __version__

#: Columns that decide when a job starts, for which SWF has no field, and those that decide on which nodes it can.
_NO_FIELD, _NO_FIELD_ON_NODES = ("array_limit", "cancelled_after", "depends_on"), ("requested_nodes", "constraint_id")

#: Options that sentences state; ``places`` changes no schedule. Others are stated as JSON.
_IN_SENTENCES = frozenset({
    "order", "backfill", "reservations", "backfill_order", "backfill_starts", "scheduler_parameters", "allocation",
    "places", "limits", "estimates", "prediction", "runtime", "penalty", "sharing_limit", "event_order", "unavailable",
    "clusters", "dispatch", "half_life", "user_shares", "group_shares", "accounts", "without_status", "shapes",
    "shape_choice", "efficiency", "policy", "policy_options",
})  # fmt: skip


def write_known_schedule(
    path: str | os.PathLike[str], workload: Workload, outcomes: pl.DataFrame, scheduler: Scheduler
) -> None:
    """
    Write the outcomes of a run as a log (``.swf`` or ``.swf.gz``) whose header states its conventions.

    Wait time, run time and allocated processors are the simulated ones. The requested time is the scheduler's
    estimate. The status is 0 for killed jobs and 1 for others.
    """
    units = {**workload.machine.resources, **(scheduler.resources or {})}.values()
    own = any("resources" in cluster for cluster in scheduler.clusters) or units_on(scheduler.nodes)
    if own or any(one is not None for one in units):
        raise SwflowError(f"{path}: SWF has no fields for resources; simulate a machine without them")
    for column in (*_NO_FIELD, *(_NO_FIELD_ON_NODES if scheduler.nodes else ())):
        if has_values(workload.jobs, column):
            raise SwflowError(f"{path}: SWF has no field for {column}; simulate the workload without this column")
    known = workload.jobs.with_columns(requested_time=pl.col("estimate"), requested_processors=pl.col("processors"))
    header = {
        key: list(values)
        for key, values in workload.header.items()
        if key in ("Computer", "Installation", "UnixStartTime", "TimeZone", "TimeZoneString")
    }
    processors, nodes = _size(workload, scheduler)
    header |= {
        "MaxJobs": [str(outcomes.height)],
        "MaxRecords": [str(outcomes.height)],
        "MaxNodes": [str(nodes)],
        "MaxProcs": [str(processors)],
        "Note": conventions(workload, scheduler),
    }
    write_swf(path, run_as_swf(known, outcomes), header)


def conventions(workload: Workload, scheduler: Scheduler) -> list[str]:
    """
    Return sentences that state the conventions of a schedule, one line each.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> tiny = Workload(pl.DataFrame({"run_time": [1.0]}), Machine.of(4), "tiny")
    >>> conventions(tiny, Scheduler(backfill="easy"))[1]
    'Machine: 4 processors; they are only counted'
    """
    processors, nodes = _size(workload, scheduler)
    where = "; ".join(_where(allocation) for allocation in sorted(scheduler.allocations))
    if scheduler.nodes:
        where = f"jobs are on particular ones of {nodes} nodes"
    lines = [
        f"A reference schedule: workload {workload.name}, simulated by swflow {__version__}",
        f"Machine: {processors} processors; {where}",
    ]
    if has_values(workload.jobs, "eligible_after"):
        lines.append("Submit times: those at which jobs became eligible (column eligible_after)")
    if scheduler.order == LOG:
        lines.append("Start times: those that the log recorded")
    else:
        lines += _of_queues(workload, scheduler)
        lines += [
            f"Planned run times ({scheduler.prediction}): {CHOICES['prediction'][scheduler.prediction]}; "
            "at least 1 second",
            f"Estimates ({scheduler.estimates}): {CHOICES['estimates'][scheduler.estimates]}",
            f"Events ({scheduler.event_order}): {CHOICES['event_order'][scheduler.event_order]}",
        ]
    lines.append("Processors: the allocated, else the requested; estimate: the requested time, else the run time")
    lines += _of_accounts(scheduler)
    if scheduler.runtime == "shared":
        lines.append(
            f"Run times ({scheduler.runtime}): {CHOICES['runtime'][scheduler.runtime]}; the penalty of a node is "
            f"{PENALTIES.get(scheduler.penalty, scheduler.penalty)}, summed over its resources"
            + (", and a second for every overloaded shadow" if scheduler.penalty == "printed" else "")
        )
    if "threshold" in scheduler.allocations:
        lines.append(f"Limit of a node's penalty: {scheduler.sharing_limit:g}")
    lines += [
        "Unavailable: "
        + (f"nodes {window['nodes']}" if "nodes" in window else f"{window['processors']} processors")
        + f" from {window['from']} until {window['until']}"
        for window in scheduler.unavailable
    ]
    lines += _of_clusters(scheduler)
    lines += [
        f"Option {name}: {_as_json(getattr(scheduler, name))}"
        for name, option in OPTIONS.items()
        if name not in _IN_SENTENCES and getattr(scheduler, name) != option.default
    ]
    if scheduler.shapes != "requested":
        lines.append(f"Shapes ({scheduler.shapes}): {CHOICES['shapes'][scheduler.shapes]}")
        among = CHOICES["shape_choice"][scheduler.shape_choice].replace("`efficiency`", f"{scheduler.efficiency:g}")
        lines.append(f"Shapes that may be chosen ({scheduler.shape_choice}): {among}")
    lines += [f"Left out: jobs of status {status}" for status in scheduler.without_status]
    for entry in workload.history:
        for reason, jobs in entry.get("removed", {}).items():
            lines.append(f"Removed by {entry['stage']}: {jobs} jobs, {reason}")
    return lines


def _size(workload: Workload, scheduler: Scheduler) -> tuple[int, int]:
    """Return the processors and nodes of the machine, or of all clusters together, whose processors are nodes."""
    if scheduler.nodes:
        return processors_on(scheduler.nodes), sum(group["count"] for group in scheduler.nodes)
    of_clusters = sum(cluster["processors"] for cluster in scheduler.clusters)
    return (of_clusters, of_clusters) if scheduler.clusters else (workload.machine.processors, workload.machine.nodes)


def _where(allocation: str) -> str:
    return "they are only counted" if allocation == "count" else CHOICES["allocation"][allocation]


def _as_json(value: Any) -> str:
    return json.dumps(value, default=lambda function: "a function")


def _of_accounts(scheduler: Scheduler) -> list[str]:
    """Return the conventions of usage and shares."""
    lines = []
    orders = [formula_of(order, scheduler.priority, lambda kind, name: 0) for order in scheduler.orders]
    if any(not mentioned(order).isdisjoint(OF_ACCOUNTS) for order in orders):
        kept = f"counts half after {scheduler.half_life:g} seconds" if scheduler.half_life else "does not decay"
        lines.append(
            f"Usage: the processor-seconds of the account's jobs on all clusters, over those of all jobs; it {kept}"
        )
        for kind in ("user", "group"):
            shares = getattr(scheduler, f"{kind}_shares") or {}
            lines += [f"Share of {kind} {name}: {share:g}, of others 1" for name, share in shares.items()]
    if scheduler.accounts:
        lines.append(f"Accounts: {_as_json(scheduler.accounts)}")
    return lines


def _of_clusters(scheduler: Scheduler) -> list[str]:
    """Return the clusters and their options."""
    lines = []
    if scheduler.clusters:
        sizes = ", ".join(str(cluster["processors"]) for cluster in scheduler.clusters)
        lines.append(f"Clusters of {sizes} processors; a job is sent to: {CHOICES['dispatch'][scheduler.dispatch]}")
        own = [
            _as_json({key: value for key, value in cluster.items() if key != "processors"})
            for cluster in scheduler.clusters
        ]
        lines += [f"Cluster {number}: {text}" for number, text in enumerate(own, 1) if text != "{}"]
    return lines


def _of_queues(workload: Workload, scheduler: Scheduler) -> list[str]:
    """Return the conventions that decide which queued jobs start; those of each cluster if they differ."""
    if scheduler.policy is not None:
        options = _as_json(scheduler.policy_options or {})
        return [f"Policy {scheduler.policy} with the options {options}: a Python class decides which jobs start"]
    queues = scheduler.queues
    if all(queue == queues[0] for queue in queues):
        lines = _of_queue(queues[0], workload, scheduler)
    else:
        lines = [
            f"Cluster {number}: {line}"
            for number, queue in enumerate(queues, 1)
            for line in [*_of_queue(queue, workload, scheduler), f"Processors: {_where(queue.allocation)}"]
        ]
    if scheduler.is_slurm:
        lines.append(f"Parameters of backfill slurm: {_as_json(scheduler.cycles)}")
    if scheduler.backfill_starts is not None:
        lines.append(f"Jobs that a pass starts ahead of others: at most {scheduler.backfill_starts}")
    return lines


def _of_queue(queue: Queue, workload: Workload, scheduler: Scheduler) -> list[str]:
    """Return the conventions of one queue."""
    lines = [
        f"Order of the queue: {_order_text(queue.order, workload, scheduler)}",
        f"Backfill {queue.backfill}: {CHOICES['backfill'][queue.backfill]}",
    ]
    if queue.backfill == "easy":
        lines.append(f"Reservations: {queue.reservations}")
    if queue.backfill in ("easy", "reservation-table"):
        second = queue.backfill_order or queue.order
        lines.append(f"Order of backfilling: {_order_text(second, workload, scheduler)}")
    if queue.backfill == "easy":
        lines.append(
            "Shadow time: the earliest time at which, by the planned ends of the running jobs, enough processors are "
            "free for the head; a later job may start now if its planned end is not after it, or if it fits into the "
            "processors that will be left beside the head then"
        )
    if queue.limits:
        lines.append(
            f"Limits: {_as_json(queue.limits)}; a job beyond a limit is skipped: it neither starts nor has a "
            "reservation"
        )
    return lines


def _order_text(order: Any, workload: Workload, scheduler: Scheduler) -> str:
    if not isinstance(order, str):
        return "a function"
    weighed = formula_of(order, scheduler.priority, Names(workload).number_of)
    formula = weighed if weighed != order else ORDERS[order].formula if order in ORDERS else None
    named = f"{order}, that is, " if formula else ""
    return f"{named}the smallest value of {formula or order} first; ties by submit time, then job id"
