"""Export workloads and schedules: SWF, CSV, Parquet, and the JSON format of Batsim."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from swflow.errors import SwflowError
from swflow.files.atomic import atomic_path
from swflow.files.tables import read_metadata, read_parquet, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, check_columns, has_values
from swflow.log.site import SIZES
from swflow.log.swf import GUESSED_MACHINE, run_as_swf, write_swf
from swflow.workload.clean import GUESSED, guess_of, is_as_recorded, open_workload, stated_machine

#: Supported suffixes of `export`.
ENDINGS = (".swf", ".swf.gz", ".csv", ".parquet", ".json")

#: Columns that decide when a job may start, besides the machine's resources, for which SWF and Batsim have no field.
_WITHOUT_FIELD = ("depends_on", "eligible_after", "cancelled_after", "array_limit", "shapes")


class Exported(NamedTuple):
    """What `export` wrote: the number of jobs, and the jobs with a value in each column that the format lacks."""

    jobs: int
    left_out: Mapping[str, int]


def export(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    workload: str | os.PathLike[str] | None = None,
    estimates: str = "raise",
) -> Exported:
    """
    Write a workload or a schedule in the format given by the suffix of the output.

    A schedule is written to SWF as a log with the wait times of the run, to CSV and Parquet as the outcomes joined
    with the jobs, and to JSON, the input format of Batsim, as the jobs with their simulated processors and run times.

    ``source`` is a workload, a log, or a run, with the path of its ``workload`` if that was moved. Batsim kills a job
    at its wall time; the ``estimates`` "raise" raise the wall time to the run time if it is smaller, "kill" do not.
    The result has the number of jobs, and what SWF and Batsim have no field for.
    """
    path = Path(output)
    ending = next((ending for ending in reversed(ENDINGS) if path.name.endswith(ending)), None)
    if ending is None:
        raise SwflowError(f"{output}: unknown ending; use {', '.join(ENDINGS)}")
    if estimates not in ("raise", "kill"):
        raise SwflowError(f"--estimates: unknown value {estimates!r}; known are raise, kill")
    about = read_metadata(source) if Path(source).suffix == ".parquet" else {}
    is_run = about.get("kind") == "run"
    if is_run:
        opened, table = _schedule(source, about, workload)
        opened = replace(opened, machine=Machine(**about["machine"]))
    elif workload is not None:
        raise SwflowError(f"--workload: applies to runs only, and {source} is not a run")
    else:
        opened = open_workload(source)
        table = opened.jobs
    if ending.startswith(".swf"):
        write_swf(path, run_as_swf(opened.jobs, table) if is_run else table, written_header(opened))
    elif ending == ".parquet" and not is_run:
        write_workload(opened, path)
    else:
        with atomic_path(path) as temporary:
            if ending == ".json":
                content = as_batsim(replace(opened, jobs=table), estimates)
                temporary.write_text(json.dumps(content, indent=1) + "\n")
            elif ending == ".parquet":
                table.write_parquet(temporary, compression="zstd")
            else:
                _without_nesting(table).write_csv(temporary)
    is_nested = ending in (".csv", ".parquet")
    return Exported(
        table.height, {} if is_nested else without_field(replace(opened, jobs=table), ending, is_run=is_run)
    )


def without_field(workload: Workload, ending: str, *, is_run: bool) -> dict[str, int]:
    """
    Count the jobs with values that decide when they may start, and that a format has no field for, by column.

    The format is SWF or Batsim's, by the ending. SWF has a predecessor (field 17), and cancelled jobs with their waits.
    The submit times of a run are those at which jobs became eligible.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2, 3], "depends_on": [None, [1], [1, 2]], "preceding_job_id": [None, 1, 1]})
    >>> without_field(Workload(jobs, Machine.of(8), "tiny"), ".swf", is_run=False)
    {'depends_on': 1}
    """
    jobs, found = workload.jobs, {}
    wanted = [name for name in (*_WITHOUT_FIELD, *workload.machine.resources) if has_values(jobs, name)]
    for name in wanted:
        is_lost = pl.col(name).is_not_null()
        if ending != ".json" and name == "depends_on" and "preceding_job_id" in jobs.columns:
            is_lost &= pl.col(name).ne_missing(pl.concat_list("preceding_job_id"))
        if ending != ".json" and name == "cancelled_after" and "wait_time" in jobs.columns:
            is_lost &= pl.col(name).ne_missing(pl.col("wait_time"))
        count = jobs.select(is_lost.sum()).item()
        if count and not (is_run and name == "eligible_after"):
            found[name] = count
    return found


def left_out_in_words(left_out: Mapping[str, int], ending: str) -> str:
    """
    Return which columns a format has no field for; empty if there is none.

    Examples
    --------
    >>> left_out_in_words({"depends_on": 3, "array_limit": 1200}, ".json")
    'Batsim has no field for depends_on (3 jobs), array_limit (1,200 jobs): left out'
    """
    columns = ", ".join(f"{name} ({count:,} job{'s' * (count != 1)})" for name, count in left_out.items())
    return f"{'Batsim' if ending == '.json' else 'SWF'} has no field for {columns}: left out" if columns else ""


def written_header(workload: Workload) -> dict[str, list[str]]:
    """
    Return the header of a workload for a log in the Standard Workload Format, with the size of its machine.

    A size that the header states or that is a guess stays as it is. The sizes of partitions are left out if steps
    changed the jobs.

    Examples
    --------
    >>> written_header(Workload(pl.DataFrame(), Machine.of(8), "tiny", {"MaxProcs": ["4"], "Computer": ["tiny"]}))
    {'MaxProcs': ['8'], 'Computer': ['tiny'], 'MaxNodes': ['8']}
    """
    header = dict(workload.header)
    if not is_as_recorded(workload):
        header.pop(SIZES, None)
    machine = workload.machine
    stated, source = stated_machine(workload.header) or (None, "")
    is_stated = source not in GUESSED and stated is not None
    if guess_of(workload) or (is_stated and stated == Machine(machine.processors, machine.nodes)):
        return header
    notes = [note for note in header.get("Note", ()) if note != GUESSED_MACHINE]
    header |= {"Note": notes, "MaxNodes": [str(machine.nodes)], "MaxProcs": [str(machine.processors)]}
    return {key: values for key, values in header.items() if values}


def _schedule(
    source: str | os.PathLike[str], about: Mapping[str, Any], workload: str | os.PathLike[str] | None
) -> tuple[Workload, pl.DataFrame]:
    """Return the workload of a run, and its outcomes joined with the jobs."""
    path = Path(workload or about["source"])
    if not path.is_file():
        raise SwflowError(f"{source}: its workload {path} is missing; give its path: --workload FILE")
    opened = open_workload(path)
    outcomes = check_columns(read_parquet(source), str(source), ("job_id", "submit_time", "run_time", "processors"))
    known = [name for name in opened.jobs.columns if name not in outcomes.columns]
    table = outcomes.join(opened.jobs.select("job_id", *known), on="job_id", how="inner", maintain_order="left")
    if table.height < outcomes.height:
        raise SwflowError(
            f"{source}: {outcomes.height - table.height} jobs are not in {path}; expected the simulated one"
        )
    return opened, table


def _without_nesting(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with its lists and structures as JSON."""
    nested = [name for name, dtype in table.schema.items() if isinstance(dtype, pl.List | pl.Struct)]
    return table.with_columns(
        pl.Series(name, [json.dumps(value) if value is not None else None for value in table[name].to_list()])
        for name in nested
    )


