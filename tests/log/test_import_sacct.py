"""Tests of imports from Slurm's accounting: text and JSON of synthetic jobs, with expected counts."""

import json

import polars as pl
import pytest

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.log.imported import read_log
from swflow.log.importers.records import LATER_ELIGIBLE, NOT_ELIGIBLE, NOT_MODELLED, Site
from swflow.log.importers.sacct import import_sacct
from swflow.log.queues import queues_of
from swflow.log.site import partitions_of
from swflow.workload.clean import machine_of

COLUMNS = (
    "JobID|Cluster|User|Group|Account|Partition|QOS|JobName|State|Submit|Eligible|Start|End|Elapsed|Suspended|Timelimit|"
    "ReqCPUS|AllocCPUS|NNodes|ReqMem|AllocTRES|TotalCPU|MaxRSS|NTasks|SubmitLine"
)
DEFAULTS = {
    "Cluster": "alpha", "User": "ada", "Group": "staff", "Account": "physics", "Partition": "main", "QOS": "normal",
    "JobName": "sim", "State": "COMPLETED", "Submit": "2024-01-08T08:00:00",
    "Start": "2024-01-08T08:10:00",
    "End": "2024-01-08T09:10:00", "Elapsed": "01:00:00", "Suspended": "00:00:00", "Timelimit": "02:00:00",
    "ReqCPUS": "4", "AllocCPUS": "4", "NNodes": "1", "ReqMem": "4000M", "TotalCPU": "03:20:00",
    "SubmitLine": "sbatch run.sh",
}  # fmt: skip


def line(job, **changed) -> str:
    """Return a record; missing fields are those of DEFAULTS, and jobs are eligible when they are submitted."""
    values = DEFAULTS | {"Eligible": changed.get("Submit", DEFAULTS["Submit"])} | changed | {"JobID": job}
    return "|".join(values.get(name, "") for name in COLUMNS.split("|"))


def step(job, **changed) -> str:
    """Return a step's record."""
    empty = dict.fromkeys(("User", "Group", "Account", "Partition", "QOS", "Timelimit", "ReqMem", "SubmitLine"), "")
    return line(job, **(empty | changed))


@pytest.fixture
def read(tmp_path):
    """Import records; return the log, and the jobs by the site's id."""

    def imported(*lines, header=COLUMNS, site=None, end="\n", **options):
        path = tmp_path / "sacct.txt"
        path.write_bytes((end.join([*([header] if header else []), *lines]) + end).encode())
        log = import_sacct(str(path), site or Site(), **options)
        return log, {row.get("site_job_id"): row for row in log.fields.iter_rows(named=True)}

    return imported


def counted(log) -> tuple[dict, dict]:
    """Return the dropped and noted records, without line numbers and the note on a missing column Eligible."""
    notes = log.history[0]["notes"]
    return log.history[0]["removed"], {reason: count for reason, count in notes.items() if reason != NOT_ELIGIBLE}


def test_steps_are_not_jobs_and_provide_the_memory(read):
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


def test_each_task_of_an_array_is_a_job(read):
    log, jobs = read(
        line("200_1"), line("200_2"), step("200_2.batch"), line("200_[3-10%2]", State="PENDING", Start="Unknown",
        End="Unknown", Elapsed="00:00:00", AllocCPUS="0"),
    )  # fmt: skip
    assert sorted(jobs) == ["200_1", "200_2"]
    assert counted(log) == (
        {"not ended: PENDING": 8},
        {"steps, which are not jobs": 1, "tasks of arrays": 2, "tasks of arrays in one record, each a job": 8},
    )


def test_components_of_a_heterogeneous_job_are_one_job(read):
    log, jobs = read(
        line("300+0", AllocCPUS="4", ReqCPUS="4"),
        step("300+0.batch"),
        line("300+1", AllocCPUS="16", ReqCPUS="16", Partition="gpu", End="2024-01-08T09:10:05", Elapsed="01:00:05"),
        line("303", AllocCPUS="2"),
    )
    assert sorted(jobs) == ["300", "303"]
    assert (jobs["300"]["allocated_processors"], jobs["300"]["run_time"]) == (20, 3605)
    assert counted(log)[1]["components of heterogeneous jobs, joined"] == 2


