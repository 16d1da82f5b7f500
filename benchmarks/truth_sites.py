"""
Make four sites whose truths are known, with the files that such sites have.

A schedules by EASY as in the textbook and has accounting alone. B has Slurm with limits of users, tiers and weights. C
has Slurm with GPUs and preemption, and D the same, but a cycle preempts within its plan only. Jobs are drawn: users
submit in bursts by day, run times are log-normal, and time limits are rounded up.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from other_simulator import DAY, Job, Pool, Record, Site

#: The time of second 0, and the time limits that users choose (hours).
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
LIMITS = (0.25, 0.5, 1, 2, 4, 8, 12, 24)

#: A change of a site and its jobs.
Change = Callable[[Site, list[Job]], tuple[Site, list[Job]]]


class Stream(NamedTuple):
    """The jobs of a partition and QOS: their share of all jobs, their sizes, and the load that they offer to a pool."""

    partition: str
    qos: str
    share: float
    sizes: Sequence[int]
    load: float
    users: int
    spread: float = 1.2


class Question(NamedTuple):
    """A question as text, as options of ``swflow whatif``, and as a change of the other simulator."""

    words: str
    options: Sequence[str]
    change: Change


@dataclass(frozen=True)
class Case:
    """A site with its jobs, its questions, and the form of its units in accounting: CPUs of one, and of a GPU."""

    name: str
    site: Site
    jobs: list[Job]
    questions: Sequence[Question]
    cpus: int
    seed: int
    conf: str = ""
    qos: str = ""
    settings: Sequence[str] = ()


def draw(site: Site, streams: Sequence[Stream], count: int, weeks: float, seed: int) -> list[Job]:
    """Draw the jobs of all streams, by submission."""
    rng = random.Random(seed)
    made: list[Job] = []
    for stream in streams:
        units = site.pools[site.partitions[stream.partition]].units
        jobs: list[Job] = []
        while len(jobs) < count * stream.share:
            user = f"u{min(int(rng.paretovariate(0.4)), stream.users)}{stream.qos[0]}"
            at = rng.uniform(0, weeks * 7) // 1 * DAY + DAY * rng.betavariate(3, 3)
            size, scale = rng.choice(stream.sizes), rng.lognormvariate(0, stream.spread)
            wish = rng.uniform(1.1, 6)
            for _ in range(1 + int(rng.expovariate(0.4))):
                run = scale * rng.lognormvariate(0, 0.4)
                jobs.append(Job(0, int(at), run, wish, size, stream.partition, user, stream.qos))
                at += rng.expovariate(1 / 120)
        jobs = jobs[: int(count * stream.share)]
        made += _scaled(jobs, stream.load * units * weeks * 7 * DAY)
    made.sort(key=lambda job: job.submit)
    first = made[0].submit
    return [replace(job, number=number, submit=job.submit - first) for number, job in enumerate(made, 1)]


def _scaled(jobs: list[Job], work: float) -> list[Job]:
    """Return jobs whose run times are such that they are some work, with limits; 3 % run into their limits."""
    longest = LIMITS[-1] * 3600
    factor = 1.0
    for _ in range(30):
        factor *= work / sum(job.units * min(factor * job.run, longest) for job in jobs)
    found = []
    for number, job in enumerate(jobs):
        run = max(int(min(factor * job.run, longest)), 10)
        wish = 0.7 if number % 33 == 0 else job.limit
        limit = next((hours for hours in LIMITS if hours * 3600 >= run * wish), LIMITS[-1])
        found.append(replace(job, run=run, limit=int(limit * 3600)))
    return found


# -- changes


def on_pool(name: str, units: int) -> Change:
    """Add units to a pool."""

    def change(site: Site, jobs: list[Job]) -> tuple[Site, list[Job]]:
        pool = site.pools[name]
        return replace(site, pools={**site.pools, name: replace(pool, units=pool.units + units)}), jobs

    return change


def on_site(**options: object) -> Change:
    """Replace options of the site."""
    return lambda site, jobs: (replace(site, **options), jobs)  # type: ignore[arg-type]


def both(*changes: Change) -> Change:
    """Apply several changes."""

    def change(site: Site, jobs: list[Job]) -> tuple[Site, list[Job]]:
        for one in changes:
            site, jobs = one(site, jobs)
        return site, jobs

    return change


def faster(factor: float) -> Change:
    """Let jobs arrive more often."""
    return lambda site, jobs: (site, [replace(job, submit=int(job.submit / factor)) for job in jobs])


def shorter(factor: float) -> Change:
    """Multiply run times and limits."""
    return lambda site, jobs: (
        site,
        [replace(job, run=round(job.run * factor), limit=math.ceil(job.limit * factor)) for job in jobs],
    )


def exact(site: Site, jobs: list[Job]) -> tuple[Site, list[Job]]:
    """Let users state the run times."""
    ran = [min(job.run, job.limit) for job in jobs]
    return site, [replace(job, run=run, limit=run) for job, run in zip(jobs, ran, strict=True)]


# -- the sites

_MORE = Question("10 % more arrivals", ("--arrivals", "1.1"), faster(1.1))
_SHORTER = Question("run times × 0.9", ("--run-times", "0.9"), shorter(0.9))
_EXACT = Question("perfect estimates", ("--estimates", "perfect"), exact)


def textbook(count: int, weeks: float, seed: int) -> Case:
    """Return site A: two partitions, each with a queue in the order of submission and EASY backfilling."""
    site = Site({"batch": Pool(256), "long": Pool(128)}, {"batch": "batch", "long": "long"})
    streams = (
        Stream("batch", "normal", 0.7, (1, 1, 2, 4, 8, 16, 32, 64), 0.68, 25),
        Stream("long", "normal", 0.3, (4, 8, 16, 32, 64), 0.6, 12),
    )
    questions = (
        Question("batch +10 % processors", ("--processors", "batch=+10%"), on_pool("batch", 26)),
        Question("long -12 processors", ("--processors", "long=-12"), on_pool("long", -12)),
        Question("shortest job first", ("--order", "sjf"), on_site(order="sjf")),
        Question("no backfilling", ("--backfill", "none"), on_site(backfill=False)),
        Question(
            "at most 64 processors a user", ("--limit", "user:processors=64"),
            on_site(limits={"normal": {"units": 64}}),
        ),
        _MORE, _EXACT, _SHORTER,
    )  # fmt: skip
    sizes = ("--partition", "batch=256", "--partition", "long=128")
    return Case("A", site, draw(site, streams, count, weeks, seed), questions, 1, seed, settings=sizes)


_B_CONF = """\
ClusterName=beta
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30,bf_max_job_test=100,bf_window=1440
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=2-0
PriorityWeightJobSize=500
PriorityWeightQOS=2000
AccountingStorageEnforce=associations,limits,qos
NodeName=n[001-096] CPUs=16
NodeName=f[01-16] CPUs=16
PartitionName=batch Nodes=n[001-096] Default=YES OverSubscribe=EXCLUSIVE MaxTime=1-0
PartitionName=express Nodes=n[001-096] OverSubscribe=EXCLUSIVE PriorityTier=10 MaxTime=4:00:00
PartitionName=fat Nodes=f[01-16] OverSubscribe=EXCLUSIVE MaxTime=1-0
"""
_B_QOS = "Name|Priority|MaxTRESPU|MaxJobsPU|Preempt\nnormal|0|cpu=512||\nhigh|100||4|\n"


def limited(count: int, weeks: float, seed: int) -> Case:
    """Return site B: limits of users by QOS, a partition of a higher tier on the same nodes, and weights."""
    site = Site(
        {"n": Pool(96), "f": Pool(16)}, {"batch": "n", "express": "n", "fat": "f"}, "slurm", latency=4,
        tiers={"express": 10}, weights={"age": 1000, "size": 500, "qos": 2000}, max_age=2 * DAY,
        qos={"normal": 0, "high": 100}, limits={"normal": {"units": 32}, "high": {"jobs": 4}},
    )  # fmt: skip
    streams = (
        Stream("batch", "normal", 0.55, (1, 1, 2, 2, 4, 8, 16), 0.45, 30),
        Stream("batch", "high", 0.12, (1, 2, 4, 8, 32), 0.1, 8),
        Stream("express", "normal", 0.18, (1, 2, 4), 0.04, 30, 0.8),
        Stream("fat", "normal", 0.15, (1, 1, 2, 4), 0.45, 20),
    )
    free = {"normal": {}, "high": {"jobs": 4}}
    weights = {"age": 1000, "size": 20_000, "qos": 2000}
    questions = (
        Question("batch +10 nodes", ("--nodes", "batch=+10"), on_pool("n", 10)),
        Question("fat -2 nodes", ("--nodes", "fat=-2"), on_pool("f", -2)),
        Question("no limit of CPUs a user", (
            "--scheduler", "site", "--scheduler", "site-free: {limits: {qos: {normal: {user_processors: null}}}}",
        ), on_site(limits=free)),
        Question("CPUs a user at most 256", (
            "--scheduler", "site", "--scheduler", "site-half: {limits: {qos: {normal: {user_processors: 256}}}}",
        ), on_site(limits={"normal": {"units": 16}, "high": {"jobs": 4}})),
        Question("weight of sizes × 40", (
            "--scheduler", "site", "--scheduler", "site-size: {priority: {size: 20000}}",
        ), on_site(weights=weights)),
        Question("no backfilling", ("--backfill", "none"), on_site(backfill=False)),
        _MORE, _EXACT, _SHORTER,
    )  # fmt: skip
    return Case("B", site, draw(site, streams, count, weeks, seed), questions, 16, seed, _B_CONF, _B_QOS)


_C_CONF = """\
ClusterName=gamma
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30,bf_max_job_test=100,bf_window=1440
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=7-0
PriorityWeightQOS=10000
PriorityWeightJobSize=0
PreemptType=preempt/qos
PreemptMode=REQUEUE
AccountingStorageEnforce=associations,limits,qos
NodeName=c[01-64] CPUs=32
NodeName=g[01-12] CPUs=32 Gres=gpu:a100:4
PartitionName=cpu Nodes=c[01-64] Default=YES OverSubscribe=EXCLUSIVE MaxTime=1-0
PartitionName=gpu Nodes=g[01-12] MaxTime=1-0
"""
_C_QOS = "Name|Priority|MaxTRESPU|MaxJobsPU|Preempt|PreemptMode\nnormal|100|||free|cluster\nfree|0||||cluster\n"


def preempting(count: int, weeks: float, seed: int) -> Case:
    """Return site C: nodes with GPUs that jobs share, and jobs that others preempt."""
    site = Site(
        {"c": Pool(64), "g": Pool(48, share=4)}, {"cpu": "c", "gpu": "g"}, "slurm", latency=4,
        weights={"age": 1000, "qos": 10_000}, qos={"normal": 100, "free": 0}, preempts={"normal": ["free"]},
    )  # fmt: skip
    streams = (
        Stream("cpu", "normal", 0.4, (1, 1, 2, 2, 4, 8, 16), 0.42, 25),
        Stream("cpu", "free", 0.2, (1, 2, 4), 0.1, 6, 1.0),
        Stream("gpu", "normal", 0.4, (1, 1, 1, 2, 4), 0.62, 20),
    )
    questions = (
        Question("gpu +2 nodes", ("--nodes", "gpu=+2"), on_pool("g", 8)),
        Question("cpu +6 nodes", ("--nodes", "cpu=+6"), on_pool("c", 6)),
        Question(
            "cpu +6, gpu +2 nodes", ("--nodes", "cpu=+6,gpu=+2"), both(on_pool("c", 6), on_pool("g", 8)),
        ),
        Question("gpu -1 node", ("--nodes", "gpu=-1"), on_pool("g", -4)),
        Question(
            "GPUs a user at most 16", ("--limit", "partition:gpu:user_gpus=16"), on_site(limits={"gpu": {"units": 16}}),
        ),
        Question("no preemption", (
            "--scheduler", "site", "--scheduler", "site-calm: {preemption: null}",
        ), on_site(preempts={})),
        _MORE, _EXACT, _SHORTER,
    )  # fmt: skip
    return Case("C", site, draw(site, streams, count, weeks, seed), questions, 32, seed, _C_CONF, _C_QOS)


def planned(count: int, weeks: float, seed: int) -> Case:
    """Return site D: site C, where jobs preempt others in a cycle only if they delay no job before them."""
    case = preempting(count, weeks, seed)
    return replace(case, name="D", site=replace(case.site, within_plan=True))


CASES: dict[str, Callable[[int, float, int], Case]] = {"A": textbook, "B": limited, "C": preempting, "D": planned}


# -- files


def write_files(case: Case, records: Sequence[Record], folder: Path) -> None:
    """Write ``sacct.txt``, and if the site has Slurm, ``conf/slurm.conf`` and what Slurm's commands print."""
    lines = [
        "JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Elapsed|Timelimit|ReqCPUS|AllocCPUS|NNodes|"
        "ReqTRES|AllocTRES"
    ]
    submitted: dict[int, int] = {}
    for one in sorted(records, key=lambda record: (record.job.number, record.start)):
        job, pool = one.job, case.site.pools[case.site.partitions[one.job.partition]]
        cpus = job.units * (case.cpus // pool.share if pool.share else case.cpus)
        nodes = 1 if pool.share or case.cpus == 1 else job.units
        tres = f"billing={cpus},cpu={cpus}" + f",gres/gpu={job.units}" * (pool.share > 0) + f",node={nodes}"
        submit = submitted.get(job.number, job.submit)
        submitted[job.number] = one.end
        lines.append("|".join([
            str(1000 + job.number), job.user, "lab", job.partition, job.qos, one.state,
            _stamp(submit), _stamp(one.eligible), _stamp(one.start), _stamp(one.end), _span(one.end - one.start),
            _span(job.limit), str(cpus), str(cpus), str(nodes), tres, tres,
        ]))  # fmt: skip
    (folder / "sacct.txt").write_text("\n".join(lines) + "\n")
    if case.conf:
        (folder / "conf").mkdir(exist_ok=True)
        (folder / "conf" / "slurm.conf").write_text(case.conf)
        (folder / "qos.txt").write_text(case.qos)
        (folder / "assoc.txt").write_text(_associations({job.user for job in case.jobs}))
        (folder / "nodes.txt").write_text(_nodes(case))


def _associations(users: set[str]) -> str:
    """Return what ``sacctmgr show assoc -P`` prints for users of one account, without limits."""
    head = "Account|ParentName|User|Share|MaxJobs|GrpJobs|GrpTRES|GrpTRESRunMins\n"
    rows = ["root|||1||||", "root||root|1||||", "lab|root||1||||", *(f"lab||{user}|1||||" for user in sorted(users))]
    return head + "\n".join(rows) + "\n"


def _nodes(case: Case) -> str:
    """Return what ``scontrol show node`` prints."""
    blocks = []
    for name, pool in case.site.pools.items():
        partitions = ",".join(one for one, of in case.site.partitions.items() if of == name)
        for number in range(1, pool.units // (pool.share or 1) + 1):
            blocks.append(
                f"NodeName={name}{number:0{3 if name == 'n' else 2}} Arch=x86_64 CoresPerSocket={case.cpus // 2}\n"
                f"   CPUAlloc=0 CPUEfctv={case.cpus} CPUTot={case.cpus} CPULoad=0.01\n"
                f"   Gres={f'gpu:a100:{pool.share}' if pool.share else '(null)'}\n"
                f"   RealMemory=192000 AllocMem=0 Sockets=2 Boards=1\n   State=IDLE Weight=1\n"
                f"   Partitions={partitions}\n"
            )
    return "\n".join(blocks)


def _stamp(seconds: int) -> str:
    return (BEGAN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, DAY)
    return f"{days}-" * (days > 0) + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
