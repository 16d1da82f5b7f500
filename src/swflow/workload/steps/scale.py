"""The step `scale`: adapt a workload to a machine of another size by wider jobs, by copies of jobs, or by both."""

import math

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.workload.clean import LOST_DEPENDENCIES

#: How the factor determines widths and numbers of copies; see `scale`.
VARIANTS = ("integer", "precise-size", "precise")

#: Columns with numbers of processors.
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

    For each job, p is drawn from (0, 100]. If p > ``d``, the job is widened: its processors are multiplied by the
    factor and rounded. Otherwise, copies with the same submit time replace it, and the factor gives their number. Run
    times and estimates do not change. A job that is wider than the new machine is cut to its size.

    Parameters
    ----------
    processors : int
        Processors of the new machine. The size of its nodes stays if it divides this number; otherwise nodes have 1
        processor.
    d : float
        Share of the jobs that are copied, in percent, from 0 to 100. 0 only widens jobs, 100 only copies them.
    variant : {'integer', 'precise-size', 'precise'}
        How the factor f determines widths and copies. ``integer``: a whole f determines both. ``precise-size``: f
        determines widths, and each copied job has ``copies`` copies. ``precise``: f determines both; a second draw
        with mean f gives a job floor(f) or ceil(f) copies.
    factor : float, optional
        f (default: the ratio of the new machine's processors to the old one's, rounded for ``integer``).
    copies : int, optional
        Number of copies, for ``precise-size`` only (default: f rounded, at least 1).
    generator : numpy.random.Generator
        Random generator; two numbers are drawn per job, for all options.

    Returns
    -------
    Workload
        The scaled workload. A copy's job id is the original's multiplied by a power of ten (1 if no job can have two
        copies), plus the copy's number from 0, so that the copies of a job are consecutive at its submit time.
        Widened jobs count as copy 0. ``source_job_id`` is the id of the original, before the first scaling.
        ``preceding_job_id`` refers to the copy of the preceding job with the same number, or to its last copy. Values
        per process (``memory_bandwidth``, memory) stay; the sizes in ``shapes`` are widened or cut with the job. The
        history entry counts jobs without copies under ``removed`` (``no-copy``), and has ``widened``, ``copied``
        (jobs replaced by copies), ``jobs`` (jobs of the result) and ``cut`` (jobs cut to the machine).

    Raises
    ------
    SwflowError
        If an option has an invalid value, no job remains, or the machine has resources besides processors.

    Notes
    -----
    With f = 2.3814, the paper chooses the *lower* of the factors 2 and 3 for "p1 smaller than 38.14", which gives
    2.62 copies on average. The paper's results agree with a draw with mean f, which is used here. Below a factor of
    1, ``precise`` keeps a job that is to be copied with probability f, ``precise-size`` keeps all such jobs, and
    ``integer`` is impossible. Widths below 1 become 1, so narrow jobs grow relative to the machine.

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
    if processors < 1:
        raise SwflowError(f"scale: processors: {processors}; expected at least 1")
    if workload.machine.resources:
        names = ", ".join(workload.machine.resources)
        without = " ".join(f"--resource {name}=none" for name in workload.machine.resources)
        in_config = ", ".join(f"{name}: null" for name in workload.machine.resources)
        raise SwflowError(
            f"scale: {workload.name}: the units of {names} and the demands of jobs for them cannot be scaled; remove "
            f"them with swflow machine {without} (in a config: resources: {{{in_config}}}), and state the units "
            "afterwards"
        )
    nodes, rest = divmod(processors, workload.machine.processors_per_node)
    target = Machine.of(processors, None if rest else nodes)
    wide, exact, most = _factors(variant, factor, copies, processors, workload.machine.processors)
    if not 0 <= d <= 100:
        raise SwflowError(f"scale: d: {d}; expected a number from 0 to 100")
    jobs = workload.jobs
    widened = 100 * (1 - generator.random(jobs.height)) > d
    drawn = math.floor(exact) + (generator.random(jobs.height) < exact - math.floor(exact))
    counts = np.where(widened, 1, drawn)
    size = int(counts.sum())
    if size == 0:
        raise SwflowError(f"scale: {workload.name}: all {jobs.height:,} jobs were removed; choose a smaller d")
    wider, cut = _widen(jobs, widened, wide, processors)
    rows = pl.Series(range(jobs.height), dtype=pl.get_index_type()).to_numpy().repeat(counts)
    copy = np.arange(size) - (np.cumsum(counts) - counts)[rows]
    stride = 1 if d == 0 else 10 ** len(str(most - 1)) if most > 1 else 1
    table = wider[pl.Series(rows)]
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
        "cut": int(counts[cut].sum()),
    }
    sizes = {"MaxJobs": size, "MaxRecords": size, "MaxNodes": target.nodes, "MaxProcs": target.processors}
    header = dict(workload.header) | {key: [str(number)] for key, number in sizes.items()}
    table, lost = _depending(_numbered(table, jobs, counts, copy, stride), jobs, counts, copy, stride)
    entry |= {"notes": {LOST_DEPENDENCIES: lost}} if lost else {}
    return workload.with_jobs(table, entry, machine=target, header=header)


