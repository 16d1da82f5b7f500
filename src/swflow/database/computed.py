"""What a load computes of workloads and runs: beside the inserts, possibly in other processes."""

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from swflow.analysis.fidelity import fidelity
from swflow.analysis.heatmap import summarize
from swflow.analysis.metrics import OWNERS, fairness_table
from swflow.analysis.plausibility import LOOKED_AT, check_workload
from swflow.database.comparisons import compare_runs
from swflow.database.inputs import Inputs, Run, Update
from swflow.database.schema import Rows
from swflow.errors import SwflowError
from swflow.files.tables import read_columns, read_metadata
from swflow.jobs.header import Header
from swflow.jobs.table import Workload, check_columns
from swflow.log.imported import is_log_table, names_in, names_of_jobs
from swflow.names import recipe_of, replicate_of
from swflow.scheduling.scheduler import LOG
from swflow.workload.clean import open_workload
from swflow.workload.offered_load import offered_load


class Examined(NamedTuple):
    """The rows that describe a workload by table, its columns, and its jobs or their file."""

    rows: dict[str, Rows]
    schema: pl.Schema
    jobs: pl.DataFrame | Path


class Computed(NamedTuple):
    """The results, which are ready in this order."""

    examined: Iterator[Examined]  # one item per new workload
    summaries: Iterator[dict[str, pl.DataFrame]]  # rows of the tables of heatmaps and bubbles, per new run
    fairness: Iterator[pl.DataFrame]  # tables of the new runs, per workload
    fidelity: Iterator[Rows]  # rows per workload with a recorded schedule
    compared: Iterator[Rows]  # rows per log and replicate
    unchanged: list[str]  # the runs whose fidelity is that of the old database


def compute(inputs: Inputs, update: Update, in_turn: Callable[..., Iterator[Any]]) -> Computed:
    """Begin to compute the results of an update, by a function like `map`."""
    by_workload = {name: list(some) for name, some in groupby(update.runs, lambda run: run.workload)}
    recorded, unchanged = _with_records(inputs.runs, update.changed)
    return Computed(
        in_turn(_examine, update.workloads, [inputs.sources[name][0] for name in update.workloads]),
        in_turn(_summary, update.runs),
        in_turn(_fairness, [inputs.sources[name][0] for name in by_workload], by_workload.values()),
        in_turn(_fidelity, recorded.keys(), recorded.values()),
        in_turn(compare_runs, update.pairs),
        unchanged,
    )


def _examine(name: str, file: Path) -> Examined:
    """Read and check a workload; the jobs of a Parquet file are left in the file."""
    is_workload = file.suffix == ".parquet" and not is_log_table(file)
    # A file is inserted unchanged, so read only the columns needed here.
    workload = open_workload(file, columns=LOOKED_AT if is_workload else None)
    history = workload.history
    fits = [entry for entry in history if "fit" in entry][-1:]  # the fit of the last model that generated it
    rows: dict[str, Rows] = {
        "workloads": [_workload_row(name, workload)],
        "removals": [
            {"position": position, "stage": entry["stage"], "reason": reason, "jobs": jobs}
            for position, entry in enumerate(history)
            for reason, jobs in {**entry.get("removed", {}), "kept": entry["kept"]}.items()
        ],
        "model_fit": [
            {"source": entry["source"], "model": entry["model"], "measure": measure, "value": value, "source_value": of}
            for entry in fits
            for measure, (value, of) in entry["fit"].items()
        ],
        "checks": [asdict(finding) for finding in check_workload(workload)],
    }
    jobs: pl.DataFrame | Path = workload.jobs
    schema = workload.jobs.schema
    if is_workload:
        named = names_in(workload.header)["column"].unique().to_list()
        workload = replace(workload, jobs=read_columns(file, named))
        schema = check_columns(pl.read_parquet(file, glob=False, n_rows=0), name).schema
        jobs = file
    rows["names"] = names_of_jobs(workload).to_dicts()
    for row in itertools.chain.from_iterable(rows.values()):
        row["workload"] = name
    return Examined(rows, schema, jobs)


