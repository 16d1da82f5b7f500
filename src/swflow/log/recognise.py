"""Recognize what a file is by its beginning, and name the command that reads it."""

import os
import re
import shlex
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swflow.files.reading import as_utf8, is_file
from swflow.log.separators import RULER, separator_of

#: The columns of sacct that are used, in lower case, and other names of some.
USED = (
    "jobid", "cluster", "user", "uid", "group", "gid", "account", "partition", "qos", "jobname", "state", "submit",
    "eligible", "start", "end", "elapsed", "elapsedraw", "suspended", "timelimit", "timelimitraw", "reqcpus",
    "alloccpus", "allocnodes", "reqmem", "alloctres", "reqtres", "totalcpu", "maxrss", "averss", "ntasks", "licenses",
    "reservation", "submitline", "constraints", "allocgres", "reqgres",
)  # fmt: skip
OTHER_NAMES = {"alloccpus": "ncpus", "allocnodes": "nnodes"}

#: All names of used columns.
_COLUMN_NAMES = {"jobidraw", *USED, *OTHER_NAMES.values()}

#: The beginning of a file that is looked at, bytes.
_BEGIN = 1 << 16

#: What to do with a file that no command reads. The name of the table is not that of the file.
_TABLE = (
    "convert it to a table with a header and read that with: swflow import csv JOBS.csv -o OUT --columns MAPPING.yaml"
)

#: The command that reads a site; other files than slurm.conf are added by options.
_SITE = "swflow import site slurm.conf -o site.yaml"

