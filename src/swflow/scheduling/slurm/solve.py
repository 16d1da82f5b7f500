"""Slurm's engine: solve a problem by its event loop."""

import numpy as np

from swflow.compiled.kernel import Handle, Kernel
from swflow.scheduling.final_state import chosen_items, copied_columns, raise_errors, schedule_of
from swflow.scheduling.initial_state import WAITING, new_arrivals
from swflow.scheduling.problem import Problem
from swflow.scheduling.slurm.accounts import SLURM_ACCOUNTING
from swflow.scheduling.slurm.loop import run_slurm
from swflow.scheduling.slurm.on_nodes import ON_NODES
from swflow.scheduling.slurm.on_processors import ON_PROCESSORS
from swflow.scheduling.slurm.preempted import Preempted
from swflow.scheduling.slurm.preemption import PREEMPTIVE
from swflow.scheduling.slurm.schedule import PreemptiveSchedule
from swflow.scheduling.slurm.setup import new_states
from swflow.scheduling.state.choices import Dispatch
from swflow.scheduling.state.schedule import Schedule

#: The event loops for counted processors, for nodes, and for nodes with preemption.
RUN_PROCESSORS, RUN_NODES, RUN_PREEMPTIVE = (
    Kernel(run_slurm, operations | WAITING | SLURM_ACCOUNTING.operations)
    for operations in (ON_PROCESSORS, ON_NODES, PREEMPTIVE)
)


def solve_by_slurm(problem: Problem) -> Schedule:
    """Return the schedule of a problem whose machines have Slurm's two schedulers."""
    states, ranks = new_states(problem)
    arrivals = new_arrivals(problem, states, ranks)
    kernel = RUN_PROCESSORS
    if problem.nodes is not None:
        kernel = RUN_NODES if problem.preempting is None else RUN_PREEMPTIVE
    kernel(Handle(states, several=len(states) > 1), Handle([arrivals]), Dispatch.number_of(problem.policy.dispatch))
    raise_errors(problem)
    items = chosen_items(problem, arrivals)
    columns = copied_columns(problem, states[0].jobs, items)
    machine, cluster = states[0].machine, arrivals.cluster
    del states, ranks, arrivals  # the next arrays need their memory
    found = schedule_of(problem, columns, items, cluster)
    return found if problem.preempting is None else _with_preemptions(found, machine.preempted)


def _with_preemptions(found: Schedule, preempted: Preempted) -> PreemptiveSchedule:
    """Return the schedule with what preemption changed; submit times are the first ones."""
    killed = ~np.isnan(preempted.ended)
    changed = {
        "submit": np.where(np.isnan(preempted.submitted), found.submit, preempted.submitted),
        "run": np.where(killed, preempted.ended - found.start, found.run),
        "killed": killed,
    }
    return PreemptiveSchedule(**vars(found) | changed, preemptions=preempted.preemptions, lost=preempted.lost)
