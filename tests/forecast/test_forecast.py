"""Test forecasts: features against a naive computation, calibration, censoring, and the use of the past only."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import swflow
from helpers.cli import call
from helpers.forecasts import recorded_site
from swflow.errors import SwflowError
from swflow.figures.forecasts import draw_forecast_on
from swflow.files.query import connect
from swflow.forecast import evaluation, model, simulation
from swflow.forecast.cases import Cases, decades
from swflow.forecast.classes import by_class, order_statistics
from swflow.forecast.evaluation import (
    BEST,
    CLASSES,
    PAST,
    SIMULATION,
    Evaluated,
    better,
    outcomes,
    summary,
    walk_forward,
)
from swflow.forecast.forecaster import cases_of, fit
from swflow.forecast.model import Calibrator, calibrated, kaplan_meier
from swflow.forecast.record import Request, requests_of
from swflow.forecast.simulation import RunTimes, simulated, simulator_of
from swflow.forecast.squeue import FORMAT, read_squeue
from swflow.forecast.sweep import FEATURES, from_log
from swflow.log.swf import write_swf
from swflow.values import DAY, WEEK

pytestmark = pytest.mark.compiled  # simulates weeks of a site

EASY = swflow.Scheduler(backfill="easy")


@pytest.fixture(scope="module")
def site():
    return recorded_site()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(model, "_ROUNDS", 8)
    monkeypatch.setattr(simulation, "FUTURES", 20)
    monkeypatch.setattr(simulation, "MOST", 60)
    monkeypatch.setattr(simulation, "FEWEST", 20)
    monkeypatch.setattr(evaluation, "FEWEST_COMPARED", 10)


def test_features_equal_a_naive_computation(site):
    jobs = site.jobs.head(400)
    cases, _ = from_log(replace(site, jobs=jobs))
    submit, wait = jobs["submit_time"].to_numpy(), jobs["wait_time"].to_numpy()
    start, requests = submit + wait, requests_of(jobs)
    end = start + jobs["run_time"].to_numpy()
    width, limit = (np.array([getattr(one, name) for one in requests], float) for name in ("processors", "limit"))
    place = {number: index for index, number in enumerate(jobs["job_id"].to_list())}
    columns = {name: cases.values[:, number] for number, name in enumerate(FEATURES)}
    assert (cases.waited > 0).sum() > 20
    for row, (number, now) in enumerate(zip(cases.job.tolist(), cases.asked.tolist(), strict=True)):
        job = place[number]
        before = (submit < now) | ((submit == now) & (np.arange(submit.size) < job))
        waiting = before & (start >= now)
        waiting[job] = False
        running = (start < now) & (end > now)
        started = np.flatnonzero(start < now)
        mine = started[[requests[one].user == requests[job].user for one in started]] if started.size else started
        expected = {
            "waiting": waiting.sum(), "waiting_processors": width[waiting].sum(),
            "waiting_time": (width * limit)[waiting].sum() / 64, "running": running.sum(),
            "free": 64 - width[running].sum(),
            "remaining": (width * np.maximum(start + limit - now, 0))[running].sum() / 64,
            "narrower": (waiting & (np.ceil(np.log2(width)) <= np.ceil(np.log2(width[job])))).sum(),
            "ahead": (waiting & (np.arange(submit.size) < job)).sum(), "user_jobs": mine.size,
            "waited": now - submit[job],
        }  # fmt: skip
        if mine.size:
            expected["user_last"] = decades(wait[mine[np.lexsort((mine, start[mine]))[-1]]])
        free, after = 64 - width[running].sum(), 0.0
        for one in sorted(np.flatnonzero(running), key=lambda one: start[one] + limit[one]):
            if free >= width[job]:
                break
            free, after = free + width[one], max(start[one] + limit[one] - now, 0.0)
        expected["fits_after"] = after
        for name, value in expected.items():
            assert columns[name][row] == pytest.approx(value, rel=1e-5, abs=0.51), (name, row)


@pytest.mark.slow
def test_the_future_of_a_log_does_not_change_a_bit_of_its_forecasts(site):
    now = 9.0 * WEEK + 0.37 * DAY
    jobs, random = site.jobs, np.random.default_rng(5)
    submit, wait = jobs["submit_time"].to_numpy(), jobs["wait_time"].to_numpy()
    start, run = submit + wait, jobs["run_time"].to_numpy()
    longer = random.integers(1, 90_000, jobs.height).astype(float)
    other = jobs.with_columns(
        wait_time=pl.Series(np.where(start > now, np.maximum(now - submit, 0) + longer, wait)),
        run_time=pl.Series(np.where(start + run > now, np.maximum(now - start, 0) + longer, run)),
        requested_processors=pl.Series(np.where(submit > now, random.integers(1, 65, jobs.height),
                                                jobs["requested_processors"].fill_null(1))),
        user_id=pl.when(pl.col("submit_time") > now).then(3).otherwise("user_id"),
    )  # fmt: skip
    waits = (submit <= now) & (start > now)
    assert waits.sum() > 3 and (start + run > now).sum() > 100
    found = []
    for table in (jobs.with_columns(requested_processors=pl.col("requested_processors").fill_null(1)), other):
        cases, _ = from_log(replace(site, jobs=table))
        log = replace(site, jobs=table)
        simulator = simulator_of(log, EASY, cases, 5.0 * WEEK, now)
        walked = walk_forward(cases, 8.0 * WEEK, now, method="best", simulator=simulator)
        early = cases.take(cases.asked <= now)
        known, state = cases_of(replace(site, jobs=table), now)
        found.append([early.values.tobytes(), early.job.tobytes()])
        found[-1] += [forecasts.tobytes() for _, forecasts in walked.values()]
        simulator = simulator_of(log, EASY, known, 3.0 * WEEK, now)
        for method in ("past", "simulation"):
            fitted = fit(known, method=method, simulator=simulator, **state)
            request = fitted.describe(8, 3600.0, None, "3")
            found[-1] += [fitted.of_waiting(), fitted.of_requests([request]), sorted(fitted.shifts.items())]
            found[-1] += [fitted.hits, fitted.method]
            assert len(fitted.of_waiting()) == waits.sum()
    assert set(walked) == {PAST, SIMULATION, BEST, CLASSES} and walked[SIMULATION].forecasts.size > 30
    for number, (one, two) in enumerate(zip(*found, strict=True)):
        assert one == two, number


def test_forecasts_do_change_with_their_past(site):
    cases, _ = from_log(site)
    earlier = cases.asked + cases.wait < 7 * WEEK
    changed = replace(cases, wait=np.where(earlier, cases.wait * 3 + 60, cases.wait))
    one, two = (walk_forward(some, 8.0 * WEEK, 8.5 * WEEK)[PAST].forecasts for some in (cases, changed))
    assert one.shape == two.shape and np.mean(one != two) > 0.5


def test_simulations_start_from_the_state_of_the_log(site):
    some = pl.when(pl.col("job_id") % 9 == 0).then(0.0).otherwise("run_time")
    site = replace(site, jobs=site.jobs.with_columns(run_time=some))
    cases, _ = from_log(site)
    simulator = simulator_of(site, EASY, cases, 5 * WEEK, 10 * WEEK)
    waiting, running = (cases.values[:, FEATURES.index(name)] for name in ("waiting", "running"))
    for case in range(0, cases.asked.size, 7):
        row, waits = simulator.place[int(cases.job[case])], cases.waited[case] > 0
        state = simulator.state(float(cases.asked[case]), None if waits else row + 1)
        assert row in state.jobs and np.isnan(state.elapsed).sum() == waiting[case] + 1
        assert np.isfinite(state.elapsed).sum() == running[case]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": "sjf"},
        {"backfill": "easy"},
        {"backfill": "easy", "reservations": 3, "backfill_order": "sjf"},
        {"order": "sjf", "backfill": "easy"},
        {"backfill": "conservative"},
    ],
)
def test_simulations_equal_the_record_if_nothing_is_unknown(site, monkeypatch, options):
    # Run times equal the limits. Under FCFS, later arrivals delay no job; for the others, there are none.
    scheduler, jobs = swflow.Scheduler(**options), site.jobs.head(150).with_columns(run_time="estimate")
    waits = swflow.simulate(replace(site, jobs=jobs), scheduler)["wait_time"]
    log = replace(site, jobs=jobs.with_columns(wait_time=waits))
    cases, _ = from_log(log)
    simulator = simulator_of(log, scheduler, cases, 0.5 * WEEK, WEEK)
    simulator.share = 1.0
    last = float(jobs["submit_time"][-1])
    if options:
        none = np.empty(0, int), np.empty(0, int), np.empty(0), np.empty(0)
        monkeypatch.setattr(simulation.Arrivals, "until", lambda *_: none)
    found = simulated(cases, simulator, last if options else last - DAY / 4, last + DAY)
    rows = np.isfinite(found[:, 0])
    assert rows.sum() > 10 and decades(cases.wait[rows]).max() > 3
    expected = np.repeat(decades(cases.wait[rows])[:, None], 3, axis=1)
    assert found[rows] == pytest.approx(expected, abs=1e-6)


def test_run_times_are_drawn_from_those_of_the_user_that_were_longer():
    mine, others = (Request.of(4, 1000.0, user, 0, 0) for user in (1, 2))
    requests = [mine] * 40 + [others] * 40
    run = np.concatenate((np.arange(1.0, 41.0) * 10, np.full(40, 900.0)))
    end = np.concatenate((np.arange(40.0), np.arange(40.0)))
    found = RunTimes(requests, run, end)
    random = np.random.default_rng(1)
    drawn = found.draw(mine, 0.0, 100.0, random, 20_000)
    # 40 / 45 from the same request, 40 / 45 of the rest from the user, half of the others from both groups of all jobs
    assert np.mean(drawn < 500) == pytest.approx(1 - (5 / 45) ** 2 / 2, abs=0.005)
    assert found.draw(mine, 200.0, 100.0, random, 1000).min() > 200
    assert found.draw(mine, 0.0, 19.5, random, 1000).min() >= 10 and (found.draw(mine, 0, 4.5, random, 99) != 60).all()
    new = found.draw(Request.of(4, 1000.0, 3, 0, 0), 0.0, 100.0, random, 1000)
    assert 0.4 < np.mean(new == 900) < 0.6
    assert (found.draw(mine, 5000.0, 100.0, random, 9) == 5060).all()


def test_the_better_method_is_chosen_by_what_was_known():
    asked = np.linspace(0, 40 * DAY, 400)
    wait = np.where(asked < 30 * DAY, 1000.0, 1e5)
    cases = _cases(asked, wait, 42 * DAY)
    short, long = (np.tile(decades(np.array([low, value, high])), (400, 1)) for low, value, high in
                   ((500, 1000, 2000), (5e4, 1e5, 2e5)))  # fmt: skip
    assert better(cases, {"long": long, "short": short}, 30 * DAY) == "short"
    assert better(cases, {"long": long, "short": short}, 0.5 * DAY) == "long"  # too few: the first
    late = cases.take(asked >= 30 * DAY)
    assert better(late, {"short": short[asked >= 30 * DAY], "long": long[asked >= 30 * DAY]}, 42 * DAY) == "long"


def test_kaplan_meier_equals_the_product_over_risk_sets():
    random = np.random.default_rng(1)
    for _ in range(50):
        size = int(random.integers(1, 12))
        value = random.integers(0, 6, size).astype(float)
        known, weight = random.random(size) < 0.7, random.random(size) + 0.1
        top = float(random.random())
        survival, expected = 1.0, math.inf
        for one in np.unique(value):
            at_risk = weight[value >= one].sum() + top
            # ties leave the risk set one after the other, known values first
            for amount in weight[(value == one) & known]:
                survival *= 1 - amount / at_risk
                at_risk -= amount
            if survival <= 0.4 + 1e-12 and math.isinf(expected):
                expected = one
        assert kaplan_meier(value, known, weight, 0.6, top) == expected


@pytest.mark.parametrize("size", [18, 19, 20, 39, 40, 100])
def test_both_ends_of_a_conformal_interval_miss_equally_often(size):
    """A value below the lower end, or above the upper one, is one of the next 5 % of the ranks."""
    value = np.random.default_rng(size).normal(size=size)
    all_of = np.ones(size, bool), np.ones(size)
    low, high = kaplan_meier(value, *all_of, 0.05, bottom=1.0), kaplan_meier(value, *all_of, 0.95, top=1.0)
    assert low == -kaplan_meier(-value, *all_of, 0.95, top=1.0) and high == -kaplan_meier(
        -value, *all_of, 0.05, bottom=1.0
    )
    ranks = int((value <= low).sum())  # the next value is equally likely to lie between any two ranks
    assert ranks / (size + 1) <= 0.05 < (ranks + 1) / (size + 1)
    assert math.isinf(low) == (size < 19)
    weight = np.arange(1.0, size + 1)
    assert kaplan_meier(value, np.zeros(size, bool), weight, 0.05, bottom=1.0) == math.inf


def _cases(asked, wait, end, size=None, partition="all"):
    count = asked.size
    return Cases(
        ("x",), np.zeros((count, 1), np.float32), asked, wait, np.zeros(count),
        np.ones(count) if size is None else size, np.full(count, partition, object), np.full(count, "1", object),
        np.arange(count), end,
    )  # fmt: skip


def test_calibrated_intervals_hold_in_each_group_although_the_raw_ones_do_not():
    random = np.random.default_rng(2)
    asked = np.sort(random.uniform(0, 60 * DAY, 8000))
    size = np.arange(8000) % 3 + 1.0
    value = random.normal(3, 0.2 * size)
    cases = _cases(asked, 10**value, 61 * DAY, size)
    raw = np.tile([2.9, 3.0, 3.1], (8000, 1))
    found = Calibrator(cases, raw)
    found.walk(0.0, 60 * DAY)
    late = asked > 30 * DAY
    hit = (found.issued[:, 0] <= value) & (value <= found.issued[:, 2])
    assert np.mean((raw[:, 0] <= value) & (value <= raw[:, 2])) < 0.4
    width = found.issued[:, 2] - found.issued[:, 0]
    assert 0.88 < hit[late].mean() < 0.92
    for one in (1, 2, 3):
        assert hit[late & (size == one)].mean() > 0.85
    assert width[late & (size == 1)].mean() < 0.5 * width[late & (size == 3)].mean()


def test_a_day_with_many_jobs_counts_like_a_few_cases():
    asked = np.concatenate((np.repeat(np.arange(40) * DAY, 40), np.full(2000, 20 * DAY + 5)))
    order = np.argsort(asked, kind="stable")
    value = np.concatenate((np.tile(np.linspace(2, 3, 40), 40), np.full(2000, 5.0)))[order]
    found = Calibrator(_cases(asked[order], 10**value, 42 * DAY), np.tile([2.0, 2.5, 3.0], (3600, 1)))
    _, up = found.shifts(42 * DAY, ["all/0/0"])["all/0/0"]
    assert up == pytest.approx(0, abs=0.1)  # more than half of the cases lie above, but on one of 40 days


def test_calibration_follows_a_drift():
    random = np.random.default_rng(3)
    asked = np.sort(random.uniform(0, 80 * DAY, 8000))
    value = random.normal(2.0, 0.3, 8000) + np.clip((asked - 40 * DAY) / (20 * DAY), 0, 1)
    found = Calibrator(_cases(asked, 10**value, 81 * DAY), np.tile([1.5, 2.0, 2.5], (8000, 1)))
    found.walk(0.0, 80 * DAY)
    hit = (found.issued[:, 0] <= value) & (value <= found.issued[:, 2])
    assert 0.85 < hit[asked > 45 * DAY].mean() < 0.95


def test_misses_move_the_level_of_an_end_in_proportion_to_their_number():
    moved = []
    for burst in (50, 100):
        asked = np.concatenate((np.repeat(np.arange(100) * DAY, 100), np.full(burst, 100 * DAY)))
        value = np.concatenate((np.full(10_000, 2.5), np.full(burst, 4.0)))
        found = Calibrator(_cases(asked, 10**value, 102 * DAY), np.tile([2.0, 2.5, 3.0], (asked.size, 1)))
        found.walk(0.0, 101 * DAY)
        before = list(found.tails)
        found.follow(102 * DAY)
        assert found.tails[0] >= before[0]  # no job started before the lower end
        moved.append(before[1] - found.tails[1])
    assert moved[1] == pytest.approx(2 * moved[0], rel=0.02)
    assert moved[1] == pytest.approx(model._STEP * 0.95, rel=0.1)  # as many misses as there are cases on a mean day


def test_waiting_jobs_widen_the_intervals_that_they_exceed():
    asked = np.linspace(0, 30 * DAY, 3000)
    wait = np.where(np.arange(3000) % 5 == 0, 25 * DAY, 1000.0)  # a fifth waits for weeks and is not known for long
    wait = np.where(asked + wait > 30 * DAY, np.nan, wait)
    cases = _cases(asked, wait, 30 * DAY)
    raw = np.tile([2.5, 3.0, 3.5], (3000, 1))
    started = cases.take(np.isfinite(wait))
    all_of_them, without = (
        Calibrator(some, raw[: some.asked.size]).shifts(30 * DAY, ["all/0/0"])["all/0/0"][1]
        for some in (cases, started)
    )
    assert all_of_them > without + 1


def test_weights_of_known_waits_make_up_for_unknown_ones():
    random = np.random.default_rng(4)
    asked = np.sort(random.uniform(0, 30 * DAY, 20000))
    wait = random.choice([60.0, 10 * DAY], 20000)
    started = asked + wait <= 30 * DAY
    weight = model.censoring_weights(asked, decades(wait), started, 30 * DAY)
    assert np.mean(wait[started] > 60) < 0.42
    assert np.average(wait[started] > 60, weights=weight[started]) == pytest.approx(0.5, abs=0.02)


def test_order_statistics_bound_the_quantiles_with_95_percent_confidence():
    from scipy.stats import binom

    for count in (59, 100, 333, 5000):
        low, median, high = order_statistics(count)
        assert low == count - 1 - high and median == count // 2
        assert binom.cdf(high, count, 0.95) >= 0.95
        assert high == count - 1 or binom.cdf(high - 1, count, 0.95) < 0.95


def test_the_baseline_uses_only_known_waits():
    asked = np.arange(200.0)
    cases = _cases(asked, np.full(200, 50.5), 300.0)
    found = by_class(cases)
    assert np.isnan(found[: 51 + 58]).all() and np.isfinite(found[51 + 59 :]).all()


def test_outcomes_count_waiting_jobs_as_misses_or_unknown():
    cases = _cases(np.zeros(4), np.array([100.0, 1e6, np.nan, np.nan]), 5000.0)
    cases = replace(cases, end=2e6)
    forecasts = np.tile([1.0, 2.0, 3.0], (4, 1))
    forecasts[3, 2] = 9.0
    table = outcomes(Evaluated(cases, forecasts))
    assert table["hit"].to_list() == [True, False, False, None]
    assert table["score"][0] == 2 and table["score"][1] == pytest.approx(2 + 20 * 3)
    scores = summary({"past": Evaluated(cases, forecasts)}, few=1).row(0, named=True)
    assert (scores["jobs"], scores["unknown"], scores["coverage"]) == (3, 1, pytest.approx(1 / 3))


def test_ends_keep_their_order():
    raw = np.array([[1.0, 2.0, 3.0]])
    moved = calibrated(raw, np.array(["a"], object), {"a": (5.0, -5.0)})
    assert (np.diff(moved, axis=1) >= 0).all() and (moved >= 0).all()


@pytest.fixture
def log(site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path / "cache"))
    header = {"MaxProcs": ["64"], "UnixStartTime": ["1700000000"]}
    write_swf("site.swf", site.jobs, header)
    return "site.swf"


@pytest.mark.slow
def test_a_forecast_in_words_and_files(log, capfd, tmp_path):
    job = ("--processors", 16, "--time-limit", "2h", "--partition", "1", "--user", "3")
    assert call("forecast", log, *job, "-o", "f.csv", "-o", "f.parquet", "-o", "f.json", "-o", "f.html") == 0
    out = capfd.readouterr().out
    assert "A 16-processor job of 2 h submitted now starts within " in out
    assert "Chance of a start: at once " in out and "by tomorrow 09:00 " in out
    assert "As of 2024-01-2" in out
    assert "In the last four weeks, " in out and " jobs can be checked; in " in out
    table = pl.read_parquet("f.parquet")
    assert table.equals(pl.read_csv("f.csv", schema=table.schema))
    assert json.loads((tmp_path / "f.json").read_text())["rows"][0]["median"] == table["median"][0]
    assert table["low"][0] <= table["median"][0] <= table["high"][0]
    page = (tmp_path / "f.html").read_text()
    assert "@" not in page and "http" not in page
    assert call("forecast", log, *job, "--json") == 0  # from the cache
    again = json.loads(capfd.readouterr().out)
    assert again["rows"][0]["median"] == table["median"][0] and again["method"] in ("past", "simulation")
    assert call("forecast", log, *job, "--method", "simulation", "--scheduler", "sjf", "--json") == 0
    assert json.loads(capfd.readouterr().out)["method"] == "simulation"


def test_waiting_jobs_of_the_log_and_of_squeue(log, capfd, tmp_path):
    assert call("forecast", log, "--at", 9 * WEEK, "-o", "w.parquet") == 0
    assert pl.read_parquet("w.parquet")["waited"].min() >= 0
    header = "JOBID|USER|ACCOUNT|PARTITION|CPUS|TIME_LIMIT|SUBMIT_TIME|START_TIME|STATE\n"
    rows = (
        "5|3|x|gpu|1|2:00:00|2024-01-24T09:00:00|N/A|PENDING\n"
        "7|3|x|1|64|1-00:00:00|2024-01-24T10:00:00|2024-01-24T10:00:00|RUNNING\n"
        "8|3|x|1|32|2:00:00|2024-01-24T11:00:00|N/A|PENDING\n"
        "9_[1-4]|ann|x|0|1|10:00|2024-01-24T12:00:00|N/A|PENDING\n"
    )
    (tmp_path / "q.txt").write_text(header + rows)
    assert call("forecast", log, "--queue", "q.txt", "-o", "q.parquet") == 0
    found = pl.read_parquet("q.parquet")
    notes = [line for line in capfd.readouterr().err.splitlines() if "partition" in line]
    assert notes == ["q.txt: partition 'gpu' is not in site.swf; jobs not forecast: 1; known are 0, 1"]
    assert found["job_id"].to_list() == ["8", "9_1", "9_2", "9_3", "9_4"]
    assert found["time_limit"].to_list() == [7200.0] + 4 * [600.0]
    assert call("forecast", log, "--queue", "q.txt", "--method", "simulation", "-o", "s.parquet") == 0
    simulated = pl.read_parquet("s.parquet")
    assert (
        simulated["job_id"].to_list() == found["job_id"].to_list() and simulated["median"].min() > 0
    )  # 64 processors run
    jobs = [
        {"job_id": 8, "job_state": ["PENDING"], "user_name": "3", "partition": "1", "cpus": {"set": True, "number": 32},
         "time_limit": {"set": True, "infinite": False, "number": 120}, "submit_time": {"set": True, "number": 5}},
        {"job_id": 1, "job_state": ["COMPLETED"], "submit_time": 1, "cpus": 4},
    ]  # fmt: skip
    (tmp_path / "q.json").write_text(json.dumps({"jobs": jobs}))
    (only,) = read_squeue(tmp_path / "q.json")
    assert (only.job, only.processors, only.limit, only.start) == ("8", 32, 7200.0, None)


@pytest.mark.slow
def test_an_evaluation_can_be_written(log, capfd):
    assert call("forecast", log, "--evaluate", "--weeks", 2, "-o", "e.parquet", "--study", "mine") == 0
    captured = capfd.readouterr()
    assert "Forecasts of the last 2 weeks of site" in captured.out
    assert "forecasts are compared, those that are simulated." in captured.err
    table = pl.read_parquet("e.parquet")
    assert set(table["method"]) == {"past", "simulation", "best", "classes"}
    assert call("simulate", log, "--backfill", "easy", "-o", "run.parquet") == 0
    assert call("load", "run.parquet", "e.parquet", "--database", "d.duckdb") == 0
    query = "SELECT study, workload, method, coverage FROM forecasts WHERE dimension = 'all' ORDER BY method"
    capfd.readouterr()
    assert call("sql", query, "--database", "d.duckdb", "--json") == 0
    loaded = json.loads(capfd.readouterr().out)
    assert [(row["study"], row["workload"], row["method"]) for row in loaded] == [
        ("mine", "site", method) for method in ("best", "classes", "past", "simulation")
    ]  # fmt: skip
    with connect("d.duckdb") as connection:
        spec = draw_forecast_on(connection, "site", "mine")
        with pytest.raises(SwflowError, match="no forecasts of site in the database"):
            draw_forecast_on(connection, "site")
    drawn = [row for rows in spec["datasets"].values() for row in rows if row.get("n") == 0.95 and row["d"] == "all"]
    assert {row["m"] for row in drawn} == set(table["method"]) and "FROM forecasts" in spec["usermeta"]["sql"]
    whole = table.filter(pl.col("dimension") == "all")
    for dimension in ("size", "waited", "week"):
        part = table.filter(pl.col("dimension") == dimension).group_by("method").agg(pl.col("jobs").sum())
        both = part.join(whole, "method")
        assert (both["jobs"] <= both["jobs_right"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--processors", 65, "--time-limit", "1h"), "--processors: 65; expected at most the 64 of the machine"),
        (
            ("--processors", 4, "--time-limit", "1h", "--partition", "gpu"),
            "--partition: 'gpu'; expected a partition or queue of site.swf; known are 0, 1",
        ),
        (("--processors", 4, "--time-limit", "soon"), "--time-limit: 'soon'; expected a duration such as 12h"),
        (("--processors", 4), "--processors and --time-limit describe a job together"),
        (("--at", 7 * WEEK), "7.0 weeks before the forecast; expected at least 8"),
        (("--evaluate", "--weeks", 9), "expected at least 4; reduce --weeks"),
        (("--queue", "site.swf"), "site.swf:4: "),
        (("--method", "simulated"), "--method: 'simulated'; expected one of past, simulation, best"),
        (("--method", "past", "--scheduler", "easy"), "--scheduler: no effect with --method past"),
        (("--scheduler", "slurm-multifactor"), "--scheduler: needs more than the processors and limits of jobs"),
        (("-o", "f.txt"), "f.txt: unknown ending"),
    ],
)
def test_bad_input_is_one_line_and_no_forecast(log, capfd, options, message):
    assert call("forecast", log, *options) != 0
    captured = capfd.readouterr()
    lines = [line for line in captured.err.splitlines() if line.startswith("swflow: ")]
    assert len(lines) == 1 and message in lines[0] and not captured.out
    assert FORMAT in lines[0] or "--queue" not in options


def test_a_table_of_polls(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path / "cache"))
    random, count = np.random.default_rng(6), 3000
    day = np.sort(random.integers(0, 70, count))
    queue = random.integers(0, 100, count)
    wait = 100.0 * (1 + queue) * random.lognormal(0, 0.3, count)
    table = pl.DataFrame({
        "job_id": np.arange(count), "poll_time": day * DAY, "poll_wait_sec": np.where(day == 69, np.nan, wait),
        "time_limit": np.full(count, 3600.0), "req_cpus": random.integers(1, 9, count), "q_jobs": queue,
        "elapsed_time": wait, "state": ["done"] * count, "partition": (queue % 2).astype(float),
    }).with_columns(pl.col("poll_wait_sec").fill_nan(None))  # fmt: skip
    table.write_parquet("polls.parquet")
    from swflow.forecast.polls import read_polls

    cases = read_polls(tmp_path / "polls.parquet")
    assert "q_jobs" in cases.names and "elapsed_time" not in cases.names and "state" not in cases.names
    texts = pl.Series(["1-00:00:00", "10:00", "3600", None] * (count // 4))
    for name in ("time_limit", "timelimit"):
        table.drop("time_limit").with_columns(texts.alias(name)).write_parquet("texts.parquet")
        of_texts = read_polls(tmp_path / "texts.parquet")
        assert of_texts.take(np.arange(4)).limit.tolist()[:3] == [86400, 600, 3600] and np.isnan(of_texts.limit[3])
        feature = of_texts.values[:, of_texts.names.index(name)]
        assert feature[:3].tolist() == [86400, 600, 3600]
    assert call("forecast", "polls.parquet", "-o", "p.parquet") == 0
    found = pl.read_parquet("p.parquet")
    assert found.height == (day == 69).sum()
    inside = (found["low"].to_numpy() <= wait[day == 69]) & (wait[day == 69] <= found["high"].to_numpy())
    assert inside.mean() > 0.75
    assert call("forecast", "polls.parquet", "--processors", 4, "--time-limit", "1h") == 1
    assert "a table of polls cannot be replayed" in capfd.readouterr().err
