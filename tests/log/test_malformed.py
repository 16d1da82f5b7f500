"""Tests of malformed and unusual logs: each is read correctly, or gives one line with position and reason."""

import gzip
from collections.abc import Iterator

import pytest

from swflow.errors import SwflowError
from swflow.jobs.table import SWF_FIELDS
from swflow.workload.clean import clean_log

FIELDS = list(SWF_FIELDS)
WHOLE = [name for name, dtype in SWF_FIELDS.items() if dtype.is_integer()]
REAL = [name for name in FIELDS if name not in WHOLE]
TIMES = ["submit_time", "wait_time", "run_time", "average_cpu_time", "requested_time", "think_time"]
PROCESSORS = ["allocated_processors", "requested_processors"]

#: Two valid jobs; cases change the first one.
ORDINARY = "1 0 5 60 4 50 -1 4 90 -1 1 3 1 2 1 1 -1 -1"
JOB = dict(zip(FIELDS, ORDINARY.split(), strict=True))
SECOND = "2 10 0 30 2 20 -1 2 40 -1 1 3 1 2 1 1 -1 -1"
HEAD = "; MaxProcs: 8\n"

#: The result of a case: the (id, submit, run, processors, estimate) of its jobs, or a part of the error.
Rows = list[tuple[int, float, float, int, float]]
FIRST, LAST = (1, 0.0, 60.0, 4, 90.0), (2, 10.0, 30.0, 2, 40.0)
Case = tuple[str, str | bytes, Rows | str]


def line(**changes: object) -> str:
    return " ".join(str(value) for value in (JOB | changes).values())


def log(first: str, head: str = HEAD) -> str:
    return f"{head}{first}\n{SECOND}\n"


def cases() -> Iterator[Case]:
    yield "plain", log(line()), [FIRST, LAST]
    yield from words()
    yield from numbers()
    yield from limits()
    yield from unknowns()
    yield from shapes_of_lines()
    yield from headers()
    yield from identities()
    yield from bytes_of_files()


def words() -> Iterator[Case]:
    """Put text that is not a number into each field."""
    for place, name in enumerate(FIELDS, 1):
        for word in ("nan", "inf", "-", "0x1F", "1_0", "1e", "1,5", "٣", "1.2.3", "null"):
            yield f"{name}={word}", log(line(**{name: word})), f":2: field {place} ({name}): "
        yield f"{name} beyond all floats", log(line(**{name: "1e999"})), f"field {place} ({name}): '1e999' is too large"
    for name in WHOLE:
        yield f"{name} with a fraction", log(line(**{name: "1.5"})), f"({name}): '1.5' is not a whole number"
        yield f"{name}=2^63", log(line(**{name: 2**63})), f"({name}): '9223372036854775808' is too large"


def numbers() -> Iterator[Case]:
    """Write numbers in unusual notations."""
    for text in ("60", "+60", "60.", "60.0", "6e1", "6.0E+1", "0060", "60.000000000000000000000", "600e-1"):
        yield f"run_time={text}", log(line(run_time=text)), [FIRST, LAST]
    for text in ("4", "+4", "4.", "4.0", "4e0", "0.4e1", "0004", "40e-1"):
        yield f"processors={text}", log(line(allocated_processors=text)), [FIRST, LAST]
    for text, value in (
        (".5", 0.5),
        ("1e-300", 1e-300),
        ("0.1", 0.1),
        ("59.99", 59.99),
        ("999999999999", 999999999999.0),
    ):
        yield f"run_time is {text}", log(line(run_time=text)), [(1, 0.0, value, 4, 90.0), LAST]
    yield "before the start", log(line(submit_time=-77)), [(1, -77.0, 60.0, 4, 90.0), LAST]
    yield "later than the next", log(line(submit_time=11)), [LAST, (1, 11.0, 60.0, 4, 90.0)]


def limits() -> Iterator[Case]:
    """Use values just within and beyond the limits of 10^12 s and 2^31 processors."""
    for name in TIMES:
        for value in ("1e16", "-1e16", "1000000000001", "9007199254740993", "1.7e308"):
            yield f"{name}={value}", log(line(**{name: value})), f"job 1: {name} is "
    for name in PROCESSORS:
        for value in (4 * 10**18, 2**62, 2**31 + 1, -(2**62)):
            yield f"{name}={value}", log(line(**{name: value})), f"job 1: {name} is "
        yield f"{name}=2^31", log(line(**{name: 2**31})), [LAST] if name == PROCESSORS[0] else [FIRST, LAST]
    yield "submit_time=1e12", log(line(submit_time="1e12")), [LAST, (1, 1e12, 60.0, 4, 90.0)]
    yield "wait_time=1e12", log(line(wait_time="1e12")), [FIRST, LAST]
    for name in ("used_memory", "requested_memory"):
        yield f"{name}=1e300", log(line(**{name: "1e300"})), [FIRST, LAST]
    for name in ("user_id", "group_id", "executable_id", "queue_id", "partition_id", "preceding_job_id"):
        yield f"{name}=2^63-1", log(line(**{name: 2**63 - 1})), [FIRST, LAST]


