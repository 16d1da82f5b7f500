"""The job table: its columns, units and types, and the Parquet files that carry it with its machine."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.machine import Machine
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


def read_workload(path: str | os.PathLike[str]) -> Workload:
    """
    Read a workload from a Parquet file that swflow wrote.

    Parameters
    ----------
    path : path-like
        For example ``results/workloads/KTH-SP2.parquet``.

    Returns
    -------
    Workload
        Its name is the file's: a copy under another name is another workload.

    Raises
    ------
    SwflowError
        If the file is missing, or is no workload.
    """
    about = read_metadata(path)
    if about.get("kind") != "workload":
        raise SwflowError(f"{path}: not a workload of swflow; make one with: swflow clean LOG.swf.gz -o {path}")
    return Workload(
        jobs=pl.read_parquet(Path(path)),
        machine=Machine(**about["machine"]),
        name=Path(path).stem,
        header=about["header"],
        history=tuple(about["history"]),
    )


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


def write_table(table: pl.DataFrame, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
    """Write a table to Parquet, atomically, with ``about`` as JSON in its metadata."""
    with atomic_path(path) as temporary:
        table.write_parquet(temporary, compression="zstd", metadata={METADATA_KEY: json.dumps(about, sort_keys=True)})


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
    return json.loads(metadata.get(METADATA_KEY, "{}"))
