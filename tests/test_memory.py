"""Demands for shared resources: what is drawn, of whom, and what it depends on."""

import jsonschema
import numpy as np
import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.jobs import Workload, read_workload
from swflow.machine import Machine
from swflow.randomness import uniform_per_job
from swflow.studies import command_options
from swflow.workloads.clean import clean_log
from swflow.workloads.memory import SCENARIOS, describe_demands, memory
from swflow.workloads.select import select
from test_cli import call, log  # noqa: F401  the fixture
from test_studies import SCHEMA


def workload(jobs=4000, name="A+ran", **columns):
    table = pl.DataFrame({"job_id": range(1, jobs + 1), "status": [1, 5] * (jobs // 2)}).with_columns(**columns)
    return Workload(table, Machine.of(4), name)


def demands(given, resource="memory_bandwidth"):
    return dict(given.jobs.select("job_id", resource).rows())


def test_numbers_per_job_are_uniform_and_independent():
    ids = np.arange(1, 100_001)
    keys = [(seed, [name, step]) for seed in (1, 2) for name in "AB" for step in "xy"]
    draws = [uniform_per_job(*key, ids) for key in keys]
    for uniform in draws:
        assert uniform.min() >= 0 and uniform.max() < 1
        cells = np.histogram(uniform, 100, (0, 1))[0]
        assert ((cells - 1000) ** 2 / 1000).sum() < 160  # chi-squared, 99 degrees of freedom: 1 in 10,000 is above
        assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.015
        assert abs(np.corrcoef(uniform[: -(2**16)], uniform[2**16 :])[0, 1]) < 0.025
    for number, one in enumerate(draws):
        assert all(abs(np.corrcoef(one, other)[0, 1]) < 0.015 for other in draws[number + 1 :])
    assert (uniform_per_job(1, ["A"], ids[::-7]) == uniform_per_job(1, ["A"], ids)[::-7]).all()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_has_its_shares(scenario):
    shares = SCENARIOS[scenario]
    given = memory(workload(40_000), **shares, step=scenario)
    counts = dict(given.jobs["memory_bandwidth"].value_counts().rows())
    entry = given.history[-1]
    for (name, share), demand, level in zip(shares.items(), (2000.0, 1000.0, 500.0), entry["levels"], strict=True):
        assert counts[demand] / 40_000 == pytest.approx(share, abs=0.01)  # more than three standard deviations
        assert level == {
            "level": name, "demand": demand, "share": share, "realised": round(counts[demand] / 40_000, 6),
        }  # fmt: skip
    assert (entry["stage"], entry["read"], entry["kept"], entry["removed"]) == ("memory", 40_000, 40_000, {})
    assert f"{counts[2000.0] / 40_000:.1%} high (2,000 a process)" in describe_demands(entry)


def test_high_is_the_default_and_any_levels_are_allowed():
    assert demands(memory(workload())) == demands(memory(workload(), high=0.8, medium=0.1, low=0.1))
    assert set(demands(memory(workload(), high=1)).values()) == {2000.0}
    assert set(demands(memory(workload(), low=1, low_level=0)).values()) == {0.0}
    given = memory(workload(), demands={10: 0.25, 4000.5: 0.75}, resource="network_bandwidth")
    assert given.jobs["network_bandwidth"].mean() == pytest.approx(0.75 * 4000.5 + 2.5, rel=0.05)
    same = memory(workload(), demands={4000.5: 0.75, 10: 0.25}, resource="network_bandwidth")
    assert given.jobs.equals(same.jobs)


def test_a_job_keeps_its_demand_in_any_part_and_order():
    whole = demands(memory(workload(), seed=3, step="memory-high"))
    part = select(workload(), where="job_id > 100 and status == 1")
    some = demands(memory(part, seed=3, step="memory-high"))
    assert some == {job: whole[job] for job in some}
    reversed_ = workload(name="A+other").with_jobs(workload().jobs.reverse(), {"stage": "x"})
    assert demands(memory(reversed_, seed=3, step="memory-high")) == whole
    for other in ({"seed": 4, "step": "memory-high"}, {"seed": 3, "step": "memory-high@2"}):
        assert demands(memory(workload(), **other)) != whole
    assert demands(memory(workload(name="B"), seed=3, step="memory-high")) != whole


def test_copies_share_the_demand_of_their_original():
    whole = memory(workload(100)).jobs["memory_bandwidth"].to_list()
    copies = workload(200, source_job_id=pl.Series([*range(1, 101), *range(1, 100), None], dtype=pl.Int64))
    drawn = memory(copies).jobs["memory_bandwidth"].to_list()
    assert drawn[:199] == whole + whole[:99]
    assert drawn[199] == demands(memory(workload(200)))[200]


def test_the_logs_memory_is_taken_in_megabytes():
    some = workload(4, used_memory=pl.Series([2048.0, None, 512.0, 0.0]), requested_memory=pl.Series([None] * 4))
    given = memory(some, from_log="used")
    assert given.jobs["memory"].to_list() == [2.0, None, 0.5, 0.0]
    assert given.history[-1] == {
        "stage": "memory", "read": 4, "kept": 4, "removed": {}, "resource": "memory", "from_log": "used", "unknown": 1,
    }  # fmt: skip
    assert describe_demands(given.history[-1]) == "memory: used memory of the log; unknown of 1 jobs"
    with pytest.raises(SwflowError, match=r"A\+ran: no job has a requested memory"):
        memory(some, from_log="requested")


def test_a_second_resource_is_another_column():
    both = memory(memory(workload(10)), from_log=None, resource="network_bandwidth", high_level=100)
    assert {"memory_bandwidth", "network_bandwidth"} < set(both.jobs.columns)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"high": 0.5, "low": 0.4}, "the shares 0.5, 0, 0.4 sum to 0.9, not 1"),
        ({"high": 1.2, "low": -0.2}, "high: a share of jobs is between 0 and 1, not 1.2"),
        ({"high_level": -1}, "high: a process cannot demand -1.0"),
        ({"low_level": float("inf")}, "low: a process cannot demand inf"),
        ({"demands": {1: 0.5}}, "the shares 0.5 sum to 0.5"),
        ({"demands": {1: 1}, "high": 1}, "give demands, or the shares high, medium and low, not both"),
        ({"from_log": "used", "high": 1}, "from_log takes the demands from the log"),
        ({"from_log": "max"}, "from_log: unknown record 'max'; use used or requested"),
        ({"resource": "used_memory"}, "'used_memory' is a column of every job table"),
        ({"resource": "workload"}, "'workload' is a column of every job table"),
        ({"resource": "Memory"}, "'Memory' is no name of a column"),
        ({"resource": "extra"}, r"A\+ran has demands of extra already"),
    ],
)
def test_wrong_demands_are_one_line(options, words):
    with pytest.raises(SwflowError, match=words) as caught:
        memory(workload(4, extra=pl.lit(1.0)), **options)
    assert "\n" not in str(caught.value)


