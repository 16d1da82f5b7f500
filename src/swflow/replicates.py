"""Replicates of a step made in one process, each kept under a content key."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from swflow.errors import SwflowError
from swflow.made import Made, file_digest, key_of, write_json
from swflow.names import expand, parent_of


def make_replicates(
    kind: str,
    outputs: Iterable[str | os.PathLike[str]],
    options: Sequence[str],
    manifest: str | os.PathLike[str],
    make: Callable[[list[str]], None],
    *,
    code: str = "",
    report: Callable[[str, bool], None] = lambda workload, kept: None,
) -> int:
    """
    Make workloads by the same step, unless they are there as they would be.

    Parameters
    ----------
    kind : str
        The kind of step.
    outputs : iterable of path-like
        The workloads' files; a range of replicates in a name stands for all of them.
    options : sequence of str
        The options of the step's command; a range stands for the replicate that is being made.
    manifest : path-like
        The JSON file that lists the workloads, in their folder: name to file, key, size and digest.
    make : callable
        Runs the step's command with these arguments.
    code : str
        The fingerprint of the code of the step: what was made by other code is made again.
    report : callable
        Told of every workload: its name, and whether it was kept.

    Returns
    -------
    int
        How many workloads the manifest lists.

    Raises
    ------
    SwflowError
        If an output lies elsewhere, or has no suffix, or as the step does.
    """
    manifest = Path(manifest)
    made = Made(manifest.with_name(f".{manifest.stem}.made.json"))
    files: dict[str, Path] = {}
    for output in outputs:
        texts = [expand(option) for option in options]
        for place, name in enumerate(expand(os.fspath(output))):
            path = Path(name)
            if path.parent != manifest.parent or not parent_of(path.stem):
                raise SwflowError(f"replicate: {path}: name a workload as LOG+STEP.parquet in the folder of {manifest}")
            source = path.with_name(f"{parent_of(path.stem)}{path.suffix}")
            if not source.is_file():
                raise SwflowError(f"replicate: {source}: no such file, of which {path.name} is to be made")
            chosen = [text[place] if len(text) > 1 else text[0] for text in texts]
            inputs = [source, *(Path(option) for option in chosen if _is_file(option))]
            key = key_of([kind, path.name, chosen, code, [file_digest(file) for file in inputs]])
            kept = made.is_fresh(path.stem, path, key=key)
            if not kept:
                make([str(source), "-o", str(path), *chosen])
                made.note(path.stem, path, key=key)
            report(path.stem, kept)
            files[path.stem] = path
    entries = {name: {"file": path.name, **made.entries[name]} for name, path in files.items()}
    write_json(manifest, {"files": entries})
    return len(entries)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long for a name, such as a condition
        return False
