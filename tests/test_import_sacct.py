"""Importing Slurm's accounting: every oddity of its text and JSON, counted by hand; nothing of a real site."""

import json

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.importers.records import Site
from swflow.importers.sacct import import_sacct
from swflow.log_table import names_of, read_log
from test_cli import call

COLUMNS = (
    "JobID|Cluster|User|Group|Account|Partition|QOS|JobName|State|Submit|Start|End|Elapsed|Suspended|Timelimit|"
    "ReqCPUS|AllocCPUS|NNodes|ReqMem|AllocTRES|TotalCPU|MaxRSS|NTasks|SubmitLine"
)
DEFAULTS = {
    "Cluster": "alpha", "User": "ada", "Group": "staff", "Account": "physics", "Partition": "main", "QOS": "normal",
    "JobName": "sim", "State": "COMPLETED", "Submit": "2024-01-08T08:00:00", "Start": "2024-01-08T08:10:00",
    "End": "2024-01-08T09:10:00", "Elapsed": "01:00:00", "Suspended": "00:00:00", "Timelimit": "02:00:00",
    "ReqCPUS": "4", "AllocCPUS": "4", "NNodes": "1", "ReqMem": "4000M", "TotalCPU": "03:20:00",
    "SubmitLine": "sbatch run.sh",
}  # fmt: skip


def line(job, **changed) -> str:
    """Write a record; what is not said is as in DEFAULTS."""
    values = DEFAULTS | changed | {"JobID": job}
    return "|".join(values.get(name, "") for name in COLUMNS.split("|"))


def step(job, **changed) -> str:
    """Write a step's record."""
    empty = dict.fromkeys(("User", "Group", "Account", "Partition", "QOS", "Timelimit", "ReqMem", "SubmitLine"), "")
    return line(job, **(empty | changed))


@pytest.fixture
def read(tmp_path):
    """Import records, and give the log and the jobs by the site's id."""

    def imported(*lines, header=COLUMNS, site=None, end="\n", **options):
        path = tmp_path / "sacct.txt"
        path.write_bytes((end.join([*([header] if header else []), *lines]) + end).encode())
        log = import_sacct(str(path), site or Site(), **options)
        return log, {row.get("site_job_id"): row for row in log.fields.iter_rows(named=True)}

    return imported


def counted(log) -> tuple[dict, dict]:
    """Return what was left out and what was noted, without the lines."""
    return log.history[0]["removed"], log.history[0]["notes"]


def test_steps_are_no_jobs_and_give_their_memory(read):
    log, jobs = read(
        line("101"),
        step("101.batch", MaxRSS="1024K", NTasks="1"),
        step("101.extern", MaxRSS="0", NTasks="1"),
        step("101.0", MaxRSS="2M", NTasks="4"),
        line("102"),
    )
    assert counted(log) == ({}, {"steps, which are not jobs": 3})
    assert log.tally.notes["steps, which are not jobs"] == (3, 3)  # the first is on line 3
    job = jobs["101"]
    assert job["used_memory"] == 4 * 2 * 1024 / 4  # the largest step: four tasks of 2 MB on four processors
    assert jobs["102"]["used_memory"] is None
    assert (job["submit_time"], job["wait_time"], job["run_time"]) == (0, 600, 3600)
    assert (job["allocated_processors"], job["requested_processors"], job["status"]) == (4, 4, 1)
    assert job["average_cpu_time"] == 3000
    assert log.header["UnixStartTime"] == ["1704700800"]
    assert log.header["MaxProcs"] == ["8"]  # both ran at once
    assert log.header["Computer"] == ["alpha"]


def test_arrays_are_jobs_each(read):
    log, jobs = read(
        line("200_1"), line("200_2"), step("200_2.batch"), line("200_[3-10%2]", State="PENDING", Start="Unknown",
        End="Unknown", Elapsed="00:00:00", AllocCPUS="0"),
    )  # fmt: skip
    assert sorted(jobs) == ["200_1", "200_2"]
    assert counted(log) == ({"not ended: PENDING": 1}, {"steps, which are not jobs": 1, "tasks of arrays": 2})