#: What is done with each kind of file: its name, and the command that reads it (FILE and OUT stand for names), or what
#: to do instead.
KINDS: dict[str, tuple[str, str]] = {
    "swf": ("a log in the Standard Workload Format", "swflow clean FILE -o OUT"),
    "sacct": ("Slurm accounting (sacct -P)", "swflow import sacct FILE -o OUT"),
    "sacct-json": ("Slurm accounting (sacct --json)", "swflow import sacct FILE -o OUT"),
    "sacct-yaml": ("Slurm accounting (sacct --yaml)", "swflow import sacct FILE -o OUT"),
    "jobcomp": ("Slurm accounting (jobcomp/filetxt)", "swflow import sacct FILE -o OUT"),
    "sacct-headless": (
        "Slurm accounting without a header", "swflow import sacct FILE -o OUT --format JobID,User,…",
    ),
    "sacct-aligned": ("Slurm accounting in columns of fixed width, which are truncated", "print it with: sacct -P"),
    "squeue": ("a queue of Slurm (squeue)", "swflow forecast LOG --queue FILE"),
    "jobcomp-json": ("Slurm accounting (jobcomp/elasticsearch or jobcomp/kafka)", _TABLE),
    "scontrol": ("jobs of Slurm as scontrol shows them", "print ended jobs with: sacct -a -P"),
    "scontrol-site": (
        "a Slurm site as scontrol or sinfo shows it", f"copy slurm.conf from the site and read it with: {_SITE}",
    ),
    "slurm-nodes": ("nodes of Slurm (scontrol show node)", f"{_SITE} --nodes FILE"),
    "slurm-reservations": ("reservations of Slurm (scontrol show res)", f"{_SITE} --reservations FILE"),
    "slurm-events": ("events of Slurm's nodes (sacctmgr show event)", f"{_SITE} --events FILE"),
    "slurm-tables": ("tables of Slurm in JSON (sacctmgr)", "print them with -P: sacctmgr show qos -P"),
    "slurm-qos": ("QOS of Slurm (sacctmgr show qos)", f"{_SITE} --qos FILE"),
    "slurm-usage": ("usage of Slurm's associations (sshare)", f"{_SITE} --usage FILE"),
    "slurm-associations": ("associations of Slurm (sacctmgr show assoc)", f"{_SITE} --associations FILE"),
    "slurm.conf": ("a configuration of Slurm", "swflow import site FILE -o site.yaml"),
    "pbs": ("accounting of PBS or Torque", "swflow import pbs FILE -o OUT"),
    "qstat-json": ("a queue of PBS (qstat -f -F json)", "read its accounting files with: swflow import pbs"),
    "lsf": ("accounting of LSF (lsb.acct)", "swflow import lsf FILE -o OUT"),
    "lsf-events": ("events of LSF (lsb.events, lsb.stream)", "read lsb.acct with: swflow import lsf"),
    "bacct": ("the output of LSF's bacct or bjobs", "read lsb.acct with: swflow import lsf"),
    "sge": ("accounting of Grid Engine (SGE, UGE)", "swflow import sge FILE -o OUT"),
    "sge-json": ("accounting of Altair Grid Engine in JSON", _TABLE),
    "qacct": ("the output of Grid Engine's qacct or qstat", "read the file accounting with: swflow import sge"),
    "qstat": ("a queue of PBS or Torque (qstat)", "read its accounting files with: swflow import pbs"),
    "condor": ("a history of HTCondor", "swflow import condor FILE -o OUT"),
    "condor-table": (
        "a table of HTCondor", "print ended jobs with condor_history -json, and read that with: swflow import condor",
    ),
    "condor-xml": (
        "a history of HTCondor in XML", "print it with condor_history -json, and read that with: swflow import condor",
    ),
    "batsim": ("a workload of Batsim", "swflow import batsim FILE -o OUT"),
    "philly": ("jobs of the Philly traces", "swflow import philly FILE -o OUT"),
    "gwf": ("a log in the Grid Workloads Format", "swflow import gwf FILE -o OUT"),
    "csv": ("a table with a header", "swflow import csv FILE -o OUT --columns MAPPING.yaml"),
    "moab": ("events of Moab or Maui", _TABLE),
    "oar": ("jobs of OAR", _TABLE),
    "flux": ("jobs of Flux", _TABLE),
    "cobalt": ("accounting of Cobalt", _TABLE),
    "clustercockpit": ("jobs of ClusterCockpit", _TABLE),
    "wta": ("a table of the Workflow Trace Archive", "swflow import csv FILE -o OUT --columns MAPPING.yaml"),
    "json": ("JSON of an unknown kind", _TABLE),
    "xml": ("XML", _TABLE),
    "html": ("a web page", "download the file again"),
    "sql": ("statements of SQL", _TABLE),
    "log": ("an imported log", "swflow clean FILE -o OUT"),
    "workload": ("a workload of swflow", "swflow simulate FILE"),
    "run": ("a run of swflow", "swflow export FILE -o OUT"),
    "parquet": ("a table in Parquet", "swflow import csv FILE -o OUT --columns MAPPING.yaml"),
    "binary": ("not text", "unpack or convert it to text"),
    "empty": ("empty", "export the jobs again"),
    "unknown": ("text of an unknown kind", _TABLE),
}  # fmt: skip

#: The kinds that `swflow import sacct` reads, and those that need no options.
SACCT = ("sacct", "sacct-json", "sacct-yaml", "jobcomp", "sacct-headless")
IMPORTED = ("sacct", "sacct-json", "sacct-yaml", "jobcomp", "pbs", "lsf", "sge", "condor", "batsim", "philly", "gwf")


