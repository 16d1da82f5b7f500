"""
Damage valid files of every format that swflow reads, and run the commands that take them.

    python tests/mangle.py --seed 1 --cases 500
    python tests/mangle.py --seed 1 --case 123 --keep /tmp/case   # repeat one case, and keep its files

A case draws valid files, damages one of them, and runs a command. The command must end within 40 s and 2 GB, with its
result or with one line of at most 500 characters on standard error. Violations are: a traceback, a signal, too much
time or memory, an output in spite of an error, a control character, an error of several lines, a valid file that is
refused, and an invalid value (such as a number of 5,000 digits) that changes the result without any word.

Cases run in a process of their own, one after the other, and a process that hangs or ends is replaced. Kernels run as
plain Python (``SWFLOW_INTERPRET=1``), in which an invalid index is an error, and short periods take long.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import goodfiles
from damages import Damage, damage

#: Limits of a case: seconds of CPU, seconds of waiting, bytes, and characters of an error.
SECONDS, WAITING, MEMORY, LONGEST = 40.0, 120.0, 2 * 2**30, 500

#: Cases that share their valid files and the result of the undamaged command.
GROUP = 25


class Command(NamedTuple):
    """The words of a command, in which ``{name}`` is a file, and its inputs, of which one is damaged."""

    words: Sequence[str]
    inputs: Sequence[str]
    output: str = ""
    status: int = 0  # that of the undamaged files


def _commands() -> list[Command]:
    made = "-o", "out.parquet"
    on_logs = [
        ("clean", "{0}", *made), ("clean", "{0}", "--lenient", "-o", "out.swf"), ("check", "{0}"),
        ("simulate", "{0}", "--backfill", "easy", *made), ("export", "{0}", "-o", "out.csv"),
        ("fidelity", "{0}", "--scheduler", "easy"), ("bound", "{0}"), ("whatif", "{0}", "--scheduler", "sjf"),
    ]  # fmt: skip
    commands = []
    for words in on_logs:
        for name in ("my.swf", "log.parquet", "workload.parquet", "my.swf.gz"):
            if words[0] == "clean" and name == "workload.parquet":
                continue
            filled = [word.replace("{0}", name) for word in words]
            commands.append(Command(filled, [name], filled[-1] if "-o" in filled else ""))
    commands += [Command(("check", name), [name]) for name in ("sacct.txt", "sacct.json", "jobcomp.txt")]
    for kind, name in (("sacct", "sacct.txt"), ("sacct", "sacct.json"), ("sacct", "jobcomp.txt"), ("pbs", "pbs.txt"),
                       ("gwf", "my.gwf")):  # fmt: skip
        commands += [Command(("import", kind, name, *made), [name], "out.parquet")] * 3
    commands += [
        Command(("import", "sacct", "sacct.txt", "--anonymize", "--key", "key", "-o", "out.swf"), ["sacct.txt", "key"],
                "out.swf"),
        *[Command(("import", "csv", "jobs.csv", "--columns", "columns.yaml", *made), ["jobs.csv", "columns.yaml"],
                  "out.parquet")] * 3,
        Command(("import", "csv", "jobs.parquet", "--columns", "columns.yaml", *made), ["jobs.parquet"], "out.parquet"),
        *[Command(("import", "site", "slurm.conf", "--qos", "qos.txt", "--associations", "assoc.txt", "--reservations",
                   "res.txt", "--usage", "usage.txt", "-o", "out.yaml"),
                  ["slurm.conf", "slurm.conf", "qos.txt", "assoc.txt", "res.txt", "usage.txt"], "out.yaml")] * 5,
        *[Command(("#squeue", name), [name]) for name in ("squeue.txt", "squeue.json")] * 2,
        *[Command(("fetch", name, "--catalogue", "logs.yaml", "-o", "out.swf.gz"), ["logs.yaml"], "out.swf.gz")
          for name in ("mine", "mine")],
        Command(("fetch", "mine", "--catalogue", "logs.yaml", "-o", "out.swf.gz"), ["my.swf"], "out.swf.gz"),
        *[Command(("simulate", "workload.parquet", "--scheduler", "site.yaml"), ["site.yaml"])] * 2,
        *[Command(("simulate", "workload.parquet", "--scheduler", "{scheduler}"), ["scheduler"])]
        * 3,
        Command(("memory", "workload.parquet", "--file", "demands.txt", *made), ["demands.txt"], "out.parquet"),
        Command(("memory", "workload.parquet", "--high", "1", *made), ["workload.parquet"], "out.parquet"),
        Command(("select", "workload.parquet", "--jobs", "10", *made), ["workload.parquet"], "out.parquet"),
        Command(("scale", "workload.parquet", "--processors", "128", *made), ["workload.parquet"], "out.parquet"),
        Command(("moldable", "workload.parquet", *made), ["workload.parquet"], "out.parquet"),
        Command(("bound", "workload.parquet", "--run", "run.parquet"), ["run.parquet"]),
        *[Command(("export", "run.parquet", "--workload", "workload.parquet", "-o", f"out.{ending}"), ["run.parquet"],
                  f"out.{ending}") for ending in ("csv", "swf")],
        Command(("load", "run.parquet", "--database", "out.duckdb"), ["run.parquet"], "out.duckdb"),
        Command(("conformance", "--policy", "fcfs", "--timeout", "1", "--command", "cat starts.txt"),
                ["starts.txt"], status=1),
        *[Command(("simulate", "workload.parquet", "--backfill", "easy", option, "{number}", *made), ["number"],
                  "out.parquet", status=-1)
          for option in ("--processors", "--reservations", "--seed", "--max-queued")],
        *[Command((*words, "{number}", *made), ["number"], "out.parquet", status=-1)
          for words in (("clean", "my.swf", "--machine-processors"), ("clean", "my.swf", "--machine-nodes"),
                        ("clean", "my.swf", "--from"), ("clean", "my.swf", "--without-status"),
                        ("select", "workload.parquet", "--jobs"), ("intensify", "workload.parquet", "--factor"),
                        ("import", "sacct", "sacct.txt", "--processors"), ("generate", "lublin", "--load"),
                        ("import", "sacct", "sacct.txt", "--cpus-per-processor"), ("generate", "lublin", "--seed"),
                        ("memory", "workload.parquet", "--high"), ("memory", "workload.parquet", "--seed"))],
    ]  # fmt: skip
    return commands


COMMANDS = _commands()

# --- running a case ---------------------------------------------------------------------------------------


class Result(NamedTuple):
    """The result of a command: exit status, text on standard output and error, and a hash of its output."""

    status: int
    printed: str
    said: str
    output: str
    trace: str


def run(words: Sequence[str], output: str, folder: Path) -> Result:
    """Run a command in this process."""
    from swflow.cli import main

    target = folder / output
    if output and target.exists():
        target.unlink()
    files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]  # noqa: SIM115 (closed below)
    saved = [os.dup(1), os.dup(2)]
    trace, status = "", 0
    sys.stdout.flush()
    for number, file in enumerate(files, 1):
        os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            os.fdopen(os.dup(number), "wb"), encoding="utf-8", errors="surrogateescape", write_through=True
        )
        for number in (1, 2)
    )
    try:
        if words[0] == "#squeue":
            from swflow.errors import SwflowError, one_line
            from swflow.forecast.squeue import read_squeue

            try:
                for job in read_squeue(Path(words[1])):
                    print(repr(job))
            except SwflowError as error:
                status = 1
                print(f"swflow: {one_line(str(error))}", file=sys.stderr)
        else:
            main(list(words))
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
    except BaseException:
        trace = traceback.format_exc()
    finally:
        sys.stdout.close()
        sys.stderr.close()
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        for number, descriptor in enumerate(saved, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)
    texts = []
    for file in files:
        file.seek(0)
        texts.append(file.read().decode("utf-8", "surrogateescape"))
        file.close()
    return Result(status, *texts, _content(target) if output else "", trace)


def _content(file: Path) -> str:
    """Return a hash of a file's content; of a Parquet file that of its table. Empty if there is none."""
    if not file.exists():
        return ""
    if file.suffix == ".duckdb":
        return "a database"  # without identical bytes
    content = file.read_bytes()
    if file.suffix == ".parquet":
        import polars as pl

        content = repr(pl.read_parquet(file).to_dict(as_series=False)).encode()
    return hashlib.blake2b(content).hexdigest()


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]")


