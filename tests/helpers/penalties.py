"""The penalties of a schedule from its shadows, to compare with those of the kernels."""

import polars as pl


def penalty_times(outcomes: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """
    Return the time that the shadows of a schedule add to each job in the unchanged schedule, seconds.

    A shadow adds its length times its penalty. A job's time is the sum over its shadows on a node, and the maximum of
    these sums over its nodes (Guim, Corbalan and Labarta, MASCOTS 2007, equation (3) without its misprinted 1, and
    section III.D). If penalties have already delayed the ends of jobs in the schedule, the shadows of the added time
    count as well.
    """
    added = (
        found.select("node", job_id="jobs", penalty_time=(pl.col("end") - pl.col("start")) * pl.col("penalty"))
        .explode("job_id")
        .group_by("job_id", "node", maintain_order=True)
        .agg(pl.col("penalty_time").sum())
        .group_by("job_id")
        .agg(pl.col("penalty_time").max())
    )
    joined = outcomes.select("job_id").join(added, on="job_id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("penalty_time").fill_null(0.0))
