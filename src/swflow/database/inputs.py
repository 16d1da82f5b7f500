"""The files of a load: runs with their workloads, sweeps, what-ifs, forecasts, bounds, reasons and fits."""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl

from swflow.database.schema import Pair, Rows
from swflow.errors import SwflowError, shell_word
from swflow.files.fingerprint import fingerprint
from swflow.files.query import open_database
from swflow.files.reading import file_digest, read_json
from swflow.jobs.table import JOB_COLUMNS
from swflow.names import log_of, replicate_of
from swflow.scheduling.option_kinds import Unchecked
from swflow.studies.runs import Listed, run_metadata, runs_in

#: Kinds of files other than runs: the tables for their rows, and the columns that are in the metadata of the files.
KINDS = {
    "sweep": ("sweeps", ("sweep",)),
    "whatif": ("whatifs", ("study", "workload")),
    "forecast": ("forecasts", ("study", "workload")),
    "bounds": ("bounds", ("workload",)),
    "wait_reasons": ("wait_reasons", ()),
}

#: The metadata of a file, which is JSON.
Notes = dict[str, Any]

#: Studies to the runs that they compare: pairs of a variant and its base.
Asked = Mapping[str, Sequence[Pair]]

#: The parts of a database, workloads and runs: (kind, name) to a digest. Unchanged parts are not read again.
Contents = dict[tuple[str, str], str]


class Run(NamedTuple):
    """A run: its names in the tables about runs, its file, what the list of its folder says of it, and its metadata."""

    run: str
    workload: str
    scheduler: str
    file: Path
    listed: Listed
    notes: Notes

    @property
    def names(self) -> dict[str, str]:
        """The columns of the tables about runs."""
        return {"run": self.run, "workload": self.workload, "scheduler": self.scheduler}

    @property
    def log(self) -> str:
        """The log of the workload."""
        return log_of(self.workload)

    @property
    def replicate(self) -> int | None:
        """The number of the replicate, if any."""
        return replicate_of(self.workload)


@dataclass(frozen=True)
class Inputs:
    """The files of a load."""

    runs: list[Run]  # sorted by name
    others: dict[Path, Notes]  # the metadata of sweeps, what-ifs and bounds
    fits: Rows  # the rows of table ``fits``, from fitted models
    sources: dict[str, tuple[Path, str]]  # the file and digest of each workload
    schedulers: dict[str, Unchecked]  # the options of each scheduler
    contents: Contents


@dataclass(frozen=True)
class Update:
    """What a load reads: the new parts of a database, which are all parts if there is no ``old`` one to update."""

    old: Contents | None
    workloads: list[str]
    runs: list[Run]  # sorted by name
    pairs: list[list[tuple[Run, Run]]]  # the runs to compare, a list for each log and replicate

    @property
    def changed(self) -> set[str]:
        """The names of the runs."""
        return {run.run for run in self.runs}


def read_inputs(paths: Iterable[str | os.PathLike[str]]) -> Inputs:
    """Read the metadata of files, and check that they fit together."""
    given = [Path(path) for path in paths]
    fits = [path for path in given if path.suffix == ".json"]
    files: dict[Path, tuple[Path, Listed]] = {}  # each once
    for path in given:
        for file, entry in runs_in(path).items() if path not in fits else ():
            files.setdefault(file.resolve(), (file, entry))
    entries = dict(files.values())
    if not entries:
        raise SwflowError("load: no run given; name folders such as results/runs/KTH-SP2")
    metadata = {file: run_metadata(file, entry) for file, entry in entries.items()}
    others = {file: about for file, about in metadata.items() if about.get("kind") in KINDS}
    found = [_run(file, entries[file], metadata[file]) for file in sorted(entries) if file not in others]
    sources = _sources(found)
    _check_bounds(others, sources)
    _check_reasons(others, sources)
    contents = {("code", "load"): fingerprint("load")}
    contents |= {("columns", "jobs"): _extra_columns(path for path, _ in sources.values())}
    contents |= {("workload", name): digest for name, (_, digest) in sources.items()}
    contents |= {("run", run.run): run.listed.digest or file_digest(run.file) for run in found}
    by_name = sorted(found, key=lambda run: run.run)
    rows_of_fits = [row for path in fits for row in _fit_rows(path)]
    return Inputs(by_name, others, rows_of_fits, sources, _schedulers(found, others), contents)


def every_pair(inputs: Inputs) -> Asked:
    """Return all pairs of runs of one workload as a study, for a load without a plan."""
    pairs = combinations(inputs.runs, 2)
    return {"runs": [(variant.run, base.run) for variant, base in pairs if variant.workload == base.workload]}


