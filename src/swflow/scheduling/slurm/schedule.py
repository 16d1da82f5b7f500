"""The schedule of jobs that may be preempted."""

from dataclasses import dataclass

import numpy as np

from swflow.scheduling.state.schedule import Schedule


@dataclass(frozen=True)
class PreemptiveSchedule(Schedule):
    """A schedule with preemption; a job that was preempted for good counts as killed."""

    preemptions: np.ndarray  # how often each job was preempted
    lost: np.ndarray  # the time of each job's runs that were lost when it was requeued