def test_components_that_start_one_second_apart_are_one_job_and_no_requeue(read):
    log, jobs = read(
        line("300+0", AllocCPUS="4", Start="2024-01-08T08:10:00"),
        line("300+1", AllocCPUS="16", Start="2024-01-08T08:10:01", End="2024-01-08T09:10:00", Elapsed="00:59:59"),
        line("300+0", AllocCPUS="4", Start="2024-01-08T10:00:00", End="2024-01-08T11:00:00"),
        line("300+1", AllocCPUS="16", Start="2024-01-08T10:00:01", End="2024-01-08T11:00:00", Elapsed="00:59:59"),
    )
    assert counted(log)[1] == {
        "components of heterogeneous jobs, joined": 4,
        "further runs of requeued jobs": 1,  # the components run again after the end of the first run
    }
    assert log.fields.select("allocated_processors", "wait_time", "run_time").rows() == [
        (20, 600, 3600),
        (20, 3000, 3600),
    ]
    assert list(jobs) == ["300"]


def test_records_of_one_job_that_overlap_are_not_a_rerun_with_a_negative_wait(read):
    log, _ = read(line("1"), line("1", Start="2024-01-08T08:10:01"))
    assert "further runs of requeued jobs" not in counted(log)[1]
    assert counted(log)[1]["records of one job that overlap in time (not reruns)"] == 1
    assert log.fields["wait_time"].to_list() == [600, 601]


def test_a_machine_of_peak_use_is_marked_as_guessed_and_a_stated_one_is_not(read):
    log, _ = read(line("1"), line("2"))
    assert machine_of(log.fields, log.header, None, None) == (Machine.of(8), "recorded peak")
    log, _ = read(line("1"), line("2"), site=Site(processors=64))
    assert machine_of(log.fields, log.header, None, None) == (Machine.of(64), "header (MaxProcs)")


def test_partitions_have_their_peak_use_or_the_stated_size(read):
    lines = [line("1"), line("2"), line("3", Partition="gpu", AllocTRES="cpu=4,gres/gpu=2", Timelimit="12:00:00")]
    log, _ = read(*lines)
    assert [(one.name, one.processors, one.is_guessed, one.gpu_jobs) for one in log.partitions] == [
        ("main", 8, True, 0),
        ("gpu", 4, True, 1),
    ]
    assert [(one.default_limit, one.max_limit) for one in log.partitions] == [(7200, 7200), (43200, 43200)]
    log, _ = read(*lines, site=Site(partitions={"main": 64, "gpu": 32}, key=b"0123456789abcdef"))
    assert log.header["MaxProcs"] == ["96"]  # every partition is stated, so the machine is known
    assert machine_of(log.fields, log.header, None, None)[1] == "header (MaxProcs)"
    hashes = log.header.names_of("partition_id")
    assert [(one.name, one.processors) for one in partitions_of(log.fields, log.header)] == [
        (hashes[1], 64),
        (hashes[2], 32),
    ]
    with pytest.raises(SwflowError, match="no partition 'gpus'; did you mean 'gpu'"):
        read(*lines, site=Site(partitions={"gpus": 1}))


def test_licenses_and_reservations_are_counted(read):
    header = f"{COLUMNS}|Licenses|Reservation"
    log, _ = read(f"{line('1')}|matlab:2|", f"{line('2')}||maint", f"{line('3')}||", header=header)
    assert counted(log)[1] == {"jobs with licenses": 1, "jobs in advance reservations": 1}


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
        {"unknown state 'NOVEL'": 1},
    )


def test_requeued_jobs_count_every_run(read):
    """Records as printed by sacct -D: the same id and, here, the same submit time."""
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
        "jobs without a Timelimit": 1,
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


def test_suspended_time_is_excluded_from_the_run_time(read):
    log, jobs = read(line("1", Elapsed="00:50:00", Suspended="00:10:00"), line("2", Elapsed="00:59:00"))
    assert (jobs["1"]["run_time"], jobs["1"]["suspended_time"]) == (3000, 600)
    assert counted(log)[1] == {"suspended for a while": 1, "End - Start differs from Elapsed": 1}


def test_records_with_separators_and_line_breaks_in_texts_are_repaired(read):
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


def test_a_step_before_a_repaired_record_stays(read):
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


def test_only_the_name_of_a_job_can_contain_a_separator(read):
    header = "JobID|User|JobName|State|Submit|Start|End|AllocCPUS"
    log, jobs = read(
        "1|ada|a|b|COMPLETED|2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00|4",
        "2|ada|b||FAILED|2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00|4",
        header=header,
    )
    assert [jobs[job]["status"] for job in "12"] == [1, 0]
    assert counted(log)[1] == {"mended: separators or line breaks in a text": 2}


