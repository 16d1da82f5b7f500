"""Test plausibility checks, each on a log with one problem, and no findings on a consistent log."""

import polars as pl
import pytest

from helpers.cli import call
from swflow.analysis.plausibility import check_log, check_workload
from swflow.files.tables import write_workload
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
    found = findings({"run_time": 3600, "requested_time": 3600}, *crowd, {"submit_time": 86400})["use-beyond-machine"]
    assert found.severity == "warning"  # the job that ends at that time does not run any more
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
    assert overlapping["overlapping-steps"].message.startswith("1 job ids are on 2 lines; 1 overlap another job")
    apart = findings({}, {"job_id": 1}, {"allocated_processors": 8})
    assert apart["repeated-job-ids"].message.startswith("1 job ids are on 2 lines; none overlaps")


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
    assert "2 jobs (20 %) have no estimate" in found["missing-estimates"].message
    assert findings(*[{"run_time": 600}] * 5)["past-estimates"].severity == "warning"


def test_jobs_from_before_the_record_are_no_gap():
    rows: list[dict] = [{"submit_time": 40 * 86400.0 + 3600 * number} for number in range(300)]
    old = {"submit_time": 0.0, "wait_time": 40 * 86400 + 100}
    found = findings(old, *rows)
    assert "gaps" not in found
    assert (found["earlier-jobs"].severity, found["earlier-jobs"].jobs) == ("note", 2)
    assert "2 jobs were submitted up to 40.0 days before the others" in found["earlier-jobs"].message
    found = findings(old | {"wait_time": 5}, *rows)  # its end is recorded
    assert "earlier-jobs" not in found and "40.0 days" in found["gaps"].message


def severity(check: str, rows: list[dict], **options) -> str | None:
    """Return the severity of a finding, or None if there is none."""
    found = findings(*rows, **options).get(check)
    return found.severity if found else None


def test_shares_of_estimates_decide_the_severity():
    def of(name: str, count: int, total: int) -> str | None:
        odd = {"missing-estimates": {"requested_time": 0}, "past-estimates": {"requested_time": 200, "run_time": 331}}
        usual = {"requested_time": 1, "run_time": 121} if name[0] == "m" else {"requested_time": 200, "run_time": 330}
        return severity(name, [odd[name]] * count + [usual] * (total - count))

    assert [of("missing-estimates", count, 20) for count in (0, 1, 2)] == [None, "note", "warning"]
    assert [of("past-estimates", count, 100) for count in (0, 1, 2)] == [None, None, "note"]
    assert [of("past-estimates", count, 10) for count in (1, 2, 3)] == ["note", "note", "warning"]


@pytest.mark.parametrize(
    ("interval", "count", "gap", "expected"),
    [
        (900, 600, 3 * 86400, None), (900, 600, 3 * 86400 + 1, "warning"), (900, 4000, 3 * 86400 + 1, "note"),
        (3600, 300, 149 * 3600, None), (3600, 300, 149 * 3600 + 1, "warning"), (1, 1, 1, None), (1, 2, 10**6, None),
        (900, 2594, 3 * 86400 + 1, "warning"), (900, 2595, 3 * 86400 + 1, "note"), (900, 3458, 4 * 86400, "note"),
    ],
)  # fmt: skip
def test_a_gap_lasts_days_and_many_mean_intervals(interval, count, gap, expected):
    times = [interval * number for number in range(count - 1)]
    rows = [{"submit_time": 10**7 + time} for time in [*times, (times[-1] if times else 0) + gap]]
    assert severity("gaps", rows) == expected
    assert severity("gaps", [row | {"job_id": count - place} for place, row in enumerate(rows)]) == expected


