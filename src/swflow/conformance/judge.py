"""Run a simulator over the conformance suite and over logs, and judge its start times rule by rule."""

import contextlib
import json
import math
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from swflow.conformance.suite import Case
from swflow.errors import SwflowError, reason_of, shown
from swflow.files.reading import is_file
from swflow.jobs.table import Workload
from swflow.values import Limit

#: The verdicts. Only `FAIL`, `CRASH`, `TIMEOUT` and `NO_OUTPUT` make the command exit with status 1.
PASS, CONVENTION, FAIL, CRASH, TIMEOUT, NO_OUTPUT = "pass", "convention", "fail", "crash", "timeout", "no output"

#: Start times are the same if they differ by at most this, seconds: simulators print rounded times.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Judgement:
    """
    The result of one case or one log under a policy.

    ``detail`` is the convention, the reason of the expected start time, or the last line that the simulator printed.
    ``first_job`` is the first job, by time, whose start time (s) differs; ``different`` is the number of these jobs.
    """

    id: str
    policy: str
    rules: Sequence[str]
    verdict: str
    detail: str = ""
    first_job: int | None = None
    expected: float | None = None
    found: float | None = None
    different: int = 0
    jobs: int = 0

    @property
    def is_wrong(self) -> bool:
        """Whether the simulator violates the rule or wrote no schedule."""
        return self.verdict not in (PASS, CONVENTION)


def judge_case(command: str, case: Case, timeout: float) -> Judgement:
    """
    Run a simulator on a case and judge its start times; stop it after ``timeout`` seconds.

    In the command line, ``{log}``, ``{out}``, ``{processors}`` and ``{policy}`` are replaced.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / f"{case.id}.swf"
        log.write_text(case.as_swf())
        about = Judgement(case.id, case.policy, case.rules, PASS, jobs=len(case.jobs))
        answer = _answer(command, log, case.machine, about, timeout)

    def reason(job: int) -> str:
        why = case.why.get(job)
        return case.statement + (f" Here {why}." if why else "") + f" ({case.source})"

    conventions = ((name, dict(enumerate(starts, 1))) for name, starts in case.conventions.items())
    return _judged(about, answer, dict(enumerate(case.starts, 1)), conventions, reason)


def judge_log(
    command: str, workload: Workload, policy: str, scheduler: Mapping[str, object], timeout: float
) -> Judgement:
    """Run a simulator on a whole workload under a policy and compare every start time with swflow's."""
    from swflow.log.swf import write_swf
    from swflow.scheduling.scheduler import Scheduler
    from swflow.scheduling.simulate import simulate

    def starts(**options: object) -> dict[int, float]:
        outcomes = simulate(workload, Scheduler.of(policy, {**scheduler, **options}))
        return dict(outcomes.select("job_id", "start_time").iter_rows())

    def conventions() -> Iterator[tuple[str, dict[int, float]]]:
        yield "a pass after each event", starts(event_order="per-event")

    expected = starts()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / f"{workload.name}.swf"
        # Field 9 holds the estimate and field 5 the processors that swflow plans with.
        jobs = workload.jobs.with_columns(
            requested_time="estimate", requested_processors="processors", allocated_processors="processors"
        )
        write_swf(log, jobs, {"MaxProcs": [str(workload.machine.processors)]})
        about = Judgement(workload.name, policy, (), PASS, jobs=len(expected))
        answer = _answer(command, log, workload.machine.processors, about, timeout)
    detail = "the first job that differs; later differences can follow from it"
    return _judged(about, answer, expected, conventions(), lambda job: detail)


def _judged(
    about: Judgement,
    answer: dict[int, float] | Judgement,
    expected: Mapping[int, float],
    conventions: Iterable[tuple[str, Mapping[int, float]]],
    reason: Callable[[int], str],
) -> Judgement:
    """Judge start times by the expected ones, else by those under each convention; give the reason of a failure."""
    if isinstance(answer, Judgement):
        return answer
    missing = sorted(expected.keys() - answer.keys())
    if missing:
        return replace(about, verdict=NO_OUTPUT, detail=f"no start time of job {missing[0]}")
    differs = _different(answer, expected)
    if not differs:
        return about
    for name, starts in conventions:
        if not _different(answer, starts):
            return replace(about, verdict=CONVENTION, detail=name)
    job = min(differs, key=lambda job: (min(expected[job], answer[job]), job))
    return replace(
        about, verdict=FAIL, detail=reason(job), first_job=job, expected=expected[job], found=answer[job],
        different=len(differs),
    )  # fmt: skip