def test_components_of_a_heterogeneous_job_are_one_job(read):
    log, jobs = read(
        line("300+0", AllocCPUS="4", ReqCPUS="4"),
        step("300+0.batch"),
        line("300+1", AllocCPUS="16", ReqCPUS="16", Partition="gpu", End="2024-01-08T09:10:05", Elapsed="01:00:05"),
        line("303", AllocCPUS="2"),
    )
    assert sorted(jobs) == ["300", "303"]
    assert (jobs["300"]["allocated_processors"], jobs["300"]["run_time"]) == (20, 3605)
    assert counted(log)[1]["components of heterogeneous jobs, put together"] == 2


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("COMPLETED", 1), ("CANCELLED by 1001", 5), ("CANCELLED", 5), ("FAILED", 0), ("TIMEOUT", 0), ("NODE_FAIL", 0),
        ("BOOT_FAIL", 0), ("DEADLINE", 0), ("OUT_OF_MEMORY", 0), ("PREEMPTED", 0), ("REQUEUED", 0), ("RESIZING", 1),
        ("LAUNCH_FAILED", 0), ("RECONFIG_FAIL", 0), ("SPECIAL_EXIT", 0), ("CD", 1), ("OOM", 0), ("OUT_OF_ME+", 0),
    ],
)  # fmt: skip
def test_states_of_jobs_that_ended(read, state, status):
    _, jobs = read(line("1", State=state))
    assert jobs["1"]["status"] == status


@pytest.mark.parametrize(
    "state",
    [
        "PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT",
        "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "POWER_UP_NODE", "EXPEDITING", "UPDATE_DB",
    ],
)  # fmt: skip
def test_states_of_jobs_that_have_not_ended(read, state):
    log, jobs = read(line("1"), line("2", State=state, End="Unknown"))
    assert list(jobs) == ["1"]
    assert counted(log)[0] == {f"not ended: {state}": 1}


def test_other_states_are_counted_with_their_reason(read):
    log, jobs = read(
        line("1"), line("2", State="REVOKED"), line("3", State="NOVEL"), line("4", End="Unknown", Elapsed="")
    )
    assert sorted(jobs) == ["1", "3"]
    assert jobs["3"]["status"] is None
    assert counted(log) == (
        {"revoked: another cluster ran it": 1, "no end time": 1},
        {"state 'NOVEL', which Slurm does not know": 1},
    )


def test_requeued_jobs_count_every_run(read):
    """As sacct -D shows them: the same id, and here even the same time of submission."""
    log, jobs = read(
        line("400", State="NODE_FAIL", End="2024-01-08T08:30:00", Elapsed="00:20:00"),
        line("400", Start="2024-01-08T08:45:00", End="2024-01-08T09:45:00"),
        line("401"),
        line("401"),
    )
    assert counted(log) == ({"the same record again": 1}, {"further runs of requeued jobs": 1})
    runs = log.fields.filter(pl.col("site_job_id") == "400").sort("submit_time")
    assert runs.select("submit_time", "wait_time", "run_time", "status").rows() == [
        (0, 600, 1200, 0),
        (1800, 900, 3600, 1),  # submitted again when the first run ended, at 8:30
    ]
    assert log.fields["job_id"].to_list() == [1, 2, 3]
    assert len(jobs) == 2


def test_jobs_that_never_started_are_kept_without_a_run(read):
    log, jobs = read(
        line("1"),
        line("2", State="CANCELLED by 7", Start="None", End="2024-01-08T08:20:00", Elapsed="00:00:00", AllocCPUS="0"),
        line("3", State="CANCELLED by 7", Start="2024-01-08T08:20:00", End="2024-01-08T08:20:00", Elapsed="00:00:00",
             AllocCPUS="0"),
        line("4", State="FAILED", Start="Unknown", End="2024-01-08T08:20:00", Elapsed="00:00:00"),
        line("5", Submit="Unknown"),
    )  # fmt: skip
    assert counted(log) == ({"no submit time": 1}, {"never started (kept, with a run time of 0)": 3})
    for job in "234":
        assert (jobs[job]["run_time"], jobs[job]["wait_time"]) == (0, 1200)
    assert jobs["2"]["allocated_processors"] is None
    assert jobs["2"]["requested_processors"] == 4


def test_time_limits(read):
    limits = {"1": "2-00:00:00", "2": "UNLIMITED", "3": "Partition_Limit", "4": "00:30:00", "5": "", "6": "1-12"}
    log, jobs = read(*(line(job, Timelimit=limit) for job, limit in limits.items()))
    assert [jobs[job]["requested_time"] for job in limits] == [172800, None, None, 1800, None, 129600]
    assert counted(log)[1] == {
        "time limit UNLIMITED: the estimate is unknown": 1,
        "time limit Partition_Limit: the estimate is unknown (give --partition-limit)": 1,
    }
    _, jobs = read(line("3", Timelimit="Partition_Limit"), partition_limits={"main": "12:00:00"})
    assert jobs["3"]["requested_time"] == 43200


