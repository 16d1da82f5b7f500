"""Test shadows against a slow reference implementation, and the reservation table that shows them."""

import json
import re
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.figures import errors_of, marks
from helpers.penalties import penalty_times
from swflow.analysis.shadows import ranges, shadows
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import draw, reservations, write
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.studies.plan import plan_studies
from swflow.studies.runs import simulate_all
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin
from swflow.workload.steps.memory import memory
from swflow.workload.steps.set_machine import with_machine


def naive_shadows(jobs, machine):
    """Return node, start, end, jobs, processes, use of both resources and penalty of every interval."""
    size = machine.processors_per_node
    rows = []
    for node in range(machine.nodes):
        here = [
            (job, sum(node * size <= place < (node + 1) * size for place in job["set"]))
            for job in jobs
            if job["end_time"] > job["start_time"]
        ]
        here = [(job, processes) for job, processes in here if processes]
        times = sorted({job[name] for job, _ in here for name in ("start_time", "end_time")})
        for start, end in pairwise(times):
            inside = [(j, n) for j, n in here if j["start_time"] <= start and j["end_time"] >= end]
            if not inside:
                continue
            use = [sum(n * (job[name] or 0) for job, n in inside) for name in ("io", "memory")]
            penalty = sum(
                max(used / machine.capacities[name], 1) - 1 for used, name in zip(use, ("io", "memory"), strict=True)
            )
            ids = sorted(job["job_id"] for job, _ in inside)
            rows.append((node, start, end, ids, sum(n for _, n in inside), *use, penalty))
    for before, after in pairwise(rows):
        assert before[0] != after[0] or before[2] < after[1] or before[3] != after[3], "not maximal"
    return rows


@st.composite
def schedules(draw_):
    """Return random jobs that never share a processor, with their processors as text."""
    size, nodes = draw_(st.integers(1, 4)), draw_(st.integers(1, 4))
    machine = Machine(size * nodes, nodes, {"io": draw_(st.integers(1, 9)), "memory": 4.0})
    free = [0] * machine.processors
    jobs = []
    for number in range(draw_(st.integers(1, 12))):
        chosen = sorted(draw_(st.sets(st.integers(0, machine.processors - 1), min_size=1, max_size=5)))
        start = max(free[place] for place in chosen) + draw_(st.integers(0, 3))
        end = start + draw_(st.sampled_from([0, 1, 2, 5, 9]))
        for place in chosen:
            free[place] = end
        demand = st.none() | st.integers(0, 5)
        jobs.append(
            {"job_id": 7 * number % 13, "start_time": float(start), "end_time": float(end), "places": as_text(chosen),
             "set": chosen, "io": draw_(demand), "memory": draw_(demand)}
        )  # fmt: skip
    return jobs, machine


def as_text(places):
    """Return processors as ranges, such as 0-3,8."""
    parts = []
    for place in places:
        if parts and parts[-1][1] == place - 1:
            parts[-1][1] = place
        else:
            parts.append([place, place])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)


@settings(max_examples=60)
@given(schedules())
def test_shadows_equal_the_reference(schedule):
    jobs, machine = schedule
    columns = dict.fromkeys(("io", "memory"), pl.Float64)
    table = pl.DataFrame([{name: job[name] for name in job if name != "set"} for job in jobs], schema_overrides=columns)
    outcomes, demands = table.drop("io", "memory"), table.select("job_id", "memory", "io")
    found = shadows(outcomes, demands, machine)
    expected = naive_shadows(jobs, machine)
    assert found.columns == ["node", "start", "end", "jobs", "processes", "io", "memory", "penalty"]
    assert found.rows() == pytest.approx(expected) if not expected else len(found) == len(expected)
    for row, wanted in zip(found.rows(), expected, strict=True):
        assert row[:5] == wanted[:5]
        assert row[5:] == pytest.approx(wanted[5:])
    added = {}
    for node, start, end, ids, *_, penalty in expected:
        for job in ids:
            added[job, node] = added.get((job, node), 0) + (end - start) * penalty
    times = penalty_times(outcomes, found)
    assert times["job_id"].to_list() == [job["job_id"] for job in jobs]
    for job, time in times.rows():
        assert time == pytest.approx(max([value for (one, _), value in added.items() if one == job], default=0))


def test_the_example_of_the_paper():
    """Figures 1 to 4 of the paper: three jobs have six shadows, and the penalty of job 2 is that of its worse node."""
    outcomes = pl.DataFrame(
        {"job_id": [1, 2, 3], "start_time": [0.0, 1.0, 1.0], "end_time": [2.0, 3.0, 4.0], "places": ["0-2", "3-6", "9"]}
    )
    demands = pl.DataFrame({"job_id": [1, 2, 3], "memory_bandwidth": [1000.0, 2000.0, 3000.0]})
    found = shadows(outcomes, demands, Machine(10, 2, {"memory_bandwidth": 4000}))
    assert found.select("node", "start", "end", "jobs", "memory_bandwidth", "penalty").rows() == [
        (0, 0.0, 1.0, [1], 3000.0, 0.0),
        (0, 1.0, 2.0, [1, 2], 7000.0, 0.75),
        (0, 2.0, 3.0, [2], 4000.0, 0.0),
        (1, 1.0, 3.0, [2, 3], 7000.0, 0.75),
        (1, 3.0, 4.0, [3], 3000.0, 0.0),
    ]
    assert penalty_times(outcomes, found)["penalty_time"].to_list() == [0.75, 1.5, 1.5]


