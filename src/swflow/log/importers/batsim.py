"""Read JSON of other programs: workloads of Batsim, and the jobs of the Philly traces."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.files.reading import parse_json
from swflow.log.importers.lines import read_text
from swflow.log.importers.records import RECORD_COLUMNS, ImportedLog, Site, Tally, make_log


def import_batsim(path: str, site: Site) -> ImportedLog:
    """
    Import a workload of Batsim: rigid jobs whose profile is a delay, which is their run time.

    The machine has ``nb_res`` processors. Jobs with another profile have no run time before a simulation; they are left
    out. A wall time of -1 is unknown.
    """
    content, tally = parse_json(read_text(path), path), Tally()
    jobs, profiles = (content.get(key) if isinstance(content, Mapping) else None for key in ("jobs", "profiles"))
    if not isinstance(jobs, list) or not isinstance(profiles, Mapping):
        raise SwflowError(f"{path}: JSON without 'jobs' and 'profiles'; expected a workload of Batsim")
    rows = []
    for place, job in enumerate(jobs, 1):
        try:
            rows.append(_batsim_row(job, profiles, place))
        except KeyError as error:
            tally.add(f"job without {error}, or with a profile other than a delay", 1, place, removed=True)
        except (TypeError, ValueError, AttributeError):
            tally.add("malformed job", 1, place, removed=True)
    table = pl.DataFrame(rows, {**{name: RECORD_COLUMNS[name] for name in _BATSIM}}, orient="row")
    size = content.get("nb_res")
    if site.processors is None and isinstance(size, int) and size > 0:
        site = replace(site, processors=size)
    return make_log(table, tally, site, source=path, form="batsim", keeps_times=True)


_BATSIM = ("line", "site_job_id", "submit", "run_time", "requested_time", "allocated_processors",
           "requested_processors", "user", "executable")  # fmt: skip


def _batsim_row(job: Mapping[str, Any], profiles: Mapping[str, Any], place: int) -> tuple[object, ...]:
    """Return a job of Batsim as values of `_BATSIM`."""
    profile = profiles[str(job["profile"])]
    if profile.get("type") != "delay":
        raise KeyError(str(profile.get("type")))
    limit = float(job.get("walltime", -1))
    size = int(job["res"])
    name, program = str(job["id"]).rpartition("!")[2], str(job["profile"])
    user = job.get("user") or job.get("user_id")
    return (
        place, name, float(job["subtime"]), float(profile["delay"]), limit if limit > 0 else None, size, size,
        None if user is None else str(user), None if program.startswith("delay-") else program,
    )  # fmt: skip
