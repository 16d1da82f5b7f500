"""Test the machines of variants: nodes, partitions and resources, typed once from the command line."""

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.fitting_jobs import fitting
from swflow.scheduling.nodes import with_counts
from swflow.studies.hardware import hardware_of
from swflow.studies.variants import Variant, read_nodes, read_processors, read_resource
from swflow.studies.whatif import ask

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


ON_NODES = {
    "backfill": "slurm",
    "nodes": [
        {"count": 2, "processors": 64, "partition": ["cpu"]},
        {"count": 3, "processors": 16, "partition": ["gpu", "cpu"]},
        {"count": 1, "processors": 16},
    ],
}


@pytest.mark.parametrize(
    ("change", "counts", "processors"),
    [
        ({}, [2, 3, 1], 192),
        ({"nodes": read_nodes("gpu=+2")}, [2, 5, 1], 224),
        ({"nodes": read_nodes("cpu=4")}, [2, 1, 1], 160),  # the group with the most nodes changes
        ({"nodes": read_nodes("cpu=-3")}, [2, 0, 1], 144),
        ({"nodes": read_nodes("+50%")}, [3, 5, 1], 288),
        ({"nodes": read_nodes("+20%")}, [2, 4, 1], 208),  # by largest remainders
        ({"nodes": read_nodes("cpu=+1,gpu=+2")}, [2, 6, 1], 240),
        ({"processors": read_processors("gpu=-32")}, [2, 1, 1], 160),
        ({"processors": read_processors("cpu=-50%")}, [1, 2, 0], 96),
    ],
)
def test_groups_of_nodes_change_in_whole_nodes(change, counts, processors):
    options, machine = hardware_of(Variant("site", ON_NODES, **change), workload())
    kept = [group | {"count": count} for group, count in zip(ON_NODES["nodes"], counts, strict=True) if count]
    assert (options["nodes"], machine.processors) == (kept, processors)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"processors": read_processors("gpu=+8")}, "site has nodes of 16 processors; expected whole ones, such as"),
        ({"nodes": read_nodes("gpu=-4")}, "--nodes gpu=-4: site has 6 nodes; expected to keep some"),
        ({"nodes": read_nodes("-100%")}, "--nodes -100%: site has 6 nodes; expected to keep some"),
        ({"nodes": read_nodes("big=+1")}, "--nodes big=+1: site has no partition 'big'"),
        ({"resource": read_resource("gpus=+1")}, "site does not schedule gpus; use --scheduler site"),
    ],
)
def test_impossible_groups_of_nodes_are_one_line(change, words):
    with pytest.raises(SwflowError) as error:
        hardware_of(Variant("site", ON_NODES, **change), workload())
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "gpus"), [("gpus=+4", [3, 3]), ("gpu:gpus=+50%", [2, 3]), ("gpus=4", [1, 1]), ("gpus=-50%", [1, 1])]
)
def test_gpus_of_nodes_change_on_each_node(text, gpus):
    cpu, gpu, _ = ON_NODES["nodes"]
    groups = [cpu | {"resources": {"gpus": 2}}, gpu | {"count": 2, "resources": {"gpus": 2, "memory": 9}}]
    options, machine = hardware_of(Variant("site", {"nodes": groups}, resource=read_resource(text)), workload())
    assert ([one["resources"]["gpus"] for one in options["nodes"]], machine.processors) == (gpus, 160)


def test_jobs_that_fit_on_the_nodes_of_their_partition():
    def fit(options: dict, change: dict) -> list[bool]:
        jobs = workload().jobs
        found = fitting(workload(), *hardware_of(Variant("site", options, **change), workload()))
        return jobs.select(pl.all_horizontal(*found)).to_series().to_list()

    assert fit(ON_NODES, {}) == [True, True]
    assert fit(ON_NODES | {"limits": {"partition": {"gpu": {"processors": 100}}}}, {}) == [True, True]
    assert fit(ON_NODES | {"limits": {"partition": {"gpu": {"processors": 16}}}}, {}) == [True, False]
    assert fit(ON_NODES, {"nodes": read_nodes("cpu=-50%")}) == [False, True]
    assert fit(ON_NODES, {"nodes": read_nodes("gpu=1")}) == [True, False]


