"""Verdicts on published values, and claims of the papers."""

import re
import sys
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
import yaml

from swflow.database.load import load
from swflow.database.schema import TABLES
from swflow.figures import FIGURES
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.names import recipe_of
from swflow.papers import published_tables, published_values, read_papers
from swflow.papers.claims import check_claims, published_claims
from swflow.papers.draws import FEWEST_DRAWS, fill_draws, one_more
from swflow.papers.views import (
    CELLS,
    COVERAGE,
    DRAW_MACROS,
    PLACED,
    READINGS,
    REPRODUCTION,
    VERDICTS,
    tolerance,
)
from swflow.studies.plan import study_runs
from swflow.studies.runs import simulate_all
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import papers  # noqa: E402  its folder is on no path before


@pytest.fixture
def cells():
    """Return a database whose published values are compared with ours, one for each verdict."""
    with duckdb.connect() as connection:
        for table in ("published", "reading_parts", "draws", "coverage"):
            connection.execute(f"CREATE TABLE {table} ({TABLES[table]})")
        connection.execute(
            """CREATE TABLE medians (workload VARCHAR, scheduler VARCHAR, figure VARCHAR, value DOUBLE);
            INSERT INTO published VALUES
                ('P', 'T', 'exact', 'c', 100, 'A', 'easy', 'makespan', 0.5),
                ('P', 'T', 'five', 'c', 104, 'A', 'easy', 'mean_wait_time', 0.5),
                ('P', 'T', 'ten', 'c', 109, 'A', 'easy', 'mean_response_time', 0.5),
                ('P', 'T', 'drawn', 'c', 130, 'A+step', 'easy', 'awrt', 0.5),
                ('P', 'T', 'jobs', 'c', 1000, 'B', NULL, 'jobs', 0.5),
                ('P', 'T', 'own', 'c', 400, 'B', 'fcfs', 'awrt', 0.5),
                ('P', 'T', 'follows', 'c', 300, 'B+step', 'fcfs', 'awrt', 0.5),
                ('P', 'T', 'beyond', 'c', 300, 'B+more', 'fcfs', 'awrt', 0.5),
                ('P', 'T', 'other way', 'c', 300, 'B+less', 'fcfs', 'awrt', 0.5),
                ('P', 'T', 'stood in', 'c', 50, 'C+step', 'fcfs', 'awrt', 0.5),
                ('P', 'T', 'read', 'c', 200, 'A', 'fcfs', 'awrt', 0.5),
                ('P', 'T', 'off', 'c', 500, 'A', 'easy', 'awrt', 0.5),
                ('P', 'T', 'nowhere', 'c', 5, NULL, NULL, 'jobs', 0.5);
            INSERT INTO reading_parts VALUES ('P', 'per event', 'scheduler', 'fcfs', 'fcfs-per-event'),
                ('P', 'cleaned', 'log', 'C', 'C-clean'), ('P', 'raw', 'log', 'A', 'A-raw');
            INSERT INTO draws VALUES ('A+step', 'easy', 'awrt', [90 + 4 * i for i in range(20)], 80, 165);
            INSERT INTO medians VALUES ('A', 'easy', 'makespan', 100), ('A', 'easy', 'mean_wait_time', 100),
                ('A', 'easy', 'mean_response_time', 100), ('A+step', 'easy', 'awrt', 100), ('B', NULL, 'jobs', 800),
                ('B', 'fcfs', 'awrt', 280), ('B+step', 'fcfs', 'awrt', 211), ('B+more', 'fcfs', 'awrt', 180),
                ('B+less', 'fcfs', 'awrt', 380), ('C-clean+step', 'fcfs', 'awrt', 50),
                ('A', 'fcfs', 'awrt', 100), ('A', 'fcfs-per-event', 'awrt', 198),
                ('A', 'easy', 'awrt', 100)"""
        )
        for statement in (PLACED, CELLS, READINGS, REPRODUCTION):
            connection.execute(statement)
        yield connection


def verdict_of(connection, row):
    """Return verdict and explanation of a row."""
    return connection.execute("SELECT verdict, explanation FROM reproduction WHERE row = $1", [row]).fetchone()


