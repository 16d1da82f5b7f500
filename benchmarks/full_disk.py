"""
Run every command that writes a file with little free space, from nothing to enough.

A command may succeed only if its outputs are complete when they are read again. Otherwise the old outputs must be
untouched, the error must be one line, and no temporary file may be left. The disk is a small tmpfs in a mount namespace
of this process, which needs root or user namespaces.

Run it manually (20 min): python benchmarks/full_disk.py [--points 24] [COMMAND …]
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import typer.main

from swflow.cli import application
from swflow.cli import main as run_command

#: Size of the disk, and of its pages, in bytes.
DISK, PAGE = 2**28, 4096
SMALL_DISK = 2**23  # without databases and pages, which need more

#: Exit status if no mount namespace can be had.
UNAVAILABLE = 77

#: Values that differ between equal runs: in JSON, and columns of tables.
TIMES = {"seconds", "loaded", "bytes", "microseconds_per_job"}

OLD = b"an old output\n"


class Command(NamedTuple):
    """A command: its words, its outputs in the folder ``{o}``, and outputs that exist before, by the file to copy."""

    words: str
    outputs: tuple[str, ...]
    before: str = ""

    @property
    def name(self) -> str:
        """The command and the endings of its outputs."""
        verb = " ".join(self.words.split()[: 2 if self.words.split()[0] in ("import", "generate") else 1])
        return f"{verb} {', '.join(self.outputs)}{f' over {self.before}' if self.before else ''}"


COMMANDS = [
    Command("fetch mine --catalogue logs.yaml --mirror mirror -o {o}/x.swf.gz", ("x.swf.gz",)),
    Command("reach mine --catalogue logs.yaml --mirror mirror -o {o}/r.json", ("mine.swf.gz", "r.json")),
    Command("clean a.swf -o {o}/x.parquet", ("x.parquet",)),
    Command("clean a.swf -o {o}/x.swf", ("x.swf",)),
    Command("clean a.swf -o {o}/x.swf.gz", ("x.swf.gz",)),
    Command("generate lublin --jobs 2000 -o {o}/x.swf.gz", ("x.swf.gz",)),
    Command("import sacct sacct.txt --timezone UTC --anonymize --key {o}/key -o {o}/x.parquet", ("x.parquet", "key")),
    Command("import csv jobs.csv --columns columns.yaml -o {o}/x.parquet", ("x.parquet",)),
    Command("import csv jobs.csv --columns columns.yaml -o {o}/x.swf", ("x.swf",)),
    Command("import site slurm.conf -o {o}/x.yaml", ("x.yaml",)),
    Command("select a.parquet --jobs 900 -o {o}/x.parquet", ("x.parquet",)),
    Command("machine a.parquet --processors 512 -o {o}/x.parquet", ("x.parquet",)),
    Command("memory a.parquet --high 0.8 --low 0.2 -o {o}/x.parquet", ("x.parquet",)),
    Command("moldable a.parquet -o {o}/x.parquet", ("x.parquet",)),
    Command("scale a.parquet --processors 256 -o {o}/x.parquet", ("x.parquet",)),
    Command("intensify a.parquet --factor 2 -o {o}/x.parquet", ("x.parquet",)),
    Command("model a.parquet -o {o}/x.parquet --save-fit {o}/fit.json", ("fit.json", "x.parquet")),
    Command("simulate a.parquet -o {o}/x.parquet", ("x.parquet",)),
    Command("simulate a.parquet -o {o}/x.csv", ("x.csv",)),
    Command("simulate a.parquet -o {o}/x.swf", ("x.swf",)),
    Command("simulate a.parquet --scheduler easy --scheduler fcfs -o {o}/runs",
            ("runs/easy.parquet", "runs/fcfs.parquet", "runs/runs.json")),
    Command("sweep a.parquet --processors 256 --seeds 1 -o {o}/x.csv", ("x.csv",)),
    Command("sweep a.parquet --processors 256 --seeds 1 -o {o}/x.parquet", ("x.parquet",)),
    Command("load runs/a --database {o}/x.duckdb", ("x.duckdb",)),
    Command("load runs/a runs/b --database {o}/x.duckdb", ("x.duckdb",), "a.duckdb"),
    Command("load runs/b --database {o}/x.duckdb", ("x.duckdb",), "a.duckdb"),
    Command("load runs/b --database {o}/x.duckdb --summary {o}/x.json", ("x.duckdb", "x.json"), "a.swf"),
    Command("sql FROM_outcomes --database a.duckdb --csv {o}/x.csv", ("x.csv",)),
    Command("sql FROM_outcomes --database a.duckdb --parquet {o}/x.parquet", ("x.parquet",)),
    Command("sql FROM_outcomes --database a.duckdb --json {o}/x.json", ("x.json",)),
    Command("report --database a.duckdb --single-file -o {o}/x", ("x/index.html",)),
    Command("figure heatmap --log a --database a.duckdb -o {o}/x.svg -o {o}/x.png -o {o}/x.json",
            ("x.svg", "x.png", "x.json")),
    Command("export a.parquet -o {o}/x.json", ("x.json",)),
    Command("export a.parquet -o {o}/x.csv", ("x.csv",)),
    Command("bound a.parquet -o {o}/x.parquet", ("x.parquet",)),
    Command("whatif a.parquet --processors +20% -o {o}/x.html -o {o}/x.json -o {o}/x.csv -o {o}/x.parquet",
            ("x.html", "x.json", "x.csv", "x.parquet")),
    Command("forecast site.swf --method past -o {o}/x.html -o {o}/x.json -o {o}/x.csv -o {o}/x.parquet",
            ("x.html", "x.json", "x.csv", "x.parquet")),
    Command("calibrate few.txt --config site.yaml -o {o}/x.yaml", ("x.yaml",)),
    Command("conformance --cases {o}/cases", ("cases/easy-backfill-by-estimate.swf",)),
    Command("init {o}/x", ("x/Snakefile", "x/config/config.yaml")),
]  # fmt: skip


def prepare(needed: str) -> None:
    """Write the inputs that the commands in a text need into the current folder."""
    run(["generate", "lublin", "--jobs", "1200", "--seed", "1", "--users", "-o", "a.swf"])
    Path("mirror").mkdir()
    Path("mirror/mine.swf.gz").write_bytes(gzip.compress(Path("a.swf").read_bytes()))
    Path("logs.yaml").write_text('mine: {url: "https://example.org/mine.swf.gz"}\n')
    write_tables()
    run(["import", "site", "slurm.conf", "-o", "site.yaml"])
    if "site.swf" in needed:
        run(["generate", "lublin", "--jobs", "2500", "--seed", "3", "--users", "-o", "site.swf"])
        stretched(Path("site.swf"))
    if not any(name in needed for name in ("a.parquet", "runs/", "a.duckdb")):
        return
    run(["clean", "a.swf", "-o", "a.parquet"])
    if any(name in needed for name in ("runs/", "a.duckdb")):
        run(["generate", "lublin", "--jobs", "1200", "--seed", "2", "--users", "-o", "b.swf"])
        run(["clean", "b.swf", "-o", "b.parquet"])
        for name in ("a", "b"):
            run(["simulate", f"{name}.parquet", "--scheduler", "easy", "--scheduler", "fcfs", "-o", f"runs/{name}"])
        run(["load", "runs/a", "--database", "a.duckdb"])


def write_tables() -> None:
    """Write tables of jobs of several formats, and slurm.conf."""
    rows = [f"{job},{600 * job},{600 * job + 60},{600 * job + 900},{1 + job % 8},u{job % 5}" for job in range(1, 800)]
    Path("jobs.csv").write_text("\n".join(["job,submit,start,end,cpus,user", *rows]) + "\n")
    columns = {"submit_time": "submit", "start_time": "start", "end_time": "end", "processors": "cpus", "user": "user"}
    Path("columns.yaml").write_text(json.dumps({"columns": columns}))
    lines = ["JobID|User|Account|Partition|State|Submit|Start|End|Timelimit|NCPUS|NNodes"]
    for job in range(1, 3000):
        day, hour = 1 + job % 27, job % 23
        at = [f"2024-0{1 + job % 4}-{day:02d}T{hour:02d}:{minute:02d}:00" for minute in (0, 5, 50)]
        lines.append(f"{job}|u{job % 7}|x|main|COMPLETED|{at[0]}|{at[1]}|{at[2]}|02:00:00|{1 + job % 8}|1")
    Path("sacct.txt").write_text("\n".join(lines) + "\n")
    Path("few.txt").write_text("\n".join(lines[:250]) + "\n")
    Path("slurm.conf").write_text(
        "ClusterName=c\nPriorityType=priority/multifactor\nPriorityWeightAge=1000\nNodeName=n[1-4] CPUs=16\n"
        "PartitionName=main Nodes=n[1-4] Default=YES\n"
    )


def stretched(log: Path) -> None:
    """Spread a log over ten weeks, and give its jobs waits, so that starts can be forecast."""
    lines = []
    jobs = [line.split() for line in log.read_text().splitlines() if not line.startswith(";")]
    factor = 10 * 604800 / float(jobs[-1][1])
    for place, fields in enumerate(jobs):
        fields[1], fields[2] = str(round(float(fields[1]) * factor)), str(place * 37 % 4000)
        lines.append(" ".join(fields))
    log.write_text("; MaxProcs: 128\n; UnixStartTime: 1700000000\n" + "\n".join(lines) + "\n")


def run(words: list[str]) -> None:
    """Run a command that must succeed."""
    status, error = outcome(words)
    if status:
        sys.exit(f"full_disk: swflow {' '.join(words)}: {error}")


def outcome(words: list[str]) -> tuple[int, str]:
    """Run a command in this process, and return its exit status and what it prints to standard error."""
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    with tempfile.TemporaryFile(dir="/dev/shm") as error, Path(os.devnull).open("wb") as nothing:
        try:
            os.dup2(nothing.fileno(), 1)
            os.dup2(error.fileno(), 2)
            try:
                run_command(words)
                status = 0
            except SystemExit as exit_:
                status = exit_.code if isinstance(exit_.code, int) else 1
            except BaseException as failure:  # a traceback for users
                status = 99
                error.write(f"Traceback: {type(failure).__name__}: {failure}\n".encode())
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            for descriptor, one in zip((1, 2), kept, strict=True):
                os.dup2(one, descriptor)
                os.close(one)
        error.seek(0)
        return status, error.read().decode(errors="replace")


@contextmanager
def free(disk: Path, size: int) -> Iterator[None]:
    """Leave only ``size`` bytes free on the disk."""
    filler = disk / "filler"
    about = os.statvfs(disk)
    with filler.open("wb") as file:
        rest = about.f_bavail * about.f_frsize - size
        if rest > 0:
            os.posix_fallocate(file.fileno(), 0, rest)
    try:
        yield
    finally:
        filler.unlink()


def signature(file: Path) -> object:
    """Return the content of a file as far as it is equal for equal runs; raise an error if it cannot be read."""
    if file.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(file, read_only=True) as connection:
            found = {}
            for (table,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall():
                columns = [column[0] for column in connection.execute(f'FROM "{table}" LIMIT 0').description]
                kept = ", ".join(f'"{column}"' for column in columns if column not in TIMES)
                query = f'SELECT count(*), bit_xor(hash(t)) FROM (SELECT {kept} FROM "{table}") t'
                found[table] = connection.execute(query).fetchone()
            return found
    if file.suffix == ".parquet":
        import polars as pl

        table = pl.read_parquet(file)
        return table.drop(TIMES, strict=False).write_json()
    content = file.read_bytes()
    if file.suffix == ".gz":
        return gzip.decompress(content)
    if file.suffix == ".json":
        return without_times(json.loads(content))
    return len(content) if file.name == "key" else hashlib.sha256(content).hexdigest()


def without_times(content: object) -> object:
    """Return JSON without the values that differ between equal runs."""
    if isinstance(content, dict):
        return {key: without_times(value) for key, value in content.items() if key not in TIMES | {"digest"}}
    return [without_times(one) for one in content] if isinstance(content, list) else content


def state_of(file: Path, old: bytes | None, new: object) -> str:
    """Return whether an output is old, new, missing or damaged."""
    if not file.exists():
        return "missing"
    if old is not None and file.read_bytes() == old:
        return "old"
    try:
        return "new" if signature(file) == new else "damaged"
    except Exception as error:
        return f"damaged ({type(error).__name__})"


class Tried(NamedTuple):
    """A try with some free bytes: exit status, state of the outputs, and what is wrong."""

    free: int
    status: int
    state: str
    wrong: str


def tries(command: Command, disk: Path, points: int) -> Iterator[Tried]:
    """Yield the tries of a command, from nothing to more than enough."""
    place = disk / "o"
    words = [word.replace("_", " ").format(o=place) for word in command.words.split()]
    old = Path(command.before).read_bytes() if command.before else OLD
    is_new = command.words.startswith(("init", "conformance"))  # they do not replace files
    renew(place, {})
    run(words)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    missing = [name for name in command.outputs if place / name not in files]
    if missing:
        raise SystemExit(f"full_disk: {command.name}: no output {missing}; there are {files}")
    new = {file: signature(file) for file in files}
    size = sum(-(-file.stat().st_size // PAGE) * PAGE for file in files)
    before = {} if is_new or "key" in command.outputs else dict.fromkeys(files, old)
    if command.before:
        before = {file: old for file in files if file.suffix in (".duckdb", ".json")}
    steps = {0, PAGE, 2 * PAGE, *(max(0, size + PAGE * shift) for shift in (-2, -1, 0, 1, 2))}
    steps |= {round(1.5 * size * step / points / PAGE) * PAGE for step in range(points)}
    enough, step = 0, 2 * size
    for amount in sorted(steps):
        yield (found := attempt(words, disk, amount, new, before))
        enough = enough + 1 if found.status == 0 else 0
    while enough < 2 and step < DISK // 2:
        yield (found := attempt(words, disk, step, new, before))
        enough, step = enough + (found.status == 0), 2 * step
    if not enough:
        yield Tried(step, 1, "", "never succeeds")


def renew(place: Path, before: dict[Path, bytes]) -> None:
    """Make the folder of outputs anew, with old ones."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for file, content in before.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def attempt(words: list[str], disk: Path, amount: int, new: dict[Path, object], before: dict[Path, bytes]) -> Tried:
    """Run a command with some free bytes, and examine what it leaves."""
    place = disk / "o"
    renew(place, before)
    with free(disk, amount):
        status, error = outcome(words)
    states = [state_of(file, before.get(file), signed) for file, signed in new.items()]
    expected = "old" if before else "missing"
    wrong = []
    if status == 0 and set(states) != {"new"}:
        wrong.append("success with outputs that are not complete")
    if status and (len(new) == 1 or "x.duckdb" in str(new)) and states[0] != expected and len(new) == 1:
        wrong.append(f"the old output is {states[0]}")
    if any(state not in ("old", "new", "missing") for state in states) or ("missing" in states and before and status):
        if "missing" in states and all(file in before for file in new):
            wrong.append("an old output is gone")
        wrong += [state for state in states if state.startswith("damaged")]
    left = {path for path in place.rglob("*") if path.is_file()} - new.keys()
    wrong += [f"left: {path.name}" for path in left]
    last = error.strip().splitlines()[-1:] or [""]
    if status and (status > 2 or "Traceback" in error or not last[0].startswith("swflow: ") or len(last[0]) > 500):
        wrong.append(f"no error in one line: {error.strip()[-300:]}")
    return Tried(amount, status, " and ".join(dict.fromkeys(states)), "; ".join(wrong))


