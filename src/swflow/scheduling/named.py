"""Schedulers that need no definition, and how a user names one on the command line."""

import re
from collections.abc import Mapping
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.scheduling.options import LOG, ORDERS

#: Schedulers that need no definition; so do the named orders, which are without backfilling.
KNOWN: dict[str, dict[str, Any]] = {
    "easy": {"backfill": "easy"},
    "conservative": {"backfill": "conservative"},
    "sjf-easy": {"order": "sjf", "backfill": "easy"},
    "easy-sjbf": {"backfill": "easy", "backfill_order": "sjf"},
    LOG: {"order": LOG},
    **{name: {"order": name} for name in ORDERS},
}

#: How the workflow names a scheduler, with its options as JSON.
_WITH_JSON = re.compile(r"[^:{=]*=")


def is_with_json(text: str) -> bool:
    """Return whether a scheduler is named as NAME={JSON options}."""
    return _WITH_JSON.match(text) is not None


def read_scheduler(text: str) -> tuple[str, dict[str, Any]]:
    """
    Read a scheduler as a user names it: one of `KNOWN`, or ``name: {options}``.

    Examples
    --------
    >>> read_scheduler("easy"), read_scheduler("mine: {order: sjf, backfill: easy}")
    (('easy', {'backfill': 'easy'}), ('mine', {'order': 'sjf', 'backfill': 'easy'}))
    """
    if text in KNOWN:
        return text, KNOWN[text]
    import yaml

    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SwflowError(f"--scheduler {text!r}: {getattr(error, 'problem', error)}") from None
    if isinstance(content, Mapping) and len(content) == 1:
        ((name, options),) = content.items()
        if isinstance(name, str) and isinstance(options, Mapping):
            return name, dict(options)
    raise SwflowError(
        f"--scheduler {text!r}: write 'name: {{order: fcfs, backfill: easy}}', or a name{suggest(text, KNOWN)}"
    )