def _different(found: Mapping[int, float], expected: Mapping[int, float]) -> list[int]:
    """Return the jobs whose start times differ; an undefined start time differs from every other."""
    return [job for job, start in expected.items() if not abs(found[job] - start) <= TOLERANCE]


# -- the simulator


def _answer(command: str, log: Path, processors: int, about: Judgement, timeout: float) -> dict[int, float] | Judgement:
    """Run the simulator; return the start times by job id, or the judgement if it wrote no schedule."""
    out = log.with_suffix(".out")
    values = {"log": str(log), "out": str(out), "processors": str(processors), "policy": about.policy}
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise SwflowError(f"--command {shown(command)}: {error}; quote it as in a shell") from None
    if not arguments:
        raise SwflowError("--command: empty; expected a program that can be run, such as 'python sim.py {log}'")
    for name, value in values.items():
        arguments = [argument.replace(f"{{{name}}}", value) for argument in arguments]
    printed, said = log.with_suffix(".printed"), log.with_suffix(".said")
    status = _run(arguments, printed, said, out, timeout)
    if isinstance(status, str):
        return replace(about, verdict=TIMEOUT if status.startswith("no end") else CRASH, detail=status)
    if status != 0:
        lines = said.read_text(errors="replace").strip().splitlines() or ["nothing on standard error"]
        return replace(about, verdict=CRASH, detail=f"exit status {status}: {lines[-1][:200]}")
    if "{out}" not in command:
        return read_starts(printed.read_text(errors="replace"))
    if not is_file(out):
        return replace(about, verdict=NO_OUTPUT, detail="the simulator wrote no file {out}")
    return read_starts(out.read_text(errors="replace"))


#: Limit of what a simulator prints or writes for a case or a log.
OUTPUT = Limit(2**28, "bytes of output")

#: Seconds between two checks of a simulator.
_PATIENCE = 0.05


def _run(arguments: Sequence[str], printed: Path, said: Path, out: Path, timeout: float) -> int | str:
    """
    Run a simulator with its output in files; return its exit status, or why it was stopped.

    Processes that it leaves behind are stopped, too.
    """
    until, most = time.monotonic() + timeout, OUTPUT.amount
    with printed.open("wb") as output, said.open("wb") as errors:
        try:
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
            )
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else error
            raise SwflowError(
                f"--command {shown(arguments[0])}: {reason}; expected a program that can be run"
            ) from None
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(_PATIENCE, max(until - time.monotonic(), 0.0)))
                if any(is_file(file) and file.stat().st_size > most for file in (printed, said, out)):
                    return f"more than {most:,} {OUTPUT.what}"
                if process.returncode is not None:
                    return process.returncode
                if time.monotonic() >= until:
                    return f"no end within {timeout:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def read_starts(text: str) -> dict[int, float]:
    r"""
    Read start times by job id from SWF (submit time plus wait time) or from lines of job id and start time.

    The text is SWF, CSV, or fields separated by white space; other lines (headers, comments) are ignored.

    Examples
    --------
    >>> read_starts("job,start\n1,0\n2,10.5\n")
    {1: 0.0, 2: 10.5}
    """
    starts: dict[int, float] = {}
    for line in text.splitlines():
        fields = line.split(";")[0].replace(",", " ").split()
        try:
            numbers = [float(field) for field in fields]
        except ValueError:
            continue
        if len(numbers) < 2 or not math.isfinite(numbers[0]):
            continue
        starts[int(numbers[0])] = numbers[1] + numbers[2] if len(numbers) >= 18 else numbers[1]
    return starts


# -- results


def by_rule(judgements: Iterable[Judgement]) -> dict[tuple[str, str], list[Judgement]]:
    """Return the judgements of cases by policy and rule."""
    found: dict[tuple[str, str], list[Judgement]] = {}
    for one in judgements:
        for rule in one.rules:
            found.setdefault((one.policy, rule), []).append(one)
    return found


def as_json(command: str, judgements: Iterable[Judgement]) -> str:
    """Return the judgements as JSON: the command and one entry per case or log."""
    return json.dumps({"command": command, "cases": [asdict(one) for one in judgements]}, indent=2) + "\n"
