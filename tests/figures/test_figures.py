"""Figures from a database to files and into the report."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import duckdb
import jsonschema
import numpy as np
import polars as pl
import pytest
import yaml

from helpers.cli import call
from helpers.figures import errors_of, marks
from helpers.runs import SCHEDULERS, write_workloads
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import FIGURES, KINDS, MOST_LINES, RESERVATION_TABLE, draw, write
from swflow.figures.differences import MOST_PAIRS
from swflow.figures.styles import run_styles
from swflow.figures.sweeps import sweep_chart
from swflow.files.query import query
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.studies.figure_jobs import figure_files
from swflow.studies.figure_options import FOREST
from swflow.studies.plan import plan_studies
from swflow.studies.runs import simulate_all
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin
from swflow.workload.steps.intensify import intensify


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Load a synthetic workload under two schedulers, and an equal run under a third name."""
    folder = tmp_path_factory.mktemp("figures")
    for path in write_workloads(folder, 2):
        simulate_all(path, SCHEDULERS, folder / "runs" / path.stem)
    load([folder / "runs/A", folder / "runs/B"], folder / "d.duckdb")
    return folder / "d.duckdb"


def test_the_tables_hold_every_job_and_every_pair(database):
    _, rows = query(
        database,
        "SELECT DISTINCT h.jobs = m.jobs FROM (SELECT run, measure, sum(jobs) AS jobs FROM heatmaps GROUP BY ALL) h "
        "JOIN metrics m USING (run)",
    )
    assert rows == [(True,)]
    _, rows = query(
        database,
        "SELECT count(*) FROM heatmaps h WHERE jobs <> (SELECT count(*) FROM outcomes o WHERE o.run = h.run "
        "AND (o.load >= h.load_low OR h.load_low = 0) AND (o.load < h.load_high OR h.load_high = 1) "
        "AND greatest(o.wait_time, 1) >= h.value_low AND greatest(o.wait_time, 1) < h.value_high) "
        "AND measure = 'wait_time'",
    )
    assert rows == [(0,)]
    _, rows = query(database, "SELECT DISTINCT workload, variant, base FROM comparisons ORDER BY ALL")
    assert rows == [("A", "A/easy", "A/fcfs"), ("B", "B/easy", "B/fcfs")]
    _, rows = query(
        database,
        "SELECT max(abs(b.mean - o.mean)) FROM (SELECT run, sum(jobs * mean_value) / sum(jobs) AS mean FROM bubbles "
        "WHERE measure = 'wait_time' AND NOT filtered GROUP BY run) b "
        "JOIN (SELECT run, avg(wait_time) AS mean FROM outcomes GROUP BY run) o USING (run)",
    )
    assert rows[0][0] == pytest.approx(0, abs=1e-6)
    assert query(database, "SELECT count(*) FROM outcomes WHERE backlog_load < load - 1e-9 OR backlog_load IS NULL")[
        1
    ] == [(0,)]


#: These need what the synthetic workloads here do not have.
OTHERS = (RESERVATION_TABLE, "moldable", "published", "load-curve", "reasons")


