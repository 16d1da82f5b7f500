"""
Compare swflow with a real Slurm: run short traces of sleeping jobs on one, and simulate the same jobs.

    python benchmarks/slurm_oracle.py --runs 5 --keep FOLDER [--traces backfill,qos] [--parallel 8]
    python benchmarks/slurm_oracle.py --only-compare [--keep FOLDER] [--pack]

Each trace exercises one mechanism on eight nodes of four CPUs; the last two combine all mechanisms, `site` on ten
nodes. The nodes are daemons on this machine (Debian's slurm-wlm, slurmdbd, munge and mariadb-server; needs root). A
real Slurm does not repeat itself, so each trace runs several times.

The folder keeps slurm.conf and what `sacct` and `sacctmgr` print. swflow imports the accounting records, reads the
configuration with `swflow import site`, and simulates the jobs with its scheduler. Times are not compressed: a run
takes about 10 min. Jobs only sleep, so that several runs at the same time do not disturb each other.

Without a folder, the recordings of the repository are compared; `--pack` replaces them by those of the folder.

The parts of priorities that `sprio` printed are compared with those of swflow, at the recorded starts of jobs.
"""

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.slurm import Slurm, Unavailable
from helpers.slurm_recordings import RESERVATIONS, compare, interval, pack, read_run, runs_in, unpack
from swflow.compiled.kernel import Handle, Kernel
from swflow.errors import SwflowError
from swflow.log.importers.sacct import RECOMMENDED
from swflow.scheduling.orders.formula import compile_formula
from swflow.scheduling.orders.keys import Order
from swflow.scheduling.orders.multifactor import formula_of
from swflow.scheduling.orders.ownership import Names
from swflow.scheduling.prepare import prepare
from swflow.scheduling.slurm.accounts import SLURM_ACCOUNTING, compute_usage, end_use, leave_line, submit_use
from swflow.scheduling.slurm.setup import new_states
from swflow.scheduling.slurm.state import SlurmState
from swflow.scheduling.state.search import queued_key

CPUS = 4

#: Fractions of a second by which each run is simulated earlier or later than recorded.
PHASES = 10

#: Users of the system, with whom the jobs of different users are submitted.
USERS = ("games", "news", "mail", "backup")
BY_USER = [[f"--uid={name}"] for name in (*USERS, USERS[0], USERS[0])]
QOS = ("--qos=normal", "--qos=normal", "--qos=high", "--qos=low")
PHYSICISTS = [f"add user {name} Account=physics" for name in USERS]

#: An account with two below it, and a third next to it, each with a user or two; root's is physics.
TREE = (
    "add account science Description=x Organization=x Fairshare=3",
    "add account bio Parent=science Description=x Organization=x Fairshare=1",
    "add account chem Parent=science Description=x Organization=x Fairshare=3",
    "add account art Description=x Organization=x Fairshare=2",
    "add user games Account=bio", "add user news Account=chem", "add user mail Account=chem Fairshare=2",
    "add user backup Account=art",
)  # fmt: skip

#: 16 users in 20 accounts: four faculties with four institutes each.
SITE_USERS = (
    "games", "news", "mail", "backup", "daemon", "bin", "sys", "sync", "man", "lp", "uucp", "proxy", "www-data", "list",
    "irc", "nobody",
)  # fmt: skip
SITE_ACCOUNTS = (
    *(f"add account faculty{n} Description=x Organization=x Fairshare={n}" for n in range(1, 5)),
    *(
        f"add account institute{n} Parent=faculty{n % 4 + 1} Description=x Organization=x Fairshare={n % 3 + 1}"
        for n in range(16)
    ),
    *(f"add user {name} Account=institute{n}" for n, name in enumerate(SITE_USERS)),
)

#: The columns of associations that `swflow import site` reads.
ASSOCIATIONS = "Account,ParentName,User,Share,MaxJobs,GrpJobs,GrpTRES,GrpTRESRunMins"

#: Columns of `sprio`: job, priority, and its parts by age, fair share, size, and QOS.
SPRIO = "%i %Y %A %F %J %Q"

#: The options `priority` with the weights of these parts, in this order.
WEIGHTS = ("age", "fair_share", "size", "qos")

ALL = "PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP"