def faults(result: Result, good: Result, damaged: Damage) -> Iterator[str]:
    """Yield what a command did wrong."""
    if result.trace:
        yield "traceback: " + result.trace.strip().splitlines()[-1][:200]
        return
    if "Traceback (most recent call last)" in result.said or "panicked at" in result.said:
        yield "traceback on standard error: " + result.said.strip().splitlines()[-1][:200]
    if result.status not in (0, 1, 2, good.status):
        yield f"exit status {result.status}"
    if found := _CONTROL.search(result.printed + result.said):
        yield f"control character {found[0]!r}"
    errors = [line for line in result.said.splitlines() if line.startswith("swflow: ")]
    if result.status and result.status != good.status:
        if len(errors) != 1 or not result.said.endswith(f"{errors[0]}\n"):
            yield f"{len(errors)} lines of errors: {result.said[-200:]!r}"
        elif len(errors[0]) > LONGEST + len("swflow: "):
            yield f"an error of {len(errors[0])} characters"
        if result.output:
            yield "an output in spite of an error"
    is_silent = (result.printed, result.said) == (good.printed, good.said)
    if result.status == 0 and damaged.must_note and result.output != good.output and is_silent:
        yield "another result without a note"


def _write_good(folder: Path, rng: random.Random, needed: Sequence[str]) -> None:
    """Write a file of every text format, and those of the other formats that are needed."""
    import gzip

    import polars as pl

    goodfiles.write_all(folder, rng)
    (folder / "my.swf.gz").write_bytes(gzip.compress((folder / "my.swf").read_bytes()))
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n")
    (folder / "number").write_text("8")
    pl.read_csv(folder / "jobs.csv", infer_schema=False).with_columns(
        pl.col("submitted").str.to_datetime(), pl.col("waited", "seconds", "cpus").cast(pl.Int64)
    ).write_parquet(folder / "jobs.parquet")
    for words, output, is_needed in (
        (("import", "sacct", "sacct.txt", "-o", "log.parquet"), "log.parquet", "log.parquet" in needed),
        (("clean", "my.swf", "-o", "workload.parquet"), "workload.parquet",
         not {"workload.parquet", "run.parquet"}.isdisjoint(needed)),
        (("simulate", "workload.parquet", "--backfill", "easy", "-o", "run.parquet"), "run.parquet",
         "run.parquet" in needed),
    ):  # fmt: skip
        if not is_needed:
            continue
        result = run(words, output, folder)
        if result.status or result.trace:
            raise RuntimeError(f"{words}: {result.said}{result.trace}")


