"""Turn a workload and a scheduler into a validated `Problem`."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.eligibility import (
    array_limits,
    cancellations_of,
    demands_of,
    dependencies_of,
    eligible_jobs,
    require_demands,
    require_supported,
)
from swflow.jobs.machine import MOST_PROCESSORS, free_memory
from swflow.jobs.table import FOR_WIDE_JOBS, Workload, check_arrays, check_workload, without_status
from swflow.scheduling.machine.resources import Resources
from swflow.scheduling.nested_options import Unavailable, require_window
from swflow.scheduling.nodes import processors_on, units_on
from swflow.scheduling.options import OPTIONS
from swflow.scheduling.orders.formula import compile_penalty
from swflow.scheduling.orders.keys import job_columns, mentioned, resolved_orders
from swflow.scheduling.orders.names import require_some
from swflow.scheduling.orders.ownership import Names, ownership_of
from swflow.scheduling.orders.vocabulary import FUNCTIONS, MOST_NAMED, PARAMETERS, PLAIN, VARIABLES
from swflow.scheduling.plugins.source import is_own
from swflow.scheduling.problem import Machine, Problem
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.slurm.problem import nodes_of, preempting_of
from swflow.scheduling.state.items import ATTRIBUTES, Jobs, Shapes
from swflow.values import day_or_moment

#: The options that need no columns besides those that every workload has, or that `columns_needed` names.
_PLAIN_OPTIONS = frozenset({
    "order", "backfill", "reservations", "backfill_order", "backfill_starts", "estimates", "prediction", "allocation",
    "places", "event_order", "unavailable", "without_status",
})  # fmt: skip


def columns_needed(scheduler: Scheduler) -> tuple[str, ...] | None:
    """
    Return the columns that a scheduler needs besides those that every workload has; None if it may need any.

    Examples
    --------
    >>> columns_needed(Scheduler(backfill="easy")), columns_needed(Scheduler(order="user_id"))
    ((), None)
    """
    given = {name for name, option in OPTIONS.items() if getattr(scheduler, name) != option.default}
    if not given <= _PLAIN_OPTIONS or scheduler.shares or _needs_attributes(scheduler):
        return None
    needed = {"wait_time": scheduler.order == LOG, "status": scheduler.without_status}
    needed["user_id"] = scheduler.prediction == "system"
    return tuple(name for name, is_needed in needed.items() if is_needed)


def prepare(workload: Workload, scheduler: Scheduler) -> Problem:
    """
    Validate a workload under a scheduler, but not the recorded schedule, and return the problem that the engine solves.

    Raises
    ------
    SwflowError
        If the workload is not what `swflow.jobs.table.check_workload` demands, or does not fit into the memory.
    """
    name, resources = workload.name, _resources_at(workload, scheduler)
    moldable = scheduler.shapes != "requested"
    sizes = _sizes(scheduler, workload.machine.processors)
    times_away = _times_away(scheduler.unavailable, workload.header.seconds_since_start)
    table = without_status(workload.jobs, scheduler.without_status, name)
    # Requests may be wider than the machine, as long as a shape fits.
    widest = MOST_PROCESSORS if moldable else max(sizes)
    table = check_workload(eligible_jobs(table, name), widest, name, if_too_wide=_if_too_wide(scheduler, widest))
    require_supported(table, scheduler.unsupported, name)
    arrays, cancelled_after = array_limits(table, name), cancellations_of(table, name)
    dependencies = dependencies_of(table, scheduler.feedback, name)
    demands = demands_of(table, list(resources[0]), (*VARIABLES, *PARAMETERS, *FUNCTIONS), name)
    if scheduler.shares:
        require_demands(table, workload.machine.capacities, name)
    jobs = _jobs(table, scheduler, demands)
    _require_memory(name, sum(sizes), scheduler)
    shapes = _shapes(name, table, scheduler, max(sizes)) if moldable else None
    sharing = _shared(workload, table, scheduler)
    names = Names(workload)
    require_some(names, scheduler.to_dict())
    ownership = ownership_of(names, table, scheduler, arrays, jobs.planned)
    nodes, preempting = nodes_of(names, table, scheduler), preempting_of(names, table, scheduler)
    jobs = replace(jobs, clusters=ownership.clusters)
    named = _mentioned_resources(scheduler, resources[0])
    # Static keys may depend on the shapes that are chosen at the submission, or on the requests.
    columns = job_columns(jobs, shapes if scheduler.shapes == "submit" else None, ownership.owners, named.values())
    late = {"estimate"} if scheduler.prediction == "system" else set[str]()
    if dependencies is not None or preempting is not None:  # submit times depend on the schedule
        late.add("submit_time")
    where = "clusters: " if scheduler.clusters else ""
    orders = resolved_orders(ownership.orders, where, columns, tuple(named), frozenset(late))
    away = [window["processors"] for window in scheduler.unavailable] if nodes is None else nodes.processors_away
    windows = tuple((*times, processors) for times, processors in zip(times_away, away, strict=True))
    machines = [
        Machine(size, *of_queue, windows, limits, counted, bounds)
        for size, of_queue, (limits, bounds), counted in zip(sizes, orders, ownership.limits, resources, strict=True)
    ]
    return Problem(
        jobs, scheduler, tuple(machines), shapes, sharing, ownership.owners, dependencies, name, table,
        cancelled_after, columns, nodes, preempting, workload.header.start or 0,
    )  # fmt: skip


def _sizes(scheduler: Scheduler, processors: int) -> list[int]:
    """Return the processors of each machine; a workload has one with ``processors``."""
    if scheduler.nodes:
        return [processors_on(scheduler.nodes)]
    return [cluster["processors"] for cluster in scheduler.clusters] or [processors]


def _if_too_wide(scheduler: Scheduler, widest: int) -> str:
    """Return what to do about jobs that are wider than all machines."""
    where = "clusters" if scheduler.clusters else "nodes"
    if not (scheduler.clusters or scheduler.nodes):
        return FOR_WIDE_JOBS
    return f'give larger {where}, or leave them out with swflow select --where "processors <= {widest}"'


def _resources_at(workload: Workload, scheduler: Scheduler) -> list[dict[str, int]]:
    """Return the resources of each machine; those that only other clusters have are 0."""
    given = scheduler.resources or {}
    for name in given:
        if name not in workload.jobs.columns:
            raise SwflowError(f"resources: {workload.name} has no column {name}{suggest(name, workload.jobs.columns)}")
    own = {name: units for name, units in {**workload.machine.resources, **given}.items() if units is not None}
    if not (scheduler.clusters or scheduler.nodes):
        return [{name: own[name] for name in sorted(own)}]
    stated: list[Mapping[str, int]] = [cluster.get("resources", {}) for cluster in scheduler.clusters]
    if scheduler.nodes:
        stated = [units_on(scheduler.nodes)]
    names = sorted(set().union(*stated))
    if lost := [name for name in own if name not in names]:
        option, one = ("nodes", "group of nodes") if scheduler.nodes else ("clusters", "cluster")
        raise SwflowError(
            f"{option}: the machine of {workload.name} has resources ({', '.join(lost)}); give each {one} its "
            f"resources: {{{lost[0]}: …}}, or leave them out: resources: {{{lost[0]}: null}}"
        )
    return [{name: one.get(name, 0) for name in names} for one in stated]


def times_of(table: pl.DataFrame, scheduler: Scheduler, job: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return run times, at most the estimates if jobs are killed at them, and planned run times, at least 1 s.

    With prediction ``system`` the latter are the upper bounds of predictions. Rows are jobs, unless ``job`` has the job
    of each row.
    """
    run, estimate = table["run_time"].to_numpy(), table["estimate"].to_numpy()
    if scheduler.estimates == "kill":
        run = np.minimum(run, estimate)
    planned = run if scheduler.prediction == "perfect" else np.maximum(run, estimate)
    if scheduler.prediction == "double":
        planned = 2 * planned
    planned = np.maximum(planned, 1.0)
    if scheduler.prediction == "distinct":
        job = np.arange(planned.size) if job is None else job
        planned = planned + job / 2.0 ** int(job.max(initial=0)).bit_length()  # exact in binary, less than a second
    return run, planned


