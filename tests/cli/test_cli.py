"""Test commands from end to end, and the one-line error for each kind of bad input."""

import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from helpers.cli import HEADER, LINES, call


def test_a_log_from_file_to_sql(log, capfd):
    assert call("clean", log, "-o", "toy.parquet") == 0
    assert "toy: 3 of 3 jobs kept; removed: none; machine: 8 processors in 4 nodes" in capfd.readouterr().err
    assert call("select", "toy.parquet", "-o", "toy+ran.parquet", "--without-status", 5) == 0
    assert "1 status-5" in capfd.readouterr().err
    assert call("simulate", "toy+ran.parquet", "--backfill", "easy", "-o", "easy.parquet") == 0
    assert "utilization" in capfd.readouterr().out
    assert call("load", "easy.parquet", "--database", "d.duckdb") == 0
    capfd.readouterr()
    assert call("sql", "SELECT job_id, start_time FROM outcomes ORDER BY 1", "--database", "d.duckdb", "--csv") == 0
    assert capfd.readouterr().out.split() == ["job_id,start_time", "1,0.0", "2,10.0"]
    assert call("sql", "SELECT job_id, start_time FROM outcomes ORDER BY 1", "--database", "d.duckdb", "--json") == 0
    assert json.loads(capfd.readouterr().out) == [
        {"job_id": 1, "start_time": 0.0}, {"job_id": 2, "start_time": 10.0},
    ]  # fmt: skip
    assert call("sql", "SELECT 1 AS a, 'NaN'::DOUBLE AS b", "o.json", "--json", "--database", "d.duckdb") == 0
    assert json.loads(Path("o.json").read_text()) == [{"a": 1, "b": None}]
    capfd.readouterr()
    assert call("sql", "SELECT run, awwt FROM metrics", "--database", "d.duckdb") == 0
    assert capfd.readouterr().out.split()[-2:] == ["toy+ran/easy", "6"]
    assert call("sql", "FROM jobs", "--database", "d.duckdb", "--parquet", "jobs.parquet") == 0
    assert pl.read_parquet("jobs.parquet")["job_id"].to_list() == [1, 2]
    assert call("report", "--database", "d.duckdb", "-o", "out") == 0


def test_a_log_can_be_simulated_directly_and_a_run_exported_as_a_log(log, capfd):
    assert call("simulate", log, "--backfill", "easy", "-o", "run.swf") == 0
    assert "awrt" in capfd.readouterr().out
    assert call("simulate", "run.swf", "--order", "log") == 0
    out = capfd.readouterr().out
    assert call("simulate", log, "--backfill", "easy") == 0
    again = capfd.readouterr().out
    assert [line for line in out.splitlines() if "wait" in line] == [
        line for line in again.splitlines() if "wait" in line
    ]


def test_scaling_from_step_to_figure(log, tmp_path, capfd):
    assert call("clean", log, "-o", "toy.parquet") == 0
    for folder in "ab":
        options = ("--processors", 80, "--d", 60, "--seed", 5)
        assert call("scale", "toy.parquet", "-o", f"{folder}/toy+scaled@2.parquet", *options) == 0
    assert (tmp_path / "a/toy+scaled@2.parquet").read_bytes() == (tmp_path / "b/toy+scaled@2.parquet").read_bytes()
    assert "toy: factor 10; " in capfd.readouterr().err
    assert call("sweep", "toy.parquet", "-o", "toy+d.parquet", "--processors", 80, "--d", "0:100:50", "--seeds", 2) == 0
    assert call("adjust", "toy.parquet", "-o", "toy+fit.parquet", "--processors", 80, "--tolerance", 5) == 0
    out, err = capfd.readouterr()
    assert "deviation" in out and "toy, fcfs-none: factor 10: AWRT" in err
    options = ("--first-crossing", "--step", 1, "--seeds", 3, "-o", "toy+first.parquet")
    assert call("adjust", "toy.parquet", "--processors", 80, *options) == 0
    out = capfd.readouterr().out
    assert all(word in out for word in ("searches", "factor_5 ", "factor_50", "factor_95", "without_end", "fcfs-none"))
    assert call("load", "toy+d.parquet", "toy+fit.parquet", "toy+first.parquet", "--database", "d.duckdb") == 0
    assert call("figure", "sweep", "--sweep", "d", "-o", "d.svg", "--database", "d.duckdb") == 0
    assert (tmp_path / "d.svg").read_text().startswith("<svg")


