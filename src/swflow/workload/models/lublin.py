"""The workload model of Lublin and Feitelson: sizes, run times and arrivals of rigid parallel jobs."""

import math
from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import log_fields
from swflow.workload.models.estimates import DEFAULT_MAXIMUM, modal_estimates

#: Values of the options ``classes`` and ``estimates`` of `generate_lublin`.
CLASSES = ("batch-and-interactive", "combined")
ESTIMATES = ("tsafrir", "exact", "none")

#: Processors of the machine to which the published parameters of job size apply.
PUBLISHED_PROCESSORS = 128

#: Logarithms of the limits (45 hours and 5 days, in seconds) above which the authors' program draws again.
LONGEST_LOG_RUN_TIME = 12.0
LONGEST_LOG_GAP = 13.0

SECONDS_A_DAY = 86400
SLOTS_A_DAY = 48
SECONDS_A_SLOT = SECONDS_A_DAY // SLOTS_A_DAY

#: Half hour at which the cyclic day starts (5:00 to 5:30), counted from 1 at midnight.
FIRST_SLOT = 11

#: Number of users of a generated workload if users are requested. The model has no users; this is a choice of swflow.
USERS = 200


@dataclass(frozen=True)
class LublinParameters:
    """
    The parameters of one class of jobs.

    Gamma distributions have a shape and a scale (their mean is shape times scale). Three of them are of natural
    logarithms: of run times, and of gaps between arrivals in the rush hours, in seconds.

    References
    ----------
    U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
    J. Parallel Distrib. Comput. 63(11), 2003. The values are those of the program that the authors published with the
    paper.
    """

    serial_probability: float  # share of jobs of one processor
    power_of_two_probability: float  # share of *all* jobs that are parallel and rounded to a power of two
    # the two stages, [low, medium] and [medium, high], of the uniform distribution of log2(size) of parallel jobs, on a
    # machine of 128 processors, and the probability of the first stage
    log2_low: float
    log2_medium: float
    log2_high: float
    low_probability: float
    run_time_shape_1: float
    run_time_scale_1: float
    run_time_shape_2: float  # shape of the longer jobs
    run_time_scale_2: float
    mixture_slope: float  # the first gamma's probability is slope * size + intercept, clipped to [0, 1]
    mixture_intercept: float
    gap_shape: float
    gap_scale: float
    gap_ratio: float  # factor on the shape that turns the gaps of the rush hours into gaps of the whole day
    cycle_shape: float  # the gamma distribution's mass in a half hour is that half hour's share of arrivals
    cycle_scale: float


#: The published parameters by class: batch jobs (up to the whole machine, run times of minutes or of about 6 hours),
#: interactive jobs (up to a third of the machine, run times of seconds to minutes), and all jobs together, for machines
#: whose logs do not distinguish the two.
_PUBLISHED = {
    "serial_probability": (0.2927, 0.1541, 0.244),
    "power_of_two_probability": (0.6686, 0.625, 0.576),
    "log2_low": (1.2, 1, 0.8),
    "log2_medium": (5, 3, 4.5),
    "log2_high": (7, 5.5, 7),
    "low_probability": (0.875, 0.705, 0.86),
    "run_time_shape_1": (6.57, 3.8351, 4.2),
    "run_time_scale_1": (0.823, 0.6605, 0.94),
    "run_time_shape_2": (639.1, 7.073, 312),
    "run_time_scale_2": (0.0156, 0.6856, 0.03),
    "mixture_slope": (-0.003, -0.0118, -0.0054),
    "mixture_intercept": (0.6986, 0.9156, 0.78),
    "gap_shape": (6.0415, 6.5510, 10.2303),
    "gap_scale": (0.8531, 0.6621, 0.4871),
    "gap_ratio": (1.0519, 0.9797, 1.0225),
    "cycle_shape": (6.1271, 8.9186, 8.1737),
    "cycle_scale": (5.2740, 3.6680, 3.9631),
}
BATCH, INTERACTIVE, COMBINED = (
    LublinParameters(**{name: values[place] for name, values in _PUBLISHED.items()}) for place in range(3)
)


