"""Predefined schedulers, and the parser of schedulers on the command line."""

import json
import re
from collections.abc import Mapping
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.scheduling.options import Unchecked
from swflow.scheduling.orders.vocabulary import LOG, MULTIFACTOR, ORDERS

#: Predefined schedulers. The named orders are among them, without backfilling except for slurm-multifactor.
KNOWN: dict[str, Unchecked] = {
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

#: A config with schedulers, and the name of one of them.
_FILE = re.compile(r"([^{}=]+\.ya?ml)(?::([^/]+))?")


def read_scheduler(text: str) -> tuple[str, Unchecked]:
    """
    Parse a scheduler of the command line into its name and its options.

    Parameters
    ----------
    text : str
        A name of `KNOWN`, ``name: {options}`` in YAML, ``NAME={options}`` in JSON or YAML, ``FILE.yaml`` with one
        scheduler (such as a site that ``swflow import site`` wrote), or ``FILE.yaml:NAME``.

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
    if file := _FILE.fullmatch(text):
        return _of_file(file[1], file[2], where)
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


def _of_file(path: str, name: str | None, where: str) -> tuple[str, Unchecked]:
    """Return a scheduler of a config: the one of this name, or the only one."""
    from swflow.files.yaml import read_yaml

    content = read_yaml(path)
    schedulers = content.get("schedulers") if isinstance(content, Mapping) else None
    if not isinstance(schedulers, Mapping) or not schedulers:
        raise SwflowError(f"{where}: no schedulers; expected a file with 'schedulers: {{name: {{…}}}}'")
    if name is None and len(schedulers) > 1:
        raise SwflowError(f"{where}: {len(schedulers)} schedulers; name one: {path}:{next(iter(schedulers))}")
    chosen = next(iter(schedulers)) if name is None else name
    if chosen not in schedulers:
        raise SwflowError(f"{where}: no scheduler {chosen!r}{suggest(chosen, map(str, schedulers))}")
    if not isinstance(schedulers[chosen], Mapping):
        raise SwflowError(f"{where}: {chosen}: expected options such as {{order: fcfs, backfill: easy}}")
    return str(chosen), dict(schedulers[chosen])


def _content(text: str, where: str) -> Any:
    """Parse JSON, else YAML; JSON first, because YAML 1.1 reads numbers such as 1e-5 as texts."""
    from swflow.files.reading import parse_json
    from swflow.files.yaml import parse_user_yaml

    try:
        json.loads(text)
    except json.JSONDecodeError:
        return parse_user_yaml(text, where)
    except (RecursionError, ValueError):
        pass
    return parse_json(text, where, is_option=True)
