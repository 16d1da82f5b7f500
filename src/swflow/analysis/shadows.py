"""Shadows: intervals in which the set of jobs on a node does not change, and the penalty of sharing the node."""

import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.machine import Machine

#: Matches ranges of processors, such as ``0-3,8``.
_PLACES = r"^\d{1,10}(-\d{1,10})?(,\d{1,10}(-\d{1,10})?)*$"


def shadows(outcomes: pl.DataFrame, demands: pl.DataFrame, machine: Machine) -> pl.DataFrame:
    """
    Return the shared shadows of every node, with the use of each resource and the penalty.

    A shared shadow is a maximal interval in which the node's set of jobs does not change. Processor ``i`` belongs to
    node ``i // processors_per_node``. A resource counts if nodes have a capacity for it and ``demands`` has a column
    for it.

    The outcomes have ``job_id``, ``start_time``, ``end_time`` (seconds) and ``places``, the processors of a job as text
    such as ``0-3,8``; jobs with a duration of 0 are in no shadow. ``demands`` has ``job_id``, and one column per
    resource with the demand of each process; null counts as 0.

    Returns
    -------
    polars.DataFrame
        Sorted by node and time: ``node``, ``start``, ``end`` (seconds), ``jobs`` (list of ids, ascending),
        ``processes``, one column per resource with its use, and ``penalty``: the sum over the resources of
        ``max(use / capacity, 1) - 1``. Shadows without jobs are left out.

    Raises
    ------
    SwflowError
        If a column is missing, the processors or demands of a job are unknown, or a processor is not on the machine.

    References
    ----------
    F. Guim, J. Corbalan, J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio
    simulator", MASCOTS 2007, section III.C. Equation (2) as the text explains it: a use of 8000 MB/s with a capacity
    of 6000 MB/s has a penalty of 8/6 - 1.

    Examples
    --------
    >>> outcomes = pl.DataFrame({"job_id": [1, 2], "start_time": [0.0, 10.0], "end_time": [20.0, 30.0],
    ...                          "places": ["0-2", "3-5"]})
    >>> demands = pl.DataFrame({"job_id": [1, 2], "memory_bandwidth": [2000.0, 2000.0]})
    >>> found = shadows(outcomes, demands, Machine(8, 2, {"memory_bandwidth": 6000}))
    >>> for row in found.select("node", "start", "end", "memory_bandwidth", pl.col("penalty").round(3)).rows():
    ...     print(row)
    (0, 0.0, 10.0, 6000.0, 0.0)
    (0, 10.0, 20.0, 8000.0, 0.333)
    (0, 20.0, 30.0, 2000.0, 0.0)
    (1, 10.0, 30.0, 4000.0, 0.0)
    """
    parts, resources = _parts(outcomes, demands, machine)
    bounds = _bounds(parts)
    found = (
        _spans(parts, bounds)
        .group_by("shadow")
        .agg(
            pl.col("job_id").sort().alias("jobs"),
            pl.col("processes").sum(),
            # sorted in the order of the jobs, since the last bits of a sum depend on the order
            *((pl.col(name) * pl.col("processes")).sort_by("job_id").sum().alias(name) for name in resources),
        )
    )
    penalty = pl.sum_horizontal(
        pl.lit(0.0), *((pl.col(name) / machine.capacities[name]).clip(lower_bound=1.0) - 1.0 for name in resources)
    )
    return (
        bounds.join(found, left_on="index", right_on="shadow")
        .sort("index")
        .select(
            "node", pl.col("time").alias("start"), pl.col("next").alias("end"), "jobs", "processes", *resources,
            penalty.alias("penalty"),
        )
    )  # fmt: skip


