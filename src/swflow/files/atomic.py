"""Write files atomically: readers see the old file or the new one, never a part."""

import errno
import json
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError, reason_of_writing

#: Name of a temporary file: process id, host and name of the final file.
_IN_THE_MAKING = re.compile(r"\.(?P<process>[1-9][0-9]*)@(?P<host>[A-Za-z0-9_-]*)\..+", re.DOTALL)

_LONGEST = 255  # longest name of a file, bytes

_MOST_LINKS = 40  # as in Linux

_LONGEST_LOCK = 10.0  # seconds to wait for another process that creates the same file


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    Provide a temporary path next to ``path``; rename it to ``path`` when the block ends without an error.

    A missing folder is created. The temporary path has the suffixes of ``path``, for writers that choose the format by
    suffix. Temporary files of killed commands are removed first.

    If ``path`` is a symbolic link, its target is replaced and the link stays. A pipe or a device, such as
    ``/dev/stdout``, gets the content of the temporary file when the block ends.

    Raises
    ------
    SwflowError
        If the file cannot be written: the folder is read-only, the disk is full, the name is too long, ``path`` is a
        socket.

    Examples
    --------
    >>> with atomic_path("/tmp/example.txt") as temporary:
    ...     _ = temporary.write_text("whole or not at all")
    """
    named, (target, stream) = Path(path), _followed(Path(path))
    temporary = target
    try:
        if stream is not None:
            with tempfile.TemporaryDirectory() as folder:
                temporary = Path(folder) / named.name
                yield temporary
                _copy(temporary, stream)
            return
        temporary = _temporary_of(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_left_over(target)
        if target.is_dir():
            raise IsADirectoryError
        yield temporary
        temporary.replace(target)
    except BrokenPipeError:
        raise  # the reader of a pipe has stopped
    except Exception as error:
        reason = reason_of_writing(error)
        about = Path(getattr(error, "filename", None) or target)
        if reason is None or not (about in (target, target.parent) or about.name.startswith(temporary.name)):
            raise
        raise SwflowError(f"{named}: cannot be written ({reason})") from None
    finally:
        if temporary != target:
            _remove(temporary)


def check_output(path: str | os.PathLike[str], *, stream: bool = True) -> None:
    """
    Raise an error, before any work is done, if a path is not one of a file that can be written.

    With ``stream=False``, pipes and devices are refused, too, since the format is not written from start to end.
    """
    _, found = _followed(Path(path))
    if found is not None and not stream:
        raise SwflowError(f"{path}: a pipe or a device; expected a file")


def require_other_file(output: Path, log: Path) -> None:
    """Raise an error if an output would replace the log that it is made from, which may be the only copy."""
    if output.exists() and log.exists() and output.samefile(log):
        raise SwflowError(f"{output}: the output is the input, which would be lost; expected another file")


def _followed(path: Path) -> tuple[Path, Path | int | None]:
    """
    Return the path at the end of symbolic links, and the stream that it is: a pipe, a device or a descriptor, or None.

    A descriptor, as ``/dev/stdout`` is, counts as a stream even if it is that of a file: others write to it, too.
    """
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder) and path.name.isdecimal():
            return path, int(path.name)
        try:
            if not path.is_symlink():
                break
        except OSError:
            return path, None  # writing reports the error
        path = Path(folder, path.readlink())
    else:
        raise SwflowError(f"{path}: cannot be written (symbolic links that refer to each other); name another path")
    try:
        mode = path.stat().st_mode
    except OSError:
        return path, None  # a new file, or an error that writing reports
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return path, path
    if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        kind = "socket" if stat.S_ISSOCK(mode) else "disk"
        raise SwflowError(f"{path}: a {kind}; expected a file, a pipe, or a device such as /dev/stdout")
    return path, None


def _copy(file: Path, stream: Path | int) -> None:
    """Write the content of a file to a pipe, a device or a descriptor."""
    if isinstance(stream, int):
        for one in (sys.stdout, sys.stderr):
            one.flush()
        stream = os.dup(stream)
    with file.open("rb") as source, open(stream, "wb") as target:  # noqa: PTH123  # a path or a descriptor
        shutil.copyfileobj(source, target)


def _temporary_of(target: Path, ending: str = "") -> Path:
    """Return the path of the temporary file, or with an ending the temporary folder, beside a file."""
    begin = f".{os.getpid()}@{_host()}."
    name = os.fsencode(target.name)
    room = _LONGEST - len(begin) - len(ending)
    if room < len(name) <= _LONGEST:
        name = name[-room:]
    return target.with_name(begin + os.fsdecode(name) + ending)


@contextmanager
def folder_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Provide a folder next to ``path`` for data that does not fit in memory; remove it when the block ends."""
    target, stream = _followed(Path(path))
    if stream is not None:
        target = Path(tempfile.gettempdir(), "stream")
    folder = _temporary_of(target, ".parts")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_left_over(target)
        folder.mkdir()
        try:
            yield folder
        finally:
            _remove(folder)
    except Exception as error:
        reason = reason_of_writing(error)
        if reason is None or isinstance(error, SwflowError):
            raise
        raise SwflowError(f"{folder}: cannot be written ({reason})") from None


def remove_left_over(target: Path) -> None:
    """
    Remove temporary files of killed commands from a file's folder.

    Files of other hosts stay because their processes cannot be checked.
    """
    for entry in os.scandir(target.parent):
        found = _IN_THE_MAKING.fullmatch(entry.name)
        if found and found["host"] == _host() and not _is_running(int(found["process"])):
            _remove(Path(entry.path))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def create_once(path: str | os.PathLike[str], text: str) -> bool:
    """
    Create a file that only the user can read; return whether it is new.

    If several processes create it at once, one of them does, and the file is complete when the others return. Raise
    `OSError` if it cannot be created.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=_temporary_of(target).name)  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            target.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            _move_once(Path(temporary), target)
    except FileExistsError:
        return False
    finally:
        Path(temporary).unlink(missing_ok=True)
    return True


def _move_once(source: Path, target: Path) -> None:
    """Rename a file; raise `FileExistsError` if the target exists. A folder next to it excludes other processes."""
    lock = target.with_name(f".{target.name[-200:]}.lock")
    deadline = time.monotonic() + _LONGEST_LOCK
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            if time.monotonic() > deadline:  # that of a killed process
                raise OSError(errno.EBUSY, f"locked; remove {lock}") from None
            time.sleep(0.05)
    try:
        if target.exists():
            raise FileExistsError(target)
        source.rename(target)
    finally:
        lock.rmdir()


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Write a small JSON file atomically, with sorted keys."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True) + "\n")


def is_in_the_making(path: Path) -> bool:
    """Return whether a path is a temporary file, of a running or a killed command."""
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
        pass  # it belongs to another user
    return True


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it exists and can be removed."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass  # the folder is not writable either, which is reported elsewhere
