"""Tests of the step `intensify`: changed and unchanged quantities, and errors."""

import numpy as np
import polars as pl
import pytest

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.files.tables import read_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.offered_load import offered_load
from swflow.workload.steps.intensify import intensify


def workload():
    shape = pl.List(pl.Struct({"processors": pl.Int64, "run_time": pl.Float64}))
    jobs = pl.DataFrame(
        {
            "job_id": [1, 2, 3], "submit_time": [10.0, 40.0, 70.0], "wait_time": [0.0, 5.0, None],
            "run_time": [30.0, 60.0, 5.0], "requested_time": [60.0, None, 10.0], "estimate": [60.0, 60.0, 10.0],
            "processors": [1, 2, 4], "shapes": [[{"processors": 1, "run_time": 30.0}], [], None],
        },
        schema_overrides={"shapes": shape},
    )  # fmt: skip
    return Workload(jobs, Machine.of(4), "A")


def test_arrivals_come_closer_and_run_times_stay():
    made = intensify(workload(), 3)
    assert made.jobs["submit_time"].to_list() == [10.0, 20.0, 30.0]
    assert made.jobs["run_time"].equals(workload().jobs["run_time"])
    assert made.jobs["wait_time"].null_count() == 3
    assert made.history[-1]["factor"] == 3 and made.history[-1]["removed"] == {}


def test_run_times_and_requests_scale_and_arrivals_stay():
    made = intensify(workload(), 1.5, by="run-times").jobs
    assert made["submit_time"].equals(workload().jobs["submit_time"])
    assert made["run_time"].to_list() == [45.0, 90.0, 7.5]
    assert made["requested_time"].to_list() == [90.0, None, 15.0]
    assert made["estimate"].to_list() == [90.0, 90.0, 15.0]
    assert made["shapes"].to_list() == [[{"processors": 1, "run_time": 45.0}], [], None]
    assert made.schema == workload().jobs.schema


def test_both_options_give_the_same_load_and_proportional_schedules():
    denser, longer = (simulate(intensify(workload(), 2, by=by), Scheduler()) for by in ("arrivals", "run-times"))
    first = workload().jobs["submit_time"][0]
    assert ((longer["start_time"] - first) / 2).to_list() == (denser["start_time"] - first).to_list()


def sizes_of(count, factor):
    """Return a workload in which every third job is large, and the same with other shares of sizes."""
    large = [job % 3 == 0 for job in range(count)]
    jobs = pl.DataFrame({
        "job_id": range(1, count + 1), "submit_time": [60.0 * job for job in range(count)],
        "processors": [8 if one else 1 for one in large], "run_time": [100.0 if one else 50.0 for one in large],
        "estimate": [200.0 if one else 60.0 for one in large], "user_id": [job % 7 for job in range(count)],
    })  # fmt: skip
    source = Workload(jobs, Machine.of(16), "A")
    return jobs, intensify(source, factor, by="sizes")


@pytest.mark.parametrize("factor", [0.6, 0.9, 1.0, 1.1, 1.7])
def test_shares_of_sizes_change_the_area_and_keep_the_arrivals(factor):
    jobs, made = sizes_of(900, factor)
    table = made.jobs

    def area(some):
        return sum(width * time for width, time in some.select("processors", "run_time").iter_rows())

    assert area(table) / area(jobs) == pytest.approx(factor, abs=750 / area(jobs))  # to half a job's 800 - 50
    assert table.select("job_id", "submit_time").equals(jobs.select("job_id", "submit_time"))
    columns = ["processors", "run_time", "estimate"]
    assert set(table.select(columns).iter_rows()) == {(8, 100.0, 200.0), (1, 50.0, 60.0)}
    changed = (table["processors"] != jobs["processors"]).to_list()
    assert sum(changed) == made.history[-1]["replaced"]
    # evenly spaced: each third of the log has a third of the changes, and users come with their jobs
    thirds = [sum(changed[place : place + 300]) for place in (0, 300, 600)]
    assert max(thirds) - min(thirds) <= 1
    donors = {(row["processors"], row["user_id"]) for row in jobs.iter_rows(named=True)}
    assert {(row["processors"], row["user_id"]) for row in table.iter_rows(named=True)} <= donors


def test_a_load_beyond_the_shares_of_sizes_is_one_line():
    with pytest.raises(
        SwflowError, match=r"factor: 9 cannot be reached by sizes: there are 10 jobs above .* nearer to 1"
    ):
        sizes_of(30, 9)
    equal = workload().jobs.with_columns(processors=pl.lit(2))
    with pytest.raises(SwflowError, match="cannot be reached by sizes"):
        intensify(Workload(equal, Machine.of(4), "A"), 1.1, by="sizes")


@pytest.mark.parametrize(
    ("options", "words"),
    [({"factor": 0}, "expected a number above 0"), ({"factor": float("inf")}, "expected a number above 0"),
     ({"factor": 2, "by": "arrival"}, "did you mean 'arrivals'"), ({}, "expected either a factor or a load"),
     ({"factor": 2, "load": 0.5}, "expected either a factor or a load"), ({"load": 0}, "expected a number above 0")],
)  # fmt: skip
def test_wrong_factors_are_one_line(options, words):
    with pytest.raises(SwflowError, match=words):
        intensify(workload(), **options)


@pytest.mark.parametrize("by", ["arrivals", "run-times", "sizes"])
def test_a_target_of_the_offered_load_is_reached(by):
    generator = np.random.default_rng(1)
    size = generator.integers(1, 9, 500)
    jobs = pl.DataFrame({"job_id": range(500), "submit_time": np.sort(generator.uniform(0, 1e6, 500)),
                         "run_time": generator.uniform(1, 5000, 500), "processors": size})  # fmt: skip
    log = Workload(jobs.with_columns(estimate="run_time"), Machine.of(16), "A")
    before = offered_load(log)
    area = float((size * jobs["run_time"].to_numpy()).sum())
    assert before == pytest.approx(area / (16 * float(jobs["submit_time"][-1] - jobs["submit_time"][0])))
    for target in (0.9 * before, 1.1 * before):
        made = intensify(log, by=by, load=target)
        assert offered_load(made) == pytest.approx(target, rel=0.02 if by == "sizes" else 1e-9)
        assert made.history[-1]["load"] == target
    once = Workload(jobs.with_columns(submit_time=1.0, estimate="run_time"), log.machine, "A")
    with pytest.raises(SwflowError, match="submitted at once"):
        intensify(once, load=0.5)


def test_the_command_writes_the_workload(log, tmp_path):
    assert call("intensify", log, "-o", "toy+dense.parquet", "--factor", 2) == 0
    assert read_workload(tmp_path / "toy+dense.parquet").history[-1]["by"] == "arrivals"