def _factors(
    variant: str, factor: float | None, copies: int | None, target: int, source: int
) -> tuple[float, float, int]:
    """Return the factor of the widths, the mean number of copies, and the largest number of copies."""
    if variant not in VARIANTS:
        raise SwflowError(f"scale: variant: unknown value {variant!r}{suggest(variant, VARIANTS)}")
    if factor is not None and not (factor > 0 and math.isfinite(factor)):
        raise SwflowError(f"scale: factor: {factor}; expected a number above 0")
    if copies is not None and (copies < 1 or variant != "precise-size"):
        raise SwflowError(f"scale: copies: {copies} of {variant}; expected at least 1, and only with precise-size")
    exact = target / source if factor is None else float(factor)
    if variant == "integer":
        whole = round(exact) if factor is None else exact
        if whole < 1 or whole != int(whole):
            raise SwflowError(
                f"scale: factor: {whole:g} is not a positive whole number, which variant integer needs "
                f"({source:,} to {target:,} processors); give another factor, or choose variant precise"
            )
        return whole, whole, int(whole)
    if variant == "precise-size":
        whole = copies or max(1, round(exact))
        return exact, whole, whole
    return exact, exact, math.ceil(exact)


def _widen(table: pl.DataFrame, widened: np.ndarray, factor: float, machine: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Multiply the widths of the widened jobs, cut all jobs to the machine, and return which jobs were cut."""
    wider = pl.Series(widened)
    widths = table.select(  # 0 (unknown in some logs) stays 0
        pl.when(wider & (pl.col(name) > 0)).then(_width(pl.col(name), factor)).otherwise(name).alias(name)
        for name in WIDTHS
        if name in table.columns
    )
    cut = (widths["processors"] > machine).to_numpy()
    changed = table.with_columns(width.clip(upper_bound=machine) for width in widths)
    if "shapes" in table.columns:
        changed = changed.with_columns(shapes=_shapes(table, changed["processors"], widened, factor, machine))
    return changed, cut


def _width(column: pl.Expr, factor: float) -> pl.Expr:
    """Return the rounded (half up) multiple of widths, at least 1."""
    return (column * factor + 0.5).floor().clip(lower_bound=1).cast(pl.Int64)


def _shapes(table: pl.DataFrame, new: pl.Series, widened: np.ndarray, factor: float, machine: int) -> pl.Series:
    """
    Scale the sizes of all shapes as the job's size.

    If several shapes get one size, keep the one with the recorded size, else the one that was nearest to it.
    """
    job = pl.DataFrame({"row": np.arange(table.height), "wider": widened, "old": table["processors"], "new": new})
    every = job.with_columns(shape=table["shapes"]).explode("shape").filter(pl.col("shape").is_not_null())
    every = every.unnest("shape").rename({"processors": "from"})
    to = pl.when("wider").then(_width(pl.col("from"), factor)).otherwise("from")
    kept = (
        every.with_columns(to=to.clip(upper_bound=machine))
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
    """Set the job id of every copy, and the ids of its original and of the preceding job."""
    number = pl.Series(copy)
    source = pl.col("source_job_id") if "source_job_id" in table.columns else pl.col("job_id")
    table = table.with_columns(source_job_id=source, job_id=pl.col("job_id") * stride + number)
    if "array_id" in table.columns:
        table = table.with_columns(array_id=pl.col("array_id") * stride + number)
    if "preceding_job_id" not in table.columns or stride == 1:
        return table
    copies = pl.DataFrame({"preceding_job_id": jobs["job_id"], "last": np.maximum(counts - 1, 0)}).unique(
        "preceding_job_id", keep="first"
    )
    last = table.join(copies, on="preceding_job_id", how="left", maintain_order="left")["last"].fill_null(0)
    same = pl.min_horizontal(number, last)
    return table.with_columns(preceding_job_id=pl.col("preceding_job_id") * stride + same)


def _depending(
    table: pl.DataFrame, jobs: pl.DataFrame, counts: np.ndarray, copy: np.ndarray, stride: int
) -> tuple[pl.DataFrame, int]:
    """Return the copies with the ids of those on which they depend, and the number of dependencies on removed jobs."""
    if "depends_on" not in table.columns or table["depends_on"].null_count() == table.height:
        return table, 0
    table = table.with_row_index("row")
    edges = (
        table.select("row", number=pl.Series(copy), wanted="depends_on")
        .filter(pl.col("wanted").list.len() > 0)
        .explode("wanted")
        .join(pl.DataFrame({"wanted": jobs["job_id"], "last": counts - 1}), on="wanted", how="left")
    )
    kept = edges.filter(pl.col("last").fill_null(0) >= 0)
    to = pl.col("wanted") * stride + pl.min_horizontal("number", pl.col("last").fill_null(0))
    of_job = kept.select("row", depends_on=to).group_by("row").agg(pl.col("depends_on").sort())
    linked = table.select("row").join(of_job, on="row", how="left", maintain_order="left")["depends_on"]
    return table.drop("row").with_columns(linked), edges.height - kept.height
