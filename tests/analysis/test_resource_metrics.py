"""Metrics of resources besides processors, their checks, and their table in the database."""

from dataclasses import replace

import duckdb
import polars as pl
import pytest

from helpers.cli import call
from swflow.analysis.metrics import resource_metrics
from swflow.analysis.plausibility import check_workload
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import run

JOBS = pl.DataFrame(
    {
        "job_id": [1, 2, 3], "submit_time": [0.0, 0.0, 5.0], "wait_time": [0.0, 0.0, 0.0],
        "run_time": [10.0, 30.0, 5.0], "processors": [1, 1, 1], "estimate": [10.0, 30.0, 5.0],
        "requested_time": [10.0, 30.0, 5.0], "user_id": [1, 1, 1], "gpus": [2, 3, None], "licenses": [None, 1, 1],
    }
)  # fmt: skip


def site(**resources: int) -> Workload:
    return Workload(
        JOBS, Machine(4, 4, resources=resources), "site", {}, ({"stage": "clean", "read": 3, "kept": 3, "removed": {}},)
    )


def test_metrics_of_resources_by_hand():
    result = run(site(gpus=4, licenses=2), Scheduler(backfill="easy"))
    assert result.outcomes["start_time"].to_list() == [0, 10, 5]  # 2 and 3 GPUs do not fit at once
    found = {name: value for name, value in result.metrics.items() if "gpus" in name or "licenses" in name}
    assert found == {
        "utilization_gpus": pytest.approx((2 * 10 + 3 * 30) / (4 * 40)), "squashed_area_gpus": 110, "peak_gpus": 3,
        "utilization_licenses": pytest.approx(35 / 80), "squashed_area_licenses": 35, "peak_licenses": 1,
    }  # fmt: skip
    clusters = ({"processors": 2, "resources": {"gpus": 2}}, {"processors": 2, "resources": {"gpus": 4}})
    of_clusters = run(site(), Scheduler(backfill="easy", clusters=clusters)).metrics
    assert of_clusters["utilization_gpus"] == pytest.approx(110 / (6 * 30))
    assert not any("gpus" in name for name in run(site(), Scheduler(backfill="easy")).metrics)


def test_only_jobs_that_run_and_demand_units_count():
    """Times start at the first submission; jobs without a run time or a demand add neither area nor peak."""
    outcomes = pl.DataFrame({
        "job_id": [3, 1, 2, 4], "submit_time": [100.0, 100.0, 105.0, 100.0],
        "start_time": [100.0, 100.0, 110.0, 105.0], "run_time": [40.0, 10.0, 10.0, 0.0],
    })  # fmt: skip
    jobs = pl.DataFrame({"job_id": [1, 2, 3, 4, 5], "gpus": [2, 3, 0, 9, 9]})
    found = resource_metrics(outcomes, jobs, {"gpus": 4})
    assert found == {"utilization_gpus": pytest.approx(50 / (4 * 40)), "squashed_area_gpus": 50, "peak_gpus": 3}
    none = resource_metrics(outcomes, jobs.with_columns(gpus=0), {"gpus": 4})
    assert none == {"utilization_gpus": 0, "squashed_area_gpus": 0, "peak_gpus": 0}
    assert resource_metrics(outcomes, jobs, {"licenses": 1, "gpus": 0}).keys() == {"squashed_area_gpus", "peak_gpus"}


def test_a_record_can_exceed_the_machine():
    record = run(site(gpus=4), Scheduler(order="log"))
    assert record.metrics["peak_gpus"] == 5
    assert resource_metrics(record.outcomes.clear(), JOBS, {"gpus": 4}) == {}
    assert "utilization_gpus" not in resource_metrics(record.outcomes, JOBS, {"gpus": 0})


def test_check_compares_the_record_with_the_units():
    found = {finding.check: finding for finding in check_workload(site(gpus=4))}
    assert found["gpus-use-beyond-machine"].severity == "error"
    assert "5 of 4 gpus were in use on 0 s; beyond the machine for 33.3 %" in found["gpus-use-beyond-machine"].message
    assert "2 jobs demand licenses, up to 2 at once" in found["unknown-licenses"].message
    few = {finding.check: finding for finding in check_workload(site(gpus=2, licenses=9))}
    assert few["more-gpus-than-machine"].jobs == 1
    assert "never more than 2 of 9 licenses" in few["licenses-never-full"].message
    idle = JOBS.with_columns(gpus=0, run_time=pl.Series([10.0, 30.0, 0.0]))
    (found,) = check_workload(replace(site(gpus=4), jobs=idle))[-1:]
    assert found.message.startswith("1 jobs demand licenses, up to 1 at once")
    for units, is_never_full in ((10, False), (11, True)):
        checks = {finding.check for finding in check_workload(site(gpus=units))}
        assert ("gpus-never-full" in checks) is is_never_full
    for units, expected in (
        (3, {"gpus-use-beyond-machine"}),
        (2, {"more-gpus-than-machine", "gpus-use-beyond-machine"}),
    ):
        checks = {finding.check for finding in check_workload(site(tapes=1, gpus=units)) if "gpus" in finding.check}
        assert checks == expected
    assert not any("gpus" in finding.check for finding in check_workload(site(gpus=5)))
    synthetic = replace(site(gpus=4), history=({"stage": "model"},))
    assert not any("gpus" in finding.check for finding in check_workload(synthetic))


@pytest.mark.parametrize(("beyond", "expected"), [(2.0, "error"), (1.0, "error"), (0.9, "warning")])
def test_use_beyond_the_units_is_an_error_from_one_percent_of_the_time(beyond, expected):
    jobs = JOBS.head(2).with_columns(run_time=pl.Series([100.0, beyond]))
    found = {finding.check: finding for finding in check_workload(replace(site(gpus=4), jobs=jobs))}
    assert found["gpus-use-beyond-machine"].severity == expected


def test_the_database_has_the_further_metrics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_workload(site(gpus=4), "site.parquet")
    assert call("simulate", "site.parquet", "--scheduler", "easy", "-o", "runs/site") == 0
    assert call("load", "runs/site", "--database", "all.duckdb") == 0
    with duckdb.connect("all.duckdb", read_only=True) as connection:
        rows = connection.execute("SELECT run, metric, value FROM further_metrics ORDER BY metric").fetchall()
    assert rows == [
        ("site/easy", "peak_gpus", 3),
        ("site/easy", "squashed_area_gpus", 110),
        ("site/easy", "utilization_gpus", 0.6875),
    ]
