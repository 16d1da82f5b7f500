"""Read how many processors, nodes and GPUs a job of PBS has: every dialect states it in other keys."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from swflow.values import MOST_UNITS

_PLACE = re.compile(r"(?P<place>[0-9,\-]+)(?:\*(?P<times>[0-9]+))?(?![\w.*])")

#: Notes on jobs whose allocation is smaller than their request.
BELOW = "fewer processors allocated than requested (the allocation is taken)"
REQUEST_TAKEN = "exec_host has one processor per node, fewer than requested (the request is taken)"

_WHOLE = re.compile(r"[0-9]{0,15}")

#: A part of a chunk: an amount with a number, or anything else.
_CHUNK = r"(?:(?:n?cpus|n?gpus|ppn)=[0-9]{1,15}|(?!(?:n?cpus|n?gpus|ppn)=)[^:+#]*)"

#: What the values with numbers look like; the names of nodes and resources are not checked.
COUNTED = {
    **dict.fromkeys(
        ("resources_used.ncpus", "total_execution_slots", "unique_node_count", "Resource_List.ncpus",
         "Resource_List.ngpus", "Resource_List.size", "Resource_List.procs", "Resource_List.mppwidth",
         "Resource_List.mppdepth", "Resource_List.mppnppn"),
        _WHOLE,
    ),
    "Exit_status": re.compile(r"-?[0-9]{1,15}|"),
    **dict.fromkeys(
        ("Resource_List.select", "Resource_List.nodes"),
        re.compile(rf"{_CHUNK}(?:[:+]{_CHUNK})*(?:#.*)?"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Widths:
    """
    The size of a job; None is unknown.

    ``below`` is 1 if fewer processors were allocated than requested, and 2 if the list of hosts does not count
    processors, so that the request was taken. ``is_readable`` is False if the list of hosts is invalid.
    """

    allocated: int | None
    requested: int | None
    nodes: int | None
    gpus: int | None
    below: int | None
    is_readable: bool


def widths(values: Mapping[str, str]) -> Widths:
    """
    Return the size of a job.

    The allocation is the largest of those in ``exec_host``, ``exec_vnode`` and ``total_execution_slots``, else
    ``resources_used.ncpus``. The request is the largest of those in ``Resource_List``: ``select`` (PBS Pro), ``nodes``
    and ``procs`` (Torque), ``ncpus``, ``size``, and ``mppwidth`` times ``mppdepth`` (Cray, where the hosts are those of
    the login nodes); or ``req_information`` (Torque 6).

    Examples
    --------
    >>> cray = {"exec_host": "nid7/17", "Resource_List.mppwidth": "64", "Resource_List.ncpus": "1"}
    >>> torque = {"exec_host": "n1/0-7+n2/0-7", "Resource_List.nodes": "2:ppn=8"}
    >>> [(found.allocated, found.requested, found.nodes) for found in map(widths, (cray, torque))]
    [(64, 64, None), (16, 16, 2)]
    """
    hosts = [(parts[-2], parts[-1]) for parts in _on_nodes(values.get("exec_host") or values.get("exec_host2") or "")]
    places = [_count_places(_PLACE.match(place)) for _, place in hosts]
    is_readable = None not in places
    on_hosts = sum(filter(None, places)) if is_readable else 0
    vnodes = _of_vnodes(values.get("exec_vnode", ""), "ncpus")
    on_compute_nodes = _mpp(values)
    requested = _requested(values, on_compute_nodes)
    allocated = max(on_hosts, sum(vnodes.values()), whole(values.get("total_execution_slots")) or 0, on_compute_nodes)
    allocated = allocated or whole(values.get("resources_used.ncpus")) or 0
    below = None
    if requested and 0 < allocated < requested:
        is_counted = bool(vnodes) or "total_execution_slots" in values or any(re.search(r"[*,-]", p) for _, p in hosts)
        is_counted |= len(hosts) > len({node for node, _ in hosts}) or not is_readable
        used = whole(values.get("resources_used.ncpus")) or 0
        below = 1 if is_counted or not hosts or used >= allocated > 1 else 2
        allocated = allocated if below == 1 else requested
    # Torque states GPUs with the nodes.
    gpus = (
        whole(values.get("Resource_List.ngpus"))
        or _in_chunks(values.get("Resource_List.select", ""), "ngpus", missing=0)
        or _in_chunks(values.get("Resource_List.nodes", ""), "gpus", missing=0)
        or sum(_of_vnodes(values.get("exec_vnode", ""), "ngpus").values())
        or sum(_count_places(_PLACE.match(parts[-1])) or 0 for parts in _on_nodes(values.get("exec_gpus", "")))
    )
    names = {node for node, _ in hosts} | {name.partition("[")[0] for name in vnodes if not hosts}
    nodes = max(0 if on_compute_nodes else len(names), whole(values.get("unique_node_count")) or 0)
    nodes = nodes or _mpp_nodes(values) or (0 if on_compute_nodes else whole(values.get("Resource_List.nodect"))) or 0
    return Widths(_bounded(allocated), _bounded(requested), nodes or None, _bounded(gpus), below, is_readable)


_NUMBER = re.compile(r"\s*-?[0-9]{1,15}\s*")


def whole(text: str | None) -> int | None:
    """Return a whole number of at most 15 digits; None for other text."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def _on_nodes(hosts: str) -> Iterator[list[str]]:
    """Yield the parts of ``exec_host``, such as ``n1/0-7``, split at the slashes; without those that have none."""
    for part in hosts.split("+"):
        if "/" in part:
            yield part.split("/")


