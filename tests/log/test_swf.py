"""Tests of reading and writing the Standard Workload Format: unusual files of the archive, and exact numbers."""

import gzip
import math
import random
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swflow.errors import SwflowError
from swflow.jobs.header import Header
from swflow.jobs.table import JOB_COLUMNS, SWF_FIELDS
from swflow.log import swf
from swflow.log.swf import (
    parse_header,
    parse_swf,
    read_swf,
    run_as_swf,
    write_swf,
)
from swflow.workload.models.arrivals import clock_at_start

JOB = "1 0 -1 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1"
WHOLE = [dtype == pl.Int64 for dtype in SWF_FIELDS.values()]


def job(**fields: object) -> str:
    values = dict(zip(SWF_FIELDS, JOB.split(), strict=True)) | fields
    return " ".join(str(value) for value in values.values())


def parse(text: str, **options: bool):
    return parse_swf(text.encode(), "log.swf", **options)


def fault(text: str | bytes) -> str:
    """Return the one-line error for a text."""
    with pytest.raises(SwflowError) as caught:
        parse_swf(text if isinstance(text, bytes) else text.encode(), "log.swf")
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- files ------------------------------------------------------------------------------------------------


def test_fields_have_the_columns_and_types_of_the_format():
    fields = parse(job(job_id=7, run_time="1.25")).fields
    assert fields.schema == pl.Schema(SWF_FIELDS)
    assert fields.row(0) == (7, 0.0, -1.0, 1.25, 4, -1.0, -1.0, 4, 90.0, -1.0, 1, 3, -1, -1, -1, -1, -1, -1.0)


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "log"])
def test_gzip_is_detected_by_content_not_by_name(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(gzip.compress(f"; MaxProcs: 8\n{JOB}\n".encode()))
    assert read_swf(path).header == {"MaxProcs": ["8"]}
    path.write_text(f"; MaxProcs: 9\n{JOB}\n")
    assert read_swf(path).header == {"MaxProcs": ["9"]}


@pytest.mark.parametrize(
    "text",
    [
        f"{JOB}\n{JOB}\n",
        f"{JOB}\n{JOB}",
        f"{JOB}\r\n{JOB}\r\n",
        f"{JOB}\r{JOB}\r",
        f"\n\n{JOB}\n  \t \n{JOB}\n\n",
        f"\t {JOB}  \t\n{JOB.replace(' ', chr(9) + '  ')}",
        f"\ufeff{JOB}\n{JOB}\n",
        f"\ufeff; Note: x\n{JOB}\n{JOB}\n",
        f"{JOB}\n; a comment: in the middle\n   ; another 1 2 3\n{JOB}\n;",
    ],
)
def test_layout_does_not_matter(text: str):
    assert parse(text).fields.rows() == parse(JOB).fields.rows() * 2


def test_values_at_the_limits_of_exactness():
    numbers = [
        "489.00",
        "1e5",
        "9007199254740991",
        "9007199254740993",
        "9223372036854775807",
        "-0",
        "+5",
        "5.",
    ]
    for number in numbers:
        assert parse(job(user_id=number)).fields["user_id"][0] == int(eval(number)), number
    for number in [
        *numbers,
        ".5",
        "0.1",
        "123456789012.345",
        "0.000000000000000000000001",
        "1.7976931348623157e308",
    ]:
        assert parse(job(run_time=number)).fields["run_time"][0] == float(number), number
    assert math.copysign(1, parse(job(run_time="-0")).fields["run_time"][0]) == -1


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("1 2 3", "3 fields instead of 18"),
        (f"{JOB} 7", "19 fields instead of 18"),
        ("hello", "1 fields instead of 18"),
        (job(run_time="nan"), "field 4 (run_time): 'nan' is not a number"),
        (job(run_time="inf"), "field 4 (run_time): 'inf' is not a number"),
        (job(run_time="1e999"), "field 4 (run_time): '1e999' is too large"),
        (job(run_time="1_000"), "'1_000' is not a number"),
        (job(run_time="1.2.3"), "'1.2.3' is not a number"),
        (job(run_time="-"), "'-' is not a number"),
        (job(run_time="."), "'.' is not a number"),
        (job(run_time="1e"), "'1e' is not a number"),
        (job(run_time="0x10"), "'0x10' is not a number"),
        (job(run_time="é" * 99), "...' is not a number"),
        (job(user_id="1.5"), "field 12 (user_id): '1.5' is not a whole number"),
        (job(user_id="15e-1"), "field 12 (user_id): '15e-1' is not a whole number"),
        (job(user_id="9223372036854775808"), "is too large"),
        (job(user_id="1e-99999999999999999999"), "is not a whole number"),
        (job(user_id="0.00000000000000000000000000001"), "is not a whole number"),
    ],
)
def test_malformed_lines_are_errors_and_skipped_when_lenient(line: str, part: str):
    text = f"; Note: x\n{JOB}\n\n{line}\n{JOB}\nalso bad\n"
    message = fault(text)
    assert message.startswith("log.swf:4: ") and part in message and "--lenient" in message
    log = parse(text, lenient=True)
    assert log.fields.height == 2
    assert [number for number, _ in log.skipped] == [4, 6]
    assert part in log.skipped[0][1] and log.skipped[1][1] == "2 fields instead of 18"


