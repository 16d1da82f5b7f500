"""Predefined schedulers in a config: those that studies name without a definition, and those that it redefines."""

from collections.abc import Iterator
from typing import Any

from swflow.scheduling.named import KNOWN, redefined
from swflow.scheduling.orders.vocabulary import LOG
from swflow.studies.plan import ALL
from swflow.studies.step_options import Config

#: The parts of a study that name schedulers.
_GROUPS = ("runs", "sweeps", "whatif")


def with_predefined(config: dict[str, Any]) -> dict[str, Any]:
    """
    Return the config with the predefined schedulers that its studies name and that it does not define.

    Examples
    --------
    >>> studies = {"one": {"runs": [{"schedulers": ["mine", "sjbf"]}]}}
    >>> with_predefined({"schedulers": {"mine": {}}, "studies": studies})["schedulers"]
    {'mine': {}, 'sjbf': {'backfill': 'easy', 'backfill_order': 'sjf'}}
    """
    own = config["schedulers"]
    named = [name for name in _named(config) if name in KNOWN and name not in own and name != LOG]
    return config | {"schedulers": {**own, **{name: dict(KNOWN[name]) for name in named}}} if named else config


def _named(config: Config) -> Iterator[str]:
    """Yield the schedulers that studies name, each at its first use."""
    seen = {ALL}
    for content in config["studies"].values():
        for group in (group for part in _GROUPS for group in content.get(part) or ()):
            listed = group.get("schedulers")
            for name in listed if isinstance(listed, list) else ():
                if name not in seen:
                    seen.add(name)
                    yield name


def redefinitions(config: Config) -> list[str]:
    """
    Return a line for each scheduler of a config that has the name of a predefined one and other options.

    Examples
    --------
    >>> redefinitions({"schedulers": {"sjf": {"order": "sjf"}, "easy": {"backfill": "easy", "order": "fcfs"}}})
    ["schedulers: sjf: redefines the predefined scheduler: backfill 'none' instead of 'easy'"]
    """
    found = redefined(config["schedulers"])
    return [f"schedulers: {name}: redefines the predefined scheduler: {words}" for name, words in found.items()]
