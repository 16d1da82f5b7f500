"""
The kinds of odd values that each importer has to read, as a table: kinds by importers.

A cell is a file with the expected jobs, or the reason for which the kind cannot occur. An importer, or a kind, without
its cells fails.
"""

import pytest

from helpers.records import (
    NEVER,
    SENT,
    TIMES,
    USUAL,
    batsim,
    condor,
    csv,
    gwf,
    jobcomp,
    lsf,
    one,
    pbs,
    philly,
    read,
    sacct,
    sge,
    slurm_json,
    swf,
    text,
)  # fmt: skip
from swflow.errors import SwflowError
from swflow.log.recognise import IMPORTED

#: The importers; ``csv`` reads tables by a mapping, ``swf`` the Standard Workload Format, whose lines need no import.
IMPORTERS = ("sacct", "json", "jobcomp", "pbs", "lsf", "sge", "condor", "batsim", "philly", "gwf", "csv", "swf")

KINDS = (
    "empty values of Slurm", "widths", "lists of names", "resources", "times", "padding and quotes", "units",
    "separators", "never started", "arrays", "reruns", "preempted", "resized", "suspended", "heterogeneous",
    "several records",
)  # fmt: skip


SLURM_ONLY = "not applicable: only Slurm has such values or jobs"
NO_LIST = "not applicable: the format has one name"
NO_TEXT = "not applicable: the values are numbers without units"
NO_SEPARATOR = "not applicable: the format has a fixed separator"
NO_MEMORY = "not applicable: the format has neither memory nor GPUs"
UNKNOWN_RUNS = "not applicable: the format does not record it"

