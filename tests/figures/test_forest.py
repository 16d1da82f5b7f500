"""The forest plot: a row for each asked difference, hollow if saturated, with what would decide it."""

import json
import re

import duckdb
import pytest

from helpers.cli import call
from helpers.figures import errors_of
from helpers.runs import SCHEDULERS, write_workloads
from swflow.analysis.verdicts import BETTER, DEPENDENT_WEEKS, NOT_DISTINGUISHABLE, TOO_FEW_WEEKS, WORSE
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures.forest import MOST_PAIRS, draw_forest
from swflow.studies.runs import simulate_all

COLUMNS = (
    "study, variant, base, measure, base_mean, mean_difference, mean_low, mean_high, mean_verdict_holm, basis, blocks, "
    "mean_freedom"
)
#: Pairs of two studies, with the words that their rows need.
ROWS = [
    ("order", "A/sjf", "A/easy", "wait_time", 100.0, -50.0, -60.0, -40.0, BETTER, "weeks", 20, 10.0),
    ("order", "A/sjf", "A/easy", "awrt", 100.0, 5.0, -20.0, 30.0, NOT_DISTINGUISHABLE, "weeks", 20, 10.0),
    ("order", "A/sjf", "A/easy", "bounded_slowdown", 0.0, 1.0, None, None, TOO_FEW_WEEKS, "weeks", 3, None),
    ("order", "B/sjf", "B/easy", "wait_time", 100.0, 900.0, 800.0, 1000.0, WORSE, "weeks", 20, 10.0),
    ("steps", "A+x/easy", "A/easy", "wait_time", 100.0, 1.0, -5.0, 9.0, DEPENDENT_WEEKS, "replicates", 5, 4.0),
    ("steps", "A+x@1/easy", "A/easy", "wait_time", 100.0, 2.0, -5.0, 9.0, NOT_DISTINGUISHABLE, "weeks", 9, 5.0),
]  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Load two runs, and put comparisons into their database; B/easy is saturated."""
    folder = tmp_path_factory.mktemp("forest")
    for path in write_workloads(folder, 2, 60):
        simulate_all(path, SCHEDULERS, folder / "runs" / path.stem)
    load([folder / "runs/A", folder / "runs/B"], folder / "d.duckdb")
    insert(folder / "d.duckdb", ROWS)
    with duckdb.connect(folder / "d.duckdb") as connection:
        connection.execute("UPDATE metrics SET saturated = CASE run WHEN 'B/easy' THEN 1 ELSE 0 END")
    return folder / "d.duckdb"


def insert(database, rows):
    with duckdb.connect(database) as connection:
        connection.execute("DELETE FROM comparisons")
        connection.executemany(f"INSERT INTO comparisons ({COLUMNS}) VALUES ({', '.join('?' * 12)})", rows)


def lines_of(spec, key):
    """Return a field of all rows of a figure's data."""
    return [row[key] for rows in spec["datasets"].values() for row in rows if key in row]


def test_each_measure_of_a_pair_is_a_row_under_its_study(database):
    spec = draw_forest(database, interactive=True)
    assert not errors_of(spec)
    titles = [" ".join(panel["title"]["text"]) for panel in spec["vconcat"]]
    bases = [" ".join(panel["title"]["subtitle"]) for panel in spec["vconcat"]]
    assert titles == ["order", "steps"] and bases == ["base: easy", "base: A"]
    texts = lines_of(spec, "s")
    assert [text for text in texts if not any(word in text for word in ("decide", "each other", "here"))] == [
        "sjf on A", "sjf on B", "A+x under easy"
    ]  # fmt: skip
    changes = set(lines_of(spec, "f"))
    assert changes == {"−50 % (−60 to −40 %)", "+5 % (−20 to +30 %)", "× 10 (× 9 to × 11)", "+1 % (−5 to +9 %)"}


