"""A project of one's own: the workflow that swflow carries, and a folder with a config that uses it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.logs import load_catalogue

#: What `init` writes that is the same in every project.
_FILES = Path(__file__).with_name("project_files")

#: The schedulers of the study, and one that a recorded log has besides: the site's own.
_SCHEDULERS = ("fcfs", "easy", "sjbf", "conservative", "mine")

#: Where accounting that was imported lies in a project.
_IMPORTED = "config/imported.parquet"

_EXAMPLE = {"generate": "lublin", "processors": 128, "jobs": 2000, "load": 0.8, "users": True}

_MY_LOGS = """\
# Your logs. A log takes a path (plain or gzipped text in the Standard Workload Format) and, if the file's header
# does not say it, the machine's processors; config/logs.yaml explains the other keys.
"""


def workflow_folder() -> Path:
    """
    Return the folder of the workflow: that of the clone, or the one that an installed package carries.

    Raises
    ------
    SwflowError
        If there is neither.
    """
    clone, shipped = Path(__file__).parents[2] / "workflow", Path(__file__).with_name("workflow")
    for folder in (shipped, clone):
        if (folder / "Snakefile").is_file():
            return folder
    raise SwflowError(f"{shipped}: no workflow there; install swflow again")


def init(
    folder: str | os.PathLike[str],
    *,
    log: str | os.PathLike[str] | None = None,
    name: str | None = None,
    processors: int | None = None,
) -> list[Path]:
    """
    Make a project: a Snakefile that uses the workflow of swflow, a config, and a catalogue for one's own logs.

    Parameters
    ----------
    folder : path-like
        Where; made if it is not there. Nothing in it is overwritten.
    log : path-like, optional
        A log of one's own to begin with, in the Standard Workload Format, imported (``.parquet``), or what
        ``sacct -P`` printed, which is imported into the project; a synthetic one otherwise.
    name : str, optional
        The log's name; by default the file's.
    processors : int, optional
        Processors of the log's machine; by default the file's header says it.

    Returns
    -------
    list of pathlib.Path
        The files.

    Raises
    ------
    SwflowError
        If one of the files is there, or there is no such log.
    """
    folder = Path(folder)
    entries: Mapping[str, Mapping[str, Any]] = {"example": _EXAMPLE}
    if log is not None:
        entries = {_name(Path(log), name): _entry(Path(log), processors)}
    load_catalogue(entries)  # a wrong name or number is refused before anything is written
    imported = None if log is None else _imported(Path(log), processors)
    if log is not None and imported is not None:
        entries = {_name(Path(log), name): {"path": _IMPORTED}}
    config = (_FILES / "config.yaml").read_text(encoding="utf-8")
    if log is not None:  # of a site whose jobs all ask for days, the other condition would leave none
        config = config.replace("estimate <= 3600", "run_time <= 3600")
    schedulers = ("log", *_SCHEDULERS) if log is not None else _SCHEDULERS
    config = config.replace("@LOG@", next(iter(entries))).replace("@SCHEDULERS@", ", ".join(schedulers))
    contents = {
        "Snakefile": (_FILES / "Snakefile").read_text(encoding="utf-8"),
        "config/config.yaml": config,
        "config/logs.yaml": shipped_catalogue().read_text(encoding="utf-8"),
        "config/my-logs.yaml": _MY_LOGS + yaml.safe_dump(entries, default_flow_style=None, sort_keys=False),
        "profiles/default/config.yaml": (_FILES / "profile.yaml").read_text(encoding="utf-8"),
        "profiles/slurm/config.yaml": (workflow_folder() / "profiles/slurm/config.yaml").read_text(encoding="utf-8"),
    }
    taken = [path for path in contents if (folder / path).exists()]
    if taken:
        raise SwflowError(f"{folder / taken[0]}: is there already; name a new folder")
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(folder / path) as temporary:
            Path(temporary).write_text(content, encoding="utf-8")
    if imported is not None:
        from swflow.log_table import write_log

        write_log(folder / _IMPORTED, imported.fields, imported.header, imported.history)
    return [folder / path for path in [*contents, *([_IMPORTED] if imported is not None else [])]]


def shipped_catalogue() -> Path:
    """Return the catalogue of logs that comes with swflow."""
    clone, shipped = Path(__file__).parents[2] / "config/logs.yaml", Path(__file__).with_name("catalogue.yaml")
    return shipped if shipped.is_file() else clone


def _imported(log: Path, processors: int | None) -> Any:
    """Return the log that Slurm's accounting is; None for a file that is a log."""
    from swflow.importers.sacct import import_sacct, is_accounting

    if log.suffix == ".parquet" or not is_accounting(log):
        return None
    from swflow.importers.records import Site

    return import_sacct(str(log), Site(processors))


def _name(log: Path, name: str | None) -> str:
    if name:
        return name
    return log.name.removesuffix(".gz").removesuffix(".swf").removesuffix(".parquet").removesuffix(".txt")


def _entry(log: Path, processors: int | None) -> dict[str, str | int]:
    if not log.is_file():
        raise SwflowError(f"{log}: no such file; name a log in the Standard Workload Format")
    return {"path": str(log.resolve())} | ({"processors": processors} if processors is not None else {})