def report(command: Command, found: Iterable[Tried]) -> bool:
    """Print the tries of a command, equal ones together, and return whether any is wrong."""
    groups: list[list[Tried]] = []
    for one in found:
        if groups and groups[-1][-1][1:] == one[1:]:
            groups[-1].append(one)
        else:
            groups.append([one])
    for group in groups:
        first, last = group[0], group[-1]
        span = (
            f"{first.free / 1024:,.0f} to {last.free / 1024:,.0f} KiB"
            if len(group) > 1
            else f"{first.free / 1024:,.0f} KiB"
        )
        name = command.name if group is groups[0] else ""
        print(f"| {name} | {span} | {len(group)} | {first.status} | {first.state} | {first.wrong} |", flush=True)
    return any(group[0].wrong for group in groups)


def main() -> None:
    """Print a table of commands by free space, and exit with 1 if any outcome is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("commands", nargs="*", help="words of which a command has to contain one (default: all)")
    parser.add_argument("--points", type=int, default=24, help="sizes per command (default: 24)")
    parser.add_argument("--small", action="store_true", help="use a disk of 8 MiB, which is faster to fill")
    parser.add_argument("--everything", action="store_true", help="put temporary files and the cache on the disk, too")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is None:
        for flags in (["-m"], ["-r", "-m"]):
            with tempfile.TemporaryDirectory() as folder:
                if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode == 0:
                    words = ["unshare", *flags, sys.executable, __file__, *sys.argv[1:], "--inside", folder]
                    environment = os.environ | {"SWFLOW_CACHE": f"{folder}/cache"}
                    environment.setdefault("SWFLOW_INTERPRET", "1")
                    sys.exit(subprocess.run(words, env=environment, check=False).returncode)
        print("full_disk: no mount namespace; run it as root, or allow user namespaces", file=sys.stderr)
        sys.exit(UNAVAILABLE)
    folder = Path(options.inside)
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK if options.small else DISK}", "none", disk], check=True
    )
    os.chdir(folder)
    application()  # adds all commands
    typer.main.get_command = cache(typer.main.get_command)  # half of the time is the creation of options
    chosen = [one for one in COMMANDS if not options.commands or any(word in one.name for word in options.commands)]
    prepare(" ".join(one.words + one.before for one in chosen))
    if options.everything:
        (disk / "tmp").mkdir()
        tempfile.tempdir = os.environ["TMPDIR"] = str(disk / "tmp")
        os.environ["SWFLOW_CACHE"] = str(disk / "cache")
    print("| command, outputs | free | tries | rc | outputs after it | wrong |\n|---|---|---|---|---|---|")
    wrong = [report(command, tries(command, disk, options.points)) for command in chosen]
    print(f"\n{len(chosen)} commands; wrong: {sum(wrong)}")
    sys.exit(any(wrong))


if __name__ == "__main__":
    main()
