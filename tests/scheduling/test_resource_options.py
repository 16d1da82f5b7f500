"""Resources besides processors: the option, the command line, the step of the machine, and files."""

from typing import Any

import polars as pl
import pytest

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.prepare import columns_needed, prepare
from swflow.scheduling.scheduler import Scheduler
from swflow.workload.steps.set_machine import with_machine

JOBS = pl.DataFrame(
    {
        "job_id": [1, 2, 3],
        "submit_time": [0.0, 1.0, 2.0],
        "run_time": [10.0, 10.0, 3.0],
        "processors": [1, 2, 1],
        "estimate": [10.0, 10.0, 5.0],
        "gpus": [None, 2, 1],
        "memory": [100, 700, None],
    }
)


def site(**resources: int) -> Workload:
    return Workload(JOBS, Machine(4, 4, resources=resources), "site")


def units(workload: Workload, **options: Any) -> list[dict[str, int]]:
    return [dict(machine.resources) for machine in prepare(workload, Scheduler(**options)).machines]


def test_the_option_overrides_the_resources_of_the_machine():
    assert units(site(gpus=4, memory=900)) == [{"gpus": 4, "memory": 900}]
    assert units(site(gpus=4), resources={"memory": 1000, "gpus": 6}) == [{"gpus": 6, "memory": 1000}]
    assert units(site(gpus=4, memory=900), resources={"gpus": None}) == [{"memory": 900}]
    assert units(site(), resources={"gpus": None}) == [{}]


def test_clusters_leave_the_resources_of_the_machine_out_by_name():
    clusters = ({"processors": 4}, {"processors": 2})
    assert units(site(gpus=4), resources={"gpus": None}, clusters=clusters) == [{}, {}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resources": {"gpu": 4}}, r"resources: site has no column gpu; did you mean 'gpus'\?|has no column gpu"),
        ({"resources": {"gpus": 1}}, "site: job 2 needs 2 of 1 gpus"),
        ({"resources": {"gpus": "many"}}, "resources: gpus: 'many'; expected a whole number of units"),
        ({"resources": [4]}, "expected names with numbers of units"),
        ({"resources": {"gpus": 4}, "clusters": ({"processors": 4},)}, "resources: these are units of one machine"),
        ({"resources": {"gpus": 4}, "allocation": "first-fit"}, "allocation: machines with resources"),
    ],
)
def test_wrong_resources_are_refused_in_one_line(options: dict[str, Any], message: str):
    with pytest.raises(SwflowError, match=message) as error:
        prepare(site(), Scheduler(**options))
    assert "\n" not in str(error.value)


def test_without_resources_the_options_of_a_run_have_no_such_key():
    assert "resources" not in Scheduler().to_dict()
    assert Scheduler(resources={"gpus": 2}).to_dict()["resources"] == {"gpus": 2}
    assert columns_needed(Scheduler(resources={"gpus": 2})) is None  # all are read


def test_the_step_sets_the_resources_and_removes_jobs_that_need_more():
    small = with_machine(site(memory=900), resources={"gpus": 1})
    assert small.machine.resources == {"gpus": 1, "memory": 900}
    assert small.jobs["job_id"].to_list() == [1, 3]
    assert small.history[-1]["removed"] == {"more-gpus-than-machine": 1}
    assert with_machine(site(memory=900), resources={"memory": None}).machine.resources == {}
    with pytest.raises(SwflowError, match="machine: resources: site has no column gpu"):
        with_machine(site(), resources={"gpu": 1})


def test_resources_on_the_command_line(tmp_path, capsys):
    write_workload(site(), tmp_path / "site.parquet")
    source, made = str(tmp_path / "site.parquet"), str(tmp_path / "site+gpus.parquet")
    assert call("machine", source, "-o", made, "--resource", "gpus=2") == 0
    assert read_workload(made).machine.resources == {"gpus": 2}
    for text, problem in (("gpus", "'gpus': expected NAME=UNITS"), ("gpus=x", "'gpus=x': expected NAME=UNITS")):
        assert call("simulate", source, "--resource", text) != 0
        assert problem in capsys.readouterr().err
    assert call("simulate", source, "--resource", "gpus=1", "--resource", "gpus=2") != 0
    assert "--resource: gpus is given twice" in capsys.readouterr().err
    assert call("simulate", source, "--resource", "gpus=1") != 0
    assert "job 2 needs 2 of 1 gpus" in capsys.readouterr().err
