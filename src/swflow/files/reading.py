"""Open the files of users: regular files or standard input, decompressed, with limits of their size."""

import gzip
import hashlib
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from swflow.errors import SwflowError, reason_of, shown
from swflow.values import Limit

#: Limits of a file that is read as a whole, and of its decompressed text: 10 times the archive's largest log.
#: `swflow.log.swf.LogParts` reads larger ones.
FILE = Limit(2**30, "bytes")
TEXT = Limit(2**32, "bytes of text")

#: Limit of files that people write or Slurm's commands print: configs, catalogues, mappings, slurm.conf, tables.
SETTINGS = Limit(2**26, "bytes")

#: Limit of the levels of a YAML or JSON text.
LEVELS = 100

#: Logs compress to about 10 %. A text above the size limit at a higher ratio is not a log but a decompression bomb.
MOST_PACKED, PACKED_SIZE = 100, 2**26

#: Size of a part, in bytes.
PART = 2**26

BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
GZIP_MAGIC = b"\x1f\x8b"
_OTHER_MAGIC = {
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file",
}

#: What can be between documents of JSON.
_BETWEEN = re.compile(r"[\s,]*")

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """
    Open a regular file, or a pipe that the process has as a descriptor: standard input, or ``<(command)`` of a shell.

    Raise `SwflowError` if it is something else, does not exist, or cannot be read or decompressed. Opening never waits
    for another process.
    """
    where = _name_of(path)
    with _damage_reported(where):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except ValueError:
            raise SwflowError(f"{where!r}: not a name of a file; it has a null character") from None
        with open(descriptor, "rb") as file:  # noqa: PTH123 (a descriptor)
            kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
            is_own = str(path).startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd/"))
            if kind != stat.S_IFREG and not (kind == stat.S_IFIFO and is_own):
                raise SwflowError(
                    f"{where}: {_KINDS.get(kind, 'no regular file')}; expected a file, or /dev/stdin for a pipe"
                )
            os.set_blocking(descriptor, True)
            yield file


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder instead of ``~``; raise an error if there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SwflowError(f"{path}: the home folder is unknown; set HOME, or give the path without ~") from None


def require_file(path: str | os.PathLike[str]) -> None:
    """Raise an error unless a path is a regular file that can be read; for libraries that open it themselves."""
    with opened(path):
        pass


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a regular file."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 (a path with a null character raises an error)
    except (OSError, ValueError):
        return False


def read_content(path: str | os.PathLike[str], limit: Limit = FILE) -> bytes:
    """Return the bytes of a file; raise an error above a limit of its size."""
    with opened(path) as file:
        most = max(limit.most, limit.amount)
        content = file.read(most + 1)
    limit.require(len(content), _name_of(path))
    return content


def as_utf8(text: bytes) -> bytes:
    r"""
    Return a text without a mark of the byte order, from UTF-16 in UTF-8.

    Examples
    --------
    >>> as_utf8("JobID|User".encode("utf-16")), as_utf8(b"\xef\xbb\xbfJobID")
    (b'JobID|User', b'JobID')
    """
    if text.startswith(_UTF_16):
        return text.decode("utf-16", "replace").encode()
    return text.removeprefix(BOM)


def read_bytes(path: str | os.PathLike[str], what: str = "text") -> bytes:
    """Return a file's text, decompressed if it is gzipped, without a mark of the byte order."""
    return plain_text(read_content(path), _name_of(path), what)


