"""Variants of a what-if: a scheduler, and typed changes of the machine, the estimates, the arrivals and run times."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from swflow.errors import SwflowError
from swflow.scheduling.option_kinds import Unchecked

#: The change of a size in a text: an amount, or ``PARTITION=AMOUNT``.
_AMOUNT = re.compile(r"([+-]?)([0-9]{1,12}(?:\.[0-9]+)?)\s*(%?)")


@dataclass(frozen=True)
class Amount:
    """
    A new size: a number, a difference, or a share (0.2 for ``+20%``) of the present one.

    Examples
    --------
    >>> [Amount.read(text, "--nodes").of(100) for text in ("+20%", "-10", "64")]
    [120, 90, 64]
    >>> str(Amount.read("+20 %", "--nodes"))
    '+20%'
    """

    kind: Literal["number", "difference", "share"]
    value: float

    @classmethod
    def read(cls, text: str, option: str, example: str = "+20%, -10% or a number") -> "Amount":
        """Parse ``512``, ``+64`` or ``+20%``; ``option`` and ``example`` are for the error."""
        found = _AMOUNT.fullmatch(text.strip())
        sign, number, percent = found.groups() if found else ("", "", "")
        if not found or (percent and not sign) or (not percent and "." in number):
            raise SwflowError(f"{option}: {text!r}; expected {example}")
        value = float(sign + number)
        if percent:
            return cls("share", value / 100)
        return cls("difference" if sign else "number", value)

    def of(self, size: int) -> int:
        """Return the new size of something that has this size now."""
        match self.kind:
            case "share":
                return round(size * (1 + self.value))
            case "difference":
                return size + int(self.value)
        return int(self.value)

    def __str__(self) -> str:
        match self.kind:
            case "share":
                return f"{100 * self.value:+g}%"
            case "difference":
                return f"{self.value:+.0f}"
        return f"{self.value:.0f}"


@dataclass(frozen=True)
class Change:
    """
    A change of the machine: of its processors, of whole nodes, or of the units of a resource besides processors.

    ``partition`` names the changed partition, and is empty for the whole machine.

    Examples
    --------
    >>> read_processors("cpu=+20%")
    (Change(amount=Amount(kind='share', value=0.2), partition='cpu', resource=''),)
    >>> [str(one) for one in (*read_resource("gpu:gpus=8"), *read_nodes("cpu=+20,gpu=+2"))]
    ['gpu:gpus=8', 'cpu=+20', 'gpu=+2']
    """

    amount: Amount
    partition: str = ""
    resource: str = ""

    def __str__(self) -> str:
        name = f"{self.partition}:{self.resource}".strip(":")
        return f"{name}={self.amount}" if name else str(self.amount)


#: The changes of one option, such as ``cpu=+20,gpu=+4``.
Changes = tuple[Change, ...]


def read_processors(text: str) -> Changes:
    """Parse ``--processors``: ``+20%``, ``-64``, ``512``, or one for each of some partitions, ``cpu=+20%,gpu=-64``."""
    example = "a number, or a change such as +20%, +64 or cpu=+20%"
    return _read(text, lambda part: _of_partition(part, "--processors", example))


def read_nodes(text: str) -> Changes:
    """Parse ``--nodes``: ``+2``, ``+10%``, or one of these for each of some partitions, ``cpu=+20,gpu=+2``."""
    return _read(text, lambda part: _of_partition(part, "--nodes", "a change such as +2, +10% or cpu=+20,gpu=+2"))


def read_resource(text: str) -> Changes:
    """Parse ``--resource``: ``gpus=+20%``, ``gpus=512``, or for a partition, ``gpu:gpus=+4``; several with commas."""
    return _read(text, _of_resource)


def _read(text: str, read: Callable[[str], Change]) -> Changes:
    """Return the changes in a text, which are separated by commas; raise an error if two change the same."""
    found = tuple(map(read, text.split(",")))
    names = [(one.partition, one.resource) for one in found]
    if len(set(names)) < len(names) or (len(found) > 1 and any(not any(name) for name in names)):
        raise SwflowError(f"{text!r}; expected one change for each of several partitions, such as cpu=+20,gpu=+4")
    return found


def _of_partition(text: str, option: str, example: str) -> Change:
    partition, equals, amount = text.rpartition("=")
    if equals and not partition.strip():
        raise SwflowError(f"{option}: {text!r}; expected {example}")
    return Change(Amount.read(amount, option, example), partition.strip())


def _of_resource(text: str) -> Change:
    name, equals, amount = text.partition("=")
    partition, _, resource = name.strip().rpartition(":")
    if not equals or not resource.isidentifier():
        raise SwflowError(f"--resource: {text!r}; expected NAME=UNITS, or a change such as gpus=+20%")
    example = "NAME=UNITS, or a change such as gpus=+20%"
    return Change(Amount.read(amount, f"--resource {name}", example), partition, resource)


def read_estimates(text: str) -> float:
    """
    Return an estimate as a factor of the run time; ``perfect`` is 1.

    Examples
    --------
    >>> read_estimates("perfect"), read_estimates("5")
    (1.0, 5.0)
    """
    try:
        factor = 1.0 if text == "perfect" else float(text)
    except ValueError:
        factor = math.nan
    if not 1 <= factor <= 1000:
        raise SwflowError(f"--estimates: {text!r}; expected perfect, or a factor of the run times from 1 to 1000")
    return factor


@dataclass(frozen=True)
class Variant:
    """
    One combination of scheduler, machine, estimates, arrival rate and run times.

    ``processors``, ``nodes`` and ``resource`` change the recorded machine. ``estimates`` is a factor of the run times,
    and None for the users' estimates. ``arrivals`` and ``run_times`` are factors; the latter also multiplies estimates.
    """

    scheduler: str
    options: Unchecked
    processors: Changes = ()
    nodes: Changes = ()
    resource: Changes = ()
    estimates: float | None = None
    arrivals: float = 1.0
    run_times: float = 1.0

    @property
    def name(self) -> str:
        """The scheduler and the changes relative to the recorded schedule, as text."""
        parts = [self.scheduler]
        named = {"processors": self.processors, "nodes": self.nodes, "resource": self.resource}
        parts += [f"{what} {','.join(map(str, changes))}" for what, changes in named.items() if changes]
        parts += [f"estimates {self.estimates_in_words}"] if self.estimates is not None else []
        parts += [f"arrivals × {self.arrivals:g}"] if self.arrivals != 1 else []
        parts += [f"run times × {self.run_times:g}"] if self.run_times != 1 else []
        return ", ".join(parts)

    @property
    def changes(self) -> list[tuple[str, Change]]:
        """The changes of the machine, with what each changes."""
        found = {"processors": self.processors, "nodes": self.nodes, "resource": self.resource}
        return [(what, change) for what, changes in found.items() for change in changes]

    @property
    def estimates_in_words(self) -> str:
        """The estimates as in table ``whatifs``: ``users'``, ``perfect``, or a factor."""
        if self.estimates is None:
            return "users'"
        return "perfect" if self.estimates == 1 else f"{self.estimates:g}"


