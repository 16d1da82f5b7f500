"""Create the replicates of a step in one process; store each under a content key."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from swflow.errors import SwflowError
from swflow.files.manifest import Manifest, file_digest, key_of, write_list
from swflow.names import PARENT, expand, parent_of


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

    A range of replicates in the name of an output is expanded. In the options of the step's command, ``{parent}`` is
    replaced by the name of the workload that a replicate is created from. ``make`` runs the command. Workloads built
    with another fingerprint of the ``code`` are rebuilt. ``report`` is called with the name of every workload and
    whether it was kept.

    ``manifest`` is a JSON file in the folder of the workloads, with a list of their names. Their keys are in a hidden
    file next to it.
    """
    manifest = Path(manifest)
    made = Manifest(manifest.with_name(f".{manifest.stem}.manifest.json"))
    files: list[str] = []
    for output in outputs:
        for path in map(Path, expand(os.fspath(output))):
            parent = parent_of(path.stem)
            if path.parent != manifest.parent or not parent:
                raise SwflowError(f"replicate: {path}: name a workload as LOG+STEP.parquet in the folder of {manifest}")
            source = path.with_name(f"{parent}{path.suffix}")
            if not source.is_file():
                raise SwflowError(f"replicate: {source}: no such file; {path.name} is created from it")
            chosen = [option.replace(PARENT, parent) for option in options]
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
