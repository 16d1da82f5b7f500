"""Download logs of the catalogue from a mirror or the Parallel Workloads Archive, and check them."""

import contextlib
import hashlib
import io
import os
import re
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError, shell_word
from swflow.files.atomic import atomic_path
from swflow.files.reading import BOM, FILE, expanded, plain_text, read_content
from swflow.log.catalogue import Log, is_address
from swflow.log.swf import A_LOG, compress, parse_swf

#: Timeout of a connection, and of the next bytes of a response, seconds.
TIMEOUT = (4.0, 30.0)

#: Time limit for the download of a whole file from one address, seconds.
LONGEST_DOWNLOAD = 1800.0

#: Seconds before the first retry of a request; doubled for every further one.
BACK_OFF = 0.3


@dataclass(frozen=True)
class FetchReport:
    """The result of `fetch`: the address, the number of jobs, and the checksum of the decompressed text."""

    source: str
    jobs: int
    sha256: str


class _NotThere(Exception):
    """The file is missing at an address; it can exist at the next one."""


class _Unreachable(Exception):
    """A host does not respond; its other addresses are skipped."""


def fetch(
    log: Log,
    output: str | os.PathLike[str],
    mirror: str | os.PathLike[str] | None = None,
    *,
    retries: int = 3,
    progress: bool = False,
) -> FetchReport:
    """
    Download the file of a log, check it against the catalogue, and write it gzipped.

    The mirror is tried first: a folder, or a base URL (http, https, file), with the files of the archive, either in one
    folder or in the archive's folders (``l_kth_sp2/``). The log's address is next; a log with a ``path`` is copied from
    there. A file that differs from the catalogue (or, without a checksum there, whose number of jobs differs from its
    header) is an error at any address. A gzipped source is copied unchanged. Failed requests are repeated ``retries``
    times, with increasing pauses.
    """
    packed, report = _fetched(log, mirror, retries, progress)
    _write(output, packed)
    return report


def _write(output: str | os.PathLike[str], content: bytes) -> None:
    with atomic_path(output) as temporary:
        temporary.write_bytes(content)


def _fetched(
    log: Log, mirror: str | os.PathLike[str] | None, retries: int = 3, progress: bool = False
) -> tuple[bytes, FetchReport]:
    """Return the gzipped file of a log, checked against the catalogue."""
    if log.of is not None:
        raise SwflowError(f"{log.name}: a period of {log.of} has no file; fetch {log.of}")
    if log.path is not None and log.path.endswith(".parquet"):
        raise SwflowError(
            f"{log.name}: {log.path} is a local file; clean it directly: swflow clean {shell_word(log.path)}"
        )
    if log.generate is not None:
        raise SwflowError(f"{log.name}: a synthetic log has no file; create it with: swflow generate {log.generate}")
    content, source = _get(log, mirror, retries, progress and sys.stderr.isatty())
    text = plain_text(content, source, A_LOG)
    jobs, checksum = _check(log, text, source)
    return compress(text) if content is text else content, FetchReport(source, jobs, checksum)


def is_at_hand(log: Log, mirror: str | os.PathLike[str] | None = None) -> bool:
    """Return whether a log's file is available without the network: at its path, or in a mirror that is a folder."""
    places = (_local(address) for addresses in _places(log, mirror) for address in addresses)
    return any(place is not None and place.is_file() for place in places)


def reach(
    logs: Iterable[Log], folder: str | os.PathLike[str], mirror: str | os.PathLike[str] | None = None
) -> dict[str, str]:
    """
    Fetch the available logs to files ``{log}.swf.gz`` of a folder; ``mirror`` is as in `fetch`.

    A file that is present and agrees with the catalogue is kept. The result has the names of the logs that could not be
    fetched, sorted, each with the reason. A file that cannot be written is an error.
    """

    def attempt(log: Log) -> str:
        file = Path(folder) / f"{log.name}.swf.gz"
        with contextlib.suppress(SwflowError):  # missing, truncated, or another version: fetch it
            _check(log, plain_text(read_content(file), str(file), A_LOG), str(file))
            return ""
        try:
            content, _ = _fetched(log, mirror)
        except SwflowError as error:
            return str(error)
        _write(file, content)
        return ""

    wanted = sorted(logs, key=lambda log: log.name)
    with ThreadPoolExecutor(max_workers=4) as pool:
        reasons = pool.map(attempt, wanted)
        return {log.name: reason for log, reason in zip(wanted, reasons, strict=True) if reason}


