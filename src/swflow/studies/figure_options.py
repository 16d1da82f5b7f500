"""The figures of a study: kinds, or kinds with the options of ``swflow figure``."""

from collections.abc import Mapping
from typing import Any

#: The options of a figure in a config that are passed on as they are, and the arguments of `swflow.figures.draw`.
_SAME = {"bins": "bins", "scale": "scale", "title": "title"}


def kind_of_figure(entry: str | Mapping[str, Any]) -> str:
    """Return the kind of a figure in a config."""
    return entry if isinstance(entry, str) else str(entry["kind"])


def name_of_figure(entry: str | Mapping[str, Any]) -> str:
    """Return the name of a figure in a config, by default its kind."""
    return entry if isinstance(entry, str) else str(entry.get("name", entry["kind"]))


def options_of_figure(entry: str | Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the options of a figure in a config, which are those of the command, as arguments of `swflow.figures.draw`.

    ``how`` has the arguments of `swflow.figures.print.Print` with the width as it is written.

    Examples
    --------
    >>> options_of_figure("waits")
    {}
    >>> options_of_figure({"kind": "heatmap", "measure": "wait_time", "bins": 20, "width": "84mm", "title": "none"})
    {'bins': 20, 'measures': ['wait_time'], 'how': {'width': '84mm', 'titled': False}}
    """
    if isinstance(entry, str):
        return {}
    is_titled = entry.get("title") != "none"
    found = {_SAME[key]: value for key, value in entry.items() if key in _SAME and (key != "title" or is_titled)}
    if measure := entry.get("measure"):
        found["measures"] = [measure] if isinstance(measure, str) else list(measure)
    if split := entry.get("split"):
        found["split"] = [split] if isinstance(split, str) else [f"{name}={part}" for name, part in split.items()]
    if "from" in entry or "until" in entry:
        found["window"] = [entry.get("from"), entry.get("until")]
    how = {key: entry[key] for key in ("width", "font") if key in entry} | ({} if is_titled else {"titled": False})
    return found | ({"how": how} if how else {})
