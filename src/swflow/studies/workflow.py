"""The plan of the Snakemake workflow: input files and command options of the rules, by wildcards."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.files.atomic import atomic_path
from swflow.files.fingerprint import fingerprint
from swflow.files.manifest import MANIFEST, drop_broken, file_digest, unmade
from swflow.log.catalogue import Log, is_at_hand, load_catalogue, source_of
from swflow.names import PARENT, compact, log_of, parent_of, recipe_of, replicate_of, split_step, steps_of
from swflow.scheduling.options import LOG
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.plan import (
    check_conditions,
    check_schedulers,
    command_options,
    explain,
    fit_name,
    fit_options,
    is_fitted,
    planned_bounds,
    planned_figures,
    planned_replicates,
    planned_runs,
    planned_sweeps,
    planned_whatifs,
    sources_behind,
    step_options,
    sweep_options,
    with_kept,
    with_titles,
)

DATABASE = Path("results/swflow.duckdb")
SUMMARY = Path("results/swflow.json")
SETTINGS = Path("results/settings.json")
SIMULATIONS = Path("results/simulations.json")
FIGURES = Path("results/figures.json")
REACHED = Path("results/logs/reached.json")

#: The folders of results that a later config may need again: `snakemake prune` removes what the present one does not.
FORMER = ("logs", "workloads", "models", "runs", "sweeps", "bounds")

#: Keys of the config that exclude jobs from the metrics.
MIDDLE = ("warm_up", "cool_down")

#: Memory (MB) of the Snakemake processes that start a batch job, and that start a job of a group within it.
SNAKEMAKE = 500

#: Memory (MB) for compiling kernels on a node without cached kernels.
COMPILING = 600

#: Size (MB) per job of a file derived from a log: at most 50 bytes in workloads of the archive.
MB_PER_JOB = 6e-5

#: Assumed number of jobs of a log whose catalogue entry does not state it.
MANY_JOBS = 250_000


def read_config(config: dict[str, Any], schema: str | os.PathLike[str]) -> dict[str, Any]:
    """
    Check a config by a JSON schema (a YAML file), fill in its defaults, and add what ``keep`` of its sweeps represents.

    This is equivalent to `snakemake.utils.validate`, with a YAML parser that is ten times faster. Error messages name
    the key.
    """
    import jsonschema  # type: ignore[import-untyped]
    import yaml

    content = yaml.load(Path(schema).read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    validator = jsonschema.Draft202012Validator
    check_properties = validator.VALIDATORS["properties"]

    def with_defaults(check: Any, properties: dict[str, Any], instance: Any, parent: Any) -> Iterator[Any]:
        if isinstance(instance, dict):
            for name, about in properties.items():
                if "default" in about:
                    instance.setdefault(name, about["default"])
        yield from check_properties(check, properties, instance, parent)

    filling = jsonschema.validators.extend(validator, {"properties": with_defaults})
    error = jsonschema.exceptions.best_match(filling(content).iter_errors(config))
    if error is not None:
        raise SwflowError(explain(error))
    full = with_titles(with_kept(config))
    check_schedulers(full)
    check_conditions(full)
    return full


def one_of(names: Iterable[str]) -> str:
    r"""
    Return a pattern that matches only the given names; without names it matches nothing.

    Examples
    --------
    >>> one_of(["KTH-SP2", "A+b.1"]), one_of([])
    ('KTH-SP2|A\\+b\\.1', '(?!)')
    """
    return "|".join(name.replace(".", r"\.").replace("+", r"\+") for name in names) or "(?!)"


def canonical(content: Any) -> str:
    """Return settings as JSON that does not depend on the order of keys in the config."""
    return json.dumps(content, sort_keys=True)


@dataclass
class Workflow:
    """
    The plan for the studies of a config that `read_config` returned.

    Methods with a parameter ``wildcards`` serve rules: Snakemake calls them with the wildcards of a job. ``is_grouped``
    returns whether jobs are submitted in groups, which require numeric resources; ``reach`` waits for the rule of this
    name.
    """

    config: dict[str, Any]
    is_dry_run: Callable[[], bool] = lambda: False
    is_grouped: Callable[[], bool] = lambda: False
    reach: Callable[[], Any] = lambda: None
    is_done: bool = field(default=False, init=False)
    # Snakemake calls the functions of all ready jobs in every pass of its scheduler, so slow results are kept.
    _options: dict[str, dict[str, Any]] = field(default_factory=dict, init=False)
    _simulated: dict[str, str] = field(default_factory=dict, init=False)
    _digests: dict[str, str] = field(default_factory=dict, init=False)
    _reached: tuple[int, dict[str, str]] = field(default=(-1, {}), init=False)

    def __post_init__(self) -> None:
        own = self.config["logs"] if isinstance(self.config["logs"], dict) else {}
        if own:
            self.config["logs"] = None  # `logs` as a mapping defines logs and limits nothing
        self.own_logs: dict[str, Any] = own
        self.catalogue: dict[str, Log] = load_catalogue([*self.config["catalogue"], own])
        self.runs = planned_runs(self.config, self.catalogue)
        self.sweeps = planned_sweeps(self.config, self.catalogue)
        self.whatifs = planned_whatifs(self.config, self.catalogue)
        self.bounds = planned_bounds(self.config, self.catalogue)
        self.figures = planned_figures(self.config, self.catalogue)
        workloads = self._requested()
        self.replicates = planned_replicates(workloads)
        models = (step for step in self.config["steps"].values() if step["kind"] == "model")
        self.fits = {fit_name(step): fit_options(step) for step in models}
        #: Recipe to the workloads simulated together: the workload of the same name, and its replicates by number.
        self.groups: dict[str, list[str]] = {}
        for name in sorted(self.runs, key=lambda name: replicate_of(name) or 0):
            self.groups.setdefault(recipe_of(name), []).append(name)
        self._check_files(workloads)
        #: The planned logs whose download may fail.
        self.unsure: list[str] = []
        if not self.config["strict"]:
            swept = [workload for workload, _ in self.sweeps]
            needed = {log for name in [*self.runs, *swept] for log in self.logs_behind(name)}
            recorded = needed & set(self.recorded) - set(self.own_logs)
            mirror = self.config["mirror"]
            self.unsure = sorted(log for log in recorded if not is_at_hand(self.catalogue[log], mirror))

    def _check_files(self, workloads: Iterable[str]) -> None:
        """Raise an error if a file named by the config or a catalogue is missing."""
        for workload in workloads:
            log = log_of(workload)
            path = self.source(log).path
            if path is not None and not Path(path).is_file():
                raise SwflowError(f"catalogue: {log}: path: {path}: no such file")
            for step in steps_of(workload):
                file = self.content_of(step).get("file")
                if file is not None and not Path(file).is_file():
                    raise SwflowError(f"steps: {split_step(step)[0]}: file: {file}: no such file")

    def drop_broken(self) -> None:
        """Remove damaged lists of files, and a summary without a database, so that the next call rebuilds them."""
        if SUMMARY.exists() and not DATABASE.exists():
            SUMMARY.unlink()
        self.drop_unrecorded()
        for workload in self.runs:
            drop_broken(self.runs_file(workload))
        for recipe in self.replicates:
            drop_broken(f"results/workloads/{recipe}.json")

    def drop_unrecorded(self) -> None:
        """
        Remove results of another config for which Snakemake has no records, because it compares only their times.

        A copy of the results lacks the records, which are in ``.snakemake``. Downloaded logs and simulated runs stay:
        their entries in the catalogue rarely change, and runs have a key.
        """
        is_recorded = any(Path(".snakemake/metadata").glob("*"))
        if is_recorded or not SETTINGS.is_file() or SETTINGS.read_text(encoding="utf-8").strip() == self.settings():
            return
        print("results: of another config, and without the records of .snakemake: made again", file=sys.stderr)
        if self.is_dry_run():
            return
        downloaded = {f"results/logs/{log}.swf.gz" for log in self.recorded if self.catalogue[log].path is None}
        for file in self.planned_files() - downloaded:
            if not (file.startswith("results/runs/") and file.endswith(".parquet")):
                Path(file).unlink(missing_ok=True)
        SUMMARY.unlink(missing_ok=True)

    # -- logs

    @property
    def recorded(self) -> list[str]:
        """The logs that are downloaded."""
        logs = self.catalogue.items()
        return [name for name, log in logs if log.of is None and log.generate is None and not _is_imported(log)]

    @property
    def synthetic(self) -> list[str]:
        """The logs that are generated."""
        return [name for name, log in self.catalogue.items() if log.generate is not None]

    def source(self, log: str) -> Log:
        """Return the log whose file contains a log: itself, unless it is a period of another log."""
        return source_of(self.catalogue[log], self.catalogue)

    def logs_behind(self, workload: str) -> list[str]:
        """Return the logs that a workload depends on: its own, and the logs that models of its steps are fitted to."""
        return [self.source(log_of(source)).name for source in sources_behind(workload, self.config["steps"])]

    def missing_logs(self) -> dict[str, str]:
        """Return the logs that cannot be downloaded, with reasons; a dry run includes logs that were never tried."""
        if not self.unsure or (self.is_dry_run() and not REACHED.is_file()):
            return {}
        if not self.is_dry_run() and not self.is_done:
            self.reach()
        changed = REACHED.stat().st_mtime_ns
        if self._reached[0] != changed:
            missing = json.loads(REACHED.read_text())["missing"]
            self._reached = (changed, {log: missing[log] for log in self.unsure if log in missing})
        return self._reached[1]

    def is_reached(self, workload: str) -> bool:
        """Return whether the logs of a workload are available, or were never tried."""
        return not self.unsure or not self.missing_logs().keys() & set(self.logs_behind(workload))

    def left_out(self) -> list[tuple[str, str, list[str]]]:
        """Return the omitted runs: the missing log, a workload or sweep of it, and the workload's schedulers."""
        planned = [(workload, workload, schedulers) for workload, schedulers in self.runs.items()]
        planned += [(workload, f"{workload}+{sweep}", []) for workload, sweep in self.sweeps]
        missing = self.missing_logs()
        return [
            (next(log for log in self.logs_behind(workload) if log in missing), name, schedulers)
            for workload, name, schedulers in planned
            if not self.is_reached(workload)
        ]

    def report_left_out(self) -> None:
        """Print the omitted runs at the end of a call."""
        if not self.unsure or not REACHED.is_file():
            return
        self.is_done = True
        rows, missing = self.left_out(), self.missing_logs()
        for log in dict.fromkeys(log for log, _, _ in rows):
            runs = sum(len(schedulers) or 1 for name, _, schedulers in rows if name == log)
            print(f"left out: {runs} runs and sweeps of {missing[log]}", file=sys.stderr)
        if rows:
            print("left out: to try again: snakemake --forcerun reach; to fail instead: strict: true", file=sys.stderr)

    def origin(self, log: str) -> dict[str, Any]:
        """Return the catalogue's description of a log's file; another description means another log."""
        entry = self.catalogue[log]
        described = {key: getattr(entry, key) for key in ("file", "url", "path", "jobs", "sha256")}
        return described | {"content": self.content_of_log(log)}

    def content_of_log(self, log: str) -> str:
        """Return the digest of the local file of a log, which may be replaced by one of equal size and time."""
        path = self.source(log).path
        if path is None:
            return ""
        if path not in self._digests:
            self._digests[path] = file_digest(path)
        return self._digests[path]

    def log_content(self, wildcards: Any) -> str:
        """Return the digest of the local file of a log that is cleaned without being fetched."""
        return self.content_of_log(wildcards.log) if _is_imported(self.source(wildcards.log)) else ""

    def origins(self) -> str:
        """Return the descriptions of all logs whose download may fail."""
        return canonical({log: self.origin(log) for log in self.unsure})

    def origin_of(self, wildcards: Any) -> str:
        """Return the description of the log of a job."""
        return canonical(self.origin(wildcards.log))

    def local_file(self, wildcards: Any) -> Any:
        """Return the local file of a log, if it has one."""
        return self.catalogue[wildcards.log].path or []

    def mirror_option(self) -> str:
        """Return the mirror option of the commands that download logs."""
        return command_options({"mirror": self.config["mirror"]})

    def catalogue_options(self, wildcards: Any = None) -> str:
        """Return the options that describe a log: its entry in the config, or the catalogues."""
        own = self.own_logs.get(wildcards.log) if wildcards else None
        return command_options({"catalogue": self.config["catalogue"]} if own is None else {"entry": canonical(own)})

    def model_of_log(self, wildcards: Any) -> Any:
        """Return the model that generates a log."""
        return self.catalogue[wildcards.log].generate

    def code_of_model(self, wildcards: Any) -> str:
        """Return the fingerprint of the model that generates a log."""
        return fingerprint(f"generate_{self.model_of_log(wildcards)}")

    def generate_options(self, wildcards: Any) -> str:
        """Return the options that generate a log."""
        entry = self.catalogue[wildcards.log]
        machine = {"processors": entry.processors, "jobs": entry.jobs, "seed": self.config["seed"]}
        return command_options(entry.parameters | machine)

    # -- workloads

    def workload_file(self, workload: str) -> str:
        """Return the file that represents a workload: its own, or the list of all replicates of its recipe."""
        grouped = workload in self.replicates.get(recipe_of(workload), ())
        return f"results/workloads/{recipe_of(workload)}.json" if grouped else f"results/workloads/{workload}.parquet"

    def source_file(self, wildcards: Any) -> str:
        """Return the file that represents the workload of a job."""
        return self.workload_file(wildcards.workload)

    def raw_log_file(self, wildcards: Any) -> str:
        """Return the file to clean."""
        log = self.source(wildcards.log)
        return str(log.path) if _is_imported(log) else f"results/logs/{log.name}.swf.gz"

    def clean_options(self, wildcards: Any) -> str:
        """Return the options of ``clean``: machine and period from the catalogue, rules from the config."""
        entry, source = self.catalogue[wildcards.log], self.source(wildcards.log)
        settings = self.config["clean"] | source.clean | entry.clean
        machine = {
            "machine_processors": entry.processors or source.processors,
            "machine_nodes": entry.nodes or source.nodes,
            "from": entry.since,
            "until": entry.until,
        }
        return command_options(settings | {"drop": settings["drop"] or ["none"]} | machine)

    def content_of(self, step: str) -> Mapping[str, Any]:
        """Return the definition of a step in the config."""
        return self.config["steps"][split_step(step)[0]]

    def fit_file(self, workload: str) -> str:
        """Return the fitted model that the last step of a workload draws from; empty if there is none."""
        return _fit_file(self.content_of(workload.rpartition("+")[2]), parent_of(workload))

    def fit_options(self, wildcards: Any) -> str:
        """Return the options that fit a model."""
        return command_options(self.fits[wildcards.fit])

    def made_together(self, wildcards: Any) -> list[str]:
        """Return the workloads that one job generates: a single workload, or the replicates of a recipe."""
        if hasattr(wildcards, "recipe"):
            return self.replicates[wildcards.recipe]
        return [f"{wildcards.workload}+{wildcards.step}"]

    def step_of(self, wildcards: Any) -> str:
        """Return the step that a job applies."""
        return self.made_together(wildcards)[0].rpartition("+")[2]

    def step_sources(self, wildcards: Any) -> list[str]:
        """Return the files that represent the input workloads of a step."""
        return sorted({self.workload_file(parent_of(name)) for name in self.made_together(wildcards)})

    def step_fits(self, wildcards: Any) -> list[str]:
        """Return the fitted models that a step draws from."""
        return sorted({file for file in map(self.fit_file, self.made_together(wildcards)) if file})

    def step_files(self, wildcards: Any) -> list[str]:
        """Return the files that a job's step reads in addition to its workload."""
        file = self.content_of(self.step_of(wildcards)).get("file")
        return [] if file is None else [file]

    def step_kind(self, wildcards: Any) -> str:
        """Return the kind of a job's step, which is the command that applies it."""
        return str(self.content_of(self.step_of(wildcards))["kind"])

    def step_options(self, wildcards: Any) -> str:
        """Return the options of the command of a step."""
        step = self.step_of(wildcards)
        parent = PARENT if hasattr(wildcards, "recipe") else wildcards.workload
        fitted, options = _fit_file(self.content_of(step), parent), step_options(step, self.config)
        return f"--fitted {fitted} {options}" if fitted else options

    def step_content(self, wildcards: Any) -> list[str]:
        """Return the digests of the files that a step reads in addition to its workload."""
        return [file_digest(file) for file in self.step_files(wildcards)]

    def step_code(self, wildcards: Any) -> str:
        """Return the fingerprint of a step, combined with that of ``replicate`` if a job generates several."""
        kind = self.step_kind(wildcards)
        return fingerprint("replicate", kind) if hasattr(wildcards, "recipe") else fingerprint(kind)

    def replicate_names(self, wildcards: Any) -> str:
        """Return the names of the replicates that a job generates, as ranges."""
        return ", ".join(compact(self.replicates[wildcards.recipe]))

    def replicate_outputs(self, wildcards: Any) -> str:
        """Return the options that name the files of the replicates that a job generates."""
        return " ".join(f"-o results/workloads/{name}.parquet" for name in compact(self.replicates[wildcards.recipe]))

    # -- runs

    def options_of(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return schedulers by name, with all options filled in."""
        schedulers = {**self.config["schedulers"], LOG: {"order": LOG}}
        for name in names:
            if name not in self._options:
                self._options[name] = Scheduler.of(name, schedulers[name]).to_dict()
        return {name: self._options[name] for name in names}

    def schedulers_of(self, workload: str) -> dict[str, dict[str, Any]]:
        """Return the schedulers of a workload's runs, with all options filled in."""
        return self.options_of(self.runs.get(workload, [*self.config["schedulers"], LOG]))

    def runs_file(self, workload: str) -> str:
        """Return the list of the runs of a workload and of all replicates of its recipe."""
        return f"results/runs/{recipe_of(workload)}.json"

    def simulated_together(self, wildcards: Any) -> list[str]:
        """Return the workloads that a job simulates."""
        return self.groups.get(wildcards.recipe, [wildcards.recipe])

    def simulate_inputs(self, wildcards: Any) -> list[str]:
        """Return the files that represent the workloads that a job simulates."""
        return sorted({self.workload_file(name) for name in self.simulated_together(wildcards)})

    def simulate_sources(self, wildcards: Any) -> str:
        """Return the arguments that name the workloads that a job simulates."""
        return " ".join(f"results/workloads/{name}.parquet" for name in compact(self.simulated_together(wildcards)))

    def simulate_options(self, wildcards: Any) -> str:
        """Return the options of a simulation that are equal for all runs."""
        return command_options({name: self.config[name] for name in MIDDLE if self.config[name]})

    def simulate_schedulers(self, wildcards: Any) -> str:
        """Return the workloads that a job simulates, with the options of their schedulers that are not the default."""
        default = Scheduler().to_dict()
        return canonical({
            workload: {
                name: {key: value for key, value in options.items() if key not in default or value != default[key]}
                for name, options in self.schedulers_of(workload).items()
            }
            for workload in self.simulated_together(wildcards)
        })  # fmt: skip

    def simulate_priority(self, wildcards: Any) -> int:
        """Return 1 for simulations with numbered processors, which take longest and should start first."""
        schedulers = (self.schedulers_of(name) for name in self.simulated_together(wildcards))
        return int(any(options["allocation"] != "count" for named in schedulers for options in named.values()))

    def simulated(self, wildcards: Any) -> Any:
        """Return the runs that a job will simulate, for display only."""
        names = self.simulated_together(wildcards)
        if self.is_grouped():
            return len(names)
        if wildcards.recipe not in self._simulated:
            self._simulated[wildcards.recipe] = self._missing_runs(names)
        return self._simulated[wildcards.recipe]

    def _missing_runs(self, names: Sequence[str]) -> str:
        from swflow.analysis.metrics import Middle

        wanted: dict[str, list[str]] = {}
        code = fingerprint("simulate") + str(Middle(*(self.config[name] for name in MIDDLE)))
        for name in names:
            found = unmade(self.schedulers_of(name), code, Path("results/runs") / name)
            wanted.setdefault(", ".join(found), []).append(name)
        parts = [f"{', '.join(compact(group))}: {runs}" for runs, group in wanted.items() if runs]
        return "; ".join(parts) or f"{', '.join(compact(names))}: none unless the workload changed"

    def sweep_command(self, wildcards: Any) -> str:
        """Return the command of a sweep."""
        return sweep_options(wildcards.sweep, self.config)[0]

    def sweep_code(self, wildcards: Any) -> str:
        """Return the fingerprint of a sweep."""
        return fingerprint(self.sweep_command(wildcards))

    def sweep_options(self, wildcards: Any) -> str:
        """Return the options of a sweep, with its schedulers."""
        schedulers = self.options_of(self.sweeps[wildcards.workload, wildcards.sweep]["schedulers"])
        return f"{sweep_options(wildcards.sweep, self.config)[1]} {_named(schedulers)}"

    def whatif_options(self, wildcards: Any) -> str:
        """Return the options of a what-if table, with its schedulers."""
        planned = dict(self.whatifs[wildcards.study, wildcards.workload])
        schedulers = self.options_of(planned.pop("schedulers"))
        named = [f"{name}: {canonical(spec)}" for name, spec in schedulers.items()]
        return command_options(planned | {"scheduler": named})

    def whatif_files(self, wildcards: Any) -> list[str]:
        """Return the pages of all what-if tables whose logs are available."""
        return [f"results/whatif/{study}/{name}.html" for study, name in self.whatifs if self.is_reached(name)]

    # -- database, figures, report

    def loaded_files(self, wildcards: Any) -> list[str]:
        """Return the lists of runs, the sweeps, fits, what-ifs and bounds whose logs are available."""
        workloads = [workload for workload in self.runs if self.is_reached(workload)]
        fits = {self.fit_file(workload) for workload in workloads if "+" in workload} - {""}
        return [
            *sorted({self.runs_file(workload) for workload in workloads}),
            *(f"results/sweeps/{name}+{sweep}.parquet" for name, sweep in self.sweeps if self.is_reached(name)),
            *sorted(fits),
            *(f"results/whatif/{study}/{name}.parquet" for study, name in self.whatifs if self.is_reached(name)),
            *(f"results/bounds/{name}.parquet" for name in self.bounds if self.is_reached(name)),
        ]

    def loaded_workloads(self, wildcards: Any) -> list[str]:
        """Return the files that represent the workloads of runs, which a load reads, too."""
        return sorted({self.workload_file(workload) for workload in self.runs if self.is_reached(workload)})

    def left_out_options(self, wildcards: Any) -> str:
        """Return the options that name the omitted runs."""
        by_schedulers: dict[tuple[str, str], list[str]] = {}
        for log, workload, schedulers in self.left_out():
            by_schedulers.setdefault((log, ",".join(schedulers)), []).append(workload)
        texts = [
            f"{log}:{name}={schedulers}"
            for (log, schedulers), workloads in by_schedulers.items()
            for name in compact(workloads)
        ]
        return command_options({"left_out": texts, "reached": str(REACHED) if self.unsure else None})

    def figure_files(self, *endings: str) -> Callable[[Any], list[str]]:
        """Return a function that returns the files of all figures whose logs are available."""
        return lambda wildcards: [
            file for log in self.logs_with_figures if self.is_reached(log) for file in self.figures_of(log, *endings)
        ]

    @property
    def logs_with_figures(self) -> list[str]:
        """The logs whose runs or sweeps have figures."""
        return sorted({log_of(options["log"]) for options in self.figures.values()})

    def figures_of(self, log: str, *endings: str) -> list[str]:
        """Return the files of all figures of a log."""
        names = [name for name, options in self.figures.items() if log_of(options["log"]) == log]
        return [f"results/figures/{name}.{ending}" for name in names for ending in endings]

    def figure_labels(self, file: str) -> dict[str, Any]:
        """Return the category and the labels of a figure in Snakemake's own report."""
        study, _, name = file.removeprefix("results/figures/").removesuffix(".png").partition("/")
        options = self.figures[f"{study}/{name}"]
        kind = options.get("sweep", options["kind"])
        return {"category": study, "labels": {"log": options["log"], "figure": kind}}

    def figures_digest(self, log: str) -> str:
        """Return a digest of the figures of a log: which files, with which options."""
        shown = {name: options for name, options in self.figures.items() if log_of(options["log"]) == log}
        return hashlib.sha256(canonical(shown).encode()).hexdigest()

    def settings(self) -> str:
        """Return the config for the report, without the mirror, which does not affect results."""
        return canonical({key: value for key, value in self.config.items() if key != "mirror"})

    def settings_digest(self, wildcards: Any = None) -> str:
        """Return a digest of the config: Snakemake prints parameters that changed, and the config may be long."""
        return hashlib.sha256(self.settings().encode()).hexdigest()

    def write_plans(self) -> None:
        """Write the config for the report, and the plans of runs and figures; remove figures of former configs."""
        self.remove_former("figures", "whatif")
        schedulers = self.options_of([*self.config["schedulers"], LOG])
        plans = {
            SETTINGS: self.settings(),
            SIMULATIONS: canonical({"schedulers": schedulers, "runs": self.runs}),
            FIGURES: canonical(self.figures),
        }
        for path, content in plans.items():
            with atomic_path(path) as file:
                file.write_text(content + "\n", encoding="utf-8")

    # -- results of former configs

    def planned_files(self) -> set[str]:
        """Return the files that the config's jobs make in the folders of `FORMER`, also those of missing logs."""
        workloads = {name for name in self._requested() for name in sources_behind(name, self.config["steps"])}
        for name in list(workloads):
            while name := parent_of(name):
                workloads.add(name)
        fits = {self.fit_file(name) for name in workloads if "+" in name} - {""}
        figures = {f"results/figures/{name}.{ending}" for name in self.figures for ending in ("png", "svg", "json")}
        whatifs = {f"results/whatif/{study}/{name}" for study, name in self.whatifs}
        return {
            *(f"results/logs/{self.source(log_of(name)).name}.swf.gz" for name in workloads),
            *(f"results/workloads/{name}.parquet" for name in workloads),
            *(f"results/workloads/{recipe}.json" for recipe in self.replicates),
            *(self.runs_file(workload) for workload in self.runs),
            *(
                f"results/runs/{name}/{scheduler}.parquet"
                for name, of_name in self.runs.items()
                for scheduler in of_name
            ),
            *(f"results/sweeps/{name}+{sweep}.parquet" for name, sweep in self.sweeps),
            *(f"results/bounds/{name}.parquet" for name in self.bounds),
            *(f"{file}.{ending}" for file in whatifs for ending in ("html", "csv", "parquet")),
            *(str(REACHED), *fits, *figures),
        }

    def remove_former(self, *folders: str) -> None:
        """Remove the files that no study of the config names, from folders of results, and print their names."""
        planned = self.planned_files()
        for folder in folders:
            for file in sorted(Path("results", folder).rglob("*")):
                # A manifest belongs to the files of its folder.
                if file.is_file() and str(file) not in planned and not file.name.endswith(MANIFEST):
                    file.unlink()
                    print(f"removed: {file}, which no study of the config names", file=sys.stderr)
            for path in sorted(Path("results", folder).rglob("*/"), reverse=True):
                if all(file.name == MANIFEST for file in path.iterdir()):
                    shutil.rmtree(path)

    def _requested(self) -> list[str]:
        """Return the workloads of the studies."""
        return [*self.runs, *(name for _, name in self.whatifs), *(name for name, _ in self.sweeps)]

    # -- resources

    def size_mb(self, wildcards: Any, input: Collection[str]) -> float:
        """
        Return the size (MB) of a job's input, estimated by the jobs of the log for files that do not exist yet.

        A group of jobs is submitted before most of its files exist, and Snakemake omits resources that it cannot
        evaluate from the memory and the time of the group.
        """
        named = (getattr(wildcards, key, None) for key in ("workload", "recipe", "log"))
        name = next((one for one in named if one), None)
        log = self.catalogue.get(log_of(name)) if name else None
        jobs = (log and (log.jobs or source_of(log, self.catalogue).jobs)) or MANY_JOBS
        files = [Path(file) for file in input]
        return sum(file.stat().st_size / 1e6 if file.is_file() else jobs * MB_PER_JOB for file in files)

    def memory(self, base: float, per_mb: float, size: Any = None) -> Callable[[Any, Any, int], int]:
        """Return the memory (MB) of a job as a function: base plus a part per MB of input, times 1.5 per retry."""
        own, size = SNAKEMAKE + base, size or self.size_mb
        return lambda wildcards, input, attempt: int((own + per_mb * size(wildcards, input)) * 1.5 ** (attempt - 1))

    def minutes(self, base: float, per_mb: float, size: Any = None) -> Callable[[Any, Any, int], int]:
        """Return the run time (minutes) of a job as a function: base plus a part per MB of input, doubled per retry."""
        size = size or self.size_mb
        return lambda wildcards, input, attempt: int((base + per_mb * size(wildcards, input)) * 2 ** (attempt - 1) + 1)


def runs_mb(wildcards: Any, input: Any) -> float:
    """Return the size (MB) of all runs, which a load reads; the sizes of their lists do not matter."""
    return sum(file.stat().st_size for file in Path("results/runs").glob("*/*.parquet")) / 1e6


def database_mb(wildcards: Any, input: Any) -> float:
    """Return the size (MB) of the database, whose summary figures, tables and the report read."""
    return DATABASE.stat().st_size / 1e6 if DATABASE.is_file() else 0


def start_only_when_jobs_end(workflow: Any) -> None:
    """
    Let Snakemake's scheduler select local jobs only when a job ends.

    Snakemake limits the rate of job starts, to 100 per second by default. With a limit, every pass of the scheduler
    requests another pass one second later, in addition to those that finished jobs request. The number of passes per
    second therefore grows with the number of finished jobs, and every pass evaluates all ready jobs. Local jobs are
    limited by the cores. Cluster jobs, and a limit that the user set, are left as they are.
    """
    scheduler: Any = getattr(workflow, "scheduler", None)
    limit = getattr(scheduler, "job_rate_limiter", None)
    if limit is not None and workflow.local_exec and (limit.max_jobs, limit.timespan) == (100, 1):
        scheduler.job_rate_limiter = None


def _fit_file(content: Mapping[str, Any], parent: str) -> str:
    """Return the fitted model that a step of the workload ``parent`` draws from; empty if there is none."""
    if not is_fitted(content):
        return ""
    return f"results/models/{content.get('like', parent)}/{fit_name(content)}.json"


def _is_imported(log: Log) -> bool:
    """Return whether the file of a log is an output of ``swflow import``, which needs no download and conversion."""
    return log.path is not None and log.path.endswith(".parquet")


def _named(schedulers: Mapping[str, Any]) -> str:
    """Return the options that name schedulers."""
    return command_options({"scheduler": [f"{name}={canonical(spec)}" for name, spec in schedulers.items()]})