def _jobs(table: pl.DataFrame, scheduler: Scheduler, demands: np.ndarray | None) -> Jobs:
    """Return the jobs, whose clusters are not known yet."""
    run, planned = times_of(table, scheduler)
    # With shared run times the engine decides which jobs are killed.
    run, submit = (
        table["run_time"].to_numpy() if scheduler.runtime == "shared" else run,
        table["submit_time"].to_numpy(),
    )
    if scheduler.end_delay:  # the outcomes are without it
        run = run + scheduler.end_delay
        if scheduler.prediction == "system":
            planned = planned + scheduler.end_delay  # only the plans of backfill slurm may be too short
    return Jobs(
        submit,
        run,
        planned,
        table["processors"].to_numpy(),
        _attributes(table) if _needs_attributes(scheduler) else None,
        _users(table) if scheduler.prediction == "system" else None,
        demands=demands,
    )


def _mentioned_resources(scheduler: Scheduler, resources: Iterable[str]) -> dict[str, int]:
    """Return the resources that orders mention, to their columns of the demands."""
    mentions = set[str]().union(*map(mentioned, scheduler.orders))
    named = {name: column for column, name in enumerate(resources) if name in mentions}
    if len(named) > MOST_NAMED:
        raise SwflowError(f"order: formulas may mention {MOST_NAMED} resources, not {len(named)}: {', '.join(named)}")
    return named


