"""The scheduler that represents a site, and the schedulers of the command line that inherit from it."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.table import Workload
from swflow.log.queues import priorities_of, queues_of
from swflow.log.site import (
    RESOURCES,
    SITE,
    SIZES,
    Partition,
    partitions_of,
    pool_of,
    share_nodes,
    site_options,
    with_resources,
)
from swflow.scheduling.named import KNOWN, read_scheduler
from swflow.scheduling.nested_options import LIMITED, LIMITS, USER_LIMITS, WITH_USER_LIMITS, Limits
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.keys import mentioned
from swflow.scheduling.orders.names import named_in, shortened, without_jobs
from swflow.scheduling.orders.ownership import Names
from swflow.scheduling.orders.vocabulary import LOG, MULTIFACTOR, OF_TREE, OF_USAGE, ORDERS
from swflow.studies.site_config import SiteConfig
from swflow.workload.clean import guess_of, is_as_recorded

#: Name of the scheduler that serves queues or QOS in the order of their recorded waits.
SITE_QOS = f"{SITE}-qos"


@dataclass(frozen=True)
class SiteModel:
    """
    What a log tells about its site.

    ``options`` are those of the scheduler that represents the site. ``guessed_resources`` are resources besides
    processors whose units are the peak use, of one of several partitions by ``PARTITION:NAME``. With a ``config``, the
    options are its options, and ``remarks`` are sentences on what it and the log state differently.
    """

    workload: Workload
    partitions: Sequence[Partition] = ()
    options: Unchecked = field(default_factory=dict)
    guessed_resources: Mapping[str, int] = field(default_factory=dict)
    config: Path | None = None
    remarks: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        workload: Workload,
        sizes: Mapping[str, int] | None = None,
        resources: Mapping[str, int] | None = None,
        config: SiteConfig | None = None,
    ) -> "SiteModel":
        """
        Describe the site of a workload.

        ``sizes`` maps a partition to its processors; default: the size that the log states, or else the peak use.
        ``resources`` are the units of resources besides processors, as in `swflow.log.site.with_resources`; default:
        those of the workload's machine if partitions share it, or else the peak use. A ``config`` describes the machine
        and the scheduler.
        """
        if config is not None:
            workload = config.on_machine(workload)
            sizes = {**config.sizes_of(workload), **(sizes or {})}
        header, jobs = workload.header, workload.jobs
        if not is_as_recorded(workload):  # the sizes and the waits do not belong to these jobs
            header = header.without(SIZES)
            jobs = jobs.drop("wait_time", strict=False)
        stated = None if guess_of(workload) else workload.machine.processors
        own = {name: units for name, units in workload.machine.resources.items() if name in RESOURCES}
        found = described(partitions_of(jobs, header, sizes), jobs, stated, resources, own)
        partitions, options, units, guessed = found
        if config is not None:
            options, remarks = config.options_for(workload)
            return cls(workload, partitions, options, {}, config.path, [*config.contradictions(workload), *remarks])
        return cls(workload, partitions, options, {name: units[name] for name in guessed})

    @cached_property
    def priorities(self) -> Unchecked | None:
        """The priorities of queues or QOS that the recorded waits suggest, or None."""
        if not is_as_recorded(self.workload):
            return None
        return priorities_of(queues_of(self.workload.jobs, self.workload.header))

    @property
    def doubts(self) -> list[str]:
        """Sentences on stated sizes that are below the recorded use."""
        doubts = [] if self.config else [doubt for partition in self.partitions for doubt in partition.doubts]
        return [*self.remarks, *doubts]

    def scheduler(self, text: str) -> tuple[str, Unchecked]:
        """
        Return the name and the options of a scheduler of the command line.

        ``site`` represents the site. ``site-sjf``, or ``'site-mine: {limits: …}'``, is the site with the named options
        changed: it keeps partitions, resources, limits and backfilling. ``site-fcfs`` is the site without backfilling,
        and ``site-qos`` serves QOS in the order of their recorded waits. Other texts are as for
        `swflow.scheduling.named.read_scheduler`; they inherit nothing.

        Examples
        --------
        >>> import polars as pl
        >>> from swflow.jobs.machine import Machine
        >>> tiny = Workload(pl.DataFrame({"job_id": [1]}), Machine.of(4), "tiny")
        >>> site = SiteModel(tiny, options={"order": "fcfs", "backfill": "easy", "resources": {"gpus": 8}})
        >>> site.scheduler("site-sjf")
        ('site-sjf', {'order': 'sjf', 'backfill': 'easy', 'resources': {'gpus': 8}})
        >>> site.scheduler("site-capped: {limits: {user: {jobs: 4}}}")[1]["resources"]
        {'gpus': 8}
        """
        if text == SITE:
            return SITE, dict(self.options)
        if text == SITE_QOS:
            if self.priorities is None:
                raise SwflowError(
                    f"--scheduler {SITE_QOS}: the recorded waits show no priorities of queues or QOS; expected a log "
                    "with several; state them: 'name: {order: slurm-multifactor, backfill: easy, priority: {qos: 1, "
                    "…}}'"
                )
            return SITE_QOS, {**self.options, "order": MULTIFACTOR, "priority": dict(self.priorities)}
        policy = text.removeprefix(f"{SITE}-")
        if policy != text and policy in KNOWN and policy != LOG:
            own: Unchecked = {"order": policy} if policy in ORDERS else KNOWN[policy]
            return text, merged(self.options, {**own, "backfill": "none"} if policy == "fcfs" else own)
        name, options = read_scheduler(text)
        return (name, merged(self.options, options)) if name.startswith(f"{SITE}-") else (name, options)

    def require_names(self, limits: Iterable[str], shares: Iterable[str]) -> None:
        """
        Raise `SwflowError` if limits or shares of the command line name an owner without jobs in the log.

        `with_policies` checks shares in the accounts of the site.
        """
        names, accounts = Names(self.workload), self.options.get("accounts") or {}
        asked: list[tuple[str, str, Unchecked]]
        asked = [("--limit", text, {"limits": read_limits(text), "accounts": accounts}) for text in limits]
        asked += [("--share", text, read_shares(text)) for text in shares if not _uses_accounts(self.options)]
        for option, text, options in asked:
            named = named_in({**options, "accounts": None})
            for kind, absent in without_jobs(names, options).items():
                for name in (name for name in absent if name in named[kind]):
                    hint = suggest(name, names.known(kind))
                    if not hint.startswith("; did you mean"):
                        hint = f"; the log has {shortened(names.known(kind)) or 'no names'}"
                    if kind == "qos" and name in named_in(self.options)["qos"]:
                        hint = "; the QOS of a partition limits the jobs of partition:NAME"
                    raise SwflowError(f"{option} {text}: no job of {self.workload.name} has {kind} {name!r}{hint}")

    def dropped_by(self, options: Unchecked) -> list[str]:
        """
        Return what a scheduler does not simulate although the site's scheduler does.

        Examples
        --------
        >>> import polars as pl
        >>> from swflow.jobs.machine import Machine
        >>> tiny = Workload(pl.DataFrame({"job_id": [1]}), Machine.of(4), "tiny")
        >>> options = {"backfill": "easy", "resources": {"gpus": 8}, "limits": {"user": {"jobs": 2}}}
        >>> SiteModel(tiny, options=options).dropped_by({"order": "sjf"})
        ['backfilling', 'gpus', 'limits']
        """
        if options.get("order") == LOG:
            return []
        found = []
        if len(self.partitions) > 1 and is_pool(options):
            found.append(f"the {len(self.partitions)} partitions")
        backfills = {options.get("backfill", "none"), *(one.get("backfill") for one in options.get("clusters") or ())}
        if self.options.get("backfill", "none") != "none" and backfills <= {"none", None} and not options.get("policy"):
            found.append("backfilling")
        own = {**self.workload.machine.resources, **(options.get("resources") or {})}
        for one in (*(options.get("clusters") or ()), *(options.get("nodes") or ())):
            own |= one.get("resources") or {}
        found += [name for name in self.resources if own.get(name) is None]
        parts = (options, *(options.get("clusters") or ()))
        limited = {*(self.options.get("limits") or {})} - ({"partition"} if self.config is None else set())  # sizes
        found += ["limits"] if limited and not any(one.get("limits") for one in parts) else []
        return found + ["preemption"] * bool(self.options.get("preemption") and not options.get("preemption"))

    @property
    def resources(self) -> list[str]:
        """The resources besides processors that the site's scheduler considers."""
        parts = (self.options, *(self.options.get("clusters") or ()), *(self.options.get("nodes") or ()))
        return list(dict.fromkeys(name for part in parts for name in part.get("resources") or {}))


