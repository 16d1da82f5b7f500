"""Test the sentences on limits that a variant changes and that others replace, or that replace others."""

import polars as pl
import pytest

from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.studies.answer import Question
from swflow.studies.caveats import changed_limits_in_words
from swflow.studies.changed_limits import replacements_in_words
from swflow.studies.site_scheduler import SiteModel
from swflow.studies.variants import Variant
from swflow.studies.whatif import Answer

SITE = {
    "user": {"ida": {"jobs": 3}, "max": {"processors": 8}},
    "group": {"ice": {"processors": 150, "jobs": 30}},
    "qos": {"rush": {"processors": 96, "user_jobs": 4}},
    "partition": {"big": {"processors": 160}},
}
NODES = {"nodes": [{"count": 2, "processors": 96}]}


def changed(kind: str, name: str, what: str, most: int) -> dict:
    """Return the limits of the site after one change."""
    of_kind = SITE.get(kind, {})
    return {**SITE, kind: {**of_kind, name: {**of_kind.get(name, {}), what: most}}}


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        (("user", "ida", "jobs", 1), [
            "the limit of jobs of user ida does not hold in QOS rush, whose own limit replaces it"
        ]),
        (("user", "ida", "processors", 1), [
            "the limit of processors of user ida does not hold in QOS rush, partition big, whose own limit replaces it"
        ]),
        (("group", "ice", "jobs", 9), []),
        (("qos", "rush", "processors", 9), [
            "the limit of processors of QOS rush does not hold in partition big, whose own limit replaces it",
            "the limit of processors of QOS rush replaces that of user max, group ice",
        ]),
        (("qos", "long", "user_jobs", 9), ["the limit of jobs of each user in QOS long replaces that of user ida"]),
        (("qos", "long", "gpus", 9), []),
        (("partition", "std", "processors", 9), [
            "the limit of processors of partition std replaces that of user max, group ice, QOS rush"
        ]),
    ],
)  # fmt: skip
def test_the_answer_says_which_limits_replace_others(change, sentences):
    before, after = ({"backfill": "slurm", **NODES, "limits": limits} for limits in (SITE, changed(*change)))
    assert replacements_in_words(before, after) == sentences
    assert replacements_in_words(before, before) == []
    assert replacements_in_words({**before, "backfill": "easy"}, {**after, "backfill": "easy"}) == []
    asked = [Variant("site", before), Variant("changed", after)]
    workload = Workload(pl.DataFrame({"job_id": [1]}), Machine.of(4), "tiny")
    found = changed_limits_in_words(
        Question(SiteModel(workload, options=before), asked, Answer(pl.DataFrame(), None, 0))
    )
    assert found == [f"Under changed, as in Slurm: {'; '.join(sentences)}."] * bool(sentences)


def test_a_limit_of_all_and_limits_of_users_in_a_group_are_named():
    before = {"backfill": "slurm", "limits": {"group": {"ice": {"users": {"ida": {"jobs": 3}}}}}}
    after = {**before, "limits": {**before["limits"], "qos": {"user_jobs": 9}}}
    assert replacements_in_words(before, after) == [
        "the limit of jobs of each user in each QOS replaces that of user ida"
    ]


def test_the_size_of_a_partition_replaces_nothing():
    before, after = (
        {"backfill": "slurm", "limits": limits} for limits in (SITE, changed("partition", "std", "processors", 9))
    )
    assert replacements_in_words(before, after) == []
