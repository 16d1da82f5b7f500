"""Checks of the values of options, each alone: one function per kind, which all kinds of nested values use."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from itertools import groupby
from numbers import Integral, Real
from typing import Any

from swflow.errors import SwflowError, shown, suggest
from swflow.scheduling.option_kinds import LATEST, Option
from swflow.scheduling.orders.vocabulary import LOG
from swflow.values import day_or_moment


def checked(option: Option, value: Any, where: str) -> Any:
    """
    Return the value of an option as numbers, texts, tuples and dicts; errors begin with ``where``.

    Raises
    ------
    SwflowError
        If the value is not of the option's kind or beyond its limits.

    Examples
    --------
    >>> checked(Option("list", each=Option("integer", least=1)), [1, 0], "ends")
    Traceback (most recent call last):
    swflow.errors.SwflowError: ends: 0; expected at least 1
    """
    if value is None and option.optional:
        return None
    found = _CHECKS[option.kind](option, value, where)
    return option.rule(found, where) if option.rule else found


# -- single values


def _flag(option: Option, value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise SwflowError(f"{where}: {shown(value)}; expected true or false")
    return value


def _text(option: Option, value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise SwflowError(f"{where}: {shown(value)}; expected a text")
    return value


def _choice(option: Option, value: Any, where: str) -> str:
    if value not in list(option.choices):  # a list, since the value may have no hash
        yaml = " (YAML reads off, no, on and yes as false and true; quote the word)" * isinstance(value, bool)
        raise SwflowError(f"{where}: unknown value {shown(value)}{yaml}{suggest(value, option.choices)}")
    return str(value)


def _number(option: Option, value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SwflowError(f"{where}: {shown(value)}; expected a number")
    _require_bounds(option, value, where)
    return value if isinstance(value, int) else float(value)


def _integer(option: Option, value: Any, where: str) -> int:
    if isinstance(value, bool) or not _is_whole(value):
        raise SwflowError(f"{where}: {shown(value)}; expected a whole number")
    _require_bounds(option, value, where)
    return int(value)


def _require_bounds(option: Option, value: Any, where: str) -> None:
    if option.above is not None and not value > option.above:
        raise SwflowError(
            f"{where}: {shown(value)}; expected above {_bound(option.above)}, at most {_bound(option.most)}"
        )
    if not option.least <= value:
        raise SwflowError(f"{where}: {shown(value)}; expected at least {_bound(option.least)}")
    if not value <= option.most:
        raise SwflowError(f"{where}: {shown(value)}; expected at most {_bound(option.most)}")


def _bound(number: float) -> str:
    return f"{number:g}" if abs(number) > 1e15 else f"{number:,.15g}"


def _name(option: Option, value: Any, where: str) -> str:
    """Return a name or number of a user, group, queue or partition as text."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, bool) or not _is_whole(value):
        raise SwflowError(f"{where}: {shown(value)}; expected a name or a number")
    return str(int(value))


def _is_whole(value: Any) -> bool:
    """Return whether a value is a whole number: JSON does not distinguish 2 and 2.0."""
    return isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())


def _names(option: Option, value: Any, where: str) -> tuple[str, ...]:
    """Return one or several names."""
    return tuple(_name(option, one, where) for one in (value if isinstance(value, list | tuple) else [value]))