def described(
    partitions: list[Partition],
    jobs: pl.DataFrame,
    processors: int | None,
    resources: Mapping[str, int] | None,
    own: Mapping[str, int] | None = None,
) -> tuple[list[Partition], Unchecked, Mapping[str, int], Sequence[str]]:
    """
    Return the partitions with the stated ``resources``, and the options of the scheduler that represents the site.

    Also return the units of each resource, of one of several partitions by ``PARTITION:NAME``, and the names of those
    that are guessed. ``processors`` is the stated size of the machine; ``own`` are its units if partitions share it.
    """
    if len(partitions) < 2 or share_nodes(partitions, processors):
        units, guessed = pool_of(jobs, {**(own or {}), **(resources or {})})
        return partitions, site_options(partitions, processors, units), units, guessed
    partitions = with_resources(partitions, resources)
    units = {f"{one.name}:{name}": count for one in partitions for name, count in one.resources.items()}
    guessed = tuple(f"{one.name}:{name}" for one in partitions for name in one.guessed_resources)
    return partitions, site_options(partitions, processors), units, guessed


def is_pool(options: Unchecked) -> bool:
    """Return whether a scheduler simulates all partitions as one machine without limits for them."""
    apart = "partition" in (options.get("limits") or {}) or any(
        "partition" in one for one in options.get("nodes") or ()
    )
    return options.get("order") != LOG and options.get("dispatch") != "partition" and not apart


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
    uses_accounts = _uses_accounts(found) if found.get("order") == MULTIFACTOR else bool(used & OF_TREE)
    if found.get("order") != MULTIFACTOR and "priority" not in changes:
        found.pop("priority", None)
    if found.get("order") != MULTIFACTOR and "half_life" not in changes and not used & OF_USAGE:
        found.pop("half_life", None)
    if "accounts" not in changes and found.get("accounts") and not uses_accounts:
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
        if shared and _uses_accounts(options) and "order" not in changes:
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


def _uses_accounts(options: Unchecked) -> bool:
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
