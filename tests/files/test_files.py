"""Tests of atomic writes after kills, and of one-line errors for unwritable files."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from swflow.errors import SwflowError, describe
from swflow.files.atomic import atomic_path, is_in_the_making

WRITE = """
import os, signal, sys
from swflow.files.atomic import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_while_writing(target: Path) -> None:
    """Kill another process while it writes a file."""
    subprocess.run([sys.executable, "-c", WRITE, str(target)], check=False)


def test_temporary_files_of_a_killed_command_are_removed_by_the_next_writer(tmp_path):
    kill_while_writing(tmp_path / "a.duckdb")
    left = list(tmp_path.iterdir())
    assert [path.suffix for path in left] == [".duckdb"] and is_in_the_making(left[0])
    Path(f"{left[0]}.wal").write_text("half")
    Path(f"{left[0]}.tmp").mkdir()
    with atomic_path(tmp_path / "b.txt") as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_temporary_files_of_a_running_process_stay(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as other:
        with atomic_path(tmp_path / "a.txt") as temporary:
            own = temporary.name.partition("@")[2]
            kept = {
                f".{other.pid}@{own}", f".{other.pid}.a.txt", f".{2**22 + 7}@elsewhere.a.txt", f".{2**22 + 7}.b.txt",
                ".5.hidden", "1@x.a.txt", f".0{2**22}@{own}",
            }  # fmt: skip
            for name in (*kept, f".{2**22 + 7}@{own}", f".{10**30}@{own}"):
                (tmp_path / name).write_text("half")
            temporary.write_text("whole")
        with atomic_path(tmp_path / "c.txt") as temporary:
            temporary.write_text("whole")
        other.kill()
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "a.txt", "c.txt"}


def test_names_have_the_maximum_length_of_the_system(tmp_path):
    for length in (255, 254, 240, 230):
        for letter in "xé":
            name = (letter * length).encode()[:length].decode(errors="ignore")
            with atomic_path(tmp_path / name) as temporary:
                temporary.write_text("whole")
            assert (tmp_path / name).read_text() == "whole"
    with (
        pytest.raises(SwflowError, match=r"x: cannot be written \(the name is too long; choose a shorter one"),
        atomic_path(tmp_path / ("x" * 256)) as temporary,
    ):
        temporary.write_text("whole")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("file/x", "a file with the name of the folder exists"),
        ("folder", "it is a folder; name a file"),
        ("file/x/y", "a part of its path is not a folder"),
    ],
)
def test_an_unwritable_file_is_an_error(tmp_path, target, words):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises((SwflowError, OSError)) as caught, atomic_path(tmp_path / target) as temporary:
        temporary.write_text("new")
    message = str(caught.value) if isinstance(caught.value, SwflowError) else describe(caught.value)
    assert words in message and str(tmp_path) in message
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def test_errors_in_the_block_are_not_reported_as_write_errors(tmp_path):
    for error in (FileNotFoundError(2, "No such file", str(tmp_path / "in")), KeyError("x"), SwflowError("x")):
        with pytest.raises(type(error)), atomic_path(tmp_path / "out"):
            raise error


LOG = "; MaxProcs: 8\n" + "".join(f"{job} {job} 0 9 4 -1 -1 4 9 -1 1 7 1 1 1 1 -1 -1\n" for job in range(1, 2000))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Create a folder with a workload, a run and a database."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "toy.swf").write_text(LOG)
    for command in (
        ["clean", "toy.swf", "-o", "toy.parquet"],
        ["simulate", "toy.parquet", "--scheduler", 'easy={"backfill": "easy"}', "-o", "runs"],
        ["load", "runs", "--database", "d.duckdb"],
        # compiles, as the next call does
        ["sweep", "toy.parquet", "--processors", "16", "--seeds", "1", "-o", "first.csv"],
        ["generate", "lublin", "--jobs", "500", "-o", "first.swf.gz"],
    ):
        assert swflow(folder, *command).returncode == 0
    return folder


