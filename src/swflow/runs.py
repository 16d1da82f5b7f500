"""Runs: the schedulers of a workload simulated in one process, each result kept under a content key."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from swflow.analysis.fairness import fairness_indices
from swflow.analysis.load import with_load
from swflow.analysis.metrics import correlations, metrics
from swflow.errors import SwflowError
from swflow.files import atomic_path, is_in_the_making
from swflow.jobs import Workload, read_metadata, write_table
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.simulate import simulate, warm_up
from swflow.workloads.clean import open_workload

#: The file beside the runs of a workload that lists them; the workflow's declared output.
MANIFEST = "manifest.json"

#: The file that remembers how long each run took, which no run's own file may hold: its bytes must not vary.
SECONDS = "seconds.json"


@dataclass(frozen=True)
class Run:
    """
    A workload under a scheduler, with its outcomes.

    Parameters
    ----------
    outcomes : polars.DataFrame
        One row a job, with its load.
    metrics : dict
        As `swflow.analysis.metrics.metrics` and `swflow.analysis.fairness.fairness_indices` return them.
    correlations : dict
        As `swflow.analysis.metrics.correlations` returns them.
    seconds : float
        How long the simulation took, without compiling.
    """

    outcomes: pl.DataFrame
    metrics: dict[str, Any]
    correlations: dict[str, float | None]
    seconds: float


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
    began = time.perf_counter()
    outcomes = simulate(workload, scheduler)
    seconds = time.perf_counter() - began
    machine = workload.machine.processors
    outcomes = with_load(outcomes, machine)
    figures = metrics(outcomes, machine) | fairness_indices(outcomes, workload.jobs)
    return Run(outcomes, figures, correlations(outcomes), seconds)


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
    write_table(result.outcomes, path, notes)


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
    key = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16).hexdigest()
    return about | {"key": key, "source": os.fspath(source)}


def simulate_all(
    source: str | os.PathLike[str],
    schedulers: Mapping[str, Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    code: str = "",
    report: Callable[[str, bool], None] = lambda name, kept: None,
) -> dict[str, Any]:
    """
    Simulate a workload under several schedulers; runs whose key is unchanged are kept.

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
        Told of every run: its name, and whether it was kept.

    Returns
    -------
    dict
        The manifest: for each run its file, key and options.

    Raises
    ------
    SwflowError
        If a scheduler's options are wrong or the workload cannot be simulated.
    """
    folder = Path(folder)
    workload = open_workload(source)
    specs = {name: Scheduler.of(name, options) for name, options in schedulers.items()}
    seconds = _read_json(folder / SECONDS)
    manifest: dict[str, Any] = {"workload": workload.name, "source": os.fspath(source), "runs": {}}
    for name, scheduler in specs.items():
        path = folder / f"{name}.parquet"
        about = describe_run(source, workload, name, scheduler, code)
        kept = path.is_file() and read_metadata(path).get("key") == about["key"]
        if not kept:
            result = run(workload, scheduler)
            write_run(result, path, about)
            seconds[name] = result.seconds
        report(name, kept)
        manifest["runs"][name] = {"file": path.name, "key": about["key"], "options": about["options"]}
    _write_json(folder / SECONDS, seconds)
    _write_json(folder / MANIFEST, manifest)
    return manifest


def scheduler_options(name: str, schedulers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the options of a named scheduler of the config; ``log`` is always there."""
    return {"order": LOG} if name == LOG else schedulers[name]


def runs_in(path: str | os.PathLike[str]) -> list[Path]:
    """
    Return the run files that a path stands for: a run's file, a manifest, or a folder of these or of such folders.

    Raises
    ------
    SwflowError
        If there is nothing, or a listed file is missing or is another run than the manifest says.
    """
    path = Path(path)
    if path.is_dir() and not (path / MANIFEST).is_file():
        inside = [*sorted(path.glob("*.parquet")), *sorted(part for part in path.iterdir() if part.is_dir())]
        files = [file for part in inside if not is_in_the_making(part) for file in runs_in(part)]
        if not files:
            raise SwflowError(f"{path}: no run in it; make one with: swflow simulate WORKLOAD -o {path}/RUN.parquet")
        return files
    if path.is_dir():
        path = path / MANIFEST
    if not path.is_file():
        raise SwflowError(f"{path}: no such file; make it with: swflow simulate WORKLOAD -o {path}")
    if path.suffix != ".json":
        return [path]
    files = []
    for name, listed in _read_json(path)["runs"].items():
        file = path.parent / listed["file"]
        if not file.is_file() or read_metadata(file).get("key") != listed["key"]:
            raise SwflowError(
                f"{file}: missing, or not the run {name!r} that {path} lists; delete {path} and run snakemake again"
            )
        files.append(file)
    return files


def run_seconds(path: Path) -> float | None:
    """Return how long a run took to simulate, if that is known."""
    return _read_json(path.parent / SECONDS).get(path.stem)


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return a hash of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
