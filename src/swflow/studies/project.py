"""Projects: create a folder with a config and a Snakefile that use the workflow of swflow."""

import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from swflow.errors import SwflowError
from swflow.files.atomic import write_text
from swflow.log.catalogue import load_catalogue, shipped_catalogue
from swflow.log.imported import read_log
from swflow.log.importers.records import ImportedLog, Site
from swflow.log.queues import Queue, priorities_of, queues_in_words, queues_of
from swflow.log.site import CLUSTERS, SITE, Partition, partitions_of
from swflow.log.site import GUESSED as GUESSED_SIZE
from swflow.log.swf import is_large
from swflow.scheduling.fitting_jobs import fitting
from swflow.scheduling.named import KNOWN
from swflow.scheduling.option_kinds import Unchecked
from swflow.studies.changed_policies import merged
from swflow.studies.site_config import SiteConfig
from swflow.studies.site_scheduler import SiteModel, described
from swflow.workload.clean import GUESSED, log_name, machine_of, open_workload, prepared

#: The files of a project, with placeholders.
_FILES = Path(__file__).with_name("project_files")

#: The path of an imported log in a project.
_IMPORTED = "config/imported.parquet"

#: The schedulers of a project.
_POLICIES: dict[str, dict[str, str]] = {
    "fcfs": {"order": "fcfs", "backfill": "none"},
    "easy": {"order": "fcfs", "backfill": "easy"},
    "sjbf": {"order": "fcfs", "backfill": "easy", "backfill_order": "sjf"},
    "conservative": {"order": "fcfs", "backfill": "conservative"},
    "mine": {"order": "-(wait / estimate) ** 3 * processors", "backfill": "easy"},
}

#: Comments to append to the definitions of schedulers.
_COMMENTS = {"mine": " # a policy is a formula, smallest value first"}

_EXAMPLE = {"generate": "lublin", "processors": 128, "jobs": 14000, "load": 0.6, "users": True}

_MY_LOGS = """\
# Your logs. A log has a path (plain or gzipped text in the Standard Workload Format) and, if the file's header
# lacks it, the machine's processors; config/logs.yaml explains the other keys.
"""


#: The questions of the study of a project: without a site, and with the scheduler of one.
_NO_QUESTION = '# whatif: [{workloads: ["{log}"], schedulers: [@BASE@, mine], processors: ["+20%"]}]'
_QUESTION = 'whatif: [{workloads: ["{log}"], schedulers: [@BASE@, site-sjf], nodes: ["+10%"]}]'


@dataclass(frozen=True)
class Project:
    """
    The result of `init`: the files, and what the log tells about its site.

    ``guess`` is the method by which the size of the machine was guessed, or None if it is stated. ``resources`` are the
    units of resources besides processors, of one of several partitions by ``PARTITION:NAME``; ``guessed_resources`` are
    those of them that are the peak use. ``options`` are those of the scheduler that represents the site, and
    ``imported`` is the log if it was imported. With the config of a site, ``processors`` are those of its machine, and
    ``left_out`` are the jobs that it cannot run.
    """

    files: Sequence[Path] = ()
    partitions: Sequence[Partition] = ()
    options: Unchecked = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    guessed_resources: Sequence[str] = ()
    guess: str | None = None
    queues: Sequence[Queue] = ()
    imported: ImportedLog | None = None
    processors: int | None = None
    left_out: int = 0


def workflow_folder() -> Path:
    """Return the folder of the workflow: the one in the installed package, or the one in the clone."""
    clone, shipped = Path(__file__).parents[3] / "workflow", Path(__file__).parents[1] / "workflow"
    for folder in (shipped, clone):
        if (folder / "Snakefile").is_file():
            return folder
    raise SwflowError(f"{shipped}: no such folder; expected the workflow; install swflow again")