def generate_lublin(
    jobs: int,
    processors: int,
    rng: np.random.Generator,
    *,
    classes: str = "batch-and-interactive",
    load: float | None = None,
    estimates: str = "tsafrir",
    users: bool = False,
) -> pl.DataFrame:
    """
    Generate a workload by the model of Lublin and Feitelson.

    Parameters
    ----------
    processors : int
        Processors of the machine. The published sizes apply to 128 processors. On other machines, the range of
        log2(size) is shifted by ``log2(processors / 128)``, except its lower bound, which keeps the distance between
        its two stages. No job is wider than the machine, and powers of two remain powers of two: a wider draw becomes
        the largest possible size.
    classes : {"batch-and-interactive", "combined"}
        Two classes that arrive independently of each other, or one class for all jobs.
    load : float, optional
        Offered load, ``sum(size * run time) / (processors * last submit time)`` (default: as the model gives it). All
        gaps of the arrival process are multiplied by one factor *before* the daily cycle is applied. The cycle, the
        sizes, the run times and the order within a class therefore stay unchanged.
    estimates : {"tsafrir", "exact", "none"}
        Source of the requested time: `swflow.workload.models.estimates.modal_estimates`, the run time, or unknown.
    users : bool
        Assign each job one of `USERS` users, with shares proportional to 1, 1/2, 1/3 ... (Zipf's law with exponent
        1). The model has no users; this is a choice of swflow. Ranking the users of KTH-SP2, SDSC-SP2 and HPC2N by
        jobs gives slopes between -0.99 and -1.06. Users are drawn independently: sessions and repeated jobs of one
        user are not modeled.

    Returns
    -------
    polars.DataFrame
        The columns of `swflow.jobs.table.SWF_FIELDS`, null where unknown: `job_id` from 1 in the order of
        arrival, `submit_time` in whole seconds since a midnight, `run_time` in whole seconds (at least 1),
        `requested_processors` and `allocated_processors`, `requested_time`, `status` 1, `user_id`,
        and `queue_id` 0 (interactive) or 1 (batch), unknown for combined jobs.

    Raises
    ------
    SwflowError
        If a number is out of range or a choice is unknown.

    Notes
    -----
    The model is that of U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers: modeling the
    characteristics of rigid jobs", J. Parallel Distrib. Comput. 63(11), 2003, as implemented in its authors' program:
    run times over exp(12) s and gaps over exp(13) s are drawn again, and run times are truncated to whole seconds.
    One thing differs: the program also truncates every gap to whole seconds but does not correct the daily cycle,
    which therefore shifts by about half a second per job (by 1 day in 170,000 jobs). Here, arrivals are exact, and
    only the submit times are truncated.

    Examples
    --------
    >>> jobs = generate_lublin(1000, 128, np.random.default_rng(1), load=0.7)
    >>> work = (jobs["requested_processors"] * jobs["run_time"]).sum()
    >>> round(work / (128 * jobs["submit_time"].max()), 3)
    0.7
    >>> jobs["queue_id"].unique().sort().to_list()
    [0, 1]
    """
    _check(jobs, processors, classes, load, estimates)
    kinds = [COMBINED] if classes == "combined" else [INTERACTIVE, BATCH]
    of_kinds = [_arrival_points(kind, jobs, rng) for kind in kinds]
    times = np.concatenate([_times_at(kind, mine) for kind, mine in zip(kinds, of_kinds, strict=True)])
    earliest = np.argsort(times, kind="stable")[:jobs]
    points, kind_of_job = np.concatenate(of_kinds)[earliest], earliest // jobs
    size = np.empty(jobs, dtype=np.int64)
    run_time = np.empty(jobs)
    for number, kind in enumerate(kinds):
        mine = kind_of_job == number
        size[mine] = _sizes(kind, int(mine.sum()), processors, rng)
        run_time[mine] = _run_times(kind, size[mine], rng)
    if load is not None:
        points *= _stretch(points, kind_of_job, kinds, float(size @ run_time) / (processors * load))
    arrival = np.empty(jobs)
    for number, kind in enumerate(kinds):
        mine = kind_of_job == number
        arrival[mine] = _times_at(kind, points[mine])
    order = np.argsort(arrival, kind="stable")
    user = _users(jobs, rng) if users else None
    run_time = run_time[order]
    requested = run_time if estimates == "exact" else None
    if estimates == "tsafrir":
        requested = modal_estimates(run_time, rng)
    known = {
        "job_id": np.arange(1, jobs + 1),
        "submit_time": np.floor(arrival[order]),
        "run_time": run_time,
        "allocated_processors": size[order],
        "requested_processors": size[order],
        "requested_time": requested,
        "status": np.ones(jobs, dtype=np.int64),
        "user_id": user,
        "queue_id": None if classes == "combined" else kind_of_job[order],
    }
    return log_fields(known)


