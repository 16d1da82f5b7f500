"""Tests of code fingerprints: they cover every module and data file that a command uses, and are cached."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest
import yaml

import swflow.files.fingerprint as fingerprints
from swflow.files.fingerprint import PACKAGE, Package, installed, source_digest

ROOT = Path(__file__).parents[2]
EASY = '--scheduler=easy={"backfill": "easy"}'

#: The commands of the workflow, in an order in which each finds its input.
COMMANDS = {
    "generate_lublin": "generate lublin -o a.swf.gz --jobs 60 --processors 16",
    "fetch": "fetch A -o fetched/A.swf.gz --catalogue logs.yaml",
    "reach": "reach A -o reached/reached.json --catalogue logs.yaml",
    "clean": "clean a.swf.gz -o A.parquet",
    "select": "select A.parquet -o A+s.parquet --jobs 50",
    "machine": "machine A.parquet -o A+n.parquet --processors 32",
    "memory": "memory A.parquet -o A+m.parquet --high 0.5 --low 0.5",
    "moldable": "moldable A.parquet -o A+f.parquet",
    "model": "model A.parquet -o A+l.parquet --components 1",
    "scale": "scale A.parquet -o A+w.parquet --processors 32",
    "intensify": "intensify A.parquet -o A+i.parquet --factor 2",
    "replicate": "replicate moldable -o A+f@1-2.parquet",
    "simulate": ["simulate", "A.parquet", "-o", "runs/A", EASY, "--scheduler=log={}",
                 '--scheduler=fcfs={"backfill": "none"}'],
    "sweep": ["sweep", "A.parquet", "-o", "A+d.parquet", "--processors=32", "--d=50", "--seeds=1", EASY],
    "adjust": ["adjust", "A.parquet", "-o", "A+e.parquet", "--processors=32", "--seeds=1", "--tolerance=1", EASY],
    "whatif": "whatif A.parquet --scheduler easy --processors +50% -o w.html -o w.csv -o w.parquet",
    "forecast": "forecast polls.parquet --evaluate --weeks 2 -o e.parquet -o e.csv",
    "bound": "bound A.parquet -o b.parquet",
    "prune": "prune keep.json",
    "why": "why A.parquet --run runs/A -o r.parquet",
    "load": "load runs/A A+d.parquet w.parquet b.parquet r.parquet --database d.duckdb",
    "figures": "figures plan.json --database d.duckdb -o figures",
    "report": "report figures/one/f.json --no-draw --database d.duckdb -o report",
    "sql": ["sql", "SELECT * FROM metrics", "--csv", "m.csv", "--database", "d.duckdb"],
}  # fmt: skip

#: Run each command in a fork that has only imported other packages; write the modules that it loads, and files opened.
TRACED = """
import json, os, sys
import duckdb, numba, polars, scipy.stats
assert "swflow" not in sys.modules
for name, words in json.load(open("commands.json")).items():
    if os.fork():
        os.wait()
        continue
    opened = set()
    sys.addaudithook(lambda event, about: opened.add(str(about[0])) if event == "open" else None)
    from swflow.cli import main
    try:
        main(words)
    except SystemExit as end:
        status = end.code
    loaded = sorted(name for name in sys.modules if name.split(".")[0] == "swflow")
    with open(f"{name}.trace", "w") as file:
        json.dump([status, loaded, sorted(opened)], file)
    sys.stdout.flush()
    os._exit(0)
"""


def traced(folder: Path, commands: dict[str, list[str]]) -> dict[str, tuple[set[str], set[Path]]]:
    """Run commands; return the loaded modules of the package and the opened data files of each."""
    (folder / "commands.json").write_text(json.dumps(commands))
    done = subprocess.run([sys.executable, "-c", TRACED], cwd=folder, capture_output=True, text=True)
    found = {}
    for name in commands:
        trace = folder / f"{name}.trace"
        status, loaded, opened = json.loads(trace.read_text()) if trace.is_file() else (1, [], [])
        assert status == 0, done.stderr
        data = {Path(file) for file in opened if Path(file).is_relative_to(PACKAGE)}
        found[name] = set(loaded), {file for file in data if file.is_file() and file.suffix not in (".py", ".pyc")}
    return found


@pytest.fixture(scope="module")
def traces_of_commands(tmp_path_factory):
    """Run every command of the workflow on a tiny log."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "logs.yaml").write_text(f"A: {{url: 'file://{folder}/a.swf.gz', processors: 16}}\n")
    polls = [(day * 86400.0, 60.0 + day % 7, 1 + day % 3) for day in range(70) for _ in range(20)]
    table = pl.DataFrame(polls, ["poll_time", "poll_wait_sec", "req_cpus"], orient="row")
    table.write_parquet(folder / "polls.parquet")
    plan = {"one/A": {"one/f": {"kind": "heatmap", "log": "A", "title": "A", "runs": ["A/easy"], "split": []}}}
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "keep.json").write_text(json.dumps({"files": []}))
    return traced(folder, {name: one.split() if isinstance(one, str) else one for name, one in COMMANDS.items()})