def test_generated_logs_depend_on_seed_and_name_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for output, seed in (("a/x.swf.gz", 1), ("b/x.swf.gz", 1), ("c/x.swf.gz", 2)):
        assert call("generate", "lublin", "-o", output, "--jobs", 200, "--seed", seed) == 0
    a, b, c = ((tmp_path / folder / "x.swf.gz").read_bytes() for folder in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clean", "nothing.swf", "-o", "x.parquet"], "nothing.swf: no such file"),
        (["clean", "short.swf", "-o", "x.parquet"], "short.swf:4: 12 fields instead of 18"),
        (["clean", "cut.swf.gz", "-o", "x.parquet"], "cut.swf.gz: "),
        (["clean", "toy.swf.gz", "-o", "x.csv"], "x.csv: unknown ending; use .parquet, .swf or .swf.gz"),
        (["clean", "toy.swf.gz", "-o", "x.parquet", "--drop", "wide"], "unknown rule 'wide'"),
        (["clean", "toy.swf.gz", "-o", "x.parquet", "--from", "May"], "--from: 'May'; expected a date"),
        (["simulate", "toy.swf.gz", "--processors", "4"], "job 2 needs 8 of 4 processors"),
        (["simulate", "toy.swf.gz", "--backfill", "eazy"], "backfill: unknown value 'eazy'; did you mean 'easy'?"),
        (["simulate", "toy.swf.gz", "--backfil", "easy"], "--backfil"),
        (["simulate", "toy.swf.gz", "--scheduler", "eazy", "-o", "runs"], "--scheduler 'eazy': "),
        (["simulate", "toy.swf.gz", "--scheduler", "a={", "-o", "runs"], "--scheduler 'a={': "),
        (["simulate", "toy.swf.gz", "--scheduler", "a: {ordr: sjf}"], "schedulers: a: unknown key 'ordr'"),
        (["simulate", "toy.swf.gz", "--cluster", "x"], "--cluster 'x': write a number of processors"),
        (["simulate", "toy.swf.gz", "--limits", "{"], "--limits '{': "),
        (
            ["simulate", "toy.swf.gz", "--scheduler", "easy", "--known-schedule", "x.swf"],
            "--known-schedule: without eff",
        ),
        (["simulate", "toy.swf.gz", "--scheduler", "easy", "--order", "sjf"], "--order: without effect beside --sched"),
        (["simulate", "toy.swf.gz", "--scheduler", "easy", "--resource", "gpus=1"], "--resource: without effect"),
        (
            ["simulate", "toy.swf.gz", "--scheduler", "easy", "-o", "runs", "--processors", "9"],
            "swflow clean LOG --machine-processors 9",
        ),
        (["simulate", "toy.swf.gz", "--plan", "p.json"], "--plan; expected a folder for the runs"),
        (["simulate", "toy.swf.gz", "--plan", "p.json", "--scheduler", "easy"], "--scheduler: the schedulers are"),
        (["simulate", "toy.swf.gz", "--store", "kept"], "--store; expected a plan of runs"),
        (["bound", "toy.swf.gz", "--processors", "9", "-o", "b.parquet"], "--processors 9: the bounds of a database"),
        (["why", "toy.swf.gz", "--scheduler", "easy", "--limit", "user:jobs=1"], "--limit: of the recorded schedule"),
        (["forecast", "toy.swf.gz", "--evaluate", "--partition", "1"], "--partition: no effect with --evaluate"),
        (["forecast", "toy.swf.gz", "--user", "1"], "--user: describes a job; expected it with --processors"),
        (["simulate", "toy.swf.gz", "--scheduler", 'a={"ordr": 1}', "-o", "runs"], "schedulers: a: unknown key 'ordr'"),
        (["load", "toy.swf.gz", "--database", "d.duckdb"], "toy.swf.gz: "),
        (["sql", "SELECT 1"], "results/swflow.duckdb: no such database"),
        (["fetch", "TOY", "-o", "x.swf.gz", "--catalogue", "logs.yaml", "--mirror", "."], "sha256"),
        (["fetch", "NOWHERE", "-o", "x.swf.gz", "--catalogue", "logs.yaml"], "NOWHERE"),
        (["generate", "lublin", "-o", "x.swf", "--estimates", "good"], "estimates"),
        (
            ["scale", "toy.swf.gz", "-o", "x.parquet", "--processors", "9", "--d", "101"],
            "d: 101.0; expected a number from 0 to 100",
        ),
        (["scale", "toy.swf.gz", "-o", "x.csv", "--processors", "9"], "x.csv: unknown ending"),
        (["sweep", "toy.swf.gz", "-o", "x.parquet", "--processors", "9", "--d", "0:x:1"], "--d: '0:x:1'"),
        (["sweep", "toy.swf.gz", "-o", "x.swf", "--processors", "9"], "x.swf: unknown ending"),
        (["adjust", "toy.swf.gz", "--processors", "9", "--tolerance", "0"], "tolerance 0.0, seeds 5; expected"),
        (["figure", "sweep", "-o", "x.png", "--database", "d.duckdb"], "d.duckdb: no such database"),
    ],
)
def test_bad_input_gives_one_line_without_a_traceback(log, capfd, arguments, words):
    (log.parent / "short.swf").write_text(HEADER + " ".join(LINES[0].split()[:12]) + "\n")
    (log.parent / "cut.swf.gz").write_bytes(log.read_bytes()[:-20])
    (log.parent / "logs.yaml").write_text(f"TOY: {{url: 'http://127.0.0.1:9/toy.swf.gz', sha256: '{'0' * 64}'}}\n")
    assert call(*arguments) in {1, 2}
    error = capfd.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("swflow: ")
    assert words in error


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("simulate", "run.parquet", "--backfill", "easy"), "run.parquet"),
        (("load", "toy.parquet", "--database", "d.duckdb"), "toy.parquet"),
        (("why", "run.parquet", "--run", "run.parquet"), "run.parquet"),
        (("why", "toy.parquet", "--run", "toy.parquet"), "toy.parquet"),
        (("report", "run.parquet", "--database", "d.duckdb", "-o", "report"), "run.parquet"),
        (("model", "toy.parquet", "--fitted", "fit.json", "-o", "drawn.parquet"), "fit.json"),
    ],
)
def test_no_hint_suggests_to_replace_the_file_that_is_of_another_kind(log, capfd, words, file):
    assert call("clean", log, "-o", "toy.parquet") == 0
    assert call("simulate", "toy.parquet", "--backfill", "easy", "-o", "run.parquet") == 0
    Path("fit.json").write_text("{}")
    capfd.readouterr()
    assert call(*words) == 1
    said = capfd.readouterr().err
    assert "not a" in said and " with: swflow " in said
    assert not re.search(rf"(?:-o|--save-fit) {file}", said)


