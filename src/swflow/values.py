"""
Convert numbers, times and texts of files and options, each with a range.

A function of one value raises an error of one line. An expression for a column gives null for an invalid value, which
the importer counts.
"""

import math
import os
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from swflow.errors import SwflowError, has_controls, shown

#: The length of a day and of a week, seconds. Week 0 of a log begins at submit time 0.
DAY, WEEK = 86_400.0, 604_800.0

#: Largest absolute time of a job, seconds (31,700 years); larger values are mistakes.
LONGEST_TIME = 1e12

#: Largest number of processors: kernels number processors with 32 bits.
MOST_PROCESSORS = 2**31

#: Largest number of units of a resource: sums over the jobs of a machine stay exact in 64 bits.
MOST_UNITS = 2**50

#: The end of the year 9999, Unix seconds; later moments are usually milliseconds.
LATEST = 253402300799

#: The end of the year 2099 in Unix milliseconds; larger numbers are not taken for these.
MOST_MILLISECONDS = 4102444799999

#: Longest text of a number, characters.
_LONGEST_NUMBER = 400

#: The environment variable by whose value every `Limit` is multiplied.
FACTOR = "SWFLOW_LIMITS"

_WHOLE = re.compile(r"\s*([+-]?[0-9]+)\s*")


class Limit(NamedTuple):
    """A limit of the size of an input, which a user can raise: its amount, and what it counts."""

    most: int
    what: str

    @property
    def amount(self) -> int:
        """Return the limit, multiplied by the environment variable ``SWFLOW_LIMITS``."""
        text = os.environ.get(FACTOR, "") or "1"
        return int(self.most * number(text, FACTOR, least=0, most=1e9))

    def require(self, found: float, where: str) -> None:
        """Raise an error if an amount exceeds the limit."""
        if found > self.most and found > (amount := self.amount):
            raise SwflowError(
                f"{where}: more than {amount:,} {self.what}; if that is right, raise all limits tenfold: {FACTOR}=10"
            )


def whole_number(value: object, where: str, *, least: int = 0, most: int = MOST_UNITS) -> int:
    """
    Return a whole number, given as a number or as decimal digits.

    Examples
    --------
    >>> whole_number("12", "--jobs"), whole_number(4.0, "cpus")
    (12, 4)
    >>> whole_number("1" * 5000, "my.txt:3: job id")
    Traceback (most recent call last):
    swflow.errors.SwflowError: my.txt:3: job id: a number of 5,000 characters; expected a whole number of at most 2^50
    """
    found = _whole(value)
    if found is not None and least <= found <= most:
        return found
    power = most.bit_length() - 1
    largest = f"2^{power}" if most == 2**power and power > 30 else f"2^{power + 1} - 1" if most > 2**40 else f"{most:,}"
    is_long = isinstance(value, str) and _WHOLE.fullmatch(value) is not None
    above = f" of at least {least:,}" if least else ""
    span = f" of at most {largest}" if is_long or (found is not None and found > most) else above
    raise SwflowError(f"{where}: {_spelt(value)}; expected a whole number{span}")


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and (match := _WHOLE.fullmatch(value)):
        return int(match[1])
    return None


def number(value: object, where: str, *, least: float = -math.inf, most: float = math.inf) -> float:
    """
    Return a finite number, given as a number or a text.

    Examples
    --------
    >>> number("2.5", "--factor"), number(3, "weight")
    (2.5, 3.0)
    >>> number("inf", "--factor", least=0)
    Traceback (most recent call last):
    swflow.errors.SwflowError: --factor: 'inf'; expected a finite number of at least 0
    """
    found = math.nan
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        try:
            # 400 digits are infinite; Python also reads 1_0 and ٣, which no other program does.
            is_odd = isinstance(value, str) and ("_" in value or not value.isascii())
            found = math.nan if is_odd else float(value)
        except (ValueError, OverflowError):
            found = math.nan
    if math.isfinite(found) and least <= found <= most:
        return found
    above = f" of at least {least:,.15g}" if least > -math.inf else ""
    span = f" from {least:,.15g} to {most:,.15g}" if above and most < math.inf else above
    raise SwflowError(f"{where}: {_spelt(value)}; expected a finite number{span}")


