"""The job table: its columns, units and types, the checks in front of every kernel, and the files that carry it."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.machine import Machine, require_machine
from swflow.names import log_of, steps_of

#: The 18 fields of a line of the Standard Workload Format, in its order. Times are seconds, memory is KB
#: per processor; times and memory may have fractions, the others are whole numbers.
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

#: What cleaning derives: processors (allocated, else requested), estimate (requested time, else run time).
DERIVED_COLUMNS: dict[str, pl.DataType] = {"processors": pl.Int64(), "estimate": pl.Float64()}

#: The columns that every job table has, in order. Null means unknown.
JOB_COLUMNS: dict[str, pl.DataType] = SWF_FIELDS | DERIVED_COLUMNS

#: What every workload must have, in a file as in front of a kernel.
NEEDED_COLUMNS = ("job_id", "submit_time", "run_time", "processors", "estimate")

#: No time of a job may be further from 0, seconds (31,700 years): what is beyond is a mistake or no time.
LONGEST_TIME = 1e12

#: No schedule may reach further, seconds: up to here a float tells quarters of a second apart, so that clocks move.
END_OF_TIME = 2.0**51

#: Tables of more rows are read and written part by part: a hundred million jobs in all columns take 16 GB.
MOST_AT_ONCE = 2**22

#: Rows of a row group of the files that are written part by part.
ROW_GROUP = 2**17

#: The key in the Parquet metadata under which swflow keeps what it knows of a file.
METADATA_KEY = "swflow"


@dataclass(frozen=True)
class Workload:
    """
    A job table and the machine that it is meant for.

    Parameters
    ----------
    jobs : polars.DataFrame
        The columns of `JOB_COLUMNS`, sorted by (submit time, job id), and what steps added.
    machine : Machine
        Where the jobs are to run.
    name : str
        The workload's name: the log's, and a ``+step`` for every step applied.
    header : dict
        The log's SWF header: key to list of values.
    history : tuple of dict
        What was done so far, in order: one entry a stage, with what it removed and why.

    Notes
    -----
    A workload is not changed in place; `with_jobs` gives a new one.
    """

    jobs: pl.DataFrame
    machine: Machine
    name: str
    header: Mapping[str, list[str]] = field(default_factory=dict)
    history: tuple[dict[str, Any], ...] = ()

    @property
    def log(self) -> str:
        """The name of the log that the workload comes from."""
        return log_of(self.name)

    @property
    def steps(self) -> list[str]:
        """The names of the steps that were applied to the log, in order."""
        return steps_of(self.name)

    def with_jobs(self, jobs: pl.DataFrame, entry: dict[str, Any], **changes: Any) -> "Workload":
        """
        Return the workload with other jobs and one more entry in its history.

        Parameters
        ----------
        jobs : polars.DataFrame
            The new job table.
        entry : dict
            What was done: at least a ``stage``.
        **changes
            Other fields to change, such as ``name`` or ``machine``.
        """
        return replace(self, jobs=jobs, history=(*self.history, entry), **changes)


def sort_jobs(jobs: pl.DataFrame) -> pl.DataFrame:
    """Sort jobs by (submit time, job id), the order of every job table; equal pairs keep their order."""
    return jobs.sort("submit_time", "job_id", maintain_order=True)


# --- the one door: kernels check nothing, so nothing reaches them that did not pass here -----------------------


def check_workload(
    jobs: pl.DataFrame,
    machine: int,
    name: str = "jobs",
    *,
    needed: Iterable[str] = NEEDED_COLUMNS,
) -> pl.DataFrame:
    """
    Require that a job table can be simulated, or raise an error that names the first job or column that cannot.

    O(n), some milliseconds for 200,000 jobs.

    Parameters
    ----------
    jobs : polars.DataFrame
        The table: with `NEEDED_COLUMNS`, of the types of `JOB_COLUMNS` or narrower ones, without nulls, sorted by
        (submit time, job id); times finite and at most `LONGEST_TIME`; run times and estimates not negative; 1 to
        ``machine`` processors.
    machine : int
        Processors of the machine.
    name : str
        The workload's name, for errors.
    needed : iterable of str
        The columns that must be there, without nulls.

    Returns
    -------
    polars.DataFrame
        The table, its numbers in the types that kernels take.

    Raises
    ------
    SwflowError
        If the table is not as said.

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
    for column in needed:
        unknown = jobs[column].null_count()
        if unknown:
            raise SwflowError(
                f"{name}: {unknown:,} jobs have no {column.replace('_', ' ')}; "
                "drop them when cleaning (rules no-processors and unknown-run-time)"
            )
    times = {column: jobs[column].to_numpy() for column in needed if JOB_COLUMNS[column].is_float()}
    ids = jobs["job_id"].to_numpy()
    check_arrays(times, jobs["processors"].to_numpy(), machine, name=name, ids=ids)
    submit = times["submit_time"]
    unordered = (submit[1:] == submit[:-1]) & (ids[1:] < ids[:-1])
    if unordered.any():
        place = int(np.argmax(unordered)) + 1
        raise SwflowError(
            f"{name}: job {ids[place]} comes after job {ids[place - 1]} of the same submit time; sort the jobs by "
            "(submit_time, job_id)"
        )
    return jobs