def test_hours_that_a_clock_repeats_or_skips(read):
    """In Stockholm, 2:30 occurred twice on 29 October 2023, and not at all on 26 March."""
    autumn = {"Submit": "2023-10-29T02:20:00", "Start": "2023-10-29T02:30:00"}
    log, jobs = read(
        line("1", **autumn, End="2023-10-29T02:40:00", Elapsed="01:10:00"),  # across the change
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
        {"submit that is not a time, or does not exist in Europe/Stockholm": 1},
        {"times of an hour that the clock showed twice": 3},
    )
    log, _ = read(line("2", **autumn, End="2023-10-29T03:30:00", Elapsed="02:00:00"))
    assert counted(log)[1] == {"End - Start differs from Elapsed by an hour (give --timezone)": 1}


def test_no_job_starts_before_its_submission_in_a_repeated_hour(read):
    submit = {"Submit": "2023-10-29T02:50:00"}
    left = {"State": "CANCELLED", "End": "2023-10-29T02:20:00", "Elapsed": "00:00:00"}
    log, jobs = read(
        line("1", **submit, Start="2023-10-29T02:10:00", End="2023-10-29T02:40:00", Elapsed="00:30:00"),
        line("2", **submit, Start="Unknown", **left),
        line("3", **submit, Start="2023-10-29T02:20:00", **left),
        site=Site(time_zone="Europe/Stockholm"),
    )
    assert [jobs[job]["submit_time"] for job in "123"] == [0, 0, 0]
    assert [jobs[job]["wait_time"] for job in "123"] == [1200, 1800, 1800]
    assert "started before it was submitted" not in counted(log)[1]


def test_times_may_be_unix_seconds_and_limits_minutes(read):
    header = "JobIDRaw|JobID|State|Submit|Start|End|ElapsedRaw|NCPUS|TimelimitRaw"
    _, jobs = read("5|5|COMPLETED|1704700800|1704701400|1704705000|3600|8|90", header=header)
    assert (jobs["5"]["wait_time"], jobs["5"]["run_time"], jobs["5"]["requested_time"]) == (600, 3600, 5400)


def test_one_of_several_clusters_is_imported(read):
    lines = [line("1"), line("2", Cluster="beta"), line("3", Cluster="beta")]
    words = r"jobs of 2 clusters: alpha \(1\), beta \(2\); import one: swflow import sacct .* --cluster beta"
    with pytest.raises(SwflowError, match=words):
        read(*lines)
    log, jobs = read(*lines, site=Site(cluster="beta"))
    assert sorted(jobs) == ["2", "3"]
    assert counted(log)[0] == {"another cluster": 1}
    with pytest.raises(SwflowError, match="no job of cluster 'gamma'"):
        read(*lines, site=Site(cluster="gamma"))


def test_names_are_kept_in_the_header(read):
    log, _ = read(line("1"), line("2", User="bob", Account="", Group="guests", Partition="gpu", QOS="high"))
    named = {column: log.header.names_of(column) for column in ("user_id", "group_id", "partition_id", "queue_id")}
    assert named == {
        "user_id": {1: "ada", 2: "bob"},
        "group_id": {1: "physics", 2: "guests"},
        "partition_id": {1: "main", 2: "gpu"},
        "queue_id": {1: "normal", 2: "high"},
    }
    assert log.header.names_of("unix_group_id") == {1: "staff", 2: "guests"}


def test_constraints_with_separators_are_those_of_their_column(read):
    columns = COLUMNS.replace("SubmitLine", "Reservation|Constraints|SubmitLine")
    rows = [
        ("", "", "sbatch run.sh"), ("", "a|(b&c)", "sbatch -C a|(b&c) run.sh"), ("maint", "a", "/bin/srun -C a|b x"),
        ("", "[a*2&b]", "sbatch -C [a*2&b] run.sh"), ("", "[a|b]", "sbatch -C [a|b] run.sh"), ("", "a", ""),
    ]  # fmt: skip
    lines = [line(str(n)).removesuffix("sbatch run.sh") + "|".join(fields) for n, fields in enumerate(rows, 1)]
    log, jobs = read(*lines, header=columns)
    assert [jobs[str(n)]["constraint_id"] for n in range(1, 7)] == [None, 1, 2, None, None, 2]
    assert log.header.names_of("constraint_id") == {1: "a|(b&c)", 2: "a"}
    notes = counted(log)[1]
    assert notes["constraints with brackets or counts, which are not simulated (left out)"] == 2
    assert notes["jobs in advance reservations"] == 1
    log, _ = read(*lines, header=columns, site=Site(key=b"x" * 32))
    assert log.header.names_of("constraint_id") == {1: "a|(b&c)", 2: "a"}


