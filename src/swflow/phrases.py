"""
Phrases: values as text for sentences of what-ifs, reports and forecasts.

Durations are given in one unit for several values (`unit_of`), in their two largest units (`duration`), rounded to what
a reader plans with (`span`), or in hours (`hours`). Shares are percentages (`percent`, `share_of`), chances never quite
0 or 1 (`chance_in_words`), changes have a sign (`signed`, `Percent`) or a range (`between`).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

# -- durations


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


_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """
    Return a duration in its two largest units.

    Examples
    --------
    >>> [duration(value) for value in (0, 0.25, 59.6, 3725, 365205, 86400 * 400)]
    ['0 s', '0.25 s', '59.6 s', '1 h 2 min', '4 d 5 h', '400 d']
    """
    if not math.isfinite(seconds):
        return str(seconds)
    sign, rest = ("−" if seconds < 0 else ""), abs(seconds)
    if rest < 60:
        return f"{sign}{rest:.3g} s"
    place = next(number for number, (size, _) in enumerate(_UNITS) if rest >= size)
    (size, unit), (small, below) = _UNITS[place], _UNITS[place + 1]
    if rest >= 100 * 86_400:
        return f"{sign}{rest / 86_400:,.0f} d"
    whole, part = divmod(round(rest / small), round(size / small))
    return f"{sign}{whole:,} {unit}" + (f" {part} {below}" if part else "")


def span(seconds: float) -> str:
    """
    Return a duration rounded to what a reader plans with: from 10 h on without minutes, from 10 d on without hours.

    Examples
    --------
    >>> span(11400), span(45), span(0.3), span(200000), span(100000000)
    ('3 h 10 min', '45 s', '0 s', '2 d 8 h', '1,157 d')
    """
    if seconds != seconds:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    whole, minutes = divmod(minutes, 60)
    if whole < 24:
        return f"{whole} h {minutes} min" if minutes and whole < 10 else f"{whole} h"
    days, whole = divmod(round(seconds / 3600), 24)
    return f"{days} d {whole} h" if whole and days < 10 else f"{days:,} d"


def hours(seconds: float | None) -> str:
    """
    Return a duration in hours, or nothing if it is unknown.

    Examples
    --------
    >>> hours(5000.0), hours(60 * 86400.0)
    ('1.39 h', '1,440 h')
    """
    if seconds is None:
        return ""
    return f"{seconds / 3600:.3g} h" if seconds < 999.5 * 3600 else f"{seconds / 3600:,.0f} h"


# -- shares and changes


def percent(share: float) -> str:
    """
    Return a share as text, with one decimal digit if it is significant.

    Examples
    --------
    >>> [percent(value) for value in (0.5, 0.0123, -0.974)]
    ['50 %', '1.2 %', '−97 %']
    """
    if not math.isfinite(share):
        return str(share)
    value = 100 * share
    text = f"{abs(value):,.1f}" if abs(value) < 9.95 and round(value, 1) != round(value) else f"{abs(value):,.0f}"
    return ("−" if value < 0 else "") + text + " %"


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


def percent_of(part: int, whole: int) -> str:
    """
    Return a part of a whole in whole percent.

    Examples
    --------
    >>> percent_of(1, 3), percent_of(1, 1000)
    ('33 %', 'less than 1 %')
    """
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 else "less than 1 %"


def chance_in_words(value: float) -> str:
    """
    Return a chance in whole per cent; the estimates of 0 and 1 are not certain.

    Examples
    --------
    >>> chance_in_words(0.553), chance_in_words(1.0), chance_in_words(0.0)
    ('55 %', 'over 99 %', 'under 1 %')
    """
    if value > 0.994:
        return "over 99 %"
    return "under 1 %" if value < 0.005 else f"{100 * value:.0f} %"


def signed(change: float) -> str:
    """
    Return a change with its sign in percent; a value that grows more than tenfold as a multiple.

    Examples
    --------
    >>> signed(-0.5), signed(0.072), signed(42506.93)
    ('−50 %', '+7.2 %', '42,508 times')
    """
    if change > 9:
        return f"{change + 1:,.0f} times"
    return percent(change) if change < 0 else f"+{percent(change)}"


def between(sizes: Sequence[float], is_interval: bool = False) -> str:
    """
    Return the smallest and the largest of some shares in percent; ends of an interval that look equal have a decimal.

    Examples
    --------
    >>> between([0.93, 0.772]), between([0.5]), between([11.0, 42506.9])
    ('77 to 93 %', '50 %', 'a factor of 12 to 42,508')
    >>> between([0.967, 0.974]), between([0.967, 0.974], is_interval=True)
    ('97 %', '96.7 to 97.4 %')
    """
    ends = list(dict.fromkeys((min(sizes), max(sizes))))
    if ends[-1] > 9:
        return "a factor of " + " to ".join(dict.fromkeys(f"{end + 1:,.{0 if end > 9 else 1}f}" for end in ends))
    texts = dict.fromkeys(percent(end).removesuffix(" %") for end in ends)
    if is_interval and len(texts) < len(ends):
        texts = dict.fromkeys(f"{100 * end:.1f}" for end in ends)
    return " to ".join(texts) + " %"


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


# -- numbers and names


def four_digits(value: float | None) -> str:
    """
    Return a value with four digits, and all digits before the point.

    Examples
    --------
    >>> four_digits(126123.4), four_digits(0.51239), four_digits(None)
    ('126,123', '0.5124', 'unknown')
    """
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def counted(count: int, name: str) -> str:
    """
    Return a number of things.

    Examples
    --------
    >>> counted(1, "job"), counted(2000, "job")
    ('1 job', '2,000 jobs')
    """
    return f"{count:,} {name}{'s' * (count != 1)}"


def listed(parts: list[str]) -> str:
    """
    Return names as a list in a sentence.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
