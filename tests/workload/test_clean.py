"""Tests of cleaning, selecting, and their conditions."""

from datetime import UTC, datetime

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.conditions import condition
from swflow.jobs.machine import Machine
from swflow.jobs.table import JOB_COLUMNS, SWF_FIELDS, Workload
from swflow.workload.clean import clean, clean_log
from swflow.workload.steps.select import select

UNKNOWN = dict.fromkeys(SWF_FIELDS, -1)


def fields(*rows: dict) -> pl.DataFrame:
    """Return the fields of a log from rows with the known values."""
    return pl.DataFrame([UNKNOWN | {"job_id": place} | row for place, row in enumerate(rows, 1)], schema=SWF_FIELDS)


def test_every_removed_job_is_counted_under_its_first_reason():
    log = fields(
        {"submit_time": 0, "run_time": 10, "allocated_processors": 4, "user_id": 1},
        {"submit_time": 1, "run_time": 10},
        {"submit_time": 2, "run_time": 10, "requested_processors": 99},
        {"submit_time": 3, "allocated_processors": 1},
        {"submit_time": 4, "run_time": 0, "allocated_processors": 1},
        {"submit_time": 5, "run_time": 9, "allocated_processors": 1, "user_id": 7},
        {"submit_time": 6, "run_time": 9, "allocated_processors": 1, "status": 5},
    )
    workload = clean(log, Machine.of(8), name="tiny", flurries=["user_id == 7"], without_status=[5])
    assert workload.jobs["job_id"].to_list() == [1]
    assert workload.history[0]["removed"] == {
        "user_id == 7": 1,
        "status-5": 1,
        "no-processors": 1,
        "wider-than-machine": 1,
        "unknown-run-time": 1,
        "zero-run-time": 1,
    }
    assert workload.history[0]["read"] == 7


def test_only_the_named_rules_remove_jobs():
    log = fields({"submit_time": 0}, {"submit_time": 1, "run_time": 0, "allocated_processors": 99})
    assert clean(log, Machine.of(8), name="tiny", drop=[]).jobs.height == 2


def test_derived_columns_and_order():
    log = fields(
        {"submit_time": 9, "run_time": 5, "allocated_processors": 0, "requested_processors": 3, "requested_time": 60},
        {"submit_time": 9, "run_time": 5, "allocated_processors": 2, "requested_processors": 3},
        {"submit_time": 1, "run_time": 5, "allocated_processors": 2},
    )
    jobs = clean(log, Machine.of(8), name="tiny").jobs
    assert jobs.columns == list(JOB_COLUMNS)
    assert jobs.select("job_id", "processors", "estimate").rows() == [(3, 2, 5), (1, 3, 60), (2, 2, 5)]
    assert jobs["user_id"].null_count() == 3


def test_period_is_by_submit_time():
    log = fields(*({"submit_time": time, "run_time": 1, "allocated_processors": 1} for time in (0, 10, 20)))
    workload = clean(log, Machine.of(8), name="tiny", period=(10, 20))
    assert workload.jobs["submit_time"].to_list() == [10]
    assert workload.history[0]["removed"] == {"before-period": 1, "after-period": 1}


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([{"submit_time": 0}], {}, "jobs were removed"),
        ([{"submit_time": 0}], {"drop": ["no-processor"]}, "unknown rule 'no-processor'"),
        ([{"run_time": 1}], {"drop": []}, "have no submit time"),
        ([{"submit_time": 0, "job_id": 3}] * 2, {"drop": []}, "expected unique job ids"),
        ([{"submit_time": 0}], {"flurries": ["usr == 1"]}, "unknown name 'usr' at position 1; did you mean"),
    ],
)
def test_invalid_logs_are_errors_with_a_reason(rows, options, words):
    with pytest.raises(SwflowError, match=words):
        clean(fields(*rows), Machine.of(8), name="tiny", **options)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "user_id",
        "user_id = 1",
        "open(1)",
        "user_id.real == 1",
        "'a' == 'a'",
        "[1] == 1",
        "1 +",
        "True",
    ],
)
def test_conditions_are_not_executed_as_code(text):
    with pytest.raises(SwflowError, match=r"^here: "):
        condition(text, ["user_id"], "here")


def test_conditions_agree_with_python():
    table = pl.DataFrame({"a": [1, 2, 3, None], "b": [3, 2, 1, 0]})
    kept = {
        "a < b": [1],
        "1 < a <= 3 and not b == 1": [2],
        "a == 1 or a == 3": [1, 3],
        "a * 2 - b % 2 >= 4 / 2 + a // 2": [2, 3],
        "-a == -(2 ** 1)": [2],
        "not a == 1": [2, 3],
    }
    for text, expected in kept.items():
        assert table.filter(condition(text, table.columns, "here"))["a"].to_list() == expected, text


def test_select_keeps_unknown_status_and_counts():
    table = pl.DataFrame({"job_id": [1, 2, 3, 4], "status": [1, 5, None, 0], "processors": [1, 2, 3, 4]})
    workload = Workload(table, Machine.of(8), "tiny")
    assert select(workload, without_status=[5]).jobs["job_id"].to_list() == [1, 3, 4]
    assert select(workload, status=[0, 1]).jobs["job_id"].to_list() == [1, 4]
    assert select(workload, where="processors > 1", jobs=2).history[0]["removed"] == {
        "not (processors > 1)": 1,
        "after-first-2": 1,
    }
    with pytest.raises(SwflowError, match="jobs were removed"):
        select(workload, where="processors > 9")


def test_a_workload_survives_its_file_and_the_same_one_gives_the_same_bytes(tmp_path):
    log = fields({"submit_time": 0, "run_time": 10, "allocated_processors": 4})
    workload = clean(log, Machine.of(8, 2), name="tiny", header={"Computer": ["toy"]})
    for name in ("tiny", "again"):
        write_workload(workload, tmp_path / f"{name}.parquet")
    read = read_workload(tmp_path / "tiny.parquet")
    assert read.jobs.equals(workload.jobs)
    assert (read.machine, read.header, read.history) == (workload.machine, workload.header, workload.history)
    assert (tmp_path / "tiny.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()


def test_the_machine_is_from_the_option_the_header_or_the_widest_job(tmp_path):
    line = "1 0 -1 5 6 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
    bare, headed = tmp_path / "bare.swf", tmp_path / "headed.swf"
    bare.write_text(line)
    headed.write_text("; MaxNodes: 4\n; MaxProcs: 16\n" + line)
    assert clean_log(bare).machine == Machine(6, 6)
    assert clean_log(headed).machine == Machine(16, 4)
    assert clean_log(headed, processors=32).machine == Machine(32, 32)
    assert clean_log(bare).history[0]["machine_from"] == "widest job"


@pytest.mark.archive
def test_published_numbers_of_jobs(traces):
    """Minh & Wolters 2009, Table 1: 37,517 jobs of LANL-CM5 from January to September 1996."""
    log = traces / "LANL-CM5-1994-4.1-cln.swf.gz"
    january, october = datetime(1996, 1, 1, tzinfo=UTC), datetime(1996, 10, 1, tzinfo=UTC)
    assert clean_log(log, since=january, until=october).jobs.height == 37_517
    assert clean_log(log, since=january.date(), until=october.date()).jobs.height == 37_512  # in local time of the site
