"""What the rules of the Snakemake workflow need of a config: names, options, input files and resources of jobs."""

import contextlib
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from swflow.errors import SwflowError
from swflow.files.atomic import write_text
from swflow.files.fingerprint import PACKAGE
from swflow.files.reading import file_digest
from swflow.log.catalogue import Log, default_catalogue, load_catalogue, source_of
from swflow.log.fetch import is_at_hand
from swflow.names import log_of, parent_of, split_step, steps_of, with_parents
from swflow.scheduling.orders.vocabulary import LOG
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.asked import asked_pairs, check_questions, check_whatifs
from swflow.studies.figure_options import FOREST
from swflow.studies.levels import with_levels
from swflow.studies.only import with_only
from swflow.studies.plan import (
    check_conditions,
    check_schedulers,
    plan_studies,
    planned_replicates,
    with_kept,
    with_titles,
)
from swflow.studies.predefined import redefinitions, with_predefined
from swflow.studies.schema_errors import explain, most_useful
from swflow.studies.step_options import (
    Config,
    fit_name,
    is_fitted,
    sources_behind,
)

#: The config of the results, with its defaults: an output of the report.
SETTINGS = Path("results/settings.json")
REACHED = Path("results/logs/reached.json")
CHANGES = Path("results/changes.json")
VERDICTS = Path("results/verdicts")


