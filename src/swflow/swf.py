"""Reading and writing logs in the Standard Workload Format, version 2.2, plain or gzipped."""

import gzip
import io
import math
import os
import re
import stat
import zlib
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.jobs import SWF_FIELDS
from swflow.kernels import Handle, Kernel

#: The header's keys in the format's definition, in its spelling.
HEADER_KEYS = (
    "Version",
    "Computer",
    "Installation",
    "Acknowledge",
    "Information",
    "Conversion",
    "Copyright",
    "MaxJobs",
    "MaxRecords",
    "Preemption",
    "UnixStartTime",
    "TimeZone",
    "TimeZoneString",
    "StartTime",
    "EndTime",
    "MaxNodes",
    "MaxProcs",
    "MaxRuntime",
    "MaxMemory",
    "AllowOveruse",
    "MaxQueues",
    "Queues",
    "Queue",
    "MaxPartitions",
    "Partitions",
    "Partition",
    "Note",
)

#: The largest file that is read as a whole, and the longest text that is decompressed, bytes: ten times the archive's
#: largest. `LogParts` reads larger ones.
LARGEST_FILE = 2**30
LARGEST_TEXT = 2**32

#: Logs are packed ten to one. Beyond this, a text above the size is no log but made to fill the memory.
MOST_PACKED, PACKED_SIZE = 100, 2**26

_GZIP_MAGIC = b"\x1f\x8b"
_OTHER_MAGIC = {
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file",
}
_BOM = b"\xef\xbb\xbf"
_KEY = re.compile(r"([A-Za-z][\w-]*)\s*:(?!//)(.*)")
_NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d{1,9})?(?![\d_])")
_SPELLING = {key.lower(): key for key in HEADER_KEYS}

# Why a line is malformed, as the kernel says it.
_WRONG_COUNT, _NOT_A_NUMBER, _NOT_WHOLE = 1, 2, 3
_TOO_LARGE = 4

_NAMES = list(SWF_FIELDS)
_WHOLE = np.array([dtype == pl.Int64 for dtype in SWF_FIELDS.values()])
#: Each field's row in the kernel's array of its type.
_ROWS = np.where(_WHOLE, np.cumsum(_WHOLE) - 1, np.cumsum(~_WHOLE) - 1)
#: The powers of ten that a float holds exactly.
_POWERS = np.array([float(10**exponent) for exponent in range(23)])


@dataclass(frozen=True)
class SwfLog:
    """
    What a log in the Standard Workload Format says.

    Parameters
    ----------
    fields : polars.DataFrame
        One row a job line, in the file's order: the columns of `swflow.jobs.SWF_FIELDS`, values as they are
        in the file (-1 is unknown).
    header : dict
        The comments before the first job: key to list of values, in order. Lines that continue a value are
        joined to it with a line break.
    skipped : list of (int, str)
        Line number and reason of the malformed lines that were left out (only with ``lenient``).
    """

    fields: pl.DataFrame
    header: dict[str, list[str]]
    skipped: list[tuple[int, str]]


def read_swf(path: str | os.PathLike[str], *, lenient: bool = False) -> SwfLog:
    r"""
    Read a log in the Standard Workload Format.

    The format: Feitelson, Tsafrir and Krakov, "Experience with using the Parallel Workloads Archive",
    Journal of Parallel and Distributed Computing 74(10), 2014, and Chapin et al., "Benchmarks and standards
    for the evaluation of parallel job schedulers", JSSPP 1999. Any white space separates fields, comments
    start with a semicolon; only those before the first job are the header.

    Parameters
    ----------
    path : path-like
        A plain or gzipped file, whatever its name.
    lenient : bool
        Skip malformed lines and give them in ``skipped`` instead of raising an error.

    Returns
    -------
    SwfLog
        Jobs, header, and skipped lines.

    Raises
    ------
    SwflowError
        If the file cannot be read, is no text, has no job, or (unless lenient) has a malformed line: not 18
        fields, or a field that is no finite number, or a fraction where a whole number belongs.

    Examples
    --------
    >>> path = "/tmp/example.swf"
    >>> _ = Path(path).write_text("; MaxProcs: 8\n1 0 -1 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1\n")
    >>> log = read_swf(path)
    >>> log.header, log.fields["run_time"].to_list()
    ({'MaxProcs': ['8']}, [60.0])
    """
    return parse_swf(read_content(path), str(path), lenient=lenient)


