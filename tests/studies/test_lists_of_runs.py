"""Tests of replicates of a step, lists of runs, damaged files, and omitted runs."""

import json
from pathlib import Path

import pytest

from swflow.cli import main
from swflow.database.inputs import read_plan
from swflow.database.load import load, write_verdicts
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.log.catalogue import Log
from swflow.log.fetch import is_at_hand, reach
from swflow.log.swf import write_swf
from swflow.studies.runs import RUNS, simulate_all
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin, lublin_header

SCHEDULERS = {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}}


@pytest.fixture
def source(tmp_path):
    """Write a synthetic workload."""
    path = tmp_path / "workloads" / "A.parquet"
    write_workload(clean(generate_lublin(200, 32, generator(1, "A")), Machine.of(32), name="A"), path)
    return path


def replicate(folder: Path, numbers: str, *options: str, kind: str = "moldable") -> None:
    """Run the command with the options of the workflow."""
    with pytest.raises(SystemExit, match="0"):
        main(["replicate", kind, "-o", str(folder / f"A+m@{numbers}.parquet"), *options])


def test_replicates_equal_those_of_single_commands(source, tmp_path):
    folder = source.parent
    replicate(folder, "1-3", "--seed", "4")
    with pytest.raises(SystemExit, match="0"):
        main(["moldable", str(source), "-o", str(tmp_path / "A+m@2.parquet"), "--seed", "4"])
    assert (folder / "A+m@2.parquet").read_bytes() == (tmp_path / "A+m@2.parquet").read_bytes()
    assert sorted(path.name for path in folder.glob("A+m@*")) == [f"A+m@{number}.parquet" for number in (1, 2, 3)]


def test_replicates_without_a_source_are_one_line(source, capsys):
    with pytest.raises(SystemExit, match="1"):
        main(["replicate", "moldable", "-o", str(source.with_name("B+m@1-2.parquet"))])
    assert "B.parquet: no such file; B+m@1.parquet is created from it" in capsys.readouterr().err


def test_replicates_draw_from_one_fit(source, tmp_path):
    folder, fit = source.parent, tmp_path / "song.json"
    with pytest.raises(SystemExit, match="0"):
        main(["model", str(source), "--save-fit", str(fit), "--model", "song"])
    assert set(json.loads(fit.read_text())["goodness"]) >= {"run_time_ks", "correlation"}
    replicate(folder, "1-2", "--fitted", str(fit), kind="model")
    with pytest.raises(SystemExit, match="0"):
        main(["model", str(source), "-o", str(tmp_path / "A+m@2.parquet"), "--model", "song"])
    assert (folder / "A+m@2.parquet").read_bytes() == (tmp_path / "A+m@2.parquet").read_bytes()


