"""Read records of one line each, and repair those with separators or line breaks in a text."""

import codecs
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from swflow.files.reading import PART, read_bytes
from swflow.log.importers.records import Tally

#: Limits of a broken record: superfluous separators, and columns that are tried to place them.
MOST_EXTRA, MOST_TRIES = 200, 20_000

Check = Callable[[str], object]


def read_text(path: str) -> bytes:
    """
    Return a file's text in UTF-8, decompressed if it is gzipped, with normalized line ends.

    Bytes that are not UTF-8 become characters of Latin-1, so that different names stay different.
    """
    text = read_bytes(path)
    if not _is_utf8(text):
        text = text.decode("utf-8", "swflow-latin-1").encode()
    return text.replace(b"\r\n", b"\n") if b"\n" in text else text.replace(b"\r", b"\n")


def _is_utf8(text: bytes) -> bool:
    """Return whether a text is valid UTF-8, without a copy of it."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for begin in range(0, 0 if text.isascii() else len(text), PART):
            decoder.decode(text[begin : begin + PART], final=begin + PART >= len(text))
    except UnicodeDecodeError:
        return False
    return True


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Decode the bytes that are not UTF-8."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("swflow-latin-1", _as_latin_1)


@dataclass(frozen=True)
class Layout:
    """
    The fields of a line.

    Columns without a check of their text accept any text without separators; columns of ``free`` text accept any text,
    and their checks say what is likely.
    ``agrees`` returns whether the columns of a repaired record are consistent.
    """

    columns: Sequence[str]
    separator: str
    checks: Mapping[str, Check]
    free: Sequence[str]
    agrees: Callable[[Mapping[str, str]], bool] = lambda record: True

    def accepts(self, column: str, text: str) -> bool:
        """Return whether a text passes the check of a column."""
        return column not in self.checks or bool(self.checks[column](text))


def read_records(text: bytes, layout: Layout, wanted: Sequence[str], tally: Tally, first_line: int) -> pl.DataFrame:
    """
    Split lines, without the header, into columns of text: ``line`` and the wanted ones.

    A record with a wrong number of separators is joined from its lines. The superfluous separators are then assigned to
    the columns of free text in all possible ways. A placement is valid if the other columns pass their checks and
    agree. The record is used if all valid placements agree on these columns; of these, the first counts in which most
    columns of free text pass their checks. Repaired and dropped records are counted.
    Lines are numbered from ``first_line``.
    """
    columns = layout.columns
    if not text.endswith(b"\n"):
        text += b"\n"
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == 10)
    starts = np.concatenate([[0], ends[:-1] + 1])
    filled = ends > starts
    counts = np.diff(np.searchsorted(np.flatnonzero(data == ord(layout.separator)), ends), prepend=0)
    begins = np.ones(len(ends), bool)
    if columns[0] in layout.checks:
        begins = ((data[starts] >= 48) & (data[starts] <= 57)) | (data[starts] == ord(" "))
    odd = filled & ((counts != len(columns) - 1) | ~begins)
    # A line break in the last column leaves a line that looks complete before its continuation.
    odd |= np.append(odd[1:], False) & filled
    whole = filled & ~odd
    table = _plain(text, starts, ends, whole, layout, wanted).with_columns(pl.col("line") + first_line)
    if not odd.any():
        return table
    lines = [
        (int(place) + first_line, text[starts[place] : ends[place]].decode("utf-8", "replace"))
        for place in np.flatnonzero(odd)
    ]
    rows = _mended(lines, layout, tally)
    chosen = [columns.index(name) for name in wanted]
    content = [(line, *(fields[place] for place in chosen)) for line, fields in rows]
    schema = {"line": pl.Int64, **dict.fromkeys(wanted, pl.String)}
    return pl.concat([table, pl.DataFrame(content, schema, orient="row")]).sort("line")


def _plain(
    text: bytes, starts: np.ndarray, ends: np.ndarray, whole: np.ndarray, layout: Layout, wanted: Sequence[str]
) -> pl.DataFrame:
    """Read the lines that have every column, all at once; lines are numbered from 0."""
    schema = {"line": pl.Int64, **dict.fromkeys(wanted, pl.String)}
    if not whole.any():
        return pl.DataFrame(schema=schema)
    if not whole.all():
        text = np.frombuffer(text, np.uint8)[np.repeat(whole, ends - starts + 1)].tobytes()
    table = pl.read_csv(
        text,
        has_header=False,
        separator=layout.separator,
        quote_char=None,
        infer_schema=False,
        encoding="utf8-lossy",
        columns=sorted(layout.columns.index(name) for name in wanted),
    )
    table = table.rename(dict(zip(table.columns, sorted(wanted, key=layout.columns.index), strict=True)))
    lines = pl.Series("line", np.flatnonzero(whole), dtype=pl.Int64)
    return table.select(lines, *(pl.col(name).fill_null("") for name in wanted))


def _mended(lines: list[tuple[int, str]], layout: Layout, tally: Tally) -> list[tuple[int, list[str]]]:
    """Join records from lines, and return the text of each column."""
    columns = layout.columns
    records: list[tuple[int, list[str]]] = []
    previous = -1
    for number, line in lines:
        joins = records and number == previous + 1
        if _begins(line, layout):
            records.append((number, [line]))
        elif joins:
            records[-1][1].append(line)
        else:
            tally.add("malformed line", 1, number, removed=True)
            continue
        previous = number
    found = []
    for number, parts in records:
        fields = "\n".join(parts).split(layout.separator)
        if len(fields) != len(columns) or len(parts) > 1:
            mended = _placed(fields, layout)
            if mended is None and (alone := _alone(parts[0], fields, layout)):
                tally.add("malformed line", len(parts) - 1, number + 1, removed=True)
                found.append((number, alone))
                continue
            if mended is None:
                reason = "too few fields" if len(fields) < len(columns) else "ambiguous fields"
                tally.add(reason, 1, number, removed=True)
                continue
            tally.add("mended: separators or line breaks in a text", 1, number)
            fields = mended
        found.append((number, fields))
    return found


def _begins(line: str, layout: Layout) -> bool:
    """Return whether a line can begin a record: the columns before the first free one must pass their checks."""
    leading = list(itertools.takewhile(lambda name: name not in layout.free, layout.columns))
    parts = line.split(layout.separator, len(leading) or 1)
    return len(parts) > 1 and all(layout.accepts(name, part) for name, part in zip(leading, parts, strict=False))


def _placed(fields: Sequence[str], layout: Layout) -> list[str] | None:
    """Assign superfluous fields to columns of free text; return None if the placement is invalid or ambiguous."""
    columns, free = layout.columns, layout.free
    if not len(columns) <= len(fields) <= len(columns) + MOST_EXTRA:
        return None
    try:
        fitting = list(_placements(fields, layout))
    except _TooManyError:
        return None
    firm = [place for place, name in enumerate(columns) if name not in free]
    if len({tuple(candidate[place] for place in firm) for candidate in fitting}) != 1:
        return None
    likely = [sum(layout.accepts(*field) for field in zip(columns, one, strict=True)) for one in fitting]
    return fitting[likely.index(max(likely))]


def _alone(line: str, fields: Sequence[str], layout: Layout) -> list[str] | None:
    """Return the columns of a record's first line if it is whole, and the following lines cannot belong to it."""
    alone = line.split(layout.separator)
    checked = [one for one in zip(layout.columns, alone, strict=False) if one[0] not in layout.free]
    is_whole = len(alone) == len(layout.columns) and all(layout.accepts(*one) for one in checked)
    if not is_whole or not layout.agrees(dict(zip(layout.columns, alone, strict=True))):
        return None
    try:
        is_joined = next(_placements(fields, layout), None) is not None
    except _TooManyError:
        is_joined = True
    return None if is_joined else alone


