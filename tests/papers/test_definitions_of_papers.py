"""Test each column of the papers' tables against a case by hand, and the table of definitions for completeness."""

import math

import duckdb
import polars as pl
import pytest

from swflow.analysis.metrics import metrics
from swflow.database.load import load
from swflow.files.tables import write_workload
from swflow.papers import published_tables, published_values
from swflow.studies.runs import simulate_all
from swflow.workload.clean import clean_log
from swflow.workload.models.fit_measures import fit_measures

#: Five jobs on 4 processors, of which the last never ran: number, submit, wait, run, processors, requested time.
LINES = (
    (1, 100, 0, 50, 2, 60),
    (2, 110, 0, 30, 2, 30),
    (3, 120, 30, 40, 4, 40),
    (4, 130, 60, 20, 3, 20),
    (5, 140, -1, -1, 3, 9),
)

#: Under FCFS, the jobs run from 100 to 150, 110 to 140, 150 to 190 and 190 to 210. Areas are 100, 60, 160 and 60. The
#: integral of the utilization from 100 on is 5 at 110, 35 at 140, 40 at 150, 80 at 190 and 95 at 210, and the loads are
#: 40 / 50, 30 / 30, 65 / 70 and 70 / 80, with ranks 1, 4, 3 and 2.
BY_HAND = {
    "jobs": 4,
    "log_jobs": 5,
    "processors": 4,
    "widest_job": 4,
    "static_factor_1024": 256,
    "power_of_two_percent": 75,
    "last_end": 210,
    "makespan": 110,
    "utilization_to_last_end": 380 / (4 * 210),
    "utilization": 380 / (4 * 110),
    "awwt": (160 * 30 + 60 * 60) / 380,
    "awrt": (100 * 50 + 60 * 30 + 160 * 70 + 60 * 80) / 380,
    "squashed_area": 380,
    "p95_wait_time_unkilled": 60,
    "p95_bounded_slowdown_60_unkilled": 80 / 60,
    "killed": 0,
    # slowdowns of 1, 1, 7/4 and 4 have the ranks 1.5, 1.5, 3 and 4, and so have the waits; responses 2, 1, 3 and 4
    "spearman_slowdown": -0.5 / math.sqrt(5 * 4.5),
    "spearman_wait_time": -0.5 / math.sqrt(5 * 4.5),
    "spearman_response_time": -2 / 5,
}

#: Figures that the simulation above does not have, which the other tests compute by hand.
OTHERS = {"penalized_share_percent", "squashed_area_difference", "correlation"}


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """Return the figures of the log above under FCFS, as published values are compared with them."""
    folder = tmp_path_factory.mktemp("definitions")
    lines = [
        f"{job} {submit} {wait} {run} {width} -1 -1 {width} {asked} -1 1 1 1 1 1 -1 -1 -1"
        for job, submit, wait, run, width, asked in LINES
    ]
    (folder / "hand.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    write_workload(clean_log(folder / "hand.swf", name="hand"), folder / "workloads/hand.parquet")
    simulate_all(folder / "workloads/hand.parquet", {"fcfs": {"backfill": "none"}}, folder / "runs")
    load([folder / "runs"], folder / "d.duckdb")
    with duckdb.connect(folder / "d.duckdb", read_only=True) as connection:
        return dict(connection.execute("SELECT figure, value FROM figures").fetchall())


def test_every_column_of_every_table_has_a_definition():
    keys = ["paper", "table", "column", "figure"]
    definitions = published_tables()["definitions"]
    assert set(definitions.select(keys).iter_rows()) == set(published_values().select(keys).iter_rows())
    assert definitions.select(keys).is_duplicated().sum() == 0
    assert definitions.select(pl.col("words", "expression").is_null().sum()).row(0) == (0, 0)
    assert set(definitions["figure"]) == BY_HAND.keys() | OTHERS


@pytest.mark.parametrize("figure", BY_HAND)
def test_a_figure_is_that_by_hand(figures, figure):
    assert figures[figure] == pytest.approx(BY_HAND[figure])


def test_the_end_of_the_last_job_is_on_the_clock_of_the_log():
    outcomes = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [-50.0, 0.0], "start_time": [-50.0, 0.0], "end_time": [-40.0, -10.0],
        "processors": [1, 1], "run_time": [10.0, 0.0], "penalty_time": [0.0, 0.0], "killed": [False, False],
        "wait_time": [0.0, 0.0], "response_time": [10.0, 0.0], "slowdown": [1.0, None], "bounded_slowdown": [1.0, 1.0],
    })  # fmt: skip
    found = metrics(outcomes, 2)
    assert (found["last_end"], found["utilization_to_last_end"]) == (-10, None)


def test_penalties_are_percentages_of_the_prolonged_run_time():
    outcomes = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [0.0, 0.0], "start_time": [0.0, 10.0], "end_time": [50.0, 110.0],
        "processors": [1, 1], "run_time": [50.0, 100.0], "penalty_time": [10.0, 50.0], "killed": [True, False],
        "wait_time": [0.0, 10.0], "response_time": [50.0, 110.0], "slowdown": [1.0, 1.1],
        "bounded_slowdown": [1.0, 1.1],
    })  # fmt: skip
    found = metrics(outcomes, 2)
    assert found["penalized_share_percent"] == pytest.approx((20 + 50) / 2)
    assert found["killed"] == 1
    assert found["p95_wait_time_unkilled"] == 10  # the killed job is left out
    assert found["p95_bounded_slowdown_60_unkilled"] == pytest.approx(1.1)


def test_a_model_is_compared_by_area_and_correlation():
    found = fit_measures([10, 20, 30], [1, 2, 4], [10, 20, 30], [2, 2, 5])
    assert found["squashed_area_difference"][0] == pytest.approx(100 * (170 - 210) / 210)
    # deviations of run times are -10, 0, 10; of processors -4/3, -1/3, 5/3 and -1, -1, 2
    assert found["correlation"] == (
        pytest.approx(30 / math.sqrt(200 * 42 / 9)),
        pytest.approx(30 / math.sqrt(200 * 6)),
    )
