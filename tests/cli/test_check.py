"""Test plausibility checks, each on a log with one problem, and no findings on a consistent log."""

import polars as pl
import pytest

from helpers.cli import call
from swflow.analysis.plausibility import check_log, check_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import SWF_FIELDS, Workload
from swflow.workload.clean import prepared

HEADER = {"MaxProcs": ["8"], "UnixStartTime": ["1704700800"], "User": ["1 ada", "2 bob"]}


def jobs(*rows: dict) -> pl.DataFrame:
    """Return job fields; default: 1 processor for 60 s, submitted 1 h after the previous job."""
    table = [
        {"job_id": number, "submit_time": 3600.0 * number, "wait_time": 0, "run_time": 60, "allocated_processors": 1,
         "requested_time": 90, "status": 1, "user_id": number % 2 + 1} | row
        for number, row in enumerate(rows, 1)
    ]  # fmt: skip
    return pl.DataFrame(table, schema={name: SWF_FIELDS[name] for name in table[0]}).select(
        (pl.col(name) if name in table[0] else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in SWF_FIELDS.items()
    )


def findings(*rows: dict, processors: int = 8, header=HEADER) -> dict:
    """Return the findings by the name of the check."""
    workload = Workload(prepared(jobs(*rows)), Machine.of(processors), "log", header)
    found = check_workload(workload)
    assert len({each.check for each in found}) == len(found)
    return {each.check: each for each in found}


def test_a_consistent_log_has_no_findings():
    assert findings(*[{"allocated_processors": 4 + number % 5} for number in range(50)]) == {}


def test_use_beyond_the_machine_states_time_jobs_and_cause():
    crowd = [{"submit_time": 7200, "allocated_processors": 8, "run_time": 3600} for _ in range(3)]
    found = findings({}, *crowd, {"submit_time": 86400})["use-beyond-machine"]
    assert found.severity == "warning"
    assert "24 of 8 processors were busy on 2024-01-08 10:00 UTC, by 3 jobs (the widest: 2, 3, 4)" in found.message
    assert (found.jobs, found.first_job_id, str(found.moment)) == (3, 2, "2024-01-08 10:00:00")
    found = findings(*crowd)["use-beyond-machine"]
    assert found.severity == "error"
    assert "recorded utilization 3." in found.message
    assert "the machine is larger (24 or more" in found.message
    halves = [row | {"partition_id": number % 2, "allocated_processors": 8} for number, row in enumerate(crowd[:2])]
    found = findings(*halves)["use-beyond-machine"]
    assert "2 partitions, each of which stays within the machine" in found.message
    assert "hardware threads" in found.message


def test_a_job_releases_its_processors_when_it_ends():
    row = {"allocated_processors": 8, "run_time": 3600, "requested_time": 3600}
    assert findings(*[row] * 5) == {}


def test_widths_waits_and_ids():
    found = findings({"allocated_processors": 9}, {"wait_time": -5}, {"wait_time": None}, {"run_time": 0}, {})
    assert {name: (each.severity, each.jobs, each.first_job_id) for name, each in found.items()} == {
        "wider-than-machine": ("error", 1, 1),
        "use-beyond-machine": ("error", 1, 1) if found["use-beyond-machine"].severity == "error" else ("warning", 1, 1),
        "negative-waits": ("warning", 1, 2),
        "unknown-waits": ("note", 1, 3),
        "no-run-time": ("note", 1, 4),
    }
    silent = findings(*[{"wait_time": None}] * 3)
    assert list(silent) == ["no-wait-times"]
    overlapping = findings({"run_time": 600}, {"job_id": 1, "submit_time": 3700}, {"allocated_processors": 8})
    assert overlapping["overlapping-steps"].jobs == 1
    apart = findings({}, {"job_id": 1}, {"allocated_processors": 8})
    assert "repeated-job-ids" in apart


def test_clocks_gaps_and_estimates():
    rows: list[dict] = [{"allocated_processors": 8} for _ in range(300)]
    rows[100] = rows[100] | {"submit_time": 3600.0 * 101 - 7300}
    rows[299] = rows[299] | {"submit_time": 3600.0 * 300 + 10 * 86400}
    found = findings(*rows)
    assert (found["clock-jumps"].jobs, found["clock-jumps"].first_job_id) == (1, 101)
    assert found["gaps"].first_job_id == 300
    assert "10.0 days" in found["gaps"].message
    found = findings(*[{"requested_time": None if number < 2 else 90} for number in range(10)])
    assert (found["missing-estimates"].severity, found["missing-estimates"].jobs) == ("warning", 2)
    assert findings(*[{"run_time": 600}] * 5)["past-estimates"].severity == "warning"


def test_a_flurry_names_the_user_and_how_to_remove_it():
    calm = [{"submit_time": 6048.0 * number} for number in range(400)]
    burst = [{"submit_time": 604800.0 + number, "user_id": 2, "run_time": 1} for number in range(600)]
    found = findings(*calm, *burst, processors=1000)["flurries"]
    assert "user bob (2) submitted" in found.message
    assert '--flurries "user_id == 2 and' in found.message
    assert found.severity == "warning"


def test_the_record_is_not_checked_on_another_machine():
    crowd = prepared(jobs(*[{"submit_time": 7200, "allocated_processors": 8}] * 3))
    scaled = Workload(crowd, Machine.of(8), "log+scaled", {}, ({"stage": "clean"}, {"stage": "scale"}))
    assert [each.check for each in check_workload(scaled)] == []


def test_the_command_checks_logs_before_cleaning(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    lines = ["1 0 0 60 9 -1 -1 9 90 -1 1 1 1 1 1 1 -1 -1", "1 0 0 60 8 -1 -1 8 90 -1 1 1 1 1 1 1 -1 -1", "1 2 3"]
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    assert {each.check for each in check_log("log.swf")[0]} == {
        "overlapping-steps", "wider-than-machine", "use-beyond-machine", "malformed-lines",
    }  # fmt: skip
    assert call("check", "log.swf") == 0
    out, err = capfd.readouterr()
    assert "17 of 8 processors" in out
    assert "log.swf: 2 jobs; machine: 8 processors in 8 nodes; 4 errors, 0 warnings, 0 notes" in err
    assert call("check", "log.swf", "--strict") == 1
    assert call("check", "nothing.swf") == 1
    assert "nothing.swf: no such file" in capfd.readouterr().err


@pytest.mark.parametrize(("processors", "expected"), [(None, "unknown-machine"), (20, None)])
def test_a_guessed_machine_size_is_reported(tmp_path, processors, expected):
    (tmp_path / "log.swf").write_text("1 0 0 60 9 -1 -1 9 90 -1 1 1 1 1 1 1 -1 -1\n")
    found = {each.check for each in check_log(tmp_path / "log.swf", processors)[0]}
    assert found - {"never-full"} == ({expected} if expected else set())
