"""Tests of input validation: values that would crash or hang a kernel, or give wrong results, are one-line errors."""

import functools
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from helpers.kernels import simulate_arrays
from swflow.analysis.job_load import loads_of
from swflow.analysis.shadows import shadows
from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_table, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import END_OF_TIME, SWF_FIELDS, Workload, check_workload
from swflow.scheduling.machine.resources import Resources, longest_stretch
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.scheduling.state.items import Shapes
from swflow.workload.clean import clean, clean_log, open_workload, recorded_use

TABLE: dict[str, list[Any]] = {
    "job_id": [1, 2, 3],
    "submit_time": [0.0, 1.0, 1.0],
    "run_time": [10.0, 5.0, 2.0],
    "estimate": [12.0, 5.0, 3.0],
    "processors": [3, 4, 1],
}
#: A scheduler for each kernel.
SCHEDULERS = {
    "fcfs": Scheduler(),
    "easy": Scheduler(backfill="easy"),
    "sjf, easy": Scheduler(order="sjf", backfill="easy"),
    "conservative": Scheduler(backfill="conservative"),
    "predictions": Scheduler(backfill="easy", prediction="system"),
    "first-fit": Scheduler(backfill="easy", allocation="first-fit"),
    "longest-idle": Scheduler(backfill="conservative", allocation="longest-idle"),
    "clusters": Scheduler(clusters=({"processors": 4}, {"processors": 2})),
    "log": Scheduler(order="log"),
}
#: Invalid tables: a column, its values, and a part of the error.
WRONG: list[tuple[str, list[Any], str]] = [
    ("processors", [3, 0, 1], "job 2: 0 processors, below 1"),
    ("processors", [3, -4, 1], "job 2: -4 processors, below 1"),
    ("processors", [None, 4, 1], "1 jobs have no processors"),
    ("processors", [3.0, 4.0, 1.0], "column processors holds Float64, not Int64"),
    ("processors", ["3", "4", "1"], "column processors holds String, not Int64"),
    ("submit_time", [0.0, math.nan, 1.0], "job 2: the submit time is nan, no finite number"),
    ("submit_time", [0.0, 1.0, math.inf], "job 3: the submit time is inf, no finite number"),
    ("submit_time", [0.0, 2.0, 1.0], "job 3 is submitted before the one above it"),
    ("submit_time", [0.0, 1.0, 1e16], r"job 3: the submit time is 1e\+16, beyond 1e\+12 s"),
    ("submit_time", [None, 1.0, 1.0], "1 jobs have no submit time"),
    ("run_time", [10.0, math.nan, 2.0], "job 2: the run time is nan"),
    ("run_time", [10.0, -5.0, 2.0], "job 2: the run time is -5 s, below 0"),
    ("run_time", [10.0, 1e13, 2.0], r"job 2: the run time is 1e\+13, beyond"),
    ("run_time", [10.0, None, 2.0], "1 jobs have no run time; drop them when cleaning"),
    ("job_id", [1, 3, 2], r"job 2 comes after job 3 .* sort the jobs by \(submit_time, job_id\)"),
    ("job_id", [1, None, 3], "1 jobs have no job id"),
    ("user_id", ["tom", "tim", "tom"], "column user_id holds String, not Int64"),
    ("wait_time", [True, False, True], "column wait_time holds Boolean, not Float64"),
]
#: Invalid values in columns that the recorded schedule does not need.
WRONG_PLANS: list[tuple[str, list[Any], str]] = [
    ("processors", [3, 4, 9], "job 3 needs 9 of 4 processors, and 0 more jobs are too wide"),
    ("estimate", [12.0, None, 3.0], "1 jobs have no estimate"),
    ("estimate", [12.0, math.nan, 3.0], "job 2: the estimate is nan"),
    ("estimate", [12.0, -1.0, 3.0], "job 2: the estimate is -1 s, below 0"),
    ("estimate", [12.0, 2.0**53, 3.0], r"job 2: the estimate is 9.0072e\+15, beyond 1e\+12 s"),
]


