"""Records as sites, versions and other programs write them: each file with the jobs that it has to give."""

import json

import pytest
import yaml

from helpers.records import NEVER, SENT, USUAL, condor, csv, jobcomp, lsf, one, pbs, read, sacct, sge, slurm_json, text
from swflow.errors import SwflowError
from swflow.log.importers.any import import_any
from swflow.log.recognise import recognize

#: The kind that a file is recognized as, by importer.
KINDS = {"sacct": "sacct", "json": "sacct-json", "yaml": "sacct-yaml", "jobcomp": "jobcomp", "pbs": "pbs", "sge": "sge",
         "csv": "csv", "lsf": "lsf", "condor": "condor"}  # fmt: skip

JOBS = [one(), one(job_id=2)]
HEADED = "JobID|State|Submit|Start|End|NCPUS|NNodes"
SEMICOLONS, CELLS = "id;sent;began;ended;cores;limit;mem;state", "2024-01-08T08:00;2024-01-08T08:10;2024-01-08T09:10"
TIMES = "2024-01-08T08:00:00|2024-01-08T08:10:00|2024-01-08T09:10:00"

#: (importer, what is odd) to the content and the expected jobs.
FILES: dict[tuple[str, str], tuple[str, list[dict[str, object]]]] = {
    ("sacct", "messages before the header"): (f"sacct: warning: slow\n# of January\n\n{text(sacct())}", [USUAL]),
    ("sacct", "messages between the records"): (
        text(sacct(), "sacct: error: slurmdbd: no answer", sacct(JobID=2)), [USUAL, USUAL]
    ),
    ("sacct", "a separator that only the header shows"): (text(sacct()).replace("|", "@@"), [USUAL]),
    ("sacct", "times of a locale"): (
        text(sacct(**{name: f"Mon 08 Jan 2024 {time}:00 AM CET" for name, time in
                      (("Submit", "09:00"), ("Start", "09:10"), ("End", "10:10"))})), [USUAL]
    ),
    ("sacct", "counts with units, and as floats"): (
        f"{HEADED}\n1|COMPLETED|{TIMES}|2.5K|1K\n2|COMPLETED|{TIMES}|8.0|2.0\n3|COMPLETED|{TIMES}|8.5|2\n",
        [{"allocated_processors": 2560, "nodes": 1024}, {"allocated_processors": 8, "nodes": 2},
         {"allocated_processors": None}],
    ),
    ("sacct", "nodes that only the resources state"): (
        f"JobID|State|Submit|Start|End|AllocTRES|ReqGRES\n1|COMPLETED|{TIMES}|cpu=8,mem=1G,node=2|gpu:2\n",
        [{"allocated_processors": 8, "nodes": 2, "gpus": 4}],
    ),
    ("sacct", "a limit of 0, and a run without a start"): (
        text(sacct(Timelimit="00:00:00", Start="Unknown")), [USUAL | {"requested_time": None}]
    ),
    ("sacct", "a last line that is cut off"): (text(sacct(), sacct(JobID=2))[:-40], [USUAL]),
    ("sacct", "cut states"): (
        text(*(sacct(JobID=job, State=state) for job, state in enumerate(("CANCELLED+", "OUT_OF_ME+", "CA", "TO"), 1))),
        [{"status": status} for status in (5, 0, 5, 0)],
    ),
    ("json", "messages before the jobs"): (f"sacct: error: slow\n{slurm_json(one())}", [USUAL]),
    ("json", "jobs in lines"): ("".join(json.dumps(job) + "\n" for job in JOBS), [USUAL, USUAL]),
    ("json", "several documents"): ("\n".join(slurm_json(job) for job in JOBS), [USUAL, USUAL]),
    ("json", "infinite and null numbers"): (
        slurm_json(
            one({"limit": float("inf")}), one({"limit": None, "start": None, "elapsed": 0}, job_id=2, state="CANCELLED")
        ),
        [USUAL | {"requested_time": None}, NEVER | {"requested_time": None}],
    ),
    ("json", "memory with the mark of each CPU"): (
        slurm_json(one(required={"CPUs": 8, "memory": 2**63 + 3000}), one(job_id=2, required={"memory": 4000})),
        [{"requested_memory": 3000 * 1024}, {"requested_memory": 4000 * 1024 * 2 / 8}],
    ),
    ("json", "resources as a text"): (
        slurm_json(one(tres={"allocated": "cpu=8,mem=8000M,node=2,gres/gpu=2"})),
        [USUAL | {"gpus": 2, "memory": 8000}],
    ),
    ("json", "times as texts"): (
        slurm_json(one({"submission": "2024-01-08T08:00:00", "start": "2024-01-08T08:10:00+00:00"})), [USUAL]
    ),
    ("yaml", "a list of jobs"): (yaml.safe_dump([one()]), [USUAL]),
    ("yaml", "tags"): ("%YAML 1.1\n---\n!!str \"jobs\": !!seq\n" + yaml.safe_dump([one()]), [USUAL]),
    ("jobcomp", "a time from which the job is eligible"): (
        jobcomp(EligibleTime="2024-01-08T08:05:00"), [USUAL | {"eligible_after": 300}]
    ),
    ("jobcomp", "generic resources of old versions"): (
        jobcomp(Tres="").replace("Tres= ", "ReservationName= Gres=gpu:2 Account=a "), [USUAL | {"gpus": 4}]
    ),
    ("jobcomp", "components of old versions"): (
        "".join(jobcomp(JobId=1 + n).replace(" UserId", f" PackJobId=1 PackJobOffset={n} UserId") for n in (0, 1)),
        [USUAL | {"allocated_processors": 16}],
    ),
    ("csv", "points that group thousands of counts"): (
        csv(SEMICOLONS, *(f"{job};{CELLS};{cores};7.200,0;{memory};COMPLETED"
                          for job, cores, memory in ((1, "1.024", "2.048"), (2, "16", "2.047,5")))),
        [USUAL | {"allocated_processors": cores, "memory": 2048} for cores in (1024, 16)],
    ),
    ("csv", "points that are decimal"): (
        csv(SEMICOLONS, *(f"{job};{CELLS};{cores};7200;1;COMPLETED" for job, cores in ((1, "1.5"), (2, "2.048")))),
        [{"allocated_processors": 2}, {"allocated_processors": 3}],
    ),
    ("csv", "whole numbers with decimals"): (
        csv(SEMICOLONS, f"1;{CELLS};8.000;7200.000;512.000;COMPLETED"), [USUAL | {"memory": 512}]
    ),
    ("csv", "marks between thousands"): (
        csv(SEMICOLONS, *(f"{job};{CELLS};1{mark}024;7{mark}200;1{mark}048{mark}576;COMPLETED"
                          for job, mark in enumerate(" _'\u00a0\u2009\u202f\u2019", 1))),
        [USUAL | {"allocated_processors": 1024, "memory": 1048576}] * 7,
    ),
    ("csv", "spans of several units"): (
        csv(SEMICOLONS, *(f"{job};{CELLS};8;{span};1;COMPLETED" for job, span in enumerate(
            ("2h", "0d 02:00:00", "1h60m", "1 h 59 min 60 s", "PT2H", "P0DT1H60M", "0 days, 2:00:00", "120 minutes",
             "7200.0"), 1))),
        [USUAL] * 9,
    ),
    ("csv", "times in other notations"): (
        csv(SEMICOLONS, *(f"{job};{times};8;7200;1;COMPLETED" for job, times in enumerate((
            "20240108T080000Z;20240108T081000Z;20240108T091000Z",
            "2024-01-08 8:00:00 AM;2024-01-08 08:10 am;2024-01-08 09:10:00 AM",
            "1,704,700,800;1.7047014E9;1704705000.0",
            "1704700800,0;1704701400,000;2024-01-08T10:10:00+01:00[Europe/Berlin]",
            "08.01.2024 08:00;8.1.2024 8:10:00;2024-01-08 09:10 a.m.",
            "20240108080000;202401080810;2024.01.08_09:10:00",
            "2024-01-08 08:00:00 +0000 UTC;2024-01-08 10:10 AM SAST;2024-01-08 17:10:00 HKT",
        ), 1))),
        [USUAL] * 7,
    ),
    ("csv", "noon and midnight"): (
        csv(SEMICOLONS, "1;2024-01-08 12:00:00 AM;2024-01-08 12:00:00 PM;2024-01-08 1:00 PM;8;7200;1;COMPLETED"),
        [{"wait_time": 43200, "run_time": 3600}],
    ),
    ("csv", "placeholders"): (
        csv(SEMICOLONS, *(f"{job};{CELLS};8;{nothing};{nothing};COMPLETED" for job, nothing in enumerate(
            ("\\N", "#N/A", "<NA>", "n.a.", "Not set", "NULL", ""), 1))),
        [USUAL | {"requested_time": None, "memory": None}] * 7,
    ),
    ("csv", "words for the status"): (
        csv(SEMICOLONS, *(f"{job};{CELLS};8;7200;1;{state}" for job, state in enumerate(
            ("Completed", "done", "CD", "Failed", "F", "Node_fail", "CANCELLED by 7", "canceled", "1.0", "odd"), 1))),
        [{"status": status} for status in (1, 1, 1, 0, 0, 0, 5, 5, 1, None)],
    ),
    ("csv", "a table as a database prints it"): (
        f" {SEMICOLONS}\n-----+------\n 1;{CELLS};8;7200;1;COMPLETED\n".replace(";", " ; "), [USUAL]
    ),
    ("csv", "the separator as Excel states it"): (
        "sep=;\n" + csv(SEMICOLONS, f"1;{CELLS};8;7200;1;COMPLETED"), [USUAL]
    ),
    ("csv", "lines that end in CR"): (
        csv(SEMICOLONS, f"1;{CELLS};8;7200;1;COMPLETED").replace("\n", "\r"), [USUAL]
    ),
    ("pbs", "chunks without a number"): (
        pbs("1.f", exec_host=None, Resource_List__select="ncpus=4:mem=8gb")
        + pbs("2.f", exec_host=None, Resource_List__select="ncpus=4:ngpus=1+2:ncpus=8:ngpus=2"),
        [{"requested_processors": 4, "gpus": None}, {"requested_processors": 20, "gpus": 5}],
    ),
    ("pbs", "shared and exclusive nodes"): (
        pbs(Resource_List__nodes="2:ppn=4#shared") + pbs("2.f", Resource_List__nodes="1:ppn=4:fat+1:ppn=4#excl"),
        [{"requested_processors": 8}, {"requested_processors": 8}],
    ),
    ("pbs", "GPUs that only the allocation states"): (
        pbs(exec_vnode="(n1[0]:ncpus=4:ngpus=2+n1[1]:ncpus=4:ngpus=1)") + pbs("2.f", exec_gpus="n1-gpu/1+n2-gpu/0-1"),
        [{"gpus": 3}, {"gpus": 3}],
    ),
    ("pbs", "the nodes of a Cray are not its login nodes"): (
        pbs(exec_host="login/3", Resource_List__mppwidth=48, Resource_List__mppnppn=24)
        + pbs("2.f", exec_host="login/3", Resource_List__mppwidth=48)
        + pbs("3.f", exec_host="login/3", Resource_List__mppnodect=4, Resource_List__mppnppn=12)
        + pbs("4.f", exec_host="login/3", Resource_List__size=48, Resource_List__nodect=1),
        [{"allocated_processors": 48, "nodes": nodes} for nodes in (2, None, 4, None)],
    ),
    ("pbs", "limits with days"): (
        pbs(Resource_List__walltime="1:12:00:00") + pbs("2.f", Resource_List__walltime="36:00:00"),
        [USUAL | {"requested_time": 129600}] * 2,
    ),
    ("pbs", "memory that only the chunks state"): (
        pbs(Resource_List__select="2:ncpus=4:mem=8gb") + pbs("2.f", exec_vnode="(n1:ncpus=8:mem=16777216kb)"),
        [USUAL | {"memory": 16384}] * 2,
    ),
    ("pbs", "memory of each process"): (
        pbs(Resource_List__pmem="2gb"), [USUAL | {"requested_memory": 2 * 1024**2, "memory": 16384}]
    ),
    ("sge", "an infinite hard limit beside a soft one"): (sge(category="-l h_rt=INFINITY,s_rt=2:0:0"), [USUAL]),
    ("lsf", "a run limit after lists of pairs and of the usage of hosts"): (
        "".join(
            lsf(job=job, estimate=-1)[:-1] + f' "" "" 16 "" 5 "" "" 1 1032 "0" {usage} {limit} 64 2048 "{need}" ""\n'
            for job, (usage, limit, need) in enumerate((
                ("0", 7200, "select[x] rusage[ngpus_physical=2.00]"), ('1 "n1" 1 2 3 4', 7200, ""),
                ('2 "n1" 1 2 3 4 5 "n2" 1 2 3 4 5', 7200, ""), ("0", -1, "")), 1)
        ),
        [USUAL | {"gpus": 4}, USUAL, USUAL, USUAL | {"requested_time": None}],
    ),
    ("pbs", "dependencies on arrays, on starts, and on a number that is used again"): (
        pbs("1[1].f") + pbs("1[2].f") + pbs("2-1.f") + pbs("3.f", depend="afterokarray:1[].f,after:2.f")
        + pbs("4.f", depend="afterany:2[].f:5.f") + pbs("5.f", ctime=SENT - 5)
        + pbs("5.f", ctime=SENT + 9000, start=SENT + 9001, end=SENT + 9002),
        [{"depends_on": jobs} for jobs in (None, None, None, None, [2, 3], [1, 4], None)],
    ),
    ("lsf", "dependencies on the ends of jobs and of all elements of an array"): (
        lsf(job=7, index=1) + lsf(job=7, index=2) + lsf(job=8)
        + "".join(lsf(job=job).replace('"" "" "" "front"', f'"" "{text}" "" "front"') for job, text in
                  ((9, "done(7) && ended(8)"), (10, "exit(7[2], > 1)"), (11, "8 && started(7)"), (12, "8 || done(7)"))),
        [{"depends_on": jobs} for jobs in (None, None, None, [1, 2, 3], [2], [3], None)],
    ),
    ("condor", "attributes without a value"): (
        condor(JobCurrentStartDate="undefined", JobStartDate=SENT + 600, ExitCode="UNDEFINED", Owner="error"),
        [USUAL | {"status": 1, "user_id": None}],
    ),
    ("condor", "one id of two schedds"): (
        condor(GlobalJobId='"a#1.0#1"') + condor(GlobalJobId='"b#1.0#1"'),
        [USUAL | {"site_job_id": "a#1.0"}, USUAL | {"site_job_id": "b#1.0"}],
    ),
    ("condor", "jobs that are removed long after their last run"): (
        "".join(
            condor(ClusterId=job, JobStatus=3, CompletionDate=0, EnteredCurrentStatus=SENT + 90_000, **about)
            for job, about in enumerate(({"RemoteWallClockTime": "3600.0"}, {"LastVacateTime": SENT + 4200}, {}))
        ),
        [USUAL | {"status": 5}] * 2 + [USUAL | {"status": 5, "run_time": 89_400}],
    ),
    ("sge", "powers of 1,000 and 1,024"): (
        sge(category="-l h_vmem=1024m") + sge(job=2, category="-l h_vmem=1024M"),
        [{"requested_memory": 1e6}, {"requested_memory": 1024**2}],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("importer", "what"), FILES, ids=str)
def test_a_file_is_read(tmp_path, importer: str, what: str):
    content, expected = FILES[importer, what]
    log = read(tmp_path, importer, content)
    rows = log.fields.sort("submit_time", "job_id").to_dicts()
    assert [{name: row.get(name) for name in each} for row, each in zip(rows, expected, strict=True)] == expected
    assert recognize(tmp_path / "file").key == KINDS[importer]


def test_a_text_in_utf_16_is_read(tmp_path):
    (tmp_path / "file").write_bytes(text(sacct()).replace("\n", "\r\n").encode("utf-16"))
    assert recognize(tmp_path / "file").key == "sacct"
    assert import_any(tmp_path / "file").fields["run_time"].to_list() == [3600]


@pytest.mark.parametrize("kind", ["sacct", "pbs", "sge", "csv"])
def test_names_in_another_encoding_stay_different(tmp_path, kind: str):
    content = {
        "sacct": text(sacct(User="жан"), sacct(JobID=2, User="жак")), "pbs": pbs(user="жан") + pbs("2.f", user="жак"),
        "sge": (sge() + sge(job=2).replace("ada", "жак")).replace("ada", "жан"),
        "csv": csv("id,sent,ran,cores,who", f"1,{SENT},60,8,жан", f"2,{SENT},60,8,жак"),
    }[kind]  # fmt: skip
    (tmp_path / "m.yaml").write_text("columns: {submit_time: sent, run_time: ran, processors: cores, user: who}\n")
    (tmp_path / "file").write_bytes(content.encode("koi8-r"))
    log = import_any(tmp_path / "file", columns=str(tmp_path / "m.yaml") if kind == "csv" else None)
    assert log.fields["user_id"].to_list() == [1, 2]
    assert list(log.header.names_of("user_id").values()) == ["ÖÁÎ", "ÖÁË"]


@pytest.mark.parametrize(
    ("importer", "content", "note"),
    [
        ("sacct", "JobID|State|Submit|Start|End|NCPUS|ReqMem\n1|COMPLETED|{}|8|16Gn\n", "ReqMem per node without"),
        ("sacct", "JobID|State|Submit|Start|End|AllocTRES\n1|COMPLETED|{}|1=8,1001=2\n", "resources that only have"),
        ("csv", csv(SEMICOLONS, f"1;{CELLS};8;1:30;1;COMPLETED"), "requested_time with one colon, read as minutes"),
        ("csv", csv(SEMICOLONS, f"1;{CELLS};8;7200;16Gn;COMPLETED"), "memory per node without a number of nodes"),
    ],
)
def test_a_value_that_can_mean_two_things_is_noted(tmp_path, importer, content, note):
    notes = read(tmp_path, importer, content.replace("{}", TIMES)).tally.notes
    assert [text for text in notes if text.startswith(note)]


def test_a_point_before_three_digits_is_noted_if_it_can_group_them(tmp_path):
    noted = "memory with a point before three digits, read as decimal"
    for memory, count in (("2.048", 1), ("2.04", 0), ("0.512", 0)):
        log = read(tmp_path, "csv", csv(SEMICOLONS, f"1;{CELLS};8;7200;{memory};COMPLETED"))
        assert log.tally.notes.get(noted, (0, 0))[0] == count


@pytest.mark.parametrize(
    ("importer", "content", "words"),
    [
        ("json", slurm_json(), "its list of jobs is empty"),
        ("csv", csv(f"{SEMICOLONS};mem", f"1;{CELLS};8;7200;1;COMPLETED;1"), ":1: column 'mem' is a duplicate"),
        ("csv", csv(SEMICOLONS, f"1;{CELLS};8;7200;1;COMPLETED;x"), ":2: more cells than the header (separator ';')"),
        (
            "csv",
            csv(SEMICOLONS, "1;soon;;;8;7200;1;COMPLETED"),
            "1 unreadable submit_time (give its format, or --timezone) (line 2)",
        ),
    ],
)
def test_the_reason_of_a_refusal_is_named(tmp_path, importer, content, words):
    with pytest.raises(SwflowError) as caught:
        read(tmp_path, importer, content)
    assert words in str(caught.value) and "\n" not in str(caught.value)
