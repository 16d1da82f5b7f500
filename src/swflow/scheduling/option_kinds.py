"""The declaration of an option: its kind, meaning and limits, from which checks, schema, help and docs follow."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Larger numbers may be infinite, or integers that no float holds.
LARGEST = 1e300

#: Whole numbers whose sums stay exact in 64 bits.
MOST_WHOLE = 1e15

#: The largest time that is simulated, seconds: beyond some 2**53 a clock of floating-point numbers stands still.
LATEST = 1e12

#: The options of a scheduler, or of one of its clusters, before they are checked: as YAML, JSON or a caller gives them.
Unchecked = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """
    An option of a scheduler, or a part of a nested one.

    The kinds of plain values are ``flag``, ``integer``, ``number``, ``text``, ``choice``, ``name`` (of a user, group,
    partition or QOS; or its number), ``names`` (one, or a list), ``moment`` (seconds since the log's start, or a day),
    ``positions`` (ranges such as 5-8,11), ``order``, ``plugin``, and ``mapping`` (texts with any values).

    A nested value is a ``list`` of values like ``each``; ``named`` values like ``each``, by names; ``units`` like
    ``each``, by names of resources; or has one value for each of the ``keys``.
    """

    kind: str
    meaning: str = ""  # a sentence for the command's help and the schema
    choices: Mapping[str, str] = field(default_factory=dict)  # each value and its meaning
    least: float = -LARGEST  # the bounds of numbers, both included
    most: float = LARGEST
    above: float | None = None  # instead of ``least``: a bound that is not included
    optional: bool = False  # whether null stands for a default; a key that is null is left out
    default: Any = None
    expected: str = ""  # a nested value in errors, instead of what follows from its kind
    each: "Option | None" = None
    keys: "Mapping[str, Option]" = field(default_factory=dict)
    needed: tuple[str, ...] = ()  # keys that must be given
    either: tuple[str, ...] = ()  # keys of which exactly one must be given
    others: "Option | None" = None  # the value of any other key, which is a name; mappings only
    rule: Callable[[Any, str], Any] | None = None  # a check of parts together: returns the value, or raises an error

    @property
    def help(self) -> str:
        """The meaning and the values, or the keys."""
        if self.choices:
            return f"{self.meaning.removesuffix('.')}: {', '.join(self.choices)}."
        return f"{self.meaning} Keys: {', '.join(self.keys)}." if self.keys else self.meaning

    def parts(self) -> "Iterator[tuple[tuple[str, ...], Option]]":
        """Yield the keys of a nested option, at every depth, each with its path; ``NAME`` stands for any name."""
        for name, one in self.keys.items():
            yield (name,), one
            yield from (((name, *path), part) for path, part in one.parts())
        above = () if self.kind == "list" else ("NAME",)
        for nested in (self.each, self.others):
            if nested is not None:
                yield from (((*above, *path), part) for path, part in nested.parts())
