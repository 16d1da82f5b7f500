"""Slurm's accounting: the text of ``sacct -P`` with any columns, ``sacct --json``, and jobcomp/filetxt."""

import re
from collections import Counter
from collections.abc import Mapping

import polars as pl

from swflow.errors import SwflowError, shell_word
from swflow.log.importers import slurm
from swflow.log.importers.cells import is_separator, one_byte, read_cells
from swflow.log.importers.jobcomp import read_jobcomp
from swflow.log.importers.lines import Check, Layout, matches, padded, read_records, read_text
from swflow.log.importers.notation import PLACEHOLDERS
from swflow.log.importers.records import ImportedLog, Site, Tally, make_log
from swflow.log.importers.slurm_jobs import records_of
from swflow.log.importers.slurm_json import read_json
from swflow.log.importers.slurm_values import JOB_ID, STEP, jobs_of
from swflow.log.recognise import OTHER_NAMES, USED, is_jobcomp, is_yaml, without_messages, without_preamble
from swflow.log.separators import SEPARATORS, separator_of

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

_DURATION = r"(\d+-)?\d+(:\d+)*(\.\d+)?"
_MOMENT = r"\d{4}[-/]\d\d?[-/]\d\d?([T ]+\d\d?:\d\d(:\d\d([.,]\d+)?)?)?\s*(Z|UTC|[+-]\d\d:?(\d\d)?)?|\d+(\.\d+)?"
_NOTHING = f"|(?i:{'|'.join(map(re.escape, PLACEHOLDERS))})"
_CHECKS: dict[str, Check] = {
    "jobid": padded(rf"{JOB_ID}({STEP})?"),
    "jobidraw": padded(r"\d+(\.\w+)?"),
    **dict.fromkeys(("submit", "start", "end", "eligible"), padded(rf"{_MOMENT}{_NOTHING}")),
    **dict.fromkeys(
        ("elapsed", "suspended", "totalcpu", "cputime", "systemcpu", "usercpu", "planned", "reserved"),
        padded(rf"{_DURATION}{_NOTHING}"),
    ),
    "timelimit": padded(rf"({_DURATION}|UNLIMITED|Partition_Limit{_NOTHING})?"),  # steps have none
    **dict.fromkeys(
        ("elapsedraw", "reqcpus", "alloccpus", "ncpus", "allocnodes", "nnodes", "ntasks", "uid", "gid", "cputimeraw",
         "priority", "timelimitraw"),
        padded(rf"\d*(\.\d+)?[KMG]?|UNLIMITED|Partition_Limit{_NOTHING}"),
    ),
    "state": padded(r"[A-Za-z_]+\+?( by \S+)?"),
    "reqmem": padded(r"(\d+(\.\d+)?[KMGTPE]?[Bcn]?|\d*\?)?"),
    "exitcode": padded(r"(\d+:\d+)?"),
    "derivedexitcode": padded(r"(\d+:\d+)?"),
    **dict.fromkeys(("alloctres", "reqtres", "allocgres", "reqgres", "constraints"), padded(r"[^\s]*")),
    "reservation": padded(r"[^|\s]*"),
    "submitline": matches(r"(\S*(sbatch|srun|salloc)\s[\s\S]*)?"),
    **dict.fromkeys(("user", "group", "account", "qos", "cluster", "partition"), matches(r"[^\n]*")),
}  # fmt: skip


