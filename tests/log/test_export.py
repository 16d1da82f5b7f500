"""Tests of exports of workloads and schedules to other formats, and of reading them again."""

import json
import random
from dataclasses import replace

import polars as pl
import pytest

from helpers.cli import call
from helpers.records import read, sacct, text
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import IMPORTED_COLUMNS, JOB_COLUMNS, SWF_FIELDS, Workload
from swflow.log.imported import write_log
from swflow.log.recognise import recognize
from swflow.log.swf import GUESSED_MACHINE, read_swf
from swflow.workload.clean import clean_log, open_workload

LINES = [
    "1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1",
    "2 1 -1 10 8 -1 -1 8 5 -1 1 7 1 1 1 1 -1 -1",
    "3 2 0 3 2 -1 -1 2 5 -1 5 8 1 1 1 1 -1 -1",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Create a log, a workload and a run in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "\n".join(LINES) + "\n")
    assert call("clean", "log.swf", "-o", "w.parquet") == 0
    assert call("simulate", "w.parquet", "--backfill", "easy", "-o", "run.parquet") == 0
    return tmp_path


def test_workloads(folder):
    for ending in ("swf", "swf.gz", "csv", "parquet", "json"):
        assert call("export", "w.parquet", "-o", f"out.{ending}") == 0
    fields = read_swf("out.swf.gz").fields
    assert fields.select("job_id", "submit_time", "run_time", "allocated_processors", "status").rows() == [
        (1, 0, 10, 4, 1), (2, 1, 10, 8, 1), (3, 2, 3, 2, 5),
    ]  # fmt: skip
    assert pl.read_csv("out.csv")["estimate"].to_list() == [20, 5, 5]
    assert (folder / "out.parquet").read_bytes() == (folder / "w.parquet").read_bytes()
    content = json.loads((folder / "out.json").read_text())
    assert content["nb_res"] == 8
    assert [(job["id"], job["subtime"], job["walltime"], job["res"]) for job in content["jobs"]] == [
        ("1", 0, 20, 4), ("2", 1, 10, 8), ("3", 2, 5, 2),
    ]  # fmt: skip
    assert {content["profiles"][job["profile"]]["delay"] for job in content["jobs"]} == {10, 3}
    assert call("export", "w.parquet", "-o", "kill.json", "--estimates", "kill") == 0
    assert json.loads((folder / "kill.json").read_text())["jobs"][1]["walltime"] == 5


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Create a workload with all kinds of columns, from records that begin at a second of 1970."""
    monkeypatch.chdir(tmp_path)
    rows = [
        sacct(JobID="1", AllocTRES="cpu=8,mem=3G,gres/gpu=2", User="eve", Timelimit="UNLIMITED", Partition="b"),
        sacct(JobID="2", Submit="2024-01-08T08:00:07", Elapsed="00:30:00", Suspended="00:30:00", ReqMem="2000Mc"),
        sacct(JobID="3_1", Submit="2024-01-08T08:01:00", AllocCPUS=4, State="FAILED", User="ada"),
        sacct(JobID="4", Submit="2024-01-08T08:00:30", AllocCPUS="", State="CANCELLED", Start="None", Elapsed=0),
    ]  # fmt: skip
    log = read(tmp_path, "sacct", text(*rows))
    fields = log.fields.with_columns(depends_on=pl.Series([None, [1], None, [1, 2]], dtype=pl.List(pl.Int64)))
    replace(log, fields=fields).write(tmp_path / "log.parquet")
    assert call("clean", "log.parquet", "-o", "w.parquet", "--machine-processors", "64", "--keep-cancelled") == 0
    return pl.read_parquet("w.parquet")


#: How each format is read again, and the columns that it keeps besides those of all formats.
BACK = {
    "swf": (("clean", "back.swf", "-o", "again.parquet", "--keep-cancelled"), SWF_FIELDS),
    "swf.gz": (("clean", "back.swf.gz", "-o", "again.parquet", "--keep-cancelled"), SWF_FIELDS),
    "csv": (("import", "csv", "back.csv", "--columns", "swflow", "--processors", "64", "-o", "again.parquet"),
            [*SWF_FIELDS, "gpus", "memory", "nodes", "depends_on"]),
    "parquet": (("clean", "log.parquet", "-o", "unused.parquet"), JOB_COLUMNS),
    "json": (("import", "batsim", "back.json", "-o", "again.parquet"), ("job_id", "submit_time", "run_time")),
}  # fmt: skip


@pytest.mark.parametrize("ending", BACK)
def test_what_is_exported_is_imported_again(imported, ending):
    command, columns = BACK[ending]
    assert call("export", "w.parquet", "-o", f"back.{ending}") == 0
    assert call(*command) == 0
    if ending == "parquet":
        assert pl.read_parquet("back.parquet").equals(imported)
        return
    again = open_workload("again.parquet") if ending.startswith("swf") else clean_log("again.parquet", drop=[])
    assert again.machine.processors == 64 and again.jobs.height == 4
    assert again.jobs.select("processors").equals(imported.select("processors"))
    for name in columns:
        found, expected = again.jobs[name], imported[name]
        if ending == "csv" and name.endswith("_id") and name != "job_id":  # numbered by their first job
            names = again.header.names_of(name)
            found = pl.Series([None if one is None else int(names[one]) for one in found], dtype=pl.Int64)
        if expected.null_count() < expected.len() or name in again.jobs.columns:
            assert found.to_list() == expected.to_list(), name
    if ending == "json":  # Batsim needs a wall time
        assert again.jobs["estimate"].to_list() == pl.Series(imported["estimate"]).to_list()
    kind = recognize(f"back.{ending}")
    assert (kind.key, kind.columns) == {"csv": ("csv", "swflow"), "json": ("batsim", None)}.get(ending, ("swf", None))


def random_log(rng: random.Random, path) -> None:
    """Write an imported log with all columns, whose values are known or unknown at random."""
    count, rows, sent = rng.randint(2, 40), [], rng.choice([0.0, 30.5])
    for job in range(1, count + 1):
        sent += rng.choice([0.0, 1.0, 7.5, 1000 * rng.random()])
        run = rng.choice([1.0, 10.25, 1e5 * rng.random()])
        known = {"job_id": job, "submit_time": sent, "run_time": run, "allocated_processors": rng.randint(1, 64),
                 "site_job_id": f"s{job}"}  # fmt: skip
        maybe = {"wait_time": 1e4 * rng.random(), "average_cpu_time": run / 2, "requested_processors": 64, "gpus": 2,
                 "requested_time": run, "status": 1, "suspended_time": 3.5, "eligible_after": 4.0, "think_time": 9.0,
                 "used_memory": 1024.5, "requested_memory": 2048.0, "licenses": 2, "memory": 4096, "array_id": 1,
                 "array_limit": 3, "nodes": 2, "requested_nodes": 2}  # fmt: skip
        maybe |= {name: rng.randint(1, 3) for name in SWF_FIELDS if name.endswith("_id") and name != "job_id"}
        maybe |= {"unix_group_id": rng.randint(1, 2), "constraint_id": rng.randint(1, 2)}
        before = rng.randint(1, max(1, job - 1))
        maybe |= {"depends_on": [before], "preceding_job_id": before}
        rows.append(known | {name: value for name, value in maybe.items() if job == 2 or rng.random() < 0.8})
    fields = pl.DataFrame(rows, {**SWF_FIELDS, **IMPORTED_COLUMNS}, orient="row")
    fields = fields.with_columns(depends_on=pl.when(pl.col("job_id") != 1).then("depends_on"))
    history = [{"stage": "import", "format": "x", "read": count, "kept": count, "removed": {}, "notes": {}}]
    write_log(path, fields, {"MaxProcs": ["64"]}, history)


@pytest.mark.parametrize("ending", ["csv", "swf", "swf.gz"])
def test_random_logs_come_back(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(7)
    for _ in range(8):
        random_log(rng, tmp_path / "log.parquet")
        assert call("clean", "log.parquet", "-o", "w.parquet", "--keep-cancelled") == 0
        given = clean_log("log.parquet", drop=[], keep_cancelled=True).jobs
        assert call("export", "w.parquet", "-o", f"back.{ending}") == 0
        back = f"back.{ending}"
        if ending == "csv":
            assert call("import", "csv", back, "--columns", "swflow", "--processors", "64", "-o", "back.parquet") == 0
            back = "back.parquet"
        found = clean_log(back, drop=[], keep_cancelled=True).jobs
        for name in given.columns if ending == "csv" else SWF_FIELDS:
            if name.endswith("_id") and name not in ("job_id", "site_job_id"):  # numbered by their first job
                pairs = set(zip(given[name], found[name], strict=True))
                assert len(pairs) == len({one for one, _ in pairs}) == len({one for _, one in pairs}), name
            else:
                assert found[name].to_list() == given[name].to_list(), name


def test_columns_without_a_field_are_named(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.0, 1.0, 2.0], "run_time": [9.0, 9.0, 9.0], "processors": [1, 2, 3],
        "estimate": [9.0, 9.0, 9.0], "depends_on": [None, [1], [1, 2]], "preceding_job_id": [None, 1, None],
        "eligible_after": [None, None, 4.0], "array_id": [1, 1, None], "array_limit": [2, 2, None],
        "gpus": [1, 0, None],
    })  # fmt: skip
    write_workload(Workload(jobs, Machine(8, 8, resources={"gpus": 4}), "tiny"), "w.parquet")
    texts = {
        "json": "Batsim has no field for depends_on (2 jobs), eligible_after (1 job), array_limit (2 jobs), gpus (2",
        "swf": "SWF has no field for depends_on (1 job), eligible_after (1 job), array_limit (2 jobs), gpus (2 jobs)",
    }
    for ending, words in texts.items():
        assert call("export", "w.parquet", "-o", f"w.{ending}") == 0
        assert f"w.{ending}: {words}" in capfd.readouterr().err
    for ending in ("csv", "parquet"):
        assert call("export", "w.parquet", "-o", f"x.{ending}") == 0
        assert "no field" not in capfd.readouterr().err
    assert call("simulate", "w.parquet", "-o", "run.swf") == 0
    assert "run.swf: SWF has no field for depends_on (1 job), array_limit (2 jobs), gpus" in capfd.readouterr().err


def test_schedules(folder):
    assert call("export", "run.parquet", "-o", "run.swf") == 0
    assert call("export", "run.parquet", "-o", "run.csv") == 0
    outcomes = pl.read_parquet("run.parquet")
    fields = read_swf("run.swf").fields
    assert fields["wait_time"].to_list() == outcomes["wait_time"].to_list() == [0, 9, 0]
    table = pl.read_csv("run.csv")
    assert table["start_time"].to_list() == outcomes["start_time"].to_list()
    assert table["user_id"].to_list() == [7, 7, 8]
    assert call("simulate", "run.swf", "--order", "log", "-o", "again.parquet") == 0
    assert pl.read_parquet("again.parquet")["start_time"].to_list() == outcomes["start_time"].to_list()


def test_a_log_states_the_machine_of_the_workload_or_run(folder):
    """The header of the log says 8 processors."""
    assert call("clean", "log.swf", "-o", "other.parquet", "--machine-processors", "16", "--machine-nodes", "4") == 0
    assert call("export", "other.parquet", "-o", "other.swf") == 0
    assert call("clean", "log.swf", "-o", "cleaned.swf", "--machine-processors", "16", "--machine-nodes", "4") == 0
    assert call("machine", "w.parquet", "-o", "wide.parquet", "--processors", "16", "--processors-per-node", "4") == 0
    assert call("export", "wide.parquet", "-o", "wide.swf") == 0
    for name in ("other.swf", "cleaned.swf", "wide.swf"):
        assert open_workload(name).machine == Machine(16, 4)
    assert call("simulate", "w.parquet", "--processors", "12", "-o", "direct.swf") == 0
    assert call("simulate", "w.parquet", "--processors", "12", "-o", "wide-run.parquet") == 0
    for ending in ("swf", "json"):
        assert call("export", "wide-run.parquet", "-o", f"wide-run.{ending}") == 0
    assert open_workload("direct.swf").machine == open_workload("wide-run.swf").machine == Machine.of(12)
    assert json.loads((folder / "wide-run.json").read_text())["nb_res"] == 12


def test_a_guessed_machine_stays_a_guess_until_it_is_stated(folder):
    header = f"; MaxProcs: 8\n; Note: {GUESSED_MACHINE}\n"
    (folder / "guessed.swf").write_text(header + "\n".join(LINES) + "\n")
    for given, source in (((), "recorded peak"), (("--machine-processors", "8"), "header (MaxProcs)")):
        assert call("clean", "guessed.swf", "-o", "again.swf", *given) == 0
        assert open_workload("again.swf").history[0]["machine_from"] == source


def test_the_sizes_of_partitions_belong_to_the_recorded_jobs(folder):
    (folder / "parts.swf").write_text("; MaxProcs: 8\n; PartitionProcs: 1 8\n" + "\n".join(LINES) + "\n")
    assert call("scale", "parts.swf", "-o", "scaled.swf", "--processors", "32") == 0
    assert call("clean", "parts.swf", "-o", "cleaned.swf") == 0
    assert "PartitionProcs" not in read_swf("scaled.swf").header
    assert read_swf("cleaned.swf").header["PartitionProcs"] == ["1 8"]


def test_lists_become_json_in_csv(folder):
    assert call("moldable", "w.parquet", "-o", "m.parquet") == 0
    assert call("export", "m.parquet", "-o", "m.csv") == 0
    shapes = json.loads(pl.read_csv("m.csv")["shapes"][0])
    assert shapes == pl.read_parquet("m.parquet")["shapes"][0].to_list()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["w.parquet", "-o", "out.txt"], "out.txt: unknown ending; use .swf"),
        (["nothing.parquet", "-o", "out.csv"], "nothing.parquet: no such file"),
        (["w.parquet", "-o", "out.csv", "--workload", "log.swf"], "--workload: applies to runs only"),
        (["run.parquet", "-o", "out.csv", "--workload", "lost.parquet"], "its workload lost.parquet is missing"),
        (["run.parquet", "-o", "out.csv", "--workload", "other.swf"], "jobs are not in other.swf"),
        (["w.parquet", "-o", "out.json", "--estimates", "keep"], "--estimates: unknown value 'keep'"),
    ],
)
def test_bad_input_is_one_line(folder, capfd, arguments, words):
    (folder / "other.swf").write_text(LINES[0] + "\n")
    capfd.readouterr()
    assert call("export", *arguments) == 1
    (error,) = capfd.readouterr().err.strip().splitlines()
    assert error.startswith("swflow: ")
    assert words in error
