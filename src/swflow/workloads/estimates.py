"""Requested times as users give them: few round values, many at the maximum, and none below the run time."""

from typing import NamedTuple

import numpy as np

from swflow.errors import SwflowError
from swflow.kernels import Handle, Kernel

MINUTE = 60
HOUR = 60 * MINUTE

#: The maximal estimate where none is given. A choice of swflow: longer than any run time of the Lublin model.
DEFAULT_MAXIMUM = 48.0 * HOUR

#: How many estimates make the head, the popular ones, and the share of the jobs that use them.
HEAD = 20
HEAD_SHARE = 0.89

#: The fifteen estimates that are among the twenty most popular in all four logs of the paper.
COMMON_ESTIMATES = (
    *(minutes * MINUTE for minutes in (5, 10, 15, 20, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)),
)

#: The head is filled up with multiples of these, in this order, each from the maximum downwards.
ROUND_STEPS = (
    *(hours * HOUR for hours in (200, 100, 50, 10, 5, 2, 1)),
    *(minutes * MINUTE for minutes in (20, 10, 5)),
)

#: Popularity ranks (1 = most popular) of the head's estimates in SDSC-SP2, CTC, KTH and SDSC-BLUE: the
#: maximum first, then by length.
POPULARITY_RANKS = np.array(
    [
        *([3, 1, 1, 1], [1, 3, 4, 6], [4, 4, 10, 5], [17, 2, 14, 3], [13, 12, 20, 7]),
        *([7, 9, 2, 2], [8, 8, 3, 18], [18, 18, 7, 19], [2, 6, 12, 4], [6, 7, 6, 11]),
        *([16, 11, 19, 20], [10, 20, 5, 9], [5, 16, 18, 10], [15, 5, 16, 14], [14, 14, 9, 13]),
        *([19, 13, 17, 16], [11, 10, 15, 15], [12, 15, 13, 17], [9, 17, 8, 8], [20, 19, 11, 12]),
    ]
)

#: Percent of the jobs at popularity rank x: a exp(b x) + c for ranks 2 to 20, a x^b (scaled) for the tail.
HEAD_SIZE = (14.0491, -0.177531, 0.462513)
TAIL_SIZE_POWER = -2.267

#: How many different estimates a number of jobs has, between these points in straight lines.
DIFFERENT_ESTIMATES = ((0, 20, 200, 1000, 10_000, 70_000, 250_000), (0, 10, 20, 35, 90, 340, 565))

#: The tail's times: (a - 1) x / (a - x) of the maximum at relative rank x; a = 1 + p K^q for K estimates.
TAIL_TIMES = (12.1039, -0.6026)

#: Seconds by which a tail's estimate is moved if its minute is taken.
OFFSETS = (0, 30, -30, 20, -20, 10, -10)


