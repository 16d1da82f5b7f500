"""
Measure what a user waits for: calls without work, the default run, one simulation, and an edit of the five papers.

    python benchmarks/waiting.py [--log LOG] [--mirror FOLDER] [--rounds 3] [--cores 2]

The script prints a Markdown table. The default run begins in a fresh clone of the last commit, once without and once
with compiled kernels. With `--mirror`, it runs the studies of KTH-SP2 in config/archive.yaml, edits one of their
schedulers, and measures the next call. Measure on an idle machine.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: A workflow of one file, to compare with.
EMPTY = 'rule all:\n    output: "x"\n    shell: "touch x"\n'

#: A scheduler of one study, and an edit that changes its schedule.
EDITED = "{title: EASY with feedback by sessions, order: fcfs, backfill: easy, feedback: sessions}"


def seconds(folder: Path, cache: Path, *command: str) -> float:
    """Run a command of this Python's environment in a folder; return the elapsed time."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": path, "SWFLOW_CACHE": str(cache)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # every job would compile all modules anew
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"waiting: {' '.join(command)} failed:\n{done.stdout[-3000:]}")
    return time.perf_counter() - began


def show(what: str, measure: Callable[[], float], rounds: int) -> None:
    """Measure several times, and print a row of the table."""
    found = sorted(measure() for _ in range(rounds))
    print(f"| {what} | {found[0]:.2f} | {statistics.median(found):.2f} | {found[-1]:.2f} |", flush=True)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--log", type=Path, help="A log to simulate.")
    parser.add_argument("--mirror", type=Path, help="A folder with the archive's files.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", default="2")
    options = parser.parse_args()
    run = ("snakemake", "--cores", options.cores)
    print("| what | shortest (s) | median (s) | longest (s) |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        clone, empty, cache = folder / "clone", folder / "empty", folder / "cache"

        def default(is_compiled: bool) -> float:
            shutil.rmtree(clone, ignore_errors=True)
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
            if not is_compiled:
                shutil.rmtree(cache, ignore_errors=True)
            return seconds(clone, cache, *run)

        show("default run, kernels not compiled", lambda: default(False), options.rounds)
        show("default run, kernels compiled", lambda: default(True), options.rounds)
        empty.mkdir()
        (empty / "Snakefile").write_text(EMPTY)
        seconds(empty, cache, *run)
        show("call without work, default config", lambda: seconds(clone, cache, *run), 5)
        show("call without work, a Snakefile with one file", lambda: seconds(empty, cache, *run), 5)
        if options.log:
            simulate = ("swflow", "simulate", str(options.log.resolve()), "--order", "fcfs", "--backfill", "easy")
            seconds(folder, cache, *simulate)
            show(f"`swflow simulate`, EASY, {options.log.name}", lambda: seconds(folder, cache, *simulate), 5)
        if options.mirror:
            edit(folder, cache, options.mirror.resolve(), run)


def edit(folder: Path, cache: Path, mirror: Path, run: tuple[str, ...]) -> None:
    """Run the studies of KTH-SP2, and measure a call after each of two edits of a scheduler."""
    for name in ("config", "workflow"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "profiles").symlink_to("workflow/profiles")
    config = folder / "config/archive.yaml"
    command = (*run, "--configfile", str(config), "--config", f"mirror={mirror}", "logs=[KTH-SP2]")
    text = config.read_text()
    if EDITED not in text:
        sys.exit(f"waiting: {config} has no scheduler {EDITED!r}")
    show("the studies of KTH-SP2", lambda: seconds(folder, cache, *command), 1)
    reservations = iter((2, 3))

    def edited() -> float:
        config.write_text(text.replace(EDITED, f"{EDITED[:-1]}, reservations: {next(reservations)}}}"))
        return seconds(folder, cache, *command)

    show("the same after an edit of one scheduler", edited, 2)


if __name__ == "__main__":
    main()