def test_all_commands_of_the_workflow_are_traced():
    rules = "".join(path.read_text() for path in (ROOT / "workflow").rglob("*.smk"))
    kinds = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())["properties"]["steps"]
    called = {*re.findall(r'"swflow (\w+)', rules), *re.findall(r'fingerprint\("(\w+)"\)', rules)}
    called |= {*kinds["additionalProperties"]["properties"]["kind"]["enum"], "sweep", "adjust"}
    assert called - {"generate"} <= COMMANDS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_fingerprint_contains_every_module_and_file_that_is_used(traces_of_commands, command):
    loaded, opened = traces_of_commands[command]
    behind = installed().modules_behind(*(("replicate", "moldable") if command == "replicate" else (command,)))
    assert loaded - behind == set()
    counted = {file for module in behind for file in installed()._data_of(module)}
    assert opened - counted == set()


def test_a_fingerprint_of_a_plugin_contains_every_module_that_it_loads(tmp_path):
    (tmp_path / "mine.py").write_text("from swflow.policies import Easy\n\n\nclass Mine(Easy):\n    pass\n")
    script = "import sys, mine; print(*(name for name in sys.modules if name.startswith('swflow')))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    package = installed()
    imported = package.imported(fingerprints.read_source(tmp_path / "mine.py").imports)
    behind = package.closure(package.closure(imported), loaded=True)
    assert set(done.stdout.split()) - behind == set()
    assert source_digest("Mine", tmp_path / "mine.py") != source_digest("Easy", tmp_path / "mine.py")


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Copy the package, with a separate cache."""
    folder = tmp_path_factory.mktemp("package") / "swflow"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWFLOW_CACHE", str(folder.parent / "cache"))
        for path in folder.rglob("*"):
            os.utime(path, (1_000_000_000, 1_000_000_000))
        yield folder


SOME = ("fetch", "clean", "select", "generate_lublin", "simulate", "load", "report")


def changed_by(package: Path, file: str, old: str, new: str, commands: tuple[str, ...] = SOME) -> set[str]:
    """Return the commands whose fingerprint an edit changes."""
    before = {command: Package(package).fingerprint(command) for command in commands}
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new))
    after = {command: Package(package).fingerprint(command) for command in commands}
    (package / file).write_text(text)
    return {command for command in commands if before[command] != after[command]}


@pytest.mark.slow
def test_a_fingerprint_counts_what_a_command_runs(copied):
    fast = "scheduling/engine/fast_easy.py"
    edit = "shadow = work.planned_ends[place]", "shadow = 0.0 + work.planned_ends[place]"
    words = (copied / fast).read_text().split('"""')[1]
    assert changed_by(copied, fast, words, "Other words.") == set()
    assert changed_by(copied, fast, "\nimport ", "\n# a comment\nimport ") == set()
    assert changed_by(copied, fast, *edit) >= {"simulate"}
    assert not {"fetch", "clean", "select", "report"} & changed_by(copied, fast, *edit)
    assert changed_by(copied, "report/site/page.html", "swflow report", "our report") == {"report"}
    assert changed_by(copied, "log/fetch.py", "BACK_OFF = 0.3", "BACK_OFF = 0.4") == {"fetch"}
    assert changed_by(copied, "cli/steps.py", "select_jobs(", "select_jobs(*(), ") == {"select"}
    assert "load" in changed_by(copied, "papers/krakov_2012_table_1.csv", "0.55", "0.56")
    assert changed_by(copied, "cli/options.py", "The seed of all", "The seed of the") == set()
    assert "generate_lublin" in changed_by(copied, "cli/options.py", "Seed = Annotated[int", "Seed = Annotated[float")
    assert changed_by(copied, "scheduling/__init__.py", '"""', 'HERE = 1\n"""', ("simulate", "select")) >= {"simulate"}


