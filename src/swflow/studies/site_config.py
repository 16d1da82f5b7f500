"""The site of a what-if as a config states it: the scheduler, the machine, and what contradicts the log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.files.yaml import read_yaml
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.site import SITE
from swflow.log.swf import GUESSED_MACHINE
from swflow.phrases import listed
from swflow.scheduling.fitting_jobs import partitions_named
from swflow.scheduling.nested_options import LIMITED_COLUMNS
from swflow.scheduling.nodes import processors_on
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.names import absent_in_words, named_in, without_jobs
from swflow.scheduling.orders.ownership import COLUMNS, Names
from swflow.studies.preempted_runs import with_joined_runs
from swflow.values import mapping
from swflow.workload.clean import GUESSED

#: Limits that are not simulated, of those that a sentence names.
_MOST_LIMITS = 5


@dataclass(frozen=True)
class SiteConfig:
    """
    The scheduler of a site in a config, as ``swflow import site`` writes it, and the name of its cluster.

    ``limits`` are those of the site that are not simulated.
    """

    path: Path
    options: Unchecked
    cluster: str = ""
    limits: Sequence[str] = ()

    @classmethod
    def read(cls, path: Path, scheduler: str = SITE) -> "SiteConfig":
        """Read the config of a site; raise `SwflowError` if it has no scheduler of this name."""
        content = site_content(path, scheduler)
        about = content.get("site")
        about = about if isinstance(about, Mapping) else {}
        limits = about.get("limits_not_simulated")
        named = tuple(map(str, limits)) if isinstance(limits, list) else ()
        return cls(path, content["schedulers"][scheduler], str(about.get("cluster", "")), named)

    @property
    def joins_preempted(self) -> bool:
        """Return whether the site preempts jobs, so that the runs of a preempted job belong to one job."""
        return bool(self.options.get("preemption"))

    def sizes_of(self, workload: Workload) -> dict[str, int]:
        """Return the processors of each partition of the log that the config describes."""
        groups = self.options.get("nodes") or ()
        found: dict[str, int] = {}
        for name in workload.header.names_of("partition_id").values():
            size = sum(one["count"] * one["processors"] for one in groups if name in (partitions_named(one) or [name]))
            found |= {name: size} if size else {}
        return found

    def options_for(self, workload: Workload) -> tuple[Unchecked, list[str]]:
        """Return the options without those that need a missing column of the log, and sentences on the omitted ones."""
        options, jobs = dict(self.options), workload.jobs
        lacking = [kind for kind, column in COLUMNS.items() if column not in jobs.columns or not jobs[column].count()]
        remarks = []
        for kind in lacking:
            changed = _without_kind(options, kind)
            if changed != options:
                effects = f"{'nodes, ' * (kind == 'partition')}limits, priorities and preemption by {_WORDS[kind]}"
                remarks.append(
                    f"The log does not record the {_WORDS[kind]} of jobs, so {effects} are not simulated; "
                    f"add {_FIELDS[kind]} to sacct --format."
                )
            options = changed
        options = self._without_absent(options, Names(workload))
        options, unlimited = _without_limits_of(options, [one for one in LIMITED_COLUMNS if one not in jobs.columns])
        if unlimited:
            names = listed(unlimited)
            remarks.append(f"The log records no {names} of jobs, so limits of {names} are not simulated.")
        groups = options.get("nodes") or ()
        unknown = sorted({name for one in groups for name in one.get("resources") or () if name not in jobs.columns})
        if unknown:
            options["nodes"] = [_without_resources(one, unknown) for one in groups]
            names = " and ".join(unknown)
            remarks.append(f"The log records no {names} of jobs, so the {names} of nodes are not simulated.")
        return options, remarks

    def _without_absent(self, options: dict[str, Any], names: Names) -> dict[str, Any]:
        """
        Return options without limits of names that have no jobs, unless several names of a kind have none at all.

        Limits of accounts stay, because the scheduler refuses accounts that have no effect.
        """
        named, absent = named_in(self.options), without_jobs(names, self.options)
        if options.get("accounts"):
            absent.pop("group", None)
        limits = {
            kind: {
                name: limit
                for name, limit in of_kind.items()
                if name not in absent.get(kind, ()) or 1 < len(named[kind]) == len(absent[kind])
            }
            for kind, of_kind in (options.get("limits") or {}).items()
        }
        limits = {kind: of_kind for kind, of_kind in limits.items() if of_kind}
        return {key: value for key, value in options.items() if key != "limits"} | (
            {"limits": limits} if limits else {}
        )

    def on_machine(self, workload: Workload) -> Workload:
        """Return the workload on the machine of the config, whose size is then not a guess, with runs joined."""
        workload = with_joined_runs(workload, self.options)
        groups = self.options.get("nodes") or ()
        if not groups:
            return workload
        processors, nodes = processors_on(groups), sum(one["count"] for one in groups)
        machine = Machine.of(processors, nodes) if processors % nodes == 0 else Machine.of(processors)
        source = {"machine_from": f"config {self.path.name}"}
        history = tuple(
            _without_guess(entry) | source if entry.get("machine_from") in GUESSED else entry
            for entry in workload.history
        )
        return replace(workload, machine=machine, history=history)

    def contradictions(self, workload: Workload) -> list[str]:
        """Return what the log and the config state differently, and the names that have no effect, as sentences."""
        found = []
        computer = " ".join(workload.header.get("Computer", ()))
        if self.cluster and computer and computer.lower() != self.cluster.lower():
            found.append(
                f"The log is of cluster {computer}, and {self.path} describes {self.cluster}: "
                "the answer may be about another machine."
            )
        stated = workload.header.number("MaxProcs")
        is_guess = GUESSED_MACHINE in workload.header.get("Note", ())
        if self.options.get("nodes") and stated and not is_guess and stated != workload.machine.processors:
            found.append(
                f"The log states {stated:,} processors, and {self.path} {workload.machine.processors:,}: "
                "the simulation uses the latter."
            )
        known = set(self.sizes_of(workload))
        lacking = sorted(set(workload.header.names_of("partition_id").values()) - known)
        if self.options.get("nodes") and lacking and known:
            found.append(f"{self.path} has no nodes for partition {', '.join(lacking)}: its jobs are left out.")
        if self.limits:
            some = ", ".join(self.limits[:_MOST_LIMITS]) + ", …" * (len(self.limits) > _MOST_LIMITS)
            found.append(f"Limits that are not simulated ({some}) can make jobs wait in the log that start here.")
        absent = without_jobs(Names(workload), self.options)
        return found + ([absent_in_words(absent)] if absent else [])


#: The owners of jobs as words, and the columns of sacct that record them.
_WORDS = {"user": "user", "group": "account", "partition": "partition", "qos": "QOS"}
_FIELDS = {"user": "User", "group": "Account", "partition": "Partition", "qos": "QOS"}


def _without_kind(options: Unchecked, kind: str) -> dict[str, Any]:
    """Return options without limits, weights and preemption by a kind of owner; fair share needs users and groups."""
    found = dict(options)
    limits = {name: of for name, of in (options.get("limits") or {}).items() if name != kind}
    priority = dict(options.get("priority") or {})
    dropped = {"user": ("fair_share", "fair_share_of"), "group": ("fair_share", "fair_share_of")}.get(
        kind, (kind, f"{kind}_factors")
    )
    priority = {name: value for name, value in priority.items() if name not in dropped}
    found |= {"limits": limits, "priority": priority}
    if kind == "partition" and found.get("nodes"):
        found["nodes"] = [{key: value for key, value in one.items() if key != kind} for one in found["nodes"]]
    if kind in (options.get("preemption") or {}):
        found["preemption"] = None
    if "fair_share" not in priority:
        found["half_life"] = None
        found["accounts"] = None if "group" not in limits else found.get("accounts")
    if options.get("priority") and not {"age", "fair_share", "size", "partition", "qos"} & priority.keys():
        found |= {"order": "job_id", "priority": None}
    for name in ("limits", "priority", "preemption", "accounts", "half_life"):
        if not found.get(name):
            found.pop(name, None)
    return found


def _without_limits_of(options: dict[str, Any], names: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Return options without limits of some quantities of jobs, and the quantities that were limited."""
    removed = set[str]()

    def without(limits: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, one in limits.items():
            if isinstance(one, Mapping):  # the limits of a kind or a name
                found |= {key: left} if (left := without(one)) or not one else {}
            elif (quantity := key.removeprefix("user_")) in names:
                removed.add(quantity)
            else:
                found[key] = one
        return found

    limits = without(options.get("limits") or {})
    found = {key: value for key, value in options.items() if key != "limits"} | ({"limits": limits} if limits else {})
    return found, sorted(removed)


def _without_resources(group: Unchecked, names: Collection[str]) -> dict[str, Any]:
    """Return a group of nodes without some of its resources."""
    kept = {name: units for name, units in (group.get("resources") or {}).items() if name not in names}
    return {key: value for key, value in group.items() if key != "resources"} | ({"resources": kept} if kept else {})


def _without_guess(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a history without the guess of the machine's size and the warning about it."""
    kept = {key: value for key, value in entry.items() if key not in ("guessed_processors", "warnings")}
    warnings = [text for text in entry.get("warnings", ()) if "machine's size is not stated" not in text]
    return kept | ({"warnings": warnings} if warnings else {})


def site_content(config: Path, scheduler: str) -> dict[str, Any]:
    """Return the content of a config that has a scheduler of a name."""
    content = mapping(read_yaml(config), str(config), "a file that `swflow import site` wrote")
    schedulers = content.get("schedulers")
    if not isinstance(schedulers, dict) or not isinstance(schedulers.get(scheduler), dict):
        raise SwflowError(f"{config}: schedulers: no {scheduler!r}; expected a file that `swflow import site` wrote")
    return dict(content)
