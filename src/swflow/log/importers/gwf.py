"""Import the Grid Workloads Format: 29 fields per line, the first 11 of which are those of SWF."""

import polars as pl

from swflow.columns import numbers, rounded_up
from swflow.errors import SwflowError
from swflow.log.importers.lines import read_text
from swflow.log.importers.notation import filled
from swflow.log.importers.records import ImportedLog, Site, Tally, make_log

#: The fields in order (Iosup et al., "The Grid Workloads Archive", Future Generation Computer Systems 24(7), 2008).
FIELDS = (
    "JobID", "SubmitTime", "WaitTime", "RunTime", "NProcs", "AverageCPUTimeUsed", "UsedMemory", "ReqNProcs", "ReqTime",
    "ReqMemory", "Status", "UserID", "GroupID", "ExecutableID", "QueueID", "PartitionID", "OrigSiteID", "LastRunSiteID",
    "JobStructure", "JobStructureParams", "UsedNetwork", "UsedLocalDiskSpace", "UsedResources", "ReqPlatform",
    "ReqNetwork", "ReqLocalDiskSpace", "ReqResources", "VOID", "ProjectID",
)  # fmt: skip

_NUMBERS = FIELDS[1:11]

#: Larger numbers are not taken for numbers: they may not fit into whole ones.
_MOST = 2.0**53


def import_gwf(path: str, site: Site, *, of_site: str | None = None) -> ImportedLog:
    """
    Import a log of the Grid Workloads Archive.

    Users, groups, queues and partitions can be numbers or names. The partition of a job without one is the site that
    ran it. Submit times in seconds since 1970 give the start of the log. With ``of_site``, only the jobs that ran at
    this site of the grid (``LastRunSiteID``) are kept.
    """
    tally = Tally()
    rows = []
    for number, line in enumerate(read_text(path).decode("utf-8", "replace").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        fields = line.split("\t") if line.count("\t") >= 10 else line.split()
        if len(fields) < 11:
            tally.add(f"fewer than 11 fields of {len(FIELDS)}", 1, number, removed=True)
            continue
        padded = [*(field.strip() for field in fields[: len(FIELDS)]), *["-1"] * (len(FIELDS) - len(fields))]
        rows.append((number, *padded))
    if not rows:
        raise SwflowError(f"{path}: no line in the Grid Workloads Format; expected {len(FIELDS)} fields, JobID first")
    table = pl.DataFrame(rows, {"line": pl.Int64, **dict.fromkeys(FIELDS, pl.String)}, orient="row")
    table = tally.drop_repeated(table, *FIELDS)
    for name in _NUMBERS:
        values = table.select(numbers(pl.col(name), _MOST)).to_series()
        if name not in ("SubmitTime", "RunTime", "NProcs"):
            tally.unreadable(table, name, pl.col(name), values)
        table = table.with_columns(values)
    for name in ("SubmitTime", "RunTime", "NProcs"):
        table = tally.drop(table, f"{name} is not a number", pl.col(name).is_null())
    if of_site is not None:
        ran = table["LastRunSiteID"].unique().to_list()
        if of_site not in ran:
            raise SwflowError(f"{path}: no job ran at site {of_site!r}; there are {', '.join(sorted(ran)[:20])}")
        table = tally.drop(table, "ran at another site", pl.col("LastRunSiteID") != of_site)
    sites = table.select(_named("LastRunSiteID")).to_series().drop_nulls().n_unique()
    if sites > 1:
        tally.add(f"jobs of {sites} sites taken as one machine (choose one: --site)", table.height, 1)

    def known(name: str) -> pl.Expr:
        return pl.when(pl.col(name).is_between(0, _MOST)).then(name)

    records = table.select(
        "line",
        site_job_id=pl.col("JobID"),
        submit=pl.col("SubmitTime"),
        start=pl.col("SubmitTime") + known("WaitTime"),
        run_time=known("RunTime"),
        allocated_processors=rounded_up(known("NProcs")),
        average_cpu_time=known("AverageCPUTimeUsed"),
        used_memory=known("UsedMemory"),
        requested_processors=rounded_up(known("ReqNProcs")),
        requested_time=known("ReqTime"),
        requested_memory=known("ReqMemory"),
        status=rounded_up(known("Status")),
        user=_named("UserID"),
        group=_named("GroupID", "VOID"),
        queue=_named("QueueID"),
        partition=_named("PartitionID", "LastRunSiteID"),
        executable=_named("ExecutableID"),
    )
    return make_log(records, tally, site, source=path, form="gwf")


def _named(*names: str) -> pl.Expr:
    """Return the first name in these columns that is known."""
    return pl.coalesce(pl.when(filled(pl.col(name)) != "-1").then(filled(pl.col(name))) for name in names)
