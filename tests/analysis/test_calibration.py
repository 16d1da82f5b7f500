"""Calibration against a log whose schedule was made with known parameters."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.analysis.calibration import PARAMETERS, _parts, _waits, calibrate, can_start
from swflow.errors import SwflowError
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.values import WEEK

SITE = {"backfill": "slurm", "scheduler_parameters": {"bf_interval": 60}}
TRUTH = SITE | {
    "scheduler_parameters": {"bf_interval": 60, "end_delay": 60.0},
    "limits": {"user": {"jobs": 10}},
}


BEGIN = 5 * WEEK + 1000


@pytest.fixture(scope="module")
def log() -> Workload:
    """Return a log of three weeks of a site that states neither its delay nor its limit of users."""
    rng = np.random.default_rng(3)
    count = 1500
    run = rng.lognormal(9.3, 1.0, count).round()
    submit = np.sort(rng.uniform(0, 3 * WEEK, count)).round()
    submit[[0, np.searchsorted(submit, 2 * WEEK), -1]] = 0, 2 * WEEK, 3 * WEEK
    jobs = pl.DataFrame({
        "job_id": np.arange(1, count + 1), "submit_time": BEGIN + submit,
        "run_time": run, "estimate": 2 * run, "processors": rng.choice([1, 2, 4, 8], count),
        "user_id": rng.choice([1, 1, 1, 2, 3], count), "partition_id": rng.choice([1, 2], count),
        "queue_id": np.ones(count, np.int64),
    })  # fmt: skip
    drawn = Workload(jobs, Machine.of(64), "drawn")
    waits = simulate(drawn, Scheduler(**TRUTH)).select("job_id", "wait_time")
    return Workload(jobs.join(waits, on="job_id", maintain_order="left"), Machine.of(64), "drawn")


@pytest.mark.slow
def test_the_parameters_of_the_log_are_found(log):
    found = calibrate(log, SITE, weeks=2, test_weeks=1)
    assert (found.values["end_delay"], found.values["user_jobs"]) == (60, 10)
    assert found.after.weekly_error < 0.1 * found.before.weekly_error
    assert found.after.wait_distance < 0.05
    assert found.after.start_order > found.before.start_order > 0.9
    assert {(kind, name) for kind, name, *_ in found.parts} == {("partition", "1"), ("partition", "2")}
    assert sum(one.jobs for *_, one, _ in found.parts) == found.before.jobs
    # The following weeks have no part in the fit.
    later = log.jobs["submit_time"] >= BEGIN + 2 * WEEK
    assert found.before.jobs == found.after.jobs == later.sum() - 1  # the last job is submitted after the last week
    doubled = log.jobs.with_columns(wait_time=pl.when(later).then(pl.col("wait_time") * 2).otherwise("wait_time"))
    assert calibrate(Workload(doubled, log.machine, "drawn"), SITE, weeks=2, test_weeks=1).values == found.values


@pytest.mark.slow
def test_weeks_begin_with_the_record_and_not_with_older_jobs(log):
    """A job that was submitted four weeks before all others, and ended when they began, changes no measure."""
    old = log.jobs.head(1).with_columns(
        job_id=pl.lit(0, pl.Int64), submit_time=pl.lit(BEGIN - 4.0 * WEEK), wait_time=pl.lit(4.0 * WEEK - 3600),
        run_time=pl.lit(3600.0), processors=pl.lit(64, pl.Int64),
    )  # fmt: skip
    older = Workload(pl.concat([old, log.jobs]), log.machine, "drawn")
    found, plain = (calibrate(one, SITE, weeks=2, test_weeks=1) for one in (older, log))
    assert (found.values, found.before, found.after) == (plain.values, plain.before, plain.after)


@pytest.mark.slow
def test_a_value_that_makes_a_quarter_of_the_weeks_worse_is_not_taken(log):
    """A limit that holds in three of four quarters brings the mean over all weeks closer, but is not the site's."""
    jobs, last = log.jobs, pl.col("submit_time") >= BEGIN + 1.5 * WEEK
    unlimited = simulate(Workload(jobs.drop("wait_time"), log.machine, "drawn"), Scheduler(**SITE))
    free = jobs.drop("wait_time").join(unlimited.select("job_id", "wait_time"), on="job_id", maintain_order="left")
    waits = jobs.with_columns(wait_time=pl.when(last).then(free["wait_time"]).otherwise("wait_time"))
    found = calibrate(Workload(waits, log.machine, "drawn"), SITE, weeks=2, test_weeks=1)
    assert found.values["user_jobs"] == math.inf
    assert found.after.weekly_error == pytest.approx(found.before.weekly_error, abs=60)


