"""The scheduler that represents a site, and the schedulers of the command line that inherit from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

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
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.names import named_in, shortened, without_jobs
from swflow.scheduling.orders.ownership import Names
from swflow.scheduling.orders.vocabulary import LOG, MULTIFACTOR, ORDERS
from swflow.studies.changed_policies import merged, read_limits, read_shares, uses_accounts
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
        asked += [("--share", text, read_shares(text)) for text in shares if not uses_accounts(self.options)]
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


class Described(NamedTuple):
    """
    A site: its partitions and the options of the scheduler that represents it.

    ``resources`` are the units of each resource, of one of several partitions by ``PARTITION:NAME``, and
    ``guessed_resources`` the names of those that are guessed.
    """

    partitions: list[Partition]
    options: Unchecked
    resources: Mapping[str, int]
    guessed_resources: Sequence[str]


def described(
    partitions: list[Partition],
    jobs: pl.DataFrame,
    processors: int | None,
    resources: Mapping[str, int] | None,
    own: Mapping[str, int] | None = None,
) -> Described:
    """
    Describe a site by its partitions and the stated ``resources``.

    ``processors`` is the stated size of the machine; ``own`` are its units if partitions share it.
    """
    if len(partitions) < 2 or share_nodes(partitions, processors):
        units, guessed = pool_of(jobs, {**(own or {}), **(resources or {})})
        return Described(partitions, site_options(partitions, processors, units), units, guessed)
    partitions = with_resources(partitions, resources)
    units = {f"{one.name}:{name}": count for one in partitions for name, count in one.resources.items()}
    guessed = tuple(f"{one.name}:{name}" for one in partitions for name in one.guessed_resources)
    return Described(partitions, site_options(partitions, processors), units, guessed)


def is_pool(options: Unchecked) -> bool:
    """Return whether a scheduler simulates all partitions as one machine without limits for them."""
    apart = "partition" in (options.get("limits") or {}) or any(
        "partition" in one for one in options.get("nodes") or ()
    )
    return options.get("order") != LOG and options.get("dispatch") != "partition" and not apart