def test_runs_of_a_plan_equal_those_of_single_workloads(source, tmp_path):
    folder, runs = source.parent, tmp_path / "runs"
    replicate(folder, "1-2")
    plan = {"schedulers": SCHEDULERS, "runs": {"A+m@1": ["easy", "fcfs"], "A+m@2": ["easy"]}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    files = [str(folder / f"A+m@{number}.parquet") for number in (1, 2)]
    with pytest.raises(SystemExit, match="0"):
        main(["simulate", *files, "-o", str(runs), "--plan", str(tmp_path / "plan.json")])
    assert sorted(path.relative_to(runs).as_posix() for path in runs.glob("*/*.parquet")) == [
        "A+m@1/easy.parquet", "A+m@1/fcfs.parquet", "A+m@2/easy.parquet"
    ]  # fmt: skip
    simulate_all(files[0], SCHEDULERS, tmp_path / "single")
    assert (runs / "A+m@1/easy.parquet").read_bytes() == (tmp_path / "single/easy.parquet").read_bytes()
    assert load([runs], tmp_path / "d.duckdb")["runs"] == 3


@pytest.mark.parametrize("damage", ["cut", "bytes", "gone", "empty"])
def test_a_damaged_run_is_never_loaded(source, tmp_path, damage):
    folder = tmp_path / "runs/A"
    simulate_all(source, SCHEDULERS, folder)
    file = folder / "easy.parquet"
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        middle = content[:100] + bytes(200) + content[300:]  # a complete footer over damaged data
        file.write_bytes({"cut": content[:-50], "bytes": middle, "empty": b""}[damage])
    with pytest.raises(SwflowError, match=r"easy\.parquet: (damaged|missing).*run snakemake again"):
        load([folder], tmp_path / "d.duckdb")
    assert not (tmp_path / "d.duckdb").exists()


@pytest.mark.parametrize("garbage", ["", "{", "[]", '{"easy": 3}', '{"easy": {}}', "\xff"])
def test_a_damaged_list_of_runs_is_one_line(source, tmp_path, garbage):
    simulate_all(source, SCHEDULERS, tmp_path / "A")
    (tmp_path / "A" / RUNS).write_text(garbage, encoding="latin-1")
    with pytest.raises(SwflowError, match=r"runs\.json: not a list of runs; delete .*A and run snakemake again"):
        load([tmp_path / "A"], tmp_path / "d.duckdb")


def test_runs_omitted_by_the_last_call_are_not_loaded(source, tmp_path):
    simulate_all(source, SCHEDULERS, tmp_path / "A")
    simulate_all(source, {"easy": SCHEDULERS["easy"]}, tmp_path / "A")
    assert load([tmp_path / "A"], tmp_path / "d.duckdb")["runs"] == 1


def test_runs_of_several_calls_of_the_command_are_all_loaded(source, tmp_path, monkeypatch):
    """A second call replaced the list of the folder, so that a load left the runs of the first one out."""
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["--scheduler", "easy", "-o", "A"], ["--scheduler", "fcfs", "-o", "A"], ["--order", "sjf", "-o", "A/x.parquet"],
        ["--order", "saf", "-o", "A/easy.parquet"],
    ):  # fmt: skip
        with pytest.raises(SystemExit, match="0"):
            main(["simulate", str(source), *arguments])
    assert load(["A"], "d.duckdb")["runs"] == 3
    orders = query("d.duckdb", "SELECT scheduler, options->>'order' FROM schedulers ORDER BY 1")[1]
    assert orders == [("easy", "saf"), ("fcfs", "fcfs"), ("x", "sjf")]
    (tmp_path / "A/x.parquet").unlink()
    with pytest.raises(SwflowError, match=r"x\.parquet: missing"):
        load(["A"], "d.duckdb")
    with pytest.raises(SystemExit, match="0"):
        main(["simulate", str(source), "--scheduler", "sjbf", "-o", "A"])
    assert load(["A"], "d.duckdb")["runs"] == 3


def test_logs_that_cannot_be_fetched_are_named(tmp_path):
    mirror, folder = tmp_path / "mirror", tmp_path / "logs"
    write_swf(mirror / "there.swf.gz", generate_lublin(50, 8, generator(1, "x")), lublin_header(50, 8, seed=1))
    logs = [Log(name, file=f"{name}.swf.gz", url=f"file://{tmp_path}/{name}.swf.gz") for name in ("there", "lost")]
    assert [is_at_hand(log, mirror) for log in logs] == [True, False]
    missing = reach(logs, folder, mirror)
    assert list(missing) == ["lost"]
    assert "cannot be fetched" in missing["lost"]
    written = (folder / "there.swf.gz").stat().st_mtime_ns
    assert list(reach(logs, folder, mirror)) == ["lost"]
    assert (folder / "there.swf.gz").stat().st_mtime_ns == written


