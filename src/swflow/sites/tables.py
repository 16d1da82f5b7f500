"""Read what Slurm's commands print: sacctmgr show qos|assoc -P, sshare -P, scontrol show res."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swflow.errors import SwflowError, shown
from swflow.log.importers.slurm import NO_VALUE_TEXTS
from swflow.sites.lines import Place, read_file
from swflow.values import number as finite
from swflow.values import whole_number

_NO_VALUE = re.compile(NO_VALUE_TEXTS)

#: Other names of columns: those of options of sacctmgr, and of versions before 16.05, which limit CPUs only.
_NAMES = {
    "parentname": "parname", "maxtresperuser": "maxtrespu", "maxjobsperuser": "maxjobspu",
    "maxtresperaccount": "maxtrespa", "maxjobsperaccount": "maxjobspa",
    "maxtresperjob": "maxtres",
}  # fmt: skip
_OF_CPUS = {
    "grpcpus": "grptres",
    "maxcpuspu": "maxtrespu",
    "maxcpusperuser": "maxtrespu",
    "grpcpurunmins": "grptresrunmins",
}


@dataclass(frozen=True)
class Row:
    """A row of a table: its texts by lower-case column, without those that are empty."""

    texts: Mapping[str, str]
    place: Place

    def text(self, column: str) -> str:
        """Return the text of a column; empty if the row has none."""
        return self.texts.get(column, "")

    def whole(self, column: str) -> int | None:
        """Return the whole number in a column; None if it is empty, or a value such as -1 that removes a limit."""
        text = self.text(column)
        if text in ("", "-1") or _NO_VALUE.fullmatch(text):
            return None
        return whole_number(text, f"{self.place}: {column}")

    def tres(self, column: str) -> dict[str, int]:
        """Return trackable resources, such as ``cpu=128,gres/gpu=4``; memory is in MB."""
        units = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
        found: dict[str, int] = {}
        for item in filter(None, self.text(column).split(",")):
            if _NO_VALUE.fullmatch(item.partition("=")[2].strip()):
                continue
            pair = re.fullmatch(r"([^=]+)=(-?[0-9]+(?:\.[0-9]+)?)([KMGTP]?)", item.strip())
            if pair is None:
                raise SwflowError(
                    f"{self.place}: {column} {shown(item)}; expected resources such as cpu=128,gres/gpu=4"
                )
            amount = finite(pair[2], f"{self.place}: {column}") * units[pair[3]]
            if amount < 0 and pair[2] != "-1":
                raise SwflowError(f"{self.place}: {column} {shown(item)}; expected 0 or more, or -1 for no limit")
            if amount >= 0:
                found[pair[1]] = whole_number(math.floor(amount), f"{self.place}: {column}")
        return found


def read_table(path: str | Path, command: str, needed: Sequence[str]) -> list[Row]:
    """Read the table that a command prints with ``-P``: a header, and columns separated by ``|``."""
    path = Path(path)
    header: list[str] = []
    rows = []
    for number, line in enumerate(read_file(path).splitlines(), 1):
        if not line.strip():
            continue
        cells = line.split("|")
        if not header:
            header = [cell.strip().lower().replace(" ", "") for cell in cells]  # Par Name in the default format
            header = [_NAMES.get(name, name) for name in header]
            lacking = [name for name in needed if name not in header]
            if lacking:
                raise SwflowError(f"{path}:{number}: no column {lacking[0]}; expected the output of `{command}`")
            continue
        if len(cells) != len(header):
            raise SwflowError(f"{path}:{number}: {len(cells)} columns instead of {len(header)}; expected `{command}`")
        texts = {name: cell.rstrip() for name, cell in zip(header, cells, strict=True) if cell.strip()}
        texts |= {_OF_CPUS[name]: f"cpu={texts.pop(name).strip()}" for name in _OF_CPUS.keys() & texts.keys()}
        rows.append(Row(texts, Place(path, number)))
    if not header:
        raise SwflowError(f"{path}: empty; expected the output of `{command}`")
    return rows


def read_reservations(path: str | Path) -> list[Row]:
    """Read the output of ``scontrol show res``; raise `SwflowError` if a reservation lacks its start, end or nodes."""
    path = Path(path)
    text = read_file(path)
    if text.strip().lower().startswith("no reservations"):
        return []
    found = []
    blocks = list(re.finditer(r"ReservationName=", text))
    if not blocks:
        raise SwflowError(f"{path}: no ReservationName=; expected the output of `scontrol show res`")
    ends = [block.start() for block in blocks[1:]] + [len(text)]
    line, counted = 1, 0
    for block, end in zip(blocks, ends, strict=True):
        line, counted = line + text.count("\n", counted, block.start()), block.start()
        place = Place(path, line)
        pairs = dict(re.findall(r"(?<!\w)(\w+)=(\S*)", text[block.start() : end]))
        if not {"StartTime", "EndTime", "Nodes"} <= pairs.keys():
            raise SwflowError(f"{place}: {pairs['ReservationName']}: expected StartTime, EndTime and Nodes")
        found.append(Row({name.lower(): value for name, value in pairs.items()}, place))
    return found
