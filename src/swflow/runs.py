"""Runs: workloads under schedulers, many in one process, each result kept under a content key."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from swflow.analysis.fairness import fairness_indices
from swflow.analysis.load import with_load
from swflow.analysis.metrics import correlations, metrics
from swflow.compilation import seconds_lost
from swflow.errors import SwflowError
from swflow.files import is_in_the_making
from swflow.jobs import Workload, write_table
from swflow.made import Made, file_digest, has_size, is_whole, key_of, read_manifest, write_json
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.simulate import columns_needed, simulate_narrow, warm_up, with_derived
from swflow.workloads.clean import open_workload

#: The file beside the runs of a workload that lists them; the workflow's declared output.
MANIFEST = "manifest.json"

#: The record beside the runs of a workload: their keys and checksums, and how long each took, which no run's own file
#: may hold, since its bytes must not vary.
MADE = "made.json"

_REPAIR = "delete {path}, and run snakemake again"


@dataclass(frozen=True)
class Run:
    """
    A workload under a scheduler, with its outcomes.

    Parameters
    ----------
    table : polars.DataFrame
        One row a job, with its load, as `swflow.scheduling.simulate.simulate_narrow` has it.
    metrics : dict
        As `swflow.analysis.metrics.metrics` and `swflow.analysis.fairness.fairness_indices` return them.
    correlations : dict
        As `swflow.analysis.metrics.correlations` returns them.
    seconds : float
        How long the simulation took, without compiling.
    """

    table: pl.DataFrame
    metrics: dict[str, Any]
    correlations: dict[str, float | None]
    seconds: float

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """One row a job, with its load, in all columns of `swflow.scheduling.simulate.OUTCOME_COLUMNS`."""
        return with_derived(self.table)


def run(workload: Workload, scheduler: Scheduler) -> Run:
    """
    Simulate a workload under a scheduler and analyse the outcome.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    scheduler : Scheduler
        How the queue is served.

    Returns
    -------
    Run

    Raises
    ------
    SwflowError
        As `swflow.scheduling.simulate.simulate` does.
    """
    warm_up(workload, scheduler)
    began = time.perf_counter() - seconds_lost()
    table = simulate_narrow(workload, scheduler)
    seconds = time.perf_counter() - seconds_lost() - began
    machine = workload.machine.processors
    table = with_load(table, machine)
    outcomes = with_derived(table.lazy())
    figures = metrics(outcomes, machine) | fairness_indices(outcomes, workload.jobs)
    return Run(table, figures, correlations(outcomes), seconds)


def columns_of_run(schedulers: Iterable[Scheduler]) -> set[str] | None:
    """Return the columns of a job table that runs under some schedulers look at; None: it may be any."""
    needed = [columns_needed(scheduler) for scheduler in schedulers]
    if any(columns is None for columns in needed):
        return None
    return {"user_id", *(name for columns in needed for name in columns or ())}


def write_run(result: Run, path: str | os.PathLike[str], about: Mapping[str, Any]) -> None:
    """
    Write a run to a Parquet file, with its metrics in the metadata; the same run gives the same bytes.

    Parameters
    ----------
    result : Run
        What to write.
    path : path-like
        Where.
    about : mapping
        What to note beside the metrics: workload, scheduler, their files and settings.
    """
    notes = {"kind": "run", "metrics": result.metrics, "correlations": result.correlations, **about}
    write_table(with_derived(result.table.lazy()), path, notes, rows=result.table.height)


def describe_run(
    source: str | os.PathLike[str], workload: Workload, name: str, scheduler: Scheduler, code: str = ""
) -> dict[str, Any]:
    """
    Return what identifies a run: what went in, and a key that changes with any of it.

    Parameters
    ----------
    source : path-like
        The workload's file.
    workload : Workload
        What was read from it.
    name : str
        The scheduler's name.
    scheduler : Scheduler
        Its options.
    code : str
        The fingerprint of the code that simulates.

    Returns
    -------
    dict
        ``workload``, ``scheduler``, ``options``, ``machine``, ``source``, ``input`` (hash of the file), ``key``.
    """
    about = {
        "workload": workload.name,
        "scheduler": name,
        "options": scheduler.to_dict(),
        "machine": workload.machine.to_dict(),
        "input": file_digest(source),
        "code": code,
    }
    return about | {"key": key_of(about), "source": os.fspath(source)}


def simulate_all(
    source: str | os.PathLike[str],
    schedulers: Mapping[str, Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    code: str = "",
    report: Callable[[str, bool], None] = lambda run, kept: None,
) -> dict[str, Any]:
    """
    Simulate a workload under several schedulers; runs whose key is unchanged and whose files are whole are kept.

    Parameters
    ----------
    source : path-like
        The workload's file.
    schedulers : mapping
        Scheduler name to its options, as in the config. ``log`` needs none.
    folder : path-like
        Where ``{scheduler}.parquet`` and the manifest go.
    code : str
        The fingerprint of the code that simulates: a run made by other code is made again.
    report : callable
        Told of every run: its name, ``workload/scheduler``, and whether it was kept.

    Returns
    -------
    dict
        The manifest: for each run its file, key, options and checksum.

    Raises
    ------
    SwflowError
        If a scheduler's options are wrong or the workload cannot be simulated.
    """
    folder = Path(folder)
    made = _simulate_into(source, _schedulers(schedulers), folder, code, report)
    return _write_manifest(folder / MANIFEST, {run: folder / f"{name}.parquet" for run, name in made.items()})


def simulate_replicates(
    sources: Iterable[str | os.PathLike[str]],
    schedulers: Mapping[str, Mapping[str, Any]],
    manifest: str | os.PathLike[str],
    *,
    only: Mapping[str, Collection[str]] | None = None,
    code: str = "",
    report: Callable[[str, bool], None] = lambda run, kept: None,
) -> dict[str, Any]:
    """
    Simulate several workloads, such as the replicates of one, in one process; each as `simulate_all` does.

    Parameters
    ----------
    sources : iterable of path-like
        The workloads' files.
    schedulers, code, report
        As for `simulate_all`.
    manifest : path-like
        The manifest of all runs, a JSON file; they go beside it, to ``{workload}/{scheduler}.parquet``.
    only : mapping, optional
        The schedulers of each workload, by its name; by default all.

    Returns
    -------
    dict
        The manifest.
    """
    path = Path(manifest)
    checked = _schedulers(schedulers)
    files: dict[str, Path] = {}
    for source in sources:
        workload = Path(source).stem
        chosen = {name: checked[name] for name in (only or {}).get(workload, checked)}
        made = _simulate_into(source, chosen, path.parent / workload, code, report)
        mine = {run: path.parent / workload / f"{name}.parquet" for run, name in made.items()}
        _write_manifest(path.parent / workload / MANIFEST, mine)
        files |= mine
    return _write_manifest(path, files)


def _schedulers(schedulers: Mapping[str, Mapping[str, Any]]) -> dict[str, Scheduler]:
    return {name: Scheduler.of(name, options) for name, options in schedulers.items()}


def _simulate_into(
    source: str | os.PathLike[str],
    schedulers: Mapping[str, Scheduler],
    folder: Path,
    code: str,
    report: Callable[[str, bool], None],
) -> dict[str, str]:
    """Make the runs of a workload that are not there as they would be; return run to scheduler."""
    workload = open_workload(source, columns=columns_of_run(schedulers.values()))
    made = Made(folder / MADE)
    runs = {}
    for name, scheduler in schedulers.items():
        path = folder / f"{name}.parquet"
        about = describe_run(source, workload, name, scheduler, code)
        kept = made.is_fresh(name, path, key=about["key"])
        if not kept:
            result = run(workload, scheduler)
            write_run(result, path, about)
            made.note(
                name, path, key=about["key"], seconds=result.seconds, options=about["options"], code=about["code"]
            )
        runs[f"{workload.name}/{name}"] = name
        report(f"{workload.name}/{name}", kept)
    return runs


def _write_manifest(path: Path, files: Mapping[str, Path]) -> dict[str, Any]:
    """Write the list of some runs, each with what its folder's record says of it."""
    records = {folder: Made(folder / MADE).entries for folder in {file.parent for file in files.values()}}
    entries = {
        run: {"file": file.relative_to(path.parent).as_posix()}
        | {name: records[file.parent][file.stem][name] for name in ("key", "size", "digest", "options")}
        for run, file in files.items()
    }
    manifest = {"files": entries}
    write_json(path, manifest)
    return manifest


