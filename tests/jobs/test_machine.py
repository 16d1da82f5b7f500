"""Tests of machines with capacities, and of the step that sets a machine."""

import json
from pathlib import Path

import jsonschema
import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.files.tables import read_metadata, read_workload, write_table, write_workload
from swflow.jobs.machine import PRESETS, Machine
from swflow.jobs.table import Workload
from swflow.studies.step_options import step_options
from swflow.workload.clean import open_workload
from swflow.workload.steps.set_machine import with_machine

ROOT = Path(__file__).parents[2]
SMP = Machine(16, 4, {"memory_bandwidth": 6000, "memory": 1024.0})


def tiny(machine=None):
    times = {name: [0.0] * 4 for name in ("submit_time", "run_time", "estimate")}
    jobs = pl.DataFrame({"job_id": [1, 2, 3, 4], **times, "processors": [1, 10, 13, None]})
    return Workload(jobs, machine or Machine.of(10), "tiny")


def test_capacities_survive_files_and_old_files_are_readable(tmp_path):
    write_workload(tiny(SMP), tmp_path / "tiny.parquet")
    assert read_workload(tmp_path / "tiny.parquet").machine == SMP
    about = read_metadata(tmp_path / "tiny.parquet")
    assert json.loads(json.dumps(SMP.to_dict())) == about["machine"]
    old = about | {"machine": {"processors": 16, "nodes": 4}}
    write_table(tiny().jobs, tmp_path / "old.parquet", old)
    assert read_workload(tmp_path / "old.parquet").machine == Machine(16, 4) != SMP


def test_a_machine_is_hashable_and_the_order_of_capacities_is_ignored():
    assert len({SMP, Machine(16, 4, {"memory": 1024, "memory_bandwidth": 6000.0}), Machine(16, 4)}) == 2
    assert list(SMP.capacities) == ["memory", "memory_bandwidth"]
    given = {"memory": 1.0}
    machine = Machine(4, 1, given)
    given["memory"] = -1.0
    assert machine.capacities == {"memory": 1.0}


@pytest.mark.parametrize("capacity", [0, -1.0, float("nan"), float("inf"), "6000", True, None])
def test_capacities_must_be_positive_numbers(capacity):
    with pytest.raises(SwflowError, match=r"machine: capacity memory: .*; expected") as caught:
        Machine(16, 4, {"memory": capacity})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "expected", "kept"),
    [
        ({"preset": "alvio-node"}, (12, 3), [1, 2, 4]),
        ({"preset": "alvio-node", "nodes": 28}, (112, 28), [1, 2, 3, 4]),
        ({"preset": "alvio-node", "processors": 8}, (8, 2), [1, 4]),
        ({"processors_per_node": 8, "processors": 16}, (16, 2), [1, 2, 3, 4]),
        ({"processors_per_node": 8, "preset": "alvio-node"}, (16, 2), [1, 2, 3, 4]),
        ({"processors": 5}, (5, 5), [1, 4]),
        ({}, (10, 10), [1, 2, 4]),
    ],
)
def test_the_step_sets_the_machine_of_a_workload(options, expected, kept):
    laid = with_machine(tiny(), **options)
    assert (laid.machine.processors, laid.machine.nodes) == expected
    assert laid.jobs["job_id"].to_list() == kept
    removed = {"wider-than-machine": 4 - len(kept)} if len(kept) < 4 else {}
    assert laid.history[-1] == {
        "stage": "machine", "read": 4, "kept": len(kept), "removed": removed, "machine": laid.machine.to_dict(),
    }  # fmt: skip
    assert laid.machine.capacities == (PRESETS["alvio-node"].capacities if "preset" in options else {})


def test_properties_that_are_not_given_stay():
    laid = with_machine(with_machine(tiny(), preset="alvio-node"), nodes=7, capacities={"memory": 5, "disk": 1})
    assert laid.machine == Machine(28, 7, PRESETS["alvio-node"].capacities | {"memory": 5, "disk": 1})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "alvio"}, "machine: preset: unknown node 'alvio'; did you mean 'alvio-node'"),
        ({"processors": 110, "processors_per_node": 4}, "110 processors are not whole nodes of 4; give 108 or 112"),
        ({"processors": 3, "processors_per_node": 4}, "3 processors are not whole nodes of 4; give 4,"),
        ({"processors": 8, "nodes": 2}, "give processors or nodes, not both"),
        ({"processors_per_node": 0}, "processors_per_node: 0; expected at least 1"),
        ({"nodes": 0}, "processors: 0; expected at least 1"),
        ({"capacities": {"memory": 0}}, "capacity memory: 0; expected a finite number above 0"),
    ],
)
def test_wrong_machines_are_one_line(options, words):
    with pytest.raises(SwflowError, match=words):
        with_machine(tiny(), **options)


