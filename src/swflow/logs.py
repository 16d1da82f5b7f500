"""The catalogue of logs, and fetching a log from a mirror or the Parallel Workloads Archive."""

import contextlib
import dataclasses
import hashlib
import io
import os
import re
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from swflow.errors import SwflowError, suggest
from swflow.files import atomic_path
from swflow.swf import LARGEST_FILE, compress, header_number, parse_moment, parse_swf, plain_text, read_content
from swflow.workloads.settings import check_clean, check_generator

#: Seconds to wait for a connection, and for the next bytes of an answer.
TIMEOUT = (4.0, 30.0)

#: Seconds that one address may take for a whole file, however it trickles.
LONGEST_DOWNLOAD = 1800.0

#: Seconds before the first repetition of a request; doubled for every further one.
BACK_OFF = 0.3


@dataclass(frozen=True)
class Log:
    """
    What the catalogue says of a log.

    Parameters
    ----------
    name : str
        The name that workloads take from it.
    file : str, optional
        The file's name at a mirror.
    url, path, of, generate : str, optional
        Exactly one of: the file's address, a local file, the log that this one is a period of, and the model
        that makes a synthetic log.
    processors, nodes : int, optional
        The machine.
    jobs : int, optional
        The file's job lines, or how many jobs to generate.
    sha256 : str, optional
        Checksum of the decompressed text.
    acknowledgement, citation : str, optional
        Whom to thank and what to cite.
    since, until : datetime.date or datetime.datetime, optional
        A period's first day or moment, and the one after its last (``from`` and ``until`` in the catalogue).
    parameters : dict
        A synthetic log's other keys: the model's parameters.
    clean : dict
        Settings of the cleaning.
    """

    name: str
    file: str | None = None
    url: str | None = None
    path: str | None = None
    of: str | None = None
    generate: str | None = None
    processors: int | None = None
    nodes: int | None = None
    jobs: int | None = None
    sha256: str | None = None
    acknowledgement: str | None = None
    citation: str | None = None
    since: date | None = None
    until: date | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    clean: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FetchReport:
    """
    What `fetch` did.

    Parameters
    ----------
    name : str
        The log.
    output : pathlib.Path
        The file that was written.
    source : str
        Where the log came from.
    jobs : int
        Its job lines.
    sha256 : str
        Checksum of its decompressed text.
    tried : tuple of str
        Addresses that did not have it, each with the reason.
    """

    name: str
    output: Path
    source: str
    jobs: int
    sha256: str
    tried: tuple[str, ...] = ()


# --- the catalogue ----------------------------------------------------------------------------------------

_SOURCES = ("url", "path", "generate", "of")
_TEXTS = ("file", *_SOURCES, "sha256", "acknowledgement", "citation")
_NUMBERS = ("processors", "nodes", "jobs")
_DATES = {"from": "since", "until": "until"}
_KEYS = (*_TEXTS, *_NUMBERS, *_DATES, "clean")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Source = str | os.PathLike[str] | Mapping[str, Any]