def test_memory_per_processor_node_and_job(read):
    amounts = {"1": "4000M", "2": "2800Mc", "3": "500Gn", "4": "0", "5": "", "6": "0n", "7": "16G"}
    _, jobs = read(*(line(job, ReqMem=amount, NNodes="2") for job, amount in amounts.items()))
    gigabyte = 1024**2
    assert [jobs[job]["requested_memory"] for job in amounts] == [
        4000 * 1024 / 4, 2800 * 1024, 500 * gigabyte * 2 / 4, None, None, None, 16 * gigabyte / 4,
    ]  # fmt: skip


def test_trackable_resources(read):
    log, jobs = read(
        line("1", AllocTRES="billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1"),
        line("2", AllocTRES="cpu=32,node=2", AllocCPUS=""),
        line("3", AllocTRES=""),
    )
    assert [jobs[job]["gpus"] for job in "123"] == [2, None, None]
    assert jobs["2"]["allocated_processors"] == 32
    assert counted(log)[1] == {"jobs with GPUs": 1}


def test_suspended_time_is_no_run_time(read):
    log, jobs = read(line("1", Elapsed="00:50:00", Suspended="00:10:00"), line("2", Elapsed="00:59:00"))
    assert (jobs["1"]["run_time"], jobs["1"]["suspended_time"]) == (3000, 600)
    assert counted(log)[1] == {"suspended for a while": 1, "End - Start differs from Elapsed": 1}


def test_separators_and_line_breaks_in_texts_are_mended(read):
    log, jobs = read(
        line("1", JobName="a|b"),
        line("2", SubmitLine="sbatch --wrap 'echo a | wc'"),
        line("3", JobName="x|y", SubmitLine="sbatch a|b|c"),
        line("4", JobName="two\nlines"),
        line("5", SubmitLine="sbatch --wrap 'for i in 1 2\ndo echo $i | cat\ndone'"),
        line("6"),
        "7|alpha|ada",
        line("8", State="COMPLETED|", JobName="z"),
        line("9"),
    )
    assert sorted(jobs) == ["1", "2", "3", "4", "5", "6", "9"]
    assert all(row["run_time"] == 3600 and row["allocated_processors"] == 4 for row in jobs.values())
    removed, notes = counted(log)
    assert notes == {"mended: separators or line breaks in a text": 5}
    assert sum(removed.values()) == 2
    assert log.tally.removed["too few fields"] == (1, 11)  # after the header, six records and three line breaks


def test_a_step_before_a_record_that_is_mended_stays(read):
    names = ("JobID", "State", "Submit", "Start", "End", "Timelimit", "AllocCPUS", "MaxRSS", "NTasks", "JobName")
    rows = [
        "|".join((DEFAULTS | {"JobID": job, "NTasks": "4"} | changed).get(name, "") for name in names)
        for job, changed in (
            ("1", {}), ("1.batch", {"Timelimit": "", "MaxRSS": "4096K"}), ("2", {"JobName": "a|b"}), ("3", {}),
        )
    ]  # fmt: skip
    log, jobs = read(*rows, header="|".join(names))
    removed, notes = counted(log)
    assert removed == {}
    assert notes == {"mended: separators or line breaks in a text": 1, "steps, which are not jobs": 1}
    assert [jobs[job]["used_memory"] for job in "123"] == [4096, None, None]


def test_only_a_name_of_a_job_may_hold_a_separator(read):
    header = "JobID|User|JobName|State|Submit|Start|End|AllocCPUS"
    log, jobs = read(
        "1|ada|a|b|COMPLETED|2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00|4",
        "2|ada|b||FAILED|2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00|4",
        header=header,
    )
    assert [jobs[job]["status"] for job in "12"] == [1, 0]
    assert counted(log)[1] == {"mended: separators or line breaks in a text": 2}


