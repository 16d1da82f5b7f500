"""The conformance suite: cases of at most ten jobs, each with the rule under test and the expected start times."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import polars as pl

from swflow.errors import SwflowError
from swflow.files.yaml import parse_yaml
from swflow.jobs.machine import Machine
from swflow.jobs.table import JOB_COLUMNS, Workload
from swflow.scheduling.option_kinds import Unchecked

FOLDER = Path(__file__).parent / "cases"

#: The default policies, which nearly every simulator supports.
DEFAULT_POLICIES = ("fcfs", "easy")


@dataclass(frozen=True)
class Case:
    """
    A few jobs (submit, run time, processors, estimate; s) with the ids 1, 2, … on one machine under one policy.

    ``statement`` is the tested rule in one sentence, ``source`` the place of its definition, ``why`` the reason of a
    job's expected start time. ``starts`` are the expected start times, ``conventions`` those that are legitimate under
    a named convention. ``windows`` are reservations of processors (from, until, processors), ``after`` has a job's
    preceding job and think time, ``shapes`` its shapes (processors, run time).
    """

    id: str
    policy: str
    rules: Sequence[str]
    statement: str
    source: str
    scheduler: Unchecked
    machine: int
    jobs: Sequence[tuple[float, float, int, float]]
    starts: Sequence[float]
    conventions: Mapping[str, Sequence[float]] = field(default_factory=dict)
    why: Mapping[int, str] = field(default_factory=dict)
    windows: Sequence[tuple[float, float, int]] = ()
    after: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    shapes: Mapping[int, Sequence[tuple[int, float]]] = field(default_factory=dict)

    def workload(self) -> Workload:
        """Return the jobs as a workload."""
        submit, run, processors, estimate = zip(*self.jobs, strict=True)
        count = len(self.jobs)
        after = [self.after.get(job, (None, None)) for job in range(1, count + 1)]
        columns = {
            "job_id": range(1, count + 1),
            "submit_time": submit,
            "run_time": run,
            "processors": processors,
            "estimate": estimate,
            "preceding_job_id": [job for job, _ in after],
            "think_time": [think for _, think in after],
        }
        table = pl.DataFrame(columns, {name: JOB_COLUMNS[name] for name in columns})
        if self.shapes:
            shapes = [
                [{"processors": width, "run_time": float(run)} for width, run in self.shapes.get(job, ())]
                for job in range(1, count + 1)
            ]
            kind = pl.List(pl.Struct({"processors": pl.Int64, "run_time": pl.Float64}))
            table = table.with_columns(shapes=pl.Series(shapes, dtype=kind))
        return Workload(table.sort("submit_time", "job_id"), Machine.of(self.machine), self.id)

    def as_swf(self) -> str:
        """
        Return the case as a log in the Standard Workload Format.

        The header contains what the format has no field for: ``; Unavailable: from until processors`` and
        ``; Shapes: job processors:run_time …``.
        """
        lines = [f"; Version: 2.2\n; Computer: {self.id}\n; MaxJobs: {len(self.jobs)}\n; MaxProcs: {self.machine}"]
        lines += [f"; Unavailable: {start} {end} {processors}" for start, end, processors in self.windows]
        for job, shapes in self.shapes.items():
            lines.append(f"; Shapes: {job} " + " ".join(f"{width}:{run}" for width, run in shapes))
        for job, (submit, run, processors, estimate) in enumerate(self.jobs, 1):
            before, think = self.after.get(job, (-1, -1))
            asked = f"{processors} {estimate} -1"
            lines.append(f"{job} {submit} -1 {run} {processors} -1 -1 {asked} 1 {job} 1 1 1 1 {before} {think}")
        return "\n".join(lines) + "\n"


@cache
def load_cases() -> tuple[Case, ...]:
    """Return all cases, by policy and in the order of their files."""
    cases: list[Case] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        content = parse_yaml(path.read_text())
        cases += [Case(policy=content["policy"], **fields) for fields in content["cases"]]
    return tuple(cases)


def policies() -> list[str]:
    """Return the names of the policies that have cases."""
    return list(dict.fromkeys(case.policy for case in load_cases()))


def cases_of(chosen: Iterable[str]) -> list[Case]:
    """Return the cases of some policies."""
    wanted = list(chosen)
    for name in wanted:
        if name not in policies():
            raise SwflowError(f"--policy {name}: unknown; expected {', '.join(policies())}")
    return [case for case in load_cases() if case.policy in wanted]
