"""Read logs whose lines have more fields than the Standard Workload Format, or lack the last one."""

import re
from collections.abc import Collection, Sequence

import polars as pl

from swflow.jobs.header import Header

#: The most fields of a line that is taken for a job with further fields.
_MOST = 64

#: Lines at the beginning of a log that decide on the number of its fields.
_SAMPLE = 1000


def width_of(text: bytes, standard: int) -> int:
    r"""
    Return the number of fields of a log's lines: another one than the standard's only if all lines agree on it.

    Examples
    --------
    >>> job = b"1 0 5 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1"
    >>> width_of(b"; a log\n" + (job + b" 7 x\n") * 2, 18), width_of(job + b" 7\n" + job, 18)
    (20, 18)
    """
    lines = text.split(b"\n", _SAMPLE)[:_SAMPLE]
    jobs = [line for line in map(bytes.strip, lines) if line and not line.startswith((b";", b"#"))]
    found = {len(line.split()) for line in jobs}
    if len(found) != 1 or not re.match(rb"[-+.\d]", jobs[0]) or (len(jobs) == 1 and not _is_job(jobs[0], standard)):
        return standard
    (width,) = found
    return width if standard - 1 <= width <= _MOST else standard


def _is_job(line: bytes, standard: int) -> bool:
    """Return whether the standard's fields of a line, of which the last can be missing, are numbers."""
    return all(re.fullmatch(rb"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?", one) for one in line.split()[:standard])


def notes_on(width: int, names: Sequence[str], header: Header) -> tuple[str, ...]:
    """Return how the fields of a log are read whose lines have another width."""
    if width == len(names):
        return ()
    if width < len(names):
        return (f"the lines have {width} fields; field {len(names)} ({names[-1]}) is taken as unknown",)
    first = len(names) + 1
    which = f"field {first} is" if width == first else f"fields {first} to {width} are"
    about = next((" ".join(note.split()) for note in header.get("Note", ()) if re.search(r"(?i)\bfields?\b", note)), "")
    about = f" ({about[:120]})" if about else ""
    return (f"the lines have {width} fields; {which} not in the format and left out{about}",)


def as_standard(text: bytes, width: int, standard: int) -> bytes:
    r"""
    Return a text whose lines of this width have the standard's number of fields; others are unchanged.

    Examples
    --------
    >>> as_standard(b"; a b c\n1 2 3 x\n1 2\n", 4, 3), as_standard(b"1 2\n", 2, 3)
    (b'; a b c\n1 2 3\n1 2\n', b'1 2 -1\n')
    """
    kept = min(width, standard)
    more = rb"(?:[ \t]+[^ \t\r\n]+){%d}" % (width - kept)
    line = rb"(?m)^[ \t]*(?![;#])([^ \t\r\n]+(?:[ \t]+[^ \t\r\n]+){%d})%s[ \t\r]*$" % (kept - 1, more)
    return re.sub(line, rb"\1" + b" -1" * (standard - kept), text)


def further_fields(text: bytes, skipped: Collection[int], standard: int, width: int) -> pl.DataFrame:
    r"""
    Return the fields after the standard's of each job, as texts; null where a line has fewer.

    ``skipped`` are the numbers of the lines that are no jobs, from 1 on.

    Examples
    --------
    >>> further_fields(b"; a\n1 2 3 x\n1\n\n4 5 6\n", {3}, 2, 4).to_dict(as_series=False)
    {'field_3': ['3', '6'], 'field_4': ['x', None]}
    """
    lines = pl.DataFrame({"text": text.decode("latin-1").split("\n")}).with_row_index("line", 1)
    lines = lines.with_columns(pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars(" "))
    is_job = (pl.col("text") != "") & ~pl.col("text").str.contains("^[;#]") & ~pl.col("line").is_in([*skipped])
    parts = lines.filter(is_job).select(pl.col("text").str.split(" "))
    places = range(standard, width)
    return parts.select(
        pl.col("text").list.get(place, null_on_oob=True).alias(f"field_{place + 1}") for place in places
    )
