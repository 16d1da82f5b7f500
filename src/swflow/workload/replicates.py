"""Create the replicates of a step in one process; store each under a content key."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from swflow.errors import SwflowError
from swflow.files.manifest import Manifest, file_digest, key_of, write_list
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
    Create workloads with the same step; keep complete and unchanged ones, and return their number.

    A range of replicates in the name of an output is expanded; in the options of the step's command, it is replaced by
    the current replicate. ``make`` runs the command. Workloads built with another fingerprint of the ``code`` are
    rebuilt. ``report`` is called with the name of every workload and whether it was kept.

    ``manifest`` is a JSON file in the folder of the workloads, with a list of their names. Their keys are in a hidden
    file next to it.
    """
    manifest = Path(manifest)
    made = Manifest(manifest.with_name(f".{manifest.stem}.manifest.json"))
    files: list[str] = []
    for output in outputs:
        texts = [expand(option) for option in options]
        for place, name in enumerate(expand(os.fspath(output))):
            path = Path(name)
            if path.parent != manifest.parent or not parent_of(path.stem):
                raise SwflowError(f"replicate: {path}: name a workload as LOG+STEP.parquet in the folder of {manifest}")
            source = path.with_name(f"{parent_of(path.stem)}{path.suffix}")
            if not source.is_file():
                raise SwflowError(f"replicate: {source}: no such file; {path.name} is created from it")
            chosen = [text[place] if len(text) > 1 else text[0] for text in texts]
            inputs = [source, *(Path(option) for option in chosen if _is_file(option))]
            key = key_of([kind, path.name, chosen, code, [file_digest(file) for file in inputs]])
            kept = made.is_fresh(path.stem, path, key=key)
            if not kept:
                make([str(source), "-o", str(path), *chosen])
                made.note(path.stem, path, key=key)
            report(path.stem, kept)
            files.append(path.stem)
    write_list(manifest, {made.path.name: files})
    return len(files)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # the name is too long for a file, for example a condition
        return False
