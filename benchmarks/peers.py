"""
Compare swflow with other simulators: CPU seconds for the same log and policy, and agreement of the schedules.

    python benchmarks/peers.py kth.swf.gz [--jobs 10000] [--accasim PYTHON] [--pypy pypy3] [--peer NAME=COMMAND ...]

Each simulator is a process that reads the log's file and writes the file of start times. The processes run in turn on
this machine. CPU seconds are those of the operating system for the process and its children, the median of the
rounds. The first run of swflow, which compiles, is excluded. Simulators that are not installed are skipped and named.
All get the same file: the cleaned log with whole seconds and every estimate at least the run time.

AccaSim: `--accasim` is a Python with `accasim` installed. PyPy: `--pypy` runs `plain_simulator.py`.
Other simulators: `--peer 'pyss=python2 run.py {log} {processors} {policy} {output}'`, a command that writes lines of
job number and start time to {output}; {policy} is fcfs or easy. Use this for pyss, CQSim, Batsim or HPCOpt. A
simulator that supports only one policy can fail for the other one.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from swflow.log.swf import read_swf, write_swf
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import open_workload

HERE = Path(__file__).parent
POLICIES = ("fcfs", "easy")


def cpu_seconds(command: list[str], output: Path) -> tuple[float, float] | None:
    """Run a command with its standard output in a file; return its total CPU seconds and those it prints."""
    before = os.times()
    with output.open("w") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=False, text=True)
    after = os.times()
    if done.returncode:
        said = done.stderr.strip().splitlines()
        print(f"  {command[0]} failed: {said[-1] if said else done.returncode}", file=sys.stderr)
        return None
    within = [float(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("simulation: ")]
    whole = after.children_user + after.children_system - before.children_user - before.children_system
    return whole, within[-1] if within else np.nan


def starts_of(path: Path) -> pl.DataFrame:
    """Read lines of job number and start time."""
    numbers = np.loadtxt(path, ndmin=2)
    return pl.DataFrame({"job_id": numbers[:, 0].astype(int), "start": numbers[:, 1]}).sort("job_id")


def prepare(log: str, jobs: int | None, folder: Path) -> tuple[Path, int, int]:
    """Write the log for all simulators; return it with its processors and jobs."""
    workload = open_workload(log)
    table = workload.jobs.head(jobs or workload.jobs.height)
    estimate = pl.max_horizontal("estimate", "run_time").ceil()
    table = table.with_columns(
        submit_time=pl.col("submit_time").round(),
        run_time=pl.col("run_time").round().clip(lower_bound=1),
        requested_time=estimate.clip(lower_bound=1),
        allocated_processors="processors",
        requested_processors="processors",
        wait_time=None,
    ).sort("submit_time", "job_id")
    path = folder / f"{workload.name}.swf"
    write_swf(path, table, {"MaxProcs": [str(workload.machine.processors)]})
    return path, workload.machine.processors, table.height


def contestants(options: argparse.Namespace) -> dict[str, str]:
    """Return the command of each simulator; {output} is its output file, else standard output is used."""
    found = {"swflow": f"{shlex.quote(sys.executable)} -m swflow simulate {{log}} {{flags}} -o {{output}}.swf"}
    python = shlex.quote(sys.executable)
    plain = shlex.quote(str(HERE / "plain_simulator.py"))
    found["plain Python"] = f"{python} {plain} {{log}} {{processors}} {{policy}}"
    if shutil.which(options.pypy):
        found["plain, PyPy"] = f"{options.pypy} {plain} {{log}} {{processors}} {{policy}}"
    else:
        print(f"skipped: PyPy ({options.pypy} is not installed)", file=sys.stderr)
    has = subprocess.run([options.accasim, "-c", "import importlib.metadata as m; m.version('accasim')"],
                         capture_output=True, check=False)  # fmt: skip
    if has.returncode == 0:
        driver = shlex.quote(str(HERE / "accasim_driver.py"))
        found["AccaSim"] = f"{shlex.quote(options.accasim)} {driver} {{log}} {{processors}} {{policy}}"
    else:
        print(f"skipped: AccaSim ({options.accasim} has no package accasim)", file=sys.stderr)
    return found | dict(peer.split("=", 1) for peer in options.peer)


def run(
    name: str, command: str, log: Path, processors: int, policy: str, folder: Path
) -> tuple[tuple[float, float], Path] | None:
    """Run one simulator once; return its CPU seconds, total and simulation, and the file of start times."""
    output = folder / f"{name.replace(' ', '-')}-{policy}.txt"
    flags = "--backfill easy" if policy == "easy" else "--backfill none"
    filled = command.format(log=log, processors=processors, policy=policy, output=output, flags=flags)
    writes = "{output}" in command
    seconds = cpu_seconds(shlex.split(filled), folder / "stdout.txt" if writes else output)
    if seconds is None:
        return None
    if name == "swflow":
        schedule = read_swf(f"{output}.swf").fields
        starts = schedule.select("job_id", pl.col("submit_time") + pl.col("wait_time"))
        starts.write_csv(output, separator=" ", include_header=False)
        seconds = seconds[0], alone(log, policy)
    return seconds, output


def alone(log: Path, policy: str) -> float:
    """Return the CPU seconds of swflow's simulation and outcomes, in this process, with loaded kernels."""
    workload, scheduler = open_workload(log), Scheduler(backfill="easy" if policy == "easy" else "none")
    simulate(workload, scheduler)
    began = time.process_time()
    simulate(workload, scheduler)
    return time.process_time() - began


def main() -> None:
    """Print a table for each policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", help="a log (.swf, .swf.gz) or a workload (.parquet)")
    parser.add_argument("--jobs", type=int, help="Use only the first N jobs (default: all).")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pypy", default="pypy3")
    parser.add_argument("--accasim", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        log, processors, jobs = prepare(options.log, options.jobs, folder)
        commands = contestants(options)
        for policy in POLICIES:
            run("swflow", commands["swflow"], log, processors, policy, folder)  # compiles
        print(f"{log.stem}: {jobs:,} jobs, {processors:,} processors; CPU seconds of whole processes, median of "
              f"{options.rounds}")  # fmt: skip
        print(f"{'':24s}{'whole process':>18s}{'simulation alone':>20s}")
        print(f"{'policy':8s}{'simulator':16s}{'CPU s':>9s}{'ratio':>9s}{'CPU s':>11s}{'ratio':>9s}  start times")
        for policy in POLICIES:
            spent: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
            files: dict[str, Path] = {}
            for _ in range(options.rounds):
                for name, command in commands.items():
                    result = run(name, command, log, processors, policy, folder)
                    if result is not None:
                        spent[name].append(result[0])
                        files[name] = result[1]
            ours, unit = starts_of(files["swflow"]), np.median(spent["swflow"], axis=0)
            for name in commands:
                if spent[name]:
                    (whole, within), ratio = np.median(spent[name], axis=0), np.median(spent[name], axis=0) / unit
                    figures = f"{whole:9.2f}{ratio[0]:9.1f}{within:11.3f}{ratio[1]:9.1f}"
                    print(f"{policy:8s}{name:16s}{figures}  {agreement(ours, files[name])}")


def agreement(ours: pl.DataFrame, path: Path) -> str:
    """Print how many start times agree with swflow's."""
    both = ours.join(starts_of(path), on="job_id", how="left", suffix="_other")
    missing = both["start_other"].null_count()
    differ = int((both["start"] != both["start_other"]).sum())
    return ("all equal" if not differ else f"{differ:,} differ") + (f", {missing:,} missing" if missing else "")


if __name__ == "__main__":
    main()
