"""Run the notebooks without a browser on the database of the documentation's project."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK, JUPYTER = ROOT / "notebooks/explore.py", ROOT / "notebooks/python.ipynb"


def test_the_cells_of_the_jupyter_notebook_run_in_their_order(project, monkeypatch):
    monkeypatch.chdir(project)
    cells = json.loads(JUPYTER.read_text())["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    values: dict = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), values)
    waits = {name: found["mean_wait_time"] for name, found in values["found"].items()}
    assert waits["sjf"] < waits["easy"] < waits["fcfs"]
    parts = values["reasons"].table.select("eligibility", "limit", "room", "order", "latency").sum_horizontal()
    assert parts.sum() == pytest.approx(waits["easy"] * 4000)
    changed = values["answer"].table.filter(measure="mean_wait_time", variant="easy")
    assert changed["value"].item() == pytest.approx(waits["easy"])
    assert "example/easy" in values["runs"]["run"]


pytest.importorskip("marimo", reason='the notebook needs marimo: pip install -e ".[explore]"')


def test_marimo_opens_the_jupyter_notebook(tmp_path):
    marimo = Path(sys.executable).with_name("marimo")
    subprocess.run([marimo, "convert", JUPYTER, "-o", tmp_path / "python.py"], check=True, capture_output=True)
    cells = json.loads(JUPYTER.read_text())["cells"]
    assert (tmp_path / "python.py").read_text().count("@app.cell") >= len(cells)


@pytest.mark.slow
def test_the_notebook_runs_as_a_script(project):
    command = [sys.executable, NOTEBOOK, "--", "--database", project / "results/swflow.duckdb"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_cell_returns_what_its_name_states(project, monkeypatch):
    monkeypatch.chdir(project)
    _, found = runpy.run_path(str(NOTEBOOK))["app"].run()
    assert found["metrics"]["run"].to_list() == found["runs"].value
    assert found["answer"].columns == ["workload", "scheduler", "jobs", "mean_wait_hours"]
    assert len(found["heatmaps"].elements) == 2
    assert all(region.is_empty() or region.height == 14000 for region in found["regions"].values())


def test_figures_are_rounded_axes_have_units_and_the_query_keeps_logs_apart(project, monkeypatch):
    monkeypatch.chdir(project)
    notebook = runpy.run_path(str(NOTEBOOK))
    _, found = notebook["app"].run()
    for value in found["answer"]["mean_wait_hours"]:
        assert value == float(f"{value:.4g}")
    assert found["answer"].select("workload", "scheduler").is_unique().all()
    cells = notebook["cells_of"]("results/swflow.duckdb", "example/easy", "wait_time")
    axes = notebook["heatmap_of"](cells, "wait_time").to_dict()["encoding"]
    assert axes["y"]["title"] == "wait time (s)" and "0 to 1" in axes["x"]["title"]


def test_the_cache_of_the_notebook_is_ignored_by_git():
    command = ["git", "check-ignore", "notebooks/__marimo__/session/explore.py.json"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode in (0, 128)  # 128: no clone


def test_the_notebook_uses_the_public_interface_only():
    imported = [line.split() for line in NOTEBOOK.read_text().splitlines() if "import" in line and "swflow" in line]
    assert [words[1] for words in imported] == ["swflow", "swflow.errors"]


@pytest.mark.slow
def test_a_selection_of_all_cells_has_all_jobs_and_one_of_a_cell_its_jobs(project):
    notebook = runpy.run_path(str(NOTEBOOK))
    database = str(project / "results/swflow.duckdb")
    for measure in ("wait_time", "slowdown"):
        cells = notebook["cells_of"](database, "example/easy", measure)
        assert notebook["jobs_in"](database, "example/easy", measure, cells).height == cells["jobs"].sum() == 14000
        for row in range(0, cells.height, 97):
            cell = cells[row : row + 1]
            assert notebook["jobs_in"](database, "example/easy", measure, cell).height == cell["jobs"].item()
        assert notebook["jobs_in"](database, "example/easy", measure, cells[:0]).is_empty()
