"""The order of the queue: keys, and a tree over the ranks that finds the next job that may fit."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from swflow.compilation import before_numba
from swflow.kernels import Handle, Kernel, call_formula, lean

#: A node of the tree: the least processors and the least length (of the planned run time, or the start of
#: the reservation) of the queued jobs below it.
NODE = np.dtype([("width", np.int64), ("length", np.float64)])

#: The processors of a node without jobs.
NOBODY = 1 << 60

_BITS = 4
_FAN = 1 << _BITS


class Tree(NamedTuple):
    """Queued jobs by rank: ``nodes`` of all levels, ranks first, and where each level begins."""

    nodes: np.ndarray
    levels: np.ndarray
    job_at: np.ndarray


def key_function(function: Callable[..., float], cache: bool = False) -> Callable[..., float]:
    """
    Compile a user's formula so that the kernels can call it without being compiled again.

    Parameters
    ----------
    function : callable
        A plain Python function that numba can compile, of nine floats: now, submit time, planned run time,
        processors, user, group, queue, executable, job id. Its value is the key; NaN counts as infinity.
    cache : bool
        Whether to keep what is compiled; the function is then one of a file.

    Returns
    -------
    callable
        A C callback, for `swflow.scheduling.engine.simulation.simulate`. A division by zero gives infinity or NaN.

    Examples
    --------
    >>> key = key_function(lambda now, submit, planned, processors, user, group, queue, executable, job: -planned)
    >>> key.ctypes(0, 0, 60, 1, 0, 0, 0, 0, 0)
    -60.0
    """
    return callback(function, 9, cache)


def key_function_of_owners(function: Callable[..., float], cache: bool = False) -> Callable[..., float]:
    """Compile a formula that takes partition, usage and shares of the job's owners besides, as `key_function` does."""
    return callback(function, 15, cache)


def callback(function: Callable[..., float], arguments: int, cache: bool = False) -> Callable[..., float]:
    """Compile a function of so many floats as a C callback; a division by zero gives infinity or NaN."""
    before_numba()
    from numba import cfunc, types

    signature = types.float64(*[types.float64] * arguments)
    compiled: Callable[..., float] = cfunc(signature, error_model="numpy", cache=cache)(function)
    return compiled


def new_tree(keys: np.ndarray | None, jobs: int) -> tuple[Tree, np.ndarray]:
    """
    Make an empty tree.

    Parameters
    ----------
    keys : float64 array of shape (jobs,), or None
        The smallest is served first; ties by index. None is the order of arrival.
    jobs : int
        Number of jobs.

    Returns
    -------
    Tree, int64 array of shape (jobs,)
        The tree, and the rank of each job.
    """
    job_at = np.arange(jobs)
    rank = job_at
    if keys is not None:
        job_at = np.argsort(np.where(np.isnan(keys), np.inf, keys), kind="stable").astype(np.int64)
        rank = np.empty(jobs, np.int64)
        rank[job_at] = np.arange(jobs)
    levels = [0]
    size = max(jobs, 1)
    while True:
        size = (size + _FAN - 1) >> _BITS
        levels.append(levels[-1] + size * _FAN)
        if size == 1:
            break
    levels.append(levels[-1] + 1)  # the root
    nodes = np.empty(levels[-1], NODE)
    nodes["width"] = NOBODY
    nodes["length"] = np.inf
    return Tree(nodes, np.array(levels), job_at), rank


@lean
def put(nodes: np.ndarray, levels: np.ndarray, rank: int, width: int, length: float) -> None:
    """Put a job into the tree, or change it there; ``NOBODY`` and infinity take it out."""
    lower = width <= nodes[rank].width and length <= nodes[rank].length
    nodes[rank].width = width
    nodes[rank].length = length
    here = rank
    if lower:  # no need to look at the neighbours
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


@lean
def following(
    nodes: np.ndarray, levels: np.ndarray, begin: int, narrow: int, wide: int, now: float, latest: float
) -> int:
    """
    Return the first rank from ``begin`` on that may fit, or -1.

    A job may fit if it has at most ``narrow`` processors, or at most ``wide`` of them and
    ``now + length <= latest``.
    """
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


@lean
def dynamic_key(
    formula: int, now: float, submit: float, planned: float, processors: int, attributes: np.ndarray
) -> float:
    """Return the key of a job by a formula's address; ``attributes`` are user, group, queue, executable, job id."""
    known = (attributes[0], attributes[1], attributes[2], attributes[3], attributes[4])
    key = call_formula(formula, (now, submit, planned, float(processors), *known))
    return math.inf if math.isnan(key) else key


def keys_of(
    function: Any,
    submit: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    attributes: np.ndarray,
) -> np.ndarray:
    """
    Return the keys of all jobs under a formula that does not change while they wait.

    Parameters
    ----------
    function : numba cfunc
        As `key_function` makes it.
    submit, planned, processors : float64 array of shape (jobs,)
        Submit times and planned run times in seconds, and processors.
    attributes : float64 array of shape (jobs, 5)
        User, group, queue, executable and job id.

    Returns
    -------
    float64 array of shape (jobs,)
        The smallest is served first.
    """
    keys = np.empty(submit.size)
    _FILL_KEYS(function.address, Handle([_Columns(submit, planned, processors, attributes, keys)]))
    return keys


class _Columns(NamedTuple):
    """What a formula takes of all jobs, and what it gives."""

    submit: np.ndarray
    planned: np.ndarray
    processors: np.ndarray
    attributes: np.ndarray
    keys: np.ndarray


def _fill_keys(formula: int, jobs: _Columns) -> int:
    for job in range(jobs.keys.size):
        at = jobs.attributes[job]
        known = (at[0], at[1], at[2], at[3], at[4])
        submit = jobs.submit[job]
        jobs.keys[job] = call_formula(formula, (submit, submit, jobs.planned[job], float(jobs.processors[job]), *known))
    return 0


_FILL_KEYS = Kernel(_fill_keys)