def lublin_header(
    jobs: int,
    processors: int,
    *,
    seed: int | None = None,
    classes: str = "batch-and-interactive",
    load: float | None = None,
    estimates: str = "tsafrir",
    users: bool = False,
) -> dict[str, list[str]]:
    """
    Return the SWF header of a workload that `generate_lublin` generated with these arguments.

    ``seed`` is that of the generator. The clock starts at midnight, UTC.

    Examples
    --------
    >>> header = lublin_header(1000, 128, seed=1)
    >>> header["MaxProcs"], header["Queue"]
    (['128'], ['0 interactive jobs', '1 batch jobs'])
    """
    _check(jobs, processors, classes, load, estimates)
    combined = classes == "combined"
    kinds = {"combined": COMBINED} if combined else {"interactive": INTERACTIVE, "batch": BATCH}
    header = {
        "Version": ["2.2"],
        "Computer": ["synthetic"],
        "Installation": ["none: generated by swflow"],
        "MaxJobs": [str(jobs)],
        "MaxRecords": [str(jobs)],
        "Preemption": ["No"],
        "UnixStartTime": ["0"],
        "TimeZoneString": ["UTC"],
        "MaxNodes": [str(processors)],
        "MaxProcs": [str(processors)],
        "MaxRuntime": [str(int(math.exp(LONGEST_LOG_RUN_TIME)))],
    }
    if not combined:
        header["MaxQueues"] = ["2"]
        header["Queues"] = ["the class of a job in the model"]
        header["Queue"] = ["0 interactive jobs", "1 batch jobs"]  # convention of the Standard Workload Format
    header["Note"] = [
        'Model: U. Lublin, D. G. Feitelson, "The workload on parallel supercomputers: modeling the '
        'characteristics of rigid jobs", J. Parallel Distrib. Comput. 63(11), 2003',
        f"Classes: {classes}; load: {'as the model gives it' if load is None else load}; "
        f"seed: {'unknown' if seed is None else seed}",
        *(f"Parameters, {name}: {_listed(kind)}" for name, kind in kinds.items()),
        f"Requested times: {_ESTIMATES_NOTE[estimates]}",
        f"Users: {f'{USERS}, by a Zipf law (not part of the model)' if users else 'unknown'}",
    ]
    return header


_ESTIMATES_NOTE = {
    "tsafrir": 'by D. Tsafrir, Y. Etsion, D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005, '
    f"up to {DEFAULT_MAXIMUM:.0f} s",
    "exact": "the run times",
    "none": "unknown",
}


def daily_weights(parameters: LublinParameters) -> np.ndarray:
    """
    Return the arrivals in each half hour of the day, from midnight on, relative to the mean half hour: shape (48,).

    Half hours are counted from 1 at midnight. Those before the 11th belong to the day before, as 49 to 58. The weight
    of half hour i is the mass of the cycle's gamma distribution in [i - 0.5, i + 0.5].

    Examples
    --------
    >>> weights = daily_weights(BATCH)
    >>> int(weights.argmax()), int(weights.argmin())  # after 13:00 and before 5:00
    (26, 9)
    """
    from scipy.special import gammainc

    slots = np.arange(FIRST_SLOT, FIRST_SLOT + SLOTS_A_DAY)
    edges = gammainc(parameters.cycle_shape, (np.append(slots, slots[-1] + 1) - 0.5) / parameters.cycle_scale)
    weights = np.empty(SLOTS_A_DAY)
    weights[(slots - 1) % SLOTS_A_DAY] = np.diff(edges)
    return weights / weights.mean()


def _check(jobs: int, processors: int, classes: str, load: float | None, estimates: str) -> None:
    if jobs < 1:
        raise SwflowError(f"lublin: jobs: {jobs}; expected at least 1")
    if processors < 1:
        raise SwflowError(f"lublin: processors: {processors}; expected at least 1")
    if classes not in CLASSES:
        raise SwflowError(f"lublin: unknown classes {classes!r}; choose one of {', '.join(CLASSES)}")
    if load is not None and not 0 < load < math.inf:
        raise SwflowError(f"lublin: load: {load}; expected a number above 0, such as 0.7")
    if estimates not in ESTIMATES:
        raise SwflowError(f"lublin: unknown estimates {estimates!r}; choose one of {', '.join(ESTIMATES)}")


def _listed(parameters: LublinParameters) -> str:
    return ", ".join(f"{field.name} {getattr(parameters, field.name)}" for field in fields(parameters))


