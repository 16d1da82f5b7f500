"""Asking the database: one SQL query, read-only, to rows or to a file."""

import os
from pathlib import Path
from typing import Any

import duckdb

from swflow.errors import SwflowError


def query(
    database: str | os.PathLike[str],
    sql: str,
    output: str | os.PathLike[str] | None = None,
    format: str = "csv",
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """
    Run an SQL query on a database that `load` wrote, read-only.

    Parameters
    ----------
    database : path-like
        Such as ``results/swflow.duckdb``.
    sql : str
        One query.
    output : path-like, optional
        Write the result to this file instead of returning it.
    format : {'csv', 'parquet'}
        What to write.

    Returns
    -------
    columns : list of str
        Names; empty with ``output``.
    rows : list of tuple
        The result; empty with ``output``.

    Raises
    ------
    SwflowError
        If there is no such database, or the query is wrong.
    """
    if not Path(database).is_file():
        raise SwflowError(
            f"{database}: no such database; make it with snakemake, or: swflow load RUNS --database {database}"
        )
    fault = None
    with duckdb.connect(Path(database), read_only=True) as connection:
        try:
            connection.execute("SET enable_progress_bar = false")
            if output is None:
                result = connection.execute(sql)
                return [column[0] for column in result.description or ()], result.fetchall()
            statement = sql.strip().rstrip(";")
            target = str(output).replace("'", "''")
            connection.execute(f"COPY (\n{statement}\n) TO '{target}' (FORMAT {format})")
            return [], []
        except duckdb.Error as error:
            fault = _one_line(error)
    raise SwflowError(f"sql: {fault}")


def _one_line(error: duckdb.Error) -> str:
    """Return DuckDB's message in one line, without the picture of the place but with its words."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and set(line) != {"^"} and not line.startswith("COPY ("))