def _count_places(match: re.Match[str] | None) -> int | None:
    """Count processors of ``node/0``, ``node/0-7``, ``node/1,3`` (Torque) and ``node/0*8`` (PBS); None: unreadable."""
    if match is None:
        return None
    if match["times"]:
        return whole(match["times"])
    count = 0
    for part in match["place"].split(","):
        low, dash, high = part.partition("-")
        first, last = whole(low), whole(high if dash else low)
        if first is None or last is None or last < first:
            return None
        count += last - first + 1
    return count


def _of_vnodes(text: str, key: str) -> dict[str, int]:
    """
    Return the amount of one key on each node in ``exec_vnode``.

    Examples
    --------
    >>> _of_vnodes("(n1:ncpus=8:mem=4gb)+(n2[0]:ncpus=4+n2[1]:ncpus=4)", "ncpus")
    {'n1': 8, 'n2[0]': 4, 'n2[1]': 4}
    """
    found: dict[str, int] = {}
    if not text:
        return found
    for chunk in re.sub(r"[()]", "", text).split("+"):
        name, *options = chunk.split(":")
        count = next((whole(option.partition("=")[2]) for option in options if option.startswith(f"{key}=")), None)
        if name and count:
            found[name] = found.get(name, 0) + count
    return found


def _mpp(values: Mapping[str, str]) -> int:
    """Return the processors on the compute nodes of a Cray; 0 without any."""
    width = whole(values.get("Resource_List.mppwidth")) or whole(values.get("Resource_List.size")) or 0
    nodes, each = (whole(values.get(f"Resource_List.{key}")) for key in ("mppnodect", "mppnppn"))
    width = width or (nodes or 0) * (each or 1)
    return width * max(whole(values.get("Resource_List.mppdepth")) or 1, 1)


def _mpp_nodes(values: Mapping[str, str]) -> int:
    """Return the compute nodes of a Cray; 0 if they are not stated, since the hosts are login nodes."""
    width, each, nodes = (whole(values.get(f"Resource_List.mpp{key}")) or 0 for key in ("width", "nppn", "nodect"))
    return nodes or (-(-width // each) if each > 0 else 0)


def _requested(values: Mapping[str, str], on_compute_nodes: int) -> int | None:
    """Return the largest number of processors that any key of the request states, or that of a Cray's nodes."""
    select, nodes = values.get("Resource_List.select"), values.get("Resource_List.nodes")
    nodes = nodes or values.get("Resource_List.neednodes")
    found = [on_compute_nodes, whole(values.get("Resource_List.procs")) or 0, _of_tasks(values)]
    found.append(whole(values.get("Resource_List.ncpus")) or 0)
    if select:
        found.append(_in_chunks(select, "ncpus", missing=1))
    if nodes and not nodes.isdigit():
        found.append(_in_chunks(nodes, "ppn", missing=1))
    elif nodes and max(found) == 0:
        found.append((whole(nodes) or 0) * (whole(values.get("Resource_List.ppn")) or 1))
    return max(found) or None


def _of_tasks(values: Mapping[str, str]) -> int:
    """Return the processors of ``req_information.task_count.0=2 req_information.lprocs.0=4`` (Torque 6); 0: none."""
    total = 0
    for key, text in values.items() if "task_count" in " ".join(values) else ():
        if "task_count" in key and re.fullmatch(r"(?:Resource_List\.)?req_information\.task_count\.[0-9]+", key):
            each = whole(values.get(key.replace("task_count", "lprocs"))) or 1
            total += (whole(text) or 0) * each
    return total


@lru_cache(maxsize=10_000)  # many jobs make the same request
def _in_chunks(text: str, key: str, missing: int) -> int:
    """Return the amount of one key in all chunks, such as ``2:ncpus=8:ngpus=4+1:ncpus=4``."""
    total = 0
    for chunk in text.partition("#")[0].split("+"):  # Torque appends #shared or #excl
        first, *options = chunk.split(":")
        options = [first, *options]  # a chunk without a number is one
        each = next((whole(option.partition("=")[2]) for option in options if option.startswith(f"{key}=")), None)
        count = whole(first)
        total += (1 if count is None else count) * (each or missing)
    return total


_SIZE = re.compile(r"(?i)([0-9]{1,15})([kmgtp]?)(b|w|)")


@lru_cache(maxsize=10_000)
def memory_of_chunks(text: str) -> str | None:
    """
    Return the memory of all chunks of ``select`` or ``exec_vnode``, as text; None if no chunk has a readable one.

    Examples
    --------
    >>> memory_of_chunks("2:ncpus=8:mem=16gb+1:ncpus=1:mem=512mb"), memory_of_chunks("2:ncpus=8")
    ('34078720kb', None)
    >>> memory_of_chunks("(n1:ncpus=8:mem=16777216kb)+(n2:ncpus=8:mem=16777216kb)")
    '33554432kb'
    """
    total = 0
    for chunk in re.sub(r"[()]", "", text.partition("#")[0]).split("+"):
        first, *options = chunk.split(":")
        size = next((_SIZE.fullmatch(option[4:]) for option in (first, *options) if option.startswith("mem=")), None)
        if size:
            each = int(size[1]) * 1024 ** " kmgtp".index(size[2].lower() or " ") * (8 if size[3] in ("w", "W") else 1)
            count = whole(first)
            total += each * (1 if count is None else count)
    return f"{-(-total // 1024)}kb" if total else None


def _bounded(count: int | None) -> int | None:
    """Return a count; None for 0, and for one that no machine has."""
    return count if count and abs(count) <= MOST_UNITS else None