def unmade(
    workload: str, options: Mapping[str, Mapping[str, Any]], code: str, folder: str | os.PathLike[str]
) -> list[str]:
    """
    Return which runs of a workload would be made, if its file were the one that they were made of.

    Parameters
    ----------
    workload : str
        Its name.
    options : mapping
        Scheduler to its options, all filled in.
    code : str
        The fingerprint of the code that simulates.
    folder : path-like
        Where the folders of runs are.

    Returns
    -------
    list of str
        Schedulers, sorted.
    """
    home = Path(folder) / workload
    entries = Made(home / MADE).entries
    return sorted(
        name
        for name, wanted in options.items()
        if entries.get(name, {}).get("options") != wanted
        or entries[name].get("code") != code
        or not has_size(home / f"{name}.parquet", entries[name])
    )


def scheduler_options(name: str, schedulers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the options of a named scheduler of the config; ``log`` is always there."""
    return {"order": LOG} if name == LOG else schedulers[name]


def runs_in(path: str | os.PathLike[str]) -> dict[Path, dict[str, Any]]:
    """
    Return the run files that a path stands for: a run's file, a manifest, or a folder of these or of such folders.

    Returns
    -------
    dict
        File to what the manifest says of it: key, options, size and digest; nothing for a file without a manifest.

    Raises
    ------
    SwflowError
        If there is nothing, or a listed file is missing.
    """
    path = Path(path)
    if path.is_dir() and not (path / MANIFEST).is_file():
        inside = [*sorted(path.glob("*.parquet")), *sorted(part for part in path.iterdir() if part.is_dir())]
        whole = [part for part in inside if not is_in_the_making(part)]
        files = {file: entry for part in whole for file, entry in runs_in(part).items()}
        if not files:
            raise SwflowError(f"{path}: no run in it; make one with: swflow simulate WORKLOAD -o {path}/RUN.parquet")
        return files
    if path.is_dir():
        path = path / MANIFEST
    if not path.is_file():
        raise SwflowError(f"{path}: no such file; make it with: swflow simulate WORKLOAD -o {path}")
    if path.suffix != ".json":
        return {path: {}}
    files = {}
    for run, entry in read_manifest(path)["files"].items():
        file = path.parent / entry["file"]
        if not file.is_file():
            raise SwflowError(f"{file}: missing, but {path} lists it as {run!r}; {_REPAIR.format(path=path)}")
        files[file] = {**entry, "manifest": path}
    return files


def check_whole(file: Path, entry: Mapping[str, Any]) -> None:
    """Raise an error if a run's file is not the one that its manifest lists."""
    if entry and not is_whole(file, entry):
        raise SwflowError(
            f"{file}: damaged, or not the run that {entry['manifest']} lists; {_REPAIR.format(path=entry['manifest'])}"
        )


def run_seconds(path: Path) -> float | None:
    """Return how long a run took to simulate, if that is known."""
    return Made(path.parent / MADE).entries.get(path.stem, {}).get("seconds")
