"""Test the values, names and counts of imported records of each format, at their boundaries."""

import json
import math
import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.log.importers.gwf import import_gwf
from swflow.log.importers.pbs import import_pbs
from swflow.log.importers.records import NOT_MODELLED, ImportedLog, Site
from swflow.log.importers.sacct import import_sacct
from swflow.log.importers.table import import_table

# -- jobcomp/filetxt


def completion(**changed: str) -> str:
    """Return a line of the plugin jobcomp/filetxt."""
    values = {
        "JobId": "7", "UserId": "ada(1001)", "GroupId": "staff(100)", "Name": "sim", "JobState": "COMPLETED",
        "Partition": "main", "TimeLimit": "120", "StartTime": "2024-01-08T08:10:00", "EndTime": "2024-01-08T09:10:00",
        "NodeList": "n[1-2]", "NodeCnt": "2", "ProcCnt": "8", "WorkDir": "/home/ada", "ReservationName": "",
        "Tres": "cpu=8,mem=16G,node=2,gres/gpu=2", "Account": "physics", "QOS": "normal", "WcKey": "",
        "Cluster": "alpha", "SubmitTime": "2024-01-08T08:00:00", "EligibleTime": "2024-01-08T08:00:00",
        "DerivedExitCode": "0:0", "ExitCode": "0:0",
    }  # fmt: skip
    order = [*values]
    values |= changed
    extra = ("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset")
    order[1:1] = [name for name in extra if name in values]
    return " ".join(f"{name}={values[name]}" for name in order if values[name] is not None)


def completions(tmp_path, *lines: str) -> tuple[ImportedLog, dict[str, dict]]:
    (tmp_path / "jobcomp.txt").write_text("\n".join(lines) + "\n")
    log = import_sacct(str(tmp_path / "jobcomp.txt"), Site())
    return log, {row["site_job_id"]: row for row in log.fields.iter_rows(named=True)}


def test_job_completions(tmp_path):
    log, jobs = completions(
        tmp_path,
        completion(),
        completion(JobId="8", Name="two\nlines Partition=x StartTime=now", ReservationName="maint"),
        completion(JobId="10", Name="x JobState=FAILED", WorkDir="/home/a b/Tres=cpu=99 Account=art QOS=high"),
        completion(JobId="11", ArrayJobId="9", ArrayTaskId="2"),
        completion(JobId="21", HetJobId="20", HetJobOffset="1", ProcCnt="3", UserId="bob(7)(1002)"),
        completion(JobId="20", HetJobId="20", HetJobOffset="0"),
        completion(JobId="30", TimeLimit="UNLIMITED", JobState="TIMEOUT", Tres=""),
        "JobId=31 JobState=COMPLETED",
        completion(JobId="32", SubmitTime=None),
        completion(JobId="40", HetJobId="39", Name="x"),
        completion(JobId="41", ArrayTaskId="3"),
        "JobId=42 JobState=COMPLETED StartTime=2024-01-08T08:10:00 EndTime=2024-01-08T09:10:00",
    )
    assert jobs.keys() == {"7", "8", "9_2", "10", "20", "30", "40", "41"}
    for name in ("8", "10"):
        of_job = {key: value for key, value in jobs[name].items() if key not in ("job_id", "site_job_id")}
        assert of_job == {key: jobs["7"][key] for key in of_job} | {"executable_id": of_job["executable_id"]}
    job = jobs["7"]
    assert (job["submit_time"], job["wait_time"], job["run_time"], job["requested_time"]) == (0, 600, 3600, 7200)
    assert (job["allocated_processors"], job["requested_processors"], job["status"], job["gpus"]) == (8, 8, 1, 2)
    assert jobs["20"]["allocated_processors"] == 11
    assert (jobs["30"]["status"], jobs["30"]["requested_time"], jobs["30"]["gpus"]) == (0, None, None)
    assert log.header.names_of("user_id") == {1: "ada", 2: "bob(7)"}
    assert log.header.names_of("group_id") == {1: "physics"}
    assert log.header["Computer"] == ["alpha"]
    assert log.tally.removed == {"malformed line": (1, 9), "no submit time": (2, 10)}
    assert jobs["10"]["executable_id"] != jobs["40"]["executable_id"]
    assert log.tally.notes["jobs in advance reservations"] == (1, 2)
    assert log.tally.notes["tasks of arrays"] == (1, 5)
    log, _ = completions(tmp_path, "", completion(), "JobId=1 Name=x")
    assert log.tally.removed == {"malformed line": (1, 3)}
    with pytest.raises(SwflowError, match="no valid record of jobcomp/filetxt"):
        completions(tmp_path, "JobId=1 Name=x")


# -- PBS


def pbs(tmp_path, *records: str, site: Site | None = None) -> ImportedLog:
    (tmp_path / "pbs.txt").write_text("\n".join(records) + "\n")
    return import_pbs(str(tmp_path / "pbs.txt"), site or Site())


def ended(job: str = "1.f", hosts: str = "n1/0", **changed: str) -> str:
    """Return the record of a job that ran from 100 to 200."""
    values = {"user": "a", "ctime": "50", "start": "100", "end": "200", "exec_host": hosts} | changed
    return f"01/08/2024 09:10:00;E;{job};" + " ".join(f"{name}={value}" for name, value in values.items() if value)


def test_jobs_of_two_servers_of_pbs_are_no_reruns(tmp_path):
    log = pbs(
        tmp_path,
        ended("12.a", ctime="2", start="12", end="1000"),
        ended("12.b", ctime="5", start="20", depend="afterok:11.b"),
        ended("11.a", ctime="3"),
        ended("11.b", ctime="4", start="6", end="12"),
        ended("13[0].b", ctime="30", depend="afterany:11@front"),
        ended("14.b", ctime="31", depend="afterok:13[]:12.a"),
    )
    jobs = log.fields.sort("submit_time")
    assert jobs["site_job_id"].to_list() == ["12.a", "11.a", "11.b", "12.b", "13[0].b", "14.b"]
    assert jobs["wait_time"].to_list() == [10, 97, 2, 15, 70, 69]
    assert jobs["depends_on"].to_list() == [None, None, None, [3], [3], [1, 5]]
    assert log.tally.notes["jobs of 2 servers taken as one machine"][0] == 6


def test_records_of_one_number_of_pbs_are_reruns_if_one_follows_the_other(tmp_path):
    log = pbs(tmp_path, ended(), ended(start="150", end="300"), ended(ctime="400", start="450", end="500"))
    assert log.fields["wait_time"].to_list() == [50, 100, 50]
    assert log.tally.notes == {"records of one job that overlap in time (not reruns)": (1, 2)}