def modal_estimates(
    run_times: np.ndarray,
    rng: np.random.Generator,
    *,
    maximum: float = DEFAULT_MAXIMUM,
    maximum_share: float | None = None,
) -> np.ndarray:
    """
    Give each job a requested time, by the model of Tsafrir, Etsion and Feitelson.

    Parameters
    ----------
    run_times : numpy.ndarray, shape (jobs,)
        Seconds.
    rng : numpy.random.Generator
        Where all chance comes from; the same state gives the same estimates.
    maximum : float
        The longest estimate that the machine admits, in seconds; at least an hour. A job that ran longer
        gets its run time.
    maximum_share : float, optional
        Share of the jobs that ask for the maximum, if known, below 0.89; else the model's, about 0.22.

    Returns
    -------
    numpy.ndarray, shape (jobs,)
        Seconds, never below the run time.

    Raises
    ------
    SwflowError
        If a run time is negative or unknown, or the maximum or its share is out of range.

    Notes
    -----
    The estimates of all jobs are drawn first (`estimate_histogram`), then dealt out: the longest job takes
    any of the estimates that are long enough for it, and so on down. Any estimate may so meet any shorter
    job. The model is that of D. Tsafrir, Y. Etsion, D. G. Feitelson, "Modeling user runtime estimates",
    JSSPP 2005, with the parameters of the program that the authors published with it.

    Where we differ: their program gives up if there are more long jobs than long estimates; here the
    estimate that is too short is raised to the next one in use, so that the histogram then has somewhat
    more long ones. Their program cuts jobs that ran longer than the maximum; here they keep their run
    time. Estimates do not depend on users. Jobs that ran to the end of their estimate and were killed,
    which logs show as a peak at an accuracy of 1, are there only if the run times have them.

    Examples
    --------
    >>> run_times = np.random.default_rng(1).uniform(1, 3600, 1000)
    >>> estimates = modal_estimates(run_times, np.random.default_rng(2), maximum=18 * 3600)
    >>> bool((estimates >= run_times).all()), float(estimates.max())
    (True, 64800.0)
    """
    run_times = np.asarray(run_times, dtype=float)
    if len(run_times) == 0:
        return np.empty(0)
    if not (np.isfinite(run_times) & (run_times >= 0)).all():
        raise SwflowError("estimates: every run time must be known and not negative; leave the other jobs out")
    values, counts = estimate_histogram(len(run_times), rng, maximum=maximum, maximum_share=maximum_share)
    longest_first = np.argsort(-run_times, kind="stable")
    run = np.minimum(run_times[longest_first], values[-1])
    dealt = np.repeat(values, counts)[::-1].copy()
    dealt = np.where(dealt < run, values[np.searchsorted(values, run)], dealt)
    _DEAL(Handle([_Cards(run, dealt, rng.random(len(run)))]))
    estimates = np.empty(len(run))
    estimates[longest_first] = dealt
    return np.maximum(estimates, run_times)


