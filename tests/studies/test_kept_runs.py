"""Runs in the cache: what is restored equals what was simulated, and what differs is simulated anew."""

from dataclasses import replace

import polars as pl
import pytest

from swflow.files import cache
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.studies import kept_runs
from swflow.studies.kept_runs import kept_run
from swflow.studies.variants import variants
from swflow.studies.whatif import ask

WEEK = 604800.0


@pytest.fixture
def simulated(tmp_path, monkeypatch):
    """Count the simulations in an empty cache."""
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path / "cache"))
    counted, run = [], kept_runs.run

    def counting(workload, scheduler, middle):
        counted.append(scheduler)
        return run(workload, scheduler, middle)

    monkeypatch.setattr(kept_runs, "run", counting)
    return counted


def workload(user: int = 1) -> Workload:
    jobs = pl.DataFrame([
        {"job_id": week * 2 + place + 1, "submit_time": week * WEEK, "run_time": 3600.0, "processors": 4,
         "estimate": 7200.0, "requested_time": 7200.0, "wait_time": 3600.0 * place, "user_id": user}
        for week in range(8) for place in (0, 1)
    ])  # fmt: skip
    return Workload(jobs, Machine.of(4), "log")


def test_a_restored_run_equals_the_simulated_one(simulated):
    scheduler = Scheduler(backfill="easy")
    first, second = (kept_run(workload(), scheduler) for _ in range(2))
    assert len(simulated) == 1
    assert first.table.equals(second.table) and first.outcomes.equals(second.outcomes)
    assert (first.metrics, first.correlations, first.peak_processors, first.seconds) == (
        second.metrics, second.correlations, second.peak_processors, second.seconds,
    )  # fmt: skip


def test_other_jobs_machines_and_options_are_simulated(simulated):
    one = workload()
    for changed in (one, workload(2), replace(one, machine=Machine.of(8)), replace(one, name="other"), one):
        kept_run(changed, Scheduler(backfill="easy"))
    kept_run(one, Scheduler(order="sjf"))
    assert len(simulated) == 5


def test_the_base_of_a_second_question_is_not_simulated(simulated):
    answers = [
        ask(workload(), variants({"easy": {"backfill": "easy"}}, processors=[more])) for more in ("+50%", "+99%")
    ]
    assert len(simulated) == 1
    bases = [answer.table.filter(pl.col("variant") == "easy") for answer in answers]
    assert bases[0].drop("jobs").equals(bases[1].drop("jobs"))


def test_a_damaged_file_costs_time_only(simulated):
    scheduler = Scheduler(backfill="easy")
    first = kept_run(workload(), scheduler)
    (file,) = (cache.cache_home() / "runs").iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    for _ in range(2):
        assert kept_run(workload(), scheduler).table.equals(first.table)
    assert len(simulated) == 2


def test_plugins_and_functions_are_not_kept(simulated):
    kept_run(workload(), Scheduler(order="own_policies:short_and_old"))
    kept_run(workload(), Scheduler(order="log"))
    assert not (cache.cache_home() / "runs").exists()
