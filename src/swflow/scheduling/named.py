"""Predefined schedulers, and the parser of schedulers on the command line."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from swflow.errors import SwflowError, shown, suggest
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.options import OPTIONS
from swflow.scheduling.orders.vocabulary import LOG, MULTIFACTOR, ORDERS

#: The references of the predefined schedulers.
_LIFKA = "D. Lifka, JSSPP 1995"
_MUALEM = "A. Mu'alem, D. Feitelson, IEEE TPDS 2001"
_TSAFRIR = "D. Tsafrir, Y. Etsion, D. Feitelson, IEEE TPDS 2007"
_ORDER_SOURCES = {
    "wfp3": "W. Tang and others, CLUSTER 2009",
    "unicef": "W. Tang and others, CLUSTER 2009",
    "expansion-factor": "S. Srinivasan and others, ICPP Workshops 2002",
    **dict.fromkeys(("f1", "f2", "f3", "f4"), "D. Carastan-Santos, R. de Camargo, SC 2017, Table 3"),
    MULTIFACTOR: "Slurm, priority/multifactor",
}


class Predefined(NamedTuple):
    """A predefined scheduler: its options, what it is, and where it was published."""

    options: Unchecked
    about: str
    source: str = ""


#: The orders of predefined schedulers with EASY backfilling, and those of them without conservative backfilling.
_ORDERED = [name for name in ORDERS if name != "fcfs"]
_OF_SHARES = ("fair-share", MULTIFACTOR)

#: The predefined schedulers, for the command line and for configs: each name means one scheduler everywhere.
PREDEFINED: dict[str, Predefined] = {
    LOG: Predefined({"order": LOG}, "the recorded start times"),
    "fcfs": Predefined({"order": "fcfs"}, "first come, first served, without backfilling"),
    "easy": Predefined({"backfill": "easy"}, "first come, first served, with EASY backfilling", _LIFKA),
    "conservative": Predefined(
        {"backfill": "conservative"}, "first come, first served, with conservative backfilling", _MUALEM
    ),
    "sjbf": Predefined(
        {"backfill": "easy", "backfill_order": "sjf"}, "easy that backfills the shortest job first", _TSAFRIR
    ),
    **{
        name: Predefined(
            {"order": name, "backfill": "easy"}, f"order {name}, with EASY backfilling", _ORDER_SOURCES.get(name, "")
        )
        for name in _ORDERED
    },
    **{
        f"{name}-conservative": Predefined(
            {"order": name, "backfill": "conservative"}, f"order {name}, with conservative backfilling"
        )
        for name in _ORDERED
        if name not in _OF_SHARES
    },
}

#: The options of the predefined schedulers.
KNOWN: dict[str, Unchecked] = {name: one.options for name, one in PREDEFINED.items()}


def redefined(schedulers: Mapping[str, Unchecked]) -> dict[str, str]:
    """
    Return the schedulers of a config that have the name of a predefined one and other options, with these options.

    An order is equal to its formula.

    Examples
    --------
    >>> redefined({"saf": {"order": "estimate * processors", "backfill": "easy"}, "sjf": {"order": "sjf"}})
    {'sjf': "backfill 'none' instead of 'easy'"}
    """
    found = {}
    for name, options in schedulers.items():
        if name in KNOWN and isinstance(options, Mapping):
            mine, known = _comparable(options), _comparable(KNOWN[name])
            differing = [key for key, value in mine.items() if value != known.get(key)]
            if differing:
                found[name] = ", ".join(
                    f"{key} {shown(mine[key])}{f' instead of {shown(known[key])}' if known.get(key) else ''}"
                    for key in differing
                )
    return found


def _comparable(options: Unchecked) -> dict[str, Any]:
    """Return all options of a scheduler, with named orders as formulas."""
    defaults = {key: option.default for key, option in OPTIONS.items()}
    full = defaults | {key: value for key, value in options.items() if key != "title"}
    for key in ("order", "backfill_order"):
        if isinstance(full.get(key), str) and full[key] in ORDERS:
            full[key] = ORDERS[full[key]].formula
    return full


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
