"""Scaling: a workload for a machine of another size, by wider jobs, by copies of jobs, or by both."""

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs import Workload
from swflow.machine import Machine

#: How widths and copies follow from the factor.
VARIANTS: dict[str, str] = {
    "integer": "a whole factor for both",
    "precise-size": "the factor for widths, a whole number of copies",
    "precise": "the factor for both: as many copies as it says on average",
}

#: The columns that are numbers of processors.
WIDTHS = ("allocated_processors", "requested_processors", "processors")


def scale(
    workload: Workload,
    processors: int,
    *,
    d: float = 50.0,
    variant: str = "precise",
    factor: float | None = None,
    copies: int | None = None,
    generator: np.random.Generator,
) -> Workload:
    """
    Scale a workload to a machine of another size.

    For each job p is drawn from (0, 100]. If p > ``d``, the job is made wider: its processors are multiplied by the
    factor and rounded. Otherwise it is replaced by as many copies as the factor says, submitted when it was. Run
    times and estimates stay. A job that is wider than the new machine is cut to it.

    Parameters
    ----------
    workload : Workload
        What to scale.
    processors : int
        Processors of the new machine. Its nodes are as large as before, if that divides, else one processor each.
    d : float
        0 to 100: the share of the jobs, in percent, that are copied. 0 only widens, 100 only copies.
    variant : {'integer', 'precise-size', 'precise'}
        How widths and copies follow from the factor f. ``integer``: both use f, which is whole. ``precise-size``:
        widths use f, and there are ``copies`` copies. ``precise``: both use f; a job has floor(f) or ceil(f) copies,
        by a second draw whose mean is f.
    factor : float, optional
        f; by default the new machine's processors over the old one's, for ``integer`` the nearest whole number.
    copies : int, optional
        For ``precise-size`` only: how many copies; by default the whole number nearest to f, and at least 1.
    generator : numpy.random.Generator
        What is drawn from: two numbers a job, whatever the options.

    Returns
    -------
    Workload
        A copy's job id is the original's times a power of ten (1 if no job can have two copies), plus the copy's
        number from 0, so that copies follow each other at one instant; widened jobs count as copy 0.
        ``source_job_id`` is the original's, and a workload that was scaled before keeps that of the first time.
        ``preceding_job_id`` is the same copy of the preceding job, or its last one. What is per process
        (``memory_bandwidth``, memory) stays; the sizes in ``shapes`` are widened or cut with the job. The history
        counts jobs that have no copy under ``removed`` (``no-copy``), and has ``widened``, ``copied`` (jobs that were
        replaced by copies), ``jobs`` (jobs now) and ``cut`` (of these, cut to the machine).

    Raises
    ------
    SwflowError
        If an option has no such value, or no job is left.

    Notes
    -----
    The text decides by "p1 smaller than 38.14" for the *lower* of the factors 2 and 3 when f is 2.3814, which would
    give 2.62 copies on average; its results fit the draw whose mean is f, which is used here. Below a factor of 1,
    ``precise`` keeps a job that is to be copied with probability f, ``precise-size`` keeps all of these, and there
    is no whole factor. Widths below 1 become 1, so that narrow jobs grow relative to the machine.

    References
    ----------
    C. Ernemann, B. Song, R. Yahyapour, "Scaling of workload traces", JSSPP 2003, sections III-A and III-B.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [7, 8], "submit_time": [0.0, 5.0], "processors": [1, 4]})
    >>> tiny = Workload(jobs, Machine.of(4), "tiny")
    >>> scale(tiny, 10, d=0, generator=np.random.default_rng(1)).jobs["processors"].to_list()
    [3, 10]
    >>> scale(tiny, 10, d=100, generator=np.random.default_rng(1)).jobs["source_job_id"].to_list()
    [7, 7, 7, 8, 8]
    """
    machine = workload.machine
    target = _machine(machine, processors)
    wide, exact, most = _factors(variant, factor, copies, processors, machine.processors)
    if not 0 <= d <= 100:
        raise SwflowError(f"scale: d must be from 0 to 100, not {d}")
    jobs = workload.jobs
    widened = 100 * (1 - generator.random(jobs.height)) > d
    drawn = math.floor(exact) + (generator.random(jobs.height) < exact - math.floor(exact))
    counts = np.where(widened, 1, drawn)
    rows = np.repeat(np.arange(jobs.height), counts)
    if rows.size == 0:
        raise SwflowError(f"scale: {workload.name}: no job is left of {jobs.height:,}; choose a smaller d")
    copy = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    stride = 1 if d == 0 else 10 ** len(str(most - 1)) if most > 1 else 1
    table, cut = _widen(jobs[rows], widened[rows], wide, processors)
    entry = {
        "stage": "scale",
        "processors": processors,
        "d": d,
        "variant": variant,
        "factor": wide,
        "read": jobs.height,
        "kept": int((counts > 0).sum()),
        "removed": {"no-copy": int((counts == 0).sum())} if (counts == 0).any() else {},
        "widened": int(widened.sum()),
        "copied": int((~widened).sum()),
        "jobs": table.height,
        "cut": cut,
    }
    return workload.with_jobs(
        _numbered(table, jobs, counts, copy, stride),
        entry,
        machine=target,
        header=_header(workload.header, target, table.height),
    )


