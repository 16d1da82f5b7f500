"""Schedulers with changed options: another order, other backfilling, limits or shares."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.scheduling.nested_options import LIMITED, LIMITS, USER_LIMITS, WITH_USER_LIMITS, Limits
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.keys import mentioned
from swflow.scheduling.orders.vocabulary import MULTIFACTOR, OF_TREE, OF_USAGE


def merged(options: Unchecked, changes: Unchecked) -> dict[str, Any]:
    """
    Return options with changes: mappings are merged at every depth, and other values replaced; None removes one.

    Options without effect after the changes are left out. On nodes, backfill ``none`` makes no backfill cycles.

    Examples
    --------
    >>> site = {"scheduler_parameters": {"bf_interval": 30, "bf_window": 60}, "limits": {"user": {"bob": {"jobs": 2}}}}
    >>> merged(site, {"scheduler_parameters": {"bf_window": 4320}})["scheduler_parameters"]
    {'bf_interval': 30, 'bf_window': 4320}
    >>> merged(site, {"limits": {"user": {"jobs": 9}}})["limits"]
    {'user': {'bob': {'jobs': 2}, 'jobs': 9}}
    """
    if options.get("nodes") and changes.get("backfill") == "none":
        changes = {**changes, "backfill": "slurm", "scheduler_parameters": {"bf_interval": -1}}
    found = _deeply(options, changes)
    used = mentioned(found.get("order") or "fcfs")
    has_accounts = uses_accounts(found) if found.get("order") == MULTIFACTOR else bool(used & OF_TREE)
    if found.get("order") != MULTIFACTOR and "priority" not in changes:
        found.pop("priority", None)
    if found.get("order") != MULTIFACTOR and "half_life" not in changes and not used & OF_USAGE:
        found.pop("half_life", None)
    if "accounts" not in changes and found.get("accounts") and not has_accounts:
        above = {name: {"parent": one["parent"]} if "parent" in one else {} for name, one in found["accounts"].items()}
        found["accounts"] = above
        if "group" not in (found.get("limits") or {}):
            del found["accounts"]
    return found


def _deeply(options: Unchecked, changes: Unchecked, removes: bool = True) -> dict[str, Any]:
    """Return mappings with changes, merged at every depth; None removes a value, or stays for a later change."""
    found = dict(options)
    for name, value in changes.items():
        if value is None and removes:
            found.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(found.get(name), Mapping):
            found[name] = _deeply(found[name], value, removes)
        else:
            found[name] = value
    return found


def _require_removable(limits: Unchecked, changes: Unchecked, text: str) -> None:
    """Raise `SwflowError` if changes remove a limit that does not exist."""
    for name, value in changes.items():
        if isinstance(value, Mapping):
            _require_removable(limits.get(name) or {}, value, text)
        elif value is None and name not in limits:
            raise SwflowError(f"--{text}: the scheduler has no such limit; leave it out")


def with_policies(
    schedulers: Mapping[str, Unchecked],
    *,
    order: Iterable[str] = (),
    backfill: Iterable[str] = (),
    limit: Iterable[str] = (),
    share: Iterable[str] = (),
) -> dict[str, Unchecked]:
    """
    Return the schedulers, and the first one with every combination of other orders, backfilling, limits and shares.

    Examples
    --------
    >>> found = with_policies({"site": {"backfill": "easy"}}, order=["sjf"], limit=["user:processors=64"])
    >>> list(found)
    ['site', 'site, limit user:processors=64', 'site, order sjf', 'site, order sjf, limit user:processors=64']
    >>> found["site, limit user:processors=64"]
    {'backfill': 'easy', 'limits': {'user': {'processors': 64}}}
    """
    first, options = next(iter(schedulers.items()))
    choices: list[list[tuple[str, Unchecked]]] = [
        [("", {}), *((f"order {text}", {"order": text}) for text in order)],
        [("", {}), *((f"backfill {text}", {"backfill": text}) for text in backfill)],
        [("", {}), *((f"limit {text}", {"limits": read_limits(text)}) for text in limit)],
        [("", {}), *((f"share {text}", read_shares(text)) for text in share)],
    ]
    found = dict(schedulers)
    for combination in itertools.product(*choices):
        changes: dict[str, Any] = {}
        for text, change in combination:
            _require_removable(options.get("limits") or {}, change.get("limits") or {}, text)
            changes = _deeply(changes, change, removes=False)
        shared = [kind for kind in ("group", "user") if f"{kind}_shares" in changes]
        if shared and uses_accounts(options) and "order" not in changes:
            changes["accounts"] = _accounts_with(options["accounts"], changes)
        elif "order" not in changes and not _shares_in(options).issuperset(shared):
            changes["order"] = _BY_SHARES[tuple(shared)]
        if changes:
            name = ", ".join([first, *(text for text, _ in combination if text)])
            found[name] = merged(options, changes)
    return found


#: The order by fair share of groups, users, or both.
_BY_SHARES = {
    ("group",): "group_usage / group_share",
    ("user",): "fair-share",
    ("group", "user"): "group_usage / group_share + user_usage / user_share",
}


def _shares_in(options: Unchecked) -> set[str]:
    """Return whose shares the order of a scheduler depends on: those of users, of groups, or of both."""
    order, priority = options.get("order"), options.get("priority") or {}
    if order == MULTIFACTOR:
        return {priority.get("fair_share_of", "user")} if not priority or "fair_share" in priority else set()
    return {kind for kind in ("group", "user") if f"{kind}_share" in mentioned(order or "fcfs")}


def uses_accounts(options: Unchecked) -> bool:
    """Return whether the order of a scheduler depends on the shares in its accounts."""
    priority = options.get("priority") or {}
    return bool(options.get("accounts")) and priority.get("fair_share_of") in ("association", "fair-tree")


def _accounts_with(accounts: Unchecked, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of accounts that give users and groups the shares, which are removed from ``changes``."""
    found: dict[str, Any] = {}
    for name, share in changes.pop("group_shares", {}).items():
        if name not in accounts:
            raise SwflowError(f"--share: no group {name!r} in the accounts of the site{suggest(name, accounts)}")
        found.setdefault(name, {})["share"] = share
    for user, share in changes.pop("user_shares", {}).items():
        of_user = [name for name, one in accounts.items() if user in (one.get("users") or ())]
        if not of_user:
            known = sorted({name for one in accounts.values() for name in one.get("users") or ()})
            raise SwflowError(f"--share: no user {user!r} in the accounts of the site{suggest(user, known)}")
        for name in of_user:
            found.setdefault(name, {}).setdefault("users", {})[user] = share
    return found


