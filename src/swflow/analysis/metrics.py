"""Metrics of a run (one row per run), the correlations of load with performance, and the fairness among users."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from swflow.analysis.heatmap import ABOVE_1
from swflow.analysis.saturation import is_saturated
from swflow.errors import SwflowError
from swflow.jobs.busy import use_of

#: Columns summarized by mean, median and 95th percentile.
MEASURES = ("wait_time", "response_time", "slowdown", "bounded_slowdown")

#: The bound of the bounded slowdown (s) in the tables of Guim et al.
GUIM_BOUND = 60.0

#: Measures whose correlation with load is computed.
CORRELATED = ("slowdown", "response_time", "wait_time")

#: All metrics of a run in the order of display; `fairness_indices` computes the last two. Counts are integers.
METRICS = (
    "jobs", "offered_load", "saturated", "makespan", "utilization", "last_end", "utilization_to_last_end",
    *(f"{prefix}_{measure}" for measure in MEASURES for prefix in ("mean", "median", "p95")),
    "awrt", "awwt", "squashed_area", "killed", "penalized_percent", "penalized_share_percent",
    "penalized_percent_unkilled", "p95_wait_time_unkilled", "p95_bounded_slowdown_60_unkilled",
    "p95_bounded_slowdown_60_unpenalized", "jain_wait_time", "gini_wait_time",
)  # fmt: skip
COUNTS = ("jobs", "saturated", "killed")

DAY = 86400.0


@dataclass(frozen=True)
class Middle:
    """
    The jobs that metrics describe: those submitted after the warm-up and before the cool-down of a workload.

    A simulation starts with an empty machine, and its last jobs compete with fewer jobs than the log's users had. All
    jobs are simulated; only the metrics exclude the first and the last ones. Warm-up and cool-down are a time or a
    number of jobs, such as ``30 days`` or ``1000 jobs``; empty excludes nothing. Days count from the first, or back
    from the last, submission.

    Examples
    --------
    >>> jobs = pl.LazyFrame({"job_id": [1, 2, 3, 4], "submit_time": [0.0, 90000.0, 90001.0, 90002.0]})
    >>> Middle("1 day", "1 job").of(jobs).collect()["job_id"].to_list()
    [2, 3]
    >>> str(Middle()), str(Middle("1 day"))
    ('', 'warm-up 1 day')
    """

    warm_up: str = ""
    cool_down: str = ""

    def __post_init__(self) -> None:
        for name, text in (("warm_up", self.warm_up), ("cool_down", self.cool_down)):
            if text and not _AMOUNT.fullmatch(text):
                raise SwflowError(f"{name}: {text!r}; expected days or jobs, such as '30 days' or '1000 jobs'")

    def __str__(self) -> str:
        parts = {"warm-up": self.warm_up, "cool-down": self.cool_down}
        return ", ".join(f"{name} {text}" for name, text in parts.items() if text)

    @classmethod
    def parse(cls, text: str) -> "Middle":
        """
        Return the middle with this text.

        Examples
        --------
        >>> Middle.parse("warm-up 30 days, cool-down 1 job"), Middle.parse("") == Middle()
        (Middle(warm_up='30 days', cool_down='1 job'), True)
        """
        parts = dict(part.split(" ", 1) for part in text.split(", ") if part)
        return cls(parts.get("warm-up", ""), parts.get("cool-down", ""))

    def of(self, outcomes: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rows of the jobs in the middle, in the order of submission."""
        if not str(self):
            return outcomes
        submitted, index = pl.col("submit_time"), pl.int_range(pl.len())
        first_days, first_jobs = _days_and_jobs(self.warm_up)
        last_days, last_jobs = _days_and_jobs(self.cool_down)
        return outcomes.sort("submit_time", "job_id").filter(
            (submitted >= submitted.min() + first_days * DAY)
            & (submitted <= submitted.max() - last_days * DAY)
            & (index >= first_jobs)
            & (index + last_jobs < pl.len())
        )


_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?days?|([0-9]+) ?jobs?")


def _days_and_jobs(text: str) -> tuple[float, int]:
    """Parse the amount of a warm-up: one of days and jobs is 0."""
    found = _AMOUNT.fullmatch(text)
    return (float(found[1] or 0), int(found[2] or 0)) if found else (0.0, 0)


