"""Manifests: keys and checksums of the files of a folder, so that complete and unchanged files are kept."""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.files.atomic import atomic_path

#: The manifest of a folder that one job fills.
MANIFEST = "manifest.json"

_REQUIRED = {"file", "key", "size", "digest"}


class Manifest:
    """
    The manifest of files that one job writes: one entry per file, added as soon as the file is complete.

    The key of an entry is a hash of everything that the file is made of. Snakemake deletes declared outputs before a
    job, so no manifest is one: a job declares a list (`write_list`), which refers to the entries by name and key.

    Parameters
    ----------
    path : path-like
        The manifest, a JSON file. One that is missing or damaged counts as empty: every file is made again.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     _ = file.write_text("hello")
    ...     manifest = Manifest(Path(folder) / "manifest.json")
    ...     manifest.note("a", file, key="1")
    ...     again = Manifest(Path(folder) / "manifest.json")
    ...     same, changed = again.is_fresh("a", file, key="1"), again.is_fresh("a", file, key="2")
    ...     _ = file.write_text("hallo")
    ...     same, changed, again.is_fresh("a", file, key="1")
    (True, False, False)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.entries: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(SwflowError):
            self.entries = _entries(self.path)

    def is_fresh(self, name: str, file: Path, *, key: str) -> bool:
        """Return whether a file was made under this key and still has the bytes that were written."""
        entry = self.entries.get(name, {})
        return entry.get("key") == key and is_whole(file, entry)

    def note(self, name: str, file: Path, *, key: str, **more: Any) -> None:
        """Add a file that was just written, with further facts about it."""
        relative, size = file.relative_to(self.path.parent).as_posix(), file.stat().st_size
        self.entries[name] = {"file": relative, "key": key, "size": size, "digest": file_digest(file), **more}
        write_json(self.path, {"files": self.entries})

    def select(self, names: list[str]) -> None:
        """Mark the files that the last call asked for; the others stay for later calls and are not loaded."""
        for name, entry in self.entries.items():
            entry["selected"] = name in names
        write_json(self.path, {"files": self.entries})


def has_size(file: Path, entry: Mapping[str, Any]) -> bool:
    """Return whether a file exists and has the size (bytes) of its entry, without reading it."""
    try:
        return file.stat().st_size == entry.get("size")
    except OSError:
        return False


def is_whole(file: Path, entry: Mapping[str, Any]) -> bool:
    """Return whether a file has the size and the digest of its entry."""
    return has_size(file, entry) and file_digest(file) == entry.get("digest")


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return a hash of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def key_of(content: Any) -> str:
    """Return a hash of what a file is made of, independent of the order of keys."""
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def write_list(path: str | os.PathLike[str], parts: Mapping[str, list[str]]) -> dict[str, Any]:
    """
    Write a list of files, the declared output of a job, as JSON, and return its content.

    ``parts`` maps each manifest, relative to the folder of the list, to the names of its entries that are listed. The
    content has their keys.
    """
    folder = Path(path).parent
    content = {}
    for part, names in parts.items():
        entries = Manifest(folder / part).entries
        content[part] = {name: entries[name]["key"] for name in names}
    write_json(path, {"manifests": content})
    return {"manifests": content}


def listed_files(path: str | os.PathLike[str]) -> dict[Path, dict[str, Any]]:
    """
    Return the files that a list, or the manifest of a folder, names; of a manifest, the selected files count.

    Returns
    -------
    dict
        File to its entry, with the ``name`` and the path of the ``manifest``.

    Raises
    ------
    SwflowError
        If the file, or a manifest that it refers to, is missing, damaged or of another version.
    """
    path = Path(path)
    content = _read(path)
    parts = content.get("manifests")
    if parts is None:
        entries = {name: entry for name, entry in _entries(path).items() if entry.get("selected", True)}
        return {
            path.parent / entry["file"]: {**entry, "name": name, "manifest": path} for name, entry in entries.items()
        }
    found = {}
    try:
        for part, keys in parts.items():
            manifest = path.parent / part
            entries_of = _entries(manifest)
            for name, key in keys.items():
                entry = entries_of.get(name, {})
                if entry.get("key") != key:
                    raise SwflowError(f"{manifest}: {name} is not what {path} lists; {_REPAIR.format(path=path)}")
                found[manifest.parent / entry["file"]] = {**entry, "name": name, "manifest": path}
    except (AttributeError, TypeError):
        raise SwflowError(f"{path}: not a list of files that swflow wrote; {_REPAIR.format(path='it')}") from None
    return found


_REPAIR = "delete {path}, and run snakemake again"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SwflowError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise SwflowError(f"{path}: not a manifest that swflow wrote; {_REPAIR.format(path='it')}")
    return content


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of a manifest."""
    files: Any = _read(path).get("files")
    try:
        if all(entry.keys() >= _REQUIRED for entry in files.values()):
            return dict(files)
    except (AttributeError, TypeError):
        pass
    raise SwflowError(f"{path}: not a manifest that swflow wrote; {_REPAIR.format(path='it')}")


def drop_broken(path: str | os.PathLike[str]) -> bool:
    """
    Remove a list that does not match its files, so that the workflow makes the missing files again; return whether.

    A list is broken by a file that is missing, has another size, or was changed after the list was written and has
    another digest, and by a manifest that is damaged or has another key.
    """
    path = Path(path)
    if not path.is_file():
        return False
    written = path.stat().st_mtime_ns
    try:
        for file, entry in listed_files(path).items():
            about = file.stat()
            if about.st_size != entry["size"] or (about.st_mtime_ns > written and not is_whole(file, entry)):
                break
        else:
            return False
    except (SwflowError, OSError):
        pass
    path.unlink(missing_ok=True)
    return True


def unmade(options: Mapping[str, Mapping[str, Any]], code: str, folder: Path) -> list[str]:
    """
    Return the schedulers whose runs are missing or outdated, assuming that the workload file is unchanged, sorted.

    ``options`` maps schedulers to their options, all filled in; ``code`` is the fingerprint of the code that simulates;
    ``folder`` has the runs of the workload.
    """
    entries = Manifest(folder / MANIFEST).entries
    return sorted(
        name
        for name, wanted in options.items()
        if not entries.get(name, {}).get("key", "").startswith(run_key(folder.name, name, wanted, code))
        or not has_size(folder / entries[name]["file"], entries[name])
    )


def run_key(workload: str, scheduler: str, options: Mapping[str, Any], code: str, source: str = "") -> str:
    """
    Return the key of a run: a hash of its settings, and the digest of the workload's file.

    Without ``source``, the digest of the file, it is the part that is known before the file exists.
    """
    return f"{key_of([workload, scheduler, options, code])}-{source}"


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write a small JSON file atomically, with sorted keys."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
