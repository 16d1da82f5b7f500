"""Runs the examples of the documentation, compares what they print, and writes their outputs anew.

`python docs/examples.py [PAGE …]` runs the pages and puts what came out into them; the tests only compare.
A page runs in a folder of its own, from top to bottom. If it says `<!-- examples: project -->` it runs in the folder
that `swflow init` makes, after its workflow has been made. `<!-- not run: REASON -->` exempts the block that follows.

What is run: `console` (commands after `$`, and what they print), `sh` (commands), `python`, and `sql` with the `text`
that follows it. Parts of configs in `yaml` are checked against the schema.
"""

import contextlib
import io
import json
import os
import re
import shlex
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
_FENCE = re.compile(r"^(`{3,}) ?(\w*).*$")
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclass
class Block:
    """A fenced block of a page: its language, its lines, and the number of its first line."""

    kind: str
    lines: list[str]
    first: int
    reason: str | None = None


def pages() -> list[Path]:
    """Return the pages that are written by hand, and the README."""
    return [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "config/README.md"]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    found: list[Block] = []
    fence, reason = None, None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines()):
        match = _FENCE.match(line.strip())
        if fence is None and match:
            fence = match[1]
            found.append(Block(match[2], [], number + 1, reason))
        elif fence is not None and line.strip() == fence:
            fence, reason = None, None
        elif fence is not None:
            found[-1].lines.append(line)
        elif line.strip():
            excuse = _NOT_RUN.match(line.strip())
            reason = excuse[1] if excuse else None
    return found


def in_project(page: Path) -> bool:
    """Return whether a page's examples run in the project that `swflow init` makes."""
    return "<!-- examples: project -->" in page.read_text(encoding="utf-8")


def make_project(folder: Path) -> None:
    """Make what `swflow init demo` and its workflow make, but for figures and report, in one process."""
    from swflow.project import init
    from swflow.runs import scheduler_options
    from swflow.scheduling.scheduler import Scheduler

    init(folder)
    config = yaml.safe_load((folder / "config/config.yaml").read_text())
    log = yaml.safe_load((folder / "config/my-logs.yaml").read_text())["example"]
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        _swflow(
            f"generate lublin -o results/logs/example.swf.gz --name example --processors {log['processors']} "
            f"--jobs {log['jobs']} --load {log['load']} --users --seed {config['seed']}"
        )
        _swflow("clean results/logs/example.swf.gz -o results/workloads/example.parquet")
        _swflow("select results/workloads/example.parquet -o results/workloads/example+short.parquet", "--where",
                config["steps"]["short"]["where"])  # fmt: skip
        for group in config["studies"]["backfilling"]["runs"]:
            for template in group["workloads"]:
                workload = template.replace("{log}", "example")
                named = []
                for name in group["schedulers"]:
                    options = Scheduler.of(name, scheduler_options(name, config["schedulers"])).to_dict()
                    named += ["--scheduler", f"{name}={json.dumps(options)}"]
                _swflow(f"simulate results/workloads/{workload}.parquet -o results/runs/{workload}", *named)
        _swflow("load results/runs/example results/runs/example+short")


def run_page(page: Path, folder: Path) -> list[tuple[Block, list[str]]]:
    """
    Run the examples of a page.

    Returns
    -------
    list of (Block, list of str)
        Every block that says what is printed, and what it should say.
    """
    results = []
    names: dict[str, Any] = {}
    found = blocks(page)
    with contextlib.chdir(folder):
        for block, following in zip(found, [*found[1:], None], strict=True):
            if block.reason:
                continue
            try:
                if block.kind == "console":
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


def rewrite(page: Path, results: list[tuple[Block, list[str]]]) -> None:
    """Put what was printed into a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block, printed in sorted(results, key=lambda item: -item[0].first):
        lines[block.first : block.first + len(block.lines)] = printed
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _console(lines: list[str]) -> Iterator[str]:
    """Give a console block again, with what its commands print now."""
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
    """Leave out of what is printed what the page leaves out by a line of three dots."""
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
    """Give the commands of a script, each whole."""
    script = ""
    for line in lines:
        script = f"{script}\n{line}" if script else line
        if _complete(script):
            if shlex.split(script, comments=True):
                yield script
            script = ""
    if script:
        raise AssertionError(f"not complete: {script}")


def _run(command: str) -> list[str]:
    """Run a command, `swflow` in this process, and return what it prints; AssertionError if it fails."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    plain = words[0] == "swflow" and not {"&&", "|", ">", "--csv"} & set(words)
    if plain:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            status = _swflow_status(words[1:])
        printed = out.getvalue()
    else:
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
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
    """Run a query on the database of this folder, and return the table as it is printed."""
    database = next(iter([*Path("results").glob("*.duckdb"), *Path().glob("*.duckdb")]), None)
    if database is None:
        raise AssertionError("there is no database to ask")
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = _swflow_status(["sql", statement, "--database", str(database)])
    if status:
        raise AssertionError(err.getvalue())
    return out.getvalue().splitlines()


def _check_config(text: str) -> None:
    """Check the parts of a config that a block shows against the schema."""
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
    """Run pages and write their outputs anew."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    with tempfile.TemporaryDirectory() as name:
        project = Path(name) / "demo"
        if any(in_project(page) for page in chosen):
            make_project(project)
        for page in chosen:
            folder = project if in_project(page) else Path(tempfile.mkdtemp(dir=name))
            rewrite(page, run_page(page, folder))
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
