"""Measure the kernels: time by log and scheduler, as multiples of a sort, with memory and growth.

    python benchmarks/scheduling.py [--traces FOLDER] [--logs KTH-SP2 HPC2N] [--no-growth]

The unit is `np.argsort(kind="stable")` of the run's 2n event times in the same process: a ratio is comparable across
machines. Without a folder of logs, a synthetic log is measured.
"""

import argparse
import ctypes
import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.log.catalogue import load_catalogue
from swflow.scheduling.prepare import prepare
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.solve import solve
from swflow.workload.clean import clean, clean_log
from swflow.workload.models.lublin import generate_lublin

ROOT = Path(__file__).parents[1]

SCHEDULERS = {
    "FCFS": Scheduler(),
    "EASY": Scheduler(backfill="easy"),
    "SJBF": Scheduler(backfill="easy", backfill_order="sjf"),
    "SJF, EASY": Scheduler(order="sjf", backfill="easy"),
    "WFP3, EASY": Scheduler(order="wfp3", backfill="easy"),
    "EASY, 8 reservations": Scheduler(backfill="easy", reservations=8),
    "conservative": Scheduler(backfill="conservative"),
    "EASY, predictions": Scheduler(backfill="easy", prediction="system"),
    "EASY, per-event": Scheduler(backfill="easy", event_order="per-event"),
    "EASY, three resources": Scheduler(backfill="easy"),
    "conservative, three resources": Scheduler(backfill="conservative"),
    "EASY, first-fit": Scheduler(backfill="easy", allocation="first-fit"),
    "EASY, first-contiguous": Scheduler(backfill="easy", allocation="first-contiguous"),
}

#: On logs with queues of thousands of jobs, only these take seconds; others are measured only if named.
QUICK_ON = {"RICC": ("FCFS", "EASY", "SJBF", "SJF, EASY")}

#: Measurements for the fit of the growth: (scheduler, copies of the log).
GROWTH = ("FCFS", "EASY", "SJBF", "conservative")
COPIES = (1, 2, 4, 8)


def median_seconds(function: Callable[[], object], least: int = 3, most: int = 9, budget: float = 4.0) -> float:
    """Return the median time of a call, over the calls within a budget of seconds."""
    seconds: list[float] = []
    while len(seconds) < least or (len(seconds) < most and sum(seconds) < budget):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
        if sum(seconds) > 10 * budget:
            break
    return float(np.median(seconds))


