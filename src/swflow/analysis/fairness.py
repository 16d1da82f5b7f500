"""Fairness: how evenly wait times are distributed over users and groups."""

import numpy as np
import polars as pl

#: Kinds of job owners and the column that holds the owner's id.
KINDS: dict[str, str] = {"user": "user_id", "group": "group_id"}


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
    for kind, column in KINDS.items():
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
