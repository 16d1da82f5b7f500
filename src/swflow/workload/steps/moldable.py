"""The step `moldable`: add the shapes (processors, run time) in which each job could run (Cirne and Berman)."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.table import Workload, require_known
from swflow.workload.models.downey import largest_useful, speedup

#: Uniform-log distribution of the fewest processors of a job, ``cdf(x) = slope * log2(x) + intercept`` (section 3.2).
MINIMUM = (0.06920, 0.6279)

#: Share of jobs with one request, and the uniform-log distribution of the requests of the others (section 3.3).
ONE_REQUEST = 0.05
REQUESTS = (0.1918, 0.1876)

#: Joint uniform-log distribution of the fewest processors x and the average parallelism y (section 4.1):
#: ``cdf(x, y) = JOINT[0] * log2(x) * log2(y) + JOINT[1] * log2(x) + JOINT[2] * log2(y) + JOINT[3]``.
JOINT = (0.009548, -0.01877, 0.07468, -0.009198)

#: Mean and standard deviation of Downey's sigma, a normal distribution (section 4.2).
VARIANCE = (1.209, 1.132)

#: How values of sigma below 0, which have no meaning, are avoided. ``clipped`` values become 0, a linear speedup: at
#: every value from 0 on, the distribution function is the stated one. A ``truncated`` distribution has other values.
SIGMAS = ("clipped", "truncated")

#: Type of the column ``shapes``: the possible processors of a job, with the run time (seconds) for each.
SHAPES = pl.List(pl.Struct({"processors": pl.Int64(), "run_time": pl.Float64()}))


@dataclass(frozen=True)
class JobParameters:
    """Parameters that the model draws for each job."""

    minimum: np.ndarray  # c_min: the fewest processors that the job can run on
    average_parallelism: np.ndarray  # Downey's A, at least c_min
    variance: np.ndarray  # Downey's sigma, at least 0
    requests: np.ndarray  # c_u: number of sizes that the job's user is willing to request


def moldable(
    workload: Workload,
    rng: np.random.Generator,
    *,
    pb: float | None = None,
    keep_recorded: bool = True,
    sigma: str = "clipped",
) -> Workload:
    """
    Add to every job the shapes in which it could run, by the model of Cirne and Berman.

    `draw_parameters` draws the parameters of a job. The job can use c_min to c_max processors
    (`swflow.workload.models.downey.largest_useful`), up to the size of the machine. From this range, v different
    sizes are drawn, ``v = min(c_max - c_min + 1, c_u)``. Each is moved to the nearest power of two in the range with
    probability ``pb``, to the smaller one if two are equally near; equal sizes are merged. With Downey's speedup S,
    the run time on n' processors is ``run_time * S(n) / S(n')``, where n is the recorded size.

    As in the paper, the parameters do not depend on the recorded size, which can therefore lie outside of c_min to
    c_max. Downey's S is defined there, too: from 1 processor on, and it equals A beyond c_max.

    Parameters
    ----------
    pb : float, optional
        Probability, from 0 to 1, that a size is moved to a power of two (default: the share of powers of two among
        the workload's recorded sizes).
    keep_recorded : bool
        Whether the recorded shape is one of the v shapes, with its recorded run time. Otherwise it is present only by
        chance, or if the machine has fewer than c_min processors.
    sigma : {'clipped', 'truncated'}
        How Downey's sigma, which is normal in the paper, is kept from being negative: by setting negative values to 0,
        or by a distribution that is truncated at 0.

    Returns
    -------
    Workload
        Workload with the columns ``shapes`` (of type `SHAPES`, by ascending processors), ``minimum_processors``,
        ``average_parallelism``, ``parallelism_variance`` and ``requests``. Its new history entry has ``pb``,
        ``power_of_two_share``, ``shapes`` (their total number) and the numbers of jobs with one shape (``rigid``) and
        with a recorded size ``below_minimum`` or ``above_maximum``.

    Raises
    ------
    SwflowError
        If ``pb`` is not a probability, ``sigma`` is none of its values, a job's processors or run time is unknown, or
        a job is wider than the machine.

    References
    ----------
    W. Cirne, F. Berman, "A model for moldable supercomputer jobs", IPDPS 2001.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> from swflow.jobs.randomness import generator
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "processors": [4, 10], "run_time": [100.0, 60.0]})
    >>> molded = moldable(Workload(jobs, Machine.of(64), "tiny"), generator(10, "tiny", "moldable"), pb=0.5)
    >>> for shape in molded.jobs["shapes"][1]:
    ...     print(shape["processors"], round(shape["run_time"], 1))
    4 113.8
    8 69.0
    10 60.0
    16 46.5
    """
    if pb is not None and not 0 <= pb <= 1:
        raise SwflowError(f"moldable: pb: {pb}; expected a number from 0 to 1")
    if sigma not in SIGMAS:
        raise SwflowError(f"moldable: sigma: unknown value {sigma!r}{suggest(sigma, SIGMAS)}")
    jobs, machine = workload.jobs, workload.machine.processors
    remedy = "; drop them with clean (rules no-processors and unknown-run-time)"
    require_known(jobs, ("processors", "run_time"), f"moldable: {workload.name}", remedy)
    wide = jobs.filter(pl.col("processors") > machine)
    if wide.height:
        raise SwflowError(
            f"moldable: {workload.name}: {wide.height:,} jobs are wider than the machine, the first is job "
            f"{wide['job_id'][0]}; drop them with clean (rule wider-than-machine)"
        )
    recorded = jobs["processors"].to_numpy()
    share = power_of_two_share(recorded)
    pb = share if pb is None else pb
    drawn = draw_parameters(jobs.height, rng, sigma)
    maximum = np.floor(largest_useful(drawn.average_parallelism, drawn.variance)).astype(np.int64)
    sizes = draw_sizes(drawn, np.minimum(maximum, machine), recorded, pb, keep_recorded, rng)
    job, place = np.nonzero(sizes)
    chosen = sizes[job, place]
    parallelism, variance = drawn.average_parallelism, drawn.variance
    slower = speedup(recorded, parallelism, variance)[job] / speedup(chosen, parallelism[job], variance[job])
    run = slower * jobs["run_time"].to_numpy()[job]  # equals the recorded run time bit by bit at the recorded size
    shapes = pl.DataFrame({"job": job, "processors": chosen, "run_time": run})
    lists = shapes.group_by("job", maintain_order=True).agg(shapes=pl.struct("processors", "run_time"))
    per_job = np.count_nonzero(sizes, axis=1)
    entry = {
        "stage": "moldable",
        "read": jobs.height,
        "kept": jobs.height,
        "removed": {},
        "pb": pb,
        "power_of_two_share": share,
        "keep_recorded": keep_recorded,
        "sigma": sigma,
        "shapes": int(per_job.sum()),
        "rigid": int((per_job == 1).sum()),
        "below_minimum": int((recorded < drawn.minimum).sum()),
        "above_maximum": int((recorded > maximum).sum()),
    }
    return workload.with_jobs(
        jobs.with_columns(
            shapes=lists["shapes"].cast(SHAPES),
            minimum_processors=pl.Series(drawn.minimum),
            average_parallelism=pl.Series(parallelism),
            parallelism_variance=pl.Series(variance),
            requests=pl.Series(drawn.requests),
        ),
        entry,
    )


def power_of_two_share(processors: np.ndarray) -> float:
    """
    Return the share of sizes that are powers of two, 1 included: Table 1 of Cirne and Berman.

    Examples
    --------
    >>> power_of_two_share(np.array([1, 2, 3, 100]))
    0.5
    """
    return float(np.mean((processors & (processors - 1)) == 0)) if processors.size else 0.0


def draw_parameters(jobs: int, rng: np.random.Generator, sigma: str = "clipped") -> JobParameters:
    """
    Draw the parameters of jobs by inverting their distribution functions, with five random numbers per job.

    Numbers of processors and of requests are the drawn values rounded up to whole numbers, so that their distribution
    function has the stated values at every whole number. A c_u above 1 is at least 2. ``sigma`` is one of `SIGMAS`.

    Examples
    --------
    >>> drawn = draw_parameters(10_000, np.random.default_rng(1))
    >>> bool((drawn.average_parallelism >= drawn.minimum).all()), int(drawn.requests.max())
    (True, 19)
    """
    from scipy.special import ndtr, ndtri

    minimum = np.ceil(invert_uniform_log(rng.random(jobs), *MINIMUM)).astype(np.int64)
    parallelism = invert_joint_uniform_log(rng.random(jobs), minimum)
    mean, deviation = VARIANCE
    below_zero = ndtr(-mean / deviation) if sigma == "truncated" else 0.0
    variance = np.maximum(mean + deviation * ndtri(below_zero + rng.random(jobs) * (1 - below_zero)), 0.0)
    several = np.maximum(np.ceil(invert_uniform_log(rng.random(jobs), *REQUESTS)), 2).astype(np.int64)
    return JobParameters(minimum, parallelism, variance, np.where(rng.random(jobs) < ONE_REQUEST, 1, several))


def invert_uniform_log(shares: np.ndarray, slope: float, intercept: float) -> np.ndarray:
    """
    Invert the uniform-log distribution ``cdf(x) = slope * log2(x) + intercept``, from x = 1 to the x where it is 1.

    The result is the smallest such x; ``intercept`` is the probability of 1.

    Examples
    --------
    >>> invert_uniform_log(np.array([0.2, 0.6279, 0.8355]), 0.0692, 0.6279).round(2).tolist()
    [1.0, 1.0, 8.0]
    """
    return np.exp2(np.maximum(shares - intercept, 0.0) / slope)


def invert_joint_uniform_log(shares: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """
    Return the average parallelism A of jobs with the fewest processors c_min, from values of its distribution function.

    This conditional distribution and the stated distribution of c_min give the stated joint distribution. For ``c_min =
    1`` it is ``cdf(1, y) / P(c_min = 1)``, which reaches 1 at about 370. Above 1 it is the derivative of ``cdf(x, y)``
    by log2(x) over the density of c_min, ``(0.009548 log2(y) - 0.01877) / 0.06920``, which does not depend on c_min,
    starts at about 3.9, and reaches 1 at about 594. A draw below c_min becomes c_min. Unlike drawing again, this
    preserves the joint distribution function where it is meaningful, for ``x <= y``. A is rounded to six
    decimals: the last bits of a power depend on the processor that computes it, and they would decide between shapes
    that end at the same time.

    Examples
    --------
    >>> invert_joint_uniform_log(np.array([0.0, 0.0, 0.5, 1.0, 1.0]), np.array([1, 2, 42, 1, 2])).round(1).tolist()
    [1.1, 3.9, 48.2, 369.9, 593.6]
    """
    product, by_minimum, by_parallelism, rest = JOINT
    density, of_one = MINIMUM
    alone = (shares * of_one - rest) / by_parallelism
    more = (shares * density - by_minimum) / product
    return np.maximum(np.round(np.exp2(np.where(minimum == 1, alone, more)), 6), minimum)


def joint_cdf(minimum: np.ndarray, parallelism: np.ndarray) -> np.ndarray:
    """
    Return the stated joint distribution function of c_min and A, Figure 9 of Cirne and Berman.

    It is a distribution function for ``1 <= c_min <= A``, up to its intersection with that of c_min (A of about 370),
    except for a dip of less than 0.01 below 3.9 processors, where it decreases as c_min grows.

    Examples
    --------
    >>> joint_cdf(np.array([1, 8, 32]), np.array([32, 32, 64])).round(3).tolist()
    [0.364, 0.451, 0.631]
    """
    x, y = np.log2(minimum), np.log2(parallelism)
    return JOINT[0] * x * y + JOINT[1] * x + JOINT[2] * y + JOINT[3]


def draw_sizes(
    drawn: JobParameters,
    largest: np.ndarray,
    recorded: np.ndarray,
    pb: float,
    keep_recorded: bool,
    rng: np.random.Generator,
) -> np.ndarray:
    """
    Draw different sizes for each job; see `moldable`.

    ``drawn`` has c_min and c_u of each job, ``largest`` the largest number of processors that it can use on the
    machine, ``recorded`` its recorded size. The result has a row per job: its sizes in ascending order, filled up with
    zeros.
    """
    smallest = drawn.minimum
    count = np.clip(largest - smallest + 1, 0, drawn.requests)
    whole = np.zeros(recorded.size, bool)  # whether the recorded size is in the range; it is then set, not drawn
    if keep_recorded:
        whole = (smallest <= recorded) & (recorded <= largest)
        count = np.maximum(count - 1, 0)
    sizes = np.zeros((recorded.size, int(count.max(initial=0)) + 1), np.int64)
    # Floyd's algorithm: draw k is from the first k values, and becomes the last of these if it was drawn before.
    candidates = np.maximum(largest - smallest + 1, 0) - whole
    for draw in range(sizes.shape[1] - 1):
        job = np.flatnonzero(count > draw)
        last = candidates[job] - count[job] + draw
        offset = np.floor(rng.random(job.size) * (last + 1)).astype(np.int64)
        value = smallest[job] + offset
        before = (sizes[job, :draw] == value[:, None]).any(axis=1)
        sizes[job, draw] = np.where(before, smallest[job] + last, value)
    drawn_at = sizes > 0
    sizes += drawn_at & (sizes >= recorded[:, None]) & whole[:, None]
    job, place = np.nonzero(drawn_at & (rng.random(sizes.shape) < pb))
    sizes[job, place] = _nearest_power_of_two(sizes[job, place], smallest[job], largest[job])
    empty = count == 0
    sizes[:, -1] = np.where(keep_recorded | empty, recorded, 0)
    sizes.sort(axis=1)
    sizes[:, 1:][sizes[:, 1:] == sizes[:, :-1]] = 0
    return sizes


def _nearest_power_of_two(sizes: np.ndarray, smallest: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Return the nearest power of two from ``smallest`` to ``largest``, or the size if there is none."""
    below = np.int64(1) << (np.frexp(sizes)[1] - 1).astype(np.int64)
    above = 2 * below
    may_fall, may_rise = below >= smallest, above <= largest
    falls = may_fall & (~may_rise | (sizes - below <= above - sizes))
    return np.where(falls, below, np.where(may_rise, above, sizes))