@pytest.mark.slow
def test_the_first_value_of_a_parameter_changes_nothing(log):
    for one in PARAMETERS.values():
        given = simulate(log, Scheduler(**SITE))["start_time"]
        options = one.apply(dict(SITE), log, one.values[0])
        assert options is not None
        assert simulate(log, Scheduler(**options))["start_time"].equals(given)


def test_limits_and_shares_decrease_from_the_first_value():
    for name in ("user_jobs", "user_processors", "size"):
        values = PARAMETERS[name].values
        assert list(values) == sorted(values, reverse=True)
        assert all(0 < value < 1 for value in values[1:]) or name == "user_jobs"
    assert min(PARAMETERS["end_delay"].values) == 0


@pytest.mark.slow
def test_parts_are_the_partitions_or_qos_if_there_are_several(log):
    jobs = log.jobs.with_columns(partition_id=1, queue_id=pl.int_range(pl.len()) % 3 + 1)
    header = {"Queue": ["2 normal", "1 high"]}
    parts = list(_parts(jobs, Workload(jobs, log.machine, "drawn", header)))
    assert [(kind, name, some.height) for kind, name, some in parts] == [
        ("qos", "high", 500), ("qos", "normal", 500), ("qos", "3", 500),
    ]  # fmt: skip
    assert list(_parts(jobs.drop("partition_id", "queue_id"), log)) == []


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


@pytest.mark.parametrize("begin", [0.0, BEGIN])
@pytest.mark.parametrize(
    ("jobs", "expected"), [((2, 2, 0), True), ((1, 2, 9), False), ((2, 1, 9), False), ((2, 3, 1), True)]
)
def test_both_parts_of_a_log_need_two_jobs(jobs, expected, begin):
    assert WEEK == 7 * 24 * 3600
    submit = [begin + week * WEEK + 10 * job for week, count in enumerate(jobs) for job in range(count)]
    columns = {"run_time": 60.0, "estimate": 60.0, "wait_time": 0.0, "processors": 1, "user_id": 1}
    table = pl.DataFrame([{"job_id": place, "submit_time": time} | columns for place, time in enumerate(submit, 1)])
    short = Workload(table, Machine.of(4), "short")
    if expected:
        assert calibrate(short, SITE, weeks=1, test_weeks=1).before.jobs == jobs[1]
    else:
        with pytest.raises(SwflowError, match="short: too few jobs in 1 weeks and the 1 after them"):
            calibrate(short, SITE, weeks=1, test_weeks=1)


def test_jobs_of_the_following_weeks_have_no_part_in_the_error(log, monkeypatch):
    bound, seen = BEGIN + 2 * WEEK, []

    def errors(options, workload, parts, delay):
        seen.append((workload.jobs["submit_time"].max(), [part["submit_time"].min() for part in parts]))
        assert sum(part.height for part in parts) == workload.jobs.height
        return np.zeros(len(parts))

    monkeypatch.setattr("swflow.analysis.calibration._errors", errors)
    assert calibrate(log, SITE, weeks=2, test_weeks=1).tried == len(seen)
    for last, firsts in seen:
        assert last < bound
        assert all(0 <= first - BEGIN - part * WEEK / 2 < 7200 for part, first in enumerate(firsts))


@pytest.mark.parametrize(("last", "expected"), [(1.0, 10.0), (2.0, math.inf)])
def test_values_are_taken_if_every_quarter_has_a_lower_error(log, monkeypatch, last, expected):
    def errors(options, workload, parts, delay):
        jobs = options.get("limits", {}).get("user", {}).get("jobs", 2000)
        return np.array([jobs, jobs, jobs, 20 if last == 1.0 and jobs == 10 else 2000], float)

    monkeypatch.setattr("swflow.analysis.calibration._errors", errors)
    found = calibrate(log, SITE, weeks=2, test_weeks=1)
    assert found.values == {name: one.values[0] for name, one in PARAMETERS.items()} | {"user_jobs": expected}
    assert (found.options == SITE) is (expected == math.inf)


