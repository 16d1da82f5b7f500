"""Why jobs wait: the wait of each job of a schedule, divided by its reasons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import polars as pl

from swflow.analysis.wait_parts import REASONS
from swflow.errors import SwflowError, UnsupportedError
from swflow.jobs.table import Workload
from swflow.scheduling.prepare import prepare
from swflow.scheduling.problem import Problem, Window
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.slurm.problem import Nodes
from swflow.scheduling.state.accounts import rows_of
from swflow.scheduling.waits.divide import Waiting, divide

#: The allocations for which processors have numbers, and the one whose jobs need consecutive ones.
_NUMBERED = frozenset({"first-fit", "longest-idle", "first-contiguous"})
_CONTIGUOUS = "first-contiguous"


@dataclass(frozen=True)
class Reasons:
    """
    The waits of a schedule, divided by reasons.

    ``table`` has one row per job: ``job_id`` and `REASONS`, seconds. The `PARTS` add up to the time from submission to
    start; `OF_ROOM` are parts of ``room``. ``unknown`` maps reasons that cannot be computed for this schedule to the
    cause. They are null in the table, and their seconds are in a later part, mostly in ``order``.
    """

    table: pl.DataFrame
    unknown: Mapping[str, str]


def wait_reasons(
    workload: Workload, outcomes: pl.DataFrame, conditions: Scheduler | None = None, *, simulated: bool = True
) -> Reasons:
    """
    Divide the wait of each job in outcomes of a workload by its reasons.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    outcomes : polars.DataFrame
        A schedule, as `swflow.scheduling.simulate.simulate` returns it: ``job_id``, ``submit_time`` (when the job
        became eligible), ``start_time``, ``run_time`` and ``processors``; ``places`` and ``centre`` if they matter.
    conditions : Scheduler, optional
        The scheduler whose limits, windows, clusters, resources and allocation the schedule obeys; default, and with
        ``order="log"``: the machine of the workload, without knowledge of these.
    simulated : bool
        Whether the schedule is one of swflow with that scheduler.

    Returns
    -------
    Reasons
        The rows are in the order of the outcomes.

    Raises
    ------
    SwflowError
        If the workload is not one that the scheduler can simulate, or jobs were preempted.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> from swflow.scheduling.simulate import simulate
    >>> jobs = pl.DataFrame({
    ...     "job_id": [1, 2, 3], "submit_time": [0.0, 1.0, 2.0], "run_time": [10.0, 10.0, 5.0],
    ...     "processors": [3, 4, 1], "estimate": [10.0, 10.0, 5.0],
    ... })
    >>> tiny, fcfs = Workload(jobs, Machine.of(4), "tiny"), Scheduler(backfill="none")
    >>> wait_reasons(tiny, simulate(tiny, fcfs), fcfs).table.select("job_id", "room", "order").rows()
    [(1, 0.0, 0.0), (2, 9.0, 0.0), (3, 10.0, 8.0)]
    """
    if "preemptions" in outcomes.columns and (outcomes["preemptions"].fill_null(0) > 0).any():
        raise UnsupportedError("why: preempted jobs run several times; expected a scheduler without preemption")
    is_known = conditions is not None and conditions.order != LOG
    problem = prepare(workload, conditions) if conditions is not None and is_known else None
    unknown = _unknown(outcomes, problem, simulated and is_known)
    found = {name: np.zeros(outcomes.height) for name in REASONS}
    found["eligibility"] = _eligibility(workload, outcomes, conditions)
    for rows, waiting in _machines(workload, outcomes, problem, simulated and is_known):
        for name, seconds in divide(waiting).items():
            found[name][rows] += seconds
    columns = [
        pl.lit(None, pl.Float64).alias(name) if name in unknown else pl.Series(name, values)
        for name, values in found.items()
    ]
    return Reasons(outcomes.select("job_id", *columns), unknown)


def _eligibility(workload: Workload, outcomes: pl.DataFrame, conditions: Scheduler | None) -> np.ndarray:
    """Return the seconds from submission to eligibility; users who react to the schedule submit when it lets them."""
    if conditions is not None and conditions.feedback != "none":
        return np.zeros(outcomes.height)
    submitted = workload.jobs.select("job_id", submitted="submit_time")
    joined = outcomes.select("job_id", "submit_time").join(submitted, on="job_id", how="left", maintain_order="left")
    return np.maximum((joined["submit_time"] - joined["submitted"]).fill_null(0.0).to_numpy(), 0.0)


def _unknown(outcomes: pl.DataFrame, problem: Problem | None, simulated: bool) -> dict[str, str]:
    """Return the reasons that cannot be computed, and why."""
    if problem is None:
        return {
            "limit": "the limits of the scheduler are not given",
            "fragmentation": "the processors of jobs are not recorded",
            "drain": "maintenance is not recorded",
        }
    found, policy = {}, problem.policy
    if not simulated and not any(machine.limits is not None for machine in problem.machines):
        found["limit"] = "the limits of the scheduler are not given"
    if problem.nodes is not None:
        found["fragmentation"] = "the nodes of jobs are not recorded"
    elif _needs_places(problem) and not _has_places(outcomes):
        found["fragmentation"] = "the processors of jobs are not recorded"
    elif policy.shares:
        found["fragmentation"] = "the penalty of node sharing is not computed after the fact"
    elif not simulated:
        found["fragmentation"] = "the processors of jobs are not recorded"
    if not simulated and not policy.unavailable:
        found["drain"] = "maintenance is not recorded"
    return found


def _needs_places(problem: Problem) -> bool:
    """Return whether room depends on the numbers of processors."""
    allocations = problem.policy.allocations
    return _CONTIGUOUS in allocations or bool(allocations & _NUMBERED and problem.policy.unavailable)


def _has_places(outcomes: pl.DataFrame) -> bool:
    return "places" in outcomes.columns and outcomes.height > 0 and outcomes["places"].null_count() == 0


def _machines(
    workload: Workload, outcomes: pl.DataFrame, problem: Problem | None, simulated: bool
) -> Iterator[tuple[np.ndarray, Waiting]]:
    """Yield the schedule of each machine, and its rows in the outcomes."""
    start, run = outcomes["start_time"].to_numpy(), outcomes["run_time"].to_numpy()
    delay = problem.policy.end_delay if problem is not None and simulated else 0.0
    whole = Waiting(
        outcomes["submit_time"].to_numpy(), start, start + run + delay, outcomes["processors"].to_numpy(),
        workload.machine.processors, run,
    )  # fmt: skip
    if problem is None:
        demands, units = _recorded_demands(workload, outcomes)
        yield np.arange(outcomes.height), replace(whole, demands=demands, units=units, cycles=True)
        return
    jobs = _rows_in(problem, outcomes)
    slurm = any(queue.backfill == "slurm" for queue in problem.policy.queues)
    whole = replace(
        whole, planned=_planned(problem, jobs, whole.processors), cycles=slurm or not simulated,
        demands=None if problem.jobs.demands is None else problem.jobs.demands[jobs], rows=_accounts(problem, jobs),
        period=(problem.policy.priority or {}).get("calc_period", 0.0),
        needs=None if problem.accounts is None or problem.accounts.needs is None else problem.accounts.needs[jobs],
    )  # fmt: skip
    if _needs_places(problem) and _has_places(outcomes):
        offsets, ranges = _ranges(outcomes["places"])
        whole = replace(whole, offsets=offsets, ranges=ranges, contiguous=_CONTIGUOUS in problem.policy.allocations)
    for rows, part in _parts(problem, outcomes, jobs):
        if problem.nodes is not None and part["most"] is not None and rows.size < whole.jobs:
            yield np.arange(whole.jobs), _beside(replace(whole, **part), rows)
        else:
            yield rows, _only(replace(whole, **part), rows)


def _recorded_demands(workload: Workload, outcomes: pl.DataFrame) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return what the jobs need of the resources of the recorded machine, and its units."""
    units = {name: count for name, count in workload.machine.resources.items() if name in workload.jobs.columns}
    if not units:
        return None, None
    needed = workload.jobs.select("job_id", *units)
    joined = outcomes.select("job_id").join(needed, on="job_id", how="left", maintain_order="left")
    demands = joined.select(pl.col(list(units)).cast(pl.Int64).fill_null(0)).to_numpy(order="c")
    return demands, np.array(list(units.values()), np.int64)


