"""Read jobs from a file of any format that needs no options, with the importer for its kind."""

import os
from collections.abc import Callable
from importlib import import_module

import polars as pl

from swflow.errors import SwflowError
from swflow.log import imported
from swflow.log.importers.records import ImportedLog, Site
from swflow.log.recognise import IMPORTED, SACCT, recognize

#: The module of each kind, whose function is ``import_`` and its name.
_HOMES = {
    **dict.fromkeys(SACCT[:4], "sacct"),
    **{kind: kind for kind in IMPORTED if kind not in SACCT},
}


def importer_of(kind: str) -> Callable[..., ImportedLog]:
    """Return the function that imports a kind, from the module of its name."""
    read: Callable[..., ImportedLog] = getattr(import_module(f"swflow.log.importers.{kind}"), f"import_{kind}")
    return read


def import_any(
    path: str | os.PathLike[str],
    site: Site | None = None,
    columns: str | None = None,
    *,
    join_preempted: bool = False,
) -> ImportedLog:
    """
    Import accounting data of any kind; a table with a header needs the mapping of its ``columns``.

    ``join_preempted`` is as in `swflow.log.importers.sacct.import_sacct`; other kinds do not record preemption.

    Raises
    ------
    SwflowError
        If the file is of another kind, with the command that reads it, or has no valid job.
    """
    from swflow.log.importers.table import import_table

    found, site = recognize(path), site or Site()
    mapping = columns or found.columns
    if found.key in _HOMES and columns is None:
        options = {"join_preempted": join_preempted} if found.key in SACCT else {}
        return importer_of(_HOMES[found.key])(str(path), site, **options)
    if mapping is not None:
        return import_table(str(path), site, mapping)
    raise SwflowError(found.describe(path))


def read_jobs(path: str | os.PathLike[str], site: Site | None = None, columns: str | None = None) -> pl.DataFrame:
    """Return the jobs of a log, or of accounting data of any kind, as a table with the columns of a log."""
    kind = recognize(path).key
    if columns is None and kind in ("swf", "log", "unknown", "empty"):
        log, _ = imported.read_log(path)
        return log.fields
    return import_any(path, site, columns).fields