def _get(log: Log, mirror: Any, retries: int, progress: bool) -> tuple[bytes, str]:
    """Return the content of the file, and its address."""
    tried: list[str] = []
    for addresses in _places(log, mirror):
        for address in addresses:
            try:
                return _read(address, retries, progress), address
            except (_NotThere, _Unreachable) as reason:
                tried.append(f"{address} ({reason})")
                if isinstance(reason, _Unreachable):
                    break
    if log.path is not None:
        raise SwflowError(f"{log.name}: {tried[0]}; correct its path in the catalogue")
    raise SwflowError(
        f"{log.name}: cannot be fetched; tried {', '.join(tried)}; "
        "give a mirror: --mirror DIR_OR_URL (Snakemake: --config mirror=DIR_OR_URL)"
    )


def _places(log: Log, mirror: Any) -> Iterator[list[str]]:
    """Return lists of addresses, each of one host or folder, in the order of trials."""
    if log.path is not None:
        yield [str(expanded(log.path))]
        return
    assert log.url is not None and log.file is not None
    if mirror is not None and str(mirror).strip():
        base = str(mirror).strip().rstrip("/") or "/"
        is_url = re.match(r"(https?|file)://", base)
        if not is_url:
            base = str(expanded(base))
        elif not is_address(base):
            raise SwflowError(f"mirror {mirror}: no address; expected a folder, or one such as https://HOST/FOLDER")
        folder = _local(base)
        if folder is not None and not folder.is_dir():
            raise SwflowError(f"mirror {mirror}: no such folder; correct it, or remove it to use the archive")
        parent = f"/{urllib.parse.urlsplit(log.url).path}".split("/")[-2]
        names = dict.fromkeys([log.file, log.file.removesuffix(".gz")])
        quote = urllib.parse.quote if is_url else str
        yield [f"{base}/{folder}{quote(name)}" for name in names for folder in ("", f"{parent}/" if parent else "./")]
    yield [log.url]


def _local(address: str) -> Path | None:
    """Return the local path of an address, or None for a network address."""
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
    """Download a file; retry requests that can succeed later."""
    import requests

    until = time.monotonic() + LONGEST_DOWNLOAD
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(BACK_OFF * 2 ** (attempt - 1))
        try:
            with _bar(url, progress) as bar:
                return _until(until, partial(_received, url, until, bar))
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            reason = f"HTTP {status}"
            if status < 500 and status not in (408, 429):
                raise _NotThere(reason) from None
        except requests.RequestException as error:
            reason = _network_reason(error)
            passing = (requests.Timeout, requests.ConnectionError, requests.exceptions.ChunkedEncodingError)
            if not isinstance(error, passing) or isinstance(error, requests.exceptions.SSLError):
                break
    raise _Unreachable(reason)


def _received(url: str, until: float, bar: Callable[..., None]) -> bytes:
    """Return the file at an address; raise an error above a limit of size or time."""
    import requests

    content = io.BytesIO()
    with requests.get(url, stream=True, timeout=TIMEOUT) as response:
        response.raise_for_status()
        bar(total=int(response.headers.get("content-length", 0)) or None)
        for block in response.iter_content(1 << 16):
            FILE.require(content.tell() + len(block), url)
            if time.monotonic() > until:
                raise _Unreachable(_TOO_LONG)
            content.write(block)
            bar(completed=content.tell())
    return content.getvalue()


_TOO_LONG = "the transfer took too long"