@dataclass(frozen=True)
class Recognized:
    """The kind of a file, a key of `KINDS`, why it is taken for this, and the mapping of columns that fits, if any."""

    key: str
    reason: str
    columns: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the kind."""
        return KINDS[self.key][0]

    @property
    def is_read(self) -> bool:
        """Return whether a command of swflow reads the file."""
        return KINDS[self.key][1].startswith("swflow ")

    def command(self, path: str | os.PathLike[str]) -> str:
        """Return the command that reads the file, or what to do instead."""
        output = f"{_stem(path)}.parquet"
        if output == Path(path).name:
            output = f"{_stem(path)}-new.parquet"
        words = {"FILE": str(path), "OUT": output, "MAPPING.yaml": self.columns or "MAPPING.yaml"}
        return re.sub(r"\b(?:FILE|OUT|MAPPING\.yaml)\b", lambda word: shlex.quote(words[word[0]]), KINDS[self.key][1])

    def describe(self, path: str | os.PathLike[str]) -> str:
        """Return the kind, the reason and the command, for a message."""
        verb = "read it with" if self.is_read else "no command reads it"
        return f"{path}: {self.name} ({self.reason}), not a log; {verb}: {self.command(path)}"


def recognize(path: str | os.PathLike[str]) -> Recognized:
    """Return what a file is, by its beginning; unreadable files are of an unknown kind."""
    begin = _begin_of(path)
    if begin is None:
        return Recognized("unknown", "it cannot be read")
    return _of_parquet(path) if begin.startswith(b"PAR1") else recognize_text(begin)


def recognize_text(begin: bytes) -> Recognized:
    r"""
    Return what a text is, by its beginning.

    Examples
    --------
    >>> texts = b'"JOB_FINISH" "10.1" 1656313251', b"NodeName=n1 CPUs=4", b"; MaxProcs: 8", b"id,submit,run\n1,2,3"
    >>> for text in texts:
    ...     print(recognize_text(text).key)
    lsf
    slurm.conf
    swf
    csv
    """
    text = as_utf8(begin).lstrip()
    if not text:
        return Recognized("empty", "it has no text")
    if b"\0" in text[:4096] or text[:4] in (b"PK\x03\x04", b"\xfd7zX", b"BZh9"):
        return Recognized("binary", f"it begins with {text[:8]!r}")
    if re.match(_JSON_BEGIN, bare := without_messages(text)[0].lstrip()):
        return _of_json(bare)
    for find in (_by_words, _by_lines, _by_header, _by_numbers):
        if found := find(text):
            return found
    return Recognized("unknown", "neither its words nor its columns are known")


def is_accounting(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is the output of ``sacct -P``, ``sacct --json`` or jobcomp/filetxt."""
    return recognize(path).key in SACCT[:4]


def is_jobcomp(text: bytes) -> bool:
    """Return whether a text is in the format of jobcomp/filetxt."""
    return text.lstrip().startswith(b"JobId=")


#: The line before the jobs in YAML of Slurm, after other keys and their values, or the first key of a list of jobs.
_YAML = re.compile(
    rb"(?:(?:%YAML|---|#|\.\.\.|(?:!!str )?[\w\"']+:|[ \t])[^\n]*\n)*?"
    rb"(?:(?:!!str )?['\"]?jobs['\"]?:[ \t]*(?:!!seq)?[ \t]*\n|- ['\"]?(?:account|job_id|allocation_nodes)['\"]?:)"
)


def is_yaml(text: bytes) -> bool:
    """Return whether a text is the output of ``sacct --yaml``."""
    return _YAML.match(text[:_BEGIN]) is not None


def _stem(path: str | os.PathLike[str]) -> str:
    return Path(path).name.partition(".")[0] or "log"


def _begin_of(path: str | os.PathLike[str]) -> bytes | None:
    """Return the beginning of a file, plain or gzipped; None if it cannot be read."""
    if not is_file(path):
        return None
    try:
        with Path(path).open("rb") as file:
            begin = file.read(_BEGIN)
        return zlib.decompressobj(31).decompress(begin) if begin[:2] == b"\x1f\x8b" else begin
    except (OSError, zlib.error):
        return None


def _of_parquet(path: str | os.PathLike[str]) -> Recognized:
    """Return what a Parquet file is, by its metadata and columns."""
    import polars as pl

    from swflow.errors import SwflowError
    from swflow.files.tables import read_metadata

    try:
        kind, names = read_metadata(path).get("kind"), set(pl.read_parquet_schema(str(path)))
    except (SwflowError, OSError, pl.exceptions.PolarsError):
        return Recognized("binary", "it is a damaged Parquet file")
    if kind in ("log", "workload", "run"):
        return Recognized(str(kind), "its metadata names it")
    if {"ts_submit", "workflow_id"} <= names:
        return Recognized("wta", "it has the columns ts_submit and workflow_id")
    return Recognized("parquet", f"it has the columns {', '.join(sorted(names)[:4])}", _mapping_for(names))