OUTCOMES = pl.DataFrame({"job_id": [1, 2], "start_time": [0.0, 5.0], "end_time": [9.0, 9.0], "places": ["0-1", "2,4"]})
DEMANDS = pl.DataFrame({"job_id": [1, 2], "io": [1.0, 2.0]})
MANY = OUTCOMES.head(1).drop("job_id").join(pl.DataFrame({"job_id": range(99, 9, -1)}), how="cross")


@pytest.mark.parametrize(
    ("outcomes", "demands", "words"),
    [
        (OUTCOMES.drop("places"), DEMANDS, "shadows: the outcomes lack places"),
        (OUTCOMES, DEMANDS.drop("job_id"), "shadows: the demands lack job_id"),
        (OUTCOMES, DEMANDS.head(1), "shadows: job 2 has no row of demands"),
        (OUTCOMES.with_columns(places=pl.Series(["0-1", "2,8"])), DEMANDS, "job 2 is on processor 8 of 8"),
        (OUTCOMES.with_columns(places=pl.Series(["0-1", "5,4-2"])), DEMANDS, "job 2 has places '4-2'; they are ranges"),
        (OUTCOMES.with_columns(places=pl.Series(["0-1", "-1"])), DEMANDS, "job 2 has places '-1'; they are ranges"),
        (MANY, DEMANDS, "shadows: job 99 has no row of demands"),
        (OUTCOMES.with_columns(end_time=pl.Series([9.0, None])), DEMANDS, "job 2 has no finite start and end"),
        (OUTCOMES.with_columns(start_time=pl.Series([0.0, float("nan")])), DEMANDS, "job 2 has no finite start"),
        (OUTCOMES.with_columns(places=pl.Series(["0-1", None])), DEMANDS, "the processors of 1 jobs are not known"),
    ],
)
def test_shadows_reject_incomplete_input(outcomes, demands, words):
    with pytest.raises(SwflowError, match=words):
        shadows(outcomes, demands, Machine(8, 2, {"io": 4}))


def test_only_resources_with_capacity_and_demand_count():
    assert shadows(OUTCOMES, DEMANDS, Machine(8, 2, {"memory": 1}))["penalty"].sum() == 0
    assert "io" not in shadows(OUTCOMES, DEMANDS, Machine(8, 2)).columns
    assert shadows(OUTCOMES.clear(), DEMANDS, Machine(8, 2, {"io": 1})).is_empty()


def test_a_job_without_a_duration_divides_no_shadow():
    instant = pl.DataFrame({"job_id": [3], "start_time": [4.0], "end_time": [4.0], "places": ["3"]})
    demands = pl.concat([DEMANDS, pl.DataFrame({"job_id": [3], "io": [9.0]})])
    machine = Machine(8, 2, {"io": 4})
    found = shadows(pl.concat([OUTCOMES, instant]), demands, machine)
    assert found.equals(shadows(OUTCOMES, DEMANDS, machine))
    assert penalty_times(instant, found)["penalty_time"].to_list() == [0]


def test_ranges_of_places():
    rows = ranges(OUTCOMES).select("job_id", "first", "last").rows()
    assert rows == [(1, 0, 1), (2, 2, 2), (2, 4, 4)]