def test_places_and_requests_of_pbs_equal_their_definitions(tmp_path):
    """A host with a factor has this many processors; otherwise each of its numbers is one."""
    rng = random.Random(3)
    expected, rows = [], []
    for job in range(40):
        hosts, processors = [], 0
        for host in rng.sample(range(9), rng.randint(1, 4)):
            factor = rng.choice([None, None, rng.randint(1, 9)])
            parts = [(low, low + rng.randint(0, 3)) for low in range(0, 4 * rng.randint(1, 3), 4)]
            processors += factor or sum(high - low + 1 for low, high in parts)
            text = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
            hosts.append((f"n{host}/{text}" + (f"*{factor}" if factor else ""), host))
        chunks = [(rng.randint(1, 3), rng.choice([None, rng.randint(1, 4)]), rng.choice([None, rng.randint(1, 2)]))
                  for _ in range(rng.randint(1, 3))]  # fmt: skip
        key, cpus, gpus = rng.choice([("select", "ncpus", "ngpus"), ("nodes", "ppn", "gpus")])
        request = "+".join(
            f"{count}:x" + (f":{cpus}={each}" if each else "") + (f":{gpus}={some}" if some else "")
            for count, each, some in chunks
        )
        rows.append(ended(f"{job}.f", "+".join(text for text, _ in hosts), **{f"Resource_List.{key}": request}))
        requested = sum(count * (each or 1) for count, each, _ in chunks)
        with_gpus = sum(count * (some or 0) for count, _, some in chunks)
        if all(text.partition("/")[2].isdigit() for text, _ in hosts):  # the list does not count processors
            processors = max(processors, requested)
        expected.append((processors, requested, len(hosts), with_gpus or None))
    log = pbs(tmp_path, *rows)
    names = ("allocated_processors", "requested_processors", "nodes", "gpus")
    assert log.fields.select(names).rows() == expected
    assert log.tally.notes["jobs with GPUs"][0] == sum(gpus is not None for *_, gpus in expected)


@pytest.mark.parametrize(
    ("changed", "column", "expected"),
    [
        ({}, "requested_processors", None), ({"Resource_List.ncpus": "3"}, "requested_processors", 3),
        ({"Resource_List.nodes": "4"}, "requested_processors", 4),
        ({"Resource_List.nodes": "4", "Resource_List.ncpus": "8"}, "requested_processors", 8),
        ({"exec_host": "", "resources_used.ncpus": "5"}, "allocated_processors", 5),
        ({"exec_host": "", "resources_used.ncpus": "5"}, "nodes", None),
        ({"exec_host": "n1/0+n1/1+n2/5"}, "nodes", 2), ({"Exit_status": "0"}, "status", 1),
        ({"Exit_status": "271"}, "status", 5), ({"Exit_status": "-1"}, "status", 5),
        ({"Exit_status": "1"}, "status", 0),
        ({"Exit_status": "270"}, "status", 0), ({}, "status", None), ({"Resource_List.ngpus": "2"}, "gpus", 2),
        ({"Resource_List.ngpus": "0"}, "gpus", None), ({"qtime": "60", "ctime": ""}, "wait_time", 40),
        ({"etime": "70", "ctime": ""}, "wait_time", 30), ({"qtime": "60", "etime": "70"}, "wait_time", 50),
        ({"etime": "70"}, "eligible_after", 20), ({"start": "01/01/1970 00:02:30"}, "wait_time", 100),
        ({"start": "01/01/1970 00:02:30"}, "run_time", 50), ({"Resource_List.mem": "3mb"}, "memory", 3),
        ({"Resource_List.select": "2:ncpus=1:mem=3mb+1:mem=512kb"}, "memory", 7),
        ({"Resource_List.select": "3:ncpus=1:mem=1mw"}, "memory", 24),
        ({"Resource_List.select": "2:ncpus=1:mem=3mb", "Resource_List.mem": "9mb"}, "memory", 9),
        ({"Resource_List.mem": "1025kb"}, "memory", 2), ({"Resource_List.mem": "2048"}, "requested_memory", 2),
        ({"exec_host": "n1/0-3", "Resource_List.mem": "8kb"}, "requested_memory", 2),
        ({"exec_host": "n1/0-3", "resources_used.mem": "6kb"}, "used_memory", 1.5),
        ({"exec_host": "n1/0-3", "resources_used.cput": "00:01:00"}, "average_cpu_time", 15),
        ({"exec_host": "", "Resource_List.ncpus": "2", "resources_used.cput": "60"}, "average_cpu_time", 30),
        ({"Resource_List.walltime": "90"}, "requested_time", 90), ({"end": "100"}, "run_time", 0),
        ({"exec_host": "n1/3-"}, "allocated_processors", None), ({"exec_host": "n1/-3"}, "allocated_processors", None),
    ],
)  # fmt: skip
def test_values_of_pbs(tmp_path, changed, column, expected):
    job = pbs(tmp_path, ended(**changed)).fields.row(0, named=True)
    assert job.get(column) == expected


def test_times_of_pbs_are_those_of_the_zone(tmp_path):
    """Of 2:30 on 29 October 2023, the first one counts in Stockholm."""
    times = {"ctime": "1698539400", "start": "10/29/2023 02:30:00", "end": "10/29/2023 03:30:00"}
    log = pbs(tmp_path, ended(**times), site=Site(time_zone="Europe/Stockholm"))
    assert log.fields.select("wait_time", "run_time").rows() == [(0, 7200)]


def test_names_of_pbs(tmp_path):
    log = pbs(
        tmp_path, ended("1.f", group="g", account="p"), ended("2.f", group="h", project="_pbs_project_default"),
        ended("3.f", account="null", group=""), ended("4.f", group="g", project="q", jobname='"a b"'),
    )  # fmt: skip
    assert log.header.names_of("group_id") == {1: "p", 2: "h", 3: "q"}
    assert log.fields["group_id"].to_list() == [1, 2, None, 3]
    assert log.header.names_of("unix_group_id") == {1: "g"}
    assert log.fields["executable_id"].to_list() == [None, None, None, 1]


def test_records_of_pbs_that_are_left_out_or_noted(tmp_path):
    log = pbs(
        tmp_path, "no record", ended("1.f"), ended("1.f"), "continued", ended("2.f", end="99"), ended("3.f", end=""),
        ended("4[1].f"), ended("4[2].g", depend="afterok:1.f"), ended("5-1.f", depend="before:1.f"),
        ended("6.f", **{"resources_used.walltime": "40"}), ended("7.f", **{"resources_used.walltime": "39"}),
        "01/08/2024 08:00:00;W;1.f;", "01/08/2024 08:00:00;S;1.f;", "01/08/2024 08:00:00;S;2.f;",
    )  # fmt: skip
    assert log.tally.removed == {
        "malformed line": (1, 1), "ended before it started": (1, 5), "no start or no end": (1, 6),
        "the same record again": (1, 3),
    }  # fmt: skip
    assert log.tally.notes == {
        "mended: line breaks in a value": (1, 4), "tasks of arrays": (3, 7), "jobs that depend on others": (1, 8),
        "end - start differs from the wall time used": (1, 11), "W records (unknown)": (1, 12),
        "S records (started)": (2, 13), "jobs of 2 servers taken as one machine": (9, 2),
    }  # fmt: skip
    assert "Computer" not in log.header  # there are two servers
    assert log.fields["depends_on"].to_list()[2] == [1]


