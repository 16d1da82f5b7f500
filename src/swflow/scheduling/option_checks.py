"""Checks of the values of scheduler options, each alone; nested options have a check of their own."""

import contextlib
import graphlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from itertools import groupby
from numbers import Integral, Real
from typing import Any, cast

from swflow.errors import SwflowError, require_known, shown, suggest
from swflow.jobs.machine import checked_resources
from swflow.scheduling.options import (
    CLUSTER_OPTIONS,
    LATEST,
    LIMITED,
    LIMITS,
    MOST_NODES,
    MOST_UNITS,
    NODE_OPTIONS,
    OF_WEIGHT,
    OPTIONS,
    PREEMPTION,
    PRIORITY,
    SCHEDULER_PARAMETERS,
    SHARE,
    USAGE,
    USER_LIMITS,
    USERS,
    WINDOW_OPTIONS,
    WITH_USER_LIMITS,
    Account,
    Cluster,
    Limits,
    NodeGroup,
    Option,
    Preemption,
    Priority,
    Unavailable,
    Unchecked,
)
from swflow.scheduling.orders.vocabulary import LOG
from swflow.scheduling.plugins.source import is_own, load_own, named_by_packages

# -- checks: the value of an option alone


def checked(name: str, value: Any, where: str | None = None) -> Any:
    """
    Return the value of an option as numbers, texts, tuples and dicts; errors call the option ``where``.

    Raises
    ------
    SwflowError
        If the value is not of the option's type or beyond its limits.
    """
    option = OPTIONS[name]
    if value is None and option.optional:
        return None
    return _checked(option, value, where or name)


#: The Python types of the simple kinds, and what errors call them.
_SIMPLE: dict[str, tuple[Any, str]] = {
    "text": (str, "a text"), "flag": (bool, "true or false"), "integer": (Integral, "a whole number"),
    "number": (Real, "a number"),
}  # fmt: skip


def _checked(option: Option, value: Any, where: str) -> Any:
    """Return a value in its plain form, if it is of the option's kind and within its limits."""
    match option.kind:
        case "choice":
            if value not in list(option.choices):  # a list, since the value may have no hash
                yaml = " (YAML reads off, no, on and yes as false and true; quote the word)" * isinstance(value, bool)
                raise SwflowError(f"{where}: unknown value {shown(value)}{yaml}{suggest(value, option.choices)}")
            return value
        case "order":
            return _order(value, where)
        case "integers":
            return tuple(_checked(Option("integer", ""), one, where) for one in _listed(value, where, "whole numbers"))
        case "windows":
            return tuple(_window(item, where) for item in _listed(value, where, "windows"))
        case "clusters":
            return tuple(_cluster(item, where) for item in _listed(value, where, "clusters"))
        case "nodes":
            return _nodes(_listed(value, where, "groups of nodes"), where)
        case "plugin":
            return _plugin(value, where)
        case "mapping":
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise SwflowError(f"{where}: {shown(value)}; expected names with their values")
            return dict(value)
        case "weights":
            number = replace(option, kind="number")
            return {name: _checked(number, one, f"{where}: {name}") for name, one in _named(value, where).items()}
        case "names":
            one = replace(option, kind="choice")
            return {name: _checked(one, value, f"{where}: {name}") for name, value in _named(value, where).items()}
        case "priority":
            return _priority(value, where)
        case "preemption":
            return _preemption(value, where)
        case "parameters":
            _require_keys(where, value, SCHEDULER_PARAMETERS, ())
            return {
                name: _checked(one, value[name], f"{where}: {name}")
                for name, one in SCHEDULER_PARAMETERS.items()
                if value.get(name) is not None
            }
        case "limits":
            return _limits(value, where)
        case "accounts":
            return _accounts(value, where)
        case "resources":
            return _resources(value, where)
    kind, expected = _SIMPLE[option.kind]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise SwflowError(f"{where}: {shown(value)}; expected {expected}")
    if kind is Integral or kind is Real:
        if option.above is not None and not value > option.above:
            raise SwflowError(f"{where}: {shown(value)}; expected above {option.above:g}, at most {option.most:g}")
        if not option.least <= value:
            raise SwflowError(f"{where}: {shown(value)}; expected at least {option.least:g}")
        if not value <= option.most or not abs(value) < _LARGEST:
            raise SwflowError(f"{where}: {shown(value)}; expected at most {option.most:g}")
        return int(value) if kind is Integral or isinstance(value, int) else float(value)
    return value