def _moment(option: Option, value: Any, where: str) -> float | str:
    """Return a time, in seconds or a day as text."""
    if isinstance(value, str | date):
        day_or_moment(str(value), where)
        return str(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SwflowError(f"{where}: {shown(value)}; expected seconds from the log's start or a day")
    seconds = value if isinstance(value, int) else float(value)
    if not abs(seconds) <= LATEST:
        raise SwflowError(f"{where}: {shown(seconds)} is not a time between {-LATEST:g} and {LATEST:g} seconds")
    return seconds


def _positions(option: Option, value: Any, where: str) -> str:
    positions_of(str(value), where)
    return str(value)


#: One position or a range, each of at most 6 digits.
RANGE = r"(\d{1,6})(?:-(\d{1,6}))?"


def positions_of(text: str, where: str) -> list[int]:
    """
    Return the positions in a list of ranges, from 1 on.

    Examples
    --------
    >>> positions_of("2,5-7", "nodes")
    [2, 5, 6, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(RANGE, part.strip())
        if ends is None or not 1 <= int(ends[1]) <= int(ends[2] or ends[1]):
            raise SwflowError(f"{where}: {shown(text)}; expected positions of nodes from 1 on, such as 5-8,11")
        found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    return found


def in_ranges(positions: Iterable[int]) -> str:
    """
    Return positions as a list of ranges.

    Examples
    --------
    >>> in_ranges([7, 2, 5, 6])
    '2,5-7'
    """
    runs = groupby(enumerate(sorted(positions)), lambda one: one[1] - one[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(run) for _, run in runs)]
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ends)


def _order(option: Option, value: Any, where: str) -> Any:
    from swflow.scheduling.orders.keys import check_order  # which imports NumPy

    if callable(value):
        return value
    if not isinstance(value, str):
        raise SwflowError(f"{where}: {shown(value)}; expected the name of an order or a formula")
    if not (where == "order" and value == LOG):
        check_order(value, where)
    return value


def _plugin(option: Option, value: Any, where: str) -> str:
    """Return a class of the user's own as ``module:Name``; an installed package can give it a name."""
    from swflow.scheduling.plugins.source import is_own, load_own, named_by_packages  # which imports slowly

    if not is_own(value):
        named = named_by_packages()
        if not isinstance(value, str) or value not in named:
            names = f", or a name that an installed package gives: {', '.join(sorted(named))}" if named else ""
            raise SwflowError(f"{where}: {shown(value)}; expected module:Name or file.py:Name{names}")
        value = named[value]
    load_own(value, where)
    return str(value)


def _mapping(option: Option, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SwflowError(f"{where}: {shown(value)}; expected names with their values")
    return dict(value)


# -- nested values


def _list(option: Option, value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise SwflowError(f"{where}: {shown(value)}; expected {option.expected}")
    return tuple(checked(_each(option), one, where) for one in value)


def _named(option: Option, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise SwflowError(f"{where}: {shown(value)}; expected names with their values")
    named: dict[str, Any] = {}
    for key, one in value.items():
        name = _name(option, key, where)
        _require_new(name, named, where)
        named[name] = one
    return {name: checked(_each(option), one, f"{where}: {name}") for name, one in named.items()}


def _require_new(name: str, known: Mapping[str, Any], where: str) -> None:
    """Raise an error if a name occurs twice, as a number and as a text."""
    if name in known:
        raise SwflowError(
            f"{where}: {name} occurs twice, as a number and as a text, or with blanks; expected one entry"
        )


def _units(option: Option, value: Any, where: str) -> dict[str, int | None]:
    """Return the units of resources in order of their names; None leaves a resource out."""
    from swflow.jobs.machine import checked_resources

    each = _each(option)
    left_out = [name for name, one in value.items() if one is None] if isinstance(value, Mapping) else []
    given = {**value, **dict.fromkeys(left_out, 0)} if left_out and each.optional else value
    units = checked_resources(given, where)
    for name, one in units.items():
        checked(each, one, f"{where}: {name}")
    return units | dict.fromkeys(left_out)


def _keys(option: Option, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise SwflowError(f"{where}: {shown(value)}; expected {option.expected or _keys_expected(option)}")
    found: dict[str, Any] = {}
    for key, one in value.items():
        name, part = _part(option, key, one, where)
        _require_new(name, found, where)
        found[name] = checked(part, one, f"{where}: {name}")
    for key in option.needed:
        if key not in found:
            raise SwflowError(f"{where}: {shown(dict(value))} lacks {key!r}")
    found = {key: one for key, one in found.items() if one is not None or key in option.needed}
    if option.either and sum(key in found for key in option.either) != 1:
        raise SwflowError(f"{where}: {shown(dict(value))}; give either {' or '.join(option.either)}")
    # In the order of the declaration, so that equal options are stored alike.
    return found if option.others else {key: found[key] for key in option.keys if key in found}


def _part(option: Option, key: Any, value: Any, where: str) -> tuple[str, Option]:
    """Return the name of a key, and the option that describes its value."""
    if option.others is None:
        if key not in option.keys:
            raise SwflowError(f"{where}: unknown key {shown(key)}{suggest(str(key), option.keys)}")
        return key, option.keys[key]
    name = _name(option, key, where)
    if isinstance(value, Mapping):
        return name, option.others
    if name not in option.keys:
        hint = suggest(name, option.keys)
        raise SwflowError(f"{where}: {name}: {shown(value)}; expected {option.expected}{hint}")
    return name, option.keys[name]


def _keys_expected(option: Option) -> str:
    if option.needed:
        return f"a mapping with the keys {', '.join((*option.needed, *option.either[:1]))}"
    return f"a mapping with keys of {', '.join(option.keys)}"


def _each(option: Option) -> Option:
    assert option.each is not None, option
    return option.each


#: The check of each kind.
_CHECKS: dict[str, Callable[[Option, Any, str], Any]] = {
    "flag": _flag, "integer": _integer, "number": _number, "text": _text, "choice": _choice, "name": _name,
    "names": _names, "moment": _moment, "positions": _positions, "order": _order, "plugin": _plugin,
    "mapping": _mapping, "list": _list, "named": _named, "units": _units, "keys": _keys,
}  # fmt: skip