def test_lenient_cleaning_counts_malformed_lines(log, capfd):
    (log.parent / "short.swf").write_text(HEADER + LINES[0] + "\n1 2 3\n")
    assert call("simulate", "short.swf", "--backfill", "easy", "-o", "run.parquet") == 1
    assert "skip such lines and count them with swflow clean --lenient" in capfd.readouterr().err
    assert call("clean", "short.swf", "-o", "x.parquet", "--lenient") == 0
    said = capfd.readouterr().err
    assert "1 of 2 jobs kept; removed: 1 malformed" in said and "1 malformed line skipped; the first is line" in said


@pytest.mark.parametrize(
    "command",
    [
        "", "fetch", "clean", "select", "machine", "memory", "moldable", "model", "scale", "intensify", "adjust",
        "sweep", "generate lublin", "import sacct", "import pbs", "import gwf", "import csv", "check", "whatif", "why",
        "forecast", "fidelity", "calibrate", "export", "simulate", "load", "figure", "figures", "report", "sql",
    ],
)  # fmt: skip
def test_help_explains_and_gives_an_example(command, capfd):
    assert call(*command.split(), "--help") == 0
    text = capfd.readouterr().out
    if command:
        assert "Example" in text
        assert f"swflow {command}" in text


@pytest.mark.parametrize(
    ("words", "unwanted"), [(["--help"], []), (["clean", "--help"], ["swflow.cli.simulation", "swflow.cli.steps"])]
)
def test_a_command_imports_only_what_it_needs(words, unwanted):
    """Printing help must not import numba, duckdb or polars, and that of a command no other commands."""
    names = ["numba", "duckdb", "polars", "requests", *unwanted]
    program = (
        "import sys; from swflow.cli import main\n"
        f"try: main({words})\n"
        f"except SystemExit: print([name for name in {names} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_several_schedulers_have_the_metrics_in_the_order_of_one(log, capfd):
    def metrics_of(*arguments):
        assert call("simulate", log, *arguments) == 0
        return [line.split()[0] for line in capfd.readouterr().out.splitlines()[2:] if line.strip()]

    of_one = metrics_of("--backfill", "easy")
    assert of_one[:4] == ["jobs", "offered_load", "saturated", "makespan"]
    assert metrics_of("--scheduler", "easy", "--scheduler", "fcfs") == of_one
    assert metrics_of("--scheduler", "easy", "--scheduler", "fcfs", "-o", "runs/toy") == of_one


def test_the_help_of_sql_names_every_table_and_view(log, capfd):
    assert call("simulate", log, "-o", "run.parquet") == 0
    assert call("load", "run.parquet", "--database", "d.duckdb") == 0
    names = "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
    capfd.readouterr()
    assert call("sql", names, "--database", "d.duckdb", "--csv") == 0
    tables = set(capfd.readouterr().out.split()[1:])
    assert call("sql", "--help") == 0
    words = set(re.findall(r"\w+", capfd.readouterr().out))
    assert {"whatifs", "outcomes"} <= tables
    assert sorted(tables - words) == []