#: Larger numbers may be infinite, or integers that no float holds.
_LARGEST = 1e300


def _whole(value: Any, where: str, least: int = 1) -> int:
    """Return a whole number of at least 1, or ``least``, whose sums stay exact in 64 bits."""
    return int(_checked(Option("integer", "", least=least, most=1e15), value, where))


def _order(value: Any, where: str) -> Any:
    from swflow.scheduling.orders.keys import check_order  # which imports NumPy

    if callable(value):
        return value
    if not isinstance(value, str):
        raise SwflowError(f"{where}: {shown(value)}; expected the name of an order or a formula")
    if not (where == "order" and value == LOG):
        check_order(value, where)
    return value


def _plugin(value: Any, where: str) -> str:
    """Return a class of the user's own as ``module:Name``; an installed package can give it a name."""
    if not is_own(value):
        named = named_by_packages()
        if not isinstance(value, str) or value not in named:
            names = f", or a name that an installed package gives: {', '.join(sorted(named))}" if named else ""
            raise SwflowError(f"{where}: {shown(value)}; expected module:Name or file.py:Name{names}")
        value = named[value]
    load_own(value, where)
    return str(value)


def _window(window: Any, where: str) -> Unavailable:
    of_nodes = isinstance(window, Mapping) and "nodes" in window
    _require_keys(where, window, WINDOW_OPTIONS, ("from", "until", "nodes" if of_nodes else "processors"))
    if of_nodes and "processors" in window:
        raise SwflowError(f"{where}: {shown(window)}; expected processors or nodes, and not both")
    begin, begins = _moment(window["from"], f"{where}: from")
    until = None
    if window["until"] is not None:
        until, ends = _moment(window["until"], f"{where}: until")
        # Seconds and a day, or days with and without a time zone, compare only when the log's start is known.
        with contextlib.suppress(TypeError):
            require_window(begins, ends, window)
    if of_nodes:
        nodes = str(window["nodes"])
        positions_of(nodes, f"{where}: nodes")
        return {"from": begin, "until": until, "nodes": nodes}
    return {"from": begin, "until": until, "processors": _whole(window["processors"], f"{where}: processors")}


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
        ends = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
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


def require_window(begin: Any, until: Any, window: Unavailable) -> None:
    """Raise an error unless a window ends after its beginning."""
    if not until > begin:
        raise SwflowError(
            f"unavailable: the window from {window['from']} until {window['until']} is empty; "
            "let it end after its beginning, or never: until: null"
        )


def _moment(value: Any, where: str) -> tuple[float | str, Any]:
    """Return a time, in seconds or a day as text; and in a form that compares with another one of its kind."""
    from swflow.values import day_or_moment

    if isinstance(value, date):
        value = str(value)
    if isinstance(value, str):
        day = day_or_moment(value, where)
        return value, day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SwflowError(f"{where}: {shown(value)}; expected seconds from the log's start or a day")
    seconds = value if isinstance(value, int) else float(value)
    if not abs(seconds) <= LATEST:
        raise SwflowError(f"{where}: {shown(seconds)} is not a time between {-LATEST:g} and {LATEST:g} seconds")
    return seconds, seconds


def _cluster(cluster: Any, where: str) -> Cluster:
    _require_keys(where, cluster, CLUSTER_OPTIONS, ("processors",))
    own = {
        name: checked(name, cluster[name], f"{where}: {name}")
        for name in CLUSTER_OPTIONS
        if name in OPTIONS and cluster.get(name) is not None
    }
    if cluster.get("partition") is not None:
        own["partition"] = _partitions(cluster["partition"], where)
    if cluster.get("resources"):
        own["resources"] = checked_resources(cluster["resources"], f"{where}: resources")
    return cast(Cluster, {"processors": _whole(cluster["processors"], f"{where}: processors")} | own)


def _partitions(value: Any, where: str) -> tuple[str, ...]:
    """Return the names of one or several partitions."""
    return _names(value, f"{where}: partition")