def test_a_pair_of_a_saturated_run_is_hollow(database):
    rows = [row for rows in draw_forest(database)["datasets"].values() for row in rows if "h" in row]
    assert {row["p"] for row in rows if row["h"]} == {"B/sjf, base B/easy"} and any(not row["h"] for row in rows)


def test_an_open_row_says_what_would_decide_it(database):
    texts = " ".join(lines_of(draw_forest(database), "s"))
    assert "to decide AWRT: about " in texts and "weeks (20 here)" in texts
    assert "to decide bd. slowdown: at least 8 weeks (3 here)" in texts
    assert "to decide mean wait: a longer log, or replicates" in texts


def test_many_pairs_are_counted_and_the_strongest_are_drawn(database, tmp_path):
    many = [
        ("s", f"A/p{place}", "A/easy", measure, 100.0, -place, -place - 0.5, -place + 0.5, BETTER, "weeks", 20, 10.0)
        for place in range(1, MOST_PAIRS + 11)
        for measure in ("wait_time", "awrt")
    ]
    (tmp_path / "d.duckdb").write_bytes(database.read_bytes())
    insert(tmp_path / "d.duckdb", many)
    spec = draw_forest(tmp_path / "d.duckdb")
    names = {row["p"] for rows in spec["datasets"].values() for row in rows if "p" in row}
    assert len(names) == MOST_PAIRS and "A/p70, base A/easy" in names and "A/p2, base A/easy" not in names
    assert "10 further pairs" in spec["usermeta"]["caption"]
    assert set(lines_of(spec, "l")) == {"mean wait"}
    assert "AWRT" in lines_of(draw_forest(tmp_path / "d.duckdb", measures=["awrt"]), "l")


@pytest.mark.slow
def test_the_command_draws_a_study_for_a_column_of_a_paper(database, tmp_path):
    output = [f"-o{tmp_path / name}" for name in ("x.pdf", "x.json")]
    assert call("figure", "forest", "--study", "order", "--width", "84mm", "--database", database, *output) == 0
    spec = json.loads((tmp_path / "x.json").read_text())
    assert "order" in spec["usermeta"]["command"] and (tmp_path / "x.pdf").read_bytes()[:4] == b"%PDF"
    width = re.search(rb"/MediaBox ?\[0 0 ([0-9.]+)", (tmp_path / "x.pdf").read_bytes())
    assert width is not None and float(width[1]) / 72 * 25.4 == pytest.approx(84, abs=0.5)
    panels = re.findall(r'"width": ?([0-9]+)', (tmp_path / "x.json").read_text())
    assert min(map(int, panels)) > 84 / 25.4 * 96 / 2  # the legend takes no room from the panels


def test_variants_of_a_what_if_are_rows_against_their_base(database, tmp_path):
    (tmp_path / "d.duckdb").write_bytes(database.read_bytes())
    rows = [
        ("nodes", "A", variant, "mean_wait_time", 100.0, difference, low, high, 20, 10.0, verdict, verdict)
        for variant, difference, low, high, verdict in (
            ("site", 0.0, None, None, "base"), ("site, nodes +10%", -30.0, -40.0, -20.0, BETTER),
        )
    ]  # fmt: skip
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.executemany(
            "INSERT INTO whatifs (study, workload, variant, measure, base, difference, low, high, weeks, freedom, "
            f"verdict, verdict_holm) VALUES ({', '.join('?' * 12)})", rows)  # fmt: skip
    spec = draw_forest(tmp_path / "d.duckdb", ["nodes"])
    assert lines_of(spec, "s") == ["site, nodes +10% on A"] and lines_of(spec, "f") == ["−30 % (−40 to −20 %)"]


def test_what_cannot_be_drawn_is_one_line(database):
    with pytest.raises(SwflowError, match=r"no study 'ordr' with comparisons .* expected one of order, steps; did you"):
        draw_forest(database, ["ordr"])
    with pytest.raises(SwflowError, match="--measure: 'wait'; expected one of wait_time"):
        draw_forest(database, measures=["wait"])