def _needs_attributes(scheduler: Scheduler) -> bool:
    """Return whether an order may depend on a job's attributes; of Python functions it is unknown."""
    return any(
        not isinstance(order, str) or is_own(order) or not mentioned(order) <= PLAIN for order in scheduler.orders
    )


def _users(table: pl.DataFrame) -> np.ndarray:
    """Return the users; each unknown one is a user of its own."""
    if "user_id" not in table.columns:
        return -1 - np.arange(table.height)
    return table.select(pl.coalesce("user_id", -1 - pl.int_range(pl.len()))).to_series().to_numpy()


def _attributes(table: pl.DataFrame) -> np.ndarray:
    """Return the attributes of `Jobs`."""
    columns = [pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in ATTRIBUTES]
    known = table.select(columns).cast(pl.Float64).with_columns(pl.col("requested_nodes").fill_null(1))
    return known.to_numpy(order="c")


def _times_away(unavailable: Iterable[Unavailable], since_start: Callable[[date], float]) -> list[tuple[float, float]]:
    """Return when windows begin and end, in seconds from the log's start; one without an end lasts for ever."""

    def seconds(value: Any, key: str) -> float:
        if isinstance(value, int | float):
            return float(value)
        return since_start(day_or_moment(value, f"unavailable: {key}"))

    times = []
    for window in unavailable:
        begin = seconds(window["from"], "from")
        until = math.inf if window["until"] is None else seconds(window["until"], "until")
        require_window(begin, until, window)
        times.append((begin, until))
    return times


