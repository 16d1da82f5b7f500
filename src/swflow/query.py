"""Asking the database: connections that can do nothing but read it, and one SQL query, to rows or to a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from swflow.errors import SwflowError, number_of
from swflow.machine import free_memory

#: What a query may be unless it is allowed to write.
_READING = ("SELECT", "EXPLAIN", "PRAGMA", "MULTI")  # DuckDB calls a PIVOT several statements


#: What DuckDB may take of the memory, in any case and as a share of what is free: beyond it is the disk, and what is
#: computed of whole columns needs the rest.
_LEAST_MEMORY, _MEMORY_SHARE = 2**31, 1 / 6


def memory_limit() -> int:
    """Return how many bytes DuckDB may take."""
    return max(_LEAST_MEMORY, int(_MEMORY_SHARE * (free_memory() or 0)))


@contextmanager
def connect(
    database: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, threads: int | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """
    Open a database to read it: no file, network or setting is within reach of what it or a query contains.

    Parameters
    ----------
    database : path-like
        A database that `swflow.database.load` wrote.
    output : path-like, optional
        The one file that may be written.
    threads : int, optional
        How many threads queries use; one adds floating-point numbers in the same order each time.

    Yields
    ------
    duckdb.DuckDBPyConnection

    Raises
    ------
    SwflowError
        If there is no such database, or the file is none, or a query of the block fails.
    """
    remedy = f"make it with snakemake, or: swflow load RUNS --database {database}"
    if not Path(database).is_file():
        raise SwflowError(f"{database}: no such database; {remedy}")
    try:
        connection = duckdb.connect(Path(database), read_only=True)
    except duckdb.Error as error:
        raise SwflowError(f"{database}: cannot be opened as a DuckDB database ({one_line(error)}); {remedy}") from None
    with connection:
        connection.execute("SET enable_progress_bar = false")
        if threads is not None:
            connection.execute(f"SET threads = {threads:d}")
        connection.execute(f"SET memory_limit = '{memory_limit()}B'")
        if output is not None:
            connection.execute("SET allowed_paths = [$path]", {"path": str(output)})
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            yield connection
        except duckdb.CatalogException as error:
            raise SwflowError(f"{database}: lacks what swflow load writes ({one_line(error)}); {remedy}") from None
        except duckdb.Error as error:
            raise SwflowError(f"{database}: {one_line(error)}") from None


def query(
    database: str | os.PathLike[str],
    sql: str,
    output: str | os.PathLike[str] | None = None,
    format: str = "csv",
    *,
    write: bool = False,
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """
    Run an SQL query on a database that `load` wrote.

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
    write : bool
        Allow several statements that may change the database, and read and write files. Otherwise a query can
        do nothing but read the database.

    Returns
    -------
    columns : list of str
        Names; empty with ``output``.
    rows : list of tuple
        The result; empty with ``output``.

    Raises
    ------
    SwflowError
        If there is no such database, or the query is wrong or is more than a query.
    """
    if write:
        return _write(database, sql, output)
    with connect(database, output) as connection:
        try:
            statement = _reading_statement(connection, sql)
            if output is None:
                result = connection.execute(statement)
                return [column[0] for column in result.description or ()], result.fetchall()
            target = str(output).replace("'", "''")
            connection.execute(f"COPY (\n{statement}\n) TO '{target}' (FORMAT {format}, USE_TMP_FILE false)")
            return [], []
        except duckdb.CatalogException as error:
            if _has_runs(connection):
                raise SwflowError(f"sql: {one_line(error)}") from None
            raise
        except duckdb.PermissionException:
            raise SwflowError("sql: a query only reads the database; to read or write files, add --write") from None
        except duckdb.Error as error:
            number = number_of(error)
            if output is not None and number is not None:
                raise OSError(number, os.strerror(number)) from None  # for who writes the file
            raise SwflowError(f"sql: {one_line(error)}") from None


def _has_runs(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a database is one of swflow's."""
    return bool(connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'runs'").fetchall())


def _reading_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return the one statement that a text has, if it only reads."""
    statements = connection.extract_statements(sql)
    if not statements:
        raise SwflowError('sql: no query; write one, as in: swflow sql "FROM metrics"')
    if len(statements) > 1:
        raise SwflowError(f"sql: {len(statements)} statements; give one query, or allow more with --write")
    kind = statements[0].type.name
    if kind not in _READING:
        raise SwflowError(f"sql: {kind} is no query; to change the database or write files, add --write")
    return statements[0].query.strip().rstrip("; \n")


def _write(
    database: str | os.PathLike[str], sql: str, output: str | os.PathLike[str] | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run statements that may do everything."""
    if output is not None:
        raise SwflowError("sql: with --write, let the query write the file: COPY (SELECT …) TO 'FILE'")
    with connect(database):
        pass  # it is a database
    if not sql.strip():
        raise SwflowError('sql: no query; write one, as in: swflow sql "FROM metrics"')
    with duckdb.connect(Path(database)) as connection:
        try:
            connection.execute("SET enable_progress_bar = false")
            result = connection.execute(sql)
            return [column[0] for column in result.description or ()], result.fetchall()
        except duckdb.Error as error:
            raise SwflowError(f"sql: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """Return DuckDB's message in one line, without the picture of the place but with its words."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and set(line) != {"^"} and not line.startswith("COPY ("))
