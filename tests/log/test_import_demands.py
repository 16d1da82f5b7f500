"""Tests of demands that a formula computes from the columns of a table."""

import polars as pl
import pytest

from swflow import Scheduler, simulate
from swflow.errors import SwflowError
from swflow.log.importers.records import Site
from swflow.log.importers.table import import_table
from swflow.workload.clean import clean_log

MAPPING = "columns: {job_id: id, submit_time: sub, start_time: sub, run_time: run, processors: nodes}\n"

TABLE = """id;line;sub;run;nodes;Node Power
a;1;1700000000;100;2;350,5
b;2;1700000001;100;2;400
c;3;1700000002;10;1;-1
d;4;1700000003;10;1;4294967294
e;5;1700000004;10;1;?
"""


@pytest.fixture
def read(tmp_path):
    (tmp_path / "jobs.csv").write_text(TABLE)

    def imported(formulas=None, mapping=MAPPING):
        (tmp_path / "mapping.yaml").write_text(mapping)
        return import_table(str(tmp_path / "jobs.csv"), Site(4), str(tmp_path / "mapping.yaml"), resources=formulas)

    return imported


def test_a_formula_of_columns_becomes_a_demand(read):
    log = read({"watts": '"Node Power" * nodes', "sockets": "nodes / 4"})
    assert log.fields["watts"].to_list() == [701, 800, None, None, None]
    assert log.fields["sockets"].to_list() == [1] * 5  # rounded up
    assert log.tally.notes["without a valid watts (needs 0)"] == (3, 4)
    assert sum(count for reason, (count, _) in log.tally.notes.items() if reason.startswith("Node Power")) == 1


@pytest.mark.parametrize("formula", ["line * 2", "400", 400, "max(nodes)"])
def test_columns_named_as_ours_and_constants(read, formula):
    assert read({"watts": formula}).fields["watts"].to_list() == {
        "line * 2": [2, 4, 6, 8, 10], "max(nodes)": [2] * 5
    }.get(formula, [400] * 5)  # fmt: skip


def test_the_mapping_can_have_the_formula(read):
    mapping = MAPPING + "resources: {gpus: nodes * 2}\n"
    log = read({"tapes": "1"}, mapping)
    assert log.fields.select("gpus", "tapes").rows()[0] == (4, 1)


def test_a_cap_is_kept_in_simulations(read, tmp_path):
    read({"watts": '"Node Power" * nodes'}).write(tmp_path / "log.parquet")
    workload = clean_log(tmp_path / "log.parquet")
    for cap, start in ((1500, 100), (1501, 1)):
        capped = simulate(workload, Scheduler(backfill="easy", resources={"watts": cap}))
        assert capped.sort("job_id")["start_time"][1] == start


@pytest.mark.parametrize(
    ("formulas", "words"),
    [
        ({"watts": '"Node Powr"'}, "no column 'Node Powr'; did you mean 'Node Power'?"),
        ({"watts": "nodes *"}, "not a formula"),
        ({"watts": "upper(id)"}, "not a formula"),
        ({"watts": "nodes > 1 or id"}, "not a formula"),
        ({"watts": "(select 1)"}, "not a formula"),
        ({"watts": "*"}, "not a formula"),
        ({"watts": ""}, "expected a formula"),
        ({"watts": None}, "expected a formula"),
        ({"user": "1"}, "a column of each log"),
        ({"run_time": "1"}, "a column of each log"),
        ({"a b": "1"}, "no name of a resource"),
        ({"processors": "1"}, "no name of a resource"),
    ],
)
def test_a_wrong_formula_is_one_line(read, formulas, words):
    with pytest.raises(SwflowError) as error:
        read(formulas)
    assert words in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 500


def test_a_resource_has_one_source(read):
    with pytest.raises(SwflowError, match="in one place"):
        read({"gpus": "1"}, MAPPING.replace("}", ", gpus: nodes}"))
    with pytest.raises(SwflowError, match="resources"):
        read(None, MAPPING + "resources: [watts]\n")


def test_other_columns_of_a_workload_are_no_demands(read, tmp_path):
    read().write(tmp_path / "log.parquet")
    assert "Node Power" not in pl.read_parquet(tmp_path / "log.parquet").columns
