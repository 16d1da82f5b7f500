"""Slurm's accounting: the text of ``sacct -P`` with any columns, ``sacct --json``, and jobcomp/filetxt."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from swflow.columns import numbers, rounded_up, whole_numbers
from swflow.errors import SwflowError
from swflow.files.reading import parse_json
from swflow.jobs.table import conformed
from swflow.log.importers import slurm
from swflow.log.importers.jobcomp import read_jobcomp
from swflow.log.importers.lines import Check, Layout, matches, read_records, read_text
from swflow.log.importers.records import (
    COUNTED_FEATURES,
    DEPENDENCIES,
    GPUS,
    LICENSES,
    NOT_MODELLED,
    RESERVATIONS,
    ImportedLog,
    Site,
    Tally,
    make_log,
    unix_seconds,
)
from swflow.log.recognise import OTHER_NAMES, USED, is_jobcomp
from swflow.values import MOST_PROCESSORS

#: The columns that the documentation recommends.
RECOMMENDED = (
    "JobID,Cluster,User,Group,Account,Partition,QOS,JobName,State,Submit,Eligible,Start,End,Elapsed,Suspended,Timelimit,"
    "ReqCPUS,AllocCPUS,NNodes,ReqMem,AllocTRES,ReqTRES,TotalCPU,MaxRSS,NTasks,Reservation,Constraints,SubmitLine"
)

#: Columns with free text of users, which may contain separators and line breaks.
_FREE = (
    "jobname", "submitline", "comment", "admincomment", "systemcomment", "workdir", "constraints", "reason",
    "container", "extra", "stdin", "stdout", "stderr", "licenses", "reservation",
)  # fmt: skip

_JOB_ID = r"([0-9]{1,18})(?:_([0-9]{1,18}|\[[^\]|]*\]))?(?:\+([0-9]{1,9}))?"
_STEP = r"\.(.+)"
_DURATION = r"(\d+-)?\d+(:\d+)*(\.\d+)?"
_MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?|\d+"
_NOTHING = r"|Unknown|None|N/A|INVALID"
_CHECKS: dict[str, Check] = {
    "jobid": matches(rf"{_JOB_ID}({_STEP})?"),
    "jobidraw": matches(r"\d+(\.\w+)?"),
    **dict.fromkeys(("submit", "start", "end", "eligible"), matches(rf"{_MOMENT}{_NOTHING}")),
    **dict.fromkeys(
        ("elapsed", "suspended", "totalcpu", "cputime", "systemcpu", "usercpu", "planned", "reserved"),
        matches(rf"{_DURATION}{_NOTHING}"),
    ),
    "timelimit": matches(rf"({_DURATION}|UNLIMITED|Partition_Limit{_NOTHING})?"),  # steps have none
    **dict.fromkeys(
        ("elapsedraw", "reqcpus", "alloccpus", "ncpus", "allocnodes", "nnodes", "ntasks", "uid", "gid", "cputimeraw",
         "priority", "timelimitraw"),
        matches(rf"\d*|UNLIMITED|Partition_Limit{_NOTHING}"),
    ),
    "state": matches(r"[A-Za-z_]+\+?( by \S+)?"),
    "reqmem": matches(r"(\d+(\.\d+)?[KMGTPE]?[Bcn]?|\d*\?)?"),
    "exitcode": matches(r"(\d+:\d+)?"),
    "derivedexitcode": matches(r"(\d+:\d+)?"),
    **dict.fromkeys(("alloctres", "reqtres", "allocgres", "reqgres", "constraints"), matches(r"[^\s]*")),
    "reservation": matches(r"[^|\s]*"),
    "submitline": matches(r"(\S*(sbatch|srun|salloc)\s[\s\S]*)?"),
    **dict.fromkeys(("user", "group", "account", "qos", "cluster", "partition"), matches(r"[^\n]*")),
}  # fmt: skip


def import_sacct(
    path: str,
    site: Site,
    *,
    columns: str | None = None,
    delimiter: str = "|",
    partition_limits: Mapping[str, str] | None = None,
    cpus_per_processor: int = 1,
    join_preempted: bool = False,
) -> ImportedLog:
    """
    Import the output of ``sacct -P``, ``sacct --json`` or jobcomp/filetxt.

    Each row of the log is one run of a job. Steps are not jobs; tasks of an array are jobs. The components of a
    heterogeneous job are one job. Every run of a requeued job (``sacct -D``) is one job, submitted when the previous
    run ended. Jobs that never started have a run time of 0; jobs that have not ended are dropped.

    ``columns`` names the columns, separated by commas, of a file without a header. ``partition_limits`` maps a
    partition to its time limit, for jobs with the limit ``Partition_Limit``. ``cpus_per_processor`` is the number of
    Slurm's CPUs that are one processor of the log: 2 if each core counts as two threads. With ``join_preempted``, a
    preempted run is left out if the job ran again: the next run has its submission, for a scheduler with `preemption`.
    """
    if cpus_per_processor < 1:
        raise SwflowError(f"--cpus-per-processor: {cpus_per_processor}; expected at least 1")
    limits = {name: _limit(text, name) for name, text in (partition_limits or {}).items()}
    text, tally = read_text(path), Tally()
    if text.lstrip()[:1] == b"{":
        table, form = _read_json(text, path, tally), "sacct --json"
    elif is_jobcomp(text):
        table, form = read_jobcomp(text, path, tally), "jobcomp"
    else:
        table, form = _read_columns(text, path, columns, delimiter, tally), "sacct"
    jobs = _of_one_cluster(_jobs_of(table, site, tally), site, path, tally)
    names = jobs["cluster"].drop_nulls().unique()
    computer = names[0] if len(names) == 1 else site.cluster
    records = _records(jobs, tally, limits, cpus_per_processor, join_preempted)
    return make_log(records, tally, site, source=path, form=form, computer=computer)


def _limit(text: str, name: str) -> float:
    value = slurm.duration(text)
    if value is None:
        raise SwflowError(f"--partition-limit: {name}={text!r} is not a time limit; expected such as main=2-00:00:00")
    return value


# --- text -------------------------------------------------------------------------------------------------


def _read_columns(text: bytes, path: str, columns: str | None, delimiter: str, tally: Tally) -> pl.DataFrame:
    """Read the text of ``sacct -P``: ``line`` and the used columns, as text."""
    if len(delimiter) != 1:
        raise SwflowError(f"--delimiter: {delimiter!r}; expected one character")
    names, body, first_line = _header_of(text, path, columns, delimiter)
    header_line = None if columns else text[: text.find(b"\n")]
    if header_line:
        body = _without_headers(body, header_line, first_line, tally)
    wanted = {used: name for used in USED for name in (OTHER_NAMES.get(used, used), used) if name in names}
    _require(path, names, wanted)
    layout = Layout(names, delimiter, _CHECKS, _FREE, _agrees)
    table = read_records(body, layout, list(wanted.values()), tally, first_line)
    if table.is_empty():
        raise SwflowError(f"{path}: no record after the header; nothing to import")
    return table.select("line", *(pl.col(name).alias(used) for used, name in wanted.items()))


def _agrees(record: Mapping[str, str]) -> bool:
    """
    Return whether the columns of a record state one number of CPUs: AllocCPUS, NCPUS, AllocTRES, and the CPU time.

    Examples
    --------
    >>> _agrees({"alloccpus": "2", "ncpus": "2", "elapsedraw": "60", "cputimeraw": "120", "alloctres": "cpu=2,mem=4G"})
    True
    >>> _agrees({"alloccpus": "1384", "ncpus": "2"}), _agrees({"alloccpus": "7", "elapsedraw": "60", "cputimeraw": "9"})
    (False, False)
    """
    tres = re.search(r"(?:^|,)cpu=(\d+)", record.get("alloctres", ""))
    found = {record[name] for name in ("alloccpus", "ncpus") if record.get(name, "").isdecimal()}
    found |= {tres[1]} if tres else set()
    if len(found) > 1:
        return False
    elapsed, used = record.get("elapsedraw", ""), record.get("cputimeraw", "")
    if not (found and elapsed.isdecimal() and used.isdecimal()):
        return True
    return int(used) == int(elapsed) * int(found.pop())


def _jobs_of(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Return the typed allocations among records in the columns of sacct, with the memory of their steps."""
    table = table.with_columns(pl.lit("").alias(used) for used in USED if used not in table.columns)
    table = _identified(table, tally)
    steps = table.filter(pl.col("step").is_not_null())
    tally.note(steps, "steps, which are not jobs", pl.lit(True))
    table = _typed(table.filter(pl.col("step").is_null()), site, tally)
    if "step_memory" in table.columns:  # JSON has steps within jobs
        return table
    return table.join(
        _used_by_steps(steps, tally), on=["cluster", "jobid"], how="left", maintain_order="left", nulls_equal=True
    )


