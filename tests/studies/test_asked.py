"""Test which comparisons a study asks for."""

import pytest

from swflow.errors import SwflowError
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.asked import asked_pairs, check_questions, scheduler_pairs, workload_pairs

SCHEDULERS = {
    "easy": {"backfill": "easy"},
    "fcfs": {"backfill": "none"},
    "deep": {"backfill": "easy", "reservations": 4},
    "wfp3": {"order": "wfp3", "backfill": "easy"},
    "conservative": {"backfill": "conservative"},
    "greedy": {"policy": "swflow.policies:Greedy", "policy_options": {"slack": 2}},
}
OPTIONS = {name: Scheduler.of(name, options).to_dict() for name, options in SCHEDULERS.items() if name != "greedy"} | {
    "log": {"order": "log"}
}
OPTIONS["greedy"] = OPTIONS["fcfs"] | SCHEDULERS["greedy"] | {"own_code": {"swflow.policies:Greedy": "1"}}


def config(names=("log", "easy", "fcfs"), workloads=("{log}",), **study) -> dict:
    runs = [{"workloads": list(workloads), "schedulers": list(names)}]
    return {"logs": None, "schedulers": SCHEDULERS, "studies": {"one": {"logs": ["A", "B"], "runs": runs, **study}}}


def test_all_schedulers_are_compared_with_the_first_or_the_baseline_on_the_same_workload():
    assert asked_pairs(config(), "one") == [("A/fcfs", "A/easy"), ("B/fcfs", "B/easy")]
    assert asked_pairs(config(baseline="fcfs"), "one") == [("A/easy", "A/fcfs"), ("B/easy", "B/fcfs")]
    assert asked_pairs(config(baseline="log"), "one")[:2] == [("A/easy", "A/log"), ("A/fcfs", "A/log")]
    parts = config()
    parts["studies"]["one"]["runs"] += [{"workloads": ["A+wide"], "schedulers": ["wfp3", "fcfs"]}]
    assert asked_pairs(parts, "one")[-1] == ("A+wide/fcfs", "A+wide/wfp3")  # easy has no run of this workload
    parts["studies"]["one"]["baseline"] = "easy"
    assert asked_pairs(parts, "one") == [("A/fcfs", "A/easy"), ("B/fcfs", "B/easy")]


def test_other_studies_do_not_change_the_pairs():
    both = config()
    both["studies"]["two"] = config(["wfp3", "easy"])["studies"]["one"]
    assert asked_pairs(both, "one") == asked_pairs(config(), "one")


def test_a_contrast_compares_schedulers_that_differ_in_it_only():
    """An option without effect, or one of the options of a class, makes no other question."""
    names = ["easy", "fcfs", "deep", "wfp3", "conservative", "greedy", "log"]
    for contrast, expected in {
        "backfill": [("easy", "fcfs"), ("deep", "fcfs"), ("conservative", "fcfs")],
        "reservations": [("deep", "easy")],
        "order": [("wfp3", "easy")],
        "policy": [("greedy", "easy")],
    }.items():
        assert scheduler_pairs(names, OPTIONS, None, contrast) == expected
    assert scheduler_pairs(names, OPTIONS, "conservative", "backfill") == [
        ("fcfs", "conservative"), ("easy", "conservative"), ("deep", "conservative"),
    ]  # fmt: skip


def test_options_of_backfilling_alone_make_no_other_question():
    options = OPTIONS | {"one-start": Scheduler.of("one-start", {"backfill": "easy", "backfill_starts": 1}).to_dict()}
    assert scheduler_pairs(["fcfs", "one-start"], options, None, "backfill") == [("one-start", "fcfs")]
    assert scheduler_pairs(["easy", "one-start"], options, None, "backfill_starts") == [("one-start", "easy")]


def test_workloads_are_compared_only_if_the_study_asks():
    workloads = ["{log}", "{log}+like@{seed}"]
    assert asked_pairs(config(["easy"], workloads, seeds=2), "one") == []
    assert asked_pairs(config(["easy"], workloads, seeds=2, contrast="workload"), "one") == [
        (f"{log}+like@{number}/easy", f"{log}/easy") for log in "AB" for number in (1, 2)
    ]
    assert workload_pairs(["A+x@1", "A+x@2", "A+x+y@2", "A+x+y@3"]) == [("A+x+y@2", "A+x@2")]


def test_a_ranking_compares_all_schedulers():
    found = asked_pairs(config(["log", "easy", "fcfs", "wfp3"], bounds=True), "one")
    assert [pair for pair in found if pair[0][0] == "A"] == [
        ("A/easy", "A/fcfs"), ("A/easy", "A/wfp3"), ("A/fcfs", "A/wfp3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"baseline": "eazy"}, r"studies: one: baseline: 'eazy'; expected one of log, easy, fcfs"),
        ({"contrast": "backfil"}, r"studies: one: contrast: 'backfil' .*; expected one of backfill$"),
        ({"contrast": "workload"}, r"contrast: 'workload' .*; expected one of backfill$"),
        ({"contrast": "order", "workloads": ["{log}", "{log}+x"]}, r"expected one of backfill, workload$"),
        ({"contrast": "order", "names": ["easy"]}, r"no value does; remove it$"),
    ],
)
def test_a_value_that_matches_nothing_is_an_error_with_those_that_do(study, message):
    with pytest.raises(SwflowError, match=message):
        check_questions(config(**study))
    check_questions(config(baseline="fcfs", contrast="backfill") | {"logs": ["nothing"]})
