"""
Run the examples of the documentation, and compare or update their output.

`python docs/examples.py [PAGE …]` runs the pages and updates the output in them. The tests only compare it.
The examples of a page run from top to bottom in a folder that contains only the programs (`*.py`) of the page's folder.
With `<!-- examples: project -->`, they run in the project of `swflow init`, after its workflow. With
`<!-- examples: default -->`, they run beside the database of the default config, with `<!-- examples: clone -->`
beside the benchmarks of a clone, and with `<!-- examples: site -->` beside the files of a synthetic Slurm site, with
its `squeue`. `<!-- not run: REASON -->` excludes the next block; a reason that begins with a file of the repository
states what runs it instead.

Languages: `console` (commands after `$` and their output), `sh` (commands), `python`, and `sql` with the output in the
following `text` block. `yaml` blocks with parts of a config are checked against the schema. A block with a title, such
as `python title="mine.py"`, is written to this file instead.
"""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_FENCE = re.compile(r"^(`{3,}) ?(\w*)(?: title=\"([\w.-]+)\")?.*$")
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclass
class Block:
    """A fenced block: language, lines, number of its first line, why it is not run, and the file that it is."""

    kind: str
    lines: list[str]
    first: int
    reason: str | None = None
    file: str | None = None


def pages() -> list[Path]:
    """Return the hand-written pages and the README files."""
    return [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "config/README.md"]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    found: list[Block] = []
    fence, reason = None, None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines()):
        match = _FENCE.match(line.strip())
        if fence is None and match:
            fence = match[1]
            found.append(Block(match[2], [], number + 1, reason, match[3]))
        elif fence is not None and line.strip() == fence:
            fence, reason = None, None
        elif fence is not None:
            found[-1].lines.append(line)
        elif line.strip():
            excuse = _NOT_RUN.match(line.strip())
            reason = excuse[1] if excuse else None
    return found


def place_of(page: Path) -> str | None:
    """Return where a page's examples run: one of `PLACES`, or None for an empty folder."""
    found = re.search(r"<!-- examples: (\w+) -->", page.read_text(encoding="utf-8"))
    return found[1] if found else None


def make_project(folder: Path) -> None:
    """Build what `swflow init demo` and its workflow build, except for figures and report, in one process."""
    from swflow.studies.project import init

    init(folder)
    config = yaml.safe_load((folder / "config/config.yaml").read_text())
    logs = yaml.safe_load((folder / "config/my-logs.yaml").read_text())
    _make_runs(folder, config, "example", logs["example"])


def make_default(folder: Path) -> None:
    """Build the runs of one log of the embedded default, in one process."""
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    logs = yaml.safe_load((ROOT / "config/logs.yaml").read_text())
    folder.mkdir(parents=True)
    _make_runs(folder, config, "synthetic-128", logs["synthetic-128"])


def make_clone(folder: Path) -> None:
    """Link the benchmarks of a clone."""
    folder.mkdir(parents=True)
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")