@pytest.mark.parametrize(
    ("back", "count", "expected"), [(3600, 101, None), (3601, 100, "note"), (3601, 101, "warning")]
)
def test_a_clock_that_is_set_back_by_more_than_an_hour_is_reported(back, count, expected):
    rows = [{"submit_time": 10000} for _ in range(count - 1)]
    assert severity("clock-jumps", [*rows, {"submit_time": 10000 - back}]) == expected
    assert severity("clock-jumps", [{"submit_time": 10000 - back, "job_id": count + 1}, *rows]) == expected


@pytest.mark.parametrize(
    ("usual", "burst", "user", "expected"),
    [(1, 500, 1, "warning"), (1, 499, 1, None), (120, 600, 1, "warning"), (120, 599, 1, None), (1, 500, 2, None)],
)
def test_a_flurry_has_500_jobs_in_a_week_and_five_times_the_median(usual, burst, user, expected):
    begin = 302300  # twice this time, the third week would end 200 s after the beginning of the burst
    times = [begin + 604800 * week + number for week in range(2) for number in range(usual)]
    bursts = [{"submit_time": begin + 604800 * 2 + number, "user_id": 2} for number in range(burst)]
    rows = [*({"submit_time": time, "user_id": user} for time in times), *bursts]
    assert severity("flurries", rows, processors=1000) == expected


CAUSES = {
    "larger": "the machine is larger", "turns": "took turns", "rounded": "times rounded", "threads": "hardware threads",
    "nodes": "may be in nodes", "partitions": "2 partitions", "wrong": "wrong times or sizes",
}  # fmt: skip


@pytest.mark.parametrize(
    ("jobs_of_log", "header", "expected", "causes"),
    [
        ([(60, 10000), (41, 1000)], {}, "note", ["rounded"]),
        ([(60, 10000), (42, 1000)], {}, "warning", ["rounded"]),
        ([(60, 10000), (49, 1000)], {}, "warning", ["rounded"]),
        ([(60, 10000), (50, 1000)], {}, "warning", ["wrong"]),
        ([(60, 10000), (50, 9)], {}, "note", ["wrong"]),
        ([(60, 10000), (50, 10)], {}, "warning", ["wrong"]),
        ([(60, 10000), (60, 500)], {}, "warning", ["wrong"]),
        ([(60, 10000), (59, 501)], {}, "warning", ["wrong"]),
        ([(60, 10000), (60, 501)], {}, "error", ["wrong"]),
        ([(60, 10000), (41, 10000)], {}, "error", ["larger"]),
        ([(50, 10000), (51, 2000)], {}, "note", ["rounded"]),
        ([(50, 10000), (51, 2001)], {}, "note", ["larger"]),
        ([(99, 10000), (100, 2001), (1, 2001)], {}, "error", ["threads", "larger"]),
        ([(50, 10000), (100, 400), (55, 400)], {}, "warning", ["threads"]),
        ([(50, 10000), (100, 400), (56, 400)], {}, "warning", ["wrong"]),
        ([(100, 10000), (100, 2001), (6, 2001)], {}, "error", ["larger", "turns"]),
        ([(100, 10000), *[(100, 400)] * 3], {}, "error", ["threads"]),
        ([(100, 10000), *[(100, 400)] * 7], {}, "error", ["threads"]),
        ([(60, 10000), (50, 10)], {"MaxNodes": ["100"]}, "warning", ["nodes"]),
        ([(60, 10000), (50, 10)], {"MaxNodes": ["100"], "MaxProcs": ["100"]}, "warning", ["wrong"]),
        ([(60, 10000), (50, 10)], {"MaxNodes": ["99"]}, "warning", ["wrong"]),
        ([(60, 10000, 1), (40, 10, 1), (10, 10, 2)], {}, "warning", ["partitions"]),
        ([(60, 10000, 1), (41, 10, 1), (9, 10, 2)], {}, "warning", ["wrong"]),
        ([(60, 10000, 1), (40, 10, 1), (10, 10, None)], {}, "warning", ["wrong"]),
        ([(100, 10000), (100, 2001)], {}, "error", ["threads", "larger"]),
    ],
)
def test_the_extent_of_use_beyond_the_machine_decides_severity_and_causes(jobs_of_log, header, expected, causes):
    rows = [
        {"submit_time": 0, "allocated_processors": width, "run_time": run, "requested_time": run}
        | ({"partition_id": part[0]} if part else {})
        for width, run, *part in jobs_of_log
    ]
    found = findings(*rows, processors=100, header=header)["use-beyond-machine"]
    assert found.severity == expected
    widest = sorted(enumerate(jobs_of_log, 1), key=lambda job: -job[1][0])[:3]
    assert f"(the widest: {', '.join(str(number) for number, _ in widest)})" in found.message
    assert [name for name, text in CAUSES.items() if text in found.message] == sorted(causes, key=[*CAUSES].index)