def test_the_command_gives_the_same_bytes_again(log, capfd):  # noqa: F811
    config = {"high": 0.5, "medium": 0.1, "low": 0.4, "seed": 7}
    assert call("clean", log, "-o", "toy.parquet") == 0
    for folder in "ab":
        assert call("memory", "toy.parquet", "-o", f"{folder}/toy+med.parquet", *command_options(config).split()) == 0
    assert (log.parent / "a/toy+med.parquet").read_bytes() == (log.parent / "b/toy+med.parquet").read_bytes()
    assert "medium (1,000 a process)" in capfd.readouterr().err
    here = memory(read_workload("toy.parquet"), high=0.5, medium=0.1, low=0.4, seed=7, step="med")
    assert here.jobs.equals(read_workload("a/toy+med.parquet").jobs)
    assert call("memory", "toy.parquet", "-o", "c.parquet", "--demand", "100=1", "--resource", "io") == 0
    assert read_workload("c.parquet").jobs["io"].to_list() == [100.0] * 3
    assert call("memory", "toy.parquet", "-o", "c.parquet", "--demand", "much=1") == 1
    assert "--demand: 'much' is not a number" in capfd.readouterr().err
    for command, lost in (("memory", "demands"), ("machine", "capacities")):
        assert call(command, "toy.parquet", "-o", "c.swf") == 1
        assert f"c.swf: only .parquet has a place for the {lost}" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("step", "good"),
    [
        ({"kind": "memory", "high": 0.8, "medium": 0.1, "low": 0.1}, True),
        ({"kind": "memory", "demands": {"4000": 0.5, "100": 0.5}, "resource": "io"}, True),
        ({"kind": "memory", "from_log": "requested"}, True),
        ({"kind": "memory", "high": 80}, False),
        ({"kind": "memory", "resource": "I/O"}, False),
        ({"kind": "machine", "nodes": 28, "preset": "alvio-node", "capacities": {"memory": 1}}, True),
        ({"kind": "machine", "capacities": {"memory": 0}}, False),
        ({"kind": "machine", "high": 0.8}, False),
    ],
)
def test_the_schema_knows_good_steps(step, good):
    assert jsonschema.Draft202012Validator(SCHEMA["properties"]["steps"] | {"$defs": SCHEMA["$defs"]}).is_valid(
        {"step": step}
    ) is good  # fmt: skip


