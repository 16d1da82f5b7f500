"""Records of each format that is imported, as texts, and the jobs that they give."""

import json

import polars as pl

from swflow.log.importers.any import import_any
from swflow.log.importers.records import ImportedLog, Site
from swflow.log.swf import SwfLog
from swflow.workload.clean import clean_log

SENT = 1704700800  # 2024-01-08T08:00:00Z

#: What a job has if nothing is odd.
USUAL = {"wait_time": 600, "run_time": 3600, "allocated_processors": 8, "requested_time": 7200}
NEVER = {"wait_time": 4200, "run_time": 0, "allocated_processors": None}


def sacct(**changed: object) -> str:
    values = {
        "JobID": "1", "User": "ada", "Partition": "main", "State": "COMPLETED", "Submit": "2024-01-08T08:00:00",
        "Start": "2024-01-08T08:10:00", "End": "2024-01-08T09:10:00", "Elapsed": "01:00:00", "Suspended": "00:00:00",
        "Timelimit": "02:00:00", "ReqCPUS": "8", "AllocCPUS": "8", "NNodes": "2", "ReqMem": "", "AllocTRES": "",
        "ReqGRES": "",
    } | changed  # fmt: skip
    return "|".join(map(str, values.values()))


SACCT = (
    "JobID|User|Partition|State|Submit|Start|End|Elapsed|Suspended|Timelimit|ReqCPUS|AllocCPUS|NNodes|ReqMem|AllocTRES|"
    "ReqGRES"
)


def text(*lines: str) -> str:
    return "\n".join((SACCT, *lines)) + "\n"


def slurm_json(*jobs: dict[str, object]) -> str:
    return json.dumps({"jobs": list(jobs)})


def one(time: dict[str, object] | None = None, **changed: object) -> dict[str, object]:
    times = {"submission": SENT, "start": SENT + 600, "end": SENT + 4200, "elapsed": 3600, "limit": 120} | (time or {})
    return {
        "job_id": 1, "user": "ada", "partition": "main", "state": {"current": ["COMPLETED"]}, "time": times,
        "required": {"CPUs": 8}, "tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}]},
        "allocation_nodes": 2,
    } | changed  # fmt: skip


def jobcomp(**changed: object) -> str:
    values = {
        "JobId": "1", "UserId": "ada(7)", "GroupId": "g(7)", "Name": "x", "JobState": "COMPLETED", "Partition": "main",
        "TimeLimit": "120", "StartTime": "2024-01-08T08:10:00", "EndTime": "2024-01-08T09:10:00", "NodeList": "n1",
        "NodeCnt": "2", "ProcCnt": "8", "WorkDir": "/", "Tres": "", "SubmitTime": "2024-01-08T08:00:00",
    } | changed  # fmt: skip
    return " ".join(f"{key}={value}" for key, value in values.items()) + "\n"


def pbs(job: str = "1.f", **changed: object) -> str:
    values = {
        "user": "ada", "queue": "q", "ctime": SENT, "start": SENT + 600, "end": SENT + 4200, "exec_host": "n1/0-3+n2/0-3",  # noqa: E501
        "Resource_List.walltime": "02:00:00", "Exit_status": 0,
    } | {name.replace("__", "."): value for name, value in changed.items()}  # fmt: skip
    message = " ".join(f"{key}={value}" for key, value in values.items() if value is not None)
    return f"01/08/2024 09:10:00;E;{job};{message}\n"


def lsf(hosts: str = '8 "n1" "n1" "n1" "n1" "n2" "n2" "n2" "n2"', **changed: object) -> str:
    v = {"job": 1, "submit": SENT, "start": SENT + 600, "end": SENT + 4200, "status": 64, "index": 0, "estimate": 7200,
         "name": "x", "need": "", "queue": "normal", "begin": 0, "exit": 0} | changed  # fmt: skip
    usage = " ".join(["1.0", "1.0", *["0"] * 17])
    return (
        f'"JOB_FINISH" "10.1" {v["end"]} {v["job"]} 7 0 8 {v["submit"]} {v["begin"]} 0 {v["start"]} "ada" "{v["queue"]}" '  # noqa: E501
        f'"{v["need"]}" "" "" "front" "/" "" "" "" "f" 0 {hosts} {v["status"]} 60.0 "{v["name"]}" "run ""me""" {usage} '
        f'"" "default" 0 8 "" "" {v["index"]} 8192 0 "" "" "" "" 0 "" {v["exit"]} "" -1 "" "" "" "" {v["estimate"]}\n'
    )


