"""The rules that remove jobs when a log is cleaned, and the limits of its numbers."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.conditions import condition
from swflow.jobs.machine import MOST_PROCESSORS, Machine
from swflow.jobs.table import JOB_COLUMNS, LONGEST_TIME, SWF_FIELDS
from swflow.log.settings import LENIENT, RULES


def without_removed(jobs: pl.DataFrame, rules: Iterable[tuple[str, pl.Expr]]) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the jobs that no rule removes, and the number of removed jobs by reason."""
    removed = {}
    for reason, expression in rules:
        kept = jobs.filter(~expression.fill_null(False))
        if kept.height < jobs.height:
            removed[reason] = jobs.height - kept.height
        jobs = kept
    return jobs, removed


def no_job_left(name: str, read: int, removed: Mapping[str, int]) -> SwflowError:
    """Return the error for a log without remaining jobs."""
    return SwflowError(f"clean: {name}: all {read:,} jobs were removed: {describe(removed)}")


def describe(removed: Mapping[str, int]) -> str:
    """Format the number of removed jobs per reason."""
    return ", ".join(f"{count:,} {reason}" for reason, count in removed.items()) or "none"


def require_unique(ids: np.ndarray, name: str) -> None:
    """Raise an error if a job id is a duplicate."""
    if (ids[1:] > ids[:-1]).all():
        return
    in_order = np.sort(ids)
    repeated = in_order[1:][in_order[1:] == in_order[:-1]]
    if repeated.size:
        first = ids[np.isin(ids, repeated)][0]
        raise SwflowError(
            f"clean: {name}: {repeated.size:,} lines repeat a job id (the first is {first}); expected unique job ids; "
            f"keep the first line of each with {LENIENT}"
        )


def require_complete(missing: int, column: str, name: str) -> None:
    """Raise an error if jobs have an unknown value in a required column."""
    if missing:
        what = column.replace("_", " ")
        raise SwflowError(f"clean: {name}: {missing} jobs have no {what}; expected one for each job")


#: Columns with times or processors, and the largest absolute value of each.
_LIMITS: dict[str, float] = {
    **dict.fromkeys(
        ("submit_time", "wait_time", "run_time", "average_cpu_time", "requested_time", "think_time", "estimate"),
        LONGEST_TIME,
    ),
    **dict.fromkeys(("allocated_processors", "requested_processors", "processors"), MOST_PROCESSORS),
}


def within_limits(columns: Iterable[str] = SWF_FIELDS) -> pl.Expr:
    """Return the condition that all times and processors of a line are within the limits."""
    return pl.all_horizontal(  # NaN is above every limit
        pl.col(column).is_null() | pl.col(column).is_between(-limit, limit)
        for column, limit in _LIMITS.items()
        if column in columns
    )


def within_limits_only(fields: pl.DataFrame, name: str) -> tuple[pl.DataFrame, str]:
    """Return the lines or jobs within the limits, and what is wrong with the others; empty if nothing is."""
    wrong = fields.filter(~within_limits(fields.columns))
    if wrong.is_empty():
        return fields, ""
    return fields.filter(within_limits(fields.columns)), str(
        beyond_limits(name, wrong.row(0, named=True), wrong.height)
    )


def require_limits(fields: pl.DataFrame, name: str) -> None:
    """Raise an error that names the first job with a time or a number of processors beyond the limits."""
    wrong = fields.filter(~within_limits())
    if not wrong.is_empty():
        raise beyond_limits(f"clean: {name}", wrong.row(0, named=True), wrong.height)


def beyond_limits(name: str, row: Mapping[str, float], count: int) -> SwflowError:
    """Return the error for a job with a time or a number of processors beyond the limits."""
    column = next(
        column for column, limit in _LIMITS.items() if row.get(column) is not None and not abs(row[column]) <= limit
    )
    unit = " s" if JOB_COLUMNS[column].is_float() else ""
    return SwflowError(
        f"{name}: job {row['job_id']}: {column} is {row[column]:g}{unit}, beyond the limit of "
        f"{_LIMITS[column]:g}{unit} ({count:,} such jobs); correct the log, or skip such lines and count them "
        f"with {LENIENT}"
    )


def removals(
    machine: Machine,
    period: tuple[float | None, float | None],
    drop: Sequence[str] = RULES,
    without_status: Iterable[int] = (),
    flurries: Iterable[str] = (),
    keep_cancelled: bool = False,
    columns: Mapping[str, pl.DataType] | None = None,
) -> Iterable[tuple[str, pl.Expr]]:
    """
    Return each reason for removal with its expression, in order; raise an error for an unknown rule.

    ``columns`` are those of the log, which conditions can use besides those of each job table.
    """
    unknown = [rule for rule in drop if rule not in RULES]
    if unknown:
        raise SwflowError(f"clean: unknown rule {unknown[0]!r} in drop; known are {', '.join(RULES)}")
    since, until = period
    if since is not None:
        yield "before-period", pl.col("submit_time") < since
    if until is not None:
        yield "after-period", pl.col("submit_time") >= until
    for text in flurries:
        yield text, condition(text, {**(columns or {}), **JOB_COLUMNS}, "clean: flurries")
    for status in without_status:
        yield f"status-{status}", pl.col("status") == status
    ran = pl.col("cancelled_after").is_null() if keep_cancelled else pl.lit(True)
    rules = {
        "unknown-submit-time": pl.col("submit_time").is_null(),
        "no-processors": pl.col("processors").is_null(),
        "wider-than-machine": pl.col("processors") > machine.processors,
        "unknown-run-time": pl.col("run_time").is_null() | (pl.col("run_time") < 0),
        "zero-run-time": (pl.col("run_time") == 0) & ran,
    }
    for rule in RULES:
        if rule in drop:
            yield rule, rules[rule]
