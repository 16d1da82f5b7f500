"""Tests of steps with several loads."""

import copy
from pathlib import Path

import pytest

from swflow.errors import SwflowError
from swflow.studies.levels import with_levels
from swflow.studies.plan import plan_studies
from swflow.studies.workflow import read_config

SCHEMA = Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml"

CONFIG = {
    "steps": {"loads": {"kind": "intensify", "load": ["0.6:0.8:0.1", 0.95]}, "memory": {"kind": "memory", "high": 1}},
    "schedulers": {"easy": {"backfill": "easy"}},
    "studies": {"mine": {"logs": ["A"], "runs": [{"workloads": ["{log}+memory@2+loads"], "schedulers": ["easy"]}]}},
}


def test_each_load_is_a_step_and_a_workload():
    config = with_levels(CONFIG)
    assert [one["load"] for name, one in config["steps"].items() if name != "memory"] == [0.6, 0.7, 0.8, 0.95]
    assert plan_studies(config, ["A"]).runs == {
        f"A+memory@2+loads-{load}": ["easy"] for load in ("0.6", "0.7", "0.8", "0.95")
    }
    assert with_levels(config) == config


def test_two_steps_with_several_values_are_all_combinations():
    config = copy.deepcopy(CONFIG)
    config["steps"]["runs"] = {"kind": "intensify", "factor": [1, 2], "by": "run-times"}
    config["studies"]["mine"]["runs"][0]["workloads"] = ["{log}+loads+runs"]
    assert len(plan_studies(with_levels(config), ["A"]).runs) == 8


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"load": "0.9:0.6:0.1"}, "steps: loads: load: '0.9:0.6:0.1'"),
        ({"load": [0.5, 0]}, "steps: loads: load: 0; expected a number above 0"),
        ({"factor": -1}, "steps: loads: factor: -1"),
        ({"load": "high"}, "steps: loads: load"),
        ({"load": [0.7], "factor": 2}, "steps: loads"),
    ],
)
def test_a_wrong_load_is_named(step, words):
    config = copy.deepcopy(CONFIG)
    config["steps"]["loads"] = {"kind": "intensify", **step}
    with pytest.raises(SwflowError, match=words.split(";")[0]):
        read_config(config, SCHEMA)


def test_a_level_does_not_replace_another_step():
    config = copy.deepcopy(CONFIG)
    config["steps"]["loads-0.7"] = {"kind": "intensify", "factor": 2}
    with pytest.raises(SwflowError, match=r"loads-0\.7"):
        with_levels(config)