def test_a_quarter_without_jobs_does_not_prevent_a_fit(log, monkeypatch):
    """Its error of 0 was lower under no value."""

    def errors(options, workload, parts, delay):
        assert len(parts) == 3 and all(part.height for part in parts)
        return np.full(len(parts), options.get("limits", {}).get("user", {}).get("jobs", 2000), float)

    monkeypatch.setattr("swflow.analysis.calibration._errors", errors)
    since = pl.col("submit_time") - pl.col("submit_time").min()
    jobs = log.jobs.filter(~since.is_between(0.4 * WEEK, WEEK + 1))
    found = calibrate(Workload(jobs, log.machine, "drawn"), SITE, weeks=2, test_weeks=1)
    assert math.isfinite(found.values["user_jobs"])


@pytest.mark.parametrize(
    ("options", "columns", "expected"),
    [
        ({"clusters": [{"processors": 8}, {"processors": 8}]}, {"processors": [12, 8]}, [False, True]),
        ({"limits": {"user": {"processor_minutes": 90}}}, {"estimate": [3600.0, 60.0]}, [False, True]),
        ({"resources": {"gpus": 4}}, {"gpus": [9, 4]}, [False, True]),
        ({"unavailable": [{"from": 0, "until": None, "processors": 10}]}, {"processors": [7, 6]}, [False, True]),
    ],
)
def test_jobs_that_can_never_start_are_found(options, columns, expected):
    """Each became an error of the simulation; the first job runs for longer than it requests."""
    jobs = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [0.0, 1.0], "run_time": [7200.0, 60.0], "processors": [1, 1],
        "estimate": [7200.0, 60.0], "user_id": [1, 1],
    })  # fmt: skip
    jobs = jobs.with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    workload = Workload(jobs, Machine.of(16), "tiny")
    assert can_start(workload, options).to_list() == expected
    simulate(replace(workload, jobs=jobs.filter(pl.Series(expected))), Scheduler.of("one", options))
    with pytest.raises(SwflowError):
        simulate(workload, Scheduler.of("one", options))


def test_jobs_without_a_recorded_wait_are_left_out(log):
    jobs = log.jobs.with_columns(wait_time=pl.when(pl.col("job_id") % 3 > 0).then("wait_time"))
    found = _waits(Workload(jobs, log.machine, "drawn"), {"order": "log"})
    assert found.height == 1000 and found["partition_id"].null_count() == 0


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
    jobs = log.jobs.with_columns(partition_id=pl.Series([1] * (log.jobs.height - 2) + [2, 1]))
    found = calibrate(Workload(jobs, log.machine, "drawn"), SITE, weeks=2, test_weeks=1)
    single = next(after for kind, name, _, after in found.parts if name == "2")
    assert single.jobs == 1 and math.isnan(single.start_order)


def test_a_wide_job_of_the_test_weeks_neither_changes_the_fit_nor_becomes_an_error(monkeypatch):
    def errors(options, workload, parts, delay):
        assert workload.jobs["processors"].max() == 1
        return np.full(len(parts), 1.0 if options.get("unavailable") else 2.0)

    monkeypatch.setattr("swflow.analysis.calibration._errors", errors)
    columns = {"run_time": 60.0, "estimate": 60.0, "wait_time": 7.0, "user_id": 1}
    rows = [{"job_id": 10 * week + job, "submit_time": week * WEEK + 99.0 * job, "processors": 1} | columns
            for week in range(2) for job in range(4)]  # fmt: skip
    rows[-2]["processors"] = 10
    found = calibrate(Workload(pl.DataFrame(rows), Machine.of(10), "short"), SITE, weeks=1, test_weeks=1)
    assert found.values["size"] < 1
    assert (found.left_out, found.before.jobs, found.start_delay) == (1, 3, 7)
    assert "a user may occupy" not in str(found) and "starts after 7 s" in str(found)
    assert found.after.simulated_mean_wait == pytest.approx(7, abs=1)