def test_jobs_with_an_unknown_time_or_width_use_nothing():
    rows = [{"submit_time": 7200, "allocated_processors": 8, "run_time": 3600, "requested_time": 3600}] * 3
    expected = findings(*rows)["use-beyond-machine"]
    for name in ("run_time", "allocated_processors", "wait_time"):
        found = findings(*rows, {"submit_time": 7200, "allocated_processors": 8, "run_time": 3600} | {name: None})
        assert found["use-beyond-machine"] == expected, name


@pytest.mark.parametrize("start", [-8 * 10**10, 8 * 10**10, 3 * 10**11, 10**30])
def test_times_beyond_the_calendar_are_seconds(start):
    found = findings({"wait_time": -5}, header={"MaxProcs": ["8"], "UnixStartTime": [str(start)]})["negative-waits"]
    assert (found.moment is not None) == (start == 8 * 10**10)


def test_repeated_ids_overlap_by_their_starts():
    first = {"submit_time": 100, "wait_time": 500, "run_time": 60}
    for start, expected in ((659, "overlapping-steps"), (660, "repeated-job-ids")):
        found = findings(first, {"job_id": 1, "submit_time": 200, "wait_time": start - 200}, {"job_id": 3})
        assert {"overlapping-steps", "repeated-job-ids"} & found.keys() == {expected}


def test_shares_of_less_than_a_second():
    columns = {"submit_time": 0.0, "wait_time": 0.0, "run_time": 0.5, "processors": 8, "requested_time": 0.5}
    table = pl.DataFrame([{"job_id": number} | columns for number in (1, 2)])
    found = {each.check: each for each in check_workload(Workload(table, Machine.of(8), "log"))}
    assert "for 100 % of the time; recorded utilization 2." in found["use-beyond-machine"].message


def test_boundaries_of_use_ids_and_percentages():
    assert severity("never-full", [{"allocated_processors": 4}]) is None
    assert severity("never-full", [{"allocated_processors": 3}]) == "note"
    steps = [{"run_time": 100}, {"job_id": 1, "submit_time": 3699}]
    assert list(findings(*steps, {"allocated_processors": 8})) == ["overlapping-steps"]
    steps[1]["submit_time"] = 3700
    assert list(findings(*steps, {"allocated_processors": 8})) == ["repeated-job-ids"]
    rows = [{"wait_time": None}] + [{"allocated_processors": 8}] * 100
    assert "1 jobs (less than 1 %)" in findings(*rows)["unknown-waits"].message
    assert "1 jobs (1 %)" in findings(*rows[:-1])["unknown-waits"].message
    assert "by up to 5 s" in findings({"wait_time": -2}, {"wait_time": -5})["negative-waits"].message
    assert severity("no-run-time", [{"run_time": 1}]) is None
    found = findings(*[{"run_time": 0, "wait_time": 50}, {"run_time": 0, "wait_time": 70}, {"run_time": None}, {}] * 25)
    assert found["no-run-time"].message.startswith("75 jobs (75 %) have no run time; cleaning removes them. 50 of them")
    assert "their waits, 60 s in the mean" in found["no-run-time"].message


