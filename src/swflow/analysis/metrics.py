"""Metrics of a run: one row of figures, and the correlations of load with performance."""

from typing import Any

import polars as pl

from swflow.jobs import MOST_AT_ONCE

#: What is summarized by mean, median and 95th percentile.
MEASURES = ("wait_time", "response_time", "slowdown", "bounded_slowdown")

#: The bound of the bounded slowdown in the tables of Guim et al., seconds.
GUIM_BOUND = 60.0

#: What load is correlated with.
CORRELATED = ("slowdown", "response_time", "wait_time")


def metrics(outcomes: pl.DataFrame | pl.LazyFrame, machine: int) -> dict[str, Any]:
    """
    Compute the metrics of a run.

    Parameters
    ----------
    outcomes : polars.DataFrame or polars.LazyFrame
        One row a job, as `swflow.scheduling.simulate.simulate` returns it.
    machine : int
        Processors of the machine.

    Returns
    -------
    dict
        ``jobs``; ``makespan`` (last end - first submit, s); ``utilization`` (squashed area over machine
        times makespan); ``mean_``, ``median_`` and ``p95_`` (linearly interpolated) of `MEASURES`; ``awrt``
        and ``awwt`` (response and wait time weighted by processors times run time, s); ``squashed_area``
        (processor-seconds); ``killed`` (jobs); ``penalized_percent`` (mean over jobs of penalty time in
        percent of the run time without it); ``penalized_share_percent`` (the same in percent of the prolonged run
        time). Where there is nothing to average, None.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, equations (1)-(4).
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the
    Alvio simulator", MASCOTS 2007, Tables I and II.

    Examples
    --------
    >>> from swflow.machine import Machine
    >>> from swflow.jobs import Workload
    >>> from swflow.scheduling.scheduler import Scheduler
    >>> from swflow.scheduling.simulate import simulate
    >>> jobs = pl.DataFrame({
    ...     "job_id": [1, 2], "submit_time": [0.0, 0.0], "run_time": [10.0, 30.0],
    ...     "processors": [4, 2], "estimate": [10.0, 30.0],
    ... })
    >>> figures = metrics(simulate(Workload(jobs, Machine.of(4), "tiny"), Scheduler()), 4)
    >>> figures["makespan"], figures["utilization"], figures["awwt"]
    (40.0, 0.625, 6.0)
    """
    area = pl.col("processors") * pl.col("run_time")
    makespan = pl.col("end_time").max() - pl.col("submit_time").min()
    without_penalty = pl.col("run_time") - pl.col("penalty_time")
    penalized = (100 * pl.col("penalty_time") / without_penalty).filter(without_penalty > 0)
    share = (100 * pl.col("penalty_time") / pl.col("run_time")).filter(pl.col("run_time") > 0)
    alive = ~pl.col("killed")
    bounded = (pl.col("response_time") / pl.col("run_time").clip(lower_bound=GUIM_BOUND)).clip(lower_bound=1.0)
    summaries = [
        expression.alias(f"{prefix}_{measure}")
        for measure in MEASURES
        for prefix, expression in (
            ("mean", pl.col(measure).mean()),
            ("median", pl.col(measure).median()),
            ("p95", pl.col(measure).quantile(0.95, "linear")),
        )
    ]
    whole = outcomes.lazy()
    jobs = whole.select(pl.len()).collect(engine="in-memory").item()
    figures = [
        pl.len().alias("jobs"),
        makespan.alias("makespan"),
        (area.sum() / (machine * makespan)).alias("utilization"),
        *summaries,
        ((area * pl.col("response_time")).sum() / area.sum()).alias("awrt"),
        ((area * pl.col("wait_time")).sum() / area.sum()).alias("awwt"),
        area.sum().alias("squashed_area"),
        pl.col("killed").sum().cast(pl.Int64).alias("killed"),
        penalized.mean().alias("penalized_percent"),
        share.mean().alias("penalized_share_percent"),
        _upper_tail(pl.col("wait_time").filter(alive)).alias("p95_wait_time_unkilled"),
        _upper_tail(bounded.filter(alive)).alias("p95_bounded_slowdown_60_unkilled"),
    ]
    # Medians and percentiles sort what they are of: with many jobs one after the other.
    parts = [figures] if jobs <= MOST_AT_ONCE else [[figure] for figure in figures]
    row: dict[str, Any] = {}
    for part in parts:
        row |= whole.select(part).collect(engine="in-memory").row(0, named=True)
    return {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}


def _upper_tail(values: pl.Expr) -> pl.Expr:
    """Return the value of rank ``int(0.95 n)`` from 0, as Guim et al. take the percentile."""
    return values.sort().get((values.len() * 0.95).floor().cast(pl.Int64), null_on_oob=True)


def correlations(outcomes: pl.DataFrame | pl.LazyFrame) -> dict[str, float | None]:
    """
    Compute Spearman's rank correlation of load with each of slowdown, response time and wait time.

    Parameters
    ----------
    outcomes : polars.DataFrame or polars.LazyFrame
        One row a job, with its load.

    Returns
    -------
    dict
        Measure to correlation; None where it is undefined (fewer than two jobs, or all equal).

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, Table 1.
    """
    known = outcomes.lazy().filter(pl.col("load").is_not_null() & pl.col("slowdown").is_not_null())
    ranks = known.select(pl.col("load").rank()).collect(engine="in-memory")
    if ranks.height < 2:
        return dict.fromkeys(CORRELATED)
    found: dict[str, float | None] = {}
    for name in CORRELATED:
        other = known.select(pl.col(name).rank()).collect(engine="in-memory")
        value = ranks.hstack(other).select(pl.corr("load", name)).item()
        found[name] = None if value is None or value != value else value
    return found
