"""Read the logical lines of slurm.conf as Slurm joins them: comments, continued lines, included files, and pairs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from swflow.errors import SwflowError
from swflow.files.reading import read_text
from swflow.sites.include import Includes
from swflow.values import whole_number


class Place(NamedTuple):
    """A line of a file."""

    file: Path
    line: int

    def __str__(self) -> str:
        """Return ``file:line`` for messages."""
        return f"{self.file}:{self.line}"


class Value(NamedTuple):
    """The text of an option, how the file spells its name, and where it stands."""

    name: str
    text: str
    place: Place

    def whole(self) -> int:
        """Return the whole number; raise an error if the text is another one."""
        return whole_number(self.text, f"{self.place}: {self.name}")


def read_file(path: Path) -> str:
    """Return the text of a file of the site; raise `SwflowError` if it cannot be read."""
    return read_text(path, errors="replace").removeprefix("\ufeff")


def lines_of(path: Path) -> Iterator[list[Value]]:
    """Yield the pairs of each logical line of slurm.conf, with the files that it includes in their place."""
    yield from _lines(path, Includes(path, *_names_in(path)), 0)


def _names_in(path: Path) -> tuple[str, str]:
    """Return the cluster and the host of the controller, which names of included files may contain."""
    found = {}
    for text, _ in _joined(path):
        pair = _PAIR.match(text)
        if pair is not None:
            found[pair[1].lower()] = _unquoted(pair[2])
    host = found.get("slurmctldhost", "") or found.get("controlmachine", "")
    return found.get("clustername", ""), re.split(r"[(.,]", host)[0]


def _joined(path: Path) -> Iterator[tuple[str, Place]]:
    r"""
    Yield the logical lines of a file and where they begin.

    Like Slurm (`_get_next_line` in src/common/parse_config.c): a comment begins at a ``#`` that follows an even number
    of backslashes, and a line that ends in an odd number of them, with or without blanks after these, continues in the
    next line; nothing is put between the two. Elsewhere, a backslash stands for the character after it.
    """
    begin, parts = 1, list[str]()
    for number, raw in enumerate([*read_file(path).split("\n"), ""], 1):  # a last line can end in a backslash
        begin = begin if parts else number
        comment = _COMMENT.search(raw)
        line = raw[: comment.end() - 1] if comment else raw
        stripped = line.rstrip()
        if (len(stripped) - len(stripped.rstrip("\\"))) % 2:
            parts.append(stripped[:-1])
            continue
        text = "".join([*parts, line]).strip()
        parts = []
        if text:
            yield re.sub(r"\\(.)", r"\1", text), Place(path, begin)


#: The text up to the first ``#`` that no odd number of backslashes precedes.
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*#")


def _lines(path: Path, includes: Includes, depth: int) -> Iterator[list[Value]]:
    """Yield the pairs of each logical line, with included files in their place."""
    for line, place in _joined(path):
        included = re.fullmatch(r"include\s+[\"']?([^\s\"']+)[\"']?", line, re.IGNORECASE)
        if included is None:
            yield _pairs(line, place, is_named=depth == 0)
            continue
        for file in includes.files_of(included[1], place, depth):
            yield from _lines(file, includes, depth + 1)


_PAIR = re.compile(r"""([\w.-]*\w)\s*[+*/-]?=\s*("[^"]*"|'[^']*'|[^\s"]\S*|)(?=\s|$)\s*""")


def _pairs(line: str, place: Place, is_named: bool) -> list[Value]:
    """Return the pairs of a line; errors do not show the content of a file that the user has not named."""
    found, at = [], 0
    while at < len(line):
        pair = _PAIR.match(line, at)
        if pair is None:
            shown = f"{line[at : at + 60]!r}" if is_named else "invalid line"
            raise SwflowError(f"{place}: {shown}; expected Option=Value or a comment (#)")
        found.append(Value(pair[1], _unquoted(pair[2]), place))
        at = pair.end()
    return found


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