def init(
    folder: str | os.PathLike[str],
    *,
    log: str | os.PathLike[str] | None = None,
    name: str | None = None,
    processors: int | None = None,
    partitions: Mapping[str, int] | None = None,
    resources: Mapping[str, int] | None = None,
    site_config: str | os.PathLike[str] | None = None,
) -> Project:
    """
    Create a project: a Snakefile that uses the workflow of swflow, a config, and a catalogue for the user's logs.

    If the log has several partitions, every scheduler of the config simulates each partition as a cluster. Existing
    files are not overwritten.

    The log is in the Standard Workload Format, an imported log (``.parquet``), or the output of ``sacct -P``, which is
    imported into the project; by default it is synthetic. The defaults of its name and processors are the file's name
    and the size in the file's header. ``partitions`` maps partitions to processors, and ``resources`` has units as in
    `swflow.log.site.with_resources`; their default is the peak use. With ``site_config``, which ``swflow import site``
    wrote, the log is Slurm accounting, the scheduler and the machine are those of the config, and the study asks what
    more nodes and another order would change; jobs that the site cannot run are left out.
    """
    folder = Path(folder)
    title, entry, site = "example", _EXAMPLE, Project()
    if log is not None:
        log = Path(log)
        if not log.is_file():
            raise SwflowError(f"{log}: no such file; expected a log in the Standard Workload Format")
        title = name or log_name(log).removesuffix(".txt")
        entry = {"path": str(log.resolve())} | ({} if processors is None else {"processors": processors})
    load_catalogue({title: entry})  # reject a wrong name or number before anything is written
    if log is not None and site_config is not None:
        site = _site_with(log, Path(site_config))
    elif log is not None:
        site = _site_of(log, processors, partitions, resources)
    elif site_config is not None:
        raise SwflowError("--site: no log; expected --log with the accounting of the site (sacct -P)")
    if site.imported is not None:
        entry = {"path": _IMPORTED} | ({} if site.processors is None else {"processors": site.processors})
    definitions = _definitions(site) if site_config is None else _definitions_with(site)
    schedulers = ["log"] * (log is not None) + list(definitions)
    config = (_FILES / "config.yaml").read_text(encoding="utf-8")
    if log is not None:  # the condition on estimates matches no job if every job requests days
        config = config.replace("estimate <= 3600", "run_time <= 3600")
    if site_config is not None:
        config = config.replace(_NO_QUESTION, _QUESTION).replace("backfilling:", "nodes:")
        config = config.replace("What backfilling buys", "What more nodes and another order change")
    for placeholder, text in {
        "@LOG@": _flow(title),
        "@SCHEDULERS@": ", ".join(schedulers),
        "@DEFINITIONS@": "\n".join(
            [f"  {one}: {text}{_COMMENTS.get(one, '')}".replace(": \n", ":\n") for one, text in definitions.items()]
            + [f"  # {line}" for line in _about_queues(site.queues, SITE in definitions)]
        ),
        "@BASE@": SITE if SITE in definitions else "easy",
    }.items():
        config = config.replace(placeholder, text)
    contents = {
        "Snakefile": (_FILES / "Snakefile").read_text(encoding="utf-8"),
        "config/config.yaml": config,
        "config/logs.yaml": shipped_catalogue().read_text(encoding="utf-8"),
        "config/my-logs.yaml": _MY_LOGS
        + yaml.safe_dump({title: entry}, default_flow_style=None, sort_keys=False, allow_unicode=True),
        "profiles/default/config.yaml": (_FILES / "profile.yaml").read_text(encoding="utf-8"),
        "profiles/slurm/config.yaml": (workflow_folder() / "profiles/slurm/config.yaml").read_text(encoding="utf-8"),
    }
    taken = [path for path in contents if (folder / path).exists()]
    if taken:
        raise SwflowError(f"{folder / taken[0]}: exists already; expected a new folder")
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / path, content)
    files = [folder / path for path in contents]
    if site.imported is not None:
        site.imported.write(folder / _IMPORTED)
        files.append(folder / _IMPORTED)
    return replace(site, files=files)


def _site_of(
    log: Path, processors: int | None, sizes: Mapping[str, int] | None, resources: Mapping[str, int] | None
) -> Project:
    """Describe the site of a log, which is imported if it is accounting data that needs no options."""
    from swflow.log.importers.any import import_any
    from swflow.log.recognise import IMPORTED, recognize

    imported = None
    if log.suffix != ".parquet" and recognize(log).key in IMPORTED:
        imported = import_any(log, Site(processors, partitions=dict(sizes or {})))
        fields, header = imported.fields, imported.header
    elif is_large(log):  # reading the whole log takes minutes
        return Project(**described([], pl.DataFrame({"wait_time": []}), processors, resources)._asdict())
    else:
        read, _ = read_log(log, lenient=True)
        fields, header = read.fields, read.header
    machine, source = machine_of(fields, header, processors, None)
    jobs = prepared(fields)
    partitions = imported.partitions if imported is not None else partitions_of(jobs, header, sizes)
    guess = GUESSED.get(source)
    found = described(partitions, jobs, None if guess else machine.processors, resources)
    return Project(**found._asdict(), guess=guess, queues=queues_of(fields, header), imported=imported)