def read_text(path: str | os.PathLike[str], limit: Limit = SETTINGS, *, errors: str = "strict") -> str:
    """Return the text of a file in UTF-8; with ``errors="replace"``, other bytes become U+FFFD."""
    content = as_utf8(read_content(path, limit))
    try:
        return content.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SwflowError(
            f"{_name_of(path)}:{line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def read_json(path: str | os.PathLike[str], what: str, marks: Mapping[str, object] | None = None) -> Any:
    """Return the content of a JSON file; raise an error that names ``what`` it should be, with these ``marks``."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SwflowError(f"{path}: {reason_of(error)}") from None
    except ValueError:
        raise SwflowError(f"{path}: not {what}") from None
    if marks and not (isinstance(content, dict) and marks.items() <= content.items()):
        raise SwflowError(f"{path}: not {what}")
    return content


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return a hash of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def parse_json(text: str | bytes, where: str, *, is_option: bool = False) -> Any:
    """
    Parse JSON; raise an error with the line of its first mistake.

    In an option, which is short, a name that an object has twice is a mistake, too.
    """
    with _mistakes_reported(where):
        return json.loads(text, object_pairs_hook=_unique if is_option else None)


def parse_documents(text: str | bytes, where: str) -> list[Any]:
    r"""
    Parse JSON documents that follow each other, such as one per line; raise an error as `parse_json`.

    Examples
    --------
    >>> parse_documents(b'{"a": 1}\n{"a": 2}\n', "jobs.json"), parse_documents("[3]", "jobs.json")
    ([{'a': 1}, {'a': 2}], [[3]])
    """
    found, at = list[Any](), 0
    with _mistakes_reported(where):
        words = (text.decode() if isinstance(text, bytes) else text).strip()
        decoder = json.JSONDecoder()
        while not found or at < len(words):
            document, end = decoder.raw_decode(words, at)
            found.append(document)
            at = _BETWEEN.match(words, end).end()  # type: ignore[union-attr]
    return found


@contextmanager
def _mistakes_reported(where: str) -> Iterator[None]:
    """Convert the errors of parsing JSON to one line."""
    try:
        yield
    except _Duplicate as error:
        raise SwflowError(f"{where}: {shown(str(error))} is given twice") from None
    except json.JSONDecodeError as error:
        raise SwflowError(f"{where}:{error.lineno}: invalid JSON ({error.msg})") from None
    except RecursionError:
        raise SwflowError(f"{where}: JSON that is nested too deeply; expected at most {LEVELS} levels") from None
    except UnicodeDecodeError:
        raise SwflowError(f"{where}: not UTF-8; expected JSON") from None
    except ValueError:
        raise SwflowError(f"{where}: JSON with a number of more than 4,300 digits; correct the number") from None


class _Duplicate(Exception):
    """A name that an object has twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Duplicate(next(name for name in names if names.count(name) > 1))
    return found


def plain_text(content: bytes, where: str, what: str = "text") -> bytes:
    """
    Return a text, decompressed if it is gzipped, as `as_utf8`.

    ``where`` names the file in error messages, ``what`` the expected content.
    """
    text = content
    if content.startswith(GZIP_MAGIC):
        with _damage_reported(where):
            text = b"".join(blocks(io.BytesIO(content), len(content), where, TEXT))
    text = as_utf8(text)
    require_text(text, where, what)
    return text


def require_text(text: bytes, where: str, what: str, is_first: bool = True) -> None:
    """Raise an error if a part of a file is not text."""
    kinds = [kind for magic, kind in _OTHER_MAGIC.items() if is_first and text.startswith(magic)]
    if kinds or b"\0" in text:
        kind = kinds[0] if kinds else "a binary file"
        raise SwflowError(f"{where}: {kind}, not {what}; expected plain or gzipped text")


def blocks(file: BinaryIO, packed: int, where: str, limit: Limit | None = None) -> Iterator[bytes]:
    """Yield a text in blocks, decompressed if it is gzipped; raise an error early at a decompression bomb."""
    is_packed = file.read(2) == GZIP_MAGIC
    file.seek(0)
    dense, size = max(PACKED_SIZE, MOST_PACKED * packed), 0
    source: Any = gzip.GzipFile(fileobj=file) if is_packed else file
    while block := source.read(PART):
        size += len(block)
        if is_packed and size > dense:
            raise SwflowError(
                f"{where}: {packed:,} bytes decompress to more than {dense:,}; this is not a log and would fill "
                "the memory; get the right file"
            )
        if limit is not None:
            limit.require(size, where)
        yield block


@contextmanager
def _damage_reported(where: str) -> Iterator[None]:
    """Convert the errors of reading and decompressing a file to one line."""
    try:
        yield
    except EOFError:
        raise SwflowError(f"{where}: the gzip file is truncated; fetch or copy it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise SwflowError(f"{where}: damaged gzip data ({error}); fetch or copy it again") from None
    except FileNotFoundError:
        raise SwflowError(f"{where}: no such file") from None
    except OSError as error:
        raise SwflowError(f"{where}: cannot be read ({reason_of(error)})") from None


def _name_of(path: str | os.PathLike[str]) -> str:
    return str(Path(path))