def _header_of(text: bytes, path: str, columns: str | None, delimiter: str) -> tuple[list[str], bytes, int]:
    """Return the columns in lower case, the text after the header, and the number of its first line."""
    if columns:
        return [re.sub(r"%-?\d+$", "", name.strip()).lower() for name in columns.split(",")], text, 1
    line, _, body = text.partition(b"\n")
    names = [name.strip().lower() for name in line.decode("utf-8", "replace").split(delimiter)]
    if "jobid" in names:
        return names, body, 2
    if b"JobID" in line and (not body or set(body.partition(b"\n")[0].strip()) <= set(b"- ")):
        raise SwflowError(f"{path}:1: columns of fixed width with truncated content; print it with: sacct -P")
    if not text.strip():
        raise SwflowError(f"{path}: empty; print it with: sacct -a -P --format={RECOMMENDED}")
    raise SwflowError(
        f"{path}:1: no header of sacct with JobID between {delimiter!r}; run sacct -P without -n, "
        "or give the columns: --format JobID,User,… (another separator: --delimiter)"
    )


def _without_headers(body: bytes, header: bytes, first_line: int, tally: Tally) -> bytes:
    """Blank out repeated headers, as of concatenated files."""
    if b"\n" + header + b"\n" not in b"\n" + body:
        return body
    lines = body.split(b"\n")
    tally.add("repeated headers", lines.count(header), first_line + lines.index(header))
    return b"\n".join(b"" if line == header else line for line in lines)


