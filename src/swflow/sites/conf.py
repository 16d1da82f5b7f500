"""Read slurm.conf: options, nodes and partitions, each with the file and line that states it."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from swflow.errors import SwflowError, shown
from swflow.files.reading import read_text
from swflow.log.importers.slurm import duration, gpus_of_gres
from swflow.sites.include import Includes
from swflow.values import Limit, whole_number

#: Keywords that begin a line with several pairs; the others have one pair a line.
_RECORDS = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")

#: Limits of the hosts of a host list or a site, and of the sum of the nodes of all partitions.
HOSTS = Limit(1_000_000, "nodes")
MEMBERS = Limit(10_000_000, "nodes in partitions")


class Place(NamedTuple):
    """A line of a file."""

    file: Path
    line: int

    def __str__(self) -> str:
        """Return ``file:line`` for messages."""
        return f"{self.file}:{self.line}"


class Value(NamedTuple):
    """The text of an option, how the file spells its name, and where it stands."""

    name: str
    text: str
    place: Place

    def whole(self) -> int:
        """Return the whole number; raise an error if the text is another one."""
        return whole_number(self.text, f"{self.place}: {self.name}")


@dataclass(frozen=True)
class Node:
    """Nodes of one line: their names, CPUs and memory (MB) of each, GPUs and weight of each, and features."""

    names: tuple[str, ...]
    cpus: int
    memory: int
    gpus: int
    weight: int
    features: frozenset[str]
    is_down: bool


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
    each of their values.
    """

    options: Mapping[str, Value]
    nodes: Mapping[str, Node]
    partitions: tuple[SlurmPartition, ...]
    records: Mapping[str, Sequence[Value]]

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


def read_slurm_conf(path: str | Path) -> SlurmConf:
    """
    Read a slurm.conf with the files that it includes.

    Names of options are compared in lower case. Lines with ``NodeName=DEFAULT`` or ``PartitionName=DEFAULT`` set the
    defaults of the following lines. The last line of an option of the cluster counts, as in Slurm. (SchedMD, slurm.conf
    manual.)

    Raise `SwflowError`, with file and line, if a line is neither a comment, an include, nor pairs ``Option=Value``; if
    a node or partition has no valid size; or if a partition names nodes that are not defined.
    """
    path = Path(path)
    options: dict[str, Value] = {}
    nodes: dict[str, Node] = {}
    sets: dict[str, tuple[str, ...]] = {}
    stated: list[tuple[dict[str, Value], Place]] = []
    records: dict[str, dict[str, Value]] = {}  # the values of each option by text
    defaults: dict[str, dict[str, Value]] = {}
    down: set[str] = set()
    in_sets = 0
    for place, pairs in _lines(path, Includes(path), 0):
        keyword = pairs[0].name.lower()
        if keyword not in _RECORDS:
            options |= {value.name.lower(): value for value in pairs}
            continue
        content = {value.name.lower(): value for value in pairs}
        for name in list(content)[1:]:
            records.setdefault(f"{keyword}.{name}", {}).setdefault(content[name].text, content[name])
        if pairs[0].text.upper() == "DEFAULT":
            defaults[keyword] = defaults.get(keyword, {}) | content
            continue
        content = defaults.get(keyword, {}) | content
        if keyword == "nodename":
            node = _node(content, place)
            nodes.update(dict.fromkeys(node.names, node))
            HOSTS.require(len(nodes), str(place))
        elif keyword == "nodeset":
            sets[pairs[0].text] = _members(content, nodes, place)
            in_sets += len(sets[pairs[0].text])
            MEMBERS.require(in_sets, str(place))
        elif keyword == "downnodes":
            down |= set(expand_hosts(pairs[0].text, place))
            HOSTS.require(len(down), str(place))
        elif keyword == "partitionname":
            stated.append((content, place))
    usable = {name: node for name, node in nodes.items() if name not in down and not node.is_down}
    partitions: list[SlurmPartition] = []
    members = 0
    for content, place in stated:
        partitions.append(_partition(content, place, nodes, usable, sets))
        members += len(partitions[-1].nodes)
        MEMBERS.require(members, str(place))
    if not partitions:
        raise SwflowError(f"{path}: no line PartitionName=…; expected a slurm.conf with nodes and partitions")
    values = {name: list(by_text.values()) for name, by_text in records.items()}
    return SlurmConf(options, usable, tuple(partitions), values)


def read_file(path: Path) -> str:
    """Return the text of a file of the site; raise `SwflowError` if it cannot be read."""
    return read_text(path, errors="replace")


def _lines(path: Path, includes: Includes, depth: int) -> Iterator[tuple[Place, list[Value]]]:
    """Yield the pairs of each logical line, with included files in their place."""
    begin = 1
    parts: list[str] = []
    for number, raw in enumerate([*read_file(path).splitlines(), ""], 1):  # a last line can end in a backslash
        begin = begin if parts else number
        line = re.split(r"(?<!\\)#", raw, maxsplit=1)[0].replace(r"\#", "#").rstrip()
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        line, parts, place = " ".join([*parts, line]).strip(), [], Place(path, begin)
        if not line:
            continue
        included = re.fullmatch(r"include\s+(\S+)", line, re.IGNORECASE)
        if included is None:
            pairs = _pairs(line, place, is_named=depth == 0)
            if pairs[0].name.lower() == "clustername":
                includes.cluster = pairs[0].text
            yield place, pairs
            continue
        for file in includes.files_of(included[1], place, depth):
            yield from _lines(file, includes, depth + 1)


