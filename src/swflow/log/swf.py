"""Read and write logs in the Standard Workload Format, version 2.2, plain or gzipped."""

import gzip
import io
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import polars.selectors as cs

from swflow.errors import SwflowError, shell_word
from swflow.files.atomic import atomic_path
from swflow.files.reading import BOM, FILE, GZIP_MAGIC, blocks, is_file, opened, plain_text, read_content, require_text
from swflow.jobs.header import Header
from swflow.jobs.table import SWF_FIELDS, conformed
from swflow.log import widths
from swflow.log.recognise import recognize
from swflow.log.settings import LENIENT

#: What a reader of a log expects, for error messages.
A_LOG = "a log in the Standard Workload Format"

#: Note of an imported log without a stated MaxProcs.
GUESSED_MACHINE = "MaxProcs is the number of processors that were ever busy at once; the machine may be larger"

#: The header keys of the format's definition, in its spelling.
HEADER_KEYS = (
    "Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion", "Copyright", "MaxJobs",
    "MaxRecords", "Preemption", "UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime", "MaxNodes",
    "MaxProcs", "MaxRuntime", "MaxMemory", "AllowOveruse", "MaxQueues", "Queues", "Queue", "MaxPartitions",
    "Partitions", "Partition", "Note",
)  # fmt: skip

_KEY = re.compile(r"([A-Za-z][\w-]*)\s*:(?!//)(.*)")
#: A key with a number, without the colon that the format requires.
_BARE_KEY = re.compile(
    r"(MaxJobs|MaxRecords|UnixStartTime|TimeZone|MaxNodes|MaxProcs|MaxRuntime|MaxMemory|MaxQueues|MaxPartitions)"
    r"(?:\s*=\s*|\s+)(-?\d+)",
    re.IGNORECASE,
)
_SPELLING = {key.lower(): key for key in HEADER_KEYS}

#: A number in a job line.
_VALUE = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

_NAMES = list(SWF_FIELDS)

#: A comment, which can follow a job in its line; other programs begin it with #.
COMMENT = r"(?:^#| ?;).*$"

#: White space within a line, and a line that consists of 18 texts that are numbers if they are well-formed.
_BLANKS, _PLAIN_LINE = r"[ \t\r\x0b\x0c]+", r"^[-+.0-9eE]+(?: [-+.0-9eE]+){17}$"

#: Other white space becomes blanks; the bytes of plain lines.
_TO_BLANKS, _PLAIN_BYTES = bytes.maketrans(b"\t\r\x0b\x0c", b"    "), b"-+.0123456789eE \n"


@dataclass(frozen=True)
class SwfLog:
    """
    Content of a log in the Standard Workload Format.

    Parameters
    ----------
    fields : polars.DataFrame
        One row per job line, in the file's order: the columns of `swflow.jobs.table.SWF_FIELDS`, with values as in
        the file (-1 is unknown).
    header : Header
        The comments before the first job: key to list of values, in order. Continuation lines are joined to their
        value with a line break.
    skipped : list of (int, str)
        Line number and reason of the skipped malformed lines (only with ``lenient``).
    notes : tuple of str
        Departures from the format that were read nevertheless, such as further fields.
    """

    fields: pl.DataFrame
    header: Header
    skipped: list[tuple[int, str]]
    notes: tuple[str, ...] = ()


def read_swf(path: str | os.PathLike[str], *, lenient: bool = False, further: bool = False) -> SwfLog:
    r"""
    Read a log in the Standard Workload Format.

    The format is defined by Feitelson, Tsafrir and Krakov, "Experience with using the Parallel Workloads Archive",
    Journal of Parallel and Distributed Computing 74(10), 2014, and Chapin et al., "Benchmarks and standards for the
    evaluation of parallel job schedulers", JSSPP 1999. Any white space separates fields. Comments start with a
    semicolon; the header consists of those before the first job.

    Parameters
    ----------
    path : path-like
        A plain or gzipped file with any name.
    lenient : bool
        Skip malformed lines and return them in ``skipped`` instead of raising an error.
    further : bool
        Return the fields after the 18th of the format, too, as texts: ``field_19``, ``field_20`` and so on.

    Returns
    -------
    SwfLog
        Jobs, header, and skipped lines.

    Raises
    ------
    SwflowError
        If the file cannot be read, is not text, has no job, or (unless lenient) has a malformed line: not 18 fields,
        a field that is not a finite number, or a fraction in a field of whole numbers.

    Examples
    --------
    >>> path = "/tmp/example.swf"
    >>> _ = Path(path).write_text("; MaxProcs: 8\n1 0 -1 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1\n")
    >>> log = read_swf(path)
    >>> dict(log.header), log.fields["run_time"].to_list()
    ({'MaxProcs': ['8']}, [60.0])
    """
    return parse_swf(_read_log(path), str(path), lenient=lenient, further=further)


