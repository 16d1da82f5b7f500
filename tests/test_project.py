"""Beginning a project outside of a clone: what `swflow init` writes, and what a wheel carries."""

import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from swflow.errors import SwflowError
from swflow.logs import load_catalogue
from swflow.project import init, workflow_folder
from swflow.studies import planned_runs

ROOT = Path(__file__).parents[1]


def test_a_project_has_a_config_that_the_workflow_takes(tmp_path):
    files = init(tmp_path / "demo")
    assert all(path.is_file() for path in files)
    config = yaml.safe_load((tmp_path / "demo/config/config.yaml").read_text())
    catalogue = load_catalogue([tmp_path / "demo" / path for path in config["catalogue"]])
    assert planned_runs(config, catalogue) == {
        "example": ["conservative", "easy", "fcfs", "mine", "sjbf"],
        "example+short": ["easy"],
    }
    assert "KTH-SP2" in catalogue


def test_a_project_of_an_own_log_compares_with_the_recorded_schedule(tmp_path):
    log = tmp_path / "site.swf"
    log.write_text("; MaxProcs: 8\n1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1\n")
    init(tmp_path / "demo", log=log, processors=16)
    config = yaml.safe_load((tmp_path / "demo/config/config.yaml").read_text())
    catalogue = load_catalogue([tmp_path / "demo" / path for path in config["catalogue"]])
    assert catalogue["site"].path == str(log) and catalogue["site"].processors == 16
    assert "log" in planned_runs(config, catalogue)["site"]
    assert config["steps"]["short"]["where"] == "run_time <= 3600"  # whatever jobs ask for, some are short


@pytest.mark.parametrize(
    ("options", "words"),
    [({"log": "nothing.swf"}, "nothing.swf: no such file"), ({"log": __file__, "name": "a b"}, "a b")],
)
def test_a_wrong_wish_leaves_nothing_behind(tmp_path, options, words):
    with pytest.raises(SwflowError, match=re.escape(words)):
        init(tmp_path / "demo", **options)
    assert not (tmp_path / "demo").exists()


def test_nothing_is_overwritten(tmp_path):
    init(tmp_path)
    (tmp_path / "config/config.yaml").write_text("mine")
    with pytest.raises(SwflowError, match="is there already"):
        init(tmp_path)
    assert (tmp_path / "config/config.yaml").read_text() == "mine"


def test_the_workflow_is_where_the_snakemake_catalog_looks_for_it():
    assert workflow_folder() == ROOT / "workflow"
    for path in ("workflow/Snakefile", "config/README.md", ".snakemake-workflow-catalog.yml"):
        assert (ROOT / path).is_file()
    assert yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text()).keys() == {"usage"}


def test_the_environment_of_conda_is_that_of_pip():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    listed = yaml.safe_load((ROOT / "workflow/envs/swflow.yaml").read_text())["dependencies"]
    names = {"duckdb": "python-duckdb", "snakemake": "snakemake-minimal"}
    bounds = {re.split("[<>]", one)[0]: one[len(re.split("[<>]", one)[0]) :] for one in wanted}
    conda = dict(one.split(" ") for one in listed if " " in one)
    assert conda == {names.get(name, name): bound for name, bound in bounds.items()} | {"python": ">=3.11"}


@pytest.mark.wheel
def test_a_wheel_runs_outside_of_a_clone(tmp_path):
    """Build a wheel, install it into a new environment, begin a project there, and run it."""
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, ROOT], check=True)
    wheel = next(tmp_path.glob("swflow-*.whl"))
    with zipfile.ZipFile(wheel) as content:
        assert {"swflow/workflow/Snakefile", "swflow/catalogue.yaml"} <= set(content.namelist())
    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv/bin"
    subprocess.run([binaries / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel], check=True)
    environment = os.environ | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    snakemake = ["snakemake", "--cores", "1", "--directory", "demo", "-s", "demo/Snakefile"]
    for command in (["swflow", "init", "demo"], snakemake):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "demo/results/report/index.html").is_file()
