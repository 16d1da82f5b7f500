"""Policies in Python: those that ship equal the kernels, and what one must not do is one clear line."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cli import call
from swflow import policies
from swflow.errors import SwflowError
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.plugins import protocol
from swflow.scheduling.plugins.protocol import Profile, plain_jobs, simulate_policy
from swflow.scheduling.plugins.source import load_own, own_digest
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.studies.runs import run as run_analysed


def table(rows):
    """Make a job table of (submit, run, estimate, processors, user)."""
    submit, run, estimate, processors, user = zip(*rows, strict=True)
    return pl.DataFrame(
        {
            "job_id": range(1, len(rows) + 1),
            "submit_time": submit,
            "run_time": run,
            "estimate": estimate,
            "processors": processors,
            "user_id": user,
        },
        schema_overrides=dict.fromkeys(("submit_time", "run_time", "estimate"), pl.Float64),
    ).sort("submit_time", "job_id")


def starts(jobs, machine, policy):
    run, estimate = jobs["run_time"].to_numpy(), jobs["estimate"].to_numpy()
    planned = np.maximum(np.maximum(run, estimate), 1.0)
    return simulate_policy(plain_jobs(jobs, planned), run.tolist(), machine, policy, "mine:Policy")


job = st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(1, 20), st.integers(1, 6), st.integers(1, 3))


@pytest.mark.parametrize(("policy", "backfill"), [(policies.Fcfs, "none"), (policies.Easy, "easy")])
@given(rows=st.lists(job, min_size=1, max_size=40))
def test_the_examples_are_the_kernels(policy, backfill, rows):
    jobs = table(rows)
    expected = simulate(Workload(jobs, Machine.of(6), "random"), Scheduler(backfill=backfill))["start_time"]
    assert starts(jobs, 6, policy()).tolist() == expected.to_list()


@pytest.mark.archive
@pytest.mark.parametrize(("policy", "backfill"), [(policies.Fcfs, "none"), (policies.Easy, "easy")])
def test_the_examples_are_the_kernels_on_kth(traces, policy, backfill):
    from swflow.workload.clean import open_workload

    kth = open_workload(traces / "KTH-SP2-1996-2.1-cln.swf.gz")
    expected = simulate(kth, Scheduler(backfill=backfill))["start_time"].to_numpy()
    assert (starts(kth.jobs, 100, policy()) == expected).all()


@pytest.mark.parametrize("policy", [policies.Slack, policies.FairShare, policies.LearnedRunTimes])
@given(rows=st.lists(job, min_size=1, max_size=40))
@settings(max_examples=60)
def test_every_policy_starts_every_job_within_the_machine(policy, rows):
    jobs = table(rows)
    begun = starts(jobs, 6, policy())
    ended, wide = begun + jobs["run_time"].to_numpy(), jobs["processors"].to_numpy()
    assert (begun >= jobs["submit_time"].to_numpy()).all()
    for moment in begun:
        assert wide[(begun <= moment) & (moment < ended)].sum() <= 6


@given(rows=st.lists(job, min_size=1, max_size=25), slack=st.sampled_from([0.0, 0.5, 2.0]))
def test_no_job_starts_after_its_deadline(rows, slack):
    policy = policies.Slack(slack)
    jobs = table(rows)
    begun = starts(jobs, 6, policy)
    assert all(start <= policy.deadlines[number] + 1e-6 for number, start in enumerate(begun))


def test_a_plan_made_anew_that_breaks_a_promise_is_not_followed():
    # twelve jobs end at once, far sooner than they said; in the order of deadlines the plan is then worse than it was
    rows = [(0, 0, 1, 1, 1)] * 12 + [(0, 2, 1, 5, 1), (0, 0, 1, 2, 1), (1, 3, 1, 5, 1)]
    policy = policies.Slack(0.0)
    begun = starts(table(rows), 6, policy)
    assert all(start <= policy.deadlines[number] for number, start in enumerate(begun))


def test_a_job_that_starts_early_may_leave_its_old_place_to_another_one():
    # the place that one had in the plan is now, once a shorter one has left it
    rows = [
        (0, 7, 7, 2, 1), (1, 2, 4, 2, 1), (2, 2, 3, 2, 1), (2, 2, 9, 4, 1), (2, 4, 8, 1, 1), (2, 7, 9, 1, 1),
        (4, 3, 4, 4, 1), (7, 1, 1, 2, 1), (7, 3, 7, 3, 1), (8, 4, 5, 1, 1), (8, 6, 7, 4, 1),
    ]  # fmt: skip
    policy = policies.Slack(1.0)
    begun = starts(table(rows), 4, policy)
    assert all(start <= policy.deadlines[number] for number, start in enumerate(begun))


def test_the_user_who_had_less_goes_first():
    # user 1 has had the machine for 100 s; then both want it at once
    jobs = table([(0, 100, 100, 4, 1), (10, 5, 5, 4, 1), (20, 5, 5, 4, 2)])
    assert starts(jobs, 4, policies.FairShare()).tolist() == [0, 105, 100]
    assert starts(jobs, 4, policies.Easy()).tolist() == [0, 100, 105]


def test_who_is_taken_for_short_backfills_first():
    # user 1's jobs always last a second, user 2's all their estimate; then each wants the processor beside the head
    rows = [(10 * n, 1 if n % 2 else 9, 9, 1, 1 if n % 2 else 2) for n in range(1000)]
    rows += [(20_000, 100, 100, 3, 3), (20_001, 50, 50, 4, 3), (20_002, 9, 9, 1, 2), (20_003, 1, 9, 1, 1)]
    begun = starts(table(rows), 4, policies.LearnedRunTimes(every=500))
    easy = starts(table(rows), 4, policies.Easy())
    assert easy[-2:].tolist() == [20_002, 20_011]
    assert begun[-2:].tolist() == [20_002, 20_011]  # the first was alone when it came
    both = [*rows[:-3], (20001, 50, 50, 4, 3), (20002, 9, 9, 1, 2), (20002, 1, 9, 1, 1)]
    assert starts(table(both), 4, policies.Easy())[-2:].tolist() == [20_002, 20_011]
    assert starts(table(both), 4, policies.LearnedRunTimes(every=500))[-2:].tolist() == [20_003, 20_002]


def test_a_profile_finds_places_between_reservations():
    profile = Profile(0.0, 2, [(10.0, 2)])
    profile.reserve(10.0, 10.0, 3)
    assert profile.earliest(2, 10.0) == 0.0
    assert profile.earliest(2, 11.0) == 20.0
    assert profile.earliest(1, 100.0) == 0.0
    assert profile.earliest(5, 1.0) == np.inf


class Broken:
    """What a policy must not do, by name."""

    def __init__(self, fault):
        self.fault = fault
        self.everybody = []

    def on_submit(self, now, job):
        self.everybody.append(job)

    def decide(self, now, queue, running, machine):
        return getattr(self, self.fault)(now, queue, machine)

    def nothing(self, now, queue, machine):
        return []

    def twice(self, now, queue, machine):
        return [queue[0], queue[0]]

    def too_many(self, now, queue, machine):
        return queue

    def again(self, now, queue, machine):
        return [self.everybody[0]]

    def no_job(self, now, queue, machine):
        return [17]

    def fails(self, now, queue, machine):
        return 1 / 0

    def dozes(self, now, queue, machine):
        machine.wake_at(now + 1)
        return []

    def wakes_at_once(self, now, queue, machine):
        machine.wake_at(now)
        return []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("nothing", "3 jobs are never started, the first of them job 1"),
        ("twice", r"decide at 0 s started job 1 twice"),
        ("too_many", r"decide at 1 s started jobs of 5 processors, but 1 are free"),
        ("again", r"decide at 1 s started job 1, which runs already"),
        ("no_job", "returned 17, which is not a job of the queue"),
        ("fails", r"decide: .*test_policy.py:\d+: ZeroDivisionError: division by zero"),
        ("dozes", "called wake_at 10,000 times on an idle machine"),
        ("wakes_at_once", r"ValueError: wake_at: 0 s is not later than now"),
    ],
)
def test_what_a_policy_must_not_do_is_said(fault, says):
    jobs = table([(0, 10, 10, 3, 1), (1, 10, 10, 3, 1), (1, 10, 10, 2, 1)])
    with pytest.raises(SwflowError, match=f"^policy: mine:Policy: .*{says}") as error:
        starts(jobs, 4, Broken(fault))
    assert "\n" not in str(error.value)


def test_a_class_that_decides_nothing_is_refused():
    with pytest.raises(SwflowError, match=r"policy: mine:Policy: has no method decide\(now, queue, running, machine\)"):
        starts(table([(0, 1, 1, 1, 1)]), 4, object())


def test_own_code_is_found_beside_and_its_edits_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    helper, mine = tmp_path / "helper.py", tmp_path / "mine.py"
    helper.write_text("FACTOR = 2\n")
    mine.write_text('"""Mine."""\nfrom helper import FACTOR\n\n\ndef favour(estimate):\n    return FACTOR * estimate\n')
    assert load_own("mine:favour", "order")(3) == 6
    before = own_digest("mine:favour")
    assert own_digest("mine.py:favour") == before
    mine.write_text(mine.read_text().replace("Mine.", "Other words.") + "# and more\n")
    assert own_digest("mine:favour") == before
    helper.write_text("FACTOR = 3\n")
    assert own_digest("mine:favour") != before


@pytest.mark.parametrize("where", [".", "policies"])
def test_edits_of_the_files_that_own_code_names_count(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    (tmp_path / where).mkdir(exist_ok=True)
    weights, mine = tmp_path / where / "my weights.txt", tmp_path / where / "mine.py"
    mine.write_text(
        "from pathlib import Path\n\nHERE = Path(__file__).parent\nNAME, OTHER = 'my weights.txt', 'x\\0' * 999\n\n\n"
        "def favor(estimate):\n    return float((HERE / NAME).read_text()) * estimate\n"
    )
    own = f"{where}/mine.py:favor"
    missing = own_digest(own)
    weights.write_text("2")
    before = own_digest(own)
    assert before != missing and load_own(own, "order")(3) == 6
    weights.write_text("3")
    assert own_digest(own) not in (before, missing)
    weights.write_text("2")
    assert own_digest(own) == before


@pytest.mark.parametrize(
    ("text", "source", "says"),
    [
        ("nowhere:favour", "", r"order: nowhere: no such Python file or module"),
        ("mine:favor", "def favour(estimate):\n    return estimate\n", r"mine has no 'favor'; did you mean 'favour'"),
        ("mine:favour", "def favour(:\n", r"order: .*mine.py:1: invalid Python"),
        ("mine:favour", "\nraise OSError('no\\nluck')\n", r"order: mine: .*mine.py:2: OSError: no luck"),
    ],
)
def test_own_code_that_cannot_be_loaded_is_one_line(tmp_path, monkeypatch, text, source, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(SwflowError, match=says) as error:
        load_own(text, "order")
    assert not re.search(r"\n", str(error.value))


FAVOUR = """
import math


