"""Known schedules: a run as SWF with a header that states every convention, to check other simulators by."""

import os
from typing import Any

import polars as pl

from swflow import __version__
from swflow.jobs import Workload
from swflow.scheduling.options import CHOICES
from swflow.scheduling.orders import NAMED, PENALTIES
from swflow.scheduling.scheduler import Scheduler
from swflow.swf import run_as_swf, write_swf


def write_known_schedule(
    path: str | os.PathLike[str], workload: Workload, outcomes: pl.DataFrame, scheduler: Scheduler
) -> None:
    """
    Write a schedule as a log that says by which rules it was made.

    Parameters
    ----------
    path : path-like
        ``.swf`` or ``.swf.gz``.
    workload : Workload
        What was simulated.
    outcomes : polars.DataFrame
        The run, as `swflow.scheduling.simulate.simulate` returns it.
    scheduler : Scheduler
        The scheduler of the run.

    Notes
    -----
    Wait time and run time are as simulated, allocated processors are those that were simulated, requested
    time is what the scheduler was told, and status is 1, or 0 for a job that was killed.
    """
    known = workload.jobs.with_columns(requested_time=pl.col("estimate"), requested_processors=pl.col("processors"))
    header = {
        key: list(values)
        for key, values in workload.header.items()
        if key in ("Computer", "Installation", "UnixStartTime", "TimeZone", "TimeZoneString")
    }
    header |= {
        "MaxJobs": [str(outcomes.height)],
        "MaxRecords": [str(outcomes.height)],
        "MaxNodes": [str(workload.machine.nodes)],
        "MaxProcs": [str(workload.machine.processors)],
        "Note": conventions(workload, scheduler),
    }
    write_swf(path, run_as_swf(known, outcomes), header)


def conventions(workload: Workload, scheduler: Scheduler) -> list[str]:
    """
    Say in sentences by which rules a schedule is made.

    Parameters
    ----------
    workload : Workload
        What is simulated.
    scheduler : Scheduler
        The scheduler.

    Returns
    -------
    list of str
        One line each.

    Examples
    --------
    >>> from swflow.machine import Machine
    >>> tiny = Workload(pl.DataFrame({"run_time": [1.0]}), Machine.of(4), "tiny")
    >>> conventions(tiny, Scheduler(backfill="easy"))[1]
    'Machine: 4 processors; they are only counted'
    """
    machine = workload.machine
    where = "they are only counted" if scheduler.allocation == "count" else CHOICES["allocation"][scheduler.allocation]
    lines = [
        f"A known schedule: workload {workload.name}, simulated by swflow {__version__}",
        f"Machine: {machine.processors} processors; {where}",
        f"Order of the queue: {_order(scheduler.order)}",
        f"Backfill {scheduler.backfill}: {CHOICES['backfill'][scheduler.backfill]}",
    ]
    if scheduler.backfill in ("lookahead", "selective"):
        lines.append(f"Reservations: {scheduler.lookahead}")
    if scheduler.backfill in ("easy", "lookahead", "selective", "reservation-table"):
        lines.append(f"Order of backfilling: {_order(scheduler.backfill_order or scheduler.order)}")
    if scheduler.backfill in ("easy", "lookahead", "selective"):
        lines += [
            "Shadow time: the earliest time at which, by the planned ends of the running jobs, enough processors are "
            "free for the head; a later job may start now if its planned end is not after it, or if it fits into the "
            "processors that will be left beside the head then",
        ]
    lines += [
        f"Planned run times ({scheduler.prediction}): {CHOICES['prediction'][scheduler.prediction]}; at least 1 second",
        f"Estimates ({scheduler.estimates}): {CHOICES['estimates'][scheduler.estimates]}",
        f"Events ({scheduler.event_order}): {CHOICES['event_order'][scheduler.event_order]}",
        "Processors: the allocated, else the requested; estimate: the requested time, else the run time",
    ]
    if scheduler.runtime == "shared":
        lines.append(
            f"Run times ({scheduler.runtime}): {CHOICES['runtime'][scheduler.runtime]}; the penalty of a node is "
            f"{PENALTIES.get(scheduler.penalty, scheduler.penalty)}, summed over its resources"
            + (", and a second for every overloaded shadow" if scheduler.penalty == "printed" else "")
        )
    if scheduler.allocation == "threshold":
        lines.append(f"Limit of a node's penalty: {scheduler.sharing_limit:g}")
    lines += [f"Unavailable: {_window(window)}" for window in scheduler.unavailable]
    if scheduler.centres:
        sizes = ", ".join(str(centre["processors"]) for centre in scheduler.centres)
        lines.append(f"Centres of {sizes} processors; jobs are sent {CHOICES['dispatch'][scheduler.dispatch]}")
    if scheduler.shapes != "requested":
        lines.append(f"Shapes ({scheduler.shapes}): {CHOICES['shapes'][scheduler.shapes]}")
        among = CHOICES["shape_choice"][scheduler.shape_choice].replace("`efficiency`", f"{scheduler.efficiency:g}")
        lines.append(f"Shapes are chosen ({scheduler.shape_choice}) {among}")
    lines += [f"Left out: jobs of status {status}" for status in scheduler.without_status]
    for entry in workload.history:
        for reason, jobs in entry.get("removed", {}).items():
            lines.append(f"Removed by {entry['stage']}: {jobs} jobs, {reason}")
    return lines


def _order(order: Any) -> str:
    if not isinstance(order, str):
        return "a function"
    formula = NAMED.get(order)
    named = f"{order}, that is, " if formula else ""
    return f"{named}the smallest value of {formula or order} first; ties by submit time, then job id"


def _window(window: Any) -> str:
    return f"{window['processors']} processors from {window['from']} until {window['until']}"
