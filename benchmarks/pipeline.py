"""
Measure the workflow from an empty folder to the report: time by rule, Snakemake's share, and calls with little work.

    python benchmarks/pipeline.py --mirror FOLDER [--logs KTH-SP2,NASA-iPSC] [--config FILE] [--cores 2] [--keep NEW]

The script prints a Markdown table. Every call of swflow goes through a launcher that notes its time and memory, since
Snakemake's benchmark files miss much of the CPU time of short jobs. Measure on an idle machine.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


#: Commands that apply a step of a workload, and those that sweep.
STEPS = ("intensify", "machine", "memory", "model", "moldable", "replicate", "scale", "select")
SWEEPS = ("adjust", "sweep")

#: Runs swflow, and notes the command, seconds of wall and CPU time, and peak memory (KB).
LAUNCHER = """#!{python} -SE
import json, os, sys, time
began, child = time.perf_counter(), os.fork()
if not child:
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
_, status, used = os.wait4(child, 0)
row = [sys.argv[1:], time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss]
with open({notes!r}, "a") as file:
    file.write(json.dumps(row) + "\\n")
os._exit(os.waitstatus_to_exitcode(status) % 256)
"""


def install_launcher(folder: Path) -> Path:
    """Write the launcher to a folder; return the file of its notes."""
    folder.mkdir()
    notes, program = folder / "notes.jsonl", Path(sys.executable).with_name("swflow")
    launcher = folder / "swflow"
    launcher.write_text(LAUNCHER.format(python=sys.executable, program=str(program), notes=str(notes)))
    launcher.chmod(0o755)
    return notes


def call(folder: Path, *arguments: str) -> tuple[float, float, str]:
    """Call Snakemake; return elapsed and CPU seconds, including children, and its output."""
    path = os.pathsep.join([str(folder / "launcher"), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": path}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # every job would compile all modules anew
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments], cwd=folder, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"pipeline: snakemake {' '.join(arguments)} failed:\n{done.stdout[-3000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stdout


def rule_of(arguments: list[str]) -> str:
    """Return the rule that runs a command."""
    command = arguments[0]
    if "--save-fit" in arguments:
        return "fit"
    return "step" if command in STEPS else "sweep" if command in SWEEPS else command


def by_rule(notes: Path) -> dict[str, list[dict[str, float]]]:
    """Return the measurements of every job, by rule."""
    rules: dict[str, list[dict[str, float]]] = {}
    for line in notes.read_text().splitlines():
        arguments, wall, cpu, peak = json.loads(line)
        rules.setdefault(rule_of(arguments), []).append({"wall": wall, "cpu": cpu, "peak": peak / 1000})
    return rules


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--mirror", required=True, help="a folder with the archive's files")
    parser.add_argument("--logs", help="Logs to include, separated by commas (default: all).")
    parser.add_argument("--config", default="config/archive.yaml")
    parser.add_argument("--cores", default="2")
    parser.add_argument("--keep", type=Path, help="Run in this new folder, and keep it.")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in ("config", "workflow"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "Snakefile", folder)
        (folder / "profiles").symlink_to("workflow/profiles")
        notes = install_launcher(folder / "launcher")
        settings = [f"mirror={Path(options.mirror).resolve()}"]
        settings += [f"logs=[{options.logs}]"] if options.logs else []
        config = ["--configfile", options.config, "--config", *settings]
        parse = call(folder, "--list", *config)
        plan = call(folder, "-n", "--quiet", *config)
        whole = call(folder, "--cores", options.cores, *config)
        idle = call(folder, "--cores", options.cores, *config)
        report(folder, by_rule(notes), parse, plan, whole, idle)
        print("\n".join(line for line in whole[2].splitlines() if line.startswith("left out")))
    finally:
        if not options.keep:
            shutil.rmtree(folder)


def report(folder: Path, rules: dict[str, list[dict[str, float]]], *calls: tuple[float, float, str]) -> None:
    """Print the time by rule."""
    parse, plan, whole, idle = calls
    rows = json.loads((folder / "results/swflow.json").read_text())["rows"]
    print("| rule | jobs | wall (s) | CPU (s) | longest (s) | peak memory (MB) |\n|---|---|---|---|---|---|")
    for rule, jobs in sorted(rules.items(), key=lambda item: -sum(job["wall"] for job in item[1])):
        wall, cpu = (sum(job[name] for job in jobs) for name in ("wall", "cpu"))
        longest, peak = (max(job[name] for job in jobs) for name in ("wall", "peak"))
        print(f"| {rule} | {len(jobs)} | {wall:.0f} | {cpu:.0f} | {longest:.0f} | {peak:.0f} |")
    jobs = [job for found in rules.values() for job in found]
    own = whole[1] - sum(job["cpu"] for job in jobs)
    simulated = sum(job["wall"] for job in rules.get("simulate", []))
    print(f"| Snakemake itself | | | {own:.0f} | | |")
    print(f"| **all** | {len(jobs)} | **{whole[0]:.0f}** | **{whole[1]:.0f}** | | |\n")
    print(f"{rows['runs']:,} runs, {rows['outcomes']:,} outcomes; {simulated / max(rows['runs'], 1):.2f} s a run.")
    print(f"Parsing (--list) {parse[0]:.1f} s, dry run (-n) {plan[0]:.1f} s, nothing to do {idle[0]:.1f} s.")
    if "Nothing to be done" not in idle[2]:
        print("The second call did something: see its log.")


if __name__ == "__main__":
    main()
