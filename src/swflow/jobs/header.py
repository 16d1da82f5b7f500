"""The header of a log as one object: its texts, and the numbers, times and names that they state."""

import math
import re
import zoneinfo
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import cached_property

from swflow.errors import SwflowError
from swflow.values import LATEST, MOST_MILLISECONDS

#: Columns with numbers instead of names, and the header key with values ``NUMBER NAME`` for each. Queue and Partition
#: are keys of the standard; the others use the same format.
NAME_KEYS: dict[str, str] = {
    "user_id": "User",
    "group_id": "Group",
    "unix_group_id": "UnixGroup",
    "queue_id": "Queue",
    "partition_id": "Partition",
    "constraint_id": "Constraint",
}

_NAMED = re.compile(r"(-?[0-9]+)[ \t:.=]+(\S.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,9})?(?![0-9_])")

#: Names in logs of the archive that are missing from the time zone database of some systems.
_US_ZONES = {
    "US/Eastern": "America/New_York",
    "US/Central": "America/Chicago",
    "US/Mountain": "America/Denver",
    "US/Pacific": "America/Los_Angeles",
}


class Header(Mapping[str, list[str]]):
    """
    The header of a log in the Standard Workload Format: a mapping from keys to lists of texts, in the file's order.

    What the texts state is parsed on first use, and once.

    Examples
    --------
    >>> header = Header({"MaxProcs": ["1,152 (144 nodes of 8)"], "Queue": ["0 interactive", "1 batch"]})
    >>> header["MaxProcs"], header.number("MaxProcs"), header.names["queue_id"]
    (['1,152 (144 nodes of 8)'], 1152, {0: 'interactive', 1: 'batch'})
    """

    def __init__(self, texts: Mapping[str, list[str]] | None = None) -> None:
        self._texts = {key: list(values) for key, values in (texts or {}).items()}

    @classmethod
    def of(cls, texts: Mapping[str, list[str]] | None) -> "Header":
        """Return the header with these texts; a header as it is."""
        return texts if isinstance(texts, Header) else cls(texts)

    def __getitem__(self, key: str) -> list[str]:
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"Header({self._texts!r})"

    def without(self, key: str) -> "Header":
        """Return the header without a key."""
        return Header({name: values for name, values in self.items() if name != key})

    def number(self, key: str) -> int | None:
        """
        Return the first whole number in the values of a key, or None if there is none.

        Examples
        --------
        >>> Header({"MaxProcs": ["1e12"]}).number("MaxProcs")
        1000000000000
        """
        match = next(filter(None, map(_NUMBER.search, self.get(key, []))), None)
        if match is None:
            return None
        number = Decimal(match[0].replace(",", ""))
        # Limit the digits: int() would write out all zeros of a large exponent.
        return int(number) if number.adjusted() < 30 else int(math.copysign(10**30, number))

    @cached_property
    def start(self) -> int | None:
        """The start of the log in seconds from 1970 on; None if it is unknown."""
        return self.number("UnixStartTime")

    @cached_property
    def time_zone(self) -> tzinfo:
        """
        The time zone of the log: by name, else a fixed offset, else UTC.

        The header has it as TimeZoneString or TimeZone (seconds east of Greenwich).

        Examples
        --------
        >>> Header({"TimeZone": ["3600"], "TimeZoneString": ["Europe/Stockholm"]}).time_zone
        zoneinfo.ZoneInfo(key='Europe/Stockholm')
        """
        for value in self.get("TimeZoneString", []):
            name = value.strip().lstrip(":")
            for candidate in (name, _US_ZONES.get(name, "")):
                try:
                    return zoneinfo.ZoneInfo(candidate)
                except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
                    continue
            if name and not zoneinfo.available_timezones():
                raise SwflowError(f"time zone {name}: this computer has no time zone database; install tzdata")
        offset = self.number("TimeZone")
        if offset is not None and abs(offset) < 86400:
            return timezone(timedelta(seconds=offset))
        return UTC

    def local_time(self, seconds: float = 0.0) -> datetime:
        """
        Return the site's local time at a second of the log; without a known start, the log starts in 1970.

        Examples
        --------
        >>> Header({"UnixStartTime": ["1300000000000"]}).local_time()
        Traceback (most recent call last):
            ...
        swflow.errors.SwflowError: UnixStartTime: 1300000000000; expected seconds since 1970; these may be milliseconds
        """
        start = self.start or 0
        try:
            return datetime.fromtimestamp(start + seconds, UTC).astimezone(self.time_zone)
        except (ValueError, OverflowError, OSError):
            hint = "; these may be milliseconds" if LATEST < start <= MOST_MILLISECONDS else ""
            raise SwflowError(f"UnixStartTime: {start}; expected seconds since 1970{hint}") from None

    def seconds_since_start(self, moment: date) -> float:
        """
        Return the seconds from the log's start to a date or time, comparable to submit times; negative before it.

        A date is midnight in the time zone of the log; a time without a zone is in that zone.

        Examples
        --------
        >>> header = Header({"UnixStartTime": ["843480031"], "TimeZoneString": ["Europe/Stockholm"]})
        >>> header.seconds_since_start(date(1996, 9, 24))
        35969.0
        """
        if self.start is None:
            raise SwflowError(
                f"{moment}: the log has no UnixStartTime in its header; add the line '; UnixStartTime: SECONDS'"
            )
        if not isinstance(moment, datetime):
            moment = datetime.combine(moment, time())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=self.time_zone)
        self.local_time()  # raises an error if the start is no date
        return moment.timestamp() - self.start

    @cached_property
    def names(self) -> dict[str, dict[int, str]]:
        """
        The names of numbers by column of the job table, for values such as ``1 batch`` under ``Queue``.

        A number with several names has the first.

        Examples
        --------
        >>> Header({"Queue": ["0 interactive", "1  [fque:1]"], "User": ["7 alice"]}).names
        {'user_id': {7: 'alice'}, 'queue_id': {0: 'interactive', 1: '[fque:1]'}}
        """
        found: dict[str, dict[int, str]] = {}
        for column, key in NAME_KEYS.items():
            for value in self.get(key, ()):
                match = _NAMED.fullmatch(value.strip())
                if match:
                    found.setdefault(column, {}).setdefault(int(match[1]), " ".join(match[2].split()))
        return found

    def names_of(self, column: str) -> dict[int, str]:
        """Return the names of the numbers in one column of the job table."""
        return self.names.get(column, {})