def metrics(outcomes: pl.DataFrame | pl.LazyFrame, machine: int) -> dict[str, float | None]:
    """
    Compute the metrics of a run, which has one row per job, on a machine with this number of processors.

    Returns
    -------
    dict
        ``jobs``; ``offered_load`` (processors times run time of all jobs over machine times the time from the first
        to the last submission, None if this is 0); ``saturated`` (1 if the queue grows over the log, else 0, by
        `swflow.analysis.saturation.is_saturated`); ``makespan`` (last end - first submit, s); ``utilization``
        (squashed area over machine times makespan); ``last_end`` (the end of the last job on the log's clock, s, which
        is the makespan of Ernemann et al.) and ``utilization_to_last_end`` (squashed area over machine times this,
        None unless it is positive);
        ``mean_``, ``median_`` and ``p95_`` (95th percentile, linearly interpolated) of `MEASURES`;
        ``awrt`` and ``awwt`` (response and wait time weighted by processors times run time, s); ``squashed_area``
        (processor-seconds); ``killed`` (jobs); ``penalized_percent`` (mean over jobs of penalty time in
        percent of the run time without it); ``penalized_share_percent`` (the same in percent of the prolonged run
        time); ``penalized_percent_unkilled`` (``penalized_percent`` of the jobs that were not killed);
        ``p95_wait_time_unkilled`` and ``p95_bounded_slowdown_60_unkilled`` (95th percentile by rank of the jobs that
        were not killed, the latter with a bound of 60 s); ``p95_bounded_slowdown_60_unpenalized`` (the latter of run
        times without penalties). Metrics without any value are None.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, equations (1)-(4).
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the
    Alvio simulator", MASCOTS 2007, Tables I and II.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> from swflow.jobs.table import Workload
    >>> from swflow.scheduling.scheduler import Scheduler
    >>> from swflow.scheduling.simulate import simulate
    >>> jobs = pl.DataFrame({
    ...     "job_id": [1, 2], "submit_time": [0.0, 0.0], "run_time": [10.0, 30.0],
    ...     "processors": [4, 2], "estimate": [10.0, 30.0],
    ... })
    >>> figures = metrics(simulate(Workload(jobs, Machine.of(4), "tiny"), Scheduler()), 4)
    >>> figures["makespan"], figures["utilization"], figures["awwt"]
    (40.0, 0.625, 6.0)
    >>> figures["last_end"], figures["utilization_to_last_end"]
    (40.0, 0.625)
    """
    area = pl.col("processors") * pl.col("run_time")
    last_end = pl.col("end_time").max()
    makespan = last_end - pl.col("submit_time").min()
    span = pl.col("submit_time").max() - pl.col("submit_time").min()
    without_penalty = pl.col("run_time") - pl.col("penalty_time")
    extra, ran = 100 * pl.col("penalty_time") / without_penalty, without_penalty > 0
    share = (100 * pl.col("penalty_time") / pl.col("run_time")).filter(pl.col("run_time") > 0)
    bounded = (pl.col("response_time") / pl.col("run_time").clip(lower_bound=GUIM_BOUND)).clip(lower_bound=1.0)
    unpenalized_response = pl.col("response_time") - pl.col("penalty_time")
    unpenalized = (unpenalized_response / without_penalty.clip(lower_bound=GUIM_BOUND)).clip(lower_bound=1.0)
    whole = outcomes.lazy()
    figures = [
        pl.len().alias("jobs"),
        pl.when(span > 0).then(area.sum() / (machine * span)).alias("offered_load"),
        makespan.alias("makespan"),
        (area.sum() / (machine * makespan)).alias("utilization"),
        last_end.alias("last_end"),
        pl.when(last_end > 0).then(area.sum() / (machine * last_end)).alias("utilization_to_last_end"),
        ((area * pl.col("response_time")).sum() / area.sum()).alias("awrt"),
        ((area * pl.col("wait_time")).sum() / area.sum()).alias("awwt"),
        area.sum().alias("squashed_area"),
        pl.col("killed").sum().cast(pl.Int64).alias("killed"),
        extra.filter(ran).mean().alias("penalized_percent"),
        share.mean().alias("penalized_share_percent"),
        extra.filter(ran & ~pl.col("killed")).mean().alias("penalized_percent_unkilled"),
    ]
    row: dict[str, Any] = whole.select(figures).collect(engine="in-memory").row(0, named=True)

    # A quantile of a series takes a fifth of the time of the same expression in a query. Each sorts a copy.
    def column(values: pl.Expr) -> pl.Series:
        return whole.select(values).collect(engine="in-memory").to_series()

    times = (
        column(values.cast(pl.Float64)).to_numpy() for values in (pl.col("submit_time"), pl.col("start_time"), area)
    )
    saturated = is_saturated(*times)
    row["saturated"] = None if saturated is None else int(saturated)
    for measure in MEASURES:
        values = column(pl.col(measure))
        row[f"mean_{measure}"], row[f"median_{measure}"] = values.mean(), values.median()
        row[f"p95_{measure}"] = values.quantile(0.95, "linear")
    tails = {
        "wait_time_unkilled": pl.col("wait_time"),
        "bounded_slowdown_60_unkilled": bounded,
        "bounded_slowdown_60_unpenalized": unpenalized,
    }
    for name, measured in tails.items():
        alive = measured.filter(~pl.col("killed")) if row["killed"] else measured
        row[f"p95_{name}"] = _upper_tail(column(alive))
    named = {name: row[name] for name in METRICS if name in row}
    return {name: None if isinstance(value, float) and value != value else value for name, value in named.items()}


