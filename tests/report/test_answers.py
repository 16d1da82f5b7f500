"""Test headlines: they follow the verdicts, compare schedulers that differ in one option, and answer the title."""

import csv
import json
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.analysis.verdicts import BETTER, EQUAL, NOT_DISTINGUISHABLE, TOO_FEW_WEEKS, WORSE
from swflow.database.load import load
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.catalogue import load_catalogue
from swflow.report import write_report
from swflow.report.answers import COLUMNS, NOT_TESTED, Verdict, answer, listed
from swflow.report.blocks import compared
from swflow.report.plan import Plan, Study
from swflow.report.source import Source
from swflow.report.summaries import Ranked, WhatIf, ranking, what_if
from swflow.studies.asked import asked_pairs
from swflow.studies.plan import with_titles
from swflow.studies.runs import simulate_all
from swflow.values import WEEK

ROOT = Path(__file__).parents[2]

OPTIONS = {
    "log": {"order": "log"},
    "fcfs": {"order": "fcfs", "backfill": "none"},
    "easy": {"order": "fcfs", "backfill": "easy"},
    "wfp3": {"order": "wfp3", "backfill": "easy"},
    "conservative": {"order": "fcfs", "backfill": "conservative"},
    "submit": {"order": "fcfs", "backfill": "easy", "shapes": "submit"},
}


def study_of(recipes, schedulers, **more) -> Study:
    runs = [
        {"run": f"{recipe}/{scheduler}", "workload": recipe, "scheduler": scheduler}
        for recipe in recipes
        for scheduler in schedulers
    ]
    return Study("mine", "?", runs, **more)


def said(word, corrected=None, low=-7200.0, high=3600.0):
    return lambda variant, base: Verdict(-1800.0, low, high, word, corrected or word, "weeks", 50, 49 / 1.5)


def test_least_shared_shortens_nothing_where_the_interval_contains_zero():
    """The headline was "least-shared shortens the mean wait (−56 %)", beside [−74,575, +19,859] s."""
    study = study_of(["A"], ["scattered", "least-shared"])
    options = {name: {"allocation": name} for name in study.schedulers}
    waits = {"A": {"scattered": [7200.0], "least-shared": [3168.0]}}
    text = answer(study, waits, options, said(NOT_DISTINGUISHABLE)).text
    assert "shortens" not in text and "are not distinguishable on A" in text
    assert "(−56 %, 95 % interval −100 % to +50 %)" in text


@pytest.mark.parametrize("word", [NOT_DISTINGUISHABLE, TOO_FEW_WEEKS, EQUAL, NOT_TESTED])
@pytest.mark.parametrize("recipes", [["A"], ["A", "B"]])
def test_only_a_verdict_says_that_a_wait_is_shorter_or_longer(word, recipes):
    study = study_of(recipes, ["fcfs", "easy"])
    waits = {recipe: {"fcfs": [7200.0], "easy": [3600.0]} for recipe in recipes}
    lookup = (lambda variant, base: None) if word == NOT_TESTED else said(word)
    found = answer(study, waits, OPTIONS, lookup)
    text, claims = found.text, found.claims
    assert found.is_undecided == (word in (NOT_DISTINGUISHABLE, TOO_FEW_WEEKS)) and found.strength == 0
    assert not any(part in text for part in ("shorten", "shorter", "lengthen", "longer"))
    assert [claim.word for claim in claims] == [word] * len(recipes)
    sure = answer(study, waits, OPTIONS, said(BETTER)).text
    assert sure.startswith("easy shortens the mean wait on ") and " compared with fcfs" in sure
    worse = answer(study, waits, OPTIONS, said(WORSE)).text
    assert worse.startswith("easy lengthens the mean wait on ") and " compared with fcfs" in worse


def test_a_verdict_revoked_by_the_correction_is_not_a_headline():
    study = study_of(["A"], ["fcfs", "easy"])
    waits = {"A": {"fcfs": [7200.0], "easy": [3600.0]}}
    text = answer(study, waits, OPTIONS, said(BETTER, NOT_DISTINGUISHABLE, -3600.0, -36.0)).text
    assert "not distinguishable" in text and "before the correction for the number of comparisons" in text


