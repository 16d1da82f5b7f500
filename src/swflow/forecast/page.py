"""The page of forecasts: choose size, limit and partition, and see the interval."""

import html
import json
import re
from pathlib import Path

from swflow.errors import SwflowError
from swflow.files.atomic import write_text
from swflow.forecast.forecaster import Forecaster
from swflow.forecast.words import coverage, span
from swflow.workload.clean import log_name

#: The numbers of sizes, limits and partitions to choose from, which are the most frequent ones of the log.
_SIZES, _LIMITS, _PARTITIONS = 14, 10, 12


def write_page(forecaster: Forecaster, path: Path) -> None:
    """
    Write a page that shows the forecast of a job by size, limit and partition; it needs no network.

    Raise `SwflowError` if the forecaster is that of a table of polls.
    """
    if forecaster.sweep is None:
        raise SwflowError(f"{path}: {forecaster.name} is a table of polls; expected a log for a page")
    common = forecaster.common
    sizes = sorted(size for size, _ in common["sizes"].most_common(_SIZES) if size <= forecaster.sweep.processors)
    limits = sorted(limit for limit, _ in common["limits"].most_common(_LIMITS) if limit > 0)
    queues = [queue for queue, _ in common["queues"].most_common(_PARTITIONS)]
    names = [forecaster.labels[queue] for queue in queues]
    requests = [forecaster.describe(size, limit, name, None) for name in names for size in sizes for limit in limits]
    found = [[round(one.low), round(one.median), round(one.high)] for one in forecaster.of_requests(requests)]
    content = {"partitions": names, "sizes": sizes, "limits": [span(limit) for limit in limits], "found": found}
    values = {
        "title": html.escape(f"When will my job start? {log_name(forecaster.name)}"),
        "coverage": html.escape(coverage(forecaster)),
        "data": json.dumps(content).replace("<", "\\u003c"),  # no text can end or nest the script
    }
    text = (Path(__file__).parent / "page.html").read_text("utf-8")
    # One pass: a name such as @data@ stays as it is.
    write_text(path, re.sub("@(title|coverage|data)@", lambda found: values[found[1]], text))