#: The table: (kind, importer) to the text of a file with its expected jobs, or to a reason.
CELLS: dict[tuple[str, str], tuple[str, list[dict[str, object]]] | str] = {
    ("empty values of Slurm", "sacct"): (
        text(sacct(Timelimit=4294967295, ReqCPUS=4294967294), sacct(JobID=2, Timelimit="49710-06:28:15")),
        [{"requested_time": None, "requested_processors": None}, {"requested_time": None}],
    ),
    ("empty values of Slurm", "json"): (
        slurm_json(
            one({"limit": 4294967295}, required={"CPUs": 8, "memory_per_node": 2**64 - 2}),
            one(
                {"limit": {"set": True, "infinite": False, "number": 4294967294}, "start": 4294967294, "elapsed": 0},
                job_id=2,
                state="CANCELLED",
            ),
        ),
        [{"requested_time": None, "requested_memory": None}, NEVER | {"requested_time": None}],
    ),
    ("empty values of Slurm", "jobcomp"): (
        jobcomp(TimeLimit=4294967295, Tres="cpu=8,gres/gpu=18446744073709551614"),
        [{"requested_time": None, "gpus": None}],
    ),
    ("empty values of Slurm", "csv"): (
        csv(*(csv.__defaults__ or ()), f"1,{TIMES},4294967294,4294967295,18446744073709551615,COMPLETED"),
        [{"allocated_processors": None, "requested_time": None, "memory": None}],
    ),
    ("widths", "sacct"): (
        text(
            sacct(AllocCPUS="", AllocTRES="billing=9,cpu=8,node=1"), sacct(JobID=2, AllocCPUS="", AllocTRES="1=8,4=1")
        ),
        [USUAL, USUAL],
    ),
    ("widths", "json"): (slurm_json(one()), [USUAL]),
    ("widths", "jobcomp"): (jobcomp(ProcCnt=64), [{"allocated_processors": 64}]),
    ("widths", "pbs"): (
        pbs("1.f", exec_host="nid1/17", Resource_List__mppwidth=64, Resource_List__mppdepth=2, Resource_List__ncpus=1)
        + pbs("2.f", exec_host="n1/25", Resource_List__procs=64)
        + pbs("3.f", exec_host="n1/0", Resource_List__size=64)
        + pbs("4.f", exec_host="n1/0", total_execution_slots=64, unique_node_count=4)
        + pbs("5.f", exec_host="n1/0", exec_vnode="(n1:ncpus=32)+(n2[0]:ncpus=16+n2[1]:ncpus=16)")
        + pbs("6.f", exec_host=None, Resource_List__nodes="4:ppn=16")
        + pbs("7.f", exec_host="n1/0*32", Resource_List__select="4:ncpus=16"),
        [{"allocated_processors": width} for width in (128, 64, 64, 64, 64, None, 32)],
    ),
    ("widths", "lsf"): (
        lsf('2 "4*n1" "4*n2"') + lsf('2 "n1" "n2"', job=2),
        [USUAL | {"nodes": 2}, {"allocated_processors": 2}],
    ),
    ("widths", "sge"): (sge(slots=64), [{"allocated_processors": 64}]),
    ("widths", "condor"): (
        condor(MaxHosts=4) + condor(ClusterId=2, CpusProvisioned=16),
        [{"allocated_processors": 32}, {"allocated_processors": 16}],
    ),
    ("widths", "batsim"): (batsim(res=64), [{"allocated_processors": 64}]),
    ("widths", "philly"): (philly(), [USUAL | {"requested_time": None}]),
    ("widths", "gwf"): (gwf(), [USUAL]),
    ("widths", "csv"): (
        csv(*(csv.__defaults__ or ()), f'1,{TIMES}," 1,024 ",7200,1,COMPLETED'),
        [{"allocated_processors": 1024}],
    ),
    ("lists of names", "sacct"): (text(sacct(Partition="debug,high")), [{"partition": "debug"}]),
    ("lists of names", "json"): (slurm_json(one(partition="debug,high")), [{"partition": "debug"}]),
    ("lists of names", "jobcomp"): (jobcomp(Partition="debug,high"), [{"partition": "debug"}]),
    ("lists of names", "pbs"): (pbs(queue="debug,high"), [{"queue": "debug"}]),
    ("lists of names", "lsf"): NO_LIST,
    ("lists of names", "sge"): NO_LIST,
    ("lists of names", "condor"): NO_LIST,
    ("lists of names", "batsim"): NO_LIST,
    ("lists of names", "philly"): NO_LIST,
    ("lists of names", "gwf"): NO_LIST,
    ("lists of names", "csv"): "not applicable: the mapping of this test has no partition; records share the code",
    ("resources", "sacct"): (
        text(
            sacct(ReqGRES="PER_NODE:gpu:2"),
            sacct(JobID=2, ReqGRES="gres:gpu:v100:4"),
            sacct(JobID=3, ReqGRES="PER_JOB:gpu:3"),
            sacct(JobID=4, ReqGRES="hbm:0,gpu:P100:2(IDX:1,3)"),
            sacct(JobID=5, AllocTRES="cpu=8,gres/gpu:a100=2,gres/gpu:v100=1"),
        ),
        [{"gpus": count} for count in (4, 8, 3, 4, 3)],
    ),
    ("resources", "json"): (
        slurm_json(
            one(tres={"allocated": [{"type": "cpu", "count": 8}, {"type": "gres", "name": "gpu:a100", "count": 2}]})
        ),
        [USUAL | {"gpus": 2}],
    ),
    ("resources", "jobcomp"): (jobcomp(Tres="cpu=8,mem=16G,gres/gpu=2"), [{"gpus": 2, "memory": 16384}]),
    ("resources", "pbs"): (
        pbs(Resource_List__select="2:ncpus=4:ngpus=2") + pbs("2.f", Resource_List__nodes="2:ppn=4:gpus=1"),
        [{"gpus": 4}, {"gpus": 2}],
    ),
    ("resources", "lsf"): (lsf(need="rusage[ngpus_physical=2.00]"), [{"gpus": 4, "used_memory": 1024}]),
    ("resources", "sge"): (sge(category="-l gpu=2,h_rt=02:00:00"), [{"gpus": 2, "requested_time": 7200}]),
    ("resources", "condor"): (
        condor(RequestGpus=2, RequestMemory=8),
        [{"gpus": 2, "memory": 8, "requested_memory": 1024}],
    ),
    ("resources", "batsim"): NO_MEMORY,
    ("resources", "philly"): "not applicable: GPUs are the processors",
    ("resources", "gwf"): NO_MEMORY,
    ("resources", "csv"): (csv(*(csv.__defaults__ or ()), f"1,{TIMES},8,7200,64GB,COMPLETED"), [{"memory": 65536}]),
    ("times", "sacct"): (
        text(
            sacct(Submit="2024-01-08T09:00:00+0100", Start="2024-01-08 08:10:00Z", End="2024-01-08T09:10:00.000"),
            sacct(JobID=2, Submit=SENT, Start=f"{SENT + 600}000", End=f"{SENT + 4200}"),
        ),
        [USUAL, USUAL],
    ),
    ("times", "json"): (slurm_json(one({"submission": f"{SENT}", "start": float(SENT + 600)})), [USUAL]),
    ("times", "jobcomp"): (jobcomp(SubmitTime="2024-01-08T09:00:00+01:00"), [USUAL]),
    ("times", "pbs"): (
        pbs(ctime=f"{SENT}.5", start=f"{SENT + 600}.5", end=f"{SENT + 4200}.5")
        + pbs("2.f", start="01/08/2024 08:10:00"),
        [USUAL, USUAL],
    ),
    ("times", "lsf"): (lsf(end=f"{SENT + 4200}000", begin=SENT + 60), [USUAL | {"eligible_after": 60}]),
    ("times", "sge"): (sge(submit=f"{SENT}000", start=f"{SENT + 600}000", end=f"{SENT + 4200}000"), [USUAL]),
    ("times", "condor"): (condor(CompletionDate=f"{SENT + 4200}.0"), [USUAL]),
    ("times", "batsim"): (batsim(subtime=0.5), [{"run_time": 3600}]),
    ("times", "philly"): (philly(submitted_time="2024-01-08T09:00:00+01:00"), [{"wait_time": 600}]),
    ("times", "gwf"): (gwf(1, f"{SENT}.25", "600.0", "3600.0", 8, -1, -1, 8, 7200), [USUAL]),
    ("times", "csv"): (
        csv(
            *(csv.__defaults__ or ()),
            "1,2024-01-08T09:00:00+01:00,2024-01-08 08:10:00Z,1704705000000,8,2:00:00,1,COMPLETED",
            "2,2024/01/08 08:00,2024-01-08 08:10:00.000,2024-01-08T09:10:00 +0000,8,2h,1,COMPLETED",
        ),
        [USUAL, USUAL],
    ),
    ("padding and quotes", "sacct"): (
        text(sacct(JobID=" 1 ", AllocCPUS=" 8", Timelimit=" 02:00:00 ", Start=" 2024-01-08T08:10:00 ")),
        [USUAL],
    ),
    ("padding and quotes", "json"): (slurm_json(one({"limit": " 120 "})), [USUAL]),
    ("padding and quotes", "jobcomp"): (jobcomp(TimeLimit="120 ", ProcCnt="8 "), [USUAL]),
    ("padding and quotes", "pbs"): (pbs(user='"ada b"', ctime=f'"{SENT}"'), [USUAL]),
    ("padding and quotes", "lsf"): (lsf(name='a "" b'), [USUAL]),
    ("padding and quotes", "sge"): (sge(name="a:b c"), [USUAL]),
    ("padding and quotes", "condor"): (condor(RequestCpus='"8"'), [USUAL]),
    ("padding and quotes", "batsim"): (batsim(res=" 8 "), [{"allocated_processors": 8}]),
    ("padding and quotes", "philly"): (philly(submitted_time=" 2024-01-08 08:00:00 "), [{"wait_time": 600}]),
    ("padding and quotes", "gwf"): (gwf(1, f" {SENT} ", " 600", "3600 ", 8, -1, -1, 8, 7200), [USUAL]),
    ("padding and quotes", "csv"): (
        csv(
            '\ufeff"id", "sent" ,began,ended,cores,limit,mem,state',
            f'"1", {TIMES.replace(",", " , ")},"8 "," 7200",1, "COMPLETED"',
        ),
        [USUAL],
    ),
    ("units", "sacct"): (
        text(*(sacct(JobID=place, ReqMem=value) for place, value in enumerate(("4Gc", "16Gn", "32G", "32GB"), 1))),
        [{"requested_memory": 4 * 1024**2}] * 4,
    ),
    ("units", "json"): NO_TEXT,
    ("units", "jobcomp"): (jobcomp(TimeLimit="0-02:00", Tres="cpu=8,mem=1.50G"), [USUAL | {"memory": 1536}]),
    ("units", "pbs"): (
        pbs(Resource_List__mem="8gb")
        + pbs("2.f", Resource_List__mem="1024mw")
        + pbs("3.f", Resource_List__walltime=7200),
        [{"memory": 8192}, {"memory": 8192}, USUAL],
    ),
    ("units", "lsf"): NO_TEXT,
    ("units", "sge"): (
        sge(category="-l h_vmem=1024M,h_rt=2:0:0"),
        [{"requested_memory": 1024**2, "requested_time": 7200}],
    ),
    ("units", "condor"): (
        condor(RequestMemory="ifThenElse(x, 1, 2)"),
        [USUAL | {"memory": None}],
    ),
    ("units", "batsim"): NO_TEXT,
    ("units", "philly"): NO_TEXT,
    ("units", "gwf"): NO_TEXT,
    ("units", "csv"): (
        csv(
            "id;sent;began;ended;cores;limit;mem;state",
            *(
                f"{place};{TIMES.replace(',', ';')};8;{limit};{mem};COMPLETED"
                for place, (limit, mem) in enumerate(
                    (("120 min", "64Gn"), ("2:00:00", "2Gc"), ("0 days 02:00:00", "1,5GB"), ("0-2", "512")), 1
                )
            ),
        ),
        [USUAL | {"memory": mem} for mem in (65536, 16384, 1536, 512)],
    ),
    ("separators", "sacct"): (text(sacct()).replace("|", "^|^"), [USUAL]),
    ("separators", "csv"): (
        csv(*(csv.__defaults__ or ()), f"1,{TIMES},8,7200,1,COMPLETED").replace(",", "||"),
        [USUAL],
    ),
    **{("separators", name): NO_SEPARATOR for name in IMPORTERS if name not in ("sacct", "csv", "swf")},
    ("never started", "sacct"): (
        text(
            *(
                sacct(JobID=place, State="CANCELLED by 7", Start=start, Elapsed="00:00:00", AllocCPUS=0)
                for place, start in enumerate(
                    (
                        "Unknown",
                        "None",
                        "",
                        "0",
                        "NaN",
                        "4294967294",
                        "1970-01-01T00:00:00",
                        "2106-02-07T06:28:14",
                        "2024-01-09T00:00:00",
                    ),
                    1,
                )
            )
        ),
        [NEVER] * 9,
    ),
    ("never started", "json"): (
        slurm_json(
            *(
                one({"start": start, "elapsed": 0}, job_id=place, state={"current": ["CANCELLED"]})
                for place, start in enumerate((0, None, 4294967294, {"set": False, "number": 0}, SENT + 9999), 1)
            )
        ),
        [NEVER] * 5,
    ),
    ("never started", "jobcomp"): (
        jobcomp(JobState="CANCELLED", StartTime="Unknown")
        + jobcomp(JobId=2, JobState="CANCELLED", StartTime="2024-01-09T00:00:00"),
        [NEVER] * 2,
    ),
    ("never started", "pbs"): (
        pbs(start=None, Exit_status=271)
        + pbs("2.f", start=0, Exit_status=-1)
        + pbs("3.f", start=SENT + 9999, Exit_status=271),
        [NEVER] * 3,
    ),
    ("never started", "lsf"): (lsf("0", start=0, status=32), [NEVER | {"status": 5}]),
    ("never started", "sge"): (sge(start=0, failed=7), [NEVER | {"status": 5}]),
    ("never started", "condor"): (
        condor(JobStatus=3, JobCurrentStartDate=None, CompletionDate=0, EnteredCurrentStatus=SENT + 4200),
        [NEVER | {"status": 5}],
    ),
    ("never started", "batsim"): "not applicable: a workload has no schedule",
    ("never started", "philly"): (philly(attempts=[], status="Killed"), [NEVER | {"wait_time": 0}]),
    ("never started", "gwf"): (gwf(1, SENT, -1, 0, 8, -1, -1, 8, 7200, -1, 5), [{"run_time": 0, "wait_time": None}]),
    ("never started", "csv"): (
        csv(
            *(csv.__defaults__ or ()),
            *(
                f"{place},2024-01-08T08:00:00,{start},2024-01-08T09:10:00,8,7200,1,CANCELLED by 7"
                for place, start in enumerate(("", "Unknown", "NaT", "0", "4294967294", "2024-01-09T00:00:00"), 1)
            ),
        ),
        [{"wait_time": 4200, "run_time": 0}] * 6,
    ),
    ("arrays", "sacct"): (
        text(sacct(JobID="1_[3-7:2,9%2]", State="CANCELLED", Start="None", Elapsed="00:00:00", AllocCPUS=0)),
        [NEVER] * 4,
    ),
    ("arrays", "json"): (
        slurm_json(
            one(
                {"start": 0, "elapsed": 0},
                state="CANCELLED",
                array={"job_id": 1, "task_id": {"set": False}, "task": "3-6"},
            )
        ),
        [NEVER] * 4,
    ),
    ("arrays", "jobcomp"): (
        jobcomp().replace(" UserId", " ArrayJobId=9 ArrayTaskId=3 UserId"),
        [USUAL | {"site_job_id": "9_3"}],
    ),
    ("arrays", "pbs"): (pbs("1[3].f") + pbs("1[].f"), [USUAL | {"site_job_id": "1[3]"}]),
    ("arrays", "lsf"): (lsf(index=3), [USUAL | {"site_job_id": "1[3]"}]),
    ("arrays", "sge"): (sge(task=3), [USUAL | {"site_job_id": "1.3"}]),
    ("arrays", "condor"): (condor(ProcId=3), [USUAL | {"site_job_id": "1.3"}]),
    ("arrays", "batsim"): UNKNOWN_RUNS,
    ("arrays", "philly"): UNKNOWN_RUNS,
    ("arrays", "gwf"): UNKNOWN_RUNS,
    ("arrays", "csv"): "not applicable: the mapping of this test has no array",
    ("reruns", "sacct"): (
        text(
            sacct(State="REQUEUED"),
            sacct(Submit="2024-01-08T09:10:00", Start="2024-01-08T09:20:00", End="2024-01-08T10:20:00"),
        ),
        [USUAL, USUAL],
    ),
    ("reruns", "json"): (slurm_json(one(), one({"start": SENT + 4800, "end": SENT + 8400})), [USUAL, USUAL]),
    ("reruns", "jobcomp"): (
        jobcomp() + jobcomp(StartTime="2024-01-08T09:20:00", EndTime="2024-01-08T10:20:00"),
        [USUAL, USUAL],
    ),
    ("reruns", "pbs"): (pbs() + pbs(start=SENT + 4800, end=SENT + 8400), [USUAL, USUAL]),
    ("reruns", "lsf"): (lsf() + lsf(start=SENT + 4800, end=SENT + 8400), [USUAL, USUAL]),
    ("reruns", "sge"): (sge(failed=25) + sge(start=SENT + 4800, end=SENT + 8400), [USUAL | {"status": 0}, USUAL]),
    ("reruns", "condor"): (condor(JobStartDate=SENT + 60, NumJobStarts=2), [USUAL]),
    ("reruns", "batsim"): UNKNOWN_RUNS,
    ("reruns", "philly"): (
        philly(
            attempts=[
                {"start_time": "2024-01-08 08:10:00", "end_time": "None", "detail": []},
                {"start_time": "2024-01-08 09:00:00", "end_time": "2024-01-08 09:10:00", "detail": [{"gpus": ["g"]}]},
            ]
        ),
        [{"wait_time": 600, "run_time": 3600, "allocated_processors": 1}],
    ),
    ("reruns", "gwf"): UNKNOWN_RUNS,
    ("reruns", "csv"): UNKNOWN_RUNS,
    ("resized", "sacct"): (
        text(
            sacct(State="RESIZING"),
            sacct(AllocCPUS=2, Submit="2024-01-08T09:10:00", Start="2024-01-08T09:10:00", End="2024-01-08T10:10:00"),
        ),
        [USUAL, {"wait_time": 0, "allocated_processors": 2}],
    ),
    ("resized", "json"): (
        slurm_json(one(state="RESIZING"), one({"submission": SENT + 4200, "start": SENT + 4200, "end": SENT + 7800})),
        [USUAL, USUAL | {"wait_time": 0}],
    ),
    ("resized", "jobcomp"): UNKNOWN_RUNS,
    ("suspended", "sacct"): (
        text(sacct(Elapsed="00:50:00", Suspended="00:10:00")),
        [{"run_time": 3000, "suspended_time": 600}],
    ),
    ("suspended", "json"): (
        slurm_json(one({"elapsed": 3000, "suspended": 600})),
        [{"run_time": 3000, "suspended_time": 600}],
    ),
    ("suspended", "jobcomp"): UNKNOWN_RUNS,
    ("suspended", "condor"): (condor(CumulativeSuspensionTime=600), [{"run_time": 3000, "suspended_time": 600}]),
    **{("suspended", name): UNKNOWN_RUNS for name in ("pbs", "lsf", "sge", "batsim", "philly", "gwf", "csv")},
    ("heterogeneous", "sacct"): (
        text(sacct(JobID="1+0"), sacct(JobID="1+1", AllocCPUS=4)),
        [USUAL | {"allocated_processors": 12}],
    ),
    ("heterogeneous", "json"): (
        slurm_json(
            *(
                one(het={"job_id": 1, "job_offset": {"set": True, "number": place}}, job_id=1 + place)
                for place in (0, 1)
            )
        ),
        [USUAL | {"allocated_processors": 16}],
    ),
    ("heterogeneous", "jobcomp"): (
        "".join(
            jobcomp(JobId=place).replace(" UserId", f" HetJobId=1 HetJobOffset={place - 1} UserId") for place in (1, 2)
        ),
        [USUAL | {"allocated_processors": 16}],
    ),
    ("preempted", "sacct"): (
        text(
            sacct(State="PREEMPTED", End="2024-01-08T08:30:00", Elapsed="00:20:00"),
            sacct(Submit="2024-01-08T08:30:00", Start="2024-01-08T08:40:00", End="2024-01-08T09:40:00"),
        ),
        [USUAL | {"run_time": 1200, "status": 0}, USUAL | {"status": 1}],
    ),
    ("preempted", "json"): (
        slurm_json(
            one({"end": SENT + 1800, "elapsed": 1200}, state={"current": ["PREEMPTED"]}),
            one({"submission": SENT + 1800, "start": SENT + 2400, "end": SENT + 6000}),
        ),
        [USUAL | {"run_time": 1200, "status": 0}, USUAL | {"status": 1}],
    ),
    ("preempted", "jobcomp"): (jobcomp(JobState="PREEMPTED"), [USUAL | {"status": 0}]),
    ("preempted", "pbs"): (
        "01/08/2024 08:20:00;z;1.f;preempted\n01/08/2024 08:30:00;R;1.f;user=ada\n" + pbs(run_count=2),
        [USUAL | {"status": 1}],
    ),
    ("preempted", "condor"): (condor(JobStartDate=SENT + 60, NumJobStarts=2, LastVacateTime=SENT + 300), [USUAL]),
    ("preempted", "csv"): (csv(*(csv.__defaults__ or ()), f"1,{TIMES},8,7200,1,PREEMPTED"), [USUAL | {"status": 0}]),
    ("preempted", "swf"): (swf(status=3) + swf(status=2, run=60) + swf(status=3, run=3540), [USUAL | {"status": 3}]),
    **{("preempted", name): UNKNOWN_RUNS for name in ("lsf", "sge", "batsim", "philly", "gwf")},
    ("widths", "swf"): (swf(allocated=-1, asked=8) + swf(2, asked=-1), [{"processors": 8}, {"processors": 8}]),
    ("lists of names", "swf"): NO_LIST,
    ("resources", "swf"): (swf(more=" 2 n1") + swf(2, more=" x n2"), [USUAL | {"gpus": 2}, USUAL | {"gpus": None}]),
    ("times", "swf"): (swf(sent="0.25", wait="6e2", run="3600.0"), [USUAL]),
    ("padding and quotes", "swf"): ("; MaxProcs 64\n\n  " + swf().rstrip() + " \t ; ok\r\n", [USUAL]),
    ("units", "swf"): NO_TEXT,
    ("separators", "swf"): (swf().replace(" ", " \t"), [USUAL]),
    ("never started", "swf"): (swf(wait=4200, run=0, allocated=-1, status=5), [NEVER | {"cancelled_after": 4200}]),
    ("arrays", "swf"): UNKNOWN_RUNS,
    ("reruns", "swf"): (swf() + swf(2, sent=4200), [USUAL, USUAL]),
    ("suspended", "swf"): UNKNOWN_RUNS,
    ("several records", "swf"): (swf() * 2 + "; the end\n", [USUAL]),
    ("several records", "sacct"): (text(sacct(), sacct(), sacct(JobID="1.batch")), [USUAL]),
    ("several records", "json"): (slurm_json(one(), one()), [USUAL]),
    ("several records", "jobcomp"): (jobcomp() * 2, [USUAL]),
    ("several records", "pbs"): (pbs() * 2 + "01/08/2024 08:00:00;Q;1.f;queue=q\n", [USUAL]),
    ("several records", "lsf"): (lsf() * 2 + '"EVENT_ADRSV_FINISH" "10.1" 1 2 3\n', [USUAL]),
    ("several records", "sge"): ("# Version: 8.1\n" + sge() * 2 + sge(of="1.n2"), [USUAL]),
    ("several records", "condor"): (condor() * 2 + condor(ClusterId=2, JobUniverse=7), [USUAL]),
    ("several records", "batsim"): UNKNOWN_RUNS,
    ("several records", "philly"): UNKNOWN_RUNS,
    ("several records", "gwf"): UNKNOWN_RUNS,
    ("several records", "csv"): UNKNOWN_RUNS,
    **{
        ("empty values of Slurm", name): SLURM_ONLY
        for name in ("pbs", "lsf", "sge", "condor", "batsim", "philly", "gwf", "swf")
    },
    **{
        (kind, name): SLURM_ONLY
        for kind in ("resized", "heterogeneous")
        for name in ("pbs", "lsf", "sge", "condor", "batsim", "philly", "gwf", "csv", "swf")
    },
}


