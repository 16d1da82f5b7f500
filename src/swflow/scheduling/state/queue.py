"""The queue: a tree over the ranks of queued jobs that finds the next job that may fit."""

from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record

#: A node of the tree: the least processors and the least length (of the planned run time, or the start of
#: the reservation) of the queued jobs below it.
NODE = record("length", "width")

#: The width of a node without jobs.
NO_JOB = 1 << 60

_BITS = 4
_FAN = 1 << _BITS


class Tree(NamedTuple):
    """Queued jobs by rank: ``nodes`` of all levels, ranks first, and where each level begins."""

    nodes: np.ndarray
    levels: np.ndarray
    job_at: np.ndarray
    formula: int  # the address of the order's formula if keys change with time; 0: the order is by rank
    is_plain: bool  # whether the formula mentions only `swflow.scheduling.orders.vocabulary.PLAIN` variables


def new_tree(keys: np.ndarray | None, jobs: int) -> tuple[Tree, np.ndarray]:
    """Return an empty tree, and the rank of each job: by its key, ties and without keys by index."""
    rank = job_at = np.arange(jobs)
    if keys is not None:
        job_at = np.argsort(np.where(np.isnan(keys), np.inf, keys), kind="stable").astype(np.int64)
        rank = np.empty(jobs, np.int64)
        rank[job_at] = np.arange(jobs)
    size = (max(jobs, 1) + _FAN - 1) >> _BITS
    levels = [0, size * _FAN]
    while size > 1:
        size = (size + _FAN - 1) >> _BITS
        levels.append(levels[-1] + size * _FAN)
    levels.append(levels[-1] + 1)  # the root
    nodes = np.full(levels[-1], np.array((np.inf, NO_JOB), NODE))
    return Tree(nodes, np.array(levels), job_at, 0, True), rank


def root_of(tree: Tree) -> Any:
    """Return the node above all queued jobs."""
    return tree.nodes[tree.nodes.size - 1]


def put(tree: Tree, rank: int, width: int, length: float) -> None:
    """Insert or change a job of the tree; ``NO_JOB`` and infinity remove it."""
    nodes, levels = tree.nodes, tree.levels
    lower = width <= nodes[rank].width and length <= nodes[rank].length
    nodes[rank].width = width
    nodes[rank].length = length
    here = rank
    if lower:  # no need to look at the neighbors
        for level in range(1, levels.size - 1):
            here >>= _BITS
            node = nodes[levels[level] + here]
            if node.width <= width and node.length <= length:
                return
            node.width = min(node.width, width)
            node.length = min(node.length, length)
        return
    for level in range(1, levels.size - 1):
        first = levels[level - 1] + (here & ~(_FAN - 1))
        here >>= _BITS
        least, shortest = nodes[first].width, nodes[first].length
        for place in range(first + 1, first + _FAN):
            least = min(least, nodes[place].width)
            shortest = min(shortest, nodes[place].length)
        node = nodes[levels[level] + here]
        if node.width == least and node.length == shortest:
            return
        node.width = least
        node.length = shortest


def following(tree: Tree, begin: int, narrow: int, wide: int, now: float, latest: float) -> int:
    """
    Return the first rank from ``begin`` on that may fit, or -1.

    A job may fit if it has at most ``narrow`` processors, or at most ``wide`` of them and
    ``now + length <= latest``.
    """
    nodes, levels = tree.nodes, tree.levels
    top = levels.size - 2
    level = 0
    here = begin
    while level < top and here & (_FAN - 1) == 0:
        here >>= _BITS
        level += 1
    while here < levels[level + 1] - levels[level]:
        node = nodes[levels[level] + here]
        if node.width <= narrow or (node.width <= wide and now + node.length <= latest):
            if level == 0:
                return here
            level -= 1
            here <<= _BITS
            continue
        here += 1
        while level < top and here & (_FAN - 1) == 0:
            here >>= _BITS
            level += 1
    return -1