def _rows_in(problem: Problem, outcomes: pl.DataFrame) -> np.ndarray:
    """Return the rows of outcomes in the jobs of a problem."""
    numbered = problem.table.select("job_id", row=pl.int_range(pl.len()))
    rows = outcomes.select("job_id").join(numbered, on="job_id", how="left", maintain_order="left")["row"]
    if rows.null_count():
        job = outcomes["job_id"].filter(rows.is_null())[0]
        raise SwflowError(f"why: {problem.name}: job {job} of the schedule is not in the workload; give the same jobs")
    return rows.to_numpy()


def _planned(problem: Problem, jobs: np.ndarray, processors: np.ndarray) -> np.ndarray:
    """Return the planned run times, of moldable jobs those of the chosen shapes."""
    planned, shapes = problem.jobs.planned.copy(), problem.shapes
    if shapes is not None:
        width = np.zeros(planned.size, np.int64)
        width[jobs] = processors
        job = np.repeat(np.arange(planned.size), np.diff(shapes.first))
        chosen = shapes.processors == width[job]
        planned[job[chosen]] = shapes.planned[chosen]
    return planned[jobs]


def _accounts(problem: Problem, jobs: np.ndarray) -> np.ndarray | None:
    """Return the rows of the accounts of each job in the limits of a machine."""
    owners = problem.accounts
    if owners is None or all(machine.limits is None for machine in problem.machines):
        return None
    return rows_of(owners)[jobs]


