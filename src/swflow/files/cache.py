"""
The cache: a private folder for what swflow keeps between calls, whose files are checked before they are used.

Failures of the cache cost time only: what cannot be read is computed again, and what cannot be written is not kept.
"""

import hashlib
import logging
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

#: Seconds after which the temporary file of a killed command is removed.
_LEFT_OVER = 86_400

_TEMPORARY = ".tmp"

#: Bits of the mode of a folder: others can write to it; others can do anything with it.
_WRITABLE, _ACCESSIBLE = stat.S_IWGRP | stat.S_IWOTH, stat.S_IRWXG | stat.S_IRWXO


class _NotPrivateError(OSError):
    """Other users can change the content of a folder of the cache."""


def cache_home() -> Path | None:
    """
    Return the folder of the cache: ``SWFLOW_CACHE``, by default ``~/.cache/swflow``; None if there is no home folder.

    The folder belongs to the user, and other users cannot write to it. Each kind of content has a folder in it that
    only the user can read.
    """
    named = os.environ.get("SWFLOW_CACHE")
    if named:
        return Path(named).absolute()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "swflow"
    except RuntimeError:  # neither HOME nor an account
        return None


def read_cached(folder: str, name: str) -> tuple[str, bytes] | None:
    """
    Return head and content of a file of the cache, and mark it as used; None if it is missing or damaged.

    ``folder`` is a folder of the cache, such as ``kernels``.
    """
    try:
        with _opened(folder) as place:
            # A pipe of this name must not block the call.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
            with os.fdopen(file, "rb") as stream:
                about = os.fstat(file)
                if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
                    return None
                first, _, content = stream.read().partition(b"\n")
                with suppress(OSError):
                    os.utime(file)
    except OSError:
        return None
    head, _, digest = first.decode(errors="replace").rpartition(" ")
    return (head, content) if digest == _digest(head, content) else None


def write_cached(folder: str, name: str, head: str, content: bytes) -> None:
    """Write a file of the cache: a line with ``head``, which has no line break, and a checksum; and the content."""
    with suppress(OSError), _opened(folder, create=True) as place:
        temporary = f".{secrets.token_hex(8)}{_TEMPORARY}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=place), "wb") as stream:
                stream.write(f"{head} {_digest(head, content)}\n".encode())
                stream.write(content)
            os.rename(temporary, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=place)
            raise


def trim(folder: str, *, most: int | None = None, seconds: float | None = None) -> None:
    """
    Remove the files of a folder of the cache that were not used for some seconds, or all but the ``most`` latest ones.

    Other processes may remove the same files meanwhile.
    """
    with suppress(OSError), _opened(folder) as place:
        now, ages = time.time(), []
        for entry in os.scandir(place):
            with suppress(OSError):
                name = entry.name
                ages.append((now - os.stat(name, dir_fd=place, follow_symlinks=False).st_mtime, name))
        # Files of one tick of the file system's clock have equal ages: these are ordered by name.
        kept = sorted(entry for entry in ages if not entry[1].endswith(_TEMPORARY))
        limit = float("inf") if seconds is None else seconds
        unused = {name for age, name in ages if age > (_LEFT_OVER if name.endswith(_TEMPORARY) else limit)}
        if most is not None:
            unused.update(name for _, name in kept[most:])
        for name in unused:
            with suppress(OSError):
                os.unlink(name, dir_fd=place)


def remove_folders(prefix: str, most: int, used: str) -> None:
    """Mark a folder of the cache as used, and remove all but the ``most`` latest ones whose names begin alike."""
    home = cache_home()
    if home is None:
        return
    with suppress(OSError), _opened(used) as place:
        os.utime(place)
        ages = []
        for path in home.glob(f"{prefix}*"):
            with suppress(OSError):
                ages.append((path.lstat().st_mtime, path))
        for _, path in sorted(ages)[:-most]:
            shutil.rmtree(path, ignore_errors=True)


def _digest(head: str, content: bytes) -> str:
    return hashlib.blake2b(head.encode() + b"\n" + content).hexdigest()


@contextmanager
def _opened(folder: str, create: bool = False) -> Iterator[int]:
    """
    Provide the descriptor of a folder of the cache that only the user can read; raise `OSError` if there is none.

    Files are opened relative to it, so that no user can exchange the folder after it was checked.
    """
    home = cache_home()
    if home is None:
        raise FileNotFoundError
    if create:
        _make_private(home)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        outer = os.open(home, flags)
        try:
            _check_private(outer, home)
            if create:
                with suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=outer)
            inner = os.open(folder, flags | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)
        try:
            if _check_private(inner, home / folder) & _ACCESSIBLE:
                os.fchmod(inner, 0o700)
            yield inner
        finally:
            os.close(inner)
    except _NotPrivateError as error:
        _warn_once(str(error))
        raise


def _make_private(home: Path) -> None:
    """Create the folder of the cache, and the folders around it, for the user alone."""
    for folder in (*reversed(home.parents), home):
        with suppress(FileExistsError):
            if not folder.is_dir():
                folder.mkdir(0o700)


def _check_private(descriptor: int, folder: Path) -> int:
    """Return the mode of a folder; raise an error if it belongs to another user, or if others can write to it."""
    about = os.fstat(descriptor)
    if about.st_uid != os.geteuid():
        raise _NotPrivateError(f"{folder}: belongs to another user; nothing is cached; name a folder: SWFLOW_CACHE")
    if about.st_mode & _WRITABLE:
        raise _NotPrivateError(f"{folder}: other users can write to it; nothing is cached; run: chmod 700 {folder}")
    return about.st_mode


@cache
def _warn_once(message: str) -> None:
    logging.getLogger(__name__).warning("%s", message)