def test_a_wait_of_seconds_does_not_grow_by_four_million_percent():
    waits = {log: {"fcfs": [1.0], "easy": [factor]} for log, factor in (("A", 1.5), ("B", 42508.0))}
    text = answer(study_of(["A", "B"], ["fcfs", "easy"]), waits, OPTIONS, said(WORSE)).text
    assert "on both workloads by a factor of 1.5 to 42,508" in text


def test_ten_models_are_counted_not_listed():
    """The answer was a run-on list of ten means."""
    recipes = ["A", *(f"A+model-{number}" for number in range(10))]
    study = study_of(recipes, ["easy"], contrast="workload")
    waits = {recipe: {"easy": [3600.0 + 60 * place]} for place, recipe in enumerate(recipes)}
    text = answer(study, waits, OPTIONS, said(NOT_DISTINGUISHABLE)).text
    assert text == (
        "Under easy, the mean waits on workloads with steps and their source are not distinguishable in all 10 cases "
        "(+1.7 % to +17 %)."
    )


def test_no_workload_is_the_source_of_another_that_was_not_made_from_it():
    recipes = [f"A+model-{number}" for number in range(5)]
    waits = {recipe: {"easy": [3600.0 + 60 * place]} for place, recipe in enumerate(recipes)}
    text = answer(study_of(recipes, ["easy"], contrast="workload"), waits, OPTIONS, said(NOT_DISTINGUISHABLE)).text
    assert text.startswith("Under easy, the mean waits on the other workloads of a log and the one with fewest steps")


def test_several_machines_share_a_sentence_with_the_sizes_of_their_changes():
    """The headline counted verdicts only: "easy against fcfs: not distinguishable on all 3 workloads"."""
    waits = {log: {"fcfs": [7200.0], "easy": [wait]} for log, wait in (("A", 3600.0), ("B", 1800.0), ("C", 7100.0))}

    def lookup(variant, base):
        low, high, word = (-6000.0, 900.0, NOT_DISTINGUISHABLE) if variant[0] == "C" else (-6480.0, -720.0, BETTER)
        return Verdict(-1800.0, low, high, word, word, "weeks", 20, 19 / 1.5)

    found = answer(study_of(["A", "B", "C"], ["fcfs", "easy"]), waits, OPTIONS, lookup, titles={"easy": "EASY"})
    assert found.text == (
        "EASY shortens the mean wait on 2 of 3 workloads by 50 to 75 % (95 % intervals within 10 to 90 %) "
        "compared with fcfs and is not distinguishable on 1."
    )


def test_an_undecided_study_says_what_would_decide_it():
    waits = {"A": {"fcfs": [7200.0], "easy": [6000.0]}}

    def lookup(variant, base):
        return Verdict(-1200.0, -2400.0, 300.0, NOT_DISTINGUISHABLE, NOT_DISTINGUISHABLE, "weeks", 9, 8 / 1.5)

    found = answer(study_of(["A"], ["fcfs", "easy"]), waits, OPTIONS, lookup)
    assert found.deciding == "Showing a change of −17 % takes about 23 weeks; there are 9."


