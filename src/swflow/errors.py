"""Errors that are shown to users as one line, without a traceback."""

import difflib
import errno
import os
from collections.abc import Collection, Iterable


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


def shown(value: object) -> str:
    """Return a value for an error: on one line, shortened."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


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
