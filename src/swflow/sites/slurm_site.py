"""Turn the configuration of a Slurm site into a scheduler of a config, with notes on what is not simulated."""

import fnmatch
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from swflow.errors import SwflowError, one_line, visible
from swflow.files.yaml import parse_yaml
from swflow.log.site import SITE
from swflow.scheduling.nested_options import PRIORITY, SCHEDULER_PARAMETERS
from swflow.scheduling.option_checks import checked
from swflow.scheduling.scheduler import Scheduler
from swflow.sites.conf import Node, SlurmConf, SlurmPartition, counted, read_slurm_conf
from swflow.sites.defaults import with_defaults
from swflow.sites.limits import (
    COLUMNS,
    accounts_of,
    differences_in_words,
    flat_in_words,
    limits_of,
    not_simulated,
    run_minutes,
    with_known_gpus,
    without_empty,
)
from swflow.sites.lines import Value
from swflow.sites.tables import Row, read_table
from swflow.sites.windows import empty_in_words, lasting, read_events, read_windows, unavailable
from swflow.values import whole_number

#: How options are simulated, by name.
_OPTIONS = Path(__file__).with_name("options.yaml")

#: The order of jobs without priorities: that of submission, also for jobs that become eligible later (`priority_p_set`
#: in Slurm's priority_basic.c).
_BY_SUBMISSION = "job_id"

#: The interval of passes and cycles that Slurm never makes.
_NEVER = "-1"

#: The parameters of Slurm's schedulers that are simulated.
_PARAMETERS = [name for name in SCHEDULER_PARAMETERS if name != "end_delay"]

Simulated = Literal["yes", "partly", "no"]


class Treatment(NamedTuple):
    """How swflow simulates an option, what that means, and values with which it does what swflow does."""

    simulated: Simulated
    meaning: str
    neutral: Sequence[str] = ()


class Note(NamedTuple):
    """An option of the site: where it stands, its text, and its treatment."""

    name: str
    text: str
    place: str
    treatment: Treatment | None


@dataclass(frozen=True)
class SlurmSite:
    """
    A site: its processors and nodes, the options of its scheduler, and a note on each option that was read.

    ``cluster`` is its name, empty if slurm.conf does not state it; ``ignored`` are sentences on nodes, partitions and
    sizes that were not used, and ``limits`` those that are not simulated.
    """

    processors: int
    nodes: int
    options: Mapping[str, Any]
    notes: Sequence[Note]
    cluster: str = ""
    ignored: Sequence[str] = ()
    limits: Sequence[str] = ()


@cache
def treatments() -> dict[str, Treatment | None]:
    """Return how swflow simulates the options of a Slurm site, by name or pattern; None for those without effect."""
    content = parse_yaml(_OPTIONS.read_text(encoding="utf-8"))
    found: dict[str, Treatment | None] = dict.fromkeys(content.pop("irrelevant"))
    return {name: Treatment(**entry) for name, entry in content.items()} | found


