"""Test that lower bounds do not exceed the metrics of any schedule, including optimal schedules of a few jobs."""

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.bound_checks import Job, best_metrics, exceeded, schedules
from helpers.cli import call
from swflow.analysis.bounds import Bound, _squashed_response, bounds, gaps, preempted
from swflow.analysis.metrics import metrics
from swflow.errors import SwflowError
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
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


# -- the definitions of the bounds, in fractions of a second


def backlog(pieces: list[tuple[Fraction, Fraction, int]], capacity: int) -> Fraction:
    """Return the integral of the backlog of a fluid queue; a piece is an inflow at a rate from one time to another."""
    times = sorted({time for begin, end, _ in pieces for time in (begin, end)})
    left = total = Fraction(0)
    for now, then in itertools.pairwise(times):
        slope, length = sum(rate for begin, end, rate in pieces if begin <= now < end) - capacity, then - now
        after = left + slope * length
        total += (left + after) / 2 * length if after >= 0 else left**2 / (-2 * slope)
        left = max(after, Fraction(0))
    return total + left**2 / (2 * capacity)


def one_at_a_time(jobs: list[tuple[int, int, int]], key: Callable[[int, int], Any]) -> list[list[int]]:
    """Return the seconds in which each of some jobs (release, length, index) is processed, by ascending key."""
    done: list[list[int]] = [[] for _ in jobs]
    now = 0
    while any(len(seconds) < length for seconds, (_, length, _) in zip(done, jobs, strict=True)):
        ready = [job for job, (release, length, _) in enumerate(jobs) if release <= now and len(done[job]) < length]
        if ready:
            done[min(ready, key=lambda job: (key(job, jobs[job][1] - len(done[job])), job))].append(now)
        now += 1
    return done


def squashed_response(jobs: list[Job], machine: int) -> Fraction:
    """Return the sum over busy periods of the largest bound; a second is one of `machine` steps."""
    scaled = [(submit * machine, run * width, number) for number, (submit, run, width) in enumerate(jobs)]
    shortest, smallest = (one_at_a_time(scaled, key) for key in (lambda _, left: left, lambda job, _: scaled[job][1]))
    periods: list[list[list[Fraction]]] = []
    finish = -1
    for (release, length, _), (submit, run, _), ends, busy in zip(scaled, jobs, shortest, smallest, strict=True):
        if release >= finish:
            periods.append([])
        finish = max(finish, release) + length
        end = Fraction(ends[-1] + 1, machine) if length else submit
        middle = (Fraction(sum(busy), length) + Fraction(1, 2)) / machine if length else submit
        periods[-1].append([Fraction(run), end - submit, middle + Fraction(run, 2) - submit])
    return sum((max(map(sum, zip(*period, strict=True))) for period in periods), Fraction(0))


def weighted_wait(jobs: list[Job], machine: int) -> Fraction:
    wide = [job for job in jobs if 2 * job[2] > machine]
    flows = [(Fraction(submit), Fraction(submit + run), width) for submit, run, width in jobs]
    found = backlog(flows, machine)
    if not wide:
        return found
    one = one_at_a_time([(submit, run, 0) for submit, run, _ in wide], lambda job, _: -wide[job][2])
    pieces = [(Fraction(now), Fraction(now + 1), wide[job][2]) for job, seconds in enumerate(one) for now in seconds]
    later = sum(rate * (begin + Fraction(1, 2)) for begin, _, rate in pieces)
    later -= sum(width * run * (submit + Fraction(run, 2)) for submit, run, width in wide)
    narrow = [flow for flow in flows if 2 * flow[2] <= machine]
    return max(found, later + backlog(narrow + pieces, machine))


