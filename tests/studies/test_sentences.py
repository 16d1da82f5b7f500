"""Test the texts of an answer on made-up schedulers."""

import polars as pl

from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.studies.answer import Question
from swflow.studies.sentences import options_in_words, schedulers_in_words
from swflow.studies.site_scheduler import SiteModel
from swflow.studies.variants import Variant
from swflow.studies.whatif import Answer


def test_schedulers_are_described_by_what_differs_without_names_of_users():
    users = {f"user{number}": 1 for number in range(50)}
    limits = {"user": {name: {"jobs": 2} for name in users}}
    base = {
        "order": "slurm-multifactor", "backfill": "slurm", "priority": {"fair_share": 5, "fair_share_of": "fair-tree"},
        "accounts": {"bio": {"users": users}}, "limits": limits,
        "nodes": [{"count": 1, "processors": 4 + number} for number in range(9)],
    }  # fmt: skip
    found = options_in_words(base)
    assert "user7" not in found
    for words in ("1 accounts with 50 users", "limits of 50 named users", "3 more groups of nodes"):
        assert words in found
    assert options_in_words({"limits": {"user": {"ada": {"jobs": 2}}}}).endswith("limits of 1 named user")
    tiny = Workload(pl.DataFrame({"job_id": [1]}), Machine.of(4), "tiny")
    table = pl.DataFrame({"variant": ["site", "site, limit user:jobs=9"]})
    answer = Answer(table, None, 0)
    lower = {**base, "limits": {"user": {**limits["user"], "jobs": 9}}}
    asked = [Variant("site", base), Variant("site, limit user:jobs=9", lower)]
    lines = schedulers_in_words(Question(SiteModel(tiny, options=base), asked, answer))
    assert lines[1] == "site, limit user:jobs=9: as site, but at most 9 jobs of each user"
    fewer = {**base, "limits": {"user": dict([*limits["user"].items()][1:])}}
    asked = [Variant("site", base), Variant("fewer", fewer)]
    lines = schedulers_in_words(Question(SiteModel(tiny, options=base), asked, answer))
    assert lines[1] == "fewer: as site, but without some limits"