def read_limits(text: str) -> Limits:
    """
    Parse limits of the running jobs of users, groups, partitions or QOS, separated by commas; ``none`` removes one.

    Examples
    --------
    >>> read_limits("user:processors=512,user:alice:jobs=2,qos:long:user_gpus=none")
    {'user': {'processors': 512, 'alice': {'jobs': 2}}, 'qos': {'long': {'user_gpus': None}}}
    """
    found: dict[str, dict[str, Any]] = {}
    for part in text.split(","):
        key, _, most = part.strip().rpartition("=")
        kind, *names, what = key.split(":") if ":" in key else (key, "")
        possible = LIMITS + USER_LIMITS * (kind in WITH_USER_LIMITS)
        if kind not in LIMITED or len(names) > 1 or not what or not most:
            problem = f"expected KIND:LIMIT=NUMBER or KIND:NAME:LIMIT=NUMBER; KIND is one of {', '.join(LIMITED)}, "
            problem += "such as user:jobs=10 or qos:normal:user_processors=512"
        elif what not in possible:
            problem = f"unknown limit {what!r}; a {kind} has {', '.join(possible)}"
        elif not most.isdecimal() and most != "none":
            problem = f"{most!r} is no limit; expected a whole number from 0 on, or none for no limit"
        else:
            of_kind = found.setdefault(kind, {})
            (of_kind.setdefault(names[0], {}) if names else of_kind)[what] = int(most) if most != "none" else None
            continue
        raise SwflowError(f"--limit: {part!r}: {problem}")
    return found


def read_shares(text: str) -> dict[str, dict[str, float]]:
    """
    Parse the shares of users or groups in fair share, separated by commas.

    Examples
    --------
    >>> read_shares("group:physics=3,group:chemistry=1")
    {'group_shares': {'physics': 3.0, 'chemistry': 1.0}}
    """
    found: dict[str, dict[str, float]] = {}
    for part in text.split(","):
        account, _, share = part.strip().rpartition("=")
        kind, _, name = account.partition(":")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if kind not in ("user", "group") or not name or not value > 0:
            raise SwflowError(
                f"--share: {part!r}; expected user:NAME=SHARE or group:NAME=SHARE, such as group:physics=3"
            )
        found.setdefault(f"{kind}_shares", {})[name] = value
    return found