def read_site(
    conf: str | Path,
    *,
    qos: str | Path | None = None,
    associations: str | Path | None = None,
    reservations: str | Path | None = None,
    usage: str | Path | None = None,
    nodes: str | Path | None = None,
    events: str | Path | None = None,
    time_zone: str | None = None,
    version: str | None = None,
) -> SlurmSite:
    """
    Read a Slurm site from its slurm.conf and, if given, the output of Slurm's commands.

    The files that slurm.conf includes lie in its folder. The others are the output of ``sacctmgr show qos -P``,
    ``sacctmgr show assoc -P``, ``scontrol show res``, ``sshare -a -l -P`` and, for ``nodes``, ``scontrol show node``;
    for ``events`` it is ``sacctmgr show event -P``. Times of reservations and events are those of ``time_zone``, by
    default those of the log. ``version`` of Slurm decides about the defaults of slurm.conf.
    Raise `SwflowError`, with file and line, if one has another form, or if no scheduler can have its options.
    """
    slurm = with_defaults(read_slurm_conf(conf, nodes), version)
    levels = [] if qos is None else read_table(qos, "sacctmgr show qos -P", ["name", "priority"])
    members = (
        [] if associations is None else read_table(associations, "sacctmgr show assoc -P", ["account", "user", "share"])
    )
    members = _of_cluster(members, slurm.text("ClusterName"))
    used = [] if usage is None else read_table(usage, "sshare -a -l -P", ["account", "user", "rawusage"])
    serving = _serving(slurm)
    gpu_types = {name for node in serving for name in slurm.nodes[node].gpu_types}
    is_enforced = _enforces_limits(slurm)
    limiting = tuple(with_known_gpus(rows, gpu_types) if is_enforced else [] for rows in (levels, members))
    has_minutes = any(run_minutes(row) for rows in limiting for row in rows)
    options: dict[str, Any] = _order(slurm, levels, has_minutes) | _backfill(slurm)
    options |= {"nodes": _node_groups(slurm, serving), "preemption": _preemption(slurm, levels)}
    numbers = {name: number for number, name in enumerate(serving, 1)}
    windows = [] if reservations is None else read_windows(reservations, numbers)
    windows += [] if events is None else read_events(events, numbers)
    windows, empty = lasting(windows, time_zone)
    options["unavailable"] = unavailable(windows, time_zone)
    options["limits"] = limits_of(slurm.partitions, *limiting)
    has_shares = "fair_share_of" in options.get("priority", {})
    has_accounts = has_shares or "group" in options["limits"]
    options["accounts"] = accounts_of(members, used, has_shares) if has_accounts else {}
    notes = [
        *_conf_notes(slurm, levels),
        *_row_notes("QOS", levels, is_enforced),
        *_row_notes("Assoc", members, is_enforced),
        *(_window_note(*one) for one in windows),
    ]
    if used and not has_shares:
        unused = Treatment("no", "there is no weight of fair share")
        notes.append(Note("Usage.RawUsage", used[0].text("rawusage"), str(used[0].place), unused))
    processors = sum(slurm.nodes[name].cpus for name in serving)
    ignored = [*slurm.ignored, *_memory_in_words(slurm, serving), *_unknown_qos_in_words(slurm, levels)]
    ignored += empty_in_words(empty)
    if not is_enforced and any(row.text(column) for row in (*levels, *members) for column in COLUMNS):
        ignored.append(f"limits of QOS and accounts are not simulated: {_NOT_ENFORCED}")
    ignored += [*flat_in_words(members), *differences_in_words(slurm.partitions, *limiting)]
    cluster = slurm.text("ClusterName")
    limits = not_simulated(*limiting)
    options = without_empty(options)
    try:
        Scheduler.of(SITE, options)
    except SwflowError as error:
        raise type(error)(f"{conf}: {error}") from None
    return SlurmSite(processors, len(serving), options, notes, cluster, ignored, limits)


def _of_cluster(members: list[Row], cluster: str) -> list[Row]:
    """Return the associations of a cluster; raise an error if a table of several clusters has none."""
    clusters = {row.text("cluster") for row in members}
    own = [row for row in members if row.text("cluster").lower() == cluster.lower()]
    if len(clusters) > 1 and not own:
        raise SwflowError(
            f"{members[0].place.file}: associations of {', '.join(sorted(clusters))}; expected those of one cluster: "
            f"ClusterName={cluster} of slurm.conf"
        )
    return own or members


