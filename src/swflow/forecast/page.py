"""The page of forecasts: choose size, limit and partition, and see the interval."""

import html
import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.files.atomic import write_text
from swflow.forecast.forecaster import Forecast, Forecaster
from swflow.forecast.queue_state import longest_limit, most_processors
from swflow.forecast.record import Request
from swflow.forecast.words import as_of, coverage
from swflow.phrases import span
from swflow.workload.clean import log_name

#: The numbers of sizes, limits and partitions to choose from, which are the most frequent ones of the log.
_SIZES, _LIMITS, _PARTITIONS = 14, 10, 12


#: Hours after its moment at which a page is marked as old; it is written every night.
STALE = 36


def write_page(forecaster: Forecaster, path: Path) -> None:
    """
    Write a page that shows the forecast of a job by size, limit and partition; it needs no network.

    The page states its moment, and is marked as old when it is opened more than `STALE` hours later. Raise
    `SwflowError` if the forecaster is that of a table of polls.
    """
    if forecaster.sweep is None:
        raise SwflowError(f"{path}: {forecaster.name} is a table of polls; expected a log for a page")
    moment = as_of(forecaster)
    values = {
        "title": html.escape(f"When will my job start? {log_name(forecaster.name)}"),
        "asof": html.escape(f"As of {_shown(moment)}." if moment else "The log does not state the time of its start."),
        "coverage": html.escape(coverage(forecaster)),
        "data": json.dumps(_content(forecaster, moment)).replace("<", "\\u003c"),  # no text can end or nest the script
    }
    text = (Path(__file__).parent / "page.html").read_text("utf-8")
    # One pass: a name such as @data@ stays as it is.
    write_text(path, re.sub("@(title|asof|coverage|data)@", lambda found: values[found[1]], text))


def _shown(moment: str) -> str:
    """Return a moment for readers, with the offset of its time zone from UTC."""
    found = datetime.fromisoformat(moment)
    return f"{found:%Y-%m-%d %H:%M} (UTC{found:%z})"


def _content(forecaster: Forecaster, moment: str | None) -> dict[str, Any]:
    """Return the forecasts of the page, of the most frequent sizes, limits and partitions of the log."""
    assert forecaster.sweep is not None
    common = forecaster.common
    sizes = sorted(size for size, _ in common["sizes"].most_common(_SIZES) if size <= forecaster.sweep.processors)
    limits = sorted(limit for limit, _ in common["limits"].most_common(_LIMITS) if limit > 0)
    queues = [queue for queue, _ in common["queues"].most_common(_PARTITIONS)]
    found: list[list[Any] | None] = []
    for queue in queues:
        longest, most = longest_limit(forecaster, queue), most_processors(forecaster, queue)
        jobs = [(size, limit) for size in sizes for limit in limits]
        possible = [limit <= longest and size <= most for size, limit in jobs]
        requests = [
            Request.of(size, limit, -1, queue, -1)
            for (size, limit), one in zip(jobs, possible, strict=True) if one
        ]  # fmt: skip
        rows = iter(forecaster.of_requests(requests))
        found += [_row(next(rows)) if one else None for one in possible]
    stale = None if moment is None else datetime.fromisoformat(moment).timestamp() + 3600 * STALE
    times = [(place, one.label) for place, one in enumerate(forecaster.times) if not math.isnan(one.seconds)]
    return {
        "partitions": [forecaster.labels[queue] for queue in queues], "sizes": sizes,
        "limits": [span(limit) for limit in limits], "found": found, "stale": stale,
        "times": [label for _, label in times], "columns": [place for place, _ in times],
    }  # fmt: skip


def _row(forecast: Forecast) -> list[Any]:
    """Return the ends, the median and the chances of a forecast; None for unknown chances."""
    chances = [None if math.isnan(one) else round(one, 3) for one in forecast.chances]
    return [round(forecast.low), round(forecast.median), round(forecast.high), chances]
