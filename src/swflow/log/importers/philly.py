"""Import the jobs of the Philly traces (JSON)."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.files.reading import parse_json
from swflow.jobs.table import conformed
from swflow.log.importers.ended import NEEDED, with_run_times
from swflow.log.importers.lines import read_text
from swflow.log.importers.notation import is_no_value, moments
from swflow.log.importers.records import RECORD_COLUMNS, ImportedLog, Site, Tally, make_log


def import_philly(path: str, site: Site) -> ImportedLog:
    """
    Import the jobs of the Philly traces (cluster_job_log): GPUs are the processors, since CPUs are not recorded.

    A job runs from the start of its first attempt to the end of its last one. A job without an attempt was cancelled in
    the queue; without an end, it is left out.
    """
    content, tally = parse_json(read_text(path), path), Tally()
    if not isinstance(content, list):
        raise SwflowError(f"{path}: JSON without a list of jobs; expected cluster_job_log of the Philly traces")
    rows = []
    for place, job in enumerate(content, 1):
        try:
            rows.append(_philly_row(job, place))
        except (KeyError, TypeError, ValueError, AttributeError):
            tally.add("malformed job", 1, place, removed=True)
    if not rows:
        raise SwflowError(f"{path}: none of {len(content)} jobs is valid; nothing to import")
    table = pl.DataFrame(rows, {name: RECORD_COLUMNS[name] for name in _PHILLY} | dict.fromkeys(_TIMES, pl.String()))
    for name in _TIMES:
        found, _ = moments(table[name], site.time_zone)
        table = table.with_columns(found.alias(name))
    tally.note(table, "GPUs taken for processors", pl.lit(True))
    table = table.with_columns(pl.when(~is_no_value(pl.col("allocated_processors"))).then("allocated_processors"))
    records = with_run_times(conformed(table, {**RECORD_COLUMNS, **NEEDED}), tally)
    return make_log(records, tally, site, source=path, form="philly")


_TIMES = ("submit", "start", "end")
_PHILLY = ("line", "site_job_id", *_TIMES, "allocated_processors", "requested_processors", "nodes", "status", "user",
           "queue")  # fmt: skip
_STATUS = {"Pass": 1, "Killed": 5, "Failed": 0}


def _philly_row(job: Mapping[str, Any], place: int) -> dict[str, object]:
    """Return a job of the Philly traces."""
    attempts = job["attempts"] or []
    detail = [one for attempt in attempts[-1:] for one in attempt.get("detail") or []]
    gpus = sum(len(one.get("gpus") or ()) for one in detail) or None
    return {
        "line": place,
        "site_job_id": str(job["jobid"]),
        "submit": str(job["submitted_time"]),
        "start": str(attempts[0].get("start_time") or "") if attempts else "",
        "end": str(attempts[-1].get("end_time") or "") if attempts else str(job["submitted_time"]),
        "allocated_processors": gpus,
        "requested_processors": gpus,
        "nodes": len(detail) or None,
        "status": _STATUS.get(str(job.get("status"))),
        "user": str(job.get("user") or ""),
        "queue": str(job.get("vc") or ""),
    }
