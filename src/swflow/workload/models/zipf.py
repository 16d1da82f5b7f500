"""Zipf distributions of repetition lengths: maximum-likelihood fits on the observed support, and draws."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from swflow.errors import SwflowError

#: Range of exponents of a fit; at its ends the distribution is uniform, or a single point.
_SMALLEST, _LARGEST = 0.0, 60.0

#: Number of bisections of that range: the exponent is exact to the last digit.
_HALVINGS = 80


@dataclass(frozen=True)
class Zipf:
    """
    A power law on 1, 2, ... ``longest``: P(x) is proportional to ``x ** -exponent``.

    The exponent 0 gives the uniform distribution; the larger the exponent, the rarer are long lengths.
    """

    exponent: float
    longest: int

    @cached_property
    def cumulative(self) -> np.ndarray:
        """Return P(length <= x) for x = 0, 1, ... longest: shape (longest + 1,)."""
        mass = np.arange(1, self.longest + 1, dtype=float) ** -self.exponent
        below = np.concatenate([[0.0], np.cumsum(mass)])
        return below / below[-1]

    @property
    def mean(self) -> float:
        """Return the expected length."""
        return float(np.diff(self.cumulative) @ np.arange(1, self.longest + 1))

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw lengths; shape (count,)."""
        return self.sample_below(np.full(count, self.longest + 1), rng)

    def sample_below(self, limits: np.ndarray, rng: np.random.Generator, *, least: int = 1) -> np.ndarray:
        """
        Draw one length from ``least`` to below each of the limits, both whole numbers.

        They are distributed as if lengths were drawn until they are within the limits; 0 if no length is. One random
        number is drawn per length.

        Examples
        --------
        >>> Zipf(2.0, 10).sample_below(np.array([1, 2, 2]), np.random.default_rng(1))
        array([0, 1, 1])
        """
        largest = np.clip(limits - 1, 0, self.longest)
        low = self.cumulative[min(least - 1, self.longest)]
        share = self.cumulative[largest] - low
        drawn = np.searchsorted(self.cumulative, low + rng.random(len(limits)) * share, side="right")
        return np.where(largest >= least, np.minimum(drawn, largest), 0)


def fit_zipf(lengths: np.ndarray) -> Zipf:
    """
    Fit a Zipf distribution on 1 to the longest observed length to lengths by maximum likelihood.

    At its exponent, the expected logarithm equals the mean logarithm of the lengths, which maximizes the likelihood.
    The exponent is 0 if the lengths are longer on average than under the uniform distribution.

    Examples
    --------
    >>> lengths = Zipf(2.5, 100).sample(100_000, np.random.default_rng(1))
    >>> round(fit_zipf(lengths).exponent, 2)
    2.5
    >>> fit_zipf(np.ones(5, dtype=int))
    Zipf(exponent=0.0, longest=1)
    """
    lengths = np.asarray(lengths)
    if not len(lengths) or lengths.min() < 1:
        raise SwflowError("zipf: lengths are missing or below 1; expected at least one length, each at least 1")
    longest = int(lengths.max())
    if longest == 1:
        return Zipf(0.0, 1)
    logs = np.log(np.arange(1, longest + 1))
    wanted = float(np.log(lengths).mean())
    low, high = _SMALLEST, _LARGEST
    for _ in range(_HALVINGS):  # the expected logarithm decreases as the exponent grows
        middle = (low + high) / 2
        mass = np.exp(-middle * logs)
        low, high = (middle, high) if mass @ logs / mass.sum() > wanted else (low, middle)
    return Zipf((low + high) / 2 if low > _SMALLEST else 0.0, longest)