PLACED = {
    "fit": {"backfill": "easy", "allocation": "first-fit", "places": True},
    "next": {"backfill": "easy", "allocation": "longest-idle", "places": True},
    "easy": {"backfill": "easy"},
}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Load a synthetic workload with demands under two schedulers with numbered processors, and one without."""
    folder = tmp_path_factory.mktemp("tables")
    log = clean(generate_lublin(300, 32, generator(1, "A")), Machine.of(32), name="A")
    workload = memory(with_machine(log, preset="alvio-node"))
    write_workload(workload, folder / "A+high.parquet")
    simulate_all(folder / "A+high.parquet", PLACED, folder / "runs")
    load([folder / "runs"], folder / "d.duckdb")
    return folder / "d.duckdb"


def rectangles(spec):
    """Return the data sets of rectangles by name."""
    return [rows for rows in spec["datasets"].values() if rows and "y2" in rows[0]]


def test_a_table_shows_the_jobs_and_shadows_of_a_window(database, tmp_path):
    spec = draw("reservation-table", database, runs=["A+high/fit"], window=(6 * 3600, 12 * 3600), interactive=True)
    assert errors_of(spec) == []
    jobs, penalized = rectangles(spec)
    assert marks(spec).count("rect") == 3  # jobs, shadows, outlines
    assert {row["job_id"] for row in jobs} == set(running(database, "A+high/fit", 6 * 3600, 12 * 3600))
    assert all(0 <= row["a"] < row["b"] <= 6 and 0 <= row["y"] < row["y2"] <= 32 for row in jobs + penalized)
    assert all(row["y"] % 4 == 0 and row["y2"] == row["y"] + 4 and row["penalty"] > 0 for row in penalized)
    assert {"memory_bandwidth", "places"} - {*jobs[0]} == {"places"}
    assert {"jobs", "memory_bandwidth", "penalty"} < {*penalized[0]}
    assert spec == draw(
        "reservation-table", database, runs=["A+high/fit"], window=(6 * 3600, 12 * 3600), interactive=True
    )
    printed = draw("reservation-table", database, runs=["A+high/fit"], window=(6 * 3600, 12 * 3600))
    assert "job_id" not in rectangles(printed)[0][0]
    assert printed["usermeta"]["title"] == "A: reservation table"
    write(printed, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def running(database, run, since, until):
    """Return the jobs that run between two times."""
    import duckdb

    with duckdb.connect(database, read_only=True) as connection:
        rows = connection.execute(
            "SELECT job_id FROM outcomes WHERE run = ? AND start_time < ? AND end_time > ? AND end_time > start_time",
            [run, until, since],
        ).fetchall()
    return [job for (job,) in rows]


def test_the_day_with_most_penalty_is_the_default_window(database):
    def axis(spec):
        return re.findall(r"(\w+) after second ([\d,]+) of the log", json.dumps(spec))[0]

    spec = draw("reservation-table", database, log="A")
    lost = {}
    for day in range(6):
        try:
            part = draw("reservation-table", database, runs=["A+high/fit"], window=(day * 86400, None))
        except SwflowError:
            continue
        shaded = [row for rows in rectangles(part) for row in rows if "penalty" in row]
        lost[day] = sum((row["b"] - row["a"]) * row["penalty"] for row in shaded)  # full nodes: 4 processes
    worst = max(lost, key=lost.get)
    assert axis(spec) == ("hours", f"{worst * 86400:,}")
    assert axis(draw("reservation-table", database, log="A", window=(None, 90000))) == ("hours", "3,600")
    assert axis(draw("reservation-table", database, log="A", window=(3600, 3600 * 97))) == ("days", "3,600")


def test_runs_without_places_are_named(database):
    spec = draw("reservation-table", database, log="A")
    assert len(spec["vconcat"]) == 2
    assert spec["title"]["subtitle"] == "Not drawn: A+high/easy: processors unknown"
    assert not draw("reservation-table", database, runs=["A+high/fit"])["title"]["subtitle"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runs": ["A+high/easy"]}, "of A\\+high/easy are unknown; simulate it with places: true"),
        ({"log": "A", "window": (7, 7)}, "from 7 until 7; expected"),
        ({"log": "A", "window": (1e9, None)}, "no job runs from second 1000000000 to"),
    ],
)
def test_an_impossible_table_is_a_one_line_error(database, options, words):
    with pytest.raises(SwflowError, match=words) as caught:
        draw("reservation-table", database, **options)
    assert "\n" not in str(caught.value)


def test_too_many_rectangles_are_left_out_and_counted(database, monkeypatch):
    monkeypatch.setattr(reservations, "MOST_RECTANGLES", 10)
    spec = draw("reservation-table", database, runs=["A+high/fit"])
    assert [len(rows) for rows in rectangles(spec)] == [10, 10]
    title = json.dumps(spec).replace('", "', " ")  # broken into lines
    assert re.search(r"the \d+ smallest of \d+ rectangles of jobs are left out, \d+\.\d\d% of their area", title)
    assert re.search(r"the \d+ smallest of \d+ rectangles of shadows are left out", title)


def test_a_study_chooses_the_window():
    config = {
        "logs": None, "steps": {}, "schedulers": {"fit": {}},
        "studies": {"one": {
            "logs": ["A"], "figures": ["reservation-table", "heatmap"], "window": {"from": 0, "until": 86400},
            "runs": [{"workloads": ["{log}"], "schedulers": ["fit"]}],
        }},
    }  # fmt: skip
    planned = plan_studies(config, ["A"]).figures
    assert planned["one/A-reservation-table"] == {
        "kind": "reservation-table", "log": "A", "title": "A", "runs": ["A/fit"], "split": [], "window": [0, 86400],
    }  # fmt: skip
    assert "window" not in planned["one/A-heatmap"]
    del config["studies"]["one"]["window"]
    assert plan_studies(config, ["A"]).figures["one/A-reservation-table"]["window"] == [None, None]
