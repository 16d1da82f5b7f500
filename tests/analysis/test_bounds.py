"""Test that lower bounds do not exceed the metrics of any schedule, including optimal schedules of a few jobs."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.bound_checks import Job, best_metrics, exceeded, schedules
from helpers.cli import call
from swflow.analysis.bounds import bounds
from swflow.analysis.metrics import metrics
from swflow.analysis.optimum import OBJECTIVES, optimum
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, write_workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import open_workload


def table(jobs: list[Job]) -> pl.DataFrame:
    rows = sorted(jobs)
    return pl.DataFrame(
        {
            "job_id": range(1, len(rows) + 1),
            "submit_time": [float(job[0]) for job in rows],
            "run_time": [float(job[1]) for job in rows],
            "processors": [job[2] for job in rows],
            "estimate": [float(max(job[1], 1)) for job in rows],
        }
    )


def found(jobs: pl.DataFrame, machine: int) -> dict[str, float]:
    return {bound.measure: bound.value for bound in bounds(jobs, machine)}


@st.composite
def workloads(draw: st.DrawFn, most: int, machines: tuple[int, ...]) -> tuple[list[Job], int]:
    """Draw up to ``most`` jobs, some of run time 0, and the processors of a machine."""
    machine = draw(st.sampled_from(machines))
    span = draw(st.sampled_from([0, 5, 20, 60]))
    job = st.tuples(st.integers(0, span), st.sampled_from([0, 1, 2, 3, 5, 8, 20, 100]), st.integers(1, machine))
    return sorted(draw(st.lists(job, min_size=1, max_size=most))), machine


@given(workloads(5, (2, 3, 4, 7)))
def test_no_bound_is_above_the_best_of_all_schedules(workload: tuple[list[Job], int]) -> None:
    """`benchmarks/bounds.py` checks more workloads, of up to seven jobs."""
    jobs, machine = workload
    assert exceeded(found(table(jobs), machine), best_metrics(jobs, machine)) == []


@given(
    workloads(40, (4, 16, 100)),
    st.sampled_from(
        [
            {},
            {"backfill": "easy"},
            {"backfill": "easy", "reservations": 3},
            {"order": "sjf", "backfill": "easy"},
            {"order": "estimate * processors - 10 * wait", "backfill": "easy"},
            {"backfill": "conservative"},
        ]
    ),
    st.integers(1, 5),
)
@pytest.mark.slow
def test_no_bound_is_above_the_metrics_of_a_run(
    workload: tuple[list[Job], int], options: dict[str, Any], factor: int
) -> None:
    jobs = table(workload[0]).with_columns(estimate=pl.col("estimate") * factor)
    outcomes = simulate(Workload(jobs, Machine.of(workload[1]), "random"), Scheduler(**options))
    assert exceeded(found(jobs, workload[1]), metrics(outcomes, workload[1])) == []


def test_every_active_schedule_is_enumerated() -> None:
    """Of three jobs submitted at once, job 3 fits beside job 1, and job 2 needs the whole machine."""
    assert schedules([(0, 10, 3), (0, 10, 4), (0, 5, 1)], 4) == {(0, 10, 0), (10, 0, 10), (15, 5, 0)}


def test_a_bound_above_the_optimum_is_reported() -> None:
    """Two jobs of 3 of 4 processors run one after the other."""
    best = best_metrics([(0, 10, 3), (0, 10, 3)], 4)
    assert best == {
        "mean_wait_time": 5, "mean_response_time": 15, "makespan": 20, "awwt": 5, "awrt": 15, "utilization": 0.75,
    }  # fmt: skip
    assert exceeded(best, best) == []
    assert exceeded({"makespan": 20.1, "utilization": 0.74, "awrt": 14.9}, best) == ["makespan", "utilization"]


def test_a_bound_is_reached_if_no_job_waits() -> None:
    jobs = table([(0, 10, 2), (5, 10, 2), (40, 7, 4)])
    bounded = found(jobs, 4)
    assert bounded["awwt"] == 0 and bounded["mean_wait_time"] == 0
    assert bounded["awrt"] == pytest.approx((20 * 10 + 20 * 10 + 28 * 7) / 68)
    assert bounded["makespan"] == 47


def test_jobs_wider_than_half_of_the_machine_exclude_each_other() -> None:
    """By area, two jobs of 3 processors fit on 5 processors within the time; by width, they do not."""
    jobs = table([(0, 10, 3), (0, 10, 3)])
    bounded = found(jobs, 5)
    assert bounded == pytest.approx(best_metrics([(0, 10, 3), (0, 10, 3)], 5))
    assert bounded["awwt"] == 5 and bounded["makespan"] == 20


def test_the_fluid_queue_is_served_at_the_capacity() -> None:
    """Three jobs of 2 processors and 10 s on 4 processors: inflow 6 and service 4 for 10 s, then only service."""
    bounded = found(table([(0, 10, 2)] * 3), 4)
    assert bounded["awwt"] == pytest.approx((20 * 10 / 2 + 20 * 20 / (2 * 4)) / 60)


def test_the_mean_wait_is_smallest_if_the_largest_areas_wait() -> None:
    """
    Three jobs of 2 processors and 10 s, and one of 100 s, on 4 processors.

    The three jobs alone have the backlog integral 20 * 10 / 2 + 20 * 20 / 8 = 150 and areas of 20. With the fourth job,
    whose area is 200, the backlog rises to 40 in 10 s and falls to 0 in 20 s: 600.
    """
    jobs = table([(0, 10, 2)] * 3 + [(0, 100, 2)])
    bound = next(bound for bound in bounds(jobs, 4) if bound.measure == "mean_wait_time")
    assert bound.theorem == "fluid by area"
    assert bound.value == pytest.approx(((1 / 20 - 1 / 200) * 150 + 600 / 200) / 4)


def test_a_job_wider_than_the_machine_is_refused() -> None:
    with pytest.raises(SwflowError, match="expected finite times and 1 to 4 processors"):
        bounds(table([(0, 10, 5)]), 4)


def test_no_jobs_have_no_bounds() -> None:
    assert bounds(table([(0, 1, 1)]).clear(), 4) == []


@pytest.mark.archive
@pytest.mark.parametrize("log", ["KTH-SP2", "SDSC-SP2"])
def test_no_bound_is_above_easy_on_a_real_log(log: str, traces: Path) -> None:
    workload = open_workload(next(traces.glob(f"{log}*.swf.gz")))
    bounded = found(workload.jobs, workload.machine.processors)
    for backfill in ("none", "easy", "conservative"):
        outcomes = simulate(workload, Scheduler(backfill=backfill))
        assert exceeded(bounded, metrics(outcomes, workload.machine.processors)) == []
    assert (
        bounded["awrt"]
        > 0.6 * metrics(simulate(workload, Scheduler(backfill="easy")), workload.machine.processors)["awrt"]
    )
    assert np.isfinite(list(bounded.values())).all()


def test_the_command_prints_bounds_and_the_gap_of_a_run(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["1 0 -1 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1", "2 0 -1 100 3 -1 -1 3 100 -1 1 1 1 1 1 1 -1 -1"]
    Path("toy.swf").write_text("; MaxProcs: 5\n" + "\n".join(rows) + "\n")
    assert call("simulate", "toy.swf", "-o", "easy.parquet") == 0
    capfd.readouterr()
    assert call("bound", "toy.swf", "--run", "easy.parquet", "-o", "bounds.parquet") == 0
    printed = capfd.readouterr().out
    assert [line.split()[-2:] for line in printed.splitlines() if "awwt" in line] == [["50", "+0.0%"]]
    assert pl.read_parquet("bounds.parquet").filter(measure="makespan")["value"].item() == 200
    Path("other.swf").write_text("; MaxProcs: 5\n" + rows[0] + "\n")
    assert call("bound", "other.swf", "--run", "easy.parquet") == 1
    assert "--run easy.parquet: has other jobs" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        ((0, -60), "jobs that start before their submission, of which it has 1"),
        ((0, 0), "uses up to 6 of 5 processors"),
    ],
)
def test_an_impossible_record_has_no_gap(waits, words, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = {"job_id": [1, 2], "submit_time": [0.0, 120.0], "run_time": [150.0, 60.0], "processors": [3, 3]}
    table = pl.DataFrame(jobs).with_columns(wait_time=pl.Series(waits, dtype=pl.Float64), estimate="run_time")
    write_workload(Workload(table, Machine.of(5), "A"), "A.parquet")
    assert call("simulate", "A.parquet", "--order", "log", "-o", "log.parquet") == 0
    assert call("bound", "A.parquet", "--run", "log.parquet") == 1
    assert words in capfd.readouterr().err


def test_exact_optima_lie_between_the_bound_and_every_schedule() -> None:
    pytest.importorskip("ortools")
    generator = random.Random(7)
    for _ in range(5):
        jobs = [(0, generator.choice([0, 1, 2, 3, 5, 8, 20]), generator.randint(1, 6)) for _ in range(5)]
        optimal = best_metrics(jobs, 6)
        for objective in OBJECTIVES:
            if objective in optimal:
                solved = optimum(table(jobs), 6, objective, 5)
                assert solved.optimal and solved.value == pytest.approx(optimal[objective])