#: Two partitions that share nodes, and options of jobs for them.
SHARED = "PartitionName=main Nodes=ALL Default=YES State=UP\nPartitionName=small Nodes=n[5-8] State=UP"
BY_PARTITION = (["-p", "main"], ["-p", "main"], ["-p", "small"])
BACKFILL = "SchedulerType=sched/backfill\nSchedulerParameters=bf_interval=5,bf_resolution=1,sched_interval=2"
MEMORY = "SelectTypeParameters=CR_CPU_Memory\nDefMemPerCPU=250"
GPUS = "GresTypes=gpu\nAccountingStorageTRES=gres/gpu"
LIMITS = "AccountingStorageEnforce=limits,qos"
CYCLES = "SchedulerType=sched/backfill\nSchedulerParameters=sched_interval=2,"
MULTIFACTOR = "PriorityType=priority/multifactor\nPriorityCalcPeriod=1"
COMBINED = (
    f"{CYCLES}bf_interval=15,bf_resolution=15,bf_max_job_user=3\n{MULTIFACTOR}\nPriorityWeightFairshare=10000\n"
    "PriorityWeightAge=1000\nPriorityMaxAge=10\nPriorityWeightQOS=3000\nPriorityWeightJobSize=1000\n"
    f"PriorityDecayHalfLife=00:05:00\n{LIMITS}\n{ALL}"
)