def check_columns(jobs: pl.DataFrame, name: str, needed: Iterable[str] = NEEDED_COLUMNS) -> pl.DataFrame:
    """
    Require the columns of a job table and their types; return the table with numbers in the types of `JOB_COLUMNS`.

    Narrower numbers are taken (whole numbers for times, 32 bits); columns that are no job's are left as they are.

    Raises
    ------
    SwflowError
        If a column is missing or holds something else: which column, which type.
    """
    for column in needed:
        if column not in jobs.columns:
            raise SwflowError(f"{name}: no column {column}; a workload needs {', '.join(needed)}")
    schema = jobs.schema
    wider: dict[str, pl.DataType] = {}
    for column, wanted in JOB_COLUMNS.items():
        if column not in schema or schema[column] == wanted:
            continue
        found = schema[column]
        whole = found.is_integer() and found not in (pl.UInt64, pl.Int128, pl.UInt128)
        if not (whole or found == pl.Null or (wanted.is_float() and found == pl.Float32)):
            raise SwflowError(f"{name}: column {column} holds {found}, not {wanted}; convert it")
        wider[column] = wanted
    if "shapes" in schema:
        check_shapes(schema["shapes"], name)
    return jobs.with_columns(pl.col(column).cast(wanted) for column, wanted in wider.items())