def favour(wait, estimate, processors):
    return -((wait / estimate) ** 3) * processors


def shortest(estimate):
    return estimate


def grouped(wait, estimate, processors, unit=2.0):
    sizes = {"few": 1.0, "many": unit}
    return -((wait / estimate) ** 3) * processors * sizes["few"]


def weighted(wait, factor=-1.0, estimate=0.0, power=3, processors=1):
    return factor * (wait / estimate) ** power * processors


def broken(wait, estimate):
    if wait > 3:
        raise ValueError("no\\npatience")
    return estimate


def unknown(width):
    return width


number = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FAVOUR)
    return tmp_path


@pytest.fixture
def crowd():
    draw = np.random.default_rng(5)
    rows = [
        (int(draw.integers(0, 300)), int(run), int(run * draw.integers(1, 4)), int(draw.integers(1, 7)), 1)
        for run in draw.integers(1, 40, 150)
    ]
    return Workload(table(rows), Machine.of(6), "crowd")


@pytest.mark.compiled
@pytest.mark.parametrize("allocation", ["count", "first-fit"])
def test_a_function_of_ones_own_is_an_order(own, crowd, allocation, recwarn):
    def start(order):
        return simulate(crowd, Scheduler(order=order, backfill="easy", allocation=allocation))["start_time"].to_list()

    assert start("mine:favour") == start("wfp3") != start("fcfs")
    assert start("mine:shortest") == start("sjf")
    assert start("mine:weighted") == start("wfp3")  # its own defaults lie between the attributes of the job
    assert not [warning for warning in recwarn if "runs as Python" in str(warning.message)]
    with pytest.warns(UserWarning, match="order: mine:grouped runs as Python, about 100 times slower"):
        assert start("mine:grouped") == start("wfp3")


