"""Steps of a config with several loads: one step per load, and the workloads of each."""

from collections.abc import Iterator, Mapping
from typing import Any

from swflow.errors import SwflowError
from swflow.studies.points import values

#: The options of a step that can have several values, of the kinds of steps that have them.
_SEVERAL = {"intensify": ("load", "factor")}

#: The parts of studies that name workloads.
_PARTS = ("runs", "sweeps", "whatif", "forecast")


def with_levels(config: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the config with one step for each value of a step that has several, and with the workloads of each.

    A step ``loads: {kind: intensify, load: "0.6:0.9:0.1"}`` becomes the steps ``loads-0.6`` to ``loads-0.9``, and a
    workload ``{log}+loads`` of a study becomes those of these steps.

    Examples
    --------
    >>> study = {"logs": ["A"], "runs": [{"workloads": ["{log}", "{log}+loads"], "schedulers": ["easy"]}]}
    >>> steps = {"loads": {"kind": "intensify", "load": "0.7:0.9:0.2"}}
    >>> config = with_levels({"steps": steps, "studies": {"mine": study}})
    >>> config["steps"]
    {'loads-0.7': {'kind': 'intensify', 'load': 0.7}, 'loads-0.9': {'kind': 'intensify', 'load': 0.9}}
    >>> config["studies"]["mine"]["runs"][0]["workloads"]
    ['{log}', '{log}+loads-0.7', '{log}+loads-0.9']
    """
    steps: dict[str, Any] = {}
    levels: dict[str, list[str]] = {}
    given = config.get("steps", {})
    for name, content in given.items():
        found = _levels(name, content)
        levels[name] = [one for one, _ in found]
        for one, definition in found:
            if (one != name and one in given) or one in steps:
                raise SwflowError(f"steps: {name}: its value makes a step {one!r}, which exists; rename one of them")
            steps[one] = definition
    studies = {study: dict(content) for study, content in config["studies"].items()}
    for content in studies.values():
        for part in _PARTS:
            if content.get(part):
                content[part] = [
                    {**entry, "workloads": [one for text in entry["workloads"] for one in _expanded(text, levels)]}
                    for entry in content[part]
                ]
    return {**config, "steps": steps, "studies": studies}


def _levels(name: str, content: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and definitions of the steps that a step stands for: itself if it has single values."""
    for option in _SEVERAL.get(content.get("kind", ""), ()):
        value = content.get(option)
        texts = value if isinstance(value, list) else [] if value is None else [value]
        numbers = [one for text in texts for one in values(str(text), f"steps: {name}: {option}")]
        if min(numbers, default=1) <= 0:
            raise SwflowError(f"steps: {name}: {option}: {min(numbers):g}; expected a number above 0")
        if isinstance(value, str | list):
            return [(f"{name}-{one:.10g}", {**content, option: one}) for one in dict.fromkeys(numbers)]
    return [(name, dict(content))]


def _expanded(workload: str, levels: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the workloads that a template stands for: one for each level of each of its steps."""
    first, *rest = workload.split("+")
    found = [first]
    for step in rest:
        name = step.partition("@")[0]
        suffix = step[len(name) :]
        found = [f"{before}+{one}{suffix}" for before in found for one in levels.get(name, [name])]
    yield from found
