"""
Measure time and memory of importing 1 million lines of sacct, and the time from sacct.txt to an answer.

Before that, it imports 200,000 records each of sacct, LSF, Grid Engine and PBS (`--records`). The answer is a what-if
table of eight rows (one command), and the report of a new project (two commands).
"""

import argparse
import os
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


def record(kind: str, job: int, user: int, times: tuple[int, int, int], cpus: int) -> str:
    """Return the record of a job of 1 to 16 processors on each node, with its submission, start and end."""
    submit, start, end = times
    nodes, each = max(1, cpus // 16), min(cpus, 16)
    if kind == "sacct":
        clocks = "|".join(datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S") for time in times)
        tres = f"billing={cpus},cpu={cpus},mem={2 * cpus}G,node={nodes}"
        return f"{job}|u{user}|acc{user % 40}|main|normal|COMPLETED|{clocks}|1-00:00:00|{cpus}|{cpus}|{nodes}|{tres}"
    if kind == "lsf":
        hosts = " ".join(f'"{each}*n{node}"' for node in range(nodes))
        usage = "9.5 1.5 0 0 -1 0 0 0 0 0 0 0 -1 0 0 0 0 0 -1"
        return (
            f'"JOB_FINISH" "10.1" {end} {job} {user} 16 {cpus} {submit} 0 0 {start} "u{user}" "normal" "span[ptile=16]"'
            f' "" "" "front" "/home/u{user}" "" "out" "" "{submit}.{job}" 0 {nodes} {hosts} 64 60.0 "job" "run"'
            f' {usage} "" "default" 0 {cpus} "" "" 0 8192 0 "" "" "" "" 0 "" 0 "" -1 "" "" "" "" -1 "" "" 1040 ""'
            f' {start} "" "" 2 1032 "0" 1033 "0" 0 86400 64 2048 "select[type == local]" "" -1 "" -1 0 "" 0 0'
        )
    if kind == "sge":
        usage = ":".join(["0"] * 18)
        return (
            f"all.q:n1:g:u{user}:job:{job}:sge:0:{submit}:{start}:{end}:0:0:{usage}:NONE:dep:mpi:{cpus}:0:80.0:0.0:0.0:"
            f"-u u{user} -l h_rt=86400,h_vmem=2G -pe mpi {cpus}:0.0:NONE:1048576.0:0:0"
        )
    hosts = "+".join(f"n{node}/0*{each}" for node in range(nodes))
    vnodes = "+".join(f"(n{node}:ncpus={each}:mem=16777216kb)" for node in range(nodes))
    return (
        f"{datetime.fromtimestamp(end, UTC):%m/%d/%Y %H:%M:%S};E;{job}.srv;user=u{user} group=g jobname=job queue=q "
        f"ctime={submit} qtime={submit} etime={submit} start={start} exec_host={hosts} exec_vnode={vnodes} "
        f"Resource_List.ncpus={cpus} Resource_List.nodect={nodes} Resource_List.select={nodes}:ncpus={each}:mem=16gb "
        f"Resource_List.walltime=24:00:00 end={end} Exit_status=0 resources_used.cput=00:10:00 "
        f"resources_used.mem=1024kb resources_used.ncpus={cpus} resources_used.walltime=00:20:00 run_count=1"
    )


def records(folder: Path, count: int) -> None:
    """Import records of each format in separate processes; print the time and the memory of each."""
    draw = np.random.default_rng(2)
    submit = 1_704_067_200 + np.cumsum(draw.exponential(60, count)).astype(int)
    start = submit + draw.exponential(3600, count).astype(int)
    end = start + draw.lognormal(7, 2, count).astype(int) % 172800
    cpus, user = 2 ** draw.integers(0, 8, count), draw.integers(0, 500, count)
    jobs = list(zip(user.tolist(), zip(submit.tolist(), start.tolist(), end.tolist(), strict=True), cpus.tolist(),
                    strict=True))  # fmt: skip
    for kind in ("sacct", "lsf", "sge", "pbs"):
        source = folder / f"{kind}.txt"
        with source.open("w") as file:
            if kind == "sacct":
                file.write(
                    "JobID|User|Account|Partition|QOS|State|Submit|Start|End|Timelimit|ReqCPUS|AllocCPUS|NNodes|"
                )
                file.write("AllocTRES\n")
            file.writelines(f"{record(kind, number, *job)}\n" for number, job in enumerate(jobs, 1))
        command = [sys.executable, "-c", "from swflow.cli import main; main()", "import", kind, str(source), "-o"]
        began = time.perf_counter()
        process = subprocess.Popen([*command, f"{folder}/out.parquet"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds, size = time.perf_counter() - began, source.stat().st_size / 1e6
        source.unlink()
        if status:
            sys.exit(f"import {kind}: exit status {status}")
        busy, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        words = f"{seconds:.1f} s, {busy:.1f} s of one core, {peak:,.0f} MB of memory at most"
        print(f"{kind}: {count:,} records, {size:,.0f} MB: {words}", flush=True)


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
    parser.add_argument(
        "--lines",
        type=int,
        default=1_000_000,
        help="Lines of sacct; 0 skips them and the answers (default: 1,000,000).",
    )
    parser.add_argument(
        "--odd", type=float, default=0.001, help="Share of jobs with separators in their texts (default: 0.001)."
    )
    parser.add_argument(
        "--records", type=int, default=200_000, help="Records of each format; 0 skips them (default: 200,000)."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.records:
            records(Path(folder), options.records)
        if not options.lines:
            return
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