def _order(slurm: SlurmConf, levels: Sequence[Row], has_minutes: bool) -> dict[str, Any]:
    """Return the order of the queue with its weights; limits of processor-minutes need the period."""
    weights = {
        "age": "PriorityWeightAge", "fair_share": "PriorityWeightFairshare", "size": "PriorityWeightJobSize",
        "partition": "PriorityWeightPartition", "qos": "PriorityWeightQOS",
    }  # fmt: skip
    is_multifactor = slurm.text("PriorityType").lower().endswith("multifactor")
    priority: dict[str, Any] = {
        key: is_multifactor and _allowed(slurm, option, key, slurm.whole(option)) for key, option in weights.items()
    }
    factors: dict[str, Mapping[str, float]] = {
        "partition": _with_tiers(slurm.partitions, priority),
        "qos": {row.text("name"): row.whole("priority") or 0 for row in levels},
    }
    for weight, of in factors.items():
        if priority[weight] and max(of.values(), default=0) > 0:
            priority[f"{weight}_factors"] = of
        else:
            priority[weight] = 0
    priority = without_empty(priority)
    found: dict[str, Any] = {"order": "slurm-multifactor", "priority": priority}
    if "age" in priority:
        oldest = min(slurm.seconds("PriorityMaxAge", 7 * 86400.0), 1e12)
        priority["max_age"] = _allowed(slurm, "PriorityMaxAge", "max_age", oldest)
    if "size" in priority:
        priority["nodes"] = len({name for one in slurm.partitions for name in one.nodes})
    if slurm.text("PriorityFavorSmall").upper() in ("YES", "1", "TRUE") and "size" in priority:
        priority["favor_small"] = True
    if "age" in priority or "fair_share" in priority or (is_multifactor and has_minutes):
        period = slurm.seconds("PriorityCalcPeriod", 300.0)
        priority["calc_period"] = _allowed(slurm, "PriorityCalcPeriod", "calc_period", period)
    if "fair_share" in priority:
        half_life = slurm.seconds("PriorityDecayHalfLife", 7 * 86400.0)
        found |= {"half_life": half_life} if 0 < half_life < math.inf else {}
        if "NO_FAIR_TREE" in slurm.text("PriorityFlags").upper():
            dampening = slurm.whole("FairShareDampeningFactor", 1)
            priority |= {"dampening": dampening} if dampening > 1 else {}
            priority["fair_share_of"] = "association"
        else:
            priority["fair_share_of"] = "fair-tree"
        if not _enforces_limits(slurm):
            priority["whole_periods"] = True  # `_adjust_limit_usage` in Slurm's acct_policy.c drops the rest
    if not priority:
        return {"order": _BY_SUBMISSION}
    if is_multifactor:
        priority["whole_points"] = True
    return found


def _allowed(slurm: SlurmConf, option: str, key: str, number: float) -> Any:
    """Return the number of an option; raise an error with its place if a key of ``priority`` does not allow it."""
    value = slurm.options.get(option.lower())
    return number if value is None else checked(PRIORITY[key], number, f"{value.place}: {value.name}")


def _with_tiers(partitions: Sequence[SlurmPartition], priority: dict[str, Any]) -> Mapping[str, float]:
    """
    Return the factors of partitions; with several tiers they and their weight are such that tiers decide first.

    Slurm sorts jobs by the tier of their partition before their priority (`sort_job_queue2` in src/slurmctld).
    """
    factors = {one.name: _factor(one, "priorityjobfactor") for one in partitions}
    tiers = {one.name: _factor(one, "prioritytier") for one in partitions}
    ranks = {tier: rank for rank, tier in enumerate(sorted(set(tiers.values())))}
    if len(ranks) < 2:
        return factors
    apart, largest = sum(priority.values()) + 1, max(max(factors.values()), 1)
    points = {
        name: ranks[tiers[name]] * apart + priority["partition"] * factor / largest for name, factor in factors.items()
    }
    priority["partition"] = max(points.values())
    return points


def _factor(partition: SlurmPartition, option: str) -> int:
    """Return the priority of a partition's jobs, or its tier; by default 1, as in Slurm."""
    value = partition.options.get(option) or partition.options.get("priority")
    return 1 if value is None else value.whole()


