"""Read slurm.conf: options, nodes and partitions, each with the file and line that states it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import polars as pl

from swflow.errors import SwflowError
from swflow.files.reading import parse_documents
from swflow.log.importers.slurm import duration, gpus_of_gres
from swflow.sites.hosts import HOSTS, expand_hosts
from swflow.sites.lines import Place, Value, lines_of, read_file
from swflow.values import Limit

#: Keywords that begin a line with several pairs; the others have one pair a line.
_RECORDS = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")

#: Limit of the sum of the nodes of all partitions.
MEMBERS = Limit(10_000_000, "nodes in partitions")


@dataclass(frozen=True)
class Node:
    """
    Nodes of one line: their names, CPUs, memory (MB), generic resources and weight of each, and features.

    ``memory`` is 0 if no size is stated; ``is_sized`` says whether the CPUs are stated. ``away`` is the state of nodes
    that run no jobs, and empty for the others.
    """

    names: tuple[str, ...]
    cpus: int
    memory: int
    gres: str
    weight: int
    features: frozenset[str]
    is_sized: bool
    away: str

    @property
    def gpus(self) -> int:
        """The number of GPUs."""
        return _gpus(self.gres)

    @property
    def gpu_types(self) -> set[str]:
        """
        The types of the GPUs in lower case; empty text for GPUs without a type.

        Examples
        --------
        >>> node = Node(("n1",), 64, 0, "gpu:A100:4(S:0-1),gpu:2,shard:8", 1, frozenset(), True, "")
        >>> node.gpus, sorted(node.gpu_types)
        (6, ['', 'a100'])
        """
        return {name or "" for name in re.findall(r"(?:^|,)gpu(?::([^:,(=]*[^0-9:,(=][^:,(=]*))?", self.gres.lower())}


@dataclass(frozen=True)
class SlurmPartition:
    """A partition: its nodes by name, in the order of the file, and its options by lower-case name."""

    name: str
    nodes: tuple[str, ...]
    options: Mapping[str, Value]

    def text(self, option: str, default: str = "") -> str:
        """Return the text of an option of the partition."""
        value = self.options.get(option.lower())
        return default if value is None else value.text


@dataclass(frozen=True)
class SlurmConf:
    """
    A configuration: options of the cluster by lower-case name, nodes by name, and partitions.

    ``records`` has the options of node and partition lines, ``Keyword.Option`` in lower case, with the first place of
    each of their values. ``ignored`` are sentences on nodes, partitions and sizes that were not used.
    """

    options: Mapping[str, Value]
    nodes: Mapping[str, Node]
    partitions: tuple[SlurmPartition, ...]
    records: Mapping[str, Sequence[Value]]
    ignored: Sequence[str] = ()

    def text(self, option: str, default: str = "") -> str:
        """Return the text of an option of the cluster."""
        value = self.options.get(option.lower())
        return default if value is None else value.text

    def parameters(self) -> dict[str, str]:
        """
        Return ``SchedulerParameters`` by lower-case name; a flag has an empty text.

        As in Slurm, which searches the text for ``name=``, the first of several values counts, and a doubled ``=`` in
        front of a name changes nothing.
        """
        found: dict[str, str] = {}
        for text in self.text("SchedulerParameters").split(","):
            name, _, value = text.strip().lstrip("= ").partition("=")
            found.setdefault(name.strip().lower(), value.strip())
        found.pop("", None)
        return found

    def whole(self, option: str, default: int = 0) -> int:
        """Return a whole number of the cluster."""
        value = self.options.get(option.lower())
        return default if value is None else value.whole()

    def seconds(self, option: str, default: float) -> float:
        """Return a duration of the cluster in seconds; infinite if it is unlimited."""
        value = self.options.get(option.lower())
        return default if value is None else seconds_of(value)


def read_slurm_conf(path: str | Path, shown_nodes: str | Path | None = None) -> SlurmConf:
    """
    Read a slurm.conf with the files that it includes.

    Names of options are compared in lower case. Lines with ``NodeName=DEFAULT`` or ``PartitionName=DEFAULT`` set the
    defaults of the following lines. The last line of an option of the cluster counts, as in Slurm. (SchedMD, slurm.conf
    manual.) ``shown_nodes`` is the output of ``scontrol show node``: the sizes that slurm.conf does not state, and
    dynamic nodes.

    Raise `SwflowError`, with file and line, if a line is neither a comment, an include, nor pairs ``Option=Value``; if
    a node or partition has no valid size; or if a partition names nodes that are not defined.
    """
    path = Path(path)
    found = _Content()
    for pairs in lines_of(path):
        found.add(pairs)
    if not found.partitions:
        raise SwflowError(f"{path}: no line PartitionName=…; expected a slurm.conf with nodes and partitions")
    if shown_nodes is not None:
        found.add_shown(read_shown_nodes(shown_nodes))
    return found.resolved()


@dataclass
class _Content:
    """The lines of slurm.conf, collected until the names in them can be resolved."""

    options: dict[str, Value] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    sets: list[dict[str, Value]] = field(default_factory=list)
    partitions: list[dict[str, Value]] = field(default_factory=list)
    down: dict[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, Value]] = field(default_factory=dict)  # the values of each option by text
    joined: dict[str, list[str]] = field(default_factory=dict)  # the dynamic nodes of each partition
    _defaults: dict[str, dict[str, Value]] = field(default_factory=dict)

    def add(self, pairs: Sequence[Value]) -> None:
        """Add a line."""
        keyword, place = pairs[0].name.lower(), pairs[0].place
        if keyword not in _RECORDS:
            self.options |= {value.name.lower(): value for value in pairs}
            return
        content = {value.name.lower(): value for value in pairs}
        for name in list(content)[1:]:
            self.records.setdefault(f"{keyword}.{name}", {}).setdefault(content[name].text, content[name])
        if pairs[0].text.upper() == "DEFAULT":
            self._defaults[keyword] = self._defaults.get(keyword, {}) | content
            return
        content = self._defaults.get(keyword, {}) | content
        if keyword == "nodename":
            node = _node(content)
            self.nodes.update(dict.fromkeys(node.names, node))
            self.places.update(dict.fromkeys(node.names, place))
            HOSTS.require(len(self.nodes), str(place))
        elif keyword == "nodeset":
            self.sets.append(content)
        elif keyword == "downnodes":
            state = content["state"].text.upper() if "state" in content else "DOWN"
            self.down |= dict.fromkeys(expand_hosts(pairs[0].text, place), state)
            HOSTS.require(len(self.down), str(place))
        elif keyword == "partitionname":
            self.partitions.append(content)

    def add_shown(self, shown: Mapping[str, "ShownNode"]) -> None:
        """Add what ``scontrol show node`` prints: sizes that slurm.conf does not state, and dynamic nodes."""
        for name, one in shown.items():
            known = self.nodes.get(name)
            if known is None:
                self.nodes[name], self.places[name] = one.node, one.place
                for partition in one.partitions:
                    self.joined.setdefault(partition, []).append(name)
            else:
                self.nodes[name] = replace(
                    known,
                    cpus=known.cpus if known.is_sized else one.node.cpus,
                    memory=known.memory or one.node.memory,
                    gres=known.gres or one.node.gres,
                    is_sized=True,
                )
        HOSTS.require(len(self.nodes), "scontrol show node")

    def resolved(self) -> SlurmConf:
        """Return the configuration, with the nodes of node sets and partitions."""
        self._require_sizes()
        away = {name: self.down.get(name) or node.away for name, node in self.nodes.items()}
        usable = {name: node for name, node in self.nodes.items() if not away[name]}
        sets = self._members()
        ignored = [
            f"{counted([name for name in away if away[name] == state])} left out: State={state}"
            for state in sorted(set(away.values()) - {""})
        ]
        partitions, members = [], 0
        for content in self.partitions:
            name, place = content["partitionname"].text, content["partitionname"].place
            hosts = self._hosts_of(content, sets)
            unknown = [host for host in hosts if host not in self.nodes]
            if unknown and not self._has_dynamic_nodes:
                raise SwflowError(
                    f"{place}: partition {name}: no line NodeName={unknown[0]} ({len(unknown)} such nodes)"
                )
            if unknown:
                ignored.append(f"partition {name}: {counted(unknown)} left out: dynamic, sizes unknown{_SHOWN}")
            state = content["state"].text.upper() if "state" in content else "UP"
            is_up = state not in ("DOWN", "DRAIN", "INACTIVE")
            kept = tuple(host for host in dict.fromkeys(hosts) if host in usable) if is_up else ()
            partition = SlurmPartition(name, kept, content)
            members += len(partition.nodes)
            MEMBERS.require(members, str(place))
            partitions.append(partition)
            if not is_up:
                ignored.append(f"partition {name} left out: State={state}; expected State=UP if its jobs have to start")
            elif not partition.nodes:
                ignored.append(f"partition {name} has no nodes that are up{_SHOWN if self._has_dynamic_nodes else ''}")
        served = {name for one in partitions for name in one.nodes}
        if idle := [name for name in usable if name not in served]:
            ignored.append(f"{counted(idle)} left out: in no partition")
        if unsized := [name for name, node in usable.items() if name in served and not node.is_sized]:
            ignored.append(f"{counted(unsized)} counted with 1 processor: neither CPUs nor sockets are stated{_SHOWN}")
        values = {name: list(by_text.values()) for name, by_text in self.records.items()}
        return SlurmConf(self.options, usable, tuple(partitions), values, ignored)

    @property
    def _has_dynamic_nodes(self) -> bool:
        """Return whether nodes can exist that slurm.conf does not define."""
        return "maxnodecount" in self.options

    def _require_sizes(self) -> None:
        """Raise an error if nodes state their sizes themselves (``FastSchedule=0``), and slurm.conf does not."""
        fast = self.options.get("fastschedule")
        unsized = [name for name, node in self.nodes.items() if not node.is_sized and not node.away]
        if fast is not None and fast.text == "0" and unsized:
            raise SwflowError(
                f"{self.places[unsized[0]]}: {counted(unsized)} without size, which FastSchedule=0 takes from the "
                "nodes; expected CPUs=N: state the processors, or give --nodes with the output of `scontrol show node`"
            )

    def _members(self) -> dict[str, list[str]]:
        """Return the nodes of each node set: those named, and those with its feature."""
        having: dict[str, list[str]] = {}
        for name, node in self.nodes.items() if self.sets else ():
            for feature in node.features:
                having.setdefault(feature, []).append(name)
        found: dict[str, list[str]] = {}
        total = 0
        for content in self.sets:
            keyword = content["nodeset"]
            hosts = expand_hosts(content["nodes"].text, keyword.place) if _stated(content, "nodes") else []
            hosts += having.get(content["feature"].text, []) if "feature" in content else []
            found[keyword.text] = list(dict.fromkeys([*found.get(keyword.text, ()), *hosts]))
            total += len(hosts)
            MEMBERS.require(total, str(keyword.place))
        return found

    def _hosts_of(self, content: Mapping[str, Value], sets: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the nodes that a partition names, and the dynamic ones that joined it."""
        joined = self.joined.get(content["partitionname"].text, [])
        if not _stated(content, "nodes"):
            return list(joined)
        nodes = content["nodes"]
        if nodes.text.upper() == "ALL":
            return list(self.nodes)
        hosts = list[str]()
        for item in expand_hosts(nodes.text, nodes.place):
            hosts += self.nodes if item.upper() == "ALL" else sets.get(item, (item,))
            MEMBERS.require(len(hosts), str(nodes.place))
        return hosts + joined