def test_each_cell_has_one_verdict_and_a_reason(cells):
    found = dict(cells.execute("SELECT row, (verdict, explanation) FROM reproduction").fetchall())
    assert {row: verdict for row, (verdict, _) in found.items()} == {
        "exact": "within 1 %",
        "five": "within 5 %",
        "ten": "within 10 %",
        "drawn": "inside the draws",
        "jobs": "another version of the log",
        "own": "another version of the log",
        "follows": "another version of the log",  # misses by 29.7 %, its log by 30 %
        "beyond": "open",
        "other way": "open",
        "stood in": "within 1 %",
        "read": "another reading",
        "off": "open",
        "nowhere": "not compared",
    }
    # 10 of the draws 90, 94 ... 166 are below 130, and one is equal.
    assert found["drawn"][1].endswith(
        "; the published value is at percentile 53; one more draw after 20 is from 80 to 165 with 95 %."
    )
    assert found["own"][1].endswith("; the paper counts 1,000 jobs in B, swflow's has 800.")
    assert found["follows"][1].endswith("swflow's has 800, and the log itself misses by -30.00 %.")
    assert "; from C-clean, because the log is not here" in found["stood in"][1]
    assert found["read"][1].endswith('; with the reading "per event", swflow has 198.')
    assert found["off"][1] == "swflow has 100, published is 500 (-80.00 %)."
    assert found["nowhere"][1] == "no public log"


def test_verdict_follows_the_published_value(cells):
    for row, factor, before, after in (
        ("exact", 1.3, "within 1 %", "open"),
        ("drawn", 1.3, "inside the draws", "open"),  # 169 is above the interval
        ("read", 1.3, "another reading", "open"),
        ("jobs", 0.8, "another version of the log", "within 1 %"),
    ):
        assert verdict_of(cells, row)[0] == before
        cells.execute("UPDATE published SET value = value * $1 WHERE row = $2", [factor, row])
        assert verdict_of(cells, row)[0] == after
    assert verdict_of(cells, "follows")[0] == "open"  # the log has as many jobs as published now


def test_few_draws_are_no_evidence(cells):
    cells.execute("UPDATE draws SET low = NULL, high = NULL")
    verdict, explanation = verdict_of(cells, "drawn")
    assert verdict == "open"
    assert "one more draw" not in explanation
    assert one_more([1.0] * (FEWEST_DRAWS - 1)) == (None, None)


@pytest.mark.parametrize("count", [20, 79])
def test_one_more_draw_is_in_its_interval_in_95_of_100_cases(count):
    rng = np.random.default_rng(count)
    samples, more = rng.normal(7, 3, (4000, count)), rng.normal(7, 3, 4000)
    if count == 79:  # from ranks, for any distribution
        samples, more = np.exp(samples), np.exp(more)
    intervals = np.array([one_more(list(sample)) for sample in samples])
    inside = np.mean((intervals[:, 0] <= more) & (more <= intervals[:, 1]))
    assert inside == pytest.approx(0.95, abs=0.012)  # 3.5 standard errors; a range of 20 draws would have 0.87


def test_draws_of_a_stand_in_are_found():
    with duckdb.connect() as connection:
        for table in ("published", "reading_parts", "draws"):
            connection.execute(f"CREATE TABLE {table} ({TABLES[table]})")
        connection.execute(
            """CREATE TABLE figures (workload VARCHAR, scheduler VARCHAR, figure VARCHAR, value DOUBLE);
            CREATE TABLE workloads (workload VARCHAR, recipe VARCHAR, replicate BIGINT);
            CREATE TABLE sweeps (workload VARCHAR, recipe VARCHAR, replicate BIGINT);
            INSERT INTO published VALUES ('P', 'T', 'r', 'c', 50, 'C+step', NULL, 'awrt', 0.5);
            INSERT INTO reading_parts VALUES ('P', 'cleaned', 'log', 'C', 'D');
            INSERT INTO figures SELECT 'D+step@' || i, NULL, 'awrt', 10 * i FROM range(1, 5) t(i);
            INSERT INTO sweeps SELECT 'D+step@' || i, 'D+step', i FROM range(1, 5) t(i)"""
        )
        fill_draws(connection)
        assert connection.execute("FROM draws").fetchall() == [("D+step", None, "awrt", [10, 20, 30, 40], None, None)]


def best_constant(rows):
    """Return the largest number of rows that one number matches within the widest tolerance."""
    return max(sum(abs(value - candidate) <= within for value, within in rows) for candidate, _ in rows)