def planned_update(inputs: Inputs, database: str | os.PathLike[str], asked: Asked) -> Update:
    """Compare the files with the existing database, if any; plan the asked comparisons that are not in it."""
    old, compared = _old_contents(database, inputs.contents)
    new = {part for part, digest in inputs.contents.items() if (old or {}).get(part) != digest}
    newly = [run for run in inputs.runs if ("run", run.run) in new]
    pairs = _pairs_to_compare(inputs.runs, asked, {run.run for run in newly}, compared)
    return Update(old, [name for name in inputs.sources if ("workload", name) in new], newly, pairs)


def _pairs_to_compare(
    runs: Iterable[Run], asked: Asked, changed: Set[str], compared: Set[Pair]
) -> list[list[tuple[Run, Run]]]:
    """
    Return the asked pairs of runs of which one has changed or which were not compared yet.

    The result is a list for each log and replicate. Pairs with a run that is missing are left out.
    """
    known = {run.run: run for run in runs}
    groups: dict[tuple[str, int | None], list[tuple[Run, Run]]] = {}
    for pair in dict.fromkeys(pair for pairs in asked.values() for pair in pairs):
        is_new = pair not in compared or not changed.isdisjoint(pair)
        if is_new and known.keys() >= {*pair}:
            variant, base = (known[name] for name in pair)
            groups.setdefault((variant.log, variant.replicate or base.replicate), []).append((variant, base))
    return list(groups.values())


