"""
Measure every stage from a log's text to the report, for logs of 1 million to 100 million jobs.

    python benchmarks/size.py [--jobs 1e6,1e7,1e8] [--stages clean,simulate-easy,…] [--traces FOLDER] [--folder NEW]

A real log, HPC2N, is repeated in time up to the number of jobs; without a folder of logs, a synthetic one is. Each
stage is one public command in a separate process. The script prints a Markdown table with elapsed and CPU seconds,
the peak memory of the process, and the exponent of the growth between the two largest logs. The files of 100 million
jobs take 30 GB of disk. Each log's files are removed before the next one, unless --folder is given.
"""

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from swflow.jobs.randomness import generator
from swflow.log.catalogue import load_catalogue
from swflow.log.swf import parse_header, plain_text, read_content, read_swf
from swflow.workload.models.lublin import generate_lublin, lublin_header

ROOT = Path(__file__).parents[1]
LOG = "HPC2N"

#: The stages in order: name to the arguments of swflow. The load reads the first existing runs.
SIMULATIONS = {
    "fcfs": [],
    "easy": ["--backfill", "easy"],
    "sjbf": ["--backfill", "easy", "--backfill-order", "sjf"],
    "conservative": ["--backfill", "conservative"],
}
STAGES: dict[str, list[str]] = {
    "clean": ["clean", "log.swf", "-o", "log.parquet"],
    **{
        f"simulate-{name}": ["simulate", "log.parquet", *options, "-o", f"runs/{name}.parquet"]
        for name, options in SIMULATIONS.items()
    },
    "load": ["load", "runs/fcfs.parquet", "runs/easy.parquet", "--database", "log.duckdb"],
    "heatmap": ["figure", "heatmap", "--log", "log", "--database", "log.duckdb", "-o", "heatmap.png"],
    "report": ["report", "--database", "log.duckdb", "-o", "report"],
}


@dataclass(frozen=True)
class Cost:
    """Cost of a command: elapsed and CPU seconds, and peak memory in bytes."""

    wall: float
    cpu: float
    memory: int


def one_log(traces: Path) -> tuple[pl.DataFrame, list[str]]:
    """Return the fields of the repeated log as whole numbers, and its comments."""
    file = load_catalogue(ROOT / "config/logs.yaml")[LOG].file
    path = traces / str(file)
    if path.is_file():
        fields = read_swf(path).fields
        header = parse_header(plain_text(read_content(path), str(path)))
    else:
        fields = generate_lublin(200_000, 240, generator(1, "size"), load=0.7, users=True)
        header = lublin_header(200_000, 240, seed=1, load=0.7, classes="batch-and-interactive", estimates="tsafrir",
                               users=True)  # fmt: skip
    kept = ("UnixStartTime", "TimeZone", "TimeZoneString", "MaxNodes", "MaxProcs")
    return fields.cast(pl.Int64), [f"; {key}: {value}" for key in kept for value in header.get(key, ())]


def copies(fields: pl.DataFrame, jobs: int) -> Iterator[pl.DataFrame]:
    """Yield copies of the log, each after the previous one, up to the number of jobs."""
    first, last, ids = fields["submit_time"].min(), fields["submit_time"].max(), fields["job_id"].max()
    span = int(last) - int(first) + 1  # type: ignore[arg-type]
    for copy in range(math.ceil(jobs / fields.height)):
        moved = fields.with_columns(pl.col("job_id") + copy * int(ids), pl.col("submit_time") + copy * span)  # type: ignore[arg-type]
        yield moved.head(jobs - copy * fields.height)


def write_log(traces: Path, jobs: int, path: Path) -> None:
    """Write the text of a log with this number of jobs, copy by copy."""
    fields, comments = one_log(traces)
    with path.open("wb") as file:
        file.write("".join(f"{line}\n" for line in comments).encode())
        for part in copies(fields, jobs):
            part.write_csv(file, include_header=False, separator=" ")


def measure(arguments: list[str], folder: Path) -> Cost:
    """Run swflow in a separate process, and return its cost."""
    began = time.perf_counter()
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "swflow", *arguments], cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        shown = (folder / "output.txt").read_text()[-2000:]
        sys.exit(f"size: swflow {' '.join(arguments)} ended with {process.returncode}:\n{shown}")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)


def tell(words: str) -> None:
    """Print the progress to standard error."""
    print(words, file=sys.stderr, flush=True)


def measure_all(jobs: int, stages: list[str], traces: Path, folder: Path) -> dict[str, Cost]:
    """Run the stages for a log with this number of jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    if "clean" in stages and not (folder / "log.swf").is_file():
        began = time.perf_counter()
        write_log(traces, jobs, folder / "log.swf")
        size = (folder / "log.swf").stat().st_size
        tell(f"{jobs:,} jobs: {size / 1e9:.2f} GB of text written in {time.perf_counter() - began:.0f} s")
    found = {}
    for stage in stages:
        found[stage] = cost = measure(STAGES[stage], folder)
        tell(f"{jobs:,} jobs: {stage}: {cost.wall:.1f} s, {cost.cpu:.1f} s of CPU, {cost.memory / 1e9:.2f} GB")
        if stage == "clean":
            (folder / "log.swf").unlink()
    return found


def table(found: dict[int, dict[str, Cost]]) -> str:
    """Return the costs as a table in Markdown."""
    sizes = sorted(found)
    heads = ["stage"]
    for jobs in sizes:
        heads += [f"{jobs:,} jobs: wall (s)", "CPU (s)", "peak (GB)"]
    heads += ["exponent"] * (len(sizes) > 1)
    lines = [heads, ["---"] * len(heads)]
    for stage in STAGES:
        costs = [found[jobs].get(stage) for jobs in sizes]
        if not any(costs):
            continue
        line = [stage]
        for cost in costs:
            line += [f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{cost.memory / 1e9:.2f}"] if cost else [""] * 3
        known = [(jobs, cost.wall) for jobs, cost in zip(sizes, costs, strict=True) if cost]
        if len(sizes) > 1:
            (first, short), (last, long) = known[-2:] if len(known) > 1 else (known[0], known[0])
            line.append(f"{math.log(long / short) / math.log(last / first):.2f}" if last > first else "")
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SWFLOW_TRACES", ROOT.parent / "shared" / "traces"))
    parser.add_argument("--jobs", default="1e6,1e7", help="Numbers of jobs, separated by commas.")
    parser.add_argument("--stages", default=",".join(STAGES), help="Stages in order, separated by commas.")
    parser.add_argument("--traces", type=Path, default=default, help="a folder with the archive's files")
    parser.add_argument("--folder", type=Path, help="Folder to work in, with one folder per size; keep the files.")
    options = parser.parse_args()
    stages = options.stages.split(",")
    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        parser.error(f"unknown stage {unknown[0]}; there are {', '.join(STAGES)}")
    found = {}
    for jobs in (int(float(number)) for number in options.jobs.split(",")):
        folder = options.folder / str(jobs) if options.folder else Path(tempfile.mkdtemp())
        try:
            found[jobs] = measure_all(jobs, stages, options.traces, folder)
        finally:
            if not options.folder:
                shutil.rmtree(folder, ignore_errors=True)
    print(table(found))


if __name__ == "__main__":
    main()