def test_no_constant_meets_the_tolerances_of_correlations_and_points():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE published ({TABLES['published']})")
        printed = published_values().drop_nulls("value")
        connection.executemany(f"INSERT INTO published VALUES ({', '.join('?' * printed.width)})", printed.rows())
        rows = connection.execute(
            f"""SELECT concat(paper, "table", "column"), value, {tolerance("published", 10)} FROM published
            WHERE figure = 'correlation' OR figure LIKE 'spearman%' OR figure LIKE '%difference'"""
        ).fetchall()
    columns = {}
    for column, *row in rows:
        columns.setdefault(column, []).append(row)
    assert len(columns) == 9
    for column, some in columns.items():
        assert best_constant(some) <= max(2, 0.45 * len(some)), column
        assert sum(abs(value) <= within for value, within in some) <= sum(value == 0 for value, _ in some), column


@pytest.mark.parametrize(
    ("figure", "published", "ours", "expected"),
    [
        ("spearman_slowdown", 0.55, 0.545, "within 0.005"),
        ("spearman_slowdown", 0.55, 0.5399, "within 0.015"),
        ("spearman_response_time", 0.07, 0.0553, "within 0.015"),
        ("spearman_response_time", 0.07, 0.0524, "open"),
        ("correlation", 0.012, 0.0, "open"),
        ("squashed_area_difference", 5.3, -1, "open"),
        ("squashed_area_difference", 5.3, 4.8, "within 0.5 points"),
        ("squashed_area_difference", 5.3, 4.0, "within 2 points"),
        ("squashed_area_difference", 0.39, 0.0, "open"),
    ],
)
def test_correlations_and_points_are_named_by_their_tolerance(cells, figure, published, ours, expected):
    cells.execute("INSERT INTO published VALUES ('P', 'T', 'new', 'c', $1, 'A', 'log', $2, 0.005)", [published, figure])
    cells.execute("INSERT INTO medians VALUES ('A', 'log', $1, $2)", [figure, ours])
    assert verdict_of(cells, "new")[0] == expected


def test_a_model_that_stands_in_is_a_reading_and_no_comparison(cells):
    cells.execute(
        """INSERT INTO published VALUES ('P', 'T', 'model', 'c', 15, 'A+theirs', NULL, 'correlation', 0.5);
        INSERT INTO reading_parts VALUES ('P', 'a model after theirs', 'model', 'theirs', 'ours');
        INSERT INTO medians VALUES ('A+ours', NULL, 'correlation', 15)"""
    )
    assert verdict_of(cells, "model") == ("not compared", "model not here")
    found = cells.execute("SELECT reading, ours, workload FROM readings WHERE row = 'model'").fetchall()
    assert found == [("a model after theirs", 15.0, "A+ours")]


def test_coverage_counts_the_verdicts(cells):
    cells.execute(COVERAGE)
    (row,) = cells.execute('SELECT * EXCLUDE (paper, "table") FROM coverage').fetchall()
    assert row == (13, 12, 2, 3, 4, 8, 1, 1, 3, 1, 3)
    assert set(VERDICTS) == {verdict for (verdict,) in cells.execute("SELECT verdict FROM reproduction").fetchall()}


