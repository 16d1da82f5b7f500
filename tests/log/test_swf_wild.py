"""Logs in the Standard Workload Format as other programs write them, and their further fields as resources."""

import polars as pl
import pytest

from helpers.cli import call
from helpers.records import read, sacct, text
from swflow.errors import SwflowError
from swflow.log.recognise import recognize
from swflow.log.swf import read_swf
from swflow.workload.clean import clean_log

HEADER = "; MaxProcs: 64\n"


def job(number: int = 1, more: str = "") -> str:
    return f"{number} {number} 5 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1{more}\n"


TWO = HEADER + job(1) + job(2)

#: Texts that mean the same two jobs.
QUIRKS = {
    "plain": TWO,
    "17 fields": TWO.replace(" -1\n", "\n"),
    "19 fields": HEADER + job(1, " 7.5") + job(2, " 8"),
    "texts in further fields": HEADER + job(1, " gpu n[1-2]") + job(2, " cpu -"),
    "floats": TWO.replace(" 4 ", " 4.0 ").replace(" 60 ", " 6e1 "),
    "CRLF": TWO.replace("\n", "\r\n"),
    "CR": TWO.replace("\n", "\r"),
    "tabs and blanks": TWO.replace(" ", " \t "),
    "no end of the last line": TWO.rstrip(),
    "unsorted": HEADER + job(2) + job(1),
    "comments inside": HEADER + job(1) + "; a crash\n;\n" + job(2),
    "comments after jobs": HEADER + job(1, " ; killed") + job(2, ";"),
    "comments with #": (TWO + "# end\n").replace(";", "#"),
    "a key without colon": TWO.replace("MaxProcs:", "MaxProcs"),
    "a key in small letters": TWO.replace("MaxProcs:", "maxprocs:"),
    "a mark of the byte order": "\ufeff" + TWO,
    "UTF-16": TWO.encode("utf-16"),
}


@pytest.mark.parametrize("quirk", QUIRKS)
def test_quirks_change_neither_jobs_nor_machine(tmp_path, quirk):
    content = QUIRKS[quirk]
    path = tmp_path / "log.swf"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    workload = clean_log(path)
    columns = ("job_id", "submit_time", "wait_time", "run_time", "processors", "estimate", "think_time")
    assert workload.jobs.select(columns).rows() == [(n, n, 5, 60, 4, 90, None) for n in (1, 2)]
    assert workload.machine.processors == 64
    assert recognize(path).key == "swf"


def test_lines_that_are_left_out_are_counted(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(TWO + job(3).replace(" 60 ", " nan ") + job(4, " 7") + job(2))
    with pytest.raises(SwflowError, match=r"log.swf:4: field 4 \(run_time\): 'nan' is not a number"):
        clean_log(path)
    workload = clean_log(path, lenient=True)
    assert workload.history[0]["removed"] == {"malformed": 2, "repeated-job-id": 1}
    assert [text for text in workload.history[0]["warnings"] if text.startswith("2 malformed lines")]


@pytest.fixture
def further(tmp_path):
    path = tmp_path / "log.swf"
    rows = [job(1, " 300 2"), "; a comment\n\n", job(2, " x -1"), job(3, " 1.5 4"), job(4).replace(" 60 ", " ? ")]
    path.write_text(HEADER + "".join(rows[:-1]) + rows[-1].replace("\n", " 9 9\n"))
    return path


def test_further_fields_become_resources(further):
    formulas = {"watts": "field_19 * allocated_processors", "tapes": "field_20"}
    workload = clean_log(further, resources=formulas, lenient=True)
    assert workload.jobs.select("watts", "tapes").rows() == [(1200, 2), (None, None), (6, 4)]
    assert "field_19" not in workload.jobs.columns
    assert "1 jobs: without a valid watts (needs 0)" in workload.history[0]["warnings"]
    assert read_swf(further, lenient=True, further=True).fields["field_19"].to_list() == ["300", "x", "1.5"]
    assert "fields 19 to 20 are not in the format" in clean_log(further, lenient=True).history[0]["warnings"][0]


def test_resources_of_logs_without_further_fields(tmp_path):
    (tmp_path / "log.swf").write_text(TWO)
    workload = clean_log(tmp_path / "log.swf", resources={"watts": "300 * processors + user_id * 0"})
    assert workload.jobs["watts"].to_list() == [1200, 1200]
    log = read(tmp_path, "sacct", text(sacct(AllocTRES="cpu=8,gres/gpu=2")))
    log.write(tmp_path / "log.parquet")
    assert clean_log(tmp_path / "log.parquet", resources={"watts": "gpus * 400"}).jobs["watts"].to_list() == [800]


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("watts=field_21", "no column 'field_21'; did you mean 'field_20'?"),
        ("watts=", "expected a formula"),
        ("watts", "expected a formula"),
        ("run_time=field_19", "a column of each log"),
        ("watts=field_19 *", "not a formula"),
    ],
)
def test_a_wrong_resource_is_one_line(further, capfd, formula, words):
    output = further.with_suffix(".parquet")
    assert call("clean", further, "-o", output, "--lenient", "--resource", formula) == 1
    assert words in (error := capfd.readouterr().err) and error.count("\n") == 1 and not output.exists()
    assert (
        call("clean", further, "-o", further.with_suffix(".out.swf"), "--lenient", "--resource", "watts=field_19") == 1
    )
    assert "no column for watts; expected .parquet" in capfd.readouterr().err


def test_conditions_use_the_columns_of_imported_logs(tmp_path):
    rows = (sacct(JobID=job, AllocTRES=f"cpu=8,mem={job}G,gres/gpu={job}") for job in (1, 2, 3))
    read(tmp_path, "sacct", text(*rows)).write(tmp_path / "log.parquet")
    for condition, kept in (("gpus > 2", [1, 2]), ("memory < 2048", [2, 3]), ("gpus is null", [1, 2, 3])):
        workload = clean_log(tmp_path / "log.parquet", flurries=[condition])
        assert workload.jobs["job_id"].to_list() == kept
    own = clean_log(tmp_path / "log.parquet", resources={"watts": "gpus * 400"}, flurries=["watts == 800"])
    assert own.jobs["watts"].to_list() == [400, 1200]
    with pytest.raises(SwflowError, match="unknown name 'site_job_id'"):
        clean_log(tmp_path / "log.parquet", flurries=["site_job_id == 1"])
    assert pl.read_parquet(tmp_path / "log.parquet").height == 3
