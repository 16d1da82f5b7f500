"""Tests of the catalogue of logs, and of downloads from folders, failing servers, and missing servers."""

import contextlib
import gzip
import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.files import reading
from swflow.jobs.conditions import condition
from swflow.jobs.table import JOB_COLUMNS
from swflow.log import fetch as logs
from swflow.log.catalogue import Log, find_log, load_catalogue, source_of
from swflow.log.fetch import fetch
from swflow.log.swf import read_swf
from swflow.values import Limit

CATALOGUE = Path(__file__).parents[2] / "config" / "logs.yaml"
REST = b" -1 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1\n"
TEXT = b"; MaxProcs: 8\n1 0" + REST + b"\n2 5" + REST
SUM = hashlib.sha256(TEXT).hexdigest()
PACKED = gzip.compress(TEXT, mtime=5)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "BACK_OFF", 0.001)


@pytest.fixture
def closed() -> str:
    """Return a base URL without a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


class Server(ThreadingHTTPServer):
    """A server of files in a dictionary; the first ``failures`` requests get an error."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.failures = 0
        self.truncated = 0
        self.status = 503
        self.requests: list[str] = []
        self.base = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """The request handler of a `Server`."""

    def do_GET(self) -> None:
        """Send a file, or the configured error."""
        server = self.server
        assert isinstance(server, Server)
        server.requests.append(self.path)
        if len(server.requests) <= server.failures:
            self.send_error(server.status)
        elif self.path not in server.files:
            self.send_error(404)
        else:
            content = server.files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:10] if len(server.requests) <= server.truncated else content)

    def log_message(self, *_: object) -> None:
        """Suppress log messages."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def the_log(base: str, **changes: object) -> Log:
    return Log(**({"name": "TINY", "file": "T-1.swf.gz", "url": f"{base}/l_tiny/T-1.swf.gz"} | changes))  # type: ignore[arg-type]


# --- fetching ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place", ["/mirror/T-1.swf.gz", "/mirror/l_tiny/T-1.swf.gz", "/mirror/T-1.swf", "/l_tiny/T-1.swf.gz"]
)
def test_the_mirror_is_tried_before_the_archive(server: Server, tmp_path: Path, place: str):
    server.files[place] = TEXT if place.endswith(".swf") else PACKED
    output = tmp_path / "new" / "tiny.swf.gz"
    report = fetch(the_log(server.base, sha256=SUM, jobs=2), output, f"{server.base}/mirror/")
    assert report.source == server.base + place
    assert (report.jobs, report.sha256) == (2, SUM)
    assert gzip.decompress(output.read_bytes()) == TEXT


def test_comments_of_both_kinds_are_no_jobs(tmp_path: Path):
    file = tmp_path / "a.swf"
    file.write_text("# written elsewhere\n ; MaxProcs: 8\n\n1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1\n  # end\n")
    log = Log(name="TINY", path=str(file), jobs=1)
    assert fetch(log, tmp_path / "a.swf.gz").jobs == read_swf(file).fields.height == 1


@pytest.mark.parametrize("kind", ["failures", "truncated"])
def test_temporary_failures_are_retried(server: Server, tmp_path: Path, kind: str):
    server.files["/T-1.swf.gz"] = PACKED
    setattr(server, kind, 2)
    report = fetch(the_log(server.base), tmp_path / "a.gz", server.base, retries=2)
    assert report.source == f"{server.base}/T-1.swf.gz" and len(server.requests) == 3
    server.requests.clear()
    with pytest.raises(SwflowError, match=r"TINY: cannot be fetched.*(HTTP 503|interrupted)"):
        fetch(the_log(server.base), tmp_path / "b.gz", server.base, retries=1)
    assert len(server.requests) == 3 and not (tmp_path / "b.gz").exists()


def test_a_missing_file_is_not_retried(server: Server, tmp_path: Path):
    with pytest.raises(SwflowError, match=r"T-1\.swf\.gz \(HTTP 404\); give a mirror: --mirror"):
        fetch(the_log(server.base), tmp_path / "a.gz")
    assert len(server.requests) == 1


def test_a_folder_as_mirror(tmp_path: Path, closed: str):
    mirror = tmp_path / "my mirror"
    (mirror / "l_tiny").mkdir(parents=True)
    (mirror / "l_tiny" / "T-1.swf.gz").write_bytes(PACKED)
    for place in (mirror, str(mirror) + "/", mirror.as_uri()):
        report = fetch(the_log(closed), tmp_path / "a.swf.gz", place)
        assert report.source.endswith("T-1.swf.gz") and report.jobs == 2
        assert (tmp_path / "a.swf.gz").read_bytes() == PACKED
    with pytest.raises(SwflowError, match="no such folder"):
        fetch(the_log(closed), tmp_path / "a.swf.gz", tmp_path / "typo")


def test_plain_text_is_compressed_to_the_same_bytes(tmp_path: Path):
    (tmp_path / "t.swf").write_bytes(TEXT)
    for name in ("a.gz", "b.gz"):
        fetch(Log("TINY", path=str(tmp_path / "t.swf")), tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == TEXT


def test_a_path_is_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "t.swf").write_bytes(TEXT)
    monkeypatch.chdir(tmp_path)
    assert fetch(Log("TINY", path="t.swf"), "a.gz").jobs == 2
    with pytest.raises(SwflowError, match=r"TINY: u\.swf \(no such file\); correct its path"):
        fetch(Log("TINY", path="u.swf"), "a.gz")


@pytest.mark.parametrize(
    ("content", "expected", "parts"),
    [
        (PACKED, {"sha256": "0" * 64}, [SUM, "0" * 64, "mirror"]),
        (PACKED, {"jobs": 3}, ["2 job lines", "catalogue 3"]),
        (b"<html>captive portal</html>", {"sha256": SUM}, ["a web page"]),
        (b"; nothing\n", {}, ["no job lines"]),
        (PACKED[:-10], {}, ["truncated"]),
        (b"\0\1\2", {}, ["binary"]),
    ],
)
def test_a_wrong_copy_is_an_error_and_leaves_no_file(
    server: Server, tmp_path: Path, content: bytes, expected: dict, parts: list[str]
):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "T-1.swf.gz").write_bytes(content)
    server.files["/l_tiny/T-1.swf.gz"] = PACKED  # the archive's copy must not hide the mirror's
    with pytest.raises(SwflowError) as caught:
        fetch(the_log(server.base, **expected), tmp_path / "out" / "a.gz", mirror)
    message = str(caught.value)
    assert "\n" not in message and str(mirror / "T-1.swf.gz") in message
    assert all(part in message for part in parts)
    assert not server.requests and not (tmp_path / "out").exists()


def test_an_older_output_survives_a_failure(tmp_path: Path, closed: str):
    (tmp_path / "a.gz").write_bytes(b"old")
    with pytest.raises(SwflowError):
        fetch(the_log(closed), tmp_path / "a.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["a.gz"]


def test_the_error_names_all_addresses_tried(tmp_path: Path, closed: str):
    with pytest.raises(SwflowError) as caught:
        fetch(the_log(closed), tmp_path / "a.gz", f"{closed}/mirror")
    message = str(caught.value)
    assert "\n" not in message
    assert message.count("connection refused") == 2  # one address per host is enough
    assert f"{closed}/mirror/T-1.swf.gz" in message and f"{closed}/l_tiny/T-1.swf.gz" in message
    assert "--mirror DIR_OR_URL" in message and "--config mirror=" in message


def test_a_name_that_does_not_resolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(SwflowError, match="the host's name cannot be resolved"):
        fetch(the_log("http://nowhere.invalid"), tmp_path / "a.gz", retries=1)


def test_periods_and_synthetic_logs_are_not_fetched(tmp_path: Path):
    catalogue = load_catalogue(
        {
            "A": {"path": "a.swf"},
            "A-1996": {"of": "A", "from": "1996-01-01"},
            "S": {"generate": "lublin", "processors": 128, "jobs": 50, "load": 0.7},
        }
    )
    with pytest.raises(SwflowError, match="fetch A"):
        fetch(catalogue["A-1996"], tmp_path / "x.gz")
    with pytest.raises(SwflowError, match="swflow generate lublin"):
        fetch(catalogue["S"], tmp_path / "x.gz")
    assert source_of(catalogue["A-1996"], catalogue) is catalogue["A"]
    assert source_of(catalogue["A"], catalogue) is catalogue["A"]


def test_a_progress_bar_on_a_terminal(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    server.files["/l_tiny/T-1.swf.gz"] = PACKED
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert fetch(the_log(server.base), tmp_path / "a.gz", progress=True).jobs == 2
    assert capsys.readouterr().out == ""


ALMOST = b"; MaxRecords: 2\n1 0" + REST


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"Not Found", "1: 2 fields instead of 18"),
        (b"Not Found\n" * 30, "1: 2 fields instead of 18"),
        (TEXT[:-10], "4: 15 fields instead of 18"),
        (TEXT + b"<html>", "5: 1 fields instead of 18"),
        (ALMOST, "1 job lines, but 2 in the header"),
        (b"; MaxJobs: 9\n; Note: x\n;   a (6 jobs removed)\n1 0" + REST, "1 job lines, but 3 in the header"),
        (b'{"error": 404}', "1: 2 fields instead of 18"),
    ],
)
def test_without_a_checksum_the_file_must_agree_with_its_header(
    server: Server, tmp_path: Path, content: bytes, part: str
):
    server.files["/l_tiny/T-1.swf.gz"] = content
    with pytest.raises(SwflowError) as caught:
        fetch(the_log(server.base), tmp_path / "out" / "a.gz")
    assert part in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "head",
    [b"; MaxRecords: 1\n", b"; MaxJobs: 1\n; MaxRecords: 7\n", b"; MaxJobs: 4\n; Note: a (3 jobs removed)\n", b""],
)
def test_headers_that_fit_their_logs(server: Server, tmp_path: Path, head: bytes):
    server.files["/l_tiny/T-1.swf.gz"] = head + b"1 0" + REST
    assert fetch(the_log(server.base), tmp_path / "a.gz").jobs == 1


def test_a_local_log_can_be_shorter_than_its_header_states(tmp_path: Path):
    (tmp_path / "t.swf").write_bytes(ALMOST)
    assert fetch(Log("TINY", path=str(tmp_path / "t.swf")), tmp_path / "a.gz").jobs == 1
    (tmp_path / "t.swf").write_bytes(ALMOST + b"bad line\n")
    assert fetch(Log("TINY", path=str(tmp_path / "t.swf"), clean={"lenient": True}), tmp_path / "a.gz").jobs == 2
    with pytest.raises(SwflowError, match="3: 2 fields"):
        fetch(Log("TINY", path=str(tmp_path / "t.swf")), tmp_path / "a.gz")


def test_a_decompression_bomb_is_rejected_early(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "PACKED_SIZE", 1 << 20)
    server.files["/l_tiny/T-1.swf.gz"] = gzip.compress(TEXT + b" " * (1 << 24))
    with pytest.raises(SwflowError, match="bytes decompress to more than"):
        fetch(the_log(server.base), tmp_path / "a.gz")
    monkeypatch.setattr(logs, "FILE", Limit(1000, "bytes"))
    server.files["/l_tiny/T-1.swf.gz"] = TEXT * 100
    with pytest.raises(SwflowError, match="more than 1,000 bytes"):
        fetch(the_log(server.base), tmp_path / "a.gz")
    with pytest.raises(SwflowError, match=r"/dev/zero \(a device; expected a file"):
        fetch(Log("TINY", path="/dev/zero"), tmp_path / "a.gz")


@pytest.mark.parametrize("head", ["HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\nX-Slow: "])
def test_a_slow_server_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str):
    """The server sends single bytes of the content or header at intervals, so that no single wait exceeds a timeout."""
    monkeypatch.setattr(logs, "LONGEST_DOWNLOAD", 0.4)
    stop = threading.Event()

    def trickle(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(4096)
            connection.sendall(head.encode())
            while not stop.wait(0.02):
                connection.sendall(b"1")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=trickle, args=(listener,), daemon=True).start()
        with pytest.raises(SwflowError, match="took too long"):
            fetch(the_log(f"http://127.0.0.1:{listener.getsockname()[1]}"), tmp_path / "a.gz")
        stop.set()


@pytest.mark.archive
def test_the_headers_of_the_archive_fit_their_logs_without_the_catalogue(traces: Path, tmp_path: Path):
    for name in ("KTH-SP2", "NASA-iPSC", "LLNL-Atlas"):
        log = load_catalogue(CATALOGUE)[name]
        bare = Log(name, file=log.file, url=log.url)
        assert fetch(bare, tmp_path / "log.swf.gz", mirror=traces).jobs == log.jobs


# --- the catalogue ----------------------------------------------------------------------------------------


def test_entries_are_read_with_their_types(tmp_path: Path):
    path = tmp_path / "logs.yaml"
    path.write_text(
        "MINE:\n  path: /data/my.swf.gz\n  processors: 512\n"
        "FAR: {url: 'https://host/l_far/F%201.swf.gz', clean: {flurries: [user_id == 3]}, sha256: null}\n"
        "FAR-1996: {of: FAR, from: 1996-01-01, until: '1996-10-01'}\n"
        "synthetic-128: {generate: lublin, processors: 128, jobs: 5000, load: 0.8}\n"
    )
    catalogue = load_catalogue(path)
    assert list(catalogue) == ["MINE", "FAR", "FAR-1996", "synthetic-128"]
    assert catalogue["MINE"] == Log("MINE", path="/data/my.swf.gz", processors=512)
    assert catalogue["FAR"].file == "F 1.swf.gz" and catalogue["FAR"].clean == {"flurries": ["user_id == 3"]}
    assert (catalogue["FAR-1996"].since, catalogue["FAR-1996"].until) == (date(1996, 1, 1), date(1996, 10, 1))
    synthetic = catalogue["synthetic-128"]
    assert (synthetic.generate, synthetic.processors, synthetic.jobs) == ("lublin", 128, 5000)
    assert synthetic.parameters == {"load": 0.8}


def test_later_sources_replace_entries(tmp_path: Path):
    catalogue = load_catalogue(
        [CATALOGUE, {"KTH-SP2": {"path": "k.swf"}, "K-1997": {"of": "KTH-SP2", "from": "1997-01-01"}}]
    )
    assert catalogue["KTH-SP2"] == Log("KTH-SP2", path="k.swf")
    assert catalogue["K-1997"].of == "KTH-SP2" and "RICC" in catalogue


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "a", "procesors": 4}, "unknown key 'procesors'; did you mean 'processors'?"),  # prose: ignore
        ({"path": "a", "MaxProcs": 4}, "unknown key 'MaxProcs'"),
        ({"processors": 4}, "no source; give exactly one of url, path, generate, of"),
        ({"path": "a", "url": "http://x/y/z"}, "has url and path"),
        ({"of": "KTH-SP", "from": "1996-01-01"}, "no log 'KTH-SP' in the catalogue; did you mean 'KTH-SP2'"),
        ({"of": "LANL-CM5-1996", "from": "1996-01-01"}, "LANL-CM5-1996 is a period; give"),
        ({"of": "KTH-SP2"}, "needs from, until or both"),
        ({"of": "KTH-SP2", "from": "last year"}, "from: 'last year'; expected a date such as 1996-01-01"),
        ({"of": "KTH-SP2", "until": 1996}, "until: 1996; expected a date"),
        ({"of": "KTH-SP2", "from": "1997-01-01", "until": "1996-01-01"}, "is not before"),
        ({"path": "a", "from": "1997-01-01"}, "from and until need of: LOG"),
        ({"path": "a", "processors": "many"}, "processors: 'many'; expected a whole number of at least 1"),
        ({"path": "a", "jobs": 0}, "jobs: 0; expected a whole number"),
        ({"path": "a", "processors": 10, "nodes": 3}, "nodes: 3 must divide processors"),
        ({"path": "a", "sha256": "abc"}, "sha256: 'abc'; expected 64 hexadecimal digits"),
        ({"path": 7}, "path: 7; expected text"),
        ({"url": "ftp://x/y"}, "url: 'ftp://x/y'; expected http"),
        ({"url": "http://[x,x]/y"}, "url: 'http://[x,x]/y'; expected http"),
        ({"url": "http://x:99999/y"}, "url: 'http://x:99999/y'; expected http"),
        ({"url": "http://x/y/"}, "file: ''; expected a file name"),
        ({"path": "a", "clean": ["x"]}, "clean: ['x']; expected a mapping"),
        ({"generate": "lublin"}, "processors: a synthetic log needs a machine"),
        ("a.swf", "'a.swf'; expected a mapping of keys"),
    ],
)
def test_wrong_entries_are_named(entry: object, message: str):
    with pytest.raises(SwflowError) as caught:
        load_catalogue([CATALOGUE, {"MINE": entry}])
    assert str(caught.value).startswith("catalogue: MINE: ")
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A: {path: a}\nA: {path: b}\n", r"logs\.yaml:2: invalid YAML \(A is given twice\)"),
        ("A: {path: [", r"logs\.yaml:[12]: invalid YAML"),
        ("A: {path: " + "[" * 100_000, r"logs\.yaml(:1)?: invalid YAML"),
        ("- a\n", "a list; expected a mapping"),
        ("a+b: {path: x}\n", r"a\+b: a log name must consist of"),
        ("2010: {path: x}\n", "2010: a log name"),
        ("A: {path: x, job: 3}\n", r"logs\.yaml: A: unknown key 'job'; did you mean 'jobs'"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: str, message: str):
    path = tmp_path / "logs.yaml"
    path.write_text(text)
    with pytest.raises(SwflowError, match=message):
        load_catalogue(path)
    with pytest.raises(SwflowError, match="no such file"):
        load_catalogue(tmp_path / "missing.yaml")


def test_find_log_suggests():
    with pytest.raises(SwflowError, match="did you mean 'KTH-SP2'"):
        find_log("kth-sp2", load_catalogue(CATALOGUE))


def test_the_catalogue_of_the_archive():
    catalogue = load_catalogue(CATALOGUE)
    names = (
        "KTH-SP2 NASA-iPSC SDSC-SP2 SDSC-BLUE HPC2N LANL-CM5 LLNL-Atlas RICC CTC-SP2 SDSC-Par-1995 "
        "SDSC-Par-1996 SDSC-SP2-4.2 SDSC-DS ANL-Intrepid SHARCNET-Whale LLNL-Thunder CEA-Curie PIK-IPLEX "
        "KTH-SP2-raw NASA-iPSC-raw LANL-CM5-raw LANL-CM5-1996 LLNL-Atlas-2007"
    )
    assert set(names.split()) <= set(catalogue)
    for log in catalogue.values():
        if log.of is None and log.generate is None:
            assert log.url is not None and log.url.startswith("https://www.cs.huji.ac.il/labs/parallel/workload/l_")
            assert log.url.endswith(f"/{log.file}") and log.citation, log.name
            assert log.processors or log.sha256 is None, log.name  # the sizes of the inspected logs
        for text in log.clean.get("flurries", []):
            condition(text, JOB_COLUMNS, log.name)


RECORDED = ["KTH-SP2", "NASA-iPSC", "SDSC-SP2", "SDSC-BLUE", "HPC2N", "LANL-CM5", "LLNL-Atlas", "RICC"]


@pytest.mark.archive
@pytest.mark.parametrize("name", RECORDED)
def test_real_logs_are_what_the_catalogue_says(traces: Path, tmp_path: Path, name: str):
    log = load_catalogue(CATALOGUE)[name]
    report = fetch(log, tmp_path / "log.swf.gz", mirror=traces)
    assert (report.jobs, report.sha256) == (log.jobs, log.sha256)
    swf = read_swf(tmp_path / "log.swf.gz")
    assert swf.fields.height == log.jobs and not swf.skipped
    if name == "RICC":
        assert swf.header == {}
        return
    assert swf.header.number("MaxProcs") == log.processors
    assert swf.header.number("MaxNodes") == log.nodes
    assert swf.header["Acknowledge"] == [log.acknowledgement]


@pytest.mark.archive
@pytest.mark.parametrize("name", ["KTH-SP2", "NASA-iPSC", "LANL-CM5"])
def test_flurries_of_raw_logs_are_removed_from_the_cleaned_ones(traces: Path, name: str):
    catalogue = load_catalogue(CATALOGUE)
    swf = read_swf(traces / (catalogue[name].file or ""))
    jobs = swf.fields.with_columns(processors="allocated_processors")
    flurries = catalogue[f"{name}-raw"].clean["flurries"]
    assert not [text for text in flurries if jobs.filter(condition(text, jobs.columns, name)).height]
    removed = sum(int(count) for count in re.findall(r"\((\d+) jobs removed\)", swf.header["Note"][-1]))
    assert catalogue[f"{name}-raw"].jobs == swf.fields.height + removed
    numbers = [re.findall(r"\d+", text) for text in flurries]
    filters = swf.header["Note"][-1].splitlines()[2:]
    assert all(set(found) <= set(re.findall(r"\d+", line)) for found, line in zip(numbers, filters, strict=True))


@pytest.mark.archive
@pytest.mark.parametrize("name", ["LANL-CM5-1996", "LLNL-Atlas-2007"])
def test_periods_hold_jobs_of_real_logs(traces: Path, name: str):
    catalogue = load_catalogue(CATALOGUE)
    period = catalogue[name]
    swf = read_swf(traces / (source_of(period, catalogue).file or ""))
    assert period.since and period.until
    since, until = (swf.header.seconds_since_start(day) for day in (period.since, period.until))
    submit = swf.fields["submit_time"]
    share = swf.fields.filter((pl.col("submit_time") >= since) & (pl.col("submit_time") < until)).height
    assert 0 < since < until and submit.min() < since < submit.max()  # type: ignore[operator]
    assert 0.2 < share / submit.len() < 0.9
