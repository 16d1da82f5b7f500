"""Names of workloads: the log, the steps applied to it, and the number of the replicate."""

import re
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from swflow.errors import SwflowError

_REPLICATE = re.compile(r"@([1-9][0-9]*)(?=\+|\Z)")
_RANGE = re.compile(r"@([1-9][0-9]*)-([1-9][0-9]*)(?=[+/.]|\Z)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: In the options of a step that creates replicates: the name of the workload that a replicate is created from.
PARENT = "{parent}"

#: The longest name, in bytes: file systems allow 255, and endings and temporary files need some of them.
LONGEST_NAME = 200


def check_name(name: str, where: str) -> str:
    """
    Return a name if it can be a part of file names.

    Raises
    ------
    SwflowError
        If it contains other characters than letters, digits, ``.``, ``_`` and ``-``, or is too long.

    Examples
    --------
    >>> check_name("../easy", "--scheduler")
    Traceback (most recent call last):
    swflow.errors.SwflowError: --scheduler: invalid name '../easy'; expected letters, digits, '.', '_' and '-'
    """
    if not _NAME.fullmatch(name):
        raise SwflowError(f"{where}: invalid name {name[:200]!r}; expected letters, digits, '.', '_' and '-'")
    return check_length(name, where)


def check_length(name: str, where: str) -> str:
    """Return a name if it is short enough for a file name."""
    if len(name.encode()) > LONGEST_NAME:
        raise SwflowError(f"{where}: {name[:60]}… has {len(name)} characters; expected at most {LONGEST_NAME}")
    return name


def log_of(workload: str) -> str:
    """Return the log of a workload."""
    return workload.partition("+")[0]


def steps_of(workload: str) -> list[str]:
    """Return the steps that were applied to the log, in order, each with its replicate number, if any."""
    return workload.split("+")[1:]


def split_step(step: str) -> tuple[str, int | None]:
    """
    Return the name of a step in the config, and the number of the replicate.

    Examples
    --------
    >>> split_step("memory-high@3"), split_step("first-1000")
    (('memory-high', 3), ('first-1000', None))
    """
    found = _REPLICATE.search(step)
    return (step[: found.start()], int(found[1])) if found else (step, None)


def recipe_of(workload: str) -> str:
    """
    Return the name of a workload without the numbers of replicates.

    Examples
    --------
    >>> recipe_of("KTH-SP2+first-10000+memory-high@3")
    'KTH-SP2+first-10000+memory-high'
    """
    return _REPLICATE.sub("", workload)


def replicate_of(workload: str) -> int | None:
    """
    Return the replicate number of a workload; None if it has none.

    Examples
    --------
    >>> replicate_of("KTH-SP2+scaled-1024@12+memory-high@12"), replicate_of("KTH-SP2")
    (12, None)
    """
    return split_step(workload)[1]


def first_replicates(workloads: Iterable[str]) -> set[str]:
    """
    Return the workloads without replicates after the first of each recipe.

    Examples
    --------
    >>> sorted(first_replicates(["KTH-SP2", "KTH-SP2+moldable@3", "KTH-SP2+moldable@2"]))
    ['KTH-SP2', 'KTH-SP2+moldable@2']
    """
    first: dict[tuple[str, bool], str] = {}
    for workload in sorted(workloads, key=lambda name: (replicate_of(name) or 0, name)):
        first.setdefault((recipe_of(workload), replicate_of(workload) is None), workload)
    return set(first.values())


def parent_of(workload: str) -> str:
    """
    Return the workload to which the last step of a workload is applied.

    Examples
    --------
    >>> parent_of("KTH-SP2+first-10000+memory-high@3")
    'KTH-SP2+first-10000'
    """
    return workload.rpartition("+")[0]


def with_parents(workloads: Iterable[str]) -> set[str]:
    """
    Return workloads and all those that they are made from.

    Examples
    --------
    >>> sorted(with_parents(["KTH-SP2+first+moldable@2"]))
    ['KTH-SP2', 'KTH-SP2+first', 'KTH-SP2+first+moldable@2']
    """
    return {name for workload in workloads for name in accumulate(workload.split("+"), "{}+{}".format)}


def expand(text: str) -> list[str]:
    """
    Return the names or paths of all replicates in a range, such as ``@2-3``.

    Examples
    --------
    >>> expand("runs/KTH-SP2+scaled@2-3+memory@2-3.parquet")
    ['runs/KTH-SP2+scaled@2+memory@2.parquet', 'runs/KTH-SP2+scaled@3+memory@3.parquet']
    >>> expand("KTH-SP2+scaled@2.parquet")
    ['KTH-SP2+scaled@2.parquet']
    """
    found = _RANGE.search(text)
    if not found:
        return [text]
    return [_RANGE.sub(f"@{number}", text) for number in range(int(found[1]), int(found[2]) + 1)]


def worth_comparing(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """
    Return whether a comparison of two runs, given by ``workload`` and ``scheduler``, answers one question.

    The runs must have the same log, and also the same workload or scheduler, unless one is the recorded schedule
    (``log``). Replicates must have the same number.

    Examples
    --------
    >>> recorded = {"workload": "KTH-SP2", "scheduler": "log"}
    >>> easy, fcfs = ({"workload": "KTH-SP2+ran", "scheduler": name} for name in ("easy", "fcfs"))
    >>> worth_comparing(recorded, easy), worth_comparing(easy, fcfs)
    (True, True)
    >>> worth_comparing(easy, fcfs | {"workload": "KTH-SP2"})
    False
    """
    logs = {log_of(run["workload"]) for run in (first, second)}
    numbers = {replicate_of(run["workload"]) for run in (first, second)} - {None}
    if len(numbers) > 1:
        return False
    same = first["workload"] == second["workload"] or first["scheduler"] == second["scheduler"]
    return len(logs) == 1 and (same or "log" in (first["scheduler"], second["scheduler"]))