def _names(value: Any, where: str) -> tuple[str, ...]:
    """Return one or several names."""
    return tuple(_name(one, where) for one in (value if isinstance(value, list | tuple) else [value]))


def _nodes(groups: Iterable[Any], where: str) -> tuple[NodeGroup, ...]:
    found: list[NodeGroup] = []
    for group in groups:
        _require_keys(where, group, NODE_OPTIONS, ("count", "processors"))
        one: NodeGroup = {
            "count": _whole(group["count"], f"{where}: count"),
            "processors": _whole(group["processors"], f"{where}: processors"),
        }
        if group.get("weight") is not None:
            one["weight"] = _checked(Option("integer", "", least=0, most=2**32), group["weight"], f"{where}: weight")
        if group.get("features"):
            one["features"] = _names(group["features"], f"{where}: features")
        if group.get("resources"):
            one["resources"] = checked_resources(group["resources"], f"{where}: resources")
            if max(one["resources"].values()) > MOST_UNITS:
                raise SwflowError(f"{where}: resources: {one['resources']}; expected at most 2^31 units of a node")
        if group.get("partition") is not None:
            one["partition"] = _partitions(group["partition"], where)
        found.append(one)
    total = sum(group["count"] for group in found)
    if total > MOST_NODES:
        raise SwflowError(f"{where}: {total:,} nodes; expected at most {MOST_NODES:,}")
    return tuple(found)


def _name(value: Any, where: str) -> str:
    """Return a name or number of a user, group, queue or partition as text."""
    if isinstance(value, bool) or not isinstance(value, str | Integral) or not str(value).strip():
        raise SwflowError(f"{where}: {shown(value)}; expected a name or a number")
    return str(value).strip()


def _named(value: Any, where: str) -> Unchecked:
    """Return a mapping whose keys are names or numbers."""
    if not isinstance(value, Mapping):
        raise SwflowError(f"{where}: {shown(value)}; expected names with their values")
    return {_name(key, where): content for key, content in value.items()}


def _priority(value: Any, where: str) -> Priority:
    _require_keys(where, value, PRIORITY, ())
    found = {
        name: _checked(option, value[name], f"{where}: {name}")
        for name, option in PRIORITY.items()
        if value.get(name) is not None
    }
    for weight in ("partition", "qos"):
        factors = f"{weight}_factors"
        if bool(found.get(weight)) != bool(found.get(factors) and max(found[factors].values()) > 0):
            raise SwflowError(f"{where}: {weight} is a weight, and {factors} says of what; give both, or none")
    if 0 < found.get("calc_period", 0) < 1:
        raise SwflowError(f"{where}: calc_period: {shown(found['calc_period'])}; expected 0, or at least 1 second")
    for name, weight in OF_WEIGHT.items():
        if found.get(name) and not found.get(weight):
            raise SwflowError(f"{where}: {name}: {weight} is 0; set it, or leave {name} out")
    return cast(Priority, found)


def _preemption(value: Any, where: str) -> Preemption:
    """Return who preempts whom, by QOS or by partition."""
    _require_keys(where, value, ("qos", *PREEMPTION), ())
    found: dict[str, Any] = {
        name: _checked(option, value[name], f"{where}: {name}")
        for name, option in PREEMPTION.items()
        if value.get(name) is not None
    }
    for key in ("qos_priorities", "partition"):
        for name, number in found.get(key, {}).items():
            if number != int(number):
                raise SwflowError(f"{where}: {key}: {name}: {shown(number)}; expected a whole number")
    if (value.get("qos") is None) == ("partition" not in found):
        raise SwflowError(f"{where}: {shown(dict(value))}; give either qos or partition")
    if value.get("qos") is not None:
        named = _named(value["qos"], f"{where}: qos")
        found["qos"] = {name: _names(others, f"{where}: qos: {name}") for name, others in named.items()}
        try:
            graphlib.TopologicalSorter(found["qos"]).prepare()
        except graphlib.CycleError as error:
            raise SwflowError(f"{where}: qos: {' preempts '.join(error.args[1][::-1])}; correct it") from None
    elif "qos_priorities" in found:
        raise SwflowError(f"{where}: qos_priorities: only preemption by qos uses them; leave them out")
    return cast(Preemption, found)


