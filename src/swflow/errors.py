"""The one exception that a user is meant to read: a single line, without a traceback."""

import difflib
import errno
import os
from collections.abc import Iterable


class SwflowError(Exception):
    """What is wrong and what to do about it, in one line that names the file, line or config key."""


def suggest(word: str, known: Iterable[str]) -> str:
    """
    Return what to say after naming an unknown word: the nearest known one, or all of them.

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


#: What to do about some errors of the system.
_REMEDIES = {
    errno.ENOSPC: "the disk is full; make room, or write to another place",
    errno.EDQUOT: "your share of the disk is used up; make room, or write to another place",
    errno.EFBIG: "the file is larger than is allowed here; raise the limit, or write to another place",
    errno.EACCES: "permission denied; change the permissions, or name another place",
    errno.EPERM: "not permitted; change the permissions, or name another place",
    errno.EROFS: "the file system is read-only; name another place",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENOTDIR: "a part of its path is no folder; name another place",
    errno.EEXIST: "a file is where a folder should be; name another place",
    errno.ENOTEMPTY: "a folder of this name is there; name a file",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n)",
}

_LIBRARIES = ("duckdb", "_duckdb", "polars")

# How DuckDB and Polars, which often give no number, call the same errors.
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
    Say in one line what the system, DuckDB or Polars did not allow; None if the error is not of these.

    Examples
    --------
    >>> reason_of(OSError(errno.ENOSPC, "No space left on device")), reason_of(KeyError("x"))
    ('the disk is full; make room, or write to another place', None)
    """
    if isinstance(error, MemoryError):
        return "not enough memory"
    if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _LIBRARIES:
        return None
    number = number_of(error)
    if number is not None:
        return _REMEDIES.get(number) or os.strerror(number)
    return " ".join(str(error).split())[:300] or type(error).__name__


def reason_of_writing(error: BaseException) -> str | None:
    """Say in one line why a file could not be written; None if that is not what the error is about."""
    number = number_of(error)
    return None if number in (None, errno.ENOENT) else reason_of(error)


def number_of(error: BaseException) -> int | None:
    """Return the system's number of an error, also where a library hides it in its words; None if it has none."""
    if isinstance(error, IsADirectoryError):
        return errno.EISDIR
    text = str(error).lower()
    found = next((number for words, number in _WORDS.items() if words in text), None)
    return found if found is not None else getattr(error, "errno", None)


def describe(error: BaseException) -> str | None:
    """Say in one line what went wrong with which file; None if the error is none of the system's or the libraries'."""
    reason = reason_of(error)
    if reason is None:
        return None
    names = [str(name) for name in (getattr(error, "filename", None), getattr(error, "filename2", None)) if name]
    return f"{names[-1]}: {reason}" if names else reason