def make_site(folder: Path) -> None:
    """Write the accounting, configuration and queue of a Slurm site of ten weeks, and a database of its log."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import other_simulator
    import truth_sites

    case = truth_sites.preempting(1200, 10, seed=1)
    folder.mkdir(parents=True)
    records = other_simulator.simulate(case.site, case.jobs)
    truth_sites.write_files(case, records, folder)
    (folder / "bin").mkdir()
    (folder / "bin/squeue").write_text(f"#!/bin/sh\ncat <<'END'\n{_queue(case.jobs[-1].submit)}\nEND\n")
    (folder / "bin/squeue").chmod(0o755)
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        tables = "--qos qos.txt --associations assoc.txt --nodes nodes.txt"
        _swflow(f"import site conf/slurm.conf {tables} -o site.yaml")
        _swflow("import sacct sacct.txt -o site.parquet --processors 2432")
        _swflow("simulate site.parquet -o runs --scheduler easy --scheduler fcfs")
        _swflow("load runs --database site.duckdb")


def _queue(latest: int) -> str:
    """Return what ``squeue --json`` prints for a site whose latest job was submitted at second ``latest``."""
    import truth_sites

    now = int(truth_sites.BEGAN.timestamp()) + latest
    shapes = [("cpu", "RUNNING", 64, 1440), ("cpu", "PENDING", 512, 720), ("gpu", "PENDING", 32, 480)]
    jobs = [
        {"job_id": 9000 + place, "job_state": [state], "state_reason": "None" if state == "RUNNING" else "Resources",
         "partition": partition, "user_name": "u1n", "account": "lab", "qos": "normal", "cpus": cpus,
         "node_count": max(1, cpus // 32), "time_limit": minutes, "submit_time": now - 600,
         "start_time": now - 600 if state == "RUNNING" else 0, "eligible_time": now - 600}
        for place, (partition, state, cpus, minutes) in enumerate(shapes)
    ]  # fmt: skip
    return json.dumps({"jobs": jobs})


#: The folders in which examples of pages run, and the functions that build them.
PLACES = {"project": make_project, "default": make_default, "clone": make_clone, "site": make_site}


def _make_runs(folder: Path, config: dict[str, Any], log: str, entry: dict[str, Any]) -> None:
    """Build the runs of study ``backfilling`` for a synthetic log, and load them into a database."""
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.asked import scheduler_pairs
    from swflow.studies.plan import with_titles

    study, given = config["studies"]["backfilling"], with_titles(config)["schedulers"]
    schedulers = {name: Scheduler.of(name, options).to_dict() for name, options in given.items()}
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        options = {name: value for name, value in entry.items() if name not in ("generate", "users")}
        _swflow(
            f"generate lublin -o results/logs/{log}.swf.gz --name {log} --seed {config['seed']}",
            *(word for name, value in options.items() for word in (f"--{name}", str(value))),
            *(["--users"] if entry.get("users") else []),
        )
        _swflow(f"clean results/logs/{log}.swf.gz -o results/workloads/{log}.parquet")
        made = {log}
        pairs: list[tuple[str, str]] = []
        for group in study["runs"]:
            for template in group["workloads"]:
                workload = template.replace("{log}", log)
                if workload not in made:
                    where = config["steps"][workload.partition("+")[2]]["where"]
                    _swflow(f"select results/workloads/{log}.parquet -o results/workloads/{workload}.parquet",
                            "--where", where)  # fmt: skip
                    made.add(workload)
                named = []
                for name in group["schedulers"]:
                    named += ["--scheduler", f"{name}={json.dumps(schedulers[name])}"]
                jobs, runs = f"results/workloads/{workload}.parquet", f"results/runs/{workload}"
                _swflow(f"simulate {jobs} -o {runs}", *named)
                _swflow(f"why {jobs} --run {runs} -o results/wait_reasons/{workload}.parquet")
                compared = scheduler_pairs(
                    group["schedulers"], schedulers, study.get("baseline"), study.get("contrast")
                )
                pairs += [(f"{workload}/{variant}", f"{workload}/{base}") for variant, base in compared]
        places = ("results/runs/{}", "results/wait_reasons/{}.parquet")
        files = {place.format(workload): {"logs": []} for place in places for workload in sorted(made)}
        Path("plan.json").write_text(json.dumps({"files": files, "asked": {"backfilling": pairs}}))
        _swflow("load --plan plan.json")


def run_page(page: Path, folder: Path) -> list[tuple[Block, list[str]]]:
    """
    Run the examples of a page.

    Returns
    -------
    list of (Block, list of str)
        Each block with expected output, and the actual output.
    """
    results = []
    names: dict[str, Any] = {}
    found = blocks(page)
    for program in page.parent.glob("*.py"):
        shutil.copy(program, folder)
    with contextlib.chdir(folder), _columns(100):
        for block, following in zip(found, [*found, None][1:], strict=True):
            if block.reason:
                continue
            try:
                if block.file:
                    Path(block.file).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
                elif block.kind == "console":
                    results.append((block, list(_console(block.lines))))
                elif block.kind == "sh":
                    for command in _commands(block.lines):
                        _run(command)
                elif block.kind == "python":
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile("\n".join(block.lines), str(page), "exec"), names)
                elif block.kind == "sql":
                    printed = _query("\n".join(block.lines))
                    if following is not None and following.kind == "text":
                        results.append((following, printed))
                elif block.kind == "yaml":
                    _check_config("\n".join(block.lines))
            except Exception as error:
                raise AssertionError(f"{page}:{block.first}: {error}") from error
    return results


@contextlib.contextmanager
def _columns(count: int) -> Iterator[None]:
    """Set the width of printed tables and notes, so that they fit a page."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(count)
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


