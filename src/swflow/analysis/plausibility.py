"""Plausibility checks of a log: compare it with its machine and check its internal consistency."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs import table as tables
from swflow.jobs.busy import Use, use_of
from swflow.jobs.earlier import earlier_jobs
from swflow.jobs.eligibility import waits
from swflow.jobs.header import Header
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.site import RESOURCES
from swflow.phrases import counted, percent_of
from swflow.values import DAY, WEEK

#: From most to least severe: impossible values, values that make results doubtful, information.
SEVERITIES = ("error", "warning", "note")

#: A user has a burst in a week with at least this many jobs and this multiple of the median week of all users.
FLURRY_JOBS, FLURRY_WEEKS = 500, 5.0

#: A log has a gap where no job is submitted for at least this many days and this multiple of the mean interval.
GAP_DAYS, GAP_INTERVALS = 3.0, 100.0


#: The columns that the checks need, besides the required columns of a workload.
LOOKED_AT = ("wait_time", "requested_time", "user_id", "partition_id", *RESOURCES)

#: The columns that identify the jobs of a finding.
_NAMED = ("row", "job_id", "submit_time")


@dataclass(frozen=True)
class Finding:
    """
    The result of a check: one of `SEVERITIES`, and the problem with its likely causes.

    ``jobs`` is the number of affected jobs, ``first_job_id`` the id of the first one, ``moment`` the time of the
    finding (UTC), if the log states its start.
    """

    check: str
    severity: str
    message: str
    jobs: int | None = None
    first_job_id: int | None = None
    moment: datetime | None = None


@dataclass(frozen=True)
class _Log:
    """The input of the checks: jobs as `swflow.workload.clean.prepared` returns them, and their context."""

    jobs: pl.DataFrame
    machine: Machine
    header: Header
    whole: bool

    def moment(self, seconds: float | None) -> datetime | None:
        """Return a time of the log as a date and time."""
        start = self.header.start
        if start is None or seconds is None:
            return None
        try:
            return datetime.fromtimestamp(round(start + seconds), UTC).replace(tzinfo=None)
        except (ValueError, OverflowError, OSError):
            return None  # not between the years 1 and 9999

    def when(self, seconds: float) -> str:
        """Return a time of the log as text."""
        moment = self.moment(seconds)
        return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else f"{seconds:,.0f} s"

    def name(self, column: str, number: int) -> str:
        """Return the name of a user, group or queue, with its number."""
        name = self.header.names_of(column).get(number)
        return f"{name} ({number})" if name else str(number)

    def finding(self, check: str, severity: str, message: str, chosen: pl.DataFrame | None = None) -> Finding:
        """Return a finding about the chosen jobs."""
        if chosen is None or chosen.is_empty():
            return Finding(check, severity, message)
        first = chosen.row(0, named=True)
        return Finding(check, severity, message, chosen.height, first["job_id"], self.moment(first["submit_time"]))


def check_log(path: str | os.PathLike[str], processors: int | None = None) -> tuple[list[Finding], Machine, int]:
    """
    Check a log before cleaning, or a workload (.parquet).

    Returns the findings, from most to least severe, the machine that the log was checked against (``processors``, or
    the size that the file states), and the number of jobs.
    """
    from swflow.log.imported import is_log_table, read_log
    from swflow.workload.clean import GUESSED, machine_of, open_workload, prepared
    from swflow.workload.removals import within_limits_only

    if Path(path).suffix == ".parquet" and not is_log_table(path):
        workload = open_workload(path, processors)
        jobs, wrong = within_limits_only(workload.jobs, "jobs")
        malformed = [Finding("values-beyond-limits", "error", wrong)] if wrong else []
        return malformed + check_workload(replace(workload, jobs=jobs)), workload.machine, workload.jobs.height
    log, _ = read_log(path, lenient=True)
    fields, wrong = within_limits_only(log.fields, "log")
    malformed = [Finding("values-beyond-limits", "error", wrong)] if wrong else []
    if fields.is_empty():
        raise SwflowError(f"{path}: {wrong}")
    machine, source = machine_of(fields, log.header, processors, None)
    if log.skipped:
        line, reason = log.skipped[0]
        text = f"{counted(len(log.skipped), 'malformed line')}; the first is {line}: {reason}"
        malformed.append(Finding("malformed-lines", "error", text))
    malformed += [Finding("other-fields", "note", note) for note in log.notes]
    findings = _check(_Log(prepared(fields), machine, log.header, True), GUESSED.get(source), malformed)
    return findings, machine, log.fields.height


def check_workload(workload: Workload) -> list[Finding]:
    """
    Check a workload; check its recorded schedule only if jobs and machine are unchanged from the log.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [0.0, 0.0], "wait_time": [0.0, 0.0],
    ...     "run_time": [60.0, 60.0], "processors": [4, 8], "requested_time": [90.0, 90.0]})
    >>> [(finding.check, finding.severity) for finding in check_workload(Workload(jobs, Machine.of(8), "tiny"))]
    [('use-beyond-machine', 'error')]
    """
    from swflow.workload.clean import guess_of, is_as_recorded

    log = _Log(workload.jobs, workload.machine, workload.header, is_as_recorded(workload))
    return _check(log, guess_of(workload))


def _check(log: _Log, guess: str | None, more: Iterable[Finding] = ()) -> list[Finding]:
    """Return all findings from most to least severe; ``guess`` is the method by which the machine was guessed."""
    read = (
        "wait_time", "run_time", "requested_time", "user_id", "partition_id", "processors", "submit_time",
        "allocated_processors", "status",
    )  # fmt: skip
    missing = [pl.lit(None, tables.JOB_COLUMNS[name]).alias(name) for name in read if name not in log.jobs.columns]
    log = replace(log, jobs=log.jobs.with_columns(missing).with_row_index("row"))
    checks: list[Callable[[_Log], Iterator[Finding]]] = [_identity, _width, _resources, _estimates, _gaps, _flurries]
    if log.whole:
        checks += [_use, _use_of_resources, _waits, _clock]
    found = [*(finding for check in checks for finding in check(log)), *more]
    if guess:
        text = (
            f"the size of the machine is not stated: {log.machine.processors:,} processors ({guess}), which may be too "
            "few; give --processors (clean, whatif: --machine-processors)"
        )
        found.append(Finding("unknown-machine", "warning", text))
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _highest(values: pl.Series) -> float:
    return float(values.to_numpy().max())


def _identity(log: _Log) -> Iterator[Finding]:
    """Find jobs without a submit time or run time, and repeated ids."""
    from swflow.workload.clean import ended_at_once

    jobs = log.jobs
    lost = jobs.filter(pl.col("submit_time").is_null())
    if lost.height:
        yield log.finding("unknown-submit-time", "error", f"{lost.height:,} jobs have no submit time", lost)
    numbers = jobs["job_id"]
    in_order = not numbers.null_count() and bool((numbers.to_numpy()[1:] > numbers.to_numpy()[:-1]).all())
    repeated = jobs.clear() if in_order else jobs.filter(pl.col("job_id").is_duplicated())
    if repeated.height:
        ids = repeated["job_id"].n_unique()
        text = f"{ids:,} job ids are on {repeated.height:,} lines"
        pairs = repeated.with_columns(start=pl.col("submit_time") + pl.col("wait_time")).sort("job_id", "start")
        end = pl.col("start") + pl.col("run_time")
        overlap = pairs.filter((pl.col("start") < end.shift(1).over("job_id")).fill_null(False))
        if overlap.height:
            text += f"; {overlap.height:,} overlap another job of the same id: job steps were imported as jobs"
            yield log.finding("overlapping-steps", "error", text, overlap)
        else:
            text += "; none overlaps: requeued jobs? Give them new numbers (swflow import does this)"
            yield log.finding("repeated-job-ids", "error", text, repeated)
    never = jobs.filter(pl.col("run_time").is_null() | (pl.col("run_time") <= 0))
    if never.height:
        text = (
            f"{never.height:,} jobs ({percent_of(never.height, jobs.height)}) have no run time; cleaning removes them"
        )
        instant = never.filter(ended_at_once())
        if instant.height:
            mean = float(waits(instant).to_numpy().mean())
            text += (
                f". {instant.height:,} of them ran but ended within a second: their waits, {mean:,.0f} s in the mean, "
                "are lost; swflow clean --keep-instant keeps them"
            )
        yield log.finding("no-run-time", "note", text, never)


def _width(log: _Log) -> Iterator[Finding]:
    wide = log.jobs.filter(pl.col("processors") > log.machine.processors)
    if wide.height:
        text = (
            f"{wide.height:,} jobs are wider than the machine of {log.machine.processors:,} processors, the widest by "
            f"{_highest(wide['processors']):,.0f}; cleaning removes them unless the machine is corrected"
        )
        yield log.finding("wider-than-machine", "error", text, wide)


def _resources(log: _Log) -> Iterator[Finding]:
    """Find jobs that demand more of a resource than the machine has."""
    for name, units in log.machine.resources.items():
        if name not in log.jobs.columns:
            continue
        many = log.jobs.filter(pl.col(name) > units)
        if many.height:
            text = (
                f"{many.height:,} jobs need more than the machine's {units:,} {name}, at most "
                f"{_highest(many[name]):,.0f}; leave them out (swflow machine --resource), or state more"
            )
            yield log.finding(f"more-{name}-than-machine", "error", text, many)


def _use_of_resources(log: _Log) -> Iterator[Finding]:
    """Find recorded use of a resource beyond the machine, and the peak use of resources of unknown size."""
    for name in dict.fromkeys((*log.machine.resources, *RESOURCES)):
        if name not in log.jobs.columns:
            continue
        used = log.jobs.with_columns(start=pl.col("submit_time") + pl.col("wait_time"), demand=pl.col(name))
        used = used.filter((pl.col("demand") > 0) & (pl.col("run_time") > 0) & pl.col("start").is_not_null())
        if used.is_empty():
            continue
        units = log.machine.resources.get(name)
        start, run = used["start"].to_numpy(), used["run_time"].to_numpy()
        use = use_of(start, start + run, used["demand"].cast(pl.Int64).to_numpy(), units or 0)
        if units is None:
            text = (
                f"{used.height:,} jobs demand {name}, up to {use.peak:,} at once by the recorded times; simulations "
                f"ignore them unless the units are stated: --resource {name}=N"
            )
            yield log.finding(f"unknown-{name}", "note", text)
        elif use.peak > units:
            share = 100 * use.beyond / use.span
            text = (
                f"by the recorded times {use.peak:,} of {units:,} {name} were in use on {log.when(use.moment)}; beyond "
                f"the machine for {share:.3g} % of the time"
            )
            yield log.finding(f"{name}-use-beyond-machine", "error" if share >= 1 else "warning", text)
        elif use.peak < units / 2:
            text = f"never more than {use.peak:,} of {units:,} {name} were in use: is the number right?"
            yield log.finding(f"{name}-never-full", "note", text)


def _use(log: _Log) -> Iterator[Finding]:
    start = pl.col("submit_time") + pl.col("wait_time")
    ran = log.jobs.select("job_id", "processors", "partition_id", start=start, run="run_time")
    known = ran.select((pl.col("run") > 0) & (pl.col("processors") > 0) & pl.col("start").is_not_null()).to_series()
    ran = ran if known.fill_null(False).all() else ran.filter(known)
    if ran.is_empty():
        text = "no wait times are recorded: the recorded schedule cannot be replayed or compared"
        yield log.finding("no-wait-times", "warning", text)
        return
    machine = log.machine.processors
    peak, moment, beyond, total, area = _used(ran, machine)
    if peak <= machine:
        if peak < machine / 2:
            text = f"never more than {peak:,} of {machine:,} processors were busy: is the machine that large?"
            yield log.finding("never-full", "note", text)
        return
    used, share = area / (machine * total), beyond / total
    running = ran.filter((pl.col("start") <= moment) & (pl.col("start") + pl.col("run") > moment))
    widest = running.sort("processors", descending=True, maintain_order=True).head(3)["job_id"].to_list()
    text = (
        f"by the recorded times {peak:,} of {machine:,} processors were busy on {log.when(moment)}, by "
        f"{running.height:,} jobs (the widest: {', '.join(map(str, widest))}); beyond the machine for "
        f"{100 * share:.3g} % of the time; recorded utilization {used:.3g}. "
        f"Likely: {_likely_causes(log, ran, peak, share)}"
    )
    slight = peak < 1.02 * machine or share < 0.001
    grave = used > 1 or (peak >= 1.2 * machine and share > 0.05)
    severity = "error" if grave else "note" if slight else "warning"
    yield Finding("use-beyond-machine", severity, text, running.height, running["job_id"][0], log.moment(moment))


def _used(ran: pl.DataFrame, machine: int) -> Use:
    """Return the processor use of the recorded schedule of some jobs."""
    start, run, processors = (ran[name].to_numpy() for name in ("start", "run", "processors"))
    return use_of(start, start + run, processors, machine)


def _likely_causes(log: _Log, ran: pl.DataFrame, peak: int, share: float) -> str:
    machine = log.machine.processors
    causes = []
    parts = ran["partition_id"].drop_nulls().unique().to_list()
    peaks = [_used(ran.filter(partition_id=part), machine).peak for part in parts]
    if max(peaks, default=0) <= machine < sum(peaks):
        causes.append(
            f"{len(parts)} partitions, each of which stays within the machine: are they separate machines, and "
            "is the stated size that of one?"
        )
    nodes = log.header.number("MaxNodes")
    if nodes == machine and log.header.number("MaxProcs") is None:
        causes.append(
            "the machine's size may be in nodes, the jobs' in processors (MaxProcs is missing or is MaxNodes)"
        )
    ratio = peak / machine
    if any(abs(ratio - factor) < 0.03 * factor for factor in (2, 4, 8)):
        causes.append(f"hardware threads counted as processors (the peak is {ratio:.2g} times the machine)")
    if share > 0.2:
        causes.append(f"the machine is larger ({peak:,} or more: --processors, clean: --machine-processors)")
        if ratio > 2:
            causes.append("jobs took turns on the same processors (gang scheduling, suspension)")
    elif ratio < 1.1:
        causes.append("times rounded to seconds or minutes, or jobs that shared processors while one ended")
    return "; ".join(causes) or "wrong times or sizes of some of these jobs, suspended jobs, or a machine that changed"


def _waits(log: _Log) -> Iterator[Finding]:
    negative = log.jobs.filter(pl.col("wait_time") < 0)
    if negative.height:
        text = (
            f"{negative.height:,} jobs started before they were submitted, by up to "
            f"{_highest(-negative['wait_time']):,.0f} s: unsynchronized clocks, or different time zones"
        )
        yield log.finding("negative-waits", "warning", text, negative)
    unknown = log.jobs.filter(pl.col("wait_time").is_null())
    if 0 < unknown.height < log.jobs.height:
        text = (
            f"{unknown.height:,} jobs ({percent_of(unknown.height, log.jobs.height)}) have no wait time; "
            "the recorded schedule leaves them out"
        )
        yield log.finding("unknown-waits", "note", text, unknown)


def _clock(log: _Log) -> Iterator[Finding]:
    """Find submit times that decrease while job ids increase."""
    jobs = _sorted(log.jobs.select(_NAMED).filter(pl.col("submit_time").is_not_null()), "job_id", "row")
    back = pl.col("submit_time").cum_max().shift(1) - pl.col("submit_time")
    jumps = jobs.with_columns(back=back).filter(pl.col("back") > 3600)
    if jumps.height:
        text = (
            f"{jumps.height:,} jobs were submitted more than an hour before a job of a lower id, by up to "
            f"{_highest(jumps['back']) / 3600:,.1f} hours: a clock that was set back, or ids not in submission order"
        )
        yield log.finding("clock-jumps", "warning" if jumps.height < 0.01 * jobs.height else "note", text, jumps)


def _estimates(log: _Log) -> Iterator[Finding]:
    jobs = log.jobs
    missing = jobs.filter(pl.col("requested_time").is_null() | (pl.col("requested_time") <= 0))
    if missing.height:
        text = (
            f"{missing.height:,} jobs ({percent_of(missing.height, jobs.height)}) have no estimate; the "
            "simulation uses their run time, so backfilling is better informed than at the site"
        )
        severity = "warning" if missing.height > 0.05 * jobs.height else "note"
        yield log.finding("missing-estimates", severity, text, missing)
    beyond = jobs.filter((pl.col("requested_time") > 0) & (pl.col("run_time") > pl.col("requested_time") * 1.05 + 120))
    if beyond.height > 0.01 * jobs.height:
        text = (
            f"{beyond.height:,} jobs ({percent_of(beyond.height, jobs.height)}) ran past their estimate by more than "
            "5 % and two minutes: limits that were extended or not enforced, or times in another unit"
        )
        yield log.finding("past-estimates", "warning" if beyond.height > 0.2 * jobs.height else "note", text, beyond)


def _sorted(jobs: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
    """Return jobs sorted by two columns; unchanged if they are already sorted."""
    return jobs if tables.is_sorted(jobs, first, second) else jobs.sort(first, second)


def _gaps(log: _Log) -> Iterator[Finding]:
    jobs = _sorted(log.jobs.select(_NAMED).filter(pl.col("submit_time").is_not_null()), "submit_time", "job_id")
    if jobs.is_empty():
        return
    if log.whole and (earlier := earlier_jobs(log.jobs)):
        first, begin = float(jobs["submit_time"][0]), float(jobs["submit_time"][earlier])
        text = (
            f"{earlier:,} jobs were submitted up to {(begin - first) / DAY:,.1f} days before the others and "
            "before any recorded end: they waited or ran when the record began, and whatif does not measure them"
        )
        yield log.finding("earlier-jobs", "note", text, jobs.head(earlier))
        jobs = jobs.slice(earlier)
    span = float(jobs["submit_time"][-1] - jobs["submit_time"][0])
    least = max(GAP_DAYS * DAY, GAP_INTERVALS * span / jobs.height)
    gaps = jobs.with_columns(gap=pl.col("submit_time").diff()).filter(pl.col("gap") > least)
    if gaps.height:
        total = float(gaps["gap"].sum())
        longest = gaps.sort("gap").row(-1, named=True)
        text = (
            f"{gaps.height:,} gaps without submissions, {total / DAY:,.1f} days in all; the longest, "
            f"{longest['gap'] / DAY:,.1f} days, ends on {log.when(longest['submit_time'])}: downtime, or a part of the "
            "log is missing"
        )
        yield log.finding("gaps", "warning" if total > 0.1 * span else "note", text, gaps)


def _flurries(log: _Log) -> Iterator[Finding]:
    """Find users with bursts of jobs."""
    jobs = log.jobs.select(*_NAMED, "user_id").filter(
        pl.col("submit_time").is_not_null() & pl.col("user_id").is_not_null()
    )
    if jobs.is_empty() or jobs["user_id"].n_unique() < 2:
        return
    jobs = jobs.with_columns(week=((pl.col("submit_time") - jobs["submit_time"].min()) / WEEK).floor().cast(pl.Int64))
    weekly = jobs.group_by("week").len()["len"]
    median = float(np.median(weekly.to_numpy()))
    least = max(FLURRY_JOBS, FLURRY_WEEKS * median)
    counted = jobs.lazy().group_by("user_id", "week").agg(burst=pl.len()).filter(pl.col("burst") >= least).collect()
    if counted.is_empty():
        return
    bursts = jobs.join(counted, on=["user_id", "week"], how="inner", maintain_order="left")
    for part in bursts.partition_by("user_id", maintain_order=True):
        user = int(part["user_id"][0])
        low, high = int(part["job_id"].to_numpy().min()), int(part["job_id"].to_numpy().max())
        text = (
            f"user {log.name('user_id', user)} submitted {part.height:,} jobs in {part['week'].n_unique()} weeks, in "
            f"one {_highest(part['burst']):,.0f}, when the median week of all users has {median:,.0f}; a flurry can "
            f'decide the outcome. To remove it: --flurries "user_id == {user} and {low} <= job_id <= {high}"'
        )
        yield log.finding("flurries", "warning", text, part)
