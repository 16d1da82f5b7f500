"""Names of workloads: the log, the steps applied to it, and which replicate of a random step it is."""

import re
from collections.abc import Iterable, Iterator

from swflow.errors import SwflowError

_REPLICATE = re.compile(r"@([1-9][0-9]*)(?=\+|\Z)")
_RANGE = re.compile(r"@([1-9][0-9]*)-([1-9][0-9]*)(?=[+/.]|\Z)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: File systems take names of 255 bytes; endings, and marks of files in the making, need some of them.
LONGEST_NAME = 200


def check_name(name: str, where: str) -> str:
    """
    Return a name that becomes a part of files' names, if it can be one.

    Raises
    ------
    SwflowError
        If it has other characters than letters, digits, ``.``, ``_`` and ``-``, or is too long.

    Examples
    --------
    >>> check_name("../easy", "--scheduler")
    Traceback (most recent call last):
    swflow.errors.SwflowError: --scheduler: a name is letters, digits, '.', '_' and '-', not '../easy'
    """
    if not _NAME.fullmatch(name):
        raise SwflowError(f"{where}: a name is letters, digits, '.', '_' and '-', not {name[:200]!r}")
    return check_length(name, where)


def check_length(name: str, where: str) -> str:
    """Return a name that is short enough for a file's."""
    if len(name.encode()) > LONGEST_NAME:
        raise SwflowError(f"{where}: {name[:60]}… is {len(name)} characters long; use at most {LONGEST_NAME}")
    return name


def log_of(workload: str) -> str:
    """Return the log that a workload comes from."""
    return workload.partition("+")[0]


def steps_of(workload: str) -> list[str]:
    """Return the steps that were applied to the log, in order, each with its replicate if it has one."""
    return workload.split("+")[1:]


def split_step(step: str) -> tuple[str, int | None]:
    """
    Return the name of a step as the config knows it, and the number of the replicate.

    Examples
    --------
    >>> split_step("memory-high@3"), split_step("first-1000")
    (('memory-high', 3), ('first-1000', None))
    """
    found = _REPLICATE.search(step)
    return (step[: found.start()], int(found[1])) if found else (step, None)


def recipe_of(workload: str) -> str:
    """
    Return what all replicates of a workload share: its name without their number.

    Examples
    --------
    >>> recipe_of("KTH-SP2+first-10000+memory-high@3")
    'KTH-SP2+first-10000+memory-high'
    """
    return _REPLICATE.sub("", workload)


def replicate_of(workload: str) -> int | None:
    """
    Return which replicate a workload is; None if it is the only one.

    Examples
    --------
    >>> replicate_of("KTH-SP2+scaled-1024@12+memory-high@12"), replicate_of("KTH-SP2")
    (12, None)
    """
    found = _REPLICATE.search(workload)
    return int(found[1]) if found else None


def parent_of(workload: str) -> str:
    """
    Return the workload that a workload's last step is applied to.

    Examples
    --------
    >>> parent_of("KTH-SP2+first-10000+memory-high@3")
    'KTH-SP2+first-10000'
    """
    return workload.rpartition("+")[0]


def compact(names: Iterable[str]) -> list[str]:
    """
    Write the names of replicates as ranges, which `expand` reads.

    Examples
    --------
    >>> compact(["KTH-SP2+moldable@1", "KTH-SP2+moldable@2", "KTH-SP2+moldable@3", "KTH-SP2+moldable@7", "KTH-SP2"])
    ['KTH-SP2+moldable@1-3', 'KTH-SP2+moldable@7', 'KTH-SP2']
    """
    numbers: dict[str, set[int]] = {}
    for name in names:
        found = set(_REPLICATE.findall(name))
        template = _REPLICATE.sub("@{}", name) if len(found) == 1 else name
        numbers.setdefault(template, set()).update(map(int, found) if len(found) == 1 else ())
    compacted = []
    for template, which in numbers.items():
        if not which:
            compacted.append(template)
        for first in sorted(number for number in which if number - 1 not in which):
            last = first
            while last + 1 in which:
                last += 1
            compacted.append(template.replace("{}", str(first) if first == last else f"{first}-{last}"))
    return compacted


def expand(text: str) -> list[str]:
    """
    Return the names, or paths, that a name or path with a range of replicates stands for.

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


def replicates(template: str, seeds: int | None) -> Iterator[str]:
    """
    Give the workloads that a template of a study stands for.

    Examples
    --------
    >>> list(replicates("KTH-SP2+memory-high@{seed}", 2))
    ['KTH-SP2+memory-high@1', 'KTH-SP2+memory-high@2']
    """
    if "{seed}" not in template:
        yield template
        return
    for seed in range(1, (seeds or 1) + 1):
        yield template.replace("{seed}", str(seed))
