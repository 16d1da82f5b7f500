"""The notebook, run without a browser on the database of the documentation's project."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("marimo", reason='the notebook needs marimo: pip install -e ".[explore]"')

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "notebooks/explore.py"


def test_the_notebook_runs_as_a_script(project):
    command = [sys.executable, NOTEBOOK, "--", "--database", project / "results/swflow.duckdb"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_cell_gives_what_its_name_says(project, monkeypatch):
    monkeypatch.chdir(project)
    _, found = runpy.run_path(str(NOTEBOOK))["app"].run()
    assert found["metrics"]["run"].to_list() == found["runs"].value
    assert found["answer"].columns == ["scheduler", "jobs", "mean_wait"]
    assert len(found["heatmaps"].elements) == 2
    assert all(region.is_empty() or region.height == 2000 for region in found["regions"].values())


def test_a_box_around_all_cells_has_all_jobs_and_one_around_a_cell_its_own(project):
    import duckdb

    notebook = runpy.run_path(str(NOTEBOOK))
    with duckdb.connect(str(project / "results/swflow.duckdb"), read_only=True) as connection:
        for measure in ("wait_time", "slowdown"):
            cells = notebook["cells_of"](connection, "example/easy", measure)
            assert notebook["jobs_in"](connection, "example/easy", measure, cells).height == cells["jobs"].sum() == 2000
            for row in range(0, cells.height, 97):
                cell = cells[row : row + 1]
                assert notebook["jobs_in"](connection, "example/easy", measure, cell).height == cell["jobs"].item()
            assert notebook["jobs_in"](connection, "example/easy", measure, cells[:0]).is_empty()
