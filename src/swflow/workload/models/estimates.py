"""Generate realistic requested times: few round values, many at the maximum, none below the run time."""

import numpy as np

from swflow.errors import SwflowError

MINUTE = 60
HOUR = 60 * MINUTE

#: Default of the maximal estimate: longer than any run time of the Lublin model (a choice of swflow).
DEFAULT_MAXIMUM = 48.0 * HOUR

#: Number of popular estimates (the head), and the share of the jobs that use them.
HEAD = 20
HEAD_SHARE = 0.89

#: The 15 estimates that are among the 20 most popular ones in all four logs of the paper.
COMMON_ESTIMATES = (
    *(minutes * MINUTE for minutes in (5, 10, 15, 20, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)),
)

#: Steps of the estimates that complete the head: multiples, in this order, each from the maximum downwards.
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

#: Interpolation points of the number of different estimates, by the number of jobs.
DIFFERENT_ESTIMATES = ((0, 20, 200, 1000, 10_000, 70_000, 250_000), (0, 10, 20, 35, 90, 340, 565))

#: Times of the tail: (a - 1) x / (a - x) of the maximum at relative rank x; a = 1 + p K^q for K estimates.
TAIL_TIMES = (12.1039, -0.6026)

#: Offset, in seconds, of a tail estimate whose minute is already in use.
OFFSETS = (0, 30, -30, 20, -20, 10, -10)


def modal_estimates(run_times: np.ndarray, rng: np.random.Generator, *, maximum: float = DEFAULT_MAXIMUM) -> np.ndarray:
    """
    Generate a requested time for each job by the model of Tsafrir, Etsion and Feitelson.

    The estimates are seconds, never below the run time. ``maximum`` is the longest one that the machine permits, at
    least 1 hour; the estimate of a job that ran longer is its run time. The same state of the random generator gives
    the same estimates.

    Notes
    -----
    The estimates of all jobs are drawn first (`estimate_histogram`) and then assigned, from the longest job to the
    shortest. Each job gets a random unused estimate that is long enough, so any estimate can belong to any shorter
    job. The model is that of D. Tsafrir, Y. Etsion, D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005,
    with the parameters of the program that its authors published.

    Differences from the published program: the program stops if there are more long jobs than long estimates. Here,
    an estimate that is too short is raised to the next one in use, which adds some long estimates to the histogram.
    The program truncates jobs that ran longer than the maximum; here, they keep their run time. Estimates do not
    depend on users. Logs show a peak at an accuracy of 1 from jobs that were killed at the end of their estimate;
    here, such jobs exist only if the run times contain them.

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
        raise SwflowError("estimates: unknown or negative run times; expected known ones; remove these jobs")
    values, counts = estimate_histogram(len(run_times), rng, maximum=maximum)
    longest_first = np.argsort(-run_times, kind="stable")
    run = np.minimum(run_times[longest_first], values[-1])
    dealt = np.repeat(values, counts)[::-1].copy()
    dealt = np.where(dealt < run, values[np.searchsorted(values, run)], dealt)
    estimates = np.empty(len(run))
    estimates[longest_first] = _shuffled(run.tolist(), dealt.tolist(), rng.random(len(run)).tolist())
    return np.maximum(estimates, run_times)


def estimate_histogram(
    jobs: int, rng: np.random.Generator, *, maximum: float = DEFAULT_MAXIMUM
) -> tuple[np.ndarray, np.ndarray]:
    """
    Draw the different estimates of a workload, and the number of jobs with each.

    The random generator assigns the popularity of the estimates, which are in seconds, from the shortest to the
    ``maximum``.

    Notes
    -----
    From the published model and its program: the *head* of 20 estimates covers 89 % of the jobs. It consists of the
    maximum, the values that are popular in all logs, and round values below the maximum. The shares fall
    exponentially with the popularity rank, except that of the maximum, which has rank 1 and the remaining share of
    the head. The assignment of times to ranks is drawn from the ranks in the four logs of the paper. The number of
    further values, the *tail*, follows that of logs with as many jobs. Tail values are denser among short times, and
    their shares follow a power law.

    Simplifications: shares are rounded to whole jobs by largest remainders, while the program gives each value at least
    1 job and then compensates. Known shares of some values are not supported. If fewer than 20 values fit below the
    maximum, the ranks close up. Below 200 jobs, for which the program is not designed, there is no tail.

    Examples
    --------
    >>> values, counts = estimate_histogram(10_000, np.random.default_rng(1), maximum=18 * 3600)
    >>> len(values), int(counts.sum()), float(values[-1] / 3600), int(counts[-1])
    (90, 10000, 18.0, 2173)
    >>> round(float(np.sort(counts)[-20:].sum() / 10_000), 2)
    0.89
    """
    if not HOUR <= maximum < np.inf:
        raise SwflowError(f"estimates: maximum: {maximum}; expected at least {HOUR} s")
    head = _head_times(maximum)
    different = int(np.interp(jobs, *DIFFERENT_ESTIMATES) + 0.5)
    tail = _tail_times(maximum, different, head)
    head_share = HEAD_SHARE if len(tail) else 1.0
    ranks = _popularity(len(head), rng)
    values = np.array(head + tail, dtype=float)
    shares = np.concatenate(
        [
            _head_shares(len(head))[ranks - 1] * (head_share / HEAD_SHARE),
            rng.permutation(_tail_shares(len(tail))) * (1 - head_share),
        ]
    )
    counts = _whole(shares, jobs)
    used = np.flatnonzero((counts > 0) | (values == values[0]))  # the maximum stays, as a bound
    order = used[np.argsort(values[used])]
    return values[order], counts[order]


def _head_times(maximum: float) -> list[float]:
    """Return the popular estimates: the maximum first, then the others in ascending order."""
    others = {float(time) for time in COMMON_ESTIMATES if time < maximum}
    for step in ROUND_STEPS:
        for multiple in range(int(maximum // step), 0, -1):
            if len(others) < HEAD - 1 and multiple * step < maximum:
                others.add(float(multiple * step))
    return [float(maximum), *sorted(others)]


def _head_shares(size: int) -> np.ndarray:
    """Return the head's shares of the jobs by popularity; they sum to `HEAD_SHARE`."""
    a, b, c = HEAD_SIZE
    others = (a * np.exp(b * np.arange(2, size + 1)) + c) / 100
    return np.concatenate([[HEAD_SHARE - others.sum()], others])