def import_sacct(
    path: str,
    site: Site | None = None,
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

    Examples
    --------
    >>> import swflow
    >>> swflow.import_sacct("sacct.txt", swflow.Site(processors=2048)).write("my.parquet")  # doctest: +SKIP
    """
    if cpus_per_processor < 1:
        raise SwflowError(f"--cpus-per-processor: {cpus_per_processor}; expected at least 1")
    site = site or Site()
    limits = {name: _limit(text, name) for name, text in (partition_limits or {}).items()}
    tally = Tally()
    text, messages = without_messages(read_text(path))
    tally.add("messages of commands", messages, 1)
    if text.lstrip()[:1] in (b"{", b"["):
        table, form = read_json(text, path, tally), "sacct --json"
    elif is_yaml(text):
        table, form = read_json(text, path, tally), "sacct --yaml"
    elif is_jobcomp(text):
        table, form = read_jobcomp(text, path, tally), "jobcomp"
    else:
        table, form = _read_columns(text, path, columns, delimiter, tally), "sacct"
    jobs = _of_one_cluster(jobs_of(table, site, tally), site, path, tally)
    names = jobs["cluster"].drop_nulls().unique()
    computer = names[0] if len(names) == 1 else site.cluster
    records = records_of(jobs, tally, limits, cpus_per_processor, join_preempted)
    return make_log(records, tally, site, source=path, form=form, computer=computer)


def _limit(text: str, name: str) -> float:
    value = slurm.duration(text)
    if value is None:
        raise SwflowError(f"--partition-limit: {name}={text!r} is not a time limit; expected such as main=2-00:00:00")
    return value


# --- text -------------------------------------------------------------------------------------------------


def _read_columns(text: bytes, path: str, columns: str | None, delimiter: str, tally: Tally) -> pl.DataFrame:
    """Read the text of ``sacct -P``: ``line`` and the used columns, as text."""
    if not is_separator(delimiter):
        raise SwflowError(f"--delimiter: {delimiter!r}; expected one or several characters such as '|' or ';'")
    text, before = (text, 0) if columns else without_preamble(text)
    tally.add("lines before the header", before, 1)
    text, delimiter = one_byte(text, delimiter if columns else _separator(text, delimiter))
    names, body, first_line = _header_of(text, path, columns, delimiter)
    first_line += before
    header_line = None if columns else text[: text.find(b"\n")]
    if header_line:
        body = _without_headers(body, header_line, first_line, tally)
    wanted = {used: name for used in USED for name in (OTHER_NAMES.get(used, used), used) if name in names}
    _require(path, names, wanted)
    if delimiter in ",;\t" and b'"' in text:
        head = delimiter.join(names).encode() + b"\n"
        cells, _ = read_cells(head + body, path, delimiter)
        table = cells.with_columns(pl.all().fill_null(""), line=pl.int_range(first_line, pl.len() + first_line))
    else:
        # Resources have commas, too.
        free = (*_FREE, *_TRES) if delimiter == "," else _FREE
        table = read_records(
            body, Layout(names, delimiter, _CHECKS, free, _agrees), [*wanted.values()], tally, first_line
        )
    if table.is_empty():
        reasons = ", ".join(f"{count:,} {reason} (line {line})" for reason, (count, line) in tally.removed.items())
        left_out = f" ({reasons})" if reasons else ""
        raise SwflowError(f"{path}: the file contains no job{left_out}; expected one line per job after the header")
    table = table.select("line", *(pl.col(name).alias(used) for used, name in wanted.items()))
    return table.with_columns(pl.col(pl.String).str.strip_chars())


_TRES = ("alloctres", "reqtres", "allocgres", "reqgres")


def _separator(text: bytes, delimiter: str) -> str:
    """Return the separator of a header: the given one, or another one between which it has JobID."""
    header = text.partition(b"\n")[0].decode("utf-8", "replace")
    likely = separator_of(header)
    for one in (delimiter, *SEPARATORS, likely if likely != " " else delimiter):
        if "jobid" in _names(header, "\t" if one == r"\t" else one):
            return one
    return delimiter


def _names(header: str, delimiter: str) -> list[str]:
    """Return the names of columns in lower case, without quotes and widths."""
    bare = (name.strip(" \t\"'\ufeff\u00a0\r") for name in header.split(delimiter))
    names = [re.sub(r"%-?[0-9]+$", "", name).lower() for name in bare]
    return names if "jobid" in names else ["jobid" if name == "jobidraw" else name for name in names]


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
    tres = re.search(r"(?:^|,)cpu=([0-9]+)", record.get("alloctres", ""))
    found = {record[name] for name in ("alloccpus", "ncpus") if record.get(name, "").isdecimal()}
    found |= {tres[1]} if tres else set()
    if len(found) > 1:
        return False
    elapsed, used = record.get("elapsedraw", ""), record.get("cputimeraw", "")
    if not (found and elapsed.isdecimal() and used.isdecimal()):
        return True
    return int(used) == int(elapsed) * int(found.pop())


def _header_of(text: bytes, path: str, columns: str | None, delimiter: str) -> tuple[list[str], bytes, int]:
    """Return the columns in lower case, the text after the header, and the number of its first line."""
    if columns:
        return _names(columns, ","), text, 1
    line, _, body = text.partition(b"\n")
    names = _names(line.decode("utf-8", "replace"), delimiter)
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


def _of_one_cluster(jobs: pl.DataFrame, site: Site, path: str, tally: Tally) -> pl.DataFrame:
    counts = jobs["cluster"].drop_nulls().value_counts(sort=True).rows()
    shown = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts))
    if site.cluster is None:
        if len(counts) > 1:
            raise SwflowError(
                f"{path}: jobs of {len(counts)} clusters: {shown}; import one: swflow import sacct {shell_word(path)} "
                f"--cluster {shell_word(counts[0][0])} -o {shell_word(f'{counts[0][0]}.parquet')}"
            )
        return jobs
    if site.cluster not in {name for name, _ in counts}:
        raise SwflowError(f"{path}: no job of cluster {site.cluster!r}; there are {shown or 'no names of clusters'}")
    return tally.drop(jobs, "another cluster", pl.col("cluster") != site.cluster)
