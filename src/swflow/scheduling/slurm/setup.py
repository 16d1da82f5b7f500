"""The states of the machines under Slurm before the first event."""

import math
from typing import Any

import numpy as np

from swflow.scheduling.initial_state import Given, Ranks, new_state, shared_arrays
from swflow.scheduling.machine.counted import counted_processors
from swflow.scheduling.problem import Machine, Problem
from swflow.scheduling.slurm.accounts import SLURM_ACCOUNTING
from swflow.scheduling.slurm.node_state import new_node_state
from swflow.scheduling.slurm.preempted import new_preempted
from swflow.scheduling.slurm.state import ALIKE, PARAMETERS, TIMETABLE, Own, SlurmState
from swflow.scheduling.slurm.timetable import TICK
from swflow.scheduling.state.heap import ELEMENT
from swflow.scheduling.state.layout import NONE, State
from swflow.scheduling.state.queue import NO_JOB

#: Running jobs that a cycle plans to end together: each group spans twice the time of the last.
_MOST_GROUPS = 64


def new_states(problem: Problem) -> tuple[list[SlurmState], list[Ranks]]:
    """
    Return the state of each machine, and the ranks of all items there.

    The machines share the records of jobs and of their owners.
    """
    shared = shared_arrays(problem, SLURM_ACCOUNTING)
    states: list[SlurmState] = []
    ranks: list[Ranks] = []
    tests = min(int(problem.policy.cycles["bf_max_job_test"]), max(problem.items.submit.size, 1))
    for machine in problem.machines:
        processors = _new_processors(problem, machine, tests)
        given = Given(processors, NONE, tests, machine.order, True, machine.windows)
        state, rank = new_state(problem, machine, given, shared, SLURM_ACCOUNTING)
        own = _own(problem, machine, state, tests)
        states.append(SlurmState(*state, own=own))  # type: ignore[call-arg]
        ranks.append(rank)
    shared["jobs"]["rank"], shared["jobs"]["backfill_rank"] = ranks[0]
    return states, ranks


def _new_processors(problem: Problem, machine: Machine, tests: int) -> Any:
    if problem.nodes is None:
        return counted_processors(problem, machine, tests, keeps=False)
    items, policy = problem.items, problem.policy
    preempted = new_preempted(problem.preempting, items.submit.size, problem.nodes.sizes.size, policy.end_delay)
    return new_node_state(problem.nodes, items, int(policy.cycles["bf_max_job_test"]), machine.windows, preempted)


def _own(problem: Problem, machine: Machine, state: State, tests: int) -> Own:
    cycles, count = problem.policy.cycles, problem.items.submit.size
    parameters, timetable = np.zeros(1, PARAMETERS), np.zeros(1, TIMETABLE)
    values = {
        "interval": cycles["bf_interval"],
        "window": 60 * cycles["bf_window"],
        "resolution": cycles["bf_resolution"],
        "epoch": problem.epoch,
        "every": math.ceil(cycles["sched_interval"] / TICK) * TICK,
        "batch_delay": cycles["batch_sched_delay"],
        "tests": tests,
        "of_user": cycles["bf_max_job_user"],
        "of_partition": cycles["bf_max_job_part"],
        "depth": cycles["default_queue_depth"],
    }
    for name, value in values.items():
        parameters[name] = value
    timetable["tests"], timetable["due"], timetable["cycle"], timetable["last_pass"] = NO_JOB, np.inf, np.inf, -np.inf
    steps = _MOST_GROUPS + 2 * (tests + len(machine.windows)) + 2 if problem.nodes is None else 0
    has_periods = bool(state.usage.counting["calc_period"][0] > 0)
    is_sorted = bool(machine.order.formula) and has_periods
    rows = state.usage.rows if len(state.usage.rows) else np.zeros((count, 1), np.int64)
    if problem.preempting is not None:
        rows = np.column_stack([rows, problem.preempting.level[problem.preempting.kind]])
    if problem.nodes is not None:
        rows = np.column_stack([rows, state.machine.partition[state.machine.allowed]])
    alike, alike_of = _alike(rows, is_sorted)
    return Own(
        parameters,
        timetable,
        sorted=np.empty(alike_of.size, ELEMENT),
        alike=alike,
        alike_of=alike_of,
        cycle_times=np.empty(steps),
        cycle_free=np.empty((steps, 1 + len(machine.resources)), np.int64),
        taken=np.empty(0 if problem.nodes is None else count, np.int64),
    )


def _alike(rows: np.ndarray, is_sorted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return empty lists of queued jobs with the same rows, and each job's list; none unless sorted."""
    found, lists, sizes = np.unique(rows if is_sorted else rows[:0], axis=0, return_inverse=True, return_counts=True)
    alike = np.zeros(len(found), ALIKE)
    alike["first"], alike["sorted_at"] = np.cumsum(sizes) - sizes, np.nan
    return alike, lists.reshape(-1)
