"""A simulation as plain data: a `Problem` has everything that determines a schedule, and is valid."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from swflow.compiled.kernel import sealed
from swflow.errors import SwflowError, UnsupportedError
from swflow.jobs.dependencies import Dependencies
from swflow.jobs.machine import MOST_PROCESSORS
from swflow.jobs.table import check_arrays
from swflow.scheduling.machine.resources import Resources, longest_stretch
from swflow.scheduling.option_kinds import LATEST
from swflow.scheduling.orders.keys import ARRIVAL, JobColumns, Order, job_columns
from swflow.scheduling.orders.ownership import SELECT
from swflow.scheduling.orders.vocabulary import MOST_NAMED
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.slurm.problem import Nodes, Preempting, most_processors
from swflow.scheduling.state.accounts import Owners
from swflow.scheduling.state.items import ATTRIBUTES, Items, Jobs, Shapes

#: A window without processors: from, until (infinity: for ever), processors. Times in seconds.
Window = tuple[float, float, int]


@dataclass(frozen=True)
class Machine:
    """
    A machine of a problem. Its other options are those of the policy's queue with the same index.

    ``limits`` are int64 of shape (accounts, 3 or more), the maximum of running jobs, processors, and processor-minutes
    that are left to running jobs: of all jobs together (unused), then of the accounts in the order of
    `swflow.scheduling.state.accounts.Owners`, then others. ``bounds`` are the rows of the limits that apply to each
    job, by default those of its accounts; -1: none. A job beyond a limit is skipped as if it were not queued.
    """

    processors: int
    order: Order = ARRIVAL  # the order of the queue; with ``shapes: submit`` the keys of shapes
    backfill_order: Order = ARRIVAL  # the order in which jobs are tried for backfilling
    windows: tuple[Window, ...] = ()  # when the processors with the highest numbers are unavailable
    limits: np.ndarray | None = None
    resources: Mapping[str, int] = field(default_factory=dict)  # units; the same names in the same order everywhere
    bounds: np.ndarray | None = None  # int64 (jobs, accounts of a job)


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
    columns: JobColumns | None = None  # the data of its items; None: only those of the jobs
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
    def slots(self) -> np.ndarray:
        """The columns of the demands that formulas receive, as `JobColumns` has them."""
        return np.full(MOST_NAMED, -1) if self.columns is None else self.columns.slots

    @cached_property
    def items(self) -> Items:
        """What may be queued."""
        columns = self.columns or job_columns(self.jobs, self.shapes if self.policy.shapes == "submit" else None)
        items = columns.items
        if items.planned.min(initial=1.0) < 1.0:
            items = items._replace(planned=np.maximum(items.planned, 1.0))
        return Items(*map(sealed, items))


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
    if jobs.attributes is not None and jobs.attributes.shape != (jobs.submit.size, len(ATTRIBUTES)):
        raise SwflowError(f"{name}: attributes needs a row per job with {', '.join(ATTRIBUTES)}")
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
                raise SwflowError(f"unavailable: the window from {begin:.15g} until {until:.15g} is empty")
            if not (abs(begin) <= LATEST and (until <= LATEST or until == math.inf)):
                raise SwflowError(
                    f"unavailable: from {begin:.15g} until {until:.15g} s; expected times from {-LATEST:g} to "
                    f"{LATEST:g} s"
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
    if "resources" in problem.policy.unsupported:
        raise UnsupportedError(problem.policy.unsupported["resources"])
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
