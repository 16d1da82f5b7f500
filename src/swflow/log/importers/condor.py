"""HTCondor: the file history or the output of condor_history, as ClassAds or JSON."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.files.reading import parse_json
from swflow.jobs.table import conformed
from swflow.log.importers.ended import NEEDED, with_run_times
from swflow.log.importers.lines import read_text
from swflow.log.importers.notation import filled, is_no_value, moments
from swflow.log.importers.records import RECORD_COLUMNS, ImportedLog, Site, Tally, make_log

_ATTRIBUTE = re.compile(r"\s*([A-Za-z_][\w.]*)\s*=\s*(.*)")

#: Literals of ClassAds for an attribute without a value.
_NO_LITERALS = ("undefined", "error")

#: Universes whose jobs run on the submit host: scheduler and local.
_ON_THE_SUBMIT_HOST = ("7", "12")


def import_condor(path: str, site: Site) -> ImportedLog:
    """
    Import the jobs of HTCondor's history: ClassAds (``condor_history -l``, the file history) or JSON.

    Every ClassAd is one job of the log, with its last run. Processors are ``CpusProvisioned``, else ``RequestCpus``,
    times the hosts of parallel jobs. Completed jobs (status 4) with another exit code than 0 are failed, removed jobs
    (status 3) are cancelled. Ids of jobs contain the name of their schedd if the jobs belong to several schedds.
    """
    text, tally = read_text(path), Tally()
    ads = _of_json(text, path) if text.lstrip()[:1] in (b"[", b"{") else _of_text(text.decode("utf-8", "replace"))
    rows = []
    for number, given in ads:
        ad = {key.lower(): value for key, value in given.items()}
        if "qdate" not in ad or not {"clusterid", "globaljobid"} & ad.keys():
            tally.add("ClassAd without ClusterId or QDate", 1, number, removed=True)
        elif ad.get("jobuniverse") in _ON_THE_SUBMIT_HOST:
            tally.add("jobs of the scheduler or local universe, which run on the submit host", 1, number, removed=True)
        elif ad.get("jobstatus", "4") not in ("3", "4"):
            tally.add(f"not ended: status {ad['jobstatus']}", 1, number, removed=True)
        else:
            rows.append({"line": number, **_row(ad)})
    if not rows:
        raise SwflowError(f"{path}: no ClassAd of an ended job with ClusterId and QDate; expected condor_history -l")
    table = pl.DataFrame(rows, {name: pl.Int64() if name == "line" else pl.String() for name in rows[0]})
    if table["schedd"].n_unique() > 1:
        table = table.with_columns(site_job_id=pl.concat_str("schedd", pl.lit("#"), "site_job_id"))
    records = with_run_times(conformed(_typed(table, site, tally), {**RECORD_COLUMNS, **NEEDED}), tally)
    return make_log(records, tally, site, source=path, form="condor")


def _of_text(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the ClassAds of a text; a line with stars or a blank line ends one."""
    ad: dict[str, str] = {}
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        match = None if line.startswith("***") else _ATTRIBUTE.match(line)
        if match:
            first = first if ad else number
            if match[2].strip().lower() not in _NO_LITERALS:
                ad[match[1]] = match[2].strip().strip('"')
        elif ad:
            yield first, ad
            ad = {}
    if ad:
        yield first, ad