_PAIR = re.compile(r"""([\w-]+)\s*[+-]?=\s*("[^"]*"|'[^']*'|[^\s"']*)\s*""")


def _pairs(line: str, place: Place, is_named: bool) -> list[Value]:
    """Return the pairs of a line; errors do not show the content of a file that the user has not named."""
    found, at = [], 0
    while at < len(line):
        pair = _PAIR.match(line, at)
        if pair is None:
            shown = f"{line[at : at + 60]!r}" if is_named else "invalid line"
            raise SwflowError(f"{place}: {shown}; expected Option=Value or a comment (#)")
        found.append(Value(pair[1], pair[2].strip("\"'"), place))
        at = pair.end()
    return found


def expand_hosts(text: str, place: Place) -> list[str]:
    """
    Return the hosts of a host list.

    Examples
    --------
    >>> expand_hosts("gpu[1-2],n[08-10,12],r[1-2]c[0-1]", Place(Path("slurm.conf"), 1))
    ['gpu1', 'gpu2', 'n08', 'n09', 'n10', 'n12', 'r1c0', 'r1c1', 'r2c0', 'r2c1']
    """
    hosts: list[str] = []
    for item in re.sub(r"\[[^\]]*\]", lambda found: found[0].replace(",", ";"), text).split(","):
        parts = re.split(r"\[([^\]]*)\]", item.strip())
        if any("[" in part or "]" in part for part in parts) or not item.strip():
            raise SwflowError(f"{place}: {shown(text)}; expected a host list such as n[001-128],gpu[1-4]")
        ranges = [_ranges(part, text, place) for part in parts[1::2]]
        count = math.prod(sum(last - first + 1 for first, last, _ in numbers) for numbers in ranges)
        HOSTS.require(len(hosts) + count, str(place))
        spelled = [[f"{number:0{width}d}" for first, last, width in numbers for number in range(first, last + 1)]
                   for numbers in ranges]  # fmt: skip
        fixed = parts[::2]
        hosts += [
            "".join(itertools.chain.from_iterable(zip(fixed, (*names, ""), strict=True)))
            for names in itertools.product(*spelled)
        ]
    return hosts


def _ranges(text: str, hosts: str, place: Place) -> list[tuple[int, int, int]]:
    """Return first and last number of each range between two brackets, separated by ``;``, and its digits."""
    found = []
    for part in text.split(";"):
        ends = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part.strip())
        if ends is None or (ends[2] and int(ends[2]) < int(ends[1])):
            raise SwflowError(f"{place}: {shown(hosts)}; expected ranges such as [001-128,130] in a host list")
        found.append((int(ends[1]), int(ends[2] or ends[1]), len(ends[1])))
    return found


def _node(content: Mapping[str, Value], place: Place) -> Node:
    """Return the nodes of a line; like slurmd, count one CPU and no memory where the line states none."""

    def number(name: str, default: int) -> int:
        return content[name].whole() if name in content else default

    sockets = number("sockets", 0) or number("boards", 1) * number("socketsperboard", 1)
    threads = sockets * number("corespersocket", 1) * number("threadspercore", 1)
    cpus = number("cpus", 0) or number("procs", 0) or threads
    state = content["state"].text.upper() if "state" in content else "UNKNOWN"
    features = [content[name].text for name in ("feature", "features") if name in content]
    return Node(
        tuple(expand_hosts(content["nodename"].text, place)), cpus, number("realmemory", 1),
        _gpus(content["gres"].text) if "gres" in content else 0,
        number("weight", 1),
        frozenset(name for text in features for name in re.split(r"[,&|]", text) if name),
        state.split("+")[0] in ("DOWN", "DRAIN", "FAIL", "FUTURE"),
    )  # fmt: skip


@cache
def _gpus(gres: str) -> int:
    """Return the GPUs in a node's generic resources."""
    return pl.select(gpus_of_gres(pl.lit(gres.lower()))).item() or 0


def _members(content: Mapping[str, Value], nodes: Mapping[str, Node], place: Place) -> tuple[str, ...]:
    """Return the nodes of a node set: those named, and those with its feature."""
    named = expand_hosts(content["nodes"].text, place) if "nodes" in content else []
    feature = content["feature"].text if "feature" in content else None
    return tuple(dict.fromkeys([*named, *(name for name, node in nodes.items() if feature in node.features)]))


def _partition(
    content: Mapping[str, Value],
    place: Place,
    nodes: Mapping[str, Node],
    usable: Mapping[str, Node],
    sets: Mapping[str, tuple[str, ...]],
) -> SlurmPartition:
    """Return a partition with those of its nodes that are not down."""
    name, text = content["partitionname"].text, content["nodes"].text if "nodes" in content else ""
    items = expand_hosts(text, place) if text and text.upper() != "ALL" else []
    members = list(nodes) if text.upper() == "ALL" else [host for item in items for host in sets.get(item, (item,))]
    missing = [host for host in members if host not in nodes]
    if missing:
        raise SwflowError(f"{place}: partition {name}: no line NodeName={missing[0]} ({len(missing)} such nodes)")
    return SlurmPartition(name, tuple(host for host in dict.fromkeys(members) if host in usable), content)


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