def test_hours_that_the_clock_showed_twice_or_never(read):
    """In Stockholm 2:30 was twice on 29 October 2023, and never on 26 March."""
    autumn = {"Submit": "2023-10-29T02:20:00", "Start": "2023-10-29T02:30:00"}
    log, jobs = read(
        line("1", **autumn, End="2023-10-29T02:40:00", Elapsed="01:10:00"),  # over the change
        line("2", **autumn, End="2023-10-29T03:30:00", Elapsed="02:00:00"),  # from the first 2:30
        line("3", **autumn, End="2023-10-29T03:30:00", Elapsed="01:00:00"),  # from the second
        line("4", Submit="2023-03-26T02:30:00"),
        site=Site(time_zone="Europe/Stockholm"),
    )
    first = 1698539400  # 2:30 summer time
    began = int(log.header["UnixStartTime"][0])
    starts = [began + jobs[job]["submit_time"] + jobs[job]["wait_time"] for job in "123"]
    assert starts == [first, first, first + 3600]
    assert [jobs[job]["run_time"] for job in "123"] == [4200, 7200, 3600]
    assert counted(log) == (
        {"submit that is no time of Europe/Stockholm": 1},
        {"times of an hour that the clock showed twice": 3},
    )
    log, _ = read(line("2", **autumn, End="2023-10-29T03:30:00", Elapsed="02:00:00"))
    assert counted(log)[1] == {"End - Start differs from Elapsed by an hour (give --timezone)": 1}


def test_times_may_be_unix_seconds_and_limits_minutes(read):
    header = "JobIDRaw|JobID|State|Submit|Start|End|ElapsedRaw|NCPUS|TimelimitRaw"
    _, jobs = read("5|5|COMPLETED|1704700800|1704701400|1704705000|3600|8|90", header=header)
    assert (jobs["5"]["wait_time"], jobs["5"]["run_time"], jobs["5"]["requested_time"]) == (600, 3600, 5400)


def test_one_cluster_of_several(read):
    lines = [line("1"), line("2", Cluster="beta"), line("3", Cluster="beta")]
    with pytest.raises(SwflowError, match=r"jobs of 2 clusters: alpha \(1\), beta \(2\); choose one: --cluster beta"):
        read(*lines)
    log, jobs = read(*lines, site=Site(cluster="beta"))
    assert sorted(jobs) == ["2", "3"]
    assert counted(log)[0] == {"another cluster": 1}
    with pytest.raises(SwflowError, match="no job of cluster 'gamma'"):
        read(*lines, site=Site(cluster="gamma"))


def test_names_are_kept_in_the_header(read):
    log, _ = read(line("1"), line("2", User="bob", Account="", Group="guests", Partition="gpu", QOS="high"))
    named = {column: names_of(log.header, column) for column in ("user_id", "group_id", "partition_id", "queue_id")}
    assert named == {
        "user_id": {1: "ada", 2: "bob"},
        "group_id": {1: "physics", 2: "guests"},
        "partition_id": {1: "main", 2: "gpu"},
        "queue_id": {1: "normal", 2: "high"},
    }
    assert names_of(log.header, "unix_group_id") == {1: "staff", 2: "guests"}


def test_hashes_depend_on_the_key_and_hide_ids(read):
    log, _ = read(line("1"), line("2", User="bob"), site=Site(key=b"x" * 32))
    hashes = names_of(log.header, "user_id")
    assert "site_job_id" not in log.fields.columns
    assert len(set(hashes.values())) == 2
    assert all(len(text) == 12 for text in hashes.values())
    assert not any(word in json.dumps(log.header) for word in ("ada", "bob", "physics", "main", "normal", "alpha"))


def test_line_ends_trailing_separators_and_repeated_headers(read):
    _, jobs = read(line("1"), line("2"), end="\r\n")
    assert sorted(jobs) == ["1", "2"]
    log, jobs = read(line("1") + "|", line("2") + "|", header=COLUMNS + "|")
    assert sorted(jobs) == ["1", "2"]
    log, jobs = read(line("1"), COLUMNS, line("2"))
    assert sorted(jobs) == ["1", "2"]
    assert counted(log)[1] == {"repeated headers": 1}
    _, jobs = read(line("1"), header=None, columns=COLUMNS.replace("|", ","))
    assert sorted(jobs) == ["1"]


def test_cpus_that_are_threads(read):
    log, jobs = read(line("1", AllocCPUS="8", ReqCPUS="7", TotalCPU="02:00:00"), cpus_per_processor=2)
    assert (jobs["1"]["allocated_processors"], jobs["1"]["requested_processors"]) == (4, 4)
    assert jobs["1"]["average_cpu_time"] == 1800
    assert log.header["MaxProcs"] == ["4"]


