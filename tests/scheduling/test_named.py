"""The predefined schedulers: one meaning of a name in the command, configs, conformance and documentation."""

import re
from pathlib import Path

import pytest
import yaml

from swflow.scheduling.named import KNOWN, PREDEFINED, read_scheduler, redefined
from swflow.scheduling.orders.vocabulary import ORDERS
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.studies.predefined import redefinitions, with_predefined
from swflow.studies.project import _POLICIES

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "config").glob("*.yaml"))


def schedulers_of(path):
    return (yaml.safe_load(path.read_text()) or {}).get("schedulers") or {}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_no_config_gives_a_predefined_name_another_meaning(path):
    assert redefined(schedulers_of(path)) == {}


def test_the_configs_define_schedulers_that_the_command_knows():
    """`sjbf` was refused by the command, and `sjf` had backfilling in configs only."""
    named = {name: options for path in CONFIGS for name, options in schedulers_of(path).items() if name in KNOWN}
    assert {"sjbf", "sjf", "wfp3", "f1", "f1-conservative"} <= named.keys()
    assert all(read_scheduler(name) == (name, KNOWN[name]) for name in named)
    assert redefined(_POLICIES) == {} and "sjbf" in _POLICIES


@pytest.mark.parametrize("path", sorted((ROOT / "src/swflow/conformance/cases").glob("*.yaml")), ids=lambda p: p.stem)
def test_conformance_uses_the_names_in_the_same_sense(path):
    content = yaml.safe_load(path.read_text())
    if content["policy"] in KNOWN:
        assert all(redefined({content["policy"]: case["scheduler"]}) == {} for case in content["cases"])


def test_other_and_missing_options_of_a_predefined_name_are_named():
    assert redefined({"sjbf": {"backfill": "easy"}}) == {"sjbf": "backfill_order None instead of 'estimate'"}
    assert redefined({"easy": {"backfill": "easy", "reservations": 1, "order": "submit_time"}}) == {}
    found = redefined({"easy": {"backfill": "easy", "clusters": [{"processors": 4}]}})
    assert found == {"easy": "clusters [{'processors': 4}]"}


def test_every_predefined_scheduler_is_valid_and_has_a_description():
    for name, one in PREDEFINED.items():
        assert one.about and (name == LOG or Scheduler.of(name, one.options))
    backfills = {name: KNOWN[name].get("backfill") for name in ORDERS}
    assert backfills.pop("fcfs") is None and set(backfills.values()) == {"easy"}


def test_the_documentation_has_the_list():
    page = (
        (ROOT / "docs/reference/schedulers.md")
        .read_text()
        .partition("## Predefined schedulers")[2]
        .partition("\n## ")[0]
    )
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (?:`\{(.*?)\}`)?", page, flags=re.MULTILINE))
    assert rows.keys() == {name for name in PREDEFINED if name not in ORDERS and "-" not in name} | {"fcfs"}
    for name, text in rows.items():
        if name != LOG:
            assert redefined({name: yaml.safe_load(f"{{{text}}}")}) == {}, name
    sources = {one.source for name, one in PREDEFINED.items() if name not in ORDERS and one.source}
    assert sources and all(source in page for source in sources)


def test_what_is_redefined_is_one_line():
    config = {"schedulers": {
        "sjf": {"order": "sjf", "backfill": "none", "title": "SJF"}, "easy": {"reservations": 2, "backfill": "easy"},
        "wfp3": {"order": "-(wait / estimate) ** 3 * processors", "backfill": "easy"}, "mine": {"order": "sjf"},
    }}  # fmt: skip
    assert redefinitions(config) == [
        "schedulers: sjf: redefines the predefined scheduler: backfill 'none' instead of 'easy'",
        "schedulers: easy: redefines the predefined scheduler: reservations 2 instead of 1",
    ]


def test_a_study_names_predefined_schedulers_without_defining_them():
    runs = [{"workloads": ["{log}"], "schedulers": ["log", "f2", "mine", "unknown"]}]
    config = {"schedulers": {"mine": {}}, "studies": {"one": {"runs": runs}, "two": {"runs": [{"schedulers": "all"}]}}}
    assert with_predefined(config)["schedulers"] == {"mine": {}, "f2": {"order": "f2", "backfill": "easy"}}
    assert config["schedulers"] == {"mine": {}}
