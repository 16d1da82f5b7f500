"""Test schedulers with other orders, backfilling, limits or shares."""

import pytest

from swflow.errors import SwflowError
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.changed_policies import merged, read_limits, read_shares, with_policies

#: A site of two partitions.
CLUSTERS = {
    "order": "fcfs", "backfill": "easy", "dispatch": "partition",
    "clusters": [{"partition": "cpu", "processors": 8}, {"partition": "gpu", "processors": 4}],
}  # fmt: skip

#: A site as `swflow import site` describes it.
IMPORTED = {
    "order": "slurm-multifactor", "backfill": "slurm", "half_life": 604800.0,
    "priority": {"age": 10, "fair_share": 50, "fair_share_of": "fair-tree", "whole_points": True},
    "accounts": {"bio": {"users": {"ada": 1, "bob": 1}}, "chem": {"users": {"bob": 1}}},
    "scheduler_parameters": {"bf_interval": 30, "bf_window": 60, "bf_max_job_test": 100},
    "limits": {"user": {"bob": {"jobs": 2}}, "qos": {"long": {"jobs": 3, "user_jobs": 1}}},
    "nodes": [{"count": 2, "processors": 4}],
}  # fmt: skip


def test_policies_are_applied_to_the_base():
    schedulers = with_policies(
        {"site": CLUSTERS, "easy": {"backfill": "easy"}}, share=["group:physics=3"], backfill=["none"]
    )
    assert list(schedulers) == [
        "site", "easy", "site, share group:physics=3", "site, backfill none",
        "site, backfill none, share group:physics=3",
    ]  # fmt: skip
    shared = schedulers["site, share group:physics=3"]
    assert shared == {**CLUSTERS, "order": "group_usage / group_share", "group_shares": {"physics": 3.0}}
    multifactor = with_policies({"site": {"order": "slurm-multifactor"}}, share=["user:ada=2"])
    assert multifactor["site, share user:ada=2"]["order"] == "slurm-multifactor"


@pytest.mark.parametrize("text", ["group:physics=3", "user:ada=2", "group:physics=3,user:ada=2"])
@pytest.mark.parametrize("options", [
    {}, {"order": "sjf"}, {"order": "fair-share"}, {"order": "slurm-multifactor"},
    {"order": "slurm-multifactor", "priority": {"age": 1000}},
    {"order": "slurm-multifactor", "priority": {"age": 1000, "fair_share": 10, "fair_share_of": "group"}},
])  # fmt: skip
def test_shares_of_groups_and_users_decide_under_every_order(options, text):
    site = {"backfill": "easy", **options}
    Scheduler.of("site", site)
    shared = with_policies({"site": site}, share=[text])[f"site, share {text}"]
    order = Scheduler.of("shared", shared).order
    if order == options.get("order"):
        kinds = {part.partition(":")[0] for part in text.split(",")}
        assert kinds == {options.get("priority", {}).get("fair_share_of", "user")}
    else:
        assert ("group_share" in order) == ("group" in text)


def test_limits_of_each_user_in_a_qos_can_be_changed():
    assert read_limits("qos:normal:user_processors=512") == {"qos": {"normal": {"user_processors": 512}}}
    with pytest.raises(SwflowError, match="unknown limit 'user_processors'; a user has jobs, processors"):
        read_limits("user:user_processors=512")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("user=512", "KIND:LIMIT=NUMBER"), ("users:processors=512", "one of user, group"), ("512", "KIND:LIMIT"),
     ("user:cpus=512", "unknown limit 'cpus'; a user has jobs, processors"), ("user:a:b:jobs=1", "KIND:NAME:LIMIT"),
     ("user:processors=many", "'many' is no limit"), ("qos:a:user_gpus=-4", "'-4' is no limit; expected a whole")],
)  # fmt: skip
def test_bad_limits_are_one_line(text: str, problem: str):
    with pytest.raises(SwflowError, match=rf"--limit: {text!r}: .*{problem}"):
        read_limits(text)