#: How to state the sizes of nodes.
_SHOWN = "; state them with --nodes (the output of `scontrol show node`)"


def _stated(content: Mapping[str, Value], name: str) -> bool:
    """Return whether an option has a text other than an empty one or ``(null)``."""
    return name in content and content[name].text.strip() not in ("", "(null)")


def counted(names: Iterable[str]) -> str:
    """Return the number of nodes as text, with the name of the first one."""
    found = list(names)
    return f"{len(found):,} node{'s' * (len(found) > 1)} ({found[0]}{', …' * (len(found) > 1)})"


@dataclass(frozen=True)
class ShownNode:
    """A node that ``scontrol show node`` prints, with its partitions."""

    node: Node
    partitions: Sequence[str]
    place: Place


def read_shown_nodes(path: str | Path) -> dict[str, ShownNode]:
    """Read the output of ``scontrol show node``, text or JSON; raise `SwflowError` if a node has no CPUTot."""
    path = Path(path)
    text = read_file(path)
    found: dict[str, ShownNode] = {}
    for block in _shown_in_json(text, path) if text.lstrip().startswith("{") else _shown_in_text(text, path):
        name = block["nodename"]
        if "cputot" not in block:
            raise SwflowError(f"{name.place}: {name.text}: no CPUTot=; expected the output of `scontrol show node`")
        content = {key: value for key, value in block.items() if value.text not in ("", "(null)", "N/A")}
        content["cpus"] = content["cputot"]
        content["features"] = content.get("availablefeatures", content["cpus"]._replace(text=""))
        content.pop("state", None)  # the state of a moment
        members = content["partitions"].text.split(",") if "partitions" in content else []
        found[name.text] = ShownNode(_node(content), members, name.place)
    if not found:
        raise SwflowError(f"{path}: no NodeName=; expected the output of `scontrol show node`")
    return found


