"""A store of results: files under a key of all that determines them, which the folders of results link to."""

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from swflow.files.atomic import atomic_path, write_text
from swflow.files.reading import file_digest

#: The folder of a store among the results; a store is a folder in it, named by the code that makes its files.
STORE = ".store"

#: The ending of the file next to a kept file, with its digest and notes on it.
_NOTE = ".json"


def key_of(about: Mapping[str, Any]) -> str:
    """
    Return a key of all that determines a result: its settings, and digests of the files that it is made from.

    Examples
    --------
    >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1}), len(key_of({}))
    (True, 32)
    """
    return hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16).hexdigest()


class Store:
    """
    A folder that keeps a hard link to each result under its key, and the digest of the file next to it.

    Results are replaced and never changed in place. A kept file that no longer has its digest is therefore damaged, and
    `restore` treats it as missing.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def keep(self, key: str, file: Path, digest: str, **notes: Any) -> None:
        """Keep a result with this digest under its key, with notes that JSON can represent."""
        link(file, self._path(key, file.suffix))
        write_text(self._path(key, _NOTE), json.dumps({"digest": digest, **notes}) + "\n")

    def restore(self, key: str, file: Path) -> dict[str, Any] | None:
        """Link the result of a key to a file; return its digest and notes, or None if it is missing or damaged."""
        source, kept = self._path(key, file.suffix), _noted(self._path(key, _NOTE))
        if kept is None or not source.is_file() or file_digest(source) != kept["digest"]:
            return None
        link(source, file)
        return kept

    def _path(self, key: str, suffix: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}{suffix}"  # folders of few files are fast to write to


def _noted(path: Path) -> dict[str, Any] | None:
    """Return the note of a kept file; None if it is missing or damaged."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) and isinstance(kept.get("digest"), str) else None


def link(source: Path, target: Path) -> None:
    """Give a file a second name, atomically; copy it where the file system has no hard links."""
    with atomic_path(target) as temporary:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


def unnamed(folder: Path, digests: Collection[str]) -> Iterator[Path]:
    """Give the files of the stores in a folder of results that keep no file with one of these digests."""
    for path in sorted((folder / STORE).rglob("*")):
        if path.is_file() and (_noted(path.with_suffix(_NOTE)) or {}).get("digest") not in digests:
            yield path