def unknowns() -> Iterator[Case]:
    """Use unknown values: a job is removed if an essential value is unknown, and kept otherwise."""
    yield "no submit time", log(line(submit_time=-1)), [LAST]
    yield "no job id", log(line(job_id=-1)), "1 jobs have no job id"
    yield "no run time", log(line(run_time=-1)), [LAST]
    yield "run time below 0", log(line(run_time=-60)), [LAST]
    yield "run time 0", log(line(run_time=0)), [LAST]
    yield "wider than the machine", log(line(allocated_processors=9)), [LAST]
    for absent in (-1, 0, -5):
        yield f"allocated {absent}", log(line(allocated_processors=absent)), [FIRST, LAST]
        yield f"requested {absent}", log(line(requested_processors=absent)), [FIRST, LAST]
        none = line(allocated_processors=absent, requested_processors=absent)
        yield f"no processors: {absent}", log(none), [LAST]
        yield f"no estimate: {absent}", log(line(requested_time=absent)), [(1, 0.0, 60.0, 4, 60.0), LAST]
    for name in FIELDS:
        if name not in ("job_id", "submit_time", "run_time", "allocated_processors", "requested_time"):
            yield f"no {name}", log(line(**{name: -1})), [FIRST, LAST]
    everything = line(**dict.fromkeys(FIELDS[1:], -1))
    yield "nothing but an id", log(everything), [LAST]
    yield "nothing known at all", f"{HEAD}{everything}\n", "all 1 jobs were removed"


def shapes_of_lines() -> Iterator[Case]:
    """Vary the number of fields, separators, and ends of lines."""
    tokens = line().split()
    for count in range(1, 18):
        yield f"{count} fields", log(" ".join(tokens[:count])), f":2: {count} fields instead of 18"
    for extra in (1, 2, 18, 1000):
        yield f"{18 + extra} fields", log(" ".join(tokens + ["-1"] * extra)), f":2: {18 + extra} fields instead of 18"
    for name, separator in (("tab", "\t"), ("spaces", "   "), ("form feed", "\f"), ("vertical tab", "\v")):
        yield f"separated by {name}", log(separator.join(tokens)), [FIRST, LAST]
    for separator in (",", ";", "|"):
        yield f"separated by {separator}", log(separator.join(tokens)), ":2: 1 fields instead of 18"
    yield "a no-break space", log("\u00a0".join(tokens)), ":2: 1 fields instead of 18"
    for name, end in (("CR LF", "\r\n"), ("CR", "\r"), ("blank lines", "\n\n\n")):
        yield f"lines end with {name}", log(line()).replace("\n", end), [FIRST, LAST]
    yield "no last line break", log(line()).rstrip("\n"), [FIRST, LAST]
    yield "indented", log("    " + line() + "   \t"), [FIRST, LAST]
    yield "a long line", log(line() + " " * 10**6), [FIRST, LAST]
    yield "a long word", log(line(user_id="9" * 10**5)), "(user_id): '999"
    yield "a comment between", log(line() + "\n; 1 2 3\n  ; x"), [FIRST, LAST]
    yield "a comment behind", log(line() + " ; done"), [FIRST, LAST]
    yield "a column header", log("job_id submit wait\n" + line()), ":2: 3 fields instead of 18"
    yield "a web page", "<!DOCTYPE html>\n<html><body>Not Found</body></html>\n", "a web page"
    yield "JSON", '{"jobs": []}', "Slurm accounting (sacct --json)"
    for text in ("", "\n\n", "; MaxProcs: 8\n", ";", " \t\r\n", "\ufeff"):
        yield f"no jobs: {text!r}", text, "no job lines"


