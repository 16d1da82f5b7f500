"""Formatting of numbers for readers: durations and shares; and the kinds of table columns."""

import math
from collections.abc import Sequence
from typing import Any

#: Columns in seconds.
_SECONDS = ("_time", "awrt", "awwt", "makespan")
_PERCENT = ("utilization", "variant_wins", "base_wins", "offered_load", "started_alike", "start_order",
            "simulated_of_recorded", "awrt_gap", "smallest_gap")  # fmt: skip

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


def kind_of(name: str, values: Sequence[Any]) -> str:
    """
    Return the format of a column: ``text``, ``seconds``, ``percent``, ``integer`` or ``number``.

    Examples
    --------
    >>> kind_of("mean_wait_time", [3.5]), kind_of("jobs", [3]), kind_of("log", ["A"]), kind_of("ratio", [None])
    ('seconds', 'integer', 'text', 'text')
    """
    known = [value for value in values if value is not None]
    if not known or not all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return "text"
    if name.endswith(_SECONDS):
        return "seconds"
    if name in _PERCENT or name.endswith("_share"):
        return "percent"
    return "integer" if all(float(value).is_integer() for value in known if math.isfinite(value)) else "number"


def shortened(value: Any) -> Any:
    """Return a value as stored in a page: nine significant digits, only values that JSON supports."""
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if value is None or isinstance(value, int | str) else str(value)
