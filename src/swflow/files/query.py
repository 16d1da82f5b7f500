"""Query the database: read-only connections, and a single SQL query with rows or a file as its result."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from swflow.errors import SwflowError, number_of, reason_of, shell_word
from swflow.jobs.machine import free_memory

_NO_QUERY = 'sql: no query; write one, as in: swflow sql "FROM metrics"'

#: Types of statements that are permitted without --write.
_READING = ("SELECT", "EXPLAIN", "PRAGMA", "MULTI")  # DuckDB splits a PIVOT into several statements


#: Memory limit of DuckDB, absolute and as a share of the free memory. DuckDB spills to disk above it. The remaining
#: memory is needed for computations on whole columns.
_LEAST_MEMORY, _MEMORY_SHARE = 2**31, 1 / 6


def memory_limit() -> int:
    """Return the memory limit of DuckDB in bytes."""
    return max(_LEAST_MEMORY, int(_MEMORY_SHARE * (free_memory() or 0)))


#: No connection fetches or loads extensions, whatever file it opens; those that swflow needs are a part of DuckDB.
_CONFIG: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}

#: Bytes 8 to 11 of a DuckDB database.
_MARK = b"DUCK"


def open_database(
    database: str | os.PathLike[str] | None = None, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """
    Open a DuckDB database, by default one in memory, without extensions and without a progress bar.

    Every connection of swflow is opened here. DuckDB would open other files, such as SQLite databases, through an
    extension that it fetches, before any setting applies.

    Raises
    ------
    duckdb.IOException
        If an existing file is not a DuckDB database.
    """
    if database is None:
        connection = duckdb.connect(config=_CONFIG)
    else:
        path = Path(database).absolute()  # a name such as md:x.duckdb stands for a service
        if path.is_file():
            with path.open("rb") as file:
                start = file.read(12)
            if start and start[8:] != _MARK:
                raise duckdb.IOException("another kind of file")
        connection = duckdb.connect(path, read_only=read_only, config=_CONFIG)
    connection.execute("SET enable_progress_bar = false")
    return connection


@contextmanager
def connect(
    database: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, threads: int | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """
    Open a database read-only. Queries cannot access files, the network or settings.

    The only file that queries can write is ``output``. With ``threads=1``, floating-point sums have a fixed
    order. Raise `SwflowError` if the database is missing or invalid, or a query of the block fails.
    """
    remedy = f"create it with snakemake, or: swflow load RUNS --database {shell_word(database)}"
    if not Path(database).is_file():
        raise SwflowError(f"{database}: no such database; {remedy}")
    try:
        connection = open_database(database, read_only=True)
    except OSError as error:
        raise SwflowError(f"{database}: {reason_of(error)}") from None
    except duckdb.Error as error:
        raise SwflowError(f"{database}: cannot be opened as a DuckDB database ({one_line(error)}); {remedy}") from None
    with connection:
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
            raise SwflowError(f"{database}: not written by swflow load ({one_line(error)}); {remedy}") from None
        except duckdb.Error as error:
            raise SwflowError(f"{database}: {one_line(error)}") from None


def query(
    database: str | os.PathLike[str],
    sql: str,
    output: str | os.PathLike[str] | None = None,
    format: str = "csv",
    *,
    parameters: Mapping[str, object] | None = None,
    write: bool = False,
    most: int | None = None,
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """
    Run an SQL query on a database written by `load`; return the names of the columns, and the rows.

    With ``output``, the result is written to this file in the format csv or parquet instead. ``parameters`` are values
    of the query's parameters by name, without an output. At most ``most`` rows are returned, and of larger results only
    these are computed, if the query permits it. With ``write``, several statements are permitted, which can
    change the database and read and write files; otherwise, a query can only read the database. Raise `SwflowError` if
    the database is missing, the query is invalid, or the text is more than one query.
    """
    if write:
        return _write(database, sql, output, most)
    with connect(database, output) as connection:
        try:
            statement = _reading_statement(connection, sql)
            if output is None:
                return fetched(connection.execute(statement, parameters), most)
            target = str(output).replace("'", "''")
            connection.execute(f"COPY (\n{statement}\n) TO '{target}' (FORMAT {format}, USE_TMP_FILE false)")
            return [], []
        except duckdb.CatalogException as error:
            if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'runs'").fetchall():
                raise SwflowError(f"sql: {one_line(error)}") from None
            raise
        except duckdb.PermissionException:
            raise SwflowError("sql: a query only reads the database; to read or write files, add --write") from None
        except duckdb.Error as error:
            number = number_of(error)
            if output is not None and number is not None:
                raise OSError(number, os.strerror(number)) from None  # handled by the writer of the file
            raise SwflowError(f"sql: {one_line(error)}") from None


def fetched(result: duckdb.DuckDBPyConnection, most: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names of the columns and the rows of an executed query, or the first ``most`` rows."""
    rows = result.fetchall() if most is None else result.fetchmany(most)
    return [column[0] for column in result.description or ()], rows


def require_unique_columns(columns: Sequence[str]) -> None:
    """Raise an error if two columns of a result have one name."""
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise SwflowError(f"sql: several columns are named {', '.join(repeated)}; name the columns with AS")


def _reading_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return the single statement of a text; raise an error if it does more than read."""
    statements = connection.extract_statements(sql)
    if not statements:
        raise SwflowError(_NO_QUERY)
    if len(statements) > 1:
        raise SwflowError(f"sql: {len(statements)} statements; expected one query; several need --write")
    kind = statements[0].type.name
    if kind not in _READING:
        raise SwflowError(f"sql: {kind} is not a query; to change the database or write files, add --write")
    return statements[0].query.strip().rstrip("; \n")


def _write(
    database: str | os.PathLike[str], sql: str, output: str | os.PathLike[str] | None, most: int | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run statements without restrictions."""
    if output is not None:
        raise SwflowError("sql: with --write, let the query write the file: COPY (SELECT …) TO 'FILE'")
    with connect(database):
        pass  # it is a database
    if not sql.strip():
        raise SwflowError(_NO_QUERY)
    with open_database(database) as connection:
        try:
            return fetched(connection.execute(sql), most)
        except duckdb.Error as error:
            raise SwflowError(f"sql: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """Return DuckDB's message in one line, without the marker of the position."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and set(line) != {"^"} and not line.startswith("COPY ("))