def test_no_job_left_is_an_error():
    workload = tiny().with_jobs(tiny().jobs.filter(pl.col("processors") > 9), {"stage": "x"})
    with pytest.raises(SwflowError, match="all 2 jobs are wider than 4 processors"):
        with_machine(workload, processors=4)


def test_another_number_of_processors_keeps_nodes_with_capacities(tmp_path):
    write_workload(tiny(SMP), tmp_path / "tiny.parquet")
    assert open_workload(tmp_path / "tiny.parquet", 32).machine == Machine(32, 8, SMP.capacities)
    with pytest.raises(SwflowError, match="30 processors are not whole nodes of 4"):
        open_workload(tmp_path / "tiny.parquet", 30)
    assert Machine(16, 4).with_processors(30) == Machine(30, 30)


def test_the_command_and_the_database(log, capfd):
    assert call("clean", log, "-o", "toy.parquet") == 0
    assert call("machine", "toy.parquet", "-o", "toy+smp.parquet", "--nodes", 1, "--preset", "alvio-node") == 0
    assert "1 of 3" not in capfd.readouterr().err
    assert call("simulate", "toy.parquet", "-o", "plain.parquet") == 0
    assert call("simulate", "toy+smp.parquet", "-o", "smp.parquet") == 0
    load(["plain.parquet", "smp.parquet"], "d.duckdb")
    _, rows = query(
        "d.duckdb",
        "SELECT workload, nodes, CAST(capacities->>'memory_bandwidth' AS DOUBLE) FROM workloads ORDER BY workload",
    )
    assert rows == [("toy", 4, None), ("toy+smp", 1, 6000.0)]
    assert query("d.duckdb", "SELECT jobs FROM removals WHERE reason = 'wider-than-machine'")[1] == [(1,)]
    options = ["--processors-per-node", 2, "--capacity", "memory=5", "--capacities", "memory_bandwidth=6e3"]
    assert call("machine", "toy.parquet", "-o", "b.parquet", *options) == 0
    assert read_workload("b.parquet").machine == Machine(8, 4, {"memory": 5.0, "memory_bandwidth": 6000.0})


def test_a_study_removes_resources_by_the_same_options(log):
    jobs = tiny().jobs.head(3).with_columns(gpus=pl.lit(1), licenses=pl.lit(1))
    machine = Machine(16, 16, resources={"gpus": 4, "licenses": 2})
    write_workload(Workload(jobs, machine, "toy"), "toy.parquet")
    step = {"kind": "machine", "nodes": 32, "resources": {"gpus": None, "licenses": 3}}
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    jsonschema.validate(step, schema["$defs"]["machine"])
    options = step_options("plain", {"steps": {"plain": step}}).split()
    assert call("machine", "toy.parquet", "-o", "toy+plain.parquet", *options) == 0
    assert read_workload("toy+plain.parquet").machine == Machine(32, 32, resources={"licenses": 3})


@pytest.mark.parametrize(
    ("capacity", "words"),
    [
        (["memory"], "--capacity: 'memory' is not NAME=NUMBER, such as memory_bandwidth=6000"),
        (["memory=much"], "--capacity: memory: 'much'; expected a finite number"),
        (["memory=1", "memory=2"], "--capacity: memory is given twice"),
    ],
)
def test_capacities_of_the_command_are_checked(log, capfd, capacity, words):
    options = [word for text in capacity for word in ("--capacity", text)]
    assert call("machine", log, "-o", "b.parquet", *options) == 1
    assert words in capfd.readouterr().err


def test_the_schema_lists_the_presets():
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    assert schema["$defs"]["machine"]["properties"]["preset"]["enum"] == list(PRESETS)
