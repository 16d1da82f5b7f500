"""Tests of the reader of a Slurm site's configuration."""

import itertools
import re
from pathlib import Path

import pytest
import yaml

from swflow.errors import SwflowError
from swflow.scheduling.named import read_scheduler
from swflow.scheduling.scheduler import Scheduler
from swflow.sites.conf import read_slurm_conf
from swflow.sites.slurm_site import read_site, site_yaml, treatments

CONF = """\
ClusterName=demo   # a comment
SchedulerType=sched/backfill
SchedulerParameters==bf_interval=60,bf_continue,bf_max_job_test=40,bf_max_job_part=9,bf_interval=90
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
AccountingStorageEnforce=limits,qos
priorityweightage=1000
PriorityMaxAge=1-12
PriorityWeightFairshare=5000
PriorityDecayHalfLife=14-0
PriorityWeightPartition=200
PriorityWeightQOS=300
Include nodes.conf
PartitionName=DEFAULT State=UP MaxTime=2-00:00:00
PartitionName=cpu Nodes=n[01-04] \\
    Default=YES PriorityJobFactor=10
PartitionName=long Nodes=n[03-04] PriorityJobFactor=5 QOS=long
PartitionName=gpu Nodes=accelerated
MyNewOption=7
"""

NODES = """\
NodeName=DEFAULT RealMemory=64000
NodeName=n[01-04] CPUs=32
NodeName=g[1-2] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 Gres=gpu:a100:4(S:0-1),lustre:1 Feature=a100,big
NodeName=spare[1-9] CPUs=8 State=FUTURE
NodeSet=accelerated Feature=a100
"""

QOS = "Name|Priority|GrpTRES|GrpJobs|MaxJobsPU\nnormal|0|||\nlong|5|cpu=48|10|2\nhigh|50|||\n"

ASSOC = """\
Account|Par Name|User|Share|MaxJobs|GrpJobs|GrpTRES
root|||1|||
 physics|root||3|||cpu=64
  physics||alice|1|5||
  physics||bob|2|||
 art|root||1|||
  art||alice|1|||
"""

#: The limits of the QOS long.
LONG = {"processors": 48, "jobs": 10, "user_jobs": 2}

