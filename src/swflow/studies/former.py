"""Results of former configs: remove the files that no study of the config names."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from swflow.errors import SwflowError
from swflow.files.reading import file_digest, read_json
from swflow.files.store import STORE, unnamed

#: The folders of results that show the present config only; the report removes what else they contain.
SHOWN = ("figures", "whatif", "forecasts")

#: The folders whose files a later config may need again; they keep all files until they are pruned.
REUSED = ("logs", "workloads", "models", "runs", "sweeps", "bounds", "wait_reasons", "plans")


def remove_former(plan: str | os.PathLike[str], folders: Collection[str], results: Path = Path("results")) -> list[str]:
    """
    Remove the files that a plan does not name from folders of results, and folders that are then empty.

    The plan is a JSON file whose ``files`` are the files and folders of the config. Of a store, files remain that keep
    a planned file. Return the removed files; those of a store have its name in their paths.
    """
    what = "a list of results; expected JSON: files"
    planned = read_json(plan, what, {})
    if not isinstance(planned, dict) or not isinstance(planned.get("files"), list):
        raise SwflowError(f"{plan}: not {what}")
    named = {str(plan), *map(str, planned["files"])}
    removed = []
    for folder in folders:
        for path in [*_former(results / folder, named)]:
            path.unlink()
            removed.append(str(path))
        for path in sorted((results / folder).rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
    return removed


def _former(folder: Path, named: set[str]) -> Iterator[Path]:
    """Give the files of a folder of results that are not among the named files and not in named folders."""
    digests = set()
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or STORE in path.parts:
            continue
        if named & {str(path), str(path.parent)}:
            digests |= {file_digest(path)} if (folder / STORE).is_dir() else set()
        else:
            yield path
    yield from unnamed(folder, digests)