#: The nodes of a small cluster, and what its jobs need.
MIXED_NODES = (
    *["CPUs=4 RealMemory=2000 Features=small,ib"] * 6, *["CPUs=8 RealMemory=4000 Features=large,ib"] * 2,
    "CPUs=4 RealMemory=2000 Features=small Gres=gpu:4", "CPUs=4 RealMemory=16000 Features=large",
)  # fmt: skip
MIXED_JOBS = (
    [], [], [], ["-C", "ib"], ["-C", "small"], ["-C", "large"], ["-C", "large&ib"], ["-n4", "--gpus-per-task=1"],
    ["-n2", "--mem-per-cpu=3000"], ["-n8", "-N2", "--ntasks-per-node=4"], ["-n8", "-N4", "--ntasks-per-node=2"],
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A job: submission (seconds from the start), CPUs, time limit (minutes), run time (seconds), sbatch options."""

    submit: int
    cpus: int
    limit: int
    run: int
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A trace: what it exercises, the lines of slurm.conf, commands of sacctmgr, and options of random jobs."""

    what: str
    site: str
    options: Sequence[Sequence[str]] = ((),)
    setup: Sequence[str] = ()
    seed: int = 1
    jobs: int = 60
    widths: Sequence[int] = (1, 2, 4, 4, 8, 8, 12, 16, 24, 32)
    nodes: int = 8
    kinds: Sequence[str] = ("",)
    before: Sequence[tuple[int, Sequence[str]]] = ()  # run time and options of jobs that end before the trace begins
    maintenance: Sequence[tuple[int, int, str]] = ()  # seconds from the start, minutes, and nodes of reservations

    def draw(self) -> list[Job]:
        """Return the jobs: a submission every few seconds, for which the machine is too small by a tenth."""
        rng = random.Random(self.seed)
        found, now = [], 0
        for _ in range(self.jobs):
            cpus = rng.choice(list(self.widths))
            run = rng.randint(5, 50)
            limit = rng.choice([1, 1, 2, 3])
            found.append(Job(now, cpus, limit, run, tuple(rng.choice(list(self.options)))))
            now += max(1, round(rng.expovariate(1.1 * self.nodes * CPUS / (np.mean(self.widths) * 27.5))))
        return found


TRACES = {
    "builtin": Trace("first come, first served", f"SchedulerType=sched/builtin\n{ALL}"),
    "backfill": Trace("backfilling", f"{BACKFILL}\n{ALL}", seed=2),
    "backfill-default": Trace("backfilling every 30 s", f"SchedulerType=sched/backfill\n{ALL}", seed=2),
    "size": Trace(
        "priority by age and size",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightAge=1000\nPriorityMaxAge=10\nPriorityWeightJobSize=5000\n{ALL}",
        seed=3,
    ),
    "small-first": Trace(
        "priority of small jobs",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightJobSize=5000\nPriorityFavorSmall=YES\n{ALL}",
        seed=4,
    ),
    "qos": Trace(
        "priority by QOS",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightQOS=10000\n{ALL}",
        options=(["--qos=normal"], ["--qos=normal"], ["--qos=high"]),
        setup=("add qos high Priority=100", "modify user root set qos=normal,high"),
        seed=5,
    ),
    "partitions": Trace(
        "partitions of separate nodes",
        f"{BACKFILL}\nPartitionName=main Nodes=n[1-6] Default=YES State=UP\nPartitionName=small Nodes=n[7-8] State=UP",
        options=(["-p", "main"], ["-p", "main"], ["-p", "small", "-n", "2"]),
        widths=(1, 2, 4, 4, 8, 8, 12, 16, 24),
        seed=6,
    ),
    "begin": Trace(
        "jobs that may start later", f"{BACKFILL}\n{ALL}", options=([], [], ["--begin=now+40"]), seed=7
    ),
    "fair-share": Trace(
        "fair share of four users",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightFairshare=10000\nPriorityFlags=NO_FAIR_TREE\n"
        f"PriorityDecayHalfLife=00:05:00\n{ALL}",
        options=BY_USER,
        setup=PHYSICISTS,
        seed=8,
    ),
    "fair-tree": Trace(
        "the fair-share tree",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightFairshare=10000\nPriorityDecayHalfLife=00:05:00\n{ALL}",
        options=BY_USER,
        setup=(
            "add account art Description=art Organization=test Fairshare=3",
            *(f"add user {name} Account=physics" for name in USERS[:2]),
            *(f"add user {name} Account=art" for name in USERS[2:]),
        ),
        seed=8,
    ),
    "fair-tree-deep": Trace(
        "the fair-share tree of accounts below accounts",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightFairshare=10000\nPriorityDecayHalfLife=00:05:00\n{ALL}",
        options=BY_USER,
        setup=TREE,
        seed=9,
    ),
    "backfill-minute": Trace(
        "cycles and slots of a minute", f"{CYCLES}bf_interval=60,bf_resolution=60\n{ALL}", seed=10
    ),
    "backfill-window": Trace(
        "plans of a minute", f"{CYCLES}bf_interval=10,bf_resolution=1,bf_window=1\n{ALL}", seed=11
    ),
    "backfill-test": Trace(
        "cycles that test two jobs", f"{CYCLES}bf_interval=10,bf_resolution=1,bf_max_job_test=2\n{ALL}", seed=12
    ),
    "backfill-user": Trace(
        "cycles that test a job of each user",
        f"{CYCLES}bf_interval=10,bf_resolution=1,bf_max_job_user=1\n{ALL}",
        options=BY_USER,
        setup=PHYSICISTS,
        seed=13,
    ),
    "backfill-partition": Trace(
        "cycles that test a job of each partition",
        f"{CYCLES}bf_interval=10,bf_resolution=1,bf_max_job_part=1\n{SHARED}",
        options=BY_PARTITION,
        widths=(1, 2, 4, 4, 8, 8, 12, 16),
        seed=32,
    ),
    "overlapping": Trace(
        "partitions that share nodes",
        f"{CYCLES}bf_interval=20,bf_resolution=1\n{SHARED}",
        options=BY_PARTITION,
        widths=(1, 2, 4, 4, 8, 8, 12, 16),
        seed=14,
    ),
    "user-limits": Trace(
        "running jobs and CPUs of users",
        f"{BACKFILL}\n{LIMITS}\n{ALL}",
        options=BY_USER,
        setup=(*PHYSICISTS, "modify user games set MaxJobs=2", "modify user news set GrpTRES=cpu=8"),
        widths=(1, 2, 4, 4, 8, 8),
        seed=15,
    ),
    "account-limits": Trace(
        "running jobs and CPUs of accounts and of those above",
        f"{BACKFILL}\n{LIMITS}\n{ALL}",
        options=BY_USER,
        setup=(*TREE, "modify account science set GrpTRES=cpu=16", "modify account chem set GrpJobs=2"),
        widths=(1, 2, 4, 4, 8, 8),
        seed=16,
    ),
    "qos-limits": Trace(
        "running jobs and CPUs of QOS and of users in each",
        f"{BACKFILL}\n{LIMITS}\n{ALL}",
        options=[[*user, qos] for user in BY_USER for qos in QOS[1:]],
        setup=(
            *PHYSICISTS,
            "modify qos normal set MaxJobsPerUser=2",
            "add qos high MaxTRESPerUser=cpu=8",
            "add qos low GrpTRES=cpu=8 GrpJobs=2",
            "modify account physics set qos=normal,high,low",
        ),
        widths=(1, 2, 4, 4, 8, 8),
        seed=17,
    ),
    "replaced-limits": Trace(
        "limits of QOS that replace those of accounts and users",
        f"{BACKFILL}\n{LIMITS}\n{ALL}",
        options=[[*user, qos] for user in BY_USER for qos in QOS],
        setup=(
            *PHYSICISTS,
            "modify account physics set GrpTRES=cpu=16 GrpJobs=8",
            "modify user games set MaxJobs=2",
            "modify user news set GrpTRES=cpu=4",
            "add qos high MaxJobsPerUser=4",
            "add qos low GrpTRES=cpu=12 GrpJobs=6",
            "modify account physics set qos=normal,high,low",
        ),
        widths=(1, 2, 4, 4),
        seed=33,
    ),
    "gpu-limits": Trace(
        "GPUs and memory of accounts, users and QOS",
        f"{BACKFILL}\n{MEMORY}\n{GPUS}\n{LIMITS}\n{ALL}",
        options=[[*user, qos, *gpus] for user in BY_USER for qos in QOS[1:] for gpus in ([], ["--gpus-per-task=1"])],
        setup=(
            *PHYSICISTS,
            "modify account physics set GrpTRES=gres/gpu=12",
            "modify user news set GrpTRES=gres/gpu=4",
            "modify qos normal set MaxTRESPerUser=mem=2000",
            "add qos high MaxTRESPerUser=gres/gpu=4",
            "add qos low GrpTRES=mem=1500",
            "modify account physics set qos=normal,high,low",
        ),
        widths=(1, 2, 2, 4, 4),
        seed=42,
        kinds=("RealMemory=2000 Gres=gpu:4", ""),
    ),
    "memory": Trace(
        "memory of nodes",
        f"{BACKFILL}\n{MEMORY}\n{ALL}",
        options=(["--mem-per-cpu=250"], ["--mem-per-cpu=500"], ["--mem-per-cpu=1000"], ["--mem-per-cpu=1600"]),
        widths=(1, 2, 4, 4, 8),
        seed=20,
        kinds=("", "RealMemory=4000"),
    ),
    "gpus": Trace(
        "GPUs of some nodes",
        f"{BACKFILL}\n{GPUS}\n{ALL}",
        options=([], [], [], ["--gpus-per-task=1"]),
        widths=(1, 2, 4, 4, 8),
        seed=21,
        kinds=("", "RealMemory=2000 Gres=gpu:2"),
    ),
    "gpus-memory": Trace(
        "GPUs and memory of nodes, with priorities by size",
        f"{CYCLES}bf_interval=15,bf_resolution=15\n{MULTIFACTOR}\nPriorityWeightJobSize=5000\n{MEMORY}\n{GPUS}\n{ALL}",
        options=(["--mem-per-cpu=250"], ["--mem-per-cpu=500"], ["--mem-per-cpu=900", "--gpus-per-task=1"]),
        widths=(1, 2, 4, 4, 8),
        seed=22,
        kinds=("", "RealMemory=2000 Gres=gpu:4"),
    ),
    "weights": Trace(
        "nodes that jobs take first",
        f"{BACKFILL}\n{GPUS}\n{ALL}",
        options=([], [], [], ["--gpus-per-task=1"]),
        widths=(1, 2, 4, 4, 8),
        seed=23,
        kinds=("RealMemory=2000 Weight=10 Gres=gpu:2", "RealMemory=2000 Weight=1"),
    ),
    "preempt-qos": Trace(
        "jobs of a QOS that requeue those of another",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightQOS=10000\nPreemptType=preempt/qos\nPreemptMode=REQUEUE\n{ALL}",
        options=(["--qos=low"], ["--qos=low"], ["--qos=normal"], ["--qos=high"]),
        setup=(
            "add qos low", "modify qos normal set Priority=10", "add qos high Priority=100 Preempt=low",
            "modify user root set qos=normal,high,low",
        ),
        seed=24,
    ),
    "preempt-partition": Trace(
        "jobs of a partition that cancel those of another",
        f"{BACKFILL}\nPreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"
        "PartitionName=main Nodes=ALL Default=YES State=UP PriorityTier=1\n"
        "PartitionName=urgent Nodes=n[3-8] State=UP PriorityTier=2",
        options=(["-p", "main"], ["-p", "main"], ["-p", "main"], ["-p", "urgent"]),
        widths=(1, 2, 4, 4, 8, 8, 12, 16),
        seed=25,
    ),
    "preempt-exempt": Trace(
        "jobs that are requeued at the earliest after a time",
        f"{CYCLES}bf_interval=15,bf_resolution=1\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
        "PreemptExemptTime=00:00:20\n"
        "PartitionName=main Nodes=ALL Default=YES State=UP PriorityTier=1\n"
        "PartitionName=urgent Nodes=ALL State=UP PriorityTier=2",
        options=(["-p", "main"], ["-p", "main"], ["-p", "main"], ["-p", "urgent"]),
        widths=(1, 2, 4, 4, 8, 8, 12, 16),
        seed=26,
    ),
    "run-minutes": Trace(
        "CPU-minutes that running jobs may still use",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightAge=1000\nPriorityMaxAge=10\n{LIMITS}\n{ALL}",
        options=BY_USER,
        setup=(
            *PHYSICISTS, "modify account physics set GrpTRESRunMins=cpu=40",
            "modify user games set GrpTRESRunMins=cpu=14",
        ),
        widths=(1, 2, 4, 4),
        seed=27,
    ),
    "initial-usage": Trace(
        "fair shares that begin with the usage of earlier jobs",
        f"{BACKFILL}\n{MULTIFACTOR}\nPriorityWeightFairshare=10000\nPriorityDecayHalfLife=00:20:00\n{LIMITS}\n{ALL}",
        options=BY_USER,
        setup=TREE,
        seed=28,
        before=((70, ["--uid=games"]), (50, ["--uid=mail"]), (20, ["--uid=news"])),
    ),
    "maintenance": Trace(
        "maintenance of some nodes, and of all",
        f"{BACKFILL}\n{ALL}",
        widths=(1, 2, 4, 4, 8, 8, 12, 16),
        seed=29,
        jobs=300,
        maintenance=((240, 5, "n[5-8]"), (480, 4, "n[1-3]"), (620, 6, "n[2-4,7]"), (1100, 3, "n[1-8]")),
    ),
    "features": Trace(
        "features of nodes and constraints of jobs",
        f"{CYCLES}bf_interval=15,bf_resolution=1\n{ALL}",
        options=(
            [], [], [], ["-C", "old"], ["-C", "new"], ["-C", "ib"], ["-C", "old&ib"], ["-C", "old|new"],
        ),
        widths=(1, 2, 4, 4, 8, 8, 12),
        seed=29,
        nodes=9,
        kinds=("RealMemory=2000 Features=old", "RealMemory=2000 Features=old,ib", "RealMemory=2000 Features=new,ib"),
        jobs=80,
    ),
    "requested-nodes": Trace(
        "jobs with as many processors on each of some nodes",
        f"{CYCLES}bf_interval=15,bf_resolution=1\n{ALL}",
        options=(
            [], [], ["-n4", "-N2", "--ntasks-per-node=2"], ["-n8", "-N2", "--ntasks-per-node=4"],
            ["-n3", "-N3", "--ntasks-per-node=1"], ["-n8", "-N4", "--ntasks-per-node=2"],
            ["-n6", "-N2", "--ntasks-per-node=3"],
        ),
        widths=(1, 2, 3, 4, 8, 12),
        seed=30,
        jobs=80,
    ),
    "mixed": Trace(
        "a small cluster of four kinds of nodes, with 300 jobs of several accounts",
        f"{MEMORY}\n{GPUS}\n{COMBINED}",
        options=[[*user, *what] for user in BY_USER for what in MIXED_JOBS],
        setup=TREE,
        widths=(1, 1, 2, 4, 4, 8),
        seed=31,
        jobs=300,
        nodes=10,
        kinds=MIXED_NODES,
    ),
    "everything": Trace(
        "cycles, fair-share tree, limits and QOS together",
        COMBINED,
        options=[[*user, qos] for user in BY_USER for qos in QOS],
        setup=(
            *TREE,
            "add qos high Priority=100 MaxJobsPerUser=2",
            "add qos low GrpTRES=cpu=16",
            "modify account chem set GrpJobs=3",
            *(f"modify account {name} set qos=normal,high,low" for name in ("science", "bio", "chem", "art")),
        ),
        widths=(1, 2, 4, 4, 8, 8, 12, 16),
        seed=18,
        jobs=150,
    ),
    "site": Trace(
        "the same with 500 jobs of 16 users in 20 accounts",
        COMBINED,
        options=[[f"--uid={name}", qos] for name in SITE_USERS for qos in QOS],
        setup=(
            *SITE_ACCOUNTS,
            "add qos high Priority=100 MaxJobsPerUser=2",
            "add qos low GrpTRES=cpu=16",
            "modify account faculty1 set GrpTRES=cpu=24",
            "modify account faculty2 set GrpJobs=6",
            *(f"modify account faculty{number} set qos=normal,high,low" for number in range(1, 5)),
        ),
        widths=(1, 2, 4, 4, 8, 8, 12, 16),
        seed=19,
        jobs=500,
        nodes=10,
    ),
}  # fmt: skip


def run(trace: Trace, folder: Path, instance: int) -> None:
    """Run a trace on a new Slurm, and keep its configuration and what it recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    with Slurm(nodes=trace.nodes, kinds=trace.kinds, cpus=CPUS, site=trace.site, instance=instance) as slurm:
        if not slurm.has_accounting:
            raise SystemExit("no accounting: install slurmdbd and mariadb-server")
        for command in trace.setup:
            slurm.run("sacctmgr", "-i", *command.split())
        time.sleep(5)  # until slurmctld has the associations
        for run_time, options in trace.before:
            slurm.submit("-n8", "-t3", "--chdir=/tmp", *options, wrap=f"sleep {run_time}")
        if trace.before:
            slurm.wait_until_empty()
            time.sleep(3)  # until its usage is known
            (folder / "sshare_before.txt").write_text(f"{time.time()}\n{slurm.run('sshare', '-a', '-l', '-P')}")
        began, priorities = time.time(), []
        for number, (begin, minutes, nodes_away) in enumerate(trace.maintenance):
            slurm.run(
                "scontrol", "create", "reservation", f"ReservationName=maintenance{number}", f"Nodes={nodes_away}",
                f"StartTime=now+{begin}", f"Duration={minutes}", "Users=root", "Flags=MAINT",
            )  # fmt: skip
        if trace.maintenance:
            (folder / RESERVATIONS).write_text(slurm.run("scontrol", "show", "res", "-o"))
        for job in trace.draw():
            time.sleep(max(0.0, began + job.submit - time.time()))
            if MULTIFACTOR in trace.site:
                priorities.append(f"{time.time()}\n{slurm.run('sprio', '-h', '-o', SPRIO, check=False)}")
            slurm.submit(f"-n{job.cpus}", f"-t{job.limit}", "--chdir=/tmp", *job.options, wrap=f"sleep {job.run}")
        while slurm.run("squeue", "-h", check=False).strip():
            time.sleep(2)
        time.sleep(5)
        nodes = [f"NodeName=n[{one[0]}-{one[-1]}] {what}" for one, what in slurm.describe_nodes()]
        (folder / "slurm.conf").write_text("\n".join([*nodes, trace.site]) + "\n")
        (folder / "sprio.txt").write_text("\n".join(priorities))
        columns = {
            "sacct.txt": [
                "sacct", "-a", "-P", "-D", "-X", "-S", time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began)),
                f"--format={RECOMMENDED}",
            ],
            "qos.txt": ["sacctmgr", "show", "qos", "-P"],
            "assoc.txt": ["sacctmgr", "show", "assoc", "-P", f"format={ASSOCIATIONS}"],
            "sshare.txt": ["sshare", "-a", "-l", "-P"],
            "sdiag.txt": ["sdiag"],
        }  # fmt: skip
        for name, command in columns.items():
            (folder / name).write_text(slurm.run(*command))


class Events(NamedTuple):
    """
    Submissions (``jobs`` 2), starts (1), ends (-1), and times with known priorities (0, with the ``key``), in order.

    Periods have ended until the time ``computed`` before each.
    """

    time: np.ndarray
    computed: np.ndarray
    jobs: np.ndarray
    item: np.ndarray
    key: np.ndarray


def _replay(state: SlurmState, events: Events) -> int:
    half_life, counting = state.options[0].half_life, state.usage.counting[0]
    for row in range(events.time.size):
        now, jobs, item = events.time[row], events.jobs[row], events.item[row]
        compute_usage(state.usage, state.jobs, events.computed[row], half_life, counting.calc_period)
        job = state.jobs[item]
        if jobs == 0:
            events.key[row] = queued_key(state, state.queue, item, now)
        elif jobs == 1:
            job.start = now
        elif jobs == 2:
            submit_use(state.usage, item)
        else:
            leave_line(state.usage, item)
            if not counting.whole_periods:
                end_use(state.usage, item, job.start, now, job.processors, half_life, counting.calc_period)
    return 0


REPLAY = Kernel(_replay, SLURM_ACCOUNTING.operations)


def read_sprio(file: Path) -> pl.DataFrame:
    """Return the parts of priorities that `sprio` printed, and the times."""
    rows, now = [], 0.0
    for words in map(str.split, file.read_text().splitlines()):
        if len(words) == 1:
            now = float(words[0])
        elif words:
            rows.append([now, int(words[0]), 0, *map(int, words[2:])])
    return pl.DataFrame(rows, ["time", "job_id", "jobs", *WEIGHTS], orient="row")


def priorities(folder: Path) -> pl.DataFrame:
    """
    Return the parts of priorities in Slurm and in swflow, whose usage is that of the recorded schedule.

    Slurm computes priorities at submissions and every PriorityCalcPeriod minutes, as does swflow. Its clock has whole
    seconds; therefore what it printed in the second of a computation is left out, and a job that ended in such a second
    ended before or after it, whichever agrees better. Fair shares of the first period are left out, before which Fair
    Tree has none.
    """
    recording = read_run(folder)
    scheduler, (workload, later) = recording.scheduler, recording.moved(0.0)
    problem, weights = prepare(workload, scheduler), scheduler.priority or {}
    period = weights.get("calc_period", 0.0)
    uses = [
        recording.recorded.select("job_id", time=pl.col(f"{what}_time") + later, jobs=pl.lit(jobs))
        for what, jobs in (("end", -1), ("submit", 2), ("start", 1))
    ]
    ids = workload.jobs.select("job_id", site=pl.col("site_job_id").cast(pl.Int64))
    printed = read_sprio(folder / "sprio.txt").rename({"job_id": "site"}).join(ids, on="site", maintain_order="left")
    printed = printed.drop("site").with_columns(pl.col("time") - recording.began)
    table = pl.concat([*uses, printed], how="diagonal_relaxed").sort("time", maintain_order=True)
    items = problem.table.select("job_id").with_row_index("item").cast(pl.Int64)
    table = table.join(items, on="job_id", how="left", maintain_order="left")
    time, jobs, item = (table[name].to_numpy(writable=True) for name in ("time", "jobs", "item"))
    found = []
    for weight in (name for name in WEIGHTS if name in weights):
        alone: Any = {name: value for name, value in weights.items() if name not in WEIGHTS or name == weight}
        order = Order(formula=compile_formula(formula_of(scheduler.order, alone, Names(workload).number_of)))
        machine = replace(problem.machines[0], order=order)
        computed, error, least = time.copy(), pl.Series(), np.inf
        for row in [None, *(np.flatnonzero((jobs == -1) & (time % period == 0)) if period else ())]:
            tried = computed.copy()
            if row is not None:
                tried[row] -= 0.5
            (state,), _ = new_states(replace(problem, machines=(machine,)))
            events = Events(time, tried, jobs, item, np.zeros(table.height))
            REPLAY(Handle([state]), Handle([events]))
            found_error = -pl.Series(events.key) - table[weight]
            size = found_error.filter(pl.Series(jobs == 0)).abs().sum()
            if size < least:
                computed, error, least = tried, found_error, size
        is_settled = (pl.col("time") % period >= 1) & (pl.col("time") >= period * (weight == "fair_share"))
        rows = table.select("time", "jobs", part=pl.lit(weight), error=error).filter(pl.col("jobs") == 0)
        found.append(rows.filter(is_settled) if period else rows)
    return pl.concat(found)


def priority_summary(name: str, folders: Sequence[Path]) -> pl.DataFrame:
    """Return a row for each part of the priorities in a trace: swflow's error in points of priority."""
    error = pl.col("error")
    table = pl.concat(list(map(priorities, folders)))
    return table.group_by("part", maintain_order=True).agg(
        pl.lit(name).alias("trace"),
        pl.len().alias("compared"),
        error.abs().max().round(1).alias("largest"),
        error.mean().round(2).alias("mean"),
        error.median().round(2).alias("median"),
        (100 * (error.abs() <= 1).mean()).round(2).alias("percent_within_1"),
        (100 * ((error - error.median()).abs() <= 1).mean()).round(2).alias("percent_within_1_of_median"),
    )


def order_agreement(table: pl.DataFrame) -> float:
    """Return the share of pairs of jobs, with starts at least 2 s apart in Slurm, that start in the same order."""
    slurm, swflow = table["slurm_start"].to_numpy(), table["swflow_start"].to_numpy()
    apart = slurm[:, None] + 2 <= slurm[None, :]
    return float((swflow[:, None] <= swflow[None, :])[apart].mean())


def summary(name: str, trace: Trace, folders: Sequence[Path]) -> dict[str, object]:
    """Return a row about the runs of a trace: mean waits, spread, and errors per job."""
    tables = [compare(folder, PHASES) for folder in folders]
    slurm, half = interval(one[0]["slurm"].mean() for one in tables)
    swflow = float(np.mean([table["swflow"].mean() for one in tables for table in one]))
    of_phases = [table["swflow"].mean() for one in tables for table in one]
    waits = np.array([one[0]["slurm"].to_numpy() for one in tables])
    error = np.array([table["swflow"].to_numpy() - table["slurm"].to_numpy() for one in tables for table in one])
    pairs = [float(np.sqrt(np.mean((a - b) ** 2))) for a, b in itertools.combinations(waits, 2)]
    return {
        "trace": name,
        "exercises": trace.what,
        "runs": len(tables),
        "jobs": waits.shape[1],
        "slurm_mean_wait": round(slurm, 1),
        "interval": None if np.isnan(half) else round(half, 1),
        "swflow_mean_wait": round(swflow, 1),
        "inside": None if np.isnan(half) else abs(swflow - slurm) <= half,
        "swflow_phases": f"{min(of_phases):.1f}-{max(of_phases):.1f}",
        "rms_between_runs": round(float(np.mean(pairs)), 1) if pairs else None,
        "rms_to_swflow": round(float(np.sqrt(np.mean(error**2))), 1),
        "order_percent": round(100 * float(np.mean([order_agreement(table) for one in tables for table in one])), 1),
    }  # fmt: skip


def main() -> None:
    """Run the traces and print a table; waits are seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--traces", default=",".join(TRACES))
    parser.add_argument("--parallel", type=int, default=1, help="Slurms that run at the same time (default: 1)")
    parser.add_argument("--keep", type=Path, help="the folder of the recordings")
    parser.add_argument("--only-compare", action="store_true")
    parser.add_argument("--pack", action="store_true", help="keep the recordings in the repository")
    options = parser.parse_args()
    names = options.traces.split(",")
    if options.keep is None and not (options.only_compare and not options.pack):
        parser.error("--keep is missing: the folder of the recordings")
    if not options.only_compare:
        instances: SimpleQueue[int] = SimpleQueue()
        for instance in range(1, options.parallel + 1):
            instances.put(instance)

        def run_once(task: tuple[int, str]) -> None:
            name, folder = task[1], options.keep / task[1] / str(task[0])
            if (folder / "sacct.txt").is_file():
                return
            instance = instances.get()
            time.sleep(0 if task[0] > 1 else 8 * instance)  # databases that start at once disturb each other
            try:
                run(TRACES[name], folder, instance)
                print(json.dumps(summary(name, TRACES[name], [folder])), flush=True)
            except (Unavailable, RuntimeError, SwflowError) as error:  # the other runs go on
                print(f"{name} {task[0]}: {error}", flush=True)
            finally:
                instances.put(instance)

        with ThreadPoolExecutor(options.parallel) as pool:
            list(pool.map(run_once, itertools.product(range(1, options.runs + 1), names)))
    if options.pack:
        pack(options.keep)
    with tempfile.TemporaryDirectory() as unpacked:
        if options.keep is None:
            unpack(Path(unpacked))
        print_tables(options.keep or Path(unpacked), names)


def print_tables(folder: Path, names: Sequence[str]) -> None:
    """Print a table of waits, and one of the parts of priorities."""
    rows, parts = [], []
    for name in names:
        folders = runs_in(folder, name)
        rows += [summary(name, TRACES[name], folders)] if folders else []
        if folders and MULTIFACTOR in TRACES[name].site:
            parts.append(priority_summary(name, folders))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, fmt_str_lengths=40):
        print(pl.DataFrame(rows))
        if parts:
            print(pl.concat(parts))


if __name__ == "__main__":
    main()