def filled(command: Command, folder: Path) -> list[str]:
    """Return the words of a command with the contents of the files that are options."""
    values = {}
    for name in ("scheduler", "number"):
        with contextlib.suppress(OSError):
            values[name] = os.fsdecode((folder / name).read_bytes()[:50_000]).replace("\0", "")
    return [values.get(word[1:-1], word) if word.startswith("{") else word for word in command.words]


class Case(NamedTuple):
    """A case: its command, the damaged file, and what was done to it."""

    command: Command
    name: str
    damaged: Damage


def work(seed: int, numbers: Sequence[int], folder: Path, report: Any) -> None:
    """Run cases one after the other in this process, and report each as a line of JSON before and after it."""
    group, good = -1, None
    restore: Callable[[], None] | None = None
    for number in numbers:
        if number // GROUP != group:
            group, rng = number // GROUP, random.Random(f"{seed}:{number // GROUP}")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            os.chdir(folder)
            report({"case": number, "begin": "valid files"})
            command = rng.choice(COMMANDS)
            _write_good(folder, rng, command.words)
            good = run(filled(command, folder), command.output, folder)
            if good.trace or (command.status >= 0 and good.status != command.status):
                report({"case": number, "fault": "valid files refused: " + (good.trace or good.said)[-300:],
                        "words": command.words})  # fmt: skip
                group = -1
                continue
        elif restore is not None:
            restore()
        assert good is not None
        rng = random.Random(f"{seed}:{number}:damage")
        name = rng.choice(list(command.inputs))
        file, kept = folder / name, (folder / name).read_bytes()
        damaged = damage(file, rng)
        report({"case": number, "begin": f"{' '.join(command.words)}: {name}: {damaged.what}"})
        result = run(filled(command, folder), command.output, folder)
        found = list(faults(result, good, damaged))
        report({"case": number, "end": result.status, "faults": found, "what": damaged.what, "file": name,
                "words": list(command.words), "said": result.said[-700:], "trace": result.trace[-1500:]})  # fmt: skip
        restore = partial(_restore, file, kept)


def _restore(file: Path, content: bytes) -> None:
    """Put the valid content of a file back."""
    if file.is_dir() and not file.is_symlink():
        file.rmdir()
    else:
        file.unlink(missing_ok=True)
    file.write_bytes(content)


