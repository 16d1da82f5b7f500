"""Sample sizes: the weeks or replicates that an interval needs to exclude 0 with a given probability."""

import math
from bisect import bisect_left

from swflow.analysis.intervals import Estimate
from swflow.analysis.long_run import MOST_FREEDOM, student

_MOST_BLOCKS = 10**7  # the largest number of weeks or replicates that `blocks_needed` returns


def blocks_needed(found: Estimate, effect: float, power: float = 0.8) -> int | None:
    """
    Return the number of weeks or replicates at which an interval excludes 0 with a given probability (``power``).

    ``found`` has a standard error; further weeks or replicates are assumed to be like the observed ones. ``effect`` is
    the true difference, in the unit of the error. The number is at least 2; None above ten million.

    Examples
    --------
    An effect of one standard deviation of a replicate, which is listed in tables of Student's paired test:

    >>> blocks_needed(Estimate(0.0, 1 / math.sqrt(10), 10, 9), 1.0)
    10
    """
    if found.error == 0:
        return 2
    numbers = range(2, _MOST_BLOCKS + 1)
    place = bisect_left(numbers, True, key=lambda wanted: smallest_difference(found, wanted, power) <= effect)
    return numbers[place] if place < len(numbers) else None


def smallest_difference(found: Estimate, wanted: int, power: float = 0.8) -> float:
    """
    Return the true difference at which an interval over ``wanted`` blocks excludes 0 with a given probability.

    Examples
    --------
    >>> there = Estimate(0.0, 1.0, 50, 49)
    >>> round(smallest_difference(there, 50), 2), round(smallest_difference(there, 200), 2)
    (2.86, 1.41)
    """
    from scipy.special import stdtrit

    freedom = (wanted - 1) * found.freedom / (found.blocks - 1)
    if found.freedom < found.blocks - 1:  # the least bandwidth is a share of the weeks, which limits the freedom
        freedom = min(freedom, max(found.freedom, MOST_FREEDOM))
    error = (found.error or 0.0) * math.sqrt(found.blocks / wanted)
    return float((student(freedom) + stdtrit(freedom, power)) * error)