def check_shapes(found: pl.DataType, name: str) -> None:
    """Require that the column ``shapes`` holds lists of processors and run times."""
    inner = getattr(found, "inner", None)
    fields = {part.name: part.dtype for part in getattr(inner, "fields", ())}
    numbers = ("processors" in fields and fields["processors"].is_integer()) and (
        "run_time" in fields and fields["run_time"].is_numeric()
    )
    if found != pl.Null and not numbers:
        raise SwflowError(
            f"{name}: column shapes holds {found}, not lists of {{processors, run_time}}; make it with: swflow moldable"
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
) -> None:
    """
    Require that the arrays of a kernel are what it takes for granted.

    Parameters
    ----------
    times : mapping of str to float64 array of shape (jobs,)
        By name: ``submit_time``, ascending, may be negative; all others are lengths, not negative. Seconds.
    processors : int64 array of shape (jobs,)
        1 to ``machine``.
    machine : int
        Processors of the machine, 1 to `swflow.machine.MOST_PROCESSORS`.
    name : str
        What they are of, for errors.
    ids : int64 array of shape (jobs,), optional
        The jobs' numbers, for errors; by default their places from 0.
    stretch : float
        How many times its length a run may take.
    others : mapping, optional
        More arrays by name, or None, that have an element a job.

    Raises
    ------
    SwflowError
        If one is not: the first job at fault is named.

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
        raise SwflowError(f"{name}: processors must be whole numbers, one a job, not {processors.dtype}")
    lengths = 0.0
    for column, values in times.items():
        said = column.replace("_", " ")
        if values.shape != (count,) or values.dtype.kind not in "fiu":
            raise SwflowError(f"{name}: the {said} must be {count:,} numbers, not {values.dtype} of {values.shape}")
        if not count:
            continue
        low, high = values.min(), values.max()
        if not (low >= -LONGEST_TIME and high <= LONGEST_TIME):  # not a number is neither
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
    if count and not (processors.min() >= 1 and processors.max() <= machine):
        _refuse_processors(processors, machine, refuse)
    if lengths * stretch > END_OF_TIME:
        raise SwflowError(
            f"{name}: the run times and estimates come to {lengths * stretch:.3g} s, beyond {END_OF_TIME:.3g} s, where "
            "clocks stand still; correct the longest"
        )
    for column, array in (others or {}).items():
        if array is not None and len(array) != count:
            raise SwflowError(f"{name}: {column} must have an element a job ({count:,}), not {len(array):,}")


def _refuse_processors(processors: np.ndarray, machine: int, refuse: Any) -> None:
    few = processors < 1
    if few.any():
        place = int(np.argmax(few))
        refuse(place, f": {processors[place]} processors, below 1; correct it, or drop the job when cleaning")
    wide = processors > machine
    refuse(
        int(np.argmax(wide)),
        f" needs {processors[np.argmax(wide)]:,} of {machine:,} processors, and {wide.sum() - 1:,} more jobs are too "
        "wide; give a larger machine (--processors) or drop them when cleaning (rule wider-than-machine)",
    )


# --- files -----------------------------------------------------------------------------------------------


def read_workload(path: str | os.PathLike[str], columns: Iterable[str] | None = None) -> Workload:
    """
    Read a workload from a Parquet file that swflow wrote.

    Parameters
    ----------
    path : path-like
        For example ``results/workloads/KTH-SP2.parquet``.
    columns : iterable of str, optional
        Read only these columns, as far as the file has them, and what every workload must have.

    Returns
    -------
    Workload
        Its name is the file's: a copy under another name is another workload.

    Raises
    ------
    SwflowError
        If the file is missing, is no workload, or has a column missing or of another type.
    """
    about = read_metadata(path)
    if about.get("kind") != "workload":
        raise SwflowError(f"{path}: not a workload of swflow; make one with: swflow clean LOG.swf.gz -o {path}")
    machine, header, history = about.get("machine"), about.get("header"), about.get("history")
    if not (isinstance(machine, dict) and isinstance(header, dict) and isinstance(history, list)):
        raise SwflowError(f"{path}: its notes on machine, header and history are damaged; make it again")
    try:
        made_for = Machine(**machine)
    except TypeError as error:
        raise SwflowError(f"{path}: its notes describe no machine ({error}); make it again") from None
    try:
        jobs = read_columns(path, None if columns is None else {*columns, *NEEDED_COLUMNS})
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SwflowError(f"{path}: damaged data ({str(error).splitlines()[0]}); make it again") from None
    return Workload(
        jobs=check_columns(jobs, str(path)),
        machine=made_for,
        name=Path(path).stem,
        header=header,
        history=tuple(history),
    )


def read_columns(path: str | os.PathLike[str], columns: Iterable[str] | None = None) -> pl.DataFrame:
    """
    Read columns of a Parquet file, in the file's order; of a large one each into an array of its own, one by one.

    Parameters
    ----------
    path : path-like
        The file.
    columns : iterable of str, optional
        Those of these that the file has; by default all.
    """
    file = Path(path)
    lazy = pl.scan_parquet(file, glob=False)
    names = list(lazy.collect_schema())
    if columns is not None:
        wanted = set(columns)
        names = [name for name in names if name in wanted]
    if height_of(file) <= MOST_AT_ONCE:
        return pl.read_parquet(file, glob=False, columns=names)
    # All at once there would be two of them for a while, the parts and the whole.
    return pl.DataFrame([pl.read_parquet(file, glob=False, columns=[name]).to_series().rechunk() for name in names])


def height_of(path: str | os.PathLike[str]) -> int:
    """Return how many rows a Parquet file has; its footer says so."""
    return int(pl.scan_parquet(Path(path), glob=False).select(pl.len()).collect(engine="in-memory").item())


def write_workload(workload: Workload, path: str | os.PathLike[str]) -> None:
    """
    Write a workload to a Parquet file, atomically; the same workload gives the same bytes.

    Parameters
    ----------
    workload : Workload
        What to write.
    path : path-like
        Where; its folder is made if need be.
    """
    about = {
        "kind": "workload",
        "machine": workload.machine.to_dict(),
        "header": dict(workload.header),
        "history": list(workload.history),
    }
    write_table(workload.jobs, path, about)


def write_table(
    table: pl.DataFrame | pl.LazyFrame, path: str | os.PathLike[str], about: Mapping[str, Any], rows: int = 0
) -> None:
    """
    Write a table to Parquet, atomically, with ``about`` as JSON in its metadata.

    Parameters
    ----------
    table : polars.DataFrame or polars.LazyFrame
        What to write.
    path : path-like
        Where.
    about : mapping
        The notes.
    rows : int
        How many rows a lazy table has: one of more than `MOST_AT_ONCE` is never in the memory as a whole.
    """
    notes = {METADATA_KEY: json.dumps(about, sort_keys=True)}
    with atomic_path(path) as temporary:
        if isinstance(table, pl.LazyFrame) and rows > MOST_AT_ONCE:
            table.sink_parquet(temporary, compression="zstd", metadata=notes, row_group_size=ROW_GROUP)
        else:
            table.lazy().collect(engine="in-memory").write_parquet(temporary, compression="zstd", metadata=notes)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """
    Read what swflow noted in a Parquet file.

    Parameters
    ----------
    path : path-like
        A Parquet file.

    Returns
    -------
    dict
        Empty if swflow did not write the file.

    Raises
    ------
    SwflowError
        If the file is missing or no Parquet.
    """
    if not Path(path).is_file():
        raise SwflowError(f"{path}: no such file")
    try:
        metadata = pl.read_parquet_metadata(Path(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SwflowError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None
    try:
        about = json.loads(metadata.get(METADATA_KEY, "{}"))
    except ValueError:
        about = None
    if not isinstance(about, dict):
        raise SwflowError(f"{path}: what swflow noted in it is no JSON; make it again")
    return about
