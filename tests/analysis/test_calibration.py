"""Calibration against a log whose schedule was made with known parameters."""

import json
import math

import numpy as np
import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.analysis.calibration import PARAMETERS, WEEK, calibrate
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, write_workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

SITE = {"backfill": "slurm", "scheduler_parameters": {"bf_interval": 60}}
TRUTH = SITE | {
    "scheduler_parameters": {"bf_interval": 60, "end_delay": 60.0},
    "limits": {"user": {"jobs": 10}},
}


@pytest.fixture(scope="module")
def log() -> Workload:
    """Return a log of three weeks of a site that states neither its delay nor its limit of users."""
    rng = np.random.default_rng(3)
    count = 1500
    run = rng.lognormal(9.3, 1.0, count).round()
    jobs = pl.DataFrame({
        "job_id": np.arange(1, count + 1), "submit_time": np.sort(rng.uniform(0, 3 * WEEK, count)).round(),
        "run_time": run, "estimate": 2 * run, "processors": rng.choice([1, 2, 4, 8], count),
        "user_id": rng.choice([1, 1, 1, 2, 3], count), "partition_id": rng.choice([1, 2], count),
        "queue_id": np.ones(count, np.int64),
    })  # fmt: skip
    drawn = Workload(jobs, Machine.of(64), "drawn")
    waits = simulate(drawn, Scheduler(**TRUTH)).select("job_id", "wait_time")
    return Workload(jobs.join(waits, on="job_id", maintain_order="left"), Machine.of(64), "drawn")


def test_the_parameters_of_the_log_are_found(log):
    found = calibrate(log, SITE, weeks=2, test_weeks=1)
    assert (found.values["end_delay"], found.values["user_jobs"]) == (60, 10)
    assert found.after.weekly_error < 0.1 * found.before.weekly_error
    assert found.after.wait_distance < 0.05
    assert found.after.start_order > found.before.start_order > 0.9
    assert {(kind, name) for kind, name, *_ in found.parts} == {("partition", "1"), ("partition", "2")}
    assert sum(one.jobs for *_, one, _ in found.parts) == found.before.jobs
    # The following weeks have no part in the fit.
    later = log.jobs["submit_time"] >= 2 * WEEK
    doubled = log.jobs.with_columns(wait_time=pl.when(later).then(pl.col("wait_time") * 2).otherwise("wait_time"))
    assert calibrate(Workload(doubled, log.machine, "drawn"), SITE, weeks=2, test_weeks=1).values == found.values


def test_a_value_that_makes_a_quarter_of_the_weeks_worse_is_not_taken(log):
    """A limit that holds in three of four quarters brings the mean over all weeks closer, but is not the site's."""
    jobs, last = log.jobs, pl.col("submit_time") >= 1.5 * WEEK
    unlimited = simulate(Workload(jobs.drop("wait_time"), log.machine, "drawn"), Scheduler(**SITE))
    free = jobs.drop("wait_time").join(unlimited.select("job_id", "wait_time"), on="job_id", maintain_order="left")
    waits = jobs.with_columns(wait_time=pl.when(last).then(free["wait_time"]).otherwise("wait_time"))
    found = calibrate(Workload(waits, log.machine, "drawn"), SITE, weeks=2, test_weeks=1)
    assert found.values["user_jobs"] == math.inf
    assert found.after.weekly_error == pytest.approx(found.before.weekly_error, abs=60)


def test_the_first_value_of_a_parameter_changes_nothing(log):
    for one in PARAMETERS.values():
        given = simulate(log, Scheduler(**SITE))["start_time"]
        options = one.apply(dict(SITE), log, one.values[0])
        assert options is not None
        assert simulate(log, Scheduler(**options))["start_time"].equals(given)


def test_parameters_that_do_not_apply_are_left_out(log):
    assert PARAMETERS["end_delay"].apply({"backfill": "easy"}, log, 60.0) is None
    assert PARAMETERS["user_jobs"].apply({"limits": {"user": {"jobs": 3}}}, log, 10.0) is None
    nobody = Workload(log.jobs.drop("user_id"), log.machine, "drawn")
    assert PARAMETERS["user_jobs"].apply({}, nobody, 10.0) is None
    smaller = PARAMETERS["size"].apply({}, log, 0.9)
    assert smaller is not None and smaller["unavailable"][0]["processors"] == 6
    nodes = {"nodes": [{"count": 12, "processors": 4}, {"count": 2, "processors": 8, "partition": ["big"]}]}
    smaller = PARAMETERS["size"].apply(nodes, log, 0.9)
    assert smaller == {"nodes": [{"count": 11, "processors": 4}, {"count": 2, "processors": 8, "partition": ["big"]}]}


def test_a_log_that_is_too_short_is_refused(log):
    with pytest.raises(SwflowError, match="drawn: too few jobs in 4 weeks and the 2 after them"):
        calibrate(log, SITE)


def test_the_command_writes_the_config_with_the_fitted_scheduler(log, tmp_path, capsys):
    write_workload(log, tmp_path / "log.parquet")
    site = tmp_path / "site.yaml"
    site.write_text(yaml.safe_dump({"schedulers": {"site": SITE, "other": {"order": "sjf"}}}))
    fitted = tmp_path / "fitted.yaml"
    weeks = ["--weeks", 2, "--test-weeks", 1]
    assert call("calibrate", tmp_path / "log.parquet", "--config", site, *weeks, "-o", fitted) == 0
    printed = capsys.readouterr().out
    assert "end_delay" in printed and "partition" in printed
    written = yaml.safe_load(fitted.read_text())["schedulers"]
    assert written["other"] == {"order": "sjf"}
    assert written["site"]["scheduler_parameters"]["end_delay"] == 60
    Scheduler.of("site", written["site"])
    assert call("whatif", tmp_path / "log.parquet", "--config", fitted, "--json") == 0
    base = json.loads(capsys.readouterr().out)["variants"][0]["scheduler"]["options"]
    assert base == written["site"]
    assert call("calibrate", tmp_path / "log.parquet", "--config", site, "--scheduler", "mine") == 1
    assert "schedulers: no 'mine'; expected a file that `swflow import site` wrote" in capsys.readouterr().err


def test_a_single_job_of_a_partition_has_no_order(log):
    jobs = log.jobs.with_columns(partition_id=pl.Series([1] * (log.jobs.height - 1) + [2]))
    found = calibrate(Workload(jobs, log.machine, "drawn"), SITE, weeks=2, test_weeks=1)
    single = next(after for kind, name, _, after in found.parts if name == "2")
    assert single.jobs == 1 and math.isnan(single.start_order)