@pytest.mark.compiled
def test_an_error_inside_a_function_is_one_line(own, crowd):
    with (
        pytest.warns(UserWarning, match="runs as Python"),
        pytest.raises(SwflowError, match=r"^order: mine:broken: .*mine.py:\d+: ValueError: no patience$"),
    ):
        simulate(crowd, Scheduler(order="mine:broken", backfill="easy"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"order": "mine:unknown"},
            r"order: .*mine.py:\d+: mine:unknown takes 'width'.*; it may take now, submit_time",
        ),
        ({"order": "mine:number"}, r"order: mine:number is no function"),
        ({"policy": "mine"}, r"policy: 'mine'; expected module:Name or file.py:Name"),
        ({"policy": "mine:Mine"}, r"policy: mine has no 'Mine'"),
        (
            {"policy": "swflow.policies:Easy", "backfill": "easy"},
            "backfill: not used by the policy swflow.policies:Easy",
        ),
        (
            {"policy": "swflow.policies:Easy", "prediction": "system"},
            "prediction: not available to the policy swflow.policies:Easy",
        ),
        ({"policy_options": {"slack": 2}}, "policy_options: there is no policy"),
        (
            {"policy": "swflow.policies:Easy", "policy_options": [2]},
            "policy_options: .*; expected names with their values",
        ),
    ],
)
def test_what_is_no_policy_is_refused_when_the_config_is_read(own, options, says):
    with pytest.raises(SwflowError, match=says) as error:
        Scheduler.of("mine", options)
    assert "\n" not in str(error.value)