def load_catalogue(sources: Source | Iterable[Source]) -> dict[str, Log]:
    """
    Read and check catalogues of logs.

    Parameters
    ----------
    sources : path or mapping, or several
        YAML files, or their content. An entry replaces one of the same name in an earlier source.

    Returns
    -------
    dict
        Name to `Log`, in order.

    Raises
    ------
    SwflowError
        If a file is missing or no YAML, or an entry is wrong: its file, log and key are named.

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
        entries = source if is_mapping else _read_yaml(origin)
        for name, entry in entries.items():  # type: ignore[union-attr]
            log = _checked(name, entry, f"{origin}: {name}")
            logs[log.name] = log
            origins[log.name] = origin
    for log in logs.values():
        if log.of is not None:
            _check_parent(log, logs, f"{origins[log.name]}: {log.name}: of")
    return logs


def default_catalogue() -> Path:
    """Return the catalogue to use where none is named: the current folder's, else the project's."""
    here, project = Path("config/logs.yaml"), Path(__file__).parents[2] / "config/logs.yaml"
    shipped = Path(__file__).with_name("catalogue.yaml")  # where an installed package has it
    return next((path for path in (here, project, shipped) if path.is_file()), here)


def source_of(log: Log, catalogue: Mapping[str, Log]) -> Log:
    """
    Return the log whose file a log needs: a period's whole log, else the log itself.

    Examples
    --------
    >>> catalogue = load_catalogue({"A": {"path": "a.swf"}, "B": {"of": "A", "from": "1996-01-01"}})
    >>> source_of(catalogue["B"], catalogue).name
    'A'
    """
    return catalogue[log.of] if log.of is not None else log


def find_log(name: str, catalogue: Mapping[str, Log]) -> Log:
    """Return a log of the catalogue; `SwflowError` with the nearest name if it is not there."""
    if name not in catalogue:
        raise SwflowError(f"log {name!r} is not in the catalogue{suggest(name, catalogue)}")
    return catalogue[name]


def _read_yaml(path: str) -> Mapping[Any, Any]:
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _UniqueKeys)
    except OSError as error:
        raise SwflowError(f"{path}: cannot be read ({error.strerror}); it should be a catalogue of logs") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise SwflowError(f"{path}{line}: no valid YAML ({getattr(error, 'problem', None) or error})") from None
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise SwflowError(f"{path}: a catalogue is a mapping of names to logs, not a {type(content).__name__}")
    return content


class _UniqueKeys(yaml.SafeLoader):
    """A YAML loader for which a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen and isinstance(key, str):
                raise yaml.MarkedYAMLError(problem=f"{key} is given twice", problem_mark=key_node.start_mark)
            if isinstance(key, str):
                seen.add(key)
        return super().construct_mapping(node, deep)


