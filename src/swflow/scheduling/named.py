"""Predefined schedulers, and the parser of schedulers on the command line."""

import json
import re
from collections.abc import Mapping
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.scheduling.orders.vocabulary import LOG, MULTIFACTOR, ORDERS

#: Predefined schedulers. The named orders are among them, without backfilling except for slurm-multifactor.
KNOWN: dict[str, dict[str, Any]] = {
    "easy": {"backfill": "easy"},
    "conservative": {"backfill": "conservative"},
    "sjf-easy": {"order": "sjf", "backfill": "easy"},
    "easy-sjbf": {"backfill": "easy", "backfill_order": "sjf"},
    LOG: {"order": LOG},
    **{name: {"order": name} for name in ORDERS},
    MULTIFACTOR: {"order": MULTIFACTOR, "backfill": "easy"},  # nearly every site with this priority backfills
}

#: The beginning of ``NAME={JSON options}``.
_NAMED = re.compile(r"([^:{=]*)=")


def read_scheduler(text: str) -> tuple[str, dict[str, Any]]:
    """
    Parse a scheduler of the command line into its name and its options.

    Parameters
    ----------
    text : str
        A name of `KNOWN`, ``name: {options}`` in YAML, or ``NAME={options}`` in JSON or YAML.

    Raises
    ------
    SwflowError
        If the text is none of these.

    Examples
    --------
    >>> read_scheduler("easy"), read_scheduler("mine: {order: sjf, backfill: easy}")
    (('easy', {'backfill': 'easy'}), ('mine', {'order': 'sjf', 'backfill': 'easy'}))
    >>> read_scheduler('mine={"order": "sjf"}')
    ('mine', {'order': 'sjf'})
    """
    if text in KNOWN:
        return text, KNOWN[text]
    where = f"--scheduler {text[:200]!r}"
    named = _NAMED.match(text)
    content = {named[1]: _content(text[named.end() :], where)} if named else _content(text, where)
    if isinstance(content, Mapping) and len(content) == 1:
        ((name, options),) = content.items()
        if isinstance(name, str) and name and isinstance(options, Mapping):
            return name, dict(options)
    raise SwflowError(
        f"{where}: not a scheduler; expected a name, 'name: {{order: fcfs, backfill: easy}}', or "
        f"NAME={{JSON options}}{suggest(text[:200], KNOWN)}"
    )


def _content(text: str, where: str) -> Any:
    """Parse JSON, else YAML; JSON first, because YAML 1.1 reads numbers such as 1e-5 as texts."""
    import yaml

    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    except (RecursionError, ValueError):
        raise SwflowError(f"{where}: too deeply nested, or a number too long") from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SwflowError(f"{where}: {getattr(error, 'problem', None) or 'too deeply nested'}") from None
