"""Errors that are shown to users as one line, without a traceback."""

import difflib
import errno
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping


class SwflowError(Exception):
    """An error for users: one line that names the file or key, the problem, and what to do."""


class UnsupportedError(SwflowError):
    """An error about valid options that do not go together, or that a column of the workload excludes."""


def suggest(word: str, known: Iterable[str]) -> str:
    """
    Return the end of a message about an unknown word: the most similar known word, or all known words.

    Examples
    --------
    >>> suggest("eazy", ["none", "easy"]), suggest("xyz", ["none", "easy"])
    ("; did you mean 'easy'?", '; known are none, easy')
    """
    spelt = {name.lower(): name for name in known}
    guess = difflib.get_close_matches(str(word).lower(), spelt, 1)
    if guess:
        return f"; did you mean {spelt[guess[0]]!r}?"
    return f"; known are {', '.join(spelt.values())}" if spelt else "; none is known"


def require_known(keys: Iterable[object], known: Collection[str], where: str) -> None:
    """
    Raise an error for the first unknown key; ``where`` names the mapping.

    Examples
    --------
    >>> require_known(["order", "bakfill"], ["order", "backfill"], "schedulers: mine")
    Traceback (most recent call last):
    swflow.errors.SwflowError: schedulers: mine: unknown key 'bakfill'; did you mean 'backfill'?
    """
    for key in keys:
        if key not in known:
            raise SwflowError(f"{where}: unknown key {shown(key)}{suggest(str(key), known)}")


def shell_word(text: str | os.PathLike[str]) -> str:
    """
    Return a path or name as one word of a command that a hint names, so that users can paste the command.

    Examples
    --------
    >>> shell_word("my log.swf"), shell_word("log.swf")
    ("'my log.swf'", 'log.swf')
    """
    return shlex.quote(os.fspath(text))


#: Characters of a value in an error.
_SHOWN = 80


def shown(value: object) -> str:
    """
    Return a value for an error: on one line, shortened, in a time that does not depend on the value's size.

    Examples
    --------
    >>> shown({"order": ["sjf"]}), shown([7] * 10**6)[:9], shown(10**5000)
    ("{'order': ['sjf']}", '[7, 7, 7,', 'a number of 16,610 bits')
    """
    text = ""
    for piece in _pieces(value, 0):
        text += piece
        if len(text) > 2 * _SHOWN:
            break
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _pieces(value: object, depth: int) -> Iterator[str]:
    """Yield the representation of a value in parts, so that the caller can stop."""
    if depth > _SHOWN:
        yield "..."
    elif isinstance(value, Mapping):
        yield "{"
        for place, (key, content) in enumerate(value.items()):
            yield ", " if place else ""
            yield from _pieces(key, depth + 1)
            yield ": "
            yield from _pieces(content, depth + 1)
        yield "}"
    elif isinstance(value, list | tuple | set | frozenset):
        opening, closing = "[]" if isinstance(value, list) else "()" if isinstance(value, tuple) else "{}"
        yield opening
        for place, content in enumerate(value):
            yield ", " if place else ""
            yield from _pieces(content, depth + 1)
        yield "," + closing if isinstance(value, tuple) and len(value) == 1 else closing
    elif isinstance(value, int) and value.bit_length() > 400:
        yield f"a number of {value.bit_length():,} bits"
    elif isinstance(value, str | bytes):
        yield repr(value[: 4 * _SHOWN])
    else:
        yield repr(value)


def has_controls(value: str) -> bool:
    """Return whether a text has a character that ends a line, moves a cursor or is not a character."""
    return not (value.isascii() and value.isprintable()) and _CONTROL.search(value) is not None


#: Control characters (C0, DEL, C1), separators of lines, marks of the direction of writing and of the byte order, and
#: lone surrogates, which stand for bytes that are no text.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)


def visible(value: str) -> str:
    r"""
    Return a text with its control characters spelled out, so that it stays on its line and moves no cursor.

    Examples
    --------
    >>> visible("a\x1b[2Jb\n"), visible("Mäntysalo")
    ('a\\x1b[2Jb\\n', 'Mäntysalo')
    """
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], value) if has_controls(value) else value


#: Longest message, characters.
_LONGEST = 500


def one_line(message: str) -> str:
    """
    Return a message for a terminal: on one line, at most 500 characters, without control characters.

    Of a longer message the beginning and the end remain, which has the hint.
    """
    text = visible(" ".join(message.split()))
    return text if len(text) <= _LONGEST else f"{text[:340]} … {text[-150:]}"


#: Messages for errors of the operating system, with a hint.
_REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space, or write to another folder",
    errno.EDQUOT: "the disk quota is exceeded; free some space, or write to another folder",
    errno.EFBIG: "the file exceeds the size limit; raise the limit, or write to another folder",
    errno.EACCES: "permission denied; change the permissions, or name another path",
    errno.EPERM: "not permitted; change the permissions, or name another path",
    errno.EROFS: "the file system is read-only; name another path",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENOTDIR: "a part of its path is not a folder; name another path",
    errno.EEXIST: "a file with the name of the folder exists; name another path",
    errno.ENOTEMPTY: "a folder with this name exists; name a file",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n)",
}

_LIBRARIES = ("duckdb", "_duckdb", "polars")

# Phrases of DuckDB and Polars, which often give no error number, for the same errors.
_WORDS = {
    "no space left": errno.ENOSPC,
    "file too large": errno.EFBIG,
    "permission denied": errno.EACCES,
    "read-only file system": errno.EROFS,
    "file name too long": errno.ENAMETOOLONG,
    "quota exceeded": errno.EDQUOT,
}


def reason_of(error: BaseException) -> str | None:
    """
    Return one line about an error of the system, DuckDB or Polars; None for any other error.

    Examples
    --------
    >>> reason_of(OSError(errno.ENOSPC, "No space left on device")), reason_of(KeyError("x"))
    ('the disk is full; free some space, or write to another folder', None)
    """
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, UnicodeEncodeError):
        return f"{shown(error.object)}: has bytes that are no text in UTF-8; rename the file, or correct the option"
    if type(error).__name__ == "PanicException":  # Polars raises it
        return f"a library failed ({' '.join(str(error).split())[:100]}); check the input, and report it"
    if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _LIBRARIES:
        return None
    number = number_of(error)
    if number is not None:
        return _REMEDIES.get(number) or os.strerror(number)
    return " ".join(str(error).split())[:300] or type(error).__name__


def reason_of_writing(error: BaseException) -> str | None:
    """Return why a file could not be written, as one line; None for any other error."""
    number = number_of(error)
    return None if number in (None, errno.ENOENT) else reason_of(error)


def number_of(error: BaseException) -> int | None:
    """Return the system's error number, also if a library gives it only as text; None if there is none."""
    if isinstance(error, IsADirectoryError):
        return errno.EISDIR
    text = str(error).lower()
    found = next((number for words, number in _WORDS.items() if words in text), None)
    return found if found is not None else getattr(error, "errno", None)


def describe(error: BaseException) -> str | None:
    """Return one line that names the file and the problem; None unless the system or a library raised the error."""
    reason = reason_of(error)
    if reason is None:
        return None
    names = [str(name) for name in (getattr(error, "filename", None), getattr(error, "filename2", None)) if name]
    return f"{names[-1]}: {reason}" if names else reason