def test_a_rerun_of_pbs_is_submitted_when_the_run_before_it_ended(tmp_path):
    again = ended(start="300", end="400", depend="afterok:9.f")
    log = pbs(tmp_path, again, ended(), ended("2.f"), ended("2.f", ctime="250", start="300", end="350"), ended("9.f"))
    assert log.fields.select("site_job_id", "submit_time", "wait_time", "run_time").rows() == [
        ("1", 0, 50, 100), ("2", 0, 50, 100), ("9", 0, 50, 100), ("1", 150, 100, 100), ("2", 200, 50, 50),
    ]  # fmt: skip
    assert log.tally.notes["further runs of jobs that were rerun"] == (1, 1)  # the second 2.f is another job
    assert "depends_on" not in log.fields.columns


# -- tables


def table_of(tmp_path, frame: pl.DataFrame, mapping: str, site: Site | None = None) -> ImportedLog:
    frame.write_parquet(tmp_path / "jobs.parquet")
    (tmp_path / "mapping.yaml").write_text(mapping)
    return import_table(str(tmp_path / "jobs.parquet"), site or Site(), str(tmp_path / "mapping.yaml"))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Stockholm"])
def test_times_of_tables_are_those_of_the_zone_unless_they_state_one(tmp_path, zone):
    """Of 2:30 on 29 October 2023, the first one counts in Stockholm."""
    local = datetime(2023, 10, 29, 2, 30)
    moment = 1698539400 if zone != "UTC" else 1698546600
    known = datetime(2023, 10, 29, 0, 30, 0, 250000, UTC)
    frame = pl.DataFrame({
        "naive": [local], "zoned": [known], "text": ["2023-10-29 02:30:00"], "formed": ["29.10.2023 02:30"],
        "offset": ["2023-10-29T02:30:00.250+02:00"], "z": ["2023-10-29 00:30:00.25Z"], "number": ["1698539400.25"],
        "ms": [1698539400250], "r": [5], "n": [1], "other": ["29.10.2023 02:30 +0200"],
    })  # fmt: skip
    forms = {"formed": "'%d.%m.%Y %H:%M'", "other": "'%d.%m.%Y %H:%M %z'"}
    for column, expected in {
        "naive": moment, "zoned": 1698539400.25, "text": moment, "formed": moment, "offset": 1698539400.25,
        "z": 1698539400.25, "number": 1698539400.25, "ms": 1698539400.25, "other": 1698539400,
    }.items():  # fmt: skip
        options = ", unit: ms" if column == "ms" else f", format: {forms[column]}" if column in forms else ""
        mapping = f"columns: {{submit_time: {{column: {column}{options}}}, run_time: r, processors: n}}"
        log = table_of(tmp_path, frame, mapping, Site(time_zone=zone))
        began = int(log.header["UnixStartTime"][0])
        assert began + log.fields["submit_time"][0] == expected, column


@pytest.mark.parametrize("factor", ["true", "0", "-1", "x"])
def test_a_factor_is_a_positive_number(tmp_path, factor):
    mapping = f"columns: {{submit_time: t, run_time: {{column: t, factor: {factor}}}, processors: t}}"
    with pytest.raises(SwflowError, match=r"run_time: factor: .*; expected a finite number from"):
        table_of(tmp_path, pl.DataFrame({"t": [1]}), mapping)


def test_a_machine_has_at_least_one_processor_and_node():
    assert Site(processors=1, nodes=1).processors == 1
    for name in ("processors", "nodes"):
        with pytest.raises(SwflowError, match=f"--{name}: 0; expected at least 1"):
            Site(**{name: 0})


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("submit_time: t, end_time: t, processors: t", "run_time, or start_time and end_time, is missing"),
        ("submit_time: t, start_time: t, processors: t", "end_time or run_time is missing, but required"),
        ("submit_time: t, run_time: t", "nodes or processors or requested_processors is missing"),
        ("submit_time: t, run_time: t, nodes: [t]", "nodes: give a column's name, or {column: NAME, unit: min}"),
        ("submit_time: t, run_time: t, nodes: {unit: s}", "nodes: give a column's name, or {column: NAME, unit: min}"),
        ("submit_time: t, run_time: t, nodes: {column: t, units: s}", "nodes: unknown key 'units'"),
        ("submit_time: t, run_time: t, nodes: t, user: {column: t, factor: 2}", "factor does not apply to it"),
        ("submit_time: t, run_time: {column: t, unit: KB}, nodes: t", "run_time: unknown unit 'KB'"),
        ("submit_time: t, run_time: {column: t, pattern: '('}, nodes: t", "expected a regular expression"),
        ("submit_time: t, run_time: {column: t, pattern: 7}, nodes: t", "expected a regular expression"),
        ("submit_time: t, run_time: {column: t, pattern: '(a)(b)'}, nodes: t", "expected a regular expression"),
        ("submit_time: {column: text, format: 7}, run_time: t, nodes: t", "submit_time: format: 7; expected a text"),
        ("submit_time: {column: t, unit: [s]}, run_time: t, nodes: t", "submit_time: unknown unit ['s']"),
    ],
)  # fmt: skip
def test_mappings_are_checked(tmp_path, mapping, words):
    with pytest.raises(SwflowError) as caught:
        table_of(tmp_path, pl.DataFrame({"t": [1], "text": ["a"]}), f"columns: {{{mapping}}}")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_start_of_0_is_none_unless_the_log_begins_at_0(tmp_path):
    """The start of a job that never started is its end."""
    frame = pl.DataFrame({"t": [0.0, 1.0, 6.0], "s": [0.0, 0.0, 8.0], "e": [7.0, 9.0, 9.0]})
    log = table_of(tmp_path, frame, "columns: {submit_time: t, start_time: s, end_time: e, processors: t}")
    assert log.fields.select("wait_time", "run_time").rows() == [(0, 7), (8, 0), (2, 1)]
    assert log.tally.notes["never started (kept, with a run time of 0)"] == (1, 3)
    log = table_of(tmp_path, frame, "columns: {submit_time: t, start_time: s, run_time: e, processors: t}")
    assert log.fields["wait_time"].to_list() == [0, None, 2]


def test_a_table_with_brackets_in_its_name_and_zeros_in_its_ids(tmp_path):
    (tmp_path / "m.yaml").write_text("columns: {job_id: id, submit_time: t, run_time: t, processors: t}")
    pl.DataFrame({"id": ["007"], "t": [1]}).write_parquet(tmp_path / "jobs[1].parquet")
    (tmp_path / "jobs.csv").write_text("id;t\n007;1\n")
    for name in ("jobs[1].parquet", "jobs.csv"):
        log = import_table(str(tmp_path / name), Site(), str(tmp_path / "m.yaml"))
        assert log.fields["site_job_id"].to_list() == ["007"]


def test_a_name_of_a_column_beyond_all_limits_is_one_line(tmp_path):
    (tmp_path / "m.yaml").write_text("columns: {submit_time: t, run_time: t, processors: t}")
    (tmp_path / "jobs.csv").write_text(f"t,{'a' * 200_000}\n1,2\n")
    with pytest.raises(SwflowError, match=r"jobs\.csv:1: .*; expected the names of columns"):
        import_table(str(tmp_path / "jobs.csv"), Site(), str(tmp_path / "m.yaml"))