def _shown_in_text(text: str, path: Path) -> Iterator[dict[str, Value]]:
    """Yield the values of each node, which begins at ``NodeName=`` and has several lines."""
    block: dict[str, Value] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if "NodeName=" in line:
            if block:
                yield block
            block = {}
        for key, value in re.findall(r"(?<!\S)([A-Za-z]+)=(\S*)", line) if block or "NodeName=" in line else ():
            block.setdefault(key.lower(), Value(key, value, Place(path, number)))
    if block:
        yield block


#: The keys of a node in ``scontrol show node --json``, with those of its text.
_KEYS_OF_JSON = {
    "name": "NodeName", "cpus": "CPUTot", "real_memory": "RealMemory", "gres": "Gres", "features": "AvailableFeatures",
    "partitions": "Partitions", "boards": "Boards", "sockets": "Sockets", "cores": "CoresPerSocket",
    "threads": "ThreadsPerCore",
}  # fmt: skip


def _shown_in_json(text: str, path: Path) -> Iterator[dict[str, Value]]:
    """Yield the values of each node of ``scontrol show node --json``."""
    for content in parse_documents(text, str(path)):
        nodes = content.get("nodes") if isinstance(content, dict) else None
        for node in nodes if isinstance(nodes, list) else ():
            stated = {key: node[key] for key in _KEYS_OF_JSON if key in node} if isinstance(node, dict) else {}
            block = {}
            for key, value in stated.items():
                bare = value.get("number") if isinstance(value, dict) else value
                words = ",".join(map(str, bare)) if isinstance(bare, list) else str(bare if bare is not None else "")
                block[_KEYS_OF_JSON[key].lower()] = Value(_KEYS_OF_JSON[key], words, Place(path, 1))
            if block.get("nodename"):
                yield block


