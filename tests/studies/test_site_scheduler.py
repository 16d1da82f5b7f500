"""Test schedulers that inherit from the site's: the site, but with another order, limits or shares."""

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.jobs.header import Header
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.site import Partition, partitions_of, with_resources
from swflow.studies.site_scheduler import SiteModel

OPTIONS = {
    "order": "fcfs", "backfill": "easy", "dispatch": "partition",
    "clusters": [
        {"partition": "cpu", "processors": 8}, {"partition": "gpu", "processors": 4, "resources": {"gpus": 2}},
    ],
}  # fmt: skip
PARTITIONS = [Partition(1, "cpu", 9, 8, False), Partition(2, "gpu", 9, 4, False)]


def model(**options) -> SiteModel:
    """Return a site of two partitions, one of which has GPUs."""
    return SiteModel(Workload(pl.DataFrame({"job_id": [1]}), Machine.of(12), "log"), PARTITIONS, {**OPTIONS, **options})


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("site-fair-share", {"order": "fair-share"}),
        ("site-conservative", {"backfill": "conservative"}),
        ("site-fcfs", {"backfill": "none"}),
        ("site-sjbf", {"backfill_order": "sjf"}),
        ("site-capped: {limits: {user: {processors: 4}}}", {"limits": {"user": {"processors": 4}}}),
        ("site-plain: {backfill: none}", {"backfill": "none"}),
    ],
)
def test_a_scheduler_named_after_the_site_keeps_what_it_does_not_name(text, changed):
    assert model().scheduler(text) == (text.partition(":")[0], {**OPTIONS, **changed})


def test_limits_of_partitions_stay_beside_those_of_users():
    shared = {"limits": {"partition": {"cpu": {"processors": 8}}}}
    _, options = model(**shared).scheduler("site-capped: {limits: {user: {jobs: 2}}}")
    assert options["limits"] == {"partition": {"cpu": {"processors": 8}}, "user": {"jobs": 2}}


def test_other_schedulers_inherit_nothing_and_what_they_drop_is_named():
    name, options = model().scheduler("capped: {limits: {user: {processors: 4}}}")
    assert (name, options) == ("capped", {"limits": {"user": {"processors": 4}}})
    assert model().dropped_by(options) == ["the 2 partitions", "backfilling", "gpus"]
    assert model().dropped_by(model().scheduler("easy")[1]) == ["the 2 partitions", "gpus"]
    assert model().dropped_by({"order": "log"}) == model().dropped_by(OPTIONS) == []


def test_limits_and_shares_name_somebody_with_jobs():
    jobs = pl.DataFrame({"job_id": [1, 2], "user_id": [1, 2], "group_id": [1, 1], "queue_id": [1, 1]})
    header = Header({"User": ["1 ada", "2 bob"], "Group": ["1 bio"], "Queue": ["1 normal"]})
    accounts = {"bio": {"parent": "lab"}, "lab": {}, "art": {}}
    options = {"accounts": accounts, "limits": {"qos": {"part": {"jobs": 1}}}}
    site = SiteModel(Workload(jobs, Machine.of(4), "log", header), options=options)
    site.require_names(["user:ada:jobs=1,group:lab:jobs=1", "user:jobs=2"], ["user:bob=2"])
    for limit, problem in (
        ("user:adda:jobs=1", "user 'adda'; did you mean 'ada'?"), ("group:art:jobs=1", "group 'art'; the log has bio"),
        ("qos:part:jobs=4", "qos 'part'; the QOS of a partition limits the jobs of partition:NAME"),
        ("partition:gpu:jobs=4", "partition 'gpu'; the log has no names"),
    ):  # fmt: skip
        with pytest.raises(SwflowError, match=f"--limit {limit}: no job of log has {problem}"):
            site.require_names([limit], [])
    with pytest.raises(SwflowError, match="--share user:eve=2: no job of log has user 'eve'"):
        site.require_names([], ["user:eve=2"])


def test_a_stated_size_below_the_recorded_use_is_a_doubt():
    """With --partition cpu=4 and 12 processors in use, the simulated waits were 30 times the recorded ones."""
    jobs = pl.DataFrame({
        "submit_time": [0.0, 0.0], "wait_time": [0.0, 0.0], "run_time": [60.0] * 2, "requested_time": [60.0] * 2,
        "processors": [8, 4], "partition_id": [1, 1],
    })  # fmt: skip
    (partition,) = partitions_of(jobs, Header({"Partition": ["1 cpu"]}), {"cpu": 8})
    assert partition.doubts == [
        "Partition cpu: 8 processors are stated, but up to 12 were in use at once by the recorded times, so the "
        "simulated waits are too long; correct --partition cpu=N."
    ]
    assert partitions_of(jobs, Header({"Partition": ["1 cpu"]}), {"cpu": 12})[0].doubts == []


def test_the_number_of_a_partition_is_not_the_name_of_another():
    jobs = pl.DataFrame(
        {"submit_time": [0.0] * 3, "wait_time": [0.0] * 3, "run_time": [9.0] * 3, "processors": [4] * 3,
         "requested_time": [9.0] * 3, "partition_id": [1, 2, 3], "gpus": [1, 1, 1]}
    )  # fmt: skip
    found = partitions_of(jobs, Header({"Partition": ["1 2", "2 1", "3 x"]}), {"1": 64, "3": 32})
    assert {one.name: one.processors for one in found} == {"2": 4, "1": 64, "x": 32}
    found = with_resources(found, {"1:gpus": 8, "3:gpus": 5})
    assert {one.name: one.resources["gpus"] for one in found} == {"2": 1, "1": 8, "x": 5}