def test_hashes_depend_on_the_key_and_hide_ids(read):
    log, _ = read(line("1"), line("2", User="bob"), site=Site(key=b"x" * 32))
    hashes = log.header.names_of("user_id")
    assert "site_job_id" not in log.fields.columns
    assert len(set(hashes.values())) == 2
    assert all(len(text) == 12 for text in hashes.values())
    assert not any(
        word in json.dumps(dict(log.header)) for word in ("ada", "bob", "physics", "main", "normal", "alpha")
    )


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
            "components of heterogeneous jobs, joined": 2,
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
    assert log.header.names_of("user_id") == {1: "ada"}


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
    assert capfd.readouterr().out.split() == ["check,severity", "use-beyond-machine,error", "unknown-memory,note"]


def test_the_mean_wait_of_a_queue_ignores_jobs_that_never_ran(read):
    """A job that was cancelled in the queue after a day would raise the mean wait from 10 min to half a day."""
    cancelled = {"State": "CANCELLED by 0", "Start": "None", "End": "2024-01-09T08:00:00", "Elapsed": "00:00:00"}
    log, _ = read(line("101"), line("102", **cancelled), line("103", QOS="high", State="COMPLETED"))
    waits = {one.name: one.mean_wait for one in queues_of(log.fields, log.header)}
    assert waits == {"normal": 600.0, "high": 600.0}


def test_the_same_file_gives_the_same_bytes_and_swf_keeps_the_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sacct.txt").write_text("\n".join([COLUMNS, line("101"), line("102", User="bob")]) + "\n")
    for output in ("a.parquet", "b.parquet", "c.swf.gz"):
        assert call("import", "sacct", "sacct.txt", "-o", output) == 0
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    parquet, text = read_log(tmp_path / "a.parquet")[0], read_log(tmp_path / "c.swf.gz")[0]
    assert text.header.names_of("user_id") == parquet.header.names_of("user_id") == {1: "ada", 2: "bob"}
    assert text.fields["run_time"].to_list() == parquet.fields["run_time"].to_list()


