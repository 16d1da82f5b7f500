"""No forecast depends on what its moment does not know: logs whose future is changed give the same bits."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from helpers.forecasts import SECOND, log_of, workload
from swflow.forecast.cases import Cases
from swflow.forecast.classes import by_class
from swflow.forecast.forecaster import cases_of, complete_until, read_cases
from swflow.forecast.model import Calibrator
from swflow.forecast.polls import read_polls
from swflow.forecast.record import UNKNOWN_LIMIT, Request, record_of, requests_of
from swflow.forecast.simulation import RunTimes
from swflow.forecast.sweep import FEATURES, from_log
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.swf import write_swf
from swflow.values import DAY, WEEK


def other_future(jobs: pl.DataFrame, now: float, seed: int = 2) -> pl.DataFrame:
    """Return a log that is the same before a moment: later submissions, starts and ends are others."""
    random = np.random.default_rng(seed)
    submit, wait, run = (jobs[name].to_numpy() for name in ("submit_time", "wait_time", "run_time"))
    start, longer = submit + wait, random.integers(1, 90_000, jobs.height).astype(float)
    new_wait = np.where(start >= now, np.maximum(now - submit, 0) + np.where(submit > now, 0, longer), wait)
    new_run = np.where(start + run >= now, np.maximum(now - submit - new_wait, 0) + longer, run)
    later = submit > now
    width = np.where(later, random.integers(1, 33, jobs.height), jobs["processors"].to_numpy())
    return jobs.with_columns(
        wait_time=pl.Series(new_wait), run_time=pl.Series(new_run),
        **{name: pl.Series(width) for name in ("processors", "allocated_processors", "requested_processors")},
        user_id=pl.when(pl.lit(later)).then(9).otherwise("user_id"),
        partition_id=pl.when(pl.lit(later)).then(3).otherwise("partition_id"),
    ).with_columns(estimate=pl.coalesce("requested_time", "run_time"))  # fmt: skip


def same(one: Cases, two: Cases, now: float) -> None:
    """Assert that both have the same cases until a moment, and know the same of them."""
    early = [some.take(some.asked <= now) for some in (one, two)]
    for name in ("job", "asked", "waited", "size", "user"):
        assert getattr(early[0], name).tolist() == getattr(early[1], name).tolist(), name
    np.testing.assert_array_equal(early[0].values, early[1].values)
    for first, second in zip(early[0].known(now), early[1].known(now), strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(by_class(one)[: early[0].asked.size], by_class(two)[: early[1].asked.size])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("limits", ["some", "none", "estimates"])
def test_features_do_not_know_the_future(tied, limits):
    jobs = log_of(tied=tied)
    if limits != "some":
        jobs = jobs.with_columns(requested_time=pl.lit(None, pl.Float64), estimate="run_time")
    if limits == "estimates":
        jobs = jobs.drop("requested_time")
    # at the instant of a start, of an end, of a submission, and between them
    start = float((jobs["submit_time"] + jobs["wait_time"])[300])
    for now in (start, start + float(jobs["run_time"][300]), float(jobs["submit_time"][310]), 7.31 * WEEK):
        if limits == "estimates":
            other = other_future(jobs.with_columns(requested_time=pl.lit(None, pl.Float64)), now).drop("requested_time")
        else:
            other = other_future(jobs, now)
        assert not other.equals(jobs)
        same(from_log(workload(jobs))[0], from_log(workload(other))[0], now)
        (known, state), (again, changed) = (cases_of(workload(table), now) for table in (jobs, other))
        same(known, again, now)
        request = Request.of(8, 7200.0, 3, 200001, 1)
        assert repr(state["sweep"].features(request, now)) == repr(changed["sweep"].features(request, now))
        assert state["common"] == changed["common"] and state["labels"] == changed["labels"]


def test_a_cancellation_is_not_known_before_it_happens():
    jobs = log_of().with_columns(cancelled_after=pl.lit(None, pl.Float64))
    now = 8.03 * WEEK
    waits = ((pl.col("submit_time") <= now) & (pl.col("submit_time") + pl.col("wait_time") > now)).alias("waits")
    chosen = jobs.filter(waits)["job_id"].to_list()
    assert len(chosen) > 1
    left = pl.col("job_id").is_in(chosen)
    other = jobs.with_columns(
        cancelled_after=pl.when(left).then("wait_time"), run_time=pl.when(left).then(0.0).otherwise("run_time")
    )
    same(from_log(workload(jobs))[0], from_log(workload(other))[0], now)
    cases, sweep = from_log(workload(other))
    assert not set(chosen) & set(cases.job[np.isfinite(cases.wait)].tolist())
    value, started = cases.outcome()
    rows = np.isin(cases.job, chosen) & (cases.waited == 0)
    waited = jobs.filter(left)["wait_time"].to_numpy()
    assert not started[rows].any() and 10 ** value[rows] == pytest.approx(np.maximum(waited, 1))
    assert not sweep.waiting


def test_an_unknown_limit_is_no_run_time():
    jobs = log_of()
    unknown = jobs["requested_time"].is_null().to_numpy()
    requests = requests_of(jobs)
    assert unknown.sum() > 100
    assert [not one.limit > 0 for one in requests] == unknown.tolist()
    assert {requests[row].limit_class for row in np.flatnonzero(unknown)} == {UNKNOWN_LIMIT}
    cases, _ = from_log(workload(jobs))
    limit = cases.values[:, FEATURES.index("limit")]
    assert np.isnan(limit[np.isin(cases.job, jobs["job_id"].to_numpy()[unknown])]).all()
    assert cases.values[:, FEATURES.index("unlimited_waiting")].max() > 0
    assert np.isfinite(cases.values[:, FEATURES.index("waiting_time")]).all()


def test_the_planned_time_of_a_job_without_a_limit_is_the_mean_of_past_ones():
    table = log_of(3).with_columns(
        submit_time=pl.Series([0.0, 100.0, 200.0]), wait_time=pl.Series([0.0, 0.0, 50.0]),
        run_time=pl.Series([40.0, 500.0, 900.0]), requested_time=pl.lit(None, pl.Float64), user_id=pl.lit(1),
        processors=pl.lit(10), requested_processors=pl.lit(10),
    )  # fmt: skip
    cases, _ = from_log(workload(table))
    remaining = cases.values[:, FEATURES.index("remaining")]
    # The first job ran for 40 s; the second one has ended by this plan when the third is submitted.
    assert remaining.tolist() == [0.0, 0.0, 0.0]
    table = table.with_columns(submit_time=pl.Series([0.0, 100.0, 120.0]))
    assert from_log(workload(table))[0].values[2, FEATURES.index("remaining")] == pytest.approx(10 * 20 / 64)


def test_run_times_are_drawn_from_jobs_that_ended_before():
    one, unlimited = Request.of(4, 1000.0, 1, 0, 0), Request.of(4, 0.0, 1, 0, 0)
    drawn = RunTimes([one, unlimited], np.array([500.0, 5000.0]), np.array([100.0, 200.0]))
    random = np.random.default_rng(1)
    assert set(drawn.draw(one, 0.0, 100.0, random, 20)) == {1000.0}  # its own end is not before it
    assert set(drawn.draw(one, 0.0, 150.0, random, 20)) == {500.0}
    # the run time of the job without a limit is cut to the limit of the other one
    assert set(drawn.draw(one, 0.0, 250.0, random, 200)) == {500.0, 1000.0}
    assert set(drawn.draw(unlimited, 600.0, 250.0, random, 200)) == {5000.0}


def test_a_guessed_machine_is_the_peak_so_far():
    jobs = log_of()
    history = ({"stage": "clean", "machine_from": "recorded peak", "guessed_processors": 640},)
    guessed = replace(workload(jobs), machine=Machine.of(640), history=history)
    now = 3.0 * WEEK
    wide = jobs.with_columns(
        **{name: pl.when(pl.col("submit_time") > now).then(512).otherwise(name)
           for name in ("processors", "requested_processors", "allocated_processors")}
    )  # fmt: skip
    same(from_log(guessed)[0], from_log(replace(guessed, jobs=wide))[0], now)
    assert record_of(guessed, now).processors < 640 and from_log(guessed, now)[1].processors < 640


def sacct_text(jobs: pl.DataFrame) -> str:
    """Return a log as the output of sacct: jobs without a limit are UNLIMITED."""

    def time(seconds: float) -> str:
        return f"{datetime.fromtimestamp(SECOND + seconds, UTC):%Y-%m-%dT%H:%M:%S}"

    lines = ["JobID|User|Account|Partition|AllocCPUS|ReqCPUS|Timelimit|Submit|Start|End|State"]
    for row in jobs.iter_rows(named=True):
        start = row["submit_time"] + row["wait_time"]
        limit = "UNLIMITED" if row["requested_time"] is None else f"{int(row['requested_time'] // 60)}:00"
        lines.append(
            f"{row['job_id']}|u{row['user_id']}|a|p{row['partition_id']}|{row['processors']}|{row['processors']}|{limit}|"
            f"{time(row['submit_time'])}|{time(start)}|{time(start + row['run_time'])}|COMPLETED"
        )
    return "\n".join(lines) + "\n"


def written(jobs: pl.DataFrame, kind: str, path) -> None:
    """Write a log in a format."""
    header = {"UnixStartTime": [str(SECOND)], "MaxProcs": ["64"]}
    if kind == "swf":
        write_swf(path, jobs, header)
    elif kind == "workload":
        from swflow.files.tables import write_workload

        write_workload(workload(jobs), path)
    else:
        from swflow.log.importers.records import Site
        from swflow.log.importers.sacct import import_sacct

        text = path.with_suffix(".txt")
        text.write_text(sacct_text(jobs))
        import_sacct(str(text), Site(None if kind == "sacct-guessed" else 64)).write(path)


@pytest.mark.parametrize("kind", ["swf", "workload", "sacct", "sacct-guessed"])
def test_logs_of_all_formats_do_not_know_the_future(kind, tmp_path):
    jobs = log_of(tied=True)
    found = []
    # a multiple of the grid: submissions, starts and ends lie at this instant; accounting begins with its first job
    now = 8.0 * WEEK
    for number, table in enumerate((jobs, other_future(jobs, now))):
        path = tmp_path / f"{number}.{'swf' if kind == 'swf' else 'parquet'}"
        written(table, kind, path)
        found.append(read_cases(path, until=now - (jobs["submit_time"][0] if "sacct" in kind else 0.0)))
    now = found[0][1]["now"]
    same(found[0][0], found[1][0], now)
    request = Request.of(8, 7200.0, 3, 200001, 1)
    assert repr(found[0][1]["sweep"].features(request, now)) == repr(found[1][1]["sweep"].features(request, now))
    assert np.isnan(found[0][0].values[:, FEATURES.index("limit")]).mean() > 0.2


@pytest.mark.parametrize("labels", ["wait", "start"])
def test_a_poll_does_not_see_labels_of_its_own_instant(labels, tmp_path):
    random, count = np.random.default_rng(7), 2000
    asked = np.sort(random.integers(0, 200, count)) * 3600.0
    wait = np.where(random.random(count) < 0.5, 0.0, random.integers(0, 40, count) * 3600.0)
    now = 150 * 3600.0
    other = np.where(asked + wait >= now, np.maximum(now - asked, 0) + random.integers(0, 9, count) * 3600.0, wait)
    found = []
    for number, one in enumerate((wait, other)):
        table = pl.DataFrame({
            "job_id": np.arange(count), "poll_time": asked, "time_limit": pl.Series([None, 3600.0] * (count // 2)),
            "req_cpus": random.integers(1, 3, count) * 0 + 4, "user": ["a", "b", "c", "d"] * (count // 4),
            **({"poll_wait_sec": one} if labels == "wait" else {"start_time": asked + one}),
        })  # fmt: skip
        table.write_parquet(tmp_path / f"{number}.parquet")
        found.append(read_polls(tmp_path / f"{number}.parquet"))
    assert (wait != other).any()
    same(*found, now)
    # equal requests without a limit are recognized, too
    last = found[0].values[:, found[0].names.index("same_last")]
    without = np.isnan(found[0].values[:, found[0].names.index("time_limit")])
    assert np.isfinite(last[without][200:]).all()


def test_polls_are_made_at_the_noons_of_the_site():
    jobs = log_of().with_columns(wait_time=pl.lit(30 * 3600.0))
    header = {"UnixStartTime": ["1711000000"], "TimeZoneString": ["Europe/Stockholm"], "MaxProcs": ["64"]}
    log = Workload(jobs, Machine.of(64), "log", header)
    cases, _ = from_log(log)
    asked = np.unique(cases.asked[cases.waited > 0])
    clocks = {datetime.fromtimestamp(1711000000 + moment, log.header.time_zone).strftime("%H:%M") for moment in asked}
    assert clocks == {"12:00"} and asked.size > 60  # the clock changes on March 31
    assert len({float(moment % DAY) for moment in asked}) == 2


def test_a_log_ends_with_its_submissions_if_some_jobs_start_days_later():
    jobs = log_of()
    late = jobs.with_columns(wait_time=pl.when(pl.col("job_id") == 490).then(60 * DAY).otherwise("wait_time"))
    last = float(jobs["submit_time"].max())
    assert complete_until(workload(jobs)) == np.inf
    assert complete_until(workload(late)) == last
    cases, state = cases_of(workload(late), last)
    assert state["now"] == last and 490 in cases.job[~np.isfinite(cases.wait)]


def test_a_miss_of_a_job_that_is_cancelled_is_taken_back():
    """The levels after cancelled misses are those without these jobs, but for the time until they are cancelled."""
    count, days = 2000, 40
    asked = np.linspace(0, days * DAY, count)
    chosen = np.arange(count) % 10 == 0
    raw = np.tile([1.0, 2.0, 3.0], (count, 1))
    columns = np.zeros((count, 1), np.float32), asked
    labels = [np.full(count, text, object) for text in ("all", "1")]

    def tails(wait: np.ndarray, left: np.ndarray) -> list[float]:
        cases = Cases(
            ("x",), *columns, wait, np.zeros(count), np.ones(count), *labels, np.arange(count), 99 * DAY, left
        )
        found = Calibrator(cases, raw)
        found.walk(0.0, days * DAY)
        found.follow((days + 5) * DAY)
        return found.tails

    usual, never = np.full(count, 100.0), np.full(count, np.inf)
    plain = tails(usual, never)
    cancelled = tails(np.where(chosen, np.nan, usual), np.where(chosen, DAY / 3, np.inf))
    still = tails(np.where(chosen, np.nan, usual), never)
    assert still[1] < cancelled[1] - 0.01  # 10 % of the jobs miss the upper end
    assert cancelled == pytest.approx(plain, abs=0.003)