def as_batsim(workload: Workload, estimates: str = "raise") -> dict[str, object]:
    """
    Return a workload in Batsim's format: rigid jobs with delay profiles; ``estimates`` is as in `export`.

    Examples
    --------
    >>> from swflow.jobs.machine import Machine
    >>> jobs = pl.DataFrame({"job_id": [1], "submit_time": [5.0], "run_time": [60.0], "processors": [4],
    ...                      "estimate": [90.0]})
    >>> as_batsim(Workload(jobs, Machine.of(8), "tiny"))["jobs"]
    [{'id': '1', 'subtime': 5.0, 'walltime': 90.0, 'res': 4, 'profile': 'delay-60'}]
    """
    jobs = workload.jobs
    for column in ("processors", "run_time"):
        if jobs[column].null_count():
            raise SwflowError(f"export: {workload.name}: {column} of some jobs is unknown; clean the log first")
    estimate = pl.col("estimate").fill_null(pl.col("run_time")) if "estimate" in jobs.columns else pl.col("run_time")
    if estimates == "raise":
        estimate = pl.max_horizontal(estimate, "run_time")
    rows = jobs.select("job_id", "submit_time", "run_time", "processors", walltime=estimate).iter_rows(named=True)
    content: dict[str, Any] = {"nb_res": workload.machine.processors, "jobs": [], "profiles": {}}
    for row in rows:
        name = f"delay-{row['run_time']:.10g}"
        content["profiles"][name] = {"type": "delay", "delay": row["run_time"]}
        job = {"id": str(row["job_id"]), "subtime": row["submit_time"], "walltime": row["walltime"]}
        content["jobs"].append(job | {"res": row["processors"], "profile": name})
    return content