def test_the_first_malformed_line_is_named_by_every_parser():
    assert "log.swf:2:" in fault(f"{JOB}\n{job(run_time='1e999')}\nbad\n")
    assert "log.swf:1:" in fault(f"bad\n{job(run_time='1e999')}\n")


def test_many_malformed_lines_are_all_counted():
    lines = [f"bad {number}" if number % 3 else job(run_time="1e1") for number in range(1000)]
    log = parse("\n".join(lines), lenient=True)
    assert len(log.skipped) == 666 and log.fields.height == 334
    assert log.fields["run_time"].unique().to_list() == [10.0]


def test_files_that_are_not_logs(tmp_path: Path):
    with pytest.raises(SwflowError, match="no such file"):
        read_swf(tmp_path / "missing.swf")
    with pytest.raises(SwflowError, match="a folder"):
        read_swf(tmp_path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.swf")
    with pytest.raises(SwflowError, match=r"x\.swf: a Parquet file"):
        read_swf(tmp_path / "x.swf")
    packed = gzip.compress(f"{JOB}\n".encode() * 1000)
    assert "truncated" in fault(packed[:-20])
    assert "damaged" in fault(packed[:20] + b"\xff" * 40 + packed[60:])
    assert "damaged" in fault(packed[:-8] + b"12345678")
    assert "binary" in fault(b"\x7fELF\0\0")
    assert "bzip2" in fault(b"BZh9...")
    for text in ("", "\n \n", "; MaxProcs: 8\n;\n"):
        assert "no job lines" in fault(text)
    with pytest.raises(SwflowError, match="no job lines; the first malformed line is 1: 1 fields"):
        parse("bad\n", lenient=True)


# --- exactness against an obvious parser ------------------------------------------------------------------


def obvious_line(line: str) -> list[float] | None:
    """Parse a job line with a simple, slow parser; return None if it is malformed."""
    tokens = line.split()
    try:
        values = [float(token) for token in tokens]
    except ValueError:
        return None
    if len(values) != 18 or "_" in line or not all(map(math.isfinite, values)):
        return None
    exact = [Fraction(token) for token, whole in zip(tokens, WHOLE, strict=True) if whole]
    return values if all(n.denominator == 1 and -(2**63) <= n < 2**63 for n in exact) else None


numbers = st.one_of(
    st.integers(-(2**53), 2**53).map(str),
    st.integers(-5, 500000).map(str),
    st.decimals(-10000, 10000, places=2).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[-+]?[0-9]{0,25}\.?[0-9]{0,25}([eE][-+]?[0-9]{1,2})?", fullmatch=True).filter(bool),
)
tokens = st.one_of(numbers, st.sampled_from(["nan", "inf", "-", "1.5.2", "x", "1e", "-1", "0"]))
spaces = st.sampled_from([" ", "  ", "\t", " \t "])
whole_numbers = st.integers(-1, 2**53).flatmap(lambda n: st.sampled_from([str(n), f"{n}.0", f"{n}.000"]))
good_lines = st.tuples(spaces, *(whole_numbers if whole else numbers for whole in WHOLE)).map(
    lambda parts: parts[0].join(parts[1:])
)
lines = st.one_of(
    good_lines,
    st.lists(tokens, min_size=17, max_size=19).map(" ".join),
    st.sampled_from(["", "; comment", JOB, "  "]),
)


@given(st.lists(lines, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_numbers_equal_those_of_a_simple_parser(content: list[str], end: str):
    text = end.join([JOB, *content])
    expected, skipped = [], []
    for number, line in enumerate([JOB, *content], 1):
        if line.strip() and not line.strip().startswith(";"):
            values = obvious_line(line)
            if values is None:
                skipped.append(number)
            else:
                expected.append(values)
    log = parse(text, lenient=True)
    assert [number for number, _ in log.skipped] == skipped
    assert [[float(value) for value in row] for row in log.fields.rows()] == expected


# --- the header -------------------------------------------------------------------------------------------


def test_header_keys_values_and_continuations():
    text = b"""; Version: 2.2
;Computer:IBM SP2
; Information: http://www.pdc.kth.se/
;              http://www.cs.huji.ac.il/
; Copyright: JOBLOG Repository Data Usage Agreement:
;   This Job Trace Repository is brought to you by the HPC Systems
; StartTime: Fri Apr 24 18:11:04 PDT 1998
; maxprocs : 128
;
; Note: THIS IS A CLEANED VERSION OF THE LOG!
;       The filters used to produce it were
;\tuser=50 and (job>=24439 and job<=64542) (33452 jobs removed)
;       Queue: is no key here
; Note: second
; SiteKey: of one's own
;   remark: not a key
; Queue: 0 interactive
; Queue:  1  batch   \t
; Empty:
1 2 3
; Note: not in the header
"""
    assert parse_header(text) == {
        "Version": ["2.2"],
        "Computer": ["IBM SP2"],
        "Information": ["http://www.pdc.kth.se/\nhttp://www.cs.huji.ac.il/"],
        "Copyright": [
            "JOBLOG Repository Data Usage Agreement:\nThis Job Trace Repository is brought to you by the HPC Systems"
        ],
        "StartTime": ["Fri Apr 24 18:11:04 PDT 1998"],
        "MaxProcs": ["128"],
        "Note": [
            "THIS IS A CLEANED VERSION OF THE LOG!\nThe filters used to produce it were\n"
            "user=50 and (job>=24439 and job<=64542) (33452 jobs removed)\nQueue: is no key here",
            "second",
        ],
        "SiteKey": ["of one's own\nremark: not a key"],  # prose: ignore
        "Queue": ["0 interactive", "1  batch"],
        "Empty": [""],
    }


def test_odd_headers():
    assert parse_header(b"") == {}
    assert parse_header(b"; made by hand\n; on a Monday\n; MaxProcs: 4\n") == {
        "Note": ["made by hand\non a Monday"],
        "MaxProcs": ["4"],
    }
    assert parse_header("; Acknowledge: Åke".encode("latin-1")) == {"Acknowledge": ["Åke"]}
    assert parse_header("; Acknowledge: Åke".encode()) == {"Acknowledge": ["Åke"]}


def test_header_number():
    header = Header(
        {
            "MaxProcs": ["about 1,152 (144 nodes)"],
            "TimeZone": ["-25200"],
            "MaxNodes": ["unknown", "12"],
            "X": [""],
        }
    )
    assert header.number("MaxProcs") == 1152
    assert header.number("TimeZone") == -25200
    assert header.number("MaxNodes") == 12
    assert header.number("X") is None
    assert header.number("Missing") is None


def test_time_zone_by_name_then_offset_then_utc():
    assert Header({"TimeZoneString": ["US/Pacific"], "TimeZone": ["3600"]}).time_zone.utcoffset(
        datetime(2007, 2, 1)
    ) == timedelta(hours=-8)
    assert Header({"TimeZoneString": [":Europe/Stockholm"]}).time_zone == ZoneInfo("Europe/Stockholm")
    assert Header({"TimeZoneString": ["Nowhere/Else"], "TimeZone": ["3600"]}).time_zone == timezone(timedelta(hours=1))
    assert Header({"TimeZoneString": ["../etc/passwd"]}).time_zone == UTC
    assert Header({}).time_zone == UTC


@pytest.mark.parametrize("start", ["1300000000000", "1e29", "-1e20"])
def test_a_start_that_is_no_date_is_an_error(start):
    header = Header({"UnixStartTime": [start]})
    for use in (
        lambda: header.seconds_since_start(date(2011, 3, 13)), lambda: clock_at_start(header), header.local_time,
    ):  # fmt: skip
        with pytest.raises(SwflowError, match=r"^UnixStartTime: -?1.*; expected seconds since 1970") as error:
            use()
        assert ("milliseconds" in str(error.value)) == (start == "1300000000000")


def test_seconds_since_start_is_local_midnight():
    header = Header({"UnixStartTime": ["1163199901"], "TimeZone": ["3600"], "TimeZoneString": ["US/Pacific"]})
    started = datetime(2006, 11, 10, 15, 5, 1, tzinfo=ZoneInfo("America/Los_Angeles"))
    assert started.timestamp() == 1163199901
    midnight = datetime(2007, 2, 1, tzinfo=ZoneInfo("America/Los_Angeles"))
    assert header.seconds_since_start(date(2007, 2, 1)) == (midnight - started).total_seconds()
    assert header.seconds_since_start(datetime(2006, 11, 10, 15, 5, 2)) == 1
    assert header.seconds_since_start(datetime(2006, 11, 10, 23, 5, 1, tzinfo=UTC)) == 0
    summer = header.seconds_since_start(date(2007, 6, 1)) - header.seconds_since_start(date(2007, 2, 1))
    assert summer == 120 * 86400 - 3600
    with pytest.raises(SwflowError, match="UnixStartTime"):
        Header().seconds_since_start(date(2007, 2, 1))


# --- writing ----------------------------------------------------------------------------------------------

rows = st.lists(
    st.tuples(
        *(
            st.integers(-1, 2**62)
            if whole
            else st.one_of(st.integers(-1, 10**7).map(float), st.floats(-1e9, 1e18), st.floats(-1, 1))
            for whole in WHOLE
        )
    ),
    min_size=1,
    max_size=5,
)
texts = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=8)
values = st.lists(texts, min_size=1, max_size=3).map("\n".join)
headers = st.dictionaries(
    st.sampled_from(["Computer", "Note", "MaxProcs", "SiteKey", "Queue", "UnixStartTime"]),
    st.lists(values, min_size=1, max_size=3),
)


@given(rows=rows, header=headers, packed=st.booleans())
def test_a_written_log_is_read_back_unchanged(tmp_path_factory, rows, header, packed):
    table = pl.DataFrame(rows, schema=SWF_FIELDS, orient="row")
    path = tmp_path_factory.getbasetemp() / ("round-trip.swf.gz" if packed else "round-trip.swf")
    write_swf(path, table, header)
    log = read_swf(path)
    assert log.fields.equals(table)
    assert log.header == {"Version": ["2.2"], **header}


def test_nulls_missing_columns_and_processors(tmp_path: Path):
    jobs = pl.DataFrame(
        {
            "estimate": [9.0, 9.0],
            "processors": [4, 8],
            "job_id": [1, 2],
            "submit_time": [0.5, 1e-7],
            "allocated_processors": [None, 7],
            "requested_time": [None, 1e17],
            "shapes": [[1], [2]],
        }
    )
    write_swf(tmp_path / "a.swf", jobs, {"Version": ["9"], "MaxProcs": ["8"]})
    assert (tmp_path / "a.swf").read_text() == (
        "; Version: 2.2\n; MaxProcs: 8\n"
        "1 0.5 -1 -1 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"
        "2 1e-7 -1 -1 7 -1 -1 -1 100000000000000000 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"
    )


def test_gzip_has_the_same_bytes_at_any_time_and_under_any_name(tmp_path: Path):
    jobs = parse(JOB).fields
    for name in ("a.swf.gz", "b.swf.gz"):
        write_swf(tmp_path / name, jobs)
    content = (tmp_path / "a.swf.gz").read_bytes()
    assert content == (tmp_path / "b.swf.gz").read_bytes()
    assert content[3] == 0 and content[4:8] == b"\0\0\0\0"  # no file name, no time
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.swf.gz", "b.swf.gz"]


@pytest.mark.parametrize(
    ("column", "part"),
    [
        (pl.Series("run_time", [math.inf]), "run_time has values that are not finite"),
        (pl.Series("run_time", [math.nan]), "run_time has values that are not finite"),
        (pl.Series("user_id", [1.5]), "user_id has fractions"),
        (pl.Series("user_id", ["tom"]), "user_id holds String"),
    ],
)
def test_values_that_cannot_be_written(tmp_path: Path, column: pl.Series, part: str):
    path = tmp_path / "a.swf"
    path.write_text("old")
    with pytest.raises(SwflowError, match=part):
        write_swf(path, parse(JOB).fields.with_columns(column))
    with pytest.raises(SwflowError, match="is not a valid key"):
        write_swf(path, parse(JOB).fields, {"two words": ["x"]})
    assert path.read_text() == "old"


def test_a_run_as_a_log(tmp_path: Path):
    schema = {name: JOB_COLUMNS[name] for name in JOB_COLUMNS}
    empty = dict.fromkeys(schema)
    jobs = pl.DataFrame(
        [
            empty
            | {
                "job_id": 3,
                "submit_time": 10.0,
                "run_time": 50.0,
                "wait_time": 99.0,
                "processors": 2,
                "user_id": 5,
            },
            empty | {"job_id": 1, "submit_time": 20.0, "run_time": 60.0, "status": 5, "processors": 4},
            empty | {"job_id": 2, "submit_time": 30.0, "run_time": 70.0, "processors": 4},
        ],
        schema=schema,
    )
    outcomes = pl.DataFrame(
        {
            "job_id": [1, 3],
            "submit_time": [20.0, 10.0],
            "start_time": [25.5, 10.0],
            "end_time": [85.5, 40.0],
            "processors": [4, 1],
            "run_time": [60.0, 30.0],
            "killed": [False, True],
            "wait_time": [5.5, 0.0],
        }
    )
    run = run_as_swf(jobs, outcomes)
    assert run.schema == pl.Schema(SWF_FIELDS)
    picked = ("job_id", "submit_time", "wait_time", "run_time", "allocated_processors", "status", "user_id")
    assert run.select(picked).rows() == [(3, 10.0, 0.0, 30.0, 1, 0, 5), (1, 20.0, 5.5, 60.0, 4, 1, None)]
    write_swf(tmp_path / "run.swf", run)
    assert read_swf(tmp_path / "run.swf").fields["wait_time"].to_list() == [0.0, 5.5]
    with pytest.raises(SwflowError, match="repeat"):
        run_as_swf(pl.concat([jobs, jobs]), outcomes)


# --- real logs --------------------------------------------------------------------------------------------


@pytest.mark.archive
def test_a_real_log_equals_the_simple_parser_and_survives_a_round_trip(traces: Path, tmp_path: Path):
    path = traces / "KTH-SP2-1996-2.1-cln.swf.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    expected = [obvious_line(line) for line in text.splitlines() if line.strip() and not line.startswith(";")]
    log = read_swf(path)
    assert [list(map(float, row)) for row in log.fields.rows()] == expected
    write_swf(tmp_path / "again.swf.gz", log.fields, log.header)
    again = read_swf(tmp_path / "again.swf.gz")
    assert again.fields.equals(log.fields) and again.header == log.header


@pytest.mark.archive
def test_headers_of_real_logs(traces: Path):
    header = read_swf(traces / "SDSC-SP2-1998-3.1-cln.swf.gz").header
    assert header["Queue"][0] == "0 interactive" and len(header["Queue"]) == 7
    assert header["Note"][0].splitlines()[2] == "user=21  and job>13716 and job<16208 (944 jobs removed)"
    assert len(header["Copyright"][0].splitlines()) == 13
    kth = read_swf(traces / "KTH-SP2-1996-2.1-cln.swf.gz").header
    assert kth["Information"] == ["http://www.pdc.kth.se/\nhttp://www.cs.huji.ac.il/labs/parallel/workload/"]
    assert set(kth) <= set(header) | {"Version"}
    assert read_swf(traces / "RICC-2010-2.swf.gz").header == {}


TOKENS = ("-1", "0", "7", "+5", "12.0", "12.5", "1e3", ".5", "5.", "-", "+.", "1-2", "e5", "1e999", "9" * 19, "0x1", "")
GAPS = (" ", "  ", "\t", " \r", "\x0b")


def test_lines_that_are_read_at_once_are_those_that_are_read_one_by_one(monkeypatch):
    rng, at_once = random.Random(18), 0
    for _ in range(150):
        lines = []
        for _ in range(rng.randint(1, 5)):
            values = [rng.choice(TOKENS) if rng.random() < 0.01 else str(rng.randint(-1, 99)) for _ in range(18)]
            values = values[: rng.choice([18] * 12 + [17])] + ["3"] * (rng.random() < 0.05)
            ends = [rng.choice(["", "", " ", "\t "]) for _ in range(2)]
            lines += [ends[0] + "".join(value + rng.choice(GAPS) for value in values) + ends[1]]
            lines += [rng.choice(["", " ", "; comment"])] * (rng.random() < 0.1)
        text = "".join(f"{line}\n" for line in ["; MaxProcs: 8"] * rng.randint(0, 1) + lines)
        text = text[: -1 if rng.random() < 0.2 else None]
        found = swf._parse_fields(text.encode(), stop_at_first=False)
        at_once += swf._parse_plain(text.encode()) is not None
        with monkeypatch.context() as patch:
            patch.setattr(swf, "_parse_plain", lambda text: None)
            fields, faults = swf._parse_fields(text.encode(), stop_at_first=False)
        assert found[0].equals(fields) and found[1] == faults, text
    assert 40 < at_once < 130, at_once


# --- other numbers of fields, and sizes without a colon ---------------------------------------------------


@pytest.mark.parametrize(("more", "note"), [(" 7", "field 19 is"), (" 7 -1 site:x", "fields 19 to 21 are")])
def test_further_fields_are_left_out_and_named(more: str, note: str):
    log = parse("; Note: field 19 has GPUs\n" + f"{job()}{more}\n" + f"{job(job_id=2)}{more}\r\n; a comment\n")
    assert log.fields["job_id"].to_list() == [1, 2] and not log.skipped
    assert log.fields.equals(parse(f"{job()}\n{job(job_id=2)}\n").fields)
    assert note in log.notes[0] and "field 19 has GPUs" in log.notes[0]


def test_a_missing_last_field_is_unknown():
    log = parse("\n".join(job(job_id=place).rsplit(" ", 1)[0] for place in (1, 2)))
    assert log.fields["think_time"].to_list() == [-1, -1] and "17 fields" in log.notes[0]
    assert parse(job().rsplit(" ", 1)[0]).notes == log.notes and "19 fields" in parse(f"{job()} 7").notes[0]


def test_lines_that_differ_in_their_fields_are_malformed():
    assert "19 fields instead of 18" in fault(f"{job()}\n{job(job_id=2)} 7\n")
    log = parse(f"{job()}\n{job(job_id=2)} 7\n", lenient=True)
    assert log.skipped == [(2, "19 fields instead of 18")] and not log.notes


@pytest.mark.parametrize("line", [";MaxProcs 256", "; maxprocs = 256", ";MaxNodes: 64\n;MaxProcs 256"])
def test_sizes_without_a_colon_are_read(line: str):
    assert parse(f"{line}\n{job()}").header.number("MaxProcs") == 256
