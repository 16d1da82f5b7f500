"""A simulation as plain data: `prepare` turns a workload and a scheduler into a validated `Problem`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError, UnsupportedError, suggest
from swflow.jobs.busy import sealed
from swflow.jobs.machine import MOST_PROCESSORS, free_memory
from swflow.jobs.table import Workload, check_arrays, check_workload, without_status
from swflow.log.swf import header_number
from swflow.scheduling.eligibility import (
    array_limits,
    cancellations_of,
    demands_of,
    dependencies_of,
    eligible_jobs,
    require_demands,
    require_supported,
)
from swflow.scheduling.machine.resources import Resources, longest_stretch
from swflow.scheduling.options import LATEST, OPTIONS, Unavailable, require_window
from swflow.scheduling.orders.fair_share import SELECT, Ownership, ownership_of
from swflow.scheduling.orders.formula import compile_penalty
from swflow.scheduling.orders.keys import ARRIVAL, JobColumns, Order, mentioned, resolved_order
from swflow.scheduling.orders.vocabulary import MOST_NAMED, PLAIN
from swflow.scheduling.plugins.source import is_own
from swflow.scheduling.refusals import refusals
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.slurm.accounts import SLURM_ACCOUNTING, counts_as_slurm
from swflow.scheduling.slurm.nodes import Nodes, most_processors, nodes_of, processors_on, units_on
from swflow.scheduling.slurm.preempting import Preempting, preempting_of
from swflow.scheduling.state.accounts import ACCOUNTING, Accounting, Owners
from swflow.scheduling.state.items import Dependencies, Items

#: A window without processors: from, until (infinity: for ever), processors. Times in seconds.
Window = tuple[float, float, int]


@dataclass(frozen=True)
class Jobs:
    """The jobs of a problem, one element each; of moldable jobs their requests. Times are in seconds."""

    submit: np.ndarray  # float64, ascending
    run: np.ndarray  # float64
    planned: np.ndarray  # float64: planned run times, not below ``run`` and raised to 1
    processors: np.ndarray  # int64, at most the machine's
    # float64 (jobs, 6): user, group, queue, executable, job id (NaN: unknown), and requested nodes.
    attributes: np.ndarray | None = None
    users: np.ndarray | None = None  # int64: the user of each job, for predictions
    clusters: np.ndarray | None = None  # int64: the cluster of each job's partition, from 0
    demands: np.ndarray | None = None  # int64 (jobs, resources): the units that a job occupies while it runs


@dataclass(frozen=True)
class Shapes:
    """
    The shapes of moldable jobs: the numbers of processors on which they can run.

    The shapes of job j are those from ``first[j]`` to before ``first[j + 1]``, at least one, by ascending processors.
    """

    first: np.ndarray  # int64
    run: np.ndarray  # float64, seconds
    planned: np.ndarray  # float64: planned run times, at least 1 s and not below ``run``
    processors: np.ndarray  # int64, 1 to the machine's


@dataclass(frozen=True)
class Machine:
    """
    A machine of a problem. Its other options are those of the policy's queue with the same index.

    ``limits`` are int64 of shape (accounts, 3), the maximum of running jobs, processors, and processor-minutes that are
    left to running jobs: of all jobs together (unused), then of the accounts in the order of
    `swflow.scheduling.state.accounts.Owners`. A job beyond a limit is skipped as if it were not queued.
    """

    processors: int
    order: Order = ARRIVAL  # the order of the queue; with ``shapes: submit`` the keys of shapes
    backfill_order: Order = ARRIVAL  # the order in which jobs are tried for backfilling
    windows: tuple[Window, ...] = ()  # when the processors with the highest numbers are unavailable
    limits: np.ndarray | None = None
    resources: Mapping[str, int] = field(default_factory=dict)  # units; the same names in the same order everywhere


@dataclass(frozen=True)
class Problem:
    """
    Everything that determines a schedule. Construction validates it.

    Raises
    ------
    SwflowError
        If an array cannot be simulated, or the parts do not fit together.
    """

    jobs: Jobs
    policy: Scheduler
    machines: tuple[Machine, ...]  # one, or one per cluster
    shapes: Shapes | None = None  # if the policy chooses shapes
    sharing: Resources | None = None  # if the policy considers the resources that the processes of a node share
    accounts: Owners | None = None  # if a limit or an order needs them
    dependencies: Dependencies | None = None
    name: str = "jobs"  # the name of the workload, for errors
    table: pl.DataFrame = field(default_factory=pl.DataFrame)  # the jobs; empty if there are only arrays
    cancelled_after: np.ndarray | None = None  # seconds from the submission of each job; infinity: not cancelled
    slots: np.ndarray = field(default_factory=lambda: np.full(MOST_NAMED, -1))  # see `JobColumns`
    nodes: Nodes | None = None  # if the policy places jobs on nodes
    preempting: Preempting | None = None  # if jobs may preempt others
    # The start of the log in seconds from 1970 on, from which slots of backfill slurm count; 0 if unknown.
    epoch: int = 0

    def __post_init__(self) -> None:
        _check_arrays(self)
        _check_machines(self)
        if any(machine.resources for machine in self.machines) or self.jobs.demands is not None:
            _check_demands(self)

    @property
    def units(self) -> dict[str, int]:
        """The units of each resource besides processors, of all machines together."""
        return {name: sum(machine.resources[name] for machine in self.machines) for name in self.machines[0].resources}

    def id_of(self, job: int) -> int:
        """Return the number of a job in the log, or its row if there are only arrays."""
        return int(self.table["job_id"][int(job)]) if self.table.height else int(job)

    @property
    def accounting(self) -> Accounting:
        """How usage and limits are counted."""
        return SLURM_ACCOUNTING if self.policy.is_slurm or counts_as_slurm(self) else ACCOUNTING

    @cached_property
    def items(self) -> Items:
        """What may be queued."""
        items = _items(self.jobs, self.shapes if self.policy.shapes == "submit" else None)
        if items.planned.min(initial=1.0) < 1.0:
            items = items._replace(planned=np.maximum(items.planned, 1.0))
        return Items(*map(sealed, items))


def _items(jobs: Jobs, shapes: Shapes | None) -> Items:
    """Return the jobs, or their shapes if these are chosen at submission."""
    none = np.empty(0, np.int64)
    items = Items(jobs.submit, jobs.run, jobs.planned, jobs.processors, none, none)
    if shapes is not None:
        job = np.repeat(np.arange(jobs.submit.size), np.diff(shapes.first))
        items = Items(jobs.submit[job], shapes.run, shapes.planned, shapes.processors, shapes.first, job)
    return items if jobs.demands is None else items._replace(demands=items.of_jobs(jobs.demands))


# -- validation of a problem


def _check_arrays(problem: Problem) -> None:
    jobs, shapes = problem.jobs, problem.shapes
    name = "dispatch" if len(problem.machines) > 1 and problem.name == "jobs" else problem.name
    widest = max(machine.processors for machine in problem.machines)
    stretch = 1.0
    if problem.sharing is not None:
        sizes = {machine.processors for machine in problem.machines}
        stretch = max(longest_stretch(problem.sharing, jobs.submit.size, size) for size in sizes)
    times = {"submit_time": jobs.submit, "run_time": jobs.run, "planned_run_time": jobs.planned}
    others = {"users": jobs.users, "attributes": jobs.attributes}
    check_arrays(
        times, jobs.processors, MOST_PROCESSORS if shapes else widest, name=name, others=others, stretch=stretch
    )
    if (problem.policy.shapes == "requested") != (shapes is None):
        raise SwflowError(f"{name}: shapes are needed if, and only if, the policy chooses them")
    if shapes is not None:
        lengths = {"run_time": shapes.run, "planned_run_time": shapes.planned}
        check_arrays(lengths, shapes.processors, widest, name="shapes", stretch=stretch)
        first, count = shapes.first, jobs.submit.size
        if first.shape != (count + 1,) or first[0] != 0 or first[-1] != shapes.run.size or (np.diff(first) < 1).any():
            raise SwflowError(f"shapes: first must lead to the shapes of {count:,} jobs, at least one each")


def _check_machines(problem: Problem) -> None:
    policy, jobs, machines = problem.policy, problem.jobs, problem.machines
    if len(machines) != len(policy.queues):
        raise SwflowError(f"clusters: {len(machines)} machines for {len(policy.queues)} clusters; give one each")
    if policy.shares and problem.sharing is None:
        raise SwflowError("allocation: the resources that the processes of a node share are needed")
    if problem.sharing is not None and problem.sharing.slows != (policy.runtime == "shared"):
        raise SwflowError("runtime: shared resources prolong jobs if, and only if, run times are shared")
    if policy.prediction == "system" and jobs.users is None:
        raise SwflowError("prediction: the users of the jobs are needed")
    if problem.accounts is None and any(machine.limits is not None for machine in machines):
        raise SwflowError("limits: job ownership is needed")
    for machine in machines:
        for begin, until, away in machine.windows:
            if not until > begin:
                raise SwflowError(f"unavailable: the window from {begin:g} until {until:g} is empty")
            if not (abs(begin) <= LATEST and (until <= LATEST or until == math.inf)):
                raise SwflowError(
                    f"unavailable: from {begin:g} until {until:g} s; expected times from {-LATEST:g} to {LATEST:g} s"
                )
            if not 1 <= away <= machine.processors:
                raise SwflowError(f"unavailable: {away:,} processors are not 1 to {machine.processors:,}")
    if policy.dispatch == "partition" and policy.clusters:
        _check_partitions(problem)
    if policy.nodes:
        _check_nodes(problem)


def _check_nodes(problem: Problem) -> None:
    """Raise an error unless every job fits on the nodes of its partition."""
    jobs, nodes = problem.jobs, problem.nodes
    if nodes is None or nodes.allowed.shape != jobs.processors.shape:
        raise SwflowError("nodes: the nodes that every job may use are needed")
    if nodes.sizes.sum() != problem.machines[0].processors:
        raise SwflowError(
            f"nodes: {nodes.sizes.sum():,} processors on a machine of {problem.machines[0].processors:,}; give all"
        )
    sizes = most_processors(nodes, jobs.processors, jobs.demands)
    wide = np.flatnonzero(jobs.processors > sizes)
    if wide.size:
        job = int(wide[0])
        needs = _units_in_words(problem, job)
        raise SwflowError(
            f"nodes: {wide.size:,} jobs are wider than their partition's nodes, the first is job {problem.id_of(job)} "
            f"with {jobs.processors[job]:,} of {sizes[job]:,} processors{f' with {needs}' * bool(needs)}"
            f"{f' on {nodes.requested[job]:,} nodes' * bool(nodes.requested[job] > 1)} of "
            f"{nodes.names[nodes.allowed[job]]}; give it more, or leave them out {SELECT}"
        )


def _units_in_words(problem: Problem, job: int) -> str:
    """Return what a job needs besides processors."""
    demands, names = problem.jobs.demands, problem.machines[0].resources
    needed = [] if demands is None else zip(names, demands[job], strict=True)
    return ", ".join(f"{units:,} {name}" for name, units in needed if units)


def _check_partitions(problem: Problem) -> None:
    """Raise an error unless every job has a cluster that is wide enough for it."""
    jobs, sizes = problem.jobs, np.array([machine.processors for machine in problem.machines])
    if jobs.clusters is None or jobs.clusters.shape != jobs.processors.shape:
        raise SwflowError("dispatch: partition: the cluster of every job is needed")
    if jobs.clusters.size and not (jobs.clusters.min() >= 0 and jobs.clusters.max() < sizes.size):
        raise SwflowError(f"dispatch: partition: clusters are numbered 0 to {sizes.size - 1}")
    wide = np.flatnonzero(jobs.processors > sizes[jobs.clusters])
    if wide.size:
        job, cluster = wide[0], jobs.clusters[wide[0]]
        raise SwflowError(
            f"clusters: {wide.size:,} jobs are wider than their partition's cluster, the first is job "
            f"{problem.id_of(job)} with {jobs.processors[job]:,} of {sizes[cluster]:,} processors of "
            f"{', '.join(problem.policy.clusters[cluster]['partition'])}; give it more, or leave them out {SELECT}"
        )


def _check_demands(problem: Problem) -> None:
    """Raise an error unless every job finds all the resources that it needs on one machine."""
    for refusal in refusals(problem.policy, ["resources"]):
        raise UnsupportedError(refusal.error)
    jobs, machines, name = problem.jobs, problem.machines, problem.name
    names = list(machines[0].resources)
    demands, shape = jobs.demands, (jobs.submit.size, len(names))
    if any(list(machine.resources) != names for machine in machines):
        raise SwflowError("clusters: resources: all machines need the same names, in the same order; give 0 units")
    if demands is None or demands.shape != shape or demands.dtype.kind not in "iu":
        raise SwflowError(f"{name}: demands: expected whole numbers of shape {shape}, one column per resource")
    capacities = np.array([list(machine.resources.values()) for machine in machines], np.int64)
    fits = np.zeros(jobs.submit.size, bool)
    for index, machine in enumerate(machines):
        there = (demands <= capacities[index]).all(axis=1)
        if problem.shapes is None:
            there &= jobs.processors <= machine.processors
        if jobs.clusters is not None:
            there &= jobs.clusters == index
        fits |= there
    bad = np.flatnonzero(~fits | (demands < 0).any(axis=1))
    if not bad.size:
        return
    job = int(bad[0])
    said = f"{name}: job {problem.id_of(job)}"
    if (demands[job] < 0).any():
        resource = int(np.argmax(demands[job] < 0))
        raise SwflowError(f"{said}: {demands[job, resource]:,} {names[resource]}, below 0; correct it")
    most = capacities.max(axis=0) if jobs.clusters is None else capacities[jobs.clusters[job]]
    if (demands[job] > most).any():
        resource = int(np.argmax(demands[job] > most))
        raise SwflowError(
            f"{said} needs {demands[job, resource]:,} of {most[resource]:,} {names[resource]}; give the machine more "
            "of them, or leave the job out"
        )
    needs = _units_in_words(problem, job)
    raise SwflowError(f"{said} needs {jobs.processors[job]:,} processors and {needs}; no cluster has all of them")


# -- from a workload and a scheduler


#: The options that need no columns besides those that every workload has, or that `columns_needed` names.
_PLAIN_OPTIONS = frozenset({
    "order", "backfill", "reservations", "backfill_order", "estimates", "prediction", "allocation", "places",
    "event_order", "unavailable", "without_status",
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
    sizes = _sizes(workload, scheduler)
    table = without_status(workload.jobs, scheduler.without_status, name)
    # Requests may be wider than the machine, as long as a shape fits.
    table = check_workload(eligible_jobs(table, name), MOST_PROCESSORS if moldable else max(sizes), name)
    require_supported(table, scheduler, name)
    arrays, cancelled_after = array_limits(table, name), cancellations_of(table, name)
    dependencies = dependencies_of(table, scheduler.feedback, name)
    demands = demands_of(table, list(resources[0]), name)
    if scheduler.shares:
        require_demands(table, workload.machine.capacities, name)
    jobs = _jobs(table, scheduler, demands)
    ownership = ownership_of(workload, table, scheduler, arrays, jobs.planned)
    jobs = replace(jobs, clusters=ownership.clusters)
    _require_memory(name, sum(sizes), scheduler)
    shapes = _shapes(name, table, scheduler, max(sizes)) if moldable else None
    sharing = _shared(workload, table, scheduler)
    named = _mentioned_resources(scheduler, resources[0])
    columns = _columns(jobs, shapes if scheduler.shapes == "submit" else None, ownership.owners, named)
    moves = dependencies is not None or scheduler.preemption is not None
    orders = _orders(scheduler, ownership, columns, tuple(named), moves)
    nodes = nodes_of(workload, table, scheduler)
    windows = _windows_in_seconds(scheduler.unavailable, workload.header, nodes)
    machines = [
        Machine(size, *of_queue, windows, limits, counted)
        for size, of_queue, limits, counted in zip(sizes, orders, ownership.limits, resources, strict=True)
    ]
    return Problem(
        jobs, scheduler, tuple(machines), shapes, sharing, ownership.owners, dependencies, name, table,
        cancelled_after, columns.slots, nodes, preempting_of(workload, table, scheduler),
        header_number(workload.header, "UnixStartTime") or 0,
    )  # fmt: skip


def _sizes(workload: Workload, scheduler: Scheduler) -> list[int]:
    """Return the processors of each machine."""
    if scheduler.nodes:
        return [processors_on(scheduler.nodes)]
    return [cluster["processors"] for cluster in scheduler.clusters] or [workload.machine.processors]


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
    if own and not names:
        option, one = ("nodes", "group of nodes") if scheduler.nodes else ("clusters", "cluster")
        raise SwflowError(
            f"{option}: the machine of {workload.name} has resources ({', '.join(own)}); give each {one} its "
            f"resources: {{{next(iter(own))}: …}}"
        )
    return [{name: one.get(name, 0) for name in names} for one in stated]


def _times(table: pl.DataFrame, scheduler: Scheduler) -> tuple[np.ndarray, np.ndarray]:
    """
    Return run times, at most the estimates if jobs are killed at them, and planned run times, at least 1 s.

    With prediction ``system`` the latter are the upper bounds of predictions.
    """
    run, estimate = table["run_time"].to_numpy(), table["estimate"].to_numpy()
    if scheduler.estimates == "kill":
        run = np.minimum(run, estimate)
    planned = run if scheduler.prediction == "perfect" else np.maximum(run, estimate)
    if scheduler.prediction == "double":
        planned = 2 * planned
    return run, np.maximum(planned, 1.0)


def _jobs(table: pl.DataFrame, scheduler: Scheduler, demands: np.ndarray | None) -> Jobs:
    """Return the jobs, whose clusters are not known yet."""
    run, planned = _times(table, scheduler)
    # With shared run times the engine decides which jobs are killed.
    run, submit = (
        table["run_time"].to_numpy() if scheduler.runtime == "shared" else run,
        table["submit_time"].to_numpy(),
    )
    if scheduler.end_delay:  # the outcomes are without it
        run = run + scheduler.end_delay
        if scheduler.prediction == "system" or not scheduler.is_slurm:
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


def _orders(
    scheduler: Scheduler, ownership: Ownership, columns: JobColumns, resources: tuple[str, ...], moves: bool
) -> list[tuple[Order, Order]]:
    """Return the orders of each queue; ``moves``: submit times depend on the schedule."""
    late = frozenset({"estimate"} if scheduler.prediction == "system" else ())
    late |= {"submit_time"} if moves else set()
    where = "clusters: " if scheduler.clusters else ""
    known: dict[Any, Order] = {}  # equal orders of several machines are resolved once

    def resolve(order: Any, option: str) -> Order:
        if order not in known:
            known[order] = resolved_order(order, where + option, columns, resources, late)
        return known[order]

    return [(resolve(order, "order"), resolve(second, "backfill_order")) for order, second in ownership.orders]


def _columns(jobs: Jobs, shapes: Shapes | None, owners: Owners | None, resources: Mapping[str, int]) -> JobColumns:
    """Return what static keys may depend on: the shapes that are chosen at the submission, or the requests."""
    items = _items(jobs, shapes)
    return JobColumns(
        items,
        np.full((1, 6), np.nan) if jobs.attributes is None else items.of_jobs(jobs.attributes),
        np.full((1, 3), np.nan) if owners is None else items.of_jobs(owners.variables),
        np.array([*resources.values(), *[-1] * (MOST_NAMED - len(resources))]),
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
    names = ("user_id", "group_id", "queue_id", "executable_id", "job_id", "requested_nodes")
    columns = [pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in names]
    known = table.select(columns).cast(pl.Float64).with_columns(pl.col("requested_nodes").fill_null(1))
    return known.to_numpy(order="c")


def _windows_in_seconds(
    unavailable: Iterable[Unavailable], header: Mapping[str, list[str]], nodes: Nodes | None
) -> tuple[Window, ...]:
    """Return the windows in seconds from the log's start; one without an end lasts for ever."""
    from swflow.log.swf import seconds_since_start
    from swflow.values import day_or_moment

    def seconds(value: Any, key: str) -> float:
        if isinstance(value, int | float):
            return float(value)
        return seconds_since_start(header, day_or_moment(value, f"unavailable: {key}"))

    windows = []
    for number, window in enumerate(unavailable):
        begin = seconds(window["from"], "from")
        until = math.inf if window["until"] is None else seconds(window["until"], "until")
        require_window(begin, until, window)
        away = window["processors"] if nodes is None else int(nodes.sizes[nodes.away[number]].sum())
        windows.append((begin, until, away))
    return tuple(windows)


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
        raise SwflowError(
            f"{name}: {missing:,} jobs have no shape of at most {widest:,} processors; "
            "give a larger machine (--processors) or make their shapes anew with: swflow moldable"
        )
    table = table.sort("job", "processors", maintain_order=True)
    first = np.append(0, np.cumsum(np.bincount(table["job"].to_numpy(), minlength=jobs.height)))
    return Shapes(first, *_times(table, scheduler), table["processors"].to_numpy())


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
    if "count" in scheduler.allocations:
        return
    idle = _BYTES_IDLE if "longest-idle" in scheduler.allocations else 0
    needed = processors * (_BYTES + idle + (_BYTES_SHARED if scheduler.shares else 0))
    free = free_memory()
    if free is not None and needed > free:
        raise SwflowError(
            f"{name}: allocation {scheduler.allocation}: {processors:,} numbered processors "
            f"take at least {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; use allocation count, or a "
            "smaller machine"
        )
