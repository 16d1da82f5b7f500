"""Test keeping runs, loading them into the database, and querying it."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from helpers.runs import SCHEDULERS, write_workloads
from swflow.analysis.metrics import Middle, metrics
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.files.store import STORE, Store
from swflow.files.tables import read_metadata, write_table, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import runs_in, simulate_all
from swflow.workload.clean import open_workload


@pytest.fixture
def runs(tmp_path):
    """Simulate two workloads under two schedulers, and return the folders of their runs."""
    folders = []
    for path in write_workloads(tmp_path, 2):
        folder = tmp_path / "runs" / path.stem
        simulate_all(path, SCHEDULERS, folder)
        folders.append(folder)
    return folders


def test_database_holds_every_run_once_and_joins(tmp_path, runs):
    database = tmp_path / "d.duckdb"
    counts = load(runs, database)
    assert (counts["runs"], counts["outcomes"], counts["jobs"], counts["schedulers"]) == (4, 1200, 600, 2)
    _, rows = query(
        database, "SELECT run, count(*) FROM outcomes JOIN jobs USING (workload, job_id) GROUP BY 1 ORDER BY 1"
    )
    assert rows == [("A/easy", 300), ("A/fcfs", 300), ("B/easy", 300), ("B/fcfs", 300)]
    _, rows = query(
        database,
        "SELECT max(abs(m.awwt - o.awwt)) FROM metrics m JOIN (SELECT run, sum(processors * run_time * wait_time) / "
        "sum(processors * run_time) AS awwt FROM outcomes GROUP BY run) o USING (run)",
    )
    assert rows[0][0] == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_runs_that_are_inserted_together_keep_their_order(tmp_path, monkeypatch):
    from swflow.files import tables

    sources = write_workloads(tmp_path, 3)
    wider = pl.read_parquet(sources[1]).with_columns(memory_bandwidth=pl.lit(1.5))
    write_workload(Workload(wider, Machine.of(32), sources[1].stem), sources[1])
    for number, source in enumerate(sources):
        simulate_all(source, SCHEDULERS, tmp_path / "runs" / str(number))
    found = []
    for most in (tables.MOST_AT_ONCE, 500):  # all runs in one statement, and two runs in each
        monkeypatch.setattr(tables, "MOST_AT_ONCE", most)
        load([tmp_path / "runs"], tmp_path / f"{most}.duckdb")
        with duckdb.connect(tmp_path / f"{most}.duckdb", read_only=True) as connection:
            sql = "SELECT run, scheduler, workload, start_time FROM outcomes"
            jobs = connection.execute("SELECT workload, submit_time, memory_bandwidth FROM jobs").fetchall()
            found.append((connection.execute(sql).fetchall(), jobs))
    assert found[0] == found[1]
    rows, jobs = found[0]
    expected = []
    for number, source in enumerate(sources):
        for scheduler in sorted(SCHEDULERS):
            written = pl.read_parquet(tmp_path / "runs" / str(number) / f"{scheduler}.parquet")["start_time"]
            expected += [(f"{source.stem}/{scheduler}", scheduler, source.stem, start) for start in written]
    assert rows == expected
    widths = [1.5 if source == sources[1] else None for source in sources for _ in range(300)]
    submits = [time for source in sources for time in pl.read_parquet(source)["submit_time"]]
    names = [source.stem for source in sources for _ in range(300)]
    assert jobs == list(zip(names, submits, widths, strict=True))


@pytest.mark.slow
def test_processes_and_reading_runs_one_by_one_change_no_comparison(tmp_path, monkeypatch):
    from swflow.database import load as module
    from swflow.files import tables

    for number, source in enumerate(write_workloads(tmp_path, 2)):
        workload, job = open_workload(source), pl.col("job_id")
        jobs = workload.jobs.with_columns(user_id=job % 3, wait_time=(job % 50).cast(pl.Float64) * 60)
        write_workload(replace(workload, jobs=jobs), source)
        simulate_all(source, SCHEDULERS | {"log": {"order": "log"}}, tmp_path / "runs" / str(number))
    monkeypatch.setattr(module, "MANY_RUNS", 1)
    found = []
    for processes, most in ((1, tables.MOST_AT_ONCE), (2, tables.MOST_AT_ONCE), (1, 500), (1, 100)):
        monkeypatch.setattr(tables, "MOST_AT_ONCE", most)  # 500: a run is read at once, two are not
        load([tmp_path / "runs"], tmp_path / "d.duckdb", processes=processes)
        with duckdb.connect(tmp_path / "d.duckdb", read_only=True) as connection:
            names = ("comparisons", "heatmaps", "bubbles", "bubbles_11", "fairness", "fidelity")
            found.append([connection.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in names])
        (tmp_path / "d.duckdb").unlink()
    assert all(found[0])
    assert found[1:] == found[:1] * 3


def test_a_folder_denotes_the_runs_in_it(tmp_path, runs):
    database = tmp_path / "d.duckdb"
    assert load([tmp_path / "runs"], database)["runs"] == 4
    (runs[0] / "runs.json").unlink()
    assert load([tmp_path / "runs"], database)["runs"] == 4
    (tmp_path / "no runs").mkdir()
    with pytest.raises(SwflowError, match="no runs; create one with") as raised:
        load([tmp_path / "no runs"], database)
    assert shlex.split(str(raised.value))[-1] == str(tmp_path / "no runs" / "RUN.parquet")


@pytest.fixture
def simulated(monkeypatch):
    """Return the list to which every simulation adds the name of its workload and its scheduler's order."""
    from swflow.studies import runs as module

    calls, simulate = [], module.simulate_counted

    def counted(workload, scheduler):
        calls.append((workload.name, scheduler.order))
        return simulate(workload, scheduler)

    monkeypatch.setattr(module, "simulate_counted", counted)
    return calls