def resource_metrics(outcomes: pl.DataFrame, jobs: pl.DataFrame, units: Mapping[str, int]) -> dict[str, float]:
    """
    Compute the metrics of each counted resource of a machine besides processors.

    ``jobs`` may have a column with the demand of each job for a resource; null and a missing column are 0. ``units``
    are the units of each resource that the machine, or all clusters together, have. The metrics of ``gpus`` are
    ``utilization_gpus`` (squashed area over units times makespan; absent with 0 units), ``squashed_area_gpus``
    (unit-seconds) and ``peak_gpus``, the most units in use at once, which only a recorded schedule can raise above the
    machine's.

    Examples
    --------
    >>> outcomes = pl.DataFrame({"job_id": [1, 2], "submit_time": [0.0, 0.0], "start_time": [0.0, 10.0],
    ...                          "run_time": [10.0, 30.0]})
    >>> resource_metrics(outcomes, pl.DataFrame({"job_id": [1, 2], "gpus": [4, 2]}), {"gpus": 4})
    {'utilization_gpus': 0.625, 'squashed_area_gpus': 100.0, 'peak_gpus': 4}
    """
    found: dict[str, float] = {}
    if outcomes.is_empty():
        return found
    makespan = outcomes.select((pl.col("start_time") + pl.col("run_time")).max() - pl.col("submit_time").min()).item()
    for name, most in units.items():
        if name not in jobs.columns:
            continue
        demand = jobs.select("job_id", demand=pl.col(name).cast(pl.Int64).fill_null(0))
        used = outcomes.join(demand, on="job_id", how="left").filter(pl.col("demand") > 0)
        area = float(used.select((pl.col("demand") * pl.col("run_time")).sum()).item())
        if most and makespan:
            found[f"utilization_{name}"] = area / (most * makespan)
        found[f"squashed_area_{name}"] = area
        start, run = used["start_time"].to_numpy(), used["run_time"].to_numpy()
        found[f"peak_{name}"] = use_of(start, start + run, used["demand"].to_numpy(), most).peak if used.height else 0
    return found


def _upper_tail(values: pl.Series) -> float | None:
    """Return the value at index ``int(0.95 n)`` of the sorted values: the 95th percentile of Guim et al."""
    place = int(0.95 * len(values))
    value = values.quantile(place / max(len(values) - 1, 1), "nearest")
    return None if value is None else float(value)


def correlations(outcomes: pl.DataFrame | pl.LazyFrame) -> dict[str, float | None]:
    """
    Compute Spearman's rank correlation of load with each of slowdown, response time and wait time.

    Jobs without a load or without a slowdown (run time 0) are left out. A correlation is None where it is undefined
    (fewer than two jobs, or all values equal). ``jobs`` is the number of correlated jobs, ``above_1`` the number of
    those with a load above 1, which occurs only in impossible recorded schedules.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, Table 1.
    """
    known = outcomes.lazy().filter(pl.col("load").is_not_null() & pl.col("slowdown").is_not_null())
    ranks = known.select(pl.col("load").rank(), above_1=pl.col("load") > ABOVE_1).collect(engine="in-memory")
    found: dict[str, float | None] = dict.fromkeys(CORRELATED)
    found |= {"jobs": ranks.height, "above_1": int(ranks["above_1"].sum())}
    if ranks.height < 2:
        return found
    for name in CORRELATED:
        other = known.select(pl.col(name).rank()).collect(engine="in-memory")
        value = ranks.hstack(other).select(pl.corr("load", name)).item()
        found[name] = None if value is None or value != value else value
    return found