def _popularity(size: int, rng: np.random.Generator) -> np.ndarray:
    """
    Draw the popularity rank of each estimate of the head: the maximum first, then the others in ascending order.

    In ascending order, each estimate draws two of the ranks that an estimate up to this position has in one of the
    logs, and takes the better. A rank that no later position has in any log is assigned at once.
    """
    last_place = [int(np.argwhere(np.equal(POPULARITY_RANKS, rank))[-1, 0]) for rank in range(1, HEAD + 1)]
    chosen = [1]
    for place in range(1, HEAD):
        pool = [rank for rank in POPULARITY_RANKS[: place + 1].ravel().tolist() if rank not in chosen]
        due = [rank for rank in range(1, HEAD + 1) if rank not in chosen and last_place[rank - 1] <= place]
        chosen.append(due[0] if due else min(pool[i] for i in rng.integers(len(pool), size=2)))
    return np.argsort(np.argsort(chosen[:size])) + 1


def _tail_times(maximum: float, different: int, head: list[float]) -> list[float]:
    """Return the unpopular estimates: whole minutes, offset by seconds if already in use."""
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
    """Return the tail's shares of its jobs by popularity; they sum to 1."""
    shares = np.arange(HEAD + 1.0, HEAD + 1.0 + size) ** TAIL_SIZE_POWER
    return shares / shares.sum() if size else shares


def _whole(shares: np.ndarray, total: int) -> np.ndarray:
    """Round shares to whole numbers with the given sum, by largest remainders."""
    exact = shares * (total / shares.sum())
    counts = np.floor(exact).astype(np.int64)
    up = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[up] += 1
    return counts


def _shuffled(run: list[float], estimates: list[float], draws: list[float]) -> list[float]:
    """
    Shuffle estimates in place and return them; each stays at least the run time at its position.

    Run times and estimates are descending, no estimate is below its run time, and the draws are from [0, 1).
    """
    enough, last = 0, len(run) - 1  # the last position whose estimate is long enough for the job
    for job, length in enumerate(run):
        while enough < last and length <= estimates[enough + 1]:
            enough += 1
        other = job + int(draws[job] * (enough - job + 1))
        estimates[job], estimates[other] = estimates[other], estimates[job]
    return estimates
