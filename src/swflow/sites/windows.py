"""Times at which nodes are unavailable: reservations of today and of the past, and events of nodes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from swflow.errors import SwflowError
from swflow.scheduling.option_checks import in_ranges
from swflow.sites.conf import MEMBERS
from swflow.sites.hosts import expand_hosts
from swflow.sites.lines import read_file
from swflow.sites.tables import Row, read_reservations, read_table
from swflow.values import local_time

#: The states of an event in which a node runs no new jobs.
_AWAY = ("DOWN", "DRAIN", "FAIL", "MAINT", "NOT_RESPONDING", "REBOOT", "POWERED_DOWN")


class Window(NamedTuple):
    """A row with the positions of its nodes that partitions have, from 1 on."""

    row: Row
    nodes: Sequence[int]


def read_windows(path: str | Path, numbers: Mapping[str, int]) -> list[Window]:
    """
    Read the reservations that ``scontrol show res`` prints, or ``sacctmgr show reservation -P``, which has past ones.

    ``numbers`` has the position of each node.
    """
    first = read_file(Path(path)).lstrip().partition("\n")[0]
    if "|" in first and "reservationname=" not in first.lower():
        rows = [_as_shown(row) for row in read_table(path, "sacctmgr show reservation -P", ["name", "start", "end"])]
    else:
        rows = read_reservations(path)
    return _with_nodes(rows, numbers)


def _as_shown(row: Row) -> Row:
    """Return a row of sacctmgr with the columns of scontrol."""
    nodes = row.text("nodenames") or row.text("nodes") or "(null)"
    texts = {
        "reservationname": row.text("name"), "starttime": row.text("start"), "endtime": row.text("end"),
        "nodes": nodes, "flags": row.text("flags"),
    }  # fmt: skip
    return Row(texts, row.place)


def read_events(path: str | Path, numbers: Mapping[str, int]) -> list[Window]:
    """Read the events of nodes that ``sacctmgr show event -P`` prints; those of the whole cluster are left out."""
    found = []
    for row in read_table(path, "sacctmgr show event -P", ["state"]):
        start = row.text("timestart") or row.text("start")
        state = row.text("state").upper().lstrip("*")
        if row.text("nodename") and start and any(word in state for word in _AWAY):
            texts = {
                "reservationname": f"{row.text('nodename')} {state}", "starttime": start,
                "endtime": row.text("timeend") or row.text("end"), "nodes": row.text("nodename"), "flags": "EVENT",
            }  # fmt: skip
            found.append(Row(texts, row.place))
    return _with_nodes(found, numbers)


def _with_nodes(rows: Sequence[Row], numbers: Mapping[str, int]) -> list[Window]:
    found, total = [], 0
    for row in rows:
        text = row.text("nodes")
        hosts = [] if text in ("", "(null)") else expand_hosts(text, row.place)  # it may have licenses only
        found.append(Window(row, [numbers[name] for name in hosts if name in numbers]))
        total += len(found[-1].nodes)
        MEMBERS.require(total, str(row.place))
    return found


def lasting(windows: Sequence[Window], time_zone: str | None) -> tuple[list[Window], list[Window]]:
    """Return the windows that end after their beginning, or never, and the others."""
    found: tuple[list[Window], list[Window]] = [], []
    for window in windows:
        begin, until = _times(window.row, time_zone)
        found[until is not None and until <= begin].append(window)
    return found


def unavailable(windows: Sequence[Window], time_zone: str | None) -> list[dict[str, Any]]:
    """
    Return the windows in which nodes are unavailable; without a time zone, times are those of the log.

    Slurm prints local times of the cluster.
    """
    found = []
    for row, nodes in windows:
        begin, until = _times(row, time_zone)
        texts = row.text("starttime"), row.text("endtime")
        if time_zone is not None:
            texts = begin.isoformat(), until.isoformat() if until else ""
        if nodes:
            found.append({"from": texts[0], "until": texts[1] if until else None, "nodes": in_ranges(nodes)})
    return found


def _times(row: Row, time_zone: str | None) -> tuple[datetime, datetime | None]:
    """
    Return when a window begins and ends, in UTC if the time zone is known; None if it never ends.

    An hour that the end of summer time repeats is the first one, unless the window would end before it begins.
    """
    begin = _local(row, "starttime")
    until = None if row.text("endtime") in ("", "Unknown", "None") else _local(row, "endtime")
    if time_zone is None:
        return begin, until
    zone = _zone(time_zone)
    first = _in_utc(begin, zone)
    if until is None:
        return first, None
    last = _in_utc(until, zone)
    return first, _in_utc(until.replace(fold=1), zone) if last < first else last


def _local(row: Row, column: str) -> datetime:
    return local_time(row.text(column), f"{row.place}: {row.text('reservationname')}")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SwflowError(f"--timezone: {name!r}; expected a time zone such as Europe/Stockholm or UTC") from None


def _in_utc(time: datetime, zone: ZoneInfo) -> datetime:
    return time.replace(tzinfo=zone).astimezone(UTC)


def empty_in_words(windows: Sequence[Window]) -> list[str]:
    """Return how many windows were left out because they do not end after their beginning."""
    if not windows:
        return []
    first = windows[0].row
    times = f"{first.text('starttime')} to {first.text('endtime')}, {first.place}"
    return [
        f"windows that do not end after their beginning are left out: {len(windows):,}, the first of which is "
        f"{first.text('reservationname')} ({times})"
    ]