def _require(path: str, names: list[str], wanted: Mapping[str, str]) -> None:
    sufficient = {
        "Submit": ("submit",),
        "Start": ("start",),
        "State": ("state",),
        "End or Elapsed": ("end", "elapsed", "elapsedraw"),
        "AllocCPUS": ("alloccpus", "alloctres", "reqcpus"),
    }
    missing = [what for what, options in sufficient.items() if not wanted.keys() & set(options)]
    if missing:
        raise SwflowError(f"{path}:1: no column {', '.join(missing)}; run sacct -P --format={RECOMMENDED}")
    twice = {name for name, count in Counter(names).items() if name and count > 1}
    if twice:
        raise SwflowError(f"{path}:1: column {sorted(twice)[0]!r} is a duplicate; name each column once")


def _identified(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Split ids into job, task of an array, component, and step."""
    shape = rf"^{_JOB_ID}(?:{_STEP})?$"
    table = tally.drop(table, "no job id", ~pl.col("jobid").str.contains(shape))
    parts = pl.col("jobid").str.extract_groups(shape)
    return table.with_columns(
        step=parts.struct.field("4"),
        component=whole_numbers(parts.struct.field("3")),
        task=parts.struct.field("2"),
        jobid=pl.col("jobid").str.extract(r"^([^.]*)", 1),
        cluster=_filled("cluster"),
    )


def _filled(name: str) -> pl.Expr:
    """Return a text; placeholders such as Unknown become null."""
    text = pl.col(name).str.strip_chars()
    return pl.when(~text.is_in(["", "Unknown", "None", "N/A", "INVALID", "(null)"])).then(text).alias(name)


#: The limits that are no time, in lower case.
_LIMITS = {"unlimited": "unlimited", "partition_limit": "partition"}


def _typed(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Convert the text of allocations to numbers: times, spans, processors, memory."""
    processors = {
        name: pl.coalesce(
            whole_numbers(pl.col(column), MOST_PROCESSORS),
            whole_numbers(slurm.resource(pl.col(text), "cpu"), MOST_PROCESSORS),
        )
        for name, column, text in (("allocated", "alloccpus", "alloctres"), ("requested", "reqcpus", "reqtres"))
    }
    limit = pl.coalesce(_filled("timelimit"), _filled("timelimitraw"))
    tres = pl.col("alloctres"), pl.col("reqtres")
    nodes = whole_numbers(pl.col("allocnodes"), MOST_PROCESSORS)
    texts = table
    table = table.with_columns(
        **{name: pl.when(value > 0).then(value) for name, value in processors.items()},
        nodes=nodes,
        requested_nodes=whole_numbers(slurm.resource(pl.col("reqtres"), "node"), MOST_PROCESSORS),
        gpus=pl.coalesce(
            *map(slurm.gpus, tres),
            slurm.gpus_of_gres(pl.col("allocgres")),
            slurm.gpus_of_gres(pl.col("reqgres")) * nodes,  # requested on each
        ),
        state=slurm.state(pl.col("state")),
        elapsed=pl.coalesce(numbers(pl.col("elapsedraw")), slurm.seconds(pl.col("elapsed"))),
        suspended_time=slurm.seconds(pl.col("suspended")),
        licensed=_filled("licenses").is_not_null() | pl.col("alloctres").str.contains(r"(^|,)license/"),
        licenses=pl.coalesce(map(slurm.licenses, (*tres, _filled("licenses")))),
        alloc_mem=slurm.kilobytes(slurm.resource(pl.col("alloctres"), "mem"), unit="M"),
        req_mem=slurm.kilobytes(slurm.resource(pl.col("reqtres"), "mem"), unit="M"),
        submitted=_filled("submitline"),
        reserved=_filled("reservation").is_not_null(),
        constraint=_filled("constraints"),
        limit=slurm.seconds(limit),
        limit_kind=limit.str.to_lowercase().replace_strict(_LIMITS, default=None, return_dtype=pl.String),
        cpu_time=slurm.seconds(pl.col("totalcpu")),
        user_name=pl.coalesce(_filled("user"), _filled("uid")),
        unix_group=pl.coalesce(_filled("group"), _filled("gid")),
        account=_filled("account"),
        queue=_filled("qos"),
        partition=_filled("partition"),
        executable=_filled("jobname"),
    )
    is_limit = pl.when(~limit.str.to_lowercase().is_in(list(_LIMITS))).then(limit)
    for what, text, value in (
        ("Elapsed", pl.coalesce(_filled("elapsedraw"), _filled("elapsed")), "elapsed"),
        ("AllocCPUS", pl.col("alloccpus"), "allocated"),
        ("ReqCPUS", pl.col("reqcpus"), "requested"),
        ("NNodes", pl.col("allocnodes"), "nodes"),
        ("Suspended", pl.col("suspended"), "suspended_time"),
        ("Timelimit", is_limit, "limit"),
        ("TotalCPU", pl.col("totalcpu"), "cpu_time"),
    ):
        tally.unreadable(texts, what, text, table[value])
    for what, name in (("AllocTRES", "alloctres"), ("ReqTRES", "reqtres")):
        tally.note(texts, f"unreadable number in {what} (left out)", slurm.has_odd_amounts(pl.col(name)))
    for what, name, value in (("AllocTRES", "alloctres", "alloc_mem"), ("ReqTRES", "reqtres", "req_mem")):
        tally.unreadable(texts, f"memory in {what}", slurm.resource(pl.col(name), "mem"), table[value])
    memory = pl.col("reqmem").str.strip_chars()
    processors_of = pl.coalesce("allocated", "requested")
    amount = slurm.kilobytes(memory, unit="M")
    per_processor = (
        pl.when(memory.str.ends_with("c"))
        .then(amount)
        .when(memory.str.ends_with("n"))
        .then(amount * pl.col("nodes") / processors_of)
        .otherwise(amount / processors_of)
    )
    tally.unreadable(texts, "ReqMem", memory, table.select(amount).to_series())
    requested = pl.when(per_processor > 0).then(per_processor)
    table = table.with_columns(
        requested_memory=requested, memory=pl.coalesce("alloc_mem", "req_mem", requested * processors_of) / 1024
    )
    return _timed(table, site, tally)


def _timed(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Convert local times to Unix seconds; in an hour that the clock repeats, choose the times that fit Elapsed."""
    for name in ("submit", "start", "end"):
        text, first, second = _moments(table, name, site)
        table = table.with_columns(first.alias(f"{name}_0"), second.alias(f"{name}_1"))
        odd = pl.lit(text.is_not_null() & first.is_null())
        table = tally.drop(table, f"{name} that does not exist in {site.time_zone}", odd)
    twofold = pl.any_horizontal(pl.col(f"{name}_0") != pl.col(f"{name}_1") for name in ("submit", "start", "end"))
    tally.note(table, "times of an hour that the clock showed twice", twofold)
    span = pl.col("elapsed").fill_null(0) + pl.col("suspended_time").fill_null(0)
    # If several fit equally, prefer a start (an end, if the job never started) after the submission.
    misfits = {
        (a, b): (pl.col(f"end_{b}") - pl.coalesce(f"start_{a}", f"end_{a}") - span).abs().fill_null(0)
        + pl.when(pl.coalesce(f"start_{a}", f"end_{a}") < pl.col("submit_0")).then(1).otherwise(0)
        for a, b in ((0, 0), (1, 1), (0, 1))  # an end is not before its start
    }
    best = pl.min_horizontal(*misfits.values())
    start, end = pl.col("start_0"), pl.col("end_0")
    for (a, b), misfit in reversed(misfits.items()):
        start = pl.when(misfit == best).then(pl.col(f"start_{a}")).otherwise(start)
        end = pl.when(misfit == best).then(pl.col(f"end_{b}")).otherwise(end)
    table = table.with_columns(start=start, end=end)
    submit = (
        pl.when(pl.col("submit_1") <= pl.coalesce("start", "end"))
        .then(pl.col("submit_1"))
        .otherwise(pl.col("submit_0"))
    )
    _, first, second = _moments(table, "eligible", site)  # the first that is not before the submission
    tally.unreadable(table, "Eligible", pl.col("eligible"), first)
    return table.with_columns(submit=submit).with_columns(
        eligible=pl.when(first >= pl.col("submit")).then(first).otherwise(second)
    )


#: The largest number that is taken for a time; `make_log` names those that are beyond the calendar.
_ANY_TIME = 1e18


def _moments(table: pl.DataFrame, name: str, site: Site) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return a column of times as text, and as Unix seconds: the first and the last that the clock can mean."""
    text = table.select(_filled(name)).to_series()
    clock = text.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False, time_unit="ms")
    if clock.null_count() > text.null_count():
        clock = clock.fill_null(text.str.to_datetime("%Y-%m-%dT%H:%M", strict=False, time_unit="ms"))
    plain = text.to_frame("text").select(numbers(pl.col("text"), _ANY_TIME)).to_series()
    first, second = (times.fill_null(plain) for times in unix_seconds(clock, site.time_zone))
    return text, first, second


def _used_by_steps(steps: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Return the memory of the step of each job that used most, over all tasks, KB."""
    values = steps.select(
        AveRSS=slurm.kilobytes(pl.col("averss"), unit=""),
        MaxRSS=slurm.kilobytes(pl.col("maxrss"), unit=""),
        NTasks=whole_numbers(pl.col("ntasks"), MOST_PROCESSORS),
    )
    for what in values.columns:
        tally.unreadable(steps, what, pl.col(what.lower()), values[what])
    used = pl.coalesce("AveRSS", "MaxRSS") * pl.col("NTasks").fill_null(1)
    of_steps = steps.select("cluster", "jobid").with_columns(values)
    return of_steps.group_by("cluster", "jobid").agg(step_memory=used.max())


# --- JSON -------------------------------------------------------------------------------------------------


def _read_json(text: bytes, path: str, tally: Tally) -> pl.DataFrame:
    """Convert ``sacct --json``, for all versions of its data parser, to ``line`` and the columns of sacct, as text."""
    content = parse_json(text, path)
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list):
        raise SwflowError(f"{path}: JSON without a list 'jobs'; expected the output of sacct --json")
    rows = []
    for place, job in enumerate(jobs, 1):
        try:
            rows.append(_of_types(_json_job(job, place)))
        except KeyError as error:
            tally.add(f"job without {error}", 1, place, removed=True)
        except (TypeError, ValueError, AttributeError, OverflowError):
            tally.add("malformed job", 1, place, removed=True)
    if not rows:
        raise SwflowError(f"{path}: none of {len(jobs)} jobs is valid; nothing to import")
    table = pl.DataFrame(rows, {name: _JSON_NUMBERS.get(name, pl.String()) for name in rows[0]}, orient="row")
    tally.add("steps, which are not jobs", int(table["steps"].sum()), 1)
    return table


#: The values of a job of the JSON that are no text.
_JSON_NUMBERS: dict[str, pl.DataType] = {
    "line": pl.Int64(), "steps": pl.Int64(), "limit_of_array": pl.Int64(), "step_memory": pl.Float64()
}  # fmt: skip


def _of_types(job: dict[str, object]) -> dict[str, object]:
    """Return a job with numbers instead of a text as text; raise an error for other types and invalid characters."""
    for name, value in job.items():
        if name in _JSON_NUMBERS:
            continue
        if not isinstance(value, str):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(name)
            value = job[name] = str(value)
        if not value.isascii():
            value.encode()  # lone surrogates are an error
    return job


def _json_job(job: Mapping[str, Any], place: int) -> dict[str, object]:
    """Return one job of the JSON in the notation of ``sacct -P``, with the memory of its steps."""
    array, het, association = (job.get(name) or {} for name in ("array", "het", "association"))
    time, required, tres = job["time"], job.get("required") or {}, job.get("tres") or {}
    allocated, requested = _tres(tres.get("allocated")), _tres(tres.get("requested"))
    name, leader, task = str(job["job_id"]), _number(het.get("job_id")), _text(array.get("task_id"))
    if leader:
        name = f"{leader}+{_number(het.get('job_offset')) or 0}"
    if _number(array.get("job_id")) and task:
        name = f"{_number(array['job_id'])}_{task}"
    limit = time.get("limit")
    status = job["state"]
    status = status.get("current", status) if isinstance(status, Mapping) else status
    per_processor = _number(required.get("memory_per_cpu"))
    per_node = _number(required.get("memory_per_node")) or _number(required.get("memory"))
    steps = job.get("steps") or []
    if not isinstance(steps, list):
        raise TypeError("steps")
    return {
        "line": place,
        "jobid": name,
        **{key: job.get(key) or association.get(key) or "" for key in ("cluster", "user", "account", "partition")},
        **{key: job.get(key) or "" for key in ("group", "qos", "licenses", "constraints")},
        "jobname": job.get("name") or "",
        "state": (status[0] if isinstance(status, list) and status else status) or "",
        # Slurm writes 0 for an unknown time.
        "submit": _text(_number(time["submission"]) or None),
        "eligible": _text(_number(time.get("eligible")) or None),
        "start": _text(_number(time["start"]) or None),
        "end": _text(_number(time["end"]) or None),
        "elapsedraw": _text(time.get("elapsed")),
        "suspended": _span(time.get("suspended")),
        "timelimit": "UNLIMITED" if isinstance(limit, Mapping) and limit.get("infinite") else _text(limit),
        "reqcpus": "" if "cpu=" in requested else _text(required.get("CPUs")),
        "allocnodes": _text(job.get("allocation_nodes")),
        "reqmem": f"{per_processor}c" if per_processor else f"{per_node or 0}n",
        "alloctres": allocated,
        "reqtres": requested,
        "totalcpu": _span(time.get("total")),
        "steps": len(steps),
        "step_memory": max(filter(None, map(_step_memory, steps)), default=None),
        "reservation": (job.get("reservation") or {}).get("name") or "",
        "submitline": job.get("submit_line") or "",
        "limit_of_array": _number(((array.get("limits") or {}).get("max") or {}).get("running", {}).get("tasks")),
    }


#: Largest number of the JSON: Slurm writes 64 bits without a sign for infinity, which are no value.
_LARGEST = 2**62


def _number(value: Any) -> int | None:
    """Return a number that can be a mapping {set, infinite, number}; None if it is not set."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None or isinstance(value, str):
        return None
    found = int(value)
    if abs(found) > _LARGEST:
        raise ValueError("a number beyond 2^62")
    return found


def _text(value: Any) -> str:
    number = _number(value)
    return "" if number is None else str(number)


def _span(value: Any) -> str:
    """Return seconds as a duration of sacct."""
    if isinstance(value, Mapping) and "seconds" in value:
        return f"0:0:{value['seconds']}.{value.get('microseconds') or 0:06}"
    return f"0:0:{_text(value)}"


def _tres(entries: Any) -> str:
    """Return trackable resources as a list of sacct, such as ``cpu=4,gres/gpu:a100=2``."""
    counts = [
        (entry["type"] + (f"/{entry['name']}" if entry.get("name") else ""), _number(entry.get("count")))
        for entry in entries or ()
    ]
    return ",".join(f"{name}={count}" for name, count in counts if count and count > 0)


def _step_memory(step: Mapping[str, Any]) -> float | None:
    """Return the memory of all tasks of a step, in KB."""
    requested = ((step.get("tres") or {}).get("requested") or {}) if isinstance(step, Mapping) else {}
    entries = [entry for key in ("total", "max") for entry in requested.get(key) or () if entry["type"] == "mem"]
    bytes_used = next(filter(None, (_number(entry.get("count")) for entry in entries)), None)
    return bytes_used / 1024 if bytes_used else None


# --- both -------------------------------------------------------------------------------------------------


def _of_one_cluster(jobs: pl.DataFrame, site: Site, path: str, tally: Tally) -> pl.DataFrame:
    counts = jobs["cluster"].drop_nulls().value_counts(sort=True).rows()
    shown = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts))
    if site.cluster is None:
        if len(counts) > 1:
            raise SwflowError(
                f"{path}: jobs of {len(counts)} clusters: {shown}; import one: swflow import sacct {path} "
                f"--cluster {counts[0][0]} -o {counts[0][0]}.parquet"
            )
        return jobs
    if site.cluster not in {name for name, _ in counts}:
        raise SwflowError(f"{path}: no job of cluster {site.cluster!r}; there are {shown or 'no names of clusters'}")
    return tally.drop(jobs, "another cluster", pl.col("cluster") != site.cluster)