def swflow(folder: Path, *arguments: str, largest: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with a limit on the size of files, as on a full disk."""

    def limit() -> None:
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    program = "from swflow.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=folder, preexec_fn=limit, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("clean toy.swf -o {}", "x.parquet"),
        ("clean toy.swf -o {}", "x.swf"),
        ("generate lublin --jobs 500 -o {}", "x.swf.gz"),
        ("simulate toy.parquet --backfill easy -o {}", "x.parquet"),
        ("load runs --database {}", "x.duckdb"),
        ("report --database d.duckdb --no-draw -o {}", "x"),
        ("sql FROM_outcomes --database d.duckdb --csv {}", "x.csv"),
        ("sql FROM_outcomes --database d.duckdb --parquet {}", "x.parquet"),
        ("sweep toy.parquet --processors 16 --seeds 1 -o {}", "x.csv"),
    ],
)
@pytest.mark.slow
def test_a_full_disk_is_one_line_and_leaves_no_file(made, command, output):
    before = {path.name for path in made.iterdir()}
    arguments = [word.format(output).replace("_", " ") for word in command.split()]
    done = swflow(made, *arguments, largest=64 if output == "x.csv" and "sweep" in command else 4096)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert last.startswith("swflow: ") and output in last and "exceeds the size limit" in last
    assert not [
        path for path in made.rglob("*") if path.name.startswith(".") or (path.name == output and path.is_file())
    ]
    assert {path.name for path in made.iterdir()} - {"x"} == before - {"x"}


@pytest.mark.slow
def test_load_ignores_temporary_files_of_a_killed_simulation(made, tmp_path):
    for name in ("run.parquet", f".{2**22 + 7}@elsewhere.run.parquet"):
        (tmp_path / name).write_bytes(b"half" if name.startswith(".") else (made / "runs/easy.parquet").read_bytes())
    (tmp_path / f".{2**22 + 7}@elsewhere.x.duckdb.tmp").mkdir()
    done = swflow(made, "load", str(tmp_path), "--database", "y.duckdb")
    (made / "y.duckdb").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sql", "", "--database", "d.duckdb"], "sql: no query; write one"),
        (["sql", "FROM metrics; FROM runs", "--database", "d.duckdb"], "sql: 2 statements; expected one query"),
        (["sql", "COPY runs TO 'evil.csv'", "--database", "d.duckdb"], "COPY is not a query; to change the"),
        (["sql", "FROM runs", "--database", "toy.swf"], "toy.swf: cannot be opened as a DuckDB database"),
        (["sql", "FROM runs", "--database", "toy.parquet"], "toy.parquet: cannot be opened as a DuckDB database"),
        (["sql", "FROM runs", "--database", "empty"], "empty: "),
        (["sql", "FROM runs", "--database", "runs"], "runs: no such database"),
        (["report", "--database", "toy.swf"], "toy.swf: cannot be opened as a DuckDB database"),
        (["report", "--database", "other.duckdb"], "other.duckdb: "),
        (["figure", "heatmap", "--log", "toy", "-o", "x.png", "--database", "toy.swf"], "toy.swf: cannot be opened"),
        (["figure", "sweep", "--sweep", "d", "-o", "x.png", "--database", "other.duckdb"], "other.duckdb: not written"),
        (["figure", "heatmap", "--log", "toy", "-o", "x.png", "--database", "d.duckdb", "--split", "x=run_time"],
         "figure: split: x: 'run_time': run_time at position 1 is a number"),
        (["figure", "heatmap", "--log", "toy", "-o", "x.png", "--database", "d.duckdb", "--split",
          "x=true) AS BOOLEAN), false) AS part FROM (select 1) LIMIT 0; COPY (select 1 as a) TO 'evil.csv'; SELECT ("],
         "figure: split: x: "),
        (["figure", "heatmap", "--log", "toy", "-o", "x.png", "--database", "d.duckdb", "--split",
          "x=exists(select * from read_text('toy.swf'))"], "figure: split: x: "),
        (["figure", "heatmap", "--log", "toy", "-o", "x.png", "--database", "d.duckdb", "--split", 'a" FROM jobs --'],
         "no such column"),
        (
            ["figure", "heatmap", "--log", "toy", "-o", "x.png", "--database", "d.duckdb", "--split", "=x"],
            "expected a column or NAME=CONDITION",
        ),
        (["figure", "reservation-table", "--log", "toy", "-o", "x.png", "--database", "d.duckdb", "--from", "nan"],
         "figure: "),
        (["simulate", "toy.parquet", "--scheduler", "../evil={}", "-o", "out"], "--scheduler: invalid name"),
        (["simulate", "toy.parquet", "--scheduler", "easy={}\n={}", "-o", "out"], "--scheduler"),
        (["simulate", "toy.parquet", "--scheduler", "a={}", "--scheduler", "a={}", "-o", "out"], "a is given twice"),
        (["simulate", "toy.parquet", "--scheduler", "a=" + "[" * 100_000, "-o", "out"], "--scheduler"),
        (["simulate", "toy.parquet", "--order", "-" * 500 + "wait"], "order: "),
        (["select", "toy.parquet", "-o", "x.parquet", "--where", "not user_id"], "where: 'not user_id': user_id at"),
        (["select", "toy.parquet", "-o", "x.parquet", "--where", "user_id > 1" + "0" * 400], "is too large"),
        (["select", "toy.parquet", "-o", "x.parquet", "--where", "(" * 500 + "1"], "where: "),
        (["clean", "toy.swf", "-o", "x.parquet", "--flurries", "user_id"], "flurries: 'user_id': user_id at"),
        (["clean", "x" * 300, "-o", "x.parquet"], "xxx: "),
        (["simulate", "x" * 300 + ".parquet"], "xxx.parquet: "),
        (["clean", "toy.swf", "-o", "x" * 300 + ".parquet"], "the name is too long"),
        (["clean", "toy.swf", "-o", "toy.swf/x.parquet"], "a file with the name of the folder exists"),
        (["load", "runs", "--database", "runs"], "runs: cannot be written (it is a folder; name a file)"),
    ],
    ids=lambda arguments: repr(" ".join(arguments)[:60]) if isinstance(arguments, list) else "",
)  # fmt: skip
def test_hostile_commands_are_one_line_and_write_nothing(made, monkeypatch, capfd, arguments, words):
    from swflow.cli import main

    monkeypatch.chdir(made)
    (made / "empty").touch()
    if not (made / "other.duckdb").exists():
        import duckdb

        duckdb.connect(made / "other.duckdb").close()
    before = sorted(made.rglob("*"))
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    lines = capfd.readouterr().err.strip().splitlines()
    assert exit_.value.code in (1, 2) and lines[-1].startswith("swflow: ") and words in lines[-1]
    assert len(lines) == 1 or all("jobs kept" in line for line in lines[:-1])
    assert sorted(path for path in made.rglob("*")) == before


def test_sql_prints_csv_and_keeps_other_files(made):
    with (made / "rows.csv").open("w") as rows:
        rows.write("before\n")
        rows.flush()
        program = "from swflow.cli import main; main()"
        arguments = ["sql", "SELECT 1 AS a, 'é' AS b", "--csv", "--database", "d.duckdb"]
        subprocess.run([sys.executable, "-c", program, *arguments], cwd=made, stdout=rows, check=True)
    content = (made / "rows.csv").read_text()
    (made / "rows.csv").unlink()
    assert content == "before\na,b\n1,é\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_permission_is_one_line(made, tmp_path):
    tmp_path.chmod(0o500)
    done = swflow(made, "clean", "toy.swf", "-o", str(tmp_path / "x.parquet"))
    assert done.returncode == 1 and "permission denied; change the permissions" in done.stderr.splitlines()[-1]