def test_every_paper_has_six_claims_whose_columns_are_complete():
    claims = published_claims()
    papers = [claim["paper"] for claim in claims]
    assert {paper: papers.count(paper) >= 6 for paper in papers} == dict.fromkeys(
        ("Guim 2007", "Krakov 2012", "Cirne 2001", "Minh 2009", "Ernemann 2003"), True
    )
    assert all(set(claim) - {"judged_by"} == {"paper", "section", "claim", "logs", "sql"} for claim in claims)
    assert len({(claim["paper"], claim["claim"]) for claim in claims}) == len(claims)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Return the database of a small log named KTH-SP2: recorded, under EASY and under FCFS."""
    folder = tmp_path_factory.mktemp("claims")
    workload = clean(generate_lublin(400, 32, generator(1, "A")), Machine.of(32), name="KTH-SP2")
    write_workload(workload, folder / "workloads/KTH-SP2+ran.parquet")
    simulate_all(
        folder / "workloads/KTH-SP2+ran.parquet",
        {"easy": {"backfill": "easy"}, "fcfs": {"backfill": "none"}},
        folder / "runs",
    )
    load([folder / "runs"], folder / "d.duckdb")
    return folder / "d.duckdb"


FCFS_WAITS = "FCFS has longer mean waits and responses than EASY."


def test_claims_are_checked_by_a_load(loaded):
    columns, rows = query(loaded, f"SELECT * FROM claims WHERE claim = '{FCFS_WAITS}'")
    (row,) = [dict(zip(columns, row, strict=True)) for row in rows]
    assert (row["holds"], row["logs"], row["logs_held"], row["other_logs"]) == ("holds", 1, 1, 0)
    assert row["evidence"].startswith("KTH-SP2: holds (mean wait ")
    assert query(loaded, row["sql"])[1][0][:2] == ("KTH-SP2", True)
    _, counts = query(loaded, "SELECT DISTINCT holds FROM claims WHERE paper = 'Guim 2007'")
    assert counts == [("cannot be checked here",)]


def test_claims_of_an_emptied_run_cannot_be_checked(loaded, tmp_path):
    (claim,) = [claim for claim in published_claims() if claim["claim"] == FCFS_WAITS]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{loaded}' AS old (READ_ONLY)")
        connection.execute("CREATE TABLE metrics AS FROM old.metrics")
        assert check_claims(connection, [claim])[0]["holds"] == "holds"
        connection.execute("UPDATE metrics SET mean_wait_time = -1, mean_response_time = -1 WHERE scheduler = 'fcfs'")
        assert check_claims(connection, [claim])[0]["holds"] == "does not hold"
        connection.execute("DELETE FROM metrics WHERE scheduler = 'fcfs'")
        (row,) = check_claims(connection, [claim])
        assert (row["holds"], row["logs"], row["evidence"]) == ("cannot be checked here", 0, "no run has the evidence")
        connection.execute("DROP TABLE metrics")
        (row,) = check_claims(connection, [claim])
        assert row["holds"] == "cannot be checked here"
        assert "metrics" in row["evidence"]


def test_claims_of_other_logs_are_counted_apart():
    claim = {
        "paper": "P", "section": 1, "claim": "c", "logs": ["A", "B"],
        "sql": "FROM (VALUES ('A', true, 'x'), ('A', false, 'y'), ('B', true, 'z'), ('C', false, ''), ('D', NULL, ''))",
    }  # fmt: skip
    with duckdb.connect() as connection:
        (row,) = check_claims(connection, [claim])
    assert (row["holds"], row["logs"], row["logs_held"]) == ("does not hold", 2, 1)
    assert (row["other_logs"], row["other_logs_held"]) == (1, 0)
    assert row["evidence"].startswith("A: does not hold (x, y); B: holds (z); C, not in the claim: does not hold")


def test_a_claim_that_the_draws_leave_open_does_not_hold():
    claim = {"paper": "P", "section": 1, "claim": "c", "logs": ["A", "B"]}
    with duckdb.connect() as connection:
        (row,) = check_claims(connection, [claim | {"sql": "FROM (VALUES ('A', true, 'x'), ('B', NULL, 'y'))"}])
        assert (row["holds"], row["logs"], row["logs_held"]) == ("not distinguishable", 2, 1)
        assert row["evidence"] == "A: holds (x); B: not distinguishable (y)"
        (row,) = check_claims(connection, [claim | {"sql": "FROM (VALUES ('A', false, 'x'), ('B', NULL, 'y'))"}])
        assert row["holds"] == "does not hold"


def test_draws_are_compared_by_the_intervals_of_their_means():
    with duckdb.connect() as connection:
        connection.execute(DRAW_MACROS)

        def answer(sql):
            return connection.execute(f"SELECT {sql}").fetchone()[0]

        assert answer("is_below(1, 2, 3, 4)") is True
        assert answer("is_below(1, 3, 2, 4)") is None
        assert answer("is_below(5, 6, 2, 4)") is False
        assert answer("is_below(NULL, NULL, 2, 4)") is None  # a single draw
        assert answer("is_nearer(9, 11, 13, 14, 10)") is True
        assert answer("is_nearer(7, 8, 9, 12, 10)") is None
        assert answer("is_nearer(-5, -4, 9, 11, 10)") is False
        answers = "SELECT all_hold(answer) FROM (VALUES {}) t(answer)"
        for values, expected in (("(true), (true)", True), ("(true), (NULL)", None), ("(NULL), (false)", False)):
            assert connection.execute(answers.format(values)).fetchone() == (expected,)


def test_queries_of_claims_fit_the_tables(loaded):
    """A query that names a missing table or column would never be checked."""
    with duckdb.connect(loaded, read_only=True) as connection:
        for claim in published_claims():
            if "shapes" not in claim["sql"]:  # a column that only moldable workloads have
                connection.execute(claim["sql"])


def test_a_reading_can_leave_out_a_step(cells):
    cells.execute(
        """INSERT INTO published VALUES ('P', 'T', 'ran', 'c', 50, 'A+ran', 'easy', 'awwt', 0.5);
        INSERT INTO medians VALUES ('A', 'easy', 'awwt', 51), ('A+ran', 'easy', 'awwt', 90);
        INSERT INTO reading_parts VALUES ('P', 'with all jobs', 'step', 'ran', NULL)"""
    )
    verdict, explanation = verdict_of(cells, "ran")
    assert (verdict, explanation) == (
        "another reading",
        'swflow has 90, published is 50 (+80.00 %); with the reading "with all jobs", swflow has 51.',
    )


def test_a_reading_can_add_a_step(cells):
    cells.execute(
        """INSERT INTO published VALUES ('P', 'T', 'log', 'c', 0, 'A', 'log', 'spearman_wait_time', 0.005);
        INSERT INTO medians VALUES ('A', 'log', 'spearman_wait_time', -0.018),
            ('A+some', 'log', 'spearman_wait_time', -0.004);
        INSERT INTO reading_parts VALUES ('P', 'some jobs', 'step', NULL, 'some')"""
    )
    assert verdict_of(cells, "log")[0] == "another reading"
    assert {row for (row,) in cells.execute("SELECT row FROM readings WHERE reading = 'some jobs'").fetchall()} == {
        "log"
    }


def test_the_main_column_of_node_sharing_has_the_released_defect():
    rows = published_values().filter(paper="Guim 2007", table="Table II")
    assert set(rows["scheduler"]) == {"alvio-first-fit-forgetful", "alvio-first-contiguous-forgetful"}
    assert "penalized_percent" not in set(rows["figure"])
    beside = read_papers()["Guim 2007"]["beside"]
    parts = published_tables()["reading_parts"].filter(reading=beside)
    assert dict(parts.select("published", "ours").iter_rows()) == {
        "alvio-first-fit-forgetful": "alvio-first-fit-shared",
        "alvio-first-contiguous-forgetful": "alvio-first-contiguous-shared",
        "penalized_share_percent": "penalized_percent",
    }


def test_the_reading_of_penalties_at_the_start_replaces_schedulers_and_measures():
    parts = published_tables()["reading_parts"].filter(pl.col("reading").str.starts_with("penalties fixed"))
    read = dict(parts.filter(part="figure").select("published", "ours").iter_rows())
    assert read == {
        "penalized_share_percent": "penalized_percent_unkilled",
        "p95_bounded_slowdown_60_unkilled": "p95_bounded_slowdown_60_unpenalized",
    }
    config = yaml.safe_load((ROOT / "config/archive.yaml").read_text())["schedulers"]
    for main, other in parts.filter(part="scheduler").select("published", "ours").iter_rows():
        assert config[main]["penalty"] == "forgets-shadows"
        skipped = {"title", "penalty"}
        alike = [{key: value for key, value in config[name].items() if key not in skipped} for name in (main, other)]
        assert alike[0] == alike[1]
        assert config[other]["penalty"] == "at-start"


def test_published_values_have_all_printed_digits():
    # The paper prints utilizations as whole percents, 70 among them.
    printed = published_values().filter(figure="utilization", paper="Ernemann 2003").drop_nulls("value")
    rounding = printed["rounding"]
    assert set(rounding) == {0.005}


def test_seconds_that_are_cut_off_are_right_to_a_whole_second():
    """On NASA's log, AWWTs of 6.03 s (EASY) and 6.65 s (FCFS) are printed as 6, and the AWRTs of both as 9,482."""
    printed = published_values().filter(paper="Ernemann 2003")
    roundings = dict(printed.select("column", "rounding").unique().iter_rows())
    assert (roundings["AWWT"], roundings["AWRT"], roundings["makespan"]) == (1, 1, 0.5)
    same = printed.filter(pl.col("row").is_in(["NASA ref EASY", "NASA ref FCFS"]))
    assert set(same.filter(column="AWWT")["value"]) == {6}
    assert set(same.filter(column="AWRT")["value"]) == {9482}