# --- JSON -------------------------------------------------------------------------------------------------

JOB = {
    "job_id": 101,
    "array": {"job_id": 0, "task_id": {"set": False, "number": 0}},
    "het": {"job_id": 0, "job_offset": {"set": False, "number": 0}},
    "association": {"account": "physics", "cluster": "alpha", "partition": "", "user": "ada"},
    "account": "physics", "cluster": "alpha", "group": "staff", "partition": "main", "qos": "normal", "user": "ada",
    "name": "a|b", "allocation_nodes": 1, "state": {"current": ["COMPLETED"], "reason": "None"},
    "time": {
        "submission": 1704700800, "start": 1704701400, "end": 1704705000, "elapsed": 3600, "suspended": 0,
        "limit": {"set": True, "infinite": False, "number": 120}, "total": {"seconds": 12000, "microseconds": 500000},
    },
    "required": {"CPUs": 4, "memory_per_cpu": {"set": True, "infinite": False, "number": 2000}},
    "tres": {
        "allocated": [{"type": "cpu", "name": "", "id": 1, "count": 4}, {"type": "gres", "name": "gpu", "count": 2}],
        "requested": [{"type": "cpu", "name": "", "id": 1, "count": 4}],
    },
    "steps": [{"tres": {"requested": {"max": [{"type": "mem", "name": "", "count": 4096000}]}}}],
}  # fmt: skip


def test_json_of_newer_and_older_parsers(tmp_path):
    older = JOB | {
        "job_id": 102, "state": {"current": "CANCELLED"}, "required": {"CPUs": 4, "memory": 8000},
        "time": JOB["time"] | {"limit": 60, "start": 0, "elapsed": 0},
        "tres": {"requested": JOB["tres"]["requested"]}, "steps": [],
    }  # fmt: skip
    task = JOB | {"job_id": 104, "array": {"job_id": 103, "task_id": {"set": True, "number": 7}}}
    parts = [
        JOB | {"job_id": 105 + part, "het": {"job_id": 105, "job_offset": {"set": True, "number": part}}}
        for part in (0, 1)
    ]
    running = JOB | {"job_id": 110, "state": {"current": ["RUNNING"]}, "time": JOB["time"] | {"end": 0}}
    path = tmp_path / "sacct.json"
    path.write_text(json.dumps({"jobs": [JOB, older, task, *parts, running, {"job_id": 1}], "errors": []}))
    log = import_sacct(str(path), Site())
    jobs = {row["site_job_id"]: row for row in log.fields.iter_rows(named=True)}
    assert sorted(jobs) == ["101", "102", "103_7", "105"]
    assert counted(log) == (
        {"job without 'time'": 1, "not ended: RUNNING": 1},
        {
            "steps, which are not jobs": 5,
            "components of heterogeneous jobs, put together": 2,
            "tasks of arrays": 1,
            "jobs with GPUs": 3,
            "never started (kept, with a run time of 0)": 1,
        },
    )
    job = jobs["101"]
    assert (job["wait_time"], job["run_time"], job["requested_time"], job["status"]) == (600, 3600, 7200, 1)
    assert (job["requested_memory"], job["used_memory"], job["average_cpu_time"]) == (2000 * 1024, 1000, 3000.125)
    assert jobs["105"]["allocated_processors"] == 8
    assert (jobs["102"]["requested_time"], jobs["102"]["run_time"], jobs["102"]["status"]) == (3600, 0, 5)
    assert names_of(log.header, "user_id") == {1: "ada"}


# --- the command ------------------------------------------------------------------------------------------


