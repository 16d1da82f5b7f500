"""Numbers, times and changes as text: the units and the rounding of an answer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from swflow.analysis.verdicts import BETTER, WORSE
from swflow.analysis.wait_parts import OF_ROOM, PARTS

#: The direction of a decided change of a time.
DIRECTIONS: dict[str, str] = {BETTER: "shorter", WORSE: "longer"}


class Unit(NamedTuple):
    """A unit of time: its name, and its length in seconds. A value without a unit has the length 1 and no name."""

    name: str
    seconds: float

    def of(self, value: float) -> str:
        """
        Return a value in this unit, with the unit.

        Examples
        --------
        >>> Unit("min", 60.0).of(5432.0), Unit("", 1.0).of(5432.1)
        ('90.5 min', '5,432.1')
        """
        return f"{self.number(value)} {self.name}".rstrip()

    def number(self, value: float) -> str:
        """Return a value in this unit, without the unit, to one decimal."""
        return f"{value / self.seconds:,.1f}".replace("-", "−")


SECONDS, MINUTES, HOURS, NONE = Unit("s", 1.0), Unit("min", 60.0), Unit("h", 3600.0), Unit("", 1.0)


def unit_of(*seconds: float | None) -> Unit:
    """
    Return the unit in which all of several times are readable: seconds up to 2 min, minutes up to 20 h, then hours.

    Examples
    --------
    >>> unit_of(1.5, 0.0), unit_of(1.5, 3600.0).name, unit_of(90000.0).name
    (Unit(name='s', seconds=1.0), 'min', 'h')
    """
    longest = max((abs(value) for value in seconds if value is not None), default=0.0)
    return SECONDS if longest < 120 else MINUTES if longest < 72000 else HOURS


def unit_of_measure(measure: str, *values: float | None) -> Unit:
    """Return the unit of a measure of table ``whatifs``: a time, or none for slowdowns."""
    return NONE if "slowdown" in measure else unit_of(*values)


class Percent(NamedTuple):
    """A change in percent of the base, and the ends of its 95 % interval, if there is one."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, base: float, difference: float, low: float | None, high: float | None) -> "Percent | None":
        """Return a difference and the ends of its interval in percent of the base; None if the base is 0."""
        if not base:
            return None
        low, high = (None if end is None else 100 * end / base for end in (low, high))
        return cls(100 * difference / base, low, high)

    @property
    def _digits(self) -> int:
        """A decimal if all values are small, or if rounding would hide that a value is not 0."""
        known = [abs(value) for value in self if value is not None]
        return int(max(known) < 9.95 or any(0 < value < 0.5 for value in known))

    def _number(self, value: float, sign: str) -> str:
        return f"{value:{sign},.{self._digits}f}".replace("-", "−")

    @property
    def change(self) -> str:
        """
        The change with its sign.

        Examples
        --------
        >>> Percent(-35.2, -50.0, 3.0).change, Percent(0.04, -0.1, 100.0).change, Percent(0.0).change
        ('−35 %', '+0.04 %', '0 %')
        """
        if abs(self.value) < 0.005:
            return "0 %"
        if abs(self.value) < 0.05:
            return f"{self.value:+.2f} %".replace("-", "−")
        return f"{self._number(self.value, '+')} %"

    @property
    def interval(self) -> str:
        """
        The ends of the interval with their signs; empty if there is none.

        Examples
        --------
        >>> Percent(-35.2, -50.0, 3.0).interval, Percent(50.0, -0.1, 100.0).interval
        ('−50 to +3 %', '−0.1 to +100.0 %')
        """
        if self.low is None or self.high is None:
            return ""
        return f"{self._number(self.low, '+')} to {self._number(self.high, '+')} %"

    @property
    def size(self) -> str:
        """
        The change without its sign, where a word states the direction, with its interval.

        Examples
        --------
        >>> Percent(-35.2, -50.0, -3.0).size
        '35 % (95 % interval 3 to 50 %)'
        """
        text = f"{self._number(abs(self.value), '')} %"
        if self.low is None or self.high is None:
            return text
        ends = sorted(map(abs, (self.low, self.high)))
        return f"{text} (95 % interval {self._number(ends[0], '')} to {self._number(ends[1], '')} %)"

    @property
    def signed(self) -> str:
        """
        The change and its interval with their signs.

        Examples
        --------
        >>> Percent(-5.0, -12.5, 3.0).signed
        '−5 % (95 % interval −12 to +3 %)'
        """
        return self.change + (f" (95 % interval {self.interval})" if self.interval else "")


def listed(parts: list[str]) -> str:
    """
    Return names as a list in a sentence.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def share_of(part: float | None) -> str:
    """
    Return a share as a percentage of which small values do not become 0; an unknown share has no text.

    Examples
    --------
    >>> share_of(0.5), share_of(0.031), share_of(0.0004), share_of(0)
    ('50 %', '3.1 %', '0.04 %', '0 %')
    """
    if part is None:
        return ""
    percent = 100 * part
    return f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.2g} %"


#: Each part of a wait, in a sentence.
WORDS: dict[str, str] = {
    "eligibility": "not eligible",
    "limit": "a limit",
    "room": "no room",
    "order": "order",
    "latency": "latency",
}


def in_words(means: Mapping[str, Any]) -> str:
    """
    Return the shares of the reasons of a mean wait, without those of 0.

    Examples
    --------
    >>> reasons = {"eligibility": 0.0, "limit": None, "room": 60.0, "order": 40.0, "latency": 0.0}
    >>> in_words({"wait": 100.0, "fragmentation": None, "drain": 25.0, **reasons})
    '60 % no room (of it 25 % drain) and 40 % order'
    """
    wait = means["wait"] or 1.0
    shares = {part: (means[part] or 0.0) / wait for part in PARTS}
    said = [f"{share_of(share)} {WORDS[part]}" for part, share in shares.items() if share >= 0.0005]
    of_room = {part: (means[part] or 0.0) / wait for part in OF_ROOM}
    inside = [f"{share_of(share)} {part}" for part, share in of_room.items() if share >= 0.0005]
    text = listed(said)
    return text.replace("no room", f"no room (of it {listed(inside)})") if inside else text
