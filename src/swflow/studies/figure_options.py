"""The figures of a study: kinds, or kinds with the options of ``swflow figure``."""

from collections.abc import Collection, Mapping
from typing import Any

from swflow.analysis.heatmap import HEATMAP_MEASURES
from swflow.errors import SwflowError, suggest

#: The options of a figure in a config that are passed on as they are, and the arguments of `swflow.figures.draw`.
_SAME = {"bins": "bins", "scale": "scale", "title": "title"}

#: The kind of figure that shows what a study asks for on all its logs; the others show runs of a log.
FOREST = "forest"

#: The measures of a forest plot, and their short names.
FOREST_MEASURES = {
    "wait_time": "mean wait", "p95_wait_time": "p95 wait", "response_time": "response", "awrt": "AWRT",
    "slowdown": "slowdown", "bounded_slowdown": "bd. slowdown",
}  # fmt: skip

#: Options that only some kinds of figures of runs have, and these kinds.
KINDS_WITH = {
    "measure": ("heatmap", "difference", "load-curve", FOREST),
    "study": ("difference", FOREST),
    "bins": ("heatmap",),
    "scale": ("heatmap", "bubbles"),
    "split": ("heatmap",),
    "from": ("reservation-table",),
    "until": ("reservation-table",),
}

#: Kinds whose points are means over replicates; the others show the first replicate.
OF_REPLICATES = ("load-curve",)


def measures_of(kind: str) -> Collection[str]:
    """Return the measures of a kind of figure that has the option."""
    return {"load-curve": ("wait_time", "bounded_slowdown"), FOREST: FOREST_MEASURES}.get(kind, HEATMAP_MEASURES)


def check_figure(kind: str, options: Mapping[str, Any], where: str) -> None:
    """Raise an error if a kind of figure does not have one of the options, which are those of a config."""
    for option in options:
        kinds = KINDS_WITH.get(option, (kind,))
        if kind not in kinds:
            raise SwflowError(f"{where}{option}: not an option of {kind}; expected one of {', '.join(kinds)}")
    measures = options.get("measure") or ()
    for name in [measures] if isinstance(measures, str) else measures:
        known = measures_of(kind)
        if name not in known:
            raise SwflowError(f"{where}measure: {name!r}; expected one of {', '.join(known)}{suggest(name, known)}")


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


def is_printed(options: Mapping[str, Any]) -> bool:
    """Return whether a figure of a plan has a width on paper."""
    return "width" in options.get("how", {})
