"""Runs: simulate workloads under schedulers, many per process."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from swflow.analysis.job_load import loads_of
from swflow.analysis.metrics import Middle, correlations, fairness_indices, metrics, resource_metrics
from swflow.errors import SwflowError, shell_word
from swflow.files.atomic import is_in_the_making, write_json
from swflow.files.reading import file_digest, read_json
from swflow.files.store import STORE, Store, key_of
from swflow.files.tables import read_metadata, write_table
from swflow.jobs.table import Workload
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.prepare import columns_needed
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import clock, simulate_counted, with_derived
from swflow.workload.clean import open_workload

#: The list of the runs in a folder: scheduler to the digest of the file and the seconds that the simulation took. The
#: seconds are not in the file, whose bytes must not vary.
RUNS = "runs.json"

#: The ending of a file beside each run that contains the digest of its file: a small file, which Snakemake compares by
#: its content.
DIGEST = ".digest"

_REPAIR = "delete {folder} and run snakemake again"


@dataclass(frozen=True)
class Run:
    """
    A workload under a scheduler, with its outcomes.

    ``table`` has one row per job, with its load. ``metrics`` are those of `swflow.analysis.metrics.metrics` and the
    fairness indices, with the counts of jobs that were cancelled in the queue, and the metrics of resources besides
    processors, if there are any. Only a recorded schedule can raise ``peak_processors`` above the machine. ``seconds``
    excludes compilation.
    """

    table: pl.DataFrame
    metrics: dict[str, float | None]
    correlations: dict[str, float | None]
    peak_processors: int
    seconds: float

    @property
    def all_columns(self) -> pl.LazyFrame:
        """The jobs in all columns of `swflow.scheduling.simulate.OUTCOME_COLUMNS`, which are computed when needed."""
        return with_derived(self.table.lazy())

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """One row per job, with its load, in all columns."""
        return self.all_columns.collect(engine="in-memory")


#: Metrics describe all jobs.
WHOLE = Middle()


def run(workload: Workload, scheduler: Scheduler, middle: Middle = WHOLE) -> Run:
    """
    Simulate a workload under a scheduler, and compute metrics, loads and correlations of the outcomes.

    The metrics, but not the correlations, are those of the jobs in the ``middle``.
    """
    began = clock()
    table, counts, units = simulate_counted(workload, scheduler)
    seconds = clock() - began
    machine = workload.machine.processors
    loads = loads_of(table, machine)
    table = table.with_columns(load=loads.load, backlog_load=loads.backlog_load)
    outcomes = with_derived(table.lazy())
    ranks, measured = correlations(outcomes), middle.of(outcomes)
    figures = metrics(measured, machine)
    if not figures["jobs"] and table.height:
        raise SwflowError(f"{workload.name}: {middle}: excludes all {table.height:,} jobs from the metrics")
    of_resources = resource_metrics(middle.of(table.lazy()).collect(), workload.jobs, units) if units else {}
    figures |= fairness_indices(measured, workload.jobs) | counts | of_resources
    return Run(table, figures, ranks, loads.peak_processors, seconds)


def columns_of_run(schedulers: Iterable[Scheduler]) -> set[str] | None:
    """Return the columns of a job table that runs under the schedulers read; None if they may read any column."""
    needed = [columns_needed(scheduler) for scheduler in schedulers]
    if any(columns is None for columns in needed):
        return None
    return {"user_id", *(name for columns in needed for name in columns or ())}


def write_run(result: Run, path: str | os.PathLike[str], about: Mapping[str, object]) -> None:
    """Write a run to a Parquet file, with its metrics and ``about`` in the metadata; equal runs give equal bytes."""
    notes = {
        "kind": "run",
        "rows": result.table.height,
        "metrics": result.metrics,
        "correlations": result.correlations,
        "peak_processors": result.peak_processors,
        **about,
    }
    write_table(result.all_columns, path, notes, rows=result.table.height)


def describe_run(
    source: str | os.PathLike[str], workload: Workload, name: str, scheduler: Scheduler, middle: Middle = WHOLE
) -> Mapping[str, object]:
    """Return the inputs of a run of the workload in the file ``source``; ``input`` is a hash of the file."""
    about = {"workload": workload.name, "machine": workload.machine.to_dict()}
    return about | _inputs(source, file_digest(source), name, scheduler, middle)


def _inputs(
    source: str | os.PathLike[str], digest: str, name: str, scheduler: Scheduler, middle: Middle
) -> dict[str, object]:
    """Return all that determines a run, besides the code: the file of its workload, and the scheduler."""
    about: dict[str, object] = {"scheduler": name, "options": scheduler.to_dict(), "input": digest}
    about["source"] = os.fspath(source)
    return about | ({"measured": str(middle)} if str(middle) else {})


def simulate_all(
    source: str | os.PathLike[str],
    schedulers: Mapping[str, Unchecked],
    folder: str | os.PathLike[str],
    *,
    middle: Middle = WHOLE,
    report: Callable[[str], None] = lambda run: None,
    store: Store | None = None,
    keep_others: bool = False,
) -> list[str]:
    """
    Simulate a workload under several schedulers, and write the runs to ``{scheduler}.parquet`` in a folder.

    ``schedulers`` maps names to options, as in the config. ``report`` is called after every run with the name of its
    scheduler. The list of the runs is written last; with ``keep_others``, it keeps those of former calls. Runs that the
    ``store`` has are restored, and others are kept in it. Return the schedulers whose runs were simulated.
    """
    folder, digest = Path(folder), file_digest(source)
    parsed = {name: Scheduler.of(name, options) for name, options in schedulers.items()}
    about = {name: _inputs(source, digest, name, scheduler, middle) for name, scheduler in parsed.items()}
    keys = {name: key_of(inputs) for name, inputs in about.items()}
    restored = {
        name: kept for name, key in keys.items() if store and (kept := store.restore(key, folder / f"{name}.parquet"))
    }
    missing = {name: scheduler for name, scheduler in parsed.items() if name not in restored}
    workload = open_workload(source, columns=columns_of_run(missing.values())) if missing else None
    listed = {}
    for name, scheduler in parsed.items():
        path = folder / f"{name}.parquet"
        if name in restored or workload is None:
            listed[name] = restored[name]
        else:
            result = run(workload, scheduler, middle)
            names = {"workload": workload.name, "machine": workload.machine.to_dict()}
            write_run(result, path, names | about[name])
            listed[name] = {"digest": file_digest(path), "seconds": result.seconds}
            if store:
                store.keep(keys[name], path, **listed[name])
        path.with_name(f"{name}{DIGEST}").write_text(f"{listed[name]['digest']}\n", encoding="utf-8")
        report(name)
    write_json(folder / RUNS, (_former(folder) if keep_others else {}) | listed)
    return [*missing]


def add_to_list(path: Path, seconds: float) -> None:
    """Add the file of a run to the list of its folder, if there is one; other files in such a folder are no runs."""
    if (path.parent / RUNS).is_file():
        entry = {path.stem: {"digest": file_digest(path), "seconds": seconds}}
        write_json(path.parent / RUNS, _former(path.parent) | entry)


def _former(folder: Path) -> dict[str, Any]:
    """Return the entries of the list of a folder whose runs are there."""
    listed = _entries(folder) if (folder / RUNS).is_file() else {}
    return {name: one._asdict() for name, one in listed.items() if (folder / f"{name}.parquet").is_file()}


def read_simulations(path: str | os.PathLike[str], workloads: Iterable[str]) -> dict[str, dict[str, Unchecked]]:
    """
    Read a plan of runs: a JSON file with ``schedulers``, by name, and ``runs``, workload to the names of schedulers.

    Return the schedulers of each of the workloads; a workload that the plan does not name has all of them.
    """
    what = "a plan of runs; expected JSON: schedulers, and runs of workloads"
    plan = read_json(path, what)
    try:
        schedulers, runs = plan["schedulers"], plan["runs"]
        return {name: {one: schedulers[one] for one in runs.get(name, schedulers)} for name in workloads}
    except (KeyError, TypeError, AttributeError):
        raise SwflowError(f"{path}: not {what}") from None


class Listed(NamedTuple):
    """What the list of a folder says of a run: the digest of its file, and the seconds that the simulation took."""

    digest: str = ""
    seconds: float | None = None


def runs_in(path: str | os.PathLike[str]) -> dict[Path, Listed]:
    """
    Return the run files that a path denotes, each with its entry in the list of its folder, if any.

    A path is the file of a run, a folder of runs, or a folder of such folders. If a folder has a list of its runs,
    other files in it are ignored. Raise `SwflowError` if there is no run, or a run of the list is missing.
    """
    path = Path(path)
    if path.is_file():
        return {path: Listed()}
    if not path.is_dir():
        hint = shell_word(path) + " --scheduler easy" * (path.suffix != ".parquet")
        raise SwflowError(f"{path}: no such file; create it with: swflow simulate WORKLOAD -o {hint}")
    if (path / RUNS).is_file():
        return _listed(path)
    inside = [*sorted(path.glob("*.parquet")), *sorted(part for part in path.iterdir() if part.is_dir())]
    whole = [part for part in inside if part.name != STORE and not is_in_the_making(part)]
    files = {file: entry for part in whole for file, entry in runs_in(part).items()}
    if not files:
        raise SwflowError(
            f"{path}: no runs; create one with: swflow simulate WORKLOAD -o {shell_word(path / 'RUN.parquet')}"
        )
    return files


def _listed(folder: Path) -> dict[Path, Listed]:
    """Return the runs that the list of a folder names."""
    files = {folder / f"{name}.parquet": one for name, one in _entries(folder).items()}
    for file in files:
        if not file.is_file():
            raise SwflowError(f"{file}: missing, but {RUNS} lists it; {_REPAIR.format(folder=folder)}")
    return files


def _entries(folder: Path) -> dict[str, Listed]:
    try:
        listed = json.loads((folder / RUNS).read_text(encoding="utf-8"))
        return {name: Listed(one["digest"], one["seconds"]) for name, one in listed.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SwflowError(f"{folder / RUNS}: not a list of runs; {_REPAIR.format(folder=folder)}") from None


def run_metadata(file: Path, entry: Listed) -> dict[str, Any]:
    """Return the metadata of a file of `runs_in`; the error for a damaged run states how to repair it."""
    try:
        return read_metadata(file)
    except SwflowError:
        check_whole(file, entry)
        raise


def check_whole(file: Path, entry: Listed) -> None:
    """Raise an error if the file of a run differs from the one that the list of its folder names."""
    if entry.digest and file_digest(file) != entry.digest:
        raise SwflowError(f"{file}: damaged, or not the run that {RUNS} lists; {_REPAIR.format(folder=file.parent)}")