def _backfill(slurm: SlurmConf) -> dict[str, Any]:
    """Return how jobs may overtake."""
    given = slurm.parameters()
    if slurm.text("SchedulerType", "sched/backfill").lower().endswith("builtin"):
        given["bf_interval"] = _NEVER
    place = slurm.options["schedulerparameters"].place if "schedulerparameters" in slurm.options else ""
    if given.get("sched_interval") == _NEVER:
        del given["sched_interval"]
    found = {}
    for name in _PARAMETERS:
        if name in given:
            where = f"{place}: {name}"
            value = whole_number(given[name], where, least=-1, most=2**31)
            found[name] = checked(SCHEDULER_PARAMETERS[name], value, where)
    return {"backfill": "slurm", "scheduler_parameters": found}


def _preemption(slurm: SlurmConf, levels: Sequence[Row]) -> dict[str, Any]:
    """Return which jobs preempt others; nothing if there is no preemption."""
    kind = slurm.text("PreemptType").lower().rpartition("/")[2]
    common = _preempt_mode(slurm, slurm.text("PreemptMode", "OFF"))
    found: dict[str, Any] = {}
    if kind == "qos":
        others = {row.text("name"): [name for name in row.text("preempt").split(",") if name] for row in levels}
        found["qos"] = {name: named for name, named in others.items() if named}
        preempted = {name for named in others.values() for name in named}
        texts = {row.text("name"): row.text("preemptmode") for row in levels if row.text("name") in preempted}
        priorities = {row.text("name"): min(row.whole("priority") or 0, 65_535) for row in levels}
        found["qos_priorities"] = without_empty({name: priorities.get(name) for name in sorted(preempted)})
    elif kind == "partition_prio":
        found["partition"] = {one.name: _factor(one, "prioritytier") for one in slurm.partitions}
        texts = {one.name: one.text("PreemptMode") for one in slurm.partitions}
        if len(set(found["partition"].values())) < 2:
            return {}
    if slurm.text("PreemptMode", "OFF").upper() == "OFF" or not any(found.values()):
        return {}
    modes = {
        name: _preempt_mode(slurm, text) if text and text.lower() != "cluster" else common
        for name, text in texts.items()
    }
    usual = common if common != "off" else "requeue"
    found |= {"mode": usual, "modes": {name: mode for name, mode in modes.items() if mode != usual}}
    exempt = slurm.seconds("PreemptExemptTime", 0.0)
    found["exempt_time"] = exempt if exempt < math.inf else 0  # -1 exempts no job
    lifetime = re.search(r"cred_expire=([0-9]+)", slurm.text("AuthInfo"))
    if lifetime:
        found["requeue_delay"] = whole_number(lifetime[1], f"{slurm.options['authinfo'].place}: cred_expire") + 1
    return without_empty(found)


def _preempt_mode(slurm: SlurmConf, text: str) -> str:
    """Return a PreemptMode; jobs that would be suspended are not preempted."""
    words = text.upper().split(",")
    if "REQUEUE" in words and slurm.text("JobRequeue", "1") != "0":
        return "requeue"
    return "cancel" if {"REQUEUE", "CANCEL"} & {*words} else "off"


def _serving(slurm: SlurmConf) -> dict[str, list[str]]:
    """Return the partitions of each node that is in one, in the order of the nodes."""
    serving: dict[str, list[str]] = {name: [] for name in slurm.nodes}
    for one in slurm.partitions:
        for name in one.nodes:
            serving[name].append(one.name)
    serving = without_empty(serving)
    if not serving:
        place, why = slurm.partitions[0].options["partitionname"].place, "; ".join(slurm.ignored[:2])
        raise SwflowError(f"{place}: no partition has nodes that are up ({why}); expected one with such nodes")
    return serving


