"""A database that was updated equals one that was built from nothing."""

from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pytest

from swflow.database.load import load
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.studies.runs import simulate_all
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin

SCHEDULERS = {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}}


def make_runs(folder: Path, name: str, *, seed: int = 1, column: str | None = None) -> Path:
    """Write a workload, possibly with another column, and simulate it; return the folder of its runs."""
    file = folder / "workloads" / f"{name}.parquet"
    workload = clean(generate_lublin(150, 32, generator(seed, "x")), Machine.of(32), name=name)
    if column:
        workload = replace(workload, jobs=workload.jobs.with_columns(pl.lit(7.5).alias(column)))
    write_workload(workload, file)
    simulate_all(file, SCHEDULERS, folder / "runs" / name)
    return folder / "runs" / name


def tables(database: Path) -> dict[str, tuple[list[str], list[tuple]]]:
    """Return the columns and the sorted rows of each table."""
    with duckdb.connect(database, read_only=True) as connection:
        names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        result = {}
        for name in names:
            columns = [about[0] for about in connection.execute(f'SELECT * FROM "{name}"').description]
            result[name] = columns, sorted(connection.fetchall(), key=repr)
        return result


@pytest.fixture
def updated(tmp_path):
    """Return a function that loads runs into a database with others, and compares it with a new one."""

    def update(before: list[Path], after: list[Path]) -> dict[str, tuple[list[str], list[tuple]]]:
        load(before, tmp_path / "updated.duckdb")
        load(after, tmp_path / "updated.duckdb")
        load(after, tmp_path / "new.duckdb")
        new = tables(tmp_path / "new.duckdb")
        assert tables(tmp_path / "updated.duckdb") == new
        return new

    return update


def test_comparisons_of_two_schedulers_have_a_distance(tmp_path):
    runs = [make_runs(tmp_path, "A"), make_runs(tmp_path, "A+b", seed=2)]
    asked = {"one": [("A/easy", "A/fcfs"), ("A+b/easy", "A+b/fcfs"), ("A+b/easy", "A/easy")]}
    load(runs, tmp_path / "d.duckdb", asked=asked)
    with duckdb.connect(tmp_path / "d.duckdb", read_only=True) as connection:
        sql = "SELECT variant, base, distance FROM comparisons WHERE score IS NOT NULL"
        rows = connection.execute(sql).fetchall()
    workloads = [({name.partition("/")[0] for name in pair}, distance) for *pair, distance in rows]
    assert {len(names) for names, _ in workloads} == {1, 2}
    assert all((distance is None) == (len(names) == 2) for names, distance in workloads)
    assert any(distance for _, distance in workloads)


@pytest.mark.slow
def test_columns_of_removed_workloads_leave_the_table_of_jobs(tmp_path, updated):
    plain = [make_runs(tmp_path, name) for name in ("A", "B", "C")]
    columns, _ = updated([*plain, make_runs(tmp_path, "D", column="memory_bandwidth")], plain)["jobs"]
    assert "memory_bandwidth" not in columns
    columns, _ = updated(plain, [*plain, make_runs(tmp_path, "A0", column="memory_bandwidth")])["jobs"]
    assert "memory_bandwidth" in columns


@pytest.mark.slow
def test_comparisons_of_recipes_follow_their_replicates(tmp_path, updated):
    """A recipe may have replicates, and a run of the same name without a replicate."""
    first, second, third = (make_runs(tmp_path, f"A+s@{number}", seed=number) for number in (1, 2, 3))
    others = [make_runs(tmp_path, name, seed=9) for name in ("A", "A+s", "B", "C")]
    columns, rows = updated([*others, first, second], [*others, first, second, third])["comparisons"]
    rows = [dict(zip(columns, row, strict=True)) for row in rows]
    assert {row["blocks"] for row in rows if row["basis"] == "replicates"} == {3}
