"""Writing files so that a reader sees the old one or the new one, never a half."""

import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from swflow.errors import SwflowError, reason_of_writing

#: A file in the making: the process that makes it, the host that this runs on, and the file's name.
_IN_THE_MAKING = re.compile(r"\.(?P<process>[1-9][0-9]*)(?:@(?P<host>[A-Za-z0-9_-]*))?\.(?P<name>.+)", re.DOTALL)

_LONGEST = 255  # bytes of a file's name


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    Give a temporary path beside ``path`` that is moved over it when the block ends without an error.

    What commands that were killed left behind of such files is removed first.

    Parameters
    ----------
    path : path-like
        The file to be written. Its folder is made if need be.

    Yields
    ------
    pathlib.Path
        Where to write. It keeps the endings of ``path``, so that writers that look at them work.

    Raises
    ------
    SwflowError
        If the file cannot be written: the folder is read-only, the disk is full, the name is too long.

    Examples
    --------
    >>> with atomic_path("/tmp/example.txt") as temporary:
    ...     _ = temporary.write_text("whole or not at all")
    """
    target = Path(path)
    begin = f".{os.getpid()}@{_host()}."
    name = os.fsencode(target.name)
    room = _LONGEST - len(begin)
    if room < len(name) <= _LONGEST:
        name = name[-room:]
    temporary = target.with_name(begin + os.fsdecode(name))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_left_over(target)
        if target.is_dir():
            raise IsADirectoryError
        yield temporary
        temporary.replace(target)
    except Exception as error:
        reason = reason_of_writing(error)
        about = Path(getattr(error, "filename", None) or target)
        if reason is None or not (about in (target, target.parent) or about.name.startswith(temporary.name)):
            raise
        raise SwflowError(f"{target}: cannot be written ({reason})") from None
    finally:
        _remove(temporary)


@contextmanager
def folder_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    Give a folder beside ``path`` for what is too large for the memory; it is removed when the block ends.

    Raises
    ------
    SwflowError
        If nothing can be written there.
    """
    target = Path(path)
    folder = target.with_name(f".{os.getpid()}@{_host()}.parts")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_left_over(target)
        folder.mkdir()
        yield folder
    except Exception as error:
        reason = reason_of_writing(error)
        if reason is None or isinstance(error, SwflowError):
            raise
        raise SwflowError(f"{folder}: cannot be written ({reason})") from None
    finally:
        _remove(folder)


def remove_left_over(target: Path) -> None:
    """
    Remove what killed commands left behind in a file's folder: files in the making whose process is gone.

    Processes of other hosts are not known, so that their files stay. A file without a host is of an earlier version
    of swflow, and goes only if it was to become ``target``.
    """
    for entry in os.scandir(target.parent):
        found = _IN_THE_MAKING.fullmatch(entry.name)
        if found is None or _is_running(int(found["process"])):
            continue
        ours = found["host"] == _host()
        if found["host"] is None:
            ours = found["name"] in (target.name, f"{target.name}.wal")
        if ours:
            _remove(Path(entry.path))


def is_in_the_making(path: Path) -> bool:
    """Return whether a path is of a file that a command writes, or wrote when it was killed."""
    return _IN_THE_MAKING.fullmatch(path.name) is not None


@cache
def _host() -> str:
    return re.sub("[^A-Za-z0-9_-]", "-", socket.gethostname().partition(".")[0])[:40]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and may be removed."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass  # its folder cannot be written either, which is said elsewhere