def test_only_runs_that_the_store_lacks_are_simulated(tmp_path, simulated):
    source, other = write_workloads(tmp_path, 2)
    store, folder = Store(tmp_path / "store"), tmp_path / "runs/A"
    plan = {"fcfs": {"backfill": "none"}, "sjf": {"order": "sjf"}}

    def made(**options):
        simulated.clear()
        simulate_all(source, plan, folder, store=store, **options)
        names = sorted(path.name for path in folder.glob("*.parquet"))
        assert {file.name for file in runs_in(folder)} == {f"{name}.parquet" for name in plan} <= {*names}
        return [order for _, order in simulated]

    assert made() == ["fcfs", "sjf"]
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)  # as Snakemake does before a job
    assert made() == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
    plan["fcfs"] = {"backfill": "none", "estimates": "kill"}
    assert made() == ["fcfs"]
    plan["wide"] = {"order": "processors"}
    assert made() == ["processors"]
    assert made(middle=Middle("10 jobs")) == ["fcfs", "sjf", "processors"]  # the metrics are in the files
    (folder / "sjf.parquet").write_bytes(b"damaged")  # and its link in the store
    assert made(middle=Middle("10 jobs")) == ["sjf"]
    plan["renamed"] = plan.pop("wide")  # the name is in the file
    assert made() == ["processors"]
    source.write_bytes(other.read_bytes())
    assert made() == ["fcfs", "sjf", "processors"]
    plan["fcfs"] = {"backfill": "none"}
    assert made() == ["fcfs"]
    assert load([folder], tmp_path / "d.duckdb")["runs"] == 3


def test_a_failed_simulation_keeps_those_before_it(tmp_path, simulated):
    (source,) = write_workloads(tmp_path)
    plan = {"fcfs": {"backfill": "none"}, "fails": {"order": "memory_bandwidth"}, "sjf": {"order": "sjf"}}
    store, folder = Store(tmp_path / "store"), tmp_path / "runs/A"
    with pytest.raises(SwflowError):
        simulate_all(source, plan, folder, store=store)
    assert not (folder / "runs.json").exists()
    del plan["fails"]
    simulated.clear()
    simulate_all(source, plan, folder, store=store)
    assert [order for _, order in simulated] == ["sjf"]


