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
        Mean wait time in the record, seconds.
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
    """
    generator = np.random.default_rng(seed)
    count = jobs * len(partitions)
    qos = generator.spawn(1)[0].choice(["normal", "long"], count)
    rows = []
    for place, (partition, processors) in enumerate(partitions.items()):
        submit = np.sort(generator.integers(0, weeks * WEEK, jobs))
        width = 2 ** np.minimum(generator.geometric(0.22, jobs) - 1, int(np.log2(processors)))
        run = generator.lognormal(0, 1.0, jobs)
        run = np.maximum(1, run * load * processors * weeks * WEEK / (run @ width)).astype(int)
        limit = (run * generator.uniform(1, 4, jobs) // 60 + 1).astype(int)
        of_jobs = qos[place * jobs : (place + 1) * jobs]
        start = easy(submit, run, 60 * limit, width, processors, (of_jobs != preferred) & (preferred is not None))
        rows += [
            (partition, *values)
            for values in zip(*(array.tolist() for array in (submit, start, run, limit, width, of_jobs)), strict=True)
        ]
    rows.sort(key=lambda row: (row[1], row[0]))
    user = generator.integers(1, 20, len(rows))
    table = pl.DataFrame(
        [
            (
                str(1000 + place), f"user{user[place]}", partition, of_job, "COMPLETED",
                submit + BEGAN, start + BEGAN, start + run + BEGAN, limit, width,
                f"cpu={width}" + (f",gres/gpu={max(1, width // 16)}" if partition == "gpu" else ""),
            )
            for place, (partition, submit, start, run, limit, width, of_job) in enumerate(rows)
        ],
        ["JobID", "User", "Partition", "QOS", "State", "Submit", "Start", "End", "TimelimitRaw", "AllocCPUS",
         "AllocTRES"],
        orient="row",
    )  # fmt: skip
    wait = float((table["Start"] - table["Submit"]).mean())
    stamps = [pl.from_epoch(name).dt.strftime("%Y-%m-%dT%H:%M:%S").alias(name) for name in ("Submit", "Start", "End")]
    text = table.with_columns(stamps).write_csv(separator="|", quote_style="never")
    return SiteLog(text, wait, table.height, (table["Partition"] == "gpu").sum())


def easy(
    submit: np.ndarray, run: np.ndarray, planned: np.ndarray, width: np.ndarray, processors: int, rank: np.ndarray
) -> np.ndarray:
    """
    Return the start times under EASY, in whole seconds; this simulator shares no code with the engine.

    Jobs with the smallest rank are served first, and jobs of equal rank in the order of their submission.
    """
    start = np.zeros(submit.size, int)
    running: list[tuple[int, int]] = []  # (end, job)
    queue: list[int] = []
    free, coming = processors, 0

    def begin(job: int, now: int) -> None:
        nonlocal free
        start[job], free = now, free - width[job]
        heapq.heappush(running, (now + int(run[job]), job))

    while coming < submit.size or running:
        now = min([*submit[coming : coming + 1].tolist(), *(end for end, _ in running[:1])])
        while running and running[0][0] <= now:
            free += width[heapq.heappop(running)[1]]
        while coming < submit.size and submit[coming] <= now:
            bisect.insort(queue, coming, key=lambda job: (rank[job], job))
            coming += 1
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
