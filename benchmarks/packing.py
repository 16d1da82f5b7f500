"""
Measure the error of counting: EASY with processors only, with counts of processors and memory, and packed on nodes.

The processes of a job need a processor and their share of the job's memory on one node. The packed machine places them
on the fullest nodes first. The counted machine is one node with all processors and all memory; its starts must equal
those of swflow with ``--resource memory=…``.

    python benchmarks/packing.py hpc2n.swf.gz --nodes 120 --processors 2 --memory 950 --jobs 10000
"""

import argparse
import heapq
from dataclasses import replace

import numpy as np
import polars as pl

from swflow.jobs.machine import Machine
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import clean_log
from swflow.workload.steps.select import select


def places(free: np.ndarray, memory: np.ndarray, width: int, need: int) -> np.ndarray | None:
    """Return how many processes each node gets, the fullest nodes first; None if the job does not fit."""
    slots = np.minimum(free, memory // need) if need else free
    if slots.sum() < width:
        return None
    order = np.argsort(np.where(slots > 0, free, free.max() + 1), kind="stable")
    before = np.cumsum(slots[order]) - slots[order]
    taken = np.zeros_like(free)
    taken[order] = np.clip(width - before, 0, slots[order])
    return taken


def easy(jobs: list[tuple[float, float, float, int, int]], nodes: int, processors: int, memory: int) -> list[float]:
    """Return the starts of jobs (submit, run, planned, processors, MB per process) under EASY."""
    free, room = np.full(nodes, processors), np.full(nodes, memory)
    starts = [float("nan")] * len(jobs)
    running: list[tuple[float, int]] = []
    held: dict[int, tuple[float, np.ndarray]] = {}  # the planned end and the places of each running job
    queue: list[int] = []
    coming, now = 0, 0.0

    def begin(job: int, taken: np.ndarray) -> None:
        nonlocal free, room
        _, run, planned, _, need = jobs[job]
        starts[job], held[job] = now, (now + planned, taken)
        free, room = free - taken, room - need * taken
        heapq.heappush(running, (now + run, job))

    while coming < len(jobs) or running:
        now = min([job[0] for job in jobs[coming : coming + 1]] + [end for end, _ in running[:1]])
        while running and running[0][0] <= now:
            _, job = heapq.heappop(running)
            _, taken = held.pop(job)
            free, room = free + taken, room + jobs[job][4] * taken
        while coming < len(jobs) and jobs[coming][0] <= now:
            queue.append(coming)
            coming += 1
        while queue and (taken := places(free, room, *jobs[queue[0]][3:])) is not None:
            begin(queue.pop(0), taken)
        if not queue or not free.any():
            continue
        head, then, left, shadow = jobs[queue[0]][3:], free, room, now
        for end, job in sorted((end, job) for job, (end, _) in held.items()):
            if places(then, left, *head) is not None and end > shadow:
                break
            then, left, shadow = then + held[job][1], left + jobs[job][4] * held[job][1], end
        for job in queue[1:]:
            _, _, planned, width, need = jobs[job]
            if width > free.sum() or (taken := places(free, room, width, need)) is None:
                continue
            if now + planned <= shadow:
                begin(job, taken)
            elif places(then - taken, left - need * taken, *head) is not None:
                then, left = then - taken, left - need * taken
                begin(job, taken)
        queue = [job for job in queue if job not in held]
    return starts


def main() -> None:
    """Print the mean waits of the three machines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("log")
    parser.add_argument("--nodes", type=int, default=120)
    parser.add_argument("--processors", type=int, default=2, help="per node")
    parser.add_argument("--memory", type=int, default=950, help="per node, MB")
    parser.add_argument("--jobs", type=int, default=10000)
    options = parser.parse_args()
    size = options.nodes * options.processors
    log = select(clean_log(options.log, name="log", processors=size), jobs=options.jobs)
    need = (pl.coalesce("requested_memory", "used_memory").fill_null(0) / 1024).ceil().cast(pl.Int64)
    table = log.jobs.with_columns(need=need.clip(upper_bound=options.memory))
    table = table.with_columns(memory=pl.col("need") * pl.col("processors"))
    whole = options.nodes * options.memory
    fitting = pl.col("processors") <= options.nodes * pl.min_horizontal(
        pl.lit(options.processors), options.memory // pl.max_horizontal("need", 1)
    )
    table = table.filter(fitting)
    planned = pl.max_horizontal("estimate", "run_time", 1.0)
    rows = table.select("submit_time", "run_time", planned.alias("planned"), "processors", "need").rows()
    kinds = {
        "processors": easy([(*row[:4], 0) for row in rows], 1, size, 0),
        "counts": easy(rows, 1, size, whole),
        "packed": easy(rows, options.nodes, options.processors, options.memory),
    }
    counted = replace(log, jobs=table, machine=Machine(size, options.nodes, resources={"memory": whole}))
    same = np.array(kinds["counts"]) == simulate(counted, Scheduler(backfill="easy"))["start_time"].to_numpy()
    submit = table["submit_time"].to_numpy()
    print(f"{table.height:,} jobs of {log.jobs.height:,}; swflow starts {same.mean():.2%} of them as `counts` does")
    for kind, starts in kinds.items():
        wait = np.array(starts) - submit
        print(
            f"{kind:10} mean wait {wait.mean() / 60:9.1f} min, 95th percentile {np.quantile(wait, 0.95) / 60:9.1f} min"
        )


if __name__ == "__main__":
    main()