@pytest.mark.parametrize(("gpus", "fits"), [([2, 2], True), ([1, 9], False), ([0, 4], False), ([1, 2], False)])
def test_jobs_that_find_no_gpus_on_the_nodes_of_their_processors_do_not_fit(gpus, fits):
    # The second job has 32 processors and 4 GPUs: a GPU for 8 of the 16 processors of a node.
    nodes = [{"count": 1, "processors": 16, "resources": {"gpus": units}, "partition": ["gpu"]} for units in gpus]
    site = {"backfill": "slurm", "nodes": [{"count": 2, "processors": 64, "partition": ["cpu"]}, *nodes]}
    found = fitting(workload(), *hardware_of(Variant("site", site), workload()))
    assert workload().jobs.filter(pl.all_horizontal(*found))["job_id"].to_list() == [1, *[2] * fits]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"processors": read_processors("cpu=-500")},
            "--processors cpu=-500: site: -372 processors; expected at least 1",
        ),
        (
            {"nodes": read_nodes("+2")},
            "--nodes +2: site has 2 clusters; expected one of them, such as cpu=+2, or a share",
        ),
        ({"nodes": read_nodes("gpus=+2")}, "--nodes gpus=+2: site has no partition 'gpus'; did you mean 'gpu'?"),
        ({"resource": read_resource("gpu=+25%")}, "site does not schedule gpu; did you mean 'gpus'?"),
        (
            {"resource": read_resource("memory=512")},
            "site has 2 clusters with memory; expected one of them, such as cpu:memory=512",
        ),
        ({"processors": read_processors("64")}, "site has 2 clusters; expected one of them, such as cpu=64"),
    ],
)
def test_impossible_sizes_are_one_line(change, words):
    with pytest.raises(SwflowError) as error:
        units(change)
    assert words in str(error.value)


def test_partitions_of_another_cluster_are_named_before_widths():
    nodes = [{"count": 2, "processors": 64, "partition": ["compute"]}]
    with pytest.raises(SwflowError, match="has no partition 'compute'"):
        ask(workload(), [Variant("site", {"backfill": "slurm", "nodes": nodes})])


def test_nodes_of_unknown_size_are_an_error():
    with pytest.raises(SwflowError, match=r"--nodes gpu=\+2: site: the log does not state the nodes of its jobs"):
        hardware_of(Variant("site", SITE, nodes=read_nodes("gpu=+2")), workload(nodes=False))


@pytest.mark.parametrize("text", ["20%", "1.5", "many", "+-2", "", "cpu=", "1e3"])
def test_amounts_that_are_no_size_are_refused(text):
    for read in (read_processors, read_nodes):
        with pytest.raises(SwflowError, match="expected a"):
            read(text)


def test_windows_are_of_the_same_nodes_after_a_change():
    groups = [{"count": 2, "processors": 4}, {"count": 3, "processors": 2}]
    windows = [
        {"from": 0, "until": 9, "processors": 14}, {"from": 5, "until": 9, "nodes": "2-3,5"},
        {"from": 7, "until": None, "nodes": 2},
    ]  # fmt: skip
    more, fewer = ([group | {"count": group["count"] + by} for group in groups] for by in (1, -1))
    assert with_counts({"nodes": groups, "unavailable": windows, "order": "sjf"}, more) == {
        "order": "sjf", "nodes": more, "unavailable": [
            {"from": 0, "until": 9, "nodes": "1-7"}, {"from": 5, "until": 9, "nodes": "2,4,6"},
            {"from": 7, "until": None, "nodes": "2"},
        ],
    }  # fmt: skip
    left = with_counts({"nodes": groups, "unavailable": windows}, fewer)["unavailable"]
    assert [one["nodes"] for one in left] == ["1-3", "2"]
    assert with_counts({"nodes": groups}, [groups[0], groups[1] | {"count": 0}]) == {"nodes": groups[:1]}