def workload(**columns: Any) -> Workload:
    table = TABLE | {"wait_time": [0.0, 1.0, 2.0]} | columns
    return Workload(pl.DataFrame(table, strict=False), Machine.of(4), "tiny")


def message(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(SwflowError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_no_kernel_gets_an_invalid_table(scheduler: str):
    for column, values, part in WRONG + (WRONG_PLANS if scheduler != "log" else []):
        text = message(simulate, workload(**{column: values}), SCHEDULERS[scheduler])
        assert pl.Series([text]).str.contains(part).all(), (column, values, text)
        assert text.startswith("tiny: ")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_missing_column_is_named(scheduler: str):
    for column in ("job_id", "submit_time", "run_time", "processors"):
        less = replace(workload(), jobs=workload().jobs.drop(column))
        assert f"tiny: no column {column}" in message(simulate, less, SCHEDULERS[scheduler])


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_narrower_types_give_the_same_numbers(scheduler: str):
    types = {"submit_time": pl.Int32, "run_time": pl.Float32, "processors": pl.UInt8, "job_id": pl.Int16}
    narrow = replace(workload(), jobs=workload().jobs.cast(types))
    expected = simulate(workload(), SCHEDULERS[scheduler])
    assert simulate(narrow, SCHEDULERS[scheduler]).equals(expected)


def test_times_beyond_the_resolution_of_clocks_are_an_error():
    longest = [1e12] * 3000
    ids = list(range(3000))
    table = {"job_id": ids, "submit_time": [0.0] * 3000, "run_time": longest, "estimate": longest}
    many = Workload(pl.DataFrame(table | {"processors": [4] * 3000}), Machine.of(4), "tiny")
    assert "clocks cannot advance" in message(simulate, many, Scheduler(order="sjf", backfill="easy"))
    few = replace(many, jobs=many.jobs.head(1000))
    ends = simulate(few, Scheduler(order="sjf", backfill="easy"))["end_time"]
    assert ends.max() == 1e15 < END_OF_TIME


ARRAYS: dict[str, Any] = {
    "submit": np.array([0.0, 1.0]),
    "run": np.array([5.0, 5.0]),
    "planned": np.array([9.0, 5.0]),
    "processors": np.array([1, 2]),
}


@pytest.mark.parametrize(
    "kernel",
    [
        functools.partial(simulate_arrays, machine=4, backfill="lookahead"),
        functools.partial(simulate_arrays, machine=4, backfill="lookahead", allocation="first-fit"),
        functools.partial(simulate_arrays, machine=4, centres=[{"machine": 4}], dispatch="least-loaded"),
    ],
)
@pytest.mark.parametrize(
    ("name", "values", "part"),
    [
        ("processors", [1, 0], "job 1: 0 processors"),
        ("processors", [1, 5], "job 1 needs 5 of 4 processors"),
        ("processors", [1.0, 2.0], "processors: float64; expected one whole number"),
        ("processors", [1], "expected 1 numbers"),
        ("submit", [1.0, 0.0], "job 1 is submitted before"),
        ("run", [5.0, math.nan], "job 1: the run time is nan"),
        ("planned", [9.0, -1.0], "job 1: the planned run time is -1"),
        ("planned", [9.0, 1e300], "beyond 1e+12 s"),
    ],
)
def test_arrays_are_validated_for_every_caller(kernel: Any, name: str, values: list[Any], part: str):
    assert part in message(kernel, **(ARRAYS | {name: np.array(values)}))


def test_shapes_and_resources_are_checked():
    run = np.array([5.0, 2.0, 5.0])
    request = (ARRAYS["submit"], ARRAYS["planned"], ARRAYS["planned"], ARRAYS["processors"])
    for first, widths, part in [
        ([0, 1, 3], [1, 2, 0], "shapes: job 2: 0 processors"),
        ([0, 1, 3], [1, 2, 9], "shapes: job 2 needs 9 of 4"),
        ([0, 1, 4], [1, 2, 1], "first must lead to the shapes of 2 jobs"),
        ([0, 3, 3], [1, 2, 1], "at least one each"),
    ]:
        shapes = Shapes(np.array(first), run, run, np.array(widths))
        assert part in message(simulate_arrays, *request, 4, shapes=shapes, select="submit")
    for changes, part in [
        ({"demands": np.array([[1.0], [math.nan]])}, "negative or infinite demands; expected"),
        ({"demands": np.array([[1.0]])}, "demands are needed of 2 jobs"),
        ({"per_node": 3}, "nodes of 3 processors do not divide a machine of 4"),
        ({"demands": np.array([[-1.0], [1.0]])}, "negative or infinite demands; expected"),
        ({"per_node": 0}, "nodes of 0 processors do not divide a machine of 4"),
        ({"capacities": np.array([0.0])}, "zero or infinite capacities; expected"),
        ({"capacities": np.array([math.inf])}, "zero or infinite capacities; expected"),
        (
            {"demands": np.ones((2, 2)), "capacities": np.array([1.0, math.inf])},
            "zero or infinite capacities; expected",
        ),
        ({"demands": np.ones((2, 2)), "capacities": np.array([0.0, 1.0])}, "zero or infinite capacities; expected"),
        ({"allowed": np.ones(1)}, "allowed run times are needed of 2 jobs"),
        ({"allowed": np.array([1.0, -1.0])}, "allowed run times are needed of 2 jobs"),
    ]:
        values = {"per_node": 2, "demands": np.ones((2, 1)), "capacities": np.ones(1)} | changes
        assert part in message(
            simulate_arrays, **ARRAYS, machine=4, allocation="first-fit", resources=Resources(**values)
        )


def test_the_longest_stretch_adds_up_the_overloads_of_nodes_full_of_the_job_that_needs_most():
    rng = random.Random(1)
    for _ in range(40):
        capacities = np.array([rng.choice([0.5, 1.0, 4.0, 9.0]) for _ in range(rng.randint(1, 3))])
        demands = np.array([[rng.choice([0.0, 0.5, 1.0, 3.0]) for _ in capacities] for _ in range(rng.randint(0, 3))])
        allowed = rng.choice([None, np.zeros(len(demands))])
        shared = Resources(rng.choice([1, 2, 3, 12]), demands, capacities, allowed=allowed)
        worst = [
            max((job[k] for job in demands), default=0) * shared.per_node / capacity
            for k, capacity in enumerate(capacities)
        ]
        expected = 1 + sum(max(one - 1, 0) for one in worst)
        assert longest_stretch(shared, len(demands), 12) == pytest.approx(expected)
        assert longest_stretch(replace(shared, slows=False), len(demands), 12) == 1


def test_shapes_of_a_table_are_checked():
    start = Scheduler(shapes="start")
    for shape, part in [
        ({"processors": 0, "run_time": 5.0}, "shapes: job 1: 0 processors"),
        ({"processors": None, "run_time": 5.0}, "job 1 has a shape without processors"),
        ({"processors": 2, "run_time": math.nan}, "shapes: job 1: the run time is nan"),
    ]:
        both = [shape, {"processors": 4, "run_time": 1.0}]
        assert part in message(simulate, workload(shapes=[both] * 3), start)
    assert "column shapes holds" in message(simulate, workload(shapes=[[{"width": 2}]] * 3), start)
    assert "column shapes holds" in message(simulate, workload(shapes=["2", "3", "4"]), start)


def test_demands_of_a_table_are_checked():
    shared = Scheduler(runtime="shared", allocation="first-fit")
    machine = Machine(4, 2, {"memory": 10.0})
    for demands, part in [
        ([1.0, -2.0, 1.0], "job 2: memory is -2.0; expected a demand: a finite number"),
        ([1.0, math.inf, 1.0], "job 2: memory is inf; expected a demand: a finite number"),
        (["a", "b", "c"], "column memory holds String"),
    ]:
        assert part in message(simulate, replace(workload(memory=demands), machine=machine), shared)


def test_load_and_shadows_validate_schedules():
    times = {"submit_time": [0.0, 1.0], "start_time": [0.0, 1.0], "end_time": [5.0, math.nan]}
    outcomes = pl.DataFrame(times | {"processors": [1, 1]})
    assert "job 1: the end is nan" in message(loads_of, outcomes, 4)
    assert "outcomes: column end_time" in message(loads_of, pl.DataFrame({"end_time": ["x"]}), 4)
    placed = {"job_id": [1], "start_time": [0.0], "end_time": [math.inf], "places": ["0-1"]}
    demands = pl.DataFrame({"job_id": [1], "memory": [1.0]})
    machine = Machine(4, 2, {"memory": 1.0})
    assert "job 1" in message(shadows, pl.DataFrame(placed), demands, machine)
    assert "job 1" in message(shadows, pl.DataFrame(placed | {"end_time": [5.0], "places": ["0-x"]}), demands, machine)


# --- machines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processors", [0, -1, 2**31 + 1, 9 * 10**18, 10**30, 4.0, True, "8", None, math.nan])
def test_machines_have_limits(processors: Any):
    assert message(Machine, processors, 1).startswith("machine: processors: ")
    assert message(Machine.of, processors).startswith("machine: processors: ")


@pytest.mark.parametrize("allocation", ["first-fit", "longest-idle"])
def test_numbered_processors_beyond_the_memory_are_an_error(allocation: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swflow.scheduling.prepare.free_memory", lambda: 10**9)
    large = replace(workload(), machine=Machine.of(2**31))
    text = message(simulate, large, Scheduler(allocation=allocation))
    assert "2,147,483,648 numbered processors take at least" in text and "1.0 GB are free; use allocation count" in text
    clusters = ({"processors": 2**31, "allocation": allocation}, {"processors": 4, "allocation": "first-contiguous"})
    text = message(simulate, large, Scheduler(clusters=clusters))
    assert f"allocation {', '.join(sorted((allocation, 'first-contiguous')))}: 2,147,483,652 numbered" in text
    assert simulate(large, Scheduler(backfill="easy"))["start_time"].to_list() == [0.0, 1.0, 1.0]


def test_a_full_memory_is_one_line(monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("swflow.scheduling.simulate.solve", full)
    assert "does not fit into the memory" in message(simulate, workload(), Scheduler())


# --- files ------------------------------------------------------------------------------------------------


def test_parquet_files_with_another_schema_are_errors(tmp_path: Path):
    path = tmp_path / "tiny.parquet"
    about = {"kind": "workload", "machine": {"processors": 4, "nodes": 4}, "header": {}, "history": []}
    jobs = workload().jobs
    for table, part in [
        (jobs.drop("estimate"), "no column estimate; a workload needs job_id"),
        (jobs.with_columns(pl.col("processors").cast(pl.String)), "column processors holds String, not Int64"),
        (jobs.with_columns(pl.col("submit_time").cast(pl.Decimal(20, 2))), "column submit_time holds Decimal"),
        (jobs.with_columns(pl.col("job_id").cast(pl.UInt64)), "column job_id holds UInt64, not Int64"),
        (jobs.with_columns(shapes=pl.lit(1)), "column shapes holds Int32"),
    ]:
        write_table(table, path, about)
        assert part in message(open_workload, path) and str(path) in message(read_workload, path)
    for wrong, part in [
        ({"machine": 5}, "metadata: machine: 5; expected an object"),
        ({"header": None}, "metadata: header: None; expected an object"),
        ({"machine": {"processors": 4}}, "expected capacities, nodes, processors, resources"),
        ({"machine": {"processors": "4", "nodes": 4}}, "processors: '4'; expected a whole number"),
        ({"kind": "run"}, "metadata: no key 'workload'"),
        ({"options": Scheduler().to_dict() | {"runtime": ["a", 1]}}, "options: runtime: ['a', 1]; expected a text"),
        ({"options": {"order": "fcfs"}}, "options: no key 'allocation'"),
        ({"schedulers": {"easy": {"order": "fcfs"}}}, "schedulers: easy: no key 'allocation'"),
        ({"options": ["easy"]}, "options: ['easy']; expected an object"),
    ]:
        write_table(jobs, path, about | wrong)
        assert part in message(read_workload, path)
    write_table(jobs.with_columns(memory=pl.lit(None), gpus=pl.lit(None)), path, about)
    assert read_workload(path).jobs.select("memory", "gpus").dtypes == [pl.Int64, pl.Int64]
    jobs.write_parquet(path, metadata={"swflow": "{garbage"})
    assert "metadata:1: invalid JSON" in message(read_workload, path)
    write_workload(workload(), path)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(bytes(content))
    assert str(path) in message(read_workload, path)


# --- cleaning ---------------------------------------------------------------------------------------------

UNKNOWN = dict.fromkeys(SWF_FIELDS, -1)


def rows(*changes: dict[str, Any]) -> pl.DataFrame:
    ordinary = {"submit_time": 0, "wait_time": 0, "run_time": 10, "allocated_processors": 4}
    jobs = [UNKNOWN | ordinary | {"job_id": place} | change for place, change in enumerate(changes, 1)]
    return pl.DataFrame(jobs, schema=SWF_FIELDS)


def test_jobs_without_a_submit_time_are_removed_under_a_reason():
    cleaned = clean(rows({}, {"submit_time": -1}, {"submit_time": -1}), Machine.of(4), name="tiny")
    assert cleaned.jobs["job_id"].to_list() == [1]
    assert cleaned.history[0]["removed"] == {"unknown-submit-time": 2}


def as_log(path: Path, fields: pl.DataFrame, header: str = "") -> Path:
    lines = [" ".join(f"{value:g}" for value in row) for row in fields.rows()]
    path.write_text(header + "\n".join(lines) + "\n")
    return path


def test_a_guessed_machine_has_at_least_the_recorded_peak(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Three jobs of 4 processors overlap, two of them after a wait: the peak is 12, the widest job has 4."""
    log = as_log(tmp_path / "a.swf", rows({}, {"submit_time": 1}, {"submit_time": 1, "wait_time": 8}))
    cleaned = clean_log(log)
    assert cleaned.machine == Machine.of(12)
    entry = cleaned.history[0]
    assert (entry["machine_from"], entry["recorded_peak"]) == ("recorded peak", 12)
    assert "not stated: 12 processors (guessed: peak use)" in entry["warnings"][0]
    from swflow.cli import main

    with pytest.raises(SystemExit) as end:
        main(["clean", str(log), "-o", str(tmp_path / "a.parquet")])
    assert not end.value.code and "a: warning: the machine's size is not stated" in capsys.readouterr().err


def test_a_log_that_exceeds_its_machine_is_a_warning(tmp_path: Path):
    log = as_log(tmp_path / "a.swf", rows({}, {"submit_time": 5}), "; MaxProcs: 6\n")
    (warning,) = clean_log(log).history[0]["warnings"]
    assert "up to 8 processors busy, more than the machine's 6 in 33.33% of its time" in warning
    calm = as_log(tmp_path / "b.swf", rows({}, {"submit_time": 10}), "; MaxProcs: 6\n")
    assert "warnings" not in clean_log(calm).history[0]


def test_recorded_use_of_a_small_schedule():
    jobs = pl.DataFrame(
        {
            "submit_time": [0.0, 0.0, 10.0, 11.0],
            "wait_time": [0.0, None, 0.0, 1.0],
            "run_time": [10.0, 10.0, 10.0, 0.0],
            "processors": [4, 100, 3, 50],
        }
    )
    assert recorded_use(jobs, 3) == (4, 0.5)
    assert recorded_use(jobs.with_columns(wait_time=pl.lit(None, pl.Float64)), 103) == (104, 0.5)
    assert recorded_use(jobs.head(0), 1) == (0, 0.0)


def test_lines_beyond_the_limits_are_counted_when_lenient(tmp_path: Path):
    fields = rows({}, {"submit_time": 1e16}, {"allocated_processors": 4 * 10**18})
    log = as_log(tmp_path / "a.swf", fields, "; MaxProcs: 8\n")
    assert "clean: a: job 2: submit_time is 1e+16 s, beyond the limit of 1e+12 s (2 such jobs)" in message(
        clean_log, log
    )
    cleaned = clean_log(log, lenient=True)
    assert cleaned.history[0]["removed"] == {"malformed": 2} and cleaned.history[0]["read"] == 3


def test_validated_arrays_are_returned():
    assert check_workload(workload().jobs, 4).equals(workload().jobs)