def ranges(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return one row per job and range of its processors, with ``first`` and ``last`` instead of ``places``."""
    unknown = outcomes["places"].null_count()
    if unknown:
        raise SwflowError(f"the processors of {unknown:,} jobs are not known; simulate it again with places: true")
    bounds = pl.col("places").str.split_exact("-", 1).struct
    first, last = (bounds.field(name).cast(pl.Int64) for name in ("field_0", "field_1"))
    parts = outcomes.with_columns(pl.col("places").cast(pl.String).str.split(",")).explode("places")
    return parts.with_columns(first.alias("first"), last=pl.coalesce(last, first)).drop("places")


def _parts(outcomes: pl.DataFrame, demands: pl.DataFrame, machine: Machine) -> tuple[pl.DataFrame, list[str]]:
    """Return one row per job and node, with the number and demands of its processes there; and the resources."""
    timed = ("job_id", "start_time", "end_time", "places")
    for what, table, needed in (("outcomes", outcomes, timed), ("demands", demands, ("job_id",))):
        missing = [name for name in needed if name not in table.columns]
        if missing:
            raise SwflowError(f"shadows: the {what} lack {', '.join(missing)}")
    resources = [name for name in machine.capacities if name in demands.columns]
    size = machine.processors_per_node
    endless = outcomes.filter(~(pl.col("start_time").is_finite() & pl.col("end_time").is_finite()).fill_null(False))
    if endless.height:
        raise SwflowError(f"shadows: job {endless['job_id'][0]} has no finite start and end")
    odd = outcomes.filter(~pl.col("places").cast(pl.String).str.contains(_PLACES))
    if odd.height:
        raise SwflowError(
            f"shadows: job {odd['job_id'][0]} has places {odd['places'][0]!r}; they are ranges such as 0-3,8"
        )
    placed = ranges(outcomes.filter(pl.col("end_time") > pl.col("start_time")).select(timed))
    turned = placed.filter(pl.col("first") > pl.col("last"))
    if turned.height:
        job, first, last = turned.select("job_id", "first", "last").row(0)
        raise SwflowError(f"shadows: job {job} has places '{first}-{last}'; they are ranges such as 0-3,8")
    wrong = placed.filter(pl.col("last") >= machine.processors)
    if wrong.height:
        raise SwflowError(
            f"shadows: job {wrong['job_id'][0]} is on processor {wrong['last'][0]} of {machine.processors:,}"
        )
    node = pl.col("node")
    parts = (
        placed.with_columns(pl.int_ranges(pl.col("first") // size, pl.col("last") // size + 1).alias("node"))
        .explode("node")
        .with_columns(
            processes=pl.min_horizontal("last", (node + 1) * size - 1) - pl.max_horizontal("first", node * size) + 1
        )
        .group_by("job_id", "node", maintain_order=True)
        .agg(pl.col("start_time", "end_time").first(), pl.col("processes").sum())
    )
    lost = parts.join(demands, on="job_id", how="anti")
    if lost.height:
        raise SwflowError(f"shadows: job {lost['job_id'][0]} has no row of demands")
    wanted = demands.select("job_id", pl.col(resources).fill_null(0.0))
    return parts.join(wanted, on="job_id", how="inner", maintain_order="left"), resources


def _bounds(parts: pl.DataFrame) -> pl.DataFrame:
    """Return the times at which jobs start or end on a node, by node and time, with the next time and an index."""
    return (
        pl.concat([parts.select("node", time=name) for name in ("start_time", "end_time")])
        .unique()
        .sort("node", "time")
        .with_columns(pl.col("time").shift(-1).over("node").alias("next"))
        .with_row_index("index")
    )


def _spans(parts: pl.DataFrame, bounds: pl.DataFrame) -> pl.DataFrame:
    """Return one row per job and shadow; ``shadow`` is the index of the shadow's start among the bounds."""
    first, after = (
        parts.join(bounds, left_on=["node", column], right_on=["node", "time"], how="left", maintain_order="left")
        for column in ("start_time", "end_time")
    )
    shadow = pl.int_ranges(first["index"], after["index"], dtype=pl.UInt32)
    return parts.with_columns(shadow=shadow).explode("shadow")
