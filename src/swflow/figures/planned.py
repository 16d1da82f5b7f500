"""A plan of figures: those whose runs, options or code changed are drawn, all in one process."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from swflow.errors import SwflowError
from swflow.figures import draw_files
from swflow.files.fingerprint import fingerprint
from swflow.files.query import connect
from swflow.names import log_of

#: The endings of the files of a figure. The last one records the key, so it is written last.
ENDINGS = ("png", "svg", "json")

#: The data that determine a figure: the runs that it shows, and what it shows of the runs' comparisons;
#: or all runs and sweeps of its log, which hold values of papers.
_RUNS = "SELECT name, digest FROM contents WHERE kind = 'run' AND name IN (SELECT unnest($runs)) ORDER BY name"
_COMPARISONS = """SELECT measure, variant, base, distance, score, variant_wins, base_wins, better FROM comparisons
    WHERE variant IN (SELECT unnest($runs)) AND base IN (SELECT unnest($runs)) ORDER BY ALL"""
_RUNS_OF_LOG = """SELECT name, digest FROM contents WHERE kind = 'run'
    AND (starts_with(name, $log || '/') OR starts_with(name, $log || '+')) ORDER BY name"""
_SWEEPS = "SELECT count(*), bit_xor(hash(sweeps)) FROM sweeps WHERE source = $log OR starts_with(source, $log || '+')"


def read_plan(path: str | os.PathLike[str], log: str | None = None) -> dict[str, dict[str, Any]]:
    """
    Read a plan of figures: a JSON file that maps a figure's name, such as ``STUDY/KTH-SP2-waits``, to its options.

    Options are ``kind``, ``log`` and those of `swflow.figures.draw`, or of `swflow.figures.draw_sweep` for the kind
    ``sweep``. With ``log``, return only the figures of this log.

    Raises
    ------
    SwflowError
        If the file is not a plan.
    """
    try:
        plan: dict[str, dict[str, Any]] = json.loads(Path(path).read_text(encoding="utf-8"))
        about = {name: (options["kind"], log_of(options["log"])) for name, options in plan.items()}
    except OSError as error:
        raise SwflowError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SwflowError(f"{path}: not a plan of figures; expected JSON: name to kind, log and options") from None
    return {name: plan[name] for name, (_, of_log) in about.items() if log in (None, of_log)}


def draw_plan(
    plan: Mapping[str, Mapping[str, Any]], database: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> Iterator[tuple[str, bool]]:
    """
    Write the figures of a plan as PNG, SVG and JSON; keep those that are up to date, with a new file time.

    Parameters
    ----------
    plan : mapping
        As `read_plan` returns it.
    database : path-like
        A database that `swflow.database.load` wrote.
    folder : path-like
        The folder of the files.

    Yields
    ------
    name : str
        The name of a figure.
    drawn : bool
        Whether it was drawn.

    Raises
    ------
    SwflowError
        If a figure cannot be drawn.
    """
    code = fingerprint("load", "figures")
    with connect(database) as connection:
        keys = {name: key_of(connection, options, code) for name, options in plan.items()}
    for name, options in plan.items():
        files = [Path(folder) / f"{name}.{ending}" for ending in ENDINGS]
        is_stale = _recorded_key(files) != keys[name]
        if is_stale:
            files[-1].unlink(missing_ok=True)  # a picture that is drawn only in part must not count as the old figure
            draw_files(options, database, files, keys[name])
        else:
            for file in files:
                file.touch()
        yield name, is_stale


def key_of(connection: duckdb.DuckDBPyConnection, options: Mapping[str, Any], code: str) -> str:
    """
    Return a digest of what determines a figure: its options, its data and the code.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The database.
    options : mapping
        Of a figure of a plan.
    code : str
        The fingerprint of the code that loads and draws.
    """
    kind, log = options["kind"], log_of(options["log"])
    data: list[tuple[Any, ...]] = []
    if kind == "published":
        data += connection.execute(_RUNS_OF_LOG, {"log": log}).fetchall()
    elif kind != "sweep":
        data += connection.execute(_RUNS, {"runs": options["runs"]}).fetchall()
    if kind == "difference":
        data += connection.execute(_COMPARISONS, {"runs": options["runs"]}).fetchall()
    if kind in ("sweep", "published"):
        data += connection.execute(_SWEEPS, {"log": log}).fetchall()
    return hashlib.sha256(json.dumps([dict(options), data, code], sort_keys=True).encode()).hexdigest()


def _recorded_key(files: list[Path]) -> str | None:
    """Return the key in the JSON file of a figure; None if a file is missing or damaged."""
    try:
        key: str = json.loads(files[-1].read_text(encoding="utf-8"))["usermeta"]["key"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return key if all(file.is_file() for file in files) else None