def _until(moment: float, function: Callable[[], bytes]) -> bytes:
    """Call a function with a time limit, in a thread: a server can send even its header slowly."""
    result: Future[bytes] = Future()

    def call() -> None:
        try:
            result.set_result(function())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    try:
        return result.result(max(0.0, moment - time.monotonic()))
    except TimeoutError:
        raise _Unreachable(_TOO_LONG) from None


def _network_reason(error: Exception) -> str:
    """Return a short reason of a network error; the messages of the library are long."""
    import requests

    kinds = {
        requests.Timeout: "no answer in time",
        requests.exceptions.SSLError: "its certificate is not accepted",
        requests.exceptions.ProxyError: "the proxy cannot be used",
    }
    marks = {
        "NameResolution": "the host's name cannot be resolved",
        "refused": "connection refused",
        "unreachable": "network unreachable",
        "IncompleteRead": "the transfer was interrupted",
    }
    reasons = [reason for kind, reason in kinds.items() if isinstance(error, kind)]
    reasons += [reason for mark, reason in marks.items() if mark in str(error)]
    return reasons[0] if reasons else f"connection failed: {type(error).__name__}"


@contextlib.contextmanager
def _bar(url: str, shown: bool) -> Iterator[Callable[..., None]]:
    """Return a function that updates a progress bar, or does nothing."""
    if not shown:
        yield lambda **_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield partial(bars.update, bars.add_task(url.rsplit("/", 1)[-1], total=None))


# --- checking ---------------------------------------------------------------------------------------------


def _check(log: Log, text: bytes, source: str) -> tuple[int, str]:
    """Check a file against the catalogue; return its number of job lines and its checksum."""
    checksum = hashlib.sha256(text).hexdigest()
    first, jobs = _job_lines(text)
    where = f"{log.name}: {source}"
    advice = "get the right version (a mirror with it: --mirror DIR_OR_URL), or correct the catalogue"
    if first.startswith(b"<"):
        raise SwflowError(f"{where}: a web page or XML, not a log in the Standard Workload Format; {advice}")
    if not jobs:
        raise SwflowError(f"{where}: no job lines; {advice}")
    if log.sha256 is not None and checksum != log.sha256:
        raise SwflowError(f"{where}: sha256 of the text is {checksum}, in the catalogue {log.sha256}; {advice}")
    if log.jobs is not None and jobs != log.jobs:
        raise SwflowError(f"{where}: {jobs} job lines, in the catalogue {log.jobs}; {advice}")
    if log.sha256 is None:
        _require_log(log, text, where, advice)
    return jobs, checksum


def _require_log(log: Log, text: bytes, where: str, advice: str) -> None:
    """
    Check a file without a checksum: all lines must be jobs, and their number must be that of the header.

    The header of a log that the archive cleaned has the number of jobs of the raw log; its notes have the number of
    removed jobs. Local files are not checked because users can shorten them. With ``clean: {lenient: true}``, lines
    can be malformed.
    """
    parsed = parse_swf(text, where, lenient=bool(log.clean.get("lenient")))
    if log.path is not None or log.jobs is not None:
        return
    stated = [number for key in ("MaxRecords", "MaxJobs") if (number := parsed.header.number(key)) is not None]
    notes = " ".join(parsed.header.get("Note", []))
    removed = sum(int(count) for count in re.findall(r"\(([0-9]{1,12}) jobs removed\)", notes))
    found = parsed.fields.height + len(parsed.skipped)
    if stated and found not in (*stated, *(number - removed for number in stated)):
        said = stated[0] - removed
        raise SwflowError(f"{where}: {found:,} job lines, but {said:,} in the header; {advice}")


def _job_lines(text: bytes) -> tuple[bytes, int]:
    """Return the first job line and the number of job lines, which are neither blank nor a comment."""
    lines = text.removeprefix(BOM).splitlines()
    jobs = [line for line in lines if line[:1].isdigit() or line.lstrip()[:1] not in (b"", b";", b"#")]
    return (jobs[0].strip() if jobs else b""), len(jobs)