#: How JSON begins; times in brackets, as in the files of daemons, do not.
_JSON_BEGIN = rb"\{|\[\s*(?:[{\[\]\"]|$)"

#: The keys that tell kinds of JSON apart, in the order of the checks: all of the first, and any of the others.
_JSON: tuple[tuple[str, set[str], set[str]], ...] = (
    ("batsim", {"jobs"}, {"nb_res", "subtime"}),
    ("flux", {"id"}, {"t_submit", "t_run", "t_cleanup", "t_depend"}),
    ("clustercockpit", {"jobId"}, {"subCluster", "numHwthreads", "numNodes", "jobState"}),
    ("condor", {"ClusterId"}, {"ProcId", "QDate", "JobStatus"}),
    ("philly", {"attempts"}, {"submitted_time", "vc"}),
    ("qstat-json", {"Jobs"}, {"pbs_version", "Resource_List"}),
    ("sge-json", {"job_number"}, {"ru_wallclock", "wallclock", "submission_time", "granted_pe"}),
    ("bacct", {"RECORDS"}, {"JOBS", "JOBID"}),
    ("oar", set(), {"assigned_network_address", "submissionTime", "submission_time", "Job_Id"}),
    ("jobcomp-json", {"jobid"}, {"@submit", "@start", "@end"}),
    ("slurm-nodes", {"nodes"}, {"real_memory", "architecture", "boot_time"}),
    ("scontrol-site", {"partitions"}, {"maximums", "configured", "total_cpus"}),
    ("slurm-reservations", {"reservations"}, {"node_list", "purge_completed", "partition"}),
    ("squeue", {"job_id"}, {"job_state", "state_reason"}),
    ("sacct-json", {"job_id"}, {"time", "association", "allocation_nodes", "state"}),
    ("scontrol-site", {"sinfo"}, {"node", "nodes", "partition"}),
    ("slurm-tables", {"qos"}, {"preempt", "limits", "usage_factor"}),
    ("slurm-tables", {"associations"}, {"parent_account", "account"}),
)


def _of_json(text: bytes) -> Recognized:
    """Return what JSON is, by the keys at its beginning."""
    names = {name.decode("utf-8", "replace") for name in re.findall(rb'"([\w.@-]{1,40})"\s*:', text)}
    for key, needed, any_of in _JSON:
        if needed <= names and any_of & names:
            return Recognized(key, f"its jobs have the keys {', '.join(sorted(needed | (any_of & names))[:4])}")
    if "jobs" in names and re.search(rb'"jobs"\s*:\s*\[\s*(\]|\{\s*\})', text):
        return Recognized("squeue" if "last_update" in names else "sacct-json", "it has a list jobs")
    return Recognized("json", f"its keys are {', '.join(sorted(names)[:4]) or 'none'}")


