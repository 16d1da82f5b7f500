"""Test the machines of variants: nodes, partitions and resources, typed once from the command line."""

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.studies.hardware import fitting, hardware_of
from swflow.studies.variants import Variant, read_nodes, read_processors, read_resource

CLUSTERS = [
    {"partition": "cpu", "processors": 128, "resources": {"memory": 1000}},
    {"partition": "gpu", "processors": 64, "resources": {"gpus": 8, "memory": 2000}},
]
SITE = {"backfill": "easy", "dispatch": "partition", "clusters": CLUSTERS}


def workload(nodes: bool = True) -> Workload:
    """Return a job on two nodes of each partition; those of partition gpu have 16 processors and 2 GPUs."""
    jobs = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [0.0, 0.0], "wait_time": [0.0, 0.0], "run_time": [60.0, 60.0],
        "estimate": [60.0, 60.0], "processors": [128, 32], "gpus": [None, 4], "memory": [1000, 999],
        "partition_id": [1, 2], "nodes": [2, 2] if nodes else [None, None],
    }, schema_overrides={"nodes": pl.Int64})  # fmt: skip
    return Workload(jobs, Machine.of(192), "log", {"Partition": ["1 cpu", "2 gpu"]})


def units(change: dict, options: dict | None = None) -> tuple[int, int, int, int]:
    """Return processors, GPUs and memory of partition gpu, and the processors of the machine."""
    found, machine = hardware_of(Variant("site", SITE if options is None else options, **change), workload())
    gpu = found["clusters"][1]
    return gpu["processors"], gpu["resources"]["gpus"], gpu["resources"]["memory"], machine.processors


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"nodes": read_nodes("gpu=+2")}, (96, 12, 3000, 224)),
        ({"nodes": read_nodes("gpu=-1")}, (48, 6, 1500, 176)),
        ({"nodes": read_nodes("gpu=+50%")}, (96, 12, 3000, 224)),
        ({"processors": read_processors("gpu=+25%")}, (80, 10, 2500, 208)),  # a share of the nodes
        ({"processors": read_processors("-25%")}, (48, 6, 1500, 144)),
        ({"processors": read_processors("gpu=+16")}, (80, 8, 2000, 208)),  # processors alone
        ({"resource": read_resource("gpu:gpus=+4")}, (64, 12, 2000, 192)),
        ({"resource": read_resource("gpus=-50%")}, (64, 4, 2000, 192)),
        ({"nodes": read_nodes("gpu=+2"), "resource": read_resource("gpus=8")}, (96, 8, 3000, 224)),
    ],
)
def test_nodes_have_processors_gpus_and_memory(change, expected):
    assert units(change) == expected


def test_nodes_of_partitions_that_share_a_machine():
    limits = {"limits": {"partition": {"cpu": {"processors": 128}, "gpu": {"processors": 64}}}}
    pool = {**limits, "resources": {"gpus": 8, "memory": 3000}}
    options, machine = hardware_of(Variant("site", pool, nodes=read_nodes("gpu=+2")), workload())
    assert options["limits"]["partition"]["gpu"] == {"processors": 96}
    assert (machine.processors, options["resources"]) == (224, {"gpus": 12, "memory": 4000})
    options, machine = hardware_of(Variant("site", pool, read_processors("+50%")), workload())
    assert (machine.processors, options["resources"]) == (288, {"gpus": 12, "memory": 4500})


NODES = {"backfill": "slurm", "nodes": [
    {"count": 8, "processors": 16, "partition": ["cpu"]}, {"count": 4, "processors": 16, "partition": ["cpu", "gpu"]},
]}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"nodes": read_nodes("+2")}, [8, 6]),
        ({"nodes": read_nodes("gpu=8")}, [8, 8]),
        ({"processors": read_processors("+50%")}, [12, 6]),
        ({"processors": read_processors("gpu=-50%")}, [8, 2]),
        ({"processors": read_processors("cpu=+32")}, [8, 6]),
    ],
)
def test_groups_of_nodes_have_more_or_less_of_them(change, counts):
    options, machine = hardware_of(Variant("site", NODES, **change), workload())
    assert [group["count"] for group in options["nodes"]] == counts
    assert machine.processors == 16 * sum(counts)


def test_jobs_fit_on_the_nodes_of_their_partition():
    wide = workload().jobs.with_columns(processors=pl.Series([192, 65]))

    def kept(options: dict) -> list[int]:
        some = Workload(wide, Machine.of(192), "log", {"Partition": ["1 cpu", "2 gpu"]})
        return wide.filter(*fitting(some, options, some.machine))["job_id"].to_list()

    assert kept(NODES) == [1]
    assert kept({**NODES, "nodes": [{"count": 12, "processors": 16}]}) == [1, 2]
    assert kept({**NODES, "limits": {"partition": {"cpu": {"processors": 128}, "gpu": {"processors": 99}}}}) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": read_nodes("9")}, "--nodes 9: site has 2 groups of nodes there; expected +2, -2 or a share"),
        ({"nodes": read_nodes("gpus=+2")}, "--nodes gpus=+2: site has no partition 'gpus'; did you mean 'gpu'?"),
        ({"nodes": read_nodes("gpu=-4")}, "--nodes gpu=-4: site: 0 nodes; expected at least 1"),
        ({"processors": read_processors("gpu=+8")}, "site: 72 processors; expected whole nodes of 16"),
        ({"resource": read_resource("gpus=+8")}, "site does not schedule gpus"),
    ],
)
def test_impossible_nodes_are_one_line(change, words):
    with pytest.raises(SwflowError) as error:
        hardware_of(Variant("site", NODES, **change), workload())
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"processors": read_processors("-500")}, "--processors -500: site: -372 processors; expected at least 1"),
        ({"nodes": read_nodes("gpus=+2")}, "--nodes gpus=+2: site has no partition 'gpus'; did you mean 'gpu'?"),
        ({"resource": read_resource("gpu=+25%")}, "site does not schedule gpu; did you mean 'gpus'?"),
        ({"resource": read_resource("memory=512")}, "site has 2 clusters with memory; expected PARTITION:memory=512"),
        ({"processors": read_processors("64")}, "site has 2 clusters; expected PARTITION=64"),
    ],
)
def test_impossible_sizes_are_one_line(change, words):
    with pytest.raises(SwflowError) as error:
        units(change)
    assert words in str(error.value)


def test_nodes_of_unknown_size_are_an_error():
    with pytest.raises(SwflowError, match=r"--nodes gpu=\+2: site: the log does not state the nodes of its jobs"):
        hardware_of(Variant("site", SITE, nodes=read_nodes("gpu=+2")), workload(nodes=False))


@pytest.mark.parametrize("text", ["20%", "1.5", "many", "+-2", "", "cpu=", "1e3"])
def test_amounts_that_are_no_size_are_refused(text):
    for read in (read_processors, read_nodes):
        with pytest.raises(SwflowError, match="expected a"):
            read(text)
