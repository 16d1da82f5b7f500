"""The records of Slurm's schedulers, and the state of a machine under them."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.state.layout import State

#: The parameters, constant during a run. Cycles have an ``interval``, a ``window`` and a ``resolution`` in seconds; its
#: slots count from 1970 on, ``epoch`` seconds before the log. They test at most ``tests`` jobs, at most ``of_user``
#: jobs of a user, and at most ``of_partition`` of a partition (0: all). The main scheduler tests all jobs at multiples
#: of ``every`` seconds, and ``depth`` jobs because of an event, but not before ``batch_delay`` seconds have passed
#: since its last pass.
PARAMETERS = record("interval window resolution epoch every batch_delay", "tests of_user of_partition depth")

#: What is to be done. The main scheduler made its last pass at a time and has one ``due``; no event came after the
#: last pass that tests all jobs, or after the last cycle (``settled``). A pass may be due ``at_once``, which delays no
#: other. The next ``cycle`` is an interval after the ``last_cycle``, or at the first change after that. In a pass, the
#: number of jobs that it ``tests``, whether it ``skips`` those at a limit of running jobs without counting them, and
#: whether a job that it tested ``waits``.
TIMETABLE = record("due last_pass cycle last_cycle", "tests skips settled at_once waits")

#: A list of queued jobs with the same owners, level and partition, sorted by keys of the time ``sorted_at`` (NaN: not
#: sorted): where it begins in ``Own.sorted``, its jobs, and how many of these are ``left`` in a search.
ALIKE = record("sorted_at", "first size left")


class Own(NamedTuple):
    """What only Slurm's schedulers need of a machine."""

    parameters: np.ndarray
    timetable: np.ndarray
    sorted: np.ndarray  # lists of queued jobs by key, from the last job on; empty if the queue is not kept sorted
    alike: np.ndarray  # these lists
    alike_of: np.ndarray  # the list of each job
    cycle_times: np.ndarray  # scratch: the times at which what is free changes in the plan of a cycle
    cycle_free: np.ndarray  # scratch: the processors, and units of each resource, that are free from then on
    taken: np.ndarray  # scratch: the jobs that a cycle on nodes took from the queue


if TYPE_CHECKING:

    class SlurmState(State):
        """A machine: the fields of `swflow.scheduling.state.layout.State`, and Slurm's own."""

        own: Own

else:
    SlurmState = NamedTuple("SlurmState", [*State.__annotations__.items(), ("own", Own)])