def _sizes(parameters: LublinParameters, jobs: int, processors: int, rng: np.random.Generator) -> np.ndarray:
    """Draw job sizes: 1, or 2 to the power of a two-stage uniform number, which may be rounded."""
    low, medium, high = _size_range(parameters, processors)
    kind = rng.random(jobs)
    first = rng.random(jobs) < parameters.low_probability
    stage_low, stage_high = np.where(first, low, medium), np.where(first, medium, high)
    log2_size = stage_low + rng.random(jobs) * (stage_high - stage_low)
    power = kind < parameters.serial_probability + parameters.power_of_two_probability
    widest_power = math.floor(math.log2(processors))
    log2_size[power] = np.minimum(np.floor(log2_size[power] + 0.5), widest_power)
    size = np.minimum(np.floor(np.exp2(log2_size) + 0.5), processors).astype(np.int64)
    size[kind < parameters.serial_probability] = 1
    return size


def _size_range(parameters: LublinParameters, processors: int) -> tuple[float, float, float]:
    """Return low, medium and high of log2(size) on a machine; on very small machines the lower stage vanishes."""
    whole = math.log2(processors)
    shift = whole - math.log2(PUBLISHED_PROCESSORS)
    high = max(parameters.log2_high + shift, min(1.0, whole))
    low = min(parameters.log2_low, high)
    return low, min(max(parameters.log2_medium + shift, low), high), high


def _run_times(parameters: LublinParameters, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw run times in whole seconds from the hyper-gamma distribution of their logarithm, given the size."""
    probability = parameters.mixture_slope * size + parameters.mixture_intercept
    log_run_time = np.empty(len(size))
    todo = np.arange(len(size))
    while len(todo):  # run times above the limit are drawn again, including the choice of the gamma distribution
        first = rng.random(len(todo)) < probability[todo]
        shape = np.where(first, parameters.run_time_shape_1, parameters.run_time_shape_2)
        scale = np.where(first, parameters.run_time_scale_1, parameters.run_time_scale_2)
        log_run_time[todo] = rng.gamma(shape, scale)
        todo = todo[log_run_time[todo] > LONGEST_LOG_RUN_TIME]
    return np.floor(np.exp(log_run_time))


def _arrival_points(parameters: LublinParameters, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """
    Draw the arrivals of one class in points of the daily cycle, 48 a day.

    A half hour of weight w has w points: the same gap in points takes longer at night.
    """
    shape = parameters.gap_shape * parameters.gap_ratio
    log_gap = rng.gamma(shape, parameters.gap_scale, jobs)
    while len(todo := np.flatnonzero(log_gap > LONGEST_LOG_GAP)):
        log_gap[todo] = rng.gamma(shape, parameters.gap_scale, len(todo))
    return np.cumsum(np.exp(log_gap)) / SECONDS_A_SLOT


def _cycle(parameters: LublinParameters) -> np.ndarray:
    """Return the points of the day that elapse until each half hour: shape (49,)."""
    points = np.concatenate([[0.0], np.cumsum(daily_weights(parameters))])
    points[-1] = SLOTS_A_DAY
    return points


def _times_at(parameters: LublinParameters, points: np.ndarray) -> np.ndarray:
    """Convert points to seconds since the first midnight."""
    return seconds_at(_cycle(parameters), points)


def seconds_at(cycle: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Convert points to seconds; ``cycle`` has the points that elapse until each half hour of a day or week."""
    seconds = np.arange(len(cycle)) * float(SECONDS_A_SLOT)
    number, rest = np.divmod(points, cycle[-1])
    return number * seconds[-1] + np.interp(rest, cycle, seconds)


def points_at(cycle: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Convert seconds to points: the inverse of `seconds_at`."""
    edges = np.arange(len(cycle)) * float(SECONDS_A_SLOT)
    number, rest = np.divmod(seconds, edges[-1])
    return number * cycle[-1] + np.interp(rest, edges, cycle)


def _stretch(points: np.ndarray, kind_of_job: np.ndarray, kinds: list[LublinParameters], last: float) -> float:
    """Return the factor on all points that puts the last arrival of any class at a given time."""
    return min(
        float(points_at(_cycle(kind), np.array(last))) / points[kind_of_job == number].max()
        for number, kind in enumerate(kinds)
        if (kind_of_job == number).any()
    )


def _users(jobs: int, rng: np.random.Generator) -> np.ndarray:
    """Draw each job's user, numbered from 1, by Zipf's law with exponent 1."""
    share = np.cumsum(1 / np.arange(1, USERS + 1))
    return np.searchsorted(share / share[-1], rng.random(jobs), side="right") + 1