def test_a_key_is_drawn_once_and_hashes_differ_between_sites(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sacct.txt").write_text("\n".join([COLUMNS, line("101")]) + "\n")
    for output, key in (("a.parquet", "one.key"), ("b.parquet", "one.key"), ("c.parquet", "two.key")):
        assert call("import", "sacct", "sacct.txt", "-o", output, "--anonymize", "--key", key) == 0
    a, b, c = (read_log(tmp_path / f"{name}.parquet")[0].header.names_of("user_id") for name in "abc")
    assert a == b != c
    assert (tmp_path / "one.key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (None, [], "bad.txt: no such file"),
        ("", [], "bad.txt: empty; print it with: sacct -a -P"),
        ("JobID    User\n-------- ----\n", [], "bad.txt:1: columns of fixed width"),
        ("JobID    User\n-------- ----\n1        ada \n", [], "bad.txt:1: columns of fixed width"),
        ("1|ada|COMPLETED\n", [], "bad.txt:1: no header of sacct"),
        ("JobID|User|State\n1|ada|COMPLETED\n", [], "bad.txt:1: no column Submit, Start, End or Elapsed, AllocCPUS"),
        (COLUMNS + "\n", [], "bad.txt: the file contains no job; expected"),
        (
            COLUMNS + "\n" + line("1", State="PENDING") + "\n",
            [],
            "none of 1 records is a valid job; 1 not ended: PENDING",
        ),
        (COLUMNS + "|JobID\n" + line("1") + "|1\n", [], "column 'jobid' is a duplicate"),
        ('{"jobs": [', [], "bad.txt:1: invalid JSON"),
        ('{"job": []}', [], "bad.txt: JSON without a list 'jobs'"),
        ('{"jobs": []}', [], "bad.txt: its list of jobs is empty"),
        ("PAR1\0\0", [], "bad.txt: a Parquet file"),
        (COLUMNS + "\n" + line("1") + "\n", ["--timezone", "Nowhere"], "--timezone: 'Nowhere' is not a time"),
        (COLUMNS + "\n" + line("1") + "\n", ["--partition-limit", "main"], "--partition-limit: 'main'; expected"),
        (COLUMNS + "\n" + line("1") + "\n", ["--partition-limit", "main=soon"], "main='soon' is not a time limit"),
        (COLUMNS + "\n" + line("1") + "\n", ["--processors", "0"], "--processors: 0; expected at least 1"),
        (COLUMNS + "\n" + line("1") + "\n", ["--delimiter", "a"], "--delimiter: 'a'; expected one or several"),
        (COLUMNS + "\n" + line("1") + "\n", ["--key", "k"], "--key: no effect without --anonymize"),
        (
            COLUMNS + "\n" + line("1") + "\n",
            ["--cpus-per-processor", "0"],
            "--cpus-per-processor: 0; expected at least 1",
        ),
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


def test_gpus_of_old_versions_of_slurm(read):
    fields = ((line("1"), "gpu:4", "gpu:2"), (line("2", NNodes="2"), "", "gpu:tesla:2"), (line("3"), "mic:1", ""))
    _, jobs = read(*map("|".join, fields), header=f"{COLUMNS}|AllocGRES|ReqGRES")
    assert [jobs[job]["gpus"] for job in "123"] == [4, 4, None]  # requests are those of each node


def test_counted_resources_of_jobs(read):
    _, jobs = read(
        line("1", AllocTRES="billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,license/matlab=3,mem=16G,node=1"),
        line("2", AllocTRES="cpu=4,mem=1500M", ReqMem="4000M"),
        line("3", AllocTRES="", ReqMem="2Gc"),
        line("4", AllocTRES="cpu=4", ReqMem="0"),
        line("5", AllocTRES="cpu=4,gres/gpu:a100=2,gres/gpu:v100=1"),
    )
    assert [jobs[job]["gpus"] for job in "12345"] == [2, None, None, None, 3]
    assert [jobs[job]["licenses"] for job in "1234"] == [3, None, None, None]
    assert [jobs[job]["memory"] for job in "1234"] == [16384, 1500, 8192, None]  # MB of the whole job


def test_requested_resources_stand_for_missing_allocations(read):
    header = COLUMNS.replace("TotalCPU", "ReqTRES")
    _, jobs = read(line("1", TotalCPU="cpu=4,gres/gpu=2,license/x=1,mem=3G"), header=header)
    assert (jobs["1"]["gpus"], jobs["1"]["licenses"], jobs["1"]["memory"]) == (2, 1, 3072)


def test_arrays_and_dependencies_are_read_from_the_submit_line(read):
    log, jobs = read(
        line("10_0", SubmitLine="sbatch --array=0-9%2 run.sh"),
        line("10_1", SubmitLine="sbatch --array=0-9%2 run.sh"),
        line("11", SubmitLine="sbatch --dependency=afterok:10 next.sh"),
        line("12", SubmitLine="sbatch -d afterany:11:10_1,after:3 next.sh"),
        line("13", SubmitLine="sbatch --dependency=afterok:999 next.sh"),
        line("14", SubmitLine="sbatch --wrap 'echo -d'"),
    )
    ids = {site: row["job_id"] for site, row in jobs.items()}
    assert [jobs[job]["array_id"] for job in ("10_0", "10_1", "11")] == [1, 1, None]
    assert [jobs[job]["array_limit"] for job in ("10_0", "10_1", "11")] == [2, 2, None]
    assert jobs["11"]["depends_on"] == [ids["10_0"], ids["10_1"]]
    assert jobs["12"]["depends_on"] == sorted([ids["11"], ids["10_1"]])
    assert jobs["13"]["depends_on"] is None
    assert jobs["14"]["depends_on"] is None
    notes = counted(log)[1]
    assert notes["jobs that depend on others"] == 3
    assert notes["dependencies on jobs that are not in the log (left out)"] == 1
    assert notes[NOT_MODELLED] == 1


def test_arrays_without_a_limit_have_no_column(read):
    log, _ = read(line("10_0", SubmitLine="sbatch --array=0-9 run.sh"), line("10_1"))
    assert "array_id" not in log.fields.columns
    assert "array_limit" not in log.fields.columns


def test_the_limit_of_an_array_is_not_taken_from_other_options(read):
    """``%3a`` in the name of an output file is the number of the task with three digits."""
    log, _ = read(
        line("10_0", SubmitLine="sbatch --array=0-9 --output=my-analysis-%3a.out run.sh"),
        line("11_0", SubmitLine="sbatch -o log-array=%4t.out -a 0-9 run.sh"),
    )
    assert "array_limit" not in log.fields.columns
    _, jobs = read(
        line("10_0", SubmitLine="sbatch -o my-a%3a.out -a 0-9%2 run.sh"),
        line("11_0", SubmitLine="sbatch -a0-9%5 run.sh"),
        line("12_0", SubmitLine="sbatch --array 0-9%7 run.sh"),
    )
    assert [jobs[job]["array_limit"] for job in ("10_0", "11_0", "12_0")] == [2, 5, 7]


@pytest.mark.parametrize("limit", ["inf", "2x", "-1", ""])
def test_the_limit_of_an_array_that_is_no_number_is_noted(read, limit):
    log, jobs = read(
        line("10_0", SubmitLine=f"sbatch --array=0-9%{limit} run.sh"),
        line("11_0", SubmitLine="sbatch -a 0-9%5 run.sh"),
    )
    assert [jobs[job]["array_limit"] for job in ("10_0", "11_0")] == [None, 5]
    assert counted(log)[1]["tasks of arrays whose limit cannot be read (--array=…%LIMIT)"] == 1


def test_resources_and_dependencies_of_json(read, tmp_path):
    def job(number, **changed):
        tres = [
            {"type": "cpu", "count": 4},
            {"type": "mem", "count": 2048},
            {"type": "gres", "name": "gpu", "count": 2},
            {"type": "license", "name": "matlab", "count": 1},
        ]
        times = {"submission": 1000 + number, "start": 2000, "end": 3000, "elapsed": 1000}
        return {"job_id": number, "time": times, "state": {"current": ["COMPLETED"]},
                "tres": {"allocated": tres}} | changed  # fmt: skip

    array = {"job_id": 7, "task_id": {"set": True, "number": 0}, "limits": {"max": {"running": {"tasks": 5}}}}
    path = tmp_path / "sacct.json"
    typed = {"allocated": [{"type": "gres", "name": f"gpu:{kind}", "count": 2} for kind in ("a100", "v100")]}
    jobs = [
        job(7, array=array),
        job(8, submit_line="sbatch -d afterok:7 x.sh"),
        job(9, tres=typed, required={"CPUs": 1}),
    ]
    path.write_text(json.dumps({"jobs": jobs}))
    first, second, third = import_sacct(str(path), Site()).fields.iter_rows(named=True)
    assert (first["gpus"], first["licenses"], first["memory"], first["array_limit"]) == (2, 1, 2048, 5)
    assert second["depends_on"] == [first["job_id"]]
    assert third["gpus"] == 4


def test_jobs_start_no_earlier_than_they_are_eligible(read):
    """A job with --begin, one that was eligible at once, and one that was cancelled before it was eligible."""
    log, jobs = read(
        line("1", Eligible="2024-01-08T08:04:00"),
        line("2"),
        line(
            "3", Eligible="Unknown", Start="Unknown", End="2024-01-08T08:03:00", State="CANCELLED", Elapsed="00:00:00"
        ),
        line("4", Eligible="2024-01-08T08:20:00"),  # after the start: the clocks differ
    )
    assert [jobs[one]["eligible_after"] for one in "1234"] == [240, None, None, 600]
    assert log.history[0]["notes"][LATER_ELIGIBLE] == 2
    names = COLUMNS.replace("|Eligible", "")
    record = "|".join((DEFAULTS | {"JobID": "1"}).get(name, "") for name in names.split("|"))
    log, jobs = read(record, header=names)
    assert log.history[0]["notes"][NOT_ELIGIBLE] == 1
    assert "eligible_after" not in jobs["1"]


def test_separators_in_texts_do_not_move_other_columns_to_the_cpus(read):
    """With pipes in Constraints and SubmitLine, 2 CPUs became 1,384, the number of the association."""
    names = "Account|AllocCPUS|AssocID|Constraints|CPUTimeRAW|ElapsedRaw|NCPUS|JobID|State|Submit|Start|End|SubmitLine"
    times = "2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00"
    record = f"physics|2|1384|[a|b|c]|7200|3600|2|1|COMPLETED|{times}|sbatch -C [a|b|c] run.sh"
    _, jobs = read(record, record.replace("|1|COMP", "|2|COMP").replace("|b|c] run", "] run"), header=names)
    assert [jobs[one]["allocated_processors"] for one in "12"] == [2, 2]
    assert [jobs[one]["run_time"] for one in "12"] == [3600, 3600]
    moved = "AllocCPUS|Constraints|AssocID|NCPUS|JobID|State|Submit|Start|End|SubmitLine"
    _, jobs = read(f"2|[a|b]|1384|2|1|COMPLETED|{times}|sbatch -C [a|b] run.sh", header=moved)
    assert jobs["1"]["allocated_processors"] == 2