def read_config(config: dict[str, Any], schema: str | os.PathLike[str]) -> dict[str, Any]:
    """
    Check a config by a JSON schema (a YAML file), fill in its defaults, and return the part that ``only`` names.

    What ``keep`` of its sweeps represents is added, and the predefined schedulers that studies name. A scheduler that
    redefines a predefined one is a line on the terminal.

    This is equivalent to `snakemake.utils.validate`, with a YAML parser that is ten times faster. Error messages name
    the key.
    """
    import jsonschema  # type: ignore[import-untyped]

    from swflow.files.yaml import parse_yaml

    content = parse_yaml(Path(schema).read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator
    check_properties = validator.VALIDATORS["properties"]

    def with_defaults(check: Any, properties: dict[str, Any], instance: Any, parent: Any) -> Iterator[Any]:
        if isinstance(instance, dict):
            for name, about in properties.items():
                if "default" in about:
                    instance.setdefault(name, about["default"])
        yield from check_properties(check, properties, instance, parent)

    filling = jsonschema.validators.extend(validator, {"properties": with_defaults})
    error = most_useful(filling(content).iter_errors(config))
    if error is not None:
        path = list(error.absolute_path)
        if path[:1] == ["schedulers"] and len(path) > 2 and path[2] != "title":
            # The check of an option explains a nested value better than the schema.
            options = {key: value for key, value in config["schedulers"][path[1]].items() if key != "title"}
            check_schedulers({"schedulers": {path[1]: options}})
        raise SwflowError(explain(error))
    full = with_titles(with_predefined(with_kept(with_levels(config))))
    check_schedulers(full)
    check_questions(full)
    check_conditions(full)
    for line in redefinitions(full):
        print(line, file=sys.stderr)
    return dict(with_only(full))


def report_changes(plan: "Workflow") -> None:
    """Print how the load of this call changed values and verdicts; nothing if it did not load."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if CHANGES.stat().st_mtime >= plan.began:
            for line in json.loads(CHANGES.read_text(encoding="utf-8")).get("lines", ()):
                print(line, file=sys.stderr)


def offer_package() -> None:
    """Set ``SWFLOW_PACKAGE``, the folder of this package, for the script that adds it to an environment of conda."""
    os.environ["SWFLOW_PACKAGE"] = str(PACKAGE)


def cancel_timers() -> None:
    """
    Let a call of Snakemake end with its last job.

    Whenever Snakemake has looked for ready jobs, a timer makes it look again after the time span of
    ``--max-jobs-per-timespan``, by default a second, and Python waits for the last one.
    """
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer) and str(thread.function.__module__).startswith("snakemake."):
            thread.cancel()


def one_of(names: Iterable[str]) -> str:
    r"""
    Return a pattern that matches only the given names; without names it matches nothing.

    Examples
    --------
    >>> one_of(["KTH-SP2", "A+b.1"]), one_of([])
    ('KTH-SP2|A\\+b\\.1', '(?!)')
    """
    return "|".join(name.replace(".", r"\.").replace("+", r"\+") for name in names) or "(?!)"


def digest(content: Any) -> str:
    """Return a digest of settings that does not depend on the order of keys in the config."""
    return hashlib.sha256(_canonical(content).encode()).hexdigest()[:16]


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True)


class Replicates(NamedTuple):
    """The replicates of a recipe: the step that draws them, what they are made from, and their simulated ones."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    simulated: list[str]


def plan_file(name: str, content: Any) -> str:
    """
    Write what a job of the workflow reads of the config to a JSON file, unless it exists, and return its path.

    The name contains a digest of the content, so that another content is another input of the job, which Snakemake
    notices. A plan is never changed while a job may read it, also if another call of Snakemake reads another config.
    """
    path, text = Path(f"results/plans/{name}-{digest(content)}.json"), _canonical(content) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
    return str(path)


@dataclass
class Workflow:
    """
    The plan for the studies of a config that `read_config` returned.

    Methods with a parameter ``wildcards`` serve rules: Snakemake calls them with the wildcards and the files of a job.
    ``reach`` and ``load`` wait for the rule of this name.
    """

    config: dict[str, Any]
    is_dry_run: Callable[[], bool] = lambda: False
    reach: Callable[[], Any] = lambda: None
    load: Callable[[], Any] = lambda: None
    is_done: bool = field(default=False, init=False)
    began: float = field(default_factory=time.time, init=False)
    # Snakemake calls the functions of all ready jobs in every pass of its scheduler, so slow results are kept.
    _reached: tuple[int, dict[str, str]] = field(default=(-1, {}), init=False)
    _digests: dict[str, str] = field(default_factory=dict, init=False)
    _simulations: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        own = self.config["logs"] if isinstance(self.config["logs"], dict) else {}
        if own:
            self.config["logs"] = None  # `logs` as a mapping defines logs and limits nothing
        self.own_logs: dict[str, Any] = own
        self.catalogue: dict[str, Log] = load_catalogue([*(self.config["catalogue"] or [default_catalogue()]), own])
        studies = plan_studies(self.config, self.catalogue)
        check_whatifs(self.config)
        self.runs, self.sweeps, self.whatifs = studies.runs, studies.sweeps, studies.whatifs
        self.forecasts = studies.forecasts
        self.bounds, self.drawn, workloads = studies.bounds, studies.figures, studies.workloads
        self.reasons = studies.reasons
        for name, one in self.drawn.items():
            if one["kind"] == FOREST and not (one["whatifs"] or asked_pairs(self.config, one["studies"][0])):
                raise SwflowError(
                    f"studies: {one['studies'][0]}: figures: {name.partition('/')[2]}: no runs to compare"
                )
        #: All workloads that the studies need, those that others are made from included.
        self.workloads = with_parents(
            source for name in workloads for source in sources_behind(name, self.config["steps"])
        )
        schedulers = {**self.config["schedulers"], LOG: {"order": LOG}}
        self.schedulers = {name: Scheduler.of(name, options).to_dict() for name, options in schedulers.items()}
        self.replicates = {recipe: self._replicates(names) for recipe, names in planned_replicates(workloads).items()}
        self._check_files(workloads)
        #: The planned logs whose download may fail.
        self.unsure: list[str] = []
        if not self.config["strict"]:
            needed = {log for name in workloads for log in self.logs_behind(name)}
            recorded = needed & set(self.recorded) - set(self.own_logs)
            mirror = self.config["mirror"]
            self.unsure = sorted(log for log in recorded if not is_at_hand(self.catalogue[log], mirror))

    def check_records(self) -> None:
        """
        Raise an error if the results are of another config, and the records of Snakemake are missing.

        A copy of the results lacks the records, which are in ``.snakemake``. Without them Snakemake compares only the
        times of files, so that it would take results of another config for current ones.
        """
        if any(Path(".snakemake/metadata").glob("*")) or not SETTINGS.is_file():
            return
        if SETTINGS.read_text(encoding="utf-8").strip() != _canonical(self.settings_content):
            raise SwflowError(
                "results: of another config, and the records of Snakemake (.snakemake) are missing, so that it cannot "
                f"tell which are out of date; create all of them again with: rm {SETTINGS} && snakemake --forceall"
            )

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

    def is_reached(self, logs: Iterable[str]) -> bool:
        """Return whether logs are available, or were never tried."""
        return not self.unsure or not self.missing_logs().keys() & set(logs)

    def report_left_out(self) -> None:
        """Print the omitted runs at the end of a call."""
        if not self.unsure or not REACHED.is_file():
            return
        self.is_done = True
        missing = self.missing_logs()
        left_out = dict.fromkeys(missing, 0)
        for about in self.loaded_files().values():
            log = next((log for log in about["logs"] if log in missing), None)
            if log and "workload" in about:
                left_out[log] += len(about["schedulers"]) or 1
        for log, runs in left_out.items():
            print(f"left out: {runs} runs and sweeps of {missing[log]}", file=sys.stderr)
        if missing:
            print("left out: to try again: snakemake --forcerun reach; to fail instead: strict: true", file=sys.stderr)

    def origin(self, wildcards: Any) -> str:
        """Return the catalogue's description of the file of a log; another description means another log."""
        logs = [wildcards.log] if hasattr(wildcards, "log") else self.unsure
        return _canonical({log: self._origin(self.source(log)) for log in logs})

    def _origin(self, log: Log) -> dict[str, Any]:
        described = {key: getattr(log, key) for key in ("file", "url", "path", "jobs", "sha256")}
        # A local file may be replaced by one of equal size and time.
        if log.path and log.path not in self._digests:
            self._digests[log.path] = file_digest(log.path)
        return described | {"content": self._digests.get(log.path or "", "")}

    # -- jobs

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the file of a log to clean, or what a step reads beside its workload: a fit, a file of demands."""
        if hasattr(wildcards, "step"):
            return self._step_files(wildcards.step, wildcards.workload)
        log = self.source(wildcards.log)
        return [str(log.path) if _is_imported(log) else f"results/logs/{log.name}.swf.gz"]

    def _step_files(self, step: str, parent: str) -> list[str]:
        content = self.content_of(step)
        return [str(file) for file in (fit_file(content, parent), content.get("file")) if file]

    def fit_of(self, workload: str) -> str:
        """Return the fitted model that the last step of a workload draws from; empty if there is none."""
        parent, _, step = workload.rpartition("+")
        return fit_file(self.content_of(step), parent) if parent else ""

    def content_of(self, step: str) -> Config:
        """Return the step of this name in the config."""
        content: Config = self.config["steps"][split_step(step)[0]]
        return content

    def _replicates(self, names: list[str]) -> Replicates:
        made_from = [(parent_of(name), name.rpartition("+")[2]) for name in names]
        inputs = [f"results/workloads/{parent}.parquet" for parent, _ in made_from]
        inputs += [file for parent, step in made_from for file in self._step_files(step, parent)]
        step = made_from[0][1]
        return Replicates(
            str(self.content_of(step)["kind"]),
            list(dict.fromkeys(inputs)),
            [f"results/workloads/{name}.parquet" for name in names],
            [name for name in names if name in self.runs],
        )

    def simulation(self, wildcards: Any) -> str:
        """Return the file with the schedulers of a workload; a workload that no study names has all of them."""
        return self.simulations([wildcards.workload])

    def simulations(self, workloads: Iterable[str]) -> str:
        """Return the file with the runs of workloads and the options of their schedulers."""
        every = [*self.config["schedulers"], LOG]
        runs = {workload: self.runs.get(workload, every) for workload in workloads}
        key = _canonical(runs)
        if key not in self._simulations:
            schedulers = {name: self.schedulers[name] for chosen in runs.values() for name in chosen}
            first = next(iter(runs.values()))
            # Workloads with the same schedulers share a file.
            named = {} if all(chosen == first for chosen in runs.values()) else runs
            self._simulations[key] = plan_file("simulate", {"schedulers": schedulers, "runs": named})
        return self._simulations[key]

    @property
    def with_places(self) -> list[str]:
        """The workloads that some scheduler simulates on numbered processors."""
        placed = {name for name, options in self.schedulers.items() if Scheduler.of(name, options).is_numbered}
        return [name for name, schedulers in self.runs.items() if "@" not in name and placed & {*schedulers}]

    # -- database, figures, report

    def loaded_files(self) -> dict[str, dict[str, Any]]:
        """Return the files to load, each with the logs that it needs; runs and sweeps with workload and schedulers."""
        files: dict[str, dict[str, Any]] = {}

        def add(file: str, source: str, **about: Any) -> None:
            files.setdefault(file, {"logs": self.logs_behind(source), **about})

        for name, schedulers in self.runs.items():
            add(f"results/runs/{name}", name, workload=name, schedulers=schedulers)
        for name, sweep in self.sweeps:
            add(f"results/sweeps/{name}+{sweep}.parquet", name, workload=f"{name}+{sweep}", schedulers=[])
        for name in self.runs:
            if fit := self.fit_of(name):
                add(fit, name)
        for study, name in self.whatifs:
            add(f"results/whatif/{study}/{name}.parquet", name)
        for study, name in self.forecasts:
            add(f"results/forecasts/{study}/{name}.parquet", name)
        for name in self.bounds:
            add(f"results/bounds/{name}.parquet", name)
        for name in self.reasons:
            add(f"results/wait_reasons/{name}.parquet", name)
        return files

    def loaded(self, wildcards: Any) -> list[str]:
        """Return the files to load whose logs are available, and the workloads of the runs."""
        files = [file for file, about in self.loaded_files().items() if self.is_reached(about["logs"])]
        workloads = [name for name in self.runs if self.is_reached(self.logs_behind(name))]
        return [*files, *(f"results/workloads/{name}.parquet" for name in workloads)]

    @cached_property
    def settings(self) -> str:
        """The file with the config that the report reads, without the mirror, which does not affect results."""
        return plan_file("settings", self.settings_content)

    @property
    def settings_content(self) -> Config:
        """The config that the report reads."""
        return {key: value for key, value in self.config.items() if key != "mirror"}

    @cached_property
    def to_load(self) -> str:
        """The file with the files to load."""
        compared = {name: one["runs"] for name, one in self.drawn.items() if one["kind"] in ("difference", FOREST)}
        reached = str(REACHED) if self.unsure else None
        asked = {study: asked_pairs(self.config, study) for study in self.config["studies"]}
        files = self.loaded_files()
        return plan_file("load", {"files": files, "reached": reached, "compared": compared, "asked": asked})


def fit_file(content: Config, parent: str) -> str:
    """Return the fitted model that a step of the workload ``parent`` draws from; empty if there is none."""
    if not is_fitted(content):
        return ""
    return f"results/models/{content.get('like', parent)}/{fit_name(content)}.json"


def _is_imported(log: Log) -> bool:
    """Return whether the file of a log is an output of ``swflow import``, which needs no download and conversion."""
    return log.path is not None and log.path.endswith(".parquet")