def _node(content: Mapping[str, Value]) -> Node:
    """Return the nodes of a line; like slurmd, count one CPU where the line states none."""
    name = content["nodename"]

    def number(option: str, default: int) -> int:
        return content[option].whole() if option in content else default

    sockets = number("sockets", 0) or number("boards", 1) * number("socketsperboard", 1)
    threads = sockets * number("corespersocket", 1) * number("threadspercore", 1)
    cpus = number("cpus", 0) or number("procs", 0) or threads
    sizes = {"cpus", "procs", "sockets", "boards", "socketsperboard", "corespersocket", "threadspercore"}
    state = content["state"].text.upper().rstrip("*") if "state" in content else "UNKNOWN"
    features = [content[option].text for option in ("feature", "features") if option in content]
    return Node(
        tuple(expand_hosts(name.text, name.place)), cpus, number("realmemory", 0),
        content["gres"].text if "gres" in content else "",
        number("weight", 1),
        frozenset(one.strip() for text in features for one in re.split(r"[,&|]", text) if one.strip()),
        not sizes.isdisjoint(content),
        state if state.split("+")[0] in ("DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE") else "",
    )  # fmt: skip


@cache
def _gpus(gres: str) -> int:
    """Return the GPUs in a node's generic resources."""
    return pl.select(gpus_of_gres(pl.lit(gres.lower()))).item() or 0


def seconds_of(value: Value) -> float:
    """
    Return a time of slurm.conf in seconds; minutes, ``minutes:seconds``, or ``days-hours`` with parts.

    Examples
    --------
    >>> where = Place(Path("slurm.conf"), 3)
    >>> [seconds_of(Value("MaxTime", text, where)) for text in ("90", "1:30:00", "7-0", "1-12:30", "UNLIMITED")]
    [5400.0, 5400.0, 604800.0, 131400.0, inf]
    """
    text = value.text.strip().upper()
    if text in ("UNLIMITED", "INFINITE", "-1"):
        return float("inf")
    found = None if "." in text else duration(text)
    if found is None:
        raise SwflowError(
            f"{value.place}: {value.name}={value.text}; expected a time such as 90 (minutes) or 7-0 (days)"
        )
    return found