def test_omitted_runs_are_in_the_database(source, tmp_path):
    simulate_all(source, SCHEDULERS, tmp_path / "A")
    reached, plan = tmp_path / "reached.json", tmp_path / "plan.json"
    reached.write_text('{"reached": [], "missing": {"B": "B: cannot be fetched"}}')
    files = {
        str(tmp_path / "A"): {"logs": ["A"], "workload": "A", "schedulers": list(SCHEDULERS)},
        "B-1996+m@2": {"logs": ["A", "B"], "workload": "B-1996+m@2", "schedulers": ["easy", "fcfs"]},
        "B+d-1024.parquet": {"logs": ["B"], "workload": "B+d-1024", "schedulers": []},
        "B.json": {"logs": ["B"]},
    }
    plan.write_text(json.dumps({"files": files, "reached": str(reached)}))
    paths, rows, compared, asked = read_plan(plan)
    assert (paths, compared, asked) == ([str(tmp_path / "A")], {}, None)
    load(paths, tmp_path / "d.duckdb", left_out=rows)
    assert query(tmp_path / "d.duckdb", "SELECT * FROM left_out WHERE scheduler IS DISTINCT FROM 'fcfs'")[1] == [
        ("B-1996+m@2/easy", "B-1996+m@2", "easy", "B", "B: cannot be fetched"),
        ("B+d-1024", "B+d-1024", None, "B", "B: cannot be fetched"),
    ]
    reached.write_text("[]")
    with pytest.raises(SwflowError, match="not a file of swflow reach"):
        read_plan(plan)
    plan.write_text('{"files": {"A": {}}}')
    with pytest.raises(SwflowError, match="not a plan of a load; expected JSON"):
        read_plan(plan)


def everything(database: Path) -> dict[str, list]:
    """Return the rows of all tables and views."""
    names = [row[0] for row in query(database, "SELECT table_name FROM information_schema.tables")[1]]
    columns = {name: [row[0] for row in query(database, f"DESCRIBE {name}")[1]] for name in names}
    return {
        name: query(database, f'SELECT {", ".join(f""" "{column}" """ for column in sorted(columns[name]))} '
                    f"FROM {name} ORDER BY ALL")[1]
        for name in sorted(names)
    }  # fmt: skip


@pytest.mark.slow
def test_an_updated_database_equals_a_new_one(source, tmp_path):
    folder, runs, database = source.parent, tmp_path / "runs", tmp_path / "d.duckdb"
    replicate(folder, "1-6")
    files = [folder / f"A+m@{number}.parquet" for number in range(1, 7)]
    for file in [source, *files[:5]]:
        simulate_all(file, SCHEDULERS, runs / file.stem)
    load([runs], database)
    first = everything(database)
    schedulers = {
        "fcfs": {"backfill": "none", "estimates": "kill"},
        "easy": SCHEDULERS["easy"],
        "sjf": {"order": "sjf"},
    }
    with pytest.raises(SystemExit, match="0"):  # another version of one workload
        main(["moldable", str(source), "-o", str(files[1]), "--seed", "9"])
    simulate_all(source, schedulers, runs / "A")
    for file in files:
        simulate_all(file, {"easy": schedulers["easy"]}, runs / file.stem)
    read = []
    load([runs], database, progress=lambda items: read.extend(items) or items)
    assert [run.run for run in read] == ["A+m@2/easy", "A+m@6/easy", "A/fcfs", "A/sjf"]
    assert everything(database) != first
    load([runs], tmp_path / "new.duckdb")
    assert everything(database) == everything(tmp_path / "new.duckdb")


@pytest.mark.slow
def test_verdicts_change_only_with_the_compared_runs(source, tmp_path):
    """Other runs change the numbers of comparisons and the corrected p-values, which no figure shows."""
    database, names = tmp_path / "d.duckdb", {"one/A": ["A/easy", "A/fcfs"], "none": []}
    found = []
    for more in ({}, {"sjf": {"order": "sjf"}}):
        simulate_all(source, SCHEDULERS | more, tmp_path / "runs/A")
        load([tmp_path / "runs"], database)
        write_verdicts(database, names, tmp_path / "verdicts")
        found.append((tmp_path / "verdicts/one/A.json").read_text())
    assert found[0] == found[1]
    assert {(row[1], row[2]) for row in json.loads(found[0])} == {("A/easy", "A/fcfs")}
    assert json.loads((tmp_path / "verdicts/none.json").read_text()) == []
