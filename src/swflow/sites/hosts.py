"""Expand the host lists of Slurm, such as ``n[001-128],gpu[1-4]``."""

import itertools
import math
import re

from swflow.errors import SwflowError, shown
from swflow.sites.lines import Place
from swflow.values import Limit

#: Limit of the hosts of a host list or a site.
HOSTS = Limit(1_000_000, "nodes")


def expand_hosts(text: str, place: Place) -> list[str]:
    """
    Return the hosts of a host list.

    Examples
    --------
    >>> from pathlib import Path
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