def _machine(machine: Machine, processors: int) -> Machine:
    """Return the machine of another size, with nodes of the same size if they fill it."""
    if processors < 1:
        raise SwflowError(f"scale: processors must be at least 1, not {processors}")
    nodes, rest = divmod(processors, machine.processors_per_node)
    return Machine.of(processors, None if rest else nodes)


def _factors(
    variant: str, factor: float | None, copies: int | None, target: int, source: int
) -> tuple[float, float, int]:
    """Return the factor of widths, the mean number of copies, and the largest number of copies."""
    if variant not in VARIANTS:
        raise SwflowError(f"scale: variant: unknown value {variant!r}{suggest(variant, VARIANTS)}")
    if factor is not None and not (factor > 0 and math.isfinite(factor)):
        raise SwflowError(f"scale: factor must be positive, not {factor}")
    if copies is not None and (copies < 1 or variant != "precise-size"):
        raise SwflowError(f"scale: copies is an option of precise-size and at least 1, not {copies} of {variant}")
    exact = target / source if factor is None else float(factor)
    if variant == "integer":
        whole = round(exact) if factor is None else exact
        if whole < 1 or whole != int(whole):
            raise SwflowError(
                f"scale: factor: {whole:g} is no whole number from 1 on, as variant integer needs "
                f"({source:,} to {target:,} processors); give another factor, or choose variant precise"
            )
        return whole, whole, int(whole)
    if variant == "precise-size":
        whole = copies or max(1, round(exact))
        return exact, whole, whole
    return exact, exact, math.ceil(exact)


def _widen(table: pl.DataFrame, widened: np.ndarray, factor: float, machine: int) -> tuple[pl.DataFrame, int]:
    """Multiply the widths of the jobs that are to be wider, cut all to the machine, and count those cut."""
    wider = pl.Series(widened)
    widths = {name: _width(pl.col(name), wider, factor) for name in WIDTHS if name in table.columns}
    cut = table.select((widths["processors"] > machine).sum()).item()
    changed = table.with_columns(**{name: width.clip(upper_bound=machine) for name, width in widths.items()})
    if "shapes" in table.columns:
        changed = changed.with_columns(shapes=_shapes(table, changed["processors"], widened, factor, machine))
    return changed, int(cut)


def _width(column: pl.Expr, wider: pl.Series, factor: float) -> pl.Expr:
    """Return the rounded (half up) multiple of positive widths, at least 1; 0 is how some logs say unknown."""
    multiple = (column * factor + 0.5).floor().clip(lower_bound=1).cast(pl.Int64())
    return pl.when(wider & (column > 0)).then(multiple).otherwise(column)


def _shapes(table: pl.DataFrame, new: pl.Series, widened: np.ndarray, factor: float, machine: int) -> pl.Series:
    """
    Scale the sizes of all shapes like the job's.

    Where several become one size, the one that the job was recorded with stays, else the one that was nearest.
    """
    job = pl.DataFrame({"row": np.arange(table.height), "wider": widened, "old": table["processors"], "new": new})
    every = job.with_columns(shape=table["shapes"]).explode("shape").filter(pl.col("shape").is_not_null())
    every = every.unnest("shape").rename({"processors": "from"})
    to = pl.when("wider").then((pl.col("from") * factor + 0.5).floor().clip(lower_bound=1)).otherwise(pl.col("from"))
    kept = (
        every.with_columns(to=to.clip(upper_bound=machine).cast(pl.Int64()))
        .with_columns(
            other=pl.col("from") != pl.col("old"),
            far=(pl.col("from") * pl.when("wider").then(factor).otherwise(1.0) - pl.col("to")).abs(),
        )
        .sort("row", "to", "other", "far", "from")
        .unique(["row", "to"], keep="first", maintain_order=True)
    )
    again = kept.group_by("row", maintain_order=True).agg(shapes=pl.struct(processors="to", run_time="run_time"))
    return job.join(again, on="row", how="left", maintain_order="left")["shapes"].cast(table["shapes"].dtype)


def _numbered(
    table: pl.DataFrame, jobs: pl.DataFrame, counts: np.ndarray, copy: np.ndarray, stride: int
) -> pl.DataFrame:
    """Give every copy its job id, and the ids of its original and of the job before it."""
    number = pl.Series(copy)
    source = pl.col("source_job_id") if "source_job_id" in table.columns else pl.col("job_id")
    table = table.with_columns(source_job_id=source, job_id=pl.col("job_id") * stride + number)
    if "preceding_job_id" not in table.columns or stride == 1:
        return table
    copies = pl.DataFrame({"preceding_job_id": jobs["job_id"], "last": np.maximum(counts - 1, 0)}).unique(
        "preceding_job_id", keep="first"
    )
    last = table.join(copies, on="preceding_job_id", how="left", maintain_order="left")["last"].fill_null(0)
    same = pl.min_horizontal(number, last)
    return table.with_columns(preceding_job_id=pl.col("preceding_job_id") * stride + same)


def _header(header: Mapping[str, list[str]], machine: Machine, jobs: int) -> dict[str, list[str]]:
    """Return the log's header with the new machine, so that the workload can be written as SWF."""
    sizes = {"MaxJobs": jobs, "MaxRecords": jobs, "MaxNodes": machine.nodes, "MaxProcs": machine.processors}
    return dict(header) | {key: [str(size)] for key, size in sizes.items()}
