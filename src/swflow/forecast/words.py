"""Forecasts as text and tables."""

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.forecast.forecaster import REPORTED, Forecast, Forecaster
from swflow.log.importers.slurm import duration

_UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def parse_limit(text: str) -> float:
    """
    Return a time limit in seconds: ``12h``, ``90min``, ``2d``, or as Slurm writes it (``1-12:00:00``, minutes).

    Examples
    --------
    >>> parse_limit("12h"), parse_limit("1-12:00:00"), parse_limit("90")
    (43200.0, 129600.0, 5400.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)", text.strip())
    if match:
        found: float | None = float(match[1]) * _UNITS[match[2]]
    else:
        found = duration(text)
    if not found or found <= 0:
        raise SwflowError(f"--time-limit: {text!r}; expected a duration such as 12h, 90min, 2d or 1-12:00:00")
    return found


def span(seconds: float) -> str:
    """
    Return a duration as text, to two units.

    Examples
    --------
    >>> span(11400), span(45), span(0.3), span(200000), span(100000000)
    ('3 h 10 min', '45 s', '0 s', '2 d 8 h', '1,157 d')
    """
    if seconds != seconds:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours} h" if hours and days < 10 else f"{days:,} d"


def sentences(forecaster: Forecaster, forecast: Forecast) -> list[str]:
    """Return the forecast of a job that options describe, and the coverage of the last weeks, as sentences."""
    low, median, high = (span(value) for value in forecast[-3:])
    return [
        f"A {forecast.processors:,}-processor job of {span(forecast.limit)} submitted now starts within {median} "
        f"(median), 90 % of such jobs within {low} to {high}.",
        coverage(forecaster),
    ]


def coverage(forecaster: Forecaster) -> str:
    """Return a sentence on how often the intervals of the last weeks held."""
    weeks = {4: "four"}.get(REPORTED, str(REPORTED))
    if not forecaster.jobs:
        return f"In the last {weeks} weeks, no job of the log was forecast."
    share = 100 * forecaster.hits / forecaster.jobs
    return (
        f"In the last {weeks} weeks, {share:.0f} % of {forecaster.jobs:,} jobs started within the interval that was "
        "forecast for them."
    )


#: The columns of a table of forecasts.
COLUMNS: dict[str, Any] = {
    "job_id": pl.String, "processors": pl.Int64, "time_limit": pl.Float64, "partition": pl.String, "user": pl.String,
    "waited": pl.Float64, "low": pl.Float64, "median": pl.Float64, "high": pl.Float64,
}  # fmt: skip


def table(forecasts: Sequence[Forecast]) -> pl.DataFrame:
    """Return one row per forecast: the job, and the seconds until its start (``low``, ``median``, ``high``)."""
    rows = [(None if one.job is None else str(one.job), *one[1:]) for one in forecasts]
    return pl.DataFrame(rows, COLUMNS, orient="row", strict=False)
