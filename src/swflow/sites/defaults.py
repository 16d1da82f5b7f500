"""Defaults of slurm.conf, which depend on the version of Slurm."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.files.yaml import parse_yaml
from swflow.sites.conf import SlurmConf
from swflow.sites.lines import Place, Value

_DEFAULTS = Path(__file__).with_name("defaults.yaml")

#: The version without another one: later than all in the file.
_NEWEST = (99, 0)

#: Options of slurm.conf that Slurm no longer has, with the first version without each.
_REMOVED = {"fastschedule": (20, 2), "cryptotype": (19, 5), "cachegroups": (17, 11), "checkpointtype": (20, 2)}


@cache
def _defaults() -> dict[str, list[dict[str, Any]]]:
    content: dict[str, list[dict[str, Any]]] = parse_yaml(_DEFAULTS.read_text(encoding="utf-8"))
    return content


def with_defaults(slurm: SlurmConf, version: str | None) -> SlurmConf:
    """
    Return a configuration with the defaults of options that it does not state, for a version of Slurm such as 23.11.

    Without a version, it is the newest one in which Slurm has all options of the configuration.
    """
    known = _version(version, slurm)
    added = {}
    for name, values in _defaults().items():
        if name.lower() in slurm.options:
            continue
        for one in values:
            others = one.get("if", {}).items()
            if _parsed(one["since"]) <= known and all(slurm.text(key).lower().endswith(end) for key, end in others):
                added[name.lower()] = Value(name, one["value"], Place(Path("default"), 0))
                break
    return replace(slurm, options={**slurm.options, **added})


def _version(text: str | None, slurm: SlurmConf) -> tuple[int, ...]:
    if text is not None:
        return _parsed(text)
    removed = [before for name, before in _REMOVED.items() if name in slurm.options]
    return min([_NEWEST, *((year, month - 1) for year, month in removed)])


def _parsed(text: str) -> tuple[int, ...]:
    found = re.fullmatch(r"([0-9]{1,2})(?:\.([0-9]{1,2}))?(?:[.-].*)?", text.strip())
    if found is None:
        raise SwflowError(f"--slurm-version: {text!r}; expected a version such as 23.11")
    return int(found[1]), int(found[2] or 0)