def test_every_paper_is_described():
    about = read_papers()
    assert set(about) == set(published_values()["paper"]) == {claim["paper"] for claim in published_claims()}
    readings = set(published_tables()["reading_parts"].select("paper", "reading").iter_rows())
    for paper, content in about.items():
        assert "beside" not in content or (paper, content["beside"]) in readings
        assert all(figure["kind"] in FIGURES for figure in content.get("figures", ()))


def test_the_archive_runs_every_figure_and_reading_of_the_papers():
    """A figure or reading that no study runs would never be shown."""
    config = yaml.safe_load((ROOT / "config/archive.yaml").read_text())
    planned = {
        f"{workload}/{scheduler}" for study in config["studies"] for workload, scheduler in study_runs(config, study)
    }
    for content in read_papers().values():
        for figure in content.get("figures", ()):
            assert set(figure["runs"]) <= planned
    logs = yaml.safe_load((ROOT / "config/logs.yaml").read_text())
    kept = published_tables()["reading_parts"].filter(pl.col("part") != "figure", pl.col("ours").is_not_null())
    for name in kept["ours"]:
        assert name in config["schedulers"] or name in config["steps"] or name in logs


def test_single_draws_of_papers_are_compared_with_twenty_of_ours():
    config = yaml.safe_load((ROOT / "config/archive.yaml").read_text())
    planned = Counter()
    for study in config["studies"]:
        planned.update(
            {(recipe_of(workload), scheduler, workload) for workload, scheduler in study_runs(config, study)}
        )
    draws = Counter((recipe, scheduler) for recipe, scheduler, workload in planned if "@" in workload)
    rows = published_values().filter(pl.col("workload").str.contains(r"\+memory-|\+minh-|\+lublin"))
    for workload, scheduler in rows.select("workload", "scheduler").unique().iter_rows():
        if not workload.startswith(("GRID5000", "CTC-SP2")) and not workload.endswith("-alvio"):
            assert draws[workload, scheduler or "easy"] >= FEWEST_DRAWS, (workload, scheduler)
    sweeps = {name: sweep for name, sweep in config["sweeps"].items() if name.startswith(("tables-", "table-"))}
    assert min(sweep["seeds"] for sweep in sweeps.values()) == FEWEST_DRAWS


