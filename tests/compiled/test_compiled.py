"""Tests of compiled kernels: compilation happens once, loading needs no numba, and incomplete files are rejected."""

import math
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from swflow.compiled import numba_compiler, numba_internals
from swflow.compiled.cache import kernel_folder
from swflow.compiled.kernel import Callback, Handle, Kernel, call_formula, part_of
from swflow.files.cache import read_cached

pytestmark = pytest.mark.compiled

PAIR = np.dtype([("weight", np.float64), ("number", np.int32)])


class Inner(NamedTuple):
    """A nested state."""

    pairs: np.ndarray
    factor: float
    doubles: bool


class Outer(NamedTuple):
    """A state."""

    table: np.ndarray
    inner: Inner
    sums: np.ndarray


def example(rows: int, doubles: bool = False) -> Outer:
    pairs = np.zeros(rows, PAIR)
    pairs["weight"], pairs["number"] = np.arange(rows), 3
    return Outer(np.arange(2.0 * rows).reshape(rows, 2), Inner(pairs, 0.5, doubles), np.zeros(rows))


def _weighed(inner: Inner, row: int, power: int) -> float:
    pair = inner.pairs[row]
    weight = pair.weight * inner.factor
    return weight * pair.number if power else weight


def _answer(inner: Inner) -> int:
    raise NotImplementedError


def _many(inner: Inner) -> int:
    return inner.pairs.size


def _add_up(outer: Outer, first: int) -> int:
    for row in range(first, outer.sums.size):
        outer.sums[row] = outer.table[row, 1] + _weighed(outer.inner, row, 0) + _weighed(outer.inner, row, 1)
        if outer.inner.doubles:
            outer.sums[row] *= 2
    return _answer(outer.inner)