def estimate_histogram(
    jobs: int,
    rng: np.random.Generator,
    *,
    maximum: float = DEFAULT_MAXIMUM,
    maximum_share: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """
    Draw which estimates a workload's jobs have, and how many jobs have each.

    Parameters
    ----------
    jobs : int
        How many jobs.
    rng : numpy.random.Generator
        Decides which of the popular estimates is how popular.
    maximum, maximum_share
        As of `modal_estimates`.

    Returns
    -------
    values : numpy.ndarray
        The estimates in seconds, from the shortest to the maximum.
    counts : numpy.ndarray
        How many jobs have each; they add up to ``jobs``.

    Raises
    ------
    SwflowError
        If the maximum or its share is out of range.

    Notes
    -----
    From the published model and its program: the *head* of twenty estimates has 89 % of the jobs. It is the
    maximum, the values that are popular everywhere, and round values below the maximum. Their shares fall
    exponentially with the popularity rank, the maximum having rank 1 and the rest of the head's share;
    which time has which rank is drawn from the ranks in the four logs of the paper. The *tail* has as many
    further values as logs of that length have, denser among short times, with shares by a power law.

    Simplified: shares become whole jobs by largest remainders (the program gives each value at least one
    job and then evens out); a known share of the maximum scales the other head shares, and further known
    values cannot be given; where twenty values do not fit under the maximum, the ranks close up; and with
    under 200 jobs, for which the program is not made, there is no tail.

    Examples
    --------
    >>> values, counts = estimate_histogram(10_000, np.random.default_rng(1), maximum=18 * 3600)
    >>> len(values), int(counts.sum()), float(values[-1] / 3600), int(counts[-1])
    (90, 10000, 18.0, 2173)
    >>> round(float(np.sort(counts)[-20:].sum() / 10_000), 2)
    0.89
    """
    if not HOUR <= maximum < np.inf:
        raise SwflowError(f"estimates: the maximum must be at least an hour ({HOUR} s), not {maximum}")
    if maximum_share is not None and not 0 < maximum_share < HEAD_SHARE:
        raise SwflowError(
            f"estimates: the share of the maximum must be above 0 and below {HEAD_SHARE}, not {maximum_share}"
        )
    head = _head_times(maximum)
    different = int(np.interp(jobs, *DIFFERENT_ESTIMATES) + 0.5)
    tail = _tail_times(maximum, different, head)
    head_share = HEAD_SHARE if len(tail) else 1.0
    ranks = _popularity(len(head), rng)
    values = np.array(head + tail, dtype=float)
    shares = np.concatenate(
        [
            _head_shares(len(head), maximum_share)[ranks - 1] * (head_share / HEAD_SHARE),
            rng.permutation(_tail_shares(len(tail))) * (1 - head_share),
        ]
    )
    counts = _whole(shares, jobs)
    used = np.flatnonzero((counts > 0) | (values == values[0]))  # the maximum stays, as a bound
    order = used[np.argsort(values[used])]
    return values[order], counts[order]


def _head_times(maximum: float) -> list[float]:
    """Return the popular estimates: the maximum first, then the others by length."""
    others = {float(time) for time in COMMON_ESTIMATES if time < maximum}
    for step in ROUND_STEPS:
        for multiple in range(int(maximum // step), 0, -1):
            if len(others) < HEAD - 1 and multiple * step < maximum:
                others.add(float(multiple * step))
    return [float(maximum), *sorted(others)]


def _head_shares(size: int, maximum_share: float | None) -> np.ndarray:
    """Return the head's shares of the jobs in the order of popularity; they add up to `HEAD_SHARE`."""
    a, b, c = HEAD_SIZE
    others = (a * np.exp(b * np.arange(2, size + 1)) + c) / 100
    if maximum_share is None:
        return np.concatenate([[HEAD_SHARE - others.sum()], others])
    return np.concatenate([[maximum_share], others * (HEAD_SHARE - maximum_share) / others.sum()])


def _popularity(size: int, rng: np.random.Generator) -> np.ndarray:
    """
    Draw the popularity rank of each of the head's estimates, the maximum first, then by length.

    Going up the times, an estimate may take any rank that an estimate up to this place has in one of the
    logs; the better of two draws is taken. A rank that no later place has in any log is taken at once.
    """
    last_place = [int(np.argwhere(np.equal(POPULARITY_RANKS, rank))[-1, 0]) for rank in range(1, HEAD + 1)]
    chosen = [1]
    for place in range(1, HEAD):
        pool = [rank for rank in POPULARITY_RANKS[: place + 1].ravel().tolist() if rank not in chosen]
        due = [rank for rank in range(1, HEAD + 1) if rank not in chosen and last_place[rank - 1] <= place]
        chosen.append(due[0] if due else min(pool[i] for i in rng.integers(len(pool), size=2)))
    return np.argsort(np.argsort(chosen[:size])) + 1


def _tail_times(maximum: float, different: int, head: list[float]) -> list[float]:
    """Return the unpopular estimates: whole minutes, moved off by a few seconds if those are taken."""
    size = different - len(head)
    p, q = TAIL_TIMES
    a = 1 + p * float(max(different, 1)) ** q
    times: list[float] = []
    taken = set(head)
    for rank in range(1, size + 1):
        x = rank / size
        minute = round((a - 1) * x / (a - x) * maximum / MINUTE) * MINUTE
        free = [minute + o for o in OFFSETS if minute + o not in taken and 0 < minute + o < maximum]
        if free:
            times.append(float(free[0]))
            taken.add(free[0])
    return times


def _tail_shares(size: int) -> np.ndarray:
    """Return the tail's shares of its jobs in the order of popularity; they add up to 1."""
    shares = np.arange(HEAD + 1.0, HEAD + 1.0 + size) ** TAIL_SIZE_POWER
    return shares / shares.sum() if size else shares


def _whole(shares: np.ndarray, total: int) -> np.ndarray:
    """Turn shares into whole numbers that add up to the total, the largest remainders rounded up."""
    exact = shares * (total / shares.sum())
    counts = np.floor(exact).astype(np.int64)
    up = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[up] += 1
    return counts


class _Cards(NamedTuple):
    """Run times and estimates, which fall, none below its run time, and draws from [0, 1); all of shape (jobs,)."""

    run: np.ndarray
    estimates: np.ndarray
    draws: np.ndarray


def _deal(cards: _Cards) -> int:
    """Shuffle estimates in place so that each is at least the run time at its place."""
    run, estimates, draws = cards.run, cards.estimates, cards.draws
    enough = 0  # the last place whose estimate is long enough for the job
    for job in range(len(run)):
        while enough < len(run) - 1 and run[job] <= estimates[enough + 1]:
            enough += 1
        other = job + int(draws[job] * (enough - job + 1))
        estimates[job], estimates[other] = estimates[other], estimates[job]
    return 0


_DEAL = Kernel(_deal)
