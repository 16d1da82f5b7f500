"""Figures from a database to files and into the report."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml

from swflow.database import load
from swflow.errors import SwflowError
from swflow.figures import KINDS, RESERVATION_TABLE, draw, write
from swflow.jobs import read_workload, write_workload
from swflow.query import query
from swflow.runs import simulate_all
from swflow.studies import planned_figures
from swflow.workloads.intensify import intensify
from test_runs import SCHEDULERS, write_workloads


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Load a synthetic workload under two schedulers, and as it was under a third name."""
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
    _, rows = query(database, "SELECT DISTINCT workload, first, second FROM comparisons ORDER BY ALL")
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


def marks(spec):
    """Return all marks in a specification."""
    found = []
    if isinstance(spec, dict):
        if isinstance(spec.get("mark"), dict):
            found.append(spec["mark"]["type"])
        spec = list(spec.values())
    if isinstance(spec, list):
        for part in spec:
            found += marks(part)
    return found


#: These need what the synthetic workloads here do not have.
OTHERS = (RESERVATION_TABLE, "moldable", "published", "load-curve")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OTHERS])
def test_a_figure_is_drawn_alike_twice_and_written_by_its_ending(kind, database, tmp_path):
    spec = draw(kind, database, log="A", interactive=True)
    assert spec == draw(kind, database, log="A", interactive=True)
    assert spec["usermeta"]["title"].startswith("A: ")
    for ending, begin in (("png", b"\x89PNG"), ("svg", b"<svg"), ("json", b"{")):
        write(spec, tmp_path / f"x.{ending}")
        assert (tmp_path / f"x.{ending}").read_bytes().startswith(begin)
    with pytest.raises(SwflowError, match="unknown ending"):
        write(spec, tmp_path / "x.jpg")


def test_a_heatmap_has_a_panel_per_run_and_measure_with_all_its_marks(database):
    spec = draw("heatmap", database, runs=["A/fcfs", "A/easy"])
    assert marks(spec).count("rect") == 2 * 3
    assert {"rect", "line", "point"} <= set(marks(spec))
    titles = re.findall(r'"text": "(A, \w+)"', json.dumps(spec["vconcat"][0]))
    assert titles == ["A, fcfs", "A, easy"]
    cells = spec["datasets"][spec["vconcat"][0]["data"]["name"]]
    assert sum(sum(row["n"]) for row in cells) == 600


def test_a_load_curve_joins_the_workloads_that_one_way_makes_of_a_workload(tmp_path):
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
    (rows,) = spec["datasets"].values()
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
    with pytest.raises(SwflowError, match="load-curve: no two of the runs"):
        draw("load-curve", tmp_path / "d.duckdb", runs=["A/easy", "A/fcfs"])


def test_bubbles_are_at_means_and_below_at_medians(database):
    spec = draw("bubbles", database, runs=["A/easy"])
    _, jobs = query(database, "SELECT load, slowdown FROM outcomes WHERE run = 'A/easy'")
    datasets = [rows for _, rows in sorted(spec["datasets"].items()) if "jobs" in rows[0]][1:3]
    expected = [[], []]
    for decile in range(10):
        part = [row for row in jobs if min(9, int(row[0] * 10)) == decile]
        if part:
            for found, measure in zip(expected, (np.mean, np.median), strict=True):
                found.append(measure([max(1.0, slowdown) for _, slowdown in part]))
    for drawn, values in zip(datasets, expected, strict=True):
        assert [row["value_low"] for row in drawn] == pytest.approx(values, rel=1e-4)


def test_subsets_have_panels_of_their_own(database):
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
        ({"runs": ["A/esy"]}, "no run 'A/esy' in the database; there are"),
        ({"log": "C"}, "there are logs A, B"),
        ({"log": "A", "split": ["x=nothing > 3"]}, "split: x: "),
        ({"log": "A", "split": ["nothing"]}, "split: nothing: "),
        ({"log": "A", "scale": "cubic"}, "use log or linear"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(database, options, words):
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
    planned = planned_figures(config, ["A", "B"])
    assert set(planned) == {("one", "A", "heatmap"), ("one", "A", "difference")}
    assert planned["one", "A", "heatmap"] == {"title": "A", "runs": ["A/log", "A+ran/easy"], "split": ["queue_id"]}
    config["studies"]["one"]["runs"] = config["studies"]["one"]["runs"][:1]
    with pytest.raises(SwflowError, match="studies: one: figures: difference: A has no two runs"):
        planned_figures(config, ["A", "B"])


def test_the_schema_knows_the_kinds_of_figures():
    schema = yaml.safe_load((Path(__file__).parents[1] / "workflow/schemas/config.schema.yaml").read_text())
    study = schema["properties"]["studies"]["additionalProperties"]["properties"]
    assert tuple(study["figures"]["items"]["enum"]) == KINDS
    for split, good in (({"wide": "processors > 3"}, True), ("queue_id", True), ({"a=b": "x"}, False), ("a b", False)):
        assert jsonschema.Draft202012Validator(study["split"]).is_valid(split) == good


def test_a_linear_axis_begins_at_zero(database):
    spec = json.dumps(draw("heatmap", database, log="A", scale="linear"))
    assert '"type": "log", "domain": [1,' not in re.sub(r'"color".*?"range"', "", spec)
