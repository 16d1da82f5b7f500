"""Solve a problem by the engine that its policy needs."""

from swflow.scheduling.engine.solve import solve_by_textbook
from swflow.scheduling.problem import Problem
from swflow.scheduling.slurm.accounts import SLURM_ACCOUNTING, counts_as_slurm
from swflow.scheduling.slurm.solve import solve_by_slurm
from swflow.scheduling.state.accounts import ACCOUNTING
from swflow.scheduling.state.schedule import Schedule


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
    >>> import numpy as np
    >>> from swflow.scheduling.state.items import Jobs
    >>> from swflow.scheduling.problem import Machine
    >>> from swflow.scheduling.scheduler import Scheduler
    >>> submit, run = np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 3.0])
    >>> jobs = Jobs(submit, run, run, np.array([3, 4, 1]))
    >>> solve(Problem(jobs, Scheduler(backfill="easy"), (Machine(4),))).start
    array([ 0., 10.,  2.])
    """
    if problem.policy.is_slurm:
        return solve_by_slurm(problem)
    return solve_by_textbook(problem, SLURM_ACCOUNTING if counts_as_slurm(problem) else ACCOUNTING)