def _records(jobs: pl.DataFrame, tally: Tally, limits: Mapping[str, float], cpus: int, join: bool) -> pl.DataFrame:
    """Return the records of ended allocations: each run once, components together."""
    jobs = tally.drop_repeated(_ended(jobs, tally), "cluster", "jobid", "submit", "start", "end")
    jobs = _components_together(jobs, tally)
    jobs = _limited(jobs, tally, limits)
    tally.note(jobs, "tasks of arrays", pl.col("task").is_not_null())
    tally.note(jobs, GPUS, pl.col("gpus") > 0)
    tally.note(jobs, LICENSES, pl.col("licensed"))
    jobs = _with_submission(jobs, tally)
    tally.note(jobs, RESERVATIONS, pl.col("reserved"))
    counted = tally.note(jobs, COUNTED_FEATURES, pl.col("constraint").str.contains(r"[\[*]"))
    jobs = jobs.with_columns(constraint=pl.when(~counted).then("constraint"))
    tally.note(jobs, "suspended for a while", pl.col("suspended_time") > 0)
    span = pl.col("end") - pl.col("start") - pl.col("suspended_time").fill_null(0)
    differs = (span - pl.col("elapsed")).abs() > 2
    by_an_hour = ((span - pl.col("elapsed")).abs() - 3600).abs() <= 2
    tally.note(jobs, "End - Start differs from Elapsed by an hour (give --timezone)", differs & by_an_hour)
    tally.note(jobs, "End - Start differs from Elapsed", differs & ~by_an_hour)
    # A job that was cancelled in the queue has the time of the cancellation as its start, and CPUs that it never had.
    at_once = (pl.col("state") == "CANCELLED") & (pl.coalesce("elapsed", span) == 0)
    started = pl.col("start").is_not_null() & ~at_once
    tally.note(jobs, "never started (kept, with a run time of 0)", ~started)
    jobs = jobs.with_columns(
        run_time=pl.when(started).then(pl.coalesce("elapsed", span)).otherwise(0.0),
        start=pl.coalesce("start", "end"),
        allocated=pl.when(started).then("allocated"),
    )
    jobs = jobs.with_columns(
        end=pl.coalesce("end", pl.col("start") + pl.col("run_time") + pl.col("suspended_time").fill_null(0))
    )
    jobs = _requeued(_without_preempted(jobs, tally) if join else jobs, tally)
    processors = pl.coalesce("allocated", "requested")
    for name in jobs["state"].drop_nulls().unique(maintain_order=True):
        if name not in slurm.STATES:
            tally.note(jobs, f"unknown state {name!r}", pl.col("state") == name)
    return jobs.with_columns(
        licenses=pl.when(pl.col("licenses") > 0).then("licenses"),
        memory=rounded_up(pl.col("memory")),
        site_job_id=pl.col("jobid"),
        allocated_processors=(pl.col("allocated") / cpus).ceil().cast(pl.Int64),
        requested_processors=(pl.col("requested") / cpus).ceil().cast(pl.Int64),
        average_cpu_time=pl.col("cpu_time") / processors * cpus,
        used_memory=pl.col("step_memory") / processors * cpus,
        requested_time=pl.col("limit"),
        requested_memory=pl.col("requested_memory") * cpus,
        status=pl.col("state").replace_strict(slurm.STATES, default=None, return_dtype=pl.Int64),
        user=pl.col("user_name"),
        group=pl.coalesce("account", "unix_group"),
        unix_group=pl.when(jobs["account"].null_count() < jobs.height).then("unix_group"),
    )