def _checked(name: Any, entry: Any, where: str) -> Log:
    """Check an entry on its own, and make a `Log` of it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SwflowError(f"{where}: a log's name consists of letters, digits, '.', '_' and '-' (quote a number)")
    if not isinstance(entry, Mapping):
        raise SwflowError(f"{where}: a log is a mapping of keys such as path and processors, not {entry!r}")
    entry = {key: value for key, value in entry.items() if value is not None}
    given = [key for key in _SOURCES if key in entry]
    unknown = {key: value for key, value in entry.items() if key not in _KEYS}
    if unknown and given != ["generate"]:
        key = next(iter(unknown))
        raise SwflowError(f"{where}: unknown key {key!r}{suggest(str(key), _KEYS)}")
    if len(given) != 1:
        what = f"has {' and '.join(given)}" if given else "says not where it is"
        raise SwflowError(f"{where}: {what}; give exactly one of {', '.join(_SOURCES)}")
    values: dict[str, Any] = {key: _text(entry[key], f"{where}: {key}") for key in _TEXTS if key in entry}
    values |= {key: _count(entry[key], f"{where}: {key}") for key in _NUMBERS if key in entry}
    values |= {name: parse_moment(entry[key], f"{where}: {key}") for key, name in _DATES.items() if key in entry}
    clean = check_clean(entry.get("clean", {}), f"{where}: clean")
    if "generate" in values:
        check_generator(values["generate"], unknown, where)
    log = Log(name=name, **values, parameters=unknown, clean=clean)
    _check_machine(log, where)
    _check_period(log, where)
    if log.sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", log.sha256):
        raise SwflowError(f"{where}: sha256: must be 64 hexadecimal digits (zcat FILE | sha256sum)")
    if log.url is not None and not re.match(r"(https?|file)://", log.url):
        raise SwflowError(f"{where}: url: must start with http://, https:// or file://; use path for a local file")
    if log.url is not None and log.file is None:
        log = dataclasses.replace(log, file=urllib.parse.unquote(urllib.parse.urlsplit(log.url).path).split("/")[-1])
    if log.path is not None and log.path.endswith(".parquet") and (log.sha256 or log.jobs):
        raise SwflowError(f"{where}: sha256 and jobs are those of a text; leave them out for an imported log")
    if log.file is not None and (not log.file or "/" in log.file):
        raise SwflowError(f"{where}: file: must be a file's name without a folder, not {log.file!r}")
    return log


def _check_machine(log: Log, where: str) -> None:
    if log.nodes is not None and (log.processors is None or log.processors % log.nodes):
        raise SwflowError(f"{where}: nodes: {log.nodes} must divide processors ({log.processors}); leave it out if not")
    if log.generate is not None and log.processors is None:
        raise SwflowError(f"{where}: processors: a synthetic log needs a machine; give processors")


def _check_period(log: Log, where: str) -> None:
    if log.of is None:
        if log.since or log.until:
            raise SwflowError(f"{where}: from and until belong to a period; give of: LOG in an entry of its own")
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
        raise SwflowError(f"{where}: {log.of} is a period itself; give the log that it is of, {parent.of}")
    if parent.generate is not None:
        raise SwflowError(f"{where}: {log.of} is synthetic and has no dates; take the first jobs of it instead")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SwflowError(f"{where}: must be text, not {value!r}")
    if any((ord(letter) < 32 and letter != "\n") or ord(letter) == 127 for letter in value.strip()):
        raise SwflowError(f"{where}: has characters that are no text: {value!r}")
    return value.strip()


def _count(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SwflowError(f"{where}: must be a whole number of at least 1, not {value!r}")
    return value


# --- fetching ---------------------------------------------------------------------------------------------


class _NotThere(Exception):
    """An address does not have the file; its neighbours may."""


class _Unreachable(Exception):
    """A host does not answer; its other addresses need not be tried."""


def fetch(
    log: Log,
    output: str | os.PathLike[str],
    mirror: str | os.PathLike[str] | None = None,
    *,
    retries: int = 3,
    progress: bool = False,
) -> FetchReport:
    """
    Get a log's file, check it against the catalogue, and write it gzipped.

    The mirror comes first, then the log's own address. A file that is found but is not what the catalogue
    says is an error, wherever it lies.

    Parameters
    ----------
    log : Log
        What to get; one with a ``path`` is taken from there.
    output : path-like
        The gzipped file to write, atomically. A gzipped source keeps its bytes.
    mirror : str or path-like, optional
        A folder, or a base URL (http, https, file), with the files of the archive, all in one folder or in
        the archive's folders (``l_kth_sp2/``).
    retries : int
        How often a request that failed is repeated, after growing pauses.
    progress : bool
        Show a progress bar, if standard error is a terminal.

    Returns
    -------
    FetchReport
        Where it came from, and what it is.

    Raises
    ------
    SwflowError
        If no address has the file, it is larger or slower than any log, it is no log in the Standard Workload Format,
        or checksum or number of jobs differ from the catalogue's (without a checksum there: from the file's header).
    """
    if log.of is not None:
        raise SwflowError(f"{log.name}: a period of {log.of} has no file of its own; fetch {log.of}")
    if log.path is not None and log.path.endswith(".parquet"):
        raise SwflowError(f"{log.name}: {log.path} needs no fetching; clean it as it is: swflow clean {log.path}")
    if log.generate is not None:
        raise SwflowError(f"{log.name}: a synthetic log is not fetched; make it with: swflow generate {log.generate}")
    content, source, tried = _get(log, mirror, retries, progress and sys.stderr.isatty())
    text = plain_text(content, source)
    jobs, checksum = _check(log, text, source)
    with atomic_path(output) as temporary:
        temporary.write_bytes(compress(text) if content is text else content)
    return FetchReport(log.name, Path(output), source, jobs, checksum, tuple(tried))


def is_at_hand(log: Log, mirror: str | os.PathLike[str] | None = None) -> bool:
    """
    Say whether a log's file is got without the network: from its path, or from a mirror that is a folder.

    Parameters
    ----------
    log : Log
        An entry of the catalogue that has a file.
    mirror : str or path-like, optional
        As for `fetch`.

    Raises
    ------
    SwflowError
        If the mirror is a folder that does not exist.
    """
    places = (_local(address) for addresses in _places(log, mirror) for address in addresses)
    return any(place is not None and place.is_file() for place in places)


def reach(
    logs: Iterable[Log], folder: str | os.PathLike[str], mirror: str | os.PathLike[str] | None = None
) -> dict[str, str]:
    """
    Try to fetch logs that may not be found, and go on without those.

    Parameters
    ----------
    logs : iterable of Log
        What to get.
    folder : path-like
        Where ``{log}.swf.gz`` goes; a file that is there, and is what the catalogue says, is kept.
    mirror : str or path-like, optional
        As for `fetch`.

    Returns
    -------
    dict
        The names of the logs that could not be fetched, each with the reason, sorted.
    """

    def attempt(log: Log) -> str | None:
        file = Path(folder) / f"{log.name}.swf.gz"
        try:
            if file.is_file():
                try:
                    _check(log, plain_text(file.read_bytes(), str(file)), str(file))
                    return None
                except SwflowError:
                    pass  # cut short, or of another version: fetched again
            fetch(log, file, mirror)
        except SwflowError as error:
            return str(error)
        return None

    from concurrent.futures import ThreadPoolExecutor

    wanted = sorted(logs, key=lambda log: log.name)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return {
            log.name: reason
            for log, reason in zip(wanted, pool.map(attempt, wanted), strict=True)
            if reason is not None
        }


def _get(log: Log, mirror: Any, retries: int, progress: bool) -> tuple[bytes, str, list[str]]:
    """Return the file's content, its address, and the addresses tried before."""
    tried: list[str] = []
    for addresses in _places(log, mirror):
        for address in addresses:
            try:
                return _read(address, retries, progress), address, tried
            except _NotThere as reason:
                tried.append(f"{address} ({reason})")
            except _Unreachable as reason:
                tried.append(f"{address} ({reason})")
                break
    if log.path is not None:
        raise SwflowError(f"{log.name}: {tried[0]}; correct its path in the catalogue")
    raise SwflowError(
        f"{log.name}: cannot be fetched; tried {', '.join(tried)}; "
        "give a mirror: --mirror DIR_OR_URL (Snakemake: --config mirror=DIR_OR_URL)"
    )