#: Words at the beginning of a file, or of one of its lines, that belong to one kind.
_WORDS: tuple[tuple[str, bytes, str], ...] = (
    ("lsf", rb'(?m)^"JOB_FINISH" ', "its records begin with JOB_FINISH"),
    ("lsf-events", rb'^(?:#[^\n]*\n)*"(?:JOB_|LOAD_|MBD_|QUEUE_|HOST_|EVENT_)\w+" ', "its records are events"),
    ("bacct", rb"^Accounting information about jobs|^JOBID +USER +STAT +QUEUE +FROM_HOST", "it has the words of LSF"),
    ("cobalt", rb"^\d\d/\d\d/\d{4} [\d:]{8};\w;\d+;(?=[^\n]*\bargs=)(?=[^\n]*\bcwd=)", "its records have args and cwd"),
    ("cobalt", rb"^\d{4}-\d\d-\d\d [\d:.]{8,15};\w+;\d+;", "its records are a time, a letter and a number"),
    ("pbs", rb"(?m)^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;\w;", "its records are a time, a letter and an id"),
    ("moab", rb"^\d\d:\d\d:\d\d \d+:\d+ \w+ \S+ [A-Z]+", "its records are a time and an event"),
    ("moab", rb"^(?:VERSION \d+\s*\n)?\S+(?: +\d+){2}(?: +\S+){2} +\d+ +[A-Z]\w+ +\[\S+:\d+\] ", "it has classes"),
    ("qacct", rb"^={20,}\s*\nqname\s|^job-ID +prior +name ", "it has the words of Grid Engine"),
    ("qstat", rb"^Job Id: |^Job id +Name +User\b|^[^\n]+: *\n[^\n]*\n? *Req'd +Req'd ", "it has the words of PBS"),
    ("condor-table", rb"^(?:-- Schedd: [^\n]*\n)?(?:ID\s+OWNER|OWNER\s+BATCH_NAME)\s+SUBMITTED", "it has OWNER"),
    ("condor-xml", rb"^(?:<[?!][^>]*>\s*)*<classads>", "it has the element classads"),
    ("html", rb"(?i)^(?:<!--[^\n]*-->\s*)?<(?:!doctype )?html\b", "it begins with the tag html"),
    ("xml", rb"^<(?:\?xml\b|\w+>)", "it begins with a tag"),
    ("sql", rb"(?mi)^(?:CREATE TABLE|INSERT INTO) [`\"\w]", "it has statements of SQL"),
    ("condor", rb"(?mi)^(?:ClusterId|GlobalJobId|JobStatus) *= *", "it has attributes such as ClusterId"),
    ("oar", rb"^(?:---\s*\n)?(?:\W?\d+\W?:\s*\n)?\s*(?:Job_Id|id): \d+\s*\n\s+\w+ *[=:]", "it has the key Job_Id"),
    ("flux", rb"^\s*JOBID\s+(?:QUEUE\s+)?USER\s+NAME\s+ST\s+NTASKS\s", "its header has NTASKS"),
    ("scontrol", rb"^JobId=\S+ (?:\S+ )*JobName=[^\n]*\n\s+\w+=", "its records have several lines"),
    ("jobcomp", rb"^JobId=\d+ ", "its records begin with JobId="),
    ("slurm-nodes", rb"(?m)^NodeName=\S+ (?:[^\n]*\n)?[^\n]*\b(?:CPUTot|CPUAlloc)=", "its nodes have CPUTot"),
    ("slurm-reservations", rb"^ReservationName=\S+ [^\n]*StartTime=", "its records begin with ReservationName="),
    ("scontrol-site", rb"^PartitionName=\S+\s*\n\s+Allow|^Configuration data as of ", "it has the words of scontrol"),
    ("scontrol-site", rb"^PARTITION +AVAIL +TIMELIMIT ", "its header is that of sinfo"),
    (
        "slurm.conf",
        rb"(?mi)^\s*(?:(?:Node|Partition|Cluster)Name|SlurmctldHost|ControlMachine|(?:Select|Scheduler)Type) *= *\S|"
        rb"^include +[\"']?[\w./%*-]+\.conf\b",
        "it has options of slurm.conf",
    ),
)  # fmt: skip


def _by_words(text: bytes) -> Recognized | None:
    """Return what a text is, by words that only one kind has."""
    if text.startswith(b";"):
        return None
    for key, pattern, reason in _WORDS:
        if re.search(pattern, text[:16_384]):
            return Recognized(key, reason)
    if is_yaml(text) and re.search(rb"(?m)^[\s-]+['\"]?job_id['\"]?:", text):
        is_queue = re.search(rb"(?m)^[\s-]+['\"]?job_state['\"]?:", text) is not None
        return Recognized("squeue" if is_queue else "sacct-yaml", "it has a list jobs in YAML")
    return None


def _lines(text: bytes) -> Iterator[str]:
    """Yield the lines of a text that are no comments, without the last one, which can be cut off."""
    lines = RULER.sub(b"", text.replace(b"\r", b"\n")).split(b"\n")
    for line in lines if len(text) < _BEGIN else lines[:-1]:
        if line.strip() and not line.lstrip().startswith((b";", b"#")):
            yield line.decode("utf-8", "replace").strip()