def test_a_status_is_a_whole_number_however_it_is_written(tmp_path):
    frame = pl.DataFrame({"t": [1, 2, 3], "s": ["good", "bad", "gone"]})
    columns = "{submit_time: t, run_time: t, processors: t, status: s}"
    log = table_of(tmp_path, frame, f"columns: {columns}\nstatus: {{good: 1.0, bad: -0.0, gone: 5}}")
    assert log.fields["status"].to_list() == [1, 0, 5]
    for wrong in ("true", "0.5", "[1]"):
        with pytest.raises(SwflowError, match=r"status: must map values to 0"):
            table_of(tmp_path, frame, f"columns: {columns}\nstatus: {{good: {wrong}}}")


def test_words_for_the_status_of_a_table(tmp_path):
    words = {"completed": 1, "cancelled": 5, "failed": 0, "timeout": 0}
    words |= {name.upper(): status for name, status in words.items()}
    words |= {"1": 1, "0": 0, "5": 5, "Done": 1, "odd": None}
    words |= dict.fromkeys(("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "FAILED by 3"), 0)
    frame = pl.DataFrame({"t": [1.0] * len(words), "state": [*words]})
    log = table_of(tmp_path, frame, "columns: {submit_time: t, run_time: t, processors: t, status: state}")
    assert log.fields["status"].to_list() == [*words.values()]
    columns = "columns: {submit_time: t, run_time: t, processors: t, status: state}\nstatus: "
    log = table_of(tmp_path, frame, columns + "{completed: 0, cancelled: 1, FAILED: 5}")
    assert log.fields["status"].to_list()[:3] == [0, 1, None] and log.fields["status"].sum() == 0 + 1 + 5 + 5
    for wrong in ("{completed: 0, cancelled: 7}", "[1]", "{completed: x}"):
        with pytest.raises(SwflowError, match=r"mapping.yaml: status: must map values to 0 \(failed\), 1"):
            table_of(tmp_path, frame, columns + wrong)
    with pytest.raises(SwflowError, match=r"mapping.yaml: unknown key 'states'; did you mean 'status'"):
        table_of(tmp_path, frame, "columns: {submit_time: t, run_time: t, processors: t}\nstates: {}")


@pytest.mark.parametrize(
    ("delimiter", "expected"),
    [("';'", True), ("''", True), ("','", False), ("7", False), ("é", False), ("'a;'", False)],
)
def test_a_delimiter_is_no_letter(tmp_path, delimiter, expected):
    (tmp_path / "jobs.csv").write_text("t;n,r\n0;1;5\n".replace("n,r", "n;r" if expected else "n,r"))
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(f"columns: {{submit_time: t, run_time: r, processors: n}}\ndelimiter: {delimiter}\n")
    if expected:
        assert import_table(str(tmp_path / "jobs.csv"), Site(), str(mapping)).fields["run_time"].to_list() == [5]
    else:
        words = "no column 't'" if delimiter == "','" else "mapping.yaml: delimiter: .*; expected one or several"
        with pytest.raises(SwflowError, match=words):
            import_table(str(tmp_path / "jobs.csv"), Site(), str(mapping))


def test_nested_values_of_tables(tmp_path):
    frame = pl.DataFrame({"t": [0], "n": [4], "r": [60], "who": [["ada", "eve"]], "ok": [True], "odd": [{"a": 1}]})
    mapping = "columns: {submit_time: t, processors: n, run_time: r, user: who, status: ok}\nstatus: {true: 1}\n"
    log = table_of(tmp_path, frame, mapping)
    assert (log.header.names_of("user_id"), log.fields["status"][0]) == ({1: "ada"}, 1)
    assert log.tally.notes == {"jobs with several names of a user (the first is taken)": (1, 2)}
    with pytest.raises(SwflowError, match=r"columns: memory: column 'odd' holds Struct.*; expected numbers, times or"):
        table_of(tmp_path, frame, mapping.replace("user: who", "memory: odd"))


def test_a_start_follows_from_the_end_and_the_run_time(tmp_path):
    frame = pl.DataFrame(
        {"t": [0, 0], "b": [None, 5], "e": [90, None], "r": [60, 7], "n": [4, 4], "code": ["0.0", "1.0"]}
    )
    mapping = "columns: {submit_time: t, start_time: b, end_time: e, processors: n, status: code, run_time: r}\n"
    log = table_of(tmp_path, frame, mapping + "status: {0: 1, other: 0}\n")
    assert log.fields.select("wait_time", "run_time", "status").rows() == [(30, 60, 1), (5, 7, 0)]
    log = table_of(tmp_path, frame, mapping.replace(", run_time: r", ""))
    assert log.tally.notes["without a start or an end (the run time is unknown)"] == (1, 3)


def test_values_of_tables(tmp_path):
    frame = pl.DataFrame({
        "t": [0.0, 1.0, 2.0, 3.0], "s": [None, 5.0, None, 9.0], "w": [4, 9, None, 2], "r": ["5", "0:10", "-1", "inf"],
        "n": ["2.5", "-1", "1:30", "0"], "state": ["COMPLETED", "CANCELLED by 3", "7", None],
        "span": [timedelta(0, 90)] * 4,
        "after": ["2", "", None, "1,3;2|4"], "list": [["2"], [], None, ["1"]], "text": ["a1b22", "b", None, "a3"],
        "array": ["0", "5", "5", None], "mem": [0.0, 0.1, math.inf, None], "q": ["a", " ", None, "b"], "most": [2] * 4,
    })  # fmt: skip
    log = table_of(tmp_path, frame, """columns:
  job_id: t
  submit_time: t
  start_time: s
  wait_time: w
  run_time: r
  processors: n
  requested_time: span
  status: state
  depends_on: after
  nodes: {column: text, pattern: '([0-9]+)'}
  array: array
  array_limit: most
  memory: mem
  queue: q
""")  # fmt: skip
    jobs = log.fields
    assert jobs["wait_time"].to_list() == [4, 4, None, 6]
    assert jobs["run_time"].to_list() == [5, 10, None, None]
    assert jobs["allocated_processors"].to_list() == [3, None, None, 0]
    assert jobs["requested_time"].to_list() == [90] * 4
    assert jobs["status"].to_list() == [1, 5, None, None]
    assert jobs["nodes"].to_list() == [23, None, None, 3]
    assert jobs["array_id"].to_list() == [None, 1, 1, None]
    assert jobs["memory"].to_list() == [None, 1, None, None]
    assert jobs["queue_id"].to_list() == [1, None, None, 2]
    assert log.tally.notes == {
        "unreadable run_time": (1, 5), "unreadable processors": (1, 4), "unreadable status": (1, 4),
        "unreadable memory": (2, 2), "run_time with one colon, read as minutes and seconds": (1, 3),
        "dependencies on jobs that are not in the log (left out)": (5, 2),
    }  # fmt: skip
    again = table_of(
        tmp_path, frame, "columns: {job_id: w, submit_time: t, run_time: t, processors: t, depends_on: list}"
    )
    assert again.fields["depends_on"].to_list() == [[4], None, None, None]


# -- sacct


#: A job of two processors that waited 10 min and ran for an hour.
SACCT = {
    "JobID": "1", "Cluster": "", "User": "a", "UID": "1001", "Group": "g", "GID": "100", "Account": "p",
    "Partition": "main", "QOS": "normal", "State": "COMPLETED", "Submit": "2024-01-08T08:00:00",
    "Eligible": "2024-01-08T08:00:00", "Start": "2024-01-08T08:10:00", "End": "2024-01-08T09:10:00",
    "Elapsed": "01:00:00", "Suspended": "00:00:00", "Timelimit": "02:00:00", "ReqCPUS": "2", "AllocCPUS": "2",
    "NNodes": "1", "ReqMem": "", "AllocTRES": "", "ReqTRES": "", "TotalCPU": "", "MaxRSS": "", "AveRSS": "",
    "NTasks": "", "Licenses": "", "Reservation": "",
}  # fmt: skip


def sacct(tmp_path, *jobs: dict[str, str], site: Site | None = None, drop=(), **options) -> ImportedLog:
    names = [name for name in SACCT if name not in drop]
    lines = ["|".join((SACCT | job).get(name, "") for name in names) for job in jobs]
    (tmp_path / "sacct.txt").write_text("\n".join(["|".join(names), *lines]) + "\n")
    return import_sacct(str(tmp_path / "sacct.txt"), site or Site(), **options)


#: Fields of a job, and a column with the value that they give it.
OF_SACCT = [
    ({"ReqCPUS": "", "ReqTRES": "cpu=3,mem=6M"}, "requested_processors", 3),
    ({"ReqCPUS": "0"}, "requested_processors", None),
    ({"ReqCPUS": "1"}, "requested_processors", 1),
    ({"AllocCPUS": "", "AllocTRES": "cpu=3"}, "allocated_processors", 3),
    ({"AllocTRES": "mem=3000K"}, "memory", 3), ({"AllocTRES": "mem=1025K"}, "memory", 2),
    ({"ReqTRES": "cpu=9,node=3", "NNodes": "4"}, "requested_nodes", 3),
    ({"ReqTRES": "mem=3M"}, "memory", 3), ({"ReqMem": "3M"}, "memory", 3),
    ({"ReqMem": "3Mc"}, "memory", 6), ({"ReqMem": "3Mn", "NNodes": "2"}, "memory", 6), ({}, "memory", None),
    ({"ReqMem": "3Mn", "NNodes": "2"}, "requested_memory", 3 * 1024),
    ({"ReqMem": "3Mc"}, "requested_memory", 3 * 1024),
    ({"ReqMem": "3M", "AllocCPUS": ""}, "requested_memory", 1536), ({"ReqMem": "0"}, "requested_memory", None),
    ({"ReqMem": "1Kc"}, "requested_memory", 1),
    ({"TotalCPU": "01:00:00"}, "average_cpu_time", 1800), ({"TotalCPU": "00:30.500"}, "average_cpu_time", 15.25),
    ({"AllocTRES": "gres/gpu=0"}, "gpus", 0), ({"ReqTRES": "gres/gpu=4"}, "gpus", 4),
    ({"Licenses": "a:2"}, "licenses", 2),
    ({"Licenses": "a:2", "ReqTRES": "license/a=3"}, "licenses", 3), ({"Licenses": "a:0"}, "licenses", None),
    ({"Licenses": "a:1"}, "licenses", 1), ({"Suspended": "00:10:00"}, "suspended_time", 600),
    ({"Elapsed": "", "Suspended": "00:10:00"}, "run_time", 3000),
    ({"End": "Unknown", "Suspended": "00:10:00"}, "run_time", 3600),
    ({"Eligible": "2024-01-08T08:00:01"}, "eligible_after", None),
    ({"Eligible": "2024-01-08T08:00:02"}, "eligible_after", 2),
    ({"Submit": "2024-01-08T08:00"}, "wait_time", 600), ({"Start": "2024-01-08T08:11"}, "wait_time", 660),
    ({"Timelimit": "90"}, "requested_time", 5400), ({"State": "CANCELLED", "Elapsed": "0"}, "run_time", 0),
    ({"State": "CANCELLED", "Elapsed": "0:1"}, "run_time", 1),
    ({"State": "FAILED", "Elapsed": "0"}, "allocated_processors", 2),
    ({"State": "CANCELLED", "Elapsed": "0"}, "allocated_processors", None),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("job", "column", "expected"), OF_SACCT)
def test_values_of_sacct(tmp_path, job, column, expected):
    assert sacct(tmp_path, job).fields.row(0, named=True).get(column) == expected


def test_values_of_sacct_do_not_depend_on_other_jobs(tmp_path):
    log = sacct(tmp_path, *({"JobID": str(place)} | job for place, (job, *_) in enumerate(OF_SACCT)))
    jobs = {row["site_job_id"]: row for row in log.fields.iter_rows(named=True)}
    found = [(job, column, jobs[str(place)].get(column)) for place, (job, column, _) in enumerate(OF_SACCT)]
    assert found == OF_SACCT


def test_jobs_without_a_limit_are_noted_by_its_kind(tmp_path):
    limits = ("UNLIMITED", "UNLIMITED", "Partition_Limit", "", "90")
    log = sacct(tmp_path, *({"JobID": str(place), "Timelimit": limit} for place, limit in enumerate(limits, 1)))
    assert {note: count for note, count in log.tally.notes.items() if "limit" in note} == {
        "time limit UNLIMITED: the estimate is unknown": (2, 2),
        "time limit Partition_Limit: the estimate is unknown (give --partition-limit)": (1, 4),
        "jobs without a Timelimit": (1, 5),
    }


def test_names_of_sacct(tmp_path):
    log = sacct(tmp_path, {"User": "", "Group": ""}, {"JobID": "2", "Account": "", "QOS": "Unknown"})
    named = {column: log.header.names_of(column) for column in ("user_id", "group_id", "unix_group_id", "queue_id")}
    assert named == {
        "user_id": {1: "1001", 2: "a"}, "group_id": {1: "p", 2: "g"}, "unix_group_id": {1: "100", 2: "g"},
        "queue_id": {1: "normal"},
    }  # fmt: skip
    log = sacct(tmp_path, {}, drop=["Account"])
    assert log.header.names_of("group_id") == {1: "g"} and log.header.names_of("unix_group_id") == {}


@pytest.mark.parametrize(
    ("elapsed", "reason"),
    [
        ("01:00:02", None), ("01:00:03", "differs from Elapsed"), ("00:59:58", None),
        ("00:59:57", "differs from Elapsed"),
        ("02:00:02", "by an hour"), ("02:00:03", "differs from Elapsed"), ("00:00:02", "by an hour"),
        ("00:00:03", "differs from Elapsed"), ("01:59:58", "by an hour"), ("01:59:57", "differs from Elapsed"),
    ],
)  # fmt: skip
def test_spans_that_differ_from_elapsed_are_noted(tmp_path, elapsed, reason):
    notes = sacct(tmp_path, {"Elapsed": elapsed}).history[0]["notes"]
    found = {text for text in notes if "differs" in text}
    end = "differs from Elapsed by an hour (give --timezone)" if reason == "by an hour" else reason
    assert found == ({f"End - Start {end}"} if reason else set())


def test_runs_of_heterogeneous_jobs(tmp_path):
    """The second run begins when the first one ended; components overlap, start apart, and have two memories."""

    def part(component, start, end, **changed):
        times = {"Start": f"2024-01-08T08:{start:02}:00", "End": f"2024-01-08T08:{end:02}:00"}
        return {"JobID": f"5+{component}", "Elapsed": f"{end - start}:00"} | times | changed

    log = sacct(
        tmp_path,
        part(0, 10, 20, ReqMem="3Mc", Eligible="2024-01-08T08:02:00", AllocTRES="gres/gpu=1"),
        part(1, 12, 18, AllocCPUS="6", ReqMem="7Mc", Eligible="2024-01-08T08:05:00", Suspended="00:01:00", NNodes="3"),
        part(0, 20, 30), part(1, 20, 30, Submit="2024-01-08T08:01:00"),
        {"JobID": "6+0", "AllocCPUS": "1"}, {"JobID": "6+1", "Elapsed": "01:00:09"},
        {"JobID": "7+0", "ReqMem": "4Mc"}, {"JobID": "7+1", "AllocCPUS": "3"},
    )  # fmt: skip
    columns = ["submit_time", "wait_time", "run_time", "allocated_processors", "nodes", "gpus", "requested_memory"]
    assert log.fields.select(columns).rows() == [
        (0, 600, 540, 8, 4, 1, 6 * 1024), (0, 600, 3609, 3, 2, None, None), (0, 600, 3600, 5, 2, None, 4 * 1024),
        (1200, 0, 600, 4, 2, None, None),
    ]  # fmt: skip
    assert log.fields["eligible_after"].to_list() == [300, None, None, None]
    assert log.history[0]["notes"]["further runs of requeued jobs"] == 1
    assert log.history[0]["notes"]["suspended for a while"] == 1


def test_a_component_that_overlaps_its_run_begins_no_other_one(tmp_path):
    rows = [("5+0", "10:00", "20:00"), ("5+1", "12:00", "18:00"), ("5+0", "19:00", "30:00"), ("5+1", "29:00", "40:00")]
    jobs = [
        {"JobID": job, "Start": f"2024-01-08T08:{start}", "End": f"2024-01-08T08:{end}"} for job, start, end in rows
    ]
    log = sacct(tmp_path, *jobs, drop=["Suspended", "Elapsed"])
    assert log.fields.select("wait_time", "run_time", "allocated_processors").rows() == [(600, 1800, 8)]
    never = {"State": "CANCELLED", "Start": "Unknown", "Elapsed": "0"}
    log = sacct(tmp_path, {"JobID": "5+0"} | never, {"JobID": "5+1"} | never)
    assert log.fields.select("wait_time", "run_time", "requested_processors").rows() == [(4200, 0, 4)]


def test_the_end_of_a_run_follows_from_its_start(tmp_path):
    first = {"End": "Unknown", "Elapsed": "10:00"}
    again = {"Start": "2024-01-08T10:00:00", "End": "2024-01-08T11:00:00"}
    for suspended, waited in (("05:00", 5700), ("", 6000)):
        log = sacct(tmp_path, first | {"Suspended": suspended}, again)
        assert log.fields["wait_time"].to_list() == [600, waited]


def test_notes_on_jobs_with_resources_and_texts(tmp_path):
    log = sacct(
        tmp_path, {"AllocTRES": "gres/gpu=0"}, {"JobID": "2", "AllocTRES": "gres/gpu=1,license/a=1"},
        {"JobID": "3", "Licenses": "a:1", "Suspended": "00:01", "Elapsed": "59:59"}, {"JobID": "4", "State": "B"},
        {"JobID": "5", "State": "A"}, {"JobID": "6", "State": "C"}, {"JobID": "7", "State": "A"},
    )  # fmt: skip
    assert log.tally.notes == {
        "jobs with GPUs": (1, 3), "jobs with licenses": (2, 3), "suspended for a while": (1, 4),
        "unknown state 'B'": (1, 5), "unknown state 'A'": (2, 6), "unknown state 'C'": (1, 7),
    }  # fmt: skip
    assert [note for note in log.tally.notes if "state" in note] == [f"unknown state {state!r}" for state in "BAC"]


def test_amounts_of_processors_that_are_several_cpus(tmp_path):
    job = {"AllocCPUS": "7", "ReqCPUS": "5", "ReqMem": "3Mc", "TotalCPU": "00:14"}
    log = sacct(tmp_path, job, {"JobID": "1.0", "MaxRSS": "21K", "NTasks": "1"}, cpus_per_processor=2)
    found = log.fields.row(0, named=True)
    assert (found["allocated_processors"], found["requested_processors"]) == (4, 3)
    assert (found["requested_memory"], found["used_memory"], found["average_cpu_time"]) == (6 * 1024, 6, 4)


def test_dependencies_that_are_not_modelled_are_counted(tmp_path):
    names = "JobID|State|Submit|Start|End|AllocCPUS|SubmitLine"
    times = "COMPLETED|2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00|1"
    options = ("", "-d singleton", "-d afterok:1", "--dependency=after:1,afterok:1")
    rows = [f"{number}|{times}|sbatch {text} x" for number, text in enumerate(options, 1)]
    (tmp_path / "sacct.txt").write_text("\n".join([names, *rows]) + "\n")
    log = import_sacct(str(tmp_path / "sacct.txt"), Site())
    assert log.fields["depends_on"].to_list() == [None, None, [1], [1]]
    assert log.tally.notes["jobs that depend on others"] == (2, 4)
    assert log.tally.notes[NOT_MODELLED] == (2, 3)


def test_runs_of_a_requeued_job(tmp_path):
    """A run is submitted at the end of the run before it, unless sacct states a later time."""
    runs = (("8:10", "8:20", "8:00"), ("8:20", "8:40", "8:00"), ("8:50", "9:00", "8:45"), ("8:55", "9:05", "8:50"))
    jobs = [
        dict(zip(("Start", "End", "Submit"), (f"2024-01-08T0{time}:00" for time in run), strict=True)) for run in runs
    ]
    log = sacct(tmp_path, *(job | {"Elapsed": ""} for job in jobs))
    assert log.fields.select("submit_time", "wait_time", "run_time").rows() == [
        (0, 600, 600), (1200, 0, 1200), (2700, 300, 600), (3000, 300, 600),
    ]  # fmt: skip
    assert log.tally.notes["further runs of requeued jobs"] == (2, 3)
    assert log.tally.notes["records of one job that overlap in time (not reruns)"] == (1, 5)


def test_preempted_runs_of_a_job_that_ran_again(tmp_path):
    """A preempted run is left out if there is another one, whose submission is that of the first of them."""
    runs = [("8:10", "8:20", "8:00", "FAILED"), ("8:30", "8:40", "8:20", "PREEMPTED")]
    runs += [("8:50", "9:00", "8:40", "PREEMPTED"), ("9:05", "9:35", "9:00", "COMPLETED")]
    jobs = [
        {"JobID": "1", "Start": start, "End": end, "Submit": submit, "Eligible": submit, "State": state, "Elapsed": ""}
        for start, end, submit, state in ((*(f"2024-01-08T0{one}:00" for one in run[:3]), run[3]) for run in runs)
    ]
    jobs.append(jobs[1] | {"JobID": "2", "State": "PREEMPTED"})
    log = sacct(tmp_path, *jobs, join_preempted=True)
    assert log.fields.select("submit_time", "wait_time", "run_time").rows() == [
        (0, 600, 600), (1200, 2700, 1800), (1200, 600, 600),
    ]  # fmt: skip
    assert log.tally.removed["preempted runs of jobs that ran again"] == (2, 3)


def test_memory_of_steps(tmp_path):
    """The memory of a step is that of its largest task times its tasks, or the mean if it is larger."""
    steps = [
        {"JobID": "1.0", "MaxRSS": "100K", "NTasks": "3"}, {"JobID": "1.1", "MaxRSS": "200K", "NTasks": ""},
        {"JobID": "2.0", "MaxRSS": "", "AveRSS": "50K", "NTasks": "2"}, {"JobID": "3.0", "MaxRSS": "0"},
    ]  # fmt: skip
    log = sacct(tmp_path, {}, {"JobID": "2"}, {"JobID": "3"}, *steps)
    assert log.fields["used_memory"].to_list() == [150, 50, 0]
    assert log.tally.notes["steps, which are not jobs"] == (4, 5)


def test_times_of_a_repeated_hour_equal_their_definition(tmp_path):
    """Of the times that a clock can mean, those count that fit the elapsed time, with a start after the submission."""
    rng, zone = random.Random(5), ZoneInfo("Europe/Stockholm")
    jobs, expected = [], []
    for number in range(60):
        begin = 1698539400 + 60 * rng.randint(-90, 90)  # around 2:30 summer time
        moments = [begin, begin + 60 * rng.choice([0, 5, 30, 70])]
        suspended = rng.choice([0, 0, 600])
        moments.append(moments[1] + 60 * rng.choice([1, 20, 60, 130]) + suspended)
        local = [datetime.fromtimestamp(moment, zone) for moment in moments]
        submit, start, end = ([int(one.replace(fold=fold).timestamp()) for fold in (0, 1)] for one in local)
        seconds_run = moments[2] - moments[1]
        way = min(
            ((0, 0), (1, 1), (0, 1)),
            key=lambda ab: abs(end[ab[1]] - start[ab[0]] - seconds_run) + (start[ab[0]] < submit[0]),
        )
        seconds_run -= suspended
        started = start[way[0]]
        expected.append((started - (submit[1] if submit[1] <= started else submit[0]), seconds_run))
        texts = dict(zip(("Submit", "Start", "End"), (one.strftime("%Y-%m-%dT%H:%M:%S") for one in local), strict=True))
        elapsed = f"{seconds_run // 3600}:{seconds_run // 60 % 60:02}:00"
        spans = {"Elapsed": elapsed, "Suspended": f"{suspended // 60}:00" if suspended else ""}
        jobs.append({"JobID": str(number), "Eligible": texts["Submit"]} | spans | texts)
    log = sacct(tmp_path, *jobs, site=Site(time_zone="Europe/Stockholm"))
    found = {row[0]: row[1:] for row in log.fields.select("site_job_id", "wait_time", "run_time").rows()}
    assert [found[str(number)] for number in range(60)] == expected
    assert "eligible_after" not in log.fields.columns
    assert not any("Elapsed" in note for note in log.tally.notes)


JSON = {
    "job_id": 1, "state": {"current": ["COMPLETED"]}, "required": {"CPUs": 2},
    "time": {"submission": 100, "eligible": 100, "start": 200, "end": 300, "elapsed": 100},
}  # fmt: skip


def from_json(tmp_path, *jobs: dict) -> ImportedLog:
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": jobs}))
    return import_sacct(str(tmp_path / "sacct.json"), Site())


def count_of(kind: str, count: int, name: str = "") -> dict:
    return {"type": kind, "name": name, "count": count}


UNSET, INFINITE = {"set": False, "infinite": False, "number": 7}, {"set": True, "infinite": True, "number": 7}


#: Changes of a job, and a column with the value that they give it.
OF_JSON = [
    ({}, "requested_processors", 2), ({}, "allocated_processors", None), ({}, "status", 1), ({}, "wait_time", 100),
    ({"tres": {"requested": [count_of("cpu", 3)]}}, "requested_processors", 3),
    ({"tres": {"allocated": [count_of("cpu", 3)]}}, "allocated_processors", 3),
    ({"tres": {"allocated": [count_of("cpu", 0)]}}, "allocated_processors", None),
    ({"tres": {"allocated": [count_of("gres", 1, "gpu")]}}, "gpus", 1),
    ({"tres": {"allocated": [count_of("cpu", 1)], "requested": [count_of("gres", 5, "gpu")]}}, "gpus", 5),
    ({"required": {"CPUs": 2, "memory_per_cpu": 3}}, "memory", 6),
    ({"required": {"CPUs": 2, "memory_per_node": 8}, "allocation_nodes": 2}, "memory", 16),
    ({"required": {"CPUs": 2, "memory": 8}, "allocation_nodes": 2}, "requested_memory", 8192),
    ({"required": {"CPUs": 2, "memory_per_cpu": UNSET, "memory": 8}, "allocation_nodes": 1}, "memory", 8),
    ({"required": {"CPUs": 2}}, "memory", None), ({"state": "TIMEOUT"}, "status", 0),
    ({"state": ["TIMEOUT"]}, "status", 0), ({"state": {"current": "CANCELLED"}}, "status", 5),
    ({"time": JSON["time"] | {"limit": 5}}, "requested_time", 300),
    ({"time": JSON["time"] | {"limit": INFINITE}}, "requested_time", None),
    ({"time": JSON["time"] | {"limit": UNSET}}, "requested_time", None),
    ({"time": JSON["time"] | {"eligible": 150}}, "eligible_after", 50),
    ({"time": JSON["time"] | {"eligible": 0}}, "eligible_after", None),
    ({"time": JSON["time"] | {"elapsed": 90, "suspended": 10}}, "suspended_time", 10),
    ({"time": JSON["time"] | {"total": {"seconds": 4, "microseconds": 500000}}}, "average_cpu_time", 2.25),
    ({"time": JSON["time"] | {"total": {"seconds": 4}}}, "average_cpu_time", 2),
    ({"time": JSON["time"] | {"total": 6}}, "average_cpu_time", 3), ({"job_id": 5}, "site_job_id", "5"),
    ({"job_id": 5, "array": {"job_id": 4, "task_id": 0}}, "site_job_id", "4_0"),
    ({"job_id": 5, "array": {"job_id": 4, "task_id": UNSET}}, "site_job_id", "5"),
    ({"job_id": 5, "array": {"job_id": 0, "task_id": 3}}, "site_job_id", "5"),
    ({"job_id": 5, "het": {"job_id": 4, "job_offset": UNSET}}, "site_job_id", "4"),
    ({"licenses": "a:3"}, "licenses", 3),
    ({"array": {"job_id": 4, "task_id": 1, "limits": {"max": {"running": {"tasks": 1}}}}}, "array_limit", 1),
    ({"array": {"job_id": 4, "task_id": 1, "limits": {"max": {"running": {"tasks": 0}}}}}, "array_limit", None),
    (
        {"array": {"job_id": 4, "task_id": 1, "limits": {"max": {"running": {"tasks": 3}}}},
         "submit_line": "sbatch -a 1-9%2 x"}, "array_limit", 3,
    ),
    ({"steps": [{"tres": {"requested": {"max": [count_of("mem", 4096)]}}}]}, "used_memory", 2),
    ({"steps": [{"tres": {"requested": {"max": [count_of("mem", 4096)], "total": [count_of("mem", 8192)]}}}]},
     "used_memory", 4),
    ({"steps": [{"tres": {"requested": {"total": [count_of("mem", 0)], "max": [count_of("mem", 2048)]}}}, {}]},
     "used_memory", 1),
    ({"steps": [{"tres": {"requested": {"max": [count_of("mem", size)]}}} for size in (2048, 6144)]},
     "used_memory", 3),
    ({"steps": [{}]}, "used_memory", None),
]  # fmt: skip

#: Changes of what identifies a job.
IDS = {"job_id", "array", "het"}


@pytest.mark.parametrize(
    ("changed", "column", "expected"),
    [pytest.param(*one, marks=[] if IDS & one[0].keys() else pytest.mark.slow) for one in OF_JSON],
)
def test_values_of_json(tmp_path, changed, column, expected):
    assert from_json(tmp_path, JSON | changed).fields.row(0, named=True).get(column) == expected


def test_values_of_json_do_not_depend_on_other_jobs(tmp_path):
    cases = [one for one in OF_JSON if not IDS & one[0].keys()]
    log = from_json(tmp_path, *(JSON | {"job_id": 100 + place} | changed for place, (changed, *_) in enumerate(cases)))
    jobs = {row["site_job_id"]: row for row in log.fields.iter_rows(named=True)}
    found = [(changed, column, jobs[str(100 + place)].get(column)) for place, (changed, column, _) in enumerate(cases)]
    assert found == cases


def test_names_and_malformed_jobs_of_json(tmp_path):
    association = {"user": "b", "account": "q", "cluster": "c", "partition": "gpu"}
    log = from_json(
        tmp_path, {}, JSON | {"user": "a", "account": "p", "qos": "high", "group": "g", "association": association},
        JSON | {"job_id": 2, "association": association, "name": "sim", "cluster": "c"}, JSON | {"time": 7},
        {"job_id": 1}, JSON | {"job_id": 3, "cluster": "c", "reservation": {"name": "maint"}, "steps": [{}, {}]},
    )  # fmt: skip
    columns = ("user_id", "group_id", "partition_id", "queue_id", "unix_group_id")
    assert {column: log.header.names_of(column) for column in columns} == {
        "user_id": {1: "a", 2: "b"}, "group_id": {1: "p", 2: "q"}, "partition_id": {1: "gpu"}, "queue_id": {1: "high"},
        "unix_group_id": {1: "g"},
    }  # fmt: skip
    assert log.header["Computer"] == ["c"] and log.fields["executable_id"].to_list() == [None, 1, None]
    assert log.tally.removed == {"job without 'time'": (2, 1), "malformed job": (1, 4)}
    assert log.tally.notes["jobs in advance reservations"] == (1, 6)
    assert log.tally.notes["steps, which are not jobs"] == (2, 1)


# -- the Grid Workloads Format


@pytest.mark.parametrize(
    ("place", "value", "column", "expected"),
    [
        (2, "0", "wait_time", 0), (2, "-1", "wait_time", None), (3, "0", "run_time", 0), (3, "-1", "run_time", None),
        (4, "0", "allocated_processors", 0), (5, "7.5", "average_cpu_time", 7.5), (6, "0", "used_memory", 0),
        (7, "3", "requested_processors", 3), (8, "-1", "requested_time", None), (9, "12", "requested_memory", 12),
        (7, "1e300", "requested_processors", None), (7, "nan", "requested_processors", None),
        (10, "5", "status", 5), (10, "x", "status", None), (11, "", "user_id", None), (11, "-1", "user_id", None),
        (12, "-1", "group_id", 1), (13, "X", "executable_id", 1), (14, "Q", "queue_id", 1),
    ],
)  # fmt: skip
def test_values_of_the_grid_workloads_format(tmp_path, place, value, column, expected):
    fields = ["1", "100", "5", "60", "2", *["-1"] * 24]
    fields[11], fields[27] = "u", "vo"
    fields[place] = value
    (tmp_path / "log.gwf").write_text("# a\n\n; b\n" + "\t".join(fields) + "\n")
    log = import_gwf(str(tmp_path / "log.gwf"), Site())
    assert log.fields.row(0, named=True)[column] == expected
    assert all(name.startswith("unreadable") and expected is None for name in log.tally.notes)
    assert log.tally.removed == {}


def test_fields_between_tabs_may_be_empty(tmp_path):
    (tmp_path / "log.gwf").write_text("1\t100\t5\t60\t2\t\t\t3\t\t\t1\n")
    job = import_gwf(str(tmp_path / "log.gwf"), Site()).fields.row(0, named=True)
    assert (job["requested_processors"], job["status"], job["requested_time"]) == (3, 1, None)


def test_lines_of_the_grid_workloads_format_are_counted(tmp_path):
    rows = ["1 1 0 5 1 -1 -1 1 -1 -1 1 u g e q p o S1", "1 2 3", "2 x 0 5 1 -1 -1 1 -1 -1 1 u g e q p o S1"]
    rows += ["3 1 0 nan 1 1 1 1 1 1 1", "4 1 0 5 inf 1 1 1 1 1 1"]
    rows += ["5 2 0 5 1 1 1 1 1 1 1 u g e q p o S2", "6 3 0 5 1 1 1 1 1 1 1 u g e q p o S2"]
    (tmp_path / "log.gwf").write_text("\n".join(rows) + "\n")
    log = import_gwf(str(tmp_path / "log.gwf"), Site())
    assert log.fields["submit_time"].to_list() == [0, 1, 2]
    assert log.tally.removed == {
        "fewer than 11 fields of 29": (1, 2), "SubmitTime is not a number": (1, 3), "RunTime is not a number": (1, 4),
        "NProcs is not a number": (1, 5),
    }  # fmt: skip
    assert log.tally.notes == {"jobs of 2 sites taken as one machine (choose one: --site)": (3, 1)}
    one = import_gwf(str(tmp_path / "log.gwf"), Site(), of_site="S2")
    assert one.fields.height == 2 and one.tally.removed["ran at another site"] == (1, 1)
    assert one.tally.notes == {}