def _with_submission(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Add the job array of each task, the most tasks of it that run at once, and the dependencies of each job."""
    limit = whole_numbers(pl.col("submitted").str.extract(r"(?:^|\s)(?:--array(?:=|\s+)|-a\s*)\S*?%([0-9]+)", 1))
    if "limit_of_array" in jobs.columns:  # only in JSON
        limit = pl.coalesce(pl.when(pl.col("limit_of_array") > 0).then("limit_of_array"), limit)
    is_task = pl.col("task").is_not_null()
    jobs = jobs.with_columns(
        array=pl.when(is_task).then(pl.col("jobid").str.extract(r"^(\d+)_", 1)),
        array_limit=pl.when(is_task).then(limit),
    )
    depending = jobs.select("line", "submitted", "task").filter(pl.col("submitted").str.contains(r"--dependency|-d"))
    found = [(line, *slurm.predecessors(text, task)) for line, text, task in depending.iter_rows()]
    unmodelled = [line for line, _, others in found if others]
    tally.add(NOT_MODELLED, len(unmodelled), min(unmodelled, default=0))
    arrays = set(jobs["array"].drop_nulls().unique())
    rows = [(line, [f"{one}_*" if one in arrays else one for one in ids]) for line, ids, _ in found if ids]
    table = pl.DataFrame(rows, {"line": pl.Int64, "depends_on": pl.List(pl.String)}, orient="row")
    jobs = jobs.join(table, on="line", how="left", maintain_order="left")
    tally.note(jobs, DEPENDENCIES, pl.col("depends_on").is_not_null())
    return jobs


def _ended(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Leave out jobs that have not ended or that another cluster of a federation ran."""
    going_on = [name for name, status in slurm.STATES.items() if status is None]
    for name in sorted(jobs.filter(pl.col("state").is_in(going_on))["state"].unique()):
        jobs = tally.drop(jobs, f"not ended: {name}", pl.col("state") == name)
    jobs = tally.drop(jobs, "revoked: another cluster ran it", pl.col("state") == "REVOKED")
    endless = pl.col("end").is_null() & (pl.col("elapsed").is_null() | pl.col("start").is_null())
    jobs = tally.drop(jobs, "no end time", endless)
    return tally.drop(jobs, "ended before it started", pl.col("end") < pl.col("start"))


#: The columns of a heterogeneous job that its components give in another way than by the first value or a sum.
_TOGETHER = ("cluster", "submit", "eligible", "start", "end", "elapsed", "suspended_time", "requested_memory", "jobid")


def _components_together(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Join the components of each run of a heterogeneous job."""
    parts = jobs.filter(pl.col("component").is_not_null())
    if parts.is_empty():
        return jobs
    tally.note(parts, "components of heterogeneous jobs, joined", pl.lit(True))
    parts = _with_runs(parts.with_columns(leader=pl.col("jobid").str.extract(r"^(\d+)", 1)))
    sums = (
        "allocated", "requested", "nodes", "requested_nodes", "gpus", "licenses", "memory", "cpu_time", "step_memory"
    )  # fmt: skip
    memory = pl.col("requested_memory")
    processors = pl.when(memory.is_not_null()).then(pl.coalesce("allocated", "requested"))
    span = pl.col("end").max() - pl.col("start").min() - pl.col("suspended_time").max().fill_null(0)
    together = parts.group_by("cluster", "leader", "run", maintain_order=True).agg(
        *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in sums),
        pl.col("submit").min(),
        pl.col("eligible").max(),
        pl.col("start").min(),
        pl.col("end").max(),
        pl.col("suspended_time").max(),
        # Components that start at different times occupy the job's processors from the first start to the last end.
        pl.when(pl.col("start").n_unique() > 1).then(span).otherwise(pl.col("elapsed").max()).alias("elapsed"),
        pl.when(memory.count() > 0).then((memory * processors).sum() / processors.sum()).alias("requested_memory"),
        *(pl.col(name).first() for name in jobs.columns if name not in {*sums, *_TOGETHER}),
    )
    together = conformed(together.with_columns(jobid="leader"), jobs.schema)
    return pl.concat([jobs.filter(pl.col("component").is_null()), together]).sort("line")


def _with_runs(parts: pl.DataFrame) -> pl.DataFrame:
    """
    Add to each component the ``run`` of its heterogeneous job, from 0.

    A component belongs to the previous run if it overlaps with that run, or if the run lacks this component;
    otherwise it begins another run.
    """
    parts = parts.sort("cluster", "leader", pl.coalesce("start", "end"), "line")
    runs: list[int] = []
    job, run, ended, seen = None, 0, float("-inf"), set[int]()
    for row in parts.select("cluster", "leader", "component", "start", "end").iter_rows():
        begin, end = row[3] or row[4], row[4] or row[3]
        if row[:2] != job:
            job, run, ended, seen = row[:2], 0, float("-inf"), set()
        elif begin >= ended and row[2] in seen:
            run, ended, seen = run + 1, float("-inf"), set()
        runs.append(run)
        ended = max(ended, end)
        seen.add(row[2])
    return parts.with_columns(run=pl.Series(runs, dtype=pl.Int64)).sort("line")


def _limited(jobs: pl.DataFrame, tally: Tally, limits: Mapping[str, float]) -> pl.DataFrame:
    """Replace the limit Partition_Limit by that of the partition, where it is known."""
    of_partition = pl.col("limit_kind") == "partition"
    known = pl.col("partition").replace_strict(limits, default=None, return_dtype=pl.Float64)
    jobs = jobs.with_columns(limit=pl.when(of_partition).then(known).otherwise("limit"))
    tally.note(jobs, "time limit UNLIMITED: the estimate is unknown", pl.col("limit_kind") == "unlimited")
    tally.note(
        jobs,
        "time limit Partition_Limit: the estimate is unknown (give --partition-limit)",
        of_partition & pl.col("limit").is_null(),
    )
    return jobs


def _without_preempted(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Leave out preempted runs of jobs that ran again; the next run has the first of their submit times."""
    jobs, job = jobs.sort("start", "line"), ["cluster", "jobid"]
    lost = (pl.col("state") == "PREEMPTED").fill_null(False) & pl.col("line").shift(-1).over(job).is_not_null()
    kept = (~pl.col("lost")).cast(pl.Int64)
    jobs = jobs.with_columns(lost=lost).with_columns(turn=kept.cum_sum().over(job) - kept)
    first = [pl.col(name).first().over([*job, "turn"]) for name in ("submit", "eligible")]
    return tally.drop(jobs.with_columns(first), "preempted runs of jobs that ran again", pl.col("lost"))


def _requeued(jobs: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Set the submit time of every further run of a job to the end of the run before it, at the earliest."""
    jobs = jobs.sort("start", "line")
    before = pl.col("end").shift(1).over("cluster", "jobid")
    further = pl.col("line").cum_count().over("cluster", "jobid") > 1
    again = further & (before <= pl.col("start"))
    tally.note(jobs, "further runs of requeued jobs", again)
    tally.note(jobs, "records of one job that overlap in time (not reruns)", further & (before > pl.col("start")))
    return jobs.with_columns(
        submit=pl.when(again & (before > pl.col("submit"))).then(before).otherwise(pl.col("submit")),
        depends_on=pl.when(~further).then("depends_on"),
    ).sort("line")