def sge(**changed: object) -> str:
    v = {"name": "x", "job": 1, "submit": SENT, "start": SENT + 600, "end": SENT + 4200, "failed": 0, "exit": 0,
         "slots": 8, "task": 0, "category": "-l h_rt=7200,h_vmem=1G -pe mpi 8", "of": "NONE"} | changed  # fmt: skip
    usage = ":".join(["0"] * 18)
    return (
        f"all.q:n1:g:ada:{v['name']}:{v['job']}:sge:0:{v['submit']}:{v['start']}:{v['end']}:{v['failed']}:{v['exit']}:"
        f"{usage}:NONE:dep:mpi:{v['slots']}:{v['task']}:80.0:0.0:0.0:{v['category']}:0.0:{v['of']}:1024.0:0:0\n"
    )


def condor(**changed: object) -> str:
    values = {
        "ClusterId": 1, "ProcId": 0, "QDate": SENT, "JobCurrentStartDate": SENT + 600, "CompletionDate": SENT + 4200,
        "RequestCpus": 8, "Owner": '"ada"', "JobStatus": 4, "AllowedJobDuration": 7200,
    } | changed  # fmt: skip
    return "".join(f"{key} = {value}\n" for key, value in values.items() if value is not None) + "*** Offset = 1\n"


def batsim(**changed: object) -> str:
    job = {"id": "w0!1", "subtime": SENT, "walltime": 7200, "res": 8, "profile": "p"} | changed
    return json.dumps({"nb_res": 8, "jobs": [job], "profiles": {"p": {"type": "delay", "delay": 3600}}})


def philly(**changed: object) -> str:
    attempt = {"start_time": "2024-01-08 08:10:00", "end_time": "2024-01-08 09:10:00",
               "detail": [{"ip": "m1", "gpus": ["g"] * 8}]}  # fmt: skip
    job = {"status": "Pass", "vc": "v", "jobid": "a1", "attempts": [attempt], "submitted_time": "2024-01-08 08:00:00",
           "user": "ada"} | changed  # fmt: skip
    return json.dumps([job])


def gwf(*values: object) -> str:
    found = list(values or (1, SENT, 600, 3600, 8, -1, -1, 8, 7200, -1, 1, "U1"))
    return "# GWF\n" + "\t".join(map(str, [*found, *[-1] * (29 - len(found))])) + "\n"


def csv(header: str = "id,sent,began,ended,cores,limit,mem,state", *rows: str) -> str:
    return "\n".join((header, *rows)) + "\n"


def swf(job: int = 1, more: str = "", **changed: object) -> str:
    v = {"sent": 0, "wait": 600, "run": 3600, "allocated": 8, "asked": 8, "status": 1} | changed
    return (
        f"{job} {v['sent']} {v['wait']} {v['run']} {v['allocated']} -1 -1 {v['asked']} 7200 -1 {v['status']} 7 1 1 1 1 "
        f"-1 -1{more}\n"
    )


MAPPING = """\
delimiter: {delimiter!r}
columns:
  job_id: id
  submit_time: sent
  start_time: began
  end_time: ended
  processors: cores
  requested_time: limit
  memory: mem
  status: state
"""
TIMES = "2024-01-08T08:00:00,2024-01-08T08:10:00,2024-01-08T09:10:00"


def read(tmp_path, importer: str, content: str) -> ImportedLog | SwfLog:
    """Import a file; its name has no ending, so that its content decides."""
    (tmp_path / "file").write_text(content)
    if importer == "swf":
        further = {"gpus": "field_19"} if len(content.split("\n")[0].split()) > 18 else {}
        found = clean_log(tmp_path / "file", drop=[], keep_cancelled=True, lenient=True, resources=further)
        return SwfLog(found.jobs.with_columns(site_job_id=pl.col("job_id").cast(pl.String)), found.header, [])
    if importer == "csv":
        header = content.replace("\r", "\n").removeprefix("sep=;\n").partition("\n")[0]
        delimiter = next(mark for mark in ("||", ";", ",") if mark in header)
        (tmp_path / "m.yaml").write_text(MAPPING.format(delimiter=delimiter))
        return import_any(tmp_path / "file", Site(), str(tmp_path / "m.yaml"))
    if importer == "sacct" and "^|^" in content:
        from swflow.log.importers.sacct import import_sacct

        return import_sacct(str(tmp_path / "file"), delimiter="^|^")
    return import_any(tmp_path / "file")
