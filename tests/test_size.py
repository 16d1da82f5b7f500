"""Tests of large logs: processing in parts gives the same result as processing the whole."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import draw
from swflow.files import reading, tables
from swflow.files.query import query
from swflow.files.tables import read_columns, read_metadata, read_workload, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.log import swf
from swflow.log.imported import write_log
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import columns_of_run, describe_run, run, simulate_all, write_run
from swflow.workload.clean import clean
from swflow.workload.clean_large import clean_into
from swflow.workload.models.lublin import generate_lublin

pytestmark = pytest.mark.slow


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every table with more than 100 rows as large."""
    monkeypatch.setattr(tables, "MOST_AT_ONCE", 100)
    monkeypatch.setattr(tables, "ROW_GROUP", 150)


@pytest.fixture(scope="module")
def workload_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a workload with 1,000 jobs."""
    fields = generate_lublin(1000, 64, generator(1, "size"), load=0.9, users=True)
    path = tmp_path_factory.mktemp("size") / "small.parquet"
    write_workload(clean(fields, Machine.of(64), name="small"), path)
    return path


def _run(path: Path, scheduler: Scheduler, target: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Simulate a workload; write the run and read it."""
    workload = read_workload(path, columns_of_run([scheduler]))
    write_run(run(workload, scheduler), target, describe_run(path, workload, "one", scheduler))
    return pl.read_parquet(target), read_metadata(target)


@pytest.mark.parametrize(
    "scheduler",
    [Scheduler(), Scheduler(order="log"), Scheduler(backfill="easy", backfill_order="sjf"), Scheduler(estimates="kill"),
     Scheduler(order="user_id"), Scheduler(backfill="easy", prediction="system")],
    ids=lambda scheduler: f"{scheduler.order}-{scheduler.backfill}-{scheduler.prediction}",
)  # fmt: skip
def test_a_run_in_parts_equals_the_whole_run(
    workload_file: Path, tmp_path: Path, scheduler: Scheduler, request: pytest.FixtureRequest
) -> None:
    whole, about = _run(workload_file, scheduler, tmp_path / "whole.parquet")
    request.getfixturevalue("small_parts")
    parts, told = _run(workload_file, scheduler, tmp_path / "parts.parquet")
    assert parts.equals(whole)
    assert parts.schema == whole.schema
    assert told["correlations"] == about["correlations"]
    metrics, expected = ({name: value or 0 for name, value in one["metrics"].items()} for one in (told, about))
    assert metrics == pytest.approx(expected, rel=1e-12)


def test_only_the_columns_that_a_scheduler_uses_are_read(workload_file: Path) -> None:
    wanted = columns_of_run([Scheduler(), Scheduler(order="log"), Scheduler(without_status=(5,))])
    assert wanted == {"user_id", "wait_time", "status"}
    assert columns_of_run([Scheduler(), Scheduler(order="group_id")]) is None
    assert columns_of_run([Scheduler(limits={"user": {"jobs": 1}})]) is None
    jobs = read_workload(workload_file, wanted).jobs
    whole = read_workload(workload_file).jobs
    needed = ["job_id", "submit_time", "wait_time", "run_time", "status", "user_id", "processors", "estimate"]
    assert jobs.columns == needed
    assert jobs.equals(whole.select(needed))


def test_columns_are_read_one_by_one_into_whole_arrays(workload_file: Path, small_parts: None) -> None:
    table = read_columns(workload_file)
    assert table.equals(pl.read_parquet(workload_file))
    assert table["submit_time"].n_chunks() == 1


# -- cleaning