def test_the_record_comes_first():
    study = study_of(["A"], ["log", "fcfs", "easy"])
    waits = {"A": {"log": [28800.0], "fcfs": [12060.0], "easy": [4080.0]}}
    text = answer(study, waits, OPTIONS, said(BETTER)).text
    assert text.startswith(
        "The recorded mean wait on A is 8 h; simulated under fcfs it is 3 h 21 min (42 % of the record)"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a database of logs of eight weeks and of two, and the config of its studies."""
    folder = tmp_path_factory.mktemp("answers")
    for name, weeks in (("long", 8), ("short", 2)):
        generator = np.random.default_rng(1)
        run = generator.integers(1, 30000, 300).astype(float)
        submit = np.sort(generator.integers(0, int(weeks * WEEK), 300)) * 1.0
        table = {"job_id": range(1, 301), "submit_time": submit, "run_time": run, "estimate": run * 2,
                 "processors": generator.integers(1, 9, 300)}  # fmt: skip
        write_workload(Workload(pl.DataFrame(table), Machine.of(8), name), folder / f"{name}.parquet")
        chosen = {"fcfs": {}, "easy": {"backfill": "easy"}, "same": {"backfill": "easy", "reservations": 1}}
        simulate_all(folder / f"{name}.parquet", chosen, folder / "runs" / name)
    load([folder / "runs"], folder / "d.duckdb")
    studies = {"both": {"title": "?", "logs": ["long", "short"], "runs": [
        {"workloads": ["{log}"], "schedulers": ["fcfs", "easy", "same"]}]}}  # fmt: skip
    (folder / "c.yaml").write_text(yaml.safe_dump({"studies": studies}))
    return folder


def test_headlines_are_listed_with_the_verdict_behind_each(folder):
    write_report(folder / "d.duckdb", folder / "report", studies=folder / "c.yaml", draw=False)
    rows = list(csv.DictReader((folder / "report/headlines.csv").open()))
    assert {(row["variant"], row["base"]) for row in rows} == {
        (f"{log}/{name}", f"{log}/fcfs") for log in ("long", "short") for name in ("easy", "same")
    }
    with duckdb.connect(folder / "d.duckdb", read_only=True) as connection:
        for row in rows:
            sql = """SELECT verdict_holm, coalesce(low::VARCHAR, '') FROM differences
                WHERE variant = $variant AND base = $base AND measure = 'wait_time'"""
            found = connection.execute(sql, {name: row[name] for name in ("variant", "base")}).fetchall()
            assert found == [(row["verdict_holm"], row["low"])]
    assert "cannot tell: too few weeks" in {row["verdict"] for row in rows}


@pytest.mark.slow
def test_the_only_draw_of_a_recipe_has_the_verdict_of_its_comparison(tmp_path):
    generator = np.random.default_rng(1)
    submit = np.sort(generator.integers(0, int(8 * WEEK), 300)) * 1.0
    table = pl.DataFrame({"job_id": range(1, 301), "submit_time": submit, "processors": generator.integers(1, 9, 300)})
    for name, longest in (("A", 9000), ("A+long@1", 20000), ("A+long@1+more@1", 30000)):
        run = pl.Series("run_time", np.random.default_rng(2).integers(1, longest, 300).astype(float))
        write_workload(
            Workload(table.with_columns(run, estimate=run), Machine.of(8), name), tmp_path / f"{name}.parquet"
        )
        simulate_all(tmp_path / f"{name}.parquet", {"fcfs": {}}, tmp_path / "runs" / name)
    workloads = ["{log}", "{log}+long@{seed}", "{log}+long@{seed}+more@{seed}"]
    study = {"title": "?", "logs": ["A"], "contrast": "workload"}
    study["runs"] = [{"workloads": workloads, "schedulers": ["fcfs"]}]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"studies": {"draws": study}}))
    asked = {"draws": asked_pairs({"studies": {"draws": study}}, "draws")}
    load([tmp_path / "runs"], tmp_path / "d.duckdb", asked=asked)
    write_report(tmp_path / "d.duckdb", tmp_path / "report", studies=tmp_path / "c.yaml", draw=False)
    rows = list(csv.DictReader((tmp_path / "report/headlines.csv").open()))
    assert [row["variant"] for row in rows] == ["A+long/fcfs", "A+long+more/fcfs"]
    with duckdb.connect(tmp_path / "d.duckdb", read_only=True) as connection:
        compared = connection.execute(
            """SELECT verdict_holm, low FROM differences
            WHERE measure = 'wait_time' AND base = 'A/fcfs' ORDER BY variant DESC"""
        ).fetchall()
    assert [(row["verdict_holm"], float(row["low"])) for row in rows] == compared
    assert "not tested" not in rows[0]["headline"]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["worse", TOO_FEW_WEEKS], "1 h; the log has too few weeks to compare it with 1 of the other 2."),
        ([EQUAL, TOO_FEW_WEEKS], "not distinguishable from 1 of the other 2; the log has too few weeks to compare it "
         "with 1 of the other 2."),
        ([EQUAL, "worse"], "1 h, but is not distinguishable from 1 of the other 2."),
        (["worse", "worse"], "1 h, and is distinguishable from the other 2."),
    ],
)  # fmt: skip
def test_a_ranking_claims_no_difference_that_was_not_tested(verdicts, expected):
    others = [Ranked(f"other{place}", 7200, verdict) for place, verdict in enumerate(verdicts)]
    assert ranking({"A": [Ranked("sjf", 3600, "best"), *others]})[0].endswith(expected)


#: Pairs of the default config that have an interval.
PAIRS = [
    ("synthetic-64", "easy", "fcfs"),
    ("synthetic-64", "conservative", "fcfs"),
    ("synthetic-512", "easy", "fcfs"),
]


def test_the_list_has_both_verdicts_of_a_what_if():
    """Column verdict_holm repeated the uncorrected verdict, although table whatifs was not corrected."""
    rows = [
        WhatIf("easy", "base", 7200, 7200),
        WhatIf("big", BETTER, 7200, 3600, -5400, -1800, 9, 7.0, NOT_DISTINGUISHABLE),
    ]
    (row,) = listed(study_of(["A"], ["easy"]), what_if({"A": rows}))
    row = dict(zip(COLUMNS, row, strict=True))
    assert (row["verdict"], row["verdict_holm"]) == (BETTER, NOT_DISTINGUISHABLE)
    assert "not distinguishable" in row["headline"] and "before the correction" in row["headline"]


@pytest.mark.slow
def test_whatif_comparisons_and_the_report_give_the_same_interval_to_the_last_digit(tmp_path, monkeypatch):
    """For easy minus fcfs, whatif printed [-2828, -697] min, "not chance", and comparisons [-5369, 2167]."""
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    known = with_titles(config)["schedulers"]
    schedulers = [f"--scheduler={name}={json.dumps(known[name])}" for name in ("fcfs", "easy", "conservative")]
    catalogue = load_catalogue(yaml.safe_load((ROOT / "config/logs.yaml").read_text()))
    for log in dict.fromkeys(log for log, *_ in PAIRS):
        entry = catalogue[log]
        options = {**entry.parameters, "jobs": entry.jobs, "processors": entry.processors, "seed": config["seed"]}
        drawn = [f"--{name}={value}" for name, value in options.items()]
        assert call("generate", entry.generate, "-o", f"{log}.swf.gz", "--name", log, *drawn) == 0
        assert call("clean", f"{log}.swf.gz", "-o", f"{log}.parquet") == 0
        assert call("simulate", f"{log}.parquet", "-o", f"runs/{log}", *schedulers) == 0
        assert call("whatif", f"{log}.parquet", *schedulers, "-o", f"{log}.csv") == 0
    assert call("load", "runs", "--database", "d.duckdb") == 0
    studies = {"backfilling": config["studies"]["backfilling"] | {"logs": ["synthetic-64", "synthetic-512"]}}
    Path("c.yaml").write_text(yaml.safe_dump({"studies": studies}))
    write_report("d.duckdb", "report", studies="c.yaml", draw=False)
    headlines = list(csv.DictReader(Path("report/headlines.csv").read_text().splitlines()))
    for log, variant, base in PAIRS:
        sql = f"""SELECT mean_difference, mean_low, mean_high, mean_verdict FROM comparisons
            WHERE variant = '{log}/{variant}' AND base = '{log}/{base}' AND measure = 'wait_time'"""
        ((*expected, verdict),) = query("d.duckdb", sql)[1]
        table = list(csv.DictReader(Path(f"{log}.csv").read_text().splitlines()))
        (asked,) = (row for row in table if (row["variant"], row["measure"]) == (variant, "mean_wait_time"))
        (listed,) = (row for row in headlines if (row["variant"], row["base"]) == (f"{log}/{variant}", f"{log}/{base}"))
        for row in (asked, listed):
            assert [float(row[name]) for name in ("difference", "low", "high")] == expected
            assert row["verdict"] == verdict


def test_too_few_weeks_do_not_look_significant(folder):
    """The matrix coloured scores whose verdict is too few weeks."""
    with duckdb.connect(folder / "d.duckdb", read_only=True) as connection:
        source = Source(connection, Plan([]), draw=False)
        for log, expected in (("long", ["chance", "equal"]), ("short", ["chance", "equal"])):
            runs = [{"run": f"{log}/{name}", "workload": log, "scheduler": name} for name in ("fcfs", "easy", "same")]
            (matrix,) = compared(source, runs, "all")
            cells = matrix["measures"]["wait_time"]
            assert cells["1,2"][3:] == expected
            if log == "short":
                assert cells["0,1"][3:] == cells["1,0"][3:] == ["untested", "cannot tell: too few weeks"]
