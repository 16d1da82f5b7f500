"""slurm.conf as sites write it: continued lines, included files, sizes that only nodes state, dynamic nodes."""

import json
from pathlib import Path

import pytest

from helpers.steps import executed_lines
from swflow.errors import SwflowError
from swflow.sites.conf import read_slurm_conf
from swflow.sites.slurm_site import read_site, site_yaml

PARTITION = "PartitionName=p Nodes=ALL\n"


@pytest.fixture
def read(tmp_path: Path):
    def read_files(conf: str, *, nodes: str = "", **files: str):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (tmp_path / "slurm.conf").write_text(conf)
        if nodes:
            (tmp_path / "nodes.txt").write_text(nodes)
        return read_site(tmp_path / "slurm.conf", nodes=tmp_path / "nodes.txt" if nodes else None)

    return read_files


@pytest.mark.parametrize(
    ("conf", "size"),
    [
        # Nothing is put between the parts of a continued line.
        ("NodeName=c[0-\\\n3] CPUs=1\\\n6\nPartitionName=p Nodes=c[0-1],\\\nc[2-3] Default=YES\n", (64, 4)),
        ("NodeName=a\\\n CPUs=4\nNodeName=b \\  \nCPUs=2 # two \\\nPartitionName=p Nodes=\\\na,\\\nb\n", (6, 2)),
        ("NodeName=DEFAULT Sockets=2 \\\r\n\tCoresPerSocket=10\r\nNodeName=c\r\nPartitionName=p Nodes=c\r\n", (20, 1)),
        ("NodeName=a CPUs=4 Reason=\"1 \\# 2\" # broken\nPartitionName=p Nodes=a \\\n# the end", (4, 1)),
        ("\ufeffClusterName=x\nNodeName=a CPUs=4\nPartitionName=p Nodes=a", (4, 1)),
        ("NodeName=a CPUs=4 Reason=it's\nPartitionName=p Nodes=ALL State='UP'\n", (4, 1)),
    ],
)  # fmt: skip
def test_lines_are_joined_and_cut_as_slurm_does(read, conf, size):
    site = read(conf)
    assert (site.processors, site.nodes) == size


def test_options_keep_their_values_when_a_line_continues_in_one(read):
    site = read(f"SchedulerParameters=bf_interval=30,\\\nbf_window=2880,\\\nbf_max_job_test=5\nNodeName=a\n{PARTITION}")
    assert site.options["scheduler_parameters"] == {"bf_interval": 30, "bf_window": 2880, "bf_max_job_test": 5}


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("include /etc/slurm/nodes.conf", "nodes_conf"),
        ('Include "/etc/slurm/parts/nodes.conf"', "parts__nodes_conf"),
        ("Include /etc/slurm/conf.d/*", "confd__nodes_conf"),
        ("Include /etc/slurm/%c/nodes.conf\nClusterName=hal", "hal__nodes_conf"),
        ("Include nodes-%h.conf\nSlurmctldHost=ctl1(10.0.0.1)", "nodes-ctl1_conf"),
        ("Include nodes-%h.conf", "nodes-any_conf"),
        ("Include /opt/slurm/etc/*.conf", "nodes_conf"),
    ],
)
def test_files_of_the_cluster_are_found_beside_slurm_conf(read, line, file, tmp_path):
    (tmp_path / "gres.conf").write_text("NodeName=a Name=gpu File=/dev/nvidia0\n")
    if "conf.d" in line:
        (tmp_path / "conf.d").mkdir()
        (tmp_path / "conf.d" / "nodes").write_text("NodeName=a CPUs=4\n")
        file = "unused"
    assert read(f"{line}\n{PARTITION}", **{file: "NodeName=a CPUs=4\n"}).processors == 4


def test_a_file_of_one_of_several_hosts_is_not_guessed(read):
    files = {f"nodes-{host}_conf": "NodeName=a CPUs=4\n" for host in "xy"}
    with pytest.raises(SwflowError, match=r"slurm.conf:1: Include nodes-%h.conf: 2 such files, and no SlurmctldHost"):
        read(f"Include nodes-%h.conf\n{PARTITION}", **files)
    assert read(f"Include nodes-%h.conf\nControlMachine=x\n{PARTITION}", **files).processors == 4