RESERVATIONS = """\
ReservationName=maint StartTime=2026-01-05T08:00:00 EndTime=2026-01-05T20:00:00 Duration=12:00:00
   Nodes=n[01-02] NodeCnt=2 CoreCnt=64 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS
   TRES=cpu=64
   Users=root Accounts=(null)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"slurm.conf": CONF, "nodes.conf": NODES, "qos.txt": QOS, "assoc.txt": ASSOC, "res.txt": RESERVATIONS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_nodes_and_partitions_with_defaults_includes_and_continued_lines(folder):
    conf = read_slurm_conf(folder / "slurm.conf")
    assert [(one.name, len(one.nodes)) for one in conf.partitions] == [("cpu", 4), ("long", 2), ("gpu", 2)]
    assert conf.nodes["g1"].cpus == 32
    assert conf.nodes["g1"].gpus == 4
    assert conf.nodes["n03"].memory == 64000
    assert "spare1" not in conf.nodes
    assert conf.partitions[0].text("maxtime") == "2-00:00:00"
    assert str(conf.partitions[1].options["partitionname"].place).endswith("slurm.conf:18")


def test_nodes_have_gpus_memory_and_weights(folder):
    options = read_site(folder / "slurm.conf").options
    assert options["nodes"] == [
        {"count": 2, "processors": 32, "resources": {"memory": 64000}, "partition": ["cpu"]},
        {"count": 2, "processors": 32, "resources": {"memory": 64000}, "partition": ["cpu", "long"]},
        {
            "count": 2, "processors": 32, "resources": {"gpus": 4, "memory": 64000}, "features": ["a100", "big"],
            "partition": ["gpu"],
        },
    ]  # fmt: skip
    assert not {"clusters", "resources"} & options.keys()
    nodes = "NodeName=a[1-2] CPUs=2 RealMemory=9\nNodeName=b CPUs=2 Weight=5\nPartitionName=p Nodes=ALL\n"
    (folder / "slurm.conf").write_text(nodes)
    assert read_site(folder / "slurm.conf").options["nodes"] == [
        {"count": 2, "processors": 2, "weight": 1}, {"count": 1, "processors": 2, "weight": 5}
    ]  # fmt: skip


def test_nodes_of_a_reservation_are_in_a_window(folder):
    more = "ReservationName=two StartTime=2026-01-06 EndTime=2026-01-07 Nodes=n[01,03-04],g1,x9 Flags=SPEC_NODES\n"
    more += "ReservationName=app StartTime=2026-01-06 EndTime=2026-01-07 Nodes=(null) Licenses=app:3 Flags=ANY_NODES\n"
    (folder / "res.txt").write_text(RESERVATIONS + more)
    site = read_site(folder / "slurm.conf", qos=folder / "qos.txt", reservations=folder / "res.txt")
    assert (site.processors, site.nodes) == (4 * 32 + 2 * 32, 6)
    assert site.options["unavailable"] == [
        {"from": "2026-01-05T08:00:00", "until": "2026-01-05T20:00:00", "nodes": "1-2"},
        {"from": "2026-01-06", "until": "2026-01-07", "nodes": "1,3-5"},
    ]
    assert site.options["nodes"] == read_site(folder / "slurm.conf").options["nodes"]
    Scheduler.of("site", site.options)
    notes = {note.text: note for note in site.notes if note.name.startswith("Reservation")}
    assert list(notes) == [
        "maint n[01-02] (2 nodes of partitions)", "two n[01,03-04],g1,x9 (4 nodes of partitions)",
        "app (null) (0 nodes of partitions)",
    ]  # fmt: skip
    assert [note.treatment.simulated for note in notes.values()] == ["yes", "partly", "no"]


@pytest.mark.parametrize(
    ("lines", "nodes"),
    [
        (["PartitionName=p Nodes=ALL"], [(8, 4, None), (2, 16, None)]),
        (["PartitionName=p Nodes=ALL", "PartitionName=q Nodes=n[1-8],g[1-2]"], [(8, 4, None), (2, 16, None)]),
        (["PartitionName=p Nodes=n[1-6]", "PartitionName=q Nodes=n[7-8]"], [(6, 4, "p"), (2, 4, "q")]),
        (
            ["PartitionName=p Nodes=ALL", "PartitionName=q Nodes=n[3-5]", "PartitionName=r Nodes=n[5-6],g1"],
            [(2, 4, "p"), (2, 4, "pq"), (1, 4, "pqr"), (1, 4, "pr"), (2, 4, "p"), (1, 16, "pr"), (1, 16, "p")],
        ),
        (["DownNodes=n[2-3] State=DOWN", "PartitionName=p Nodes=n[1-4]", "PartitionName=q"], [(2, 4, None)]),
    ],
)
def test_partitions_have_groups_of_nodes_in_their_order(folder, lines, nodes):
    (folder / "slurm.conf").write_text("\n".join(["NodeName=n[1-8] CPUs=4", "NodeName=g[1-2] CPUs=16", *lines]) + "\n")
    site = read_site(folder / "slurm.conf")
    assert site.options["nodes"] == [
        {"count": count, "processors": cpus} | ({"partition": list(partitions)} if partitions else {})
        for count, cpus, partitions in nodes
    ]
    assert site.processors == sum(count * cpus for count, cpus, _ in nodes)
    assert not {"clusters", "limits"} & site.options.keys()
    assert site.options["order"] == "job_id"
    Scheduler.of("site", site.options)


def test_partitions_of_nodes_have_the_limits_of_their_qos(folder):
    conf = "AccountingStorageEnforce=limits\nNodeName=n[1-4] CPUs=4\nPartitionName=all Nodes=ALL\n"
    (folder / "slurm.conf").write_text(f"{conf}PartitionName=long Nodes=n[1-2] QOS=long\n")
    options = read_site(folder / "slurm.conf", qos=folder / "qos.txt").options
    assert options["limits"] == {"qos": {"long": LONG}, "partition": {"long": LONG}}
    assert read_site(folder / "slurm.conf").ignored == [
        "limits of QOS long of partition long are not simulated: it is not in the output of `sacctmgr show qos -P` "
        "(--qos)"
    ]


def test_limits_of_gpus_and_memory_are_read(folder):
    conf = "AccountingStorageEnforce=limits\nNodeName=n[1-4] CPUs=4 Gres=gpu:2\nPartitionName=all Nodes=ALL QOS=long\n"
    (folder / "slurm.conf").write_text(conf)
    (folder / "qos.txt").write_text(
        "Name|Priority|GrpTRES|MaxTRESPU\nlong|0|gres/gpu=6,mem=2G,node=3|gres/gpu=2,gres/gpu:a100=1\n"
    )
    (folder / "assoc.txt").write_text(
        "Account|ParentName|User|Share|GrpTRES\nbio|root||1|gres/gpu=4\nbio||ada|1|mem=512M,cpu=3\n"
    )
    site = read_site(folder / "slurm.conf", qos=folder / "qos.txt", associations=folder / "assoc.txt")
    long = {"gpus": 6, "memory": 2048, "user_gpus": 2}
    assert site.options["limits"] == {
        "user": {"ada": {"memory": 512, "processors": 3}}, "group": {"bio": {"gpus": 4}}, "qos": {"long": long},
        "partition": {"all": long},
    }  # fmt: skip
    assert list(site.limits) == ["QOS long: grptres node=3", "QOS long: maxtrespu gres/gpu:a100=1"]
    assert site.ignored == []
    Scheduler.of("site", site.options)


def test_replaced_limits_that_are_not_as_in_slurm_are_named(folder):
    header, over = (
        "Name|Priority|GrpJobs|MaxJobsPU|Flags",
        "urgent|0||9|OverPartQOS,DenyOnLimit",
    )  # partition long has QOS long
    of_users = (
        "GrpJobs of users, such as ada, is simulated as MaxJobs: in Slurm, GrpJobs of a QOS replaces it, and MaxJobsPU "
        "does not"
    )
    of_partitions = "limits of partitions replace those of QOS urgent: in Slurm, its flag OverPartQOS reverses this"
    for levels, jobs, expected in (
        (("long|0|3||", over), "4|7", [of_users, of_partitions]),
        (("long|0|3||", over), "4|", [of_partitions]),
        (("long|0|||", over), "|7", [of_users]),
        (("long|0|3||", "urgent|0|||OverPartQOS"), "4|", []),
        (("long|0|||",), "|7", []),
    ):
        (folder / "qos.txt").write_text("\n".join([header, *levels]) + "\n")
        (folder / "assoc.txt").write_text(
            f"Account|ParentName|User|Share|MaxJobs|GrpJobs\nbio|root||1||5\nbio||ada|1|{jobs}\n"
        )
        site = read_site(folder / "slurm.conf", qos=folder / "qos.txt", associations=folder / "assoc.txt")
        assert [text for text in site.ignored if "replace" in text] == expected


def test_limits_that_count_together_and_accounts_without_parents_are_named(tmp_path):
    conf, qos, members = (tmp_path / name for name in ("slurm.conf", "qos.txt", "assoc.txt"))
    partitions = "PartitionName=all Nodes=ALL QOS=big\nPartitionName=some Nodes=n1 QOS=big\n"
    conf.write_text(f"AccountingStorageEnforce=limits\nNodeName=n[1-4] CPUs=4\n{partitions}")
    together = "partitions all and some have the limits of QOS big each: in Slurm, they have them together"
    for limit, table, expected in (
        ("cpu=8", "Account|ParentName|User|Share\nlab|root||1\nteam|lab||1\n", [together]),
        ("", "Account|ParentName|User|Share\nlab|root||1\nteam|lab||1\n", []),
        ("", "Account|User|Share\nroot||1\nlab||1\nlab|ada|1\n", []),
        ("", "Account|User|Share\nroot||1\nlab||1\nteam||1\n", ["the associations have no column ParentName"]),
    ):
        qos.write_text(f"Name|Priority|GrpTRES\nbig|0|{limit}\n")
        members.write_text(table)
        found = read_site(conf, qos=qos, associations=members).ignored
        assert [text.partition(", so")[0] for text in found] == expected


@pytest.mark.parametrize(
    ("gres", "limit", "gpus", "left"),
    [("gpu:A100:2", "gres/gpu:a100=1", 1, []), ("gpu:a100:2(S:0-1)", "gres/gpu:a100=3,gres/gpu=2", 2, []),
     ("gpu:a100:2", "gres/gpu:h100=1", None, []), ("gpu:a100:2,gpu:h100:1", "gres/gpu:a100=1", None, ["a100=1"]),
     ("gpu:2", "gres/gpu:a100=1", None, ["a100=1"])],
)  # fmt: skip
def test_the_limit_of_the_only_type_of_gpus_is_one_of_all_gpus(folder, gres: str, limit: str, gpus, left: list[str]):
    nodes = f"NodeName=n[1-4] CPUs=4 Gres={gres}\nPartitionName=all Nodes=ALL\n"
    (folder / "slurm.conf").write_text(f"AccountingStorageEnforce=limits\n{nodes}")
    (folder / "qos.txt").write_text(f"Name|Priority|MaxTRESPU\nlong|0|{limit}\n")
    site = read_site(folder / "slurm.conf", qos=folder / "qos.txt")
    assert site.options.get("limits", {}) == ({} if gpus is None else {"qos": {"long": {"user_gpus": gpus}}})
    assert [text.removeprefix("QOS long: maxtrespu gres/gpu:") for text in site.limits] == left


def test_rows_of_a_user_in_partitions_limit_no_other_partition(folder):
    nodes = "NodeName=n[1-4] CPUs=4\nPartitionName=all Nodes=ALL\n"
    (folder / "slurm.conf").write_text(f"AccountingStorageEnforce=limits\n{nodes}")
    lines = [
        "Account|User|Partition|Share|GrpTRES|MaxJobs",
        "bio|ada||1|cpu=4|",
        "bio|ada|all|1|cpu=2|3",
        "bio|bob||1|cpu=3|",
    ]
    (folder / "assoc.txt").write_text("\n".join(lines) + "\n")
    site = read_site(folder / "slurm.conf", associations=folder / "assoc.txt")
    assert site.options["limits"] == {"user": {"ada": {"processors": 4}, "bob": {"processors": 3}}}
    assert list(site.limits) == ["account bio ada in partition all: maxjobs 3, grptres cpu=2"]
    (folder / "assoc.txt").write_text("\n".join(lines).replace("|all|", "||") + "\n")
    with pytest.raises(SwflowError, match=r"assoc.txt:3: a second row of user ada in account bio, .*Partition"):
        read_site(folder / "slurm.conf", associations=folder / "assoc.txt")
    (folder / "assoc.txt").write_text("\n".join([*lines[:2], lines[1]]) + "\n")
    found = read_site(folder / "slurm.conf", associations=folder / "assoc.txt", qos=folder / "qos.txt")
    assert found.options["limits"]["user"] == {"ada": {"processors": 4}}
    (folder / "qos.txt").write_text("Name|Priority|MaxTRESPU|GrpJobs\nlong|0|cpu=2|3\n")  # kinds without associations
    assert not read_site(folder / "slurm.conf", associations=folder / "assoc.txt", qos=folder / "qos.txt").ignored


def test_limits_that_slurm_does_not_enforce_are_said_to_be_ignored(folder):
    (folder / "slurm.conf").write_text("NodeName=n[1-4] CPUs=4\nPartitionName=all Nodes=ALL\n")
    site = read_site(folder / "slurm.conf", qos=folder / "qos.txt", associations=folder / "assoc.txt")
    assert "limits" not in site.options
    assert any(text.startswith("limits of QOS and accounts are not simulated: Account") for text in site.ignored)
    treated = {note.name: note.treatment for note in site.notes}
    assert treated["QOS.GrpTRES"].simulated == treated["Assoc.MaxJobs"].simulated == "no"
    (folder / "qos.txt").write_text("Name|Priority|GrpTRES\nlong|0|cpu=-6\n")
    (folder / "slurm.conf").write_text("AccountingStorageEnforce=safe\nNodeName=n CPUs=4\nPartitionName=all Nodes=n\n")
    with pytest.raises(SwflowError, match=r"qos.txt:2: grptres 'cpu=-6'; expected 0 or more, or -1"):
        read_site(folder / "slurm.conf", qos=folder / "qos.txt")


def test_the_multifactor_priority_becomes_the_order(folder):
    options = read_site(folder / "slurm.conf", qos=folder / "qos.txt", associations=folder / "assoc.txt").options
    assert (options["order"], options["backfill"]) == ("slurm-multifactor", "slurm")
    assert options["scheduler_parameters"] == {"bf_interval": 60, "bf_max_job_test": 40, "bf_max_job_part": 9}
    assert options["half_life"] == 14 * 86400
    assert options["priority"] == {
        "age": 1000,
        "fair_share": 5000,
        "partition": 200,
        "qos": 300,
        "partition_factors": {"cpu": 10, "long": 5, "gpu": 1},
        "qos_factors": {"normal": 0, "long": 5, "high": 50},
        "max_age": 36 * 3600,
        "calc_period": 300,
        "fair_share_of": "fair-tree",
        "whole_points": True,
    }
    assert options["limits"] == {
        "group": {"physics": {"processors": 64, "users": {"alice": {"jobs": 5}}}}, "qos": {"long": LONG},
        "partition": {"long": LONG},
    }  # fmt: skip
    assert options["accounts"] == {
        "physics": {"share": 3, "users": {"alice": 1, "bob": 2}}, "art": {"users": {"alice": 1}}
    }  # fmt: skip


def test_the_minutes_of_running_jobs_and_past_usage_are_read(folder):
    conf = "NodeName=a CPUs=9\nPartitionName=p Nodes=a\nAccountingStorageEnforce=limits\nPriorityType=priority/basic\n"
    members = "Account|ParentName|User|Share|GrpTRESRunMins\nphysics|root||1|cpu=90,mem=5\nphysics||alice|1|cpu=40\n"
    (folder / "assoc.txt").write_text(members)
    (folder / "qos.txt").write_text("Name|Priority|GrpTRESRunMins\nlong|0|cpu=70\n")
    (folder / "usage.txt").write_text(
        "Account|User|RawUsage\nroot||99\n root|root|0\n physics||99\n  physics|alice|60\n  physics|eve|39\n"
    )
    files = {"qos": folder / "qos.txt", "associations": folder / "assoc.txt", "usage": folder / "usage.txt"}
    (folder / "slurm.conf").write_text(conf)
    site = read_site(folder / "slurm.conf", **files)
    assert site.options["limits"] == {
        "group": {"physics": {"processor_minutes": 90}}, "user": {"alice": {"processor_minutes": 40}},
        "qos": {"long": {"processor_minutes": 70}},
    }  # fmt: skip
    assert (site.options["order"], site.options["accounts"]) == ("job_id", {"physics": {}})
    assert [note.treatment.meaning for note in site.notes if note.name == "Usage.RawUsage"] == [
        "there is no weight of fair share"
    ]
    (folder / "slurm.conf").write_text(conf.replace("basic", "multifactor\nPriorityCalcPeriod=2"))
    options = read_site(folder / "slurm.conf", **files).options
    assert (options["order"], options["priority"]) == ("slurm-multifactor", {"calc_period": 120, "whole_points": True})
    Scheduler.of("site", options)
    (folder / "slurm.conf").write_text(conf.replace("basic", "multifactor\nPriorityWeightFairshare=9"))
    options = read_site(folder / "slurm.conf", **files).options
    assert options["accounts"] == {"physics": {"users": {"alice": 1}, "usage": {"alice": 60, "eve": 39}}}
    Scheduler.of("site", options)
    (folder / "usage.txt").write_text("Account|User|NormUsage\n")
    with pytest.raises(SwflowError, match=r"usage.txt:1: no column rawusage; expected the output of `sshare -a -l -P`"):
        read_site(folder / "slurm.conf", **files)


def test_half_of_the_size_is_that_of_requested_nodes(folder):
    (folder / "slurm.conf").write_text(CONF + "PriorityWeightJobSize=501\nPriorityFavorSmall=YES\n")
    priority = read_site(folder / "slurm.conf").options["priority"]
    assert [priority[name] for name in ("size", "nodes", "favor_small")] == [501, 6, True]


def test_jobs_of_a_higher_tier_come_first_whatever_their_priority(folder):
    tiers = CONF.replace("PriorityJobFactor=5", "PriorityJobFactor=5 PriorityTier=7")
    (folder / "slurm.conf").write_text(tiers.replace("Nodes=accelerated", "Nodes=accelerated Priority=3"))
    priority = read_site(folder / "slurm.conf", qos=folder / "qos.txt").options["priority"]
    others = priority["age"] + priority["fair_share"] + priority["qos"]
    points = priority["partition_factors"]
    assert points["long"] > points["gpu"] + others
    assert points["gpu"] > points["cpu"] + others
    assert points["cpu"] == 200  # the weight of partitions, as without tiers
    assert priority["partition"] == points["long"]  # a factor is relative to the largest


def test_tiers_also_precede_the_order_of_submission(folder):
    conf = "NodeName=n[1-4] CPUs=4\nPartitionName=low Nodes=ALL\nPartitionName=high Nodes=ALL PriorityTier=2\n"
    (folder / "slurm.conf").write_text(conf)
    options = read_site(folder / "slurm.conf").options
    assert options["order"] == "slurm-multifactor"
    assert options["priority"] == {"partition": 1, "partition_factors": {"low": 0, "high": 1}, "whole_points": True}
    basic = read_site(folder / "slurm.conf", version="23.02").options["priority"]
    assert basic == {"partition": 1, "partition_factors": {"low": 0, "high": 1}}


def test_without_the_fair_tree_associations_have_the_same_shares(folder):
    tree = read_site(folder / "slurm.conf", associations=folder / "assoc.txt").options
    (folder / "slurm.conf").write_text(CONF + "PriorityFlags=NO_FAIR_TREE\nPriorityCalcPeriod=1\n")
    options = read_site(folder / "slurm.conf", associations=folder / "assoc.txt").options
    changed = {"fair_share_of": "association", "calc_period": 60}
    assert options == tree | {"priority": tree["priority"] | changed}


def test_limits_hold_only_if_slurm_enforces_them(folder):
    (folder / "slurm.conf").write_text(CONF.replace("AccountingStorageEnforce=limits,qos\n", ""))
    options = read_site(folder / "slurm.conf", qos=folder / "qos.txt", associations=folder / "assoc.txt").options
    assert "limits" not in options
    assert options["priority"]["whole_periods"] is True


def test_accounts_have_parents_by_either_name_of_the_column(folder):
    deeper = ASSOC.replace(" art|root", " art|physics").replace("Par Name", "ParentName")
    (folder / "assoc.txt").write_text(deeper)
    options = read_site(folder / "slurm.conf", associations=folder / "assoc.txt").options
    assert {name: one.get("parent") for name, one in options["accounts"].items()} == {"physics": None, "art": "physics"}


def test_the_interval_turns_cycles_off_or_is_a_number(folder):
    text = "NodeName=a CPUs=2\nPartitionName=p Nodes=a\nSchedulerParameters=bf_interval="
    (folder / "slurm.conf").write_text(f"{text}-1\n")
    assert read_site(folder / "slurm.conf").options["scheduler_parameters"] == {"bf_interval": -1}
    (folder / "slurm.conf").write_text(f"{text}soon\n")
    with pytest.raises(SwflowError, match=r"slurm.conf:3: bf_interval: 'soon'; expected a whole number"):
        read_site(folder / "slurm.conf")


def test_passes_that_slurm_never_makes_are_not_simulated(folder):
    text = "NodeName=a CPUs=2\nPartitionName=p Nodes=a\nSchedulerParameters=sched_interval="
    (folder / "slurm.conf").write_text(f"{text}-1\n")
    site = read_site(folder / "slurm.conf")
    assert "scheduler_parameters" not in site.options
    notes = {note.name: note.treatment.simulated for note in site.notes if note.treatment}
    assert notes["SchedulerParameters.sched_interval"] == "no"
    (folder / "slurm.conf").write_text(f"{text}10\n")
    notes = {note.name: note.treatment.simulated for note in read_site(folder / "slurm.conf").notes if note.treatment}
    assert notes["SchedulerParameters.sched_interval"] == "yes"


def test_the_largest_weights_of_slurm_make_a_scheduler(folder):
    tiers = "".join(f"PartitionName=p{tier} Nodes=ALL PriorityTier={tier}\n" for tier in range(1, 9))
    weights = "".join(
        f"PriorityWeight{name}=4294967295\n" for name in ("Age", "Fairshare", "JobSize", "Partition", "QOS")
    )
    (folder / "slurm.conf").write_text(f"PriorityType=priority/multifactor\n{weights}NodeName=n[1-2] CPUs=4\n{tiers}")
    (folder / "qos.txt").write_text("Name|Priority\nhigh|4294967293\n")
    options = read_site(folder / "slurm.conf", qos=folder / "qos.txt").options
    Scheduler.of("site", options)
    priority = options["priority"]
    assert priority["age"] == 4294967295
    points = sorted(priority["partition_factors"].values())
    assert all(high - low > 4 * 4294967295 for low, high in itertools.pairwise(points))


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("PriorityWeightAge=1000000000001", "slurm.conf:1: PriorityWeightAge: 1000000000001; expected at most 1,000,0"),
        ("PriorityWeightAge=9\nPriorityMaxAge=0", "slurm.conf:2: PriorityMaxAge: 0.0; expected above 0"),
        ("SchedulerParameters=bf_window=50000", "slurm.conf:1: bf_window: 50000; expected at most 43,200"),
        ("PriorityWeightAge=900000000000", "slurm.conf: schedulers: site: priority: partition: 1800000000002.0"),
    ],
)
def test_options_that_no_scheduler_can_have_are_refused_at_once(folder, lines, error):
    partitions = "".join(f"PartitionName=p{tier} Nodes=ALL PriorityTier={tier}\n" for tier in (1, 2, 3))
    conf = f"{lines}\nPriorityType=priority/multifactor\nNodeName=n[1-2] CPUs=4\n{partitions}"
    (folder / "slurm.conf").write_text(conf)
    with pytest.raises(SwflowError, match=re.escape(error)):
        read_site(folder / "slurm.conf")


def test_every_option_is_listed_with_its_place_and_effect(folder):
    site = read_site(folder / "slurm.conf", qos=folder / "qos.txt", associations=folder / "assoc.txt")
    notes = {note.name: note for note in site.notes}
    assert notes["MyNewOption"].treatment.simulated == "no"
    assert notes["SchedulerParameters.bf_interval"].text == "60"
    assert notes["QOS.MaxJobsPU"].treatment.simulated == "yes"
    assert notes["ClusterName"].treatment is None
    for line in CONF.splitlines():
        name = line.split("=")[0].strip()
        if "=" in line and "Name" not in name and name not in ("SchedulerParameters", "Default"):
            assert name in notes, name


def test_the_written_scheduler_is_valid_and_names_what_is_left_out(folder):
    site = read_site(folder / "slurm.conf", qos=folder / "qos.txt", associations=folder / "assoc.txt")
    text = site_yaml(site, [folder / "slurm.conf"])
    Scheduler.of("site", yaml.safe_load(text)["schedulers"]["site"])
    assert "# no     MyNewOption=7" in text
    assert "slurm.conf:20" in text


@pytest.mark.parametrize(
    ("conf", "error"),
    [
        (
            "NodeName=a CPUs=2 REPLACE_ME\nPartitionName=p Nodes=a\n",
            "slurm.conf:1: 'REPLACE_ME'; expected Option=Value",
        ),
        ("NodeName=a CPUs=two\nPartitionName=p Nodes=a\n", "slurm.conf:1: CPUs: 'two'; expected a whole number"),
        ("NodeName=a[1-x CPUs=2\nPartitionName=p Nodes=a1\n", "slurm.conf:1: 'a[1-x'; expected a host list"),
        ("NodeName=a CPUs=2\nPartitionName=p Nodes=b\n", "slurm.conf:2: partition p: no line NodeName=b"),
        ("NodeName=a CPUs=2\n", "no line PartitionName"),
        ("include other.conf\n", "slurm.conf:1: Include other.conf: no such file"),
        ("Include slurm.conf\n", "include each other"),
        ("NodeName=a State=DOWN\nPartitionName=p Nodes=a\n", "no partition has nodes that are up"),
        (
            "PriorityType=priority/multifactor\nPriorityWeightAge=5\nPriorityMaxAge=soon\nNodeName=a\n"
            "PartitionName=p Nodes=a\n",
            "slurm.conf:3: PriorityMaxAge=soon; expected a time",
        ),
    ],
)
def test_bad_lines_are_named(tmp_path, conf, error):
    (tmp_path / "slurm.conf").write_text(conf)
    with pytest.raises(SwflowError) as caught:
        read_site(tmp_path / "slurm.conf")
    assert error in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "text", "error"),
    [
        ("qos", "Name|GrpTRES\nx|\n", "no column priority"),
        ("qos", "Name|Priority\nx|1|2\n", ":2: 3 columns instead of 2"),
        ("qos", "", "empty"),
        ("associations", "Account|User|Share\na|b|many\n", ":2: share: 'many'; expected a whole number"),
        ("reservations", "ReservationName=x StartTime=now\n", ":1: x: expected StartTime, EndTime"),
    ],
)
def test_bad_tables_are_named(folder, option, text, error):
    (folder / "bad.txt").write_text(text)
    with pytest.raises(SwflowError) as caught:
        read_site(folder / "slurm.conf", **{option: folder / "bad.txt"})
    assert error in str(caught.value)


def test_the_written_file_is_a_scheduler_of_every_command(folder):
    site = read_site(folder / "slurm.conf")
    file = folder / "site.yaml"
    file.write_text(site_yaml(site, [folder / "slurm.conf"]))
    assert read_scheduler(str(file)) == ("site", dict(site.options))
    file.write_text("schedulers: {a: {order: sjf}, b: {backfill: easy}}")
    assert read_scheduler(f"{file}:b") == ("b", {"backfill": "easy"})
    for text, error in (
        (str(file), "2 schedulers; name one"),
        (f"{file}:c", "no scheduler 'c'"),
        (str(folder / "none.yaml"), "no such file"),
        (str(folder / "qos.yaml"), "no such file"),
    ):
        with pytest.raises(SwflowError, match=error):
            read_scheduler(text)


def test_each_treatment_is_a_known_word():
    found = [one for one in treatments().values() if one is not None]
    assert {one.simulated for one in found} == {"yes", "no", "partly"}


def test_values_that_turn_an_option_off_need_no_note(folder):
    lines = ["PreemptType=preempt/none", "PreemptMode=off", "PriorityWeightQOS= 0", "OverTimeLimit=5", "CompleteWait=0"]
    lines += ["NodeName=a CPUs=2 State=UNKNOWN", "NodeName=b CPUs=2 State=DRAIN", "PartitionName=p Nodes=a,b State=UP"]
    lines += ["PartitionName=q Nodes=a PreemptMode=OFF", "PartitionName=r Nodes=a PreemptMode=REQUEUE"]
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    site = read_site(folder / "slurm.conf")
    assert site.processors == 2
    noted = [note.name for note in site.notes if note.treatment is not None and note.treatment.simulated == "no"]
    assert noted == ["OverTimeLimit"]
    assert [note.text for note in site.notes if note.name == "Partition.PreemptMode"] == ["REQUEUE"]


def test_preemption_by_partition_or_qos(folder):
    nodes = ["NodeName=a CPUs=2", "PartitionName=p Nodes=a PreemptMode=REQUEUE", "PartitionName=s Nodes=a"]
    nodes += ["PartitionName=u Nodes=a PriorityTier=3 PreemptMode=OFF", "PreemptMode=CANCEL"]

    def preemption_with(*lines: str, qos: Path | None = None) -> dict | None:
        (folder / "slurm.conf").write_text("\n".join([*nodes, *lines]) + "\n")
        return read_site(folder / "slurm.conf", qos=qos).options.get("preemption")

    tiers = {"p": 1, "s": 1, "u": 3}
    by_tier = {"partition": tiers, "mode": "cancel", "modes": {"p": "requeue", "u": "off"}}
    assert preemption_with("PreemptType=preempt/partition_prio") == by_tier
    assert preemption_with("PreemptType=preempt/partition_prio", "PreemptMode=OFF") is None
    assert preemption_with() is None
    # Jobs that would be suspended are not preempted; jobs that may not be requeued are cancelled.
    suspends = preemption_with("PreemptType=preempt/partition_prio", "PreemptMode=SUSPEND,GANG", "JobRequeue=0")
    assert suspends == {"partition": tiers, "mode": "requeue", "modes": {"p": "cancel", "s": "off", "u": "off"}}
    more = ["PreemptType=preempt/qos", "PreemptExemptTime=0:01:30", "AuthInfo=cred_expire=300"]
    table = folder / "qos.txt"
    table.write_text("Name|Priority|Preempt|PreemptMode\nlow|0||cluster\nmid|5|low|requeue\nhigh|9|mid,low|cluster\n")
    assert preemption_with(*more, qos=table) == {
        "qos": {"mid": ["low"], "high": ["mid", "low"]}, "qos_priorities": {"mid": 5}, "mode": "cancel",
        "modes": {"mid": "requeue"}, "exempt_time": 90.0, "requeue_delay": 301,
    }  # fmt: skip
    assert "exempt_time" not in preemption_with(*more, "PreemptExemptTime=-1", qos=table)
    Scheduler(**read_site(folder / "slurm.conf", qos=table).options)


def test_boards_have_sockets_and_a_weight_of_qos_needs_their_table(folder):
    node = "NodeName=a Boards=2 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=2 Gres=gpu:x:2,mps:200"
    text = f"{node}\nPartitionName=p Nodes=a\nPriorityType=priority/multifactor\nPriorityWeightQOS= 1000 \n"
    (folder / "slurm.conf").write_text(text)
    site = read_site(folder / "slurm.conf")
    assert (site.processors, site.options["nodes"][0]["resources"]) == (64, {"gpus": 2})
    treatment = {note.name: note.treatment for note in site.notes}
    assert treatment["PriorityWeightQOS"].simulated == "no"
    assert treatment["Node.SocketsPerBoard"].simulated == "yes"


def test_defaults_are_those_of_the_version(folder):
    lines = "NodeName=a CPUs=2 RealMemory=900\nPartitionName=p Nodes=a\nPriorityWeightAge=5\n"
    (folder / "slurm.conf").write_text(lines)
    assert read_site(folder / "slurm.conf").options["order"] == "slurm-multifactor"
    assert read_site(folder / "slurm.conf", version="24.05.3").options["order"] == "slurm-multifactor"
    assert read_site(folder / "slurm.conf", version="23.02").options["order"] == "job_id"
    (folder / "slurm.conf").write_text(f"{lines}FastSchedule=1\n")  # which newer versions do not have
    assert read_site(folder / "slurm.conf").options["order"] == "job_id"
    (folder / "slurm.conf").write_text(f"{lines}SelectType=select/cons_tres\n")
    assert read_site(folder / "slurm.conf").options["nodes"][0]["resources"] == {"memory": 900}
    with pytest.raises(SwflowError, match=r"--slurm-version: 'new'; expected a version such as 23.11"):
        read_site(folder / "slurm.conf", version="new")


def test_limits_of_associations_hold_in_their_account_and_0_allows_no_job(folder):
    conf = "AccountingStorageEnforce=limits\nNodeName=a CPUs=9\nPartitionName=p Nodes=a\n"
    rows = ["Account|ParentName|User|Share|MaxJobs|GrpTRES", "bio|root||1||", "bio||ada|1|3|", "chem||ada|1||cpu=8"]
    rows += ["bio||bob|1|0|", "bio||eve|1||", "chem||eve|1||", "bio||zoe|1|7|"]
    (folder / "slurm.conf").write_text(conf)
    (folder / "assoc.txt").write_text("\n".join(rows) + "\n")
    options = read_site(folder / "slurm.conf", associations=folder / "assoc.txt").options
    assert options["limits"] == {
        "user": {"bob": {"jobs": 0}, "zoe": {"jobs": 7}},
        "group": {"bio": {"users": {"ada": {"jobs": 3}}}, "chem": {"users": {"ada": {"processors": 8}}}},
    }
    Scheduler.of("site", options)


def test_times_of_reservations_and_events_have_a_zone(folder):
    zone = {"time_zone": "Europe/Stockholm"}
    site = read_site(folder / "slurm.conf", qos=folder / "qos.txt", reservations=folder / "res.txt", **zone)
    expected = {"from": "2026-01-05T07:00:00+00:00", "until": "2026-01-05T19:00:00+00:00", "nodes": "1-2"}
    assert site.options["unavailable"] == [expected]
    past = "Cluster|Name|TRES|Start|End|NodeNames\ndemo|maint|cpu=64|2026-01-05T08:00:00|2026-01-05T20:00:00|n[01-02]\n"
    (folder / "res.txt").write_text(past)
    assert read_site(folder / "slurm.conf", reservations=folder / "res.txt", **zone).options["unavailable"] == [
        expected
    ]
    events = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    events += "demo||2026-01-01T00:00:00|2026-01-05T00:00:00||Cluster Registered TRES|\n"
    events += "demo|n03|2026-01-02T00:00:00|2026-01-02T06:00:00|DOWN*|Not responding|slurm(9)\n"
    events += "demo|g1|2026-07-03T12:00:00|Unknown|DRAIN|broken|root(0)\n"
    (folder / "events.txt").write_text(events)
    options = read_site(folder / "slurm.conf", events=folder / "events.txt", **zone).options
    assert options["unavailable"] == [
        {"from": "2026-01-01T23:00:00+00:00", "until": "2026-01-02T05:00:00+00:00", "nodes": "3"},
        {"from": "2026-07-03T10:00:00+00:00", "until": None, "nodes": "5"},
    ]
    Scheduler.of("site", options)
    with pytest.raises(SwflowError, match="--timezone: 'Mars'; expected a time zone"):
        read_site(folder / "slurm.conf", events=folder / "events.txt", time_zone="Mars")


EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"


def test_windows_that_do_not_end_after_their_beginning_are_counted(folder):
    rows = ["2026-01-02T00:00:00|2026-01-02T06:00:00", "2026-01-03T00:00:00|2026-01-03T00:00:00"]
    rows += ["2026-01-05T00:00:00|2026-01-04T00:00:00", "2026-01-06T00:00:00|Unknown"]
    (folder / "events.txt").write_text(EVENTS + "".join(f"demo|n03|{times}|DOWN|x|y\n" for times in rows))
    for zone in (None, "UTC"):
        site = read_site(folder / "slurm.conf", events=folder / "events.txt", time_zone=zone)
        assert [window["until"] is None for window in site.options["unavailable"]] == [False, True]
        (text,) = [text for text in site.ignored if "end after their beginning" in text]
        assert text.startswith("windows that do not end after their beginning are left out: 2, the first of which is ")
        assert "n03 DOWN (2026-01-03T00:00:00 to 2026-01-03T00:00:00" in text and text.endswith("events.txt:3)")
        assert len([note for note in site.notes if note.name.startswith("Reservation")]) == 2


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # The clocks of Stockholm are set back from 03:00 to 02:00 on 2026-10-25, at 01:00 UTC.
        ("2026-10-25T02:50:00|2026-10-25T02:10:00", ("00:50", "01:10")),
        ("2026-10-25T02:10:00|2026-10-25T02:50:00", ("00:10", "00:50")),
        ("2026-10-25T01:30:00|2026-10-25T02:30:00", ("23:30", "00:30")),
        ("2026-10-25T02:30:00|2026-10-25T03:30:00", ("00:30", "02:30")),
        ("2026-10-25T02:10:00|2026-10-25T02:10:00", None),
    ],
)
def test_windows_in_the_hour_that_is_repeated_end_after_their_beginning(folder, times, expected):
    (folder / "events.txt").write_text(f"{EVENTS}demo|n03|{times}|DOWN|x|y\n")
    site = read_site(folder / "slurm.conf", events=folder / "events.txt", time_zone="Europe/Stockholm")
    found = [(one["from"][11:16], one["until"][11:16]) for one in site.options.get("unavailable", ())]
    assert found == ([expected] if expected else [])
