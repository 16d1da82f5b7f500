"""The catalogue of logs: its entries, which name the files of logs and settings for cleaning them."""

import dataclasses
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError, require_known, shown, suggest
from swflow.files.yaml import read_yaml
from swflow.log.settings import check_clean, check_generator
from swflow.values import day_or_moment, text, whole_number


@dataclass(frozen=True)
class Log:
    """An entry of the catalogue; exactly one of ``url``, ``path``, ``of`` and ``generate`` is given."""

    name: str
    file: str | None = None  # its name at a mirror
    url: str | None = None
    path: str | None = None  # a local file
    of: str | None = None  # the log of which this one is a period
    generate: str | None = None  # the model of a synthetic log
    processors: int | None = None
    nodes: int | None = None
    jobs: int | None = None  # job lines of the file, or jobs to generate
    sha256: str | None = None  # checksum of the decompressed text
    acknowledgement: str | None = None  # which the log requires
    citation: str | None = None
    since: date | None = None  # first day or moment of a period: `from` in the catalogue
    until: date | None = None  # first day or moment after a period
    parameters: dict[str, Any] = field(default_factory=dict)  # parameters of the model of a synthetic log
    clean: dict[str, Any] = field(default_factory=dict)  # settings for cleaning


_SOURCES = ("url", "path", "generate", "of")
_TEXTS = ("file", *_SOURCES, "sha256", "acknowledgement", "citation")
_NUMBERS = ("processors", "nodes", "jobs")
_DATES = {"from": "since", "until": "until"}
_KEYS = (*_TEXTS, *_NUMBERS, *_DATES, "clean")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Source = str | os.PathLike[str] | Mapping[str, Any]


def is_address(text: str) -> bool:
    """Return whether a text is an address of http, https or file."""
    try:
        urllib.parse.urlsplit(text).port  # noqa: B018  a wrong host or port raises an error
    except ValueError:
        return False
    return re.match(r"(https?|file)://", text) is not None


def load_catalogue(sources: Source | Iterable[Source]) -> dict[str, Log]:
    """
    Read and check catalogues of logs: YAML files, or their content; return the logs by name, in order.

    An entry replaces an earlier entry with the same name. Errors name the file, log and key.

    Examples
    --------
    >>> catalogue = load_catalogue({"synthetic-128": {"generate": "lublin", "processors": 128, "jobs": 5000}})
    >>> catalogue["synthetic-128"].processors
    128
    """
    if isinstance(sources, str | os.PathLike | Mapping):
        sources = [sources]
    logs: dict[str, Log] = {}
    origins: dict[str, str] = {}
    for source in sources:
        is_mapping = isinstance(source, Mapping)
        origin = "catalogue" if is_mapping else os.fspath(source)  # type: ignore[arg-type]
        entries = source if is_mapping else _read_entries(origin)
        for name, entry in entries.items():  # type: ignore[union-attr]
            log = _checked(name, entry, f"{origin}: {name}")
            logs[log.name] = log
            origins[log.name] = origin
    for log in logs.values():
        if log.of is not None:
            _check_parent(log, logs, f"{origins[log.name]}: {log.name}: of")
    return logs


def default_catalogue() -> Path:
    """Return the default catalogue: that of the current folder, else that of swflow."""
    here = Path("config/logs.yaml")
    return here if here.is_file() else shipped_catalogue()


def shipped_catalogue() -> Path:
    """Return the catalogue of logs that is part of swflow: in an installed package, else in the clone."""
    shipped, clone = Path(__file__).parents[1] / "catalogue.yaml", Path(__file__).parents[3] / "config/logs.yaml"
    return shipped if shipped.is_file() else clone


def source_of(log: Log, catalogue: Mapping[str, Log]) -> Log:
    """
    Return the log that provides the file of a log: for a period the whole log, else the log itself.

    Examples
    --------
    >>> catalogue = load_catalogue({"A": {"path": "a.swf"}, "B": {"of": "A", "from": "1996-01-01"}})
    >>> source_of(catalogue["B"], catalogue).name
    'A'
    """
    return catalogue[log.of] if log.of is not None else log


def find_log(name: str, catalogue: Mapping[str, Log]) -> Log:
    """Return a log of the catalogue; raise `SwflowError` with the nearest name if it is missing."""
    if name not in catalogue:
        raise SwflowError(f"log {name!r} is not in the catalogue{suggest(name, catalogue)}")
    return catalogue[name]