def _workload_row(name: str, workload: Workload) -> dict[str, object]:
    jobs, machine = workload.jobs, workload.machine
    named = {"time_zone": "TimeZoneString", **{key.lower(): key for key in ("Computer", "Installation", "Acknowledge")}}
    return {
        "log": workload.log,
        "recipe": recipe_of(name),
        "replicate": replicate_of(name),
        "steps": workload.steps,
        "jobs": jobs.height,
        "offered_load": offered_load(workload),
        "processors": machine.processors,
        "nodes": machine.nodes,
        "processors_per_node": machine.processors_per_node,
        "capacities": json.dumps(machine.capacities) if machine.capacities else None,
        "first_submit_time": jobs["submit_time"].min(),
        "last_submit_time": jobs["submit_time"].max(),
        "unix_start_time": workload.header.start,
        **{column: "; ".join(workload.header.get(key, ())) or None for column, key in named.items()},
    }


def _summary(run: Run) -> dict[str, pl.DataFrame]:
    found = summarize(run.file)
    parts = {"heatmaps": "cells", "bubbles": "bubbles", "bubbles_11": "bubbles_11"}
    return {table: found[part].with_columns(run=pl.lit(run.run)) for table, part in parts.items()}


def _fairness(source: Path, runs_of: Iterable[Run]) -> pl.DataFrame:
    """Return the fairness measures of every user and group in runs of a workload; raise an error for lost jobs."""
    columns = ["job_id", "wait_time", "bounded_slowdown", "processors", "run_time"]
    jobs, header = _owners(source)
    names = names_in(header).with_columns(
        kind=pl.col("column").replace_strict({column: kind for kind, column in OWNERS.items()}, default=None)
    )
    found: list[pl.DataFrame] = []
    for run in runs_of:
        outcomes = read_columns(run.file, columns)
        if not outcomes["job_id"].equals(jobs["job_id"]):
            lost = outcomes.join(jobs, on="job_id", how="anti").height
            if lost:
                raise SwflowError(f"load: {run.workload}: {lost} outcomes have no job; simulate these runs again")
        table = fairness_table(outcomes, jobs)
        if table.height:
            table = table.join(names.select("kind", "id", "name"), on=["kind", "id"], how="left", maintain_order="left")
            found.append(table.with_columns(**{name: pl.lit(value) for name, value in run.names.items()}))
    return pl.concat(found, how="vertical_relaxed") if found else pl.DataFrame()


def _owners(file: Path) -> tuple[pl.DataFrame, Header]:
    """Return the job ownership (user, group) of a workload, and its header."""
    if file.suffix == ".parquet" and not is_log_table(file):
        jobs = read_columns(file, ["job_id", *OWNERS.values()])
        return check_columns(jobs, str(file), ()), Header(read_metadata(file)["header"])
    workload = open_workload(file)
    return workload.jobs, workload.header


def _with_records(runs: Sequence[Run], changed: Collection[str]) -> tuple[dict[Path, list[Run]], list[str]]:
    """
    Return the runs to compare with each recorded schedule among the runs, by its file, if it or they changed.

    Also return the names of the runs for which nothing changed.
    """
    records = {run.workload: run for run in runs if run.notes["options"]["order"] == LOG}
    compared: dict[Path, list[Run]] = {}
    unchanged = []
    for run in runs:
        record = records.get(run.workload, run)
        if record.run == run.run:
            continue
        if run.run in changed or record.run in changed:
            compared.setdefault(record.file, []).append(run)
        else:
            unchanged.append(run.run)
    return compared, unchanged


def _fidelity(record: Path, runs_of: Iterable[Run]) -> Rows:
    columns = ["job_id", "submit_time", "start_time", "run_time", "processors", "wait_time", "load"]
    recorded = pl.read_parquet(record, glob=False, columns=columns)
    rows = []
    for run in runs_of:
        simulated = pl.read_parquet(run.file, glob=False, columns=columns)
        rows.append(run.names | fidelity(recorded, simulated, run.notes["machine"]["processors"]))
    return rows