@pytest.mark.parametrize(("last", "expected"), [(50, "warning"), (51, "error")])
def test_a_recorded_utilization_above_1_is_an_error(last, expected):
    """For 10 s, 110 of 100 processors are busy, then 50 or 51 for 2 s."""
    first, second = ({"submit_time": 0, "allocated_processors": width, "run_time": 10} for width in (60, 50))
    third = {"submit_time": 10, "allocated_processors": last, "run_time": 2}
    assert severity("use-beyond-machine", [first, second, third], processors=100) == expected


@pytest.mark.parametrize("changed", [{"run_time": 0.0}, {"processors": 0}])
def test_jobs_that_use_nothing_record_no_schedule(changed):
    columns = {"job_id": 1, "submit_time": 0.0, "wait_time": 0.0, "run_time": 9.0, "processors": 8} | changed
    found = check_workload(Workload(pl.DataFrame([columns]), Machine.of(8), "log"))
    assert "no-wait-times" in {each.check for each in found}


@pytest.mark.parametrize(("requested", "run", "expected"), [(0, 600, None), (1, 122, "warning"), (1, 121, None)])
def test_only_jobs_with_an_estimate_run_past_it(requested, run, expected):
    assert severity("past-estimates", [{"requested_time": requested, "run_time": run}] * 3) == expected


def test_flurries_are_in_the_order_of_their_users_and_need_a_user():
    users = [7, 3, 9, None, 1, 8]
    rows = [{"submit_time": 10.0 * place, "user_id": user} for place, user in enumerate(users * 500)]
    calm = [{"submit_time": 604800.0 * week, "user_id": 2} for week in range(1, 9)]
    workload = Workload(prepared(jobs(*rows, *calm)), Machine.of(10**6), "log")
    found = [each for each in check_workload(workload) if each.check == "flurries"]
    assert [each.message.split()[1] for each in found] == ["7", "3", "9", "1", "8"]
    assert "flurries" not in findings(*[{"user_id": None}] * 3)


def test_a_flurry_names_the_user_and_how_to_remove_it():
    calm = [{"submit_time": 6048.0 * number} for number in range(400)]
    burst = [{"submit_time": 604800.0 + number, "user_id": 2, "run_time": 1} for number in range(600)]
    found = findings(*calm, *burst, processors=1000)["flurries"]
    assert "user bob (2) submitted" in found.message
    assert '--flurries "user_id == 2 and 101 <= job_id <= 1000"' in found.message
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
    assert "log.swf: 2 jobs; machine: 8 processors; 4 errors, 0 warnings, 0 notes" in err
    assert call("check", "log.swf", "--strict") == 1
    assert call("check", "nothing.swf") == 1
    assert "nothing.swf: no such file" in capfd.readouterr().err


def test_a_workload_is_checked_on_its_machine_or_the_given_one(tmp_path):
    workload = Workload(prepared(jobs({}, {"allocated_processors": 8})), Machine.of(8), "log", HEADER)
    write_workload(workload, tmp_path / "log.parquet")
    found, machine, count = check_log(tmp_path / "log.parquet")
    assert (found, machine, count) == (check_workload(workload), Machine.of(8), 2)
    found, machine, _ = check_log(tmp_path / "log.parquet", 7)
    assert machine.processors == 7 and "wider-than-machine" in {each.check for each in found}


@pytest.mark.parametrize(("processors", "expected"), [(None, "unknown-machine"), (20, None)])
def test_a_guessed_machine_size_is_reported(tmp_path, processors, expected):
    (tmp_path / "log.swf").write_text("1 0 0 60 9 -1 -1 9 90 -1 1 1 1 1 1 1 -1 -1\n")
    found = {each.check for each in check_log(tmp_path / "log.swf", processors)[0]}
    assert found - {"never-full"} == ({expected} if expected else set())