def test_an_edited_policy_is_simulated_again(tmp_path, simulated, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (source,) = write_workloads(tmp_path)
    text = "from swflow.policies import Easy\n\n\nclass Mine(Easy):\n    {}\n"
    plan = {"mine": {"policy": "mine.py:Mine"}, "fcfs": {"backfill": "none"}}
    made = []
    for body in ("pass", "slack = 2", "slack = 2  # a comment", "pass"):
        Path("mine.py").write_text(text.format(body))
        made.append(simulate_all(source, plan, tmp_path / "runs/A", store=Store(tmp_path / "store")))
    assert made == [["mine", "fcfs"], ["mine"], [], []]


def test_a_store_of_runs_is_not_a_folder_of_runs(tmp_path):
    (source,) = write_workloads(tmp_path)
    simulate_all(source, SCHEDULERS, tmp_path / "runs/A", store=Store(tmp_path / "runs" / STORE / "code"))
    assert load([tmp_path / "runs"], tmp_path / "d.duckdb")["runs"] == 2


def test_a_removed_run_leaves_no_row(tmp_path, runs):
    database = tmp_path / "d.duckdb"
    load(runs, database)
    load(runs[:1], database)
    for table in ("outcomes", "jobs", "runs", "metrics", "workloads", "removals"):
        assert query(database, f"SELECT DISTINCT workload FROM {table}")[1] == [("A",)], table


@pytest.mark.slow
def test_the_name_of_a_folder_is_not_a_pattern(tmp_path):
    """As a pattern, "a[1]" would match the folder "a1"."""
    for folder, jobs in (("a1", 20), ("a[1]", 30), ("b*", 40)):
        (source,) = write_workloads(tmp_path / folder, jobs=jobs)
        simulate_all(source, SCHEDULERS, tmp_path / folder / "runs" / "A")
        load([tmp_path / folder / "runs" / "A"], tmp_path / "d.duckdb")
        _, rows = query(tmp_path / "d.duckdb", "SELECT DISTINCT count(*) FROM outcomes GROUP BY run")
        assert rows == [(jobs,)], folder


def test_load_refuses_inconsistent_files(tmp_path, runs):
    database = tmp_path / "d.duckdb"
    load(runs, database)
    twin = shutil.copy(runs[0] / "easy.parquet", tmp_path / "twin.parquet")
    table, about = pl.read_parquet(twin), read_metadata(twin)
    others, fewer = tmp_path / "others.parquet", tmp_path / "fewer.parquet"
    write_table(table.with_columns(pl.col("job_id") + 10), others, about)
    write_table(table.head(299), fewer, about)
    cases = {
        "A: 10 outcomes have no job": lambda: load([others], tmp_path / "other.duckdb"),
        "fewer.parquet.*: 299 rows instead of 300": lambda: load([fewer], tmp_path / "other.duckdb"),
        "two runs are called 'A/easy'": lambda: load([*runs, twin], database),
        "no such file": lambda: load([tmp_path / "nothing"], database),
        "not a run of swflow": lambda: load([tmp_path / "workloads" / "A.parquet"], database),
        "no run given": lambda: load([], database),
    }
    for words, call in cases.items():
        with pytest.raises(SwflowError, match=words):
            call()
    (runs[0] / "easy.parquet").unlink()
    with pytest.raises(SwflowError, match=r"easy\.parquet: missing, but runs\.json lists it"):
        load(runs, database)
    write_workloads(tmp_path, 2, jobs=299)
    with pytest.raises(SwflowError, match="changed since 'B' was simulated; simulate it again"):
        load(runs[1:], database)
    assert query(database, "SELECT count(*) FROM runs")[1] == [(4,)]


@pytest.mark.slow
def test_a_killed_load_leaves_the_old_database(tmp_path, runs):
    """Kill the process at many moments: readers always find either the old or the new database."""
    database = tmp_path / "d.duckdb"
    load(runs[:1], database)
    command = f"load({[str(r) for r in runs]}, {str(database)!r})"
    program = f"from swflow.database.load import load; print('go', flush=True); {command}"
    seen = set()
    for delay in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, None):
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        child.stdout.readline()
        if delay is not None:  # the last process may end
            time.sleep(delay)
            os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        _, rows = query(
            database, "SELECT count(DISTINCT run), count(*) FROM outcomes JOIN jobs USING (workload, job_id)"
        )
        assert rows[0] in {(2, 600), (4, 1200)}
        seen.add(rows[0])
    assert (4, 1200) in seen
    load(runs, database)
    assert query(database, "SELECT count(*), count(DISTINCT run) FROM outcomes")[1] == [(1200, 4)]


