"""Draw valid files of every format that swflow reads, of a few dozen jobs."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

#: The first submission of the drawn logs.
START = datetime(2023, 3, 6, 8, tzinfo=UTC)


class Job(NamedTuple):
    """A job: seconds from `START`, processors, and names."""

    id: int
    submit: int
    wait: int
    run: int
    processors: int
    limit: int
    user: str
    account: str
    partition: str
    state: str

    @property
    def start(self) -> int:
        return self.submit + self.wait

    @property
    def end(self) -> int:
        return self.start + self.run


def draw_jobs(rng: random.Random, count: int = 30) -> list[Job]:
    """Return jobs in the order of their submissions."""
    jobs, submit = [], 0
    for number in range(1, count + 1):
        submit += rng.randrange(600)
        run = rng.choice([1, 60, rng.randrange(1, 20_000)])
        jobs.append(
            Job(number, submit, rng.choice([0, 5, rng.randrange(5000)]), run, rng.choice([1, 2, 4, 8]),
                (run // 60 + rng.randrange(1, 60)) * 60, rng.choice(["alice", "bob", "Zoë"]), rng.choice(["a", "b"]),
                rng.choice(["batch", "gpu"]), rng.choice(["COMPLETED", "COMPLETED", "FAILED", "TIMEOUT"]))
        )  # fmt: skip
    return jobs


def _at(seconds: float, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return (START + timedelta(seconds=seconds)).strftime(form)


def _unix(seconds: float) -> int:
    return int(START.timestamp() + seconds)


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    return (f"{days}-" if days else "") + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def swf(rng: random.Random) -> str:
    """Return a log in the Standard Workload Format."""
    lines = [
        "; Version: 2.2", "; Computer: Test", f"; MaxProcs: {rng.choice([8, 16, 64])}", "; MaxNodes: 8",
        f"; UnixStartTime: {_unix(0)}", "; TimeZoneString: Europe/Stockholm", "; Queue: 1 batch", "; Queue: 2 gpu",
        "; User: 5 alice", "; User: 3 bob", "; Group: 1 a",
        "; Note: a note", ";       that continues",
    ]  # fmt: skip
    for job in draw_jobs(rng):
        queue = 1 + (job.partition == "gpu")
        lines.append(
            f"{job.id} {job.submit} {job.wait} {job.run} {job.processors} {job.run}.5 9 {job.processors} {job.limit} "
            f"2048 {rng.choice([0, 1, 1, 5])} {len(job.user)} 1 7 {queue} 1 -1 -1"
        )
    return "\n".join(lines) + "\n"


def sacct(rng: random.Random) -> str:
    """Return the output of ``sacct -P``, with steps, an array, a heterogeneous job and texts with separators."""
    rows = [
        "JobID|User|Group|Account|Partition|QOS|JobName|State|Submit|Eligible|Start|End|Elapsed|Suspended|Timelimit|"
        "ReqCPUS|AllocCPUS|NNodes|ReqMem|AllocTRES|ReqTRES|TotalCPU|MaxRSS|NTasks|SubmitLine"
    ]
    for job in draw_jobs(rng):
        name = rng.choice([f"{job.id}", f"{1000 + job.id}_{rng.randrange(9)}", f"{2000 + job.id}+0"])
        tres = f"billing=1,cpu={job.processors},mem=4G,node=1" + rng.choice(["", ",gres/gpu:a100=1,gres/gpu=1"])
        rows.append(
            f"{name}|{job.user}|users|{job.account}|{job.partition}|normal|{rng.choice(['run', 'a|b', 'x y'])}|"
            f"{job.state}|{_at(job.submit)}|{_at(job.submit)}|{_at(job.start)}|{_at(job.end)}|{_span(job.run)}|"
            f"00:00:00|{_span(job.limit)}|{job.processors}|{job.processors}|1|"
            f"{rng.choice(['4Gn', '500Mc', '4G'])}|{tres}|{tres}|{_span(job.run)}|||"
            f"{rng.choice(['', 'sbatch --dependency=afterok:1 x.sh', 'sbatch --array=0-9%2 x.sh'])}"
        )
        rows.append(
            f"{name}.batch||||||batch|{job.state}|{_at(job.submit)}|{_at(job.submit)}|{_at(job.start)}|{_at(job.end)}|"
            f"{_span(job.run)}|00:00:00||{job.processors}|{job.processors}|1||||{_span(job.run)}|12345K|1|"
        )
    return "\n".join(rows) + "\n"


def sacct_json(rng: random.Random) -> str:
    """Return the output of ``sacct --json``."""

    def number(value: int) -> Any:
        return rng.choice([value, {"set": True, "infinite": False, "number": value}])

    jobs = [
        {
            "job_id": job.id, "name": "run", "user": job.user, "account": job.account, "partition": job.partition,
            "qos": "normal", "group": "users", "cluster": "c", "state": {"current": [job.state]},
            "array": {"job_id": 0, "task_id": {"set": False}, "limits": {"max": {"running": {"tasks": 0}}}},
            "het": {"job_id": 0, "job_offset": {"set": False}},
            "time": {"submission": _unix(job.submit), "eligible": _unix(job.submit), "start": _unix(job.start),
                     "end": _unix(job.end), "elapsed": job.run, "suspended": 0, "limit": number(job.limit // 60),
                     "total": {"seconds": job.run, "microseconds": 5}},
            "required": {"CPUs": job.processors, "memory_per_cpu": number(512), "memory_per_node": {"set": False}},
            "tres": {name: [{"type": "cpu", "count": job.processors}, {"type": "gres", "name": "gpu", "count": 1}]
                     for name in ("allocated", "requested")},
            "allocation_nodes": 1, "submit_line": "sbatch x.sh", "reservation": {"name": ""}, "constraints": "",
            "licenses": "",
            "steps": [{"tres": {"requested": {"total": [{"type": "mem", "count": 123456}]}}}],
        }
        for job in draw_jobs(rng, 12)
    ]  # fmt: skip
    return json.dumps({"jobs": jobs, "errors": []}, indent=1)


def jobcomp(rng: random.Random) -> str:
    """Return a file of Slurm's plugin jobcomp/filetxt."""
    return "".join(
        f"JobId={job.id} UserId={job.user}(7) GroupId=users(8) Name=run JobState={job.state} Partition={job.partition} "
        f"TimeLimit={job.limit // 60} StartTime={_at(job.start)} EndTime={_at(job.end)} NodeList=n[1-2] NodeCnt=1 "
        f"ProcCnt={job.processors} WorkDir=/ ReservationName= Tres=cpu={job.processors},node=1 Account={job.account} "
        f"QOS=normal WcKey= Cluster=c SubmitTime={_at(job.submit)} EligibleTime={_at(job.submit)} DerivedExitCode=0:0 "
        "ExitCode=0:0 \n"
        for job in draw_jobs(rng)
    )


