"""The figures that a report draws itself, of which the next report draws only those that changed."""

import json
from pathlib import Path
from typing import Any

import duckdb

from swflow.figures import draw_request
from swflow.figures.planned import key_of
from swflow.figures.provenance import figure_command
from swflow.figures.request import Request
from swflow.files.atomic import atomic_path
from swflow.files.fingerprint import fingerprint
from swflow.names import log_of

#: The file in the folder of a report.
KEPT = ".figures.json"


class KeptFigures:
    """Figures by a digest of their options, data and code; ``file`` contains those of the previous report, if any."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, file: Path | None) -> None:
        self.connection, self.file = connection, file
        self.code = fingerprint("load", "figures")
        self.shown: dict[str, dict[str, Any]] = {}
        self.former = _read(file) if file is not None else {}

    def draw(self, kind: str, request: Request) -> dict[str, Any]:
        """Return a figure, as `swflow.figures.draw_request` does; draw it only if it is not that of the file."""
        options = {name: value for name, value in vars(request).items() if name != "connection"}
        options |= {"kind": kind, "log": log_of(request.workloads[0]), "workloads": request.workloads}
        options |= {"shown": request.runs, "runs": [run["run"] for run in request.runs]}
        options["command"] = figure_command(kind, request)  # names a run where only the workload is given
        key = key_of(self.connection, options, self.code)
        spec = self.former.get(key) or draw_request(kind, request)
        self.shown[key] = spec
        return spec

    def write(self) -> None:
        """Write the figures of this report to the file, instead of those before."""
        if self.file is not None:
            with atomic_path(self.file) as temporary:
                temporary.write_text(json.dumps(self.shown), encoding="utf-8")


def _read(file: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of a file; none if there is no file, or a damaged one."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
