"""Times at which nodes are unavailable: reservations of today and of the past, and events of nodes."""

from collections.abc import Mapping, Sequence
from datetime import UTC
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


def unavailable(windows: Sequence[Window], time_zone: str | None) -> list[dict[str, Any]]:
    """
    Return the windows in which nodes are unavailable; without a time zone, times are those of the log.

    Slurm prints local times of the cluster.
    """
    return [
        {
            "from": _moment(row, "starttime", time_zone),
            "until": None if row.text("endtime") in ("", "Unknown", "None") else _moment(row, "endtime", time_zone),
            "nodes": in_ranges(nodes),
        }
        for row, nodes in windows
        if nodes
    ]


def _moment(row: Row, column: str, time_zone: str | None) -> str:
    """Return a time as text, in UTC if the time zone is known."""
    text = row.text(column)
    found = local_time(text, f"{row.place}: {row.text('reservationname')}")
    if time_zone is None:
        return text
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SwflowError(f"--timezone: {time_zone!r}; expected a time zone such as Europe/Stockholm or UTC") from None
    return found.replace(tzinfo=zone).astimezone(UTC).isoformat()