def variants(
    schedulers: Mapping[str, Unchecked],
    *,
    processors: Iterable[str] = (),
    nodes: Iterable[str] = (),
    resource: Iterable[str] = (),
    estimates: Iterable[str] = (),
    arrivals: Sequence[float] = (),
    run_times: Sequence[float] = (),
) -> list[Variant]:
    """
    Return every combination; the first is the base: the first scheduler with everything else as recorded.

    Changes are texts of the command line.

    Examples
    --------
    >>> [variant.name for variant in variants({"easy": {}, "sjf": {}}, processors=["+20%"])]
    ['easy', 'easy, processors +20%', 'sjf', 'sjf, processors +20%']
    """
    for option, factors in (("--arrivals", arrivals), ("--run-times", run_times)):
        for factor in factors:
            if not 0.01 <= factor <= 100:
                raise SwflowError(f"{option}: {factor:g}; expected a factor from 0.01 to 100")
    if not schedulers:
        raise SwflowError("whatif: no scheduler; give --scheduler easy")

    def choices(values: Iterable[Any], unchanged: Any = None) -> list[Any]:
        return list(dict.fromkeys([unchanged, *values]))

    return [
        Variant(name, schedulers[name], *rest)
        for name, *rest in itertools.product(
            schedulers,
            choices(map(read_processors, processors), ()),
            choices(map(read_nodes, nodes), ()),
            choices(map(read_resource, resource), ()),
            choices(map(read_estimates, estimates)),
            choices(arrivals, 1.0),
            choices(run_times, 1.0),
        )
    ]
