"""Check the files of a config, whose mistakes Snakemake's own reader passes over."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from swflow.errors import SwflowError, shown
from swflow.files.reading import parse_json, read_text
from swflow.files.yaml import read_yaml

#: The parts of a config whose keys are names, which become parts of the names of files.
_NAMED = ("logs", "steps", "sweeps", "schedulers", "studies")


@contextmanager
def mistakes_named(path: str) -> Iterator[None]:
    """End with a line that names the file and the line of a mistake if Snakemake cannot read a config."""
    from snakemake.exceptions import WorkflowError

    try:
        yield
    except WorkflowError:
        try:
            check_config_files([path])
        except SwflowError as error:
            sys.exit(f"config: {error}")
        raise


def check_config_files(paths: Iterable[str | os.PathLike[str]]) -> None:
    """
    Raise an error for a config with a key that is given twice, an invalid date, or a name that is not a text.

    YAML reads the names ``2024`` and ``2024-01-01`` as a number and a date, unless they are quoted.
    """
    for path in paths:
        is_json = Path(path).suffix == ".json"
        content = parse_json(read_text(path), str(path), is_option=True) if is_json else read_yaml(path)
        if not isinstance(content, Mapping):
            continue  # the schema describes what is expected
        for part in _NAMED:
            named = content.get(part)
            for name in named if isinstance(named, Mapping) else ():
                if not isinstance(name, str):
                    raise SwflowError(f"{path}: {part}: {shown(name)}; expected a text as a name: {str(name)!r}")
