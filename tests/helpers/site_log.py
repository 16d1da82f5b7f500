"""Generate the accounting of a synthetic site: partitions, GPUs, QOS, and an EASY schedule in each partition."""

import bisect
import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

#: Processors of each partition.
PARTITIONS = {"cpu": 512, "fat": 256, "gpu": 128}

#: Unix time of the first day, 2024-01-01.
BEGAN = 1704067200

WEEK = 604800


@dataclass(frozen=True)
class SiteLog:
    """
    A synthetic accounting log.

    Parameters
    ----------
    text : str
        Text in the format of ``sacct -P``.
    mean_wait : float
        Mean time from eligibility to start in the record, seconds.
    jobs, gpu_jobs : int
        Number of jobs, and number of jobs that request GPUs.
    """

    text: str
    mean_wait: float
    jobs: int
    gpu_jobs: int


def site_log(
    jobs: int = 2000,
    weeks: int = 8,
    load: float = 0.55,
    seed: int = 1,
    partitions: Mapping[str, int] = PARTITIONS,
    preferred: str | None = None,
    dependent: float = 0.0,
    later: float = 0.0,
) -> SiteLog:
    """
    Return the accounting of a site that runs EASY in each of its partitions.

    Parameters
    ----------
    jobs : int
        Number of jobs of each partition.
    weeks : int
        Number of weeks with submissions.
    load : float
        Offered load of each partition.
    seed : int
        Seed of the random draws.
    partitions : mapping
        Partition to its processors; the GPUs are in partition ``gpu``.
    preferred : str, optional
        The QOS, ``normal`` or ``long``, whose jobs are served before those of the other; default: all are equal.
    dependent, later : float
        Share of the jobs that depend on the previous job of their partition, and that begin a day later (``--begin``).
    """
    generator = np.random.default_rng(seed)
    count = jobs * len(partitions)
    qos = generator.spawn(1)[0].choice(["normal", "long"], count)
    choice = generator.spawn(1)[0]
    rows = []
    for place, (partition, processors) in enumerate(partitions.items()):
        submit = np.sort(generator.integers(0, weeks * WEEK, jobs))
        width = 2 ** np.minimum(generator.geometric(0.22, jobs) - 1, int(np.log2(processors)))
        run = generator.lognormal(0, 1.0, jobs)
        run = np.maximum(1, run * load * processors * weeks * WEEK / (run @ width)).astype(int)
        limit = (run * generator.uniform(1, 4, jobs) // 60 + 1).astype(int)
        of_jobs = qos[place * jobs : (place + 1) * jobs]
        kind = choice.random(jobs)
        after = np.where(kind < dependent, np.arange(jobs) - 1, -1)
        begin = submit + 86400 * (kind > 1 - later)
        eligible = np.empty(jobs, int)
        rank = (of_jobs != preferred) & (preferred is not None)
        start = easy(begin, run, 60 * limit, width, processors, rank, after, eligible)
        before = [f"{partition}-{job}" if job >= 0 else "" for job in after]
        names = [f"{partition}-{job}" for job in range(jobs)]
        columns = (submit, eligible, start, run, limit, width, of_jobs)
        rows += [
            (partition, *values) for values in zip(*(array.tolist() for array in columns), names, before, strict=True)
        ]
    rows.sort(key=lambda row: (row[1], row[0]))
    user = generator.integers(1, 20, len(rows))
    number = {name: str(1000 + place) for place, (*_, name, _) in enumerate(rows)}
    table = pl.DataFrame(
        [
            (
                str(1000 + place), f"user{user[place]}", partition, of_job, "COMPLETED",
                submit + BEGAN, eligible + BEGAN, start + BEGAN, start + run + BEGAN, limit, width,
                f"cpu={width}" + (f",gres/gpu={max(1, width // 16)}" if partition == "gpu" else ""),
                "sbatch " + (f"--dependency=afterok:{number[before]} " if before else "") + "run.sh",
            )
            for place, (partition, submit, eligible, start, run, limit, width, of_job, _, before) in enumerate(rows)
        ],
        ["JobID", "User", "Partition", "QOS", "State", "Submit", "Eligible", "Start", "End", "TimelimitRaw",
         "AllocCPUS", "AllocTRES", "SubmitLine"],
        orient="row",
    )  # fmt: skip
    wait = float((table["Start"] - table["Eligible"]).mean())
    times = ("Submit", "Eligible", "Start", "End")
    stamps = [pl.from_epoch(name).dt.strftime("%Y-%m-%dT%H:%M:%S").alias(name) for name in times]
    text = table.with_columns(stamps).write_csv(separator="|", quote_style="never")
    return SiteLog(text, wait, table.height, (table["Partition"] == "gpu").sum())


def easy(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    width: np.ndarray,
    processors: int,
    rank: np.ndarray,
    after: np.ndarray | None = None,
    eligible: np.ndarray | None = None,
) -> np.ndarray:
    """
    Return the start times under EASY, in whole seconds; this simulator shares no code with the engine.

    Jobs with the smallest rank are served first, and jobs of equal rank in the order in which they become eligible:
    when they are submitted, or when the job ``after`` has ended (-1: none). These times are written to ``eligible``.
    """
    start = np.zeros(submit.size, int)
    eligible = np.empty(submit.size, int) if eligible is None else eligible
    eligible[:] = submit
    after = np.full(submit.size, -1) if after is None else after
    dependents: dict[int, list[int]] = {}
    for job in np.flatnonzero(after >= 0).tolist():
        dependents.setdefault(int(after[job]), []).append(job)
    coming = [(int(submit[job]), job) for job in np.flatnonzero(after < 0).tolist()]
    heapq.heapify(coming)
    running: list[tuple[int, int]] = []  # (end, job)
    queue: list[int] = []
    free = processors

    def begin(job: int, now: int) -> None:
        nonlocal free
        start[job], free = now, free - width[job]
        heapq.heappush(running, (now + int(run[job]), job))

    while coming or running:
        now = min(part[0][0] for part in (coming, running) if part)
        while running and running[0][0] <= now:
            _, ended = heapq.heappop(running)
            free += width[ended]
            for job in dependents.get(ended, ()):
                eligible[job] = max(now, int(submit[job]))
                heapq.heappush(coming, (int(eligible[job]), job))
        while coming and coming[0][0] <= now:
            bisect.insort(queue, heapq.heappop(coming)[1], key=lambda job: (rank[job], eligible[job], job))
        while queue and width[queue[0]] <= free:
            begin(queue.pop(0), now)
        if not queue:
            continue
        # The head starts at the latest when enough running jobs have reached their limits.
        at_head, shadow = free, now
        for end, released in sorted((start[job] + planned[job], width[job]) for _, job in running):
            if at_head >= width[queue[0]] and end > shadow:
                break
            shadow, at_head = end, at_head + released
        extra = at_head - width[queue[0]]
        for job in queue[1:]:
            ends_before = now + planned[job] <= shadow
            if width[job] <= free and (ends_before or width[job] <= extra):
                begin(job, now)
                queue.remove(job)
                extra -= 0 if ends_before else width[job]
    return start