@pytest.mark.parametrize("endings", [("svg", "json"), pytest.param(("png",), marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OTHERS])
def test_a_figure_is_deterministic_and_written_by_its_extension(kind, endings, database, tmp_path):
    spec = draw(kind, database, log="A", interactive=True)
    assert spec == draw(kind, database, log="A", interactive=True)
    assert errors_of(spec) == errors_of(draw(kind, database, log="A")) == []
    assert spec["usermeta"]["title"].startswith("A: ")
    begin = {"png": b"\x89PNG", "svg": b"<svg", "json": b"{"}
    for ending in endings:
        write(spec, tmp_path / f"x.{ending}")
        assert (tmp_path / f"x.{ending}").read_bytes().startswith(begin[ending])
    with pytest.raises(SwflowError, match="unknown ending"):
        write(spec, tmp_path / "x.jpg")


def test_an_invalid_chart_has_errors(database):
    spec = draw("waits", database, log="A")
    spec["vconcat"][0]["hconcat"][0]["mark"] = "no mark"
    assert errors_of(spec)


def test_a_heatmap_has_a_panel_per_run_and_measure_with_all_its_marks(database):
    spec = draw("heatmap", database, runs=["A/fcfs", "A/easy"])
    assert marks(spec).count("rect") == 2 * 3
    assert {"rect", "line", "point"} <= set(marks(spec))
    titles = re.findall(r'"text": "(A, \w+)"', json.dumps(spec["vconcat"][0]))
    assert titles == ["A, fcfs", "A, easy"]
    cells = spec["datasets"][spec["vconcat"][0]["data"]["name"]]
    assert sum(sum(row["n"]) for row in cells) == 600


def test_runs_beyond_the_most_that_a_figure_can_show_are_counted_in_its_caption(database, monkeypatch):
    runs = ["A/easy", "A/fcfs", "B/easy"]
    whole = draw("heatmap", database, runs=runs)
    monkeypatch.setitem(FIGURES, "heatmap", replace(FIGURES["heatmap"], most=1))
    some, one = draw("heatmap", database, runs=runs), draw("heatmap", database, runs=runs[:1])
    assert whole["usermeta"]["caption"] + " 2 further runs are not drawn." == some["usermeta"]["caption"]
    assert marks(some) == marks(one) != marks(whole)


def test_replicates_are_one_point_of_a_load_curve_with_an_interval(tmp_path):
    (source,) = write_workloads(tmp_path)
    workload = read_workload(source)
    for name, factor, jobs in (
        ("A+load-1@1", 1, 300),
        ("A+load-1@2", 1, 250),
        ("A+load-1@3", 1, 200),
        ("A+load-2", 2, 300),
    ):
        path = tmp_path / "workloads" / f"{name}.parquet"
        some = replace(workload, jobs=workload.jobs.head(jobs))
        write_workload(replace(intensify(some, factor, by="arrivals"), name=name), path)
        simulate_all(path, SCHEDULERS, tmp_path / "runs" / name)
    load(sorted((tmp_path / "runs").iterdir()), tmp_path / "d.duckdb")
    runs = [f"A+load-{n}/fcfs" for n in ("1@1", "1@2", "1@3", "2")]
    spec = draw("load-curve", tmp_path / "d.duckdb", runs=runs)
    assert errors_of(spec) == []
    (rows,) = spec["datasets"].values()
    first, second = rows
    assert (first["w"], second["w"]) == ("A+load-1", "A+load-2")
    waits = [
        wait
        for (wait,) in query(tmp_path / "d.duckdb", "SELECT mean_wait_time FROM metrics WHERE run LIKE '%1@%/fcfs'")[1]
    ]
    mean, half = np.mean(waits), 4.302653 * np.std(waits, ddof=1) / np.sqrt(3)  # Student's t, two degrees of freedom
    assert first["wait"] == pytest.approx(max(mean, 1), rel=1e-5)
    assert first["wait_low"] == pytest.approx(max(mean - half, 1), rel=1e-4)
    assert first["wait_high"] == pytest.approx(max(mean + half, 1), rel=1e-4)
    assert "wait_low" not in second
    one = draw("load-curve", tmp_path / "d.duckdb", runs=runs, measures=["bounded_slowdown"])
    assert '"mean wait"' in json.dumps(spec)
    assert '"mean wait"' not in json.dumps(one) and '"mean bounded slowdown"' in json.dumps(one)


def test_a_load_curve_joins_the_workloads_of_one_family(tmp_path):
    (source,) = write_workloads(tmp_path)
    workload = read_workload(source)
    for name, factor, by in (
        ("A", None, ""), ("A+load-0.5", 0.5, "arrivals"), ("A+load-2", 2.0, "arrivals"),
        ("A+load-2-run-times", 2.0, "run-times"),
    ):  # fmt: skip
        path = tmp_path / "workloads" / f"{name}.parquet"
        if factor is not None:
            write_workload(replace(intensify(workload, factor, by=by), name=name), path)
        simulate_all(path, SCHEDULERS, tmp_path / "runs" / name)
    load(sorted((tmp_path / "runs").iterdir()), tmp_path / "d.duckdb")
    spec = draw("load-curve", tmp_path / "d.duckdb", log="A")
    assert errors_of(spec) == []
    (rows,) = spec["datasets"].values()
    lines = ["load easy", "load-run-times easy", "load fcfs", "load-run-times fcfs"]
    assert list(dict.fromkeys(row["r"] for row in rows)) == lines  # in no order of threads
    assert {name: [row["w"] for row in rows if row["r"] == name] for name in {row["r"] for row in rows}} == {
        "load easy": ["A+load-0.5", "A", "A+load-2"],
        "load fcfs": ["A+load-0.5", "A", "A+load-2"],
        "load-run-times easy": ["A", "A+load-2-run-times"],
        "load-run-times fcfs": ["A", "A+load-2-run-times"],
    }
    loads = {row["w"]: row["load"] for row in rows}
    assert loads["A+load-2"] == pytest.approx(2 * loads["A"], rel=0.01)
    waits = {row["w"]: row["wait"] for row in rows if row["r"] == "load fcfs"}
    assert waits["A+load-0.5"] < waits["A"] < waits["A+load-2"]
    sql = "SELECT workload, coalesce(saturated, 0)::INTEGER FROM metrics WHERE scheduler = 'fcfs'"
    saturated = dict(query(tmp_path / "d.duckdb", sql)[1])
    assert {row["w"]: row["s"] for row in rows if row["r"] == "load fcfs"}.items() <= saturated.items()
    with pytest.raises(SwflowError, match="load-curve: no workloads with different loads"):
        draw("load-curve", tmp_path / "d.duckdb", runs=["A/easy", "A/fcfs"])


def test_bubbles_are_at_means_and_below_at_medians(database):
    spec = draw("bubbles", database, runs=["A/easy"])
    _, jobs = query(database, "SELECT load, slowdown FROM outcomes WHERE run = 'A/easy'")
    datasets = [rows for _, rows in sorted(spec["datasets"].items()) if "jobs" in rows[0]][2:4]
    expected = [[], []]
    for decile in range(10):
        part = [row for row in jobs if min(9, int(row[0] * 10)) == decile]
        if part:
            for found, measure in zip(expected, (np.mean, np.median), strict=True):
                found.append(measure([max(1.0, slowdown) for _, slowdown in part]))
    for drawn, values in zip(datasets, expected, strict=True):
        assert [row["value_low"] for row in drawn] == pytest.approx(values, rel=1e-4)


def test_bubbles_of_eleven_classes_are_around_whole_tenths(database):
    spec = draw("bubbles", database, runs=["A/easy"])
    drawn = [rows for _, rows in sorted(spec["datasets"].items()) if "jobs" in rows[0]][1]
    _, jobs = query(database, "SELECT load, slowdown, run_time FROM outcomes WHERE run = 'A/easy'")
    classes = [[] for _ in range(11)]
    for met, slowdown, run_time in jobs:
        if run_time >= 60 and slowdown <= 1000:
            classes[min(10, int(met * 10 + 0.5))].append(slowdown)
    expected = [(len(some), np.mean(some)) for some in classes if some]
    assert [row["jobs"] for row in drawn] == [count for count, _ in expected]
    assert [row["value_low"] for row in drawn] == pytest.approx([mean for _, mean in expected], rel=1e-4)


def test_subsets_have_separate_panels(database):
    def subtitles(spec):
        return re.findall(r'"subtitle": "([^"]+)"', json.dumps(spec))

    spec = draw("heatmap", database, runs=["A/easy"], split=["wide=processors >= 16", "queue_id"])
    wide = query(database, "SELECT count(*) FROM jobs WHERE workload = 'A' AND processors >= 16")[1][0][0]
    queues = query(database, "SELECT queue_id, count(*) FROM jobs WHERE workload = 'A' GROUP BY 1 ORDER BY 1")[1]
    assert subtitles(spec) == [
        "all: 300 jobs", f"wide: {wide:,} jobs", *(f"queue_id {queue}: {jobs:,} jobs" for queue, jobs in queues)
    ]  # fmt: skip
    many = subtitles(draw("heatmap", database, runs=["A/easy"], split=["processors"]))
    assert len(many) == 8 and many[-1].startswith("processors other or unknown")
    assert sum(int(text.split(": ")[1].split()[0]) for text in many[1:]) == 300
    assert draw("heatmap", database, log="A", split=["none=processors > 99"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runs": ["A/esy"]}, "no run 'A/esy' in the database; expected one of"),  # prose: ignore
        ({"log": "C"}, "logs in the database: A, B"),
        ({"log": "A", "split": ["x=nothing > 3"]}, "split: x: "),
        ({"log": "A", "split": ["nothing"]}, "split: nothing: "),
        ({"log": "A", "scale": "cubic"}, "expected log or linear"),
    ],
)
def test_an_impossible_figure_is_a_one_line_error(database, options, words):
    with pytest.raises(SwflowError, match=words) as caught:
        draw("heatmap", database, **options)
    assert "\n" not in str(caught.value)


def test_studies_plan_a_figure_per_kind_and_log():
    config = {
        "logs": ["A"], "steps": {"ran": {}}, "schedulers": {"easy": {}},
        "studies": {"one": {
            "logs": ["A", "B"], "figures": ["heatmap", "difference"], "split": "queue_id",
            "runs": [
                {"workloads": ["{log}"], "schedulers": ["log"]},
                {"workloads": ["{log}+ran"], "schedulers": ["easy"]},
            ],
        }},
    }  # fmt: skip
    planned = plan_studies(config, ["A", "B"]).figures
    assert set(planned) == {"one/A-heatmap", "one/A-difference"}
    assert planned["one/A-heatmap"] == {
        "kind": "heatmap", "log": "A", "title": "A", "runs": ["A/log", "A+ran/easy"], "split": ["queue_id"],
    }  # fmt: skip
    config["studies"]["one"]["runs"] = config["studies"]["one"]["runs"][:1]
    with pytest.raises(SwflowError, match="studies: one: figures: difference: A has no two runs"):
        plan_studies(config, ["A", "B"])


def test_a_figure_of_a_study_has_the_options_of_the_command(database, tmp_path):
    study = {"logs": ["A"], "runs": [{"workloads": ["{log}"], "schedulers": ["fcfs", "easy"]}], "baseline": "easy"}
    one = {"kind": "heatmap", "name": "small", "measure": "slowdown", "bins": 20, "width": "90mm", "title": "none"}
    config = {
        "steps": {},
        "schedulers": {"easy": {}, "fcfs": {}},
        "studies": {"s": study | {"figures": ["heatmap", one, "difference"]}},
    }
    schema = yaml.safe_load((Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml").read_text())
    assert jsonschema.Draft202012Validator(schema).is_valid({"seed": 1, **config})
    bad = {"seed": 1, **config, "studies": {"s": study | {"figures": [{**one, "bin": 3}]}}}
    assert not jsonschema.Draft202012Validator(schema).is_valid(bad)
    planned = plan_studies(config, ["A"]).figures
    assert list(planned) == ["s/A-heatmap", "s/A-small", "s/A-difference"]
    assert planned["s/A-difference"]["runs"] == ["A/easy", "A/fcfs"]  # the first one is the base
    (tmp_path / "plan.json").write_text(json.dumps({"s/A": {"s/A-small": planned["s/A-small"]}}))
    assert call("figures", tmp_path / "plan.json", "--database", database, "-o", tmp_path) == 0
    svg = (tmp_path / "s/A-small.svg").read_text()
    assert float(re.search(r'width="([0-9.]+)"', svg)[1]) / 96 * 25.4 == pytest.approx(90, abs=0.5)
    assert "performance against load" not in svg
    assert (tmp_path / "s/A-small.pdf").read_bytes().startswith(b"%PDF")
    assert [one for one in figure_files(planned) if one.endswith(".pdf")] == ["results/figures/s/A-small.pdf"]
    page = json.loads((tmp_path / "s/A-small.json").read_text())
    assert "--bins 20" in page["usermeta"]["command"] and "--measure slowdown" in page["usermeta"]["command"]
    twice = config | {"studies": {"s": study | {"figures": ["heatmap", {**one, "name": "heatmap"}]}}}
    with pytest.raises(SwflowError, match="two figures named 'heatmap'"):
        plan_studies(twice, ["A"])


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        ({"kind": "waits", "measure": "wait_time"}, "0: measure: not an option of waits; expected one of heatmap, dif"),
        ({"kind": "load-curve", "bins": 20}, "0: bins: not an option of load-curve; expected one of heatmap"),
        ({"kind": "heatmap", "measure": ["slowdown", "bounded_slowdown"]}, "0: measure: 'bounded_slowdown'; expected"),
        (
            {"kind": "load-curve", "measure": "slowdown"},
            "'slowdown'; expected one of wait_time, bounded",
        ),
    ],
    ids=str,
)
def test_options_that_a_figure_does_not_have_are_refused_before_the_runs(figure, expected):
    study = {"logs": ["A"], "runs": [{"workloads": ["{log}"], "schedulers": ["easy"]}], "figures": [figure]}
    with pytest.raises(SwflowError, match=f"studies: s: figures: .*{expected}"):
        plan_studies({"steps": {}, "schedulers": {"easy": {}}, "studies": {"s": study}}, ["A"])


def test_a_load_curve_of_a_study_has_all_replicates(tmp_path):
    """It showed the first replicate only, without an interval."""
    study = {"logs": ["A"], "seeds": 3, "runs": [{"workloads": ["{log}+like@{seed}+l"], "schedulers": ["easy"]}]}
    steps = {"like": {"kind": "model"}, "l": {"kind": "intensify", "load": 0.5}}
    config = {
        "steps": steps,
        "schedulers": {"easy": {}},
        "studies": {"s": study | {"figures": ["load-curve", "waits"]}},
    }
    planned = plan_studies(config, ["A"]).figures
    assert planned["s/A-load-curve"]["runs"] == [f"A+like@{seed}+l/easy" for seed in (1, 2, 3)]
    assert planned["s/A-waits"]["runs"] == ["A+like@1+l/easy"]


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("bins", [20, 10])
def test_wider_cells_hold_the_same_jobs(database, bins, scale):
    """A reader asks for other bins: the cells add the jobs of those that they merge."""
    totals, steps = [], []
    for some in (100, bins):
        spec = draw("heatmap", database, runs=["A/easy"], measures=["wait_time"], bins=some, scale=scale)
        (cells,) = (rows for rows in spec["datasets"].values() if rows and "n" in rows[0])
        assert max(row["i"] for row in cells) < some
        high = max(max(row["j"]) for row in cells) + 1
        (axis,) = {
            tuple(layer["encoding"]["y"]["scale"]["domain"])
            for layer in spec["vconcat"][0]["hconcat"][0]["layer"]
            if "y2" in layer["encoding"]
        }
        per_cell = {100: 1, 20: 4, 10: 6}[some]
        steps.append(axis[1] / high)  # the highest of the 100 linear bins has a job
        top = 10 ** (high * per_cell / 12) if scale == "log" else high * per_cell * steps[0]
        assert top <= axis[1] * 1.0001  # no cell is above the axis
        totals.append((sum(map(sum, (row["n"] for row in cells))), sum(len(row["n"]) for row in cells)))
    assert totals[0][0] == totals[1][0] > 0 and totals[1][1] < totals[0][1]


def test_options_that_a_kind_does_not_have_are_refused(database):
    with pytest.raises(SwflowError, match="--bins: 30; expected a divisor of 100"):
        draw("heatmap", database, log="A", bins=30)
    with pytest.raises(SwflowError, match="--bins: not an option of waits; expected one of heatmap"):
        draw("waits", database, log="A", bins=20)


def test_a_difference_is_the_new_run_minus_the_base(database):
    spec = draw("difference", database, runs=["A/fcfs", "A/easy"], measures=["wait_time"])
    assert [panel["title"]["text"] for panel in spec["vconcat"][0]["hconcat"]] == ["easy − fcfs"]
    cells = [row for rows in spec["datasets"].values() for row in rows if "d" in row]
    sums = {sign: sum(value for row in cells for value in row["d"] if value * sign > 0) for sign in (1, -1)}
    assert sums[1] > 0 > sums[-1] and sums[1] + sums[-1] == pytest.approx(0, abs=0.1)
    # EASY has more short waits, so that its jobs are above 0 in the lowest row.
    lowest = sum(value for row in cells for place, value in zip(row["j"], row["d"], strict=True) if place == 0)
    assert lowest > 0


def test_no_caption_depends_on_the_page_being_white(database):
    for kind in ("heatmap", "timeline", "difference"):
        caption = draw(kind, database, log="A")["usermeta"]["caption"]
        assert not re.search(r"\b(dark|light|black|white)", caption)


def test_the_schema_has_all_kinds_of_figures():
    schema = yaml.safe_load((Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml").read_text())
    study = schema["properties"]["studies"]["additionalProperties"]["properties"]
    assert tuple(schema["$defs"]["figureKind"]["enum"]) == (*KINDS, FOREST)
    for split, good in (({"wide": "processors > 3"}, True), ("queue_id", True), ({"a=b": "x"}, False), ("a b", False)):
        assert jsonschema.Draft202012Validator(study["split"]).is_valid(split) == good


def test_a_timeline_has_the_means_of_its_intervals(database):
    spec = draw("timeline", database, runs=["A/fcfs", "A/easy"])
    ((first, last),) = query(database, "SELECT min(submit_time), max(end_time) FROM outcomes WHERE workload = 'A'")[1]
    edges = np.linspace(first, last, 161)
    for row in spec["datasets"]["data-0"]:
        _, rows = query(
            database,
            f"SELECT submit_time, start_time, end_time, processors FROM outcomes WHERE run = 'A/{row['r']}'",
        )
        submit, start, end, width = np.array(rows).T

        def means(begin, until, weight):
            inside = np.minimum(until[:, None], edges[1:]) - np.maximum(begin[:, None], edges[:-1])
            return (weight[:, None] * np.maximum(inside, 0)).sum(axis=0) / np.diff(edges)

        assert row["days"] == pytest.approx((edges[1:] + edges[:-1]) / 2 / 86_400, rel=1e-3)
        assert row["utilization"] == pytest.approx(means(start, end, width) / 32, rel=1e-3, abs=1e-6)
        assert row["queue"] == pytest.approx(means(submit, start, np.ones(len(rows))), rel=1e-3, abs=1e-6)


def test_mean_waits_are_those_of_the_jobs_of_each_class(tmp_path):
    fields, database = generate_lublin(300, 32, generator(1, "A"), load=0.9, users=True), tmp_path / "d.duckdb"
    write_workload(clean(fields, Machine.of(32), name="A"), tmp_path / "A.parquet")
    simulate_all(tmp_path / "A.parquet", SCHEDULERS, tmp_path / "A")
    load([tmp_path / "A"], database)
    spec = draw("waits", database, runs=["A/fcfs"])
    _, jobs = query(
        database,
        "SELECT o.processors, o.run_time, j.user_id, o.wait_time FROM outcomes o JOIN jobs j USING (workload, job_id) "
        "WHERE o.run = 'A/fcfs'",
    )
    bounds = {"< 1 min": 60, "1–10 min": 600, "10–60 min": 3600, "1–6 h": 6 * 3600, "6–24 h": 86_400}
    by_class: dict[str, dict[str, list[float]]] = {"data-0": {}, "data-1": {}, "data-2": {}}
    for processors, run_time, user, wait in jobs:
        size = next(2**power for power in range(20) if processors <= 2**power)
        label = f"{size}" if size < 3 else f"{size // 2 + 1}–{size}"
        long = next((name for name, bound in bounds.items() if run_time < bound), "≥ 1 d")
        for data, name in zip(by_class, (label, long, str(user)), strict=True):
            by_class[data].setdefault(name, []).append(wait)
    for data, waits in by_class.items():
        rows = spec["datasets"][data]
        most = sorted((len(some) for some in waits.values()), reverse=True)[: 10 if data == "data-2" else None]
        assert sorted((row["n"] for row in rows), reverse=True) == most
        for row in rows:
            assert row["n"] == len(waits[row["c"]]) and row["s"] == pytest.approx(np.mean(waits[row["c"]]), rel=1e-4)


def test_a_linear_axis_starts_at_zero(database):
    spec = json.dumps(draw("heatmap", database, log="A", scale="linear"))
    assert '"type": "log", "domain": [1,' not in re.sub(r'"color".*?"range"', "", spec)


@pytest.mark.parametrize("kind", ["waits", "heatmap", "timeline", "arrivals"])
def test_a_figure_has_no_query_and_no_command(kind, database, tmp_path):
    spec = draw(kind, database, log="A", interactive=True)
    queries = spec["usermeta"]["sql"].split(";\n\n")
    assert queries and all(query(database, sql.rstrip(";"))[1] for sql in queries)
    words = shlex.split(spec["usermeta"]["command"])
    assert words[:3] == ["swflow", "figure", kind] and words[-2:] == ["-o", f"{kind}.svg"]
    runs = [words[place + 1] for place, word in enumerate(words) if word == "--run"]
    assert draw(kind, database, runs=runs, interactive=True) == spec


@pytest.mark.parametrize("kind", ["waits", "heatmap"])
def test_a_scheduler_with_a_title_is_drawn_with_it_by_the_figure_and_its_command(kind, database, tmp_path):
    spec = draw(kind, database, log="A", titles={"easy": "EASY backfilling", "other": "x"}, interactive=True)
    assert "EASY backfilling" in json.dumps({name: part for name, part in spec.items() if name != "usermeta"})
    words = shlex.split(spec["usermeta"]["command"])
    assert words.count("--label") == 1
    assert call(*words[1:-1], tmp_path / "again.json", "--database", database) == 0
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(json.dumps(spec))


def test_a_label_without_a_title_is_refused(database, tmp_path, capsys):
    options = ("-o", tmp_path / "a.svg", "--database", database)
    assert call("figure", "waits", "--log", "A", "--label", "easy", *options) == 1
    assert "--label: 'easy' is not SCHEDULER=TITLE" in capsys.readouterr().err


def lines(spec):
    """Return the color and the dashes of each line of a figure."""
    found = {}
    if isinstance(spec, dict):
        for channel in ("color", "strokeDash"):
            part = spec.get(channel)
            scale = part.get("scale", {}) if isinstance(part, dict) else {}
            if isinstance(scale.get("range"), list) and isinstance(scale.get("domain"), list):
                for name, value in zip(scale["domain"], scale["range"], strict=False):
                    found.setdefault(str(name), {})[channel] = value
        spec = list(spec.values())
    if isinstance(spec, list):
        for part in spec:
            for name, values in lines(part).items():
                found.setdefault(name, {}).update(values)
    return found


def test_a_scheduler_changes_its_colour_with_the_runs_beside_it(database):
    alone, first, last = (draw("waits", database, runs=runs) for runs in (
        ["A/easy"], ["A/easy", "A/fcfs"], ["A/fcfs", "A/easy"],
    ))  # fmt: skip
    assert lines(first) == lines(last)
    assert lines(alone)["easy"]["color"] == lines(first)["easy"]["color"] != lines(first)["fcfs"]["color"]
    heatmap = draw("heatmap", database, runs=["A/fcfs", "A/easy"], interactive=True)
    assert lines(heatmap)["A, easy"]["color"] == lines(first)["easy"]["color"]
    both = draw("waits", database, runs=["A/fcfs", "A/easy", "B/easy"])
    assert lines(both)["B easy"] == {"color": lines(first)["easy"]["color"], "strokeDash": [6, 3]}


def test_every_scheduler_of_the_shipped_configs_can_be_told_from_those_beside_it():
    for path in Path(__file__).parents[2].joinpath("config").glob("*.yaml"):
        config = yaml.safe_load(path.read_text()) or {}
        for study in (config.get("studies") or {}).values():
            names = dict.fromkeys(name for part in study.get("runs", ()) for name in part["schedulers"])
            styles = run_styles([{"workload": "A", "scheduler": name} for name in names][:MOST_LINES])
            assert len(set(styles)) == len(styles)


def test_many_runs_have_a_panel_of_differences_per_pair(tmp_path):
    (source,) = write_workloads(tmp_path)
    workload = read_workload(source)
    other = tmp_path / "workloads" / "A+short.parquet"
    write_workload(replace(workload, name="A+short"), other)
    for path in (source, other):
        simulate_all(path, SCHEDULERS, tmp_path / "runs" / path.stem)
    load(sorted((tmp_path / "runs").iterdir()), tmp_path / "d.duckdb")
    spec = draw("difference", tmp_path / "d.duckdb", log="A")
    titles = [panel["title"]["text"] for panel in spec["vconcat"][0]["hconcat"]]
    assert 1 < len(titles) <= MOST_PAIRS and len({title.split(" − ")[1] for title in titles}) == 1


def test_a_sweep_shows_seconds_and_each_panel_has_its_own_range():
    rows = pl.DataFrame(
        [
            (scheduler, "awrt", "swept", "precise", d, mean, mean - 9000, mean + 9000, 3)
            for scheduler, mean in (("easy", 150_000.0), ("fcfs", 220_000.0))
            for d in (0.0, 50.0, 100.0)
        ],
        schema=["scheduler", "measure", "kind", "line", "x", "mean", "low", "high", "draws"],
        orient="row",
    )
    spec = sweep_chart(rows, "d", ["awrt"], "A")
    axes = [panel["layer"][0]["encoding"]["y"] for panel in spec["vconcat"][0]["hconcat"]]
    assert len(axes) == 2 and axes[0] == axes[1]
    low, high = axes[0]["scale"]["domain"]
    assert low <= 141_000 and high >= 229_000 and axes[0]["axis"]["title"] == "AWRT"
    assert axes[0]["axis"]["labelExpr"].endswith("' h'")
    assert all(tick % 3600 == 0 for tick in axes[0]["axis"]["values"]) and len(axes[0]["axis"]["values"]) >= 3


def test_no_two_panels_of_differences_have_one_title(tmp_path):
    (source,) = write_workloads(tmp_path)
    workload = read_workload(source)
    with_waits = workload.with_jobs(workload.jobs.with_columns(wait_time=pl.lit(5.0)), {"stage": "test", "kept": 300})
    write_workload(with_waits, source)
    short = replace(with_waits.with_jobs(with_waits.jobs.head(100), {"stage": "select", "kept": 100}), name="A+short")
    write_workload(short, source.with_name("A+short.parquet"))
    simulate_all(source, {"log": {"order": "log"}, **SCHEDULERS}, tmp_path / "runs/A")
    simulate_all(source.with_name("A+short.parquet"), {"easy": {"backfill": "easy"}}, tmp_path / "runs/A+short")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    titles = re.findall(r"'text': '([^']* − [^']*)'", str(draw("difference", tmp_path / "d.duckdb", log="A")))
    pairs = set(titles)
    assert {"easy − log", "+short easy − log"} <= pairs
    assert all(titles.count(title) == 3 for title in pairs)  # one per measure


def test_a_difference_has_the_verdict_of_its_study(database, tmp_path):
    asked = {study: [("A/fcfs", "A/easy")] for study in ("b", "a")}
    load([database.parent / "runs/A"], tmp_path / "d.duckdb", asked=asked)
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.execute("UPDATE comparisons SET better = NULL WHERE study = 'a'")
        connection.execute("UPDATE comparisons SET better = 'A/fcfs' WHERE study = 'b'")
    for study, winner in ((None, "neither"), ("a", "neither"), ("b", "fcfs")):
        spec = draw("difference", tmp_path / "d.duckdb", runs=["A/easy", "A/fcfs"], study=study)
        verdicts = [row["hconcat"][0]["title"]["subtitle"][0] for row in spec["vconcat"]]
        assert all(verdict.endswith(f"better at equal load: {winner}") for verdict in verdicts), study
        assert (f"--study {study}" in spec["usermeta"]["command"]) == (study is not None)
    with pytest.raises(SwflowError, match=r"^--study: not an option of heatmap; expected one of difference, forest$"):
        draw("heatmap", tmp_path / "d.duckdb", log="A", study="a")


def test_a_quote_in_a_title_is_a_part_of_the_name(database):
    spec = draw("heatmap", database, log="A", titles={"easy": 'Feitelson\'s "EASY"'}, interactive=True)
    (name,) = {text for text in expressions_of(spec) if "datum.c]" in text}
    assert json.loads(name.removesuffix("[datum.c]"))[0] == 'A, Feitelson\'s "EASY"'


def expressions_of(part):
    """Yield the expressions of all ``calculate`` transforms."""
    if isinstance(part, list):
        for item in part:
            yield from expressions_of(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "calculate":
                yield value
            else:
                yield from expressions_of(value)


def test_an_unknown_log_is_named(database):
    with pytest.raises(
        SwflowError, match=r"^figure: no run of log 'nope' in the database; logs in the database: A, B$"
    ):
        draw("heatmap", database, log="nope")
    with pytest.raises(SwflowError, match=r"^figure: no runs; expected --run or --log; logs in the database: A, B$"):
        draw("heatmap", database)