def _shapes(name: str, jobs: pl.DataFrame, scheduler: Scheduler, widest: int) -> Shapes:
    """
    Return the shapes that may be chosen.

    A job without shapes has the requested one. Shapes that are wider than the machine cannot be chosen.
    """
    if "shapes" not in jobs.columns:
        raise SwflowError(
            f"shapes: {scheduler.shapes}: {name} has no column shapes; "
            f"make one with: swflow moldable {name}.parquet -o {name}+moldable.parquet"
        )
    requested = pl.concat_list(pl.struct("processors", "run_time"))
    shape = pl.when(pl.col("shapes").list.len() > 0).then("shapes").otherwise(requested)
    longer = pl.when(pl.col("of_request") > 0).then(pl.col("run_time") / pl.col("of_request")).otherwise(1.0)
    table = (
        jobs.select(shape.alias("shape"), "estimate", job=pl.int_range(pl.len()), of_request="run_time")
        .explode("shape")
        .unnest("shape")
        .with_columns(
            pl.col("processors").cast(pl.Int64),
            pl.col("run_time").cast(pl.Float64),
            estimate=pl.col("estimate") * longer,
        )
    )
    _require_known_shapes(name, jobs, table)
    table = table.filter(pl.col("processors") <= widest)
    if scheduler.shape_choice == "efficient":
        area = pl.col("processors") * pl.col("run_time")
        table = table.filter(area.min().over("job") >= scheduler.efficiency * area)
    missing = jobs.height - table["job"].n_unique()
    if missing:
        larger = "larger clusters" if scheduler.clusters else "a larger machine (--processors)"
        raise SwflowError(
            f"{name}: {missing:,} jobs have no shape of at most {widest:,} processors; "
            f"give {larger} or make their shapes anew with: swflow moldable"
        )
    table = table.sort("job", "processors", maintain_order=True)
    first = np.append(0, np.cumsum(np.bincount(table["job"].to_numpy(), minlength=jobs.height)))
    return Shapes(first, *times_of(table, scheduler, table["job"].to_numpy()), table["processors"].to_numpy())


def _require_known_shapes(name: str, jobs: pl.DataFrame, table: pl.DataFrame) -> None:
    """Require that shapes can be simulated; those wider than the machine are left out later."""
    unknown = table.filter(pl.any_horizontal(pl.col("processors", "run_time").is_null()))
    if unknown.height:
        job = jobs["job_id"][unknown["job"][0]]
        raise SwflowError(
            f"{name}: job {job} has a shape without processors or run time; make it with: swflow moldable"
        )
    ids = jobs["job_id"].to_numpy()[table["job"].to_numpy()]
    lengths = {"run_time": table["run_time"].to_numpy(), "estimate": table["estimate"].to_numpy()}
    check_arrays(lengths, table["processors"].to_numpy(), MOST_PROCESSORS, name=f"{name}: shapes", ids=ids)


def _shared(workload: Workload, jobs: pl.DataFrame, scheduler: Scheduler) -> Resources | None:
    """Return the resources of a machine that jobs demand; None if the scheduler does not consider them."""
    if not scheduler.shares:
        return None
    machine = workload.machine
    names = [name for name in machine.capacities if name in jobs.columns]
    if not names:
        raise SwflowError(
            f"{workload.name}: nothing is shared: its machine has capacities for "
            f"{', '.join(machine.capacities) or 'nothing'}; give it some with a step of kind machine, and the jobs a "
            "demand for them with a step of kind memory"
        )
    return Resources(
        machine.processors_per_node,
        jobs.select(pl.col(names).cast(pl.Float64).fill_null(0.0)).to_numpy(),
        np.array([machine.capacities[name] for name in names]),
        compile_penalty(scheduler.penalty),
        slows=scheduler.runtime == "shared",
        allowed=jobs["estimate"].to_numpy() if scheduler.estimates == "kill" else None,
        limit=scheduler.sharing_limit,
    )


#: Bytes that a numbered processor takes at least: in lists of ranges and in sets; in the list of the idle ones; and for
#: the jobs with which it shares its node.
_BYTES, _BYTES_IDLE, _BYTES_SHARED = 12, 24, 48


def _require_memory(name: str, processors: int, scheduler: Scheduler) -> None:
    """Raise an error if a machine has more numbered processors than fit into the memory."""
    if not scheduler.is_numbered:
        return
    idle = _BYTES_IDLE if "longest-idle" in scheduler.allocations else 0
    needed = processors * (_BYTES + idle + (_BYTES_SHARED if scheduler.shares else 0))
    free = free_memory()
    if free is not None and needed > free:
        raise SwflowError(
            f"{name}: allocation {', '.join(sorted(scheduler.allocations))}: {processors:,} numbered processors "
            f"take at least {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; use allocation count, or a "
            "smaller machine"
        )