def test_added_columns_and_nested_ones_reach_the_database(tmp_path):
    shape = pl.List(pl.Struct({"processors": pl.Int64, "run_time": pl.Float64}))
    jobs = pl.DataFrame(
        {"job_id": [1], "submit_time": [0.0], "run_time": [5.0], "estimate": [5.0], "processors": [2],
         "memory_bandwidth": [500.0], "shapes": [[{"processors": 2, "run_time": 5.0}]]},
        schema_overrides={"shapes": shape},
    )  # fmt: skip
    write_workload(Workload(jobs, Machine.of(4), "A", history=({"stage": "x", "kept": 1},)), tmp_path / "A.parquet")
    simulate_all(tmp_path / "A.parquet", SCHEDULERS, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    _, rows = query(tmp_path / "d.duckdb", "SELECT memory_bandwidth, shapes[1].run_time FROM jobs")
    assert rows == [(500.0, 5.0)]


def test_published_values_are_compared_with_ours(tmp_path):
    (source,) = write_workloads(tmp_path)
    kth = source.with_name("KTH-SP2.parquet")
    source.rename(kth)
    simulate_all(kth, SCHEDULERS, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    which = """row = 'KTH ref EASY' AND "column" = 'number of jobs'"""
    _, rows = query(tmp_path / "d.duckdb", f"SELECT published, ours, difference FROM reproduction WHERE {which}")
    assert rows == [(28482, 300, 300 - 28482)]


@pytest.mark.slow
def test_published_values_without_ours_state_the_reason(tmp_path):
    (source,) = write_workloads(tmp_path)
    kth = source.with_name("KTH-SP2.parquet")
    source.rename(kth)
    simulate_all(kth, {"easy": {"backfill": "easy"}}, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    reasons = {
        "KTH ref EASY": None,
        "KTH ref FCFS": "scheduler not run",
        "KTH f=10.71 EASY": "workload not run",
        "SDSC00 ref EASY": "log not here",
    }
    _, rows = query(
        tmp_path / "d.duckdb",
        f"""SELECT DISTINCT row, reason FROM reproduction WHERE "table" = 'Table IV' AND row IN {tuple(reasons)}""",
    )
    assert dict(rows) == reasons
    _, rows = query(tmp_path / "d.duckdb", "SELECT count(*), count(ours) FROM reproduction WHERE published IS NULL")
    assert rows == [(query(tmp_path / "d.duckdb", "SELECT count(*) FROM published WHERE value IS NULL")[1][0][0], 0)]
    columns, rows = query(tmp_path / "d.duckdb", "FROM coverage ORDER BY ALL")
    assert columns == ["paper", "table", "published", "compared", "within_1", "within_5", "within_10", "further_off",
                       "missing", "inside_draws", "other_version", "other_reading", "open"]  # fmt: skip
    for _, _, published, compared, one, five, ten, further, missing, *verdicts in rows:
        assert published == compared + missing
        assert further == sum(verdicts)
        assert one <= five <= ten == compared - further
    _, cells = query(tmp_path / "d.duckdb", 'SELECT paper, "table", row, "column", reason IS NULL FROM reproduction')
    once = {(paper, table, row.partition(" (here")[0], column, ours) for paper, table, row, column, ours in cells}
    assert len(once) < len(cells) < len(once) + 20  # some cells of Cirne and Berman refer to two years of a log
    _, rows = query(tmp_path / "d.duckdb", "SELECT sum(published), sum(compared) FROM coverage")
    assert rows == [(len(once), sum(ours for *_, ours in once))]


def test_conventions_give_a_range_of_values():
    from swflow.papers.views import CONVENTION_VALUES, SENSITIVITY

    with duckdb.connect() as connection:
        connection.execute(
            """CREATE TABLE published (paper VARCHAR, "table" VARCHAR, row VARCHAR, "column" VARCHAR, value DOUBLE,
                workload VARCHAR, scheduler VARCHAR, figure VARCHAR);
            INSERT INTO published VALUES
                ('P', 'T', 'whole', 'c', 100, 'A', 'easy', 'awrt'), ('P', 'T', 'ran', 'c', 0.52, 'A+ran', 'easy',
                'spearman_slowdown'), ('P', 'T', 'no run', 'c', 5, 'A', NULL, 'jobs'),
                ('P', 'T', 'alone', 'c', 5, 'B', 'easy', 'awrt');
            CREATE TABLE conventions (convention VARCHAR, choice VARCHAR, part VARCHAR, published VARCHAR,
                ours VARCHAR);
            INSERT INTO conventions VALUES ('estimates', 'kill', 'scheduler', 'easy', 'easy-kill'),
                ('cancelled', 'with', 'step', 'ran', NULL), ('cancelled', 'without', 'step', NULL, 'ran'),
                ('version', 'raw', 'log', 'A', 'A-raw');
            CREATE TABLE medians (workload VARCHAR, scheduler VARCHAR, figure VARCHAR, value DOUBLE);
            INSERT INTO medians VALUES ('A', 'easy', 'awrt', 90), ('A+ran', 'easy', 'awrt', 99),
                ('A', 'easy-kill', 'awrt', 70), ('A-raw', 'easy', 'awrt', 95), ('B', 'easy', 'awrt', 4),
                ('A+ran', 'easy', 'spearman_slowdown', 0.5), ('A', 'easy', 'spearman_slowdown', 0.516),
                ('A-raw+ran', 'easy', 'spearman_slowdown', 0.49)"""
        )
        connection.execute(CONVENTION_VALUES)
        connection.execute(SENSITIVITY)
        columns = (
            "row, ours, lowest, highest, inside, round(outside_by, 3), decides, lowest_choice, highest_choice, choices"
        )
        rows = connection.execute(f"SELECT {columns} FROM sensitivity ORDER BY row DESC").fetchall()
    assert rows == [
        ("whole", 90, 70, 99, False, 1, "estimates", "kill", "without", 3),
        ("ran", 0.5, 0.49, 0.516, True, 0.004, "cancelled", "raw", "with", 2),  # 0.516 is printed as 0.52
    ]


def test_conventions_are_runs_of_the_archive():
    import yaml

    from swflow.papers import published_tables, published_values

    config = yaml.safe_load((Path(__file__).parents[2] / "config/archive.yaml").read_text())
    values = published_values()
    for row in published_tables()["conventions"].iter_rows(named=True):
        if row["part"] == "scheduler":
            assert row["ours"] in config["schedulers"]
            assert row["published"] in values["scheduler"].to_list()
        if row["part"] == "log":
            assert row["ours"] in config["studies"]["conventions"]["logs"]


def test_a_paper_can_have_several_readings(tmp_path):
    (source,) = write_workloads(tmp_path)
    kth = source.with_name("KTH-SP2.parquet")
    source.rename(kth)
    both = {"easy": {"backfill": "easy"}, "easy-per-event": {"backfill": "easy", "event_order": "per-event"}}
    simulate_all(kth, both, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    _, rows = query(
        tmp_path / "d.duckdb",
        """SELECT reading, scheduler, ours = (SELECT awrt FROM metrics WHERE scheduler = 'easy-per-event')
        FROM readings WHERE row = 'KTH ref EASY' AND "column" = 'AWRT'""",
    )
    assert rows == [("pass after every event", "easy-per-event", True)]


def test_query_is_read_only_and_wrong_sql_is_one_line(tmp_path, runs):
    database = tmp_path / "d.duckdb"
    load(runs, database)
    for sql in ("SELEC 1", "SELECT nothing FROM metrics", "DROP TABLE runs", "SELECT * FROM nowhere"):
        with pytest.raises(SwflowError, match=r"^sql: [^\n]+$"):
            query(database, sql)
    query(database, "SELECT run, jobs FROM metrics ORDER BY run;", tmp_path / "m.csv", "csv")
    assert (tmp_path / "m.csv").read_text().splitlines()[:2] == ["run,jobs", "A/easy,300"]
    query(database, "SELECT * FROM outcomes", tmp_path / "o.parquet", "parquet")
    assert pl.read_parquet(tmp_path / "o.parquet").height == 1200


def test_metadata_describes_how_a_run_was_built(runs):
    about = read_metadata(runs[0] / "easy.parquet")
    assert about["options"]["backfill"] == "easy"
    assert about["metrics"]["jobs"] == 300


def test_the_database_is_readable_by_plain_duckdb(tmp_path, runs):
    load(runs, tmp_path / "d.duckdb")
    with duckdb.connect(tmp_path / "d.duckdb", read_only=True) as connection:
        names = {row[0] for row in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    assert {"workloads", "schedulers", "jobs", "runs", "outcomes", "metrics", "correlations", "published",
            "reproduction"} <= names  # fmt: skip


def test_replicates_are_summarized_with_a_confidence_interval(tmp_path):
    sources = write_workloads(tmp_path, 4)
    for number, source in enumerate(sources[:3], start=1):
        source.rename(source.with_name(f"A+drawn@{number}.parquet"))
        simulate_all(source.with_name(f"A+drawn@{number}.parquet"), SCHEDULERS, tmp_path / "runs" / str(number))
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    sql = "SELECT * EXCLUDE (log) FROM replicates WHERE scheduler = 'easy' AND measure = 'mean_wait_time'"
    ((recipe, _, _, count, mean, median, deviation, low, high),) = query(tmp_path / "d.duckdb", sql)[1]
    _, rows = query(tmp_path / "d.duckdb", "SELECT mean_wait_time FROM metrics WHERE scheduler = 'easy'")
    values = np.array(rows)[:, 0]
    assert (recipe, count) == ("A+drawn", 3)
    assert (mean, median, deviation) == pytest.approx((values.mean(), np.median(values), values.std(ddof=1)))
    # Student's t with 2 degrees of freedom, two-sided 5 %, from a printed table
    half = 4.303 * values.std(ddof=1) / np.sqrt(3)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-3)
    _, compared = query(tmp_path / "d.duckdb", "SELECT DISTINCT variant, base FROM comparisons")
    recipes = ["A+drawn", "A+drawn@1", "A+drawn@2", "A+drawn@3"]
    assert sorted(compared) == [(f"{name}/easy", f"{name}/fcfs") for name in recipes]
    sql = "SELECT basis, mean_difference, score FROM comparisons WHERE measure = 'wait_time' ORDER BY variant"
    (together, *each) = query(tmp_path / "d.duckdb", sql)[1]
    assert together == ("replicates", *(pytest.approx(np.mean([row[place] for row in each])) for place in (1, 2)))


def test_error_messages_count_all_jobs_of_the_run(tmp_path):
    from swflow.studies.runs import run

    (source,) = write_workloads(tmp_path, jobs=300)
    workload = open_workload(source)
    elsewhere = workload.with_jobs(workload.jobs.with_columns(partition_id=pl.lit(7, pl.Int64)), {"stage": "test"})
    partitions = Scheduler(clusters=({"processors": 32, "partition": 1},), dispatch="partition")
    with pytest.raises(SwflowError, match=r"300 jobs of A have no cluster"):
        run(elsewhere, partitions)
    policy = tmp_path / "idle.py"
    policy.write_text("class Idle:\n    def decide(self, now, queue, running, machine):\n        return []\n")
    with pytest.raises(SwflowError, match=r"300 jobs are never started"):
        run(workload, Scheduler(policy=f"{policy}:Idle"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("warm_up", "cool_down"), [("100 jobs", "50 jobs"), ("1 day", "0.5 days"), ("1 day", ""), ("", "70 jobs")]
)
def test_metrics_without_warm_up_and_cool_down_equal_those_of_a_plain_filter(tmp_path, warm_up, cool_down):
    (source,) = write_workloads(tmp_path)
    database = tmp_path / "d.duckdb"
    simulate_all(source, SCHEDULERS, tmp_path / "A")
    outcomes = {name: pl.read_parquet(tmp_path / "A" / f"{name}.parquet") for name in SCHEDULERS}
    simulate_all(source, SCHEDULERS, tmp_path / "A", middle=Middle(warm_up, cool_down))
    load([tmp_path / "A"], database)
    for name, table in outcomes.items():
        assert pl.read_parquet(tmp_path / "A" / f"{name}.parquet").equals(table)  # everything is simulated
        first, last = table["submit_time"].min(), table["submit_time"].max()
        kept = []
        for row in table.sort("submit_time", "job_id").with_row_index().iter_rows(named=True):
            early = {
                "100 jobs": row["index"] < 100, "1 day": row["submit_time"] < first + 86400, "": False,
            }  # fmt: skip
            late = {
                "50 jobs": row["index"] >= 250, "70 jobs": row["index"] >= 230,
                "0.5 days": row["submit_time"] > last - 43200, "": False,
            }  # fmt: skip
            if not early[warm_up] and not late[cool_down]:
                kept.append(row["job_id"])
        assert 0 < len(kept) < 300
        wanted = metrics(table.filter(pl.col("job_id").is_in(kept)), 32)
        names = ("jobs", "mean_wait_time", "p95_bounded_slowdown", "utilization", "awrt")
        _, (row,) = query(database, f"SELECT {', '.join(names)} FROM metrics WHERE run = 'A/{name}'")
        assert row == pytest.approx(tuple(wanted[key] for key in names))


def test_a_wrong_warm_up_is_an_error(tmp_path):
    (source,) = write_workloads(tmp_path)
    with pytest.raises(SwflowError, match="cool_down: 'a week'; expected days or jobs"):
        Middle("", "a week")
    for amounts in (("300 jobs", ""), ("", "300 jobs"), ("", "1000 jobs"), ("1000 jobs", "")):
        with pytest.raises(SwflowError, match=r"A: .*: excludes all 300 jobs from the metrics"):
            simulate_all(source, SCHEDULERS, tmp_path / "A", middle=Middle(*amounts))
