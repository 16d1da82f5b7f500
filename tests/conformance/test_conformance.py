"""Test that the cases of the conformance suite are correct, and that they find each defect of a simulator."""

import json
import sys
from pathlib import Path

import pytest

import naive
from helpers.cli import call
from swflow.conformance.judge import judge_case
from swflow.conformance.suite import Case, load_cases, policies
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

HERE = Path(__file__).parent
SIMULATOR = f"{sys.executable} {HERE / 'simulator.py'} {{log}} {{processors}} {{policy}}"
CASES = load_cases()

#: The rule that each defect of the simulator violates.
RULES = {
    "no-extra": "extra processors",
    "shadow-from-run-times": "shadow time from estimates",
    "head-not-reserved-again": "next head reserved in the same pass",
    "sorted-by-id": "queue in order of submission",
    "kill-ignored": "kill at the estimate",
}


def naive_starts(case: Case, convention: str = "") -> list[float]:
    """Return the start times of the reference simulator, under a convention."""
    kills = convention == "killed at the estimate" or case.scheduler.get("estimates") == "kill"
    jobs = []
    for number, (submit, run, processors, estimate) in enumerate(case.jobs):
        planned = max(1, estimate if kills else max(run, estimate))
        job = naive.Job(
            number, float(submit), float(min(run, estimate) if kills else run), float(planned), processors, user=number
        )
        if number + 1 in case.after:
            preceding, think = case.after[number + 1]
            job.after, job.think = preceding - 1, float(think)
        if case.shapes:
            shapes = case.shapes.get(number + 1, ((processors, run),))
            job.shapes = [
                (float(time), float(max(1, time * max(run, estimate) / run)), width) for width, time in shapes
            ]
        jobs.append(job)
    options = case.scheduler
    policy = naive.Policy(
        order=options["order"],
        backfill={"easy": "lookahead"}.get(options["backfill"], options["backfill"]),
        lookahead=options.get("reservations", 1),
        allocation=options.get("allocation", "count"),
        shapes=options.get("shapes", "requested"),
        unavailable=list(case.windows),
        event_order="per-event" if convention == "a pass after each event" else "batch",
    )
    machine = naive.Machine(case.machine, policy)
    naive.simulate_centres(jobs, [machine], "round-robin")
    return [machine.starts[number] for number in range(len(jobs))]


def test_there_are_enough_cases_of_few_jobs_for_every_rule() -> None:
    assert len(CASES) >= 40
    assert {rule for case in CASES for rule in case.rules} == {
        "no overtaking", "ties by id", "simultaneous events", "jobs as wide as the machine", "zero run times",
        "early completion", "estimates below run times", "queue in order of submission", "shadow time",
        "extra processors", "shadow time from estimates", "backfilled jobs by estimates", "one reservation",
        "next head reserved in the same pass", "backfill order", "kill at the estimate", "k reservations",
        "a reservation for every job", "compression", "reservations never move later", "priorities",
        "reservations of the machine", "dependencies by user", "moldable jobs", "contiguous allocation",
    }  # fmt: skip
    assert all(len(case.jobs) <= 10 for case in CASES)
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_expected_starts_are_those_of_the_reference_simulator(case: Case) -> None:
    assert naive_starts(case) == list(case.starts)
    for name, starts in case.conventions.items():
        assert naive_starts(case, name) == list(starts) != list(case.starts)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_swflow_starts_every_job_as_expected(case: Case) -> None:
    options = dict(case.scheduler)
    if case.windows:
        options["unavailable"] = [
            {"from": start, "until": end, "processors": processors} for start, end, processors in case.windows
        ]
    if case.after:
        options["feedback"] = "think-times"
    outcomes = simulate(case.workload(), Scheduler.of(case.policy, options)).sort("job_id")
    assert outcomes["start_time"].to_list() == list(case.starts)


def test_a_simulator_written_apart_passes_every_case() -> None:
    for case in CASES:
        if case.policy in ("fcfs", "easy", "easy-kill"):
            judged = judge_case(SIMULATOR, case, 30)
            assert judged.verdict == "pass", (case.id, judged)


