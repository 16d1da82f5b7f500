"""How fast the kernels are: per log and scheduler, as multiples of a sort, with memory and growth.

    python benchmarks/scheduling.py [--traces FOLDER] [--logs KTH-SP2 HPC2N] [--no-growth]

The unit is `np.argsort(kind="stable")` of the run's 2n event times in the same process: a ratio travels between
machines better than seconds do. Without a folder of logs, a synthetic one is measured.
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

from swflow.jobs import Workload
from swflow.logs import load_catalogue
from swflow.machine import Machine
from swflow.randomness import generator
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import prepare
from swflow.workloads.clean import clean, clean_log
from swflow.workloads.lublin import generate_lublin

ROOT = Path(__file__).parents[1]

SCHEDULERS = {
    "FCFS": Scheduler(),
    "EASY": Scheduler(backfill="easy"),
    "SJBF": Scheduler(backfill="easy", backfill_order="sjf"),
    "SJF, EASY": Scheduler(order="sjf", backfill="easy"),
    "WFP3, EASY": Scheduler(order="wfp3", backfill="easy"),
    "lookahead 8": Scheduler(backfill="lookahead", lookahead=8),
    "conservative": Scheduler(backfill="conservative"),
    "EASY, predictions": Scheduler(backfill="easy", prediction="system"),
    "EASY, per-event": Scheduler(backfill="easy", event_order="per-event"),
    "EASY, first-fit": Scheduler(backfill="easy", allocation="first-fit"),
    "EASY, first-contiguous": Scheduler(backfill="easy", allocation="first-contiguous"),
}

#: Where queues are thousands of jobs long, only these end in seconds; the others are measured if they are named.
QUICK_ON = {"RICC": ("FCFS", "EASY", "SJBF", "SJF, EASY")}

#: What the growth is fitted for: (scheduler, copies of the log).
GROWTH = ("FCFS", "EASY", "SJBF", "conservative")
COPIES = (1, 2, 4, 8)


def median_seconds(function: Callable[[], object], least: int = 3, most: int = 9, budget: float = 4.0) -> float:
    """Return the median time of a call, of as many calls as fit into a budget of seconds."""
    seconds: list[float] = []
    while len(seconds) < least or (len(seconds) < most and sum(seconds) < budget):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
        if sum(seconds) > 10 * budget:
            break
    return float(np.median(seconds))


def memory_of(key: str) -> int:
    """Return a figure of this process's memory in bytes; Linux tells them."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return 1024 * int(line.split()[1])


def measure(workload: Workload, scheduler: Scheduler) -> tuple[float, float, float]:
    """Return the seconds of a simulation, those of the sort, and the peak memory of the simulation, bytes a job."""
    prepare(replace(workload, jobs=workload.jobs.head(50)), scheduler)()  # compiled, or loaded
    simulation = prepare(workload, scheduler)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the compiler left would be taken for the simulation's
    before = memory_of("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    start = simulation().start
    memory = (memory_of("VmHWM") - before) / workload.jobs.height
    events = np.concatenate([workload.jobs["submit_time"].to_numpy(), start + workload.jobs["run_time"].to_numpy()])
    sort = median_seconds(lambda: np.argsort(events, kind="stable"))
    return median_seconds(simulation), sort, memory


def in_own_process(workload: Workload, scheduler: Scheduler) -> tuple[float, float, float]:
    """Measure in a process of its own, so that the peak memory is this simulation's; Polars does not survive a fork."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (workload, scheduler))


def repeated(workload: Workload, copies: int) -> Workload:
    """Put copies of a workload end to end: more jobs at equal load."""
    jobs = workload.jobs
    span = jobs["submit_time"].max() - jobs["submit_time"].min() + 1
    parts = [
        jobs.with_columns(submit_time=pl.col("submit_time") + copy * span, job_id=pl.col("job_id") + copy * 10**8)
        for copy in range(copies)
    ]
    return replace(workload, jobs=pl.concat(parts))


def workloads(traces: Path, logs: Iterable[str] | None) -> Iterable[Workload]:
    """Give the logs that are there, cleaned, without cancelled jobs; else a synthetic one."""
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
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SWFLOW_TRACES", ROOT.parent / "shared" / "traces"))
    parser.add_argument("--traces", type=Path, default=default, help="a folder with the archive's files")
    parser.add_argument("--logs", nargs="*", help="names of the catalogue")
    parser.add_argument("--schedulers", nargs="*", choices=SCHEDULERS, help="which to measure")
    parser.add_argument("--no-growth", action="store_true", help="leave out the growth")
    arguments = parser.parse_args()

    rows, growth = [], []
    for workload in workloads(arguments.traces, arguments.logs):
        for name in arguments.schedulers or QUICK_ON.get(workload.name, SCHEDULERS):
            seconds, sort, memory = in_own_process(workload, SCHEDULERS[name])
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
