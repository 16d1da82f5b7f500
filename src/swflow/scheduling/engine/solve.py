"""The engine: solve a problem, by the fast kernels for short queues or by the general event loop."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from swflow.compiled.kernel import Handle, Kernel
from swflow.errors import SwflowError
from swflow.scheduling.engine.cancellations import next_cancellation, note_arrival, withdraw
from swflow.scheduling.engine.dependents import release_dependents, take_turn
from swflow.scheduling.engine.fast_easy import serve_by_arrival
from swflow.scheduling.engine.loop import run_events
from swflow.scheduling.engine.passes import serve_ahead, serve_as_slurm
from swflow.scheduling.engine.setup import new_arrivals, new_states
from swflow.scheduling.machine.alvio import ALVIO, RELEASED_ALVIO, with_shadows
from swflow.scheduling.machine.counted import COUNTED, Counted
from swflow.scheduling.machine.node_sharing import MOST_PENALTY, Sharing
from swflow.scheduling.machine.numbered import NUMBERED, larger
from swflow.scheduling.problem import Problem
from swflow.scheduling.slurm.on_nodes import serve_cycle_on_nodes, start_by_partition
from swflow.scheduling.slurm.on_processors import serve_cycle
from swflow.scheduling.slurm.placement import NODES, NodeState
from swflow.scheduling.slurm.preempted import Preempted
from swflow.scheduling.slurm.preemption import PREEMPTION
from swflow.scheduling.state.accounts import at_limit, of_tree, share_of, submit_use
from swflow.scheduling.state.changes import count_usage, is_limited, note_end, note_start
from swflow.scheduling.state.choices import Dispatch
from swflow.scheduling.state.schedule import Schedule
from swflow.scheduling.state.search import insert_sorted, next_sorted


def _nothing(*arguments: Any) -> None:
    """Stand for what an event loop never calls."""


def _never(*arguments: Any) -> bool:
    return False


def _zero(*arguments: Any) -> float:
    return 0.0


def _infinity(*arguments: Any) -> float:
    return np.inf


def _no_factors(*arguments: Any) -> tuple[float, float]:
    return 0.0, np.inf


def _unsorted(*arguments: Any) -> int:
    return -2


#: What only Slurm's schedulers and trees of accounts need.
_OF_SLURM: dict[Any, Any] = {
    serve_as_slurm: _nothing, of_tree: _no_factors, next_sorted: _unsorted, insert_sorted: _nothing
}  # fmt: skip

#: What only problems with accounts, limits, dependent jobs or cancellations need.
_OF_SOME: dict[Any, Any] = {
    note_start: _nothing, note_end: _nothing, count_usage: _nothing, submit_use: _nothing, share_of: _zero,
    at_limit: _never, is_limited: _never, take_turn: _nothing, release_dependents: _nothing,
    note_arrival: _nothing, next_cancellation: _infinity, withdraw: _nothing,
}  # fmt: skip

#: The event loop for counted processors.
RUN_COUNTED = Kernel(run_events, COUNTED)

#: The event loop for numbered processors, and those of what only one simulator does.
RUN_NUMBERED, RUN_ALVIO, RUN_RELEASED_ALVIO = (
    Kernel(run_events, processors | _OF_SLURM) for processors in (NUMBERED, ALVIO, RELEASED_ALVIO)
)

#: Smaller event loops, which compile faster, for problems that do not need the rest.
SMALLER = {
    kernel: Kernel(run_events, kernel.hooks | _OF_SLURM | _OF_SOME)
    for kernel in (RUN_COUNTED, RUN_NUMBERED, RUN_ALVIO, RUN_RELEASED_ALVIO)
}

#: The event loop for backfill slurm on nodes.
RUN_NODES = Kernel(run_events, NODES | {serve_ahead: start_by_partition, serve_cycle: serve_cycle_on_nodes})

#: The same with preemption.
RUN_PREEMPTIVE = Kernel(run_events, RUN_NODES.hooks | PREEMPTION)

#: The first fields of `Items`, which the simulation may change.
_TIMES = ("submit", "run", "planned", "processors")


def solve(problem: Problem) -> Schedule:
    """
    Return the schedule of a problem.

    A reservation of numbered processors holds particular ones: another job may take one of them only if it ends, by
    its planned run time, before the reservation starts (F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of
    resource sharing in backfilling policies using the Alvio simulator", MASCOTS 2007, as in their reservation table).

    With ``shapes: submit`` a job's shape is chosen when it arrives, by the availability profile: the planned ends of
    the running jobs, and the queue planned ahead, one job after the other in its order, each at its earliest start;
    under conservative backfilling queued jobs have their reservations. For each shape, the earliest start after all of
    these and the planned run time give a completion; the earliest wins, ties go to the narrowest. From then on the job
    is rigid (W. Cirne, F. Berman, "Adaptive selection of partition size for supercomputer requests", JSSPP 2000).

    With ``shapes: start`` a job that is considered, as the head or for backfilling, starts if any of its shapes can
    start: in the one with the shortest planned run time; ties go to the narrowest. A reservation is for the shape that
    would complete first by the profile, ties go to the narrowest; it is chosen anew in every pass (none, EASY), or
    whenever reservations move forward (conservative). A queued job's rank in the queue is that of its request.

    Raises
    ------
    SwflowError
        If a job can never start because of a window without an end or a limit.

    Examples
    --------
    >>> from swflow.scheduling.problem import Jobs, Machine
    >>> from swflow.scheduling.scheduler import Scheduler
    >>> submit, run = np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 3.0])
    >>> jobs = Jobs(submit, run, run, np.array([3, 4, 1]))
    >>> solve(Problem(jobs, Scheduler(backfill="easy"), (Machine(4),))).start
    array([ 0., 10.,  2.])
    """
    return _solve_short_queues(problem) or _solve_by_events(problem)


def _solve_short_queues(problem: Problem) -> Schedule | None:
    """Return the schedule of FCFS or EASY in order of arrival, if options are plain and queues are short."""
    policy, jobs = problem.policy, problem.items
    (queue, *others), (machine, *_) = policy.queues, problem.machines
    plain = policy.prediction != "system" and queue.allocation == "count"
    waits = problem.dependencies or problem.cancelled_after is not None
    special = others or machine.windows or machine.limits is not None or problem.shapes or waits
    if not plain or special or not machine.order.is_arrival:
        return None
    if queue.backfill == "none" and not machine.resources:  # the order of events at one instant changes nothing
        return Schedule.of_start(jobs, serve_by_arrival(jobs, machine.processors, backfill=False)[0])
    if queue.backfill == "easy" and queue.reservations == 1 and machine.backfill_order.is_arrival:
        units, per_event = list(machine.resources.values()), policy.event_order == "per-event"
        start, finished = serve_by_arrival(jobs, machine.processors, units, backfill=True, per_event=per_event)
        return Schedule.of_start(jobs, start) if finished else None
    return None


def _solve_by_events(problem: Problem) -> Schedule:
    """Return the schedule by the general event loop."""
    jobs, policy = problem.items, problem.policy
    states, ranks = new_states(problem)
    arrivals = new_arrivals(problem, states, ranks)
    if problem.sharing is not None and problem.sharing.penalty == "forgets-shadows":
        states = [with_shadows(state) for state in states]
    kernel = _kernel(problem)
    coming, dispatch = Handle([arrivals]), Dispatch.number_of(policy.dispatch)
    while not kernel(Handle(states, several=len(states) > 1), coming, dispatch):
        states = [larger(state) for state in states]
    for machine in problem.machines:
        for order in (machine.order, machine.backfill_order):
            if order.plugin is not None:
                order.plugin.require_success()
    items: Any = arrivals.chosen if jobs.first.size else slice(None)
    done = states[0].jobs[items]
    _require_started(problem, done)
    copied = ["start"]
    copied += ["processors", "run"] if policy.shapes == "start" else []
    copied += ["submit"] if problem.dependencies is not None else []
    copied += ["promise"] if any(queue.backfill == "conservative" for queue in policy.queues) else []
    columns = {name: done[name].copy() for name in copied}
    free, cluster = [state.machine for state in states], arrivals.cluster
    del done, states, ranks, arrivals  # the next arrays need their memory
    of_jobs = jobs._replace(**{name: columns.pop(name, getattr(jobs, name)[items]) for name in _TIMES})
    found = replace(Schedule.of_start(of_jobs, columns.pop("start")), **columns)
    if len(free) > 1:
        found = replace(found, cluster=cluster)
    if problem.preempting is not None:
        return _with_preemptions(found, free[0].preempted)
    if isinstance(free[0], Counted | NodeState):
        return found
    found = _with_ranges(found, free, items)
    return _with_penalties(found, [one.sharing for one in free], items) if problem.sharing else found


def _kernel(problem: Problem) -> Kernel:
    """Return the event loop that a problem needs."""
    policy = problem.policy
    if policy.nodes:
        return RUN_NODES if problem.preempting is None else RUN_PREEMPTIVE
    kernel = RUN_NUMBERED
    if "count" in policy.allocations:
        kernel = RUN_COUNTED
    elif problem.sharing is not None and problem.sharing.penalty == "forgets-shadows":
        kernel = RUN_RELEASED_ALVIO
    elif any(queue.backfill == "reservation-table" for queue in policy.queues):
        kernel = RUN_ALVIO
    some = (problem.accounts, problem.dependencies, problem.cancelled_after)
    is_slurm = any(queue.backfill == "slurm" for queue in policy.queues)
    return SMALLER[kernel] if not is_slurm and all(one is None for one in some) else kernel


def _require_started(problem: Problem, done: np.ndarray) -> None:
    """Raise an error if jobs never start."""
    never = np.isnan(done["start"])
    if problem.cancelled_after is not None:  # the others left the queue
        never &= np.isinf(problem.cancelled_after)
    never = np.flatnonzero(never)
    if not never.size:
        return
    first = f"{never.size:,} jobs never start, the first with {done['processors'][never[0]]:,} processors"
    if any(machine.limits is not None for machine in problem.machines):
        raise SwflowError(f"limits: {first}; raise the limits, or leave these jobs out")
    raise SwflowError(f"unavailable: {first}; end the window or take fewer processors")


def _with_preemptions(found: Schedule, preempted: Preempted) -> Schedule:
    """Return the schedule with what preemption changed; submit times are the first ones."""
    killed = ~np.isnan(preempted.ended)
    return replace(
        found,
        submit=np.where(np.isnan(preempted.submitted), found.submit, preempted.submitted),
        run=np.where(killed, preempted.ended - found.start, found.run),
        killed=killed,
        preemptions=preempted.preemptions,
        lost=preempted.lost,
    )


def _with_ranges(found: Schedule, machines: Sequence[Any], items: np.ndarray | slice) -> Schedule:
    """Return the schedule with the processors of each job."""
    placed = machines[0].jobs[items]
    offsets = np.append(0, np.cumsum(placed["ranges"], dtype=np.int64))
    index = np.arange(offsets[-1]) + np.repeat(placed["first"] - offsets[:-1], placed["ranges"])
    if len(machines) == 1:
        return replace(found, offsets=offsets, ranges=machines[0].pool[index])
    ranges, cluster = np.empty((index.size, 2), np.int32), np.repeat(found.cluster, placed["ranges"])
    for number, machine in enumerate(machines):
        ranges[cluster == number] = machine.pool[index[cluster == number]]
    return replace(found, offsets=offsets, ranges=ranges)


def _with_penalties(found: Schedule, machines: Sequence[Sharing], items: np.ndarray | slice) -> Schedule:
    """Return the schedule with the penalties of shared resources."""
    if any(sharing.round["invalid"][0] > 0 for sharing in machines):
        raise SwflowError(
            f"penalty: the formula is undefined, above {MOST_PENALTY:g}, or of an overload negative for a usage that "
            "occurs; write one that never is, such as: max(usage / capacity, 1) - 1"
        )
    if not machines[0].slows:
        return replace(found, killed=np.zeros(found.start.size, np.bool_))
    jobs, start = machines[0].job[items], found.start
    killed, end = jobs["killed"] != 0, jobs["end"]
    spent = np.where(killed, jobs["progress"], found.run)  # the run time without penalties
    lost = np.where(end > start + spent, end - start - spent, 0.0)
    run = np.where(end == found.end, found.run, end - start)
    return replace(found, run=run, penalty=lost, killed=killed)