@pytest.mark.slow
def test_the_documentation_has_the_same_table_as_the_database(loaded, tmp_path):
    _, rows = query(loaded, "FROM coverage")
    for path, text in papers.tables(loaded).items():
        (tmp_path / path.name).write_text(text)
    assert [(row["paper"], row["table"]) for row in papers.read(tmp_path / papers.COVERAGE.name)] == [
        row[:2] for row in rows
    ]
    _, claims = query(loaded, "SELECT claim, holds FROM claims")
    assert [(row["claim"], row["holds"]) for row in papers.read(tmp_path / papers.CLAIMS.name)] == claims
    assert {row["figure"] for row in papers.read(tmp_path / papers.FIGURES.name)} == papers.DATA.keys()


def test_the_documentation_is_that_of_the_published_tables_and_claims():
    """The tables are written from a run of the archive's logs, which tests do not have."""
    merged = published_values().with_columns(pl.col("row").str.replace(r" \(here [^)]*\)$", ""))
    counts = Counter(merged.unique(["paper", "table", "row", "column"]).select("paper", "table").iter_rows())
    covered = papers.read(papers.COVERAGE)
    assert {(row["paper"], row["table"]): int(row["published"]) for row in covered} == counts
    # A cell that is compared with more than one log, or with other demands, is open if all comparisons are.
    names = ("paper", "table", "row", "column")
    often = {row for row, count in Counter(merged.select(names).iter_rows()).items() if count > 1}
    opened = {tuple(re.sub(r" \(here .*", "", row[name]) for name in names) for row in papers.read(papers.OPEN)}
    assert len(opened - often) <= sum(int(row["open"]) for row in covered) <= len(opened)
    assert all(row["tried"] for row in papers.read(papers.OPEN))
    assert {row["claim"] for row in papers.read(papers.CLAIMS)} == {claim["claim"] for claim in published_claims()}


def test_no_more_than_a_tenth_of_the_compared_values_is_open():
    names = ("compared", "within_10", "inside_draws", "other_version", "other_reading", "open")
    counts = {name: sum(int(row[name]) for row in papers.read(papers.COVERAGE)) for name in names}
    assert counts["open"] <= 0.1 * counts["compared"]
    assert sum(counts[name] for name in names[1:]) == counts["compared"]
