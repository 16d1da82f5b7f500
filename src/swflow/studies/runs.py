"""Runs: simulate workloads under schedulers, many per process, and keep each result under a content key."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from swflow.analysis.fairness import fairness_indices
from swflow.analysis.job_load import loads_of
from swflow.analysis.metrics import Middle, correlations, metrics, resource_metrics
from swflow.compiled.kernel import seconds_lost
from swflow.errors import SwflowError
from swflow.files.atomic import is_in_the_making
from swflow.files.manifest import MANIFEST, Manifest, file_digest, is_whole, listed_files, run_key, write_list
from swflow.jobs.table import Workload, write_table
from swflow.scheduling.outcomes import with_derived
from swflow.scheduling.problem import columns_needed
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate_counted
from swflow.workload.clean import open_workload

_REPAIR = "delete {path} and run snakemake again"


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
    metrics: dict[str, Any]
    correlations: dict[str, float | None]
    peak_processors: int
    seconds: float

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """One row per job, with its load, in all columns of `swflow.scheduling.simulate.OUTCOME_COLUMNS`."""
        return with_derived(self.table)


#: Metrics describe all jobs.
WHOLE = Middle()


def run(workload: Workload, scheduler: Scheduler, middle: Middle = WHOLE) -> Run:
    """
    Simulate a workload under a scheduler, and compute metrics, loads and correlations of the outcomes.

    The metrics, but not the correlations, are those of the jobs in the ``middle``.
    """
    began = time.perf_counter() - seconds_lost()
    table, counts, units = simulate_counted(workload, scheduler)
    seconds = time.perf_counter() - seconds_lost() - began
    machine = workload.machine.processors
    loads = loads_of(table, machine)
    table = table.with_columns(load=loads.load, backlog_load=loads.backlog_load)
    outcomes = with_derived(table.lazy())
    ranks, measured = correlations(outcomes), middle.of(outcomes)
    figures = metrics(measured, machine)
    if not figures["jobs"] and table.height:
        raise SwflowError(f"{workload.name}: {middle}: excludes all {table.height:,} jobs from the metrics")
    figures |= fairness_indices(measured, workload.jobs) | counts
    if units:
        figures |= resource_metrics(middle.of(table.lazy()).collect(), workload.jobs, units)
    return Run(table, figures, ranks, loads.peak_processors, seconds)


def columns_of_run(schedulers: Iterable[Scheduler]) -> set[str] | None:
    """Return the columns of a job table that runs under the schedulers read; None if they may read any column."""
    needed = [columns_needed(scheduler) for scheduler in schedulers]
    if any(columns is None for columns in needed):
        return None
    return {"user_id", *(name for columns in needed for name in columns or ())}


def write_run(result: Run, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
    """Write a run to a Parquet file, with its metrics and ``about`` in the metadata; equal runs give equal bytes."""
    notes = {
        "kind": "run",
        "rows": result.table.height,
        "metrics": result.metrics,
        "correlations": result.correlations,
        "peak_processors": result.peak_processors,
        **about,
    }
    write_table(with_derived(result.table.lazy()), path, notes, rows=result.table.height)


def describe_run(
    source: str | os.PathLike[str],
    workload: Workload,
    name: str,
    scheduler: Scheduler,
    code: str = "",
    middle: Middle = WHOLE,
) -> dict[str, Any]:
    """
    Return the inputs of a run of the workload in the file ``source``, and the key that changes with any of them.

    ``code`` is the fingerprint of the simulation code, ``input`` a hash of the file.
    """
    about: dict[str, Any] = {
        "workload": workload.name,
        "scheduler": name,
        "options": scheduler.to_dict(),
        "machine": workload.machine.to_dict(),
        "input": file_digest(source),
        "code": code,
    }
    key = run_key(workload.name, name, about["options"], code + str(middle), about["input"])
    about |= {"measured": str(middle)} if str(middle) else {}
    return about | {"key": key, "source": os.fspath(source)}


def simulate_all(
    source: str | os.PathLike[str],
    schedulers: Mapping[str, Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    code: str = "",
    middle: Middle = WHOLE,
    report: Callable[[str, bool], None] = lambda run, kept: None,
) -> dict[str, Any]:
    """
    Simulate a workload under several schedulers; skip runs with an unchanged key and an undamaged file.

    ``schedulers`` maps names to options, as in the config. Runs are written to ``{scheduler}.parquet`` in the folder;
    those built with a different fingerprint of the simulation code (``code``) are simulated again. ``report`` is called
    after every run with its name, ``workload/scheduler``, and whether the existing file was kept. Returns the manifest:
    scheduler to file, key, checksum and seconds.
    """
    folder = Path(folder)
    parsed = {name: Scheduler.of(name, options) for name, options in schedulers.items()}
    workload = open_workload(source, columns=columns_of_run(parsed.values()))
    manifest = Manifest(folder / MANIFEST)
    for name, scheduler in parsed.items():
        path = folder / f"{name}.parquet"
        about = describe_run(source, workload, name, scheduler, code, middle)
        kept = manifest.is_fresh(name, path, key=about["key"])
        if not kept:
            result = run(workload, scheduler, middle)
            write_run(result, path, about)
            # The duration is not part of the run's file, whose bytes must not vary.
            manifest.note(name, path, key=about["key"], seconds=result.seconds)
        report(f"{workload.name}/{name}", kept)
    manifest.select(list(schedulers))
    return manifest.entries


def simulate_replicates(
    sources: Iterable[str | os.PathLike[str]],
    schedulers: Mapping[str, Mapping[str, Mapping[str, Any]]],
    manifest: str | os.PathLike[str],
    *,
    code: str = "",
    middle: Middle = WHOLE,
    report: Callable[[str, bool], None] = lambda run, kept: None,
) -> dict[str, Any]:
    """
    Simulate several workloads, such as the replicates of a recipe, in one process, each as `simulate_all` does.

    ``schedulers`` maps each workload to its schedulers. The runs are written to ``{workload}/{scheduler}.parquet`` in
    the folder of ``manifest``, the JSON list of all runs, whose contents are returned.
    """
    path = Path(manifest)
    for chosen in schedulers.values():
        for name, options in chosen.items():
            Scheduler.of(name, options)  # reject a wrong one before any simulation
    parts = {}
    for source in sources:
        workload = Path(source).stem
        chosen = schedulers[workload]
        simulate_all(source, chosen, path.parent / workload, code=code, middle=middle, report=report)
        parts[f"{workload}/{MANIFEST}"] = list(chosen)
    return write_list(path, parts)


def read_simulations(path: str | os.PathLike[str], workloads: Iterable[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """
    Read a plan of runs: a JSON file with ``schedulers``, by name, and ``runs``, workload to the names of schedulers.

    Returns
    -------
    dict
        Each of the workloads to its schedulers; a workload that the plan does not name has all of them.

    Raises
    ------
    SwflowError
        If the file is not a plan.
    """
    try:
        plan: dict[str, dict[str, Any]] = json.loads(Path(path).read_text(encoding="utf-8"))
        schedulers, runs = plan["schedulers"], plan["runs"]
        return {name: {one: schedulers[one] for one in runs.get(name, schedulers)} for name in workloads}
    except OSError as error:
        raise SwflowError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SwflowError(f"{path}: not a plan of runs; expected JSON: schedulers, and runs of workloads") from None


def runs_in(path: str | os.PathLike[str]) -> dict[Path, dict[str, Any]]:
    """
    Return the run files that a path denotes, each with its manifest entry (empty for a file without a manifest).

    A path is the file of a run, a list of runs, a folder of runs, or a folder of such folders.
    """
    path = Path(path)
    if path.is_dir() and not (path / MANIFEST).is_file():
        inside = [*sorted(path.glob("*.parquet")), *sorted(part for part in path.iterdir() if part.is_dir())]
        whole = [part for part in inside if not is_in_the_making(part)]
        files = {file: entry for part in whole for file, entry in runs_in(part).items()}
        if not files:
            raise SwflowError(f"{path}: no runs; create one with: swflow simulate WORKLOAD -o {path}/RUN.parquet")
        return files
    if path.is_dir():
        path = path / MANIFEST
    if not path.is_file():
        raise SwflowError(f"{path}: no such file; create it with: swflow simulate WORKLOAD -o {path}")
    if path.suffix != ".json":
        return {path: {}}
    files = listed_files(path)
    for file in files:
        if not file.is_file():
            raise SwflowError(f"{file}: missing, but {path} lists it; {_REPAIR.format(path=path)}")
    return files


def check_whole(file: Path, entry: Mapping[str, Any]) -> None:
    """Raise an error if the file of a run differs from the one that its manifest lists."""
    if entry and not is_whole(file, entry):
        raise SwflowError(
            f"{file}: damaged, or not the run listed in {entry['manifest']}; {_REPAIR.format(path=entry['manifest'])}"
        )


def run_seconds(path: Path) -> float | None:
    """Return the duration of a simulation (s), or None if it is unknown."""
    return Manifest(path.parent / MANIFEST).entries.get(path.stem, {}).get("seconds")