def _of_json(text: bytes, path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the ClassAds of JSON: a list, or one object per line."""
    try:
        content = parse_json(text, path)
    except SwflowError:
        lines = [line for line in text.split(b"\n") if line.strip()]
        if not all(line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}") for line in lines):
            raise
        content = [parse_json(line, path) for line in lines]
    for number, ad in enumerate(content if isinstance(content, list) else [content], 1):
        if isinstance(ad, Mapping):
            yield number, {str(key): _text(value) for key, value in ad.items() if value is not None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(ad: Mapping[str, str]) -> dict[str, str | None]:
    """Return the used attributes of a ClassAd, as text."""
    ended = ad.get("completiondate", "0")
    started = ad.get("jobcurrentstartdate") or ad.get("jobstartdate")
    schedd, mark, _ = ad.get("globaljobid", "").partition("#")
    job = f"{ad['clusterid']}.{ad.get('procid', '0')}" if "clusterid" in ad else ad["globaljobid"]
    return {
        "site_job_id": job,
        "schedd": schedd if mark else "",
        "submit": ad["qdate"],
        "start": started,
        "end": ended if ended not in ("", "0") else ad.get("enteredcurrentstatus"),
        "suspended": ad.get("cumulativesuspensiontime") if ad.get("numjobstarts", "1") in ("0", "1") else None,
        "vacated": ad.get("lastvacatetime"),
        "wall_time": ad.get("remotewallclocktime"),
        "cpus": ad.get("cpusprovisioned"),
        "asked_cpus": ad.get("requestcpus"),
        "hosts": ad.get("maxhosts") or ad.get("currenthosts"),
        "gpus": ad.get("gpusprovisioned") or ad.get("requestgpus"),
        "memory": ad.get("requestmemory"),
        "resident": ad.get("residentsetsize_raw") or ad.get("residentsetsize"),
        "user_time": ad.get("remoteusercpu"),
        "system_time": ad.get("remotesyscpu"),
        "limit": ad.get("allowedjobduration") or ad.get("allowedexecuteduration"),
        "exit_code": ad.get("exitcode"),
        "by_signal": ad.get("exitbysignal"),
        "job_status": ad.get("jobstatus", "4"),
        "user": ad.get("owner") or ad.get("user"),
        "group": ad.get("acctgroup") or ad.get("accountinggroup"),
        "executable": ad.get("cmd"),
        "machine": ad.get("lastremotehost"),
    }


#: The attributes that are numbers.
_NUMBERS = ("suspended", "wall_time", "cpus", "asked_cpus", "hosts", "gpus", "memory", "resident", "user_time",
            "system_time", "limit")  # fmt: skip

#: The time that a removal can take, seconds.
_LATE = 60


def _typed(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Convert attributes to numbers; expressions that are not evaluated are unknown."""
    texts = table
    for name in ("submit", "start", "end", "vacated"):
        found, _ = moments(table[name], site.time_zone)
        table = table.with_columns(found.alias(name))
    for name in _NUMBERS:
        value = filled(pl.col(name)).cast(pl.Float64, strict=False)
        table = table.with_columns(pl.when((value >= 0) & ~is_no_value(value)).then(value).alias(name))
        tally.unreadable(texts, name.replace("_", " "), pl.col(name), table[name])
    # A job that is held or evicted stays in the queue; its removal is not the end of its last run.
    wall_time, vacated = pl.col("wall_time"), pl.col("vacated")
    last = pl.min_horizontal(
        pl.when(wall_time > 0).then(pl.col("start") + wall_time), pl.when(vacated > pl.col("start")).then(vacated)
    )
    ended = (pl.col("job_status") == "3") & (last + _LATE < pl.col("end"))
    chosen = tally.note(table, "removed later than their last run ended (held or evicted)", ended)
    table = table.with_columns(end=pl.when(chosen).then(last).otherwise("end"))
    hosts = pl.when(pl.col("hosts") > 1).then("hosts").otherwise(1)
    asked = (pl.coalesce("asked_cpus", 1) * hosts).ceil().cast(pl.Int64)
    failed = (pl.col("by_signal") == "true") | (pl.col("exit_code").fill_null("0") != "0")
    processors = pl.coalesce((pl.col("cpus") * hosts).ceil().cast(pl.Int64), asked)
    return table.with_columns(
        allocated_processors=processors,
        requested_processors=asked,
        nodes=pl.when(pl.col("machine").is_not_null()).then(hosts.cast(pl.Int64)),
        gpus=pl.col("gpus").cast(pl.Int64),
        memory=pl.col("memory").ceil().cast(pl.Int64),
        requested_memory=pl.col("memory") * 1024 / asked,
        used_memory=pl.col("resident") / processors,
        average_cpu_time=(pl.col("user_time") + pl.col("system_time").fill_null(0)) / processors,
        requested_time=pl.when(pl.col("limit") > 0).then("limit"),
        suspended_time=pl.col("suspended"),
        status=pl.when(pl.col("job_status") == "3").then(5).when(failed).then(0).otherwise(1),
        array=pl.lit(None, pl.String),
    )