def _site_with(log: Path, path: Path) -> Project:
    """Describe the site of a config, and import its log without the jobs that it cannot run."""
    from swflow.log.importers.sacct import import_sacct
    from swflow.log.recognise import is_accounting

    config = SiteConfig.read(path)
    if log.suffix == ".parquet" or not is_accounting(log):
        raise SwflowError(f"{log}: no Slurm accounting; expected the output of sacct -P with --site")
    imported = import_sacct(str(log), Site(), join_preempted=config.joins_preempted)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "imported.parquet"
        imported.write(file)
        model = SiteModel.of(open_workload(file), config=config)
    workload, options = model.workload, model.options
    fits = workload.jobs.filter(pl.all_horizontal(*fitting(workload, options, workload.machine)))["job_id"]
    too_large = workload.jobs.filter(~pl.col("job_id").is_in(fits.implode()))["job_id"]
    kept = imported.fields.filter(~pl.col("job_id").is_in(too_large.implode()))
    return Project(
        partitions=model.partitions, options=options, imported=replace(imported, fields=kept),
        processors=workload.machine.processors, left_out=too_large.len(),
    )  # fmt: skip


def _definitions_with(site: Project) -> dict[str, str]:
    """Return the schedulers of a config as YAML by name: the site, and the site with another order."""
    found = {}
    for name, options in ((SITE, site.options), (f"{SITE}-sjf", merged(site.options, {"order": "sjf"}))):
        lines = yaml.safe_dump(dict(options), sort_keys=False, width=100, allow_unicode=True).splitlines()
        found[name] = "\n    ".join(["", *lines])
    return found


def _about_queues(queues: Sequence[Queue], has_site: bool) -> list[str]:
    """Return comments on the queues of a log, with a scheduler that serves them in the order of their waits."""
    if len(queues) < 2:
        return []
    lines = [f"Queues or QOS of the log: {queues_in_words(queues)}.", "Their priorities and limits are not simulated."]
    priorities = priorities_of(queues)
    if priorities is not None:
        base = f"<<: *{SITE}, " * has_site
        options = f"{base}order: slurm-multifactor, backfill: easy, priority: {_flow(priorities)}"
        lines += ["The recorded waits suggest these priorities (a guess):", f"{SITE}-qos: {{{options}}}"]
    return lines


def _definitions(site: Project) -> dict[str, str]:
    """Return the schedulers of the config as YAML by name; they include the site's clusters and resources."""
    partitions = site.partitions
    is_limited = "limits" in site.options or (site.imported and "array_limit" in site.imported.fields.columns)
    # Limits exclude conservative backfilling.
    policies = {name: options for name, options in _POLICIES.items() if not (is_limited and name == "conservative")}
    if len(partitions) < 2 and "resources" not in site.options:
        return {name: _flow(options) for name, options in policies.items()}
    guessed = {one.name: f"  # {GUESSED_SIZE}" for one in partitions if one.is_guessed or one.guessed_resources}
    lines = [f"&{SITE}  # EASY backfilling" + " in each partition of the log" * (len(partitions) > 1)]
    for option, value in site.options.items():
        if option == CLUSTERS:
            lines += [f"{option}:", *(f"  - {_flow(one)}{guessed.get(one['partition'], '')}" for one in value)]
        else:
            mark = f"  # {GUESSED_SIZE}" if option == "resources" and site.guessed_resources else ""
            lines.append(f"{option}: {_flow(value)}{mark}")
    found = {SITE: "\n    ".join(lines)}
    for name, options in policies.items():
        if name != "easy":
            # A predefined name means the same scheduler everywhere, without the options of the site.
            found[f"{SITE}-{name}" if name in KNOWN else name] = f"{{<<: *{SITE}, {_flow(options)[1:]}"
    return found


def _flow(value: Any) -> str:
    """Return a value as YAML on one line; quote texts of several words, and those that YAML reads as other values."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    is_phrase = isinstance(value, str) and not re.fullmatch(r"[\w-]+", value)
    text: str = yaml.safe_dump(value, default_style='"' if is_phrase else None, allow_unicode=True, width=math.inf)
    return text.removesuffix("...\n").strip()