#: Lines before a table that are no part of it: comments, messages of commands, the name of a cluster, and a date.
_PREAMBLE = re.compile(
    rb"\s*(?:[#;]|(?:sacct|squeue|srun|slurm\w*): |CLUSTER: |[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8}|"
    rb"(?i:sep)=.$|$)"
)


def without_preamble(text: bytes) -> tuple[bytes, int]:
    r"""
    Return a text from the first line that can be a header on, and the number of lines before it.

    Examples
    --------
    >>> without_preamble(b"sacct: error: x\n# y\nJobID|User\n1|a\n"), without_preamble(b"JobID|User\n")
    ((b'JobID|User\n1|a\n', 2), (b'JobID|User\n', 0))
    """
    count = begin = 0
    while begin < len(text) and count < _MOST_BEFORE:
        end = text.find(b"\n", begin) + 1 or len(text)
        if not _PREAMBLE.match(text[begin:end].rstrip()):
            break
        begin, count = end, count + 1
    return text[begin:], count


#: The commands of Slurm that print messages beside their output, and such a line.
_SPEAKERS = (b"sacct: ", b"squeue: ", b"scontrol: ", b"sacctmgr: ", b"srun: ", b"slurmdbd: ")
_MESSAGE = re.compile(rb"(?m)^(?:%s)[^\n]*\n?" % b"|".join(_SPEAKERS))


def without_messages(text: bytes) -> tuple[bytes, int]:
    r"""
    Return a text in which the messages of Slurm's commands are empty lines, and their number.

    Examples
    --------
    >>> without_messages(b"sacct: error: x\n{}\n"), without_messages(b"JobID|User\n")
    ((b'\n{}\n', 1), (b'JobID|User\n', 0))
    """
    has_messages = any(word in text for word in _SPEAKERS)  # faster than the expression
    return _MESSAGE.subn(b"\n", text) if has_messages else (text, 0)


#: The most lines of a preamble.
_MOST_BEFORE = 100

#: Queue, host, group, user, name, job, account, priority, three times, and two codes (accounting of Grid Engine).
_SGE = r"[^:]*:[^:]*:[^:]*:[^:]*:.*?:\d+:[^:]*:-?\d+(?::\d{1,13}){3}:-?\d+:-?\d+:"


def _by_lines(text: bytes) -> Recognized | None:
    """Return what a text is, by the shape of its first line."""
    line = next(_lines(text), "")
    if line.count(":") >= 36 and re.match(_SGE, line):
        return Recognized("sge", f"its records have {line.count(':') + 1} fields between colons")
    if line.count("|") >= 4 and re.match(r"\s*[0-9]+[0-9_+\[\].]*\w*\s*\|", line) and re.search("[A-Za-z]", line):
        return Recognized("sacct-headless", "it has columns between | without a header")
    return None


#: The columns of squeue that sacct does not have.
_OF_SQUEUE = {"st", "nodelist(reason)", "time_left", "time_limit", "start_time", "submit_time", "min_cpus"}


#: The columns of tables of a site, in the order of the checks.
_OF_SITES = (
    ("slurm-events", {"nodename", "timestart", "timeend"}), ("slurm-qos", {"name", "priority", "usagefactor"}),
    ("slurm-qos", {"name", "priority", "preempt"}), ("slurm-usage", {"account", "rawusage"}),
    ("slurm-associations", {"account", "user", "share"}), ("slurm-reservations", {"name", "start", "end", "nodenames"}),
)  # fmt: skip