def seconds(value: object, where: str, *, least: float = 0.0) -> float:
    """
    Return a duration in seconds, at most `LONGEST_TIME`.

    Examples
    --------
    >>> seconds(90, "time_limit")
    90.0
    """
    return number(value, where, least=least, most=LONGEST_TIME)


def moment(value: object, where: str) -> float:
    """
    Return a moment in Unix seconds, from 1970 to 9999.

    Examples
    --------
    >>> moment(1700000000, "submit_time")
    1700000000.0
    >>> moment(1700000000000, "submit_time")
    Traceback (most recent call last):
    swflow.errors.SwflowError: submit_time: 1700000000000; expected seconds since 1970; these may be milliseconds
    """
    found = number(value, where, least=-LONGEST_TIME)
    if not 0 <= found <= LATEST:
        hint = "; these may be milliseconds" if LATEST < found <= MOST_MILLISECONDS else ""
        raise SwflowError(f"{where}: {_spelt(value)}; expected seconds since 1970{hint}")
    return found


def local_time(value: object, where: str) -> datetime:
    """
    Return a time without a zone, such as ``2026-01-31T08:00:00``.

    Examples
    --------
    >>> local_time("2026-01-31T08:00", "my.txt:2")
    datetime.datetime(2026, 1, 31, 8, 0)
    """
    try:
        found = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is not None or not 1970 <= found.year < 9999:
        raise SwflowError(f"{where}: {_spelt(value)}; expected a time such as 2026-01-31T08:00:00")
    return found


def day_or_moment(value: object, where: str) -> date:
    """
    Return a day or a moment of a config or a command; ``where`` is its key or option, for error messages.

    A text is a day such as ``1996-01-01``, or a time such as ``1996-01-01T06:00`` or ``1996-01-01T00:00Z``, which gives
    a datetime.

    Examples
    --------
    >>> day_or_moment("1996-01-01", "from")
    datetime.date(1996, 1, 1)
    """
    found = value if isinstance(value, date) else None
    for kind in () if found else (date, datetime):
        try:
            found = kind.fromisoformat(value)  # type: ignore[arg-type]
            break
        except (TypeError, ValueError):
            continue
    if found is None or not 1 < found.year < 9999:  # a time zone moves a moment by a day at most
        raise SwflowError(
            f"{where}: {_spelt(value)}; expected a date such as 1996-01-01 (or with a time: 1996-01-01T00:00Z)"
        )
    return found


def text(value: object, where: str, longest: int = 100_000) -> str:
    """
    Return a text on one line without control characters.

    Examples
    --------
    >>> text(" batch ", "partition")
    'batch'
    """
    if not isinstance(value, str):
        raise SwflowError(f"{where}: {_spelt(value)}; expected a text")
    if len(value) > longest:
        raise SwflowError(f"{where}: {len(value):,} characters; expected at most {longest:,}")
    found = value.strip()
    if has_controls(found):
        raise SwflowError(f"{where}: {_spelt(value)}; expected a text on one line without control characters")
    return found


def mapping(value: object, where: str, example: str = "{name: value}") -> Mapping[Any, Any]:
    """Return a mapping of JSON, YAML or metadata; raise an error for another type."""
    if not isinstance(value, Mapping):
        raise SwflowError(f"{where}: {shown(value)}; expected {example}")
    return value


def _spelt(value: object) -> str:
    """Return a value for an error; of a long number only its length."""
    if isinstance(value, str) and len(value) > 80 and _WHOLE.fullmatch(value):
        return f"a number of {len(value.strip()):,} characters"
    return shown(value)


def as_moment(seconds_since_1970: float) -> datetime:
    """Return the moment of Unix seconds, in UTC."""
    return datetime.fromtimestamp(min(max(seconds_since_1970, 0.0), LATEST), UTC)