class _TooManyError(Exception):
    """The placements of a record are too many to try them all."""


def _placements(fields: Sequence[str], layout: Layout) -> Iterator[list[str]]:
    """Yield the valid placements of fields, column by column; those that put most into the first free column first."""
    columns, free = layout.columns, layout.free
    last = max((place for place, name in enumerate(columns) if name in free), default=-1)
    if last < 0 and len(fields) > len(columns):
        return
    tries = 0
    begun: list[tuple[list[str], int]] = [([], 0)]  # the texts of the first columns, and the number of their fields
    while begun:
        done, used = begun.pop()
        place = len(done)
        if place == len(columns):
            if layout.agrees(dict(zip(columns, done, strict=True))):
                yield done
            continue
        extra = len(fields) - used - (len(columns) - place)
        name = columns[place]
        widths = range(1, extra + 2) if name in free else range(1, 2)
        for width in widths[-1:] if place == last else widths:
            tries += 1
            if tries > MOST_TRIES:
                raise _TooManyError
            part = layout.separator.join(fields[used : used + width])
            if name in free or ("\n" not in part and layout.accepts(name, part)):
                begun.append(([*done, part], used + width))


def values_of(text: str, keys: Sequence[re.Match[str]]) -> dict[str, str]:
    """Return the text that follows each match of a key, up to the next one."""
    ends = [match.start() for match in keys[1:]] + [len(text)]
    return {match[1]: text[match.end() : end].strip() for match, end in zip(keys, ends, strict=True)}


def matches(pattern: str) -> Check:
    """Return a function that matches a whole text."""
    return re.compile(pattern, re.ASCII).fullmatch


def padded(pattern: str) -> Check:
    """Return a function that matches a whole text, perhaps between blanks."""
    return re.compile(rf"[ \t]*(?:{pattern})[ \t]*", re.ASCII).fullmatch
