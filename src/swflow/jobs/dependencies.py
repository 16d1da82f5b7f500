"""Jobs that are submitted some time after others have ended, as plain data: the kernels use it."""

from typing import NamedTuple

import numpy as np


class Dependencies(NamedTuple):
    """
    The jobs after which others are submitted.

    ``previous`` has the row of the earlier job after whose end each job is submitted; -1: it is submitted at the
    recorded time. With ``dependent``, a job can wait for several: both have a row for each dependency.
    """

    previous: np.ndarray
    think: np.ndarray  # the think time between that end and the submission of each job, seconds
    dependent: np.ndarray | None = None  # the row of the dependent job of each dependency
    earliest: np.ndarray | None = None  # the time before which each job is not submitted, seconds
    # The response time of each job after which no dependent is submitted, seconds; None: always submitted.
    patience: np.ndarray | None = None