class Worker:
    """A process that runs cases; it is replaced when it hangs, ends or needs too much memory."""

    def __init__(self, seed: int, numbers: Sequence[int], folder: Path) -> None:
        self.seed, self.numbers, self.folder = seed, list(numbers), folder
        self._start()

    def _start(self) -> None:
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            status = 1
            try:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
                os.environ |= {"SWFLOW_INTERPRET": "1", "SWFLOW_CACHE": str(self.folder.parent / "cache"),
                               "POLARS_MAX_THREADS": "1"}  # fmt: skip
                work(self.seed, self.numbers, self.folder,
                     lambda line: os.write(write, json.dumps(line).encode() + b"\n"))  # fmt: skip
                status = 0
            except BaseException:
                os.write(write, json.dumps({"broken": traceback.format_exc()}).encode() + b"\n")
            finally:
                os._exit(status)
        os.close(write)
        os.set_blocking(read, False)
        self.lines, self.rest = read, b""
        self.case, self.what, self.since, self.cpu = self.numbers[0], "start", time.monotonic(), _cpu(self.pid)

    def poll(self) -> Iterator[dict[str, Any]]:
        """Yield the new results of cases; replace the process if it must."""
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self.lines, 1 << 16):
                self.rest += block
        *lines, self.rest = self.rest.split(b"\n")
        for line in map(json.loads, lines):
            if "begin" in line:
                self.case, self.what, self.since = line["case"], line["begin"], time.monotonic()
                self.cpu = _cpu(self.pid)
                continue
            yield line
            if "broken" not in line:
                self.numbers = [number for number in self.numbers if number > line["case"]]
        if self.is_done:
            return  # to wait for process 0 is to wait for any
        reason = ""
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if ended:
            self.pid = 0
            if status and self.numbers:
                code = os.waitstatus_to_exitcode(status)
                reason = f"ended with {signal.Signals(-code).name if code < 0 else code}"
        elif _cpu(self.pid) - self.cpu > SECONDS or time.monotonic() - self.since > WAITING:
            reason = f"more than {SECONDS:g} s"
        elif _memory(self.pid) > MEMORY:
            reason = "more than 2 GB"
        if reason:
            if self.pid:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            yield {"case": self.case, "end": -1, "faults": [reason], "what": self.what, "words": [], "said": "",
                   "file": "", "trace": ""}  # fmt: skip
            self.numbers = [number for number in self.numbers if number > self.case]
            os.close(self.lines)
            if self.numbers:
                self._start()
            else:
                self.pid = 0

    @property
    def is_done(self) -> bool:
        """Whether all cases are done."""
        return self.pid == 0


def _cpu(pid: int) -> float:
    """Return the CPU time of a process, seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    """Return the memory of a process, bytes."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+)", text)
    return 1024 * int(found[1]) if found else 0


def mangle(seed: int, numbers: Sequence[int], folder: Path, workers: int = 1) -> Iterator[dict[str, Any]]:
    """Run cases, and yield the result of each."""
    import typer.main

    from swflow.cli import application

    application()  # imports all commands, so that forks need not
    typer.main.get_command = cache(typer.main.get_command)  # half of the time is the creation of options
    groups = sorted({number // GROUP for number in numbers})
    parts = [[n for n in numbers if groups.index(n // GROUP) % workers == part] for part in range(workers)]
    pool = [Worker(seed, part, folder / f"worker-{place}") for place, part in enumerate(parts) if part]
    while True:
        for worker in pool:
            yield from worker.poll()
        if all(worker.is_done for worker in pool):
            return
        time.sleep(0.02)


def main() -> None:
    """Run cases and print the violations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--case", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    numbers = [given.case] if given.case is not None else range(given.first, given.first + given.cases)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        for result in mangle(given.seed, numbers, given.keep or Path(temporary), given.workers):
            if "broken" in result:
                print("BROKEN", result["broken"], flush=True)
                continue
            if "fault" in result:
                result |= {"faults": [result["fault"]], "what": "", "file": "", "said": "", "trace": "", "end": -1}
            counts["succeeded" if result["end"] == 0 else "refused" if result["end"] > 0 else "violation"] += 1
            for fault in result["faults"]:
                kinds[re.sub(r"\d+", "N", fault)[:60]] += 1
                print(f"case {result['case']}: {fault}\n    {' '.join(result['words'])}", flush=True)
                print(f"    {result['file']}: {result['what']}", flush=True)
            if given.case is not None:
                print(json.dumps(result, indent=1).replace("\\n", "\n"))
    print(f"{sum(counts.values()):,} cases in {time.monotonic() - begin:.0f} s: {dict(counts)}")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    raise SystemExit(bool(kinds))


if __name__ == "__main__":
    main()