def _parts(problem: Problem, outcomes: pl.DataFrame, jobs: np.ndarray) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Yield the rows of each machine, cluster, or set of nodes that share no jobs with others, and its conditions."""
    if problem.nodes is not None:
        yield from _node_sets(problem, jobs)
        return
    of_job = problem.jobs.clusters if problem.policy.dispatch == "partition" else None
    if of_job is not None:
        cluster = of_job[jobs]
    elif problem.policy.clusters:
        cluster = outcomes["centre"].to_numpy() - 1
    else:
        cluster = np.zeros(outcomes.height, np.int64)
    for index, machine in enumerate(problem.machines):
        yield np.flatnonzero(cluster == index), {
            "machine": machine.processors, "windows": machine.windows, "most": machine.limits,
            "bounds": None if machine.bounds is None else machine.bounds[jobs],
            "units": np.array(list(machine.resources.values()), np.int64),
        }  # fmt: skip


def _node_sets(problem: Problem, jobs: np.ndarray) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Yield the rows of each set of nodes that no other partition uses, with the size of the set."""
    nodes, (machine,) = problem.nodes, problem.machines
    assert nodes is not None
    partition = nodes.partition[nodes.allowed[jobs]]
    sets: list[tuple[set[int], np.ndarray]] = []  # partitions and their nodes
    for one in np.unique(partition).tolist():
        names, members = {one}, nodes.members[one]
        for other in [other for other in sets if (other[1] & members).any()]:
            names, members = names | other[0], members | other[1]
            sets.remove(other)
        sets.append((names, members))
    for names, members in sets:
        yield np.flatnonzero(np.isin(partition, list(names))), {
            "machine": int(nodes.sizes[members].sum()), "windows": list(_closed(nodes, members, machine.windows)),
            "most": machine.limits, "bounds": None if machine.bounds is None else machine.bounds[jobs],
            "units": nodes.units[members].sum(axis=0),
        }  # fmt: skip


def _closed(nodes: Nodes, members: np.ndarray, windows: Sequence[Window]) -> Iterator[Window]:
    """Yield when processors of some nodes are unavailable, and how many; a node in several windows counts once."""

    def closed(stretch: tuple[float, float]) -> int:
        active = [number for number, (begin, until, _) in enumerate(windows) if begin <= stretch[0] < until]
        return int(nodes.sizes[nodes.away[active].any(axis=0) & members].sum())

    moments = sorted({time for begin, until, _ in windows for time in (begin, until)})
    for away, stretches in groupby(pairwise(moments), key=closed):
        if away:
            begin, *_, until = [time for stretch in stretches for time in stretch]
            yield begin, until, away


def _ranges(places: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges of processors of each job, from text such as ``0-3,8``, and where those of each job begin."""
    split = places.str.split(",")
    ends = split.explode().str.split("-")
    ranges = pl.DataFrame({"first": ends.list.first(), "last": ends.list.last()}).cast(pl.Int64).to_numpy(order="c")
    return np.append(0, np.cumsum(split.list.len().to_numpy())).astype(np.int64), ranges


def _beside(waiting: Waiting, rows: np.ndarray) -> Waiting:
    """Return the schedule of some nodes, with the jobs of the others, which count for the same limits."""
    elsewhere = np.ones(waiting.jobs, np.bool_)
    elsewhere[rows] = False
    eligible = np.where(elsewhere, waiting.start, waiting.eligible)
    demands = None if waiting.demands is None else np.where(elsewhere[:, None], 0, waiting.demands)
    return replace(waiting, eligible=eligible, demands=demands, elsewhere=elsewhere)


def _only(waiting: Waiting, rows: np.ndarray) -> Waiting:
    """Return the schedule of some jobs."""
    if rows.size == waiting.jobs:
        return waiting
    names = ("eligible", "start", "end", "processors", "planned", "demands", "rows", "bounds", "needs")
    some = {name: values[rows] for name in names if (values := getattr(waiting, name)) is not None}
    if waiting.offsets.size:
        counts = np.diff(waiting.offsets)[rows]
        first = np.repeat(waiting.offsets[:-1][rows] - np.append(0, np.cumsum(counts)[:-1]), counts)
        some["ranges"] = waiting.ranges[first + np.arange(counts.sum())]
        some["offsets"] = np.append(0, np.cumsum(counts))
    return replace(waiting, **some)
