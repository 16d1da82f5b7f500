"""The job table: columns, units, types, and the input validation of all kernels."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.header import Header
from swflow.jobs.machine import MOST_PROCESSORS, Machine, require_machine
from swflow.names import log_of, steps_of
from swflow.values import LONGEST_TIME

#: The 18 fields of a line of the Standard Workload Format, in its order. Times are seconds, memory is KB per
#: processor. Times and memory can be fractions; the other fields are whole numbers.
SWF_FIELDS: dict[str, pl.DataType] = {
    "job_id": pl.Int64(),
    "submit_time": pl.Float64(),
    "wait_time": pl.Float64(),
    "run_time": pl.Float64(),
    "allocated_processors": pl.Int64(),
    "average_cpu_time": pl.Float64(),
    "used_memory": pl.Float64(),
    "requested_processors": pl.Int64(),
    "requested_time": pl.Float64(),
    "requested_memory": pl.Float64(),
    "status": pl.Int64(),
    "user_id": pl.Int64(),
    "group_id": pl.Int64(),
    "executable_id": pl.Int64(),
    "queue_id": pl.Int64(),
    "partition_id": pl.Int64(),
    "preceding_job_id": pl.Int64(),
    "think_time": pl.Float64(),
}

#: Columns that change when a job may start; a workload that has one is simulated with it. ``depends_on``: the ids of
#: the jobs that must have ended before (and ``think_time`` seconds must have passed); ``eligible_after``: the seconds
#: from its submission after which a job without known predecessors may start (``sbatch --begin``, a hold);
#: ``cancelled_after``: the seconds from its submission after which a job that did not run was cancelled; ``array_id``,
#: ``array_limit``: the job array of a task, and the most tasks of it that run at once. Null: none.
ELIGIBILITY_COLUMNS: dict[str, pl.DataType] = {
    "depends_on": pl.List(pl.Int64()),
    "eligible_after": pl.Float64(),
    "cancelled_after": pl.Float64(),
    "array_id": pl.Int64(),
    "array_limit": pl.Int64(),
}

#: Columns of an imported log in addition to the standard's fields, if the source has them: the site's job id, its
#: Unix group (``group_id`` is the account), GPUs, suspended time in seconds, licenses of all products, memory of the
#: whole job in MB, nodes, requested nodes, constraint on the features of nodes, and those of
#: `ELIGIBILITY_COLUMNS`.
IMPORTED_COLUMNS: dict[str, pl.DataType] = {
    "site_job_id": pl.String(),
    "unix_group_id": pl.Int64(),
    "gpus": pl.Int64(),
    "suspended_time": pl.Float64(),
    "licenses": pl.Int64(),
    "memory": pl.Int64(),
    "array_id": pl.Int64(),
    "array_limit": pl.Int64(),
    "depends_on": pl.List(pl.Int64()),
    "eligible_after": pl.Float64(),
    "nodes": pl.Int64(),
    "requested_nodes": pl.Int64(),
    "constraint_id": pl.Int64(),
}

#: The columns that every job table has, in order: the fields, processors (allocated, else requested) and estimate
#: (requested time, else run time). Null means unknown.
JOB_COLUMNS: dict[str, pl.DataType] = SWF_FIELDS | {"processors": pl.Int64(), "estimate": pl.Float64()}

#: Columns that every workload must have, in files and for kernels.
NEEDED_COLUMNS = ("job_id", "submit_time", "run_time", "processors", "estimate")

#: Largest time of a schedule, seconds: up to here, the resolution of floats is 0.25 s or better.
END_OF_TIME = 2.0**51


#: An entry of a workload's history: the ``stage``, the jobs ``read`` and ``kept``, those ``removed`` by reason, and
#: what the stage notes besides.
Entry = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """
    A job table with its machine.

    Parameters
    ----------
    jobs : polars.DataFrame
        The columns of `JOB_COLUMNS`, sorted by (submit time, job id), and those added by steps.
    machine : Machine
        The machine on which the jobs run.
    name : str
        Name of the workload: the log's name, with a ``+step`` for every applied step.
    header : Header
        The log's SWF header; a mapping from keys to lists of values becomes one.
    history : tuple of dict
        The stages so far, in order: one entry per stage, with the removed jobs and reasons.

    Notes
    -----
    Workloads are immutable; `with_jobs` returns a new one.

    Examples
    --------
    >>> import swflow
    >>> workload = swflow.generate(jobs=100, processors=64, name="demo")
    >>> workload.name, workload.jobs.height, workload.steps
    ('demo', 100, [])
    """

    jobs: pl.DataFrame
    machine: Machine
    name: str
    header: Header = field(default_factory=Header)
    history: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", Header.of(self.header))

    @property
    def log(self) -> str:
        """Return the name of the original log."""
        return log_of(self.name)

    @property
    def steps(self) -> list[str]:
        """Return the names of the applied steps, in order."""
        return steps_of(self.name)

    def with_jobs(self, jobs: pl.DataFrame, entry: Entry, **changes: Any) -> "Workload":
        """Return the workload with other jobs, a further history entry (with a ``stage``), and other changed fields."""
        return replace(self, jobs=jobs, history=(*self.history, entry), **changes)


def sort_jobs(jobs: pl.DataFrame) -> pl.DataFrame:
    """Sort jobs by (submit time, job id), the order of every job table; equal pairs keep their order."""
    return jobs.sort("submit_time", "job_id", maintain_order=True)


def is_sorted(jobs: pl.DataFrame, first: str = "submit_time", second: str = "job_id") -> bool:
    """Return whether jobs are sorted by two columns; jobs with unknown values are not."""
    one, two = (jobs[name].to_numpy() for name in (first, second))  # null values become NaN
    return bool(((one[1:] > one[:-1]) | ((one[1:] == one[:-1]) & (two[1:] >= two[:-1]))).all())


def conformed(table: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return the columns of a schema, cast to its types; missing ones are null."""
    return table.select(
        (pl.col(name) if name in table.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in schema.items()
    )


def log_fields(known: Mapping[str, np.ndarray | None]) -> pl.DataFrame:
    """Return the fields of a synthetic log; missing fields, and NaN, are null."""
    columns = [pl.Series(name, values, nan_to_null=True) for name, values in known.items() if values is not None]
    return conformed(pl.DataFrame(columns), SWF_FIELDS)


def require_known(jobs: pl.DataFrame, columns: Iterable[str], where: str, remedy: str) -> None:
    """Raise an error that ends in a remedy if a column of a job table has an unknown value."""
    for column in columns:
        unknown = jobs[column].null_count()
        if unknown:
            raise SwflowError(f"{where}: {unknown:,} jobs have no {column.replace('_', ' ')}{remedy}")


# --- input validation: kernels do not check their arguments, so all of them are checked here -------------------


#: What to do about jobs that are wider than a workload's machine.
FOR_WIDE_JOBS = "give a larger machine (--processors) or drop them when cleaning (rule wider-than-machine)"


def check_workload(
    jobs: pl.DataFrame,
    machine: int,
    name: str = "jobs",
    *,
    needed: Iterable[str] = NEEDED_COLUMNS,
    if_too_wide: str = FOR_WIDE_JOBS,
) -> pl.DataFrame:
    """
    Check that a job table can be simulated; raise an error that names the first invalid job or column.

    The table has the ``needed`` columns, with the types of `JOB_COLUMNS` or narrower ones, without nulls, sorted by
    (submit time, job id). Times must be finite and at most `LONGEST_TIME`, run times and estimates not negative, and
    processors from 1 to those of the ``machine``; errors of wider jobs end with ``if_too_wide``. The result has numbers
    in the types of the kernels. The check takes O(n) time, some milliseconds for 200,000 jobs.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [7], "submit_time": [0.0], "run_time": [-5.0], "processors": [1],
    ...                      "estimate": [9.0]})
    >>> check_workload(jobs, 4, "tiny")
    Traceback (most recent call last):
        ...
    swflow.errors.SwflowError: tiny: job 7: the run time is -5 s, below 0; correct it, or drop the job when cleaning
    """
    needed = tuple(needed)
    jobs = check_columns(jobs, name, needed)
    require_known(jobs, needed, name, "; drop them when cleaning (rules no-processors and unknown-run-time)")
    times = {column: jobs[column].to_numpy() for column in needed if JOB_COLUMNS[column].is_float()}
    ids = jobs["job_id"].to_numpy()
    check_arrays(times, jobs["processors"].to_numpy(), machine, name=name, ids=ids, if_too_wide=if_too_wide)
    submit = times["submit_time"]
    unordered = (submit[1:] == submit[:-1]) & (ids[1:] < ids[:-1])
    if unordered.any():
        place = int(np.argmax(unordered)) + 1
        raise SwflowError(
            f"{name}: job {ids[place]} comes after job {ids[place - 1]} of the same submit time; sort the jobs by "
            "(submit_time, job_id)"
        )
    return jobs


def has_values(jobs: pl.DataFrame, column: str) -> bool:
    """Return whether a table has a column with at least one known value."""
    return column in jobs.columns and jobs[column].null_count() < jobs.height


def check_columns(jobs: pl.DataFrame, name: str, needed: Iterable[str] = NEEDED_COLUMNS) -> pl.DataFrame:
    """
    Check the columns of a job table and their types; return the table with numbers in the types of `JOB_COLUMNS`.

    Columns without any value get their type, too. Narrower numbers are accepted (whole numbers for times, 32 bits).
    Columns outside of `JOB_COLUMNS` stay unchanged.
    """
    for column in needed:
        if column not in jobs.columns:
            is_optional = column not in NEEDED_COLUMNS
            remedy = "clean the log with swflow, or add it" if is_optional else f"a workload needs {', '.join(needed)}"
            raise SwflowError(f"{name}: no column {column}; {remedy}")
    known = JOB_COLUMNS | IMPORTED_COLUMNS | ELIGIBILITY_COLUMNS
    typed = [column for column, found in jobs.schema.items() if column in JOB_COLUMNS or found == pl.Null]
    for column, found in jobs.schema.items():
        wanted = known.get(column)
        if wanted is not None and found not in (wanted, pl.Null) and not _fits(found, wanted, column in JOB_COLUMNS):
            raise SwflowError(f"{name}: column {column} holds {found}, not {wanted}; convert it")
    if "shapes" in jobs.columns:
        _check_shapes(jobs.schema["shapes"], name)
    return jobs.cast({column: known[column] for column in typed if column in known})


def _fits(found: pl.DataType, wanted: pl.DataType, is_standard: bool) -> bool:
    """Return whether a type holds the values of another one, or a narrower range of them."""
    if isinstance(wanted, pl.List) and isinstance(found, pl.List):
        return found.inner == pl.Null or _fits(found.inner, wanted.inner, is_standard)  # type: ignore[arg-type]
    is_whole = found.is_integer() and found not in (pl.UInt64, pl.Int128, pl.UInt128)
    is_real = found == pl.Float32 or (found == pl.Float64 and not is_standard)  # steps add fractions
    return (wanted.is_numeric() and is_whole) or (is_real and (wanted.is_float() or not is_standard))


def check_recorded(jobs: pl.DataFrame, name: str) -> pl.DataFrame:
    """
    Return the jobs with a recorded wait time that were not cancelled, after the checks of `check_workload`.

    Recorded jobs need no estimate, and may be wider than the machine.
    """
    jobs = check_columns(jobs, name, ("wait_time",)).filter(pl.col("wait_time").is_not_null())
    if "cancelled_after" in jobs.columns:
        jobs = jobs.filter(pl.col("cancelled_after").is_null())
    known = [column for column in NEEDED_COLUMNS if column != "estimate"]
    jobs = check_workload(jobs, MOST_PROCESSORS, name, needed=known)
    wait, ids = np.abs(jobs["wait_time"].to_numpy()), jobs["job_id"].to_numpy()
    check_arrays({"wait_time": wait}, jobs["processors"].to_numpy(), MOST_PROCESSORS, name=name, ids=ids)
    return jobs


def without_status(jobs: pl.DataFrame, status: Collection[int], name: str) -> pl.DataFrame:
    """
    Return the jobs of other status than these, without dependencies on removed jobs.

    ``name`` is the workload's, for errors.
    """
    if not status:
        return jobs
    jobs = check_columns(jobs, name, ("status",))
    is_removed = pl.col("status").is_in(list(status)).fill_null(False)
    if "depends_on" not in jobs.columns:
        return jobs.filter(~is_removed)
    removed = jobs.filter(is_removed)["job_id"].implode()
    kept = pl.col("depends_on").list.set_difference(removed)
    return jobs.filter(~is_removed).with_columns(depends_on=pl.when(kept.list.len() > 0).then(kept.list.sort()))


def _check_shapes(found: pl.DataType, name: str) -> None:
    """Check that the column ``shapes`` holds lists of processors and run times."""
    fields = {part.name: part.dtype for part in getattr(getattr(found, "inner", None), "fields", ())}
    processors, run_time = fields.get("processors", pl.Null), fields.get("run_time", pl.Null)
    if found != pl.Null and not (processors.is_integer() and run_time.is_numeric()):
        raise SwflowError(
            f"{name}: column shapes holds {found}, not lists of {{processors, run_time}}; create it: swflow moldable"
        )


def check_arrays(
    times: Mapping[str, np.ndarray],
    processors: np.ndarray,
    machine: int,
    *,
    name: str = "jobs",
    ids: np.ndarray | None = None,
    stretch: float = 1.0,
    others: Mapping[str, np.ndarray | None] | None = None,
    if_too_wide: str = FOR_WIDE_JOBS,
) -> None:
    """
    Check that the arrays of a kernel fulfil its preconditions; raise an error that names the first invalid job.

    The ``times`` in seconds have names: ``submit_time`` is ascending and can be negative; all others are durations, not
    negative, which can be prolonged by the factor ``stretch``. ``processors`` are from 1 to those of the ``machine``.
    Each of the ``others`` that is not None must have one element per job. Without ``ids``, errors have positions from
    0.

    Examples
    --------
    >>> check_arrays({"submit_time": np.array([0.0, 1.0])}, np.array([1, 0]), 4)
    Traceback (most recent call last):
        ...
    swflow.errors.SwflowError: jobs: job 1: 0 processors, below 1; correct it, or drop the job when cleaning
    """
    require_machine(machine)
    count = processors.size

    def refuse(place: int, what: str) -> NoReturn:
        job = place if ids is None else ids[place]
        raise SwflowError(f"{name}: job {job}{what}")

    advice = "; correct it, or drop the job when cleaning"
    if processors.ndim != 1 or processors.dtype.kind not in "iu":
        raise SwflowError(f"{name}: processors: {processors.dtype}; expected one whole number per job")
    lengths = 0.0
    for column, values in times.items():
        said = column.replace("_", " ")
        if values.shape != (count,) or values.dtype.kind not in "fiu":
            raise SwflowError(f"{name}: {said}: {values.dtype} of {values.shape}; expected {count:,} numbers")
        if not count:
            continue
        low, high = values.min(), values.max()
        if not (low >= -LONGEST_TIME and high <= LONGEST_TIME):  # NaN fails both comparisons
            place = int(np.argmax(~(np.abs(values) <= LONGEST_TIME)))
            fault = f"beyond {LONGEST_TIME:g} s" if np.isfinite(values[place]) else "no finite number"
            refuse(place, f": the {said} is {values[place]:g}, {fault}{advice}")
        if column != "submit_time":
            if low < 0:
                place = int(np.argmax(values < 0))
                refuse(place, f": the {said} is {values[place]:g} s, below 0{advice}")
            lengths += float(values.sum())
        elif (values[1:] < values[:-1]).any():
            place = int(np.argmax(values[1:] < values[:-1])) + 1
            refuse(place, " is submitted before the one above it; sort the jobs by (submit_time, job_id)")
    if count and processors.min() < 1:
        place = int(np.argmax(processors < 1))
        refuse(place, f": {processors[place]} processors, below 1{advice}")
    if count and processors.max() > machine:
        wide = processors > machine
        place = int(np.argmax(wide))
        refuse(
            place,
            f" needs {processors[place]:,} of {machine:,} processors, and {wide.sum() - 1:,} more jobs are too "
            f"wide; {if_too_wide}",
        )
    if lengths * stretch > END_OF_TIME:
        raise SwflowError(
            f"{name}: the run times and estimates come to {lengths * stretch:.3g} s, beyond "
            f"{END_OF_TIME:.3g} s, where floating-point clocks cannot advance; correct the longest"
        )
    for column, array in (others or {}).items():
        if array is not None and len(array) != count:
            raise SwflowError(f"{name}: {column} must have one element per job ({count:,}), not {len(array):,}")