@pytest.mark.parametrize(
    ("kind", "importer"),
    [place for place, cell in CELLS.items() if not isinstance(cell, str)],
    ids=lambda name: str(name),
)
def test_a_kind_of_values_is_read(tmp_path, kind: str, importer: str):
    content, expected = CELLS[kind, importer]
    log = read(tmp_path, importer, content)
    order = log.fields.with_columns(site=log.fields["site_job_id"].str.extract(r"(\d+)$", 1).cast(int))
    rows = order.sort("submit_time", "site", "job_id").to_dicts()
    for row in rows:
        for name in ("partition", "queue"):
            row[name] = log.header.names_of(f"{name}_id").get(row[f"{name}_id"])
    found = [{name: row.get(name) for name in one} for row, one in zip(rows, expected, strict=True)]
    assert found == expected


def test_every_kind_has_a_case_for_every_importer():
    assert CELLS.keys() == {(kind, importer) for kind in KINDS for importer in IMPORTERS}
    reasons = [cell for cell in CELLS.values() if isinstance(cell, str)]
    assert all(reason.startswith("not applicable: ") for reason in reasons)
    yaml = {"sacct-json": "json", "sacct-yaml": "json"}  # the same code after parsing
    assert {yaml.get(name, name) for name in IMPORTED} == {*IMPORTERS} - {"csv", "swf"}


def test_nothing_is_left_of_a_file_without_jobs(tmp_path):
    for name, content in (("lsf", '"JOB_FINISH" "10.1" 1 2\n'), ("sge", ":".join("0" * 45) + "\n")):
        with pytest.raises(SwflowError) as caught:
            read(tmp_path, name, content)
        assert "\n" not in str(caught.value)
