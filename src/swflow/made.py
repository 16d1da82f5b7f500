"""What files were made of: keys and checksums kept beside them, so that what is whole and unchanged stays."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.files import atomic_path


class Made:
    """
    The record of the files that one job makes: one entry a file, written as soon as the file is.

    Parameters
    ----------
    path : path-like
        The record, a JSON file. One that is missing or garbage is empty: then everything is made again.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     _ = file.write_text("hello")
    ...     made = Made(Path(folder) / "made.json")
    ...     made.note("a", file, key="1")
    ...     again = Made(Path(folder) / "made.json")
    ...     same, changed = again.is_fresh("a", file, key="1"), again.is_fresh("a", file, key="2")
    ...     _ = file.write_text("hallo")
    ...     same, changed, again.is_fresh("a", file, key="1")
    (True, False, False)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.entries: dict[str, dict[str, Any]] = {}
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if isinstance(content, dict):
            self.entries = {name: entry for name, entry in content.items() if isinstance(entry, dict)}

    def is_fresh(self, name: str, file: Path, *, key: str) -> bool:
        """Say whether a file was made under this key, and has the bytes that it was made with."""
        entry = self.entries.get(name, {})
        return entry.get("key") == key and is_whole(file, entry)

    def note(self, name: str, file: Path, *, key: str, **more: Any) -> None:
        """Record a file that was just made, and what else is known of it."""
        self.entries[name] = {"key": key, **checksum(file), **more}
        write_json(self.path, self.entries)


def checksum(file: Path) -> dict[str, Any]:
    """Return a file's size in bytes, and a digest of what is in it."""
    return {"size": file.stat().st_size, "digest": file_digest(file)}


def has_size(file: Path, entry: Mapping[str, Any]) -> bool:
    """Say whether a file is there and has the size that `checksum` gave: a look that costs nothing."""
    try:
        return file.stat().st_size == entry.get("size")
    except OSError:
        return False


def is_whole(file: Path, entry: Mapping[str, Any]) -> bool:
    """Say whether a file has the size and the digest that `checksum` gave."""
    return has_size(file, entry) and file_digest(file) == entry.get("digest")


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return a hash of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def key_of(content: Any) -> str:
    """Return a hash of what a file is made of, whatever the order of its keys."""
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """
    Read a manifest: the JSON file that stands for the files of a job, and says how large they are.

    Raises
    ------
    SwflowError
        If it is missing, or is none.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        files = content["files"]
        if all({"file", "key", "size", "digest"} <= entry.keys() for entry in files.values()):
            return content
    except OSError as error:
        raise SwflowError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise SwflowError(f"{path}: not a manifest that swflow wrote; delete it, and run snakemake again")


def drop_broken(path: str | os.PathLike[str]) -> bool:
    """
    Remove a manifest that no longer tells the truth: then the workflow makes what is missing again.

    A file that is gone, has another size, or was changed after the manifest and has another digest breaks it.

    Parameters
    ----------
    path : path-like
        The manifest; nothing happens if there is none.

    Returns
    -------
    bool
        Whether it was removed.
    """
    path = Path(path)
    if not path.is_file():
        return False
    written = path.stat().st_mtime_ns
    try:
        for entry in read_manifest(path)["files"].values():
            file = path.parent / entry["file"]
            about = file.stat()
            if about.st_size != entry["size"] or (about.st_mtime_ns > written and not is_whole(file, entry)):
                break
        else:
            return False
    except (SwflowError, OSError, TypeError):
        pass
    path.unlink(missing_ok=True)
    return True


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a small JSON file, atomically, its keys in order."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