@pytest.fixture
def small_texts(small_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every log above 1 kB as large, and read parts of a few lines."""
    monkeypatch.setattr(swf, "LARGE_TEXT", 1000)
    monkeypatch.setattr(reading, "PART", 700)


def _log(folder: Path, name: str = "log.swf", header: str = "; MaxProcs: 64\n", shuffled: bool = False) -> Path:
    fields = generate_lublin(400, 64, generator(1, "text"), load=0.9, users=True)
    fields = fields.with_columns(
        wait_time=pl.int_range(pl.len()).cast(pl.Float64) % 50,
        status=pl.int_range(pl.len()) % 6,
        run_time=pl.when(pl.int_range(pl.len()) % 11 == 0).then(0.0).otherwise("run_time"),
    )
    if shuffled:
        fields = fields.sample(fraction=1.0, shuffle=True, seed=1)
    swf.write_swf(folder / f"plain-{name}", fields)
    lines = (folder / f"plain-{name}").read_bytes() if not name.endswith(".gz") else None
    text = header.encode() + (lines if lines is not None else gzip.decompress((folder / f"plain-{name}").read_bytes()))
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


OPTIONS: list[dict[str, Any]] = [
    {},
    {"drop": ["zero-run-time"], "without_status": (5, 1), "flurries": ("user_id == 1 and job_id < 100",)},
    {"processors": 32, "nodes": 16},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    ("name", "header", "shuffled"),
    [("log.swf", "; MaxProcs: 64\n", False), ("log.swf.gz", "", False), ("log.swf", "", True)],
)
def test_cleaning_in_parts_equals_cleaning_the_whole(
    tmp_path: Path, options: dict[str, Any], name: str, header: str, shuffled: bool, request: pytest.FixtureRequest
) -> None:
    path = _log(tmp_path, name, header, shuffled)
    clean_into(path, tmp_path / "whole.parquet", name="x", **options)
    request.getfixturevalue("small_texts")
    narrow = clean_into(path, tmp_path / "parts.parquet", name="x", columns=("status",), **options)
    whole, parts = (read_workload(tmp_path / f"{one}.parquet") for one in ("whole", "parts"))
    assert parts.jobs.equals(whole.jobs)
    assert parts.jobs.schema == whole.jobs.schema
    assert read_metadata(tmp_path / "parts.parquet") == read_metadata(tmp_path / "whole.parquet")
    assert narrow.jobs.equals(whole.jobs.select(narrow.jobs.columns))
    assert not list(tmp_path.glob(".*"))


def test_a_large_log_loses_dependencies_on_removed_jobs_like_a_small_one(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """They stayed in, and the simulation refused the workload."""
    fields = generate_lublin(400, 64, generator(1, "text"), load=0.9, users=True)
    after = pl.when(pl.col("job_id") > 150).then(pl.concat_list(pl.col("job_id") - 150))
    fields = fields.with_columns(depends_on=after, status=pl.col("job_id") % 6)
    write_log(tmp_path / "log.parquet", fields, {"MaxProcs": ["64"]}, ())
    clean_into(tmp_path / "log.parquet", tmp_path / "whole.parquet", name="x", without_status=(5,))
    request.getfixturevalue("small_parts")
    clean_into(tmp_path / "log.parquet", tmp_path / "parts.parquet", name="x", without_status=(5,))
    whole, parts = (read_workload(tmp_path / f"{one}.parquet") for one in ("whole", "parts"))
    assert parts.jobs.equals(whole.jobs) and 0 < whole.jobs["depends_on"].count() < 250
    assert read_metadata(tmp_path / "parts.parquet") == read_metadata(tmp_path / "whole.parquet")


REST = " 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1\n"


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    "fault",
    ["1 2 3\n", "8001 0 -1 x" + REST, "8001 0 -1 1e15" + REST, "200 0 -1 60" + REST, "-1 0 -1 60" + REST, "\0"],
)  # fmt: skip
def test_errors_of_a_large_log_are_those_of_a_small_one(
    tmp_path: Path, lenient: bool, fault: str, request: pytest.FixtureRequest
) -> None:
    path = _log(tmp_path)
    path.write_text(path.read_text() + 2 * fault)

    def told() -> str:
        try:
            made = clean_into(path, tmp_path / "made.parquet", name="x", lenient=lenient)
        except SwflowError as error:
            return str(error)
        return json.dumps(made.history, sort_keys=True)

    expected = told()
    request.getfixturevalue("small_texts")
    assert told() == expected


# -- figures


@pytest.fixture(scope="module")
def database(workload_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database with two runs."""
    folder = tmp_path_factory.mktemp("database")
    simulate_all(workload_file, {"fcfs": {}, "easy": {"backfill": "easy"}}, folder / "small")
    load([folder / "small"], folder / "small.duckdb")
    return folder / "small.duckdb"


def _numbers(part: Any) -> list[Any]:
    """Return all contents of a specification, in order."""
    if isinstance(part, dict):
        return [value for key in sorted(part.keys() - {"name", "usermeta"}) for value in [key, *_numbers(part[key])]]
    return [value for one in part for value in _numbers(one)] if isinstance(part, list) else [part]


@pytest.mark.parametrize("kind", ["heatmap", "bubbles", "difference"])
def test_figures_in_parts_equal_figures_of_the_whole(database: Path, kind: str, request: pytest.FixtureRequest) -> None:
    whole = draw(kind, database, log="small", interactive=True)
    request.getfixturevalue("small_parts")
    parts = draw(kind, database, log="small", interactive=True)
    for found, expected in zip(_numbers(parts), _numbers(whole), strict=True):
        if isinstance(expected, float):
            assert found == pytest.approx(expected, rel=1e-3, abs=1e-6)
        elif not str(expected).startswith(("data-", "view_")):
            assert found == expected


def test_a_database_loaded_in_parts_equals_the_database(
    database: Path, workload_file: Path, tmp_path: Path, small_parts: None
) -> None:
    simulate_all(workload_file, {"fcfs": {}, "easy": {"backfill": "easy"}}, tmp_path / "small")
    load([tmp_path / "small"], tmp_path / "parts.duckdb")
    for table in ("jobs", "outcomes", "checks", "fairness", "heatmaps", "bubbles", "bubbles_11", "comparisons",
                  "workloads", "names", "removals"):  # fmt: skip
        found, expected = (query(one, f"FROM {table} ORDER BY ALL") for one in (tmp_path / "parts.duckdb", database))
        assert found == expected, table
