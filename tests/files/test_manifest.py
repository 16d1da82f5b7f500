"""Tests of manifests and lists: replicates of a step, runs of many workloads, damaged files, and omitted runs."""

import json
from pathlib import Path

import pytest

from swflow.cli import main
from swflow.database.inputs import read_left_out
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.files.manifest import drop_broken, unmade
from swflow.files.query import query
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import write_workload
from swflow.log.catalogue import Log, is_at_hand, reach
from swflow.log.swf import write_swf
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import simulate_all, simulate_replicates
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
    main(["replicate", kind, "-o", str(folder / f"A+m@{numbers}.parquet"), "--manifest", str(folder / "A+m.json"),
          *options])  # fmt: skip


def written(folder: Path) -> dict[str, int]:
    """Return the modification time of each replicate."""
    return {path.stem: path.stat().st_mtime_ns for path in folder.glob("A+m@*.parquet")}


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    """Return the replicates that are new or were written again."""
    return {name for name in after if after[name] != before.get(name)}


def test_replicates_equal_those_of_single_commands_and_are_written_once(source, tmp_path):
    folder = source.parent
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-3", "--seed", "4")
    first = written(folder)
    with pytest.raises(SystemExit, match="0"):
        main(["moldable", str(source), "-o", str(tmp_path / "A+m@2.parquet"), "--seed", "4"])
    assert (folder / "A+m@2.parquet").read_bytes() == (tmp_path / "A+m@2.parquet").read_bytes()
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-4", "--seed", "4")
    second = written(folder)
    assert changed(first, second) == {"A+m@4"}
    (folder / "A+m.json").unlink()  # as Snakemake does before the job, and after a killed one
    (folder / "A+m@1.parquet").write_bytes(b"cut")
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-4", "--seed", "4")
    assert changed(second, written(folder)) == {"A+m@1"}
    listed = json.loads((folder / "A+m.json").read_text())["manifests"][".A+m.manifest.json"]
    assert list(listed) == [
        "A+m@1",
        "A+m@2",
        "A+m@3",
        "A+m@4",
    ]
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-4", "--seed", "5")
    assert len(changed(second, written(folder))) == 4


def test_replicates_draw_from_one_fit(source, tmp_path):
    folder, fit = source.parent, tmp_path / "song.json"
    with pytest.raises(SystemExit, match="0"):
        main(["model", str(source), "--save-fit", str(fit), "--model", "song"])
    assert set(json.loads(fit.read_text())["goodness"]) >= {"run_time_ks", "correlation"}
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-2", "--fitted", str(fit), kind="model")
    with pytest.raises(SystemExit, match="0"):
        main(["model", str(source), "-o", str(tmp_path / "A+m@2.parquet"), "--model", "song"])
    assert (folder / "A+m@2.parquet").read_bytes() == (tmp_path / "A+m@2.parquet").read_bytes()
    before = written(folder)
    fit.write_text(fit.read_text() + " ")  # another file: drawn again
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-2", "--fitted", str(fit), kind="model")
    assert len(changed(before, written(folder))) == 2


def test_runs_of_replicates_equal_those_of_single_workloads(source, tmp_path):
    folder, runs = source.parent, tmp_path / "runs"
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-2")
    told = []
    files = [folder / "A+m@1.parquet", folder / "A+m@2.parquet"]
    planned = {"A+m@1": SCHEDULERS, "A+m@2": {"easy": SCHEDULERS["easy"]}}
    simulate_replicates(files, planned, runs / "A+m.json", report=lambda run, kept: told.append((run, kept)))
    assert told == [("A+m@1/fcfs", False), ("A+m@1/easy", False), ("A+m@2/easy", False)]
    simulate_all(files[0], SCHEDULERS, tmp_path / "single")
    assert (runs / "A+m@1/easy.parquet").read_bytes() == (tmp_path / "single/easy.parquet").read_bytes()
    counts = load([runs / "A+m.json"], tmp_path / "d.duckdb")
    assert counts["runs"] == load([runs], tmp_path / "e.duckdb")["runs"] == 3


@pytest.mark.parametrize("damage", ["cut", "bytes", "gone", "empty"])
def test_a_damaged_run_is_simulated_again_and_never_loaded(source, tmp_path, damage):
    listed, folder = tmp_path / "runs/A.json", tmp_path / "runs/A"
    told = []
    simulate_replicates([source], {source.stem: SCHEDULERS}, listed)
    file = folder / "easy.parquet"
    content = file.read_bytes()
    assert not drop_broken(listed)
    if damage == "gone":
        file.unlink()
    else:
        middle = content[:100] + bytes(200) + content[300:]  # a complete footer over damaged data
        file.write_bytes({"cut": content[:-50], "bytes": middle, "empty": b""}[damage])
    for path in (listed, folder):
        with pytest.raises(SwflowError, match=r"easy\.parquet: (damaged|missing)"):
            load([path], tmp_path / "d.duckdb")
    assert drop_broken(listed)
    assert not listed.exists()
    simulate_replicates([source], {source.stem: SCHEDULERS}, listed, report=lambda run, kept: told.append((run, kept)))
    assert told == [("A/fcfs", True), ("A/easy", False)]
    assert file.read_bytes() == content
    assert load([listed], tmp_path / "d.duckdb")["runs"] == 2