def test_a_policy_is_a_scheduler(crowd):
    easy = simulate(crowd, Scheduler(policy="swflow.policies:Easy"))
    assert easy.equals(simulate(crowd, Scheduler(backfill="easy")))
    with pytest.raises(SwflowError, match=r"policy: swflow.policies:Slack: TypeError: .*slak"):
        simulate(crowd, Scheduler(policy="swflow.policies:Slack", policy_options={"slak": 2}))


def test_an_edit_of_a_policy_is_another_run_and_nothing_else_is(own):
    def described(**options):
        return Scheduler(**options).to_dict()

    mine, easy = described(order="mine:favour"), described(backfill="easy")
    assert Scheduler.of("mine", mine).to_dict() == mine
    (own / "mine.py").write_text(FAVOUR.replace("** 3", "** 2"))
    assert described(order="mine:favour") != mine
    assert described(backfill="easy") == easy


def test_a_policy_that_returns_none_is_told_what_to_return(own, crowd):
    (own / "none.py").write_text("class Silent:\n    def decide(self, now, queue, running, machine):\n        pass\n")
    says = r"^policy: none:Silent: .*none.py:2: decide at .* returned None; expected a list of jobs of the queue, \[\]"
    with pytest.raises(SwflowError, match=says):
        simulate(crowd, Scheduler(policy="none:Silent"))


@pytest.mark.compiled
@pytest.mark.parametrize(("value", "words"), [("'abc'", "a string"), ("None", "None"), ("str(wait)", "a string")])
def test_an_order_that_returns_no_number_is_one_line(own, crowd, value, words, recwarn):
    (own / "odd.py").write_text(f"def odd(wait):\n    return {value}\n")
    with pytest.raises(SwflowError, match=rf"^order: .*odd.py:1: odd:odd returns {words}; expected a number$"):
        simulate(crowd, Scheduler(order="odd:odd"))
    assert not recwarn.list


@pytest.mark.compiled
def test_an_order_that_cannot_be_compiled_warns_once_with_its_line(own, crowd):
    (own / "slow.py").write_text("# a comment\ndef slow(wait):\n    return {'a': wait}['a']\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            run_analysed(crowd, Scheduler(order="slow:slow"))
    (warning,) = caught
    assert (Path(warning.filename).name, warning.lineno) == ("slow.py", 2)
    assert str(warning.message).startswith("order: slow:slow runs as Python, about 100 times slower: ")


def test_a_package_names_its_policy(tmp_path, monkeypatch):
    (tmp_path / "shortest_first.py").write_text(
        "class Shortest:\n"
        "    def decide(self, now, queue, running, machine):\n"
        "        free = machine.free\n"
        "        for job in sorted(queue, key=lambda job: job.estimate):\n"
        "            if job.processors <= free:\n"
        "                free -= job.processors\n"
        "                yield job\n"
    )
    about = tmp_path / "shortest_first-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shortest-first\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[swflow.policies]\nshortest = shortest_first:Shortest\n")
    with pytest.raises(
        SwflowError, match=r"^policy: 'shortest'; expected module:Name or file\.py:Name, or a name that"
    ):
        Scheduler(policy="shortest")
    monkeypatch.syspath_prepend(tmp_path)
    scheduler = Scheduler(policy="shortest")
    assert scheduler.policy == "shortest_first:Shortest"
    assert list(scheduler.to_dict()["own_code"]) == ["shortest_first:Shortest"]
    outcomes = simulate(Workload(table([(0, 10, 10, 1, 1), (0, 5, 5, 1, 1)]), Machine.of(1), "two"), scheduler)
    assert outcomes["start_time"].to_list() == [5, 0]


def test_a_slow_policy_says_how_far_it_is(tmp_path, monkeypatch, capfd):
    """A policy ran for minutes without a word."""
    monkeypatch.setattr(protocol, "SILENCE", 0.0)
    monkeypatch.setattr(protocol, "time", SimpleNamespace(monotonic=iter(range(1, 999)).__next__))
    jobs = table([(0, 10, 10, 1, 1), (5, 10, 10, 1, 1), (20, 1, 1, 1, 1)])
    write_workload(Workload(jobs, Machine.of(2), "tiny"), tmp_path / "tiny.parquet")
    assert call("simulate", tmp_path / "tiny.parquet", "--policy", "swflow.policies:Fcfs") == 0
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("policy swflow.policies:Fcfs:")]
    assert "policy swflow.policies:Fcfs: 1 of 3 jobs submitted" in said
    assert said[-1] == "policy swflow.policies:Fcfs: 3 of 3 jobs submitted"