def _places(log: Log, mirror: Any) -> Iterator[list[str]]:
    """Give lists of addresses, each list of one host or folder, in the order to be tried."""
    if log.path is not None:
        yield [str(Path(log.path).expanduser())]
        return
    assert log.url is not None and log.file is not None
    if mirror is not None and str(mirror).strip():
        base = str(mirror).strip().rstrip("/") or "/"
        is_url = re.match(r"(https?|file)://", base)
        if not is_url:
            base = str(Path(base).expanduser())
        folder = _local(base)
        if folder is not None and not folder.is_dir():
            raise SwflowError(f"mirror {mirror}: no such folder; correct it, or leave it out to use the archive")
        parent = urllib.parse.urlsplit(log.url).path.split("/")[-2]
        names = dict.fromkeys([log.file, log.file.removesuffix(".gz")])
        quote = urllib.parse.quote if is_url else str
        yield [f"{base}/{folder}{quote(name)}" for name in names for folder in ("", f"{parent}/" if parent else "./")]
    yield [log.url]


def _local(address: str) -> Path | None:
    """Return the file or folder of an address, or None if it is on the network."""
    if address.startswith("file://"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(address).path))
    return None if re.match(r"https?://", address) else Path(address)


def _read(address: str, retries: int, progress: bool) -> bytes:
    path = _local(address)
    if path is None:
        return _download(address, retries, progress)
    try:
        return read_content(path)
    except SwflowError as error:
        raise _NotThere(str(error).removeprefix(f"{path}: ")) from None


def _download(url: str, retries: int, progress: bool) -> bytes:
    """Download with pooch; requests that may succeed later are repeated."""
    import pooch
    import requests

    until = time.monotonic() + LONGEST_DOWNLOAD
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(BACK_OFF * 2 ** (attempt - 1))
        content = _Limited(url, until)
        try:
            with _bar(url, progress) as bar:
                download = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 16, timeout=TIMEOUT)
                _until(until, partial(download, url, content, None))
            return content.getvalue()
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            reason = f"HTTP {status}"
            if status < 500 and status not in (408, 429):
                raise _NotThere(reason) from None
        except (
            requests.Timeout,
            requests.ConnectionError,
            requests.exceptions.ChunkedEncodingError,
        ) as error:
            reason = _network_reason(error)
            if isinstance(error, requests.exceptions.SSLError):
                break
        except requests.RequestException as error:
            reason = _network_reason(error)
            break
    raise _Unreachable(reason)


class _Limited(io.BytesIO):
    """What is downloaded: no larger than a log may be, and no later than its time is up."""

    def __init__(self, url: str, until: float) -> None:
        super().__init__()
        self._url, self._until = url, until

    def write(self, block: Any) -> int:
        """Take the next bytes, or raise an error."""
        if self.tell() + len(block) > LARGEST_FILE:
            raise SwflowError(
                f"{self._url}: sends more than {LARGEST_FILE:,} bytes; no log is as large; correct the url"
            )
        if time.monotonic() > self._until:
            raise _Unreachable(_TOO_LONG)
        return super().write(block)