def _limits(value: Any, where: str) -> Limits:
    """Return the limits of each kind: jobs and processors of all, and by name."""
    _require_keys(where, value, LIMITED, ())
    found: dict[str, dict[str, int | Mapping[str, int]]] = {kind: {} for kind in LIMITED if value.get(kind) is not None}
    for kind, of_kind in found.items():
        known = LIMITS + USER_LIMITS if kind in WITH_USER_LIMITS else LIMITS
        if not isinstance(value[kind], Mapping):
            raise SwflowError(
                f"{where}: {kind}: {shown(value[kind])}; expected limits such as {{jobs: 10, processors: 64}}"
            )
        for name, limit in _named(value[kind], f"{where}: {kind}").items():
            here = f"{where}: {kind}: {name}"
            if isinstance(limit, Mapping):
                _require_keys(here, limit, (*known, USERS) if kind == "group" else known, ())
                own: dict[str, Any] = {
                    what: _limit(most, f"{here}: {what}") for what, most in limit.items() if what != USERS
                }
                if USERS in limit:
                    own[USERS] = _limits_of_users(limit[USERS], f"{here}: {USERS}")
                of_kind[name] = own
            elif name in known:
                of_kind[name] = _limit(limit, here)
            else:
                raise SwflowError(
                    f"{here}: {shown(limit)}; expected limits such as {{jobs: 10, processors: 64}}"
                    f"{suggest(name, known)}"
                )
    return found


def _limits_of_users(value: Any, where: str) -> dict[str, dict[str, int]]:
    """Return the limits of named users in a group."""
    found = {}
    for name, limit in _named(value, where).items():
        _require_keys(f"{where}: {name}", limit, LIMITS, ())
        found[name] = {what: _limit(most, f"{where}: {name}: {what}") for what, most in limit.items()}
    return found


def _limit(value: Any, where: str) -> int:
    """Return a limit; 0 allows no job."""
    return _whole(value, where, least=0)


def _accounts(value: Any, where: str) -> dict[str, Account]:
    """Return the keys of each account; parents that have no entry are at the top."""
    found: dict[str, Account] = {}
    for name, account in _named(value, where).items():
        _require_keys(f"{where}: {name}", account, Account.__annotations__, ())
        parent, share, here = account.get("parent"), account.get("share"), f"{where}: {name}"
        one: Account = {} if parent is None else {"parent": _name(parent, f"{here}: parent")}
        if share is not None:
            one["share"] = _checked(SHARE, share, f"{here}: share")
        if account.get("users") is not None:
            one["users"] = _checked(replace(SHARE, kind="weights"), account["users"], f"{here}: users")
        if account.get("usage") is not None:
            one["usage"] = _checked(USAGE, account["usage"], f"{here}: usage")
        found[name] = one
    for name in found:
        if name in accounts_above(found, name)[1:]:
            raise SwflowError(f"{where}: {name}: it is above itself; correct a parent")
    return found


def accounts_above(accounts: Mapping[str, Account], name: str) -> list[str]:
    """
    Return the name of an account and of those above it, from below; a circle ends where it closes.

    Examples
    --------
    >>> accounts_above({"bio": {"parent": "science"}}, "bio")
    ['bio', 'science']
    """
    found = [name]
    while (above := accounts.get(found[-1], {}).get("parent")) is not None:
        found.append(above)
        if above in found[:-1]:
            break
    return found


def _resources(value: Any, where: str) -> dict[str, int | None]:
    """Return the units of counted resources by name; None leaves a resource of the workload's machine out."""
    left_out = [name for name, units in value.items() if units is None] if isinstance(value, Mapping) else []
    units = checked_resources({**value, **dict.fromkeys(left_out, 0)} if left_out else value, where)
    return units | dict.fromkeys(left_out)


def _listed(value: Any, where: str, what: str) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        raise SwflowError(f"{where}: {shown(value)}; expected a list of {what}")
    return value


def _require_keys(where: str, content: Any, known: Collection[str], needed: Iterable[str]) -> None:
    if not isinstance(content, Mapping):
        raise SwflowError(f"{where}: each must have the keys {', '.join(needed)}, not be {shown(content)}")
    require_known(content, known, where)
    for key in needed:
        if key not in content:
            raise SwflowError(f"{where}: {shown(dict(content))} lacks {key!r}")
