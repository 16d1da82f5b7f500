"""Provenance of a figure: its database queries, and the command that draws it again."""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
from altair.utils.schemapi import debug_mode

from swflow.analysis.heatmap import LOAD_BINS
from swflow.figures.parts import Spec
from swflow.figures.request import Request
from swflow.names import log_of


class RecordedConnection:
    """A connection that records the queries that it executes."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._queries: dict[str, None] = {}

    def execute(self, sql: str, values: Mapping[str, object] | None = None) -> duckdb.DuckDBPyConnection:
        """Execute a query and record it with its values in place of the parameters."""
        if not sql.lstrip().upper().startswith("DESCRIBE"):
            self._queries.setdefault(with_values(sql, values or {}))
        return self._connection.execute(sql, values)

    @property
    def sql(self) -> str:
        """The distinct queries in order of execution, separated by semicolons."""
        return "\n\n".join(f"{query};" for query in self._queries)


def recorded_figure(
    connection: duckdb.DuckDBPyConnection, draw: Callable[[Any], Spec], kind: str, **about: str
) -> Spec:
    """Draw a figure by a function of a connection; add its kind, its queries and more to ``usermeta``."""
    recorded = RecordedConnection(connection)
    with debug_mode(False):  # a fifth of the time; otherwise Altair validates each part of a chart at its creation
        spec = draw(recorded)
    spec["usermeta"] |= {"kind": kind, "sql": recorded.sql, **about}
    return spec


def with_values(sql: str, values: Mapping[str, object]) -> str:
    """
    Return a query with values in place of its named parameters.

    Examples
    --------
    >>> with_values("SELECT $a, $b", {"a": "it's", "b": [1, None]})
    "SELECT 'it''s', [1, NULL]"
    """
    return re.sub(r"\$(\w+)", lambda match: _literal(values[match[1]]), inspect.cleandoc(sql))


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return str(value)


def figure_command(kind: str, request: Request) -> str:
    """Return the command for a shell that draws a figure."""
    options = [("--run", _run_of(request, run)) for run in request.runs]
    options += [("--split", part) for part in request.split]
    options += [("--measure", measure) for measure in request.measures]
    options += [("--bins", str(request.bins))] if request.bins != LOAD_BINS else []
    options += [("--scale", request.scale)] if request.scale != "log" else []
    options += [(name, _seconds(end)) for name, end in zip(("--from", "--until"), request.window, strict=True)
                if end is not None]  # fmt: skip
    options += [("--study", request.study)] if request.study is not None and kind == "difference" else []
    if request.title != ", ".join(sorted({log_of(workload) for workload in request.workloads})):
        options.append(("--title", request.title))
    drawn = {run["scheduler"] for run in request.runs}
    options += [("--label", f"{name}={title}") for name, title in request.titles.items() if name in drawn]
    return command(kind, options)


def _seconds(time: float) -> str:
    """
    Return a time with all its digits.

    Examples
    --------
    >>> _seconds(86400.0), _seconds(123456789.0), _seconds(0.25)
    ('86400', '123456789', '0.25')
    """
    return f"{time:.0f}" if float(time).is_integer() else repr(float(time))


def command(kind: str, options: list[tuple[str, str]]) -> str:
    """
    Return the call of ``swflow figure``.

    Examples
    --------
    >>> command("waits", [("--run", "A/easy"), ("--title", "Two words")])
    "swflow figure waits --run A/easy --title 'Two words' -o waits.svg"
    """
    words = " ".join(f"{name} {shlex.quote(value)}" for name, value in options)
    return f"swflow figure {kind} {words} -o {kind}.svg"


def _run_of(request: Request, run: Mapping[str, str]) -> str:
    """Return a run's name; for a workload without a run name, the name of its first run."""
    if run["run"]:
        return run["run"]
    ((name,),) = request.connection.execute(
        "SELECT min(run) FROM runs WHERE workload = $workload", {"workload": run["workload"]}
    ).fetchall()
    return str(name)