def _by_header(text: bytes) -> Recognized | None:
    """Return what a text is, by the names in its first line, or in the comment before it."""
    lines = _lines(without_preamble(text)[0])
    line, second = next(lines, ""), next(lines, "")
    if re.match(r"[-+.]?[0-9]", line):
        return None
    bare = re.sub(r'"[^"]*"', lambda match: match[0].strip('"').replace(",", " "), line)
    found = separator_of(bare)
    mark = found if found in bare else " "
    is_parsable = mark not in " \t;,"
    names = [name.strip(" \t\"'").lower() for name in (bare.split() if mark == " " else bare.split(mark))]
    known = _COLUMN_NAMES.intersection(re.sub(r"%-?[0-9]+$", "", name) for name in names)
    of_squeue = {"st", "nodelist(reason)"} & {*names} or ({"time_limit", "submit_time"} <= {*names} and line.isupper())
    for key, needed in _OF_SITES:
        if needed <= {*names} and is_parsable:
            return Recognized(key, f"its header has {', '.join(sorted(needed))}")
    if "jobid" in names and _OF_SQUEUE & set(names) and (mark == " " or is_parsable or of_squeue):
        return Recognized("squeue", f"its header has {', '.join(sorted(_OF_SQUEUE & set(names))[:3])}")
    if mark == " " and {"jobid", "jobidraw"} & known and (len(known) > 1 or set(second.strip()) <= set("- ")):
        return Recognized("sacct-aligned", "its header has JobID between blanks")
    if {"ts_submit", "workflow_id"} <= {*names}:
        return Recognized("wta", "it has the columns ts_submit and workflow_id")
    if {"jobid", "jobidraw"} & known and (len(known) > 2 or is_parsable):
        return Recognized("sacct", f"its header has {', '.join(sorted(known)[:4])}")
    if is_parsable and len(known) == len(names):
        return Recognized("sacct", f"its header has {', '.join(sorted(known)[:4])}")
    filled = [name for name in names if name]  # a column of row numbers has no name
    are_names = len(names) - len(filled) < 3 and all(len(name) <= 60 and name.count(" ") < 4 for name in filled)
    are_names &= mark != " " or all(re.fullmatch(r"[^\W\d][\w.()/%#-]*", name) for name in filled)
    if len(filled) > 2 and are_names and not any(re.fullmatch(r"[-+0-9.e]+", name) for name in names):
        spelled = [name.strip(" \t\"'") for name in (bare.split() if mark == " " else bare.split(mark))]
        if not second or abs(len(second.split(None if mark == " " else mark)) - len(names)) <= 1 or '"' in second:
            return Recognized("csv", f"its header has {', '.join(spelled[:4])}", _mapping_for(set(spelled)))
    return None


def _mapping_for(names: set[str]) -> str | None:
    """Return the included mapping of columns whose columns a table has, if there is one."""
    from swflow.files.yaml import parse_yaml

    for path in sorted((Path(__file__).parent / "importers/columns").glob("*.yaml")):
        entries = parse_yaml(path.read_text())["columns"].values()
        needed = [entry for entry in entries if isinstance(entry, str) or not entry.get("optional")]
        if {entry if isinstance(entry, str) else entry["column"] for entry in needed} <= names:
            return path.stem
    return None


def _by_numbers(text: bytes) -> Recognized | None:
    """Return what a text of numbers is, by the number of its fields."""
    fields = next(_lines(text), "").split()
    number = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
    numbers = sum(number.fullmatch(field) is not None for field in fields)
    is_standard = 18 <= len(fields) < 29 and all(map(number.fullmatch, fields[:18]))
    if text.startswith(b";"):
        comments = [line for line in text.split(b"\n", 500)[:500] if line.lstrip().startswith(b";")]
        named = len(comments[-1].lstrip(b"; ").split()) if comments else 0
        if 5 < len(fields) < 17 and named == len(fields) and b":" not in comments[-1]:
            return Recognized("csv", f"its last comment names {named} columns")
        return Recognized("swf", "its comments begin with ;")
    if len(fields) == 29 and numbers >= 11 and numbers < 29:
        return Recognized("gwf", "its lines have 29 fields")
    is_standard &= not re.search(rb"(?i)\bgwf\b|grid workload|SiteID", text[:4096])
    if text.startswith(b"#") and len(fields) >= 11 and numbers >= 11 and not is_standard:
        return Recognized("gwf", f"its comments begin with #, and its lines have {len(fields)} fields")
    if len(fields) >= 17 and numbers >= 17:
        return Recognized("swf", f"its lines have {len(fields)} fields, mostly numbers")
    return None