def by_definition(jobs: list[Job], machine: int) -> dict[str, float]:
    """Return the bounds on all metrics, by their definition in `swflow.analysis.bounds`."""
    runs = sum(run for _, run, _ in jobs)
    response = squashed_response(jobs, machine)
    wide = [job for job in jobs if 2 * job[2] > machine]
    if wide:
        ends = [seconds[-1] + 1 if seconds else 0 for seconds in one_at_a_time(wide, lambda _, left: left)]
        waits = sum(max(end - submit, 0) for end, (submit, *_) in zip(ends, wide, strict=True))
        response = max(response, waits + squashed_response([job for job in jobs if job not in wide], machine))
    areas = sorted({run * width for _, run, width in jobs if run}, reverse=True)
    total, before = 0.0, 0.0
    for place, largest in enumerate(areas):
        if place and math.floor(4 * math.log2(largest)) == math.floor(4 * math.log2(areas[place - 1])):
            continue
        small = [job for job in jobs if 0 < job[1] * job[2] <= largest]
        total += (1 / largest - before) * weighted_wait(small, machine)
        before = 1 / largest
    response = max(float(response), runs + total)
    lasts = [max(submit + run for submit, run, _ in jobs)]
    for name, work in (("area", [run * width / machine for _, run, width in jobs]), ("wide", [job[1] for job in wide])):
        some = jobs if name == "area" else wide
        lasts += [submit + sum(work[place:]) for place, (submit, *_) in enumerate(some)]
    makespan, area = max(lasts) - jobs[0][0], sum(run * width for _, run, width in jobs)
    found = {"mean_response_time": response / len(jobs), "mean_wait_time": (response - runs) / len(jobs)}
    found["makespan"] = makespan
    if makespan:
        found["utilization"] = area / (machine * makespan)
    if area:
        found["awwt"] = float(weighted_wait(jobs, machine)) / area
        found["awrt"] = found["awwt"] + sum(run**2 * width for _, run, width in jobs) / area
    return found


def test_the_bound_of_each_busy_period_equals_its_definition() -> None:
    """Each of the three bounds is the largest one of some period."""
    rng = random.Random(2)
    for _ in range(60):
        machine, span = rng.choice([2, 3, 5]), rng.choice([5, 40])
        jobs = sorted((rng.randint(0, span), rng.randint(0, 6), rng.randint(1, machine)) for _ in range(6))
        submit, run, width = (np.array(column, float) for column in zip(*jobs, strict=True))
        found, _ = _squashed_response(submit, run, run * width / machine)
        assert found == pytest.approx(float(squashed_response(jobs, machine)), abs=1e-9), jobs


def test_a_job_that_ends_at_a_release_is_one_piece() -> None:
    for priority in (None, np.array([2.0, 1.0])):
        pieces = preempted(np.array([1.0, 6.0]), np.array([5.0, 4.0]), priority)
        assert [column.tolist() for column in pieces] == [[1, 6], [6, 10], [0, 1]]


def test_a_gap_is_relative_to_a_bound_above_0() -> None:
    limits = [Bound("awrt", 10.0, "x"), Bound("awwt", 0.0, "x"), Bound("makespan", 10.0, "x"), Bound("mean", 4.0, "x")]
    assert gaps(limits, {"awrt": 11.0, "awwt": 5.0, "makespan": None}) == {
        "awrt": pytest.approx(0.1), "awwt": None, "makespan": None, "mean": None,
    }  # fmt: skip


def test_bounds_equal_their_definitions() -> None:
    rng = random.Random(1)
    for _ in range(60):
        machine, span = rng.choice([2, 3, 4, 7]), rng.choice([0, 5, 20])
        width, run = rng.choice([machine, max(machine // 2, 1)]), rng.choice([3, 12])
        jobs = [
            (rng.randint(0, span), rng.randint(0, run), rng.randint(1, width)) for _ in range(rng.choice([1, 4, 8]))
        ]
        jobs.sort(key=lambda job: job[0])
        assert found(table_in_order(jobs), machine) == pytest.approx(by_definition(jobs, machine), abs=1e-9), jobs
    assert found(table_in_order([(0, 0.25, 1)]), 4)["awrt"] == 0.25  # less than a processor-second


def table_in_order(jobs: list[Job]) -> pl.DataFrame:
    return pl.DataFrame(jobs, {"submit_time": pl.Float64, "run_time": pl.Float64, "processors": pl.Int64}, orient="row")
