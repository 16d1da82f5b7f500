"""The queue of a site: what competes, what has no forecast, and what a log cannot forecast."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.cli import call
from helpers.forecasts import NOW, SECOND, known_forecaster, log_of, workload
from swflow.errors import SwflowError
from swflow.forecast.forecaster import Forecaster, cases_of
from swflow.forecast.queue_state import queue_of
from swflow.forecast.queued import Queue, Queued
from swflow.log.swf import write_swf
from swflow.values import DAY, WEEK


@pytest.fixture
def known() -> Forecaster:
    return known_forecaster()


def job(name: str = "1", **values) -> Queued:
    base = Queued(name, "ann", "batch", 4, 3600.0, NOW - 600, None, "physics", "normal", "Priority")
    return base._replace(**values)


def forecasts(known: Forecaster, *jobs: Queued, where: str = "q.json") -> dict:
    known.set_queue(Queue(jobs), where)
    return {one.job: one for one in known.of_waiting()}


def test_sixty_tasks_are_the_same_as_sixty_jobs(tmp_path, known):
    from swflow.forecast.squeue import read_squeue

    base = {"job_state": ["PENDING"], "user_name": "ann", "partition": "batch", "cpus": 4, "time_limit": 60,
            "submit_time": NOW - 900}  # fmt: skip
    last = base | {"job_id": 900, "submit_time": NOW - 600}
    array = [base | {"job_id": 50, "array_job_id": 50, "array_task_string": "0-59%20"}, last]
    each = [*(base | {"job_id": 50 + task, "array_job_id": 50} for task in range(60)), last]
    found = []
    for number, jobs in enumerate((array, each)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"jobs": jobs}))
        known.set_queue(read_squeue(path), "q.json")
        found.append([one[1:-1] for one in known.of_waiting()])
    assert found[0] == found[1] and len(found[0]) == 61
    alone = forecasts(known, job("900"))["900"]
    assert found[0][-1][6] > alone.median


def test_jobs_that_cannot_start_do_not_delay_the_others(known):
    alone = forecasts(known, job("9"))["9"]
    held = [
        job("1", is_held=True, reason=""), job("2", reason="JobHeldAdmin"), job("3", reason="Dependency"),
        job("4", reason="BeginTime", begin=NOW + DAY), job("5", reason="PartitionTimeLimit"),
    ]  # fmt: skip
    found = forecasts(known, *held, job("9"))
    assert found["9"][:-1] == alone[:-1] and not alone.condition
    for name in ("1", "2", "5"):
        assert math.isnan(found[name].median) and "no forecast" in found[name].condition
    assert found["3"].condition.startswith("counted from the end of its dependency")
    assert found["3"].median > 0
    assert found["4"].condition.startswith("not before 2024-01-24 ")
    waits = [found["4"][place] - found["3"][place] for place in (6, 7, 8)]
    assert waits == pytest.approx([DAY] * 3, abs=700)  # the moment is that of the latest event
    limited = forecasts(known, job("8", reason="AssocGrpCpuLimit"), job("9"))
    assert "AssocGrpCpuLimit" in limited["8"].condition and limited["8"].median > 0
    assert limited["9"].median > alone.median  # such jobs are part of past waits, too


def test_a_begin_time_that_has_passed_is_no_condition(known):
    found = forecasts(known, job("4", reason="BeginTime", begin=NOW - DAY))
    assert not found["4"].condition


def test_a_limit_beyond_that_of_the_partition_has_no_forecast(known):
    notes = known.set_queue(Queue([job("1", limit=400 * DAY), job("2"), job("3", limit=math.nan)]), "q.json")
    found = {one.job: one for one in known.of_waiting()}
    assert math.isnan(found["1"].median) and "beyond" in found["1"].condition
    assert found["2"].median > 0 and found["3"].median > 0 and math.isnan(found["3"].limit)
    assert notes == [f"q.json: jobs not forecast: 1; {found['1'].condition}"]
    with pytest.raises(SwflowError, match=r"--time-limit: 400 d; expected at most .* the longest limit of partition"):
        known.describe(4, 400 * DAY, "batch", None)


def test_partitions_qos_and_accounts_are_those_of_the_log(known):
    names = known.common["names"]
    assert names[queue_of(known, "gpu", "high")] == ("gpu", "high")
    assert names[queue_of(known, "batch", "normal")] == ("batch", "normal")
    assert names[queue_of(known, "none,gpu", "odd")][0] == "gpu"
    known.set_queue(Queue([job("1", account="chemistry"), job("2", user="new", account="physics")]), "q.json")
    assert [one.request.group for one in known.queue] == [2, 1]
    assert known.queue[0].request.user == 3 and known.queue[1].request.user == -1


def test_a_misspelt_partition_is_named(known):
    with pytest.raises(SwflowError, match=r"q.json: partition 'bacth'; expected a partition of log; .*batch"):
        known.set_queue(Queue([job(partition="bacth")]), "q.json")
    (note,) = known.set_queue(Queue([job("1", partition="bacth"), job("2")]), "q.json")
    assert "partition 'bacth' is not in log; jobs not forecast: 1; " in note and "batch" in note
    assert [one.job for one in known.of_waiting()] == ["2"]


@pytest.mark.parametrize(("days", "refused"), [(1.9, False), (2.1, True), (45, True)])
def test_a_queue_much_later_than_the_log_is_refused(known, days, refused):
    moment = SECOND + known.now + days * DAY
    jobs = Queue([job(submit=moment), job("2", submit=NOW - WEEK)])
    if refused:
        with pytest.raises(SwflowError, match=r"q.json: 20\d\d-.* days after the last event of log, .*import newer"):
            known.set_queue(jobs, "q.json")
    else:
        known.set_queue(jobs, "q.json")
        assert known.now == pytest.approx(moment - SECOND)
    old = Queue([job(submit=NOW - WEEK)])  # a job can have waited for long
    old.moment = moment
    if refused:
        with pytest.raises(SwflowError, match="days after the last event"):
            known.set_queue(old, "q.json")


def test_a_running_job_that_does_not_fit_the_machine_is_refused(known):
    with pytest.raises(SwflowError, match=r"q.json: job 7: 65 processors; expected at most the 64"):
        known.set_queue(Queue([job("7", processors=65, start=NOW - 60)]), "q.json")


def test_a_size_beyond_that_of_the_partition_or_machine_has_no_forecast():
    header = {"UnixStartTime": [str(SECOND)], "MaxProcs": ["64"], "Partition": ["1 batch", "2 gpu"],
              "PartitionProcs": ["1 48"]}  # fmt: skip
    jobs = log_of().with_columns(processors=1, allocated_processors=1, requested_processors=1, wait_time=0.0)
    known = replace(known_forecaster(), common=cases_of(replace(workload(jobs), header=header))[1]["common"])
    assert known.common["partition_sizes"][1] == 48  # stated
    gpu = known.common["partition_sizes"][2]
    assert 1 < gpu < 48  # the most in use at once
    sizes = {"1": ("batch", 48), "2": ("batch", 49), "3": ("batch", 65), "4": ("gpu", gpu), "5": ("gpu", gpu + 1)}
    found = forecasts(known, *(job(name, partition=one, processors=size) for name, (one, size) in sizes.items()))
    assert [name for name, one in found.items() if math.isnan(one.median)] == ["2", "3", "5"]
    assert found["2"].condition == "49 processors beyond the 48 of partition batch: no forecast"
    assert found["5"].condition == f"{gpu + 1} processors beyond the {gpu} of partition gpu: no forecast"
    with pytest.raises(SwflowError, match=f"--processors: {gpu + 1}; expected at most the {gpu} of partition gpu"):
        known.describe(gpu + 1, 3600.0, "gpu", None)
    assert known.describe(gpu, 3600.0, "gpu", None).processors == gpu


def test_a_size_of_the_future_is_not_known():
    """A guess in the header is that of the whole log, so it says nothing at an earlier moment."""
    jobs = log_of().with_columns(processors=1, allocated_processors=1, requested_processors=1, wait_time=0.0)
    header = {"UnixStartTime": [str(SECOND)], "MaxProcs": ["64"], "PartitionProcs": ["1 60 (guessed: peak use)"]}
    early = cases_of(replace(workload(jobs), header=header), 2 * WEEK)[1]["common"]["partition_sizes"]
    assert early[1] < 60


def test_a_start_after_another_job_has_no_chance_by_a_time_of_the_clock(known):
    known = replace(known, chances=Same())
    found = forecasts(known, job("1"), job("2", reason="Dependency", dependency="afterok:9"))
    assert not any(math.isnan(one) for one in found["1"].chances)
    unknown = [time.name for time, one in zip(known.times, found["2"].chances, strict=True) if math.isnan(one)]
    assert unknown == ["by_morning"]


class Same:
    """Chances that are the same for all jobs."""

    def __call__(self, ends, waits, within) -> np.ndarray:
        return np.full(within.shape, 0.5)


def test_an_empty_queue_has_no_forecasts(known, tmp_path):
    from swflow.forecast.documents import json_text, prometheus_text
    from swflow.forecast.page import write_page

    empty = Queue()
    assert known.set_queue(empty, "q.txt") == ["q.txt: the queue is empty: no job waits or runs"]
    assert known.of_waiting() == [] and json.loads(json_text(known, []))["rows"] == []
    assert "# HELP" in prometheus_text(known, [])
    write_page(known, tmp_path / "page.html")
    empty.moment = NOW + DAY
    known.set_queue(empty, "q.json")
    assert known.now == NOW + DAY - SECOND


def test_running_jobs_without_a_limit_are_planned_with_past_run_times(known):
    known.set_queue(Queue([job("1", start=NOW - 60, limit=math.nan), job("2")]), "q.json")
    (end,) = known.sweep.ends
    assert NOW - SECOND - 60 < end[0] < NOW - SECOND + 30 * DAY and known.sweep.unlimited == 1


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Provide a log, and a fit that fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("swflow.forecast.forecaster.fit", lambda *_, **__: pytest.fail("models were fitted"))
    header = {"UnixStartTime": [str(SECOND)], "MaxProcs": ["64"], "Partition": ["1 batch", "2 gpu"]}
    write_swf("site.swf", log_of(), header)


JOB = "5|ann|acc|{partition}|4|{limit}|{submit}|N/A|PENDING"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--processors", 4, "--time-limit", "1h", "--partition", "bacth"),
            "--partition: 'bacth'; expected a partition",
        ),
        (("--processors", 4, "--time-limit", "900d", "--partition", "gpu"), "--time-limit: 900 d; expected at most "),
        (("--processors", 65, "--time-limit", "1h"), "--processors: 65; expected at most the 64"),
        ({"submit": "2024-01-29T12:00:00"}, "q.txt: 2024-01-29 12:00 is "),
        ({"partition": "bacth"}, "q.txt: partition 'bacth'; expected a partition of site.swf; did you mean 'batch'?"),
        ({"limit": "soon"}, "q.txt:2: TIME_LIMIT: 'soon'"),
    ],
)
def test_what_a_log_cannot_forecast_is_found_before_the_fit(site, capfd, options, message):
    if isinstance(options, dict):
        values = {"partition": "batch", "limit": "1:00:00", "submit": "2024-01-23T12:00:00"} | options
        header = "JOBID|USER|ACCOUNT|PARTITION|CPUS|TIME_LIMIT|SUBMIT_TIME|START_TIME|STATE"
        Path("q.txt").write_text(f"{header}\n{JOB.format(**values)}\n")
        options = ("--queue", "q.txt")
    assert call("forecast", "site.swf", "--method", "past", *options) == 1
    captured = capfd.readouterr()
    lines = [line for line in captured.err.splitlines() if line.startswith("swflow: ")]
    assert len(lines) == 1 and message in lines[0] and not captured.out