GARBAGE = [
    "", "{", "[]", '{"files": 3}', '{"files": {"A/easy": {"file": "x"}}}', '{"manifests": {"A/manifest.json": 3}}',
    "\xff",
]  # fmt: skip


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("damaged", ["A.json", "A/manifest.json"])
def test_a_damaged_manifest_is_one_line_or_rebuilt(source, tmp_path, garbage, damaged):
    listed = tmp_path / "runs/A.json"
    simulate_replicates([source], {source.stem: SCHEDULERS}, listed)
    (tmp_path / "runs" / damaged).write_text(garbage, encoding="latin-1")
    with pytest.raises(SwflowError, match=r"(not a manifest|not a list of files) .*run snakemake again|lists; delete"):
        load([listed], tmp_path / "d.duckdb")
    assert drop_broken(listed)
    simulate_replicates([source], {source.stem: SCHEDULERS}, listed)
    assert load([listed], tmp_path / "d.duckdb")["runs"] == 2


def test_a_run_replaced_by_another_call_breaks_the_list(source, tmp_path):
    """The list of the workflow refers to runs by key: other options under the same name are detected."""
    listed = tmp_path / "runs/A.json"
    simulate_replicates([source], {source.stem: SCHEDULERS}, listed)
    simulate_all(source, SCHEDULERS | {"easy": {"order": "sjf", "backfill": "easy"}}, tmp_path / "runs/A")
    with pytest.raises(SwflowError, match=r"manifest\.json: easy is not what .*A\.json lists; delete .*A\.json"):
        load([listed], tmp_path / "d.duckdb")
    assert drop_broken(listed)


def test_runs_omitted_by_the_last_call_stay_and_are_not_loaded(source, tmp_path):
    told = []
    simulate_all(source, SCHEDULERS, tmp_path / "A")
    simulate_all(source, {"easy": SCHEDULERS["easy"]}, tmp_path / "A")
    assert load([tmp_path / "A"], tmp_path / "d.duckdb")["runs"] == 1
    simulate_all(source, SCHEDULERS, tmp_path / "A", report=lambda run, kept: told.append(kept))
    assert told == [True, True]
    assert load([tmp_path / "A"], tmp_path / "d.duckdb")["runs"] == 2
    options = {name: Scheduler.of(name, spec).to_dict() for name, spec in SCHEDULERS.items()}
    assert unmade(options, "", tmp_path / "A") == []
    assert unmade(options, "other code", tmp_path / "A") == ["easy", "fcfs"]
    assert unmade(options | {"fcfs": options["easy"]}, "", tmp_path / "A") == ["fcfs"]


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
    (tmp_path / "reached.json").write_text('{"reached": [], "missing": {"B": "B: cannot be fetched"}}')
    rows = read_left_out(["B:B-1996+m@1-2=easy,fcfs", "B:B+d-1024="], tmp_path / "reached.json")
    load([tmp_path / "A"], tmp_path / "d.duckdb", left_out=rows)
    assert query(tmp_path / "d.duckdb", "SELECT * FROM left_out WHERE scheduler IS NULL OR run LIKE '%2/easy'")[1] == [
        ("B-1996+m@2/easy", "B-1996+m@2", "easy", "B", "B: cannot be fetched"),
        ("B+d-1024", "B+d-1024", None, "B", "B: cannot be fetched"),
    ]
    (tmp_path / "reached.json").write_text("[]")
    with pytest.raises(SwflowError, match="not a file of swflow reach"):
        read_left_out([], tmp_path / "reached.json")


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
    with pytest.raises(SystemExit, match="0"):
        replicate(folder, "1-6")
    files = [folder / f"A+m@{number}.parquet" for number in range(1, 7)]
    simulate_all(source, SCHEDULERS, runs / "A")
    simulate_replicates(files[:5], {path.stem: SCHEDULERS for path in files}, runs / "A+m.json")
    load([runs / "A", runs / "A+m.json"], database)
    first = everything(database)
    schedulers = {
        "fcfs": {"backfill": "none", "estimates": "kill"},
        "easy": SCHEDULERS["easy"],
        "sjf": {"order": "sjf"},
    }
    with pytest.raises(SystemExit, match="0"):  # another version of one workload
        main(["moldable", str(source), "-o", str(files[1]), "--seed", "9"])
    simulate_all(source, schedulers, runs / "A")
    planned = {path.stem: {"easy": schedulers["easy"]} for path in files}
    simulate_replicates(files, planned, runs / "A+m.json")
    paths, read = [runs / "A", runs / "A+m.json"], []
    load(paths, database, progress=lambda items: read.extend(items) or items)
    assert [f"{path.parent.name}/{path.stem}" for path in read] == ["A+m@2/easy", "A+m@6/easy", "A/fcfs", "A/sjf"]
    assert everything(database) != first
    load(paths, tmp_path / "new.duckdb")
    assert everything(database) == everything(tmp_path / "new.duckdb")
