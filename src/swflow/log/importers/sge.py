"""Grid Engine (SGE, OGS, UGE): the file accounting, one line of fields between colons per job."""

import re
from collections.abc import Sequence

import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.table import conformed
from swflow.log.importers.ended import NEEDED, with_run_times
from swflow.log.importers.lines import read_text
from swflow.log.importers.notation import moments
from swflow.log.importers.records import RECORD_COLUMNS, ImportedLog, Site, Tally, make_log
from swflow.log.importers.slurm import kilobytes, seconds

#: The fields in order (manual page accounting(5)); Univa Grid Engine appends others.
FIELDS = (
    "queue", "host", "group", "user", "executable", "job", "account", "priority", "submit", "start", "end", "failed",
    "exit_status", "wallclock", "user_time", "system_time", "max_rss", *(f"usage_{place}" for place in range(14)),
    "project", "department", "parallel", "slots", "task", "cpu", "mem", "io", "category", "io_wait", "parallel_task",
    "max_memory",
)  # fmt: skip


def import_sge(path: str, site: Site) -> ImportedLog:
    """
    Import files accounting of SGE, Open Grid Scheduler or Univa Grid Engine, with times in seconds or milliseconds.

    Every line of a job, or of a task of an array, is one job of the log. Lines of the tasks of a parallel job are not.
    The requested time is ``h_rt``, else ``s_rt``; the memory is ``h_vmem``, ``mem_free`` or ``m_mem_free`` per slot.
    """
    tally = Tally()
    rows = []
    for number, line in enumerate(read_text(path).decode("utf-8", "replace").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = _fields(line)
        if fields is None:
            tally.add("malformed line", 1, number, removed=True)
        else:
            rows.append((number, *fields))
    if not rows:
        raise SwflowError(f"{path}: no valid line; expected the file accounting of Grid Engine, fields between colons")
    table = pl.DataFrame(rows, {"line": pl.Int64, **dict.fromkeys(FIELDS, pl.String)}, orient="row")
    of_parallel = ~pl.col("parallel_task").str.to_uppercase().is_in(["NONE", ""])
    table = tally.drop(table, "tasks of parallel jobs, which are not jobs", of_parallel)
    for name in ("submit", "start", "end"):
        found, _ = moments(table[name], site.time_zone)
        table = table.with_columns(found.alias(name))
    records = with_run_times(conformed(_typed(table), {**RECORD_COLUMNS, **NEEDED}), tally)
    return make_log(records, tally, site, source=path, form="sge")


def _fields(line: str) -> Sequence[str] | None:
    """Return the fields of a line; None if the numbers are not in their places. Name and category can have colons."""
    fields = line.rstrip("\r").split(":")
    for extra in range(max(len(fields) - 36, 0) + 1):
        found = [*fields[:4], ":".join(fields[4 : 5 + extra]), *fields[5 + extra :]]
        if len(found) >= 36 and all(re.fullmatch(r"-?\d+", found[place]) for place in (5, 8, 9, 10, 11, 12, 34, 35)):
            rest = found[_CATEGORY:]
            end = next((end for end in range(1, len(rest)) if re.fullmatch(r"-?\d+\.\d+(?:e[-+]\d+)?", rest[end])), 1)
            found[_CATEGORY:] = [":".join(rest[:end]), *rest[end:]]
            return [*found[: len(FIELDS)], *[""] * (len(FIELDS) - len(found))]
    return None


_CATEGORY = FIELDS.index("category")


def _kilobytes(text: pl.Expr) -> pl.Expr:
    """Return an amount of memory in KB: small letters are powers of 1,000 and capitals of 1,024 (sge_types(1))."""
    power = text.str.extract(r"([kmgt])$", 1).replace_strict({"k": 1, "m": 2, "g": 3, "t": 4}, default=0)
    return kilobytes(text, unit="") * (1000 / 1024) ** power


def _typed(table: pl.DataFrame) -> pl.DataFrame:
    """Convert the text of lines to numbers, and read the requests in the category."""

    def asked(*names: str) -> list[pl.Expr]:
        return [pl.col("category").str.extract(rf"[ ,](?:{name})=([^, ]+)", 1) for name in names]

    slots = pl.col("slots").cast(pl.Int64, strict=False)
    slots = pl.when(slots > 0).then(slots)
    task = pl.when(~pl.col("task").is_in(["0", ""])).then("task")
    # A job without a start has no slots, but the line has the requested ones.
    failed, exit_status = pl.col("failed"), pl.col("exit_status")
    project = pl.when(~pl.col("project").is_in(["NONE", ""])).then("project")
    memory = pl.col("max_memory").cast(pl.Float64, strict=False) / 1024
    return table.with_columns(
        site_job_id=pl.when(task.is_not_null()).then(pl.concat_str("job", pl.lit("."), "task")).otherwise("job"),
        array=pl.when(task.is_not_null()).then("job"),
        allocated_processors=slots,
        requested_processors=slots,
        requested_time=pl.coalesce(seconds(text, bare=1.0) for text in asked("h_rt", "s_rt")),
        requested_memory=pl.coalesce(map(_kilobytes, asked("h_vmem", "m_mem_free", "mem_free", "virtual_free"))),
        gpus=asked("gpus?|ngpus|gpu_count|cuda")[0].cast(pl.Float64, strict=False).cast(pl.Int64),
        average_cpu_time=pl.col("cpu").cast(pl.Float64, strict=False) / slots,
        used_memory=pl.when(memory > 0).then(memory / slots),
        status=pl.when((failed == "0") & (exit_status == "0")).then(1).otherwise(0),
        queue=pl.when(pl.col("queue").str.to_uppercase() != "UNKNOWN").then("queue"),
        unix_group=pl.when(project.is_not_null()).then("group"),
        group=pl.coalesce(project, "group"),
    )
