"""Users, groups, partitions and QOS that the options of a scheduler name, and those that a log has."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.ownership import COLUMNS, NO_JOB, Names

#: Several of each kind, for messages.
PLURALS = {"user": "users", "group": "groups", "partition": "partitions", "qos": "QOS"}

#: Names of a kind that messages show.
_SHOWN = 4


def require_some(names: Names, options: Unchecked) -> None:
    """Raise an error if the options name users, groups, partitions or QOS, and none of one kind has jobs."""
    apart, accounts = named_in({**options, "accounts": None}), options.get("accounts") or {}
    for kind, named in named_in(options).items():
        known = names.known(kind)
        # The accounts of a site say nothing of a log without names.
        if not known:
            named = [name for name in apart[kind] if kind != "group" or name not in accounts]
        if kind != "qos" and kind not in names.recorded:
            continue  # where a limit or an order needs it, the error is another one
        # Numbers do not say which cluster they belong to.
        if not named or any(name.isdecimal() or name in known for name in named):
            continue
        has = f"the log has {shortened(known)}" if known else "the log has no names, give numbers"
        hint = suggest(named[0], known) if len(named) == 1 and known else ""
        raise SwflowError(
            f"{names.log} has no {kind} {named[0]!r}{hint}; the scheduler names {shortened(named)}, and "
            f"{has}; expected the {PLURALS[kind]} of the same cluster"
        )


def without_jobs(names: Names, options: Unchecked) -> dict[str, list[str]]:
    """Return the names in the options that no job has, by kind; an account has the jobs of those below it."""
    found: dict[str, list[str]] = {}
    above = {str(name): one.get("parent") for name, one in (options.get("accounts") or {}).items()}
    for kind, named in named_in(options).items():
        having = {name for name in named if names.number_of(kind, name) != NO_JOB}
        if kind == "group":
            having |= set().union(*(_line(name, above) for name in having))
        absent = [name for name in named if name not in having]
        found |= {kind: absent} if absent else {}
    return found


def _line(name: str, above: Mapping[str, Any]) -> set[str]:
    """Return an account and all accounts above it."""
    found = set[str]()
    while name not in found:
        found.add(name)
        name = str(above.get(name) or name)
    return found


def absent_in_words(absent: Mapping[str, Collection[str]]) -> str:
    """
    Return the names without jobs as a sentence.

    Examples
    --------
    >>> absent_in_words({"partition": ["debug"], "user": ["bob", "eve"]})
    'Names without jobs in this log have no effect: partition debug; 2 users (bob, eve).'
    """
    parts = [
        f"{kind if kind != 'qos' else 'QOS'} {next(iter(names))}"
        if len(names) == 1
        else f"{len(names):,} {PLURALS[kind]} ({shortened(names)})"
        for kind, names in absent.items()
    ]
    return f"Names without jobs in this log have no effect: {'; '.join(parts)}."


def shortened(names: Iterable[str]) -> str:
    """
    Return the first names.

    Examples
    --------
    >>> shortened("abcdef")
    'a, b, c, d, …'
    """
    found = list(names)
    return ", ".join(found[:_SHOWN]) + ", …" * (len(found) > _SHOWN)


def named_in(options: Unchecked) -> dict[str, list[str]]:
    """
    Return the users, groups, partitions and QOS that options name, each once.

    Examples
    --------
    >>> options = {"limits": {"user": {"jobs": 3, "bob": {"jobs": 9}}}, "accounts": {"bio": {"users": {"ada": 1}}}}
    >>> named_in(options) | {"partition": 0, "qos": 0}
    {'user': ['bob', 'ada'], 'group': ['bio'], 'partition': 0, 'qos': 0}
    """
    found: dict[str, list[str]] = {kind: [] for kind in COLUMNS}
    for kind, names in _mentions(options):
        found[kind] += map(str, names)
    return {kind: list(dict.fromkeys(names)) for kind, names in found.items()}


def _mentions(options: Unchecked) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yield the kinds of names in options, with the names."""
    parts: list[Any] = [options, *(options.get("clusters") or ())]
    for part in parts:
        for kind, limits in (part.get("limits") or {}).items():
            yield kind, (name for name, limit in limits.items() if isinstance(limit, Mapping))
            for limit in limits.values() if kind == "group" else ():
                yield "user", (limit.get("users") or ()) if isinstance(limit, Mapping) else ()
    for part in (*(options.get("clusters") or ()), *(options.get("nodes") or ())):
        names = part.get("partition")
        yield "partition", names if isinstance(names, list | tuple) else [] if names is None else [names]
    for kind in ("user", "group"):
        yield kind, options.get(f"{kind}_shares") or ()
    accounts = options.get("accounts") or {}
    yield "group", accounts
    for account in accounts.values():
        yield "user", account.get("users") or ()
    priority, preemption = options.get("priority") or {}, options.get("preemption") or {}
    for kind in ("partition", "qos"):
        yield kind, priority.get(f"{kind}_factors") or ()
        yield kind, preemption.get(kind) or ()
    yield "qos", preemption.get("qos_priorities") or ()
