"""A baseline like QBETS: binomial bounds of the quantiles of the waits in the class of a job."""

from bisect import bisect_left, insort
from collections import defaultdict, deque
from functools import lru_cache
from typing import Any

import numpy as np

from swflow.forecast.cases import Cases, decades, with_started
from swflow.forecast.model import QUANTILES

#: The confidence of the bounds of both ends, and the least number of waits for which both exist.
CONFIDENCE, FEWEST = 0.95, 59

#: As many misses above in a row are a change of the distribution: only the latest waits are kept.
_MISSES = 3


class _History:
    """The waits of a class since the last change of their distribution, in the order of the starts and sorted."""

    def __init__(self) -> None:
        self.latest: deque[float] = deque()
        self.sorted: list[float] = []
        self.misses = 0

    def add(self, value: float, upper: float) -> None:
        """Add a wait, and drop the older ones if several in a row were above the bound that was forecast."""
        self.latest.append(value)
        insort(self.sorted, value)
        self.misses = self.misses + 1 if value > upper else 0
        if self.misses >= _MISSES and len(self.latest) > FEWEST:
            while len(self.latest) > FEWEST:
                del self.sorted[bisect_left(self.sorted, self.latest.popleft())]
            self.misses = 0


@lru_cache(maxsize=100_000)
def order_statistics(count: int) -> tuple[int, int, int]:
    """
    Return the positions of the bounds of both ends and of the median among sorted waits.

    The upper bound of a quantile q is the smallest order statistic k with P(Binomial(count, q) < k) at least
    `CONFIDENCE`; the lower bound is its mirror image.

    Examples
    --------
    >>> order_statistics(59), order_statistics(1000)
    ((0, 29, 58), (38, 500, 961))
    """
    from scipy.stats import binom

    upper = int(binom.ppf(CONFIDENCE, count, QUANTILES[2]))
    upper = min(upper, count - 1)
    return count - 1 - upper, count // 2, upper


def by_class(cases: Cases) -> np.ndarray:
    """
    Forecast every case by the waits of its class that were known when it was asked for.

    A class is a partition and a power of two of the processors; with fewer than 59 waits, it is all jobs. The result of
    shape (cases, 3) has the lower bound of the 5 % quantile, the median and the upper bound of the 95 % quantile,
    decades; NaN without 59 waits.

    References
    ----------
    J. Brevik, D. Nurmi, R. Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel machines",
    PPoPP 2006.
    """
    value = decades(cases.wait)
    widths = [max(int(size) - 1, 0).bit_length() for size in cases.size]
    keys: list[Any] = list(zip(cases.partition.tolist(), widths, (cases.waited > 0).tolist(), strict=True))
    history: dict[Any, _History] = defaultdict(_History)
    found = np.full((cases.asked.size, 3), np.nan)
    for row, started in with_started(cases.asked, cases.asked + cases.wait):
        for known in started:
            for key in (keys[known], None):
                history[key].add(float(value[known]), float(found[known, 2]))
        known_waits = history[keys[row]].sorted if len(history[keys[row]].sorted) >= FEWEST else history[None].sorted
        if len(known_waits) >= FEWEST:
            found[row] = [known_waits[place] for place in order_statistics(len(known_waits))]
    return found