def test_mappings_of_the_config_become_repeated_options():
    options = command_options({"capacities": {"memory": 1, "io": 2.5}, "nodes": 3, "demands": {100: 0.5, 20: 0.5}})
    assert options == "--capacities io=2.5 --capacities memory=1 --demands 100=0.5 --demands 20=0.5 --nodes 3"


@pytest.mark.archive
def test_a_real_log_knows_the_memory_of_its_jobs(traces):
    cm5 = clean_log(traces / "LANL-CM5-1994-4.1-cln.swf.gz", name="LANL-CM5", processors=1024)
    given = memory(cm5, from_log="requested")
    assert given.jobs["memory"].drop_nulls().sort().tail(1).item() == cm5.jobs["requested_memory"].max() / 1024
    assert given.history[-1]["unknown"] == cm5.jobs["requested_memory"].null_count() < 0.5 * cm5.jobs.height


# -- demands of a file


def test_a_file_gives_demands_by_job_and_copies_share_their_originals(tmp_path):
    file = tmp_path / "demands.reqs"
    file.write_text("; id, bandwidth, memory\n1 500 0\n\n2,1000,7\n99 2000 0\n")
    given = memory(workload(4, source_job_id=pl.Series([1, 1, 2, 3])), file=file)
    assert given.jobs["memory_bandwidth"].to_list() == [500.0, 500.0, 1000.0, None]
    entry = given.history[-1]
    assert (entry["file"], entry["unknown"], entry["unused"]) == ("demands.reqs", 1, 1)
    assert describe_demands(entry).startswith("memory_bandwidth: by demands.reqs; unknown of 1 jobs; 1 lines")
    other = memory(workload(4), file=file, column=3, resource="memory").jobs["memory"]
    assert other.to_list() == [0.0, 7.0, None, None]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("1 x", {}, "line 1: '1 x' has no job id and demand"), ("1 5\n1 6", {}, "line 2: job 1 is there twice"),
        ("1 -5", {}, "line 1: a process cannot demand -5"), ("1 5", {"column": 3}, "no job id and demand .column 3"),
        ("; nothing", {}, "has no job"), ("77 5", {}, "has no job of A.ran"), ("1 5", {"column": 1}, "2 or more"),
        ("1 5", {"high": 1.0}, "leave out the shares"), ("1 5", {"from_log": "used"}, "demands and from_log"),
    ],
)  # fmt: skip
def test_a_bad_file_of_demands_is_one_line(tmp_path, text, options, words):
    (tmp_path / "demands.txt").write_text(text)
    with pytest.raises(SwflowError, match=words) as error:
        memory(workload(4), file=tmp_path / "demands.txt", **options)
    assert "\n" not in str(error.value)
    with pytest.raises(SwflowError, match="No such file or directory"):
        memory(workload(4), file=tmp_path / "no.txt")