def _read_log(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a log file; raise `SwflowError` if it is unreadable or larger than `FILE`."""
    try:
        return read_content(path)
    except SwflowError as error:
        if f" {FILE.what}; " not in str(error):
            raise
        raise SwflowError(
            f"{path}: more than {FILE.amount:,} bytes; convert it to a workload first, part by part: "
            f"swflow clean {shell_word(path)} -o LOG.parquet"
        ) from None


#: Size in bytes above which a text is read part by part; for gzipped files, a tenth of it.
LARGE_TEXT = 2**28


def is_large(path: str | os.PathLike[str]) -> bool:
    """Return whether to read a log part by part, see `LogParts`; False for pipes and unreadable files."""
    try:
        if not is_file(path):
            return False
        with Path(path).open("rb") as file:
            is_packed = file.read(2) == GZIP_MAGIC
            return os.fstat(file.fileno()).st_size > LARGE_TEXT // (10 if is_packed else 1)
    except OSError:
        return False


class LogParts:
    """
    A log in the Standard Workload Format that is read part by part, so that its text can exceed the memory.

    ``texts`` are parts of whole lines, such as those of `text_parts`; ``where`` names the log in errors; ``further`` is
    as in `read_swf`. The attributes are those of `SwfLog`. The header is available before the first part; ``skipped``
    is complete after the last part.
    """

    def __init__(self, texts: Iterator[bytes], where: str, *, lenient: bool = False, further: bool = False) -> None:
        self._texts, self.where, self.lenient = texts, where, lenient
        self.skipped: list[tuple[int, str]] = []
        self._first = next(self._texts, b"")
        self.header = Header(parse_header(self._first))
        self._width = widths.width_of(self._first, len(_NAMES))
        self._has_further = further and self._width > len(_NAMES)
        self.notes = () if self._has_further else widths.notes_on(self._width, _NAMES, self.header)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        lines = jobs = 0
        for text in chain([self._first], self._texts):
            given = text
            text = text if self._width == len(_NAMES) else widths.as_standard(text, self._width, len(_NAMES))
            fields, faults = _parse_fields(text, stop_at_first=not self.lenient)
            self.skipped += [(lines + line, reason) for line, reason in faults]
            if faults and not self.lenient:
                line, reason = self.skipped[0]
                advice = f"correct the line, or skip such lines and count them with {LENIENT}"
                raise SwflowError(_of_other_kind(self.where) or f"{self.where}:{line}: {reason}; {advice}")
            if self._has_further:
                further = widths.further_fields(given, {line for line, _ in faults}, len(_NAMES), self._width)
                fields = pl.concat([fields, further], how="horizontal")
            lines += text.count(b"\n")
            jobs += fields.height
            if fields.height:
                yield fields
        if not jobs:
            hint = "; the first malformed line is {}: {}".format(*self.skipped[0]) if self.skipped else ""
            reason = f"{self.where}: no job lines{hint}; a job is a line of 18 numbers"
            raise SwflowError(_of_other_kind(self.where) or reason)


def _of_other_kind(path: str) -> str | None:
    """Return what to do with a file that is of another known kind than a log."""
    found = recognize(path)
    return None if found.key in ("swf", "unknown", "empty") else found.describe(path)


def text_parts(path: str) -> Iterator[bytes]:
    """Yield the text of a log in parts of whole lines."""
    rest, has_lines = b"", False
    with opened(path) as file:
        for number, block in enumerate(blocks(file, os.fstat(file.fileno()).st_size, path)):
            require_text(block, path, A_LOG, is_first=number == 0)
            rest += block if number else block.removeprefix(BOM)
            end = rest.rfind(b"\n") + 1
            if end:
                has_lines = True
                yield rest[:end]
                rest = rest[end:]
    if rest:
        yield rest if has_lines else rest.replace(b"\r", b"\n")


def parse_swf(content: bytes, where: str, *, lenient: bool = False, further: bool = False) -> SwfLog:
    """Parse the content of a log file, plain or gzipped; see `read_swf`. ``where`` names it in errors."""
    text = plain_text(content, where, A_LOG).removeprefix(BOM)
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    log = LogParts(iter([text]), where, lenient=lenient, further=further)
    [fields] = log
    return SwfLog(fields, log.header, log.skipped, log.notes)


# --- the job lines ----------------------------------------------------------------------------------------


def _parse_fields(text: bytes, stop_at_first: bool) -> tuple[pl.DataFrame, list[tuple[int, str]]]:
    """Return the job table, and (line, reason) of the malformed lines, in order."""
    whole = _parse_plain(text)
    if whole is not None:
        return whole, []
    lines = pl.DataFrame({"text": text.decode("latin-1").split("\n")}).with_row_index("line", 1)
    lines = lines.with_columns(pl.col("text").str.replace_all(_BLANKS, " ").str.strip_chars(" "))
    lines = lines.with_columns(pl.col("text").str.replace(COMMENT, "")).filter(pl.col("text") != "")
    plain = lines.filter(pl.col("text").str.contains(_PLAIN_LINE))
    content = io.BytesIO("\n".join(plain["text"].to_list()).encode())
    table = pl.DataFrame(schema=SWF_FIELDS)
    if plain.height:
        table = pl.read_csv(
            content, has_header=False, separator=" ", quote_char=None, schema=SWF_FIELDS, ignore_errors=True
        )
    table = table.with_columns(plain["line"]).filter(pl.all_horizontal(cs.float().is_finite())).drop_nulls()
    odd = lines.join(table, on="line", how="anti", maintain_order="left") if table.height < lines.height else lines[:0]
    rows, faults = [], []
    for line, content in odd.iter_rows():
        found = _parse_odd(content.encode("latin-1"))
        if not isinstance(found, str):
            rows.append((*found, line))
            continue
        faults.append((line, found))
        if stop_at_first:
            break
    if rows:
        table = pl.concat([table, pl.DataFrame(rows, table.schema, orient="row")]).sort("line")
    return table.drop("line"), faults


def _parse_plain(text: bytes) -> pl.DataFrame | None:
    """Return the job table if all lines after the first comments are plain, as in most logs; else None."""
    begin = 0
    while text.startswith((b";", b"\n"), begin):
        begin = text.find(b"\n", begin) + 1 or len(text)
    rows = text[begin:].translate(_TO_BLANKS)
    if not rows or rows.translate(None, _PLAIN_BYTES):
        return None
    data = np.frombuffer(b"\n" + rows, np.uint8)
    rows = data[1:][(data[1:] != 32) | (data[:-1] > 32)].tobytes()  # no blank after white space
    for superfluous in (b" \n", b"\n\n"):
        while superfluous in rows:
            rows = rows.replace(superfluous, b"\n")
    try:
        table = pl.read_csv(rows.strip(), has_header=False, separator=" ", quote_char=None, schema=SWF_FIELDS)
    except pl.exceptions.PolarsError:  # another number of fields, or a text that is not a number of its type
        return None
    is_complete = table.height and not table.null_count().sum_horizontal()[0]
    return table if is_complete and table.select(pl.all_horizontal(cs.float().is_finite().all())).item() else None


def _parse_odd(line: bytes) -> list[float] | str:
    """Parse a line that is not plain; return its values, or what is wrong with it."""
    tokens = line.split()
    if len(tokens) != len(_NAMES):
        return f"{len(tokens)} fields instead of 18"
    values = []
    for place, (name, token) in enumerate(zip(_NAMES, tokens, strict=True), 1):
        value = _parse_value(token, SWF_FIELDS[name] == pl.Int64)
        if isinstance(value, str):
            shown = token.decode("utf-8", "replace")
            shown = shown if len(shown) <= 30 else shown[:27] + "..."
            return f"field {place} ({name}): {shown!r} {value}"
        values.append(value)
    return values


def _parse_value(token: bytes, is_whole: bool) -> float | str:
    """Return the number in a field, or what is wrong with it."""
    if not _VALUE.fullmatch(token):
        return "is not a number"
    text = token.decode()
    real = float(text)
    if not math.isfinite(real) or (is_whole and abs(real) > 2.0**63):
        return "is too large"
    if not is_whole:
        return real
    try:
        exact = Decimal(text)
    except InvalidOperation:  # the exponent is below the range of Decimal
        return "is not a whole number"
    if exact != exact.to_integral_value():
        return "is not a whole number"
    return int(exact) if -(2**63) <= exact < 2**63 else "is too large"


# --- the header -------------------------------------------------------------------------------------------


def parse_header(text: bytes) -> dict[str, list[str]]:
    r"""
    Return the header: the comments before the first job.

    A line ``; Key: value`` starts a value. Any other comment continues the previous value. This includes lines that
    look like a key but are indented to the value's column, or whose key is not in the standard and is indented more
    than the previous key. Text before the first key is a Note.

    The result maps keys, in the standard's spelling, to lists of values.

    Examples
    --------
    >>> parse_header(b"; Information: http://a/\n;              http://b/\n; maxprocs: 128\n")
    {'Information': ['http://a/\nhttp://b/'], 'MaxProcs': ['128']}
    """
    header: dict[str, list[list[str]]] = {}  # the lines of each value
    key, key_indent, value_column = "", 0, 0
    for comment in _leading_comments(text):
        stripped = comment.strip()
        if not stripped:
            continue
        indent = len(comment) - len(comment.lstrip())
        match = _KEY.fullmatch(stripped) or _BARE_KEY.fullmatch(stripped)
        if match and key:
            is_standard = match[1].lower() in _SPELLING
            if indent >= value_column or (indent > key_indent and not is_standard):
                match = None
        if match:
            key = _SPELLING.get(match[1].lower(), match[1])
            key_indent, value_column = indent, indent + len(key) + 2
            header.setdefault(key, []).append([match[2].strip()])
        elif key:
            header[key][-1].append(stripped)
        else:
            key, key_indent, value_column = "Note", indent, indent + 6
            header["Note"] = [[stripped]]
    return {key: ["\n".join(filter(None, lines)) for lines in values] for key, values in header.items()}


def _leading_comments(text: bytes) -> list[str]:
    """Return the comment lines before the first job, without semicolons and with tabs expanded."""
    comments = []
    for line in map(bytes.strip, io.BytesIO(text.removeprefix(BOM))):
        if line and not line.startswith((b";", b"#")):
            break
        try:
            comment = line.decode("utf-8")
        except UnicodeDecodeError:
            comment = line.decode("latin-1")
        comments.append(comment.expandtabs()[1:])
    return comments


# --- writing ----------------------------------------------------------------------------------------------


def write_swf(path: str | os.PathLike[str], jobs: pl.DataFrame, header: Mapping[str, list[str]] | None = None) -> None:
    """
    Write jobs in the Standard Workload Format, version 2.2, atomically; gzipped if the file's name ends in ``.gz``.

    The table has some columns of `swflow.jobs.table.JOB_COLUMNS`. Null and missing values are written as -1, except
    that ``processors`` replaces missing allocated processors if it differs from the requested ones. A value of the
    header with line breaks is written with continuation lines. It is an error if a number is not finite, or a fraction
    in a field of whole numbers. The same jobs give identical files.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1], "submit_time": [0.0], "run_time": [1.5], "processors": [4]})
    >>> write_swf("/tmp/written.swf", jobs, {"MaxProcs": ["8"]})
    >>> print(Path("/tmp/written.swf").read_text(), end="")
    ; Version: 2.2
    ; MaxProcs: 8
    1 0 -1 1.5 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
    """
    text = io.BytesIO()
    text.write(_header_text(header or {}).encode())
    if "processors" in jobs.columns:
        allocated, requested = (
            pl.col(name) if (name := f"{kind}_processors") in jobs.columns else pl.lit(None, pl.Int64)
            for kind in ("allocated", "requested")
        )
        needed = pl.when(requested.is_null() | (requested != pl.col("processors"))).then("processors")
        jobs = jobs.with_columns(allocated_processors=pl.coalesce(allocated, needed))
    table = pl.DataFrame([_printable_field(jobs, name, str(path)) for name in _NAMES])
    table.write_csv(text, include_header=False, separator=" ", quote_style="never")
    content = text.getvalue()
    with atomic_path(path) as temporary:
        temporary.write_bytes(compress(content) if str(path).endswith(".gz") else content)


def compress(text: bytes) -> bytes:
    """Return gzipped text without time and file name, so that equal texts give identical files."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as file:
        file.write(text)
    return packed.getvalue()