def pbs(rng: random.Random) -> str:
    """Return an accounting file of PBS or Torque."""
    lines = []
    for job in draw_jobs(rng):
        places = "+".join(f"n{core}/{core}" for core in range(job.processors))
        hosts = rng.choice([places, f"n1/0-{job.processors - 1}", f"n1/0*{job.processors}"])
        lines.append(
            f"{_at(job.end, '%m/%d/%Y %H:%M:%S')};E;{job.id}.server;user={job.user} group=users account={job.account} "
            f"jobname=run queue={job.partition} ctime={_unix(job.submit)} qtime={_unix(job.submit)} "
            f"etime={_unix(job.submit)} start={_unix(job.start)} exec_host={hosts} Resource_List.walltime="
            f"{_span(job.limit)} Resource_List.select=1:ncpus={job.processors}:ngpus=1 Resource_List.mem=4gb end="
            f"{_unix(job.end)} Exit_status={rng.choice([0, 1, 271])} resources_used.cput={_span(job.run)} "
            f"resources_used.mem=12345kb resources_used.walltime={_span(job.run)}"
        )
        lines.append(f"{_at(job.start, '%m/%d/%Y %H:%M:%S')};S;{job.id}.server;user={job.user}")
    return "\n".join(lines) + "\n"


def gwf(rng: random.Random) -> str:
    """Return a log of the Grid Workloads Format."""
    lines = ["# JobID\tSubmitTime"]
    for job in draw_jobs(rng):
        fields = [
            job.id, _unix(job.submit), job.wait, job.run, job.processors, job.run, 99, job.processors, job.limit, 2048,
            1, job.user, job.account, "e1", job.partition, "p1", "s1", rng.choice(["s1", "s2"]), "UNITARY",
            *["-1"] * 10,
        ]  # fmt: skip
        lines.append("\t".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def csv(rng: random.Random) -> str:
    """Return a table of jobs, for `columns`."""
    lines = ["id,submitted,waited,seconds,cpus,limit,user,queue,gpus,mem,state,after"]
    for job in draw_jobs(rng):
        lines.append(
            f"{job.id},{_at(job.submit)},{job.wait},{job.run},{job.processors},{job.limit / 60:g},{job.user},"
            f"{job.partition},{rng.choice(['0', '2'])},{rng.choice(['4', '8.5'])},{job.state},"
            f"{rng.choice(['', '1'])}"
        )
    return "\n".join(lines) + "\n"


def columns(rng: random.Random) -> str:
    """Return the mapping of the columns of `csv`."""
    return """\
source: a site
columns:
  job_id: id
  submit_time: submitted
  wait_time: waited
  run_time: {column: seconds, unit: s}
  processors: cpus
  requested_time: {column: limit, unit: min, factor: 1}
  user: user
  queue: queue
  gpus: gpus
  licenses: {column: user, pattern: 'lic:(\\d+)'}
  memory: {column: mem, unit: GB}
  status: state
  depends_on: after
status: {COMPLETED: 1, FAILED: 0, TIMEOUT: 0}
"""


def slurm_conf(rng: random.Random) -> str:
    """Return a slurm.conf."""
    return f"""\
ClusterName=c  # a comment
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=2880,default_queue_depth=100
SelectTypeParameters=CR_Core_Memory
AccountingStorageEnforce=limits
PriorityType=priority/multifactor
PriorityWeightAge={rng.choice([0, 1000])}
PriorityWeightFairshare=2000
PriorityWeightQOS=100
PriorityMaxAge=7-0
PriorityDecayHalfLife=14-0
PreemptType=preempt/qos
PreemptMode=REQUEUE
NodeName=DEFAULT RealMemory=64000
NodeName=n[001-016,020] CPUs={rng.choice([8, 16])} Feature=a,b Weight=2
NodeName=g[1-2] Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 Gres=gpu:a100:4 \\
    Weight=5
NodeSet=fast Nodes=n[001-004]
DownNodes=n020 State=DOWN
PartitionName=batch Nodes=n[001-016] Default=YES MaxTime=1-0 PriorityTier=1
PartitionName=gpu Nodes=g[1-2] MaxTime=12:00:00 PriorityJobFactor=10
"""


def qos(rng: random.Random) -> str:
    """Return the output of ``sacctmgr show qos -P``."""
    gpus = rng.choice(["gres/gpu", "gres/gpu:a100"])
    return (
        "Name|Priority|GraceTime|Preempt|PreemptMode|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU|GrpTRESRunMins\n"
        "normal|0|00:00:00||cluster||||10|\n"
        f"high|{rng.choice([10, 100])}|00:00:00|normal|requeue|cpu=64,{gpus}=4|20|cpu=32|5|cpu=100000\n"
    )


def associations(rng: random.Random) -> str:
    """Return the output of ``sacctmgr show assoc -P``."""
    return (
        "Account|ParentName|User|Share|MaxJobs|GrpJobs|GrpTRES|GrpTRESRunMins\n"
        "root|||1||||\n"
        f"a|root||{rng.choice([1, 3])}|||cpu=64|\n"
        "b|root||parent||50||\na||alice|1|5|||\nb||bob|2||||cpu=9000\n"
    )


def reservations(rng: random.Random) -> str:
    """Return the output of ``scontrol show res``."""
    return (
        "ReservationName=maint StartTime=2023-04-01T08:00:00 EndTime=2023-04-01T20:00:00 Duration=12:00:00\n"
        "   Nodes=n[001-004] NodeCnt=4 CoreCnt=32 Flags=MAINT,SPEC_NODES\n\n"
        "ReservationName=course StartTime=2023-04-02T08:00:00 EndTime=2023-04-02T20:00:00\n   Nodes=g1 Flags=\n"
    )


def usage(rng: random.Random) -> str:
    """Return the output of ``sshare -a -l -P``."""
    return (
        "Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare\n"
        "root|||1.0|100000|1.0|\n"
        f" a|alice|1|0.5|{rng.choice([5000, 70000])}|0.5|0.5\n b|bob|1|0.5|0|0.0|1.0\n"
    )


def squeue(rng: random.Random) -> str:
    """Return the output of ``squeue -o FORMAT``."""
    lines = ["JOBID|USER|ACCOUNT|PARTITION|CPUS|TIME_LIMIT|SUBMIT_TIME|START_TIME|STATE"]
    for job in draw_jobs(rng, 12):
        state = rng.choice(["PENDING", "RUNNING"])
        start = "N/A" if state == "PENDING" else _at(job.start)
        lines.append(
            f"{job.id}|{job.user}|{job.account}|{job.partition}|{job.processors}|{_span(job.limit)}|{_at(job.submit)}|"
            f"{start}|{state}"
        )
    return "\n".join(lines) + "\n"


def squeue_json(rng: random.Random) -> str:
    """Return the output of ``squeue --json``."""
    jobs = []
    for job in draw_jobs(rng, 8):
        state = rng.choice(["PENDING", "RUNNING"])
        jobs.append(
            {
                "job_id": job.id, "job_state": rng.choice([state, [state]]), "user_name": job.user,
                "partition": job.partition, "cpus": {"set": True, "infinite": False, "number": job.processors},
                "time_limit": {"set": True, "infinite": False, "number": job.limit // 60},
                "submit_time": rng.choice([_unix(job.submit), {"set": True, "number": _unix(job.submit)}]),
                "start_time": _unix(job.start),
            }
        )  # fmt: skip
    return json.dumps({"jobs": jobs}, indent=1)


def catalogue(rng: random.Random) -> str:
    """Return a catalogue of logs, one of which is the file ``my.swf``."""
    return """\
mine: {path: my.swf, processors: 64, nodes: 8, acknowledgement: thanks}
part:
  of: mine
  from: 2023-03-06
  until: 2023-03-09T06:00
  clean: {drop: [zero-run-time], without_status: [5], flurries: ["user_id == 3 and job_id < 4"]}
made: {generate: lublin, processors: 128, jobs: 500, load: 0.7}
far: {url: "https://example.org/l_far/far.swf.gz", jobs: 30, sha256: "%s"}
""" % ("0" * 64)


def scheduler_file(rng: random.Random) -> str:
    """Return a config with one scheduler."""
    return """\
schedulers:
  site:
    order: slurm-multifactor
    backfill: easy
    priority: {age: 1000, fair_share: 2000, max_age: 604800, fair_share_of: fair-tree, calc_period: 300}
    half_life: 604800
    accounts: {a: {share: 2, users: {alice: 1}}, b: {parent: a, users: {bob: 3}, usage: {bob: 7}}}
    limits: {user: {alice: {jobs: 3, processors: 32}}}
"""


def scheduler_text(rng: random.Random) -> str:
    """Return a scheduler as on the command line."""
    return rng.choice(
        [
            "mine: {order: sjf, backfill: easy, reservations: 2}",
            'mine={"order": "wfp3", "backfill": "conservative", "estimates": "raise"}',
            "mine: {order: 'wait / estimate', backfill: easy, unavailable: [{from: 100, until: 2000, processors: 2}]}",
            "mine: {backfill: easy, limits: {user: {'4': {jobs: 2}}}, event_order: per-event}",
        ]
    )


def demands(rng: random.Random) -> str:
    """Return the demands of jobs for memory bandwidth."""
    return "# job demand\n" + "".join(f"{job} {rng.choice([500, 1000.5, 2000])}\n" for job in range(1, 31))


def starts(rng: random.Random) -> str:
    """Return the output of a simulator."""
    return rng.choice(["job,start\n", ""]) + "".join(f"{job},{job * 10}\n" for job in range(1, 11))


#: The formats that are texts: name of the file to the function that draws it.
TEXTS: dict[str, Callable[[random.Random], str]] = {
    "my.swf": swf, "sacct.txt": sacct, "sacct.json": sacct_json, "jobcomp.txt": jobcomp, "pbs.txt": pbs, "my.gwf": gwf,
    "jobs.csv": csv, "columns.yaml": columns, "slurm.conf": slurm_conf, "qos.txt": qos, "assoc.txt": associations,
    "res.txt": reservations, "usage.txt": usage, "squeue.txt": squeue, "squeue.json": squeue_json,
    "logs.yaml": catalogue, "site.yaml": scheduler_file, "demands.txt": demands, "starts.txt": starts,
    "scheduler": scheduler_text,
}  # fmt: skip


def write_all(folder: Path, rng: random.Random) -> None:
    """Write a file of every text format."""
    for name, draw in TEXTS.items():
        (folder / name).write_text(draw(rng), encoding="utf-8")