@pytest.mark.parametrize(("defect", "rule"), RULES.items())
def test_a_defect_fails_exactly_the_cases_that_name_its_rule(defect: str, rule: str) -> None:
    cases = [case for case in CASES if case.policy in ("fcfs", "easy", "easy-kill")]
    failed = {case.id for case in cases if judge_case(f"{SIMULATOR} {defect}", case, 30).verdict == "fail"}
    assert failed == {case.id for case in cases if rule in case.rules}


def test_the_plain_simulator_passes_through_the_command(tmp_path, capfd) -> None:
    plain = HERE.parents[1] / "benchmarks/plain_simulator.py"
    command = f"{sys.executable} {plain} {{log}} {{processors}} {{policy}}"
    assert call("conformance", "--command", command, "-o", tmp_path / "result.json") == 0
    cases = json.loads((tmp_path / "result.json").read_text())["cases"]
    assert {case["verdict"] for case in cases} == {"pass"} and len(cases) > 25
    assert "extra processors" in capfd.readouterr().out


def test_a_failure_names_the_first_job_and_the_reason(capfd) -> None:
    assert call("conformance", "--command", f"{SIMULATOR} no-extra", "--policy", "easy") == 1
    printed = capfd.readouterr()
    assert "easy-extra-processors: fail: job 3 starts at 10, not 2:" in printed.err
    assert "the head needs 8 of the 10 processors" in printed.err


def test_a_pass_after_each_event_is_a_convention() -> None:
    case = next(case for case in CASES if "a pass after each event" in case.conventions)
    starts = "\\n".join(f"{job},{start}" for job, start in enumerate(case.conventions["a pass after each event"], 1))
    judged = judge_case(f"printf '{starts}'", case, 3600)
    assert (judged.verdict, judged.detail) == ("convention", "a pass after each event")


@pytest.mark.parametrize(
    ("command", "limit", "verdict", "detail"),
    [
        ("sleep 3600", 0.5, "timeout", "no end within 0.5 s"),
        ("sh -c 'echo broken >&2; exit 3'", 3600, "crash", "exit status 3: broken"),
        ("true", 3600, "no output", "no start time of job 1"),
        ("sh -c 'true {out}'", 3600, "no output", "wrote no file"),
    ],
)
def test_a_timeout_or_a_crash_is_a_result(command: str, limit: float, verdict: str, detail: str) -> None:
    judged = judge_case(command, CASES[0], limit)
    assert judged.verdict == verdict and detail in judged.detail


def test_whole_logs_are_compared_job_by_job(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("generate", "lublin", "-o", "demo.swf.gz", "--jobs", 300, "--processors", 64, "--load", 0.9) == 0
    plain = HERE.parents[1] / "benchmarks/plain_simulator.py"
    good = f"{sys.executable} {HERE / 'simulator.py'} {{log}} {{processors}} {{policy}}"
    assert plain.is_file()
    assert call("conformance", "--command", good, "--policy", "easy", "--log", "demo.swf.gz") == 0
    assert "demo.swf.gz, easy: pass: all start times equal" in capfd.readouterr().err
    assert call("conformance", "--command", f"{good} no-extra", "--policy", "easy", "--log", "demo.swf.gz") == 1
    assert "start times differ" in capfd.readouterr().err


def test_bad_calls_are_one_line(capfd) -> None:
    assert call("conformance", "--policy", "nope", "--command", "true") == 1
    assert f"--policy nope: unknown; expected {', '.join(policies())}" in capfd.readouterr().err
    assert call("conformance", "--command", "no-such-program {log}") == 1
    assert "--command 'no-such-program': no such file" in capfd.readouterr().err
    assert call("conformance") == 1
    assert "--command: missing" in capfd.readouterr().err


def test_cases_are_written_as_logs(tmp_path) -> None:
    assert call("conformance", "--cases", tmp_path / "cases", "--policy", "maintenance") == 0
    texts = [path.read_text() for path in sorted((tmp_path / "cases").glob("*.swf"))]
    assert len(texts) == 3 and all("; Unavailable: 20 30 " in text for text in texts)