def test_an_import_at_the_top_of_a_command_file_counts(copied):
    """Moving an import out of a function removed its module from the fingerprint, so that edits of it had no effect."""
    steps = copied / "cli/steps.py"
    text = steps.read_text()
    inside = "from swflow.workload.steps.select import select as select_jobs\n"
    first = "from swflow.errors import"
    assert f"    {inside}" in text
    try:
        steps.write_text(text.replace(f"    {inside}", "").replace(first, f"{inside}{first}"))
        assert "select" in changed_by(copied, "workload/steps/select.py", "def select(", "PART = 1\n\n\ndef select(")
        assert "swflow.workload.steps.select" in Package(copied).modules_behind("select")
    finally:
        steps.write_text(text)


def test_functions_of_one_name_in_two_command_files_both_count(copied):
    files = {"one": "cli/steps.py", "two": "cli/results.py"}
    texts = {command: (copied / file).read_text() for command, file in files.items()}
    try:
        for command, file in files.items():
            added = f"\n\ndef _shared():\n    return 1\n\n\n@app.command()\ndef {command}():\n    _shared()\n"
            (copied / file).write_text(texts[command] + added)
        for command, file in files.items():
            assert changed_by(copied, file, "return 1\n", "return 2\n", tuple(files)) == {command}
    finally:
        for command, file in files.items():
            (copied / file).write_text(texts[command])


@pytest.mark.slow
def test_parsed_files_are_kept_between_calls_and_a_damaged_cache_is_ignored(copied, monkeypatch, tmp_path):
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path))
    monkeypatch.setattr(fingerprints, "_JUST_WRITTEN", -1)
    seen = []
    original = fingerprints.read_source
    monkeypatch.setattr(fingerprints, "read_source", lambda path, cli=False: seen.append(path) or original(path, cli))

    def fingerprints_of_all() -> tuple[list[str], list[Path]]:
        seen.clear()
        package = Package(copied)
        return [package.fingerprint(command) for command in SOME], sorted(seen)

    expected, parsed = fingerprints_of_all()
    assert len(parsed) == len(set(parsed)) > 50  # each module once
    assert fingerprints_of_all() == (expected, [])
    (cache,) = tmp_path.glob("sources/*.json")
    content = cache.read_bytes()
    head, _, text = content.partition(b"\n")
    wrong = text.replace(b"swflow.", b"swflou.", 1)
    for damaged in (
        b"",
        content[:-40],
        b"{}",
        b"\xff\n{}",
        head + b"\n" + wrong,
        bytes([content[0] ^ 1]) + content[1:],
    ):
        cache.write_bytes(damaged)
        assert fingerprints_of_all() == (expected, parsed)
    cache.unlink()
    cache.mkdir()  # the cache is not writable
    assert fingerprints_of_all() == (expected, parsed)


def test_an_edit_that_keeps_size_and_time_is_noticed(copied, monkeypatch, tmp_path):
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path))
    file = copied / "workload/steps/select.py"
    text = file.read_text()
    before = Package(copied).fingerprint("select")
    edited = text.replace("def select(", "def slect1(")
    assert len(edited) == len(text)
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    try:
        file.write_text(edited)
        os.utime(file, ns=times)
        assert Package(copied).fingerprint("select") != before
    finally:
        file.write_text(text)
        os.utime(file, ns=times)
    assert Package(copied).fingerprint("select") == before


def test_a_syntax_tree_is_read_as_python_runs_it(tmp_path):
    package = tmp_path / "mine"
    (package / "cli").mkdir(parents=True)
    sources = {
        "__init__.py": "", "cli/__init__.py": "from mine.cli import one\n",
        "cli/one.py": """
            from typing import TYPE_CHECKING
            from mine import a
            if TYPE_CHECKING:
                from mine import never
            @app.command()
            def run(say=a.x):
                [say for say in ()]
                helper()
            def helper():
                from .. import b
            """,
        "a.py": "import typing\nif typing.TYPE_CHECKING:\n    import mine.never\nelse:\n    import mine.c\n",
        "b.py": "from .d import x\n", "c.py": "", "d.py": "", "never.py": "",
    }  # fmt: skip
    for name, text in sources.items():
        (package / name).write_text(textwrap.dedent(text))
    behind = Package(package).modules_behind("run")
    assert behind == {"mine", "mine.cli", "mine.cli.one", "mine.a", "mine.b", "mine.c", "mine.d"}
    with pytest.raises(KeyError):
        Package(package).fingerprint("walk")