def memory_of(key: str) -> int:
    """Return a value of this process's memory in bytes, as reported by Linux."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return 1024 * int(line.split()[1])


def measure(workload: Workload, scheduler: Scheduler) -> tuple[float, float, float]:
    """Return the seconds of a simulation and of the sort, and the simulation's peak memory in bytes per job."""
    solve(prepare(replace(workload, jobs=workload.jobs.head(50)), scheduler))  # compiled, or loaded
    problem = prepare(workload, scheduler)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory freed by the compiler would otherwise count for the simulation
    before = memory_of("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    start = solve(problem).start
    memory = (memory_of("VmHWM") - before) / workload.jobs.height
    events = np.concatenate([workload.jobs["submit_time"].to_numpy(), start + workload.jobs["run_time"].to_numpy()])
    sort = median_seconds(lambda: np.argsort(events, kind="stable"))
    return median_seconds(lambda: solve(problem)), sort, memory


def with_resources(workload: Workload) -> Workload:
    """Return a workload whose jobs need GPUs, memory and licenses; each is about as scarce as the processors."""
    rng, machine, processors = generator(1, "resources"), workload.machine.processors, workload.jobs["processors"]
    count = workload.jobs.height
    units = {"gpus": max(machine // 4, 4), "licenses": 16, "memory": 5 * machine // 2}
    demands = {
        "gpus": np.where(rng.random(count) < 0.3, rng.integers(1, 5, count), 0),
        "licenses": rng.random(count) < 0.1,
        "memory": np.minimum(processors.to_numpy() * rng.integers(1, 5, count), units["memory"]),
    }
    jobs = workload.jobs.with_columns(pl.Series(name, need.astype(np.int64)) for name, need in demands.items())
    return replace(workload, jobs=jobs, machine=replace(workload.machine, resources=units))


def in_own_process(workload: Workload, scheduler: Scheduler) -> tuple[float, float, float]:
    """Measure in a separate process, so that the peak memory is this simulation's; Polars does not support fork."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (workload, scheduler))


def repeated(workload: Workload, copies: int) -> Workload:
    """Concatenate copies of a workload in time: more jobs at equal load."""
    jobs = workload.jobs
    span = jobs["submit_time"].max() - jobs["submit_time"].min() + 1
    parts = [
        jobs.with_columns(submit_time=pl.col("submit_time") + copy * span, job_id=pl.col("job_id") + copy * 10**8)
        for copy in range(copies)
    ]
    return replace(workload, jobs=pl.concat(parts))


def workloads(traces: Path, logs: Iterable[str] | None) -> Iterable[Workload]:
    """Return the available logs, cleaned, without cancelled jobs; else a synthetic one."""
    catalogue = load_catalogue(ROOT / "config/logs.yaml")
    wanted = list(logs or ("KTH-SP2", "SDSC-SP2", "HPC2N", "SDSC-BLUE", "RICC"))
    found = [name for name in wanted if catalogue[name].file and (traces / str(catalogue[name].file)).is_file()]
    for name in found:
        log = catalogue[name]
        yield clean_log(traces / str(log.file), name=name, processors=log.processors, without_status=[5])
    if not found:
        fields = generate_lublin(50_000, 256, generator(1, "benchmark"), load=0.8)
        yield clean(fields, Machine.of(256), name="synthetic")


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table as Markdown."""
    widths = [max(len(row[place]) for row in [columns, *rows]) for place in range(len(columns))]
    lines = [columns, ["-" * width for width in widths], *rows]
    for line in lines:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |", flush=True)


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SWFLOW_TRACES", ROOT.parent / "shared" / "traces"))
    parser.add_argument("--traces", type=Path, default=default, help="a folder with the archive's files")
    parser.add_argument("--logs", nargs="*", help="names of the catalogue")
    parser.add_argument("--schedulers", nargs="*", choices=SCHEDULERS, help="Schedulers to measure.")
    parser.add_argument("--no-growth", action="store_true", help="Skip the growth.")
    arguments = parser.parse_args()

    rows, growth = [], []
    for workload in workloads(arguments.traces, arguments.logs):
        for name in arguments.schedulers or QUICK_ON.get(workload.name, SCHEDULERS):
            measured = with_resources(workload) if name.endswith("resources") else workload
            seconds, sort, memory = in_own_process(measured, SCHEDULERS[name])
            rows.append(
                [workload.name, name, f"{workload.jobs.height:,}", f"{seconds:.3f}",
                 f"{workload.jobs.height / seconds:,.0f}", f"{seconds / sort:.1f}", f"{memory:.0f}"]
            )  # fmt: skip
        if workload.name in ("HPC2N", "synthetic") and not arguments.no_growth:
            for name in (name for name in GROWTH if name in (arguments.schedulers or GROWTH)):
                sizes = [repeated(workload, copies) for copies in COPIES]
                seconds_of = [in_own_process(size, SCHEDULERS[name])[0] for size in sizes]
                jobs = np.array([size.jobs.height for size in sizes])
                exponent = np.polyfit(np.log(jobs), np.log(seconds_of), 1)[0]
                relative = np.array(seconds_of) / (jobs * np.log(jobs))
                growth.append(
                    [workload.name, name, *(f"{value:.3f}" for value in seconds_of), f"{exponent:.2f}",
                     f"{relative[-1] / relative[0]:.2f}"]
                )  # fmt: skip
    print_table(["log", "scheduler", "jobs", "seconds", "jobs a second", "sorts", "bytes a job"], rows)
    if growth:
        print(
            "\nThe log repeated end to end: seconds, exponent of the growth, and the last over the first by n log n\n"
        )
        print_table(["log", "scheduler", *(f"{copies} x" for copies in COPIES), "exponent", "by n log n"], growth)


if __name__ == "__main__":
    main()