_TOO_LONG = "the transfer took too long"


def _until(moment: float, function: Callable[[], None]) -> None:
    """Call a function, and leave it alone if it is not done in time: a server may trickle even its header."""
    errors: list[BaseException] = []

    def call() -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(max(0.0, moment - time.monotonic()))
    if errors:
        raise errors[0]
    if thread.is_alive():
        raise _Unreachable(_TOO_LONG)


def _network_reason(error: Exception) -> str:
    """Say in a few words what went wrong: the library's texts are long."""
    import requests

    text = str(error)
    known = {
        "NameResolution": "the host's name cannot be resolved",
        "refused": "connection refused",
        "unreachable": "network unreachable",
        "IncompleteRead": "the transfer broke off",
    }
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not accepted"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy cannot be used"
    for mark, reason in known.items():
        if mark in text:
            return reason
    return f"connection failed: {type(error).__name__}"


@contextlib.contextmanager
def _bar(url: str, shown: bool) -> Iterator[Any]:
    """Give a progress bar for pooch, or False."""
    if not shown:
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield _PoochBar(bars, bars.add_task(url.rsplit("/", 1)[-1], total=None))


class _PoochBar:
    """A rich progress bar with the methods that pooch calls."""

    def __init__(self, bars: Any, task: Any) -> None:
        self._bars, self._task = bars, task

    @property
    def total(self) -> float | None:
        """Bytes to come, as the server says."""
        return self._bars.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:
        self._bars.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        self._bars.advance(self._task, size)

    def reset(self) -> None:
        self._bars.update(self._task, completed=0)

    def close(self) -> None:
        self._bars.stop()


# --- checking ---------------------------------------------------------------------------------------------


def _check(log: Log, text: bytes, source: str) -> tuple[int, str]:
    """Compare a file with the catalogue; return its job lines and checksum."""
    checksum = hashlib.sha256(text).hexdigest()
    first, jobs = _job_lines(text)
    where = f"{log.name}: {source}"
    advice = "get the right version (a mirror with it: --mirror DIR_OR_URL), or correct the catalogue"
    if first.startswith(b"<"):
        raise SwflowError(f"{where}: a web page or XML, not a log in the Standard Workload Format; {advice}")
    if not jobs:
        raise SwflowError(f"{where}: no job lines, so it is no log; {advice}")
    if log.sha256 is not None and checksum != log.sha256:
        raise SwflowError(f"{where}: the text has sha256 {checksum}, the catalogue says {log.sha256}; {advice}")
    if log.jobs is not None and jobs != log.jobs:
        raise SwflowError(f"{where}: {jobs} job lines, but the catalogue says {log.jobs}; {advice}")
    if log.sha256 is None:
        _require_log(log, text, where, advice)
    return jobs, checksum


def _require_log(log: Log, text: bytes, where: str, advice: str) -> None:
    """
    Require of a file without a checksum that all lines are jobs and that it is as long as its header says.

    The header of a log that the archive cleaned has the jobs of the raw one, and says in its notes how many were
    removed. A local file is the user's own, who may have shortened it; and with ``clean: {lenient: true}`` lines may be
    malformed.
    """
    parsed = parse_swf(text, where, lenient=bool(log.clean.get("lenient")))
    if log.path is not None or log.jobs is not None:
        return
    stated = [number for key in ("MaxRecords", "MaxJobs") if (number := header_number(parsed.header, key)) is not None]
    notes = " ".join(parsed.header.get("Note", []))
    removed = sum(int(count) for count in re.findall(r"\((\d{1,12}) jobs removed\)", notes))
    found = parsed.fields.height + len(parsed.skipped)
    if stated and found not in (*stated, *(number - removed for number in stated)):
        said = stated[0] - removed
        raise SwflowError(
            f"{where}: {found:,} job lines, but its header says {said:,}, so it is cut or changed; {advice}"
        )


def _job_lines(text: bytes) -> tuple[bytes, int]:
    """Return the first job line, and how many there are: lines that are neither blank nor a comment."""
    lines = text.removeprefix(b"\xef\xbb\xbf").splitlines()
    jobs = [line for line in lines if line[:1].isdigit() or (line.strip() and not line.lstrip().startswith(b";"))]
    return (jobs[0].strip() if jobs else b""), len(jobs)
