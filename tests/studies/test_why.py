"""Why jobs wait: sentences, groups, the command and its table in a database."""

import math
from pathlib import Path

import polars as pl
import pytest

import swflow
from helpers.cli import HEADER, call
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.variants import variants
from swflow.studies.whatif import ask
from swflow.studies.why import GROUPS, as_table, why

#: Job, submission, wait, run time, processors, user.
JOBS = [(1, 0, 0, 100, 6, 7), (2, 10, 90, 50, 8, 7), (3, 20, 130, 90, 2, 8), (4, 20, 0, 10, 2, 8), (5, 30, 10, 5, 2, 9)]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = [
        f"{job} {submit} {wait} {run} {width} -1 -1 {width} {run} -1 1 {user} 3 1 1 1 -1 -1"
        for job, submit, wait, run, width, user in JOBS
    ]
    (tmp_path / "toy.swf").write_text(HEADER + "\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "toy.swf"


def test_sentences_name_shares_sizes_and_the_unknown(log: Path) -> None:
    found = why(swflow.open_workload(log), Scheduler(order="log"), "log")
    mean, sizes, unknown = found.sentences()
    # Job 2 waits 90 s for room, job 3 65 s for room and 65 s while there is some, job 5 10 s while nothing happens.
    words = "67 % no room, 28 % order and 4.3 % latency"
    assert mean == f"On toy, jobs wait 46.0 s on average in the recorded schedule: {words}."
    assert sizes == "Jobs of 2 processors wait longest, 46.7 s: 46 % no room, 46 % order and 7.1 % latency."
    assert unknown.startswith("Unknown, and therefore in other parts, mostly in order: limit (")


def test_sentence_without_waits() -> None:
    jobs = pl.DataFrame({"job_id": [1], "submit_time": [0.0], "run_time": [1.0], "processors": [1], "estimate": [1.0]})
    found = why(Workload(jobs, Machine.of(4), "idle"), Scheduler(), "fcfs")
    assert found.sentences() == ["On idle, no job waits under fcfs."]


def test_groups_add_up_to_all_jobs(log: Path) -> None:
    found = why(swflow.open_workload(log), Scheduler(backfill="easy"), "easy")
    total = found.total
    for kind in GROUPS:
        groups = found.by(kind)
        assert groups["jobs"].sum() == len(JOBS)
        for part in ("wait", "room", "order"):
            summed = (groups[part] * groups["jobs"]).sum() / len(JOBS)
            assert math.isclose(summed, total[part], abs_tol=1e-9), (kind, part)
    assert found.by("size")["name"].to_list() == ["2", "5–8"]
    with pytest.raises(SwflowError, match="--by: unknown group 'users'; did you mean 'user'"):
        found.by("users")


def test_limit_of_the_recorded_schedule(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """User 8 may run one job: job 3 could not start while job 4 ran."""
    assert call("why", log, "--limit", "user:jobs=1", "-o", "w.csv") == 0
    rows = {row["job_id"]: row for row in pl.read_csv("w.csv").iter_rows(named=True)}
    assert rows[3]["limit"] == 10
    assert rows[2]["limit"] == 90
    assert "More processors would not have started jobs that were at a limit." in capfd.readouterr().out


def test_reasons_of_runs_are_loaded(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert call("clean", log, "-o", "toy.parquet") == 0
    assert call("simulate", "toy.parquet", "--scheduler", "easy", "--scheduler", "fcfs", "-o", "runs/toy") == 0
    assert call("why", "toy.parquet", "--run", "runs/toy", "--by", "size", "--by", "user", "-o", "why.parquet") == 0
    assert "easy, by size" in capfd.readouterr().out
    load(["runs/toy", "why.parquet"], "d.duckdb")
    _, rows = query("d.duckdb", 'SELECT run, job_id, room, "order" FROM wait_reasons ORDER BY ALL')
    expected = as_table(
        [
            why(swflow.open_workload("toy.parquet"), Scheduler(backfill=one), name)
            for name, one in (("easy", "easy"), ("fcfs", "none"))
        ]
    )
    assert rows == expected.select("run", "job_id", "room", "order").sort("run", "job_id").rows()
    Path("again.parquet").write_bytes(Path("why.parquet").read_bytes())
    with pytest.raises(SwflowError, match="given twice"):
        load(["runs/toy", "why.parquet", "again.parquet"], "d.duckdb")
    assert call("select", "toy.parquet", "-o", "toy.parquet", "--jobs", 4) == 0
    assert call("why", "toy.parquet", "--run", "runs/toy") == 1
    assert "simulated on another version of toy.parquet" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--by", "moon"], "--by moon: expected user, account, partition, qos, size"),
        (["--run", "x.parquet", "--scheduler", "easy"], "--run: its scheduler is in the file; leave --scheduler out"),
        (["-o", "x.txt"], "x.txt: "),
        (["--limit", "user=3"], "--limit: 'user=3': expected KIND:LIMIT=NUMBER"),
    ],
)
def test_wrong_options_have_one_line(
    log: Path, arguments: list[str], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call("why", log, *arguments) == 1
    assert words in capfd.readouterr().err.strip().splitlines()[-1]


def test_public_function(log: Path) -> None:
    workload = swflow.open_workload(log)
    easy = Scheduler(backfill="easy")
    assert swflow.why(workload, easy).table.equals(swflow.why(workload, easy, swflow.simulate(workload, easy)).table)
    assert set(swflow.why(workload).unknown) == {"limit", "fragmentation", "drain"}


def test_whatif_shows_what_a_change_does_to_each_part(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """User 7 may run one job: with more processors, job 2 no longer waits for room, but still for job 1."""
    limited = "mine: {backfill: easy, limits: {user: {jobs: 1}}}"
    assert call("whatif", log, "--scheduler", limited, "--processors", "+8", "--why", "-o", "w.html") == 0
    out = capfd.readouterr().out
    assert "Limits make " in out
    found = ask(
        swflow.open_workload(log),
        variants({"mine": {"backfill": "easy", "limits": {"user": {"jobs": 1}}}}, processors=["+8"]),
        reasons=True,
    ).reasons
    now, then = found["mine"], found["mine, processors +8"]
    assert now["limit"] == then["limit"] == 36.0  # 90 s of job 2 and 90 s of job 4, of 5 jobs
    assert now["room"] > then["room"] == 0
    assert "Mean wait by reason" in Path("w.html").read_text() and "Mean wait by reason" in out