# -- fairness: how evenly wait times are distributed over users and groups

#: Kinds of job owners and the column that holds the owner's id.
OWNERS: dict[str, str] = {"user": "user_id", "group": "group_id"}


def jain_index(values: np.ndarray) -> float | None:
    """
    Compute Jain's index of fairness, ``(sum x)^2 / (n sum x^2)``, of the amounts that users receive.

    It is 1 if all values are equal or all are 0, 1 / n if one user receives everything; None without values.

    References
    ----------
    R. Jain, D.-M. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination for resource allocation in
    shared computer systems", DEC-TR-301, 1984.

    Examples
    --------
    >>> jain_index(np.array([1.0, 1.0, 1.0])), jain_index(np.array([3.0, 0.0, 0.0])) == 1 / 3
    (1.0, True)
    """
    if not values.size:
        return None
    squares = float(values @ values)
    return float(values.sum()) ** 2 / (values.size * squares) if squares > 0 else 1.0


def gini_coefficient(values: np.ndarray) -> float | None:
    """
    Compute the Gini coefficient: half the mean absolute difference of two values, divided by their mean.

    It is 0 if all values are equal, near 1 if one user receives everything; None without values.

    Examples
    --------
    >>> gini_coefficient(np.array([2.0, 2.0])), gini_coefficient(np.array([0.0, 4.0]))
    (0.0, 0.5)
    """
    if not values.size:
        return None
    total = float(values.sum())
    if total <= 0:
        return 0.0
    ranks = np.arange(1, values.size + 1)
    return float(2 * (ranks @ np.sort(values)) / (values.size * total) - (values.size + 1) / values.size)


def fairness_indices(outcomes: pl.DataFrame | pl.LazyFrame, jobs: pl.DataFrame) -> dict[str, float | None]:
    """Return ``jain_wait_time`` and ``gini_wait_time`` of the users' mean waits; None if no job has a known user."""
    if "user_id" not in jobs.columns:
        return {"jain_wait_time": None, "gini_wait_time": None}
    table = outcomes.lazy().select("job_id", "wait_time").collect(engine="in-memory")
    waits = _with_owner(table, jobs, "user_id").group_by("owner").agg(pl.col("wait_time").mean())["wait_time"]
    values = np.sort(np.maximum(waits.to_numpy(), 0.0))
    return {"jain_wait_time": jain_index(values), "gini_wait_time": gini_coefficient(values)}


def fairness_table(outcomes: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the waits (s), bounded slowdowns and share of all processor-seconds of every user and group, by id."""
    area = pl.col("processors") * pl.col("run_time")
    areas = outcomes.select("job_id", "wait_time", "bounded_slowdown", area=area)
    total = float(areas["area"].sum()) or 1.0
    tables = []
    for kind, column in OWNERS.items():
        if column not in jobs.columns:
            continue
        wait, slowdown = pl.col("wait_time"), pl.col("bounded_slowdown")
        found = (
            _with_owner(areas, jobs, column)
            .group_by("owner")
            .agg(
                jobs=pl.len().cast(pl.Int64),
                mean_wait_time=wait.mean(),
                p95_wait_time=wait.quantile(0.95, "linear"),
                mean_bounded_slowdown=slowdown.mean(),
                p95_bounded_slowdown=slowdown.quantile(0.95, "linear"),
                use_share=pl.col("area").sum() / total,
            )
        )
        tables.append(found.rename({"owner": "id"}).sort("id").select(pl.lit(kind).alias("kind"), pl.all()))
    return pl.concat(tables) if tables else pl.DataFrame()


def _with_owner(outcomes: pl.DataFrame, jobs: pl.DataFrame, column: str) -> pl.DataFrame:
    if jobs["job_id"].equals(outcomes["job_id"]):
        owned = outcomes.with_columns(owner=jobs[column])
        return owned.drop_nulls("owner") if jobs[column].null_count() else owned
    owner = jobs.select("job_id", owner=pl.col(column)).drop_nulls()
    return outcomes.join(owner, on="job_id", how="inner", maintain_order="left")