def rewrite(page: Path, results: list[tuple[Block, list[str]]]) -> None:
    """Update the output in a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block, printed in sorted(results, key=lambda item: -item[0].first):
        lines[block.first : block.first + len(block.lines)] = printed
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _console(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a console block with the current output."""
    script: list[str] = []
    place = 0
    while place < len(lines):
        if not lines[place].startswith("$ "):
            place += 1
            continue
        script = [lines[place][2:]]
        while not _complete("\n".join(script)):
            place += 1
            script.append(lines[place])
        yield f"$ {script[0]}"
        yield from script[1:]
        place += 1
        expected = place
        while place < len(lines) and not lines[place].startswith("$ "):
            place += 1
        for command in _commands(script):
            printed = _run(command)
            yield from _elided(lines[expected:place], printed)


def _elided(expected: list[str], printed: list[str]) -> list[str]:
    """Replace the lines that the page omits by `...`."""
    if "..." not in expected:
        return printed
    cut = expected.index("...")
    tail = len(expected) - cut - 1
    return [*printed[:cut], "...", *(printed[-tail:] if tail else [])]


def _complete(script: str) -> bool:
    if script.endswith("\\"):
        return False
    try:
        shlex.split(script, comments=True)
    except ValueError:
        return False
    return True


def _commands(lines: list[str]) -> Iterator[str]:
    """Yield the complete commands of a script."""
    script = ""
    for line in lines:
        script = f"{script}\n{line}" if script else line
        if _complete(script):
            if shlex.split(script, comments=True):
                yield script
            script = ""
    if script:
        raise AssertionError(f"incomplete command: {script}")


def _run(command: str) -> list[str]:
    """Run a command (`swflow` in this process) and return its output; raise AssertionError if it fails."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    # Only a shell expands patterns of file names.
    is_pattern = any(re.fullmatch(r"[\w.+/*-]*\*[\w.+/*-]*\.parquet", word) for word in words)
    plain = words[0] == "swflow" and not is_pattern and not {"&&", "|", ">", "--csv"} & set(words)
    if plain:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            status = _swflow_status(words[1:])
        printed = out.getvalue()
    else:
        folders = (str(Path.cwd() / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])
        environment = os.environ | {"PATH": os.pathsep.join(folders)}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip
        status, printed = done.returncode, done.stdout
    if status:
        raise AssertionError(f"{command}: exit status {status}: {printed}")
    return [line for line in printed.splitlines() if not line.endswith(" …")]


def _swflow(text: str, *more: str) -> None:
    if _swflow_status([*shlex.split(text), *more]):
        raise AssertionError(f"swflow {text}")


def _swflow_status(words: list[str]) -> int:
    from swflow.cli import main

    try:
        main(words)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _query(statement: str) -> list[str]:
    """Run a query on the database of the current folder and return the printed table."""
    database = next(iter([*Path("results").glob("*.duckdb"), *Path().glob("*.duckdb")]), None)
    if database is None:
        raise AssertionError("no database in the current folder")
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = _swflow_status(["sql", statement, "--database", str(database)])
    if status:
        raise AssertionError(err.getvalue())
    return out.getvalue().splitlines()


def _check_config(text: str) -> None:
    """Check a part of a config against the schema."""
    import jsonschema

    content = yaml.safe_load(text)
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    if not isinstance(content, dict) or not content.keys() & schema["properties"].keys():
        return
    parts = {"$defs": schema["$defs"], "properties": schema["properties"], "additionalProperties": False}
    for study in content.get("studies", {}).values():
        study.setdefault("logs", ["some"])
        study.setdefault("runs", [{"workloads": ["{log}"], "schedulers": ["log"]}])
    jsonschema.validate(content, parts)


def main() -> None:
    """Run pages and update their output."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    with tempfile.TemporaryDirectory() as name:
        made: dict[str, Path] = {}
        for page in chosen:
            place = place_of(page)
            folder = Path(name) / "demo" / place if place else Path(tempfile.mkdtemp(dir=name))
            if place and place not in made:
                PLACES[place](folder)
                made[place] = folder
            rewrite(page, run_page(page, folder))
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
