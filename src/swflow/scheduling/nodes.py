"""Groups of nodes, as options give them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from swflow.errors import SwflowError
from swflow.scheduling.option_checks import in_ranges, positions_of
from swflow.scheduling.option_kinds import Unchecked


def processors_on(groups: Iterable[Mapping[str, Any]]) -> int:
    """Return the processors of groups of nodes."""
    return sum(group["count"] * group["processors"] for group in groups)


def units_on(groups: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """
    Return the units of each resource of groups of nodes, sorted by name.

    Examples
    --------
    >>> units_on([{"count": 2, "processors": 4, "resources": {"gpus": 8}}, {"count": 9, "processors": 4}])
    {'gpus': 16}
    """
    names = sorted({name for group in groups for name in group.get("resources", ())})
    return {name: sum(one["count"] * one.get("resources", {}).get(name, 0) for one in groups) for name in names}


def away_in(window: Mapping[str, Any], sizes: np.ndarray) -> np.ndarray:
    """Return which nodes are unavailable in a window: those that it names, or the last ones with its processors."""
    if "nodes" not in window:
        last, processors = np.cumsum(sizes[::-1])[::-1], window["processors"]
        if processors not in last:
            raise SwflowError(
                f"unavailable: processors: {processors:,}; expected those of whole nodes, of which the last has "
                f"{last[-1]:,} and all have {last[0]:,}; or name nodes, such as nodes: 5-8"
            )
        return last <= processors
    positions = np.array(positions_of(str(window["nodes"]), "unavailable: nodes"))
    if positions.max() > sizes.size:
        raise SwflowError(f"unavailable: nodes: {positions.max():,}; expected positions from 1 to {sizes.size:,}")
    return np.isin(np.arange(sizes.size) + 1, positions)


def with_counts(options: Unchecked, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """
    Return options with other counts of their groups of nodes, and windows of the same nodes.

    Groups without nodes are left out. A group of which all nodes are in a window remains in it.

    Examples
    --------
    >>> nodes, windows = [{"count": 2, "processors": 4}, {"count": 3, "processors": 4}], [{"nodes": "2,4"}]
    >>> with_counts({"nodes": nodes, "unavailable": windows}, [nodes[0] | {"count": 1}, nodes[1]])["unavailable"]
    [{'nodes': '3'}]
    """
    counts, windows = [group["count"] for group in options["nodes"]], []
    sizes = np.repeat([group["processors"] for group in options["nodes"]], counts)
    for window in options.get("unavailable") or ():
        away = []
        for old, group in zip(np.split(away_in(window, sizes), np.cumsum(counts)[:-1]), groups, strict=True):
            away.append(np.full(group["count"], old.all()))
            away[-1][: old.size] = old[: group["count"]]
        positions = np.flatnonzero(np.concatenate(away)) + 1
        if positions.size:
            times = {key: value for key, value in window.items() if key != "processors"}
            windows.append({**times, "nodes": in_ranges(positions.tolist())})
    found = {**options, "nodes": [group for group in groups if group["count"]]}
    return found | ({"unavailable": windows} if options.get("unavailable") else {})