def headers() -> Iterator[Case]:
    """Vary the machine in the header."""
    for text in ("8", " 8 ", "8 (1 node)", "8.0", "8e0", "about 8", "+8", "08"):
        yield f"MaxProcs: {text!r}", log(line(), f"; MaxProcs: {text}\n"), [FIRST, LAST]
    for text in ("1e12", "2147483649", "9e18", "9223372036854775808", "1e400", "9" * 5000, "1e999999999"):
        yield f"MaxProcs: {text[:20]}", log(line(), f"; MaxProcs: {text}\n"), "expected at most 2,147,483,648"
    yield "MaxProcs: 1.5e9", log(line(), "; MaxProcs: 1.5e9\n"), [FIRST, LAST]
    yield "MaxProcs: 3", log(line(), "; MaxProcs: 3\n"), [LAST]
    yield "MaxProcs: 1", log(line(), "; MaxProcs: 1\n"), "all 2 jobs were removed"
    for text in ("0", "-8", "unknown", "", "nan", "inf", "1_000", "eight"):
        yield f"no machine: {text!r}", log(line(), f"; MaxProcs: {text}\n"), [FIRST, LAST]
    yield "no header", log(line(), ""), [FIRST, LAST]
    yield "MaxNodes alone", log(line(), "; MaxNodes: 4\n"), [FIRST, LAST]
    yield "nodes that do not divide", log(line(), "; MaxProcs: 8\n; MaxNodes: 3\n"), [FIRST, LAST]
    yield "nodes beyond", log(line(), "; MaxProcs: 8\n; MaxNodes: 1e12\n"), [FIRST, LAST]
    yield "a key twice", log(line(), "; MaxProcs: 8\n; MaxProcs: 1\n"), [FIRST, LAST]
    yield "another spelling", log(line(), ";mAxPrOcS:8\n"), [FIRST, LAST]
    yield "a script", log(line(), "; Computer: <script>alert(1)</script>\n" + HEAD), [FIRST, LAST]
    yield "keys without end", log(line(), "; A: b\n" * 10**4 + HEAD), [FIRST, LAST]
    yield "a header behind", log(line(), "") + "; MaxProcs: 1\n", [FIRST, LAST]


def identities() -> Iterator[Case]:
    """Duplicate job ids, and use large ones."""
    yield "one id twice", log(line(job_id=2)), "1 lines repeat a job id (the first is 2); expected unique"
    yield "every line twice", log(line()) * 2, "2 lines repeat a job id"
    for number in (0, -7, 2**63 - 1, -(2**63), 10**15):
        yield f"id {number}", log(line(job_id=number)), [(number, *FIRST[1:]), LAST]
    yield "equal submit times", log(line(job_id=3, submit_time=10)), [LAST, (3, 10.0, *FIRST[2:])]


def bytes_of_files() -> Iterator[Case]:
    """Compress, truncate and encode logs; use files that are not text."""
    text = log(line()).encode()
    packed = gzip.compress(text)
    yield "gzipped", packed, [FIRST, LAST]
    yield "gzipped in two members", gzip.compress(text[:30]) + gzip.compress(text[30:]), [FIRST, LAST]
    yield "gzipped twice", gzip.compress(packed), "a binary file"
    for cut in (3, 9, 12, 20, len(packed) // 2, len(packed) - 9, len(packed) - 5, len(packed) - 1):
        yield f"gzip cut at {cut}", packed[:cut], "truncated"
    for place in (30, 40, 50):
        yield f"gzip damaged at {place}", packed[:place] + bytes([packed[place] ^ 255]) + packed[place + 1 :], "log.swf"
    yield "a wrong gzip checksum", packed[:-8] + b"\1\2\3\4" + packed[-4:], "damaged gzip data"
    yield "garbage behind gzip", packed + b"garbage", "damaged gzip data"
    yield "zeros behind gzip", packed + b"\0" * 100, [FIRST, LAST]
    for magic, kind in ((b"BZh9", "bzip2"), (b"\xfd7zXZ\0", "xz"), (b"PK\3\4", "zip"), (b"PAR1", "Parquet")):
        yield f"a file of {kind}", magic + text, kind
    yield "NUL between", text.replace(b"\n", b"\0\n", 1), "a binary file"
    yield "UTF-8 with a mark", b"\xef\xbb\xbf" + text, [FIRST, LAST]
    yield "UTF-16", log(line()).encode("utf-16"), [FIRST, LAST]
    yield "latin-1 in the header", b"; Acknowledge: \xc5ke\n" + text, [FIRST, LAST]
    yield "latin-1 in a job", text.replace(b" 60 ", b" 6\xe9 "), "field 4 (run_time)"


CASES = list(cases())


def test_there_are_hundreds_of_distinct_cases():
    assert len({content if isinstance(content, bytes) else content.encode() for _, content, _ in CASES}) >= 300


@pytest.mark.parametrize(("content", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_a_log_is_read_correctly_or_gives_one_line(tmp_path, content: str | bytes, expected: Rows | str):
    path = tmp_path / "log.swf"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if isinstance(expected, str):
        with pytest.raises(SwflowError) as caught:
            clean_log(path)
        assert expected in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 400
        return
    jobs = clean_log(path).jobs
    assert jobs.select("job_id", "submit_time", "run_time", "processors", "estimate").rows() == expected
