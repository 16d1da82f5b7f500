"""Forecasts as text and tables."""

import math
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.forecast.chances import shown
from swflow.forecast.forecaster import REPORTED, Forecast, Forecaster
from swflow.forecast.queue_state import local
from swflow.jobs.header import Header
from swflow.log.importers.slurm import duration
from swflow.phrases import counted, span

_UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def parse_limit(text: str) -> float:
    """
    Return a time limit in seconds: ``12h``, ``90min``, ``2d``, or as Slurm writes it (``1-12:00:00``, minutes).

    Examples
    --------
    >>> parse_limit("12h"), parse_limit("1-12:00:00"), parse_limit("90")
    (43200.0, 129600.0, 5400.0)
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h|d|w)", text.strip())
    if match:
        found: float | None = float(match[1]) * _UNITS[match[2]]
    else:
        found = duration(text)
    if not found or found <= 0:
        raise SwflowError(f"--time-limit: {text!r}; expected a duration such as 12h, 90min, 2d or 1-12:00:00")
    return found


def sentences(forecaster: Forecaster, forecast: Forecast) -> list[str]:
    """Return the forecast of a job that options describe, and the coverage of the last weeks, as sentences."""
    low, median, high = (span(value) for value in (forecast.low, forecast.median, forecast.high))
    chances = ", ".join(f"{label} {text}" for label, text in shown(forecast.chances, forecaster.times))
    return [
        f"A {forecast.processors:,}-processor job of {span(forecast.limit)} submitted now starts within {median} "
        f"(median), 90 % of such jobs within {low} to {high}.",
        *([f"Chance of a start: {chances}."] if chances else []),
        coverage(forecaster),
    ]


def coverage(forecaster: Forecaster) -> str:
    """Return a sentence on how often the intervals of the last weeks held."""
    weeks = {4: "four"}.get(REPORTED, str(REPORTED))
    if not forecaster.jobs:
        return f"In the last {weeks} weeks, no job of the log was forecast."
    count, jobs = counted(forecaster.forecasts, "forecast"), counted(forecaster.jobs, "job")
    return (
        f"In the last {weeks} weeks, {count} for {jobs} can be checked; in {100 * (forecaster.coverage or 0):.0f} % of "
        "them, jobs started within the interval that was forecast."
    )


def as_of(forecaster: Forecaster) -> str | None:
    """Return the moment of the forecasts as a local time of the site with its offset; None if it is unknown."""
    header = forecaster.common.get("header")
    if not header or Header.of(header).start is None:
        return None
    return local(forecaster.now, header).isoformat(timespec="seconds")


#: The columns of a table of forecasts; the chances follow, by the names of `swflow.forecast.chances.times`.
COLUMNS: dict[str, Any] = {
    "job_id": pl.String, "processors": pl.Int64, "time_limit": pl.Float64, "partition": pl.String, "user": pl.String,
    "waited": pl.Float64, "low": pl.Float64, "median": pl.Float64, "high": pl.Float64, "condition": pl.String,
}  # fmt: skip


def table(forecaster: Forecaster, forecasts: Sequence[Forecast]) -> pl.DataFrame:
    """
    Return one row per forecast: the job, the seconds until its start, and the chances of a start within some times.

    Values without a forecast are null.
    """
    names = [one.name for one in forecaster.times]
    rows = [
        (None if one.job is None else str(one.job), *one[1:-1], *(one.chances or [math.nan] * len(names)))
        for one in forecasts
    ]
    schema = COLUMNS | dict.fromkeys(names, pl.Float64)
    return pl.DataFrame(rows, schema, orient="row", strict=False).fill_nan(None)
