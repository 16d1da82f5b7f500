"""Forecasters in the cache: what is restored forecasts the same, and a cache that fails costs time only."""

import os
import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import swflow
from helpers.forecasts import recorded_site
from swflow.files import cache
from swflow.forecast import evaluation, model, simulation, stored
from swflow.forecast.cases import Cases
from swflow.forecast.evaluation import PAST, SIMULATION
from swflow.forecast.forecaster import Forecaster, cases_of, fit
from swflow.forecast.simulation import simulator_of
from swflow.forecast.stored import cached, from_bytes, to_bytes
from swflow.values import WEEK


@pytest.fixture(scope="module")
def site():
    return recorded_site(1200)


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    monkeypatch.setattr(model, "_ROUNDS", 8)
    monkeypatch.setattr(simulation, "FUTURES", 20)
    monkeypatch.setattr(simulation, "MOST", 60)
    monkeypatch.setattr(simulation, "FEWEST", 20)
    monkeypatch.setattr(evaluation, "FEWEST_COMPARED", 10)


@pytest.mark.parametrize("method", [PAST, pytest.param(SIMULATION, marks=pytest.mark.slow)])
def test_what_is_restored_forecasts_the_same(site, method):
    cases, state = cases_of(site)
    simulator = None
    if method == SIMULATION:
        simulator = simulator_of(site, swflow.Scheduler(backfill="easy"), cases, state["now"] - 6 * WEEK, state["now"])
    fitted = fit(cases, method=method, simulator=simulator, **state)
    content = to_bytes(fitted)
    found = from_bytes(content)
    assert to_bytes(found) == content
    assert found.method == method and found.coverage == fitted.coverage
    jobs = [fitted.describe(*job, None, None) for job in ((1, 600.0), (16, 7200.0), (64, 86400.0))]
    assert found.of_requests(jobs) == fitted.of_requests(jobs)
    assert found.of_waiting() == fitted.of_waiting()
    assert (found.labels, found.users, found.common) == (fitted.labels, fitted.users, fitted.common)
    assert found.common["sizes"].most_common(3) == fitted.common["sizes"].most_common(3)
    # A restored state goes on as the fitted one does.
    for one in (found, fitted):
        one.sweep.replace_queue([(-1, jobs[1], one.now - 60, None), (-2, jobs[2], one.now - 90, one.now - 30)])
    assert found.sweep.features(jobs[0], found.now) == pytest.approx(
        fitted.sweep.features(jobs[0], fitted.now), nan_ok=True
    )


def test_values_of_all_kinds_are_restored():
    rows = np.arange(3)
    labels = np.array(["a", "b<", "ü"], object)
    cases = Cases(("x",), rows[:, None] / np.float32(3), rows + 0.5, rows * np.nan, rows * 1.0, rows * 1.0, labels,
                  np.array([1, "u", 3], object), rows, 9.0)  # fmt: skip
    shifts = {"": (0.0, float("inf")), "gpu/1/0": (-0.5, 0.25)}
    whole = Forecaster("log", 1e9, None, shifts, np.array([1.0, 2.0]), 3, 4, waiting=cases, users={"ü\ud800": 1})
    whole.common = {
        1: [1.0, "a", None], (1, 60.0): [[1.0, float("inf")], [True]], "mixed": [(1, 2), [3]], "deep": [[[1], 2]],
        "tuples": [(1, "a"), 2, ()], "numbers": [np.float64(0.5), np.int64(3)], "empty": [], "counted": Counter(a=2),
    }  # fmt: skip
    found = from_bytes(to_bytes(whole))
    assert found.common == whole.common
    assert [type(one) for one in found.common["mixed"]] == [tuple, list]
    assert [type(one) for one in found.common["tuples"]] == [tuple, int, tuple]
    assert type(found.common["counted"]) is Counter
    assert (found.name, found.now, found.shifts, found.users) == (whole.name, whole.now, shifts, whole.users)
    for name in ("values", "asked", "wait", "partition", "user", "job"):
        np.testing.assert_array_equal(getattr(found.waiting, name), getattr(cases, name))
        assert getattr(found.waiting, name).dtype == getattr(cases, name).dtype
    whole.common = {"made of": lambda: 1}
    with pytest.raises(TypeError, match="no plain form"):
        to_bytes(whole)


class Evil:
    """A pickle of this object runs a command."""

    def __reduce__(self):
        return os.system, ("touch evil",)


@pytest.fixture
def forecaster(site, tmp_path, monkeypatch):
    """Return a function that returns a forecaster through the cache, and whether it was fitted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path / "cache"))
    cases, state = cases_of(site)
    fitted = fit(cases, method=PAST, **state)
    (tmp_path / "site.swf").write_text("a log")

    def run(name: str = "site.swf") -> tuple[list, bool]:
        fits = []
        found = cached(Path(name), lambda: fits.append(1) or replace(fitted, name=name), "key")
        assert found.name == name
        return found.of_requests([found.describe(16, 7200.0, None, None)]), bool(fits)

    return run


def test_the_cache_is_private_and_damage_costs_time_only(forecaster):
    first, is_new = forecaster()
    assert is_new
    (file,) = Path("cache/forecasts").iterdir()
    assert [path.stat().st_mode & 0o777 for path in (Path("cache"), file.parent, file)] == [0o700, 0o700, 0o600]
    assert forecaster() == (first, False)
    Path("copy.swf").write_text("a log")
    assert forecaster("copy.swf") == (first, False)
    content = file.read_bytes()
    middle = len(content) // 2
    for damaged in (b"", content[:-1], content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
                    pickle.dumps(Evil())):  # fmt: skip
        file.write_bytes(damaged)
        assert forecaster() == (first, True)
        assert forecaster() == (first, False)
    assert not Path("evil").exists()
    file.unlink()
    os.mkfifo(file)
    assert forecaster() == (first, True)


def test_a_cache_that_cannot_be_used_costs_time_only(forecaster, monkeypatch, tmp_path, caplog):
    first, _ = forecaster()
    Path("cache/forecasts").chmod(0o777)
    cache._warn_once.cache_clear()
    assert forecaster() == (first, True)
    assert "other users can write to it; nothing is cached" in caplog.text
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    for place in (blocked, blocked / "x", tmp_path / "n" / ("x" * 300)):
        monkeypatch.setenv("SWFLOW_CACHE", str(place))
        assert forecaster() == (first, True)


@pytest.mark.parametrize("library", ["lightgbm", "numpy"])
def test_other_versions_of_libraries_have_other_files(forecaster, monkeypatch, library):
    first, _ = forecaster()
    known = stored.version
    monkeypatch.setattr(stored, "version", lambda name: "0.1" if name == library else known(name))
    assert forecaster() == (first, True)
    assert len(list(Path("cache/forecasts").iterdir())) == 2


def test_two_calls_at_once_may_write_and_clean_the_cache(forecaster, monkeypatch):
    monkeypatch.setattr(stored, "_KEPT", 1)
    Path("other.swf").write_text("another log")
    first, _ = forecaster()
    start = threading.Barrier(4)

    def use(number: int) -> list:
        start.wait()
        return [forecaster(("site.swf", "other.swf")[(number + turn) % 2])[0] for turn in range(4)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(4))) == [[first] * 4] * 4
    assert not [path for path in Path("cache/forecasts").iterdir() if path.suffix == ".tmp"]