def test_a_limit_is_removed():
    asked = ["qos:long:user_jobs=none", "user:bob:jobs=none,user:jobs=9"]
    found = with_policies({"site": IMPORTED}, limit=asked)
    assert found[f"site, limit {asked[0]}"]["limits"] == {"user": {"bob": {"jobs": 2}}, "qos": {"long": {"jobs": 3}}}
    assert found[f"site, limit {asked[1]}"]["limits"]["user"] == {"bob": {}, "jobs": 9}
    Scheduler.of("site-free", found[f"site, limit {asked[1]}"])
    for text in ("user:jobs=none", "user:eve:jobs=none", "group:bio:jobs=none"):
        with pytest.raises(SwflowError, match=f"--limit {text}: the scheduler has no such limit"):
            with_policies({"site": IMPORTED}, limit=[text])


def test_accounts_that_nothing_uses_any_more_are_left_out():
    options = {
        "order": "slurm-multifactor", "priority": {"age": 1}, "limits": {"group": {"lab": {"jobs": 2}}},
        "accounts": {"bio": {"parent": "lab"}, "lab": {}},
    }  # fmt: skip
    for change in ({"limits": None}, {"limits": {"group": None}}):
        found = merged(options, change)
        assert "accounts" not in found
        Scheduler.of("site-free", found)
    assert merged(options, {"limits": {"user": {"jobs": 3}}})["accounts"] == options["accounts"]
    assert merged(IMPORTED, {"limits": None})["accounts"] == IMPORTED["accounts"]


@pytest.mark.parametrize("text", ["physics=3", "group:physics=0", "group:=3", "group:physics=much"])
def test_bad_shares_are_one_line(text):
    with pytest.raises(SwflowError, match=r"--share: .*; expected user:NAME=SHARE"):
        read_shares(text)


def test_a_changed_option_leaves_those_beside_it():
    changes = {"scheduler_parameters": {"bf_window": 4320}, "limits": {"qos": {"long": {"user_jobs": None}}}}
    found = merged(IMPORTED, changes)
    assert found["scheduler_parameters"] == {"bf_interval": 30, "bf_window": 4320, "bf_max_job_test": 100}
    assert found["limits"] == {"user": {"bob": {"jobs": 2}}, "qos": {"long": {"jobs": 3}}}
    assert merged(IMPORTED, {}) == IMPORTED


def test_limits_and_shares_are_added_to_those_of_the_site():
    limit, share = "user:jobs=9,user:bob:processors=4", "group:chem=3,user:bob=2"
    found = with_policies({"site": IMPORTED}, limit=[limit], share=[share])[f"site, limit {limit}, share {share}"]
    assert found["limits"]["user"] == {"jobs": 9, "bob": {"jobs": 2, "processors": 4}}
    assert found["accounts"] == {
        "bio": {"users": {"ada": 1, "bob": 2.0}}, "chem": {"users": {"bob": 2.0}, "share": 3.0}
    }  # fmt: skip
    for text, error in (("user:eve=2", "no user 'eve' in the accounts"), ("group:art=2", "no group 'art' in the")):
        with pytest.raises(SwflowError, match=error):
            with_policies({"site": IMPORTED}, share=[text])


@pytest.mark.parametrize("order", ["sjf", "fair-share", "slurm-multifactor", "processors"])
@pytest.mark.parametrize("backfill", ["slurm", "none"])
def test_every_order_is_a_valid_scheduler_of_an_imported_site(order, backfill):
    asked = with_policies({"site": IMPORTED}, order=[order], backfill=[backfill])
    for name, options in asked.items():
        Scheduler.of(name, options)
    interval = asked[f"site, order {order}, backfill {backfill}"]["scheduler_parameters"]["bf_interval"]
    assert interval == (-1 if backfill == "none" else 30)
