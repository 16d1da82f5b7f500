"""
Measure time and memory of importing 1 million lines of sacct, and the time from sacct.txt to an answer.

The answer is a what-if table of eight rows (one command), and the report of a new project (two commands).
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

HEADER = (
    "JobID|Cluster|User|Group|Account|Partition|QOS|JobName|State|Submit|Start|End|Elapsed|Suspended|Timelimit|"
    "ReqCPUS|AllocCPUS|NNodes|ReqMem|AllocTRES|TotalCPU|MaxRSS|NTasks|SubmitLine"
)


def write(path: Path, lines: int, odd: float) -> None:
    """Write jobs with one batch step each; a share of them has separators or line breaks in its texts."""
    draw = np.random.default_rng(1)
    jobs = lines // 2
    submit = np.cumsum(draw.exponential(60, jobs)).astype(int)
    wait, run = draw.exponential(3600, jobs).astype(int), draw.lognormal(7, 2, jobs).astype(int) % 172800
    cpus, user, strange = 2 ** draw.integers(0, 8, jobs), draw.integers(0, 500, jobs), draw.random(jobs) < odd
    start = datetime(2024, 1, 1, tzinfo=UTC)

    def clock(seconds: int) -> str:
        return (start + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%S")

    def span(seconds: int) -> str:
        days, rest = divmod(int(seconds), 86400)
        text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        return f"{days}-{text}" if days else text

    with path.open("w") as file:
        file.write(HEADER + "\n")
        for number in range(jobs):
            began, ended = submit[number] + wait[number], submit[number] + wait[number] + run[number]
            times = f"{clock(submit[number])}|{clock(began)}|{clock(ended)}|{span(run[number])}|00:00:00"
            name = "a|b\nc" if strange[number] else f"job{number % 1000}"
            who = f"u{user[number]}|staff|acc{user[number] % 40}|main|normal"
            size = f"{cpus[number]}|{cpus[number]}|1|4000M|billing=1,cpu={cpus[number]},mem=4000M,node=1"
            rest = f"2-00:00:00|{size}|{span(run[number])}|||sbatch x"
            file.write(f"{number}|alpha|{who}|{name}|COMPLETED|{times}|{rest}\n")
            file.write(
                f"{number}.batch|alpha||||||batch|COMPLETED|{times}||{cpus[number]}|{cpus[number]}|1||"
                f"cpu={cpus[number]}|{span(run[number])}|1024K|1|\n"
            )


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return elapsed and CPU seconds, including its children."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout[-2000:]}")
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def answer(folder: Path, lines: int, processors: int) -> None:
    """Time the commands from sacct.txt to the what-if table and to the report, with compiled kernels."""
    write(folder / "sacct.txt", lines, 0.001)
    bin = Path(sys.executable).parent
    machine = ["--machine-processors", str(processors)]
    schedulers = [part for name in ("easy", "conservative", "sjf-easy", "fair: {order: fair-share, backfill: easy}")
                  for part in ("--scheduler", name)]  # fmt: skip
    steps = {
        "whatif": [str(bin / "swflow"), "whatif", "sacct.txt", *machine, *schedulers, "--processors", "+20%"],
        "init": [str(bin / "swflow"), "init", "site", "--log", "sacct.txt", "--processors", str(processors)],
        "snakemake": [str(bin / "snakemake"), "--cores", "2"],
    }
    subprocess.run(steps["whatif"], cwd=folder, check=True, capture_output=True)  # compiles
    for name, command in steps.items():
        seconds, busy = timed(command, folder / "site" if name == "snakemake" else folder)
        print(f"{lines:,} lines, {name}: {seconds:.1f} s, {busy:.1f} s of one core", flush=True)


def main() -> None:
    """Import a generated file in a separate process; print time and memory, then the times to an answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--answer-lines",
        type=int,
        default=60_000,
        help="Lines of the file for the answers; 0 skips them (default: 60,000).",
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument(
        "--odd", type=float, default=0.001, help="Share of jobs with separators in their texts (default: 0.001)."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "sacct.txt"
        write(source, options.lines, options.odd)
        command = [sys.executable, "-c", "from swflow.cli import main; main()", "import", "sacct", str(source)]
        began = time.perf_counter()
        subprocess.run([*command, "-o", f"{folder}/out.parquet"], check=True)
        seconds = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak, busy = used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
        size = source.stat().st_size / 1e6
        words = f"{seconds:.1f} s, {busy:.1f} s of one core, {peak:,.0f} MB of memory at most"
        print(f"{options.lines:,} lines, {size:,.0f} MB: {words}", flush=True)
        if options.answer_lines:
            answer(Path(folder), options.answer_lines, 4096)


if __name__ == "__main__":
    main()
