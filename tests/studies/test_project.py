"""Test the creation of a project outside of a clone: the output of `swflow init`."""

import gzip
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from helpers.cli import call
from swflow import generate
from swflow.errors import SwflowError
from swflow.log.catalogue import load_catalogue
from swflow.studies import project
from swflow.studies.plan import plan_studies
from swflow.studies.project import _flow, init, workflow_folder
from swflow.values import WEEK

ROOT = Path(__file__).parents[2]


def test_a_project_has_a_valid_config(tmp_path):
    project = init(tmp_path / "demo")
    assert all(path.is_file() for path in project.files)
    config = yaml.safe_load((tmp_path / "demo/config/config.yaml").read_text())
    catalogue = load_catalogue([tmp_path / "demo" / path for path in config["catalogue"]])
    assert plan_studies(config, catalogue).runs == {
        "example": ["conservative", "easy", "fcfs", "mine", "sjbf"],
        "example+short": ["easy"],
    }
    assert "KTH-SP2" in catalogue


def test_a_project_with_a_log_compares_with_the_recorded_schedule(tmp_path):
    log = tmp_path / "site.swf"
    log.write_text("; MaxProcs: 8\n1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1\n")
    init(tmp_path / "demo", log=log, processors=16)
    config = yaml.safe_load((tmp_path / "demo/config/config.yaml").read_text())
    catalogue = load_catalogue([tmp_path / "demo" / path for path in config["catalogue"]])
    assert catalogue["site"].path == str(log) and catalogue["site"].processors == 16
    assert "log" in plan_studies(config, catalogue).runs["site"]
    assert config["steps"]["short"]["where"] == "run_time <= 3600"  # the condition does not depend on estimates


@pytest.mark.parametrize("name", ["2024", "2024-01-31", "on", "010", "1e3", "null"])
def test_the_name_of_a_log_stays_a_text(tmp_path, name):
    (tmp_path / f"{name}.swf.gz").write_bytes(gzip.compress(b"1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1\n"))
    init(tmp_path / "demo", log=tmp_path / f"{name}.swf.gz", processors=16)
    config = yaml.safe_load((tmp_path / "demo/config/config.yaml").read_text())
    assert config["studies"]["backfilling"]["logs"] == [name]
    assert name in load_catalogue([tmp_path / "demo" / path for path in config["catalogue"]])


def test_the_names_of_partitions_stay_texts(tmp_path):
    names = ["on", "010", "1_0", "12:30:00", "2024-01-31", "~", "-", 'a "b": c\\d', "{x}, [y]", "é", "a_b"]
    lines = [f"; Partition: {number} {name}" for number, name in enumerate(names, 1)]
    lines += [f"{number} 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 {number} -1 -1" for number in range(1, len(names) + 1)]
    (tmp_path / "site.swf").write_text("\n".join(lines) + "\n")
    for processors, found_in in ((None, "clusters"), (16, "limits")):
        init(tmp_path / str(processors), log=tmp_path / "site.swf", processors=processors)
        text = (tmp_path / str(processors) / "config/config.yaml").read_text()
        found = yaml.safe_load(text)["schedulers"]["site"][found_in]
        found = [one["partition"] for one in found] if found_in == "clusters" else list(found["partition"])
        assert found == names
    assert _flow({"backfill_order": ["sjf", 1e-5, True]}) == "{backfill_order: [sjf, 1.0e-05, true]}"


@pytest.mark.parametrize(
    ("options", "words"),
    [({"log": "nothing.swf"}, "nothing.swf: no such file"), ({"log": __file__, "name": "a b"}, "a b")],
)
def test_a_wrong_option_writes_nothing(tmp_path, options, words):
    with pytest.raises(SwflowError, match=re.escape(words)):
        init(tmp_path / "demo", **options)
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(("options", "warned"), [([], True), (["--processors", "8"], False)])
def test_a_guessed_machine_size_is_not_a_fact_in_a_project(tmp_path, capfd, options, warned):
    """The largest number of processors that were busy at once was presented as the size of the machine."""
    (tmp_path / "site.swf").write_text("1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1\n")
    assert call("init", str(tmp_path / "demo"), "--log", str(tmp_path / "site.swf"), *options) == 0
    assert ("the size of the machine is not stated (guessed: " in capfd.readouterr().err) == warned


def test_the_demo_log_of_two_weeks_is_too_short_for_power():
    """`swflow power` refused the log of the tutorial; it needs at least eight weeks for intervals."""
    options = {name: value for name, value in project._EXAMPLE.items() if name != "generate"}
    demo = generate(project._EXAMPLE["generate"], seed=1, **options)
    assert demo.jobs["submit_time"].max() > 8 * WEEK


def test_nothing_is_overwritten(tmp_path):
    init(tmp_path)
    (tmp_path / "config/config.yaml").write_text("mine")
    with pytest.raises(SwflowError, match="exists already"):
        init(tmp_path)
    assert (tmp_path / "config/config.yaml").read_text() == "mine"


def test_the_workflow_has_the_layout_of_the_snakemake_catalog():
    assert workflow_folder() == ROOT / "workflow"
    for path in ("workflow/Snakefile", "config/README.md", ".snakemake-workflow-catalog.yml"):
        assert (ROOT / path).is_file()
    assert yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text()).keys() == {"usage"}


def test_conda_and_pip_have_the_same_dependencies():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    listed = yaml.safe_load((ROOT / "workflow/envs/swflow.yaml").read_text())["dependencies"]
    names = {"duckdb": "python-duckdb", "snakemake": "snakemake-minimal"}
    bounds = {re.split("[<>]", one)[0]: one[len(re.split("[<>]", one)[0]) :] for one in wanted}
    conda = dict(one.split(" ") for one in listed if " " in one)
    assert conda == {names.get(name, name): bound for name, bound in bounds.items()} | {"python": ">=3.11"}