def by_hand(outer: Outer, first: int) -> list[float]:
    times = 2 if outer.inner.doubles else 1
    rows = range(len(outer.sums))
    return [0.0 if row < first else times * (2 * row + 1 + row * 0.5 + row * 0.5 * 3) for row in rows]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the folder of compiled kernels in an empty cache."""
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path))
    return tmp_path / kernel_folder()


@pytest.mark.parametrize("rows, first, doubles", [(5, 0, False), (5, 2, True), (0, 0, False)])
def test_a_kernel_reads_and_writes_what_a_handle_points_to(folder, rows, first, doubles):
    outer = example(rows, doubles)
    assert Kernel(_add_up, {_answer: _many})(Handle([outer]), first) == rows
    assert outer.sums.tolist() == by_hand(outer, first)


def test_a_complete_object_is_loaded_and_an_incomplete_one_is_not(folder, monkeypatch):
    kernel = Kernel(_add_up, {_answer: _many})
    kernel(Handle([example(3)]), 0)
    (file,) = folder.iterdir()
    whole = file.read_bytes()

    def never(*arguments):
        raise AssertionError("compiled")

    compile_it = numba_internals.machine_code
    monkeypatch.setattr(numba_internals, "machine_code", never)
    monkeypatch.setattr(numba_compiler, "stock_code", never)
    outer = example(4)
    assert Kernel(_add_up, {_answer: _many})(Handle([outer]), 1) == 4
    assert outer.sums.tolist() == by_hand(outer, 1)
    for broken in (b"", whole[:-1], whole[:1000] + b"x" + whole[1001:], b"\xff" * 50):
        file.write_bytes(broken)
        with pytest.raises(AssertionError, match="compiled"):
            Kernel(_add_up, {_answer: _many})(Handle([outer]), 1)
    monkeypatch.setattr(numba_internals, "machine_code", compile_it)
    assert Kernel(_add_up, {_answer: _many})(Handle([outer]), 1) == 4
    assert read_cached(kernel_folder(), file.name) is not None


@pytest.mark.parametrize("how", ["no folder", "others can write"])
def test_a_cache_that_cannot_be_used_leads_to_compilation(tmp_path, monkeypatch, how):
    blocked = tmp_path / "cache"
    if how == "no folder":
        blocked.write_text("")
    else:
        blocked.mkdir()
        blocked.chmod(0o777)
    monkeypatch.setenv("SWFLOW_CACHE", str(blocked))
    outer = example(2)
    assert Kernel(_add_up, {_answer: _many})(Handle([outer]), 0) == 2
    assert outer.sums.tolist() == by_hand(outer, 0)
    assert blocked.is_file() or not list(blocked.iterdir())


def test_one_kernel_serves_other_lengths_and_numbers_but_not_other_types(folder):
    kernel = Kernel(_add_up, {_answer: _many})
    for rows, first in ((1, 0), (7, 3)):
        kernel(Handle([example(rows)]), first)
    assert len(kernel.ready) == 1
    outer = example(3)
    kernel(Handle([outer._replace(table=outer.table.astype(np.float32))]), 0)
    assert len(kernel.ready) == 2


def test_an_array_with_another_memory_order_is_an_error(folder):
    outer = example(3)
    with pytest.raises(TypeError, match="C order"):
        Kernel(_add_up, {_answer: _many})(Handle([outer._replace(table=np.asfortranarray(outer.table))]), 0)


def _asks(outer: Outer, address: int) -> int:
    for row in range(outer.sums.size):
        outer.sums[row] = call_formula(address, (outer.table[row, 0], 2.0))
    return 0


def test_a_kernel_calls_formulas_by_their_address(folder):
    outer = example(3)
    for function in (lambda a, b: a**b, lambda a, b: math.exp(a) - b):
        assert Kernel(_asks)(Handle([outer]), Callback(function, 2).address) == 0
        assert outer.sums.tolist() == pytest.approx([function(a, 2.0) for a in (0.0, 2.0, 4.0)], rel=1e-15)


def _gives_a_fraction(outer: Outer) -> float:
    return 0.5


def test_a_function_that_is_not_a_kernel_is_an_error(folder):
    with pytest.raises(TypeError, match="_gives_a_fraction returns float64, not an int"):
        Kernel(_gives_a_fraction)(Handle([example(1)]))


def _sum_of_parts(parts: Outer, count: int) -> int:
    for index in range(count):
        part_of(parts, index).sums[0] = part_of(parts, index).table[0, 1] + index
    return count


def test_without_the_internals_of_numba_a_kernel_is_compiled_by_its_public_interface(folder, monkeypatch):
    def changed(*arguments):
        raise AttributeError("no attribute 'JITCodeLibrary'")

    monkeypatch.setattr(numba_internals, "machine_code", changed)
    monkeypatch.setattr(numba_internals, "formula_code", changed)
    outer = example(5, doubles=True)
    with pytest.warns(UserWarning, match="_add_up is compiled without its internals"):
        assert Kernel(_add_up, {_answer: _many})(Handle([outer]), 2) == 5
    assert outer.sums.tolist() == by_hand(outer, 2)
    parts = [example(2), example(2)]
    with pytest.warns(UserWarning, match="no attribute 'JITCodeLibrary'"):
        assert Kernel(_sum_of_parts)(Handle(parts, several=True), 2) == 2
    assert [part.sums[0] for part in parts] == [1, 2]
    with pytest.warns(UserWarning, match="internals"):
        assert Kernel(_asks)(Handle([outer]), Callback(lambda a, b: a - b, 2, "a - b").address) == 0
    assert outer.sums.tolist() == [-2, 0, 2, 4, 6]


def test_what_stock_numba_compiled_is_cached(folder, monkeypatch):
    def changed(*arguments):
        raise AttributeError("no attribute 'JITCodeLibrary'")

    def never(*arguments):
        raise AssertionError("compiled")

    outer, parts = example(5, doubles=True), [example(2), example(2)]
    monkeypatch.setattr(numba_internals, "machine_code", changed)
    monkeypatch.setattr(numba_internals, "formula_code", changed)
    with pytest.warns(UserWarning, match="internals"):
        Kernel(_add_up, {_answer: _many})(Handle([outer]), 2)
        Kernel(_sum_of_parts)(Handle(parts, several=True), 2)
        Callback(lambda a, b: a - b, 2, "a - b")
    assert len(list(folder.glob("*-stock.o"))) == len(list(folder.glob("*.o"))) == 3
    for module, names in ((numba_internals, ["machine_code", "formula_code"]), (numba_compiler, ["_code_of"])):
        for name in names:
            monkeypatch.setattr(module, name, never)
    outer, parts = example(5, doubles=True), [example(2), example(2)]
    assert Kernel(_add_up, {_answer: _many})(Handle([outer]), 2) == 5
    assert outer.sums.tolist() == by_hand(outer, 2)
    assert Kernel(_sum_of_parts)(Handle(parts, several=True), 2) == 2
    assert [part.sums[0] for part in parts] == [1, 2]
    assert Callback(lambda a, b: a - b, 2, "a - b")(3.0, 1.0) == 2.0


@pytest.mark.slow
def test_a_simulation_loads_its_kernels_without_numba(tmp_path):
    code = """
import sys
import polars as pl
from swflow import Scheduler, simulate
from swflow.jobs.table import Workload
from swflow.jobs.machine import Machine
columns = {"submit_time": [0.0, 1.0, 2.0], "run_time": [10.0, 10.0, 3.0], "processors": [3, 4, 1]}
jobs = pl.DataFrame({"job_id": [1, 2, 3], **columns, "estimate": [10.0, 10.0, 5.0]})
for backfill in ("none", "easy", "conservative"):
    print(simulate(Workload(jobs, Machine.of(4), "w"), Scheduler(backfill=backfill))["start_time"].to_list())
formula = Scheduler(order="-max(wait, 1) ** 2", backfill="easy")
print(simulate(Workload(jobs, Machine.of(4), "w"), formula)["start_time"].to_list())
print("numba" in sys.modules)
"""
    environment = {"SWFLOW_CACHE": str(tmp_path), "PATH": ""}
    starts = ["[0.0, 10.0, 20.0]", *3 * ["[0.0, 10.0, 2.0]"]]
    for compiles in ("True", "False"):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
        assert done.stdout.splitlines() == [*starts, compiles]
