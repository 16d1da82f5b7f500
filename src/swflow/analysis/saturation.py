"""Saturation: whether the queue of a run grows over the log, so that its waits depend on the length of the log."""

import numpy as np

from swflow.analysis.long_run import long_run_error
from swflow.analysis.resampling import WEEK
from swflow.analysis.timeline import interval_means

#: The queue of a run that lasts fewer weeks than this is not tested.
FEWEST_WEEKS = 8

_ROUNDING = 1e-9  # share by which two sums of the same values may differ

_LEVEL = 0.05  # significance level: one-sided test for growth


def is_saturated(submit: np.ndarray, start: np.ndarray, area: np.ndarray) -> bool | None:
    """
    Return whether the queue of a run grows over the log; None if there are fewer than eight weeks.

    Two conditions hold for a saturated run. The processor-seconds of waiting jobs grow from week to week, by a
    one-sided test of the slope at 5 % whose error includes the dependence between weeks (`long_run_error`). When the
    last job is submitted, more of them wait than on average over the log. The second condition excludes logs with more
    jobs in later years whose queue still empties.

    Parameters
    ----------
    submit, start : float64 arrays
        The times at which jobs are submitted and start, seconds.
    area : float64 array
        Processors times run time.

    Examples
    --------
    A job per hour for twelve weeks on one processor, where each job runs for 50 min, or for 70 min:

    >>> submit = np.arange(12 * 7 * 24) * 3600.0
    >>> is_saturated(submit, submit, np.full(submit.size, 3000.0))
    False
    >>> is_saturated(submit, np.arange(submit.size) * 4200.0, np.full(submit.size, 4200.0))
    True
    """
    from scipy.special import stdtr

    if not submit.size:
        return None
    first, last = float(submit.min()), float(submit.max())
    weeks = int((last - first) // WEEK)
    if weeks < FEWEST_WEEKS:
        return None
    start = np.maximum(start, submit)  # some recorded jobs start before their submission
    left = float(area[start > last].sum())
    # Most queues end shorter than their mean, which without its division into weeks takes a tenth of the time.
    waited = np.minimum(start - first, WEEK * weeks) - np.minimum(submit - first, WEEK * weeks)
    if left < (1 - _ROUNDING) * float(area @ waited) / (WEEK * weeks):
        return False
    queue = interval_means(submit, start, area, first + WEEK * np.arange(weeks + 1))
    if left <= float(queue.mean()):
        return False
    place = np.arange(weeks) - (weeks - 1) / 2
    spread = float(place @ place)
    slope = float(place @ queue) / spread
    found = long_run_error(place * (queue - queue.mean() - slope * place) / spread, np.arange(weeks))
    return slope > 0 and bool(found.error == 0 or stdtr(found.freedom, -slope / found.error) < _LEVEL)
