"""Interpreted mode: kernels as plain Python give the schedules of compiled kernels, without a compiler."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import naive
from helpers.kernels import BACKFILLS, simulate_arrays
from swflow.compiled.kernel import Callback, interpreted
from swflow.compiled.source import Records
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.scheduling.orders.formula import compile_formula
from swflow.scheduling.orders.vocabulary import ORDERS
from swflow.scheduling.state import layout
from swflow.workload.clean import clean, clean_log
from swflow.workload.models.lublin import generate_lublin
from swflow.workload.steps.memory import memory
from swflow.workload.steps.select import select
from swflow.workload.steps.set_machine import with_machine

#: Schedulers on the command line, from plain to special.
SCHEDULERS = {
    "fcfs": [],
    "easy": ["--backfill", "easy"],
    "conservative": ["--backfill", "conservative"],
    "wfp3": ["--order", "wfp3", "--backfill", "easy", "--reservations", "2"],
    "first-fit": ["--backfill", "easy", "--allocation", "first-fit", "--places"],
    "shared": ["--backfill", "easy", "--allocation", "first-fit", "--runtime", "shared"],
}


def outcomes(workload: Path, options: list[str], folder: Path, plain: bool) -> str:
    """Simulate on the command line, in a separate process, and return the outcomes as text."""
    output = folder / f"run-{plain}.csv"
    code = (
        "import sys; from swflow.cli import application; application()(sys.argv[1:], standalone_mode=False); "
        "print('loaded:', sorted({'numba', 'llvmlite'} & set(sys.modules)))"
    )
    arguments = [sys.executable, "-c", code, "simulate", str(workload), "-o", str(output), *options]
    environment = os.environ | {"SWFLOW_INTERPRET": str(int(plain))}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not plain or "loaded: []" in done.stdout
    return output.read_text()


def with_demands(jobs: Any) -> Any:
    return memory(with_machine(jobs, preset="alvio-node"), seed=1, step="memory-high")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_command_gives_the_same_outcomes_without_a_compiler(name: str, tmp_path: Path) -> None:
    fields = generate_lublin(60, 32, generator(2, "interpreted"), load=1.0)
    write_workload(with_demands(clean(fields, Machine.of(32), name="small")), tmp_path / "small.parquet")
    plain, compiled = (outcomes(tmp_path / "small.parquet", SCHEDULERS[name], tmp_path, kind) for kind in (True, False))
    assert plain == compiled


@pytest.mark.archive
@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_real_log_has_the_same_outcomes_without_a_compiler(name: str, tmp_path: Path, traces: Path) -> None:
    log = clean_log(traces / "KTH-SP2-1996-2.1-cln.swf.gz", name="KTH-SP2", processors=100)
    write_workload(select(with_demands(log), jobs=2000), tmp_path / "kth.parquet")
    plain, compiled = (outcomes(tmp_path / "kth.parquet", SCHEDULERS[name], tmp_path, kind) for kind in (True, False))
    assert plain == compiled


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[tuple[float, ...]], int]:
    machine, submit, jobs = draw(st.integers(1, 8)), 0.0, []
    for _ in range(draw(st.integers(1, 12))):
        submit += draw(st.integers(0, 5))
        run = draw(st.integers(0, 20))
        planned = max(1, run + draw(st.integers(0, 10)))
        jobs.append((submit, float(run), float(planned), draw(st.integers(1, machine)), draw(st.integers(0, 1))))
    return jobs, machine


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    workloads(),
    st.sampled_from(["fcfs", "sjf", "wfp3", "unicef"]),
    st.sampled_from([*BACKFILLS[:3]]),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["count", "first-fit", "longest-idle", "first-contiguous"]),
)
def test_any_workload_has_the_schedule_of_the_slow_simulator(
    monkeypatch, workload, order, backfill, lookahead, predict, per_event, allocation
) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    jobs, machine = workload
    options = {"order": order, "backfill": backfill, "backfill_order": order, "lookahead": lookahead}
    policy = naive.Policy(
        event_order="per-event" if per_event else "batch", predict=predict, allocation=allocation, **options
    )
    slow = naive.simulate([naive.Job(number, *job) for number, job in enumerate(jobs)], machine, policy)
    columns = np.array(jobs).T
    found = simulate_arrays(
        *columns[:3], columns[3].astype(np.int64), machine, users=columns[4].astype(np.int64), predict=predict,
        per_event=per_event, allocation=allocation, **options,
    )  # fmt: skip
    assert found.start.tolist() == [slow.starts[number] for number in range(len(jobs))]
    if allocation != "count":
        assert [found.of(job).tolist() for job in range(len(jobs))] == [slow.places[job] for job in range(len(jobs))]


@pytest.mark.compiled
def test_formulas_have_the_same_values(monkeypatch) -> None:
    cases = [[float(value) for value in (7, 0, 3, 1, *[2] * 11)], [float(value) for value in (9, 4, 1, 64, *[0] * 11)]]
    texts = [*ORDERS, "1 / (wait - 7)", "log(wait - 8) + sqrt(-processors)", "exp(1000 * processors)", "5 / 0 - wait"]
    compiled = [[compile_formula(text)(*case) for case in cases] for text in texts]
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    assert interpreted()
    plain = [[compile_formula(text)(*case) for case in cases] for text in texts]
    np.testing.assert_array_equal(plain, compiled)
    assert Callback(lambda one: one / 0, 1)(1.0) == np.inf


def test_records_read_and_write_the_array() -> None:
    array = np.zeros((2, 3), layout.STEP)
    rows = Records(array)
    rows[1, 2].time = 5.0
    row = rows[1]
    row[0] = row[2]
    assert array["time"].tolist() == [[0, 0, 0], [5, 0, 5]]
    assert not hasattr(rows[1, 0], "no_field")  # a debugger looks for attributes such as __len__
    assert "time=5.0" in repr(rows[1, 0]) and "Records" in repr(row)
    assert (rows.size, rows.shape, row.size) == (6, (2, 3), 3)