def _read_entries(path: str) -> Mapping[Any, Any]:
    content = read_yaml(path)
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise SwflowError(f"{path}: a {type(content).__name__}; expected a mapping of names to logs")
    return content


def _checked(name: Any, entry: Any, where: str) -> Log:
    """Check an entry independently of others, and convert it to a `Log`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SwflowError(f"{where}: a log name must consist of letters, digits, '.', '_' and '-' (quote a number)")
    if not isinstance(entry, Mapping):
        raise SwflowError(f"{where}: {shown(entry)}; expected a mapping of keys such as path and processors")
    entry = {key: value for key, value in entry.items() if value is not None}
    given = [key for key in _SOURCES if key in entry]
    unknown = {key: value for key, value in entry.items() if key not in _KEYS}
    if given != ["generate"]:
        require_known(unknown, _KEYS, where)
    if len(given) != 1:
        what = f"has {' and '.join(given)}" if given else "no source"
        raise SwflowError(f"{where}: {what}; give exactly one of {', '.join(_SOURCES)}")
    values: dict[str, Any] = {key: _entry_text(entry[key], f"{where}: {key}") for key in _TEXTS if key in entry}
    values |= {key: whole_number(entry[key], f"{where}: {key}", least=1) for key in _NUMBERS if key in entry}
    values |= {name: day_or_moment(entry[key], f"{where}: {key}") for key, name in _DATES.items() if key in entry}
    clean = check_clean(entry.get("clean", {}), f"{where}: clean")
    if "generate" in values:
        check_generator(values["generate"], unknown, where)
    log = Log(name=name, **values, parameters=unknown, clean=clean)
    if log.nodes is not None and (log.processors is None or log.processors % log.nodes):
        raise SwflowError(f"{where}: nodes: {log.nodes} must divide processors ({log.processors}); or remove it")
    if log.generate is not None and log.processors is None:
        raise SwflowError(f"{where}: processors: a synthetic log needs a machine; give processors")
    _check_period(log, where)
    if log.sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", log.sha256):
        raise SwflowError(f"{where}: sha256: {log.sha256!r}; expected 64 hexadecimal digits (zcat FILE | sha256sum)")
    if log.url is not None and not is_address(log.url):
        raise SwflowError(f"{where}: url: {shown(log.url)}; expected http://, https:// or file://; or give path")
    if log.url is not None and log.file is None:
        log = dataclasses.replace(log, file=urllib.parse.unquote(urllib.parse.urlsplit(log.url).path).split("/")[-1])
    if log.path is not None and log.path.endswith(".parquet") and (log.sha256 or log.jobs):
        raise SwflowError(f"{where}: sha256 and jobs apply to text only; remove them for an imported log")
    if log.file is not None and (not log.file or "/" in log.file):
        raise SwflowError(f"{where}: file: {log.file!r}; expected a file name without a folder")
    return log


def _check_period(log: Log, where: str) -> None:
    if log.of is None:
        if log.since or log.until:
            raise SwflowError(f"{where}: from and until need of: LOG; add an entry for the period")
    elif log.since is None and log.until is None:
        raise SwflowError(f"{where}: a period of {log.of} needs from, until or both")
    elif log.since and log.until and str(log.since) >= str(log.until):
        raise SwflowError(f"{where}: from {log.since} is not before until {log.until}")


def _check_parent(log: Log, logs: Mapping[str, Log], where: str) -> None:
    assert log.of is not None
    if log.of not in logs:
        raise SwflowError(f"{where}: no log {log.of!r} in the catalogue{suggest(log.of, logs)}")
    parent = logs[log.of]
    if parent.of is not None:
        raise SwflowError(f"{where}: {log.of} is a period; give its log, {parent.of}")
    if parent.generate is not None:
        raise SwflowError(f"{where}: {log.of} is synthetic and has no dates; select its first jobs instead")


def _entry_text(value: Any, where: str) -> str:
    """Return a text of an entry, in which only line breaks are permitted besides printable characters."""
    if not isinstance(value, str) or not value.strip():
        raise SwflowError(f"{where}: {shown(value)}; expected text")
    for line in value.strip().split("\n"):
        text(line, where)
    return value.strip()