def test_sizes_that_only_nodes_state(read):
    fast = f"FastSchedule=0\nSelectTypeParameters=CR_CPU_Memory\nNodeName=c[0-3] State=UNKNOWN\n{PARTITION}"
    with pytest.raises(SwflowError, match=r"slurm.conf:3: 4 nodes \(c0, …\) without size.*state the processors"):
        read(fast)
    shown = "NodeName=c{} Arch=x86_64 CoresPerSocket=8\n   CPUAlloc=3 CPUTot=16 CPULoad=0.1\n   Gres=gpu:a100:2\n"
    shown += "   RealMemory=64000 AllocMem=0 State=IDLE+DRAIN ThreadsPerCore=1 Weight=1\n   Partitions=p\n\n"
    site = read(fast, nodes="".join(map(shown.format, range(4))))
    group = {"count": 4, "processors": 16, "resources": {"gpus": 2, "memory": 64000}}
    assert (site.processors, site.options["nodes"], site.ignored) == (64, [group], [])
    wrap = {"set": True, "infinite": False, "number": 64000}
    as_json = [{"name": f"c{n}", "cpus": 16, "cores": 8, "real_memory": size, "gres": "gpu:a100:2(S:0-1)",
                "features": [], "partitions": ["p"], "state": ["IDLE"]}
               for n, size in enumerate([64000, wrap, 64000, wrap])]  # fmt: skip
    assert read(fast, nodes=json.dumps({"meta": {}, "nodes": as_json})).options["nodes"] == [group]
    with pytest.raises(SwflowError, match=r"no NodeName=; expected the output of `scontrol show node`"):
        read(fast, nodes='{"nodes": [{"cpus": 3}, 7]}')
    site = read(fast.removeprefix("FastSchedule=0\n"))
    assert (site.processors, "resources" in site.options["nodes"][0]) == (4, False)
    assert [" 1 processor" in site.ignored[0], "memory is not simulated" in site.ignored[1]] == [True, True]
    assert "# Note: 4 nodes (c0, …) counted with 1 processor" in site_yaml(site, ["slurm.conf"])


def test_dynamic_and_cloud_nodes(read):
    conf = "MaxNodeCount=100\nNodeName=a CPUs=4\nNodeName=cloud[1-2] CPUs=8 State=CLOUD\nNodeName=f[1-3] State=FUTURE\n"
    conf += "NodeSet=dyn Feature=burst\nPartitionName=static Nodes=a,cloud[1-2]\nPartitionName=dynamic Nodes=dyn,d9\n"
    site = read(conf)
    assert (site.processors, site.nodes) == (20, 3)
    assert [text.split(":")[0].split(";")[0] for text in site.ignored] == [
        "3 nodes (f1, …) left out", "partition dynamic", "partition dynamic has no nodes that are up"
    ]  # fmt: skip
    shown = "NodeName=d1 CPUTot=32 AvailableFeatures=burst RealMemory=5 State=IDLE+DYNAMIC_NORM Partitions=dynamic\n"
    site = read(conf, nodes=shown)
    assert (site.processors, site.nodes) == (52, 4)
    assert site.options["nodes"][-1] == {
        "count": 1, "processors": 32, "features": ["burst"], "partition": ["dynamic"]
    }  # fmt: skip


@pytest.mark.parametrize("state", ["DOWN", "Inactive", "DRAIN"])
def test_partitions_that_are_not_up_are_left_out(read, state):
    site = read(f"NodeName=a,b CPUs=4\nPartitionName=p Nodes=a State=UP\nPartitionName=q Nodes=a,b State={state}\n")
    assert (site.processors, "partition" in site.options["nodes"][0]) == (4, False)
    assert site.ignored[0].startswith(f"partition q left out: State={state.upper()}; expected State=UP")
    with pytest.raises(SwflowError, match=rf"slurm.conf:2: no partition has nodes .*State={state.upper()}"):
        read(f"NodeName=a CPUs=4\nPartitionName=p Nodes=a State={state}\n")


def test_node_sets_contain_nodes_that_are_defined_later(read):
    site = read("NodeSet=s Feature=x\nPartitionName=p Nodes=s\nNodeName=a CPUs=4 Feature=x\nNodeName=b CPUs=2\n")
    assert (site.processors, site.ignored) == (4, ["1 node (b) left out: in no partition"])


def test_a_line_for_each_node_is_read_in_linear_time(tmp_path):
    def steps(count: int) -> int:
        lines = [f"NodeName=n{i} NodeAddr=10.0.0.{i} CPUs=4 RealMemory={i + 9} Feature=r{i}" for i in range(count)]
        sets = [f"NodeSet=s{i} Feature=r{i}" for i in range(count)]
        (tmp_path / "slurm.conf").write_text("\n".join([*lines, *sets, PARTITION]))
        assert len(read_slurm_conf(tmp_path / "slurm.conf").nodes) == count
        return executed_lines(lambda: read_slurm_conf(tmp_path / "slurm.conf"))

    assert steps(800) < 9 * steps(100)