def _node_groups(slurm: SlurmConf, serving: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """Return the nodes of partitions, in their order: the consecutive ones that are alike as groups."""
    several = len({tuple(names) for names in serving.values()}) > 1
    weighted = len({slurm.nodes[name].weight for name in serving}) > 1
    with_memory = _has_memory(slurm) and all(slurm.nodes[name].memory for name in serving)
    kinds = [
        {"processors": slurm.nodes[name].cpus}
        | without_empty({"resources": _resources(slurm.nodes[name], with_memory)})
        | ({"weight": slurm.nodes[name].weight} if weighted else {})
        | without_empty({"features": sorted(slurm.nodes[name].features)})
        | ({"partition": partitions} if several else {})
        for name, partitions in serving.items()
    ]
    return [{"count": len(list(alike)), **kind} for kind, alike in groupby(kinds)]


def _resources(node: Node, with_memory: bool) -> dict[str, int]:
    """Return the GPUs of a node, and its memory (MB)."""
    return without_empty({"gpus": node.gpus, "memory": with_memory and node.memory})


def _has_memory(slurm: SlurmConf) -> bool:
    """Return whether Slurm allocates memory."""
    return "MEMORY" in slurm.text("SelectTypeParameters").upper()


def _memory_in_words(slurm: SlurmConf, serving: Iterable[str]) -> list[str]:
    """Return why memory is not simulated although Slurm allocates it: nodes whose memory is unknown."""
    unknown = [name for name in serving if not slurm.nodes[name].memory]
    if not unknown or not _has_memory(slurm):
        return []
    return [
        f"memory is not simulated: {counted(unknown)} without RealMemory; state it with --nodes (the output of "
        "`scontrol show node`)"
    ]


def _unknown_qos_in_words(slurm: SlurmConf, levels: Sequence[Row]) -> list[str]:
    """Return the partitions whose limits are not simulated because the table of QOS does not have their QOS."""
    names = {row.text("name") for row in levels}
    unknown = {
        one.text("QOS"): one.name for one in slurm.partitions if one.text("QOS") and one.text("QOS") not in names
    }
    return [
        f"limits of QOS {qos} of partition {name} are not simulated: it is not in the output of "
        "`sacctmgr show qos -P` (--qos)"
        for qos, name in unknown.items()
    ]


def _enforces_limits(slurm: SlurmConf) -> bool:
    """Return whether Slurm enforces the limits of QOS and associations."""
    enforced = {text.strip().lower() for text in slurm.text("AccountingStorageEnforce").split(",")}
    return not enforced.isdisjoint({"limits", "safe", "all"})


def _conf_notes(slurm: SlurmConf, levels: Sequence[Row]) -> list[Note]:
    """Return the notes on the options of slurm.conf, its nodes and partitions, in the order of the files."""
    keywords = {"nodename": "Node", "partitionname": "Partition", "nodeset": "NodeSet", "downnodes": "DownNodes",
                "frontendname": "FrontendName", "switchname": "SwitchName"}  # fmt: skip
    known = _by_lower_name()
    if not levels:
        known["priorityweightqos"] = Treatment("no", "the priorities of QOS are needed: --qos", ["0"])
    parameters = slurm.options.get("schedulerparameters")
    notes = [_note(value, known) for key, value in slurm.options.items() if key != "schedulerparameters"]
    if parameters is not None:
        for name, content in slurm.parameters().items():
            notes.append(_note(Value(f"SchedulerParameters.{name}", content or "set", parameters.place), known))
    for key, values in slurm.records.items():
        keyword = keywords[key.partition(".")[0]]
        found = [_note(value._replace(name=f"{keyword}.{value.name}"), known) for value in values]
        notes.append(next((note for note in found if note.treatment is not None), found[0]))
    return notes


def _note(value: Value, known: Mapping[str, Treatment | None]) -> Note:
    treatment = known.get(f"{value.name}={value.text}".lower()) or _treatment(value.name, known)
    is_neutral = treatment is not None and value.text.upper() in (text.upper() for text in treatment.neutral)
    return Note(value.name, value.text, str(value.place), None if is_neutral else treatment)


def _by_lower_name() -> dict[str, Treatment | None]:
    return {name.lower(): treatment for name, treatment in treatments().items()}


def _treatment(name: str, known: Mapping[str, Treatment | None]) -> Treatment | None:
    """Return the treatment of an option: that of its name, else of the first pattern that matches."""
    lower = name.lower()
    if lower in known:
        return known[lower]
    for pattern, treatment in known.items():
        if "*" in pattern and fnmatch.fnmatchcase(lower, pattern):
            return treatment
    return Treatment("no", "unknown to swflow; not simulated")


#: Why a limit of sacctmgr makes no job wait.
_NOT_ENFORCED = "AccountingStorageEnforce has neither limits, safe nor all, so Slurm enforces none"


def _row_notes(kind: str, rows: Sequence[Row], is_enforced: bool) -> list[Note]:
    """Return a note on each column of a table that a row uses, with the first such row."""
    known = _by_lower_name()
    skipped = {"name", "cluster", "account", "user", "parname", "id", "lft", "rgt", "partition", "description"}
    first: dict[str, Row] = {}
    for row in rows:
        for column in row.texts:
            if column not in skipped and row.text(column) not in ("0", "00:00:00", "1.000000", "cluster"):
                first.setdefault(column, row)
    spelled = {name.lower(): name for name in treatments()}
    names = {column: spelled.get(f"{kind}.{column}".lower(), f"{kind}.{column}") for column in first}
    if not is_enforced:
        known |= {names[column].lower(): Treatment("no", _NOT_ENFORCED) for column in COLUMNS & names.keys()}
    return [_note(Value(names[column], row.text(column), row.place), known) for column, row in first.items()]


def _window_note(window: Row, nodes: Sequence[int]) -> Note:
    flags = window.text("flags").split(",")
    name = "Reservation.MAINT" if {"MAINT", "EVENT"} & {*flags} else "Reservation.other"
    treatment = _treatment(name, _by_lower_name()) if nodes else Treatment("no", "it has no node of a partition")
    text = f"{window.text('reservationname')} {window.text('nodes')} ({len(nodes)} nodes of partitions)"
    return Note(name, text, str(window.place), treatment)


def _about(site: SlurmSite) -> dict[str, Any]:
    """Return what a config says about a site besides its scheduler."""
    about = {"cluster": site.cluster, "processors": site.processors, "limits_not_simulated": list(site.limits)}
    return without_empty(about)


def site_yaml(site: SlurmSite, sources: Sequence[str | Path]) -> str:
    """Return the site as a config that a person can edit: scheduler `site`, then the notes as comments."""
    lines = [
        f"# The scheduler of a Slurm site, read from {', '.join(map(one_line, map(str, sources)))}. Edit it as needed.",
        f"# The machine has {site.processors:,} processors (Slurm CPUs) in {site.nodes:,} nodes.",
        *(f"# Note: {one_line(text)}." for text in site.ignored),
        yaml.safe_dump({"site": _about(site)}, width=120, allow_unicode=True).rstrip(),
        yaml.safe_dump(
            {"schedulers": {SITE: dict(site.options)}}, sort_keys=False, width=120, allow_unicode=True
        ).rstrip(),
        "",
        "# The options that were read. `no` and `partly` say what the simulation leaves out.",
    ]
    for simulated in ("no", "partly", "yes"):
        for note in site.notes:
            if note.treatment is not None and note.treatment.simulated == simulated:
                text = f"{note.name}={note.text} ({note.place}): {note.treatment.meaning}"
                lines.append(f"# {simulated:6} {one_line(text)}")
    ignored = [note.name for note in site.notes if note.treatment is None]
    lines.append(f"# Without effect on schedules: {visible(', '.join(ignored)) or 'none'}")
    return "\n".join(lines) + "\n"
