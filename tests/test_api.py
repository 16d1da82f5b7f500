"""Tests of the public interface of the package: complete, flat, documented, and imported on first use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import swflow
from swflow.errors import SwflowError

ROOT = Path(__file__).parents[1]
NAMES = {
    "read_swf", "clean", "open_workload", "generate", "Machine", "Workload", "Scheduler", "simulate", "metrics", "load",
    "query", "draw", "whatif", "why", "read_log", "import_sacct", "Site",
}  # fmt: skip


def test_import_swflow_offers_more_than_four_names():
    assert set(swflow.__all__) == NAMES <= set(dir(swflow))
    assert all(callable(getattr(swflow, name)) for name in NAMES)
    with pytest.raises(AttributeError, match="nothing"):
        swflow.nothing  # noqa: B018


def test_every_public_name_is_documented_with_an_example():
    for name in NAMES:
        assert "Examples\n" in (getattr(swflow, name).__doc__ or ""), name


def test_import_swflow_loads_no_large_library():
    program = (
        "import sys, swflow\n"
        "print([name for name in ('numpy', 'polars', 'numba', 'duckdb', 'altair', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]"]


def test_tutorials_import_the_package_alone():
    for page in sorted((ROOT / "docs/tutorials").glob("*.md")):
        deep = re.findall(r"^(?:from|import) swflow\..*$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert deep == [], page


def test_from_a_log_to_a_figure(tmp_path, capfd):
    from swflow.cli import main

    log = tmp_path / "demo.swf"
    lines = [f"{job} {30 * job} {job % 7} 600 {1 + job % 8} -1 -1 {1 + job % 8} 900 -1 1 7 1 1 1 1 -1 -1"
             for job in range(1, 301)]  # fmt: skip
    log.write_text("; MaxProcs: 16\n" + "\n".join(lines) + "\n")
    assert swflow.read_swf(log).fields.height == 300
    workload = swflow.clean(log, processors=16)
    assert swflow.open_workload(log).jobs.equals(workload.jobs)
    assert workload.machine == swflow.Machine(16, 16)
    easy = swflow.simulate(workload, swflow.Scheduler(backfill="easy"))
    assert swflow.metrics(easy, workload.machine) == swflow.metrics(easy, 16)
    for name in ("easy", "fcfs"):
        backfill = "easy" if name == "easy" else "none"
        with pytest.raises(SystemExit):
            main(["simulate", str(log), "--backfill", backfill, "-o", str(tmp_path / f"{name}.parquet")])
    database = tmp_path / "demo.duckdb"
    counts = swflow.load([tmp_path / "easy.parquet", tmp_path / "fcfs.parquet"], database)
    assert counts["runs"] == 2
    found = swflow.query("SELECT jobs, mean_wait_time FROM metrics WHERE scheduler = $name", database, {"name": "easy"})
    assert found["jobs"].to_list() == [300]
    assert found["mean_wait_time"].item() == pytest.approx(easy["wait_time"].mean())
    twice = "SELECT a.jobs, b.jobs, a.run FROM metrics AS a JOIN metrics AS b USING (run)"
    with pytest.raises(SwflowError, match="several columns are named jobs; name the columns with AS"):
        swflow.query(twice, database)
    with pytest.raises(SystemExit, match="1"):
        main(["sql", twice, "--database", str(database), "--json"])
    spec = swflow.draw("timeline", database, log="demo", output=tmp_path / "demo.json")
    assert spec["$schema"] and (tmp_path / "demo.json").stat().st_size > 1000
    answer = swflow.whatif(workload, ["easy", "mine: {order: sjf, backfill: easy}"], processors=["+50%"])
    assert answer.table["variant"].n_unique() == 4
    assert answer.table.equals(
        swflow.whatif(
            workload, {"easy": {"backfill": "easy"}, "mine": {"order": "sjf", "backfill": "easy"}}, processors=["+50%"]
        ).table
    )


def test_generate_equals_the_command(tmp_path):
    from swflow.cli import main

    with pytest.raises(SystemExit):
        main(["generate", "lublin", "-o", str(tmp_path / "demo.parquet"), "--jobs", "100", "--seed", "3"])
    assert swflow.generate(jobs=100, seed=3, name="demo").jobs.equals(
        swflow.open_workload(tmp_path / "demo.parquet").jobs
    )
    with pytest.raises(SwflowError, match="generate: unknown model 'downey'; expected lublin"):
        swflow.generate("downey")


PROGRAM = """
import swflow

workload = swflow.generate("lublin", jobs=500, processors=64, load=0.7, seed=1)
schedule = swflow.simulate(workload, swflow.Scheduler(order="fcfs", backfill="easy"))
waits: dict[str, float | None] = swflow.metrics(schedule, workload.machine)
reveal_type(workload.machine)
"""

WRONG = """
import swflow

swflow.Scheduler(order=3)  # E: arg-type
swflow.simulate("kth.parquet")  # E: arg-type, call-arg
swflow.unknown  # E: attr-defined
"""


@pytest.mark.slow
def test_a_type_checker_reads_the_types_of_swflow(tmp_path):
    """Run mypy on a small program outside of the clone, and on one with errors, which the comments name."""
    from mypy.api import run

    for name, program in (("program.py", PROGRAM), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(program)
    options = ["--strict", "--no-error-summary", f"--cache-dir={tmp_path / 'cache'}", "--config-file="]
    found, failed, _ = run([*options, str(tmp_path / "program.py")])
    assert not failed and "swflow.jobs.machine.Machine" in found
    found, _, failed = run([*options, str(tmp_path / "wrong.py")])
    said = {
        int(line.split(":")[1]): re.search(r"\[([\w-]+)\]$", line)[1]
        for line in found.splitlines()
        if ": error:" in line
    }
    expected = {
        number: line.partition("# E: ")[2] for number, line in enumerate(WRONG.splitlines(), 1) if "# E" in line
    }
    assert said.keys() == expected.keys()
    assert all(said[number] in expected[number] for number in said)
