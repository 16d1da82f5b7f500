"""Read tables with separators and quotes, as spreadsheets and other programs write them."""

import csv
import re

import polars as pl

from swflow.errors import SwflowError, one_line
from swflow.log.separators import RULER, separator_of

#: The character that replaces a separator of several characters (the ASCII unit separator).
UNIT_SEPARATOR = "\x1f"

_EXCEL = re.compile(rb"sep=([^\w\s]|\t)[ \t\r]*\n", re.IGNORECASE)


def is_separator(text: object) -> bool:
    r"""
    Return whether an option or setting is a separator: 1 to 8 characters on one line, no letter or digit.

    Examples
    --------
    >>> [is_separator(text) for text in (",", "||", r"\t", "^|^", "", "a", "\n")]
    [True, True, True, True, False, False, False]
    """
    return isinstance(text, str) and (text == r"\t" or re.fullmatch(r"[^\w\r\n\"]{1,8}", text) is not None)


def one_byte(text: bytes, separator: str) -> tuple[bytes, str]:
    r"""
    Return a text whose separator is one byte, and that byte: separators of several are replaced by another.

    Examples
    --------
    >>> one_byte(b"a::b", "::"), one_byte(b"a\tb", r"\t")
    ((b'a\x1fb', '\x1f'), (b'a\tb', '\t'))
    """
    separator = "\t" if separator == r"\t" else separator
    if len(separator.encode()) == 1:
        return text, separator
    unit = UNIT_SEPARATOR.encode()
    return text.replace(unit, b"").replace(separator.encode(), unit), UNIT_SEPARATOR


def read_cells(text: bytes, path: str, separator: str | None = None) -> tuple[pl.DataFrame, int]:
    """
    Return a table with a header as columns of text, without surrounding blanks and quotes, and the header's line.

    The separator is found in the header if none is given. Comments and blank lines before the header are skipped; the
    header can itself be a comment.
    """
    if stated := _EXCEL.match(text):  # the line with which Excel states the separator
        separator, text = separator or stated[1].decode(), text[stated.end() :]
    text, first_line = _from_header(RULER.sub(b"", text) if b"---" in text else text)
    first_line += stated is not None
    if not text.strip():
        raise SwflowError(f"{path}: an empty table; expected a header with the names of columns")
    header = text.partition(b"\n")[0].decode("utf-8", "replace")
    text, separator = one_byte(text, separator or separator_of(header))
    if separator == " ":
        text = b"\n".join(b" ".join(line.split()) if b'"' not in line else line.strip() for line in text.split(b"\n"))
    elif b'"' in text:
        mark = re.escape(separator.encode())
        text = re.sub(rb'(^|%s)[ ]+"' % mark, rb'\1"', text, flags=re.MULTILINE)
        text = re.sub(rb'"[ ]+(%s|$)' % mark, rb'"\1', text, flags=re.MULTILINE)
    try:
        table = pl.read_csv(text, separator=separator, infer_schema=False, encoding="utf8-lossy")
    except (pl.exceptions.PolarsError, OSError) as error:
        if place := _too_long(text, separator):
            count = f"more cells than the header (separator {separator!r})"
            raise SwflowError(f"{path}:{first_line + place}: {count}; expected quotes around separators") from None
        raise SwflowError(f"{path}: not a readable table ({one_line(str(error))[:200]})") from None
    names = [name.strip(" \t\"'\ufeff\u00a0") for name in table.columns]
    try:
        given = next(csv.reader([header], delimiter=separator), [])
    except csv.Error as error:  # a name of more than 131,072 characters
        raise SwflowError(f"{path}:{first_line}: {error}; expected the names of columns") from None
    given = [name for name in (name.strip(" \t\"'\ufeff\u00a0\r") for name in given) if name]
    if len({*given}) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise SwflowError(f"{path}:{first_line}: column {twice!r} is a duplicate; name each column once")
    table = table.rename(dict(zip(table.columns, names, strict=True)))
    return table.with_columns(pl.col(pl.String).str.strip_chars(" \t\r\u00a0")), first_line


def _too_long(text: bytes, separator: str) -> int:
    """Return the number of lines before the first one with more cells than the header; 0 if there is none."""
    try:
        rows = csv.reader(text.decode("utf-8", "replace").splitlines(), delimiter=separator)
        width = len(next(rows, []))
        return next((rows.line_num - 1 for row in rows if len(row) > width), 0)
    except csv.Error:
        return 0


def _from_header(text: bytes) -> tuple[bytes, int]:
    """Return a text from its header on, and the number of the header's line."""
    lines = text.split(b"\n", 200)
    is_comment = [line.lstrip().startswith((b"#", b";")) for line in lines]
    place = next((place for place, line in enumerate(lines) if line.strip() and not is_comment[place]), 0)
    rest = b"\n".join(lines[place:])
    if place:
        comment = lines[place - 1].strip().lstrip(b"#; ")
        separator = separator_of(comment.decode("utf-8", "replace")).encode()
        first = lines[place]
        fields = (len(line.split()) if separator == b" " else line.count(separator) + 1 for line in (comment, first))
        # The last comment is the header if it has as many fields as the first line, which then has numbers.
        has_numbers = [re.search(rb"(^|\W)\d+(\W|$)", line) is not None for line in (comment, first)]
        if is_comment[place - 1] and len(set(fields)) == 1 and has_numbers == [False, True]:
            return comment + b"\n" + rest, place
    return rest, place + 1