def read_content(path: str | os.PathLike[str]) -> bytes:
    """Return a log file's bytes; `SwflowError` if it cannot be read, is a device, or is above `LARGEST_FILE`."""
    try:
        with Path(path).open("rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
                raise SwflowError(f"{path}: a device, not a log file")
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SwflowError(f"{path}: {_os_reason(error)}") from None
    if len(content) > LARGEST_FILE:
        raise SwflowError(
            f"{path}: more than {LARGEST_FILE:,} bytes; make a workload of the log first, which is done part by part: "
            f"swflow clean {path} -o LOG.parquet"
        )
    return content


#: A log whose text may have more bytes than this is read part by part; packed, a tenth of it.
LARGE_TEXT = 2**28

#: So much text is parsed at a time then, bytes.
PART = 2**26


def is_large(path: str | os.PathLike[str]) -> bool:
    """Return whether a log is better read part by part, see `LogParts`; a pipe, or what cannot be read, is not."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            is_packed = file.read(2) == _GZIP_MAGIC
            return os.fstat(file.fileno()).st_size > LARGE_TEXT // (10 if is_packed else 1)
    except OSError:
        return False


class LogParts:
    """
    A log in the Standard Workload Format that is read part by part: its text may be larger than the memory.

    Parameters
    ----------
    path : path-like
        A plain or gzipped file.
    lenient : bool
        Skip malformed lines and note them in ``skipped`` instead of raising an error.

    Attributes
    ----------
    header : dict
        As of `SwfLog`; known before the first part is given.
    skipped : list of (int, str)
        As of `SwfLog`; complete after the last part.

    Raises
    ------
    SwflowError
        As `read_swf` does.
    """

    def __init__(self, path: str | os.PathLike[str], *, lenient: bool = False) -> None:
        self.path, self.lenient = str(path), lenient
        self.skipped: list[tuple[int, str]] = []
        self._texts = _text_parts(self.path)
        self._first = next(self._texts, b"")
        self.header = parse_header(self._first)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        lines = jobs = 0
        for text in chain([self._first], self._texts):
            fields, faults = _parse_fields(text, stop_at_first=not self.lenient)
            self.skipped += [(lines + line, reason) for line, reason in faults]
            if faults and not self.lenient:
                raise _malformed(self.path, *self.skipped[0])
            lines += text.count(b"\n")
            jobs += fields.height
            if fields.height:
                yield fields
        if not jobs:
            raise _no_jobs(self.path, self.skipped)


def _text_parts(path: str) -> Iterator[bytes]:
    """Give the text of a log in parts of whole lines."""
    rest, has_lines = b"", False
    try:
        with Path(path).open("rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
                raise SwflowError(f"{path}: a device, not a log file")
            packed = os.fstat(file.fileno()).st_size
            is_packed = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            source: Any = gzip.GzipFile(fileobj=file) if is_packed else file
            most = max(PACKED_SIZE, MOST_PACKED * packed)
            size = 0
            while block := source.read(PART):
                if not size:
                    block = block.removeprefix(_BOM)
                size += len(block)
                _require_text(block, path, is_first=size == len(block))
                if is_packed and size > most:
                    raise _fills_the_memory(path, packed, most)
                end = block.rfind(b"\n") + 1
                if end:
                    has_lines = True
                    yield rest + block[:end]
                    rest = block[end:]
                else:
                    rest += block
    except EOFError:
        raise SwflowError(f"{path}: the gzip file is truncated; fetch or copy it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise SwflowError(f"{path}: damaged gzip data ({error}); fetch or copy it again") from None
    except OSError as error:
        raise SwflowError(f"{path}: {_os_reason(error)}") from None
    if rest:
        yield rest if has_lines else rest.replace(b"\r", b"\n")


def parse_swf(content: bytes, where: str, *, lenient: bool = False) -> SwfLog:
    """
    Parse the content of a log file; see `read_swf`.

    Parameters
    ----------
    content : bytes
        The file's bytes, plain or gzipped.
    where : str
        The file's name, for errors.
    lenient : bool
        Skip malformed lines.
    """
    text = plain_text(content, where).removeprefix(_BOM)
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    fields, faults = _parse_fields(text, stop_at_first=not lenient)
    if faults and not lenient:
        raise _malformed(where, *faults[0])
    if fields.is_empty():
        raise _no_jobs(where, faults)
    return SwfLog(fields, parse_header(text), faults)


def _malformed(where: str, line: int, reason: str) -> SwflowError:
    return SwflowError(f"{where}:{line}: {reason}; correct the line, or skip such lines and count them with --lenient")


def _no_jobs(where: str, faults: Sequence[tuple[int, str]]) -> SwflowError:
    hint = f"; the first malformed line is {faults[0][0]}: {faults[0][1]}" if faults else ""
    return SwflowError(f"{where}: no job lines{hint}; a job is a line of 18 numbers")


def plain_text(content: bytes, where: str) -> bytes:
    """
    Return a log's text, decompressed if it is gzipped.

    Parameters
    ----------
    content : bytes
        The bytes of a file.
    where : str
        The file's name, for errors.

    Raises
    ------
    SwflowError
        If the gzip data is damaged or expands beyond `LARGEST_TEXT`, or the content is no text.
    """
    text = content
    if content.startswith(_GZIP_MAGIC):
        try:
            text = _decompress(content, where)
        except EOFError:
            raise SwflowError(f"{where}: the gzip file is truncated; fetch or copy it again") from None
        except (OSError, zlib.error) as error:
            raise SwflowError(f"{where}: damaged gzip data ({error}); fetch or copy it again") from None
    _require_text(text, where)
    return text


def _require_text(text: bytes, where: str, is_first: bool = True) -> None:
    """Raise an error if a part of a file, its first or another one, is no text."""
    kinds = [kind for magic, kind in _OTHER_MAGIC.items() if is_first and text.startswith(magic)]
    if kinds or b"\0" in text:
        kind = kinds[0] if kinds else "a binary file"
        raise SwflowError(f"{where}: {kind}, no log in the Standard Workload Format; give plain or gzipped text")


def _fills_the_memory(where: str, packed: int, most: int) -> SwflowError:
    return SwflowError(
        f"{where}: {packed:,} bytes decompress to more than {most:,}; that is no log, but would fill "
        "the memory; get the right file"
    )


def _decompress(content: bytes, where: str) -> bytes:
    """Decompress bit by bit, so that a file made to fill the memory is left in time."""
    most = min(LARGEST_TEXT, max(PACKED_SIZE, MOST_PACKED * len(content)))
    text = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        while block := file.read(1 << 22):
            text += block
            if len(text) > most:
                raise _fills_the_memory(where, len(content), most)
    return bytes(text)


def _os_reason(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "no such file"
        case IsADirectoryError():
            return "a folder, not a log file"
    return f"cannot be read ({error.strerror or error})"


# --- the job lines ----------------------------------------------------------------------------------------


def _parse_fields(text: bytes, stop_at_first: bool) -> tuple[pl.DataFrame, list[tuple[int, str]]]:
    """Return the job table, and (line, reason) of the malformed lines, in order."""
    data = np.frombuffer(text, np.uint8)
    capacity = text.count(b"\n") + 1
    whole = np.empty((int(_WHOLE.sum()), capacity), np.int64)
    real = np.empty((int((~_WHOLE).sum()), capacity), np.float64)
    rows, bad, odd = _parse(data, whole, real, stop_at_first)
    faults = [(int(line), _reason(reason, value, text[start:stop])) for line, reason, value, start, stop in bad]
    kept = np.ones(rows, bool)
    for line, row, field, start, stop in odd:
        token = text[start:stop]
        value, fault = _parse_odd(token, bool(_WHOLE[field]))
        if fault:
            if kept[row]:
                faults.append((int(line), _reason(fault, field, token)))
            kept[row] = False
        else:
            (whole if _WHOLE[field] else real)[_ROWS[field], row] = value
    columns = {name: (whole if _WHOLE[field] else real)[_ROWS[field], :rows] for field, name in enumerate(_NAMES)}
    table = pl.DataFrame(columns, schema=SWF_FIELDS)
    return (table if kept.all() else table.filter(pl.Series(kept))), sorted(faults)


def _reason(code: int, value: int, token: bytes) -> str:
    if code == _WRONG_COUNT:
        return f"{value} fields instead of 18"
    shown = token.decode("utf-8", "replace")
    shown = repr(shown if len(shown) <= 30 else shown[:27] + "...")
    fault = {
        _NOT_A_NUMBER: "is not a number",
        _NOT_WHOLE: "is not a whole number",
        _TOO_LARGE: "is too large",
    }
    return f"field {value + 1} ({_NAMES[value]}): {shown} {fault[code]}"


def _parse_odd(token: bytes, is_whole: bool) -> tuple[float, int]:
    """Parse a number that the kernel leaves (an exponent, or many digits); return it and a reason or 0."""
    text = token.decode("ascii")
    real = float(text)
    if not np.isfinite(real):
        return 0, _TOO_LARGE
    if not is_whole:
        return real, 0
    if abs(real) > 2.0**63:
        return 0, _TOO_LARGE
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent so far below zero that Decimal cannot hold it
        return 0, _NOT_WHOLE
    if exact != exact.to_integral_value():
        return 0, _NOT_WHOLE
    return (int(exact), 0) if -(2**63) <= exact < 2**63 else (0, _TOO_LARGE)


class _Lines(NamedTuple):
    """
    A log's text, and what is read of it.

    Parameters
    ----------
    data : array of uint8, shape (bytes,)
        The text.
    is_whole, target : arrays, shape (18,)
        Whether a field is a whole number, and its row in ``whole`` or ``real``.
    powers : array of float64, shape (23,)
        Powers of ten: a mantissa below 2**53 over one of them is the correctly rounded quotient.
    whole, real : arrays of int64 and float64, shape (fields, lines)
        The results.
    bad : array of int64, shape (malformed lines, 5)
        Line, reason, number of fields or index of the field, and where its text starts and stops.
    odd : array of int64, shape (numbers left to Python, 5)
        Line, job, field, and where its text starts and stops.
    at : array of int64, shape (5,)
        Where the next line begins, the lines before it, their jobs, and how many of them are in ``bad`` and ``odd``.
    """

    data: np.ndarray
    is_whole: np.ndarray
    target: np.ndarray
    powers: np.ndarray
    whole: np.ndarray
    real: np.ndarray
    bad: np.ndarray
    odd: np.ndarray
    at: np.ndarray


def _parse(
    data: np.ndarray, whole: np.ndarray, real: np.ndarray, stop_at_first: bool
) -> tuple[int, np.ndarray, np.ndarray]:
    """Parse all job lines, or those up to the first malformed one; return their number and what `_Lines` says."""
    bad, odd = np.empty((16, 5), np.int64), np.empty((64, 5), np.int64)
    lines = _Lines(data, _WHOLE, _ROWS, _POWERS, whole, real, bad, odd, np.zeros(5, np.int64))
    while not _PARSE_LINES(Handle([lines]), int(stop_at_first)):
        lines = lines._replace(bad=np.vstack([lines.bad] * 2), odd=np.vstack([lines.odd] * 2))
    _, _, jobs, bads, odds = lines.at.tolist()
    return jobs, lines.bad[:bads], lines.odd[:odds]


def _parse_lines(lines: _Lines, stop_at_first: int) -> int:
    """Parse job lines (a kernel); return 0 if there has to be more room in ``bad`` and ``odd`` for the next one."""
    data, is_whole, target, powers, at = lines.data, lines.is_whole, lines.target, lines.powers, lines.at
    whole, real, bad, odd = lines.whole, lines.real, lines.bad, lines.odd
    position, line, jobs, bads, odds = at[0], at[1], at[2], at[3], at[4]
    size = data.size
    done = 1
    while position < size:
        if bads == bad.shape[0] or odds + is_whole.size > odd.shape[0]:
            done = 0
            break
        line += 1
        field = 0
        reason = reason_field = reason_start = reason_stop = 0
        odds_before = odds
        comment = False
        while True:
            while position < size and data[position] != 10 and (data[position] == 32 or 9 <= data[position] <= 13):
                position += 1
            if position == size or data[position] == 10:
                break
            if field == 0 and data[position] == 59:  # a semicolon
                comment = True
                while position < size and data[position] != 10:
                    position += 1
                break
            start = position
            negative = data[position] == 45
            if negative or data[position] == 43:
                position += 1
            mantissa = np.int64(0)
            digits = 0  # significant ones
            decimals = 0
            any_digit = fraction = exponent = False
            while position < size and 48 <= data[position] <= 57:
                digit = np.int64(data[position]) - 48
                any_digit = True
                if digits > 0 or digit > 0:
                    digits += 1
                if digits <= 18:
                    mantissa = mantissa * 10 + digit
                position += 1
            integer = mantissa
            if position < size and data[position] == 46:  # a point
                position += 1
                while position < size and 48 <= data[position] <= 57:
                    digit = np.int64(data[position]) - 48
                    any_digit = True
                    decimals += 1
                    if digit > 0:
                        fraction = True
                    if digits > 0 or digit > 0:
                        digits += 1
                    if digits <= 18:
                        mantissa = mantissa * 10 + digit
                    position += 1
            valid = any_digit
            if any_digit and position < size and (data[position] == 69 or data[position] == 101):  # E or e
                exponent = True
                position += 1
                if position < size and (data[position] == 43 or data[position] == 45):
                    position += 1
                valid = position < size and 48 <= data[position] <= 57
                while position < size and 48 <= data[position] <= 57:
                    position += 1
            while position < size and data[position] != 32 and not 9 <= data[position] <= 13:
                valid = False
                position += 1
            if field < 18:
                fault = 0
                if not valid:
                    fault = 2
                elif exponent or digits > 18 or (not is_whole[field] and (digits > 15 or decimals > 22)):
                    odd[odds, 0] = line
                    odd[odds, 1] = jobs
                    odd[odds, 2] = field
                    odd[odds, 3] = start
                    odd[odds, 4] = position
                    odds += 1
                elif is_whole[field]:
                    if fraction:
                        fault = 3
                    whole[target[field], jobs] = -integer if negative else integer
                else:
                    value = float(mantissa)
                    if decimals > 0:
                        value = value / powers[decimals]
                    real[target[field], jobs] = -value if negative else value
                if fault != 0 and reason == 0:
                    reason = fault
                    reason_field = field
                    reason_start = start
                    reason_stop = position
            field += 1
        position += 1  # the line's end
        if comment or field == 0:
            continue
        if field != 18:
            reason = 1
            reason_field = field
        if reason == 0:
            jobs += 1
            continue
        odds = odds_before
        bad[bads, 0] = line
        bad[bads, 1] = reason
        bad[bads, 2] = reason_field
        bad[bads, 3] = reason_start
        bad[bads, 4] = reason_stop
        bads += 1
        if stop_at_first:
            break
    at[0], at[1], at[2], at[3], at[4] = position, line, jobs, bads, odds
    return done


_PARSE_LINES = Kernel(_parse_lines)


# --- the header -------------------------------------------------------------------------------------------


def parse_header(text: bytes) -> dict[str, list[str]]:
    r"""
    Return the header: the comments before the first job.

    A line ``; Key: value`` starts a value. Any other comment continues the value before it: also one that
    looks like a key but is indented to the value's column, or has no key of the standard and is indented
    more than the key before it. Text before any key is a Note.

    Parameters
    ----------
    text : bytes
        The text of a log.

    Returns
    -------
    dict
        Key (the standard's spelling) to list of values.

    Examples
    --------
    >>> parse_header(b"; Information: http://a/\n;              http://b/\n; maxprocs: 128\n")
    {'Information': ['http://a/\nhttp://b/'], 'MaxProcs': ['128']}
    """
    header: dict[str, list[str]] = {}
    key, key_indent, value_column = "", 0, 0
    for comment in _leading_comments(text):
        stripped = comment.strip()
        if not stripped:
            continue
        indent = len(comment) - len(comment.lstrip())
        match = _KEY.fullmatch(stripped)
        if match and key:
            is_standard = match[1].lower() in _SPELLING
            if indent >= value_column or (indent > key_indent and not is_standard):
                match = None
        if match:
            key = _SPELLING.get(match[1].lower(), match[1])
            key_indent, value_column = indent, indent + len(key) + 2
            header.setdefault(key, []).append(match[2].strip())
        elif key:
            values = header[key]
            values[-1] = f"{values[-1]}\n{stripped}" if values[-1] else stripped
        else:
            key, value_column = "Note", indent + 6
            key_indent = indent
            header["Note"] = [stripped]
    return header


def _leading_comments(text: bytes) -> list[str]:
    """Return the comment lines before the first job, without the semicolon and with tabs expanded."""
    comments = []
    position = 0
    text = text.removeprefix(_BOM)
    while position < len(text):
        end = text.find(b"\n", position)
        end = len(text) if end < 0 else end
        line = text[position:end].strip()
        position = end + 1
        if line and not line.startswith(b";"):
            break
        if line:
            try:
                comment = line.decode("utf-8")
            except UnicodeDecodeError:
                comment = line.decode("latin-1")
            comments.append(comment.expandtabs()[1:])
    return comments


def header_number(header: Mapping[str, list[str]], key: str) -> int | None:
    """
    Return the first whole number in a header's value, or None if there is none.

    Examples
    --------
    >>> header_number({"MaxProcs": ["1,152 (144 nodes of 8)"]}, "MaxProcs")
    1152
    >>> header_number({"MaxProcs": ["1e12"]}, "MaxProcs")
    1000000000000
    """
    for value in header.get(key, []):
        match = _NUMBER.search(value)
        if match:
            number = Decimal(match[0].replace(",", ""))
            # No number of a header is of more digits, and Python would spell all of them out.
            return int(number) if number.adjusted() < 30 else int(math.copysign(10**30, number))
    return None


def time_zone(header: Mapping[str, list[str]]) -> tzinfo:
    """
    Return a log's time zone: by name, else a fixed offset, else UTC.

    Parameters
    ----------
    header : mapping
        A log's header, of which TimeZoneString and TimeZone (seconds east of Greenwich) are used.

    Raises
    ------
    SwflowError
        If the zone has a name but this computer has no time zone database.

    Examples
    --------
    >>> time_zone({"TimeZone": ["3600"], "TimeZoneString": ["Europe/Stockholm"]})
    zoneinfo.ZoneInfo(key='Europe/Stockholm')
    """
    for value in header.get("TimeZoneString", []):
        name = value.strip().lstrip(":")
        for candidate in (name, _US_ZONES.get(name, "")):
            try:
                return zoneinfo.ZoneInfo(candidate)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
                continue
        if name and not zoneinfo.available_timezones():
            raise SwflowError(f"time zone {name}: this computer has no time zone database; install tzdata")
    offset = header_number(header, "TimeZone")
    if offset is not None and abs(offset) < 86400:
        return timezone(timedelta(seconds=offset))
    return UTC


#: Names that the archive uses and that some systems no longer install.
_US_ZONES = {
    "US/Eastern": "America/New_York",
    "US/Central": "America/Chicago",
    "US/Mountain": "America/Denver",
    "US/Pacific": "America/Los_Angeles",
}


def parse_moment(value: object, where: str) -> date:
    """
    Return a day, or a moment, that a config or a command names.

    Parameters
    ----------
    value : str, date or datetime
        A day such as ``1996-01-01``, or a time such as ``1996-01-01T06:00`` or ``1996-01-01T00:00Z``.
    where : str
        The key or option that it comes from, for the error.

    Returns
    -------
    date or datetime
        A datetime if a time of day is given.

    Raises
    ------
    SwflowError
        If it is neither.

    Examples
    --------
    >>> parse_moment("1996-01-01", "from")
    datetime.date(1996, 1, 1)
    """
    if isinstance(value, date):
        return value
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    raise SwflowError(
        f"{where}: must be a date such as 1996-01-01, not {str(value)!r} (with a time: 1996-01-01T00:00Z)"
    ) from None


def seconds_since_start(header: Mapping[str, list[str]], moment: date) -> float:
    """
    Return how many seconds after the log's start a date begins, or a time is.

    Parameters
    ----------
    header : mapping
        The log's header.
    moment : date or datetime
        A date means its midnight in the log's time zone; a time without a zone is in the log's.

    Returns
    -------
    float
        Seconds, comparable to submit times; negative before the start.

    Raises
    ------
    SwflowError
        If the header does not say when the log starts.

    Examples
    --------
    >>> header = {"UnixStartTime": ["843480031"], "TimeZoneString": ["Europe/Stockholm"]}
    >>> seconds_since_start(header, date(1996, 9, 24))
    35969.0
    """
    start = header_number(header, "UnixStartTime")
    if start is None:
        raise SwflowError(
            f"{moment}: the log has no UnixStartTime in its header; add the line '; UnixStartTime: SECONDS'"
        )
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=time_zone(header))
    return moment.timestamp() - start


# --- writing ----------------------------------------------------------------------------------------------


def write_swf(path: str | os.PathLike[str], jobs: pl.DataFrame, header: Mapping[str, list[str]] | None = None) -> None:
    """
    Write jobs in the Standard Workload Format, version 2.2, atomically.

    Parameters
    ----------
    path : path-like
        Gzipped if it ends in ``.gz``; the same jobs give the same bytes.
    jobs : polars.DataFrame
        Any job table: of the columns of `swflow.jobs.JOB_COLUMNS` those that are known. What is null or
        missing is written as -1, but allocated processors are taken from ``processors`` then.
    header : mapping, optional
        Key to list of values; line breaks in a value make lines that continue it.

    Raises
    ------
    SwflowError
        If a value cannot be written: not finite, or a fraction where a whole number belongs.

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
    _printable(jobs, str(path)).write_csv(text, include_header=False, separator=" ", quote_style="never")
    content = text.getvalue()
    with atomic_path(path) as temporary:
        temporary.write_bytes(compress(content) if str(path).endswith(".gz") else content)


def compress(text: bytes) -> bytes:
    """Return gzipped text; the same text gives the same bytes: no time and no file name are in them."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as file:
        file.write(text)
    return packed.getvalue()


def run_as_swf(jobs: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """
    Return a simulated run as a log, ready for `write_swf`.

    Parameters
    ----------
    jobs : polars.DataFrame
        The job table that was simulated.
    outcomes : polars.DataFrame
        One row a job: ``job_id``, ``submit_time``, ``start_time``, ``processors``, ``run_time``, ``killed``.

    Returns
    -------
    polars.DataFrame
        The columns of `swflow.jobs.SWF_FIELDS`, in the jobs' order: wait time, run time and allocated
        processors as simulated, status 1 (completed) or 0 (killed), the rest as recorded. Jobs without an
        outcome are left out.

    Raises
    ------
    SwflowError
        If a column is missing, a job id repeats, or an outcome has no job.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job_id": [1, 2], "submit_time": [0.0, 5.0], "user_id": [7, 8]})
    >>> outcomes = pl.DataFrame({"job_id": [2], "submit_time": [5.0], "start_time": [9.0], "processors": [4],
    ...                          "run_time": [60.0], "killed": [False]})
    >>> run_as_swf(jobs, outcomes).select("job_id", "wait_time", "allocated_processors", "status").rows()
    [(2, 4.0, 4, 1)]
    """
    needed = ("job_id", "submit_time", "start_time", "processors", "run_time", "killed")
    missing = [name for name in needed if name not in outcomes.columns]
    if missing:
        raise SwflowError(f"run as SWF: the outcomes lack {', '.join(missing)}; give a run of swflow simulate")
    for what, table in (("jobs", jobs), ("outcomes", outcomes)):
        if "job_id" not in table.columns or table["job_id"].is_duplicated().any():
            raise SwflowError(f"run as SWF: the {what} need one job_id each; some are missing or repeat")
    simulated = outcomes.select(
        pl.col("job_id"),
        pl.col("submit_time"),
        wait_time=pl.col("start_time") - pl.col("submit_time"),
        run_time=pl.col("run_time"),
        allocated_processors=pl.col("processors"),
        status=pl.when(pl.col("killed").fill_null(False)).then(0).otherwise(1),
    )
    recorded = jobs.select("job_id", *(n for n in _NAMES if n in jobs.columns and n not in simulated.columns))
    run = recorded.join(simulated, on="job_id", how="inner", maintain_order="left")
    if run.height < outcomes.height:
        raise SwflowError(
            f"run as SWF: {outcomes.height - run.height} outcomes have no job of their id; "
            "give the workload that was simulated"
        )
    return run.select(
        (pl.col(name) if name in run.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in SWF_FIELDS.items()
    )


def _header_text(header: Mapping[str, list[str]]) -> str:
    lines = ["; Version: 2.2"]
    for key, values in header.items():
        if not re.fullmatch(r"[A-Za-z][\w-]*", key):
            raise SwflowError(f"header: {key!r} cannot be a key; use letters, digits, - and _, without spaces")
        for value in values if key != "Version" else []:
            first, *others = re.split(r"\r\n|\r|\n", value)
            lines.append(f"; {key}: {first}".rstrip())
            lines += [f";{' ' * (len(key) + 3)}{other}" for other in others]
    return "\n".join(lines) + "\n"


def _printable(jobs: pl.DataFrame, where: str) -> pl.DataFrame:
    """Return the 18 fields as whole numbers, or as text with whole numbers where there are fractions."""
    if "processors" in jobs.columns:
        allocated = pl.col("allocated_processors") if "allocated_processors" in jobs.columns else pl.lit(None)
        jobs = jobs.with_columns(allocated_processors=pl.coalesce(allocated, "processors"))
    return pl.DataFrame([_printable_field(jobs, name, where) for name in _NAMES])


def _printable_field(jobs: pl.DataFrame, name: str, where: str) -> pl.Series:
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
        raise SwflowError(f"{where}: {name} has fractions; the Standard Workload Format wants whole numbers")
    exact = values.cast(pl.Int64, strict=False).cast(pl.String)
    return exact.zip_with(is_whole, values.cast(pl.String)).alias(name)