def run_as_swf(jobs: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """
    Convert the outcomes of simulated jobs to a log for `write_swf`.

    The result has the columns of `swflow.jobs.table.SWF_FIELDS`, in the order of the jobs. Wait time, run time and
    allocated processors are simulated values, status is 1 (completed) or 0 (killed), other columns are as recorded.
    Jobs without an outcome are omitted.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [0.0, 5.0], "user_id": [7, 8]})
    >>> outcomes = pl.DataFrame({"job_id": [2], "submit_time": [5.0], "start_time": [9.0], "processors": [4],
    ...                          "run_time": [60.0], "killed": [False]})
    >>> run_as_swf(jobs, outcomes).select("job_id", "wait_time", "allocated_processors", "status").rows()
    [(2, 4.0, 4, 1)]
    """
    if jobs["job_id"].is_duplicated().any():
        raise SwflowError("run as SWF: the jobs need one job_id each; some repeat")
    simulated = outcomes.select(
        "job_id",
        "submit_time",
        "run_time",
        wait_time=pl.col("start_time") - pl.col("submit_time"),
        allocated_processors="processors",
        status=pl.when(pl.col("killed").fill_null(False)).then(0).otherwise(1),
    )
    recorded = jobs.select("job_id", *(n for n in _NAMES if n in jobs.columns and n not in simulated.columns))
    return conformed(recorded.join(simulated, on="job_id", how="inner", maintain_order="left"), SWF_FIELDS)


def _header_text(header: Mapping[str, list[str]]) -> str:
    lines = ["; Version: 2.2"]
    for key, values in header.items():
        if not re.fullmatch(r"[A-Za-z][\w-]*", key):
            raise SwflowError(f"header: {key!r} is not a valid key; use letters, digits, - and _, without spaces")
        for value in values if key != "Version" else []:
            first, *others = re.split(r"\r\n|\r|\n", value)
            lines.append(f"; {key}: {first}".rstrip())
            lines += [f";{' ' * (len(key) + 3)}{other}" for other in others]
    return "\n".join(lines) + "\n"


def _printable_field(jobs: pl.DataFrame, name: str, where: str) -> pl.Series:
    """Return a field as whole numbers, or as text if there are fractions."""
    if name not in jobs.columns or jobs[name].null_count() == jobs.height:
        return pl.repeat(-1, jobs.height, dtype=pl.Int64, eager=True).alias(name)
    values = jobs[name].fill_null(-1)
    if values.dtype.is_integer():
        return values.alias(name)
    if not values.dtype.is_float():
        raise SwflowError(f"{where}: {name} holds {values.dtype}, not numbers; it cannot be written as SWF")
    if not values.is_finite().all():
        raise SwflowError(f"{where}: {name} has values that are not finite; it cannot be written as SWF")
    values = values.cast(pl.Float64)
    is_whole = (values == values.floor()) & (values.abs() < 2.0**63)
    if is_whole.all():
        return values.cast(pl.Int64).alias(name)
    if SWF_FIELDS[name] == pl.Int64:
        raise SwflowError(f"{where}: {name} has fractions; the Standard Workload Format requires whole numbers")
    exact = values.cast(pl.Int64, strict=False).cast(pl.String)
    return exact.zip_with(is_whole, values.cast(pl.String)).alias(name)