def _fit_rows(path: Path) -> Rows:
    what = "a fitted model; create one with: swflow model WORKLOAD --save-fit MODEL.json"
    fitted = read_json(path, what)
    try:
        about = {"workload": fitted["source"], "fit": path.stem, "jobs": fitted["jobs"]}
        arrivals = fitted.get("arrivals")  # a model of memory demands has none
        about |= {"model": fitted.get("model", "memory"), "arrivals": arrivals and arrivals["kind"]}
        return [
            about | {"measure": measure, "value": value, "source_value": source_value}
            for measure, (value, source_value) in fitted["goodness"].items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SwflowError(f"{path}: not {what}") from None


def _run(file: Path, entry: Listed, notes: Notes) -> Run:
    if notes.get("kind") != "run":
        raise SwflowError(f"{file}: not a run of swflow; create one with: swflow simulate WORKLOAD -o RUN.parquet")
    workload, scheduler = notes["workload"], notes["scheduler"]
    return Run(f"{workload}/{scheduler}", workload, scheduler, file, entry, notes)


def _sources(found: Iterable[Run]) -> dict[str, tuple[Path, str]]:
    """Return the file of every workload and its digest; raise an error if it is not the simulated version."""
    inputs: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    for run in found:
        if run.run in seen:
            raise SwflowError(f"load: two runs are called {run.run!r} (one is {run.file}); rename one of them")
        seen.add(run.run)
        known = inputs.setdefault(run.workload, (run.notes["source"], run.notes["input"]))
        if known[1] != run.notes["input"]:
            raise SwflowError(
                f"{run.file}: simulated on another version of {run.workload!r} than other runs; simulate it again"
            )
    workloads = {}
    for workload, (source, digest) in sorted(inputs.items()):
        if not Path(source).is_file():
            raise SwflowError(f"{source}: the workload of the runs in {workload!r} is missing; create it again")
        if file_digest(source) != digest:
            raise SwflowError(f"{source}: changed since {workload!r} was simulated; simulate it again")
        workloads[workload] = (Path(source), digest)
    return workloads


def _extra_columns(files: Iterable[Path]) -> str:
    """Return the columns that steps and imports added to workloads, in the order in which table ``jobs`` gets them."""
    found: dict[str, str] = {}
    for file in files:
        if file.suffix == ".parquet":
            for name, dtype in pl.read_parquet_schema(file).items():
                found.setdefault(name, str(dtype))
    return ", ".join(f"{name} {dtype}" for name, dtype in found.items() if name not in JOB_COLUMNS)


def _check_bounds(others: Mapping[Path, Notes], sources: Mapping[str, tuple[Path, str]]) -> None:
    seen: set[str] = set()
    bounds = {file: about["workload"] for file, about in others.items() if about["kind"] == "bounds"}
    for file, name in bounds.items():
        if name in seen:
            raise SwflowError(f"{file}: bounds of {name!r}: given twice; expected one file per workload")
        seen.add(name)
        if name in sources and sources[name][1] != others[file]["input"]:
            raise SwflowError(
                f"{file}: bounds of another version of {name!r} than the runs have; make them again with: "
                f"swflow bound {shell_word(sources[name][0])} -o {shell_word(file)}"
            )


def _check_reasons(others: Mapping[Path, Notes], sources: Mapping[str, tuple[Path, str]]) -> None:
    """Raise an error if two files have the reasons of one run, or a file has those of another version of a workload."""
    seen: set[str] = set()
    for file, about in others.items():
        if about["kind"] != "wait_reasons":
            continue
        for run in about["unknown"]:
            if run in seen:
                raise SwflowError(f"{file}: reasons of the waits in {run!r}: given twice; expected one file per run")
            seen.add(run)
        name = about["workload"]
        if name in sources and sources[name][1] != about["input"]:
            raise SwflowError(
                f"{file}: reasons of waits of another version of {name!r} than the runs have; make them again with: "
                f"swflow why {shell_word(sources[name][0])} -o {shell_word(file)}"
            )


def _schedulers(found: Iterable[Run], others: Mapping[Path, Notes]) -> dict[str, Unchecked]:
    """Return the options of the schedulers of runs and sweeps; raise an error if a name has different options."""
    named = [(run.file, run.scheduler, run.notes["options"]) for run in found]
    sweeps = {file: about["schedulers"] for file, about in others.items() if about["kind"] == "sweep"}
    named += [(file, *item) for file, of_sweep in sweeps.items() for item in of_sweep.items()]
    schedulers: dict[str, Unchecked] = {}
    for file, name, options in named:
        if schedulers.setdefault(name, options) != options:
            raise SwflowError(f"{file}: scheduler {name!r} has different options in another run; rename one")
    return schedulers


def _old_contents(database: str | os.PathLike[str], contents: Contents) -> tuple[Contents | None, Set[Pair]]:
    """Return the parts and compared runs of the existing database if it can be updated; otherwise None."""
    if not Path(database).is_file():
        return None, set()
    try:
        with open_database(database, read_only=True) as connection:
            rows = connection.execute("SELECT kind, name, digest FROM contents").fetchall()
            compared = connection.execute("SELECT DISTINCT variant, base FROM comparisons").fetchall()
    except duckdb.Error:
        return None, set()  # another version, or not a database: build a new one and replace it
    old = {(kind, name): digest for kind, name, digest in rows}
    same = sum(old.get(part) == digest for part, digest in contents.items())
    # A table keeps its columns: another set of them, or another order, needs a new table.
    is_other = any(old.get(part) != contents[part] for part in (("code", "load"), ("columns", "jobs")))
    if is_other or 2 * same < max(len(old), len(contents)):
        return None, set()
    return old, set(compared)


class LoadPlan(NamedTuple):
    """A plan of a load; without a plan, no file is left out, and all runs of a workload are compared."""

    files: list[str]
    left_out: Rows
    compared: Mapping[str, list[str]]  # the runs of each figure of differences, for `write_verdicts`
    asked: Asked | None  # the runs that each study compares: pairs of a variant and its base


def read_plan(path: str | os.PathLike[str]) -> LoadPlan:
    """
    Read a plan of a load, a JSON file.

    ``files`` of the plan maps each file to the ``logs`` that it needs, and to its ``workload`` and ``schedulers`` if it
    has runs or a sweep. A file is omitted if the file ``reached``, an output of ``swflow reach``, names one of its logs
    as missing. ``compared`` maps names to runs, for `swflow.database.load.write_verdicts`, and ``asked`` maps studies
    to the pairs of runs that they compare.

    Raise `SwflowError` if the plan, or the output of ``swflow reach``, cannot be read.
    """
    what = "a plan of a load; expected JSON: files, each with its logs"
    plan = read_json(path, what)
    files, rows = [], []
    try:
        reasons = _missing_logs(plan["reached"]) if plan.get("reached") else {}
        for file, about in plan["files"].items():
            log = next((log for log in about["logs"] if log in reasons), None)
            if log is None:
                files.append(file)
                continue
            for scheduler in about.get("schedulers") or ([None] if "workload" in about else []):
                run = about["workload"] + (f"/{scheduler}" if scheduler else "")
                names = {"run": run, "workload": about["workload"], "scheduler": scheduler}
                rows.append(names | {"log": log, "reason": reasons[log]})
        asked = {study: [(variant, base) for variant, base in pairs] for study, pairs in plan.get("asked", {}).items()}
    except (KeyError, TypeError, AttributeError):
        raise SwflowError(f"{path}: not {what}") from None
    return LoadPlan(files, rows, plan.get("compared", {}), asked if "asked" in plan else None)


def _missing_logs(path: str) -> Mapping[str, str]:
    what = "a file of swflow reach; delete it, and run snakemake again"
    content = read_json(path, what)
    if not isinstance(content, dict):
        raise SwflowError(f"{path}: not {what}")
    missing: Mapping[str, str] = content.get("missing", {})
    return missing