def test_from_accounting_to_a_schedule_with_names(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    lines = [COLUMNS, line("101"), line("102", User="bob"), step("102.batch")]
    (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n")
    assert call("import", "sacct", "sacct.txt", "-o", "my.parquet", "--processors", 4) == 0
    out, err = capfd.readouterr()
    assert "steps, which are not jobs" in out
    assert "my.parquet: 2 jobs of sacct.txt; machine: 4 processors" in err
    assert call("clean", "my.parquet", "-o", "w/my.parquet") == 0
    assert (
        "my: warning: use-beyond-machine" in (err := capfd.readouterr().err) or "my: error: use-beyond-machine" in err
    )
    assert call("simulate", "w/my.parquet", "--backfill", "easy", "-o", "easy.parquet") == 0
    assert call("load", "easy.parquet", "--database", "d.duckdb") == 0
    capfd.readouterr()
    query = (
        "SELECT name, site_job_id, start_time FROM outcomes JOIN jobs USING (workload, job_id) "
        "JOIN names ON names.workload = jobs.workload AND \"column\" = 'user_id' AND id = user_id ORDER BY ALL"
    )
    assert call("sql", query, "--database", "d.duckdb", "--csv") == 0
    assert capfd.readouterr().out.split() == ["name,site_job_id,start_time", "ada,101,0.0", "bob,102,3600.0"]
    assert call("sql", 'SELECT "check", severity FROM checks', "--database", "d.duckdb", "--csv") == 0
    assert capfd.readouterr().out.split() == ["check,severity", "use-beyond-machine,error"]


def test_the_same_file_gives_the_same_bytes_and_swf_keeps_the_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sacct.txt").write_text("\n".join([COLUMNS, line("101"), line("102", User="bob")]) + "\n")
    for output in ("a.parquet", "b.parquet", "c.swf.gz"):
        assert call("import", "sacct", "sacct.txt", "-o", output) == 0
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    parquet, text = read_log(tmp_path / "a.parquet")[0], read_log(tmp_path / "c.swf.gz")[0]
    assert names_of(text.header, "user_id") == names_of(parquet.header, "user_id") == {1: "ada", 2: "bob"}
    assert text.fields["run_time"].to_list() == parquet.fields["run_time"].to_list()


def test_a_key_is_drawn_once_and_hashes_differ_from_site_to_site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sacct.txt").write_text("\n".join([COLUMNS, line("101")]) + "\n")
    for output, key in (("a.parquet", "one.key"), ("b.parquet", "one.key"), ("c.parquet", "two.key")):
        assert call("import", "sacct", "sacct.txt", "-o", output, "--anonymize", "--key", key) == 0
    a, b, c = (names_of(read_log(tmp_path / f"{name}.parquet")[0].header, "user_id") for name in "abc")
    assert a == b != c
    assert (tmp_path / "one.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (None, [], "bad.txt: no such file"),
        ("", [], "bad.txt: empty; print it with: sacct -a -P"),
        ("JobID    User\n-------- ----\n", [], "bad.txt:1: columns of fixed width"),
        ("1|ada|COMPLETED\n", [], "bad.txt:1: no header of sacct"),
        ("JobID|User|State\n1|ada|COMPLETED\n", [], "bad.txt:1: no column Submit, Start, End or Elapsed, AllocCPUS"),
        (COLUMNS + "\n", [], "bad.txt: no record after the header"),
        (
            COLUMNS + "\n" + line("1", State="PENDING") + "\n",
            [],
            "no job can be used of 1 records; 1 not ended: PENDING",
        ),
        (COLUMNS + "|JobID\n" + line("1") + "|1\n", [], "column 'jobid' is there twice"),
        ('{"jobs": [', [], "bad.txt:1: no valid JSON"),
        ('{"job": []}', [], "bad.txt: JSON without a list 'jobs'"),
        ('{"jobs": []}', [], "bad.txt: no job in it"),
        ("PAR1\0\0", [], "bad.txt: a Parquet file"),
        (COLUMNS + "\n" + line("1") + "\n", ["--timezone", "Nowhere"], "--timezone: 'Nowhere' is no time zone"),
        (COLUMNS + "\n" + line("1") + "\n", ["--partition-limit", "main"], "--partition-limit: 'main' is not"),
        (COLUMNS + "\n" + line("1") + "\n", ["--partition-limit", "main=soon"], "main='soon' is no time limit"),
        (COLUMNS + "\n" + line("1") + "\n", ["--processors", "0"], "--processors: must be at least 1"),
        (COLUMNS + "\n" + line("1") + "\n", ["--delimiter", ";;"], "--delimiter: must be one character"),
        (COLUMNS + "\n" + line("1") + "\n", ["--key", "k"], "--key: is for --anonymize"),
        (COLUMNS + "\n" + line("1") + "\n", ["--cpus-per-processor", "0"], "--cpus-per-processor: must be at least 1"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capfd, content, options, words):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "bad.txt").write_text(content)
    assert call("import", "sacct", "bad.txt", "-o", "out.parquet", *options) == 1
    (error,) = capfd.readouterr().err.strip().splitlines()
    assert error.startswith("swflow: ")
    assert words in error
    assert not (tmp_path / "out.parquet").exists()
